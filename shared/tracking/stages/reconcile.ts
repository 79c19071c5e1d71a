/** Stage of a poll: compares the list with the stored state. */
import type { Crawl } from '../crawl.ts';
import { type Observed, observe } from '../observation.ts';
import type { Poll, Session } from '../poll-context.ts';
import { type Swept, sweep } from '../sweep.ts';

/** The jobs to process, including those found by the sweep. */
export interface Reconciled extends Observed {
  readonly swept: Swept;
}

/** Applies the list entries, and sweeps for jobs that were created and delisted between two polls. */
export async function reconcile(poll: Poll, session: Session, list: Crawl): Promise<Reconciled> {
  const { tracked, status } = poll;
  const { client, signal, identity } = session;
  const observed = await observe(tracked, list);
  const identified = identity !== undefined;
  const swept = await sweep({ tracked, client, status, list, identified, signal });
  for (const work of swept.works) observed.works.set(work.jobNumber, work);
  return { ...observed, swept };
}
