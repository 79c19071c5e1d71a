/** Time zones in which times are shown. Independent of React and the browser. */
import { findRegionDefaults } from '../../shared/region-defaults.ts';

/** Returns the time zone of a region. `undefined` if the region is not known. */
export const toRegionZone = (region: string): string | undefined => findRegionDefaults(region)?.zone;

/** Returns the IANA name of the zone of a choice: `utc`, the id of a region, or anything else for that of the device. */
export function toZone(choice: string): string {
  const own = new Intl.DateTimeFormat().resolvedOptions().timeZone;
  return choice === 'utc' ? 'UTC' : (toRegionZone(choice) ?? own);
}

/** Returns the short name of a zone at a time (epoch ms), in the viewer's language: `MST`, `GMT+13`, `UTC`. */
export function formatZone(zone: string, atMs = Date.now()): string {
  const parts = toFormat({ timeZoneName: 'short' }, zone).formatToParts(atMs);
  return parts.find(({ type }) => type === 'timeZoneName')?.value ?? zone;
}

/**
 * Returns the current day (YYYY-MM-DD) of jobs in regions: in the zone of the region if there is one, otherwise in `zone`.
 * `isToday`: it is the current day both in `zone` and in all regions.
 */
export function findToday(
  regions: readonly string[],
  zone: string,
  nowMs: number,
): { readonly day: string; readonly isToday: boolean } {
  const zones = regions.map((region) => toRegionZone(region) ?? zone);
  const day = toZoneDay(nowMs, zones.length === 1 ? (zones[0] ?? zone) : zone);
  return { day, isToday: [zone, ...zones].every((one) => toZoneDay(nowMs, one) === day) };
}

const formats = new Map<string, Intl.DateTimeFormat>();

/** Returns a format in a zone, with the language and the clock of the viewer's locale unless a locale is given. */
export function toFormat(
  options: Intl.DateTimeFormatOptions,
  zone: string,
  locale?: string,
): Intl.DateTimeFormat {
  const key = `${locale} ${zone} ${JSON.stringify(options)}`;
  const format = formats.get(key) ?? new Intl.DateTimeFormat(locale, { ...options, timeZone: zone });
  formats.set(key, format);
  return format;
}

/** The locale with the order and the digits of ISO 8601. */
const ISO = 'sv';

/** Returns the calendar day (YYYY-MM-DD) of a time (epoch ms) in a zone. */
export const toZoneDay = (atMs: number, zone: string): string => toFormat({}, zone, ISO).format(atMs);

/** Returns the time (epoch ms) of an hour on the day after a time, in a zone. */
export function tomorrowAt(hour: number, nowMs: number, zone: string): number {
  const midnight = Date.parse(toZoneDay(nowMs, zone)) + 86_400_000;
  return fromZoneTime(midnight + hour * 3_600_000, zone);
}

/** Formats a time (epoch ms) as local time in a zone: YYYY-MM-DDTHH:MM:SS. */
export const toZoneTime = (atMs: number, zone: string): string =>
  toFormat({ dateStyle: 'short', timeStyle: 'medium' }, zone, ISO).format(atMs).replace(' ', 'T');

/** Returns the time (epoch ms) of a local time in a zone. `localMs`: the local time as if it were UTC. */
export function fromZoneTime(localMs: number, zone: string): number {
  const toOffset = (atMs: number): number => Date.parse(`${toZoneTime(atMs, zone)}Z`) - atMs;
  // In two steps, because the offset can change in between.
  return localMs - toOffset(localMs - toOffset(localMs));
}
