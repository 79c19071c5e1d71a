/** State of a job between observations: its stay in a status, its timers, and undecided values (shared/tracking/diff.ts). */
import { describe, expect, test } from 'vitest';
import type { EventRules, ObservationContext } from '../../shared/tracking/diff/step.ts';
import { checkTimers } from '../../shared/tracking/diff/timers.ts';
import { applyDetail } from '../../shared/tracking/diff.ts';
import type { Snapshot } from '../../shared/tracking/snapshot.ts';
import {
  at,
  BASELINE,
  checked,
  detail,
  detailed,
  detailedAt,
  iso,
  knownAt,
  list,
  listEntry,
  listedAt,
  MINUTE,
  parcel,
  responseAt,
  start,
  types,
} from '../support/decisions.ts';

const HOUR = 60 * MINUTE;

/** All statuses with this name need attention; a job is due soon a day before. */
const rules: EventRules = {
  dueSoonMs: 24 * HOUR,
  stalledAfter: () => null,
  needsAttention: (status) => status === 'On hold',
  timers: 'a',
};
const ruled = (time: number, more: Partial<EventRules> = {}): ObservationContext => ({
  ...knownAt(time),
  rules: { ...rules, ...more },
});
/** As in `detail` of the helpers, for an account with rules. */
const read = (before: Snapshot, fields: object, poll: number, shown?: object, more?: Partial<EventRules>) => {
  const response = responseAt(detailedAt(poll), 'detail');
  const entry = shown && listEntry(shown, poll);
  return checked(applyDetail(before, detailed(fields), entry, response, ruled(at(poll), more)));
};
/** A job that is first listed after the baseline. */
const appeared = (fields: object, poll: number): Snapshot =>
  list(undefined, fields, poll, ruled(at(poll))).snapshot;
const created = { dateIn: iso(at(5)) };
const hidden = { dateIn: '2026-02-01T08:00:00Z' };
const noStatus = { masterJobStatus: null };
const onHold = { masterJobStatus: 'On hold' };

/** An old job that only a sweep found: the active list never contained it. */
const swept = (): Snapshot => {
  const { stay: _, timers: __, ...found } = appeared({}, 5);
  return { ...found, list: null, listAt: 0, departure: { tries: 0, suspected: null } };
};

describe('a stay in a status (rule 20)', () => {
  const since = (poll: number) => ({ since: listedAt(poll) + 10 });

  test('continues when another field of the job changes, and at every detail', () => {
    const job = start();
    expect(job.stay).toEqual(since(0));
    expect(list(job, { description: 'x' }, 1).snapshot.stay).toEqual(since(0));
    expect(detail(job, {}, 1, {}).snapshot.stay).toEqual(since(0));
    expect(detail(job, { jobStatus: 'Press' }, 1, {}).snapshot.stay).toEqual(since(0));
  });

  test('begins when the job returns to the list, also if its detail could not be read since its departure', () => {
    const left = detail(start(), {}, 1).snapshot;
    for (const gone of [left, { ...left, detail: null, detailPending: true } as const]) {
      expect(list(gone, {}, 9).snapshot.stay).toEqual(since(9));
    }
  });

  test('of a new job begins with its first list entry', () => {
    expect(detail(appeared({}, 5), created, 6, {}).snapshot.stay).toEqual(since(5));
  });

  test('of a job that was only hidden begins with its first list entry, if that has a status', () => {
    expect(detail(appeared({}, 5), hidden, 6, {}).snapshot.stay).toEqual(since(5));
  });

  test('is unknown of an old job without a status, so that its first status needs no attention', () => {
    for (const silent of [start(noStatus), detail(appeared(noStatus, 5), hidden, 6, noStatus).snapshot]) {
      expect(silent).not.toHaveProperty('stay');
      const changed = list(silent, { ...noStatus, description: 'x' }, 7).snapshot;
      expect(changed).not.toHaveProperty('stay');
      const again = detail(changed, {}, 8, noStatus).snapshot;
      expect(again).not.toHaveProperty('stay');
      expect(types(list(again, { ...onHold, description: 'x' }, 9, ruled(at(9))))).toEqual([]);
    }
  });

  test('is unknown of an old job that was never listed, until it is listed', () => {
    const found = detail(swept(), hidden, 6);
    expect(types(found)).toEqual([]);
    expect(found.snapshot).not.toHaveProperty('stay');
    const back = list(found.snapshot, onHold, 7, ruled(at(7)));
    expect(types(back)).toEqual([]);
    expect(back.snapshot.stay).toEqual(since(7));
  });
});

describe('job.needs_attention', () => {
  test('follows the creation in such a status, with its evidence', () => {
    const { events } = read(appeared(onHold, 6), created, 6, onHold);
    expect(events).toMatchObject([
      { type: 'job.created', data: { observed: { since: iso(at(5)) } } },
      { type: 'job.needs_attention', data: { status: 'On hold', observed: { since: iso(at(5)) } } },
    ]);
  });

  test('follows a creation of which no earlier time is known', () => {
    const localDate = { dateIn: '2026-03-01T20:00:00' };
    expect(read(appeared(onHold, 6), localDate, 6, onHold).events).toMatchObject([
      { type: 'job.created', data: { observed: { since: null } } },
      { type: 'job.needs_attention', data: { observed: { since: null } } },
    ]);
  });

  test('follows no creation without a status, whatever statuses are configured', () => {
    const any = { needsAttention: () => true };
    const first = appeared(noStatus, 6);
    expect(types(read(first, { ...created, jobStatus: null }, 6, noStatus, any))).toEqual(['job.created']);
  });

  test('is not repeated while the status stays', () => {
    const next = list(start(onHold), { ...onHold, description: 'x' }, 1, ruled(at(1)));
    expect(types(next)).toEqual(['job.updated']);
  });

  test('follows the first status of a new job that had none', () => {
    const job = read(appeared(noStatus, 5), { ...created, jobStatus: null }, 6, noStatus).snapshot;
    expect(types(list(job, onHold, 7, ruled(at(7))))).toEqual(['job.needs_attention']);
    // Once, if it is also a change.
    const changed = list(job, { ...onHold, description: 'x' }, 7, ruled(at(7)));
    expect(types(changed)).toEqual(['job.updated', 'job.status_changed', 'job.needs_attention']);
  });

  test('follows the first status of a new job that left the list without one and returns with it', () => {
    const job = read(appeared(noStatus, 5), { ...created, jobStatus: null }, 6, noStatus).snapshot;
    const left = read(job, { ...created, jobStatus: 'On hold' }, 7);
    expect(types(left)).toEqual([]);
    const back = list(left.snapshot, { ...onHold, description: 'x' }, 8, ruled(at(8)));
    expect(types(back)).toEqual(['job.updated', 'job.needs_attention']);
  });
});

describe('a job whose detail showed a status for attention before its list entry', () => {
  const attention = (events: readonly { type: string }[]) =>
    events.filter(({ type }) => type === 'job.needs_attention').length;

  test('is reported once, when the list shows the status later', () => {
    const job = read(appeared(noStatus, 5), { ...created, jobStatus: 'On hold' }, 6, noStatus);
    expect(attention(job.events)).toBe(0);
    const listed = list(job.snapshot, onHold, 7, ruled(at(7)));
    expect(attention(listed.events)).toBe(1);
  });

  test('is reported once, also if it left the list and returns with the status', () => {
    const left = read(appeared(noStatus, 5), { ...created, jobStatus: 'On hold' }, 6);
    expect(attention(left.events)).toBe(1);
    const back = list(left.snapshot, { ...onHold, description: 'x' }, 8, ruled(at(8)));
    expect(attention(back.events)).toBe(0);
  });

  test('is reported again for another status', () => {
    const left = read(appeared(noStatus, 5), { ...created, jobStatus: 'Awaiting artwork' }, 6);
    const back = list(left.snapshot, { ...onHold, description: 'x' }, 8, ruled(at(8)));
    expect(attention(back.events)).toBe(1);
  });
});

describe('the timers of a job that was not there before (rule 20)', () => {
  const dateDue = iso(at(0) + 20 * HOUR);
  const time = at(0) + 12 * HOUR;

  test('a new job that is due within the lead time has job.due_soon', () => {
    const first = appeared({ dateDue }, 5);
    expect(first.timers).toBe('a');
    const { snapshot } = read(first, { ...created, dateDue }, 5, { dateDue });
    expect(types(checkTimers(snapshot, responseAt(time), ruled(time)))).toEqual(['job.due_soon']);
  });

  test('a job without configured times has no fingerprint of them', () => {
    expect(list(undefined, {}, 5, ruled(at(5), { timers: '' })).snapshot).not.toHaveProperty('timers');
    expect(list(undefined, {}, 5).snapshot).not.toHaveProperty('timers');
  });

  test('a job that was only hidden and is due within the lead time has none', () => {
    const { snapshot, events } = read(appeared({ dateDue }, 5), { ...hidden, dateDue }, 5, { dateDue });
    expect(events).toEqual([]);
    expect(types(checkTimers(snapshot, responseAt(time), ruled(time)))).toEqual([]);
  });
});

describe('the start of production, from detail to detail (rule 21)', () => {
  const cancelable = { isCancelable: true };
  const locked = { isCancelable: false, permissions: { canEdit: false } };
  const first = () => detail(start(), cancelable, 1, {}).snapshot;

  test('nothing is undecided as long as the job can be cancelled', () => {
    expect(first()).not.toHaveProperty('lockedInAt');
    expect(detail(first(), cancelable, 2, {}).snapshot).not.toHaveProperty('lockedInAt');
  });

  test('is undecided from the first detail that shows the job as not cancelable, and emitted an hour later', () => {
    const undecided = detail(first(), locked, 70, {});
    expect(types(undecided)).toEqual([]);
    expect(undecided.snapshot.lockedInAt).toBe(detailedAt(70));
    const still = detail(undecided.snapshot, locked, 100, {});
    expect(types(still)).toEqual([]);
    expect(still.snapshot.lockedInAt).toBe(detailedAt(70));
    const decided = detail(still.snapshot, locked, 130, {});
    expect(types(decided)).toEqual(['job.production_started']);
    expect(decided.snapshot).not.toHaveProperty('lockedInAt');
  });

  test('needs a detail an hour after the last one with true, also if that one shows other values than the list', () => {
    const shown = { description: 'A', masterJobStatus: 'Proof' };
    const same = { description: 'A', ...cancelable };
    const before = detail(start(shown), same, 1, shown).snapshot;
    for (const apart of [
      { ...same, description: 'B' },
      { ...same, jobStatus: null },
    ]) {
      const last = detail(before, apart, 70, shown).snapshot;
      expect([last.detailAt, last.cancelableAt]).toEqual([detailedAt(1), detailedAt(70)]);
      const locked = { ...apart, isCancelable: false, permissions: { canEdit: true } };
      const undecided = detail(last, locked, 100, shown);
      expect(undecided.snapshot.cancelableAt).toBe(detailedAt(70));
      expect([undecided, detail(undecided.snapshot, locked, 130, shown)].map(types)).toEqual([
        [],
        ['job.production_started'],
      ]);
      expect(detail(last, same, 140, shown).snapshot.cancelableAt).toBeUndefined();
    }
  });

  test('is not emitted if the job can be cancelled again meanwhile', () => {
    const undecided = detail(first(), locked, 70, {}).snapshot;
    const free = detail(undecided, cancelable, 140, {});
    expect(types(free)).toEqual([]);
    expect(free.snapshot).not.toHaveProperty('lockedInAt');
  });
});

describe('a dispatch before the baseline that only the first detail shows (rule 4)', () => {
  const old = { dateOut: iso(BASELINE - 16 * MINUTE), shippingAddresses: [parcel('A')] };
  const recent = { ...old, dateOut: iso(BASELINE - 15 * MINUTE) };

  test('causes no event, and neither do its parcels', () => {
    const first = detail(start(), old, 1, {});
    expect(types(first)).toEqual([]);
    expect(first.snapshot.emitted).toMatchObject({ dateOut: old.dateOut, tracking: [{ number: 'A' }] });
    expect(types(list(first.snapshot, { dateOut: old.dateOut, tracking: [parcel('A')] }, 2))).toEqual([]);
    expect(types(detail(start(), recent, 1, {}))).toEqual(['job.dispatched', 'job.tracking_added']);
  });

  test('nor for a job that was only hidden', () => {
    const first = detail(appeared({}, 5), { ...hidden, ...old }, 5, {});
    expect(types(first)).toEqual([]);
    expect(first.snapshot.emitted.dateOut).toBe(old.dateOut);
  });

  test('but follows the creation of a new job', () => {
    const first = detail(appeared({}, 5), { ...created, ...old }, 5, {});
    expect(types(first)).toEqual(['job.created', 'job.dispatched', 'job.tracking_added']);
  });
});
