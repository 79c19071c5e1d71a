// How the sandbox writes and reads timestamps: instants shown in a location's zone, with or without their offset.

/**
 * How an instant is written: `offset` = local time with its offset (`2026-11-20T09:14:00-07:00`), `utc` = with `Z`,
 * `local` = local time with nothing behind it, so that only the job's location says what it means.
 */
export type DateStyle = 'offset' | 'utc' | 'local';

const HALF_HOUR_MS = 1_800_000;
export const HOUR_MS = 3_600_000;
export const DAY_MS = 24 * HOUR_MS;
const TWO_DIGITS = Array.from({ length: 60 }, (_, n) => String(n).padStart(2, '0'));
const days = new Map<number, string>();
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

/** Whether an instant (epoch ms) can be written: beyond the year 9999 it would be no timestamp that clients can read. */
export function isWritable(ms: number, zone: string | null, style: DateStyle): boolean {
  return !writeInstant(ms, zone, style).startsWith('+');
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
  return instantOf(asUtc, zone);
}

/** The day that a due date names when it says no time of day, or midnight: it then means that whole day. */
export function wholeDayOf(text: string): string | undefined {
  return /^(\d{4}-\d\d-\d\d)(?:T00:00(?::00(?:\.0+)?)?(?:Z|[+-]\d\d:?\d\d)?)?$/i.exec(text)?.[1];
}

/**
 * What a due date means: epoch ms of the instant it says, and of the instant at which it has passed. That is the same one,
 * or of a whole day the next midnight in `zone`, however long the day; 24 hours where the day is that of another offset.
 * NaN if unreadable.
 */
export function readDue(text: string, zone: string | null): { ms: number; byMs: number } {
  const ms = readInstant(text, zone);
  if (wholeDayOf(text) === undefined || Number.isNaN(ms)) return { ms, byMs: ms };
  const local = localMidnight(ms, zone);
  return { ms, byMs: instantOf(local, zone) === ms ? instantOf(local + DAY_MS, zone) : ms + DAY_MS };
}

/** Epoch ms of the local midnight that begins the day on which an instant falls in `zone`. */
export function startOfDay(ms: number, zone: string | null): number {
  return instantOf(localMidnight(ms, zone), zone);
}

/** Epoch ms of a time of day (`17:00`) in `zone`, on the day on which an instant falls there. */
export function atTimeOfDay(ms: number, zone: string | null, time: string): number {
  const [hours = 0, minutes = 0] = time.split(':').map(Number);
  return instantOf(localMidnight(ms, zone) + hours * HOUR_MS + minutes * 60_000, zone);
}

/** The calendar day on which an instant falls in `zone`, `2026-11-20`. */
export function dayIn(ms: number, zone: string | null): string {
  return isoWithoutZone(localMidnight(ms, zone)).slice(0, 10);
}

/** The midnight that begins an instant's day in `zone`, as if clocks there showed UTC. */
function localMidnight(ms: number, zone: string | null): number {
  return Math.floor((ms + offsetMinutes(ms, zone) * 60_000) / DAY_MS) * DAY_MS;
}

/** When clocks in `zone` show a local time that is given as if it were UTC. */
function instantOf(local: number, zone: string | null): number {
  // Two rounds settle on the right side of a change of offset.
  const guess = local - offsetMinutes(local, zone) * 60_000;
  return local - offsetMinutes(guess, zone) * 60_000;
}

/** What `toISOString` writes, without its zone; days are remembered, since it is slow for 20,000 jobs. */
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
