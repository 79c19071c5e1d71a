/*
 * Delivery options and earliest dispatch dates. Where the contract is silent, the sandbox chose:
 *
 * - The first delivery option is collection. The carriers follow, from the cheapest to the fastest.
 * - `GET /Jobs/earliest-ship-date`: the dispatch is at 17:00 at the location. Work starts on the first working day. For
 *   orders before 14:00, this can be the same day. It takes the number of working days of the slowest process, and one
 *   more day for each full thousand of open jobs per location.
 * - Without process codes, the earliest ship date is that of the fastest process. Working days are Monday to Friday,
 *   except the public holidays of the location and the days in `world.closures`.
 * - The response is 404 for an unknown process code, if closures last more than half a year, and if the user of the
 *   token has been deleted.
 * - `dateExclusions` contains the non-working days of the next 90 days, including today. Adjacent days form one range.
 */

import type { DeliveryOption, ShipDate } from '../../shared/ordering/contract/jobs.ts';
import { listProcessCodes } from './catalogue.ts';
import { atTimeOfDay, dayIn, formatTimestamp, parseDue, parseTimestamp, parseWholeDay } from './dates.ts';
import { addDays, type Day, isDayOff } from './holidays.ts';
import type { AccountFacts } from './records.ts';
import { REGION_FACTS, type RegionCode, type Site } from './regions.ts';

/** Orders until this time start on the same day; local time of the location. */
const CUT_OFF = '14:00';
/** Daily dispatch time, and so the latest due time; local time of the location. */
export const DISPATCH_TIME = '17:00';
const JOBS_PER_DAY_AND_PLACE = 1000;
/** Number of days to search for a date, and to list exclusions for. */
const HORIZON_DAYS = 183;
const EXCLUSION_DAYS = 90;

/** Working days of a process. Default: 2. */
const LEAD_DAYS: Readonly<Record<string, number>> = { DTF: 1, GSH: 1, SCR: 3, EMB: 5, STK: 1, EQP: 1 };
const QUICKEST_LEAD_DAYS = 1;
const USUAL_LEAD_DAYS = 2;

/** The ways of delivery in a region, by rank. */
export function listDeliveryOptions(region: RegionCode): readonly DeliveryOption[] {
  return REGION_FACTS[region].deliveryOptions.map((option) => ({
    ...option,
    value: option.code,
    // Collected parcels need no label.
    deliveryLabelEnabled: !option.isCollection,
  }));
}

/** Finds a delivery option of the region by code or label. */
export function findDeliveryOption(region: RegionCode, name: string | null): DeliveryOption | undefined {
  return name === null
    ? undefined
    : listDeliveryOptions(region).find(({ code, label }) => code === name || label === name);
}

/** All locations of a region, the default one first. Only active, non-virtual ones produce jobs. */
export function listLocations(region: RegionCode): readonly Site[] {
  return [...REGION_FACTS[region].locations, ...REGION_FACTS[region].otherLocations];
}

/** A soonest day of dispatch. */
interface EarliestShipDate {
  /** Epoch ms of the dispatch. */
  readonly ms: number;
  /** Its day at the place. */
  readonly day: Day;
  readonly location: Site;
}

/**
 * The earliest dispatch of a job with these processes, ordered at `now` (epoch ms). Default location: the region's. Undefined
 * if there is no such day.
 */
export function earliestShipDate(
  account: AccountFacts,
  processCodes: readonly string[],
  now: number,
  location: Site = REGION_FACTS[account.region].locations[0],
): EarliestShipDate | undefined {
  const processes = listProcessCodes(account.region);
  if (!processCodes.every((code) => processes.some(({ processCode }) => processCode === code)))
    return undefined;
  const leadDays = Math.max(
    QUICKEST_LEAD_DAYS,
    ...processCodes.map((code) => LEAD_DAYS[code] ?? USUAL_LEAD_DAYS),
  );

  const { world, region } = account;
  const openJobs = world.accounts(region).reduce((sum, one) => sum + one.activeCount, 0);
  let daysLeft =
    leadDays + Math.floor(openJobs / (JOBS_PER_DAY_AND_PLACE * REGION_FACTS[region].locations.length));

  const today = dayIn(now, location.timezone);
  const startsToday = now <= atTimeOfDay(now, location.timezone, CUT_OFF);
  for (let ahead = startsToday ? 0 : 1; ahead <= HORIZON_DAYS; ahead++) {
    const day = addDays(today, ahead);
    if (!isWorkingDay(account, day, location)) continue;
    // Work starts on the first working day.
    if (daysLeft === 0)
      return { ms: parseTimestamp(`${day}T${DISPATCH_TIME}`, location.timezone), day, location };
    daysLeft -= 1;
  }
  return undefined;
}

/** An earliest dispatch as the API returns it; `now` in epoch ms. */
export function shipDate(account: AccountFacts, { ms, location }: EarliestShipDate, now: number): ShipDate {
  return {
    shippingDateUtc: new Date(ms).toISOString().replace('.000', ''),
    shippingDateLocal: formatTimestamp(ms, location.timezone),
    timezone: location.timezone,
    dateExclusions: exclusions(account, location, now),
  };
}

/**
 * Epoch ms of a requested due date, and of the time by which the job must be dispatched. A date without a time, or with
 * midnight, includes that whole day at the location. Undefined if it is not ISO 8601 or not a calendar day.
 */
export function parseDueDate(text: string, zone: string | null): { ms: number; byMs: number } | undefined {
  const [, day] = DUE_DATE.exec(text) ?? [];
  return day && isCalendarDay(day) ? parseDue(parseWholeDay(text) ?? text, zone) : undefined;
}

/** A day, or a day and a time with or without offset. */
const DUE_DATE =
  /^(\d{4}-\d\d-\d\d)(?:T(?:[01]\d|2[0-3]):[0-5]\d(?::[0-5]\d(?:\.\d{1,9})?)?(?:Z|[+-](?:[01]\d|2[0-3]):[0-5]\d)?)?$/;

/** Whether the day exists: `Date` turns 31 February into 3 March. */
function isCalendarDay(day: string): boolean {
  const ms = Date.parse(`${day}T00:00:00Z`);
  return !Number.isNaN(ms) && new Date(ms).toISOString().startsWith(day);
}

function exclusions(account: AccountFacts, location: Site, now: number): ShipDate['dateExclusions'] {
  const ranges: { dateFrom: Day; dateTo: Day }[] = [];
  const today = dayIn(now, location.timezone);
  for (let ahead = 0; ahead < EXCLUSION_DAYS; ahead++) {
    const day = addDays(today, ahead);
    if (isWorkingDay(account, day, location)) continue;
    const last = ranges.at(-1);
    if (last && addDays(last.dateTo, 1) === day) last.dateTo = day;
    else ranges.push({ dateFrom: day, dateTo: day });
  }
  return ranges;
}

function isWorkingDay({ world, region }: AccountFacts, day: Day, location: Site): boolean {
  return (
    !isDayOff(day, location.holidays) &&
    !world.closures.some(
      (closure) =>
        closure.region === region &&
        (closure.locationCode ?? location.code) === location.code &&
        closure.dateFrom <= day &&
        day <= closure.dateTo,
    )
  );
}
