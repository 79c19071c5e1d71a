/**
 * The metrics of a cell; the only place that names them. Telemetry, the dashboard and the alarms can use no
 * others. The cost of a metric depends on the hours in which it has values, and on the values of its
 * dimensions. So the cell is the only dimension, and rare metrics are emitted only on occurrence. Ids of
 * accounts and sinks are in the log lines.
 */

/** CloudWatch namespace of all metrics. */
export const NAMESPACE = 'Jobwire';

/**
 * `each`: emitted every hour, in every state. `active`: emitted on activity, so in most hours of a busy cell.
 * `rare`: emitted only on problems. `kind`: whether the kind of a fault is a dimension besides the cell.
 */
interface Metric {
  readonly unit: 'Count' | 'Milliseconds' | 'Seconds';
  readonly emitted: 'each' | 'active' | 'rare';
  readonly kind?: true;
  /** Emitted only in cells with notifications. */
  readonly part?: 'notifications';
}

const notifications = { part: 'notifications' } as const;

/** The catalogue of metrics. */
export const METRICS = {
  /** Number of ticks that completed without an error. */
  Ticks: { unit: 'Count', emitted: 'each' },
  /** Delay of the start of a poll after its due time. Not emitted while a regional outage delays polls. */
  PollLag: { unit: 'Milliseconds', emitted: 'each' },
  /**
   * 0 for a poll that read and committed everything, 1 for one that did not. The average is the fraction of
   * incomplete polls, the sample count the number of polls. Polls that fail in a reported regional outage
   * do not count.
   */
  PollsIncomplete: { unit: 'Count', emitted: 'each' },
  /** Number of polls that left work for the next one. */
  PollsPartial: { unit: 'Count', emitted: 'rare' },
  /** Number of polls that could read nothing. */
  PollsFailed: { unit: 'Count', emitted: 'rare' },
  /** Number of jobs that had to be rewritten. */
  ChangedJobs: { unit: 'Count', emitted: 'active' },
  /**
   * Number of delisted jobs of one account whose outcome is not yet known after its poll. Emitted only if
   * there are any.
   */
  UnresolvedDepartures: { unit: 'Count', emitted: 'active' },
  EventsCommitted: { unit: 'Count', emitted: 'active' },
  /** Number of errors of the ordering API by kind, including those of retried requests. */
  UpstreamErrors: { unit: 'Count', emitted: 'rare', kind: true },
  /**
   * Number of tokens and credentials that the ordering API rejected, including tokens that could be replaced.
   */
  TokenRefusals: { unit: 'Count', emitted: 'rare' },
  /** Number of accounts whose credentials are no longer valid, counted when the event is emitted. */
  CredentialsRejected: { unit: 'Count', emitted: 'rare' },
  /** Number of accounts whose credentials belong to another account. */
  IdentityMismatches: { unit: 'Count', emitted: 'rare' },
  AccountsQuarantined: { unit: 'Count', emitted: 'rare' },
  /** 1 with each tick during a reported outage of the whole region. */
  UpstreamOutage: { unit: 'Count', emitted: 'rare' },
  /** Number of events delivered. */
  Deliveries: { unit: 'Count', emitted: 'active' },
  /** Time from the observation of an event to its delivery. Requested resends do not count. */
  DeliveryLag: { unit: 'Milliseconds', emitted: 'active' },
  /** Age of the oldest event that a sink has not reached yet; 0 if there is none. */
  OldestUndelivered: { unit: 'Seconds', emitted: 'each' },
  /** Number of attempts to be retried: the sink accepted nothing. */
  DeliveryFailures: { unit: 'Count', emitted: 'rare' },
  /** Number of attempts in which the receiver rejected the event itself. */
  DeliveryRejections: { unit: 'Count', emitted: 'rare' },
  EventsParked: { unit: 'Count', emitted: 'rare' },
  EventsDead: { unit: 'Count', emitted: 'rare' },
  EventsLost: { unit: 'Count', emitted: 'rare' },
  /** Number of attempts that could not be recorded in the delivery log. */
  DeliveriesUnlogged: { unit: 'Count', emitted: 'rare' },
  SinksDisabled: { unit: 'Count', emitted: 'rare' },
  /**
   * Number of requests that the HTTP API failed to handle: the table did not respond, or there is a fault.
   */
  RequestsFailed: { unit: 'Count', emitted: 'rare' },
  /** Number of requests without an API key, or with an invalid one. */
  KeysRefused: { unit: 'Count', emitted: 'rare' },
  /** Number of e-mails and SMS that the provider accepted. */
  MessagesSent: { unit: 'Count', emitted: 'active', ...notifications },
  /** Longest time for which a notification has been due. Emitted only if any is. */
  OldestUnsent: { unit: 'Seconds', emitted: 'active', ...notifications },
  /** Number of messages that the provider did not accept, and that are retried later. */
  MessagesPutOff: { unit: 'Count', emitted: 'rare', ...notifications },
  /** Number of messages that failed permanently. Those of an unknown outcome are not included. */
  MessagesFailed: { unit: 'Count', emitted: 'rare', ...notifications },
  /** Number of messages suppressed on purpose. */
  MessagesSuppressed: { unit: 'Count', emitted: 'rare', ...notifications },
  /** Number of SMS whose outcome is unknown. */
  SmsUnknown: { unit: 'Count', emitted: 'rare', ...notifications },
  /** Number of e-mails sent again because their outcome was unknown: the maximum number of duplicates. */
  MailsRepeated: { unit: 'Count', emitted: 'rare', ...notifications },
  /** Number of e-mails that bounced permanently. */
  MailsBounced: { unit: 'Count', emitted: 'rare', ...notifications },
  /** Number of e-mails that were marked as spam. */
  MailComplaints: { unit: 'Count', emitted: 'rare', ...notifications },
} as const satisfies Record<string, Metric>;

/** A metric by its name. */
export type MetricName = keyof typeof METRICS;

/** Returns the value of the dimension `cell`. */
export function cellName(cell: { readonly stage: string; readonly region: string }): string {
  return `${cell.stage}-${cell.region}`;
}
