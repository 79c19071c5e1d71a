/** Page of a job: current state, timeline with evidence and deliveries, parcels, messages, lines. */
import { ActionIcon, Anchor, Button, Modal } from '@mantine/core';
import { IconCheck, IconCopy, IconExternalLink } from '@tabler/icons-react';
import { useInfiniteQuery, useQuery, useQueryClient } from '@tanstack/react-query';
import { type ReactNode, useEffect, useState } from 'react';
import { Link } from 'wouter';
import { ApiError, type Delivery, type JobRecord, type Message } from '../../../client/index.ts';
import type { Observed } from '../../../shared/events/catalogue.ts';
import type { JobEvent } from '../../../shared/events/event.ts';
import { messageReasons } from '../../../shared/notifications/types.ts';
import { withEndpoint } from '../api.ts';
import {
  Badge,
  Empty,
  Facts,
  Failure,
  Hidden,
  Page,
  Panel,
  showToast,
  type Tone,
  useConfirm,
} from '../components.tsx';
import { EventSummary } from '../EventSummary.tsx';
import { describeEvent, getJobNumber } from '../events.ts';
import { ATTEMPT_CAUSES, ATTEMPT_OUTCOMES, getSinkName, isBuiltIn } from '../health/status.ts';
import { channelNames, kindNames, stateNames } from '../messages.ts';
import { useApi } from '../queries.ts';
import { useSession } from '../session.ts';
import { useStream } from '../stream-hooks.ts';
import { formatDuration, formatExactTime, RelativeTime, Timestamp, UpstreamDate } from '../times.tsx';
import { accountHref, buildHref, endpointHref, useRegion } from '../urls.ts';
import css from './Job.module.css';
import { summarizeAttempts, toWebLink } from './labels.ts';

/** Identifies a job. */
interface JobLocation {
  readonly account: string;
  readonly jobNumber: string;
}

const JOB = '/v1/accounts/{id}/jobs/{jobNumber}';
const toPath = ({ account, jobNumber }: JobLocation) => ({ id: account, jobNumber });

export default function JobPage({
  account,
  jobNumber,
}: {
  readonly account: string;
  readonly jobNumber: string;
}) {
  const api = useApi();
  const region = useRegion() ?? undefined;
  const isValidNumber = /^[1-9]\d{0,11}$/.test(jobNumber);
  const location = { account, jobNumber };
  useRefreshOnJobEvents(location);
  const job = useQuery({
    queryKey: ['jobs', 'one', account, jobNumber],
    queryFn: async ({ signal }) => (await api.get(JOB, { params: { path: toPath(location) }, signal })).job,
    enabled: isValidNumber,
    refetchInterval: 60_000,
  });
  const unknown = !isValidNumber || (job.error instanceof ApiError && job.error.status === 404);
  return (
    <Page
      title={`Job ${jobNumber}`}
      actions={<Link href={buildHref('/jobs', { region, account })}>All jobs of {account}</Link>}
    >
      {unknown ? (
        <Empty>
          Job {jobNumber} of account {account} does not exist, or your key does not permit access to the
          account.{' '}
          <Link href={buildHref('/jobs', { region, q: jobNumber })}>
            Search for {jobNumber} in all accounts
          </Link>
        </Empty>
      ) : job.error && !job.data ? (
        <Failure error={job.error} again={job.refetch} />
      ) : job.data === undefined ? (
        <div className={css.waiting} />
      ) : (
        <div className={css.layout}>
          <JobSummary job={job.data} account={account} />
          <Timeline location={location} />
          <div className={css.side}>
            <Tracking job={job.data} />
            <Messages location={location} />
            <Lines job={job.data} />
          </div>
        </div>
      )}
    </Page>
  );
}

/** Refetches the page when an event of the job arrives, and again 2.5 s later for its deliveries. */
function useRefreshOnJobEvents({ account, jobNumber }: JobLocation): void {
  const stream = useStream();
  const client = useQueryClient();
  useEffect(() => {
    const timers = new Set<ReturnType<typeof setTimeout>>();
    const refresh = (): void => {
      for (const about of ['one', 'timeline', 'messages'])
        void client.invalidateQueries({ queryKey: ['jobs', about, account, jobNumber] });
    };
    const off = stream.onEvents((events) => {
      if (
        !events.some((event) => event.data.account === account && getJobNumber(event) === Number(jobNumber))
      )
        return;
      refresh();
      const timer = setTimeout(() => {
        timers.delete(timer);
        refresh();
      }, FOLLOW_MS);
      timers.add(timer);
    });
    return () => {
      off();
      for (const timer of timers) clearTimeout(timer);
    };
  }, [stream, client, account, jobNumber]);
}
const FOLLOW_MS = 2_500;

const OUTCOMES = {
  closed: ['Closed', 'plain'],
  cancelled: ['Cancelled (inferred)', 'warn'],
  unavailable: ['Unavailable (inferred)', 'warn'],
} as const satisfies Record<string, readonly [string, Tone]>;

function JobSummary({ job, account }: { readonly job: JobRecord; readonly account: string }) {
  const region = useRegion() ?? undefined;
  const { orderNumber, orderGroup, outcome, phase } = job;
  return (
    <Panel
      title="Current state"
      className={css.head}
      aside={
        job.lastListedAt === null ? undefined : (
          <>
            Last listed <RelativeTime at={job.lastListedAt} />
          </>
        )
      }
    >
      <div className={css.badges}>
        <Badge tone="plain">
          <bdi>{job.status ?? 'No status'}</bdi>
        </Badge>
        {job.dateOut === null ? null : <Badge tone="good">Dispatched</Badge>}
        {job.late ? <Badge tone="bad">Late</Badge> : null}
        {outcome === null ? null : <Badge tone={OUTCOMES[outcome][1]}>{OUTCOMES[outcome][0]}</Badge>}
        {phase === 'departed' ? <Badge tone="warn">Delisted; outcome not yet known</Badge> : null}
        <bdi className={css.description}>{job.description ?? 'No description'}</bdi>
      </div>
      <div className={css.facts}>
        <Facts
          rows={[
            ['Job number', <CopyableText key="n" text={String(job.jobNumber)} what="job number" />],
            [
              'Order number',
              orderNumber === null ? null : <CopyableText key="o" text={orderNumber} what="order number" />,
            ],
            [
              'Order group',
              orderGroup === null ? null : (
                <Link key="g" href={buildHref('/jobs', { region, account, orderGroup })}>
                  <bdi>{orderGroup}</bdi>
                  <Hidden>: all its jobs</Hidden>
                </Link>
              ),
            ],
            ['Position in the group', job.orderGroupSequence ?? undefined],
            [
              'Account',
              <Link key="a" href={buildHref(accountHref(account), { region })}>
                {account}
              </Link>,
            ],
          ]}
        />
        <Facts
          rows={[
            ['Due', job.dateDue === null ? null : <UpstreamDate key="d" at={job.dateDue} />],
            ['Mandatory', job.mustDate === null ? null : job.mustDate ? 'Yes' : 'No'],
            ['Dispatched', job.dateOut === null ? 'Not yet' : <UpstreamDate key="d" at={job.dateOut} />],
            ['Invoice', job.invoiceNumber === null ? null : <bdi key="i">{job.invoiceNumber}</bdi>],
          ]}
        />
        <Facts
          rows={[
            ['Origin', job.originCode === null ? null : <bdi key="c">{job.originCode}</bdi>],
            ['Time zone', job.timezone === null ? null : <bdi key="z">{job.timezone}</bdi>],
            [
              'Detail fetched',
              job.detailAt === null ? 'Not yet' : <RelativeTime key="r" at={job.detailAt} />,
            ],
          ]}
        />
      </div>
    </Panel>
  );
}

/** Text with a copy button. */
function CopyableText({ text, what }: { readonly text: string; readonly what: string }) {
  const [copied, setCopied] = useState(false);
  return (
    <span className={css.copied}>
      <bdi>{text}</bdi>
      <ActionIcon
        variant="subtle"
        size="sm"
        aria-label={`Copy ${what}`}
        title={`Copy ${what}`}
        onClick={() => {
          // `clipboard` is undefined without TLS.
          const writing = navigator.clipboard?.writeText(text) ?? Promise.reject(new Error('No clipboard.'));
          writing.then(
            () => {
              setCopied(true);
              setTimeout(() => setCopied(false), 1_500);
            },
            () =>
              showToast(
                'Copying failed: the browser blocks clipboard access. Select and copy the text instead.',
                'bad',
              ),
          );
        }}
      >
        {copied ? <IconCheck size={14} aria-hidden /> : <IconCopy size={14} aria-hidden />}
      </ActionIcon>
      <span role="status">{copied ? <Hidden>Copied</Hidden> : null}</span>
    </span>
  );
}

/** Page size; the maximum for deliveries in the API. */
const EVENTS_PER_PAGE = 20;

/** Events of the job, newest first. */
function Timeline({ location }: { readonly location: JobLocation }) {
  const api = useApi();
  const { account, jobNumber } = location;
  const timeline = useInfiniteQuery({
    queryKey: ['jobs', 'timeline', account, jobNumber],
    queryFn: async ({ pageParam, signal }) => {
      const params = { path: toPath(location), query: { limit: EVENTS_PER_PAGE, after: pageParam } };
      const [page, { deliveries }] = await Promise.all([
        api.get(`${JOB}/events`, { params, signal }),
        api.get(`${JOB}/deliveries`, { params, signal }),
      ]);
      return { ...page, deliveries };
    },
    initialPageParam: undefined as string | undefined,
    getNextPageParam: ({ next }) => next ?? undefined,
    refetchInterval: 20_000,
  });
  const pages = timeline.data?.pages;
  const events = pages?.flatMap((page) => page.events) ?? [];
  const byEvent = Map.groupBy(pages?.flatMap(({ deliveries }) => deliveries) ?? [], ({ event }) => event);
  return (
    <Panel title="Timeline" aside="Newest first" className={css.timeline}>
      {timeline.error && !pages ? (
        <Failure error={timeline.error} again={timeline.refetch} />
      ) : pages === undefined ? (
        <div className={css.waiting} />
      ) : events.length === 0 ? (
        <Empty>No events yet, or all are past retention. Changes of this job appear here.</Empty>
      ) : (
        <ol className={css.events} aria-label="Events">
          {events.map((event) => (
            <TimelineEvent key={event.id} event={event} deliveries={byEvent.get(event.id) ?? []} />
          ))}
        </ol>
      )}
      {timeline.hasNextPage ? (
        <Button
          variant="default"
          loading={timeline.isFetchingNextPage}
          onClick={() => void timeline.fetchNextPage()}
        >
          Earlier events
        </Button>
      ) : null}
    </Panel>
  );
}

function TimelineEvent({
  event,
  deliveries,
}: {
  readonly event: JobEvent;
  readonly deliveries: readonly Delivery[];
}) {
  return (
    <li className={css.event} data-tone={describeEvent(event).tone}>
      <div className={css.summary}>
        <span className={css.what}>
          <EventSummary event={event} />
        </span>
        <span className={css.when}>
          <span title="Sequence number in the log of the account">Event {Number(event.sequence)}</span>
          {' · '}
          <Timestamp at={event.time} />
        </span>
      </div>
      <p className={css.evidence}>
        <Evidence observed={event.data.observed as Observed | undefined} />
      </p>
      <EventDeliveries event={event} deliveries={deliveries} />
    </li>
  );
}

const views = {
  list: 'the list',
  detail: 'the job detail',
  search: 'the search',
} satisfies Record<Observed['view'], string>;

/** Evidence of an event: the observation that showed it, and the last observation before it. */
function Evidence({ observed }: { readonly observed: Observed | undefined }) {
  if (!observed) return null;
  const { at, since, view } = observed;
  return (
    <span>
      Observed in {views[view]} at <Timestamp at={at} as="clock" />
      {since === null ? (
        '; no earlier observation.'
      ) : (
        <>
          , previous observation at <Timestamp at={since} as="clock" />:{' '}
          <span title={`Between ${formatExactTime(since)} and ${formatExactTime(at)}`}>
            changed within {formatDuration(Math.max(0, Date.parse(at) - Date.parse(since)))}.
          </span>
        </>
      )}
    </span>
  );
}

/** Delivery status of an event per endpoint. */
function EventDeliveries({
  event,
  deliveries,
}: {
  readonly event: JobEvent;
  readonly deliveries: readonly Delivery[];
}) {
  if (deliveries.length === 0) return <p className={css.evidence}>No deliveries yet.</p>;
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
        <Attempts key={endpoint} event={event} endpoint={endpoint} attempts={attempts} />
      ))}
    </details>
  );
}

function Attempts(props: {
  readonly event: JobEvent;
  readonly endpoint: string;
  readonly attempts: readonly Delivery[];
}) {
  const { event, endpoint, attempts } = props;
  const endpointRegion = attempts[0]?.region ?? '';
  const region = useRegion() ?? undefined;
  return (
    <div className={css.attempts}>
      <div className={css.attemptsHead}>
        {isBuiltIn(endpoint) ? (
          <strong>{getSinkName(endpoint)}</strong>
        ) : (
          <Link href={buildHref(endpointHref(endpointRegion, endpoint), { region })}>{endpoint}</Link>
        )}
        {isBuiltIn(endpoint) ? null : <Resend event={event} endpoint={endpoint} region={endpointRegion} />}
      </div>
      <ul>
        {attempts.map(({ at, outcome, status, latencyMs, cause, reason }) => (
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
  const { may } = useSession();
  const api = useApi();
  const ask = useConfirm();
  const client = useQueryClient();
  if (!may('operate')) return null;
  return (
    <Button
      size="compact-xs"
      variant="default"
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

function Tracking({ job }: { readonly job: JobRecord }) {
  return (
    <Panel title="Parcels" aside={job.tracking.length > 0 ? String(job.tracking.length) : undefined}>
      {job.tracking.length === 0 ? (
        <p className={css.none}>No tracking yet.</p>
      ) : (
        <ul className={css.list}>
          {job.tracking.map(({ number, link }, at) => {
            const href = toWebLink(link);
            return (
              // biome-ignore lint/suspicious/noArrayIndexKey: parcels can be alike
              <li key={at}>
                {href === undefined ? (
                  <>
                    <bdi>{number ?? 'No number'}</bdi>
                    {link === null ? null : (
                      <>
                        {' '}
                        <bdi className={css.quiet}>{link}</bdi>
                      </>
                    )}
                  </>
                ) : (
                  <Anchor href={href} target="_blank" rel="noopener noreferrer">
                    <bdi>{number ?? href}</bdi> <IconExternalLink size={14} aria-hidden />
                    <Hidden> (opens the carrier’s page)</Hidden>
                  </Anchor>
                )}
              </li>
            );
          })}
        </ul>
      )}
    </Panel>
  );
}

function Lines({ job }: { readonly job: JobRecord }) {
  const { lines } = job;
  return (
    <Panel title="Lines" aside={lines && lines.length > 0 ? String(lines.length) : undefined}>
      {lines === null ? (
        <p className={css.none}>The job detail has not been fetched yet.</p>
      ) : lines.length === 0 ? (
        <p className={css.none}>No lines.</p>
      ) : (
        <ul className={css.list}>
          {lines.map(({ jobLineId, status }) => (
            <li key={jobLineId} className={css.pair}>
              <span>Line {jobLineId}</span>
              <bdi>{status ?? 'No status'}</bdi>
            </li>
          ))}
        </ul>
      )}
    </Panel>
  );
}

/** Sent and upcoming notifications about the job. */
function Messages({ location }: { readonly location: JobLocation }) {
  const { account, jobNumber } = location;
  const api = useApi();
  const [opened, setOpened] = useState<Message | null>(null);
  const query = useInfiniteQuery({
    queryKey: ['jobs', 'messages', account, jobNumber],
    queryFn: ({ pageParam, signal }) => {
      const params = { path: toPath(location), query: { limit: 20, after: pageParam } };
      return api.get(`${JOB}/messages`, { params, signal });
    },
    initialPageParam: undefined as string | undefined,
    getNextPageParam: ({ next }) => next ?? undefined,
    refetchInterval: 20_000,
  });
  const pages = query.data?.pages;
  const messages = pages?.flatMap((page) => page.messages) ?? [];
  const upcoming = pages?.[0]?.upcoming ?? [];
  return (
    <Panel title="Customer notifications">
      {query.error && !pages ? <Failure error={query.error} again={query.refetch} /> : null}
      {pages && messages.length === 0 && upcoming.length === 0 ? (
        <p className={css.none}>No notifications yet.</p>
      ) : (
        <ul className={css.list}>
          {upcoming.map(({ kind, dueAt, jobs }) => (
            <li key={`${kind} ${dueAt}`} className={css.message}>
              <span>
                <strong>{kindNames[kind]}</strong> <Badge>Scheduled</Badge>
              </span>
              <span className={css.quiet}>
                <RelativeTime at={dueAt} />, for {jobs.length === 1 ? 'this job' : `${jobs.length} jobs`}
              </span>
            </li>
          ))}
          {messages.map((message) => (
            <MessageRow key={message.id + (message.to?.address ?? '')} message={message} open={setOpened} />
          ))}
        </ul>
      )}
      {query.hasNextPage ? (
        <Button
          variant="default"
          size="xs"
          loading={query.isFetchingNextPage}
          onClick={() => void query.fetchNextPage()}
        >
          Earlier messages
        </Button>
      ) : null}
      <Modal
        opened={opened !== null}
        onClose={() => setOpened(null)}
        title={opened ? `${kindNames[opened.kind]}: text` : ''}
        size="lg"
        lockScroll={false}
        closeButtonProps={{ 'aria-label': 'Close' }}
      >
        {opened ? <MessageText message={opened} /> : null}
      </Modal>
    </Panel>
  );
}

function MessageRow({
  message,
  open,
}: {
  readonly message: Message;
  readonly open: (message: Message) => void;
}) {
  const { kind, channel, to, state, reason, detail, sentAt, dueAt, createdAt, text } = message;
  const [label, tone] = stateNames[state];
  return (
    <li className={css.message}>
      <span>
        <strong>{kindNames[kind]}</strong> <Badge tone={tone}>{label}</Badge>
      </span>
      <span className={css.quiet}>
        {to === null ? (
          'No recipient'
        ) : (
          <>
            {channel ? `${channelNames[channel]} to ` : ''}
            <bdi>{to.address}</bdi>
          </>
        )}
        , <Timestamp at={sentAt ?? dueAt ?? createdAt} />
      </span>
      {reason === null ? null : (
        <span className={css.quiet}>
          {messageReasons[reason]} {detail}
        </span>
      )}
      {text === null ? null : (
        <Button size="compact-xs" variant="default" onClick={() => open(message)}>
          Show text
        </Button>
      )}
    </li>
  );
}

function MessageText({ message }: { readonly message: Message }) {
  const { subject, text, to } = message;
  return (
    <div className={css.text}>
      <Facts
        rows={[
          [
            'To',
            to === null ? undefined : <bdi key="t">{[to.name, to.address].filter(Boolean).join(', ')}</bdi>,
          ],
          ['Subject', subject === null ? undefined : <bdi key="s">{subject}</bdi>],
        ]}
      />
      <Verbatim>{text}</Verbatim>
    </div>
  );
}

/** Preformatted text. */
function Verbatim({ children }: { readonly children: ReactNode }) {
  return <pre className={css.verbatim}>{children}</pre>;
}
