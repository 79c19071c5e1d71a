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
  /** The same of messages to customers, and of where they are found by job and by recipient. */
  readonly #messages: readonly string[];

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
    const any = { region, account: '*' };
    this.#messages = [sentPk(any), `SENTJOB#${region}#*`, `SENTTO#${region}#*`];
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

  /** Drains: keep notices of which nobody will be told. They never read any. */
  grantFolding(fn: CellFunction): void {
    allow(fn, this.table, ['BatchWriteItem'], this.#messages);
    this.#name(fn);
  }

  /** Keeps what becomes of messages. */
  grantNotifying(fn: CellFunction): void {
    allow(fn, this.table, ['GetItem', 'PutItem'], this.#messages);
    this.#name(fn);
  }

  /** Keeps what is heard of messages later. */
  grantHearing(fn: CellFunction): void {
    allow(fn, this.table, ['GetItem', 'UpdateItem'], this.#messages);
    this.#name(fn);
  }

  #name(fn: CellFunction): void {
    fn.set('JOBWIRE_HISTORY_TABLE', this.table.tableName);
  }
}
