import { RemovalPolicy, Stack } from 'aws-cdk-lib';
import {
  AttributeType,
  Billing,
  type ITableV2,
  ProjectionType,
  StreamViewType,
  type TablePropsV2,
  TableV2,
} from 'aws-cdk-lib/aws-dynamodb';
import { PolicyStatement } from 'aws-cdk-lib/aws-iam';
import { Construct } from 'constructs';
import { NOTIFICATIONS_SINK } from '../shared/notifications/model.ts';
import {
  API_KEY_PK,
  API_KEY_USE_PK,
  accountLockPk,
  accountPk,
  cellLog,
  cellPk,
  cursorPk,
  deadPk,
  deletionPk,
  endpointLockPk,
  feedLog,
  groupPk,
  indexPk,
  keys,
  linkKeyPk,
  logPk,
  messagePk,
  notificationSettingsPk,
  openJobsPk,
  parkedPk,
  recipientPk,
  recipientPlacePk,
  replayPk,
  rollupPk,
  sinkPk,
  smsUsePk,
  snapshotPk,
  stateSchema,
  streamPk,
  suppressionPk,
  type TableSchema,
  templatePk,
  threadPk,
  WAKE_SHARDS,
  wakePk,
} from '../shared/table/schema.ts';
import type { CellFunction } from './cell-function.ts';
import type { Cell } from './cell-stack.ts';

type IndexName = keyof typeof stateSchema.indexes;
type Action =
  | 'GetItem'
  | 'BatchGetItem'
  | 'Query'
  | 'PutItem'
  | 'UpdateItem'
  | 'DeleteItem'
  | 'ConditionCheckItem'
  | 'BatchWriteItem';

/**
 * The cell's state. Each grant names the actions, the partitions (IAM compares them with the leading keys of a call) and
 * the indexes that one capability needs, and tells the function the table's name. Tokens stand in partitions of their
 * own, which only `grantPolling` opens.
 */
export class StateTable extends Construct {
  readonly name: string;
  readonly table: ITableV2;
  readonly #cell: Cell;

  constructor(scope: Construct, id: string, cell: Cell) {
    super(scope, id);
    const { stateTable } = cell.cell;
    this.table = stateTable ? this.#existing(stateTable.name, stateTable.streamArn) : this.#made(cell);
    this.name = this.table.tableName;
    this.#cell = cell;
  }

  #made({ stage }: Cell): ITableV2 {
    return new TableV2(this, 'Table', {
      ...tableProps(stateSchema),
      pointInTimeRecoverySpecification: { pointInTimeRecoveryEnabled: true },
      dynamoStream: StreamViewType.NEW_IMAGE,
      deletionProtection: stage.protected,
      removalPolicy: RemovalPolicy.RETAIN,
    });
  }

  /** A table that the settings name: restored from a backup, or left of an earlier stack. The one made before stays, unused. */
  #existing(tableName: string, tableStreamArn: string): ITableV2 {
    const tableArn = Stack.of(this).formatArn({
      service: 'dynamodb',
      resource: 'table',
      resourceName: tableName,
    });
    return TableV2.fromTableAttributes(this, 'Existing', {
      tableArn,
      tableStreamArn,
      globalIndexes: Object.keys(stateSchema.indexes),
    });
  }

  /** The exact partitions of the wake marks. */
  wakePartitions(): string[] {
    return Array.from({ length: WAKE_SHARDS }, (_, shard) => wakePk(this.#cell.region, shard));
  }

  /**
   * The tick: claims due accounts (few while the region's service fails), works off wake marks, looks for due cursors,
   * makes the built-in sinks, one of which starts where the logs of all accounts stand, and starts the cell feed so.
   */
  grantTicking(fn: CellFunction): void {
    const { cell, accounts, status, index, log, cursors, sinks } = this.#partitions();
    this.#allow(fn, ['Query'], [...this.wakePartitions(), accounts, sinks]);
    const feed = feedLog(this.#cell.region);
    this.#allow(fn, ['PutItem'], [cursors, logPk(feed), indexPk(feed)]);
    this.#allow(fn, ['UpdateItem'], [cell, status, cursors, sinks, indexPk(feed)]);
    // A write whose condition does not hold is read again.
    this.#allow(fn, ['GetItem'], [...this.wakePartitions(), cell, status, index, cursors]);
    // How far a log has grown; of the log, the events that have waited longest for a sink.
    this.#allow(fn, ['BatchGetItem'], [cursors, index, log]);
    this.#allow(fn, ['DeleteItem'], this.wakePartitions());
    this.#allowIndexes(fn, ['due']);
    this.#name(fn);
  }

  /** Polls: the only ones to read and write tokens. */
  grantPolling(fn: CellFunction): void {
    const { cell, accounts, status, tokens, index, snapshots, groups, log } = this.#partitions();
    const { rollups, openJobs } = this.#partitions();
    this.#allow(fn, ['GetItem'], [cell, accounts, status, index, tokens]);
    this.#allow(fn, ['Query'], [index]);
    this.#allow(fn, ['BatchGetItem'], [snapshots, groups, rollups]);
    this.#allow(fn, ['PutItem'], [cell, index, snapshots, groups, log, tokens, ...this.wakePartitions()]);
    this.#allow(fn, ['PutItem'], [rollups, openJobs]);
    this.#allow(fn, ['UpdateItem'], [status, index]);
    // Empty shards, marks of groups, snapshots of jobs that turned out not to count, groups without jobs, refused tokens.
    this.#allow(fn, ['DeleteItem'], [index, snapshots, groups, tokens]);
    this.#allowOwnUser(fn);
    this.#name(fn);
  }

  /** Wakes sinks for marks of the stream, and fills the cell feed. Reading the stream is granted by its event source. */
  grantWaking(fn: CellFunction): void {
    const { index, cursors, sinks } = this.#partitions();
    const feed = feedLog(this.#cell.region);
    this.#allow(fn, ['Query'], [sinks]);
    this.#allow(fn, ['PutItem'], [logPk(feed)]);
    this.#allow(fn, ['UpdateItem'], [cursors, indexPk(feed)]);
    this.#allow(fn, ['GetItem'], [...this.wakePartitions(), cursors]);
    this.#allow(fn, ['BatchGetItem'], [cursors, index]);
    this.#allow(fn, ['DeleteItem'], this.wakePartitions());
    this.#name(fn);
  }

  /**
   * Drains: read all logs, move cursors, take leases, set events aside and bury them, work off replays. What becomes of
   * sinks they say on the cell's own log, and on no other.
   */
  grantDraining(fn: CellFunction): void {
    const { index, log, cursors, sinks, parked, dead, replays } = this.#partitions();
    const own = cellLog(this.#cell.region);
    this.#allow(fn, ['GetItem'], [index, log, cursors, sinks, parked, replays]);
    this.#allow(fn, ['Query'], [log, parked]);
    this.#allow(fn, ['PutItem'], [cursors, parked, dead, logPk(own), keys.wake(own).pk]);
    this.#allow(fn, ['UpdateItem'], [cursors, sinks, parked, indexPk(own)]);
    // Cursors of replays that are gone or cancelled; what was set aside and got through, or is dead.
    this.#allow(fn, ['DeleteItem'], [cursors, parked]);
    this.#allowIndexes(fn, ['due']);
    this.#name(fn);
  }

  /** The HTTP API: reads accounts, their logs, their jobs and the figures about them, and the cell's own. */
  grantReading(fn: CellFunction): void {
    const { cell, accounts, status, index, snapshots, log, rollups, openJobs } = this.#partitions();
    this.#allow(fn, ['GetItem'], [cell, accounts, status, index, snapshots, log]);
    this.#allow(fn, ['BatchGetItem'], [accounts, status, index, snapshots, log]);
    this.#allow(fn, ['Query'], [accounts, snapshots, log]);
    this.#allow(fn, ['BatchGetItem', 'Query'], [rollups]);
    this.#allow(fn, ['GetItem', 'Query'], [openJobs]);
    this.#allowIndexes(fn, ['jobsByStatus', 'jobsByDue', 'jobsByOrder', 'related']);
    this.#name(fn);
  }

  /** The HTTP API: shows endpoints, and what becomes of events there. Their secrets stand elsewhere. */
  grantReadingEndpoints(fn: CellFunction): void {
    const { sinks, cursors, parked, dead, replays } = this.#partitions();
    this.#allow(fn, ['GetItem'], [sinks, replays]);
    // How far replays have come.
    this.#allow(fn, ['BatchGetItem'], [sinks, cursors]);
    this.#allow(fn, ['Query'], [sinks, cursors, parked, dead, replays]);
    this.#name(fn);
  }

  /** What the HTTP API does with endpoints besides {@link grantManaging}: replays, and what is set aside. */
  grantReplaying(fn: CellFunction): void {
    const { sinks, cursors, parked, replays } = this.#partitions();
    this.#allow(fn, ['BatchGetItem'], [sinks, cursors]);
    // A write whose condition does not hold is read again.
    this.#allow(fn, ['GetItem'], [cursors, parked, replays]);
    this.#allow(fn, ['PutItem'], [replays]);
    this.#allow(fn, ['UpdateItem'], [parked, replays]);
    this.#name(fn);
  }

  /**
   * Streams and feeds of the HTTP API: read the cell feed, the cell's own log and those of its accounts, take slots and give
   * them back. No jobs are shown there.
   */
  grantStreaming(fn: CellFunction): void {
    const { accounts, status, index, log, slots } = this.#partitions();
    this.#allow(fn, ['GetItem'], [status, index, log, slots]);
    this.#allow(fn, ['BatchGetItem'], [accounts, log]);
    this.#allow(fn, ['Query'], [log, slots]);
    this.#allow(fn, ['PutItem', 'DeleteItem'], [slots]);
    this.#name(fn);
  }

  /** Whoever lets clients in: looks keys up, and notes when one was used. No right to write keys. */
  grantCheckingKeys(fn: CellFunction): void {
    const { apiKeys, keyUse } = this.#partitions();
    // A write whose condition does not hold is read again.
    this.#allow(fn, ['GetItem'], [apiKeys, keyUse]);
    this.#allow(fn, ['PutItem'], [keyUse]);
    this.#name(fn);
  }

  /** Makes, lists and revokes keys, and removes deleted accounts from them. */
  grantManagingKeys(fn: CellFunction): void {
    const { apiKeys, keyUse } = this.#partitions();
    this.#allow(fn, ['GetItem', 'Query', 'PutItem', 'UpdateItem', 'DeleteItem'], [apiKeys]);
    this.#allow(fn, ['DeleteItem'], [keyUse]);
    this.#name(fn);
  }

  /** Shows keys, and when they were used. */
  grantListingKeys(fn: CellFunction): void {
    const { apiKeys, keyUse } = this.#partitions();
    this.#allow(fn, ['Query'], [apiKeys]);
    this.#allow(fn, ['BatchGetItem'], [keyUse]);
    this.#name(fn);
  }

  /** Does requests with an idempotency key once, and keeps their answers. */
  grantDoingOnce(fn: CellFunction): void {
    this.#allow(fn, ['GetItem', 'PutItem', 'UpdateItem'], [this.#partitions().idempotent]);
    this.#name(fn);
  }

  /**
   * An operator's commands: all that can be done with endpoints, and new epochs for restored logs. Events are read to find
   * where an endpoint is to start. Accounts: {@link grantManagingAccounts}.
   */
  grantManaging(fn: CellFunction): void {
    const { accounts, status, index, log, sinks, locks, cursors, parked, dead, replays } = this.#partitions();
    this.#allow(fn, ['GetItem'], [accounts, status, index, log, sinks, locks]);
    this.#allow(fn, ['BatchGetItem'], [accounts]);
    this.#allow(fn, ['Query'], [accounts, log, sinks, cursors, parked, dead, replays]);
    this.#allow(fn, ['PutItem'], [log, sinks, cursors, ...this.wakePartitions()]);
    this.#allow(fn, ['UpdateItem'], [status, index, sinks, locks]);
    this.#allow(fn, ['DeleteItem'], [sinks, cursors, parked, dead, replays]);
    this.#allow(fn, ['ConditionCheckItem'], [locks]);
    this.#name(fn);
  }

  /**
   * Makes accounts, changes how they are polled, tests and deletes them with everything that is kept of them. Tokens and jobs
   * are deleted, and shown to nobody.
   */
  grantManagingAccounts(fn: CellFunction): void {
    const { accounts, accountLocks, deletions, status, tokens, index, snapshots, groups, log } =
      this.#partitions();
    const { sinks, cursors, parked, dead, rollups, openJobs } = this.#partitions();
    const { notifySettings, recipients, recipientPlaces, templates } = this.#partitions();
    const { suppressions, threads, messages, smsUse } = this.#partitions();
    this.#allow(fn, ['GetItem'], [accounts, accountLocks, deletions, status, index]);
    // In one statement what is read in one call.
    this.#allow(fn, ['BatchGetItem'], [accounts, rollups, openJobs, notifySettings, smsUse]);
    this.#allow(fn, ['Query'], [accounts, deletions, index, snapshots, groups, log, sinks]);
    this.#allow(fn, ['Query'], [cursors, parked, dead]);
    this.#allow(fn, ['PutItem'], [accounts, status, index, deletions]);
    this.#allow(fn, ['UpdateItem'], [accounts, accountLocks, deletions, status]);
    this.#allow(fn, ['DeleteItem'], [accounts, deletions, status, tokens, index, snapshots, groups, log]);
    this.#allow(fn, ['DeleteItem'], [...this.wakePartitions(), cursors, parked, dead, rollups, openJobs]);
    const people = [recipients, recipientPlaces, templates, suppressions, threads, messages];
    this.#allow(fn, ['Query'], people);
    this.#allow(fn, ['DeleteItem'], [...people, notifySettings, smsUse]);
    this.#allow(fn, ['ConditionCheckItem'], [accountLocks, deletions]);
    this.#name(fn);
  }

  /** Drains: fold what is to be told to customers into threads. */
  grantFolding(fn: CellFunction): void {
    const { notifySettings, threads } = this.#partitions();
    this.#allow(fn, ['GetItem'], [notifySettings, threads]);
    this.#allow(fn, ['PutItem'], [threads]);
    this.#name(fn);
  }

  /**
   * Closes threads that are due once the log is read up to their end, finds who is to be told, and sends. The key of links is
   * made when there is none.
   */
  grantNotifying(fn: CellFunction): void {
    const { notifySettings, threads, messages, recipients, recipientPlaces } = this.#partitions();
    const { templates, suppressions, smsUse, linkKey, accounts, index, log } = this.#partitions();
    const cursors = cursorPk(this.#cell.region, NOTIFICATIONS_SINK);
    this.#allow(fn, ['GetItem'], [notifySettings, threads, messages, smsUse, linkKey, index, cursors]);
    this.#allow(fn, ['BatchGetItem'], [notifySettings, threads, messages, recipients, suppressions]);
    this.#allow(fn, ['Query'], [recipientPlaces, templates, log]);
    this.#allow(fn, ['PutItem'], [threads, messages, linkKey]);
    // Addresses that are refused for good are told nothing more.
    this.#allow(fn, ['UpdateItem'], [threads, messages, smsUse, suppressions]);
    this.#allow(fn, ['DeleteItem'], [messages]);
    this.#allow(fn, ['ConditionCheckItem'], [accounts]);
    this.#allowIndexes(fn, ['due']);
    this.#name(fn);
  }

  /** Keeps what is heard of mails, and addresses that they came back from, or that complained. */
  grantHearing(fn: CellFunction): void {
    const { accounts, messages, suppressions, linkKey } = this.#partitions();
    this.#allow(fn, ['GetItem', 'UpdateItem', 'PutItem', 'DeleteItem'], [messages]);
    // Addresses are kept by a keyed hash; the key was made with the link in the mail.
    this.#allow(fn, ['GetItem'], [linkKey]);
    this.#allow(fn, ['UpdateItem'], [suppressions]);
    this.#allow(fn, ['ConditionCheckItem'], [accounts]);
    this.#name(fn);
  }

  /** The HTTP API: shows whom accounts tell what, and in which words; and where links of messages lead. */
  grantReadingNotifications(fn: CellFunction): void {
    const { notifySettings, recipients, templates, suppressions, threads, linkKey } = this.#partitions();
    this.#allow(fn, ['GetItem'], [notifySettings, recipients, templates, threads, linkKey]);
    this.#allow(fn, ['Query'], [recipients, templates, suppressions]);
    this.#allow(fn, ['BatchGetItem'], [suppressions]);
    this.#name(fn);
  }

  /** The HTTP API: changes whom accounts tell what; previews are of jobs as they stand. */
  grantManagingNotifications(fn: CellFunction): void {
    const { notifySettings, recipients, recipientPlaces, templates, suppressions } = this.#partitions();
    const { accounts, linkKey, snapshots } = this.#partitions();
    this.#allow(fn, ['GetItem'], [notifySettings, recipients, templates, suppressions, linkKey, snapshots]);
    this.#allow(fn, ['BatchGetItem'], [recipients, suppressions]);
    this.#allow(fn, ['Query'], [recipients, templates, suppressions]);
    this.#allow(fn, ['PutItem'], [notifySettings, recipients, recipientPlaces, templates, linkKey]);
    this.#allow(fn, ['UpdateItem'], [suppressions]);
    this.#allow(fn, ['DeleteItem'], [recipients, recipientPlaces, templates, suppressions]);
    this.#allow(fn, ['ConditionCheckItem'], [accounts]);
    this.#name(fn);
  }

  /** Polls: the recipient that the user of an account’s credentials is. */
  #allowOwnUser(fn: CellFunction): void {
    const { accounts, recipients, recipientPlaces } = this.#partitions();
    this.#allow(fn, ['GetItem'], [recipients]);
    this.#allow(fn, ['PutItem'], [recipients, recipientPlaces]);
    this.#allow(fn, ['DeleteItem'], [recipientPlaces]);
    this.#allow(fn, ['ConditionCheckItem'], [accounts]);
  }

  /** Says how accounts stand, to operators; the HTTP API has {@link grantReading} for that. */
  grantReporting(fn: CellFunction): void {
    const { cell, status, index } = this.#partitions();
    this.#allow(fn, ['GetItem'], [cell]);
    this.#allow(fn, ['BatchGetItem'], [status, index]);
    this.#name(fn);
  }

  /** What the leading keys of each kind of item look like, in the notation of `StringLike`. */
  #partitions() {
    const { region } = this.#cell;
    const any = { region, account: '*' };
    return {
      cell: cellPk(region),
      accounts: accountPk(region),
      accountLocks: accountLockPk(region),
      deletions: deletionPk(region),
      status: keys.status(any).pk,
      tokens: keys.token(any).pk,
      index: indexPk(any),
      snapshots: snapshotPk(any),
      groups: groupPk(any),
      log: logPk(any),
      rollups: rollupPk(region, '*'),
      openJobs: openJobsPk(region),
      sinks: sinkPk(region),
      locks: endpointLockPk(region),
      cursors: cursorPk(region, '*'),
      parked: parkedPk(region, '*'),
      dead: deadPk(region, '*'),
      replays: replayPk(region, '*'),
      slots: streamPk(region, '*'),
      apiKeys: API_KEY_PK,
      keyUse: API_KEY_USE_PK,
      idempotent: keys.idempotent('*', '').pk,
      notifySettings: notificationSettingsPk(region),
      recipients: recipientPk(any),
      recipientPlaces: recipientPlacePk(any),
      templates: templatePk(any),
      suppressions: suppressionPk(any),
      threads: threadPk(any),
      messages: messagePk(any),
      smsUse: smsUsePk(region),
      linkKey: linkKeyPk(region),
    };
  }

  #allow(fn: CellFunction, actions: readonly Action[], partitions: readonly string[]): void {
    allow(fn, this.table, actions, partitions);
  }

  /** Indexes hold keys only, and no token has a place in any. */
  #allowIndexes(fn: CellFunction, indexes: readonly IndexName[]): void {
    allowIndexes(fn, this.table, indexes);
  }

  #name(fn: CellFunction): void {
    fn.set('JOBWIRE_TABLE', this.name);
  }
}

/** What any table of a schema is made with: its keys and indexes, on demand, TTL. */
export function tableProps(schema: TableSchema): TablePropsV2 {
  const text = (name: string) => ({ name, type: AttributeType.STRING });
  return {
    partitionKey: text(schema.partitionKey),
    sortKey: text(schema.sortKey),
    billing: Billing.onDemand(),
    globalSecondaryIndexes: Object.entries(schema.indexes).map(([indexName, index]) => ({
      indexName,
      partitionKey: text(index.partitionKey),
      sortKey: text(index.sortKey),
      projectionType: index.holds === 'keys' ? ProjectionType.KEYS_ONLY : ProjectionType.ALL,
    })),
    timeToLiveAttribute: schema.ttlAttribute,
  };
}

/** Allows actions on the partitions whose names match. */
export function allow(
  fn: CellFunction,
  table: ITableV2,
  actions: readonly Action[],
  partitions: readonly string[],
): void {
  fn.addToRolePolicy(
    new PolicyStatement({
      actions: actions.map((action) => `dynamodb:${action}`),
      resources: [table.tableArn],
      conditions: {
        'ForAllValues:StringLike': { 'dynamodb:LeadingKeys': [...partitions] },
        // "For all values" holds for none as well.
        Null: { 'dynamodb:LeadingKeys': 'false' },
      },
    }),
  );
}

/** Allows queries of whole indexes. */
export function allowIndexes(fn: CellFunction, table: ITableV2, indexes: readonly string[]): void {
  fn.addToRolePolicy(
    new PolicyStatement({
      actions: ['dynamodb:Query'],
      resources: indexes.map((index) => `${table.tableArn}/index/${index}`),
    }),
  );
}
