import { RemovalPolicy, Validations } from 'aws-cdk-lib';
import { type ITableV2, TableV2 } from 'aws-cdk-lib/aws-dynamodb';
import { Construct } from 'constructs';
import { deliveryPk, historySchema, sentPk, statisticsPk } from '../shared/storage/schema.ts';
import type { Cell } from './cell.ts';
import type { CellFunction } from './cell-function.ts';
import { allow, allowIndexes, tableProps } from './state-table.ts';

/**
 * The cell's records that are only read for review and expire by TTL. No stream, because nothing consumes it.
 * No point-in-time recovery, which is charged by the gigabyte, because no operation depends on this data. The
 * table outlives its stack.
 */
export class HistoryTable extends Construct {
  readonly table: ITableV2;
  /** Patterns of the leading keys of deliveries, in the notation of `StringLike`. */
  readonly #deliveries: string;
  /** Pattern of the leading keys of delivery statistics. */
  readonly #statistics: string;
  /** Patterns of the leading keys of messages to customers, and of their references. */
  readonly #notifications: Readonly<Record<'messages' | 'byJob' | 'byRecipient', string>>;

  constructor(scope: Construct, id: string, { stage, region, cell }: Cell) {
    super(scope, id);
    const table = new TableV2(this, 'Table', {
      ...tableProps(historySchema),
      deletionProtection: stage.protected && cell.established,
      removalPolicy: RemovalPolicy.RETAIN_ON_UPDATE_OR_DELETE,
    });
    Validations.of(table).acknowledge({
      id: 'AwsSolutions-DDB3',
      reason: 'No decision depends on this data, and it expires, so it needs no backup.',
    });
    this.table = table;
    this.#deliveries = deliveryPk(region, '*', '*');
    this.#statistics = statisticsPk(region, '*');
    this.#notifications = {
      messages: sentPk({ region, account: '*' }),
      byJob: `SENTJOB#${region}#*`,
      byRecipient: `SENTTO#${region}#*`,
    };
  }

  /** Grants drains to record deliveries. They never read them. */
  grantRecording(fn: CellFunction): void {
    allow(fn, this.table, ['BatchWriteItem'], [this.#deliveries]);
    this.#name(fn);
  }

  /** Grants drains to count deliveries. */
  grantCounting(fn: CellFunction): void {
    allow(fn, this.table, ['GetItem', 'PutItem'], [this.#statistics]);
    this.#name(fn);
  }

  /** Grants the HTTP API to read deliveries, by sink, event and outcome. */
  grantLookingBack(fn: CellFunction): void {
    allow(fn, this.table, ['Query', 'BatchGetItem'], [this.#deliveries]);
    allow(fn, this.table, ['Query'], [this.#statistics]);
    allowIndexes(fn, this.table, Object.keys(historySchema.indexes));
    this.#name(fn);
  }

  /** Grants drains to record notifications that cannot be sent. They never read them. */
  grantFolding(fn: CellFunction): void {
    const { messages, byJob } = this.#notifications;
    allow(fn, this.table, ['PutItem'], [messages]);
    allow(fn, this.table, ['BatchWriteItem'], [byJob]);
    this.#name(fn);
  }

  /** Grants recording the outcome of messages. */
  grantNotifying(fn: CellFunction): void {
    const { messages, byJob, byRecipient } = this.#notifications;
    allow(fn, this.table, ['PutItem'], [messages]);
    allow(fn, this.table, ['BatchWriteItem'], [byJob, byRecipient]);
    this.#name(fn);
  }

  /** Grants the evaluation of alert rules to count failed messages, in an index that also contains failed deliveries. */
  grantAlerting(fn: CellFunction): void {
    allowIndexes(fn, this.table, ['failures']);
    this.#name(fn);
  }

  /** Grants recording later feedback about messages. */
  grantHearing(fn: CellFunction): void {
    allow(fn, this.table, ['GetItem', 'PutItem', 'UpdateItem'], [this.#notifications.messages]);
    this.#name(fn);
  }

  /** Grants the HTTP API to read the messages of an account, a job or a recipient. */
  grantReadingMessages(fn: CellFunction): void {
    const { messages, byJob, byRecipient } = this.#notifications;
    allow(fn, this.table, ['GetItem', 'BatchGetItem'], [messages]);
    allow(fn, this.table, ['Query'], [messages, byJob, byRecipient]);
    this.#name(fn);
  }

  /** Grants the HTTP API to read single messages, and those of a job. */
  grantReadingMessagesOfJobs(fn: CellFunction): void {
    const { messages, byJob } = this.#notifications;
    allow(fn, this.table, ['GetItem', 'BatchGetItem'], [messages]);
    allow(fn, this.table, ['Query'], [byJob]);
    this.#name(fn);
  }

  /** Grants deleting the messages of an account. */
  grantDeletingMessages(fn: CellFunction): void {
    allow(fn, this.table, ['Query', 'DeleteItem'], [this.#notifications.messages]);
    this.#name(fn);
  }

  #name(fn: CellFunction): void {
    fn.set('JOBWIRE_HISTORY_TABLE', this.table.tableName);
  }
}
