/**
 * A thread: what is to be said, and was said, about one order group. Pure decisions.
 *
 *   event ─ fold ─▶ what holds of the job ⇄ what customers were told of it
 *                        └─ they differ: an entry ─ windows of event time ─ close ─▶ notice, which counts as told
 *
 * An entry says that customers are to be told one kind of thing about one job, since when. It is undone as soon as what holds is
 * what they were told. Entries become notices only when everything that was observed in their window is folded, so it does not
 * matter in which order the events of different jobs come, nor how late. Events of one job come in order, perhaps several
 * times: each job knows the last that changed something.
 */
import { hash } from 'node:crypto';
import * as z from 'zod';
import type { LoggedEvent } from '../log/log.ts';
import { dayNamed } from '../tracking/instants.ts';
import { sameTime } from '../tracking/views.ts';
import {
  type JobFacts,
  type MessageKind,
  type MessageReason,
  messageKinds,
  type NoticeContent,
  type Parcel,
} from './model.ts';

/** The place of an event among those of its account: epochs sort by time. */
export interface Mark {
  readonly epoch: string;
  readonly sequence: number;
}

/** An event as far as it matters here. */
export interface Told {
  readonly type: string;
  readonly mark: Mark;
  /** When it was observed (epoch ms). */
  readonly time: number;
  /** The job as it stands after it. */
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
  /** Of job.tracking_updated. */
  readonly parcels: readonly { readonly from: Parcel; readonly to: Parcel }[];
}

interface Change {
  readonly from: string | null;
  readonly to: string | null;
}

/** What is known of a job, and what customers were told of it. */
export interface ThreadJob {
  /** The last event that changed something here. */
  readonly mark: Mark;
  /** When that was observed (epoch ms). */
  readonly at: number;
  /** It went to another thread. */
  readonly movedTo?: string;
  /** The dispatch that holds. */
  readonly out: string | null;
  /** The last dispatch that was told, in which notice (by its `observedAt`), and whether it was told that it was taken back. */
  readonly told: { readonly out: string; readonly in: number; readonly revoked: boolean } | null;
  readonly cancelled: { readonly holds: boolean; readonly told: boolean };
  /** The due date as customers know it, and as it is. */
  readonly due: { readonly known: string | null; readonly holds: string | null } | null;
  /** What a message would say of it; kept only while there is something to say. */
  readonly facts: Facts | null;
}

interface Facts {
  /** Whole, for recipients are found by it. */
  readonly orderNumber: string | null;
  readonly description: string | null;
  readonly dateDue: string | null;
  readonly tracking: readonly Parcel[];
}

/** Something to say about a job. */
export interface Entry {
  readonly kind: MessageKind;
  readonly job: number;
  /** When the first of it was observed (epoch ms). */
  readonly at: number;
  /** The window that it opens, if no other one has it. */
  readonly windowMs: number;
  /** When it was folded (epoch ms): since when it can be waited for others. */
  readonly seenAt: number;
  readonly undone: boolean;
  /** A dispatch that was told before, and then that it was taken back: news only for who was told that. */
  readonly again: boolean;
}

/** A notice that is closed and not finished yet. */
export interface FrozenNotice {
  readonly id: string;
  readonly content: NoticeContent;
  readonly scopes: readonly NoticeScope[];
  readonly again: readonly number[];
  readonly earlier: readonly string[];
  /** It is not told, but noted: why. */
  readonly because: MessageReason | null;
  /** It is given again from then on (epoch ms). */
  readonly giveAt: number;
}

/** By what recipients are found, whole. */
export interface NoticeScope {
  readonly jobNumber: number;
  readonly orderNumber: string | null;
  readonly orderGroup: string | null;
}

/** See the top of the file. */
export interface Thread {
  readonly orderGroup: string | null;
  readonly jobs: Readonly<Record<string, ThreadJob>>;
  readonly entries: readonly Entry[];
  readonly frozen: readonly FrozenNotice[];
  /** Parcels that were told, by {@link parcelKey}: with a link, and when they were mentioned last (epoch ms). */
  readonly parcels: Readonly<Record<string, { readonly link: boolean; readonly at: number }>>;
  /** Notices that were told, the last ones, oldest first. */
  readonly earlier: readonly string[];
  /** How many notices there were. */
  readonly count: number;
}

/** A window of a thread: what becomes one notice. */
export interface Window {
  readonly kind: MessageKind;
  /** From the first event to this (epoch ms), exclusive. */
  readonly start: number;
  readonly end: number;
  /** Nobody waits longer than until then for what may be missing. */
  readonly patience: number;
  readonly entries: readonly Entry[];
}

/** How long it is waited for events that were observed in a window and are not folded yet. */
const PATIENCE_MS = 3_600_000;
/** Jobs of which nothing is new leave the thread. */
const DAY_MS = 86_400_000;
const QUIET_MS = 30 * DAY_MS;
/** Parcels that are remembered as told. */
const MAX_TOLD_PARCELS = 10_000;
/** Entries of one kind and job that were undone and are not noted yet. */
const MAX_UNDONE = 3;
/** Notices that a later one can refer to. */
const MAX_EARLIER = 10;
/** What one notice holds at most: the rest is another one. */
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
/** What only says more about a job: anything else than a text is none. */
const more = text.catch(null);
const change = z.object({ from: text, to: text }).optional();
const parcel = z.object({ number: text, link: text }).transform(({ number, link }): Parcel[] => {
  const clean = { number: cut(number), link: linkOf(link) };
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

/** Reads an event; of one that can't be read, why in a few words without anything that customers wrote. */
export function toTold(event: LoggedEvent): { readonly told: Told } | { readonly problem: string } {
  const place = /\.([0-9a-z]{1,32})\.(\d{1,15})$/.exec(event.id);
  if (!place) return { problem: 'its id is none' };
  let json: unknown;
  try {
    json = JSON.parse(event.json);
  } catch {
    return { problem: 'it is no JSON' };
  }
  const read = EventData.safeParse(json);
  if (!read.success) {
    const [issue] = read.error.issues;
    return { problem: `${issue?.path.join('.') ?? 'something'} is not as it should be` };
  }
  const { job, changes, tracking } = read.data.data;
  const { type, time } = event;
  if (event.jobNumber !== undefined && event.jobNumber !== job.jobNumber) {
    return { problem: 'it is about another job' };
  }
  if (type === 'job.dispatched' && job.dateOut === null) return { problem: 'it has no date' };
  const updated = type === 'job.tracking_updated' && Array.isArray(tracking) ? tracking : [];
  return {
    told: {
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

/** The thread of an order group, or of a job that is in none. */
export function threadOf(jobNumber: number, orderGroup: string | null): string {
  return orderGroup === null ? `#${jobNumber}` : `=${orderGroup}`;
}

/** A thread of which nothing is known. */
export function emptyThread(orderGroup: string | null): Thread {
  return { orderGroup, jobs: {}, entries: [], frozen: [], parcels: {}, earlier: [], count: 0 };
}

/** Whether there is nothing to keep. */
export function isEmpty({ jobs, entries, frozen }: Thread): boolean {
  return entries.length === 0 && frozen.length === 0 && Object.keys(jobs).length === 0;
}

/**
 * Folds an event. The same thread comes back when there is nothing to it: it was folded already, or changes nothing of what
 * is said. `now` is epoch ms.
 */
export function fold(thread: Thread, event: Told, windowMs: number, now: number): Thread {
  const number = event.job.jobNumber;
  const known = thread.jobs[number];
  if (known && !isBefore(known.mark, event.mark)) return thread;
  const before = known && known.movedTo === undefined ? known : undefined;
  const job = after(before ?? fresh(event), event);
  const parcels = withMentioned(withAliases(thread.parcels, event), event);
  const entries = withWants(thread.entries, job, event, wantsOf(job, event, parcels), windowMs, now);
  const speaks = entries.some((entry) => entry.job === number && !entry.undone);
  const next: ThreadJob = { ...job, facts: speaks ? factsOf(event) : null };
  const isBlank = !before && entries === thread.entries && sameJob(next, fresh(event));
  const isSame = entries === thread.entries && parcels === thread.parcels && before && sameJob(next, before);
  if (isBlank || isSame) return thread;
  const marked = { ...next, mark: event.mark, at: event.time };
  return { ...thread, entries, parcels, jobs: { ...thread.jobs, [number]: marked } };
}

/**
 * Takes a job, with all that is known and to be said of it, from one thread to another; the event that says so is still to be
 * folded there. The same threads come back when there is nothing to take.
 */
export function move(
  from: Thread,
  to: Thread,
  event: Told,
  toName: string,
): { readonly from: Thread; readonly to: Thread } {
  const number = event.job.jobNumber;
  const job = from.jobs[number];
  if (!job || job.movedTo !== undefined || !isBefore(job.mark, event.mark)) return { from, to };
  const there = to.jobs[number];
  const other = there && there.movedTo === undefined ? there : undefined;
  // It can be known there only when the service said of it before that it had moved: later, so that counts.
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
  const gone: ThreadJob = { ...fresh(event), mark: event.mark, at: event.time, movedTo: toName };
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

/** The windows of what is to be said, by kind and then by time. */
export function windowsOf(thread: Thread): Window[] {
  return spansOf(thread.entries.filter(({ undone }) => !undone));
}

/** When something of a thread is to be worked on (epoch ms); `undefined` while there is nothing. */
export function dueOf(thread: Thread, graceMs: number): number | undefined {
  const undone = spansOf(thread.entries.filter((entry) => entry.undone));
  const ends = [...windowsOf(thread), ...undone].map(({ end }) => end + graceMs);
  const due = [...ends, ...thread.frozen.map(({ giveAt }) => giveAt)];
  return due.length === 0 ? undefined : Math.min(...due);
}

/** What notices are closed by. Times are epoch ms. */
export interface Closing {
  readonly now: number;
  /** How long after a window's end it is waited for what was observed in it. */
  readonly graceMs: number;
  /** Everything that was observed before is folded. */
  readonly foldedTo: number;
  /** Null: the account does not tell anything (any more). */
  readonly settings: { readonly since: number; readonly maxAgeMs: number } | null;
  /** When what is closed now is given again, should it not be finished by then. */
  readonly giveAt: number;
  /** So many windows; all unless told. */
  readonly most?: number;
}

/** Closes the windows that are over: fixes what they say, which counts as told from here on. */
export function close(thread: Thread, closing: Closing): Thread {
  const { now, graceMs, foldedTo, most = Number.POSITIVE_INFINITY } = closing;
  const isOver = ({ end, patience }: Window): boolean =>
    end + graceMs <= now && (end < foldedTo || patience <= now);
  let next = thread;
  for (let count = 0; ; count += 1) {
    const window = windowsOf(next).find(isOver);
    if (!window) break;
    if (count >= most) return next;
    next = frozen(next, window, closing);
  }
  // What was undone before anybody heard of it, and stood in no other window.
  const undone = next.entries.filter((entry) => entry.undone);
  for (const window of spansOf(undone).filter(isOver)) next = frozen(next, window, closing);
  return next;
}

/** A closed notice is worked off, or given once more later. */
export function finished(thread: Thread, id: string): Thread {
  const left = thread.frozen.filter((notice) => notice.id !== id);
  return left.length === thread.frozen.length ? thread : { ...thread, frozen: left };
}

/** Whether what a notice says of a job still holds; `undefined` when the job is in another thread by now. */
export function stands(
  thread: Thread,
  content: NoticeContent,
  facts: JobFacts,
): boolean | { movedTo: string } {
  const job = thread.jobs[facts.jobNumber];
  // Whatever would be known against it would have brought it back here.
  if (!job) return true;
  if (job.movedTo !== undefined) return { movedTo: job.movedTo };
  const isToBeTold = (kind: MessageKind): boolean =>
    thread.entries.some((entry) => entry.kind === kind && entry.job === facts.jobNumber && !entry.undone);
  switch (content.kind) {
    case 'dispatched':
      return job.out !== null && job.told?.in === content.observedAt && !isToBeTold('dispatched');
    case 'tracking':
      return job.out !== null && !isToBeTold('dispatched');
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

// What holds

function fresh({ mark, time }: Told): ThreadJob {
  return {
    ...{ mark, at: time, out: null, told: null, due: null, facts: null },
    cancelled: { holds: false, told: false },
  };
}

/** A job after an event. */
function after(job: ThreadJob, { type, changes, job: now }: Told): ThreadJob {
  switch (type) {
    case 'job.dispatched':
      // Customers know better now than that it was cancelled.
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
      // A date that is corrected is the same dispatch.
      const to = changes.dateOut?.to ?? null;
      if (to === null || job.out === null) return job;
      const isTold = job.told !== null && sameDispatch(job.told.out, job.out);
      return { ...job, out: to, told: job.told && isTold ? { ...job.told, out: to } : job.told };
    }
    default:
      return job;
  }
}

/** Whether two dates are of the same dispatch: of the same day, or the same instant in two words. */
function sameDispatch(a: string, b: string): boolean {
  return sameTime(a, b) || (dayNamed(a, null) ?? a) === (dayNamed(b, null) ?? b);
}

/** What customers are to be told of a job. */
function wantsOf(job: ThreadJob, event: Told, parcels: Thread['parcels']): ReadonlySet<MessageKind> {
  const { out, told, due, cancelled } = job;
  const isTold = out !== null && told !== null && !told.revoked && sameDispatch(told.out, out);
  const wants = new Set<MessageKind>();
  if (out !== null && !isTold) wants.add('dispatched');
  if (out === null && told !== null && !told.revoked) wants.add('dispatch_revoked');
  if (isTold && newsOf(event.job.tracking, parcels).length > 0) wants.add('tracking');
  if (due && !sameTime(due.known, due.holds)) wants.add('due_date_changed');
  if (cancelled.holds && !cancelled.told) wants.add('cancelled');
  return wants;
}

/** The entries after an event: what is wanted is there, what is not is undone. */
function withWants(
  entries: readonly Entry[],
  job: ThreadJob,
  event: Told,
  wants: ReadonlySet<MessageKind>,
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
    if (live && !wants.has(kind)) {
      next = next.map((entry) => (entry === live ? { ...entry, undone: true } : entry));
    } else if (!live && wants.has(kind)) {
      // Tracking is told when it comes: not when something else happens to a job that has some.
      if (kind === 'tracking' && !/^job\.(?:tracking_added|tracking_updated|dispatched)$/.test(event.type))
        continue;
      const again = kind === 'dispatched' && job.told?.revoked === true && isOf(job.told.out, job.out);
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

function isOf(told: string, out: string | null): boolean {
  return out !== null && sameDispatch(told, out);
}

function sameJob(a: ThreadJob, b: ThreadJob): boolean {
  const text = ({ mark: _, at: __, ...rest }: ThreadJob): string =>
    JSON.stringify([rest.movedTo, rest.out, rest.told, rest.cancelled, rest.due, rest.facts]);
  return text(a) === text(b);
}

function factsOf({ job }: Told): Facts {
  return {
    orderNumber: job.orderNumber,
    description: cut(job.description),
    dateDue: cut(job.dateDue),
    tracking: job.tracking,
  };
}

/** Not in the middle of a character. */
function cut(text: string | null): string | null {
  if (text === null || text.length <= MAX_TEXT) return text === '' ? null : text;
  return `${text.slice(0, MAX_TEXT - 1).replace(/[\ud800-\udbff]$/, '')}…`;
}

function linkOf(link: string | null): string | null {
  if (link === null || link.length > MAX_LINK) return null;
  const url = URL.parse(link);
  return url?.protocol === 'https:' || url?.protocol === 'http:' ? link : null;
}

// Parcels

/** What a parcel is known by: its number, or else its link; short, for a thread remembers many. */
function parcelKey({ number, link }: Parcel): string {
  const name = number !== null ? `n${number}` : `l${link}`;
  return name.length <= 12 ? name : `#${hash('sha256', name, 'base64url').slice(0, 11)}`;
}

/** The parcels that customers don't know yet, or not with a link. */
function newsOf(tracking: readonly Parcel[], parcels: Thread['parcels']): Parcel[] {
  return tracking.filter((parcel) => {
    const told = parcels[parcelKey(parcel)];
    return !told || (!told.link && parcel.link !== null);
  });
}

/** A parcel that got a number, or another link, is still that parcel. */
function withAliases(parcels: Thread['parcels'], { parcels: moved }: Told): Thread['parcels'] {
  let next = parcels;
  for (const { from, to } of moved) {
    const told = next[parcelKey(from)];
    const key = parcelKey(to);
    if (told && next[key] === undefined) next = { ...next, [key]: told };
  }
  return next;
}

/** Parcels are remembered as long as anything is heard of them; to the day, so that not each event is news. */
function withMentioned(parcels: Thread['parcels'], { job, time }: Told): Thread['parcels'] {
  const stale = job.tracking.flatMap((parcel) => {
    const key = parcelKey(parcel);
    const told = parcels[key];
    return told && told.at + DAY_MS <= time ? [[key, { ...told, at: time }] as const] : [];
  });
  return stale.length === 0 ? parcels : { ...parcels, ...Object.fromEntries(stale) };
}

/** Without what is old, and of which nothing is to be said: as of an instant (epoch ms). */
export function tidied(thread: Thread, time: number): Thread {
  const oldest = time - QUIET_MS;
  const kept = Object.entries(thread.parcels).filter(([, { at }]) => at >= oldest);
  const busy = new Set(thread.entries.map(({ job }) => job));
  for (const { content } of thread.frozen) for (const { jobNumber } of content.jobs) busy.add(jobNumber);
  const jobs = Object.entries(thread.jobs).filter(
    ([number, { at }]) => at >= oldest || busy.has(Number(number)),
  );
  const isTidy = jobs.length === Object.keys(thread.jobs).length && kept.length <= MAX_TOLD_PARCELS;
  if (isTidy && kept.length === Object.keys(thread.parcels).length) return thread;
  const latest =
    kept.length <= MAX_TOLD_PARCELS
      ? kept
      : kept.toSorted(([, a], [, b]) => b.at - a.at).slice(0, MAX_TOLD_PARCELS);
  return { ...thread, parcels: Object.fromEntries(latest), jobs: Object.fromEntries(jobs) };
}

// Windows

/** Entries of one kind in windows: the first opens one, and who comes in it joins. */
function spansOf(entries: readonly Entry[]): Window[] {
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

/** Closes one window. What does not fit becomes another notice. */
function frozen(thread: Thread, window: Window, closing: Closing): Thread {
  const { kind, start, end, entries: all } = window;
  const isUndone = all.every(({ undone }) => undone);
  const { entries, jobs } = fitting(thread, all, isUndone);
  const observedAt = Math.min(...entries.map(({ at }) => at));
  const because = reasonOf(isUndone, observedAt, closing);
  const taken = new Set(entries);
  const isTold = because === null && entries.length === all.length;
  const left = thread.entries.filter(
    (entry) =>
      !taken.has(entry) &&
      // Who left a notice that is told has nothing more to do with it.
      !(isTold && entry.undone && entry.kind === kind && entry.at >= start && entry.at < end),
  );
  const after = settled({ ...thread, entries: left }, kind, entries, observedAt, because);
  const shown = jobs.filter((facts) => kind !== 'tracking' || isUndone || facts.tracking.length > 0);
  // Another job's notice told all of it meanwhile.
  if (shown.length === 0) return after;
  const ordered = shown.toSorted((a, b) => a.jobNumber - b.jobNumber);
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

function reasonOf(isUndone: boolean, observedAt: number, { now, settings }: Closing): MessageReason | null {
  if (isUndone) return 'revoked';
  if (settings === null || observedAt < settings.since) return 'turned_off';
  return now - observedAt > settings.maxAgeMs ? 'too_old' : null;
}

/** As many entries as one notice can hold, and what it says of them. */
function fitting(
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
    orderNumber: cut(facts?.orderNumber ?? null),
    description: facts?.description ?? null,
    dateOut: job?.out ?? null,
    dateDue: kind === 'due_date_changed' && job?.due ? cut(job.due.holds) : (facts?.dateDue ?? null),
    formerDateDue: kind === 'due_date_changed' && job?.due ? cut(job.due.known) : null,
    tracking: kind === 'tracking' && !isUndone ? newsOf(tracking, thread.parcels) : tracking,
  };
}

/** What a notice says counts as told; what is not told because of its age, or of the settings, is as if it had not been seen. */
function settled(
  thread: Thread,
  kind: MessageKind,
  entries: readonly Entry[],
  observedAt: number,
  because: MessageReason | null,
): Thread {
  if (because === 'revoked') return thread;
  const jobs = { ...thread.jobs };
  const parcels = { ...thread.parcels };
  const speaking = new Set(thread.entries.flatMap(({ job, undone }) => (undone ? [] : [job])));
  for (const { job: number } of entries) {
    const job = jobs[number];
    if (!job) continue;
    const next = settledJob(job, kind, observedAt, because === null);
    jobs[number] = speaking.has(number) ? next : { ...next, facts: null };
    if (kind === 'tracking' || (kind === 'dispatched' && because === null)) {
      for (const parcel of job.facts?.tracking ?? []) {
        const key = parcelKey(parcel);
        parcels[key] = { link: parcel.link !== null || parcels[key]?.link === true, at: job.at };
      }
    }
  }
  return { ...thread, jobs, parcels };
}

function settledJob(job: ThreadJob, kind: MessageKind, observedAt: number, isSaid: boolean): ThreadJob {
  switch (kind) {
    case 'dispatched':
      if (job.out === null) return job;
      if (!isSaid) return { ...job, out: null, told: null };
      return { ...job, told: { out: job.out, in: observedAt, revoked: false } };
    case 'tracking':
      return job;
    case 'dispatch_revoked':
      return { ...job, told: job.told && { ...job.told, revoked: true } };
    case 'due_date_changed':
      return { ...job, due: job.due && { ...job.due, known: job.due.holds } };
    case 'cancelled':
      return { ...job, cancelled: isSaid ? { holds: true, told: true } : { holds: false, told: false } };
  }
}
