/** Stage of a poll: fetches single jobs, those missing from the list among them. */
import type { Crawl } from '../crawl.ts';
import { type FetchResult, fetchJobs } from '../detail-fetches.ts';
import type { Poll, Session } from '../poll-context.ts';
import type { Work } from '../work.ts';

const NONE: FetchResult = {
  ...{ fetched: 0, left: 0, firstUnsentTurn: Number.POSITIVE_INFINITY },
  ...{ gone: [], unreadable: [], readable: [] },
};

/** Share of the poll's time in which more fetches than usual may be started. */
const TIME_SHARE = 0.5;

/** Fetches the jobs that are due. Before the baseline is complete, there are none. */
export async function investigate(
  { deps, baselined, context, tracked, deadline }: Poll,
  { client, signal }: Session,
  list: Crawl,
  works: Iterable<Work>,
): Promise<FetchResult> {
  if (!baselined) return NONE;
  const { index, statuses } = tracked;
  const { startedAt, pollIntervalSeconds } = context;
  const stopAt = startedAt + TIME_SHARE * Math.min(pollIntervalSeconds * 1000, deadline - startedAt);
  const { now } = deps;
  return fetchJobs(works, { ...context, index, statuses, client, signal, crawl: list, now, stopAt });
}
