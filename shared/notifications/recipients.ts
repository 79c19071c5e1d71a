/**
 * Recipients: who is notified, of which jobs, by which channels. A recipient is stored in the partition of its account, together with a
 * pointer under its scope. Both are written in one transaction, so that no recipient is found in the wrong scope.
 *
 * One recipient can be the API user of the ordering service: see {@link syncOwnUser}. Upstream determines the addresses of this user and
 * the channels that the user wants. Users of Jobwire may set everything else, and remove channels.
 */
import pLimit from 'p-limit';
import type * as z from 'zod';
import type { ResourceGenerators } from '../delivery/endpoint-edits.ts';
import type { AccountUser } from '../ordering/schemas.ts';
import { type Expectation, type Refusal, revisionOf, revisionStill } from '../resources.ts';
import { type AccountRef, keys, recipientPk, recipientPlace, recipientPlacePk } from '../storage/schema.ts';
import type { Item, Table, Write } from '../storage/table.ts';
import { type Checked, checkInput } from '../validation.ts';
import { checkMobile } from './addresses.ts';
import { checkEmail } from './email-address.ts';
import { kindNames, NewRecipient, RecipientUpdate } from './notification-input.ts';
import { type NotificationDeps, unknownAccount } from './settings.ts';
import {
  type Channel,
  channels,
  DEFAULT_KINDS,
  type Locale,
  type MessageKind,
  OWN_USER,
  type Recipient,
  type Scope,
} from './types.ts';

/** Maximum number of retries after concurrent modification. */
const ATTEMPTS = 5;
/** Number of concurrent reads and writes. */
const AT_ONCE = 16;
const DEFAULT_PAGE = 100;
const MAX_PAGE = 500;

const unique = <T>(values: readonly T[]): T[] => [...new Set(values)];

/** All settable fields of a recipient, validated together. */
type RecipientFields = Pick<
  Recipient,
  'scope' | 'name' | 'email' | 'mobile' | 'locale' | 'zone' | 'channels' | 'kinds' | 'paused'
>;

/** Result of creating a recipient. */
export type CreatedRecipient = { readonly kind: 'created'; readonly recipient: Recipient };
/** Result of changing a recipient. */
export type ChangedRecipient = { readonly kind: 'changed'; readonly recipient: Recipient };

/** Creates a recipient. A repeated request with the same fields returns the recipient that the first one created. */
export async function createRecipient(
  deps: NotificationDeps,
  ref: AccountRef,
  input: unknown,
  makings: Pick<ResourceGenerators, 'newId'> = deps,
): Promise<CreatedRecipient | Refusal> {
  const checked = checkInput(NewRecipient, input);
  if (checked.kind === 'refused') return checked;
  /** Identifies the creation when the request is repeated. */
  const creation = makings.newId();
  const { id = newRecipientId(makings.newId), ...given } = checked.value;
  const fields = toRecipientFields(ref.region, given);
  if (fields.kind === 'refused') return fields;
  if (!(await deps.table.get(keys.recipient(ref, id))) && (await readRemainingCapacity(deps.table, ref)) < 1)
    return limitReached(ref);
  return insertRecipient(deps, ref, id, fields.value, creation);
}

/** Returns how many more recipients an account can have. Reads all of them: recipients are seldom created. */
export async function readRemainingCapacity(table: Table, ref: AccountRef): Promise<number> {
  const existing = await table.query({ pk: recipientPk(ref), limit: MAX_RECIPIENTS });
  return MAX_RECIPIENTS - existing.length;
}

/** Refusal: the account has the maximum number of recipients. */
export const limitReached = ({ account }: AccountRef): Refusal => ({
  kind: 'conflict',
  reason: `The account "${account}" has ${MAX_RECIPIENTS} recipients, and can have no more; delete some first.`,
});

/** Maximum number of recipients of one account. Concurrent creations can exceed it by a few. */
export const MAX_RECIPIENTS = 10_000;

/** Stores a recipient that does not exist yet. */
export async function insertRecipient(
  { table, newId, now }: NotificationDeps,
  ref: AccountRef,
  recipient: string,
  fields: RecipientFields,
  creation: string,
): Promise<CreatedRecipient | Refusal> {
  const at = now();
  const item: Item = {
    ...keys.recipient(ref, recipient),
    ...toAttributes(fields),
    ...{ source: 'manual', createdAt: at, changedAt: at, revision: 1, creation },
  };
  const written = await table.transact(
    [
      { put: item, when: [['pk', 'absent']] },
      toPointerWrite(ref, fields.scope, recipient),
      { check: keys.account(ref), when: [['secretRef', 'present']] },
    ],
    newId(),
  );
  if (written.done) return { kind: 'created', recipient: toRecipient(ref, item) };
  const existing = await table.get(keys.recipient(ref, recipient));
  if (existing?.creation === creation) return { kind: 'created', recipient: toRecipient(ref, existing) };
  if (existing) return idTaken(recipient);
  return written.failed.includes(2) ? unknownAccount(ref) : modifiedConcurrently(recipient);
}

/** Returns a recipient, or `undefined` if there is none. */
export async function readRecipient(
  table: Table,
  ref: AccountRef,
  recipient: string,
): Promise<Recipient | undefined> {
  const item = await table.get(keys.recipient(ref, recipient));
  return item && isVisible(item) ? toRecipient(ref, item) : undefined;
}

/**
 * Returns a page of the recipients of an account, ordered by id, after the named one. `next` is the last id of the page, and absent on the
 * last page.
 */
export async function listRecipients(
  table: Table,
  ref: AccountRef,
  {
    after,
    limit = DEFAULT_PAGE,
  }: { readonly after?: string | undefined; readonly limit?: number | undefined } = {},
): Promise<{ readonly recipients: Recipient[]; readonly next: string | null }> {
  const most = Math.min(limit, MAX_PAGE);
  const found: Item[] = [];
  let bound = after === undefined ? {} : { after };
  for (;;) {
    const items = await table.query({ pk: recipientPk(ref), ...bound, limit: most + 1 });
    found.push(...items.filter(isVisible));
    const last = items.at(-1);
    if (found.length > most || items.length <= most || !last) break;
    bound = { after: last.sk };
  }
  const recipients = found.slice(0, most).map((item) => toRecipient(ref, item));
  return { recipients, next: found.length > most ? (recipients.at(-1)?.id ?? null) : null };
}

/** Changes a recipient. Absent fields are unchanged, `null` clears a field. */
export async function updateRecipient(
  deps: NotificationDeps,
  ref: AccountRef,
  recipient: string,
  input: unknown,
  expected: Expectation = {},
): Promise<ChangedRecipient | Refusal> {
  const checked = checkInput(RecipientUpdate, input);
  if (checked.kind === 'refused') return checked;
  for (let attempt = 0; attempt < ATTEMPTS; attempt += 1) {
    const item = await deps.table.get(keys.recipient(ref, recipient));
    if (!item || !isVisible(item)) return unknownRecipient(recipient);
    if (!isExpected(item, expected)) return modifiedConcurrently(recipient);
    const fields =
      item.source === 'upstream'
        ? applyOwnUserChange(item, checked.value)
        : toRecipientFields(ref.region, applyChange(toRecipient(ref, item), checked.value));
    if (fields.kind === 'refused') return fields;
    const changed = await replaceRecipient(deps, ref, item, fields.value);
    if (changed) return { kind: 'changed', recipient: toRecipient(ref, changed) };
  }
  return modifiedConcurrently(recipient);
}

/**
 * Replaces the fields of a recipient. Returns its current item, which is the given one if nothing had to be written. `undefined` if the
 * recipient was modified since it was read.
 */
export async function replaceRecipient(
  { table, newId, now }: NotificationDeps,
  ref: AccountRef,
  before: Item,
  fields: RecipientFields & { readonly muted?: readonly Channel[] },
  dryRun = false,
): Promise<Item | undefined> {
  const recipient = before.sk;
  const attributes = toAttributes(fields);
  if (isSame(before, attributes)) return before;
  const item: Item = { ...before, ...attributes, revision: revisionOf(before) + 1, changedAt: now() };
  if (dryRun) return item;
  const former = toScopeKey(toRecipient(ref, before).scope);
  const writes: Write[] = [{ put: item, when: [revisionStill(before), ['source', 'present']] }];
  if (former !== toScopeKey(fields.scope)) {
    writes.push(
      { delete: keys.recipientPlace(ref, former, recipient) },
      toPointerWrite(ref, fields.scope, recipient),
    );
  }
  const written = await table.transact(writes, newId());
  return written.done ? item : undefined;
}

/** Deletes a recipient. Its pending messages end as turned off. */
export async function deleteRecipient(
  deps: NotificationDeps,
  ref: AccountRef,
  recipient: string,
  expected: Expectation = {},
): Promise<{ readonly kind: 'deleted' } | Refusal> {
  for (let attempt = 0; attempt < ATTEMPTS; attempt += 1) {
    const item = await deps.table.get(keys.recipient(ref, recipient));
    if (!item || !isVisible(item)) return unknownRecipient(recipient);
    if (!isExpected(item, expected)) return modifiedConcurrently(recipient);
    if (item.source === 'upstream') {
      const reason = `The recipient "${recipient}" is the ordering service’s: turn ownUser off in the notification settings, or pause it.`;
      return { kind: 'conflict', reason };
    }
    const { scope } = toRecipient(ref, item);
    const deleted = await deps.table.transact(
      [
        { delete: keys.recipient(ref, recipient), when: [revisionStill(item), ['source', 'present']] },
        { delete: keys.recipientPlace(ref, toScopeKey(scope), recipient) },
      ],
      deps.newId(),
    );
    if (deleted.done) return { kind: 'deleted' };
  }
  return modifiedConcurrently(recipient);
}

/** Fields of a job by which recipients are matched. */
export interface JobIdentity {
  readonly jobNumber: number;
  readonly orderNumber: string | null;
  readonly orderGroup: string | null;
}

/** Returns the recipients of any of the jobs, by id, each with its jobs. Includes those who are paused or want other kinds. */
export async function findRecipients(
  table: Table,
  ref: AccountRef,
  jobs: readonly JobIdentity[],
): Promise<{ readonly recipient: Recipient; readonly jobs: readonly number[] }[]> {
  if (jobs.length === 0) return [];
  const ids = await pLimit(AT_ONCE).map(toKeyRanges(jobs), (range) => readIds(table, ref, range));
  const found = await readItems(table, ref, ids.flat());
  return found
    .map((item) => toRecipient(ref, item))
    .map((recipient) => ({
      recipient,
      // Checked against the recipient's own scope: it may have changed since the pointer was read.
      jobs: jobs.filter((job) => matchesScope(recipient.scope, job)).map(({ jobNumber }) => jobNumber),
    }))
    .filter((match) => match.jobs.length > 0)
    .sort((a, b) => (a.recipient.id < b.recipient.id ? -1 : 1));
}

/** Returns the items of recipients with exactly this scope. */
export async function readItemsByScope(table: Table, ref: AccountRef, scope: Scope): Promise<Item[]> {
  const place = toScopeKey(scope);
  const items = await readItems(table, ref, await readIds(table, ref, toScopeRange(place)));
  return items.filter((item) => toScopeKey(toRecipient(ref, item).scope) === place);
}

/** Returns the items of those recipients that exist. */
export async function readItems(table: Table, ref: AccountRef, ids: readonly string[]): Promise<Item[]> {
  const items = await table.getMany(unique(ids).map((recipient) => keys.recipient(ref, recipient)));
  return items.filter(isVisible);
}

interface Range {
  readonly from: string;
  readonly to: string;
}

/** Range of all ids in one scope: `~` sorts after every id. */
const toScopeRange = (place: string): Range => ({ from: `${place}#`, to: `${place}#~` });

/** Returns the ranges to read. Jobs of one order have adjacent numbers, so one range covers them. */
function toKeyRanges(jobs: readonly JobIdentity[]): Range[] {
  const numbers = jobs.map(({ jobNumber }) => jobNumber);
  const named = jobs.flatMap(({ orderNumber, orderGroup }) => [
    ...(orderGroup ? [recipientPlace.orderGroup(orderGroup)] : []),
    ...(orderNumber ? [recipientPlace.orderNumber(orderNumber)] : []),
  ]);
  return [
    ...unique([recipientPlace.account(), ...named]).map(toScopeRange),
    {
      from: recipientPlace.job(Math.min(...numbers)),
      to: `${recipientPlace.job(Math.max(...numbers))}#~`,
    },
  ];
}

async function readIds(table: Table, ref: AccountRef, range: Range): Promise<string[]> {
  const places = await table.query({ pk: recipientPlacePk(ref), ...range });
  return places.map(({ recipient }) => String(recipient));
}

function matchesScope(scope: Scope, job: JobIdentity): boolean {
  switch (scope.for) {
    case 'account':
      return true;
    case 'orderGroup':
      return scope.orderGroup === job.orderGroup;
    case 'orderNumber':
      return scope.orderNumber === job.orderNumber;
    case 'job':
      return scope.jobNumber === job.jobNumber;
  }
}

/** Returns the sort key prefix of a scope in the partition of pointers. */
export function toScopeKey(scope: Scope): string {
  switch (scope.for) {
    case 'account':
      return recipientPlace.account();
    case 'orderGroup':
      return recipientPlace.orderGroup(scope.orderGroup);
    case 'orderNumber':
      return recipientPlace.orderNumber(scope.orderNumber);
    case 'job':
      return recipientPlace.job(scope.jobNumber);
  }
}

function toPointerWrite(ref: AccountRef, scope: Scope, recipient: string): Write {
  return { put: { ...keys.recipientPlace(ref, toScopeKey(scope), recipient), recipient } };
}

/** Settable fields of a recipient. */
export type RecipientInput = Omit<z.infer<typeof NewRecipient>, 'id'>;

/** Returns the fields of a recipient with a change applied. */
export function applyChange(before: Recipient, change: RecipientUpdate): RecipientInput {
  const { scope, name, email, mobile, locale, zone, channels, kinds, paused } = before;
  const { orderGroup, orderNumber, jobNumber, ...others } = change;
  const named = { orderGroup, orderNumber, jobNumber };
  const isReplaced = Object.values(named).some((value) => value !== undefined && value !== null);
  const former = scopeFields(scope);
  const place = isReplaced ? named : { ...former, ...withoutUndefined(named) };
  return {
    ...{ name, email, mobile, locale, zone, paused },
    ...{ channels: [...channels], kinds: [...kinds] },
    ...withoutUndefined(others),
    ...place,
  };
}

function scopeFields(scope: Scope): Pick<RecipientInput, 'orderGroup' | 'orderNumber' | 'jobNumber'> {
  const { for: _, ...place } = scope;
  return place;
}

function withoutUndefined<T extends object>(fields: T): T {
  return Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined)) as T;
}

/** Validates what the schema cannot: the number by the region's rules, the channels against the addresses, at most one scope. */
export function toRecipientFields(region: string, given: RecipientInput): Checked<RecipientFields> {
  const { name = null, email = null, locale = null, zone = null, paused } = given;
  const scope = toScope(given);
  if (!scope) {
    return reject('At most one of orderGroup, orderNumber and jobNumber must be given');
  }
  const number = given.mobile ? checkMobile(given.mobile, region) : undefined;
  if (number?.kind === 'refused') return reject(`mobile ${number.rule}`);
  const mobile = number?.address ?? null;
  if (email === null && mobile === null) return reject('email must be given where there is no mobile');
  const addresses = { email, sms: mobile };
  const wanted = given.channels ?? channels.filter((channel) => addresses[channel] !== null);
  const missing = wanted.find((channel) => addresses[channel] === null);
  if (missing) {
    const field = missing === 'email' ? 'email' : 'mobile';
    return reject(`${field} is missing; it must be given where channels names ${missing}`);
  }
  const value = {
    ...{ scope, name, email, mobile, locale, zone, paused },
    channels: channels.filter((channel) => wanted.includes(channel)),
    kinds: kindNames.filter((kind) => (given.kinds ?? DEFAULT_KINDS).includes(kind)),
  };
  return { kind: 'checked', value };
}

const reject = (reason: string) => ({ kind: 'refused', reason: `${reason}.` }) as const;

function toScope({ orderGroup, orderNumber, jobNumber }: RecipientInput): Scope | undefined {
  const scopes: Scope[] = [
    ...(orderGroup ? [{ for: 'orderGroup', orderGroup } as const] : []),
    ...(orderNumber ? [{ for: 'orderNumber', orderNumber } as const] : []),
    ...(jobNumber ? [{ for: 'job', jobNumber } as const] : []),
  ];
  return scopes.length > 1 ? undefined : (scopes[0] ?? { for: 'account' });
}

/** Returns the fields of a recipient as attributes. Lists are sorted, so that equal recipients have equal attributes. */
function toAttributes(fields: RecipientFields & { readonly muted?: readonly Channel[] }) {
  const { scope, name, email, mobile, locale, zone, channels, kinds, paused, muted } = fields;
  const place = {
    orderGroup: undefined,
    orderNumber: undefined,
    jobNumber: undefined,
    ...scopeFields(scope),
  };
  const texts = { name, email, mobile, locale, zone };
  const present = Object.entries(texts).map(([field, text]) => [field, text ?? undefined]);
  return {
    ...(Object.fromEntries(present) as { [field: string]: string | undefined }),
    ...{ channels, kinds, paused },
    ...(muted === undefined ? {} : { muted }),
    ...(place as { orderGroup?: string; orderNumber?: string; jobNumber?: number }),
  };
}

/** Returns whether a recipient's item has these attributes. */
function isSame(item: Item, attributes: { readonly [name: string]: unknown }): boolean {
  return Object.entries(attributes).every(
    ([name, value]) => JSON.stringify(item[name]) === JSON.stringify(value),
  );
}

/** The item of the own user keeps its settings, marked `gone`, while upstream wants no notifications. */
const isVisible = (item: Item): boolean => item.gone !== true;

export function toRecipient(ref: AccountRef, item: Item): Recipient {
  const text = (name: string) => (typeof item[name] === 'string' ? item[name] : null);
  const { orderGroup, orderNumber, jobNumber } = item as Partial<RecipientInput>;
  return {
    region: ref.region,
    account: ref.account,
    id: item.sk,
    scope: toScope({ orderGroup, orderNumber, jobNumber, paused: false }) ?? { for: 'account' },
    name: text('name'),
    email: text('email'),
    mobile: text('mobile'),
    locale: text('locale') as Locale | null,
    zone: text('zone'),
    channels: (item.channels ?? []) as readonly Channel[],
    kinds: (item.kinds ?? []) as readonly MessageKind[],
    paused: item.paused === true,
    source: item.source === 'upstream' ? 'upstream' : 'manual',
    createdAt: Number(item.createdAt),
    revision: revisionOf(item),
  };
}

// Own user

/** Fields of the own user's recipient that users of Jobwire may set. */
const OWN_FIELDS: readonly string[] = ['locale', 'zone', 'channels', 'kinds', 'paused'];

/** Applies a change to the own user's recipient: any field but the identity. Channels can only be removed. */
function applyOwnUserChange(
  item: Item,
  change: RecipientUpdate,
): Checked<RecipientFields & { readonly muted: readonly Channel[] }> {
  const foreign = Object.entries(change).find(
    ([name, value]) => value !== undefined && !OWN_FIELDS.includes(name),
  );
  if (foreign) {
    return reject(`${foreign[0]} must be changed in the ordering service, for this recipient is its user`);
  }
  const wanted = (item.wanted ?? []) as readonly Channel[];
  const muted = (item.muted ?? []) as readonly Channel[];
  const { channels: requested = wanted.filter((channel) => !muted.includes(channel)) } = change;
  // `null`: all channels that the user wants upstream.
  const kept = requested ?? wanted;
  if (kept.some((channel) => !wanted.includes(channel))) {
    return reject('channels must be among those that the user has chosen in the ordering service');
  }
  const others = muted.filter((channel) => !wanted.includes(channel));
  const before = toRecipient({ region: '', account: '' }, item);
  return {
    kind: 'checked',
    value: {
      ...before,
      locale: change.locale === undefined ? before.locale : change.locale,
      zone: change.zone === undefined ? before.zone : change.zone,
      kinds: change.kinds === undefined ? before.kinds : (change.kinds ?? DEFAULT_KINDS),
      paused: change.paused ?? before.paused,
      channels: wanted.filter((channel) => kept.includes(channel)),
      muted:
        change.channels === undefined
          ? muted
          : [...others, ...wanted.filter((channel) => !kept.includes(channel))],
    },
  };
}

/**
 * Synchronizes the own user's recipient with the user settings upstream, or hides it when the user wants no notifications. Fields that
 * users of Jobwire set are kept. `since` is the time the account enabled this. If it is disabled or deleted since, nothing is written.
 * Returns whether anything was written.
 */
export async function syncOwnUser(
  { table, newId, now }: Pick<NotificationDeps, 'table' | 'newId' | 'now'>,
  ref: AccountRef,
  since: number,
  user: AccountUser,
): Promise<boolean> {
  const mobile = user.mobile === null ? undefined : checkMobile(user.mobile, ref.region);
  const mail = user.emailAddress === null ? undefined : checkEmail(user.emailAddress);
  const addresses = {
    email: mail?.kind === 'checked' ? mail.address : undefined,
    mobile: mobile?.kind === 'checked' ? mobile.address : undefined,
  };
  const isActive = user.active !== false;
  const wanted: Channel[] = [
    ...(isActive && user.receiveEmails === true && addresses.email ? (['email'] as const) : []),
    ...(isActive && user.textNotifyDispatch === true && addresses.mobile ? (['sms'] as const) : []),
  ];
  const name = `${user.firstName ?? ''} ${user.lastName ?? ''}`.replaceAll(/[\p{Cc}\s]+/gu, ' ').trim();
  for (let attempt = 0; attempt < ATTEMPTS; attempt += 1) {
    const before = await table.get(keys.recipient(ref, OWN_USER));
    if (!before && wanted.length === 0) return false;
    const muted = (before?.muted ?? []) as readonly Channel[];
    const gone = wanted.length === 0 ? true : undefined;
    const synced = {
      // A hidden recipient keeps no personal data of the user.
      name: gone ? undefined : name.slice(0, 200) || undefined,
      email: wanted.includes('email') ? addresses.email : undefined,
      mobile: wanted.includes('sms') ? addresses.mobile : undefined,
      wanted,
      channels: wanted.filter((channel) => !muted.includes(channel)),
      gone,
    };
    if (before && isSame(before, synced)) return false;
    const at = now();
    const item: Item = {
      ...keys.recipient(ref, OWN_USER),
      ...{ kinds: DEFAULT_KINDS, paused: false, muted, createdAt: at },
      ...before,
      ...synced,
      ...{ source: 'upstream', revision: before ? revisionOf(before) + 1 : 1, changedAt: at },
    };
    const place = toPointerWrite(ref, { for: 'account' }, OWN_USER);
    const written = await table.transact(
      [
        { put: item, when: before ? [revisionStill(before)] : [['pk', 'absent']] },
        gone ? { delete: keys.recipientPlace(ref, recipientPlace.account(), OWN_USER) } : place,
        { check: keys.account(ref), when: [['ownUserSince', '=', since]] },
      ],
      newId(),
    );
    if (written.done) return true;
    if (written.failed.includes(2)) return false;
  }
  return false;
}

function isExpected(item: Item, { revision = revisionOf(item) }: Expectation): boolean {
  return revision === revisionOf(item);
}

function newRecipientId(newId: () => string): string {
  return `r-${newId()
    .replace(/[^a-z0-9]/gi, '')
    .toLowerCase()
    .slice(0, 24)}`;
}

const unknownRecipient = (recipient: string): Refusal => ({
  kind: 'unknown',
  reason: `There is no recipient "${recipient}".`,
});
const idTaken = (recipient: string): Refusal => ({
  kind: 'conflict',
  reason: `id must be new, and there is a recipient "${recipient}" already.`,
});
const modifiedConcurrently = (recipient: string): Refusal => ({
  kind: 'conflict',
  why: 'changed',
  reason: `The recipient "${recipient}" was changed meanwhile; read it again.`,
});
