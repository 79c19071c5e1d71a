/**
 * The effect of a cell's settings on its stack: a restored table, its own key; and the resources that outlive the stack.
 * One file: its tests share the synthesized cells.
 */
import { App, CfnResource, TagManager } from 'aws-cdk-lib';
import { Template } from 'aws-cdk-lib/assertions';
import { AwsSolutionsChecks } from 'cdk-nag';
import { describe, expect, test } from 'vitest';
import { findCell, SMOKE_PREFIX } from '../../infra/cell.ts';
import { SmokeStack } from '../../infra/smoke-stack.ts';
import { EVERY_OPTION, type Resource, type Statement, stages, synthesize } from '../support/cells.ts';

const TABLE = 'jobwire-prod-us-restored-2026-03-02';
const STREAM = `arn:aws:dynamodb:us-east-1:111122223333:table/${TABLE}/stream/2026-03-02T09:00:00.000`;
const RESTORED = { name: TABLE, streamArn: STREAM, restoredAt: '2026-03-02T08:30:00Z' };

describe('two cells of one region in one AWS account and region', () => {
  const withDomains = (name: string) => ({
    ...EVERY_OPTION,
    ...{ region: 'us' as const, stateTable: undefined },
    dashboardDomain: { name: `${name}.jobwire.example` },
    apiDomain: { name: `api.${name}.jobwire.example` },
  });
  const us = synthesize('prod', { cell: withDomains('us') });
  const large = synthesize('prod', { id: 'large', cell: withDomains('large') });

  /** Texts of a template that are names: of resources, of policies within them, of exports. */
  function listNames(value: unknown, path = ''): string[] {
    if (typeof value === 'string') return /(Name|Export)$/.test(path) ? [`${path} ${value}`] : [];
    if (typeof value !== 'object' || value === null) return [];
    return Object.entries(value).flatMap(([key, inner]) => listNames(inner, `${path}.${key}`));
  }
  /** Names that are unique within a resource, or that several resources share on purpose. */
  const LOCAL =
    /(Attribute|Index|Metric|Policy|Display|Parameter|Header|Stage|Rule|Claim|Schema|Selection)Name |Metric\S*\.Name|Dimensions|\.Rules|TagName|KeySchema/;

  test('no name of a resource, an output’s export or a secret is the same', () => {
    const [own = [], others = []] = [us, large].map(({ template }) =>
      listNames(template.toJSON()).filter((name) => !LOCAL.test(name)),
    );
    expect(own.length).toBeGreaterThan(30);
    expect(own.filter((name) => others.includes(name))).toEqual([]);
    const text = JSON.stringify(large.template.toJSON());
    for (const own of ['secret:jobwire/prod/large/accounts/*', 'jobwire:secrets":"prod/large"'])
      expect(text.includes(own), own).toBe(true);
    expect(text.match(/.{0,40}(jobwire-prod-us\b|prod\/us\b).{0,40}/)?.[0]).toBeUndefined();
  });

  test('functions, metrics and tags name the cell, and keys in the table name the region', () => {
    for (const { fn } of large.functions()) {
      const { Variables } = fn.Properties.Environment ?? {};
      if (Variables?.JOBWIRE_STAGE === undefined) continue;
      expect(Variables).toMatchObject({ JOBWIRE_CELL: 'large', JOBWIRE_REGION: 'us' });
    }
    const alarms = JSON.stringify(large.resources('AWS::CloudWatch::Alarm'));
    expect(alarms).toContain('"Value":"prod-large"');
    expect(alarms).not.toContain('"Value":"prod-us"');
    expect(JSON.stringify(large.policies())).toContain('ACCOUNTS#us');
    const [[, queue] = []] = large.resources('AWS::SQS::Queue');
    expect(queue?.Properties.Tags).toContainEqual({ Key: 'cell', Value: 'large' });
  });

  test('a cell of the former settings keeps its stack, as without a region in its settings', () => {
    const { region: _, ...former } = withDomains('us');
    expect(synthesize('prod', { cell: former }).template.toJSON()).toEqual(us.template.toJSON());
  });
});

describe('a cell that is recovered in another AWS region, with the same names', () => {
  const options = {
    ...EVERY_OPTION,
    ...{ hostedZone: undefined, dashboardDomain: undefined, apiDomain: undefined, backup: undefined },
    ...{ eventBus: {}, notifications: { from: 'orders@print.example', identity: 'print.example' } },
  };
  const [former, recovered] = (['us-east-1', 'eu-central-1'] as const).map((awsRegion) =>
    synthesize('prod', { cell: { ...options, awsRegion } }),
  ) as [ReturnType<typeof synthesize>, ReturnType<typeof synthesize>];

  test('shares no name of a service that has one namespace for all AWS regions', () => {
    const names = ({ template }: typeof former) =>
      Object.values(template.toJSON().Resources as Record<string, Resource>)
        .filter(({ Type }) => /^AWS::(CloudFront|Budgets|IAM|S3)::/.test(Type))
        .flatMap(({ Type, Properties }) =>
          [...JSON.stringify(Properties).matchAll(/"(Name|BudgetName|RoleName|BucketName)":"([^"]+)"/g)].map(
            ([, , name]) => `${Type} ${name}`,
          ),
        )
        .filter((name) => /jobwire/.test(name));
    expect(names(former).length).toBeGreaterThanOrEqual(7);
    expect(names(former).filter((name) => names(recovered).includes(name))).toEqual([]);
  });

  test('needs exactly the policy of the key in which the AWS region is replaced, as the guide describes', () => {
    const policy = ({ resources }: typeof former) =>
      JSON.stringify(resources('AWS::KMS::Key')[0]?.[1].Properties.KeyPolicy);
    expect(policy(former)).toContain('logs.us-east-1.amazonaws.com');
    expect(policy(former).replaceAll('us-east-1', 'eu-central-1')).toBe(policy(recovered));
  });
});

describe('resources that outlive the stack', () => {
  test.each(['prod', 'dev'] as const)(
    '%s: both tables, their key, and the role for the API’s logs',
    (stage) => {
      const { template } = synthesize(stage);
      const all = Object.entries(template.toJSON().Resources as Record<string, Resource>);
      const kept = all.filter(([, { DeletionPolicy }]) => DeletionPolicy?.startsWith('Retain'));
      expect(kept.map(([, { Type }]) => Type).sort()).toEqual([
        'AWS::ApiGateway::Account',
        'AWS::DynamoDB::GlobalTable',
        'AWS::DynamoDB::GlobalTable',
        'AWS::IAM::Role',
        'AWS::KMS::Key',
      ]);
      for (const [id, { Type, DeletionPolicy, UpdateReplacePolicy }] of all) {
        if (!/^AWS::(DynamoDB|KMS)/.test(Type)) continue;
        expect([DeletionPolicy, UpdateReplacePolicy], id).toEqual(['RetainExceptOnCreate', 'Retain']);
      }
    },
  );

  test('a first deployment that fails can be rolled back and repeated: nothing prevents its deletion or remains', () => {
    const { app, resources, template } = synthesize('prod', { cell: { established: false } });
    const [stack] = app.node.children as { terminationProtection?: boolean }[];
    expect(stack?.terminationProtection).toBe(false);
    for (const [id, { Properties }] of resources('AWS::DynamoDB::GlobalTable'))
      expect(Properties.Replicas[0].DeletionProtectionEnabled ?? false, id).toBe(false);
    for (const [id, { Properties }] of resources('AWS::SNS::Topic'))
      expect(Properties, id).not.toHaveProperty('ArchivePolicy');
    const kept = Object.values(template.toJSON().Resources as Record<string, Resource>).filter(
      ({ DeletionPolicy }) => DeletionPolicy === 'Retain',
    );
    // The role is shared by all cells of the AWS account in this AWS region.
    expect(kept.map(({ Type }) => Type).sort()).toEqual(['AWS::ApiGateway::Account', 'AWS::IAM::Role']);
  });

  test('in production tables and stack have deletion protection', () => {
    for (const [stage, isProtected] of [
      ['prod', true],
      ['dev', false],
    ] as const) {
      const { app, resources } = synthesize(stage);
      for (const [id, { Properties }] of resources('AWS::DynamoDB::GlobalTable')) {
        expect(Properties.Replicas[0].DeletionProtectionEnabled, id).toBe(isProtected);
      }
      const [stack] = app.node.children as { terminationProtection?: boolean }[];
      expect(stack?.terminationProtection).toBe(isProtected);
    }
  });

  test('every taggable resource has its tags', () => {
    const { app, resources } = synthesize('prod', { cell: { customerKey: true, standardTopic: true } });
    const tagged = app.node.findAll().flatMap((node) => {
      const tags = TagManager.of(node);
      return node instanceof CfnResource && tags
        ? [{ type: node.cfnResourceType, tags: tags.tagValues() }]
        : [];
    });
    expect(tagged.map(({ type }) => type)).toEqual(
      expect.arrayContaining(
        ['Lambda::Function', 'SQS::Queue', 'SNS::Topic', 'KMS::Key'].map((type) => `AWS::${type}`),
      ),
    );
    const whose = { project: 'jobwire', stage: 'prod', cell: 'us' };
    for (const { type, tags } of tagged) expect(tags, type).toMatchObject(whose);
    // Tables have theirs with each replica.
    for (const [id, { Properties }] of resources('AWS::DynamoDB::GlobalTable')) {
      const tags = Properties.Replicas[0].Tags as { Key: string; Value: string }[];
      expect(Object.fromEntries(tags.map(({ Key, Value }) => [Key, Value])), id).toEqual(whose);
    }
  });
});

describe('a cell on a restored table', () => {
  const plain = synthesize('prod');
  const restored = synthesize('prod', { cell: { stateTable: RESTORED } });

  test('creates no state table, and every reference uses the restored one', () => {
    const tables = restored.resources('AWS::DynamoDB::GlobalTable').map(([id]) => id);
    expect(tables).toEqual([expect.stringMatching(/^History/)]);
    const text = JSON.stringify(restored.template.toJSON());
    const [former = ''] = plain
      .resources('AWS::DynamoDB::GlobalTable')
      .map(([id]) => id)
      .filter((id) => /^State/.test(id));
    expect(former).not.toBe('');
    expect(text).not.toContain(former);
    expect(restored.template.findOutputs('TableName').TableName).toMatchObject({ Value: TABLE });
    const [mapping] = restored
      .resources('AWS::Lambda::EventSourceMapping')
      .filter(([, { Properties }]) => Properties.StartingPosition !== undefined);
    expect(mapping?.[1].Properties).toMatchObject({
      EventSourceArn: STREAM,
      StartingPosition: 'TRIM_HORIZON',
    });
    for (const { id, fn } of restored.functions()) {
      const { Variables } = fn.Properties.Environment;
      if (Variables.JOBWIRE_TABLE !== undefined) expect(Variables.JOBWIRE_TABLE, id).toBe(TABLE);
    }
  });

  test('grants the same permissions on the other table', () => {
    const grants = ({ functions }: typeof plain) =>
      functions().map(({ id, statements }) => [
        id,
        statements
          .flatMap(({ Action, Resource = [], Condition }) =>
            [Resource].flat().map((resource) => JSON.stringify([Action, Condition, nameless(resource)])),
          )
          .sort(),
      ]);
    expect(grants(restored)).toEqual(grants(plain));
  });

  test('has the restore time for every function that writes to a log; a table that was only kept does not', () => {
    const told = ({ functions }: typeof plain) =>
      functions().filter(({ fn }) => fn.Properties.Environment?.Variables.JOBWIRE_RESTORED_AT !== undefined);
    const writers = restored
      .functions()
      // wakeSinks fills the cell feed, whose retention is that of the logs.
      .filter(
        ({ id, fn }) =>
          /WakeSinks/.test(id) || fn.Properties.Environment?.Variables.JOBWIRE_RETENTION_DAYS !== undefined,
      );
    expect(writers.length).toBeGreaterThanOrEqual(5);
    expect(told(restored).map(({ id }) => id)).toEqual(writers.map(({ id }) => id));
    for (const { fn } of told(restored)) {
      expect(fn.Properties.Environment.Variables.JOBWIRE_RESTORED_AT).toBe(RESTORED.restoredAt);
    }
    const kept = synthesize('prod', { cell: { stateTable: { name: TABLE, streamArn: STREAM } } });
    expect([told(plain), told(kept)]).toEqual([[], []]);
  });

  test('violates no rule', () => {
    expect(new AwsSolutionsChecks().validateScope(restored.app).violations).toEqual([]);
  });
});

/** A resource of a policy without the name of the state table. */
function nameless(resource: unknown): string {
  const text = JSON.stringify(resource);
  return text
    .replace(/\{"Fn::GetAtt":\["State[A-Za-z0-9]+","(Stream)?Arn"\]\}/g, (_, stream) =>
      stream ? 'STREAM' : 'TABLE',
    )
    .replace(new RegExp(`"${STREAM}"`), 'STREAM')
    .replace(
      /\{"Fn::Join":\["",\["arn:aws:dynamodb:us-east-1:",\{"Ref":"AWS::AccountId"\},":table\/[^"/]+"\]\]\}/,
      'TABLE',
    )
    .replace(
      /\{"Fn::Join":\["",\["arn:aws:dynamodb:us-east-1:",\{"Ref":"AWS::AccountId"\},":table\/[^"/]+(\/index\/\w+)"\]\]\}/,
      '{"Fn::Join":["",[TABLE,"$1"]]}',
    );
}

describe('a cell with its own key', () => {
  const cell = synthesize('prod', { cell: { customerKey: true, standardTopic: true } });
  const plain = synthesize('prod', { cell: { standardTopic: true } });
  const [[keyId = '', key] = []] = cell.resources('AWS::KMS::Key');
  const KEY = { 'Fn::GetAtt': [keyId, 'Arn'] };

  test('rotates it each year and keeps it when the stack is deleted', () => {
    expect(cell.resources('AWS::KMS::Key')).toHaveLength(1);
    expect(key?.Properties).toMatchObject({ EnableKeyRotation: true, RotationPeriodInDays: 365 });
    expect(key?.DeletionPolicy).toBe('RetainExceptOnCreate');
    expect(cell.template.findOutputs('KeyArn').KeyArn).toMatchObject({ Value: KEY });
  });

  test('encrypts everything that it stores with it', () => {
    const of = (type: string) => {
      const found = cell.resources(type);
      expect(found.length, type).toBeGreaterThan(0);
      expect(found).toHaveLength(plain.resources(type).length);
      return found;
    };
    for (const [id, { Properties }] of of('AWS::DynamoDB::GlobalTable')) {
      expect(Properties.SSESpecification, id).toEqual({ SSEEnabled: true, SSEType: 'KMS' });
      expect(Properties.Replicas[0].SSESpecification, id).toEqual({ KMSMasterKeyId: KEY });
    }
    for (const [id, { Properties }] of of('AWS::SQS::Queue')) {
      expect(Properties, id).toMatchObject({ KmsMasterKeyId: KEY, KmsDataKeyReusePeriodSeconds: 3600 });
      expect(Properties, id).not.toHaveProperty('SqsManagedSseEnabled');
    }
    for (const [id, { Properties }] of of('AWS::SNS::Topic'))
      expect(Properties.KmsMasterKeyId, id).toEqual(KEY);
    for (const [id, { Properties }] of of('AWS::Logs::LogGroup'))
      expect(Properties.KmsKeyId, id).toEqual(KEY);
  });

  test('allows each function to use it through the services that it may use, and through no others', () => {
    for (const { id, statements } of cell.functions()) {
      const services = new Set(
        statements.flatMap(({ Action }) => Action).map((action) => action.split(':')[0]),
      );
      const keyStatements = statements.filter(
        (statement) => isOfKms(statement) && getViaService(statement) !== undefined,
      );
      const via = keyStatements.map((statement) => getViaService(statement));
      const encrypted = ['dynamodb', 'secretsmanager', 'sns', 'sqs'].filter((service) =>
        services.has(service),
      );
      expect(via.sort(), id).toEqual(encrypted.map((service) => `${service}.us-east-1.amazonaws.com`));
      for (const { Action, Resource } of keyStatements) {
        expect(Resource, id).toEqual(KEY);
        expect([Action].flat(), id).toContain('kms:Decrypt');
        expect(
          [Action].flat().filter((action) => /\*|Grant|Put|Schedule|Disable/.test(action)),
          id,
        ).toEqual([]);
      }
    }
  });

  test('is used for data only after every function has the permission, so an existing cell runs while it changes', () => {
    const permissions = cell
      .policies()
      .filter(([, { Properties }]) => JSON.stringify(Properties).includes('kms:ViaService'));
    expect(permissions.length).toBeGreaterThan(8);
    for (const [id, { Properties }] of permissions) {
      // A policy that names queues or tables changes after these.
      const statements = Properties.PolicyDocument.Statement as Statement[];
      for (const { Resource } of statements) expect(Resource, id).toEqual(KEY);
    }
    for (const type of ['AWS::DynamoDB::GlobalTable', 'AWS::SQS::Queue', 'AWS::SNS::Topic'])
      for (const [id, { DependsOn }] of cell.resources(type))
        expect(DependsOn, id).toEqual(expect.arrayContaining(permissions.map(([policy]) => policy)));
  });

  test("changes nothing else of the functions' permissions", () => {
    const others = ({ functions }: typeof plain) =>
      functions().map(({ id, statements }) => [
        id,
        statements.filter((statement) => getViaService(statement) === undefined),
      ]);
    expect(others(cell)).toEqual(others(plain));
  });

  test("allows the cell's logs and alarms to use it, and no principal outside the account", () => {
    const statements = key?.Properties.KeyPolicy.Statement as Statement[];
    const services = statements.filter(({ Principal }) =>
      JSON.stringify(Principal).includes('amazonaws.com'),
    );
    expect(services.map(({ Principal, Condition }) => [Principal, Condition])).toEqual([
      [
        { Service: 'logs.us-east-1.amazonaws.com' },
        { ArnLike: { 'kms:EncryptionContext:aws:logs:arn': expect.anything() } },
      ],
      [
        // Alarms; and SES events of mails, by a topic to a queue.
        { Service: ['cloudwatch', 'ses', 'sns'].map((name) => `${name}.amazonaws.com`) },
        { StringEquals: { 'aws:SourceAccount': { Ref: 'AWS::AccountId' } } },
      ],
    ]);
    expect(JSON.stringify(services[0]?.Condition)).toContain(':log-group:jobwire-prod-us-*');
    for (const { Principal } of statements) expect(Principal).not.toMatchObject({ AWS: '*' });
  });

  test('violates no rule', () => {
    expect(new AwsSolutionsChecks().validateScope(cell.app).violations).toEqual([]);
  });
});

describe('a cell without `customerKey`', () => {
  const cell = synthesize('prod');
  const [[keyId = '', key] = []] = cell.resources('AWS::KMS::Key');

  test('has a key that only IAM gives access to, without rotations that cost money for seven years', () => {
    expect(cell.resources('AWS::KMS::Key')).toHaveLength(1);
    expect(key?.Properties).toMatchObject({ EnableKeyRotation: true, RotationPeriodInDays: 2560 });
    expect(key?.Properties.KeyPolicy.Statement).toHaveLength(1);
    for (const type of [
      'AWS::DynamoDB::GlobalTable',
      'AWS::SQS::Queue',
      'AWS::SNS::Topic',
      'AWS::Logs::LogGroup',
    ])
      expect(JSON.stringify(cell.resources(type)), type).not.toContain(keyId);
  });

  test('lets only the functions that use secrets call KMS, for data keys of the cell', () => {
    const condition = { StringEquals: { 'kms:EncryptionContext:jobwire:secrets': 'prod/us' } };
    const users = cell.functions().flatMap(({ id, fn, statements }) => {
      const kmsStatements = statements.filter(isOfKms);
      for (const { Resource, Condition } of kmsStatements) {
        expect(Resource, id).toEqual({ 'Fn::GetAtt': [keyId, 'Arn'] });
        expect(Condition, id).toEqual(condition);
      }
      const isTold = fn.Properties.Environment?.Variables.JOBWIRE_KEY_ARN !== undefined;
      expect(isTold, id).toBe(kmsStatements.length > 0);
      return isTold ? [[id.slice(0, -8), kmsStatements.flatMap(({ Action }) => Action)]] : [];
    });
    expect(Object.fromEntries(users)).toEqual({
      AlertsFunction: ['kms:Decrypt'],
      DeliveryDrainSink: ['kms:Decrypt'],
      PollingPollAccount: ['kms:Decrypt'],
      ApiManage: ['kms:Decrypt', 'kms:GenerateDataKeyWithoutPlaintext'],
    });
  });

  test('uses the key of an earlier stack for the secrets in its table', () => {
    const keyArn = 'arn:aws:kms:us-east-1:111122223333:key/0e6e5f0a-5d1c-4a53-9a40-3f1f6f0f2b6d';
    const streamArn = 'arn:aws:dynamodb:us-east-1:111122223333:table/old/stream/2026-03-02T09:00:00.000';
    const again = synthesize('prod', { cell: { stateTable: { name: 'old', streamArn, keyArn } } });
    expect(again.resources('AWS::KMS::Key')).toEqual([]);
    const resources = again
      .functions()
      .flatMap(({ statements }) => statements.filter(isOfKms).map(({ Resource }) => Resource));
    expect(new Set(resources)).toEqual(new Set([keyArn]));
    expect(again.template.findOutputs('KeyArn').KeyArn).toMatchObject({ Value: keyArn });
  });
});

function isOfKms({ Action }: Statement): boolean {
  return [Action].flat().some((action) => action.startsWith('kms:'));
}

function getViaService({ Condition }: Statement): unknown {
  return Condition?.StringEquals?.['kms:ViaService'];
}

describe('a cell with an event bus', () => {
  const cell = synthesize('prod', { cell: { eventBus: { archiveDays: 30 } } });
  const keyed = synthesize('prod', { cell: { eventBus: { archiveDays: 30 }, customerKey: true } });
  const [[busId = '', bus] = []] = cell.resources('AWS::Events::EventBus');
  const BUS = { 'Fn::GetAtt': [busId, 'Arn'] };

  test('has one bus with its archive; by default there is neither, and without archiveDays no archive', () => {
    expect(bus?.Properties.Name).toBe('jobwire-prod-us-events');
    expect(cell.resources('AWS::Events::Archive')).toMatchObject([
      [expect.any(String), { Properties: { SourceArn: BUS, RetentionDays: 30 } }],
    ]);
    expect(cell.template.findOutputs('EventBusArn').EventBusArn).toMatchObject({ Value: BUS });
    const types = (eventBus: object | undefined) =>
      Object.values(
        synthesize('prod', { cell: { eventBus } }).template.toJSON().Resources as Record<string, Resource>,
      )
        .map(({ Type }) => Type)
        .filter((type) => type.startsWith('AWS::Events::'));
    expect(types(undefined)).toEqual([]);
    expect(types({})).toEqual(['AWS::Events::EventBus']);
  });

  test('only drainSink may put events, and only on this bus; the tick knows it', () => {
    const granted = cell
      .functions()
      .flatMap(({ id, statements }) =>
        statements
          .filter(({ Action }) => [Action].flat().some((action) => action.startsWith('events:')))
          .map(({ Action, Resource }) => ({ id, Action, Resource })),
      );
    expect(granted).toEqual([
      { id: expect.stringMatching(/^DeliveryDrainSink/), Action: 'events:PutEvents', Resource: BUS },
    ]);
    const named = cell
      .functions()
      .filter(({ fn }) => fn.Properties.Environment?.Variables.JOBWIRE_EVENT_BUS_ARN !== undefined);
    expect(named.map(({ id }) => id)).toEqual([expect.stringMatching(/^PollingTick/)]);
  });

  test("encrypts bus and archive with the cell's own key, which EventBridge may use for this bus only", () => {
    const [[keyId = '', key] = []] = keyed.resources('AWS::KMS::Key');
    for (const type of ['EventBus', 'Archive']) {
      const [[, resource] = []] = keyed.resources(`AWS::Events::${type}`);
      expect(resource?.Properties.KmsKeyIdentifier).toEqual({ 'Fn::GetAtt': [keyId, 'Arn'] });
    }
    const statements = key?.Properties.KeyPolicy.Statement as Statement[];
    const eventStatements = statements.filter(({ Principal }) =>
      JSON.stringify(Principal).includes('events.'),
    );
    expect(eventStatements).toMatchObject([
      {
        Condition: { StringEquals: { 'kms:EncryptionContext:aws:events:event-bus:arn': expect.anything() } },
      },
      { Action: 'kms:DescribeKey' },
    ]);
    expect(JSON.stringify(eventStatements[0])).toContain(String(bus?.Properties.Name));
  });

  test('violates no rule', () => {
    expect(new AwsSolutionsChecks().validateScope(keyed.app).violations).toEqual([]);
  });
});

describe('a stage with traces', () => {
  const cell = synthesize('prod', { stage: { tracing: { samplePercent: 5 } } });

  test('traces polls, wake-ups and drains, and lets only these functions send spans', () => {
    for (const { id, fn, statements } of cell.functions()) {
      const traces = /PollAccount|WakeSinks|DrainSink/.test(id);
      const actions = statements.flatMap(({ Action }) => Action).filter((action) => /^xray:/.test(action));
      expect(actions.sort(), id).toEqual(
        traces ? ['xray:PutSpans', 'xray:PutSpansForIndexing', 'xray:PutTraceSegments'] : [],
      );
      expect(fn.Properties.Environment?.Variables.JOBWIRE_TRACE_SAMPLE, id).toBe(traces ? '0.05' : undefined);
    }
    expect(JSON.stringify(synthesize('prod').template.toJSON())).not.toMatch(/xray:|TRACE_SAMPLE/);
  });

  test('violates no rule', () => {
    expect(new AwsSolutionsChecks().validateScope(cell.app).violations).toEqual([]);
  });
});

describe('a stage with gradual deployments', () => {
  const cell = synthesize('prod', { stage: { canary: { minutes: 10 } } });
  const plain = synthesize('prod');
  const GRADUAL = /^(Api(Function|Manage|Live)|PollingPollAccount|DeliveryDrainSink)/;
  const ref = (id: string) => JSON.stringify({ Ref: id });

  test('shifts a tenth of the invocations of five functions first, and rolls back on alarms', () => {
    const aliases = cell.template.findResources('AWS::Lambda::Alias');
    const groups = cell.resources('AWS::CodeDeploy::DeploymentGroup');
    expect(Object.keys(aliases)).toHaveLength(5);
    expect(groups).toHaveLength(5);
    for (const [id, { UpdatePolicy, Properties }] of Object.entries(aliases)) {
      expect(id).toMatch(GRADUAL);
      expect(Properties.Name).toBe('live');
      expect(UpdatePolicy.CodeDeployLambdaAliasUpdate, id).toMatchObject({
        DeploymentGroupName: { Ref: expect.stringMatching(/^Canary/) },
      });
    }
    const alarms = new Map(
      cell.resources('AWS::CloudWatch::Alarm').map(([id, { Properties }]) => [id, Properties]),
    );
    const found = groups.map(([, { Properties }]) => {
      expect(Properties.DeploymentConfigName).toBe('CodeDeployDefault.LambdaCanary10Percent10Minutes');
      const { Events, ...rollback } = Properties.AutoRollbackConfiguration;
      expect(rollback).toEqual({ Enabled: true });
      expect(Events.sort()).toEqual([
        'DEPLOYMENT_FAILURE',
        'DEPLOYMENT_STOP_ON_ALARM',
        'DEPLOYMENT_STOP_ON_REQUEST',
      ]);
      const { Alarms, Enabled } = Properties.AlarmConfiguration;
      expect(Enabled).toBe(true);
      return (Alarms as { Name: { Ref: string } }[]).map(({ Name }) =>
        String(alarms.get(Name.Ref)?.AlarmName).replace('jobwire-prod-us-', ''),
      );
    });
    expect(found.sort()).toEqual([
      ['canary-api', 'canary-requests'],
      ['canary-drainSink', 'dead-drains'],
      ['canary-live', 'canary-requests'],
      ['canary-manage', 'canary-requests'],
      ['canary-pollAccount', 'dead-polls'],
    ]);
    // An alarm counts the invocations of the alias only, of both versions.
    for (const [id, properties] of alarms) {
      if (!/canary-(?!requests)/.test(properties.AlarmName)) continue;
      expect(
        properties.Dimensions.map(({ Name }: { Name: string }) => Name),
        id,
      ).toEqual(['FunctionName', 'Resource']);
    }
  });

  test('queues and the API invoke the aliases, and no version or function of these directly', () => {
    const direct = plain.functions().flatMap(({ id }) => (GRADUAL.test(id) ? [id] : []));
    const aliases = Object.keys(cell.template.findResources('AWS::Lambda::Alias'));
    const mappings = cell.resources('AWS::Lambda::EventSourceMapping');
    const targets = mappings.map(([, { Properties }]) => JSON.stringify(Properties.FunctionName));
    expect(targets.filter((text) => aliases.some((alias) => text.includes(ref(alias))))).toHaveLength(3);
    expect(targets.filter((text) => direct.some((id) => text.includes(ref(id))))).toEqual([]);
    const methods = cell
      .resources('AWS::ApiGateway::Method')
      .map(([, { Properties }]) => Properties.Integration);
    for (const { Uri } of methods.filter(({ Type }) => Type === 'AWS_PROXY')) {
      expect(aliases.some((alias) => JSON.stringify(Uri).includes(ref(alias)))).toBe(true);
    }
    const permitted = cell
      .resources('AWS::Lambda::Permission')
      .filter(([, { Properties }]) => Properties.Principal === 'apigateway.amazonaws.com')
      .map(([, { Properties }]) => JSON.stringify(Properties.FunctionName));
    expect(permitted).toHaveLength(3);
    for (const text of permitted) expect(aliases.some((alias) => text.includes(ref(alias)))).toBe(true);
  });

  test('deletes the former version of a function after a deployment', () => {
    const versions = cell.resources('AWS::Lambda::Version');
    expect(versions).toHaveLength(5);
    for (const [id, { DeletionPolicy = 'Delete' }] of versions) expect(DeletionPolicy, id).toBe('Delete');
  });

  test('without the setting there is neither alias nor version', () => {
    expect(plain.resources('AWS::Lambda::Alias')).toEqual([]);
    expect(plain.resources('AWS::Lambda::Version')).toEqual([]);
    expect(plain.resources('AWS::CodeDeploy::Application')).toEqual([]);
  });

  test('violates no rule', () => {
    expect(new AwsSolutionsChecks().validateScope(cell.app).violations).toEqual([]);
  });
});

describe('a cell with queues', () => {
  const OWN = 'arn:aws:sqs:us-east-1:000000000000:jobs';
  const OTHER = 'arn:aws:sqs:eu-west-2:111122223333:jobs.fifo';
  const KEY = 'arn:aws:kms:eu-west-2:111122223333:key/11112222-3333-4444-5555-666677778888';
  const cell = synthesize('prod', { cell: { queues: [{ arn: OWN }, { arn: OTHER, keyArn: KEY }] } });
  const allowed = ({ functions }: typeof cell, service: string) =>
    functions().flatMap(({ id, statements }) =>
      statements
        .filter(({ Resource }) => String(JSON.stringify(Resource)).includes(`arn:aws:${service}:`))
        .map((statement) => ({ role: /DrainSink|Manage/.exec(id)?.[0] ?? id, ...statement })),
    );

  test('may send to these queues only, by the functions that deliver and ping', () => {
    const statement = { Effect: 'Allow', Action: 'sqs:SendMessage', Resource: [OTHER, OWN] };
    expect(allowed(cell, 'sqs').sort((a, b) => a.role.localeCompare(b.role))).toEqual([
      { role: 'DrainSink', ...statement },
      { role: 'Manage', ...statement },
    ]);
    expect(allowed(synthesize('prod'), 'sqs')).toEqual([]);
  });

  test('may use the key of an encrypted queue through SQS only', () => {
    const keyed = allowed(cell, 'kms').filter(({ Resource }) => Resource === KEY);
    expect(keyed).toHaveLength(2);
    for (const { Action, Condition } of keyed) {
      expect(Action).toEqual(['kms:Decrypt', 'kms:GenerateDataKey']);
      expect(Condition).toEqual({ StringEquals: { 'kms:ViaService': 'sqs.eu-west-2.amazonaws.com' } });
    }
  });

  test('accepts endpoints with these queues only', () => {
    const names = cell
      .functions()
      .flatMap(({ id, fn }) => (fn.Properties.Environment.Variables.JOBWIRE_QUEUES ? [[id, fn]] : []));
    expect(names).toMatchObject([
      [
        expect.stringMatching(/^ApiManage/),
        { Properties: { Environment: { Variables: { JOBWIRE_QUEUES: `${OWN},${OTHER}` } } } },
      ],
    ]);
  });

  test('violates no rule', () => {
    expect(new AwsSolutionsChecks().validateScope(cell.app).violations).toEqual([]);
  });
});

describe('a cell with subscribers in other AWS accounts', () => {
  const SUBSCRIBERS = { accounts: ['111122223333', '444455556666'], organization: 'o-a1b2c3d4e5' };
  const cell = synthesize('prod', {
    cell: { customerKey: true, standardTopic: true, notifications: undefined, subscribers: SUBSCRIBERS },
  });
  const policies = cell.resources('AWS::SNS::TopicPolicy').filter(([id]) => /^Delivery/.test(id));

  test('lets them subscribe to both topics over TLS, with queues to the FIFO topic, and do nothing else', () => {
    expect(policies).toHaveLength(2);
    for (const [id, { Properties }] of policies) {
      const statements = Properties.PolicyDocument.Statement as Statement[];
      const allowed = statements.filter(({ Effect }) => Effect === 'Allow');
      expect(statements.filter(({ Effect }) => Effect === 'Deny')).toMatchObject([
        { Condition: { Bool: { 'aws:SecureTransport': 'false' } } },
      ]);
      const protocols = id.includes('Standard') ? ['sqs', 'lambda', 'https'] : ['sqs'];
      expect(allowed, id).toMatchObject([
        {
          Action: 'sns:Subscribe',
          Principal: { AWS: SUBSCRIBERS.accounts.map((account) => `arn:aws:iam::${account}:root`) },
          Condition: { StringEquals: { 'sns:Protocol': protocols } },
        },
        {
          Action: 'sns:Subscribe',
          Principal: { AWS: '*' },
          Condition: {
            StringEquals: { 'aws:PrincipalOrgID': SUBSCRIBERS.organization, 'sns:Protocol': protocols },
          },
        },
      ]);
      for (const { Resource } of allowed) expect(Resource).toEqual(Properties.Topics[0]);
    }
  });

  test("keeps the cell's key closed to them, and lets SNS use it for the cell's own AWS account only", () => {
    const [[, key] = []] = cell.resources('AWS::KMS::Key');
    const statements = key?.Properties.KeyPolicy.Statement as Statement[];
    const text = JSON.stringify(statements);
    for (const other of [...SUBSCRIBERS.accounts, SUBSCRIBERS.organization])
      expect(text).not.toContain(other);
    const sns = statements.filter(({ Principal }) => JSON.stringify(Principal).includes('sns.'));
    expect(sns).toMatchObject([
      { Condition: { StringEquals: { 'aws:SourceAccount': { Ref: 'AWS::AccountId' } } } },
    ]);
  });

  test('violates no rule', () => {
    expect(new AwsSolutionsChecks().validateScope(cell.app).violations).toEqual([]);
  });
});

describe('a cell with every option', () => {
  const { hostedZone: ZONE, backup } = EVERY_OPTION;
  const cell = synthesize('prod', { cell: EVERY_OPTION });
  const one = (type: string) => {
    const found = cell.resources(type);
    expect(found, type).toHaveLength(1);
    return found[0] as [string, Resource];
  };

  test('violates no rule, and stays far from the limits of CloudFormation', () => {
    expect(new AwsSolutionsChecks().validateScope(cell.app).violations).toEqual([]);
    const template = cell.template.toJSON();
    expect(Object.keys(template.Resources).length).toBeLessThan(400);
    expect(JSON.stringify(template).length).toBeLessThan(600_000);
  });

  test('and a cell without any has none of their resources', () => {
    const all: Record<string, Resource> = synthesize('prod').template.toJSON().Resources;
    const types = Object.values(all).map(({ Type }) => Type);
    expect(
      types.filter((type) => /EC2|Backup|Budgets|Route53|Certificate|CodeDeploy|XRay|DomainName/.test(type)),
    ).toEqual([]);
  });

  test('backs up the state table daily into an existing vault, and copies it to another AWS region', () => {
    const [planId, plan] = one('AWS::Backup::BackupPlan');
    expect(plan.Properties.BackupPlan.BackupPlanRule).toMatchObject([
      {
        ScheduleExpression: 'cron(0 3 * * ? *)',
        TargetBackupVault: backup.vault,
        Lifecycle: { DeleteAfterDays: 7 },
        CopyActions: [{ DestinationBackupVaultArn: backup.copyTo, Lifecycle: { DeleteAfterDays: 7 } }],
      },
    ]);
    const [, { Properties: selection }] = one('AWS::Backup::BackupSelection');
    expect(selection).toMatchObject({
      BackupPlanId: { 'Fn::GetAtt': [planId, 'BackupPlanId'] },
      BackupSelection: { Resources: [{ 'Fn::GetAtt': [expect.stringMatching(/^StateTable/), 'Arn'] }] },
    });
  });

  test('creates no backup vault, whose name or key would prevent a change of customerKey, a new backup or a new stack', () => {
    expect(cell.resources('AWS::Backup::BackupVault')).toEqual([]);
  });

  test('compares the costs of its tags with the budget, and notifies the ops topic, which the key allows', () => {
    const [, { Properties: budget }] = one('AWS::Budgets::Budget');
    expect(budget.Budget).toMatchObject({
      BudgetLimit: { Amount: 200, Unit: 'USD' },
      FilterExpression: {
        And: [
          { Tags: { Key: 'project', Values: ['jobwire'] } },
          { Tags: { Key: 'stage', Values: ['prod'] } },
          { Tags: { Key: 'cell', Values: ['us'] } },
        ],
      },
    });
    const [topic] = cell.resources('AWS::SNS::Topic').flatMap(([id]) => (/^Operations/.test(id) ? [id] : []));
    for (const { Subscribers } of budget.NotificationsWithSubscribers)
      expect(Subscribers).toEqual([{ SubscriptionType: 'SNS', Address: { Ref: topic } }]);
    const allowed = [...cell.resources('AWS::SNS::TopicPolicy'), ...cell.resources('AWS::KMS::Key')].flatMap(
      ([, { Properties }]) =>
        ((Properties.PolicyDocument ?? Properties.KeyPolicy).Statement as Statement[]).filter(
          ({ Principal }) => JSON.stringify(Principal).includes('budgets.'),
        ),
    );
    expect(allowed.map(({ Condition }) => Condition)).toEqual(
      [1, 2].map(() => ({ StringEquals: { 'aws:SourceAccount': { Ref: 'AWS::AccountId' } } })),
    );
  });

  test('sends requests to foreign addresses from static addresses only, and to its tables without a NAT gateway', () => {
    const inside = cell.functions().filter(({ fn }) => fn.Properties.VpcConfig !== undefined);
    expect(inside.map(({ id }) => id.replace(/[0-9A-F]{8}$/, '')).sort()).toEqual([
      'AlertsFunction',
      'ApiManage',
      'DeliveryDrainSink',
      'PollingPollAccount',
    ]);
    const addresses = cell.resources('AWS::EC2::EIP').map(([id]) => id);
    expect(addresses).toHaveLength(2);
    const gateways = cell.resources('AWS::EC2::NatGateway');
    expect(gateways.map(([, { Properties }]) => Properties.AllocationId['Fn::GetAtt'][0]).sort()).toEqual(
      addresses.sort(),
    );
    expect(JSON.stringify(cell.template.findOutputs('EgressAddresses'))).toContain(
      `"${addresses[0]}","PublicIp"`,
    );
    const [, { Properties: endpoint }] = one('AWS::EC2::VPCEndpoint');
    expect(endpoint.VpcEndpointType).toBe('Gateway');
    expect(JSON.stringify(endpoint.ServiceName)).toContain('dynamodb');
    const [, { Properties: group }] = one('AWS::EC2::SecurityGroup');
    expect(group).not.toHaveProperty('SecurityGroupIngress');
    for (const { id, statements } of cell.functions()) {
      const attaches = statements.some(({ Action }) =>
        [Action].flat().includes('ec2:CreateNetworkInterface'),
      );
      expect(attaches, id).toBe(inside.some((one) => one.id === id));
    }
  });

  test('attaches functions only when the private subnets reach the internet and DynamoDB, and removes subnets before the permissions', () => {
    const resources = cell.template.toJSON().Resources as Record<string, { DependsOn?: string[] } & Resource>;
    const ids = (type: string) => cell.resources(`AWS::EC2::${type}`).map(([id]) => id);
    const required = ['NatGateway', 'Route', 'SubnetRouteTableAssociation', 'VPCEndpoint'].flatMap(ids);
    // Two zones, each with a public and a private subnet.
    expect(required).toHaveLength(2 + 4 + 4 + 1);
    for (const { id, fn } of cell.functions())
      if (fn.Properties.VpcConfig !== undefined)
        expect(resources[id]?.DependsOn, id).toEqual(expect.arrayContaining(required));
    const [policy] = cell
      .policies()
      .filter(([, { Properties }]) => JSON.stringify(Properties).includes('ec2:'));
    for (const id of ids('Subnet')) expect(resources[id]?.DependsOn, id).toContain(policy?.[0]);
  });

  test.each([1, 2, 3])(
    'needs no credentials to synthesize %i NAT gateways, each with its address in a zone of its own',
    (natGateways) => {
      const { app, resources } = synthesize('prod', {
        stage: { awsAccount: '111122223333' },
        cell: { staticEgress: { natGateways } },
      });
      expect(app.synth().manifest.missing).toBeUndefined();
      expect(resources('AWS::EC2::EIP')).toHaveLength(natGateways);
      expect(resources('AWS::EC2::NatGateway')).toHaveLength(natGateways);
      const zones = resources('AWS::EC2::Subnet').map(([, { Properties }]) => Properties.AvailabilityZone);
      expect(zones).toHaveLength(2 * Math.max(2, natGateways));
      expect(new Set(zones.map((zone) => JSON.stringify(zone))).size).toBe(Math.max(2, natGateways));
    },
  );

  test('has certificates and records for both host names, and serves the API under its own', () => {
    const certificates = cell.resources('AWS::CertificateManager::Certificate');
    const names = ['api.us.jobwire.example', 'us.jobwire.example'];
    expect(certificates.map(([, { Properties }]) => Properties.DomainName).sort()).toEqual(names);
    for (const [, { Properties }] of certificates)
      expect(Properties.DomainValidationOptions).toMatchObject([{ HostedZoneId: ZONE.id }]);
    const records = cell.resources('AWS::Route53::RecordSet').map(([, { Properties }]) => Properties);
    expect(records.map(({ Name, Type }) => `${Type} ${Name}`).sort()).toEqual(
      ['A', 'AAAA'].flatMap((type) => names.map((name) => `${type} ${name}.`)),
    );
    const [domain, { Properties }] = one('AWS::ApiGateway::DomainName');
    expect(Properties).toMatchObject({
      DomainName: 'api.us.jobwire.example',
      SecurityPolicy: 'SecurityPolicy_TLS13_1_2_PFS_PQ_2025_09',
    });
    expect(one('AWS::ApiGateway::BasePathMapping')[1].Properties).toMatchObject({
      DomainName: { Ref: domain },
    });
    expect(cell.template.findOutputs('*')).toMatchObject({
      ApiUrl: { Value: 'https://api.us.jobwire.example/' },
      DashboardUrl: { Value: 'https://us.jobwire.example' },
    });
  });
});

test('the queue of a smoke test receives no events of customers’ accounts', () => {
  const app = new App({ context: { 'aws:cdk:bundling-stacks': [] } });
  const topicArn = 'arn:aws:sns:us-east-1:111122223333:jobwire-prod-us-events.fifo';
  const stack = new SmokeStack(app, {
    ...findCell(stages, 'prod-us'),
    ...{ topicArn, secretHash: '0', startedAt: 0 },
  });
  Template.fromStack(stack).hasResourceProperties('AWS::SNS::Subscription', {
    FilterPolicy: { accountId: [{ prefix: SMOKE_PREFIX }] },
  });
});
