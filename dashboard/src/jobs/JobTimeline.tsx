/** Timeline of a job: its events with evidence and deliveries. */
import { Button } from '@mantine/core';
import { useQueryClient } from '@tanstack/react-query';
import { Link } from 'wouter';
import type { Delivery, JobRecord } from '../../../client/index.ts';
import type { Observed } from '../../../shared/events/catalogue.ts';
import type { JobEvent } from '../../../shared/events/event.ts';
import { withEndpoint } from '../api.ts';
import { Badge, Empty, Loaded, Panel, Skeleton, showToast, useConfirm } from '../components.tsx';
import { LoadMore, usePages } from '../DataTable.tsx';
import { EventSummary } from '../EventSummary.tsx';
import { describeEvent } from '../events.ts';
import { ATTEMPT_CAUSES, ATTEMPT_OUTCOMES, getSinkName, isBuiltIn } from '../health/status.ts';
import { useApi } from '../queries.ts';
import { useSession } from '../session.ts';
import { formatDuration, formatExactTime, Timestamp, ZoneName } from '../times.tsx';
import ui from '../ui.module.css';
import { endpointHref, useHref } from '../urls.ts';
import css from './Job.module.css';
import { formatNoDeliveries, summarizeAttempts } from './labels.ts';

/** Identifies a job. */
export interface JobLocation {
  readonly account: string;
  readonly jobNumber: string;
}

export const JOB = '/v1/accounts/{id}/jobs/{jobNumber}';
export const toPath = ({ account, jobNumber }: JobLocation) => ({ id: account, jobNumber });

/** Page size; the maximum for deliveries in the API. */
const EVENTS_PER_PAGE = 20;

/** Events of the job, newest first. */
export function Timeline(props: { readonly location: JobLocation; readonly job: JobRecord }) {
  const { location, job } = props;
  const api = useApi();
  const { account, jobNumber } = location;
  const timeline = usePages({
    queryKey: ['jobs', 'timeline', account, jobNumber],
    fetchPage: async (after, signal) => {
      const params = { path: toPath(location), query: { limit: EVENTS_PER_PAGE, after } };
      const [page, { deliveries }] = await Promise.all([
        api.get(`${JOB}/events`, { params, signal }),
        api.get(`${JOB}/deliveries`, { params, signal }),
      ]);
      return { ...page, deliveries };
    },
    toRows: ({ events }) => events,
    refetchMs: 20_000,
    refetchAll: true,
  });
  const deliveries = timeline.pages?.flatMap((page) => page.deliveries) ?? [];
  const byEvent = Map.groupBy(deliveries, ({ event }) => event);
  return (
    <Panel
      title="Timeline"
      aside={
        <>
          Newest first, times in <ZoneName />
        </>
      }
    >
      <Loaded
        query={timeline}
        loading={
          <div className={css.waiting}>
            <Skeleton lines={8} />
          </div>
        }
      >
        {(events) =>
          events.length === 0 ? (
            <NoEvents job={job} />
          ) : (
            <ol className={ui.list} aria-label="Events">
              {events.map((event) => (
                <TimelineEvent key={event.id} event={event} deliveries={byEvent.get(event.id) ?? []} />
              ))}
            </ol>
          )
        }
      </Loaded>
      <LoadMore query={timeline} label="Earlier events" />
    </Panel>
  );
}

/** Renders why the log has no events of a job. */
function NoEvents({ job: { inStatus } }: { readonly job: JobRecord }) {
  return (
    <Empty>
      {inStatus === null ? (
        'No events in the log: the job has not changed since it was first observed, or its events are past retention.'
      ) : inStatus.sinceEarliest !== null ? (
        'No events in the log: all are past retention.'
      ) : (
        <>
          No events in the log. The job has had its status since it was first observed,{' '}
          <Timestamp at={inStatus.since} />. Its changes appear here.
        </>
      )}
    </Empty>
  );
}

interface EventProps {
  readonly event: JobEvent;
  /** Attempts to deliver it, oldest first. */
  readonly deliveries: readonly Delivery[];
}

function TimelineEvent({ event, deliveries }: EventProps) {
  return (
    <li className={css.event} data-tone={describeEvent(event).tone}>
      <div className={css.summary}>
        <span className={css.what}>
          <EventSummary event={event} />
        </span>
        <span className={`${css.when} ${ui.hint}`}>
          <span title="Sequence number in the log of the account">Event {Number(event.sequence)}</span>
          {' · '}
          <Timestamp at={event.time} />
        </span>
      </div>
      <p className={`${css.evidence} ${ui.hint}`}>
        <Evidence type={event.type} observed={event.data.observed as Observed | undefined} />
      </p>
      <EventDeliveries event={event} deliveries={deliveries} />
    </li>
  );
}

const views = {
  list: 'the list',
  detail: 'the job detail',
  search: 'a search for the job',
} satisfies Record<Observed['view'], string>;

/** Events that depend on the clock. Their `since` is the time from which they apply, not that of an observation. */
const TIMED: ReadonlySet<string> = new Set(['job.overdue', 'job.due_soon', 'job.stalled']);

/** Evidence of an event: the observation that showed it, and the last observation before it. */
function Evidence(props: { readonly type: string; readonly observed: Observed | undefined }) {
  const { type, observed } = props;
  if (!observed) return null;
  const { at, since, view } = observed;
  const isTimed = TIMED.has(type);
  return (
    <span>
      Observed in {views[view]} at <Timestamp at={at} as="clock" />
      {isTimed ? (
        '.'
      ) : since === null ? (
        '. No earlier observation.'
      ) : (
        <>
          . Previous observation: <Timestamp at={since} as="clock" />.{' '}
          <span title={`Between ${formatExactTime(since)} and ${formatExactTime(at)}`}>
            Changed within the {formatDuration(Math.max(0, Date.parse(at) - Date.parse(since)))} between the
            two observations.
          </span>
        </>
      )}
    </span>
  );
}

/** Delivery status of an event per endpoint. */
function EventDeliveries({ event, deliveries }: EventProps) {
  if (deliveries.length === 0)
    return <p className={`${css.evidence} ${ui.hint}`}>{formatNoDeliveries(event.time, Date.now())}</p>;
  const byEndpoint = [...Map.groupBy(deliveries, ({ endpoint }) => endpoint)];
  return (
    <details className={css.deliveries}>
      <summary>
        {byEndpoint.map(([endpoint, attempts]) => {
          const { tone, text } = summarizeAttempts(attempts);
          return (
            <Badge key={endpoint} tone={tone}>
              {getSinkName(endpoint)}: {text}
            </Badge>
          );
        })}
      </summary>
      {byEndpoint.map(([endpoint, attempts]) => (
        <Attempts key={endpoint} event={event} endpoint={endpoint} deliveries={attempts} />
      ))}
    </details>
  );
}

function Attempts(props: EventProps & { readonly endpoint: string }) {
  const { event, endpoint, deliveries } = props;
  const href = useHref();
  const region = deliveries[0]?.region ?? '';
  return (
    <div className={css.attempts}>
      <div className={ui.actions}>
        {isBuiltIn(endpoint) ? (
          <strong>{getSinkName(endpoint)}</strong>
        ) : (
          <>
            <Link href={href(endpointHref(region, endpoint))}>{endpoint}</Link>
            <Resend event={event} endpoint={endpoint} region={region} />
          </>
        )}
      </div>
      <ul>
        {deliveries.map(({ at, outcome, status, latencyMs, cause, reason }) => (
          <li key={`${at} ${cause}`} data-failed={outcome !== 'delivered' || undefined}>
            <Timestamp at={at} />: {ATTEMPT_OUTCOMES[outcome].label.toLowerCase()}
            {status === null ? '' : `, status code ${status}`} after {formatDuration(latencyMs)}
            {cause === 'live' ? '' : ` (${ATTEMPT_CAUSES[cause].toLowerCase()})`}
            {reason === null ? null : (
              <>
                {': '}
                <bdi>{reason}</bdi>
              </>
            )}
          </li>
        ))}
      </ul>
    </div>
  );
}

/** Button that resends an event to an endpoint. */
function Resend(props: { readonly event: JobEvent; readonly endpoint: string; readonly region: string }) {
  const { event, endpoint, region } = props;
  const { hasRole } = useSession();
  const api = useApi();
  const ask = useConfirm();
  const client = useQueryClient();
  if (!hasRole('operate')) return null;
  return (
    <Button
      size="compact-xs"
      onClick={() =>
        ask({
          title: `Resend this event to ${endpoint}?`,
          body: 'The event is sent once, immediately, with its original id and the cause resend. Receivers can deduplicate it by id.',
          verb: 'Resend',
          onConfirm: async () => {
            const report = await api.post('/v1/endpoints/{id}/resend', {
              ...withEndpoint({ region, id: endpoint }),
              body: { event: event.id },
            });
            showToast(report.message, report.outcome === 'delivered' ? 'good' : 'warn');
            await client.invalidateQueries({ queryKey: ['jobs', 'timeline'] });
          },
        })
      }
    >
      Resend
    </Button>
  );
}
