/** Renamed statuses (shared/tracking/status-names.ts). */
import { describe, expect, test } from 'vitest';
import { createSnapshot } from '../../shared/tracking/diff/creation.ts';
import { summarize } from '../../shared/tracking/snapshot.ts';
import { StatusNames } from '../../shared/tracking/status-names.ts';
import { BASELINE, detail, detailed, list, listed, start, types } from '../support/decisions.ts';

const HOUR = 3_600_000;

type Lookup = Record<number, string | null>;

/** The names of an account after readings of the lookup, each in a poll of its own, an hour after the other. */
function names(...lookups: readonly Lookup[]): StatusNames {
  let head: ReturnType<StatusNames['takeChanges']> = {};
  for (const [hour, lookup] of lookups.entries()) {
    const statuses = new StatusNames(head, BASELINE + hour * HOUR);
    statuses.applyLookup(Object.entries(lookup).map(([id, name]) => ({ id: Number(id), name })));
    head = { ...head, ...statuses.takeChanges() };
  }
  return later(head, lookups.length - 1);
}

const later = (head: ConstructorParameters<typeof StatusNames>[0], hours: number) =>
  new StatusNames(head, BASELINE + hours * HOUR);

/** The name that an answer's entry with this status gets. */
const shown = (statuses: StatusNames, status: string) =>
  statuses.withCurrentName(listed({ masterJobStatus: status })).status;

/** The names that a stored snapshot gets whose views were observed at a time. */
function stored(statuses: StatusNames, status: string, hour: number) {
  const time = BASELINE + hour * HOUR;
  const view = listed({ masterJobStatus: status });
  const detail = detailed({ jobStatus: status, lines: [{ jobLineId: 1, jobLineStatus: status }] });
  const snapshot = { ...createSnapshot(1, view, time), detail, detailAt: time };
  const after = statuses.withCurrentNames(snapshot);
  return [after.list?.status, after.detail?.status, after.detail?.lines[0]?.status];
}

describe('a renamed status (rule 4)', () => {
  const renamed = () => names({ 1: 'A', 2: 'B' }, { 1: 'C', 2: 'B' });

  test('has its current name on both sides of a comparison', () => {
    expect(shown(renamed(), 'A')).toBe('C');
    expect(shown(renamed(), 'B')).toBe('B');
    expect(stored(renamed(), 'A', 0)).toEqual(['C', 'C', 'C']);
    expect(renamed().isFormer('A')).toBe(true);
    expect(renamed().isFormer('C')).toBe(false);
    expect(renamed().previousName('C')).toBe('A');
  });

  test('keeps its latest name through several renames, and back', () => {
    const twice = names({ 1: 'A' }, { 1: 'B' }, { 1: 'C' });
    expect([shown(twice, 'A'), shown(twice, 'B')]).toEqual(['C', 'C']);
    const back = names({ 1: 'A' }, { 1: 'B' }, { 1: 'A' });
    expect([shown(back, 'A'), shown(back, 'B')]).toEqual(['A', 'A']);
  });

  test.each<[string, Lookup[]]>([
    ['the former name belongs to another status', [{ 1: 'A' }, { 1: 'C', 2: 'A' }]],
    ['the new name belonged to another status', [{ 1: 'A', 2: 'C' }, { 1: 'C' }]],
  ])('is none if %s', (_, lookups) => {
    expect(shown(names(...lookups), 'A')).toBe('A');
  });

  test('is found although an answer in between omitted the status or its name', () => {
    expect(shown(names({ 1: 'A', 2: 'B' }, { 2: 'B' }, { 1: 'C', 2: 'B' }), 'A')).toBe('C');
    expect(shown(names({ 1: 'A' }, { 1: null }, { 1: 'C' }), 'A')).toBe('C');
  });

  test('ends when its former name is another status: then only older snapshots have the current name', () => {
    const ended = names({ 1: 'A' }, { 1: 'C' }, { 1: 'C', 2: 'A' });
    expect(shown(ended, 'A')).toBe('A');
    expect(stored(ended, 'A', 1)).toEqual(['C', 'C', 'C']);
    expect(stored(ended, 'A', 2)).toEqual(['A', 'A', 'A']);
    expect(ended.previousName('C')).toBeUndefined();
  });

  test('ends a day after the last answer of the lookup that confirms it', () => {
    const head = { renamedStatuses: [JSON.stringify(['A', 'C', BASELINE, null])] };
    expect(shown(later(head, 23), 'A')).toBe('C');
    expect(shown(later(head, 24), 'A')).toBe('A');
    expect(stored(later(head, 100), 'A', 23)).toEqual(['C', 'C', 'C']);
    expect(stored(later(head, 100), 'A', 24)).toEqual(['A', 'A', 'A']);
    const confirmed = later(head, 20);
    confirmed.applyLookup([{ id: 1, name: 'C' }]);
    expect(shown(later(confirmed.takeChanges() ?? {}, 43), 'A')).toBe('C');
  });

  test('is no second change of a job whose detail had not shown the status before the rename', () => {
    const before = { masterJobStatus: 'A' };
    const first = detail(start(before), { jobStatus: 'A' }, 1, before).snapshot;
    const changed = list(first, { masterJobStatus: 'B' }, 2);
    expect(types(changed)).toEqual(['job.status_changed']);
    const left = detail(changed.snapshot, { jobStatus: 'A' }, 3).snapshot;
    const renamedB = names({ 1: 'A', 2: 'B' }, { 1: 'A', 2: 'C' }).withCurrentNames(left);
    expect(summarize(renamedB).status).toBe('C');
    const next = detail(renamedB, { jobStatus: 'C' }, 20);
    expect([next, detail(next.snapshot, { jobStatus: 'C' }, 80)].flatMap(types)).toEqual([]);
  });

  test('is the status of which a job already needed attention', () => {
    const stay = { since: 1, attended: 'A' };
    expect(renamed().withCurrentNames({ ...start(), stay }).stay).toEqual({ since: 1, attended: 'C' });
  });

  test('writes nothing while nothing changes', () => {
    const statuses = later({ statusLookup: [JSON.stringify([1, 'A'])] }, 0);
    statuses.applyLookup([{ id: 1, name: 'A' }]);
    expect(statuses.takeChanges()).toBeUndefined();
  });
});
