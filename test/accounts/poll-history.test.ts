/** The last polls in an account's Status, and that they cost nothing. */
import { expect, test } from 'vitest';
import { toAccount } from '../../shared/accounts/accounts.ts';
import {
  addPoll,
  KEPT_POLLS,
  type PastPoll,
  pollTimes,
  readPolls,
} from '../../shared/accounts/poll-history.ts';
import { keys } from '../../shared/storage/schema.ts';
import { estimateSize, type Item } from '../../shared/storage/table.ts';
import { reportAccounts, reportPolls } from '../../shared/tracking/operator.ts';
import { createRig } from '../support/tracker.ts';

const WRITE_UNIT = 1024;

const poll = (number: number, change: Partial<PastPoll> = {}): PastPoll => ({
  startedAt: Date.parse('2026-03-02T08:00:00Z') + number * 120_000,
  ms: 1_500 + number,
  outcome: 'complete',
  requests: 3,
  events: 0,
  problem: null,
  ...change,
});

function after(polls: readonly PastPoll[], others = {}): PastPoll[] {
  let kept: PastPoll[] = [];
  for (const one of polls) kept = readPolls(addPoll(kept, one, others));
  return kept;
}

test('the last twenty polls are read as they were written, in order', () => {
  const polls = [
    ...Array.from({ length: 30 }, (_, number) => poll(number)),
    poll(30, { outcome: 'partial', events: 65_535, requests: 700, ms: 299_999, problem: 'Page 3 failed.' }),
    poll(31, { outcome: 'failed', requests: 0, problem: 'The ordering API did not respond.' }),
    poll(32),
  ];
  expect(after(polls)).toEqual(polls.slice(-KEPT_POLLS));
});

test('numbers above the maximum are stored as the maximum', () => {
  const [kept] = after([poll(0, { ms: 1e9, requests: 1e6, events: 1e6 })]);
  expect(kept).toMatchObject({ ms: 2 ** 24 - 1, requests: 65_535, events: 65_535 });
});

test('an error message is stored once for all its occurrences, and the newest of many are kept', () => {
  const polls = ['A.', 'B.', 'C.', 'A.', 'D.', 'D.'].map((problem, number) =>
    poll(number, { outcome: 'failed', problem }),
  );
  expect(after(polls).map(({ problem }) => problem)).toEqual(['A.', null, 'C.', 'A.', 'D.', 'D.']);
  expect(addPoll([], poll(0, { problem: 'x'.repeat(500) }), {}).pollProblems?.[0]).toHaveLength(160);
});

test('if space is short, messages are dropped first, then the oldest polls; the item never exceeds its limit', () => {
  const polls = Array.from({ length: KEPT_POLLS }, (_, number) =>
    poll(number, { problem: `${number} ${'x'.repeat(120)}` }),
  );
  let before = Number.POSITIVE_INFINITY;
  for (const bytes of [100, 400, 600, 700, 800, 900, 1_000]) {
    const others = { text: 'x'.repeat(bytes) };
    const stored = addPoll(polls.slice(0, -1), polls.at(-1) as PastPoll, others);
    const kept = readPolls(stored);
    if (kept.length > 0) expect(estimateSize({ ...others, ...stored })).toBeLessThan(WRITE_UNIT - 80);
    expect(kept).toEqual(
      polls.slice(polls.length - kept.length).map((one, at) => ({ ...one, problem: kept[at]?.problem })),
    );
    const worth = kept.length * 10 + kept.filter(({ problem }) => problem !== null).length;
    expect(worth).toBeLessThanOrEqual(before);
    before = worth;
  }
  expect(before).toBe(0);
});

test('durations are of all stored polls', () => {
  expect(pollTimes([])).toBeNull();
  expect(pollTimes([30, 10, 50, 20].map((ms) => poll(0, { ms })))).toEqual({
    last: 20,
    median: 20,
    slowest: 50,
  });
});

test('the current error message of the Status takes no extra space, and is kept when it is no longer the last', () => {
  const problem = `It failed. ${'x'.repeat(130)}`;
  const failed = poll(0, { outcome: 'failed', problem });
  const stored = addPoll([], failed, { problem });
  expect(stored.pollProblems).toBeUndefined();
  expect(readPolls({ ...stored, problem })).toEqual([failed]);
  const next = addPoll(readPolls({ ...stored, problem }), poll(1), {});
  expect(readPolls(next)).toEqual([failed, poll(1)]);
});

test('each poll is stored with its outcome, without an additional or larger write', async () => {
  const rig = await createRig();
  const job = rig.upstream.createJob({ status: 'Scheduled' });
  let largest = 0;
  const polls = async (times: number): Promise<void> => {
    for (let at = 0; at < times; at += 1) {
      await rig.poll();
      largest = Math.max(largest, estimateSize((await rig.table.get(keys.status(rig.ref))) ?? {}));
    }
  };
  await polls(KEPT_POLLS);
  rig.upstream.setStatus(job, 'In production');
  await polls(1);
  rig.fault({ match: { operation: 'activeJobs' }, fault: { kind: 'status', status: 503 } });
  await polls(1);

  const [failed, changed, quiet, ...rest] = (await reportPolls(rig, rig.ref)) ?? [];
  expect(failed).toMatchObject({ outcome: 'failed', events: 0, problem: (await rig.status()).problem });
  expect(failed?.problem).toMatch(/503|not/);
  expect(changed).toMatchObject({ outcome: 'complete', events: 1, problem: null });
  expect(changed?.requests).toBeGreaterThan(quiet?.requests ?? 0);
  expect(quiet).toMatchObject({ outcome: 'complete', events: 0 });
  expect(rest).toHaveLength(KEPT_POLLS - 3);
  expect(failed?.startedAt).toBe(new Date(rig.now()).toISOString());
  const account = toAccount((await rig.table.get(keys.account(rig.ref))) as Item);
  const [report] = await reportAccounts(rig, [account]);
  expect(report).toMatchObject({ pollMs: { last: 0 }, consecutiveFailures: 1 });

  await polls(KEPT_POLLS);
  expect(largest).toBeLessThan(WRITE_UNIT);
  expect((await reportPolls(rig, rig.ref))?.map(({ problem }) => problem)).not.toContain(null);
});
