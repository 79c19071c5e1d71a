/** Start positions in the logs of several accounts: now, the beginning, a time, or cursors. */

import pLimit from 'p-limit';
import { formatCursor, parseCursor, resolveCursor } from '../log/head.ts';
import type { EventLog } from '../log/log.ts';
import { rejected } from '../resources.ts';

/** Number of logs read concurrently. */
const LOGS_AT_ONCE = 16;

/** The start of reading. */
export type StartPosition =
  | 'now'
  | 'beginning'
  | { readonly at: string }
  | { readonly cursors: Readonly<Record<string, string>> };

/**
 * A position in the log of each account, or the reason why there is none: a phrase to follow the field's
 * name, without a full stop.
 */
export type StartPositions =
  | {
      readonly kind: 'placed';
      /** Sequence after which to read, by account. With cursors, only the accounts that they name. */
      readonly positions: ReadonlyMap<string, number>;
      /** Accounts whose requested events may partly be past retention. */
      readonly late: readonly string[];
    }
  | { readonly kind: 'rejected'; readonly reason: string };

/**
 * Finds the start positions in the logs of the accounts. The beginning, and a time before it, is the earliest
 * retained event. A cursor names one position, so a cursor that is no longer, or not yet, in the log is
 * rejected.
 */
export async function findPositions(
  log: EventLog,
  region: string,
  accounts: readonly string[],
  place: StartPosition,
  now: number,
): Promise<StartPositions> {
  if (typeof place === 'object' && 'at' in place && Date.parse(place.at) > now) {
    return rejected('must not be in the future');
  }
  const cursors = typeof place === 'object' && 'cursors' in place ? place.cursors : undefined;
  const stranger = Object.keys(cursors ?? {}).find((account) => !accounts.includes(account));
  if (stranger !== undefined) {
    return rejected(
      `must contain only accounts whose events the endpoint receives; "${stranger}" is not one of them`,
    );
  }
  const positions = new Map<string, number>();
  const late: string[] = [];
  const reasons: string[] = [];
  await pLimit(LOGS_AT_ONCE).map(accounts, async (account) => {
    const ref = { region, account };
    const text = cursors && Object.hasOwn(cursors, account) ? cursors[account] : undefined;
    if (cursors && text === undefined) return;
    const head = await log.head(ref);
    if (!head) {
      // The log has not begun, so every position in it is its beginning.
      if (text === undefined) positions.set(account, 0);
      else reasons.push(`must not have a cursor for "${account}", whose log has no events yet`);
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
      const position = cursor && resolveCursor(head, cursor);
      if (position === undefined || position < earliest - 1) {
        reasons.push(`must have a cursor ${bounds} for "${account}"`);
      } else {
        positions.set(account, position);
      }
    }
  });
  const [reason] = reasons.sort();
  if (reason !== undefined) return rejected(reason);
  const ordered = accounts.flatMap((account) => {
    const position = positions.get(account);
    return position === undefined ? [] : [[account, position] as const];
  });
  return { kind: 'placed', positions: new Map(ordered), late: late.sort() };
}
