/**
 * Parcels of a thread that customers were notified of, for each job: jobs with the same parcel can have different customers. Pure.
 */
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

/** Returns the parcels that customers know, with those of a message about a job. `at`: its time (epoch ms). */
export function addKnownParcels(
  parcels: KnownParcels,
  job: number,
  tracking: readonly Parcel[],
  at: number,
): KnownParcels {
  const known = { ...parcels };
  for (const parcel of tracking) {
    const key = parcelKey(parcel);
    known[key] = addJob(known[key], job, parcel.link !== null, at);
  }
  return known;
}

function addJob(known: KnownParcel | undefined, job: number, link: boolean, at: number): KnownParcel {
  const next = { link: link || known?.link === true, at };
  return known && !known.jobs
    ? next
    : { ...next, jobs: { ...known?.jobs, [job]: link || known?.jobs?.[job] === true } };
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
  return { ...to, [toKey]: addJob(to[toKey], job, hasLink, from[fromKey]?.at ?? 0) };
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
