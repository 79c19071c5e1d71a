/**
 * The key schemas of the two tables, as data. `infra/` creates the tables from them; adapters and tests use
 * them. All keys are built here. `docs/internals/access-patterns.md` lists the items with their keys, readers and writers.
 * One file: all parts share one table, and only together is it visible that no two keys are equal.
 */
import { hash } from 'node:crypto';
import type { Key } from './table.ts';

/** The keys and indexes of a table. */
export interface TableSchema {
  readonly partitionKey: 'pk';
  readonly sortKey: 'sk';
  /**
   * Epoch seconds after which DynamoDB may delete the item. Where expiry matters, readers use `expiresAt`
   * (epoch ms).
   */
  readonly ttlAttribute: 'ttl';
  /** All indexes are sparse: an item without one of an index's keys is not in that index. */
  readonly indexes: { readonly [name: string]: IndexSchema };
}

/** An index of a table. */
export interface IndexSchema {
  readonly partitionKey: string;
  readonly sortKey: string;
  /** Projection: `keys` costs least to write; `items` (whole items) needs no second read. */
  readonly holds: 'keys' | 'items';
}

/** The state table: all current state of Jobwire. */
export const stateSchema = {
  partitionKey: 'pk',
  sortKey: 'sk',
  ttlAttribute: 'ttl',
  indexes: {
    /** Due work: polls (`POLLS#region#shard`) by due time, and cursors (`DRAINS#region#shard`) by sink and due time. */
    due: { partitionKey: 'duePk', sortKey: 'dueSk', holds: 'keys' },
    /** Jobs of an account in one status, by due day. */
    jobsByStatus: { partitionKey: 'statusPk', sortKey: 'statusSk', holds: 'keys' },
    /**
     * Open, undispatched jobs of an account by due day, for late jobs and jobs due on a day. In separate
     * partitions: its dispatched jobs by dispatch day.
     */
    jobsByDue: { partitionKey: 'openPk', sortKey: 'openSk', holds: 'keys' },
    /** Jobs of an account by order number. */
    jobsByOrder: { partitionKey: 'orderPk', sortKey: 'orderSk', holds: 'keys' },
    /**
     * Related items: events of a job (`JOB#region#account#job`), jobs of an order group
     * (`GROUP#region#account#name`), accounts with late jobs (`LATE#region`) and accounts whose state needs
     * attention (`TROUBLED#region`). One index serves all, because a deployed stack can add only one index at
     * a time.
     */
    related: { partitionKey: 'relatedPk', sortKey: 'relatedSk', holds: 'keys' },
  },
} as const satisfies TableSchema;

/** The history table: records that are displayed or counted, on which no poll or delivery depends. They expire by TTL. */
export const historySchema = {
  partitionKey: 'pk',
  sortKey: 'sk',
  ttlAttribute: 'ttl',
  indexes: {
    /**
     * Delivery outcomes of one event at all sinks, by time. Written with each delivery and seldom read, so
     * keys only.
     */
    byEvent: { partitionKey: 'eventPk', sortKey: 'sk', holds: 'keys' },
    /** Failed deliveries of a sink and failed messages of a region, by time. They are few and are read by page, so whole items. */
    failures: { partitionKey: 'failedPk', sortKey: 'sk', holds: 'items' },
  },
} as const satisfies TableSchema;

/** An account, identified by its region and id. Ids are unique within a region (rule 17). */
export interface AccountRef {
  readonly region: string;
  readonly account: string;
}

/**
 * The account id of a cell's own log, which holds events about the region rather than an account. No account
 * can have it.
 */
export const CELL_LOG = '_cell';

/** Returns the reference to the cell's own log. */
export function cellLog(region: string): AccountRef {
  return { region, account: CELL_LOG };
}

/** Reports whether this is a cell's own log rather than an account's log. */
export function isCell(ref: AccountRef): boolean {
  return ref.account === CELL_LOG;
}

/**
 * The account id of the cell feed: references to the events of all accounts and of the cell's own log, in one
 * sequence.
 *
 * It is also the id of the "sink" whose cursors record the position of the feed in each log. Neither an
 * account nor a sink can have it.
 */
export const FEED_LOG = '_feed';

/** Returns the reference to the cell feed of a region. */
export function feedLog(region: string): AccountRef {
  return { region, account: FEED_LOG };
}

/** Reports whether the id is reserved: no account can have it. */
export function isReserved({ account }: AccountRef): boolean {
  return account === CELL_LOG || account === FEED_LOG;
}

/** Number of partitions for a region's due polls in the `due` index. */
export const POLL_SHARDS = 8;
/** Number of partitions for a region's due cursors in the `due` index. Those of a sink are in one of them. */
export const DRAIN_SHARDS = 16;
/** Number of parts of a divided sink. Each has its own lease and health, and the accounts of one hash value. */
export const SINK_PARTS = 8;
/** Built-in sinks of all accounts: one drain could not deliver the events of thousands of accounts. */
const DIVIDED_SINKS: readonly string[] = ['topic', 'sns-standard', 'event-bus', 'notifications'];
/** Number of partitions for a region's wake marks. */
export const WAKE_SHARDS = 4;
/** Number of partitions for the deliveries to one sink. Each partition accepts 1,000 write units a second. */
export const DELIVERY_SHARDS = 4;

/** Number of partitions for a region's due threads, and for its due messages. */
export const NOTIFY_SHARDS = 4;

/** The key of every kind of item. Sort keys compare as text, so numbers are padded. */
export const keys = {
  /** An account. All accounts of a region share one partition, so that they can be listed. */
  account: (ref: AccountRef): Key => ({ pk: `ACCOUNTS#${ref.region}`, sk: ref.account }),
  /** The lock of an account for operations on it as a whole: creation, credentials, deletion. */
  accountLock: (ref: AccountRef): Key => ({ pk: accountLockPk(ref.region), sk: ref.account }),
  /** The remaining work of an account's deletion. While this item exists, the account id cannot be reused. */
  deletion: (ref: AccountRef): Key => ({ pk: deletionPk(ref.region), sk: ref.account }),
  /** The credentials of an account, encrypted. */
  credentials: (ref: AccountRef): Key => ({ pk: credentialsPk(ref.region), sk: ref.account }),
  status: (ref: AccountRef): Key => ({ pk: `STATUS#${formatRef(ref)}`, sk: 'STATUS' }),
  /**
   * The upstream tokens of an account. They have their own prefix, so that IAM (`LeadingKeys`) lets only
   * polling read them.
   */
  token: (ref: AccountRef): Key => ({ pk: `TOKEN#${formatRef(ref)}`, sk: 'TOKEN' }),
  /** The state of a region's ordering API, as its polls observed it. */
  upstream: (region: string): Key => ({ pk: cellPk(region), sk: 'UPSTREAM' }),
  /**
   * Head and index shards share a partition. One query returns them, Head first (`HEAD` < `PENDING` <
   * `SHARD`).
   */
  head: (ref: AccountRef): Key => ({ pk: indexPk(ref), sk: 'HEAD' }),
  /** The payments that are known of an account, next to its Head: every poll's query returns it. */
  payments: (ref: AccountRef): Key => ({ pk: indexPk(ref), sk: 'PAYMENTS' }),
  shard: (ref: AccountRef, lowestJobNumber: number): Key => ({
    pk: indexPk(ref),
    sk: `SHARD#${pad(lowestJobNumber, 12)}`,
  }),
  /** An order group. */
  group: (ref: AccountRef, orderGroup: string): Key => ({ pk: groupPk(ref), sk: nameKey(orderGroup) }),
  /**
   * A mark that an order group must be fetched. It sorts between Head and the shards, so that the same query
   * returns it.
   */
  pendingGroup: (ref: AccountRef, orderGroup: string): Key => ({
    pk: indexPk(ref),
    sk: `PENDING#${nameKey(orderGroup)}`,
  }),
  snapshot: (ref: AccountRef, jobNumber: number): Key => ({ pk: snapshotPk(ref), sk: pad(jobNumber, 12) }),
  event: (ref: AccountRef, sequence: number): Key => ({ pk: logPk(ref), sk: pad(sequence, 16) }),
  /** The totals of an account's log for one day. */
  rollup: (ref: AccountRef, day: string): Key => ({ pk: rollupPk(ref.region, day), sk: ref.account }),
  /** The totals of an account's last complete list reading. */
  openJobs: (ref: AccountRef): Key => ({ pk: openJobsPk(ref.region), sk: ref.account }),
  /** A pointer to a job that needs attention: at risk, stalled, due soon, or in one of the `attentionStatuses`. */
  markedJob: (ref: AccountRef, jobNumber: number): Key => ({
    pk: markedJobPk(ref.region),
    sk: `${ref.account}#${pad(jobNumber, 12)}`,
  }),
  /** Actions of users on an item of the attention queue. `item` begins with its account, if it depends on that. */
  attention: (region: string, item: string): Key => ({ pk: attentionPk(region), sk: item }),
  /** One entry of the history of an item of the attention queue, by number. */
  attentionEntry: (region: string, item: string, entry: number): Key => ({
    pk: attentionHistoryPk(region),
    sk: `${item}#${pad(entry, 8)}`,
  }),
  /** The usual durations of an account's jobs, and the results of its risk flags. */
  durations: (ref: AccountRef): Key => ({ pk: `DURATIONS#${formatRef(ref)}`, sk: 'DURATIONS' }),
  wake: (ref: AccountRef): Key => ({
    pk: wakePk(ref.region, toShard(ref.account, WAKE_SHARDS)),
    sk: ref.account,
  }),
  /** A sink. All sinks of a region share one partition, so that they can be listed. */
  sink: (region: string, sink: string): Key => ({ pk: sinkPk(region), sk: sink }),
  /** The lease and the health of a part of a divided sink. An undivided sink has them in its own item. */
  sinkState: (region: string, name: string): Key => ({
    pk: isPart(name) ? sinkPartPk(region) : sinkPk(region),
    sk: name,
  }),
  /** A sink that follows an account. With {@link ALL_ACCOUNTS} as the account: one that follows all. */
  follower: (ref: AccountRef, sink: string): Key => ({ pk: followerPk(ref), sk: sink }),
  /** Progress of indexing the sinks of an earlier version. */
  sinkIndexing: (region: string): Key => ({ pk: cellPk(region), sk: 'SINKS' }),
  /** Progress of indexing the jobs and recipients of an earlier version for the search. */
  searchIndexing: (region: string): Key => ({ pk: cellPk(region), sk: 'SEARCH' }),
  /** The lock of an endpoint for operations on it as a whole: creation, change, deletion. */
  endpointLock: (region: string, endpoint: string): Key => ({
    pk: endpointLockPk(region),
    sk: endpoint,
  }),
  /** The secrets of an endpoint, encrypted; no response contains them. */
  endpointSecrets: (region: string, endpoint: string): Key => ({
    pk: endpointSecretsPk(region),
    sk: endpoint,
  }),
  /** A key that encrypts secrets, itself encrypted by KMS. Versions sort in the order of their creation. */
  dataKey: (region: string, version: number): Key => ({ pk: dataKeyPk(region), sk: pad(version, 4) }),
  /** A text encrypted with the key of those secrets, which verifies the key. */
  secretKeyCheck: (): Key => ({ pk: 'SECRETS', sk: 'KEY' }),
  /** The time of the last write that checked whether writes succeed again. */
  writeCheck: (): Key => ({ pk: 'WRITES', sk: 'CHECK' }),
  cursor: (region: string, sink: string, account: string): Key => ({
    pk: cursorPk(region, sink),
    sk: account,
  }),
  /** One slot of an API key for connections that wait: streams, and long polls without events to return. */
  streamSlot: (region: string, keyId: string, slot: number): Key => ({
    pk: streamPk(region, keyId),
    sk: pad(slot, 4),
  }),
  /** The number of requests of an API key in a minute (number since the epoch). */
  requestCount: (region: string, keyId: string, minute: number): Key => ({
    pk: requestCountPk(region, keyId),
    sk: String(minute),
  }),
  /** An API key. All API keys share one partition, so that they can be listed. */
  apiKey: (id: string): Key => ({ pk: API_KEY_PK, sk: id }),
  /**
   * The time of an API key's last use. A separate item, so that the process that verifies keys needs no write
   * access to them.
   */
  apiKeyUse: (id: string): Key => ({ pk: API_KEY_USE_PK, sk: id }),
  /** A pairing of a wall display, by its code. */
  pairing: (code: string): Key => ({ pk: PAIRING_PK, sk: code }),
  /** The response to a request with an idempotency key. `name` is a hash of the idempotency key. */
  idempotent: (keyId: string, name: string): Key => ({ pk: `IDEMPOTENCY#${keyId}`, sk: name }),
  /** A replay to a sink. */
  replay: (region: string, sink: string, replay: string): Key => ({ pk: replayPk(region, sink), sk: replay }),
  /**
   * The position of a replay in one account's log. It is stored beside the live cursors, because it is
   * processed as they are.
   */
  replayCursor: (region: string, sink: string, account: string, replay: string): Key => ({
    pk: cursorPk(region, sink),
    sk: `${account}#${replay}`,
  }),
  /** An event dead-lettered after the last attempt. */
  dead: (region: string, sink: string, account: string, sequence: number): Key => ({
    pk: deadPk(region, sink),
    sk: `${account}#${pad(sequence, 16)}`,
  }),
  /** An event parked for a sink. The events of one lane are adjacent, in order. */
  parked: (region: string, sink: string, account: string, lane: string, sequence: number): Key => ({
    pk: parkedPk(region, sink),
    sk: `${account}#${lane}#${pad(sequence, 16)}`,
  }),
  /**
   * The notification settings of an account. Those of a region share one partition, so that they can be
   * listed.
   */
  notificationSettings: (ref: AccountRef): Key => ({
    pk: notificationSettingsPk(ref.region),
    sk: ref.account,
  }),
  recipient: (ref: AccountRef, recipient: string): Key => ({ pk: recipientPk(ref), sk: recipient }),
  /** An index of recipients by scope; `place` is a value of {@link recipientPlace}. */
  recipientPlace: (ref: AccountRef, place: string, recipient: string): Key => ({
    pk: recipientPlacePk(ref),
    sk: `${place}#${recipient}`,
  }),
  /** A template that an account has customized. */
  template: (ref: AccountRef, kind: string, channel: string, locale: string): Key => ({
    pk: templatePk(ref),
    sk: `${kind}#${channel}#${locale}`,
  }),
  /**
   * A suppressed address: the account sends nothing to it. With {@link CELL_LOG} as the account, no account
   * of the region does.
   *
   * `address` is a hash.
   */
  suppression: (ref: AccountRef, channel: string, address: string): Key => ({
    pk: suppressionPk(ref),
    sk: `${channel}#${address}`,
  }),
  /** The notification thread of an order group, or of a job (`#jobNumber`) without an order group. */
  thread: (ref: AccountRef, thread: string): Key => ({ pk: threadPk(ref), sk: nameKey(thread) }),
  /** A message that is queued or was recently sent. */
  message: (ref: AccountRef, message: string): Key => ({ pk: messagePk(ref), sk: message }),
  /** SMS segments of an account in a month (YYYY-MM). */
  smsUse: (ref: AccountRef, month: string): Key => ({
    pk: smsUsePk(ref.region),
    sk: `${month}#${ref.account}`,
  }),
  /** An alert rule. All of a region share one partition, so that they can be listed. */
  alertRule: (region: string, rule: string): Key => ({ pk: alertRulePk(region), sk: rule }),
  /** The state of an alert rule. */
  alertState: (region: string, rule: string): Key => ({ pk: alertStatePk(region), sk: rule }),
  /** The target of an alert rule, encrypted. */
  alertTarget: (region: string, name: string): Key => ({ pk: alertTargetPk(region), sk: name }),
  /** The last minute in which the alert rules of a region were evaluated. */
  alertRun: (region: string): Key => ({ pk: alertStatePk(region), sk: 'RUN' }),
  /** The number of test e-mails of an account in the current hour. */
  testEmails: (ref: AccountRef): Key => ({ pk: testEmailPk(ref.region), sk: ref.account }),
  /** The signing key of links in a region's e-mails. It has its own prefix for IAM. */
  linkKey: (region: string): Key => ({ pk: linkKeyPk(region), sk: 'KEY' }),
  /** History: a message. Ids sort by the time of the event that the message reports. */
  sentMessage: (ref: AccountRef, message: string): Key => ({ pk: sentPk(ref), sk: message }),
  /** History: a reference from a job to its messages. */
  sentOfJob: (ref: AccountRef, jobNumber: number, message: string): Key => ({
    pk: sentOfJobPk(ref, jobNumber),
    sk: message,
  }),
  /** History: a reference from a recipient to its messages. */
  sentToRecipient: (ref: AccountRef, recipient: string, message: string): Key => ({
    pk: sentToRecipientPk(ref, recipient),
    sk: message,
  }),
  /** History: the delivery statistics of a sink in an hour; `hour` is its start (epoch ms). */
  deliveryStatistics: (region: string, sink: string, hour: number): Key => ({
    pk: statisticsPk(region, sink),
    sk: formatTimestamp(hour),
  }),
  /** History: an attempt to deliver an event; `at` is its start time (epoch ms). */
  delivery: (region: string, sink: string, eventId: string, at: number, id: string): Key => ({
    pk: deliveryPk(region, sink, toShard(eventId, DELIVERY_SHARDS)),
    sk: `${formatTimestamp(at)}#${id}`,
  }),
} as const;

/** Partition of the credentials of a region's accounts. */
export const credentialsPk = (region: string): string => `CREDENTIALS#${region}`;
/** Partition of the secrets of a region's endpoints. */
export const endpointSecretsPk = (region: string): string => `SECRETS#${region}`;
/** Partition of the data keys of a region. */
export const dataKeyPk = (region: string): string => `DATAKEYS#${region}`;
/** Partition of the notification settings of a region's accounts. */
export const notificationSettingsPk = (region: string): string => `NOTIFY#${region}`;
/** Partition of the recipients of an account. */
export const recipientPk = (ref: AccountRef): string => `RECIPIENTS#${formatRef(ref)}`;
/** Partition of an account's recipients by scope. */
export const recipientPlacePk = (ref: AccountRef): string => `RECIPIENTSOF#${formatRef(ref)}`;
/** Sort-key prefixes of the recipients of one scope: the account, an order group, an order number, a job. */
export const recipientPlace = {
  account: (): string => 'ACCOUNT',
  orderGroup: (orderGroup: string): string => `GROUP#${nameKey(orderGroup)}`,
  orderNumber: (orderNumber: string): string => `ORDER#${nameKey(orderNumber)}`,
  job: (jobNumber: number): string => `JOB#${pad(jobNumber, 12)}`,
} as const;
/** Partition of the templates that an account has customized. */
export const templatePk = (ref: AccountRef): string => `TEMPLATES#${formatRef(ref)}`;
/** Partition of the suppressed addresses of an account. */
export const suppressionPk = (ref: AccountRef): string => `SUPPRESSED#${formatRef(ref)}`;
/** Partition of the alert rules of a region. */
export const alertRulePk = (region: string): string => `ALERTS#${region}`;
/** Partition of the states of a region's alert rules. */
export const alertStatePk = (region: string): string => `ALERTSTATES#${region}`;
/** Partition of the targets of a region's alert rules. */
export const alertTargetPk = (region: string): string => `ALERTTARGETS#${region}`;
/** Partition of the numbers of test e-mails of a region's accounts. */
export const testEmailPk = (region: string): string => `TESTEMAILS#${region}`;
/** Partition of the threads of an account. */
export const threadPk = (ref: AccountRef): string => `THREADS#${formatRef(ref)}`;
/** Partition of the queued and recently sent messages of an account. */
export const messagePk = (ref: AccountRef): string => `MESSAGES#${formatRef(ref)}`;
/** Partition of the SMS use of a region's accounts, by month. */
export const smsUsePk = (region: string): string => `SMSUSE#${region}`;
/** Partition of the link signing key of a region. */
export const linkKeyPk = (region: string): string => `LINKKEY#${region}`;
/** History: partition of an account's messages. */
export const sentPk = (ref: AccountRef): string => `SENT#${formatRef(ref)}`;
/** History: partition of the messages about a job. */
export const sentOfJobPk = (ref: AccountRef, jobNumber: number): string =>
  `SENTJOB#${formatRef(ref)}#${pad(jobNumber, 12)}`;
/** History: partition of what was sent to a recipient. */
export const sentToRecipientPk = (ref: AccountRef, recipient: string): string =>
  `SENTTO#${formatRef(ref)}#${recipient}`;

/**
 * Returns the place in the `due` index of a thread whose window is open, or of a queued message. `since`: time at which a late notice, or a
 * message that is retried, was first due (epoch ms).
 */
export function notifyDue(
  what: 'notices' | 'messages',
  ref: AccountRef,
  sk: string,
  dueAt: number,
  since = dueAt,
): { duePk: string; dueSk: string } {
  const first = since === dueAt ? '' : `#${formatTimestamp(since)}`;
  return {
    duePk: notifyDuePk(what, ref.region, toShard(`${ref.account}#${sk}`, NOTIFY_SHARDS)),
    dueSk: `${formatTimestamp(dueAt)}#${ref.account}#${sk}${first}`,
  };
}
/** Returns the time at which a thread or a queued message was first due (epoch ms) from its place in the `due` index. */
export function parseNotifyDue({ sk, dueSk }: { readonly sk: string; readonly dueSk?: unknown }): number {
  const [dueAt = '', account = ''] = String(dueSk).split('#', 2);
  // The key can contain `#`.
  const since = String(dueSk).slice(`${dueAt}#${account}#${sk}#`.length);
  return Date.parse(since || dueAt);
}
/** Partition of one shard of a region's threads or messages in the `due` index. */
export const notifyDuePk = (what: 'notices' | 'messages', region: string, shard: number): string =>
  `${what.toUpperCase()}#${region}#${shard}`;

/** Partition of the accounts of a region. */
export const accountPk = (region: string): string => `ACCOUNTS#${region}`;
/** Partition of the locks of a region's accounts. */
export const accountLockPk = (region: string): string => `ACCOUNTLOCKS#${region}`;
/** Partition of the deletions of a region's accounts. */
export const deletionPk = (region: string): string => `DELETIONS#${region}`;
/** Partition of the data about a region as a whole. */
export const cellPk = (region: string): string => `CELL#${region}`;
/** Partition of an account's Head, pending marks and index shards. */
export const indexPk = (ref: AccountRef): string => `INDEX#${formatRef(ref)}`;
/** Partition of an account's snapshots. */
export const snapshotPk = (ref: AccountRef): string => `JOBS#${formatRef(ref)}`;
/** Partition of an account's order groups. */
export const groupPk = (ref: AccountRef): string => `GROUPS#${formatRef(ref)}`;
/** Partition of an account's event log. */
export const logPk = (ref: AccountRef): string => `LOG#${formatRef(ref)}`;
/** Retention of a day's roll-up (days). */
export const ROLLUP_DAYS = 400;

/** Partition of the roll-ups of a day (YYYY-MM-DD) of all accounts of a region. */
export const rollupPk = (region: string, day: string): string => `ROLLUPS#${region}#${day}`;
/** Partition of the open-job totals of all accounts of a region. */
export const openJobsPk = (region: string): string => `OPEN#${region}`;
/** Partition of the jobs of a region that need attention. */
export const markedJobPk = (region: string): string => `MARKEDJOBS#${region}`;
/** Partition of what users have done with the items of a region's attention queue. */
export const attentionPk = (region: string): string => `ATTENTION#${region}`;
/** Partition of the history of these items. */
export const attentionHistoryPk = (region: string): string => `ATTENTIONLOG#${region}`;

/**
 * Returns the place of an account's open-job totals in the `related` index: by the earliest due time (epoch
 * ms). So one query finds the accounts of a region with late jobs. Without such a time: no place.
 */
export function lateIndexKeys(ref: AccountRef, earliestDueAt: number | null) {
  return earliestDueAt === null
    ? {}
    : { relatedPk: lateIndexPk(ref.region), relatedSk: `${formatTimestamp(earliestDueAt)}#${ref.account}` };
}
/** Partition of a region's accounts with undispatched jobs in the `related` index, by earliest due time. */
export const lateIndexPk = (region: string): string => `LATE#${region}`;

/** Returns the place of an account's Status in the `related` index while its state needs attention, or its last poll did not report. */
export function troubledIndexKeys(ref: AccountRef, isTroubled: boolean) {
  return isTroubled
    ? { relatedPk: troubledIndexPk(ref.region), relatedSk: ref.account }
    : { relatedPk: undefined, relatedSk: undefined };
}
/** Partition of a region's accounts whose state needs attention in the `related` index. */
export const troubledIndexPk = (region: string): string => `TROUBLED#${region}`;

/** Partition of one shard of a region's wake marks. */
export const wakePk = (region: string, shard: number): string => `WAKE#${region}#${shard}`;
/** Partition of the sinks of a region. */
export const sinkPk = (region: string): string => `SINKS#${region}`;
/** Partition of the parts of a region's divided sinks. */
export const sinkPartPk = (region: string): string => `SINKPARTS#${region}`;
/** Partition of the sinks that follow an account. */
export const followerPk = (ref: AccountRef): string => `FOLLOWERS#${formatRef(ref)}`;
/** In the place of an account: all accounts. */
export const ALL_ACCOUNTS = '*';

/**
 * Returns the names under which a sink is drained: its id, or those of its parts (`topic:0`, …). Also accepts
 * such a name.
 */
export function getDrainNames(sink: string): readonly string[] {
  return DIVIDED_SINKS.includes(sink)
    ? Array.from({ length: SINK_PARTS }, (_, part) => `${sink}:${part}`)
    : [sink];
}
/** Returns the name under which a sink is drained for an account. */
export function getDrainName(sink: string, account: string): string {
  return DIVIDED_SINKS.includes(sink) ? `${sink}:${toShard(account, SINK_PARTS)}` : sink;
}
/** Returns the id of the sink that is drained under a name. */
export const getSinkId = (name: string): string => name.split(':')[0] ?? name;
/** Reports whether the name is that of a part of a divided sink. */
export const isPart = (name: string): boolean => name.includes(':');

/** Partition of the locks of a region's endpoints. */
export const endpointLockPk = (region: string): string => `ENDPOINTS#${region}`;
/** Partition of a sink's cursors. */
export const cursorPk = (region: string, sink: string): string => `CURSORS#${region}#${sink}`;
export const isCursorPk = (pk: string): boolean => pk.startsWith('CURSORS#');
/** Partition of the slots of a key; see `shared/api/waiting-limit.ts`. */
export const streamPk = (region: string, keyId: string): string => `STREAMS#${region}#${keyId}`;
/** Partition of the request counters of a key; see `shared/api/request-limit.ts`. */
export const requestCountPk = (region: string, keyId: string): string => `REQUESTS#${region}#${keyId}`;
/** Partition of the API keys. */
export const API_KEY_PK = 'APIKEYS';
/** Partition of the last-use times of API keys. */
export const API_KEY_USE_PK = 'KEYUSE';
/** Partition of the pairings of wall displays. */
export const PAIRING_PK = 'PAIRINGS';
/** Partition of the replays to a sink. */
export const replayPk = (region: string, sink: string): string => `REPLAYS#${region}#${sink}`;
/** Partition of the events parked for a sink. */
export const parkedPk = (region: string, sink: string): string => `PARKED#${region}#${sink}`;
/** History: partition of one shard of the deliveries to a sink. */
export const deliveryPk = (region: string, sink: string, shard: number | string): string =>
  `DELIVERIES#${region}#${sink}#${shard}`;
/** History: partition of a sink's delivery statistics. */
export const statisticsPk = (region: string, sink: string): string => `DELIVERYSTATISTICS#${region}#${sink}`;
/** History: partition of an event in the `byEvent` index. */
export const eventDeliveriesPk = (region: string, eventId: string): string => `${region}#${eventId}`;
/** History: partition of a region's failed messages in the `failures` index, by time. */
export const failedMessagesPk = (region: string): string => `MESSAGES#${region}`;
/** History: partition of a sink's deliveries with one outcome in the `failures` index. */
export const failuresPk = (region: string, sink: string, outcome: 'rejected' | 'retry'): string =>
  `${region}#${sink}#${outcome}`;
/** Partition of the events dead-lettered for a sink. */
export const deadPk = (region: string, sink: string): string => `DEAD#${region}#${sink}`;

/** Returns the place of an account's next poll in the `due` index. */
export function pollDue(ref: AccountRef, dueAt: number): { duePk: string; dueSk: string } {
  return {
    duePk: pollDuePk(ref.region, toShard(ref.account, POLL_SHARDS)),
    dueSk: `${formatTimestamp(dueAt)}#${ref.account}`,
  };
}
/** Partition of one shard of a region's due polls in the `due` index. */
export const pollDuePk = (region: string, shard: number): string => `POLLS#${region}#${shard}`;

/**
 * Returns the phase of an account within its poll interval: from 0 (inclusive) to 1 (exclusive), constant for
 * the account.
 */
export function pollPhase(ref: AccountRef): number {
  return hash('sha256', formatRef(ref), 'buffer').readUInt32BE(4) / 2 ** 32;
}

/** Returns the upper bound, in the sort keys of the `due` index, of work due by a time (epoch ms). */
export const dueUntil = (now: number): string => `${formatTimestamp(now)}~`;

/**
 * Returns the place in the `due` index of a cursor or a parked lane with events to deliver. `what` is its
 * sort key.
 */
export function drainDue(
  region: string,
  sink: string,
  what: string,
  dueAt: number,
): { duePk: string; dueSk: string } {
  const [account = what] = what.split('#');
  const name = getDrainName(sink, account);
  return {
    duePk: drainDuePk(region, getDrainShard(name)),
    dueSk: `${name}#${formatTimestamp(dueAt)}#${what}`,
  };
}
/** Returns the range of the `due` index with the work that is due at a time (epoch ms) under a drain name. Default: all work. */
export function drainDueRange(
  region: string,
  name: string,
  now?: number,
): { readonly pk: string; readonly from: string; readonly to: string } {
  return {
    pk: drainDuePk(region, getDrainShard(name)),
    from: `${name}#`,
    to: now === undefined ? drainDueEnd(name) : `${name}#${dueUntil(now)}`,
  };
}
/** Returns the drain name and the due time (epoch ms) of a sort key in the `due` index. */
export function parseDrainDue(dueSk: string): { readonly name: string; readonly dueAt: number } {
  const [name = '', time = ''] = dueSk.split('#');
  return { name, dueAt: Date.parse(time) };
}
/** Returns an upper bound of the sort keys of a drain name in the `due` index. */
export const drainDueEnd = (name: string): string => `${name}#~`;
/** Partition of one shard of a region's due cursors in the `due` index. */
export const drainDuePk = (region: string, shard: number): string => `DRAINS#${region}#${shard}`;
const getDrainShard = (name: string): number => toShard(name, DRAIN_SHARDS);
/** Partitions of a sink's due cursors in the `due` index, as version 0.1.0 wrote them (`time#what`). */
export const formerDrainDuePks = (region: string, sink: string): readonly string[] =>
  [0, 1].map((shard) => `DRAINS#${region}#${sink}#${shard}`);
/** Partition of a job's events in the `related` index. */
export const jobEventsPk = (ref: AccountRef, jobNumber: number): string =>
  `JOB#${formatRef(ref)}#${pad(jobNumber, 12)}`;

/** Returns the place of an event in the `related` index. An event about no job is not in it. */
export function toEventIndexKeys(
  ref: AccountRef,
  jobNumber: number | undefined,
  sequence: number,
): { readonly [attribute: string]: string | undefined } {
  return jobNumber === undefined
    ? {}
    : { relatedPk: jobEventsPk(ref, jobNumber), relatedSk: pad(sequence, 16) };
}

/** Formats a time (epoch ms) as text that sorts by time. */
export function formatTimestamp(ms: number): string {
  return new Date(ms).toISOString();
}

/** Formats an integer as text of the given width that sorts by value. */
export function pad(value: number, width: number): string {
  return String(value).padStart(width, '0');
}

/** Encodes an external name as part of a sort key. A sort key is well-formed text and limited to 1,024 bytes. */
export function nameKey(name: string): string {
  const short = name.isWellFormed() && Buffer.byteLength(name) <= 500;
  return short ? `=${name}` : `#${hash('sha256', name)}`;
}

export function formatRef(ref: AccountRef): string {
  return `${ref.region}#${ref.account}`;
}

function toShard(text: string, shards: number): number {
  return hash('sha256', text, 'buffer').readUInt32BE(0) % shards;
}
