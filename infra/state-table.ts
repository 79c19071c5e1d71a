/** One file: each grant is compared with the same keys, and together they are the permissions on the table. */
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
import { Construct } from 'constructs';
import { NOTIFICATIONS_SINK } from '../shared/notifications/types.ts';
import {
  API_KEY_PK,
  API_KEY_USE_PK,
  accountLockPk,
  accountPk,
  alertRulePk,
  alertStatePk,
  attentionHistoryPk,
  attentionPk,
  cellLog,
  cellPk,
  cursorPk,
  deadPk,
  deletionPk,
  endpointLockPk,
  feedLog,
  followerPk,
  groupPk,
  indexPk,
  keys,
  linkKeyPk,
  logPk,
  markedJobPk,
  messagePk,
  notificationSettingsPk,
  openJobsPk,
  PAIRING_PK,
  parkedPk,
  recipientPk,
  recipientPlacePk,
  replayPk,
  requestCountPk,
  rollupPk,
  sinkPartPk,
  sinkPk,
  smsUsePk,
  snapshotPk,
  stateSchema,
  streamPk,
  suppressionPk,
  type TableSchema,
  templatePk,
  testEmailPk,
  threadPk,
  WAKE_SHARDS,
  wakePk,
} from '../shared/storage/schema.ts';
import { searchPk } from '../shared/storage/search-index.ts';
import type { Cell } from './cell.ts';
import type { CellFunction } from './cell-function.ts';

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
 * A permission on a table: actions on the partitions whose names match, or queries of whole indexes. An index of the state table
 * contains keys only, and no token is in any of them.
 */
export type Permission<I = string> =
  | readonly [actions: readonly Action[], partitions: readonly string[]]
  | { readonly indexes: readonly I[] };

/**
 * The state table of the cell. Functions get the permissions of capabilities. Tokens are in separate partitions, which only `polling`
 * opens.
 */
export class StateTable extends Construct {
  readonly name: string;
  readonly table: ITableV2;
  readonly #cell: Cell;

  constructor(scope: Construct, id: string, cell: Cell) {
    super(scope, id);
    const { stateTable } = cell.cell;
    this.table = stateTable ? this.#importTable(stateTable.name, stateTable.streamArn) : this.#create(cell);
    this.name = this.table.tableName;
    this.#cell = cell;
  }

  #create({ stage, cell }: Cell): ITableV2 {
    return new TableV2(this, 'Table', {
      ...tableProps(stateSchema),
      pointInTimeRecoverySpecification: { pointInTimeRecoveryEnabled: true },
      dynamoStream: StreamViewType.NEW_IMAGE,
      deletionProtection: stage.protected && cell.established,
      removalPolicy: RemovalPolicy.RETAIN_ON_UPDATE_OR_DELETE,
    });
  }

  /**
   * A table that the settings name: restored from a backup, or retained from an earlier stack. The previous
   * table stays, unused.
   */
  #importTable(tableName: string, tableStreamArn: string): ITableV2 {
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

  /** Returns the exact partitions of the wake marks. */
  wakePartitions(): string[] {
    return listWakePartitions(this.#cell.region);
  }

  /** Gives a function the permissions of capabilities, and the name of the table. */
  grant(fn: CellFunction, ...capabilities: readonly (keyof ReturnType<typeof listPermissions>)[]): void {
    const permissions = listPermissions(this.#cell.region);
    for (const capability of capabilities) allow(fn, this.table, permissions[capability]);
    fn.set('JOBWIRE_TABLE', this.name);
  }
}

const listWakePartitions = (region: string): string[] =>
  Array.from({ length: WAKE_SHARDS }, (_, shard) => wakePk(region, shard));

/** Returns the patterns of the leading keys of each kind of item, in the notation of `StringLike`. */
function listPartitions(region: string) {
  const any = { region, account: '*' };
  const own = cellLog(region);
  const feed = feedLog(region);
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
    markedJobs: markedJobPk(region),
    attention: attentionPk(region),
    attentionHistory: attentionHistoryPk(region),
    durations: keys.durations(any).pk,
    sinks: sinkPk(region),
    sinkParts: sinkPartPk(region),
    followers: followerPk(any),
    locks: endpointLockPk(region),
    cursors: cursorPk(region, '*'),
    parked: parkedPk(region, '*'),
    dead: deadPk(region, '*'),
    replays: replayPk(region, '*'),
    slots: streamPk(region, '*'),
    requestCounts: requestCountPk(region, '*'),
    apiKeys: API_KEY_PK,
    keyUse: API_KEY_USE_PK,
    pairings: PAIRING_PK,
    idempotent: keys.idempotent('*', '').pk,
    alertRules: alertRulePk(region),
    alertStates: alertStatePk(region),
    notifySettings: notificationSettingsPk(region),
    recipients: recipientPk(any),
    recipientPlaces: recipientPlacePk(any),
    templates: templatePk(any),
    suppressions: suppressionPk(any),
    threads: threadPk(any),
    messages: messagePk(any),
    smsUse: smsUsePk(region),
    testEmails: testEmailPk(region),
    linkKey: linkKeyPk(region),
    search: searchPk(region, '*', '*'),
    wakes: listWakePartitions(region),
    cellLog: logPk(own),
    cellIndex: indexPk(own),
    cellWake: keys.wake(own).pk,
    feedLog: logPk(feed),
    feedIndex: indexPk(feed),
    notificationCursors: cursorPk(region, NOTIFICATIONS_SINK),
  };
}

/**
 * Returns the permissions of each capability. IAM compares the partitions with the leading keys of a call, and all keys of a call with
 * one statement.
 */
function listPermissions(region: string) {
  const p = listPartitions(region);
  const customerData = [p.recipients, p.recipientPlaces, p.templates, p.suppressions, p.threads, p.messages];
  const users = [p.attention, p.attentionHistory];
  const tracking = [p.index, p.snapshots, p.groups, p.rollups, p.openJobs, p.durations, p.markedJobs];
  return {
    /**
     * Grants of the tick: claim due accounts (few while the region's ordering API fails), process wake marks,
     * look up due cursors. It also creates the built-in sinks, one of which starts at the current heads of all
     * logs, and starts the cell feed there.
     */
    ticking: [
      [['Query'], [...p.wakes, p.accounts, p.sinks, p.followers]],
      [['PutItem'], [p.cell, p.cursors, p.feedLog, p.feedIndex]],
      // New built-in sinks. Sinks of an earlier version, with their due cursors and parked events.
      [['BatchWriteItem'], [p.followers]],
      [['UpdateItem'], [p.cell, p.status, p.cursors, p.sinks, p.sinkParts, p.parked, p.feedIndex]],
      // A write whose condition does not hold is followed by a read.
      [['GetItem'], [...p.wakes, p.cell, p.status, p.index, p.cursors, p.sinks, p.parked]],
      // The heads of logs; from the logs, the events that have waited longest for a sink.
      [['BatchGetItem'], [p.cursors, p.index, p.log, p.sinks, p.sinkParts]],
      [['DeleteItem'], p.wakes],
      { indexes: ['due'] },
      // The search index of jobs and recipients that an earlier version stored.
      [['Query'], [p.snapshots, p.recipients]],
      [['GetItem'], [p.accounts, p.linkKey]],
      [['BatchWriteItem', 'DeleteItem'], [p.search]],
    ],
    /** Grants of polls: the only ones to read and write tokens. */
    polling: [
      [['GetItem'], [p.cell, p.accounts, p.status, p.index, p.tokens, p.durations]],
      [['Query'], [p.index]],
      [['BatchGetItem'], [p.snapshots, p.groups, p.rollups]],
      [['PutItem'], [p.cell, p.index, p.snapshots, p.groups, p.log, p.tokens, ...p.wakes]],
      [['PutItem'], [p.rollups, p.openJobs, p.markedJobs, p.durations]],
      [['UpdateItem'], [p.status, p.index]],
      // Empty shards, marks of groups, snapshots of jobs that turned out not to count, groups without jobs,
      // rejected tokens.
      [['DeleteItem'], [p.index, p.snapshots, p.groups, p.tokens, p.markedJobs]],
      [['BatchWriteItem', 'DeleteItem'], [p.search]],
      // The recipient that represents the user of the account’s credentials.
      [['PutItem'], [p.search]],
      [['GetItem'], [p.recipients]],
      [['PutItem'], [p.recipients, p.recipientPlaces]],
      [['DeleteItem'], [p.recipientPlaces]],
      [['ConditionCheckItem'], [p.accounts]],
    ],
    /**
     * Grants waking sinks for marks of the stream, and filling the cell feed. The event source grants reading
     * the stream.
     */
    waking: [
      [['Query'], [p.followers]],
      [['PutItem'], [p.feedLog]],
      [['UpdateItem'], [p.cursors, p.feedIndex]],
      [['GetItem'], [...p.wakes, p.cursors]],
      [['BatchGetItem'], [p.cursors, p.index, p.sinks, p.sinkParts]],
      [['DeleteItem'], p.wakes],
    ],
    /**
     * Grants of drains: read all logs, move cursors, take leases, park events and dead-letter them, process
     * replays. They record events about sinks on the cell's own log, and on no other.
     */
    draining: [
      [['GetItem'], [p.index, p.log, p.cursors, p.sinks, p.sinkParts, p.parked, p.replays]],
      [['Query'], [p.log, p.parked, p.dead]],
      [['PutItem'], [p.cursors, p.parked, p.dead, p.cellLog, p.cellWake]],
      [['UpdateItem'], [p.cursors, p.sinks, p.sinkParts, p.parked, p.cellIndex]],
      // Cursors of deleted or cancelled replays; parked events that were delivered or are dead; dead events that
      // were replayed.
      [['DeleteItem'], [p.cursors, p.parked, p.dead]],
      { indexes: ['due'] },
    ],
    /** Grants the HTTP API to read accounts, their logs, jobs and totals, and the cell's own log. */
    reading: [
      [['Query'], [p.search]],
      [['GetItem'], [p.cell, p.accounts, p.status, p.index, p.snapshots, p.log, p.durations]],
      [['BatchGetItem'], [p.accounts, p.status, p.index, p.snapshots, p.log]],
      [['Query'], [p.accounts, p.snapshots, p.log]],
      [['BatchGetItem', 'Query'], [p.rollups]],
      [['GetItem', 'Query'], [p.openJobs]],
      { indexes: ['jobsByStatus', 'jobsByDue', 'jobsByOrder', 'related'] },
    ],
    /** Grants the HTTP API to list the attention queue, besides `reading` and `readingEndpoints`. */
    readingAttention: [
      // Whether customers can be notified.
      [['BatchGetItem'], [p.openJobs, p.notifySettings]],
      [['Query'], [p.markedJobs, p.attentionHistory]],
      [['BatchGetItem'], [p.attention]],
      { indexes: ['due'] },
    ],
    /** Grants the HTTP API to change items of the attention queue, which are read again first. */
    attending: [
      [['GetItem'], [p.cell, p.snapshots]],
      // The state of the item, that of an endpoint, the number of events that wait for it, and whether customers can be notified.
      [['BatchGetItem'], [p.attention, p.index, p.sinkParts, p.notifySettings]],
      [['PutItem'], [p.attention, p.attentionHistory]],
    ],
    /** Grants the HTTP API to read endpoints and their delivery state. Their secrets are in another partition. */
    readingEndpoints: [
      [['GetItem'], [p.sinks, p.replays]],
      // Progress of replays.
      [['BatchGetItem'], [p.sinks, p.sinkParts, p.cursors]],
      [['Query'], [p.sinks, p.cursors, p.parked, p.dead, p.replays]],
    ],
    /** Grants the HTTP API's endpoint operations besides `managing`: replays and parked events. */
    replaying: [
      [['BatchGetItem'], [p.sinks, p.sinkParts, p.cursors]],
      // A write whose condition does not hold is followed by a read.
      [['GetItem'], [p.cursors, p.parked, p.replays]],
      [['PutItem'], [p.replays]],
      [['UpdateItem'], [p.cursors, p.parked, p.replays]],
    ],
    /**
     * Grants streams and feeds of the HTTP API: read the cell feed, the cell's own log and those of its
     * accounts, take and release slots. They return no jobs.
     */
    streaming: [
      [['GetItem'], [p.status, p.index, p.log, p.slots]],
      [['BatchGetItem'], [p.accounts, p.log]],
      [['Query'], [p.log, p.slots]],
      [['PutItem', 'DeleteItem'], [p.slots]],
    ],
    /** Grants API authentication: look up keys and record their last use. No permission to write keys. */
    checkingKeys: [
      // A write whose condition does not hold is followed by a read.
      [['GetItem'], [p.apiKeys, p.keyUse]],
      [['PutItem'], [p.keyUse]],
    ],
    /** Grants counting the requests of keys. */
    countingRequests: [[['UpdateItem'], [p.requestCounts]]],
    /** Grants creating, listing and revoking keys, pairing wall displays, and removing deleted accounts from keys. */
    managingKeys: [
      [
        ['GetItem', 'Query', 'PutItem', 'UpdateItem', 'DeleteItem'],
        [p.apiKeys, p.pairings],
      ],
      [['DeleteItem'], [p.keyUse]],
    ],
    /** Grants creating keys only. */
    creatingKeys: [
      // A write whose condition does not hold is followed by a read.
      [['GetItem', 'Query', 'PutItem'], [p.apiKeys]],
    ],
    /** Grants listing keys and their last use. */
    listingKeys: [
      [['Query'], [p.apiKeys]],
      [['BatchGetItem'], [p.keyUse]],
    ],
    /** Grants executing requests with an idempotency key once, and storing their responses. */
    doingOnce: [[['GetItem', 'PutItem', 'UpdateItem'], [p.idempotent]]],
    /**
     * Grants all operations on endpoints, and confirming accounts. Events are read to find the start position
     * of an endpoint. Accounts: `managingAccounts`.
     */
    managing: [
      [['GetItem'], [p.accounts, p.status, p.index, p.log, p.sinks, p.sinkParts, p.locks]],
      [['BatchGetItem'], [p.accounts, p.sinkParts]],
      [['Query'], [p.accounts, p.log, p.sinks, p.followers, p.cursors, p.parked, p.dead, p.replays]],
      [['BatchWriteItem'], [p.followers]],
      [['PutItem'], [p.log, p.sinks, p.cursors, ...p.wakes]],
      [['UpdateItem'], [p.status, p.index, p.sinks, p.sinkParts, p.cursors, p.locks]],
      [['DeleteItem'], [p.sinks, p.followers, p.cursors, p.parked, p.dead, p.replays]],
      [['ConditionCheckItem'], [p.locks]],
    ],
    /** Grants giving new epochs to all logs of a restored table, and to the cell feed. */
    renewingLogs: [
      // A write whose condition does not hold is followed by a read.
      [['GetItem'], [p.status, p.index, p.log]],
      [['Query'], [p.accounts, p.log, p.sinks, p.cursors]],
      // Events and positions that a torn backup lacks.
      [['PutItem'], [p.log, p.cursors, ...p.wakes]],
      [['UpdateItem'], [p.status, p.index]],
    ],
    /**
     * Grants creating accounts, changing their polling, testing them, and deleting them with all their data.
     * Tokens and jobs are deleted, never returned.
     */
    managingAccounts: [
      [['DeleteItem'], [p.search]],
      [['GetItem'], [p.accounts, p.accountLocks, p.deletions, p.status, p.index]],
      // One statement for all partitions that one call reads.
      [['BatchGetItem'], [p.accounts, p.rollups, p.openJobs, p.durations, p.notifySettings, p.smsUse]],
      [['Query'], [p.accounts, p.deletions, p.index, p.snapshots, p.groups, p.log, p.sinks]],
      [['Query'], [p.cursors, p.parked, p.dead, p.markedJobs, p.attention, p.attentionHistory]],
      [['PutItem'], [p.accounts, p.status, p.index, p.deletions]],
      [['UpdateItem'], [p.accounts, p.accountLocks, p.deletions, p.status]],
      [['DeleteItem'], [p.accounts, p.deletions, p.status, p.tokens, p.index, p.snapshots, p.groups, p.log]],
      [['DeleteItem'], [...p.wakes, p.cursors, p.parked, p.dead, p.rollups, p.openJobs]],
      [['DeleteItem'], [p.markedJobs, p.attention, p.attentionHistory, p.durations]],
      [['Query'], customerData],
      [['DeleteItem'], [...customerData, p.notifySettings, p.smsUse]],
      [['ConditionCheckItem'], [p.accountLocks, p.deletions]],
    ],
    /** Grants moving accounts: hold notices and messages here, and write all data of accounts that come from other cells. */
    movingAccounts: [
      // A write whose condition does not hold is followed by a read.
      [['GetItem'], [p.cursors, p.linkKey, p.notifySettings, p.threads, p.messages, p.smsUse]],
      [['PutItem'], [p.linkKey, p.cursors, p.threads, p.messages, p.smsUse]],
      [['UpdateItem'], [p.index, p.status, p.threads, p.messages, p.suppressions]],
      // One statement for all partitions that one call writes.
      [
        ['BatchWriteItem'],
        [
          ...tracking,
          ...users,
          p.notifySettings,
          p.recipients,
          p.recipientPlaces,
          p.templates,
          p.suppressions,
        ],
      ],
      [['BatchWriteItem'], [p.search]],
    ],
    /** Grants the evaluation of alert rules: read rules and the values of their conditions, write their states. */
    alerting: [
      [['Query'], [p.alertRules, p.alertStates, p.accounts, p.openJobs, p.sinks, p.dead]],
      [['BatchGetItem'], [p.status, p.index, p.sinkParts]],
      [['GetItem'], [p.cell]],
      // A write whose condition does not hold is followed by a read.
      [['GetItem', 'PutItem', 'UpdateItem'], [p.alertStates]],
      { indexes: ['due'] },
    ],
    /** Grants the HTTP API to read alert rules. Their targets are in another partition. */
    readingAlerts: [
      [
        ['GetItem', 'Query'],
        [p.alertRules, p.alertStates],
      ],
    ],
    /** Grants the HTTP API to change alert rules. */
    managingAlerts: [
      [['GetItem'], [p.alertRules, p.alertStates]],
      [['Query', 'PutItem', 'UpdateItem'], [p.alertRules]],
      [['DeleteItem'], [p.alertRules, p.alertStates]],
    ],
    /** Grants drains to fold notifications to customers into threads. */
    folding: [
      [['GetItem'], [p.notifySettings, p.threads]],
      [['PutItem'], [p.threads]],
    ],
    /**
     * Grants closing due threads once the log is read up to their end, finding the recipients, and sending. The
     * link key is created if there is none.
     */
    notifying: [
      [
        ['GetItem'],
        [p.notifySettings, p.threads, p.messages, p.smsUse, p.linkKey, p.index, p.notificationCursors],
      ],
      [['BatchGetItem'], [p.notifySettings, p.threads, p.messages, p.recipients, p.suppressions]],
      [['Query'], [p.recipientPlaces, p.templates, p.log]],
      [['PutItem'], [p.threads, p.messages, p.linkKey]],
      // Addresses that reject messages permanently are suppressed.
      [['UpdateItem'], [p.threads, p.messages, p.smsUse, p.suppressions]],
      [['DeleteItem'], [p.messages]],
      [['ConditionCheckItem'], [p.accounts]],
      { indexes: ['due'] },
    ],
    /** Grants creating messages on demand: the sender sends them. */
    sendingNotes: [[['GetItem', 'PutItem', 'DeleteItem'], [p.messages]]],
    /** Grants recording mail feedback, and suppressing addresses that bounced or complained. */
    recordingFeedback: [
      [['GetItem', 'UpdateItem', 'PutItem', 'DeleteItem'], [p.messages]],
      // Addresses are stored as keyed hashes; the key was created with the link in the mail.
      [['GetItem'], [p.linkKey]],
      [['UpdateItem'], [p.suppressions]],
      [['ConditionCheckItem'], [p.accounts]],
    ],
    /**
     * Grants the HTTP API to read recipients, settings and templates of accounts, and the targets of links in
     * messages.
     */
    readingNotifications: [
      [['GetItem'], [p.notifySettings, p.recipients, p.templates, p.suppressions, p.threads, p.linkKey]],
      [['Query'], [p.recipients, p.templates, p.suppressions]],
      // Recipients that a search finds, and those of a job.
      [['BatchGetItem'], [p.recipients, p.suppressions]],
      [['Query'], [p.recipientPlaces]],
    ],
    /**
     * Grants the HTTP API to change recipients, settings and templates of accounts; previews use current jobs.
     */
    managingNotifications: [
      [['PutItem', 'DeleteItem'], [p.search]],
      [['GetItem'], [p.notifySettings, p.recipients, p.templates, p.suppressions, p.linkKey]],
      [['GetItem'], [p.snapshots, p.durations]],
      [['BatchGetItem'], [p.recipients, p.suppressions]],
      [['Query'], [p.recipients, p.recipientPlaces, p.templates, p.suppressions]],
      [['PutItem'], [p.notifySettings, p.recipients, p.recipientPlaces, p.templates, p.linkKey]],
      [['UpdateItem'], [p.suppressions]],
      [['GetItem', 'UpdateItem'], [p.testEmails]],
      [['DeleteItem'], [p.recipients, p.recipientPlaces, p.templates, p.suppressions]],
      [['ConditionCheckItem'], [p.accounts]],
    ],
  } satisfies Record<string, readonly Permission<IndexName>[]>;
}

/** Returns the properties of a table with a schema: its keys and indexes, on-demand capacity, TTL. */
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

/** Allows a function what permissions contain. */
export function allow(fn: CellFunction, table: ITableV2, permissions: readonly Permission[]): void {
  for (const permission of permissions) {
    if ('indexes' in permission) {
      const resources = permission.indexes.map((index) => `${table.tableArn}/index/${index}`);
      fn.permit(['dynamodb:Query'], resources);
      continue;
    }
    const [actions, partitions] = permission;
    const prefixed = actions.map((action) => `dynamodb:${action}`);
    fn.permit(prefixed, [table.tableArn], {
      'ForAllValues:StringLike': { 'dynamodb:LeadingKeys': [...partitions] },
      // `ForAllValues` is also true without any value.
      Null: { 'dynamodb:LeadingKeys': 'false' },
    });
  }
}
