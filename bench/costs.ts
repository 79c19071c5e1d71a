/**
 * What a cell costs a month: pure arithmetic over what was measured, what the template says and the price table. Where it
 * is not known how AWS will behave, the dearer of what is likely is taken, and said here.
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
  /** Calls of SQS that send. */
  readonly sends: number;
  /** Names of the metrics it gave, with their dimensions. */
  readonly metrics: readonly string[];
}

/** All that is measured. */
export interface MeasuredWork {
  readonly idleTick: Work;
  /** A tick that claims so many accounts. */
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
  /** From the start of the process until the function can be invoked. */
  readonly startCpuMs: { readonly wakeSinks: number; readonly drainSink: number };
  readonly eventBytes: number;
  readonly snapshotBytes: number;
  readonly requestsPerPoll: number;
}

/** What telling customers takes: of one dispatch that is one e-mail. */
export interface TellingWork {
  /** A wake-up of an account that tells its customers, and one that does not. */
  readonly wake: Work;
  readonly plainWake: Work;
  /** Folds the event. */
  readonly drain: Work;
  /** Finds that something is due, and asks for it. */
  readonly asking: Work;
  /** With nothing to tell, in a cell that tells customers, and in one that does not. */
  readonly idleTick: Work;
  readonly plainIdleTick: Work;
  /** Closes the notice, makes the message, sends it. */
  readonly notify: Work;
  readonly startCpuMs: { readonly notify: number; readonly drainSink: number };
  /** Of a message in the history. */
  readonly messageBytes: number;
}

/** What of a template costs anything by itself, and what invocations cost by. */
export interface CellTemplate {
  /** By entry file. */
  readonly memoryMb: Readonly<Record<string, number>>;
  readonly queuesPolled: number;
  readonly pollBatchSize: number;
  readonly pollBatchingSeconds: number;
  /** Metrics that alarms look at. */
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

/** What is taken for granted. */
export const ASSUMED = {
  jobs: 500,
  pollSeconds: 120,
  eventsPerDay: 150,
  /** Median time to answer. */
  upstreamMs: 300,
  dynamoMs: 5,
  snsAndSqsMs: 15,
  webhookMs: 100,
  sesMs: 100,
  messageDays: 180,
  /** The memory that comes with a whole CPU; below it, work takes as much longer as there is less. */
  memoryOfOneCpuMb: 1769,
  /** Lines of Lambda itself around each invocation (START, END, REPORT), and CloudWatch's own 26 bytes a line. */
  platformLogBytes: 500,
  /** Receivers of an event source side by side, each waiting up to 20 s for messages of an empty queue. */
  receivers: 5,
  receiveSeconds: 20,
  /** Tokens last 10 minutes, less the last; the newest closed jobs are read every 15. */
  renewEverySeconds: 540,
  sweepEverySeconds: 900,
  /** Of a request to the ordering service, with its token. */
  requestBytes: 1_500,
  eventDays: 90,
  snapshotDays: 180,
  /** Jobs that leave the list, a day; their snapshots stay. */
  jobsGoneADay: 15,
  historyDays: 30,
  historyBytes: 700,
  /** What DynamoDB adds to each item and to its place in each index. */
  itemOverheadBytes: 500,
} as const;

const SECONDS = 2_628_000;
const TICKS = SECONDS / 60;
const POLLS = SECONDS / ASSUMED.pollSeconds;
const EVENTS = (ASSUMED.eventsPerDay * SECONDS) / 86_400;
const GB = 1e9;

/** One line of a table: what, how much of it, and what that costs a month. */
export interface Line {
  readonly what: string;
  readonly how: string;
  readonly dollars: number;
}

/** What one account costs a month, without its secret, in a cell with so many. */
export function marginalCosts(work: MeasuredWork, cell: CellTemplate, accounts: number): Line[] {
  const { quietPoll, changingPoll, wake, topicDrain, webhookDrain } = work;
  const batch = pollsTogether(cell, accounts);
  const memory = (entry: string): number => cell.memoryMb[entry] ?? Number.NaN;
  const claim = {
    readUnits: (work.claimingTick.readUnits - work.idleTick.readUnits) / work.claims,
    writeUnits: (work.claimingTick.writeUnits - work.idleTick.writeUnits) / work.claims,
    seconds:
      (billedMs(work.claimingTick, memory('tick')) - billedMs(work.idleTick, memory('tick'))) /
      work.claims /
      1000,
  };
  // What polls now and then do besides, and how often.
  const besides = [
    { poll: changingPoll, times: EVENTS },
    { poll: work.renewingPoll, times: SECONDS / ASSUMED.renewEverySeconds },
    { poll: work.sweepingPoll, times: SECONDS / ASSUMED.sweepEverySeconds },
  ];
  const extra = (of: 'readUnits' | 'writeUnits' | 'logBytes'): number =>
    besides.reduce((sum, { poll, times }) => sum + (poll[of] - quietPoll[of]) * times, 0);

  const one = billedMs(quietPoll, memory('poll-account'));
  const ten = billedMs(work.tenQuietPolls, memory('poll-account'));
  const batchMs = one + ((ten - one) * (batch - 1)) / 9;
  // That is not shared: the others of the batch are through long before.
  const extraMs = besides.reduce(
    (sum, { poll, times }) => sum + Math.max(0, billedMs(poll, memory('poll-account')) - one) * times,
    0,
  );
  const pollSeconds = ((batchMs / batch) * POLLS + extraMs) / 1000;
  const pollInvocations = POLLS / batch;

  // With one account minutes lie between events, and each may find its functions gone; with many they are kept warm.
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

  // A batch of claims is sent as one; a batch of polls is received as one, and deleted as one.
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
    ((ASSUMED.jobs + ASSUMED.jobsGoneADay * ASSUMED.snapshotDays) *
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
    units('Changes, new tokens, closed jobs', {
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
    lambda('Lambda: its part of ticks', 0, claim.seconds * POLLS, memory('tick')),
    line('SQS', `${thousands(pollCalls + drainCalls)} calls`, (pollCalls + drainCalls) * PRICES.sqsRequest),
    line(
      'SNS',
      `${thousands(EVENTS)} events to the topic, one queue behind it`,
      EVENTS * (PRICES.snsFifoPublish + PRICES.snsFifoDelivery) +
        eventGb * (PRICES.snsFifoPublishGb + PRICES.snsFifoDeliveryGb) +
        (cell.archiveDays > 0 ? eventGb * PRICES.snsArchiveGb : 0) +
        eventGb * (cell.archiveDays / 30.4) * PRICES.snsArchiveGbMonth,
    ),
    logs('Log lines', logBytes, cell.logDays),
    line('Secrets Manager: calls', `${thousands(secretCalls)} calls`, secretCalls * PRICES.secretCall),
    line(
      'Storage, with recovery to a point in time',
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

/** What a cell costs a month without any account. */
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
      'SQS: waiting for messages',
      `${cell.queuesPolled} queues, ${thousands(receives)} receives`,
      receives * PRICES.sqsRequest,
    ),
    count('Metrics, always there', always.size, PRICES.metricMonth),
    count('Metrics, while events come', active.size, PRICES.metricMonth),
    count('Metrics watched by alarms', cell.alarmMetrics, PRICES.alarmMetricMonth),
    count('Composite alarms', cell.compositeAlarms, PRICES.compositeAlarmMonth),
    count('Dashboards', cell.dashboards, PRICES.dashboardMonth),
    count('Secrets', cell.secrets, PRICES.secretMonth),
    count('KMS keys', cell.kmsKeys, PRICES.kmsKeyMonth),
    count('Web ACLs', cell.webAcls, PRICES.webAclMonth),
    count('Rules of web ACLs', cell.webAclRules, PRICES.webAclRuleMonth),
  ].filter(({ dollars }) => dollars > 0);
}

/** What 1,000 e-mails cost, each of a dispatch of its own to one recipient, and each found by functions that have to start. */
export function messageCosts(work: TellingWork, cell: CellTemplate): Line[] {
  const MESSAGES = 1_000;
  const { wake, plainWake, drain, notify } = work;
  const memory = (entry: string): number => cell.memoryMb[entry] ?? Number.NaN;
  const more = (of: 'readUnits' | 'writeUnits' | 'logBytes'): number => Math.max(0, wake[of] - plainWake[of]);
  const seconds = (one: Work, startCpuMs: number, memoryMb: number): number =>
    (MESSAGES * (billedMs(one, memoryMb) + startCpuMs * slowdown(memoryMb))) / 1000;
  // Each of the two messages is received and deleted; that for the drain is among those of the wake-up.
  const calls = MESSAGES * (Math.max(0, wake.sends - plainWake.sends) + 1 + 2 * 2);
  const logBytes =
    MESSAGES * (more('logBytes') + drain.logBytes + notify.logBytes + 2 * ASSUMED.platformLogBytes);
  const storedGbMonths =
    ((MESSAGES * (work.messageBytes + 3 * ASSUMED.itemOverheadBytes)) / GB) * (ASSUMED.messageDays / 30.4);
  const unitsOf = (one: Pick<Work, 'readUnits' | 'writeUnits'>) => ({
    readUnits: MESSAGES * one.readUnits,
    writeUnits: MESSAGES * one.writeUnits,
  });
  return [
    line('SES', `${thousands(MESSAGES)} e-mails`, MESSAGES * PRICES.sesEmail),
    units('Folding the dispatches', {
      readUnits: MESSAGES * (more('readUnits') + drain.readUnits),
      writeUnits: MESSAGES * (more('writeUnits') + drain.writeUnits),
    }),
    units('Making and sending messages', unitsOf(notify)),
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
      'Storage of what was told',
      `${ASSUMED.messageDays} days`,
      storedGbMonths * PRICES.dynamoStoredGbMonth,
    ),
  ];
}

/** What a cell that tells customers costs a month besides, also while there is nothing to tell. */
export function tellingCosts(work: TellingWork, cell: CellTemplate, plain: CellTemplate): Line[] {
  const queues = cell.queuesPolled - plain.queuesPolled;
  const receives = (queues * ASSUMED.receivers * SECONDS) / ASSUMED.receiveSeconds;
  const { idleTick, plainIdleTick } = work;
  const metrics = new Set(
    [work.asking, work.notify]
      .flatMap((one) => one.metrics)
      .filter((name) => !plainIdleTick.metrics.includes(name)),
  );
  return [
    line(
      'SQS: waiting for messages',
      `${queues} queues, ${thousands(receives)} receives`,
      receives * PRICES.sqsRequest,
    ),
    units('Ticks look for what is due', {
      readUnits: (idleTick.readUnits - plainIdleTick.readUnits) * TICKS,
      writeUnits: (idleTick.writeUnits - plainIdleTick.writeUnits) * TICKS,
    }),
    count('Metrics, while customers are told', metrics.size, PRICES.metricMonth),
    count('Metrics watched by alarms', cell.alarmMetrics - plain.alarmMetrics, PRICES.alarmMetricMonth),
  ];
}

/** Reads what costs anything from a synthesized cell. `memoryMb` is by entry file. */
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
  // Suspects have a queue of their own, which is a batch of one.
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
 * How many polls one invocation gets. An event source has at least five receivers, among which messages that are spread
 * over time fall evenly; each waits for more from its first message on, for as long as the batching window. What comes
 * together by chance is left out.
 */
export function pollsTogether(cell: CellTemplate, accounts: number): number {
  const perSecond = accounts / ASSUMED.pollSeconds / ASSUMED.receivers;
  return Math.min(cell.pollBatchSize, 1 + perSecond * cell.pollBatchingSeconds);
}

/** The part of polls whose process has not read the account's secret lately: it had the last ones only by chance. */
function secretMisses(accounts: number, batch: number, batchSeconds: number): number {
  const processes = Math.max(1, Math.ceil((accounts / ASSUMED.pollSeconds / batch) * batchSeconds));
  const lately = Math.floor((CREDENTIALS_MAX_AGE_MS / 1000 - 1) / ASSUMED.pollSeconds);
  return Math.max(1 / (lately + 1), (1 - 1 / processes) ** lately);
}

function slowdown(memoryMb: number): number {
  return Math.max(1, ASSUMED.memoryOfOneCpuMb / memoryMb);
}

/** Wall time as measured, with the CPU time of a function's share of a CPU in place of that of a whole one. */
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

/** The sum of lines, in dollars. */
export function total(lines: readonly Line[]): number {
  return lines.reduce((sum, { dollars }) => sum + dollars, 0);
}

/** What the costs of an account go by, in words. */
export const MARGINAL_NOTE = [
  `${ASSUMED.jobs} open jobs, polled every ${ASSUMED.pollSeconds} seconds; ${ASSUMED.eventsPerDay} events a day, each found by a poll of its own, to the topic and to one`,
  `endpoint. The service answers in ${ASSUMED.upstreamMs} ms, the endpoint in ${ASSUMED.webhookMs}, DynamoDB in ${ASSUMED.dynamoMs}, SNS and SQS in ${ASSUMED.snsAndSqsMs}. How much is that of a cell with one account,`,
  'where every wake-up and every drain is taken to be a cold start. Requests to the HTTP API are not in it.',
].join('\n');

/** What the costs of messages go by, in words. */
export const MESSAGES_NOTE = [
  'Each of a dispatch of its own, to one recipient; of an order of several jobs there are fewer. Every drain and every run of notify is taken to be a cold start.',
  `SES answers in ${ASSUMED.sesMs} ms. Further recipients of the same dispatch cost SES’s part, and about half of making and sending. SMS cost by country and segment.`,
].join('\n');

/** Tables as Markdown: one column of dollars for each of the alternatives, whose lines are the same, and a note below. */
export function toMarkdown(
  alternatives: Readonly<Record<string, readonly Line[]>>,
  note = '',
  sum = 'a month',
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
    `| what | how much | ${names.join(' | ')} |`,
    `|---|---|${names.map(() => '--:|').join('')}`,
    ...rows,
    `| **${sum}** | | ${sums.join(' | ')} |`,
    '',
    ...(note === '' ? [] : [note]),
    `List prices of us-east-1 on ${PRICES_AS_OF}, without the free tier.`,
  ].join('\n');
}

/**
 * Puts text between `<!-- costs:name -->` and the `<!-- /costs -->` behind it, each on a line of its own, in place of what
 * is there. Throws when the marks are missing, or one is there twice.
 */
export function replaceBetween(document: string, name: string, text: string): string {
  const open = `<!-- costs:${name} -->`;
  const close = '<!-- /costs -->';
  const lines = document.split('\n');
  const at = lines.flatMap((line, index) => (line.trim() === open ? [index] : []));
  const [from] = at;
  if (from === undefined || at.length > 1)
    throw new Error(`There is ${at.length === 0 ? 'no' : 'more than one'} ${open}.`);
  const to = lines.findIndex((line, index) => index > from && line.trim() === close);
  const next = lines.findIndex((line, index) => index > from && /^<!-- costs:/.test(line.trim()));
  if (to === -1 || (next !== -1 && next < to)) throw new Error(`${open} has no ${close}.`);
  return [...lines.slice(0, from + 1), '', text, '', ...lines.slice(to)].join('\n');
}
