import { Aspects, CfnResource, type IAspect, RemovalPolicy, Stack } from 'aws-cdk-lib';
import { CfnGlobalTable } from 'aws-cdk-lib/aws-dynamodb';
import { PolicyStatement, ServicePrincipal } from 'aws-cdk-lib/aws-iam';
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
  secretsmanager: ['Decrypt', 'GenerateDataKey'],
  sns: ['Decrypt', 'GenerateDataKey'],
  sqs: ['Decrypt', 'GenerateDataKey'],
};

/** Time (s) for which a queue reuses a data key: each new one is charged. */
const DATA_KEY_SECONDS = 3600;

/**
 * The customer-managed key of a cell, for all data that it stores: tables, queues, topics and log groups.
 * Functions that create secrets receive its ARN. All such resources of the stack get the key, so none can be
 * forgotten. Each function may use it, but only through the services that it has permissions for.
 *
 * Without this construct, everything is encrypted with keys of AWS, which cost nothing.
 */
export class CellKey extends Construct implements IAspect {
  readonly arn: string;

  constructor(scope: Construct, id: string, { stage, region, cell }: Cell) {
    super(scope, id);
    const stack = Stack.of(this);
    const name = `jobwire-${stage.stage}-${region}`;
    const key = new Key(this, 'Key', {
      description: `Jobwire, ${stage.stage}-${region}: encrypts all data that the cell stores`,
      enableKeyRotation: true,
      // The cell's retained data cannot be read without it.
      removalPolicy: RemovalPolicy.RETAIN_ON_UPDATE_OR_DELETE,
    });
    this.arn = key.keyArn;
    key.addToResourcePolicy(
      new PolicyStatement({
        principals: [new ServicePrincipal(`logs.${stack.region}.amazonaws.com`)],
        actions: ['kms:Encrypt', 'kms:Decrypt', 'kms:ReEncrypt*', 'kms:GenerateDataKey*', 'kms:Describe*'],
        resources: ['*'],
        conditions: {
          ArnLike: {
            'kms:EncryptionContext:aws:logs:arn': stack.formatArn({
              service: 'logs',
              resource: `log-group:${name}-*`,
            }),
          },
        },
      }),
    );
    // Alarms publish to the operators' topic; without this permission no notification is sent.
    key.addToResourcePolicy(
      new PolicyStatement({
        principals: [new ServicePrincipal('cloudwatch.amazonaws.com')],
        actions: ['kms:Decrypt', 'kms:GenerateDataKey*'],
        resources: ['*'],
        conditions: { StringEquals: { 'aws:SourceAccount': stack.account } },
      }),
    );
    // SES sends mail events to a topic, and the topic to a queue.
    if (cell.notifications) {
      key.addToResourcePolicy(
        new PolicyStatement({
          principals: ['ses', 'sns'].map((service) => new ServicePrincipal(`${service}.amazonaws.com`)),
          actions: ['kms:Decrypt', 'kms:GenerateDataKey*'],
          resources: ['*'],
          conditions: { StringEquals: { 'aws:SourceAccount': stack.account } },
        }),
      );
    }
    Aspects.of(stack).add(this);
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
    } else if (node instanceof CfnLogGroup) {
      node.kmsKeyId = this.arn;
    } else if (node instanceof CfnGlobalTable) {
      node.sseSpecification = { sseEnabled: true, sseType: 'KMS' };
      node.addPropertyOverride('Replicas.0.SSESpecification.KMSMasterKeyId', this.arn);
    }
  }

  /** Called when all grants of a function are complete. */
  #allow(fn: CellFunction): void {
    const { region } = Stack.of(this);
    const granted = fn.grantedServices();
    for (const [service, actions] of Object.entries(ACTIONS)) {
      if (!granted.has(service)) continue;
      fn.addToRolePolicy(
        new PolicyStatement({
          actions: actions.map((action) => `kms:${action}`),
          resources: [this.arn],
          conditions: { StringEquals: { 'kms:ViaService': `${service}.${region}.amazonaws.com` } },
        }),
      );
    }
  }
}
