/** The evaluation of `npm run bench -- --peers`. */
import { expect, it } from 'vitest';
import { type Delivery, judge, type Measured, omitUnread, toTable } from '../../bench/peers/results.ts';

/** Deliveries to one endpoint at 1 ms, 2 ms and so on: event and job. */
function arrive(...deliveries: readonly (readonly [event: number, job: number])[]): Delivery[] {
  return deliveries.map(([event, job], at) => ({
    endpoint: 0,
    event,
    job,
    at: at + 1,
    connectedAt: 0,
    respondedAt: at + 1,
  }));
}

it('finds no fault in events that arrive once and in the order of their jobs', () => {
  const verdict = judge(arrive([2, 8], [1, 7], [3, 7], [4, 8]), 4);
  expect(verdict).toMatchObject({ lost: 0, duplicates: 0, jobsOutOfOrder: 0, lastAt: 4 });
});

it('counts a job with an event that arrives before an earlier one once', () => {
  expect(judge(arrive([3, 7], [2, 7], [1, 7], [4, 8]), 4).jobsOutOfOrder).toBe(1);
});

it('counts repeated events as duplicates, which affect neither order nor times', () => {
  const verdict = judge(arrive([1, 7], [2, 7], [1, 7]), 2);
  expect(verdict).toMatchObject({ lost: 0, duplicates: 1, jobsOutOfOrder: 0, lastAt: 2 });
  expect([...verdict.arrivals]).toEqual([
    [1, 1],
    [2, 2],
  ]);
});

it('does not count responses that were sent to a killed process', () => {
  const [first, second, third, ...others] = arrive([1, 7], [2, 7], [3, 7], [1, 7], [2, 7]);
  if (!first || !second || !third) throw new Error('There are five deliveries.');
  const restarted = others.map((one) => ({ ...one, connectedAt: 3.5 }));
  const verdict = judge(omitUnread([first, second, third, ...restarted], 2), 3);
  expect(verdict).toMatchObject({ lost: 1, duplicates: 1, jobsOutOfOrder: 0 });
});

it('counts lost events, duplicates and order separately for each endpoint', () => {
  const [first, second] = arrive([2, 7], [1, 7]).map((one) => ({ ...one, endpoint: 1 }));
  if (!first || !second) throw new Error('There are two deliveries.');
  const verdict = judge([...arrive([1, 7], [2, 7]), first, second], 3, 2);
  expect(verdict).toMatchObject({ lost: 2, duplicates: 0, jobsOutOfOrder: 1 });
});

it('prints the median, minimum and maximum of the rounds, and the number of rounds that have a result', () => {
  const results = new Map<string, Measured[]>([
    ['one', [{ sustained: 300, start: 1.234 }, { sustained: 100 }, { sustained: 200.4 }]],
    ['two', [{ sustained: 12_345 }, { sustained: 12_345 }, { sustained: 12_345, killAllLost: 0 }]],
  ]);
  const rows = toTable(results).split('\n');
  expect(rows.slice(0, 3)).toEqual([
    '|  | one | two |',
    '| --- | --- | --- |',
    '| Publish → received, 1 endpoint, sustained: events/s | 200 (100–300) | 12,345 |',
  ]);
  expect(rows).toContain(
    '| Start until the API responds: s | 1.23 (1.23–1.23, 1 of 3 rounds) | not measured |',
  );
  expect(rows).toContain('| kill -9 of everything: lost | not measured | 0 (0–0, 1 of 3 rounds) |');
});
