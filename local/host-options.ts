/** Options of a host. */
import type { SNSClient, SNSClientConfig } from '@aws-sdk/client-sns';
import type { AlertSummary } from '../shared/alerts/evaluate.ts';
import type { Config } from '../shared/config.ts';
import type { Attempt } from '../shared/delivery/delivery-log.ts';
import type { DrainReport } from '../shared/delivery/drain-deps.ts';
import type { SendReport } from '../shared/notifications/send-report.ts';
import type { SendOutcome } from '../shared/notifications/types.ts';
import type { AccountRef } from '../shared/storage/schema.ts';
import type { Table } from '../shared/storage/table.ts';
import type { PollReport } from '../shared/tracking/poll-report.ts';
import type { TrackingSettings } from '../shared/tracking/schedule.ts';

/** Options of a host. */
export interface HostOptions {
  readonly config: Config;
  readonly table: Table;
  /** The history table: data that is only read by users. */
  readonly history: Table;
  /** Key (32 bytes) that encrypts the secrets of endpoints created through the API. */
  readonly secretKey: Uint8Array;
  /** SNS topics to publish to. Absent: no events are published to SNS. */
  readonly sns?: { readonly client: SNSClient; readonly topicArns: Readonly<Record<string, string>> };
  /** Base URL of `dataschema` of events, and of links in e-mails. */
  readonly publicUrl: string;
  /** Credentials for SMS. Default: from the environment. */
  readonly smsCredentials?: SNSClientConfig['credentials'];
  /** Whether no other process works on this table. A lease or claim that is still held then belongs to a killed process. */
  readonly exclusive?: boolean;
  /** Time (epoch ms) at which the tables were restored from a backup. Logs of an earlier epoch continue in a new one. */
  readonly restoredAt?: number | undefined;
  /** Timings that the configuration file does not contain. */
  readonly settings?: Partial<TrackingSettings>;
  /** Interval of reading due work from the table. */
  readonly tickMs?: number;
  /** Wait after a window's end for events that were observed in it. */
  readonly noticeGraceMs?: number;
  /** Called when a log grew, with its last sequence and the number of new events. */
  readonly onGrowth?: (ref: AccountRef, sequence: number, events: number) => void;
  /** Called before a poll. */
  readonly onPollStart?: (ref: AccountRef) => void;
  /** Called after the work of a tick for one region, without its polls and drains. */
  readonly onTick?: (region: string) => void;
  /** Called after a poll. `lagMs`: delay of its start after the due time. */
  readonly onPoll?: (report: PollReport, late: { readonly lagMs: number }) => void;
  readonly onDrain?: (report: DrainReport) => void;
  /** Called with each attempt to deliver an event, as soon as it ends. */
  readonly onAttempt?: (attempt: Attempt) => void;
  /** Called after a run of the sender that had work. */
  readonly onSend?: (report: SendReport, region: string) => void;
  /** Called after each attempt to send an e-mail, with its outcome. */
  readonly onMail?: (outcome: SendOutcome) => void;
  /** Called after each attempt to send an SMS, with its outcome. */
  readonly onSms?: (outcome: SendOutcome) => void;
  /** Called after an evaluation of the alert rules. */
  readonly onAlerts?: (summary: AlertSummary, region: string) => void;
  /** Called after each message of an alert rule, with why its target did not accept it. `null`: it did. */
  readonly onAlert?: (rule: { readonly region: string; readonly id: string }, problem: string | null) => void;
  /** Called at the start for each warning about the configuration. */
  readonly onWarning?: (message: string) => void;
  /** Called for a failure of a loop. The next tick retries. */
  readonly onFault: (what: string, cause: unknown) => void;
}
