/**
 * Determines the outcome of a job that is missing from a complete crawl (rule 3).
 *
 * Absence alone proves nothing, because pages shift while they are read. The job is therefore investigated
 * in a fixed order. A verdict requires that all answers together prove it.
 */
import { type ActiveJobsQuery, JOB_DETAIL, type OrderingClient } from '../ordering/client.ts';
import { OrderingError } from '../ordering/errors.ts';
import type { ActiveJob } from '../ordering/schemas.ts';
import { isPageError, ListReader, readListPage } from './crawl.ts';
import type { ListEntry, ViewResponse } from './diff/step.ts';
import type { Ending } from './snapshot.ts';
import { type DetailView, detailView, type ListView, listView } from './views.ts';

/** Number of search pages read one by one. A job number is a prefix of few other values. */
const MAX_SEARCH_PAGES = 10;

/** Answers of the ordering API about one missing job. */
export interface Evidence {
  /** Time from the first request to the last answer. */
  readonly response: ViewResponse;
  /** Job detail, read last. `null` if the upstream API does not know the job (404). */
  readonly detail: DetailView | null;
  readonly detailResponse: ViewResponse;
  /** Error of the job detail. Then `detail` is `null` and proves nothing. */
  readonly detailProblem?: OrderingError;
  /** Entry of the job in the active list, found by a search for its number. `null` if not found. */
  readonly active: ListView | null;
  readonly activeResponse: ViewResponse;
  /** Whether the job is in the list that includes closed jobs. */
  readonly amongClosed: boolean;
  /** Its entry in that list. Absent if not found. */
  readonly closed?: ListEntry;
  /** `false` if the content of the lists prevented a search. Then only the job detail is known. */
  readonly searched: boolean;
}

/** Conclusion from the evidence. */
export type Verdict =
  /** The job is in the active list: a page had shifted, and the job did not change. */
  | { readonly kind: 'listed' }
  /** The job left the list: its detail shows the dispatch, or it is among the closed jobs, or both. */
  | { readonly kind: 'left'; readonly closed: boolean }
  /** The job seems cancelled or unavailable. A later poll must confirm it. */
  | { readonly kind: 'suspected'; readonly as: Exclude<Ending, 'closed'> }
  /** The job detail shows the dispatch. Whether the job is still listed cannot be determined. */
  | { readonly kind: 'dispatched' }
  /** The list with closed jobs may be outdated, and the job cancelled: the investigation is repeated. */
  | { readonly kind: 'undecided' }
  /** The answers contradict each other: no event is emitted. */
  | { readonly kind: 'contradictory' };

/** Number of investigations after which an editable entry in the list with closed jobs counts nevertheless. */
const UNDECIDED_TRIES = 2;

/**
 * Investigates one job in the order of rule 3: detail, search of the active list, search including closed
 * jobs, detail again. If the job is found in the active list, the remaining requests are omitted. The last request
 * is also omitted if the first detail shows the dispatch, because it could not change the verdict.
 *
 * The list with closed jobs also contains the active ones. A job that returned between the two searches is
 * in it and would look closed. Therefore, a job found there is searched for in the active list once more, before the
 * last request.
 *
 * Throws if a request is not answered: then nothing is known, with two exceptions. The job detail proves a
 * dispatch regardless of the lists. If the content of the lists makes the searches fail, the dispatch is
 * reported without them. And if only the detail cannot be read, the lists prove that the job is active or
 * closed.
 */
export async function investigate(
  client: OrderingClient,
  jobNumber: number,
  signal?: AbortSignal,
): Promise<Evidence> {
  let detail: DetailRead;
  try {
    detail = await readDetail(client, jobNumber, signal);
  } catch (cause) {
    if (!isDetailError(cause) || signal?.aborted) throw cause;
    return searchInstead(client, jobNumber, cause, signal);
  }
  try {
    return await searchAfter(client, jobNumber, detail, signal);
  } catch (cause) {
    if (!detail.view?.dateOut || !isPageError(cause)) throw cause;
    const { view, response } = detail;
    return {
      response,
      detail: view,
      detailResponse: response,
      active: null,
      activeResponse: response,
      amongClosed: false,
      searched: false,
    };
  }
}

/** Returns whether a fault may concern only the details of jobs: the searches may still be answered. */
export function isDetailError(cause: unknown): cause is OrderingError {
  return (
    cause instanceof OrderingError &&
    cause.operation === JOB_DETAIL &&
    cause.kind !== 'unauthorized' &&
    cause.kind !== 'network'
  );
}

/** Investigates a job whose detail cannot be read. Throws if it is in neither list: then nothing is known. */
async function searchInstead(
  client: OrderingClient,
  jobNumber: number,
  detailProblem: OrderingError,
  signal: AbortSignal | undefined,
): Promise<Evidence> {
  const found = await searchLists(client, jobNumber, signal);
  const { active, closed } = found;
  // The requests above were sent, so that the investigation is repeated later after any fault.
  if (!active.found && !closed) throw new Error(detailProblem.message, { cause: detailProblem });
  const response: ViewResponse = { ...active.response, requestedAt: found.requestedAt };
  const unread = { detail: null, detailResponse: response, detailProblem };
  return { response, ...unread, ...listEvidence(found) };
}

async function searchAfter(
  client: OrderingClient,
  jobNumber: number,
  first: DetailRead,
  signal: AbortSignal | undefined,
): Promise<Evidence> {
  let detail = first;
  const found = await searchLists(client, jobNumber, signal);
  let last = found.last;
  if (!found.active.found && !detail.view?.dateOut) {
    detail = await readDetail(client, jobNumber, signal);
    last = detail.response;
  }
  return {
    response: { requestedAt: first.response.requestedAt, respondedAt: last.respondedAt, view: 'search' },
    detail: detail.view,
    detailResponse: detail.response,
    ...listEvidence(found),
  };
}

/** Answers of the searches. `last` is the last answer. */
interface Searches {
  readonly requestedAt: number;
  readonly active: SearchResult;
  readonly closed: ListEntry | undefined;
  readonly last: ViewResponse;
}

async function searchLists(
  client: OrderingClient,
  jobNumber: number,
  signal: AbortSignal | undefined,
): Promise<Searches> {
  const active = await searchFor(client, jobNumber, false, signal);
  const { requestedAt } = active.response;
  if (active.found) return { requestedAt, active, closed: undefined, last: active.response };
  const withClosed = await searchFor(client, jobNumber, true, signal);
  if (!withClosed.found) return { requestedAt, active, closed: undefined, last: withClosed.response };
  const closed = { view: listView(withClosed.found), response: withClosed.response };
  const again = await searchFor(client, jobNumber, false, signal);
  return { requestedAt, active: again, closed, last: again.response };
}

function listEvidence({ active, closed }: Searches) {
  return {
    active: active.found && listView(active.found),
    activeResponse: active.response,
    amongClosed: closed !== undefined,
    ...(closed && { closed }),
    searched: true,
  };
}

/**
 * Returns the conclusion from the evidence. `wasDispatched`: the job was dispatched, and was not observed as
 * editable since. `tries`: number of inconclusive investigations since the job left the list. Pure.
 */
export function classifyDeparture(evidence: Evidence, wasDispatched = false, tries = 0): Verdict {
  const { detail, active, amongClosed, closed, searched } = evidence;
  if (!searched) return { kind: 'dispatched' };
  if (active) return { kind: 'listed' };
  // Closing locks a job. So this entry is from before the job was closed, or cancelled. Dispatched jobs cannot be cancelled.
  const isOutdated = closed?.view.canEdit === true && closed.view.dateOut === null && !detail?.dateOut;
  const isKnown = detail !== null || evidence.detailProblem !== undefined;
  if (isOutdated && isKnown && !wasDispatched && tries < UNDECIDED_TRIES) return { kind: 'undecided' };
  if (evidence.detailProblem) return { kind: 'left', closed: true };
  if (detail === null)
    return amongClosed ? { kind: 'contradictory' } : { kind: 'suspected', as: 'unavailable' };
  if (detail.dateOut !== null) return { kind: 'left', closed: amongClosed };
  if (amongClosed) return { kind: 'left', closed: true };
  // Cancelling locks a job. An editable job was therefore not cancelled, although it is missing from both
  // lists.
  if (detail.canEdit === true) return { kind: 'contradictory' };
  // Only a job that is not in production yet can be cancelled. A returned job is locked as well.
  if (wasDispatched) return { kind: 'contradictory' };
  return { kind: 'suspected', as: 'cancelled' };
}

/**
 * Runs the positive control of a negative verdict: returns whether the same searches find a job that is
 * known to be listed. If search finds nothing at all, every missing job would look cancelled.
 *
 * `listed` is a job of this poll's crawl. Without it, any job of the full list serves. Returns `false` if
 * there is no job to search for.
 */
export async function verifySearch(
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

interface DetailRead {
  readonly view: DetailView | null;
  readonly response: ViewResponse;
}

interface SearchResult {
  readonly found: ActiveJob | null;
  readonly response: ViewResponse;
}

async function readDetail(
  client: OrderingClient,
  jobNumber: number,
  signal: AbortSignal | undefined,
): Promise<DetailRead> {
  const { body, requestedAt, respondedAt } = await client.job(jobNumber, signal);
  return { view: body ? detailView(body) : null, response: { requestedAt, respondedAt, view: 'detail' } };
}

/**
 * Searches for one job. The search is a prefix match over many fields, so it reads to the last page and
 * compares the number exactly.
 */
async function searchFor(
  client: OrderingClient,
  jobNumber: number,
  includeClosedJobs: boolean,
  signal: AbortSignal | undefined,
): Promise<SearchResult> {
  let requestedAt: number | undefined;
  for (let page = 1; ; page += 1) {
    const query = { page, searchText: String(jobNumber), includeClosedJobs };
    const answer = await readListPage(client, query, signal);
    requestedAt ??= answer.requestedAt;
    const response: ViewResponse = { requestedAt, respondedAt: answer.respondedAt, view: 'search' };
    const found = answer.body.items.find((job) => job.jobNumber === jobNumber);
    if (found) return { found, response };
    if (!answer.body.hasNextPage) return { found: null, response };
    if (page === MAX_SEARCH_PAGES) return bisect(client, jobNumber, query, answer.body.totalPages, signal);
  }
}

/**
 * Finds a job in the later pages of a long search result, by its number: the default order is newest first.
 * Throws if a page is not in this order.
 */
async function bisect(
  client: OrderingClient,
  jobNumber: number,
  query: Omit<ActiveJobsQuery, 'pageSize'> & { readonly page: number },
  totalPages: number,
  signal: AbortSignal | undefined,
): Promise<SearchResult> {
  let [first, last] = [query.page, totalPages];
  let requestedAt: number | undefined;
  for (;;) {
    const page = Math.floor((first + last) / 2);
    const answer = await readListPage(client, { ...query, page }, signal);
    requestedAt ??= answer.requestedAt;
    const response: ViewResponse = { requestedAt, respondedAt: answer.respondedAt, view: 'search' };
    const numbers = answer.body.items.map((job) => job.jobNumber);
    const found = answer.body.items.find((job) => job.jobNumber === jobNumber);
    if (found) return { found, response };
    if (numbers.some((number, at) => number >= (numbers[at - 1] ?? Number.POSITIVE_INFINITY))) {
      throw new Error(`A search for job ${jobNumber} has more than ${MAX_SEARCH_PAGES} pages, in no order.`);
    }
    const newer = numbers.filter((number) => number > jobNumber).length;
    // A page beyond the end of the list is empty.
    if (newer === 0) last = page - 1;
    else if (newer < numbers.length) return { found: null, response };
    else first = page + 1;
    if (first > last) return { found: null, response };
  }
}
