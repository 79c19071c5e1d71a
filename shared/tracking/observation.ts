/**
 * Compares a crawl with the known state, job by job. Only jobs that changed, are missing, or are due for a
 * detail fetch are processed. An unchanged job costs only its fingerprint.
 */
import type { ListedJob } from '../ordering/list-page.ts';
import { type AccountRef, keys } from '../storage/schema.ts';
import type { Table } from '../storage/table.ts';
import type { Crawl, Observation } from './crawl.ts';
import { type ListEntry, type ObservationContext, sinceListed, type ViewResponse } from './diff/step.ts';
import { applyListEntry } from './diff.ts';
import { type IndexEntry, type JobIndex, type Phase, UNKNOWN } from './job-index.ts';
import { type KnownEntry, recallEntry, rememberEntry } from './known-entries.ts';
import type { OpenKinds } from './open-jobs.ts';
import { type Absence, countVerdicts, type VerdictCounter } from './quarantine.ts';
import { isDue, type TrackingSettings, toPhase } from './schedule.ts';
import { isScheduledAfter, withPastTimes } from './set-back.ts';
import { addMissingFields, type Snapshot, toSnapshot } from './snapshot.ts';
import type { StatusNames } from './status-names.ts';
import { fingerprint, isTruncated, listView } from './views.ts';
import { applyListed, createWork, type Work } from './work.ts';

/** State of the account before the poll reads anything from upstream. */
export interface Tracked {
  readonly ref: AccountRef;
  readonly table: Table;
  readonly settings: TrackingSettings;
  readonly index: JobIndex;
  readonly statuses: StatusNames;
  readonly kinds: OpenKinds;
  readonly known: ObservationContext;
}

/** Result of a crawl before any further request. */
export interface ObservationResult {
  readonly works: Map<number, Work>;
  readonly missing: ReadonlyMap<number, Phase>;
  readonly upgraded: boolean;
}

/** Returns the entry with a digest if the job is unchanged and nothing is due. Its text is not parsed again. */
export function recallQuiet({ index, known, statuses }: Tracked, digest: string): KnownEntry | undefined {
  const entry = recallEntry(digest);
  if (!entry || statuses.isFormer(entry.kind.status)) return undefined;
  return isQuiet(index.get(entry.jobNumber), entry.fingerprint, known) ? entry : undefined;
}

/**
 * Returns what to keep of a list entry. If its fingerprint is known and nothing is due, only the
 * kind is kept. The view of an entry with a former status name is always kept as it is:
 * the lookup, read later, decides about that name.
 */
export function projectEntry(
  { index, kinds, known, statuses }: Tracked,
  job: ListedJob | KnownEntry,
  response: ViewResponse,
): Observation {
  if ('fingerprint' in job)
    return { response, kind: kinds.like(job.kind), truncated: false, view: undefined };
  const view = listView(job);
  const current = statuses.withCurrentName(view);
  const print = fingerprint(current);
  const quiet = view === current && isQuiet(index.get(job.jobNumber), print, known);
  const kind = kinds.of(current);
  const truncated = isTruncated(job, view);
  if (quiet && !truncated && job.digest) {
    rememberEntry(job.digest, { jobNumber: job.jobNumber, fingerprint: print, kind });
  }
  return { response, kind, truncated, view: quiet ? undefined : view };
}

function isQuiet(entry: IndexEntry | undefined, print: number, { startedAt }: ObservationContext): boolean {
  return entry?.fingerprint === print && entry.phase === 'listed' && !isDue(entry, startedAt);
}

/**
 * Returns the jobs to process after a crawl, with their list entries applied, and the phase of every job
 * that is not in the list.
 *
 * Jobs whose fingerprint was computed by older code are processed in portions. `upgraded` is `true` if none
 * remain (rule 6).
 */
export async function observe(tracked: Tracked, crawl: Crawl): Promise<ObservationResult> {
  const { index, known, settings, statuses } = tracked;
  const touched = new Map<number, { listed: ListEntry; print: number } | undefined>();
  let stale = 0;
  for (const [jobNumber, { view, response }] of crawl.observations) {
    if (!view) continue;
    const entry = index.get(jobNumber);
    const current = statuses.withCurrentName(view);
    const print = fingerprint(current);
    if (isQuiet(entry, print, known)) continue;
    if (entry?.fingerprint === UNKNOWN) stale += 1;
    if (stale <= settings.upgradesPerPoll)
      touched.set(jobNumber, { listed: { view: current, response }, print });
  }
  const missing = new Map<number, Phase>();
  for (const jobNumber of index.jobNumbers()) {
    const entry = crawl.observations.has(jobNumber) ? undefined : index.get(jobNumber);
    if (!entry) continue;
    missing.set(jobNumber, entry.phase);
    // Absence from an incomplete crawl proves nothing, so an investigation because of absence waits.
    const isOwed = isDue(entry, known.startedAt) || isScheduledAfter(entry, known.setBackFrom);
    const wanted = entry.phase === 'listed' ? crawl.complete : isOwed;
    if (wanted) touched.set(jobNumber, undefined);
  }
  const stored = await readSnapshots(tracked, [...touched.keys()]);
  const works = new Map<number, Work>();
  for (const [jobNumber, found] of touched) {
    const before = stored.get(jobNumber);
    const entry = index.get(jobNumber);
    const work = found
      ? listedWork(tracked, jobNumber, entry, before, found.listed, found.print)
      : before && missingWork(tracked, entry, before, crawl);
    if (work) works.set(jobNumber, work);
  }
  return { works, missing, upgraded: stale <= settings.upgradesPerPoll };
}

/** Reads the stored snapshots of the given jobs, by job number. */
export async function readSnapshots(
  { ref, table, known }: Pick<Tracked, 'ref' | 'table' | 'known'>,
  jobNumbers: readonly number[],
): Promise<Map<number, Snapshot>> {
  if (jobNumbers.length === 0) return new Map();
  const items = await table.getMany(jobNumbers.map((jobNumber) => keys.snapshot(ref, jobNumber)));
  const { startedAt, setBackFrom } = known;
  return new Map(
    items.map((item) => {
      const snapshot = withPastTimes(toSnapshot(item), startedAt, setBackFrom);
      return [snapshot.jobNumber, snapshot];
    }),
  );
}

function listedWork(
  { known, statuses }: Tracked,
  jobNumber: number,
  entry: IndexEntry | undefined,
  before: Snapshot | undefined,
  listed: ListEntry,
  print: number,
): Work {
  const base = { jobNumber, entry, stored: before, listed, events: [] };
  let work: Work;
  if (before && known.baselineStartedAt !== null) {
    const today = addMissingFields(statuses.withCurrentNames(before), 'list', listed.view);
    const proven = before.unproven === null;
    work = {
      ...base,
      observedStatuses: [],
      snapshot: proven ? today : { ...today, departure: null },
      // An unproven job keeps its first list view, and the fingerprint of that view.
      fingerprint: proven ? print : (entry?.fingerprint ?? print),
    };
  } else {
    const { snapshot, observedStatuses } = applyListEntry(jobNumber, undefined, listed, known);
    work = { ...base, snapshot, observedStatuses: [...observedStatuses], fingerprint: print };
  }
  applyListed(work, known);
  if (owes(work.snapshot, known)) work.owedSince = work.snapshot.owed?.at ?? 0;
  return work;
}

function missingWork(
  { known, statuses }: Tracked,
  entry: IndexEntry | undefined,
  before: Snapshot,
  crawl: Crawl,
): Work {
  const work = createWork(before, entry);
  if (known.baselineStartedAt === null) {
    // Stored by an interrupted baseline and delisted since: the job was never tracked.
    return { ...work, untracked: 'delete snapshot' };
  }
  const leaving = before.departure === null && before.settling === null;
  const today = statuses.withCurrentNames(before);
  const snapshot: Snapshot = leaving
    ? {
        ...today,
        // Until now every complete crawl contained the job. From here on its snapshot holds the time of the
        // last observation.
        listAt: sinceListed(before, known),
        departure: { tries: 0, suspected: null },
        owed: { at: known.startedAt, tries: 0 },
      }
    : today;
  const answerable = crawl.complete || snapshot.ended !== null;
  const due = answerable && owes(snapshot, known) ? { owedSince: snapshot.owed?.at ?? 0 } : {};
  return { ...work, snapshot, ...due };
}

function owes({ owed }: Snapshot, { startedAt }: ObservationContext): boolean {
  return owed !== null && owed.at <= startedAt;
}

/**
 * Counts the jobs missing after a complete crawl and its detail fetches (rule 10). `counter`: negative
 * verdicts emitted so far.
 */
export function countAbsence(
  { known }: Tracked,
  crawl: Crawl,
  { works, missing }: Pick<ObservationResult, 'works' | 'missing'>,
  counter: VerdictCounter,
): Absence {
  const phases = { departed: 0, suspected: 0, contradictory: 0, listed: 0, settling: 0 };
  for (const [jobNumber, phase] of missing) if (!works.has(jobNumber)) phases[phase] += 1;
  for (const { snapshot, untracked } of works.values()) if (!untracked) phases[toPhase(snapshot)] += 1;
  return {
    // Unreadable entries are in the list too, so that many of the missing jobs are not missing.
    listed: crawl.observations.size + crawl.unread,
    suspected: phases.suspected,
    contradictory: phases.contradictory,
    unanswered: Math.max(0, phases.departed - crawl.unread),
    reported: countVerdicts(counter, known.startedAt),
  };
}
