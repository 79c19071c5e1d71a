// Public holidays at the locations: rules of each calendar, and the days of a year.

import { getOrCreate } from '../../shared/get-or-create.ts';
import MATARIKI from './data/matariki.json' with { type: 'json' };
import type { HolidayCalendar } from './regions.ts';

/** A calendar day, `2026-11-20`. */
export type Day = string;

/** Days of the week as `Date` counts them. */
const SUNDAY = 0;
const MONDAY = 1;
const WEDNESDAY = 3;
const THURSDAY = 4;
const SATURDAY = 6;

/** Rule for a holiday on a weekend: move to the nearest weekday, to the next weekday, or do not replace it. */
type Moved = 'nearest' | 'next' | 'not';

/** The holidays of a rule in a year. */
type Rule = (year: number) => Day[];

/** Always the same day of the month (1-based). */
const fixed =
  (month: number, day: number, moved: Moved = 'not'): Rule =>
  (year) => {
    const date = toDay(year, month, day);
    const weekday = toWeekday(date);
    if (moved === 'not' || (weekday !== SATURDAY && weekday !== SUNDAY)) return [date];
    if (moved === 'nearest') return [addDays(date, weekday === SATURDAY ? -1 : 1)];
    return [addDays(date, weekday === SATURDAY ? 2 : 1)];
  };

/** The nth weekday of a month; negative values count from its end. */
const nth =
  (count: number, weekday: number, month: number): Rule =>
  (year) => {
    if (count < 0) {
      const last = toDay(year, month + 1, 0);
      return [addDays(last, -((toWeekday(last) - weekday + 7) % 7) + (count + 1) * 7)];
    }
    const first = toDay(year, month, 1);
    return [addDays(first, ((weekday - toWeekday(first) + 7) % 7) + (count - 1) * 7)];
  };

/** Days after Easter Sunday. */
const easter =
  (days: number): Rule =>
  (year) => [addDays(easterSunday(year), days)];

const GOOD_FRIDAY = easter(-2);
const EASTER_MONDAY = easter(1);

/** Christmas and the day after; on a weekend the next weekdays replace both. */
const christmas: Rule = (year) => {
  const weekday = toWeekday(toDay(year, 12, 25));
  if (weekday === SATURDAY || weekday === SUNDAY)
    return [toDay(year, 12, 27), toDay(year, 12, weekday === SATURDAY ? 28 : 26)];
  return [toDay(year, 12, 25), toDay(year, 12, weekday === 5 ? 28 : 26)];
};

/** The Monday nearest to a day. */
const mondayNearest =
  (month: number, day: number): Rule =>
  (year) => {
    const date = toDay(year, month, day);
    const past = (toWeekday(date) - MONDAY + 7) % 7;
    return [addDays(date, past <= 3 ? -past : 7 - past)];
  };

/** Federal holidays on which US print works close, plus the day after Thanksgiving. */
const US: readonly Rule[] = [
  fixed(1, 1, 'nearest'),
  nth(3, MONDAY, 1),
  nth(-1, MONDAY, 5),
  fixed(6, 19, 'nearest'),
  fixed(7, 4, 'nearest'),
  nth(1, MONDAY, 9),
  nth(4, THURSDAY, 11),
  (year) => nth(4, THURSDAY, 11)(year).map((day) => addDays(day, 1)),
  fixed(12, 25, 'nearest'),
];

const AU: readonly Rule[] = [
  fixed(1, 1, 'next'),
  fixed(1, 26, 'next'),
  GOOD_FRIDAY,
  EASTER_MONDAY,
  fixed(4, 25),
  christmas,
];

const CALENDARS: Readonly<Record<HolidayCalendar, readonly Rule[]>> = {
  'US-CO': [...US, nth(3, MONDAY, 2)],
  'US-NC': [...US, GOOD_FRIDAY],
  'NZ-AUK': [
    fixed(1, 1, 'next'),
    (year) => [addDays(fixed(1, 1, 'next')(year)[0] ?? '', toWeekday(toDay(year, 1, 1)) === 5 ? 3 : 1)],
    mondayNearest(1, 29),
    fixed(2, 6, 'next'),
    GOOD_FRIDAY,
    EASTER_MONDAY,
    fixed(4, 25, 'next'),
    nth(1, MONDAY, 6),
    // Set by law for each year to 2052, because it follows the moon. Later years have none.
    (year) => MATARIKI.filter((day) => day.startsWith(String(year))),
    nth(4, MONDAY, 10),
    christmas,
  ],
  // Labour Day, the Show in Brisbane, the King's Birthday.
  'AU-QLD': [...AU, nth(1, MONDAY, 5), nth(2, WEDNESDAY, 8), nth(1, MONDAY, 10)],
  // The Adelaide Cup, the King's Birthday, Labour Day.
  'AU-SA': [...AU, nth(2, MONDAY, 3), nth(2, MONDAY, 6), nth(1, MONDAY, 10)],
  'GB-ENG': [
    fixed(1, 1, 'next'),
    GOOD_FRIDAY,
    EASTER_MONDAY,
    nth(1, MONDAY, 5),
    nth(-1, MONDAY, 5),
    nth(-1, MONDAY, 8),
    christmas,
  ],
  // The King's Birthday, Ascension and Whit Monday.
  NL: [
    fixed(1, 1),
    EASTER_MONDAY,
    (year) => [toDay(year, 4, toWeekday(toDay(year, 4, 27)) === SUNDAY ? 26 : 27)],
    easter(39),
    easter(50),
    fixed(12, 25),
    fixed(12, 26),
  ],
};

const known = new Map<string, ReadonlySet<Day>>();

/** Whether a day is a weekend or a holiday of a calendar. */
export function isDayOff(day: Day, calendar: HolidayCalendar): boolean {
  const weekday = toWeekday(day);
  if (weekday === SATURDAY || weekday === SUNDAY) return true;
  const year = day.slice(0, 4);
  const holidays = getOrCreate(known, calendar + year, () => {
    // New Year's Day on a Saturday is observed on the Friday of the year before.
    const years = [Number(year), Number(year) + 1];
    return new Set(years.flatMap((each) => CALENDARS[calendar].flatMap((rule) => rule(each))));
  });
  return holidays.has(day);
}

/** The day that many days later. */
export function addDays(day: Day, count: number): Day {
  return new Date(Date.parse(`${day}T00:00:00Z`) + count * 86_400_000).toISOString().slice(0, 10);
}

function toDay(year: number, month: number, day: number): Day {
  return new Date(Date.UTC(year, month - 1, day)).toISOString().slice(0, 10);
}

function toWeekday(day: Day): number {
  return new Date(`${day}T00:00:00Z`).getUTCDay();
}

/** Easter Sunday in the Gregorian calendar, by the paschal full moon. */
function easterSunday(year: number): Day {
  const golden = year % 19;
  const century = Math.floor(year / 100);
  const leapSkips = century - Math.floor(century / 4);
  // Days from 21 March to the full moon, corrected for the drift of the moon's cycle.
  const drift = Math.floor((8 * century + 13) / 25);
  const epact = (leapSkips - drift + 19 * golden + 15) % 30;
  const moon =
    epact - Math.floor(epact / 28) * (1 - Math.floor(29 / (epact + 1)) * Math.floor((21 - golden) / 11));
  const fullMoon = addDays(toDay(year, 3, 21), moon);
  return addDays(fullMoon, 7 - toWeekday(fullMoon));
}
