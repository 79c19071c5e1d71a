/** Stage of a poll: compares the list with the stored state. */
import type { Crawl } from '../crawl.ts';
import { type Observed, observe } from '../observation.ts';
import type { Poll, Session } from '../poll-context.ts';
import { rotate } from '../rotation.ts';
import { type Swept, sweep } from '../sweep.ts';

/** The jobs to process, including those found by the sweep. */
export interface Reconciled extends Observed {
  readonly swept: Swept;
  /** Time through which the rotation is done once its jobs are fetched. Absent if there was no rotation. */
  readonly rotatedThrough?: number;
}

/**
 * Applies the list entries, sweeps for jobs that were created and delisted between two polls, and adds the
 * jobs whose turn it is in the daily rotation.
 */
export async function reconcile(poll: Poll, session: Session, list: Crawl): Promise<Reconciled> {
  const { tracked, status, baselined, context } = poll;
  const { client, signal, identity } = session;
  const observed = await observe(tracked, list);
  const identified = identity !== undefined;
  const swept = await sweep({ tracked, works: observed.works, client, status, list, identified, signal });
  for (const work of swept.works) observed.works.set(work.jobNumber, work);
  if (!baselined || !list.complete) return { ...observed, swept };
  const { works } = observed;
  const owed = [...works.values()].filter(({ lookSince }) => lookSince !== undefined).length;
  const { pollIntervalSeconds, settings } = context;
  const room = Math.max(0, settings.fetchesPerPoll - owed);
  const rotated = await rotate({ tracked, works, status, list, room, pollIntervalSeconds });
  for (const work of rotated.works) works.set(work.jobNumber, work);
  return { ...observed, swept, rotatedThrough: rotated.through };
}
