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
 * `runs.ts` manages the cursors. The lease makes a drain the only one of its sink (`lease.ts`). `health.ts`
 * decides what failures mean, and `parking.ts` stores rejected events. Replays have their own cursors beside
 * the live ones, with fewer of them open at a time.
 */
import { setTimeout as sleepMs } from 'node:timers/promises';
import type { EventDraft } from '../events/event.ts';
import type { LoggedEvent } from '../log/log.ts';
import { cellLog, keys } from '../storage/schema.ts';
import type { Item, TransactOutcome, Write } from '../storage/table.ts';
import { CursorRuns, type Run } from './cursors.ts';
import type { DeliveryEntry } from './delivery-log.ts';
import type { DrainDeps, DrainReport } from './drain-deps.ts';
import {
  DEFAULT_DISABLE_AFTER_SECONDS,
  type Failure,
  healthAttributes,
  MAX_REJECTIONS,
  MAX_SUSPECTS,
  type SinkHealth,
  updateHealth,
} from './health.ts';
import { type Lease, takeLease } from './lease.ts';
import type { ParkedEvent } from './parked-events.ts';
import { MAX_PARKED, ParkedLanes } from './parking.ts';
import {
  DEFAULT_CONCURRENCY,
  type DeliveryOutcome,
  follows,
  type Sink,
  type SinkPort,
  sinkAttributes,
  toSink,
} from './sink.ts';
import { getLane } from './window.ts';

/** Number of attempts written to the delivery log in one batch. */
const LOG_BATCH = 25;
const TOO_MANY_PARKED: Failure = { reason: `${MAX_PARKED} events are parked, which is the maximum.` };
/** A sink with a rate that was idle may catch up on this much time. */
const BURST_MS = 100;

/** Drains one sink until its due cursors are at their heads, it fails, or the deadline (epoch ms) is near. */
export async function drainSink(
  deps: DrainDeps,
  region: string,
  sink: string,
  deadline: number,
): Promise<DrainReport> {
  const taken = await takeLease(deps.table, region, sink, deps.now(), deps.newId);
  if (!taken) return { region, sink, outcome: 'busy', ...NOTHING };
  const drain = new Drain(deps, taken.sink, taken.lease, deadline, {
    hasParked: taken.item.parking === true,
    nextSendAt: Number(taken.item.nextSendAt ?? 0),
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

/** One event in delivery: of a cursor, or of a parked lane. */
type Sent = { readonly event: LoggedEvent } & (
  | { readonly run: Run; readonly parked?: undefined }
  | { readonly run?: undefined; readonly parked: ParkedEvent }
);

/** An event about a sink on the cell's own log. */
type SinkEvent =
  | {
      readonly type: 'endpoint.events_lost';
      readonly account: string;
      readonly first: number;
      readonly last: number;
    }
  | { readonly type: 'endpoint.disabled'; readonly reason: string; readonly failingSince: string | null }
  | { readonly type: 'endpoint.recovered'; readonly disabledAt: string };

class Drain {
  readonly #deps: DrainDeps;
  readonly #sink: Sink;
  readonly #lease: Lease;
  readonly #deadline: number;
  readonly #concurrency: number;
  readonly #runs: CursorRuns;
  readonly #parked: ParkedLanes;
  readonly #hasParked: boolean;
  #counts = { ...NOTHING };
  #turn = 0;
  /** Number of events in delivery. */
  #inFlight = 0;
  /** Number of pending operations, including reads and writes. */
  #pending = 0;
  #wake: (() => void) | undefined;
  #sleeping: Promise<void> | undefined;
  #fault: { readonly cause: unknown } | undefined;
  /** The sink's settings when this drain began, and whether it was paused or changed since. */
  readonly #initialSettings: string;
  #isOutdated = false;
  /** An event cannot be parked because the maximum is reached. */
  #isFull = false;
  /** Attempts that are not in the delivery log yet. */
  #attempts: DeliveryEntry[] = [];
  #logging: Promise<void> = Promise.resolve();
  /** A sink with a rate gets no event before this time. */
  #nextSendAt: number;
  /** A sink that failed last time gets one event as a probe first. */
  #probing: boolean;
  /** The probe was the only available event. */
  #isOnlyEvent = false;
  #health: SinkHealth;
  #deliveredAt: number | null = null;
  #rejections: number;
  readonly #suspects: Set<string>;
  #failure: Failure | null = null;
  #disableReason: string | null = null;

  constructor(
    deps: DrainDeps,
    sink: Sink,
    lease: Lease,
    deadline: number,
    kept: { readonly hasParked: boolean; readonly nextSendAt: number; readonly settings: string },
  ) {
    this.#deps = deps;
    this.#sink = sink;
    this.#lease = lease;
    this.#deadline = deadline;
    this.#concurrency = sink.concurrency ?? DEFAULT_CONCURRENCY;
    this.#parked = new ParkedLanes(deps, sink, lease);
    const { table, log, now, newId } = deps;
    this.#runs = new CursorRuns(
      {
        ...{ table, log, now, newId },
        begin: (action) => this.#begin(action),
        beforeStoring: () => this.#logAttempts(),
        skipped: (events) => {
          this.#counts.skipped += events;
        },
        recordLost: (range, writes) => this.#recordLost(range, writes),
      },
      sink,
      lease,
    );
    this.#hasParked = kept.hasParked;
    this.#nextSendAt = kept.nextSendAt;
    this.#initialSettings = kept.settings;
    this.#health = sink.health;
    this.#probing = sink.health.failures > 0;
    this.#rejections = sink.health.rejections;
    this.#suspects = new Set(sink.health.suspects);
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
      this.#failure = { reason: cause instanceof Error ? cause.message : 'The sink could not be opened.' };
      return;
    }
    await this.#runs.loadDue();
    do {
      await this.#processDue(port);
    } while (await this.#waitForNewWork());
    await this.#runs.storeAll();
    await this.#logAttempts();
  }

  /**
   * Works until every open cursor is at its head, the sink fails, or the deadline comes, and all pending
   * operations have ended.
   */
  async #processDue(port: SinkPort): Promise<void> {
    for (;;) {
      if (this.#canContinue()) {
        this.#keepLease();
        if (this.#inFlight > 0 || this.#runs.open.length > 0) this.#runs.refreshDue();
        this.#runs.openWaiting();
        this.#runs.readAhead();
        this.#send(port);
      }
      // Storing positions again while the table fails would be a busy loop.
      if (!this.#fault) this.#runs.storePositions();
      const pause = this.#pause();
      if (this.#pending === 0 && pause === undefined) {
        if (this.#isFull) this.#failure ??= TOO_MANY_PARKED;
        return;
      }
      await this.#waitForProgress(pause);
    }
  }

  #canContinue(): boolean {
    return (
      this.#failure === null &&
      this.#disableReason === null &&
      this.#fault === undefined &&
      !this.#lease.isLost &&
      !this.#isOutdated &&
      this.#deps.now() < this.#deadline
    );
  }

  /** Waits for news under this lease. Reports whether there is, or soon will be, more to do. */
  async #waitForNewWork(): Promise<boolean> {
    if (!this.#deps.linger || !this.#canContinue()) return false;
    const news = await this.#deps.linger();
    if (!news) return false;
    for (const account of news.accounts) this.#runs.addGrownAccount(account);
    if (this.#lease.isAging(this.#deps.now())) await this.#renew();
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
    if (this.#lease.isAging(this.#deps.now())) this.#begin(() => this.#renew());
  }

  /**
   * Renews the lease. Also detects whether the sink was paused or changed; then a drain with the new record
   * takes over.
   */
  async #renew(): Promise<void> {
    const sink = await this.#lease.renew(this.#deps.now());
    if (sink && serializeSettings(sink) !== this.#initialSettings) this.#isOutdated = true;
  }

  // Sending

  /** Sends as many batches as there is room for. Open cursors and parked lanes take turns. */
  #send(port: SinkPort): void {
    const lanes = this.#probing ? 1 : this.#concurrency;
    this.#isFull = false;
    while (this.#inFlight < lanes && this.#canContinue() && this.#pause() === undefined) {
      const most =
        this.#probing || this.#sink.ratePerSecond ? 1 : Math.min(port.maxBatch, lanes - this.#inFlight);
      const batch = this.#nextBatch(most);
      if (batch.length === 0) return;
      this.#inFlight += batch.length;
      this.#pace(batch.length);
      this.#begin(() => this.#deliver(port, batch));
    }
  }

  /** Returns up to `size` events of as many lanes. */
  #nextBatch(size: number): (Sent | ParkedEvent)[] {
    const batch = this.#takeRoundRobin(size, this.#probing ? this.#suspects : undefined);
    if (batch.length > 0 || !this.#probing || this.#suspects.size === 0) return batch;
    // Another event that is being read may be a better probe than a suspect.
    if (this.#runs.isReading) return batch;
    this.#isOnlyEvent = true;
    return this.#takeRoundRobin(size, undefined);
  }

  #takeRoundRobin(size: number, avoid: ReadonlySet<string> | undefined): (Sent | ParkedEvent)[] {
    const batch: (Sent | ParkedEvent)[] = [];
    let idle = 0;
    // Parked lanes are one more source, after the open cursors.
    const sources = this.#runs.open.length + 1;
    while (batch.length < size && idle < sources && this.#failure === null) {
      const run = this.#runs.open[this.#turn % sources];
      this.#turn += 1;
      const next = run ? this.#takeNext(run, avoid) : this.#parked.take(avoid);
      if (next) batch.push(next);
      idle = next ? 0 : idle + 1;
    }
    return batch;
  }

  /** Returns the next event of a cursor that can be sent. Parks events of parked lanes on the way. */
  #takeNext(run: Run, avoid: ReadonlySet<string> | undefined): Sent | undefined {
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

  /** Counts a delivery against the sink's rate. */
  #pace(deliveries: number): void {
    const { ratePerSecond } = this.#sink;
    if (!ratePerSecond) return;
    const from = Math.max(this.#nextSendAt, this.#deps.now() - BURST_MS);
    this.#nextSendAt = from + (deliveries * 1000) / ratePerSecond;
  }

  /** Returns the wait (ms) that the rate imposes on a sink with events to send. */
  #pause(): number | undefined {
    if (!this.#sink.ratePerSecond || !this.#canContinue()) return undefined;
    const wait = this.#nextSendAt - this.#deps.now();
    const hasMore = this.#runs.open.some(({ window }) => window.waiting > 0) || this.#parked.isDue;
    return wait > 0 && hasMore ? Math.ceil(Math.min(wait, this.#deadline - this.#deps.now())) : undefined;
  }

  async #deliver(port: SinkPort, batch: readonly (Sent | ParkedEvent)[]): Promise<void> {
    try {
      const sent = (
        await Promise.all(batch.map((one) => ('event' in one ? one : this.#readParked(one))))
      ).filter((one) => one !== undefined);
      if (sent.length === 0) return;
      const at = this.#deps.now();
      let outcomes: readonly DeliveryOutcome[];
      try {
        outcomes = await port.deliver(
          sent.map(({ event, run }) => ({ event, ...(run?.replay && { replay: true }) })),
        );
      } catch (cause) {
        const reason = cause instanceof Error ? cause.message : 'The sink failed.';
        outcomes = sent.map(() => ({ kind: 'retry', reason }));
      }
      sent.forEach((one, place) => {
        const outcome = outcomes[place] ?? {
          kind: 'retry',
          reason: 'The sink returned no outcome for this event.',
        };
        this.#recordAttempt(one, outcome, at);
        this.#settle(one, outcome);
      });
    } finally {
      this.#inFlight -= batch.length;
    }
  }

  /**
   * Reads the event of a parked lane from the log. `undefined` if it is no longer there, or an operator
   * discarded it meanwhile.
   */
  async #readParked(parked: ParkedEvent): Promise<Sent | undefined> {
    const { account, sequence } = parked;
    const [isThere, read] = await Promise.all([
      this.#parked.isStored(parked),
      this.#deps.log.read({ region: this.#sink.region, account }, sequence - 1, 1),
    ]);
    const event = read?.kind === 'events' ? read.events[0] : undefined;
    if (isThere && event) return { event, parked };
    if (isThere) {
      const range = { account, first: sequence, last: sequence };
      await this.#parked.settle(parked, ([, ...writes]) => this.#recordLost(range, writes));
    } else await this.#parked.settle(parked);
    return undefined;
  }

  #settle(sent: Sent, outcome: DeliveryOutcome): void {
    if (outcome.disable !== undefined) this.#disableReason ??= outcome.disable;
    if (outcome.kind === 'delivered') {
      this.#counts.delivered += 1;
      this.#deliveredAt = this.#deps.now();
      this.#rejections = 0;
      this.#probing = false;
      this.#suspects.delete(sent.event.id);
      if (this.#health.failures > 0 || this.#health.announcedAt !== null) this.#begin(() => this.#recover());
      this.#complete(sent);
      return;
    }
    this.#counts.failed += 1;
    if (outcome.kind === 'rejected') this.#counts.rejected += 1;
    if (this.#isEventRejected(sent, outcome)) {
      this.#handleRejection(sent, outcome.reason);
      return;
    }
    if (sent.parked) this.#parked.putBack(sent.parked);
    else sent.run.window.putBack(sent.event);
    const mayBeIts = outcome.kind === 'rejected' || outcome.suspect === true;
    if (this.#failure === null && mayBeIts) this.#suspect(sent.event.id);
    this.#failure ??= {
      reason: outcome.reason,
      afterMs: outcome.kind === 'retry' ? outcome.afterMs : undefined,
    };
  }

  /**
   * Adds a suspect. Above the maximum, the oldest is dropped: it may belong to an event that is never sent
   * again.
   */
  #suspect(eventId: string): void {
    const [first] = this.#suspects;
    const isNew = !this.#suspects.has(eventId);
    if (isNew && first !== undefined && this.#suspects.size >= MAX_SUSPECTS) this.#suspects.delete(first);
    this.#suspects.add(eventId);
  }

  /** Reports whether a failure is caused by this event rather than by the sink. */
  #isEventRejected({ event, run }: Sent, outcome: Exclude<DeliveryOutcome, { kind: 'delivered' }>): boolean {
    const tooMany = this.#rejections >= MAX_REJECTIONS;
    if (outcome.kind === 'rejected') return run === undefined || run.replay !== undefined || !tooMany;
    if (!outcome.suspect || outcome.disable !== undefined) return false;
    const takesOthers = this.#deliveredAt !== null;
    if (run === undefined)
      return takesOthers || !this.#probing || (this.#isOnlyEvent && this.#suspects.has(event.id));
    if (!this.#suspects.has(event.id) || tooMany) return false;
    // There is no other event to try. Parking this event avoids blocking all later ones.
    return takesOthers || (this.#isOnlyEvent && this.#sink.health.failures >= 2);
  }

  #complete(sent: Sent): void {
    const { run, parked, event } = sent;
    if (parked) {
      this.#begin(async () => {
        await this.#logAttempts();
        await this.#parked.settle(parked);
      });
      return;
    }
    run.counts.delivered += 1;
    run.window.settle(event);
  }

  #handleRejection(sent: Sent, reason: string): void {
    const { run, parked, event } = sent;
    if (!parked) this.#suspects.delete(event.id);
    if (parked) {
      this.#begin(async () => {
        if (await this.#parked.recordRejection(parked, reason)) {
          this.#counts.dead += 1;
          this.#suspects.delete(event.id);
        }
      });
    } else if (run.replay) {
      run.counts.failed += 1;
      run.window.settle(event);
    } else if (this.#parked.count < MAX_PARKED) {
      this.#rejections += 1;
      this.#park(run, event, reason);
    } else {
      run.window.putBack(event);
      this.#failure ??= TOO_MANY_PARKED;
    }
  }

  #park(run: Run, event: LoggedEvent, reason: string | null): void {
    this.#counts.parked += 1;
    const parking = this.#parked.park(event, reason);
    this.#begin(async () => {
      if (await parking) run.window.settle(event);
    });
  }

  // Events about the sink

  /**
   * Counts lost events and records them on the cell's log, if that exists, in one transaction with the writes
   * that skip them. All or nothing, and nothing without the lease.
   */
  async #recordLost(
    range: { readonly account: string; readonly first: number; readonly last: number },
    writes: readonly Write[],
  ): Promise<TransactOutcome> {
    const lost = range.last - range.first + 1;
    this.#counts.lost += lost;
    const counted = this.#lease.whileHeld({ lost: this.#sink.health.lost + this.#counts.lost });
    const all = [counted, ...writes];
    if (await this.#recordEvent({ type: 'endpoint.events_lost', ...range }, all)) return { done: true };
    const outcome = await this.#deps.table.transact(all, this.#deps.newId());
    if (!outcome.done) this.#counts.lost -= lost;
    return outcome;
  }

  /**
   * Records an event about this sink on the cell's own log, together with the state changes that it reports.
   */
  async #recordEvent(about: SinkEvent, writes: readonly Write[]): Promise<boolean> {
    const { type, ...data } = about;
    const draft = { type, time: this.#deps.now(), data: { endpoint: this.#sink.id, ...data } } as EventDraft;
    const said = await this.#deps.log.append(cellLog(this.#sink.region), [draft], writes);
    return said.kind === 'appended';
  }

  // The delivery log

  #recordAttempt({ event, run, parked }: Sent, outcome: DeliveryOutcome, at: number): void {
    const { attempted, deliveries, now } = this.#deps;
    const isKept = deliveries !== undefined && this.#sink.kind === 'webhook';
    if (!isKept && !attempted) return;
    const over = now();
    // Written out without spreading, because it runs for every event.
    const entry: DeliveryEntry = {
      region: event.region,
      sink: this.#sink.id,
      sinkCreatedAt: this.#sink.createdAt,
      eventId: event.id,
      type: event.type,
      account: event.account,
      sequence: event.sequence,
      jobNumber: event.jobNumber,
      at,
      latencyMs: over - at,
      outcome: outcome.kind,
      reason: outcome.kind === 'delivered' ? undefined : outcome.reason,
      status: outcome.answer?.status,
      excerpt: outcome.answer?.excerpt,
      cause: parked ? 'parked' : run.replay ? 'replay' : 'live',
      replay: run?.replay?.id,
    };
    if (attempted) {
      const { at: _, excerpt: __, ...attempt } = entry;
      attempted({ ...attempt, lagMs: Math.max(0, over - event.time) });
    }
    if (!isKept) return;
    this.#attempts.push(entry);
    if (this.#attempts.length >= LOG_BATCH) this.#begin(() => this.#logAttempts());
  }

  /**
   * Writes all pending attempts to the delivery log, or counts them as unlogged: history is only read for
   * review.
   */
  #logAttempts(): Promise<void> {
    const { deliveries } = this.#deps;
    const attempts = this.#attempts;
    if (!deliveries || attempts.length === 0) return this.#logging;
    this.#attempts = [];
    const logged = deliveries.record(attempts).catch(() => {
      this.#counts.unlogged += attempts.length;
    });
    this.#logging = Promise.all([this.#logging, logged]).then(() => undefined);
    return this.#logging;
  }

  // The end

  /**
   * Records that the sink accepts events again. Stored and emitted at once, because the drain may run for
   * long.
   */
  async #recover(): Promise<void> {
    const { announcedAt } = this.#health;
    const healthy = { ...this.#computeHealth(), announcedAt: null };
    this.#health = healthy;
    if (announcedAt === null) {
      await this.#lease.note(healthAttributes(healthy));
      return;
    }
    const disabledAt = new Date(announcedAt).toISOString();
    await this.#recordHealthEvent(healthy, { type: 'endpoint.recovered', disabledAt });
  }

  /** Returns the sink's health according to this drain's observations. */
  #computeHealth(): SinkHealth {
    const { now, random, retrySeconds, disableAfterSeconds = DEFAULT_DISABLE_AFTER_SECONDS } = this.#deps;
    const seen = {
      deliveredAt: this.#deliveredAt,
      failure: this.#failure,
      rejections: this.#rejections,
      suspects: [...this.#suspects],
      disable: this.#disableReason,
    };
    const before = { ...this.#health, lost: this.#sink.health.lost + this.#counts.lost };
    return updateHealth(before, seen, { retrySeconds, disableAfterSeconds }, now(), random());
  }

  /** Records an event on the cell's log together with the health that it reports. */
  async #recordHealthEvent(health: SinkHealth, about: SinkEvent): Promise<boolean> {
    const sink = keys.sink(this.#sink.region, this.#sink.id);
    const write: Write = { update: sink, set: healthAttributes(health), when: [this.#lease.held] };
    return this.#recordEvent(about, [write]);
  }

  /** Releases the lease together with the sink's new health, and records that it is disabled if it is. */
  async #conclude(): Promise<DrainReport> {
    const { now } = this.#deps;
    let health = this.#computeHealth();
    let stored = false;
    if (health.disabledAt !== null && health.announcedAt === null) {
      health = { ...health, announcedAt: health.disabledAt };
      const failingSince = health.failingSince === null ? null : new Date(health.failingSince).toISOString();
      const reason = health.disabledReason ?? '';
      stored = await this.#recordHealthEvent(health, { type: 'endpoint.disabled', reason, failingSince });
    }
    const busy = this.#nextSendAt > now();
    await this.#lease.release({
      // Not written twice: the operator may have enabled the sink since the event was recorded.
      ...(stored ? {} : healthAttributes(health)),
      parking: this.#parked.count > 0 || undefined,
      nextSendAt: busy ? this.#nextSendAt : undefined,
    });
    const report = { region: this.#sink.region, sink: this.#sink.id, ...this.#counts };
    if (health.disabledAt !== null) {
      return { ...report, outcome: 'disabled', problem: health.disabledReason ?? '' };
    }
    if (this.#failure) {
      return { ...report, outcome: 'waiting', waitUntil: health.waitUntil, problem: this.#failure.reason };
    }
    const rest = this.#runs.hasMore || this.#parked.isDue || this.#lease.isLost;
    return { ...report, outcome: rest ? 'more' : 'drained' };
  }
}
