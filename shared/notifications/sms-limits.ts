/** Limits of SMS: quiet hours of a recipient, and monthly segments of an account. */
import { type AccountRef, cellLog, keys } from '../storage/schema.ts';
import type { Item, Table, Write } from '../storage/table.ts';
import { getOffset, parseMinutes } from '../zone-times.ts';
import type { QuietHours } from './records.ts';

const MINUTE_MS = 60_000;
const DAY_MINUTES = 1440;
/** Retention of a month's use, days. */
const USE_DAYS = 400;

/**
 * Returns the first time from `now` on (epoch ms) that is outside quiet hours in the zone: `now` itself, or a full minute. If a clock
 * change skips the end of quiet hours, they end with that change. If it repeats some of them, those are quiet again.
 */
export function quietUntil(quiet: QuietHours | null, zone: string, now: number): number {
  if (!quiet) return now;
  const from = parseMinutes(quiet.from);
  const to = parseMinutes(quiet.to);
  const length = (to - from + DAY_MINUTES) % DAY_MINUTES;
  const isQuiet = (at: number): boolean =>
    (minuteOfDay(zone, at) - from + DAY_MINUTES) % DAY_MINUTES < length;
  let at = now;
  while (isQuiet(at)) {
    const minute = Math.floor(at / MINUTE_MS) * MINUTE_MS;
    const left = (to - minuteOfDay(zone, at) + DAY_MINUTES) % DAY_MINUTES;
    const end = minute + left * MINUTE_MS;
    // This assumes no clock change. If clocks go forward, quiet hours may end earlier, because an hour is skipped.
    const skipped = getOffset(zone, end) - getOffset(zone, at);
    at = end;
    for (let earlier = end - skipped * MINUTE_MS; earlier < end; earlier += MINUTE_MS) {
      if (earlier > minute && !isQuiet(earlier)) {
        at = earlier;
        break;
      }
    }
  }
  return at;
}

function minuteOfDay(zone: string, at: number): number {
  const minutes = Math.floor(at / MINUTE_MS) + getOffset(zone, at);
  return ((minutes % DAY_MINUTES) + DAY_MINUTES) % DAY_MINUTES;
}

/** SMS segments of an account in a month. */
export interface SmsUse {
  /** YYYY-MM, in UTC. */
  readonly month: string;
  readonly segments: number;
}

/** Default of the monthly SMS segments of all accounts of a region together. Each account has its own limit besides. */
export const REGION_MONTHLY_SEGMENTS = 100_000;

/** Returns the month of a time (epoch ms). */
export const toMonth = (at: number): string => new Date(at).toISOString().slice(0, 7);

/** Returns the SMS segments of an account in a month: sent, possibly sent, or being sent. */
export async function readSmsUse(table: Table, ref: AccountRef, month: string): Promise<SmsUse> {
  return { month, segments: getSegments(await table.get(keys.smsUse(ref, month))) };
}

/** Returns the write that adds segments to the given use, or subtracts them. It fails after concurrent modification. */
export function toSmsUseWrite(ref: AccountRef, use: SmsUse, by: number): Write {
  const ttl = Math.floor(Date.parse(`${use.month}-01T00:00:00Z`) / 1000) + USE_DAYS * 86_400;
  return {
    update: keys.smsUse(ref, use.month),
    set: { segments: use.segments + by, ttl },
    when: [
      [...(use.segments === 0 ? ['segments', 'absent or ='] : ['segments', '=']), use.segments] as never,
    ],
  };
}

/** Returns the writes that subtract the segments of an SMS that was not sent from the counts of its account and its region. */
export function toReturnWrites(table: Table, ref: AccountRef, { month, segments }: SmsUse): Promise<Write[]> {
  return Promise.all(
    [ref, cellLog(ref.region)].map(async (counted) =>
      toSmsUseWrite(counted, await readSmsUse(table, counted, month), -segments),
    ),
  );
}

function getSegments(item: Item | undefined): number {
  return typeof item?.segments === 'number' ? item.segments : 0;
}
