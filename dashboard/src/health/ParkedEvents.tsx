/** What an endpoint refused: what is set aside and tried again, and what was given up. */
import { Button, Checkbox } from '@mantine/core';
import { keepPreviousData, useInfiniteQuery } from '@tanstack/react-query';
import { useState } from 'react';
import type * as z from 'zod';
import type { DeadEvent, ParkedEvent } from '../../../shared/api/endpoint-views.ts';
import { Empty, Failure, Panel, showToast, useConfirm } from '../components.tsx';
import { useApi } from '../queries.ts';
import { useSession } from '../session.ts';
import { RelativeTime } from '../times.tsx';
import { ActionError, type Column, More, Rows, useActionRunner } from './components.tsx';
import { getTypeLabel, Subject } from './Deliveries.tsx';
import css from './Health.module.css';
import { endpointPath } from './queries.ts';
import type { Endpoint } from './status.ts';

type Parked = z.infer<typeof ParkedEvent>;
type Dead = z.infer<typeof DeadEvent>;

const PAGE = 25;
const EVERY_MS = 5_000;

/** A list of an endpoint, page by page; asked again by itself while only its first page is there. */
function useEventList<T>({ region, id }: Endpoint, what: 'parked' | 'dead', enabled: boolean) {
  const api = useApi();
  const query = useInfiniteQuery({
    queryKey: ['endpoints', what, region, id],
    queryFn: ({ pageParam, signal }) =>
      api.get<Record<string, unknown>>(endpointPath(id, `/${what}`), {
        query: { region, limit: PAGE, after: pageParam },
        signal,
      }),
    initialPageParam: undefined as string | undefined,
    getNextPageParam: ({ next }) => (typeof next === 'string' ? next : undefined),
    enabled,
    refetchInterval: ({ state }) => ((state.data?.pages.length ?? 1) > 1 ? false : EVERY_MS),
    placeholderData: keepPreviousData,
  });
  const rows = query.data?.pages.flatMap((page) => (page[what] ?? []) as T[]) ?? [];
  return { ...query, rows };
}

/** Events set aside. There only while there are some: `count` says how many. */
export function ParkedEvents({ endpoint, count }: { readonly endpoint: Endpoint; readonly count: number }) {
  const { region, id } = endpoint;
  const api = useApi();
  const ask = useConfirm();
  const { may } = useSession();
  const acts = useActionRunner([['endpoints']]);
  const list = useEventList<Parked>(endpoint, 'parked', count > 0);
  const [ticked, setTicked] = useState<ReadonlySet<string>>(new Set());
  if (count === 0) return null;
  const chosen = list.rows.map(({ event }) => event).filter((event) => ticked.has(event));
  const body = chosen.length > 0 ? { events: chosen } : { all: true };
  const which = chosen.length > 0 ? `${chosen.length} chosen` : 'all';
  const send = <T,>(verb: 'retry' | 'discard') =>
    api.post<T>(endpointPath(id, `/parked/${verb}`), { query: { region }, body });
  const retry = () =>
    void acts.run('retry', async () => {
      const { retried } = await send<{ retried: number }>('retry');
      setTicked(new Set());
      showToast(retried === 1 ? '1 event is tried again now.' : `${retried} events are tried again now.`);
    });
  const discard = () =>
    ask({
      title:
        chosen.length > 0
          ? `Discard ${formatEventCount(chosen.length)}?`
          : `Discard all ${formatEventCount(count)}?`,
      body: (
        <p>
          They are not sent to {id} any more. The next event of each job goes on at once. They stay in the
          log, and can be sent again by a replay.
        </p>
      ),
      verb: 'Discard',
      destructive: true,
      onConfirm: () =>
        acts.runConfirmed(async () => {
          await send('discard');
          setTicked(new Set());
        }, 'They are discarded.'),
    });
  const choice: Column<Parked> = {
    name: 'Choose',
    hiddenName: true,
    render: ({ event }) => (
      <Checkbox
        size="xs"
        aria-label={`Choose ${event}`}
        checked={ticked.has(event)}
        onChange={({ currentTarget }) => {
          const next = new Set(ticked);
          if (currentTarget.checked) next.add(event);
          else next.delete(event);
          setTicked(next);
        }}
      />
    ),
  };
  return (
    <Panel
      title={`Parked: ${formatEventCount(count)} set aside`}
      aside={
        may('operate') ? (
          <div className={css.tools}>
            <Button size="xs" variant="default" loading={acts.busy === 'retry'} onClick={retry}>
              Retry {which}
            </Button>
            <Button size="xs" variant="default" onClick={discard}>
              Discard {which}
            </Button>
          </div>
        ) : undefined
      }
    >
      <ActionError acts={acts} />
      {list.error && !list.data ? <Failure error={list.error} again={list.refetch} /> : null}
      <Rows
        label="Parked events"
        rows={list.rows}
        keyOf={({ event }) => event}
        columns={[
          ...parkedColumns<Parked>(),
          {
            name: 'Tried again',
            render: ({ retryAt }) =>
              retryAt === null ? 'after the one before it' : <RelativeTime at={retryAt} />,
          },
          {
            name: 'Why',
            wide: true,
            render: ({ reason }) => <bdi>{reason ?? 'Waits behind one of its job.'}</bdi>,
          },
          ...(may('operate') ? [choice] : []),
        ]}
      />
      {list.hasNextPage ? <More busy={list.isFetchingNextPage} onClick={list.fetchNextPage} /> : null}
    </Panel>
  );
}

/** Events that were given up, once somebody wants to see them. */
export function DeadEvents({ endpoint, count }: { readonly endpoint: Endpoint; readonly count: number }) {
  const list = useEventList<Dead>(endpoint, 'dead', count > 0);
  if (count === 0) return null;
  return (
    <Panel
      title="Dead"
      aside="Refused to the last attempt. Later events of the job went on; a replay can send them again."
    >
      {list.error && !list.data ? <Failure error={list.error} again={list.refetch} /> : null}
      {list.data && list.rows.length === 0 ? <Empty>None of them is of an account of your key.</Empty> : null}
      <Rows
        label="Dead events"
        rows={list.rows}
        keyOf={({ event, diedAt }) => `${event} ${diedAt}`}
        columns={[
          ...parkedColumns<Dead>(),
          { name: 'Given up', render: ({ diedAt }) => <RelativeTime at={diedAt} /> },
          { name: 'Why', wide: true, render: ({ reason }) => <bdi>{reason}</bdi> },
        ]}
      />
      {list.hasNextPage ? <More busy={list.isFetchingNextPage} onClick={list.fetchNextPage} /> : null}
    </Panel>
  );
}

function parkedColumns<T extends Parked | Dead>(): Column<T>[] {
  return [
    { name: 'Event', render: ({ type }) => getTypeLabel(type) },
    { name: 'Of', render: (one) => <Subject {...one} /> },
    { name: 'Set aside', render: ({ parkedAt }) => <RelativeTime at={parkedAt} /> },
    { name: 'Attempts', right: true, render: ({ attempts }) => attempts },
  ];
}

function formatEventCount(count: number): string {
  return count === 1 ? '1 event' : `${count.toLocaleString()} events`;
}
