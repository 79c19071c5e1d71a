/** Entries of recipients in the search index: by name, and by a keyed hash of their addresses. */
import type { AccountRef } from '../storage/schema.ts';
import { foldSearchText, toSearchItem } from '../storage/search-index.ts';
import type { Item, Write } from '../storage/table.ts';
import type { Channel } from './types.ts';

/** The item of the own user keeps its settings, marked `gone`, while upstream wants no notifications. */
export const isVisible = (item: Item): boolean => item.gone !== true;

/** Maximum number of words of a name with which a search can begin. */
const MAX_WORDS = 5;

/** Returns the texts by which a name is found: the name from each of its first words on. */
export function toNameTexts(name: string): string[] {
  const words = foldSearchText(name).split(' ');
  return words.slice(0, MAX_WORDS).map((_, at) => words.slice(at).join(' '));
}

/** Seals an address of the region: see `createAddressSealer`. */
export type AddressSealer = (of: { readonly channel: Channel; readonly address: string }) => string;

/**
 * Returns the entries of a recipient's item. Without a sealer, there are none of addresses. The recipient that represents the
 * API user never has those: polls write it, and they cannot read the key.
 */
export function toRecipientSearchItems(ref: AccountRef, item: Item, sealer?: AddressSealer): Item[] {
  if (!isVisible(item)) return [];
  const { name, email, mobile, source } = item;
  const seal = source === 'upstream' ? undefined : sealer;
  const sealed = [
    typeof email === 'string' ? seal?.({ channel: 'email', address: email }) : undefined,
    typeof mobile === 'string' ? seal?.({ channel: 'sms', address: mobile }) : undefined,
  ];
  return [
    ...(typeof name === 'string' ? toNameTexts(name) : []).map((text) =>
      toSearchItem(ref, 'recipient', text, item.sk),
    ),
    ...sealed.map((text) => (text === undefined ? undefined : toSearchItem(ref, 'address', text, item.sk))),
  ].filter((entry) => entry !== undefined);
}

/** Returns the writes that replace entries: of those in both, none. */
export function toSearchWrites(former: readonly Item[] = [], entries: readonly Item[] = []): Write[] {
  const toMap = (items: readonly Item[]) => new Map(items.map((item) => [`${item.pk} ${item.sk}`, item]));
  const [before, after] = [toMap(former), toMap(entries)];
  return [
    ...[...after].filter(([key]) => !before.has(key)).map(([, item]) => ({ put: item })),
    ...[...before].filter(([key]) => !after.has(key)).map(([, { pk, sk }]) => ({ delete: { pk, sk } })),
  ];
}
