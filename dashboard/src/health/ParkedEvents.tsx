/** Parked and dead events of an endpoint, with retry and discard. */
import { Button, Checkbox } from '@mantine/core';
import { useState } from 'react';
import type { DeadEvent, ParkedEvent, ParkedEventSelection } from '../../../client/index.ts';
import { withEndpoint } from '../api.ts';
import { Empty, Failure, Panel, showToast, useConfirm } from '../components.tsx';
import { type Column, DataTable, LoadMore, usePages } from '../DataTable.tsx';
import { useApi } from '../queries.ts';
import { useSession } from '../session.ts';
import { RelativeTime } from '../times.tsx';
import ui from '../ui.module.css';
import { ActionError, useActionRunner } from './components.tsx';
import { getTypeLabel, Subject } from './Deliveries.tsx';
import type { Endpoint } from './status.ts';

const PAGE = 25;
const REFETCH_MS = 5_000;

/** A paged list of events of an endpoint. */
function useEventList<T>({ region, id }: Endpoint, what: 'parked' | 'dead', enabled: boolean) {
  const api = useApi();
  const list = usePages({
    queryKey: ['endpoints', what, region, id],
    fetchPage: (after, signal) =>
      api.get(`/v1/endpoints/{id}/${what}`, {
        params: { path: { id }, query: { region, limit: PAGE, after } },
        signal,
      }),
    toRows: (page) => ('parked' in page ? page.parked : page.dead) as T[],
    refetchMs: REFETCH_MS,
    enabled,
  });
  return { ...list, rows: list.rows ?? [] };
}

/** Parked events. Renders nothing if `count` is 0. */
export function ParkedEvents({ endpoint, count }: { readonly endpoint: Endpoint; readonly count: number }) {
  const { id } = endpoint;
  const api = useApi();
  const ask = useConfirm();
  const { may } = useSession();
  const runner = useActionRunner([['endpoints']]);
  const list = useEventList<ParkedEvent>(endpoint, 'parked', count > 0);
  const [selectedIds, setSelectedIds] = useState<ReadonlySet<string>>(new Set());
  if (count === 0) return null;
  const selected = list.rows.map(({ event }) => event).filter((event) => selectedIds.has(event));
  const body: ParkedEventSelection = selected.length > 0 ? { events: selected } : { all: true };
  const options = { ...withEndpoint(endpoint), body };
  const which = selected.length > 0 ? `${selected.length} selected` : 'all';
  const retry = () =>
    void runner.run('retry', async () => {
      const { retried } = await api.post('/v1/endpoints/{id}/parked/retry', options);
      setSelectedIds(new Set());
      showToast(retried === 1 ? '1 event is being retried.' : `${retried} events are being retried.`);
    });
  const discard = () =>
    ask({
      title:
        selected.length > 0
          ? `Discard ${formatEventCount(selected.length)}?`
          : `Discard all ${formatEventCount(count)}?`,
      body: `They are not sent to ${id} again, and the next event of each job is delivered at once. They stay in the log and can be replayed.`,
      verb: 'Discard',
      destructive: true,
      onConfirm: () =>
        runner.runConfirmed(async () => {
          await api.post('/v1/endpoints/{id}/parked/discard', options);
          setSelectedIds(new Set());
        }, 'The events are discarded.'),
    });
  const selection: Column<ParkedEvent> = {
    name: 'Select',
    hiddenName: true,
    render: ({ event }) => (
      <Checkbox
        size="xs"
        aria-label={`Select ${event}`}
        checked={selectedIds.has(event)}
        onChange={({ currentTarget }) => {
          const next = new Set(selectedIds);
          if (currentTarget.checked) next.add(event);
          else next.delete(event);
          setSelectedIds(next);
        }}
      />
    ),
  };
  return (
    <Panel
      title={`Parked: ${formatEventCount(count)}`}
      aside={
        may('operate') ? (
          <div className={ui.actions}>
            <Button size="xs" variant="default" loading={runner.busy === 'retry'} onClick={retry}>
              Retry {which}
            </Button>
            <Button size="xs" variant="default" onClick={discard}>
              Discard {which}
            </Button>
          </div>
        ) : undefined
      }
    >
      <ActionError runner={runner} />
      {list.error && !list.data ? <Failure error={list.error} again={list.refetch} /> : null}
      <DataTable
        label="Parked events"
        rows={list.rows}
        keyOf={({ event }) => event}
        columns={[
          ...parkedColumns<ParkedEvent>(),
          {
            name: 'Next attempt',
            render: ({ retryAt }) =>
              retryAt === null ? 'After the event before it' : <RelativeTime at={retryAt} />,
          },
          {
            name: 'Reason',
            wide: true,
            render: ({ reason }) => <bdi>{reason ?? 'An earlier event of the job is parked.'}</bdi>,
          },
          ...(may('operate') ? [selection] : []),
        ]}
      />
      <LoadMore query={list} />
    </Panel>
  );
}

/** Dead events. Renders nothing if `count` is 0. */
export function DeadEvents({ endpoint, count }: { readonly endpoint: Endpoint; readonly count: number }) {
  const list = useEventList<DeadEvent>(endpoint, 'dead', count > 0);
  if (count === 0) return null;
  return (
    <Panel
      title="Dead"
      aside="Rejected on every attempt. Later events of the job were delivered without them. A replay sends them again."
    >
      {list.error && !list.data ? <Failure error={list.error} again={list.refetch} /> : null}
      {list.data && list.rows.length === 0 ? (
        <Empty>No dead events of the accounts of your key.</Empty>
      ) : null}
      <DataTable
        label="Dead events"
        rows={list.rows}
        keyOf={({ event, diedAt }) => `${event} ${diedAt}`}
        columns={[
          ...parkedColumns<DeadEvent>(),
          { name: 'Dead since', render: ({ diedAt }) => <RelativeTime at={diedAt} /> },
          { name: 'Reason', wide: true, render: ({ reason }) => <bdi>{reason}</bdi> },
        ]}
      />
      <LoadMore query={list} />
    </Panel>
  );
}

function parkedColumns<T extends ParkedEvent | DeadEvent>(): Column<T>[] {
  return [
    { name: 'Event', render: ({ type }) => getTypeLabel(type) },
    { name: 'Subject', render: (one) => <Subject {...one} /> },
    { name: 'Parked since', render: ({ parkedAt }) => <RelativeTime at={parkedAt} /> },
    { name: 'Attempts', right: true, render: ({ attempts }) => attempts },
  ];
}

function formatEventCount(count: number): string {
  return count === 1 ? '1 event' : `${count.toLocaleString()} events`;
}
