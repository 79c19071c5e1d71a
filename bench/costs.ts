/**
 * Monthly cost of a cell, computed from measured work, the template and the price table. Where the behaviour of AWS is unknown, the more
 * expensive of the likely cases is assumed.
 * One file: it is one calculation, with a row for each service.
 */
import { CREDENTIALS_MAX_AGE_MS } from '../functions/clients.ts';
import type { Resource } from './assets.ts';
import { PRICES, PRICES_AS_OF } from './prices.ts';

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
  /** Number of metrics that alarms evaluate. */
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
const TICKS = SECONDS / 60;
const POLLS = SECONDS / ASSUMED.pollSeconds;
const EVENTS = (ASSUMED.eventsPerDay * SECONDS) / 86_400;
const GB = 1e9;

/** One line of a cost table: name, quantity, and monthly cost. */
export interface Line {
  readonly what: string;
  readonly how: string;
  readonly dollars: number;
}

/** Returns the monthly cost of one account, without its secret, in a cell with `accounts` accounts. */
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
  const secretCalls = POLLS * secretMisses(accounts, batch, batchMs / 1000) + EVENTS;
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
    units('Claims', { readUnits: claim.readUnits * POLLS, writeUnits: claim.writeUnits * POLLS }),
    units('Quiet polls', {
      readUnits: quietPoll.readUnits * POLLS,
      writeUnits: quietPoll.writeUnits * POLLS,
    }),
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
    line('SQS', `${thousands(pollCalls + drainCalls)} calls`, (pollCalls + drainCalls) * PRICES.sqsRequest),
    line(
      'SNS',
      `${thousands(EVENTS)} events to the topic, one subscribed queue`,
      EVENTS * (PRICES.snsFifoPublish + PRICES.snsFifoDelivery) +
        eventGb * (PRICES.snsFifoPublishGb + PRICES.snsFifoDeliveryGb) +
        (cell.archiveDays > 0 ? eventGb * PRICES.snsArchiveGb : 0) +
        eventGb * (cell.archiveDays / 30.4) * PRICES.snsArchiveGbMonth,
    ),
    logs('Log lines', logBytes, cell.logDays),
    line('Secrets Manager: calls', `${thousands(secretCalls)} calls`, secretCalls * PRICES.secretCall),
    line(
      'Storage, with point-in-time recovery',
      `${(1000 * (storedGb + historyGb)).toFixed(0)} MB`,
      storedGb * (PRICES.dynamoStoredGbMonth + PRICES.dynamoRecoveryGbMonth) +
        historyGb * PRICES.dynamoStoredGbMonth,
    ),
    line(
      'Data sent to the internet',
      `${((POLLS * work.requestsPerPoll * ASSUMED.requestBytes) / 1e6 + 1000 * eventGb).toFixed(0)} MB`,
      ((POLLS * work.requestsPerPoll * ASSUMED.requestBytes) / GB + eventGb) * PRICES.outGb,
    ),
  ];
}

/** Returns the monthly cost of a cell without accounts. */
export function fixedCosts(work: MeasuredWork, cell: CellTemplate): Line[] {
  const { idleTick } = work;
  const receives = (cell.queuesPolled * ASSUMED.receivers * SECONDS) / ASSUMED.receiveSeconds;
  const always = new Set([...idleTick.metrics, ...work.quietPoll.metrics]);
  const active = new Set(
    [work.changingPoll, work.wake, work.topicDrain, work.webhookDrain]
      .flatMap(({ metrics }) => metrics)
      .filter((name) => !always.has(name)),
  );
  const memory = cell.memoryMb.tick ?? Number.NaN;
  return [
    lambda('Lambda: ticks', TICKS, (billedMs(idleTick, memory) * TICKS) / 1000, memory),
    units('Ticks', { readUnits: idleTick.readUnits * TICKS, writeUnits: idleTick.writeUnits * TICKS }),
    line('EventBridge Scheduler', `${thousands(TICKS)} ticks`, TICKS * PRICES.schedulerInvocation),
    logs('Log lines of ticks', (idleTick.logBytes + ASSUMED.platformLogBytes) * TICKS, cell.logDays),
    line(
      'SQS: polling of empty queues',
      `${cell.queuesPolled} queues, ${thousands(receives)} receives`,
      receives * PRICES.sqsRequest,
    ),
    count('Metrics, permanent', always.size, PRICES.metricMonth),
    count('Metrics, while events are emitted', active.size, PRICES.metricMonth),
    count('Metrics evaluated by alarms', cell.alarmMetrics, PRICES.alarmMetricMonth),
    count('Composite alarms', cell.compositeAlarms, PRICES.compositeAlarmMonth),
    count('Dashboards', cell.dashboards, PRICES.dashboardMonth),
    count('Secrets', cell.secrets, PRICES.secretMonth),
    count('KMS keys', cell.kmsKeys, PRICES.kmsKeyMonth),
    count('Web ACLs', cell.webAcls, PRICES.webAclMonth),
    count('Web ACL rules', cell.webAclRules, PRICES.webAclRuleMonth),
  ].filter(({ dollars }) => dollars > 0);
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
  const toUnits = (one: Pick<Work, 'readUnits' | 'writeUnits'>) => ({
    readUnits: MESSAGES * one.readUnits,
    writeUnits: MESSAGES * one.writeUnits,
  });
  return [
    line('SES', `${thousands(MESSAGES)} e-mails`, MESSAGES * PRICES.sesEmail),
    units('Adding dispatches to the notification state of orders', {
      readUnits: MESSAGES * (additional('readUnits') + drain.readUnits),
      writeUnits: MESSAGES * (additional('writeUnits') + drain.writeUnits),
    }),
    units('Creating and sending messages', toUnits(notify)),
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
    line('SQS', `${thousands(calls)} calls`, calls * PRICES.sqsRequest),
    logs('Log lines', logBytes, cell.logDays),
    line(
      'Storage of sent messages',
      `${ASSUMED.messageDays} days`,
      storedGbMonths * PRICES.dynamoStoredGbMonth,
    ),
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
    line(
      'SQS: polling of empty queues',
      `${queues} queues, ${thousands(receives)} receives`,
      receives * PRICES.sqsRequest,
    ),
    units('Queries of ticks for due messages', {
      readUnits: (idleTick.readUnits - plainIdleTick.readUnits) * TICKS,
      writeUnits: (idleTick.writeUnits - plainIdleTick.writeUnits) * TICKS,
    }),
    count('Metrics, while notifications are sent', metrics.size, PRICES.metricMonth),
    count('Metrics evaluated by alarms', cell.alarmMetrics - plain.alarmMetrics, PRICES.alarmMetricMonth),
  ];
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
      .map(({ Metrics }) => (Metrics as { MetricStat?: unknown }[] | undefined) ?? [{ MetricStat: {} }])
      .reduce((sum, metrics) => sum + metrics.filter(({ MetricStat }) => MetricStat !== undefined).length, 0),
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

/** Returns the share of polls in a process that has not cached the account's secret. */
function secretMisses(accounts: number, batch: number, batchSeconds: number): number {
  const processes = Math.max(1, Math.ceil((accounts / ASSUMED.pollSeconds / batch) * batchSeconds));
  const cachedPolls = Math.floor((CREDENTIALS_MAX_AGE_MS / 1000 - 1) / ASSUMED.pollSeconds);
  return Math.max(1 / (cachedPolls + 1), (1 - 1 / processes) ** cachedPolls);
}

function slowdown(memoryMb: number): number {
  return Math.max(1, ASSUMED.memoryOfOneCpuMb / memoryMb);
}

/** Returns the measured wall time, with the CPU time scaled to the function's share of a CPU. */
function billedMs({ ms, cpuMs }: Work, memoryMb: number): number {
  return ms + cpuMs * (slowdown(memoryMb) - 1);
}

function line(what: string, how: string, dollars: number): Line {
  return { what, how, dollars };
}

function count(what: string, number: number, price: number): Line {
  return line(what, `${number} × $${price.toFixed(2)}`, number * price);
}

function units(what: string, { readUnits, writeUnits }: Pick<Work, 'readUnits' | 'writeUnits'>): Line {
  return line(
    `DynamoDB: ${what.charAt(0).toLowerCase()}${what.slice(1)}`,
    `${thousands(readUnits)} read units, ${thousands(writeUnits)} write units`,
    readUnits * PRICES.dynamoReadUnit + writeUnits * PRICES.dynamoWriteUnit,
  );
}

function lambda(what: string, invocations: number, seconds: number, memoryMb: number): Line {
  const gbSeconds = (seconds * memoryMb) / 1024;
  const often =
    invocations > 0
      ? `${thousands(invocations)} × ${((1000 * seconds) / invocations).toFixed(0)} ms`
      : `${seconds.toFixed(0)} s`;
  return line(
    what,
    `${often}, ${memoryMb} MB`,
    gbSeconds * PRICES.lambdaGbSecond + invocations * PRICES.lambdaRequest,
  );
}

function logs(what: string, bytes: number, days: number): Line {
  const stored = (days / 30.4) * PRICES.logsStoredGbMonth;
  return line(
    what,
    `${(bytes / 1e6).toFixed(0)} MB, kept ${days} days`,
    (bytes / GB) * (PRICES.logsIngestedGb + stored),
  );
}

function thousands(value: number): string {
  return Math.round(value).toLocaleString('en-US');
}

/** Returns the sum of lines in dollars. */
export function total(lines: readonly Line[]): number {
  return lines.reduce((sum, { dollars }) => sum + dollars, 0);
}

/** Assumptions of the costs of an account, as text. */
export const MARGINAL_NOTE = [
  `${ASSUMED.jobs} open jobs, polled every ${ASSUMED.pollSeconds} seconds; ${ASSUMED.eventsPerDay} events a day, each found by a separate poll, delivered to the topic and to one`,
  `endpoint. Latencies: ordering API ${ASSUMED.upstreamMs} ms, endpoint ${ASSUMED.webhookMs} ms, DynamoDB ${ASSUMED.dynamoMs} ms, SNS and SQS ${ASSUMED.snsAndSqsMs} ms. Quantities are those of a cell with one account,`,
  'where each wake-up and each drain is a cold start. Requests to the HTTP API are not included.',
].join('\n');

/** Assumptions of the costs of messages, as text. */
export const MESSAGES_NOTE = [
  'Each e-mail is about a separate dispatch, to one recipient. Orders of several jobs result in fewer e-mails. Each drain and each run of notify is a cold start.',
  `Latency of SES: ${ASSUMED.sesMs} ms. Further recipients of the same dispatch cost the SES line and about half of creating and sending. SMS prices depend on country and segments.`,
].join('\n');

/** Formats a Markdown table with a column of dollars for each alternative, and a note below. All alternatives must have the same lines. */
export function toMarkdown(
  alternatives: Readonly<Record<string, readonly Line[]>>,
  note = '',
  sum = 'per month',
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
    `| **${sum}** | | ${sums.join(' | ')} |`,
    '',
    ...(note === '' ? [] : [note]),
    `List prices of us-east-1 on ${PRICES_AS_OF}, without the free tier.`,
  ].join('\n');
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
