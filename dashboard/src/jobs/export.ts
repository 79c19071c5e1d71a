/** Export of the jobs of a search as CSV, in the order of the list. */
import type { Client, ListOptions } from '../../../client/index.ts';
import { toCsvLine } from '../export.tsx';
import { fetchJobs } from './requests.ts';
import { type JobQuery, JobSearch, type SearchedAccount } from './search.ts';

/** Yields the jobs that match a query, at most `max`. Throws the error of a failed request. */
export async function* exportJobs(
  api: Client,
  query: JobQuery,
  accounts: readonly SearchedAccount[],
  { max, onMore }: Required<Pick<ListOptions, 'max' | 'onMore'>>,
): AsyncGenerator<string, void> {
  const search = new JobSearch(query, accounts);
  search.requestRows(max);
  for (let requests = search.nextRequests(); requests.length > 0; requests = search.nextRequests()) {
    await Promise.all(
      requests.map(async (request) => search.addPage(request, await fetchJobs(api, request))),
    );
  }
  const { rows, complete } = search.getResult();
  const columns = Object.keys(rows[0]?.job ?? {}) as (keyof (typeof rows)[number]['job'])[];
  yield toCsvLine(['account', 'region', ...columns]);
  for (const { account, region, job } of rows.slice(0, max))
    yield toCsvLine([account, region, ...columns.map((column) => job[column])]);
  if (!complete || rows.length > max) onMore();
}
