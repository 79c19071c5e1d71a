/** Checks roll-ups against the log: recounted from its events by an independent method. */
import { MAX_ROLLUP_DAYS, readRollups } from '../../shared/api/statistics.ts';
import type { JobEvent } from '../../shared/events/event.ts';
import type { AccountRef } from '../../shared/storage/schema.ts';
import type { Table } from '../../shared/storage/table.ts';
import { createTotals, type Totals } from '../../shared/tracking/rollups.ts';
import type { Snapshot } from '../../shared/tracking/snapshot.ts';

const DAY_MS = 86_400_000;

/** The totals of all days between two times (epoch ms), and the dispatches of each day with any. */
async function readAll(
  table: Table,
  ref: AccountRef,
  from: number,
  to: number,
): Promise<{ readonly total: Totals; readonly days: ReadonlyMap<string, string> }> {
  const total = createTotals();
  const days = new Map<string, string>();
  const text = (at: number) => new Date(at).toISOString().slice(0, 10);
  const step = MAX_ROLLUP_DAYS.account * DAY_MS;
  for (let first = from; first <= to; first += step) {
    const part = await readRollups({ table }, ref, text(first), text(first + step - DAY_MS));
    for (const [figure, n] of Object.entries(part.total)) total[figure as keyof Totals] += n;
    for (const { day, dispatched, onTime, late } of part.days) {
      if (dispatched + onTime + late > 0) days.set(day, `${dispatched} ${onTime} ${late}`);
    }
  }
  return { total, days };
}

/** Errors in an account's roll-ups, as messages, for a log whose events are about that time (epoch ms). */
export async function rollupProblems(
  table: Table,
  ref: AccountRef,
  known: { readonly events: readonly JobEvent[]; readonly snapshots: readonly Snapshot[] },
  time: { readonly from: number; readonly to: number },
): Promise<string[]> {
  const { total, days } = await readAll(table, ref, time.from - 60 * DAY_MS, time.to + 3 * DAY_MS);
  const count = (type: string) => known.events.filter((event) => event.type === type).length;
  const dispatched = new Set<string>();
  for (const { type, subject = '' } of known.events) {
    if (type === 'job.dispatched') dispatched.add(subject);
    if (type === 'job.dispatch_revoked') dispatched.delete(subject);
  }
  const expected = {
    created: count('job.created'),
    dispatched: dispatched.size,
    overdue: count('job.overdue'),
    cancelled: count('job.cancelled'),
    closed: count('job.closed'),
  };
  const byDay = new Map<string, [number, number, number]>();
  for (const { counted } of known.snapshots) {
    if (!counted) continue;
    const sums = byDay.get(counted.day) ?? [0, 0, 0];
    sums[0] += 1;
    if (counted.late !== null) sums[counted.late ? 2 : 1] += 1;
    byDay.set(counted.day, sums);
  }
  const problems: string[] = [];
  for (const [figure, n] of Object.entries(expected)) {
    const counted = total[figure as keyof Totals];
    if (counted !== n) problems.push(`The roll-ups count ${counted} ${figure}, and the log has ${n}.`);
  }
  for (const day of new Set([...byDay.keys(), ...days.keys()])) {
    const [stored, snapshots] = [days.get(day) ?? '0 0 0', (byDay.get(day) ?? [0, 0, 0]).join(' ')];
    if (stored !== snapshots) {
      problems.push(`Dispatched, on time and late on ${day} are ${stored}; by the snapshots ${snapshots}.`);
    }
  }
  return problems;
}
