import { Duration, Stack } from 'aws-cdk-lib';
import { EventBus } from 'aws-cdk-lib/aws-events';
import { FilterCriteria, FilterRule, StartingPosition } from 'aws-cdk-lib/aws-lambda';
import { DynamoEventSource, SqsDlq } from 'aws-cdk-lib/aws-lambda-event-sources';
import { FifoThroughputScope, Topic } from 'aws-cdk-lib/aws-sns';
import { Construct } from 'constructs';
import { DrainSinkEnv, WakeSinksEnv } from '../functions/env.ts';
import type { Cell } from './cell.ts';
import { CellFunction } from './cell-function.ts';
import type { CellSecrets } from './cell-secrets.ts';
import type { HistoryTable } from './history-table.ts';
import { setChannels } from './notifications.ts';
import { grantSendToQueues } from './queues.ts';
import type { StateTable } from './state-table.ts';
import { DRAINS, WAKES } from './throughput.ts';
import { DeadLetters, WorkQueue } from './work-queue.ts';

const DRAIN_TIMEOUT = Duration.seconds(DRAINS.timeoutSeconds);

interface Props extends Cell {
  readonly table: StateTable;
  readonly history: HistoryTable;
  readonly secrets: CellSecrets;
}

/**
 * New wake marks wake sinks. drainSink delivers the events behind their cursors to the topic and to
 * endpoints.
 */
export class Delivery extends Construct {
  /** The topics of events. */
  readonly topics: readonly Topic[];
  readonly topicArn: string;
  /** In cells with a standard topic. */
  readonly standardTopicArn: string | undefined;
  /** In cells with an event bus. */
  readonly eventBusArn: string | undefined;
  /** Queue of drains, for all functions that find sinks with due work. */
  readonly drains: WorkQueue;
  readonly deadWakes: DeadLetters;
  readonly functions: { readonly drainSink: CellFunction; readonly wakeSinks: CellFunction };

  constructor(scope: Construct, id: string, props: Props) {
    super(scope, id);
    const { name, stage, region, cell, table, history, secrets } = props;

    const topic = new Topic(this, 'Events', {
      fifo: true,
      topicName: `jobwire-${name}-events.fifo`,
      displayName: `Jobwire events, ${region}`,
      // Event ids are unique. With deduplication per message group, a topic has a far higher throughput.
      contentBasedDeduplication: false,
      fifoThroughputScope: FifoThroughputScope.MESSAGE_GROUP,
      // A late subscriber replays what it missed.
      ...(stage.topicArchiveDays === null || !cell.established
        ? {}
        : { messageRetentionPeriodInDays: stage.topicArchiveDays }),
      enforceSSL: true,
    });
    this.topicArn = topic.topicArn;
    const standardTopic = cell.standardTopic
      ? new Topic(this, 'StandardEvents', {
          topicName: `jobwire-${name}-events-standard`,
          displayName: `Jobwire events, ${region}`,
          enforceSSL: true,
        })
      : undefined;
    this.standardTopicArn = standardTopic?.topicArn;
    this.topics = standardTopic ? [topic, standardTopic] : [topic];
    const eventBus = cell.eventBus
      ? new EventBus(this, 'EventBus', {
          eventBusName: `jobwire-${name}-events`,
          description: `Jobwire events, ${region}`,
        })
      : undefined;
    this.eventBusArn = eventBus?.eventBusArn;
    if (eventBus && cell.eventBus?.archiveDays !== undefined) {
      eventBus.archive('EventArchive', {
        // A pattern is required; every event on the bus has this AWS account.
        eventPattern: { account: [Stack.of(this).account] },
        retention: Duration.days(cell.eventBus.archiveDays),
      });
    }

    const drainSink = new CellFunction(this, 'DrainSink', {
      ...props,
      entry: 'drain-sink',
      gradual: true,
      env: DrainSinkEnv,
      description: 'Delivers the events behind the due cursors of sinks',
      timeout: DRAIN_TIMEOUT,
      memoryMb: DRAINS.memoryMb,
    });
    // Half of these threads resolve names, 2 by default: names whose servers do not respond would delay the other drains of the process.
    drainSink.addEnvironment('UV_THREADPOOL_SIZE', '32');
    table.grant(drainSink, 'draining');
    history.grant(drainSink, 'recording', 'counting');
    secrets.grantRead(drainSink, 'endpoints');
    setLog(drainSink, props);
    if (cell.notifications) {
      table.grant(drainSink, 'folding');
      history.grant(drainSink, 'folding');
      setChannels(drainSink, cell);
    }
    topic.grantPublish(drainSink);
    standardTopic?.grantPublish(drainSink);
    eventBus?.grantPutEventsTo(drainSink);
    grantSendToQueues(drainSink, cell.queues);

    this.drains = new WorkQueue(this, 'Drains', {
      consumer: drainSink,
      consumerTimeout: DRAIN_TIMEOUT,
      batchSize: DRAINS.batchSize,
      maxConcurrency: stage.drainConcurrency,
      maxReceiveCount: DRAINS.maxReceiveCount,
      retention: Duration.seconds(DRAINS.retentionSeconds),
      deadMeans:
        'A drain failed three times: it threw, or ran out of time. The sink stays due, and the tick keeps requesting drains. See the log of drainSink for the cause.',
      urlEnv: 'JOBWIRE_DRAIN_QUEUE_URL',
    });

    const wakeSinks = new CellFunction(this, 'WakeSinks', {
      ...props,
      entry: 'wake-sinks',
      env: WakeSinksEnv,
      description: 'Marks cursors due and fills the cell feed when a log has grown',
      timeout: Duration.seconds(30),
      memoryMb: WAKES.memoryMb,
    });
    table.grant(wakeSinks, 'waking');
    setRestored(wakeSinks, props);
    this.drains.grantSend(wakeSinks);
    this.deadWakes = new DeadLetters(
      this,
      'DeadWakes',
      'Wake marks from the stream could not be processed. The tick processes them within two minutes. See the log of wakeSinks for the cause.',
    );
    wakeSinks.addEventSource(
      new DynamoEventSource(table.table, {
        startingPosition: StartingPosition.TRIM_HORIZON,
        batchSize: WAKES.batchSize,
        maxBatchingWindow: Duration.seconds(WAKES.batchingSeconds),
        parallelizationFactor: WAKES.parallelization,
        // Stream filters do not see the kind of a change. Only a put has a new image, so deleting a mark
        // invokes nothing.
        filters: [
          FilterCriteria.filter({
            dynamodb: {
              NewImage: { pk: { S: table.wakePartitions() }, sequence: { N: FilterRule.exists() } },
            },
          }),
        ],
        // The tick finds remaining marks, so blocking newer ones for long is useless.
        retryAttempts: 3,
        maxRecordAge: Duration.minutes(5),
        bisectBatchOnError: true,
        reportBatchItemFailures: true,
        onFailure: new SqsDlq(this.deadWakes.queue),
      }),
    );
    this.functions = { drainSink, wakeSinks };
  }

  /** Passes the targets of the cell's built-in sinks to the tick. It needs no permission to publish. */
  nameTargets(fn: CellFunction): void {
    fn.set('JOBWIRE_TOPIC_ARN', this.topicArn);
    if (this.standardTopicArn) fn.set('JOBWIRE_STANDARD_TOPIC_ARN', this.standardTopicArn);
    if (this.eventBusArn) fn.set('JOBWIRE_EVENT_BUS_ARN', this.eventBusArn);
  }
}

/** Sets what functions that read or write the event log need besides the table. */
export function setLog(fn: CellFunction, { stage, cell }: Cell): void {
  fn.set('JOBWIRE_PUBLIC_URL', cell.publicUrl);
  fn.set('JOBWIRE_RETENTION_DAYS', String(stage.eventRetentionDays));
  setRestored(fn, { cell });
}

function setRestored(fn: CellFunction, { cell }: Pick<Cell, 'cell'>): void {
  if (cell.stateTable?.restoredAt) fn.set('JOBWIRE_RESTORED_AT', cell.stateTable.restoredAt);
}
