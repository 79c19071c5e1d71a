/** Commands that perform one action on several resources. */
import type { BatchResponse, Client } from '../client/index.ts';
import { type Context, type Flags, type FlagValues, UsageError } from './command.ts';
import { parseList } from './input.ts';
import { type Column, count } from './output.ts';

/** Options that select the resources of a batch. */
export const BATCH = {
  ids: { value: 'A,B', about: 'Ids, at most 100', many: true },
  all: { about: 'All that the API key can access' },
} as const satisfies Flags;

/** Performs an action on several resources, page by page, and prints the results. Returns the exit code. */
export async function runBatch<A extends string>(
  { api, out }: Context,
  action: string,
  { ids, all, region }: FlagValues<typeof BATCH> & { readonly region: string | undefined },
  send: (
    client: Client,
    body: { action: A; ids?: string[]; all?: true; region?: string; after?: string },
  ) => Promise<BatchResponse>,
): Promise<number | undefined> {
  const named = parseList(ids);
  if (all === (named !== undefined)) {
    throw new UsageError('Either --ids A,B or --all is required, but not both.');
  }
  const client = api();
  const results: BatchResponse['results'][number][] = [];
  let after: string | null | undefined;
  try {
    while (after !== null) {
      const page: BatchResponse = await send(client, {
        action: action as A,
        ...(named ? { ids: named } : { all: true }),
        ...(region === undefined ? {} : { region }),
        ...(after === undefined ? {} : { after }),
      });
      results.push(...page.results);
      after = page.next;
    }
  } finally {
    // Also if a later page fails, because the earlier ones are changed.
    if (after !== undefined) {
      out.document({ results }, () => {
        const columns: Column<BatchResponse['results'][number]>[] = [
          { name: 'ID', value: ({ id }) => id },
          { name: 'REGION', value: ({ region: at }) => at },
          {
            name: 'RESULT',
            value: ({ problem, events }) =>
              problem ? problem.detail : events === null ? 'done' : count(events, 'event'),
            style: ({ problem }) => (problem ? 'red' : 'green'),
            long: true,
          },
        ];
        out.table(results, columns, 'There is nothing to change.');
      });
    }
  }
  return results.some(({ problem }) => problem !== null) ? 1 : undefined;
}
