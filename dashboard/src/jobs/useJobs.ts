/** Runs a search for jobs: asks what it says, and tells it what happens. It goes on where it was when one comes back to it. */
import { useQueryClient } from '@tanstack/react-query';
import { useCallback, useEffect, useMemo, useSyncExternalStore } from 'react';
import { type Api, ApiError, toErrorMessage } from '../api.ts';
import { useApi } from '../queries.ts';
import type { EventStream } from '../stream.ts';
import { useStream } from '../stream-hooks.ts';
import {
  type JobQuery,
  JobSearch,
  type ListedJob,
  type PageRequest,
  type SearchedAccount,
  type SearchResult,
} from './search.ts';

/** A search that runs while it is looked at. */
export interface ActiveSearch {
  readonly result: SearchResult;
  /** So many rows are wanted at least. */
  requestRows(rows: number): void;
  /** What failed is asked again. */
  retry(): void;
  /** More is read of what was cut. */
  readMore(): void;
  /** Everything is asked anew. */
  restart(): void;
}

/** The search for what is wanted among the accounts. Both are taken when it begins; another `wanted` begins another. */
export function useJobs(wanted: JobQuery, accounts: readonly SearchedAccount[]): ActiveSearch {
  const api = useApi();
  const stream = useStream();
  const client = useQueryClient();
  const name = JSON.stringify(wanted);
  // Accounts that come or go begin another search; how they stand does not.
  const among = accounts.map(({ id }) => id).join(' ');
  // biome-ignore lint/correctness/useExhaustiveDependencies: see above
  const runner = useMemo(() => {
    const place = ['jobs', 'search'];
    const kept = client.getQueryData<{ readonly name: string; readonly runner: Runner }>(place);
    if (kept?.name === name + among && kept.runner.catchUp()) return kept.runner;
    const begun = new Runner(api, stream, wanted, accounts);
    // However long it is looked at before one leaves it, and comes back.
    client.setQueryDefaults(place, { gcTime: Number.POSITIVE_INFINITY });
    client.setQueryData(place, { name: name + among, runner: begun });
    return begun;
  }, [api, stream, client, name, among]);
  useEffect(() => runner.run(), [runner]);
  const found = useSyncExternalStore(runner.subscribe, runner.found);
  const again = useCallback(() => runner.again(accounts), [runner, accounts]);
  return {
    result: found,
    requestRows: runner.want,
    retry: runner.retry,
    readMore: runner.readOn,
    restart: again,
  };
}

/** What is on the screen is drawn anew so often at most, for many answers come at once. */
const NOTIFY_MS = 80;
const MAX_ATTEMPTS = 4;

class Runner {
  readonly #api: Api;
  readonly #stream: EventStream;
  readonly #wanted: JobQuery;
  readonly #listeners = new Set<() => void>();
  #search: JobSearch;
  #found: SearchResult;
  #heard: number;
  #running = 0;
  #telling: ReturnType<typeof setTimeout> | undefined;

  constructor(api: Api, stream: EventStream, wanted: JobQuery, accounts: readonly SearchedAccount[]) {
    this.#api = api;
    this.#stream = stream;
    this.#wanted = wanted;
    this.#search = this.#begin(accounts);
    this.#found = this.#search.getResult();
    this.#heard = stream.getState().count;
  }

  /** Takes in what happened while nobody looked; `false`: too much did. */
  catchUp(): boolean {
    const { rows, count } = this.#stream.getState();
    const missed = rows.filter(({ number }) => number > this.#heard);
    if (missed.length < count - this.#heard || missed.some(({ kind }) => kind === 'hole')) return false;
    this.#search.applyEvents(missed.flatMap((row) => (row.kind === 'event' ? [row.event] : [])));
    this.#heard = count;
    this.#found = this.#search.getResult();
    return true;
  }

  /** Runs until what it gives is called. */
  run(): () => void {
    this.#running += 1;
    this.catchUp();
    const off = this.#stream.onEvents((events) => {
      this.#heard = this.#stream.getState().count;
      if (this.#search.applyEvents(events)) this.#tell();
    });
    this.#pump();
    this.#tell();
    return () => {
      this.#running -= 1;
      off();
    };
  }

  readonly subscribe = (listener: () => void): (() => void) => {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  };
  readonly found = (): SearchResult => this.#found;
  readonly want = (rows: number): void => {
    this.#search.requestRows(rows);
    this.#pump();
  };
  readonly retry = (): void => {
    this.#search.retry();
    this.#pump();
    this.#tell();
  };
  readonly readOn = (): void => {
    this.#search.readMore();
    this.#pump();
    this.#tell();
  };

  again(accounts: readonly SearchedAccount[]): void {
    this.#search = this.#begin(accounts);
    this.#pump();
    this.#tell();
  }

  #begin(accounts: readonly SearchedAccount[]): JobSearch {
    const search = new JobSearch(this.#wanted, accounts);
    const { rows } = this.#stream.getState();
    search.applyEarlierEvents(
      rows.flatMap((row) => (row.kind === 'event' && row.receivedAt !== null ? [row.event] : [])),
    );
    return search;
  }

  #pump(): void {
    if (this.#running === 0) return;
    for (const ask of this.#search.nextRequests()) void this.#ask(this.#search, ask);
  }

  async #ask(search: JobSearch, ask: PageRequest): Promise<void> {
    const { source, after, limit } = ask;
    const path = `/v1/accounts/${encodeURIComponent(source.account)}/jobs`;
    for (let attempt = 1; ; attempt += 1) {
      try {
        search.addPage(ask, await this.#api.get<Page>(path, { query: { ...source.filter, after, limit } }));
        break;
      } catch (cause) {
        const passing = cause instanceof ApiError && (cause.status === 0 || cause.status >= 429);
        if (!passing || attempt === MAX_ATTEMPTS) {
          search.addFailure(ask, toErrorMessage(cause));
          break;
        }
        const seconds = cause.retryAfterSeconds ?? 2 ** (attempt - 2);
        await new Promise((resolve) => setTimeout(resolve, seconds * 1_000));
      }
    }
    if (search !== this.#search) return;
    this.#pump();
    this.#tell();
  }

  #tell(): void {
    this.#telling ??= setTimeout(() => {
      this.#telling = undefined;
      const found = this.#search.getResult();
      if (found === this.#found) return;
      this.#found = found;
      for (const listener of this.#listeners) listener();
    }, NOTIFY_MS);
  }
}

interface Page {
  readonly jobs: readonly ListedJob[];
  readonly next: string | null;
}
