/** The verdict on a pending order group (shared/tracking/groups.ts). */
import { describe, expect, test } from 'vitest';
import { createSnapshot } from '../../shared/tracking/diff/creation.ts';
import { buildStep } from '../../shared/tracking/diff/step.ts';
import {
  type Group,
  isPartial,
  judgeGroup,
  judgePartial,
  type ListedMember,
  type MemberPhase,
  type RecordedState,
  toRecordedState,
  withMember,
} from '../../shared/tracking/groups.ts';
import { membershipChanges, type Work } from '../../shared/tracking/work.ts';
import { listed, responseAt } from '../support/decisions.ts';

const OUT = '2026-03-02T09:00:00Z';

function group(members: Record<number, MemberPhase>): Group {
  return {
    orderGroup: 'WEB-1',
    members: new Map(Object.entries(members).map(([job, phase]) => [Number(job), phase])),
    emitted: false,
    again: false,
    since: null,
    partial: null,
    tooLarge: false,
  };
}

/** The answer: dispatched jobs as positive numbers, others as negative ones. */
const answer = (...jobs: number[]): ListedMember[] =>
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
    expect(judged(known, [-1], 'dispatched')).toBe('unproven');
    expect(judged(known, [-1], 'history')).toBe('unproven');
    expect(judged(known, [-2])).toBe('unproven');
  });

  test('waits for a member whose dispatch the answer lacks, unless it has settled', () => {
    const members = { ...known, 3: 'dispatched' } as const;
    expect(judged(members, [1, -3], 'dispatched')).toBe('unproven');
    expect(judged(members, [1, -3], 'history', [3])).toBe('unproven');
    expect(judged(members, [1, -3], 'history')).toEqual(['complete', { ...known, 3: 'gone' }]);
  });

  test.each<[RecordedState, number, readonly number[], unknown]>([
    ['dispatched', 3, [], ['complete', { ...known, 3: 'dispatched' }]],
    ['history', 3, [], ['complete', { ...known, 3: 'dispatched' }]],
    ['history', 3, [3], 'unproven'],
    ['open', 3, [], ['open', { ...known, 3: 'open' }]],
    ['gone', 3, [], 'unproven'],
    ['unseen', 3, [], 'unproven'],
    ['dispatched', -3, [3], 'unproven'],
    ['history', -3, [3], 'unproven'],
    ['history', -3, [], ['complete', { ...known, 3: 'gone' }]],
    ['gone', -3, [], ['complete', { ...known, 3: 'gone' }]],
    ['open', -3, [], ['open', { ...known, 3: 'open' }]],
    ['unseen', -3, [3], 'unproven'],
  ])('a job that is no member: %s in the log, %d in the answer', (state, job, active, expected) => {
    expect(judged(known, [1, job], state, active)).toEqual(expected);
  });

  test('is not complete because of a dispatched job that joins it from another group without an event', () => {
    const stored = createSnapshot(3, listed({ orderGroup: 'G2' }), 0);
    const { emitted } = stored;
    const snapshot = {
      ...createSnapshot(3, listed({ orderGroup: 'G1' }), 1),
      emitted: { ...emitted, dateOut: OUT },
    };
    const base = { jobNumber: 3, entry: undefined, stored, observedStatuses: [], fingerprint: 0 };
    const join = (events: Work['events']) =>
      membershipChanges({ ...base, snapshot, events }).find(({ orderGroup }) => orderGroup === 'G1');
    expect(join([])).toMatchObject({ phase: 'dispatched', silent: true });
    const [dispatched] = buildStep(snapshot, responseAt(1), 0, [
      { type: 'job.dispatched', changes: {} } as never,
    ]).events;
    expect(join(dispatched ? [dispatched] : [])).toMatchObject({ phase: 'dispatched', silent: false });
  });

  test('is complete since the last change of an open or late member, not since another one left it', () => {
    const open = group({ 1: 'open', 2: 'gone' });
    expect(withMember(open, 1, 'dispatched', 5).since).toBe(5);
    expect(withMember(open, 1, undefined, 5).since).toBe(5);
    expect(withMember(open, 2, 'dispatched', 5).since).toBe(5);
    expect(withMember(open, 2, undefined, 5).since).toBeNull();
    const complete = group({ 1: 'dispatched', 2: 'dispatched' });
    for (const phase of ['gone', undefined] as const)
      expect(withMember({ ...complete, since: 3 }, 2, phase, 5).since).toBe(3);
  });

  test('does not get a job as a member before it is known whether the job is new', () => {
    const job = createSnapshot(3, listed(), 0);
    expect(toRecordedState({ ...job, unproven: 1 })).toBe('unseen');
    expect(toRecordedState(job)).toBe('open');
  });

  test('waits for the dispatch of an excluded member to be in the log, unless it never will be', () => {
    expect(judged(known, [1, 2], 'gone')).toBe('unproven');
    expect(judged(known, [1, 2], 'history')).toEqual(['complete', { 1: 'dispatched', 2: 'dispatched' }]);
  });
});

describe('a partially dispatched order group (rule 18)', () => {
  const none = group({});
  const members = (...changes: [number, MemberPhase | undefined, (number | null)?][]): Group =>
    changes.reduce((before, [job, phase, since = null]) => withMember(before, job, phase, since), none);

  test('is due while some known members are dispatched and others open', () => {
    expect(isPartial(members([1, 'open']))).toBe(false);
    expect(isPartial(members([1, 'dispatched']))).toBe(false);
    expect(isPartial(members([1, 'dispatched'], [2, 'gone']))).toBe(false);
    expect(isPartial(members([1, 'dispatched'], [2, 'open']))).toBe(true);
  });

  test('is not due after either event, or in a group that is too large', () => {
    const due = members([1, 'dispatched'], [2, 'open']);
    expect(isPartial({ ...due, partial: { since: null, done: true } })).toBe(false);
    expect(isPartial({ ...due, emitted: true })).toBe(false);
    expect(isPartial({ ...due, again: true })).toBe(false);
    expect(isPartial({ ...due, tooLarge: true })).toBe(false);
  });

  test('remembers the time before the first dispatch, until no member is dispatched', () => {
    expect(members([1, 'open', 5]).partial).toBeNull();
    const two = members([1, 'open', 5], [1, 'dispatched', 7], [2, 'dispatched', 9], [3, 'open', 11]);
    expect(two.partial).toEqual({ since: 7, done: false });
    const one = withMember({ ...two, partial: { since: 7, done: true } }, 1, 'open', 13);
    expect(one.partial).toEqual({ since: 7, done: true });
    expect(withMember(one, 2, undefined, 15).partial).toBeNull();
  });

  test('a dispatch after order_group.dispatched is never the first one', () => {
    for (const emitted of [{ emitted: true }, { again: true }]) {
      expect(withMember({ ...none, ...emitted }, 1, 'dispatched', 7).partial?.done).toBe(true);
    }
  });

  test('a group with an open member is not complete, whatever the answer contains', () => {
    expect(judged({ 1: 'dispatched', 2: 'open' }, [1])).toBe('unproven');
    expect(judged({ 1: 'dispatched', 2: 'open' }, [1, -2])).toEqual(['open', { 1: 'dispatched', 2: 'open' }]);
  });

  const known = { 1: 'dispatched', 2: 'open', 3: 'gone' } as const;
  const all = [1, 2, 3, 4];

  test.each<[string, readonly number[], readonly number[], object, unknown]>([
    ['the answer agrees', [1, -2, -3], all, {}, 'partial'],
    ['an excluded job is missing', [1, -2], all, {}, 'partial'],
    ['the open job is not in the list', [1, -2], [1, 3], {}, 'unproven'],
    ['the open job is missing', [1, -3], all, {}, 'unproven'],
    ['the open job is dispatched in the answer', [1, 2], all, {}, 'unproven'],
    ['the dispatched job is missing', [-2], all, {}, 'unproven'],
    ['one of two dispatched jobs is not', [1, -2, -4], all, { 4: 'dispatched' }, 'unproven'],
    ['one of two open jobs is not in the list', [1, -2, -4], [4], { 4: 'open' }, 'partial'],
  ])('%s', (_, jobs, listed, more, expected) => {
    const due = group({ ...known, ...more });
    expect(judgePartial(due, due, answer(...jobs), (job) => listed.includes(job))).toBe(expected);
  });

  test('a job that the answer adds as dispatched was dispatched earlier', () => {
    const after = group({ ...known, 4: 'dispatched' });
    expect(judgePartial(group(known), after, answer(1, -2, 4), () => true)).toBe('earlier');
  });
});
