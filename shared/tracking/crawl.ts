/** One reading of the list of active jobs, page by page, and whether it was complete (rules 1 and 2). */
import { ACTIVE_JOBS, type ActiveJobsQuery, type Answer, type OrderingClient } from '../ordering/client.ts';
import { OrderingError } from '../ordering/errors.ts';
import type { ActiveJob, ActiveJobsPage } from '../ordering/schemas.ts';
import type { Look } from './diff.ts';
import type { OpenKind } from './open-jobs.ts';
import type { ListView } from './views.ts';

/** The list's maximum. */
const PAGE_SIZE = 100;
/** 50,000 open jobs; a list that never ends is not believed. */
const MAX_PAGES = 500;
/**
 * A page that fails by itself is read in parts, and what of them fails in smaller ones. Each size divides the one before
 * it, so that the parts cover exactly the positions of what failed.
 */
const PART_SIZES = [20, 4, 1];

// More than that is no job that can't be read, but a service that is broken. For a crawl, or for a sweep, as a whole:
const MAX_PAGES_IN_PARTS = 3;
/** One job that can't be read takes 14, of which three fail and are repeated by the client. */
const MAX_PARTS = 60;
const MAX_UNREAD = 10;
/** Answers that don't come in time cost the poll 15 seconds each, and it has two minutes in all. */
const MAX_SLOW_PAGES = 2;
const MAX_SLOW_PARTS = 4;

/** What is kept of a job that a page showed. */
export interface Noticed {
  /** The fingerprint of its list view. */
  readonly print: number;
  /** What the figures about open jobs make of it. */
  readonly kind: OpenKind;
  /** Absent for a job that is as it was: of tens of thousands of those, holding on to every view is what costs. */
  readonly view?: ListView;
}

/** A job as one page showed it. */
export interface Observation extends Noticed {
  readonly look: Look;
}

/** What one crawl saw. Times are epoch ms. */
export interface Crawl {
  readonly startedAt: number;
  /**
   * Every page answered, and answered what was asked, but for the unread entries. Only then does a job's absence mean
   * anything, and what it means is no more than that the job is to be asked after.
   */
  readonly complete: boolean;
  /** Entries of the list that no request could read. */
  readonly unread: number;
  /** What kept it from being complete, or else from showing every entry. */
  readonly problem?: unknown;
  readonly observations: ReadonlyMap<number, Observation>;
  /** Pages of which something was read. */
  readonly pages: number;
  /** When the last of the pages that answered did; null when none was. */
  readonly answeredAt: number | null;
}

/**
 * Reads `GET /Jobs/active` unfiltered in default order: page 1 first, the others `concurrency` at a time, until a page
 * says it is the last. A job seen twice counts as the later answer shows it. Pages that fail by themselves are read in
 * parts once the others are read, so that one job that can't be read hides no other. After a page that can't be read the
 * others still are, for what they show may be said; only their absence of a job proves nothing. Never throws for the
 * service's faults.
 */
export async function crawl(
  client: OrderingClient,
  options: {
    readonly now: () => number;
    /** What to keep of a job, decided while its page is at hand. */
    readonly notice: (job: ActiveJob) => Noticed;
    readonly concurrency?: number;
    readonly signal?: AbortSignal;
  },
): Promise<Crawl> {
  const startedAt = options.now();
  const list = new ListReader(client, {}, options.signal);
  const observations = new Map<number, Observation>();
  const pages = new Set<number>();
  let answered: number | null = null;
  /** The number of pages as the latest answer has it; pages can come and go while they are read. */
  let last = 1;
  let next = 1;

  function take({ body, askedAt, answeredAt }: Answer<ActiveJobsPage>): void {
    pages.add(pageAt((body.pageNumber - 1) * body.pageSize));
    answered = Math.max(answered ?? 0, answeredAt);
    last = Math.max(last, lastPage(body));
    const look: Look = { askedAt, answeredAt, view: 'list' };
    for (const job of body.items) {
      const seen = observations.get(job.jobNumber);
      if (seen && seen.look.answeredAt > look.answeredAt) continue;
      const { print, kind, view } = options.notice(job);
      observations.set(job.jobNumber, view ? { look, print, kind, view } : { look, print, kind });
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
    // Where most is unread, it is the service that fails; but a job may be the only one.
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
    answeredAt: answered,
  };
}

/** A page that failed by itself. */
interface FailedPage {
  readonly page: number;
  readonly cause: OrderingError;
}

/** Reads pages of the list, and what can be read of those that fail by themselves. */
export class ListReader {
  readonly #client: OrderingClient;
  readonly #query: Omit<ActiveJobsQuery, 'page' | 'pageSize'>;
  readonly #signal: AbortSignal | undefined;
  /** How many entries the list has by the latest answer. */
  #end = Number.POSITIVE_INFINITY;
  #total = 0;
  #shrank = false;
  #slowPages = 0;
  #pagesInParts = 0;
  #parts = 0;
  #slowParts = 0;
  #unread = 0;
  #problem: OrderingError | undefined;

  /** `query`: what else is asked of the list. */
  constructor(
    client: OrderingClient,
    query: Omit<ActiveJobsQuery, 'page' | 'pageSize'>,
    signal: AbortSignal | undefined,
  ) {
    this.#client = client;
    this.#query = query;
    this.#signal = signal;
  }

  /** Whether the list had fewer entries by one answer than by an earlier one: then some of it may have been passed over. */
  get shrank(): boolean {
    return this.#shrank;
  }

  /** Entries that no request could read. */
  get unread(): number {
    return this.#unread;
  }

  /** What kept the last of them from being read. */
  get problem(): OrderingError | undefined {
    return this.#problem;
  }

  /** One full-size page, or that it failed by itself. Throws when it is the service or the credentials that fail. */
  async page(page: number): Promise<Answer<ActiveJobsPage> | FailedPage> {
    try {
      return await this.#ask(page, PAGE_SIZE);
    } catch (cause) {
      if (!isOfOnePage(cause)) throw cause;
      if (cause.kind === 'timeout') this.#slowPages += 1;
      if (this.#slowPages > MAX_SLOW_PAGES) throw cause;
      return { page, cause };
    }
  }

  /**
   * Hands on what can be read of pages that failed, answer by answer. Throws when so much fails that it can't be for the
   * sake of a few jobs.
   */
  async inParts(
    failed: readonly FailedPage[],
    take: (answer: Answer<ActiveJobsPage>) => void,
  ): Promise<void> {
    this.#pagesInParts += failed.length;
    if (failed[0] && this.#pagesInParts > MAX_PAGES_IN_PARTS) throw failed[0].cause;
    for (const page of failed) await this.#pageInParts(page, take);
  }

  /** The jobs of one page, without those that no request could read. Throws like {@link page} and {@link inParts}. */
  async read(page: number): Promise<{ items: ActiveJob[]; hasNextPage: boolean }> {
    const items: ActiveJob[] = [];
    let last = page;
    const take = ({ body }: Answer<ActiveJobsPage>): void => {
      items.push(...body.items);
      last = Math.max(last, lastPage(body));
    };
    const answer = await this.page(page);
    if ('cause' in answer) await this.inParts([answer], take);
    else take(answer);
    return { items, hasNextPage: last > page };
  }

  async #pageInParts({ page, cause }: FailedPage, take: (answer: Answer<ActiveJobsPage>) => void) {
    let problem = cause;
    let answered = false;
    // Positions from 0. What lies beyond the end of the list is not there to be read.
    const start = (page - 1) * PAGE_SIZE;
    let failing = [start];
    let size = PAGE_SIZE;
    // That the list ends before this page, only the page itself can tell.
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
            if (!isOfOnePage(fault)) throw fault;
            problem = fault;
            stillFailing.push(at);
            if (fault.kind === 'timeout') this.#slowParts += 1;
            if (this.#slowParts > MAX_SLOW_PARTS) throw fault;
            // No sign of life: it is the service that does not answer.
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

  async #ask(page: number, size: number): Promise<Answer<ActiveJobsPage>> {
    const answer = await readPageOf(size, this.#client, { ...this.#query, page }, this.#signal);
    const { items, totalCount, hasNextPage } = answer.body;
    this.#shrank ||= totalCount < this.#total;
    this.#total = totalCount;
    if (!hasNextPage) this.#end = (page - 1) * size + items.length;
    else this.#end = totalCount > page * size ? totalCount : Number.POSITIVE_INFINITY;
    return answer;
  }
}

/**
 * One full-size page of the list, with whatever else is asked of it. Throws OrderingError, also when the page is not the
 * one that was asked for: then neither what it shows nor what it lacks means anything (rule 2).
 */
export async function readListPage(
  client: OrderingClient,
  query: Omit<ActiveJobsQuery, 'pageSize'> & { readonly page: number },
  signal?: AbortSignal,
): Promise<Answer<ActiveJobsPage>> {
  return readPageOf(PAGE_SIZE, client, query, signal);
}

async function readPageOf(
  size: number,
  client: OrderingClient,
  query: Omit<ActiveJobsQuery, 'pageSize'> & { readonly page: number },
  signal: AbortSignal | undefined,
): Promise<Answer<ActiveJobsPage>> {
  const answer = await client.activeJobs({ ...query, pageSize: size }, signal);
  const { pageNumber, pageSize } = answer.body;
  if (pageNumber !== query.page || pageSize !== size) {
    throw new OrderingError({
      kind: 'malformed',
      operation: ACTIVE_JOBS,
      detail: `page ${query.page} of size ${size} was answered as page ${pageNumber} of size ${pageSize}`,
    });
  }
  return answer;
}

/** The full-size page on which a position (from 0) is. */
function pageAt(position: number): number {
  return Math.floor(position / PAGE_SIZE) + 1;
}

/** The last full-size page that there is by the word of a page of any size. */
function lastPage({ pageNumber, pageSize, totalPages, hasNextPage }: ActiveJobsPage): number {
  const through = pageNumber * pageSize;
  return Math.max(
    Math.ceil((totalPages * pageSize) / PAGE_SIZE),
    hasNextPage ? pageAt(through) : Math.ceil(through / PAGE_SIZE),
  );
}

/** Whether a fault can be about what one page holds, rather than about the service or the credentials. */
export function isOfOnePage(cause: unknown): cause is OrderingError {
  return (
    cause instanceof OrderingError &&
    cause.operation === ACTIVE_JOBS &&
    (cause.kind === 'server_error' || cause.kind === 'malformed' || cause.kind === 'timeout')
  );
}

function unreadEntries({ unread, problem }: ListReader, read: number): Error {
  const count = (entries: number): string => entries.toLocaleString('en');
  return new Error(
    `${count(unread)} of ${count(read + unread)} entries of the list can’t be read (${problem?.message}).`,
    { cause: problem },
  );
}
