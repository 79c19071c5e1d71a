/** Stage of a poll: fetches single jobs, those missing from the list among them. */
import type { Crawl } from '../crawl.ts';
import { type FetchResult, fetchJobs } from '../detail-fetches.ts';
import type { Poll, Session } from '../poll-context.ts';
import type { Work } from '../work.ts';

const NONE: FetchResult = { made: 0, left: 0, gone: [] };

/** Fetches the jobs that are due. Before the baseline is complete, there are none. */
export async function investigate(
  { baselined, context, tracked }: Poll,
  { client, signal }: Session,
  list: Crawl,
  works: Iterable<Work>,
): Promise<FetchResult> {
  const { index, statuses } = tracked;
  return baselined ? fetchJobs(works, { ...context, index, statuses, client, signal, seen: list }) : NONE;
}
