/**
 * Recipients: who is notified, of which jobs, by which channels. A recipient is stored in the partition of its account, together with a
 * pointer under its scope. Both are written in one transaction, so that no recipient is found in the wrong scope.
 */
import type { ResourceGenerators } from '../delivery/endpoint-edits.ts';
import {
  alreadyExists,
  conflict,
  type Expectation,
  getRevision,
  hasAttributes,
  modified,
  newResourceId,
  notFound,
  type Rejection,
  revisionUnchanged,
} from '../resources.ts';
import { type AccountRef, keys, recipientPk } from '../storage/schema.ts';
import type { Item, Table, Write } from '../storage/table.ts';
import { checkInput } from '../validation.ts';
import { NewRecipient, RecipientUpdate } from './notification-input.ts';
import { applyOwnUserChange } from './own-user.ts';
import {
  ATTEMPTS,
  applyChange,
  type RecipientFields,
  toAttributes,
  toPointerWrite,
  toRecipient,
  toRecipientFields,
  toScopeKey,
} from './recipient-fields.ts';
import { isVisible, toRecipientSearchItems, toSearchWrites } from './recipient-search.ts';
import type { Recipient } from './records.ts';
import { type NotificationDeps, unknownAccount } from './settings.ts';
import type { Channel } from './types.ts';
import { createAddressSealer } from './unsubscribe.ts';

/** Result of creating a recipient. */
export type CreatedRecipient = { readonly kind: 'created'; readonly recipient: Recipient };

/** Result of changing a recipient. */
export type ChangedRecipient = { readonly kind: 'changed'; readonly recipient: Recipient };

/** Creates a recipient. A repeated request with the same fields returns the recipient that the first one created. */
export async function createRecipient(
  deps: NotificationDeps,
  ref: AccountRef,
  input: unknown,
  generators: Pick<ResourceGenerators, 'newId'> = deps,
): Promise<CreatedRecipient | Rejection> {
  const checked = checkInput(NewRecipient, input);
  if (checked.kind === 'rejected') return checked;
  /** Identifies the creation when the request is repeated. */
  const creation = generators.newId();
  const { id = newResourceId('r', generators.newId), ...given } = checked.value;
  const fields = toRecipientFields(ref.region, given);
  if (fields.kind === 'rejected') return fields;
  if (!(await deps.table.get(keys.recipient(ref, id))) && (await readRemainingCapacity(deps.table, ref)) < 1)
    return limitReached(ref);
  return insertRecipient(deps, ref, id, fields.value, creation);
}

/** Returns how many more recipients an account can have. Reads all of them: recipients are seldom created. */
export async function readRemainingCapacity(table: Table, ref: AccountRef): Promise<number> {
  const existing = await table.query({ pk: recipientPk(ref), limit: MAX_RECIPIENTS });
  return MAX_RECIPIENTS - existing.length;
}

/** Rejection: the account has the maximum number of recipients. */
export const limitReached = ({ account }: AccountRef): Rejection =>
  conflict(`The account "${account}" has the maximum of ${MAX_RECIPIENTS} recipients. Delete some first.`);

/** Maximum number of recipients of one account. Concurrent creations can exceed it by a few. */
export const MAX_RECIPIENTS = 10_000;

/** Stores a recipient that does not exist yet. */
export async function insertRecipient(
  { table, newId, now }: NotificationDeps,
  ref: AccountRef,
  recipient: string,
  fields: RecipientFields,
  creation: string,
): Promise<CreatedRecipient | Rejection> {
  const at = now();
  const item: Item = {
    ...keys.recipient(ref, recipient),
    ...toAttributes(fields),
    ...{ source: 'manual', createdAt: at, changedAt: at, revision: 1, creation },
  };
  const sealer = await createAddressSealer(table, ref.region);
  const written = await table.transact(
    [
      { put: item, when: [['pk', 'absent']] },
      toPointerWrite(ref, fields.scope, recipient),
      { check: keys.account(ref), when: [['secretRef', 'present']] },
      ...toSearchWrites([], toRecipientSearchItems(ref, item, sealer)),
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
  { after, limit = 100 }: { readonly after?: string | undefined; readonly limit?: number | undefined } = {},
): Promise<{ readonly recipients: Recipient[]; readonly next: string | null }> {
  const found: Item[] = [];
  let bound = after === undefined ? {} : { after };
  for (;;) {
    const items = await table.query({ pk: recipientPk(ref), ...bound, limit: limit + 1 });
    found.push(...items.filter(isVisible));
    const last = items.at(-1);
    if (found.length > limit || items.length <= limit || !last) break;
    bound = { after: last.sk };
  }
  const recipients = found.slice(0, limit).map((item) => toRecipient(ref, item));
  return { recipients, next: found.length > limit ? (recipients.at(-1)?.id ?? null) : null };
}

/** Changes a recipient. Absent fields are unchanged, `null` clears a field. */
export async function updateRecipient(
  deps: NotificationDeps,
  ref: AccountRef,
  recipient: string,
  input: unknown,
  expected: Expectation = {},
): Promise<ChangedRecipient | Rejection> {
  const checked = checkInput(RecipientUpdate, input);
  if (checked.kind === 'rejected') return checked;
  for (let attempt = 0; attempt < ATTEMPTS; attempt += 1) {
    const item = await deps.table.get(keys.recipient(ref, recipient));
    if (!item || !isVisible(item)) return unknownRecipient(recipient);
    if (!isExpected(item, expected)) return modifiedConcurrently(recipient);
    const fields =
      item.source === 'upstream'
        ? applyOwnUserChange(item, checked.value)
        : toRecipientFields(ref.region, applyChange(toRecipient(ref, item), checked.value));
    if (fields.kind === 'rejected') return fields;
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
  if (hasAttributes(before, attributes)) return before;
  const item: Item = { ...before, ...attributes, revision: getRevision(before) + 1, changedAt: now() };
  if (dryRun) return item;
  const former = toScopeKey(toRecipient(ref, before).scope);
  const writes: Write[] = [{ put: item, when: [revisionUnchanged(before), ['source', 'present']] }];
  if (former !== toScopeKey(fields.scope)) {
    writes.push(
      { delete: keys.recipientPlace(ref, former, recipient) },
      toPointerWrite(ref, fields.scope, recipient),
    );
  }
  const sealer = await createAddressSealer(table, ref.region);
  const entries = [before, item].map((one) => toRecipientSearchItems(ref, one, sealer));
  writes.push(...toSearchWrites(entries[0], entries[1]));
  const written = await table.transact(writes, newId());
  return written.done ? item : undefined;
}

/** Deletes a recipient. Its pending messages end as turned off. */
export async function deleteRecipient(
  deps: NotificationDeps,
  ref: AccountRef,
  recipient: string,
  expected: Expectation = {},
): Promise<{ readonly kind: 'deleted' } | Rejection> {
  for (let attempt = 0; attempt < ATTEMPTS; attempt += 1) {
    const item = await deps.table.get(keys.recipient(ref, recipient));
    if (!item || !isVisible(item)) return unknownRecipient(recipient);
    if (!isExpected(item, expected)) return modifiedConcurrently(recipient);
    if (item.source === 'upstream') {
      const reason = `The recipient "${recipient}" is the API user of the ordering API and cannot be deleted. Set ownUser to false in the notification settings, or pause the recipient.`;
      return conflict(reason);
    }
    const { scope } = toRecipient(ref, item);
    const sealer = await createAddressSealer(deps.table, ref.region);
    const deleted = await deps.table.transact(
      [
        { delete: keys.recipient(ref, recipient), when: [revisionUnchanged(item), ['source', 'present']] },
        { delete: keys.recipientPlace(ref, toScopeKey(scope), recipient) },
        ...toSearchWrites(toRecipientSearchItems(ref, item, sealer), []),
      ],
      deps.newId(),
    );
    if (deleted.done) return { kind: 'deleted' };
  }
  return modifiedConcurrently(recipient);
}

function isExpected(item: Item, { revision = getRevision(item) }: Expectation): boolean {
  return revision === getRevision(item);
}

const unknownRecipient = (recipient: string): Rejection => notFound(`recipient "${recipient}"`);

const idTaken = (recipient: string): Rejection => alreadyExists('a recipient', recipient);

const modifiedConcurrently = (recipient: string): Rejection => modified(`recipient "${recipient}"`);
