/** Windows of a thread, and how they become notices. Pure decisions. */

import { addKnownParcels, findNewParcels, type Mention } from './known-parcels.ts';
import {
  type Entry,
  type FrozenNotice,
  kinds,
  type NoticePlace,
  type Thread,
  type ThreadJob,
  threadName,
} from './thread.ts';
import { truncate } from './thread-event.ts';
import type { JobFacts, MessageReason, NoticeContent, NoticeKind } from './types.ts';

/** A window of a thread: its entries become one notice. */
export interface Window {
  readonly kind: NoticeKind;
  /** Window from the first event (inclusive) to `end` (exclusive), epoch ms. */
  readonly start: number;
  readonly end: number;
  /** Time until which closing waits for missing events (epoch ms). */
  readonly patience: number;
  readonly entries: readonly Entry[];
}

/** Maximum wait for events that were observed in a window and are not folded yet. */
const PATIENCE_MS = 3_600_000;

/** Maximum number of earlier notices that a later one can refer to. */
const MAX_EARLIER = 10;

/** Maximum number of notices about the dispatches of one job that a later one can refer to. */
const MAX_DISPATCHES = 50;

/** Maximum size of one notice. Further entries become another notice. */
const MAX_NOTICE_JOBS = 1000;

const MAX_NOTICE_BYTES = 150_000;

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
    for (const part of splitByAge(next, window, closing)) next = closeWindow(next, part, closing);
  }
  // Entries that were undone before they were notified, and that were in no other window.
  const undone = next.entries.filter((entry) => entry.undone);
  for (const window of groupIntoWindows(undone).filter(isOver)) next = closeWindow(next, window, closing);
  return next;
}

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

/** Splits a window into the dispatches that are too old to be sent, and the others. */
function splitByAge(thread: Thread, window: Window, { now, settings }: Closing): Window[] {
  const isOld = (entry: Entry): boolean =>
    settings !== null && now - entryTime(thread, entry) > settings.maxAgeMs;
  if (window.kind !== 'dispatched' || settings === null) return [window];
  const parts = [window.entries.filter(isOld), window.entries.filter((entry) => !isOld(entry))];
  return parts.filter((entries) => entries.length > 0).map((entries) => ({ ...window, entries }));
}

/** Returns the time from which the age of an entry counts (epoch ms). */
function entryTime(thread: Thread, { kind, job, at }: Entry): number {
  const outBy = kind === 'dispatched' ? thread.jobs[job]?.outBy : undefined;
  return Math.min(at, outBy ?? at);
}

/**
 * Returns the time from which the age of a job's change counts (epoch ms): of a dispatch from its date, which can be any time up to
 * `dispatchedBy`, of any other change from its observation.
 */
export function changeTime({ observedAt }: NoticeContent, { dispatchedBy = observedAt }: JobFacts): number {
  return Math.min(observedAt, dispatchedBy);
}

/** Closes one window. Entries that exceed the size of a notice become another one. */
function closeWindow(thread: Thread, window: Window, closing: Closing): Thread {
  const { kind, start, end, entries: all } = window;
  const isUndone = all.every(({ undone }) => undone);
  const { entries, jobs } = takeFitting(thread, all, isUndone);
  const observedAt = Math.min(...entries.map(({ at }) => at));
  const oldest = Math.min(...entries.map((entry) => entryTime(thread, entry)));
  const because = reasonNotSent(isUndone, observedAt, oldest, closing);
  const taken = new Set(entries);
  const isSent = because === null && entries.length === all.length;
  const left = thread.entries.filter(
    (entry) =>
      !taken.has(entry) &&
      // A job that left a notice that is sent has no further part in it.
      !(isSent && entry.undone && entry.kind === kind && entry.at >= start && entry.at < end),
  );
  const id = `${observedAt.toString(36).padStart(9, '0')}-${thread.count}`;
  const after = markNotified({ ...thread, entries: left }, { kind, entries, observedAt, because, id });
  const included = jobs.filter((facts) => kind !== 'tracking' || isUndone || facts.tracking.length > 0);
  // Another notice about the job has covered all of these parcels since.
  if (included.length === 0) return after;
  const ordered = included.toSorted((a, b) => a.jobNumber - b.jobNumber);
  const corrects =
    kind === 'reinstated' ? noticesByJob(thread, entries, (job) => job.cancelled.notice) : undefined;
  const isAboutDispatch = kind === 'dispatched' || kind === 'dispatch_revoked';
  const dispatches = isAboutDispatch ? noticesByJob(thread, entries, (job) => job.dispatches) : undefined;
  const notice: FrozenNotice = {
    id,
    content: { kind, orderGroup: thread.orderGroup, jobs: ordered, observedAt },
    scopes: ordered.map(({ jobNumber }) => ({
      jobNumber,
      orderNumber: thread.jobs[jobNumber]?.facts?.orderNumber ?? null,
      orderGroup: thread.orderGroup,
    })),
    earlier: thread.earlier,
    ...(corrects && { corrects }),
    ...(dispatches && { dispatches }),
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

/** Returns the notices that `find` returns for the jobs of the entries, by job number. */
function noticesByJob<T>(
  thread: Thread,
  entries: readonly Entry[],
  find: (job: ThreadJob) => T | undefined,
): Readonly<Record<string, T>> {
  return Object.fromEntries(
    entries.flatMap(({ job: number }): [string, T][] => {
      const job = thread.jobs[number];
      const notices = job && find(job);
      return notices ? [[String(number), notices]] : [];
    }),
  );
}

/** `oldest`: time from which the age counts (epoch ms). */
function reasonNotSent(
  isUndone: boolean,
  observedAt: number,
  oldest: number,
  { now, settings }: Closing,
): MessageReason | null {
  if (isUndone) return 'revoked';
  if (settings === null || observedAt < settings.since) return 'disabled';
  return now - oldest > settings.maxAgeMs ? 'too_old' : null;
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
    bytes += Buffer.byteLength(JSON.stringify([facts, thread.jobs[entry.job]?.dispatches]));
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
    tracking:
      kind === 'tracking' && !isUndone ? findNewParcels(tracking, thread.parcels, jobNumber) : tracking,
    ...(kind === 'dispatched' && job?.outBy !== undefined ? { dispatchedBy: job.outBy } : {}),
  };
}

/**
 * Marks the content of a notice as notified. A dispatch or cancellation that is not sent because of its age or the settings is treated as
 * never observed: a dispatch that was notified before stays notified, so that its revocation is sent.
 */
function markNotified(
  thread: Thread,
  notice: Pick<FrozenNotice, 'id' | 'because'> & {
    readonly kind: NoticeKind;
    readonly entries: readonly Entry[];
    readonly observedAt: number;
  },
): Thread {
  const { kind, entries, observedAt, because, id } = notice;
  if (because === 'revoked') return thread;
  const jobs = { ...thread.jobs };
  const mentions: Mention[] = [];
  const pending = new Set(thread.entries.flatMap(({ job, undone }) => (undone ? [] : [job])));
  for (const { job: number } of entries) {
    const job = jobs[number];
    if (!job) continue;
    const place = { thread: threadName(number, thread.orderGroup), id };
    const next = markJobNotified(job, kind, { observedAt, place, isSent: because === null });
    jobs[number] = pending.has(number) ? next : { ...next, facts: null };
    if (kind === 'tracking' || (kind === 'dispatched' && because === null)) {
      mentions.push({ job: number, tracking: job.facts?.tracking ?? [], at: job.at });
    }
  }
  return { ...thread, jobs, parcels: addKnownParcels(thread.parcels, mentions) };
}

function markJobNotified(
  job: ThreadJob,
  kind: NoticeKind,
  { observedAt, place, isSent }: { observedAt: number; place: NoticePlace; isSent: boolean },
): ThreadJob {
  const dispatches = [...(job.dispatches ?? []), place].slice(-MAX_DISPATCHES);
  switch (kind) {
    case 'dispatched':
      if (job.out === null) return job;
      if (!isSent) return { ...job, out: null };
      return {
        ...{ ...job, notified: { out: job.out, in: observedAt, revoked: false }, dispatches },
        cancelled: { holds: job.cancelled.holds, notified: false },
      };
    case 'tracking':
      return job;
    case 'dispatch_revoked':
      return {
        ...{ ...job, notified: job.notified && { ...job.notified, revoked: true } },
        ...(isSent ? { dispatches } : {}),
      };
    case 'due_date_changed':
      return { ...job, due: job.due && { ...job.due, known: job.due.holds } };
    case 'cancelled':
      return {
        ...job,
        cancelled: isSent
          ? { holds: true, notified: true, notice: place }
          : { holds: false, notified: false },
        ...(isSent ? { dispatches } : {}),
      };
    case 'reinstated':
      return { ...job, cancelled: { holds: false, notified: false } };
  }
}
