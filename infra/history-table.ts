import { RemovalPolicy } from 'aws-cdk-lib';
import { type ITableV2, TableV2 } from 'aws-cdk-lib/aws-dynamodb';
import { Construct } from 'constructs';
import { deliveryPk, historySchema, sentPk, statisticsPk } from '../shared/storage/schema.ts';
import { acknowledge } from './acknowledge.ts';
import type { Cell } from './cell.ts';
import type { CellFunction } from './cell-function.ts';
import { allow, type Permission, tableProps } from './state-table.ts';

/**
 * The cell's records that are displayed or counted, and expire by TTL. No stream, because nothing consumes it.
 * No point-in-time recovery, which is charged by the gigabyte, because no poll or delivery depends on this data. The
 * table outlives its stack.
 */
export class HistoryTable extends Construct {
  readonly table: ITableV2;
  readonly #region: string;

  constructor(scope: Construct, id: string, { stage, region, cell }: Cell) {
    super(scope, id);
    const table = new TableV2(this, 'Table', {
      ...tableProps(historySchema),
      deletionProtection: stage.protected && cell.established,
      removalPolicy: RemovalPolicy.RETAIN_ON_UPDATE_OR_DELETE,
    });
    acknowledge(table, {
      'AwsSolutions-DDB3': 'No decision depends on this data, and it expires, so it needs no backup.',
    });
    this.table = table;
    this.#region = region;
  }

  /** Gives a function the permissions of capabilities, and the name of the table. */
  grant(fn: CellFunction, ...capabilities: readonly (keyof ReturnType<typeof listPermissions>)[]): void {
    const permissions = listPermissions(this.#region);
    for (const capability of capabilities) allow(fn, this.table, permissions[capability]);
    fn.set('JOBWIRE_HISTORY_TABLE', this.table.tableName);
  }
}

/** Returns the permissions of each capability. */
function listPermissions(region: string) {
  // Patterns of the leading keys, in the notation of `StringLike`.
  const deliveries = deliveryPk(region, '*', '*');
  const statistics = statisticsPk(region, '*');
  const messages = sentPk({ region, account: '*' });
  const byJob = `SENTJOB#${region}#*`;
  const byRecipient = `SENTTO#${region}#*`;
  return {
    /** Drains record deliveries. They never read them. */
    recording: [[['BatchWriteItem'], [deliveries]]],
    /** Drains count deliveries. */
    counting: [[['GetItem', 'PutItem'], [statistics]]],
    /** The HTTP API reads deliveries, by sink, event and outcome. */
    readingDeliveries: [
      [['Query', 'BatchGetItem'], [deliveries]],
      [['Query'], [statistics]],
      { indexes: Object.keys(historySchema.indexes) },
    ],
    /** Drains record notifications that cannot be sent. They never read them. */
    folding: [
      [['PutItem'], [messages]],
      [['BatchWriteItem'], [byJob]],
    ],
    /** Records the outcome of messages. */
    notifying: [
      [['PutItem'], [messages]],
      [['BatchWriteItem'], [byJob, byRecipient]],
    ],
    /** The evaluation of alert rules counts failed messages, in an index that also contains failed deliveries. */
    alerting: [{ indexes: ['failures'] }],
    /** Records later feedback about messages. */
    recordingFeedback: [[['GetItem', 'PutItem', 'UpdateItem'], [messages]]],
    /** The HTTP API reads the messages of an account, a job or a recipient. */
    readingMessages: [
      [['GetItem', 'BatchGetItem'], [messages]],
      [['Query'], [messages, byJob, byRecipient]],
    ],
    /** The HTTP API reads single messages, and those of a job. */
    readingMessagesOfJobs: [
      [['GetItem', 'BatchGetItem'], [messages]],
      [['Query'], [byJob]],
    ],
    /** Deletes the messages of an account. */
    deletingMessages: [[['Query', 'DeleteItem'], [messages]]],
  } satisfies Record<string, readonly Permission[]>;
}
