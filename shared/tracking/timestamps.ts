/** Time values from the dates and timestamps of the ordering API, which often lack an offset. */
import { tzOffset } from '@date-fns/tz/tzOffset';

const SHAPE = /^(\d{4})-(\d\d)-(\d\d)(?:[T ](\d\d):(\d\d)(?::(\d\d(?:\.\d+)?))?)?(Z|[+-]\d\d:?\d\d)?$/i;

/**
 * Zone in which a day ends last. A time without a known zone is read here, so that it is never taken for an
 * earlier time.
 */
const LATEST_ZONE = '-12:00';
const MINUTE_MS = 60_000;
const DAY_MS = 86_400_000;
/** From UTC+14, where a day begins first, to UTC−12. */
const ZONES_SPAN_MS = 26 * 60 * MINUTE_MS;
/** Other years are placeholders for "none" (0001, 9999): no job is created or due in them. */
const FIRST_YEAR = 1970;
const LAST_YEAR = 2100;

/** Range of times (epoch ms, inclusive) that a timestamp can mean, and the zone of the latest. */
export interface Reading {
  readonly earliest: number;
  readonly latest: number;
  readonly zone: string;
}

/**
 * Reads a timestamp in its own offset, else in the given IANA zone, else in any zone, with UTC−12 for the
 * latest time.
 *
 * A bare date can mean any time of its day. With `midnightIsEndOfDay` (due dates, rule 15), a bare date or
 * one with the time 00:00 means the end of that day. If that midnight is one of the given zone, the day is
 * the zone's day, however long it is. A local time that a clock change skips or repeats is read in every
 * possible way. Returns `undefined` if the text is not a date.
 */
export function readTimes(
  text: string,
  zone: string | null,
  options: { readonly midnightIsEndOfDay?: boolean } = {},
): Reading | undefined {
  return computeTimes(JSON.stringify([text, zone, options.midnightIsEndOfDay === true]));
}

const computeTimes = remember((args: string): Reading | undefined => {
  const [text, zone, midnightIsEndOfDay] = JSON.parse(args) as [string, string | null, boolean];
  const match = SHAPE.exec(text.trim());
  if (!match) return undefined;
  const [, year, month, day, hour, minute = '00', second = '00', offset] = match;
  const date = Date.UTC(Number(year), Number(month) - 1, Number(day));
  // A month of 13 or a 30th of February would roll over into another date.
  if (new Date(date).toISOString().slice(0, 10) !== `${year}-${month}-${day}`) return undefined;
  if (Number(year) < FIRST_YEAR || Number(year) > LAST_YEAR) return undefined;
  if (Number(hour ?? 0) > 23 || Number(minute) > 59 || Number(second) >= 61) return undefined;

  const midnight = hour === undefined || (hour === '00' && minute === '00' && Number(second) === 0);
  const endOfDay = midnight && midnightIsEndOfDay;
  const seconds = (Number(hour ?? 0) * 60 + Number(minute)) * 60 + Number(second);
  // Rounded up to whole milliseconds, without the error of multiplied fractions.
  const time = date + Math.ceil(Number((seconds * 1000).toFixed(3)));
  const last = endOfDay || hour === undefined ? date + DAY_MS : time;
  const first = endOfDay ? last : time;

  const changing = endOfDay && offset !== undefined && zone !== null && clocksChangeOn(zone, date, offset);
  const usedZone = (changing ? zone : (offset ?? zone)) ?? '';
  const latest = toTimes(usedZone, last);
  if (latest.length > 0) {
    return { earliest: Math.min(...toTimes(usedZone, first)), latest: Math.max(...latest), zone: usedZone };
  }
  const atMost = Math.max(...toTimes(LATEST_ZONE, last));
  return { earliest: atMost - (last - first) - ZONES_SPAN_MS, latest: atMost, zone: LATEST_ZONE };
});

/**
 * Returns an upstream date, or `null` if there is none: missing, empty, or a placeholder year such as 0001.
 * Text that is not a date is returned unchanged.
 */
export function presentDate(text: string | null): string | null {
  return text ? findPresentDate(text) : null;
}

const findPresentDate = remember((text: string): string | null => {
  const year = SHAPE.exec(text.trim())?.[1];
  return year !== undefined && (Number(year) < FIRST_YEAR || Number(year) > LAST_YEAR) ? null : text;
});

/**
 * Returns a timestamp in a form that is equal for all spellings (rule 6): with an offset epoch ms, otherwise
 * the local time to the millisecond, with 00:00 for a bare date. Other text is returned unchanged.
 */
export function comparableTime(text: string | null): string | number | null {
  return text ? toComparable(text) : null;
}

const toComparable = remember((text: string): string | number | null => {
  const date = presentDate(text);
  if (date === null) return null;
  const { local, offset } = parse(date) ?? {};
  if (local === undefined) return date;
  return offset === undefined
    ? new Date(local).toISOString().slice(0, -1)
    : (toTimes(offset, local)[0] ?? date);
});

/** Caches results for recent texts: a poll reads the same dates as the previous one, once per job. */
function remember<T>(compute: (text: string) => T): (text: string) => T {
  const results = new Map<string, T>();
  return (text) => {
    const known = results.get(text);
    if (known !== undefined) return known;
    const result = compute(text);
    // Longer texts are neither dates nor zones. They are not kept, so that the memory is bounded.
    if (text.length > 100) return result;
    if (results.size >= 10_000) results.clear();
    results.set(text, result);
    return result;
  };
}

/** Returns whether two timestamps are equal (rule 6). If only one has an offset, the local times decide. */
export function sameTime(a: string | null, b: string | null): boolean {
  if (a === b) return true;
  const [one, other] = [presentDate(a), presentDate(b)].map((text) => text && parse(text));
  if (one && other && (one.offset === undefined) !== (other.offset === undefined))
    return one.local === other.local;
  return comparableTime(a) === comparableTime(b);
}

/** Returns the local time that a timestamp contains (ms, as if it were UTC), and its offset. */
function parse(text: string): { readonly local: number; readonly offset: string | undefined } | undefined {
  const [, year, month, day, hour = '0', minute = '0', second = '0', offset] = SHAPE.exec(text.trim()) ?? [];
  if (year === undefined) return undefined;
  const seconds = (Number(hour) * 60 + Number(minute)) * 60;
  const local = Date.UTC(Number(year), Number(month) - 1, Number(day)) + seconds * 1000;
  return { local: local + Math.floor(Number(second) * 1000 + 1e-6), offset };
}

/** Returns the offset of a zone from UTC at a time (min). `NaN` for an unknown zone, also if it is named like a property of every object. */
function offsetIn(zone: string, time: number): number {
  const minutes: unknown = tzOffset(zone, new Date(time));
  return typeof minutes === 'number' ? minutes : Number.NaN;
}

/** Returns the day (YYYY-MM-DD) of a time (epoch ms) in an IANA zone, or in UTC if the zone is unknown. */
export function dayIn(time: number, zone: string | null): string {
  const minutes = zone === null ? 0 : offsetIn(zone, time);
  return new Date(time + (Number.isNaN(minutes) ? 0 : minutes * MINUTE_MS)).toISOString().slice(0, 10);
}

/**
 * Returns the time (epoch ms) at which a number of working days, Monday to Friday in an IANA zone, has passed since
 * another: the same time of day that many working days later. A time at a weekend counts as the end of the weekend.
 * An unknown zone is read as UTC−12.
 */
export function addWorkingDays(
  since: number,
  days: number,
  zone: string | null,
): { readonly at: number; readonly zone: string } {
  const minutes = zone === null ? Number.NaN : offsetIn(zone, since);
  const known = zone !== null && !Number.isNaN(minutes) ? zone : LATEST_ZONE;
  const local = since + (known === zone ? minutes : -12 * 60) * MINUTE_MS;
  let day = Math.floor(local / DAY_MS);
  const time = isWeekend(day) ? 0 : local - day * DAY_MS;
  while (isWeekend(day)) day += 1;
  for (let left = days; left > 0; left -= 1) {
    day += 1;
    while (isWeekend(day)) day += 1;
  }
  return { at: Math.max(...toTimes(known, day * DAY_MS + time)), zone: known };
}

/** Returns whether a day, counted from 1970-01-01, is a Saturday or a Sunday. */
function isWeekend(day: number): boolean {
  return [2, 3].includes(((day % 7) + 7) % 7);
}

/**
 * Returns the day (YYYY-MM-DD) that a timestamp names. A timestamp with an offset and a time of day is
 * converted to the zone, if known. Any other names its day literally. Returns `undefined` if the text is
 * not a date.
 */
export function dayNamed(text: string, zone: string | null): string | undefined {
  const reading = readTimes(text, zone);
  if (!reading) return undefined;
  const written = text.trim().slice(0, 10);
  return zone === null || !hasOffset(text) || isMidnight(text) ? written : dayIn(reading.earliest, zone);
}

/**
 * Returns whether an action happened after the due time of another timestamp (rule 15), and `true` only if
 * that is certain. A date without a time of day can be any time of that day. Returns `null` if either is
 * not a date.
 */
export function isAfterDue(done: string, due: string, zone: string | null): boolean | null {
  const delay = readDelay(done, due, zone);
  return delay === undefined ? null : isPositive(delay.least, done);
}

/** Lateness of an action. */
interface Lateness {
  /** `null`: unknown. */
  readonly late: boolean | null;
  /** Minimum time from the due time to the action (s). `null` unless late. */
  readonly lateBySeconds: number | null;
}

/**
 * Returns whether an action happened after the due time (rule 15), and by how much. Unknown if either is not
 * a date, or if the result depends on the time of day or the zone that they lack.
 */
export function toLateness(done: string | null, due: string | null, zone: string | null): Lateness {
  const delay = done === null || due === null ? undefined : readDelay(done, due, zone);
  if (done === null || delay === undefined) return { late: null, lateBySeconds: null };
  if (isPositive(delay.least, done)) return { late: true, lateBySeconds: Math.floor(delay.least / 1000) };
  return { late: delay.most <= 0 ? false : null, lateBySeconds: null };
}

/** Returns the range of the time from the due time to the action (ms). A bare date is any time of its day. */
function readDelay(
  done: string,
  due: string,
  zone: string | null,
): { readonly least: number; readonly most: number } | undefined {
  // Two local times of the same place can be compared without knowing the zone.
  const read = zone ?? (hasOffset(done) || hasOffset(due) ? null : 'UTC');
  const first = readTimes(done, read);
  const last = readTimes(done, read, { midnightIsEndOfDay: true });
  const end = readTimes(due, read, { midnightIsEndOfDay: true });
  if (!first || !last || !end) return undefined;
  return { least: first.earliest - end.latest, most: last.latest - end.earliest };
}

/** Returns whether a delay is certainly positive. An action on a bare date is after its midnight. */
function isPositive(delayMs: number, done: string): boolean {
  return isMidnight(done) ? delayMs >= 0 : delayMs > 0;
}

function hasOffset(text: string): boolean {
  return SHAPE.exec(text.trim())?.[7] !== undefined;
}

function isMidnight(text: string): boolean {
  const [, , , , hour = '00', minute = '00', second = '00'] = SHAPE.exec(text.trim()) ?? [];
  return Number(hour) + Number(minute) + Number(second) === 0;
}

/**
 * Returns whether a midnight with an offset is a midnight of the zone, and the next midnight there has
 * another offset.
 */
function clocksChangeOn(zone: string, midnight: number, offset: string): boolean {
  const shows = (local: number) => toTimes(offset, local).some((time) => toTimes(zone, local).includes(time));
  return shows(midnight) && !shows(midnight + DAY_MS);
}

/**
 * Returns the times at which clocks in a zone show a local time, given as if it were UTC. Empty for an
 * unknown zone.
 */
function toTimes(zone: string, local: number): number[] {
  const fixed = /^([+-])(\d\d):?(\d\d)$/.exec(zone.toUpperCase() === 'Z' ? '+00:00' : zone);
  if (fixed) {
    const minutes = Number(fixed[2]) * 60 + Number(fixed[3]);
    return [local - (fixed[1] === '-' ? -minutes : minutes) * MINUTE_MS];
  }
  // Clocks change at most once in two days, so there are no offsets but those before and after.
  const times = [local - DAY_MS, local + DAY_MS].map((around) => local - offsetIn(zone, around) * MINUTE_MS);
  if (times.some(Number.isNaN)) return [];
  const valid = times.filter((time) => time + offsetIn(zone, time) * MINUTE_MS === local);
  return valid.length > 0 ? valid : times;
}
