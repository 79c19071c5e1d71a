/** Account states for operators and readers: changed secrets, Retry-After, polls that time out. */

import { randomUUID } from 'node:crypto';
import { describe, expect, test } from 'vitest';
import { readRecipient } from '../../shared/notifications/recipients.ts';
import { saveSettings } from '../../shared/notifications/settings.ts';
import { OWN_USER } from '../../shared/notifications/types.ts';
import { confirmAccount } from '../../shared/tracking/operator.ts';
import { pollAccount } from '../../shared/tracking/poll.ts';
import { createRig, type Rig, watchedTable } from '../support/tracker.ts';

async function baselined(jobs: number): Promise<{ rig: Rig; jobs: number[] }> {
  const rig = await createRig();
  const numbers = Array.from({ length: jobs }, () => rig.upstream.createJob({ status: 'Scheduled' }));
  await rig.poll();
  await rig.fresh();
  return { rig, jobs: numbers };
}

describe('credentials (rule 11)', () => {
  test('a rotated secret is rejected until it is updated, and then tracking resumes from its state', async () => {
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

  test('a changed secret is used at once, although a token of the old one is still valid', async () => {
    const { rig } = await baselined(3);
    const tokens = rig.sandbox.requests.count({ operation: 'token' });
    rig.upstream.clientSecret = 'a-new-secret';
    expect(await rig.poll()).toMatchObject({ outcome: 'complete' });
    expect(rig.sandbox.requests.count({ operation: 'token' })).toBe(tokens + 1);
  });

  test('a token that expires within a crawl is replaced, and the crawl is complete', async () => {
    const { rig, jobs } = await baselined(450);
    let pages = 0;
    rig.sandbox.onRequest = ({ operation }) => {
      if (operation !== 'activeJobs') return;
      pages += 1;
      // By the third page it is ten minutes old, for any clock of the tracker.
      if (pages === 3) rig.sandbox.revokeTokens();
    };
    const [job = 0] = jobs;
    rig.upstream.setStatus(job, 'In production');
    expect(await rig.poll()).toMatchObject({ outcome: 'complete', events: 1 });
  });
});

describe('Retry-After of the upstream API (rule 12)', () => {
  test('delays the next poll until its time', async () => {
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

describe('the poll interval', () => {
  test('stays the same while only entries of the list are unreadable, and grows while whole pages are', async () => {
    const { rig, jobs } = await baselined(150);
    const newest = jobs.at(-1) ?? 0;
    for (const listsJob of jobs.slice(0, 11)) {
      rig.fault({ match: { listsJob }, fault: { kind: 'status', status: 500 } });
    }
    for (let poll = 1; poll <= 5; poll += 1) {
      rig.upstream.setStatus(newest, `Step ${poll}`);
      expect(await rig.poll()).toMatchObject({ outcome: 'partial', unread: 11 });
      expect((await rig.status()).nextPollAt).toBeLessThanOrEqual(rig.now() + 66_000);
    }
    expect((await rig.status()).state).toBe('failing');
    const events = await rig.fresh();
    expect(events.filter(({ type }) => type === 'job.status_changed')).toHaveLength(5);
    rig.sandbox.faults.clear();
    rig.fault({
      match: { operation: 'activeJobs', query: { page: 2 } },
      fault: { kind: 'status', status: 503 },
    });
    await rig.poll();
    expect((await rig.status()).nextPollAt).toBeGreaterThan(rig.now() + 800_000);
  });
});

describe('quiet and failing accounts', () => {
  test('a quiet account is observed through its last poll; that of a failing one stops, with the error message', async () => {
    const { rig } = await baselined(120);
    await rig.poll();
    const quiet = await rig.status();
    expect(quiet).toMatchObject({ state: 'tracking', lastGoodCrawlStartedAt: rig.now(), problem: null });
    rig.fault({ match: { operation: 'activeJobs', query: { page: 2 } }, fault: { kind: 'reset' } });
    await rig.poll();
    // Page 1 was read; unread pages do not count as observed.
    expect(await rig.status()).toMatchObject({
      lastPollAt: rig.now(),
      lastGoodCrawlStartedAt: quiet.lastGoodCrawlStartedAt,
      consecutiveFailures: 1,
    });
    expect((await rig.status()).problem).toMatch(/ECONNRESET.*baseUrl of region "us"/);
    rig.sandbox.faults.clear();
    await rig.poll();
    expect(await rig.status()).toMatchObject({ lastGoodCrawlStartedAt: rig.now(), problem: null });
  });
});

describe('a poll that times out', () => {
  /** A poll that must be over `ms` after its reserve, in real time. */
  const pollWithin = (rig: Rig, ms: number) => {
    rig.pass(60);
    return pollAccount(rig.deps, rig.ref, rig.now() + 3_000 + ms);
  };

  test('ends if a page times out, commits the changes of the others, and the next poll continues', async () => {
    const { rig, jobs } = await baselined(250);
    const seen = (await rig.status()).lastGoodCrawlStartedAt;
    const last = jobs.at(-1) ?? 0;
    const [first = 0] = jobs;
    for (const job of [first, last]) rig.upstream.setStatus(job, 'In production');
    // The first job is on the last page, because the newest come first.
    rig.fault({ match: { operation: 'activeJobs', query: { page: 3 } }, fault: { kind: 'hang' } });
    expect(await pollWithin(rig, 300)).toMatchObject({ outcome: 'partial', events: 1 });
    expect((await rig.fresh()).map(({ subject }) => subject)).toEqual([`jobs/${last}`]);
    expect((await rig.status()).lastGoodCrawlStartedAt).toBe(seen);
    rig.sandbox.faults.clear();
    expect(await rig.pollTypes()).toEqual([`job.status_changed ${first}`]);
  });

  test("ends if a detail fetch times out, and keeps the list's changes", async () => {
    const { rig, jobs } = await baselined(3);
    const [job = 0] = jobs;
    rig.upstream.dispatch(job);
    rig.fault({ match: { operation: 'job' }, fault: { kind: 'hang' } });
    expect(await pollWithin(rig, 300)).toMatchObject({ fetchesLeft: 1 });
    expect((await rig.fresh()).map(({ type }) => type)).toEqual(['job.locked', 'job.dispatched']);
    rig.sandbox.faults.clear();
    expect(await rig.poll()).toMatchObject({ outcome: 'complete', detailFetches: 1, fetchesLeft: 0 });
    expect(await rig.fresh()).toEqual([]);
  });

  test('without any time left writes only its failure', async () => {
    const { rig, jobs } = await baselined(3);
    const [job = 0] = jobs;
    rig.upstream.setStatus(job, 'In production');
    expect(await pollWithin(rig, -3_000)).toMatchObject({ events: 0 });
    expect(await rig.fresh()).toEqual([]);
    expect(await rig.pollTypes()).toEqual([`job.status_changed ${job}`]);
  });

  test('between two of its commits leaves whole ones, and the next poll emits the rest', async () => {
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

describe('the API user as a recipient', () => {
  const MINUTES_PER_READ = 60;

  async function wanting() {
    const { rig } = await baselined(3);
    const save = (ownUser: boolean) =>
      saveSettings({ ...rig, now: rig.now, newId: randomUUID }, rig.ref, {
        ...{ enabled: true, ownUser, branding: { name: 'Acme' } },
      });
    await save(true);
    const [user] = rig.upstream.users;
    if (!user) throw new Error('The account has no user.');
    return {
      ...{ rig, save, user },
      reads: () => rig.sandbox.requests.count({ operation: 'accountUser' }),
      read: () => readRecipient(rig.table, rig.ref, OWN_USER),
      polls: async (count: number) => {
        for (let n = 0; n < count; n += 1) expect(await rig.poll()).toMatchObject({ outcome: 'complete' });
      },
    };
  }

  test('is read by the first poll that needs it, every hour from then on, and at once after re-enabling', async () => {
    const { rig, save, user, reads, read, polls } = await wanting();
    await polls(1);
    expect(await read()).toMatchObject({ email: user.emailAddress, channels: ['email'], source: 'upstream' });
    Object.assign(user, { mobile: '(212) 555-2368', textNotifyDispatch: true });
    await polls(MINUTES_PER_READ - 1);
    expect(reads()).toBe(1);
    expect(await read()).toMatchObject({ channels: ['email'] });
    await polls(1);
    expect(reads()).toBe(2);
    expect(await read()).toMatchObject({ mobile: '+12125552368', channels: ['email', 'sms'] });
    await save(false);
    expect(await read()).toBeUndefined();
    await polls(1);
    expect(reads()).toBe(2);
    rig.pass(1);
    await save(true);
    await polls(1);
    expect(await read()).toMatchObject({ channels: ['email', 'sms'] });
  });

  test('is accepted only with a token whose identity is checked at the same time', async () => {
    const { rig, user, read } = await wanting();
    rig.sandbox.onRequest = ({ operation }) => {
      if (operation !== 'accountUser') return;
      // From here on the upstream API answers as another account.
      rig.upstream.id += 1;
      user.emailAddress = 'stranger@example.com';
      rig.sandbox.onRequest = undefined;
    };
    expect(await rig.poll()).toMatchObject({ outcome: 'failed', state: 'identity_mismatch' });
    expect(await read()).toBeUndefined();
  });

  test('is read at once after an operator confirmed another account, whose jobs the former user must not get', async () => {
    const { rig, read, polls } = await wanting();
    await polls(1);
    const other = rig.world.addAccount({ region: 'us', name: 'other' });
    rig.actAs(other);
    expect(await rig.poll()).toMatchObject({ state: 'identity_mismatch' });
    await confirmAccount(rig.deps, rig.ref, { upstreamId: other.id });
    await polls(1);
    expect(await read()).toMatchObject({ email: other.users[0]?.emailAddress });
  });

  test('is read again later if the token was replaced between the two', async () => {
    const { rig, read, polls } = await wanting();
    let asked = 0;
    rig.sandbox.onRequest = ({ operation }) => {
      if (operation === 'accountUser') asked += 1;
      if (operation !== 'account' || asked !== 1) return;
      asked += 1;
      rig.sandbox.revokeTokens();
    };
    await polls(1);
    expect(await read()).toBeUndefined();
    await polls(15);
    expect(await read()).toMatchObject({ source: 'upstream' });
  });

  test('that is unreadable does not delay tracking, and is read again after 15 minutes', async () => {
    const { rig, reads, read, polls } = await wanting();
    rig.fault({ match: { operation: 'accountUser' }, fault: { kind: 'status', status: 403 } });
    const job = rig.upstream.createJob({ status: 'Scheduled' });
    await polls(1);
    expect((await rig.fresh()).map(({ subject }) => subject)).toEqual([`jobs/${job}`]);
    expect(await read()).toBeUndefined();
    await polls(14);
    expect(reads()).toBe(1);
    rig.sandbox.faults.clear();
    await polls(1);
    expect(await read()).toMatchObject({ source: 'upstream' });
    rig.fault({ match: { operation: 'accountUser' }, fault: { kind: 'status', status: 403 } });
    await polls(MINUTES_PER_READ + 1);
    expect(await read(), 'the known user stays').toMatchObject({ source: 'upstream' });
  });

  test('costs a poll no additional read or write, neither between two readings nor if disabled', async () => {
    const { rig, save, polls } = await wanting();
    await polls(1);
    const getCalls = async () => {
      const table = watchedTable(rig.table);
      rig.pass(60);
      await pollAccount(rig.depsOver(table), rig.ref, rig.now() + 600_000);
      return table.calls;
    };
    const between = await getCalls();
    await save(false);
    expect(await getCalls()).toEqual(between);
    expect(between.flatMap(({ of }) => of)).not.toContain('NOTIFY');
    expect(between.flatMap(({ of }) => of)).not.toContain('RECIPIENTS');
  });
});
