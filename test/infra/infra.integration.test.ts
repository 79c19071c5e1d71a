/**
 * The templates of the CDK app, synthesized once, as by `npm run synth`.
 * One file: its tests share the app, which is synthesized once.
 */
import { hash, randomUUID } from 'node:crypto';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type App, type Stack, Validations } from 'aws-cdk-lib';
import { Template } from 'aws-cdk-lib/assertions';
import type { SQSRecord } from 'aws-lambda';
import { AwsSolutionsChecks } from 'cdk-nag';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type * as z from 'zod';
import cdkJson from '../../cdk.json' with { type: 'json' };
import {
  AlertsEnv,
  ApiEnv,
  DrainSinkEnv,
  LiveEnv,
  MailFeedbackEnv,
  ManageEnv,
  NotifyEnv,
  OperateEnv,
  PollAccountEnv,
  PublishDashboardEnv,
  readEnv,
  TickEnv,
  WakeSinksEnv,
} from '../../functions/env.ts';
import { createAlertsHandler } from '../../functions/handlers/alerts.ts';
import { createDrainSinkHandler } from '../../functions/handlers/drain-sink.ts';
import { CLAIM_SECONDS } from '../../functions/handlers/messages.ts';
import { PASS_HEADER, VIEWER_HEADER } from '../../functions/handlers/rest-proxy.ts';
import {
  createTickHandler,
  LOOK_AHEAD_SECONDS,
  type TickDeps,
  TOPIC_SINK,
} from '../../functions/handlers/tick.ts';
import { createWakeSinksHandler } from '../../functions/handlers/wake-sinks.ts';
import { CellStack } from '../../infra/cell-stack.ts';
import { createApp } from '../../infra/create-app.ts';
import type { StageSettings } from '../../infra/settings.ts';
import { DRAINS } from '../../infra/throughput.ts';
import { readApiFile } from '../../local/api-files.ts';
import { registerAccount } from '../../shared/accounts/accounts.ts';
import { tableTokenCache } from '../../shared/accounts/connect.ts';
import { createAccountSecrets } from '../../shared/accounts/credentials.ts';
import { createAccount } from '../../shared/accounts/managed-accounts.ts';
import type { AlertSummary } from '../../shared/alerts/evaluate.ts';
import { conditions } from '../../shared/alerts/rule-input.ts';
import { createAlertRule } from '../../shared/alerts/rules.ts';
import { createApi } from '../../shared/api/app.ts';
import { createIdempotency, DEADLINE_MS } from '../../shared/api/idempotency.ts';
import { createKey, createKeyring, type Keyring, OPERATOR } from '../../shared/api/keys.ts';
import { PROBLEM_TYPE, type ProblemKind, problems } from '../../shared/api/problems.ts';
import { createRequestLimit } from '../../shared/api/request-limit.ts';
import { routes } from '../../shared/api/routes/all.ts';
import { SignInSettings } from '../../shared/api/sign-in-input.ts';
import { createSlots, SLOT_GRACE_MS } from '../../shared/api/waiting-limit.ts';
import { createDeliveryLog, readDeliveryHealth } from '../../shared/delivery/delivery-log.ts';
import type { DrainReport } from '../../shared/delivery/drain-deps.ts';
import { createEndpoint } from '../../shared/delivery/endpoints.ts';
import { enableHealth, healthAttributes } from '../../shared/delivery/health.ts';
import { createConnectionPool } from '../../shared/delivery/outbound.ts';
import { listDeadPage } from '../../shared/delivery/parked-events.ts';
import { redeliver } from '../../shared/delivery/redelivery.ts';
import { createSigningSecrets } from '../../shared/delivery/signing-secrets.ts';
import { type DeliveryOutcome, registerSink } from '../../shared/delivery/sink.ts';
import { wakeSinks as wakeSinksOf } from '../../shared/delivery/wakes.ts';
import { forwardLogs, startFeed } from '../../shared/log/feed-forwarding.ts';
import { newEpoch } from '../../shared/log/head.ts';
import { createEventLog, type EventLog } from '../../shared/log/log.ts';
import {
  type AccountRef,
  API_KEY_PK,
  API_KEY_USE_PK,
  accountPk,
  cellLog,
  deliveryPk,
  FEED_LOG,
  feedLog,
  getDrainName,
  historySchema,
  keys,
  sinkPk,
  stateSchema,
  type TableSchema,
} from '../../shared/storage/schema.ts';
import { createMemoryTable } from '../../shared/storage/sqlite-table.ts';
import type { Item, Table, Value, Write } from '../../shared/storage/table.ts';
import { readBreakerState } from '../../shared/tracking/breaker.ts';
import { pollAccount } from '../../shared/tracking/poll.ts';
import { apiParts } from '../support/api.ts';
import { EXAMPLE_SETTINGS, type Statement, stages, synthesize } from '../support/cells.ts';
import { makeDashboardFolder } from '../support/dashboard-files.ts';
import { createDeliveryRig, delivered, moved, newSecret } from '../support/delivery-world.ts';
import { type Grant, grantsOn, guarded as guardedBy, leadingKeys, like } from '../support/grants.ts';
import { FakeKms, sealWithKms } from '../support/kms.ts';
import { createOperator, SECRET } from '../support/operator.ts';
import { createRig } from '../support/tracker.ts';

const DAY_MS = 86_400_000;

/** A resource of a template, with the fields used here. */
interface Resource {
  readonly Type: string;
  readonly Properties: Properties;
  readonly DeletionPolicy?: string;
}
interface Properties {
  readonly [name: string]: unknown;
}
const FUNCTIONS = {
  tick: { id: /^PollingTick[0-9A-F]{8}$/, env: TickEnv },
  pollAccount: { id: /^PollingPollAccount[0-9A-F]{8}$/, env: PollAccountEnv },
  wakeSinks: { id: /^DeliveryWakeSinks[0-9A-F]{8}$/, env: WakeSinksEnv },
  drainSink: { id: /^DeliveryDrainSink[0-9A-F]{8}$/, env: DrainSinkEnv },
  alerts: { id: /^AlertsFunction[0-9A-F]{8}$/, env: AlertsEnv },
  notify: { id: /^NotificationsNotify[0-9A-F]{8}$/, env: NotifyEnv },
  mailFeedback: {
    id: /^NotificationsMailFeedback[0-9A-F]{8}$/,
    env: MailFeedbackEnv,
  },
  api: { id: /^ApiFunction[0-9A-F]{8}$/, env: ApiEnv },
  manage: { id: /^ApiManage[0-9A-F]{8}$/, env: ManageEnv },
  live: { id: /^ApiLive[0-9A-F]{8}$/, env: LiveEnv },
  operate: { id: /^OperateFunction[0-9A-F]{8}$/, env: OperateEnv },
  publishDashboard: {
    id: /^DashboardPublish[0-9A-F]{8}$/,
    env: PublishDashboardEnv,
  },
} as const;
type FunctionName = keyof typeof FUNCTIONS;
const FUNCTION_NAMES = Object.keys(FUNCTIONS) as FunctionName[];
/** Only cells with notifications have them; the one of `us` in production does. */
const TELLING: readonly FunctionName[] = ['notify', 'mailFeedback'];
const getFunctions = (stackName: string) =>
  FUNCTION_NAMES.filter((name) => stackName === 'jobwire-prod-us' || !TELLING.includes(name));

/** The topics that events go to, by logical id. */
const EVENTS = /^Delivery/;
/** The two tables, by logical id. */
const STATE = /^State/;
const HISTORY = /^History/;

/** Settings that several tests use: one synthesis each. */
const MAIL_ONLY = {
  stage: { topicArchiveDays: 1 },
  cell: { notifications: { from: 'orders@print.example', identity: 'print.example' } },
};
const OTHER_API = {
  stage: {
    topicArchiveDays: 365,
    signIn: {
      issuer: 'https://cognito-idp.us-east-1.amazonaws.com/us-east-1_Ab12Cd34E',
      clientId: 'jobwire',
      scopes: ['openid', 'email'],
      groupsClaim: 'cognito:groups',
      groups: { desk: { role: 'operate' as const, accounts: ['acme'] } },
    },
    api: {
      ...prodApi(),
      waf: true,
      corsOrigins: ['https://tools.example.com', 'http://localhost:5173'],
    },
  },
};

let outdir: string;
let app: App;
const templates = new Map<string, Template>();

beforeAll(() => {
  outdir = mkdtempSync(join(tmpdir(), 'jobwire-cdk-'));
  // The functions are bundled where a test needs them.
  const context = { ...cdkJson.context, 'aws:cdk:bundling-stacks': [], cells: writeEstablished(outdir) };
  app = createApp({ context, outdir, dashboard: makeDashboardFolder() });
  for (const stack of stacks()) templates.set(stack.stackName, Template.fromStack(stack));
}, 120_000);
afterAll(() => rmSync(outdir, { recursive: true, force: true }));

/** Lambda's limit of concurrent invocations in a new AWS account. */
const FIRST_LAMBDA_LIMIT = 10;

/** Writes the example settings with all cells of production established. Returns the path. */
function writeEstablished(folder: string): string {
  const settings = JSON.parse(readFileSync(EXAMPLE_SETTINGS, 'utf8'));
  for (const { stage, cells } of settings.stages)
    if (stage === 'prod')
      for (const cell of Object.values<Properties>(cells)) Object.assign(cell, { established: true });
  const path = join(folder, 'cells.json');
  writeFileSync(path, JSON.stringify(settings));
  return path;
}

describe('cells', () => {
  test('production has a cell for each API region, in the AWS region that its data belongs to', () => {
    const cells = stacks().filter(({ stackName }) => stackName.startsWith('jobwire-prod-'));
    expect(Object.fromEntries(cells.map(({ stackName, region }) => [stackName, region]))).toEqual({
      'jobwire-prod-us': 'us-east-1',
      'jobwire-prod-nz': 'ap-southeast-2',
      'jobwire-prod-au': 'ap-southeast-2',
      'jobwire-prod-uk': 'eu-west-2',
      'jobwire-prod-eu': 'eu-central-1',
    });
  });

  test('cells share nothing: no stack references another', () => {
    for (const stack of stacks()) expect(stack.dependencies).toEqual([]);
    for (const template of templates.values()) {
      expect(JSON.stringify(template.toJSON())).not.toContain('Fn::ImportValue');
    }
  });

  test('taggable resources have project, stage and cell', () => {
    const [, table] = one('AWS::Lambda::Function', FUNCTIONS.tick.id, 'jobwire-prod-uk');
    expect(table.Properties.Tags).toEqual([
      { Key: 'cell', Value: 'uk' },
      { Key: 'project', Value: 'jobwire' },
      { Key: 'stage', Value: 'prod' },
    ]);
  });
});

describe('state table', () => {
  test('keys, indexes, TTL and stream are those of the schema', () => {
    const { Properties: table } = one('AWS::DynamoDB::GlobalTable', STATE)[1];
    expectSchema(table, stateSchema);
    expect(table.StreamSpecification).toEqual({ StreamViewType: 'NEW_IMAGE' });
  });

  test('has point-in-time recovery, and outlives its stack; in production it has deletion protection', () => {
    for (const [name, protectedAgainstDeletion] of [
      ['jobwire-prod-us', true],
      ['jobwire-dev-us', false],
    ] as const) {
      const [, table] = one('AWS::DynamoDB::GlobalTable', STATE, name);
      expect(table.DeletionPolicy).toBe('RetainExceptOnCreate');
      expect(table.Properties.Replicas).toMatchObject([
        {
          PointInTimeRecoverySpecification: { PointInTimeRecoveryEnabled: true },
          DeletionProtectionEnabled: protectedAgainstDeletion,
        },
      ]);
    }
  });
});

describe('history table', () => {
  test('keys, indexes and TTL are those of the schema; it has neither stream nor backup', () => {
    const { Properties: table } = one('AWS::DynamoDB::GlobalTable', HISTORY)[1];
    expectSchema(table, historySchema);
    expect(table).not.toHaveProperty('StreamSpecification');
    expect(JSON.stringify(table)).not.toContain('"PointInTimeRecoveryEnabled":true');
  });
});

describe('stream filter', () => {
  test('of all writes of polls and deletions of sinks, only the put of a wake mark invokes wakeSinks', async () => {
    const { Properties: mapping } = one('AWS::Lambda::EventSourceMapping', /^DeliveryWakeSinks/)[1];
    const { Filters } = mapping.FilterCriteria as { Filters: { Pattern: string }[] };
    const patterns = Filters.map(({ Pattern }) => JSON.parse(Pattern) as Pattern);
    const invokes = (record: object) => patterns.some((pattern) => matches(pattern, record));

    const written = await writesOfACommit();
    const wake = written.filter(({ pk }) => pk.startsWith('WAKE#'));
    expect(wake).toHaveLength(1);
    expect(written.length).toBeGreaterThan(6);
    for (const item of written) {
      expect(invokes(putRecord(item)), item.pk).toBe(wake.includes(item));
      expect(invokes(deleteRecord(item)), item.pk).toBe(false);
    }
    // An existing mark is put again when the log grows.
    for (const item of wake) expect(invokes({ ...putRecord(item), eventName: 'MODIFY' })).toBe(true);
  });

  test('failures are retried a few times, bisected, and stored; each failed record is reported', () => {
    const { Properties: mapping } = one('AWS::Lambda::EventSourceMapping', /^DeliveryWakeSinks/)[1];
    expect(mapping).toMatchObject({
      MaximumRetryAttempts: 3,
      BisectBatchOnFunctionError: true,
      FunctionResponseTypes: ['ReportBatchItemFailures'],
      DestinationConfig: { OnFailure: { Destination: expect.anything() } },
    });
  });
});

describe('queues', () => {
  test.each([
    ['PollingPolls', 'PollingPollAccount'],
    ['PollingLonePolls', 'PollingPollAccount'],
    ['DeliveryDrains', 'DeliveryDrainSink'],
    ['NotificationsMessages', 'NotificationsNotify'],
    ['NotificationsFeedback', 'NotificationsMailFeedback'],
  ])(
    '%s: a message stays hidden during its processing, and failures end in a queue with an alarm',
    (queueId, functionId) => {
      const [id, queue] = one('AWS::SQS::Queue', new RegExp(`^${queueId}Queue`));
      const [, fn] = one('AWS::Lambda::Function', new RegExp(`^${functionId}`));
      expect(Number(queue.Properties.VisibilityTimeout)).toBeGreaterThan(Number(fn.Properties.Timeout));
      const redrive = queue.Properties.RedrivePolicy as { deadLetterTargetArn: { 'Fn::GetAtt': string[] } };
      const [dead = ''] = redrive.deadLetterTargetArn['Fn::GetAtt'];
      expect(dead).not.toBe(id);
      // A dead letter keeps the time at which it was first sent.
      const [[, deadQueue] = []] = all('AWS::SQS::Queue').filter(([one]) => one === dead);
      expect(deadQueue?.Properties.MessageRetentionPeriod).toBe(14 * 86_400);
      const alarms = all('AWS::CloudWatch::Alarm').filter(([, { Properties }]) =>
        JSON.stringify(Properties.Dimensions ?? []).includes(dead),
      );
      expect(alarms).toMatchObject([[expect.anything(), { Properties: { Threshold: 1 } }]]);
    },
  );

  test('a failed or throttled poll is delivered once more within its claim, and is kept as a dead letter for any time of reception', () => {
    for (const id of [/^PollingPollsQueue/, /^PollingLonePollsQueue/]) {
      const [, { Properties: queue }] = one('AWS::SQS::Queue', id);
      expect(queue).toMatchObject({ RedrivePolicy: { maxReceiveCount: 2 } });
      expect(Number(queue.VisibilityTimeout)).toBeLessThan(CLAIM_SECONDS);
      const latest = LOOK_AHEAD_SECONDS + CLAIM_SECONDS + 2 * Number(queue.VisibilityTimeout);
      expect(Number(queue.MessageRetentionPeriod)).toBeGreaterThan(latest);
    }
    const [, { Properties: fn }] = one('AWS::Lambda::Function', FUNCTIONS.pollAccount.id);
    expect(Number(fn.Timeout)).toBeLessThan(CLAIM_SECONDS);
  });

  test('accounts are polled ten at a time, and suspects alone, each by the same function', () => {
    const settings = (id: RegExp) => one('AWS::Lambda::EventSourceMapping', id)[1].Properties;
    const polls = settings(/^PollingPollAccount.*PollingPollsQueue/);
    const alone = settings(/^PollingPollAccount.*PollingLonePollsQueue/);
    expect([polls, alone]).toMatchObject([
      { BatchSize: 10, MaximumBatchingWindowInSeconds: 1, ScalingConfig: { MaximumConcurrency: 50 } },
      { BatchSize: 1, ScalingConfig: { MaximumConcurrency: 10 } },
    ]);
    expect(alone.FunctionName).toEqual(polls.FunctionName);
    expect(alone.EventSourceArn).not.toEqual(polls.EventSourceArn);
  });

  test('consumers are limited by their event source, never by reserved concurrency that would throttle valid messages', () => {
    for (const name of ['pollAccount', 'drainSink', 'notify', 'mailFeedback'] as const) {
      const [, { Properties: fn }] = one('AWS::Lambda::Function', FUNCTIONS[name].id);
      expect(fn).not.toHaveProperty('ReservedConcurrentExecutions');
      const prefix = new RegExp(FUNCTIONS[name].id.source.replace(/\[.*$/, ''));
      const mappings = all('AWS::Lambda::EventSourceMapping').filter(([id]) => prefix.test(id));
      expect(mappings.length).toBeGreaterThan(0);
      for (const [, { Properties: mapping }] of mappings) {
        expect(mapping).toMatchObject({
          ScalingConfig: { MaximumConcurrency: expect.any(Number) },
          FunctionResponseTypes: ['ReportBatchItemFailures'],
        });
      }
    }
  });
});

describe('topics', () => {
  test('the topic is FIFO, with its own name that ends in .fifo; by default there is no other', () => {
    for (const name of templates.keys()) {
      const [, { Properties: topic }] = one('AWS::SNS::Topic', EVENTS, name);
      expect(topic).toMatchObject({ FifoTopic: true, TopicName: `${name}-events.fifo` });
      expect(templates.get(name)?.findOutputs('StandardTopicArn')).toEqual({});
      expect(getEnvironment('tick', name)).not.toHaveProperty('JOBWIRE_STANDARD_TOPIC_ARN');
    }
  });

  test('in production the topic archives messages for later subscribers; where a stack may be deleted it does not', () => {
    const archive = (name: string) => one('AWS::SNS::Topic', EVENTS, name)[1].Properties.ArchivePolicy;
    expect(archive('jobwire-prod-us')).toEqual({ MessageRetentionPeriod: 30 });
    expect(archive('jobwire-dev-us')).toBeUndefined();
    for (const [days, settings] of [
      [1, MAIL_ONLY],
      [365, OTHER_API],
    ] as const) {
      const { template } = synthesize('prod', settings);
      const [[, topic] = []] = eventTopics(template);
      expect(topic?.Properties.ArchivePolicy).toEqual({ MessageRetentionPeriod: days });
    }
  });

  test('a standard topic, where configured, is published to by drains, known to the tick and an output', () => {
    const { template } = synthesize('prod', { cell: { standardTopic: true } });
    const topics = eventTopics(template);
    expect(topics.map(([, { Properties }]) => Properties.TopicName).sort()).toEqual([
      'jobwire-prod-us-events-standard',
      'jobwire-prod-us-events.fifo',
    ]);
    const [id = ''] = topics.find(([, { Properties }]) => !Properties.FifoTopic) ?? [];
    expect(template.findOutputs('StandardTopicArn')).toMatchObject({
      StandardTopicArn: { Value: { Ref: id } },
    });
    const named = Object.entries(template.findResources('AWS::Lambda::Function')).filter(
      ([, { Properties }]) => Properties.Environment.Variables.JOBWIRE_STANDARD_TOPIC_ARN,
    );
    expect(named).toEqual([
      [
        expect.stringMatching(FUNCTIONS.tick.id),
        expect.objectContaining({
          Properties: expect.objectContaining({
            Environment: {
              Variables: expect.objectContaining({ JOBWIRE_STANDARD_TOPIC_ARN: { Ref: id } }),
            },
          }),
        }),
      ],
    ]);
    const publishing = Object.entries(template.findResources('AWS::IAM::Policy')).filter(
      ([, { Properties }]) =>
        (Properties.PolicyDocument.Statement as Statement[]).some(
          ({ Action, Resource }) =>
            [Action].flat().includes('sns:Publish') && JSON.stringify(Resource ?? []).includes(`"${id}"`),
        ),
    );
    expect(publishing.map(([policy]) => policy)).toEqual([expect.stringMatching(/^DeliveryDrainSink/)]);
  });

  test('only their owner may use the topics of events, and only with TLS', () => {
    const { template: withBoth } = synthesize('prod', { cell: { standardTopic: true } });
    for (const template of [...templates.values(), withBoth]) {
      const topics = eventTopics(template).map(([id]) => id);
      const policies = Object.entries(template.findResources('AWS::SNS::TopicPolicy')).flatMap(
        ([id, policy]) => (EVENTS.test(id) ? [policy] : []),
      );
      expect(policies.flatMap(({ Properties }) => Properties.Topics as { Ref: string }[])).toEqual(
        topics.map((Ref) => ({ Ref })),
      );
      for (const { Properties } of policies) {
        expect(Properties.PolicyDocument.Statement).toMatchObject([
          { Effect: 'Deny', Principal: '*', Condition: { Bool: { 'aws:SecureTransport': 'false' } } },
        ]);
      }
    }
  });
});

describe('schedules', () => {
  test.each([
    ['tick', /^PollingEachMinute/],
    ['alerts', /^AlertsEachMinute/],
  ] as const)('%s runs each minute and is never retried', (name, schedule) => {
    const [id, { Properties: fn }] = one('AWS::Lambda::Function', FUNCTIONS[name].id);
    expect(one('AWS::Scheduler::Schedule', schedule)[1].Properties).toMatchObject({
      ScheduleExpression: 'rate(1 minute)',
      State: 'ENABLED',
      Target: { Arn: { 'Fn::GetAtt': [id, 'Arn'] }, RetryPolicy: { MaximumRetryAttempts: 0 } },
    });
    expect(Number(fn.Timeout)).toBeLessThan(60);
    // The schedule invokes asynchronously, which Lambda retries by default.
    const invocation = new RegExp(FUNCTIONS[name].id.source.replace(/\[.*$/, ''));
    expect(one('AWS::Lambda::EventInvokeConfig', invocation)[1].Properties).toMatchObject({
      MaximumRetryAttempts: 0,
    });
  });
});

describe('notifications', () => {
  const own = (template: Template, type: string) =>
    Object.entries(template.findResources(type)) as [string, Resource][];
  const { template: without } = synthesize('prod', { cell: { notifications: undefined } });

  test('a cell without them has none of the parts: no SES, queue, function, alarm, permission, or variable', () => {
    const text = JSON.stringify(without.toJSON());
    expect(text).not.toMatch(
      /AWS::SES|ses:|(?<!NumberOf)Notifications|OptedOut|NotResource|JOBWIRE_(NOTIFY|CHANNELS|MAIL|SMS)/,
    );
    expect(text).not.toMatch(/messages-|mail-(?!frame)|sms-|MessagesSent|OldestUnsent/);
    expect(own(without, 'AWS::Lambda::EventSourceMapping')).toHaveLength(4);
    // Of the current cells only one has any, and its additional parts are below one construct, except alarms.
    const others = [...templates].filter(([name]) => name !== 'jobwire-prod-us');
    expect(others.length).toBeGreaterThan(4);
    for (const [name, template] of others)
      expect(own(template, 'AWS::SES::ConfigurationSet'), name).toEqual([]);
    const ids = (template: Template | undefined) => Object.keys(template?.toJSON().Resources ?? {});
    const [plain, more] = [ids(without), ids(templates.get('jobwire-prod-us'))];
    const added = more.filter((id) => !plain.includes(id));
    expect(added.length).toBeGreaterThan(20);
    // The permissions of `manage`, which sends test e-mails, exceed the size of one policy.
    const parts = /^(Notifications|Operations|ApiManageRoleOverflowPolicy|AlertsFunctionRoleOverflowPolicy)/;
    expect(added.filter((id) => !parts.test(id))).toEqual([]);
    expect(plain.filter((id) => !more.includes(id))).toEqual([]);
  });

  test('SES events of mails arrive through a topic that only SES publishes to, and a queue that only the topic fills', () => {
    const [setId] = one('AWS::SES::ConfigurationSet');
    const [topicId] = one('AWS::SNS::Topic', /^NotificationsHeard/);
    const [queueId] = one('AWS::SQS::Queue', /^NotificationsFeedbackQueue/);
    expect(one('AWS::SES::ConfigurationSetEventDestination')[1].Properties).toMatchObject({
      ConfigurationSetName: { Ref: setId },
      EventDestination: {
        Enabled: true,
        MatchingEventTypes: ['bounce', 'complaint', 'reject'],
        SnsDestination: { TopicARN: { Ref: topicId } },
      },
    });
    const [, { Properties: policy }] = one('AWS::SNS::TopicPolicy', /^NotificationsHeard/);
    const statements = (policy.PolicyDocument as { Statement: Statement[] }).Statement;
    expect(statements).toHaveLength(2);
    expect(statements).toMatchObject([
      { Effect: 'Deny', Condition: { Bool: { 'aws:SecureTransport': 'false' } } },
      {
        ...{ Effect: 'Allow', Action: 'sns:Publish', Principal: { Service: 'ses.amazonaws.com' } },
        Resource: { Ref: topicId },
        Condition: { StringEquals: { 'AWS:SourceAccount': '000000000000' } },
      },
    ]);
    expect(JSON.stringify(statements[1])).toContain(`configuration-set/",{"Ref":"${setId}"}`);
    expect(one('AWS::SNS::Subscription')[1].Properties).toMatchObject({
      ...{ Protocol: 'sqs', RawMessageDelivery: true, TopicArn: { Ref: topicId } },
      Endpoint: { 'Fn::GetAtt': [queueId, 'Arn'] },
    });
    const [, { Properties: queuePolicy }] = one('AWS::SQS::QueuePolicy', /^NotificationsFeedbackQueue/);
    expect((queuePolicy.PolicyDocument as { Statement: Statement[] }).Statement).toContainEqual(
      expect.objectContaining({
        ...{ Effect: 'Allow', Action: 'sqs:SendMessage', Principal: { Service: 'sns.amazonaws.com' } },
        Condition: { ArnEquals: { 'aws:SourceArn': { Ref: topicId } } },
      }),
    );
  });

  test('mails use the cell’s identity, configuration set and address; SMS go to numbers, and to no topic', () => {
    const [identityId] = one('AWS::SES::EmailIdentity');
    const [setId] = one('AWS::SES::ConfigurationSet');
    const rights = getStatements('notify').filter(({ Action }) => !/dynamodb|logs|sqs/.test(String(Action)));
    expect(rights).toEqual([
      {
        ...{ Effect: 'Allow', Action: ['ses:SendEmail', 'ses:SendRawEmail'] },
        Resource: [expect.anything(), expect.anything()],
        Condition: { StringEquals: { 'ses:FromAddress': 'orders@print.example' } },
      },
      { Effect: 'Allow', Action: 'sns:Publish', NotResource: 'arn:aws:sns:*:*:*' },
      { Effect: 'Allow', Action: 'sns:CheckIfPhoneNumberIsOptedOut', Resource: '*' },
    ]);
    const [set, identity] = (rights[0]?.Resource ?? []) as unknown[];
    expect(JSON.stringify(identity)).toContain(`:identity/",{"Ref":"${identityId}"}`);
    expect(JSON.stringify(set)).toContain(`:configuration-set/",{"Ref":"${setId}"}`);
    // `manage` sends test e-mails, and `alerts` messages to operations staff.
    const ofMail = ({ Action }: { readonly Action: unknown }) => /ses:|OptedOut/.test(String(Action));
    for (const name of ['manage', 'alerts'] as const)
      expect(getStatements(name).filter(ofMail)).toEqual([rights[0]]);
    const others = FUNCTION_NAMES.filter((name) => !['notify', 'manage', 'alerts'].includes(name));
    expect(others.flatMap(getStatements).filter(ofMail)).toEqual([]);
  });

  test('a cell without SMS has no permission to send any, and is configured accordingly', () => {
    const { template, functions } = synthesize('prod', MAIL_ONLY);
    expect(JSON.stringify(template.toJSON())).not.toMatch(/OptedOut|NotResource/);
    const told = functions().flatMap(({ id, fn }) => {
      const channels = fn.Properties.Environment.Variables.JOBWIRE_CHANNELS;
      return channels === undefined ? [] : [[id.replace(/[0-9A-F]{8}$/, ''), channels]];
    });
    expect(Object.fromEntries(told)).toEqual({
      DeliveryDrainSink: 'email',
      NotificationsNotify: 'email',
      ApiFunction: 'email',
      ApiManage: 'email',
    });
    expect(getEnvironment('notify').JOBWIRE_CHANNELS).toBe('email,sms');
  });

  test('the DNS records of a new identity are outputs; an existing one is used unchanged', () => {
    const outputs = (template: Template | undefined) => Object.keys(template?.findOutputs('*') ?? {});
    const records = ['MailDnsRecord1', 'MailDnsRecord2', 'MailDnsRecord3'];
    expect(outputs(templates.get('jobwire-prod-us'))).toEqual(expect.arrayContaining(records));
    const identity = 'arn:aws:ses:us-east-1:111122223333:identity/print.example';
    const from = 'Print Shop <orders@print.example>';
    const { template } = synthesize('prod', { cell: { notifications: { from, identity } } });
    expect(own(template, 'AWS::SES::EmailIdentity')).toEqual([]);
    expect(outputs(template)).not.toEqual(expect.arrayContaining(records.slice(0, 1)));
    expect(JSON.stringify(template.toJSON())).toContain(`"Resource":["${identity}"`);
    const addresses = own(template, 'AWS::Lambda::Function').flatMap(([, { Properties }]) => {
      const { Variables } = Properties.Environment as { Variables: Record<string, unknown> };
      return Variables.JOBWIRE_MAIL_FROM ?? [];
    });
    expect(addresses).toEqual(Array(3).fill('orders@print.example'));
  });

  test('with the cell’s own key, SES may publish to the topic and the topic send to the queue, with no other new permission', () => {
    const statements = (notifications: boolean) => {
      const cell = { customerKey: true, ...(notifications ? {} : { notifications: undefined }) };
      const [[, key] = []] = synthesize('prod', { cell }).resources('AWS::KMS::Key');
      return (key?.Properties.KeyPolicy.Statement ?? []) as Statement[];
    };
    const [before, after] = [statements(false), statements(true)];
    const alarms = 'cloudwatch.amazonaws.com';
    const own = before.find(({ Principal }) => (Principal as { Service?: unknown }).Service === alarms);
    expect(own).toMatchObject({
      Action: ['kms:Decrypt', 'kms:GenerateDataKey*'],
      Condition: { StringEquals: { 'aws:SourceAccount': { Ref: 'AWS::AccountId' } } },
    });
    const Service = [alarms, 'ses.amazonaws.com', 'sns.amazonaws.com'];
    expect(after).toEqual(before.map((one) => (one === own ? { ...own, Principal: { Service } } : one)));
  });
});

describe('HTTP API', () => {
  /** All that API Gateway passes on. */
  const METHODS = ['GET', 'HEAD', 'OPTIONS', 'POST', 'PUT', 'PATCH', 'DELETE'];
  const reads = (method: string) => ['GET', 'HEAD', 'OPTIONS'].includes(method);
  const waiting = routes.filter(({ spec }) => spec.waits);

  test('each route of the table has its function, and each other method one that rejects it', () => {
    expect(routes.length).toBeGreaterThan(15);
    expect(new Set(routes.map(({ surface }) => surface))).toEqual(new Set(['read', 'manage', 'live']));
    const served = { read: 'api', manage: 'manage', live: 'live' } as const;
    for (const stackName of templates.keys()) {
      for (const { spec, surface } of routes) {
        const asked = spec.path.replace(/\{\w+\}/g, 'x');
        expect(route(spec.method.toUpperCase(), asked, stackName), spec.id).toBe(served[surface]);
        for (const method of METHODS) {
          const waits = method === 'GET' && waiting.some((one) => one.spec.path === spec.path);
          const expected = waits ? 'live' : reads(method) ? 'api' : 'manage';
          expect(route(method, asked, stackName), `${method} ${spec.path}`).toBe(expected);
        }
      }
    }
  });

  test.each([
    '/',
    '/v1',
    '/v1/accounts',
    '/v1/accounts/x',
    '/v1/accounts/x/y/z',
    '/v1/events/x',
    '/v1/events/x/y',
    '/v1/events/stream/x',
    '/v1/accounts/x/events/x',
    '/v1/accounts/x/events/stream/x/y',
    '/v1/regions',
    '/v1/regions/x/y',
    '/x/y',
  ])('unknown paths are answered by the app, not by API Gateway: %s', (path) => {
    for (const method of METHODS) expect(route(method, path), method).toBe(reads(method) ? 'api' : 'manage');
  });

  test('a function that only reads gets no write request and has no write permission, except for the last use of a key and its number of requests', () => {
    const writes = getGrants('api').filter(({ action }) => !/^(Get|BatchGet|Query)/.test(action));
    expect(writes.map(({ action, pattern }) => [action, pattern]).sort()).toEqual([
      ['PutItem', API_KEY_USE_PK],
      ['UpdateItem', 'REQUESTS#us#*'],
    ]);
    const slots = getGrants('live').filter(({ action }) => !/^(Get|BatchGet|Query)/.test(action));
    expect(slots.map(({ action, pattern }) => [action, pattern]).sort()).toEqual([
      ['DeleteItem', 'STREAMS#us#*'],
      ['PutItem', API_KEY_USE_PK],
      ['PutItem', 'STREAMS#us#*'],
      ['UpdateItem', 'REQUESTS#us#*'],
    ]);
    for (const name of ['api', 'live'] as const) {
      const others = getStatements(name).flatMap(({ Action }) => Action);
      expect(others.filter((action) => !/^(dynamodb|logs):/.test(action))).toEqual([]);
    }
    // Keys are written only by the functions that create them.
    const makers = FUNCTION_NAMES.filter((name) =>
      getGrants(name).some(({ action, pattern }) => action === 'PutItem' && pattern === API_KEY_PK),
    );
    expect(makers).toEqual(['manage', 'operate']);
  });

  test("operations that change state are answered within API Gateway's time-out, and before they may be repeated", () => {
    const [id, { Properties: manage }] = one('AWS::Lambda::Function', FUNCTIONS.manage.id);
    expect(Number(manage.Timeout)).toBeLessThanOrEqual(29);
    expect(Number(manage.Timeout) * 1000).toBeLessThan(DEADLINE_MS);
    const methods = all('AWS::ApiGateway::Method').map(([, { Properties }]) => Properties);
    const managed = methods.filter(({ Integration }) => JSON.stringify(Integration).includes(`"${id}"`));
    expect(managed.length).toBeGreaterThan(10);
    expect(new Set(managed.map(({ HttpMethod }) => HttpMethod))).toEqual(new Set(['ANY']));
  });

  test("errors of API Gateway are problems like the app's, with its headers", async () => {
    const answers = all('AWS::ApiGateway::GatewayResponse').map(([, { Properties }]) => Properties);
    const statuses = Object.fromEntries(
      answers.map(({ ResponseType, StatusCode }) => [ResponseType, StatusCode]),
    );
    expect(statuses).toMatchObject({
      THROTTLED: '429',
      REQUEST_TOO_LARGE: '413',
      MISSING_AUTHENTICATION_TOKEN: '404',
      WAF_FILTERED: '403',
      DEFAULT_4XX: '403',
      DEFAULT_5XX: '500',
    });
    const app = createApi({
      ...{ table: createMemoryTable(), log: {} as EventLog, regions: [], now: Date.now },
      ...apiParts(createMemoryTable(), 'the-key-of-this-test'),
    });
    const own = await app.request('/nowhere');
    for (const { ResponseType, StatusCode, ResponseTemplates, ResponseParameters } of answers) {
      const [[contentType, template] = ['', '']] = Object.entries(
        ResponseTemplates as Record<string, string>,
      );
      expect(contentType).toBe(own.headers.get('content-type'));
      const body = JSON.parse(template) as Record<string, unknown>;
      expect(Object.keys(body).sort(), String(ResponseType)).toEqual(
        Object.keys((await own.clone().json()) as object).sort(),
      );
      const kind = String(body.type).slice(PROBLEM_TYPE.length) as ProblemKind;
      expect([body.title, body.status]).toEqual([problems[kind].title, problems[kind].status]);
      expect(StatusCode).toBe(String(body.status));
      expect(body.requestId).toBe('$context.requestId');
      const headers = ResponseParameters as Record<string, string>;
      expect(headers['gatewayresponse.header.x-request-id']).toBe('context.requestId');
      for (const name of [
        'cache-control',
        'cross-origin-resource-policy',
        'referrer-policy',
        'strict-transport-security',
        'x-content-type-options',
        'x-frame-options',
      ]) {
        expect(headers[`gatewayresponse.header.${name}`], name).toBe(`'${own.headers.get(name)}'`);
      }
      expect(headers).toHaveProperty(['gatewayresponse.header.content-security-policy']);
      expect(headers).not.toHaveProperty(['gatewayresponse.header.access-control-allow-origin']);
      // A quoted text cannot contain a quote.
      for (const value of Object.values(headers)) expect(value).toMatch(/^(context\.requestId|'[^']+')$/);
      const isForLater = body.status === 429 || body.status === 500;
      expect('gatewayresponse.header.retry-after' in headers).toBe(isForLater);
    }
  });

  test("the sign-in of a stage's users: only the functions of the API have the settings", () => {
    for (const name of ['api', 'manage', 'live'] as const) {
      expect(getEnvironment(name)).not.toHaveProperty('JOBWIRE_SIGN_IN');
    }
    const { template } = synthesize('prod', OTHER_API);
    const given = Object.values(template.findResources('AWS::Lambda::Function')).flatMap(
      ({ Properties }) => Properties.Environment?.Variables?.JOBWIRE_SIGN_IN ?? [],
    );
    expect(given).toHaveLength(3);
    for (const json of given) {
      expect(SignInSettings.parse(JSON.parse(json))).toEqual(OTHER_API.stage.signIn);
    }
  });

  test("CORS for a stage's origins: every function knows them, and errors of API Gateway are readable", () => {
    for (const name of ['api', 'manage', 'live'] as const) {
      expect(getEnvironment(name)).not.toHaveProperty('JOBWIRE_CORS_ORIGINS');
    }
    const { corsOrigins } = OTHER_API.stage.api;
    const { template } = synthesize('prod', OTHER_API);
    const told = Object.values(template.findResources('AWS::Lambda::Function')).flatMap(
      ({ Properties }) => Properties.Environment.Variables.JOBWIRE_CORS_ORIGINS ?? [],
    );
    expect(told).toEqual(Array(3).fill(corsOrigins.join(',')));
    expect(ApiEnv.shape.JOBWIRE_CORS_ORIGINS.parse(told[0])).toEqual(corsOrigins);
    for (const { Properties } of Object.values(template.findResources('AWS::ApiGateway::GatewayResponse'))) {
      expect(Properties.ResponseParameters).toMatchObject({
        'gatewayresponse.header.access-control-allow-origin': "'*'",
        'gatewayresponse.header.cross-origin-resource-policy': "'cross-origin'",
      });
    }
  });

  test('live requests are streamed, for the duration of a stream and at most that of its slot', () => {
    for (const stackName of templates.keys()) {
      const [liveId, { Properties: live }] = one('AWS::Lambda::Function', FUNCTIONS.live.id, stackName);
      const methods = all('AWS::ApiGateway::Method', stackName).map(([, { Properties }]) => Properties);
      const streamed = methods.filter(({ Integration }) => JSON.stringify(Integration).includes(liveId));
      expect(streamed).toHaveLength(waiting.length);
      for (const { HttpMethod, Integration } of streamed) {
        expect(HttpMethod).toBe('GET');
        expect(Integration).toMatchObject({
          Type: 'AWS_PROXY',
          ResponseTransferMode: 'STREAM',
          TimeoutInMillis: Number(live.Timeout) * 1000,
        });
        expect(JSON.stringify(Integration)).toContain('/response-streaming-invocations');
      }
      const { JOBWIRE_STREAM_SECONDS: seconds } = getEnvironment('live', stackName);
      // A slot that expired before its invocation ended would admit too many.
      expect(Number(live.Timeout) * 1000).toBe(Number(seconds) * 1000 + SLOT_GRACE_MS);
      expect(Number(live.Timeout)).toBeLessThanOrEqual(900);
    }
  });

  test('no function reserves concurrency, which an AWS account with the initial limit of 10 rejects', () => {
    for (const { stackName } of stacks())
      for (const [id, { Properties: fn }] of all('AWS::Lambda::Function', stackName))
        expect(fn, `${stackName} ${id}`).not.toHaveProperty('ReservedConcurrentExecutions');
  });

  test('the limits of a dev cell leave room for its tick within the initial limit of an AWS account', () => {
    const limits = all('AWS::Lambda::EventSourceMapping', 'jobwire-dev-us').flatMap(
      ([, { Properties }]) =>
        (Properties.ScalingConfig as { MaximumConcurrency: number } | undefined)?.MaximumConcurrency ?? [],
    );
    expect(limits).toHaveLength(3);
    const streams = Number(getEnvironment('live', 'jobwire-dev-us').JOBWIRE_STREAMS);
    expect(limits.reduce((sum, limit) => sum + limit, streams)).toBeLessThanOrEqual(FIRST_LAMBDA_LIMIT - 2);
  });

  test('streams are opened at a tenth of the rate, and share the burst', () => {
    const [, { Properties: stage }] = one('AWS::ApiGateway::Stage');
    const settings = (stage.MethodSettings as Properties[]).map(({ ResourcePath, HttpMethod, ...rest }) => [
      `${HttpMethod} ${String(ResourcePath).replaceAll('~1', '/').replace('//', '/')}`,
      [rest.ThrottlingRateLimit, rest.ThrottlingBurstLimit],
    ]);
    const streams = waiting.filter(({ spec }) => spec.path.endsWith('/stream'));
    expect(streams.length).toBeGreaterThan(2);
    expect(Object.fromEntries(settings)).toEqual({
      '* /*': [100, 200],
      ...Object.fromEntries(streams.map(({ spec }) => [`GET ${spec.path}`, [10, 200]])),
    });
  });

  test('requires TLS 1.2', () => {
    expect(one('AWS::ApiGateway::RestApi')[1].Properties).toMatchObject({
      SecurityPolicy: 'SecurityPolicy_TLS13_1_2_PFS_PQ_2025_09',
    });
  });

  test('a web ACL, where configured, protects the stage: no sample contains a key, no client is blocked', () => {
    expect(all('AWS::WAFv2::WebACL')).toEqual([]);
    const { app, template } = synthesize('prod', OTHER_API);
    expect(new AwsSolutionsChecks().validateScope(app).violations).toEqual([]);
    const [[aclId, acl] = ['', undefined]] = Object.entries(template.findResources('AWS::WAFv2::WebACL'));
    expect(JSON.stringify(acl)).not.toContain('"SampledRequestsEnabled":true');
    // Deployment rejects names reserved by WAF.
    expect(JSON.stringify(acl)).not.toMatch(/"MetricName":"(all|default_action)"/i);
    const rules = acl?.Properties.Rules as { Name: string; Priority: number; Statement: Properties }[];
    expect(rules.map(({ Name, Priority }) => [Name, Priority])).toEqual([
      ['rate', 0],
      ['rate-of-viewers', 1],
      ['common', 2],
      ['bad-inputs', 3],
    ]);
    // Requests through the distribution count by viewer; others by their source address.
    const rate = { EvaluationWindowSec: 60, Limit: 3000 };
    const [[policy = ''] = []] = Object.entries(
      template.findResources('AWS::CloudFront::OriginRequestPolicy'),
    );
    const passed = {
      ByteMatchStatement: {
        FieldToMatch: { SingleHeader: { Name: PASS_HEADER } },
        PositionalConstraint: 'EXACTLY',
        SearchString: { Ref: policy },
      },
    };
    const [direct, viewers] = rules.map(({ Statement }) => Statement);
    expect(direct).toMatchObject({
      RateBasedStatement: {
        ...{ ...rate, AggregateKeyType: 'IP' },
        ScopeDownStatement: { NotStatement: { Statement: passed } },
      },
    });
    expect(viewers).toMatchObject({
      RateBasedStatement: {
        ...{ ...rate, AggregateKeyType: 'CUSTOM_KEYS', CustomKeys: [{ Header: { Name: VIEWER_HEADER } }] },
        ScopeDownStatement: passed,
      },
    });
    expect(JSON.stringify(rules[2])).toMatch(/NoUserAgent_HEADER.*SizeRestrictions_QUERYSTRING/);
    // The rule set classifies the HTML of a template as cross-site scripting.
    const { ManagedRuleGroupStatement } = (rules[2]?.Statement ?? {}) as unknown as {
      ManagedRuleGroupStatement: { ScopeDownStatement: { NotStatement: { Statement: Properties } } };
    };
    const { RegexString, FieldToMatch } = ManagedRuleGroupStatement.ScopeDownStatement.NotStatement.Statement
      .RegexMatchStatement as { RegexString: string; FieldToMatch: unknown };
    expect(FieldToMatch).toEqual({ UriPath: {} });
    // Limit of WAF.
    expect(RegexString.length).toBeLessThanOrEqual(512);
    const excluded = routes
      .map(({ spec }) => spec.path)
      .filter((path) => new RegExp(RegexString).test(`/prod${path}`));
    expect([...new Set(excluded)].sort()).toEqual([
      '/v1/accounts/{id}/notifications/preview',
      '/v1/accounts/{id}/notifications/test',
      '/v1/accounts/{id}/templates/{kind}/{channel}/{locale}',
    ]);
    const [stageId] = Object.keys(template.findResources('AWS::ApiGateway::Stage'));
    const [association] = Object.values(template.findResources('AWS::WAFv2::WebACLAssociation'));
    expect(association?.Properties.WebACLArn).toEqual({ 'Fn::GetAtt': [aclId, 'Arn'] });
    expect(JSON.stringify(association?.Properties.ResourceArn)).toContain(`/stages/",{"Ref":"${stageId}"}`);
  });
});

describe('permissions', () => {
  const token = keys.token({ region: 'us', account: 'acme' }).pk;

  test('only polling can read tokens, except account deletion, which deletes them', () => {
    const reaching = FUNCTION_NAMES.map((name) => [
      name,
      tableStatements(name)
        .filter((statement) => leadingKeys(statement).some((pattern) => like(pattern, token)))
        .flatMap(({ Action }) => Action),
    ]);
    expect(reaching.filter(([, actions]) => actions?.length)).toEqual([
      ['pollAccount', expect.arrayContaining(['dynamodb:GetItem', 'dynamodb:PutItem'])],
      ['manage', ['dynamodb:DeleteItem']],
    ]);
  });

  test('every statement about a table itself names partitions, and does not apply to a call without any', () => {
    for (const name of FUNCTION_NAMES) {
      if (name !== 'publishDashboard') expect(tableStatements(name).length, name).toBeGreaterThan(0);
      for (const statement of [...tableStatements(name), ...tableStatements(name, HISTORY)]) {
        expect(leadingKeys(statement).length, name).toBeGreaterThan(0);
        expect(statement.Condition?.Null, name).toEqual({ 'dynamodb:LeadingKeys': 'false' });
      }
    }
  });

  test('a cell’s functions cannot access the partitions of another API region', () => {
    const [one = '', another = ''] = [accountPk('us'), accountPk('uk')];
    const patterns = FUNCTION_NAMES.flatMap((name) => tableStatements(name).flatMap(leadingKeys));
    expect(patterns.some((pattern) => like(pattern, one))).toBe(true);
    expect(patterns.some((pattern) => like(pattern, another) || like(pattern, sinkPk('uk')))).toBe(false);
    const history = FUNCTION_NAMES.flatMap((name) => tableStatements(name, HISTORY).flatMap(leadingKeys));
    expect(history.some((pattern) => like(pattern, deliveryPk('us', 'erp', 0)))).toBe(true);
    expect(history.some((pattern) => like(pattern, deliveryPk('uk', 'erp', 0)))).toBe(false);
  });

  test('named resources are not granted by wildcards, actions never are, and no role may scan', () => {
    for (const [name, template] of templates) {
      for (const { Action, Resource = [] } of allStatements(template)) {
        const actions = [Action].flat();
        expect(
          actions.filter((action) => action.includes('*')),
          name,
        ).toEqual([]);
        expect(actions, name).not.toContain('dynamodb:Scan');
        for (const resource of [Resource].flat()) {
          const text = JSON.stringify(resource);
          // Secrets of owners are created after deployment, so theirs is a name prefix: of one cell.
          const [, stage = '', region = ''] = name.split('-');
          const below = new RegExp(`:secret:jobwire/${stage}/${region}/accounts/\\*`);
          // A phone number has no ARN.
          const ofNumbers = actions.join() === 'sns:CheckIfPhoneNumberIsOptedOut';
          // Files are named by their content, and are all that the bucket contains.
          const ofFiles = actions.every((action) => /^s3:\w+Object$/.test(action));
          const isMeant = below.test(text) || ofNumbers || ofFiles;
          expect(text.includes('*') && !isMeant ? text : '', name).toBe('');
        }
      }
    }
  });

  test("the functions' grants match the table calls of their use-cases", async () => {
    // No emulator implements IAM, so each function's policy guards the in-memory table here.
    const memory = createMemoryTable();
    const rig = await createRig({ table: memory });
    const { now, ref } = rig;
    const parts = (name: FunctionName) => {
      const table = guarded(name, memory);
      const log = createEventLog(table, {
        now,
        newId: randomUUID,
        schemaBaseUrl: 'https://us.jobwire.example',
      });
      return { region: 'us', table, log, now };
    };
    const telemetry = {
      tick() {},
      drain() {},
      attempt() {},
      fault: (_: string, cause: unknown) => expect.fail(String(cause)),
    };
    const context = { getRemainingTimeInMillis: () => 60_000 };
    const polls: { account: string }[] = [];
    const lonePolls: { account: string }[] = [];
    const drains: { sink: string }[] = [];
    const sendDrains = async (messages: readonly { sink: string }[]) => void drains.push(...messages);
    const tickDeps = {
      ...parts('tick'),
      topicArn: 'arn:aws:sns:us-east-1:111122223333:events.fifo',
      standardTopicArn: 'arn:aws:sns:us-east-1:111122223333:events-standard',
      sendPolls: async (messages) => void polls.push(...messages),
      sendLonePolls: async (messages) => void lonePolls.push(...messages),
      sendDrains,
      telemetry,
    } satisfies TickDeps;
    const tick = createTickHandler(tickDeps);
    const wakeSinks = createWakeSinksHandler({ ...parts('wakeSinks'), sendDrains, telemetry });
    const delivered: string[] = [];
    const drainSink = createDrainSinkHandler({
      region: 'us',
      draining: {
        ...parts('drainSink'),
        newId: randomUUID,
        random: () => 0.5,
        retrySeconds: [5],
        open: async () => ({
          maxBatch: 1,
          async deliver([delivery]) {
            delivered.push(delivery?.event.type ?? '');
            return [{ kind: 'delivered' }];
          },
        }),
      },
      telemetry,
    });
    const poll = async (account = ref.account) => {
      rig.pass(60);
      await pollAccount({ ...rig.deps, ...parts('pollAccount') }, { ...ref, account }, now() + 600_000);
    };

    const token = tableTokenCache(parts('pollAccount').table, ref, 'v1');
    await token.save({ value: 'token', expiresAt: now() + 1000 });
    expect(await token.load()).toMatchObject({ value: 'token' });
    await token.clear();
    const kms = new FakeKms();
    const { read } = createAccountSecrets(sealWithKms(parts('pollAccount').table, kms));
    const given = { clientId: 'id', clientSecret: 'secret' };
    const secretRef = await createAccountSecrets(sealWithKms(memory, kms)).save('us', 'acme', given);
    expect(await read(secretRef)).toMatchObject(given);
    const [first = 0, second = 0] = [rig.upstream.createJob({}), rig.upstream.createJob({})];
    await poll();
    await tick({}, context);
    rig.upstream.dispatch(first);
    rig.upstream.createJob({});
    await poll();
    rig.upstream.close(first);
    rig.upstream.cancel(second);
    // Long enough for departures to be confirmed, and for settling to end.
    for (let n = 0; n < 40; n += 1) {
      rig.pass(6 * 3600);
      await poll();
    }
    const mark = await memory.get(keys.wake(ref));
    if (!mark) throw new Error('There is no wake mark.');
    await wakeSinks({ Records: [putRecord(mark), putRecord(mark)] });
    expect(drains).toContainEqual({ sink: getDrainName(TOPIC_SINK, 'acme') });
    rig.pass(60);
    await tick({}, context);
    expect(polls.map(({ account }) => account)).toEqual(['acme', 'acme']);
    rig.pass(CLAIM_SECONDS);
    await tick({}, context);
    expect(lonePolls, 'its poll never reported').toMatchObject([{ account: 'acme' }]);
    const message = { messageId: '1', body: JSON.stringify({ sink: TOPIC_SINK }) };
    for (let n = 0; n < 2; n += 1) {
      rig.pass(1);
      await drainSink({ Records: [message as SQSRecord] }, context);
    }
    expect(delivered).toEqual(
      expect.arrayContaining(['account.baselined', 'job.dispatched', 'job.cancelled']),
    );

    const topicArn = 'arn:aws:sns:us-east-1:111122223333:replaced.fifo';
    await createTickHandler({ ...tickDeps, topicArn })({}, context);

    // An outage of the region, from its announcement over probes to its end.
    for (const account of ['b', 'c']) {
      const added = { region: 'us', account, secretRef: account, pollIntervalSeconds: 60, paused: false };
      await registerAccount(memory, rig.log, added, { now: now(), epoch: 'e1' });
    }
    rig.fault({ match: { region: 'us' }, fault: { kind: 'status', status: 503 } });
    for (const account of ['acme', 'b', 'c', 'acme', 'b']) await poll(account);
    expect(await readBreakerState(memory, 'us')).toMatchObject({ openedAt: now() });
    await tick({}, context);
    rig.sandbox.faults.clear();
    await poll('b');
    expect(await rig.log.head(cellLog('us'))).toMatchObject({ sequence: 2 });

    // Streams end by the clock, so it has to advance: by its readings, so that each stream reads at least once on a slow machine.
    let readings = 0;
    const ticking = () => {
      readings += 1;
      return now() + 5 * readings;
    };
    const made = await createKey({ table: memory, now: ticking }, { role: 'admin' }, OPERATOR);
    if (made.kind !== 'created') throw new Error(made.reason);
    const shared = { regions: ['us'], now: ticking };
    const keyring = (table: Table) => createKeyring({ table, now: ticking });
    const live = guarded('live', memory);
    let agedMs = 0;
    const liveLog = createEventLog(live, {
      now: () => now() + agedMs,
      newId: randomUUID,
      schemaBaseUrl: 'https://us.example',
    });
    const slots = createSlots({
      ...{ table: live, region: 'us', perKey: 2, now: ticking, newId: randomUUID },
      // The slot that it tries first is occupied.
      random: () => 0,
    });
    const requestLimit = (table: Table) =>
      createRequestLimit({ table, region: 'us', perMinute: 1000, now: ticking });
    // Another function has counted a request.
    await requestLimit(memory).count(made.key.id);
    const apis = {
      api: createApi({
        ...{ ...parts('api'), ...shared, keyring: keyring(guarded('api', memory)) },
        deliveries: createDeliveryLog(createMemoryTable(historySchema), { newId: randomUUID }),
      }),
      live: createApi({
        ...{
          table: live,
          log: liveLog,
          ...shared,
          slots,
          keyring: keyring(live),
          requestLimit: requestLimit(live),
        },
        pace: { streamMs: 50, waitMs: 1 },
      }),
    };
    await slots.acquire(made.key.id, 60_000);
    const last = `accounts/acme/jobs/${first}`;
    const asked: [keyof typeof apis, string][] = [
      ['api', 'key'],
      ['api', 'keys'],
      ['api', `keys/${made.key.id}`],
      ['api', 'accounts/acme/status'],
      ['live', 'accounts/acme/events?after=0&types=job.*'],
      ['live', `accounts/acme/events?wait=1&after=${(await rig.log.head(ref))?.sequence}`],
      ['live', 'accounts/acme/events/stream?after=0'],
      ['live', 'events/stream?after=0'],
      ['live', 'regions/us/events'],
      ['live', 'regions/us/events/stream?after=0'],
      ['api', 'accounts/acme/jobs'],
      ['api', 'accounts/acme/jobs?status=x'],
      ['api', 'accounts/acme/jobs?orderNumber=x'],
      ['api', 'accounts/acme/jobs?dueBefore=2099-01-01'],
      ['api', last],
      ['live', 'accounts/acme/events'],
    ];
    for (const [name, path] of asked) {
      const headers = { authorization: `Bearer ${made.secret}` };
      const answer = await apis[name].request(`/v1/${path}`, { headers });
      expect([path, answer.status]).toEqual([path, 200]);
      await answer.text();
      // The last one requests the earliest event when most of them have expired.
      agedMs = path === last ? 85 * DAY_MS : 0;
    }
    expect(live.unused()).toEqual([]);
  });

  test('a drain is granted exactly its calls, including those after failures', async () => {
    const [memory, historyMemory] = [createMemoryTable(), createMemoryTable(historySchema)];
    const table = guarded('drainSink', memory);
    const history = guarded('drainSink', historyMemory, HISTORY);
    let answer: () => DeliveryOutcome = delivered;
    const rig = await createDeliveryRig(({ jobNumber }) => (jobNumber === 1 ? answer() : delivered()), {
      table: memory,
    });
    const { state, refs } = rig;
    const now = () => state.now;
    const log = createEventLog(table, { now, newId: randomUUID, schemaBaseUrl: 'https://us.example' });
    const deliveries = createDeliveryLog(history, { newId: randomUUID });
    const reports: DrainReport[] = [];
    const handler = createDrainSinkHandler({
      region: 'us',
      draining: { ...rig.deps, table, log, deliveries },
      telemetry: {
        drain: (report) => void reports.push(report),
        attempt() {},
        fault: (_, cause) => expect.fail(String(cause)),
      },
    });
    const erp = { messageId: '1', body: JSON.stringify({ sink: 'erp' }) } as SQSRecord;
    const drain = async (afterMs = 1) => {
      reports.length = 0;
      state.now += afterMs;
      await handler({ Records: [erp] }, { getRemainingTimeInMillis: () => 60_000 });
      return reports[0];
    };

    answer = () => ({ kind: 'rejected', reason: 'The endpoint responded with status 422.' });
    await rig.say([moved(1, 'a'), moved(1, 'b'), moved(2, 'c')]);
    expect(await drain()).toMatchObject({ delivered: 1, parked: 2 });
    for (const dead of [0, 0, 1]) expect(await drain(DAY_MS)).toMatchObject({ dead });
    answer = delivered;
    expect(await drain(DAY_MS)).toMatchObject({ delivered: 1 });
    await wakeSinksOf(memory, cellLog('us'), 1, now());
    expect(await drain(), 'the events of the region').toMatchObject({ delivered: 1 });

    // The dead event is sent again by filter.
    const erpSink = { region: 'us', id: 'erp' };
    const again = await redeliver(
      { ...rig.deps, deliveries },
      erpSink,
      { states: ['dead'], filter: { jobNumbers: [1] } },
      () => true,
      { newId: randomUUID },
    );
    expect(again).toMatchObject({ kind: 'redelivered', dead: 1 });
    expect(await drain()).toMatchObject({ delivered: 1 });
    expect(rig.replays.splice(0)).toEqual(['acme.e1.1']);
    expect(await listDeadPage(memory, 'us', 'erp', { limit: 10 })).toMatchObject({ dead: [] });

    answer = () => ({ kind: 'retry', reason: 'It is gone.', disable: 'It wants no more.' });
    await rig.say([moved(1, 'd')]);
    expect(await drain()).toMatchObject({ outcome: 'disabled' });
    answer = delivered;
    const set = healthAttributes(enableHealth((await rig.sink()).health));
    await memory.write({ update: keys.sink('us', 'erp'), set });
    expect(await drain()).toMatchObject({ outcome: 'drained', delivered: 1 });

    const said = (await rig.readCellLog()).map(({ type }) => type);
    expect(said).toEqual(['endpoint.event_dead', 'endpoint.disabled', 'endpoint.recovered']);

    await rig.say([moved(1, 'e')]);
    state.now += 91 * DAY_MS;
    await rig.say([moved(1, 'f')]);
    expect(await drain()).toMatchObject({ lost: 1, delivered: 1 });
    expect(await rig.log.head(cellLog('us')), 'emitted in the region’s log').toMatchObject({ sequence: 4 });

    const kms = new FakeKms();
    const kept = { secrets: [newSecret()] };
    await createSigningSecrets(sealWithKms(memory, kms)).save('us', 'erp', kept);
    expect(await createSigningSecrets(sealWithKms(table, kms)).load('us', 'erp')).toEqual(kept);

    await rig.replay('r1', 5, 6);
    await rig.replay('r2', 5, 6);
    await memory.write({ update: keys.replay('us', 'erp', 'r2'), set: { cancelledAt: now() } });
    expect(await drain()).toMatchObject({ delivered: 1 });
    expect(rig.replays).toEqual(['acme.e1.6']);

    // A cursor that is deleted between its query and its read, although its account is followed.
    await rig.say([moved(1, 'g')]);
    const { get } = table;
    table.get = async (key) => {
      const cursor = keys.cursor('us', 'erp', 'acme');
      if (key.pk === cursor.pk && key.sk === cursor.sk) await memory.write({ delete: cursor });
      return get(key);
    };
    await drain();
    expect((await rig.position()).position).toBe(7);

    // Of a divided sink, a part.
    const topic = { ...(await rig.sink()), id: TOPIC_SINK };
    await registerSink(memory, rig.log, topic, []);
    const message = { messageId: '1', body: JSON.stringify({ sink: TOPIC_SINK }) } as SQSRecord;
    await handler({ Records: [message] }, { getRemainingTimeInMillis: () => 60_000 });

    expect([...table.unused(), ...history.unused()].filter(isOwn)).toEqual([]);
    for (const ref of refs) await expect(log.append(ref, [moved(1, 'h')])).rejects.toThrow(/may not/);
  });

  test('an operator’s function is granted exactly the calls of its commands', async () => {
    const memory = createMemoryTable();
    const table = guarded('operate', memory);
    const { accounts, endpoints, log, clock } = await createOperator({ table: memory });
    const now = () => clock.now;
    // Enough for every shard of wake marks.
    const refs = Array.from({ length: 16 }, (_, n) => ({ region: 'us', account: `acme-${n}` }));
    for (const { account: id } of refs) await createAccount(accounts, { id, secretRef: SECRET });
    await createEndpoint(endpoints, 'us', { id: 'erp', url: 'https://erp.example.com/' });
    await startFeed(memory, 'us', { now, epoch: newEpoch(clock.now) });
    for (const ref of refs) {
      await log.append(ref, [moved(1, 'a')]);
      await forwardLogs(memory, [ref], { now });
    }
    // A torn backup lacks a range of the cell feed, the position of another log in it, and an event.
    const [first, second, third] = refs as [AccountRef, AccountRef, AccountRef];
    await memory.write({ delete: keys.event(feedLog('us'), 1) });
    await memory.write({ delete: keys.cursor('us', FEED_LOG, second.account) });
    await memory.write({ delete: keys.event(third, 1) });

    const later = () => clock.now + 2000;
    const restored = await createOperator({ table, now: later, restoredAt: clock.now + 1000 });
    expect(await restored.run({ do: 'logs.renew' })).toEqual({ logs: { renewed: 17, unchanged: 0 } });
    expect(await memory.get(keys.event(feedLog('us'), 1))).toMatchObject({ account: first.account });
    expect(await restored.run({ do: 'keys.create' })).toHaveProperty('secret');
    expect(table.unused()).toEqual([]);
    const writes = [{ put: { ...keys.snapshot(first, 1), job: 1 } }];
    await expect(restored.log.append(first, [], writes)).rejects.toThrow(/may not/);
  });

  test('the evaluation of alert rules is granted exactly its calls', async () => {
    const memory = createMemoryTable();
    const table = guarded('alerts', memory);
    const history = guarded('alerts', createMemoryTable(historySchema), HISTORY);
    const rig = await createRig({ table: memory });
    const { now } = rig;
    rig.upstream.createJob({});
    await pollAccount(rig.deps, rig.ref, now() + 600_000);
    const kms = new FakeKms();
    const target = { kind: 'email', to: ['ops@acme.example'] };
    for (const condition of Object.keys(conditions)) {
      const rule = { id: condition.replaceAll('_', '-'), name: condition, condition, threshold: 0, target };
      const rules = { table: memory, now, targets: sealWithKms(memory, kms) };
      const made = await createAlertRule(
        { ...rules, allowPrivateNetworks: false, canMail: true },
        'us',
        rule,
        randomUUID,
      );
      expect(made).toMatchObject({ kind: 'created' });
    }
    // A divided sink has the health of its parts, and an endpoint has a dead event.
    await memory.write({ put: { ...keys.sink('us', TOPIC_SINK), kind: 'sns', target: 'arn' } });
    const erp = { kind: 'webhook', target: 'https://erp.example', accounts: [], types: [], paused: false };
    await memory.write({ put: { ...keys.sink('us', 'erp'), ...erp, lastFailedAt: now() } });
    await memory.write({ put: { ...keys.dead('us', 'erp', 'acme', 1), diedAt: now() } });
    const sent: string[] = [];
    const reports: AlertSummary[] = [];
    const run = createAlertsHandler({
      region: 'us',
      alerts: {
        ...{ table, history, now, targets: sealWithKms(table, kms), dashboardUrl: null },
        connections: createConnectionPool({ allowPrivateNetworks: false }),
        mailer: {
          domain: 'shop.example',
          send: async ({ subject }) => {
            sent.push(subject);
            return { kind: 'accepted', providerId: null };
          },
        },
      },
      telemetry: { alerts: (report) => void reports.push(report) },
    });
    const context = { getRemainingTimeInMillis: () => 55_000 };
    rig.pass(60);
    await Promise.all([run({}, context), run({}, context)]);
    expect(reports).toHaveLength(1);
    expect(reports[0]).toMatchObject({ rules: Object.keys(conditions).length, failed: 0, skipped: 0 });
    expect(sent).toContain('[Alert] dead_events (US)');
    rig.pass(60);
    await run({}, { getRemainingTimeInMillis: () => 1000 });
    expect(reports.at(-1)).toMatchObject({ skipped: Object.keys(conditions).length, firing: 0 });
    expect([...table.unused(), ...history.unused()]).toEqual([]);
  });

  test('API functions are granted exactly the table calls of their routes', async () => {
    const [memory, historyMemory] = [createMemoryTable(), createMemoryTable(historySchema)];
    const tables = { api: guarded('api', memory), manage: guarded('manage', memory) };
    const histories = {
      api: guarded('api', historyMemory, HISTORY),
      manage: guarded('manage', historyMemory, HISTORY),
    };
    const rig = await createRig({ table: memory });
    const { now, ref } = rig;
    const poll = async () => {
      rig.pass(60);
      await pollAccount(rig.deps, ref, now() + 600_000);
    };
    const job = rig.upstream.createJob({ orderNumber: 'x', orderGroup: 'x' });
    await poll();
    rig.upstream.dispatch(job);
    await poll();
    const first = await createKey({ table: memory, now }, { role: 'admin' }, OPERATOR);
    if (first.kind !== 'created') throw new Error(first.reason);
    // No server listens there.
    const nowhere = 'http://127.0.0.1:9';
    const services = { us: { baseUrl: nowhere, authUrl: nowhere, realm: 'us' } };
    const made = await createOperator({
      table: tables.manage,
      history: histories.manage,
      now,
      services,
    });
    const getLog = (table: Table) =>
      createEventLog(table, { now, newId: randomUUID, schemaBaseUrl: 'https://us.example' });
    const faults: unknown[] = [];
    const onError = (cause: unknown) => void faults.push(String(cause));
    const shared = (table: Table) => ({
      ...{ table, log: getLog(table), regions: ['us'], now, onError },
      requestLimit: createRequestLimit({ table, region: 'us', perMinute: 10_000, now }),
    });
    const targets = made.texts;
    const connections = createConnectionPool({ allowPrivateNetworks: false });
    const keyrings = [tables.api, tables.manage].map((table) => createKeyring({ table, now })) as [
      Keyring,
      Keyring,
    ];
    const apps = {
      read: createApi({
        ...{ ...shared(tables.api), keyring: keyrings[0], readFile: readApiFile },
        deliveries: createDeliveryLog(histories.api, { newId: randomUUID }),
      }),
      manage: createApi({
        ...{ ...shared(tables.manage), keyring: keyrings[1] },
        manage: {
          idempotency: createIdempotency({ table: tables.manage, now }),
          accounts: made.accounts,
          endpoints: {
            ...{ table: tables.manage, log: getLog(tables.manage), secrets: made.secrets, now },
            ...{ newId: randomUUID, schemaBaseUrl: 'https://us.example', allowPrivateNetworks: false },
            deliveries: createDeliveryLog(histories.manage, { newId: randomUUID }),
            open: async () => ({ maxBatch: 1, deliver: async () => [{ kind: 'delivered' }] }),
          },
        },
        alerts: {
          rules: { table: tables.manage, now, targets, allowPrivateNetworks: false, canMail: true },
          sending: { targets, connections, mailer: acceptingMailer, dashboardUrl: null },
        },
      }),
    };
    // Notification routes are tested in notifications/cell.test.ts. Sign-in routes use no table.
    const others: readonly string[] = ['Notifications', 'Sign-in'];
    const asks = routes.filter(({ surface, spec }) => surface !== 'live' && !others.includes(spec.tag));
    const unasked = new Set(asks.map(({ spec }) => spec.id));
    /** Sends a request as API Gateway does; returns a successful answer. */
    async function ask(method: string, path: string, body?: object) {
      const { pathname } = new URL(path, 'https://us.example');
      const [asked] = routes
        .filter(({ spec }) => spec.method === method && getPath(spec.path).test(pathname))
        .sort((a, b) => Number(a.spec.path.includes('{')) - Number(b.spec.path.includes('{')));
      if (!asked || asked.surface === 'live') throw new Error(`There is no route ${method} ${path}.`);
      unasked.delete(asked.spec.id);
      const answer = await apps[asked.surface].request(path, {
        method: method.toUpperCase(),
        headers: {
          authorization: `Bearer ${first.kind === 'created' ? first.secret : ''}`,
          ...(body ? { 'content-type': 'application/json' } : {}),
          'idempotency-key': hash('sha256', `${path} ${JSON.stringify(body)}`),
        },
        ...(body ? { body: JSON.stringify(body) } : {}),
      });
      const text = await answer.text();
      expect([200, 201, 202, 204], `${method} ${path}: ${text} ${faults}`).toContain(answer.status);
      return /json/.test(answer.headers.get('content-type') ?? '') ? JSON.parse(text) : text;
    }
    for (const path of [
      ...['/healthz', '/readyz', '/openapi.json', '/asyncapi.json', '/docs'],
      '/schemas/v1/job.closed.json',
    ])
      await ask('get', path);
    const page = await ask('get', '/docs');
    for (const [, path = ''] of String(page).matchAll(/"(docs\/[^"#]+)"/g)) await ask('get', `/${path}`);
    for (const path of ['', '/job.created', '/job.created/schema', '/job.created/example']) {
      await ask('get', `/v1/event-types${path}`);
    }

    const target = { kind: 'email', to: ['ops@acme.example'] };
    const rule = { id: 'late', name: 'Late', condition: 'late_jobs', threshold: 1, target };
    await ask('post', '/v1/alert-rules', rule);
    await ask('patch', '/v1/alert-rules/late', { enabled: false, target });
    await ask('get', '/v1/alert-rules');
    await ask('get', '/v1/alert-rules/late');
    await ask('post', '/v1/alert-rules/late/test');
    await ask('delete', '/v1/alert-rules/late');

    const key = await ask('post', '/v1/keys', { role: 'read' });
    expect(await ask('post', '/v1/keys', { role: 'read' })).toEqual(key);
    for (const path of ['key', 'keys', `keys/${key.key.id}`]) await ask('get', `/v1/${path}`);
    await ask('delete', `/v1/keys/${key.key.id}`);

    await memory.write({ put: { ...keys.pairing('000000'), expiresAt: 0 } });
    const pairing = await ask('post', '/v1/wall-pairings');
    await ask('post', '/v1/wall-pairings/approval', { code: pairing.code, name: 'Desk', accounts: ['acme'] });
    await ask('post', '/v1/wall-pairings/key', {
      code: pairing.code,
      deviceToken: pairing.deviceToken,
    });

    const credentials = { clientId: 'id', clientSecret: 'secret' };
    // Enough for every shard of wake marks.
    const ids = Array.from({ length: 16 }, (_, n) => `acme-${n}`);
    for (const id of ids) {
      await ask('post', '/v1/accounts', { id, credentials });
      await memory.write({
        update: keys.status({ region: 'us', account: id }),
        set: { state: 'identity_mismatch' },
      });
      await ask('post', `/v1/accounts/${id}/confirm`, {});
    }
    const account = '/v1/accounts/acme-0';
    await ask('patch', account, { pollIntervalSeconds: 300 });
    await ask('put', `${account}/credentials`, credentials);
    for (const verb of ['test', 'pause', 'resume']) await ask('post', `${account}/${verb}`);
    await ask('post', '/v1/credentials/test', { credentials });

    const head = await rig.log.head(ref);
    const event = `acme.${head?.epoch}.${head?.sequence}`;
    const tracked = '/v1/accounts/acme';
    for (const path of ['', '?include=status', '/acme', '/acme/status', '/acme/polls', '/acme/jobs']) {
      await ask('get', `/v1/accounts${path}`);
    }
    for (const query of [
      'status=x',
      'orderNumber=x',
      'orderGroup=x',
      'dueBefore=2099-01-01',
      'dueOn=2099-01-01',
      'late=true',
      'undispatched=true',
      'dispatchedOn=2099-01-01',
      `jobNumber=${job}`,
      'status=x&dueFrom=2026-01-01&sort=-dateDue&expand=detail,events',
      'dispatchedFrom=2026-01-01&sort=dateOut&expand=detail,events',
      'expand=detail,events',
    ]) {
      await ask('get', `${tracked}/jobs?${query}`);
    }
    await ask('get', `${tracked}/status-durations`);
    await ask('get', `/v1/search?q=${job}`);
    await ask('get', '/v1/figures');
    // A key for some accounts reads only their counts.
    const some = await ask('post', '/v1/keys', { role: 'read', accounts: ['acme'] });
    const figures = await apps.read.request('/v1/figures', {
      headers: { authorization: `Bearer ${some.secret}` },
    });
    expect(figures.status).toBe(200);
    for (const what of ['rollups', 'open-jobs']) {
      await ask('get', `${tracked}/${what}`);
      await ask('get', `/v1/regions/us/${what}`);
    }
    for (const path of ['', '/events', '/deliveries']) await ask('get', `${tracked}/jobs/${job}${path}`);
    await ask('get', `/v1/events/${event}`);
    for (const path of ['', '/us']) await ask('get', `/v1/regions${path}`);

    const start = { at: new Date(now()).toISOString() };
    const hook = { id: 'erp', url: 'https://erp.example.com/' };
    await ask('post', '/v1/endpoints', { ...hook, start });
    const endpoint = '/v1/endpoints/erp';
    await ask('patch', endpoint, { accounts: ['acme'] });
    for (const verb of ['pause', 'resume', 'enable', 'ping']) await ask('post', `${endpoint}/${verb}`);
    await ask('post', `${endpoint}/resend`, { event });
    await ask('get', `/v1/events/${event}/deliveries`);
    await ask('post', `${endpoint}/rotate-secret`, {});
    const replay = await ask('post', `${endpoint}/replays`, { from: 'beginning' });
    for (const path of [
      '',
      '/health',
      ...['1h', '24h', '7d'].map((window) => `/statistics?window=${window}`),
      '/deliveries',
      '/deliveries?outcome=failed',
      '/deliveries?types=job.created&from=2026-01-01T00:00:00Z',
      '/parked',
      '/dead',
      '/replays',
    ]) {
      await ask('get', `${endpoint}${path}`);
    }
    await ask('get', '/v1/endpoints');
    // A divided sink has the health of its parts.
    const topic = keys.sink('us', TOPIC_SINK);
    const part = keys.sinkState('us', getDrainName(TOPIC_SINK, 'acme'));
    await memory.write({ put: { ...topic, kind: 'sns', target: 'arn' } });
    await memory.write({ put: { ...part, disabledAt: 1, leaseToken: 1 } });
    await ask('get', '/v1/endpoints');
    await ask('post', `/v1/endpoints/${TOPIC_SINK}/enable`);
    expect(await memory.get(part)).not.toHaveProperty('disabledAt');
    await memory.write({ delete: topic });
    await ask('get', `${endpoint}/replays/${replay.id}`);
    await ask('post', `${endpoint}/replays/${replay.id}/cancel`);
    const aside = {
      account: 'acme',
      lane: '1',
      sequence: 1,
      type: 'job.created',
      eventId: event,
      parkedAt: 0,
    };
    await memory.write({ put: { ...keys.parked('us', 'erp', 'acme', '1', 1), ...aside } });
    await ask('post', `${endpoint}/redeliver`, { states: ['parked'] });
    // Items of the attention queue: a disabled endpoint with parked events, and accounts without credentials that are accepted.
    await memory.write({ update: keys.sink('us', 'erp'), set: { disabledAt: now() } });
    const { items } = await ask('get', '/v1/attention');
    const attended = items.map(({ id }: { id: string }) => id);
    expect(attended.length).toBeGreaterThan(0);
    for (const id of attended) {
      const item = `/v1/attention/${encodeURIComponent(id)}`;
      await ask('get', item);
      for (const [verb, body] of Object.entries({
        snooze: { until: new Date(now() + DAY_MS).toISOString() },
        acknowledge: {},
        reopen: {},
        assign: { assignee: 'Ann' },
        note: { note: 'Called.' },
      }))
        await ask('post', `${item}/${verb}`, body);
      await ask('get', `${item}/history`);
    }
    await ask('post', `${endpoint}/enable`);
    for (const verb of ['retry', 'discard']) {
      await memory.write({
        put: { ...keys.parked('us', 'erp', 'acme', '1', 1), ...aside },
      });
      await ask('post', `${endpoint}/parked/${verb}`, { all: true });
    }
    const getProblems = ({ results }: { results: { problem: unknown }[] }) =>
      results.map(({ problem }) => problem);
    for (const action of ['pause', 'resume', 'enable', 'retry', 'discard'])
      for (const which of [{ ids: ['erp'] }, { all: true }])
        expect(getProblems(await ask('post', '/v1/endpoints/batch', { action, ...which })), action).toEqual([
          null,
        ]);
    for (const action of ['pause', 'resume'])
      for (const which of [{ ids: ['acme-0'] }, { all: true }])
        expect(new Set(getProblems(await ask('post', '/v1/accounts/batch', { action, ...which })))).toEqual(
          new Set([null]),
        );
    await memory.write({ put: { ...keys.dead('us', 'erp', 'acme-0', 1), at: 0 } });
    await ask('delete', endpoint);
    // A marked job, whose pointer is deleted with the account and written again by the import.
    const known = await memory.get(keys.snapshot(ref, job));
    const { list, announced, ...rest } = JSON.parse(String(known?.snapshot));
    const undispatched = { list: { ...list, dateOut: null }, announced: { ...announced, dateOut: null } };
    const marked = { ...rest, ...undispatched, stay: { since: 0, attention: true } };
    await memory.write({ put: { ...keys.snapshot(ref, job), ...known, snapshot: JSON.stringify(marked) } });
    await memory.write({ put: { ...keys.markedJob(ref, job) } });
    // Actions in the attention queue.
    await memory.write({ put: { ...keys.attention('us', `acme~job~${job}`), revision: 1 } });
    await memory.write({ put: { ...keys.attentionEntry('us', `acme~job~${job}`, 1), at: 0 } });
    // A move to another cell.
    for (const method of ['put', 'delete', 'put'])
      await ask(method, `${tracked}/move`, ...(method === 'put' ? [{ to: 'other' }] : []));
    const moved = await ask('post', `${tracked}/export`, {});
    // It outlives the first of its accounts.
    await ask('post', '/v1/keys', { role: 'read', accounts: ['acme', 'acme-0'] });
    for (const id of ['acme', ...ids]) await ask('delete', `/v1/accounts/${id}`);
    // Until then, the id of a deleted account cannot be reused.
    rig.pass(3600);
    await ask('post', '/v1/accounts', { id: 'acme-0', credentials, paused: true });
    await ask('post', '/v1/accounts/import', { data: moved.data, credentials });
    for (const { spec } of routes.filter(({ surface }) => surface === 'live')) {
      const path = spec.path.replace('{id}', spec.path.includes('regions') ? 'us' : 'acme-0');
      const headers = { authorization: `Bearer ${first.secret}` };
      const answer = await apps.read.request(path, { method: 'HEAD', headers });
      expect([200, 404], `HEAD ${path}`).toContain(answer.status);
    }
    await Promise.all(keyrings.map((keyring) => keyring.settled()));
    expect([...unasked]).toEqual([]);
    // Read-only functions reject changes.
    const wrong = await apps.manage.request('/v1/key', {
      method: 'POST',
      headers: { authorization: `Bearer ${first.secret}` },
    });
    expect([wrong.status, wrong.headers.get('allow')]).toEqual([405, 'GET, HEAD']);
    for (const table of [...Object.values(tables), ...Object.values(histories)]) {
      const unused = table.unused().filter(isOwn);
      // Recipients need existing accounts, and previews their jobs.
      const ofNotifications = [
        'ConditionCheckItem ACCOUNTS#us',
        'GetItem JOBS#us#*',
        'GetItem DURATIONS#us#*',
        'PutItem SEARCH#us#*#*',
      ];
      // Test e-mails need a mail server.
      ofNotifications.push('GetItem TESTEMAILS#us', 'UpdateItem TESTEMAILS#us');
      // The attention queue of a region with more than 300 accounts.
      const ofLargeRegions = table === tables.api ? ['Query due'] : [];
      const left = unused
        .map(({ action, pattern, index }) => `${action} ${pattern ?? index}`)
        .filter((one) => !ofLargeRegions.includes(one));
      expect(left.filter((one) => table !== tables.manage || !ofNotifications.includes(one))).toEqual([]);
    }
  });

  test('only deliveries, pings, notes to customers and deletions of accounts write the history; the API reads it in every order', async () => {
    const actions = (name: FunctionName) => [
      ...new Set(tableStatements(name, HISTORY).flatMap(({ Action }) => Action)),
    ];
    expect(Object.fromEntries(FUNCTION_NAMES.map((name) => [name, actions(name)]))).toEqual({
      tick: [],
      pollAccount: [],
      wakeSinks: [],
      // Drains read and write the statistics of their sink.
      drainSink: ['dynamodb:BatchWriteItem', 'dynamodb:GetItem', 'dynamodb:PutItem'],
      // The `failures` index only.
      alerts: [],
      notify: expect.any(Array),
      mailFeedback: expect.any(Array),
      api: expect.arrayContaining(['dynamodb:BatchGetItem', 'dynamodb:Query']),
      // Actions in the attention queue read the messages to customers again.
      manage: [
        ...['dynamodb:BatchWriteItem', 'dynamodb:BatchGetItem', 'dynamodb:DeleteItem', 'dynamodb:GetItem'],
        ...['dynamodb:PutItem', 'dynamodb:Query'],
      ],
      live: [],
      operate: [],
      publishDashboard: [],
    });
    const memory = createMemoryTable(historySchema);
    const getLog = (name: FunctionName) =>
      createDeliveryLog(guarded(name, memory, HISTORY), { newId: randomUUID });
    const entry = {
      region: 'us',
      sink: 'erp',
      eventId: 'e1',
      type: 'job.created',
      account: 'acme',
      sequence: 1,
      at: 0,
      latencyMs: 1,
      outcome: 'retry',
      cause: 'live',
    } as const;
    await getLog('drainSink').record([entry]);
    const log = getLog('api');
    for (const outcome of [undefined, 'failed', 'retry'] as const) {
      expect(await log.bySink('us', 'erp', { outcome })).toEqual({ entries: [entry] });
    }
    expect(await log.bySink('us', 'erp', { outcome: 'delivered' })).toEqual({ entries: [] });
    expect(await log.byEvent('us', 'e1')).toEqual([entry]);
    expect(await readDeliveryHealth(log, { region: 'us', id: 'erp' }, 1)).toMatchObject({ attempts: 1 });
  });

  test('account credentials are readable for polling and changes, signing secrets for delivery and changes', () => {
    const readers = (partition: string) =>
      FUNCTION_NAMES.filter((name) =>
        tableStatements(name).some((statement) => leadingKeys(statement).includes(partition)),
      );
    expect(readers('CREDENTIALS#us')).toEqual(['pollAccount', 'manage']);
    expect(readers('SECRETS#us')).toEqual(['drainSink', 'manage']);
    expect(readers('ALERTTARGETS#us')).toEqual(['alerts', 'manage']);
    expect(readers('DATAKEYS#us')).toEqual(['pollAccount', 'drainSink', 'alerts', 'manage']);
    const owned = FUNCTION_NAMES.filter((name) =>
      getStatements(name).some(({ Action }) => [Action].flat().includes('secretsmanager:GetSecretValue')),
    );
    expect(owned).toEqual(['pollAccount', 'manage']);
  });
});

describe('functions', () => {
  test('all run on Node 24 on arm64, untraced, and log to their own group with retention', () => {
    for (const [stackName, template] of templates) {
      const functions = Object.entries(template.findResources('AWS::Lambda::Function'));
      expect(functions).toHaveLength(getFunctions(stackName).length);
      const groups = functions.map(([id, { Properties }]) => {
        expect(Properties, id).toMatchObject({ Runtime: 'nodejs24.x', Architectures: ['arm64'] });
        expect(Properties, id).not.toHaveProperty('TracingConfig');
        return Properties.LoggingConfig.LogGroup.Ref as string;
      });
      expect(new Set(groups).size, stackName).toBe(functions.length);
      for (const group of groups) {
        expect(template.findResources('AWS::Logs::LogGroup')[group]?.Properties).toHaveProperty(
          'RetentionInDays',
        );
      }
    }
  });

  test('an endpoint whose name does not resolve delays no other drain of its process', () => {
    // A process runs up to DRAINS.batchSize drains. Only half of the threads resolve names.
    for (const stackName of templates.keys()) {
      if (!getFunctions(stackName).includes('drainSink')) continue;
      expect(Number(getEnvironment('drainSink', stackName).UV_THREADPOOL_SIZE)).toBeGreaterThan(
        2 * DRAINS.batchSize,
      );
    }
  });

  test.each(FUNCTION_NAMES)('%s has its whole environment, and the values are valid', (name) => {
    for (const stackName of templates.keys()) {
      if (!getFunctions(stackName).includes(name)) continue;
      expect(() => readEnv<z.ZodObject>(FUNCTIONS[name].env, getEnvironment(name, stackName))).not.toThrow();
    }
  });
});

describe('rules', () => {
  test('AwsSolutions finds nothing that is not acknowledged', () => {
    expect(new AwsSolutionsChecks().validateScope(app).violations).toEqual([]);
  });

  test('each acknowledgement has a reason', () => {
    const reasons = app.node
      .findAll()
      .flatMap(({ node }) =>
        node.metadata
          .filter(({ type }) => type === Validations.ACKNOWLEDGED_RULES_METADATA_KEY)
          .flatMap(({ data }) => Object.entries(data as Record<string, string>)),
      );
    expect(reasons.length).toBeGreaterThan(0);
    for (const [rule, reason] of reasons) expect(reason, rule).toMatch(/^[A-Z].{30,}\.$/);
  });
});

// The templates

/** The production API's settings. */
function prodApi(): StageSettings['api'] {
  const prod = stages.find(({ stage }) => stage === 'prod');
  if (!prod) throw new Error('There is no such stage.');
  return prod.api;
}

/**
 * The function that the REST API sends a request to, if at each resource only the best child counts: a literal before a
 * variable, a variable before the rest of the path. API Gateway finds no fewer.
 */
function route(method: string, path: string, stackName?: string): 'api' | 'manage' | 'live' | undefined {
  const { root, resources, methods, functions } = findRestApi(stackName);
  let at = root;
  const parts = path.split('/').filter((part) => part !== '');
  for (let part = parts.shift(); part !== undefined; part = parts.shift()) {
    const children = resources.get(at) ?? [];
    const child = (name: string | undefined) =>
      children.find(({ PathPart }: Properties) => PathPart === name);
    const found = child(part) ?? child('{id}') ?? child('{proxy+}');
    if (!found) return undefined;
    if (found === child('{proxy+}')) parts.length = 0;
    at = JSON.stringify({ Ref: found.id });
  }
  const here = methods.get(at) ?? [];
  const found =
    here.find(({ HttpMethod }) => HttpMethod === method) ??
    here.find(({ HttpMethod }) => HttpMethod === 'ANY');
  const integration = JSON.stringify(found?.Integration ?? {});
  return functions.find(([, id]) => integration.includes(`"${id}"`))?.[0];
}

/** The resources of a REST API by their parent, the methods by their resource, and the functions. */
interface RestApi {
  readonly root: string;
  readonly resources: ReadonlyMap<string, readonly Properties[]>;
  readonly methods: ReadonlyMap<string, readonly Properties[]>;
  readonly functions: readonly (readonly ['api' | 'manage' | 'live', id: string])[];
}

const restApis = new Map<string, RestApi>();

function findRestApi(stackName = 'jobwire-prod-us'): RestApi {
  const known = restApis.get(stackName);
  if (known) return known;
  const resources = all('AWS::ApiGateway::Resource', stackName).map(([id, { Properties }]) => ({
    id,
    ...Properties,
  }));
  const methods = all('AWS::ApiGateway::Method', stackName).map(([, { Properties }]) => Properties);
  const names = ['api', 'manage', 'live'] as const;
  const found: RestApi = {
    root: JSON.stringify({
      'Fn::GetAtt': [one('AWS::ApiGateway::RestApi', undefined, stackName)[0], 'RootResourceId'],
    }),
    resources: Map.groupBy(resources, ({ ParentId }: Properties) => JSON.stringify(ParentId)),
    methods: Map.groupBy(methods, ({ ResourceId }) => JSON.stringify(ResourceId)),
    functions: names.map((name) => [name, one('AWS::Lambda::Function', FUNCTIONS[name].id, stackName)[0]]),
  };
  restApis.set(stackName, found);
  return found;
}

/** Paths of a route. */
function getPath(path: string): RegExp {
  return new RegExp(`^${path.replace(/\{\w+\}/g, '[^/]+')}$`);
}

function eventTopics(template: Template): [string, Resource][] {
  const topics = Object.entries(template.findResources('AWS::SNS::Topic')) as [string, Resource][];
  return topics.filter(([id]) => EVENTS.test(id));
}

function stacks(): Stack[] {
  return app.node.children.filter((child) => child instanceof CellStack);
}

function all(type: string, stackName = 'jobwire-prod-us'): [string, Resource][] {
  return Object.entries(templates.get(stackName)?.findResources(type) ?? {}) as [string, Resource][];
}

/** The only resource of a type whose logical id matches. */
function one(type: string, id = /./, stackName = 'jobwire-prod-us'): [string, Resource] {
  const [found, ...more] = all(type, stackName).filter(([logicalId]) => id.test(logicalId));
  if (!found || more.length > 0) throw new Error(`${stackName} has not exactly one ${type} ${id}.`);
  return found;
}

function expectSchema(table: Properties, schema: TableSchema): void {
  const keySchema = (partitionKey: string, sortKey: string) => [
    { AttributeName: partitionKey, KeyType: 'HASH' },
    { AttributeName: sortKey, KeyType: 'RANGE' },
  ];
  expect(table).toMatchObject({
    KeySchema: keySchema(schema.partitionKey, schema.sortKey),
    TimeToLiveSpecification: { AttributeName: schema.ttlAttribute, Enabled: true },
    BillingMode: 'PAY_PER_REQUEST',
  });
  expect(table.GlobalSecondaryIndexes).toEqual(
    Object.entries(schema.indexes).map(([IndexName, { partitionKey, sortKey, holds }]) => ({
      IndexName,
      KeySchema: keySchema(partitionKey, sortKey),
      Projection: { ProjectionType: holds === 'keys' ? 'KEYS_ONLY' : 'ALL' },
    })),
  );
}

function getEnvironment(name: FunctionName, stackName?: string): Record<string, string> {
  const { Environment } = one('AWS::Lambda::Function', FUNCTIONS[name].id, stackName)[1].Properties;
  const { Variables } = Environment as { Variables: Record<string, unknown> };
  // Known only after deployment: names, ARNs and URLs.
  return Object.fromEntries(
    Object.entries(Variables).map(([key, value]) => [
      key,
      typeof value === 'string' ? value : key.endsWith('_URL') ? 'https://deployed.example/' : 'deployed',
    ]),
  );
}

/** The CDK splits policies that exceed a role's own limit. */
const POLICIES = ['AWS::IAM::Policy', 'AWS::IAM::ManagedPolicy'];

function allStatements(template: Template): Statement[] {
  return POLICIES.flatMap((type) => Object.values(template.findResources(type))).flatMap(
    ({ Properties }) => Properties.PolicyDocument.Statement as Statement[],
  );
}

function getStatements(name: FunctionName): Statement[] {
  const { Role } = one('AWS::Lambda::Function', FUNCTIONS[name].id)[1].Properties;
  const role = (Role as { 'Fn::GetAtt': string[] })['Fn::GetAtt'][0];
  return POLICIES.flatMap((type) => all(type)).flatMap(([, { Properties }]) => {
    const attached = (Properties.Roles as { Ref: string }[]).some(({ Ref }) => Ref === role);
    return attached ? (Properties.PolicyDocument as { Statement: Statement[] }).Statement : [];
  });
}

/** Statements about a table itself: not about its indexes, nor about its stream. */
function tableStatements(name: FunctionName, which = STATE): Statement[] {
  const [table] = one('AWS::DynamoDB::GlobalTable', which);
  return getStatements(name).filter(({ Resource }) =>
    [Resource].flat().some((resource) => JSON.stringify(resource) === `{"Fn::GetAtt":["${table}","Arn"]}`),
  );
}

function getGrants(name: FunctionName, which = STATE): Grant[] {
  return grantsOn(one('AWS::DynamoDB::GlobalTable', which)[0], getStatements(name));
}

/** A mail server that accepts everything. */
const acceptingMailer = {
  domain: 'shop.example',
  send: async () => ({ kind: 'accepted' as const, providerId: null }),
};

/** Whether a grant does not concern notifications, which notifications/cell.test.ts covers. */
const isOwn = ({ pattern = '' }: Grant): boolean =>
  !/^(NOTIFY|RECIPIENTS|RECIPIENTSOF|TEMPLATES|SUPPRESSED|THREADS|MESSAGES|SMSUSE|LINKKEY|SENT|SENTJOB|SENTTO)#/.test(
    pattern,
  );

/** A table that allows what the function's policy allows. */
const guarded = (name: FunctionName, table: Table, which = STATE) =>
  guardedBy(name, getGrants(name, which), table);

// The stream

type Pattern = { readonly [key: string]: Pattern | readonly (string | { exists: boolean })[] };

/** Lambda's event filter, with the operators used here: literals, or `exists` at a leaf. */
function matches(pattern: Pattern, record: unknown): boolean {
  return Object.entries(pattern).every(([key, rule]) => {
    const value = typeof record === 'object' && record !== null ? Reflect.get(record, key) : undefined;
    if (!Array.isArray(rule)) return matches(rule as Pattern, value);
    return rule.some((alternative) => {
      const isLeaf = value !== undefined && typeof value !== 'object';
      return typeof alternative === 'string' ? value === alternative : alternative.exists === isLeaf;
    });
  });
}

/** The items that registering an account and one commit with events leave in the table. */
async function writesOfACommit(): Promise<Item[]> {
  const memory = createMemoryTable();
  const written = new Map<string, Item>();
  async function note(write: Write): Promise<void> {
    const key = 'put' in write ? write.put : 'update' in write ? write.update : undefined;
    const item = key && (await memory.get({ pk: key.pk, sk: key.sk }));
    if (item) written.set(`${item.pk} ${item.sk}`, item);
  }
  const table: typeof memory = {
    ...memory,
    async write(write) {
      const outcome = await memory.write(write);
      await note(write);
      return outcome;
    },
    async transact(writes, token) {
      const outcome = await memory.transact(writes, token);
      for (const write of writes) await note(write);
      return outcome;
    },
  };
  const ref = { region: 'us', account: 'acme' };
  const log = createEventLog(table, {
    now: () => 0,
    newId: randomUUID,
    schemaBaseUrl: 'https://us.jobwire.example',
  });
  const account = { ...ref, secretRef: 'acme', pollIntervalSeconds: 60, paused: false };
  await registerAccount(table, log, account, { now: 0, epoch: 'e1' });
  const head = await log.head(ref);
  if (!head) throw new Error('The account has no log.');
  await log.commit(ref, {
    revision: 0,
    head,
    events: [
      { type: 'account.credentials_accepted', time: 0, data: {} },
      { type: 'account.credentials_accepted', time: 0, data: {} },
    ],
    writes: [
      { put: { ...keys.shard(ref, 1), packed: new Uint8Array([1]) } },
      { put: { ...keys.snapshot(ref, 1), sequence: 1 } },
    ],
  });
  await table.write({ put: { ...keys.token(ref), value: 'token', version: 'v1' } });
  await table.write({ put: { ...keys.cursor('us', 'topic', 'acme'), position: 1, mark: 2 } });
  await table.write({ put: { ...keys.sink('us', 'topic'), kind: 'sns' } });
  return [...written.values()];
}

function putRecord(item: Item) {
  const NewImage = Object.fromEntries(
    Object.entries(item).flatMap(([name, value]) => (value === undefined ? [] : [[name, attribute(value)]])),
  );
  return {
    ...deleteRecord(item),
    eventName: 'INSERT',
    dynamodb: { ...deleteRecord(item).dynamodb, NewImage },
  };
}

function deleteRecord(item: Item) {
  const Keys = { pk: { S: item.pk }, sk: { S: item.sk } };
  return {
    eventName: 'REMOVE',
    eventSource: 'aws:dynamodb',
    dynamodb: { Keys, SequenceNumber: '1', SizeBytes: 1, StreamViewType: 'NEW_IMAGE' },
  };
}

function attribute(value: Value): object {
  if (typeof value === 'string') return { S: value };
  if (typeof value === 'number') return { N: String(value) };
  if (typeof value === 'boolean') return { BOOL: value };
  if (value === null) return { NULL: true };
  if (value instanceof Uint8Array) return { B: Buffer.from(value).toString('base64') };
  return { L: value.map((text) => ({ S: text })) };
}
