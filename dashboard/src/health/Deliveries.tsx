/** Recent delivery attempts of an endpoint with the responses. */
import { Link } from 'wouter';
import { Panel, Verbatim } from '../components.tsx';
import { QueryTable, usePages } from '../DataTable.tsx';
import { eventTypeLabels, toPlainText } from '../events.ts';
import { ExportButton } from '../export.tsx';
import { FilterSelect, toOptions } from '../filters.tsx';
import { useApi } from '../queries.ts';
import { formatDuration, Timestamp } from '../times.tsx';
import ui from '../ui.module.css';
import { accountHref, jobHref, useHref, useParams } from '../urls.ts';
import { StateBadge } from './components.tsx';
import { ATTEMPT_CAUSES, ATTEMPT_OUTCOMES, type Attempt, type Endpoint } from './status.ts';

const PAGE = 25;
const REFETCH_MS = 5_000;

const OUTCOMES = {
  '': 'All attempts',
  failed: 'Not delivered',
  rejected: 'Rejected',
  retry: 'Failed',
  delivered: 'Delivered',
};
const isOutcome = (value = ''): value is keyof typeof OUTCOMES => Object.hasOwn(OUTCOMES, value);

export function Deliveries({ endpoint: { region, id } }: { readonly endpoint: Endpoint }) {
  const api = useApi();
  const [read] = useParams();
  const selected = read('outcome');
  const outcome = isOutcome(selected) ? selected || undefined : undefined;
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
  return (
    <Panel
      title="Deliveries"
      aside={
        <div className={ui.actions}>
          <ExportButton
            name={`deliveries-${id}`}
            source={(options) =>
              api.csv('/v1/endpoints/{id}/deliveries', {
                ...{ params: { path: { id }, query: { region, outcome } }, ...options },
              })
            }
          />
          <FilterSelect param="outcome" size="xs" aria-label="Outcome" data={toOptions(OUTCOMES)} />
        </div>
      }
    >
      <QueryTable
        label="Deliveries"
        query={list}
        empty={
          outcome === undefined
            ? 'No deliveries in the last 30 days. Attempts appear here when events are sent.'
            : 'No attempts with this outcome in the last 30 days.'
        }
        getKey={({ event, at, cause }) => `${event} ${at} ${cause}`}
        columns={{
          Time: { isTime: true, render: ({ at }) => <Timestamp at={at} as="clock" /> },
          Outcome: (one) => <StateBadge state={ATTEMPT_OUTCOMES[one.outcome]} />,
          Event: ({ type }) => getTypeLabel(type),
          Subject: (one) => (one.cause === 'ping' ? '–' : <Subject {...one} />),
          Cause: ({ cause }) => ATTEMPT_CAUSES[cause],
          'Status code': { right: true, render: ({ status }) => status ?? 'None' },
          Latency: { right: true, render: ({ latencyMs }) => formatDuration(latencyMs) },
          Details: {
            wide: true,
            render: (one) => <Details attempt={one} />,
            hasContent: ({ reason, excerpt }) => Boolean(reason) || Boolean(excerpt),
          },
        }}
      />
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
          <Verbatim text={excerpt} />
        </details>
      )}
    </>
  );
}
