/** Rule 10: when many jobs disappear at once, the upstream answers are not trusted. */
import { describe, expect, test } from 'vitest';
import { CLOSED } from '../../shared/log/head.ts';
import { keys } from '../../shared/storage/schema.ts';
import { confirmAccount } from '../../shared/tracking/operator.ts';
import { createRig, type Rig } from '../support/tracker.ts';

/** Polls a minute apart, until a suspicion of the first one can be confirmed. */
const CONFIRMED = 17;

async function baselined(jobs: number): Promise<{ rig: Rig; jobs: number[] }> {
  const rig = await createRig();
  const numbers = Array.from({ length: jobs }, () => rig.upstream.createJob({ status: 'Scheduled' }));
  await rig.poll();
  await rig.fresh();
  return { rig, jobs: numbers };
}

const accountTypes = (types: readonly string[]) => types.filter((type) => type.startsWith('account.'));
const negative = (types: readonly string[]) =>
  types.filter((type) => /^job\.(cancelled|unavailable)/.test(type));

describe('a list that emptied with a 200 (rule 10)', () => {
  async function emptied() {
    const { rig, jobs } = await baselined(40);
    // In no list, and locked, as cancelled jobs are.
    for (const job of jobs) {
      rig.upstream.lock(job);
      rig.upstream.hide(job);
    }
    return { rig, jobs };
  }

  test('emits one account event and a state, and never job.cancelled, for any duration', async () => {
    const { rig } = await emptied();
    const types = await rig.pollTypes(3 * CONFIRMED);
    expect(accountTypes(types)).toEqual(['account.quarantined']);
    expect(negative(types)).toEqual([]);
    expect(await rig.status()).toMatchObject({ state: 'quarantined', openJobs: 0 });
    expect((await rig.status()).missing).toEqual({ unanswered: 0, suspected: 0, contradictory: 40 });
  });

  test('is lifted automatically when the jobs return, and no event is emitted for them', async () => {
    const { rig, jobs } = await emptied();
    await rig.pollTypes(CONFIRMED);
    for (const job of jobs) rig.upstream.unhide(job);
    const events = (await rig.pollTypes(2)).filter((type) => !type.startsWith('job.locked'));
    expect(events).toEqual(['account.resumed']);
    expect(await rig.status()).toMatchObject({ state: 'tracking', quarantinedAt: null });
    expect(await rig.pollTypes(CONFIRMED)).toEqual([]);
  });

  test('is not lifted while only some of them are back', async () => {
    const { rig, jobs } = await emptied();
    await rig.pollTypes(CONFIRMED);
    for (const job of jobs.slice(0, 20)) rig.upstream.unhide(job);
    expect(accountTypes(await rig.pollTypes(CONFIRMED))).toEqual([]);
    expect((await rig.status()).state).toBe('quarantined');
  });

  test('other changes are still emitted meanwhile', async () => {
    const { rig, jobs } = await emptied();
    await rig.pollTypes(CONFIRMED);
    const [job = 0] = jobs;
    rig.upstream.unhide(job);
    rig.upstream.dispatch(job);
    expect(await rig.pollTypes()).toEqual(expect.arrayContaining([`job.dispatched ${job}`]));
  });

  test('confirmed by an operator: each job is investigated once more and emitted once; then polling is as usual', async () => {
    const { rig, jobs } = await baselined(40);
    for (const job of jobs.slice(0, 30)) rig.upstream.cancel(job);
    await rig.pollTypes(CONFIRMED);
    expect(await confirmAccount(rig.deps, rig.ref)).toEqual({ kind: 'confirmed', was: 'quarantined' });
    const types = await rig.pollTypes(2 * CONFIRMED);
    expect(accountTypes(types)).toEqual(['account.resumed']);
    expect(negative(types).sort()).toEqual(jobs.slice(0, 30).map((job) => `job.cancelled ${job}`));
    expect((await rig.status()).state).toBe('tracking');
    expect(await confirmAccount(rig.deps, rig.ref)).toEqual({
      kind: 'nothing to confirm',
      state: 'tracking',
    });
    // A few further ones are accepted as usual.
    const [next = 0] = jobs.slice(30);
    rig.upstream.cancel(next);
    expect(negative(await rig.pollTypes(CONFIRMED + 1))).toEqual([`job.cancelled ${next}`]);
  });

  test('the jobs reported after a confirmation cause no quarantine when it expires', async () => {
    const { rig, jobs } = await baselined(41);
    const [next = 0, ...others] = jobs;
    for (const job of others.slice(0, 30)) rig.upstream.cancel(job);
    await rig.pollTypes(CONFIRMED);
    await confirmAccount(rig.deps, rig.ref);
    expect(negative(await rig.pollTypes(2 * CONFIRMED))).toHaveLength(30);
    // The reports still count, and the confirmation is valid no more.
    rig.pass(86_400 - 30 * 60);
    rig.upstream.cancel(next);
    const types = await rig.pollTypes(CONFIRMED + 1);
    expect(accountTypes(types)).toEqual([]);
    expect(negative(types)).toEqual([`job.cancelled ${next}`]);
  });

  test('jobs with contradictory responses cause no quarantine again when the confirmation expires, and further ones do', async () => {
    const { rig, jobs } = await baselined(60);
    // Editable, and in no list.
    for (const job of jobs.slice(0, 20)) rig.upstream.hide(job);
    await rig.pollTypes(3);
    await confirmAccount(rig.deps, rig.ref);
    expect(await rig.pollTypes()).toEqual(['account.resumed']);
    for (let day = 0; day < 3; day += 1) {
      rig.pass(86_400);
      expect(accountTypes(await rig.pollTypes(3))).toEqual([]);
    }
    // Jobs that are listed again are not confirmed any more.
    for (const job of jobs.slice(0, 10)) rig.upstream.unhide(job);
    expect(accountTypes(await rig.pollTypes(3))).toEqual([]);
    for (const job of jobs.slice(20, 30)) rig.upstream.hide(job);
    expect(accountTypes(await rig.pollTypes(3))).toEqual([]);
    for (const job of jobs.slice(0, 1)) rig.upstream.hide(job);
    expect(accountTypes(await rig.pollTypes(3))).toEqual(['account.quarantined']);
  });

  test('is not confirmed once the account was moved to another cell: its log is closed', async () => {
    const { rig } = await emptied();
    await rig.pollTypes(CONFIRMED);
    await rig.table.write({ update: keys.head(rig.ref), set: { [CLOSED]: true } });
    expect(await confirmAccount(rig.deps, rig.ref)).toEqual({ kind: 'nothing to confirm', state: 'paused' });
  });

  test('the confirmation wins against a concurrent poll', async () => {
    const { rig } = await emptied();
    await rig.pollTypes(CONFIRMED);
    rig.sandbox.onRequest = async () => {
      rig.sandbox.onRequest = undefined;
      await confirmAccount(rig.deps, rig.ref);
    };
    expect(await rig.poll()).toMatchObject({ outcome: 'fenced' });
    expect((await rig.status()).quarantinedAt).toBeNull();
    expect(accountTypes(await rig.pollTypes())).toEqual(['account.resumed']);
  });
});

describe('many jobs at once (rule 10)', () => {
  test('contradictory ones alone are sufficient: they are in no list and yet editable', async () => {
    const { rig, jobs } = await baselined(40);
    for (const job of jobs.slice(0, 11)) rig.upstream.hide(job);
    expect(accountTypes(await rig.pollTypes(3))).toEqual(['account.quarantined']);
    for (const job of jobs) rig.upstream.unhide(job);
    expect(await rig.pollTypes(2)).toEqual(['account.resumed']);
  });

  test('a slow leak over a day adds up', async () => {
    const { rig, jobs } = await baselined(60);
    const said: string[] = [];
    for (let at = 0; at < 12; at += 3) {
      for (const job of jobs.slice(at, at + 3)) rig.upstream.cancel(job);
      said.push(...(await rig.pollTypes(CONFIRMED + 1)));
      rig.pass(1800);
    }
    expect(negative(said)).toHaveLength(9);
    expect(accountTypes(said)).toEqual(['account.quarantined']);
    // A day later the first ones no longer count.
    rig.pass(86_400);
    const later = await rig.pollTypes(2 * CONFIRMED);
    expect(accountTypes(later)).toEqual(['account.resumed']);
    expect(negative(later)).toHaveLength(3);
  });

  test('closed ones do not count: they are among the closed', async () => {
    const { rig, jobs } = await baselined(40);
    for (const job of jobs.slice(0, 30)) rig.upstream.close(job);
    expect(accountTypes(await rig.pollTypes(CONFIRMED))).toEqual([]);
    expect((await rig.status()).state).toBe('tracking');
  });

  test('a negative verdict waits until all candidates of that absence are investigated', async () => {
    const { rig, jobs } = await baselined(40);
    // Twenty of them are unknown while their details are unreadable.
    const [cancelled = 0] = jobs;
    rig.upstream.cancel(cancelled);
    for (const job of jobs.slice(1, 21)) {
      rig.upstream.close(job);
      rig.fault({ match: { path: `^/api/Jobs/${job}$` }, fault: { kind: 'reset' } });
    }
    expect(negative(await rig.pollTypes(2 * CONFIRMED))).toEqual([]);
    expect((await rig.status()).missing).toEqual({ unanswered: 20, suspected: 1, contradictory: 0 });
    rig.sandbox.faults.clear();
    expect(negative(await rig.pollTypes(3 * CONFIRMED))).toEqual([`job.cancelled ${cancelled}`]);
  });

  test('the state outlives failures of the account, and is restored after them', async () => {
    const { rig, jobs } = await baselined(40);
    for (const job of jobs.slice(0, 11)) rig.upstream.hide(job);
    await rig.pollTypes(3);
    rig.fault({ match: { operation: 'activeJobs' }, fault: { kind: 'status', status: 503 } });
    expect(await rig.pollTypes(3)).toEqual(['account.poll_failing']);
    expect((await rig.status()).state).toBe('failing');
    rig.sandbox.faults.clear();
    expect(await rig.pollTypes()).toEqual(['account.poll_recovered']);
    expect((await rig.status()).state).toBe('quarantined');
  });
});

describe('an identity mismatch (rule 9)', () => {
  test('ends when an operator confirms and the credentials are correct again', async () => {
    const { rig, jobs } = await baselined(3);
    const other = rig.world.addAccount({ region: 'us', name: 'other' });
    rig.actAs(other);
    expect(accountTypes(await rig.pollTypes(2))).toEqual(['account.identity_mismatch']);
    // Confirmed too early: it is found again.
    await confirmAccount(rig.deps, rig.ref);
    expect(accountTypes(await rig.pollTypes(2))).toEqual(['account.resumed', 'account.identity_mismatch']);
    rig.actAs(rig.upstream);
    const [job = 0] = jobs;
    rig.upstream.setStatus(job, 'In production');
    expect(await rig.pollTypes()).toEqual([]);
    await confirmAccount(rig.deps, rig.ref);
    expect(await rig.pollTypes()).toEqual(['account.resumed', `job.status_changed ${job}`]);
  });

  test('can be confirmed as the account from now on: its log continues', async () => {
    const { rig } = await baselined(3);
    const other = rig.world.addAccount({ region: 'us', name: 'other' });
    rig.actAs(other);
    await rig.pollTypes();
    await confirmAccount(rig.deps, rig.ref, { upstreamId: other.id });
    expect(accountTypes(await rig.pollTypes(2))).toEqual(['account.resumed']);
    expect((await rig.status()).state).toBe('tracking');
  });
});
