/**
 * A child process: measures the deployed functions for one account, with stubs that have the latency of the real services.
 * One file: the measured functions share one set of stubs.
 */
import { randomUUID } from 'node:crypto';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createServer, request } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { CLAIM_SECONDS } from '../functions/handlers/messages.ts';
import { createTables, historyTableName } from '../local/dynamo-tables.ts';
import { startFauxqs } from '../local/queues.ts';
import { registerAccount } from '../shared/accounts/accounts.ts';
import { createAccountSecrets } from '../shared/accounts/credentials.ts';
import { createSigningSecrets } from '../shared/delivery/signing-secrets.ts';
import { registerSink } from '../shared/delivery/sink.ts';
import { close, listen } from '../shared/http-server.ts';
import { createEventLog } from '../shared/log/log.ts';
import { createRecipient } from '../shared/notifications/recipients.ts';
import { saveSettings } from '../shared/notifications/settings.ts';
import { NOTIFICATIONS_SINK } from '../shared/notifications/types.ts';
import { createDynamoTable } from '../shared/storage/dynamo-table.ts';
import { getDrainName, historySchema, keys, pollDue, sentPk } from '../shared/storage/schema.ts';
import { startDynamo } from '../test/support/dynoxide.ts';
import { KMS_KEY, sealWithKms } from '../test/support/kms.ts';
import { subscribeQueue } from '../test/support/queues.ts';
import { bundle, type DeployedFunction, synthesize } from './assets.ts';
import { startChild } from './child.ts';
import {
  ASSUMED,
  type Measured,
  type MeasuredWork,
  type NotificationWork,
  readTemplate,
  type Work,
} from './costs.ts';
import {
  type Environment,
  type Invocation,
  lambdaEnvironment,
  sqsEvent,
  startEnvironment,
  startKms,
} from './lambda.ts';
import { median } from './statistics.ts';
import { newToken } from './token.ts';
import type { UpstreamFacts } from './upstream.ts';
import { toDispatch } from './wire.ts';

const REGION = 'us';
const ACCOUNTS = Array.from({ length: 10 }, (_, at) => `account-${at}`);
const [FIRST = ''] = ACCOUNTS;
/** Number of pages of the list. */
const PAGES = Math.ceil(ASSUMED.jobs / 100);
/** Number of accounts that are claimed but not polled. */
const CLAIMS = 50;
const ENDPOINT = 'erp';
const TOPIC_SINK = 'topic';
/** An account with notifications. */
const NOTIFIED = { region: REGION, account: 'notified' };
/** A cell of the same stage without notifications. */
const PLAIN_STACK = 'jobwire-prod-uk';
/** Environment variables that enable notifications in a function. */
const NOTIFICATION_VARIABLES = ['JOBWIRE_NOTIFY_QUEUE_URL', 'JOBWIRE_CHANNELS'];

const rounds = Number(process.argv[2]);
using cell = await synthesize(`jobwire-prod-${REGION}`);
const upstream = await startChild<UpstreamFacts>('upstream.ts', [String(ASSUMED.jobs)]);
const { apiUrl, authUrl, clientId, clientSecret } = upstream.facts;
using kms = await startKms();
const [dynamo, fauxqs] = await Promise.all([startDynamo(), startFauxqs({ unsigned: true })]);
const client = dynamo.client();
await createTables(client, 'bench');
const topicArn = await fauxqs.ensureTopic('bench-events.fifo');
await subscribeQueue(fauxqs, topicArn, 'bench-events.fifo');
const queues = await Promise.all(
  ['polls', 'lone-polls', 'drains', 'messages'].map(async (name) => [name, await makeQueue(name)] as const),
);
const table = createDynamoTable(client, { tableName: 'bench' });
const texts = sealWithKms(table, kms.kms, { stage: 'prod' });
const log = createEventLog(table, { now: Date.now, newId: randomUUID, schemaBaseUrl: 'http://bench' });
const newAccount = async (account: string): Promise<void> =>
  registerAccount(
    table,
    log,
    {
      ...{ region: REGION, account, paused: false },
      secretRef: await createAccountSecrets(texts).save(REGION, account, { clientId, clientSecret }),
      // Not due again during the measurement.
      pollIntervalSeconds: 3_600,
    },
    { now: Date.now(), epoch: 'bench' },
  );

// Counts units as AWS does, and adds the latency of AWS.
const counted = { readUnits: 0, writeUnits: 0, sends: 0 };
const meteredDynamo = await startProxy(dynamo.endpoint, ASSUMED.dynamoMs, ({ operation, body }) => {
  const { ConsumedCapacity = [] } = JSON.parse(body) as {
    ConsumedCapacity?: { CapacityUnits?: number } | { CapacityUnits?: number }[];
  };
  const kind = /^(Get|BatchGet|Query)/.test(operation) ? 'readUnits' : 'writeUnits';
  for (const { CapacityUnits = 0 } of [ConsumedCapacity].flat()) counted[kind] += CapacityUnits;
});
const meteredMessages = await startProxy(fauxqs.endpoint, ASSUMED.snsAndSqsMs, ({ operation }) => {
  if (operation.startsWith('SendMessage')) counted.sends += 1;
});
const receiver = createServer((incoming, answer) => {
  incoming.resume().once('end', () => setTimeout(() => answer.writeHead(204).end(), ASSUMED.webhookMs));
});
const receiverUrl = await listen(receiver);

let mails = 0;
const ses = createServer((incoming, answer) => {
  mails += 1;
  const body = JSON.stringify({ MessageId: String(mails) });
  incoming.resume().once('end', () => {
    setTimeout(() => answer.writeHead(200, { 'content-type': 'application/json' }).end(body), ASSUMED.sesMs);
  });
});
const sesUrl = await listen(ses);

const folder = mkdtempSync(join(tmpdir(), 'jobwire-bench-cost-'));
const tick = await start('tick');
const alerts = await start('alerts');
const pollAccount = await start('poll-account');
const wakeSinks = await start('wake-sinks');
const drainSink = await start('drain-sink');

await Promise.all(ACCOUNTS.map(newAccount));
await tick.invoke({});
await poll(ACCOUNTS);
await drain(TOPIC_SINK);
await createSigningSecrets(texts).save(REGION, ENDPOINT, {
  secrets: [`whsec_${Buffer.alloc(32, 7).toString('base64')}`],
});
await registerSink(
  table,
  log,
  {
    ...{ region: REGION, id: ENDPOINT, kind: 'webhook', paused: false, types: [], accounts: [FIRST] },
    target: `${receiverUrl}/`,
  },
  [{ region: REGION, account: FIRST }],
);
// Warm-up rounds.
for (let turn = 0; turn < 5; turn += 1) {
  await settle();
  await changeAndDeliver();
}
await upstream.ask({ answerMs: ASSUMED.upstreamMs });

const idle: Work[] = [];
const idleAlerts: Work[] = [];
const quiet: Work[] = [];
const ten: Work[] = [];
const renewing: Work[] = [];
const sweeping: Work[] = [];
const delivered: Awaited<ReturnType<typeof changeAndDeliver>>[] = [];
for (let round = 0; round < rounds; round += 1) {
  await settle();
  const before = await sequences();
  idle.push(await measure(() => tick.invoke({})));
  idleAlerts.push(await measure(() => alerts.invoke({})));
  quiet.push(await measure(() => poll([FIRST])));
  ten.push(await measure(() => poll(ACCOUNTS)));
  renewing.push(await measure(renew));
  sweeping.push(await measure(sweep));
  if ((await sequences()) !== before) throw new Error('Quiet polls emitted events.');
  delivered.push(await changeAndDeliver());
}
await settle();
await Promise.all(Array.from({ length: CLAIMS }, (_, at) => newAccount(`claimed-${at}`)));
const claimingTick = await measure(() => tick.invoke({}));
// Last, because an account with notifications adds a sink to all accounts.
const notifying = await measureNotifications();

const event = await table.query({ pk: keys.event({ region: REGION, account: FIRST }, 1).pk, limit: 100 });
const snapshots = await table.query({
  pk: keys.snapshot({ region: REGION, account: FIRST }, 1).pk,
  limit: 100,
});
const work: MeasuredWork = {
  idleTick: middle(idle),
  idleAlerts: middle(idleAlerts),
  claimingTick,
  claims: CLAIMS,
  quietPoll: middle(quiet),
  tenQuietPolls: middle(ten),
  // A token that expires by itself causes no rejected request.
  renewingPoll: { ...middle(renewing), ms: middle(renewing).ms - ASSUMED.upstreamMs },
  sweepingPoll: middle(sweeping),
  changingPoll: middle(delivered.map(({ changingPoll }) => changingPoll)),
  wake: middle(delivered.map(({ wake }) => wake)),
  topicDrain: middle(delivered.map(({ topicDrain }) => topicDrain)),
  webhookDrain: middle(delivered.map(({ webhookDrain }) => webhookDrain)),
  startCpuMs: { wakeSinks: wakeSinks.startCpuMs, drainSink: drainSink.startCpuMs },
  eventBytes: averageBytes(event),
  snapshotBytes: averageBytes(snapshots),
  requestsPerPoll: PAGES,
  pageBytes: await measurePageBytes(),
};
const memoryMb = Object.fromEntries(cell.functions.map(({ entry, memoryMb: own }) => [entry, own]));
const template = readTemplate(cell.getResources(PLAIN_STACK), memoryMb);
const notificationTemplate = readTemplate(cell.resources, memoryMb);
process.send?.({
  ...{ work, notifying, template, notificationTemplate },
} satisfies Measured);
for (const each of [tick, alerts, pollAccount, wakeSinks, drainSink, upstream]) each[Symbol.dispose]();
await Promise.all([meteredDynamo.server, meteredMessages.server, receiver, ses].map(close));
rmSync(folder, { recursive: true });
await Promise.all([dynamo.stop(), fauxqs.stop()]);
process.disconnect();

async function makeQueue(name: string): Promise<string> {
  const { CreateQueueCommand } = await import('@aws-sdk/client-sqs');
  const { QueueUrl = '' } = await fauxqs.sqs().send(new CreateQueueCommand({ QueueName: name }));
  return new URL(QueueUrl).pathname;
}

/** Starts a function with the environment of a cell with or without notifications. */
async function start(entry: string, kind: 'plain' | 'notifying' = 'plain'): Promise<Environment> {
  const fn = cell.functions.find((one) => one.entry === entry);
  if (!fn) throw new Error(`The cell has no ${entry}.`);
  const file = entry === 'drain-sink' ? await withLoopback(fn) : fn.file;
  const own = Object.entries(fn.environment)
    .filter(([name]) => kind === 'notifying' || !NOTIFICATION_VARIABLES.includes(name))
    .map(([name, value]) => [name, toLocalValue(name, value)]);
  return startEnvironment(
    file,
    lambdaEnvironment(Object.fromEntries(own), {
      AWS_LAMBDA_FUNCTION_MEMORY_SIZE: String(fn.memoryMb),
      AWS_ENDPOINT_URL_DYNAMODB: meteredDynamo.url,
      AWS_ENDPOINT_URL_SQS: meteredMessages.url,
      AWS_ENDPOINT_URL_SNS: meteredMessages.url,
      AWS_ENDPOINT_URL_SESV2: sesUrl,
      AWS_ENDPOINT_URL_KMS: kms.url,
    }),
  );
}

/** Returns the local value of a function's environment variable. */
function toLocalValue(name: string, value: string): string {
  if (name === 'JOBWIRE_TABLE') return 'bench';
  if (name === 'JOBWIRE_HISTORY_TABLE') return historyTableName('bench');
  if (name === 'JOBWIRE_KEY_ARN') return KMS_KEY;
  if (name === 'JOBWIRE_UPSTREAM_BASE_URL') return apiUrl;
  if (name === 'JOBWIRE_UPSTREAM_AUTH_URL') return authUrl;
  if (name === 'JOBWIRE_TOPIC_ARN') return topicArn;
  if (!name.endsWith('_QUEUE_URL')) return value;
  const queue = queues.find(([known]) =>
    name === 'JOBWIRE_NOTIFY_QUEUE_URL'
      ? known === 'messages'
      : name === `JOBWIRE_${known.replaceAll('-', '_').slice(0, -1).toUpperCase()}_QUEUE_URL`,
  );
  if (!queue) throw new Error(`Unknown queue variable ${name}.`);
  return meteredMessages.url + queue[1];
}

/** Returns the deployed drainSink, changed so that endpoints can be on this machine. */
async function withLoopback({ entry }: DeployedFunction): Promise<string> {
  let found = false;
  const { code } = await bundle(entry, {
    plugins: [
      {
        name: 'loopback',
        setup(build) {
          build.onLoad({ filter: /[\\/](functions|shared)[\\/].*\.ts$/ }, ({ path }) => {
            const source = readFileSync(path, 'utf8');
            found ||= source.includes('allowPrivateNetworks: false');
            return {
              contents: source.replace('allowPrivateNetworks: false', 'allowPrivateNetworks: true'),
              loader: 'ts',
            };
          });
        },
      },
    ],
  });
  if (!found) throw new Error('allowPrivateNetworks was not found in drainSink.');
  const file = join(folder, 'index.mjs');
  writeFileSync(file, code);
  return file;
}

/** Polls accounts as if a tick had claimed them: the position in the index of due polls comes from the claim. */
async function poll(accounts: readonly string[]): Promise<Invocation> {
  for (const account of accounts) {
    const ref = { region: REGION, account };
    const claim = { ...pollDue(ref, Date.now() + CLAIM_SECONDS * 1000), claimedAt: Date.now() };
    await table.write({ update: keys.status(ref), set: { ...claim, nextPollAt: Date.now() } });
  }
  const dueAt = Date.now();
  const invocation = await pollAccount.invoke(sqsEvent(accounts.map((account) => ({ account, dueAt }))));
  for (const account of accounts) {
    const status = await table.get(keys.status({ region: REGION, account }));
    if (Number(status?.lastPollAt) < dueAt) throw new Error(`${account} was not polled.`);
  }
  return invocation;
}

async function drain(sink: string, by = drainSink, account = FIRST): Promise<Invocation> {
  return by.invoke(sqsEvent([{ sink: getDrainName(sink, account) }]));
}

/** Measures the work from a dispatch to an e-mail, and the idle work of a cell with notifications. */
async function measureNotifications(): Promise<NotificationWork> {
  const [notifyingTick, notificationDrain, notify] = await Promise.all([
    start('tick', 'notifying'),
    start('drain-sink', 'notifying'),
    start('notify', 'notifying'),
  ]);
  await newAccount(NOTIFIED.account);
  const deps = { table, log, now: Date.now, newId: randomUUID };
  const saved = await saveSettings(deps, NOTIFIED, {
    enabled: true,
    windowSeconds: 0,
    branding: { name: 'Acme' },
  });
  const created = await createRecipient(deps, NOTIFIED, { name: 'Ann', email: 'ann@customers.example' });
  if (saved.kind !== 'saved' || created.kind !== 'created') throw new Error('The notification setup failed.');
  // Includes events that were observed a minute ago, whose window has ended.
  await table.write({ update: keys.notificationSettings(NOTIFIED), set: { since: 0 } });
  const rounds: Omit<NotificationWork, 'startCpuMs' | 'messageBytes'>[] = [];
  for (let round = -3; round < 9; round += 1) {
    await settle();
    for (const account of [FIRST, NOTIFIED.account]) {
      await drain(NOTIFICATIONS_SINK, notificationDrain, account);
    }
    const plainIdleTick = await measure(() => tick.invoke({}));
    const idleTick = await measure(() => notifyingTick.invoke({}));
    await log.append({ region: REGION, account: FIRST }, [toDispatch(round + 10, Date.now() - 60_000)]);
    const plainWake = await measure(() => wakeFor(FIRST));
    await log.append(NOTIFIED, [toDispatch(round + 10, Date.now() - 60_000)]);
    const wake = await measure(() => wakeFor(NOTIFIED.account));
    const before = mails;
    const folding = await measure(() => drain(NOTIFICATIONS_SINK, notificationDrain, NOTIFIED.account));
    const dueTick = await measure(() => notifyingTick.invoke({}));
    const sending = await measure(() => notify.invoke(sqsEvent([{ dueSince: Date.now() }])));
    if (mails !== before + 1) throw new Error('A dispatch did not result in one e-mail.');
    // The first ones warm up.
    if (round >= 0)
      rounds.push({ plainIdleTick, idleTick, plainWake, wake, drain: folding, dueTick, notify: sending });
  }
  const toMedian = (what: keyof (typeof rounds)[number]): Work => middle(rounds.map((one) => one[what]));
  const historyTable = createDynamoTable(client, {
    tableName: historyTableName('bench'),
    schema: historySchema,
  });
  const stored = await historyTable.query({ pk: sentPk(NOTIFIED), limit: 5 });
  for (const each of [notifyingTick, notificationDrain, notify]) each[Symbol.dispose]();
  return {
    ...{ plainIdleTick: toMedian('plainIdleTick'), idleTick: toMedian('idleTick') },
    ...{ plainWake: toMedian('plainWake'), wake: toMedian('wake'), drain: toMedian('drain') },
    ...{ dueTick: toMedian('dueTick'), notify: toMedian('notify') },
    startCpuMs: { notify: notify.startCpuMs, drainSink: notificationDrain.startCpuMs },
    messageBytes: averageBytes(stored),
  };
}

async function wakeFor(account: string): Promise<Invocation> {
  const mark = await table.get(keys.wake({ region: REGION, account }));
  if (mark === undefined) throw new Error(`${account} has no wake mark.`);
  const NewImage = { pk: { S: mark.pk }, sk: { S: mark.sk }, sequence: { N: String(mark.sequence) } };
  const record = { eventName: 'INSERT', dynamodb: { SequenceNumber: '1', NewImage } };
  return wakeSinks.invoke({ Records: [record] });
}

/** Runs polls, tick and drains until no work is left. */
async function settle(): Promise<void> {
  await poll(ACCOUNTS);
  await tick.invoke({});
  await drain(TOPIC_SINK);
  await drain(ENDPOINT);
}

/** Polls after the token was revoked: with a new token, whose identity is verified. */
async function renew(): Promise<Invocation> {
  await upstream.ask({ revokeTokens: true });
  return poll([FIRST]);
}

/** Polls with a sweep of the newest closed jobs. */
async function sweep(): Promise<Invocation> {
  await table.write({
    update: keys.status({ region: REGION, account: FIRST }),
    set: { sweptAt: Date.now() - 3_600_000 },
  });
  return poll([FIRST]);
}

/** Measures one change from the poll to the delivery to both sinks. */
async function changeAndDeliver() {
  const before = await sequence();
  await upstream.ask({ change: 1 });
  const changingPoll = await measure(() => poll([FIRST]));
  if ((await sequence()) !== before + 1) throw new Error('A change did not result in one event.');
  const wake = await measure(() => wakeFor(FIRST));
  const topicDrain = await measure(() => drain(TOPIC_SINK));
  const webhookDrain = await measure(() => drain(ENDPOINT));
  for (const sink of [TOPIC_SINK, ENDPOINT]) {
    const cursor = await table.get(keys.cursor(REGION, sink, FIRST));
    if (Number(cursor?.position) !== before + 1) throw new Error(`The event was not delivered to ${sink}.`);
  }
  return { changingPoll, wake, topicDrain, webhookDrain };
}

async function sequence(account = FIRST): Promise<number> {
  return Number((await table.get(keys.head({ region: REGION, account })))?.sequence);
}

async function sequences(): Promise<number> {
  const all = await Promise.all(ACCOUNTS.map(sequence));
  return all.reduce((sum, one) => sum + one, 0);
}

async function measure(invoke: () => Promise<Invocation>): Promise<Work> {
  const before = { ...counted };
  const { ms, cpuMs, logBytes, metrics } = await invoke();
  return {
    ...{ ms, cpuMs, logBytes, metrics },
    readUnits: counted.readUnits - before.readUnits,
    writeUnits: counted.writeUnits - before.writeUnits,
    sends: counted.sends - before.sends,
  };
}

/** Returns the fastest times, because other programs on the machine only add to them, and the medians of all counts. */
function middle(works: readonly Work[]): Work {
  const of = (what: Exclude<keyof Work, 'metrics'>): number => median(works.map((one) => one[what]));
  const fastest = (what: 'ms' | 'cpuMs'): number => Math.min(...works.map((one) => one[what]));
  return {
    ...{ ms: fastest('ms'), cpuMs: fastest('cpuMs'), logBytes: of('logBytes') },
    ...{ readUnits: of('readUnits'), writeUnits: of('writeUnits'), sends: of('sends') },
    metrics: [...new Set(works.flatMap(({ metrics }) => metrics))],
  };
}

/** Returns the average size of the pages of the list. */
async function measurePageBytes(): Promise<number> {
  const headers = { authorization: `Bearer ${await newToken(upstream.facts)}` };
  let bytes = 0;
  for (let page = 1; page <= PAGES; page += 1) {
    const answer = await fetch(`${apiUrl}/Jobs/active?page=${page}&pageSize=100`, { headers });
    if (!answer.ok) throw new Error(`A page responded with HTTP ${answer.status}.`);
    bytes += (await answer.arrayBuffer()).byteLength;
  }
  return bytes / PAGES;
}

function averageBytes(items: readonly object[]): number {
  return items.reduce((sum, item) => sum + Buffer.byteLength(JSON.stringify(item)), 0) / items.length;
}

interface Exchange {
  readonly operation: string;
  readonly body: string;
}

/** Starts a proxy that delays responses and reports each request with its response. */
async function startProxy(target: string, delayMs: number, onAnswer: (exchange: Exchange) => void) {
  const { hostname, port } = new URL(target);
  const server = createServer((incoming, outgoing) => {
    const { method = '', url: path = '', headers } = incoming;
    const passed = request({ hostname, port, method, path, headers }, async (answer) => {
      const body = await text(answer);
      onAnswer({ operation: String(headers['x-amz-target'] ?? '').split('.')[1] ?? '', body });
      setTimeout(() => outgoing.writeHead(answer.statusCode ?? 500, answer.headers).end(body), delayMs);
    });
    passed.once('error', () => outgoing.destroy());
    incoming.pipe(passed);
  });
  return { server, url: await listen(server) };
}
