/**
 * Links to unsubscribe with: a signed text that says whose messages, by a keyed hash to which address, and since when. Nobody
 * without the key can make one, read an address from it, or try out addresses on it. A link holds for {@link LINK_DAYS} days.
 */
import { createHmac, randomBytes, timingSafeEqual } from 'node:crypto';
import { type AccountRef, keys } from '../table/schema.ts';
import type { Table } from '../table/table.ts';
import { plainAddressHash } from './addresses.ts';
import type { Channel } from './model.ts';

/** What a link says. */
export interface Unsubscription {
  readonly ref: AccountRef;
  readonly channel: Channel;
  /** The address, sealed: see {@link sealedAddressOf}. */
  readonly sealed: string;
}

/** How long a link holds: mails are read late, and are kept for good. */
export const LINK_DAYS = 400;
const DAY_MS = 86_400_000;
const TOKEN =
  /^(([a-z0-9-]{1,63})\.([a-z0-9-]{1,63})\.(email|sms)\.(?:([A-Za-z0-9_-]{43})\.(\d{5,6})|([A-Za-z0-9_-]{32})))\.([A-Za-z0-9_-]{43})$/;

/** Where somebody unsubscribes an address from an account. The key of the region is made with the first link. */
export async function unsubscribeUrlOf(
  {
    table,
    publicUrl,
    now,
  }: { readonly table: Table; readonly publicUrl: string; readonly now: () => number },
  ref: AccountRef,
  channel: Channel,
  address: string,
): Promise<string> {
  const sealed = (await sealedAddressOf(table, ref.region))({ channel, address });
  const text = `${ref.region}.${ref.account}.${channel}.${sealed}.${Math.floor(now() / DAY_MS)}`;
  const key = await keyOf(table, ref.region, true);
  return `${publicUrl.replace(/\/+$/, '')}/v1/unsubscribe/${text}.${signature(key, text)}`;
}

/**
 * What a link's text says; `undefined` for one that was not made here or is too old. Links of the first form, with a plain hash
 * and without a day, hold for good. `regions`: those that are served.
 */
export async function readUnsubscribeToken(
  {
    table,
    regions,
    now,
  }: { readonly table: Table; readonly regions: readonly string[]; readonly now: () => number },
  token: string,
): Promise<Unsubscription | undefined> {
  const [, text, region, account, channel, sealed, day, plain, signed] = TOKEN.exec(token) ?? [];
  if (!text || !region || !account || !channel || !signed || !regions.includes(region)) return undefined;
  const key = await keyOf(table, region, false);
  if (!key || !timingSafeEqual(Buffer.from(signature(key, text)), Buffer.from(signed))) return undefined;
  if (day !== undefined && now() >= (Number(day) + LINK_DAYS) * DAY_MS) return undefined;
  const ref = { region, account };
  if (sealed !== undefined) return { ref, channel: channel as Channel, sealed };
  return plain === undefined
    ? undefined
    : { ref, channel: channel as Channel, sealed: (await addressSealOf(table, region))(plain) };
}

/** An address, or the plain hash of one that was stored before addresses were sealed. */
type Sealable = { readonly channel: Channel; readonly address: string } | { readonly plain: string };

/** Gives what an address of a region is known by where it must not stand itself: 43 characters, by {@link addressSealOf}. */
export async function sealedAddressOf(table: Table, region: string): Promise<(of: Sealable) => string> {
  const seal = await addressSealOf(table, region);
  return (of) => seal('plain' in of ? of.plain : plainAddressHash(region, of.channel, of.address));
}

/**
 * Makes names of addresses for a region: the same address has always the same one, and nobody without the key finds the address
 * by trying out all there are, as with a plain hash. The key is that of the links.
 */
export async function addressSealOf(table: Table, region: string): Promise<(address: string) => string> {
  const key = Buffer.from(await keyOf(table, region, true), 'base64url');
  return (address) => createHmac('sha256', key).update(`address ${address}`).digest('base64url');
}

/** It signs links of this kind, and nothing else that it is used for. */
function signature(key: string, said: string): string {
  return createHmac('sha256', Buffer.from(key, 'base64url'))
    .update(`unsubscribe ${said}`)
    .digest('base64url');
}

/** Keys never change, so they are read once. */
const known = new WeakMap<Table, Map<string, string>>();

async function keyOf(table: Table, region: string, make: true): Promise<string>;
async function keyOf(table: Table, region: string, make: boolean): Promise<string | undefined>;
async function keyOf(table: Table, region: string, make: boolean): Promise<string | undefined> {
  const cache = known.get(table) ?? new Map<string, string>();
  known.set(table, cache);
  const cached = cache.get(region);
  if (cached !== undefined) return cached;
  const place = keys.linkKey(region);
  let item = await table.get(place);
  if (!item && make) {
    const key = randomBytes(32).toString('base64url');
    item = (await table.write({ put: { ...place, key }, when: [['pk', 'absent']] })).item;
  }
  const key = typeof item?.key === 'string' ? item.key : undefined;
  if (key === undefined && make) throw new Error(`There is no key for the links of ${region}.`);
  if (key !== undefined) cache.set(region, key);
  return key;
}
