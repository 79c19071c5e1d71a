import { RemovalPolicy, Validations } from 'aws-cdk-lib';
import { type ITableV2, TableV2 } from 'aws-cdk-lib/aws-dynamodb';
import { Construct } from 'constructs';
import { deliveryPk, historySchema, sentPk } from '../shared/table/schema.ts';
import type { CellFunction } from './cell-function.ts';
import type { Cell } from './cell-stack.ts';
import { allow, allowIndexes, tableProps } from './state-table.ts';

/**
 * What of the cell is only looked back at, and leaves by itself. No stream, for nothing follows it; no point-in-time
 * recovery, which is paid for by the gigabyte, for nothing goes by what stands here. It outlives its
 * stack.
 */
export class HistoryTable extends Construct {
  readonly table: ITableV2;
  /** What the leading keys of deliveries look like, in the notation of `StringLike`. */
  readonly #deliveries: string;
  /** The same of messages to customers, and of where they are found. */
  readonly #notifications: Readonly<Record<'messages' | 'byJob' | 'byRecipient', string>>;

  constructor(scope: Construct, id: string, { stage, region }: Cell) {
    super(scope, id);
    const table = new TableV2(this, 'Table', {
      ...tableProps(historySchema),
      deletionProtection: stage.protected,
      removalPolicy: RemovalPolicy.RETAIN,
    });
    Validations.of(table).acknowledge({
      id: 'AwsSolutions-DDB3',
      reason:
        'Nothing is decided by what stands here, and it leaves by itself: there is nothing to restore it for.',
    });
    this.table = table;
    this.#deliveries = deliveryPk(region, '*', '*');
    this.#notifications = {
      messages: sentPk({ region, account: '*' }),
      byJob: `SENTJOB#${region}#*`,
      byRecipient: `SENTTO#${region}#*`,
    };
  }

  /** Drains: keep what became of deliveries. They never read it. */
  grantRecording(fn: CellFunction): void {
    allow(fn, this.table, ['BatchWriteItem'], [this.#deliveries]);
    this.#name(fn);
  }

  /** The HTTP API: reads it, by sink, event and outcome. */
  grantLookingBack(fn: CellFunction): void {
    allow(fn, this.table, ['Query', 'BatchGetItem'], [this.#deliveries]);
    allowIndexes(fn, this.table, Object.keys(historySchema.indexes));
    this.#name(fn);
  }

  /** Drains: keep what can't be told. They never read it. */
  grantFolding(fn: CellFunction): void {
    const { messages, byJob } = this.#notifications;
    allow(fn, this.table, ['PutItem'], [messages]);
    allow(fn, this.table, ['BatchWriteItem'], [byJob]);
    this.#name(fn);
  }

  /** Keeps what becomes of messages. */
  grantNotifying(fn: CellFunction): void {
    const { messages, byJob, byRecipient } = this.#notifications;
    allow(fn, this.table, ['PutItem'], [messages]);
    allow(fn, this.table, ['BatchWriteItem'], [byJob, byRecipient]);
    this.#name(fn);
  }

  /** Keeps what is heard of messages later. */
  grantHearing(fn: CellFunction): void {
    allow(fn, this.table, ['GetItem', 'PutItem', 'UpdateItem'], [this.#notifications.messages]);
    this.#name(fn);
  }

  /** The HTTP API: shows messages, of an account, a job, a recipient. */
  grantReadingMessages(fn: CellFunction): void {
    const { messages, byJob, byRecipient } = this.#notifications;
    allow(fn, this.table, ['GetItem', 'BatchGetItem'], [messages]);
    allow(fn, this.table, ['Query'], [messages, byJob, byRecipient]);
    this.#name(fn);
  }

  #name(fn: CellFunction): void {
    fn.set('JOBWIRE_HISTORY_TABLE', this.table.tableName);
  }
}
