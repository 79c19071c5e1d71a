/** What the tracker decides without asking anybody: equality, instants, verdicts, account states, the index, the chunks. */
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import type { EventDraft } from '../shared/events/event.ts';
import { COMMIT_OVERHEAD_ACTIONS } from '../shared/log/log.ts';
import { OrderingError } from '../shared/ordering/errors.ts';
import { ActiveJob, JobDetail } from '../shared/ordering/schemas.ts';
import { MAX_TRANSACTION_ACTIONS, MAX_TRANSACTION_BYTES, sizeOf } from '../shared/table/table.ts';
import { transition } from '../shared/tracking/account-state.ts';
import { type Evidence, judge } from '../shared/tracking/departures.ts';
import { type Known, type Look, seenInDetail, seenInList } from '../shared/tracking/diff.ts';
import { readInstants } from '../shared/tracking/instants.ts';
import { type IndexEntry, JobIndex, MAX_ENTRIES, type Phase } from '../shared/tracking/job-index.ts';
import type { Snapshot } from '../shared/tracking/snapshot.ts';
import { detailView, fingerprint, listView } from '../shared/tracking/views.ts';
import {
  chunks,
  DEFAULT_TRACKING,
  entryOf,
  settled,
  unanswered,
  type Work,
} from '../shared/tracking/work.ts';

const BASELINE = Date.parse('2026-03-02T08:00:00Z');
const MINUTE = 60_000;

const listed = (fields: object = {}) =>
  listView(ActiveJob.parse({ jobNumber: 1, masterJobStatus: 'Proof', ...fields }));
const detailed = (fields: object = {}) =>
  detailView(JobDetail.parse({ jobNumber: 1, jobStatus: 'Proof', ...fields }));
const lookAt = (at: number, view: Look['view'] = 'list'): Look => ({
  askedAt: at,
  answeredAt: at + 10,
  view,
});
const knownAt = (at: number): Known => ({
  startedAt: at,
  lastGoodCrawlStartedAt: at - MINUTE,
  baselineStartedAt: BASELINE,
});

/** The list shows one job poll after poll, a minute apart, beginning with the baseline: the types of the events of each. */
function polls(...views: object[]): { snapshot: Snapshot; events: EventDraft[][] } {
  let snapshot: Snapshot | undefined;
  const events = views.map((view, n) => {
    const at = BASELINE + n * MINUTE;
    const known = n === 0 ? { ...knownAt(at), baselineStartedAt: null } : knownAt(at);
    const step = seenInList(1, snapshot, { view: listed(view), look: lookAt(at + 1000) }, known);
    snapshot = step.snapshot;
    return [...step.events];
  });
  return { snapshot: snapshot as Snapshot, events };
}

const parcel = (trackingNumber: string | null, trackingLink: string | null = null) => ({
  trackingNumber,
  trackingLink,
});

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
          observed: { since: new Date(BASELINE + 1000).toISOString() },
        },
      },
    ]);
  });
});

describe('the two views of one job (rule 4)', () => {
  const at = (n: number) => BASELINE + n * MINUTE;
  const sighting = (view: object, n: number) => ({ view: listed(view), look: lookAt(at(n) + 1000) });
  const list = (before: Snapshot, view: object, n: number) =>
    seenInList(1, before, sighting(view, n), knownAt(at(n)));
  const detail = (before: Snapshot, view: object, n: number, shown?: object) =>
    seenInDetail(
      before,
      detailed(view),
      shown && sighting(shown, n),
      lookAt(at(n) + 2000, 'detail'),
      knownAt(at(n)),
    );
  const types = (step: { events: readonly EventDraft[] }) => step.events.map((event) => event.type);
  const start = (view: object) => polls(view).snapshot;

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
          observed: { since: new Date(at(1) + 2000).toISOString() },
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
      { type: 'job.dispatch_revoked', data: { observed: { since: new Date(at(2) + 1000).toISOString() } } },
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

  test('a parcel that shares its link with one that has no number is a parcel of its own, in either view', () => {
    const link = 'https://x/1';
    const both = [parcel(null, link), parcel('A', link)];
    const inList = list(
      list(start({}), { tracking: [parcel(null, link)] }, 1).snapshot,
      { tracking: both },
      2,
    );
    const known = detail(start({}), { shippingAddresses: [parcel(null, link)] }, 1);
    const inDetail = detail(known.snapshot, { shippingAddresses: both }, 2);
    for (const step of [inList, inDetail]) {
      expect(step.events).toMatchObject([
        { type: 'job.tracking_added', data: { tracking: [{ number: 'A', link }] } },
      ]);
    }
  });

  test('a parcel that is gone is removed, also when another one has its link', () => {
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
});

describe('the instants a text can mean (rules 5 and 15)', () => {
  const read = (text: string, zone: string | null = null, midnightIsEndOfDay = false) => {
    const reading = readInstants(text, zone, { midnightIsEndOfDay });
    return (
      reading && [
        new Date(reading.earliest).toISOString(),
        new Date(reading.latest).toISOString(),
        reading.zone,
      ]
    );
  };

  test.each([
    [
      'its own offset goes before the zone',
      '2026-03-05T10:00:00+02:00',
      'America/Denver',
      '2026-03-05T08:00:00.000Z',
      '+02:00',
    ],
    ['an offset without a colon', '2026-03-05T10:00:00-0730', null, '2026-03-05T17:30:00.000Z', '-0730'],
    ['fractions of a second count', '2026-03-05T10:00:00.0825551Z', null, '2026-03-05T10:00:00.083Z', 'Z'],
    [
      'the location’s zone',
      '2026-03-05T10:00:00',
      'America/Denver',
      '2026-03-05T17:00:00.000Z',
      'America/Denver',
    ],
    [
      'without seconds, after a blank',
      '2026-03-05 10:00',
      'Asia/Kolkata',
      '2026-03-05T04:30:00.000Z',
      'Asia/Kolkata',
    ],
    [
      'the day when clocks go forward',
      '2026-03-08T12:00:00',
      'America/Denver',
      '2026-03-08T18:00:00.000Z',
      'America/Denver',
    ],
    [
      'the day when clocks go back',
      '2026-11-01T12:00:00',
      'America/Denver',
      '2026-11-01T19:00:00.000Z',
      'America/Denver',
    ],
  ])('%s', (_, text, zone, instant, read_in) => {
    expect(read(text, zone)).toEqual([instant, instant, read_in]);
  });

  test.each([
    [
      'a zone nobody knows is none: the latest is UTC−12',
      '2026-03-05T10:00:00',
      'Mars/Phobos',
      ['2026-03-04T20:00:00.000Z', '2026-03-05T22:00:00.000Z', '-12:00'],
    ],
    [
      'no zone',
      '2026-03-05T10:00:00',
      null,
      ['2026-03-04T20:00:00.000Z', '2026-03-05T22:00:00.000Z', '-12:00'],
    ],
    [
      'a bare date is all of its day',
      '2026-03-05',
      'Pacific/Auckland',
      ['2026-03-04T11:00:00.000Z', '2026-03-05T11:00:00.000Z', 'Pacific/Auckland'],
    ],
    [
      'a time that happens twice',
      '2026-11-01T01:30:00',
      'America/New_York',
      ['2026-11-01T05:30:00.000Z', '2026-11-01T06:30:00.000Z', 'America/New_York'],
    ],
    [
      'a time that is skipped',
      '2026-03-08T02:30:00',
      'America/New_York',
      ['2026-03-08T06:30:00.000Z', '2026-03-08T07:30:00.000Z', 'America/New_York'],
    ],
  ])('%s', (_, text, zone, reading) => {
    expect(read(text, zone)).toEqual(reading);
  });

  test.each([
    ['2026-03-05', 'America/Denver', '2026-03-06T07:00:00.000Z'],
    ['2026-03-05T00:00:00', 'America/Denver', '2026-03-06T07:00:00.000Z'],
    ['2026-03-05T00:00:00-07:00', null, '2026-03-06T07:00:00.000Z'],
    ['2026-03-05T00:00:00Z', 'America/Denver', '2026-03-06T00:00:00.000Z'],
    // The day when clocks go forward has 23 hours.
    ['2026-03-08T00:00:00', 'America/Denver', '2026-03-09T06:00:00.000Z'],
    ['2026-03-05', null, '2026-03-06T12:00:00.000Z'],
    ['2026-03-05T00:00:01', 'America/Denver', '2026-03-05T07:00:01.000Z'],
  ])('a due date of %s in %s is over at %s', (text, zone, instant) => {
    expect(read(text, zone, true)?.[1]).toBe(instant);
  });

  test.each([
    '',
    'soon',
    '2026-13-01',
    '2026-02-30',
    '2026-03-05T24:30:00',
    '0001-01-01T00:00:00',
    '9999-12-31T23:59:59',
  ])('%j is no date', (text) => {
    expect(read(text, 'America/Denver')).toBeUndefined();
  });
});

describe('what the answers about a missing job prove (rule 3)', () => {
  const look = lookAt(BASELINE, 'search');
  const evidence = (fields: Partial<Evidence>): Evidence => ({
    look,
    detail: detailed({ permissions: { canEdit: false } }),
    detailLook: look,
    active: null,
    activeLook: look,
    amongClosed: false,
    ...fields,
  });
  const out = detailed({ dateOut: '2026-03-02' });

  test.each([
    ['in the active list, whatever else', { active: listed(), detail: out }, { kind: 'listed' }],
    ['dispatched and among the closed', { detail: out, amongClosed: true }, { kind: 'left', closed: true }],
    ['dispatched, in neither list', { detail: out }, { kind: 'left', closed: false }],
    ['not dispatched, among the closed', { amongClosed: true }, { kind: 'left', closed: true }],
    ['in neither list and locked', {}, { kind: 'suspected', as: 'cancelled' }],
    [
      'in neither list, of the lock nothing said',
      { detail: detailed() },
      { kind: 'suspected', as: 'cancelled' },
    ],
    [
      'in neither list but open for editing',
      { detail: detailed({ permissions: { canEdit: true } }) },
      { kind: 'contradictory' },
    ],
    ['unknown and in neither list', { detail: null }, { kind: 'suspected', as: 'unavailable' }],
    ['unknown but among the closed', { detail: null, amongClosed: true }, { kind: 'contradictory' }],
  ])('%s', (_, fields, verdict) => {
    expect(judge(evidence(fields))).toEqual(verdict);
  });
});

describe('what a poll means for its account (rule 11)', () => {
  const refusal = new OrderingError({ kind: 'credentials_rejected', operation: 'POST token' });
  const outage = new OrderingError({
    kind: 'unavailable',
    operation: 'GET /Jobs/active',
    retryAfterMs: 1_200_000,
  });
  const failed = (problem: unknown, accepted = false) => ({ kind: 'failed', problem, accepted }) as const;
  const good = { kind: 'good' } as const;

  /** Runs polls a minute apart; each gives state, seconds until the next one, and the types of its events. */
  function run(...results: Parameters<typeof transition>[0][]): [string, number | null, string[]][] {
    let status = {
      state: 'tracking' as Parameters<typeof transition>[1]['status']['state'],
      consecutiveFailures: 0,
      alarmed: false,
      quarantinedAt: null as number | null,
    };
    return results.map((result, n) => {
      const at = BASELINE + n * MINUTE;
      const next = transition(
        result,
        { status, account: { pollIntervalSeconds: 60 }, baselined: true, failuresBeforeAlarm: 3 },
        at,
        at + 500,
      );
      status = next;
      const inSeconds = next.nextPollAt === null ? null : (next.nextPollAt - at) / 1000;
      return [next.state, inSeconds, next.events.map((event) => event.type.replace('account.', ''))];
    });
  }

  test('broken credentials are announced once, polled ever more rarely, and their recovery is announced', () => {
    expect(run(...Array.from({ length: 6 }, () => failed(refusal)), good)).toEqual([
      ['credentials_rejected', 60, ['credentials_rejected']],
      ['credentials_rejected', 120, []],
      ['credentials_rejected', 240, []],
      ['credentials_rejected', 480, []],
      ['credentials_rejected', 900, []],
      ['credentials_rejected', 900, []],
      ['tracking', 60, ['credentials_accepted']],
    ]);
  });

  test('nothing but an answer proves that credentials are good again', () => {
    expect(
      run(failed(refusal), failed(outage), failed(outage), failed(outage), failed(outage, true), good),
    ).toEqual([
      ['credentials_rejected', 60, ['credentials_rejected']],
      ['credentials_rejected', 1200, []],
      ['credentials_rejected', 1200, []],
      ['credentials_rejected', 1200, []],
      ['failing', 1200, ['credentials_accepted', 'poll_failing']],
      ['tracking', 60, ['poll_recovered']],
    ]);
  });

  test('an alarm is raised at the third failure in a row, and its recovery announced whatever came between', () => {
    expect(
      run(
        failed(outage),
        failed(outage),
        good,
        failed(outage),
        failed(outage),
        failed(outage),
        failed(refusal),
        good,
      ),
    ).toEqual([
      ['tracking', 1200, []],
      ['tracking', 1200, []],
      ['tracking', 60, []],
      ['tracking', 1200, []],
      ['tracking', 1200, []],
      ['failing', 1200, ['poll_failing']],
      ['credentials_rejected', 480, ['credentials_rejected']],
      ['tracking', 60, ['credentials_accepted', 'poll_recovered']],
    ]);
  });

  test('another account’s credentials stop it until an operator acts (rule 9)', () => {
    expect(run({ kind: 'mismatch', expectedId: 1, actualId: 2 })).toEqual([
      ['identity_mismatch', null, ['identity_mismatch']],
    ]);
  });
});

describe('the index', () => {
  const phases: readonly Phase[] = ['listed', 'departed', 'settling', 'suspected', 'contradictory'];
  const entry = fc.record({
    fingerprint: fc.integer({ min: 0, max: 2 ** 48 - 1 }),
    phase: fc.constantFrom(...phases),
    nextCheckAt: fc.oneof(fc.constant(0), fc.integer({ min: 1, max: 2 ** 32 - 1 })),
  });
  const jobNumber = fc.oneof(
    fc.integer({ min: 0, max: 1500 }),
    fc.integer({ min: 400_000, max: 401_000 }),
    fc.integer({ min: 0, max: 10 ** 12 - 1 }),
  );
  const batch = fc.array(fc.tuple(jobNumber, fc.option(entry, { nil: undefined })), { maxLength: 400 });

  test('stored shard by shard it is read back as it was, in shards that stay small, whatever came and went', () => {
    fc.assert(
      fc.property(fc.array(batch, { maxLength: 12 }), fc.func(fc.boolean()), (batches, removes) => {
        const stored = new Map<number, Uint8Array>();
        const model = new Map<number, IndexEntry>();
        const inOrder = () =>
          [...stored].sort(([a], [b]) => a - b).map(([lowest, packed]) => ({ lowest, packed }));
        let index = JobIndex.decode([]);
        for (const [n, changes] of batches.entries()) {
          // Now and then most of it goes.
          const gone =
            n % 4 === 3
              ? [...model.keys()].filter((job) => removes(job)).map((job) => [job, undefined] as const)
              : [];
          for (const [job, value] of [...changes, ...gone]) {
            index.set(job, value);
            if (value) model.set(job, value);
            else model.delete(job);
            expect(index.get(job)).toEqual(value);
          }
          for (const { lowest, packed } of index.takeChanges()) {
            if (packed) stored.set(lowest, packed);
            else stored.delete(lowest);
          }
          expect(index.takeChanges()).toEqual([]);
          if (n % 2 === 1) index = JobIndex.decode(inOrder());
          expect(JobIndex.decode(inOrder()).size).toBe(model.size);
        }
        const read = JobIndex.decode(inOrder());
        expect(new Map(read)).toEqual(model);
        for (const shard of inOrder()) {
          expect(JobIndex.decode([shard]).size).toBeLessThanOrEqual(MAX_ENTRIES);
          expect(shard.packed.byteLength).toBeLessThan(MAX_ENTRIES * 19);
        }
      }),
      { numRuns: 40 },
    );
  });

  test('5,000 jobs with due dates take about 12 bytes each, in shards of at most 4 KB', () => {
    const index = JobIndex.decode([]);
    for (let n = 0; n < 5000; n += 1) {
      index.set(410_000 + n * 3, {
        fingerprint: (n * 7_919_000_003) % 2 ** 48,
        phase: 'listed',
        nextCheckAt: 1_772_000_000 + n,
      });
    }
    const sizes = index.takeChanges().map(({ packed }) => packed?.byteLength ?? 0);
    expect(sizes.reduce((sum, size) => sum + size, 0) / 5000).toBeLessThan(12.5);
    expect(Math.max(...sizes)).toBeLessThanOrEqual(4096);
    expect(sizes.length).toBeLessThanOrEqual(22);
  });

  test('a shard of another format is refused, not misread', () => {
    expect(() => JobIndex.decode([{ lowest: 0, packed: new Uint8Array([9, 1, 2]) }])).toThrow('format 9');
  });
});

describe('what is written', () => {
  const context = {
    startedAt: BASELINE,
    pollIntervalSeconds: 60,
    projectionVersion: 1,
    settings: DEFAULT_TRACKING,
  };
  const ref = { region: 'us', account: 'acme' };

  function workOf(jobNumber: number, events: number, text = 'x'): Work {
    const { snapshot } = polls({ jobNumber, description: text });
    return {
      jobNumber,
      entry: undefined,
      stored: undefined,
      snapshot: { ...snapshot, jobNumber },
      events: Array.from(
        { length: events },
        () => ({ type: 'job.closed', jobNumber, time: BASELINE, data: { text } }) as never,
      ),
      shown: [],
      fingerprint: jobNumber,
    };
  }

  test('chunks keep to the limits of a transaction, and never part a job from its events and its index entry', () => {
    const works = fc.uniqueArray(fc.integer({ min: 1, max: 400_000 }), { minLength: 1, maxLength: 500 });
    fc.assert(
      fc.property(
        works,
        fc.infiniteStream(fc.integer({ min: 0, max: 12 })),
        fc.infiniteStream(fc.integer({ min: 0, max: 10 })),
        (numbers, events, names) => {
          const index = JobIndex.decode([]);
          for (let n = 0; n < 30_000; n += 13)
            index.set(n * 13, { fingerprint: n, phase: 'listed', nextCheckAt: 1 });
          index.takeChanges();
          const stored = new Map<number, IndexEntry>();
          const counts = new Map(
            numbers.map((jobNumber) => [jobNumber, [events.next().value, names.next().value] as const]),
          );
          const written = new Map<number, number>();
          const discover = ({ jobNumber }: Work) => ({
            names: Array.from({ length: counts.get(jobNumber)?.[1] ?? 0 }, (_, n) => `${jobNumber} ${n}`),
            events: Array.from(
              { length: counts.get(jobNumber)?.[1] ?? 0 },
              () => ({ type: 'status.discovered', jobNumber, time: 0, data: {} }) as never,
            ),
          });
          for (const chunk of chunks(
            ref,
            numbers.map((jobNumber) => workOf(jobNumber, counts.get(jobNumber)?.[0] ?? 0)),
            index,
            context,
            discover,
          )) {
            expect(COMMIT_OVERHEAD_ACTIONS + chunk.events.length + chunk.writes.length).toBeLessThanOrEqual(
              MAX_TRANSACTION_ACTIONS,
            );
            const jobs = new Set<number>();
            for (const write of chunk.writes) {
              if (!('put' in write)) continue;
              if (write.put.sk.startsWith('SHARD#')) {
                const shard = JobIndex.decode([{ lowest: 0, packed: write.put.packed as Uint8Array }]);
                for (const [job, value] of shard) stored.set(job, value);
              } else jobs.add(Number(write.put.sk));
            }
            for (const job of jobs) {
              expect(stored.get(job)).toEqual(entryOf(workOf(job, 0)));
              expect(written.has(job)).toBe(false);
              written.set(job, chunk.events.filter((event) => event.jobNumber === job).length);
            }
            expect(chunk.events.every((event) => jobs.has(event.jobNumber ?? 0))).toBe(true);
          }
          expect(written).toEqual(
            new Map([...counts].map(([job, [events, names]]) => [job, events + names])),
          );
        },
      ),
      { numRuns: 25 },
    );
  });

  test('chunks keep to the size of a transaction: large texts make small chunks', () => {
    const index = JobIndex.decode([]);
    const works = Array.from({ length: 40 }, (_, n) => workOf(n + 1, 2, 'ü'.repeat(60_000)));
    const sizes = [...chunks(ref, works, index, context, () => ({ names: [], events: [] }))].map(
      (chunk) =>
        chunk.events.reduce((sum, event) => sum + Buffer.byteLength(JSON.stringify(event)), 0) +
        chunk.writes.reduce((sum, write) => sum + ('put' in write ? sizeOf(write.put) : 0), 0),
    );
    expect(sizes.length).toBeGreaterThan(3);
    expect(Math.max(...sizes)).toBeLessThan(MAX_TRANSACTION_BYTES);
  });
});

describe('when a job is looked at next', () => {
  const context = (minutes: number) => ({
    startedAt: BASELINE + minutes * MINUTE,
    pollIntervalSeconds: 60,
    projectionVersion: 1,
    settings: DEFAULT_TRACKING,
  });

  test('a job that left is looked at with growing gaps for seven days, and once more at their end (rule 7)', () => {
    let snapshot = settled(polls({}).snapshot, true, context(0));
    const minutes: number[] = [];
    while (snapshot.owed) {
      minutes.push((snapshot.owed.at - BASELINE) / MINUTE);
      snapshot = settled(snapshot, false, context(minutes.at(-1) ?? 0));
    }
    expect(minutes.slice(0, 5)).toEqual([5, 35, 155, 515, 1955]);
    expect(minutes.at(-1)).toBe(7 * 1440);
  });

  test('a look without an answer is tried again ever more rarely, and does not count as one of them', () => {
    let snapshot = settled(polls({}).snapshot, true, context(0));
    const seconds: number[] = [];
    for (let n = 0; n < 7; n += 1) {
      const at = snapshot.owed?.at ?? 0;
      snapshot = unanswered(snapshot, { ...context(0), startedAt: at });
      seconds.push(((snapshot.owed?.at ?? 0) - at) / 1000);
    }
    expect(seconds).toEqual([60, 120, 240, 480, 900, 900, 900]);
    expect(snapshot.settling).toEqual({ since: BASELINE, looks: 0 });
  });
});
