/**
 * The metrics of a cell: the one place where they are named. Telemetry emits these and no others, and the dashboard and the
 * alarms can show no others. Each costs by the hours in which it says anything, and by the values of its dimensions: so the
 * cell is the only dimension, and what is rare is said only when it happens. Accounts and sinks stand in the log lines.
 */

/** Namespace of all of them. */
export const NAMESPACE = 'Jobwire';

/**
 * `each`: every hour, whatever happens. `active`: whenever something goes on, so in most hours of a busy cell. `rare`: only
 * when something is not as it should be. `kind`: whether the kind of a fault is a dimension besides the cell.
 */
interface Metric {
  readonly unit: 'Count' | 'Milliseconds' | 'Seconds';
  readonly said: 'each' | 'active' | 'rare';
  readonly kind?: true;
  /** Said only in cells that tell customers. */
  readonly part?: 'notifications';
}

const notifications = { part: 'notifications' } as const;

/** The catalogue. */
export const METRICS = {
  /** A tick got through with everything. */
  Ticks: { unit: 'Count', said: 'each' },
  /** By how much a poll began later than it was due. Not while an outage of the region holds polls back. */
  PollLag: { unit: 'Milliseconds', said: 'each' },
  /**
   * 0 for a poll that saw and committed everything, 1 for one that did not: the average is the part of polls that did not,
   * the number of samples is that of polls. Polls that fail in an announced outage of the region don't count.
   */
  PollsIncomplete: { unit: 'Count', said: 'each' },
  /** Polls that left something for the next one. */
  PollsPartial: { unit: 'Count', said: 'rare' },
  /** Polls that could read nothing. */
  PollsFailed: { unit: 'Count', said: 'rare' },
  /** Jobs that had to be written anew. */
  ChangedJobs: { unit: 'Count', said: 'active' },
  /** Jobs of one account that are missing from the list, and whose fate is open after its poll; only when there are any. */
  UnresolvedDepartures: { unit: 'Count', said: 'active' },
  EventsCommitted: { unit: 'Count', said: 'active' },
  /** Faults of the ordering service by kind, of requests that were repeated as well. */
  UpstreamErrors: { unit: 'Count', said: 'rare', kind: true },
  /** Tokens and credentials that the service refused; a token that could be replaced is among them. */
  TokenRefusals: { unit: 'Count', said: 'rare' },
  /** Accounts whose credentials are no longer good, counted when that is said. */
  CredentialsRejected: { unit: 'Count', said: 'rare' },
  /** Accounts whose credentials turned out to be another’s. */
  IdentityMismatches: { unit: 'Count', said: 'rare' },
  AccountsQuarantined: { unit: 'Count', said: 'rare' },
  /** 1 with each tick while an outage of the whole region is announced. */
  UpstreamOutage: { unit: 'Count', said: 'rare' },
  /** Events that sinks took. */
  Deliveries: { unit: 'Count', said: 'active' },
  /** From when an event was observed until a sink took it; not of what was asked for again. */
  DeliveryLag: { unit: 'Milliseconds', said: 'active' },
  /** How long ago the oldest event was observed that a sink has not come to yet; 0 when there is none. */
  OldestUndelivered: { unit: 'Seconds', said: 'each' },
  /** Attempts that are to be repeated: the sink could take nothing. */
  DeliveryFailures: { unit: 'Count', said: 'rare' },
  /** Attempts in which the event itself was refused. */
  DeliveryRejections: { unit: 'Count', said: 'rare' },
  EventsParked: { unit: 'Count', said: 'rare' },
  EventsDead: { unit: 'Count', said: 'rare' },
  EventsLost: { unit: 'Count', said: 'rare' },
  /** Attempts that could not be noted in the delivery log. */
  DeliveriesUnlogged: { unit: 'Count', said: 'rare' },
  SinksDisabled: { unit: 'Count', said: 'rare' },
  /** Requests that the HTTP API itself could not answer: the table did not, or there is a fault. */
  RequestsFailed: { unit: 'Count', said: 'rare' },
  /** Requests that showed no key, or one that is not good. */
  KeysRefused: { unit: 'Count', said: 'rare' },
  /** E-mails and SMS that were taken. */
  MessagesSent: { unit: 'Count', said: 'active', ...notifications },
  /** How long something to tell has been due, at most; only when anything is. */
  OldestUnsent: { unit: 'Seconds', said: 'active', ...notifications },
  /** Messages that were not taken, and are tried again later. */
  MessagesPutOff: { unit: 'Count', said: 'rare', ...notifications },
  /** Messages that could not be sent, and will not be; those of an unknown outcome are not among them. */
  MessagesFailed: { unit: 'Count', said: 'rare', ...notifications },
  /** Messages that were not sent on purpose. */
  MessagesSuppressed: { unit: 'Count', said: 'rare', ...notifications },
  /** SMS of which nobody knows whether they went. */
  SmsUnknown: { unit: 'Count', said: 'rare', ...notifications },
  /** E-mails that were sent again because nobody knew whether they went: duplicates, at most so many. */
  MailsRepeated: { unit: 'Count', said: 'rare', ...notifications },
  /** E-mails that came back for good. */
  MailsBounced: { unit: 'Count', said: 'rare', ...notifications },
  /** E-mails that were marked as spam. */
  MailComplaints: { unit: 'Count', said: 'rare', ...notifications },
} as const satisfies Record<string, Metric>;

/** A metric by its name. */
export type MetricName = keyof typeof METRICS;

/** The value of the dimension `cell`. */
export function cellName(cell: { readonly stage: string; readonly region: string }): string {
  return `${cell.stage}-${cell.region}`;
}
