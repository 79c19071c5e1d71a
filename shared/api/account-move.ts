/**
 * Moving an account to another cell of its region. The caller passes the pages; a repeated step has no further effect.
 *
 *   former cell                                        new cell
 *   begin: paused, log closed ── wait until the
 *   customer notifications have read the log,
 *   and no message is being sent ── pages ───────────▶ account without polls ── last page: new epoch, polls start
 *
 * Only one cell polls: the former one cannot resume from the first step on, and the new one starts after the last page. Due notices and
 * messages leave the index of the former cell before they are in a page, and enter that of the new one after the last page. So only one
 * cell sends them, and it has all earlier messages, on which the decision to send depends.
 */
import pLimit from 'p-limit';
import type { AccountRecord } from '../accounts/account-views.ts';
import { findAccount, insertAccount, updateAccountRecord } from '../accounts/accounts.ts';
import {
  type AccountDeps,
  accountExists,
  type ChangedAccount,
  checkManageable,
  checkReference,
  edit,
  finishFormer,
  importIncomplete,
  readAccount,
  toFirstRevision,
  unknownAccount,
  withAccountLock,
} from '../accounts/managed-accounts.ts';
import { hashClientId } from '../accounts/shared-credentials.ts';
import { CLOSED, formatCursor, newEpochAfter, parseCursor } from '../log/head.ts';
import { followAccount } from '../notifications/settings.ts';
import { toStored } from '../notifications/thread-items.ts';
import { NOTIFICATIONS_SINK } from '../notifications/types.ts';
import { type Expectation, type Lock, type Rejection, rejected } from '../resources.ts';
import { putItemEntries } from '../search/indexing.ts';
import { type AccountRef, keys, messagePk, smsUsePk, snapshotPk, threadPk } from '../storage/schema.ts';
import type { Item, Value } from '../storage/table.ts';
import { findMarks, toSnapshot } from '../tracking/snapshot.ts';
import {
  type AccountPage,
  advance,
  formatPlace,
  isSuppression,
  parseAccountPage,
  parsePlace,
  readAccountPage,
  toStart,
} from './account-items.ts';

const PAGE_ITEMS = 100;
/** Attributes of Head: the places up to which notices and messages are held, and up to which they are returned to the index. */
const [HELD_TO, RELEASED_TO] = ['heldTo', 'releasedTo'];
const WRITES_AT_ONCE = 16;
/** Maximum duration of one step (ms). */
const STEP_MS = 10_000;

/** A move that has begun. */
export interface BegunMove {
  readonly kind: 'begun';
  readonly account: AccountRecord;
  /** Why pages cannot be read yet. `null`: they can. */
  readonly waitingFor: string | null;
}

/** Pauses an account for a move to the cell `to`, closes its log, and prepares its data. Repeated until it waits for nothing. */
export async function beginMove(
  deps: AccountDeps,
  ref: AccountRef,
  to: string,
  expected: Expectation = {},
): Promise<BegunMove | Rejection> {
  const { table, log } = deps;
  const begun = await edit(deps, ref, expected, ({ paused, movedTo, pausedBeforeMove, importing }) => {
    if (importing === true) return { kind: 'conflict', reason: importIncomplete(ref.account) };
    const wasPaused = movedTo === undefined ? paused === true : pausedBeforeMove;
    return { set: { paused: true, movedTo: to, pausedBeforeMove: wasPaused } };
  });
  if (begun.kind !== 'changed') return begun;
  const closing = { [CLOSED]: true, [RELEASED_TO]: undefined };
  await table.write({ update: keys.head(ref), set: closing, when: [['epoch', 'present']] });
  const head = await log.head(ref);
  if (!head) return unknownAccount(ref.account);
  const movedEnd = formatCursor(head.epoch, head.sequence);
  const closed = await edit(deps, ref, {}, () => ({ set: { movedEnd } }));
  if (closed.kind !== 'changed') return closed;
  const waitingFor = await holdNotifications(deps, ref, head.sequence);
  return { kind: 'begun', account: closed.account, waitingFor };
}

/** Ends a move in the former cell: the log is open again, and notifications are sent. The account stays paused. */
export async function cancelMove(
  deps: AccountDeps,
  ref: AccountRef,
  expected: Expectation = {},
): Promise<ChangedAccount | Rejection> {
  const record = await deps.table.get(keys.account(ref));
  if (!record) return unknownAccount(ref.account);
  const rejection = checkManageable(deps, record, ref, expected);
  if (rejection) return rejection;
  if (record.movedTo === undefined) return rejected(`The account "${ref.account}" is not being moved.`);
  const busy = await releaseNotifications(deps, ref);
  if (busy) return busy;
  await deps.table.write({
    update: keys.head(ref),
    set: { [CLOSED]: undefined },
    when: [['epoch', 'present']],
  });
  const set = { movedTo: undefined, movedEnd: undefined, pausedBeforeMove: undefined };
  return edit(deps, ref, expected, () => ({ set }));
}

/** Returns a page of the data of an account whose move has begun. */
export async function exportAccount(
  deps: AccountDeps,
  ref: AccountRef,
  after?: string,
): Promise<{ readonly kind: 'page'; readonly data: string; readonly next: string | null } | Rejection> {
  const record = await deps.table.get(keys.account(ref));
  if (!record) return unknownAccount(ref.account);
  const end = typeof record.movedEnd === 'string' ? parseCursor(record.movedEnd) : undefined;
  const waitingFor =
    record.movedTo === undefined || !end
      ? 'the start of the move'
      : after === undefined
        ? await holdNotifications(deps, ref, end.sequence)
        : null;
  if (waitingFor !== null) {
    return {
      kind: 'conflict',
      why: 'busy',
      reason: `The data of "${ref.account}" cannot be exported yet. It waits for ${waitingFor}.`,
    };
  }
  const page = await readAccountPage(deps.table, ref, String(record.movedEnd), after, deps.now());
  return { kind: 'page', ...page };
}

/**
 * Removes due notices and messages from the index, so that this cell sends nothing more for the account. Returns what has to end first:
 * events that are not in the threads yet, notices that are being converted to messages, messages that are being sent.
 *
 * The revision is raised, so a sender that has read the item before does nothing. A notice that a sender is converting is left to it.
 */
async function holdNotifications(deps: AccountDeps, ref: AccountRef, end: number): Promise<string | null> {
  const { table } = deps;
  const cursor = await table.get(keys.cursor(ref.region, NOTIFICATIONS_SINK, ref.account));
  const head = await table.get(keys.head(ref));
  if (cursor && Number(cursor.position ?? 0) < end) {
    return 'customer notifications, which have not processed the log up to its end';
  }
  let busy = 0;
  const { reached, isWhole } = await forEachItem(deps, ref, head?.[HELD_TO], async (item) => {
    if (typeof item.duePk !== 'string') return;
    const isHeld = !isBusy(ref, item) && (await table.write(toHoldWrite(item, true))).done;
    if (!isHeld) busy += 1;
  });
  if (busy > 0) return `${busy} notices and messages that are being sent`;
  // The next step continues there: the log is closed, so no notice before it becomes due.
  const when = [[CLOSED, 'present'] as const];
  await table.write({ update: keys.head(ref), set: { [HELD_TO]: reached }, when });
  return isWhole ? null : 'notices and messages that are not prepared yet';
}

/** Returns notices and messages to the index, so that this cell sends them. Returns a conflict if it must be repeated. */
async function releaseNotifications(deps: AccountDeps, ref: AccountRef): Promise<Rejection | undefined> {
  const { table } = deps;
  const update = { update: keys.head(ref), when: [['epoch', 'present'] as const] };
  // First: if the move begins again, it must hold what is released here.
  const { item: head } = await table.write({ ...update, set: { [HELD_TO]: undefined } });
  const { reached, isWhole } = await forEachItem(deps, ref, head?.[RELEASED_TO], async (item) => {
    if (item.heldPk !== undefined) await table.write(toHoldWrite(item, false));
  });
  await table.write({ ...update, set: { [RELEASED_TO]: isWhole ? undefined : reached } });
  const reason = `Notices and messages of "${ref.account}" are still being prepared. Repeat the request.`;
  return isWhole ? undefined : { kind: 'conflict', why: 'busy', reason };
}

/** Returns whether a sender works on a thread or a message. */
function isBusy(ref: AccountRef, item: Item): boolean {
  if (item.pk === messagePk(ref)) return item.claim !== undefined;
  try {
    return toStored(item).thread.frozen.length > 0;
  } catch {
    // It cannot be read, so no sender works on it.
    return false;
  }
}

/** Moves the place of an item out of the index (`hold`), or back. */
function toHoldWrite(item: Item, hold: boolean) {
  const place = hold
    ? { duePk: undefined, dueSk: undefined, heldPk: item.duePk, heldSk: item.dueSk }
    : { duePk: item.heldPk, dueSk: item.heldSk, heldPk: undefined, heldSk: undefined };
  const revision = Number(item.revision);
  return {
    update: { pk: item.pk, sk: item.sk },
    set: { ...place, revision: revision + 1 },
    when: [['revision', '=', revision] as const],
  };
}

/**
 * Calls a function for each thread, then for each message, and stops after {@link STEP_MS}. Returns the place that it reached. The next
 * step passes that place as `from`, and continues there.
 */
async function forEachItem(
  { table, now }: AccountDeps,
  ref: AccountRef,
  from: Value | undefined,
  action: (item: Item) => Promise<unknown>,
): Promise<{ readonly reached: string; readonly isWhole: boolean }> {
  const deadline = now() + STEP_MS;
  const limit = pLimit(WRITES_AT_ONCE);
  const pks = [threadPk(ref), messagePk(ref)];
  let place = parsePlace(from);
  for (let pk = pks[place.part]; pk !== undefined; pk = pks[place.part]) {
    if (now() >= deadline) return { reached: formatPlace(place), isWhole: false };
    const page = await table.query({ pk, limit: PAGE_ITEMS, ...toStart(place) });
    await limit.map(page, action);
    place = advance(place, page, page.length < PAGE_ITEMS);
  }
  return { reached: formatPlace(place), isWhole: true };
}

/** Credentials of a moved account: given again, or the name of a secret of the new cell. */
export interface ImportInput {
  readonly data: string;
  readonly credentials?: { readonly clientId: string; readonly clientSecret: string } | undefined;
  readonly secretRef?: string | undefined;
}

/** Stores a page in the new cell. The first one creates the account, and the last one starts its polls. */
export async function importAccount(
  deps: AccountDeps,
  input: ImportInput,
): Promise<{ readonly kind: 'imported'; readonly account: AccountRecord } | Rejection> {
  const page = parseAccountPage(input.data);
  if (typeof page === 'string') return rejected(page);
  const { region, account: id, end } = page;
  const ref = { region, account: id };
  if (!deps.regions.includes(region)) {
    return rejected(`The account is in the region ${region}, which this cell does not serve.`);
  }
  return withAccountLock(deps, ref, async (lock) => {
    const { table } = deps;
    const found = await findAccount(table, deps.regions, id);
    const known = found && (await table.get(keys.account(ref)));
    if (found && (known?.movedEnd !== end || known.movedTo !== undefined)) return accountExists(id);
    const isNew = known === undefined;
    if (known?.importing === true || isNew) {
      const rejection = isNew ? await createImported(deps, page, input, lock) : undefined;
      if (rejection) return rejection;
      if (page.begin) await writeState(deps, ref, page.begin);
      const { items } = page;
      const senderPks = [threadPk(ref), messagePk(ref), smsUsePk(region)];
      const isOfSender = ({ pk }: Item) => senderPks.includes(pk);
      const others = items.filter((item) => !isOfSender(item));
      await table.putMany([...others, ...others.flatMap((item) => toMark(ref, item))]);
      // A repetition of the last page must not restore the state of messages that this cell has sent since.
      await pLimit(WRITES_AT_ONCE).map(items.filter(isOfSender), (put) =>
        table.write({ put, when: [['pk', 'absent']] }),
      );
      await putItemEntries(table, ref, items);
      const busy = page.last ? await startImported(deps, ref) : undefined;
      if (busy) return busy;
    } else {
      // It is complete. Suppressions that were added in the former cell since are still taken over.
      await pLimit(WRITES_AT_ONCE).map(
        page.items.filter((item) => isSuppression(ref, item)),
        ({ pk, sk, ...set }) => table.write({ update: { pk, sk }, set }),
      );
    }
    const account = await readAccount(deps, ref);
    return account ? { kind: 'imported', account } : unknownAccount(id);
  });
}

/** Creates the account without polls. Returns why it cannot be created. */
async function createImported(
  deps: AccountDeps,
  page: AccountPage,
  { credentials, secretRef }: ImportInput,
  { owner, item }: Lock,
): Promise<Rejection | undefined> {
  const { table, log, secrets, now } = deps;
  const { region, account: id, end, begin } = page;
  const ref = { region, account: id };
  if (!begin) return rejected('The first page of the export must be imported first.');
  if ((credentials === undefined) === (secretRef === undefined)) {
    return rejected(
      'Either credentials or a secretRef must be given, because exports contain no credentials.',
    );
  }
  const refused = secretRef === undefined ? undefined : checkReference(deps, region, secretRef);
  if (refused) return refused;
  if (begin.linkKey !== undefined) {
    const put = { ...keys.linkKey(region), key: begin.linkKey };
    const own = (await table.write({ put, when: [['pk', 'absent']] })).item;
    if (own?.key !== begin.linkKey) {
      const reason = `This cell cannot recognize the suppressed addresses of the account, because the two cells store hashes of addresses that depend on different keys. Move "${id}" to a cell that has not sent notifications yet, or to which other accounts of the former cell were moved before.`;
      return { kind: 'conflict', reason };
    }
  }
  const held = await finishFormer(deps, ref);
  if (held) return held;
  const kept = credentials && (await secrets.save(region, id, credentials));
  const at = now();
  const account = {
    ...{
      ...ref,
      secretRef: kept ?? secretRef ?? '',
      pollIntervalSeconds: Math.max(begin.pollIntervalSeconds, deps.minIntervalSeconds),
    },
    ...{ paused: true, managed: true, credentialsAt: at },
    ...(kept === undefined ? {} : { keepsCredentials: true }),
    ...(credentials ? { clientHash: hashClientId(credentials.clientId) } : {}),
    ...{ movedEnd: end, importing: true, pausedBeforeMove: begin.paused },
  };
  const epoch = newEpochAfter(parseCursor(end)?.epoch ?? '', at);
  const guard = { check: keys.accountLock(ref), when: [['owner', '=', owner] as const] };
  const options = { now: at, epoch, revision: toFirstRevision(item) };
  return (await insertAccount(table, log, account, options, [guard])) ? undefined : accountExists(id);
}

/** Writes what polls continue from. The log and the schedule are those of this cell. */
async function writeState(
  { table }: AccountDeps,
  ref: AccountRef,
  { head, status, attributes }: NonNullable<AccountPage['begin']>,
): Promise<void> {
  const exists = [['pk', 'present']] as const;
  await table.write({ update: keys.head(ref), set: head, when: exists });
  await table.write({ update: keys.status(ref), set: status, when: exists });
  await table.write({ update: keys.account(ref), set: attributes, when: exists });
}

/** Returns the pointer to a job that needs attention: none, or one. Polls write it only when this changes. */
function toMark(ref: AccountRef, item: Item): Item[] {
  if (item.pk !== snapshotPk(ref)) return [];
  const snapshot = toSnapshot(item);
  return findMarks(snapshot) ? [{ ...keys.markedJob(ref, snapshot.jobNumber) }] : [];
}

/** Ends the import: notifications are sent and follow the new log, and polls start unless the account was paused before. */
async function startImported(deps: AccountDeps, ref: AccountRef): Promise<Rejection | undefined> {
  const busy = await releaseNotifications(deps, ref);
  if (busy) return busy;
  const settings = await deps.table.get(keys.notificationSettings(ref));
  if (settings?.enabled === true) await followAccount(deps, ref);
  await updateAccountRecord(deps.table, ref, deps.now(), ({ pausedBeforeMove }) => ({
    set: { importing: undefined, paused: pausedBeforeMove === true, pausedBeforeMove: undefined },
  }));
  return undefined;
}
