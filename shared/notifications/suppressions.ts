/**
 * Suppressions: addresses that are sent nothing. Unsubscribing concerns one account. A bounce, a complaint and a number that accepts no SMS
 * concern the address itself, and count for all accounts of the cell. Stored by a keyed hash of the address, with its masked form.
 *
 * Reasons are separate attributes, each with its time. So removing one keeps the others, and adding one needs no read.
 */

import { notFound, type Rejection, rejected } from '../resources.ts';
import { type AccountRef, cellLog, keys, suppressionPk } from '../storage/schema.ts';
import type { Item, Key, Table, Value } from '../storage/table.ts';
import { checkInput } from '../validation.ts';
import { checkMobile } from './addresses.ts';
import { checkEmail } from './email-address.ts';
import { maskAddress } from './masking.ts';
import { NewSuppression } from './notification-input.ts';
import type { Suppression } from './notification-views.ts';
import { type NotificationDeps, unknownAccount } from './settings.ts';
import { type Channel, type SuppressionReason, suppressionReasons } from './types.ts';
import { createAddressSealer } from './unsubscribe.ts';

/** An address: in plain text, or sealed as in links. */
export type Addressed =
  | { readonly channel: Channel; readonly address: string }
  | { readonly channel: Channel; readonly sealed: string };

/**
 * Time at which a user of the account entered the suppression on behalf of the person. The person's link cannot lift such a suppression.
 */
const ENTERED = 'enteredAt';

/** Records a person's request to receive nothing more from an account. */
export async function createSuppression(
  deps: Pick<NotificationDeps, 'table' | 'now' | 'newId'>,
  ref: AccountRef,
  input: unknown,
): Promise<{ readonly kind: 'created'; readonly suppression: Suppression } | Rejection> {
  const checked = checkInput(NewSuppression, input);
  if (checked.kind === 'rejected') return checked;
  const { channel, address } = checked.value;
  const result = channel === 'email' ? checkEmail(address) : checkMobile(address, ref.region);
  if (result.kind === 'rejected') return rejected(`address ${result.rule}.`);
  const addressed = { channel, address: result.address };
  const done = await suppress(deps, ref, addressed, 'unsubscribed', { [ENTERED]: deps.now() });
  if (done.kind !== 'suppressed') return done;
  // Reasons that other accounts caused are not shown to this one.
  const sealed = await toSealed(deps.table, ref, addressed);
  const own = await deps.table.get(keys.suppression(ref, channel, sealed));
  const suppression = own && toSuppression(channel, sealed, [own]);
  return suppression ? { kind: 'created', suppression } : unknownAccount(ref);
}

/** Suppresses an address: for one account, or for all accounts if the reason concerns the address itself. */
export async function suppress(
  { table, now, newId }: Pick<NotificationDeps, 'table' | 'now' | 'newId'>,
  ref: AccountRef,
  addressed: Addressed,
  reason: SuppressionReason,
  more: { readonly [ENTERED]?: number } = {},
): Promise<{ readonly kind: 'suppressed' } | Rejection> {
  const { channel } = addressed;
  const sealed = await toSealed(table, ref, addressed);
  const masked = 'address' in addressed ? { masked: maskAddress(addressed.address) } : {};
  const set = { [reason]: now(), ...masked, ...more };
  // Facts about the address count whether or not the account still exists.
  if (reason !== 'unsubscribed') {
    await table.write({ update: keys.suppression(cellLog(ref.region), channel, sealed), set });
  }
  const done = await table.transact(
    [
      { update: keys.suppression(ref, channel, sealed), set },
      { check: keys.account(ref), when: [['secretRef', 'present']] },
    ],
    newId(),
  );
  return done.done ? { kind: 'suppressed' } : unknownAccount(ref);
}

/**
 * Lifts an unsubscription through a link. Returns false if a user of the account entered it: then only users of the account can lift it.
 * Reasons of the address itself stay.
 */
export async function resubscribe(
  { table }: Pick<NotificationDeps, 'table'>,
  ref: AccountRef,
  addressed: Addressed,
): Promise<boolean> {
  const item = await readOwnItem(table, ref, addressed);
  if (item?.[ENTERED] !== undefined) return false;
  if (item) await removeReasons(table, item, ['unsubscribed']);
  return true;
}

/** Returns whether an address has unsubscribed from an account, and whether a user of the account entered that. */
export async function findUnsubscription(
  table: Table,
  ref: AccountRef,
  addressed: Addressed,
): Promise<{ readonly entered: boolean } | undefined> {
  const item = await readOwnItem(table, ref, addressed);
  const isUnsubscribed = item && parseReasons(item).some(({ reason }) => reason === 'unsubscribed');
  return isUnsubscribed ? { entered: item[ENTERED] !== undefined } : undefined;
}

/**
 * Lifts the suppression of an address for an account, and the address's own reasons for all accounts of the cell. An account can lift
 * what its own messages caused. With `whole`, also what messages of other accounts caused.
 */
export async function liftSuppression(
  { table }: Pick<NotificationDeps, 'table'>,
  ref: AccountRef,
  suppression: string,
  { whole = false }: { readonly whole?: boolean } = {},
): Promise<{ readonly kind: 'lifted' } | Rejection> {
  const place = parseSuppressionId(suppression);
  const found = place ? await table.getMany(toKeys(ref, place.channel, place.sealed)) : [];
  const visible = found.filter(({ pk }) => whole || pk === suppressionPk(ref));
  const reasons = visible.flatMap(parseReasons).map(({ reason }) => reason);
  if (reasons.length === 0) return notFound('such suppression');
  for (const item of found) await removeReasons(table, item, reasons);
  return { kind: 'lifted' };
}

/** Returns the suppressions of several addresses, in their order. */
export async function findSuppressions(
  table: Table,
  asked: readonly (Addressed & { readonly ref: AccountRef })[],
): Promise<(Suppression | undefined)[]> {
  const places = await Promise.all(
    asked.map(async ({ ref, ...addressed }) => {
      const { channel } = addressed;
      const sealed = await toSealed(table, ref, addressed);
      return { channel, sealed, keys: toKeys(ref, channel, sealed) };
    }),
  );
  const text = ({ pk, sk }: Key) => `${pk} ${sk}`;
  const wanted = new Map(places.flatMap((place) => place.keys).map((key) => [text(key), key]));
  const found = new Map((await table.getMany([...wanted.values()])).map((item) => [text(item), item]));
  return places.map(({ channel, sealed, keys }) =>
    toSuppression(
      channel,
      sealed,
      keys.flatMap((key) => found.get(text(key)) ?? []),
    ),
  );
}

/** Returns a page of the suppressions that an account's own messages and recipients caused, after the named one. */
export async function listSuppressions(
  table: Table,
  ref: AccountRef,
  { after, limit = 100 }: { readonly after?: string | undefined; readonly limit?: number | undefined } = {},
): Promise<{ readonly suppressions: Suppression[]; readonly next: string | null }> {
  const place = after === undefined ? undefined : parseSuppressionId(after);
  const stored = await table.query({
    pk: suppressionPk(ref),
    limit: limit + 1,
    ...(place && { after: keys.suppression(ref, place.channel, place.sealed).sk }),
  });
  const items = stored.slice(0, limit);
  const suppressions = items.flatMap((item) => {
    const [channel, sealed = ''] = item.sk.split('#');
    return toSuppression(channel as Channel, sealed, [item]) ?? [];
  });
  // Of the last item also if it has no reasons: `removeReasons` may have been interrupted.
  const next = stored.length > limit ? items.at(-1)?.sk.replace('#', '-') : undefined;
  return { suppressions, next: next ?? null };
}

/** Returns the keys of possible suppressions of an address: in the account, and for all accounts of the cell. */
function toKeys(ref: AccountRef, channel: Channel, sealed: string): Key[] {
  return [keys.suppression(ref, channel, sealed), keys.suppression(cellLog(ref.region), channel, sealed)];
}

/** Returns an account's own suppression of an address. */
async function readOwnItem(table: Table, ref: AccountRef, addressed: Addressed): Promise<Item | undefined> {
  return table.get(keys.suppression(ref, addressed.channel, await toSealed(table, ref, addressed)));
}

/** Removes reasons. An item without reasons has no effect and is deleted, unless a concurrent request adds one. */
async function removeReasons(
  table: Table,
  { pk, sk }: Key,
  reasons: readonly SuppressionReason[],
): Promise<void> {
  const key = { pk, sk };
  const set = {
    ...Object.fromEntries(reasons.map((reason) => [reason, undefined])),
    ...(reasons.includes('unsubscribed') ? { [ENTERED]: undefined } : {}),
  };
  const left = await table.write({ update: key, set, when: [['pk', 'present']] });
  if (!left.done || (left.item && parseReasons(left.item).length > 0)) return;
  await table.write({
    delete: key,
    when: suppressionReasons.map((reason) => [reason, 'absent'] as const),
  });
}

async function toSealed(table: Table, { region }: AccountRef, addressed: Addressed): Promise<string> {
  return 'sealed' in addressed ? addressed.sealed : (await createAddressSealer(table, region))(addressed);
}

function parseSuppressionId(id: string): { readonly channel: Channel; readonly sealed: string } | undefined {
  const [, channel, sealed] = /^(email|sms)-([A-Za-z0-9_-]{43})$/.exec(id) ?? [];
  return channel && sealed ? { channel: channel as Channel, sealed } : undefined;
}

/** Returns whether a text can be the id of a suppression. */
export const isSuppressionId = (text: string): boolean => parseSuppressionId(text) !== undefined;

function parseReasons(item: { readonly [name: string]: Value | undefined }): Suppression['reasons'] {
  return suppressionReasons.flatMap((reason) => {
    const since = item[reason];
    return typeof since === 'number' ? [{ reason, since }] : [];
  });
}

function toSuppression(channel: Channel, sealed: string, items: readonly Item[]): Suppression | undefined {
  const all = items.flatMap(parseReasons);
  const reasons = suppressionReasons.flatMap((reason) => all.find((one) => one.reason === reason) ?? []);
  const [first] = reasons;
  if (!first) return undefined;
  const address = items.map((item) => item.masked).find((text) => typeof text === 'string') ?? null;
  return { id: `${channel}-${sealed}`, channel, address, ...first, reasons };
}
