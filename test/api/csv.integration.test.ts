/** Lists of the API as CSV: the same entries and permissions as in JSON, on every list route. */
import { parse } from 'csv-parse/sync';
import { describe, expect, it, vi } from 'vitest';
import * as z from 'zod';
import { createClient } from '../../client/index.ts';
import { getCsvPage } from '../../shared/api/route.ts';
import { routes } from '../../shared/api/routes/all.ts';
import { getField } from '../../shared/csv.ts';
import { getListId, OWN, sharedWorld } from '../support/api-world.ts';

const shared = sharedWorld();

const lists = routes.flatMap(({ spec }) => {
  const page = getCsvPage(spec);
  return page ? [{ path: spec.path, ...page }] : [];
});

/** Returns the address of a list in the world. */
function toAddress(path: string): string {
  const { ids } = shared.world;
  const told = ids.notifying[OWN];
  const values: Record<string, string> = {
    id: getListId(path),
    jobNumber: String(ids.jobs[0]),
    event: ids.events[0] ?? '',
    recipient: told?.recipients[0] ?? '',
  };
  return path.replace(/\{(\w+)\}/g, (_, name) => values[name] ?? `no ${name}`);
}

async function ask(address: string, accept: string, key = shared.world.keys['admin all'].secret) {
  const response = await shared.world.app.request(address, {
    headers: { authorization: `Bearer ${key}`, accept },
  });
  return { status: response.status, headers: response.headers, text: await response.text() };
}

const toRows = (text: string) => parse(text) as string[][];

it('is supported by every list of the API', () => {
  const pages = routes.filter(
    ({ spec: { method, answer } }) =>
      method === 'get' && answer.schema instanceof z.ZodObject && 'next' in answer.schema.shape,
  );
  expect(pages.length).toBeGreaterThan(20);
  expect(lists.map(({ path }) => path)).toEqual(pages.map(({ spec }) => spec.path));
});

describe.each(lists)('GET $path as CSV', ({ path, field, columns }) => {
  it('has the entries of the JSON page, below the names of the fields', async () => {
    const address = toAddress(path);
    const json = await ask(address, 'application/json');
    const csv = await ask(address, 'text/csv');
    expect([json.status, csv.status]).toEqual([200, 200]);
    expect(csv.headers.get('content-type')).toBe('text/csv; charset=utf-8; header=present');
    const [header, ...rows] = toRows(csv.text);
    expect(header).toEqual(columns);
    const entries = JSON.parse(json.text)[field] as object[];
    const first = columns[0] ?? '';
    expect(rows.map(([cell]) => cell)).toEqual(entries.map((entry) => String(getField(entry, first))));
    // No top-level field of an entry is left out.
    const names = new Set(columns.map((column) => column.split('.')[0]));
    for (const entry of entries) for (const name of Object.keys(entry)) expect(names).toContain(name);
  });

  it('has nothing of other accounts than those of the key, as in JSON', async () => {
    const address = toAddress(path);
    const { secret } = shared.world.keys['read foreign'];
    const json = await ask(address, 'application/json', secret);
    const csv = await ask(address, 'text/csv', secret);
    expect(csv.status).toBe(json.status);
    if (csv.status !== 200) expect(csv.headers.get('content-type')).toBe('application/problem+json');
    else expect(toRows(csv.text)).toHaveLength(JSON.parse(json.text)[field].length + 1);
  });
});

it('masks addresses for keys of role read, as in JSON', async () => {
  const address = toAddress('/v1/accounts/{id}/recipients');
  const { 'read own': reader, 'operate own': operator } = shared.world.keys;
  const masked = await ask(address, 'text/csv', reader.secret);
  const full = await ask(address, 'text/csv', operator.secret);
  const column = toRows(full.text)[0]?.indexOf('email') ?? -1;
  const addresses = toRows(full.text).flatMap((row) => (row[column]?.includes('@') ? [row[column]] : []));
  expect(addresses.length).toBeGreaterThan(0);
  for (const one of addresses) expect(masked.text).not.toContain(one);
});

it('gives one file of the whole list when the pages of the client are joined', async () => {
  const { secret } = shared.world.keys['admin all'];
  const sent: string[] = [];
  const fetched = globalThis.fetch;
  globalThis.fetch = async (input, init) => {
    const { pathname, search } = new URL(String(input));
    sent.push(search);
    return shared.world.app.request(`${pathname}${search}`, init);
  };
  try {
    const client = createClient({ url: 'http://jobwire.test', key: secret });
    const params = { path: { id: OWN } };
    const whole = await ask(`/v1/accounts/${OWN}/events?limit=1000`, 'text/csv');
    let text = '';
    for await (const page of client.csv('/v1/accounts/{id}/events', { params, pageSize: 2 })) text += page;
    expect(text).toBe(whole.text);
    expect(sent.length).toBeGreaterThan(2);

    const newest = { ...params, query: { order: 'newest' } } as const;
    let reversed = '';
    for await (const page of client.csv('/v1/accounts/{id}/events', { params: newest, pageSize: 2 }))
      reversed += page;
    const ids = toRows(whole.text).slice(1);
    expect(toRows(reversed).slice(1)).toEqual(ids.toReversed());

    const onMore = vi.fn();
    let first = '';
    const limited = { params, max: 3, pageSize: 2, onMore };
    for await (const page of client.csv('/v1/accounts/{id}/events', limited)) first += page;
    expect(toRows(first)).toHaveLength(4);
    expect(onMore).toHaveBeenCalledOnce();
  } finally {
    globalThis.fetch = fetched;
  }
});

it.each([
  ['', 'application/json'],
  ['*/*', 'application/json'],
  ['text/html, */*;q=0.8', 'application/json'],
  ['application/json, text/csv;q=0.5', 'application/json'],
  ['text/csv;q=0', 'application/json'],
  ['text/csv', 'text/csv; charset=utf-8; header=present'],
  ['TEXT/CSV; header=absent', 'text/csv; charset=utf-8; header=absent'],
  ['application/json;q=0.1, text/csv', 'text/csv; charset=utf-8; header=present'],
])('is returned only if the request prefers it: Accept: %s', async (accept, expected) => {
  const { headers } = await ask('/v1/accounts', accept);
  expect(headers.get('content-type')).toBe(expected);
});
