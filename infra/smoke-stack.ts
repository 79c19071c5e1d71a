import { CfnOutput, Duration, RemovalPolicy, Stack, Tags } from 'aws-cdk-lib';
import { Role, ServicePrincipal } from 'aws-cdk-lib/aws-iam';
import { Architecture, FunctionUrlAuthType, Runtime } from 'aws-cdk-lib/aws-lambda';
import { NodejsFunction } from 'aws-cdk-lib/aws-lambda-nodejs';
import { LogGroup, RetentionDays } from 'aws-cdk-lib/aws-logs';
import { SubscriptionFilter, Topic } from 'aws-cdk-lib/aws-sns';
import { SqsSubscription } from 'aws-cdk-lib/aws-sns-subscriptions';
import { Queue } from 'aws-cdk-lib/aws-sqs';
import type { Construct } from 'constructs';
import { bundling, entryPath } from './bundling.ts';
import { type Cell, SMOKE_PREFIX, smokeStackName } from './cell.ts';

interface Props extends Cell {
  /** FIFO topic of the cell. */
  readonly topicArn: string;
  /** SHA-256 of the secret with which requests to the function are authorized, in hexadecimal. */
  readonly secretHash: string;
  /** Epoch ms. */
  readonly startedAt: number;
}

/** Stack of a smoke test, deployed for its duration: a sandbox with a receiver of webhooks, and a subscriber of the topic. */
export class SmokeStack extends Stack {
  constructor(scope: Construct, props: Props) {
    const { name, stage, region, cell, topicArn, secretHash, startedAt } = props;
    const id = smokeStackName(name);
    super(scope, id, {
      env: {
        region: cell.awsRegion,
        ...(stage.awsAccount === undefined ? {} : { account: stage.awsAccount }),
      },
      description: `Jobwire, ${name}: smoke test, can be deleted at any time`,
    });
    Tags.of(this).add('project', 'jobwire');
    const common = {
      enforceSSL: true,
      retentionPeriod: Duration.days(1),
      removalPolicy: RemovalPolicy.DESTROY,
    };
    const webhooks = new Queue(this, 'Webhooks', common);
    const messages = new Queue(this, 'Messages', { ...common, fifo: true });
    Topic.fromTopicArn(this, 'Events', topicArn).addSubscription(
      new SqsSubscription(messages, {
        rawMessageDelivery: true,
        filterPolicy: { accountId: SubscriptionFilter.stringFilter({ matchPrefixes: [SMOKE_PREFIX] }) },
      }),
    );
    const logGroup = new LogGroup(this, 'Logs', {
      retention: RetentionDays.ONE_DAY,
      removalPolicy: RemovalPolicy.DESTROY,
    });
    const role = new Role(this, 'Role', { assumedBy: new ServicePrincipal('lambda.amazonaws.com') });
    logGroup.grantWrite(role);
    const fn = new NodejsFunction(this, 'Function', {
      entry: entryPath('smoke-sandbox'),
      handler: 'handler',
      functionName: id,
      description: 'Smoke test: a simulated ordering API and a receiver of webhooks',
      ...{ runtime: Runtime.NODEJS_24_X, architecture: Architecture.ARM_64, memorySize: 512 },
      timeout: Duration.seconds(20),
      ...{ role, logGroup, bundling },
      environment: {
        JOBWIRE_REGION: region,
        SMOKE_SECRET_HASH: secretHash,
        SMOKE_STARTED_AT: String(startedAt),
        SMOKE_QUEUE_URL: webhooks.queueUrl,
      },
    });
    webhooks.grantSendMessages(fn);
    // The function itself authorizes each request: a cell cannot sign requests to its ordering API.
    const url = fn.addFunctionUrl({ authType: FunctionUrlAuthType.NONE });
    new CfnOutput(this, 'Url', { value: url.url });
    new CfnOutput(this, 'WebhooksUrl', { value: webhooks.queueUrl });
    new CfnOutput(this, 'MessagesUrl', { value: messages.queueUrl });
  }
}
