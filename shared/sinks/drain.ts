/**
 * The drain engine: takes the events behind a sink's due cursors to the sink, at least once and in order per lane.
 *
 * A cursor is a position in the log of one account; below it everything is done. A lane is the events of one job: one at
 * a time, in order; lanes go side by side. The position moves to the last event below which all is done, so a crash
 * repeats at most the windows in flight.
 *
 *   drain A  lease 1 ├── window ── window ──┤ position 40
 *   drain B          lease? no              lease 2 ├── window …
 *
 * The lease is fenced: each holder has a higher token than the one before, and a cursor refuses positions of a lower one.
 * What is NOT guaranteed: that a holder that lost its lease stops at once; it can deliver again what its successor does.
 */
import type { EventLog, LoggedEvent } from '../log/log.ts';
import { DRAIN_SHARDS, drainDuePk, keys } from '../table/schema.ts';
import type { Item, Table } from '../table/table.ts';
import { type DeliveryOutcome, follows, type SinkPort, type SinkRecord, toSink, wants } from './sink.ts';

/** What a drain needs. */
export interface DrainDeps {
  readonly table: Table;
  readonly log: EventLog;
  /** Epoch ms. */
  readonly now: () => number;
  readonly newId: () => string;
  /** From 0 (inclusive) to 1 (exclusive). */
  readonly random: () => number;
  /** Waits before the n-th retry of a sink; the last one repeats. */
  readonly retrySeconds: readonly number[];
  /** The sink behind a record. Throws when it can't be made. */
  readonly open: (record: SinkRecord) => Promise<SinkPort>;
  /**
   * Asked when everything due is done: the accounts whose logs grew meanwhile, as soon as there are any, or `undefined`
   * to end. With it a drain keeps its lease and its positions for a while, and what is committed in this process is on
   * its way after one read. Absent (on Lambda, where waiting is paid for): it ends at once.
   */
  readonly linger?: () => Promise<readonly string[] | undefined>;
}

/** What one drain did: the wide log line. */
export interface DrainReport {
  readonly region: string;
  readonly sink: string;
  readonly outcome: /** Every due cursor is at its head. */
    | 'drained'
    /** Time ran out; the rest is due as it was. */
    | 'more'
    /** The sink waits until `waitUntil`. */
    | 'waiting'
    /** Another drain holds the lease, or the sink waits, is paused or unknown. */
    | 'busy';
  readonly delivered: number;
  /** Events the sink did not want. */
  readonly skipped: number;
  readonly failed: number;
  readonly waitUntil?: number;
  readonly problem?: string;
}

/** Lanes of one sink that are under way at the same time. */
const LANES = 16;
/** Cursors of one sink whose windows are open at the same time. */
const OPEN_WINDOWS = 4;
const WINDOW_EVENTS = 200;
/** Due cursors taken up in one drain, per shard. */
const DUE_CURSORS = 100;
/** A lease outlives what its holder still has under way when it stops taking up new events. */
const LEASE_MS = 90_000;
const LEASE_TAIL_MS = 30_000;
const JITTER = 0.2;
/** No Retry-After is honoured beyond this. */
const MAX_RETRY_AFTER_MS = 86_400_000;

/** Drains one sink until its due cursors are at their heads, it fails, or the deadline (epoch ms) comes near. */
export async function drainSink(
  deps: DrainDeps,
  region: string,
  sink: string,
  deadline: number,
): Promise<DrainReport> {
  const lease = await takeLease(deps, region, sink);
  if (!lease) return { region, sink, outcome: 'busy', delivered: 0, skipped: 0, failed: 0 };
  const until = Math.min(deadline, lease.until - LEASE_TAIL_MS);
  const drain = new Drain(deps, toSink(lease.item), lease.token, until);
  const { report, failures } = await drain.run();
  await releaseLease(deps, lease.token, report, failures);
  return report;
}

/** The lease, unless somebody holds it, or the sink waits or is paused. Its token is higher than any before. */
async function takeLease(
  deps: DrainDeps,
  region: string,
  sink: string,
): Promise<{ item: Item; token: number; until: number } | undefined> {
  const now = deps.now();
  const until = now + LEASE_MS;
  const owner = deps.newId();
  const outcome = await deps.table.write({
    update: keys.sink(region, sink),
    set: { leaseUntil: until, leaseToken: now, leaseOwner: owner },
    when: [
      ['kind', 'present'],
      ['leaseUntil', 'absent or <=', now],
      ['leaseToken', 'absent or <', now],
      ['waitUntil', 'absent or <=', now],
    ],
  });
  // A retry after a lost answer finds its own lease.
  const mine = outcome.done || outcome.item?.leaseOwner === owner;
  if (!mine || !outcome.item) return undefined;
  return { item: outcome.item, token: now, until };
}

/** Gives the lease back together with what was learned of the sink's health. */
async function releaseLease(
  deps: DrainDeps,
  token: number,
  report: DrainReport,
  failures: number,
): Promise<void> {
  await deps.table.write({
    update: keys.sink(report.region, report.sink),
    set: {
      leaseUntil: undefined,
      leaseOwner: undefined,
      failures,
      waitUntil: report.waitUntil,
      problem: report.problem,
    },
    when: [['leaseToken', '=', token]],
  });
}

/** A run of events of one cursor that is being worked off. */
interface Window {
  readonly account: string;
  /** The log's head when the window was read. A later mark on the cursor means that the log grew on. */
  readonly head: number;
  readonly first: number;
  readonly done: boolean[];
  /** Events per lane, first to last; what is done or under way is taken out. */
  readonly lanes: Map<string, LoggedEvent[]>;
  /** Lanes with an event under way. */
  readonly busy: Set<string>;
  /** Whether the log ended within the window. */
  readonly atHead: boolean;
}

class Drain {
  readonly #deps: DrainDeps;
  readonly #sink: ReturnType<typeof toSink>;
  readonly #token: number;
  readonly #until: number;
  readonly #windows: Window[] = [];
  /** Accounts whose cursor is to be worked off. */
  readonly #cursors: string[] = [];
  /** Where cursors stand that this drain has moved: nobody else moves them while it holds the lease. */
  readonly #positions = new Map<string, number>();
  #turn = 0;
  #underWay = 0;
  #delivered = 0;
  #skipped = 0;
  #failed = 0;
  /** A sink that failed last time gets one event before it gets more. */
  #probing: boolean;
  #failure: { afterMs?: number | undefined; reason: string } | undefined;
  #wake: (() => void) | undefined;

  constructor(deps: DrainDeps, sink: ReturnType<typeof toSink>, token: number, until: number) {
    this.#deps = deps;
    this.#sink = sink;
    this.#token = token;
    this.#until = until;
    this.#probing = sink.health.failures > 0;
  }

  async run(): Promise<{ readonly report: DrainReport; readonly failures: number }> {
    const before = this.#sink.health.failures;
    if (this.#sink.paused) return { report: this.#report('busy'), failures: before };
    let port: SinkPort;
    try {
      port = await this.#deps.open(this.#sink);
    } catch (cause) {
      this.#failure = { reason: cause instanceof Error ? cause.message : 'The sink could not be opened.' };
      return this.#stopped();
    }
    this.#cursors.push(...(await this.#dueCursors()));
    do {
      await this.#workOff(port);
    } while (await this.#waitForMore());
    while (this.#underWay > 0) await this.#somethingEnds();
    await Promise.all(this.#windows.map((window) => this.#savePosition(window)));
    if (this.#failure) return this.#stopped();
    const rest = this.#cursors.length > 0 || this.#windows.length > 0;
    return { report: this.#report(rest ? 'more' : 'drained'), failures: this.#probing ? before : 0 };
  }

  /** Until every cursor taken up is at its head, the sink fails, or time is over. */
  async #workOff(port: SinkPort): Promise<void> {
    while (this.#mayGoOn() && (this.#cursors.length > 0 || this.#windows.length > 0 || this.#underWay > 0)) {
      await this.#openWindows();
      this.#send(port);
      if (this.#underWay > 0) await this.#somethingEnds();
      await this.#closeWindows();
    }
  }

  /** Whether there is, or soon will be, more to do under this lease. */
  async #waitForMore(): Promise<boolean> {
    if (!this.#deps.linger || !this.#mayGoOn()) return false;
    const accounts = await this.#deps.linger();
    if (!accounts) return false;
    this.#cursors.push(...accounts.filter((account) => follows(this.#sink, account)));
    return this.#mayGoOn();
  }

  #report(outcome: DrainReport['outcome']): DrainReport {
    return {
      region: this.#sink.region,
      sink: this.#sink.id,
      outcome,
      delivered: this.#delivered,
      skipped: this.#skipped,
      failed: this.#failed,
    };
  }

  /** The sink failed: when it is tried again. */
  #stopped(): { readonly report: DrainReport; readonly failures: number } {
    // A success before the failure begins the schedule anew.
    const failures = (this.#probing ? this.#sink.health.failures : 0) + 1;
    const schedule = this.#deps.retrySeconds;
    const scheduled = 1000 * (schedule[Math.min(failures, schedule.length) - 1] ?? 60);
    const jittered = scheduled * (1 - JITTER + 2 * JITTER * this.#deps.random());
    const asked = Math.min(this.#failure?.afterMs ?? 0, MAX_RETRY_AFTER_MS);
    return {
      failures,
      report: {
        ...this.#report('waiting'),
        waitUntil: this.#deps.now() + Math.max(jittered, asked),
        ...(this.#failure ? { problem: this.#failure.reason } : {}),
      },
    };
  }

  #mayGoOn(): boolean {
    return this.#failure === undefined && this.#deps.now() < this.#until;
  }

  /** The accounts of the sink's due cursors, the one that waited longest first. */
  async #dueCursors(): Promise<string[]> {
    const shards = await Promise.all(
      Array.from({ length: DRAIN_SHARDS }, (_, shard) =>
        this.#deps.table.query({
          index: 'due',
          pk: drainDuePk(this.#sink.region, this.#sink.id, shard),
          limit: DUE_CURSORS,
        }),
      ),
    );
    return shards
      .flat()
      .sort((a, b) => (String(a.dueSk) < String(b.dueSk) ? -1 : 1))
      .map((item) => item.sk);
  }

  async #openWindows(): Promise<void> {
    const room = (this.#probing ? 1 : OPEN_WINDOWS) - this.#windows.length;
    const opened = await Promise.all(
      this.#cursors.splice(0, Math.max(0, room)).map((account) => this.#openWindow(account)),
    );
    this.#windows.push(...opened.filter((window) => window !== undefined));
  }

  /** Reads the next events of a cursor. */
  async #openWindow(account: string): Promise<Window | undefined> {
    const { table, log } = this.#deps;
    const { region, id } = this.#sink;
    let position = this.#positions.get(account);
    if (position === undefined) {
      const cursor = await table.get(keys.cursor(region, id, account));
      position = Number(cursor?.position ?? 0);
    }
    let read = await log.read({ region, account }, position, WINDOW_EVENTS);
    if (read?.kind === 'gone') {
      // What fell out of retention can't be delivered any more; the sink goes on with what is left.
      position = Math.min(read.earliest - 1, read.head.sequence);
      read = await log.read({ region, account }, position, WINDOW_EVENTS);
    }
    if (!read || read.kind === 'gone') return undefined;
    const { events, head } = read;
    const atHead = position + events.length >= head.sequence;
    // Written but not yet visible: the cursor stays due, and the next drain finds it.
    if (events.length === 0 && !atHead) return undefined;
    const window: Window = {
      account,
      head: head.sequence,
      first: position + 1,
      done: events.map((event) => !wants(this.#sink, event)),
      lanes: new Map(),
      busy: new Set(),
      atHead,
    };
    events.forEach((event, at) => {
      if (window.done[at]) {
        this.#skipped += 1;
        return;
      }
      const lane = event.jobNumber === undefined ? 'account' : String(event.jobNumber);
      const queue = window.lanes.get(lane);
      if (queue) queue.push(event);
      else window.lanes.set(lane, [event]);
    });
    return window;
  }

  /** Sends as many batches as there is room for, taking windows in turn. */
  #send(port: SinkPort): void {
    const lanes = this.#probing ? 1 : LANES;
    while (this.#underWay < lanes) {
      const size = this.#probing ? 1 : Math.min(port.maxBatch, lanes - this.#underWay);
      const batch = this.#nextBatch(size);
      if (batch.length === 0) return;
      this.#underWay += batch.length;
      void this.#deliver(port, batch);
    }
  }

  /** Up to `size` events, each the first of a lane with nothing under way; from all open windows in turn. */
  #nextBatch(size: number): { window: Window; lane: string; event: LoggedEvent }[] {
    const batch: { window: Window; lane: string; event: LoggedEvent }[] = [];
    let idle = 0;
    while (batch.length < size && idle < this.#windows.length) {
      const window = this.#windows[this.#turn % this.#windows.length];
      this.#turn += 1;
      const next = window && nextOf(window);
      if (!window || !next) {
        idle += 1;
        continue;
      }
      idle = 0;
      batch.push({ window, ...next });
    }
    return batch;
  }

  async #deliver(
    port: SinkPort,
    batch: readonly { window: Window; lane: string; event: LoggedEvent }[],
  ): Promise<void> {
    let outcomes: readonly DeliveryOutcome[];
    try {
      outcomes = await port.deliver(batch.map(({ event }) => ({ event })));
    } catch (cause) {
      const reason = cause instanceof Error ? cause.message : 'The sink failed.';
      outcomes = batch.map(() => ({ kind: 'retry', reason }));
    }
    batch.forEach(({ window, lane, event }, at) => {
      this.#underWay -= 1;
      const outcome = outcomes[at] ?? { kind: 'retry', reason: 'The sink did not answer for this event.' };
      if (outcome.kind === 'delivered') {
        this.#delivered += 1;
        this.#probing = false;
        window.done[event.sequence - window.first] = true;
        window.busy.delete(lane);
        return;
      }
      // A refused event is not skipped: until it can be parked apart, the sink waits for whoever can mend it.
      this.#failed += 1;
      const afterMs = outcome.kind === 'retry' ? outcome.afterMs : undefined;
      this.#failure ??= { reason: outcome.reason, afterMs };
    });
    this.#wake?.();
  }

  #somethingEnds(): Promise<void> {
    return new Promise((resolve) => {
      this.#wake = () => {
        this.#wake = undefined;
        resolve();
      };
    });
  }

  /** Takes out windows that are done: the cursor moves on, and is no longer due when it is at the head. */
  async #closeWindows(): Promise<void> {
    const finished = this.#windows.filter((window) => window.done.every(Boolean));
    if (finished.length === 0) return;
    for (const window of finished) this.#windows.splice(this.#windows.indexOf(window), 1);
    await Promise.all(
      finished.map(async (window) => {
        const cleared = await this.#savePosition(window);
        if (!cleared) this.#cursors.push(window.account);
      }),
    );
  }

  /** Stores how far a window is done. True when the cursor is at its head and no longer due. */
  async #savePosition(window: Window): Promise<boolean> {
    const { table } = this.#deps;
    const { region, id } = this.#sink;
    const undone = window.done.indexOf(false);
    const position = window.first - 1 + (undone < 0 ? window.done.length : undone);
    const mine = ['fence', 'absent or <=', this.#token] as const;
    const key = keys.cursor(region, id, window.account);
    this.#positions.set(window.account, position);
    if (undone < 0 && window.atHead) {
      const cleared = await table.write({
        update: key,
        set: { position, fence: this.#token, duePk: undefined, dueSk: undefined },
        when: [mine, ['mark', 'absent or <=', window.head]],
      });
      if (cleared.done) return true;
    }
    const moved = await table.write({
      update: key,
      set: { position, fence: this.#token },
      when: [mine, ['position', 'absent or <=', position]],
    });
    // Somebody with a later lease is at work on this cursor: it is theirs.
    return !moved.done;
  }
}

/** The first event of some lane of the window that has nothing under way; it counts as under way from now on. */
function nextOf(window: Window): { lane: string; event: LoggedEvent } | undefined {
  for (const [lane, queue] of window.lanes) {
    if (window.busy.has(lane)) continue;
    const event = queue.shift();
    if (queue.length === 0) window.lanes.delete(lane);
    if (!event) continue;
    window.busy.add(lane);
    return { lane, event };
  }
  return undefined;
}
