/** One reading of the list of active jobs, page by page, and whether it was complete (rules 1 and 2). */
import type { ActiveJobsQuery, Answer, OrderingClient } from '../ordering/client.ts';
import { OrderingError } from '../ordering/errors.ts';
import type { ActiveJob, ActiveJobsPage } from '../ordering/schemas.ts';
import type { Look } from './diff.ts';
import type { ListView } from './views.ts';

/** The list's maximum. */
const PAGE_SIZE = 100;
/** 50,000 open jobs; a list that never ends is not believed. */
const MAX_PAGES = 500;

/** What is kept of a job that a page showed. */
export interface Noticed {
  /** The fingerprint of its list view. */
  readonly print: number;
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
  /** Every page answered, and answered what was asked. Only then does a job's absence mean anything. */
  readonly complete: boolean;
  /** What kept it from being complete. */
  readonly problem?: unknown;
  readonly observations: ReadonlyMap<number, Observation>;
  readonly pages: number;
  /** When the last of the pages that answered did; null when none was. */
  readonly answeredAt: number | null;
}

/**
 * Reads `GET /Jobs/active` unfiltered in default order: page 1 first, the others `concurrency` at a time, until a page
 * says it is the last. A job seen twice counts as the later answer shows it. After a failed page the others are still
 * read, for what they show may be said; only their absence of a job proves nothing. Never throws for the service's faults.
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
  const observations = new Map<number, Observation>();
  let problem: unknown;
  let pages = 0;
  let answeredAt: number | null = null;
  /** The number of pages as the latest answer has it; pages can come and go while they are read. */
  let last = 1;
  let next = 1;

  async function readPage(page: number): Promise<void> {
    const answer = await readListPage(client, { page }, options.signal);
    const { items, totalPages, hasNextPage } = answer.body;
    pages += 1;
    answeredAt = Math.max(answeredAt ?? 0, answer.answeredAt);
    const look: Look = { askedAt: answer.askedAt, answeredAt: answer.answeredAt, view: 'list' };
    for (const job of items) {
      const seen = observations.get(job.jobNumber);
      if (seen && seen.look.answeredAt > look.answeredAt) continue;
      const { print, view } = options.notice(job);
      observations.set(job.jobNumber, view ? { look, print, view } : { look, print });
    }
    last = Math.max(last, totalPages, hasNextPage ? page + 1 : page);
  }

  async function readOn(): Promise<void> {
    while (next <= last) {
      const page = next;
      next += 1;
      if (page > MAX_PAGES) throw new Error(`The list has more than ${MAX_PAGES} pages.`);
      try {
        await readPage(page);
      } catch (cause) {
        if (!isOfOnePage(cause)) throw cause;
        problem ??= cause;
      }
    }
  }

  try {
    await readPage(1);
    next = 2;
    const readers = Array.from({ length: options.concurrency ?? 4 }, readOn);
    for (const outcome of await Promise.allSettled(readers)) {
      if (outcome.status === 'rejected') problem ??= outcome.reason;
    }
  } catch (cause) {
    problem = cause;
  }
  return {
    startedAt,
    complete: problem === undefined,
    ...(problem === undefined ? {} : { problem }),
    observations,
    pages,
    answeredAt,
  };
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
  const answer = await client.activeJobs({ ...query, pageSize: PAGE_SIZE }, signal);
  const { pageNumber, pageSize } = answer.body;
  if (pageNumber !== query.page || pageSize !== PAGE_SIZE) {
    throw new OrderingError({
      kind: 'malformed',
      operation: 'GET /Jobs/active',
      detail: `page ${query.page} of size ${PAGE_SIZE} was answered as page ${pageNumber} of size ${pageSize}`,
    });
  }
  return answer;
}

/** Whether a fault is about what one page holds, rather than about the service or the credentials. */
function isOfOnePage(cause: unknown): boolean {
  const kind = cause instanceof Error && 'kind' in cause ? cause.kind : undefined;
  return kind === undefined || kind === 'server_error' || kind === 'malformed';
}
