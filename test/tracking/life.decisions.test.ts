/** How a job begins, is overdue, ends and comes back (shared/tracking/diff.ts). */
import { describe, expect, test } from 'vitest';
import {
  announceEnding,
  checkOverdue,
  dueOf,
  type Known,
  seenInDetail,
  sinceListed,
  takenOn,
} from '../../shared/tracking/diff.ts';
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
  lookAt,
  parcel,
  polls,
  start,
  types,
} from '../support/decisions.ts';

const DAY = 86_400_000;
const nothingSaid = { dateOut: null, tracking: [], overdueFor: null };

/** A job that the list shows for the first time in a poll after the baseline. */
const appeared = (fields: object, poll: number): Snapshot => list(undefined, fields, poll).snapshot;

/** A job of which a sweep found the number: the active list never showed it. */
const cameAndWent = (poll: number): Snapshot => ({
  jobNumber: 1,
  list: null,
  listAt: 0,
  detail: null,
  detailAt: 0,
  unsure: [],
  unproven: at(poll),
  announced: nothingSaid,
  ended: null,
  departure: { tries: 0, suspected: null },
  settling: null,
  owed: { at: at(poll), tries: 0 },
});

const out = { dateOut: '2026-03-02T08:03:00Z' };
const shipped = { ...out, tracking: [parcel('A')] };
const shippedRecord = { ...out, shippingAddresses: [parcel('A')] };

describe('the baseline (rule 5)', () => {
  test('nothing of it is announced, and what the jobs are then counts as announced', () => {
    const view = { ...shipped, dateDue: '2026-03-01' };
    const { events, snapshot } = polls(view, view);
    expect(events.flat()).toEqual([]);
    expect(snapshot).toMatchObject({ unproven: null, owed: null });
    expect(snapshot.announced).toEqual({
      dateOut: out.dateOut,
      tracking: [{ number: 'A', link: null }],
      overdueFor: null,
    });
  });

  test('begun anew after it was cut off, still nothing is announced', () => {
    const first = list(undefined, {}, 0, beforeBaseline(at(0)));
    const again = list(first.snapshot, { masterJobStatus: 'Press', ...shipped }, 1, beforeBaseline(at(1)));
    expect(again.events).toEqual([]);
    expect(list(again.snapshot, { masterJobStatus: 'Press', ...shipped }, 2).events).toEqual([]);
  });
});

describe('a job that was not there before (rule 5)', () => {
  test('nothing is said of it before its own record is read, which is owed at once', () => {
    const { events, snapshot } = list(undefined, shipped, 5);
    expect(events).toEqual([]);
    expect(snapshot).toMatchObject({
      unproven: listedAt(5),
      owed: { at: at(5), tries: 0 },
      announced: nothingSaid,
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
        seenInDetail(
          { ...cameAndWent(0), unproven: now },
          detailed({ dateIn: iso(dateIn) }),
          undefined,
          lookAt(now, 'detail'),
          knownAt(now),
        ),
      );
    expect(read(now - 180 * DAY)).toEqual(['job.created']);
    expect(read(now - 180 * DAY - 1)).toEqual([]);
  });

  test('nothing is new while there is no baseline', () => {
    const step = seenInDetail(
      appeared({}, 5),
      detailed({ dateIn: iso(at(4)) }),
      undefined,
      lookAt(detailedAt(5), 'detail'),
      beforeBaseline(at(5)),
    );
    expect(step.events).toEqual([]);
  });

  test.each([
    ['an old one', '2026-02-01'],
    ['one of unknown age', null],
  ])('%s that was only hidden is taken over as it is: dispatched, invoiced, overdue', (_, dateIn) => {
    const record = { ...shippedRecord, dateIn, invoiceNumber: 'INV-1' };
    let step = detail(appeared(shipped, 5), record, 5, shipped);
    expect(step.events).toEqual([]);
    expect(list(step.snapshot, shipped, 6).events).toEqual([]);

    const due = { dateDue: '2026-03-01T10:00:00Z' };
    step = detail(appeared(due, 5), { ...due, dateIn }, 5, due);
    expect(checkOverdue(step.snapshot, lookAt(listedAt(6)), knownAt(at(6))).events).toEqual([]);
    // What it becomes from now on is said.
    const later = list(step.snapshot, { dateDue: '2026-03-02T08:06:00Z' }, 6);
    expect(types(later)).toEqual(['job.due_date_changed']);
    expect(types(checkOverdue(later.snapshot, lookAt(listedAt(6)), knownAt(at(6))))).toEqual(['job.overdue']);
  });

  test('an old one that the active list never showed is taken over as its record shows it', () => {
    const { events, snapshot } = detail(cameAndWent(5), { ...shippedRecord, dateIn: '2026-02-01' }, 5);
    expect(events).toEqual([]);
    expect(detail(snapshot, shippedRecord, 6).events).toEqual([]);
    expect(types(detail(snapshot, {}, 6))).toEqual(['job.dispatch_revoked', 'job.tracking_removed']);
  });

  test('what moved between its first sighting and its record is dated from the first sighting', () => {
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
    // The list showed it in poll 5, with its record it took until poll 8.
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
    ['the list and its record show', shipped, shippedRecord],
    ['only the list shows', shipped, {}],
    ['only its record shows', {}, shippedRecord],
  ])(
    'created and dispatched between two looks, as %s: both are said, created first (rule 8)',
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

  test('came and went between two looks: created, dispatched, invoiced and closed, all dated alike (rule 8)', () => {
    const record = { ...shippedRecord, dateIn: iso(at(4) + 1), invoiceNumber: 'INV-1' };
    const step = detail(cameAndWent(5), record, 5);
    const since = sinceListed(step.snapshot, knownAt(at(5)));
    const end = announceEnding(
      step.snapshot,
      'closed',
      lookAt(detailedAt(5), 'search'),
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
    // When the active list shows it after all, there is nothing to compare that with.
    expect(types(list(end.snapshot, shipped, 6))).toEqual(['job.reopened']);
  });

  test('whose record can’t be read is taken on as the list first showed it; what it showed since is said', () => {
    const first = appeared({ tracking: [parcel('A')] }, 5);
    const taken = takenOn(first, listed(shipped));
    expect(taken.unproven).toBeNull();
    expect(list(taken, { tracking: [parcel('A')] }, 6).events).toEqual([]);
    expect(types(list(taken, { ...shipped, masterJobStatus: 'Shipped' }, 6))).toEqual([
      'job.status_changed',
      'job.dispatched',
    ]);
  });

  test('whose record can’t be read and which only a sweep had found is taken on as it is listed now', () => {
    expect(list(takenOn(cameAndWent(5), listed(shipped)), shipped, 6).events).toEqual([]);
    expect(takenOn(cameAndWent(5), null)).toEqual({ ...cameAndWent(5), unproven: null });
  });
});

describe('overdue (rule 15)', () => {
  const due = { dateDue: '2026-03-02T08:05:00Z' };
  const check = (snapshot: Snapshot, time: number, known: Known = knownAt(time)) =>
    checked(checkOverdue(snapshot, lookAt(time), known));
  const record = (timezone: string | null) => ({ location: { timezone } });

  test('is said of a job seen undispatched after its due instant, not at it, and dated by it', () => {
    const snapshot = start(due);
    expect(check(snapshot, at(5))).toEqual({ snapshot, events: [], shown: [] });
    expect(check(snapshot, at(5) + 1).events).toMatchObject([
      {
        type: 'job.overdue',
        data: { dueAt: iso(at(5)), zone: 'Z', observed: { since: iso(at(5)), at: iso(at(5) + 11) } },
      },
    ]);
  });

  test('is said once per due date, in whatever form that is given', () => {
    const { snapshot } = check(start(due), at(6));
    expect(check(snapshot, at(7)).events).toEqual([]);
    const reworded = list(snapshot, { dateDue: '2026-03-02T09:05:00+01:00' }, 7).snapshot;
    expect(check(reworded, at(8)).events).toEqual([]);
    const moved = list(snapshot, { dateDue: '2026-03-02T08:07:00Z' }, 7).snapshot;
    expect(types(check(moved, at(8)))).toEqual(['job.overdue']);
  });

  test('of the baseline’s jobs it is not said when they were overdue already', () => {
    const { snapshot, events, shown } = check(start(due), at(6), beforeBaseline(at(6)));
    expect([events, shown]).toEqual([[], []]);
    expect(check(snapshot, at(7)).events).toEqual([]);
  });

  test.each([
    ['a job without a due date', () => start()],
    ['a due date that is no date', () => start({ dateDue: 'soon' })],
    ['a dispatched job', () => start({ ...due, ...out })],
    ['a job dispatched by its record alone', () => detail(start(due), out, 1, due).snapshot],
    ['a job first seen dispatched, whose record is not read yet', () => appeared({ ...due, ...out }, 5)],
    ['a job that the list never showed', () => cameAndWent(5)],
  ])('not of %s', (_, job) => {
    const snapshot = job();
    expect(dueOf(snapshot)).toBeUndefined();
    expect(check(snapshot, at(5000)).events).toEqual([]);
  });

  test('a job whose dispatch was revoked is due again', () => {
    const sent = list(start(due), { ...due, ...out }, 1).snapshot;
    const revoked = detail(list(sent, due, 2).snapshot, due, 2, due).snapshot;
    expect(dueOf(revoked)).toEqual({ at: at(5), zone: 'Z' });
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
  ])('its instant: %s', (_, dateDue, timezone, instant, zone) => {
    const { snapshot } = detail(start({ dateDue }), record(timezone), 1, { dateDue });
    expect(dueOf(snapshot)).toEqual({ at: Date.parse(instant), zone });
  });

  test('a location once known stays known while the record does not say it, and moves when it does', () => {
    const view = { dateDue: '2026-03-02T01:05:00' };
    const first = detail(start(view), record('America/Denver'), 1, view).snapshot;
    expect(dueOf(detail(first, {}, 2, view).snapshot)?.zone).toBe('America/Denver');
    expect(dueOf(detail(first, record('Asia/Tokyo'), 2, view).snapshot)?.zone).toBe('Asia/Tokyo');
  });

  test('a look at its record does not take its place', () => {
    const { snapshot } = detail(start(due), due, 6, due);
    expect(types(check(snapshot, at(7)))).toEqual(['job.overdue']);
  });

  test('of a new job that is overdue already it is said as well', () => {
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
    checked(announceEnding(before, ending, lookAt(at(5), 'search'), since, knownAt(at(5))));

  test.each([
    ['closed', read, {}],
    ['cancelled', read, { inferred: true, jobStatus: 'Void' }],
    ['cancelled', left, { inferred: true, jobStatus: null }],
    // Its record is gone, so it says nothing of a status.
    ['unavailable', read, { inferred: true, jobStatus: null }],
  ] as const)('%s: one event, with what it is inferred from and when', (ending, before, data) => {
    const { events, snapshot, shown } = end(before(), ending);
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
    expect(shown).toEqual([]);
    expect(snapshot).toMatchObject({
      ended: ending,
      departure: null,
      // It is looked at for some days from now on.
      settling: { since: at(5), looks: 0 },
    });
  });

  test('of which it is not known since when says so', () => {
    expect(end(read(), 'closed', 0).events).toMatchObject([{ data: { observed: { since: null } } }]);
  });

  test.each(endings)('%s and in the list again: reopened, then what else changed', (ending) => {
    const { events, snapshot } = list(end(read(), ending).snapshot, { masterJobStatus: 'Press' }, 8);
    expect(events).toMatchObject([
      {
        type: 'job.reopened',
        data: { was: ending, changes: {}, observed: { since: iso(listedAt(0)), at: iso(listedAt(8) + 10) } },
      },
      { type: 'job.status_changed', data: { changes: { status: { from: 'Proof', to: 'Press' } } } },
    ]);
    // It is a listed job like any other, and its record is owed.
    expect(snapshot).toMatchObject({
      ended: null,
      departure: null,
      settling: null,
      owed: { at: at(8), tries: 0 },
    });
    expect(list(snapshot, { masterJobStatus: 'Press' }, 9).events).toEqual([]);
  });

  test('back before its end was announced, it was not reopened', () => {
    expect(list(left(), {}, 8).events).toEqual([]);
    expect(list(left(), {}, 8).snapshot.departure).toBeNull();
  });

  test('the time of settling begins when it is known to have left, and goes on with every look', () => {
    expect(read()).toMatchObject({ departure: null, settling: { since: at(4), looks: 0 } });
    const settling = { since: at(4), looks: 3 };
    expect(detail({ ...read(), settling }, {}, 6).snapshot.settling).toEqual(settling);
  });
});
