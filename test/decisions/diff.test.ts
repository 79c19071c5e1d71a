/** What a look at a job proves (shared/tracking/diff.ts). */
import { describe, expect, test } from 'vitest';
import type { EventDraft } from '../../shared/events/event.ts';
import type { Snapshot } from '../../shared/tracking/snapshot.ts';
import { fingerprint } from '../../shared/tracking/views.ts';
import {
  detail,
  detailedAt,
  iso,
  list,
  listed,
  listedAt,
  parcel,
  polls,
  start,
  types,
} from '../support/decisions.ts';

describe('two answers of the service say the same (rule 6)', () => {
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
      'Z, +00:00 and the same instant elsewhere',
      { dateDue: '2026-03-05T10:00:00Z' },
      { dateDue: '2026-03-05T10:00:00+00:00' },
      { dateDue: '2026-03-05T03:00:00.000-07:00' },
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
      'a time without an offset is text',
      { dateDue: '2026-03-05T10:00:00' },
      { dateDue: '2026-03-05T10:00' },
      'job.due_date_changed',
    ],
    [
      'nor is it the same with one',
      { dateDue: '2026-03-05T10:00:00' },
      { dateDue: '2026-03-05T10:00:00Z' },
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
  ])('but not: %s', (_, before: object, after: object, type: string) => {
    expect(fingerprint(listed(before))).not.toBe(fingerprint(listed(after)));
    expect(
      polls(before, after)
        .events.flat()
        .map((event) => event.type),
    ).toEqual([type]);
  });

  test('a link shared by two parcels: the one that was known gets its number, the other one is new', () => {
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
    expect(snapshot.announced.tracking).toHaveLength(2);
  });

  test('a status or a flag that is not said is no change, and the evidence goes back to when it was said', () => {
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
  test('different words for the same things are no change, for as long as they differ', () => {
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

  test('what the list announced is not announced again when the job has left it and its detail says it too', () => {
    const first = detail(start({ description: 'A' }), { description: 'A' }, 1, { description: 'A' });
    const changed = list(first.snapshot, { description: 'B', masterJobStatus: 'Press' }, 2);
    expect(types(changed)).toEqual(['job.updated', 'job.status_changed']);
    expect(types(detail(changed.snapshot, { description: 'B', jobStatus: 'Press' }, 3))).toEqual([]);
    // A detail that never moved has no change to tell either; one that went elsewhere has.
    expect(types(detail(changed.snapshot, { description: 'A' }, 3))).toEqual([]);
    expect(types(detail(changed.snapshot, { description: 'C' }, 3))).toEqual(['job.updated']);
  });

  test('what the detail announced of a job that had left is not announced again when it is back in the list', () => {
    const seen = detail(start({ description: 'A' }), { description: 'A' }, 1, { description: 'A' });
    const left = detail(seen.snapshot, { description: 'B' }, 2);
    expect(types(left)).toEqual(['job.updated']);
    expect(types(list(left.snapshot, { description: 'B' }, 3))).toEqual([]);
    expect(types(list(left.snapshot, { description: 'C' }, 3))).toEqual(['job.updated']);
  });

  test('a change that only the detail showed while the job was listed is found when it leaves', () => {
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
          // Not since the second look: that one showed it already.
          observed: { since: iso(detailedAt(1)) },
        },
      },
    ]);
  });

  test('a dispatch that either view shows is announced once, and so is tracking', () => {
    const dateOut = '2026-03-02T07:59:00Z';
    const inDetail = detail(start({}), { dateOut, shippingAddresses: [parcel('A')] }, 1, {});
    expect(types(inDetail)).toEqual(['job.dispatched', 'job.tracking_added']);
    expect(inDetail.open).toBe(true);
    expect(types(list(inDetail.snapshot, { dateOut, tracking: [parcel('A')] }, 2))).toEqual([]);

    const inList = list(start({}), { dateOut, tracking: [parcel('A')] }, 1);
    expect(types(inList)).toEqual(['job.dispatched', 'job.tracking_added']);
    // The two views may say it in different words, and differ in links.
    const other = detail(
      inList.snapshot,
      { dateOut: '2026-03-02T00:59:00', shippingAddresses: [parcel('A', 'https://x/1')] },
      2,
    );
    expect(types(other)).toEqual([]);
  });

  test('corrected, then cleared in the list alone, then set again: still one dispatch, with its corrections', () => {
    const [first, second, third] = ['2026-03-02T10:00:00Z', '2026-03-02T11:00:00Z', '2026-03-02T12:00:00Z'];
    let step: { snapshot: Snapshot; events: readonly EventDraft[] } = list(start({}), { dateOut: first }, 1);
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
    // Cleared in both views it is revoked, and the next one is a dispatch of its own.
    const revoked = detail(step.snapshot, {}, 4, {});
    expect(revoked.events).toMatchObject([
      // The list showed it last at the third minute's answer.
      { type: 'job.dispatch_revoked', data: { observed: { since: iso(listedAt(2)) } } },
    ]);
    expect(types(list(revoked.snapshot, { dateOut: third }, 5))).toEqual(['job.dispatched']);
  });

  test('where the views gave different dates of a dispatch, a correction or revocation starts from what its own view said', () => {
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

  test('tracking that one view lacks stays; that both lack is removed, and announced anew when it is back', () => {
    const shown = { tracking: [parcel('A'), parcel('B')] };
    const first = list(start({}), shown, 1);
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

  test('line statuses and the invoice number are compared with the look before; a first look tells nothing of them', () => {
    const lines = (status: string | null) => [{ jobLineId: 7, jobLineStatus: status }];
    const first = detail(start({}), { lines: lines('Proof'), invoiceNumber: null }, 1, {});
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

  test('a flag that one view never says is told by the other one', () => {
    const unsaid = detail(start(editable(false)), {}, 1).snapshot;
    expect(types(list(unsaid, editable(true), 2))).toEqual(['job.unlocked']);
    const first = detail(start({}), editable(false), 1, {}).snapshot;
    expect(types(detail(first, editable(true), 2))).toEqual(['job.unlocked']);
    // Also when it moved while the job was listed.
    const moved = detail(first, editable(true), 2, {});
    expect(types(moved)).toEqual([]);
    expect(types(detail(moved.snapshot, editable(true), 3))).toEqual(['job.unlocked']);
  });
});
