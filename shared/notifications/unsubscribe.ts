/**
 * Links to unsubscribe with: a signed text that says whose messages, and, by a hash, to which address. Nobody can make
 * one, nor read an address from it; but whoever has it can try whether it is of an address that they know or
 * guess. A link holds for good, for mails are read late.
 */
import { createHmac, randomBytes, timingSafeEqual } from 'node:crypto';
import { type AccountRef, keys } from '../table/schema.ts';
import type { Table } from '../table/table.ts';
import { addressHash } from './addresses.ts';
import type { Channel } from './model.ts';

/** What a link says. */
export interface Unsubscription {
  readonly ref: AccountRef;
  readonly channel: Channel;
  readonly hash: string;
}

const TOKEN = /^([a-z0-9-]{1,63})\.([a-z0-9-]{1,63})\.(email|sms)\.([A-Za-z0-9_-]{32})\.([A-Za-z0-9_-]{43})$/;

/** Where somebody unsubscribes an address from an account. The key of the region is made with the first link. */
export async function unsubscribeUrlOf(
  { table, publicUrl }: { readonly table: Table; readonly publicUrl: string },
  ref: AccountRef,
  channel: Channel,
  address: string,
): Promise<string> {
  const said = `${ref.region}.${ref.account}.${channel}.${addressHash(ref.region, channel, address)}`;
  const key = await keyOf(table, ref.region, true);
  return `${publicUrl.replace(/\/+$/, '')}/v1/unsubscribe/${said}.${signature(key, said)}`;
}

/** What a link's text says; `undefined` for one that was not made here. `regions`: those that are served. */
export async function readUnsubscribeToken(
  { table, regions }: { readonly table: Table; readonly regions: readonly string[] },
  token: string,
): Promise<Unsubscription | undefined> {
  const [, region, account, channel, hash, signed] = TOKEN.exec(token) ?? [];
  if (!region || !account || !channel || !hash || !signed || !regions.includes(region)) return undefined;
  const key = await keyOf(table, region, false);
  if (!key) return undefined;
  const expected = signature(key, `${region}.${account}.${channel}.${hash}`);
  if (!timingSafeEqual(Buffer.from(expected), Buffer.from(signed))) return undefined;
  return { ref: { region, account }, channel: channel as Channel, hash };
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
