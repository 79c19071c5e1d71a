/**
 * What became of a job that is missing from a complete crawl (rule 3). Absence alone proves nothing: pages shift while
 * they are read. So the job is asked after in a fixed order, and only what the answers prove together is believed.
 */
import type { OrderingClient } from '../ordering/client.ts';
import type { ActiveJob } from '../ordering/schemas.ts';
import { isOfOnePage, ListReader, readListPage } from './crawl.ts';
import type { Look } from './diff.ts';
import type { Ending } from './snapshot.ts';
import { type DetailView, detailView, type ListView, listView } from './views.ts';

/** Pages of a search that are read at most: a job number is a prefix of few other things. */
const MAX_SEARCH_PAGES = 10;

/** What the ordering service answered about one missing job. */
export interface Evidence {
  /** From the first question to the last answer. */
  readonly look: Look;
  /** The job's record, read last; null when the service doesn't know the job (404). */
  readonly detail: DetailView | null;
  readonly detailLook: Look;
  /** The job in the active list, searched by its number. */
  readonly active: ListView | null;
  readonly activeLook: Look;
  /** Whether the job is in the list that includes closed jobs. */
  readonly amongClosed: boolean;
  /** False when the lists could not be searched, because of what they hold: then only the record is known. */
  readonly searched: boolean;
}

/** What the evidence proves. */
export type Verdict =
  /** It is in the active list: a page had drifted, nothing happened. */
  | { readonly kind: 'listed' }
  /** It left the list: dispatched, as its detail then says, or found among the closed ones, or both. */
  | { readonly kind: 'left'; readonly closed: boolean }
  /** What cancelled and unavailable jobs look like; to be confirmed in a later poll. */
  | { readonly kind: 'suspected'; readonly as: Exclude<Ending, 'closed'> }
  /** Dispatched by its own record; whether it is still listed can't be known. */
  | { readonly kind: 'dispatched' }
  /** The answers don't fit together: nothing is said. */
  | { readonly kind: 'contradictory' };

/**
 * Asks the ordering service after one job, in the order of rule 3: detail, active list by search, the same with closed
 * jobs, detail again. The last is left out when the first one shows the dispatch, for it could not change the verdict.
 *
 * The list with closed jobs has the active ones too: a job that came back between the two searches is in it, and would
 * look closed. So the active list is asked once more about whoever is found there.
 *
 * Throws OrderingError when one of the questions stays unanswered: then nothing is known. But a dispatch is proved by the
 * job's own record, whatever the lists say; when it is they that fail, because of what they hold, it is told without them.
 */
export async function investigate(
  client: OrderingClient,
  jobNumber: number,
  signal?: AbortSignal,
): Promise<Evidence> {
  const detail = await readDetail(client, jobNumber, signal);
  try {
    return await searchAfter(client, jobNumber, detail, signal);
  } catch (cause) {
    if (!detail.view?.dateOut || !isOfOnePage(cause)) throw cause;
    const { view, look } = detail;
    return {
      look,
      detail: view,
      detailLook: look,
      active: null,
      activeLook: look,
      amongClosed: false,
      searched: false,
    };
  }
}

async function searchAfter(
  client: OrderingClient,
  jobNumber: number,
  first: { readonly view: DetailView | null; readonly look: Look },
  signal: AbortSignal | undefined,
): Promise<Evidence> {
  let detail = first;
  const { askedAt } = detail.look;
  let active = await searchFor(client, jobNumber, false, signal);
  let last = active.look;
  let amongClosed = false;
  if (!active.found) {
    const withClosed = await searchFor(client, jobNumber, true, signal);
    last = withClosed.look;
    amongClosed = withClosed.found !== null;
    if (amongClosed) {
      active = await searchFor(client, jobNumber, false, signal);
      last = active.look;
    }
  }
  if (!active.found && !detail.view?.dateOut) {
    detail = await readDetail(client, jobNumber, signal);
    last = detail.look;
  }
  return {
    look: { askedAt, answeredAt: last.answeredAt, view: 'search' },
    detail: detail.view,
    detailLook: detail.look,
    active: active.found && listView(active.found),
    activeLook: active.look,
    amongClosed,
    searched: true,
  };
}

/** What the evidence proves. Pure. */
export function judge(evidence: Evidence): Verdict {
  const { detail, active, amongClosed, searched } = evidence;
  if (!searched) return { kind: 'dispatched' };
  if (active) return { kind: 'listed' };
  if (detail === null)
    return amongClosed ? { kind: 'contradictory' } : { kind: 'suspected', as: 'unavailable' };
  if (detail.dateOut !== null) return { kind: 'left', closed: amongClosed };
  if (amongClosed) return { kind: 'left', closed: true };
  // Cancelling locks a job, so one that can be edited was not cancelled, whatever else keeps it out of both lists.
  if (detail.canEdit === true) return { kind: 'contradictory' };
  return { kind: 'suspected', as: 'cancelled' };
}

/**
 * The positive control of a negative verdict: whether the same searches find a job that is known to be listed. A search
 * that finds nothing at all would make every missing job look cancelled. `listed` is a job of this poll's crawl; without
 * one, any job of the closed list serves. False when there is nothing to find.
 */
export async function searchesFind(
  client: OrderingClient,
  listed: number | undefined,
  signal?: AbortSignal,
): Promise<boolean> {
  if (listed !== undefined) {
    return (
      (await searchFor(client, listed, false, signal)).found !== null &&
      (await searchFor(client, listed, true, signal)).found !== null
    );
  }
  const newest = await new ListReader(client, { includeClosedJobs: true }, signal).read(1);
  const known = newest.items[0]?.jobNumber;
  return known !== undefined && (await searchFor(client, known, true, signal)).found !== null;
}

async function readDetail(
  client: OrderingClient,
  jobNumber: number,
  signal: AbortSignal | undefined,
): Promise<{ view: DetailView | null; look: Look }> {
  const { body, askedAt, answeredAt } = await client.job(jobNumber, signal);
  return { view: body ? detailView(body) : null, look: { askedAt, answeredAt, view: 'detail' } };
}

/** The search is a prefix match over many fields: read to the last page and compare the number exactly. */
async function searchFor(
  client: OrderingClient,
  jobNumber: number,
  includeClosedJobs: boolean,
  signal: AbortSignal | undefined,
): Promise<{ found: ActiveJob | null; look: Look }> {
  let askedAt: number | undefined;
  for (let page = 1; ; page += 1) {
    const query = { page, searchText: String(jobNumber), includeClosedJobs };
    const answer = await readListPage(client, query, signal);
    askedAt ??= answer.askedAt;
    const look: Look = { askedAt, answeredAt: answer.answeredAt, view: 'search' };
    const found = answer.body.items.find((job) => job.jobNumber === jobNumber);
    if (found) return { found, look };
    if (!answer.body.hasNextPage) return { found: null, look };
    if (page === MAX_SEARCH_PAGES) {
      throw new Error(`A search for job ${jobNumber} has more than ${MAX_SEARCH_PAGES} pages.`);
    }
  }
}
