/** The Now page: event filter and statistics. */
import { expect, test } from 'vitest';
import type * as z from 'zod';
import { shiftDay, toLocalDay } from '../../dashboard/src/dates.ts';
import { countAfter, createRowFilter, matchesFilter, type Row } from '../../dashboard/src/now/feed.ts';
import {
  countDueOn,
  countOnTime,
  findStaleAccounts,
  formatListScope,
  type ListedJob,
  sortByDueDate,
  sumDays,
  sumOpenJobs,
} from '../../dashboard/src/now/statistics.ts';
import type { Account } from '../../dashboard/src/queries.ts';
import { formatPercent } from '../../dashboard/src/texts.ts';
import type * as statistics from '../../shared/api/statistics.ts';
import { type EventType, eventTypes } from '../../shared/events/catalogue.ts';
import type { JobEvent } from '../../shared/events/event.ts';
import { getExample } from '../../shared/events/examples.ts';

type OpenJobs = z.input<typeof statistics.OpenJobs>;
type RegionOpenJobs = z.input<typeof statistics.RegionOpenJobs>;
type Rollup = statistics.Rollup;

const example = (type: EventType): JobEvent => getExample(type) as JobEvent;
const row = (number: number, type: EventType = 'job.created'): Row => ({
  ...{ kind: 'event', number, event: example(type), receivedAt: null },
});
const rows = (from: number, to: number, type?: EventType): Row[] =>
  Array.from({ length: to - from + 1 }, (_, at) => row(from + at, type));
const numbers = (all: readonly Row[]): number[] => all.map(({ number }) => number);

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

const open = (change: Partial<RegionOpenJobs> = {}): RegionOpenJobs => ({
  ...{ region: 'us', jobs: 10, dispatched: 2, late: 1, otherStatuses: 0, dueEarlier: 0, dueLater: 0 },
  ...{ withoutDueDate: 3, byStatus: [{ status: 'Scheduled', jobs: 10 }], byDueDay: [], accounts: [] },
  ...change,
});

test('open jobs of regions are added up by status, largest first, and by day, earliest first', () => {
  const sum = sumOpenJobs([
    open({
      byStatus: [
        { status: 'Scheduled', jobs: 6 },
        { status: null, jobs: 4 },
      ],
      byDueDay: [{ day: '2026-03-02', jobs: 5, late: 1 }],
      accounts: [{ account: 'acme', changedAt: '', jobs: 10, dispatched: 2, late: 1 }],
    }),
    open({
      byStatus: [
        { status: 'Shipped', jobs: 8 },
        { status: null, jobs: 2 },
      ],
      byDueDay: [
        { day: '2026-03-01', jobs: 1, late: 1 },
        { day: '2026-03-02', jobs: 2, late: 0 },
      ],
    }),
  ]);
  expect(sum).toMatchObject({ jobs: 20, dispatched: 4, late: 2, withoutDueDate: 6 });
  expect(sum.byStatus.map(({ status, jobs }) => [status, jobs])).toEqual([
    ['Shipped', 8],
    ['Scheduled', 6],
    [null, 6],
  ]);
  expect(sum.byDueDay).toEqual([
    { day: '2026-03-01', jobs: 1, late: 1 },
    { day: '2026-03-02', jobs: 7, late: 1 },
  ]);
  expect(sum.accounts.map(({ account }) => account)).toEqual(['acme']);
  expect([countDueOn(sum, '2026-03-02'), countDueOn(sum, '2026-03-09')]).toEqual([7, 0]);
  expect(sumOpenJobs([])).toMatchObject({ jobs: 0, byStatus: [], byDueDay: [], accounts: [] });
});

test('with a key for some accounts, their open jobs are added up', () => {
  const { region, accounts: _, ...chart } = open();
  const ofAccount: OpenJobs = { region, account: 'acme', observedThrough: null, changedAt: '', ...chart };
  const sum = sumOpenJobs([ofAccount, { ...ofAccount, account: 'birch', late: 4 }]);
  expect(sum.late).toBe(5);
  expect(sum.accounts.map(({ account, late }) => [account, late])).toEqual([
    ['acme', 1],
    ['birch', 4],
  ]);
});

const rollup = (day: string, change: Partial<Rollup> = {}): Rollup => ({
  ...{ day, created: 1, dispatched: 3, onTime: 2, late: 1, overdue: 0, cancelled: 0, closed: 0 },
  ...change,
});

test('roll-ups are added up by day', () => {
  const days = sumDays([
    { days: [rollup('2026-03-01'), rollup('2026-03-02', { created: 5 })] },
    { days: [rollup('2026-03-02', { late: 0 }), rollup('2026-03-03')] },
  ]);
  expect(days.map(({ day }) => day)).toEqual(['2026-03-01', '2026-03-02', '2026-03-03']);
  expect(days[1]).toEqual(rollup('2026-03-02', { created: 6, dispatched: 6, onTime: 4, late: 1 }));
  expect(countOnTime(days)).toEqual({ onTime: 8, of: 11 });
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

const NOW = Date.parse('2026-03-02T12:00:00Z');
const account = (id: string, ageSeconds: number | null, change: Partial<Account> = {}): Account =>
  ({
    ...{ id, region: 'us', pollIntervalSeconds: 120, paused: false, ...change },
    status: {
      state: 'tracking',
      observedThrough: ageSeconds === null ? null : new Date(NOW - ageSeconds * 1000).toISOString(),
    },
  }) as Account;

test('stale accounts are found by their own poll interval, except paused ones', () => {
  const hourly = { pollIntervalSeconds: 3_600 };
  const accounts = [
    ...[account('fresh', 300), account('old', 301), account('slow', 7_260, hourly)],
    ...[account('slower', 7_261, hourly), account('paused', 9_999, { paused: true }), account('new', null)],
  ];
  const { stale, unread } = findStaleAccounts(accounts, NOW);
  expect(stale.map((one) => one.account)).toEqual(['slower', 'old']);
  expect(unread).toEqual(['new']);
});

test('jobs of several accounts are sorted by due date, those without a date last', () => {
  const job = (jobNumber: number, dateDue: string | null, of = 'acme') =>
    ({ jobNumber, dateDue, account: of }) as ListedJob;
  const listed = [
    ...[
      job(1, null),
      job(2, '2026-03-02T10:00:00-07:00'),
      job(3, 'soon'),
      job(4, '2026-03-02T10:00:00Z', 'b'),
    ],
    ...[job(5, '2026-03-02T10:00:00Z', 'a'), job(6, '2026-03-01')],
  ];
  expect(sortByDueDate(listed, 4).map(({ jobNumber }) => jobNumber)).toEqual([6, 5, 4, 2]);
  expect(sortByDueDate(listed, 9)).toHaveLength(6);
});

test('a list that does not cover all accounts states its scope', () => {
  expect(formatListScope(3, 10, 4, 0)).toBe('');
  expect(formatListScope(12, 10, 4, 0)).toBe('First 10:');
  const rest = 'of the 30 accounts with the most jobs; 970 accounts not searched:';
  expect(formatListScope(12, 10, 30, 970)).toBe(`First 10 ${rest}`);
  expect(formatListScope(3, 10, 30, 970)).toBe(`Jobs ${rest}`);
  expect(formatListScope(0, 10, 30, 970)).toBe('');
});
