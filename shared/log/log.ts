/**
 * The event log: one ordered, gapless sequence of events per account, written in the same transactions as the state
 * that the events announce (a transactional outbox).
 *
 *   poll A   reads revision 7 ─────────── commits (7 → 8) ── commits (8 → 9)
 *   poll B        reads revision 7 ──────────────── commits (7 → 8)? fenced: it drops what it saw
 *
 * The fence is `Status.revision`: everything a poll writes is conditional on the revision it has read, and raises it. So
 * an older or overlapping poll can never speak after a newer one. The number of an event comes from `Head.sequence`, in
 * the same transaction; a writer without a fence (`append`) raises only that, and a poll whose fence still holds
 * renumbers.
 */
import { randomBytes } from 'node:crypto';
import { setTimeout as sleepMs } from 'node:timers/promises';
import { type EventDraft, type EventUrls, toEvent } from '../events/event.ts';
import { type AccountRef, eventPlace, isCell, keys, logPk } from '../table/schema.ts';
import { shared } from '../table/shared-reads.ts';
import type { Clause, Item, Table, Value, Write } from '../table/table.ts';

/**
 * How often events are renumbered when other writers come in between, before it is given up. Of n writers at once one gets
 * through each time, so this is also how many there may be; waits that grow keep them from meeting again.
 */
const RENUMBER_ATTEMPTS = 100;
const MAX_RENUMBER_WAIT_MS = 200;

/** How many actions of a transaction {@link EventLog.commit} itself takes besides the events: fence, Head, wake mark. */
export const COMMIT_OVERHEAD_ACTIONS = 3;

/** Where an account's log stands. */
export interface Head {
  /** New when an account is created or a table restored, so that no event id is ever used twice. */
  readonly epoch: string;
  /** The number of the last event; 0 before the first. */
  readonly sequence: number;
  /**
   * The rest of the Head item: what `commit` was asked to keep there, `eventsExpireAt` of the last event, and `former`: where
   * each epoch before this one ended, as cursors.
   */
  readonly attributes: { readonly [attribute: string]: Value | undefined };
}

/** An event as the log holds it. `json` is the whole envelope, the same bytes for every reader. */
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
  /** The revision this poll holds. */
  readonly revision: number;
  /** The head as last known; a newer one is found by itself. */
  readonly head: Head;
  readonly events: readonly EventDraft[];
  /** Snapshots, index shards, groups: what the events announce. */
  readonly writes: readonly Write[];
  /** Attributes of Head to set in the same transaction. */
  readonly headAttributes?: { readonly [attribute: string]: Value | undefined };
  /** Attributes of Status to set in the same transaction (a state changes together with the event that announces it). */
  readonly statusAttributes?: { readonly [attribute: string]: Value | undefined };
}

/** What became of a commit. `fenced`: another poll has spoken since; nothing was written. */
export type CommitOutcome =
  | { readonly kind: 'committed'; readonly revision: number; readonly head: Head }
  | { readonly kind: 'fenced' };

/** What became of a log that was to be renewed; `renewed` is false when it had been already. */
export interface Renewed {
  readonly renewed: boolean;
  readonly head: Head;
}

/** The log stands in a table that was restored, and nothing is written to it before it is renewed. */
export class RestoredLogError extends Error {
  override readonly name = 'RestoredLogError';

  constructor(ref: AccountRef) {
    super(
      `The log of ${ref.account} is of a table that was restored: nothing is written to it before it is renewed (logs.renew).`,
    );
  }
}

/** A page of the log. */
export type ReadOutcome =
  | {
      readonly kind: 'events';
      readonly events: readonly LoggedEvent[];
      readonly head: Head;
    }
  /** What was asked for is not in the log: beyond the head, or fallen out of retention. */
  | { readonly kind: 'gone'; readonly head: Head; readonly earliest: number };

/** The log of all accounts of a table. */
export interface EventLog {
  /** Logs of an epoch before this text have to be renewed before anything is written to them; empty in a table that was never restored. */
  readonly leastEpoch: string;
  /** The head, or `undefined` for an account that was never registered. */
  head(ref: AccountRef): Promise<Head | undefined>;
  /** The write that starts a log: fails its condition when there is one already. */
  start(ref: AccountRef, epoch: string): Write;
  /**
   * After the table was restored: goes on in a new epoch, numbered on from where it stands, for what was numbered after the
   * restored state has been heard of by receivers and is known here no more. Fences off polls. `announce` gives the events
   * that say so, in the same transaction; it is told after which cursor the log goes on. Repeating it is harmless.
   * `undefined` for a log that was never started.
   *
   * A backup is torn by moments: transactions of its last second may be there in part. The log goes on behind all that it
   * shows and behind `known`, the last number that is known to have been given, and `announce` fills what is missing before.
   */
  renew(
    ref: AccountRef,
    epoch: string,
    announce: (after: string) => readonly EventDraft[],
    known?: number,
  ): Promise<Renewed | undefined>;
  /**
   * Writes one chunk of a poll, whole or not at all. Throws TableError when the table can't answer, and an error when a
   * condition of the request's own writes does not hold: what a poll writes is conditional on its fence alone. Throws
   * {@link RestoredLogError}.
   */
  commit(ref: AccountRef, request: CommitRequest): Promise<CommitOutcome>;
  /** Appends without a fence (an operator's act), with other writes in the same transaction. Throws {@link RestoredLogError}. */
  append(
    ref: AccountRef,
    events: readonly EventDraft[],
    writes?: readonly Write[],
  ): Promise<{ kind: 'appended'; head: Head } | { kind: 'refused' }>;
  /**
   * Up to `limit` events after a sequence, contiguous: a hole ends the page, for an event may be written but not yet
   * visible, and never would be skipped. Nothing beyond the head is given, so whoever reads on is never beyond a later
   * head. `undefined` for an unknown account.
   */
  read(ref: AccountRef, after: number, limit: number): Promise<ReadOutcome | undefined>;
  /** The lowest sequence still within retention; head + 1 when there is none. */
  earliest(ref: AccountRef, head: Head): Promise<number>;
  /**
   * The sequence after which to read so that no event of an instant (epoch ms) or later is missed: the one before the
   * first such event, the head when there is none yet, 0 for an unknown account. What is out of retention does not count.
   */
  seek(ref: AccountRef, time: number): Promise<number>;
}

interface Options extends EventUrls {
  /** How long events stay readable. */
  readonly retentionDays?: number;
  /**
   * For a table that was restored, {@link epochFloor} of when that was: logs of an epoch before it have to be renewed before
   * anything is written to them, for otherwise ids would be given a second time.
   */
  readonly leastEpoch?: string | undefined;
  readonly now: () => number;
  readonly newId: () => string;
  /** Called after each transaction that added events: a hint to wake the sinks; the wake mark is the truth. */
  readonly onCommitted?: (ref: AccountRef, sequence: number) => void;
  /** Waits before events are renumbered; injected by tests. */
  readonly sleep?: (ms: number) => Promise<unknown>;
  readonly random?: () => number;
}

const DAY_MS = 86_400_000;
/** Events stand nearly in order of time: none is by more than this later than one behind it. A poll lasts 2 minutes. */
const TIME_DISORDER_MS = 600_000;
const SEEK_PAGE_EVENTS = 100;
/** The last events of a restored log that are looked through for what is missing: far more than one second has. */
const TORN_EVENTS = 500;

/** Makes the log over a table. */
export function createEventLog(table: Table, options: Options): EventLog {
  const { now, newId, onCommitted, leastEpoch = '' } = options;
  const { sleep = sleepMs, random = Math.random } = options;
  const retentionMs = (options.retentionDays ?? 90) * DAY_MS;

  function backOff(attempt: number): Promise<unknown> {
    return sleep(Math.min(MAX_RENUMBER_WAIT_MS, 2 ** attempt) * random());
  }

  async function readHead(ref: AccountRef): Promise<Head | undefined> {
    const item = await table.get(keys.head(ref));
    return item && toHead(item);
  }

  /** Head, events and wake mark of one transaction, and the head after it. */
  function grow(
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
    // Not before the event before: a shorter retention, or a clock that is behind, must not open a gap in the log.
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
        ],
      },
    ];
    if (events.length === 0) return { writes: grown, head: after };
    events.forEach((draft, at) => {
      grown.push(said(ref, draft, { epoch, sequence: from.sequence + at + 1 }, expiresAt));
    });
    grown.push({ put: { ...keys.wake(ref), sequence } });
    return { writes: grown, head: after };
  }

  /** The write of one event. */
  function said(
    ref: AccountRef,
    draft: EventDraft,
    place: Pick<Head, 'epoch' | 'sequence'>,
    expiresAt: number,
  ): { put: Item; when: readonly Clause[] } {
    const event = toEvent(draft, ref, place, options);
    return {
      put: {
        ...keys.event(ref, place.sequence),
        ...eventPlace(ref, draft.jobNumber, place.sequence),
        id: event.id,
        type: draft.type,
        jobNumber: draft.jobNumber,
        time: draft.time,
        event: JSON.stringify(event),
        expiresAt,
        ttl: Math.ceil(expiresAt / 1000),
      },
      // A number is given once. Should Head ever be set back by hand, this refuses to overwrite what was said.
      when: [['pk', 'absent']],
    };
  }

  /**
   * Fills the gaps that a backup has left in the last events of a log, and gives the log's end: the last number it shows or
   * that is known of. Whoever is cut off here leaves events of an epoch that never became the log's, with ids nobody else has.
   */
  async function mend(
    ref: AccountRef,
    head: Head,
    epoch: string,
    announce: (after: string) => readonly EventDraft[],
    known: number,
  ): Promise<Pick<Head, 'sequence' | 'attributes'>> {
    const last = await table.query({ pk: logPk(ref), descending: true, limit: TORN_EVENTS });
    const expiries = new Map(last.map(({ sk, expiresAt }) => [Number(sk), Number(expiresAt)]));
    const sequence = Math.max(head.sequence, known, ...expiries.keys());
    // What has expired is deleted in any order, and is no gap.
    const alive = [...expiries].filter(([, expiresAt]) => expiresAt > now()).map(([at]) => at);
    const from = Math.min(head.sequence, ...alive);
    let expiresAt = expiries.get(from) ?? Number(head.attributes.eventsExpireAt ?? now() + retentionMs);
    for (let at = from + 1; at <= sequence; at += 1) {
      const [draft] = expiries.has(at) ? [] : announce(formatCursor(head.epoch, at - 1));
      if (draft) await table.write(said(ref, draft, { epoch, sequence: at }, expiresAt));
      else expiresAt = expiries.get(at) ?? expiresAt;
    }
    return { sequence, attributes: { ...head.attributes, eventsExpireAt: expiresAt } };
  }

  return {
    leastEpoch,
    head: readHead,

    start(ref, epoch) {
      return { put: { ...keys.head(ref), epoch, sequence: 0 }, when: [['pk', 'absent']] };
    },

    async renew(ref, epoch, announce, known = 0) {
      for (let attempt = 0; attempt < RENUMBER_ATTEMPTS; attempt += 1) {
        const [head, status] = await Promise.all([
          readHead(ref),
          isCell(ref) ? undefined : table.get(keys.status(ref)),
        ]);
        if (!head) return undefined;
        if (head.epoch >= leastEpoch) return { renewed: false, head };
        if (epoch < leastEpoch) throw new RestoredLogError(ref);
        const { sequence, attributes } = await mend(ref, head, epoch, announce, known);
        const after = formatCursor(head.epoch, sequence);
        const set = { former: [...formerOf(head), after] };
        const grown = grow(ref, { ...head, attributes }, announce(after), set, { epoch, sequence });
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
          if (grown.head.sequence > head.sequence) onCommitted?.(ref, grown.head.sequence);
          return { renewed: true, head: grown.head };
        }
        await backOff(attempt);
      }
      throw new Error(`The log of ${ref.account} kept moving while it was renewed.`);
    },

    async commit(ref, request) {
      let head = request.head;
      for (let attempt = 0; attempt < RENUMBER_ATTEMPTS; attempt += 1) {
        const fence: Write = {
          update: keys.status(ref),
          set: { ...request.statusAttributes, revision: request.revision + 1 },
          when: [['revision', '=', request.revision]],
        };
        const grown = grow(ref, head, request.events, request.headAttributes);
        const outcome = await table.transact([fence, ...grown.writes, ...request.writes], newId());
        if (outcome.done) {
          if (request.events.length > 0) onCommitted?.(ref, grown.head.sequence);
          return { kind: 'committed', revision: request.revision + 1, head: grown.head };
        }
        if (outcome.failed.includes(0)) return { kind: 'fenced' };
        if (outcome.failed.some((at) => at > grown.writes.length)) {
          throw new Error(`A condition in a commit to the log of ${ref.account} did not hold.`);
        }
        await backOff(attempt);
        const fresh = await readHead(ref);
        if (!fresh) return { kind: 'fenced' };
        head = fresh;
      }
      throw new Error(`The log of ${ref.account} kept moving while a poll tried to number its events.`);
    },

    async append(ref, events, writes = []) {
      for (let attempt = 0; attempt < RENUMBER_ATTEMPTS; attempt += 1) {
        const head = await readHead(ref);
        if (!head) return { kind: 'refused' };
        const grown = grow(ref, head, events, undefined);
        const outcome = await table.transact([...grown.writes, ...writes], newId());
        if (outcome.done) {
          if (events.length > 0) onCommitted?.(ref, grown.head.sequence);
          return { kind: 'appended', head: grown.head };
        }
        // A condition of the caller's own writes is the caller's answer; only the number is ours to retry.
        if (outcome.failed.some((at) => at >= grown.writes.length)) return { kind: 'refused' };
        await backOff(attempt);
      }
      throw new Error(`The log of ${ref.account} kept moving while an event was appended.`);
    },

    async read(ref, after, limit) {
      // Side by side, so that reading costs one round trip. Whichever is the older, only what both know is given.
      const [head, items] = await Promise.all([
        readHead(ref),
        table.query({ pk: logPk(ref), after: keys.event(ref, after).sk, limit }),
      ]);
      if (!head) return undefined;
      if (after > head.sequence) return { kind: 'gone', head, earliest: await earliest(ref, head) };
      const events: LoggedEvent[] = [];
      for (const item of items) {
        const event = toLogged(item, ref);
        const next = event.sequence === after + events.length + 1 && event.sequence <= head.sequence;
        // Expiry is monotonic, so an expired event can only stand at the beginning.
        if (!next || Number(item.expiresAt) <= now()) break;
        events.push(event);
      }
      if (events.length === 0 && after < head.sequence) {
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
      // By bisection: the event before `low` is so early that by the margin none before it can be of the instant or later.
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

  /** By bisection: expiry is monotonic in the sequence, and TTL deletes at leisure, so the first item proves nothing. */
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
 * The same log, for a process in which many read the same at the same time: what is asked for several times within one
 * turn of the event loop is read once. Nobody is given a page that was asked for before they asked.
 */
export function shareReads(log: EventLog): EventLog {
  const head = shared((ref: AccountRef) => log.head(ref));
  const read = shared(([ref, after, limit]: Parameters<EventLog['read']>) => log.read(ref, after, limit));
  return {
    ...log,
    head: ({ region, account }) => head({ region, account }),
    read: ({ region, account }, after, limit) => read([{ region, account }, after, limit]),
  };
}

/** The epoch of a log that begins now (epoch ms): sorts by time as text, and differs for two that begin in the same second. */
export function newEpoch(now: number): string {
  return `${epochFloor(now)}${randomBytes(3).toString('hex')}`;
}

/** A text that all epochs sort behind that begin at an instant (epoch ms) or later, and none that began before its second. */
export function epochFloor(instant: number): string {
  return Math.floor(instant / 1000).toString(36);
}

/**
 * The sequence after which to read for a cursor; `undefined` when that place is not in this log: beyond the head, of an
 * epoch that is none of this log's, or beyond what a restored table had left of its epoch. A bare number is of the current
 * epoch. Whether the place is still within retention shows when it is read.
 */
export function placeOf(
  head: Pick<Head, 'epoch' | 'sequence' | 'attributes'>,
  cursor: { readonly epoch?: string; readonly sequence: number },
): number | undefined {
  const end =
    cursor.epoch === undefined || cursor.epoch === head.epoch ? head.sequence : formerEnd(head, cursor.epoch);
  return end !== undefined && cursor.sequence <= end ? cursor.sequence : undefined;
}

/** The last number that is left of an epoch before the current one; `undefined` for one that is none of this log's. */
export function formerEnd(head: Pick<Head, 'attributes'>, epoch: string): number | undefined {
  const cursor = formerOf(head).find((end) => parseCursor(end)?.epoch === epoch);
  return cursor === undefined ? undefined : parseCursor(cursor)?.sequence;
}

function formerOf({ attributes }: Pick<Head, 'attributes'>): readonly string[] {
  return (attributes.former as readonly string[] | undefined) ?? [];
}

/** A place in a log as clients carry it: `<epoch>.<sequence>`. */
export function formatCursor(epoch: string, sequence: number): string {
  return `${epoch}.${sequence}`;
}

/** Reads `<epoch>.<sequence>` or a bare sequence (then `epoch` is absent); `undefined` for anything else. */
export function parseCursor(text: string): { epoch?: string; sequence: number } | undefined {
  const match = /^(?:([0-9a-z]{1,32})\.)?(0|[1-9][0-9]{0,14})$/.exec(text);
  if (!match) return undefined;
  const sequence = Number(match[2]);
  return match[1] === undefined ? { sequence } : { epoch: match[1], sequence };
}

/** The Head in an item read together with the index shards. */
export function toHead(item: Item): Head {
  const { pk: _pk, sk: _sk, epoch, sequence, ...attributes } = item;
  return { epoch: String(epoch), sequence: Number(sequence), attributes };
}

/** The event in an item of its log. */
export function toLogged(item: Item, ref: AccountRef): LoggedEvent {
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
