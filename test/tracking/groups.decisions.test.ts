/** The verdict on a pending order group (shared/tracking/groups.ts). */
import { describe, expect, test } from 'vitest';
import {
  type Group,
  judgeGroup,
  type MemberPhase,
  type RecordedState,
  type ShownMember,
} from '../../shared/tracking/groups.ts';

const OUT = '2026-03-02T09:00:00Z';

function group(members: Record<number, MemberPhase>): Group {
  return {
    orderGroup: 'WEB-1',
    members: new Map(Object.entries(members).map(([job, phase]) => [Number(job), phase])),
    announced: false,
    again: false,
    since: null,
    tooLarge: false,
  };
}

/** The answer: dispatched jobs as positive numbers, others as negative ones. */
const answer = (...jobs: number[]): ShownMember[] =>
  jobs.map((job) => ({ jobNumber: Math.abs(job), dateOut: job > 0 ? OUT : null }));

const judged = (
  members: Record<number, MemberPhase>,
  jobs: readonly number[],
  state: RecordedState = 'open',
  active: readonly number[] = [],
) => {
  const verdict = judgeGroup(group(members), answer(...jobs), () => state, new Set(active));
  if (verdict.kind === 'unproven') return verdict.kind;
  return [verdict.kind, Object.fromEntries(verdict.group.members)];
};

describe('a pending order group (rule 18)', () => {
  const known = { 1: 'dispatched', 2: 'gone' } as const;

  test('is complete when every member that counts is dispatched in the answer', () => {
    expect(judged(known, [1])).toEqual(['complete', known]);
    expect(judged(known, [1, -2])).toEqual(['complete', known]);
  });

  test('is not proven by an answer without a known dispatch', () => {
    expect(judged(known, [])).toBe('unproven');
    expect(judged(known, [-1])).toBe('unproven');
    expect(judged(known, [-2])).toBe('unproven');
    expect(judged({ ...known, 3: 'dispatched' }, [1, -3])).toBe('unproven');
  });

  test.each<[RecordedState, number, readonly number[], unknown]>([
    ['dispatched', 3, [], ['complete', { ...known, 3: 'dispatched' }]],
    ['history', 3, [], ['complete', { ...known, 3: 'dispatched' }]],
    ['open', 3, [], ['open', { ...known, 3: 'open' }]],
    ['gone', 3, [], 'unproven'],
    ['unseen', 3, [], 'unproven'],
    ['dispatched', -3, [3], 'unproven'],
    ['history', -3, [3], ['open', { ...known, 3: 'open' }]],
    ['history', -3, [], ['complete', { ...known, 3: 'gone' }]],
    ['gone', -3, [], ['complete', { ...known, 3: 'gone' }]],
    ['open', -3, [], ['open', { ...known, 3: 'open' }]],
    ['unseen', -3, [], ['open', { ...known, 3: 'open' }]],
  ])('a job that is no member: %s in the log, %d in the answer', (state, job, active, expected) => {
    expect(judged(known, [1, job], state, active)).toEqual(expected);
  });

  test('waits for the dispatch of an excluded member to be in the log, unless it never will be', () => {
    expect(judged(known, [1, 2], 'gone')).toBe('unproven');
    expect(judged(known, [1, 2], 'history')).toEqual(['complete', { 1: 'dispatched', 2: 'dispatched' }]);
  });
});
