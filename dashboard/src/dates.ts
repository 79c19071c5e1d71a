/** Calendar days (YYYY-MM-DD) and local times in the format of `datetime-local`. Independent of React. */
import { fromZoneTime, toZoneTime } from './zone.ts';
import { getZone } from './zone-choice.ts';

/** Returns the local calendar day of a time (epoch ms). */
export function toLocalDay(atMs: number): string {
  const at = new Date(atMs);
  const two = (number: number): string => String(number).padStart(2, '0');
  return `${at.getFullYear()}-${two(at.getMonth() + 1)}-${two(at.getDate())}`;
}

/** Adds a number of days, which may be negative, to a day. */
export function shiftDay(day: string, days: number): string {
  return new Date(Date.parse(day) + days * 86_400_000).toISOString().slice(0, 10);
}

/** Formats a time (epoch ms) as local time in the chosen zone: YYYY-MM-DDTHH:MM:SS. */
export const toLocalTime = (atMs: number): string => toZoneTime(atMs, getZone());

/** Parses a local time in a zone; default: the chosen one. Returns ISO 8601 in UTC; `undefined` if it is invalid. */
export function parseLocalTime(localTime: string, zone = getZone()): string | undefined {
  const ms = Date.parse(`${localTime}Z`);
  return Number.isNaN(ms) ? undefined : new Date(fromZoneTime(ms, zone)).toISOString();
}
