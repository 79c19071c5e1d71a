/** Lines and comments of a job, which only its detail shows (rule 4). */
import { describe, expect, test } from 'vitest';
import type { Snapshot } from '../../shared/tracking/snapshot.ts';
import { detail, start, types } from '../support/decisions.ts';

const line = (jobLineId: number | null, fields: object = {}) => ({ jobLineId, quantity: 10, ...fields });
const summary = (jobLineId: number, quantity: number | null = 10, comments: string | null = null) => ({
  ...{ jobLineId, quantity, comments },
});

/** A listed job after its first detail. */
const read = (fields: object): Snapshot => detail(start(), fields, 1, {}).snapshot;

/** The changes of one detail after another, an hour later. */
function changed(before: object, after: object): unknown {
  const { events } = detail(read(before), after, 62, {});
  return events.map(({ type, data }) => [type, 'changes' in data && data.changes]);
}

const lines = (...given: object[]) => ({ lines: given });
const updated = (changes: object) => [['job.updated', changes]];

describe('lines of a job', () => {
  test('its first detail is no change', () => {
    const first = detail(start(), { comments: 'Rush', ...lines(line(1)) }, 1, {});
    expect(types(first)).toEqual([]);
    expect(first.snapshot.detail).toMatchObject({
      comments: 'Rush',
      lines: [{ jobLineId: 1, status: null, quantity: 10, comments: null }],
    });
    expect('supersededLines' in JSON.parse(JSON.stringify(first.snapshot))).toBe(false);
  });

  test('added, removed and changed lines are one job.updated', () => {
    const before = lines(line(1), line(2), line(3, { comments: 'Left' }), line(4));
    const after = lines(line(1), line(3, { comments: 'Right' }), line(4, { quantity: 12 }), line(5));
    expect(changed(before, after)).toEqual(
      updated({
        lines: {
          from: [summary(2), summary(3, 10, 'Left'), summary(4)],
          to: [summary(3, 10, 'Right'), summary(4, 12), summary(5)],
        },
      }),
    );
  });

  test.each<[string, object, object]>([
    ['another order', lines(line(1), line(2)), lines(line(2), line(1))],
    ['null lines', lines(line(1)), { lines: null }],
    ['no lines', lines(line(1)), lines()],
    ['a line without an id', lines(line(1), line(2)), lines(line(1), line(null))],
    ['a duplicate line', lines(line(1)), lines(line(1), line(1))],
    ['lines after none', { lines: null }, lines(line(1))],
    ['a quantity that is not given', lines(line(1)), lines(line(1, { quantity: null }))],
    ['a quantity given for the first time', lines(line(1, { quantity: null })), lines(line(1))],
    ['a comment that is not given', lines(line(1, { comments: 'Left' })), lines(line(1, { comments: null }))],
    ['an empty comment', lines(line(1)), lines(line(1, { comments: '' }))],
    ['a status', lines(line(1, { description: 'A' })), lines(line(1, { description: 'B' }))],
    [
      'a difference beyond the maximum length',
      lines(line(1, { comments: `${'x'.repeat(400)}a` })),
      lines(line(1, { comments: `${'x'.repeat(400)}b` })),
    ],
  ])('%s is no change', (_, before, after) => {
    expect(changed(before, after)).toEqual([]);
  });

  test('values that a detail omits stay known', () => {
    const before = read(lines(line(1, { comments: 'Left' }), line(2)));
    const silent = detail(before, { lines: null }, 62, {}).snapshot;
    expect(silent.detail?.lines).toEqual(before.detail?.lines);
    const partly = detail(before, lines(line(1, { quantity: null }), line(2)), 62, {}).snapshot;
    expect(partly.detail?.lines).toEqual(before.detail?.lines);
    expect(types(detail(partly, lines(line(1, { quantity: 11 }), line(2)), 124, {}))).toEqual([
      'job.updated',
    ]);
  });

  test('a comment is set, changed, and removed by an empty text', () => {
    expect(changed({}, { comments: 'Rush' })).toEqual(updated({ comments: { from: null, to: 'Rush' } }));
    expect(changed({ comments: 'A' }, { comments: 'B' })).toEqual(
      updated({ comments: { from: 'A', to: 'B' } }),
    );
    expect(changed({ comments: 'A' }, { comments: '' })).toEqual(
      updated({ comments: { from: 'A', to: null } }),
    );
    expect(changed({ comments: 'A' }, { comments: null })).toEqual([]);
    expect(changed({ comments: '' }, { comments: null })).toEqual([]);
    expect(changed(lines(line(1, { comments: 'A' })), lines(line(1, { comments: '' })))).toEqual(
      updated({ lines: { from: [summary(1, 10, 'A')], to: [summary(1)] } }),
    );
  });

  test('a status and a quantity of a line are two events, with the status of lines that stay', () => {
    const before = read(lines(line(1, { jobLineStatus: 'Proof' }), line(2, { jobLineStatus: 'Proof' })));
    const after = lines(line(1, { jobLineStatus: 'Press', quantity: 9 }), line(2));
    const step = detail(before, after, 62, {});
    expect(types(step)).toEqual(['job.updated', 'job.line_status_changed']);
    expect(step.snapshot.detail?.lines).toMatchObject([{ status: 'Press' }, { status: 'Proof' }]);
  });

  test('after the departure they do not replace an event of another type', () => {
    const { events } = detail(read({ comments: 'A' }), { comments: 'B', jobStatus: 'Packing' }, 62);
    expect(events.map(({ type, data }) => [type, 'changes' in data && data.changes])).toEqual([
      ...updated({ comments: { from: 'A', to: 'B' } }),
      ['job.status_changed', { status: { from: 'Proof', to: 'Packing' } }],
    ]);
  });

  test('after the departure they are in one job.updated with the other fields', () => {
    const before = read({ description: 'A', comments: 'A' });
    const { events } = detail(before, { description: 'B', comments: 'B' }, 62);
    expect(events).toMatchObject([
      {
        type: 'job.updated',
        data: { changes: { description: { from: 'A', to: 'B' }, comments: { from: 'A', to: 'B' } } },
      },
    ]);
  });

  test('a new job has no job.updated for its first lines', () => {
    const first = { ...start(), detail: null };
    expect(types(detail(first, { comments: 'Rush', ...lines(line(1)) }, 2, {}))).toEqual([]);
  });

  test('its evidence begins with the former detail', () => {
    const { events } = detail(read({ comments: 'A' }), { comments: 'B' }, 62, {});
    expect(events[0]?.data).toMatchObject({
      observed: { since: '2026-03-02T08:01:02.000Z', at: '2026-03-02T09:02:02.010Z', view: 'detail' },
    });
  });

  test('more than 200 lines: the others are only added and removed, and the event has at most 200', () => {
    const many = (count: number, quantity: number) =>
      Array.from({ length: count }, (_, n) => line(n + 1, { quantity }));
    const [[, changes]] = changed(lines(...many(250, 1)), lines(...many(251, 2))) as [[string, never]];
    const { from, to } = (changes as { lines: { from: object[]; to: object[] } }).lines;
    expect([from.length, to.length]).toEqual([200, 200]);
    expect(changed(lines(...many(250, 1)), lines(...many(251, 1)))).toEqual(
      updated({ lines: { from: [], to: [summary(251, null)] } }),
    );
    // Line 201 is now among the first 200.
    const [, ...rest] = many(250, 1);
    expect(changed(lines(...many(250, 1)), lines(...rest))).toEqual(
      updated({ lines: { from: [summary(1, 1)], to: [] } }),
    );
  });

  test('a line that is no longer among the first 200 is not changed, and has no stored quantity', () => {
    const [first, ...others] = Array.from({ length: 201 }, (_, n) => line(n + 1));
    const { snapshot, events } = detail(read(lines(...others)), lines(first ?? {}, ...others), 62, {});
    expect(events).toMatchObject([{ data: { changes: { lines: { from: [], to: [summary(1)] } } } }]);
    expect(snapshot.detail?.lines.at(-1)).toEqual({ jobLineId: 201, status: null });
  });

  test('lines that older code stored have unknown quantities and comments', () => {
    const before = read(lines(line(1), line(2)));
    const old = {
      ...before,
      detail: { ...before.detail, lines: [2, 1].map((jobLineId) => ({ jobLineId, status: null })) },
    } as unknown as Snapshot;
    const next = detail(old, lines(line(1, { comments: 'Left' }), line(2)), 62, {});
    expect(types(next)).toEqual([]);
    expect(types(detail(next.snapshot, lines(line(1), line(2, { quantity: 3 })), 124, {}))).toEqual([
      'job.updated',
    ]);
    expect(types(detail(old, lines(line(1)), 62, {}))).toEqual(['job.updated']);
  });
});

describe('a detail that is behind an earlier one', () => {
  const two = lines(line(1), line(2));
  const three = lines(line(1), line(2), line(3));

  test('is no removal and no addition within an hour of the change', () => {
    const { snapshot } = detail(read(two), three, 62, {});
    const behind = detail(snapshot, two, 121, {});
    expect(types(behind)).toEqual([]);
    expect(behind.snapshot.detail?.lines).toHaveLength(3);
    expect(types(detail(behind.snapshot, three, 122, {}))).toEqual([]);
  });

  test('an hour after the change it counts, since the detail before', () => {
    const { snapshot } = detail(read(two), three, 62, {});
    const behind = detail(snapshot, two, 100, {}).snapshot;
    const { events } = detail(behind, two, 122, {});
    expect(events).toMatchObject([
      {
        type: 'job.updated',
        data: {
          changes: { lines: { from: [summary(3)], to: [] } },
          observed: { since: '2026-03-02T09:02:02.000Z' },
        },
      },
    ]);
  });

  test('each of several states within the hour is known; one it never showed counts at once', () => {
    const states = ['A', 'B', 'C', 'D'].map((comments) => ({ comments, ...two }));
    let snapshot = read(two);
    for (const [n, state] of states.entries()) snapshot = detail(snapshot, state, 62 + n, {}).snapshot;
    for (const state of [two, ...states.slice(0, 3)]) {
      expect(
        types(detail(snapshot, { ...state, comments: 'comments' in state ? state.comments : '' }, 70, {})),
      ).toEqual([]);
    }
    expect(types(detail(snapshot, { comments: 'E', ...two }, 70, {}))).toEqual(['job.updated']);
  });

  test('a third quantity within the hour counts at once', () => {
    let { snapshot } = detail(read(two), lines(line(1), line(2, { quantity: 11 })), 62, {});
    const third = detail(snapshot, lines(line(1), line(2, { quantity: 12 })), 63, {});
    expect(types(third)).toEqual(['job.updated']);
    ({ snapshot } = third);
    expect(types(detail(snapshot, lines(line(1), line(2, { quantity: 11 })), 64, {}))).toEqual([]);
  });

  test('keeps at most eight states, of the last hour before a change', () => {
    let snapshot = read(two);
    for (let n = 0; n < 12; n += 1) snapshot = detail(snapshot, { comments: `${n}` }, 62 + n, {}).snapshot;
    expect(snapshot.supersededLines).toHaveLength(8);
    snapshot = detail(snapshot, { comments: 'later' }, 200, {}).snapshot;
    expect(snapshot.supersededLines).toHaveLength(1);
  });

  test('does not change the statuses of the lines', () => {
    const printing = lines(line(1, { quantity: 10, jobLineStatus: 'Printing' }));
    const packed = lines(line(1, { quantity: 12, jobLineStatus: 'Packed' }));
    const changed = detail(read(printing), packed, 62, {});
    expect(types(changed)).toEqual(['job.updated', 'job.line_status_changed']);
    const behind = detail(changed.snapshot, printing, 63, {});
    expect([types(behind), behind.snapshot.detail?.lines]).toEqual([[], changed.snapshot.detail?.lines]);
    expect(types(detail(behind.snapshot, packed, 64, {}))).toEqual([]);
    expect(types(detail(behind.snapshot, printing, 122, {}))).toEqual([
      'job.updated',
      'job.line_status_changed',
    ]);
  });
});
