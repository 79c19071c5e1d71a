/** Recent delivery attempts of an endpoint with the responses. */
import { NativeSelect } from '@mantine/core';
import { Link } from 'wouter';
import { Badge, Empty, Failure, Panel } from '../components.tsx';
import { type Column, DataTable, LoadMore, usePages } from '../DataTable.tsx';
import { eventTypeLabels, toPlainText } from '../events.ts';
import { useApi } from '../queries.ts';
import { formatDuration, Timestamp } from '../times.tsx';
import ui from '../ui.module.css';
import { accountHref, jobHref, useHref, useParams } from '../urls.ts';
import css from './Health.module.css';
import { ATTEMPT_CAUSES, ATTEMPT_OUTCOMES, type Attempt, type Endpoint } from './status.ts';

const PAGE = 25;
const REFETCH_MS = 5_000;

const OUTCOME_FILTERS = [
  { value: '', label: 'All attempts' },
  { value: 'failed', label: 'Not delivered' },
  { value: 'rejected', label: 'Rejected' },
  { value: 'retry', label: 'Failed' },
  { value: 'delivered', label: 'Delivered' },
] as const;

export function Deliveries({ endpoint: { region, id } }: { readonly endpoint: Endpoint }) {
  const api = useApi();
  const [read, change] = useParams();
  const outcome = OUTCOME_FILTERS.find(({ value }) => value === read('outcome'))?.value || undefined;
  const list = usePages({
    queryKey: ['endpoints', 'deliveries', region, id, outcome],
    fetchPage: (after, signal) =>
      api.get('/v1/endpoints/{id}/deliveries', {
        params: { path: { id }, query: { region, limit: PAGE, outcome, after } },
        signal,
      }),
    toRows: ({ deliveries }) => deliveries,
    refetchMs: REFETCH_MS,
  });
  const { rows } = list;
  const columns: Column<Attempt>[] = [
    { name: 'Time', render: ({ at }) => <Timestamp at={at} as="clock" /> },
    {
      name: 'Outcome',
      render: (one) => (
        <Badge tone={ATTEMPT_OUTCOMES[one.outcome].tone}>{ATTEMPT_OUTCOMES[one.outcome].label}</Badge>
      ),
    },
    { name: 'Event', render: ({ type }) => getTypeLabel(type) },
    {
      name: 'Subject',
      render: (one) => (one.cause === 'ping' ? '–' : <Subject {...one} />),
    },
    { name: 'Cause', render: ({ cause }) => ATTEMPT_CAUSES[cause] },
    { name: 'Status code', right: true, render: ({ status }) => status ?? 'None' },
    { name: 'Latency', right: true, render: ({ latencyMs }) => formatDuration(latencyMs) },
    {
      name: 'Details',
      wide: true,
      render: (one) => <Details attempt={one} />,
      hasContent: ({ reason, excerpt }) => Boolean(reason) || Boolean(excerpt),
    },
  ];
  return (
    <Panel
      title="Deliveries"
      aside={
        <NativeSelect
          size="xs"
          aria-label="Outcome"
          data={OUTCOME_FILTERS}
          value={outcome ?? ''}
          onChange={({ currentTarget }) => change({ outcome: currentTarget.value })}
        />
      }
    >
      {list.error && !rows ? (
        <Failure error={list.error} again={list.refetch} />
      ) : !rows ? null : rows.length === 0 ? (
        <Empty>
          {outcome === undefined
            ? 'No deliveries in the last 30 days. Attempts appear here when events are sent.'
            : 'No attempts with this outcome in the last 30 days.'}
        </Empty>
      ) : (
        <DataTable
          label="Deliveries"
          rows={rows}
          columns={columns}
          keyOf={({ event, at, cause }) => `${event} ${at} ${cause}`}
        />
      )}
      <LoadMore query={list} />
    </Panel>
  );
}

/** Link to the job or account of an event. */
export function Subject({ account, jobNumber }: Pick<Attempt, 'account' | 'jobNumber'>) {
  const href = useHref();
  if (account.startsWith('_')) return 'Region';
  if (jobNumber === null) return <Link href={href(accountHref(account))}>{account}</Link>;
  return (
    <>
      <Link href={href(jobHref(account, jobNumber))}>{jobNumber}</Link>{' '}
      <span className={ui.quiet}>{account}</span>
    </>
  );
}

/** Returns the label of an event type; for an unknown type its name. */
export function getTypeLabel(type: string): string {
  return Object.hasOwn(eventTypeLabels, type)
    ? eventTypeLabels[type as keyof typeof eventTypeLabels]
    : toPlainText(type);
}

function Details({ attempt: { reason, excerpt } }: { readonly attempt: Attempt }) {
  return (
    <>
      {reason === null ? null : <bdi>{reason}</bdi>}
      {excerpt === null || excerpt === '' ? null : (
        <details>
          <summary>Response body</summary>
          {/* biome-ignore lint/a11y/noNoninteractiveTabindex: a scrolling element must be reachable by keyboard */}
          <pre className={`${ui.verbatim} ${ui.verbatim} ${css.excerpt}`} tabIndex={0}>
            {excerpt}
          </pre>
        </details>
      )}
    </>
  );
}
