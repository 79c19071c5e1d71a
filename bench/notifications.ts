/**
 * A child process: measures the rate of notifications, compared with a bare loop of nodemailer that sends the same mails to the same
 * server with as many connections. 1,000 dispatches in 200 order groups with two recipients each result in 400 e-mails: from the
 * events to the mail server, on the embedded DynamoDB, with an injected clock.
 */
import { randomUUID } from 'node:crypto';
import { createTransport } from 'nodemailer';
import { historyTableName } from '../local/dynamo-tables.ts';
import { registerAccount } from '../shared/accounts/accounts.ts';
import { createEventLog } from '../shared/log/log.ts';
import { createDueMessages } from '../shared/notifications/notice-messages.ts';
import { createNotificationsSink } from '../shared/notifications/notifications-sink.ts';
import { createRecipient } from '../shared/notifications/recipients.ts';
import type { SendDeps } from '../shared/notifications/send-report.ts';
import { sendDue } from '../shared/notifications/sender.ts';
import { saveSettings } from '../shared/notifications/settings.ts';
import { createSmtpTransport } from '../shared/notifications/smtp.ts';
import { NOTIFICATIONS_SINK, type OutgoingEmail } from '../shared/notifications/types.ts';
import { createDynamoTable } from '../shared/storage/dynamo-table.ts';
import { type AccountRef, historySchema, keys } from '../shared/storage/schema.ts';
import { startChild } from './child.ts';
import type { MailServerFacts, MailTally } from './mail-server.ts';
import { median } from './statistics.ts';
import { startTables, timed, toDispatch } from './wire.ts';

/** Results: a second, and medians of the rounds. */
export interface NotificationResults {
  readonly rounds: number;
  /** Number of e-mails in each round. */
  readonly dispatches: number;
  readonly emails: number;
  /** Deviation from that number, in all rounds. */
  readonly wrong: number;
  readonly foldedPerSecond: number;
  readonly createdPerSecond: number;
  readonly sentPerSecond: number;
  readonly barePerSecond: number;
  readonly ratio: number;
}

const GROUPS = 200;
const JOBS_OF_GROUP = 5;
const EMAILS = 2 * GROUPS;
/** Default number of connections of the transport. */
const CONNECTIONS = 4;
const FROM = 'jobwire@bench.example';
const PREPARED_AT_ONCE = 50;
const HOUR_MS = 3_600_000;

const rounds = Number(process.argv[2]);
const [server, tables] = await Promise.all([startChild<MailServerFacts>('mail-server.ts'), startTables()]);
const { port } = server.facts;
const clock = { now: Date.parse('2026-03-04T12:00:00Z') };
const now = () => clock.now;
const table = createDynamoTable(tables.client, { tableName: 'bench' });
const history = createDynamoTable(tables.client, {
  tableName: historyTableName('bench'),
  schema: historySchema,
});
const log = createEventLog(table, { now, newId: randomUUID, schemaBaseUrl: 'http://bench' });
const sink = createNotificationsSink({ table, history, now });
const transport = createSmtpTransport({ from: FROM, host: '127.0.0.1', port, connections: CONNECTIONS });
const pool = createTransport({ pool: true, host: '127.0.0.1', port, maxConnections: CONNECTIONS });
/** Mails of a round, to be sent by the other side. */
let mails: OutgoingEmail[] = [];
const deps: SendDeps = {
  ...{ table, history, now, newId: randomUUID, random: Math.random, publicUrl: 'http://bench' },
  email: {
    domain: transport.domain,
    send(mail) {
      mails.push(mail);
      return transport.send(mail);
    },
    close: () => transport.close(),
  },
};

const folded: number[] = [];
const created: number[] = [];
const sent: number[] = [];
const bare: number[] = [];
let wrong = 0;
for (let round = -1; round < rounds; round += 1) {
  await prepare({ region: 'us', account: `bench-${round + 1}` });
  clock.now += HOUR_MS;
  const making = await timed(() => createDueMessages(deps, 'us', clock.now + HOUR_MS));
  // The order alternates, so that noise of the machine affects all sides equally.
  const ours = async (): Promise<void> => {
    mails = [];
    const { seconds, result } = await timed(() => sendDue(deps, 'us', clock.now + HOUR_MS));
    await count(result.sent);
    if (round >= 0) sent.push(EMAILS / seconds);
  };
  const theirs = async (): Promise<void> => {
    const { seconds } = await timed(() => bareLoop(mails));
    await count(mails.length);
    if (round >= 0) bare.push(mails.length / seconds);
  };
  // The first round has only our mails. Later, the other side sends those of the previous round.
  for (const measure of round < 0 || round % 2 === 0 ? [ours, theirs] : [theirs, ours]) await measure();
  if (round >= 0) created.push(making.result.messages / making.seconds);
}
process.send?.({
  rounds,
  ...{ dispatches: GROUPS * JOBS_OF_GROUP, emails: EMAILS, wrong },
  foldedPerSecond: median(folded.slice(1)),
  createdPerSecond: median(created),
  sentPerSecond: median(sent),
  barePerSecond: median(bare),
  ratio: median(sent.map((rate, at) => rate / (bare[at] ?? Number.NaN))),
} satisfies NotificationResults);
transport.close();
pool.close();
await tables.stop();
server[Symbol.dispose]();
process.disconnect();

/** Checks that each address of the round received one mail and that the history agrees. */
async function count(recorded: number): Promise<void> {
  const tally = await server.ask<MailTally>({});
  wrong += Math.abs(tally.mails - EMAILS) + Math.abs(tally.addresses - EMAILS) + Math.abs(recorded - EMAILS);
}

async function bareLoop(all: readonly OutgoingEmail[]): Promise<void> {
  await Promise.all(
    all.map(({ to, subject, html, text, messageId }) =>
      pool.sendMail({ from: FROM, to: to.address, subject, html, text, messageId: `<${messageId}>` }),
    ),
  );
}

/** Creates an account with open notices about its dispatches. */
async function prepare(ref: AccountRef): Promise<void> {
  const registration = { ...ref, secretRef: 'x', pollIntervalSeconds: 60, paused: false };
  await registerAccount(table, log, registration, { now: clock.now, epoch: 'bench' });
  const notificationDeps = { table, log, now, newId: randomUUID };
  await saveSettings(notificationDeps, ref, { enabled: true, branding: { name: 'Acme Prints' } });
  const groups = Array.from({ length: GROUPS }, (_, at) => at + 1);
  const recipients = groups.flatMap((group) =>
    ['ann', 'bob'].map((name) => ({
      ...{ name, orderGroup: `G${group}` },
      email: `${name}-${ref.account}-${group}@customers.example`,
    })),
  );
  for (let at = 0; at < recipients.length; at += PREPARED_AT_ONCE) {
    await Promise.all(
      recipients
        .slice(at, at + PREPARED_AT_ONCE)
        .map((input) => createRecipient(notificationDeps, ref, input)),
    );
  }
  const drafts = groups.flatMap((group) =>
    Array.from({ length: JOBS_OF_GROUP }, (_, at) => toDispatch(group * 10 + at, clock.now, `G${group}`)),
  );
  for (let at = 0; at < drafts.length; at += PREPARED_AT_ONCE) {
    await log.append(ref, drafts.slice(at, at + PREPARED_AT_ONCE));
  }
  let position = 0;
  const { seconds } = await timed(async () => {
    for (;;) {
      const page = await log.read(ref, position, 100);
      if (page?.kind !== 'events' || page.events.length === 0) return;
      await sink.deliver(page.events.map((event) => ({ event })));
      position = page.events.at(-1)?.sequence ?? position;
    }
  });
  folded.push(drafts.length / seconds);
  const key = keys.cursor(ref.region, NOTIFICATIONS_SINK, ref.account);
  await table.write({ put: { ...key, sink: NOTIFICATIONS_SINK, position } });
}
