/** Job search of the dashboard: requests, completeness and order of the results, updates by events. */
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { shiftDay } from '../../dashboard/src/dates.ts';
import {
  formatEmptyResult,
  formatNoDeliveries,
  formatResultCount,
  summarizeAttempts,
  toWebLink,
} from '../../dashboard/src/jobs/labels.ts';
import {
  formatFlagResults,
  formatHours,
  formatRisk,
  formatShortReason,
  formatTiming,
  sumFlags,
} from '../../dashboard/src/jobs/risk.ts';
import {
  type JobQuery,
  JobSearch,
  type ListedJob,
  matchesJobQuery,
  type PageRequest,
  parseJobNumber,
  parseJobQuery,
  planSearch,
  type SearchedAccount,
} from '../../dashboard/src/jobs/search.ts';
import type { JobEvent } from '../../shared/events/event.ts';
import { runs } from '../support/runs.ts';

const account = (
  id: string,
  status: Partial<NonNullable<SearchedAccount['status']>> = {},
): SearchedAccount => ({
  id,
  region: 'us',
  status: {
    ...{ openJobs: 5, unreadJobs: 0, consecutiveFailures: 0, quarantinedAt: null },
    missingJobs: { pending: 0, suspected: 0, contradictory: 0 },
    ...status,
  },
});

const job = (jobNumber: number, rest: Partial<ListedJob> = {}): ListedJob => ({
  ...{ jobNumber, status: 'Scheduled', description: null, orderNumber: null, orderGroup: null },
  ...{ orderGroupSequence: null, originCode: null, dateDue: '2026-03-05', mustDate: null, dateOut: null },
  ...{ tracking: [], phase: 'listed', outcome: null, late: false },
  ...rest,
});

/** Answers a request like the API: by one filter, in the order of its index. */
function answer(jobs: readonly ListedJob[], { source: { filter }, after, limit }: PageRequest) {
  const [[name, value] = ['none', '']] = Object.entries(filter);
  const undispatched = (one: ListedJob) =>
    one.outcome === null && one.phase !== 'settling' && one.dateOut === null;
  const day = (text: string | null) => text?.slice(0, 10) ?? '9999-12-31';
  const test: Record<string, (one: ListedJob) => boolean> = {
    none: () => true,
    undispatched,
    late: (one) => one.late,
    risk: (one) => undispatched(one) && one.risk === value,
    status: (one) => one.status === value,
    dueOn: (one) => undispatched(one) && one.dateDue?.slice(0, 10) === value,
    dueBefore: (one) => undispatched(one) && one.dateDue !== null && one.dateDue < value,
    orderNumber: (one) => one.orderNumber === value,
    jobNumber: (one) => String(one.jobNumber) === value,
    orderGroup: (one) => one.orderGroup === value,
    dispatchedOn: (one) => day(one.dateOut) === value,
  };
  const byDue = ['undispatched', 'late', 'risk', 'status', 'dueOn', 'dueBefore'].includes(name);
  const places = jobs
    .filter((one) => test[name]?.(one))
    .map((one) => ({
      one,
      at: `${byDue ? day(one.dateDue) : ''}#${String(one.jobNumber).padStart(12, '0')}`,
    }))
    .sort((a, b) => (a.at < b.at ? -1 : 1))
    .filter(({ at }) => after === undefined || at > after);
  const page = places.slice(0, limit);
  return {
    jobs: page.map(({ one }) => one),
    next: places.length > limit ? (page.at(-1)?.at ?? null) : null,
  };
}

/** Runs a search until it has no more requests. `pick` chooses which outstanding request is answered next. */
function run(search: JobSearch, world: Record<string, readonly ListedJob[]>, pick = () => 0): PageRequest[] {
  const asked: PageRequest[] = [];
  const waiting = search.nextRequests();
  while (waiting.length > 0) {
    expect(waiting.length).toBeLessThanOrEqual(6);
    const [ask] = waiting.splice(pick() % waiting.length, 1);
    if (!ask) break;
    asked.push(ask);
    search.addPage(ask, answer(world[ask.source.account] ?? [], { ...ask, limit: Math.min(ask.limit, 20) }));
    waiting.push(...search.nextRequests());
  }
  return asked;
}

const days = ['2026-03-01', '2026-03-02', '2026-03-05'];
const some = fc.array(
  fc.record({
    status: fc.constantFrom('Scheduled', 'Shipped', null),
    orderNumber: fc.constantFrom('7', 'PO-1', null),
    orderGroup: fc.constantFrom('G', 'H', null),
    dateDue: fc.constantFrom(null, ...days, '2026-03-02T10:00:00-07:00', '2026-03-02T08:00:00-07:00'),
    dateOut: fc.constantFrom(null, null, ...days),
    outcome: fc.constantFrom(null, null, 'closed' as const),
    late: fc.boolean(),
    risk: fc.constantFrom('at-risk' as const, 'on-track' as const),
  }),
  { maxLength: 60 },
);
/** Rarely a filter, so that most searches have many results. */
const one = <T>(...values: readonly T[]) =>
  fc.oneof(
    { weight: 5, arbitrary: fc.constant(undefined) },
    { weight: 1, arbitrary: fc.constantFrom(...values) },
  );
const wishes: fc.Arbitrary<JobQuery> = fc.record({
  q: one('7', 'PO-1'),
  account: one('a', 'b'),
  status: one('Scheduled', 'Shipped'),
  dueOn: one(...days),
  dueBefore: one(...days),
  late: one(true),
  risk: one('at-risk' as const),
  dispatchedOn: one(...days),
  orderGroup: one('G'),
  all: one(true),
  open: one(true),
  sort: fc.constantFrom('due' as const, 'number' as const),
});

test('every search finds exactly the matching jobs, each once and in order', () => {
  fc.assert(
    fc.property(wishes, some, some, fc.infiniteStream(fc.nat()), (wanted, first, second, chance) => {
      const toJobs = (drafts: typeof first): ListedJob[] =>
        drafts.map((draft, at) =>
          job(at + 1, {
            ...draft,
            phase: draft.outcome === null ? 'listed' : 'settling',
            late: draft.late && draft.outcome === null && draft.dateOut === null,
          }),
        );
      const world = { a: toJobs(first), b: toJobs(second) };
      const search = new JobSearch(wanted, [account('a'), account('b')]);
      run(search, world, () => chance.next().value ?? 0);
      const { rows, complete } = search.getResult();
      expect(complete).toBe(true);
      const names = rows.map((row) => `${row.account}/${row.job.jobNumber}`);
      const expected = Object.entries(world).flatMap(([id, jobs]) =>
        jobs.filter((its) => matchesJobQuery(wanted, id, its)).map((its) => `${id}/${its.jobNumber}`),
      );
      expect([...names].sort()).toEqual([...expected].sort());
      const order = rows.map(({ job: its }) =>
        wanted.sort === 'number' ? its.jobNumber : (its.dateDue?.slice(0, 10) ?? '9999'),
      );
      expect(order).toEqual([...order].sort((x, y) => (x < y ? -1 : x > y ? 1 : 0)));
    }),
    runs(80, 300),
  );
});

test('rows shown before all pages are read keep their positions; further rows are appended', () => {
  // Within a day, higher numbers are due earlier, and the API lists by number.
  const due = (at: number): string =>
    `${shiftDay('2026-03-01', at % 90)}T${String(23 - Math.floor(at / 90)).padStart(2, '0')}:00:00Z`;
  const jobs = (from: number) => Array.from({ length: 700 }, (_, at) => job(from + at, { dateDue: due(at) }));
  const world = { a: jobs(1), b: jobs(1_001) };
  const search = new JobSearch({ sort: 'due' }, [account('a'), account('b')]);
  let before: string[] = [];
  for (let rows = 300; rows < 1_700; rows += 100) {
    search.requestRows(rows);
    run(search, world);
    const found = search.getResult();
    const names = found.rows.map((row) => `${row.account}/${row.job.jobNumber}`);
    expect(names.slice(0, before.length)).toEqual(before);
    expect(names.length >= rows || found.complete).toBe(true);
    before = names;
  }
  expect(before).toHaveLength(1_400);
});

test('a search reads only the requested rows, and queries no account that certainly has no open job', () => {
  const jobs = Array.from({ length: 5_000 }, (_, at) =>
    job(at + 1, { dateDue: shiftDay('2026-03-01', at % 90) }),
  );
  const accounts = [
    account('a'),
    account('none', { openJobs: 0 }),
    account('unread', { openJobs: 0, unreadJobs: 1 }),
    account('doubtful', { openJobs: 0, quarantinedAt: '2026-03-01T00:00:00Z' }),
    account('missing', { openJobs: 0, missingJobs: { suspected: 3 } }),
    account('failing', { openJobs: 0, consecutiveFailures: 2 }),
    { id: 'new', region: 'us', status: null },
  ];
  const search = new JobSearch({}, accounts);
  const asked = run(search, { a: jobs });
  expect(new Set(asked.map(({ source }) => source.account))).toEqual(
    new Set(['a', 'unread', 'doubtful', 'missing', 'failing', 'new']),
  );
  expect(search.getResult().skipped).toBe(1);
  expect(search.getResult().complete).toBe(false);
  expect(search.getResult().read).toBeLessThan(1_000);
  // Ended jobs can be in any account.
  expect(planSearch({ q: '77' }, accounts).skipped).toBe(0);
});

test('in an order other than that of the lists, rows are shown only when all are read or the result is cut', () => {
  const jobs = Array.from({ length: 21_000 }, (_, at) =>
    job(at + 1, { dateDue: shiftDay('2026-03-01', at % 90) }),
  );
  const search = new JobSearch({ sort: 'number' }, [account('a')]);
  for (let asks = search.nextRequests(); asks.length > 0; asks = search.nextRequests()) {
    for (const ask of asks) search.addPage(ask, answer(jobs, ask));
    const { cut, complete, rows } = search.getResult();
    if (!cut && !complete) expect(rows).toHaveLength(0);
  }
  expect(search.getResult()).toMatchObject({ cut: true, complete: false });
  expect(search.getResult().rows.length).toBe(20_000);
  search.readMore();
  for (let asks = search.nextRequests(); asks.length > 0; asks = search.nextRequests()) {
    for (const ask of asks) search.addPage(ask, answer(jobs, ask));
  }
  expect(search.getResult()).toMatchObject({ cut: false, complete: true });
  expect(search.getResult().rows.map((row) => row.job.jobNumber)).toEqual(jobs.map((its) => its.jobNumber));
});

test('the filter for open jobs includes dispatched jobs and excludes ended ones', () => {
  const jobs = [job(1), job(2, { dateOut: '2026-03-01' }), job(3, { outcome: 'closed', phase: 'settling' })];
  const search = new JobSearch({ open: true }, [account('a'), account('none', { openJobs: 0 })]);
  run(search, { a: jobs });
  expect(search.getResult().rows.map((row) => row.job.jobNumber)).toEqual([1, 2]);
  expect(search.getResult().skipped).toBe(1);
});

test('an empty result names accounts that failed to load', () => {
  const search = new JobSearch({ q: 'PO-1' }, [account('a'), account('b')]);
  for (const ask of search.nextRequests()) {
    if (ask.source.account === 'a') search.addPage(ask, answer([], ask));
    else search.addFailure(ask, 'It is on fire.');
  }
  const found = search.getResult();
  expect([found.complete, found.failures.length]).toEqual([true, 1]);
  expect(formatResultCount(found, {})).toBe('0 jobs by due day, without accounts that failed to load');
  expect(formatEmptyResult({ q: 'PO-1' }, true)).toBe(
    'No matching jobs in the accounts that could be loaded.',
  );
  expect(formatEmptyResult({ q: 'PO-1' }, false)).toMatch(/^No job has this order number/);
});

test('a failed account is listed in the result, the jobs of other accounts are shown, and a retry queries it again', () => {
  const search = new JobSearch({}, [account('a'), account('b')]);
  for (const ask of search.nextRequests()) {
    if (ask.source.account === 'a') search.addPage(ask, answer([job(1)], ask));
    else search.addFailure(ask, 'It is on fire.');
  }
  expect(search.getResult()).toMatchObject({ failures: [{ account: 'b', message: 'It is on fire.' }] });
  expect(search.getResult().rows).toHaveLength(1);
  search.retry();
  run(search, { b: [job(2)] });
  expect(search.getResult().failures).toEqual([]);
  expect(search.getResult().rows).toHaveLength(2);
});

const event = (type: string, its: ListedJob, id = 'a'): JobEvent =>
  ({ type, data: { account: id, region: 'us', job: its } }) as unknown as JobEvent;

test('a new job of an account without open jobs is counted as a match, unless a later event excludes it', () => {
  const accounts = [account('a'), account('none', { openJobs: 0 })];
  const begun = (events: readonly JobEvent[]) => {
    const search = new JobSearch({}, accounts);
    search.applyEarlierEvents(events);
    run(search, { a: [job(1)] });
    return search.getResult().fresh;
  };
  const created = event('job.created', job(7), 'none');
  expect(begun([created])).toBe(1);
  expect(begun([created, event('job.dispatched', job(7, { dateOut: '2026-03-01' }), 'none')])).toBe(0);
  expect(begun([event('job.created', job(7), 'a')])).toBe(0);
});

test('events update rows in place, and rows that no longer match stay with a mark', () => {
  const search = new JobSearch({ status: 'Scheduled' }, [account('a')]);
  run(search, { a: [job(1), job(2), job(3)] });
  const numbers = () => search.getResult().rows.map((row) => row.job.jobNumber);
  expect(
    search.applyEvents([event('job.status_changed', job(2, { status: 'Shipped', dateDue: '2026-01-01' }))]),
  ).toBe(true);
  expect(numbers()).toEqual([1, 2, 3]);
  expect(search.getResult().rows.map(({ gone }) => gone)).toEqual([false, true, false]);
  search.applyEvents([event('job.status_changed', job(2))]);
  expect(search.getResult().rows.map(({ gone }) => gone)).toEqual([false, false, false]);
  search.applyEvents([event('job.cancelled', job(3))]);
  expect(search.getResult().rows[2]).toMatchObject({ gone: true, job: { outcome: 'cancelled' } });
  // New matches are counted, not inserted.
  expect(search.applyEvents([event('job.created', job(4))])).toBe(true);
  expect(search.applyEvents([event('job.created', job(5, { status: 'Shipped' }))])).toBe(false);
  expect(search.getResult().fresh).toBe(1);
  expect(numbers()).toEqual([1, 2, 3]);
});

test.each<[type: string, view: string, isOpen: boolean]>([
  ['job.invoiced', 'detail', false],
  ['job.tracking_added', 'search', false],
  ['job.updated', 'detail', false],
  ['job.status_changed', 'list', true],
  ['job.overdue', 'detail', true],
  ['job.reopened', 'search', true],
])('a job that is not in the result is open after %s observed by %s: %s', (type, view, isOpen) => {
  const its = event(type, job(99));
  const countNew = (query: JobQuery): number => {
    const search = new JobSearch(query, [account('a')]);
    run(search, { a: [job(1)] });
    search.applyEvents([{ ...its, data: { ...its.data, observed: { view } } }]);
    return search.getResult().fresh;
  };
  for (const query of [{}, { open: true }, { status: 'Scheduled' }])
    expect(countNew(query)).toBe(isOpen ? 1 : 0);
  for (const query of [{ all: true }, { status: 'Scheduled', all: true }]) expect(countNew(query)).toBe(1);
});

test('a later search updates the rows in place, marks those that no longer match, and counts new matches', () => {
  const search = new JobSearch({ risk: 'at-risk' }, [account('a')]);
  const risky = (jobNumber: number, hours: number) =>
    job(jobNumber, { risk: 'at-risk', inStatus: { hours } as NonNullable<ListedJob['inStatus']> });
  run(search, { a: [risky(1, 1), risky(2, 1)] });
  const later = new JobSearch({ risk: 'at-risk' }, [account('a')]);
  run(later, { a: [job(1, { risk: 'on-track' }), risky(2, 9), risky(3, 2)] });
  search.update(later);
  const { rows, fresh } = search.getResult();
  expect(rows.map((row) => [row.job.jobNumber, row.gone, row.job.inStatus?.hours])).toEqual([
    [1, true, 1],
    [2, false, 9],
  ]);
  expect(fresh).toBe(1);
});

test('a later search that could not be completed marks no rows as gone, and reports its errors', () => {
  const search = new JobSearch({}, [account('a')]);
  run(search, { a: Array.from({ length: 50 }, (_, at) => job(at + 1)) });
  const failed = new JobSearch({}, [account('a')]);
  const [first] = failed.nextRequests();
  if (!first) throw new Error('No request.');
  failed.addFailure(first, 'Too many requests.');
  search.update(failed);
  expect(search.getResult().rereadFailures).toEqual([{ account: 'a', message: 'Too many requests.' }]);
  const partial = new JobSearch({}, [account('a')]);
  const [ask] = partial.nextRequests();
  if (!ask) throw new Error('No request.');
  partial.addPage(ask, { jobs: [job(2)], next: 'x' });
  search.update(partial);
  expect(search.getResult().rereadFailures).toEqual([]);
  // Pages are sorted by due day, not within it.
  expect(search.getResult().rows.filter(({ gone }) => gone)).toEqual([]);
});

test('a job is late from job.overdue until it is dispatched or its due date changes', () => {
  const search = new JobSearch({}, [account('a')]);
  run(search, { a: [job(1)] });
  const late = () => search.getResult().rows[0]?.job.late;
  search.applyEvents([event('job.overdue', job(1))]);
  expect(late()).toBe(true);
  search.applyEvents([event('job.status_changed', job(1, { status: 'Held' }))]);
  expect(late()).toBe(true);
  search.applyEvents([event('job.due_date_changed', job(1, { dateDue: '2026-04-01' }))]);
  expect(late()).toBe(false);
  search.applyEvents([event('job.overdue', job(1, { dateDue: '2026-04-01' }))]);
  search.applyEvents([event('job.dispatched', job(1, { dateDue: '2026-04-01', dateOut: '2026-04-02' }))]);
  expect(late()).toBe(false);
});

test('a job that appears again on a later page keeps its position', () => {
  const search = new JobSearch({}, [account('a')]);
  const take = (page: Parameters<JobSearch['addPage']>[1]) => {
    const [ask] = search.nextRequests();
    if (!ask) throw new Error('No request.');
    search.addPage(ask, page);
  };
  take({ jobs: [job(1, { dateDue: '2026-03-01' }), job(2, { dateDue: '2026-03-02' })], next: 'x' });
  take({ jobs: [job(1, { dateDue: '2026-03-09' })], next: null });
  const { rows } = search.getResult();
  expect(rows.map((row) => [row.job.jobNumber, row.job.dateDue])).toEqual([
    [1, '2026-03-09'],
    [2, '2026-03-02'],
  ]);
});

test('a page does not overwrite events that arrived during its request', () => {
  const search = new JobSearch({}, [account('a')]);
  const [ask] = search.nextRequests();
  if (!ask) throw new Error('No request.');
  search.applyEvents([event('job.status_changed', job(1, { status: 'Held' }))]);
  search.addPage(ask, { jobs: [job(1)], next: null });
  expect(search.getResult().rows[0]?.job.status).toBe('Held');
  expect(search.getResult().fresh).toBe(0);
});

test('relative days in the address are resolved on the current day', () => {
  const read = (params: Record<string, string>) => parseJobQuery((name) => params[name], '2026-11-21');
  expect(read({ due: 'today' })).toMatchObject({ dueOn: '2026-11-21' });
  expect(read({ due: 'tomorrow' })).toMatchObject({ dueOn: '2026-11-22' });
  // A week is Monday to Sunday; the 21st is a Saturday.
  expect(read({ due: 'week' })).toMatchObject({ dueFrom: '2026-11-16', dueBefore: '2026-11-23' });
  expect(read({ dueOn: 'soon', late: 'yes' })).toMatchObject({ dueOn: undefined, late: undefined });
  expect(['410001', '#410,001', ' 1', 'PO-1', '0', '1234567890123'].map(parseJobNumber)).toEqual([
    ...[410_001, 410_001, 1, undefined, undefined, undefined],
  ]);
});

test('the jobs of an account are found if another region is selected', () => {
  const read = (params: Record<string, string>) => parseJobQuery((name) => params[name], '2026-11-21');
  const find = (params: Record<string, string>) =>
    planSearch(read(params), [account('a'), { ...account('b'), region: 'eu' }]).sources.map(
      (source) => source.account,
    );
  expect(find({ region: 'eu' })).toEqual(['b']);
  expect(find({ region: 'eu', account: 'a' })).toEqual(['a']);
});

test('the reason for a risk is formatted in numbers, and an unknown risk without any', () => {
  const usual = { p50Hours: 32, p90Hours: 50, jobs: 31 };
  const inStatus = { since: '', sinceEarliest: '', hours: 72, usual };
  const forecast = { hoursLeft: 26, remaining: { ...usual, longer: 18 }, unknown: null, flaggedAt: null };
  const blockingLine = { status: 'Proof', jobLineIds: [7], lines: 1, p50Hours: 90 };
  const risky = job(1, {
    risk: 'at-risk',
    hoursLate: null,
    mustDate: true,
    inStatus,
    forecast,
    blockingLine,
  });
  expect(formatTiming(risky)).toBe(
    'due date must be met · 26 h left, usually dispatched within 32 h, 9 in 10 within 2.1 days; 18 of 31 jobs needed longer · 3 days (usually 32 h, 9 in 10 at most 2.1 days) in this status · furthest behind: line 7 in Proof',
  );
  expect(formatShortReason(risky)).toBe('mandatory due date, 26 h left, usually 32 h more, line 7 in Proof');
  expect(formatRisk(risky)).toEqual({ tone: 'warn', text: 'At risk' });
  expect(formatRisk({ ...risky, late: true, risk: 'late', hoursLate: 5.2 })).toEqual({
    ...{ tone: 'bad', text: '5.2 h late' },
  });
  const unknown = { hoursLeft: 26, remaining: null, unknown: 'too-few-jobs' as const, flaggedAt: null };
  const stay = { ...inStatus, sinceEarliest: null, usual: null };
  const unclear = job(1, { risk: 'unknown', inStatus: stay, forecast: unknown });
  expect(formatTiming(unclear)).toBe('at least 3 days in this status');
  expect([formatShortReason(unclear), formatRisk(unclear)]).toEqual(['', undefined]);
  expect([0.25, 5.5, 30, 60].map(formatHours)).toEqual(['15 min', '5.5 h', '30 h', '2.5 days']);
});

test('the results of the flags of several accounts are added up', () => {
  const flags = { from: '2026-03-02', flagged: 3, flaggedLate: 2, late: 4, lateFlaggedDayBefore: 1 };
  const none = { from: '2026-03-02', flagged: 0, flaggedLate: 0, late: 0, lateFlaggedDayBefore: 0 };
  expect(formatFlagResults(sumFlags([{ flags }, { flags }, { flags: none }]))).toBe(
    'Last 8 weeks: 4 of 6 jobs at risk became late (67 %); 2 of 8 late jobs flagged a day before (25 %).',
  );
  expect(formatFlagResults(sumFlags([]))).toBe('No results of the last 8 weeks yet.');
});

test('a job keeps its risk after an event until it is read again, and is late after job.overdue', () => {
  const search = new JobSearch({}, [account('a')]);
  run(search, { a: [job(1, { risk: 'at-risk' })] });
  search.applyEvents([event('job.status_changed', job(1, { status: 'Held' }))]);
  expect(search.getResult().rows[0]?.job.risk).toBe('at-risk');
  search.applyEvents([event('job.overdue', job(1))]);
  expect(search.getResult().rows[0]?.job).toMatchObject({ risk: 'late', late: true });
});

test('only http and https links are rendered as links', () => {
  expect(toWebLink('https://carrier.example/t?n=1')).toBe('https://carrier.example/t?n=1');
  for (const link of ['javascript:alert(1)', 'JaVaScRiPt:alert(1)', 'data:text/html,x', '//x', 'x', '', null])
    expect(toWebLink(link)).toBeUndefined();
});

test('the delivery status of an event is the outcome of its last attempts', () => {
  const of = (...outcomes: ('delivered' | 'rejected' | 'retry')[]) =>
    summarizeAttempts(outcomes.map((outcome) => ({ outcome }))).text;
  expect(of('delivered')).toBe('delivered');
  expect(of('retry', 'rejected', 'delivered')).toBe('delivered after 2 failures');
  expect(of('retry', 'rejected')).toBe('rejected 2 times');
  expect(of('retry')).toBe('failed once');
});

test('an event whose deliveries have expired is not called undelivered', () => {
  const of = (time: string) => formatNoDeliveries(time, Date.parse('2026-11-30'));
  expect(of('2026-11-01T00:00:00Z')).toBe('No deliveries yet.');
  expect(of('2026-10-01T00:00:00Z')).toBe('No deliveries in the last 30 days.');
});
