/** A job in list and detail, poll by poll, for tests of pure decisions. */
import { expect } from 'vitest';
import { catalogue, type EventType } from '../../shared/events/catalogue.ts';
import type { EventDraft } from '../../shared/events/event.ts';
import { ActiveJob, JobDetail } from '../../shared/ordering/schemas.ts';
import type { ListEntry, ObservationContext, Step, ViewResponse } from '../../shared/tracking/diff/step.ts';
import { applyDetail, applyListEntry } from '../../shared/tracking/diff.ts';
import type { Snapshot } from '../../shared/tracking/snapshot.ts';
import { type DetailView, detailView, type ListView, listView } from '../../shared/tracking/views.ts';

export const MINUTE = 60_000;
/** Start of the crawl that became the baseline. The following polls are one minute apart. */
export const BASELINE = Date.parse('2026-03-02T08:00:00Z');

/** Start of a poll (epoch ms). The list is read one second later, the job detail two seconds later. */
export const at = (poll: number): number => BASELINE + poll * MINUTE;
export const listedAt = (poll: number): number => at(poll) + 1000;
export const detailedAt = (poll: number): number => at(poll) + 2000;
export const iso = (time: number): string => new Date(time).toISOString();

/** A list view, from the fields that the ordering API sends. */
export const listed = (fields: object = {}): ListView =>
  listView(ActiveJob.parse({ jobNumber: 1, masterJobStatus: 'Proof', ...fields }));
/** A detail view, likewise. */
export const detailed = (fields: object = {}): DetailView =>
  detailView(JobDetail.parse({ jobNumber: 1, jobStatus: 'Proof', ...fields }));

export const parcel = (trackingNumber: string | null, trackingLink: string | null = null) => ({
  trackingNumber,
  trackingLink,
});

export const responseAt = (time: number, view: ViewResponse['view'] = 'list'): ViewResponse => ({
  requestedAt: time,
  respondedAt: time + 10,
  view,
});
/** The state of the account in a poll: tracked since the baseline, last crawled a minute ago. */
export const knownAt = (time: number): ObservationContext => ({
  startedAt: time,
  lastGoodCrawlStartedAt: time - MINUTE,
  baselineStartedAt: BASELINE,
  newAbove: null,
});
export const beforeBaseline = (time: number): ObservationContext => ({
  ...knownAt(time),
  baselineStartedAt: null,
});

export const listEntry = (fields: object, poll: number): ListEntry => ({
  view: listed(fields),
  response: responseAt(listedAt(poll)),
});

/** Compares a listed job in a poll. `before` is undefined if it was never listed. */
export function list(before: Snapshot | undefined, fields: object, poll: number, known = knownAt(at(poll))) {
  return checked(applyListEntry(1, before, listEntry(fields, poll), known));
}

/** Compares a job detail in a poll. `shown`: the list view of the job then; absent if the job is delisted. */
export function detail(before: Snapshot, fields: object, poll: number, shown?: object) {
  const response = responseAt(detailedAt(poll), 'detail');
  return checked(
    applyDetail(before, detailed(fields), shown && listEntry(shown, poll), response, knownAt(at(poll))),
  );
}

/**
 * Compares the list views of one job, poll by poll, beginning with the baseline. Returns the events of each poll, and the final
 * snapshot.
 */
export function polls(...views: object[]): { snapshot: Snapshot; events: readonly EventDraft[][] } {
  let snapshot: Snapshot | undefined;
  const events = views.map((view, n) => {
    const step = list(snapshot, view, n, n === 0 ? beforeBaseline(at(0)) : knownAt(at(n)));
    snapshot = step.snapshot;
    return [...step.events];
  });
  return { snapshot: snapshot as Snapshot, events };
}

/** A job of the baseline. */
export const start = (fields: object = {}): Snapshot => polls(fields).snapshot;

export const types = (step: { events: readonly EventDraft[] }): string[] =>
  step.events.map((event) => event.type);

/** Returns a step after checking that its events conform to the catalogue. */
export function checked<S extends Step>(step: S): S {
  for (const { type, data } of step.events) {
    const parsed = catalogue[type as EventType].data().safeParse({ account: 'acme', region: 'us', ...data });
    expect(parsed.error, type).toBeUndefined();
  }
  return step;
}
