/**
 * Reads what needs attention in a region, from indexes that contain only such subjects, and from the records of all endpoints. The number
 * of reads is bounded: see the limits. What exceeds them is reported as incomplete.
 */
import pLimit from 'p-limit';
import { type Account, type Status, toAccount, toStatus } from '../../accounts/accounts.ts';
import { isEndpointKind } from '../../built-in-sinks.ts';
import { toEndpoint } from '../../delivery/endpoint.ts';
import { toHealth } from '../../delivery/health.ts';
import { type DeadEvent, listDeadPage, listParkedPage } from '../../delivery/parked-events.ts';
import { toSink, withHealthOfParts } from '../../delivery/sink.ts';
import { listUndelivered, readMessage } from '../../notifications/message-history.ts';
import { isMessageId } from '../../notifications/message-ids.ts';
import type { Message } from '../../notifications/records.ts';
import { jobsAwaited, toDayKeys } from '../../storage/job-indexes.ts';
import {
  type AccountRef,
  accountPk,
  dueUntil,
  getDrainNames,
  keys,
  lateIndexPk,
  markedJobPk,
  POLL_SHARDS,
  pollDuePk,
  sinkPk,
  troubledIndexPk,
} from '../../storage/schema.ts';
import type { Item, Table } from '../../storage/table.ts';
import { readBreakerState } from '../../tracking/breaker.ts';
import { toSnapshot } from '../../tracking/snapshot.ts';
import { canAccess, canAccessEndpoint } from '../access.ts';
import type { Caller } from '../keys.ts';
import {
  type Candidate,
  DEAD_MS,
  type ItemId,
  MESSAGE_MS,
  toAccountItem,
  toEndpointItem,
  toMessageItem,
  toRegionItem,
} from './items.ts';
import { type JobContext, toJobItem } from './job-items.ts';

/** Dependencies of the sources. */
export interface SourceDeps {
  readonly table: Table;
  /** History of messages. Absent: messages are not watched. */
  readonly history: Table | undefined;
  readonly now: () => number;
}

/** Maximum numbers per region and request. */
const MAX = {
  accounts: 10_000,
  /** Accounts whose state is always read. In larger regions, only that of accounts in an index is. */
  exactAccounts: 300,
  troubled: 500,
  lateAccounts: 200,
  lateJobsOfAccount: 100,
  lateJobs: 500,
  markedJobs: 500,
  /** As many as a region can have. */
  endpoints: 10_000,
  /** Endpoints whose parked and dead events are read, those with a problem first. */
  inspected: 200,
  parked: 1_100,
  dead: 100,
  deadPages: 20,
  messages: 200,
  messagePages: 20,
} as const;
const READS_AT_ONCE = 8;
const DAY_MS = 86_400_000;
/** Delay after which a poll that has not begun counts as missed. */
const MISSED_POLL_MS = 5 * 60_000;

/** Problems of a region that need attention, and the numbers of watched accounts and endpoints. */
export interface Found {
  readonly candidates: readonly Candidate[];
  readonly complete: boolean;
  readonly accounts: number;
  readonly endpoints: number;
}

/** An account with the times of its last change and of its pause. */
type KnownAccount = Parameters<typeof toAccountItem>[0];

/** Returns what needs attention in a region, of the accounts of the caller. */
export async function findCandidates(deps: SourceDeps, region: string, caller: Caller): Promise<Found> {
  const accounts = await readAccounts(deps.table, region, caller);
  const upstream = await readBreakerState(deps.table, region);
  const now = deps.now();
  const outage = caller.accounts === null ? toRegionItem(region, upstream, now) : undefined;
  const hasOutage = upstream.openedAt !== null;
  const parts = await Promise.all([
    findAccounts(deps, region, accounts, hasOutage),
    findJobs(deps, region, accounts, caller),
    findEndpoints(deps, region, caller),
    findMessages(deps, region, caller),
  ]);
  const [, , endpoints] = parts;
  return {
    candidates: [...(outage ? [outage] : []), ...parts.flatMap(({ items }) => items)],
    complete: accounts.length < MAX.accounts && parts.every(({ complete }) => complete),
    accounts: accounts.length,
    endpoints: endpoints.watched,
  };
}

/** Returns the item of one subject now. `undefined`: it needs no attention, or the caller cannot access it. */
export async function findCandidate(
  deps: SourceDeps,
  id: ItemId,
  caller: Caller,
): Promise<Candidate | undefined> {
  const { table, history } = deps;
  const { region, account, type, subject } = id;
  const ref = { region, account };
  const now = deps.now();
  switch (type) {
    case 'job': {
      if (!canAccess(caller, account)) return undefined;
      const [item, status, owner] = await Promise.all([
        table.get(keys.snapshot(ref, Number(subject))),
        table.get(keys.status(ref)),
        table.get(keys.account(ref)),
      ]);
      const context = status && toContext(toStatus(status), owner && toAccount(owner));
      return item && context && toJobItem(ref, toSnapshot(item), context, now);
    }
    case 'account': {
      if (!canAccess(caller, account) || account !== subject) return undefined;
      const [item, status] = await Promise.all([table.get(keys.account(ref)), table.get(keys.status(ref))]);
      const hasOutage = (await readBreakerState(table, region)).openedAt !== null;
      return item && status && toAccountItem(toKnown(item), toStatus(status), { hasOutage }, now);
    }
    case 'endpoint': {
      const item = await table.get(keys.sink(region, subject));
      const isKnown = item?.kind !== undefined && canAccessEndpoint(caller, toEndpoint(item));
      const [found] = isKnown ? await inspect(deps, await withHealthOfParts(table, [item])) : [];
      return found;
    }
    case 'region':
      return caller.accounts === null && region === subject
        ? toRegionItem(region, await readBreakerState(table, region), now)
        : undefined;
    case 'message': {
      if (!history || !canAccess(caller, account) || !isMessageId(subject)) return undefined;
      const message = await readMessage(history, ref, subject);
      return message && toMessageItem(message, now);
    }
  }
}

async function readAccounts(table: Table, region: string, caller: Caller): Promise<KnownAccount[]> {
  const items =
    caller.accounts === null
      ? await table.query({ pk: accountPk(region), limit: MAX.accounts })
      : await table.getMany(caller.accounts.map((account) => keys.account({ region, account })));
  return items.map(toKnown);
}

function toKnown(item: Item): KnownAccount {
  const changedAt = typeof item.changedAt === 'number' ? item.changedAt : null;
  // Earlier versions stored no time of the pause.
  const pausedAt = typeof item.pausedAt === 'number' ? item.pausedAt : changedAt;
  return { ...toAccount(item), changedAt, pausedAt };
}

/** Finds accounts that are not observed: by their indexed state, by a missed poll, or paused. */
async function findAccounts(
  { table, now }: SourceDeps,
  region: string,
  accounts: readonly KnownAccount[],
  hasOutage: boolean,
) {
  const limit = MAX.troubled;
  const isExact = accounts.length <= MAX.exactAccounts;
  const indexed = isExact ? [] : await table.query({ index: 'related', pk: troubledIndexPk(region), limit });
  const shards = isExact ? [] : Array.from({ length: POLL_SHARDS }, (_, shard) => pollDuePk(region, shard));
  const missed = await Promise.all(
    shards.map((pk) => table.query({ index: 'due', pk, to: dueUntil(now() - MISSED_POLL_MS), limit })),
  );
  const wanted = new Set([...indexed, ...missed.flat()].map(({ pk }) => pk));
  const chosen = accounts.filter(
    (account) => isExact || account.paused || wanted.has(keys.status(account).pk),
  );
  const read = chosen.slice(0, limit);
  const statuses = await readStatuses(table, read);
  const items = read.flatMap((account) => {
    const status = statuses.get(account.account);
    return (status && toAccountItem(account, status, { hasOutage }, now())) ?? [];
  });
  const isCut = [indexed, ...missed].some(({ length }) => length === limit);
  return { items, complete: !isCut && chosen.length <= limit };
}

async function readStatuses(table: Table, refs: readonly AccountRef[]): Promise<ReadonlyMap<string, Status>> {
  const items = await table.getMany(refs.map((ref) => keys.status(ref)));
  const byPk = new Map(items.map((item) => [item.pk, toStatus(item)]));
  return new Map(
    refs.flatMap((ref) => {
      const status = byPk.get(keys.status(ref).pk);
      return status ? [[ref.account, status] as const] : [];
    }),
  );
}

/** Finds late jobs, of the accounts with the earliest due times first, and marked jobs. */
async function findJobs(
  { table, now }: SourceDeps,
  region: string,
  owners: readonly KnownAccount[],
  caller: Caller,
) {
  const [late, marked] = await Promise.all([
    findLateJobs(table, region, caller, now()),
    findMarkedJobs(table, region, caller),
  ]);
  const found = new Map([...late.jobs, ...marked.jobs].map((item) => [`${item.pk}\n${item.sk}`, item]));
  const getAccount = (item: Item): string => item.pk.slice(item.pk.lastIndexOf('#') + 1);
  const accounts = new Set([...found.values()].map(getAccount));
  const statuses = await readStatuses(
    table,
    [...accounts].map((account) => ({ region, account })),
  );
  const byId = new Map(owners.map((owner) => [owner.account, owner]));
  const items = [...found.values()].flatMap((item) => {
    const account = getAccount(item);
    const status = statuses.get(account);
    if (!status) return [];
    const context = toContext(status, byId.get(account));
    return toJobItem({ region, account }, toSnapshot(item), context, now()) ?? [];
  });
  return { items, complete: late.complete && marked.complete };
}

const toContext = (status: Status, owner: Account | undefined): JobContext => ({
  lastGood: status.lastGoodCrawlStartedAt,
  dueSoonHours: owner?.events?.dueSoonHours ?? null,
});

async function findLateJobs(table: Table, region: string, caller: Caller, now: number) {
  const limit = MAX.lateAccounts;
  const indexed =
    caller.accounts === null
      ? await table.query({ index: 'related', pk: lateIndexPk(region), to: dueUntil(now), limit })
      : [];
  const accounts = caller.accounts ?? indexed.map(({ sk }) => sk);
  // A day begins up to 14 hours earlier than in UTC.
  const before = [new Date(now + 2 * DAY_MS).toISOString().slice(0, 10)];
  const jobs: Item[] = [];
  let complete = indexed.length < limit;
  for (let at = 0; at < accounts.length; at += READS_AT_ONCE) {
    if (jobs.length >= MAX.lateJobs) return { jobs, complete: false };
    const batch = accounts.slice(at, at + READS_AT_ONCE);
    const pages = await Promise.all(
      batch.map((account) =>
        table.query({
          ...jobsAwaited({ region, account }, toDayKeys({ before })),
          limit: MAX.lateJobsOfAccount,
        }),
      ),
    );
    complete &&= pages.every(({ length }) => length < MAX.lateJobsOfAccount);
    jobs.push(...(await table.getMany(pages.flat().map(({ pk, sk }) => ({ pk, sk })))));
  }
  return { jobs, complete };
}

async function findMarkedJobs(table: Table, region: string, caller: Caller) {
  const limit = MAX.markedJobs;
  const pk = markedJobPk(region);
  const pages =
    caller.accounts === null
      ? [await table.query({ pk, limit })]
      : await pLimit(READS_AT_ONCE).map(caller.accounts, (account) =>
          table.query({ pk, from: `${account}#`, to: `${account}#~`, limit }),
        );
  const marks = pages.flat().slice(0, limit);
  const jobs = await table.getMany(
    marks.map(({ sk }) => {
      const [account = '', jobNumber] = sk.split('#');
      return keys.snapshot({ region, account }, Number(jobNumber));
    }),
  );
  return { jobs, complete: pages.flat().length < limit };
}

async function findEndpoints(deps: SourceDeps, region: string, caller: Caller) {
  const all = await deps.table.query({ pk: sinkPk(region), limit: MAX.endpoints });
  const known = all.filter(({ kind }) => kind !== undefined);
  const theirs = (await withHealthOfParts(deps.table, known)).filter((item) =>
    canAccessEndpoint(caller, toEndpoint(item)),
  );
  const since = deps.now() - DEAD_MS;
  const marked = new Set(theirs.filter((item) => hasProblem(item, since)));
  const sorted = [...marked, ...theirs.filter((item) => !marked.has(item))];
  return {
    items: await inspect(deps, sorted.slice(0, MAX.inspected)),
    complete: all.length < MAX.endpoints && marked.size <= MAX.inspected,
    // Topics, the event bus and the messages to customers are no endpoints of a user.
    watched: theirs.filter(({ kind }) => isEndpointKind(kind)).length,
  };
}

/** Reports whether an endpoint fails, is disabled, has parked events, or had an event that died after a time. */
function hasProblem(item: Item, since: number): boolean {
  const { failures, disabledAt } = toHealth(item);
  // The state of parts has its own marks.
  const isDivided = getDrainNames(item.sk).length > 1;
  return (
    failures > 0 ||
    disabledAt !== null ||
    item.parking === true ||
    Number(item.lastDiedAt) > since ||
    isDivided
  );
}

/** Returns the items of endpoints, with their parked and dead events. */
async function inspect({ table, now }: SourceDeps, items: readonly Item[]): Promise<Candidate[]> {
  const found = await pLimit(READS_AT_ONCE).map(items, async (item) => {
    const sink = toSink(item);
    const { region, id } = sink;
    const [{ parked }, dead] = await Promise.all([
      listParkedPage(table, region, id, { limit: MAX.parked }),
      listRecentDead(table, region, id, now()),
    ]);
    return toEndpointItem(sink, { parked, dead }, now()) ?? [];
  });
  return found.flat();
}

/** Returns dead events of an endpoint that concern the queue. The table lists them by account, so older ones are read as well. */
async function listRecentDead(table: Table, region: string, sink: string, now: number): Promise<DeadEvent[]> {
  const recent: DeadEvent[] = [];
  let after: string | undefined;
  for (let page = 0; page < MAX.deadPages && recent.length < MAX.dead; page += 1) {
    const { dead, next } = await listDeadPage(table, region, sink, { limit: MAX.dead, after });
    recent.push(...dead.filter(({ diedAt }) => diedAt > now - DEAD_MS));
    if (next === null) break;
    after = next;
  }
  return recent.slice(0, MAX.dead);
}

/** Finds undelivered messages. For a key of some accounts, also those that are older than many of other accounts. */
async function findMessages({ history, now }: SourceDeps, region: string, caller: Caller) {
  if (!history) return { items: [], complete: true };
  const theirs: Message[] = [];
  let isWhole = false;
  let last: string | undefined;
  for (let page = 0; page < MAX.messagePages && theirs.length < MAX.messages && !isWhole; page += 1) {
    const read = await listUndelivered(history, region, now() - MESSAGE_MS, MAX.messages, last);
    // The upper bound is inclusive; the message at it was on the previous page.
    theirs.push(...read.filter(({ id, account }) => id !== last && canAccess(caller, account)));
    isWhole = read.length < MAX.messages;
    last = read.at(-1)?.id;
  }
  const byAddress = Map.groupBy(theirs, ({ to }) => to?.address);
  const items = theirs.flatMap(
    (message) => toMessageItem(message, now(), byAddress.get(message.to?.address)?.length) ?? [],
  );
  return { items, complete: isWhole };
}
