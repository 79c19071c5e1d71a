/**
 * Finds jobs that were created and delisted between two polls (rule 8), and changes of settling jobs (rule 7).
 */

import { type Crawl, ListReader } from './crawl.ts';
import { hasUnemittedValues } from './diff/closed-entry.ts';
import { createSnapshot } from './diff/creation.ts';
import type { ListEntry, ObservationContext } from './diff/step.ts';
import { highestNumber } from './job-numbers.ts';
import { readSnapshots } from './observation.ts';
import type { Poll, Session } from './poll-context.ts';
import { fingerprint, type ListView, listView } from './views.ts';
import { createWork, type Work } from './work.ts';

/**
 * Maximum number of pages read in one sweep. If more than 10,000 jobs came since the last sweep, the oldest
 * are not found.
 */
const MAX_PAGES = 100;
/** Time after which a failed sweep is repeated (ms). */
const RETRY_MS = 300_000;

/** Result of a sweep. */
export interface Swept {
  /** Attributes for Status, to write once the found jobs are stored. Absent if the sweep must be repeated. */
  readonly through?: {
    readonly sweptAt: number;
    readonly sweptThrough: number;
    readonly sweptHighest?: number | undefined;
  };
  /**
   * Jobs that were never observed in the active list, and settling jobs whose entry changed. The latter are
   * fetched at once if the entry shows dispatch or tracking that was not emitted.
   */
  readonly works: readonly Work[];
  /**
   * Number of entries that no request could read. A job never read in any list has no known number and
   * cannot be investigated.
   */
  readonly unread: number;
}

const NOT_NOW: Swept = { works: [], unread: 0 };

/**
 * Periodically reads the newest jobs together with closed ones, down to the highest number of the last
 * sweep. A new job there is investigated like a missing one. Never throws for upstream faults.
 *
 * The entries of settling jobs are compared with their former entries. An unchanged one costs no read.
 *
 * A quiet poll should send at most one request besides the pages. So the sweep waits for a poll that did
 * not read the identity. The wait is limited, because if polls are far apart, each of them reads the
 * identity. `works`: jobs that this poll processes anyway.
 */
export async function sweep(
  { tracked, status, baselined }: Poll,
  { client, signal, identity }: Session,
  crawl: Crawl,
  works: ReadonlyMap<number, Work>,
): Promise<Swept> {
  const { index, known, settings } = tracked;
  const { startedAt } = known;
  const sweepMs = settings.sweepSeconds * 1000;
  const overdueMs = startedAt - (status.sweptAt ?? 0) - sweepMs;
  const waits = identity && baselined && overdueMs < sweepMs;
  if (!crawl.complete || overdueMs < 0 || waits) return NOT_NOW;

  const { sweptThrough } = status;
  let { sweptHighest } = status;
  // Later, only numbers of this list count: it may show an older state than the active one, and lack jobs that came and went.
  const numbers = new Set(baselined ? [] : crawl.observations.keys());
  const unknown = new Map<number, ListView>();
  const moved = new Map<number, ListEntry>();
  const reader = new ListReader(client, { includeClosedJobs: true }, signal);
  try {
    // The baseline needs only the newest number: older jobs are from before tracking began.
    for (let page = 1; page <= (baselined ? MAX_PAGES : 1); page += 1) {
      const { items, hasNextPage, response } = await reader.read(page);
      for (const job of items) {
        numbers.add(job.jobNumber);
        sweptHighest = Math.max(sweptHighest, job.jobNumber);
        const entry = index.get(job.jobNumber);
        if (entry?.phase === 'settling' && !crawl.observations.has(job.jobNumber)) {
          const view = listView(job);
          if (fingerprint(view) !== entry.fingerprint) moved.set(job.jobNumber, { view, response });
        }
        const isKnown = job.jobNumber <= sweptThrough || crawl.observations.has(job.jobNumber) || entry;
        if (!isKnown) unknown.set(job.jobNumber, listView(job));
      }
      if (!hasNextPage || items.some((job) => job.jobNumber <= sweptThrough)) break;
    }
  } catch {
    // Each attempt can take many requests. Before the baseline is complete, the next poll needs the lower bound: without one,
    // the next sweep would treat all old jobs as new.
    const through = baselined
      ? { sweptAt: startedAt - sweepMs + Math.min(sweepMs, RETRY_MS), sweptThrough }
      : { sweptAt: 0, sweptThrough: highestNumber(numbers) };
    return { ...NOT_NOW, through };
  }
  const highest = Math.max(sweptThrough, highestNumber(numbers));
  // The Status has little room (poll-history.ts), and few accounts have an outlier.
  const outlier = sweptHighest > highest ? sweptHighest : undefined;
  const through = { sweptAt: startedAt, sweptThrough: highest, sweptHighest: outlier };
  if (!baselined) return { works: [], unread: reader.unread, through };
  const stored = await readSnapshots(tracked, [...unknown.keys(), ...moved.keys()]);
  for (const jobNumber of stored.keys()) unknown.delete(jobNumber);
  return {
    works: [
      ...[...unknown].map(([jobNumber, view]) => createSweptWork(jobNumber, view, known)),
      ...[...moved].flatMap(([jobNumber, listEntry]) => {
        const snapshot = stored.get(jobNumber);
        const entry = index.get(jobNumber);
        const work = works.get(jobNumber) ?? (snapshot && createWork(snapshot, entry));
        return work ? [compareEntry(work, listEntry, startedAt)] : [];
      }),
    ],
    unread: reader.unread,
    // A removed job moves the others up, possibly to a page that was already read.
    ...(reader.shrank ? {} : { through }),
  };
}

/** Compares a settling job with its entry. What the entry shows is looked up in its detail. */
function compareEntry(work: Work, listEntry: ListEntry, startedAt: number): Work {
  const { snapshot } = work;
  work.fingerprint = fingerprint(listEntry.view);
  if (hasUnemittedValues(snapshot, listEntry.view)) {
    Object.assign(work, { hinted: true, hint: listEntry, owedSince: work.owedSince ?? startedAt });
    // The next sweep knows the entry, so the fetch stays owed if this poll does not send it.
    work.snapshot = { ...snapshot, owed: { at: startedAt, tries: snapshot.owed?.tries ?? 0 } };
  }
  return work;
}

/** Returns the work of a job that was found in the list with closed jobs only. */
function createSweptWork(jobNumber: number, view: ListView, { startedAt, rules }: ObservationContext): Work {
  return {
    jobNumber,
    entry: undefined,
    stored: undefined,
    snapshot: {
      ...createSnapshot(jobNumber, null, 0),
      origin: view.originCode,
      unproven: startedAt,
      departure: { tries: 0, suspected: null },
      owed: { at: startedAt, tries: 0 },
      ...(rules?.timers ? { timers: rules.timers } : {}),
    },
    events: [],
    observedStatuses: [],
    fingerprint: fingerprint(view),
    owedSince: startedAt,
  };
}
