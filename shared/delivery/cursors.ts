/**
 * The cursors of one sink that a drain processes: the due ones, their turns, the reads, and the stored
 * positions. An open cursor is a run.
 *
 *   due index ──▶ waiting ──▶ open ──▶ window read ahead ──▶ position stored ──▶ no longer due
 *                    ▲                      │ share used up, or the log grew
 *                    └──────────────────────┘
 *
 * Every write is valid only for the holder of the latest lease; see `lease.ts`.
 * One file: the states of the diagram are one machine with one set of runs.
 */
import type { EventLog, LoggedEvent } from '../log/log.ts';
import { cursorPk, keys } from '../storage/schema.ts';
import {
  type Clause,
  type Item,
  RELAXED,
  type Table,
  type TransactOutcome,
  type Write,
} from '../storage/table.ts';
import { hasElapsed } from './clock.ts';
import { type DeadSelection, readDeadEvents, toDeadSelection } from './dead-events.ts';
import type { Lease } from './lease.ts';
import { type EventFilter, follows, matchesFilter, type Sink, toSink } from './sink.ts';
import { listDueWork } from './wakes.ts';
import { CursorWindow, type LostEvents } from './window.ts';

/** Maximum number of open cursors of one sink: live ones, and replays in addition. */
const OPEN_CURSORS = 8;
const OPEN_REPLAYS = 2;
/**
 * Maximum number of events of one cursor that are read and not yet done, and of those sent and not yet stored
 * as done.
 */
const WINDOW_EVENTS = 400;
const PAGE_EVENTS = 200;
/** The next page is read when no more than this many events per lane remain: enough work until it arrives. */
const READ_AHEAD = 8;
/** A position is stored when this many events are done, and when there is no more work. */
const STORE_EVERY = 100;
/**
 * While the drain lingers, storing costs no money but a write to a disk. So positions are stored more often under load, for fewer
 * repetitions after a crash; but at the head, those of several events are stored together.
 */
const LINGERING = { storeEvery: 16, holdMs: 250 };
/** Minimum interval (ms) of early stores. */
const EARLY_STORE_MS = 10;
/** Number of events of one cursor after which a waiting cursor gets its turn. */
const SHARE_EVENTS = 400;
/** Interval (ms) at which a busy drain queries due cursors. The more there are, the longer the interval. */
const LOOK_AGAIN_MS = 2_000;
const DUE_PER_LOOK = 200;

/**
 * Positions that all drains of a process store before {@link STORE_EVERY} events are done: at most one in {@link EARLY_STORE_MS}. So if few
 * endpoints are busy or they are slow, each delivered event is stored at once and is not repeated after a crash, and if many are
 * busy, storing does not slow them down.
 */
export class EarlyStores {
  #lastAt = 0;

  /** Reports whether a position may be stored early at a time (epoch ms). If so, it counts as stored. */
  take(now: number): boolean {
    const isFree = hasElapsed(this.#lastAt, EARLY_STORE_MS, now);
    if (isFree) this.#lastAt = now;
    return isFree;
  }
}

/** Reports whether a cursor belongs to a replay, by its sort key. */
function isReplay(name: string): boolean {
  return name.includes('#');
}

/** A cursor in process. */
export interface Run {
  /** The cursor's sort key. */
  readonly name: string;
  readonly account: string;
  readonly replay?: Replay;
  window: CursorWindow;
  /**
   * The log's head, or the end of the replay, as last read; infinite before. A later mark on the cursor means
   * that the log grew.
   */
  head: number;
  /** The stored position. */
  stored: number;
  /** Number of events of the window that are stored as done. */
  storedCount: number;
  /** Whether the cursor is being read, or being closed: never both. */
  busy: boolean;
  /** Whether its position is being stored; reading continues meanwhile. */
  storing: boolean;
  /** Whether nothing more can be read for now. */
  exhausted: boolean;
  /** Since when (epoch ms) the position at the head waits to be stored. */
  heldSince: number | undefined;
  /** Position at which the window began. */
  readonly from: number;
  readonly counts: { delivered: number; failed: number; skipped: number; lost: number };
}

interface Replay {
  readonly id: string;
  readonly end: number;
  readonly filter: EventFilter;
  /** The dead events that it sends. Absent: it sends the events of the log. */
  readonly dead?: DeadSelection;
}

/** Dependencies of the runs, provided by their drain. */
export interface RunsDeps {
  readonly table: Table;
  readonly log: EventLog;
  /** Epoch ms. */
  readonly now: () => number;
  readonly newId: () => string;
  /** Starts an operation in the background. */
  readonly begin: (action: () => Promise<unknown>) => void;
  /** Returns the number of lanes that can be in delivery at once. */
  readonly lanes: () => number;
  /** Whether the drain waits for new work when all is done. */
  readonly lingers: boolean;
  /** Default: no position is stored early. */
  readonly earlyStores?: EarlyStores | undefined;
  /** Resolves when the data about completed events that must precede a position is stored. */
  readonly beforeStoring: () => Promise<void>;
  /** Called with the number of events that the sink's filter excluded. */
  readonly skipped: (events: number) => void;
  /** Records lost events, in one transaction with the writes that skip them. All or nothing. */
  readonly recordLost: (
    lost: LostEvents & { readonly account: string },
    writes: readonly Write[],
  ) => Promise<TransactOutcome>;
}

/** The runs of a sink; see the top of the file. */
export class CursorRuns {
  readonly #deps: RunsDeps;
  readonly #sink: Sink;
  readonly #lease: Lease;
  readonly #open: Run[] = [];
  /** Cursors that wait for their turn, by sort key. */
  readonly #waiting = new Set<string>();
  /**
   * Positions of the live cursors that this drain has moved. No other process moves them while it holds the
   * lease.
   */
  readonly #positions = new Map<string, { readonly position: number; readonly ahead: string }>();
  /** Due cursors that are left to the next drain. */
  readonly #deferred = new Set<string>();
  /** Cursors that are being opened. */
  readonly #opening = new Set<string>();
  /** Time of the last lookup of due cursors, and the interval (ms) until the next one. */
  #lookedAt = 0;
  #lookAgainMs = 0;

  constructor(work: RunsDeps, sink: Sink, lease: Lease) {
    this.#deps = work;
    this.#sink = sink;
    this.#lease = lease;
  }

  /** The open cursors. */
  get open(): readonly Run[] {
    return this.#open;
  }

  /** Whether a cursor is known not to be at its head. */
  get hasMore(): boolean {
    return this.#open.length > 0 || this.isWaiting;
  }

  /** Whether every due cursor is at its head. */
  get isDone(): boolean {
    return !this.hasMore && this.#deferred.size === 0;
  }

  /** Whether a cursor waits for its turn. */
  get isWaiting(): boolean {
    return this.#waiting.size > 0;
  }

  /** Time (ms) for which positions may wait to be stored; `undefined` if none waits. */
  get holdMs(): number | undefined {
    return this.#open.some(({ heldSince }) => heldSince !== undefined) ? LINGERING.holdMs : undefined;
  }

  /** Called when no new work arrived in time: positions no longer wait to be stored. */
  endHold(): void {
    for (const run of this.#open) if (run.heldSince !== undefined) run.heldSince = Number.NEGATIVE_INFINITY;
  }

  /** Whether more events are being read. */
  get isReading(): boolean {
    return this.#opening.size > 0 || this.#open.some(({ busy }) => busy);
  }

  /** Called when the log of an account grew. */
  addGrownAccount(account: string): void {
    if (follows(this.#sink, account) && !this.#deferred.has(account)) this.#waiting.add(account);
  }

  /**
   * Takes the next event of a cursor, unless it is too far ahead of the stored position: it would be sent
   * again after a crash. Events with the ids to avoid are skipped.
   */
  takeFrom(run: Run, avoid: ReadonlySet<string> | undefined): LoggedEvent | undefined {
    // Dead events can be far apart. Those that were delivered are no longer dead, and so are not sent again.
    return run.window.take(avoid, run.replay?.dead ? undefined : run.stored + WINDOW_EVENTS);
  }

  /** Deletes a dead event that was delivered. */
  async removeDead({ account, sequence }: LoggedEvent): Promise<void> {
    const { region, id } = this.#sink;
    await this.#deps.table.write({ delete: keys.dead(region, id, account, sequence) });
  }

  /** Stores the positions of all open cursors. */
  async storeAll(): Promise<void> {
    await Promise.all(
      [...this.#open].map(async (run) => {
        if ((await this.#store(run)) === 'clear' && run.heldSince !== undefined) this.#drop(run);
      }),
    );
  }

  /** While there is work: queries due cursors and cancelled replays periodically. */
  refreshDue(): void {
    if (!hasElapsed(this.#lookedAt, this.#lookAgainMs, this.#deps.now())) return;
    this.#deps.begin(() => this.loadDue());
    this.#deps.begin(() => this.#dropCancelled());
  }

  /** Drops replays that were cancelled while in process. */
  async #dropCancelled(): Promise<void> {
    const replays = this.#open.filter(({ replay }) => replay !== undefined);
    if (replays.length === 0) return;
    const left = await this.#deps.table.getMany(replays.map(({ name }) => this.#toKey(name)));
    for (const run of replays) if (!left.some(({ sk }) => sk === run.name)) this.#drop(run);
  }

  #drop(run: Run): void {
    const at = this.#open.indexOf(run);
    if (at >= 0) this.#open.splice(at, 1);
  }

  /**
   * Queries all due cursors of the sink, the longest due first. All of them, so that those at the end (for
   * example new events behind replays) get their turn too. Due lanes are known. The first lookup also finds cursors that
   * were marked before the clock was set back.
   */
  async loadDue(): Promise<void> {
    const { table, now } = this.#deps;
    const { region, id } = this.#sink;
    const isFirst = this.#lookedAt === 0;
    this.#lookedAt = now();
    this.#lookAgainMs = LOOK_AGAIN_MS;
    const due = await listDueWork(table, region, this.#lease.name, isFirst ? undefined : this.#lookedAt);
    this.#lookAgainMs = LOOK_AGAIN_MS * Math.max(1, due.length / DUE_PER_LOOK);
    const cursors = due
      .filter(({ pk }) => pk === cursorPk(region, id))
      .sort((a, b) => (String(a.dueSk) < String(b.dueSk) ? -1 : 1));
    for (const { sk } of cursors) {
      if (!this.#deferred.has(sk) && !this.#open.some(({ name }) => name === sk)) this.#waiting.add(sk);
    }
  }

  /** Opens waiting cursors while there is room. */
  openWaiting(): void {
    for (const run of this.#open) {
      if (!this.#waiting.delete(run.name)) continue;
      // The log grew while its cursor was processed.
      run.exhausted = false;
    }
    if (!this.#hasRoom(false) && !this.#hasRoom(true)) return;
    for (const name of this.#waiting) {
      if (this.#opening.has(name) || !this.#hasRoom(isReplay(name))) continue;
      this.#waiting.delete(name);
      this.#opening.add(name);
      this.#deps.begin(async () => {
        const run = await this.#openCursor(name).finally(() => this.#opening.delete(name));
        if (run) this.#open.push(run);
      });
    }
  }

  #hasRoom(forReplay: boolean): boolean {
    const open = this.#open.filter(({ name }) => isReplay(name) === forReplay).length;
    const opening = [...this.#opening].filter((name) => isReplay(name) === forReplay).length;
    return open + opening < (forReplay ? OPEN_REPLAYS : OPEN_CURSORS);
  }

  /** Opens a cursor at its position; `undefined` if there is nothing left to do. */
  async #openCursor(name: string): Promise<Run | undefined> {
    const [account = name, replayId] = name.split('#');
    const known = this.#positions.get(name);
    const make = (
      { position, ahead }: { readonly position: number; readonly ahead: string },
      replay?: Replay,
      counts = { delivered: 0, failed: 0, skipped: 0, lost: 0 },
    ): Run => ({
      ...{ name, account, counts },
      ...(replay && { replay }),
      window: new CursorWindow(position, ahead),
      // The head is unknown before the first read; in particular, the cursor is not assumed to be at it.
      ...{ head: Number.POSITIVE_INFINITY, stored: position, storedCount: 0, from: position },
      ...{ busy: false, storing: false, exhausted: false, heldSince: undefined },
    });
    if (known !== undefined) return make(known);
    const { table } = this.#deps;
    let cursor = await table.get(this.#toKey(name));
    if (!cursor || !follows(this.#sink, account)) {
      const followed = await this.#isFollowed(account);
      if (cursor && !followed) await this.#stopFollowing(cursor);
      // The account was added since. The next drain processes it, and its fence may be above this one's.
      if (cursor && followed) this.#deferred.add(name);
      if (!followed || !follows(this.#sink, account)) return undefined;
    }
    if (!cursor && replayId === undefined) {
      // The drain learned of a new account before its cursor was marked due.
      const put = { ...this.#toKey(name), sink: this.#sink.id, position: 0 };
      const writes = [this.#lease.toGuardWrite(), { put, when: [['pk', 'absent']] }] as const;
      const { done } = await table.transact(writes, this.#deps.newId());
      cursor = done ? put : await table.get(put);
    }
    if (!cursor) return undefined;
    const place = { position: Number(cursor.position ?? 0), ahead: String(cursor.ahead ?? '') };
    if (replayId === undefined) return make(place);
    const item = await table.get(keys.replay(this.#sink.region, this.#sink.id, replayId));
    if (!item || item.cancelledAt !== undefined) {
      await table.write({ delete: this.#toKey(name) });
      return undefined;
    }
    const filter = typeof item.filter === 'string' ? (JSON.parse(item.filter) as EventFilter) : {};
    const count = (of: string): number => Number(cursor[of] ?? 0);
    return make(
      place,
      { id: replayId, end: Number(cursor.end), filter, ...toDeadSelection(item) },
      {
        delivered: count('delivered'),
        failed: count('failed'),
        skipped: count('skipped'),
        lost: count('lost'),
      },
    );
  }

  /**
   * Reports whether the sink currently follows an account: it may have been changed or deleted since the
   * drain began.
   */
  async #isFollowed(account: string): Promise<boolean> {
    const item = await this.#deps.table.get(keys.sink(this.#sink.region, this.#sink.id));
    return item?.kind !== undefined && follows(toSink(item), account);
  }

  /**
   * Stops delivery for an account that was removed from the sink. Its log position is retained: the account
   * may be added again.
   */
  async #stopFollowing({ pk, sk, dueSk }: Item): Promise<void> {
    const { table } = this.#deps;
    if (isReplay(sk)) await table.write({ delete: { pk, sk } });
    // Only if unchanged: a cursor that was created or woken since belongs to another process.
    else if (typeof dueSk === 'string') {
      const when: Clause[] = [
        ['dueSk', '=', dueSk],
        ['fence', 'absent or <=', this.#lease.token],
      ];
      await table.write({ update: { pk, sk }, set: { duePk: undefined, dueSk: undefined }, when });
    }
  }

  #toKey(name: string) {
    return keys.cursor(this.#sink.region, this.#sink.id, name);
  }

  /** Reads more events for open cursors that are about to run out. */
  readAhead(): void {
    for (const run of this.#open) {
      if (run.busy || run.exhausted || run.window.waiting > READ_AHEAD * this.#deps.lanes()) continue;
      if (run.window.size + PAGE_EVENTS > WINDOW_EVENTS) continue;
      if (this.#hasUsedShare(run)) continue;
      run.busy = true;
      this.#deps.begin(() =>
        this.#read(run).finally(() => {
          run.busy = false;
        }),
      );
    }
  }

  /** Reports whether waiting cursors should get their turn. */
  #hasUsedShare(run: Run): boolean {
    if (run.window.readTo - run.from < SHARE_EVENTS) return false;
    return [...this.#waiting].some((name) => isReplay(name) === isReplay(run.name));
  }

  async #read(run: Run): Promise<void> {
    const { log } = this.#deps;
    if (run.replay?.dead) return this.#readDead(run, run.replay.dead, run.replay.end);
    const ref = { region: this.#sink.region, account: run.account };
    const after = run.window.readTo;
    const limit = Math.min(PAGE_EVENTS, (run.replay?.end ?? Number.POSITIVE_INFINITY) - after);
    const read = limit > 0 ? await log.read(ref, after, limit) : undefined;
    if (!read) {
      run.head = after;
      run.exhausted = true;
      return;
    }
    run.head = Math.min(read.head.sequence, run.replay?.end ?? Number.POSITIVE_INFINITY);
    if (read.kind === 'gone') {
      // Only when everything in progress is done is the extent of the loss certain.
      if (run.window.isDone && !run.storing) await this.#skipLost(run, Math.min(read.earliest - 1, run.head));
      return;
    }
    const passed = run.window.add(read.events, (event) => this.#isWanted(run, event));
    run.counts.skipped += passed;
    this.#deps.skipped(passed);
    // At the head, or the next event is written but not yet visible; then the cursor stays due.
    run.exhausted = run.window.readTo >= run.head || read.events.length === 0;
  }

  async #readDead(run: Run, selection: DeadSelection, end: number): Promise<void> {
    const after = run.window.readTo;
    const { events, missing, readTo } = await readDeadEvents(this.#deps, this.#sink, selection, {
      ...{ account: run.account, after, end },
    });
    const passed = run.window.add(events, (event) => this.#isWanted(run, event));
    run.window.readThrough(readTo);
    run.counts.skipped += passed + missing;
    this.#deps.skipped(passed);
    run.head = end;
    run.exhausted = readTo >= end;
  }

  #isWanted(run: Run, event: LoggedEvent): boolean {
    return matchesFilter(this.#sink, event) && matchesFilter(run.replay?.filter ?? {}, event);
  }

  /** Stores positions that have moved far, and closes cursors without remaining work. */
  storePositions(): void {
    for (const run of this.#open) {
      if (run.storing) continue;
      const { window } = run;
      const finished = !run.busy && window.isDone && (run.exhausted || this.#hasUsedShare(run));
      const unstored = window.doneCount - run.storedCount;
      // The position can move by many events at once, when an event that took long is done.
      const isFar =
        Math.max(unstored, window.position - run.stored) >=
        (this.#deps.lingers ? LINGERING.storeEvery : STORE_EVERY);
      if (!isFar && (finished ? this.#isHeld(run) : unstored === 0 || !this.#mayStoreEarly(run))) continue;
      run.storing = true;
      run.heldSince = undefined;
      if (finished) run.busy = true;
      this.#deps.begin(async () => {
        try {
          const next = await this.#store(run);
          if (!finished && next !== 'gone') return;
          this.#drop(run);
          // Another lease owns it: only a later drain may open it again.
          if (next === 'gone') this.#deferred.add(run.name);
          // Not `exhausted`: the log grew while the cursor was being closed.
          else if (!run.exhausted || (next === 'due' && window.readTo >= run.head))
            this.#waiting.add(run.name);
        } finally {
          run.storing = false;
          if (finished) run.busy = false;
        }
      });
    }
  }

  /** Reports whether an unfinished cursor can be stored now, although few of its events are done. */
  #mayStoreEarly({ heldSince, window }: Run): boolean {
    const now = this.#deps.now();
    // Events that arrive soon after those at the head are stored together with them, unless they have to wait for their delivery.
    const isHeld = heldSince !== undefined && now - heldSince < LINGERING.holdMs;
    if (isHeld && window.waiting === 0) return false;
    return this.#deps.earlyStores?.take(now) === true;
  }

  /** Reports whether a finished cursor waits for further events before its position is stored. */
  #isHeld(run: Run): boolean {
    // A cursor that waits for its turn needs the place.
    if (!this.#deps.lingers || run.replay || !run.exhausted || this.#waiting.size > 0) return false;
    const now = this.#deps.now();
    run.heldSince ??= now;
    return now - run.heldSince < LINGERING.holdMs;
  }

  /**
   * Stores the position of a cursor. At its head, it is no longer due (`clear`), unless the log grew
   * meanwhile (`due`). `gone`: another process owns it, or it was deleted.
   */
  async #store(run: Run): Promise<'clear' | 'due' | 'gone'> {
    const { table, now } = this.#deps;
    const { window, replay } = run;
    // A snapshot: events completed while the delivery log is written are not included.
    const { position, ahead, doneCount } = window;
    const counts = { ...run.counts };
    const preceding = this.#deps.beforeStoring();
    if (!table.ordered) await preceding;
    const mine = this.#ownership;
    const set = { position, ahead: ahead || undefined, fence: this.#lease.token, ...(replay && counts) };
    const update = this.#toKey(run.name);
    const stored = (): void => {
      run.stored = Math.max(run.stored, position);
      run.storedCount = doneCount;
      if (!replay) this.#positions.set(run.name, { position, ahead });
    };
    if (window.isDone && position >= run.head) {
      const cleared = await table.write(
        {
          update,
          set: { ...set, duePk: undefined, dueSk: undefined, ...(replay && { doneAt: now() }) },
          when: [...mine, ['mark', 'absent or <=', run.head]],
        },
        RELAXED,
      );
      if (cleared.done) {
        stored();
        return 'clear';
      }
    }
    const moved = await table.write(
      {
        update,
        set,
        when: [...mine, ['position', 'absent or <=', position]],
      },
      RELAXED,
    );
    if (moved.done) {
      stored();
      return 'due';
    }
    // A process with a later lease uses this cursor, or it was deleted.
    this.#positions.delete(run.name);
    return 'gone';
  }

  /** The condition that the cursor exists and no process with a later lease has written it. */
  get #ownership(): Clause[] {
    return [
      ['sink', 'present'],
      ['fence', 'absent or <=', this.#lease.token],
    ];
  }

  /**
   * Skips events past retention, which can no longer be delivered: counts them, records the loss, and moves
   * the cursor past them.
   */
  async #skipLost(run: Run, last: number): Promise<void> {
    const lost = run.window.findMissing(last);
    const window = new CursorWindow(last, run.window.ahead);
    // This stores a position itself, and no older one may follow it.
    run.storing = true;
    if (run.replay) run.counts.lost += lost.count;
    else if (lost.count > 0) {
      const move: Write = {
        update: this.#toKey(run.name),
        set: {
          ...{ position: last, ahead: window.ahead || undefined },
          ...{ fence: this.#lease.token, sink: this.#sink.id },
        },
        when: [...this.#ownership, ['position', 'absent or <=', last]],
      };
      const outcome = await this.#deps.recordLost({ account: run.account, ...lost }, [move]);
      if (!outcome.done) {
        // The cursor was deleted, or another process uses it.
        if (outcome.failed.includes(0)) this.#lease.lose();
        this.#positions.delete(run.name);
        this.#drop(run);
        return;
      }
    }
    run.window = window;
    run.stored = last;
    run.storedCount = 0;
    run.storing = false;
    if (!run.replay) this.#positions.set(run.name, { position: last, ahead: window.ahead });
  }
}
