/** All formats of times in the dashboard: in the chosen time zone, with the exact time in the tooltip. */
import { useSyncExternalStore } from 'react';
import { subscribeToClock } from './stream-hooks.ts';
import { formatDecimal } from './texts.ts';
import { formatZone, toFormat, toZone, toZoneDay } from './zone.ts';
import { getZone, getZoneChoice, subscribeToZone } from './zone-choice.ts';

const CLOCK = { hour: '2-digit', minute: '2-digit' } as const;
const SECONDS = { ...CLOCK, second: '2-digit' } as const;
const DAY = { month: 'short', day: 'numeric' } as const;
const STYLES = {
  whole: { dateStyle: 'medium', timeStyle: 'medium' },
  short: { ...DAY, ...CLOCK },
  distant: { dateStyle: 'medium', timeStyle: 'short' },
  clock: SECONDS,
  dated: { ...DAY, ...SECONDS },
  minutes: CLOCK,
  wall: { weekday: 'short', ...DAY, ...CLOCK },
} as const satisfies Record<string, Intl.DateTimeFormatOptions>;
const day = new Intl.DateTimeFormat(undefined, { weekday: 'short', ...DAY, timeZone: 'UTC' });
const plainDay = new Intl.DateTimeFormat(undefined, { ...DAY, timeZone: 'UTC' });
const localClock = new Intl.DateTimeFormat(undefined, { ...CLOCK, timeZone: 'UTC' });
const year = new Intl.DateTimeFormat(undefined, { dateStyle: 'medium', timeZone: 'UTC' });

const inZone = (style: keyof typeof STYLES): Intl.DateTimeFormat => toFormat(STYLES[style], getZone());

/** Returns the chosen time zone; renders when it changes. */
export function useZone(): { readonly choice: string; readonly zone: string } {
  const choice = useSyncExternalStore(subscribeToZone, getZoneChoice);
  return { choice, zone: toZone(choice) };
}

/** Returns the current day (YYYY-MM-DD) in the chosen time zone; renders when it changes. */
export function useDay(): string {
  useZone();
  return useSyncExternalStore(subscribeToClock, () => toZoneDay(Date.now(), getZone()));
}

/** Short name of the chosen time zone, such as `MST`, with its IANA name in the tooltip. */
export function ZoneName() {
  const { zone } = useZone();
  return <abbr title={zone}>{formatZone(zone)}</abbr>;
}

/** Returns the tooltip of a time: in the chosen time zone to the second, and in UTC to the millisecond. */
export function formatExactTime(at: string): string {
  return `${inZone('whole').format(Date.parse(at))} (${getZone()})\n${new Date(at).toISOString()}`;
}

/** Formats an hour of a day with the clock of the locale: `08:00`, `8:00 AM`. */
export const formatHour = (hour: number): string => localClock.format(hour * 3_600_000);

/** Formats the current time (epoch ms) for a wall display: weekday, day, hours and minutes. */
export function formatWallClock(atMs: number): string {
  return inZone('wall').format(atMs);
}

/** Formats the time of a point in a chart: hours and minutes, `withDay` also the day. */
export function formatChartTime(at: string, { withDay }: { readonly withDay: boolean }): string {
  return inZone(withDay ? 'short' : 'minutes').format(Date.parse(at));
}

/** Formats a calendar day (YYYY-MM-DD) without its year; not converted. */
export function formatDay(text: string): string {
  return plainDay.format(Date.parse(text));
}

/** Formats a relative time: `just now`, `40 s ago`, `2 min ago`, `3 h ago`, `5 days ago`, `in 3 min`. */
export function formatRelativeTime(atMs: number, nowMs: number): string {
  const ms = nowMs - atMs;
  if (Math.abs(ms) < 5_000) return 'just now';
  const text = formatDuration(Math.abs(ms));
  return ms > 0 ? `${text} ago` : `in ${text}`;
}

/** Formats a duration in its largest unit: `350 ms`, `4.2 s`, `40 s`, `2 min`, `3 h`, `5 days`. */
export function formatDuration(ms: number): string {
  if (ms < 1_000) return `${Math.round(ms)} ms`;
  const seconds = ms / 1_000;
  if (seconds < 10) return `${formatDecimal(seconds, 1)} s`;
  if (seconds < 90) return `${Math.round(seconds)} s`;
  const minutes = seconds / 60;
  if (minutes < 90) return `${Math.round(minutes)} min`;
  const hours = minutes / 60;
  if (hours < 36) return `${Math.round(hours)} h`;
  return `${Math.round(hours / 24)} days`;
}

/**
 * A time. `as`: `clock` shows the time only, with the day if it is not today; `whole` shows year and seconds. Default: `short`.
 * Times of another year include the year.
 */
export function Timestamp(props: { readonly at: string; readonly as?: 'short' | 'clock' | 'whole' }) {
  const { at, as = 'short' } = props;
  useDay();
  const usual =
    as === 'clock' && isToday(at)
      ? 'clock'
      : isThisYear(at)
        ? as === 'clock'
          ? 'dated'
          : 'short'
        : 'distant';
  return (
    <time dateTime={at} title={formatExactTime(at)}>
      {inZone(as === 'whole' ? as : usual).format(Date.parse(at))}
    </time>
  );
}

/** Whether a time is in the current year of the chosen time zone. */
function isThisYear(at: string): boolean {
  return toZoneDay(Date.parse(at), getZone()).slice(0, 4) === toZoneDay(Date.now(), getZone()).slice(0, 4);
}

/** Whether a time is on the current day of the chosen time zone. */
export function isToday(at: string): boolean {
  return toZoneDay(Date.parse(at), getZone()) === toZoneDay(Date.now(), getZone());
}

/** Relative time, kept up to date. `none`: shown if there is no time. `isPlanned`: the time of something that has not happened yet. */
export function RelativeTime(props: {
  readonly at: string | null | undefined;
  readonly none?: string;
  readonly isPlanned?: boolean;
}) {
  const { at, none = '–', isPlanned = false } = props;
  return at ? <Ago at={at} isPlanned={isPlanned} /> : none;
}

/** Renders only when its text changes. */
function Ago({ at, isPlanned }: { readonly at: string; readonly isPlanned: boolean }) {
  const text = useSyncExternalStore(subscribeToClock, () => {
    const relative = formatRelativeTime(Date.parse(at), Date.now());
    return isPlanned && !relative.startsWith('in') ? 'now' : relative;
  });
  return (
    <time dateTime={at} title={formatExactTime(at)}>
      {text}
    </time>
  );
}

/** A calendar day (YYYY-MM-DD) at the production location; not converted. */
export function Day({ day: text }: { readonly day: string }) {
  return (
    <time dateTime={text} title={text}>
      {day.format(Date.parse(text))}
    </time>
  );
}

/**
 * A date in the format of the ordering API. With an offset and a time other than midnight, it is shown in the chosen time
 * zone, `withZone` with the name of the zone; otherwise it is a day or local time of the production location and is not converted.
 */
export function UpstreamDate({ at, withZone = false }: { readonly at: string; readonly withZone?: boolean }) {
  if (
    /[T ](?!00:00(:00(\.0+)?)?[Z+-])\d\d:\d\d.*(Z|[+-]\d\d:?\d\d)$/.test(at) &&
    !Number.isNaN(Date.parse(at))
  )
    return withZone ? (
      <>
        <Timestamp at={at} /> <ZoneName />
      </>
    ) : (
      <Timestamp at={at} />
    );
  const [, date = '', time] = /^(\d{4}-\d\d-\d\d)(?:[T ](\d\d:\d\d))?/.exec(at) ?? [];
  if (date === '' || Number.isNaN(Date.parse(date))) return <span>{at}</span>;
  return (
    <time dateTime={at} title={`${at} (at the location)`}>
      {year.format(Date.parse(date))}
      {time !== undefined && time !== '00:00' ? `, ${localClock.format(Date.parse(`${date}T${time}Z`))}` : ''}
    </time>
  );
}
