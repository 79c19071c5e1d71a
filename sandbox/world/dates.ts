// Parses and formats timestamps: epoch ms, shown in a location's zone, with or without offset.

import { tzOffset } from '@date-fns/tz/tzOffset';

const HALF_HOUR_MS = 1_800_000;
export const HOUR_MS = 3_600_000;
export const DAY_MS = 24 * HOUR_MS;
const TWO_DIGITS = Array.from({ length: 60 }, (_, n) => String(n).padStart(2, '0'));
const days = new Map<number, string>();
const offsetCache = new Map<string, Map<number, number>>();

/**
 * Minutes that `zone` is ahead of UTC at a time (epoch ms); 0 for an absent or unknown zone. Cached per half hour, the smallest
 * step of any zone, because Intl is slow for 20,000 jobs.
 */
function offsetMinutes(ms: number, zone: string | null): number {
  if (zone === null || !Number.isFinite(ms)) return 0;
  let cache = offsetCache.get(zone);
  if (!cache) {
    cache = new Map();
    offsetCache.set(zone, cache);
  }
  const bucket = Math.floor(ms / HALF_HOUR_MS);
  let minutes = cache.get(bucket);
  if (minutes === undefined) {
    // Tests also serve unknown zones.
    minutes = tzOffset(zone, new Date(ms)) || 0;
    if (cache.size > 20_000) cache.clear();
    cache.set(bucket, minutes);
  }
  return minutes;
}

/**
 * Formats a time (epoch ms) as local time with offset (`2026-11-20T09:14:00-07:00`); with milliseconds only if they are not 0.
 */
export function formatTimestamp(ms: number, zone: string | null): string {
  const minutes = offsetMinutes(ms, zone);
  return isoWithoutZone(ms + minutes * 60_000) + offsetText(minutes);
}

/** Whether a time (epoch ms) can be formatted: timestamps after the year 9999 are unreadable for clients. */
export function isWritable(ms: number, zone: string | null): boolean {
  return !formatTimestamp(ms, zone).startsWith('+');
}

/** Formats the day of a time in `zone` as its midnight: the form of a due date without a time of day. */
export function formatDay(ms: number, zone: string | null): string {
  return formatTimestamp(startOfDay(ms, zone), zone);
}

/** Epoch ms of a timestamp: by its own offset, otherwise in `zone` (UTC if null); NaN if it is invalid. */
export function parseTimestamp(text: string, zone: string | null): number {
  if (/(?:Z|[+-]\d\d:?\d\d)$/i.test(text.slice(10))) return Date.parse(text);
  const asUtc = Date.parse(`${text.length === 10 ? `${text}T00:00:00` : text}Z`);
  if (Number.isNaN(asUtc)) return asUtc;
  return toEpochMs(asUtc, zone);
}

/** The day of a due date that has no time of day, or midnight: such a date includes the whole day. */
export function parseWholeDay(text: string): string | undefined {
  return /^(\d{4}-\d\d-\d\d)(?:T00:00(?::00(?:\.0+)?)?(?:Z|[+-]\d\d:?\d\d)?)?$/i.exec(text)?.[1];
}

/**
 * Epoch ms of a due date and of the time at which it has passed. The two are equal, except for a whole day: it passes at the
 * next midnight in `zone`, or after 24 hours if the date has another offset. NaN if it is invalid.
 */
export function parseDue(text: string, zone: string | null): { ms: number; byMs: number } {
  const ms = parseTimestamp(text, zone);
  if (parseWholeDay(text) === undefined || Number.isNaN(ms)) return { ms, byMs: ms };
  const local = localMidnight(ms, zone);
  return { ms, byMs: toEpochMs(local, zone) === ms ? toEpochMs(local + DAY_MS, zone) : ms + DAY_MS };
}

/** Epoch ms of the local midnight that starts the day of a time in `zone`. */
export function startOfDay(ms: number, zone: string | null): number {
  return toEpochMs(localMidnight(ms, zone), zone);
}

/** Epoch ms of a time of day (`17:00`) in `zone`, on the day of the given time. */
export function atTimeOfDay(ms: number, zone: string | null, time: string): number {
  const [hours = 0, minutes = 0] = time.split(':').map(Number);
  return toEpochMs(localMidnight(ms, zone) + hours * HOUR_MS + minutes * 60_000, zone);
}

/** The calendar day of a time in `zone`, `2026-11-20`. */
export function dayIn(ms: number, zone: string | null): string {
  return isoWithoutZone(localMidnight(ms, zone)).slice(0, 10);
}

/** The midnight that starts the day of a time in `zone`, as if clocks there showed UTC. */
function localMidnight(ms: number, zone: string | null): number {
  return Math.floor((ms + offsetMinutes(ms, zone) * 60_000) / DAY_MS) * DAY_MS;
}

/** Converts a local time in `zone`, given as if it were UTC, to epoch ms. */
function toEpochMs(local: number, zone: string | null): number {
  // Two rounds settle on the right side of a change of offset.
  const guess = local - offsetMinutes(local, zone) * 60_000;
  return local - offsetMinutes(guess, zone) * 60_000;
}

/** `toISOString` without the zone; days are cached, because it is slow for 20,000 jobs. */
function isoWithoutZone(ms: number): string {
  const whole = Math.trunc(ms);
  const day = Math.floor(whole / DAY_MS);
  let date = days.get(day);
  if (date === undefined) {
    date = new Date(day * DAY_MS).toISOString().split('T')[0] ?? '';
    if (days.size > 20_000) days.clear();
    days.set(day, date);
  }
  const inDay = whole - day * DAY_MS;
  const pair = (unitMs: number, count: number) => TWO_DIGITS[Math.floor(inDay / unitMs) % count];
  const text = `${date}T${pair(HOUR_MS, 24)}:${pair(60_000, 60)}:${pair(1000, 60)}`;
  return inDay % 1000 === 0 ? text : `${text}.${String(inDay % 1000).padStart(3, '0')}`;
}

function offsetText(minutes: number): string {
  const size = Math.abs(minutes);
  const pad = (n: number) => String(n).padStart(2, '0');
  return `${minutes < 0 ? '-' : '+'}${pad(Math.floor(size / 60))}:${pad(size % 60)}`;
}
