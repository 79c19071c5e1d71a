/**
 * What a crawl shows beside what is known, job by job. Only jobs that moved, are missing, or asked to be looked at are
 * worked on; a job that is as it was costs its fingerprint and nothing more.
 */
import type { ActiveJob } from '../ordering/schemas.ts';
import { type AccountRef, keys } from '../table/schema.ts';
import type { Table } from '../table/table.ts';
import type { Crawl, Noticed } from './crawl.ts';
import { type Known, type Sighting, seenInList, sinceListed } from './diff.ts';
import { type IndexEntry, type JobIndex, type Phase, UNKNOWN } from './job-index.ts';
import type { OpenKinds } from './open-jobs.ts';
import { type Absence, countTally, type Tally } from './quarantine.ts';
import { adopt, type Snapshot, toSnapshot } from './snapshot.ts';
import type { StatusNames } from './statuses.ts';
import { fingerprint, listView } from './views.ts';
import { isDue, phaseOf, type TrackingSettings, takeInList, type Work } from './work.ts';

/** What a poll knows of its account before it reads anything of the service. */
export interface Tracked {
  readonly ref: AccountRef;
  readonly table: Table;
  readonly settings: TrackingSettings;
  readonly index: JobIndex;
  readonly statuses: StatusNames;
  readonly kinds: OpenKinds;
  readonly known: Known;
}

/** What follows from a crawl before anything else is asked. */
export interface Observed {
  readonly works: Map<number, Work>;
  readonly missing: ReadonlyMap<number, Phase>;
  readonly upgraded: boolean;
}

/** What to keep of a job that a page shows: nothing but its fingerprint when that is known, and nothing else is due. */
export function notice({ index, kinds, known }: Tracked, job: ActiveJob): Noticed {
  const view = listView(job);
  const print = fingerprint(view);
  const entry = index.get(job.jobNumber);
  const quiet = entry?.fingerprint === print && entry.phase === 'listed' && !isDue(entry, known.startedAt);
  const kind = kinds.of(view);
  return quiet ? { print, kind } : { print, kind, view };
}

/**
 * The jobs to work on after a crawl, with what the list says of them taken in; and the phase of every job that is not in
 * the list. Jobs whose fingerprint older code made are worked on in portions: `upgraded` when there are no more (rule 6).
 */
export async function observe(tracked: Tracked, seen: Crawl): Promise<Observed> {
  const { index, known, settings } = tracked;
  const touched = new Map<number, { listed: Sighting; print: number } | undefined>();
  let stale = 0;
  for (const [jobNumber, { print, view, look }] of seen.observations) {
    if (!view) continue;
    if (index.get(jobNumber)?.fingerprint === UNKNOWN) stale += 1;
    if (stale <= settings.upgradesPerPoll) touched.set(jobNumber, { listed: { view, look }, print });
  }
  const missing = new Map<number, Phase>();
  for (const [jobNumber, entry] of index) {
    if (seen.observations.has(jobNumber)) continue;
    missing.set(jobNumber, entry.phase);
    // Absence from an incomplete crawl proves nothing, so whoever is asked after because of it waits.
    const wanted = entry.phase === 'listed' ? seen.complete : isDue(entry, known.startedAt);
    if (wanted) touched.set(jobNumber, undefined);
  }
  const stored = await readSnapshots(tracked, [...touched.keys()]);
  const works = new Map<number, Work>();
  for (const [jobNumber, shown] of touched) {
    const before = stored.get(jobNumber);
    const entry = index.get(jobNumber);
    const work = shown
      ? listedWork(tracked, jobNumber, entry, before, shown.listed, shown.print)
      : before && missingWork(tracked, entry, before, seen);
    if (work) works.set(jobNumber, work);
  }
  return { works, missing, upgraded: stale <= settings.upgradesPerPoll };
}

/** The snapshots that exist of some jobs, by number. */
export async function readSnapshots(
  { ref, table }: Pick<Tracked, 'ref' | 'table'>,
  jobNumbers: readonly number[],
): Promise<Map<number, Snapshot>> {
  if (jobNumbers.length === 0) return new Map();
  const items = await table.getMany(jobNumbers.map((jobNumber) => keys.snapshot(ref, jobNumber)));
  return new Map(items.map(toSnapshot).map((snapshot) => [snapshot.jobNumber, snapshot]));
}

function listedWork(
  { known, statuses }: Tracked,
  jobNumber: number,
  entry: IndexEntry | undefined,
  before: Snapshot | undefined,
  listed: Sighting,
  print: number,
): Work {
  const base = { jobNumber, entry, stored: before, listed, events: [] };
  let work: Work;
  if (before && known.baselineStartedAt !== null) {
    const today = adopt(statuses.inTodaysNames(before), 'list', listed.view);
    const proven = before.unproven === null;
    work = {
      ...base,
      shown: [],
      snapshot: proven ? today : { ...today, departure: null },
      // An unproven job stays as it was first seen, and so does the fingerprint that goes with it.
      fingerprint: proven ? print : (entry?.fingerprint ?? print),
    };
  } else {
    const { snapshot, shown } = seenInList(jobNumber, undefined, listed, known);
    work = { ...base, snapshot, shown: [...shown], fingerprint: print };
  }
  takeInList(work, known);
  if (owes(work.snapshot, known)) work.lookSince = work.snapshot.owed?.at ?? 0;
  return work;
}

function missingWork(
  { known, statuses }: Tracked,
  entry: IndexEntry | undefined,
  before: Snapshot,
  seen: Crawl,
): Work {
  const { jobNumber } = before;
  const work = {
    jobNumber,
    entry,
    stored: before,
    events: [],
    shown: [],
    fingerprint: entry?.fingerprint ?? 0,
  };
  if (known.baselineStartedAt === null) {
    // Stored by a baseline that was cut off, and gone since: it never counted.
    return { ...work, snapshot: before, untracked: 'delete snapshot' };
  }
  const leaving = before.departure === null && before.settling === null;
  const today = statuses.inTodaysNames(before);
  const snapshot: Snapshot = leaving
    ? {
        ...today,
        // Until now every complete crawl showed it; from here on it has a "last seen" of its own.
        listAt: sinceListed(before, known),
        departure: { tries: 0, suspected: null },
        owed: { at: known.startedAt, tries: 0 },
      }
    : today;
  const answerable = seen.complete || snapshot.ended !== null;
  const look = answerable && owes(snapshot, known) ? { lookSince: snapshot.owed?.at ?? 0 } : {};
  return { ...work, snapshot, ...look };
}

function owes({ owed }: Snapshot, { startedAt }: Known): boolean {
  return owed !== null && owed.at <= startedAt;
}

/** What jobs are missing after a complete crawl and its looks (rule 10). `tally`: negative verdicts announced so far. */
export function countAbsence(
  { known }: Tracked,
  seen: Crawl,
  { works, missing }: Pick<Observed, 'works' | 'missing'>,
  tally: Tally,
): Absence {
  const phases = { departed: 0, suspected: 0, contradictory: 0, listed: 0, settling: 0 };
  for (const [jobNumber, phase] of missing) if (!works.has(jobNumber)) phases[phase] += 1;
  for (const { snapshot, untracked } of works.values()) if (!untracked) phases[phaseOf(snapshot)] += 1;
  return {
    // Entries that can't be read are in the list all the same: as many of the missing jobs are not.
    listed: seen.observations.size + seen.unread,
    suspected: phases.suspected,
    contradictory: phases.contradictory,
    unanswered: Math.max(0, phases.departed - seen.unread),
    announced: countTally(tally, known.startedAt),
  };
}
