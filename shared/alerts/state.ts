/**
 * States of an alert rule, evaluated once a minute. Pure.
 *
 *   ok ── value > threshold ──▶ pending ── for `forMinutes` ──▶ firing ── value ≤ threshold ──▶ ok
 *
 * `announced` is the state that the recipients know. A message is due whenever it differs from the real one, outside quiet hours. So
 * deferred messages need no queue, and a restart repeats none.
 */
import { getOffset, parseMinutes } from '../zone-times.ts';
import { type AlertRuleRecord, type QuietHours, weekdays } from './rule-input.ts';

/** The state of a rule. Times are epoch ms. */
export interface AlertState {
  readonly status: 'ok' | 'pending' | 'firing';
  /** Start of the status. `null`: not evaluated yet. */
  readonly since: number | null;
  /** Last value. `null`: not known. */
  readonly value: number | null;
  /** Whether the last message reported the rule as firing. */
  readonly announced: boolean;
  readonly sentAt: number | null;
  /** Number of failed attempts to send the message that is due. */
  readonly failures: number;
  /** Time before which no message is sent, after a failure. */
  readonly retryAt: number;
  readonly problem: string | null;
}

/** Content of a message: the rule fires, still fires, or no longer fires. */
export type AlertReport = 'firing' | 'reminder' | 'resolved';

/** No failed attempts, so the next message is not delayed. */
const NO_FAILURES = { failures: 0, retryAt: 0 } as const;

/** The state before the first evaluation. */
export const INITIAL_STATE: AlertState = {
  ...{ status: 'ok', since: null, value: null, announced: false, sentAt: null },
  ...{ ...NO_FAILURES, problem: null },
};

const MINUTE_MS = 60_000;
/** Delays after failed attempts. The last one repeats. */
const RETRY_MS = [MINUTE_MS, 5 * MINUTE_MS, 15 * MINUTE_MS, 60 * MINUTE_MS];
/** Number of failed attempts after which the end of an alert is no longer reported. */
const MAX_RESOLVED_FAILURES = 5;

type Policy = Pick<
  AlertRuleRecord,
  'threshold' | 'forMinutes' | 'repeatMinutes' | 'notifyResolved' | 'quietHours'
>;

/**
 * Returns the state after an evaluation, and the message to send. The state assumes that it is sent; {@link recordFailure} takes that
 * back. `value` is `null` if it could not be read: the state stays.
 */
export function advance(
  rule: Policy,
  before: AlertState,
  value: number | null,
  now: number,
): { readonly state: AlertState; readonly report: AlertReport | null } {
  if (value === null) return { state: before, report: null };
  const status = nextStatus(rule, before, value > rule.threshold, now);
  const fires = status.status === 'firing';
  // Failures delay no message about another change.
  const retry = fires === (before.status === 'firing') ? {} : NO_FAILURES;
  const state = { ...before, value, ...status, ...retry };
  if (isQuiet(rule.quietHours, now)) {
    const isDropped = rule.quietHours?.action === 'drop' && state.status !== 'pending';
    return { state: isDropped ? { ...state, announced: fires } : state, report: null };
  }
  if (now < state.retryAt) return { state, report: null };
  if (fires && !state.announced) return send(state, 'firing', now);
  if (state.status === 'ok' && state.announced) {
    if (rule.notifyResolved) return send(state, 'resolved', now);
    return { state: { ...state, announced: false }, report: null };
  }
  const lastAt = Math.max(state.sentAt ?? 0, state.since ?? 0);
  const isDue = rule.repeatMinutes !== null && now - lastAt >= rule.repeatMinutes * MINUTE_MS;
  return fires && isDue ? send(state, 'reminder', now) : { state, report: null };
}

function nextStatus(
  { forMinutes }: Policy,
  before: AlertState,
  isExceeded: boolean,
  now: number,
): Pick<AlertState, 'status' | 'since'> {
  const { status, since } = before;
  if (!isExceeded)
    return status === 'ok' && since !== null ? { status, since } : { status: 'ok', since: now };
  if (status === 'firing') return { status, since };
  const exceededSince = status === 'pending' && since !== null ? since : now;
  return now - exceededSince >= forMinutes * MINUTE_MS
    ? { status: 'firing', since: now }
    : { status: 'pending', since: exceededSince };
}

function send(state: AlertState, report: AlertReport, now: number) {
  const sent = { announced: report !== 'resolved', sentAt: now, problem: null };
  // Failures count for one message. A reminder has its own.
  return { state: { ...state, ...sent }, report };
}

/** Returns the state without failures: after a message was sent, or for a new target. */
export function clearFailures(state: AlertState): AlertState {
  return { ...state, ...NO_FAILURES, problem: null };
}

/** Returns the state after a message could not be sent. `before`: the state before {@link advance}. */
export function recordFailure(
  state: AlertState,
  before: AlertState,
  report: AlertReport,
  { problem, now }: { readonly problem: string; readonly now: number },
): AlertState {
  const failures = state.failures + 1;
  const { sentAt } = before;
  if (report === 'resolved' && failures >= MAX_RESOLVED_FAILURES) {
    return { ...state, sentAt, problem, announced: false, ...NO_FAILURES };
  }
  const waitMs = RETRY_MS[Math.min(failures, RETRY_MS.length) - 1] ?? MINUTE_MS;
  return { ...state, sentAt, problem, failures, announced: before.announced, retryAt: now + waitMs };
}

const DAY_MINUTES = 1440;
/** 1970-01-01 was a Thursday. */
const FIRST_DAY = 3;

/** Returns whether a time (epoch ms) is within quiet hours, by the clock of their zone. */
export function isQuiet(quiet: QuietHours | null, now: number): boolean {
  if (!quiet) return false;
  const local = Math.floor(now / MINUTE_MS) + getOffset(quiet.zone, now);
  const minute = local - Math.floor(local / DAY_MINUTES) * DAY_MINUTES;
  const [from, to] = [quiet.from, quiet.to].map(parseMinutes) as [number, number];
  const length = (to - from + DAY_MINUTES) % DAY_MINUTES || DAY_MINUTES;
  if ((minute - from + DAY_MINUTES) % DAY_MINUTES >= length) return false;
  const day = Math.floor(local / DAY_MINUTES) + FIRST_DAY - (minute < from ? 1 : 0);
  const weekday = weekdays[((day % 7) + 7) % 7];
  return weekday !== undefined && quiet.days.includes(weekday);
}
