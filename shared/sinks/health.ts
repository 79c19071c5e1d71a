/**
 * How a sink is doing, and what that means for it: one state, whatever the number of accounts it follows. Pure.
 *
 *   taking events ──failure──▶ waiting ──time──▶ probing ──success──▶ taking events
 *                                 ▲                 │failure
 *                                 └─── longer ──────┘        nothing but failure for days, or told so ──▶ disabled
 *
 * A receiver that breaks on one event answers like one that is down. Which of the two it is shows when another event is
 * tried: events whose failure stopped the sink are its suspects, the next probe is another event if there is one, and a
 * suspect that fails again although others were taken is set aside as if it had been refused (decision 11).
 */
import type { Item } from '../table/table.ts';

/** What is kept of a sink between drains. Instants are epoch ms. */
export interface SinkHealth {
  /** Failures of the sink since it last took an event. */
  readonly failures: number;
  /** Until when the sink is left alone; 0 when it isn't. */
  readonly waitUntil: number;
  /** The last failure in words, while it has not taken an event since. */
  readonly problem: string | null;
  /** The first failure since it last took an event. */
  readonly failingSince: number | null;
  /** Events set aside since it last took one. */
  readonly rejections: number;
  /** The ids of events whose failure made the sink wait: the last {@link MAX_SUSPECTS}. */
  readonly suspects: readonly string[];
  /** Since when it gets no more events until somebody enables it. */
  readonly disabledAt: number | null;
  readonly disabledReason: string | null;
  /** When it was said to be disabled, until it is said to have recovered. */
  readonly announcedAt: number | null;
  /** Events that fell out of retention before it had taken them. */
  readonly lost: number;
  readonly lastDeliveredAt: number | null;
  readonly lastFailedAt: number | null;
}

/** What one drain saw of the sink. */
export interface Seen {
  /** When it last took an event; null if it took none. */
  readonly deliveredAt: number | null;
  /** The failure that ended the drain. */
  readonly failure: Failure | null;
  /** As they stand at the end of the drain. */
  readonly rejections: number;
  readonly suspects: readonly string[];
  /** The receiver wants no more events: why. */
  readonly disable: string | null;
}

/** A failure of the sink as a whole. */
export interface Failure {
  readonly reason: string;
  /** For how long the receiver asked to be left alone. */
  readonly afterMs?: number | undefined;
}

/** What is done about failures. */
export interface FailurePolicy {
  /** Waits before the n-th retry; the last one repeats. */
  readonly retrySeconds: readonly number[];
  /** After so long of nothing but failure a sink is disabled. */
  readonly disableAfterSeconds: number;
}

/** The waits before retries: the schedule of the Standard Webhooks specification. */
export const DEFAULT_RETRY_SECONDS = [5, 300, 1800, 7200, 18_000, 36_000, 50_400, 72_000, 86_400];
export const DEFAULT_DISABLE_AFTER_SECONDS = 5 * 86_400;
/** Events set aside in a row, with none taken in between, after which it is the sink that fails. */
export const MAX_REJECTIONS = 5;
/** Events under suspicion at most; of more, the latest. */
export const MAX_SUSPECTS = 5;
/** Waits are spread by so much either way, so that sinks that failed together don't come back together. */
const JITTER = 0.2;
/** No Retry-After is honoured beyond this. */
export const MAX_RETRY_AFTER_MS = 86_400_000;

/** The wait before retry `n` (from 1) in ms, with jitter; `random` is from 0 to 1. */
export function waitOf(retrySeconds: readonly number[], n: number, random: number): number {
  const scheduled = 1000 * (retrySeconds[Math.min(n, retrySeconds.length) - 1] ?? 60);
  return scheduled * (1 - JITTER + 2 * JITTER * random);
}

/** How the sink is after a drain. */
export function healthAfter(
  before: SinkHealth,
  seen: Seen,
  policy: FailurePolicy,
  now: number,
  random: number,
): SinkHealth {
  const took = seen.deliveredAt !== null;
  const health: SinkHealth = {
    ...before,
    failures: took ? 0 : before.failures,
    failingSince: took ? null : before.failingSince,
    problem: took ? null : before.problem,
    waitUntil: 0,
    rejections: seen.rejections,
    suspects: seen.suspects,
    lastDeliveredAt: seen.deliveredAt ?? before.lastDeliveredAt,
  };
  const failed = seen.failure ? afterFailure(health, seen.failure, policy, now, random) : health;
  return seen.disable === null ? failed : disabled(failed, seen.disable, now);
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
    waitUntil: now + Math.max(waitOf(policy.retrySeconds, failures, random), asked),
  };
  if (now - failingSince < policy.disableAfterSeconds * 1000) return waiting;
  const days = Math.round((now - failingSince) / 8_640_000) / 10;
  return disabled(waiting, `Nothing but failures for ${days} days. The last one: ${failure.reason}`, now);
}

function disabled(health: SinkHealth, reason: string, now: number): SinkHealth {
  return { ...health, waitUntil: 0, disabledAt: now, disabledReason: reason };
}

/** A sink that somebody enabled: it goes on where it stood, with a probe first. */
export function enabled(health: SinkHealth): SinkHealth {
  return {
    ...health,
    failures: Math.max(1, health.failures),
    waitUntil: 0,
    failingSince: null,
    disabledAt: null,
    disabledReason: null,
  };
}

/** The health in a sink's item. */
export function toHealth(item: Item): SinkHealth {
  const number = (name: string): number | null => (typeof item[name] === 'number' ? item[name] : null);
  const text = (name: string): string | null => (typeof item[name] === 'string' ? item[name] : null);
  return {
    failures: number('failures') ?? 0,
    waitUntil: number('waitUntil') ?? 0,
    problem: text('problem'),
    failingSince: number('failingSince'),
    rejections: number('rejections') ?? 0,
    suspects: Array.isArray(item.suspects) ? (item.suspects as readonly string[]) : [],
    disabledAt: number('disabledAt'),
    disabledReason: text('disabledReason'),
    announcedAt: number('announcedAt'),
    lost: number('lost') ?? 0,
    lastDeliveredAt: number('lastDeliveredAt'),
    lastFailedAt: number('lastFailedAt'),
  };
}

/** The health as attributes of a sink's item; what says nothing is not stored. */
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

/** Whether a sink can be drained now. */
export function isReady(
  sink: { readonly paused: boolean; readonly health: SinkHealth },
  now: number,
): boolean {
  return !sink.paused && sink.health.disabledAt === null && sink.health.waitUntil <= now;
}
