/** The arithmetic of `npm run bench -- --cost`, and the limits of the costs with the committed measurements. */
import { readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import {
  ASSUMED,
  BARS,
  type CellTemplate,
  calculateCosts,
  fixedCosts,
  type Line,
  type Measured,
  type MeasuredWork,
  marginalCosts,
  messageCosts,
  type NotificationWork,
  notificationCosts,
  optionalCosts,
  pollsPerInvocation,
  readTemplate,
  replaceBetween,
  secretMisses,
  toMarkdown,
  toTables,
  total,
  type Work,
} from '../../bench/costs.ts';
import { PRICES, REGION_PRICES } from '../../bench/prices.ts';
import { readStages } from '../../infra/settings.ts';
import { EXAMPLE_SETTINGS, synthesize } from '../support/cells.ts';

const nothing: Work = { ms: 0, cpuMs: 0, logBytes: 0, readUnits: 0, writeUnits: 0, sends: 0, metrics: [] };
const idle: MeasuredWork = {
  idleTick: nothing,
  idleAlerts: nothing,
  claimingTick: nothing,
  claims: 50,
  quietPoll: nothing,
  tenQuietPolls: nothing,
  renewingPoll: nothing,
  sweepingPoll: nothing,
  changingPoll: nothing,
  wake: nothing,
  topicDrain: nothing,
  webhookDrain: nothing,
  startCpuMs: { wakeSinks: 0, drainSink: 0 },
  eventBytes: 0,
  snapshotBytes: 0,
  requestsPerPoll: 0,
  pageBytes: 0,
};
const cell: CellTemplate = {
  memoryMb: {
    tick: 512,
    alerts: 256,
    'poll-account': 1024,
    'wake-sinks': 256,
    'drain-sink': 512,
    notify: 512,
  },
  ...{ queuesPolled: 2, pollBatchSize: 10, pollBatchingSeconds: 1, alarmMetrics: 0, compositeAlarms: 0 },
  ...{ dashboards: 0, secrets: 0, kmsKeys: 0, webAcls: 0, webAclRules: 0, archiveDays: 0, logDays: 0 },
};
/** Polls per month at one every two minutes. */
const POLLS = 21_900;

test('a month of quiet polls costs their units, at the price of each', () => {
  const quietPoll = { ...nothing, readUnits: 8, writeUnits: 3 };
  // Additional polls are measured completely, so common parts must not be counted twice.
  const work = {
    ...idle,
    quietPoll,
    changingPoll: quietPoll,
    renewingPoll: quietPoll,
    sweepingPoll: quietPoll,
  };
  expect(getDollars(marginalCosts(work, cell, 1), 'DynamoDB: quiet polls')).toBeCloseTo(
    POLLS * (8 * PRICES.dynamoReadUnit + 3 * PRICES.dynamoWriteUnit),
  );
  expect(getDollars(marginalCosts(work, cell, 1), 'DynamoDB: changes, token')).toBe(0);
});

test('a function is billed for the CPU time of its share of a CPU, and for its waiting time', () => {
  const poll = { ...nothing, ms: 700, cpuMs: 100 };
  const work = { ...idle, quietPoll: poll, changingPoll: poll, renewingPoll: poll, sweepingPoll: poll };
  const seconds = (600 + (100 * ASSUMED.memoryOfOneCpuMb) / 1024) / 1000;
  expect(getDollars(marginalCosts(work, cell, 1), 'Lambda: pollAccount')).toBeCloseTo(
    POLLS * (seconds * PRICES.lambdaGbSecond + PRICES.lambdaRequest),
    2,
  );
});

test('polls share an invocation only as far as evenly spread messages meet within the batching window', () => {
  expect(pollsPerInvocation(cell, 1)).toBeCloseTo(1, 2);
  expect(pollsPerInvocation(cell, 1_000)).toBeCloseTo(1 + 1_000 / 120 / 5);
  expect(pollsPerInvocation(cell, 100_000)).toBe(10);
  expect(pollsPerInvocation({ ...cell, pollBatchingSeconds: 0 }, 10_000)).toBe(1);
});

test('an idle cell pays for its alarms, metrics, dashboards and empty queue reads', () => {
  const ticks = { ...nothing, metrics: ['a', 'b'] };
  const drains = { ...nothing, metrics: ['b', 'c'] };
  const watched = { ...cell, alarmMetrics: 12, dashboards: 1, secrets: 1 };
  const lines = fixedCosts({ ...idle, idleTick: ticks, topicDrain: drains }, watched);
  expect(getDollars(lines, 'Metrics, permanent')).toBeCloseTo(2 * 0.3);
  expect(getDollars(lines, 'Metrics, while')).toBeCloseTo(0.3);
  expect(getDollars(lines, 'Metrics evaluated')).toBeCloseTo(1.2);
  expect(getDollars(lines, 'Dashboards')).toBe(3);
  expect(getDollars(lines, 'Secrets')).toBe(0.4);
  // Two queues, five receivers each, three times a minute.
  expect(getDollars(lines, 'SQS')).toBeCloseTo(2 * 5 * 3 * 43_800 * PRICES.sqsRequest);
});

const notifying: NotificationWork = {
  ...{ wake: nothing, plainWake: nothing, drain: nothing, dueTick: nothing, notify: nothing },
  ...{ idleTick: nothing, plainIdleTick: nothing },
  ...{ startCpuMs: { notify: 0, drainSink: 0 }, messageBytes: 0 },
};

test('a thousand e-mails cost SES’s price, and their work excludes the account’s wake-ups', () => {
  const wake = { ...nothing, readUnits: 7, writeUnits: 12, sends: 1 };
  const plainWake = { ...wake, writeUnits: 9 };
  const drain = { ...nothing, readUnits: 9, writeUnits: 8 };
  const notify = { ...nothing, ms: 300, writeUnits: 37 };
  const lines = messageCosts({ ...notifying, wake, plainWake, drain, notify }, cell);
  expect(getDollars(lines, 'SES')).toBeCloseTo(0.1);
  expect(getDollars(lines, 'DynamoDB: adding')).toBeCloseTo(
    1000 * (9 * PRICES.dynamoReadUnit + (3 + 8) * PRICES.dynamoWriteUnit),
  );
  expect(getDollars(lines, 'DynamoDB: creating')).toBeCloseTo(37_000 * PRICES.dynamoWriteUnit);
  expect(getDollars(lines, 'Lambda: notify')).toBeCloseTo(300 * 0.5 * PRICES.lambdaGbSecond, 3);
});

test('a NAT gateway is billed for its hours, and for the data in both directions', () => {
  const work = { ...idle, requestsPerPoll: 5, pageBytes: 40_000 };
  const sweeps = 2_920;
  const gigabytes = (POLLS * 5 * (ASSUMED.requestBytes + 40_000) + sweeps * 40_000) / 1e9;
  expect(getDollars(optionalCosts(work, cell, 1_000), '`staticEgress`')).toBeCloseTo(
    730 * (PRICES.natGatewayHour + PRICES.publicAddressHour) + 1_000 * gigabytes * PRICES.natGatewayGb,
  );
});

test('notifications cost the difference to a cell without them', () => {
  const more = { ...cell, queuesPolled: 4, alarmMetrics: 12 };
  const work = {
    ...notifying,
    idleTick: { ...nothing, readUnits: 20, metrics: ['Ticks'] },
    plainIdleTick: { ...nothing, readUnits: 16, metrics: ['Ticks'] },
    dueTick: { ...nothing, metrics: ['Ticks', 'OldestUnsent'] },
    notify: { ...nothing, metrics: ['MessagesSent'] },
  };
  const lines = notificationCosts(work, more, cell);
  expect(getDollars(lines, 'SQS')).toBeCloseTo(2 * 5 * 3 * 43_800 * PRICES.sqsRequest);
  expect(getDollars(lines, 'DynamoDB: queries of ticks')).toBeCloseTo(4 * 43_800 * PRICES.dynamoReadUnit);
  expect(getDollars(lines, 'Metrics, while')).toBeCloseTo(0.6);
  expect(getDollars(lines, 'Metrics evaluated')).toBeCloseTo(1.2);
  expect(total(notificationCosts(notifying, cell, cell))).toBe(0);
});

test('fixed costs are counted from the template', () => {
  const queue = (batch: number, consumer: string) =>
    resource('AWS::Lambda::EventSourceMapping', {
      ...{ BatchSize: batch, MaximumBatchingWindowInSeconds: batch > 1 ? 2 : 0 },
      EventSourceArn: { 'Fn::GetAtt': ['PollingPollsQueue1', 'Arn'] },
      FunctionName: { Ref: consumer },
    });
  const template = {
    lone: queue(1, 'PollingPollAccount1'),
    polls: queue(10, 'PollingPollAccount1'),
    drains: queue(5, 'DeliveryDrainSink1'),
    stream: resource('AWS::Lambda::EventSourceMapping', {
      EventSourceArn: { 'Fn::GetAtt': ['StateTable1', 'StreamArn'] },
    }),
    simple: resource('AWS::CloudWatch::Alarm', { MetricName: 'x' }),
    ratio: resource('AWS::CloudWatch::Alarm', {
      Metrics: [{ Expression: 'a/b' }, { MetricStat: {} }, { MetricStat: {} }],
    }),
    // Not in every AWS region, and CloudFront is in none of the tables.
    edge: resource('AWS::CloudWatch::Alarm', {
      Metrics: [{ MetricStat: { Metric: { Namespace: 'AWS/CloudFront' } } }],
    }),
    topic: resource('AWS::SNS::Topic', { FifoTopic: true, ArchivePolicy: { MessageRetentionPeriod: 30 } }),
    acl: resource('AWS::WAFv2::WebACL', { Rules: [{}, {}] }),
    log: resource('AWS::Logs::LogGroup', { RetentionInDays: 90 }),
  };
  expect(readTemplate(template, cell.memoryMb)).toMatchObject({
    ...{ queuesPolled: 3, pollBatchSize: 10, pollBatchingSeconds: 2, alarmMetrics: 3, archiveDays: 30 },
    ...{ webAcls: 1, webAclRules: 2, logDays: 90, dashboards: 0, kmsKeys: 0 },
  });
});

test('a table has a column for each alternative, and a sum below it', () => {
  const lines = (dollars: number): Line[] => [
    { what: 'A', how: '2 × $1', uses: { kmsKeyMonth: dollars }, dollars },
    { what: 'B', how: '', uses: { kmsKeyMonth: 0.5 }, dollars: 0.5 },
  ];
  const table = toMarkdown({ one: lines(2), many: lines(1) });
  expect(table).toContain('| item | quantity | one | many |');
  expect(table).toContain('| A | 2 × $1 | $2.000 | $1.000 |');
  expect(table).toContain('| **per month** | | **$2.500** | **$1.500** |');
  expect(total(lines(2))).toBe(2.5);
});

const measured: Measured = JSON.parse(readFileSync('bench/measured-costs.json', 'utf8'));

test('with the measured work and the current template, costs stay below their limits, secrets included', () => {
  const read = (settings: Parameters<typeof synthesize>[1]) =>
    readTemplate(synthesize('prod', settings).template.toJSON().Resources, measured.template.memoryMb);
  const current = { template: read({ cell: { notifications: undefined } }), notificationTemplate: read({}) };
  for (const [name, { alarmMetrics }] of Object.entries(current))
    expect(measured[name as keyof typeof current].alarmMetrics, name).toBe(alarmMetrics);
  const costs = calculateCosts({ ...measured, ...current });
  for (const [name, most] of Object.entries(BARS)) {
    const lines = costs[name as keyof typeof BARS];
    expect(total(lines), name).toBeGreaterThan(0);
    expect(total(lines), name).toBeLessThanOrEqual(most);
  }
  expect(getDollars(costs.fixed, 'KMS keys')).toBe(1);
  expect(costs.fixed.filter(({ what }) => what === 'Secrets')).toEqual([]);
  expect(getDollars(costs.thousand, 'Secrets: KMS')).toBeLessThan(0.002);
});

test('the guide has the tables of the committed measurements', () => {
  const guide = readFileSync('docs/deploying.md', 'utf8');
  for (const [name, table] of Object.entries(toTables(measured)))
    expect(replaceBetween(guide, name, table), name).toBe(guide);
});

test('there are prices for every AWS region of the example, and logs cost a third more in Sydney', () => {
  const regions = readStages(EXAMPLE_SETTINGS).flatMap(({ cells }) =>
    Object.values(cells).map(({ awsRegion }) => awsRegion),
  );
  expect(Object.keys(REGION_PRICES)).toEqual(expect.arrayContaining(regions));
  const lines: Line[] = [
    { what: 'Logs', how: '', uses: { logsIngestedGb: 3, kmsKeyMonth: 1 }, dollars: 2.5 },
  ];
  expect(total(lines)).toBe(2.5);
  expect(total(lines, 'ap-southeast-2')).toBeCloseTo(3 * 0.67 + 1);
});

test('a cached secret ages from its read: with one process, one of 90 polls in three hours reads it', () => {
  expect(secretMisses(1)).toBeCloseTo(1 / 90);
  // Each of ten processes reads it, and each then serves a tenth of the following polls.
  expect(secretMisses(10)).toBeCloseTo(1 / (1 + 89 / 10));
  expect(secretMisses(1e9)).toBeCloseTo(1);
});

test('KMS is called at most once for each process and hour, and once for each cold start', () => {
  const [one] = marginalCosts(idle, cell, 1).filter(({ what }) => what.startsWith('Secrets: KMS'));
  expect(one?.uses.kmsCall).toBeCloseTo(730 + 150 * (2_628_000 / 86_400), 0);
  const [many] = marginalCosts(idle, cell, 1_000).filter(({ what }) => what.startsWith('Secrets: KMS'));
  expect(many?.uses.kmsCall).toBeCloseTo((2 * 730) / 1_000);
});

const DOCUMENT = `# Costs

<!-- costs:marginal -->
old
table
<!-- /costs -->
between
<!-- costs:fixed -->
<!-- /costs -->
end
`;

test('a table replaces exactly the text between its marks; repetition changes nothing', () => {
  const once = replaceBetween(DOCUMENT, 'marginal', '| new |');
  expect(once).toBe(DOCUMENT.replace('old\ntable\n', '\n| new |\n\n'));
  expect(replaceBetween(once, 'marginal', '| new |')).toBe(once);
  expect(replaceBetween(DOCUMENT, 'fixed', '$& $1')).toContain(
    'costs:fixed -->\n\n$& $1\n\n<!-- /costs -->\nend',
  );
});

test.each([
  ['is not there', '# Costs\n<!-- /costs -->\n'],
  ['is there twice', DOCUMENT.replace('costs:fixed', 'costs:marginal')],
  ['has no end', '<!-- costs:marginal -->\ntext\n'],
  ['has no end before the next one begins', DOCUMENT.replace('<!-- /costs -->', '')],
])('a document whose mark %s is unchanged', (_, document) => {
  expect(() => replaceBetween(document, 'marginal', 'new')).toThrow(/costs:marginal/);
});

function getDollars(lines: readonly Line[], what: string): number {
  const found = lines.filter((line) => line.what.startsWith(what));
  expect(found).toHaveLength(1);
  return found[0]?.dollars ?? Number.NaN;
}

function resource(Type: string, Properties: Record<string, unknown>) {
  return { Type, Properties };
}
