/**
 * The end of an account: everything that is kept of it goes.
 *
 *   begin     Account, Status and Head gone, deletion noted ── in one transaction
 *   work off  keys and endpoints that name it ── token ── wake mark ── figures ── who is told what ── index ── snapshots ── groups ── log ── cursors, set aside
 *             and dead ── credentials
 *   free      when nothing can write any more that began before it was empty: once more, then the note goes
 *
 * From the beginning on there is no such account. A poll under way finds neither its fence nor its head, so it writes nothing
 * more but a token that it had asked for. Nor is what a drain or a wake-up writes fenced by the account: cursors and events
 * that are set aside can come back while those last that had begun before. That is why the id is not free at once, and why all is
 * looked through a second time.
 *
 * It is bounded by a deadline and can be cut off anywhere: the note says that there is something left, and who goes on begins
 * at the front. Deliveries, in the history, leave by themselves.
 */
import pLimit from 'p-limit';
import { beingWorkedOn, type Refusal, revisionOf, revisionStill } from '../managed.ts';
import { unfollowAccount } from '../notifications/settings.ts';
import { listSinks } from '../sinks/sink.ts';
import {
  type AccountRef,
  cursorPk,
  deadPk,
  deletionPk,
  FEED_LOG,
  groupPk,
  indexPk,
  keys,
  logPk,
  messagePk,
  parkedPk,
  recipientPk,
  recipientPlacePk,
  snapshotPk,
  suppressionPk,
  templatePk,
  threadPk,
} from '../table/schema.ts';
import type { Item, Key, Query, Table } from '../table/table.ts';
import type { AccountSecrets } from './credentials.ts';
import { ROLLUP_DAYS } from './snapshot.ts';

/** What deletions need. */
export interface DeletionDeps {
  readonly table: Table;
  readonly secrets: Pick<AccountSecrets, 'remove'>;
  /**
   * Removes the account from the API keys and endpoints that name it: its id can be used again, and they are not the next
   * account's. False when some could not be changed now; the deletion calls it again.
   */
  readonly removeReferences: (ref: AccountRef) => Promise<boolean>;
  /** Epoch ms. */
  readonly now: () => number;
  readonly newId: () => string;
  /**
   * How long after its beginning a drain or a wake-up may still write, and so how long the id of an account is not free from
   * when nothing was left of it. Absent: {@link LATE_WRITES_MS}.
   */
  readonly lateWritesMs?: number;
}

/** Longer than any function runs that writes of sinks. */
const LATE_WRITES_MS = 360_000;
const DAY_MS = 86_400_000;
/** Whoever works on a deletion has it this much longer than until the deadline. */
const CLAIM_GRACE_MS = 30_000;
/** Items read and deleted at once. */
const PAGE_ITEMS = 100;
const WRITES_AT_ONCE = 32;

/** How far a deletion has come. */
export type Progress =
  /** Nothing is left, and the id is free. */
  | { readonly kind: 'free' }
  /** Nothing is left; the id is free from then on (epoch ms), once somebody looked again. */
  | { readonly kind: 'empty'; readonly freeAt: number }
  /** There is more to do. */
  | { readonly kind: 'more' };

/** Begins a deletion, while the account stands as it was read. */
export async function beginDeletion(
  { table, now, newId }: DeletionDeps,
  account: Item,
  ref: AccountRef,
  lockOwner: string,
): Promise<'begun' | 'changed' | Refusal> {
  const { region, account: id } = ref;
  const begun = await table.transact(
    [
      { check: keys.accountLock(ref), when: [['owner', '=', lockOwner]] },
      { delete: keys.account(ref), when: [revisionStill(account), ['secretRef', 'present']] },
      { delete: keys.status(ref) },
      { delete: keys.head(ref) },
      {
        put: {
          ...keys.deletion(ref),
          ...{ region, since: now() },
          // What the account was deleted as: whoever asks for the rest may name it again.
          revision: revisionOf(account),
          // Only what was given to Jobwire is its to delete.
          keepsCredentials: account.keepsCredentials === true,
        },
        when: [['pk', 'absent']],
      },
    ],
    newId(),
  );
  if (begun.done) return 'begun';
  return begun.failed.includes(0) ? beingWorkedOn(id) : 'changed';
}

/** Whether there is something left to do of a deletion: its note, as it stands. */
export function readDeletion(table: Table, ref: AccountRef): Promise<Item | undefined> {
  return table.get(keys.deletion(ref));
}

/** Goes on with a deletion until the deadline (epoch ms). Harmless when somebody else does, and when there is none. */
export async function workOffDeletion(
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
  // Until it was empty once there was something left of it that a drain could begin with.
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
    if (!(await removeAll(deps, ref, note, deadline))) {
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

/** Ends the work of whoever had a deletion, and the wait for what was under way: where all that ended with its process. */
export async function breakDeletion(table: Table, ref: AccountRef): Promise<void> {
  await table.write({
    update: keys.deletion(ref),
    set: { owner: undefined, until: undefined },
    when: [['since', 'present']],
  });
}

/**
 * Goes on with the deletions of a region that have something left to do: how many there were. For a host to call now and then.
 * Throws when one of them could not be gone on with, after the others.
 */
export async function workOffDeletions(
  deps: DeletionDeps,
  region: string,
  deadline: number,
): Promise<number> {
  const notes = await deps.table.query({ pk: deletionPk(region) });
  const ready = notes.filter(({ until }) => typeof until !== 'number' || until <= deps.now());
  let fault: { readonly cause: unknown } | undefined;
  for (const { sk: account } of ready) {
    if (deps.now() >= deadline) break;
    await workOffDeletion(deps, { region, account }, deadline).catch((cause: unknown) => {
      fault ??= { cause };
    });
  }
  if (fault) throw fault.cause;
  return ready.length;
}

/** The keys of all figures that are kept of an account at an instant (epoch ms), to those of some days ahead (rollups.ts). */
export function figureKeys(ref: AccountRef, now: number): Key[] {
  const days = Array.from({ length: ROLLUP_DAYS + 4 }, (_, n) => now + (3 - n) * DAY_MS);
  return [
    keys.openJobs(ref),
    ...days.map((day) => keys.rollup(ref, new Date(day).toISOString().slice(0, 10))),
  ];
}

/** Months back that SMS of an account are counted for at most. */
const SMS_MONTHS = 13;

/** The keys of what is kept of how an account notifies, besides its {@link peoplePks}. */
export function notificationKeys(ref: AccountRef, now: number): Key[] {
  const date = new Date(now);
  const months = Array.from({ length: SMS_MONTHS + 1 }, (_, n) =>
    new Date(Date.UTC(date.getUTCFullYear(), date.getUTCMonth() + 1 - n)).toISOString().slice(0, 7),
  );
  return [keys.notificationSettings(ref), ...months.map((month) => keys.smsUse(ref, month))];
}

/** The partitions of whom an account tells what. What was sent stands in the history, and leaves by itself. */
export const peoplePks = (ref: AccountRef): string[] =>
  [recipientPlacePk, recipientPk, templatePk, suppressionPk, threadPk, messagePk].map((of) => of(ref));

/** Takes away everything that is there. False when the deadline came before. */
async function removeAll(
  { table, secrets, now, removeReferences }: DeletionDeps,
  ref: AccountRef,
  note: Item,
  deadline: number,
): Promise<boolean> {
  const { region, account } = ref;
  if (!(await removeReferences(ref))) return false;
  const limit = pLimit(WRITES_AT_ONCE);
  const remove = (gone: readonly Key[]) =>
    limit.map(gone, ({ pk, sk }) => table.write({ delete: { pk, sk } }));

  await remove([keys.token(ref), keys.wake(ref)]);
  await remove(await table.getMany([...figureKeys(ref, now()), ...notificationKeys(ref, now())]));
  await unfollowAccount(table, ref);
  const sinks = await listSinks(table, region);
  await remove([FEED_LOG, ...sinks.map(({ id }) => id)].map((id) => keys.cursor(region, id, account)));
  // Everything of an account begins with its id and a #, which is in no id.
  const ofAccount = { from: `${account}#`, to: `${account}#~` };
  const parts: Query[] = [
    ...[...peoplePks(ref), indexPk(ref), snapshotPk(ref), groupPk(ref), logPk(ref)].map((pk) => ({ pk })),
    ...sinks.flatMap(({ id }) =>
      [cursorPk(region, id), parkedPk(region, id), deadPk(region, id)].map((pk) => ({ pk, ...ofAccount })),
    ),
  ];
  for (const part of parts) {
    for (;;) {
      if (now() >= deadline) return false;
      const items = await table.query({ ...part, limit: PAGE_ITEMS });
      await remove(items);
      if (items.length < PAGE_ITEMS) break;
    }
  }
  if (note.keepsCredentials === true) await secrets.remove(region, account);
  return true;
}
