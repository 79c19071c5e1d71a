/**
 * The drain engine: delivers the events behind a sink's due cursors, at least once and in order per lane.
 *
 * A cursor is a position in the log of one account. Every event below it is done: delivered, filtered out, or
 * parked. A lane is the events of one job: one at a time, in order. Lanes run concurrently, and all open
 * cursors take turns. Positions are stored as they move, together with the events done beyond them. So an
 * event is sent twice only after a drain crashes: at most those sent since, 400 per open cursor.
 *
 *   due index ──▶ cursors waiting ──▶ open cursors: window ──▶ lanes ──▶ sink ──▶ position
 *                       ▲                   │ share used up        │ rejected
 *                       └───────────────────┘                      └──▶ parked lanes ──(retry)──▶ sink
 *
 * `cursors.ts` manages the cursors. The lease makes a drain the only one of its sink (`lease.ts`). `sink-status.ts`
 * records what failures mean for the sink, and `parking.ts` stores rejected events. Replays have their own cursors beside
 * the live ones, with fewer of them open at a time.
 * One file: reading, sending and storing share the state of one drain.
 */
import { setTimeout as sleepMs } from 'node:timers/promises';
import type { LoggedEvent } from '../log/log.ts';
import { getSinkId, keys } from '../storage/schema.ts';
import type { Item } from '../storage/table.ts';
import { AttemptRecorder, type InFlightEvent } from './attempt-recorder.ts';
import { hasElapsed } from './clock.ts';
import { CursorRuns, type Run } from './cursors.ts';
import type { DrainDeps, DrainReport } from './drain-deps.ts';
import { FailureAttribution } from './failure-attribution.ts';
import { type Failure, healthAttributes } from './health.ts';
import { LaneLimit } from './lanes.ts';
import { acquireLease, type Lease } from './lease.ts';
import { Pacer } from './pacer.ts';
import type { ParkedEvent } from './parked-events.ts';
import { type EventRejection, MAX_PARKED, ParkedLanes } from './parking.ts';
import {
  type DeliveryOutcome,
  follows,
  matchesFilter,
  type Sink,
  type SinkPort,
  sinkAttributes,
  toSink,
} from './sink.ts';
import { SinkStatus } from './sink-status.ts';
import { getLane } from './window.ts';

/** Interval (ms) at which a drain checks the settings of its sink. */
const CHECK_MS = 2_000;
const TOO_MANY_PARKED: Failure = { reason: `${MAX_PARKED} events are parked, which is the maximum.` };

/**
 * Drains one sink, or one part of a divided sink, until its due cursors are at their heads, it fails, or the deadline (epoch ms) is near.
 * `name`: see `getDrainNames`.
 */
export async function drainSink(
  deps: DrainDeps,
  region: string,
  name: string,
  deadline: number,
): Promise<DrainReport> {
  const taken = await acquireLease(deps.table, region, name, deps.now(), deps.newId);
  if (!taken) return { region, sink: getSinkId(name), outcome: 'busy', ...NOTHING };
  const drain = new Drain(deps, taken.sink, taken.lease, deadline, {
    hasParked: taken.item.parking === true,
    nextSendAt: Number(taken.item.nextSendAt ?? 0),
    lanes: typeof taken.item.lanes === 'number' ? taken.item.lanes : undefined,
    settings: serializeSettings(taken.item),
  });
  return drain.run();
}

const NOTHING = {
  delivered: 0,
  skipped: 0,
  failed: 0,
  rejected: 0,
  parked: 0,
  dead: 0,
  lost: 0,
  unlogged: 0,
};

/** Returns the settings of a sink as text, without its health. */
function serializeSettings(item: Item): string {
  return JSON.stringify([sinkAttributes(toSink(item)), item.revision]);
}

class Drain {
  readonly #deps: DrainDeps;
  readonly #sink: Sink;
  readonly #lease: Lease;
  readonly #deadline: number;
  readonly #lanes: LaneLimit;
  readonly #runs: CursorRuns;
  readonly #parked: ParkedLanes;
  readonly #hasParked: boolean;
  #counts = { ...NOTHING };
  #turn = 0;
  /** Number of events in delivery. */
  #inFlight = 0;
  /** Number of requests in progress; each has one or more events. */
  #requests = 0;
  /** Number of pending operations, including reads and writes. */
  #pending = 0;
  #wake: (() => void) | undefined;
  #sleeping: Promise<void> | undefined;
  #fault: { readonly cause: unknown } | undefined;
  /** The sink's settings when this drain began, the time of the last check of them, and whether they were changed since. */
  readonly #initialSettings: string;
  #checkedAt: number;
  #isOutdated = false;
  /** An event cannot be parked because the maximum is reached. */
  #isFull = false;
  readonly #attempts: AttemptRecorder;
  readonly #pacer: Pacer;
  readonly #attribution: FailureAttribution;
  readonly #status: SinkStatus;

  constructor(
    deps: DrainDeps,
    sink: Sink,
    lease: Lease,
    deadline: number,
    kept: {
      readonly hasParked: boolean;
      readonly nextSendAt: number;
      readonly lanes: number | undefined;
      readonly settings: string;
    },
  ) {
    this.#deps = deps;
    this.#sink = sink;
    this.#lease = lease;
    this.#deadline = deadline;
    this.#lanes = new LaneLimit(sink.concurrency, kept.lanes);
    this.#parked = new ParkedLanes(deps, sink, lease);
    this.#attempts = new AttemptRecorder(deps, sink, (action) => this.#begin(action));
    this.#attribution = new FailureAttribution(sink.health);
    this.#status = new SinkStatus(deps, sink, lease, this.#attribution);
    const { table, log, now, newId } = deps;
    this.#runs = new CursorRuns(
      {
        ...{ table, log, now, newId },
        begin: (action) => this.#begin(action),
        lanes: () => this.#lanes.current,
        lingers: deps.linger !== undefined,
        earlyStores: deps.earlyStores,
        beforeStoring: () => this.#attempts.flush(),
        skipped: (events) => {
          this.#counts.skipped += events;
        },
        recordLost: (lost, writes) => this.#status.recordLost(lost, writes),
      },
      sink,
      lease,
    );
    this.#hasParked = kept.hasParked;
    this.#pacer = new Pacer(sink.ratePerSecond, kept.nextSendAt, now);
    this.#initialSettings = kept.settings;
    this.#checkedAt = now();
  }

  async run(): Promise<DrainReport> {
    try {
      await this.#drain();
    } catch (cause) {
      this.#fault ??= { cause };
    }
    if (this.#fault) {
      // The table fails, so releasing may fail too; then the lease expires.
      await this.#lease.release({}).catch(() => undefined);
      throw this.#fault.cause;
    }
    return this.#conclude();
  }

  async #drain(): Promise<void> {
    // Loaded first: later decisions about parked lanes use this data.
    if (this.#hasParked) await this.#parked.load((account) => follows(this.#sink, account));
    let port: SinkPort;
    try {
      port = await this.#deps.open(this.#sink);
    } catch (cause) {
      this.#status.failure = {
        reason: cause instanceof Error ? cause.message : 'The sink could not be opened.',
      };
      return;
    }
    await this.#runs.loadDue();
    do {
      await this.#processDue(port);
      if (this.#runs.holdMs === undefined) await this.#attempts.storeCounters();
    } while (await this.#waitForNewWork());
    await this.#runs.storeAll();
    await this.#attempts.flush();
    await this.#attempts.storeCounters();
  }

  /**
   * Works until every open cursor is at its head, the sink fails, or the deadline comes, and all pending
   * operations have ended.
   */
  async #processDue(port: SinkPort): Promise<void> {
    for (;;) {
      if (this.#canContinue()) {
        this.#keepLease();
        await this.#checkSettings();
        for (const account of this.#deps.takeGrown?.(() => this.#wake?.()) ?? []) {
          this.#runs.addGrownAccount(account);
        }
        if (this.#inFlight > 0 || this.#runs.open.length > 0) this.#runs.refreshDue();
        this.#runs.openWaiting();
        this.#runs.readAhead();
        this.#send(port);
      }
      // Storing positions again while the table fails would be a busy loop.
      if (!this.#fault) this.#runs.storePositions();
      const pause = this.#pause();
      if (this.#pending === 0 && pause === undefined) {
        if (this.#isFull) this.#status.failure ??= TOO_MANY_PARKED;
        return;
      }
      await this.#waitForProgress(pause);
    }
  }

  #canContinue(): boolean {
    return (
      this.#status.failure === null &&
      this.#status.disableReason === null &&
      this.#fault === undefined &&
      !this.#lease.isLost &&
      !this.#isOutdated &&
      !this.#deps.stopping?.aborted &&
      this.#deps.now() < this.#deadline
    );
  }

  /** Waits for news under this lease. Reports whether there is, or soon will be, more to do. */
  async #waitForNewWork(): Promise<boolean> {
    if (!this.#deps.linger || !this.#canContinue()) return false;
    const { holdMs } = this.#runs;
    const news = await this.#deps.linger(holdMs);
    if (!news) {
      this.#runs.endHold();
      return holdMs !== undefined;
    }
    for (const account of news.accounts) this.#runs.addGrownAccount(account);
    if (this.#lease.isAging(this.#deps.now())) await this.#lease.renew(this.#deps.now());
    if (news.due && this.#canContinue()) await this.#runs.loadDue();
    // Due work that is unknown here is a lane that another process made due: the next drain reads it.
    return this.#canContinue() && (this.#runs.isWaiting || this.#parked.isDue);
  }

  /** Starts an operation in the background; its end wakes the loop. */
  #begin(action: () => Promise<unknown>): void {
    this.#pending += 1;
    const ended = (): void => {
      this.#pending -= 1;
      this.#wake?.();
    };
    action().then(ended, (cause: unknown) => {
      this.#fault ??= { cause };
      ended();
    });
  }

  async #waitForProgress(pauseMs: number | undefined): Promise<void> {
    const ends = this.#pending === 0 ? undefined : new Promise<void>((resolve) => (this.#wake = resolve));
    const { sleep = sleepMs } = this.#deps;
    if (pauseMs !== undefined) {
      // One timer at a time: the wait can only become longer, and then another timer follows.
      this.#sleeping ??= sleep(pauseMs).then(() => {
        this.#sleeping = undefined;
      });
    }
    const pause = pauseMs === undefined ? undefined : this.#sleeping;
    await Promise.race([ends, pause].filter((one) => one !== undefined));
    this.#wake = undefined;
  }

  // The lease

  #keepLease(): void {
    const now = this.#deps.now();
    if (this.#lease.isAging(now)) this.#begin(() => this.#lease.renew(now));
  }

  /**
   * Detects every {@link CHECK_MS} whether the sink was paused, changed or deleted, before more events are sent. Then a drain with the
   * new record takes over.
   */
  async #checkSettings(): Promise<void> {
    const { now } = this.#deps;
    if (!hasElapsed(this.#checkedAt, CHECK_MS, now())) return;
    this.#checkedAt = now();
    try {
      if (await this.#isChanged()) this.#isOutdated = true;
    } catch (cause) {
      this.#fault ??= { cause };
    }
  }

  /** Reports whether the sink was paused, changed or deleted since this drain began. */
  async #isChanged(): Promise<boolean> {
    const item = await this.#deps.table.get(keys.sink(this.#sink.region, this.#sink.id));
    return !item || serializeSettings(item) !== this.#initialSettings;
  }

  // Sending

  /** Sends as many batches as there is room for. Open cursors and parked lanes take turns. */
  #send(port: SinkPort): void {
    const lanes = this.#attribution.isProbing ? 1 : this.#lanes.current;
    this.#isFull = false;
    for (;;) {
      const free = lanes - this.#inFlight;
      if (free <= 0 || this.#deps.sharedRequests?.free(this.#requests) === 0) break;
      if (!this.#canContinue() || this.#pause() !== undefined) break;
      const most =
        this.#attribution.isProbing || this.#sink.ratePerSecond ? 1 : Math.min(port.maxBatch, free);
      const batch = this.#nextBatch(most);
      if (batch.length === 0) return;
      this.#countInFlight(batch.length, 1);
      this.#pacer.count(batch.length);
      this.#begin(() => this.#deliver(port, batch));
    }
    if (this.#inFlight >= lanes) this.#lanes.noteReached();
  }

  #countInFlight(events: number, requests: number): void {
    this.#inFlight += events;
    this.#requests += requests;
    this.#deps.sharedRequests?.count(requests);
  }

  /** Returns up to `size` events of as many lanes. */
  #nextBatch(size: number): (InFlightEvent | ParkedEvent)[] {
    const batch = this.#takeRoundRobin(
      size,
      this.#attribution.isProbing ? this.#attribution.suspects : undefined,
    );
    if (batch.length > 0 || !this.#attribution.isProbing || this.#attribution.suspects.size === 0)
      return batch;
    // Another event that is being read may be a better probe than a suspect.
    if (this.#runs.isReading) return batch;
    this.#attribution.isOnlyEvent = true;
    return this.#takeRoundRobin(size, undefined);
  }

  #takeRoundRobin(size: number, avoid: ReadonlySet<string> | undefined): (InFlightEvent | ParkedEvent)[] {
    const batch: (InFlightEvent | ParkedEvent)[] = [];
    let idle = 0;
    // Parked lanes are one more source, after the open cursors.
    const sources = this.#runs.open.length + 1;
    while (batch.length < size && idle < sources && this.#status.failure === null) {
      const run = this.#runs.open[this.#turn % sources];
      this.#turn += 1;
      const next = run ? this.#takeNext(run, avoid) : this.#parked.take(avoid);
      if (next) batch.push(next);
      idle = next ? 0 : idle + 1;
    }
    return batch;
  }

  /** Returns the next event of a cursor that can be sent. Parks events of parked lanes on the way. */
  #takeNext(run: Run, avoid: ReadonlySet<string> | undefined): InFlightEvent | undefined {
    for (;;) {
      const event = this.#runs.takeFrom(run, avoid);
      if (!event) return undefined;
      if (run.replay) return { event, run };
      if (this.#parked.wasParked(event)) {
        run.window.settle(event);
        continue;
      }
      if (!this.#parked.has(run.account, getLane(event))) return { event, run };
      if (this.#parked.count >= MAX_PARKED) {
        // Parked events go first; the sink waits if none of them can be sent.
        run.window.putBack(event);
        this.#isFull = true;
        return undefined;
      }
      this.#park(run, event, null);
    }
  }

  /** Returns the wait (ms) that the rate imposes on a sink with events to send. */
  #pause(): number | undefined {
    if (!this.#sink.ratePerSecond || !this.#canContinue()) return undefined;
    const wait = this.#pacer.nextSendAt - this.#deps.now();
    const hasMore = this.#runs.open.some(({ window }) => window.waiting > 0) || this.#parked.isDue;
    return wait > 0 && hasMore ? Math.ceil(Math.min(wait, this.#deadline - this.#deps.now())) : undefined;
  }

  async #deliver(port: SinkPort, batch: readonly (InFlightEvent | ParkedEvent)[]): Promise<void> {
    try {
      const sent = (
        await Promise.all(batch.map((one) => ('event' in one ? one : this.#readParked(one))))
      ).filter((one) => one !== undefined);
      if (sent.length === 0) return;
      const at = this.#deps.now();
      let outcomes: readonly DeliveryOutcome[];
      try {
        outcomes = await port.deliver(
          sent.map(({ event, run }) => ({ event, ...(run?.replay && { replay: run.replay.id }) })),
        );
      } catch (cause) {
        const reason = cause instanceof Error ? cause.message : 'The sink failed.';
        outcomes = sent.map(() => ({ kind: 'retry', reason }));
      }
      const latencyMs = this.#deps.now() - at;
      sent.forEach((one, place) => {
        const outcome = outcomes[place] ?? {
          kind: 'retry',
          reason: 'The sink returned no outcome for this event.',
        };
        this.#attempts.record(one, outcome, at);
        this.#settle(one, outcome, latencyMs);
      });
    } finally {
      this.#countInFlight(-batch.length, -1);
    }
  }

  /**
   * Reads the event of a parked lane from the log. `undefined` if it is no longer there, an operator discarded it
   * meanwhile, or the filter of the sink has excluded it since it was parked.
   */
  async #readParked(parked: ParkedEvent): Promise<InFlightEvent | undefined> {
    const { account, sequence } = parked;
    const [isThere, read] = await Promise.all([
      this.#parked.isStored(parked),
      this.#deps.log.read({ region: this.#sink.region, account }, sequence - 1, 1),
    ]);
    const event = read?.kind === 'events' ? read.events[0] : undefined;
    if (isThere && event && matchesFilter(this.#sink, event)) return { event, parked };
    if (isThere && event) this.#counts.skipped += 1;
    if (isThere && !event) {
      const lost = { account, first: sequence, last: sequence, count: 1 };
      await this.#parked.settle(parked, ([, ...writes]) => this.#status.recordLost(lost, writes));
    } else await this.#parked.settle(parked);
    return undefined;
  }

  #settle(sent: InFlightEvent, outcome: DeliveryOutcome, latencyMs: number): void {
    if (outcome.disable !== undefined) this.#status.disableReason ??= outcome.disable;
    if (outcome.kind === 'delivered') {
      this.#counts.delivered += 1;
      this.#attribution.noteDelivered(sent.event.id, this.#deps.now());
      this.#lanes.noteResponse(latencyMs);
      if (this.#status.isFailing) this.#begin(() => this.#status.recover());
      this.#complete(sent);
      return;
    }
    this.#counts.failed += 1;
    this.#attribution.failedAt = this.#deps.now();
    if (outcome.kind === 'rejected') this.#counts.rejected += 1;
    if (this.#attribution.isEventRejected(sent, outcome)) {
      this.#handleRejection(sent, { reason: outcome.reason, status: outcome.answer?.status });
      return;
    }
    if (sent.parked) this.#parked.putBack(sent.parked);
    else sent.run.window.putBack(sent.event);
    const mayBeIts = outcome.kind === 'rejected' || outcome.suspect === true;
    // The first failure of several requests counts, and that of a probe does not.
    if (this.#status.failure === null && !this.#attribution.isProbing) this.#lanes.noteFailure();
    if (this.#status.failure === null && mayBeIts) this.#attribution.suspect(sent.event.id);
    this.#status.failure ??= {
      reason: outcome.reason,
      afterMs: outcome.kind === 'retry' ? outcome.afterMs : undefined,
    };
  }

  #complete(sent: InFlightEvent): void {
    const { run, parked, event } = sent;
    if (parked) {
      this.#begin(async () => {
        await this.#attempts.flush();
        await this.#parked.settle(parked);
      });
      return;
    }
    run.counts.delivered += 1;
    if (run.replay?.dead) {
      this.#begin(async () => {
        await this.#attempts.flush();
        await this.#runs.removeDead(event);
        run.window.settle(event);
      });
    } else run.window.settle(event);
  }

  #handleRejection(sent: InFlightEvent, rejection: EventRejection): void {
    const { run, parked, event } = sent;
    if (!parked) this.#attribution.clear(event.id);
    if (parked) {
      this.#begin(async () => {
        if (await this.#parked.recordRejection(parked, rejection)) {
          this.#counts.dead += 1;
          this.#attribution.clear(event.id);
        }
      });
    } else if (run.replay) {
      run.counts.failed += 1;
      run.window.settle(event);
    } else if (this.#parked.count < MAX_PARKED) {
      this.#attribution.countRejection();
      this.#park(run, event, rejection);
    } else {
      run.window.putBack(event);
      this.#status.failure ??= TOO_MANY_PARKED;
    }
  }

  #park(run: Run, event: LoggedEvent, rejection: EventRejection | null): void {
    this.#counts.parked += 1;
    const parking = this.#parked.park(event, rejection);
    this.#begin(async () => {
      if (await parking) run.window.settle(event);
    });
  }

  /** Releases the lease together with the sink's new health, and records that it is disabled if it is. */
  async #conclude(): Promise<DrainReport> {
    const { now } = this.#deps;
    const hasFailed = this.#status.failure !== null || this.#status.disableReason !== null;
    // A failure of the former settings says nothing about the current ones, which get their own probe.
    if (hasFailed && (await this.#isChanged())) this.#status.forgetFailure();
    const { failure } = this.#status;
    const isIdle = !hasFailed && this.#runs.isDone && this.#parked.count === 0;
    const { health, isStored } = await this.#status.conclude(isIdle);
    const { nextSendAt } = this.#pacer;
    await this.#lease.release({
      // Not written twice: the operator may have enabled the sink since the event was recorded.
      ...(isStored ? {} : healthAttributes(health)),
      parking: this.#parked.count > 0 || undefined,
      nextSendAt: nextSendAt > now() ? nextSendAt : undefined,
      lanes: this.#lanes.stored,
    });
    const report = {
      ...{ region: this.#sink.region, sink: this.#sink.id, ...this.#counts },
      lost: this.#status.lost,
      unlogged: this.#attempts.unlogged,
    };
    if (health.disabledAt !== null) {
      return { ...report, outcome: 'disabled', problem: health.disabledReason ?? '' };
    }
    if (failure) {
      return { ...report, outcome: 'waiting', waitUntil: health.waitUntil, problem: failure.reason };
    }
    const rest = this.#runs.hasMore || this.#parked.isDue || this.#lease.isLost;
    return { ...report, outcome: rest ? 'more' : 'drained' };
  }
}
