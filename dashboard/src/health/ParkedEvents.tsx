/** Parked and dead events of an endpoint, with retry and discard. */
import { Checkbox } from '@mantine/core';
import type { DeadEvent, ParkedEvent, ParkedEventSelection } from '../../../client/index.ts';
import { useActions } from '../actions.ts';
import { withEndpoint } from '../api.ts';
import { useSelection } from '../bulk/selection.ts';
import { Panel, showToast } from '../components.tsx';
import { type Column, type Columns, QueryTable, usePages } from '../DataTable.tsx';
import { ExportButton } from '../export.tsx';
import { useApi } from '../queries.ts';
import { useSession } from '../session.ts';
import { formatCount } from '../texts.ts';
import { RelativeTime } from '../times.tsx';
import ui from '../ui.module.css';
import { ActionButton, ActionError } from './components.tsx';
import { getTypeLabel, Subject } from './Deliveries.tsx';
import { RedeliveryButton } from './RedeliveryButton.tsx';
import type { Endpoint } from './status.ts';

const PAGE = 25;
const REFETCH_MS = 5_000;

/** A paged list of events of an endpoint. */
function useEventList<T>({ region, id }: Endpoint, what: 'parked' | 'dead', enabled: boolean) {
  const api = useApi();
  return usePages({
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
}

/** Parked events. Renders nothing if `count` is 0. */
export function ParkedEvents({ endpoint, count }: { readonly endpoint: Endpoint; readonly count: number }) {
  const { id } = endpoint;
  const api = useApi();
  const { hasRole } = useSession();
  const runner = useActions([['endpoints']]);
  const list = useEventList<ParkedEvent>(endpoint, 'parked', count > 0);
  const selection = useSelection((list.data ?? []).map(({ event }) => event));
  if (count === 0) return null;
  const selected = [...selection.selected];
  const body: ParkedEventSelection = selected.length > 0 ? { events: selected } : { all: true };
  const options = { ...withEndpoint(endpoint), body };
  const which = selected.length > 0 ? `${selected.length} selected` : 'all';
  const retry = () =>
    runner.run('retry', async () => {
      const { retried } = await api.post('/v1/endpoints/{id}/parked/retry', options);
      selection.clear();
      showToast(`${formatCount(retried, 'event is', 'events are')} being retried.`);
    });
  const discard = () =>
    runner.confirm({
      title: `Discard ${selected.length > 0 ? '' : 'all '}${formatCount(selected.length || count, 'event')}?`,
      body: `The events are not sent to ${id} again, and the next event of each job is delivered at once. The discarded events stay in the log and can be replayed.`,
      verb: 'Discard',
      destructive: true,
      act: async () => {
        await api.post('/v1/endpoints/{id}/parked/discard', options);
        selection.clear();
      },
      done: 'The events are discarded.',
    });
  const checkboxes: Column<ParkedEvent> = {
    hiddenName: true,
    render: ({ event, type, account, jobNumber }) => (
      <Checkbox
        size="xs"
        aria-label={`Select ${getTypeLabel(type)}, ${jobNumber ?? account}`}
        {...selection.checkbox(event)}
      />
    ),
  };
  return (
    <Panel
      title={`Parked: ${formatCount(count, 'event')}`}
      aside={
        <div className={ui.actions}>
          <ExportEvents endpoint={endpoint} what="parked" />
          {hasRole('operate') ? (
            <>
              <ActionButton runner={runner} name="retry" onClick={retry}>
                Retry {which}
              </ActionButton>
              <ActionButton runner={runner} onClick={discard}>
                Discard {which}
              </ActionButton>
              <RedeliveryButton endpoint={endpoint} state="parked">
                Retry by filter…
              </RedeliveryButton>
            </>
          ) : null}
        </div>
      }
    >
      <ActionError runner={runner} />
      <QueryTable
        label="Parked events"
        query={list}
        empty="No parked events of the accounts of your key."
        getKey={({ event }) => event}
        columns={{
          ...parkedColumns,
          'Next attempt': ({ retryAt }) => (
            <RelativeTime isPlanned at={retryAt} none="After the earlier event" />
          ),
          Reason: {
            wide: true,
            render: ({ reason }) => <bdi>{reason ?? 'An earlier event of the job is parked.'}</bdi>,
          },
          ...(hasRole('operate') && { Select: checkboxes }),
        }}
      />
    </Panel>
  );
}

/** Dead events. Renders nothing if `count` is 0. */
export function DeadEvents({ endpoint, count }: { readonly endpoint: Endpoint; readonly count: number }) {
  const { hasRole } = useSession();
  const list = useEventList<DeadEvent>(endpoint, 'dead', count > 0);
  if (count === 0) return null;
  return (
    <Panel
      title="Dead"
      aside={
        <div className={ui.actions}>
          <ExportEvents endpoint={endpoint} what="dead" />
          {hasRole('operate') ? (
            <RedeliveryButton endpoint={endpoint} state="dead">
              Replay dead…
            </RedeliveryButton>
          ) : null}
        </div>
      }
    >
      <p className={ui.hint}>
        The endpoint rejected these events on every attempt. Later events of the same jobs were delivered
        without them. An event is removed from this list when “Replay dead…” or “Resend” delivers it.
      </p>
      <QueryTable
        label="Dead events"
        query={list}
        empty="No dead events of the accounts of your key."
        getKey={({ event, diedAt }) => `${event} ${diedAt}`}
        columns={{
          ...parkedColumns,
          'Dead since': ({ diedAt }) => <RelativeTime at={diedAt} />,
          Reason: { wide: true, render: ({ reason }) => <bdi>{reason}</bdi> },
        }}
      />
    </Panel>
  );
}

function ExportEvents(props: { readonly endpoint: Endpoint; readonly what: 'parked' | 'dead' }) {
  const { endpoint, what } = props;
  const api = useApi();
  return (
    <ExportButton
      size="xs"
      name={`${what}-${endpoint.id}`}
      source={(options) => api.csv(`/v1/endpoints/{id}/${what}`, { ...withEndpoint(endpoint), ...options })}
    />
  );
}

const parkedColumns: Columns<ParkedEvent | DeadEvent> = {
  Event: ({ type }) => getTypeLabel(type),
  Subject: (one) => <Subject {...one} />,
  'Parked since': ({ parkedAt }) => <RelativeTime at={parkedAt} />,
  Attempts: { right: true, render: ({ attempts }) => attempts },
};
