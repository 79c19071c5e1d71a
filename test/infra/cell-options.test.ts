/** The effect of a cell's settings on its stack: a restored table, its own key; and the resources that outlive the stack. */
import { CfnResource, TagManager } from 'aws-cdk-lib';
import { AwsSolutionsChecks } from 'cdk-nag';
import { describe, expect, test } from 'vitest';
import { ManageEnv, readEnv } from '../../functions/env.ts';
import { type Resource, type Statement, synthesize } from '../support/cells.ts';

const TABLE = 'jobwire-prod-us-restored-2026-03-02';
const STREAM = `arn:aws:dynamodb:us-east-1:111122223333:table/${TABLE}/stream/2026-03-02T09:00:00.000`;
const RESTORED = { name: TABLE, streamArn: STREAM, restoredAt: '2026-03-02T08:30:00Z' };

describe('resources that outlive the stack', () => {
  test.each(['prod', 'dev'] as const)('%s: both tables and the role for the API’s logs', (stage) => {
    const { template } = synthesize(stage);
    const all = Object.entries(template.toJSON().Resources as Record<string, Resource>);
    const kept = all.filter(([, { DeletionPolicy }]) => DeletionPolicy?.startsWith('Retain'));
    expect(kept.map(([, { Type }]) => Type).sort()).toEqual([
      'AWS::ApiGateway::Account',
      'AWS::DynamoDB::GlobalTable',
      'AWS::DynamoDB::GlobalTable',
      'AWS::IAM::Role',
    ]);
    for (const [id, { Type, DeletionPolicy, UpdateReplacePolicy }] of all) {
      if (!/^AWS::(DynamoDB|KMS)/.test(Type)) continue;
      expect([DeletionPolicy, UpdateReplacePolicy], id).toEqual(['RetainExceptOnCreate', 'Retain']);
    }
  });

  test('a first deployment that fails can be rolled back: nothing refuses its deletion or stays behind', () => {
    const { resources, template } = synthesize('prod', { cell: { established: false } });
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

  test('is the only one that pays for a key', () => {
    expect(plain.resources('AWS::KMS::Key')).toEqual([]);
    expect(JSON.stringify(plain.template.toJSON())).not.toContain('kms');
    expect(cell.resources('AWS::KMS::Key')).toHaveLength(1);
    expect(key?.Properties.EnableKeyRotation).toBe(true);
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
      const ofKey = statements.filter(({ Action }) =>
        [Action].flat().some((action) => action.startsWith('kms:')),
      );
      const via = ofKey.map((statement) => getViaService(statement));
      const encrypted = ['dynamodb', 'secretsmanager', 'sns', 'sqs'].filter((service) =>
        services.has(service),
      );
      expect(via.sort(), id).toEqual(encrypted.map((service) => `${service}.us-east-1.amazonaws.com`));
      for (const { Action, Resource } of ofKey) {
        expect(Resource, id).toEqual(KEY);
        expect([Action].flat(), id).toEqual(expect.arrayContaining(['kms:Decrypt', 'kms:GenerateDataKey']));
        expect(
          [Action].flat().filter((action) => /\*|Grant|Put|Schedule|Disable/.test(action)),
          id,
        ).toEqual([]);
      }
    }
  });

  test("changes nothing else of the functions' permissions", () => {
    const others = ({ functions }: typeof plain) =>
      functions().map(({ id, statements }) => [
        id,
        statements.filter(({ Action }) => ![Action].flat().some((action) => action.startsWith('kms:'))),
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

  test('names it in the environment of the functions that create secrets', () => {
    const named = cell
      .functions()
      .filter(({ fn }) => fn.Properties.Environment?.Variables.JOBWIRE_KEY_ARN !== undefined);
    expect(named.map(({ id }) => id)).toEqual([expect.stringMatching(/^ApiManage/)]);
    const env = {
      JOBWIRE_KEY_ARN: 'arn:aws:kms:us-east-1:1:key/k',
      JOBWIRE_STAGE: 's',
      JOBWIRE_REGION: 'us',
    };
    const rest = {
      ...{ JOBWIRE_TABLE: 't', JOBWIRE_HISTORY_TABLE: 'h', JOBWIRE_RETENTION_DAYS: '90' },
      JOBWIRE_PUBLIC_URL: 'https://us.jobwire.example',
      JOBWIRE_UPSTREAM_BASE_URL: 'https://us.ordering.example/api',
      JOBWIRE_UPSTREAM_AUTH_URL: 'https://auth.ordering.example',
      JOBWIRE_UPSTREAM_REALM: 'us',
    };
    expect(readEnv(ManageEnv, { ...env, ...rest }).JOBWIRE_KEY_ARN).toBe(env.JOBWIRE_KEY_ARN);
  });

  test('violates no rule', () => {
    expect(new AwsSolutionsChecks().validateScope(cell.app).violations).toEqual([]);
  });
});

function getViaService({ Condition }: Statement): string {
  return String(Condition?.StringEquals?.['kms:ViaService']);
}
