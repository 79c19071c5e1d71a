/** An account with notifications: a log, threads, recipients, a clock, and transports with configurable answers. */
import { randomUUID } from 'node:crypto';
import { registerAccount } from '../../shared/accounts/accounts.ts';
import type { EventDraft } from '../../shared/events/event.ts';
import { createEventLog } from '../../shared/log/log.ts';
import { listMessages } from '../../shared/notifications/message-history.ts';
import { toWork, type Work } from '../../shared/notifications/messages.ts';
import { createNotificationsSink } from '../../shared/notifications/notifications-sink.ts';
import { createRecipient } from '../../shared/notifications/recipients.ts';
import type { Message } from '../../shared/notifications/records.ts';
import type { SendDeps, SendLine } from '../../shared/notifications/send-report.ts';
import { sendDue } from '../../shared/notifications/sender.ts';
import { saveSettings } from '../../shared/notifications/settings.ts';
import { findSuppressions } from '../../shared/notifications/suppressions.ts';
import {
  type Channel,
  NOTIFICATIONS_SINK,
  type OutgoingEmail,
  type OutgoingSms,
  type Parcel,
  type SendOutcome,
} from '../../shared/notifications/types.ts';
import { type AccountRef, historySchema, keys, messagePk } from '../../shared/storage/schema.ts';
import { createMemoryTable } from '../../shared/storage/sqlite-table.ts';
import type { Table } from '../../shared/storage/table.ts';

export const START = Date.parse('2026-03-04T12:00:00Z');
export const MINUTE = 60_000;
export const HOUR = 60 * MINUTE;
export const WINDOW = 5 * MINUTE;
/** Time (ms) from an event until its notice is closed. */
export const CLOSED_AFTER = WINDOW + 15_000;
export const ACME: AccountRef = { region: 'us', account: 'acme' };

/** State of a job in an event. */
export interface JobOptions {
  readonly orderGroup?: string | null;
  readonly orderNumber?: string | null;
  readonly description?: string | null;
  readonly dateOut?: string | null;
  readonly dateDue?: string | null;
  /** For `job.due_date_changed`. Default: 2026-03-09. */
  readonly formerDateDue?: string;
  readonly tracking?: readonly Parcel[];
}

/** Returns a draft of an event about a job, observed at `time` (epoch ms). */
export function draftEvent(
  type:
    | 'job.dispatched'
    | 'job.dispatch_revoked'
    | 'job.cancelled'
    | 'job.reopened'
    | 'job.tracking_added'
    | 'job.due_date_changed',
  jobNumber: number,
  time: number,
  { formerDateDue = '2026-03-09', ...job }: JobOptions = {},
): EventDraft {
  return {
    type,
    jobNumber,
    time,
    data: {
      job: {
        ...{ jobNumber, status: null, description: `Job ${jobNumber}`, orderNumber: `PO-${jobNumber}` },
        ...{
          orderGroup: 'SPRING',
          orderGroupSequence: null,
          originCode: null,
          dateDue: null,
          mustDate: null,
        },
        ...{ dateOut: type === 'job.dispatch_revoked' ? null : '2026-03-04T10:00:00', tracking: [] },
        ...job,
      },
      observed: { at: new Date(time).toISOString(), since: null, view: 'list' },
      changes:
        type === 'job.due_date_changed' ? { dateDue: { from: formerDateDue, to: job.dateDue ?? null } } : {},
    },
  } as EventDraft;
}

export const parcel = (number: string): Parcel => ({ number, link: `https://carrier.example/${number}` });

/** Options of a world. */
export interface WorldOptions {
  readonly table?: Table;
  readonly history?: Table;
  /** Overrides of the default settings. */
  readonly settings?: Readonly<Record<string, unknown>>;
  /** Wraps the tables of the world for sending. */
  readonly around?: (tables: { table: Table; history: Table }) => { table: Table; history: Table };
}

/** Creates an account as described at the top of the file. */
export async function createNotifyingWorld(options: WorldOptions = {}) {
  const clock = { now: START };
  const now = () => clock.now;
  const table = options.table ?? createMemoryTable();
  const history = options.history ?? createMemoryTable(historySchema);
  const log = createEventLog(table, { now, newId: randomUUID, schemaBaseUrl: 'https://jobwire.example' });
  const registration = { ...ACME, secretRef: 'x', pollIntervalSeconds: 60, paused: false };
  await registerAccount(table, log, registration, { now: clock.now, epoch: 't3k9x1a2b3c4' });
  const people = { table, log, now, newId: randomUUID };
  const settings = async (changes: Readonly<Record<string, unknown>> = {}): Promise<void> => {
    const saved = await saveSettings(people, ACME, {
      ...{ enabled: true, branding: { name: 'Acme Prints' }, sms: { enabled: true, quietHours: null } },
      ...options.settings,
      ...changes,
    });
    if (saved.kind !== 'saved') throw new Error(saved.reason);
  };
  await settings();
  const sink = createNotificationsSink({ table, history, now });
  const emails: OutgoingEmail[] = [];
  const sms: OutgoingSms[] = [];
  const lines: SendLine[] = [];
  const accepted = async (): Promise<SendOutcome> => ({ kind: 'accepted', providerId: 'p-1' });
  /** Answers of the transports. */
  const answers = {
    email: accepted as (mail: OutgoingEmail) => Promise<SendOutcome>,
    sms: accepted as (sms: OutgoingSms) => Promise<SendOutcome>,
  };
  const deps: SendDeps = {
    ...(options.around?.({ table, history }) ?? { table, history }),
    ...{ now, newId: randomUUID, random: () => 0.5, publicUrl: 'https://jobwire.example' },
    email: {
      domain: 'mail.example',
      send(mail) {
        emails.push(mail);
        return answers.email(mail);
      },
      close: () => undefined,
    },
    sms: {
      send(one) {
        sms.push(one);
        return answers.sms(one);
      },
    },
    report: (line) => lines.push(line),
  };
  return {
    ...{ clock, table, history, log, people, settings, deps, emails, sms, lines, answers },
    async recipient(input: object) {
      const made = await createRecipient(people, ACME, input);
      if (made.kind !== 'created') throw new Error(made.reason);
      return made.recipient;
    },
    /** Writes events to the log and folds them. */
    async fold(...drafts: readonly EventDraft[]): Promise<void> {
      const from = (await log.head(ACME))?.sequence ?? 0;
      for (let at = 0; at < drafts.length; at += 40) await log.append(ACME, drafts.slice(at, at + 40));
      let position = from;
      for (;;) {
        const page = await log.read(ACME, position, 200);
        if (page?.kind !== 'events' || page.events.length === 0) break;
        const outcomes = await sink.deliver(page.events.map((event) => ({ event })));
        if (outcomes.some(({ kind }) => kind !== 'delivered')) throw new Error('An event was not folded.');
        position = page.events.at(-1)?.sequence ?? position;
      }
      const key = keys.cursor(ACME.region, NOTIFICATIONS_SINK, ACME.account);
      await table.write({ put: { ...key, sink: NOTIFICATIONS_SINK, position } });
    },
    /** Sends due messages, some time later. */
    async send(afterMs = 0, changes: Partial<SendDeps> = {}) {
      clock.now += afterMs;
      return sendDue({ ...deps, ...changes }, ACME.region, clock.now + HOUR);
    },
    /** Returns the messages in the history, oldest first. */
    async messages(): Promise<Message[]> {
      return (await listMessages(history, ACME, { limit: 1000 })).messages.reverse();
    },
    /** The current work items of messages. */
    async works(): Promise<Work[]> {
      return (await table.query({ pk: messagePk(ACME) })).map(toWork);
    },
    /** The remaining journal entries. */
    journal: () => table.query({ pk: messagePk({ region: ACME.region, account: '_cell' }) }),
  };
}

/** Returns the suppression of an address for an account. `undefined` if there is none. */
export async function findSuppression(table: Table, ref: AccountRef, channel: Channel, address: string) {
  return (await findSuppressions(table, [{ ref, channel, address }]))[0];
}
