/**
 * The health of a sink and its consequences: one state, for any number of accounts that it follows. Pure.
 *
 *   accepting ──failure──▶ waiting ──time──▶ probing ──success──▶ accepting
 *                             ▲                 │failure
 *                             └─── longer ──────┘        only failures for days, or requested by the receiver ──▶ disabled
 *
 * A receiver that fails on one event responds like one that is down. Trying another event distinguishes the
 * two. The events whose failure stopped the sink are its suspects; the next probe is another event, if there
 * is one. A suspect that fails again although others were delivered is parked as if it had been rejected
 * (decision 11).
 */

import { type Jitter, scheduledWait, withJitter } from '../retry.ts';
import type { Item } from '../storage/table.ts';
import { MAX_SKEW_MS } from './clock.ts';

/** Observations of one drain about the sink. */
export interface DrainObservations {
  /** Time of the last delivered event; `null` if there was none. */
  readonly deliveredAt: number | null;
  /** Time of the last failed or rejected attempt; `null` if there was none. */
  readonly failedAt: number | null;
  /** The failure that ended the drain. */
  readonly failure: Failure | null;
  /** Values at the end of the drain. */
  readonly rejections: number;
  readonly suspects: readonly string[];
  /** Reason why the receiver requests no more events; `null` if it does not. */
  readonly disable: string | null;
}

/** A failure of the sink as a whole. */
export interface Failure {
  readonly reason: string;
  /** Wait that the receiver requested (ms). */
  readonly afterMs?: number | undefined;
}

/** The reaction to failures. */
export interface FailurePolicy {
  /** Waits (s) before the n-th retry; the last one repeats. */
  readonly retrySeconds: readonly number[];
  /** Time after which a sink whose attempts all fail is disabled (s). */
  readonly disableAfterSeconds: number;
}

/** Default waits (s) before retries: the schedule of the Standard Webhooks specification. */
export const DEFAULT_RETRY_SECONDS = [5, 300, 1800, 7200, 18_000, 36_000, 50_400, 72_000, 86_400];
export const DEFAULT_DISABLE_AFTER_SECONDS = 5 * 86_400;
/**
 * Number of events parked in a row, without a delivered one in between, after which the sink counts as
 * failing.
 */
export const MAX_REJECTIONS = 5;
/** Maximum number of suspects; above it, the latest stay. */
export const MAX_SUSPECTS = 5;
/** Jitter of waits: a fifth in both directions. */
const JITTER: Jitter = { least: 0.8, range: 0.4 };
/** Wait (s) of an empty schedule. */
const DEFAULT_WAIT_SECONDS = 60;
/** Maximum `Retry-After` (ms) that is honoured. */
export const MAX_RETRY_AFTER_MS = 86_400_000;

/** Returns the wait before retry `n` (from 1) in ms, with jitter; `random` is from 0 to 1. */
export function getRetryWait(retrySeconds: readonly number[], n: number, random: number): number {
  const seconds = scheduledWait(retrySeconds, n) ?? DEFAULT_WAIT_SECONDS;
  return withJitter(1000 * seconds, JITTER, random);
}

/** Returns the health of a sink after a drain. */
export function updateHealth(
  before: SinkHealth,
  observations: DrainObservations,
  policy: FailurePolicy,
  now: number,
  random: number,
): SinkHealth {
  const isDelivered = observations.deliveredAt !== null;
  const health: SinkHealth = {
    ...before,
    failures: isDelivered ? 0 : before.failures,
    failingSince: isDelivered ? null : before.failingSince,
    problem: isDelivered ? null : before.problem,
    waitUntil: 0,
    rejections: observations.rejections,
    suspects: observations.suspects,
    lastDeliveredAt: observations.deliveredAt ?? before.lastDeliveredAt,
    lastFailedAt: observations.failedAt ?? before.lastFailedAt,
  };
  const failed = observations.failure
    ? afterFailure(health, observations.failure, policy, now, random)
    : health;
  return observations.disable === null ? failed : disableHealth(failed, observations.disable, now);
}

function afterFailure(
  health: SinkHealth,
  failure: Failure,
  policy: FailurePolicy,
  now: number,
  random: number,
): SinkHealth {
  const failures = health.failures + 1;
  const failingSince = health.failingSince ?? now;
  const asked = Math.min(failure.afterMs ?? 0, MAX_RETRY_AFTER_MS);
  const waiting: SinkHealth = {
    ...health,
    failures,
    failingSince,
    problem: failure.reason,
    lastFailedAt: now,
    waitUntil: now + Math.max(getRetryWait(policy.retrySeconds, failures, random), asked),
  };
  if (now - failingSince < policy.disableAfterSeconds * 1000) return waiting;
  const days = Math.round((now - failingSince) / 8_640_000) / 10;
  return disableHealth(
    waiting,
    `All deliveries failed for ${days} days. Last failure: ${failure.reason}`,
    now,
  );
}

function disableHealth(health: SinkHealth, reason: string, now: number): SinkHealth {
  return { ...health, waitUntil: 0, disabledAt: now, disabledReason: reason };
}

/**
 * Returns the health of a sink that was enabled, or is retried before its wait has ended: it resumes at its positions, with a probe
 * first. A retried sink counts as failing until an attempt succeeds, and an additional attempt does not make the next wait longer.
 */
export function enableHealth(health: SinkHealth): SinkHealth {
  const wasDisabled = health.disabledAt !== null;
  return {
    ...health,
    failures: Math.max(1, wasDisabled ? health.failures : health.failures - 1),
    waitUntil: 0,
    failingSince: wasDisabled ? null : health.failingSince,
    disabledAt: null,
    disabledReason: null,
  };
}

/**
 * Returns the attributes of a sink that are changed when it is resumed (`now` is epoch ms): if it is failing, it is probed at once, and the time
 * of the pause does not count as time of failures, after which it is disabled.
 */
export function resumeHealth({ failingSince }: Item, now: number) {
  return { waitUntil: undefined, ...(failingSince === undefined ? {} : { failingSince: now }) };
}

/** The health of a sink as stored between drains. Times are epoch ms. */
export type SinkHealth = Readonly<ReturnType<typeof toHealth>>;

/** Reads the health from a sink's item. */
export function toHealth(item: Item) {
  const number = (name: string): number | null => (typeof item[name] === 'number' ? item[name] : null);
  const text = (name: string): string | null => (typeof item[name] === 'string' ? item[name] : null);
  return {
    /** Number of failures of the sink since its last delivered event. */
    failures: number('failures') ?? 0,
    /** End of the wait; 0 if the sink does not wait. */
    waitUntil: number('waitUntil') ?? 0,
    /** Reason for the last failure since the last delivered event; `null` without one. */
    problem: text('problem'),
    /** Time of the first failure since the last delivered event. */
    failingSince: number('failingSince'),
    /** Number of events parked since the last delivered one. */
    rejections: number('rejections') ?? 0,
    /** Ids of the events whose failure made the sink wait: the last {@link MAX_SUSPECTS}. */
    suspects: Array.isArray(item.suspects) ? (item.suspects as readonly string[]) : [],
    /** Time since which the sink gets no events until it is enabled; `null` if not disabled. */
    disabledAt: number('disabledAt'),
    disabledReason: text('disabledReason'),
    /** Time at which its disabled event was recorded, until its recovery is recorded. */
    announcedAt: number('announcedAt'),
    /** Number of events that passed retention before they were delivered. */
    lost: number('lost') ?? 0,
    lastDeliveredAt: number('lastDeliveredAt'),
    lastFailedAt: number('lastFailedAt'),
  };
}

/** Returns the health of a sink from that of its parts, at least one. The sink is as bad as its worst part. */
export function combineHealth(parts: readonly SinkHealth[]): SinkHealth {
  const [first, ...others] = parts;
  if (!first) throw new Error('A sink has at least one part.');
  return others.reduce(
    (one, other) => ({
      failures: Math.max(one.failures, other.failures),
      waitUntil: Math.max(one.waitUntil, other.waitUntil),
      problem: one.problem ?? other.problem,
      failingSince: combine(Math.min, one.failingSince, other.failingSince),
      rejections: Math.max(one.rejections, other.rejections),
      suspects: [...one.suspects, ...other.suspects],
      disabledAt: combine(Math.min, one.disabledAt, other.disabledAt),
      disabledReason: one.disabledReason ?? other.disabledReason,
      announcedAt: combine(Math.min, one.announcedAt, other.announcedAt),
      lost: one.lost + other.lost,
      lastDeliveredAt: combine(Math.max, one.lastDeliveredAt, other.lastDeliveredAt),
      lastFailedAt: combine(Math.max, one.lastFailedAt, other.lastFailedAt),
    }),
    first,
  );
}

function combine(
  select: (...values: number[]) => number,
  ...values: readonly (number | null)[]
): number | null {
  const known = values.filter((value) => value !== null);
  return known.length > 0 ? select(...known) : null;
}

/** Converts the health to attributes of a sink's item. Default values are not stored. */
export function healthAttributes(health: SinkHealth): {
  readonly [name: string]: number | string | undefined;
} {
  const { failures, waitUntil, rejections, suspects, lost, ...rest } = health;
  const nullable = Object.entries(rest).map(([name, value]) => [name, value ?? undefined]);
  return {
    failures: failures || undefined,
    waitUntil: waitUntil || undefined,
    rejections: rejections || undefined,
    suspects: suspects.length > 0 ? suspects : undefined,
    lost: lost || undefined,
    ...Object.fromEntries(nullable),
  };
}

/** Reports whether a sink can be drained now. */
export function isReady(
  sink: { readonly paused: boolean; readonly health: SinkHealth },
  now: number,
): boolean {
  const { disabledAt, waitUntil, lastFailedAt } = sink.health;
  // A wait that began in the future is over: the clock was set back since.
  const isWaiting = waitUntil > now && (lastFailedAt ?? 0) <= now + MAX_SKEW_MS;
  return !sink.paused && disabledAt === null && !isWaiting;
}
