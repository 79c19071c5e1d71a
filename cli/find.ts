/** `jobwire find`: searches all accounts. */
import type { Context } from './command.ts';
import { parseList } from './input.ts';

/** Searches for a text, and prints the results. */
export async function find(
  { api, out }: Context,
  q: string,
  {
    kinds,
    region,
    limit,
  }: {
    readonly kinds: readonly string[];
    readonly region: string | undefined;
    readonly limit: number | undefined;
  },
): Promise<undefined> {
  const query = { q, region, limit, kinds: parseList(kinds)?.join(',') };
  const { results, more } = await api().get('/v1/search', { params: { query } });
  return out.list(
    async function* (onMore) {
      yield* results;
      if (more) onMore();
    },
    [
      { name: 'KIND', value: ({ kind }) => kind },
      { name: 'VALUE', value: ({ value }) => value, long: true },
      { name: 'REGION', value: (result) => result.region },
      { name: 'ACCOUNT', value: ({ account }) => account },
      { name: 'JOB', value: ({ jobNumber }) => jobNumber, right: true },
      { name: 'ID', value: ({ id }) => id, long: true },
      { name: 'STATUS', value: ({ status }) => status },
      { name: 'DESCRIPTION', value: ({ description }) => description, long: true },
    ],
    'Nothing was found.',
  );
}
