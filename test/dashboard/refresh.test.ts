/** Refetch of queries when events arrive. */
import { InfiniteQueryObserver, QueryClient } from '@tanstack/react-query';
import { expect, test } from 'vitest';
import { isRelevant, refreshQueries } from '../../dashboard/src/refresh.ts';
import type { EventType } from '../../shared/events/catalogue.ts';

test('events of other accounts do not refetch the lists of an account, those of a region do', () => {
  const types = ['account.*', 'upstream.*'];
  const event = (type: EventType, account?: string) => ({
    type,
    data: { region: 'us', ...(account === undefined ? {} : { account }) },
  });
  expect(isRelevant(event('account.resumed', 'acme'), types, 'acme')).toBe(true);
  expect(isRelevant(event('account.resumed', 'other'), types, 'acme')).toBe(false);
  expect(isRelevant(event('account.resumed', 'other'), types)).toBe(true);
  expect(isRelevant(event('upstream.outage'), types, 'acme')).toBe(true);
  expect(isRelevant(event('job.closed', 'acme'), types, 'acme')).toBe(false);
});

test('events do not refetch a list that freezes, while it has several pages', async () => {
  const client = new QueryClient();
  const requests: string[] = [];
  const open = async (name: string, freezes: boolean) => {
    const list = new InfiniteQueryObserver(client, {
      queryKey: ['messages', name],
      queryFn: async ({ pageParam }) => {
        requests.push(`${name} ${pageParam}`);
        return pageParam;
      },
      initialPageParam: 1,
      getNextPageParam: (last: number) => last + 1,
      meta: { freezes },
    });
    const close = list.subscribe(() => {});
    await list.refetch();
    return { list, close };
  };
  const lists = await Promise.all([open('frozen', true), open('live', false), open('single', true)]);
  for (const { list } of lists.slice(0, 2)) await list.fetchNextPage();
  requests.length = 0;
  refreshQueries(client, [['messages']]);
  await expect.poll(() => client.isFetching()).toBe(0);
  expect(requests.sort()).toEqual(['live 1', 'live 2', 'single 1']);
  for (const { close } of lists) close();
  client.clear();
});
