/** Dependencies and results of sending, and its log lines. */
import { TableError } from '../storage/table.ts';
import type { JournalDeps } from './messages.ts';
import type { Message } from './records.ts';
import type { Channel, EmailTransport, MessageReason, SentKind, SmsTransport } from './types.ts';

/** Dependencies of sending. */
export interface SendDeps extends JournalDeps {
  /** From 0 (inclusive) to 1 (exclusive). */
  readonly random: () => number;
  /** Base URL of Jobwire, for links. */
  readonly publicUrl: string;
  /** Absent: no e-mail transport is configured. */
  readonly email?: EmailTransport | undefined;
  readonly sms?: SmsTransport | undefined;
  /** Maximum number of concurrent sends of each channel, if the transport has enough connections. Default: 8. */
  readonly concurrency?: number | undefined;
  /** Time after which the outcome of a send is unknown, ms. Default: 60 s. */
  readonly sendTimeoutMs?: number | undefined;
  /** Wait after a window's end for events that were observed in it, ms. */
  readonly graceMs?: number;
  /** Maximum SMS segments of all accounts of a region in a month. Default: {@link REGION_MONTHLY_SEGMENTS}. */
  readonly regionMonthlySegments?: number | undefined;
  /** Aborted when the process stops: no further message is sent, and those in progress are recorded. Default: never. */
  readonly stopping?: AbortSignal | undefined;
  /** Called for every result of a message and every failure. */
  readonly report?: ((line: SendLine) => void) | undefined;
}

/** Result of one message, or one failure, as a log line: ids, no addresses. */
export interface SendLine {
  readonly region: string;
  readonly account?: string;
  readonly message?: string;
  readonly thread?: string;
  readonly channel?: Channel | null;
  readonly kind?: SentKind;
  readonly outcome: Message['state'] | 'fault';
  readonly reason?: MessageReason | null;
  /** Explanation. */
  readonly detail?: string | null;
  readonly attempts?: number;
  readonly repeats?: number;
  /** Of the attempt. */
  readonly latencyMs?: number;
}

/** Result of a run of the sender. */
export interface SendReport {
  /** Number of notices that became messages or had no recipients. */
  readonly notices: number;
  /** Number of messages created. */
  readonly messages: number;
  readonly sent: number;
  /** Number of e-mails among those sent that may have been sent before. */
  readonly repeats: number;
  /** Number of messages not sent that are retried later. */
  readonly later: number;
  readonly failed: number;
  readonly suppressed: number;
  readonly dryRun: number;
  /** Number of SMS with unknown outcome. */
  readonly unknown: number;
  /** Channels that accept no message at present. */
  readonly held: readonly Channel[];
  /** Whether work was left at the deadline. */
  readonly more: boolean;
}

export function reportMessage({ report }: SendDeps, message: Message, latencyMs?: number): void {
  const { region, account, id, channel, kind, state, reason, detail, attempts, repeats } = message;
  report?.({
    ...{ region, account, message: id, channel, kind, outcome: state, reason, detail, attempts, repeats },
    ...(latencyMs === undefined ? {} : { latencyMs }),
  });
}

/** Reports a failure. Messages of our own faults contain keys and no personal data. Of other errors only the name is reported. */
export function reportFault(
  { report }: SendDeps,
  of: {
    readonly ref: { readonly region: string; readonly account?: string };
    readonly message?: Message;
    readonly thread?: string;
  },
  cause: unknown,
): void {
  const { region, account } = of.ref;
  report?.({
    ...{ region, outcome: 'fault', detail: cause instanceof TableError ? cause.message : toErrorName(cause) },
    ...(account === undefined ? {} : { account }),
    ...(of.message === undefined ? {} : { message: of.message.id }),
    ...(of.thread === undefined ? {} : { thread: of.thread }),
  });
}

const toErrorName = (cause: unknown): string => (cause instanceof Error ? cause.name : typeof cause);
