/** Requests of a job search. */
import type { Client } from '../../../client/index.ts';
import { type Backoff, backoff, sleep } from '../../../shared/retry.ts';
import { getRetryAfterMs, isTransient } from '../api.ts';
import type { PageRequest } from './search.ts';

const MAX_ATTEMPTS = 4;
const RETRY_MS: Backoff = { first: 500, max: 4_000 };

/** Fetches a page of a list. Repeats the request after transient errors. */
export async function fetchJobs(api: Client, { source, after, limit }: PageRequest) {
  const params = { path: { id: source.account }, query: { ...source.filter, after, limit } };
  for (let attempt = 1; ; attempt += 1) {
    try {
      return await api.get('/v1/accounts/{id}/jobs', { params });
    } catch (cause) {
      if (!isTransient(cause) || attempt === MAX_ATTEMPTS) throw cause;
      await sleep(getRetryAfterMs(cause) ?? backoff(attempt - 1, RETRY_MS), undefined);
    }
  }
}
