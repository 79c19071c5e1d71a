import { setTimeout as pause } from 'node:timers/promises';
import pLimit from 'p-limit';
import type * as z from 'zod';
import { backoff, HALF_JITTER, withJitter } from '../retry.ts';
import { errorFromResponse, isHtml, OrderingError, type OrderingErrorKind } from './errors.ts';
import { baseAddress, type Exchanged, exchange, readJson, unlessAborted } from './exchange.ts';
import { type ListPage, type Recall, readListPage } from './list-page.ts';
import {
  AccountProfile,
  AccountUser,
  JobDetail,
  type JobStatus,
  JobStatuses,
  TransactionsPage,
} from './schemas.ts';
import type { TokenSource } from './tokens.ts';
import { type Fetch, httpFetch } from './transport.ts';

/**
 * An answer and the time of its observation (epoch ms). `requestedAt` is just before the successful request was
 * sent. `respondedAt` is when its answer was completely read.
 *
 * The body was true at some time between the two (rule 13 of docs/truth.md). Time spent in the queue, in
 * pauses or on failed attempts is before both.
 */
export interface OrderingResponse<T> {
  body: T;
  requestedAt: number;
  respondedAt: number;
  /** Token of the request. Only for `account`. */
  token?: string;
}

/** The list of jobs as an operation of {@link OrderingError} and {@link RequestInfo}. */
export const ACTIVE_JOBS = 'GET /Jobs/active';
/** The account of the credentials as an operation of {@link OrderingError}. */
export const ACCOUNT = 'GET /account';
/** The detail of a job as an operation of {@link OrderingError}. */
export const JOB_DETAIL = 'GET /Jobs/{jobNumber}';

/**
 * Parameters of `GET /Jobs/active`, with the upstream names. An absent parameter takes the upstream
 * default.
 */
export interface ActiveJobsQuery {
  /** Page number, from 1. */
  page?: number | undefined;
  /** Maximum: 100. Upstream default: 20. */
  pageSize?: number | undefined;
  /**
   * Search terms, each matched as a prefix against many fields. Compare job numbers exactly afterwards
   * (rule 3).
   */
  searchText?: string | undefined;
  /** Whether to include closed jobs. Cancelled jobs are in neither list. */
  includeClosedJobs?: boolean | undefined;
  orderGroup?: string | undefined;
}

/** Kind of request. A Retry-After applies to one kind (rule 12). */
export const REQUEST_KINDS = [
  'activeList',
  'closedList',
  'search',
  'closedSearch',
  'group',
  'detail',
  'statuses',
  'account',
  'accountUser',
  'transactions',
] as const;
/** See {@link REQUEST_KINDS}. */
export type RequestKind = (typeof REQUEST_KINDS)[number];

/** Times (epoch ms) before which no request of a kind is sent, because of a Retry-After. */
export type Holds = Map<RequestKind, number>;

/** One HTTP request to the ordering API, for logs and metrics. Contains no ids or payloads. */
export interface RequestInfo {
  /** Method and path template. */
  operation: string;
  /** HTTP status. `undefined` if there was no complete answer. */
  status: number | undefined;
  ms: number;
  /** Number of the attempt, from 1. Above 1 it is a retry. */
  attempt: number;
}

/**
 * Running totals of one client, for the wide log line of a poll. Record them before, and take the
 * difference after.
 */
export interface OrderingCounts {
  /** Number of requests to the ordering API, including retries, without token requests. */
  readonly requests: number;
  /** Number of those requests that repeated a call: after a 401, a fault or a Retry-After. */
  readonly retries: number;
  /** Number of different tokens used by calls. After an increase, `account` must be read again (rule 9). */
  readonly tokens: number;
  /** Number of faults by kind, including retried ones and those of token requests that calls waited for. */
  readonly errors: ErrorCounts;
}

/** Number of faults by kind. */
export type ErrorCounts = { readonly [K in OrderingErrorKind]?: number };

/**
 * Read-only client of the ordering API with one account's credentials. Every method throws `OrderingError`
 * (see its kinds). If the caller's signal fires, it rejects at once with the signal's reason, whatever the
 * call was waiting for.
 */
export interface OrderingClient {
  /**
   * Returns one page of the list view. The caller must check whether it matches the request (rule 2). Entries known to
   * `recall` are not parsed.
   */
  activeJobs<T = never>(
    query: ActiveJobsQuery,
    signal?: AbortSignal,
    recall?: Recall<T>,
  ): Promise<OrderingResponse<ListPage<T>>>;
  /**
   * Returns the detail view of one job. `body` is `undefined` for a 404: the job is gone or belongs to
   * another account, which look the same. A 404 with an HTML page throws `not_found` instead: it comes from
   * a gateway, and proves nothing about the job.
   */
  job(jobNumber: number, signal?: AbortSignal): Promise<OrderingResponse<JobDetail | undefined>>;
  /** Returns the currently known status names. The set grows. */
  jobStatuses(signal?: AbortSignal): Promise<OrderingResponse<JobStatus[]>>;
  /** Returns the account of these credentials (rule 9). */
  account(signal?: AbortSignal): Promise<OrderingResponse<AccountProfile>>;
  /** Returns the API user of these credentials. `body` is `undefined` for a 404 without HTML: there is no such user. */
  accountUser(signal?: AbortSignal): Promise<OrderingResponse<AccountUser | undefined>>;
  /** Returns a page (from 1) of up to 100 payments, the newest first. */
  transactions(page: number, signal?: AbortSignal): Promise<OrderingResponse<TransactionsPage>>;
  readonly counts: OrderingCounts;
}

/** Options of a client. Only the base address and the token source are required. */
export interface OrderingClientOptions {
  /** Base address of the region's API. It may contain a path, with or without a trailing slash. */
  baseUrl: string;
  tokens: TokenSource;
  /** Maximum number of concurrent requests. Default: 4. */
  maxConcurrency?: number;
  /**
   * Timeout of each request, including the read of its answer, without queueing and pauses (ms). Default:
   * 15,000.
   */
  timeoutMs?: number;
  /** Maximum Retry-After for which a call waits (ms). A longer one throws at once. Default: 20,000. */
  maxRetryAfterMs?: number;
  /** Times before which no request of a kind is sent. The client adds to it. Default: none. */
  holds?: Holds;
  fetch?: Fetch;
  /** Returns the current time in epoch ms. */
  now?: () => number;
  sleep?: (ms: number, signal?: AbortSignal) => Promise<unknown>;
  /** Returns a number from 0 (inclusive) to 1 (exclusive). */
  random?: () => number;
  /** Called after each request. Its errors are ignored. */
  onRequest?: ((info: RequestInfo) => void) | undefined;
}

/** Maximum number of retries of one call. The retry with a new token after a 401 is additional. */
const MOST_RETRIES = 2;

/**
 * Maximum number of retries per kind of fault (rule 12). Every request is a GET, so a retry is always safe.
 * A timeout is not retried: it has already cost the full time, and the next poll repeats the request
 * anyway.
 */
const RETRIES: Partial<Record<OrderingErrorKind, number>> = {
  rate_limited: 2,
  unavailable: 2,
  server_error: 1,
  network: 1,
};
const RETRIES_WHEN_CUT_SHORT = 1;
const FIRST_BACK_OFF_MS = 1_000;
/** Maximum Retry-After that holds back a kind of request (ms). A longer one is an upstream error. */
const MAX_HOLD_MS = 86_400_000;

/**
 * Creates a client. Its handling of faults (rule 12 of docs/truth.md):
 * - 401: the token is discarded and the call repeated once with a new one. A second 401 is `unauthorized`.
 * - 429, 502, 503, 504: at most 2 retries. 500, a failed connection, a truncated body: 1. Before each, the
 *   client waits for the Retry-After if one was sent, else 0.5–1 s, then 1–2 s. A Retry-After beyond
 *   `maxRetryAfterMs` throws at once, with its value.
 * - A Retry-After holds back all requests of the same kind, in `holds`. A call of that kind waits too, or
 *   throws `rate_limited` with `notSent` if the wait is longer than `maxRetryAfterMs`. Other kinds continue.
 * - A failing token endpoint is treated the same way, except that `credentials_rejected` is never retried.
 * - All other faults throw at once.
 *
 * A call that pauses without a Retry-After keeps its slot: an overloaded upstream should get fewer requests,
 * not the next one in the queue.
 */
export function createOrderingClient(options: OrderingClientOptions): OrderingClient {
  const {
    tokens,
    maxConcurrency = 4,
    timeoutMs = 15_000,
    maxRetryAfterMs = 20_000,
    holds = new Map(),
    now = Date.now,
    sleep = (ms, signal) => pause(ms, undefined, { signal }),
    random = Math.random,
    onRequest,
  } = options;
  const fetch = options.fetch ?? httpFetch;
  const baseUrl = baseAddress('baseUrl', options.baseUrl);
  const slot = pLimit(maxConcurrency);
  const errors: { [K in OrderingErrorKind]?: number } = {};
  const counts = { requests: 0, retries: 0, tokens: 0, errors };
  let latestToken: string | undefined;

  return {
    activeJobs: (query, signal, recall) =>
      call(listKind(query), ACTIVE_JOBS, `/Jobs/active${queryText(query)}`, signal, (operation, answer) =>
        answer.status === 200 ? { body: readListPage(operation, answer, recall) } : undefined,
      ),
    job: (jobNumber, signal) =>
      call('detail', JOB_DETAIL, `/Jobs/${jobNumber}`, signal, (operation, answer) => {
        if (isUnknown(answer)) return { body: undefined };
        const read = bodyAs(JobDetail)(operation, answer);
        if (read && read.body.jobNumber !== jobNumber) {
          throw new OrderingError({
            kind: 'malformed',
            operation,
            status: 200,
            detail: 'it is about another job',
          });
        }
        return read;
      }),
    jobStatuses: (signal) =>
      call('statuses', 'GET /Lookups/job-statuses', '/Lookups/job-statuses', signal, bodyAs(JobStatuses)),
    account: (signal) => call('account', ACCOUNT, '/account', signal, bodyAs(AccountProfile)),
    accountUser: (signal) =>
      call('accountUser', 'GET /account/user', '/account/user', signal, (operation, answer) =>
        isUnknown(answer) ? { body: undefined } : bodyAs(AccountUser)(operation, answer),
      ),
    transactions: (page, signal) =>
      call(
        'transactions',
        'GET /account/transactions',
        `/account/transactions?page=${page}&pageSize=100&sortBy=Id&sortDirection=DESC`,
        signal,
        bodyAs(TransactionsPage),
      ),
    counts,
  };

  /** Runs one call. `read` returns the body of a successful answer, and `undefined` for a failing status. */
  async function call<T>(
    kind: RequestKind,
    operation: string,
    path: string,
    signal: AbortSignal | undefined,
    read: (operation: string, answer: Exchanged) => { body: T } | undefined,
  ): Promise<OrderingResponse<T>> {
    const failures = new Map<string, number>();
    let retries = 0;
    let renewed = false;
    let sent = 0;
    /** Time until which this call has waited. */
    let waitedUntil = 0;
    for (;;) {
      signal?.throwIfAborted();
      const result = await unlessAborted(slot(inSlot), signal);
      if ('answer' in result) return result.answer;
      waitedUntil = now() + result.waitMs;
      await rest(result.waitMs);
    }

    /** Returns how long requests of this kind are still held back. Throws if that is too long. */
    function heldMs(): number {
      const until = holds.get(kind) ?? 0;
      const leftMs = until <= waitedUntil ? 0 : until - now();
      if (leftMs <= maxRetryAfterMs) return leftMs;
      throw new OrderingError({
        kind: 'rate_limited',
        operation,
        retryAfterMs: leftMs,
        detail: `not sent before ${new Date(until).toISOString()}, as an earlier response requested`,
        notSent: true,
      });
    }

    async function rest(ms: number): Promise<void> {
      await unlessAborted(Promise.resolve(sleep(ms, signal)), signal);
    }

    /** Sends the request until it succeeds or has to wait for a Retry-After, without the slot. */
    async function inSlot(): Promise<{ answer: OrderingResponse<T> } | { waitMs: number }> {
      const waitMs = heldMs();
      if (waitMs > 0) return { waitMs };
      for (;;) {
        let usedToken: string | undefined;
        try {
          // The token is requested in the slot, so that it cannot expire in the queue.
          const token = await tokens.get(signal);
          usedToken = token.value;
          return { answer: await once(token.value, ++sent) };
        } catch (error) {
          signal?.throwIfAborted();
          if (!(error instanceof OrderingError)) throw error;
          errors[error.kind] = (errors[error.kind] ?? 0) + 1;
          const { retryAfterMs } = error;
          if (error.operation === operation && RETRIES[error.kind] && retryAfterMs) {
            holds.set(kind, Math.max(holds.get(kind) ?? 0, now() + Math.min(retryAfterMs, MAX_HOLD_MS)));
          }
          if (error.kind === 'unauthorized' && usedToken !== undefined && !renewed) {
            renewed = true;
            await unlessAborted(tokens.drop(usedToken), signal);
            continue;
          }
          const fault = error.cutShort ? 'cut short' : error.kind;
          const allowed = error.cutShort ? RETRIES_WHEN_CUT_SHORT : (RETRIES[error.kind] ?? 0);
          const before = failures.get(fault) ?? 0;
          if (before >= allowed || retries >= MOST_RETRIES || (retryAfterMs ?? 0) > maxRetryAfterMs) {
            throw error;
          }
          failures.set(fault, before + 1);
          retries++;
          if (retryAfterMs !== undefined) return { waitMs: retryAfterMs };
          await rest(withJitter(backoff(retries - 1, { first: FIRST_BACK_OFF_MS }), HALF_JITTER, random()));
        }
      }
    }

    async function once(token: string, attempt: number): Promise<OrderingResponse<T>> {
      if (token !== latestToken) {
        latestToken = token;
        counts.tokens++;
      }
      counts.requests++;
      if (attempt > 1) counts.retries++;
      const startedAt = now();
      let status: number | undefined;
      try {
        const answer = await exchange({
          operation,
          url: baseUrl + path,
          init: { method: 'GET', headers: { accept: 'application/json', authorization: `Bearer ${token}` } },
          timeoutMs,
          fetch,
          now,
          signal,
        });
        status = answer.status;
        const done = read(operation, answer);
        const { requestedAt, respondedAt } = answer;
        if (done) return { body: done.body, requestedAt, respondedAt, ...(kind === 'account' && { token }) };
        throw errorFromResponse(operation, answer.status, answer.headers, answer.text, {
          now: answer.respondedAt,
          hide: [token],
        });
      } finally {
        report({ operation, status, ms: now() - startedAt, attempt });
      }
    }
  }

  function report(info: RequestInfo): void {
    try {
      onRequest?.(info);
    } catch {
      // An error of the observer must not fail the call.
    }
  }
}

function listKind({ searchText, includeClosedJobs, orderGroup }: ActiveJobsQuery): RequestKind {
  if (orderGroup !== undefined) return 'group';
  if (searchText !== undefined) return includeClosedJobs ? 'closedSearch' : 'search';
  return includeClosedJobs ? 'closedList' : 'activeList';
}

/** Returns whether the ordering API does not know the record. A gateway's HTML page proves nothing about it. */
function isUnknown({ status, headers, text }: Exchanged): boolean {
  return status === 404 && !isHtml(headers, text);
}

function bodyAs<T>(schema: z.ZodType<T>) {
  return (operation: string, answer: Exchanged): { body: T } | undefined =>
    answer.status === 200 ? { body: readJson(operation, answer, schema) } : undefined;
}

function queryText(query: ActiveJobsQuery): string {
  const params = new URLSearchParams();
  for (const [name, value] of Object.entries(query)) {
    if (value !== undefined) params.set(name, String(value));
  }
  // A space is encoded as %20: only form decoders read a plus sign as a space.
  return params.size === 0 ? '' : `?${params.toString().replaceAll('+', '%20')}`;
}
