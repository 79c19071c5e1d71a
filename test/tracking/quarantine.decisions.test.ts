/** Whether so many jobs disappeared that the answers are not trusted (shared/tracking/quarantine.ts). */
import { describe, expect, test } from 'vitest';
import {
  type Absence,
  addVerdicts,
  countUnresolvedJobs,
  countVerdicts,
  findAllowance,
  judgeAbsence,
  readVerdictCounter,
} from '../../shared/tracking/quarantine.ts';

const HOUR_MS = 3_600_000;

function absence(counts: Partial<Absence>): Absence {
  return { listed: 0, suspected: 0, contradictory: 0, unanswered: 0, reported: 0, ...counts };
}

describe('the decision (rule 10)', () => {
  test.each([
    ['ten jobs are never too many, however few there are', { suspected: 10 }, 'clear'],
    ['eleven of few are', { suspected: 11, listed: 20 }, 'quarantine'],
    ['a tenth of many is not', { suspected: 50, listed: 450 }, 'clear'],
    ['more than a tenth is', { suspected: 51, listed: 449 }, 'quarantine'],
    ['nor of open jobs that contradict themselves', { contradictory: 50, listed: 450 }, 'clear'],
    ['nor of jobs that were open within a day', { reported: 50, listed: 450 }, 'clear'],
    ['contradictions count', { suspected: 20, contradictory: 31, listed: 449 }, 'quarantine'],
    ['so do verdicts reported within a day', { suspected: 2, reported: 49, listed: 449 }, 'quarantine'],
    [
      'jobs that are not answered for could be too many',
      { suspected: 2, unanswered: 49, listed: 449 },
      'wait',
    ],
    ['or are too few to matter', { suspected: 2, unanswered: 48, listed: 450 }, 'clear'],
    ['nobody missing', { listed: 500 }, 'clear'],
  ] as const)('%s', (_, counts, ruling) => {
    expect(judgeAbsence(absence(counts), 0)).toBe(ruling);
  });

  test('departures confirmed by an operator do not count, further ones do', () => {
    const counts = absence({ suspected: 300, listed: 200 });
    expect(judgeAbsence(counts, 300)).toBe('clear');
    expect(judgeAbsence(counts, 250)).toBe('clear');
    expect(judgeAbsence(counts, 249)).toBe('quarantine');
  });

  test('an emitted verdict counts for 24 hours, and not much longer', () => {
    const at = Date.parse('2026-03-02T08:59:59Z');
    let tally = addVerdicts([], 3, at);
    tally = addVerdicts(tally, 2, at + 60_000);
    expect(countVerdicts(tally, at + 60_000)).toBe(5);
    expect(countVerdicts(tally, at + 24 * HOUR_MS)).toBe(5);
    expect(countVerdicts(tally, at + 25 * HOUR_MS)).toBe(2);
    expect(countVerdicts(tally, at + 26 * HOUR_MS)).toBe(0);
    expect(addVerdicts(tally, 1, at + 100 * HOUR_MS)).toHaveLength(1);
  });

  test('a confirmation raises the limit until it expires, and then by the verdicts before that which still count', () => {
    const until = 48 * HOUR_MS;
    const tally = ['24:9', '25:1', '47:2', '48:4'];
    const allowance = (allowedGone: number, at: number, contradictory = 0) =>
      findAllowance({ allowedGone, allowedGoneUntil: until }, tally, at, contradictory);
    expect(findAllowance({ allowedGone: 5, allowedGoneUntil: null }, tally, until, 5)).toBe(0);
    expect(allowance(5, until - 1)).toBe(5);
    expect(allowance(50, until - 1)).toBe(50);
    expect(allowance(5, until)).toBe(5);
    expect(allowance(50, until)).toBe(12);
    expect(allowance(50, until + HOUR_MS)).toBe(3);
    expect(allowance(50, until + 2 * HOUR_MS)).toBe(2);
    expect(allowance(50, until + 24 * HOUR_MS)).toBe(0);
    // Contradictory jobs are never reported.
    expect(allowance(50, until + HOUR_MS, 20)).toBe(23);
    expect(allowance(15, until + 24 * HOUR_MS, 20)).toBe(15);
  });

  test('a new verdict removes none that still counts, and the stored list is bounded', () => {
    let tally = addVerdicts([], 3, 0);
    tally = addVerdicts(tally, 1, 24 * HOUR_MS);
    expect(countVerdicts(tally, 24 * HOUR_MS)).toBe(4);
    for (let hour = 25; hour < 100; hour += 1) tally = addVerdicts(tally, 1, hour * HOUR_MS);
    expect(tally).toHaveLength(25);
    expect(countVerdicts(tally, 99 * HOUR_MS)).toBe(25);
  });
});

test('missing jobs are those without an answer, suspected, and with contradictory answers', () => {
  const absence: Absence = { listed: 90, unanswered: 1, suspected: 20, contradictory: 300, reported: 4_000 };
  expect(countUnresolvedJobs(absence)).toBe(321);
});

test('the counter of verdicts is stored in the head', () => {
  expect(readVerdictCounter({})).toEqual([]);
  expect(readVerdictCounter({ goneTally: ['7:3'] })).toEqual(['7:3']);
});
