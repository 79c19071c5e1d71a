/** Calendar days (YYYY-MM-DD) and local times in the format of `datetime-local`. Independent of React. */

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

/** Formats a time (epoch ms) as local time: YYYY-MM-DDTHH:MM:SS. */
export function toLocalTime(atMs: number): string {
  return new Date(atMs - new Date(atMs).getTimezoneOffset() * 60_000).toISOString().slice(0, 19);
}

/** Parses a local time. Returns ISO 8601 in UTC; `undefined` if it is invalid. */
export function parseLocalTime(localTime: string): string | undefined {
  const ms = localTime === '' ? Number.NaN : new Date(localTime).getTime();
  return Number.isNaN(ms) ? undefined : new Date(ms).toISOString();
}
