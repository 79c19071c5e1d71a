/**
 * Fetches jobs one by one: those that left the list (rule 3), those that settle (rule 7), and listed jobs
 * whose detail fetch is owed.
 *
 * Fetches without which a change stays unknown come first, then the longest waiting, then the rotation. The
 * budget grows with the backlog, within the time of the poll. The others stay owed.
 */

import type { OrderingClient } from '../ordering/client.ts';
import { OrderingError } from '../ordering/errors.ts';
import { isCredentialsRejection } from './account-state.ts';
import type { Crawl } from './crawl.ts';
import { classifyDeparture, type Evidence, investigate, isDetailError, verifySearch } from './departures.ts';
import { applyClosedEntry, hasUnemittedValues } from './diff/closed-entry.ts';
import { type ObservationContext, sinceListed, type ViewResponse } from './diff/step.ts';
import { checkTimers } from './diff/timers.ts';
import { applyDetail, applyEnding, trackWithoutDetail } from './diff.ts';
import type { JobIndex } from './job-index.ts';
import {
  rescheduleDisagreement,
  rescheduleFailedFetch,
  rescheduleHeldSuspicion,
  rescheduleInvestigation,
  type ScheduleContext,
  settled,
} from './schedule.ts';
import { addMissingFields, type Ending, isListAuthoritative } from './snapshot.ts';
import type { StatusNames } from './status-names.ts';
import { type DetailView, detailView, fingerprint } from './views.ts';
import { addStep, applyListed, type Work } from './work.ts';

/** Inputs for applying answers to jobs. */
export interface ApplyContext extends ScheduleContext {
  readonly known: ObservationContext;
}

/** Inputs of the detail fetches. */
export interface FetchContext extends ApplyContext {
  readonly client: OrderingClient;
  readonly crawl: Crawl;
  /** Jobs as before this poll. */
  readonly index: JobIndex;
  readonly statuses: StatusNames;
  readonly signal: AbortSignal;
  /** Returns the current time (epoch ms). From `stopAt` on, only `fetchesPerPoll` fetches are sent. */
  readonly now: () => number;
  readonly stopAt: number;
}

/** Result of the detail fetches. */
export interface FetchResult {
  /**
   * Number of fetches performed. `left` is the number of fetches that stay owed, because they were not
   * answered or exceed the budget.
   */
  readonly fetched: number;
  readonly left: number;
  /** First turn of the rotation whose fetch was not sent, and is not owed (epoch ms). Infinity if there is none. */
  readonly firstUnsentTurn: number;
  /** First error of a fetch. */
  readonly problem?: unknown;
  /** Jobs with a confirmed negative verdict. Not applied yet: see {@link conclude}. */
  readonly gone: readonly ConfirmedDeparture[];
  /** Jobs whose detail could not be read, repeatedly or for good, and jobs whose detail was read. */
  readonly unreadable: readonly number[];
  readonly readable: readonly number[];
  /** Error of the last unreadable detail. */
  readonly detailProblem?: OrderingError;
}

/** A job with a confirmed negative verdict. */
interface ConfirmedDeparture {
  readonly work: Work;
  readonly as: Exclude<Ending, 'closed'>;
  readonly evidence: Evidence;
}

/** Maximum number of concurrent fetches. The client allows no more concurrent requests either. */
const CONCURRENCY = 4;
/**
 * Time after which a job with an unreadable detail is tracked without it (ms), and minimum number of
 * attempts. If the credentials may not read it (403), only the attempts count.
 */
const TAKEN_ON_AFTER_MS = 3_600_000;
const TAKEN_ON_AFTER_TRIES = 3;
/** Number of failed fetches in a row after which the status reports the job. */
const REPORTED_AFTER_TRIES = 2;
/** A backlog is worked off by this share in each poll, but by `fetchesPerPoll` times the factor at most. */
const BACKLOG_SHARE = 0.25;
const MAX_BUDGET_FACTOR = 10;
/** Share of the budget for the longest waiting, regardless of urgency. */
const FAIR_SHARE = 0.25;

/**
 * Returns the jobs to fetch in this poll, in order, and how many more are owed. Jobs of the rotation are
 * fetched only if the others leave room within `fetchesPerPoll`. Pure.
 */
export function selectFetches(
  works: Iterable<Work>,
  fetchesPerPoll: number,
): { readonly queue: readonly Work[]; readonly left: number } {
  const due = [...works].filter((work) => work.owedSince !== undefined);
  const byWaiting = (a: Work, b: Work) => (a.owedSince ?? 0) - (b.owedSince ?? 0);
  const owed = due.filter(({ turn }) => turn === undefined).sort(byWaiting);
  const size = Math.min(
    Math.max(fetchesPerPoll, Math.ceil(owed.length * BACKLOG_SHARE)),
    fetchesPerPoll * MAX_BUDGET_FACTOR,
  );
  const urgent = owed.filter(isUrgent).slice(0, Math.ceil(size * (1 - FAIR_SHARE)));
  const first = new Set(urgent);
  const queue = [...urgent, ...owed.filter((work) => !first.has(work))].slice(0, size);
  const room = Math.max(0, fetchesPerPoll - owed.length);
  return {
    queue: [...queue, ...due.filter(({ turn }) => turn !== undefined).slice(0, room)],
    left: owed.length - queue.length,
  };
}

/** Returns whether a change of the job stays unknown until it is fetched. */
function isUrgent({ listed, snapshot, hinted }: Work): boolean {
  return hinted === true || snapshot.unproven !== null || (!listed && snapshot.settling === null);
}

/**
 * Fetches the jobs that are due, and updates their snapshots and events. Negative verdicts wait for the
 * combined result of all fetches (rule 10). Never throws for upstream faults.
 */
export async function fetchJobs(works: Iterable<Work>, context: FetchContext): Promise<FetchResult> {
  const { fetchesPerPoll } = context.settings;
  const selected = selectFetches(works, fetchesPerPoll);
  const queue = [...selected.queue];
  let { left } = selected;
  let firstUnsentTurn = Number.POSITIVE_INFINITY;
  let fetched = 0;
  let rejected = false;
  let problem: unknown;
  let detailProblem: OrderingError | undefined;
  const gone: ConfirmedDeparture[] = [];
  const unreadable: number[] = [];
  const readable: number[] = [];
  let control: Promise<boolean> | undefined;
  const searchesWork = (): Promise<boolean> => {
    control ??= verifySearch(context.client, controlJob(context), context.signal).catch(() => false);
    return control;
  };
  const fetchNext = async (work: Work): Promise<void> => {
    const { jobNumber } = work;
    try {
      fetched += 1;
      const result = await fetchJob(work, context, searchesWork);
      if (result.gone) gone.push(result.gone);
      if (result.detailProblem) {
        problem ??= result.detailProblem;
        detailProblem = result.detailProblem;
        unreadable.push(jobNumber);
      } else readable.push(jobNumber);
    } catch (cause) {
      left += 1;
      problem ??= cause;
      rejected ||= isCredentialsRejection(cause);
      const isUnsent = cause instanceof OrderingError && cause.notSent;
      if (isUnsent) fetched -= 1;
      // The end of the poll's own time proves nothing about the job.
      if (isUnsent || context.signal.aborted) {
        firstUnsentTurn = Math.min(firstUnsentTurn, work.turn ?? firstUnsentTurn);
        return;
      }
      rescheduleUnanswered(work, cause, context);
      const reason = cause instanceof Error && !isDetailError(cause) ? cause.cause : cause;
      if (!isDetailError(reason)) return;
      if (reason.kind !== 'forbidden' && (work.snapshot.owed?.tries ?? 0) < REPORTED_AFTER_TRIES) return;
      detailProblem = reason;
      unreadable.push(jobNumber);
    }
  };
  const fetchOn = async (): Promise<void> => {
    for (let work = queue.shift(); work; work = queue.shift()) {
      const late = fetched >= fetchesPerPoll && context.now() >= context.stopAt;
      if (!rejected && !late && !context.signal.aborted) await fetchNext(work);
      else if (work.turn !== undefined) firstUnsentTurn = Math.min(firstUnsentTurn, work.turn);
      else left += 1;
    }
  };
  await Promise.all(Array.from({ length: CONCURRENCY }, fetchOn));
  return {
    ...{ fetched, left, firstUnsentTurn, gone, unreadable, readable },
    ...(problem === undefined ? {} : { problem }),
    ...(detailProblem && { detailProblem }),
  };
}

/**
 * Returns a listed job to search for as a positive control. A new job may be missing from a search index that
 * lags, so this is the middle one of the jobs that were listed before, or else of all listed jobs.
 */
function controlJob({ crawl, index }: FetchContext): number | undefined {
  const listed = [...crawl.observations.keys()].sort((a, b) => a - b);
  const before = listed.filter((jobNumber) => index.get(jobNumber)?.phase === 'listed');
  const candidates = before.length > 0 ? before : listed;
  return candidates[Math.floor(candidates.length / 2)];
}

/** Emits confirmed negative verdicts, or holds them up. If they are held up, none of their evidence is applied. */
export function conclude(
  gone: readonly ConfirmedDeparture[],
  may: 'emit' | 'hold',
  context: ApplyContext,
): void {
  for (const { work, as, evidence } of gone) {
    if (may === 'hold') {
      work.snapshot = rescheduleHeldSuspicion(work.snapshot, context);
      continue;
    }
    applyEvidence(work, evidence, context);
    end(work, as, evidence.response, context);
  }
}

/** Result of fetching one job that the ordering API answered. */
interface Fetched {
  /** Set if a negative verdict about the job is confirmed. */
  readonly gone?: ConfirmedDeparture;
  /** Error of the job detail, if the lists alone led to the result. */
  readonly detailProblem?: OrderingError | undefined;
}

/** Fetches one job, and applies the answers. */
async function fetchJob(
  work: Work,
  context: FetchContext,
  searchesWork: () => Promise<boolean>,
): Promise<Fetched> {
  const { client, known, crawl, settings, signal } = context;
  const { jobNumber } = work;
  if (work.listed || work.snapshot.ended !== null) {
    const answer = await client.job(jobNumber, signal).catch((cause: unknown) => {
      // What the list with closed jobs shows need not wait for the detail.
      if (work.hint && isDetailError(cause)) addStep(work, applyClosedEntry(work.snapshot, work.hint, known));
      throw cause;
    });
    const { body, requestedAt, respondedAt } = answer;
    const detail = body && (await toCurrentNames(work, detailView(body), context));
    if (detail) {
      const { heldBack } = work.snapshot;
      applyFetchedDetail(work, detail, { requestedAt, respondedAt, view: 'detail' }, context);
      // Of an unchanged job, the rotation knows only the stored entry, which contains the values that the list omits.
      if (work.turn !== undefined && heldBack) work.snapshot = { ...work.snapshot, heldBack };
      // The detail gives the zone of the due date.
      if (work.listed) addStep(work, checkTimers(work.snapshot, work.listed.response, known));
    }
    // Listed but unknown (404) is a contradiction. After the job's end, a 404 is expected and needs no event.
    else if (work.listed) rescheduleUnanswered(work, undefined, context);
    else work.snapshot = settled(work.snapshot, false, context);
    return {};
  }

  const answers = await investigate(client, jobNumber, signal);
  const evidence: Evidence = {
    ...answers,
    detail: answers.detail && (await toCurrentNames(work, answers.detail, context)),
  };
  const { snapshot } = work;
  const wasDispatched = snapshot.emitted.dateOut !== null || snapshot.returned === true;
  const verdict = classifyDeparture(
    evidence,
    wasDispatched,
    snapshot.departure?.tries ?? Number.POSITIVE_INFINITY,
  );
  const fetched: Fetched = { detailProblem: evidence.detailProblem };
  switch (verdict.kind) {
    case 'listed':
      applyFound(work, evidence, context);
      return fetched;
    case 'dispatched':
      applyDispatchEvidence(work, evidence, context);
      return fetched;
    case 'undecided':
      work.snapshot = rescheduleInvestigation(snapshot, { suspected: null }, context);
      return fetched;
    case 'contradictory':
      if (!snapshot.settling)
        work.snapshot = rescheduleInvestigation(snapshot, { suspected: null, contradictory: true }, context);
      else if (evidence.detail) applyEvidence(work, evidence, context);
      else work.snapshot = settled({ ...snapshot, departure: null }, false, context);
      return fetched;
    case 'suspected': {
      const before = snapshot.departure?.suspected ?? null;
      const again = before?.as === verdict.as ? before : null;
      const found = await searchesWork();
      const confirmed =
        found && again !== null && crawl.startedAt >= again.at + settings.confirmAfterSeconds * 1000;
      if (confirmed) return { gone: { work, as: verdict.as, evidence } };
      // Until then no event is emitted for a job that may soon be listed again, unless its detail is
      // authoritative.
      if (snapshot.settling) applyEvidence(work, evidence, context);
      // A search that does not find a listed job contradicts everything else.
      const suspected = found ? (again ?? { as: verdict.as, at: crawl.startedAt }) : before;
      const contradictory = suspected === null ? { contradictory: true as const } : {};
      work.snapshot = rescheduleInvestigation(work.snapshot, { suspected, ...contradictory }, context);
      return fetched;
    }
    case 'left':
      // Without its detail, a new job is not tracked at once: it may be readable again soon.
      if (evidence.detailProblem && !shouldTrackWithoutDetail(work, evidence.detailProblem, context))
        throw evidence.detailProblem;
      if (evidence.detailProblem && isListAuthoritative(snapshot)) {
        work.snapshot = { ...snapshot, detailPending: true };
      }
      applyEvidence(work, evidence, context);
      if (verdict.closed) end(work, 'closed', evidence.response, context);
      if (evidence.closed && !hasUnemittedValues(work.snapshot, evidence.closed.view)) {
        work.fingerprint = fingerprint(evidence.closed.view);
      }
      return fetched;
  }
}

/**
 * Applies the evidence about a job that only the search found in the active list: a page had shifted, or the search is
 * outdated. It proves no value of a field. The next crawl that contains the job does.
 */
function applyFound(
  work: Work,
  { detail, detailResponse, activeResponse }: Evidence,
  context: ApplyContext,
): void {
  const { snapshot } = work;
  const { list, settling, unproven } = snapshot;
  if (settling !== null) {
    if (detail) applyFetchedDetail(work, detail, detailResponse, context);
    else work.snapshot = rescheduleFailedFetch(snapshot, context);
    return;
  }
  if (list === null || unproven !== null || !detail) {
    work.snapshot = rescheduleFailedFetch({ ...snapshot, departure: null }, context);
  } else {
    work.snapshot = { ...snapshot, departure: null, heldBack: true };
    work.listed = { view: list, response: activeResponse };
    applyFetchedDetail(work, detail, detailResponse, context);
  }
  // The stored list view cannot resolve what the list withdrew.
  const { dateOut, tracking } = snapshot.emitted;
  if (snapshot.heldBack && snapshot.owed && (dateOut !== null || tracking.length > 0)) {
    work.snapshot = rescheduleDisagreement(work.snapshot, context);
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
  // The entry of the same poll is compared with the snapshot.
  if (work.listed) {
    work.listed = { ...work.listed, view: statuses.withCurrentName(work.listed.view) };
  }
  return statuses.withCurrentNamesIn(detail);
}

/** Applies the detail of a job that is in the list or has left it. */
function applyFetchedDetail(
  work: Work,
  detail: DetailView,
  response: ViewResponse,
  context: ApplyContext,
): void {
  const { unproven, settling } = work.snapshot;
  const moved = work.events.length;
  work.snapshot = addMissingFields(work.snapshot, 'detail', detail);
  const { open, ...step } = applyDetail(work.snapshot, detail, work.listed, response, context.known);
  addStep(work, step);
  if (!work.listed) {
    const anew = settling === null || work.events.length > moved || work.hinted === true;
    work.snapshot = settled(work.snapshot, anew, context);
    return;
  }
  if (unproven !== null) applyFirstListEntry(work, context);
  work.snapshot = open ? rescheduleDisagreement(work.snapshot, context) : { ...work.snapshot, owed: null };
}

/**
 * Applies the detail of a dispatched job that may still be in the list, which cannot be searched. The
 * authoritative view stays the same. For a listed job, the detail only supplies dispatch and tracking (rule
 * 4).
 */
function applyDispatchEvidence(
  work: Work,
  { detail, detailResponse }: Evidence,
  context: ApplyContext,
): void {
  const { list, settling, unproven, owed } = work.snapshot;
  if (detail !== null && settling !== null) {
    applyFetchedDetail(work, detail, detailResponse, context);
    return;
  }
  // Without the list, it cannot be determined whether the job is new.
  if (detail !== null && list !== null && unproven === null) {
    const before = addMissingFields(work.snapshot, 'detail', detail);
    const listed = { view: list, response: detailResponse };
    const { open: _, ...step } = applyDetail(before, detail, listed, detailResponse, context.known);
    addStep(work, step);
  }
  work.snapshot = rescheduleFailedFetch({ ...work.snapshot, owed }, context);
}

/** Applies the evidence about a job that left the list. */
function applyEvidence(
  work: Work,
  { detail, detailResponse, closed, detailProblem }: Evidence,
  context: ApplyContext,
): void {
  if (detailProblem && closed) {
    trackUnread(work);
    if (!work.untracked) addStep(work, applyClosedEntry(work.snapshot, closed, context.known));
  }
  const { unproven, list } = work.snapshot;
  if (detail === null) return;
  applyFetchedDetail(work, detail, detailResponse, context);
  // Never observed in the active list, and not new either: a job from before tracking began.
  const created = work.events.some((event) => event.type === 'job.created');
  if (unproven !== null && list === null && !created) work.untracked = 'keep snapshot';
}

/** Compares the list with the job's first list view. No crawl since then serves as evidence. */
function applyFirstListEntry(work: Work, { known }: ApplyContext): void {
  applyListed(work, { ...known, lastGoodCrawlStartedAt: null });
}

function end(work: Work, ending: Ending, response: ViewResponse, context: ApplyContext): void {
  // The job's record was deleted before it could be read.
  trackUnread(work);
  if (work.untracked) {
    work.snapshot = { ...work.snapshot, ended: ending, owed: null };
    return;
  }
  const since = sinceListed(work.snapshot, context.known);
  addStep(work, applyEnding(work.snapshot, ending, response, since, context.known));
  work.snapshot = settled(work.snapshot, true, context);
}

/** Tracks a delisted job without its detail. A job that no list view is known of is not tracked. */
function trackUnread(work: Work): void {
  if (work.snapshot.unproven === null) return;
  work.snapshot = trackWithoutDetail(work.snapshot, null);
  if (work.snapshot.list === null) work.untracked = 'keep snapshot';
}

/** Returns whether a job is tracked even if its detail fails once more. A new job waits for its detail first. */
function shouldTrackWithoutDetail({ snapshot }: Work, cause: unknown, { startedAt }: ApplyContext): boolean {
  const { unproven, owed } = snapshot;
  if (unproven === null) return true;
  const forbidden = cause instanceof OrderingError && cause.kind === 'forbidden';
  const tries = (owed?.tries ?? 0) + 1;
  return tries >= TAKEN_ON_AFTER_TRIES && (forbidden || startedAt - unproven >= TAKEN_ON_AFTER_MS);
}

function rescheduleUnanswered(work: Work, cause: unknown, context: ApplyContext): void {
  if (work.listed && work.snapshot.unproven !== null && shouldTrackWithoutDetail(work, cause, context)) {
    work.snapshot = trackWithoutDetail(work.snapshot, work.listed.view);
    applyFirstListEntry(work, context);
  }
  work.snapshot = rescheduleFailedFetch(work.snapshot, context);
}
