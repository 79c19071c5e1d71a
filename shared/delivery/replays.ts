/**
 * Replays: events sent to a sink again on request, each with its original id. A replay has its own cursors
 * in parallel to the live ones, which are never moved back. The drain processes both.
 *
 *   start    replay item ── cursors ── ready          the next start completes one that was interrupted
 *   cancel   cancelledAt ── cursors gone              a drain drops the cursors of a deleted or cancelled replay
 *
 * A replay sends the events of a range of the logs, or the dead events that match a filter (`dead-events.ts`).
 * The item contains the range, the cursors the progress. What is NOT guaranteed: order between replayed and
 * live events of one job; receivers keep the highest sequence per subject.
 */
import pLimit from 'p-limit';
import type * as z from 'zod';
import { formatCursor } from '../log/head.ts';
import type { EventLog } from '../log/log.ts';
import { newResourceId, notFound, type Rejection, rejected } from '../resources.ts';
import { drainDue, keys, replayPk } from '../storage/schema.ts';
import { deleteItems, type Item, type Key, type Table } from '../storage/table.ts';
import { checkInput } from '../validation.ts';
import { type AttemptDeps, attemptNow } from './attempt.ts';
import { type DeadSelection, type RejectedEventFilter, toDeadSelection } from './dead-events.ts';
import { listFollowedLogs } from './endpoint-data.ts';
import { type ResourceGenerators, withLock } from './endpoint-edits.ts';
import { NewReplay } from './endpoint-input.ts';
import type { AttemptReport, Replay } from './endpoint-views.ts';
import { findPositions } from './positions.ts';
import { type EventFilter, follows, type SinkRecord, toSink } from './sink.ts';

/** Dependencies of replays. */
export interface ReplayDeps extends AttemptDeps {
  readonly table: Table;
  readonly log: EventLog;
}

/** Maximum number of concurrent replays of one sink. */
export const MAX_RUNNING_REPLAYS = 5;
/** Maximum number of accounts of one replay, and of completed replays that stay listed. */
const MAX_ACCOUNTS = 1000;
const KEPT_REPLAYS = 50;
const CALLS_AT_ONCE = 16;

/** The range of one account in a replay: after `position`, up to and including `end`. */
export interface Range {
  readonly account: string;
  readonly position: number;
  readonly end: number;
}

type Started = { readonly kind: 'started'; readonly replay: Replay };

/**
 * Starts a replay to a sink: of the logs it follows, or of the accounts that the filter or the cursors name.
 * The filter applies in addition to the sink's own.
 *
 * If `to` is a time, events of that time or later are excluded. The beginning, and a time before it, is the
 * earliest retained event; `late` lists the accounts where that applies. A cursor past retention is rejected.
 * With an `id`, the request is repeatable: an existing replay of that id is completed and returned.
 */
export async function startReplay(
  deps: ReplayDeps,
  region: string,
  sink: string,
  input: unknown,
  makings: Pick<ResourceGenerators, 'newId'> = { newId: deps.newId },
): Promise<Started | Rejection> {
  const checked = checkInput(NewReplay, input);
  if (checked.kind === 'rejected') return checked;
  const { id = newResourceId('rp', makings.newId), ...range } = checked.value;
  return startOnce(deps, region, sink, id, (record) => createReplay(deps, record, id, range));
}

/** Dead events to replay: the selected ones between the first and the last of each account. */
export interface DeadEvents extends DeadSelection {
  readonly count: number;
  readonly ranges: readonly Range[];
}

/**
 * Starts a replay of dead events. An event that is delivered is no longer dead. Events that die later are not
 * part of the replay.
 */
export async function startDeadReplay(
  deps: ReplayDeps,
  region: string,
  sink: string,
  dead: DeadEvents,
  { newId }: Pick<ResourceGenerators, 'newId'>,
): Promise<Started | Rejection> {
  const id = newResourceId('rp', newId);
  return startOnce(deps, region, sink, id, (record) =>
    storeReplay(deps, record, {
      ...{ id, ranges: dead.ranges, total: dead.count, filter: {}, late: [] },
      dead,
    }),
  );
}

/** Completes the replay with this id, or creates it. */
function startOnce(
  deps: ReplayDeps,
  region: string,
  sink: string,
  id: string,
  create: (record: SinkRecord) => Promise<Started | Rejection>,
): Promise<Started | Rejection> {
  // The lock excludes changes of the sink's accounts and other starts of replays.
  return withLock(deps, region, sink, async () => {
    const item = await deps.table.get(keys.sink(region, sink));
    if (!item) return sinkNotFound(sink);
    const record = toSink(item);
    const stored = await deps.table.get(keys.replay(region, sink, id));
    if (!stored) return create(record);
    if (stored.cancelledAt === undefined) await putCursors(deps, record, stored);
    const now = await deps.table.get(keys.replay(region, sink, id));
    return { kind: 'started', replay: await loadProgress(deps, region, sink, now ?? stored) };
  });
}

async function createReplay(
  deps: ReplayDeps,
  record: SinkRecord,
  id: string,
  range: Omit<z.infer<typeof NewReplay>, 'id'>,
): Promise<Started | Rejection> {
  const { region, id: sink } = record;
  const { from, to = 'now', filter = {} } = range;
  const logs = await listFollowedLogs(deps, record);
  const stranger = filter.accounts?.find((account) => !follows(record, account) || !logs.includes(account));
  if (stranger !== undefined) {
    const reason = `filter.accounts must contain only accounts whose events "${sink}" receives; "${stranger}" is not one of them.`;
    return rejected(reason);
  }
  const accounts = filter.accounts ?? logs;
  const begin = await findPositions(deps.log, region, accounts, from, deps.now());
  if (begin.kind === 'rejected') return rejected(`from ${begin.reason}.`);
  const end = await findPositions(deps.log, region, accounts, to, deps.now());
  if (end.kind === 'rejected') return rejected(`to ${end.reason}.`);
  const heads = await findPositions(deps.log, region, accounts, 'now', deps.now());
  const ranges = [...begin.positions].flatMap(([account, position]): Range[] => {
    const last =
      end.positions.get(account) ?? (heads.kind === 'placed' ? heads.positions.get(account) : 0) ?? 0;
    return last > position ? [{ account, position, end: last }] : [];
  });
  if (ranges.length === 0) return rejected('from and to must have at least one event between them.');
  const { accounts: _, ...events } = filter;
  const total = ranges.reduce((sum, range) => sum + range.end - range.position, 0);
  return storeReplay(deps, record, { id, ranges, total, filter: events, late: begin.late });
}

/** Stores a replay and its cursors. */
async function storeReplay(
  deps: ReplayDeps,
  record: SinkRecord,
  replay: {
    readonly id: string;
    readonly ranges: readonly Range[];
    readonly total: number;
    readonly filter: EventFilter;
    readonly late: readonly string[];
    readonly dead?: DeadSelection;
  },
): Promise<Started | Rejection> {
  const { region, id: sink } = record;
  const { id, ranges, total, filter, late, dead } = replay;
  if (ranges.length > MAX_ACCOUNTS) {
    const reason = `filter.accounts must select at most ${MAX_ACCOUNTS} accounts; the range contains events of ${ranges.length} accounts.`;
    return rejected(reason);
  }

  const running = await completeStarts(deps, record);
  if (running >= MAX_RUNNING_REPLAYS) return tooManyReplays(sink);
  const item: Item = {
    ...keys.replay(region, sink, id),
    createdAt: deps.now(),
    filter: JSON.stringify(filter),
    dead: dead && JSON.stringify(dead.filter),
    until: dead?.until,
    accounts: ranges.map(({ account }) => account),
    ranges: JSON.stringify(ranges),
    total,
    late,
  };
  await deps.table.write({ put: item, when: [['pk', 'absent']] });
  const ready = await putCursors(deps, record, item);
  return { kind: 'started', replay: await loadProgress(deps, region, sink, ready) };
}

/** Returns a replay, or `undefined`. */
export async function readReplay(
  deps: Pick<ReplayDeps, 'table'>,
  region: string,
  sink: string,
  id: string,
): Promise<Replay | undefined> {
  const item = await deps.table.get(keys.replay(region, sink, id));
  return item && loadProgress(deps, region, sink, item);
}

/**
 * Returns the replays to a sink, newest first: the running ones and the last completed ones. With a page, the
 * visible ones.
 */
export async function listReplays(
  deps: Pick<ReplayDeps, 'table'>,
  region: string,
  sink: string,
  page: {
    readonly limit?: number;
    /** Only replays that follow this one. */
    readonly after?: Pick<Replay, 'startedAt' | 'id'> | undefined;
    readonly shows?: (accounts: readonly string[]) => boolean;
  } = {},
): Promise<Replay[]> {
  const { limit, after, shows = () => true } = page;
  const items = await deps.table.query({ pk: replayPk(region, sink) });
  const place = ({ createdAt, sk }: Item) => ({ startedAt: Number(createdAt), id: sk });
  const shown = items
    .filter((item) => shows(item.accounts as readonly string[]))
    .sort((a, b) => newestFirst(place(a), place(b)))
    .filter((item) => after === undefined || newestFirst(after, place(item)) < 0)
    .slice(0, limit);
  return pLimit(CALLS_AT_ONCE).map(shown, (item) => loadProgress(deps, region, sink, item));
}

function newestFirst(a: Pick<Replay, 'startedAt' | 'id'>, b: Pick<Replay, 'startedAt' | 'id'>): number {
  return b.startedAt - a.startedAt || (a.id < b.id ? -1 : a.id > b.id ? 1 : 0);
}

/** Cancels a replay: requests in progress arrive, nothing else of it is sent. Its progress stays readable. */
export async function cancelReplay(
  deps: Pick<ReplayDeps, 'table' | 'now'>,
  region: string,
  sink: string,
  id: string,
): Promise<{ readonly kind: 'cancelled'; readonly replay: Replay } | Rejection> {
  const key = keys.replay(region, sink, id);
  const item = await deps.table.get(key);
  if (!item) return notFound(`replay "${id}" to "${sink}"`);
  const now = await loadProgress(deps, region, sink, item);
  if (now.state === 'done') return { kind: 'conflict', reason: `The replay "${id}" is already done.` };
  if (now.state !== 'cancelled') {
    const { done, delivered, failed, skipped } = now;
    const set = { cancelledAt: deps.now(), done, delivered, failed, skipped };
    await deps.table.write({
      update: key,
      set,
      when: [
        ['cancelledAt', 'absent'],
        ['createdAt', 'present'],
      ],
    });
  }
  await deleteItems(deps.table, cursorKeys(region, sink, item));
  const left = (await deps.table.get(key)) ?? item;
  return { kind: 'cancelled', replay: await loadProgress(deps, region, sink, left) };
}

/**
 * Resends one event of the log at once, as a replay of one event: with its original id, whatever the sink's
 * types are, even to a paused or disabled sink. Cursors and health do not change. A dead event that is delivered is no
 * longer dead. If an epoch is given, it must be the event's.
 */
export async function resendEvent(
  deps: ReplayDeps,
  region: string,
  sink: string,
  account: string,
  sequence: number,
  epoch?: string,
): Promise<({ readonly kind: 'attempted' } & AttemptReport) | Rejection> {
  const item = await deps.table.get(keys.sink(region, sink));
  if (!item) return sinkNotFound(sink);
  const record = toSink(item);
  if (!follows(record, account)) {
    return rejected(`account must be one whose events "${sink}" receives; "${account}" is not one of them.`);
  }
  if (!Number.isSafeInteger(sequence) || sequence < 1) {
    return rejected('sequence must be a positive integer.');
  }
  const page = await deps.log.read({ region, account }, sequence - 1, 1);
  if (!page) return notFound(`account "${account}" in region ${region}`);
  const event = page.kind === 'events' ? page.events[0] : undefined;
  if (!event) {
    const { epoch, sequence: head } = page.head;
    const earliest = await deps.log.earliest({ region, account }, page.head);
    const [first, last] = [earliest, head].map((place) => formatCursor(epoch, place));
    const reason =
      earliest > head
        ? `The log of "${account}" has no events.`
        : `sequence must be from ${first} to ${last} in the log of "${account}".`;
    return { kind: 'unknown', reason };
  }
  if (epoch !== undefined && event.id !== `${account}.${epoch}.${sequence}`) {
    return {
      kind: 'unknown',
      reason: `epoch must be that of the event: the event of "${account}" with this sequence number is ${event.id}.`,
    };
  }
  const report = await attemptNow(deps, record, event, 'resend');
  if (report.outcome === 'delivered') {
    await deps.table.write({ delete: keys.dead(region, sink, account, sequence) });
  }
  return { kind: 'attempted', ...report };
}

const parseRanges = (item: Item): readonly Range[] => JSON.parse(String(item.ranges)) as Range[];

/** Writes the missing cursors of a replay, then marks it as ready. Safe to repeat. */
async function putCursors(deps: ReplayDeps, record: SinkRecord, item: Item): Promise<Item> {
  const { region, id: sink } = record;
  if (item.ready === true) return item;
  const replay = item.sk;
  await pLimit(CALLS_AT_ONCE).map(parseRanges(item), async ({ account, position, end }) => {
    // The account was removed from the sink since.
    if (!follows(record, account)) return;
    const key = keys.replayCursor(region, sink, account, replay);
    const due = drainDue(region, sink, key.sk, deps.now());
    await deps.table.write({
      put: { ...key, sink, replay, account, position, end, ...due },
      when: [['pk', 'absent']],
    });
  });
  const ready = await deps.table.write({
    update: keys.replay(region, sink, replay),
    set: { ready: true },
    when: [['createdAt', 'present']],
  });
  return ready.item ?? item;
}

/** Returns the keys of the cursors of a replay. */
const cursorKeys = (region: string, sink: string, { accounts, sk }: Item): Key[] =>
  (accounts as readonly string[]).map((account) => keys.replayCursor(region, sink, account, sk));

/**
 * Completes interrupted starts, and deletes replays that completed long ago. Returns the number of replays
 * that are not completed.
 */
async function completeStarts(deps: ReplayDeps, record: SinkRecord): Promise<number> {
  const { region, id: sink } = record;
  const items = await deps.table.query({ pk: replayPk(region, sink) });
  const states = await pLimit(CALLS_AT_ONCE).map(items, (item) => loadProgress(deps, region, sink, item));
  const over: Item[] = [];
  let running = 0;
  for (const [at, item] of items.entries()) {
    const state = states[at]?.state;
    if (state === 'starting') await putCursors(deps, record, item);
    if (state === 'starting' || state === 'running') running += 1;
    else over.push(item);
  }
  const long = over.sort((a, b) => Number(b.createdAt) - Number(a.createdAt)).slice(KEPT_REPLAYS);
  for (const item of long) {
    await deleteItems(deps.table, cursorKeys(region, sink, item));
    await deps.table.write({ delete: { pk: item.pk, sk: item.sk } });
  }
  return running;
}

async function loadProgress(
  { table }: Pick<ReplayDeps, 'table'>,
  region: string,
  sink: string,
  item: Item,
): Promise<Replay> {
  const cancelled = item.cancelledAt !== undefined;
  // The cursors of a cancelled replay are, or will be, deleted; its item retains the progress.
  const cursors = cancelled ? [] : await table.getMany(cursorKeys(region, sink, item));
  return toReplay(item, cursors);
}

/** Converts stored data to a replay. Pure. */
function toReplay(item: Item, cursors: readonly Item[]): Replay {
  const ranges = parseRanges(item);
  const cancelled = item.cancelledAt !== undefined;
  const byAccount = new Map(cursors.map((cursor) => [String(cursor.account), cursor]));
  const sum = (name: string): number =>
    cancelled
      ? Number(item[name] ?? 0)
      : cursors.reduce((total, cursor) => total + Number(cursor[name] ?? 0), 0);
  // A missing cursor belonged to an account that was removed from the sink.
  const over = item.ready === true && cursors.every(({ doneAt }) => doneAt !== undefined);
  const total = Number(item.total);
  const counts = { delivered: sum('delivered'), failed: sum('failed'), skipped: sum('skipped') };
  const { dead } = toDeadSelection(item);
  const done = ranges.reduce((total, { account, position }) => {
    const cursor = byAccount.get(account);
    return total + (cursor ? Number(cursor.position) - position : 0);
  }, 0);
  // The positions of dead events have gaps between them. Some events may have been resent since the start.
  const doneDead = over ? total : Math.min(total, counts.delivered + counts.failed + counts.skipped);
  const lastDone = cursors.reduce((last, { doneAt }) => Math.max(last, Number(doneAt ?? 0)), 0);
  const state = cancelled ? 'cancelled' : over ? 'done' : item.ready === true ? 'running' : 'starting';
  return {
    id: item.sk,
    state,
    accounts: item.accounts as readonly string[],
    filter: JSON.parse(String(item.filter)) as EventFilter,
    dead: dead ? toFilterView(dead.filter) : null,
    total,
    done: cancelled ? Number(item.done ?? 0) : dead ? doneDead : done,
    ...counts,
    truncatedAccounts: item.late as readonly string[],
    startedAt: Number(item.createdAt),
    finishedAt: cancelled ? Number(item.cancelledAt) : over ? lastDone : null,
  };
}

/** Converts the filter of a replay of dead events as the API names its fields. */
function toFilterView(filter: RejectedEventFilter): NonNullable<Replay['dead']> {
  const { from, to, accounts = [], types = [], jobNumbers = [], statuses = [] } = filter;
  return { accounts, types, jobNumbers, statuses, from: from ?? null, to: to ?? null };
}

const sinkNotFound = (sink: string): Rejection => notFound(`sink "${sink}"`);
const tooManyReplays = (sink: string): Rejection => ({
  kind: 'conflict',
  reason: `"${sink}" has ${MAX_RUNNING_REPLAYS} running replays, which is the maximum. Wait for one to complete, or cancel one.`,
});
