/**
 * The key schemas of the two tables, as data: infra makes the tables from them, adapters and tests use them, and nothing
 * else spells a key. `docs/access-patterns.md` lists who reads what with which key.
 */
import { hash } from 'node:crypto';
import type { Key } from './table.ts';

/** What a table is made of. */
export interface TableSchema {
  readonly partitionKey: 'pk';
  readonly sortKey: 'sk';
  /** Epoch seconds after which DynamoDB may delete the item; readers judge by `expiresAt` (epoch ms) where it matters. */
  readonly ttlAttribute: 'ttl';
  /** All are sparse: an item without one of an index's keys is not in it. */
  readonly indexes: { readonly [name: string]: IndexSchema };
}

/** An index of a table. */
export interface IndexSchema {
  readonly partitionKey: string;
  readonly sortKey: string;
  /** What a read of the index gives of an item: keys cost the least to write, whole items need no second read. */
  readonly holds: 'keys' | 'items';
}

/** The state table: everything Jobwire goes by. */
export const stateSchema = {
  partitionKey: 'pk',
  sortKey: 'sk',
  ttlAttribute: 'ttl',
  indexes: {
    /** What is due: polls (`POLLS#region#shard`) and cursors (`DRAINS#region#sink#shard`), by instant. */
    due: { partitionKey: 'duePk', sortKey: 'dueSk', holds: 'keys' },
    /** Jobs of an account in one status, by due day. */
    jobsByStatus: { partitionKey: 'statusPk', sortKey: 'statusSk', holds: 'keys' },
    /** Open, undispatched jobs of an account by due day: what is late, what is due on a day. And, apart, its dispatched jobs by day. */
    jobsByDue: { partitionKey: 'openPk', sortKey: 'openSk', holds: 'keys' },
    /** Jobs of an account by order number. */
    jobsByOrder: { partitionKey: 'orderPk', sortKey: 'orderSk', holds: 'keys' },
    /**
     * What belongs to something: events to a job (`JOB#region#account#job`), jobs to an order group (`GROUP#region#account#name`).
     * One index for both, for a stack that is deployed can be given one at a time.
     */
    related: { partitionKey: 'relatedPk', sortKey: 'relatedSk', holds: 'keys' },
  },
} as const satisfies TableSchema;

/** The history table: what is only looked back at, and leaves by itself. */
export const historySchema = {
  partitionKey: 'pk',
  sortKey: 'sk',
  ttlAttribute: 'ttl',
  indexes: {
    /** What became of one event, at all sinks, by instant: written with each delivery and seldom read, so keys only. */
    byEvent: { partitionKey: 'eventPk', sortKey: 'sk', holds: 'keys' },
    /** Deliveries of a sink that failed, by instant: few, and read by the page. */
    failures: { partitionKey: 'failedPk', sortKey: 'sk', holds: 'items' },
  },
} as const satisfies TableSchema;

/** An account is known by its region and its id; ids are unique within a region (rule 17). */
export interface AccountRef {
  readonly region: string;
  readonly account: string;
}

/**
 * The account id under which a cell's own log stands, with what concerns the region rather than an account. No account can
 * have it.
 */
export const CELL_LOG = '_cell';

/** The cell's own log. */
export function cellLog(region: string): AccountRef {
  return { region, account: CELL_LOG };
}

/** Whether this is a cell's own log rather than an account's. */
export function isCell(ref: AccountRef): boolean {
  return ref.account === CELL_LOG;
}

/**
 * The account id under which the cell feed stands: references to the events of all accounts and of the cell's own log, in one
 * sequence. It is also the id of the "sink" whose cursors say how far each log is in it. Neither account nor sink can have it.
 */
export const FEED_LOG = '_feed';

/** The cell feed of a region. */
export function feedLog(region: string): AccountRef {
  return { region, account: FEED_LOG };
}

/** Whether no account can have this id. */
export function isReserved({ account }: AccountRef): boolean {
  return account === CELL_LOG || account === FEED_LOG;
}

/** Over how many partitions the index of due polls of one region is spread. */
export const POLL_SHARDS = 8;
/** Over how many partitions the due cursors of one sink are spread. */
export const DRAIN_SHARDS = 2;
/** Over how many partitions the wake marks of one region are spread. */
export const WAKE_SHARDS = 4;
/** Over how many partitions the deliveries to one sink are spread: each takes 1,000 write units a second. */
export const DELIVERY_SHARDS = 4;

/** Over how many partitions the due threads, and the due messages, of one region are spread. */
export const NOTIFY_SHARDS = 4;

/** The key of every kind of item. Texts sort by code unit, so numbers are padded. */
export const keys = {
  /** All accounts of a region stand in one partition, so that they can be listed. */
  account: (ref: AccountRef): Key => ({ pk: `ACCOUNTS#${ref.region}`, sk: ref.account }),
  /** Who is at work on an account as a whole: its making, its credentials, its deletion. */
  accountLock: (ref: AccountRef): Key => ({ pk: accountLockPk(ref.region), sk: ref.account }),
  /** What is left to do of an account that was deleted. While it is there, the id is not free. */
  deletion: (ref: AccountRef): Key => ({ pk: deletionPk(ref.region), sk: ref.account }),
  /** The credentials of an account that was given them, encrypted: where there is no other store for them. */
  credentials: (ref: AccountRef): Key => ({ pk: `CREDENTIALS#${ref.region}`, sk: ref.account }),
  status: (ref: AccountRef): Key => ({ pk: `STATUS#${path(ref)}`, sk: 'STATUS' }),
  /** A prefix of its own, so that IAM (LeadingKeys) lets only polling read tokens. */
  token: (ref: AccountRef): Key => ({ pk: `TOKEN#${path(ref)}`, sk: 'TOKEN' }),
  /** What the polls of a region heard of its ordering service. */
  upstream: (region: string): Key => ({ pk: cellPk(region), sk: 'UPSTREAM' }),
  /** Head and index shards share a partition and come back in one Query, Head first (`HEAD` < `PENDING` < `SHARD`). */
  head: (ref: AccountRef): Key => ({ pk: indexPk(ref), sk: 'HEAD' }),
  shard: (ref: AccountRef, lowestJobNumber: number): Key => ({
    pk: indexPk(ref),
    sk: `SHARD#${pad(lowestJobNumber, 12)}`,
  }),
  /** An order group. */
  group: (ref: AccountRef, orderGroup: string): Key => ({ pk: groupPk(ref), sk: nameKey(orderGroup) }),
  /** A mark that an order group is to be asked for; between Head and the shards, so that it comes with them. */
  pendingGroup: (ref: AccountRef, orderGroup: string): Key => ({
    pk: indexPk(ref),
    sk: `PENDING#${nameKey(orderGroup)}`,
  }),
  snapshot: (ref: AccountRef, jobNumber: number): Key => ({ pk: snapshotPk(ref), sk: pad(jobNumber, 12) }),
  event: (ref: AccountRef, sequence: number): Key => ({ pk: logPk(ref), sk: pad(sequence, 16) }),
  /** What an account's log said of one day. */
  rollup: (ref: AccountRef, day: string): Key => ({ pk: rollupPk(ref.region, day), sk: ref.account }),
  /** What the last complete reading of an account's list showed in all. */
  openJobs: (ref: AccountRef): Key => ({ pk: openJobsPk(ref.region), sk: ref.account }),
  wake: (ref: AccountRef): Key => ({
    pk: wakePk(ref.region, shardOf(ref.account, WAKE_SHARDS)),
    sk: ref.account,
  }),
  /** All sinks of a region stand in one partition, so that they can be listed. */
  sink: (region: string, sink: string): Key => ({ pk: sinkPk(region), sk: sink }),
  /** Who is at work on an endpoint as a whole: its making, changing, deleting. */
  endpointLock: (region: string, endpoint: string): Key => ({
    pk: endpointLockPk(region),
    sk: endpoint,
  }),
  /** What nobody is shown of an endpoint, encrypted: where there is no other store for it. */
  endpointSecrets: (region: string, endpoint: string): Key => ({ pk: `SECRETS#${region}`, sk: endpoint }),
  /** A text that the key of those secrets was tried on. */
  secretKeyCheck: (): Key => ({ pk: 'SECRETS', sk: 'KEY' }),
  cursor: (region: string, sink: string, account: string): Key => ({
    pk: cursorPk(region, sink),
    sk: account,
  }),
  /** One of the places that a key has for what waits: streams, and long polls without anything to say. */
  streamSlot: (region: string, keyId: string, slot: number): Key => ({
    pk: streamPk(region, keyId),
    sk: pad(slot, 4),
  }),
  /** An API key: all stand in one partition, so that they can be listed. */
  apiKey: (id: string): Key => ({ pk: API_KEY_PK, sk: id }),
  /** When an API key was last used: apart, so that who checks keys need not be able to write them. */
  apiKeyUse: (id: string): Key => ({ pk: API_KEY_USE_PK, sk: id }),
  /** What came of a request with an idempotency key; `name` is a hash of that. */
  idempotent: (keyId: string, name: string): Key => ({ pk: `IDEMPOTENCY#${keyId}`, sk: name }),
  /** A replay to a sink. */
  replay: (region: string, sink: string, replay: string): Key => ({ pk: replayPk(region, sink), sk: replay }),
  /** How far a replay has come in one account's log; beside the live cursors, for it is worked off as they are. */
  replayCursor: (region: string, sink: string, account: string, replay: string): Key => ({
    pk: cursorPk(region, sink),
    sk: `${account}#${replay}`,
  }),
  /** An event that a sink refused to the last attempt. */
  dead: (region: string, sink: string, account: string, sequence: number): Key => ({
    pk: deadPk(region, sink),
    sk: `${account}#${pad(sequence, 16)}`,
  }),
  /** An event set aside for a sink; those of one lane stand together, first to last. */
  parked: (region: string, sink: string, account: string, lane: string, sequence: number): Key => ({
    pk: parkedPk(region, sink),
    sk: `${account}#${lane}#${pad(sequence, 16)}`,
  }),
  /** How an account notifies its customers; those of a region stand together, so that they can be listed. */
  notificationSettings: (ref: AccountRef): Key => ({
    pk: notificationSettingsPk(ref.region),
    sk: ref.account,
  }),
  recipient: (ref: AccountRef, recipient: string): Key => ({ pk: recipientPk(ref), sk: recipient }),
  /** Finds recipients by what they are for; `place` is of {@link recipientPlace}. */
  recipientPlace: (ref: AccountRef, place: string, recipient: string): Key => ({
    pk: recipientPlacePk(ref),
    sk: `${place}#${recipient}`,
  }),
  /** A template of an account's own. */
  template: (ref: AccountRef, kind: string, channel: string, locale: string): Key => ({
    pk: templatePk(ref),
    sk: `${kind}#${channel}#${locale}`,
  }),
  /**
   * An address that gets nothing more from an account; from no account of the region when that is {@link CELL_LOG}.
   * `address` is a hash.
   */
  suppression: (ref: AccountRef, channel: string, address: string): Key => ({
    pk: suppressionPk(ref),
    sk: `${channel}#${address}`,
  }),
  /** All that is said to customers about an order group, or about a job (`#jobNumber`) that is in none. */
  thread: (ref: AccountRef, thread: string): Key => ({ pk: threadPk(ref), sk: nameKey(thread) }),
  /** A message that is to be sent, or was of late. */
  message: (ref: AccountRef, message: string): Key => ({ pk: messagePk(ref), sk: message }),
  /** SMS segments of an account in a month (YYYY-MM). */
  smsUse: (ref: AccountRef, month: string): Key => ({
    pk: smsUsePk(ref.region),
    sk: `${month}#${ref.account}`,
  }),
  /** What links in e-mails of a region are signed with; a prefix of its own for IAM. */
  linkKey: (region: string): Key => ({ pk: linkKeyPk(region), sk: 'KEY' }),
  /** History: a message; ids sort by the instant of what they are about. */
  sentMessage: (ref: AccountRef, message: string): Key => ({ pk: sentPk(ref), sk: message }),
  /** History: where a job's messages are found. */
  sentOfJob: (ref: AccountRef, jobNumber: number, message: string): Key => ({
    pk: sentOfJobPk(ref, jobNumber),
    sk: message,
  }),
  /** History: where messages to a recipient are found. */
  sentToRecipient: (ref: AccountRef, recipient: string, message: string): Key => ({
    pk: sentToRecipientPk(ref, recipient),
    sk: message,
  }),
  /** History: an attempt to deliver an event, by the instant (epoch ms) it began. */
  delivery: (region: string, sink: string, eventId: string, at: number, id: string): Key => ({
    pk: deliveryPk(region, sink, shardOf(eventId, DELIVERY_SHARDS)),
    sk: `${instantText(at)}#${id}`,
  }),
} as const;

/** Partition of how the accounts of a region notify. */
export const notificationSettingsPk = (region: string): string => `NOTIFY#${region}`;
/** Partition of the recipients of an account. */
export const recipientPk = (ref: AccountRef): string => `RECIPIENTS#${path(ref)}`;
/** Partition in which recipients of an account are found by what they are for. */
export const recipientPlacePk = (ref: AccountRef): string => `RECIPIENTSOF#${path(ref)}`;
/** What the sort keys of recipients begin with that are for one thing: the account, an order group, an order number, a job. */
export const recipientPlace = {
  account: (): string => 'ACCOUNT',
  orderGroup: (orderGroup: string): string => `GROUP#${nameKey(orderGroup)}`,
  orderNumber: (orderNumber: string): string => `ORDER#${nameKey(orderNumber)}`,
  job: (jobNumber: number): string => `JOB#${pad(jobNumber, 12)}`,
} as const;
/** Partition of the templates of an account's own. */
export const templatePk = (ref: AccountRef): string => `TEMPLATES#${path(ref)}`;
/** Partition of the addresses that get nothing more from an account. */
export const suppressionPk = (ref: AccountRef): string => `SUPPRESSED#${path(ref)}`;
/** Partition of the threads of an account. */
export const threadPk = (ref: AccountRef): string => `THREADS#${path(ref)}`;
/** Partition of the messages of an account that are on their way. */
export const messagePk = (ref: AccountRef): string => `MESSAGES#${path(ref)}`;
/** Partition of the SMS that the accounts of a region sent, month by month. */
export const smsUsePk = (region: string): string => `SMSUSE#${region}`;
/** Partition of what links of a region are signed with. */
export const linkKeyPk = (region: string): string => `LINKKEY#${region}`;
/** History: partition of an account's messages. */
export const sentPk = (ref: AccountRef): string => `SENT#${path(ref)}`;
/** History: partition of what was sent about a job. */
export const sentOfJobPk = (ref: AccountRef, jobNumber: number): string =>
  `SENTJOB#${path(ref)}#${pad(jobNumber, 12)}`;
/** History: partition of what was sent to a recipient. */
export const sentToRecipientPk = (ref: AccountRef, recipient: string): string =>
  `SENTTO#${path(ref)}#${recipient}`;

/** Where a thread with a window that ends, or a message that is to go, stands in the `due` index. */
export function notifyDue(
  what: 'notices' | 'messages',
  ref: AccountRef,
  sk: string,
  dueAt: number,
): { duePk: string; dueSk: string } {
  return {
    duePk: notifyDuePk(what, ref.region, shardOf(`${ref.account}#${sk}`, NOTIFY_SHARDS)),
    dueSk: `${instantText(dueAt)}#${ref.account}#${sk}`,
  };
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
/** Partition of what is kept of a region as a whole. */
export const cellPk = (region: string): string => `CELL#${region}`;
/** Partition of an account's Head, pending marks and index shards. */
export const indexPk = (ref: AccountRef): string => `INDEX#${path(ref)}`;
/** Partition of an account's snapshots. */
export const snapshotPk = (ref: AccountRef): string => `JOBS#${path(ref)}`;
/** Partition of an account's order groups. */
export const groupPk = (ref: AccountRef): string => `GROUPS#${path(ref)}`;
/** Partition of an account's event log. */
export const logPk = (ref: AccountRef): string => `LOG#${path(ref)}`;
/** Partition of the roll-ups of a day (YYYY-MM-DD) of all accounts of a region. */
export const rollupPk = (region: string, day: string): string => `ROLLUPS#${region}#${day}`;
/** Partition of the figures about open jobs of all accounts of a region. */
export const openJobsPk = (region: string): string => `OPEN#${region}`;
/** Partition of one shard of a region's wake marks. */
export const wakePk = (region: string, shard: number): string => `WAKE#${region}#${shard}`;
/** Partition of the sinks of a region. */
export const sinkPk = (region: string): string => `SINKS#${region}`;

/** Partition of the locks of a region's endpoints. */
export const endpointLockPk = (region: string): string => `ENDPOINTS#${region}`;
/** Partition of a sink's cursors. */
export const cursorPk = (region: string, sink: string): string => `CURSORS#${region}#${sink}`;
/** Partition of the slots of a key; see `shared/api/slots.ts`. */
export const streamPk = (region: string, keyId: string): string => `STREAMS#${region}#${keyId}`;
/** Partition of the API keys. */
export const API_KEY_PK = 'APIKEYS';
/** Partition of when they were last used. */
export const API_KEY_USE_PK = 'KEYUSE';
/** Partition of the replays to a sink. */
export const replayPk = (region: string, sink: string): string => `REPLAYS#${region}#${sink}`;
/** Partition of the events set aside for a sink. */
export const parkedPk = (region: string, sink: string): string => `PARKED#${region}#${sink}`;
/** History: partition of one shard of the deliveries to a sink. */
export const deliveryPk = (region: string, sink: string, shard: number | string): string =>
  `DELIVERIES#${region}#${sink}#${shard}`;
/** History: partition of an event in the `byEvent` index. */
export const eventDeliveriesPk = (region: string, eventId: string): string => `${region}#${eventId}`;
/** History: partition of a sink's deliveries with one outcome in the `failures` index. */
export const failuresPk = (region: string, sink: string, outcome: 'rejected' | 'retry'): string =>
  `${region}#${sink}#${outcome}`;
/** Partition of the events that a sink refused to the last attempt. */
export const deadPk = (region: string, sink: string): string => `DEAD#${region}#${sink}`;

/** Where an account's next poll stands in the `due` index. */
export function pollDue(ref: AccountRef, dueAt: number): { duePk: string; dueSk: string } {
  return {
    duePk: pollDuePk(ref.region, shardOf(ref.account, POLL_SHARDS)),
    dueSk: `${instantText(dueAt)}#${ref.account}`,
  };
}
/** Partition of one shard of a region's due polls in the `due` index. */
export const pollDuePk = (region: string, shard: number): string => `POLLS#${region}#${shard}`;

/** Where in its poll interval an account has its turns: from 0 (inclusive) to 1 (exclusive), the same for ever. */
export function pollPhase(ref: AccountRef): number {
  return hash('sha256', path(ref), 'buffer').readUInt32BE(4) / 2 ** 32;
}

/** The bound of what is due by an instant, in the sort keys of the `due` index. */
export const dueUntil = (now: number): string => `${instantText(now)}~`;

/** Where a cursor or a parked lane with something to deliver stands in the `due` index; `what` is its sort key. */
export function drainDue(
  region: string,
  sink: string,
  what: string,
  dueAt: number,
): { duePk: string; dueSk: string } {
  return {
    duePk: drainDuePk(region, sink, shardOf(what, DRAIN_SHARDS)),
    dueSk: `${instantText(dueAt)}#${what}`,
  };
}
/** Partition of one shard of a sink's due cursors in the `due` index. */
export const drainDuePk = (region: string, sink: string, shard: number): string =>
  `DRAINS#${region}#${sink}#${shard}`;

/** Where a job stands in the job indexes. An absent value keeps it out of that index. */
export function jobPlaces(
  ref: AccountRef,
  job: {
    jobNumber: number;
    status: string | null;
    dueDay: string | null;
    open: boolean;
    /** The day (YYYY-MM-DD) it was dispatched on. */
    dispatchedDay: string | null;
    orderNumber: string | null;
    orderGroup: string | null;
  },
): { readonly [attribute: string]: string | undefined } {
  const tail = `${job.dueDay ?? '9999-12-31'}#${pad(job.jobNumber, 12)}`;
  return {
    statusPk: job.status === null || job.status === '' ? undefined : `${path(ref)}#${job.status}`,
    statusSk: job.status === null || job.status === '' ? undefined : tail,
    ...openPlace(ref, job, tail),
    orderPk: job.orderNumber ? path(ref) : undefined,
    orderSk: job.orderNumber ? `${orderKey(job.orderNumber)}#${pad(job.jobNumber, 12)}` : undefined,
    relatedPk: job.orderGroup ? groupJobsPk(ref, job.orderGroup) : undefined,
    relatedSk: job.orderGroup ? pad(job.jobNumber, 12) : undefined,
  };
}

/**
 * A job that is open and not dispatched stands by its due day; one that is dispatched by the day of that, in a partition of its own,
 * so that no list of what is due meets it.
 */
function openPlace(
  ref: AccountRef,
  job: { jobNumber: number; open: boolean; dispatchedDay: string | null },
  tail: string,
): { readonly openPk: string | undefined; readonly openSk: string | undefined } {
  if (job.open) return { openPk: path(ref), openSk: tail };
  if (job.dispatchedDay === null) return { openPk: undefined, openSk: undefined };
  return { openPk: dispatchedPk(ref), openSk: `${job.dispatchedDay}#${pad(job.jobNumber, 12)}` };
}

/** Partition of an account's dispatched jobs in the `jobsByDue` index. No id has a `#` in it. */
const dispatchedPk = (ref: AccountRef): string => `${path(ref)}#OUT`;

/** Partition of an order group's jobs in the `related` index. */
const groupJobsPk = (ref: AccountRef, orderGroup: string): string =>
  `GROUP#${path(ref)}#${nameKey(orderGroup)}`;

/** Partition of a job's events in the `related` index. */
export const jobEventsPk = (ref: AccountRef, jobNumber: number): string =>
  `JOB#${path(ref)}#${pad(jobNumber, 12)}`;

/** Where an event stands in the `related` index; those that are about no job have no place in it. */
export function eventPlace(
  ref: AccountRef,
  jobNumber: number | undefined,
  sequence: number,
): { readonly [attribute: string]: string | undefined } {
  return jobNumber === undefined
    ? {}
    : { relatedPk: jobEventsPk(ref, jobNumber), relatedSk: pad(sequence, 16) };
}

/** A range of one of the job indexes. */
export interface JobRange {
  readonly index: 'jobsByStatus' | 'jobsByDue' | 'jobsByOrder' | 'related';
  readonly pk: string;
  readonly from?: string;
  readonly to?: string;
}

/** An account's jobs in one status, by due day. */
export function jobsWithStatus(ref: AccountRef, status: string): JobRange {
  return { index: 'jobsByStatus', pk: `${path(ref)}#${status}` };
}
/** An account's open, undispatched jobs due before a day (YYYY-MM-DD), by due day; not those without a due date. */
export function jobsDueBefore(ref: AccountRef, day: string): JobRange {
  // A key is the day with something behind it, so the bare day is below all keys of that day.
  return { index: 'jobsByDue', pk: path(ref), to: day };
}
/** An account's open, undispatched jobs due on a day (YYYY-MM-DD). */
export function jobsDueOn(ref: AccountRef, day: string): JobRange {
  return { index: 'jobsByDue', pk: path(ref), from: `${day}#`, to: `${day}#~` };
}
/** An account's open, undispatched jobs by due day; those without a due date last. */
export function jobsAwaited(ref: AccountRef): JobRange {
  return { index: 'jobsByDue', pk: path(ref) };
}
/** An account's jobs that were dispatched on a day (YYYY-MM-DD), by job number. */
export function jobsDispatchedOn(ref: AccountRef, day: string): JobRange {
  return { index: 'jobsByDue', pk: dispatchedPk(ref), from: `${day}#`, to: `${day}#~` };
}
/** The jobs of an order group, by job number. A very long name stands there by its hash, so compare what comes back. */
export function jobsInGroup(ref: AccountRef, orderGroup: string): JobRange {
  return { index: 'related', pk: groupJobsPk(ref, orderGroup) };
}
/**
 * An account's jobs with an order number. It can hold others too: the key has only the first 200 characters, and an
 * order number may itself contain the separator. Compare what comes back.
 */
export function jobsWithOrderNumber(ref: AccountRef, orderNumber: string): JobRange {
  const beginning = `${orderKey(orderNumber)}#`;
  return {
    index: 'jobsByOrder',
    pk: path(ref),
    from: `${beginning}${'0'.repeat(12)}`,
    to: `${beginning}${'9'.repeat(12)}`,
  };
}

/** An instant (epoch ms) as text that sorts by time. */
export function instantText(ms: number): string {
  return new Date(ms).toISOString();
}

/** A whole number as text of the given width that sorts by value. */
export function pad(value: number, width: number): string {
  return String(value).padStart(width, '0');
}

/** The beginning of an order number; where that ends within a character, U+FFFD is in its place, for keys are well-formed. */
const orderKey = (orderNumber: string): string => orderNumber.slice(0, 200).toWellFormed();

/** A name that others chose as part of a sort key, which may be 1,024 bytes long. */
function nameKey(name: string): string {
  const short = Buffer.byteLength(name) <= 500;
  return short ? `=${name}` : `#${hash('sha256', name)}`;
}

function path(ref: AccountRef): string {
  return `${ref.region}#${ref.account}`;
}

function shardOf(text: string, shards: number): number {
  return hash('sha256', text, 'buffer').readUInt32BE(0) % shards;
}
