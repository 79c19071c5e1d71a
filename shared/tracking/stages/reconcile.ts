/** Stage of a poll: compares the list with the stored state. */
import type { Crawl } from '../crawl.ts';
import { type ObservationResult, observe } from '../observation.ts';
import type { Poll, Session } from '../poll-context.ts';
import { rotate } from '../rotation.ts';
import { type Swept, sweep } from '../sweep.ts';

/** The jobs to process, including those found by the sweep. */
export interface Reconciled extends ObservationResult {
  readonly swept: Swept;
  /** Time through which the rotation is done once its jobs are fetched. Absent if there was no rotation. */
  readonly rotatedThrough?: number;
}

/**
 * Applies the list entries, sweeps for jobs that were created and delisted between two polls, and adds the
 * jobs whose turn it is in the daily rotation.
 */
export async function reconcile(poll: Poll, session: Session, list: Crawl): Promise<Reconciled> {
  const observed = await observe(poll.tracked, list);
  const { works } = observed;
  const swept = await sweep(poll, session, list, works);
  for (const work of swept.works) works.set(work.jobNumber, work);
  if (!poll.baselined || !list.complete) return { ...observed, swept };
  const owed = [...works.values()].filter(({ owedSince }) => owedSince !== undefined).length;
  const room = Math.max(0, poll.context.settings.fetchesPerPoll - owed);
  const rotated = await rotate(poll, list, works, room);
  for (const work of rotated.works) works.set(work.jobNumber, work);
  return { ...observed, swept, rotatedThrough: rotated.through };
}
