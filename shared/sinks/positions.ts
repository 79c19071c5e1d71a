/** Where reading begins in the logs of several accounts: now, at the beginning, at an instant, or after cursors. */
import pLimit from 'p-limit';
import { type EventLog, formatCursor, parseCursor, placeOf } from '../log/log.ts';

/** Logs looked at side by side. */
const LOGS_AT_ONCE = 16;

/** Where to begin. */
export type Place =
  | 'now'
  | 'beginning'
  | { readonly at: string }
  | { readonly cursors: Readonly<Record<string, string>> };

/** A place in the log of each account, or why there is none: a sentence without its full stop, after the field's name. */
export type Placed =
  | {
      readonly kind: 'placed';
      /** The sequence after which to read, by account. With cursors, only the accounts that they name. */
      readonly positions: ReadonlyMap<string, number>;
      /** Accounts of which some events that were asked for may have fallen out of retention. */
      readonly late: readonly string[];
    }
  | { readonly kind: 'refused'; readonly reason: string };

/**
 * Finds a place in the logs of the accounts. The beginning, and an instant before it, is the earliest event that is left; a
 * cursor names one place, so one that is no longer, or not yet, in the log is refused.
 */
export async function findPlace(
  log: EventLog,
  region: string,
  accounts: readonly string[],
  place: Place,
  now: number,
): Promise<Placed> {
  if (typeof place === 'object' && 'at' in place && Date.parse(place.at) > now) {
    return { kind: 'refused', reason: 'must not be in the future' };
  }
  if (typeof place === 'object' && 'cursors' in place) {
    const stranger = Object.keys(place.cursors).find((account) => !accounts.includes(account));
    if (stranger !== undefined) {
      return { kind: 'refused', reason: `must name accounts that are followed, and "${stranger}" is none` };
    }
  }
  const positions = new Map<string, number>();
  const late: string[] = [];
  const refusals: string[] = [];
  await pLimit(LOGS_AT_ONCE).map(accounts, async (account) => {
    const ref = { region, account };
    const text =
      typeof place === 'object' && 'cursors' in place && Object.hasOwn(place.cursors, account)
        ? place.cursors[account]
        : undefined;
    if (typeof place === 'object' && 'cursors' in place && text === undefined) return;
    const head = await log.head(ref);
    if (!head) {
      // Not yet begun, so every place in it is its beginning.
      if (text === undefined) positions.set(account, 0);
      else refusals.push(`has a cursor for "${account}", whose log has not begun`);
      return;
    }
    if (place === 'now') {
      positions.set(account, head.sequence);
      return;
    }
    const earliest = await log.earliest(ref, head);
    if (place === 'beginning') {
      positions.set(account, earliest - 1);
    } else if ('at' in place) {
      const position = await log.seek(ref, Date.parse(place.at));
      positions.set(account, position);
      if (earliest > 1 && position < earliest) late.push(account);
    } else {
      const cursor = parseCursor(text ?? '');
      const bounds = `from ${formatCursor(head.epoch, earliest - 1)} to ${formatCursor(head.epoch, head.sequence)}`;
      const position = cursor && placeOf(head, cursor);
      if (position === undefined || position < earliest - 1) {
        refusals.push(`must hold for "${account}" a cursor ${bounds}`);
      } else {
        positions.set(account, position);
      }
    }
  });
  const [reason] = refusals.sort();
  if (reason !== undefined) return { kind: 'refused', reason };
  const ordered = accounts.flatMap((account) => {
    const position = positions.get(account);
    return position === undefined ? [] : [[account, position] as const];
  });
  return { kind: 'placed', positions: new Map(ordered), late: late.sort() };
}
