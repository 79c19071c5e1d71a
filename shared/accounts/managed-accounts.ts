/**
 * Accounts that users create, change and delete. A change of several places follows an order in which a
 * crash leaves nothing that takes effect:
 * - create: lock, credentials, then Account, Status and Head in one transaction.
 * - rotate: lock, credentials, then Account and its place on the schedule.
 * - delete: lock, then see deletion.ts.
 *
 * The lock serializes these operations, so that the stored credentials are those of the caller that
 * received success. Accounts declared in the configuration file are changed there, and changes here are
 * rejected.
 */

import { newEpoch } from '../log/head.ts';
import type { EventLog } from '../log/log.ts';
import {
  alreadyExists,
  conflict,
  type Expectation,
  getRevision,
  type Lock,
  lockConflict,
  modified,
  notFound,
  type Rejection,
  rejected,
  withItemLock,
} from '../resources.ts';
import { type AccountRef, accountPk, keys } from '../storage/schema.ts';
import type { Item, Table } from '../storage/table.ts';
import { checkInput } from '../validation.ts';
import {
  type AccountQuery,
  AccountUpdate,
  intervalRule,
  NewAccount,
  NewCredentials,
} from './account-input.ts';
import type { AccountRecord } from './account-views.ts';
import {
  findAccount,
  insertAccount,
  listAccounts,
  type RecordUpdate,
  toAccount,
  updateAccountRecord,
} from './accounts.ts';
import type { AccountSecrets } from './credentials.ts';
import {
  beginDeletion,
  continueDeletion,
  continueDeletions,
  type DeletionDeps,
  readDeletion,
} from './deletion.ts';
import { readEventSettings, toStoredEventSettings, withEventDefaults } from './event-settings.ts';
import { hashClientId, warnOfSharedCredentials } from './shared-credentials.ts';

/** Dependencies of the account operations. */
export interface AccountDeps extends DeletionDeps {
  readonly table: Table;
  readonly log: EventLog;
  readonly secrets: AccountSecrets;
  /** Regions of this process. An id is unique across all of them. */
  readonly regions: readonly string[];
  /** Minimum poll interval (s). */
  readonly minIntervalSeconds: number;
  /** Returns whether the configuration file declares an account. Default: it declares none. */
  readonly isDeclared?: (ref: AccountRef) => boolean;
}

/** Result of a creation. */
export interface CreatedAccount {
  readonly kind: 'created';
  readonly account: AccountRecord;
  readonly warnings: readonly string[];
}

/** Result of a change. */
export type ChangedAccount = { readonly kind: 'changed'; readonly account: AccountRecord };

/** Time for which a request works on a deletion before it leaves the rest for later (ms). */
const DELETE_MS = 10_000;
/** Maximum number of accounts that a new account's credentials are compared with. */
const MAX_COMPARED = 10_000;
const DEFAULT_PAGE = 100;
const MAX_PAGE = 500;

/**
 * Creates an account. Its first poll is due at once, unless the account starts paused. Given credentials
 * are stored and never returned. If the request is rejected, nothing is registered. `warnings` names other
 * accounts with the same credentials. A repeated request with the same `generators` returns the account that
 * the first one created. Throws `SecretError` if the credentials cannot be stored.
 */
export async function createAccount(
  deps: AccountDeps,
  input: unknown,
  generators: Pick<AccountDeps, 'newId'> = deps,
): Promise<CreatedAccount | Rejection> {
  const checked = checkInput(NewAccount, input);
  if (checked.kind === 'rejected') return checked;
  const { id, credentials, secretRef = '', pollIntervalSeconds, paused, events } = checked.value;
  const { table, log, secrets, now } = deps;
  const region = oneRegion(deps, checked.value.region);
  if (typeof region === 'object') return region;
  const rejection =
    checkInterval(deps, pollIntervalSeconds) ??
    (credentials ? undefined : checkReference(deps, region, secretRef));
  if (rejection) return rejection;
  const ref = { region, account: id };
  /** Identifies the created account when the request is repeated. */
  const creation = generators.newId();
  const isTaken = async () => (await findAccount(table, deps.regions, id)) !== undefined;
  const others = await listAccounts(table, region, MAX_COMPARED);
  const toCreated = (record: Item): CreatedAccount => {
    const warning = warnOfSharedCredentials(toAccount(record), others);
    const warnings = warning === undefined ? [] : [warning];
    return { kind: 'created', account: toRecord(deps, record), warnings };
  };
  const former = await table.get(keys.account(ref));
  if (former?.creation === creation) return toCreated(former);
  if (await isTaken()) return accountExists(id);

  const create = () =>
    withAccountLock(deps, ref, async ({ owner, item }) => {
      if (await isTaken()) return accountExists(id);
      // Also in other regions: the deletion removes the id from API keys, which name no region.
      for (const other of deps.regions) {
        const held = await finishFormer(deps, { region: other, account: id });
        if (held) return held;
      }
      const kept = credentials && (await secrets.save(region, id, credentials));
      const at = now();
      const account = {
        ...ref,
        ...{ secretRef: kept ?? secretRef, pollIntervalSeconds, paused, creation },
        ...{ managed: true, credentialsAt: at },
        ...(kept === undefined ? {} : { keepsCredentials: true }),
        ...(credentials ? { clientHash: hashClientId(credentials.clientId) } : {}),
        ...(events ? { events: withEventDefaults(events) } : {}),
      };
      const guard = { check: keys.accountLock(ref), when: [['owner', '=', owner] as const] };
      const begin = { now: at, epoch: newEpoch(at), revision: toFirstRevision(item) };
      if (!(await insertAccount(table, log, account, begin, [guard]))) {
        return (await isTaken()) ? accountExists(id) : lockConflict(id);
      }
      const record = await table.get(keys.account(ref));
      return record ? toCreated(record) : changedMeanwhile(id);
    });
  // The id is unique across regions: the lock in the first one excludes creations in the others.
  const first = { region: deps.regions[0] ?? region, account: id };
  return first.region === region ? create() : withAccountLock(deps, first, create);
}

/** Returns an account, or `undefined`. */
export async function readAccount(
  deps: Pick<AccountDeps, 'table' | 'isDeclared'>,
  ref: AccountRef,
): Promise<AccountRecord | undefined> {
  const record = await deps.table.get(keys.account(ref));
  return record && toRecord(deps, record);
}

/** A page of accounts. `next` is `null` on the last page. */
export interface AccountPage {
  readonly kind: 'page';
  readonly accounts: readonly AccountRecord[];
  readonly next: string | null;
}

/** Returns a page of accounts, by region and id. */
export async function pageAccounts(
  deps: Pick<AccountDeps, 'table' | 'regions' | 'isDeclared'>,
  query: AccountQuery = {},
): Promise<AccountPage | Rejection> {
  const { only } = query;
  const limit = Math.min(query.limit ?? DEFAULT_PAGE, MAX_PAGE);
  if (query.region !== undefined && !deps.regions.includes(query.region)) {
    return rejected(`region ${regionRule(deps.regions)}.`);
  }
  const regions = query.region === undefined ? [...deps.regions].sort() : [query.region];
  const [afterRegion = '', afterId = ''] = query.after?.split('/') ?? [];
  if (query.after !== undefined && !regions.includes(afterRegion)) {
    return rejected('after must be the `next` of a page of accounts.');
  }
  const found: Item[] = [];
  for (const region of regions) {
    if (region < afterRegion || found.length > limit) continue;
    const after = region === afterRegion ? afterId : '';
    // One more than the page holds, to detect a next page.
    const rest = limit + 1 - found.length;
    found.push(...(await someAccounts(deps.table, region, only ?? undefined, after, rest)));
  }
  const records = found.slice(0, limit).map((record) => toRecord(deps, record));
  const last = records.at(-1);
  const next = found.length > limit && last ? `${last.region}/${last.id}` : null;
  return { kind: 'page', accounts: records, next };
}

async function someAccounts(
  table: Table,
  region: string,
  only: readonly string[] | undefined,
  after: string,
  limit: number,
): Promise<Item[]> {
  if (!only) {
    return table.query({ pk: accountPk(region), limit, ...(after === '' ? {} : { after }) });
  }
  const wanted = [...new Set(only)].filter((id) => id > after);
  const items = await table.getMany(wanted.map((account) => keys.account({ region, account })));
  return items.sort((a, b) => (a.sk < b.sk ? -1 : 1)).slice(0, limit);
}

/**
 * Changes how an account is polled, or the location of its credentials. With other credentials, the account
 * is polled at once. Absent fields stay as they are, and so do its log, snapshots and state.
 */
export async function updateAccount(
  deps: AccountDeps,
  ref: AccountRef,
  input: unknown,
  expected: Expectation = {},
): Promise<ChangedAccount | Rejection> {
  const checked = checkInput(AccountUpdate, input);
  if (checked.kind === 'rejected') return checked;
  const { pollIntervalSeconds, secretRef, events } = checked.value;
  const rejection =
    (pollIntervalSeconds === undefined ? undefined : checkInterval(deps, pollIntervalSeconds)) ??
    (secretRef === undefined ? undefined : checkReference(deps, ref.region, secretRef));
  if (rejection) return rejection;
  const toSettings = (record: Item) => ({
    ...(pollIntervalSeconds === undefined ? {} : { pollIntervalSeconds }),
    ...(events ? { events: toStoredEventSettings({ ...readEventSettings(record.events), ...events }) } : {}),
  });
  if (secretRef === undefined) return edit(deps, ref, expected, (record) => ({ set: toSettings(record) }));
  return withAccountLock(deps, ref, async () => {
    let keptBefore = false;
    const changed = await edit(deps, ref, expected, (record) => {
      if (record.secretRef === secretRef) return { set: toSettings(record) };
      keptBefore = record.keepsCredentials === true;
      const set = {
        ...toSettings(record),
        secretRef,
        ...{ keepsCredentials: undefined, clientHash: undefined },
        credentialsAt: laterThan(record, deps.now()),
      };
      return { set, atOnce: true };
    });
    // The former credentials are no longer used.
    if (changed.kind === 'changed' && keptBefore) await deps.secrets.remove(ref.region, ref.account);
    return changed;
  });
}

/**
 * Pauses polling of an account. Its log, snapshots and state stay. A poll in progress discards its
 * observations.
 */
export function pauseAccount(deps: AccountDeps, ref: AccountRef, expected: Expectation = {}) {
  return edit(deps, ref, expected, () => ({ set: { paused: true } }));
}

/**
 * Resumes polling of a paused account at once, from its state. An account that waits for a confirmation
 * continues to wait.
 */
export function resumeAccount(deps: AccountDeps, ref: AccountRef, expected: Expectation = {}) {
  return edit(deps, ref, expected, (record) => checkResumable(deps, record) ?? { set: { paused: false } });
}

/**
 * Replaces an account's credentials. The new ones are stored here, wherever the former ones were.
 *
 * They take effect at once: the back-off ends, and a poll in progress with the former ones discards its
 * observations. The account is polled, unless it is paused or waits for a confirmation. Throws
 * `SecretError` if the credentials cannot be stored.
 */
export async function rotateCredentials(
  deps: AccountDeps,
  ref: AccountRef,
  input: unknown,
  expected: Expectation = {},
): Promise<ChangedAccount | Rejection> {
  const checked = checkInput(NewCredentials, input);
  if (checked.kind === 'rejected') return checked;
  return withAccountLock(deps, ref, async () => {
    const record = await deps.table.get(keys.account(ref));
    const rejection = record ? checkManageable(deps, record, ref, expected) : unknownAccount(ref.account);
    if (rejection) return rejection;
    const secretRef = await deps.secrets.save(ref.region, ref.account, checked.value);
    // A concurrent pause must not cause an error here: the credentials are already stored.
    return edit(deps, ref, {}, (before) => ({
      set: {
        ...{ secretRef, keepsCredentials: true, managed: true },
        clientHash: hashClientId(checked.value.clientId),
        credentialsAt: laterThan(before, deps.now()),
      },
      atOnce: true,
    }));
  });
}

/**
 * Deletes an account with all its data: its log, jobs, position at every sink, and its credentials if they
 * were given here. API keys, endpoints and alert rules no longer name it. Those that named no other account
 * are deleted. From then on the account does not exist.
 *
 * `complete` is `false` if there was not enough time to delete everything: repeating the call continues.
 * Also continues the deletions of other accounts.
 */
export async function deleteAccount(
  deps: AccountDeps,
  ref: AccountRef,
  expected: Expectation = {},
  budgetMs = DELETE_MS,
): Promise<{ readonly kind: 'deleted'; readonly complete: boolean } | Rejection> {
  const deadline = deps.now() + budgetMs;
  const begun = await withAccountLock(
    deps,
    ref,
    async ({ owner }): Promise<{ kind: 'begun' } | Rejection> => {
      const record = await deps.table.get(keys.account(ref));
      if (!record) {
        const note = await readDeletion(deps.table, ref);
        return note && note.emptied !== true ? { kind: 'begun' } : unknownAccount(ref.account);
      }
      const rejection = checkManageable(deps, record, ref, expected);
      if (rejection) return rejection;
      const outcome = await beginDeletion(deps, record, ref, owner);
      if (outcome === 'changed') return changedMeanwhile(ref.account);
      return outcome === 'begun' ? { kind: 'begun' } : outcome;
    },
  );
  if (begun.kind !== 'begun') return begun;
  const { kind } = await continueDeletion(deps, ref, deadline);
  // Failures of other deletions must not fail this one.
  await continueDeletions(deps, ref.region, deadline).catch(() => undefined);
  return { kind: 'deleted', complete: kind !== 'more' };
}

/** Returns an account as in API responses. */
function toRecord({ isDeclared }: Pick<AccountDeps, 'isDeclared'>, record: Item): AccountRecord {
  const account = toAccount(record);
  const { region, account: id, pollIntervalSeconds, paused, secretRef } = account;
  const isOfFile = isDeclared?.(account) === true;
  return {
    ...{ id, region, managed: !isOfFile },
    secretRef: isOfFile || record.keepsCredentials === true ? null : secretRef,
    ...{ pollIntervalSeconds, paused },
    events: withEventDefaults(account.events),
    move: toMove(record),
    createdAt: formatTimestamp(record.createdAt),
    changedAt: formatTimestamp(record.changedAt),
    revision: getRevision(record),
  };
}

function toMove({ movedTo, movedEnd, importing }: Item): AccountRecord['move'] {
  const end = typeof movedEnd === 'string' ? movedEnd : null;
  if (typeof movedTo === 'string') return { to: movedTo, end, complete: end !== null };
  return end === null ? null : { to: null, end, complete: importing !== true };
}

function formatTimestamp(ms: Item[string]): string | null {
  return typeof ms === 'number' ? new Date(ms).toISOString() : null;
}

/**
 * Completes the deletion of a former account of this id if possible. Otherwise returns why the id is not
 * free.
 */
export async function finishFormer(deps: AccountDeps, ref: AccountRef): Promise<Rejection | undefined> {
  if (!(await readDeletion(deps.table, ref))) return undefined;
  const progress = await continueDeletion(deps, ref, deps.now() + DELETE_MS);
  if (progress.kind === 'free') return undefined;
  const when =
    progress.kind === 'empty'
      ? `the id can be used again at ${new Date(progress.freeAt).toISOString()}`
      : 'its data is still being deleted; try again in a minute';
  return conflict(`id must be new: the account "${ref.account}" was just deleted, and ${when}.`);
}

/**
 * Returns a time for new credentials that is later than that of the former ones, even if the clock was set back.
 */
function laterThan(record: Item, now: number): number {
  return Math.max(now, Number(record.credentialsAt ?? 0) + 1);
}

/** Changes an account, unless it is defined by the configuration file or was changed. */
export async function edit(
  deps: AccountDeps,
  ref: AccountRef,
  expected: Expectation,
  decide: (record: Item) => RecordUpdate | Rejection,
): Promise<ChangedAccount | Rejection> {
  const outcome = await updateAccountRecord<Rejection>(
    deps.table,
    ref,
    deps.now(),
    (record) => checkManageable(deps, record, ref, expected) ?? decide(record),
  );
  if (outcome.kind === 'absent') return unknownAccount(ref.account);
  if (outcome.kind === 'changed') return { kind: 'changed', account: toRecord(deps, outcome.record) };
  return outcome;
}

/** Returns why an account cannot be changed here, or `undefined` if it can. */
export function checkManageable(
  { isDeclared }: AccountDeps,
  record: Item,
  ref: AccountRef,
  { revision = getRevision(record) }: Expectation,
): Rejection | undefined {
  if (isDeclared?.(ref)) {
    const reason = `The account "${ref.account}" is declared in the configuration file. Change or remove it there, under "accounts", and restart Jobwire.`;
    return conflict(reason);
  }
  return revision === getRevision(record) ? undefined : changedMeanwhile(ref.account);
}

/** Returns why an account cannot be resumed, or `undefined` if it can: only one cell polls it, and its credentials are known. */
function checkResumable(
  { secrets }: AccountDeps,
  { sk, movedTo, importing, secretRef }: Item,
): Rejection | undefined {
  const reason =
    movedTo !== undefined
      ? `The account "${sk}" was moved to ${movedTo}. Delete it here, or cancel the move if it is not complete there.`
      : importing === true
        ? importIncomplete(sk)
        : secrets.isRemoved?.(String(secretRef))
          ? `The account "${sk}" is no longer in the configuration file, which contained its credentials. Restore its entry there, under "accounts", and restart Jobwire, or set new credentials with jobwire accounts rotate.`
          : undefined;
  return reason === undefined ? undefined : conflict(reason);
}

/** Runs an operation on an account as a whole. */
export function withAccountLock<T>(
  deps: AccountDeps,
  ref: AccountRef,
  work: (lock: Lock) => Promise<T | Rejection>,
): Promise<T | Rejection> {
  return withItemLock(deps, keys.accountLock(ref), ref.account, work);
}

/** Returns the first revision of a new account, from its lock: later than that of an account of this id that was deleted within a day. */
export const toFirstRevision = (lock: Item | undefined): number => Number(lock?.revision ?? 0) + 1;

/** Returns the region of a request. It may be omitted if there is only one. */
export function oneRegion(
  deps: Pick<AccountDeps, 'regions'>,
  region: string | undefined,
): string | Rejection {
  const [only, ...others] = deps.regions;
  if (region === undefined && only !== undefined && others.length === 0) return only;
  if (region !== undefined && deps.regions.includes(region)) return region;
  const missing = region === undefined ? 'is missing; it ' : '';
  return rejected(`region ${missing}${regionRule(deps.regions)}.`);
}

/** Returns the rule for a region given by a caller. */
export const regionRule = (regions: readonly string[]): string =>
  `must be one of the regions that are served here (${[...regions].sort().join(', ')})`;

function checkInterval({ minIntervalSeconds }: AccountDeps, seconds: number): Rejection | undefined {
  if (seconds >= minIntervalSeconds) return undefined;
  return rejected(`pollIntervalSeconds ${intervalRule(minIntervalSeconds)}.`);
}

/** Returns why a `secretRef` is not accepted, or `undefined`. */
export function checkReference(
  { secrets }: AccountDeps,
  region: string,
  secretRef: string,
): Rejection | undefined {
  const rule = secrets.checkSecretRef(region, secretRef);
  return rule === undefined ? undefined : rejected(`secretRef ${rule}.`);
}

export const unknownAccount = (id: string): Rejection => notFound(`account "${id}"`);
export const accountExists = (id: string): Rejection => alreadyExists('an account', id);
export const importIncomplete = (id: string): string =>
  `The account "${id}" is being moved to this cell. Repeat jobwire accounts move to complete it.`;
const changedMeanwhile = (id: string): Rejection => modified(`account "${id}"`);
