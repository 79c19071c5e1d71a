/**
 * The changes that an observation of a job proves (shared/tracking/diff.ts).
 * One file: mutation testing runs it as a whole against each change of the comparison.
 */
import { describe, expect, test } from 'vitest';
import type { EventDraft } from '../../shared/events/event.ts';
import { sinceListed, toObserved } from '../../shared/tracking/diff/step.ts';
import { addMissingFields, type Snapshot, summarize } from '../../shared/tracking/snapshot.ts';
import { type DetailView, fingerprint } from '../../shared/tracking/views.ts';
import {
  at,
  detail,
  detailed,
  detailedAt,
  iso,
  list,
  listed,
  listedAt,
  parcel,
  polls,
  responseAt,
  start,
  types,
} from '../support/decisions.ts';

describe('equivalent answers (rule 6)', () => {
  test.each([
    ['missing, null and an empty list', { tracking: [] }, { tracking: null }, {}],
    ['missing, null and an empty text', { orderNumber: '' }, { orderNumber: null }, {}],
    [
      'an entry of tracking with neither number nor link',
      { tracking: [parcel(null)] },
      { tracking: [parcel('', '')] },
      {},
    ],
    [
      'tracking in another order',
      { tracking: [parcel('A'), parcel('B')] },
      { tracking: [parcel('B'), parcel('A')] },
    ],
    [
      'one parcel listed twice, whatever comes first',
      { tracking: [parcel('A', 'https://x/1'), parcel('A', 'https://x/2'), parcel('A')] },
      { tracking: [parcel('A'), parcel('A', 'https://x/2'), parcel('A', 'https://x/1')] },
    ],
    [
      'the same time with Z, +00:00 and another offset',
      { dateDue: '2026-03-05T10:00:00Z' },
      { dateDue: '2026-03-05T10:00:00+00:00' },
      { dateDue: '2026-03-05T03:00:00.000-07:00' },
    ],
    [
      'spellings of one local time',
      { dateDue: '2026-03-05T10:00:00' },
      { dateDue: '2026-03-05T10:00' },
      { dateDue: '2026-03-05 10:00:00.000' },
      { dateDue: '2026-03-05T10:00:00.0000000' },
    ],
    ['a bare date and its midnight', { dateDue: '2026-03-05' }, { dateDue: '2026-03-05T00:00:00' }],
    [
      'spellings of one point in time',
      { dateDue: '2026-03-05T10:00:00.0005Z' },
      { dateDue: '2026-03-05 10:00z' },
      { dateDue: '2026-03-05T10:00:00.0000000+0000' },
    ],
    [
      'null and dates in placeholder years',
      { dateDue: null, dateOut: null },
      { dateDue: '0001-01-01T00:00:00', dateOut: '0001-01-01T00:00:00Z' },
      { dateDue: '9999-12-31', dateOut: '1969-12-31T23:59:59' },
      { dateDue: '2101-01-01', dateOut: '' },
    ],
    ['counters that drift, and wording', { shippedDaysToProcess: 1 }, { shippedDaysToProcess: 2.5 }],
    [
      'why a job is locked',
      { permissions: { canEdit: false, lockedReason: 'Printing' } },
      { permissions: { canEdit: false, lockedReason: 'Packing' } },
    ],
    ['unknown new fields', { newField: 1 }, { newField: 2 }, {}],
  ])('%s', (_, ...views: object[]) => {
    expect(new Set(views.map((view) => fingerprint(listed(view)))).size).toBe(1);
    expect(polls(...views, ...views).events.flat()).toEqual([]);
  });

  test.each([
    [
      'another local time, by a millisecond',
      { dateDue: '2026-03-05T10:00:00' },
      { dateDue: '2026-03-05T10:00:00.001' },
      'job.due_date_changed',
    ],
    [
      'another local time, one of them with an offset',
      { dateDue: '2026-03-05T10:00:00' },
      { dateDue: '2026-03-05T10:01:00Z' },
      'job.due_date_changed',
    ],
    ['another text that is no date', { dateDue: 'soon' }, { dateDue: 'later' }, 'job.due_date_changed'],
    [
      'a date in the first possible year',
      { dateDue: null },
      { dateDue: '1970-01-01' },
      'job.due_date_changed',
    ],
    [
      'a date in the last possible year',
      { dateDue: null },
      { dateDue: '2100-12-31' },
      'job.due_date_changed',
    ],
    [
      'another instant',
      { dateDue: '2026-03-05T10:00:00Z' },
      { dateDue: '2026-03-05T10:00:00+01:00' },
      'job.due_date_changed',
    ],
    ['a due date that must be met', { mustDate: false }, { mustDate: true }, 'job.due_date_changed'],
    [
      'a link filled in later',
      { tracking: [parcel('A')] },
      { tracking: [parcel('A', 'https://x/1')] },
      'job.tracking_updated',
    ],
    [
      'another link',
      { tracking: [parcel('A', 'https://x/1')] },
      { tracking: [parcel('A', 'https://x/2')] },
      'job.tracking_updated',
    ],
    [
      'a link that gets its number',
      { tracking: [parcel(null, 'https://x/1')] },
      { tracking: [parcel('A', 'https://x/1')] },
      'job.tracking_updated',
    ],
    [
      'another parcel',
      { tracking: [parcel('A')] },
      { tracking: [parcel('A'), parcel('B')] },
      'job.tracking_added',
    ],
    ['a text', { description: 'A' }, { description: null }, 'job.updated'],
    [
      'the order group and the place in it',
      { orderGroup: 'G' },
      { orderGroup: 'G', orderGroupSequence: 2 },
      'job.updated',
    ],
    ['the origin', { originCode: 'API' }, { originCode: 'WEB' }, 'job.updated'],
    ['a status, with any name', {}, { masterJobStatus: 'Neverheard' }, 'job.status_changed'],
    ['a lock', { permissions: { canEdit: true } }, { permissions: { canEdit: false } }, 'job.locked'],
    ['an unlock', { permissions: { canEdit: false } }, { permissions: { canEdit: true } }, 'job.unlocked'],
  ])('different answers: %s', (_, before: object, after: object, type: string) => {
    expect(fingerprint(listed(before))).not.toBe(fingerprint(listed(after)));
    expect(
      polls(before, after)
        .events.flat()
        .map((event) => event.type),
    ).toEqual([type]);
  });

  test('an offset that appears or disappears is no change, as long as the local time stays', () => {
    const [local, zoned] = [{ dateDue: '2026-03-05T10:00:00' }, { dateDue: '2026-03-05T10:00:00+13:00' }];
    expect(polls(local, zoned, local).events.flat()).toEqual([]);
    const moved = { dateDue: '2026-03-05T10:00:00Z' };
    expect(
      polls(local, zoned, moved)
        .events.flat()
        .map(({ type }) => type),
    ).toEqual(['job.due_date_changed']);
  });

  test('of two parcels with the same link, the known one gets its number, the other one is new', () => {
    const link = 'https://x/1';
    const { events, snapshot } = polls(
      { tracking: [parcel(null, link)] },
      { tracking: [parcel('A', link), parcel('B', link)] },
    );
    expect(events[1]).toMatchObject([
      { type: 'job.tracking_added', data: { tracking: [{ number: 'B', link }] } },
      {
        type: 'job.tracking_updated',
        data: { tracking: [{ from: { number: null, link }, to: { number: 'A', link } }] },
      },
    ]);
    expect(snapshot.emitted.tracking).toHaveLength(2);
  });

  test('a missing status or flag is no change, and the evidence starts at its last value', () => {
    const { events } = polls(
      {},
      { masterJobStatus: null },
      { masterJobStatus: null },
      { masterJobStatus: 'Press' },
    );
    expect(events.map((of) => of.length)).toEqual([0, 0, 0, 1]);
    expect(events[3]).toMatchObject([
      {
        data: {
          changes: { status: { from: 'Proof', to: 'Press' } },
          observed: { since: iso(listedAt(0)) },
        },
      },
    ]);
  });
});

describe('the two views of one job (rule 4)', () => {
  test('permanent differences between the views are no change', () => {
    const shown = { masterJobStatus: 'In production', description: 'Shirts', dateDue: '2026-03-05T10:00:00' };
    const own = { jobStatus: 'Printing', description: 'SHIRTS', dateDue: '2026-03-05T10:00:00-07:00' };
    let step = detail(start(shown), own, 1, shown);
    expect(types(step)).toEqual([]);
    step = detail(step.snapshot, own, 2, shown);
    expect(types(step)).toEqual([]);
    step = detail(step.snapshot, own, 3);
    expect(types(step)).toEqual([]);
    expect(types(list(step.snapshot, shown, 4))).toEqual([]);
  });

  test("a change emitted from the list is not emitted again when the delisted job's detail shows it too", () => {
    const first = detail(start({ description: 'A' }), { description: 'A' }, 1, { description: 'A' });
    const changed = list(first.snapshot, { description: 'B', masterJobStatus: 'Press' }, 2);
    expect(types(changed)).toEqual(['job.updated', 'job.status_changed']);
    expect(types(detail(changed.snapshot, { description: 'B', jobStatus: 'Press' }, 3))).toEqual([]);
    // A detail that never changed proves no change either; one with another value does, once it cannot be older.
    expect(types(detail(changed.snapshot, { description: 'A' }, 3))).toEqual([]);
    const held = detail(changed.snapshot, { description: 'C' }, 3);
    expect(types(held)).toEqual([]);
    expect(detail(held.snapshot, { description: 'C' }, 63).events).toMatchObject([
      { type: 'job.updated', data: { changes: { description: { from: 'B', to: 'C' } } } },
    ]);
  });

  test('a change emitted from the detail of a delisted job is not emitted again when the job is relisted', () => {
    const seen = detail(start({ description: 'A' }), { description: 'A' }, 1, { description: 'A' });
    const left = detail(seen.snapshot, { description: 'B' }, 2);
    expect(types(left)).toEqual(['job.updated']);
    expect(types(list(left.snapshot, { description: 'B' }, 3))).toEqual([]);
    expect(types(list(left.snapshot, { description: 'C' }, 3))).toEqual(['job.updated']);
  });

  test('a change emitted from the detail of a delisted job has changed back if the job is relisted with the former value', () => {
    const seen = detail(start({ description: 'A' }), { description: 'A' }, 1, { description: 'A' });
    const left = detail(seen.snapshot, { description: 'B' }, 2);
    const relisted = list(left.snapshot, { description: 'A' }, 3);
    expect(relisted.events).toMatchObject([
      {
        type: 'job.updated',
        data: {
          changes: { description: { from: 'B', to: 'A' } },
          observed: { since: iso(listedAt(0)) },
        },
      },
    ]);
    // A list that never contains the value does not withdraw it.
    const grouped = detail(detail(start(), {}, 1, {}).snapshot, { orderGroup: 'G1' }, 2);
    expect([types(grouped), types(list(grouped.snapshot, {}, 3))]).toEqual([['job.updated'], []]);
    // Values in which the views differ for another reason have not changed.
    const apart = detail(start({ description: 'a' }), { description: 'A' }, 1, { description: 'a' });
    expect(
      types(list(detail(apart.snapshot, { description: 'B' }, 2).snapshot, { description: 'a' }, 3)),
    ).toEqual([]);
  });

  test('a change in the detail only, while the job was listed, is found when the job is delisted', () => {
    const shown = { description: 'A' };
    const first = detail(start(shown), { description: 'A' }, 1, shown);
    const hinted = detail(first.snapshot, { description: 'B' }, 2, shown);
    expect(types(hinted)).toEqual([]);
    const left = detail(hinted.snapshot, { description: 'B' }, 3);
    expect(left.events).toMatchObject([
      {
        type: 'job.updated',
        data: {
          changes: { description: { from: 'A', to: 'B' } },
          // Not since the second observation, which showed it already.
          observed: { since: iso(detailedAt(1)) },
        },
      },
    ]);
  });

  test('a dispatch in either view is emitted once, and so is tracking', () => {
    const dateOut = '2026-03-02T07:59:00Z';
    const inDetail = detail(start(), { dateOut, shippingAddresses: [parcel('A')] }, 1, {});
    expect(types(inDetail)).toEqual(['job.dispatched', 'job.tracking_added']);
    expect(inDetail.open).toBe(true);
    expect(types(list(inDetail.snapshot, { dateOut, tracking: [parcel('A')] }, 2))).toEqual([]);

    const inList = list(start(), { dateOut, tracking: [parcel('A')] }, 1);
    expect(types(inList)).toEqual(['job.dispatched', 'job.tracking_added']);
    // The views may use different texts and links.
    const other = detail(
      inList.snapshot,
      { dateOut: '2026-03-02T00:59:00', shippingAddresses: [parcel('A', 'https://x/1')] },
      2,
    );
    expect(types(other)).toEqual([]);
  });

  test('corrected, then cleared in the list only, then set again: one dispatch with its corrections', () => {
    const [first, second, third] = ['2026-03-02T10:00:00Z', '2026-03-02T11:00:00Z', '2026-03-02T12:00:00Z'];
    let step: { snapshot: Snapshot; events: readonly EventDraft[] } = list(start(), { dateOut: first }, 1);
    expect(types(step)).toEqual(['job.dispatched']);
    step = list(step.snapshot, { dateOut: second }, 2);
    expect(step.events).toMatchObject([
      { type: 'job.updated', data: { changes: { dateOut: { from: first, to: second } } } },
    ]);
    step = list(step.snapshot, {}, 3);
    expect(types(step)).toEqual([]);
    expect(types(detail(step.snapshot, { dateOut: second }, 3, {}))).toEqual([]);
    const again = list(step.snapshot, { dateOut: third }, 4);
    expect(again.events).toMatchObject([
      { type: 'job.updated', data: { changes: { dateOut: { from: second, to: third } } } },
    ]);
    // Cleared in both views it is revoked, and the next one is a new dispatch.
    const revoked = detail(step.snapshot, {}, 4, {});
    expect(revoked.events).toMatchObject([
      // The list showed it last at the third minute's answer.
      { type: 'job.dispatch_revoked', data: { observed: { since: iso(listedAt(2)) } } },
    ]);
    expect(types(list(revoked.snapshot, { dateOut: third }, 5))).toEqual(['job.dispatched']);
  });

  test("if the views had different dates of a dispatch, a correction or revocation starts from the same view's date", () => {
    const [first, second, third] = ['2026-03-02T10:00:00Z', '2026-03-02T11:00:00Z', '2026-03-02T12:00:00Z'];
    const told = list(start({}), { dateOut: first }, 1);
    const left = detail(told.snapshot, { dateOut: second }, 2);
    expect(types(left)).toEqual([]);
    expect(detail(left.snapshot, { dateOut: third }, 3).events).toMatchObject([
      { type: 'job.updated', data: { changes: { dateOut: { from: second, to: third } } } },
    ]);
    expect(detail(left.snapshot, {}, 3).events).toMatchObject([
      { type: 'job.dispatch_revoked', data: { changes: { dateOut: { from: second, to: null } } } },
    ]);
  });

  test('tracking missing from one view stays; tracking missing from both is removed, and emitted again when it returns', () => {
    const shown = { tracking: [parcel('A'), parcel('B')] };
    const first = list(start(), shown, 1);
    const fewer = list(first.snapshot, { tracking: [parcel('A')] }, 2);
    expect(types(fewer)).toEqual([]);
    const kept = detail(fewer.snapshot, { shippingAddresses: [parcel('A'), parcel('B')] }, 2, {
      tracking: [parcel('A')],
    });
    expect([types(kept), kept.open]).toEqual([[], true]);
    const gone = detail(kept.snapshot, { shippingAddresses: [parcel('A')] }, 3, { tracking: [parcel('A')] });
    expect(gone.events).toMatchObject([
      { type: 'job.tracking_removed', data: { tracking: [{ number: 'B', link: null }] } },
    ]);
    expect(types(list(gone.snapshot, shown, 4))).toEqual(['job.tracking_added']);
  });

  test('a parcel that replaces the only one in both views is added, even in the first detail', () => {
    const fewer = list(start({ tracking: [parcel('A')] }), {}, 1);
    expect(detail(fewer.snapshot, { shippingAddresses: [parcel('B')] }, 1, {}).events).toMatchObject([
      { type: 'job.tracking_added', data: { tracking: [{ number: 'B', link: null }] } },
      { type: 'job.tracking_removed', data: { tracking: [{ number: 'A', link: null }] } },
    ]);
  });

  test('a missing parcel is removed, also if another one has its link', () => {
    const link = 'https://x/1';
    const shown = { tracking: [parcel(null, link), parcel('A', link)] };
    const left = { tracking: [parcel('A', link)] };
    const fewer = list(list(start({}), shown, 1).snapshot, left, 2);
    const gone = detail(fewer.snapshot, { shippingAddresses: left.tracking }, 2, left);
    expect(gone.events).toMatchObject([
      { type: 'job.tracking_removed', data: { tracking: [{ number: null, link }] } },
    ]);
    expect([gone.open, gone.snapshot.list?.tracking]).toEqual([false, [{ number: 'A', link }]]);
    expect(list(gone.snapshot, left, 3).snapshot.heldBack).toBeUndefined();
  });

  test('a parcel with the link of one without a number is a separate parcel, in either view', () => {
    const link = 'https://x/1';
    const both = [parcel(null, link), parcel('A', link)];
    const shown = list(start(), { tracking: [parcel(null, link)] }, 1).snapshot;
    const known = detail(start(), { shippingAddresses: [parcel(null, link)] }, 1).snapshot;
    const inList = list(shown, { tracking: both }, 2);
    const inDetail = detail(known, { shippingAddresses: both }, 2);
    for (const step of [inList, inDetail]) {
      expect(step.events).toMatchObject([
        { type: 'job.tracking_added', data: { tracking: [{ number: 'A', link }] } },
      ]);
    }
  });

  test('line statuses and the invoice number are compared with the last observation; a first observation emits none', () => {
    const lines = (status: string | null) => [{ jobLineId: 7, jobLineStatus: status }];
    const first = detail(start(), { lines: lines('Proof'), invoiceNumber: null }, 1, {});
    expect(types(first)).toEqual([]);
    const silent = detail(first.snapshot, { lines: lines(null) }, 2, {});
    const next = detail(silent.snapshot, { lines: lines('Press'), invoiceNumber: 'INV-1' }, 3, {});
    expect(next.events).toMatchObject([
      { type: 'job.line_status_changed', data: { lines: [{ jobLineId: 7, from: 'Proof', to: 'Press' }] } },
      { type: 'job.invoiced' },
    ]);
    const blank = detail(next.snapshot, { lines: lines('Press') }, 4, {});
    expect(types(detail(blank.snapshot, { lines: lines('Press'), invoiceNumber: 'INV-1' }, 5, {}))).toEqual(
      [],
    );
  });

  const editable = (canEdit: boolean | null) => ({ permissions: { canEdit } });

  test('a flag that is absent from one view comes from the other one', () => {
    const unsaid = detail(start(editable(false)), {}, 1).snapshot;
    expect(types(list(unsaid, editable(true), 2))).toEqual(['job.unlocked']);
    const first = detail(start(), editable(false), 1, {}).snapshot;
    expect(types(detail(first, editable(true), 2))).toEqual(['job.unlocked']);
    // Also if it changed while the job was listed.
    const moved = detail(first, editable(true), 2, {});
    expect(types(moved)).toEqual([]);
    expect(types(detail(moved.snapshot, editable(true), 3))).toEqual(['job.unlocked']);
    // Also if it first appeared after the other view had changed.
    const locked = list(detail(start(editable(true)), {}, 1, editable(true)).snapshot, editable(false), 2);
    const late = detail(locked.snapshot, editable(false), 2, editable(false)).snapshot;
    const unlocked = detail(late, editable(true), 3, editable(false)).snapshot;
    expect(types(detail(unlocked, editable(true), 4))).toEqual(['job.unlocked']);
  });

  test('a difference between views is no change when the detail follows the list, and a change is no difference', () => {
    const [shown, own] = [{ description: 'Shirts' }, { description: 'SHIRTS' }];
    const first = detail(start(shown), own, 1, shown).snapshot;
    // The list shows a change with its value, then the detail with its own.
    const changed = list(first, { description: 'Caps' }, 2);
    expect(types(changed)).toEqual(['job.updated']);
    const later = list(changed.snapshot, { description: 'Caps' }, 3).snapshot;
    const left = detail(later, { description: 'CAPS' }, 4);
    expect(types(left)).toEqual([]);
    // From then on the detail's value is known.
    const own2 = detail(left.snapshot, { description: 'HATS' }, 5);
    expect(types(own2)).toEqual(['job.updated']);
    const same = detail(own2.snapshot, { description: 'HATS' }, 6).snapshot;
    const back = list(same, { description: 'Hats' }, 7);
    expect(types(back)).toEqual([]);
    expect(types(list(back.snapshot, { description: 'Shoes' }, 8))).toEqual(['job.updated']);
  });

  test('different values of the views stay separate, for any number of detail fetches while the job is listed', () => {
    const [shown, own] = [{ description: 'Shirts' }, { description: 'SHIRTS' }];
    const first = detail(start(shown), own, 1, shown).snapshot;
    const changed = list(first, { description: 'Caps' }, 2).snapshot;
    // It has not changed yet, so its value for the change is still to come.
    const slow = detail(changed, own, 2, { description: 'Caps' }).snapshot;
    expect(types(detail(slow, { description: 'CAPS' }, 3))).toEqual([]);
    // It changed: its next value is a separate change.
    const moved = detail(changed, { description: 'CAPS' }, 2, { description: 'Caps' }).snapshot;
    expect(types(detail(moved, { description: 'CAPS' }, 3))).toEqual([]);
    expect(types(detail(moved, { description: 'HATS' }, 3))).toEqual(['job.updated']);
    // It equals the list now, so the two are comparable again.
    const agreed = detail(changed, { description: 'Caps' }, 2, { description: 'Caps' }).snapshot;
    expect(types(detail(agreed, own, 3))).toEqual(['job.updated']);
  });

  test('a detail field that older code did not store is compared after its first observation (rule 6)', () => {
    const shown = { description: 'Shirts' };
    const { snapshot } = detail(start(shown), shown, 1, shown);
    const { description: _, ...stored } = snapshot.detail as DetailView;
    const older = { ...snapshot, detail: stored as DetailView };
    const adopted = list(addMissingFields(older, 'list', listed(shown)), shown, 2).snapshot;
    expect(types(detail(adopted, { description: 'SHIRTS' }, 3))).toEqual([]);
    for (const words of ['Shirts', 'SHIRTS']) {
      const read = detail(adopted, { description: words }, 2, shown).snapshot;
      expect(types(detail(read, { description: words }, 3))).toEqual([]);
      expect(types(detail(read, { description: 'HATS' }, 3))).toEqual(['job.updated']);
    }
  });

  test('a detail that followed the list and reverts when the job is delisted has changed', () => {
    const [a, b] = [{ description: 'A' }, { description: 'B' }];
    const first = detail(start(a), a, 1, a).snapshot;
    const followed = detail(list(first, b, 2).snapshot, b, 2, b).snapshot;
    expect(detail(followed, a, 3).events).toMatchObject([
      {
        type: 'job.updated',
        data: { changes: { description: { from: 'B', to: 'A' } }, observed: { since: iso(detailedAt(2)) } },
      },
    ]);
  });

  test('the detail of a delisted job is compared with the last list entry', () => {
    const first = detail(start({ description: 'A' }), { description: 'A' }, 1, { description: 'A' }).snapshot;
    const left = detail(first, { description: 'B', jobStatus: 'Packing' }, 2);
    expect(types(left)).toEqual(['job.updated', 'job.status_changed']);
    expect(detail(left.snapshot, { description: 'A' }, 3).events).toMatchObject([
      { type: 'job.updated', data: { changes: { description: { from: 'B', to: 'A' } } } },
      { type: 'job.status_changed', data: { changes: { status: { from: 'Packing', to: 'Proof' } } } },
    ]);
  });

  test('the list is compared with the detail while the list is authoritative', () => {
    const [view, next] = [
      { description: 'A', masterJobStatus: 'Proof' },
      { description: 'B', masterJobStatus: 'Packing' },
    ];
    const own = { description: 'B', jobStatus: 'Packing' };
    const known = detail(start(view), own, 1, view).snapshot;
    expect(types(list(known, next, 2))).toEqual(['job.updated', 'job.status_changed']);
  });

  test('a status emitted from one view is not emitted again from the other; a different one is', () => {
    const first = detail(start(), {}, 1, {}).snapshot;
    const inList = list(first, { masterJobStatus: 'Packing' }, 2);
    expect(types(inList)).toEqual(['job.status_changed']);
    expect(types(detail(inList.snapshot, { jobStatus: 'Packing' }, 3))).toEqual([]);
    expect(types(detail(inList.snapshot, { jobStatus: 'Shipped' }, 3))).toEqual([]);
    expect(types(detail(inList.snapshot, { jobStatus: 'Shipped' }, 63))).toEqual(['job.status_changed']);
    const left = detail(first, { jobStatus: 'Packing' }, 2);
    expect(types(left)).toEqual(['job.status_changed']);
    expect(types(list(left.snapshot, { masterJobStatus: 'Packing' }, 3))).toEqual([]);
    expect(types(list(left.snapshot, { masterJobStatus: 'Shipped' }, 3))).toEqual(['job.status_changed']);
  });

  test('a first observation without a status or a flag is like any other', () => {
    const silent = start({ masterJobStatus: null });
    const first = detail(silent, { jobStatus: null, lines: [{ jobLineId: 7 }] }, 1, {});
    expect([types(first), first.observedStatuses]).toEqual([[], []]);
    const flags = { permissions: { canEdit: true }, mustDate: true };
    expect(types(list(first.snapshot, { ...flags, masterJobStatus: null }, 2))).toEqual([]);
  });

  test.each([
    ['a status', { masterJobStatus: 'Press' }],
    ['the lock', { permissions: { canEdit: false } }],
    ['whether the date must be met', { mustDate: false }],
  ])('a missing %s keeps its value, and a change is dated from its last value', (_, changed) => {
    const said = { permissions: { canEdit: true }, mustDate: true };
    const unsaid = Object.fromEntries(Object.keys(changed).map((field) => [field, null]));
    const silent = list(start(said), { ...said, ...unsaid }, 3);
    expect(types(silent)).toEqual([]);
    expect(list(silent.snapshot, { ...said, ...changed }, 4).events).toMatchObject([
      { data: { observed: { since: iso(at(2)) } } },
    ]);
  });

  test('a field missing from the detail keeps its value, and a change is dated from its last value', () => {
    const first = detail(start(), { jobStatus: 'Press' }, 1, {}).snapshot;
    const silent = detail(first, { jobStatus: null }, 2, {}).snapshot;
    expect(detail(silent, { jobStatus: 'Packing' }, 3).events).toMatchObject([
      {
        type: 'job.status_changed',
        data: {
          changes: { status: { from: 'Press', to: 'Packing' } },
          observed: { since: iso(detailedAt(1)), view: 'detail' },
        },
      },
    ]);
  });
});

describe('changes of single fields', () => {
  const changedFields = ({ data }: EventDraft) => ('changes' in data ? Object.keys(data.changes) : []);

  test.each([
    ['job.updated', 'description', { description: 'A' }, { description: 'B' }],
    ['job.updated', 'orderNumber', { orderNumber: 'PO-1' }, { orderNumber: 'PO-2' }],
    ['job.updated', 'orderGroup', { orderGroup: 'G' }, { orderGroup: 'H' }],
    ['job.updated', 'orderGroupSequence', { orderGroupSequence: 1 }, { orderGroupSequence: 2 }],
    ['job.due_date_changed', 'dateDue', { dateDue: '2026-03-05' }, { dateDue: '2026-03-06' }],
    ['job.due_date_changed', 'mustDate', { mustDate: true }, { mustDate: false }],
  ])(
    '%s: %s, in the list and in the detail of a delisted job',
    (type, field, before: object, after: object) => {
      const changes = { [field]: { from: Object.values(before)[0], to: Object.values(after)[0] } };
      const expected = [{ type, data: { changes, job: { [field]: Object.values(after)[0] } } }];
      expect(polls(before, after).events[1]).toMatchObject(expected);
      expect(detail(detail(start(), before, 1).snapshot, after, 2).events).toMatchObject(expected);
      // No other field has an event.
      expect(polls(before, after).events[1]?.map(changedFields)).toEqual([[field]]);
    },
  );

  test.each([
    ['job.locked', true, false],
    ['job.unlocked', false, true],
  ])('%s', (type, from, to) => {
    const { events } = polls({ permissions: { canEdit: from } }, { permissions: { canEdit: to } });
    expect(events[1]).toMatchObject([{ type, data: { changes: { canEdit: { from, to } } } }]);
  });

  test('the origin, which is only in the list', () => {
    expect(polls({ originCode: 'API' }, { originCode: 'WEB' }).events[1]).toMatchObject([
      { type: 'job.updated', data: { changes: { originCode: { from: 'API', to: 'WEB' } } } },
    ]);
  });

  test('several at once: one event of each kind', () => {
    const before = { description: 'A', orderNumber: 'PO-1', dateDue: '2026-03-05', mustDate: false };
    const after = { description: 'B', orderNumber: 'PO-2', dateDue: '2026-03-06', mustDate: true };
    const { events } = polls(before, { ...after, masterJobStatus: 'Press' });
    expect(events[1]?.map((event) => [event.type, changedFields(event)])).toEqual([
      ['job.updated', ['description', 'orderNumber']],
      ['job.due_date_changed', ['dateDue', 'mustDate']],
      ['job.status_changed', ['status']],
    ]);
  });

  test('lines: those with a changed status, each by its id; new and removed lines are in job.updated', () => {
    const line = (jobLineId: number, jobLineStatus: string | null) => ({ jobLineId, jobLineStatus });
    const first = detail(start(), { lines: [line(7, 'Proof'), line(8, 'Proof'), line(9, 'Proof')] }, 1, {});
    const next = detail(first.snapshot, { lines: [line(10, null), line(8, null), line(7, 'Press')] }, 2, {});
    expect(next.events).toMatchObject([
      {
        type: 'job.updated',
        data: { changes: { lines: { from: [{ jobLineId: 9 }], to: [{ jobLineId: 10 }] } } },
      },
      { type: 'job.line_status_changed', data: { lines: [{ jobLineId: 7, from: 'Proof', to: 'Press' }] } },
    ]);
    const last = detail(next.snapshot, { lines: [line(7, 'Cut'), line(8, 'Cut'), line(10, 'Cut')] }, 3);
    expect(last.events).toMatchObject([
      {
        data: {
          lines: [
            { jobLineId: 7, from: 'Press', to: 'Cut' },
            { jobLineId: 8, from: 'Proof', to: 'Cut' },
            { jobLineId: 10, from: null, to: 'Cut' },
          ],
        },
      },
    ]);
  });

  test('a new invoice number', () => {
    const first = detail(start(), {}, 1).snapshot;
    expect(detail(first, { invoiceNumber: 'INV-1' }, 2).events).toMatchObject([
      { type: 'job.invoiced', data: { changes: { invoiceNumber: { from: null, to: 'INV-1' } } } },
    ]);
    // At the first observation its age is unknown.
    expect(types(detail(start(), { invoiceNumber: 'INV-1' }, 1))).toEqual([]);
  });
});

describe('dispatch and tracking, in either view (rules 4 and 8)', () => {
  const [first, second] = ['2026-03-02T10:00:00Z', '2026-03-02T11:00:00Z'];

  test('a dispatch has its date, and so has the job afterwards', () => {
    const { events } = list(start(), { dateOut: first }, 1);
    expect(events).toMatchObject([
      {
        type: 'job.dispatched',
        data: { occurredAt: first, changes: { dateOut: { from: null, to: first } }, job: { dateOut: first } },
      },
    ]);
  });

  test('a dispatch names the zone of the location, if a detail named it', () => {
    const zones = (step: { events: readonly EventDraft[] }) =>
      step.events.map((event) => (event.type === 'job.dispatched' ? event.data.zone : event.type));
    const located = { location: { timezone: 'Pacific/Auckland' } };
    expect(zones(list(start(), { dateOut: first }, 1))).toEqual([null]);
    const known = detail(start(), located, 1, {}).snapshot;
    expect(zones(list(known, { dateOut: first }, 2))).toEqual(['Pacific/Auckland']);
    expect(zones(detail(start(), { ...located, dateOut: first }, 1))).toEqual(['Pacific/Auckland']);
    // A detail that omits it does not make it unknown.
    expect(zones(detail(known, { dateOut: first }, 2))).toEqual(['Pacific/Auckland']);
  });

  test('the detail corrects a date that it showed before, and none that only the list showed', () => {
    const sent = list(start(), { dateOut: first }, 1).snapshot;
    const read = detail(sent, { dateOut: first }, 1, { dateOut: first }).snapshot;
    expect(detail(read, { dateOut: second }, 2).events).toMatchObject([
      { type: 'job.updated', data: { changes: { dateOut: { from: first, to: second } } } },
    ]);
    // Emitted from the list first, it is not emitted again.
    const corrected = list(read, { dateOut: second }, 2);
    expect(types(corrected)).toEqual(['job.updated']);
    expect(types(detail(corrected.snapshot, { dateOut: second }, 2, { dateOut: second }))).toEqual([]);
    expect(types(detail(sent, { dateOut: second }, 2))).toEqual([]);
  });

  test('after a correction that only the detail showed, another date of the list counts only if the detail shows it', () => {
    const third = '2026-03-02T12:00:00Z';
    const sent = list(start(), { dateOut: first }, 1).snapshot;
    const read = detail(sent, { dateOut: first }, 1, { dateOut: first }).snapshot;
    const corrected = detail(read, { dateOut: third }, 2, { dateOut: first });
    expect(types(corrected)).toEqual(['job.updated']);
    // The list is behind: it shows a date that was valid before the correction.
    const behind = list(corrected.snapshot, { dateOut: second }, 3);
    expect(behind.events).toEqual([]);
    expect(behind.snapshot.owed).not.toBeNull();
    const same = detail(behind.snapshot, { dateOut: third }, 3, { dateOut: second });
    expect(same.events).toEqual([]);
    expect(list(same.snapshot, { dateOut: third }, 4).events).toEqual([]);
    // The date was corrected again.
    expect(detail(behind.snapshot, { dateOut: second }, 3, { dateOut: second }).events).toMatchObject([
      { type: 'job.updated', data: { changes: { dateOut: { from: third, to: second } } } },
    ]);
  });

  test('the same date in another format is no correction', () => {
    const { snapshot } = list(start(), { dateOut: first }, 1);
    expect(list(snapshot, { dateOut: '2026-03-02T11:00:00+01:00' }, 2).events).toEqual([]);
  });

  test.each([
    ['listed, both lack it', {}, {}, true],
    ['listed, the detail still has it', {}, { dateOut: first }, false],
    ['listed, the list still has it', { dateOut: first }, {}, false],
    ['delisted, the detail lacks what it had', undefined, {}, true],
    ['delisted, the detail still has it', undefined, { dateOut: first }, false],
  ])('revoked? %s', (_, shown, own, revoked) => {
    const sent = list(start(), { dateOut: first }, 1).snapshot;
    const read = detail(sent, { dateOut: first }, 1, { dateOut: first }).snapshot;
    const now = shown ? list(read, shown, 2).snapshot : read;
    expect(detail(now, own, 2, shown).events).toMatchObject(
      revoked
        ? [
            {
              type: 'job.dispatch_revoked',
              data: { changes: { dateOut: { from: first, to: null } }, job: { dateOut: null } },
            },
          ]
        : [],
    );
  });

  test("revoked? Delisted, and its detail never showed the list's dispatch: no", () => {
    const shown = { dateOut: first, tracking: [parcel('A')] };
    const sent = list(start(), shown, 1).snapshot;
    const left = detail(sent, {}, 2);
    expect(types(left)).toEqual([]);
    expect(types(detail(left.snapshot, {}, 3))).toEqual([]);
    expect(types(list(left.snapshot, shown, 3))).toEqual([]);
  });

  test('after a dispatch was revoked, the next change is dated as usual', () => {
    const read = detail(start(), { dateOut: first }, 1).snapshot;
    const revoked = detail(read, {}, 2);
    expect(types(revoked)).toEqual(['job.dispatch_revoked']);
    const quiet = detail(revoked.snapshot, {}, 3).snapshot;
    expect(detail(quiet, { jobStatus: 'Press' }, 4).events).toMatchObject([
      { type: 'job.status_changed', data: { observed: { since: iso(detailedAt(3)) } } },
    ]);
  });

  const parcels = (...entries: ReturnType<typeof parcel>[]) => ({ tracking: entries });
  const record = (...entries: ReturnType<typeof parcel>[]) => ({ shippingAddresses: entries });
  const [one, two, three] = ['https://x/1', 'https://x/2', 'https://x/3'];

  test("parcels that appear, get a link and disappear one by one: each event has the job's current parcels", () => {
    let step: { snapshot: Snapshot; events: readonly EventDraft[] } = list(start(), parcels(parcel('A')), 1);
    step = list(step.snapshot, parcels(parcel('A'), parcel('B')), 2);
    expect(step.events).toMatchObject([
      {
        type: 'job.tracking_added',
        data: {
          tracking: [{ number: 'B', link: null }],
          job: { tracking: [{ number: 'A' }, { number: 'B' }] },
        },
      },
    ]);
    step = list(step.snapshot, parcels(parcel('A', one), parcel('B')), 3);
    expect(step.events).toMatchObject([
      {
        type: 'job.tracking_updated',
        data: {
          tracking: [{ from: { number: 'A', link: null }, to: { number: 'A', link: one } }],
          job: {
            tracking: [
              { number: 'A', link: one },
              { number: 'B', link: null },
            ],
          },
        },
      },
    ]);
    step = list(step.snapshot, parcels(parcel('B')), 4);
    step = detail(step.snapshot, record(parcel('B')), 4, parcels(parcel('B')));
    expect(step.events).toMatchObject([
      {
        type: 'job.tracking_removed',
        data: { tracking: [{ number: 'A', link: one }], job: { tracking: [{ number: 'B', link: null }] } },
      },
    ]);
  });

  test('for a delisted job, only parcels missing from its detail are removed', () => {
    const shown = parcels(parcel('A'), parcel('B'));
    const sent = list(start(), shown, 1).snapshot;
    const read = detail(sent, record(parcel('B'), parcel('C')), 1, shown).snapshot;
    const left = detail(read, record(parcel('C')), 2);
    expect(left.events).toMatchObject([
      { type: 'job.tracking_removed', data: { tracking: [{ number: 'B', link: null }] } },
    ]);
    // Only the list ever showed A, and C was no news when both views showed different parcels.
    expect(left.snapshot.emitted.tracking).toEqual([{ number: 'A', link: null }]);
    expect(types(detail(left.snapshot, record(parcel('C'), parcel('D')), 3))).toEqual(['job.tracking_added']);
  });

  test('different links in the views are no change until one of them changes its own', () => {
    const sent = list(start(), parcels(parcel('A', one)), 1).snapshot;
    let step = detail(sent, record(parcel('A', two)), 2);
    expect(types(step)).toEqual([]);
    step = detail(step.snapshot, record(parcel('A', two)), 3);
    expect(types(step)).toEqual([]);
    step = detail(step.snapshot, record(parcel('A', three)), 4);
    expect(step.events).toMatchObject([
      { data: { tracking: [{ from: { number: 'A', link: one }, to: { number: 'A', link: three } }] } },
    ]);
  });

  test.each([
    ['fills in its link', parcel('A'), parcel('A', one), { number: 'A', link: one }],
    ['fills in its number', parcel(null, one), parcel('A', one), { number: 'A', link: one }],
    ['has another link', parcel('A', two), parcel('A', one), undefined],
    ['lacks the link', parcel('A', two), parcel('A'), undefined],
    ['is unchanged', parcel('A', one), parcel('A', one), undefined],
  ])('a detail with a known parcel for the first time %s', (_, known, shown, to) => {
    const sent = list(start(), parcels(known), 1).snapshot;
    const read = detail(sent, {}, 1, parcels(known)).snapshot;
    const { events, snapshot } = detail(read, record(shown), 2, parcels(known));
    const was = { number: known.trackingNumber, link: known.trackingLink };
    expect(events).toMatchObject(
      to ? [{ type: 'job.tracking_updated', data: { tracking: [{ from: was, to }] } }] : [],
    );
    expect(snapshot.emitted.tracking).toEqual([to ?? was]);
  });
});

describe('scheduling detail fetches of listed jobs', () => {
  const shown = { dateOut: '2026-03-02T10:00:00Z', tracking: [parcel('A')] };
  const job = () => start(shown);
  const lacking = () => list(job(), { dateOut: shown.dateOut }, 1).snapshot;
  const gone = () => detail(job(), shown, 1).snapshot;
  const now = { at: at(2), tries: 0 };

  test.each([
    ['nothing changed', job, shown, null],
    ['a text changed', job, { ...shown, description: 'B' }, null],
    ['the due date changed', job, { ...shown, dateDue: '2026-03-05' }, null],
    ['it was locked', job, { ...shown, permissions: { canEdit: false } }, null],
    ['tracking came', job, { ...shown, tracking: [parcel('A'), parcel('B')] }, now],
    ['the status changed', job, { ...shown, masterJobStatus: 'Press' }, now],
    ['the status changed, among others', job, { ...shown, masterJobStatus: 'Press', description: 'B' }, now],
    ['it was dispatched', start, shown, now],
    ['the dispatch was corrected', job, { ...shown, dateOut: '2026-03-02T11:00:00Z' }, now],
    ['the list lacks the dispatch', job, { tracking: shown.tracking }, now],
    ['the list lacks tracking', job, { dateOut: shown.dateOut }, now],
    ['the list still lacks it, and no fetch was requested', lacking, { dateOut: shown.dateOut }, now],
    ['it was relisted', gone, shown, now],
  ])('immediately, or not: %s', (_, was, view, owed) => {
    expect(list({ ...was(), owed: null }, view, 2).snapshot.owed).toEqual(owed);
  });

  const later = { at: at(60), tries: 3 };
  test.each([
    ['without a change it stays deferred', job, shown, later],
    ['a text does not advance it', job, { ...shown, description: 'B' }, later],
    ['a value that the list lacked before does not advance it', lacking, { dateOut: shown.dateOut }, later],
    ['a status advances it', job, { ...shown, masterJobStatus: 'Press' }, { ...later, at: at(2) }],
    ['a value that the list lacks now is a new request', job, { tracking: shown.tracking }, now],
    ['a return to the list is a new request', gone, shown, now],
  ])('deferred: %s', (_, was, view, owed) => {
    expect(list({ ...was(), owed: later }, view, 2).snapshot.owed).toEqual(owed);
  });

  test.each([
    ['both have it', shown, { ...shown, shippingAddresses: shown.tracking }, false],
    ['the list has it, the detail does not', shown, {}, false],
    ['the list lacks the dispatch', { tracking: shown.tracking }, { dateOut: shown.dateOut }, true],
    ['the list lacks a parcel', { dateOut: shown.dateOut }, { shippingAddresses: shown.tracking }, true],
    ['neither has it: it is revoked', {}, {}, false],
  ])('a request stays pending while the list lacks an emitted value: %s', (_, view, own, open) => {
    const before = { ...list(job(), view, 1).snapshot, owed: later };
    const step = detail(before, own, 2, view);
    expect(step.open).toBe(open);
    expect(step.snapshot.owed).toEqual(open ? { at: at(2), tries: 3 } : null);
    expect(detail({ ...before, owed: null }, own, 2, view).snapshot.owed).toEqual(open ? now : null);
    // The list says nothing about a delisted job.
    expect(detail(before, own, 2).open).toBe(false);
  });

  test('a job without dispatch and tracking has no request', () => {
    expect(detail(start(), {}, 1, {}).open).toBe(false);
  });
});

describe('the evidence of a change (rule 13)', () => {
  test('has no earlier time if there is none, or if it is from before the clock was set back', () => {
    const response = responseAt(at(1));
    const { respondedAt } = response;
    expect(toObserved(response, respondedAt)).toEqual({
      ...{ at: iso(respondedAt), since: iso(respondedAt), view: 'list' },
    });
    for (const since of [null, 0, respondedAt + 1]) expect(toObserved(response, since).since).toBeNull();
  });

  const known = { lastGoodCrawlStartedAt: at(5) };

  test.each([
    ['a listed job was in the last complete crawl', {}, known, at(5)],
    ['or was observed since', { listAt: listedAt(6) }, known, listedAt(6)],
    ['no crawl was complete yet', {}, { lastGoodCrawlStartedAt: null }, listedAt(3)],
    ['a missing job', { departure: { tries: 0, suspected: null } }, known, listedAt(3)],
    ['a delisted job', { settling: { since: at(4), fetches: 0 } }, known, listedAt(3)],
    ['a job not known to be new', { unproven: listedAt(3) }, known, listedAt(3)],
    ['a job of which the list lacks something', { heldBack: true as const }, known, listedAt(3)],
  ])('last known as listed: %s', (_, fields, account, time) => {
    expect(sinceListed({ ...start(), listAt: listedAt(3), ...fields }, account)).toBe(time);
  });

  test('a change in the list is dated from the last observation or the last complete crawl, whichever is later', () => {
    const { snapshot } = list(start(), {}, 3);
    const press = { masterJobStatus: 'Press' };
    expect(list(snapshot, press, 4).events).toMatchObject([
      { data: { observed: { at: iso(listedAt(4) + 10), since: iso(listedAt(3)), view: 'list' } } },
    ]);
    expect(list(snapshot, press, 9).events).toMatchObject([{ data: { observed: { since: iso(at(8)) } } }]);
  });

  test('a change in the detail of a delisted job is dated from the last fetch', () => {
    const { snapshot } = detail(detail(start(), {}, 1).snapshot, {}, 3);
    expect(detail(snapshot, { jobStatus: 'Press' }, 9).events).toMatchObject([
      { data: { observed: { at: iso(detailedAt(9) + 10), since: iso(detailedAt(3)), view: 'detail' } } },
    ]);
  });

  test('differences between the views do not make it older', () => {
    const first = detail(start({ description: 'Shirts' }), { description: 'SHIRTS' }, 1, {
      description: 'Shirts',
    });
    const again = detail(first.snapshot, { description: 'SHIRTS' }, 2, { description: 'Shirts' });
    expect(detail(again.snapshot, { description: 'SHIRTS', jobStatus: 'Press' }, 3).events).toMatchObject([
      { type: 'job.status_changed', data: { observed: { since: iso(detailedAt(2)) } } },
    ]);
  });

  test('a value removed from the list was last seen in the list', () => {
    const shown = { tracking: [parcel('A'), parcel('B')] };
    const fewer = { tracking: [parcel('A')] };
    let step: { snapshot: Snapshot; events: readonly EventDraft[] } = list(start(), shown, 1);
    step = list(step.snapshot, fewer, 2);
    step = list(step.snapshot, fewer, 3);
    expect(step.events).toEqual([]);
    step = detail(step.snapshot, { shippingAddresses: [parcel('A')] }, 4, fewer);
    expect(step.events).toMatchObject([
      { type: 'job.tracking_removed', data: { observed: { since: iso(listedAt(1)) } } },
    ]);
    // Settled: the next change is dated as usual.
    expect(list(step.snapshot, { ...fewer, masterJobStatus: 'Press' }, 6).events).toMatchObject([
      { type: 'job.status_changed', data: { observed: { since: iso(at(5)) } } },
    ]);
  });

  test('while the detail still has the value, nothing is settled', () => {
    const sent = list(start(), { tracking: [parcel('A')] }, 1).snapshot;
    const fewer = list(sent, {}, 2).snapshot;
    const kept = detail(fewer, { shippingAddresses: [parcel('A')] }, 2, {}).snapshot;
    expect(list(kept, { masterJobStatus: 'Press' }, 6).events).toMatchObject([
      { type: 'job.status_changed', data: { observed: { since: iso(listedAt(1)) } } },
    ]);
  });

  test('a value that only the list with closed jobs showed was last seen before the list without it', () => {
    const closed = start();
    const out = '2026-03-02T08:01:00Z';
    const [a] = detailed({ shippingAddresses: [parcel('A')] }).tracking;
    const emitted = (dateOut: string | null, tracking: Snapshot['emitted']['tracking']): Snapshot => ({
      ...{ ...closed, ended: 'closed', detailPending: true, settling: { since: at(1), fetches: 0 } },
      emitted: { ...closed.emitted, dateOut, tracking },
    });
    for (const [before, type] of [
      [emitted(out, []), 'job.dispatch_revoked'],
      [emitted(null, a ? [a] : []), 'job.tracking_removed'],
    ] as const) {
      const back = list(list(before, {}, 3).snapshot, {}, 4).snapshot;
      expect(back).toMatchObject({ heldBack: true, listAt: closed.listAt });
      expect(detail(back, {}, 5, {}).events).toMatchObject([
        { type, data: { observed: { since: iso(closed.listAt) } } },
      ]);
      // A detail that has shown it has its own time.
      const read = { ...before, detail: detailed({ dateOut: out }) };
      expect(list(read, {}, 3).snapshot).toMatchObject({ listAt: listedAt(3) });
      expect(list(read, {}, 3).snapshot.heldBack).toBeUndefined();
    }
    expect(list(emitted(null, []), {}, 3).snapshot.heldBack).toBeUndefined();
  });

  test('nor while the list has no status, for any detail', () => {
    const silent = list(start(), { masterJobStatus: null }, 2).snapshot;
    const read = detail(silent, {}, 2, { masterJobStatus: null }).snapshot;
    expect(list(read, { masterJobStatus: 'Press' }, 6).events).toMatchObject([
      { type: 'job.status_changed', data: { observed: { since: iso(at(1)) } } },
    ]);
  });

  test('a value missing from both views was last seen when the first of them lost it', () => {
    const shown = { dateOut: '2026-03-02T10:00:00Z' };
    const sent = list(start(), shown, 1).snapshot;
    const read = detail(sent, shown, 1, shown).snapshot;
    // The list lost it first.
    const listLost = list(read, {}, 2).snapshot;
    expect(detail(listLost, {}, 4, {}).events).toMatchObject([
      { type: 'job.dispatch_revoked', data: { observed: { since: iso(listedAt(1)) } } },
    ]);
    // The detail lost it first, and the list kept it.
    const recordLost = detail(list(read, shown, 2).snapshot, {}, 2, shown);
    expect(recordLost.events).toEqual([]);
    const both = list(list(recordLost.snapshot, shown, 5).snapshot, {}, 6).snapshot;
    expect(detail(both, {}, 6, {}).events).toMatchObject([
      { type: 'job.dispatch_revoked', data: { observed: { since: iso(detailedAt(1)) } } },
    ]);
    // Or the job was delisted before the list lost it.
    expect(detail(recordLost.snapshot, {}, 7).events).toMatchObject([
      { type: 'job.dispatch_revoked', data: { observed: { since: iso(detailedAt(1)) } } },
    ]);
  });
});

describe('the status names of an observation', () => {
  const observed = (step: ReturnType<typeof list>) =>
    step.observedStatuses.map(({ status, observed }) => [status, observed.since, observed.view]);

  test('in the list: its own, dated like a change', () => {
    expect(observed(list(undefined, {}, 1))).toEqual([['Proof', null, 'list']]);
    expect(observed(list(start(), { masterJobStatus: 'Press' }, 4))).toEqual([['Press', iso(at(3)), 'list']]);
    expect(observed(list(start(), { masterJobStatus: null }, 4))).toEqual([]);
  });

  test('in a detail: its own and those of its lines, unknown before the first fetch', () => {
    const own = { jobStatus: 'Press', lines: [{ jobLineId: 7, jobLineStatus: 'Cut' }, { jobLineId: 8 }] };
    const first = detail(start(), own, 1, {});
    expect(observed(first)).toEqual([
      ['Press', null, 'detail'],
      ['Cut', null, 'detail'],
    ]);
    expect(observed(detail(first.snapshot, own, 2))).toEqual([
      ['Press', iso(detailedAt(1)), 'detail'],
      ['Cut', iso(detailedAt(1)), 'detail'],
    ]);
  });
});

describe('values that the detail omits (rule 4)', () => {
  const inGroup = { orderGroup: 'WEB-1', orderGroupSequence: 2, orderNumber: 'PO-1' };
  const job = (snapshot: Snapshot) => summarize(snapshot);

  test('stay those of the list when the job leaves it', () => {
    const left = detail(start(inGroup), { dateOut: '2026-03-02T09:00:00Z' }, 1);
    expect(types(left)).toEqual(['job.dispatched']);
    expect(job(left.snapshot)).toMatchObject(inGroup);
    // The list's value at the departure counts, not an earlier one.
    const moved = list(start(inGroup), { ...inGroup, orderGroup: 'WEB-2' }, 1).snapshot;
    expect(job(detail(moved, {}, 2).snapshot)).toMatchObject({ ...inGroup, orderGroup: 'WEB-2' });
  });

  test('stay those of the detail after the departure, and another value is a change', () => {
    const left = detail(start(inGroup), { ...inGroup, orderGroup: 'WEB-2' }, 1);
    const silent = detail(left.snapshot, {}, 2);
    expect(types(silent)).toEqual([]);
    expect(job(silent.snapshot)).toMatchObject({ ...inGroup, orderGroup: 'WEB-2' });
    const other = detail(silent.snapshot, { ...inGroup, orderGroup: 'WEB-3' }, 3);
    expect(other.events.map(({ data }) => data)).toMatchObject([
      { changes: { orderGroup: { from: 'WEB-2', to: 'WEB-3' } } },
    ]);
  });

  test.each([['orderGroup'], ['orderGroupSequence'], ['orderNumber']] as const)(
    'are not observed by it: the next change is dated from the last detail that gave the value (%s)',
    (field) => {
      const { [field]: _, ...less } = inGroup;
      const read = detail(start(inGroup), inGroup, 1, inGroup).snapshot;
      const silent = detail(read, less, 2);
      expect(types(silent)).toEqual([]);
      const other = { ...inGroup, [field]: field === 'orderGroupSequence' ? 3 : 'other' };
      expect(detail(silent.snapshot, other, 3).events).toMatchObject([
        { type: 'job.updated', data: { observed: { since: iso(detailedAt(1)) } } },
      ]);
      // While the job is listed, the list proves the value.
      const inList = detail(list(read, inGroup, 2).snapshot, less, 2, inGroup).snapshot;
      expect(detail(inList, other, 3).events).toMatchObject([
        { type: 'job.updated', data: { observed: { since: iso(listedAt(2)) } } },
      ]);
      // A detail that contains the value is conclusive if its job's list entry omits nothing.
      const given = detail(read, inGroup, 2).snapshot;
      expect(detail(given, other, 3).events).toMatchObject([
        { type: 'job.updated', data: { observed: { since: iso(detailedAt(2)) } } },
      ]);
    },
  );

  test('stay those of the detail also if the list had none, until the list decides again', () => {
    const left = detail(start(), inGroup, 1);
    const omitted = detail(left.snapshot, {}, 2);
    expect(types(omitted)).toEqual([]);
    expect(job(omitted.snapshot)).toMatchObject(inGroup);
    const back = list(omitted.snapshot, {}, 3);
    expect(job(back.snapshot).orderGroup).toBeNull();
  });

  test('of a snapshot that an older release stored without them are no change', () => {
    const left = detail(start(inGroup), {}, 1).snapshot;
    const stored: Snapshot = {
      ...left,
      detail: left.detail && {
        ...left.detail,
        orderGroup: null,
        orderNumber: null,
        orderGroupSequence: null,
      },
    };
    const next = detail(stored, inGroup, 2);
    expect(types(next)).toEqual([]);
    expect(job(next.snapshot)).toMatchObject(inGroup);
  });
});

describe('a job whose dispatch was revoked (rule 3)', () => {
  const out = { dateOut: '2026-03-02T09:00:00Z', permissions: { canEdit: false } };
  const locked = { permissions: { canEdit: false } };
  const editable = { permissions: { canEdit: true } };
  const revoked = (): Snapshot => detail(list(start(out), locked, 1).snapshot, locked, 1, locked).snapshot;

  test('is known as returned until a view shows it as editable', () => {
    expect(revoked()).toMatchObject({ returned: true, emitted: { dateOut: null } });
    expect(list(revoked(), { ...locked, description: 'b' }, 2).snapshot.returned).toBe(true);
    expect(detail(revoked(), locked, 2).snapshot.returned).toBe(true);
    expect(list(revoked(), editable, 2).snapshot.returned).toBeUndefined();
    const shown = detail(start(out), out, 0, out).snapshot;
    const seen = detail(list(shown, locked, 1).snapshot, locked, 1, locked).snapshot;
    expect(seen.returned).toBe(true);
    expect(detail(seen, editable, 2).snapshot.returned).toBeUndefined();
    expect(start(locked).returned).toBeUndefined();
  });

  test('is still returned when a detail from before the dispatch shows it as editable', () => {
    const sent = detail(list(start(editable), out, 1).snapshot, editable, 1, out).snapshot;
    const back = detail(list(sent, locked, 5).snapshot, editable, 5, locked);
    expect(types(back)).toEqual(['job.dispatch_revoked']);
    const later = [detail(back.snapshot, editable, 6).snapshot, detail(back.snapshot, out, 16).snapshot];
    const last = [...later, detail(later[1] as Snapshot, locked, 20).snapshot];
    for (const snapshot of [back.snapshot, ...last]) expect(snapshot.returned).toBe(true);
    // An hour later, and once the detail has shown the dispatch.
    expect(detail(back.snapshot, editable, 66).snapshot.returned).toBeUndefined();
    expect(detail(last[2] as Snapshot, editable, 21).snapshot.returned).toBeUndefined();
  });

  test('is not returned if the list, which has shown the dispatch, shows it as editable', () => {
    const sent = detail(list(start(editable), out, 1).snapshot, editable, 1, out).snapshot;
    const back = detail(list(sent, editable, 5).snapshot, editable, 5, editable);
    expect(types(back)).toEqual(['job.dispatch_revoked']);
    expect(back.snapshot.returned).toBeUndefined();
  });

  test('is still returned when a list from before the dispatch shows it as editable', () => {
    const sent = detail(start(editable), out, 1, editable).snapshot;
    const back = detail(sent, locked, 5, editable).snapshot;
    expect(list(back, { ...editable, description: 'b' }, 6).snapshot.returned).toBe(true);
    expect(list(back, { ...editable, description: 'b' }, 66).snapshot.returned).toBeUndefined();
  });

  test('is returned or not whatever parcels were removed', () => {
    const [a, ownA, ownB] = [
      { ...editable, tracking: [parcel('A')] },
      { ...out, shippingAddresses: [parcel('A')] },
      { ...locked, shippingAddresses: [parcel('B')] },
    ];
    const sent = detail(list(start(editable), a, 1).snapshot, ownA, 1, a).snapshot;
    const back = detail(list(sent, editable, 5).snapshot, locked, 5, editable);
    expect(types(back)).toEqual(['job.dispatch_revoked', 'job.tracking_removed']);
    expect(list(back.snapshot, { ...editable, description: 'b' }, 6).snapshot.returned).toBe(true);
    const removed = detail(detail(back.snapshot, ownB, 70, locked).snapshot, locked, 72, locked);
    expect(types(removed)).toEqual(['job.tracking_removed']);
    expect(list(removed.snapshot, { ...editable, description: 'b' }, 73).snapshot.returned).toBeUndefined();
  });

  test('is not returned while a view shows its dispatch', () => {
    const sent = start(out);
    expect(detail(sent, out, 1, out).snapshot).not.toHaveProperty('returned');
    expect(detail(sent, out, 1).snapshot).not.toHaveProperty('returned');
  });
});
