/** What stands in the form of an endpoint, and what becomes of it: a new endpoint, or what is to be changed of one. */
import type * as z from 'zod';
import type { Endpoint as EndpointShape } from '../../../shared/api/endpoint-views.ts';
import { jobFieldValues } from '../../../shared/delivery/endpoint-input.ts';
import { catalogue, eventTypes } from '../../../shared/events/catalogue.ts';
import { parseLocalTime } from '../dates.ts';
import type { FieldErrors } from '../form-validation.ts';

/** An endpoint as the API shows it. */
export type Endpoint = z.infer<typeof EndpointShape>;

/** A field and its value, in a row of their own. */
export interface NameValue {
  readonly name: string;
  readonly value: string;
}

/** The form's values: texts as they are typed. Lists of names are texts with one to a line. */
export interface EndpointValues {
  readonly id: string;
  readonly region: string;
  readonly url: string;
  readonly description: string;
  readonly whose: 'all' | 'some';
  readonly accounts: readonly string[];
  readonly which: 'all' | 'some';
  /** Types, and whole groups of them (`job.*`). */
  readonly types: readonly string[];
  readonly patterns: string;
  readonly orderGroups: string;
  readonly origins: string;
  readonly jobFields: readonly NameValue[];
  /** Values of headers are never shown, so they are kept as they are or replaced as a whole. */
  readonly headersAre: 'kept' | 'given';
  readonly headers: readonly NameValue[];
  readonly concurrency: string;
  readonly ratePerSecond: string;
  readonly begin: 'now' | 'beginning' | 'at';
  /** Of the viewer's clock, as `datetime-local` has it. */
  readonly at: string;
}

/** An endpoint that is still to be described. */
export const NEW_ENDPOINT: EndpointValues = {
  id: '',
  region: '',
  url: '',
  description: '',
  whose: 'all',
  accounts: [],
  which: 'all',
  types: [],
  patterns: '',
  orderGroups: '',
  origins: '',
  jobFields: [],
  headersAre: 'given',
  headers: [],
  concurrency: '',
  ratePerSecond: '',
  begin: 'now',
  at: '',
};

/** Types of events that endpoints can ask for, in groups by what they are about. */
export const typeGroups = [
  { pattern: 'job.*', name: 'Jobs' },
  { pattern: 'order_group.*', name: 'Order groups' },
  { pattern: 'account.*', name: 'Accounts' },
  { pattern: 'status.*', name: 'Statuses' },
  { pattern: 'upstream.*', name: 'The ordering service' },
  { pattern: 'endpoint.*', name: 'Endpoints' },
].map(({ pattern, name }) => ({
  pattern,
  name,
  types: eventTypes
    .filter((type) => type.startsWith(pattern.slice(0, -1)))
    .map((type) => ({ type: type as string, when: catalogue[type].when as string })),
}));
const offered = new Set(
  typeGroups.flatMap(({ pattern, types }) => [pattern, ...types.map(({ type }) => type)]),
);

/** Fields of jobs that events can be chosen by. */
export const jobFieldNames: readonly string[] = Object.keys(jobFieldValues);

/** What stands in the form of an endpoint that there is. */
export function toEndpointValues(endpoint: Endpoint): EndpointValues {
  const { id, region, url, accounts, types, orderGroups, origins, jobFields, headers } = endpoint;
  return {
    ...NEW_ENDPOINT,
    ...{ id, region, url },
    description: endpoint.description ?? '',
    whose: accounts.length === 0 ? 'all' : 'some',
    accounts,
    which: types.length === 0 ? 'all' : 'some',
    types: types.filter((type) => offered.has(type)),
    patterns: types.filter((type) => !offered.has(type)).join('\n'),
    orderGroups: orderGroups.join('\n'),
    origins: origins.join('\n'),
    jobFields: Object.entries(jobFields).map(([name, value]) => ({
      name,
      value: value === null ? '' : String(value),
    })),
    headersAre: headers.length > 0 ? 'kept' : 'given',
    concurrency: endpoint.concurrency === null ? '' : String(endpoint.concurrency),
    ratePerSecond: endpoint.ratePerSecond === null ? '' : String(endpoint.ratePerSecond),
  };
}

/** A new endpoint as the API takes it. */
export function toNewEndpoint(values: EndpointValues): object {
  const { id, region, begin, at } = values;
  const wanted = toEndpointFields(values);
  const given = Object.entries({ ...wanted, headers: toHeaders(values) }).filter(
    ([, value]) => value !== null,
  );
  return {
    ...(id.trim() === '' ? {} : { id: id.trim() }),
    ...(region === '' ? {} : { region }),
    ...Object.fromEntries(given),
    ...(begin === 'now' ? {} : { start: toStart({ begin, at }) }),
  };
}

/** What of an endpoint is to be changed, as the API takes it: nothing that stays as it is. */
export function toEndpointChange(values: EndpointValues, endpoint: Endpoint): object {
  const before: Readonly<Record<string, unknown>> = toEndpointFields(toEndpointValues(endpoint));
  const changed = Object.entries(toEndpointFields(values)).filter(
    ([name, value]) => !isEqual(before[name], value),
  );
  const headers = toHeaders(values);
  const keepsHeaders = values.headersAre === 'kept' || (headers === null && endpoint.headers.length === 0);
  const begins = values.begin !== 'now' && addsAccounts(values, endpoint);
  return {
    ...Object.fromEntries(changed),
    ...(keepsHeaders ? {} : { headers }),
    ...(begins ? { start: toStart(values) } : {}),
  };
}

/** Whether the endpoint is to follow accounts that it does not follow yet. */
export function addsAccounts(values: EndpointValues, { accounts }: Pick<Endpoint, 'accounts'>): boolean {
  if (accounts.length === 0) return false;
  return values.whose === 'all' || values.accounts.some((account) => !accounts.includes(account));
}

/** What is wrong with the values that can't be seen of the body. */
export function checkEndpoint(values: EndpointValues): FieldErrors {
  const { url, begin, at, jobFields, headersAre, headers } = values;
  const twice = (pairs: readonly NameValue[], field: string, same: (name: string) => string) =>
    pairs.flatMap(({ name }, index) =>
      name !== '' && pairs.findIndex((other) => same(other.name.trim()) === same(name.trim())) < index
        ? [[`${field}.${index}.name`, 'It must be there once.'] as const]
        : [],
    );
  const nameless = (pairs: readonly NameValue[], field: string) =>
    pairs.flatMap(({ name, value }, index) =>
      name.trim() === '' && value !== '' ? [[`${field}.${index}.name`, 'It must have a name.'] as const] : [],
    );
  return Object.fromEntries([
    ...(url.trim() === ''
      ? [['url', 'It must be a URL, such as https://erp.example.com/jobs.'] as const]
      : []),
    ...(begin === 'at' && toStart({ begin, at }) === undefined
      ? [['at', 'It must be a day and a time.'] as const]
      : []),
    ...twice(jobFields, 'jobFields', (name) => name),
    ...nameless(jobFields, 'jobFields'),
    ...(headersAre === 'given'
      ? [...twice(headers, 'headers', (name) => name.toLowerCase()), ...nameless(headers, 'headers')]
      : []),
  ]);
}

/** The field that a path of the body is about. */
export function toEndpointFormField(
  path: readonly PropertyKey[],
  values: EndpointValues,
  rule: string,
): string | undefined {
  const [field, key] = path;
  if (field === 'types') return Number(key ?? -1) < values.types.length ? 'types' : 'patterns';
  if (field === 'start') return values.begin === 'at' ? 'at' : 'begin';
  if (field === 'jobFields' || field === 'headers') {
    const row = values[field].findIndex(({ name }) => name.trim() === key);
    if (row < 0) return field;
    const isName = field === 'headers' && !/printable|text/.test(rule);
    return `${field}.${row}.${isName ? 'name' : 'value'}`;
  }
  return undefined;
}

/** Values over an endpoint that somebody else has changed: what was typed stays, all else is as it is now. */
export function rebase<V extends object>(before: V, typed: V, now: V): V {
  const entries = Object.entries(typed).map(([name, value]) => [
    name,
    isEqual(value, before[name as keyof V]) ? now[name as keyof V] : value,
  ]);
  return Object.fromEntries(entries) as V;
}

/** What of something was changed between two looks at it, in words. */
export function findChangedFields<T extends object>(
  before: T,
  now: T,
  words: Readonly<Partial<Record<keyof T, string>>>,
): readonly string[] {
  return (Object.entries(words) as [keyof T, string][]).flatMap(([name, word]) =>
    isEqual(before[name], now[name]) ? [] : [word],
  );
}

/** Everything but headers and where it begins; null where nothing is said. */
function toEndpointFields(values: EndpointValues) {
  const { url, description, whose, which, concurrency, ratePerSecond } = values;
  const pairs = values.jobFields.filter(({ name }) => name !== '');
  return {
    url: url.trim(),
    accounts: whose === 'all' ? null : [...values.accounts],
    types: which === 'all' ? null : [...values.types, ...splitLines(values.patterns)],
    orderGroups: emptyToNull(splitLines(values.orderGroups)),
    origins: emptyToNull(splitLines(values.origins)),
    jobFields:
      pairs.length === 0
        ? null
        : Object.fromEntries(pairs.map(({ name, value }) => [name, parseJobFieldValue(name, value)])),
    concurrency: parseNumber(concurrency),
    ratePerSecond: parseNumber(ratePerSecond),
    description: description.trim() === '' ? null : description.trim(),
  };
}

function toHeaders({ headers }: EndpointValues): Record<string, string> | null {
  const given = headers.filter(({ name }) => name.trim() !== '');
  return given.length === 0
    ? null
    : Object.fromEntries(given.map(({ name, value }) => [name.trim(), value.trim()]));
}

/** A value of a field as it is typed: the first of text, number, true or false that the field can be. Nothing is null. */
function parseJobFieldValue(name: string, typed: string): string | number | boolean | null {
  const text = typed.trim();
  if (text === '') return null;
  const candidates = [text, Number(text), text === 'true' ? true : text === 'false' ? false : text];
  return candidates.find((value) => jobFieldValues[name]?.safeParse(value).success) ?? text;
}

function toStart({ begin, at }: Pick<EndpointValues, 'begin' | 'at'>): unknown {
  if (begin !== 'at') return begin;
  const instant = parseLocalTime(at);
  return instant === undefined ? undefined : { at: instant };
}

/** Names, one to a line. */
function splitLines(text: string): string[] {
  return text
    .split('\n')
    .map((line) => line.trim())
    .filter((line) => line !== '');
}

const emptyToNull = (names: string[]): string[] | null => (names.length === 0 ? null : names);
/** What is no number stays what it is, for the schema to say so. */
const parseNumber = (text: string): number | string | null => {
  const trimmed = text.trim();
  if (trimmed === '') return null;
  return Number.isNaN(Number(trimmed)) ? trimmed : Number(trimmed);
};

/** Whether two values are the same; lists in whatever order. */
function isEqual(a: unknown, b: unknown): boolean {
  return JSON.stringify(normalize(a)) === JSON.stringify(normalize(b));
}

function normalize(value: unknown): unknown {
  if (Array.isArray(value))
    return value.map(normalize).sort((a, b) => (JSON.stringify(a) < JSON.stringify(b) ? -1 : 1));
  if (typeof value !== 'object' || value === null) return value;
  return Object.entries(value)
    .sort(([a], [b]) => (a < b ? -1 : 1))
    .map(([name, of]) => [name, normalize(of)]);
}
