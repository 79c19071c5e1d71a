import { Aspects, CfnResource, Duration, type IAspect, RemovalPolicy, Stack } from 'aws-cdk-lib';
import { CfnGlobalTable } from 'aws-cdk-lib/aws-dynamodb';
import { CfnArchive, CfnEventBus } from 'aws-cdk-lib/aws-events';
import { Policy, PolicyStatement, ServicePrincipal } from 'aws-cdk-lib/aws-iam';
import { Key } from 'aws-cdk-lib/aws-kms';
import { CfnLogGroup } from 'aws-cdk-lib/aws-logs';
import { CfnTopic } from 'aws-cdk-lib/aws-sns';
import { CfnQueue } from 'aws-cdk-lib/aws-sqs';
import { Construct, type IConstruct } from 'constructs';
import type { Cell } from './cell.ts';
import { CellFunction } from './cell-function.ts';

/** Key permissions that a function needs to use a service. DynamoDB requires more than the others. */
const ACTIONS: Readonly<Record<string, readonly string[]>> = {
  dynamodb: [
    'Decrypt',
    'DescribeKey',
    'Encrypt',
    'GenerateDataKey',
    'GenerateDataKeyWithoutPlaintext',
    'ReEncryptFrom',
    'ReEncryptTo',
  ],
  secretsmanager: ['Decrypt'],
  sns: ['Decrypt', 'GenerateDataKey'],
  sqs: ['Decrypt', 'GenerateDataKey'],
};

/** Time (s) for which a queue reuses a data key: each new one is charged. */
const DATA_KEY_SECONDS = 3600;

/** Days after which AWS replaces the key material. Each of the first two replacements adds $1 a month. */
const ROTATION_DAYS = {
  /** It encrypts only data keys, which are themselves replaced each year: the longest period of AWS. */
  dataKeys: 2560,
  everything: 365,
};

/**
 * The KMS key of a cell. It encrypts the data keys of the cell's secrets: see infra/cell-secrets.ts. That of
 * an earlier stack can be imported with its table.
 *
 * With the setting `customerKey`, it also encrypts all other data that the cell stores: tables, queues,
 * topics and log groups. All such resources of the stack get the key, so none can be forgotten. Each function
 * may use it, but only through the services that it has permissions for. Otherwise they are encrypted with
 * keys of AWS, which cost nothing.
 */
export class CellKey extends Construct implements IAspect {
  readonly arn: string;
  /**
   * Permissions of the functions to use the key. CloudFormation creates them before it encrypts anything with the key. The roles' own
   * policies name queues and tables, so they change after these: in an existing cell, the functions would fail in between.
   */
  readonly #permissions = new Construct(this, 'Permissions');

  constructor(scope: Construct, id: string, props: Cell) {
    super(scope, id);
    const { customerKey, stateTable } = props.cell;
    this.arn = stateTable?.keyArn ?? this.#create(props).keyArn;
    if (customerKey) Aspects.of(Stack.of(this)).add(this);
  }

  #create({ name: cellName, cell }: Cell): Key {
    const name = `jobwire-${cellName}`;
    const key = new Key(this, 'Key', {
      description: `Jobwire, ${cellName}: encrypts ${cell.customerKey ? 'all data that the cell stores' : 'the secrets of the cell'}`,
      enableKeyRotation: true,
      // So that a copy of a backup in another AWS region can be read there, by a replica of the key.
      multiRegion: true,
      rotationPeriod: Duration.days(ROTATION_DAYS[cell.customerKey ? 'everything' : 'dataKeys']),
      // The cell's retained data cannot be read without it.
      removalPolicy: RemovalPolicy.RETAIN_ON_UPDATE_OR_DELETE,
    });
    if (cell.customerKey) this.#allowServices(key, name, cell);
    return key;
  }

  /** Lets services of AWS use the key for data of the cell. */
  #allowServices(key: Key, name: string, cell: Cell['cell']): void {
    const stack = Stack.of(this);
    const allow = (services: readonly string[], actions: readonly string[], conditions: object) =>
      key.addToResourcePolicy(
        new PolicyStatement({
          principals: services.map((service) => new ServicePrincipal(`${service}.amazonaws.com`)),
          actions: actions.map((action) => `kms:${action}`),
          resources: ['*'],
          conditions,
        }),
      );
    const forAccount = { StringEquals: { 'aws:SourceAccount': stack.account } };
    const logGroups = stack.formatArn({ service: 'logs', resource: `log-group:${name}-*` });
    allow([`logs.${stack.region}`], ['Encrypt', 'Decrypt', 'ReEncrypt*', 'GenerateDataKey*', 'Describe*'], {
      ArnLike: { 'kms:EncryptionContext:aws:logs:arn': logGroups },
    });
    // Alarms publish to the operators' topic; without this permission no notification is sent.
    allow(['cloudwatch'], ['Decrypt', 'GenerateDataKey*'], forAccount);
    // SES sends mail events to a topic, and the topic to a queue. SNS replays archived messages to subscribers.
    // AWS Budgets publishes to the operators' topic.
    const services = [
      ...(cell.monthlyBudget === undefined ? [] : ['budgets']),
      ...(cell.notifications ? ['ses'] : []),
      ...(cell.notifications || cell.subscribers ? ['sns'] : []),
    ];
    if (services.length > 0) allow(services, ['Decrypt', 'GenerateDataKey*'], forAccount);
    if (!cell.eventBus) return;
    // The bus stores events until they are delivered; its archive encrypts them again.
    const bus = stack.formatArn({ service: 'events', resource: 'event-bus', resourceName: `${name}-events` });
    allow(['events'], ['Decrypt', 'GenerateDataKey', 'ReEncrypt*'], {
      StringEquals: { 'kms:EncryptionContext:aws:events:event-bus:arn': bus },
    });
    allow(['events'], ['DescribeKey'], forAccount);
  }

  visit(node: IConstruct): void {
    if (node instanceof CellFunction) this.#allow(node);
    if (!(node instanceof CfnResource)) return;
    if (node instanceof CfnQueue) {
      node.kmsMasterKeyId = this.arn;
      node.kmsDataKeyReusePeriodSeconds = DATA_KEY_SECONDS;
      node.sqsManagedSseEnabled = undefined;
    } else if (node instanceof CfnTopic) {
      node.kmsMasterKeyId = this.arn;
    } else if (node instanceof CfnEventBus || node instanceof CfnArchive) {
      node.kmsKeyIdentifier = this.arn;
    } else if (node instanceof CfnLogGroup) {
      node.kmsKeyId = this.arn;
    } else if (node instanceof CfnGlobalTable) {
      node.sseSpecification = { sseEnabled: true, sseType: 'KMS' };
      node.addPropertyOverride('Replicas.0.SSESpecification.KMSMasterKeyId', this.arn);
    } else return;
    node.node.addDependency(this.#permissions);
  }

  /** Called when all grants of a function are complete. */
  #allow(fn: CellFunction): void {
    const { region } = Stack.of(this);
    const granted = fn.grantedServices();
    const statements = Object.entries(ACTIONS)
      .filter(([service]) => granted.has(service))
      .map(
        ([service, actions]) =>
          new PolicyStatement({
            actions: actions.map((action) => `kms:${action}`),
            resources: [this.arn],
            conditions: { StringEquals: { 'kms:ViaService': `${service}.${region}.amazonaws.com` } },
          }),
      );
    if (statements.length === 0 || !fn.role) return;
    new Policy(this.#permissions, fn.node.path, { roles: [fn.role], statements });
  }
}
