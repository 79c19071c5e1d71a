/**
 * A thread: the pending and closed notices of one order group. Pure decisions.
 *
 * event ─ fold ─▶ current facts of the job ⇄ facts that customers were notified of
 * └─ they differ: an entry ─ windows of event time ─ close ─▶ notice, which counts as notified
 *
 * An entry is one kind of change of one job that customers are to be notified of, with its time. It is undone once the current facts equal
 * those that customers were notified of. Entries become notices only when all events observed in their window are folded. So neither the
 * order of events of different jobs nor their delay matters. Events of one job arrive in order and may repeat: each job has the mark of the
 * last event that changed it.
 */
import { dayNamed, readTimes, sameTime } from '../tracking/timestamps.ts';
import {
  addAliases,
  findNewParcels,
  type KnownParcels,
  moveKnownParcels,
  updateMentions,
} from './known-parcels.ts';
import type { JobIdentity } from './recipient-matching.ts';
import { type Mark, type ThreadEvent, truncate } from './thread-event.ts';
import {
  type JobFacts,
  type MessageReason,
  type NoticeContent,
  type NoticeKind,
  noticeKinds,
  type Parcel,
} from './types.ts';

/** The current facts of a job, and those that customers were notified of. */
export interface ThreadJob {
  /** Mark of the last event that changed this job. */
  readonly mark: Mark;
  /** Time that event was observed (epoch ms). */
  readonly at: number;
  /** Thread that the job moved to. Absent while it is in this one. */
  readonly movedTo?: string;
  /** `dateOut` of the current dispatch. `null` if not dispatched, or if customers are not notified of the dispatch because of its age. */
  readonly out: string | null;
  /** Latest time that `out` can mean (epoch ms). Absent if it is not a date. */
  readonly outBy?: number;
  /** Present if the job is dispatched, whether customers are notified of it or not. */
  readonly dispatched?: true;
  /**
   * The last notified dispatch: its `dateOut`, the `observedAt` of its notice, and whether its revocation was notified. `null` if there is
   * none.
   */
  readonly notified: { readonly out: string; readonly in: number; readonly revoked: boolean } | null;
  /** Notices about its dispatches, their revocations and its cancellations, oldest first. Absent: none. */
  readonly dispatches?: readonly NoticePlace[];
  /** `notice`: the notice of the cancellation, absent in threads of former releases. `back`: whether the job returned since. */
  readonly cancelled: {
    readonly holds: boolean;
    readonly notified: boolean;
    readonly notice?: NoticePlace;
    readonly back?: boolean;
  };
  /** The due date that customers know, and the current one. `null` if it never changed. */
  readonly due: { readonly known: string | null; readonly holds: string | null } | null;
  /** Facts that a message would show. Kept only while the job has an entry to be notified. */
  readonly facts: Facts | null;
}

/** A notice, in whichever thread. */
export interface NoticePlace {
  readonly thread: string;
  readonly id: string;
}

interface Facts {
  /** In full length, because recipients are matched by it. */
  readonly orderNumber: string | null;
  readonly description: string | null;
  readonly dateDue: string | null;
  readonly tracking: readonly Parcel[];
}

/** A pending change of a job. */
export interface Entry {
  readonly kind: NoticeKind;
  readonly job: number;
  /** Time of the first observation in it (epoch ms). */
  readonly at: number;
  /** Length of the window that the entry opens, unless it joins another one, ms. */
  readonly windowMs: number;
  /** Time it was folded (epoch ms). The wait for missing events is limited from then on. */
  readonly seenAt: number;
  readonly undone: boolean;
}

/** A notice that is closed and not finished. */
export interface FrozenNotice {
  /** Unique within the thread. */
  readonly id: string;
  readonly content: NoticeContent;
  /** Fields by which recipients of its jobs are matched: in full length, unlike the displayed ones. */
  readonly scopes: readonly JobIdentity[];
  /** Ids of the last notices sent in this thread, oldest first. */
  readonly earlier: readonly string[];
  /** For `reinstated`: the notice of the cancellation, by job number. */
  readonly corrects?: Readonly<Record<string, NoticePlace>>;
  /** For `dispatched` and `dispatch_revoked`: {@link ThreadJob.dispatches} before it, by job number. */
  readonly dispatches?: Readonly<Record<string, readonly NoticePlace[]>>;
  /** Reason why the notice is only recorded and not sent. `null`: it is sent. */
  readonly because: MessageReason | null;
  /** Time from which it is handed out again (epoch ms). */
  readonly giveAt: number;
}

/** See the module docstring. */
export interface Thread {
  readonly orderGroup: string | null;
  readonly jobs: Readonly<Record<string, ThreadJob>>;
  readonly entries: readonly Entry[];
  readonly frozen: readonly FrozenNotice[];
  readonly parcels: KnownParcels;
  /** Ids of the last notified notices, oldest first. */
  readonly earlier: readonly string[];
  /** Number of notices so far. */
  readonly count: number;
}

/** Jobs of which nothing is new leave the thread. */
const QUIET_MS = 30 * 86_400_000;

/** Maximum number of notified parcels that a thread remembers. */
const MAX_KNOWN_PARCELS = 10_000;

/** Maximum number of entries of one kind and job that are undone and not recorded yet. */
const MAX_UNDONE = 3;

export const kinds = noticeKinds;

/** Returns the name of an order group's thread, or of the thread of a job without order group. */
export function threadName(jobNumber: number, orderGroup: string | null): string {
  return orderGroup === null ? `#${jobNumber}` : `=${orderGroup}`;
}

/** Returns a new thread. */
export function emptyThread(orderGroup: string | null): Thread {
  return { orderGroup, jobs: {}, entries: [], frozen: [], parcels: {}, earlier: [], count: 0 };
}

/** Returns whether the thread holds nothing to store. */
export function isEmptyThread({ jobs, entries, frozen }: Thread): boolean {
  return entries.length === 0 && frozen.length === 0 && Object.keys(jobs).length === 0;
}

/** Folds an event. Returns the same thread if the event was folded before or changes nothing that is notified. `now` is epoch ms. */
export function fold(thread: Thread, event: ThreadEvent, windowMs: number, now: number): Thread {
  const number = event.job.jobNumber;
  const known = thread.jobs[number];
  if (known && !isBefore(known.mark, event.mark)) return thread;
  const before = known && known.movedTo === undefined ? known : undefined;
  const { dispatched: _, ...applied } = applyEvent(before ?? newJob(event), event);
  // A revocation may have been observed while notifications were off.
  const job: ThreadJob =
    event.job.dateOut === null ? { ...applied, out: null } : { ...applied, dispatched: true };
  const parcels = updateMentions(addAliases(thread.parcels, event), event);
  const entries = updateEntries(thread.entries, event, wantedKinds(job, event, parcels), windowMs, now);
  const hasPending = entries.some((entry) => entry.job === number && !entry.undone);
  const next: ThreadJob = { ...job, facts: hasPending ? toFacts(event) : null };
  const isBlank =
    !before && entries === thread.entries && sameJob({ ...next, ...BLANK }, { ...newJob(event), ...BLANK });
  const isSame = entries === thread.entries && parcels === thread.parcels && before && sameJob(next, before);
  if (isBlank || isSame) return thread;
  const marked = { ...next, mark: event.mark, at: event.time };
  return { ...thread, entries, parcels, jobs: { ...thread.jobs, [number]: marked } };
}

/**
 * Moves a job with its state and entries from one thread to another. The event that causes the move is still to be folded there. Returns
 * the same threads if there is nothing to move.
 */
export function moveBetweenThreads(
  from: Thread,
  to: Thread,
  event: ThreadEvent,
  toName: string,
): { readonly from: Thread; readonly to: Thread } {
  const number = event.job.jobNumber;
  const job = from.jobs[number];
  if (!job || job.movedTo !== undefined || !isBefore(job.mark, event.mark)) return { from, to };
  const there = to.jobs[number];
  const other = there && there.movedTo === undefined ? there : undefined;
  const [older, later] = other && isBefore(other.mark, job.mark) ? [other, job] : [job, other];
  const dispatches = [older, later].flatMap((one) => one?.dispatches ?? []);
  // The target knows the job only if it was there before. Of both states the later one counts.
  const joined: ThreadJob =
    other === undefined
      ? job
      : isBefore(job.mark, other.mark)
        ? {
            ...{ ...other, notified: other.notified ?? job.notified, out: other.out ?? job.out, dispatches },
            // Its return was folded there before the event that moves it.
            cancelled: other.cancelled.back ? { ...job.cancelled, holds: false } : other.cancelled,
          }
        : { ...job, notified: job.notified ?? other.notified, dispatches };
  const mine = from.entries.filter((entry) => entry.job === number);
  const taken = mine.filter(
    ({ kind }) => !to.entries.some((entry) => entry.kind === kind && entry.job === number && !entry.undone),
  );
  const gone: ThreadJob = { ...newJob(event), mark: event.mark, at: event.time, movedTo: toName };
  return {
    from: {
      ...from,
      entries: from.entries.filter((entry) => entry.job !== number),
      jobs: { ...from.jobs, [number]: gone },
    },
    to: {
      ...to,
      entries: [...to.entries, ...taken],
      parcels: moveKnownParcels(from.parcels, to.parcels, event),
      jobs: { ...to.jobs, [number]: joined },
    },
  };
}

/** Removes a closed notice that is finished. */
export function removeNotice(thread: Thread, id: string): Thread {
  const left = thread.frozen.filter((notice) => notice.id !== id);
  return left.length === thread.frozen.length ? thread : { ...thread, frozen: left };
}

/**
 * Returns whether a notice is still true of a job, the thread that the job moved to, or the time until which an open window may still be
 * undone, which would make the notice true again (epoch ms).
 */
export function checkNotice(
  thread: Thread,
  content: NoticeContent,
  facts: JobFacts,
): boolean | { movedTo: string } | { openUntil: number } {
  const job = thread.jobs[facts.jobNumber];
  // A job that contradicts the notice would have been put back into this thread.
  if (!job) return true;
  if (job.movedTo !== undefined) return { movedTo: job.movedTo };
  const findOpen = (...some: readonly NoticeKind[]): { openUntil: number } | undefined => {
    const open = thread.entries.filter(
      (entry) => entry.job === facts.jobNumber && !entry.undone && some.includes(entry.kind),
    );
    return open.length === 0
      ? undefined
      : { openUntil: Math.max(...open.map(({ at, windowMs }) => at + windowMs)) };
  };
  switch (content.kind) {
    case 'dispatched':
      if (job.notified?.in !== content.observedAt || job.notified.revoked) return false;
      return findOpen('dispatched', 'dispatch_revoked') ?? job.out !== null;
    case 'tracking':
      return findOpen('dispatch_revoked') ?? (job.out !== null && !findOpen('dispatched'));
    case 'dispatch_revoked':
      return findOpen('dispatched') ?? !isDispatched(job);
    case 'due_date_changed':
      return (
        findOpen('dispatched', 'due_date_changed') ??
        (!isDispatched(job) && (job.due === null || sameTime(job.due.holds, facts.dateDue)))
      );
    case 'cancelled':
      return findOpen('dispatched', 'reinstated') ?? job.cancelled.holds;
    case 'reinstated':
      return findOpen('dispatched', 'cancelled') ?? (!job.cancelled.holds && !isDispatched(job));
    case 'note':
      return true;
  }
}

function isBefore(a: Mark, b: Mark): boolean {
  return a.epoch === b.epoch ? a.sequence < b.sequence : a.epoch < b.epoch;
}

function newJob({ mark, time }: ThreadEvent): ThreadJob {
  return {
    ...{ mark, at: time, out: null, notified: null, due: null, facts: null },
    cancelled: { holds: false, notified: false },
  };
}

/** Not compared: a job is stored for its notices only. */
const BLANK = { dispatched: undefined };

/** Returns whether a job is dispatched. Threads of former releases know it only of dispatches that are notified. */
function isDispatched({ out, dispatched }: ThreadJob): boolean {
  return out !== null || dispatched === true;
}

/** Returns a dispatch, with the latest time that its date can mean. */
function toDispatch(out: string | null, zone: string | null): Pick<ThreadJob, 'out' | 'outBy'> {
  const latest = out === null ? undefined : readTimes(out, zone, { midnightIsEndOfDay: true })?.latest;
  return { out, ...(latest === undefined ? {} : { outBy: latest }) };
}

/** Returns a job after an event. */
function applyEvent(job: ThreadJob, { type, changes, zone, job: now }: ThreadEvent): ThreadJob {
  switch (type) {
    case 'job.dispatched': {
      const { outBy: _, ...rest } = job;
      return { ...rest, ...toDispatch(now.dateOut, zone), cancelled: { ...job.cancelled, holds: false } };
    }
    case 'job.cancelled':
      return { ...job, cancelled: { ...job.cancelled, holds: true, back: false } };
    case 'job.reopened':
      return { ...job, cancelled: { ...job.cancelled, holds: false, back: true } };
    case 'job.due_date_changed': {
      const { dateDue } = changes;
      if (!dateDue) return job;
      return { ...job, due: { known: job.due ? job.due.known : dateDue.from, holds: dateDue.to } };
    }
    case 'job.updated': {
      // A corrected date is the same dispatch.
      const to = changes.dateOut?.to ?? null;
      if (to === null || job.out === null) return job;
      const isNotified = job.notified !== null && sameDispatch(job.notified.out, job.out);
      const { outBy: _, ...rest } = job;
      const notified = job.notified && isNotified ? { ...job.notified, out: to } : job.notified;
      return { ...rest, ...toDispatch(to, zone), notified };
    }
    default:
      return job;
  }
}

/** Returns whether two dates are of the same dispatch: the same day, or the same time written differently. */
export function sameDispatch(a: string, b: string): boolean {
  return sameTime(a, b) || (dayNamed(a, null) ?? a) === (dayNamed(b, null) ?? b);
}

/** Returns the kinds of changes that customers are to be notified of for a job. */
function wantedKinds(
  job: ThreadJob,
  { job: { jobNumber, tracking } }: ThreadEvent,
  parcels: KnownParcels,
): ReadonlySet<NoticeKind> {
  const { out, notified, due, cancelled } = job;
  const isNotified =
    out !== null && notified !== null && !notified.revoked && sameDispatch(notified.out, out);
  const wanted = new Set<NoticeKind>();
  if (out !== null && !isNotified) wanted.add('dispatched');
  if (out === null && notified !== null && !notified.revoked) wanted.add('dispatch_revoked');
  if (isNotified && findNewParcels(tracking, parcels, jobNumber).length > 0) wanted.add('tracking');
  if (due && !sameTime(due.known, due.holds) && !isDispatched(job)) wanted.add('due_date_changed');
  if (cancelled.holds && !cancelled.notified) wanted.add('cancelled');
  // A dispatch corrects the cancellation as well.
  if (!cancelled.holds && cancelled.notified && !isDispatched(job)) wanted.add('reinstated');
  return wanted;
}

/** Returns the entries after an event: adds missing kinds that are wanted, and marks those no longer wanted as undone. */
function updateEntries(
  entries: readonly Entry[],
  event: ThreadEvent,
  wanted: ReadonlySet<NoticeKind>,
  windowMs: number,
  now: number,
): readonly Entry[] {
  const { jobNumber } = event.job;
  const { time } = event;
  let next = entries;
  const jobEntries = entries.filter((entry) => entry.job === jobNumber);
  for (const kind of kinds) {
    const mine = jobEntries.filter((entry) => entry.kind === kind);
    const live = mine.find(({ undone }) => !undone);
    if (live && !wanted.has(kind)) {
      next = next.map((entry) => (entry === live ? { ...entry, undone: true } : entry));
    } else if (!live && wanted.has(kind)) {
      // Tracking and a revocation are notified when they arrive, not when another event happens to the job.
      if (kind === 'tracking' && !/^job\.(?:tracking_added|tracking_updated|dispatched)$/.test(event.type))
        continue;
      if (kind === 'dispatch_revoked' && event.type !== 'job.dispatch_revoked') continue;
      const former = mine.find((entry) => time < entry.at + entry.windowMs);
      const entry: Entry = former
        ? { ...former, undone: false }
        : { kind, job: jobNumber, at: time, windowMs, seenAt: now, undone: false };
      const dropped = mine.length >= MAX_UNDONE && !former ? mine[0] : former;
      next = [...next.filter((one) => one !== dropped), entry];
    }
  }
  return next;
}

function sameJob(a: ThreadJob, b: ThreadJob): boolean {
  const text = ({ mark: _, at: __, ...rest }: ThreadJob): string =>
    JSON.stringify([
      ...[rest.movedTo, rest.out, rest.outBy, rest.dispatched],
      ...[rest.notified, rest.cancelled, rest.due, rest.facts],
    ]);
  return text(a) === text(b);
}

function toFacts({ job }: ThreadEvent): Facts {
  return {
    orderNumber: job.orderNumber,
    description: truncate(job.description),
    dateDue: truncate(job.dateDue),
    tracking: job.tracking,
  };
}

/** Removes jobs and parcels that are old at `time` (epoch ms) and have no pending notice. */
export function removeStale(thread: Thread, time: number): Thread {
  const oldest = time - QUIET_MS;
  const kept = Object.entries(thread.parcels).filter(([, { at }]) => at >= oldest);
  const busy = new Set(thread.entries.map(({ job }) => job));
  for (const { content } of thread.frozen) for (const { jobNumber } of content.jobs) busy.add(jobNumber);
  const jobs = Object.entries(thread.jobs).filter(
    ([number, { at }]) => at >= oldest || busy.has(Number(number)),
  );
  const isClean = jobs.length === Object.keys(thread.jobs).length && kept.length <= MAX_KNOWN_PARCELS;
  if (isClean && kept.length === Object.keys(thread.parcels).length) return thread;
  const latest =
    kept.length <= MAX_KNOWN_PARCELS
      ? kept
      : kept.toSorted(([, a], [, b]) => b.at - a.at).slice(0, MAX_KNOWN_PARCELS);
  return { ...thread, parcels: Object.fromEntries(latest), jobs: Object.fromEntries(jobs) };
}
