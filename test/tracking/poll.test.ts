/**
 * The events of an account, rule by rule, from complete polls of a sandbox.
 * One file: its tests share the baseline of a rig and the checks of its requests.
 */
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import type { FaultRule } from '../../sandbox/http/faults.ts';
import type { RequestInfo } from '../../sandbox/http/traffic.ts';
import type { JobEvent } from '../../shared/events/event.ts';
import type { ActiveJobsQuery, OrderingClient } from '../../shared/ordering/client.ts';
import { OrderingError } from '../../shared/ordering/errors.ts';
import { createMemoryTable } from '../../shared/storage/sqlite-table.ts';
import { crawl } from '../../shared/tracking/crawl.ts';
import { pollAccount } from '../../shared/tracking/poll.ts';
import { createRig, type Rig, START } from '../support/tracker.ts';

/** A rig with a baseline and existing jobs, which the tracker knows without events. */
async function baselined(
  jobs = 3,
  options: Parameters<typeof createRig>[0] = {},
): Promise<Rig & { readonly jobs: number[] }> {
  const rig = await createRig(options);
  const numbers = Array.from({ length: jobs }, () => rig.upstream.createJob({ status: 'Awaiting artwork' }));
  await rig.poll();
  await rig.fresh();
  return Object.assign(rig, { jobs: numbers });
}

/** Runs an action once, before the first matching request is answered. */
function rightBefore(rig: Rig, matches: (request: RequestInfo) => boolean, act: () => void): void {
  rig.sandbox.onRequest = (request) => {
    if (!matches(request)) return;
    rig.sandbox.onRequest = undefined;
    act();
  };
}

const page =
  (number: number) =>
  ({ operation, query }: RequestInfo) =>
    operation === 'activeJobs' &&
    query.page === String(number) &&
    !query.searchText &&
    !query.includeClosedJobs;
const search =
  (jobNumber: number, includeClosedJobs: boolean) =>
  ({ query }: RequestInfo) =>
    query.searchText === String(jobNumber) && query.includeClosedJobs === String(includeClosedJobs);

/** Fails a page and each of its parts, so that the API returns none of it. */
function spoilPage(rig: Rig, page: number, fault: FaultRule['fault']): void {
  const parts = Array.from({ length: 5 }, (_, n) => ({ page: 5 * (page - 1) + n + 1, pageSize: 20 }));
  for (const query of [{ page, pageSize: 100 }, ...parts]) {
    rig.fault({ match: { operation: 'activeJobs', query }, fault });
  }
}

const T1 = { trackingNumber: 'T1', trackingLink: null };
const T2 = { trackingNumber: 'T2', trackingLink: 'https://parcels.example/T2' };

/** More than the 15 minutes of a confirmation. */
const CONFIRMED = 17;

/** The stored state of a job without changes. */
const UNCHANGED = {
  kind: { status: null, dispatched: false, dateDue: null },
  truncated: false,
  view: undefined,
};

describe('the crawl', () => {
  test('reads page 1 first and the others four at a time, a hundred jobs each, unfiltered (rule 1)', async () => {
    const rig = await baselined(1150);
    rig.sandbox.requests.clear();
    let firstPageAlone = false;
    rig.sandbox.onRequest = async ({ query }) => {
      if (query.page !== '1') return;
      await new Promise((resolve) => setImmediate(resolve));
      firstPageAlone = rig.sandbox.requests.count({ operation: 'activeJobs' }) === 1;
    };
    const { requests, detailFetches, ...report } = await rig.poll();
    expect(report).toMatchObject({ outcome: 'complete', pages: 12, openJobs: 1150 });
    // The others are detail fetches of the daily rotation.
    expect(requests - detailFetches).toBe(12);
    expect(firstPageAlone).toBe(true);
    expect(rig.sandbox.requests.mostInFlight('activeJobs')).toBeLessThanOrEqual(4);
    const queries = rig.sandbox.requests.list({ operation: 'activeJobs' }).map(({ query }) => query);
    expect(queries.map((query) => Number(query.page)).sort((a, b) => a - b)).toEqual(
      Array.from({ length: 12 }, (_, n) => n + 1),
    );
    for (const query of queries) expect(Object.keys(query).sort()).toEqual(['page', 'pageSize']);
  });

  test('uses the later answer for a job on two pages (rule 1)', async () => {
    const rig = await baselined(150);
    const moved = rig.jobs[50] ?? 0; // The last of page 1: one more job before it moves it to page 2.
    let created = 0;
    rightBefore(rig, page(2), () => {
      created = rig.upstream.createJob();
      rig.upstream.setStatus(moved, 'Ready to ship');
    });
    expect(await rig.pollTypes()).toEqual([`job.status_changed ${moved}`]);
    expect(await rig.pollTypes()).toEqual([`job.created ${created}`]);
  });

  test('ends, and counts as incomplete, if the list never ends (rule 1)', async () => {
    let asked = 0;
    const client = {
      activeJobs: async ({ page }: { page: number }) => {
        asked += 1;
        const body = {
          items: [],
          totalCount: 0,
          pageNumber: page,
          pageSize: 100,
          totalPages: page + 1,
          hasNextPage: true,
        };
        return { body, requestedAt: 0, respondedAt: 0 };
      },
    } as unknown as OrderingClient;
    expect(
      (await crawl(client, { now: () => 0, notice: (_, response) => ({ ...UNCHANGED, response }) })).complete,
    ).toBe(false);
    expect(asked).toBeLessThanOrEqual(501);
  });

  const SPOILED: [string, FaultRule['fault'], Partial<FaultRule['match']>?][] = [
    ['is a 500 twice', { kind: 'status', status: 500 }],
    ['is a 503 of a proxy in HTML', { kind: 'status', status: 503, body: 'html' }],
    ['is a 403', { kind: 'status', status: 403 }],
    ['is rejected with every token', { kind: 'status', status: 401 }],
    ['is an HTML page with 200', { kind: 'status', status: 200, body: 'html' }],
    ['is truncated', { kind: 'cutBody' }],
    ['is half a document', { kind: 'truncatedJson' }],
    ['never comes because the connection breaks', { kind: 'reset' }],
    ['has items that are null', { kind: 'itemsNull' }],
    ['is another page', { kind: 'wrongPageEcho' }],
    ['has another size', { kind: 'wrongPageEcho', pageSize: 50 }],
    ['has no envelope', { kind: 'raw', body: '[]' }],
    [
      'has a job of a wrong shape',
      {
        kind: 'raw',
        body: JSON.stringify({
          items: [{ jobNumber: 'x' }],
          totalCount: 1,
          pageNumber: 2,
          pageSize: 100,
          totalPages: 3,
          hasNextPage: true,
        }),
      },
    ],
  ];
  test.each(SPOILED)(
    'is incomplete if a page %s, and so does each part of it: absence proves nothing, observed changes are emitted (rule 2)',
    async (_, fault) => {
      const rig = await baselined(250);
      const [oldest = 0, newest = 0] = [rig.jobs[0], rig.jobs[249]];
      const middle = rig.jobs[120] ?? 0;
      spoilPage(rig, 2, fault);
      rig.upstream.close(middle);
      rig.upstream.setStatus(newest, 'Ready to ship');
      // A bad item does not prevent reading the later pages.
      const readsOn = fault.kind === 'raw' || fault.kind === 'itemsNull' || fault.kind === 'wrongPageEcho';
      if (readsOn) rig.upstream.setStatus(oldest, 'Ready to ship');
      const report = await rig.poll();
      expect(report).toMatchObject({ outcome: 'partial', detailFetches: readsOn ? 2 : 1 });
      const said = (await rig.fresh())
        .map(({ type, subject }) => `${type} ${subject?.slice(5)}`)
        .filter((text) => text.startsWith('job.'));
      expect(said).toContain(`job.status_changed ${newest}`);
      expect(said.filter((text) => !text.startsWith('job.status_changed'))).toEqual([]);
      expect((await rig.status()).lastGoodCrawlStartedAt).toBe(START + 60_000);

      rig.sandbox.faults.clear();
      rig.pass(1200);
      expect(
        (await rig.pollTypes()).filter((text) => /closed|departed|cancelled|unavailable/.test(text)),
      ).toEqual([`job.closed ${middle}`]);
    },
  );

  test('is incomplete if answers time out (rule 2)', async () => {
    const rig = await baselined(150, { timeoutMs: 300 });
    spoilPage(rig, 2, { kind: 'hang' });
    rig.upstream.close(rig.jobs[0] ?? 0);
    expect(await rig.poll()).toMatchObject({ outcome: 'partial', detailFetches: 0, events: 0, requests: 4 });
  });

  test('continues with a new token if the old one is rejected midway, after checking its identity (rules 2 and 9)', async () => {
    const rig = await baselined(250);
    rightBefore(rig, page(2), () => rig.sandbox.revokeTokens());
    rig.sandbox.requests.clear();
    expect(await rig.poll()).toMatchObject({ outcome: 'complete', events: 0 });
    expect(rig.sandbox.requests.count({ operation: 'account' })).toBe(1);
  });
});

describe('an unread list entry (rule 2)', () => {
  /** Fails every list and search that contains the job. Returns the function that ends it. */
  function poison(
    rig: Rig,
    jobNumber: number,
    fault: FaultRule['fault'] = { kind: 'status', status: 500 },
  ): () => void {
    const id = rig.sandbox.faults.add({ match: { operation: 'activeJobs', listsJob: jobNumber }, fault });
    return () => rig.sandbox.faults.remove(id);
  }

  /** Page requests of the last poll's crawl: page size → number. */
  function pagesAsked(rig: Rig): Record<string, number> {
    const asked: Record<string, number> = {};
    for (const { query } of rig.sandbox.requests.list({ operation: 'activeJobs' })) {
      if (query.searchText || query.includeClosedJobs) continue;
      const size = String(query.pageSize);
      asked[size] = (asked[size] ?? 0) + 1;
    }
    return asked;
  }

  const PLACES: [string, number[]][] = [
    ['as the newest', [200]],
    ['on page 1', [130]],
    ['at the end of page 1', [101]],
    ['at the beginning of page 2', [100]],
    ['on page 2', [77]],
    ['as the only one of the last page', [0]],
    ['beside another', [140, 139]],
    ['with others on the same page', [190, 150, 110]],
    ['with others on every page', [130, 60, 0]],
  ];
  test.each(PLACES)('hides no other job: %s', async (_, places) => {
    const rig = await baselined(201);
    const poisoned = places.map((place) => rig.jobs[place] ?? 0);
    for (const job of poisoned) poison(rig, job);
    const healthy = rig.jobs.filter((job) => !poisoned.includes(job));
    const [moving = 0, dispatched = 0, closed = 0] = [healthy.at(40), healthy.at(160), healthy.at(-20)];
    const cancelled = healthy.at(-60) ?? 0;
    rig.upstream.setStatus(moving, 'Ready to ship');
    rig.upstream.dispatch(dispatched);
    rig.upstream.close(closed);
    rig.upstream.cancel(cancelled);
    const created = [rig.upstream.createJob(), rig.upstream.createJob()];
    for (let n = 0; n < CONFIRMED; n += 1) {
      expect(await rig.poll()).toMatchObject({
        outcome: 'complete',
        state: 'tracking',
        openJobs: 201,
        unread: poisoned.length,
      });
      expect(await rig.status()).toMatchObject({
        lastGoodCrawlStartedAt: rig.now(),
        consecutiveFailures: 0,
        openJobs: 201,
        unreadJobs: poisoned.length,
        problem: expect.stringMatching(
          new RegExp(
            `^${poisoned.length} of 201 entries of the list can’t be read \\(GET /Jobs/active failed: .*500`,
          ),
        ),
      });
    }
    const said = (await rig.fresh()).map(({ type, subject }) => `${type} ${subject?.slice(5)}`);
    expect(said.sort()).toEqual(
      [
        `job.status_changed ${moving}`,
        `job.locked ${dispatched}`,
        `job.dispatched ${dispatched}`,
        `job.closed ${closed}`,
        `job.cancelled ${cancelled}`,
        ...created.map((job) => `job.created ${job}`),
      ].sort(),
    );
  });

  test('costs 18 requests a poll; a poll without one costs none', async () => {
    const rig = await baselined(201);
    const cure = poison(rig, rig.jobs[120] ?? 0);
    // After this one the job itself is not requested for a while.
    for (let n = 0; n < 6; n += 1) await rig.poll();
    rig.sandbox.requests.clear();
    expect(await rig.poll()).toMatchObject({ pages: 3, detailFetches: 0, requests: 3 + 18 });
    expect(pagesAsked(rig)).toEqual({ 100: 4, 20: 6, 4: 6, 1: 5 });
    // It is in the list, so its absence cannot lead to a quarantine.
    expect((await rig.status()).missing).toEqual({ unanswered: 0, suspected: 0, contradictory: 0 });
    cure();
    await rig.pollTypes(2);
    expect(await rig.poll()).toMatchObject({ pages: 3, unread: 0, requests: 3 });
    expect(await rig.status()).toMatchObject({ unreadJobs: 0, problem: null });
  });

  test('emits no false events, and each past change once, as soon as it is readable', async () => {
    const rig = await baselined(150);
    const [a = 0, b = 0, c = 0] = [rig.jobs[20], rig.jobs[21], rig.jobs[100]];
    const lastSeen = rig.now();
    const cures = [a, b, c].map((job) => poison(rig, job));
    expect(await rig.pollTypes()).toEqual([]);
    rig.upstream.dispatch(a, { tracking: [T1] });
    rig.upstream.close(b);
    // Its detail is readable, and proves the dispatch.
    for (let n = 0; n < 40; n += 1) await rig.poll();
    const told = await rig.fresh();
    const name = ({ type, subject }: (typeof told)[number]) => `${type} ${subject?.slice(5)}`;
    expect(told.map(name)).toEqual([`job.dispatched ${a}`, `job.tracking_added ${a}`]);
    for (const cure of cures) cure();
    const readable = rig.now();
    await rig.poll();
    const events = await rig.fresh();
    expect(events.map(name)).toEqual([`job.locked ${a}`]);
    const observed = [...told, ...events].map(({ data }) => data.observed as { since: string; at: string });
    for (const { since } of observed) expect(since).toBe(new Date(lastSeen).toISOString());
    expect(Date.parse(observed[2]?.at ?? '')).toBeGreaterThan(readable);
    // Missing as before, so it is requested at its next time.
    expect(await rig.pollTypes(15)).toEqual([`job.closed ${b}`]);
    rig.upstream.setStatus(c, 'Scheduled');
    expect(await rig.pollTypes(60)).toEqual([`job.status_changed ${c}`]);
  });

  test('from its first day on: it is created when it is readable, with the time at which it did not exist yet', async () => {
    const rig = await baselined(120);
    const baseline = rig.now();
    await rig.poll();
    const before = rig.now();
    rig.pass(30);
    const job = rig.upstream.createJob();
    const cure = poison(rig, job);
    rig.upstream.dispatch(job);
    expect(await rig.pollTypes(40)).toEqual([]);
    cure();
    await rig.poll();
    const events = await rig.fresh();
    expect(events.map(({ type, subject }) => `${type} ${subject?.slice(5)}`)).toEqual([
      `job.created ${job}`,
      `job.dispatched ${job}`,
    ]);
    for (const { data } of events) {
      const { since } = data.observed as { since: string };
      expect(Date.parse(since)).toBeGreaterThanOrEqual(baseline);
      expect(Date.parse(since)).toBeLessThanOrEqual(before);
    }
    expect(await rig.pollTypes(60)).toEqual([]);
  });

  test("does not prevent an account's baseline; the job is adopted later without events", async () => {
    const rig = await createRig();
    const jobs = Array.from({ length: 30 }, () => rig.upstream.createJob({ status: 'Awaiting artwork' }));
    const [, old = 0] = jobs;
    rig.upstream.dispatch(old);
    const cure = poison(rig, old);
    await rig.poll();
    expect((await rig.fresh()).map(({ type, data }) => [type, data.openJobs])).toEqual([
      ['account.baselined', 30],
    ]);
    expect(await rig.pollTypes(20)).toEqual([]);
    cure();
    expect(await rig.pollTypes(3)).toEqual([]);
    rig.upstream.edit(old, { description: 'Other' });
    expect(await rig.pollTypes()).toEqual([`job.updated ${old}`]);
  });

  test('may be the only entry', async () => {
    const rig = await baselined(2);
    const [a = 0, b = 0] = rig.jobs;
    poison(rig, a);
    rig.upstream.close(b);
    expect(await rig.pollTypes()).toEqual([`job.closed ${b}`]);
    expect(await rig.status()).toMatchObject({ state: 'tracking', openJobs: 1, unreadJobs: 1 });
  });

  const UNREADABLE: [string, FaultRule['fault']][] = [
    ['an HTML page with 200', { kind: 'status', status: 200, body: 'html' }],
    ['half a document', { kind: 'truncatedJson' }],
    ['items that are null', { kind: 'itemsNull' }],
    ['another page', { kind: 'wrongPageEcho' }],
    ['a page of another size', { kind: 'wrongPageEcho', pageSize: 3 }],
  ];
  test.each(UNREADABLE)('can also answer %s', async (_, fault) => {
    const rig = await baselined(130);
    poison(rig, rig.jobs[70] ?? 0, fault);
    rig.upstream.close(rig.jobs[71] ?? 0);
    expect(await rig.poll()).toMatchObject({ outcome: 'complete', unread: 1 });
    expect((await rig.fresh()).map(({ type }) => type)).toEqual(['job.closed']);
  });

  test('is not searched for if a page failed only once: all of it is read in parts', async () => {
    const rig = await baselined(250);
    rig.fault({
      match: { operation: 'activeJobs', query: { page: 2, pageSize: 100 } },
      fault: { kind: 'status', status: 500 },
    });
    rig.upstream.close(rig.jobs[120] ?? 0);
    rig.sandbox.requests.clear();
    const report = await rig.poll();
    expect(report).toMatchObject({ outcome: 'complete', pages: 3, unread: 0, events: 1 });
    expect(report).not.toHaveProperty('problem');
    expect(pagesAsked(rig)).toEqual({ 100: 4, 20: 5 });
    expect(await rig.status()).toMatchObject({ unreadJobs: 0, problem: null });
  });

  test('on a page after an empty one is not treated as beyond the end', async () => {
    const rig = await baselined(450);
    poison(rig, rig.jobs[120] ?? 0);
    rig.fault({
      match: { operation: 'activeJobs', query: { page: 5, pageSize: 100 } },
      fault: { kind: 'emptyList', delayMs: 20 },
    });
    rig.fault({
      match: { operation: 'activeJobs', query: { page: 3, pageSize: 100 } },
      fault: { kind: 'emptyList', delayMs: 40 },
    });
    expect(await rig.poll()).toMatchObject({ outcome: 'complete', unread: 1, pages: 5, events: 0 });
  });

  test('that moves during the search causes no false events for its neighbours', async () => {
    const rig = await baselined(190);
    const cure = poison(rig, rig.jobs[90] ?? 0);
    // One more job at the top with each request: every entry moves on by a place, from part to part.
    let growing = true;
    rig.sandbox.onRequest = ({ query }) => {
      if (growing && Number(query.pageSize) < 100) rig.upstream.createJob();
    };
    for (let n = 0; n < 3; n += 1) expect((await rig.poll()).outcome).toBe('complete');
    // And now they move back.
    const young = rig.upstream.activeJobNumbers().slice(190);
    const hidden: number[] = [];
    rig.sandbox.onRequest = ({ query }) => {
      const job = growing && Number(query.pageSize) < 100 ? young.pop() : undefined;
      if (!job) return;
      rig.upstream.hide(job);
      hidden.push(job);
    };
    for (let n = 0; n < 3; n += 1) expect((await rig.poll()).outcome).toBe('complete');
    growing = false;
    cure();
    for (const job of hidden) rig.upstream.unhide(job);
    expect((await rig.pollTypes(30)).filter((text) => !text.startsWith('job.created'))).toEqual([]);
  });

  test('found by the sweep, hides no job that came and went beside it', async () => {
    const rig = await baselined(2);
    rig.pass(900);
    await rig.poll();
    const before = rig.upstream.createJob();
    const poisoned = rig.upstream.createJob();
    const after = rig.upstream.createJob();
    for (const job of [before, poisoned, after]) rig.upstream.close(job);
    const cure = poison(rig, poisoned);
    expect(await rig.poll()).toMatchObject({ outcome: 'complete', unread: 0, unreadInSweep: 1 });
    expect((await rig.fresh()).map(({ type, subject }) => `${type} ${subject?.slice(5)}`)).toEqual([
      `job.created ${before}`,
      `job.closed ${before}`,
      `job.created ${after}`,
      `job.closed ${after}`,
    ]);
    expect(await rig.pollTypes(20)).toEqual([]);
    // The sweeps have passed it: it is not known that it existed.
    cure();
    expect(await rig.pollTypes(20)).toEqual([]);
  });

  test('among the closed ones does not prevent checking the search', async () => {
    const rig = await baselined(3);
    const [a = 0, b = 0, c = 0] = rig.jobs;
    for (const job of [b, c]) rig.upstream.close(job);
    await rig.pollTypes();
    poison(rig, c);
    rig.upstream.cancel(a);
    expect(await rig.pollTypes(CONFIRMED)).toEqual([`job.cancelled ${a}`]);
  });

  test('is not assumed if the token endpoint fails: no parts are requested', async () => {
    const rig = await baselined(150);
    rightBefore(rig, page(2), () => {
      rig.sandbox.revokeTokens();
      rig.fault({ match: { operation: 'token' }, fault: { kind: 'status', status: 500 } });
    });
    rig.sandbox.requests.clear();
    expect(await rig.poll()).toMatchObject({ outcome: 'partial', pages: 1 });
    // The page's request, and its retry.
    expect(rig.sandbox.requests.count({ operation: 'token' })).toBe(2);
  });

  describe('is not assumed if too many requests fail: the crawl is incomplete, and requests are limited', () => {
    const FAILS: FaultRule['fault'] = { kind: 'status', status: 500 };

    test('all of it', async () => {
      const rig = await baselined(1150);
      rig.fault({ match: { operation: 'activeJobs' }, fault: FAILS });
      rig.sandbox.requests.clear();
      expect(await rig.poll()).toMatchObject({ outcome: 'failed', pages: 0, events: 0 });
      expect(pagesAsked(rig)).toEqual({ 100: 2, 20: 10 });
    });

    test('all pages but the first', async () => {
      const rig = await baselined(1150);
      for (let n = 2; n <= 12; n += 1) spoilPage(rig, n, FAILS);
      rig.sandbox.requests.clear();
      expect(await rig.poll()).toMatchObject({ outcome: 'partial', pages: 1, detailFetches: 0 });
      expect(pagesAsked(rig)).toEqual({ 100: 1 + 2 * 11 });
    });

    test('all parts of a page', async () => {
      const rig = await baselined(350);
      for (const n of [2, 3]) spoilPage(rig, n, FAILS);
      rig.sandbox.requests.clear();
      expect(await rig.poll()).toMatchObject({ outcome: 'partial', detailFetches: 0 });
      expect(pagesAsked(rig)).toEqual({ 100: 2 + 2 * 2, 20: 10 });
    });

    test('every page with a job on it, of a list with few', async () => {
      const rig = await baselined(8);
      for (const job of rig.jobs) poison(rig, job);
      rig.sandbox.requests.clear();
      expect(await rig.poll()).toMatchObject({ outcome: 'partial', detailFetches: 0, unread: 8 });
      expect((await rig.status()).lastGoodCrawlStartedAt).toBe(START + 60_000);
      expect(rig.sandbox.requests.count({ operation: 'activeJobs' })).toBeLessThan(30);
    });

    test.each([
      ['eleven jobs side by side', Array.from({ length: 11 }, (_, n) => 45 + n)],
      ['eleven jobs all over three pages', Array.from({ length: 11 }, (_, n) => 27 * n)],
    ])('%s', async (_, places) => {
      const rig = await baselined(290);
      for (const place of places) poison(rig, rig.jobs[place] ?? 0);
      rig.upstream.close(rig.jobs[44] ?? 0);
      rig.sandbox.requests.clear();
      expect(await rig.poll()).toMatchObject({ outcome: 'partial', detailFetches: 0, events: 0 });
      expect(rig.sandbox.requests.count({ operation: 'activeJobs' })).toBeLessThan(120);
    });

    test('a sweep: one five minutes later repairs it', async () => {
      const rig = await baselined(2);
      rig.pass(900);
      await rig.poll();
      const job = rig.upstream.createJob();
      rig.upstream.close(job);
      rig.fault({ match: { operation: 'activeJobs', query: { includeClosedJobs: true } }, fault: FAILS });
      rig.sandbox.requests.clear();
      expect(await rig.poll()).toMatchObject({ outcome: 'complete', unreadInSweep: 0, events: 0 });
      expect(rig.sandbox.requests.count({ operation: 'activeJobs' })).toBe(1 + 12);
      // Until then, polls do not repeat its many requests.
      rig.sandbox.requests.clear();
      expect(await rig.pollTypes(3)).toEqual([]);
      expect(rig.sandbox.requests.count({ operation: 'activeJobs' })).toBe(3);
      rig.sandbox.faults.clear();
      rig.pass(120);
      expect(await rig.pollTypes(3)).toEqual([`job.created ${job}`, `job.closed ${job}`]);
    });
  });

  describe('among answers that time out', () => {
    /** A list of jobs, newest first, of which requests for some places (from 1) time out. */
    async function crawled(
      jobs: number,
      slow: (places: readonly number[], pageSize: number) => boolean,
      signal?: AbortSignal,
    ) {
      let asked = 0;
      const client = {
        activeJobs: async ({ page = 1, pageSize = 20 }: ActiveJobsQuery) => {
          signal?.throwIfAborted();
          asked += 1;
          const from = (page - 1) * pageSize;
          const places = Array.from({ length: pageSize }, (_, n) => from + n + 1).filter((n) => n <= jobs);
          if (slow(places, pageSize)) {
            throw new OrderingError({ kind: 'timeout', operation: 'GET /Jobs/active' });
          }
          const body = {
            items: places.map((place) => ({ jobNumber: jobs + 1 - place })),
            totalCount: jobs,
            pageNumber: page,
            pageSize,
            totalPages: Math.ceil(jobs / pageSize),
            hasNextPage: page * pageSize < jobs,
          };
          return { body, requestedAt: 0, respondedAt: 0 };
        },
      } as unknown as OrderingClient;
      const seen = await crawl(client, {
        now: () => 0,
        notice: (_, response) => ({ ...UNCHANGED, response }),
        ...(signal ? { signal } : {}),
      });
      const { complete, unread, observations, pages } = seen;
      return { complete, unread, seen: observations.size, pages, asked };
    }

    test('a page that is slow only as a whole is read', async () => {
      expect(await crawled(450, (places, pageSize) => pageSize === 100 && places.includes(250))).toEqual({
        complete: true,
        unread: 0,
        seen: 450,
        pages: 5,
        asked: 5 + 5,
      });
    });

    test('one permanently slow job hides no other', async () => {
      for (const place of [1, 100, 181, 200, 450]) {
        expect(await crawled(450, (places) => places.includes(place))).toMatchObject({
          complete: true,
          unread: 1,
          seen: 449,
        });
      }
    });

    test('an entry alone on the last page is found without requests beyond the end', async () => {
      expect(await crawled(201, (places) => places.includes(201) || places.length === 0)).toEqual({
        complete: true,
        unread: 1,
        seen: 200,
        pages: 2,
        asked: 3 + 3,
      });
    });

    test('a time-out on the way makes the crawl incomplete, with its observations so far', async () => {
      const stop = new AbortController();
      const result = await crawled(
        250,
        (places, pageSize) => {
          if (pageSize === 4) stop.abort();
          return places.includes(150);
        },
        stop.signal,
      );
      expect(result).toEqual({ complete: false, unread: 0, seen: 150 + 80 + 4, pages: 3, asked: 3 + 5 + 1 });
    });

    test('an unresponsive upstream does not cause repeated waits', async () => {
      expect(await crawled(1150, () => true)).toMatchObject({ complete: false, seen: 0, asked: 3 });
      const afterPage1 = await crawled(1150, (places) => !places.includes(1));
      expect(afterPage1).toMatchObject({ complete: false, seen: 100 });
      expect(afterPage1.asked).toBeLessThanOrEqual(1 + 6);
      const onePage = await crawled(1150, (places) => places.some((place) => place > 300 && place <= 400));
      expect(onePage).toMatchObject({ complete: false, seen: 1050, asked: 12 + 2 });
      const threeLate = await crawled(450, (places) => [110, 150, 190].some((n) => places.includes(n)));
      expect(threeLate.complete).toBe(false);
      expect(threeLate.asked).toBeLessThanOrEqual(5 + 14);
    });

    test('for any delays, a complete crawl has read or counted every entry, within limits', async () => {
      await fc.assert(
        fc.asyncProperty(
          fc.integer({ min: 0, max: 420 }),
          fc.uniqueArray(fc.integer({ min: 1, max: 420 }), { maxLength: 14 }),
          async (jobs, late) => {
            const there = late.filter((place) => place <= jobs);
            const result = await crawled(jobs, (places) => there.some((place) => places.includes(place)));
            expect(result.asked).toBeLessThanOrEqual(5 + 60);
            if (there.length <= 1) expect(result.complete).toBe(true);
            if (result.complete) {
              expect(result.unread).toBe(there.length);
              expect(result.seen).toBe(jobs - there.length);
            }
          },
        ),
      );
    });
  });
});

describe('a job that is missing from the list (rule 3)', () => {
  test('but in the active list on request had only drifted: nothing is emitted', async () => {
    const rig = await baselined(3);
    const [a = 0] = rig.jobs;
    rig.upstream.hide(a);
    rightBefore(rig, search(a, false), () => rig.upstream.unhide(a));
    expect(await rig.poll()).toMatchObject({ detailFetches: 1, fetchesLeft: 0, events: 0 });
    expect((await rig.snapshot(a))?.departure).toBeNull();
    rig.upstream.setStatus(a, 'Scheduled');
    expect(await rig.pollTypes()).toEqual([`job.status_changed ${a}`]);
  });

  test('and among the closed ones is closed, dispatched before if its detail says so', async () => {
    const rig = await baselined(3);
    const [a = 0, b = 0] = rig.jobs;
    rig.upstream.close(a);
    rig.upstream.dispatch(b, { tracking: [T1] });
    rig.upstream.close(b);
    expect(await rig.pollTypes()).toEqual([
      `job.closed ${a}`,
      `job.dispatched ${b}`,
      `job.tracking_added ${b}`,
      `job.closed ${b}`,
    ]);
    expect(await rig.pollTypes(20)).toEqual([]);
  });

  test('and in neither list, but dispatched, is dispatched only', async () => {
    const rig = await baselined(3);
    const [a = 0] = rig.jobs;
    rig.upstream.dispatch(a);
    rig.upstream.hide(a);
    expect(await rig.pollTypes(CONFIRMED)).toEqual([`job.dispatched ${a}`]);
    expect((await rig.snapshot(a))?.settling).not.toBeNull();
  });

  test('that returns between the two searches is not closed', async () => {
    const rig = await baselined(3);
    const [a = 0] = rig.jobs;
    rig.upstream.cancel(a);
    rightBefore(rig, search(a, true), () => rig.upstream.reopen(a, { status: 'Awaiting artwork' }));
    expect(await rig.pollTypes(3)).toEqual([]);
  });

  test('that a search finds again was last observed in the last list that contained it', async () => {
    const rig = await baselined(3, { leavesListOnDispatch: true });
    const [a = 0] = rig.jobs;
    const observedAt = rig.now();
    rig.upstream.dispatch(a);
    rig.fault({ match: { operation: 'job' }, fault: { kind: 'reset' } });
    expect(await rig.pollTypes()).toEqual([]);
    rig.sandbox.faults.clear();
    rightBefore(rig, search(a, false), () => rig.upstream.clearDateOut(a));
    await rig.poll();
    const [dispatched] = await rig.fresh();
    expect(dispatched?.type).toBe('job.dispatched');
    expect(dispatched?.data).toMatchObject({ observed: { since: new Date(observedAt).toISOString() } });
  });

  test('is found by its exact number among many prefix matches', async () => {
    const rig = await baselined(2);
    const target = rig.upstream.createJob({ jobNumber: 500 });
    for (let n = 0; n < 250; n += 1) rig.upstream.createJob({ jobNumber: 500_000 + n });
    await rig.pollTypes(6);
    rig.upstream.close(target);
    expect(await rig.pollTypes()).toEqual([`job.locked ${target}`, `job.closed ${target}`]);
  });

  test('locked and in neither list is cancelled, after the same verdict in a poll 15 minutes later, not before', async () => {
    const rig = await baselined(3);
    const [a = 0] = rig.jobs;
    rig.upstream.cancel(a);
    await rig.poll();
    const suspectedAt = rig.now();
    const events: JobEvent[] = [];
    while (events.length === 0) {
      await rig.poll();
      events.push(...(await rig.fresh()));
    }
    expect(rig.now() - suspectedAt).toBe(900_000);
    expect(events.map(({ type }) => type)).toEqual(['job.cancelled']);
    expect(events.at(-1)?.data).toMatchObject({
      inferred: true,
      jobStatus: 'Canceled',
      observed: { view: 'search', since: new Date(suspectedAt - 60_000).toISOString() },
    });
    expect(await rig.pollTypes(20)).toEqual([]);
  });

  test('without detail is unavailable, after the same confirmation', async () => {
    const rig = await baselined(3);
    const [a = 0] = rig.jobs;
    rig.upstream.remove(a);
    expect(await rig.pollTypes(15)).toEqual([]);
    expect(await rig.pollTypes(2)).toEqual([`job.unavailable ${a}`]);
    expect(await rig.pollTypes(60)).toEqual([]);
  });

  test('in neither list and yet editable contradicts itself: nothing is emitted, and it is requested at growing intervals', async () => {
    const rig = await baselined(3);
    const [a = 0] = rig.jobs;
    rig.upstream.hide(a);
    rig.sandbox.requests.clear();
    expect(await rig.pollTypes(120)).toEqual([]);
    const fetches = rig.sandbox.requests.list({ operation: 'job' }).map(({ at }) => (at - START) / 60_000);
    // Two details an investigation: at once, then after 5 and after 30 minutes.
    expect(fetches).toEqual([2, 2, 7, 7, 37, 37]);
    rig.upstream.unhide(a);
    expect(await rig.pollTypes(2)).toEqual([]);
  });

  test('that is listed again before its cancellation is confirmed was not cancelled; the next suspicion starts over', async () => {
    const rig = await baselined(3);
    const [a = 0] = rig.jobs;
    rig.upstream.cancel(a);
    expect(await rig.pollTypes(10)).toEqual([]);
    rig.upstream.reopen(a, { status: 'Awaiting artwork' });
    expect(await rig.pollTypes(1)).toEqual([]);
    rig.upstream.cancel(a);
    expect(await rig.pollTypes(15)).toEqual([]);
    expect((await rig.pollTypes(2)).filter((text) => text.includes('cancelled'))).toEqual([
      `job.cancelled ${a}`,
    ]);
  });

  test('a suspicion interrupted by another verdict starts over', async () => {
    const rig = await baselined(3);
    const [a = 0] = rig.jobs;
    rig.upstream.cancel(a);
    expect(await rig.pollTypes(2)).toEqual([]);
    rig.upstream.unlock(a);
    expect(await rig.pollTypes(16)).toEqual([]);
    expect((await rig.snapshot(a))?.departure).toMatchObject({ suspected: null });
    rig.upstream.lock(a);
    // Suspected at the next fetch, half an hour after the contradiction, and confirmed 15 minutes later.
    expect((await rig.pollTypes(40)).filter((text) => text.includes('cancelled'))).toEqual([]);
    const types = await rig.pollTypes(10);
    expect(types.filter((text) => text.includes('cancelled'))).toEqual([`job.cancelled ${a}`]);
  });

  test('does not emit job.cancelled while a search does not find a listed job', async () => {
    const rig = await baselined(3);
    const [a = 0, , c = 0] = rig.jobs;
    rig.fault({
      match: { operation: 'activeJobs', query: { searchText: String(c) } },
      fault: { kind: 'emptyList' },
    });
    rig.upstream.cancel(a);
    expect(await rig.pollTypes(60)).toEqual([]);
    rig.sandbox.faults.clear();
    // The first verdict counts only from here on.
    rig.pass(7200);
    expect(await rig.pollTypes(15)).toEqual([]);
    expect((await rig.pollTypes(2)).at(-1)).toBe(`job.cancelled ${a}`);
  });

  test('does not emit job.unavailable if no job is left to check the search', async () => {
    const rig = await baselined(1);
    const [a = 0] = rig.jobs;
    rig.upstream.cancel(a);
    expect(await rig.pollTypes(60)).toEqual([]);
  });

  test('a search that answers another page than requested proves nothing', async () => {
    const rig = await baselined(3);
    const [a = 0] = rig.jobs;
    rig.fault({
      match: { operation: 'activeJobs', query: { searchText: String(a) } },
      fault: { kind: 'wrongPageEcho' },
    });
    rig.upstream.close(a);
    expect(await rig.poll()).toMatchObject({
      outcome: 'complete',
      events: 0,
      detailFetches: 1,
      fetchesLeft: 1,
    });
    rig.sandbox.faults.clear();
    rig.pass(60);
    expect(await rig.pollTypes()).toEqual([`job.closed ${a}`]);
  });

  test('without answers stays unresolved, and is requested at growing intervals until there is one', async () => {
    const rig = await baselined(3);
    const [a = 0] = rig.jobs;
    rig.fault({ match: { operation: 'job' }, fault: { kind: 'status', status: 503 } });
    rig.fault({ match: { view: 'closedSearch' }, fault: { kind: 'status', status: 503 } });
    rig.upstream.close(a);
    const asked: number[] = [];
    for (let minute = 1; minute <= 40; minute += 1) {
      const { detailFetches } = await rig.poll();
      if (detailFetches > 0) asked.push(minute);
    }
    expect(asked).toEqual([1, 2, 4, 8, 16, 31]);
    rig.sandbox.faults.clear();
    expect(await rig.pollTypes(16)).toEqual([`job.closed ${a}`]);
  });

  test('waits while crawls are incomplete, and is investigated by the next complete one', async () => {
    const rig = await baselined(150);
    const [a = 0] = rig.jobs;
    rig.fault({ match: { operation: 'job', times: 2 }, fault: { kind: 'reset' } });
    rig.upstream.close(a);
    expect(await rig.poll()).toMatchObject({ detailFetches: 1, fetchesLeft: 1 });
    spoilPage(rig, 2, { kind: 'itemsNull' });
    for (let n = 0; n < 10; n += 1)
      expect(await rig.poll()).toMatchObject({ outcome: 'partial', detailFetches: 0, changedJobs: 0 });
    rig.sandbox.faults.clear();
    expect((await rig.pollTypes()).filter((text) => text.startsWith('job.'))).toEqual([`job.closed ${a}`]);
  });

  test("more of them than a poll's budget: the oldest come first, and a failing one delays none", async () => {
    const rig = await baselined(12, { settings: { fetchesPerPoll: 3 } });
    const [failing = 0, ...rest] = rig.jobs.slice(0, 10);
    rig.fault({ match: { operation: 'job', path: `/Jobs/${failing}$` }, fault: { kind: 'reset' } });
    for (const job of [failing, ...rest]) rig.upstream.close(job);
    const reports = [];
    for (let n = 0; n < 4; n += 1) reports.push(await rig.poll());
    expect(reports.map(({ detailFetches, fetchesLeft }) => [detailFetches, fetchesLeft])).toEqual([
      [3, 8],
      [3, 5],
      [3, 2],
      [2, 1],
    ]);
    expect((await rig.fresh()).map(({ subject }) => Number(subject?.slice(5))).sort()).toEqual(rest);
    // Later departures do not overtake.
    rig.sandbox.faults.clear();
    expect(await rig.pollTypes(8)).toEqual([`job.closed ${failing}`]);
  });
});

describe('status names and the two views (rule 4)', () => {
  test('an unknown name is an event once, with its evidence, and a status like any other', async () => {
    const rig = await baselined(3);
    const [a = 0, b = 0] = rig.jobs;
    const seenBefore = rig.now();
    rig.upstream.setStatus(a, 'Vulcanising');
    await rig.poll();
    const [discovered, ...events] = await rig.fresh();
    expect(discovered?.type).toBe('status.discovered');
    expect(discovered?.data).toMatchObject({
      status: 'Vulcanising',
      observed: {
        at: new Date(rig.now()).toISOString(),
        since: new Date(seenBefore).toISOString(),
        view: 'list',
      },
    });
    expect(events.map(({ type }) => type)).toEqual(['job.status_changed']);
    rig.upstream.setStatus(b, 'Vulcanising');
    expect(await rig.pollTypes()).toEqual([`job.status_changed ${b}`]);
    // Names of the lookup are known initially, and those of a first detail have an open window.
    rig.upstream.setStatus(b, { master: 'Ready to ship', detail: 'Curing' });
    await rig.poll();
    const later = await rig.fresh();
    expect(later.map(({ type }) => type)).toEqual(['status.discovered', 'job.status_changed']);
    expect(later[0]?.data).toMatchObject({ status: 'Curing', observed: { view: 'detail' } });
  });

  test('a status renamed in the lookup is the same status: one event, and none for its jobs', async () => {
    const rig = await baselined(40);
    const [moving = 0, settling = 0] = rig.jobs;
    for (const job of rig.jobs) rig.upstream.setStatus(job, 'Scheduled');
    rig.upstream.setStatus(moving, 'In production');
    rig.upstream.close(settling);
    await rig.pollTypes(2);
    rig.world.renameStatus('us', 'Scheduled', 'Planned');
    await rig.poll();
    const [discovered, ...others] = await rig.fresh();
    expect(discovered).toMatchObject({
      type: 'status.discovered',
      data: { status: 'Planned', previousName: 'Scheduled' },
    });
    expect(others).toEqual([]);
    // Also not for the job that is fetched much later.
    expect(await rig.pollTypes(8)).toEqual([]);
    rig.upstream.setStatus(moving, 'Planned');
    await rig.poll();
    const changes = { status: { from: 'In production', to: 'Planned' } };
    expect((await rig.fresh()).map(({ data }) => data.changes)).toEqual([changes]);
    // With its old name, and again with another one.
    rig.world.renameStatus('us', 'Planned', 'Scheduled');
    expect(await rig.pollTypes(2)).toEqual([]);
    rig.world.renameStatus('us', 'Scheduled', 'On the plan');
    expect(await rig.pollTypes(8)).toEqual(['status.discovered']);
    rig.pass(2 * 86_400);
    expect(await rig.pollTypes(2)).toEqual([]);
    expect((await rig.snapshot(settling))?.detail?.status).toBe('On the plan');
  });

  test('a new name that is no renaming is a change of status of its jobs', async () => {
    const rig = await baselined(3);
    const [a = 0] = rig.jobs;
    rig.world.addStatus('us', 'Foiling', 'production');
    rig.upstream.setStatus(a, 'Foiling');
    expect(await rig.pollTypes()).toEqual(['status.discovered', `job.status_changed ${a}`]);
  });

  test('a failing lookup has no effect: names are plain texts without it', async () => {
    const rig = await createRig();
    const a = rig.upstream.createJob({ status: 'Scheduled' });
    rig.fault({ match: { operation: 'jobStatuses' }, fault: { kind: 'status', status: 500 } });
    expect(await rig.pollTypes()).toEqual(['account.baselined']);
    rig.upstream.setStatus(a, 'In production');
    expect(await rig.pollTypes()).toEqual(['status.discovered', `job.status_changed ${a}`]);
    rig.sandbox.faults.clear();
    rig.upstream.setStatus(a, 'Vulcanising');
    expect(await rig.pollTypes()).toEqual(['status.discovered', `job.status_changed ${a}`]);
  });

  test('a job with dozens of unknown line statuses emits some at a time and keeps to one transaction', async () => {
    const rig = await baselined(2);
    const job = rig.upstream.createJob({
      lines: Array.from({ length: 150 }, (_, n) => ({ jobLineStatus: `Step ${n}` })),
    });
    const types = await rig.pollTypes();
    expect(types.filter((type) => type === 'status.discovered')).toHaveLength(10);
    expect(types.at(-1)).toBe(`job.created ${job}`);
  });

  test('a missing status keeps the last known one', async () => {
    const rig = await baselined(1);
    const [a = 0] = rig.jobs;
    rig.upstream.setStatus(a, null);
    expect(await rig.pollTypes()).toEqual([]);
    rig.upstream.setStatus(a, 'Awaiting artwork');
    expect(await rig.pollTypes()).toEqual([]);
    rig.upstream.setStatus(a, 'Ready to ship');
    await rig.poll();
    expect((await rig.fresh())[0]?.data).toMatchObject({
      changes: { status: { from: 'Awaiting artwork', to: 'Ready to ship' } },
    });
  });

  test('list and detail disagree permanently about the status: each is compared with itself only', async () => {
    const rig = await baselined(1);
    const [a = 0] = rig.jobs;
    rig.upstream.setStatus(a, { master: 'Scheduled', detail: 'In production' });
    expect(await rig.pollTypes()).toEqual([`job.status_changed ${a}`]);
    expect(await rig.pollTypes(5)).toEqual([]);
    rig.upstream.close(a);
    expect(await rig.pollTypes(2)).toEqual([`job.locked ${a}`, `job.closed ${a}`]);
    rig.upstream.setStatus(a, { detail: 'Archived' });
    // Until then the detail could be of a time before the list's change.
    rig.pass(3600);
    await rig.poll();
    expect((await rig.fresh()).at(-1)?.data).toMatchObject({
      changes: { status: { from: 'In production', to: 'Archived' } },
      observed: { view: 'detail' },
    });
  });

  test('a value removed from the list is removed after the detail agrees, and not before', async () => {
    const rig = await baselined(2);
    const [a = 0] = rig.jobs;
    rig.upstream.dispatch(a, { tracking: [T1] });
    expect(await rig.pollTypes()).toEqual([
      `job.locked ${a}`,
      `job.dispatched ${a}`,
      `job.tracking_added ${a}`,
    ]);
    rig.upstream.override(a, { list: { dateOut: null, tracking: [] } });
    expect(await rig.pollTypes(10)).toEqual([]);
    rig.upstream.override(a, {});
    expect(await rig.pollTypes(3)).toEqual([]);

    rig.upstream.clearDateOut(a);
    rig.upstream.removeTracking(a);
    rig.fault({ match: { operation: 'job', times: 2 }, fault: { kind: 'status', status: 500 } });
    const lastShown = rig.now();
    expect(await rig.pollTypes()).toEqual([`job.unlocked ${a}`]);
    await rig.poll();
    const revoked = await rig.fresh();
    expect(revoked.map(({ type }) => type)).toEqual(['job.dispatch_revoked', 'job.tracking_removed']);
    expect(revoked[0]?.data).toMatchObject({ observed: { view: 'detail' } });
    const observed = revoked[0]?.data.observed as { since: string } | undefined;
    expect(Date.parse(observed?.since ?? '')).toBeLessThanOrEqual(lastShown);
    rig.upstream.dispatch(a, { tracking: [T1] });
    expect(await rig.pollTypes()).toEqual([
      `job.locked ${a}`,
      `job.dispatched ${a}`,
      `job.tracking_added ${a}`,
    ]);
  });

  test("tracking in the detail beside the list's earlier tracking is added when the job is delisted", async () => {
    const rig = await baselined(1);
    const [a = 0] = rig.jobs;
    rig.upstream.addTracking(a, T1);
    expect(await rig.pollTypes()).toEqual([`job.tracking_added ${a}`]);
    rig.upstream.dispatch(a, { tracking: [T2] });
    rig.upstream.close(a);
    expect(await rig.pollTypes()).toEqual([
      `job.locked ${a}`,
      `job.dispatched ${a}`,
      `job.tracking_added ${a}`,
      `job.tracking_removed ${a}`,
      `job.closed ${a}`,
    ]);
  });

  test('a dispatch first shown by the detail is not emitted again when the list shows it', async () => {
    const rig = await baselined(1);
    const [a = 0] = rig.jobs;
    rig.upstream.override(a, { list: { dateOut: null, tracking: [], permissions: { canEdit: true } } });
    rig.upstream.dispatch(a, { tracking: [T1], status: 'Shipped' });
    expect(await rig.pollTypes()).toEqual([
      `job.status_changed ${a}`,
      `job.dispatched ${a}`,
      `job.tracking_added ${a}`,
    ]);
    rig.upstream.override(a, {});
    expect(await rig.pollTypes(6)).toEqual([`job.locked ${a}`]);
  });
});

describe('baseline and new jobs (rule 5)', () => {
  test('the first complete crawl is the baseline: jobs are stored, one account.baselined, no job events', async () => {
    const rig = await createRig();
    for (let n = 0; n < 250; n += 1) rig.upstream.createJob({});
    const dispatched = rig.upstream.createJob({ dateOut: START - 3_600_000, tracking: [T1] });
    const overdue = rig.upstream.createJob({ dateDue: START - 3_600_000 });
    const report = await rig.poll();
    expect(report).toMatchObject({
      outcome: 'complete',
      state: 'tracking',
      pages: 3,
      openJobs: 252,
      events: 1,
    });
    expect((await rig.fresh()).map((event) => event.type)).toEqual(['account.baselined']);
    expect((await rig.poll()).requests).toBe(3);
    // Dispatched and overdue jobs count as emitted.
    rig.upstream.edit(dispatched, { description: 'Other' });
    rig.upstream.edit(overdue, { description: 'Other' });
    expect(await rig.pollTypes()).toEqual([`job.updated ${dispatched}`, `job.updated ${overdue}`]);
  });

  test('is not complete before a crawl is: earlier departures and changes never counted', async () => {
    const rig = await createRig();
    const jobs = Array.from({ length: 250 }, () => rig.upstream.createJob({ status: 'Awaiting artwork' }));
    const [closed = 0, cancelled = 0, changed = 0] = jobs.slice(200);
    rig.fault({
      match: { operation: 'activeJobs', query: { page: 3 } },
      fault: { kind: 'status', status: 503 },
    });
    expect(await rig.poll()).toMatchObject({ outcome: 'partial', state: 'baselining', events: 0 });
    expect((await rig.snapshots()).length).toBe(200);
    rig.upstream.close(closed);
    rig.upstream.cancel(cancelled);
    rig.upstream.setStatus(changed, 'Ready to ship');
    const late = rig.upstream.createJob();
    expect(await rig.poll()).toMatchObject({ outcome: 'partial', state: 'baselining', events: 0 });
    rig.sandbox.faults.clear();
    expect(await rig.pollTypes()).toEqual(['account.baselined']);
    expect((await rig.snapshots()).map(({ jobNumber }) => jobNumber)).toEqual(
      rig.upstream.activeJobNumbers(),
    );
    expect([...(await rig.index())].map(([jobNumber]) => jobNumber)).toEqual(rig.upstream.activeJobNumbers());
    rig.upstream.edit(late, { description: 'Other' });
    rig.upstream.setStatus(changed, 'Shipped');
    expect(await rig.pollTypes(30)).toEqual([`job.status_changed ${changed}`, `job.updated ${late}`]);
  });

  test('a job that came in after it is created; an existing hidden one is adopted without events', async () => {
    const rig = await createRig();
    rig.upstream.createJob();
    const hidden = rig.upstream.createJob({ dateOut: START - 1000, tracking: [T1], dateDue: START - 5000 });
    const late = rig.upstream.createJob({ dateDue: START - 5000 });
    for (const job of [hidden, late]) rig.upstream.hide(job);
    rig.pass(1800);
    await rig.poll();
    await rig.fresh();
    for (const job of [hidden, late]) rig.upstream.unhide(job);
    const seenBefore = rig.now();
    rig.pass(30);
    const created = rig.upstream.createJob();
    await rig.poll();
    const events = await rig.fresh();
    expect(events.map(({ type, subject }) => `${type} ${subject}`)).toEqual([`job.created jobs/${created}`]);
    expect(events[0]?.data).toMatchObject({
      observed: { since: new Date(seenBefore).toISOString(), view: 'detail' },
    });
    rig.upstream.setStatus(hidden, 'Shipped');
    expect(await rig.pollTypes(3)).toEqual([`job.status_changed ${hidden}`]);
  });

  test.each([
    ['in its location’s zone', '2026-03-02T01:05:00', { name: 'Denver', timezone: 'America/Denver' }, true],
    [
      'in its location’s zone, where that is too early',
      '2026-03-02T00:30:00',
      { name: 'Denver', timezone: 'America/Denver' },
      false,
    ],
    ['in its own offset', '2026-03-02T09:05:00+01:00', null, true],
    ['in the zone that makes it latest, if none is known', '2026-03-01T20:05:00', null, true],
    ['a bare date as any time of day', '2026-03-02', { name: 'Denver', timezone: 'America/Denver' }, true],
  ])('its time of creation is read %s', async (_, dateIn, location, created) => {
    const rig = await baselined(1);
    const job = rig.upstream.createJob({ dateIn, location });
    await rig.poll();
    const events = await rig.fresh();
    expect(events.map(({ type }) => type)).toEqual(created ? ['job.created'] : []);
    // A date that can mean a time before the baseline proves no lower bound.
    const exact = /:/.test(dateIn) && (location !== null || dateIn.includes('+'));
    if (created) {
      const observed = events[0]?.data.observed as { since: unknown } | undefined;
      expect(observed?.since === null).toBe(!exact);
    }
    rig.upstream.setStatus(job, 'Scheduled');
    expect(await rig.pollTypes()).toEqual([`job.status_changed ${job}`]);
  });

  test('emits nothing for a new job before its detail is fetched; then job.created comes first, and nothing is lost', async () => {
    const rig = await baselined(1);
    rig.fault({ match: { operation: 'job' }, fault: { kind: 'status', status: 503 } });
    const seenBefore = rig.now();
    rig.pass(20);
    const job = rig.upstream.createJob({ status: 'Awaiting artwork' });
    expect(await rig.pollTypes(2)).toEqual([]);
    rig.upstream.setStatus(job, 'Ready to ship');
    rig.upstream.edit(job, { description: 'Other' });
    expect(await rig.pollTypes(2)).toEqual([]);
    rig.upstream.dispatch(job, { tracking: [T1] });
    expect(await rig.pollTypes(2)).toEqual([]);
    rig.sandbox.faults.clear();
    for (let n = 0; n < 8; n += 1) await rig.poll();
    const events = await rig.fresh();
    expect(events.map(({ type }) => type)).toEqual([
      'job.created',
      'job.dispatched',
      'job.tracking_added',
      'job.updated',
      'job.locked',
      'job.status_changed',
    ]);
    for (const { data } of events.slice(0, 3))
      expect(data.observed).toMatchObject({ since: new Date(seenBefore).toISOString() });
    // The list contained it for the first time in the poll after.
    expect(events.at(-1)?.data).toMatchObject({
      observed: { since: new Date(seenBefore + 80_000).toISOString() },
      changes: { status: { from: 'Awaiting artwork', to: 'Ready to ship' } },
    });
  });

  test('a new job that is cancelled or removed before its detail could be fetched is not lost either', async () => {
    const rig = await baselined(2);
    rig.fault({ match: { operation: 'job' }, fault: { kind: 'status', status: 503 } });
    const [cancelled, removed] = [rig.upstream.createJob(), rig.upstream.createJob()];
    await rig.poll();
    rig.upstream.cancel(cancelled);
    rig.upstream.remove(removed);
    await rig.poll();
    rig.sandbox.faults.clear();
    expect((await rig.pollTypes(40)).sort()).toEqual([
      `job.cancelled ${cancelled}`,
      `job.created ${cancelled}`,
      `job.unavailable ${removed}`,
    ]);
  });

  test('a job whose detail is unreadable for an hour is adopted without job.created: its changes are emitted', async () => {
    const rig = await baselined(1);
    const job = rig.upstream.createJob({ status: 'Awaiting artwork' });
    rig.fault({ match: { operation: 'job' }, fault: { kind: 'raw', body: '{"jobNumber":"?"}' } });
    await rig.poll();
    rig.upstream.dispatch(job, { status: 'Shipped' });
    expect(await rig.pollTypes(30)).toEqual([]);
    rig.pass(2_400);
    expect(await rig.pollTypes()).toEqual([
      `job.locked ${job}`,
      `job.status_changed ${job}`,
      `job.dispatched ${job}`,
    ]);
    rig.sandbox.faults.clear();
    rig.pass(1200);
    expect(await rig.pollTypes(3)).toEqual([]);
  });
});

describe('no change (rule 6)', () => {
  test('changing counters, expiring links and the text of a lock write only the status of the account', async () => {
    const rig = await baselined(3);
    const [a = 0] = rig.jobs;
    rig.upstream.lock(a, 'One reason');
    rig.upstream.invoice(a);
    await rig.pollTypes(2);
    const before = JSON.stringify(await rig.snapshots());
    for (let n = 0; n < 5; n += 1) {
      rig.pass(3600);
      rig.upstream.lock(a, `Reason ${n}`);
      rig.upstream.override(a, { list: { newField: n }, detail: { newField: n } });
      expect(await rig.poll()).toMatchObject({ events: 0, changedJobs: 0 });
    }
    expect(JSON.stringify(await rig.snapshots())).toBe(before);
  });
});

describe('after a job was delisted (rule 7)', () => {
  test('late tracking, a corrected and a cleared dispatch, an invoice and line statuses are found', async () => {
    const rig = await baselined(2);
    const [a = 0] = rig.jobs;
    rig.upstream.dispatch(a);
    await rig.poll();
    rig.upstream.close(a);
    await rig.pollTypes();
    const later = async (change: () => void) => {
      change();
      rig.pass(600);
      return rig.pollTypes();
    };
    expect(await later(() => rig.upstream.addTracking(a, T1))).toEqual([`job.tracking_added ${a}`]);
    expect(
      await later(() => rig.upstream.setTracking(a, [{ ...T1, trackingLink: 'https://parcels.example/T1' }])),
    ).toEqual([`job.tracking_updated ${a}`]);
    expect(await later(() => rig.upstream.correctDateOut(a, START - 7_200_000))).toEqual([
      `job.updated ${a}`,
    ]);
    expect(await later(() => rig.upstream.invoice(a))).toEqual([`job.invoiced ${a}`]);
    expect(await later(() => rig.upstream.setLineStatus(a, 0, 'Ready to ship'))).toEqual([
      `job.line_status_changed ${a}`,
    ]);
    expect(await later(() => rig.upstream.removeTracking(a))).toEqual([`job.tracking_removed ${a}`]);
    expect(await later(() => rig.upstream.clearDateOut(a))).toEqual([`job.dispatch_revoked ${a}`]);
    expect(await later(() => rig.upstream.dispatch(a, { tracking: [T2] }))).toEqual([
      `job.dispatched ${a}`,
      `job.tracking_added ${a}`,
    ]);
  });

  test('it is fetched for seven days from the later of dispatch and departure, to the last hour, and not after', async () => {
    const rig = await baselined(2);
    const [a = 0] = rig.jobs;
    rig.upstream.close(a);
    await rig.pollTypes();
    const hours = async (count: number) => {
      const types: string[] = [];
      for (let n = 0; n < count; n += 1) {
        rig.pass(3540);
        types.push(...(await rig.pollTypes()));
      }
      return types;
    };
    await hours(72);
    rig.upstream.dispatch(a);
    expect(await hours(24)).toEqual([`job.dispatched ${a}`]);
    await hours(24 * 6 - 2);
    rig.upstream.addTracking(a, T1);
    expect(await hours(26)).toEqual([`job.tracking_added ${a}`]);
    await hours(24 * 7 + 1);
    expect((await rig.index()).get(a)).toBeUndefined();
    rig.upstream.addTracking(a, T2);
    expect(await hours(30)).toEqual([]);
    // Its snapshot outlives that: a returning job is not new.
    rig.upstream.reopen(a);
    expect(await hours(1)).toEqual([`job.reopened ${a}`, `job.tracking_added ${a}`]);
  });

  test.each(['close', 'cancel', 'remove'] as const)(
    'relisted after %s: reopened once, with each change in between emitted once',
    async (how) => {
      const rig = await baselined(2);
      const a = rig.upstream.createJob({ status: 'Scheduled', description: 'A' });
      await rig.poll();
      if (how === 'remove') rig.upstream.hide(a);
      else rig.upstream[how](a);
      const gone: FaultRule = {
        match: { operation: 'job', path: `/Jobs/${a}$` },
        fault: { kind: 'status', status: 404 },
      };
      if (how === 'remove') rig.fault(gone);
      await rig.pollTypes(CONFIRMED + 3);
      rig.upstream.edit(a, { description: 'B' });
      rig.pass(600);
      await rig.pollTypes(2);
      rig.sandbox.faults.clear();
      if (how === 'remove') rig.upstream.unhide(a);
      rig.upstream.reopen(a, { status: 'Ready to ship' });
      const types = [...(await rig.pollTypes(1)), ...(await rig.pollTypes(5))];
      expect(types[0]).toBe(`job.reopened ${a}`);
      expect(types.filter((text) => text.startsWith('job.reopened'))).toHaveLength(1);
      const log = await rig.log.read(rig.ref, 0, 1000);
      const events = log?.kind === 'events' ? log.events.map(({ json }) => JSON.parse(json) as JobEvent) : [];
      const described = events.filter(
        ({ type, data }) => type === 'job.updated' && 'description' in (data.changes as object),
      );
      expect(described).toHaveLength(1);
      expect(events.findLast(({ subject }) => subject === `jobs/${a}`)?.data).toMatchObject({
        job: { status: 'Ready to ship', description: 'B' },
      });
    },
  );

  test('a failed fetch in that time is retried soon, not at the next scheduled one', async () => {
    const rig = await baselined(2);
    const [a = 0] = rig.jobs;
    rig.upstream.close(a);
    await rig.pollTypes();
    rig.upstream.addTracking(a, T1);
    rig.pass(240);
    rig.fault({ match: { operation: 'job', times: 2 }, fault: { kind: 'status', status: 500 } });
    expect(await rig.pollTypes()).toEqual([]);
    expect(await rig.pollTypes()).toEqual([`job.tracking_added ${a}`]);
  });

  test('the last fetch is retried too, also without polls before the end of settling', async () => {
    const rig = await baselined(2);
    const [a = 0, b = 0] = rig.jobs;
    rig.upstream.edit(b, { dateDue: null });
    rig.upstream.close(a);
    await rig.pollTypes();
    rig.upstream.addTracking(a, T1);
    rig.pass(8 * 86_400);
    rig.fault({ match: { operation: 'job', path: `/Jobs/${a}$`, times: 2 }, fault: { kind: 'reset' } });
    expect(await rig.pollTypes()).toEqual([]);
    expect(await rig.pollTypes()).toEqual([`job.tracking_added ${a}`]);
    // A job that is unreadable for a day more is dropped.
    rig.pass(7 * 86_400);
    rig.fault({ match: { operation: 'job' }, fault: { kind: 'status', status: 500 } });
    for (let n = 0; n < 110; n += 1) {
      rig.pass(840);
      await rig.poll();
    }
    expect((await rig.index()).get(a)).toBeUndefined();
  });

  test('a job is fetched no more often, and at most for 7 days, if the full list contains it and its detail is a 404', async () => {
    const rig = await baselined(2, { leavesListOnDispatch: true });
    const [a = 0] = rig.jobs;
    rig.fault({ match: { query: { includeClosedJobs: true } }, fault: { kind: 'emptyList' } });
    rig.upstream.dispatch(a);
    expect(await rig.pollTypes()).toEqual([`job.dispatched ${a}`]);
    rig.sandbox.faults.clear();
    rig.fault({ match: { operation: 'job', path: `/Jobs/${a}$` }, fault: { kind: 'status', status: 404 } });
    let fetches = 0;
    for (let n = 0; n < 60; n += 1) fetches += (await rig.poll()).detailFetches;
    // After 5 and 30 minutes.
    expect(fetches).toBe(2);
    expect((await rig.snapshot(a))?.settling?.fetches).toBe(2);
    rig.pass(7 * 86_400);
    await rig.pollTypes(2);
    expect((await rig.index()).get(a)).toBeUndefined();
  });

  test('fetches in that time beyond the budget are not lost', async () => {
    const rig = await baselined(6, { settings: { fetchesPerPoll: 2 } });
    for (const job of rig.jobs.slice(0, 5)) rig.upstream.close(job);
    await rig.pollTypes(3);
    for (const job of rig.jobs.slice(0, 5)) rig.upstream.addTracking(job, T1);
    rig.pass(600);
    expect((await rig.pollTypes(3)).sort()).toEqual(
      rig.jobs.slice(0, 5).map((job) => `job.tracking_added ${job}`),
    );
  });
});

describe('between two observations (rule 8)', () => {
  test('created, dispatched and closed: all are emitted, in that order', async () => {
    const rig = await baselined(2);
    rig.pass(900);
    // This poll requests the identity, so the newest closed jobs are read in the next one.
    await rig.poll();
    const seenBefore = rig.now();
    const job = rig.upstream.createJob();
    rig.upstream.dispatch(job, { tracking: [T1] });
    rig.upstream.invoice(job);
    rig.upstream.close(job);
    await rig.poll();
    const events = await rig.fresh();
    expect(events.map(({ type }) => type)).toEqual([
      'job.created',
      'job.dispatched',
      'job.tracking_added',
      'job.invoiced',
      'job.closed',
    ]);
    for (const { data } of events)
      expect(data.observed).toMatchObject({ since: new Date(seenBefore).toISOString() });
    expect(await rig.pollTypes(20)).toEqual([]);
  });

  test('after a gap of days, down to the highest known number, over as many pages as needed', async () => {
    const rig = await baselined(2);
    rig.pass(3 * 86_400);
    const jobs = Array.from({ length: 130 }, () => rig.upstream.createJob());
    for (const job of jobs) rig.upstream.close(job);
    const stillOpen = rig.upstream.createJob();
    const types = await rig.pollTypes(6);
    expect(types.filter((type) => type.startsWith('job.created')).length).toBe(131);
    expect(types.filter((type) => type.startsWith('job.closed')).length).toBe(130);
    expect(types).toContain(`job.created ${stillOpen}`);
    expect(await rig.pollTypes(20)).toEqual([]);
  });

  test('also if polls are so far apart that each one needs a new token', async () => {
    const rig = await baselined(2, { pollIntervalSeconds: 900 });
    const job = rig.upstream.createJob();
    rig.upstream.close(job);
    expect(await rig.pollTypes(3)).toEqual([`job.created ${job}`, `job.closed ${job}`]);
  });

  test('dispatched during an investigation: the dispatch has the evidence of the answer that showed it', async () => {
    const rig = await baselined(1, { pollIntervalSeconds: 900 });
    await rig.poll();
    // Created after the page was read, and found by the sweep.
    let job = 0;
    rig.sandbox.onRequest = ({ query, jobNumber }) => {
      rig.pass(0.001);
      if (query.includeClosedJobs && !query.searchText) job ||= rig.upstream.createJob();
      if (query.searchText && !jobNumber && !rig.upstream.job(job)?.dateOut) rig.upstream.dispatch(job);
    };
    await rig.poll();
    // The search proves that the job is listed, and none of its fields.
    await rig.poll();
    const events = (await rig.fresh()).filter(({ subject }) => subject === `jobs/${job}`);
    expect(events.map(({ type }) => type).slice(0, 2)).toEqual(['job.created', 'job.dispatched']);
    const { observed, occurredAt } = (events[1] as JobEvent).data as unknown as {
      observed: { at: string; view: string };
      occurredAt: string;
    };
    expect(observed.view).not.toBe('search');
    expect(Date.parse(observed.at)).toBeGreaterThanOrEqual(Date.parse(occurredAt));
  });

  test('an old job relisted during an investigation: none of its values was added or removed', async () => {
    const rig = await createRig({ pollIntervalSeconds: 900 });
    rig.upstream.createJob();
    const job = rig.upstream.createJob({ tracking: [T1] });
    rig.upstream.cancel(job);
    rig.pass(1800);
    await rig.poll();
    await rig.fresh();
    await rig.poll();
    // Relisted after the page was read, so that the sweep finds it; without its parcel after its detail was read.
    rig.sandbox.onRequest = ({ query }) => {
      if (query.includeClosedJobs && !query.searchText) rig.upstream.reopen(job);
      if (query.searchText) rig.upstream.removeTracking(job);
    };
    await rig.poll();
    rig.sandbox.onRequest = undefined;
    const types = (await rig.pollTypes(2)).filter((type) => type.endsWith(` ${job}`));
    expect(types).toEqual([]);
  });

  test('also if a job disappears while they are read, and the others move up', async () => {
    const rig = await baselined(1, { pollIntervalSeconds: 900 });
    const jobs = Array.from({ length: 101 }, () => rig.upstream.createJob());
    for (const job of jobs) rig.upstream.close(job);
    const sweep = (number: number) => (request: RequestInfo) =>
      request.query.includeClosedJobs === 'true' &&
      request.query.page === String(number) &&
      !request.query.searchText;
    rightBefore(rig, sweep(2), () => rig.upstream.cancel(jobs[100] ?? 0));
    const types = await rig.pollTypes(8);
    const created = types.filter((type) => type.startsWith('job.created'));
    expect(created.sort()).toEqual(jobs.map((job) => `job.created ${job}`));
    expect(types.at(-1)).toBe(`job.cancelled ${jobs[100]}`);
  });

  test('old jobs among the closed ones are history, also if the baseline could not request the newest', async () => {
    const rig = await createRig();
    const open = Array.from({ length: 3 }, () => rig.upstream.createJob());
    for (let n = 0; n < 120; n += 1) rig.upstream.close(rig.upstream.createJob());
    rig.fault({
      match: { operation: 'activeJobs', query: { includeClosedJobs: true }, times: 2 },
      fault: { kind: 'status', status: 500 },
    });
    await rig.poll();
    for (const job of open) rig.upstream.setStatus(job, 'Ready to ship');
    const types = [];
    for (let n = 0; n < 20; n += 1) types.push(...(await rig.pollTypes()));
    expect(types).toEqual(['account.baselined', ...open.map((job) => `job.status_changed ${job}`)]);
  });

  test('one dispatch is emitted once, for any number of corrections of its date', async () => {
    const rig = await baselined(1);
    const [a = 0] = rig.jobs;
    rig.upstream.dispatch(a);
    const types = await rig.pollTypes();
    for (let n = 1; n <= 4; n += 1) {
      rig.upstream.correctDateOut(a, START + n * 1000);
      types.push(...(await rig.pollTypes()));
    }
    rig.upstream.close(a);
    types.push(...(await rig.pollTypes(2)));
    expect(types).toEqual([
      `job.locked ${a}`,
      `job.dispatched ${a}`,
      ...Array(4).fill(`job.updated ${a}`),
      `job.closed ${a}`,
    ]);
  });
});

describe('the account (rules 9 and 11)', () => {
  test('credentials of another account: no job events, one account event, and no poll until an operator acts', async () => {
    const rig = await baselined(2);
    const [a = 0] = rig.jobs;
    rig.upstream.setStatus(a, 'Ready to ship');
    rig.upstream.id += 1;
    rig.sandbox.revokeTokens();
    expect(await rig.pollTypes()).toEqual(['account.identity_mismatch']);
    expect((await rig.status()).nextPollAt).toBeNull();
    expect(await rig.poll()).toMatchObject({ outcome: 'skipped', requests: 0 });
    expect(await rig.fresh()).toEqual([]);
  });

  test('a token replaced during detail fetches is checked before anything is emitted', async () => {
    const rig = await baselined(2);
    const [a = 0] = rig.jobs;
    rig.upstream.close(a);
    rightBefore(rig, search(a, true), () => {
      rig.upstream.id += 1;
      rig.sandbox.revokeTokens();
    });
    expect(await rig.pollTypes()).toEqual(['account.identity_mismatch']);
  });

  test('credentials replaced during the first poll: no baseline has the jobs of one account and the id of another', async () => {
    const rig = await createRig();
    rig.upstream.createJob();
    rightBefore(rig, page(1), () => {
      rig.upstream.id += 1;
      rig.sandbox.revokeTokens();
    });
    expect(await rig.poll()).toMatchObject({ outcome: 'failed', events: 0 });
    expect(await rig.pollTypes()).toEqual(['account.baselined']);
  });

  test('without a confirmed identity nothing is emitted', async () => {
    const rig = await baselined(2);
    const [a = 0] = rig.jobs;
    rig.upstream.setStatus(a, 'Ready to ship');
    rig.sandbox.revokeTokens();
    rig.pass(700);
    rig.fault({ match: { operation: 'account' }, fault: { kind: 'status', status: 500 } });
    expect(await rig.poll()).toMatchObject({ outcome: 'failed', events: 0 });
    rig.sandbox.faults.clear();
    expect(await rig.pollTypes()).toEqual([`job.status_changed ${a}`]);
  });

  test('the identity of a token is read in the next poll if it could not be read in the first one', async () => {
    const rig = await baselined(2);
    rig.upstream.id += 1;
    rig.upstream.createJob({ status: 'Scheduled' });
    rig.sandbox.revokeTokens();
    rig.fault({ match: { operation: 'account' }, fault: { kind: 'status', status: 500 } });
    expect(await rig.poll()).toMatchObject({ outcome: 'failed', events: 0 });
    rig.sandbox.faults.clear();
    expect(await rig.pollTypes()).toEqual(['account.identity_mismatch']);
  });

  test('the identity of a token is read although another process has read that of its own token since', async () => {
    const rig = await baselined(2);
    const other = rig.world.addAccount({ region: 'us', name: 'other' });
    other.createJob({ status: 'Scheduled' });
    const second = rig.depsOver(rig.table);
    const pollInSecond = () => pollAccount(second, rig.ref, rig.now() + 600_000);
    rig.pass(480);
    rig.actAs(other);
    rig.fault({ match: { operation: 'account' }, fault: { kind: 'status', status: 500 } });
    expect(await pollInSecond()).toMatchObject({ outcome: 'failed' });
    rig.sandbox.faults.clear();
    rig.pass(120);
    rig.actAs(rig.upstream);
    expect(await rig.poll()).toMatchObject({ outcome: 'complete' });
    rig.actAs(other);
    rig.pass(60);
    expect(await pollInSecond()).toMatchObject({ state: 'identity_mismatch' });
  });

  test('rejected credentials are emitted once, and polling resumes with the changes in between', async () => {
    const rig = await baselined(2);
    const [a = 0] = rig.jobs;
    const secret = rig.upstream.clientSecret;
    rig.fault({ match: { operation: 'token' }, fault: { kind: 'status', status: 401 } });
    rig.sandbox.revokeTokens();
    expect(await rig.pollTypes(4)).toEqual(['account.credentials_rejected']);
    expect(await rig.status()).toMatchObject({ state: 'credentials_rejected', consecutiveFailures: 4 });
    expect(JSON.stringify(await rig.table.query({ pk: `STATUS#us#acme` }))).not.toContain(secret);
    // A failure that proves nothing about them changes nothing.
    rig.sandbox.faults.clear();
    rig.fault({ match: { operation: 'token' }, fault: { kind: 'status', status: 503 } });
    expect(await rig.pollTypes(3)).toEqual([]);
    rig.sandbox.faults.clear();
    rig.upstream.setStatus(a, 'Ready to ship');
    expect(await rig.pollTypes()).toEqual([`job.status_changed ${a}`, 'account.credentials_accepted']);
  });

  test('emits an alarm at the third failed poll, and its recovery', async () => {
    const rig = await baselined(2);
    rig.fault({ match: { operation: 'activeJobs' }, fault: { kind: 'status', status: 502, body: 'html' } });
    expect(await rig.pollTypes(2)).toEqual([]);
    expect(await rig.pollTypes(3)).toEqual(['account.poll_failing']);
    expect(await rig.status()).toMatchObject({ state: 'failing', consecutiveFailures: 5 });
    rig.sandbox.faults.clear();
    expect(await rig.pollTypes(2)).toEqual(['account.poll_recovered']);
    expect(await rig.status()).toMatchObject({ state: 'tracking', consecutiveFailures: 0, problem: null });
  });
});

describe('every event', () => {
  test('has the window in which the change happened, by both of its ends (rule 13)', async () => {
    const rig = await baselined(150);
    const [a = 0, b = 0] = rig.jobs; // On page 2.
    rig.sandbox.onRequest = () => rig.pass(1);
    const lastCrawl = rig.now() + 60_000;
    await rig.poll();
    rig.upstream.setStatus(a, 'Ready to ship');
    const changed = rig.now();
    await rig.poll();
    const [status] = await rig.fresh();
    const observed = status?.data.observed as { since: string; at: string };
    expect(observed.since).toBe(new Date(lastCrawl).toISOString());
    expect(Date.parse(observed.at)).toBeGreaterThan(changed);
    expect(Date.parse(observed.at)).toBeLessThan(rig.now());
    expect(status?.time).toBe(observed.at);
    expect(status?.data).not.toHaveProperty('occurredAt');
    rig.upstream.dispatch(b, { dateOut: '2026-03-02T01:30:00-07:00' });
    await rig.poll();
    expect((await rig.fresh()).find(({ type }) => type === 'job.dispatched')?.data).toMatchObject({
      occurredAt: '2026-03-02T01:30:00-07:00',
    });
  });

  test('of A→B→A over three polls is emitted: two changes (rule 14)', async () => {
    const rig = await baselined(1);
    const [a = 0] = rig.jobs;
    const said: unknown[] = [];
    for (const status of ['Scheduled', 'Awaiting artwork', 'Scheduled']) {
      rig.upstream.setStatus(a, status);
      await rig.poll();
      said.push(
        ...(await rig.fresh()).map(({ data }) => (data.changes as { status: { to: string } }).status.to),
      );
    }
    expect(said).toEqual(['Scheduled', 'Awaiting artwork', 'Scheduled']);
  });

  test("carries customers' texts unchanged, never as markup, path or key (rule 16)", async () => {
    const rig = await baselined(1);
    const nasty = '<script>alert("1")</script> {{7*7}} \u0000\u2028\ud83d\ude00 ../../#HEAD\r\nX: y';
    const job = rig.upstream.createJob({ description: nasty, orderNumber: `#${nasty}`, orderGroup: nasty });
    await rig.poll();
    expect((await rig.fresh())[0]?.data).toMatchObject({
      job: { description: nasty, orderNumber: `#${nasty}`, orderGroup: nasty },
    });
    rig.upstream.close(job);
    expect(await rig.pollTypes()).toEqual([`job.locked ${job}`, `job.closed ${job}`]);
  });

  test('belongs to one account of one region, with the same job and order numbers elsewhere (rule 17)', async () => {
    const table = createMemoryTable();
    const [us, nz] = [await createRig({ table }), await createRig({ table, region: 'nz' })];
    for (const rig of [us, nz])
      for (let n = 0; n < 5; n += 1)
        rig.upstream.createJob({ jobNumber: 700 + n, orderNumber: n < 3 ? 'PO-1' : null });
    for (const rig of [us, nz]) expect(await rig.pollTypes()).toEqual(['account.baselined']);
    us.upstream.dispatch(700);
    nz.upstream.setStatus(700, 'Ready to ship');
    nz.upstream.close(701);
    expect(await us.pollTypes(2)).toEqual(['job.locked 700', 'job.dispatched 700']);
    expect(await nz.pollTypes(2)).toEqual(['job.status_changed 700', 'job.closed 701']);
    const [event] = await us.log
      .read(us.ref, 0, 10)
      .then((read) => (read?.kind === 'events' ? read.events : []));
    expect(JSON.parse(event?.json ?? '')).toMatchObject({ source: '/regions/us/accounts/acme' });
    expect(event?.json).not.toContain('customerId');
  });
});

describe('job.overdue (rule 15)', () => {
  const due = (events: JobEvent[]) =>
    events
      .filter(({ type }) => type === 'job.overdue')
      .map(({ subject, data }) => [Number(subject?.slice(5)), data.dueAt, data.zone]);

  test('is emitted once per due date, for a job observed undispatched after it, also for jobs of the baseline', async () => {
    const rig = await createRig();
    const [a, b, c] = [
      rig.upstream.createJob({ dateDue: '2026-03-02T01:10:00-07:00' }),
      rig.upstream.createJob({ dateDue: START + 600_000 }),
      rig.upstream.createJob({ dateDue: null }),
    ];
    const events = async (polls: number) => {
      for (let n = 0; n < polls; n += 1) await rig.poll();
      return due(await rig.fresh());
    };
    expect(await events(5)).toEqual([]);
    rig.upstream.dispatch(b);
    expect(await events(5)).toEqual([]); // Due at exactly this time.
    expect(await events(1)).toEqual([[a, '2026-03-02T08:10:00.000Z', '-07:00']]);
    expect(await events(5)).toEqual([]);
    rig.upstream.edit(a, { dateDue: START + 1_800_000 });
    rig.upstream.edit(c, { dateDue: START - 1_800_000 });
    expect(await events(1)).toEqual([[c, '2026-03-02T07:30:00.000Z', '-07:00']]);
    expect(await events(20)).toEqual([[a, '2026-03-02T08:30:00.000Z', '-07:00']]);
    expect(await events(60)).toEqual([]);
  });

  test('its due time has its own offset, else the location’s zone, else UTC−12; midnight is the end of the day', async () => {
    const rig = await baselined(1);
    const denver = { name: 'Denver', timezone: 'America/Denver' };
    const jobs = [
      rig.upstream.createJob({ dateDue: '2026-03-03T10:00:00+01:00' }),
      rig.upstream.createJob({ dateDue: '2026-03-03T10:00:00', location: denver }),
      rig.upstream.createJob({ dateDue: '2026-03-03', location: denver }),
      rig.upstream.createJob({ dateDue: '2026-03-03T00:00:00', location: null }),
      rig.upstream.createJob({ dateDue: '0001-01-01T00:00:00' }),
      rig.upstream.createJob({ dateDue: '9999-12-31T00:00:00' }),
    ];
    const said: unknown[] = [];
    for (let hour = 0; hour < 72; hour += 1) {
      await rig.poll();
      said.push(...due(await rig.fresh()));
      rig.pass(3540);
    }
    expect(said).toEqual([
      [jobs[0], '2026-03-03T09:00:00.000Z', '+01:00'],
      [jobs[1], '2026-03-03T17:00:00.000Z', 'America/Denver'],
      [jobs[2], '2026-03-04T07:00:00.000Z', 'America/Denver'],
      [jobs[3], '2026-03-04T12:00:00.000Z', '-12:00'],
    ]);
  });

  test('the detail of an overdue job that was never read is fetched in the next poll, once, and emits nothing', async () => {
    const rig = await createRig();
    const late = rig.upstream.createJob({ dateDue: START - 1_800_000 });
    const later = rig.upstream.createJob({ dateDue: START + 150_000 });
    rig.upstream.createJob({ dateDue: START + 86_400_000 });
    const fetched = () => rig.sandbox.requests.list({ operation: 'job' }).map(({ jobNumber }) => jobNumber);
    await rig.poll();
    expect(fetched()).toEqual([]);
    expect(await rig.pollTypes()).toEqual(['account.baselined']);
    expect(fetched()).toEqual([late]);
    expect(await rig.pollTypes()).toEqual([`job.overdue ${later}`]);
    for (let n = 0; n < 20; n += 1) await rig.poll();
    expect(fetched()).toEqual([late, later]);
    expect(await rig.pollTypes()).toEqual([]);
  });

  test('an unreadable job that is due does not cost a fetch at every poll', async () => {
    const rig = await baselined(1);
    rig.fault({ match: { operation: 'job' }, fault: { kind: 'status', status: 503 } });
    rig.upstream.createJob({ dateDue: START - 3_600_000 });
    let fetches = 0;
    for (let n = 0; n < 30; n += 1) fetches += (await rig.poll()).detailFetches;
    expect(fetches).toBe(5);
  });
});
