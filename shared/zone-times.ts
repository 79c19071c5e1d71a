/** Clock times in time zones, for quiet hours of messages and of alert rules. Pure. */
import { tzOffset } from '@date-fns/tz/tzOffset';

/** Returns the minutes from midnight to a time of day (`HH:MM`). */
export function parseMinutes(time: string): number {
  const [hours = '0', minutes = '0'] = time.split(':');
  return Number(hours) * 60 + Number(minutes);
}

/** Returns the offset from UTC in minutes. An unknown zone counts as UTC. */
export function getOffset(zone: string, at: number): number {
  const offset = tzOffset(zone, new Date(at));
  return Number.isFinite(offset) ? offset : 0;
}
