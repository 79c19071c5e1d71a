/**
 * Fetches jobs one by one: those that left the list (rule 3), those that settle (rule 7), and listed jobs
 * whose detail fetch is owed.
 *
 * The longest waiting come first, within the budget and the time of the poll. The others stay owed.
 */

import type { OrderingClient } from '../ordering/client.ts';
import { isRefusal } from './account-state.ts';
import type { Crawl } from './crawl.ts';
import { type Evidence, investigate, judge, searchesFind } from './departures.ts';
import { type Known, type Look, sinceListed } from './diff/step.ts';
import { applyDetail, applyEnding, trackWithoutDetail } from './diff.ts';
import type { JobIndex } from './job-index.ts';
import { disagreeing, heldUp, type ScheduleContext, settled, unanswered, unexplained } from './schedule.ts';
import { adopt, type Ending } from './snapshot.ts';
import type { StatusNames } from './status-names.ts';
import { type DetailView, detailView } from './views.ts';
import { addStep, applyListed, type Work } from './work.ts';

/** Inputs for applying answers to jobs. */
export interface ApplyContext extends ScheduleContext {
  readonly known: Known;
}

/** Inputs of the detail fetches. */
export interface FetchContext extends ApplyContext {
  readonly client: OrderingClient;
  readonly seen: Crawl;
  /** Jobs as before this poll. */
  readonly index: JobIndex;
  readonly statuses: StatusNames;
  readonly signal: AbortSignal;
}

/** Result of the detail fetches. */
export interface FetchResult {
  /**
   * Number of fetches performed. `left` is the number of fetches that stay owed, because they were not
   * answered or exceed the budget.
   */
  readonly made: number;
  readonly left: number;
  /** First error of a fetch. */
  readonly problem?: unknown;
  /** Jobs with a confirmed negative verdict. Not applied yet: see {@link conclude}. */
  readonly gone: readonly Gone[];
}

/** A job with a confirmed negative verdict. */
interface Gone {
  readonly work: Work;
  readonly as: Exclude<Ending, 'closed'>;
  readonly evidence: Evidence;
}

/** Maximum number of concurrent fetches. The client allows no more concurrent requests either. */
const CONCURRENCY = 4;
/** Time after which a job with an unreadable detail is tracked without it (ms). */
const TAKEN_ON_AFTER_MS = 86_400_000;

/**
 * Fetches the jobs that are due, and updates their snapshots and events. Negative verdicts wait for the
 * combined result of all fetches (rule 10). Never throws for upstream faults.
 */
export async function fetchJobs(works: Iterable<Work>, context: FetchContext): Promise<FetchResult> {
  const queue = [...works]
    .filter((work) => work.lookSince !== undefined)
    .sort((a, b) => (a.lookSince ?? 0) - (b.lookSince ?? 0));
  const budget = queue.slice(0, context.settings.looksPerPoll);
  let left = queue.length - budget.length;
  let made = 0;
  let refused = false;
  let problem: unknown;
  const gone: Gone[] = [];
  let control: Promise<boolean> | undefined;
  const searchesWork = (): Promise<boolean> => {
    control ??= searchesFind(context.client, controlJob(context), context.signal).catch(() => false);
    return control;
  };
  const lookOn = async (): Promise<void> => {
    for (let work = budget.shift(); work; work = budget.shift()) {
      if (refused || context.signal.aborted) {
        left += 1;
        continue;
      }
      try {
        made += 1;
        const confirmed = await fetchJob(work, context, searchesWork);
        if (confirmed) gone.push(confirmed);
      } catch (cause) {
        left += 1;
        problem ??= cause;
        refused ||= isRefusal(cause);
        // The end of the poll's own time proves nothing about the job.
        if (!context.signal.aborted) rescheduleUnanswered(work, context);
      }
    }
  };
  await Promise.all(Array.from({ length: CONCURRENCY }, lookOn));
  return { made, left, gone, ...(problem === undefined ? {} : { problem }) };
}

/**
 * Returns a listed job to search for as a positive control. A new job may be missing from a search index that
 * lags, so this is the middle one of the jobs that were listed before, or else of all listed jobs.
 */
function controlJob({ seen, index }: FetchContext): number | undefined {
  const listed = [...seen.observations.keys()].sort((a, b) => a - b);
  const before = listed.filter((jobNumber) => index.get(jobNumber)?.phase === 'listed');
  const candidates = before.length > 0 ? before : listed;
  return candidates[Math.floor(candidates.length / 2)];
}

/** Emits confirmed negative verdicts, or holds them up. Held up, none of the evidence is applied. */
export function conclude(gone: readonly Gone[], may: 'announce' | 'hold up', context: ApplyContext): void {
  for (const { work, as, evidence } of gone) {
    if (may === 'hold up') {
      work.snapshot = heldUp(work.snapshot, context);
      continue;
    }
    applyEvidence(work, evidence, context);
    end(work, as, evidence.look, context);
  }
}

/** Fetches one job. Returns the job if a negative verdict about it is confirmed. */
async function fetchJob(
  work: Work,
  context: FetchContext,
  searchesWork: () => Promise<boolean>,
): Promise<Gone | undefined> {
  const { client, seen, settings, signal } = context;
  const { jobNumber } = work;
  if (work.listed || work.snapshot.ended !== null) {
    const { body, askedAt, answeredAt } = await client.job(jobNumber, signal);
    const detail = body && (await toCurrentNames(work, detailView(body), context));
    if (detail) applyFetchedDetail(work, detail, { askedAt, answeredAt, view: 'detail' }, context);
    // Listed but unknown (404) is a contradiction. After the job's end, a 404 is expected and needs no event.
    else if (work.listed) rescheduleUnanswered(work, context);
    else work.snapshot = settled(work.snapshot, false, context);
    return undefined;
  }

  const answers = await investigate(client, jobNumber, signal);
  const evidence: Evidence = {
    ...answers,
    detail: answers.detail && (await toCurrentNames(work, answers.detail, context)),
  };
  const { snapshot } = work;
  const wasDispatched = snapshot.announced.dateOut !== null || snapshot.returned === true;
  const verdict = judge(evidence, wasDispatched);
  switch (verdict.kind) {
    case 'listed':
      applyFound(work, evidence, context);
      return undefined;
    case 'dispatched':
      applyDispatchEvidence(work, evidence, context);
      return undefined;
    case 'contradictory':
      if (snapshot.settling) applyEvidence(work, evidence, context);
      else work.snapshot = unexplained(snapshot, { suspected: null, contradictory: true }, context);
      return undefined;
    case 'suspected': {
      const before = snapshot.departure?.suspected ?? null;
      const again = before?.as === verdict.as ? before : null;
      const found = await searchesWork();
      const confirmed =
        found && again !== null && seen.startedAt >= again.at + settings.confirmAfterSeconds * 1000;
      if (confirmed) return { work, as: verdict.as, evidence };
      // Until then no event is emitted for a job that may soon be listed again, unless its detail is
      // authoritative.
      if (snapshot.settling) applyEvidence(work, evidence, context);
      // A search that does not find a listed job contradicts everything else.
      const suspected = found ? (again ?? { as: verdict.as, at: seen.startedAt }) : before;
      const contradictory = suspected === null ? { contradictory: true as const } : {};
      work.snapshot = unexplained(work.snapshot, { suspected, ...contradictory }, context);
      return undefined;
    }
    case 'left':
      applyEvidence(work, evidence, context);
      if (verdict.closed) end(work, 'closed', evidence.look, context);
      return undefined;
  }
}

/**
 * Applies the evidence about a job that only the search found in the active list: a page had shifted, or the search is
 * behind. It proves no value of a field. The next crawl that contains the job does.
 */
function applyFound(work: Work, { detail, detailLook, activeLook }: Evidence, context: ApplyContext): void {
  const { snapshot } = work;
  const { list, settling, unproven } = snapshot;
  if (settling !== null) {
    if (detail) applyFetchedDetail(work, detail, detailLook, context);
    return;
  }
  if (list === null || unproven !== null || !detail) {
    work.snapshot = unanswered({ ...snapshot, departure: null }, context);
  } else {
    work.snapshot = { ...snapshot, departure: null };
    work.listed = { view: list, look: activeLook };
    applyFetchedDetail(work, detail, detailLook, context);
  }
  // The list view was not confirmed since the last crawl that contained the job.
  work.snapshot = { ...work.snapshot, heldBack: true };
}

/** Returns a detail with current status names, and sets those of its job's snapshot. */
async function toCurrentNames(
  work: Work,
  detail: DetailView,
  { statuses, client, signal }: FetchContext,
): Promise<DetailView> {
  await statuses.readForDetail(client, detail, signal);
  work.snapshot = statuses.withCurrentNames(work.snapshot);
  return statuses.withCurrentNamesIn(detail);
}

/** Applies the detail of a job that is in the list or has left it. */
function applyFetchedDetail(work: Work, detail: DetailView, look: Look, context: ApplyContext): void {
  const { unproven, settling } = work.snapshot;
  const moved = work.events.length;
  work.snapshot = adopt(work.snapshot, 'detail', detail);
  const { open, ...step } = applyDetail(work.snapshot, detail, work.listed, look, context.known);
  addStep(work, step);
  if (!work.listed) {
    work.snapshot = settled(work.snapshot, settling === null || work.events.length > moved, context);
    return;
  }
  if (unproven !== null) applyFirstListEntry(work, context);
  work.snapshot = open ? disagreeing(work.snapshot, context) : { ...work.snapshot, owed: null };
}

/**
 * Applies the detail of a dispatched job that may still be in the list, which cannot be searched. The
 * authoritative view stays the same. For a listed job, the detail only supplies dispatch and tracking (rule
 * 4).
 */
function applyDispatchEvidence(work: Work, { detail, detailLook }: Evidence, context: ApplyContext): void {
  const { list, settling, unproven, owed } = work.snapshot;
  if (detail !== null && settling !== null) {
    applyFetchedDetail(work, detail, detailLook, context);
    return;
  }
  // Without the list, it cannot be determined whether the job is new.
  if (detail !== null && list !== null && unproven === null) {
    const before = adopt(work.snapshot, 'detail', detail);
    const listed = { view: list, look: detailLook };
    const { open: _, ...step } = applyDetail(before, detail, listed, detailLook, context.known);
    addStep(work, step);
  }
  work.snapshot = unanswered({ ...work.snapshot, owed }, context);
}

/** Applies the evidence about a job that left the list. */
function applyEvidence(work: Work, { detail, detailLook }: Evidence, context: ApplyContext): void {
  const { unproven, list } = work.snapshot;
  if (detail === null) return;
  applyFetchedDetail(work, detail, detailLook, context);
  // Never observed in the active list, and not new either: a job from before tracking began.
  const created = work.events.some((event) => event.type === 'job.created');
  if (unproven !== null && list === null && !created) work.untracked = 'keep snapshot';
}

/** Compares the list with the job's first list view. No crawl since then serves as evidence. */
function applyFirstListEntry(work: Work, { known }: ApplyContext): void {
  applyListed(work, { ...known, lastGoodCrawlStartedAt: null });
}

function end(work: Work, ending: Ending, look: Look, context: ApplyContext): void {
  if (work.snapshot.unproven !== null) {
    // The job's record was deleted before it could be read.
    work.snapshot = trackWithoutDetail(work.snapshot, null);
    if (work.snapshot.list === null) work.untracked = 'keep snapshot';
  }
  if (work.untracked) {
    work.snapshot = { ...work.snapshot, ended: ending, owed: null };
    return;
  }
  const since = sinceListed(work.snapshot, context.known);
  addStep(work, applyEnding(work.snapshot, ending, look, since, context.known));
  work.snapshot = settled(work.snapshot, true, context);
}

function rescheduleUnanswered(work: Work, context: ApplyContext): void {
  const { unproven } = work.snapshot;
  if (work.listed && unproven !== null && context.startedAt - unproven >= TAKEN_ON_AFTER_MS) {
    work.snapshot = trackWithoutDetail(work.snapshot, work.listed.view);
    applyFirstListEntry(work, context);
  }
  work.snapshot = unanswered(work.snapshot, context);
}
