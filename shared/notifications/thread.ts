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
import { hash } from 'node:crypto';
import * as z from 'zod';
import type { LoggedEvent } from '../log/log.ts';
import { dayNamed, sameTime } from '../tracking/timestamps.ts';
import {
  type JobFacts,
  type MessageKind,
  type MessageReason,
  messageKinds,
  type NoticeContent,
  type Parcel,
} from './types.ts';

/** The position of an event in its account's log. Epochs sort by time. */
export interface Mark {
  readonly epoch: string;
  readonly sequence: number;
}

/** The fields of an event that folding uses. */
export interface ThreadEvent {
  readonly type: string;
  readonly mark: Mark;
  /** Time of observation (epoch ms). */
  readonly time: number;
  /** The job after the event. */
  readonly job: {
    readonly jobNumber: number;
    readonly orderNumber: string | null;
    readonly orderGroup: string | null;
    readonly description: string | null;
    readonly dateOut: string | null;
    readonly dateDue: string | null;
    readonly tracking: readonly Parcel[];
  };
  readonly changes: {
    readonly dateOut?: Change | undefined;
    readonly dateDue?: Change | undefined;
    readonly orderGroup?: Change | undefined;
  };
  /** Changed parcels of job.tracking_updated. */
  readonly parcels: readonly { readonly from: Parcel; readonly to: Parcel }[];
}

interface Change {
  readonly from: string | null;
  readonly to: string | null;
}

/** The current facts of a job, and those that customers were notified of. */
export interface ThreadJob {
  /** Mark of the last event that changed this job. */
  readonly mark: Mark;
  /** Time that event was observed (epoch ms). */
  readonly at: number;
  /** Thread that the job moved to. Absent while it is in this one. */
  readonly movedTo?: string;
  /** `dateOut` of the current dispatch. `null` if not dispatched. */
  readonly out: string | null;
  /**
   * The last notified dispatch: its `dateOut`, the `observedAt` of its notice, and whether its revocation was notified. `null` if there is
   * none.
   */
  readonly told: { readonly out: string; readonly in: number; readonly revoked: boolean } | null;
  readonly cancelled: { readonly holds: boolean; readonly told: boolean };
  /** The due date that customers know, and the current one. `null` if it never changed. */
  readonly due: { readonly known: string | null; readonly holds: string | null } | null;
  /** Facts that a message would show. Kept only while the job has an entry to be notified. */
  readonly facts: Facts | null;
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
  readonly kind: MessageKind;
  readonly job: number;
  /** Time of the first observation in it (epoch ms). */
  readonly at: number;
  /** Length of the window that the entry opens, unless it joins another one, ms. */
  readonly windowMs: number;
  /** Time it was folded (epoch ms). The wait for missing events is limited from then on. */
  readonly seenAt: number;
  readonly undone: boolean;
  /** Whether this dispatch was notified before, and then its revocation. It is sent only to recipients of the revocation. */
  readonly again: boolean;
}

/** A notice that is closed and not finished. */
export interface FrozenNotice {
  readonly id: string;
  readonly content: NoticeContent;
  readonly scopes: readonly NoticeScope[];
  readonly again: readonly number[];
  readonly earlier: readonly string[];
  /** Reason why the notice is only recorded and not sent. `null`: it is sent. */
  readonly because: MessageReason | null;
  /** Time from which it is handed out again (epoch ms). */
  readonly giveAt: number;
}

/** Fields by which recipients are matched, in full length. */
export interface NoticeScope {
  readonly jobNumber: number;
  readonly orderNumber: string | null;
  readonly orderGroup: string | null;
}

/** See the module docstring. */
export interface Thread {
  readonly orderGroup: string | null;
  readonly jobs: Readonly<Record<string, ThreadJob>>;
  readonly entries: readonly Entry[];
  readonly frozen: readonly FrozenNotice[];
  /** Notified parcels by {@link parcelKey}: whether with a link, and the time of the last mention (epoch ms). */
  readonly parcels: Readonly<Record<string, { readonly link: boolean; readonly at: number }>>;
  /** Ids of the last notified notices, oldest first. */
  readonly earlier: readonly string[];
  /** Number of notices so far. */
  readonly count: number;
}

/** A window of a thread: its entries become one notice. */
export interface Window {
  readonly kind: MessageKind;
  /** Window from the first event (inclusive) to `end` (exclusive), epoch ms. */
  readonly start: number;
  readonly end: number;
  /** Time until which closing waits for missing events (epoch ms). */
  readonly patience: number;
  readonly entries: readonly Entry[];
}

/** Maximum wait for events that were observed in a window and are not folded yet. */
const PATIENCE_MS = 3_600_000;
/** Jobs of which nothing is new leave the thread. */
const DAY_MS = 86_400_000;
const QUIET_MS = 30 * DAY_MS;
/** Maximum number of notified parcels that a thread remembers. */
const MAX_KNOWN_PARCELS = 10_000;
/** Maximum number of entries of one kind and job that are undone and not recorded yet. */
const MAX_UNDONE = 3;
/** Maximum number of earlier notices that a later one can refer to. */
const MAX_EARLIER = 10;
/** Maximum size of one notice. Further entries become another notice. */
const MAX_NOTICE_JOBS = 1000;
const MAX_NOTICE_BYTES = 150_000;
const MAX_TEXT = 200;
const MAX_LINK = 2000;
const MAX_PARCELS = 100;

const kinds = Object.keys(messageKinds) as MessageKind[];

const text = z
  .string()
  .nullish()
  .transform((value) => value || null);
/** An optional detail: any other type counts as `null`. */
const more = text.catch(null);
const change = z.object({ from: text, to: text }).optional();
const parcel = z.object({ number: text, link: text }).transform(({ number, link }): Parcel[] => {
  const clean = { number: truncate(number), link: parseLink(link) };
  return clean.number === null && clean.link === null ? [] : [clean];
});
const parcels = z
  .array(z.unknown())
  .catch([])
  .transform((all) => {
    const read = all.slice(0, MAX_PARCELS).flatMap((one) => parcel.safeParse(one).data ?? []);
    return [...new Map(read.map((one) => [parcelKey(one), one])).values()];
  });
const EventData = z.object({
  data: z.object({
    job: z.object({
      jobNumber: z.int().nonnegative(),
      orderGroup: text,
      orderNumber: text,
      description: more,
      dateDue: more,
      dateOut: text,
      tracking: parcels,
    }),
    changes: z.object({ dateOut: change, dateDue: change, orderGroup: change }).default({}),
    tracking: z.unknown().optional(),
  }),
});

/** Parses an event. Returns a short description of the problem, without customer text, if it is invalid. */
export function parseThreadEvent(
  event: LoggedEvent,
): { readonly parsed: ThreadEvent } | { readonly problem: string } {
  const place = /\.([0-9a-z]{1,32})\.(\d{1,15})$/.exec(event.id);
  if (!place) return { problem: 'its id is not valid' };
  let json: unknown;
  try {
    json = JSON.parse(event.json);
  } catch {
    return { problem: 'it is not JSON' };
  }
  const read = EventData.safeParse(json);
  if (!read.success) {
    const [issue] = read.error.issues;
    return { problem: `${issue?.path.join('.') ?? 'a field'} is not valid` };
  }
  const { job, changes, tracking } = read.data.data;
  const { type, time } = event;
  if (event.jobNumber !== undefined && event.jobNumber !== job.jobNumber) {
    return { problem: 'it is about another job' };
  }
  if (type === 'job.dispatched' && job.dateOut === null) return { problem: 'it has no dispatch date' };
  const updated = type === 'job.tracking_updated' && Array.isArray(tracking) ? tracking : [];
  return {
    parsed: {
      ...{ type, time, job, changes },
      mark: { epoch: place[1] ?? '', sequence: Number(place[2]) },
      parcels: updated.flatMap((one: { from?: unknown; to?: unknown } | null) => {
        const [from] = parcel.safeParse(one?.from).data ?? [];
        const [to] = parcel.safeParse(one?.to).data ?? [];
        return from && to ? [{ from, to }] : [];
      }),
    },
  };
}

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
  const job = applyEvent(before ?? newJob(event), event);
  const parcels = updateMentions(addAliases(thread.parcels, event), event);
  const entries = updateEntries(thread.entries, job, event, wantedKinds(job, event, parcels), windowMs, now);
  const hasPending = entries.some((entry) => entry.job === number && !entry.undone);
  const next: ThreadJob = { ...job, facts: hasPending ? toFacts(event) : null };
  const isBlank = !before && entries === thread.entries && sameJob(next, newJob(event));
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
  // The target knows the job only if it was there before. Of both states the later one counts.
  const joined: ThreadJob =
    other === undefined
      ? job
      : isBefore(job.mark, other.mark)
        ? { ...other, told: other.told ?? job.told, out: other.out ?? job.out }
        : { ...job, told: job.told ?? other.told };
  const mine = from.entries.filter((entry) => entry.job === number);
  const taken = mine.filter(
    ({ kind }) => !to.entries.some((entry) => entry.kind === kind && entry.job === number && !entry.undone),
  );
  const keysOfJob = event.job.tracking.map(parcelKey);
  const parcels = Object.fromEntries(
    Object.entries(from.parcels).filter(([key]) => keysOfJob.includes(key) && to.parcels[key] === undefined),
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
      parcels: { ...to.parcels, ...parcels },
      jobs: { ...to.jobs, [number]: joined },
    },
  };
}

/** Returns the windows of entries that are not undone, by kind and then by time. */
export function pendingWindows(thread: Thread): Window[] {
  return groupIntoWindows(thread.entries.filter(({ undone }) => !undone));
}

/** Returns the time at which the thread is to be processed next (epoch ms), or `undefined` if there is nothing to do. */
export function nextDueTime(thread: Thread, graceMs: number): number | undefined {
  const undone = groupIntoWindows(thread.entries.filter((entry) => entry.undone));
  const ends = [...pendingWindows(thread), ...undone].map(({ end }) => end + graceMs);
  const due = [...ends, ...thread.frozen.map(({ giveAt }) => giveAt)];
  return due.length === 0 ? undefined : Math.min(...due);
}

/** Parameters of closing. Times are epoch ms. */
export interface Closing {
  readonly now: number;
  /** Wait after a window's end for events that were observed in it, ms. */
  readonly graceMs: number;
  /** All events observed before this time are folded. */
  readonly foldedTo: number;
  /** `null`: the account does not notify, or no longer does. */
  readonly settings: { readonly since: number; readonly maxAgeMs: number } | null;
  /** Time at which notices closed now are handed out again if they are not finished. */
  readonly giveAt: number;
  /** Maximum number of windows to close. Default: all. */
  readonly most?: number;
}

/** Closes expired windows: fixes the content of their notices. From then on that content counts as notified. */
export function closeWindows(thread: Thread, closing: Closing): Thread {
  const { now, graceMs, foldedTo, most = Number.POSITIVE_INFINITY } = closing;
  const isOver = ({ end, patience }: Window): boolean =>
    end + graceMs <= now && (end < foldedTo || patience <= now);
  let next = thread;
  for (let count = 0; ; count += 1) {
    const window = pendingWindows(next).find(isOver);
    if (!window) break;
    if (count >= most) return next;
    next = closeWindow(next, window, closing);
  }
  // Entries that were undone before they were notified, and that were in no other window.
  const undone = next.entries.filter((entry) => entry.undone);
  for (const window of groupIntoWindows(undone).filter(isOver)) next = closeWindow(next, window, closing);
  return next;
}

/** Removes a closed notice that is finished. */
export function removeNotice(thread: Thread, id: string): Thread {
  const left = thread.frozen.filter((notice) => notice.id !== id);
  return left.length === thread.frozen.length ? thread : { ...thread, frozen: left };
}

/** Returns whether a notice is still true of a job, or the thread that the job moved to. */
export function checkNotice(
  thread: Thread,
  content: NoticeContent,
  facts: JobFacts,
): boolean | { movedTo: string } {
  const job = thread.jobs[facts.jobNumber];
  // A job that contradicts the notice would have been put back into this thread.
  if (!job) return true;
  if (job.movedTo !== undefined) return { movedTo: job.movedTo };
  const isPending = (kind: MessageKind): boolean =>
    thread.entries.some((entry) => entry.kind === kind && entry.job === facts.jobNumber && !entry.undone);
  switch (content.kind) {
    case 'dispatched':
      return job.out !== null && job.told?.in === content.observedAt && !isPending('dispatched');
    case 'tracking':
      return job.out !== null && !isPending('dispatched');
    case 'dispatch_revoked':
      return job.out === null;
    case 'due_date_changed':
      return job.due === null || sameTime(job.due.holds, facts.dateDue);
    case 'cancelled':
      return job.cancelled.holds;
  }
}

function isBefore(a: Mark, b: Mark): boolean {
  return a.epoch === b.epoch ? a.sequence < b.sequence : a.epoch < b.epoch;
}

// Current facts

function newJob({ mark, time }: ThreadEvent): ThreadJob {
  return {
    ...{ mark, at: time, out: null, told: null, due: null, facts: null },
    cancelled: { holds: false, told: false },
  };
}

/** Returns a job after an event. */
function applyEvent(job: ThreadJob, { type, changes, job: now }: ThreadEvent): ThreadJob {
  switch (type) {
    case 'job.dispatched':
      // A dispatch supersedes a cancellation that customers were notified of.
      return { ...job, out: now.dateOut, cancelled: { holds: false, told: false } };
    case 'job.dispatch_revoked':
      return { ...job, out: null };
    case 'job.cancelled':
      return { ...job, cancelled: { ...job.cancelled, holds: true } };
    case 'job.reopened':
      return { ...job, cancelled: { ...job.cancelled, holds: false } };
    case 'job.due_date_changed': {
      const { dateDue } = changes;
      if (!dateDue) return job;
      return { ...job, due: { known: job.due ? job.due.known : dateDue.from, holds: dateDue.to } };
    }
    case 'job.updated': {
      // A corrected date is the same dispatch.
      const to = changes.dateOut?.to ?? null;
      if (to === null || job.out === null) return job;
      const isNotified = job.told !== null && sameDispatch(job.told.out, job.out);
      return { ...job, out: to, told: job.told && isNotified ? { ...job.told, out: to } : job.told };
    }
    default:
      return job;
  }
}

/** Returns whether two dates are of the same dispatch: the same day, or the same time written differently. */
function sameDispatch(a: string, b: string): boolean {
  return sameTime(a, b) || (dayNamed(a, null) ?? a) === (dayNamed(b, null) ?? b);
}

/** Returns the kinds of changes that customers are to be notified of for a job. */
function wantedKinds(
  job: ThreadJob,
  event: ThreadEvent,
  parcels: Thread['parcels'],
): ReadonlySet<MessageKind> {
  const { out, told, due, cancelled } = job;
  const isNotified = out !== null && told !== null && !told.revoked && sameDispatch(told.out, out);
  const wanted = new Set<MessageKind>();
  if (out !== null && !isNotified) wanted.add('dispatched');
  if (out === null && told !== null && !told.revoked) wanted.add('dispatch_revoked');
  if (isNotified && findNewParcels(event.job.tracking, parcels).length > 0) wanted.add('tracking');
  if (due && !sameTime(due.known, due.holds)) wanted.add('due_date_changed');
  if (cancelled.holds && !cancelled.told) wanted.add('cancelled');
  return wanted;
}

/** Returns the entries after an event: adds missing kinds that are wanted, and marks those no longer wanted as undone. */
function updateEntries(
  entries: readonly Entry[],
  job: ThreadJob,
  event: ThreadEvent,
  wanted: ReadonlySet<MessageKind>,
  windowMs: number,
  now: number,
): readonly Entry[] {
  const { jobNumber } = event.job;
  const { time } = event;
  let next = entries;
  const ofJob = entries.filter((entry) => entry.job === jobNumber);
  for (const kind of kinds) {
    const mine = ofJob.filter((entry) => entry.kind === kind);
    const live = mine.find(({ undone }) => !undone);
    if (live && !wanted.has(kind)) {
      next = next.map((entry) => (entry === live ? { ...entry, undone: true } : entry));
    } else if (!live && wanted.has(kind)) {
      // Tracking is notified when it arrives, not when another event happens to a job that has tracking.
      if (kind === 'tracking' && !/^job\.(?:tracking_added|tracking_updated|dispatched)$/.test(event.type))
        continue;
      const again =
        kind === 'dispatched' && job.told?.revoked === true && matchesDispatch(job.told.out, job.out);
      const former = mine.find((entry) => time < entry.at + entry.windowMs);
      const entry: Entry = former
        ? { ...former, again, undone: false }
        : { kind, job: jobNumber, at: time, windowMs, seenAt: now, undone: false, again };
      const dropped = mine.length >= MAX_UNDONE && !former ? mine[0] : former;
      next = [...next.filter((one) => one !== dropped), entry];
    }
  }
  return next;
}

function matchesDispatch(notified: string, out: string | null): boolean {
  return out !== null && sameDispatch(notified, out);
}

function sameJob(a: ThreadJob, b: ThreadJob): boolean {
  const text = ({ mark: _, at: __, ...rest }: ThreadJob): string =>
    JSON.stringify([rest.movedTo, rest.out, rest.told, rest.cancelled, rest.due, rest.facts]);
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

/** Truncates without splitting a surrogate pair. */
function truncate(text: string | null): string | null {
  if (text === null || text.length <= MAX_TEXT) return text === '' ? null : text;
  return `${text.slice(0, MAX_TEXT - 1).replace(/[\ud800-\udbff]$/, '')}…`;
}

function parseLink(link: string | null): string | null {
  if (link === null || link.length > MAX_LINK) return null;
  const url = URL.parse(link);
  return url?.protocol === 'https:' || url?.protocol === 'http:' ? link : null;
}

// Parcels

/** Returns the key of a parcel: its number, or else its link. Keys are short, because a thread remembers many. */
function parcelKey({ number, link }: Parcel): string {
  const name = number !== null ? `n${number}` : `l${link}`;
  return name.length <= 12 ? name : `#${hash('sha256', name, 'base64url').slice(0, 11)}`;
}

/** Returns the parcels that customers do not know yet, or know without a link. */
function findNewParcels(tracking: readonly Parcel[], parcels: Thread['parcels']): Parcel[] {
  return tracking.filter((parcel) => {
    const told = parcels[parcelKey(parcel)];
    return !told || (!told.link && parcel.link !== null);
  });
}

/** Copies the entry of a notified parcel that got a number or another link: it is still the same parcel. */
function addAliases(parcels: Thread['parcels'], { parcels: moved }: ThreadEvent): Thread['parcels'] {
  let next = parcels;
  for (const { from, to } of moved) {
    const known = next[parcelKey(from)];
    const key = parcelKey(to);
    if (known && next[key] === undefined) next = { ...next, [key]: known };
  }
  return next;
}

/** Updates the time of mention of notified parcels, at most once a day, so that not every event changes the thread. */
function updateMentions(parcels: Thread['parcels'], { job, time }: ThreadEvent): Thread['parcels'] {
  const stale = job.tracking.flatMap((parcel) => {
    const key = parcelKey(parcel);
    const known = parcels[key];
    return known && known.at + DAY_MS <= time ? [[key, { ...known, at: time }] as const] : [];
  });
  return stale.length === 0 ? parcels : { ...parcels, ...Object.fromEntries(stale) };
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

// Windows

/** Groups entries of each kind into windows: the first entry opens one, and entries within it join. */
function groupIntoWindows(entries: readonly Entry[]): Window[] {
  return kinds.flatMap((kind) => {
    const windows: Window[] = [];
    const ordered = entries
      .filter((entry) => entry.kind === kind)
      .sort((a, b) => a.at - b.at || a.job - b.job);
    for (const entry of ordered) {
      const last = windows.at(-1);
      if (last && (entry.at < last.end || entry.at === last.start)) {
        const patience = Math.min(last.patience, entry.seenAt + PATIENCE_MS);
        windows[windows.length - 1] = { ...last, patience, entries: [...last.entries, entry] };
      } else {
        const { at, windowMs, seenAt } = entry;
        windows.push({
          ...{ kind, start: at, end: at + windowMs, patience: seenAt + PATIENCE_MS },
          entries: [entry],
        });
      }
    }
    return windows;
  });
}

/** Closes one window. Entries that exceed the size of a notice become another one. */
function closeWindow(thread: Thread, window: Window, closing: Closing): Thread {
  const { kind, start, end, entries: all } = window;
  const isUndone = all.every(({ undone }) => undone);
  const { entries, jobs } = takeFitting(thread, all, isUndone);
  const observedAt = Math.min(...entries.map(({ at }) => at));
  const because = reasonNotSent(isUndone, observedAt, closing);
  const taken = new Set(entries);
  const isSent = because === null && entries.length === all.length;
  const left = thread.entries.filter(
    (entry) =>
      !taken.has(entry) &&
      // A job that left a notice that is sent has no further part in it.
      !(isSent && entry.undone && entry.kind === kind && entry.at >= start && entry.at < end),
  );
  const after = markNotified({ ...thread, entries: left }, kind, entries, observedAt, because);
  const included = jobs.filter((facts) => kind !== 'tracking' || isUndone || facts.tracking.length > 0);
  // Another job's notice has covered all of these parcels since.
  if (included.length === 0) return after;
  const ordered = included.toSorted((a, b) => a.jobNumber - b.jobNumber);
  const id = `${observedAt.toString(36).padStart(9, '0')}-${thread.count}`;
  const notice: FrozenNotice = {
    id,
    content: { kind, orderGroup: thread.orderGroup, jobs: ordered, observedAt },
    scopes: ordered.map(({ jobNumber }) => ({
      jobNumber,
      orderNumber: thread.jobs[jobNumber]?.facts?.orderNumber ?? null,
      orderGroup: thread.orderGroup,
    })),
    again: entries.flatMap(({ job, again }) => (again ? [job] : [])),
    earlier: thread.earlier,
    because,
    giveAt: closing.giveAt,
  };
  return {
    ...after,
    frozen: [...after.frozen, notice],
    count: thread.count + 1,
    earlier: because === null ? [...thread.earlier, id].slice(-MAX_EARLIER) : thread.earlier,
  };
}

function reasonNotSent(
  isUndone: boolean,
  observedAt: number,
  { now, settings }: Closing,
): MessageReason | null {
  if (isUndone) return 'revoked';
  if (settings === null || observedAt < settings.since) return 'disabled';
  return now - observedAt > settings.maxAgeMs ? 'too_old' : null;
}

/** Returns as many entries as fit into one notice, and the facts of their jobs. */
function takeFitting(
  thread: Thread,
  all: readonly Entry[],
  isUndone: boolean,
): { readonly entries: readonly Entry[]; readonly jobs: readonly JobFacts[] } {
  const entries: Entry[] = [];
  const jobs = new Map<number, JobFacts>();
  let bytes = 0;
  for (const entry of all) {
    const facts = jobFacts(thread, entry, isUndone);
    bytes += Buffer.byteLength(JSON.stringify(facts));
    if (jobs.size > 0 && (jobs.size >= MAX_NOTICE_JOBS || bytes > MAX_NOTICE_BYTES)) break;
    entries.push(entry);
    jobs.set(entry.job, facts);
  }
  return { entries, jobs: [...jobs.values()] };
}

function jobFacts(thread: Thread, { kind, job: jobNumber }: Entry, isUndone: boolean): JobFacts {
  const job = thread.jobs[jobNumber];
  const facts = job?.facts;
  const tracking = facts?.tracking ?? [];
  return {
    jobNumber,
    orderNumber: truncate(facts?.orderNumber ?? null),
    description: facts?.description ?? null,
    dateOut: job?.out ?? null,
    dateDue: kind === 'due_date_changed' && job?.due ? truncate(job.due.holds) : (facts?.dateDue ?? null),
    formerDateDue: kind === 'due_date_changed' && job?.due ? truncate(job.due.known) : null,
    tracking: kind === 'tracking' && !isUndone ? findNewParcels(tracking, thread.parcels) : tracking,
  };
}

/**
 * Marks the content of a notice as notified. A dispatch or cancellation that is not sent because of its age or the settings is treated as
 * never observed.
 */
function markNotified(
  thread: Thread,
  kind: MessageKind,
  entries: readonly Entry[],
  observedAt: number,
  because: MessageReason | null,
): Thread {
  if (because === 'revoked') return thread;
  const jobs = { ...thread.jobs };
  const parcels = { ...thread.parcels };
  const pending = new Set(thread.entries.flatMap(({ job, undone }) => (undone ? [] : [job])));
  for (const { job: number } of entries) {
    const job = jobs[number];
    if (!job) continue;
    const next = markJobNotified(job, kind, observedAt, because === null);
    jobs[number] = pending.has(number) ? next : { ...next, facts: null };
    if (kind === 'tracking' || (kind === 'dispatched' && because === null)) {
      for (const parcel of job.facts?.tracking ?? []) {
        const key = parcelKey(parcel);
        parcels[key] = { link: parcel.link !== null || parcels[key]?.link === true, at: job.at };
      }
    }
  }
  return { ...thread, jobs, parcels };
}

function markJobNotified(job: ThreadJob, kind: MessageKind, observedAt: number, isSent: boolean): ThreadJob {
  switch (kind) {
    case 'dispatched':
      if (job.out === null) return job;
      if (!isSent) return { ...job, out: null, told: null };
      return { ...job, told: { out: job.out, in: observedAt, revoked: false } };
    case 'tracking':
      return job;
    case 'dispatch_revoked':
      return { ...job, told: job.told && { ...job.told, revoked: true } };
    case 'due_date_changed':
      return { ...job, due: job.due && { ...job.due, known: job.due.holds } };
    case 'cancelled':
      return { ...job, cancelled: isSent ? { holds: true, told: true } : { holds: false, told: false } };
  }
}
