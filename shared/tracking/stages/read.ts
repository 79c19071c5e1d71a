/** Stage of a poll: reads the list of active jobs. */
import type { ListedJob } from '../../ordering/list-page.ts';
import { recordResponse } from '../breaker.ts';
import { type Crawl, crawl, type Observation } from '../crawl.ts';
import type { ViewResponse } from '../diff/step.ts';
import type { KnownEntry } from '../known-entries.ts';
import { projectEntry, recallQuiet } from '../observation.ts';
import type { OpenKind } from '../open-jobs.ts';
import { type Poll, PollFailure, type Session } from '../poll-context.ts';

/** Reads the list. Throws {@link PollFailure} if no page was answered. */
export async function readList(poll: Poll, { client, signal, identity }: Session): Promise<Crawl> {
  const { deps, account, tracked, baselined, progress } = poll;
  const { statuses } = tracked;
  /** Unknown status names of jobs whose list entry changed. */
  const unknown = new Set<string>();
  /** The last unchanged job of each kind. Those of one page share an object, so that tens of thousands take little memory. */
  const unchanged = new Map<OpenKind, Observation>();
  const noticed = (job: ListedJob | KnownEntry, response: ViewResponse): Observation => {
    const entry = projectEntry(tracked, job, response);
    if (!entry.view && !entry.truncated) {
      const same = unchanged.get(entry.kind);
      if (same?.response === response) return same;
      unchanged.set(entry.kind, entry);
    }
    const status = entry.view?.status;
    if (status && statuses.isNew(status)) unknown.add(status);
    return entry;
  };
  const recall = (digest: string): KnownEntry | undefined => recallQuiet(tracked, digest);
  const list = await crawl(client, { now: deps.now, recall, notice: noticed, signal });
  progress.pages = list.pages;
  if (list.respondedAt === null) {
    throw new PollFailure({ problem: list.problem, accepted: identity !== undefined });
  }
  if (progress.upstream) {
    progress.upstream = await recordResponse(deps, account.region, list.respondedAt, progress.upstream);
  }
  if (baselined) {
    const former: string[] = [];
    for (const [jobNumber, { view }] of list.observations) {
      if (view && statuses.isFormer(view.status)) former.push(`${jobNumber} ${view.status}`);
    }
    await statuses.readAfterCrawl(client, [...unknown], former, signal);
  }
  return list;
}
