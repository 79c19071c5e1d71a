/**
 * Unsubscribe links: a signed token of the account, a keyed hash of the address, and the day of issue. Without the key it is impossible to
 * forge a link, to read an address from it, or to test addresses against it. A link is valid for {@link LINK_DAYS} days.
 */
import { createHmac, randomBytes, timingSafeEqual } from 'node:crypto';
import { type AccountRef, keys } from '../storage/schema.ts';
import type { Table } from '../storage/table.ts';
import { normalizeAddress } from './email-address.ts';
import type { Channel } from './types.ts';

/** Content of a link. */
export interface Unsubscription {
  readonly ref: AccountRef;
  readonly channel: Channel;
  /** The address, sealed: see {@link createAddressSealer}. */
  readonly sealed: string;
}

/** Validity of a link, days. It is long because mails are read late and kept indefinitely. */
export const LINK_DAYS = 400;
/** In place of a token, in the link of a preview or a test e-mail. It is no valid token. */
export const PREVIEW_TOKEN = 'preview';
const DAY_MS = 86_400_000;
const TOKEN =
  /^(([a-z0-9-]{1,63})\.([a-z0-9-]{1,63})\.(email|sms)\.([A-Za-z0-9_-]{43})\.(\d{5,6}))\.([A-Za-z0-9_-]{43})$/;

/** Returns the URL by which an address unsubscribes from an account. The first link of a region creates its key. */
export async function createUnsubscribeUrl(
  {
    table,
    publicUrl,
    now,
  }: { readonly table: Table; readonly publicUrl: string; readonly now: () => number },
  ref: AccountRef,
  channel: Channel,
  address: string,
): Promise<string> {
  const sealed = (await createAddressSealer(table, ref.region))({ channel, address });
  const text = `${ref.region}.${ref.account}.${channel}.${sealed}.${Math.floor(now() / DAY_MS)}`;
  const key = await readLinkKey(table, ref.region, true);
  return `${publicUrl.replace(/\/+$/, '')}/v1/unsubscribe/${text}.${sign(key, text)}`;
}

/**
 * Parses a link's token. `undefined` if it is forged or expired. `regions`: the regions served here.
 */
export async function readUnsubscribeToken(
  {
    table,
    regions,
    now,
  }: { readonly table: Table; readonly regions: readonly string[]; readonly now: () => number },
  token: string,
): Promise<Unsubscription | undefined> {
  const [, text, region, account, channel, sealed, day, signed] = TOKEN.exec(token) ?? [];
  if (!text || !region || !account || !sealed || !signed || !regions.includes(region)) return undefined;
  const key = await readLinkKey(table, region, false);
  if (!key || !timingSafeEqual(Buffer.from(sign(key, text)), Buffer.from(signed))) return undefined;
  if (now() >= (Number(day) + LINK_DAYS) * DAY_MS) return undefined;
  return { ref: { region, account }, channel: channel as Channel, sealed };
}

/**
 * Returns a function that seals addresses of a region for places where plain text is not allowed: 43 characters, by {@link createSealer}.
 */
export async function createAddressSealer(
  table: Table,
  region: string,
): Promise<(of: { readonly channel: Channel; readonly address: string }) => string> {
  const seal = await createSealer(table, region);
  return ({ channel, address }) => seal(`${region}#${channel}#${normalizeAddress(channel, address)}`);
}

/**
 * Returns a function that maps an address of a region to a stable name. Without the key the address cannot be found by exhaustive search,
 * unlike with an unkeyed hash. The key is that of the links.
 */
export async function createSealer(table: Table, region: string): Promise<(address: string) => string> {
  const key = Buffer.from(await readLinkKey(table, region, true), 'base64url');
  return (address) => createHmac('sha256', key).update(`address ${address}`).digest('base64url');
}

/** As {@link createAddressSealer}, but without creating the key. `undefined`: there is no key yet, so nothing is sealed. */
export async function findAddressSealer(
  table: Table,
  region: string,
): Promise<Awaited<ReturnType<typeof createAddressSealer>> | undefined> {
  const key = await readLinkKey(table, region, false);
  return key === undefined ? undefined : createAddressSealer(table, region);
}

/** Signs a token. The prefix separates these signatures from other uses of the key. */
function sign(key: string, text: string): string {
  return createHmac('sha256', Buffer.from(key, 'base64url'))
    .update(`unsubscribe ${text}`)
    .digest('base64url');
}

/** Keys never change, so they are read once. */
const known = new WeakMap<Table, Map<string, string>>();

async function readLinkKey(table: Table, region: string, make: true): Promise<string>;
async function readLinkKey(table: Table, region: string, make: boolean): Promise<string | undefined>;
async function readLinkKey(table: Table, region: string, make: boolean): Promise<string | undefined> {
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
  if (key === undefined && make)
    throw new Error(`The key for unsubscribe links of ${region} could not be stored.`);
  if (key !== undefined) cache.set(region, key);
  return key;
}
