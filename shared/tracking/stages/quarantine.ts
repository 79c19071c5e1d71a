/** Stage of a poll: decides whether negative verdicts are plausible, and emits them or holds them back (rule 10). */
import type { Crawl } from '../crawl.ts';
import { conclude, type FetchResult } from '../detail-fetches.ts';
import { countAbsence, type ObservationResult } from '../observation.ts';
import type { Poll } from '../poll-context.ts';
import { type Absence, findAllowance, judgeAbsence, type Ruling, readVerdictCounter } from '../quarantine.ts';

/** Jobs missing after a complete crawl, and the ruling on them. */
export interface Absences {
  readonly counts: Absence;
  readonly ruling: Ruling;
  /** Number of jobs that an operator confirmed as gone, once the confirmation has expired. */
  readonly allowedGone?: number;
}

/** Rules on the absence of jobs. `undefined` if the list was incomplete, or there is no baseline. */
export function applyQuarantine(
  { status, tracked, baselined, context, writer }: Poll,
  list: Crawl,
  observed: ObservationResult,
  gone: FetchResult['gone'],
): Absences | undefined {
  let absences: Absences | undefined;
  if (list.complete && baselined) {
    const counter = readVerdictCounter(writer.head.attributes);
    const counts = countAbsence(tracked, list, observed, counter);
    const { startedAt } = context;
    const allowed = findAllowance(status, counter, startedAt, counts.contradictory);
    const isExpired = status.allowedGoneUntil !== null && startedAt >= status.allowedGoneUntil;
    absences = { counts, ruling: judgeAbsence(counts, allowed), ...(isExpired && { allowedGone: allowed }) };
  }
  const mayEmit = absences?.ruling === 'clear' && status.quarantinedAt === null;
  conclude(gone, mayEmit ? 'emit' : 'hold', context);
  return absences;
}
