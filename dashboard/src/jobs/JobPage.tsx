/** A job: how it stands, what happened to it and how that is known, who was told, and what customers got. */
import { ActionIcon, Anchor, Button, Modal } from '@mantine/core';
import { IconCheck, IconCopy, IconExternalLink } from '@tabler/icons-react';
import { useInfiniteQuery, useQuery, useQueryClient } from '@tanstack/react-query';
import { type ReactNode, useEffect, useState } from 'react';
import { Link } from 'wouter';
import type * as z from 'zod';
import type { Delivery as DeliveryShape } from '../../../shared/api/endpoint-views.ts';
import type { JobRecord } from '../../../shared/api/jobs.ts';
import type { Message as MessageShape, Upcoming } from '../../../shared/api/notification-views.ts';
import type { Observed } from '../../../shared/events/catalogue.ts';
import type { JobEvent } from '../../../shared/events/event.ts';
import { messageReasons } from '../../../shared/notifications/types.ts';
import { ApiError } from '../api.ts';
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

type Delivery = z.infer<typeof DeliveryShape>;
type Message = z.infer<typeof MessageShape>;

/** Where everything about a job is asked for. */
interface JobLocation {
  readonly account: string;
  readonly jobNumber: string;
  readonly path: string;
}

/** A job: what is known of it and what happened to it. */
export default function JobPage({
  account,
  jobNumber,
}: {
  readonly account: string;
  readonly jobNumber: string;
}) {
  const api = useApi();
  const region = useRegion() ?? undefined;
  const possible = /^[1-9]\d{0,11}$/.test(jobNumber);
  const path = `/v1/accounts/${encodeURIComponent(account)}/jobs/${jobNumber}`;
  const place = { account, jobNumber, path };
  useRefreshOnJobEvents(place);
  const job = useQuery({
    queryKey: ['jobs', 'one', account, jobNumber],
    queryFn: async ({ signal }) => (await api.get<{ job: JobRecord }>(path, { signal })).job,
    enabled: possible,
    refetchInterval: 60_000,
  });
  const unknown = !possible || (job.error instanceof ApiError && job.error.status === 404);
  return (
    <Page
      title={`Job ${jobNumber}`}
      actions={<Link href={buildHref('/jobs', { region, account })}>All jobs of {account}</Link>}
    >
      {unknown ? (
        <Empty>
          No job {jobNumber} of an account {account} is known here, or your key is not for it.{' '}
          <Link href={buildHref('/jobs', { region, q: jobNumber })}>
            Look for {jobNumber} in all accounts
          </Link>
        </Empty>
      ) : job.error && !job.data ? (
        <Failure error={job.error} again={job.refetch} />
      ) : job.data === undefined ? (
        <div className={css.waiting} />
      ) : (
        <div className={css.layout}>
          <JobSummary job={job.data} account={account} />
          <Timeline place={place} />
          <div className={css.side}>
            <Tracking job={job.data} />
            <Messages place={place} />
            <Lines job={job.data} />
          </div>
        </div>
      )}
    </Page>
  );
}

/** What is shown is asked for anew when something happens to the job; once more a little later, for deliveries follow. */
function useRefreshOnJobEvents({ account, jobNumber }: JobLocation): void {
  const stream = useStream();
  const client = useQueryClient();
  useEffect(() => {
    const timers = new Set<ReturnType<typeof setTimeout>>();
    const refresh = (): void => {
      for (const about of ['one', 'story', 'messages'])
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
  unavailable: ['No longer known to the ordering service', 'warn'],
} as const satisfies Record<string, readonly [string, Tone]>;

function JobSummary({ job, account }: { readonly job: JobRecord; readonly account: string }) {
  const region = useRegion() ?? undefined;
  const { orderNumber, orderGroup, outcome, phase } = job;
  return (
    <Panel
      title="As it stands"
      className={css.head}
      aside={
        job.lastListedAt === null ? undefined : (
          <>
            Last in the list of active jobs <RelativeTime at={job.lastListedAt} />
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
        {phase === 'departed' ? <Badge tone="warn">Missing from the list; why is not known yet</Badge> : null}
        <bdi className={css.description}>{job.description ?? 'No description'}</bdi>
      </div>
      <div className={css.facts}>
        <Facts
          rows={[
            ['Job number', <CopyableText key="n" text={String(job.jobNumber)} what="the job number" />],
            [
              'Order number',
              orderNumber === null ? null : (
                <CopyableText key="o" text={orderNumber} what="the order number" />
              ),
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
            ['Place in the group', job.orderGroupSequence ?? undefined],
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
            ['Must be met', job.mustDate === null ? null : job.mustDate ? 'Yes' : 'No'],
            ['Dispatched', job.dateOut === null ? 'Not yet' : <UpstreamDate key="d" at={job.dateOut} />],
            ['Invoice', job.invoiceNumber === null ? null : <bdi key="i">{job.invoiceNumber}</bdi>],
          ]}
        />
        <Facts
          rows={[
            ['Origin', job.originCode === null ? null : <bdi key="c">{job.originCode}</bdi>],
            ['Location’s time zone', job.timezone === null ? null : <bdi key="z">{job.timezone}</bdi>],
            [
              'Its own record',
              job.detailAt === null ? 'Not read yet' : <RelativeTime key="r" at={job.detailAt} />,
            ],
          ]}
        />
      </div>
    </Panel>
  );
}

/** A text with a button that copies it. */
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
          // There is none on pages without TLS.
          const writing = navigator.clipboard?.writeText(text) ?? Promise.reject(new Error('No clipboard.'));
          writing.then(
            () => {
              setCopied(true);
              setTimeout(() => setCopied(false), 1_500);
            },
            () => showToast('It could not be copied: the browser does not allow it here.', 'bad'),
          );
        }}
      >
        {copied ? <IconCheck size={14} aria-hidden /> : <IconCopy size={14} aria-hidden />}
      </ActionIcon>
      <span role="status">{copied ? <Hidden>Copied</Hidden> : null}</span>
    </span>
  );
}

interface TimelinePage {
  readonly events: readonly JobEvent[];
  readonly deliveries: readonly Delivery[];
  readonly next: string | null;
}

/** Events on one page; the API has deliveries of no more at once. */
const EVENTS_PER_PAGE = 20;

/** What happened to it, the newest first. */
function Timeline({ place }: { readonly place: JobLocation }) {
  const api = useApi();
  const { account, jobNumber, path } = place;
  const story = useInfiniteQuery({
    queryKey: ['jobs', 'story', account, jobNumber],
    queryFn: async ({ pageParam, signal }): Promise<TimelinePage> => {
      const query = { limit: EVENTS_PER_PAGE, after: pageParam };
      const [page, told] = await Promise.all([
        api.get<Omit<TimelinePage, 'deliveries'>>(`${path}/events`, { query, signal }),
        api.get<{ deliveries: Delivery[] }>(`${path}/deliveries`, { query, signal }),
      ]);
      return { ...page, deliveries: told.deliveries };
    },
    initialPageParam: undefined as string | undefined,
    getNextPageParam: ({ next }) => next ?? undefined,
    refetchInterval: 20_000,
  });
  const pages = story.data?.pages;
  const events = pages?.flatMap((page) => page.events) ?? [];
  const byEvent = Map.groupBy(pages?.flatMap(({ deliveries }) => deliveries) ?? [], ({ event }) => event);
  return (
    <Panel title="What happened" aside="The newest first" className={css.story}>
      {story.error && !pages ? (
        <Failure error={story.error} again={story.refetch} />
      ) : pages === undefined ? (
        <div className={css.waiting} />
      ) : events.length === 0 ? (
        <Empty>Nothing has happened to it since tracking began, or it was too long ago to be kept.</Empty>
      ) : (
        <ol className={css.events} aria-label="Events">
          {events.map((event) => (
            <TimelineEvent key={event.id} event={event} deliveries={byEvent.get(event.id) ?? []} />
          ))}
        </ol>
      )}
      {story.hasNextPage ? (
        <Button
          variant="default"
          loading={story.isFetchingNextPage}
          onClick={() => void story.fetchNextPage()}
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
      <div className={css.said}>
        <span className={css.what}>
          <EventSummary event={event} />
        </span>
        <span className={css.when}>
          <span title="Its place in the log of the account">Event {Number(event.sequence)}</span>
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
  list: 'the list of active jobs',
  detail: 'the job’s own record',
  search: 'a search',
} satisfies Record<Observed['view'], string>;

/** How it is known: when it was seen, and when it was last seen to be otherwise. */
function Evidence({ observed }: { readonly observed: Observed | undefined }) {
  if (!observed) return null;
  const { at, since, view } = observed;
  return (
    <span>
      Seen in {views[view]} at <Timestamp at={at} as="clock" />
      {since === null ? (
        '; never looked at before.'
      ) : (
        <>
          , last seen otherwise at <Timestamp at={since} as="clock" />:{' '}
          <span title={`Between ${formatExactTime(since)} and ${formatExactTime(at)}`}>
            it happened within {formatDuration(Math.max(0, Date.parse(at) - Date.parse(since)))}.
          </span>
        </>
      )}
    </span>
  );
}

/** To which endpoints an event went, and what came of it. */
function EventDeliveries({
  event,
  deliveries,
}: {
  readonly event: JobEvent;
  readonly deliveries: readonly Delivery[];
}) {
  if (deliveries.length === 0) return <p className={css.evidence}>Not delivered anywhere yet.</p>;
  const byEndpoint = [...Map.groupBy(deliveries, ({ endpoint }) => endpoint)];
  return (
    <details className={css.told}>
      <summary>
        {byEndpoint.map(([endpoint, attempts]) => {
          const { tone, words } = summarizeAttempts(attempts);
          return (
            <Badge key={endpoint} tone={tone}>
              {getSinkName(endpoint)}: {words}
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
  const own = attempts[0]?.region ?? '';
  const region = useRegion() ?? undefined;
  return (
    <div className={css.attempts}>
      <div className={css.attemptsHead}>
        {isBuiltIn(endpoint) ? (
          <strong>{getSinkName(endpoint)}</strong>
        ) : (
          <Link href={buildHref(endpointHref(own, endpoint), { region })}>{endpoint}</Link>
        )}
        {isBuiltIn(endpoint) ? null : <Resend event={event} endpoint={endpoint} region={own} />}
      </div>
      <ul>
        {attempts.map(({ at, outcome, status, latencyMs, cause, reason }) => (
          <li key={`${at} ${cause}`} data-failed={outcome !== 'delivered' || undefined}>
            <Timestamp at={at} />: {ATTEMPT_OUTCOMES[outcome].word.toLowerCase()}
            {status === null ? '' : `, answered ${status}`} after {formatDuration(latencyMs)}
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

/** Sends an event to an endpoint once more. */
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
          title: `Send this event to ${endpoint} again?`,
          body: 'It is sent once, at once, with the id it had, and marked as sent again. A receiver that knows the id can leave it out.',
          verb: 'Send again',
          onConfirm: async () => {
            const path = `/v1/endpoints/${encodeURIComponent(endpoint)}/resend`;
            const report = await api.post<{ outcome: string; message: string }>(path, {
              query: { region },
              body: { event: event.id },
            });
            showToast(report.message, report.outcome === 'delivered' ? 'good' : 'warn');
            await client.invalidateQueries({ queryKey: ['jobs', 'story'] });
          },
        })
      }
    >
      Send again
    </Button>
  );
}

function Tracking({ job }: { readonly job: JobRecord }) {
  return (
    <Panel title="Parcels" aside={job.tracking.length > 0 ? String(job.tracking.length) : undefined}>
      {job.tracking.length === 0 ? (
        <p className={css.none}>No tracking is known.</p>
      ) : (
        <ul className={css.list}>
          {job.tracking.map(({ number, link }, at) => {
            const href = toWebLink(link);
            return (
              // biome-ignore lint/suspicious/noArrayIndexKey: parcels can be alike
              <li key={at}>
                {href === undefined ? (
                  <>
                    <bdi>{number ?? 'Without a number'}</bdi>
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
                    <Hidden> (opens a page of the carrier)</Hidden>
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
        <p className={css.none}>Its own record was not read yet.</p>
      ) : lines.length === 0 ? (
        <p className={css.none}>It has none.</p>
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

interface MessagesPage {
  readonly messages: readonly Message[];
  readonly upcoming: readonly z.infer<typeof Upcoming>[];
  readonly next: string | null;
}

/** What customers were told of it, and will be. */
function Messages({ place: { account, jobNumber, path } }: { readonly place: JobLocation }) {
  const api = useApi();
  const [opened, setOpened] = useState<Message | null>(null);
  const query = useInfiniteQuery({
    queryKey: ['jobs', 'messages', account, jobNumber],
    queryFn: ({ pageParam, signal }) =>
      api.get<MessagesPage>(`${path}/messages`, { query: { limit: 20, after: pageParam }, signal }),
    initialPageParam: undefined as string | undefined,
    getNextPageParam: ({ next }) => next ?? undefined,
    refetchInterval: 20_000,
  });
  const pages = query.data?.pages;
  const messages = pages?.flatMap((page) => page.messages) ?? [];
  const upcoming = pages?.[0]?.upcoming ?? [];
  return (
    <Panel title="What customers were told">
      {query.error && !pages ? <Failure error={query.error} again={query.refetch} /> : null}
      {pages && messages.length === 0 && upcoming.length === 0 ? (
        <p className={css.none}>Nothing.</p>
      ) : (
        <ul className={css.list}>
          {upcoming.map(({ kind, dueAt, jobs }) => (
            <li key={`${kind} ${dueAt}`} className={css.message}>
              <span>
                <strong>{kindNames[kind]}</strong> <Badge>To come</Badge>
              </span>
              <span className={css.quiet}>
                <RelativeTime at={dueAt} />, about {jobs.length === 1 ? 'this job' : `${jobs.length} jobs`}
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
        title={opened ? `${kindNames[opened.kind]}: what it says` : ''}
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
  const [words, tone] = stateNames[state];
  return (
    <li className={css.message}>
      <span>
        <strong>{kindNames[kind]}</strong> <Badge tone={tone}>{words}</Badge>
      </span>
      <span className={css.quiet}>
        {to === null ? (
          'To nobody'
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
          Read it
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

/** A text with its line breaks. */
function Verbatim({ children }: { readonly children: ReactNode }) {
  return <pre className={css.verbatim}>{children}</pre>;
}
