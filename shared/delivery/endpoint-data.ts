/** The data of an endpoint besides its record: its cursors, what remains of a deleted one, the logs it follows. */
import pLimit from 'p-limit';
import { listAccounts } from '../accounts/accounts.ts';
import { type Rejection, rejected } from '../resources.ts';
import {
  ALL_ACCOUNTS,
  attentionHistoryPk,
  CELL_LOG,
  cellLog,
  cursorPk,
  deadPk,
  drainDue,
  getDrainName,
  getDrainNames,
  isPart,
  keys,
  parkedPk,
  replayPk,
} from '../storage/schema.ts';
import { deleteItems, type Table } from '../storage/table.ts';
import type { EndpointDeps } from './endpoint-edits.ts';
import { findPositions, type StartPosition, type StartPositions } from './positions.ts';
import { follows, markCursorDue, type SinkRecord } from './sink.ts';

/**
 * Maximum number of a region's accounts for which an endpoint that follows all gets cursors. Other accounts
 * begin with their first event.
 */
const MAX_ACCOUNTS = 10_000;
const WRITES_AT_ONCE = 16;

/**
 * Returns the logs that a sink follows now: the accounts, and the cell's own log for one that follows
 * everything.
 */
export async function listFollowedLogs(
  deps: Pick<EndpointDeps, 'table' | 'log'>,
  sink: SinkRecord,
): Promise<readonly string[]> {
  if (sink.accounts.length > 0) return sink.accounts;
  const accounts = await listAccounts(deps.table, sink.region, MAX_ACCOUNTS);
  const cell = await deps.log.head(cellLog(sink.region));
  return [...accounts.map(({ account }) => account), ...(cell ? [CELL_LOG] : [])];
}

/** Returns the start positions of accounts. Accounts without one start now. */
export async function findStartPositions(
  deps: EndpointDeps,
  region: string,
  accounts: readonly string[],
  start: StartPosition,
): Promise<Extract<StartPositions, { kind: 'placed' }> | Rejection> {
  const place = await findPositions(deps.log, region, accounts, start, deps.now());
  if (place.kind === 'rejected') return rejected(`start ${place.reason}.`);
  const others = accounts.filter((account) => !place.positions.has(account));
  const now = await findPositions(deps.log, region, others, 'now', deps.now());
  const more = now.kind === 'placed' ? now.positions : [];
  return { ...place, positions: new Map([...place.positions, ...more]) };
}

/**
 * Writes the cursors of a sink, and overwrites remains of an earlier one. They are due at once, because
 * events may arrive before the sink exists to be woken. Drains of a token below the fence cannot move them.
 */
export async function putCursors(
  deps: EndpointDeps,
  { region, id }: SinkRecord,
  positions: ReadonlyMap<string, number>,
  fence: number,
): Promise<void> {
  await pLimit(WRITES_AT_ONCE).map([...positions], ([account, position]) => {
    const due = drainDue(region, id, account, deps.now());
    return deps.table.write({
      put: { ...keys.cursor(region, id, account), sink: id, position, fence, ...due },
    });
  });
}

/** Partitions of all data of a sink besides its record. Its history expires by TTL. */
const dataPartitions = (region: string, id: string): readonly string[] => [
  cursorPk(region, id),
  parkedPk(region, id),
  deadPk(region, id),
  replayPk(region, id),
];

/** Marks cursors due whose due work a drain has ended that began before the sink followed the accounts. */
export async function keepCursorsDue(
  deps: EndpointDeps,
  record: SinkRecord,
  accounts: Iterable<string>,
): Promise<void> {
  await pLimit(WRITES_AT_ONCE).map([...accounts], (account) =>
    markCursorDue(deps.table, record, account, deps.now()),
  );
}

/**
 * Deletes the remains of a deleted endpoint, and what users did about its item of the attention queue. Returns the
 * number of remaining items, and the highest fence among its cursors.
 */
export async function removeRemains(
  { table }: EndpointDeps,
  region: string,
  id: string,
): Promise<{ readonly count: number; readonly fence: number }> {
  const parts = await Promise.all(dataPartitions(region, id).map((pk) => table.query({ pk })));
  const items = parts.flat();
  // Before the cursors, which name the account: earlier versions stored the item of an endpoint of one account under it.
  const accounts = new Set(parts[0]?.map(({ sk }) => toAccount(sk)));
  for (const account of ['', ...(accounts.size === 1 ? accounts : [])]) {
    const item = `${account}~endpoint~${id}`;
    const pk = attentionHistoryPk(region);
    const history = await table.query({ pk, from: `${item}#`, to: `${item}#~` });
    await deleteItems(table, [keys.attention(region, item), ...history]);
  }
  await deleteItems(table, items);
  await removeFollowers(table, region, id, [ALL_ACCOUNTS, ...items.map(({ sk }) => toAccount(sk))]);
  return { count: items.length, fence: Math.max(0, ...items.map(({ fence }) => Number(fence ?? 0))) };
}

/** Deletes all data of an endpoint without a record. False if there was none. */
export async function removeAllData(deps: EndpointDeps, region: string, id: string): Promise<boolean> {
  const remains = await removeRemains(deps, region, id);
  // Unreadable secrets exist as well.
  const secrets = await deps.secrets.load(region, id).catch(() => true);
  if (secrets) await deps.secrets.remove(region, id);
  return remains.count > 0 || Boolean(secrets);
}

/** Deletes the cursors, including those of replays, and the parked and dead events of accounts that a sink does not follow. */
export async function removeUnfollowed({ table }: EndpointDeps, record: SinkRecord): Promise<void> {
  const { region, id } = record;
  const partitions = [cursorPk, parkedPk, deadPk].map((pk) => table.query({ pk: pk(region, id) }));
  const items = (await Promise.all(partitions)).flat();
  const unfollowed = items.filter(({ sk }) => !follows(record, toAccount(sk)));
  await deleteItems(table, unfollowed);
  const others = record.accounts.length > 0 ? [ALL_ACCOUNTS] : [];
  await removeFollowers(table, region, id, [...others, ...unfollowed.map(({ sk }) => toAccount(sk))]);
}

/**
 * Requests a drain of a sink from which undelivered events were removed, or of each part of a divided sink. If nothing is left to deliver,
 * the drain finds that the sink is no longer failing. `account`: one that the sink follows. Default: one of each part.
 */
export async function requestDrain(
  { table, now }: Pick<EndpointDeps, 'table' | 'now'>,
  { region, id }: Pick<SinkRecord, 'region' | 'id'>,
  account?: string,
): Promise<void> {
  const limit = getDrainNames(id).some(isPart) ? {} : { limit: 1 };
  const followed =
    account === undefined
      ? (await table.query({ pk: cursorPk(region, id), ...limit })).map(({ sk }) => sk)
      : [account];
  const byPart = new Map(followed.map((one) => [getDrainName(id, one), one]));
  for (const one of byPart.values()) await markCursorDue(table, { region, id }, one, now());
}

/** Removes index entries of accounts that a sink no longer follows. Any that remain have no effect. */
export async function removeFollowers(
  table: Table,
  region: string,
  id: string,
  accounts: readonly string[],
): Promise<void> {
  await deleteItems(
    table,
    [...new Set(accounts)].map((account) => keys.follower({ region, account }, id)),
  );
}

/** Returns the account of a sort key of a sink's data. */
const toAccount = (sk: string): string => sk.split('#')[0] ?? '';
