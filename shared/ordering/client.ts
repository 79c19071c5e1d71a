import { setTimeout as pause } from 'node:timers/promises';
import pLimit from 'p-limit';
import type * as z from 'zod';
import { errorFromResponse, isHtml, OrderingError, type OrderingErrorKind } from './errors.ts';
import { baseAddress, type Exchanged, exchange, readJson, unlessAborted } from './exchange.ts';
import {
  AccountProfile,
  AccountUser,
  ActiveJobsPage,
  JobDetail,
  type JobStatus,
  JobStatuses,
} from './schemas.ts';
import type { TokenSource } from './tokens.ts';

/**
 * An answer and when it was observed, in epoch ms: `askedAt` just before the request that succeeded was sent, `answeredAt`
 * when its answer was read to the end. What the body says was true at some moment between the two (rule 13 of
 * docs/truth.md); time spent queueing, waiting or on failed attempts lies before both.
 */
export interface Answer<T> {
  body: T;
  askedAt: number;
  answeredAt: number;
}

/** The list of jobs as an operation of {@link OrderingError} and {@link RequestInfo}. */
export const ACTIVE_JOBS = 'GET /Jobs/active';

/** Parameters of `GET /Jobs/active`, named as the service names them. What is left out takes the service's default. */
export interface ActiveJobsQuery {
  /** From 1. */
  page?: number | undefined;
  /** At most 100; the service's default is 20. */
  pageSize?: number | undefined;
  /** Each word is matched as a prefix against many fields: compare job numbers exactly afterwards (rule 3). */
  searchText?: string | undefined;
  /** Cancelled jobs appear in neither case. */
  includeClosedJobs?: boolean | undefined;
  orderGroup?: string | undefined;
  excludeJobNumber?: number | undefined;
  customerUserId?: number | undefined;
  sortColumn?: string | undefined;
  sortDirection?: string | undefined;
}

/** One HTTP request to the ordering service, for logs and metrics; ids and payloads are not in it. */
export interface RequestInfo {
  /** Method and path template. */
  operation: string;
  /** HTTP status; undefined when no complete answer came. */
  status: number | undefined;
  ms: number;
  /** From 1; above 1 it is a retry. */
  attempt: number;
}

/** Running totals of one client, for the wide log line of a poll: note them before, take the difference after. */
export interface OrderingCounts {
  /** Requests sent to the ordering service, retries included; token requests are not. */
  readonly requests: number;
  /** Of those, the ones that repeated a call: after a 401, a fault or a request to wait. */
  readonly retries: number;
  /** How many different tokens calls went out with. When it has grown, `account` has to be read again (rule 9). */
  readonly tokens: number;
  /** Faults by kind, of those that were repeated as well; requests for tokens that calls waited for are among them. */
  readonly errors: ErrorCounts;
}

/** How many faults there were of each kind. */
export type ErrorCounts = { readonly [K in OrderingErrorKind]?: number };

/**
 * Read-only client of the ordering service with one account's credentials. Every method throws OrderingError (see its
 * kinds), or the signal's own reason when the caller's signal fires, at once, whatever the call was waiting for.
 */
export interface OrderingClient {
  /** One page of the list view. Whether it echoes what was asked is for the caller to check (rule 2). */
  activeJobs(query: ActiveJobsQuery, signal?: AbortSignal): Promise<Answer<ActiveJobsPage>>;
  /**
   * The detail view of one job. `body` is undefined when the service says 404: gone, or of another account, which look the
   * same. A 404 that is an HTML page is thrown as `not_found` instead: that was a gateway, and says nothing of the job.
   */
  job(jobNumber: number, signal?: AbortSignal): Promise<Answer<JobDetail | undefined>>;
  /** The names of statuses known today. The set grows. */
  jobStatuses(signal?: AbortSignal): Promise<Answer<JobStatus[]>>;
  /** The account these credentials belong to (rule 9). */
  account(signal?: AbortSignal): Promise<Answer<AccountProfile>>;
  /** The user these credentials act as. */
  accountUser(signal?: AbortSignal): Promise<Answer<AccountUser>>;
  readonly counts: OrderingCounts;
}

/** What a client is built from; only where the service is and whose tokens to use have to be said. */
export interface OrderingClientOptions {
  /** Base address of the region's API; it may carry a path, with or without a trailing slash. */
  baseUrl: string;
  tokens: TokenSource;
  /** Requests under way at the same time. Default 4. */
  maxConcurrency?: number;
  /** For each request, reading its answer included; queueing and pauses don't count. Default 15,000. */
  timeoutMs?: number;
  /** The longest Retry-After that is waited for within a call; a longer one is thrown at once. Default 20,000. */
  maxRetryAfterMs?: number;
  fetch?: typeof globalThis.fetch;
  /** Epoch ms. */
  now?: () => number;
  sleep?: (ms: number, signal?: AbortSignal) => Promise<unknown>;
  /** From 0 (inclusive) to 1 (exclusive). */
  random?: () => number;
  /** Called after each request; what it throws is ignored. */
  onRequest?: ((info: RequestInfo) => void) | undefined;
}

/** Retries of one call in all; the one with a fresh token after a 401 comes on top. */
const MOST_RETRIES = 2;

/**
 * Retries per kind of fault (rule 12). Everything is a GET, so a retry is always safe. A time-out is not retried: it has
 * already cost the full time, and the next poll asks again anyway.
 */
const RETRIES: Partial<Record<OrderingErrorKind, number>> = {
  rate_limited: 2,
  unavailable: 2,
  server_error: 1,
  network: 1,
};
const RETRIES_WHEN_CUT_SHORT = 1;
const FIRST_BACK_OFF_MS = 1_000;

/**
 * Builds a client. What it does about faults (rule 12 of docs/truth.md):
 * - 401: the token is dropped and the call repeated once with a new one; refused again it is `unauthorized`.
 * - 429, 502, 503, 504: at most 2 retries; 500, a failed connection, a body cut short: 1. Before each, the Retry-After
 *   if one was sent, else 0.5–1 s, then 1–2 s. A Retry-After beyond `maxRetryAfterMs` is thrown at once, with its value.
 * - A failing token endpoint is treated alike, except that a refusal (`credentials_rejected`) is never retried.
 * - Everything else is thrown as it comes.
 *
 * A call that pauses keeps its slot: a service that asks for a rest should get fewer requests, not the next in the queue.
 */
export function createOrderingClient(options: OrderingClientOptions): OrderingClient {
  const {
    tokens,
    maxConcurrency = 4,
    timeoutMs = 15_000,
    maxRetryAfterMs = 20_000,
    now = Date.now,
    sleep = (ms, signal) => pause(ms, undefined, { signal }),
    random = Math.random,
    onRequest,
  } = options;
  const fetch = options.fetch ?? globalThis.fetch;
  const baseUrl = baseAddress('baseUrl', options.baseUrl);
  const slot = pLimit(maxConcurrency);
  const errors: { [K in OrderingErrorKind]?: number } = {};
  const counts = { requests: 0, retries: 0, tokens: 0, errors };
  let latestToken: string | undefined;

  return {
    activeJobs: (query, signal) =>
      call(ACTIVE_JOBS, `/Jobs/active${queryText(query)}`, signal, bodyAs(ActiveJobsPage)),
    job: (jobNumber, signal) =>
      call('GET /Jobs/{jobNumber}', `/Jobs/${jobNumber}`, signal, (operation, answer) => {
        if (answer.status === 404 && !isHtml(answer.headers, answer.text)) return { body: undefined };
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
      call('GET /Lookups/job-statuses', '/Lookups/job-statuses', signal, bodyAs(JobStatuses)),
    account: (signal) => call('GET /account', '/account', signal, bodyAs(AccountProfile)),
    accountUser: (signal) => call('GET /account/user', '/account/user', signal, bodyAs(AccountUser)),
    counts,
  };

  /** `read` gives the body of an answer it takes for one, undefined for a failing status. */
  async function call<T>(
    operation: string,
    path: string,
    signal: AbortSignal | undefined,
    read: (operation: string, answer: Exchanged) => { body: T } | undefined,
  ): Promise<Answer<T>> {
    signal?.throwIfAborted();
    return unlessAborted(
      slot(() => inSlot()),
      signal,
    );

    async function inSlot(): Promise<Answer<T>> {
      const failures = new Map<string, number>();
      let retries = 0;
      let renewed = false;
      let sent = 0;
      for (;;) {
        let usedToken: string | undefined;
        try {
          // The token is taken in the slot, so that it cannot grow old in the queue.
          const token = await tokens.get(signal);
          usedToken = token.value;
          return await once(token.value, ++sent);
        } catch (error) {
          signal?.throwIfAborted();
          if (!(error instanceof OrderingError)) throw error;
          errors[error.kind] = (errors[error.kind] ?? 0) + 1;
          if (error.kind === 'unauthorized' && usedToken !== undefined && !renewed) {
            renewed = true;
            await unlessAborted(tokens.drop(usedToken), signal);
            continue;
          }
          const fault = error.cutShort ? 'cut short' : error.kind;
          const allowed = error.cutShort ? RETRIES_WHEN_CUT_SHORT : (RETRIES[error.kind] ?? 0);
          const before = failures.get(fault) ?? 0;
          const pauseMs = error.retryAfterMs ?? FIRST_BACK_OFF_MS * 2 ** retries * (0.5 + random() / 2);
          if (before >= allowed || retries >= MOST_RETRIES || (error.retryAfterMs ?? 0) > maxRetryAfterMs)
            throw error;
          failures.set(fault, before + 1);
          retries++;
          await unlessAborted(Promise.resolve(sleep(pauseMs, signal)), signal);
        }
      }
    }

    async function once(token: string, attempt: number): Promise<Answer<T>> {
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
        if (done) return { body: done.body, askedAt: answer.askedAt, answeredAt: answer.answeredAt };
        throw errorFromResponse(operation, answer.status, answer.headers, answer.text, {
          now: answer.answeredAt,
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
      // An observer's fault is none of the call's.
    }
  }
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
  // A space as %20: the plus sign means a space only to those who decode forms.
  return params.size === 0 ? '' : `?${params.toString().replaceAll('+', '%20')}`;
}
