/** The Now page: event filter, attention queue. */
import { expect, test } from 'vitest';
import { explainRows, explainTotals } from '../../dashboard/src/counted-accounts.ts';
import { shiftDay, toLocalDay } from '../../dashboard/src/dates.ts';
import { countAfter, createRowFilter, matchesFilter, type Row } from '../../dashboard/src/now/feed.ts';
import { getNoteText, suggestNoteText } from '../../dashboard/src/now/note-texts.ts';
import {
  type AttentionItem,
  explainRank,
  formatCustomer,
  formatImpact,
  getImpactHref,
  getSubjectHref,
  listRowActions,
} from '../../dashboard/src/now/queue.ts';
import { formatPercent, formatTriage } from '../../dashboard/src/texts.ts';
import { buildHref } from '../../dashboard/src/urls.ts';
import { type EventType, eventTypes } from '../../shared/events/catalogue.ts';
import type { JobEvent } from '../../shared/events/event.ts';
import { getExample } from '../../shared/events/examples.ts';

const example = (type: EventType): JobEvent => getExample(type) as JobEvent;
const row = (number: number, type: EventType = 'job.created'): Row => ({
  ...{ kind: 'event', number, event: example(type), receivedAt: null },
});
const rows = (from: number, to: number, type?: EventType): Row[] =>
  Array.from({ length: to - from + 1 }, (_, at) => row(from + at, type));
const numbers = (all: readonly Row[]): number[] => all.map(({ number }) => number);

test('totals name paused accounts, and accounts with the same jobs', () => {
  const none = { paused: { accounts: [], total: 0, jobs: 0, late: 0 }, countedTwice: [] };
  expect(explainTotals(none)).toEqual([]);
  const paused = {
    accounts: [
      { region: 'us', account: 'acme', jobs: 1_200, late: 2 },
      { region: 'us', account: 'kiwi', jobs: 3, late: 0 },
    ],
    ...{ total: 2, jobs: 1_203, late: 2 },
  };
  const twice = { region: 'us', accounts: ['a', 'b', 'c', 'd', 'e', 'f', 'g'], jobs: 1 };
  expect(explainTotals({ paused, countedTwice: [twice] })).toEqual([
    '1,203 open jobs, 2 of them late, belong to 2 paused accounts, which are not observed: acme (1,200) and kiwi (3).',
    '1 job is counted more than once, because the Jobwire accounts “a”, “b”, “c”, “d”, “e” and 2 more belong to one account of the ordering API.',
  ]);
});

test('a list of jobs names the accounts that list the same jobs', () => {
  const twice = [{ region: 'us', accounts: ['acme', 'twin'], jobs: 9 }];
  expect(explainRows(['kiwi', 'twin'], twice)).toEqual([]);
  expect(explainRows(['acme', 'kiwi', 'acme', 'twin'], twice)).toEqual([
    'Jobs are listed more than once, because the Jobwire accounts “acme” and “twin” belong to one account of the ordering API.',
  ]);
});

test('events are filtered by type, account, region and displayed text', () => {
  const dispatched = example('job.dispatched');
  const asked = [
    {},
    { types: [] },
    { types: ['job.created', 'job.dis*'], account: 'acme', region: 'us', text: '' },
    ...['4711', 'DISPATCHED', 'tote bags', ' po-2281 ', 'spring-38', 'acme', 'job.dispatched'].map(
      (text) => ({ text }),
    ),
  ];
  for (const filter of asked) expect(matchesFilter(dispatched, filter), JSON.stringify(filter)).toBe(true);
  const others = [{ types: ['job.created'] }, { account: 'birch' }, { region: 'nz' }, { text: 'mugs' }];
  for (const filter of others) expect(matchesFilter(dispatched, filter), JSON.stringify(filter)).toBe(false);
  expect(matchesFilter(example('job.status_changed'), { text: 'awaiting artwork' }), 'old value').toBe(true);
  expect(matchesFilter(example('upstream.outage'), { account: 'acme' }), 'event without account').toBe(false);
  expect(eventTypes.filter((type) => matchesFilter(example(type), { text: 'no such thing' }))).toEqual([]);
});

test('the row filter follows added and removed rows without skipping or repeating any', () => {
  const select = createRowFilter({ types: ['job.created'] });
  const all = Array.from({ length: 60 }, (_, at) => row(at + 1, at % 3 === 0 ? 'job.closed' : 'job.created'));
  const wanted = (from: number, to: number) =>
    numbers(
      all.slice(from - 1, to).filter((one) => one.kind === 'event' && one.event.type === 'job.created'),
    );
  for (const [from, to] of [
    [1, 0],
    [1, 7],
    [1, 8],
    [1, 20],
    [5, 24],
    [24, 43],
    [25, 44],
    [44, 60],
    [50, 60],
  ] as const)
    expect(numbers(select(all.slice(from - 1, to))), `${from} to ${to}`).toEqual(wanted(from, to));
  expect(numbers(select(all.slice(9, 20))), 'an earlier state').toEqual(wanted(10, 20));
});

test('rows that do not match leave the filtered list identical', () => {
  const select = createRowFilter({ types: ['job.closed'] });
  const before = select([...rows(1, 3), row(4, 'job.closed')]);
  expect(select([...rows(1, 3), row(4, 'job.closed'), ...rows(5, 9)])).toBe(before);
});

test('gaps match every filter', () => {
  const gap: Row = { kind: 'gap', number: 2, reason: 'Events expired.' };
  const select = createRowFilter({ text: 'no such thing' });
  expect(select([row(1), gap, row(3)])).toEqual([gap]);
});

test('new events are counted after the last shown row', () => {
  expect([0, 4, 5, 7, 9, 20].map((number) => countAfter(rows(5, 9), number))).toEqual([5, 5, 4, 2, 0, 0]);
  expect(countAfter([], 3)).toBe(0);
});

test('a share is never rounded up to 100 % or down to 0 %', () => {
  const shares = [
    formatPercent(0, 0),
    formatPercent(0, 9),
    formatPercent(9, 9),
    formatPercent(2, 3),
    formatPercent(999, 1000),
    formatPercent(9999, 10_000),
    formatPercent(1, 10_000),
  ];
  expect(shares).toEqual(['–', '0 %', '100 %', '67 %', '99.9 %', '99.9 %', '0.1 %']);
});

test('local days are shifted across the ends of months and years', () => {
  expect(toLocalDay(new Date(2026, 0, 5, 23, 59).getTime())).toBe('2026-01-05');
  expect(shiftDay('2026-12-31', 1)).toBe('2027-01-01');
  expect(shiftDay('2026-03-01', -1)).toBe('2026-02-28');
});

const item = (change: Partial<AttentionItem>): AttentionItem =>
  ({
    ...{ id: 'us~acme~job~7', kind: 'job_late', region: 'us', account: 'acme', customer: null, actions: [] },
    subject: { type: 'job', id: '7', name: 'Job 7', orderNumber: null, jobNumber: 7 },
    impact: { jobs: 1, waitingEvents: null, parkedEvents: null, deadEvents: null },
    cause: { code: 'late' },
    rank: { score: 52, components: [{ name: 'kind', points: 40, explanation: 'Kind job late' }] },
    ...change,
  }) as AttentionItem;
const subject = (type: AttentionItem['subject']['type'], id: string) => ({
  subject: { type, id, name: id, orderNumber: null, jobNumber: null },
});

test('each subject of the queue links to its page', () => {
  const pages = [
    item({}),
    item(subject('endpoint', 'erp')),
    item(subject('account', 'acme')),
    item(subject('message', 'm1')),
    item(subject('region', 'us')),
  ].map(getSubjectHref);
  expect(pages).toEqual([
    '/jobs/acme/7',
    '/endpoints/us/erp',
    '/accounts/acme',
    '/setup/customers/acme/messages/m1',
    '/health?region=us',
  ]);
});

test('the impact names the numbers of waiting events and of jobs, and omits a single job', () => {
  expect(formatImpact(item({}))).toBe('');
  const impact = { jobs: 2, waitingEvents: 1_200, parkedEvents: 3, deadEvents: 0 };
  expect(formatImpact(item({ ...subject('endpoint', 'erp'), impact }))).toBe(
    '1,200 events waiting, 2 jobs affected',
  );
  expect(getImpactHref(item(subject('account', 'acme')))).toMatch(/^\/jobs\?.*account=/);
  expect(getImpactHref(item(subject('job', '410132')))).toBeUndefined();
  const one = { ...impact, jobs: 1, waitingEvents: null };
  expect(formatImpact(item({ ...subject('message', 'm1'), impact: one }))).toBe('');
});

test('the assignee and the note of an item are one line', () => {
  expect(formatTriage({ assignee: 'ann', note: 'Called.' })).toBe('Assigned to ann · Note: Called.');
  expect(formatTriage({ assignee: null, note: 'Called.' })).toBe('Note: Called.');
  expect(formatTriage({ assignee: null, note: null })).toBe('');
});

test('a row contains whether the customer was notified, with the last message', () => {
  expect(formatCustomer(item({}))).toBeUndefined();
  const lastMessage = { id: 'm1', kind: 'due_date_changed', state: 'sent', at: '' } as const;
  expect(formatCustomer(item({ customer: { enabled: true, informed: true, lastMessage } }))).toEqual({
    label: 'Customer notified',
    title: 'Last message: New due date, sent',
  });
  const silent = { enabled: true, informed: false, lastMessage: null };
  expect(formatCustomer(item({ customer: { ...silent, enabled: false } }))?.label).toBe('Notifications off');
  expect(formatCustomer(item({ customer: silent }))?.label).toBe('Customer not notified');
  expect(formatCustomer(item({ kind: 'job_due_soon', customer: silent }))).toBeUndefined();
  const failed = { ...silent, lastMessage: { ...lastMessage, state: 'failed' } } as const;
  expect(formatCustomer(item({ customer: failed }))?.label).toBe(
    'Customer not notified; last message: failed',
  );
});

test('the rank is explained by its components', () => {
  expect(explainRank(item({}))).toBe('Rank 52\n+40 Kind job late');
});

test('actions that change something, the last response and a note get a button, in the order of the API', () => {
  const actions = [
    'enableEndpoint',
    'retryParkedEvents',
    'redeliverEvents',
    'pingEndpoint',
    'listEndpointDeliveries',
    'getEndpointHealth',
  ].map((operation) => ({ operation, method: 'POST', path: '', body: null }) as const);
  const labels = (code: string) =>
    listRowActions(
      item({ ...subject('endpoint', 'erp'), actions, cause: { code } as AttentionItem['cause'] }),
    ).map(({ label }) => label);
  expect(labels('failing')).toEqual(['Response', 'Retry now', 'Retry parked', 'Replay dead']);
  expect(labels('disabled')[1]).toBe('Enable');
  const rotate = { operation: 'rotateCredentials', method: 'PUT', path: '', body: null } as const;
  expect(listRowActions(item({ ...subject('account', 'acme'), actions: [rotate] }))).toEqual([
    { label: 'Credentials', opens: 'page', path: '/accounts/acme/settings' },
  ]);
});

test('an address has each parameter once, before its fragment', () => {
  expect(buildHref('/health', {})).toBe('/health');
  expect(buildHref('/health?region=us', { region: 'nz', q: '' })).toBe('/health?region=nz');
  expect(buildHref('/jobs?account=a%26b#top', { region: 'us', page: 2 })).toBe(
    '/jobs?account=a%26b&region=us&page=2#top',
  );
});

test.each([
  ['Awaiting artwork', 'Artwork needed'],
  ['Waiting for proof approval', 'Artwork needed'],
  ['Artwork received', 'Longer than planned'],
  ['In production', 'Longer than planned'],
  [null, 'Longer than planned'],
])('the first text of a note to the customer of a job in the status %s is “%s”', (status, name) => {
  expect(suggestNoteText(status)).toBe(name);
  expect(getNoteText(name, 'en-US')).not.toBe('');
});
