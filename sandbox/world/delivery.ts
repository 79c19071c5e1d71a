/*
 * How jobs go out and when at the soonest. Where the contract is silent, the sandbox chose:
 *
 * - Delivery options differ by region: one collection, then carriers from the cheapest to the fastest. They come in the
 *   order of their rank.
 * - A job goes out at 17.00 at the place that makes it. Work on it starts on the first working day, which is today when the
 *   order comes before 14.00; it takes as many working days as the slowest of its processes, and one more for each
 *   thousand open jobs of the region by place. Closed, cancelled and hidden jobs are no work.
 * - Without process codes the date is that of the quickest process. Working days are Monday to Friday without the public
 *   holidays of the place's country or part of it, and without what `world.closures` says.
 * - A code of no process of the region, and closures for longer than half a year, leave no date: 404. So does a user who is
 *   gone. Who may not order may still ask for the date, since the contract has no 403 there.
 * - dateExclusions are the days without work from today for 90 days; neighbouring days are one range, both ends included.
 * - shippingDateLocal carries the place's offset, unless the account writes timestamps without one.
 */

import type { DeliveryOption, ShipDate } from '../../shared/ordering/contract/jobs.ts';
import { processCodesOf } from './catalogue.ts';
import { atTimeOfDay, dayIn, readDue, readInstant, wholeDayOf, writeInstant } from './dates.ts';
import { addDays, type Day, isDayOff } from './holidays.ts';
import type { AccountFacts } from './records.ts';
import { LOCATIONS, OTHER_LOCATIONS, type RegionCode, type Site } from './regions.ts';

/** What is ordered until then is begun on the same day; local to the place. */
const CUT_OFF = '14:00';
/** When the day's jobs leave, and so when they are due at the latest; local to the place. */
export const DISPATCH_TIME = '17:00';
const JOBS_PER_DAY_AND_PLACE = 1000;
/** How far ahead a date is looked for, and how far exclusions are told. */
const HORIZON_DAYS = 183;
const EXCLUSION_DAYS = 90;

/** Working days that a process takes; two unless it is said here. */
const LEAD_DAYS: Readonly<Record<string, number>> = { DTF: 1, GSH: 1, SCR: 3, EMB: 5, STK: 1, EQP: 1 };
const QUICKEST_LEAD_DAYS = 1;
const USUAL_LEAD_DAYS = 2;

/** The ways of delivery in a region, by rank. */
export function deliveryOptionsOf(region: RegionCode): readonly DeliveryOption[] {
  return OPTIONS[region];
}

/** The way of delivery that a code or a label stands for, if it is one of the region's. */
export function deliveryOptionOf(region: RegionCode, said: string | null): DeliveryOption | undefined {
  return said === null
    ? undefined
    : OPTIONS[region].find(({ code, label }) => code === said || label === said);
}

/** All places of a region, the default one first; jobs can be made at those that are active and not virtual. */
export function locationsOf(region: RegionCode): readonly Site[] {
  return [...LOCATIONS[region], ...OTHER_LOCATIONS[region]];
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
 * When a job of these processes that is ordered at `now` (epoch ms) can go out at the soonest. Without a place: from the
 * region's default one. Undefined when there is no such day.
 */
export function earliestShipDate(
  account: AccountFacts,
  processCodes: readonly string[],
  now: number,
  location: Site = LOCATIONS[account.region][0],
): EarliestShipDate | undefined {
  const processes = processCodesOf(account.region);
  if (!processCodes.every((code) => processes.some(({ processCode }) => processCode === code)))
    return undefined;
  const leadDays = Math.max(
    QUICKEST_LEAD_DAYS,
    ...processCodes.map((code) => LEAD_DAYS[code] ?? USUAL_LEAD_DAYS),
  );

  const { world, region } = account;
  const openJobs = world.accounts(region).reduce((sum, one) => sum + one.activeCount, 0);
  let daysLeft = leadDays + Math.floor(openJobs / (JOBS_PER_DAY_AND_PLACE * LOCATIONS[region].length));

  const today = dayIn(now, location.timezone);
  const startsToday = now <= atTimeOfDay(now, location.timezone, CUT_OFF);
  for (let ahead = startsToday ? 0 : 1; ahead <= HORIZON_DAYS; ahead++) {
    const day = addDays(today, ahead);
    if (!isWorkingDay(account, day, location)) continue;
    // The first working day is when it is begun.
    if (daysLeft === 0)
      return { ms: readInstant(`${day}T${DISPATCH_TIME}`, location.timezone), day, location };
    daysLeft -= 1;
  }
  return undefined;
}

/** A soonest day of dispatch as the service shows it; `now` in epoch ms. */
export function shipDate(account: AccountFacts, { ms, location }: EarliestShipDate, now: number): ShipDate {
  const style = account.dateStyle === 'local' ? 'local' : 'offset';
  return {
    shippingDateUtc: writeInstant(ms, null, 'utc'),
    shippingDateLocal: writeInstant(ms, location.timezone, style),
    timezone: location.timezone,
    dateExclusions: exclusions(account, location, now),
  };
}

/**
 * What a requested due date means at a place: epoch ms of the instant to be written, and of the instant by which the job
 * must have left. A date that says no time, or midnight, is that whole day there. Undefined when it is not ISO 8601, or of a
 * day that no calendar has.
 */
export function readDueDate(text: string, zone: string | null): { ms: number; byMs: number } | undefined {
  const [, day] = DUE_DATE.exec(text) ?? [];
  return day && isOfCalendar(day) ? readDue(wholeDayOf(text) ?? text, zone) : undefined;
}

/** A day, or a day and a time with or without the offset that it is meant in. */
const DUE_DATE =
  /^(\d{4}-\d\d-\d\d)(?:T(?:[01]\d|2[0-3]):[0-5]\d(?::[0-5]\d(?:\.\d{1,9})?)?(?:Z|[+-](?:[01]\d|2[0-3]):[0-5]\d)?)?$/;

/** Whether there is such a day: of 31 February `Date` makes 3 March. */
function isOfCalendar(day: string): boolean {
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

const option = (
  code: string,
  label: string,
  rank: number,
  gangRank: number,
  more: Partial<DeliveryOption> = {},
): DeliveryOption => ({
  code,
  label,
  isCollection: false,
  rank,
  gangRank,
  value: code,
  deliveryLabelEnabled: true,
  ...more,
});

/** Nobody has to find a collected parcel's label. */
const COLLECTED = { isCollection: true, deliveryLabelEnabled: false };

const OPTIONS: Readonly<Record<RegionCode, readonly DeliveryOption[]>> = {
  us: [
    option('COLLECT', 'Will call', 1, 4, COLLECTED),
    option('GROUND', 'Ground', 2, 1),
    option('2DAY', 'Second day', 3, 2),
    option('EXPRESS', 'Overnight express', 4, 3),
  ],
  nz: [
    option('COLLECT', 'Pick up', 1, 3, COLLECTED),
    option('COURIER', 'Courier', 2, 1),
    option('RURAL', 'Rural courier', 3, 4),
    option('EXPRESS', 'Overnight express', 4, 2),
  ],
  au: [
    option('COLLECT', 'Pick up', 1, 3, COLLECTED),
    option('ROAD', 'Road freight', 2, 1),
    option('EXPRESS', 'Express', 3, 2),
  ],
  uk: [
    option('COLLECT', 'Collection', 1, 3, COLLECTED),
    option('POST48', 'Post, two days', 2, 1),
    option('EXPRESS', 'Next day', 3, 2),
    option('SATURDAY', 'Saturday before noon', 4, 4),
  ],
  eu: [
    option('COLLECT', 'Collection', 1, 3, COLLECTED),
    option('ROAD', 'Parcel by road', 2, 1),
    option('EXPRESS', 'Express', 3, 2),
  ],
};
