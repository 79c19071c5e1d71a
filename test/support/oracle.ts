/**
 * Checks the log of an account against the real history of its jobs: each event is true, and all events together equal the
 * tracker's snapshots and the state of the ordering API.
 * One file: the checks of single events and of totals read the same history.
 */
import type { ActiveJobDto, JobDto } from '../../sandbox/world/views.ts';
import type { JobSummary, TrackingEntry } from '../../shared/events/catalogue.ts';
import type { JobEvent } from '../../shared/events/event.ts';
import { CLOCK_TOLERANCE_MS } from '../../shared/tracking/clock-tolerance.ts';
import type { JobIndex } from '../../shared/tracking/job-index.ts';
import { isListAuthoritative, type Snapshot, summarize } from '../../shared/tracking/snapshot.ts';
import { readTimes } from '../../shared/tracking/timestamps.ts';
import { SHARED_FIELDS } from '../../shared/tracking/views.ts';
import { createGroupLedger } from './group-oracle.ts';
import { during, type History, type Stand } from './history.ts';

/** Event types that {@link findContradiction} checks. Other types must be checked elsewhere. */
const JUDGED: ReadonlySet<string> = new Set([
  'job.created',
  'job.status_changed',
  'job.line_status_changed',
  'job.dispatched',
  'job.dispatch_revoked',
  'job.tracking_added',
  'job.tracking_updated',
  'job.tracking_removed',
  'job.due_date_changed',
  'job.updated',
  'job.locked',
  'job.unlocked',
  'job.overdue',
  'job.closed',
  'job.cancelled',
  'job.unavailable',
  'job.reopened',
  'job.invoiced',
  'job.production_started',
]);
const ENDINGS: readonly string[] = ['job.closed', 'job.cancelled', 'job.unavailable'];
/** Pairs of account events that alternate: the first, then the second. */
const ACCOUNT_TURNS: readonly (readonly [string, string])[] = [
  ['account.poll_failing', 'account.poll_recovered'],
  ['account.credentials_rejected', 'account.credentials_accepted'],
];
/** Fields for which null in a detail means "not given" (rule 4). */
const OMISSIBLE = ['orderNumber', 'orderGroup', 'orderGroupSequence'] as const;
const DAY_MS = 86_400_000;
/** The earliest at which a new job with an unreadable detail is tracked without job.created. */
const ADOPTION_MS = 120_000;
const isDispatchOrNew = (type: string) => type === 'job.dispatched' || type === 'job.created';

/** State of a job according to its emitted events. */
interface EmittedState {
  job: JobSummary;
  /** The deciding view when log and snapshot were last compared. */
  view: 'list' | 'detail';
  /** Whether that view had no status then. */
  unnamed: boolean;
  /** Status of that view then, if it was the detail, and the list had shown a later status. */
  superseded: string | null | undefined;
  /** The list view then. */
  list: Snapshot['list'];
  dispatched: boolean;
  ended: string | undefined;
  created: boolean;
  /** Due time for which `job.overdue` was emitted. Reset when the due date or the dispatch changes. */
  overdueAt: string | undefined;
  at: number;
  types: string[];
}

/** Reads a log as it grows, and collects its errors. */
export interface Ledger {
  /** Error messages so far. */
  readonly problems: readonly string[];
  readonly events: readonly JobEvent[];
  /** Starts with the snapshots of the baseline, whose crawl began at `startedAt` (epoch ms). */
  begin(snapshots: readonly Snapshot[], startedAt: number): void;
  /** Adds the next events of the log. */
  take(events: readonly JobEvent[]): void;
  /**
   * Checks that log and snapshots have the same state of every job. Call it after every poll: the deciding view changes at most
   * once between calls.
   */
  compare(snapshots: readonly Snapshot[]): void;
  /** Checks that the log has the same state as the ordering API. Call it when nothing has changed or failed for long enough. */
  settle(known: {
    readonly snapshots: readonly Snapshot[];
    readonly index: JobIndex;
    /** When the baseline was complete (epoch ms). */
    readonly baselinedAt: number;
    /** A job whose detail fetch fails three times is adopted without an event. */
    readonly lastFaultAt: number;
  }): void;
  /** Checks that only listed jobs remain in the index. */
  farewell(index: JobIndex): void;
}

/** Creates a ledger for the log of an account with this history. */
export function createLedger(history: History): Ledger {
  const problems: string[] = [];
  const events: JobEvent[] = [];
  const emittedStates = new Map<number, EmittedState>();
  const discovered = new Set<string>();
  const accountEvents: string[] = [];
  /** Jobs whose detail was read before the current comparison. */
  const detailed = new Set<number>();
  const leeway = createLeeway();
  const groups = createGroupLedger(history, problems);
  let begunAt: number | undefined;
  /** The events that are processed together. */
  let upcoming: readonly JobEvent[] = [];

  function begin(snapshots: readonly Snapshot[], startedAt: number): void {
    begunAt = startedAt;
    for (const snapshot of snapshots) emittedStates.set(snapshot.jobNumber, toInitialState(snapshot));
  }

  function toInitialState(snapshot: Snapshot): EmittedState {
    const job = summarize(snapshot);
    return {
      job,
      view: getDecidingView(snapshot),
      unnamed: isUnnamed(snapshot),
      superseded: getSupersededStatus(snapshot),
      list: snapshot.list,
      dispatched: job.dateOut !== null,
      ended: snapshot.ended === null ? undefined : `job.${snapshot.ended}`,
      created: false,
      overdueAt: undefined,
      at: 0,
      types: [],
    };
  }

  function isOldDispatch({ jobNumber, list, detail }: Snapshot, baselineStartedAt: number): boolean {
    const out = !list?.dateOut && detail?.dateOut && readTimes(detail.dateOut, detail.timezone);
    return !!out && !detailed.has(jobNumber) && out.latest < baselineStartedAt - CLOCK_TOLERANCE_MS;
  }

  /** Returns the status of a deciding detail if it is one that the list had before its last status. Otherwise undefined. */
  function getSupersededStatus(snapshot: Snapshot): string | null | undefined {
    const { jobNumber, detail, ahead } = snapshot;
    const last = ahead?.status;
    if (!last || !detail || isListAuthoritative(snapshot)) return undefined;
    const had = history
      .stands(jobNumber)
      .some(({ list, at }) => at < last.at && list?.masterJobStatus === detail.status);
    return had ? detail.status : undefined;
  }

  function isDispatchedNext({ subject, time, sequence }: JobEvent): boolean {
    return upcoming.some(
      (other) =>
        other.subject === subject &&
        other.time === time &&
        other.type === 'job.dispatched' &&
        Number(other.sequence) > Number(sequence),
    );
  }

  function takeJobEvent(event: JobEvent, jobNumber: number): void {
    const complain = (what: string) =>
      problems.push(`${event.type} of ${jobNumber} (${event.id}): ${what} ${JSON.stringify(event.data)}`);
    const { type, data } = event;
    const problem = findContradiction(event, history.stands(jobNumber));
    if (problem) complain(problem);
    if (begunAt === undefined) complain('emitted before the baseline');
    const before = emittedStates.get(jobNumber);
    const job = data.job as JobSummary;
    const entry: EmittedState = before ?? {
      job,
      view: 'list',
      unnamed: job.status === null,
      superseded: undefined,
      list: null,
      // The first state of a job that is not provably new counts as emitted, unless a later event of the same response emits
      // it.
      dispatched:
        type === 'job.dispatch_revoked' ||
        (!isDispatchOrNew(type) && job.dateOut !== null && !isDispatchedNext(event)),
      ended: undefined,
      created: false,
      overdueAt: undefined,
      at: 0,
      types: [],
    };
    emittedStates.set(jobNumber, entry);
    if (type === 'job.created') {
      if (before) complain('is not the first event of the job');
      const [, first] = history.stands(jobNumber);
      // Of a job of the minutes before, the number proves that it is new (rule 5).
      const earliest = (begunAt ?? 0) - CLOCK_TOLERANCE_MS;
      if (first && first.at < earliest) complain('the job existed before the baseline');
      entry.created = true;
    }
    if (type === 'job.dispatched') {
      if (entry.dispatched) complain('dispatched twice');
      entry.dispatched = true;
    }
    if (type === 'job.dispatch_revoked') {
      if (!entry.dispatched) complain('was not dispatched');
      entry.dispatched = false;
    }
    if (ENDINGS.includes(type)) {
      if (entry.ended) complain('ended twice');
      entry.ended = type;
    }
    if (type === 'job.reopened') {
      if (entry.ended !== `job.${data.previousOutcome}`) complain(`had not ended so, but ${entry.ended}`);
      entry.ended = undefined;
    }
    if (type === 'job.due_date_changed' || type === 'job.dispatch_revoked') entry.overdueAt = undefined;
    if (type === 'job.overdue') {
      if (entry.overdueAt === data.dueAt) complain('was emitted before');
      entry.overdueAt = String(data.dueAt);
    }
    entry.job = job;
    entry.at = Date.parse(event.time);
    entry.types.push(type);
  }

  function takeAccountEvent({ type, data }: JobEvent): void {
    if (type === 'status.discovered') {
      const { status } = data as unknown as { status: string };
      if (discovered.has(status)) problems.push(`The status ${status} was discovered twice.`);
      discovered.add(status);
      const shown = history.everyJob.some((job) =>
        history
          .stands(job)
          .some(
            ({ list, detail }) =>
              list?.masterJobStatus === status ||
              detail?.jobStatus === status ||
              detail?.lines.some((line) => line.jobLineStatus === status),
          ),
      );
      if (!shown) problems.push(`No job ever had the status ${status}.`);
      return;
    }
    if (type === 'account.baselined' && accountEvents.includes(type)) problems.push('Baselined twice.');
    for (const [on, off] of ACCOUNT_TURNS) {
      if (type !== on && type !== off) continue;
      const last: string = accountEvents.findLast((emitted) => emitted === on || emitted === off) ?? off;
      if (last === type) problems.push(`${type} was emitted twice in a row.`);
    }
    accountEvents.push(type);
  }

  function compare(snapshots: readonly Snapshot[]): void {
    if (begunAt === undefined) return;
    const stored = new Set<number>();
    for (const snapshot of snapshots) {
      const { jobNumber } = snapshot;
      stored.add(jobNumber);
      leeway.note(snapshot);
      const emitted = emittedStates.get(jobNumber);
      if (snapshot.unproven !== null) {
        if (emitted)
          problems.push(`Events of ${jobNumber} were emitted before it was known whether the job is new.`);
        continue;
      }
      // Adopted without an event: from now on its changes must be in the log.
      if (!emitted) {
        emittedStates.set(jobNumber, toInitialState(snapshot));
        continue;
      }
      const job = summarize(snapshot);
      // A date before the baseline in the first detail is that of an old dispatch (rule 4), even if it was corrected to it.
      if (!emitted.created && !emitted.dispatched && isOldDispatch(snapshot, begunAt)) {
        const { dateOut, tracking } = job;
        emitted.job = { ...emitted.job, dateOut, tracking };
        emitted.dispatched = true;
      }
      if (snapshot.detail !== null) detailed.add(jobNumber);
      // When the other view becomes the deciding one, its status is not a change.
      if (emitted.view !== getDecidingView(snapshot)) {
        emitted.job = { ...emitted.job, status: job.status };
      }
      // Nor is a value that the list lacks after the return of the job as before its departure (rule 4): it may never contain it.
      const returns = emitted.view === 'detail' && getDecidingView(snapshot) === 'list';
      for (const field of returns ? SHARED_FIELDS : []) {
        if (emitted.list?.[field] !== null || snapshot.list?.[field] !== null || field === 'canEdit')
          continue;
        emitted.job = { ...emitted.job, [field]: null };
      }
      emitted.list = snapshot.list;
      // Nor is the first status of a view that had none (rule 4).
      if (emitted.unnamed) emitted.job = { ...emitted.job, status: job.status };
      // Nor is a status that details still have after the list has shown a later one: it never counts as changed back.
      const superseded = getSupersededStatus(snapshot);
      if (superseded === undefined && emitted.superseded === job.status) {
        emitted.job = { ...emitted.job, status: job.status };
      }
      emitted.superseded = superseded;
      // Nor is the first value of a field that the details of a job that was never listed may have omitted.
      for (const field of snapshot.list === null ? OMISSIBLE : []) {
        if (emitted.job[field] === null) emitted.job = { ...emitted.job, [field]: job[field] };
      }
      emitted.unnamed = isUnnamed(snapshot);
      emitted.view = getDecidingView(snapshot);
      // Only the list has the origin: its first value is not a change.
      emitted.job = { ...emitted.job, originCode: emitted.job.originCode ?? job.originCode };
      const different = Object.keys(job).filter((name) => {
        const field = name as keyof JobSummary;
        if (JSON.stringify(job[field]) === JSON.stringify(emitted.job[field])) return false;
        return !leeway.isUnsure(jobNumber, field);
      });
      if (different.length > 0) {
        problems.push(
          `The log leaves ${jobNumber} with ${JSON.stringify(emitted.job)}, its snapshot is ${JSON.stringify(job)}.`,
        );
      }
      if ((snapshot.ended ?? undefined) !== emitted.ended?.slice('job.'.length)) {
        problems.push(
          `The log ends ${jobNumber} with ${emitted.ended}, its snapshot with ${snapshot.ended}.`,
        );
      }
      if ((job.dateOut !== null) !== emitted.dispatched) {
        problems.push(
          `The log has ${jobNumber} dispatched: ${emitted.dispatched}. Its snapshot has ${job.dateOut}.`,
        );
      }
    }
    for (const jobNumber of emittedStates.keys()) {
      if (!stored.has(jobNumber)) problems.push(`${jobNumber} has events and no snapshot.`);
    }
  }

  const settle: Ledger['settle'] = ({ snapshots, index, baselinedAt, lastFaultAt }) => {
    const bySnapshot = new Map(snapshots.map((snapshot) => [snapshot.jobNumber, snapshot]));
    groups.settle(snapshots, history.clock());
    for (const jobNumber of history.jobs) {
      const emitted = emittedStates.get(jobNumber);
      const { where, list, detail, at } = history.now(jobNumber);
      const complain = (what: string) =>
        problems.push(
          `${jobNumber} ${what}: emitted ${emitted?.types.join(', ') || 'nothing'} ` +
            `${JSON.stringify(emitted?.job)}, since ${new Date(at).toISOString()} it is ${where} ` +
            `${JSON.stringify(list && fromList(list))}`,
        );
      const apart = (field: string) => leeway.isUnsure(jobNumber, field);
      const phase = index.get(jobNumber)?.phase;
      const [, first, ...more] = history.stands(jobNumber);
      // Every job that was created since and was visible must have job.created.
      if (!emitted?.created && first && first.at > baselinedAt && lastFaultAt < first.at + ADOPTION_MS) {
        const seen = (stand: Stand) => stand.where === 'active' || stand.where === 'closed';
        if (where === 'active' || more.every(seen)) complain('was not emitted to be created');
      }
      if (where === 'active') {
        if (phase !== 'listed') complain('is listed, and is not known to be');
        if (!emitted || emitted.ended) complain('is listed, and not emitted to be');
        else if (list && !isSameJob(emitted.job, fromList(list), apart))
          complain('differs from its list entry');
      } else {
        if (phase === 'listed' || phase === 'departed') complain(`is ${where}, and believed ${phase}`);
        const snapshot = bySnapshot.get(jobNumber);
        // After some days it is no longer fetched.
        const forgotten = emitted && phase === undefined && at >= emitted.at + 7 * DAY_MS;
        if (!emitted || !snapshot || forgotten) continue;
        // A change of the outcome after the end is not a second end.
        if (!emitted.ended && where !== 'hidden' && ENDING_OF[where] !== emitted.ended) {
          complain('has another outcome than emitted');
        }
        if (detail) {
          // A detail that lacks such a value omits it: the job was listed with it before.
          const omitted = (name: string) =>
            OMISSIBLE.some(
              (field) =>
                field === name &&
                detail[field] === null &&
                history.stands(jobNumber).some((stand) => stand.list?.[field] === emitted.job[field]),
            );
          const isLenient = (field: string) => apart(field) || omitted(field);
          if (!isSameJob(...leeway.between(emitted.job, fromDetail(detail)), isLenient)) {
            complain('differs from its detail');
          }
        }
      }
    }
  };

  return {
    problems,
    events,
    begin,
    take(fresh) {
      upcoming = fresh;
      for (const event of fresh) {
        if (Number(event.sequence) !== events.length + 1) {
          problems.push(`${event.id} comes after ${events.at(-1)?.id}.`);
        }
        if (events.some(({ id }) => id === event.id)) problems.push(`${event.id} is in the log twice.`);
        events.push(event);
        groups.take(event);
        if (event.subject?.startsWith('jobs/'))
          takeJobEvent(event, Number(event.subject.slice('jobs/'.length)));
        else if (!event.subject) takeAccountEvent(event);
      }
    },
    compare,
    settle,
    farewell(index) {
      for (const [jobNumber, { phase }] of index) {
        if (phase !== 'listed') problems.push(`${jobNumber} is still in the index as ${phase}.`);
      }
    },
  };
}

const ENDING_OF = {
  closed: 'job.closed',
  cancelled: 'job.cancelled',
  nowhere: 'job.unavailable',
  active: undefined,
  hidden: undefined,
} as const satisfies Record<Stand['where'], string | undefined>;

/** Differences that rule 4 permits: while the list decides, values that only the detail has are not checked. */
function createLeeway() {
  const unsure = new Set<string>();
  /** Dispatch date in a job's last fetched detail. */
  const read = new Map<number, string | null>();
  /** Jobs that were never listed: only their detail was fetched. */
  const neverListed = new Set<number>();
  /** Tracking in the last fetched detail, and jobs whose tracking changed in the list since and is back in the detail. */
  const parcels = new Map<number, string>();
  const wentBack = new Set<number>();
  /** Dispatch and tracking that any detail had: values that it never had can't be missing from it. */
  const shownOnce = new Set<string>();
  /** Values that differed from the emitted ones in the first detail that had any: they are adopted without an event. */
  const takenOver = new Set<string>();

  return {
    note({ jobNumber, list, detail, emitted, unsure: fields }: Snapshot): void {
      for (const field of fields) unsure.add(`${jobNumber} ${field}`);
      if (detail === null) return;
      // The first list view has nothing to be compared with.
      if (list === null) neverListed.add(jobNumber);
      else if (neverListed.delete(jobNumber))
        for (const field of SHARED_FIELDS) unsure.add(`${jobNumber} ${field}`);
      const first = !read.has(jobNumber);
      // A difference between list and first detail may be another name for the same value.
      for (const field of first && list ? SHARED_FIELDS : []) {
        if (list?.[field] !== detail[field]) unsure.add(`${jobNumber} ${field}`);
      }
      const before = read.get(jobNumber) ?? null;
      read.set(jobNumber, detail.dateOut);
      // Changed and changed back between two detail fetches, and the list contained the first change: the second was not
      // observed.
      if (before !== null && before === detail.dateOut && emitted.dateOut !== before) {
        takenOver.add(`${jobNumber} dateOut ${before}`);
      } else if (before !== detail.dateOut) takenOver.delete(`${jobNumber} dateOut ${before}`);
      if (detail.dateOut !== null) {
        shownOnce.add(`${jobNumber} dateOut`);
        const other = emitted.dateOut !== null && emitted.dateOut !== detail.dateOut;
        if (before === null && other) takenOver.add(`${jobNumber} dateOut ${detail.dateOut}`);
      }
      const tracking = JSON.stringify(detail.tracking);
      if (tracking !== parcels.get(jobNumber)) {
        wentBack.delete(jobNumber);
        parcels.set(jobNumber, tracking);
      } else if (emitted.tracking.some((one) => !tracking.includes(JSON.stringify(one)))) {
        wentBack.add(jobNumber);
      }
      for (const { number, link } of detail.tracking) {
        const parcel = `${jobNumber} ${number ?? link}`;
        shownOnce.add(parcel);
        const same = emitted.tracking.some((emitted) => emitted.number === number && emitted.link === link);
        if (first && emitted.tracking.length > 0 && !same) takenOver.add(parcel);
        // It stays the same parcel when it gets a number.
        if (number !== null && takenOver.has(`${jobNumber} ${link}`)) takenOver.add(parcel);
      }
    },
    /** Whether the views may have different values of a field, so that one is adopted without an event. */
    isUnsure: (jobNumber: number, field: string) => unsure.has(`${jobNumber} ${field}`),
    /** Returns the comparable parts of the emitted state of a delisted job and of its detail. */
    between(emitted: JobSummary, shown: JobSummary): [emitted: JobSummary, shown: JobSummary] {
      const { jobNumber } = emitted;
      const parcel = ({ number, link }: TrackingEntry) => `${jobNumber} ${number ?? link}`;
      // An absent number counts as unchanged.
      const isParcel = (its: TrackingEntry, one: TrackingEntry) =>
        parcel(its) === parcel(one) || (its.number === null && its.link === one.link);
      const silent =
        shown.dateOut === null
          ? !shownOnce.has(`${jobNumber} dateOut`)
          : takenOver.has(`${jobNumber} dateOut ${shown.dateOut}`);
      return [
        {
          ...emitted,
          tracking: emitted.tracking.filter(
            (one) =>
              (shownOnce.has(parcel(one)) || shownOnce.has(`${jobNumber} ${one.link}`)) &&
              !(wentBack.has(jobNumber) && !shown.tracking.some((its) => isParcel(its, one))) &&
              !takenOver.has(parcel(one)),
          ),
        },
        {
          ...shown,
          originCode: emitted.originCode,
          dateOut: silent ? emitted.dateOut : shown.dateOut,
          tracking: shown.tracking.filter((one) => !takenOver.has(parcel(one))),
        },
      ];
    },
  };
}

/** Returns the deciding view: the list while the job is listed, then the detail. */
function getDecidingView(snapshot: Snapshot): 'list' | 'detail' {
  return isListAuthoritative(snapshot) ? 'list' : 'detail';
}

function isUnnamed(snapshot: Snapshot): boolean {
  return (snapshot[getDecidingView(snapshot)]?.status ?? null) === null;
}

// State in the ordering API, as in events

function fromList(entry: ActiveJobDto): JobSummary {
  return { ...shared(entry), status: entry.masterJobStatus, tracking: entry.tracking.map(fromParcel) };
}

function fromDetail(detail: JobDto): JobSummary {
  return {
    ...shared({ ...detail, originCode: null }),
    status: detail.jobStatus,
    tracking: detail.shippingAddresses.map(fromParcel),
  };
}

function shared(
  job: Pick<
    ActiveJobDto,
    | 'jobNumber'
    | 'description'
    | 'orderNumber'
    | 'orderGroup'
    | 'orderGroupSequence'
    | 'originCode'
    | 'dateDue'
    | 'mustDate'
    | 'dateOut'
  >,
): Omit<JobSummary, 'status' | 'tracking'> {
  return {
    jobNumber: job.jobNumber,
    description: job.description,
    orderNumber: job.orderNumber,
    orderGroup: job.orderGroup,
    orderGroupSequence: job.orderGroupSequence,
    originCode: job.originCode,
    dateDue: job.dateDue,
    mustDate: job.mustDate,
    dateOut: job.dateOut,
  };
}

function fromParcel(entry: { trackingNumber: string | null; trackingLink: string | null }): TrackingEntry {
  return { number: entry.trackingNumber, link: entry.trackingLink };
}

/**
 * Returns whether the emitted state of a job equals its current state. A status, link or number that is absent now counts as
 * unchanged. Parcels have no order, and equal entries are one parcel (rule 6); one with several links has the first of them.
 * `apart`: fields that may differ.
 */
function isSameJob(
  emitted: JobSummary,
  shown: JobSummary,
  apart: (field: string) => boolean = () => false,
): boolean {
  const isEqual = (a: TrackingEntry) => (b: TrackingEntry) => a.number === b.number && a.link === b.link;
  const rest = shown.tracking.filter((entry, n, all) => all.findIndex(isEqual(entry)) === n);
  const sameTracking =
    emitted.tracking.every((parcel) => {
      const same = rest.filter(({ number, link }) =>
        parcel.number === null ? number === null && link === parcel.link : number === parcel.number,
      );
      const found =
        same.length > 0
          ? same
          : rest.filter(({ number, link }) => number === null && link === parcel.link).slice(0, 1);
      for (const entry of found) rest.splice(rest.indexOf(entry), 1);
      const [lowest] = found.flatMap(({ link }) => (link === null ? [] : [link])).sort();
      return found.length > 0 && (lowest ?? parcel.link) === parcel.link;
    }) && rest.length === 0;
  return (
    sameTracking &&
    (shown.status === null || shown.status === emitted.status) &&
    (Object.keys(shown) as (keyof JobSummary)[]).every(
      (field) =>
        field === 'tracking' || field === 'status' || apart(field) || shown[field] === emitted[field],
    )
  );
}

// Checks of one event

/** Returns whether `from` is true of a state in the window, and `to` of the same or a later one. */
function went(
  window: readonly Stand[],
  from: (stand: Stand) => boolean,
  to: (stand: Stand) => boolean,
): boolean {
  const first = window.findIndex(from);
  return first >= 0 && window.slice(first).some(to);
}

type Data = Record<string, never> & {
  job: { jobNumber: number };
  observed: { at: string; since: string | null; view: string };
  changes: Record<string, { from: unknown; to: unknown }>;
};

/** Returns why an event contradicts the history, or undefined. */
function findContradiction(event: JobEvent, all: readonly Stand[]): string | undefined {
  if (!JUDGED.has(event.type)) return undefined;
  const data = event.data as unknown as Data;
  const { observed, changes } = data;
  const since = observed.since === null ? null : Date.parse(observed.since);
  const at = Date.parse(observed.at);
  if (since !== null && since > at) return 'since is after at';
  const window = during(all, since, at);
  const view = (stand: Stand): Record<string, unknown> | undefined =>
    (observed.view === 'detail' ? stand.detail : stand.list) as never;
  const value = (stand: Stand, field: string): unknown => {
    const shown = view(stand);
    if (!shown) return undefined;
    if (field === 'status') return shown[observed.view === 'detail' ? 'jobStatus' : 'masterJobStatus'];
    if (field === 'canEdit') return (shown.permissions as { canEdit: boolean }).canEdit;
    // A search after the detail fetch also proves values that only the detail has.
    return (field in shown ? shown : (stand.detail as never as Record<string, unknown>))[field] ?? null;
  };
  const parcels = (stand: Stand): TrackingEntry[] => (stand.list?.tracking ?? []).map(fromParcel);
  const has = (stand: Stand, parcel: TrackingEntry) =>
    parcels(stand).some(
      (one) => one.number === parcel.number && (one.number !== null || one.link === parcel.link),
    );
  // If one of the two has no number, the link identifies the parcel.
  const hasByLink = (stand: Stand, parcel: TrackingEntry) =>
    parcels(stand).some(
      ({ number, link }) =>
        (number === null || parcel.number === null) && link !== null && link === parcel.link,
    );
  const shows = (stand: Stand, parcel: TrackingEntry) =>
    parcels(stand).some((one) => one.number === parcel.number && one.link === parcel.link);
  const list = (field: string) => (data as Record<string, unknown>)[field] as never;
  const exists = (stand: Stand) => stand.detail !== undefined;

  for (const [field, { from, to }] of Object.entries(changes)) {
    if (field === 'status' && to === null) return 'an absent status is not a change';
    if (
      !went(
        window,
        (stand) => (exists(stand) ? value(stand, field) === from : from === null),
        (stand) => value(stand, field) === to,
      )
    ) {
      return `${field} did not go from ${from} to ${to}`;
    }
  }
  switch (event.type) {
    case 'job.created':
      return went(window, (stand) => !exists(stand), exists) ? undefined : 'it was not created then';
    case 'job.closed':
      return went(
        window,
        ({ where }) => where !== 'closed',
        ({ where }) => where === 'closed',
      )
        ? undefined
        : 'it was not closed then';
    case 'job.cancelled':
      return went(
        window,
        ({ where }) => where !== 'cancelled',
        ({ where }) => where === 'cancelled',
      )
        ? undefined
        : 'it was not cancelled then';
    case 'job.unavailable':
      return went(window, exists, (stand) => !exists(stand)) ? undefined : 'it was not removed then';
    case 'job.reopened':
      return went(
        window,
        ({ where }) => where !== 'active',
        ({ where }) => where === 'active',
      )
        ? undefined
        : 'it did not come back then';
    case 'job.production_started':
      return went(
        window,
        ({ detail }) => detail?.isCancelable === true,
        ({ detail, list, where }) =>
          where === 'active' && list?.dateOut === null && detail?.isCancelable === false,
      )
        ? undefined
        : 'its production did not start then';
    case 'job.overdue': {
      const dueAt = Date.parse(list('dueAt'));
      return window.some(
        (stand, n) =>
          stand.list?.dateOut === null &&
          toDueTime(stand) === dueAt &&
          (window[n + 1]?.at ?? at) >= dueAt &&
          dueAt <= at,
      )
        ? undefined
        : 'it was not overdue then';
    }
    case 'job.tracking_added':
      return (list('tracking') as TrackingEntry[]).every((parcel) =>
        went(
          window,
          (stand) => !has(stand, parcel),
          (stand) => shows(stand, parcel),
        ),
      )
        ? undefined
        : 'tracking was not added then';
    case 'job.tracking_removed':
      return (list('tracking') as TrackingEntry[]).every((parcel) =>
        went(
          window,
          (stand) => has(stand, parcel) || hasByLink(stand, parcel),
          (stand) => !has(stand, parcel),
        ),
      )
        ? undefined
        : 'tracking was not removed then';
    case 'job.tracking_updated':
      return (list('tracking') as { from: TrackingEntry; to: TrackingEntry }[]).every(
        ({ from, to }) =>
          went(
            window,
            (stand) => !shows(stand, to),
            (stand) => shows(stand, to),
          ) && from !== to,
      )
        ? undefined
        : 'tracking was not updated then';
    case 'job.line_status_changed':
      return (list('lines') as { jobLineId: number; from: string; to: string }[]).every(
        ({ jobLineId, from, to }) => {
          const status = (stand: Stand) =>
            stand.detail?.lines.find((line) => line.jobLineId === jobLineId)?.jobLineStatus;
          return went(
            window,
            (stand) => status(stand) === from,
            (stand) => status(stand) === to,
          );
        },
      )
        ? undefined
        : 'the line did not move then';
    default:
      return undefined;
  }
}

function toDueTime(stand: Stand): number {
  const text = stand.list?.dateDue;
  if (!text) return Number.NaN;
  const midnight = /T00:00:00(?:\.0+)?(?:Z|[+-]|$)/.test(text);
  return Date.parse(text) + (midnight ? DAY_MS : 0);
}
