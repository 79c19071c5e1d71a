/** First stage of a poll: reads the state of the account. */
import { type Account, type Status, toAccount, toStatus } from '../../accounts/accounts.ts';
import { withEventDefaults } from '../../accounts/event-settings.ts';
import { type Head, toHead } from '../../log/head.ts';
import { type Holds, REQUEST_KINDS } from '../../ordering/client.ts';
import { type AccountRef, indexPk, keys } from '../../storage/schema.ts';
import type { Item, Value } from '../../storage/table.ts';
import { type BreakerState, readUpstreamHealth } from '../breaker.ts';
import type { EventRules } from '../diff/step.ts';
import { createEventRules } from '../event-rules.ts';
import { PollGroups } from '../groups.ts';
import { JobIndex } from '../job-index.ts';
import { MAX_CONTRADICTIONS } from '../job-numbers.ts';
import { OpenKinds } from '../open-jobs.ts';
import type { Payments } from '../payments.ts';
import type { Poll, PollDeps } from '../poll-context.ts';
import { PollWriter } from '../poll-writer.ts';
import { findSetBack, withoutTimes } from '../set-back.ts';
import { KEPT_DAYS } from '../snapshot.ts';
import { StatusNames } from '../status-names.ts';
import { PROJECTION_VERSION } from '../views.ts';

/** Times of a poll (epoch ms). */
interface Times {
  readonly startedAt: number;
  /** Time at which the process may be stopped. */
  readonly deadline: number;
  /** Time since which a queued poll is due. */
  readonly dueAt: number | undefined;
}

interface Stored {
  readonly account: Account;
  readonly status: Status;
  readonly statusItem: Item;
  readonly upstream: BreakerState;
  readonly head: Head;
  /** Items of the index: shards, pending groups and payments. */
  readonly items: readonly Item[];
}

/** Reads Account, Status, upstream state, Head and index. Returns a message if the account is not to be polled. */
export async function loadPoll(deps: PollDeps, ref: AccountRef, times: Times): Promise<Poll | string> {
  const [found, statusItem, upstream] = await Promise.all([
    deps.table.get(keys.account(ref)),
    deps.table.get(keys.status(ref)),
    readUpstreamHealth(deps.table, ref.region),
  ]);
  // A pause or new credentials arrived between the two reads. With this fence, the poll would undo them.
  const isOlder = Number(statusItem?.recordRevision ?? 0) > Number(found?.revision ?? 0);
  const accountItem = isOlder ? await deps.table.get(keys.account(ref)) : found;
  if (!accountItem || !statusItem) return 'The account is not registered.';
  const account = toAccount(accountItem);
  const status = toStatus(statusItem);
  if (account.paused) return 'The account is paused.';
  if (status.state === 'identity_mismatch')
    return 'Polling of the account is stopped until an operator confirms its identity.';
  const { startedAt, dueAt } = times;
  if (dueAt !== undefined && (status.nextPollAt ?? 0) > Math.max(dueAt, startedAt)) {
    return 'The account was already polled after this poll became due.';
  }
  // Read after the fence: a write of another poll between the two reads raises the revision, and this poll is
  // fenced.
  const [headItem, ...items] = await deps.table.query({ pk: indexPk(ref) });
  if (headItem?.sk !== 'HEAD') return 'The account has no log.';
  const head = toHead(headItem);
  if (Number(head.attributes.projectionVersion ?? 0) > (deps.projectionVersion ?? PROJECTION_VERSION)) {
    return 'The jobs of the account were stored by a later version of Jobwire.';
  }
  return createPoll(deps, times, { account, status, statusItem, upstream, head, items });
}

function createPoll(deps: PollDeps, { startedAt, deadline }: Times, stored: Stored): Poll {
  const { account, statusItem, upstream, head, items } = stored;
  const setBackFrom = findSetBack(stored.status, startedAt);
  const status = setBackFrom === undefined ? stored.status : withoutTimes(stored.status);
  const { table, log, settings, projectionVersion = PROJECTION_VERSION } = deps;
  const { lastGoodCrawlStartedAt } = status;
  const ref = { region: account.region, account: account.account };
  const baselineStartedAt = numberOrNull(head.attributes.baselineStartedAt);
  const newAbove = findNewAbove(head, status, startedAt);
  const statuses = new StatusNames(head.attributes, startedAt);
  const rules = createEventRules(withEventDefaults(account.events), statuses);
  const known = { startedAt, lastGoodCrawlStartedAt, setBackFrom, baselineStartedAt, newAbove, rules };
  const { pollIntervalSeconds } = account;
  return {
    ...{ deps, account, status, statusItem, deadline },
    baselined: baselineStartedAt !== null,
    tracked: {
      ...{ ref, table, settings, known },
      index: decodeIndex(items, projectionVersion, rules),
      statuses,
      kinds: new OpenKinds(),
    },
    context: { startedAt, pollIntervalSeconds, settings, projectionVersion, known, rules },
    groups: new PollGroups(
      ref,
      items
        .filter(({ sk }) => sk.startsWith('PENDING#'))
        .map((mark) => (setBackFrom === undefined ? mark : { ...mark, at: startedAt })),
    ),
    payments: readStoredPayments(items),
    writer: new PollWriter({
      ...{ table, log, ref, projectionVersion, head },
      revision: status.revision,
      pollId: deps.newId(),
    }),
    progress: { upstream, pages: 0, holds: readHolds(status), accountEvents: [] },
  };
}

/** Returns the number above which jobs are new, or `null` if numbers prove nothing: see job-numbers.ts. */
function findNewAbove(
  { attributes }: Head,
  { sweptThrough, sweptHighest }: Status,
  startedAt: number,
): number | null {
  const { baselineNumber, baselineStartedAt, numberContradictions } = attributes;
  if (typeof baselineNumber !== 'number') return null;
  if (Number(numberContradictions ?? 0) >= MAX_CONTRADICTIONS) return null;
  // A job with a higher number may have been tracked and forgotten.
  const forgotten = startedAt - Number(baselineStartedAt) > KEPT_DAYS * 86_400_000;
  return forgotten ? Math.max(baselineNumber, sweptThrough, sweptHighest) : baselineNumber;
}

/** Returns the kinds of requests that an earlier Retry-After holds back. */
function readHolds({ holds }: Status): Holds {
  return new Map(
    REQUEST_KINDS.flatMap((kind) => {
      const stored = holds.find((hold) => hold.startsWith(`${kind}:`));
      return stored ? [[kind, Number(stored.slice(kind.length + 1))] as const] : [];
    }),
  );
}

function readStoredPayments(items: readonly Item[]): Payments | undefined {
  const item = items.find(({ sk }) => sk === 'PAYMENTS');
  return item && (JSON.parse(String(item.state)) as Payments);
}

/** Decodes the index. After a change of the settings with a time, the next check of every job must be computed again. */
function decodeIndex(
  items: readonly Item[],
  projectionVersion: number,
  { timers: current }: EventRules,
): JobIndex {
  const shards = items.filter(({ sk }) => sk.startsWith('SHARD#'));
  return JobIndex.decode(
    shards.map(({ sk, packed, projection, timers = '' }) => ({
      lowest: Number(sk.slice('SHARD#'.length)),
      packed: packed as Uint8Array,
      stale: projection !== projectionVersion || timers !== current,
    })),
  );
}

function numberOrNull(value: Value | undefined): number | null {
  return typeof value === 'number' ? value : null;
}
