/**
 * Searches a region by the beginning of a text. One query per kind: accounts and endpoints by id in their own partitions, the
 * others in the search index. What the entries point to is loaded and compared, because an entry can be older than its job.
 */
import * as z from 'zod';
import { toEndpoint } from '../delivery/endpoint.ts';
import type { Endpoint } from '../delivery/endpoint-views.ts';
import { checkMobile } from '../notifications/addresses.ts';
import { checkEmail, normalizeAddress } from '../notifications/email-address.ts';
import { isVisible, toNameTexts } from '../notifications/recipient-search.ts';
import { findAddressSealer } from '../notifications/unsubscribe.ts';
import { textOrNull } from '../representation.ts';
import { jobsInGroup } from '../storage/job-indexes.ts';
import { accountPk, keys, sinkPk } from '../storage/schema.ts';
import { foldSearchText, type IndexedKind, parseSearchItem, toSearchRange } from '../storage/search-index.ts';
import type { Item, Key, Query, Table } from '../storage/table.ts';
import { summarize, toSnapshot } from '../tracking/snapshot.ts';

/** Kinds of results. */
export const SEARCH_KINDS = [
  'account',
  'job',
  'orderNumber',
  'orderGroup',
  'trackingNumber',
  'recipient',
  'endpoint',
] as const;
export type SearchKind = (typeof SEARCH_KINDS)[number];

/** One result. Fields that do not apply to its kind are `null`. */
export const SearchResult = z
  .object({
    kind: z
      .enum(SEARCH_KINDS)
      .describe('Kind of the result. `orderNumber` and `trackingNumber`: a job with this value.'),
    region: z.string().describe('Region of the result.'),
    value: z
      .string()
      .describe(
        'Value that matches, as stored. For a recipient: the name, or the id if the recipient has no name.',
      ),
    account: textOrNull.describe('Id of the account. `null` for an endpoint.'),
    jobNumber: z.int().nullable().describe('Number of the job. `null` for other kinds.'),
    id: textOrNull.describe('Id of the recipient or endpoint. `null` for other kinds.'),
    status: textOrNull.describe('Current status name of the job. `null` for other kinds.'),
    description: textOrNull.describe('Description of the job. `null` for other kinds.'),
  })
  .meta({ id: 'SearchResult', description: 'A result of a search.' });
export type SearchResult = z.infer<typeof SearchResult>;

const BLANK = { account: null, jobNumber: null, id: null, status: null, description: null };

/** Searched value. */
export interface SearchQuery {
  readonly text: string;
  readonly kinds: readonly SearchKind[];
  /** Maximum number of results of each kind. */
  readonly limit: number;
}

/** Results that the caller may see. */
export interface SearchScope {
  /** `null`: all accounts. */
  readonly accounts: readonly string[] | null;
  /** Whether recipients are also found by their complete address. */
  readonly addresses: boolean;
  readonly isVisible: (endpoint: Endpoint) => boolean;
}

/** Results in the order of {@link SEARCH_KINDS}. `more`: not all matches are among them. */
export interface Found {
  readonly results: readonly SearchResult[];
  readonly more: boolean;
}

/**
 * Number of entries that are read of each kind for a caller of some accounts. Entries of other accounts are among them, so a
 * short text may find nothing although a longer one does.
 */
const RESTRICTED_ENTRIES = 500;

/** The parts of a running search. */
interface Search extends SearchQuery {
  readonly table: Table;
  readonly region: string;
  readonly scope: SearchScope;
}

/** Searches a region. At most eight queries, and a read for each result. */
export async function search(
  table: Table,
  region: string,
  query: SearchQuery,
  scope: SearchScope,
): Promise<Found> {
  const one: Search = { ...query, text: foldSearchText(query.text), table, region, scope };
  const found = await Promise.all(SEARCH_KINDS.filter((kind) => query.kinds.includes(kind)).map(find));
  return {
    results: found.flatMap(({ results }) => results.slice(0, query.limit)),
    more: found.some(({ results, more }) => more || results.length > query.limit),
  };

  function find(kind: SearchKind): Promise<Found> {
    switch (kind) {
      case 'account':
        return findAccounts(one);
      case 'endpoint':
        return findEndpoints(one);
      case 'orderGroup':
        return findGroups(one);
      case 'recipient':
        return findRecipients(one, query.text);
      default:
        return findJobs(one, kind);
    }
  }
}

const NOTHING: Found = { results: [], more: false };

async function findAccounts({ table, region, text, limit, scope }: Search): Promise<Found> {
  if (!isIdText(text)) return NOTHING;
  const items = scope.accounts
    ? await table.getMany(
        scope.accounts
          .filter((account) => account.startsWith(text))
          .map((account) => keys.account({ region, account })),
      )
    : await table.query({ pk: accountPk(region), ...idsFrom(text), limit: limit + 1 });
  const results = items
    .map(({ sk }) => sk)
    .sort()
    .map((account): SearchResult => ({ ...BLANK, kind: 'account', region, value: account, account }));
  return { results, more: false };
}

async function findEndpoints({ table, region, text, limit, scope }: Search): Promise<Found> {
  if (!isIdText(text)) return NOTHING;
  const most = toMaxEntries(limit, scope);
  const items = await table.query({ pk: sinkPk(region), ...idsFrom(text), limit: most });
  const results = items
    .filter((item) => item.kind !== undefined && scope.isVisible(toEndpoint(item)))
    .map(({ sk: id }): SearchResult => ({ ...BLANK, kind: 'endpoint', region, value: id, id }));
  return { results, more: items.length === most };
}

async function findGroups(one: Search): Promise<Found> {
  const { table, region, text } = one;
  const { entries, more } = await readEntries(one, 'orderGroup', text);
  const results = await Promise.all(
    entries.map(async ({ account, item }): Promise<SearchResult[]> => {
      const value = String(item.orderGroup);
      if (!foldSearchText(value).startsWith(text)) return [];
      const jobs = await table.query({ ...jobsInGroup({ region, account }, value), limit: 1 });
      return jobs.length === 0 ? [] : [{ ...BLANK, kind: 'orderGroup', region, value, account }];
    }),
  );
  return { results: results.flat(), more };
}

async function findJobs(one: Search, kind: 'job' | 'orderNumber' | 'trackingNumber'): Promise<Found> {
  const { region, text } = one;
  const { entries, more } = await readEntries(one, kind, text);
  const items = await load(one, entries, ({ account, id }) => keys.snapshot({ region, account }, Number(id)));
  const results = items.flatMap(({ account, item }): SearchResult[] => {
    const job = summarize(toSnapshot(item));
    const { jobNumber, status, description, orderNumber, tracking } = job;
    const values = {
      job: [String(jobNumber)],
      orderNumber: [orderNumber],
      trackingNumber: tracking.map(({ number }) => number),
    }[kind];
    const value = values.find((each) => each !== null && foldSearchText(each).startsWith(text));
    return value ? [{ ...BLANK, kind, region, value, account, jobNumber, status, description }] : [];
  });
  return { results, more };
}

async function findRecipients(one: Search, written: string): Promise<Found> {
  const { table, region, text, scope } = one;
  const address = scope.addresses ? parseAddress(written, region) : undefined;
  const seal = address && (await findAddressSealer(table, region));
  const [named, addressed] = await Promise.all([
    readEntries(one, 'recipient', text),
    address && seal ? readEntries(one, 'address', foldSearchText(seal(address))) : undefined,
  ]);
  const entries = unique([...(addressed?.entries ?? []), ...named.entries]);
  const items = await load(one, entries, ({ account, id }) => keys.recipient({ region, account }, id));
  const results = items.flatMap(({ account, item }): SearchResult[] => {
    const { sk: id, name, email, mobile } = item;
    const isNamed =
      typeof name === 'string' && toNameTexts(name).some((beginning) => beginning.startsWith(text));
    const own = address?.channel === 'sms' ? mobile : email;
    const isAddressed =
      address !== undefined &&
      typeof own === 'string' &&
      normalizeAddress(address.channel, own) === normalizeAddress(address.channel, address.address);
    if (!isVisible(item) || !(isNamed || isAddressed)) return [];
    const value = typeof name === 'string' ? name : id;
    return [{ ...BLANK, kind: 'recipient', region, value, account, id }];
  });
  return { results, more: named.more || addressed?.more === true };
}

/** Returns the address that a text is, or `undefined`. A number must be in international form: others may be job numbers. */
function parseAddress(text: string, region: string) {
  const [channel, checked] = text.trim().startsWith('+')
    ? (['sms', checkMobile(text, region)] as const)
    : (['email', checkEmail(text)] as const);
  return checked.kind === 'checked' ? { channel, address: checked.address } : undefined;
}

/** An entry of the index. */
interface Entry {
  readonly account: string;
  readonly id: string;
  readonly item: Item;
}

/** Returns the entries that begin with a text, without repetitions: at most twice the limit, because some can be outdated. */
async function readEntries(
  { table, region, limit, scope }: Search,
  kind: IndexedKind,
  text: string,
): Promise<{ readonly entries: readonly Entry[]; readonly more: boolean }> {
  const most = toMaxEntries(limit, scope);
  const query: Query = { ...toSearchRange(region, kind, text), limit: most };
  const items = await table.query(query);
  const mine = items
    .map((item) => ({ item, ...parseSearchItem(item) }))
    .filter(({ account }) => scope.accounts === null || scope.accounts.includes(account));
  const entries = unique(mine);
  return { entries: entries.slice(0, 2 * limit), more: items.length === most || entries.length > 2 * limit };
}

const toMaxEntries = (limit: number, { accounts }: SearchScope): number =>
  accounts === null ? 2 * limit + 1 : RESTRICTED_ENTRIES;

const unique = (entries: readonly Entry[]): Entry[] => [
  ...new Map(entries.map((entry) => [`${entry.account}/${entry.id}`, entry])).values(),
];

/** Loads what entries point to, in their order. What does not exist is left out. */
async function load(
  { table }: Search,
  entries: readonly Entry[],
  toKey: (entry: Entry) => Key,
): Promise<Entry[]> {
  const items = await table.getMany(entries.map(toKey));
  const byKey = new Map(items.map((item) => [`${item.pk} ${item.sk}`, item]));
  return entries.flatMap((entry) => {
    const { pk, sk } = toKey(entry);
    const item = byKey.get(`${pk} ${sk}`);
    return item ? [{ ...entry, item }] : [];
  });
}

/** Ids of accounts and endpoints have no other characters. */
const isIdText = (text: string): boolean => /^[a-z0-9-]+$/.test(text);
const idsFrom = (text: string): Pick<Query, 'from' | 'to'> => ({ from: text, to: `${text}~` });
