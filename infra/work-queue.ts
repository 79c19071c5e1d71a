import { Duration } from 'aws-cdk-lib';
import { SqsEventSource } from 'aws-cdk-lib/aws-lambda-event-sources';
import { Queue, QueueEncryption } from 'aws-cdk-lib/aws-sqs';
import { Construct } from 'constructs';
import type { EnvName } from '../functions/env.ts';
import { acknowledge } from './acknowledge.ts';
import type { CellFunction } from './cell-function.ts';

/** A queue that only stores failed messages; any message in it raises an alarm. */
export class DeadLetters extends Construct {
  readonly queue: Queue;
  /** Meaning of a message in this queue, and its consequences; text of the alarm. */
  readonly meaning: string;

  constructor(scope: Construct, id: string, meaning: string) {
    super(scope, id);
    this.meaning = meaning;
    this.queue = new Queue(this, 'Queue', {
      encryption: QueueEncryption.SQS_MANAGED,
      enforceSSL: true,
      // The maximum. The time in the queue where a message failed counts too.
      retentionPeriod: Duration.days(14),
    });
    acknowledge(this.queue, {
      'AwsSolutions-SQS3':
        'This queue is where failures end: of another queue, or of an event source, which the rule can’t see.',
    });
  }
}

interface Props {
  readonly consumer: CellFunction;
  readonly consumerTimeout: Duration;
  /** Maximum number of messages per invocation. */
  readonly batchSize: number;
  /** Time for which messages are gathered for an invocation. Default: none. */
  readonly batching?: Duration;
  /**
   * Maximum number of concurrent invocations. Not a reserve on the function: that would throttle, and good
   * messages would become dead letters.
   */
  readonly maxConcurrency: number;
  /** Number of receives before a message becomes a dead letter. */
  readonly maxReceiveCount: number;
  readonly retention: Duration;
  /** Description of the alarm on dead letters. */
  readonly deadMeans: string;
  /** Environment variable with the queue's URL, for functions that send. Absent: no function sends. */
  readonly urlEnv?: EnvName;
}

/** A queue of work, its consumer, and its dead-letter queue. */
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
      // A message must not reappear while it may still be in process.
      visibilityTimeout: props.consumerTimeout.plus(Duration.seconds(30)),
      deadLetterQueue: { queue: this.dead.queue, maxReceiveCount: props.maxReceiveCount },
    });
    props.consumer.target.addEventSource(
      new SqsEventSource(this.queue, {
        batchSize: props.batchSize,
        ...(props.batching === undefined ? {} : { maxBatchingWindow: props.batching }),
        maxConcurrency: props.maxConcurrency,
        reportBatchItemFailures: true,
      }),
    );
  }

  /** Grants sending, and passes the URL. Throws for a queue that no function sends to. */
  grantSend(fn: CellFunction): void {
    if (this.#urlEnv === undefined) throw new Error(`${this.node.path} is no queue that functions send to.`);
    this.queue.grant(fn, 'sqs:SendMessage');
    fn.set(this.#urlEnv, this.queue.queueUrl);
  }
}
