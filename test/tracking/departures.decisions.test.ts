/** The outcome of a job that is missing from a complete crawl (shared/tracking/departures.ts). */
import { describe, expect, test } from 'vitest';
import { type ActiveJobsQuery, JOB_DETAIL, type OrderingClient } from '../../shared/ordering/client.ts';
import { OrderingError, type OrderingErrorKind } from '../../shared/ordering/errors.ts';
import { ActiveJob, JobDetail } from '../../shared/ordering/schemas.ts';
import {
  classifyDeparture,
  type Evidence,
  investigate,
  verifySearch,
} from '../../shared/tracking/departures.ts';
import { listView } from '../../shared/tracking/views.ts';
import { BASELINE, detailed, listed, responseAt } from '../support/decisions.ts';

describe('the verdict on a missing job (rule 3)', () => {
  const response = responseAt(BASELINE, 'search');
  const evidence = (fields: Partial<Evidence>): Evidence => ({
    response,
    detail: detailed({ permissions: { canEdit: false } }),
    detailResponse: response,
    active: null,
    activeResponse: response,
    amongClosed: false,
    searched: true,
    ...fields,
  });
  const out = detailed({ dateOut: '2026-03-02' });

  test.each([
    ['in the active list, for any other evidence', { active: listed(), detail: out }, { kind: 'listed' }],
    ['dispatched and among the closed', { detail: out, amongClosed: true }, { kind: 'left', closed: true }],
    ['dispatched, in neither list', { detail: out }, { kind: 'left', closed: false }],
    ['not dispatched, among the closed', { amongClosed: true }, { kind: 'left', closed: true }],
    ['in neither list and locked', {}, { kind: 'suspected', as: 'cancelled' }],
    [
      'in neither list, without information about the lock',
      { detail: detailed() },
      { kind: 'suspected', as: 'cancelled' },
    ],
    [
      'in neither list but open for editing',
      { detail: detailed({ permissions: { canEdit: true } }) },
      { kind: 'contradictory' },
    ],
    ['unknown and in neither list', { detail: null }, { kind: 'suspected', as: 'unavailable' }],
    ['unknown but among the closed', { detail: null, amongClosed: true }, { kind: 'contradictory' }],
  ])('%s', (_, fields, verdict) => {
    expect(classifyDeparture(evidence(fields))).toEqual(verdict);
  });

  test('a job that was dispatched before is never suspected of being cancelled', () => {
    expect(classifyDeparture(evidence({}), true)).toEqual({ kind: 'contradictory' });
    expect(classifyDeparture(evidence({ amongClosed: true }), true)).toEqual({ kind: 'left', closed: true });
    expect(classifyDeparture(evidence({ detail: out }), true)).toEqual({ kind: 'left', closed: false });
    expect(classifyDeparture(evidence({ detail: null }), true)).toEqual({
      kind: 'suspected',
      as: 'unavailable',
    });
  });
});

describe('an entry of the full list that shows an undispatched job as editable (rule 3)', () => {
  const response = responseAt(BASELINE, 'search');
  const editable = { permissions: { canEdit: true } };
  const evidence = (fields: Partial<Evidence> = {}, entry: object = editable): Evidence => ({
    response,
    detail: detailed({ permissions: { canEdit: false } }),
    detailResponse: response,
    active: null,
    activeResponse: response,
    amongClosed: true,
    closed: { view: listed(entry), response },
    searched: true,
    ...fields,
  });
  const detailProblem = new OrderingError({ kind: 'forbidden', operation: JOB_DETAIL });
  const closed = { kind: 'left', closed: true };

  test('may be outdated: closed jobs are locked. So it counts only in the third investigation', () => {
    expect(classifyDeparture(evidence())).toEqual({ kind: 'undecided' });
    expect(classifyDeparture(evidence({ detail: null, detailProblem }), false, 1)).toEqual({
      kind: 'undecided',
    });
    expect(classifyDeparture(evidence(), false, 2)).toEqual(closed);
  });

  test.each([
    ['the entry is locked', evidence({}, { permissions: { canEdit: false } })],
    ['the entry does not contain the lock', evidence({}, {})],
    ['the entry shows the dispatch', evidence({}, { ...editable, dateOut: '2026-03-02' })],
    ['the detail shows the dispatch', evidence({ detail: detailed({ dateOut: '2026-03-02' }) })],
  ])('counts at once if %s', (_, given) => {
    expect(classifyDeparture(given)).toEqual(closed);
  });

  test('counts at once for a job that was dispatched before: it cannot be cancelled', () => {
    expect(classifyDeparture(evidence(), true)).toEqual(closed);
  });

  test('contradicts a detail that is unknown', () => {
    expect(classifyDeparture(evidence({ detail: null }))).toEqual({ kind: 'contradictory' });
  });
});

type Asked = 'detail' | 'active' | 'with closed';
/** The answers about job 1: its record (null: unknown), and pages of the lists by their job numbers. */
interface Script {
  /** The detail at the first reading and at the next one. */
  readonly details?: readonly (object | null)[];
  /** Each search of the active list: its pages. */
  readonly active?: readonly (readonly (readonly number[])[])[];
  /** Each reading of the list that includes closed jobs: its pages. */
  readonly withClosed?: readonly (readonly (readonly number[])[])[];
  /** A request that is never answered, and the kind of fault. */
  readonly fails?: readonly [question: Asked, kind: OrderingErrorKind];
}

const HERE = [[1]];
const NOWHERE = [[]];

/**
 * An upstream API that answers from a script, one second after the last answer, within ten milliseconds. It repeats the last
 * answer of a script. `asked`: the requests so far, a search once for all its pages.
 */
function scripted(script: Script) {
  const asked: Asked[] = [];
  const queries: ActiveJobsQuery[] = [];
  const signals = new Set<AbortSignal | undefined>();
  let now = BASELINE;
  const answered = <T>(body: T) => {
    now += 1000;
    return { body, requestedAt: now - 10, respondedAt: now };
  };
  const nth = <T>(answers: readonly T[], question: Asked): T =>
    answers[Math.min(asked.filter((other) => other === question).length, answers.length) - 1] as T;
  const client: Pick<OrderingClient, 'job' | 'activeJobs'> = {
    async job(jobNumber, signal) {
      asked.push('detail');
      signals.add(signal);
      const [failing, kind] = script.fails ?? [];
      if (failing === 'detail' && kind) throw new OrderingError({ kind, operation: JOB_DETAIL });
      const record = nth(script.details ?? [{}], 'detail');
      return answered(record === null ? undefined : JobDetail.parse({ jobNumber, ...record }));
    },
    async activeJobs(query, signal) {
      const question = query.includeClosedJobs ? 'with closed' : 'active';
      if (query.page === 1) asked.push(question);
      const [failing, kind] = script.fails ?? [];
      if (failing === question && kind) throw new OrderingError({ kind, operation: 'GET /Jobs/active' });
      queries.push(query);
      signals.add(signal);
      const pages = nth((query.includeClosedJobs ? script.withClosed : script.active) ?? [NOWHERE], question);
      const { page = 1, pageSize = 20 } = query;
      return answered({
        items: (pages[page - 1] ?? []).map((jobNumber) => ActiveJob.parse({ jobNumber })),
        totalCount: pages.flat().length,
        pageNumber: page,
        pageSize,
        totalPages: pages.length,
        hasNextPage: page < pages.length,
      });
    },
  };
  return { client: client as OrderingClient, asked, queries, signals };
}

describe('the requests for a missing job have a fixed order (rule 3)', () => {
  const dispatched = { dateOut: '2026-03-02' };
  const rows: [name: string, script: Script, asked: Asked[], verdict: object][] = [
    ['in the active list: a page had drifted', { active: [HERE] }, ['detail', 'active'], { kind: 'listed' }],
    [
      'in neither list: its detail is fetched again',
      {},
      ['detail', 'active', 'with closed', 'detail'],
      { kind: 'suspected', as: 'cancelled' },
    ],
    [
      'among the closed: the active list is searched again',
      { withClosed: [HERE] },
      ['detail', 'active', 'with closed', 'active', 'detail'],
      { kind: 'left', closed: true },
    ],
    [
      'back between the two searches: it is listed, not closed',
      { active: [NOWHERE, HERE], withClosed: [HERE] },
      ['detail', 'active', 'with closed', 'active'],
      { kind: 'listed' },
    ],
    [
      'dispatched in the first detail: a second one could not change that',
      { details: [dispatched] },
      ['detail', 'active', 'with closed'],
      { kind: 'left', closed: false },
    ],
    [
      'dispatched and closed',
      { details: [dispatched], withClosed: [HERE] },
      ['detail', 'active', 'with closed', 'active'],
      { kind: 'left', closed: true },
    ],
    [
      'dispatched during the investigation: the last detail counts',
      { details: [{}, dispatched] },
      ['detail', 'active', 'with closed', 'detail'],
      { kind: 'left', closed: false },
    ],
    [
      'unlocked during the investigation',
      { details: [{}, { permissions: { canEdit: true } }] },
      ['detail', 'active', 'with closed', 'detail'],
      { kind: 'contradictory' },
    ],
    [
      'unknown, and still unknown at the second fetch',
      { details: [null] },
      ['detail', 'active', 'with closed', 'detail'],
      { kind: 'suspected', as: 'unavailable' },
    ],
    [
      'unknown at first, and found at the second fetch',
      { details: [null, {}] },
      ['detail', 'active', 'with closed', 'detail'],
      { kind: 'suspected', as: 'cancelled' },
    ],
    [
      'unknown, and yet among the closed',
      { details: [null], withClosed: [HERE] },
      ['detail', 'active', 'with closed', 'active', 'detail'],
      { kind: 'contradictory' },
    ],
  ];
  test.each(rows)('%s', async (_, script, asked, verdict) => {
    const service = scripted(script);
    const evidence = await investigate(service.client, 1);
    expect(service.asked).toEqual(asked);
    expect(classifyDeparture(evidence)).toEqual(verdict);
    // From the first request to the last response, a second each (rule 13).
    expect(evidence.response).toEqual({
      requestedAt: BASELINE + 990,
      respondedAt: BASELINE + asked.length * 1000,
      view: 'search',
    });
    const record = asked.lastIndexOf('detail') + 1;
    expect(evidence.detailResponse).toEqual({
      requestedAt: BASELINE + record * 1000 - 10,
      respondedAt: BASELINE + record * 1000,
      view: 'detail',
    });
  });

  test.each(['active', 'with closed'] as const)(
    'a dispatch follows from the detail if the list cannot be searched (%s)',
    async (question) => {
      for (const kind of ['server_error', 'malformed', 'timeout'] as const) {
        const script: Script = { details: [dispatched], withClosed: [HERE], fails: [question, kind] };
        const evidence = await investigate(scripted(script).client, 1);
        expect(classifyDeparture(evidence)).toEqual({ kind: 'dispatched' });
        const response = { requestedAt: BASELINE + 990, respondedAt: BASELINE + 1000, view: 'detail' };
        expect(evidence).toMatchObject({
          response,
          detailResponse: response,
          activeResponse: response,
          detail: { dateOut: '2026-03-02' },
          amongClosed: false,
          searched: false,
        });
      }
    },
  );

  test.each([
    ['of a job that is not dispatched', [{}], 'server_error'],
    ['of an unknown job', [null], 'server_error'],
    ['if the connection fails, not the list', [dispatched], 'network'],
    ['if the credentials are rejected', [dispatched], 'unauthorized'],
  ] as const)('no verdict is reached %s without the searches', async (_, details, kind) => {
    const { client } = scripted({ details, fails: ['active', kind] });
    await expect(investigate(client, 1)).rejects.toMatchObject({ kind });
  });

  test("the job's active list entry is stored with its times", async () => {
    const { active, activeResponse } = await investigate(scripted({ active: [[[10], [11, 1]]] }).client, 1);
    expect(active).toEqual(listed({ masterJobStatus: null }));
    // From the request for the first page to the answer of the page that contains it.
    expect(activeResponse).toEqual({
      requestedAt: BASELINE + 1990,
      respondedAt: BASELINE + 3000,
      view: 'search',
    });
  });

  test('a search with many prefix matches is read to its last page, for exactly this number', async () => {
    const { client, queries } = scripted({
      active: [[[10, 11], [100, 12], [1000]]],
      withClosed: [[[10], [1]]],
    });
    expect(await investigate(client, 1)).toMatchObject({ active: null, amongClosed: true });
    const query = { searchText: '1', pageSize: 100 };
    expect(queries.slice(0, 5)).toEqual([
      { ...query, page: 1, includeClosedJobs: false },
      { ...query, page: 2, includeClosedJobs: false },
      { ...query, page: 3, includeClosedJobs: false },
      { ...query, page: 1, includeClosedJobs: true },
      { ...query, page: 2, includeClosedJobs: true },
    ]);
  });

  test('a search of more than 10 pages is bisected by job number, since newer jobs come first', async () => {
    for (const target of Array.from({ length: 50 }, (_, n) => 55 + n)) {
      const long = Array.from({ length: 41 }, (_, n) => [200 - 4 * n, 198 - 4 * n]);
      const { client, queries } = scripted({ active: [long] });
      const found = long.flat().includes(target);
      const evidence = await investigate(client, target);
      expect([target, classifyDeparture(evidence).kind]).toEqual([target, found ? 'listed' : 'suspected']);
      const active = queries.filter(({ includeClosedJobs }) => !includeClosedJobs);
      expect(active.length).toBeLessThanOrEqual(10 + 5);
      expect(evidence.activeResponse.respondedAt - evidence.activeResponse.requestedAt).toBeGreaterThan(0);
      expect(evidence.activeResponse.view).toBe('search');
    }
  });

  test('a long search ends at the page with a newer and an older job, or at the job itself', async () => {
    const long = Array.from({ length: 41 }, (_, n) => [200 - 4 * n, 198 - 4 * n]);
    // The middle of the pages 10 to 41 contains the jobs 104 and 102.
    for (const target of [102, 103, 104]) {
      const { client, queries } = scripted({ active: [long] });
      await investigate(client, target);
      const pages = queries.filter(({ includeClosedJobs }) => !includeClosedJobs).map(({ page }) => page);
      expect(pages).toEqual([1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 25]);
    }
  });

  test('a long search that ends meanwhile, or is in no order, proves nothing false', async () => {
    const long = (first: number) => Array.from({ length: 11 }, (_, n) => [first - n]);
    // The list became shorter: the later pages are empty.
    const shrunk = [...long(100).slice(0, 10), []];
    expect(classifyDeparture(await investigate(scripted({ active: [shrunk] }).client, 1)).kind).toBe(
      'suspected',
    );
    const unordered = [...long(100).slice(0, 10), [50, 60]];
    await expect(investigate(scripted({ active: [unordered] }).client, 1)).rejects.toThrow('in no order');
    const twice = [...long(100).slice(0, 10), [50, 50]];
    await expect(investigate(scripted({ active: [twice] }).client, 1)).rejects.toThrow('in no order');
  });

  test('every request can be aborted', async () => {
    const service = scripted({ withClosed: [HERE] });
    const { signal } = new AbortController();
    await investigate(service.client, 1, signal);
    expect([...service.signals]).toEqual([signal]);
  });
});

describe('a negative verdict requires searches that find a listed job (rule 3)', () => {
  const rows: [name: string, listed: number | undefined, script: Script, found: boolean][] = [
    ['a listed job is found by both', 1, { active: [HERE], withClosed: [HERE] }, true],
    ['a listed job is not found among the active', 1, { withClosed: [HERE] }, false],
    ['a listed job is not found with the closed', 1, { active: [HERE] }, false],
    ['a listed job is found by neither', 1, {}, false],
    ['nothing is listed: a closed one is found', undefined, { withClosed: [HERE] }, true],
    ['nothing is listed, and a closed one is not found', undefined, { withClosed: [HERE, [[10]]] }, false],
    ['nothing is listed, and nothing is closed', undefined, {}, false],
    ['nothing is listed, but another job is found', undefined, { withClosed: [NOWHERE, HERE] }, false],
  ];
  test.each(rows)('%s', async (_, listed, script, found) => {
    expect(await verifySearch(scripted(script).client, listed)).toBe(found);
  });

  test('without a job to find no search is sent', async () => {
    const { client, asked } = scripted({});
    await verifySearch(client, undefined);
    expect(asked).toEqual(['with closed']);
  });

  test('the closed control job is the newest', async () => {
    const { client, queries } = scripted({ withClosed: [[[7, 3]]] });
    expect(await verifySearch(client, undefined)).toBe(true);
    expect(queries).toEqual([
      { page: 1, pageSize: 100, includeClosedJobs: true },
      { page: 1, pageSize: 100, includeClosedJobs: true, searchText: '7' },
    ]);
  });
});

describe('a detail that cannot be read', () => {
  const fails = ['detail', 'server_error'] as const;

  test.each([
    ['in the active list', { active: [HERE] }, ['detail', 'active'], { kind: 'listed' }],
    [
      'among the closed',
      { withClosed: [HERE] },
      ['detail', 'active', 'with closed', 'active'],
      { jobNumber: 1 },
    ],
    [
      'back between the two searches',
      { active: [NOWHERE, HERE], withClosed: [HERE] },
      ['detail', 'active', 'with closed', 'active'],
      { kind: 'listed' },
    ],
  ] as const)('leaves the lists as evidence: %s', async (_, script, asked, verdict) => {
    const service = scripted({ ...script, fails });
    const evidence = await investigate(service.client, 1);
    expect(service.asked).toEqual(asked);
    const searches = asked.length - 1;
    const response = { requestedAt: BASELINE + 990, respondedAt: BASELINE + searches * 1000, view: 'search' };
    expect(evidence).toMatchObject({ detail: null, response, detailResponse: response, searched: true });
    expect(evidence.detailProblem).toMatchObject({ kind: 'server_error' });
    if ('kind' in verdict) expect(classifyDeparture(evidence)).toMatchObject(verdict);
    const closed = 'withClosed' in script;
    expect(evidence.amongClosed).toBe(closed);
    expect(evidence.closed).toEqual(
      closed
        ? {
            view: listView(ActiveJob.parse({ jobNumber: 1 })),
            response: { requestedAt: BASELINE + 1990, respondedAt: BASELINE + 2000, view: 'search' },
          }
        : undefined,
    );
    expect('closed' in evidence).toBe(closed);
  });

  test('proves nothing if the job is in neither list', async () => {
    const outcome = investigate(scripted({ fails }).client, 1);
    await expect(outcome).rejects.toMatchObject({ cause: { kind: 'server_error' } });
    await expect(outcome).rejects.not.toBeInstanceOf(OrderingError);
  });

  test.each(['unauthorized', 'network'] as const)('because of %s proves nothing', async (kind) => {
    const service = scripted({ active: [HERE], fails: ['detail', kind] });
    await expect(investigate(service.client, 1)).rejects.toMatchObject({ kind });
    expect(service.asked).toEqual(['detail']);
  });

  test('after the end of the poll proves nothing', async () => {
    const service = scripted({ active: [HERE], fails });
    await expect(investigate(service.client, 1, AbortSignal.abort())).rejects.toBeInstanceOf(OrderingError);
    expect(service.asked).toEqual(['detail']);
  });
});
