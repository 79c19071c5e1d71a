/**
 * Reads the list of active jobs once, page by page, and determines whether the reading was complete (rules
 * 1 and 2).
 */
import {
  ACTIVE_JOBS,
  type ActiveJobsQuery,
  type OrderingClient,
  type OrderingResponse,
} from '../ordering/client.ts';
import { OrderingError } from '../ordering/errors.ts';
import type { ListedJob, ListPage, Recall } from '../ordering/list-page.ts';
import type { ViewResponse } from './diff/step.ts';
import type { OpenKind } from './open-jobs.ts';
import type { ListView } from './views.ts';

/** Maximum page size of the list. */
const PAGE_SIZE = 100;
/** Maximum number of pages: 50,000 open jobs. A list that never ends is an upstream error. */
const MAX_PAGES = 500;
/**
 * Page sizes for the parts of a page that fails by itself, and for the parts of failed parts. Each size
 * divides the previous one, so that the parts cover exactly the failed positions.
 */
const PART_SIZES = [20, 4, 1];

// Limits of partial reading, for a crawl or a sweep as a whole. Beyond them, upstream is failing rather than
// single jobs unreadable.
const MAX_PAGES_IN_PARTS = 3;
/** One unreadable job takes 14 parts, of which three fail and are retried by the client. */
const MAX_PARTS = 60;
const MAX_UNREAD = 10;
/** Each timed-out answer costs the poll 15 seconds, and the poll has two minutes in total. */
const MAX_SLOW_PAGES = 2;
const MAX_SLOW_PARTS = 4;

/** Data kept of a list entry, as one page contained it. */
export interface Observation {
  readonly response: ViewResponse;
  /** Kind of the job for the statistics about open jobs. */
  readonly kind: OpenKind;
  /** Whether a text of the entry is truncated. */
  readonly truncated: boolean;
  /**
   * List view. `undefined` for an unchanged job: keeping the views of tens of thousands of jobs is the main
   * cost.
   */
  readonly view: ListView | undefined;
}

/** Result of one crawl. Times are epoch ms. */
export interface Crawl {
  readonly startedAt: number;
  /**
   * Whether every page was answered with the requested content, except for the unread entries. Only then
   * does a job's absence count, and it only means that the job must be investigated.
   */
  readonly complete: boolean;
  /** Number of list entries that no request could read. */
  readonly unread: number;
  /** First reason why the crawl is incomplete, or lacks entries. */
  readonly problem?: unknown;
  readonly observations: ReadonlyMap<number, Observation>;
  /** Number of pages of which something was read. */
  readonly pages: number;
  /** Whether something was read of every page. */
  readonly covered: boolean;
  /** Time of the last page answer. `null` if no page was answered. */
  readonly respondedAt: number | null;
}

/**
 * Reads `GET /Jobs/active` unfiltered in default order: page 1 first, the others `concurrency` at a time,
 * until the last page. If a job occurs twice, the later answer counts.
 *
 * Pages that fail by themselves are read in parts after the others, so that one unreadable job hides no
 * other. After an unreadable page the others are still read: their content may be emitted, but their
 * absence of a job proves nothing. Never throws for upstream faults.
 */
export async function crawl<T extends Pick<ListedJob, 'jobNumber'> = never>(
  client: OrderingClient,
  options: {
    readonly now: () => number;
    readonly recall?: Recall<T>;
    /** Returns what to keep of a job, while its page is in memory. */
    readonly notice: (job: ListedJob | T, response: ViewResponse) => Observation;
    readonly concurrency?: number;
    readonly signal?: AbortSignal;
  },
): Promise<Crawl> {
  const startedAt = options.now();
  const list = new ListReader(client, {}, options.signal, options.recall);
  const observations = new Map<number, Observation>();
  const pages = new Set<number>();
  let answered: number | null = null;
  /** Number of pages according to the latest answer. Pages can be added or removed while they are read. */
  let last = 1;
  let next = 1;

  function take({ body, requestedAt, respondedAt }: OrderingResponse<ListPage<T>>): void {
    pages.add(pageAt((body.pageNumber - 1) * body.pageSize));
    answered = Math.max(answered ?? 0, respondedAt);
    last = Math.max(last, lastPage(body));
    const response: ViewResponse = { requestedAt, respondedAt, view: 'list' };
    for (const job of body.items) {
      const earlier = observations.get(job.jobNumber);
      if (earlier && earlier.response.respondedAt > response.respondedAt) continue;
      observations.set(job.jobNumber, options.notice(job, response));
    }
  }

  async function readUntil(until: number): Promise<FailedPage[]> {
    const failed: FailedPage[] = [];
    const readOn = async (): Promise<void> => {
      while (next <= until) {
        const page = next;
        next += 1;
        if (page > MAX_PAGES) throw new Error(`The list has more than ${MAX_PAGES} pages.`);
        const answer = await list.page(page);
        if ('cause' in answer) failed.push(answer);
        else take(answer);
      }
    };
    const readers = Array.from({ length: options.concurrency ?? 4 }, readOn);
    for (const outcome of await Promise.allSettled(readers)) {
      if (outcome.status === 'rejected') throw outcome.reason;
    }
    return failed;
  }

  let problem: unknown;
  let complete = false;
  try {
    for (let until = 1; next <= until; until = last) await list.inParts(await readUntil(until), take);
    // If most entries are unread, upstream is failing. But a single job may be the only one.
    complete = list.unread <= Math.max(1, observations.size);
    if (list.unread > 0) problem = complete ? unreadEntries(list, observations.size) : list.problem;
  } catch (cause) {
    problem = cause;
  }
  return {
    startedAt,
    complete,
    unread: list.unread,
    ...(problem === undefined ? {} : { problem }),
    observations,
    pages: pages.size,
    covered: pages.size >= last,
    respondedAt: answered,
  };
}

/** A page that failed by itself. */
interface FailedPage {
  readonly page: number;
  readonly cause: OrderingError;
}

/** Reads pages of the list, and the readable parts of pages that fail by themselves. */
export class ListReader<T = never> {
  readonly #client: OrderingClient;
  readonly #query: Omit<ActiveJobsQuery, 'page' | 'pageSize'>;
  readonly #signal: AbortSignal | undefined;
  readonly #recall: Recall<T> | undefined;
  /** Number of entries in the list according to the latest answer. */
  #end = Number.POSITIVE_INFINITY;
  #total = 0;
  #shrank = false;
  #slowPages = 0;
  #pagesInParts = 0;
  #parts = 0;
  #slowParts = 0;
  #unread = 0;
  #problem: OrderingError | undefined;

  /** `query`: further query parameters of the list. */
  constructor(
    client: OrderingClient,
    query: Omit<ActiveJobsQuery, 'page' | 'pageSize'>,
    signal: AbortSignal | undefined,
    recall?: Recall<T>,
  ) {
    this.#client = client;
    this.#query = query;
    this.#signal = signal;
    this.#recall = recall;
  }

  /** Whether an answer had fewer entries than an earlier one. Then entries may have been skipped. */
  get shrank(): boolean {
    return this.#shrank;
  }

  /** Number of entries that no request could read. */
  get unread(): number {
    return this.#unread;
  }

  /** Error of the last unreadable entry. */
  get problem(): OrderingError | undefined {
    return this.#problem;
  }

  /**
   * Reads one full-size page. Returns its failure if it failed by itself. Throws if upstream or the
   * credentials fail.
   */
  async page(page: number): Promise<OrderingResponse<ListPage<T>> | FailedPage> {
    try {
      return await this.#ask(page, PAGE_SIZE);
    } catch (cause) {
      if (!isPageError(cause)) throw cause;
      if (cause.kind === 'timeout') this.#slowPages += 1;
      if (this.#slowPages > MAX_SLOW_PAGES) throw cause;
      return { page, cause };
    }
  }

  /**
   * Passes on the readable parts of failed pages, answer by answer. Throws if more fails than a few
   * unreadable jobs can explain.
   */
  async inParts(
    failed: readonly FailedPage[],
    take: (answer: OrderingResponse<ListPage<T>>) => void,
  ): Promise<void> {
    this.#pagesInParts += failed.length;
    if (failed[0] && this.#pagesInParts > MAX_PAGES_IN_PARTS) throw failed[0].cause;
    for (const page of failed) await this.#pageInParts(page, take);
  }

  /**
   * Returns the jobs of one page, without the unreadable ones. Throws like {@link page} and {@link
   * inParts}.
   */
  async read(
    page: number,
  ): Promise<{ items: ListPage<T>['items']; hasNextPage: boolean; response: ViewResponse }> {
    const items: ListPage<T>['items'] = [];
    let last = page;
    let response: ViewResponse | undefined;
    const take = ({ body, requestedAt, respondedAt }: OrderingResponse<ListPage<T>>): void => {
      response = { requestedAt: response?.requestedAt ?? requestedAt, respondedAt, view: 'search' };
      items.push(...body.items);
      last = Math.max(last, lastPage(body));
    };
    const answer = await this.page(page);
    if ('cause' in answer) await this.inParts([answer], take);
    else take(answer);
    return {
      items,
      hasNextPage: last > page,
      response: response ?? { requestedAt: 0, respondedAt: 0, view: 'search' },
    };
  }

  async #pageInParts({ page, cause }: FailedPage, take: (answer: OrderingResponse<ListPage<T>>) => void) {
    let problem = cause;
    let answered = false;
    // Positions start at 0. Positions beyond the end of the list are not read.
    const start = (page - 1) * PAGE_SIZE;
    let failing = [start];
    let size = PAGE_SIZE;
    // Only the page itself can prove that the list ends before it.
    if (this.#end <= start) this.#end = Number.POSITIVE_INFINITY;
    for (const partSize of PART_SIZES) {
      const stillFailing: number[] = [];
      for (const from of failing) {
        for (let at = from; at < Math.min(from + size, this.#end); at += partSize) {
          this.#parts += 1;
          if (this.#parts > MAX_PARTS) throw problem;
          try {
            const answer = await this.#ask(at / partSize + 1, partSize);
            answered = true;
            take(answer);
          } catch (fault) {
            if (!isPageError(fault)) throw fault;
            problem = fault;
            stillFailing.push(at);
            if (fault.kind === 'timeout') this.#slowParts += 1;
            if (this.#slowParts > MAX_SLOW_PARTS) throw fault;
            // No part was answered: upstream does not respond.
            if (fault.kind === 'timeout' && !answered && stillFailing.length > 1) throw fault;
          }
        }
      }
      failing = stillFailing;
      if (!answered && failing.length > 1) throw problem;
      size = partSize;
    }
    if (failing.length === 0) return;
    this.#unread += failing.length;
    this.#problem = problem;
    if (this.#unread > MAX_UNREAD) throw problem;
  }

  async #ask(page: number, size: number): Promise<OrderingResponse<ListPage<T>>> {
    const query = { ...this.#query, page, pageSize: size };
    const answer = await readListPage(this.#client, query, this.#signal, this.#recall);
    const { items, totalCount, hasNextPage } = answer.body;
    this.#shrank ||= totalCount < this.#total;
    this.#total = totalCount;
    if (!hasNextPage) this.#end = (page - 1) * size + items.length;
    else this.#end = totalCount > page * size ? totalCount : Number.POSITIVE_INFINITY;
    return answer;
  }
}

/**
 * Reads one page of the list, by default of full size. Throws `OrderingError`, also if the answer is not the
 * requested page: then neither its content nor its gaps count (rule 2).
 */
export async function readListPage<T = never>(
  client: OrderingClient,
  query: ActiveJobsQuery & { readonly page: number },
  signal?: AbortSignal,
  recall?: Recall<T>,
): Promise<OrderingResponse<ListPage<T>>> {
  const { page, pageSize: size = PAGE_SIZE } = query;
  const answer = await client.activeJobs({ ...query, pageSize: size }, signal, recall);
  const { pageNumber, pageSize } = answer.body;
  if (pageNumber !== page || pageSize !== size) {
    throw new OrderingError({
      kind: 'malformed',
      operation: ACTIVE_JOBS,
      detail: `page ${page} of size ${size} was requested, but page ${pageNumber} of size ${pageSize} was returned`,
    });
  }
  return answer;
}

/** Returns the full-size page of a position (from 0). */
function pageAt(position: number): number {
  return Math.floor(position / PAGE_SIZE) + 1;
}

/** Returns the last full-size page according to a page of any size. */
function lastPage({ pageNumber, pageSize, totalPages, hasNextPage }: Omit<ListPage, 'items'>): number {
  const through = pageNumber * pageSize;
  return Math.max(
    Math.ceil((totalPages * pageSize) / PAGE_SIZE),
    hasNextPage ? pageAt(through) : Math.ceil(through / PAGE_SIZE),
  );
}

/**
 * Returns whether a fault can be caused by the content of one page, rather than by upstream or the
 * credentials.
 */
export function isPageError(cause: unknown): cause is OrderingError {
  return (
    cause instanceof OrderingError &&
    cause.operation === ACTIVE_JOBS &&
    (cause.kind === 'server_error' || cause.kind === 'malformed' || cause.kind === 'timeout')
  );
}

function unreadEntries({ unread, problem }: Pick<ListReader, 'unread' | 'problem'>, read: number): Error {
  const count = (entries: number): string => entries.toLocaleString('en');
  return new Error(
    `${count(unread)} of ${count(read + unread)} entries of the list can’t be read (${problem?.message}).`,
    { cause: problem },
  );
}
