/**
 * Addresses that get nothing more. Who unsubscribes does so from one account. Mail that comes back, a mark as spam and a number
 * that takes no SMS say something of the address itself, and count for all accounts of the region. Kept by a keyed hash of
 * the address, with as much of it as is shown. What was stored by a plain hash is found by it, and shown by the keyed one.
 *
 * Reasons stand side by side, each with its instant, so that taking one back leaves the others, and nobody who adds one
 * has to read first.
 */
import { checkInput } from '../checks.ts';
import type { Refusal } from '../managed.ts';
import { type AccountRef, cellLog, keys, suppressionPk } from '../table/schema.ts';
import type { Item, Key, Table, Value } from '../table/table.ts';
import { checkMobile, plainAddressHash } from './addresses.ts';
import { checkEmail } from './email-address.ts';
import { maskAddress } from './masks.ts';
import type { Channel, MessageReason } from './model.ts';
import { NewSuppression } from './notification-input.ts';
import { type PeopleDeps, unknownAccount } from './settings.ts';
import { sealedAddressOf } from './unsubscribe.ts';

/** Why an address gets nothing more; the first that there is of them is the one that is told. */
export const suppressionReasons = [
  'unsubscribed',
  'complained',
  'opted_out',
  'bounced',
] as const satisfies readonly MessageReason[];
export type SuppressionReason = (typeof suppressionReasons)[number];

/** An address that gets nothing more. */
export interface Suppression {
  /** What it is known by in an account: the channel and the sealed address. */
  readonly id: string;
  readonly channel: Channel;
  /** Of the address, what everybody may see; null when it came by a link. */
  readonly masked: string | null;
  /** All of them, the one that is told first. */
  readonly reasons: readonly {
    readonly reason: SuppressionReason /** Epoch ms. */;
    readonly since: number;
  }[];
  readonly reason: SuppressionReason;
}

/** An address: as such, or sealed, as links know it. */
export type Addressed =
  | { readonly channel: Channel; readonly address: string }
  | { readonly channel: Channel; readonly sealed: string };

/** When people of the account said it, in a person's name: then the person's link does not take it back. */
const ENTERED = 'enteredAt';
const DEFAULT_PAGE = 100;
const MAX_PAGE = 500;

/** Takes up that somebody asked, in person, to get nothing more from an account. */
export async function createSuppression(
  deps: Pick<PeopleDeps, 'table' | 'now' | 'newId'>,
  ref: AccountRef,
  input: unknown,
): Promise<{ readonly kind: 'created'; readonly suppression: Suppression } | Refusal> {
  const checked = checkInput(NewSuppression, input);
  if (checked.kind === 'refused') return checked;
  const { channel, address } = checked.value;
  const result = channel === 'email' ? checkEmail(address) : checkMobile(address, ref.region);
  if (result.kind === 'refused') return { kind: 'refused', reason: `address ${result.rule}.` };
  const addressed = { channel, address: result.address };
  const done = await suppress(deps, ref, addressed, 'unsubscribed', { [ENTERED]: deps.now() });
  if (done.kind !== 'suppressed') return done;
  // What other accounts brought up is none of this one's business.
  const sealed = await sealOf(deps.table, ref, addressed);
  const own = await deps.table.get(keys.suppression(ref, channel, sealed));
  const suppression = own && toSuppression(channel, sealed, [own]);
  return suppression ? { kind: 'created', suppression } : unknownAccount(ref);
}

/** Sees to it that an address gets nothing more from an account; for reasons that are the address's own, from no account. */
export async function suppress(
  { table, now, newId }: Pick<PeopleDeps, 'table' | 'now' | 'newId'>,
  ref: AccountRef,
  addressed: Addressed,
  reason: SuppressionReason,
  more: { readonly [ENTERED]?: number } = {},
): Promise<{ readonly kind: 'suppressed' } | Refusal> {
  const { channel } = addressed;
  const sealed = await sealOf(table, ref, addressed);
  const masked = 'address' in addressed ? { masked: maskAddress(addressed.address) } : {};
  const set = { [reason]: now(), ...masked, ...more };
  // What is known of the address is so whether or not the account is still there.
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
 * Takes back that somebody wants nothing more from an account, for whoever has a link. False: people of the account have
 * entered it, and only they can take it back. What is known of the address itself stays.
 */
export async function resubscribe(
  { table }: Pick<PeopleDeps, 'table'>,
  ref: AccountRef,
  addressed: Addressed,
): Promise<boolean> {
  const places = await ownPlaces(table, ref, addressed);
  const items = await table.getMany(places);
  if (items.some((item) => item[ENTERED] !== undefined)) return false;
  for (const item of items) await takeBack(table, item, ['unsubscribed']);
  return true;
}

/** Whether an address gets nothing more from an account because somebody said so, and whether people of the account entered it. */
export async function unsubscriptionOf(
  table: Table,
  ref: AccountRef,
  addressed: Addressed,
): Promise<{ readonly entered: boolean } | undefined> {
  const items = await table.getMany(await ownPlaces(table, ref, addressed));
  const said = items.some((item) => reasonsOf(item).some(({ reason }) => reason === 'unsubscribed'));
  return said ? { entered: items.some((item) => item[ENTERED] !== undefined) } : undefined;
}

/**
 * Lets an address get messages again from an account; what was the address's own counts for no account of the region any more.
 * An account can take back what its own messages brought up; `whole`: and what those of others did.
 */
export async function liftSuppression(
  { table }: Pick<PeopleDeps, 'table'>,
  ref: AccountRef,
  suppression: string,
  { whole = false }: { readonly whole?: boolean } = {},
): Promise<{ readonly kind: 'lifted' } | Refusal> {
  const place = placeOf(suppression);
  const found = place ? await table.getMany(await allPlaces(table, ref, place)) : [];
  const visible = found.filter(({ pk }) => whole || pk === suppressionPk(ref));
  const reasons = visible.flatMap(reasonsOf).map(({ reason }) => reason);
  if (reasons.length === 0) return { kind: 'unknown', reason: 'There is no such suppression.' };
  for (const item of found) await takeBack(table, item, reasons);
  return { kind: 'lifted' };
}

/** What there is against an address, from an account's side; `undefined`: nothing. */
export async function suppressionOf(
  table: Table,
  ref: AccountRef,
  channel: Channel,
  address: string,
): Promise<Suppression | undefined> {
  return (await suppressionsOf(table, [{ ref, channel, address }]))[0];
}

/** What there is against each of many addresses, in their order. */
export async function suppressionsOf(
  table: Table,
  asked: readonly { readonly ref: AccountRef; readonly channel: Channel; readonly address: string }[],
): Promise<(Suppression | undefined)[]> {
  const places = await Promise.all(
    asked.map(async ({ ref, channel, address }) => {
      const sealed = await sealOf(table, ref, { channel, address });
      return {
        channel,
        sealed,
        keys: placesOf(ref, channel, [sealed, plainAddressHash(ref.region, channel, address)]),
      };
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

/** A page of what an account's own messages and recipients have brought up, after the one that is named. */
export async function listSuppressions(
  table: Table,
  ref: AccountRef,
  {
    after,
    limit = DEFAULT_PAGE,
  }: { readonly after?: string | undefined; readonly limit?: number | undefined } = {},
): Promise<{ readonly suppressions: Suppression[]; readonly next: string | null }> {
  const most = Math.min(limit, MAX_PAGE);
  const place = after === undefined ? undefined : placeOf(after);
  // In the order of their names: those that were stored by a plain hash come under another one than they are shown by.
  const stored = await table.query({ pk: suppressionPk(ref) });
  const nameOf = ({ sk }: Key) => sk.split('#')[1] ?? '';
  const seal = stored.some((item) => isPlain(nameOf(item))) && (await sealedAddressOf(table, ref.region));
  const shown = stored
    .map((item) => {
      const [channel = ''] = item.sk.split('#');
      const name = nameOf(item);
      const sealed = seal && isPlain(name) ? seal({ plain: name }) : name;
      return { item, channel: channel as Channel, sealed, sk: keys.suppression(ref, channel, sealed).sk };
    })
    .sort((a, b) => (a.sk < b.sk ? -1 : 1));
  const from = place && keys.suppression(ref, place.channel, place.sealed).sk;
  const left = shown.filter(({ sk }) => from === undefined || sk > from);
  const suppressions = left
    .slice(0, most)
    .flatMap(({ item, channel, sealed }) => toSuppression(channel, sealed, [item]) ?? []);
  return { suppressions, next: left.length > most ? (suppressions.at(-1)?.id ?? null) : null };
}

/** Where something against an address can stand: in the account, and for all accounts of the region. */
function placesOf(ref: AccountRef, channel: Channel, names: readonly string[]): Key[] {
  return names.flatMap((name) => [
    keys.suppression(ref, channel, name),
    keys.suppression(cellLog(ref.region), channel, name),
  ]);
}

/** The same by the sealed address alone: what was stored by a plain hash has to be looked for. */
async function allPlaces(
  table: Table,
  ref: AccountRef,
  { channel, sealed }: { readonly channel: Channel; readonly sealed: string },
): Promise<Key[]> {
  const stored = await table.query({ pk: suppressionPk(ref), from: `${channel}#`, to: `${channel}#~` });
  const plain = stored.map(({ sk }) => sk.slice(channel.length + 1)).filter(isPlain);
  if (plain.length === 0) return placesOf(ref, channel, [sealed]);
  const seal = await sealedAddressOf(table, ref.region);
  return placesOf(ref, channel, [sealed, ...plain.filter((name) => seal({ plain: name }) === sealed)]);
}

/** Where an account can have something against an address. */
async function ownPlaces(table: Table, ref: AccountRef, addressed: Addressed): Promise<Key[]> {
  const sealed = await sealOf(table, ref, addressed);
  const places = await allPlaces(table, ref, { channel: addressed.channel, sealed });
  return places.filter(({ pk }) => pk === suppressionPk(ref));
}

/** Takes reasons back. An item without any says nothing, and goes unless somebody adds one at that moment. */
async function takeBack(table: Table, { pk, sk }: Key, reasons: readonly SuppressionReason[]): Promise<void> {
  const key = { pk, sk };
  const set = {
    ...Object.fromEntries(reasons.map((reason) => [reason, undefined])),
    ...(reasons.includes('unsubscribed') ? { [ENTERED]: undefined } : {}),
  };
  const left = await table.write({ update: key, set, when: [['pk', 'present']] });
  if (!left.done || (left.item && reasonsOf(left.item).length > 0)) return;
  await table.write({
    delete: key,
    when: suppressionReasons.map((reason) => [reason, 'absent'] as const),
  });
}

async function sealOf(table: Table, { region }: AccountRef, addressed: Addressed): Promise<string> {
  return 'sealed' in addressed ? addressed.sealed : (await sealedAddressOf(table, region))(addressed);
}

function placeOf(id: string): { readonly channel: Channel; readonly sealed: string } | undefined {
  const [, channel, sealed] = /^(email|sms)-([A-Za-z0-9_-]{43})$/.exec(id) ?? [];
  return channel && sealed ? { channel: channel as Channel, sealed } : undefined;
}

/** Whether a text can be the id of a suppression. */
export const isSuppressionId = (text: string): boolean => placeOf(text) !== undefined;

/** Whether an address was stored by a plain hash: that is shorter. */
const isPlain = (name: string): boolean => name.length < 43;

function reasonsOf(item: { readonly [name: string]: Value | undefined }): Suppression['reasons'] {
  return suppressionReasons.flatMap((reason) => {
    const since = item[reason];
    return typeof since === 'number' ? [{ reason, since }] : [];
  });
}

function toSuppression(channel: Channel, sealed: string, items: readonly Item[]): Suppression | undefined {
  const all = items.flatMap(reasonsOf);
  const reasons = suppressionReasons.flatMap((reason) => all.find((one) => one.reason === reason) ?? []);
  const [told] = reasons;
  if (!told) return undefined;
  const masked = items.map((item) => item.masked).find((text) => typeof text === 'string');
  return { id: `${channel}-${sealed}`, channel, masked: masked ?? null, reasons, reason: told.reason };
}
