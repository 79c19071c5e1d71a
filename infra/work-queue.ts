import { Duration, Validations } from 'aws-cdk-lib';
import { SqsEventSource } from 'aws-cdk-lib/aws-lambda-event-sources';
import { Queue, QueueEncryption } from 'aws-cdk-lib/aws-sqs';
import { Construct } from 'constructs';
import type { EnvName } from '../functions/env.ts';
import type { CellFunction } from './cell-function.ts';

/** A queue that only keeps what could not be done; that there is any is alarming. */
export class DeadLetters extends Construct {
  readonly queue: Queue;
  /** What the alarm tells: what lies here, and what becomes of it. */
  readonly meaning: string;

  constructor(scope: Construct, id: string, meaning: string) {
    super(scope, id);
    this.meaning = meaning;
    this.queue = new Queue(this, 'Queue', {
      encryption: QueueEncryption.SQS_MANAGED,
      enforceSSL: true,
      retentionPeriod: Duration.days(4),
    });
    Validations.of(this.queue).acknowledge({
      id: 'AwsSolutions-SQS3',
      reason:
        'This queue is where failures end: of another queue, or of an event source, which the rule can’t see.',
    });
  }
}

interface Props {
  readonly consumer: CellFunction;
  readonly consumerTimeout: Duration;
  /** Messages of one invocation. */
  readonly batchSize: number;
  /** How long messages are gathered for an invocation; absent: not at all. */
  readonly batching?: Duration;
  /** Invocations side by side. Not a reserve on the function: that would throttle, and good messages would be dead letters. */
  readonly maxConcurrency: number;
  /** How often a message is received before it is a dead letter. */
  readonly maxReceiveCount: number;
  readonly retention: Duration;
  /** Of the alarm on dead letters. */
  readonly deadMeans: string;
  /** Where functions that send find the queue's URL; absent: none does. */
  readonly urlEnv?: EnvName;
}

/** A queue of work, its consumer, and what becomes of messages that fail. */
export class WorkQueue extends Construct {
  readonly queue: Queue;
  readonly dead: DeadLetters;
  readonly #urlEnv: EnvName | undefined;

  constructor(scope: Construct, id: string, props: Props) {
    super(scope, id);
    this.dead = new DeadLetters(this, 'Dead', props.deadMeans);
    this.#urlEnv = props.urlEnv;
    this.queue = new Queue(this, 'Queue', {
      encryption: QueueEncryption.SQS_MANAGED,
      enforceSSL: true,
      retentionPeriod: props.retention,
      // A message must not come back while its work may still be going on.
      visibilityTimeout: props.consumerTimeout.plus(Duration.seconds(30)),
      deadLetterQueue: { queue: this.dead.queue, maxReceiveCount: props.maxReceiveCount },
    });
    props.consumer.addEventSource(
      new SqsEventSource(this.queue, {
        batchSize: props.batchSize,
        ...(props.batching === undefined ? {} : { maxBatchingWindow: props.batching }),
        maxConcurrency: props.maxConcurrency,
        reportBatchItemFailures: true,
      }),
    );
  }

  /** May send, and knows where to. Throws for a queue that no function sends to. */
  grantSend(fn: CellFunction): void {
    if (this.#urlEnv === undefined) throw new Error(`${this.node.path} is no queue that functions send to.`);
    this.queue.grant(fn, 'sqs:SendMessage');
    fn.set(this.#urlEnv, this.queue.queueUrl);
  }
}
