/** Observations of a drain about its sink: lost events, failures, and the health that follows, recorded on the cell's log. */
import type { EventDraft } from '../events/event.ts';
import { cellLog, getDrainNames, keys } from '../storage/schema.ts';
import type { TransactOutcome, Write } from '../storage/table.ts';
import type { DrainDeps } from './drain-deps.ts';
import type { FailureAttribution } from './failure-attribution.ts';
import {
  DEFAULT_DISABLE_AFTER_SECONDS,
  type Failure,
  healthAttributes,
  type SinkHealth,
  updateHealth,
} from './health.ts';
import type { Lease } from './lease.ts';
import type { Sink } from './sink.ts';
import type { LostEvents } from './window.ts';

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

const NOT_FAILING = { failures: 0, failingSince: null, problem: null, suspects: [] };

/** The status of one sink during one drain. */
export class SinkStatus {
  readonly #deps: DrainDeps;
  readonly #sink: Sink;
  readonly #lease: Lease;
  readonly #attribution: FailureAttribution;
  #health: SinkHealth;
  #lost = 0;
  /** Failure that ends the drain. */
  failure: Failure | null = null;
  /** Reason to disable the sink. */
  disableReason: string | null = null;

  constructor(deps: DrainDeps, sink: Sink, lease: Lease, attribution: FailureAttribution) {
    this.#deps = deps;
    this.#sink = sink;
    this.#lease = lease;
    this.#attribution = attribution;
    this.#health = sink.health;
  }

  /** Called if the sink was changed since it failed. */
  forgetFailure(): void {
    this.failure = null;
    this.disableReason = null;
  }

  /** Number of events lost during this drain. */
  get lost(): number {
    return this.#lost;
  }

  /** Whether the sink failed before, so that a delivered event means that it recovered. */
  get isFailing(): boolean {
    return this.#health.failures > 0 || this.#health.announcedAt !== null;
  }

  /**
   * Counts lost events and records them on the cell's log, if that exists, in one transaction with the writes
   * that skip them. All or nothing, and nothing without the lease.
   */
  async recordLost(
    { count, ...range }: LostEvents & { readonly account: string },
    writes: readonly Write[],
  ): Promise<TransactOutcome> {
    this.#lost += count;
    const counted = this.#lease.toGuardWrite({ lost: this.#sink.health.lost + this.#lost });
    const all = [counted, ...writes];
    if (await this.#recordEvent({ type: 'endpoint.events_lost', ...range }, all)) return { done: true };
    const outcome = await this.#deps.table.transact(all, this.#deps.newId());
    if (!outcome.done) this.#lost -= count;
    return outcome;
  }

  /**
   * Records an event about this sink on the cell's own log, together with the state changes that it reports.
   */
  async #recordEvent(about: SinkEvent, writes: readonly Write[]): Promise<boolean> {
    const { type, ...data } = about;
    const draft = { type, time: this.#deps.now(), data: { endpoint: this.#sink.id, ...data } } as EventDraft;
    const outcome = await this.#deps.log.append(cellLog(this.#sink.region), [draft], writes);
    return outcome.kind === 'appended';
  }

  /**
   * Records that the sink accepts events again. Stored and emitted at once, because the drain may run for
   * long.
   */
  async recover(): Promise<void> {
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
    const observations = {
      deliveredAt: this.#attribution.deliveredAt,
      failedAt: this.#attribution.failedAt,
      failure: this.failure,
      rejections: this.#attribution.rejections,
      suspects: [...this.#attribution.suspects],
      disable: this.disableReason,
    };
    const before = { ...this.#health, lost: this.#sink.health.lost + this.#lost };
    return updateHealth(before, observations, { retrySeconds, disableAfterSeconds }, now(), random());
  }

  /** Records an event on the cell's log together with the health that it reports. */
  async #recordHealthEvent(health: SinkHealth, about: SinkEvent): Promise<boolean> {
    const write: Write = { update: this.#lease.key, set: healthAttributes(health), when: [this.#lease.held] };
    return this.#recordEvent(about, [write]);
  }

  /**
   * Returns the health at the end of the drain. `isIdle`: the drain did not fail, and nothing is left to deliver. Then the sink is no longer
   * failing, although nothing may have been delivered. Records that the sink is disabled if it is; `isStored`: the health was stored with
   * that event.
   */
  async conclude(isIdle: boolean): Promise<{ readonly health: SinkHealth; readonly isStored: boolean }> {
    const computed = this.#computeHealth();
    const health = isIdle ? { ...computed, ...NOT_FAILING } : computed;
    // A drain begins only while the sink is enabled. So it was disabled now, also if an earlier time was recorded.
    if (health.disabledAt === null || (await this.#isAnnounced())) return { health, isStored: false };
    const reported = { ...health, announcedAt: health.disabledAt };
    const failingSince = health.failingSince === null ? null : new Date(health.failingSince).toISOString();
    const reason = health.disabledReason ?? '';
    const event = { type: 'endpoint.disabled', reason, failingSince } as const;
    return { health: reported, isStored: await this.#recordHealthEvent(reported, event) };
  }

  /** Reports whether another part of the sink has recorded that the sink is disabled. */
  async #isAnnounced(): Promise<boolean> {
    const { region, id } = this.#sink;
    for (const name of getDrainNames(id)) {
      if (name === this.#lease.name) continue;
      if ((await this.#deps.table.get(keys.sinkState(region, name)))?.announcedAt !== undefined) return true;
    }
    return false;
  }
}
