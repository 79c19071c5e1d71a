/**
 * Monthly cost of a cell, computed from measured work, the template and the price table. Where the behaviour of AWS is unknown, the more
 * expensive of the likely cases is assumed.
 * One file: it is one calculation, with a row for each service.
 */
import { CREDENTIALS_MAX_AGE_MS } from '../functions/clients.ts';
import { DATA_KEY_CACHE_MS } from '../functions/secrets.ts';
import type { Resource } from './assets.ts';
import { PRICES, PRICES_AS_OF, type PriceName, REGION_PRICES } from './prices.ts';

/** One kind of invocation, measured with the latencies of {@link ASSUMED}. */
export interface Work {
  readonly ms: number;
  readonly cpuMs: number;
  readonly logBytes: number;
  readonly readUnits: number;
  readonly writeUnits: number;
  /** Number of SQS send calls. */
  readonly sends: number;
  /** Names of the recorded metrics, with their dimensions. */
  readonly metrics: readonly string[];
}

/** Measured work. */
export interface MeasuredWork {
  readonly idleTick: Work;
  /** The evaluation of alert rules, of which there are none. */
  readonly idleAlerts: Work;
  /** A tick that claims `claims` accounts. */
  readonly claimingTick: Work;
  readonly claims: number;
  readonly quietPoll: Work;
  /** Ten accounts in one invocation. */
  readonly tenQuietPolls: Work;
  /** A quiet poll that also gets a new token and compares the identity. */
  readonly renewingPoll: Work;
  /** A quiet poll that also reads the newest closed jobs. */
  readonly sweepingPoll: Work;
  /** A poll that finds one change and commits it. */
  readonly changingPoll: Work;
  readonly wake: Work;
  readonly topicDrain: Work;
  readonly webhookDrain: Work;
  /** CPU time from process start until the function can be invoked. */
  readonly startCpuMs: { readonly wakeSinks: number; readonly drainSink: number };
  readonly eventBytes: number;
  readonly snapshotBytes: number;
  readonly requestsPerPoll: number;
  /** Average size of the responses to these requests, without compression and headers. */
  readonly pageBytes: number;
}

/** Measured work of notifications: one dispatch that results in one e-mail. */
export interface NotificationWork {
  /** A wake-up of an account with notifications, and of one without. */
  readonly wake: Work;
  readonly plainWake: Work;
  /** Adds the event to its thread. */
  readonly drain: Work;
  /** A tick that finds due notices and requests a run of notify. */
  readonly dueTick: Work;
  /** A tick without due notices, in a cell with notifications and in one without. */
  readonly idleTick: Work;
  readonly plainIdleTick: Work;
  /** Closes the notice, creates the message and sends it. */
  readonly notify: Work;
  readonly startCpuMs: { readonly notify: number; readonly drainSink: number };
  /** Size of a message in the history table. */
  readonly messageBytes: number;
}

/** Properties of a template that determine the cost. */
export interface CellTemplate {
  /** Memory of each function, by entry file. */
  readonly memoryMb: Readonly<Record<string, number>>;
  readonly queuesPolled: number;
  readonly pollBatchSize: number;
  readonly pollBatchingSeconds: number;
  /** Number of metrics that alarms evaluate. Without those of CloudFront, which only cells in us-east-1 evaluate. */
  readonly alarmMetrics: number;
  readonly compositeAlarms: number;
  readonly dashboards: number;
  readonly secrets: number;
  readonly kmsKeys: number;
  readonly webAcls: number;
  readonly webAclRules: number;
  readonly archiveDays: number;
  readonly logDays: number;
}

/** Assumptions. */
export const ASSUMED = {
  jobs: 500,
  pollSeconds: 120,
  eventsPerDay: 150,
  /** Median latency. */
  upstreamMs: 300,
  dynamoMs: 5,
  snsAndSqsMs: 15,
  webhookMs: 100,
  sesMs: 100,
  messageDays: 180,
  /** Memory size with one full CPU. Below it, CPU time grows in proportion. */
  memoryOfOneCpuMb: 1769,
  /** Lambda's own log lines of each invocation (START, END, REPORT), with CloudWatch's 26 bytes per line. */
  platformLogBytes: 500,
  /** Number of concurrent receivers of an event source. Each waits up to 20 s for messages of an empty queue. */
  receivers: 5,
  receiveSeconds: 20,
  /** Tokens are renewed a minute before they expire (10 minutes). Sweeps run every 15 minutes. */
  renewEverySeconds: 540,
  sweepEverySeconds: 900,
  /** Size of a request to the ordering API, with its token. */
  requestBytes: 1_500,
  eventDays: 90,
  snapshotDays: 180,
  /** Number of jobs that leave the list per day. Their snapshots are kept. */
  departuresPerDay: 15,
  historyDays: 30,
  historyBytes: 700,
  /** Storage overhead of DynamoDB for each item and each index entry. */
  itemOverheadBytes: 500,
} as const;

const SECONDS = 2_628_000;
const HOURS = SECONDS / 3600;
const TICKS = SECONDS / 60;
const POLLS = SECONDS / ASSUMED.pollSeconds;
const EVENTS = (ASSUMED.eventsPerDay * SECONDS) / 86_400;
const GB = 1e9;

/** Quantities by the name of their price. */
type Uses = { readonly [name in PriceName]?: number };

/** One line of a cost table: name, quantity, and monthly cost in us-east-1. */
export interface Line {
  readonly what: string;
  readonly how: string;
  readonly uses: Uses;
  readonly dollars: number;
}

/** Returns the monthly cost of one account with one endpoint, in a cell with `accounts` accounts. */
export function marginalCosts(work: MeasuredWork, cell: CellTemplate, accounts: number): Line[] {
  const { quietPoll, changingPoll, wake, topicDrain, webhookDrain } = work;
  const batch = pollsPerInvocation(cell, accounts);
  const memory = (entry: string): number => cell.memoryMb[entry] ?? Number.NaN;
  const claim = {
    readUnits: (work.claimingTick.readUnits - work.idleTick.readUnits) / work.claims,
    writeUnits: (work.claimingTick.writeUnits - work.idleTick.writeUnits) / work.claims,
    seconds:
      (billedMs(work.claimingTick, memory('tick')) - billedMs(work.idleTick, memory('tick'))) /
      work.claims /
      1000,
  };
  // Additional work of some polls, and its frequency per month.
  const additional = [
    { poll: changingPoll, times: EVENTS },
    { poll: work.renewingPoll, times: SECONDS / ASSUMED.renewEverySeconds },
    { poll: work.sweepingPoll, times: SECONDS / ASSUMED.sweepEverySeconds },
  ];
  const extra = (of: 'readUnits' | 'writeUnits' | 'logBytes'): number =>
    additional.reduce((sum, { poll, times }) => sum + (poll[of] - quietPoll[of]) * times, 0);

  const one = billedMs(quietPoll, memory('poll-account'));
  const ten = billedMs(work.tenQuietPolls, memory('poll-account'));
  const batchMs = one + ((ten - one) * (batch - 1)) / 9;
  // Additional time is not shared: the other polls of the batch complete earlier.
  const extraMs = additional.reduce(
    (sum, { poll, times }) => sum + Math.max(0, billedMs(poll, memory('poll-account')) - one) * times,
    0,
  );
  const pollSeconds = ((batchMs / batch) * POLLS + extraMs) / 1000;
  const pollInvocations = POLLS / batch;

  // With one account, minutes pass between events, so each may cause cold starts. With many accounts, functions stay warm.
  const cold = accounts < 100 ? 1 : 0;
  const drains = EVENTS * 2;
  const wakeSeconds =
    (EVENTS *
      (billedMs(wake, memory('wake-sinks')) +
        cold * work.startCpuMs.wakeSinks * slowdown(memory('wake-sinks')))) /
    1000;
  const drainSeconds =
    (EVENTS *
      (billedMs(topicDrain, memory('drain-sink')) +
        billedMs(webhookDrain, memory('drain-sink')) +
        2 * cold * work.startCpuMs.drainSink * slowdown(memory('drain-sink')))) /
    1000;

  // One call sends a batch of claims. One call receives and one deletes a batch of polls.
  const pollCalls = POLLS / Math.min(10, accounts) + 2 * pollInvocations;
  const drainCalls = EVENTS * wake.sends + 2 * drains;
  const logBytes =
    (work.tenQuietPolls.logBytes / 10) * POLLS +
    Math.max(0, quietPoll.logBytes - work.tenQuietPolls.logBytes / 10) * pollInvocations +
    extra('logBytes') +
    (wake.logBytes + topicDrain.logBytes + webhookDrain.logBytes) * EVENTS +
    ASSUMED.platformLogBytes * (pollInvocations + EVENTS + drains);
  const polling = Math.max(1, Math.ceil((accounts / ASSUMED.pollSeconds / batch) * (batchMs / 1000)));
  const draining = Math.max(1, Math.ceil((accounts * drainSeconds) / SECONDS));
  const keyCalls =
    dataKeyCalls(POLLS, polling, accounts) + (cold ? EVENTS : dataKeyCalls(EVENTS, draining, accounts));
  // The reads of signing secrets are measured with the drains.
  const reads = POLLS * secretMisses(polling);
  const eventGb = (EVENTS * work.eventBytes) / GB;
  const storedGb =
    ((ASSUMED.jobs + ASSUMED.departuresPerDay * ASSUMED.snapshotDays) *
      (work.snapshotBytes + ASSUMED.itemOverheadBytes) +
      ASSUMED.eventsPerDay * ASSUMED.eventDays * (work.eventBytes + ASSUMED.itemOverheadBytes)) /
    GB;
  const historyGb =
    (2 * ASSUMED.eventsPerDay * ASSUMED.historyDays * (ASSUMED.historyBytes + ASSUMED.itemOverheadBytes)) /
    GB;

  return [
    units('Claims', claim, POLLS),
    units('Quiet polls', quietPoll, POLLS),
    units('Changes, token renewals, sweeps', {
      readUnits: extra('readUnits'),
      writeUnits: extra('writeUnits'),
    }),
    units('Wake-ups and drains', {
      readUnits: (wake.readUnits + topicDrain.readUnits + webhookDrain.readUnits) * EVENTS,
      writeUnits: (wake.writeUnits + topicDrain.writeUnits + webhookDrain.writeUnits) * EVENTS,
    }),
    lambda('Lambda: pollAccount', pollInvocations, pollSeconds, memory('poll-account')),
    lambda('Lambda: wakeSinks', EVENTS, wakeSeconds, memory('wake-sinks')),
    lambda('Lambda: drainSink', drains, drainSeconds, memory('drain-sink')),
    lambda('Lambda: share of ticks', 0, claim.seconds * POLLS, memory('tick')),
    line('SQS', `${thousands(pollCalls + drainCalls)} calls`, { sqsRequest: pollCalls + drainCalls }),
    line('SNS', `${thousands(EVENTS)} events to the topic, one subscribed queue`, {
      ...{ snsFifoPublish: EVENTS, snsFifoDelivery: EVENTS },
      ...{ snsFifoPublishGb: eventGb, snsFifoDeliveryGb: eventGb },
      snsArchiveGb: cell.archiveDays > 0 ? eventGb : 0,
      snsArchiveGbMonth: eventGb * (cell.archiveDays / 30.4),
    }),
    logs('Log lines', logBytes, cell.logDays),
    line('Secrets: KMS, reads of the table', `${thousands(keyCalls)} calls, ${thousands(reads)} read units`, {
      ...{ kmsCall: keyCalls, dynamoReadUnit: reads },
    }),
    line('Storage, with point-in-time recovery', `${(1000 * (storedGb + historyGb)).toFixed(0)} MB`, {
      dynamoStoredGbMonth: storedGb + historyGb,
      dynamoRecoveryGbMonth: storedGb,
    }),
    line('Data sent to the internet', `${(1000 * outGb(work)).toFixed(0)} MB`, { outGb: outGb(work) }),
  ];
}

/** Returns the data (GB) that an account sends to the internet in a month. */
function outGb(work: MeasuredWork): number {
  return (POLLS * work.requestsPerPoll * ASSUMED.requestBytes + EVENTS * work.eventBytes) / GB;
}

/** Returns the data (GB) that an account receives from the internet in a month: the pages of polls, and one page of each sweep. */
function inGb({ requestsPerPoll, pageBytes }: MeasuredWork): number {
  return ((POLLS * requestsPerPoll + SECONDS / ASSUMED.sweepEverySeconds) * pageBytes) / GB;
}

/** Returns the monthly cost of a cell without accounts. */
export function fixedCosts(work: MeasuredWork, cell: CellTemplate): Line[] {
  const { idleTick, idleAlerts } = work;
  const receives = (cell.queuesPolled * ASSUMED.receivers * SECONDS) / ASSUMED.receiveSeconds;
  const always = new Set([...idleTick.metrics, ...work.quietPoll.metrics]);
  const active = new Set(
    [work.changingPoll, work.wake, work.topicDrain, work.webhookDrain]
      .flatMap(({ metrics }) => metrics)
      .filter((name) => !always.has(name)),
  );
  const memory = cell.memoryMb.tick ?? Number.NaN;
  const alertsMemory = cell.memoryMb.alerts ?? Number.NaN;
  return [
    lambda('Lambda: ticks', TICKS, (billedMs(idleTick, memory) * TICKS) / 1000, memory),
    units('Ticks', idleTick, TICKS),
    lambda('Lambda: alert rules', TICKS, (billedMs(idleAlerts, alertsMemory) * TICKS) / 1000, alertsMemory),
    units('Alert rules', idleAlerts, TICKS),
    line('EventBridge Scheduler', `${thousands(2 * TICKS)} invocations`, { schedulerInvocation: 2 * TICKS }),
    logs(
      'Log lines of ticks and alert rules',
      (idleTick.logBytes + idleAlerts.logBytes + 2 * ASSUMED.platformLogBytes) * TICKS,
      cell.logDays,
    ),
    line('SQS: polling of empty queues', `${cell.queuesPolled} queues, ${thousands(receives)} receives`, {
      sqsRequest: receives,
    }),
    count('Metrics, permanent', always.size, 'metricMonth'),
    count('Metrics, while events are emitted', active.size, 'metricMonth'),
    count('Metrics evaluated by alarms', cell.alarmMetrics, 'alarmMetricMonth'),
    count('Composite alarms', cell.compositeAlarms, 'compositeAlarmMonth'),
    count('Dashboards', cell.dashboards, 'dashboardMonth'),
    count('Secrets', cell.secrets, 'secretMonth'),
    count('KMS keys', cell.kmsKeys, 'kmsKeyMonth'),
    count('Web ACLs', cell.webAcls, 'webAclMonth'),
    count('Web ACL rules', cell.webAclRules, 'webAclRuleMonth'),
  ].filter(({ dollars }) => dollars > 0);
}

/** Returns the additional monthly cost of settings. */
export function optionalCosts(work: MeasuredWork, cell: CellTemplate, accounts: number): Line[] {
  const batch = pollsPerInvocation(cell, accounts);
  const seconds = work.tenQuietPolls.ms / 1000;
  const processes = Math.max(1, Math.ceil((accounts / ASSUMED.pollSeconds / batch) * seconds));
  const secretCalls = POLLS * secretMisses(processes);
  const [sentGb, receivedGb] = [accounts * outGb(work), accounts * inGb(work)];
  return [
    line('A secret of its own for an account (`secretRef`)', `1 secret, ${thousands(secretCalls)} calls`, {
      ...{ secretMonth: 1, secretCall: secretCalls },
    }),
    line(
      '`customerKey`, from the third year',
      '2 rotated versions of the KMS key; calls of KMS are not included',
      {
        kmsKeyMonth: 2,
      },
    ),
    line('`api.waf`, with the dashboard', '1 web ACL, 4 rules, a million requests', {
      ...{ webAclMonth: 1, webAclRuleMonth: 4, webAclRequest: 1e6 },
    }),
    line(
      '`staticEgress`: NAT gateway with its address',
      `${HOURS} hours, ${thousands(sentGb)} GB sent and ${thousands(receivedGb)} GB received by ${thousands(accounts)} accounts`,
      { natGatewayHour: HOURS, natGatewayGb: sentGb + receivedGb, publicAddressHour: HOURS },
    ),
  ];
}

/** Returns the cost of 1,000 e-mails about 1,000 dispatches to one recipient each, where each function run is a cold start. */
export function messageCosts(work: NotificationWork, cell: CellTemplate): Line[] {
  const MESSAGES = 1_000;
  const { wake, plainWake, drain, notify } = work;
  const memory = (entry: string): number => cell.memoryMb[entry] ?? Number.NaN;
  const additional = (of: 'readUnits' | 'writeUnits' | 'logBytes'): number =>
    Math.max(0, wake[of] - plainWake[of]);
  const seconds = (one: Work, startCpuMs: number, memoryMb: number): number =>
    (MESSAGES * (billedMs(one, memoryMb) + startCpuMs * slowdown(memoryMb))) / 1000;
  // Both messages are received and deleted. The message for the drain is among the sends of the wake-up.
  const calls = MESSAGES * (Math.max(0, wake.sends - plainWake.sends) + 1 + 2 * 2);
  const logBytes =
    MESSAGES * (additional('logBytes') + drain.logBytes + notify.logBytes + 2 * ASSUMED.platformLogBytes);
  const storedGbMonths =
    ((MESSAGES * (work.messageBytes + 3 * ASSUMED.itemOverheadBytes)) / GB) * (ASSUMED.messageDays / 30.4);
  return [
    line('SES', `${thousands(MESSAGES)} e-mails`, { sesEmail: MESSAGES }),
    units('Adding dispatches to the notification state of orders', {
      readUnits: MESSAGES * (additional('readUnits') + drain.readUnits),
      writeUnits: MESSAGES * (additional('writeUnits') + drain.writeUnits),
    }),
    units('Creating and sending messages', notify, MESSAGES),
    lambda(
      'Lambda: drainSink',
      MESSAGES,
      seconds(drain, work.startCpuMs.drainSink, memory('drain-sink')),
      memory('drain-sink'),
    ),
    lambda(
      'Lambda: notify',
      MESSAGES,
      seconds(notify, work.startCpuMs.notify, memory('notify')),
      memory('notify'),
    ),
    line('SQS', `${thousands(calls)} calls`, { sqsRequest: calls }),
    logs('Log lines', logBytes, cell.logDays),
    line('Storage of sent messages', `${ASSUMED.messageDays} days`, { dynamoStoredGbMonth: storedGbMonths }),
  ];
}

/** Returns the additional monthly cost of a cell with notifications, without any messages. */
export function notificationCosts(work: NotificationWork, cell: CellTemplate, plain: CellTemplate): Line[] {
  const queues = cell.queuesPolled - plain.queuesPolled;
  const receives = (queues * ASSUMED.receivers * SECONDS) / ASSUMED.receiveSeconds;
  const { idleTick, plainIdleTick } = work;
  const metrics = new Set(
    [work.dueTick, work.notify]
      .flatMap((one) => one.metrics)
      .filter((name) => !plainIdleTick.metrics.includes(name)),
  );
  return [
    line('SQS: polling of empty queues', `${queues} queues, ${thousands(receives)} receives`, {
      sqsRequest: receives,
    }),
    units('Queries of ticks for due messages', {
      readUnits: (idleTick.readUnits - plainIdleTick.readUnits) * TICKS,
      writeUnits: (idleTick.writeUnits - plainIdleTick.writeUnits) * TICKS,
    }),
    count('Metrics, while notifications are sent', metrics.size, 'metricMonth'),
    count('Metrics evaluated by alarms', cell.alarmMetrics - plain.alarmMetrics, 'alarmMetricMonth'),
  ];
}

/** A metric of an alarm in a template. */
interface MetricStat {
  readonly Metric?: { readonly Namespace?: string };
}

/** Reads the properties that determine the cost from a synthesized cell. `memoryMb`: by entry file. */
export function readTemplate(
  resources: Readonly<Record<string, Resource>>,
  memoryMb: Readonly<Record<string, number>>,
): CellTemplate {
  const all = Object.entries(resources);
  const of = (type: string) =>
    all.filter(([, { Type }]) => Type === type).map(([, { Properties }]) => Properties);
  const sources = of('AWS::Lambda::EventSourceMapping').filter((mapping) =>
    /Queue/.test(JSON.stringify(mapping.EventSourceArn)),
  );
  // The queue of suspects has batches of one.
  const polls = sources
    .filter(({ FunctionName }) => /PollAccount/.test(JSON.stringify(FunctionName)))
    .sort((a, b) => Number(b.BatchSize) - Number(a.BatchSize))[0];
  const [topic] = of('AWS::SNS::Topic').filter(({ FifoTopic }) => FifoTopic === true);
  const archive = topic?.ArchivePolicy as { MessageRetentionPeriod?: number } | undefined;
  const acls = of('AWS::WAFv2::WebACL');
  return {
    memoryMb,
    queuesPolled: sources.length,
    pollBatchSize: Number(polls?.BatchSize ?? 1),
    pollBatchingSeconds: Number(polls?.MaximumBatchingWindowInSeconds ?? 0),
    alarmMetrics: of('AWS::CloudWatch::Alarm')
      .flatMap(
        ({ Metrics }) => (Metrics as { MetricStat?: MetricStat }[] | undefined) ?? [{ MetricStat: {} }],
      )
      .filter(({ MetricStat }) => MetricStat && MetricStat.Metric?.Namespace !== 'AWS/CloudFront').length,
    compositeAlarms: of('AWS::CloudWatch::CompositeAlarm').length,
    dashboards: of('AWS::CloudWatch::Dashboard').length,
    secrets: of('AWS::SecretsManager::Secret').length,
    kmsKeys: of('AWS::KMS::Key').length,
    webAcls: acls.length,
    webAclRules: acls.reduce((sum, { Rules }) => sum + ((Rules as unknown[] | undefined) ?? []).length, 0),
    archiveDays: Number(archive?.MessageRetentionPeriod ?? 0),
    logDays: Math.max(
      0,
      ...of('AWS::Logs::LogGroup').map(({ RetentionInDays }) => Number(RetentionInDays ?? 0)),
    ),
  };
}

/**
 * Returns the number of polls per invocation. An event source has at least five receivers, which messages reach evenly. After its first
 * message, each receiver collects further ones for the batching window. Messages that arrive together by chance are ignored.
 */
export function pollsPerInvocation(cell: CellTemplate, accounts: number): number {
  const perSecond = accounts / ASSUMED.pollSeconds / ASSUMED.receivers;
  return Math.min(cell.pollBatchSize, 1 + perSecond * cell.pollBatchingSeconds);
}

/**
 * Returns the share of polls for which one of the processes reads a secret from Secrets Manager. The age of a cached secret counts from
 * its read: until it expires, each of the polls that follow meets the same process with equal probability.
 */
export function secretMisses(processes: number): number {
  const cachedPolls = Math.floor((CREDENTIALS_MAX_AGE_MS / 1000 - 1) / ASSUMED.pollSeconds);
  return 1 / (1 + cachedPolls / processes);
}

/** Returns an account's share of the calls of KMS per month: at most one for each use, and one for each process and hour. */
function dataKeyCalls(uses: number, processes: number, accounts: number): number {
  return Math.min(uses, (processes * SECONDS) / (DATA_KEY_CACHE_MS / 1000) / accounts);
}

function slowdown(memoryMb: number): number {
  return Math.max(1, ASSUMED.memoryOfOneCpuMb / memoryMb);
}

/** Returns the measured wall time, with the CPU time scaled to the function's share of a CPU. */
function billedMs({ ms, cpuMs }: Work, memoryMb: number): number {
  return ms + cpuMs * (slowdown(memoryMb) - 1);
}

function line(what: string, how: string, uses: Uses): Line {
  return { what, how, uses, dollars: priceUses(uses, PRICES) };
}

function priceUses(uses: Uses, prices: Readonly<Record<PriceName, number>>): number {
  return Object.entries(uses).reduce((sum, [name, number]) => sum + number * prices[name as PriceName], 0);
}

function count(what: string, number: number, price: PriceName): Line {
  return line(what, `${number} × $${PRICES[price].toFixed(2)}`, { [price]: number });
}

function units(what: string, work: Pick<Work, 'readUnits' | 'writeUnits'>, times = 1): Line {
  const [reads, writes] = [work.readUnits * times, work.writeUnits * times];
  return line(
    `DynamoDB: ${what.charAt(0).toLowerCase()}${what.slice(1)}`,
    `${thousands(reads)} read units, ${thousands(writes)} write units`,
    { dynamoReadUnit: reads, dynamoWriteUnit: writes },
  );
}

function lambda(what: string, invocations: number, seconds: number, memoryMb: number): Line {
  const gbSeconds = (seconds * memoryMb) / 1024;
  const often =
    invocations > 0
      ? `${thousands(invocations)} × ${((1000 * seconds) / invocations).toFixed(0)} ms`
      : `${seconds.toFixed(0)} s`;
  return line(what, `${often}, ${memoryMb} MB`, { lambdaGbSecond: gbSeconds, lambdaRequest: invocations });
}

function logs(what: string, bytes: number, days: number): Line {
  return line(what, `${(bytes / 1e6).toFixed(0)} MB, kept ${days} days`, {
    logsIngestedGb: bytes / GB,
    logsStoredGbMonth: (bytes / GB) * (days / 30.4),
  });
}

function thousands(value: number): string {
  return Math.round(value).toLocaleString('en-US');
}

/** Returns the sum of lines in dollars, at the prices of an AWS region. */
export function total(lines: readonly Line[], region: keyof typeof REGION_PRICES = 'us-east-1'): number {
  const prices = { ...PRICES, ...REGION_PRICES[region] };
  return lines.reduce((sum, { uses }) => sum + priceUses(uses, prices), 0);
}

/** Assumptions of the costs of an account, as text. */
export const MARGINAL_NOTE = [
  `${ASSUMED.jobs} open jobs, polled every ${ASSUMED.pollSeconds} seconds; ${ASSUMED.eventsPerDay} events a day, each found by a separate poll, delivered to the topic and to one`,
  `endpoint. Latencies: ordering API ${ASSUMED.upstreamMs} ms, endpoint ${ASSUMED.webhookMs} ms, DynamoDB ${ASSUMED.dynamoMs} ms, SNS and SQS ${ASSUMED.snsAndSqsMs} ms. Quantities are those of a cell with one account,`,
  `where each wake-up and each drain is a cold start. Requests to the HTTP API are not included. The prices here and below are list prices of us-east-1 on ${PRICES_AS_OF}, without the free tier.`,
].join('\n');

/** Assumptions of the costs of messages, as text. */
export const MESSAGES_NOTE = [
  `Each e-mail is about a separate dispatch, to one recipient, with cold starts. Latency of SES: ${ASSUMED.sesMs} ms.`,
  'Each further recipient adds the cost of the SES row and about half of the row for creating and sending messages. SMS prices depend on country and segments.',
].join('\n');

/** Formats a Markdown table with a column of dollars for each alternative, and a note below. All alternatives must have the same lines. `sum`: name of the last row. */
export function toMarkdown(
  alternatives: Readonly<Record<string, readonly Line[]>>,
  note = '',
  sum: string | null = 'per month',
): string {
  const names = Object.keys(alternatives);
  const [first = []] = Object.values(alternatives);
  const dollars = (value: number): string => `$${value.toFixed(3)}`;
  const rows = first.map(({ what, how }, at) => {
    const each = Object.values(alternatives).map((lines) => dollars(lines[at]?.dollars ?? 0));
    return `| ${what} | ${how} | ${each.join(' | ')} |`;
  });
  const sums = Object.values(alternatives).map((lines) => `**${dollars(total(lines))}**`);
  return [
    `| item | quantity | ${names.join(' | ')} |`,
    `|---|---|${names.map(() => '--:|').join('')}`,
    ...rows,
    ...(sum === null ? [] : [`| **${sum}** | | ${sums.join(' | ')} |`]),
    ...(note === '' ? [] : ['', note]),
  ].join('\n');
}

/** Everything that is measured, and the template that it was measured with. */
export interface Measured {
  readonly work: MeasuredWork;
  readonly notifying: NotificationWork;
  readonly template: CellTemplate;
  readonly notificationTemplate: CellTemplate;
}

/** Maximum monthly costs ($). */
export const BARS = { one: 0.6, thousand: 0.45, fixed: 12, messages: 0.5, telling: 3 };

/** Returns the lines of all tables. */
export function calculateCosts({ work, notifying, template, notificationTemplate }: Measured) {
  return {
    one: marginalCosts(work, template, 1),
    thousand: marginalCosts(work, template, 1_000),
    fixed: fixedCosts(work, template),
    optional: optionalCosts(work, template, 1_000),
    messages: messageCosts(notifying, notificationTemplate),
    telling: notificationCosts(notifying, notificationTemplate, template),
  };
}

/** Returns the tables of docs/deploying.md as Markdown, by the name of their marker. */
export function toTables(measured: Measured): Readonly<Record<string, string>> {
  const { one, thousand, fixed, optional, messages, telling } = calculateCosts(measured);
  const marginal = {
    'cost per account, in a cell with 1 account': one,
    'cost per account, in a cell with 1,000 accounts': thousand,
  };
  const regions = Object.keys(REGION_PRICES) as (keyof typeof REGION_PRICES)[];
  return {
    marginal: toMarkdown(marginal, MARGINAL_NOTE),
    fixed: toMarkdown({ 'cost of a cell': fixed }),
    optional: toMarkdown({ cost: optional }, '', null),
    messages: toMarkdown({ 'cost of 1,000 e-mails': messages }, MESSAGES_NOTE, '1,000 e-mails'),
    telling: toMarkdown({ 'cost of a cell': telling }),
    regions: [
      '| AWS region | per account, in a cell with 1,000 accounts | cell |',
      '|---|--:|--:|',
      ...regions.map((region) => {
        const [account, cell] = [total(thousand, region), total(fixed, region)];
        return `| ${region} | $${account.toFixed(3)} | $${cell.toFixed(2)} |`;
      }),
    ].join('\n'),
  };
}

/**
 * Replaces the text between the lines `<!-- costs:name -->` and `<!-- /costs -->`. Throws if a marker is missing or the first is not
 * unique.
 */
export function replaceBetween(document: string, name: string, text: string): string {
  const open = `<!-- costs:${name} -->`;
  const close = '<!-- /costs -->';
  const lines = document.split('\n');
  const at = lines.flatMap((line, index) => (line.trim() === open ? [index] : []));
  const [from] = at;
  if (from === undefined || at.length > 1)
    throw new Error(`${open} ${at.length === 0 ? 'is missing' : 'is not unique'}.`);
  const to = lines.findIndex((line, index) => index > from && line.trim() === close);
  const next = lines.findIndex((line, index) => index > from && /^<!-- costs:/.test(line.trim()));
  if (to === -1 || (next !== -1 && next < to)) throw new Error(`${open} has no ${close}.`);
  return [...lines.slice(0, from + 1), '', text, '', ...lines.slice(to)].join('\n');
}
