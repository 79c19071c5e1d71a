/**
 * Forecast of a job: when it is flagged as at risk, and its result (rule 22). Pure.
 *
 * A poll assesses a job when its status or its due date changes, and at the time at which it is at risk if nothing
 * changes: the job index wakes the poll then, as for the other timers. So flags do not depend on reads of the API.
 */
import type { EventDraft } from '../events/event.ts';
import { readDueTime } from './diff/overdue.ts';
import type { Durations, RiskResult } from './durations.ts';
import { findEntry } from './path.ts';
import { assessRisk, findRiskTime, type RiskInput } from './risk.ts';
import type { Forecast, Snapshot } from './snapshot.ts';
import { readTimes, sameTime } from './timestamps.ts';

/** Time before the due date at which a job of unknown risk is assessed once more (ms). */
const LAST_CHECK_MS = 2 * 86_400_000;

/** Returns the risk input of a listed, undispatched job. */
export function toRiskInput(snapshot: Snapshot, status: string | null, durations: Durations): RiskInput {
  return {
    dueAt: readDueTime(snapshot)?.at,
    entry: findEntry(snapshot, status),
    remaining: durations.of(status ?? '', 'remaining'),
  };
}

/** Returns whether a changed job must be assessed at a time (epoch ms). `before`: its stored snapshot. */
export function needsForecast(snapshot: Snapshot, before: Snapshot | undefined, now: number): boolean {
  const { path, forecast } = snapshot;
  if (isForecastDue(snapshot, now)) return true;
  const due = readOpenDueTime(snapshot);
  if (!due || !findEntry(snapshot, snapshot.list?.status ?? null)) return false;
  if (!forecast || !sameTime(forecast.dateDue, due.dateDue)) return due.at > now;
  if (forecast.flaggedAt !== undefined || forecast.counted) return false;
  return path?.at(-1)?.[2] !== before?.path?.at(-1)?.[2];
}

/** Returns whether the time of the next assessment of a job has come. */
export function isForecastDue({ forecast }: Pick<Snapshot, 'forecast'>, now: number): boolean {
  return forecast?.checkAt !== undefined && forecast.checkAt <= now;
}

/** Returns a job with its forecast at a time (epoch ms): its flag, or the time of the next assessment. */
export function updateForecast(snapshot: Snapshot, durations: Durations, now: number): Snapshot {
  const { forecast: before, ...rest } = snapshot;
  const forecast = forecastJob(snapshot, durations, now) ?? withoutCheck(before);
  return forecast === undefined ? rest : { ...rest, forecast };
}

/** Returns `undefined` for a job that is not assessed any more. */
function forecastJob(snapshot: Snapshot, durations: Durations, now: number): Forecast | undefined {
  const due = readOpenDueTime(snapshot);
  if (!due || due.at <= now) return undefined;
  const { dateDue } = due;
  const input = toRiskInput(snapshot, snapshot.list?.status ?? null, durations);
  const risk = assessRisk(input, now);
  if (risk.level === 'at-risk') return { dateDue, flaggedAt: now };
  const lastCheckAt = due.at - LAST_CHECK_MS;
  const isUnknown = risk.level === 'unknown' && lastCheckAt > now;
  const checkAt = findRiskTime(input, now) ?? (isUnknown ? lastCheckAt : undefined);
  return { dateDue, ...(checkAt === undefined ? {} : { checkAt }) };
}

function withoutCheck(forecast: Forecast | undefined): Forecast | undefined {
  if (!forecast) return undefined;
  const { checkAt: _, ...rest } = forecast;
  return rest;
}

/** Returns the due time of a job that is not dispatched and did not leave the list for a known reason. */
function readOpenDueTime(snapshot: Snapshot): ReturnType<typeof readDueTime> {
  return snapshot.settling === null ? readDueTime(snapshot) : undefined;
}

/**
 * Returns the result that the events of a job decide, once per due date: it became late, or it was dispatched before it
 * was late. Returns the forecast after it, too.
 */
export function decideResult(
  { forecast, emitted, detail }: Snapshot,
  events: readonly EventDraft[],
): { readonly forecast: Forecast | undefined; readonly result: RiskResult | undefined } {
  for (const { type, data } of events) {
    if (type !== 'job.overdue' && type !== 'job.dispatched') continue;
    const { dateDue } = data.job;
    const late = type === 'job.overdue' ? true : (data.late ?? null);
    if (dateDue === null || late === null) continue;
    const own = forecast && sameTime(forecast.dateDue, dateDue) ? forecast : undefined;
    // A job that was already overdue at the baseline is no result.
    const isKnown = type === 'job.dispatched' && sameTime(emitted.overdueFor, dateDue);
    if (own?.counted || isKnown) continue;
    const dueAt = readTimes(dateDue, detail?.timezone ?? null, { midnightIsEndOfDay: true })?.latest;
    const { flaggedAt } = own ?? {};
    const flaggedBeforeMs = flaggedAt === undefined || dueAt === undefined ? undefined : dueAt - flaggedAt;
    const after = { dateDue, ...(flaggedAt === undefined ? {} : { flaggedAt }), counted: true as const };
    return { forecast: after, result: { late, flaggedBeforeMs } };
  }
  return { forecast, result: undefined };
}
