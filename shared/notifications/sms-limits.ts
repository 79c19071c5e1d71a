/** What SMS are held back by: the hours in which a recipient is left alone, and what an account may spend in a month. */
import { tzOffset } from '@date-fns/tz/tzOffset';
import { type AccountRef, keys } from '../table/schema.ts';
import type { Item, Table, Write } from '../table/table.ts';
import type { QuietHours } from './model.ts';

const MINUTE_MS = 60_000;
const DAY_MINUTES = 1440;
/** Use stays for a while after its month, to be looked at. */
const USE_DAYS = 400;

/**
 * The first instant from `now` on (epoch ms) at which the clock of the zone is outside quiet hours: `now` itself, or a full
 * minute. Where a change of clocks skips the end of quiet hours, they end with that change; where it brings some of them back,
 * they are quiet again.
 */
export function quietUntil(quiet: QuietHours | null, zone: string, now: number): number {
  if (!quiet) return now;
  const from = minutesOf(quiet.from);
  const to = minutesOf(quiet.to);
  const length = (to - from + DAY_MINUTES) % DAY_MINUTES;
  const isQuiet = (at: number): boolean =>
    (minuteOfDay(zone, at) - from + DAY_MINUTES) % DAY_MINUTES < length;
  let at = now;
  while (isQuiet(at)) {
    const minute = Math.floor(at / MINUTE_MS) * MINUTE_MS;
    const left = (to - minuteOfDay(zone, at) + DAY_MINUTES) % DAY_MINUTES;
    const end = minute + left * MINUTE_MS;
    // As long as the clocks stay as they are. If they go forward, it may be over earlier: an hour is gone.
    const skipped = offsetOf(zone, end) - offsetOf(zone, at);
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

function minutesOf(time: string): number {
  const [hours = '0', minutes = '0'] = time.split(':');
  return Number(hours) * 60 + Number(minutes);
}

function minuteOfDay(zone: string, at: number): number {
  const minutes = Math.floor(at / MINUTE_MS) + offsetOf(zone, at);
  return ((minutes % DAY_MINUTES) + DAY_MINUTES) % DAY_MINUTES;
}

/** Minutes ahead of UTC; a zone that nobody knows is UTC. */
function offsetOf(zone: string, at: number): number {
  const offset = tzOffset(zone, new Date(at));
  return Number.isFinite(offset) ? offset : 0;
}

/** SMS segments of an account in a month. */
export interface SmsUse {
  /** YYYY-MM, by UTC. */
  readonly month: string;
  readonly segments: number;
}

/** SMS segments that all accounts of a region may use in a month, unless the operator says otherwise: each account sets its own limit. */
export const REGION_MONTHLY_SEGMENTS = 100_000;

/** The month that an instant (epoch ms) is in. */
export const monthOf = (at: number): string => new Date(at).toISOString().slice(0, 7);

/** How many SMS segments an account has used in a month: those that were sent, may have been, or are being sent. */
export async function readSmsUse(table: Table, ref: AccountRef, month: string): Promise<SmsUse> {
  return { month, segments: segmentsOf(await table.get(keys.smsUse(ref, month))) };
}

/** Adds segments to what was read, or takes them back, as a write that fails when somebody else was faster. */
export function changeSmsUse(ref: AccountRef, use: SmsUse, by: number): Write {
  const ttl = Math.floor(Date.parse(`${use.month}-01T00:00:00Z`) / 1000) + USE_DAYS * 86_400;
  return {
    update: keys.smsUse(ref, use.month),
    set: { segments: use.segments + by, ttl },
    when: [
      [...(use.segments === 0 ? ['segments', 'absent or ='] : ['segments', '=']), use.segments] as never,
    ],
  };
}

function segmentsOf(item: Item | undefined): number {
  return typeof item?.segments === 'number' ? item.segments : 0;
}
