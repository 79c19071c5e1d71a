/**
 * The metrics of Jobwire, the only place that names them. On AWS they are CloudWatch metrics of a cell, which the functions emit
 * (`functions/telemetry.ts`). Self-hosted, `GET /metrics` serves them to Prometheus (`local/metrics.ts`). Dashboards and alarms can use no others.
 */
import type { AlertSummary } from './alerts/evaluate.ts';
import type { Attempt } from './delivery/delivery-log.ts';
import type { DrainReport } from './delivery/drain-deps.ts';
import type { SendReport } from './notifications/send-report.ts';
import type { PollReport } from './tracking/poll-report.ts';

/** CloudWatch namespace of all metrics. In lower case, the prefix of their Prometheus names. */
export const NAMESPACE = 'Jobwire';

/** A metric of either platform. */
export interface Metric {
  readonly help: string;
  /** Durations are in seconds in Prometheus, whatever their unit in CloudWatch. */
  readonly unit: 'Count' | 'Milliseconds' | 'Seconds';
  /** Type in Prometheus. Gauges are read from the tables at each scrape. */
  readonly type: 'counter' | 'gauge' | 'histogram';
  /**
   * Labels in Prometheus: ids and enumerated values only, never addresses. Default: the region. In CloudWatch, the only
   * dimensions are the cell and `kind`, because each value of a dimension costs money. Ids are in the log lines.
   */
  readonly labels?: readonly Label[];
  /** Only with customer notifications. */
  readonly part?: 'notifications';
  /** Set if a self-hosted Jobwire cannot observe it. */
  readonly only?: 'aws';
}

/** A label of a Prometheus metric. */
export type Label = 'region' | 'account' | 'endpoint' | 'kind' | 'state';

/**
 * A metric in CloudWatch, where a metric costs money in each hour in which it has values. `each`: emitted every hour, in every state.
 * `active`: emitted on activity, so in most hours of a busy cell. `rare`: emitted only on problems.
 */
interface CloudWatchMetric extends Metric {
  readonly emitted: 'each' | 'active' | 'rare';
  /** Whether the kind of a fault is a dimension besides the cell. */
  readonly kind?: true;
}

const notifications = { part: 'notifications' } as const;
const byEndpoint = { labels: ['region', 'endpoint'] } as const;
const byAccount = { labels: ['region', 'account'] } as const;

/** Returns counters that are emitted only on problems, by their names. */
const rareCounters = <N extends string>(more: Partial<Metric>, helps: Readonly<Record<N, string>>) =>
  Object.fromEntries(
    Object.entries(helps).map(([name, help]) => [
      name,
      { unit: 'Count', emitted: 'rare', type: 'counter', ...more, help },
    ]),
  ) as Record<N, CloudWatchMetric>;

/** The metrics of both platforms. */
export const METRICS = {
  Ticks: {
    ...{ unit: 'Count', emitted: 'each', type: 'counter' },
    help: 'Number of ticks that completed without an error.',
  },
  PollLag: {
    ...{ unit: 'Milliseconds', emitted: 'each', type: 'histogram' },
    help: 'Delay of the start of a poll after its due time. Excludes polls that a regional outage delays.',
  },
  /**
   * In CloudWatch 0 for a poll that read and committed everything, so the average is the fraction of incomplete polls, and the sample
   * count the number of polls.
   */
  PollsIncomplete: {
    ...{ unit: 'Count', emitted: 'each', type: 'counter' },
    help: 'Number of polls that did not read and commit everything. Excludes polls that fail in a reported regional outage.',
  },
  ...rareCounters(
    {},
    {
      PollsPartial: 'Number of polls that left work for the next poll.',
      PollsFailed: 'Number of polls that could read nothing.',
    },
  ),
  ChangedJobs: {
    ...{ unit: 'Count', emitted: 'active', type: 'counter' },
    help: 'Number of jobs whose stored state a poll rewrote.',
  },
  /** In CloudWatch emitted only if there are any. */
  UnresolvedDepartures: {
    ...{ unit: 'Count', emitted: 'active', type: 'gauge', ...byAccount },
    help: 'Number of delisted jobs of an account whose outcome is not known after the last poll of the account.',
  },
  EventsCommitted: {
    ...{ unit: 'Count', emitted: 'active', type: 'counter' },
    help: 'Number of events that polls committed to the logs.',
  },
  UpstreamErrors: {
    ...{ unit: 'Count', emitted: 'rare', kind: true, type: 'counter', labels: ['region', 'kind'] },
    help: 'Number of errors of the ordering API by kind, including those of retried requests.',
  },
  ...rareCounters(
    {},
    {
      TokenRefusals:
        'Number of tokens and credentials that the ordering API rejected, including tokens that could be replaced.',
      CredentialsRejected:
        'Number of accounts whose credentials became invalid, counted when the event is emitted.',
      IdentityMismatches: 'Number of accounts whose credentials turned out to belong to another account.',
      AccountsQuarantined: 'Number of accounts that entered quarantine.',
    },
  ),
  /** In CloudWatch emitted with each tick, only during an outage. */
  UpstreamOutage: {
    ...{ unit: 'Count', emitted: 'rare', type: 'gauge' },
    help: '1 during a reported outage of the whole region, otherwise 0.',
  },
  Deliveries: {
    ...{ unit: 'Count', emitted: 'active', type: 'counter', ...byEndpoint },
    help: 'Number of events delivered, counted when the drain ends (at most a minute later).',
  },
  DeliveryLag: {
    ...{ unit: 'Milliseconds', emitted: 'active', type: 'histogram', ...byEndpoint },
    help: 'Time from the observation of an event to its delivery. Excludes replays and requested resends.',
  },
  OldestUndelivered: {
    ...{ unit: 'Seconds', emitted: 'each', type: 'gauge', ...byEndpoint },
    help: 'Age of the oldest event that an active sink has not reached yet; 0 if there is none.',
  },
  ...rareCounters(byEndpoint, {
    DeliveryFailures: 'Number of attempts in which the sink accepted no event, and which are retried.',
    DeliveryRejections: 'Number of attempts in which the receiver rejected the event itself.',
    EventsParked:
      'Number of events that were parked: events that the endpoint rejected or that made it fail, and later events of the same job, which wait behind them.',
    EventsDead: 'Number of events that a sink rejected on every attempt.',
    EventsLost: 'Number of events that expired before a sink received them.',
    DeliveriesUnlogged: 'Number of attempts that could not be recorded in the delivery log.',
    SinksDisabled: 'Number of times that a sink was disabled after failures.',
  }),
  ...rareCounters(
    { labels: [] },
    {
      RequestsFailed:
        'Number of requests that the HTTP API failed to handle, because the table did not respond or an internal error occurred.',
      KeysRefused: 'Number of requests without an API key, or with an invalid one.',
    },
  ),
  AlertsNotSent: {
    ...{ unit: 'Count', emitted: 'rare', type: 'counter' },
    help: 'Number of messages of alert rules that their targets did not accept, counted for each attempt.',
  },
  MessagesSent: {
    ...{ unit: 'Count', emitted: 'active', type: 'counter', ...notifications },
    help: 'Number of e-mails and SMS that the provider accepted.',
  },
  /** In CloudWatch emitted only if any is due. */
  OldestUnsent: {
    ...{ unit: 'Seconds', emitted: 'active', type: 'gauge', ...notifications },
    help: 'Longest time for which a customer notification has been due; 0 if none is due.',
  },
  ...rareCounters(notifications, {
    MessagesPutOff: 'Number of messages that the provider did not accept, and that are retried later.',
    MessagesFailed:
      'Number of messages that failed permanently. Messages with an unknown outcome are not included.',
    MessagesSuppressed: 'Number of messages that were deliberately not sent.',
    SmsUnknown: 'Number of SMS whose outcome is unknown.',
    MailsRepeated:
      'Number of e-mails sent again because their outcome was unknown: the maximum number of duplicates.',
  }),
  ...rareCounters(
    { ...notifications, only: 'aws' },
    {
      MailsBounced: 'Number of e-mails that bounced permanently.',
      MailComplaints: 'Number of e-mails that were marked as spam.',
    },
  ),
} as const satisfies Record<string, CloudWatchMetric>;

/** Further metrics of a self-hosted Jobwire, whose number of labels and values costs nothing. */
export const SELF_HOSTED_METRICS = {
  Polls: {
    ...{ unit: 'Count', type: 'counter' },
    help: 'Number of polls. Excludes superseded polls, and polls that fail in a reported regional outage.',
  },
  PollDuration: { unit: 'Milliseconds', type: 'histogram', help: 'Duration of a poll.' },
  DeliveryDuration: {
    ...{ unit: 'Milliseconds', type: 'histogram', ...byEndpoint },
    help: 'Duration of an attempt to deliver an event.',
  },
  Accounts: {
    ...{ unit: 'Count', type: 'gauge', labels: ['region', 'state'] },
    help: 'Number of accounts by polling state.',
  },
  AccountState: {
    ...{ unit: 'Count', type: 'gauge', labels: ['region', 'account', 'state'] },
    help: 'Polling state of an account: 1 for its current state. Other states are absent.',
  },
  CompletePollAge: {
    ...{ unit: 'Seconds', type: 'gauge', ...byAccount },
    help: 'Time since the start of the last complete poll of an account. Absent before the first, and for paused accounts.',
  },
  LogHead: {
    ...{ unit: 'Count', type: 'gauge', ...byAccount },
    help: 'Sequence of the last event in the log of an account.',
  },
  OpenJobs: {
    ...{ unit: 'Count', type: 'gauge', ...byAccount },
    help: 'Number of jobs in the list of active jobs at the last complete poll.',
  },
  EndpointState: {
    ...{ unit: 'Count', type: 'gauge', labels: ['region', 'endpoint', 'state'] },
    help: 'State of an endpoint or a built-in sink: 1 for its current state. Other states are absent.',
  },
  Backlog: {
    ...{ unit: 'Count', type: 'gauge', ...byEndpoint },
    help: 'Number of events that a sink has not reached yet, in the logs of at most 200 accounts.',
  },
} as const satisfies Record<string, Metric>;

/** Metrics of the process of a self-hosted Jobwire, by their Prometheus names. Most names are those of other Node programs. */
export const PROCESS_METRICS = {
  process_cpu_seconds: { type: 'counter', unit: 'seconds', help: 'CPU time of the process, all threads.' },
  process_resident_memory_bytes: { type: 'gauge', unit: 'bytes', help: 'Resident memory of the process.' },
  process_start_time_seconds: {
    type: 'gauge',
    unit: 'seconds',
    help: 'Start time of the process (Unix time).',
  },
  nodejs_heap_size_used_bytes: { type: 'gauge', unit: 'bytes', help: 'Used heap of the main thread.' },
  nodejs_eventloop_active_seconds: {
    type: 'counter',
    unit: 'seconds',
    help: 'Time in which the event loop was not idle. Its rate is the utilization, 0 to 1.',
  },
  nodejs_eventloop_lag_p99_seconds: {
    type: 'gauge',
    unit: 'seconds',
    help: '99th percentile of the delay of the event loop since the previous scrape.',
  },
  nodejs_eventloop_lag_max_seconds: {
    type: 'gauge',
    unit: 'seconds',
    help: 'Maximum delay of the event loop since the previous scrape.',
  },
} as const;

/** A CloudWatch metric by its name. */
export type MetricName = keyof typeof METRICS;

/** A metric of a self-hosted Jobwire by its name. */
export type AnyMetricName = MetricName | keyof typeof SELF_HOSTED_METRICS;

/** Returns the value of the dimension `cell`. */
export function cellName(cell: { readonly stage: string; readonly cell: string }): string {
  return `${cell.stage}-${cell.cell}`;
}

/**
 * Returns the Prometheus name of a metric: `PollLag` is `jobwire_poll_lag_seconds`. Samples of counters have the suffix `_total`, those of
 * histograms `_bucket`, `_sum` and `_count`.
 */
export function toPrometheusName(name: AnyMetricName): string {
  const { unit }: Metric = { ...METRICS, ...SELF_HOSTED_METRICS }[name];
  const words = `${NAMESPACE}${name}`.replace(/(?<=[a-z])[A-Z]/g, '_$&').toLowerCase();
  return unit === 'Count' ? words : `${words}_seconds`;
}

/** Values of metrics, in the unit of the catalogue. */
export type Values = { readonly [K in AnyMetricName]?: number };

/** Returns the values of a poll. `lagMs`: delay of its start after the due time. Without `UpstreamErrors`, which has kinds. */
export function measurePoll(report: PollReport, { lagMs }: { readonly lagMs: number }): Values {
  const { outcome, outage, accountEvents, upstreamErrors } = report;
  if (outcome === 'skipped') return {};
  const failed = outcome === 'failed';
  const counts = outcome !== 'fenced' && !(failed && outage);
  return {
    ...(outage ? {} : { PollLag: lagMs }),
    ...(counts ? { Polls: 1, PollsIncomplete: outcome === 'complete' ? 0 : 1 } : {}),
    PollDuration: report.ms,
    ...omitZeros({
      PollsPartial: outcome === 'partial' ? 1 : 0,
      PollsFailed: failed ? 1 : 0,
      ChangedJobs: report.changedJobs,
      UnresolvedDepartures: report.unresolved ?? 0,
      EventsCommitted: report.events,
      TokenRefusals: (upstreamErrors.unauthorized ?? 0) + (upstreamErrors.credentials_rejected ?? 0),
      CredentialsRejected: accountEvents.includes('account.credentials_rejected') ? 1 : 0,
      IdentityMismatches: accountEvents.includes('account.identity_mismatch') ? 1 : 0,
      AccountsQuarantined: accountEvents.includes('account.quarantined') ? 1 : 0,
    }),
  };
}

/** Returns the values of a drain. */
export function measureDrain(report: DrainReport): Values {
  return omitZeros({
    Deliveries: report.delivered,
    DeliveryFailures: report.failed - report.rejected,
    DeliveryRejections: report.rejected,
    EventsParked: report.parked,
    EventsDead: report.dead,
    EventsLost: report.lost,
    DeliveriesUnlogged: report.unlogged,
    SinksDisabled: report.outcome === 'disabled' ? 1 : 0,
  });
}

/** Returns the values of an attempt to deliver an event. */
export function measureAttempt({ outcome, cause, lagMs, latencyMs }: Attempt): Values {
  const counts = outcome === 'delivered' && (cause === 'live' || cause === 'parked');
  return { DeliveryDuration: latencyMs, ...(counts ? { DeliveryLag: lagMs } : {}) };
}

/** Returns the values of a run of the sender. */
export function measureSend({ sent, later, failed, suppressed, unknown, repeats }: SendReport): Values {
  return omitZeros({
    MessagesSent: sent,
    MessagesPutOff: later,
    MessagesFailed: failed,
    MessagesSuppressed: suppressed,
    SmsUnknown: unknown,
    MailsRepeated: repeats,
  });
}

/** Returns the values of an evaluation of the alert rules. */
export function measureAlerts({ failed }: AlertSummary): Values {
  return omitZeros({ AlertsNotSent: failed });
}

/** Returns the values of a request to the HTTP API. `route` is `null` if none matched, or without a valid key. */
export function measureRequest({
  route,
  status,
}: {
  readonly route: string | null;
  readonly status: number;
}): Values {
  // Before routing: a 429 of a route concerns streams that wait.
  const unauthorized = status === 401 || (status === 429 && route === null);
  return omitZeros({ RequestsFailed: status >= 500 ? 1 : 0, KeysRefused: unauthorized ? 1 : 0 });
}

/** Returns the positive values: a value of 0 in CloudWatch costs as much as any other. */
export function omitZeros(values: Values): Values {
  return Object.fromEntries(Object.entries(values).filter(([, value]) => value > 0));
}
