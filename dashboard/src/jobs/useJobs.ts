/** Runs a job search: sends its requests and applies live events. A search resumes when the user returns to it. */
import { useQueryClient } from '@tanstack/react-query';
import { useEffect, useMemo, useSyncExternalStore } from 'react';
import type { Client } from '../../../client/index.ts';
import { toErrorMessage } from '../api.ts';
import { useApi } from '../queries.ts';
import type { EventStream } from '../stream.ts';
import { documentVisibility, subscribeToClock, useStream } from '../stream-hooks.ts';
import { fetchJobs } from './requests.ts';
import {
  type JobQuery,
  JobSearch,
  type PageRequest,
  type SearchedAccount,
  type SearchResult,
} from './search.ts';

/** A search that runs while its component is mounted. */
export interface ActiveSearch {
  readonly result: SearchResult;
  /** Raises the number of requested rows to `rows`. */
  requestRows(rows: number): void;
  /** Repeats failed requests. */
  retry(): void;
  /** Continues reading a cut result. */
  readMore(): void;
  /** Starts the search again. */
  restart(): void;
}

/**
 * Searches the accounts for jobs. A different query or set of accounts starts a new search. While the page is visible, the rows are
 * read again at intervals, because the delay of a job, its risk and its time in the status can change without an
 * event.
 */
export function useJobs(query: JobQuery, accounts: readonly SearchedAccount[]): ActiveSearch {
  const api = useApi();
  const stream = useStream();
  const client = useQueryClient();
  // Added or removed accounts start a new search; status changes do not.
  const key = JSON.stringify(query) + accounts.map(({ id }) => id).join(' ');
  // biome-ignore lint/correctness/useExhaustiveDependencies: see above
  const runner = useMemo(() => {
    const queryKey = ['jobs', 'search'];
    const kept = client.getQueryData<{ readonly key: string; readonly runner: Runner }>(queryKey);
    if (kept?.key === key && kept.runner.catchUp()) return kept.runner;
    const started = new Runner(api, stream, query, accounts);
    // Kept until replaced, so that the user can return to it.
    client.setQueryDefaults(queryKey, { gcTime: Number.POSITIVE_INFINITY });
    client.setQueryData(queryKey, { key, runner: started });
    return started;
  }, [api, stream, client, key]);
  useEffect(() => {
    runner.accounts = accounts;
  }, [runner, accounts]);
  useEffect(() => runner.run(), [runner]);
  const result = useSyncExternalStore(runner.subscribe, runner.getResult);
  const { requestRows, retry, readMore, restart } = runner;
  return { result, requestRows, retry, readMore, restart };
}

/** Minimum interval between renders, because many responses arrive at once. */
const NOTIFY_MS = 80;
/** Interval at which the rows are read again: at least one minute, and so many requests that one is sent every three seconds. */
const REREAD_MS = { least: 60_000, perRequest: 3_000 };

class Runner {
  /** The accounts with their current status. */
  accounts: readonly SearchedAccount[];
  readonly #api: Client;
  readonly #stream: EventStream;
  readonly #query: JobQuery;
  readonly #listeners = new Set<() => void>();
  #search: JobSearch;
  /** A repetition of the search, whose rows replace those of the search once they are read. */
  #reread: JobSearch | undefined;
  #rereadAt = 0;
  /** Number of requests since the beginning of the last search. */
  #requests = 0;
  #result: SearchResult;
  #appliedCount: number;
  #running = 0;
  #notifyTimer: ReturnType<typeof setTimeout> | undefined;

  constructor(api: Client, stream: EventStream, query: JobQuery, accounts: readonly SearchedAccount[]) {
    this.#api = api;
    this.#stream = stream;
    this.#query = query;
    this.accounts = accounts;
    this.#search = this.#createSearch();
    this.#result = this.#search.getResult();
    this.#appliedCount = stream.getState().count;
  }

  /** Applies events since the search was left. Returns `false` if some of them are no longer in the stream. */
  catchUp(): boolean {
    const { rows, count } = this.#stream.getState();
    const missed = rows.filter(({ number }) => number > this.#appliedCount);
    if (missed.length < count - this.#appliedCount || missed.some(({ kind }) => kind === 'gap')) return false;
    this.#search.applyEvents(missed.flatMap((row) => (row.kind === 'event' ? [row.event] : [])));
    this.#appliedCount = count;
    this.#result = this.#search.getResult();
    return true;
  }

  /** Starts the search. The returned function stops it. */
  run(): () => void {
    this.#running += 1;
    this.catchUp();
    const off = this.#stream.onEvents((events) => {
      this.#appliedCount = this.#stream.getState().count;
      this.#reread?.applyEvents(events);
      if (this.#search.applyEvents(events)) this.#notify();
    });
    const offClock = subscribeToClock(() => this.#rereadIfDue());
    this.#sendRequests();
    this.#notify();
    return () => {
      this.#running -= 1;
      this.#reread = undefined;
      off();
      offClock();
    };
  }

  readonly subscribe = (listener: () => void): (() => void) => {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  };
  readonly getResult = (): SearchResult => this.#result;
  readonly requestRows = (rows: number): void => {
    this.#search.requestRows(rows);
    this.#sendRequests();
  };
  readonly retry = (): void => {
    this.#search.retry();
    this.#rereadAt = 0;
    this.#sendRequests();
    this.#notify();
  };
  readonly readMore = (): void => {
    this.#search.readMore();
    this.#sendRequests();
    this.#notify();
  };

  readonly restart = (): void => {
    this.#reread = undefined;
    this.#search = this.#createSearch();
    this.#sendRequests();
    this.#notify();
  };

  #rereadIfDue(): void {
    if (Date.now() < this.#rereadAt || this.#reread || documentVisibility.hidden()) return;
    if (this.#search.getResult().reading) return;
    this.#reread = this.#createSearch();
    this.#reread.requestRows(this.#search.getResult().rows.length);
    this.#sendRequests();
  }

  #createSearch(): JobSearch {
    this.#requests = 0;
    this.#scheduleReread();
    const search = new JobSearch(this.#query, this.accounts);
    const { rows } = this.#stream.getState();
    search.applyEarlierEvents(
      rows.flatMap((row) => (row.kind === 'event' && row.receivedAt !== null ? [row.event] : [])),
    );
    return search;
  }

  #scheduleReread(): void {
    this.#rereadAt = Date.now() + Math.max(REREAD_MS.least, this.#requests * REREAD_MS.perRequest);
  }

  #sendRequests(): void {
    if (this.#running === 0) return;
    for (const search of [this.#search, ...(this.#reread ? [this.#reread] : [])])
      for (const request of search.nextRequests()) void this.#send(search, request);
  }

  async #send(search: JobSearch, request: PageRequest): Promise<void> {
    this.#requests += 1;
    this.#scheduleReread();
    try {
      search.addPage(request, await fetchJobs(this.#api, request));
    } catch (cause) {
      search.addFailure(request, toErrorMessage(cause));
    }
    if (search !== this.#search && search !== this.#reread) return;
    this.#sendRequests();
    if (search === this.#reread && !search.getResult().reading) {
      this.#reread = undefined;
      this.#search.update(search);
    }
    this.#notify();
  }

  #notify(): void {
    this.#notifyTimer ??= setTimeout(() => {
      this.#notifyTimer = undefined;
      const result = this.#search.getResult();
      if (result === this.#result) return;
      this.#result = result;
      for (const listener of this.#listeners) listener();
    }, NOTIFY_MS);
  }
}
