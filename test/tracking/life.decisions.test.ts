/** Creation, overdue, end and return of a job (shared/tracking/diff.ts). */
import { describe, expect, test } from 'vitest';
import { checkOverdue, findDueTime } from '../../shared/tracking/diff/overdue.ts';
import { type ObservationContext, sinceListed } from '../../shared/tracking/diff/step.ts';
import { applyDetail, applyEnding, trackWithoutDetail } from '../../shared/tracking/diff.ts';
import type { Snapshot } from '../../shared/tracking/snapshot.ts';
import {
  at,
  BASELINE,
  beforeBaseline,
  checked,
  detail,
  detailed,
  detailedAt,
  iso,
  knownAt,
  list,
  listed,
  listedAt,
  parcel,
  polls,
  responseAt,
  start,
  types,
} from '../support/decisions.ts';

const DAY = 86_400_000;
const nothingSaid = { dateOut: null, tracking: [], overdueFor: null };

/** A job that is first listed in a poll after the baseline. */
const appeared = (fields: object, poll: number): Snapshot => list(undefined, fields, poll).snapshot;

/** A job found by a sweep: the active list never contained it. */
const cameAndWent = (poll: number): Snapshot => ({
  jobNumber: 1,
  list: null,
  listAt: 0,
  detail: null,
  detailAt: 0,
  unsure: [],
  unproven: at(poll),
  emitted: nothingSaid,
  ended: null,
  departure: { tries: 0, suspected: null },
  settling: null,
  owed: { at: at(poll), tries: 0 },
});

const out = { dateOut: '2026-03-02T08:03:00Z' };
const shipped = { ...out, tracking: [parcel('A')] };
const shippedRecord = { ...out, shippingAddresses: [parcel('A')] };

describe('the baseline (rule 5)', () => {
  test('emits no job events, and current values count as emitted', () => {
    const view = { ...shipped, dateDue: '2026-03-01' };
    const { events, snapshot } = polls(view, view);
    expect(events.flat()).toEqual([]);
    expect(snapshot).toMatchObject({ unproven: null, owed: null });
    expect(snapshot.emitted).toEqual({
      dateOut: out.dateOut,
      tracking: [{ number: 'A', link: null }],
      overdueFor: null,
    });
  });

  test('restarted after an interruption, still emits no job events', () => {
    const first = list(undefined, {}, 0, beforeBaseline(at(0)));
    const again = list(first.snapshot, { masterJobStatus: 'Press', ...shipped }, 1, beforeBaseline(at(1)));
    expect(again.events).toEqual([]);
    expect(list(again.snapshot, { masterJobStatus: 'Press', ...shipped }, 2).events).toEqual([]);
  });
});

describe('a job that was not there before (rule 5)', () => {
  test('emits nothing before its detail is fetched, which is due at once', () => {
    const { events, snapshot } = list(undefined, shipped, 5);
    expect(events).toEqual([]);
    expect(snapshot).toMatchObject({
      unproven: listedAt(5),
      owed: { at: at(5), tries: 0 },
      emitted: nothingSaid,
    });
  });

  test.each([
    ['a minute after the baseline began', '2026-03-02T08:01:00Z', null, true],
    ['at the very time it began', '2026-03-02T08:00:00Z', null, true],
    ['a second before', '2026-03-02T07:59:59Z', null, false],
    ['in the location’s zone after', '2026-03-02T01:00:00', 'America/Denver', true],
    ['in the location’s zone before', '2026-03-02T00:59:59', 'America/Denver', false],
    ['without a zone, after it wherever that is latest', '2026-03-01T20:00:00', null, true],
    ['without a zone, before it everywhere', '2026-03-01T19:59:59', null, false],
    ['no date', null, null, false],
    ['a text that is no date', 'yesterday', null, false],
  ])('came in %s (%s %s): new %s', (_, dateIn, timezone, created) => {
    const { events, snapshot } = detail(appeared({}, 5), { dateIn, location: { timezone } }, 5, {});
    expect(events).toMatchObject(created ? [{ type: 'job.created', data: { occurredAt: dateIn } }] : []);
    expect(snapshot.unproven).toBeNull();
    expect(list(snapshot, {}, 6).events).toEqual([]);
  });

  test('an account tracked for long may have forgotten a job of more than 180 days: it is not new', () => {
    const now = BASELINE + 200 * DAY;
    const read = (dateIn: number) =>
      types(
        applyDetail(
          { ...cameAndWent(0), unproven: now },
          detailed({ dateIn: iso(dateIn) }),
          undefined,
          responseAt(now, 'detail'),
          knownAt(now),
        ),
      );
    expect(read(now - 180 * DAY)).toEqual(['job.created']);
    expect(read(now - 180 * DAY - 1)).toEqual([]);
  });

  test('no job is new while there is no baseline', () => {
    const step = applyDetail(
      appeared({}, 5),
      detailed({ dateIn: iso(at(4)) }),
      undefined,
      responseAt(detailedAt(5), 'detail'),
      beforeBaseline(at(5)),
    );
    expect(step.events).toEqual([]);
  });

  test.each([
    ['an old one', '2026-02-01'],
    ['one of unknown age', null],
  ])('%s that was only hidden is adopted as it is: dispatched, invoiced, overdue', (_, dateIn) => {
    const record = { ...shippedRecord, dateIn, invoiceNumber: 'INV-1' };
    let step = detail(appeared(shipped, 5), record, 5, shipped);
    expect(step.events).toEqual([]);
    expect(list(step.snapshot, shipped, 6).events).toEqual([]);

    const due = { dateDue: '2026-03-01T10:00:00Z' };
    step = detail(appeared(due, 5), { ...due, dateIn }, 5, due);
    expect(checkOverdue(step.snapshot, responseAt(listedAt(6)), knownAt(at(6))).events).toEqual([]);
    // Later changes are emitted.
    const later = list(step.snapshot, { dateDue: '2026-03-02T08:06:00Z' }, 6);
    expect(types(later)).toEqual(['job.due_date_changed']);
    expect(types(checkOverdue(later.snapshot, responseAt(listedAt(6)), knownAt(at(6))))).toEqual([
      'job.overdue',
    ]);
  });

  test('an old one that the active list never contained is adopted from its detail', () => {
    const { events, snapshot } = detail(cameAndWent(5), { ...shippedRecord, dateIn: '2026-02-01' }, 5);
    expect(events).toEqual([]);
    expect(detail(snapshot, shippedRecord, 6).events).toEqual([]);
    expect(types(detail(snapshot, {}, 6))).toEqual(['job.dispatch_revoked', 'job.tracking_removed']);
  });

  test('a change between its first sighting and its detail is dated from the first sighting', () => {
    const first = appeared({}, 5);
    const old = detail(first, { ...out, dateIn: '2026-02-01' }, 5, {});
    expect(old.events).toMatchObject([
      { type: 'job.dispatched', data: { observed: { since: iso(listedAt(5)) } } },
    ]);
    const created = detail(first, { dateIn: iso(at(4)) }, 8, {}).snapshot;
    const known = { ...knownAt(at(8)), lastGoodCrawlStartedAt: null };
    expect(list(created, { masterJobStatus: 'Press' }, 8, known).events).toMatchObject([
      { type: 'job.status_changed', data: { observed: { since: iso(listedAt(5)) } } },
    ]);
  });

  test.each([
    ['since the last complete crawl, when it came in after that', '2026-03-02T08:04:30Z', iso(at(4))],
    ['since the baseline, when it was hidden from crawls', '2026-03-02T08:02:00Z', iso(BASELINE)],
    [
      'since the baseline, when its date lies after its first sighting',
      '2026-03-02T08:09:00Z',
      iso(BASELINE),
    ],
    ['open, when it may have come in before', '2026-03-02T08:04:30', null],
  ])('its creation is dated %s (rule 13)', (_, dateIn, since) => {
    // The list contained it in poll 5; its detail was not fetched until poll 8.
    const poll = since === iso(at(4)) ? 5 : 8;
    const { events } = detail(appeared({}, 5), { dateIn }, poll, {});
    expect(events).toMatchObject([
      {
        type: 'job.created',
        data: { observed: { at: iso(detailedAt(poll) + 10), since, view: 'detail' } },
      },
    ]);
  });

  test.each([
    ['the list and its detail show', shipped, shippedRecord],
    ['only the list shows', shipped, {}],
    ['only its detail shows', {}, shippedRecord],
  ])(
    'created and dispatched between two observations, as %s: both are emitted, created first (rule 8)',
    (_, view, record) => {
      const { events, snapshot } = detail(appeared(view, 5), { dateIn: iso(at(4)), ...record }, 5, view);
      expect(types({ events })).toEqual(['job.created', 'job.dispatched', 'job.tracking_added']);
      expect(events[1]).toMatchObject({
        data: { occurredAt: out.dateOut, changes: { dateOut: { from: null, to: out.dateOut } } },
      });
      expect(events[2]).toMatchObject({ data: { tracking: [{ number: 'A', link: null }] } });
      expect(list(snapshot, view, 6).events).toEqual([]);
    },
  );

  test('came and went between two observations: created, dispatched, invoiced and closed, with the same window (rule 8)', () => {
    const record = { ...shippedRecord, dateIn: iso(at(4) + 1), invoiceNumber: 'INV-1' };
    const step = detail(cameAndWent(5), record, 5);
    const since = sinceListed(step.snapshot, knownAt(at(5)));
    const end = applyEnding(
      step.snapshot,
      'closed',
      responseAt(detailedAt(5), 'search'),
      since,
      knownAt(at(5)),
    );
    const events = [...step.events, ...end.events];
    expect(types({ events })).toEqual([
      'job.created',
      'job.dispatched',
      'job.tracking_added',
      'job.invoiced',
      'job.closed',
    ]);
    for (const event of events) expect(event.data).toMatchObject({ observed: { since: iso(at(4)) } });
    // When it is listed later, there is no list value to compare.
    expect(types(list(end.snapshot, shipped, 6))).toEqual(['job.reopened']);
  });

  test('without a readable detail is adopted from its first list entry; later changes are emitted', () => {
    const first = appeared({ tracking: [parcel('A')] }, 5);
    const taken = trackWithoutDetail(first, listed(shipped));
    expect(taken.unproven).toBeNull();
    expect(list(taken, { tracking: [parcel('A')] }, 6).events).toEqual([]);
    expect(types(list(taken, { ...shipped, masterJobStatus: 'Shipped' }, 6))).toEqual([
      'job.status_changed',
      'job.dispatched',
    ]);
  });

  test('without a readable detail, found only by a sweep, is adopted from its current list entry', () => {
    expect(list(trackWithoutDetail(cameAndWent(5), listed(shipped)), shipped, 6).events).toEqual([]);
    expect(trackWithoutDetail(cameAndWent(5), null)).toEqual({ ...cameAndWent(5), unproven: null });
  });
});

describe('job.overdue (rule 15)', () => {
  const due = { dateDue: '2026-03-02T08:05:00Z' };
  const check = (snapshot: Snapshot, time: number, known: ObservationContext = knownAt(time)) =>
    checked(checkOverdue(snapshot, responseAt(time), known));
  const record = (timezone: string | null) => ({ location: { timezone } });

  test('is emitted for a job observed undispatched after its due time, not at it, with that time as evidence', () => {
    const snapshot = start(due);
    expect(check(snapshot, at(5))).toEqual({ snapshot, events: [], observedStatuses: [] });
    expect(check(snapshot, at(5) + 1).events).toMatchObject([
      {
        type: 'job.overdue',
        data: { dueAt: iso(at(5)), zone: 'Z', observed: { since: iso(at(5)), at: iso(at(5) + 11) } },
      },
    ]);
  });

  test('is emitted once per due date, in any format of the date', () => {
    const { snapshot } = check(start(due), at(6));
    expect(check(snapshot, at(7)).events).toEqual([]);
    const reworded = list(snapshot, { dateDue: '2026-03-02T09:05:00+01:00' }, 7).snapshot;
    expect(check(reworded, at(8)).events).toEqual([]);
    const moved = list(snapshot, { dateDue: '2026-03-02T08:07:00Z' }, 7).snapshot;
    expect(types(check(moved, at(8)))).toEqual(['job.overdue']);
  });

  test('is not emitted for jobs of the baseline that were overdue already', () => {
    const { snapshot, events, observedStatuses } = check(start(due), at(6), beforeBaseline(at(6)));
    expect([events, observedStatuses]).toEqual([[], []]);
    expect(check(snapshot, at(7)).events).toEqual([]);
  });

  test.each([
    ['a job without a due date', () => start()],
    ['a due date that is no date', () => start({ dateDue: 'soon' })],
    ['a dispatched job', () => start({ ...due, ...out })],
    ['a job dispatched by its detail alone', () => detail(start(due), out, 1, due).snapshot],
    ['a job first observed as dispatched, without a detail', () => appeared({ ...due, ...out }, 5)],
    ['a job that the list never showed', () => cameAndWent(5)],
  ])('not for %s', (_, job) => {
    const snapshot = job();
    expect(findDueTime(snapshot)).toBeUndefined();
    expect(check(snapshot, at(5000)).events).toEqual([]);
  });

  test('a job whose dispatch was revoked is due again', () => {
    const sent = list(start(due), { ...due, ...out }, 1).snapshot;
    const revoked = detail(list(sent, due, 2).snapshot, due, 2, due).snapshot;
    expect(findDueTime(revoked)).toEqual({ ...due, at: at(5), zone: 'Z' });
  });

  test.each([
    [
      'the location’s zone',
      '2026-03-02T01:05:00',
      'America/Denver',
      '2026-03-02T08:05:00.000Z',
      'America/Denver',
    ],
    ['UTC−12 without one', '2026-03-02T01:05:00', null, '2026-03-02T13:05:00.000Z', '-12:00'],
    ['the end of the day', '2026-03-02', 'America/Denver', '2026-03-03T07:00:00.000Z', 'America/Denver'],
    ['midnight, which is that too', '2026-03-02T00:00:00', null, '2026-03-03T12:00:00.000Z', '-12:00'],
  ])('its due time: %s', (_, dateDue, timezone, instant, zone) => {
    const { snapshot } = detail(start({ dateDue }), record(timezone), 1, { dateDue });
    expect(findDueTime(snapshot)).toEqual({ dateDue, at: Date.parse(instant), zone });
  });

  test('a known location stays known while the detail lacks it, and changes with the detail', () => {
    const view = { dateDue: '2026-03-02T01:05:00' };
    const first = detail(start(view), record('America/Denver'), 1, view).snapshot;
    expect(findDueTime(detail(first, {}, 2, view).snapshot)?.zone).toBe('America/Denver');
    expect(findDueTime(detail(first, record('Asia/Tokyo'), 2, view).snapshot)?.zone).toBe('Asia/Tokyo');
  });

  test('a detail fetch does not replace the list observation', () => {
    const { snapshot } = detail(start(due), due, 6, due);
    expect(types(check(snapshot, at(7)))).toEqual(['job.overdue']);
  });

  test('is emitted for a new job that is already overdue', () => {
    const view = { dateDue: '2026-03-02T08:04:30Z' };
    const created = detail(appeared(view, 5), { ...view, dateIn: iso(at(4)) }, 5, view);
    expect(types(created)).toEqual(['job.created']);
    expect(types(check(created.snapshot, listedAt(5)))).toEqual(['job.overdue']);
  });
});

describe('the end of a job (rules 3 and 7)', () => {
  const left = (): Snapshot => ({ ...start(), departure: { tries: 1, suspected: null } });
  const read = (): Snapshot => detail(left(), { jobStatus: 'Void' }, 4).snapshot;
  const endings = ['closed', 'cancelled', 'unavailable'] as const;
  const end = (before: Snapshot, ending: (typeof endings)[number], since = at(2)) =>
    checked(applyEnding(before, ending, responseAt(at(5), 'search'), since, knownAt(at(5))));

  test.each([
    ['closed', read, {}],
    ['cancelled', read, { inferred: true, jobStatus: 'Void' }],
    ['cancelled', left, { inferred: true, jobStatus: null }],
    // Its detail is gone, so it has no status.
    ['unavailable', read, { inferred: true, jobStatus: null }],
  ] as const)('%s: one event with its evidence', (ending, before, data) => {
    const { events, snapshot, observedStatuses } = end(before(), ending);
    expect(events).toEqual([
      {
        type: `job.${ending}`,
        jobNumber: 1,
        time: at(5) + 10,
        data: {
          changes: {},
          job: expect.objectContaining({ jobNumber: 1, status: before === read ? 'Void' : 'Proof' }),
          observed: { at: iso(at(5) + 10), since: iso(at(2)), view: 'search' },
          ...data,
        },
      },
    ]);
    expect(observedStatuses).toEqual([]);
    expect(snapshot).toMatchObject({
      ended: ending,
      departure: null,
      // Its detail is fetched for some days from now on.
      settling: { since: at(5), fetches: 0 },
    });
  });

  test('without a known start has an open window', () => {
    expect(end(read(), 'closed', 0).events).toMatchObject([{ data: { observed: { since: null } } }]);
  });

  test.each(endings)('%s and listed again: reopened, then its other changes', (ending) => {
    const { events, snapshot } = list(end(read(), ending).snapshot, { masterJobStatus: 'Press' }, 8);
    expect(events).toMatchObject([
      {
        type: 'job.reopened',
        data: {
          previousOutcome: ending,
          changes: {},
          observed: { since: iso(listedAt(0)), at: iso(listedAt(8) + 10) },
        },
      },
      { type: 'job.status_changed', data: { changes: { status: { from: 'Proof', to: 'Press' } } } },
    ]);
    // It is a listed job like any other, and its detail is due.
    expect(snapshot).toMatchObject({
      ended: null,
      departure: null,
      settling: null,
      owed: { at: at(8), tries: 0 },
    });
    expect(list(snapshot, { masterJobStatus: 'Press' }, 9).events).toEqual([]);
  });

  test('relisted before its end was emitted, it was not reopened', () => {
    expect(list(left(), {}, 8).events).toEqual([]);
    expect(list(left(), {}, 8).snapshot.departure).toBeNull();
  });

  test('settling starts when the departure is known, and continues with every fetch', () => {
    expect(read()).toMatchObject({ departure: null, settling: { since: at(4), fetches: 0 } });
    const settling = { since: at(4), fetches: 3 };
    expect(detail({ ...read(), settling }, {}, 6).snapshot.settling).toEqual(settling);
  });
});
