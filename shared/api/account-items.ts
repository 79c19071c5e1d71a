/**
 * The data of an account that moves to another cell, as pages. A page is compressed JSON that only Jobwire reads: items of the table with
 * their keys, which are the same in all cells of a region.
 *
 * Not in it: credentials, tokens, the log, positions of sinks, deliveries and the history of messages. Entries of the search index and pointers to jobs that need attention are derived in the new cell.
 */
import { gunzipSync, gzipSync } from 'node:zlib';
import * as z from 'zod';
import { figureKeys, notificationKeys, peoplePks } from '../accounts/deletion.ts';
import {
  type AccountRef,
  attentionHistoryPk,
  attentionPk,
  groupPk,
  indexPk,
  keys,
  messagePk,
  snapshotPk,
  suppressionPk,
} from '../storage/schema.ts';
import { estimateSize, type Item, type Key, type Query, type Table, type Value } from '../storage/table.ts';
import { PROJECTION_VERSION } from '../tracking/views.ts';
import { isId } from '../validation.ts';

/** Version of the pages. */
const FORMAT = 1;
/** Size of the items of a page (bytes). One item more can be in it. */
const PAGE_BYTES = 300_000;
const ITEMS_AT_ONCE = 50;
/** Maximum size of a page that is not compressed (bytes). */
const MAX_TEXT_BYTES = 8_000_000;
/** Attributes of Head that belong to the log, and to a move from the cell. */
const LOG_ATTRIBUTES = ['epoch', 'sequence', 'eventsExpireAt', 'former', 'closed', 'heldTo', 'releasedTo'];
/** Attributes of Status that belong to the schedule of a cell. */
const SCHEDULE_ATTRIBUTES = ['revision', 'recordRevision', 'nextPollAt', 'duePk', 'dueSk', 'claimedAt'];

const Attributes = z.record(z.string(), z.custom<Value | undefined>());
const Page = z.object({
  format: z.literal(FORMAT),
  region: z.string(),
  account: z.string().refine(isId),
  /** Cursor of the end of the log. */
  end: z.string(),
  /** In the first page. */
  begin: z
    .object({
      projectionVersion: z.int(),
      pollIntervalSeconds: z.int(),
      paused: z.boolean(),
      attributes: Attributes,
      head: Attributes,
      status: Attributes,
      /** Key of the stored addresses, if there are any. */
      linkKey: z.string().optional(),
    })
    .optional(),
  items: z.array(z.looseObject({ pk: z.string(), sk: z.string() })),
  last: z.boolean(),
});

/** A page with its items. */
export type AccountPage = Omit<z.infer<typeof Page>, 'items'> & { readonly items: readonly Item[] };

/** A place in several partitions that are read one after the other. */
export interface Place {
  /** Index of the partition. */
  readonly part: number;
  /** Sort key of the last item in it that was processed. Empty: none. */
  readonly after: string;
}

/** Maximum size of a sort key in DynamoDB. */
const MAX_KEY_BYTES = 1024;

/** Returns whether a text can be the `next` of a page. */
export function isPagePlace(text: string): boolean {
  const { part, after } = parsePlace(text);
  return part < listRanges({ region: '', account: '' }).length && Buffer.byteLength(after) <= MAX_KEY_BYTES;
}

/** Parses a text of {@link formatPlace}. Any other value is the beginning. */
export function parsePlace(text: unknown): Place {
  const [, part = '0', after = ''] = /^(\d+):(.*)$/s.exec(String(text)) ?? [];
  return { part: Number(part), after };
}

/** Returns a place as a text, from which a later request continues. */
export const formatPlace = ({ part, after }: Place): string => `${part}:${after}`;

/** Returns the start of a query of the partition. */
export const toStart = ({ after }: Place): { readonly after?: string } => (after === '' ? {} : { after });

/** Returns the place after items that were processed. `isLast`: the partition has no further items. */
export const advance = (place: Place, items: readonly Item[], isLast: boolean): Place =>
  isLast ? { part: place.part + 1, after: '' } : { ...place, after: items.at(-1)?.sk ?? place.after };

/** Returns the page after `after`, and the place after which the next one begins (`null`: none). */
export async function readAccountPage(
  table: Table,
  ref: AccountRef,
  end: string,
  after: string | undefined,
  now: number,
): Promise<{ readonly data: string; readonly next: string | null }> {
  const parts = listRanges(ref);
  const items: Item[] = [];
  let place = parsePlace(after);
  let bytes = 0;
  for (let range = parts[place.part]; range && bytes < PAGE_BYTES; range = parts[place.part]) {
    const found = await table.query({ ...range, limit: ITEMS_AT_ONCE, ...toStart(place) });
    let taken = 0;
    for (const item of found) {
      if (bytes >= PAGE_BYTES) break;
      taken += 1;
      if (item.pk === indexPk(ref) && item.sk === keys.head(ref).sk) continue;
      // A note that was created after due messages were held: this cell sends it.
      if (item.pk === messagePk(ref) && item.duePk !== undefined) continue;
      items.push(item);
      bytes += estimateSize(item);
    }
    place = advance(place, found.slice(0, taken), taken === found.length && taken < ITEMS_AT_ONCE);
  }
  const isLast = place.part >= parts.length;
  const single = after === undefined ? await readBegin(table, ref, now) : undefined;
  const page: AccountPage = {
    ...{ format: FORMAT, region: ref.region, account: ref.account, end },
    ...(single ? { begin: single.begin } : {}),
    items: [...(single?.items ?? []), ...items],
    last: isLast,
  };
  const text = JSON.stringify(page, writeBytes);
  return { data: gzipSync(text).toString('base64'), next: isLast ? null : formatPlace(place) };
}

/** Reads the single items, and what the account in the new cell begins with. */
async function readBegin(table: Table, ref: AccountRef, now: number) {
  const [account, head, status] = await Promise.all([
    table.get(keys.account(ref)),
    table.get(keys.head(ref)),
    table.get(keys.status(ref)),
  ]);
  const items = await table.getMany([...figureKeys(ref, now), ...notificationKeys(ref, now)]);
  const hasAddresses = await Promise.all(
    peoplePks(ref).map(async (pk) => (await table.query({ pk, limit: 1 })).length > 0),
  );
  const link = hasAddresses.includes(true) ? await table.get(keys.linkKey(ref.region)) : undefined;
  const { ownUserSince, events }: Partial<Item> = account ?? {};
  const begin = {
    projectionVersion: Number(head?.projectionVersion ?? 0),
    pollIntervalSeconds: Number(account?.pollIntervalSeconds),
    paused: account?.pausedBeforeMove === true,
    attributes: { ownUserSince, events },
    head: omit(head, LOG_ATTRIBUTES),
    status: omit(status, SCHEDULE_ATTRIBUTES),
    ...(typeof link?.key === 'string' ? { linkKey: link.key } : {}),
  };
  return { begin, items };
}

/** Parses a page. Returns why it is not accepted, as a sentence. */
export function parseAccountPage(data: string): AccountPage | string {
  let page: z.infer<typeof Page>;
  try {
    const text = gunzipSync(Buffer.from(data, 'base64'), { maxOutputLength: MAX_TEXT_BYTES });
    page = Page.parse(JSON.parse(text.toString('utf8'), readBytes));
  } catch {
    return 'data must be a page of an export from another cell of the same version.';
  }
  if ((page.begin?.projectionVersion ?? 0) > PROJECTION_VERSION) {
    return 'data is from a cell of a later version. Upgrade this cell first.';
  }
  const ref = { region: page.region, account: page.account };
  const items = page.items as Item[];
  const foreign = items.find((item) => !isOfAccount(ref, item));
  return foreign ? 'data contains items that do not belong to the account.' : { ...page, items };
}

/** Returns whether an item of a page is a suppression. */
export const isSuppression = (ref: AccountRef, { pk }: Key): boolean => pk === suppressionPk(ref);

function listPartitions(ref: AccountRef): string[] {
  return [indexPk(ref), snapshotPk(ref), groupPk(ref), ...peoplePks(ref)];
}

/** Returns the ranges of all items of an account's pages, in their order. */
function listRanges(ref: AccountRef): Query[] {
  return [...listPartitions(ref).map((pk) => ({ pk })), ...listAttention(ref)];
}

/** Returns the ranges of what users have done with items of the account in the attention queue, and its history. */
function listAttention({ region, account }: AccountRef) {
  const range = { from: `${account}~`, to: `${account}~~` };
  return [attentionPk(region), attentionHistoryPk(region)].map((pk) => ({ pk, ...range }));
}

/** Returns whether an item belongs to the account, and can be in a page. */
function isOfAccount(ref: AccountRef, { pk, sk }: Key): boolean {
  if (listAttention(ref).some((range) => pk === range.pk)) return sk.startsWith(`${ref.account}~`);
  if (listPartitions(ref).includes(pk)) return pk !== indexPk(ref) || sk !== keys.head(ref).sk;
  const day = /^\d{4}-\d\d-\d\d$/.exec(pk.split('#').at(-1) ?? '')?.[0];
  const month = /^\d{4}-\d\d(?=#)/.exec(sk)?.[0];
  const single = [
    keys.openJobs(ref),
    keys.durations(ref),
    keys.notificationSettings(ref),
    ...(day === undefined ? [] : [keys.rollup(ref, day)]),
    ...(month === undefined ? [] : [keys.smsUse(ref, month)]),
  ];
  return single.some((key) => key.pk === pk && key.sk === sk);
}

function omit(item: Item | undefined, names: readonly string[]): Record<string, Value | undefined> {
  return Object.fromEntries(
    Object.entries(item ?? {}).filter(([name]) => !['pk', 'sk', ...names].includes(name)),
  );
}

/** Bytes are objects in JSON. */
const Bytes = z.strictObject({ base64: z.string() });

/** `this[name]` instead of `value`: the value of a Buffer is its own JSON form. */
function writeBytes(this: Readonly<Record<string, unknown>>, name: string, value: unknown): unknown {
  const own = this[name];
  return own instanceof Uint8Array ? { base64: Buffer.from(own).toString('base64') } : value;
}

function readBytes(_name: string, value: unknown): unknown {
  const { data } = Bytes.safeParse(value);
  return data ? new Uint8Array(Buffer.from(data.base64, 'base64')) : value;
}
