/**
 * Deletes an account with all its data.
 * - begin: removes Account, Status and Head and writes the deletion note, in one transaction.
 * - work off: removes references in endpoints and alert rules, token, wake mark, statistics, notification
 *   settings, and cursors. Then recipients and their data, index, snapshots, groups, log, parked and
 *   dead-lettered events, sent messages, and credentials. Entries of the search index go before their recipients and jobs.
 *   References in API keys go last: a key for the account only can repeat the request until all data is removed.
 * - free: after the last write that could have started before the data was empty, removes everything once
 *   more, then the note.
 *
 * Once the deletion began, the account does not exist. A poll in progress finds neither its fence nor its
 * head. It writes nothing more except a token that it had requested. Writes of a drain or a wake-up are not
 * fenced by the account either: cursors and parked events can reappear while those that started before
 * still run. Therefore the id is not free at once, and all data is checked a second time.
 *
 * The work is bounded by a deadline and can be interrupted at any point. The note records that work
 * remains, and the next run starts from the beginning. Deliveries in the history expire on their own.
 */
import { getRevision, lockConflict, type Rejection, revisionUnchanged } from '../resources.ts';
import {
  type AccountRef,
  attentionHistoryPk,
  attentionPk,
  cursorPk,
  deadPk,
  deletionPk,
  FEED_LOG,
  groupPk,
  indexPk,
  keys,
  logPk,
  markedJobPk,
  messagePk,
  parkedPk,
  ROLLUP_DAYS,
  recipientPk,
  recipientPlacePk,
  sentPk,
  sinkPk,
  snapshotPk,
  suppressionPk,
  templatePk,
  threadPk,
} from '../storage/schema.ts';
import { deleteItems, type Item, type Key, type Query, type Table } from '../storage/table.ts';
import type { AccountSecrets } from './credentials.ts';

/** Dependencies of deletions. */
export interface DeletionDeps {
  readonly table: Table;
  /** The history, which contains the sent messages. */
  readonly history: Table;
  readonly secrets: Pick<AccountSecrets, 'remove'>;
  /**
   * Removes the account from the API keys, or from the endpoints and alert rules, that name it. Its id can be
   * reused, and they must not apply to the next account. Keys that were created after the beginning of the deletion, `since`
   * (epoch ms), are for that account, and stay. Returns `false` if some could not be changed now. The deletion then calls it again.
   */
  readonly removeReferences: (
    ref: AccountRef,
    from: 'keys' | 'endpoints and alert rules',
    since: number,
  ) => Promise<boolean>;
  /** Removes the account from the accounts whose events the customer notifications follow. */
  readonly unfollowNotifications: (table: Table, ref: AccountRef) => Promise<void>;
  /** Removes the entries of items of the account from the search index. */
  readonly removeSearchEntries: (table: Table, ref: AccountRef, items: readonly Item[]) => Promise<void>;
  /** Current time in epoch ms. */
  readonly now: () => number;
  readonly newId: () => string;
  /**
   * Time after its start for which a drain or a wake-up may still write (ms). For the same time after all
   * data was removed, the account's id is not free. Default: {@link LATE_WRITES_MS}.
   */
  readonly lateWritesMs?: number;
}

/** Longer than the runtime of any function that writes data of sinks (ms). */
const LATE_WRITES_MS = 360_000;
const DAY_MS = 86_400_000;
/** Time by which a claim on a deletion outlasts the deadline (ms). */
const CLAIM_GRACE_MS = 30_000;
/** Number of items read and deleted at once. */
const PAGE_ITEMS = 100;

/** Progress of a deletion. */
export type Progress =
  /** No data remains, and the id is free. */
  | { readonly kind: 'free' }
  /** No data remains. The id is free from `freeAt` on (epoch ms), after a second check. */
  | { readonly kind: 'empty'; readonly freeAt: number }
  /** Data remains. */
  | { readonly kind: 'more' };

/** Begins a deletion if the account is unchanged since it was read. */
export async function beginDeletion(
  { table, now, newId }: DeletionDeps,
  account: Item,
  ref: AccountRef,
  lockOwner: string,
): Promise<'begun' | 'changed' | Rejection> {
  const { region, account: id } = ref;
  const begun = await table.transact(
    [
      {
        // A later account of this id must have other revisions.
        update: keys.accountLock(ref),
        set: { revision: getRevision(account) },
        when: [['owner', '=', lockOwner]],
      },
      { delete: keys.account(ref), when: [revisionUnchanged(account), ['secretRef', 'present']] },
      { delete: keys.status(ref) },
      { delete: keys.head(ref) },
      {
        put: {
          ...keys.deletion(ref),
          ...{ region, since: now() },
          // Revision at deletion. A repeated delete request may name it again.
          revision: getRevision(account),
        },
        when: [['pk', 'absent']],
      },
    ],
    newId(),
  );
  if (begun.done) return 'begun';
  return begun.failed.includes(0) ? lockConflict(id) : 'changed';
}

/** Returns the note of an incomplete deletion, or `undefined`. */
export function readDeletion(table: Table, ref: AccountRef): Promise<Item | undefined> {
  return table.get(keys.deletion(ref));
}

/**
 * Continues a deletion until the deadline (epoch ms). Harmless if another process does the same, and if
 * there is no deletion.
 */
export async function continueDeletion(
  deps: DeletionDeps,
  ref: AccountRef,
  deadline: number,
): Promise<Progress> {
  const { table, now, newId, lateWritesMs = LATE_WRITES_MS } = deps;
  const key = keys.deletion(ref);
  const owner = newId();
  const claim = { update: key, set: { owner, until: deadline + CLAIM_GRACE_MS } };
  const claimed = await table.write({
    ...claim,
    when: [
      ['since', 'present'],
      ['until', 'absent or <=', now()],
    ],
  });
  const note = claimed.item;
  if (!note) return { kind: 'free' };
  // Before the first time it was empty, data remained with which a drain could start.
  const emptiedBefore = typeof note.emptiedAt === 'number' ? note.emptiedAt : undefined;
  const freeAfter = (emptiedAt: number) => emptiedAt + lateWritesMs;
  if (!claimed.done && note.owner !== owner) {
    const isEmpty = note.emptied === true && emptiedBefore !== undefined;
    return isEmpty ? { kind: 'empty', freeAt: freeAfter(emptiedBefore) } : { kind: 'more' };
  }
  const mine = [['owner', '=', owner]] as const;
  const release = (until: number | undefined, emptied: boolean, emptiedAt = emptiedBefore) =>
    table.write({
      update: key,
      set: { owner: undefined, until, emptied: emptied || undefined, emptiedAt },
      when: mine,
    });
  try {
    const isLate = emptiedBefore !== undefined && now() >= freeAfter(emptiedBefore);
    if (!(await removeAll(deps, ref, Number(note.since), deadline))) {
      await release(undefined, false);
      return { kind: 'more' };
    }
    if (isLate || lateWritesMs === 0) {
      await table.write({ delete: key, when: mine });
      return { kind: 'free' };
    }
    const emptiedAt = emptiedBefore ?? now();
    const freeAt = freeAfter(emptiedAt);
    await release(freeAt, true, emptiedAt);
    return { kind: 'empty', freeAt };
  } catch (cause) {
    await release(undefined, false).catch(() => undefined);
    throw cause;
  }
}

/**
 * Ends the claim of another process on a deletion, and the wait for late writes. Only for a host that starts
 * after every other process on the table has ended: then no process holds the claim or can still write.
 */
export async function breakDeletion(table: Table, ref: AccountRef): Promise<void> {
  await table.write({
    update: keys.deletion(ref),
    set: { owner: undefined, until: undefined },
    when: [['since', 'present']],
  });
}

/**
 * Continues the incomplete deletions of a region. Returns their number. The host calls this periodically.
 * If one of them fails, the others still run, and then the error is thrown.
 */
export async function continueDeletions(
  deps: DeletionDeps,
  region: string,
  deadline: number,
): Promise<number> {
  const notes = await deps.table.query({ pk: deletionPk(region) });
  const ready = notes.filter(({ until }) => typeof until !== 'number' || until <= deps.now());
  let fault: { readonly cause: unknown } | undefined;
  for (const { sk: account } of ready) {
    if (deps.now() >= deadline) break;
    await continueDeletion(deps, { region, account }, deadline).catch((cause: unknown) => {
      fault ??= { cause };
    });
  }
  if (fault) throw fault.cause;
  return ready.length;
}

/**
 * Returns the keys of all statistics stored for an account at a time (epoch ms), including some days ahead
 * (rollups.ts).
 */
export function figureKeys(ref: AccountRef, now: number): Key[] {
  const days = Array.from({ length: ROLLUP_DAYS + 4 }, (_, n) => now + (3 - n) * DAY_MS);
  return [
    keys.openJobs(ref),
    keys.durations(ref),
    ...days.map((day) => keys.rollup(ref, new Date(day).toISOString().slice(0, 10))),
  ];
}

/** Maximum age of the SMS counters of an account (months). */
const SMS_MONTHS = 13;

/** Returns the keys of an account's notification data, except those in {@link peoplePks}. */
export function notificationKeys(ref: AccountRef, now: number): Key[] {
  const date = new Date(now);
  const months = Array.from({ length: SMS_MONTHS + 1 }, (_, n) =>
    new Date(Date.UTC(date.getUTCFullYear(), date.getUTCMonth() + 1 - n)).toISOString().slice(0, 7),
  );
  return [keys.notificationSettings(ref), ...months.map((month) => keys.smsUse(ref, month))];
}

/** Returns the partitions of an account's recipients and notification content, except sent messages. */
export const peoplePks = (ref: AccountRef): string[] =>
  [recipientPlacePk, recipientPk, templatePk, suppressionPk, threadPk, messagePk].map((of) => of(ref));

/** Removes all data. Returns `false` if the deadline came first. */
async function removeAll(
  deps: DeletionDeps,
  ref: AccountRef,
  since: number,
  deadline: number,
): Promise<boolean> {
  const { table, history, secrets, now, unfollowNotifications, removeSearchEntries } = deps;
  const { region, account } = ref;
  if (!(await deps.removeReferences(ref, 'endpoints and alert rules', since))) return false;
  const remove = (gone: readonly Key[], from = table) => deleteItems(from, gone);

  await remove([keys.token(ref), keys.wake(ref)]);
  await remove(await table.getMany([...figureKeys(ref, now()), ...notificationKeys(ref, now())]));
  await unfollowNotifications(table, ref);
  const sinks = await table.query({ pk: sinkPk(region) });
  await remove([FEED_LOG, ...sinks.map(({ sk }) => sk)].map((id) => keys.cursor(region, id, account)));
  // All keys of an account start with its id and a #, which no id contains.
  const accountRange = { from: `${account}#`, to: `${account}#~` };
  const parts: Query[] = [
    ...[...peoplePks(ref), indexPk(ref), snapshotPk(ref), groupPk(ref), logPk(ref)].map((pk) => ({ pk })),
    ...sinks.flatMap(({ sk: id }) =>
      [cursorPk(region, id), parkedPk(region, id), deadPk(region, id)].map((pk) => ({ pk, ...accountRange })),
    ),
  ];
  parts.push({ pk: markedJobPk(region), ...accountRange });
  // The ids of an account's items in the attention queue start with its id and a ~.
  const itemRange = { from: `${account}~`, to: `${account}~~` };
  parts.push(...[attentionPk(region), attentionHistoryPk(region)].map((pk) => ({ pk, ...itemRange })));
  for (const part of parts) {
    for (;;) {
      if (now() >= deadline) return false;
      const items = await table.query({ ...part, limit: PAGE_ITEMS });
      await removeSearchEntries(table, ref, items);
      await remove(items);
      if (items.length < PAGE_ITEMS) break;
    }
  }
  // A new account with the same id must not show them. What refers to them has no content, and expires.
  for (;;) {
    if (now() >= deadline) return false;
    const sent = await history.query({ pk: sentPk(ref), limit: PAGE_ITEMS });
    await remove(sent, history);
    if (sent.length < PAGE_ITEMS) break;
  }
  // Also credentials that are no longer used, if the process ended before it removed them.
  await secrets.remove(region, account);
  return deps.removeReferences(ref, 'keys', since);
}
