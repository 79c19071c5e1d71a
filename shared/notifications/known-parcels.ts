/**
 * Parcels of a thread that customers were notified of, for each job: jobs with the same parcel can have different customers. Pure.
 */
import { getOrCreate } from '../get-or-create.ts';
import { parcelKey, type ThreadEvent } from './thread-event.ts';
import type { Parcel } from './types.ts';

/** Notified parcels by {@link parcelKey}. */
export type KnownParcels = Readonly<Record<string, KnownParcel>>;

interface KnownParcel {
  /** Whether a notice had its link. */
  readonly link: boolean;
  /** Time of the last mention (epoch ms). */
  readonly at: number;
  /** Jobs with a notice about the parcel: whether it had the link, by job number. Absent in threads of former releases: all jobs. */
  readonly jobs?: Readonly<Record<string, boolean>>;
}

const DAY_MS = 86_400_000;

/** Parcels of a job in a notice. `at`: time of the notice (epoch ms). */
export interface Mention {
  readonly job: number;
  readonly tracking: readonly Parcel[];
  readonly at: number;
}

/** Returns the parcels that customers know, with those of messages about jobs. */
export function addKnownParcels(parcels: KnownParcels, mentions: readonly Mention[]): KnownParcels {
  const added = new Map<string, { at: number; readonly jobs: Record<number, boolean> }>();
  for (const { job, tracking, at } of mentions) {
    for (const parcel of tracking) {
      const one = getOrCreate(added, parcelKey(parcel), () => ({ at, jobs: {} as Record<number, boolean> }));
      one.at = at;
      one.jobs[job] = parcel.link !== null || one.jobs[job] === true;
    }
  }
  // Each parcel is copied once: a thousand jobs can share it.
  const changed = [...added].map(([key, { jobs, at }]) => [key, addJobs(parcels[key], jobs, at)] as const);
  return { ...parcels, ...Object.fromEntries(changed) };
}

function addJobs(
  known: KnownParcel | undefined,
  jobs: Readonly<Record<string, boolean>>,
  at: number,
): KnownParcel {
  const next = { link: known?.link === true || Object.values(jobs).includes(true), at };
  if (known && !known.jobs) return next;
  const merged: Record<string, boolean> = { ...known?.jobs };
  for (const [job, link] of Object.entries(jobs)) merged[job] = link || merged[job] === true;
  return { ...next, jobs: merged };
}

/** Returns the parcels that the customers of a job do not know yet, or know without a link. */
export function findNewParcels(tracking: readonly Parcel[], parcels: KnownParcels, job: number): Parcel[] {
  return tracking.filter((parcel) => {
    const hasLink = findJob(parcels, parcelKey(parcel), job);
    return hasLink === undefined || (!hasLink && parcel.link !== null);
  });
}

/** Returns whether the customers of a job know a parcel with its link. `undefined`: they do not know it. */
function findJob(parcels: KnownParcels, key: string, job: number): boolean | undefined {
  const known = parcels[key];
  return known?.jobs ? known.jobs[job] : known?.link;
}

/** Adds notified parcels of a job that got a number or another link: they are still the same parcels. */
export function addAliases(parcels: KnownParcels, { parcels: moved, job }: ThreadEvent): KnownParcels {
  return moved.reduce(
    (known, { from, to }) => copyJob(known, parcelKey(from), known, parcelKey(to), job.jobNumber),
    parcels,
  );
}

/** Returns the notified parcels of a thread that a job moves to, with those of its former thread. */
export function moveKnownParcels(from: KnownParcels, to: KnownParcels, { job }: ThreadEvent): KnownParcels {
  const keys = job.tracking.map(parcelKey);
  return keys.reduce((known, key) => copyJob(from, key, known, key, job.jobNumber), to);
}

/** Copies to another place that the customers of a job know a parcel, unless it is known there. */
function copyJob(
  from: KnownParcels,
  fromKey: string,
  to: KnownParcels,
  toKey: string,
  job: number,
): KnownParcels {
  const hasLink = findJob(from, fromKey, job);
  if (hasLink === undefined || findJob(to, toKey, job) !== undefined) return to;
  return { ...to, [toKey]: addJobs(to[toKey], { [job]: hasLink }, from[fromKey]?.at ?? 0) };
}

/** Updates the time of mention of notified parcels, at most once a day, so that not every event changes the thread. */
export function updateMentions(parcels: KnownParcels, { job, time }: ThreadEvent): KnownParcels {
  const stale = job.tracking.flatMap((parcel) => {
    const key = parcelKey(parcel);
    const known = parcels[key];
    return known && known.at + DAY_MS <= time ? [[key, { ...known, at: time }] as const] : [];
  });
  return stale.length === 0 ? parcels : { ...parcels, ...Object.fromEntries(stale) };
}
