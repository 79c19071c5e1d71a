/** The first observation of a job, and whether the job is new or was only hidden (rule 5). Pure. */

import { CLOCK_TOLERANCE_MS } from '../clock-tolerance.ts';
import { KEPT_DAYS, type Snapshot } from '../snapshot.ts';
import { readTimes } from '../timestamps.ts';
import { type DetailView, type ListView, pairUp } from '../views.ts';
import type { ObservationContext, ViewResponse } from './step.ts';

/** Returns the snapshot of a job with its first list entry, or without one. None of its values were emitted. */
export function createSnapshot(jobNumber: number, list: ListView | null, listAt: number): Snapshot {
  return {
    jobNumber,
    list,
    listAt,
    detail: null,
    detailAt: 0,
    unsure: [],
    unproven: null,
    emitted: { dateOut: null, tracking: [], overdueFor: null },
    ended: null,
    departure: null,
    settling: null,
    owed: null,
  };
}

/** Returns the job's values at the start of tracking, which count as emitted. */
export function asEmitted(view: Pick<ListView, 'dateOut' | 'tracking'>): Snapshot['emitted'] {
  return { dateOut: view.dateOut, tracking: view.tracking, overdueFor: null };
}

/**
 * Applies the first detail's dispatch to a job if only the detail shows it, and it is older than the baseline (clocks may differ). The
 * dispatch and its parcels then count as emitted. Otherwise returns the job unchanged.
 */
export function withOldDispatch(
  before: Snapshot,
  detail: DetailView,
  { baselineStartedAt }: ObservationContext,
): Snapshot {
  const { emitted } = before;
  if (before.detail !== null || emitted.dateOut !== null || detail.dateOut === null) return before;
  const out = readTimes(detail.dateOut, detail.timezone);
  if (!out || out.latest >= (baselineStartedAt ?? 0) - CLOCK_TOLERANCE_MS) return before;
  const tracking = [...emitted.tracking, ...pairUp(emitted.tracking, detail.tracking).added];
  return { ...before, emitted: { ...emitted, dateOut: detail.dateOut, tracking } };
}

export interface Proof {
  readonly created: boolean;
  /** Time at which the job cannot have existed yet. */
  readonly since: number | null;
}

/**
 * Decides whether a job without a history is new (rule 5): its `dateIn` is after the baseline, and its history cannot have expired.
 * A `dateIn` without a time zone is read in the zone in which it is latest. A new number proves the same if there is no `dateIn`, and
 * otherwise allows for a difference of the clocks.
 */
export function proveCreated(
  before: Snapshot,
  detail: DetailView,
  response: ViewResponse,
  known: ObservationContext,
): Proof {
  const { baselineStartedAt, lastGoodCrawlStartedAt } = known;
  const cameIn = detail.dateIn === null ? undefined : readTimes(detail.dateIn, detail.timezone);
  if (baselineStartedAt === null) return { created: false, since: null };
  const isNumberNew = known.newAbove !== null && before.jobNumber > known.newAbove;
  if (cameIn === undefined) return { created: isNumberNew, since: isNumberNew ? baselineStartedAt : null };
  // A job older than the retention of snapshots may have been tracked before, unless it came in after the last complete crawl.
  const remembered = Math.min(
    response.requestedAt - KEPT_DAYS * 86_400_000,
    lastGoodCrawlStartedAt ?? Number.POSITIVE_INFINITY,
  );
  const first = baselineStartedAt - (isNumberNew ? CLOCK_TOLERANCE_MS : 0);
  return { created: cameIn.latest >= Math.max(first, remembered), since: findBound(cameIn.earliest) };

  // A crawl without the job proves nothing, because the job may have been hidden then. Its own date proves
  // it.
  function findBound(earliest: number): number | null {
    const bounds = [lastGoodCrawlStartedAt, baselineStartedAt].filter(
      (at) => at !== null && at <= earliest && (before.list === null || at <= before.listAt),
    );
    return bounds[0] ?? null;
  }
}

/** Returns an unproven job after its first detail, with the values emitted before this observation. */
export function applyProof(before: Snapshot, detail: DetailView, { created, since }: Proof): Snapshot {
  const { list } = before;
  return {
    ...before,
    unproven: null,
    listAt: list === null ? (since ?? 0) : before.listAt,
    emitted: created ? before.emitted : asEmitted(withAllTracking(list ?? detail, detail)),
  };
}

/** Adds the parcels of the detail to the values that count as emitted, if there are any. */
function withAllTracking(first: ListView | DetailView, { tracking }: DetailView): ListView | DetailView {
  if (first.tracking.length === 0) return first;
  return { ...first, tracking: [...first.tracking, ...pairUp(first.tracking, tracking).added] };
}
