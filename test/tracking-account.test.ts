/** What an operator and a reader see of an account that is not simply tracked: secrets that change, services that ask for rest, polls that run out of time. */
import { describe, expect, test } from 'vitest';
import { pollAccount } from '../shared/tracking/poll.ts';
import { createRig, type Rig } from './support/rig.ts';

async function baselined(jobs: number): Promise<{ rig: Rig; jobs: number[] }> {
  const rig = await createRig();
  const numbers = Array.from({ length: jobs }, () => rig.upstream.createJob({ status: 'Scheduled' }));
  await rig.poll();
  await rig.fresh();
  return { rig, jobs: numbers };
}

describe('credentials (rule 11)', () => {
  test('a rotated secret is rejected until it is known here, and then the account goes on from its state', async () => {
    const { rig, jobs } = await baselined(3);
    const [job = 0] = jobs;
    const former = {
      ...rig.upstream,
      clientId: rig.upstream.clientId,
      clientSecret: rig.upstream.clientSecret,
    };
    rig.actAs(former as typeof rig.upstream);
    rig.upstream.clientSecret = 'a-new-secret';
    rig.sandbox.revokeTokens();
    expect(await rig.pollTypes(2)).toEqual(['account.credentials_rejected']);
    rig.upstream.setStatus(job, 'In production');
    rig.actAs(rig.upstream);
    expect(await rig.pollTypes()).toEqual([`job.status_changed ${job}`, 'account.credentials_accepted']);
  });

  test('a changed secret is used at once, though a token of the old one would still be good', async () => {
    const { rig } = await baselined(3);
    const tokens = rig.sandbox.requests.count({ operation: 'token' });
    rig.upstream.clientSecret = 'a-new-secret';
    expect(await rig.poll()).toMatchObject({ outcome: 'complete' });
    expect(rig.sandbox.requests.count({ operation: 'token' })).toBe(tokens + 1);
  });

  test('a token that runs out in the middle of a crawl is replaced, and the crawl is complete', async () => {
    const { rig, jobs } = await baselined(450);
    let pages = 0;
    rig.sandbox.onRequest = ({ operation }) => {
      if (operation !== 'activeJobs') return;
      pages += 1;
      // By the third page it is ten minutes old, whatever the tracker thinks of it.
      if (pages === 3) rig.sandbox.revokeTokens();
    };
    const [job = 0] = jobs;
    rig.upstream.setStatus(job, 'In production');
    expect(await rig.poll()).toMatchObject({ outcome: 'complete', events: 1 });
  });
});

describe('a service that asks for rest (rule 12)', () => {
  test('is not asked again before the time it named', async () => {
    const { rig } = await baselined(3);
    const before = rig.sandbox.requests.count();
    rig.fault({
      match: { operation: 'activeJobs' },
      fault: { kind: 'status', status: 503, retryAfter: 1800 },
    });
    expect(await rig.poll()).toMatchObject({ outcome: 'failed' });
    const { nextPollAt } = await rig.status();
    // At the account's next turn.
    expect(nextPollAt).toBeGreaterThanOrEqual(rig.now() + 1_800_000);
    expect(nextPollAt).toBeLessThan(rig.now() + 1_860_000);
    expect(rig.sandbox.requests.count()).toBe(before + 1);
  });
});

describe('quiet and blind are told apart', () => {
  test('a quiet account is seen up to its last poll; of a blind one it stands still, with the reason in words', async () => {
    const { rig } = await baselined(120);
    await rig.poll();
    const quiet = await rig.status();
    expect(quiet).toMatchObject({ state: 'tracking', lastGoodCrawlStartedAt: rig.now(), problem: null });
    rig.fault({ match: { operation: 'activeJobs', query: { page: 2 } }, fault: { kind: 'reset' } });
    await rig.poll();
    // Page 1 was read; what is not seen is not claimed to be.
    expect(await rig.status()).toMatchObject({
      lastPollAt: rig.now(),
      lastGoodCrawlStartedAt: quiet.lastGoodCrawlStartedAt,
      consecutiveFailures: 1,
    });
    expect((await rig.status()).problem).toContain('GET /Jobs/active');
    rig.sandbox.faults.clear();
    await rig.poll();
    expect(await rig.status()).toMatchObject({ lastGoodCrawlStartedAt: rig.now(), problem: null });
  });
});

describe('a poll that runs out of time', () => {
  /** A poll that must be over `ms` after its reserve, in real time. */
  const pollWithin = (rig: Rig, ms: number) => {
    rig.pass(60);
    return pollAccount(rig.deps, rig.ref, rig.now() + 3_000 + ms);
  };

  test('ends when a page does not come, commits what the others show, and the next poll goes on', async () => {
    const { rig, jobs } = await baselined(250);
    const seen = (await rig.status()).lastGoodCrawlStartedAt;
    const last = jobs.at(-1) ?? 0;
    const [first = 0] = jobs;
    for (const job of [first, last]) rig.upstream.setStatus(job, 'In production');
    // The first job is on the last page, for the newest come first.
    rig.fault({ match: { operation: 'activeJobs', query: { page: 3 } }, fault: { kind: 'hang' } });
    expect(await pollWithin(rig, 300)).toMatchObject({ outcome: 'partial', events: 1 });
    expect((await rig.fresh()).map(({ subject }) => subject)).toEqual([`jobs/${last}`]);
    expect((await rig.status()).lastGoodCrawlStartedAt).toBe(seen);
    rig.sandbox.faults.clear();
    expect(await rig.pollTypes()).toEqual([`job.status_changed ${first}`]);
  });

  test('ends when a look at a job does not come, and keeps what the list shows', async () => {
    const { rig, jobs } = await baselined(3);
    const [job = 0] = jobs;
    rig.upstream.dispatch(job);
    rig.fault({ match: { operation: 'job' }, fault: { kind: 'hang' } });
    expect(await pollWithin(rig, 300)).toMatchObject({ looksLeft: 1 });
    expect((await rig.fresh()).map(({ type }) => type)).toEqual(['job.locked', 'job.dispatched']);
    rig.sandbox.faults.clear();
    expect(await rig.poll()).toMatchObject({ outcome: 'complete', looks: 1, looksLeft: 0 });
    expect(await rig.fresh()).toEqual([]);
  });

  test('that has no time left at all writes nothing but that it failed', async () => {
    const { rig, jobs } = await baselined(3);
    const [job = 0] = jobs;
    rig.upstream.setStatus(job, 'In production');
    expect(await pollWithin(rig, -3_000)).toMatchObject({ events: 0 });
    expect(await rig.fresh()).toEqual([]);
    expect(await rig.pollTypes()).toEqual([`job.status_changed ${job}`]);
  });

  test('between two of its commits leaves whole ones behind, and the next poll says the rest', async () => {
    const { rig, jobs } = await baselined(400);
    for (const job of jobs) rig.upstream.setStatus(job, 'In production');
    const deadline = rig.now() + 60_000 + 10_000;
    // Each commit takes two seconds.
    const deps: typeof rig.deps = {
      ...rig.deps,
      log: {
        ...rig.log,
        commit: (...args) => {
          rig.pass(2);
          return rig.log.commit(...args);
        },
      },
    };
    rig.pass(60);
    expect(await pollAccount(deps, rig.ref, deadline)).toMatchObject({ outcome: 'partial' });
    const said = (await rig.fresh()).length;
    expect(said).toBeGreaterThan(0);
    expect(said).toBeLessThan(400);
    expect((await rig.pollTypes()).length).toBe(400 - said);
  });
});
