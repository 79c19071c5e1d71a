/**
 * A detail that is behind the list (shared/tracking/diff/lag.ts), and what proves that a job is new.
 * One file: mutation testing runs it as a whole against each change of the decision.
 */
import { describe, expect, test } from 'vitest';
import { applyClosedEntry } from '../../shared/tracking/diff/closed-entry.ts';
import { proveCreated } from '../../shared/tracking/diff/creation.ts';
import { addListValues, addRevocation, catchUp } from '../../shared/tracking/diff/lag.ts';
import { type ListAhead, summarize } from '../../shared/tracking/snapshot.ts';
import {
  at,
  BASELINE,
  detail,
  detailed,
  iso,
  knownAt,
  list,
  listEntry,
  listed,
  MINUTE,
  parcel,
  responseAt,
  start,
  types,
} from '../support/decisions.ts';

const AT = BASELINE + 600_000;
const HOUR = 3_600_000;
const DAY = 24 * HOUR;

/** Values of the list, each with the value before them. */
const ahead = (fields: Record<string, readonly unknown[]>, at = AT): ListAhead =>
  Object.fromEntries(
    Object.entries(fields).map(([field, [before, ...values]]) => [field, { before, values, at }]),
  );

/** Returns the state of the list's values after a detail that was `was` and is `next`. */
const caught = (
  values: ListAhead | undefined,
  was: object | null,
  next: object,
  requestedAt = AT + 1,
  newer = false,
) => catchUp({ ahead: values, detail: was && detailed(was) }, detailed(next), requestedAt, newer);

const NOTHING = { ahead: undefined, from: {}, repeated: [], undecided: [] };

describe('values of the list that the detail has not shown', () => {
  const base = { masterJobStatus: 'A', description: 'A' };
  const add = (before: ListAhead | undefined, own: object | null, next: object) =>
    addListValues(
      { ...start(base), ahead: before, detail: own && detailed(own) },
      listed({ ...base, ...next }),
      AT,
    );

  test('are those of each field that changed', () => {
    expect(add(undefined, null, {})).toBeUndefined();
    expect(add(undefined, null, { description: 'B' })).toEqual(ahead({ description: ['A', 'B'] }));
    expect(
      add(undefined, { jobStatus: 'A', description: 'A' }, { masterJobStatus: 'B', description: 'B' }),
    ).toEqual(ahead({ status: ['A', 'B'], description: ['A', 'B'] }));
    const before = ahead({ orderNumber: ['1', '2'] });
    expect(add(before, null, {})).toBe(before);
    expect(add(before, null, { description: 'B' })).toEqual({
      ...before,
      ...ahead({ description: ['A', 'B'] }),
    });
  });

  test('follow the earlier ones, and are none where the views differed for another reason', () => {
    const before = ahead({ description: ['0', 'A'] }, AT - 1);
    expect(add(before, { description: '0' }, { description: 'B' })).toEqual(
      ahead({ description: ['0', 'A', 'B'] }),
    );
    expect(
      add(undefined, { jobStatus: 'x', description: 'x' }, { masterJobStatus: 'B', description: 'B' }),
    ).toBeUndefined();
  });

  test('are all dates of a dispatch, if the detail shows none of them', () => {
    const [one, two, three] = [1, 2, 3].map((minute) => `2026-03-02T08:0${minute}:00Z`);
    const dates = (own: string | null, was: string | null, next: string | null) =>
      addListValues(
        { ...start({ dateOut: was }), detail: detailed({ dateOut: own }) },
        listed({ dateOut: next }),
        AT,
      );
    expect(dates(one ?? null, two ?? null, three ?? null)).toEqual(ahead({ dateOut: [two, two, three] }));
    expect(dates(null, two ?? null, three ?? null)).toEqual(ahead({ dateOut: [two, two, three] }));
    expect(dates(two ?? null, two ?? null, three ?? null)).toEqual(ahead({ dateOut: [two, three] }));
    // The detail was not behind, or the list showed no date.
    expect(dates(three ?? null, two ?? null, '2026-03-02 08:03:00Z')).toBeUndefined();
    expect(dates(one ?? null, null, two ?? null)).toBeUndefined();
    expect(dates(one ?? null, two ?? null, null)).toBeUndefined();
    // Other fields can differ for another reason.
    const texts = { ...start({ dateOut: two, description: 'A' }), detail: detailed({ dateOut: two }) };
    expect(addListValues(texts, listed({ dateOut: two, description: 'B' }), AT)).toBeUndefined();
    const before = ahead({ dateOut: [one, two] }, AT - 1);
    const known = { ...start({ dateOut: two }), ahead: before, detail: detailed({ dateOut: one }) };
    expect(addListValues(known, listed({ dateOut: three }), AT)).toEqual(
      ahead({ dateOut: [one, two, three] }),
    );
  });

  test('end with the revocation of a dispatch that the detail has not shown', () => {
    const dates = ahead({ dateOut: [null, 'a'], description: ['A', 'B'] });
    expect(addRevocation(dates, AT + 1, null)).toEqual({
      ...dates,
      ...ahead({ dateOut: [null, 'a', null] }, AT + 1),
    });
    const others = ahead({ description: ['A', 'B'] });
    expect(addRevocation(others, AT + 1, null)).toBe(others);
    expect(addRevocation(undefined, AT + 1, null)).toBeUndefined();
    const many = ahead({ dateOut: [null, ...'12345678'] });
    expect(addRevocation(many, AT, null)?.dateOut?.values).toEqual([...'2345678', null]);
  });

  test('are at most eight', () => {
    let values: ListAhead | undefined;
    for (let n = 0; n < 10; n += 1) values = add(values, null, { description: `${n}` });
    expect(values?.description?.values).toEqual(['2', '3', '4', '5', '6', '7', '8', '9']);
  });
});

describe('a detail', () => {
  test('that follows the list changes nothing', () => {
    expect(caught(undefined, { description: 'A' }, { description: 'B' })).toEqual(NOTHING);
    expect(caught(ahead({ description: ['A', 'B'] }), { description: 'A' }, { description: 'B' })).toEqual({
      ...NOTHING,
      repeated: ['description'],
    });
    expect(caught(ahead({ status: ['A', 'B', 'C'] }), { jobStatus: 'A' }, { jobStatus: 'B' })).toEqual({
      ...NOTHING,
      ahead: ahead({ status: ['A', 'C'] }),
      repeated: ['status'],
    });
    expect(caught(ahead({ status: ['A', 'B', 'C'] }), { jobStatus: 'A' }, { jobStatus: 'C' })).toEqual({
      ...NOTHING,
      repeated: ['status'],
    });
  });

  test('that spells the dispatch date of the list in another way follows it', () => {
    const values = ahead({ dateOut: [null, '2026-03-02T08:02:00Z'] });
    expect(caught(values, {}, { dateOut: '2026-03-02 08:02:00.000Z' })).toEqual({
      ...NOTHING,
      repeated: ['dateOut'],
    });
  });

  test('that is unchanged leaves the values for an hour, also the one that it already has', () => {
    const values = ahead({ description: ['A', 'B', 'A'] });
    expect(caught(values, { description: 'A' }, { description: 'A' })).toEqual({ ...NOTHING, ahead: values });
    expect(caught(values, { description: 'A' }, { description: 'A' }, AT + HOUR - 1)).toEqual({
      ...NOTHING,
      ahead: values,
    });
    expect(caught(values, { description: 'A' }, { description: 'A' }, AT + HOUR)).toEqual({
      ...NOTHING,
      from: { description: 'A' },
    });
    const statuses = ahead({ status: ['A', 'B'] });
    expect(caught(statuses, { jobStatus: 'A' }, { jobStatus: 'A' }, AT + HOUR)).toEqual(NOTHING);
  });

  test('with another value is undecided for an hour, and then a change from the last value of the list', () => {
    const values = ahead({ description: ['A', 'B', 'C'] });
    const undecided = { ...NOTHING, ahead: values, undecided: ['description'] };
    expect(caught(values, { description: 'A' }, { description: 'D' })).toEqual(undecided);
    expect(caught(values, { description: 'A' }, { description: 'D' }, AT + HOUR - 1)).toEqual(undecided);
    const later = { ...NOTHING, from: { description: 'C' } };
    expect(caught(values, { description: 'A' }, { description: 'D' }, AT + HOUR)).toEqual(later);
    expect(caught(values, { description: 'A' }, { description: 'D' }, AT + 1, true)).toEqual(later);
    // The views name statuses differently.
    expect(
      caught(ahead({ status: ['A', 'B'] }), { jobStatus: 'A' }, { jobStatus: 'D' }, AT + 1, true),
    ).toEqual(NOTHING);
  });

  test('with the last value of a field is not older than the list was in the poll before', () => {
    const laterStatus = { ...ahead({ status: ['A', 'B'] }, AT + 1), ...ahead({ description: ['A', 'B'] }) };
    const shown = { jobStatus: 'B', description: 'D' };
    const was = { jobStatus: 'A', description: 'A' };
    expect(caught(laterStatus, was, shown, AT + 2)).toEqual({
      ...NOTHING,
      from: { description: 'B' },
      repeated: ['status'],
    });
    // Of two changes between the same polls, either may be the later one.
    const both = { ...ahead({ status: ['A', 'B'] }), ...ahead({ description: ['A', 'B'] }) };
    expect(caught(both, was, shown)).toEqual({
      ...NOTHING,
      ahead: ahead({ description: ['A', 'B'] }),
      repeated: ['status'],
      undecided: ['description'],
    });
    const laterOther = { ...ahead({ status: ['A', 'B'] }), ...ahead({ description: ['A', 'B'] }, AT + 1) };
    expect(caught(laterOther, was, shown, AT + 2)).toEqual({
      ...NOTHING,
      ahead: ahead({ description: ['A', 'B'] }, AT + 1),
      repeated: ['status'],
      undecided: ['description'],
    });
  });

  test('proves with a dispatch that it is not behind, unless the list has shown the dispatch before', () => {
    const out = '2026-03-02T08:02:00Z';
    const values = { ...ahead({ dateOut: [null, out, null] }), ...ahead({ description: ['A', 'B'] }) };
    const shown = (was: string | null, dateOut: string) =>
      caught(values, { description: 'A', dateOut: was }, { description: 'C', dateOut }, AT + 1, true);
    expect(shown(null, out)).toMatchObject({
      ahead: { dateOut: { values: [null] } },
      repeated: ['dateOut'],
      undecided: ['description'],
    });
    expect(shown(out, out)).toMatchObject({ repeated: [], undecided: ['description'] });
    expect(shown(null, '2026-03-02T08:26:00Z')).toEqual({
      ...NOTHING,
      from: { description: 'B', dateOut: null },
    });
    // It may be the date before a correction, or the clocks differ.
    expect(shown(null, '2026-03-02T08:24:00Z')).toMatchObject({ undecided: ['dateOut', 'description'] });
  });

  test('that is the first has the value before, one of the list, or the views differ for another reason', () => {
    const values = ahead({ description: ['A', 'B', 'C'] });
    expect(caught(values, null, { description: 'A' })).toEqual({ ...NOTHING, ahead: values });
    expect(caught(values, null, { description: 'B' })).toEqual({
      ...NOTHING,
      ahead: ahead({ description: ['A', 'C'] }),
      repeated: ['description'],
    });
    expect(caught(values, null, { description: 'x' })).toEqual(NOTHING);
    expect(
      caught(ahead({ dateDue: [null, '2026-03-03T00:00:00'] }), null, { dateDue: '2026-03-03' }),
    ).toEqual({
      ...NOTHING,
      repeated: ['dateDue'],
    });
  });

  test('that is the first may be older than a change of the list and the change back', () => {
    const values = ahead({ description: ['A', 'B', 'A'] });
    expect(caught(values, null, { description: 'A' })).toEqual({ ...NOTHING, ahead: values });
    expect(caught(values, null, { description: 'A' }, AT + HOUR)).toEqual(NOTHING);
    expect(caught(values, { description: 'A' }, { description: 'B' })).toEqual({
      ...NOTHING,
      ahead: ahead({ description: ['A', 'A'] }),
      repeated: ['description'],
    });
  });

  test('of a delisted job with the value before, an hour after the list changed it, emits the change back', () => {
    const first = detail(start({ description: 'A' }), { description: 'A' }, 1, { description: 'A' }).snapshot;
    const behind = detail(list(first, { description: 'B' }, 2).snapshot, { description: 'A' }, 61);
    expect(types(behind)).toEqual([]);
    expect(detail(behind.snapshot, { description: 'A' }, 63).events).toMatchObject([
      {
        type: 'job.updated',
        data: {
          changes: { description: { from: 'B', to: 'A' } },
          observed: { since: iso(BASELINE + 2 * MINUTE + 1000) },
        },
      },
    ]);
  });

  test('with an earlier value of the list, an hour after its last one, has changed back to it', () => {
    const values = ahead({ mustDate: [false, true, false], status: ['A', 'B', 'C'] });
    const was = { mustDate: false, jobStatus: 'A' };
    const next = { mustDate: true, jobStatus: 'B' };
    expect(caught(values, was, next, AT + HOUR - 1)).toEqual({
      ...NOTHING,
      ahead: ahead({ mustDate: [false, false], status: ['A', 'C'] }),
      repeated: ['status', 'mustDate'],
    });
    // The views name statuses differently.
    expect(caught(values, was, next, AT + HOUR)).toEqual({ ...NOTHING, from: { mustDate: false } });
    // The last value of the list is no news, however late.
    expect(caught(values, was, { mustDate: true, jobStatus: 'C' }, AT + HOUR)).toEqual({
      ...NOTHING,
      from: { mustDate: false },
      repeated: ['status'],
    });
  });

  test('that omits a value does not prove that it has changed back', () => {
    const shown = { permissions: { canEdit: true }, orderNumber: 'PO-1' };
    const first = detail(start(shown), shown, 1, shown).snapshot;
    const locked = list(first, { permissions: { canEdit: false }, orderNumber: 'PO-2' }, 2).snapshot;
    const omitted = detail(detail(locked, {}, 3).snapshot, {}, 63);
    expect(types(omitted)).toEqual([]);
    expect(Object.keys(omitted.snapshot.ahead ?? {})).toEqual(['canEdit']);
    expect(types(detail(detail(locked, shown, 3).snapshot, shown, 63))).toEqual([
      'job.updated',
      'job.unlocked',
    ]);
  });

  test('that omits a value after an hour neither reverts the value of the list nor repeats its change', () => {
    const first = detail(start({ orderNumber: '1' }), { orderNumber: '1' }, 1, { orderNumber: '1' });
    const changed = list(first.snapshot, { orderNumber: '2' }, 2);
    expect(types(changed)).toEqual(['job.updated']);
    const behind = detail(changed.snapshot, { orderNumber: '1' }, 3);
    const omitted = detail(behind.snapshot, {}, 63);
    expect(summarize(omitted.snapshot).orderNumber).toBe('2');
    const shown = detail(omitted.snapshot, { orderNumber: '2' }, 64);
    expect([behind, omitted, shown].flatMap(types)).toEqual([]);
  });

  test('of a listed job with another status than the list showed leaves the change to a detail after the departure', () => {
    const first = detail(start(), {}, 1, {}).snapshot;
    const shown = { masterJobStatus: 'Shipped' };
    const undecided = detail(list(first, shown, 2).snapshot, { jobStatus: 'Canceled' }, 2, shown);
    expect(types(undecided)).toEqual([]);
    const still = detail(undecided.snapshot, { jobStatus: 'Canceled' }, 3);
    expect(types(still)).toEqual([]);
    expect(types(detail(still.snapshot, { jobStatus: 'Canceled' }, 63))).toEqual(['job.status_changed']);
    expect(types(detail(still.snapshot, { jobStatus: 'Shipped' }, 63))).toEqual([]);
  });

  test('that omits a value has not shown the value of the list', () => {
    const values = ahead({ orderGroup: ['G1', null] });
    for (const was of [null, { orderGroup: 'G1' }]) {
      expect(caught(values, was, {})).toEqual({ ...NOTHING, ahead: values });
      expect(caught(values, was, {}, AT + HOUR)).toEqual(NOTHING);
    }
    const numbers = ahead({ orderNumber: ['1', '2'] });
    const filled = detailed({ orderNumber: '2' });
    expect(catchUp({ ahead: numbers, detail: null }, filled, AT + 1, false, detailed())).toEqual({
      ...NOTHING,
      ahead: numbers,
    });
  });

  test('of a delisted job causes no event for a repeated value and one for a later value', () => {
    const first = detail(start({ description: 'A' }), { description: 'A' }, 1, { description: 'A' }).snapshot;
    const changed = list(first, { description: 'B' }, 2).snapshot;
    const again = list(changed, { description: 'C' }, 3).snapshot;
    const behind = detail(again, { description: 'A' }, 4);
    const repeated = detail(behind.snapshot, { description: 'B' }, 5);
    const last = detail(repeated.snapshot, { description: 'C' }, 6);
    const next = detail(last.snapshot, { description: 'D' }, 7);
    expect([behind, repeated, last, next].map(types)).toEqual([[], [], [], ['job.updated']]);
  });
});

describe('a detail that comes to have the value of the list', () => {
  const [upper, lower] = [{ description: 'SHIRTS' }, { description: 'Shirts' }];

  test('while the job is listed, has changed if it differs again when the job leaves the list', () => {
    const apart = detail(start(lower), upper, 1, lower).snapshot;
    const agreed = detail(apart, lower, 2, lower);
    expect(types(agreed)).toEqual([]);
    expect(detail(agreed.snapshot, upper, 3).events).toMatchObject([
      {
        type: 'job.updated',
        data: {
          changes: { description: { from: 'Shirts', to: 'SHIRTS' } },
          observed: { since: iso(BASELINE + 2 * MINUTE + 2000) },
        },
      },
    ]);
  });

  test('when the job leaves the list, is no change, and another status is one', () => {
    const shown = { masterJobStatus: 'Packing' };
    const apart = detail(start(shown), { jobStatus: 'Proof' }, 1, shown).snapshot;
    expect(types(detail(apart, { jobStatus: 'Packing' }, 2))).toEqual([]);
    expect(types(detail(apart, { jobStatus: 'Shipped' }, 2))).toEqual(['job.status_changed']);
  });

  test('is compared with its own status if the list never contained the job', () => {
    const known = { ...detail(start(), {}, 1, {}).snapshot, list: null };
    expect(types(detail(known, { jobStatus: 'Packing' }, 2))).toEqual(['job.status_changed']);
  });
});

describe('a detail of a listed job with a later status than the list', () => {
  const shown = { masterJobStatus: 'Shipped' };
  const first = detail(start(shown), { jobStatus: 'Shipped' }, 1, shown).snapshot;
  const closed = detail(first, { jobStatus: 'Closed' }, 2, shown);

  test('has changed when the job leaves the list, since a time before the detail showed the change', () => {
    expect(types(closed)).toEqual([]);
    expect(detail(closed.snapshot, { jobStatus: 'Closed' }, 3).events).toMatchObject([
      {
        type: 'job.status_changed',
        data: {
          changes: { status: { from: 'Shipped', to: 'Closed' } },
          observed: { since: iso(BASELINE + MINUTE + 2000) },
        },
      },
    ]);
  });

  test('has not changed again after the list showed it', () => {
    const listed = list(closed.snapshot, { masterJobStatus: 'Closed' }, 3);
    expect(types(listed)).toEqual(['job.status_changed']);
    expect(types(detail(listed.snapshot, { jobStatus: 'Closed' }, 4))).toEqual([]);
  });

  test('is not ahead if the views named the status differently before', () => {
    const other = detail(start(shown), { jobStatus: 'Sent' }, 1, shown).snapshot;
    const later = detail(other, { jobStatus: 'Closed' }, 2, shown);
    expect(types(detail(later.snapshot, { jobStatus: 'Closed' }, 3))).toEqual([]);
  });
});

describe('a detail of a job that left the list', () => {
  const first = detail(start({ description: 'A' }), { description: 'A' }, 1, { description: 'A' }).snapshot;
  const changed = list(first, { description: 'B' }, 2).snapshot;

  test('that shows a dispatch which the list lacked is not older than the list', () => {
    const dateOut = '2026-03-02T08:02:00Z';
    expect(types(detail(changed, { description: 'C', dateOut }, 3))).toEqual([
      'job.updated',
      'job.dispatched',
    ]);
    // The list showed it in a later poll than its last description.
    const out = list(changed, { description: 'B', dateOut }, 3).snapshot;
    expect(types(detail(out, { description: 'C', dateOut }, 4))).toEqual(['job.updated']);
    // Here in the same poll.
    const both = list(first, { description: 'B', dateOut }, 2).snapshot;
    expect(types(detail(both, { description: 'C', dateOut }, 3))).toEqual([]);
  });

  test('is comparable in the fields of which the list is ahead', () => {
    expect(changed.unsure).toEqual([]);
    const again = list(changed, { description: 'C' }, 3).snapshot;
    expect(again.unsure).toEqual([]);
  });

  test('is marked as returned once its dispatch was revoked, and until it is editable', () => {
    const dateOut = '2026-03-02T08:02:00Z';
    const out = detail(first, { dateOut, permissions: { canEdit: false } }, 2).snapshot;
    expect(out.returned).toBeUndefined();
    const locked = detail(out, { permissions: { canEdit: false } }, 3);
    expect([types(locked).includes('job.dispatch_revoked'), locked.snapshot.returned]).toEqual([true, true]);
    expect(detail(locked.snapshot, { permissions: { canEdit: false } }, 4).snapshot.returned).toBe(true);
    expect(detail(locked.snapshot, { permissions: { canEdit: true } }, 4).snapshot.returned).toBeUndefined();
    expect(detail(out, { permissions: { canEdit: true } }, 3).snapshot.returned).toBeUndefined();
    expect(detail(first, { permissions: { canEdit: false } }, 3).snapshot.returned).toBeUndefined();
  });
});

describe('a dispatch date', () => {
  const [one, two, three] = [1, 2, 3].map((minute) => ({ dateOut: `2026-03-02T08:0${minute}:00Z` }));
  const shown = detail(list(start(), one ?? {}, 1).snapshot, one ?? {}, 2, one).snapshot;
  const corrected = list(shown, two ?? {}, 3).snapshot;
  const twice = list(corrected, three ?? {}, 4).snapshot;
  const changes = (from: object | undefined, to: object | undefined) => [
    {
      type: 'job.updated',
      data: { changes: { dateOut: { ...pickDate('from', from), ...pickDate('to', to) } } },
    },
  ];
  const pickDate = (name: string, date: object | undefined) => ({ [name]: Object.values(date ?? {})[0] });

  test('that the list has shown before is no correction, of a listed and of a delisted job', () => {
    expect(corrected.emitted).toMatchObject(two ?? {});
    for (const entry of [three, undefined]) {
      // Spelled in another way.
      const behind = detail(twice, { dateOut: '2026-03-02 08:02:00.000Z' }, 5, entry);
      expect(types(behind)).toEqual([]);
      expect(behind.snapshot.emitted).toMatchObject(three ?? {});
      expect(types(detail(behind.snapshot, three ?? {}, 6, entry))).toEqual([]);
      expect(detail(behind.snapshot, one ?? {}, 70).events).toMatchObject(changes(three, one));
    }
  });

  test('that the list may have shown is a correction an hour after the last one', () => {
    for (const entry of [two, undefined]) {
      const early = detail(corrected, three ?? {}, 62, entry);
      expect(types(early)).toEqual([]);
      expect(early.snapshot.emitted).toMatchObject(two ?? {});
    }
    const early = detail(corrected, three ?? {}, 62).snapshot;
    expect(detail(early, three ?? {}, 64).events).toMatchObject(changes(two, three));
  });

  test('that a detail behind the list does not show is not withdrawn', () => {
    const early = detail(corrected, { dateOut: null }, 62);
    expect(types(early)).toEqual([]);
    expect(types(detail(early.snapshot, { dateOut: null }, 64))).toEqual(['job.dispatch_revoked']);
    // Nor does the list prove anything that no longer shows it.
    const withdrawn = list(corrected, { dateOut: null }, 4).snapshot;
    expect(withdrawn.ahead).toEqual(corrected.ahead);
    expect(types(detail(withdrawn, { dateOut: null }, 5, { dateOut: null }))).toEqual([
      'job.dispatch_revoked',
    ]);
  });
});

describe('a dispatch that was revoked before the detail showed it', () => {
  const out = { dateOut: '2026-03-02T08:01:00Z' };
  const sent = detail(list(detail(start(), {}, 0, {}).snapshot, out, 1).snapshot, {}, 1, out).snapshot;
  const revoked = detail(list(sent, {}, 2).snapshot, {}, 2, {});

  test('is not emitted again by a detail that is behind, of a listed and of a delisted job', () => {
    expect(types(revoked)).toEqual(['job.dispatch_revoked']);
    for (const entry of [{}, undefined]) {
      const behind = detail(revoked.snapshot, out, 3, entry);
      expect([types(behind), behind.snapshot.emitted.dateOut]).toEqual([[], null]);
      const still = detail(behind.snapshot, out, 61, entry);
      expect([types(still), still.snapshot.emitted.dateOut]).toEqual([[], null]);
      expect(types(detail(still.snapshot, {}, 62, entry))).toEqual([]);
    }
  });

  test('is emitted again if the detail still shows it an hour later, or if the list shows it', () => {
    const behind = detail(revoked.snapshot, out, 3, {}).snapshot;
    expect(types(detail(behind, out, 63, {}))).toEqual(['job.dispatched']);
    expect(types(detail(behind, out, 63))).toEqual(['job.dispatched']);
    expect(types(list(behind, out, 4))).toEqual(['job.dispatched']);
  });

  test('is not emitted again either if only the first list entry of a new job showed it', () => {
    const known = { ...knownAt(at(1)), newAbove: 0 };
    const found = list(undefined, out, 1, known).snapshot;
    const first = detail({ ...found, unproven: at(1) }, { dateIn: iso(at(1)) }, 2, {});
    expect(types(first)).toEqual(['job.created', 'job.dispatched', 'job.dispatch_revoked']);
    expect(types(detail(first.snapshot, out, 3, {}))).toEqual([]);
  });

  test('does not hide another dispatch', () => {
    const other = { dateOut: '2026-03-02T08:18:00Z' };
    expect(types(detail(revoked.snapshot, other, 19, {}))).toEqual(['job.dispatched']);
    expect(types(detail(revoked.snapshot, other, 19))).toEqual(['job.dispatched']);
  });

  test('is not emitted again by a detail that is behind, with a date that it had before a correction', () => {
    const former = { dateOut: '2026-03-02T08:00:30Z' };
    for (const entry of [{}, undefined]) {
      const behind = detail(revoked.snapshot, former, 3, entry);
      expect([types(behind), behind.snapshot.emitted.dateOut]).toEqual([[], null]);
      expect(types(detail(behind.snapshot, {}, 4, entry))).toEqual([]);
      expect(types(detail(behind.snapshot, former, 63, entry))).toEqual(['job.dispatched']);
    }
  });
});

describe('a job that returns while its detail was behind', () => {
  const first = detail(start({ description: 'A' }), { description: 'A' }, 1, { description: 'A' }).snapshot;
  const changed = list(first, { description: 'B' }, 2).snapshot;
  const changes = (from: string, to: string) => [
    { type: 'job.updated', data: { changes: { description: { from, to } } } },
  ];

  test('has changed if the list shows the undecided value of the detail, or an earlier value', () => {
    const undecided = detail(changed, { description: 'C' }, 3);
    expect([types(undecided), undecided.snapshot.unsure]).toEqual([[], []]);
    expect(list(undecided.snapshot, { description: 'C' }, 4).events).toMatchObject(changes('B', 'C'));
    const behind = detail(changed, { description: 'A' }, 3).snapshot;
    expect(list(behind, { description: 'A' }, 4).events).toMatchObject(changes('B', 'A'));
    expect(types(list(behind, { description: 'B' }, 4))).toEqual([]);
  });

  test('has changed if the detail had shown an earlier value of the list', () => {
    const again = list(changed, { description: 'C' }, 3).snapshot;
    const repeated = detail(again, { description: 'B' }, 4).snapshot;
    expect(repeated.unsure).toEqual([]);
    expect(list(repeated, { description: 'D' }, 5).events).toMatchObject(changes('C', 'D'));
  });

  test('has another status only if the list shows one', () => {
    const shown = { masterJobStatus: 'Press' };
    const behind = detail(list(first, { ...shown, description: 'A' }, 2).snapshot, { description: 'A' }, 3);
    expect(types(list(behind.snapshot, { ...shown, description: 'A' }, 4))).toEqual([]);
    expect(types(list(behind.snapshot, { description: 'A' }, 4))).toEqual(['job.status_changed']);
  });
});

describe('a number that a detail omits', () => {
  test('is unchanged for a job that was never listed, and no change when it is first given', () => {
    const given = { ...detail(start(), { orderNumber: 'PO-1' }, 1, {}).snapshot, list: null };
    const omitted = detail(given, { orderNumber: null }, 2);
    expect([types(omitted), omitted.snapshot.detail?.orderNumber]).toEqual([[], 'PO-1']);
    expect(types(detail(omitted.snapshot, { orderNumber: 'PO-2' }, 3))).toEqual(['job.updated']);
    const unknown = {
      ...detail(start({ orderNumber: null }), { orderNumber: null }, 1, {}).snapshot,
      list: null,
    };
    const first = detail(unknown, { orderNumber: 'PO-1' }, 2);
    expect([types(first), first.snapshot.detail?.orderNumber]).toEqual([[], 'PO-1']);
    const known = detail(start({ orderNumber: null }), { orderNumber: null }, 1, {}).snapshot;
    expect(types(detail(known, { orderNumber: 'PO-1' }, 2))).toEqual(['job.updated']);
  });
});

describe('a status that was null', () => {
  const silent = start({ masterJobStatus: null });

  test('is a change only together with another one', () => {
    expect(types(list(silent, { masterJobStatus: 'A' }, 1))).toEqual([]);
    expect(types(list(silent, { masterJobStatus: 'A', description: 'B' }, 1))).toEqual([
      'job.updated',
      'job.status_changed',
    ]);
    expect(types(list(start({ masterJobStatus: 'A' }), { masterJobStatus: 'B' }, 1))).toEqual([
      'job.status_changed',
    ]);
  });

  test('likewise of lines', () => {
    const lines = (...statuses: (string | null)[]) => ({
      lines: statuses.map((jobLineStatus, jobLineId) => ({ jobLineId, jobLineStatus })),
    });
    const first = detail(start(), lines(null, null), 1, {}).snapshot;
    expect(types(detail(first, lines('A', 'B'), 2, {}))).toEqual([]);
    const known = detail(start(), lines('A', null), 1, {}).snapshot;
    expect(types(detail(known, lines('B', 'B'), 2, {}))).toEqual(['job.line_status_changed']);
    const unknown = detail(start({ masterJobStatus: null }), { jobStatus: null, ...lines(null) }, 1, {
      masterJobStatus: null,
    });
    expect(types(detail(unknown.snapshot, { jobStatus: 'A', ...lines('A') }, 2))).toEqual([]);
  });
});

describe('a job is new', () => {
  const unproven = { ...start(), jobNumber: 8, unproven: BASELINE + MINUTE, listAt: BASELINE + 5 * MINUTE };
  const known = { ...knownAt(BASELINE + 5 * MINUTE), newAbove: 7 };
  const prove = (dateIn: string | null, over: object = {}, jobNumber = 8) =>
    proveCreated({ ...unproven, jobNumber }, detailed({ dateIn }), responseAt(BASELINE + 6 * MINUTE), {
      ...known,
      ...over,
    });
  const TOLERATED = 15 * MINUTE;

  test('by its number, if its date is missing or little earlier', () => {
    expect(prove(null)).toEqual({ created: true, since: BASELINE });
    expect(prove(null, {}, 7)).toEqual({ created: false, since: null });
    expect(prove(null, { newAbove: null })).toEqual({ created: false, since: null });
    expect(prove(null, { baselineStartedAt: null })).toEqual({ created: false, since: null });
    expect(prove(iso(BASELINE - TOLERATED))).toEqual({ created: true, since: null });
    expect(prove(iso(BASELINE - TOLERATED - 1))).toMatchObject({ created: false });
    expect(prove(iso(BASELINE + 1))).toEqual({ created: true, since: BASELINE });
  });

  test('by its date, since the last crawl before it that can prove it', () => {
    expect(prove(iso(BASELINE + 4 * MINUTE), {}, 7)).toEqual({ created: true, since: BASELINE + 4 * MINUTE });
    expect(prove(iso(BASELINE), { lastGoodCrawlStartedAt: null }, 7)).toEqual({
      created: true,
      since: BASELINE,
    });
    expect(
      prove(iso(BASELINE + 6 * MINUTE), { lastGoodCrawlStartedAt: BASELINE + 5 * MINUTE }, 7).since,
    ).toBe(BASELINE + 5 * MINUTE);
  });

  test('unless its history may have expired: 180 days after it came in, if a complete crawl followed', () => {
    const now = BASELINE + 300 * DAY;
    const prove = (dateIn: number | null, lastGoodCrawlStartedAt: number | null, newAbove: number | null) =>
      proveCreated(unproven, detailed({ dateIn: dateIn && iso(dateIn) }), responseAt(now), {
        ...knownAt(now),
        ...{ lastGoodCrawlStartedAt, newAbove },
      }).created;
    const remembered = now - 180 * DAY;
    const crawled = BASELINE + DAY;
    for (const newAbove of [7, null]) {
      for (const lastGood of [now - MINUTE, null]) {
        expect(prove(remembered, lastGood, newAbove)).toBe(true);
        expect(prove(remembered - 1, lastGood, newAbove)).toBe(false);
      }
      expect(prove(crawled, crawled, newAbove)).toBe(true);
      expect(prove(crawled - 1, crawled, newAbove)).toBe(false);
      expect(prove(null, crawled, newAbove)).toBe(newAbove === 7);
    }
  });

  test('or was only hidden: then the parcels of both views count as emitted', () => {
    const hidden = { ...start({ tracking: [parcel('A')] }), unproven: BASELINE };
    const shown = { tracking: [parcel('A')] };
    const first = detail(hidden, { shippingAddresses: [parcel('A'), parcel('B')] }, 1, shown);
    expect(types(first)).toEqual([]);
    expect(first.snapshot.emitted.tracking.map(({ number }) => number)).toEqual(['A', 'B']);
    const without = detail({ ...start(), unproven: BASELINE }, { shippingAddresses: [parcel('B')] }, 1, {});
    expect(types(without)).toEqual(['job.tracking_added']);
  });
});

describe('a parcel that was withdrawn', () => {
  const [a, b] = ['A', 'B'].map((number) => ({ tracking: [parcel(number)] })) as [object, object];
  const [ownA, ownB] = ['A', 'B'].map((number) => ({ shippingAddresses: [parcel(number)] })) as [
    object,
    object,
  ];
  const first = detail(start(), {}, 1, {}).snapshot;
  /** The list replaced A by B before the detail showed A. */
  const replaced = () => {
    const added = detail(list(first, a, 2).snapshot, {}, 2, a).snapshot;
    const gone = detail(list(added, b, 7).snapshot, {}, 7, b);
    expect(types(gone)).toEqual(['job.tracking_removed']);
    return gone.snapshot;
  };
  /** The detail replaced A by B before the list showed A. */
  const ahead = () => detail(detail(first, ownA, 2, {}).snapshot, ownB, 7, {}).snapshot;

  test('is not added again by a detail that is behind, of a listed and of a delisted job', () => {
    for (const entry of [b, undefined]) {
      const behind = detail(replaced(), ownA, 17, entry);
      const last = detail(behind.snapshot, ownB, 22, entry);
      expect([behind, last].flatMap(types)).toEqual([]);
      expect(summarize(last.snapshot).tracking).toEqual([{ number: 'B', link: null }]);
    }
  });

  test('is added again if a detail still shows it an hour later, or shows it again, or if the list shows it', () => {
    const both = { shippingAddresses: [parcel('A'), parcel('B')] };
    const behind = detail(replaced(), both, 17, b);
    expect(types(behind)).toEqual([]);
    expect(behind.snapshot.detail?.tracking).toEqual([{ number: 'B', link: null }]);
    expect(detail(behind.snapshot, both, 68, b).events).toMatchObject([
      {
        type: 'job.tracking_added',
        data: { tracking: [{ number: 'A', link: null }], observed: { since: iso(at(7) + 2000) } },
      },
    ]);
    expect(types(list(behind.snapshot, { tracking: both.shippingAddresses }, 18))).toEqual([
      'job.tracking_added',
    ]);
    expect(types(detail(ahead(), both, 8, {}))).toEqual(['job.tracking_added']);
  });

  test('is not added again by a list that is behind; a detail is owed', () => {
    const behind = list(ahead(), a, 16);
    expect(behind.snapshot.owed).toMatchObject({ at: at(16) });
    const confirmed = detail(behind.snapshot, ownB, 16, a);
    const last = detail(list(confirmed.snapshot, b, 22).snapshot, ownB, 22, b);
    expect([behind, confirmed, last].flatMap(types)).toEqual([]);
    expect(types(detail(behind.snapshot, ownA, 16, a))).toEqual([
      'job.tracking_added',
      'job.tracking_removed',
    ]);
    expect(types(list(ahead(), a, 68))).toEqual(['job.tracking_added']);
  });

  test('gets no earlier link back from a detail that is behind', () => {
    const links = [null, 'https://x/1', 'https://x/2'];
    const [none, one, two] = links.map((link) => ({ tracking: [parcel('A', link)] })) as [
      object,
      object,
      object,
    ];
    const [ownNone, ownOne, ownTwo] = links.map((link) => ({ shippingAddresses: [parcel('A', link)] })) as [
      object,
      object,
      object,
    ];
    const same = detail(list(first, none, 1).snapshot, ownNone, 2, none).snapshot;
    const twice = list(list(same, one, 3).snapshot, two, 5);
    expect(types(twice)).toEqual(['job.tracking_updated']);
    const behind = detail(twice.snapshot, ownOne, 18, two);
    expect([behind, detail(behind.snapshot, ownTwo, 20, two)].flatMap(types)).toEqual([]);
    const delisted = detail(twice.snapshot, ownOne, 18);
    expect(types(delisted)).toEqual([]);
    expect(summarize(delisted.snapshot).tracking).toEqual([{ number: 'A', link: 'https://x/2' }]);
    expect(types(detail(behind.snapshot, ownOne, 65, two))).toEqual(['job.tracking_updated']);
  });

  test('is not added again by an outdated entry of a job whose detail cannot be read', () => {
    const gone = detail(list(list(first, a, 2).snapshot, {}, 3).snapshot, {}, 3, {}).snapshot;
    const entry = (poll: number) => applyClosedEntry(gone, listEntry(a, poll), knownAt(at(poll)));
    expect([entry(9), entry(64)].map(types)).toEqual([[], ['job.tracking_added']]);
  });

  test('is not kept for longer than an hour after another one', () => {
    expect(first.withdrawn).toBeUndefined();
    const gone = replaced();
    expect(gone.withdrawn).toMatchObject([{ value: { number: 'A' }, list: true, detail: false }]);
    expect(detail(gone, ownB, 8, b).snapshot.withdrawn).toEqual(gone.withdrawn);
    const empty = detail(list(gone, {}, 90).snapshot, {}, 90, {});
    expect(types(empty)).toEqual(['job.tracking_removed']);
    expect(empty.snapshot.withdrawn).toMatchObject([{ value: { number: 'B' }, list: true }]);
  });

  test('is one of at most eight values', () => {
    let job = first;
    for (let n = 0; n < 12; n += 1) {
      const shown = { tracking: [parcel(`${n}`)] };
      job = detail(
        list(job, shown, n + 2).snapshot,
        { shippingAddresses: shown.tracking },
        n + 2,
        shown,
      ).snapshot;
    }
    expect(job.withdrawn).toHaveLength(8);
    expect(job.withdrawn?.at(-1)).toMatchObject({ value: { number: '10' }, list: true, detail: true });
  });
});

describe('a dispatch that was revoked before the list showed it', () => {
  const [one, two] = [1, 2].map((minute) => ({ dateOut: `2026-03-02T08:0${minute}:00Z` })) as [
    object,
    object,
  ];
  const first = detail(start(), {}, 1, {}).snapshot;
  const corrected = detail(detail(first, one, 2, {}).snapshot, two, 3, {}).snapshot;
  const revoked = detail(corrected, {}, 7, {});

  test('is not emitted again by the list, with any of its dates, unless the detail shows it again', () => {
    expect(types(revoked)).toEqual(['job.dispatch_revoked']);
    const behind = list(revoked.snapshot, one, 16);
    const still = list(detail(behind.snapshot, {}, 16, one).snapshot, two, 17);
    const last = list(detail(still.snapshot, {}, 17, two).snapshot, {}, 22);
    expect([behind, still, last].flatMap(types)).toEqual([]);
    expect(types(detail(still.snapshot, two, 17, two))).toEqual(['job.dispatched']);
  });

  test('is emitted if the list shows it an hour later, or shows another date', () => {
    expect(types(list(revoked.snapshot, two, 68))).toEqual(['job.dispatched']);
    expect(types(list(revoked.snapshot, { dateOut: '2026-03-02T08:16:00Z' }, 17))).toEqual([
      'job.dispatched',
    ]);
  });

  test('is not emitted again by an outdated entry of an editable job whose detail cannot be read', () => {
    const editable = { permissions: { canEdit: true } };
    const back = detail(
      list(list(first, one, 2).snapshot, editable, 3).snapshot,
      editable,
      3,
      editable,
    ).snapshot;
    const entry = (poll: number) => applyClosedEntry(back, listEntry(one, poll), knownAt(at(poll)));
    expect(back.returned).toBeUndefined();
    expect([entry(9), entry(64)].map(types)).toEqual([[], ['job.dispatched']]);
  });
});
