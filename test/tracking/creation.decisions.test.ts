/** A dispatch from before the baseline, which only the first detail of a job shows (shared/tracking/diff/creation.ts). */
import { describe, expect, test } from 'vitest';
import type { Snapshot } from '../../shared/tracking/snapshot.ts';
import { BASELINE, detail, iso, list, MINUTE, parcel, start, types } from '../support/decisions.ts';

const record = (time: number, ...parcels: ReturnType<typeof parcel>[]) => ({
  dateOut: iso(time),
  shippingAddresses: parcels,
});

describe('a dispatch that only the first detail shows (rule 4)', () => {
  const tolerated = BASELINE - 15 * MINUTE;

  test('causes no event if it is more than 15 minutes older than the baseline, and neither do its parcels', () => {
    const view = { tracking: [parcel('A')] };
    const old = record(tolerated - 1, parcel('A'), parcel('B'));
    const first = detail(start(view), old, 1, view);
    expect(types(first)).toEqual([]);
    expect(first.snapshot.emitted).toEqual({
      dateOut: old.dateOut,
      tracking: [
        { number: 'A', link: null },
        { number: 'B', link: null },
      ],
      overdueFor: null,
    });
    // Nor when the list shows them too, and their correction and their end are changes.
    const shown = { dateOut: old.dateOut, tracking: [parcel('A'), parcel('B')] };
    expect(types(list(first.snapshot, shown, 2))).toEqual([]);
    expect(types(detail(first.snapshot, record(BASELINE, parcel('A'), parcel('B')), 2, view))).toEqual([
      'job.updated',
    ]);
    expect(types(detail(first.snapshot, { shippingAddresses: [parcel('A')] }, 2, view))).toEqual([
      'job.dispatch_revoked',
      'job.tracking_removed',
    ]);
  });

  test('is emitted if it is at most 15 minutes older, because clocks differ', () => {
    expect(types(detail(start(), record(tolerated, parcel('A')), 1, {}))).toEqual([
      'job.dispatched',
      'job.tracking_added',
    ]);
  });

  test('is emitted if it may be later in another zone, or is no date', () => {
    const local = (timezone: string | null) => ({
      ...{ dateOut: '2026-03-02T02:00:00', location: { timezone } },
    });
    expect(types(detail(start(), local('UTC'), 1, {}))).toEqual([]);
    expect(types(detail(start(), local('America/Denver'), 1, {}))).toEqual(['job.dispatched']);
    expect(types(detail(start(), local(null), 1, {}))).toEqual(['job.dispatched']);
    expect(types(detail(start(), { dateOut: 'yesterday' }, 1, {}))).toEqual(['job.dispatched']);
  });

  test('is emitted if an earlier detail lacked it', () => {
    const known = detail(start(), {}, 1, {}).snapshot;
    expect(types(detail(known, record(tolerated - 1, parcel('A')), 2, {}))).toEqual([
      'job.dispatched',
      'job.tracking_added',
    ]);
  });

  test('does not replace a dispatch that the list has shown, whose further parcels are added', () => {
    const shown = { dateOut: iso(BASELINE), tracking: [parcel('A')] };
    const sent = list(start(), shown, 1).snapshot;
    const first = detail(sent, record(tolerated - 1, parcel('A'), parcel('B')), 2, shown);
    expect(first.events).toMatchObject([
      { type: 'job.tracking_added', data: { tracking: [{ number: 'B', link: null }] } },
    ]);
    expect(first.snapshot.emitted.dateOut).toBe(shown.dateOut);
  });
});

describe('a job that only the list has shown', () => {
  const unsure = ({ snapshot }: { snapshot: Snapshot }) => snapshot.unsure;

  test('has no field in which the views cannot be compared, and neither has it after its first detail', () => {
    const first = list(undefined, { description: 'A' }, 1);
    expect(unsure(first)).toEqual([]);
    expect(unsure(list(start({ description: 'A' }), { description: 'B' }, 2))).toEqual([]);
    expect(
      unsure(detail(start({ description: 'A' }), { description: 'B' }, 1, { description: 'A' })),
    ).toEqual([]);
  });
});
