// How the sandbox writes and reads timestamps: instants shown in a location's zone, with or without their offset.

/**
 * How an instant is written: `offset` = local time with its offset (`2026-11-20T09:14:00-07:00`), `utc` = with `Z`,
 * `local` = local time with nothing behind it, so that only the job's location says what it means.
 */
export type DateStyle = 'offset' | 'utc' | 'local';

const HALF_HOUR_MS = 1_800_000;
const DAY_MS = 86_400_000;
const offsetFormats = new Map<string, Intl.DateTimeFormat | null>();
const offsetCache = new Map<string, Map<number, number>>();

/**
 * Minutes that `zone` is ahead of UTC at an instant (epoch ms); 0 for an absent or unknown zone.
 * Remembered per half hour, the finest step at which any zone changes, because Intl is slow for 20,000 jobs.
 */
function offsetMinutes(ms: number, zone: string | null): number {
  if (zone === null || !Number.isFinite(ms)) return 0;
  const format = offsetFormat(zone);
  if (!format) return 0;
  let cache = offsetCache.get(zone);
  if (!cache) {
    cache = new Map();
    offsetCache.set(zone, cache);
  }
  const bucket = Math.floor(ms / HALF_HOUR_MS);
  let minutes = cache.get(bucket);
  if (minutes === undefined) {
    const text = format.formatToParts(ms).find((part) => part.type === 'timeZoneName')?.value ?? 'GMT';
    const [, sign, hours, mins] = /^GMT([+-])(\d\d):(\d\d)$/.exec(text) ?? [];
    minutes = sign ? (sign === '-' ? -1 : 1) * (Number(hours) * 60 + Number(mins)) : 0;
    if (cache.size > 20_000) cache.clear();
    cache.set(bucket, minutes);
  }
  return minutes;
}

/** Writes an instant (epoch ms) in a style; milliseconds only when there are any. */
export function writeInstant(ms: number, zone: string | null, style: DateStyle): string {
  const minutes = style === 'utc' ? 0 : offsetMinutes(ms, zone);
  const local = isoWithoutZone(ms + minutes * 60_000);
  if (style === 'utc') return `${local}Z`;
  return style === 'local' ? local : local + offsetText(minutes);
}

/** Writes the calendar day on which an instant falls in `zone`, as its midnight: how a due date without a time looks. */
export function writeDay(ms: number, zone: string | null, style: DateStyle): string {
  return writeInstant(startOfDay(ms, zone), zone, style);
}

/** Epoch ms of the instant a timestamp means: by its own offset, else in `zone` (UTC without one); NaN if unreadable. */
export function readInstant(text: string, zone: string | null): number {
  if (/(?:Z|[+-]\d\d:?\d\d)$/i.test(text.slice(10))) return Date.parse(text);
  const asUtc = Date.parse(`${text.length === 10 ? `${text}T00:00:00` : text}Z`);
  if (Number.isNaN(asUtc)) return asUtc;
  // Two rounds settle on the right side of a change of offset.
  const guess = asUtc - offsetMinutes(asUtc, zone) * 60_000;
  return asUtc - offsetMinutes(guess, zone) * 60_000;
}

/** Epoch ms at which a due date has passed: the instant itself, or the end of that day when it says midnight. */
export function dueInstant(text: string, zone: string | null): number {
  const ms = readInstant(text, zone);
  return /^\d{4}-\d\d-\d\d(?:T00:00(?::00(?:\.0+)?)?(?:Z|[+-]\d\d:?\d\d)?)?$/i.test(text) ? ms + DAY_MS : ms;
}

/** Epoch ms of the local midnight that begins the day on which an instant falls in `zone`. */
export function startOfDay(ms: number, zone: string | null): number {
  const local = ms + offsetMinutes(ms, zone) * 60_000;
  return readInstant(isoWithoutZone(local - (((local % DAY_MS) + DAY_MS) % DAY_MS)), zone);
}

function isoWithoutZone(ms: number): string {
  const iso = new Date(ms).toISOString();
  return iso.endsWith('.000Z') ? iso.slice(0, -5) : iso.slice(0, -1);
}

function offsetText(minutes: number): string {
  const size = Math.abs(minutes);
  const pad = (n: number) => String(n).padStart(2, '0');
  return `${minutes < 0 ? '-' : '+'}${pad(Math.floor(size / 60))}:${pad(size % 60)}`;
}

function offsetFormat(zone: string): Intl.DateTimeFormat | null {
  let format = offsetFormats.get(zone);
  if (format === undefined) {
    try {
      format = new Intl.DateTimeFormat('en-US', { timeZone: zone, timeZoneName: 'longOffset' });
    } catch {
      format = null; // A zone nobody knows is something a test may want to serve.
    }
    offsetFormats.set(zone, format);
  }
  return format;
}
