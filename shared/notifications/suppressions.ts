/**
 * Addresses that get nothing more. Who unsubscribes does so from one account. Mail that comes back, a mark as spam and a number
 * that takes no SMS say something of the address itself, and count for all accounts of the region. Kept by a hash of the
 * address, with as much of it as is shown.
 *
 * Reasons stand side by side, each with its instant, so that taking one back leaves the others, and nobody who adds one
 * has to read first.
 */
import { checkInput } from '../checks.ts';
import type { Refusal } from '../managed.ts';
import { type AccountRef, cellLog, keys, suppressionPk } from '../table/schema.ts';
import type { Item, Key, Table, Value } from '../table/table.ts';
import { addressHash, checkMobile } from './addresses.ts';
import { checkEmail } from './email-address.ts';
import { maskAddress } from './masks.ts';
import type { Channel, MessageReason } from './model.ts';
import { NewSuppression } from './notification-input.ts';
import { type PeopleDeps, unknownAccount } from './settings.ts';

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
  /** What it is known by in an account: the channel and a hash of the address. */
  readonly id: string;
  readonly channel: Channel;
  /** Of the address, what everybody may see; null when it was only known by its hash. */
  readonly masked: string | null;
  /** All of them, the one that is told first. */
  readonly reasons: readonly {
    readonly reason: SuppressionReason /** Epoch ms. */;
    readonly since: number;
  }[];
  readonly reason: SuppressionReason;
}

/** An address: as such, or by its hash, as links know it. */
export type Addressed =
  | { readonly channel: Channel; readonly address: string }
  | { readonly channel: Channel; readonly hash: string };

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
  const done = await suppress(deps, ref, addressed, 'unsubscribed');
  if (done.kind !== 'suppressed') return done;
  // What other accounts brought up is none of this one's business.
  const hash = hashOf(ref, addressed);
  const own = await deps.table.get(keys.suppression(ref, channel, hash));
  const suppression = own && toSuppression(channel, hash, [own]);
  return suppression ? { kind: 'created', suppression } : unknownAccount(ref);
}

/** Sees to it that an address gets nothing more from an account; for reasons that are the address's own, from no account. */
export async function suppress(
  { table, now, newId }: Pick<PeopleDeps, 'table' | 'now' | 'newId'>,
  ref: AccountRef,
  addressed: Addressed,
  reason: SuppressionReason,
): Promise<{ readonly kind: 'suppressed' } | Refusal> {
  const { channel } = addressed;
  const hash = hashOf(ref, addressed);
  const masked = 'address' in addressed ? { masked: maskAddress(addressed.address) } : {};
  const set = { [reason]: now(), ...masked };
  // What is known of the address is so whether or not the account is still there.
  if (reason !== 'unsubscribed') {
    await table.write({ update: keys.suppression(cellLog(ref.region), channel, hash), set });
  }
  const done = await table.transact(
    [
      { update: keys.suppression(ref, channel, hash), set },
      { check: keys.account(ref), when: [['secretRef', 'present']] },
    ],
    newId(),
  );
  return done.done ? { kind: 'suppressed' } : unknownAccount(ref);
}

/** Takes back that somebody wants nothing more from an account. What is known of the address itself stays. */
export async function resubscribe(
  { table }: Pick<PeopleDeps, 'table'>,
  ref: AccountRef,
  addressed: Addressed,
): Promise<void> {
  await takeBack(table, keys.suppression(ref, addressed.channel, hashOf(ref, addressed)), ['unsubscribed']);
}

/** Whether somebody has said that an address gets nothing more from an account. */
export async function isUnsubscribed(table: Table, ref: AccountRef, addressed: Addressed): Promise<boolean> {
  const item = await table.get(keys.suppression(ref, addressed.channel, hashOf(ref, addressed)));
  return item !== undefined && reasonsOf(item).some(({ reason }) => reason === 'unsubscribed');
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
  const found = place ? await table.getMany(placesOf(ref, place.channel, place.hash)) : [];
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
  const places = asked.map(({ ref, channel, address }) => {
    const hash = addressHash(ref.region, channel, address);
    return { channel, hash, keys: placesOf(ref, channel, hash) };
  });
  const text = ({ pk, sk }: Key) => `${pk} ${sk}`;
  const wanted = new Map(places.flatMap((place) => place.keys).map((key) => [text(key), key]));
  const found = new Map((await table.getMany([...wanted.values()])).map((item) => [text(item), item]));
  return places.map(({ channel, hash, keys }) =>
    toSuppression(
      channel,
      hash,
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
  const bound = place ? { after: keys.suppression(ref, place.channel, place.hash).sk } : {};
  const items = await table.query({ pk: suppressionPk(ref), ...bound, limit: most + 1 });
  const suppressions = items.slice(0, most).flatMap((item) => {
    const [channel = '', hash = ''] = item.sk.split('#');
    return toSuppression(channel as Channel, hash, [item]) ?? [];
  });
  return { suppressions, next: items.length > most ? (suppressions.at(-1)?.id ?? null) : null };
}

/** Where something against an address can stand: in the account, and for all accounts of the region. */
function placesOf(ref: AccountRef, channel: Channel, hash: string): Key[] {
  return [keys.suppression(ref, channel, hash), keys.suppression(cellLog(ref.region), channel, hash)];
}

/** Takes reasons back. An item without any says nothing, and goes unless somebody adds one at that moment. */
async function takeBack(table: Table, { pk, sk }: Key, reasons: readonly SuppressionReason[]): Promise<void> {
  const key = { pk, sk };
  const set = Object.fromEntries(reasons.map((reason) => [reason, undefined]));
  const left = await table.write({ update: key, set, when: [['pk', 'present']] });
  if (!left.done || (left.item && reasonsOf(left.item).length > 0)) return;
  await table.write({
    delete: key,
    when: suppressionReasons.map((reason) => [reason, 'absent'] as const),
  });
}

const hashOf = ({ region }: AccountRef, addressed: Addressed): string =>
  'hash' in addressed ? addressed.hash : addressHash(region, addressed.channel, addressed.address);

function placeOf(id: string): { readonly channel: Channel; readonly hash: string } | undefined {
  const [, channel, hash] = /^(email|sms)-([A-Za-z0-9_-]{32})$/.exec(id) ?? [];
  return channel && hash ? { channel: channel as Channel, hash } : undefined;
}

function reasonsOf(item: { readonly [name: string]: Value | undefined }): Suppression['reasons'] {
  return suppressionReasons.flatMap((reason) => {
    const since = item[reason];
    return typeof since === 'number' ? [{ reason, since }] : [];
  });
}

function toSuppression(channel: Channel, hash: string, items: readonly Item[]): Suppression | undefined {
  const all = items.flatMap(reasonsOf);
  const reasons = suppressionReasons.flatMap((reason) => all.find((one) => one.reason === reason) ?? []);
  const [told] = reasons;
  if (!told) return undefined;
  const masked = items.map((item) => item.masked).find((text) => typeof text === 'string');
  return { id: `${channel}-${hash}`, channel, masked: masked ?? null, reasons, reason: told.reason };
}
