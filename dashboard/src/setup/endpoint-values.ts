/** Form values of an endpoint, and their conversion to request bodies. */
import type { Endpoint } from '../../../client/index.ts';
import { jobFieldValues } from '../../../shared/delivery/endpoint-input.ts';
import { catalogue, eventTypes } from '../../../shared/events/catalogue.ts';
import { parseLocalTime } from '../dates.ts';
import type { FieldErrors } from '../form-validation.ts';
import { isEqual, parseNumber } from '../form-values.ts';

/** An endpoint as returned by the API. */
export type { Endpoint };

/** A row with a name and a value. */
export interface NameValue {
  readonly name: string;
  readonly value: string;
}

/** Values of an empty form. */
export const NEW_ENDPOINT = {
  id: '',
  region: '',
  kind: 'webhook' as 'webhook' | 'sqs',
  url: '',
  description: '',
  accountScope: 'all' as 'all' | 'some',
  accounts: [] as readonly string[],
  typeScope: 'all' as 'all' | 'some',
  /** Event types and patterns of whole groups (`job.*`). */
  types: [] as readonly string[],
  patterns: '',
  orderGroups: '',
  origins: '',
  jobFields: [] as readonly NameValue[],
  /** The API does not return header values, so headers are kept or replaced as a whole. */
  headersMode: 'replace' as 'keep' | 'replace',
  headers: [] as readonly NameValue[],
  concurrency: '',
  ratePerSecond: '',
  start: 'now' as 'now' | 'beginning' | 'at',
  /** Local time, in the format of `datetime-local`. */
  startAt: '',
};

/** Form values. Numbers and lists are text as typed; lists have one name per line. */
export type EndpointValues = Readonly<typeof NEW_ENDPOINT>;

/** Event types that endpoints can select, in groups. */
export const typeGroups = [
  { pattern: 'job.*', name: 'Jobs' },
  { pattern: 'order_group.*', name: 'Order groups' },
  { pattern: 'account.*', name: 'Accounts' },
  { pattern: 'status.*', name: 'Statuses' },
  { pattern: 'upstream.*', name: 'Ordering API' },
  { pattern: 'endpoint.*', name: 'Endpoints' },
].map(({ pattern, name }) => ({
  pattern,
  name,
  types: eventTypes
    .filter((type) => type.startsWith(pattern.slice(0, -1)))
    .map((type) => ({ name: type as string, title: catalogue[type].when as string })),
}));
const offered = new Set(
  typeGroups.flatMap(({ pattern, types }) => [pattern, ...types.map((type) => type.name)]),
);

/** Job fields that events can be filtered by. */
export const jobFieldNames: readonly string[] = Object.keys(jobFieldValues);

/** Converts an endpoint to form values. */
export function toEndpointValues(endpoint: Endpoint): EndpointValues {
  const { id, region, kind, url, accounts, types, orderGroups, origins, jobFields, headers } = endpoint;
  return {
    ...NEW_ENDPOINT,
    ...{ id, region, url, kind: kind === 'sqs' ? kind : 'webhook' },
    description: endpoint.description ?? '',
    accountScope: accounts.length === 0 ? 'all' : 'some',
    accounts,
    typeScope: types.length === 0 ? 'all' : 'some',
    types: types.filter((type) => offered.has(type)),
    patterns: types.filter((type) => !offered.has(type)).join('\n'),
    orderGroups: orderGroups.join('\n'),
    origins: origins.join('\n'),
    jobFields: Object.entries(jobFields).map(([name, value]) => ({
      name,
      value: value === null ? '' : String(value),
    })),
    headersMode: headers.length > 0 ? 'keep' : 'replace',
    concurrency: endpoint.concurrency === null ? '' : String(endpoint.concurrency),
    ratePerSecond: endpoint.ratePerSecond === null ? '' : String(endpoint.ratePerSecond),
  };
}

/** Converts form values to the body of a new endpoint. */
export function toNewEndpoint(values: EndpointValues): object {
  const { id, region, kind, start } = values;
  const given = Object.entries({ ...toEndpointFields(values), headers: toHeaders(values) }).filter(
    ([, value]) => value !== null,
  );
  return {
    ...(id.trim() === '' ? {} : { id: id.trim() }),
    ...(region === '' ? {} : { region }),
    ...(kind === 'webhook' ? {} : { kind }),
    ...Object.fromEntries(given),
    ...(start === 'now' ? {} : { start: toStart(values) }),
  };
}

/** Converts form values to the body of a change: only the fields that differ. */
export function toEndpointChange(values: EndpointValues, endpoint: Endpoint): object {
  const before: Readonly<Record<string, unknown>> = toEndpointFields(toEndpointValues(endpoint));
  const changed = Object.entries(toEndpointFields(values)).filter(
    ([name, value]) => !isEqual(before[name], value),
  );
  const headers = toHeaders(values);
  const keepsHeaders = values.headersMode === 'keep' || (headers === null && endpoint.headers.length === 0);
  const hasStart = values.start !== 'now' && addsAccounts(values, endpoint);
  return {
    ...Object.fromEntries(changed),
    ...(keepsHeaders ? {} : { headers }),
    ...(hasStart ? { start: toStart(values) } : {}),
  };
}

/** Reports whether the form values add accounts to the endpoint. */
export function addsAccounts(values: EndpointValues, { accounts }: Pick<Endpoint, 'accounts'>): boolean {
  if (accounts.length === 0) return false;
  return values.accountScope === 'all' || values.accounts.some((account) => !accounts.includes(account));
}

const URL_RULES = {
  webhook: 'It must be a URL, such as https://erp.example.com/jobs.',
  sqs: 'It must be the ARN or the URL of a queue.',
};

/** Returns the errors of form values that the request body does not show. */
export function checkEndpoint(values: EndpointValues): FieldErrors {
  const { kind, url, start, jobFields, headersMode, headers } = values;
  const findDuplicates = (pairs: readonly NameValue[], field: string, same: (name: string) => string) =>
    pairs.flatMap(({ name }, index) =>
      name !== '' && pairs.findIndex((other) => same(other.name.trim()) === same(name.trim())) < index
        ? [[`${field}.${index}.name`, 'It must be unique.'] as const]
        : [],
    );
  const findNameless = (pairs: readonly NameValue[], field: string) =>
    pairs.flatMap(({ name, value }, index) =>
      name.trim() === '' && value !== '' ? [[`${field}.${index}.name`, 'It must have a name.'] as const] : [],
    );
  return Object.fromEntries([
    ...(url.trim() === '' ? [['url', URL_RULES[kind]] as const] : []),
    ...(start === 'at' && toStart(values) === undefined
      ? [['startAt', 'It must be a date and time.'] as const]
      : []),
    ...findDuplicates(jobFields, 'jobFields', (name) => name),
    ...findNameless(jobFields, 'jobFields'),
    ...(headersMode === 'replace'
      ? [
          ...findDuplicates(headers, 'headers', (name) => name.toLowerCase()),
          ...findNameless(headers, 'headers'),
        ]
      : []),
  ]);
}

/** Returns the form field for a path of the body. `undefined`: the path is the field. */
export function toEndpointFormField(
  path: readonly PropertyKey[],
  values: EndpointValues,
  rule: string,
): string | undefined {
  const [field, key] = path;
  if (field === 'types') return Number(key ?? -1) < values.types.length ? 'types' : 'patterns';
  if (field === 'start') return values.start === 'at' ? 'startAt' : 'start';
  if (field === 'jobFields' || field === 'headers') {
    const row = values[field].findIndex(({ name }) => name.trim() === key);
    if (row < 0) return field;
    const isName = field === 'headers' && !/printable|text/.test(rule);
    return `${field}.${row}.${isName ? 'name' : 'value'}`;
  }
  return undefined;
}

/** Converts form values to all fields except headers and start. `null`: the default. */
function toEndpointFields(values: EndpointValues) {
  const { url, description, accountScope, typeScope, concurrency, ratePerSecond } = values;
  const pairs = values.jobFields.filter(({ name }) => name !== '');
  return {
    url: url.trim(),
    accounts: accountScope === 'all' ? null : [...values.accounts],
    types: typeScope === 'all' ? null : [...values.types, ...splitLines(values.patterns)],
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

function toHeaders({ kind, headers }: EndpointValues): Record<string, string> | null {
  // Those that were typed before the kind was changed.
  if (kind === 'sqs') return null;
  const given = headers.filter(({ name }) => name.trim() !== '');
  return given.length === 0
    ? null
    : Object.fromEntries(given.map(({ name, value }) => [name.trim(), value.trim()]));
}

/** Parses a field value: the first of text, number and boolean that is valid for the field. Blank text is `null`. */
function parseJobFieldValue(name: string, typed: string): string | number | boolean | null {
  const text = typed.trim();
  if (text === '') return null;
  const candidates = [text, Number(text), text === 'true' ? true : text === 'false' ? false : text];
  return candidates.find((value) => jobFieldValues[name]?.safeParse(value).success) ?? text;
}

function toStart({ start, startAt }: EndpointValues): unknown {
  if (start !== 'at') return start;
  const time = parseLocalTime(startAt);
  return time === undefined ? undefined : { at: time };
}

/** Splits text into non-empty lines. */
export function splitLines(text: string): string[] {
  return text
    .split('\n')
    .map((line) => line.trim())
    .filter((line) => line !== '');
}

const emptyToNull = (names: string[]): string[] | null => (names.length === 0 ? null : names);
