/** Calendar days, as YYYY-MM-DD, and times by this computer's clock, as `datetime-local` has them. Free of React. */

/** The day that this computer has at an instant (epoch ms). */
export function toLocalDay(atMs: number): string {
  const at = new Date(atMs);
  const two = (number: number): string => String(number).padStart(2, '0');
  return `${at.getFullYear()}-${two(at.getMonth() + 1)}-${two(at.getDate())}`;
}

/** The day that is so many days later, or earlier. */
export function shiftDay(day: string, days: number): string {
  return new Date(Date.parse(day) + days * 86_400_000).toISOString().slice(0, 10);
}

/** What this computer's clock shows at an instant (epoch ms): YYYY-MM-DDTHH:MM:SS. */
export function toLocalTime(atMs: number): string {
  return new Date(atMs - new Date(atMs).getTimezoneOffset() * 60_000).toISOString().slice(0, 19);
}

/** The instant, in ISO 8601, at which this computer's clock shows a time; `undefined` for what is none. */
export function parseLocalTime(localTime: string): string | undefined {
  const ms = localTime === '' ? Number.NaN : new Date(localTime).getTime();
  return Number.isNaN(ms) ? undefined : new Date(ms).toISOString();
}
