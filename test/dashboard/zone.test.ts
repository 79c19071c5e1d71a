/** The time zone and the clock of times. */
import { expect, test } from 'vitest';
import { parseLocalTime } from '../../dashboard/src/dates.ts';
import {
  findToday,
  formatZone,
  toFormat,
  tomorrowAt,
  toRegionZone,
  toZone,
  toZoneDay,
  toZoneTime,
} from '../../dashboard/src/zone.ts';
import { getRegionDefaults } from '../../shared/region-defaults.ts';

test('the zones of regions are those of notifications to customers', () => {
  for (const region of ['us', 'nz', 'au', 'uk', 'eu', 'nz-test'])
    expect(toRegionZone(region), region).toBe(getRegionDefaults(region).zone);
  expect(toZone('utc')).toBe('UTC');
  const own = new Intl.DateTimeFormat().resolvedOptions().timeZone;
  expect([toZone('viewer'), toZone('moon')]).toEqual([own, own]);
});

test('times and days are those of the zone, with the clock of the locale', () => {
  const at = Date.parse('2026-07-01T22:30:00Z');
  const clock = { hour: '2-digit', minute: '2-digit' } as const;
  expect(toFormat(clock, 'UTC', 'en-US').format(at)).toMatch(/^10:30.PM$/);
  expect(toFormat(clock, 'UTC', 'en-GB').format(at)).toBe('22:30');
  expect(toFormat(clock, 'Pacific/Auckland', 'en-GB').format(at)).toBe('10:30');
  expect([toZoneDay(at, 'UTC'), toZoneDay(at, 'Pacific/Auckland')]).toEqual(['2026-07-01', '2026-07-02']);
});

test('the current day is that of the region of the jobs, and is called today only where it is the day of the viewer too', () => {
  const at = Date.parse('2026-11-26T12:00:00Z');
  const amsterdam = 'Europe/Amsterdam';
  expect(findToday(['nz'], amsterdam, at)).toEqual({ day: '2026-11-27', isToday: false });
  expect(findToday(['nz'], 'Pacific/Auckland', at)).toEqual({ day: '2026-11-27', isToday: true });
  expect(findToday(['us', 'nz'], amsterdam, at)).toEqual({ day: '2026-11-26', isToday: false });
  expect(findToday(['us', 'uk'], amsterdam, at)).toEqual({ day: '2026-11-26', isToday: true });
  expect(findToday([], amsterdam, at)).toEqual({ day: '2026-11-26', isToday: true });
});

test.each([
  ['America/New_York', '2026-03-06T20:00:00Z', '2026-03-07T13:00:00.000Z'],
  // The clocks change on this day at 02:00.
  ['America/New_York', '2026-03-07T20:00:00Z', '2026-03-08T12:00:00.000Z'],
  ['Pacific/Auckland', '2026-07-01T22:30:00Z', '2026-07-02T20:00:00.000Z'],
  ['UTC', '2026-12-31T23:59:59.500Z', '2027-01-01T08:00:00.000Z'],
])('08:00 of the next day in %s after %s', (zone, now, expected) => {
  expect(new Date(tomorrowAt(8, Date.parse(now), zone)).toISOString()).toBe(expected);
});

test('a local time is parsed in the zone in which it is formatted', () => {
  for (const zone of ['America/New_York', 'Pacific/Auckland', 'UTC']) {
    const at = Date.parse('2026-11-01T12:00:00Z');
    expect(parseLocalTime(toZoneTime(at, zone), zone)).toBe('2026-11-01T12:00:00.000Z');
  }
  expect(parseLocalTime('2026-11-01T08:00', 'UTC')).toBe('2026-11-01T08:00:00.000Z');
  expect(['', 'soon', '2026-13-01T00:00'].map((text) => parseLocalTime(text))).toEqual(
    Array(3).fill(undefined),
  );
});

test('a zone has a short name for columns', () => {
  expect(formatZone('UTC')).toBe('UTC');
  expect(formatZone('Pacific/Auckland', Date.parse('2026-07-01T00:00:00Z'))).toMatch(/12|NZST/);
});
