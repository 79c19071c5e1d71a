/**
 * Looking at jobs one by one: those that left the list (rule 3), those that settle (rule 7), and those in the list whose
 * detail is owed. The longest waiting come first, within the budget and the time of the poll; the others stay owed.
 */
import type { OrderingClient } from '../ordering/client.ts';
import { isRefusal } from './account-state.ts';
import type { Crawl } from './crawl.ts';
import { type Evidence, investigate, judge, searchesFind } from './departures.ts';
import { announceEnding, type Known, type Look, seenInDetail, sinceListed, takenOn } from './diff.ts';
import { adopt, type Ending } from './snapshot.ts';
import { type DetailView, detailView } from './views.ts';
import {
  addStep,
  disagreeing,
  heldUp,
  type ScheduleContext,
  settled,
  takeInList,
  unanswered,
  unexplained,
  type Work,
} from './work.ts';

/** What looks are made with. */
export interface LookContext extends ScheduleContext {
  readonly client: OrderingClient;
  readonly seen: Crawl;
  readonly known: Known;
  readonly signal: AbortSignal;
}

/** What came of the looks. */
export interface Looked {
  /** How many looks were made, and how many stay owed: unanswered, or over the budget. */
  readonly made: number;
  readonly left: number;
  /** What kept one from an answer. */
  readonly problem?: unknown;
  /** Jobs whose negative verdict is confirmed. Nothing was made of it yet: {@link conclude} does. */
  readonly gone: readonly Gone[];
}

/** A job whose negative verdict is confirmed. */
interface Gone {
  readonly work: Work;
  readonly as: Exclude<Ending, 'closed'>;
  readonly evidence: Evidence;
}

/** Looks under way at the same time; the client allows no more requests at once either. */
const CONCURRENCY = 4;
/** A job whose own record stays unread for so long is taken on without it. */
const TAKEN_ON_AFTER_MS = 86_400_000;

/**
 * Looks at the works that ask for it, and brings their snapshots and events forward. Negative verdicts wait for what the
 * looks show all together (rule 10). Never throws for the service's faults.
 */
export async function lookAtJobs(works: Iterable<Work>, context: LookContext): Promise<Looked> {
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
    const listed = context.seen.observations.keys().next().value;
    control ??= searchesFind(context.client, listed, context.signal).catch(() => false);
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
        const confirmed = await lookAt(work, context, searchesWork);
        if (confirmed) gone.push(confirmed);
      } catch (cause) {
        left += 1;
        problem ??= cause;
        refused ||= isRefusal(cause);
        // Our own time that ran out says nothing about the job.
        if (!context.signal.aborted) withoutAnswer(work, context);
      }
    }
  };
  await Promise.all(Array.from({ length: CONCURRENCY }, lookOn));
  return { made, left, gone, ...(problem === undefined ? {} : { problem }) };
}

/** Announces confirmed negative verdicts, or holds them up: then nothing of what was found out is taken in. */
export function conclude(gone: readonly Gone[], may: 'announce' | 'hold up', context: LookContext): void {
  for (const { work, as, evidence } of gone) {
    if (may === 'hold up') {
      work.snapshot = heldUp(work.snapshot, context);
      continue;
    }
    takeInRecord(work, evidence, context);
    end(work, as, evidence.look, context);
  }
}

/** The job, when a negative verdict about it is confirmed. */
async function lookAt(
  work: Work,
  context: LookContext,
  searchesWork: () => Promise<boolean>,
): Promise<Gone | undefined> {
  const { client, known, seen, settings, signal } = context;
  const { jobNumber, snapshot } = work;
  if (work.listed || snapshot.ended !== null) {
    const { body, askedAt, answeredAt } = await client.job(jobNumber, signal);
    if (body) takeInDetail(work, detailView(body), { askedAt, answeredAt, view: 'detail' }, context);
    // In the list and yet unknown: a contradiction. After its end: to be expected, and nothing that needs saying.
    else if (work.listed) withoutAnswer(work, context);
    else work.snapshot = settled(snapshot, false, context);
    return undefined;
  }

  const evidence = await investigate(client, jobNumber, signal);
  const verdict = judge(evidence);
  switch (verdict.kind) {
    case 'listed': {
      // A page had drifted, nothing happened: what the search shows is as good as what the page would have shown.
      const { active, activeLook, detail, detailLook } = evidence;
      if (!active) return undefined;
      const sighting = { view: active, look: activeLook };
      if (snapshot.unproven !== null) {
        // The detail came before this first sighting: what of dispatch and tracking it lacked came after it.
        const { dateOut, tracking } = detail ?? active;
        work.listed = { ...sighting, view: { ...active, dateOut, tracking } };
        takeInList(work, known);
      }
      // A job that has settled so far is judged by its detail as such; then it is in the list again.
      if (snapshot.settling === null) work.listed = sighting;
      if (detail) takeInDetail(work, detail, detailLook, context);
      work.listed = sighting;
      if (snapshot.unproven === null) takeInList(work, known);
      else if (!detail) work.snapshot = unanswered({ ...work.snapshot, departure: null }, context);
      return undefined;
    }
    case 'dispatched':
      takeInDispatch(work, evidence, context);
      return undefined;
    case 'contradictory':
      if (snapshot.settling) takeInRecord(work, evidence, context);
      else work.snapshot = unexplained(snapshot, { suspected: null, contradictory: true }, context);
      return undefined;
    case 'suspected': {
      const before = snapshot.departure?.suspected ?? null;
      const again = before?.as === verdict.as ? before : null;
      const found = await searchesWork();
      const confirmed =
        found && again !== null && seen.startedAt >= again.at + settings.confirmAfterSeconds * 1000;
      if (confirmed) return { work, as: verdict.as, evidence };
      // Until then nothing is said of a job that may be back in the list in a moment, unless its detail has the word.
      if (snapshot.settling) takeInRecord(work, evidence, context);
      // A search that does not find what is there fits nothing either.
      const suspected = found ? (again ?? { as: verdict.as, at: seen.startedAt }) : before;
      const contradictory = suspected === null ? { contradictory: true as const } : {};
      work.snapshot = unexplained(work.snapshot, { suspected, ...contradictory }, context);
      return undefined;
    }
    case 'left':
      takeInRecord(work, evidence, context);
      if (verdict.closed) end(work, 'closed', evidence.look, context);
      return undefined;
  }
}

/** Takes in the detail of a job that is in the list, or that left it. */
function takeInDetail(work: Work, detail: DetailView, look: Look, context: LookContext): void {
  const { unproven, settling } = work.snapshot;
  const moved = work.events.length;
  work.snapshot = adopt(work.snapshot, 'detail', detail);
  const { open, ...step } = seenInDetail(work.snapshot, detail, work.listed, look, context.known);
  addStep(work, step);
  if (!work.listed) {
    work.snapshot = settled(work.snapshot, settling === null || work.events.length > moved, context);
    return;
  }
  if (unproven !== null) sinceFirstSighting(work, context);
  work.snapshot = open ? disagreeing(work.snapshot, context) : { ...work.snapshot, owed: null };
}

/**
 * Takes in the record of a dispatched job that may still be in the list, which can't be searched. The word stays where it
 * was: of a job that was listed the record tells its dispatch and tracking, and no more (rule 4).
 */
function takeInDispatch(work: Work, { detail, detailLook }: Evidence, context: LookContext): void {
  const { list, settling, unproven, owed } = work.snapshot;
  if (detail !== null && settling !== null) {
    takeInDetail(work, detail, detailLook, context);
    return;
  }
  // Whether it is new can't be told without the list.
  if (detail !== null && list !== null && unproven === null) {
    const before = adopt(work.snapshot, 'detail', detail);
    const listed = { view: list, look: detailLook };
    const { open: _, ...step } = seenInDetail(before, detail, listed, detailLook, context.known);
    addStep(work, step);
  }
  work.snapshot = unanswered({ ...work.snapshot, owed }, context);
}

/** Takes in what was found out about a job that left the list. */
function takeInRecord(work: Work, { detail, detailLook }: Evidence, context: LookContext): void {
  const { unproven, list } = work.snapshot;
  if (detail === null) return;
  takeInDetail(work, detail, detailLook, context);
  // Never seen in the active list, and not new either: history that is none of ours.
  const created = work.events.some((event) => event.type === 'job.created');
  if (unproven !== null && list === null && !created) work.untracked = 'keep snapshot';
}

/** The list is compared with how it first showed the job: no crawl since then was. */
function sinceFirstSighting(work: Work, { known }: LookContext): void {
  takeInList(work, { ...known, lastGoodCrawlStartedAt: null });
}

function end(work: Work, ending: Ending, look: Look, context: LookContext): void {
  if (work.snapshot.unproven !== null) {
    // Its record is gone before it could be read.
    work.snapshot = takenOn(work.snapshot, null);
    if (work.snapshot.list === null) work.untracked = 'keep snapshot';
  }
  if (work.untracked) {
    work.snapshot = { ...work.snapshot, ended: ending, owed: null };
    return;
  }
  const since = sinceListed(work.snapshot, context.known);
  addStep(work, announceEnding(work.snapshot, ending, look, since, context.known));
  work.snapshot = settled(work.snapshot, true, context);
}

function withoutAnswer(work: Work, context: LookContext): void {
  const { unproven } = work.snapshot;
  if (work.listed && unproven !== null && context.startedAt - unproven >= TAKEN_ON_AFTER_MS) {
    work.snapshot = takenOn(work.snapshot, work.listed.view);
    sinceFirstSighting(work, context);
  }
  work.snapshot = unanswered(work.snapshot, context);
}
