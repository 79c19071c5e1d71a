/** Decisions about detail fetches: order, rotation, due times without a zone, entries of closed jobs. */
import { describe, expect, it } from 'vitest';
import { OrderingError } from '../../shared/ordering/errors.ts';
import { ActiveJob, JobDetail } from '../../shared/ordering/schemas.ts';
import { classifyDeparture, isDetailError } from '../../shared/tracking/departures.ts';
import { selectFetches } from '../../shared/tracking/detail-fetches.ts';
import { applyClosedEntry, hasUnemittedValues } from '../../shared/tracking/diff/closed-entry.ts';
import { createSnapshot } from '../../shared/tracking/diff/creation.ts';
import { findEarliestDueTime } from '../../shared/tracking/diff/overdue.ts';
import type { ObservationContext } from '../../shared/tracking/diff/step.ts';
import { applyDetail, applyListEntry } from '../../shared/tracking/diff.ts';
import { findRotationStart, turnsBetween } from '../../shared/tracking/rotation.ts';
import type { Snapshot } from '../../shared/tracking/snapshot.ts';
import { detailView, type ListView, listView } from '../../shared/tracking/views.ts';
import type { Work } from '../../shared/tracking/work.ts';

const NOW = Date.parse('2026-03-02T08:00:00Z');
const DAY_MS = 86_400_000;
const LOOK = { requestedAt: NOW, respondedAt: NOW + 1, view: 'search' } as const;
const known: ObservationContext = {
  startedAt: NOW,
  lastGoodCrawlStartedAt: NOW - 60_000,
  baselineStartedAt: NOW - DAY_MS,
  newAbove: null,
};

const view = (fields: Partial<ActiveJob> = {}): ListView =>
  listView(ActiveJob.parse({ jobNumber: 1, ...fields }));
const snapshot = (fields: Partial<Snapshot> = {}): Snapshot => ({
  ...createSnapshot(1, view(), LOOK.requestedAt),
  ...fields,
});

describe('selectFetches', () => {
  const work = (jobNumber: number, owedSince: number, more: Partial<Work> = {}): Work => ({
    ...{
      jobNumber,
      entry: undefined,
      stored: undefined,
      events: [],
      observedStatuses: [],
      fingerprint: 0,
      owedSince,
    },
    listed: { view: view(), response: LOOK },
    snapshot: snapshot(),
    ...more,
  });
  const numbers = (works: readonly Work[], budget: number) => {
    const { queue, left } = selectFetches(works, budget);
    return { queue: queue.map(({ jobNumber }) => jobNumber), left };
  };
  const isNew = { snapshot: snapshot({ unproven: NOW }) };

  it('selects the longest waiting first', () => {
    expect(numbers([work(1, 30), work(2, 10), work(3, 20)], 60)).toEqual({ queue: [2, 3, 1], left: 0 });
  });

  it('selects new jobs, departures and hints before the others, and leaves a quarter to the longest waiting', () => {
    const { listed: _, ...departed } = work(7, 90);
    const urgent = [work(5, 80, isNew), work(6, 85, { hinted: true }), departed, work(8, 95, isNew)];
    const works = [work(1, 10), work(2, 20), work(3, 30), ...urgent];
    expect(numbers(works, 4)).toEqual({ queue: [5, 6, 7, 1], left: 3 });
  });

  it('selects a quarter of a backlog, and at most ten times the usual number', () => {
    const backlog = Array.from({ length: 2_000 }, (_, n) => work(n, n));
    expect(selectFetches(backlog, 60)).toMatchObject({ queue: { length: 500 }, left: 1_500 });
    expect(selectFetches(backlog, 6)).toMatchObject({ queue: { length: 60 }, left: 1_940 });
  });

  it('selects jobs of the rotation last, only within the usual number, and never counts them as remaining', () => {
    const rotated = [work(8, 1, { turn: 1 }), work(9, 2, { turn: 2 })];
    expect(numbers([...rotated, work(1, 50)], 2)).toEqual({ queue: [1, 8], left: 0 });
    expect(numbers([...rotated, work(1, 50), work(2, 60)], 2)).toEqual({ queue: [1, 2], left: 0 });
  });
});

describe('turnsBetween', () => {
  const jobs = Array.from({ length: 500 }, (_, n) => 410_000 + n);

  it('gives every job one turn a day, evenly spread', () => {
    const counts = new Map<number, number>();
    let most = 0;
    for (let at = NOW; at < NOW + DAY_MS; at += DAY_MS / 48) {
      const turns = turnsBetween(jobs, at, at + DAY_MS / 48, 1_000);
      expect(turns.through).toBe(at + DAY_MS / 48);
      most = Math.max(most, turns.jobNumbers.length);
      for (const job of turns.jobNumbers) counts.set(job, (counts.get(job) ?? 0) + 1);
    }
    expect(counts.size).toBe(500);
    expect([...counts.values()].every((count) => count === 1)).toBe(true);
    expect(most).toBeLessThan(20);
  });

  it('resumes after the last turn within the limit', () => {
    const all = turnsBetween(jobs, NOW, NOW + 3_600_000, 1_000).jobNumbers;
    const first = turnsBetween(jobs, NOW, NOW + 3_600_000, 5);
    const rest = turnsBetween(jobs, first.through, NOW + 3_600_000, 1_000);
    expect([...first.jobNumbers, ...rest.jobNumbers]).toEqual(all);
    expect(turnsBetween(jobs, NOW, NOW + 3_600_000, 0)).toEqual({ jobNumbers: [], through: NOW });
  });

  it('fetches every job in turn if more jobs are listed than can be fetched in a day', () => {
    const fetched = new Map<number, number>();
    let through: number | null = null;
    for (let day = 1; day <= 20; day += 1) {
      const startedAt = NOW + day * DAY_MS;
      const status = { rotatedThrough: through, lastGoodCrawlStartedAt: startedAt - DAY_MS };
      const turns = turnsBetween(jobs, findRotationStart(status, startedAt), startedAt, 30);
      for (const job of turns.jobNumbers) fetched.set(job, (fetched.get(job) ?? 0) + 1);
      through = turns.through === startedAt ? null : turns.through;
    }
    expect(fetched.size).toBe(jobs.length);
    expect(Math.max(...fetched.values())).toBe(2);
  });
});

describe('findEarliestDueTime', () => {
  it('is the due time in UTC+14 while the zone is unknown', () => {
    const due = (dateDue: string) => findEarliestDueTime(snapshot({ list: view({ dateDue }) }));
    expect(due('2026-03-03T10:00:00')).toBe(Date.parse('2026-03-02T20:00:00Z'));
    expect(due('2026-03-03')).toBe(Date.parse('2026-03-03T10:00:00Z'));
    expect(due('2026-03-03T10:00:00+01:00')).toBeUndefined();
  });

  it('is not needed for a job whose detail was read, that has no due date, or that was dispatched', () => {
    const list = view({ dateDue: '2026-03-03' });
    const detail = detailView(JobDetail.parse({ jobNumber: 1 }));
    expect(findEarliestDueTime(snapshot({ list, detail }))).toBeUndefined();
    expect(findEarliestDueTime(snapshot())).toBeUndefined();
    expect(findEarliestDueTime(snapshot({ list: null }))).toBeUndefined();
    const out = view({ dateDue: '2026-03-03', dateOut: '2026-03-01' });
    expect(findEarliestDueTime(snapshot({ list: out }))).toBeUndefined();
  });
});

describe('A job among the closed ones whose detail cannot be read', () => {
  const problem = (fields: Partial<ConstructorParameters<typeof OrderingError>[0]>) =>
    new OrderingError({ kind: 'server_error', operation: 'GET /Jobs/{jobNumber}', ...fields });
  const parcel = { trackingNumber: 'T1', trackingLink: null };

  it('is closed, unless it is in the active list', () => {
    const evidence = {
      ...{ response: LOOK, detail: null, detailResponse: LOOK, active: null, activeResponse: LOOK },
      ...{ amongClosed: true, searched: true, detailProblem: problem({}) },
    };
    expect(classifyDeparture(evidence)).toEqual({ kind: 'left', closed: true });
    expect(classifyDeparture({ ...evidence, active: view() })).toEqual({ kind: 'listed' });
  });

  it('is a fault of the detail unless the credentials or the connection failed', () => {
    expect(isDetailError(problem({}))).toBe(true);
    expect(isDetailError(problem({ kind: 'forbidden' }))).toBe(true);
    expect(isDetailError(problem({ kind: 'unauthorized' }))).toBe(false);
    expect(isDetailError(problem({ kind: 'network' }))).toBe(false);
    expect(isDetailError(problem({ operation: 'GET /Jobs/active' }))).toBe(false);
    expect(isDetailError(new Error('other'))).toBe(false);
  });

  it('has a first dispatch and first tracking by its entry, and no correction', () => {
    const entry = { view: view({ dateOut: '2026-03-02T07:00:00Z', tracking: [parcel] }), response: LOOK };
    const first = applyClosedEntry(snapshot(), entry, known);
    expect(first.events.map(({ type }) => type)).toEqual(['job.dispatched', 'job.tracking_added']);
    expect(first.events[0]?.data).toMatchObject({ zone: null });
    const located = detailView(JobDetail.parse({ jobNumber: 1, location: { timezone: 'Pacific/Auckland' } }));
    expect(applyClosedEntry({ ...snapshot(), detail: located }, entry, known).events[0]?.data).toMatchObject({
      zone: 'Pacific/Auckland',
    });
    const corrected = view({ dateOut: '2026-03-02T06:00:00Z', tracking: [parcel] });
    expect(applyClosedEntry(first.snapshot, { view: corrected, response: LOOK }, known).events).toEqual([]);
    expect(hasUnemittedValues(first.snapshot, entry.view)).toBe(false);
    expect(hasUnemittedValues(first.snapshot, corrected)).toBe(true);
    expect(hasUnemittedValues(first.snapshot, view())).toBe(false);
    const second = view({ tracking: [parcel, { trackingNumber: 'T2', trackingLink: null }] });
    expect(hasUnemittedValues(first.snapshot, second)).toBe(true);
    // A new name of a status waits for the detail, for which the lookup is read.
    const shown = { view: view({ masterJobStatus: 'Shipped' }), response: LOOK };
    expect(applyClosedEntry(snapshot(), shown, known).observedStatuses).toEqual([]);
    const linked = view({ tracking: [{ ...parcel, trackingLink: 'https://carrier.example/T1' }] });
    expect(hasUnemittedValues(first.snapshot, linked)).toBe(true);
    const known2 = applyClosedEntry(snapshot(), { view: linked, response: LOOK }, known).snapshot;
    expect([linked, view({ tracking: [parcel] })].map((entry) => hasUnemittedValues(known2, entry))).toEqual([
      false,
      false,
    ]);
  });

  it('is not dispatched again by an outdated entry after the dispatch was revoked', () => {
    const entry = { view: view({ dateOut: '2026-03-02T07:00:00Z', tracking: [parcel] }), response: LOOK };
    const outdated = applyClosedEntry({ ...snapshot(), returned: true }, entry, known);
    expect(outdated).toMatchObject({ events: [], snapshot: { emitted: { dateOut: null, tracking: [] } } });
  });

  it('has a corrected dispatch date if the list shows another one later', () => {
    const entry = { view: view({ dateOut: '2026-03-02T07:00:00Z' }), response: LOOK };
    const { snapshot: closed } = applyClosedEntry(snapshot(), entry, known);
    const corrected = { view: view({ dateOut: '2026-03-02T06:00:00Z' }), response: LOOK };
    expect(applyListEntry(1, closed, corrected, known).events).toMatchObject([
      {
        type: 'job.updated',
        data: { changes: { dateOut: { from: '2026-03-02T07:00:00Z', to: '2026-03-02T06:00:00Z' } } },
      },
    ]);
    expect(applyListEntry(1, closed, entry, known).events).toEqual([]);
    // The first detail, too, shows the corrected date, or still the former one.
    const withDetail = (dateOut: string | null) => ({
      ...closed,
      detail: detailView(JobDetail.parse({ jobNumber: 1, dateOut })),
    });
    const types = (dateOut: string | null) =>
      applyListEntry(1, withDetail(dateOut), corrected, known).events.map(({ type }) => type);
    expect(types('2026-03-02T06:00:00Z')).toContain('job.updated');
    expect(types('2026-03-02T07:00:00Z')).not.toContain('job.updated');
    // A detail from before the dispatch.
    expect(types(null)).toContain('job.updated');
  });

  it('has a revoked dispatch since a time before the first detail that lacked it', () => {
    const read = { ...snapshot(), detail: detailView(JobDetail.parse({ jobNumber: 1 })), detailAt: NOW - 9 };
    const entry = { view: view({ dateOut: '2026-03-02T07:00:00Z' }), response: LOOK };
    const { snapshot: closed } = applyClosedEntry(read, entry, known);
    const detail = detailView(JobDetail.parse({ jobNumber: 1 }));
    const lacking = applyDetail(closed, detail, undefined, { ...LOOK, requestedAt: NOW + 60_000 }, known);
    expect([lacking.events, lacking.snapshot.detailAt]).toEqual([[], NOW - 9]);
  });
});
