/**
 * The event log: one ordered, gapless sequence of events per account. Events are written in the same
 * transactions as the state changes that they report (a transactional outbox).
 *
 *   poll A   reads revision 7 ─────────── commits (7 → 8) ── commits (8 → 9)
 *   poll B        reads revision 7 ──────────────── commits (7 → 8)? fenced: it drops its observations
 *
 * The fence is `Status.revision`: all writes of a poll are conditional on the revision it has read, and
 * increase it. So an older or overlapping poll can never commit after a newer one. The number of an event
 * comes from `Head.sequence`, in the same transaction. A writer without a fence (`append`) increases only
 * `Head.sequence`; a poll whose fence still holds renumbers its events.
 * One file: all writes follow one protocol, which only all of them together keep.
 */
import { setTimeout as sleepMs } from 'node:timers/promises';
import { type EventDraft, type EventUrls, toEvent } from '../events/event.ts';
import { type Backoff, backoff, FULL_JITTER, withJitter } from '../retry.ts';
import { type AccountRef, isCell, keys, logPk, toEventIndexKeys } from '../storage/schema.ts';
import { shareCalls } from '../storage/shared-reads.ts';
import { type Clause, type Item, RELAXED, type Table, type Value, type Write } from '../storage/table.ts';
import { CLOSED, epochFloor, formatCursor, getFormerEnds, type Head, isClosed, toHead } from './head.ts';

/**
 * Maximum number of times that events are renumbered after concurrent writes. Of n concurrent writers, one
 * succeeds in each round, so this is also the maximum number of writers. Growing waits keep them from
 * colliding again.
 */
const RENUMBER_ATTEMPTS = 100;
/** In ms. */
const RENUMBER_BACKOFF: Backoff = { first: 1, max: 200 };

/**
 * Number of transaction actions that {@link EventLog.commit} itself uses besides the events: fence, Head,
 * wake mark.
 */
export const COMMIT_OVERHEAD_ACTIONS = 3;

/** An event as stored in the log. `json` is the whole envelope, the same bytes for every reader. */
export interface LoggedEvent {
  /** `<account>.<epoch>.<sequence>` */
  readonly id: string;
  readonly account: string;
  readonly region: string;
  readonly sequence: number;
  readonly type: string;
  /** Absent for events about the account. */
  readonly jobNumber?: number;
  /** Epoch ms of the observation. */
  readonly time: number;
  readonly json: string;
}

/** One transaction of a poll. */
export interface CommitRequest {
  /** The revision that this poll has read. */
  readonly revision: number;
  /** The last known head. `commit` finds a newer one by itself. */
  readonly head: Head;
  readonly events: readonly EventDraft[];
  /** Whether it must survive a power failure even without events, because later events depend on it. */
  readonly durable?: boolean | undefined;
  /** The state changes that the events report: snapshots, index shards, groups. */
  readonly writes: readonly Write[];
  /** Attributes of Head to set in the same transaction. */
  readonly headAttributes?: { readonly [attribute: string]: Value | undefined };
  /**
   * Attributes of Status to set in the same transaction, so that a state and the event that reports it change
   * together.
   */
  readonly statusAttributes?: { readonly [attribute: string]: Value | undefined };
}

/** The outcome of a commit. `fenced`: a newer poll committed first, or the log is closed. Nothing was written. */
export type CommitOutcome =
  | { readonly kind: 'committed'; readonly revision: number; readonly head: Head }
  | { readonly kind: 'fenced' };

/** The outcome of a renewal; `renewed` is false if the log was renewed before. */
export interface Renewed {
  readonly renewed: boolean;
  readonly head: Head;
}

/** The log belongs to a restored table and must be renewed before anything is written to it. */
export class RestoredLogError extends Error {
  override readonly name = 'RestoredLogError';

  constructor(ref: AccountRef) {
    super(`The log of ${ref.account} belongs to a restored table: renew it before writing (logs.renew).`);
  }
}

/** A page of the log. */
export type ReadOutcome =
  | {
      readonly kind: 'events';
      readonly events: readonly LoggedEvent[];
      readonly head: Head;
    }
  /** The position is not in the log: beyond the head, or past retention. */
  | { readonly kind: 'gone'; readonly head: Head; readonly earliest: number };

/** The log of all accounts of a table. */
export interface EventLog {
  /**
   * Logs of an epoch before this text must be renewed before anything is written to them. Empty for a table
   * that was never restored.
   */
  readonly leastEpoch: string;
  /** Minimum time for which events are kept (ms). */
  readonly retentionMs: number;
  /** Returns the head, or `undefined` for an account that was never registered. */
  head(ref: AccountRef): Promise<Head | undefined>;
  /** Returns the write that starts a log. Its condition fails if the log exists. */
  start(ref: AccountRef, epoch: string): Write;
  /**
   * Renews the log after the table was restored: it resumes in a new epoch. Numbering continues from the
   * current end, because receivers may know events after the restored state that are missing here. Fences off
   * polls. Repeating the call is harmless. Returns `undefined` for a log that was never started.
   *
   * `createEvents` returns the events that report the restore, for the same transaction; its argument is the
   * cursor after which the log resumes.
   *
   * A backup can be torn: it may contain only a part of the transactions of its last second. The log
   * resumes after all visible numbers and after `known`, the last number known to be assigned. `createEvents`
   * fills the gaps before.
   */
  renew(
    ref: AccountRef,
    epoch: string,
    createEvents: (after: string) => readonly EventDraft[],
    known?: number,
  ): Promise<Renewed | undefined>;
  /**
   * Writes one chunk of a poll, whole or not at all. Throws `TableError` if the table does not respond, and
   * {@link RestoredLogError}. Throws an error if a condition of the request's own writes does not hold: a
   * poll's writes depend on its fence alone.
   */
  commit(ref: AccountRef, request: CommitRequest): Promise<CommitOutcome>;
  /**
   * Appends events without a fence (for operator actions), with other writes in the same transaction. A closed
   * log accepts none. Throws {@link RestoredLogError}.
   */
  append(
    ref: AccountRef,
    events: readonly EventDraft[],
    writes?: readonly Write[],
  ): Promise<{ kind: 'appended'; head: Head } | { kind: 'rejected' }>;
  /**
   * Returns up to `limit` contiguous events after a sequence. A gap ends the page: an event may be written
   * but not yet visible, and would otherwise be skipped. No event beyond the head is returned, so a reader's
   * cursor is never beyond a later head. `undefined` for an unknown account.
   */
  read(ref: AccountRef, after: number, limit: number): Promise<ReadOutcome | undefined>;
  /** Returns the lowest sequence within retention; head + 1 if there is none. */
  earliest(ref: AccountRef, head: Head): Promise<number>;
  /**
   * Returns the sequence after which to read all events of a time (epoch ms) or later: the one before the
   * first such event. Returns the head if there is none yet, and 0 for an unknown account. Events past
   * retention do not count.
   */
  seek(ref: AccountRef, time: number): Promise<number>;
}

interface Options extends EventUrls {
  /** Retention of events (days). Default: 90. */
  readonly retentionDays?: number;
  /**
   * For a restored table: {@link epochFloor} of the restore time. Logs of an earlier epoch must be renewed
   * before anything is written to them; otherwise ids would be reused.
   */
  readonly leastEpoch?: string | undefined;
  readonly now: () => number;
  readonly newId: () => string;
  /**
   * Called after each transaction that added events, with the last sequence and the number of events: a hint
   * to wake the sinks. The wake mark is authoritative.
   */
  readonly onCommitted?: (ref: AccountRef, sequence: number, events: number) => void;
  /**
   * Returns the trace of a transaction that adds events, as a `traceparent`, before each attempt to commit it. It is stored in the
   * wake mark, with the sequence of the first event. Default: none.
   */
  readonly traceCommit?: (ref: AccountRef) => string | undefined;
  /** Waits before events are renumbered. Tests inject their own. */
  readonly sleep?: (ms: number) => Promise<unknown>;
  readonly random?: () => number;
}

const DAY_MS = 86_400_000;
/**
 * Events are nearly in order of time: no event is more than this (ms) later than a following one. A poll
 * lasts 2 minutes.
 */
const TIME_DISORDER_MS = 600_000;
const SEEK_PAGE_EVENTS = 100;
/** Number of last events of a restored log that are checked for gaps: far more than one second holds. */
const TORN_EVENTS = 500;

/** Creates the log over a table. */
export function createEventLog(table: Table, options: Options): EventLog {
  const { now, newId, onCommitted, traceCommit, leastEpoch = '' } = options;
  const { sleep = sleepMs, random = Math.random } = options;
  const retentionMs = (options.retentionDays ?? 90) * DAY_MS;

  function backOff(attempt: number): Promise<unknown> {
    return sleep(withJitter(backoff(attempt, RENUMBER_BACKOFF), FULL_JITTER, random()));
  }

  async function readHead(ref: AccountRef): Promise<Head | undefined> {
    const item = await table.get(keys.head(ref));
    return item && toHead(item);
  }

  /** Returns the writes of one transaction (Head, events, wake mark) and the head after it. */
  function buildWrites(
    ref: AccountRef,
    head: Head,
    events: readonly EventDraft[],
    set: CommitRequest['headAttributes'],
    from: Pick<Head, 'epoch' | 'sequence'> = head,
  ): { writes: readonly Write[]; head: Head } {
    const { epoch } = from;
    if (epoch < leastEpoch) throw new RestoredLogError(ref);
    if (events.length === 0 && set === undefined) return { writes: [], head };
    const sequence = from.sequence + events.length;
    // Not before the expiry of the previous event: a shorter retention, or a slow clock, must not open a gap
    // in the log.
    const expiresAt = Math.max(now() + retentionMs, Number(head.attributes.eventsExpireAt ?? 0));
    const attributes = events.length === 0 ? set : { ...set, eventsExpireAt: expiresAt };
    const after = { epoch, sequence, attributes: { ...head.attributes, ...attributes } };
    const grown: Write[] = [
      {
        update: keys.head(ref),
        set: { ...attributes, sequence, ...(epoch === head.epoch ? {} : { epoch }) },
        when: [
          ['sequence', '=', head.sequence],
          ['epoch', '=', head.epoch],
          [CLOSED, 'absent'],
        ],
      },
    ];
    if (events.length === 0) return { writes: grown, head: after };
    events.forEach((draft, at) => {
      grown.push(toEventWrite(ref, draft, { epoch, sequence: from.sequence + at + 1 }, expiresAt));
    });
    const trace = traceCommit?.(ref);
    const traced = trace === undefined ? {} : { trace, tracedFrom: from.sequence + 1 };
    grown.push({ put: { ...keys.wake(ref), sequence, ...traced } });
    return { writes: grown, head: after };
  }

  /** Returns the write of one event. */
  function toEventWrite(
    ref: AccountRef,
    draft: EventDraft,
    place: Pick<Head, 'epoch' | 'sequence'>,
    expiresAt: number,
  ): { put: Item; when: readonly Clause[] } {
    const event = toEvent(draft, ref, place, options);
    return {
      put: {
        ...keys.event(ref, place.sequence),
        ...toEventIndexKeys(ref, draft.jobNumber, place.sequence),
        id: event.id,
        type: draft.type,
        jobNumber: draft.jobNumber,
        time: draft.time,
        event: JSON.stringify(event),
        expiresAt,
        ttl: Math.ceil(expiresAt / 1000),
      },
      // A number is assigned once. If Head were ever set back by hand, this condition prevents an overwrite
      // of recorded events.
      when: [['pk', 'absent']],
    };
  }

  /**
   * Fills the gaps that a backup left in the last events of a log, and returns the log's end: the last
   * visible or known number. If the process is interrupted here, its events have an epoch that the log never
   * used, so their ids are unique.
   */
  async function fillGaps(
    ref: AccountRef,
    head: Head,
    epoch: string,
    createEvents: (after: string) => readonly EventDraft[],
    known: number,
  ): Promise<Pick<Head, 'sequence' | 'attributes'>> {
    const last = await table.query({ pk: logPk(ref), descending: true, limit: TORN_EVENTS });
    const expiries = new Map(last.map(({ sk, expiresAt }) => [Number(sk), Number(expiresAt)]));
    const sequence = Math.max(head.sequence, known, ...expiries.keys());
    // Expired items are deleted in any order and are no gap.
    const alive = [...expiries].filter(([, expiresAt]) => expiresAt > now()).map(([at]) => at);
    const from = Math.min(head.sequence, ...alive);
    let expiresAt = expiries.get(from) ?? Number(head.attributes.eventsExpireAt ?? now() + retentionMs);
    for (let at = from + 1; at <= sequence; at += 1) {
      const [draft] = expiries.has(at) ? [] : createEvents(formatCursor(head.epoch, at - 1));
      if (draft) await table.write(toEventWrite(ref, draft, { epoch, sequence: at }, expiresAt));
      else expiresAt = expiries.get(at) ?? expiresAt;
    }
    return { sequence, attributes: { ...head.attributes, eventsExpireAt: expiresAt } };
  }

  return {
    leastEpoch,
    retentionMs,
    head: readHead,

    start(ref, epoch) {
      return { put: { ...keys.head(ref), epoch, sequence: 0 }, when: [['pk', 'absent']] };
    },

    async renew(ref, epoch, createEvents, known = 0) {
      for (let attempt = 0; attempt < RENUMBER_ATTEMPTS; attempt += 1) {
        const [head, status] = await Promise.all([
          readHead(ref),
          isCell(ref) ? undefined : table.get(keys.status(ref)),
        ]);
        if (!head) return undefined;
        if (head.epoch >= leastEpoch || isClosed(head)) return { renewed: false, head };
        if (epoch < leastEpoch) throw new RestoredLogError(ref);
        const { sequence, attributes } = await fillGaps(ref, head, epoch, createEvents, known);
        const after = formatCursor(head.epoch, sequence);
        const set = { former: [...getFormerEnds(head), after] };
        const grown = buildWrites(ref, { ...head, attributes }, createEvents(after), set, {
          epoch,
          sequence,
        });
        const revision = Number(status?.revision);
        const fence: Write[] = status
          ? [
              {
                update: keys.status(ref),
                set: { revision: revision + 1 },
                when: [['revision', '=', revision]],
              },
            ]
          : [];
        const outcome = await table.transact([...grown.writes, ...fence], newId());
        if (outcome.done) {
          if (grown.head.sequence > head.sequence)
            onCommitted?.(ref, grown.head.sequence, grown.head.sequence - head.sequence);
          return { renewed: true, head: grown.head };
        }
        await backOff(attempt);
      }
      throw new Error(`Too many concurrent writes to the log of ${ref.account} during its renewal.`);
    },

    async commit(ref, request) {
      let head = request.head;
      for (let attempt = 0; attempt < RENUMBER_ATTEMPTS; attempt += 1) {
        const fence: Write = {
          update: keys.status(ref),
          set: { ...request.statusAttributes, revision: request.revision + 1 },
          when: [['revision', '=', request.revision]],
        };
        const grown = buildWrites(ref, head, request.events, request.headAttributes);
        // Without events, nothing depends on the commit that another poll would not observe again.
        const durability = request.events.length === 0 && !request.durable ? RELAXED : undefined;
        const outcome = await table.transact(
          [fence, ...grown.writes, ...request.writes],
          newId(),
          durability,
        );
        if (outcome.done) {
          if (request.events.length > 0) onCommitted?.(ref, grown.head.sequence, request.events.length);
          return { kind: 'committed', revision: request.revision + 1, head: grown.head };
        }
        if (outcome.failed.includes(0)) return { kind: 'fenced' };
        if (outcome.failed.some((at) => at > grown.writes.length)) {
          throw new Error(`A condition in a commit to the log of ${ref.account} did not hold.`);
        }
        await backOff(attempt);
        const fresh = await readHead(ref);
        if (!fresh || isClosed(fresh)) return { kind: 'fenced' };
        head = fresh;
      }
      throw new Error(`Too many concurrent writes to the log of ${ref.account} during a commit.`);
    },

    async append(ref, events, writes = []) {
      for (let attempt = 0; attempt < RENUMBER_ATTEMPTS; attempt += 1) {
        const head = await readHead(ref);
        if (!head || isClosed(head)) return { kind: 'rejected' };
        const grown = buildWrites(ref, head, events, undefined);
        const outcome = await table.transact([...grown.writes, ...writes], newId());
        if (outcome.done) {
          if (events.length > 0) onCommitted?.(ref, grown.head.sequence, events.length);
          return { kind: 'appended', head: grown.head };
        }
        // A failed condition of the caller's own writes is the caller's result; only the numbering is retried
        // here.
        if (outcome.failed.some((at) => at >= grown.writes.length)) return { kind: 'rejected' };
        await backOff(attempt);
      }
      throw new Error(`Too many concurrent writes to the log of ${ref.account} during an append.`);
    },

    async read(ref, after, limit) {
      // Concurrent reads: reading costs one round trip. Only events that both results include are returned,
      // whichever is older.
      const [head, items] = await Promise.all([
        readHead(ref),
        table.query({ pk: logPk(ref), after: keys.event(ref, after).sk, limit }),
      ]);
      if (!head) return undefined;
      if (after > head.sequence) return { kind: 'gone', head, earliest: await earliest(ref, head) };
      const events: LoggedEvent[] = [];
      for (const item of items) {
        const event = toLoggedEvent(item, ref);
        const next = event.sequence === after + events.length + 1 && event.sequence <= head.sequence;
        // Expiry is monotonic, so expired events occur only at the beginning.
        if (!next || Number(item.expiresAt) <= now()) break;
        events.push(event);
      }
      if (events.length === 0 && after < head.sequence && isExpired(items[0], head)) {
        const first = await earliest(ref, head);
        if (first > after + 1) return { kind: 'gone', head, earliest: first };
      }
      return { kind: 'events', events, head };
    },

    earliest,

    async seek(ref, time) {
      const head = await readHead(ref);
      if (!head) return 0;
      const first = await earliest(ref, head);
      // Bisection: the event before `low` is earlier than `time` by more than the margin, so no event before
      // it can be of that time or later.
      let low = first;
      let high = head.sequence + 1;
      while (low < high) {
        const middle = Math.floor((low + high) / 2);
        const item = await table.get(keys.event(ref, middle));
        if (item && Number(item.time) >= time - TIME_DISORDER_MS) high = middle;
        else low = middle + 1;
      }
      for (let after = low - 1; after < head.sequence; ) {
        const page = await table.query({
          pk: logPk(ref),
          after: keys.event(ref, after).sk,
          to: keys.event(ref, head.sequence).sk,
          limit: SEEK_PAGE_EVENTS,
        });
        const found = page.find((item) => Number(item.time) >= time);
        if (found) return Number(found.sk) - 1;
        const last = page.at(-1);
        if (!last) break;
        after = Number(last.sk);
      }
      return head.sequence;
    },
  };

  /**
   * Returns whether the event after a position has expired. Otherwise, it may be not yet visible, as other events of its transaction may
   * be. `next`: first visible event after the position.
   */
  function isExpired(next: Item | undefined, { attributes }: Head): boolean {
    if (!next) return !(Number(attributes.eventsExpireAt) > now());
    return Number(next.expiresAt) <= now() || Number(next.time) <= now() - TIME_DISORDER_MS;
  }

  /**
   * Finds the earliest sequence by bisection. Expiry is monotonic in the sequence; TTL deletion is delayed,
   * so the first item proves nothing.
   */
  async function earliest(ref: AccountRef, head: Head): Promise<number> {
    let low = 1;
    let high = head.sequence + 1;
    const [first] = await table.query({ pk: logPk(ref), limit: 1 });
    if (!first) return high;
    low = Number(first.sk);
    if (Number(first.expiresAt) > now()) return low;
    while (low < high) {
      const middle = Math.floor((low + high) / 2);
      const item = await table.get(keys.event(ref, middle));
      if (item && Number(item.expiresAt) > now()) high = middle;
      else low = middle + 1;
    }
    return low;
  }
}

/**
 * Shares equal reads of a log within one turn of the event loop, for a process with many readers. A caller
 * never receives a page that was requested before its call.
 */
export function shareReads(log: EventLog): EventLog {
  const head = shareCalls((ref: AccountRef) => log.head(ref));
  const read = shareCalls(([ref, after, limit]: Parameters<EventLog['read']>) => log.read(ref, after, limit));
  return {
    ...log,
    head: ({ region, account }) => head({ region, account }),
    read: ({ region, account }, after, limit) => read([{ region, account }, after, limit]),
  };
}

/** Converts an item of a log to its event. */
export function toLoggedEvent(item: Item, ref: AccountRef): LoggedEvent {
  return {
    id: String(item.id),
    account: ref.account,
    region: ref.region,
    sequence: Number(item.sk),
    type: String(item.type),
    ...(typeof item.jobNumber === 'number' ? { jobNumber: item.jobNumber } : {}),
    time: Number(item.time),
    json: String(item.event),
  };
}
