/** Setup forms: conversion of form values to request bodies, and mapping of errors to fields. */
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import * as z from 'zod';
import { toFieldPath, validate } from '../../dashboard/src/form-validation.ts';
import { findChangedFields, parseNumber, rebase } from '../../dashboard/src/form-values.ts';
import {
  addsAccounts,
  checkEndpoint,
  type Endpoint,
  type EndpointValues,
  jobFieldNames,
  NEW_ENDPOINT,
  toEndpointChange,
  toEndpointFormField,
  toEndpointValues,
  toNewEndpoint,
  typeGroups,
} from '../../dashboard/src/setup/endpoint-values.ts';
import { EndpointUpdate, NewEndpoint } from '../../shared/delivery/endpoint-input.ts';
import { eventTypes } from '../../shared/events/catalogue.ts';

const URL = 'https://erp.example.com/jobs';
const endpoint: Endpoint = {
  id: 'erp',
  region: 'us',
  kind: 'webhook',
  url: URL,
  accounts: ['acme'],
  types: ['job.tracking_*', 'job.dispatched', 'account.*'],
  orderGroups: ['Spring'],
  origins: ['WEB'],
  jobFields: { mustDate: true, orderNumber: '17', dateOut: null },
  headers: ['x-tenant'],
  concurrency: 4,
  ratePerSecond: 0.5,
  description: 'The ERP',
  state: 'active',
  paused: false,
  managed: true,
  revision: 3,
  createdAt: '2026-03-02T08:00:00.000Z',
  changedAt: null,
};
const typed = (values: Partial<EndpointValues>): EndpointValues => ({ ...NEW_ENDPOINT, url: URL, ...values });

describe('a new endpoint', () => {
  test('with only a URL has no filters and starts now', () => {
    expect(toNewEndpoint(typed({}))).toEqual({ url: URL });
  });

  test('converts all form values: lines, numbers, typed field values and headers', () => {
    const body = toNewEndpoint(
      typed({
        id: ' erp ',
        region: 'us',
        description: ' The ERP ',
        accountScope: 'some',
        accounts: ['acme'],
        typeScope: 'some',
        types: ['job.*'],
        patterns: 'account.poll_*\n\n status.discovered ',
        orderGroups: 'Spring\n Summer ',
        origins: 'WEB',
        jobFields: [
          { name: 'mustDate', value: 'true' },
          { name: 'jobNumber', value: '17' },
          { name: 'orderNumber', value: '17' },
          { name: 'dateOut', value: '' },
        ],
        headers: [{ name: 'x-tenant', value: 'acme' }],
        concurrency: '4',
        ratePerSecond: '0.5',
        start: 'beginning',
      }),
    );
    expect(body).toEqual({
      id: 'erp',
      region: 'us',
      url: URL,
      description: 'The ERP',
      accounts: ['acme'],
      types: ['job.*', 'account.poll_*', 'status.discovered'],
      orderGroups: ['Spring', 'Summer'],
      origins: ['WEB'],
      jobFields: { mustDate: true, jobNumber: 17, orderNumber: '17', dateOut: null },
      headers: { 'x-tenant': 'acme' },
      concurrency: 4,
      ratePerSecond: 0.5,
      start: 'beginning',
    });
    expect(NewEndpoint.extend({ region: z.string() }).safeParse(body).success).toBe(true);
  });

  test('interprets the start time as local time', () => {
    const startAt = '2026-03-02T08:00:05';
    expect(toNewEndpoint(typed({ start: 'at', startAt }))).toMatchObject({
      start: { at: new Date(startAt).toISOString() },
    });
  });
});

describe('a change of an endpoint', () => {
  test('is empty if no field was edited', () => {
    expect(toEndpointChange(toEndpointValues(endpoint), endpoint)).toEqual({});
  });

  test.each<[keyof EndpointValues, Partial<EndpointValues>, object]>([
    ['url', { url: 'https://other.example.com' }, { url: 'https://other.example.com' }],
    ['accountScope', { accountScope: 'all' }, { accounts: null }],
    ['accounts', { accounts: ['acme', 'nova'] }, { accounts: ['acme', 'nova'] }],
    ['typeScope', { typeScope: 'all' }, { types: null }],
    ['patterns', { patterns: '' }, { types: ['job.dispatched', 'account.*'] }],
    ['orderGroups', { orderGroups: '' }, { orderGroups: null }],
    ['origins', { origins: 'WEB\nAPI' }, { origins: ['WEB', 'API'] }],
    ['jobFields', { jobFields: [] }, { jobFields: null }],
    ['concurrency', { concurrency: '' }, { concurrency: null }],
    ['ratePerSecond', { ratePerSecond: '5' }, { ratePerSecond: 5 }],
    ['description', { description: '' }, { description: null }],
    ['headersMode', { headersMode: 'replace' }, { headers: null }],
    [
      'headers',
      { headersMode: 'replace', headers: [{ name: 'x-a', value: 'b' }] },
      { headers: { 'x-a': 'b' } },
    ],
  ])('of %s contains only that field', (_, values, change) => {
    const body = toEndpointChange({ ...toEndpointValues(endpoint), ...values }, endpoint);
    expect(body).toEqual(change);
    expect(EndpointUpdate.safeParse(body).success).toBe(true);
  });

  test('contains a start only if accounts are added', () => {
    const more = { ...toEndpointValues(endpoint), accounts: ['acme', 'nova'], start: 'beginning' } as const;
    expect(toEndpointChange(more, endpoint)).toEqual({ accounts: ['acme', 'nova'], start: 'beginning' });
    expect(toEndpointChange({ ...more, accounts: ['acme'] }, endpoint)).toEqual({});
    expect(addsAccounts({ ...more, accountScope: 'all' }, endpoint)).toBe(true);
    expect(addsAccounts({ ...more, accountScope: 'some' }, { accounts: [] })).toBe(false);
  });

  test('of a modified endpoint keeps edited fields and takes the others from the latest version', () => {
    const now = { ...endpoint, types: [], description: 'Another', revision: 4 };
    const mine = { ...toEndpointValues(endpoint), description: 'Mine' };
    const values = rebase(toEndpointValues(endpoint), mine, toEndpointValues(now));
    expect(values).toEqual({ ...toEndpointValues(now), description: 'Mine' });
    expect(toEndpointChange(values, now)).toEqual({ description: 'Mine' });
    const branding = { name: 'Acme', color: '#000000' };
    expect(rebase(branding, { ...branding, name: 'Mine' }, { name: 'Theirs', color: '#ffffff' })).toEqual({
      ...{ name: 'Mine', color: '#ffffff' },
    });
    expect(findChangedFields(endpoint, now, { types: 'the types', url: 'the URL' })).toEqual(['the types']);
  });
});

test('any endpoint converted to form values and back is unchanged', () => {
  const names = fc.uniqueArray(fc.stringMatching(/^[A-Za-z][A-Za-z ]{0,8}[A-Za-z]$/), { maxLength: 3 });
  const field = fc.constantFrom(
    ...([
      ['status', 'true'],
      ['status', '12'],
      ['orderNumber', 'null'],
      ['jobNumber', 12],
      ['mustDate', false],
      ['dateOut', null],
    ] as const),
  );
  fc.assert(
    fc.property(
      fc.record({
        accounts: names,
        types: fc.uniqueArray(fc.constantFrom('*', 'job.*', 'job.d*', 'job.dispatched', 'account.poll_*')),
        orderGroups: names,
        origins: names,
        jobFields: fc.uniqueArray(field, { selector: ([name]) => name }).map(Object.fromEntries),
        concurrency: fc.option(fc.integer({ min: 1, max: 400 })),
        ratePerSecond: fc.option(fc.double({ min: 0.1, max: 1000, noNaN: true })),
        description: fc.option(fc.constantFrom('ERP', 'two parts')),
      }),
      (fields) => {
        const one = { ...endpoint, ...fields } as Endpoint;
        expect(toEndpointChange(toEndpointValues(one), one)).toEqual({});
      },
    ),
  );
});

test('every event type except jobwire.ping is in one group', () => {
  const offered = typeGroups.flatMap(({ types }) => types.map(({ name }) => name));
  expect(offered.sort()).toEqual(eventTypes.filter((type) => type !== 'jobwire.ping').sort());
  expect(jobFieldNames).toContain('orderGroup');
});

describe('a validation error', () => {
  const validateForm = (values: EndpointValues) => ({
    ...validate(NewEndpoint, toNewEndpoint(values), (path, rule) => {
      return toEndpointFormField(path, values, rule) ?? toFieldPath(values, path);
    }),
    ...checkEndpoint(values),
  });

  test.each<[string, Partial<EndpointValues>, RegExp]>([
    ['url', { url: ' ' }, /^It must be a URL/],
    ['url', { url: `https://example.com/${'x'.repeat(2000)}` }, /^It must be at most 2000 characters\.$/],
    ['id', { id: 'No Such' }, /^It must be 1–63 lower-case letters/],
    ['id', { id: 'topic' }, /^It must not be topic/],
    ['accounts', { accountScope: 'some' }, /^It must name at least one account\.$/],
    ['types', { typeScope: 'some' }, /^It must name at least one type\.$/],
    ['patterns', { typeScope: 'some', types: ['job.*'], patterns: 'Job' }, /^It must be an event type/],
    ['patterns', { typeScope: 'some', patterns: 'nothing.*' }, /^It must match an existing event type/],
    ['orderGroups', { orderGroups: 'x'.repeat(201) }, /^It must be at most 200 characters\.$/],
    ['origins', { origins: 'x'.repeat(201) }, /^It must be at most 200 characters\.$/],
    ['jobFields.1.value', withFields(['status', 'a'], ['mustDate', 'maybe']), /^It must be true or false\.$/],
    ['jobFields.1.name', withFields(['status', 'a'], ['status', 'b']), /^It must be unique\.$/],
    ['jobFields.0.name', withFields(['', 'a']), /^It must have a name\.$/],
    ['headers.0.name', withHeaders(['x y', 'a']), /^It must contain only letters, digits and /],
    ['headers.0.name', withHeaders(['Host', 'a']), /^It must not be a header/],
    ['headers.1.name', withHeaders(['x-a', 'a'], ['X-A', 'b']), /^It must be unique\.$/],
    ['headers.0.value', withHeaders(['x-a', 'ä']), /^It must be printable ASCII/],
    ['headers.0.name', withHeaders(['', 'a']), /^It must have a name\.$/],
    ['concurrency', { concurrency: '401' }, /^It must be an integer from 1 to 400\.$/],
    ['concurrency', { concurrency: 'many' }, /^It must be an integer from 1 to 400\.$/],
    ['ratePerSecond', { ratePerSecond: '0' }, /^It must be a number from 0\.1 to 1000\.$/],
    ['description', { description: 'x'.repeat(501) }, /^It must be at most 500 characters\.$/],
    ['startAt', { start: 'at' }, /^It must be a date and time\.$/],
  ])('is assigned to %s (%#)', (field, values, message) => {
    const found = validateForm(typed(values));
    expect(Object.keys(found)).toEqual([field]);
    expect(found[field]).toMatch(message);
  });

  test('is assigned to the innermost field of its path, else to the form', () => {
    const values = { id: '', accounts: ['a'], pairs: [{ name: '' }], credentials: { clientId: '' } };
    expect(toFieldPath(values, ['credentials', 'clientId'])).toBe('credentials.clientId');
    expect(toFieldPath(values, ['credentials', 'other'])).toBe('credentials');
    expect(toFieldPath(values, ['accounts', 0])).toBe('accounts');
    expect(toFieldPath(values, ['pairs', 0, 'name'])).toBe('pairs.0.name');
    expect(toFieldPath(values, ['elsewhere'])).toBe('');
    const whole = z.object({}).refine(() => false, 'must change something');
    expect(validate(whole, {}, () => '')).toEqual({ '': 'The form must change something.' });
  });
});

function withFields(...pairs: readonly [string, string][]): Partial<EndpointValues> {
  return { jobFields: pairs.map(([name, value]) => ({ name, value })) };
}

function withHeaders(...pairs: readonly [string, string][]): Partial<EndpointValues> {
  return { headers: pairs.map(([name, value]) => ({ name, value })) };
}

test('a number with a dot before three digits is rejected, because it is thousands in some languages', () => {
  expect(['3.000', '1.234.567', '0.125', '2.5', '1000', ' 7 ', '', 'x'].map(parseNumber)).toEqual([
    ...['3.000', '1.234.567', 0.125, 2.5, 1000, 7, null, 'x'],
  ]);
});
