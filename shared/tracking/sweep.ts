/** Jobs that came and went between two polls (rule 8). */
import type { OrderingClient } from '../ordering/client.ts';
import type { Status } from './accounts.ts';
import { type Crawl, ListReader } from './crawl.ts';
import { readSnapshots, type Tracked } from './observe.ts';
import { fingerprint, listView } from './views.ts';
import type { Work } from './work.ts';

/** Pages of closed jobs read at most in one sweep: of more than 10,000 jobs since the last one, the oldest are not found. */
const MAX_PAGES = 100;

/** What a sweep found. */
export interface Swept {
  /** To be kept in Status once what was found is stored. Absent when the sweep has to be made again. */
  readonly through?: { readonly sweptAt: number; readonly sweptThrough: number };
  /** Jobs that were never seen in the active list. */
  readonly works: readonly Work[];
  /** Entries that no request could read. Who was never read in any list is not known by a number to be asked after. */
  readonly unread: number;
}

const NOT_NOW: Swept = { works: [], unread: 0 };

/**
 * Now and then the newest jobs are read with the closed ones, down to the highest number of the last time. Whoever is new
 * there is asked after like a missing job. Never throws for the service's faults.
 *
 * One request besides the pages is enough for a quiet poll, so it waits for one that did not ask for the identity
 * (`identified`); but not for ever, for of polls that are far apart each one does.
 */
export async function sweep(
  tracked: Tracked,
  client: OrderingClient,
  status: Status,
  seen: Crawl,
  identified: boolean,
  signal: AbortSignal,
): Promise<Swept> {
  const { index, known, settings } = tracked;
  const { startedAt } = known;
  const baselined = known.baselineStartedAt !== null;
  const sweepMs = settings.sweepSeconds * 1000;
  const overdueMs = startedAt - (status.sweptAt ?? 0) - sweepMs;
  const waits = identified && baselined && overdueMs < sweepMs;
  if (!seen.complete || overdueMs < 0 || waits) return NOT_NOW;

  const { sweptThrough } = status;
  let highest = sweptThrough;
  for (const jobNumber of seen.observations.keys()) highest = Math.max(highest, jobNumber);
  const unknown = new Map<number, number>();
  const list = new ListReader(client, { includeClosedJobs: true }, signal);
  try {
    // At the baseline the newest number is all that is needed: whatever is older is history.
    for (let page = 1; page <= (baselined ? MAX_PAGES : 1); page += 1) {
      const { items, hasNextPage } = await list.read(page);
      for (const job of items) {
        highest = Math.max(highest, job.jobNumber);
        const isKnown =
          job.jobNumber <= sweptThrough || seen.observations.has(job.jobNumber) || index.get(job.jobNumber);
        if (!isKnown) unknown.set(job.jobNumber, fingerprint(listView(job)));
      }
      if (!hasNextPage || items.some((job) => job.jobNumber <= sweptThrough)) break;
    }
  } catch {
    // Without a number to go down to, the next sweep would take all history for new.
    return baselined ? NOT_NOW : { ...NOT_NOW, through: { sweptAt: 0, sweptThrough: highest } };
  }
  const through = { sweptAt: startedAt, sweptThrough: highest };
  if (!baselined) return { works: [], unread: list.unread, through };
  for (const jobNumber of (await readSnapshots(tracked, [...unknown.keys()])).keys())
    unknown.delete(jobNumber);
  return {
    works: [...unknown].map(([jobNumber, print]) => cameAndWent(jobNumber, print, startedAt)),
    unread: list.unread,
    // Whoever went made the others move up, maybe to a page that was read already.
    ...(list.shrank ? {} : { through }),
  };
}

/** All that is known of such a job is its number. */
function cameAndWent(jobNumber: number, print: number, startedAt: number): Work {
  return {
    jobNumber,
    entry: undefined,
    stored: undefined,
    snapshot: {
      jobNumber,
      list: null,
      listAt: 0,
      detail: null,
      detailAt: 0,
      unsure: [],
      unproven: startedAt,
      announced: { dateOut: null, tracking: [], overdueFor: null },
      ended: null,
      departure: { tries: 0, suspected: null },
      settling: null,
      owed: { at: startedAt, tries: 0 },
    },
    events: [],
    shown: [],
    fingerprint: print,
    lookSince: startedAt,
  };
}
