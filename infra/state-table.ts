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
import { PolicyStatement } from 'aws-cdk-lib/aws-iam';
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
 * The state table of the cell. Each grant names the actions, the partitions (IAM compares them with the
 * leading keys of a call) and the indexes that one capability needs. It also passes the table's name to the
 * function. Tokens are in separate partitions, which only `grantPolling` opens.
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
    return Array.from({ length: WAKE_SHARDS }, (_, shard) => wakePk(this.#cell.region, shard));
  }

  /**
   * Grants of the tick: claim due accounts (few while the region's ordering API fails), process wake marks,
   * look up due cursors. It also creates the built-in sinks, one of which starts at the current heads of all
   * logs, and starts the cell feed there.
   */
  grantTicking(fn: CellFunction): void {
    const { cell, accounts, status, index, log, cursors, sinks, sinkParts, followers, parked } =
      this.#partitions();
    this.#allow(fn, ['Query'], [...this.wakePartitions(), accounts, sinks, followers]);
    const feed = feedLog(this.#cell.region);
    this.#allow(fn, ['PutItem'], [cell, cursors, logPk(feed), indexPk(feed)]);
    // New built-in sinks. Sinks of an earlier version, with their due cursors and parked events.
    this.#allow(fn, ['BatchWriteItem'], [followers]);
    this.#allow(fn, ['UpdateItem'], [cell, status, cursors, sinks, parked, indexPk(feed)]);
    // A write whose condition does not hold is followed by a read.
    this.#allow(fn, ['GetItem'], [...this.wakePartitions(), cell, status, index, cursors, sinks, parked]);
    // The heads of logs; from the logs, the events that have waited longest for a sink.
    this.#allow(fn, ['BatchGetItem'], [cursors, index, log, sinks, sinkParts]);
    this.#allow(fn, ['DeleteItem'], this.wakePartitions());
    this.#allowIndexes(fn, ['due']);
    // The search index of jobs and recipients that an earlier version stored.
    const { snapshots, recipients, search, linkKey } = this.#partitions();
    this.#allow(fn, ['Query'], [snapshots, recipients]);
    this.#allow(fn, ['GetItem'], [accounts, linkKey]);
    this.#allow(fn, ['BatchWriteItem', 'DeleteItem'], [search]);
    this.#passName(fn);
  }

  /** Grants of polls: the only ones to read and write tokens. */
  grantPolling(fn: CellFunction): void {
    const { cell, accounts, status, tokens, index, snapshots, groups, log } = this.#partitions();
    const { rollups, openJobs, markedJobs, durations, search } = this.#partitions();
    this.#allow(fn, ['GetItem'], [cell, accounts, status, index, tokens, durations]);
    this.#allow(fn, ['Query'], [index]);
    this.#allow(fn, ['BatchGetItem'], [snapshots, groups, rollups]);
    this.#allow(fn, ['PutItem'], [cell, index, snapshots, groups, log, tokens, ...this.wakePartitions()]);
    this.#allow(fn, ['PutItem'], [rollups, openJobs, markedJobs, durations]);
    this.#allow(fn, ['UpdateItem'], [status, index]);
    // Empty shards, marks of groups, snapshots of jobs that turned out not to count, groups without jobs,
    // rejected tokens.
    this.#allow(fn, ['DeleteItem'], [index, snapshots, groups, tokens, markedJobs]);
    this.#allow(fn, ['BatchWriteItem', 'DeleteItem'], [search]);
    this.#allowOwnUser(fn);
    this.#passName(fn);
  }

  /**
   * Grants waking sinks for marks of the stream, and filling the cell feed. The event source grants reading
   * the stream.
   */
  grantWaking(fn: CellFunction): void {
    const { index, cursors, sinks, sinkParts, followers } = this.#partitions();
    const feed = feedLog(this.#cell.region);
    this.#allow(fn, ['Query'], [followers]);
    this.#allow(fn, ['PutItem'], [logPk(feed)]);
    this.#allow(fn, ['UpdateItem'], [cursors, indexPk(feed)]);
    this.#allow(fn, ['GetItem'], [...this.wakePartitions(), cursors]);
    this.#allow(fn, ['BatchGetItem'], [cursors, index, sinks, sinkParts]);
    this.#allow(fn, ['DeleteItem'], this.wakePartitions());
    this.#passName(fn);
  }

  /**
   * Grants of drains: read all logs, move cursors, take leases, park events and dead-letter them, process
   * replays. They record events about sinks on the cell's own log, and on no other.
   */
  grantDraining(fn: CellFunction): void {
    const { index, log, cursors, sinks, sinkParts, parked, dead, replays } = this.#partitions();
    const own = cellLog(this.#cell.region);
    this.#allow(fn, ['GetItem'], [index, log, cursors, sinks, sinkParts, parked, replays]);
    this.#allow(fn, ['Query'], [log, parked, dead]);
    this.#allow(fn, ['PutItem'], [cursors, parked, dead, logPk(own), keys.wake(own).pk]);
    this.#allow(fn, ['UpdateItem'], [cursors, sinks, sinkParts, parked, indexPk(own)]);
    // Cursors of deleted or cancelled replays; parked events that were delivered or are dead; dead events that
    // were replayed.
    this.#allow(fn, ['DeleteItem'], [cursors, parked, dead]);
    this.#allowIndexes(fn, ['due']);
    this.#passName(fn);
  }

  /** Grants the HTTP API to read accounts, their logs, jobs and totals, and the cell's own log. */
  grantReading(fn: CellFunction): void {
    const { cell, accounts, status, index, snapshots, log } = this.#partitions();
    const { rollups, openJobs, durations, search } = this.#partitions();
    this.#allow(fn, ['Query'], [search]);
    this.#allow(fn, ['GetItem'], [cell, accounts, status, index, snapshots, log, durations]);
    this.#allow(fn, ['BatchGetItem'], [accounts, status, index, snapshots, log]);
    this.#allow(fn, ['Query'], [accounts, snapshots, log]);
    this.#allow(fn, ['BatchGetItem', 'Query'], [rollups]);
    this.#allow(fn, ['GetItem', 'Query'], [openJobs]);
    this.#allowIndexes(fn, ['jobsByStatus', 'jobsByDue', 'jobsByOrder', 'related']);
    this.#passName(fn);
  }

  /** Grants the HTTP API to list the attention queue, besides {@link grantReading} and {@link grantReadingEndpoints}. */
  grantReadingAttention(fn: CellFunction): void {
    const { openJobs, markedJobs, attention, attentionHistory, notifySettings } = this.#partitions();
    // Whether customers can be notified.
    this.#allow(fn, ['BatchGetItem'], [openJobs, notifySettings]);
    this.#allow(fn, ['Query'], [markedJobs, attention, attentionHistory]);
    this.#allow(fn, ['GetItem'], [attention]);
    this.#allowIndexes(fn, ['due']);
    this.#passName(fn);
  }

  /** Grants the HTTP API to change items of the attention queue, which are read again first. */
  grantAttending(fn: CellFunction): void {
    const { cell, index, snapshots, sinkParts, attention, attentionHistory, notifySettings } =
      this.#partitions();
    this.#allow(fn, ['GetItem'], [cell, snapshots, attention]);
    // The state of an endpoint, the number of events that wait for it, and whether customers can be notified.
    this.#allow(fn, ['BatchGetItem'], [index, sinkParts, notifySettings]);
    this.#allow(fn, ['PutItem'], [attention, attentionHistory]);
    this.#passName(fn);
  }

  /** Grants the HTTP API to read endpoints and their delivery state. Their secrets are in another partition. */
  grantReadingEndpoints(fn: CellFunction): void {
    const { sinks, sinkParts, cursors, parked, dead, replays } = this.#partitions();
    this.#allow(fn, ['GetItem'], [sinks, replays]);
    // Progress of replays.
    this.#allow(fn, ['BatchGetItem'], [sinks, sinkParts, cursors]);
    this.#allow(fn, ['Query'], [sinks, cursors, parked, dead, replays]);
    this.#passName(fn);
  }

  /** Grants the HTTP API's endpoint operations besides {@link grantManaging}: replays and parked events. */
  grantReplaying(fn: CellFunction): void {
    const { sinks, sinkParts, cursors, parked, replays } = this.#partitions();
    this.#allow(fn, ['BatchGetItem'], [sinks, sinkParts, cursors]);
    // A write whose condition does not hold is followed by a read.
    this.#allow(fn, ['GetItem'], [cursors, parked, replays]);
    this.#allow(fn, ['PutItem'], [replays]);
    this.#allow(fn, ['UpdateItem'], [parked, replays]);
    this.#passName(fn);
  }

  /**
   * Grants streams and feeds of the HTTP API: read the cell feed, the cell's own log and those of its
   * accounts, take and release slots. They return no jobs.
   */
  grantStreaming(fn: CellFunction): void {
    const { accounts, status, index, log, slots } = this.#partitions();
    this.#allow(fn, ['GetItem'], [status, index, log, slots]);
    this.#allow(fn, ['BatchGetItem'], [accounts, log]);
    this.#allow(fn, ['Query'], [log, slots]);
    this.#allow(fn, ['PutItem', 'DeleteItem'], [slots]);
    this.#passName(fn);
  }

  /** Grants API authentication: look up keys and record their last use. No permission to write keys. */
  grantCheckingKeys(fn: CellFunction): void {
    const { apiKeys, keyUse } = this.#partitions();
    // A write whose condition does not hold is followed by a read.
    this.#allow(fn, ['GetItem'], [apiKeys, keyUse]);
    this.#allow(fn, ['PutItem'], [keyUse]);
    this.#passName(fn);
  }

  /** Grants counting the requests of keys. */
  grantCountingRequests(fn: CellFunction): void {
    this.#allow(fn, ['UpdateItem'], [this.#partitions().requestCounts]);
    this.#passName(fn);
  }

  /** Grants creating, listing and revoking keys, pairing wall displays, and removing deleted accounts from keys. */
  grantManagingKeys(fn: CellFunction): void {
    const { apiKeys, keyUse, pairings } = this.#partitions();
    this.#allow(fn, ['GetItem', 'Query', 'PutItem', 'UpdateItem', 'DeleteItem'], [apiKeys, pairings]);
    this.#allow(fn, ['DeleteItem'], [keyUse]);
    this.#passName(fn);
  }

  /** Grants creating keys only. */
  grantCreatingKeys(fn: CellFunction): void {
    // A write whose condition does not hold is followed by a read.
    this.#allow(fn, ['GetItem', 'Query', 'PutItem'], [this.#partitions().apiKeys]);
    this.#passName(fn);
  }

  /** Grants listing keys and their last use. */
  grantListingKeys(fn: CellFunction): void {
    const { apiKeys, keyUse } = this.#partitions();
    this.#allow(fn, ['Query'], [apiKeys]);
    this.#allow(fn, ['BatchGetItem'], [keyUse]);
    this.#passName(fn);
  }

  /** Grants executing requests with an idempotency key once, and storing their responses. */
  grantDoingOnce(fn: CellFunction): void {
    this.#allow(fn, ['GetItem', 'PutItem', 'UpdateItem'], [this.#partitions().idempotent]);
    this.#passName(fn);
  }

  /**
   * Grants all operations on endpoints, and confirming accounts. Events are read to find the start position
   * of an endpoint. Accounts: {@link grantManagingAccounts}.
   */
  grantManaging(fn: CellFunction): void {
    const { accounts, status, index, log, sinks, locks, cursors, parked, dead, replays } = this.#partitions();
    const { sinkParts, followers } = this.#partitions();
    this.#allow(fn, ['GetItem'], [accounts, status, index, log, sinks, sinkParts, locks]);
    this.#allow(fn, ['BatchGetItem'], [accounts, sinkParts]);
    this.#allow(fn, ['Query'], [accounts, log, sinks, followers, cursors, parked, dead, replays]);
    this.#allow(fn, ['BatchWriteItem'], [followers]);
    this.#allow(fn, ['PutItem'], [log, sinks, cursors, ...this.wakePartitions()]);
    this.#allow(fn, ['UpdateItem'], [status, index, sinks, sinkParts, locks]);
    this.#allow(fn, ['DeleteItem'], [sinks, followers, cursors, parked, dead, replays]);
    this.#allow(fn, ['ConditionCheckItem'], [locks]);
    this.#passName(fn);
  }

  /** Grants giving new epochs to all logs of a restored table, and to the cell feed. */
  grantRenewingLogs(fn: CellFunction): void {
    const { accounts, status, index, log, sinks, cursors } = this.#partitions();
    // A write whose condition does not hold is followed by a read.
    this.#allow(fn, ['GetItem'], [status, index, log]);
    this.#allow(fn, ['Query'], [accounts, log, sinks, cursors]);
    // Events and positions that a torn backup lacks.
    this.#allow(fn, ['PutItem'], [log, cursors, ...this.wakePartitions()]);
    this.#allow(fn, ['UpdateItem'], [status, index]);
    this.#passName(fn);
  }

  /**
   * Grants creating accounts, changing their polling, testing them, and deleting them with all their data.
   * Tokens and jobs are deleted, never returned.
   */
  grantManagingAccounts(fn: CellFunction): void {
    const { accounts, accountLocks, deletions, status, tokens, index, snapshots, groups, log } =
      this.#partitions();
    const { sinks, cursors, parked, dead, rollups, openJobs, durations } = this.#partitions();
    const { markedJobs, attention, attentionHistory } = this.#partitions();
    const { notifySettings, recipients, recipientPlaces, templates } = this.#partitions();
    const { suppressions, threads, messages, smsUse, search } = this.#partitions();
    this.#allow(fn, ['DeleteItem'], [search]);
    this.#allow(fn, ['GetItem'], [accounts, accountLocks, deletions, status, index]);
    // One statement for all partitions that one call reads.
    this.#allow(fn, ['BatchGetItem'], [accounts, rollups, openJobs, durations, notifySettings, smsUse]);
    this.#allow(fn, ['Query'], [accounts, deletions, index, snapshots, groups, log, sinks]);
    this.#allow(fn, ['Query'], [cursors, parked, dead, markedJobs, attention, attentionHistory]);
    this.#allow(fn, ['PutItem'], [accounts, status, index, deletions]);
    this.#allow(fn, ['UpdateItem'], [accounts, accountLocks, deletions, status]);
    this.#allow(fn, ['DeleteItem'], [accounts, deletions, status, tokens, index, snapshots, groups, log]);
    this.#allow(fn, ['DeleteItem'], [...this.wakePartitions(), cursors, parked, dead, rollups, openJobs]);
    this.#allow(fn, ['DeleteItem'], [markedJobs, attention, attentionHistory, durations]);
    const customerData = [recipients, recipientPlaces, templates, suppressions, threads, messages];
    this.#allow(fn, ['Query'], customerData);
    this.#allow(fn, ['DeleteItem'], [...customerData, notifySettings, smsUse]);
    this.#allow(fn, ['ConditionCheckItem'], [accountLocks, deletions]);
    this.#passName(fn);
  }

  /** Grants moving accounts: hold notices and messages here, and write all data of accounts that come from other cells. */
  grantMovingAccounts(fn: CellFunction): void {
    const { index, status, snapshots, groups, rollups, openJobs, cursors, linkKey } = this.#partitions();
    const { durations, markedJobs, attention, attentionHistory, search } = this.#partitions();
    const { notifySettings, recipients, recipientPlaces, templates } = this.#partitions();
    const { suppressions, threads, messages, smsUse } = this.#partitions();
    // A write whose condition does not hold is followed by a read.
    this.#allow(fn, ['GetItem'], [cursors, linkKey, notifySettings, threads, messages, smsUse]);
    this.#allow(fn, ['PutItem'], [linkKey, cursors, threads, messages, smsUse]);
    this.#allow(fn, ['UpdateItem'], [index, status, threads, messages, suppressions]);
    const customerData = [notifySettings, recipients, recipientPlaces, templates, suppressions];
    const tracking = [index, snapshots, groups, rollups, openJobs, durations, markedJobs];
    const users = [attention, attentionHistory];
    // One statement for all partitions that one call writes.
    this.#allow(fn, ['BatchWriteItem'], [...tracking, ...users, ...customerData]);
    this.#allow(fn, ['BatchWriteItem'], [search]);
    this.#passName(fn);
  }

  /** Grants the evaluation of alert rules: read rules and the values of their conditions, write their states. */
  grantAlerting(fn: CellFunction): void {
    const { alertRules, alertStates, cell, accounts, status, index, openJobs } = this.#partitions();
    const { sinks, sinkParts, dead } = this.#partitions();
    this.#allow(fn, ['Query'], [alertRules, alertStates, accounts, openJobs, sinks, dead]);
    this.#allow(fn, ['BatchGetItem'], [status, index, sinkParts]);
    this.#allow(fn, ['GetItem'], [cell]);
    // A write whose condition does not hold is followed by a read.
    this.#allow(fn, ['GetItem', 'PutItem', 'UpdateItem'], [alertStates]);
    this.#allowIndexes(fn, ['due']);
    this.#passName(fn);
  }

  /** Grants the HTTP API to read alert rules. Their targets are in another partition. */
  grantReadingAlerts(fn: CellFunction): void {
    const { alertRules, alertStates } = this.#partitions();
    this.#allow(fn, ['GetItem', 'Query'], [alertRules, alertStates]);
    this.#passName(fn);
  }

  /** Grants the HTTP API to change alert rules. */
  grantManagingAlerts(fn: CellFunction): void {
    const { alertRules, alertStates } = this.#partitions();
    this.#allow(fn, ['GetItem'], [alertRules, alertStates]);
    this.#allow(fn, ['Query', 'PutItem', 'UpdateItem'], [alertRules]);
    this.#allow(fn, ['DeleteItem'], [alertRules, alertStates]);
    this.#passName(fn);
  }

  /** Grants drains to fold notifications to customers into threads. */
  grantFolding(fn: CellFunction): void {
    const { notifySettings, threads } = this.#partitions();
    this.#allow(fn, ['GetItem'], [notifySettings, threads]);
    this.#allow(fn, ['PutItem'], [threads]);
    this.#passName(fn);
  }

  /**
   * Grants closing due threads once the log is read up to their end, finding the recipients, and sending. The
   * link key is created if there is none.
   */
  grantNotifying(fn: CellFunction): void {
    const { notifySettings, threads, messages, recipients, recipientPlaces } = this.#partitions();
    const { templates, suppressions, smsUse, linkKey, accounts, index, log } = this.#partitions();
    const cursors = cursorPk(this.#cell.region, NOTIFICATIONS_SINK);
    this.#allow(fn, ['GetItem'], [notifySettings, threads, messages, smsUse, linkKey, index, cursors]);
    this.#allow(fn, ['BatchGetItem'], [notifySettings, threads, messages, recipients, suppressions]);
    this.#allow(fn, ['Query'], [recipientPlaces, templates, log]);
    this.#allow(fn, ['PutItem'], [threads, messages, linkKey]);
    // Addresses that reject messages permanently are suppressed.
    this.#allow(fn, ['UpdateItem'], [threads, messages, smsUse, suppressions]);
    this.#allow(fn, ['DeleteItem'], [messages]);
    this.#allow(fn, ['ConditionCheckItem'], [accounts]);
    this.#allowIndexes(fn, ['due']);
    this.#passName(fn);
  }

  /** Grants creating messages on demand: the sender sends them. */
  grantSendingNotes(fn: CellFunction): void {
    const { messages } = this.#partitions();
    this.#allow(fn, ['GetItem', 'PutItem', 'DeleteItem'], [messages]);
    this.#passName(fn);
  }

  /** Grants recording mail feedback, and suppressing addresses that bounced or complained. */
  grantHearing(fn: CellFunction): void {
    const { accounts, messages, suppressions, linkKey } = this.#partitions();
    this.#allow(fn, ['GetItem', 'UpdateItem', 'PutItem', 'DeleteItem'], [messages]);
    // Addresses are stored as keyed hashes; the key was created with the link in the mail.
    this.#allow(fn, ['GetItem'], [linkKey]);
    this.#allow(fn, ['UpdateItem'], [suppressions]);
    this.#allow(fn, ['ConditionCheckItem'], [accounts]);
    this.#passName(fn);
  }

  /**
   * Grants the HTTP API to read recipients, settings and templates of accounts, and the targets of links in
   * messages.
   */
  grantReadingNotifications(fn: CellFunction): void {
    const { notifySettings, recipients, recipientPlaces, templates } = this.#partitions();
    const { suppressions, threads, linkKey } = this.#partitions();
    this.#allow(fn, ['GetItem'], [notifySettings, recipients, templates, suppressions, threads, linkKey]);
    this.#allow(fn, ['Query'], [recipients, templates, suppressions]);
    // Recipients that a search finds, and those of a job.
    this.#allow(fn, ['BatchGetItem'], [recipients, suppressions]);
    this.#allow(fn, ['Query'], [recipientPlaces]);
    this.#passName(fn);
  }

  /**
   * Grants the HTTP API to change recipients, settings and templates of accounts; previews use current jobs.
   */
  grantManagingNotifications(fn: CellFunction): void {
    const { notifySettings, recipients, recipientPlaces, templates, suppressions } = this.#partitions();
    const { accounts, linkKey, snapshots, durations, search, testEmails } = this.#partitions();
    this.#allow(fn, ['PutItem', 'DeleteItem'], [search]);
    this.#allow(fn, ['GetItem'], [notifySettings, recipients, templates, suppressions, linkKey]);
    this.#allow(fn, ['GetItem'], [snapshots, durations]);
    this.#allow(fn, ['BatchGetItem'], [recipients, suppressions]);
    this.#allow(fn, ['Query'], [recipients, recipientPlaces, templates, suppressions]);
    this.#allow(fn, ['PutItem'], [notifySettings, recipients, recipientPlaces, templates, linkKey]);
    this.#allow(fn, ['UpdateItem'], [suppressions]);
    this.#allow(fn, ['GetItem', 'UpdateItem'], [testEmails]);
    this.#allow(fn, ['DeleteItem'], [recipients, recipientPlaces, templates, suppressions]);
    this.#allow(fn, ['ConditionCheckItem'], [accounts]);
    this.#passName(fn);
  }

  /** Grants polls to write the recipient that represents the user of an account’s credentials. */
  #allowOwnUser(fn: CellFunction): void {
    const { accounts, recipients, recipientPlaces, search } = this.#partitions();
    this.#allow(fn, ['PutItem'], [search]);
    this.#allow(fn, ['GetItem'], [recipients]);
    this.#allow(fn, ['PutItem'], [recipients, recipientPlaces]);
    this.#allow(fn, ['DeleteItem'], [recipientPlaces]);
    this.#allow(fn, ['ConditionCheckItem'], [accounts]);
  }

  /** Returns the patterns of the leading keys of each kind of item, in the notation of `StringLike`. */
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
    };
  }

  #allow(fn: CellFunction, actions: readonly Action[], partitions: readonly string[]): void {
    allow(fn, this.table, actions, partitions);
  }

  /** Indexes contain keys only, and no token is in any of them. */
  #allowIndexes(fn: CellFunction, indexes: readonly IndexName[]): void {
    allowIndexes(fn, this.table, indexes);
  }

  #passName(fn: CellFunction): void {
    fn.set('JOBWIRE_TABLE', this.name);
  }
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
        // `ForAllValues` is also true without any value.
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
