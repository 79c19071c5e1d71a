/** Decisions about due soon and stalled jobs, stays, attention and the start of production (shared/tracking/diff/*). */
import { describe, expect, test } from 'vitest';
import { compareCancelable } from '../../shared/tracking/diff/production.ts';
import { followStay } from '../../shared/tracking/diff/status.ts';
import type { EventRules, ObservationContext } from '../../shared/tracking/diff/step.ts';
import { checkTimers, findNextTimer, findZoneTime } from '../../shared/tracking/diff/timers.ts';
import type { Snapshot } from '../../shared/tracking/snapshot.ts';
import { addWorkingDays, toLateness } from '../../shared/tracking/timestamps.ts';
import {
  at,
  beforeBaseline,
  checked,
  detailed,
  detailedAt,
  iso,
  knownAt,
  list,
  listEntry,
  listed,
  listedAt,
  MINUTE,
  polls,
  responseAt,
  start,
  types,
} from '../support/decisions.ts';

const HOUR = 60 * MINUTE;
const DAY = 24 * HOUR;

const rules = (more: Partial<EventRules> = {}): EventRules => ({
  dueSoonMs: null,
  stalledAfter: () => null,
  needsAttention: (status) => status === 'On hold',
  timers: 'a',
  ...more,
});
const known = (time: number, more?: Partial<EventRules>): ObservationContext => ({
  ...knownAt(time),
  rules: rules(more),
});
const check = (snapshot: Snapshot, time: number, more?: Partial<EventRules>) =>
  checked(checkTimers(snapshot, responseAt(time), known(time, more)));
/** A job of the baseline whose timers were checked before. */
const job = (fields: object): Snapshot => ({ ...start(fields), timers: 'a' });

describe('job.due_soon', () => {
  const due = at(0) + 3 * DAY;
  const soon = { dueSoonMs: DAY };
  const open = job({ dateDue: iso(due) });

  test('is emitted after the lead time began and not after the due time', () => {
    expect(types(check(open, due - DAY, soon))).toEqual([]);
    const step = check(open, due - DAY + 1, soon);
    expect(step.events).toMatchObject([
      { type: 'job.due_soon', data: { dueAt: iso(due), observed: { since: iso(due - DAY) } } },
    ]);
    expect(types(check(step.snapshot, due, soon))).toEqual([]);
    expect(types(check(open, due, soon))).toEqual(['job.due_soon']);
    expect(types(check(open, due + 1, soon))).toEqual(['job.overdue']);
  });

  test('is not emitted before the baseline, nor when the settings changed, and not later either', () => {
    const before = { ...known(due - HOUR, soon), baselineStartedAt: null };
    for (const first of [
      checkTimers(open, responseAt(due - HOUR), before),
      check({ ...open, timers: 'b' }, due - HOUR, soon),
    ]) {
      expect(first.events).toEqual([]);
      expect(first.snapshot).toMatchObject({ timers: 'a', emitted: { dueSoonFor: iso(due) } });
      expect(types(check(first.snapshot, due - MINUTE, soon))).toEqual([]);
    }
    expect(check(open, due - HOUR, { timers: '' }).snapshot).not.toHaveProperty('timers');
  });

  test('is emitted at its time after a change of the settings, unless it was emitted before', () => {
    const later = { dueSoonMs: HOUR, timers: 'c' };
    const silent = check({ ...open, timers: 'b' }, due - DAY + 1, soon).snapshot;
    expect(silent.silent).toEqual({ dueSoonFor: iso(due) });
    const changed = check(silent, due - DAY + 2, later);
    expect([types(changed), changed.snapshot.emitted]).toEqual([[], open.emitted]);
    expect(changed.snapshot).not.toHaveProperty('silent');
    expect(types(check(changed.snapshot, due - HOUR + 1, later))).toEqual(['job.due_soon']);
    // Emitted.
    const emitted = check(open, due - DAY + 1, soon).snapshot;
    expect(emitted).not.toHaveProperty('silent');
    const kept = check(emitted, due - DAY + 2, later).snapshot;
    expect(kept.emitted.dueSoonFor).toBe(iso(due));
    expect(types(check(kept, due - HOUR + 1, later))).toEqual([]);
    // Emitted for the due date that was only marked before, and a mark of the stay that stays.
    const again = { ...open, silent: { dueSoonFor: iso(due), stalledSince: 5 } };
    const last = check(again, due - DAY + 1, soon).snapshot;
    expect(last.silent).toEqual({ stalledSince: 5 });
    expect(check(last, due - DAY + 2, later).snapshot.emitted.dueSoonFor).toBe(iso(due));
  });

  test('sets the next check of a job, until it was emitted', () => {
    expect(findNextTimer(open, rules(soon))).toBe(due - DAY);
    expect(findNextTimer(open, rules())).toBe(due);
    expect(findNextTimer(open, undefined)).toBe(due);
    expect(findNextTimer(check(open, due - HOUR, soon).snapshot, rules(soon))).toBe(due);
    expect(findNextTimer(job({}), rules(soon))).toBeUndefined();
    expect(findNextTimer(job({ dateDue: iso(due), dateOut: iso(at(0)) }), rules(soon))).toBeUndefined();
  });

  test('needs the zone of a job from the earliest possible time on', () => {
    const local = job({ dateDue: '2026-03-10T17:00:00' });
    const earliest = Date.parse('2026-03-10T03:00:00Z');
    expect(findZoneTime(local, undefined)).toBe(earliest);
    expect(findZoneTime(local, rules(soon))).toBe(earliest - DAY);
    expect(findNextTimer(local, rules(soon))).toBe(earliest - DAY);
    expect(findZoneTime(open, rules(soon))).toBeUndefined();
    // Then it is not certain that the time has not passed.
    const silent = check({ ...local, timers: 'b' }, earliest - DAY + 1, soon);
    expect(silent.snapshot.emitted.dueSoonFor).toBe('2026-03-10T17:00:00');
    expect(check(local, earliest - DAY + 1, soon).snapshot.emitted).not.toHaveProperty('dueSoonFor');
  });

  test('waits for the due time in UTC−12 while the detail with the zone is owed', () => {
    const owed = { ...job({ dateDue: '2026-03-10T17:00:00' }), owed: { at: at(0), tries: 0 } };
    const latest = Date.parse('2026-03-11T05:00:00Z');
    expect(findNextTimer(owed, undefined)).toBe(latest);
    expect(findNextTimer(owed, rules(soon))).toBe(latest - DAY);
  });

  test('is neither emitted nor marked without a lead time', () => {
    const step = check(open, due + 1);
    expect(types(step)).toEqual(['job.overdue']);
    expect(step.snapshot.emitted).not.toHaveProperty('dueSoonFor');
    expect(findNextTimer(step.snapshot, rules())).toBeUndefined();
  });
});

describe('job.stalled', () => {
  const stalled = { stalledAfter: (status: string) => (status === 'Proof' ? 1 : null) };
  const zone = { ...detailed(), timezone: 'UTC' };
  const since = listedAt(0) + 10;
  const open: Snapshot = { ...job({}), detail: zone };

  test('is emitted once after the working days of the status', () => {
    expect(open.stay).toEqual({ since });
    expect(findNextTimer(open, rules(stalled))).toBe(since + DAY);
    expect(types(check(open, since + DAY, stalled))).toEqual([]);
    const step = check(open, since + DAY + 1, stalled);
    expect(step.events).toMatchObject([
      {
        type: 'job.stalled',
        data: { status: 'Proof', inStatusSince: iso(since), workingDays: 1, zone: 'UTC' },
      },
    ]);
    expect(step.snapshot.stay).toEqual({ since, stalled: true });
    expect(findNextTimer(step.snapshot, rules(stalled))).toBeUndefined();
    expect(types(check(step.snapshot, since + 9 * DAY, stalled))).toEqual([]);
  });

  test('keeps the mark of a status that needs attention', () => {
    const marked = { ...open, stay: { since, attention: true } } as const;
    expect(check(marked, since + DAY + 1, stalled).snapshot.stay).toEqual({ ...marked.stay, stalled: true });
  });

  test('is only marked if the settings changed, and not emitted without a status, a limit or after dispatch', () => {
    const silent = check({ ...open, timers: 'b' }, since + 2 * DAY, stalled);
    expect([silent.events, silent.snapshot.stay]).toEqual([[], { since, stalled: true }]);
    for (const fields of [{ masterJobStatus: null }, { masterJobStatus: 'Other' }, { dateOut: iso(at(0)) }])
      expect(types(check({ ...job(fields), detail: zone }, since + 9 * DAY, stalled))).toEqual([]);
  });

  test('is emitted at its time after a change of the settings, unless it was emitted before', () => {
    const later = { stalledAfter: () => 2, timers: 'c' };
    const marked = { ...open, timers: 'b', stay: { since, attention: true } } as const;
    const silent = check(marked, since + DAY + 1, stalled).snapshot;
    expect(silent.silent).toEqual({ stalledSince: since });
    const changed = check(silent, since + DAY + 2, later);
    expect([types(changed), changed.snapshot.stay]).toEqual([[], marked.stay]);
    expect(changed.snapshot).not.toHaveProperty('silent');
    expect(types(check(changed.snapshot, since + 2 * DAY + 1, later))).toEqual(['job.stalled']);
    // Emitted, also if an earlier stay was only marked.
    for (const earlier of [{}, { silent: { stalledSince: since - DAY } }]) {
      const emitted = check({ ...open, ...earlier }, since + DAY + 1, stalled);
      expect(types(emitted)).toEqual(['job.stalled']);
      const kept = check(emitted.snapshot, since + DAY + 2, later).snapshot;
      expect(kept.stay).toEqual({ since, stalled: true });
    }
    const { stay: _, ...unknown } = open;
    expect(check({ ...unknown, timers: 'b' }, since + DAY + 1, stalled).snapshot).not.toHaveProperty('stay');
  });

  test('is not emitted for a job that has no status now, or that the list never contained', () => {
    const always = { stalledAfter: () => 1 };
    const silent = { ...job({ masterJobStatus: null }), detail: zone, stay: { since } };
    for (const snapshot of [silent, { ...open, list: null }]) {
      expect(findNextTimer(snapshot, rules(always))).toBeUndefined();
      expect(types(check(snapshot, since + 9 * DAY, always))).toEqual([]);
    }
    expect(types(check(open, since + 9 * DAY, always))).toEqual(['job.stalled']);
  });

  test('is not emitted for a job of which either view has shown a dispatch', () => {
    const dateOut = iso(at(0));
    const inList = { ...open, list: listed({ dateOut }) };
    const inDetail = { ...open, emitted: { ...open.emitted, dateOut } };
    for (const snapshot of [inList, inDetail])
      expect(types(check(snapshot, since + 9 * DAY, stalled))).toEqual([]);
  });

  test('counts the working days in UTC−12 while the zone is unknown', () => {
    // Friday at 08:00 UTC is still Thursday there.
    const friday = Date.parse('2026-03-06T08:00:00Z');
    const first: Snapshot = { ...job({}), stay: { since: friday } };
    expect(findNextTimer(first, rules(stalled))).toBe(friday + DAY);
    expect(findNextTimer({ ...first, detail: zone }, rules(stalled))).toBe(friday + 3 * DAY);
    expect(check(first, friday + DAY + 1, stalled).events).toMatchObject([
      { type: 'job.stalled', data: { zone: '-12:00' } },
    ]);
  });

  test('a stay begins with a status, and continues with other changes', () => {
    const next = (snapshot: Snapshot, fields: object, returns = false) =>
      followStay(snapshot, listed(fields), responseAt(at(9)), returns);
    const anew = { since: at(9) + 10 };
    expect(next(open, { description: 'x' })).toEqual({ since });
    expect(next(open, { masterJobStatus: 'Other' })).toEqual(anew);
    expect(next(open, {}, true)).toEqual(anew);
    expect(next({ ...open, list: null }, {})).toEqual(anew);
    const { stay: _, ...older } = open;
    expect(next(older, {})).toEqual({ since: older.listAt });
    expect(next({ ...older, heldBack: true }, {})).toEqual(anew);
    expect(start({ masterJobStatus: null })).not.toHaveProperty('stay');
  });
});

test('the passing of time observes no status names', () => {
  const settings = { dueSoonMs: DAY, stalledAfter: () => 1 };
  const due = at(0) + 5 * DAY;
  for (const snapshot of [job({ dateDue: iso(due) }), job({}), start({})])
    for (const time of [at(1), due - HOUR, due + 1])
      expect(check(snapshot, time, settings).observedStatuses).toEqual([]);
});

describe('job.needs_attention', () => {
  test('follows a change to such a status, with its evidence', () => {
    const { events } = list(start(), { masterJobStatus: 'On hold' }, 3, known(at(3)));
    expect(events.map(({ type }) => type)).toEqual(['job.status_changed', 'job.needs_attention']);
    expect(events[1]?.data).toMatchObject({
      status: 'On hold',
      observed: { since: iso(at(2)), view: 'list' },
    });
    expect(types(list(start(), { masterJobStatus: 'Other' }, 3, known(at(3))))).toEqual([
      'job.status_changed',
    ]);
    expect(types(list(start(), { masterJobStatus: 'On hold' }, 3))).toEqual(['job.status_changed']);
  });

  test('the first status counts only of a job that has had none since its creation', () => {
    const none = start({ masterJobStatus: null });
    const first = (snapshot: Snapshot) => list(snapshot, { masterJobStatus: 'On hold' }, 3, known(at(3)));
    expect(types(first(none))).toEqual([]);
    expect(first({ ...none, stay: { since: 1 } }).events).toMatchObject([
      { type: 'job.needs_attention', data: { observed: { since: iso(at(2)) } } },
    ]);
    const moved = { masterJobStatus: 'On hold', description: 'x' };
    expect(types(list({ ...none, stay: { since: 1 } }, moved, 3, known(at(3))))).toEqual([
      'job.updated',
      'job.status_changed',
      'job.needs_attention',
    ]);
  });
});

describe('job.production_started', () => {
  const was = (isCancelable: boolean | null, more: Partial<Snapshot> = {}): Snapshot => ({
    ...start(),
    detail: { ...detailed(), isCancelable },
    detailAt: detailedAt(0),
    ...more,
  });
  const next = (isCancelable: boolean | null, canEdit: boolean | null = true) => ({
    ...detailed(),
    ...{ isCancelable, canEdit },
  });
  const compare = (
    snapshot: Snapshot,
    view: ReturnType<typeof next>,
    minutes: number,
    {
      repeated = [],
      delisted = false,
      dispatched = false,
      found = false,
    }: { repeated?: readonly 'status'[]; delisted?: boolean; dispatched?: boolean; found?: boolean } = {},
  ) => {
    const response = responseAt(detailedAt(minutes), 'detail');
    const shown = listEntry({}, minutes);
    const entry = found ? { ...shown, response: { ...shown.response, view: 'search' as const } } : shown;
    return compareCancelable(
      snapshot,
      view,
      { repeated },
      delisted ? undefined : entry,
      response,
      dispatched,
    );
  };
  const started = [{ type: 'job.production_started', changes: { isCancelable: { from: true, to: false } } }];

  test('needs a later detail: an hour younger, or with a value that the list has shown', () => {
    expect(compare(was(true), next(false), 60)).toEqual({
      isCancelable: false,
      kept: false,
      events: started,
    });
    expect(compare(was(true), next(false), 59)).toEqual({
      ...{ isCancelable: true, kept: true, events: [] },
      lockedInAt: detailedAt(59),
    });
    expect(compare(was(true), next(false), 1, { repeated: ['status'] }).events).toEqual(started);
  });

  test('needs an open job: editable, or listed an hour after the first such detail', () => {
    const first = compare(was(true), next(false, false), 60);
    expect(first).toEqual({ isCancelable: true, kept: true, lockedInAt: detailedAt(60), events: [] });
    // Found only by a search after the detail, it may have been closed in between.
    expect(compare(was(true), next(false), 60, { found: true })).toEqual(first);
    const pending = was(true, { lockedInAt: detailedAt(60) });
    expect(compare(pending, next(false), 120, { found: true })).toEqual(first);
    expect(compare(pending, next(false, null), 119)).toEqual(first);
    expect(compare(pending, next(false, null), 120).events).toEqual(started);
    expect(compare(pending, next(null), 120)).toEqual(first);
    expect(compare(pending, next(true), 120)).toEqual({ isCancelable: true, kept: false, events: [] });
    for (const end of [{ delisted: true }, { dispatched: true }])
      expect(compare(was(true), next(false), 60, end)).toEqual({
        isCancelable: false,
        kept: false,
        events: [],
      });
  });

  test('needs both values, and starts again only after a later detail with true', () => {
    expect(compare(was(null), next(false), 60)).toEqual({ isCancelable: false, kept: false, events: [] });
    expect(compare(was(false), next(false), 60).events).toEqual([]);
    expect(compare(was(false), next(true), 59)).toEqual({ isCancelable: false, kept: true, events: [] });
    expect(compare(was(false), next(true), 60)).toEqual({ isCancelable: true, kept: false, events: [] });
    expect(compare(was(null), next(null), 60)).toMatchObject({ isCancelable: null, events: [] });
  });
});

test.each([
  ['2026-03-02T10:00:00Z', 1, 'UTC', '2026-03-03T10:00:00Z'],
  ['2026-03-05T10:00:00Z', 2, 'UTC', '2026-03-09T10:00:00Z'],
  ['2026-03-07T10:00:00Z', 1, 'UTC', '2026-03-10T00:00:00Z'],
  ['2026-03-08T23:00:00Z', 1, 'UTC', '2026-03-10T00:00:00Z'],
  ['2026-03-06T10:00:00Z', 5, 'UTC', '2026-03-13T10:00:00Z'],
  // Clocks change on Sunday.
  ['2026-03-06T17:00:00Z', 1, 'America/Denver', '2026-03-09T16:00:00Z'],
  ['2026-03-06T11:00:00Z', 1, 'Pacific/Auckland', '2026-03-09T11:00:00Z'],
  ['2026-03-06T10:00:00Z', 1, null, '2026-03-07T10:00:00Z'],
  ['2026-03-07T12:00:00Z', 1, 'Nowhere/Land', '2026-03-10T12:00:00Z'],
  ['2026-03-07T12:00:00Z', 1, 'constructor', '2026-03-10T12:00:00Z'],
])('%s and %d working days in %s are %s', (since, days, zone, end) => {
  expect(iso(addWorkingDays(Date.parse(since), days, zone).at)).toBe(iso(Date.parse(end)));
});

test.each([
  ['2026-03-03T17:00:00Z', '2026-03-03T17:00:00Z', null, false, null],
  ['2026-03-03T17:00:01Z', '2026-03-03T17:00:00Z', null, true, 1],
  ['2026-03-04', '2026-03-03', null, true, 0],
  ['2026-03-03', '2026-03-03', null, false, null],
  ['2026-03-03', '2026-03-03T17:00:00', null, null, null],
  ['2026-03-04T05:00:00Z', '2026-03-03', null, null, null],
  ['2026-03-04T05:00:00Z', '2026-03-03', 'Europe/Berlin', true, 21_600],
  ['soon', '2026-03-03', 'UTC', null, null],
  [null, '2026-03-03', 'UTC', null, null],
  ['2026-03-03', null, 'UTC', null, null],
])('a dispatch at %s, due %s, zone %s', (done, due, zone, late, lateBySeconds) => {
  expect(toLateness(done, due, zone)).toEqual({ late, lateBySeconds });
});

test('without rules, and before the baseline, no configured event is emitted', () => {
  const { events } = polls({}, { masterJobStatus: 'On hold' });
  expect(events.flat().map(({ type }) => type)).toEqual(['job.status_changed']);
  expect(types(list(undefined, { masterJobStatus: 'On hold' }, 0, beforeBaseline(at(0))))).toEqual([]);
});
