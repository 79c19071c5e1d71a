/**
 * What the log of an account may say, judged by how its jobs really stood: whether each event is borne out, and whether
 * all events together add up to what the tracker knows and to what the service shows.
 * One file: the checks of single events and of totals read the same history.
 */
import type { ActiveJobDto, JobDto } from '../../sandbox/world/views.ts';
import type { JobSummary, TrackingEntry } from '../../shared/events/catalogue.ts';
import type { JobEvent } from '../../shared/events/event.ts';
import type { JobIndex } from '../../shared/tracking/job-index.ts';
import { type Snapshot, summarize } from '../../shared/tracking/snapshot.ts';
import { SHARED_FIELDS } from '../../shared/tracking/views.ts';
import { createGroupLedger } from './group-oracle.ts';
import { during, type History, type Stand } from './history.ts';

/** The types whose truth {@link untruth} judges. Of others it says nothing: whoever adds one adds it here, or has it checked elsewhere. */
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
]);
const ENDINGS: readonly string[] = ['job.closed', 'job.cancelled', 'job.unavailable'];
/** What is said of the account takes turns: the first of a pair, then the second. */
const ACCOUNT_TURNS: readonly (readonly [string, string])[] = [
  ['account.poll_failing', 'account.poll_recovered'],
  ['account.credentials_rejected', 'account.credentials_accepted'],
];
const DAY_MS = 86_400_000;
const isDispatchOrNew = (type: string) => type === 'job.dispatched' || type === 'job.created';

/** What the log has said of a job. */
interface Told {
  job: JobSummary;
  /** Which view had the word when log and snapshot were last compared. */
  word: 'list' | 'detail';
  dispatched: boolean;
  ended: string | undefined;
  created: boolean;
  /** The due instant for which it was said to be overdue, as long as its due date and dispatch stay. */
  overdueAt: string | undefined;
  at: number;
  types: string[];
}

/** Reads a log as it grows, and finds what is wrong with it. */
export interface Ledger {
  /** What is wrong so far, in sentences. */
  readonly problems: readonly string[];
  readonly events: readonly JobEvent[];
  /** Begins with what the baseline has stored, whose crawl began at `startedAt` (epoch ms). */
  begin(snapshots: readonly Snapshot[], startedAt: number): void;
  /** Takes the next events of the log. */
  take(events: readonly JobEvent[]): void;
  /** Log and snapshots say the same of every job, at any time. To be asked after every poll: the word passes once at most. */
  compare(snapshots: readonly Snapshot[]): void;
  /** What the log adds up to is what the service shows: once nothing has changed or failed for long enough. */
  settle(known: {
    readonly snapshots: readonly Snapshot[];
    readonly index: JobIndex;
    /** When the baseline was complete (epoch ms). */
    readonly baselinedAt: number;
    /** A job whose own record can't be read for a day is taken on without a word. */
    readonly lastFaultAt: number;
  }): void;
  /** Nothing but the listed jobs is watched for ever. */
  farewell(index: JobIndex): void;
}

/** Makes one for the log of an account with this history. */
export function createLedger(history: History): Ledger {
  const problems: string[] = [];
  const events: JobEvent[] = [];
  const told = new Map<number, Told>();
  const discovered = new Set<string>();
  const accountSaid: string[] = [];
  const leeway = createLeeway();
  const groups = createGroupLedger(history, problems);
  let begunAt: number | undefined;

  function begin(snapshots: readonly Snapshot[], startedAt: number): void {
    begunAt = startedAt;
    for (const snapshot of snapshots) told.set(snapshot.jobNumber, untold(snapshot));
  }

  function untold(snapshot: Snapshot): Told {
    const job = summarize(snapshot);
    return {
      job,
      word: wordOf(snapshot),
      dispatched: job.dateOut !== null,
      ended: snapshot.ended === null ? undefined : `job.${snapshot.ended}`,
      created: false,
      overdueAt: undefined,
      at: 0,
      types: [],
    };
  }

  function takeJobEvent(event: JobEvent, jobNumber: number): void {
    const complain = (what: string) =>
      problems.push(`${event.type} of ${jobNumber} (${event.id}): ${what} ${JSON.stringify(event.data)}`);
    const { type, data } = event;
    const problem = untruth(event, history.stands(jobNumber));
    if (problem) complain(problem);
    if (begunAt === undefined) complain('said before the baseline');
    const before = told.get(jobNumber);
    const job = data.job as JobSummary;
    const entry: Told = before ?? {
      job,
      word: 'list',
      // What a job was that can't be proved new counts as said.
      dispatched: type === 'job.dispatch_revoked' || (!isDispatchOrNew(type) && job.dateOut !== null),
      ended: undefined,
      created: false,
      overdueAt: undefined,
      at: 0,
      types: [],
    };
    told.set(jobNumber, entry);
    if (type === 'job.created') {
      if (before) complain('not the first that is said of it');
      const [, first] = history.stands(jobNumber);
      if (first && first.at < (begunAt ?? 0)) complain('it was there before the baseline');
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
      if (entry.overdueAt === data.dueAt) complain('said already');
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
    if (type === 'account.baselined' && accountSaid.includes(type)) problems.push('Baselined twice.');
    for (const [on, off] of ACCOUNT_TURNS) {
      if (type !== on && type !== off) continue;
      const last: string = accountSaid.findLast((said) => said === on || said === off) ?? off;
      if (last === type) problems.push(`${type} was said twice running.`);
    }
    accountSaid.push(type);
  }

  function compare(snapshots: readonly Snapshot[]): void {
    if (begunAt === undefined) return;
    const stored = new Set<number>();
    for (const snapshot of snapshots) {
      const { jobNumber } = snapshot;
      stored.add(jobNumber);
      leeway.note(snapshot);
      const said = told.get(jobNumber);
      if (snapshot.unproven !== null) {
        if (said) problems.push(`Of ${jobNumber} was spoken before it was known whether it is new.`);
        continue;
      }
      // Taken over silently: from here on the log has to tell what becomes of it.
      if (!said) {
        told.set(jobNumber, untold(snapshot));
        continue;
      }
      const job = summarize(snapshot);
      // When the word passes from one view to the other, its own status is no news.
      if (said.word !== wordOf(snapshot)) {
        said.job = { ...said.job, status: job.status };
      }
      said.word = wordOf(snapshot);
      // Only the list knows where a job came from: when it shows one for the first time that is no change.
      said.job = { ...said.job, originCode: said.job.originCode ?? job.originCode };
      const different = Object.keys(job).filter((name) => {
        const field = name as keyof JobSummary;
        if (JSON.stringify(job[field]) === JSON.stringify(said.job[field])) return false;
        return !leeway.isUnsure(jobNumber, field);
      });
      if (different.length > 0) {
        problems.push(
          `The log leaves ${jobNumber} with ${JSON.stringify(said.job)}, its snapshot is ${JSON.stringify(job)}.`,
        );
      }
      if ((snapshot.ended ?? undefined) !== said.ended?.slice('job.'.length)) {
        problems.push(`The log ends ${jobNumber} with ${said.ended}, its snapshot with ${snapshot.ended}.`);
      }
      if ((job.dateOut !== null) !== said.dispatched) {
        problems.push(`The log says of ${jobNumber} ${said.dispatched}, its snapshot ${job.dateOut}.`);
      }
    }
    for (const jobNumber of told.keys()) {
      if (!stored.has(jobNumber)) problems.push(`Of ${jobNumber} was spoken, and nothing is stored of it.`);
    }
  }

  const settle: Ledger['settle'] = ({ snapshots, index, baselinedAt, lastFaultAt }) => {
    const bySnapshot = new Map(snapshots.map((snapshot) => [snapshot.jobNumber, snapshot]));
    groups.settle(snapshots, history.clock());
    for (const jobNumber of history.jobs) {
      const said = told.get(jobNumber);
      const { where, list, detail, at } = history.now(jobNumber);
      const complain = (what: string) =>
        problems.push(
          `${jobNumber} ${what}: said ${said?.types.join(', ') || 'nothing'} ` +
            `${JSON.stringify(said?.job)}, since ${new Date(at).toISOString()} it is ${where} ` +
            `${JSON.stringify(list && ofList(list))}`,
        );
      const apart = (field: string) => leeway.isUnsure(jobNumber, field);
      const phase = index.get(jobNumber)?.phase;
      const [, first, ...more] = history.stands(jobNumber);
      // Whatever was created since, and could be seen, was said to be.
      if (!said?.created && first && first.at > baselinedAt && lastFaultAt < first.at + DAY_MS) {
        const seen = (stand: Stand) => stand.where === 'active' || stand.where === 'closed';
        if (where === 'active' || more.every(seen)) complain('was not said to be created');
      }
      if (where === 'active') {
        if (phase !== 'listed') complain('is listed, and is not known to be');
        if (!said || said.ended) complain('is listed, and not said to be');
        else if (list && !sayTheSame(said.job, ofList(list), apart))
          complain('is listed otherwise than said');
      } else {
        if (phase === 'listed' || phase === 'departed') complain(`is ${where}, and believed ${phase}`);
        const snapshot = bySnapshot.get(jobNumber);
        // After some days nobody looks at it any more.
        const forgotten = said && phase === undefined && at >= said.at + 7 * DAY_MS;
        if (!said || !snapshot || forgotten) continue;
        // What becomes of a job after its end does not end it again.
        if (!said.ended && where !== 'hidden' && ENDING_OF[where] !== said.ended) {
          complain('did not end as said');
        }
        if (detail) {
          if (!sayTheSame(...leeway.between(said.job, ofDetail(detail)), apart)) {
            complain('is otherwise than said');
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
      for (const event of fresh) {
        if (Number(event.sequence) !== events.length + 1) {
          problems.push(`${event.id} comes after ${events.at(-1)?.id}.`);
        }
        if (events.some(({ id }) => id === event.id)) problems.push(`${event.id} is there twice.`);
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
        if (phase !== 'listed') problems.push(`${jobNumber} is still watched as ${phase}.`);
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

/** What rule 4 leaves unsaid: the list had the word, and what only the record shows then can't be judged. */
function createLeeway() {
  const unsure = new Set<string>();
  /** The dispatch date that a job's record had when it was read last. */
  const read = new Map<number, string | null>();
  /** Jobs of which only the record was ever seen: they came and went, or drifted, before a list showed them. */
  const neverListed = new Set<number>();
  /** The tracking of a record when it was read last, and jobs of which the list has told tracking since: as with dates. */
  const parcels = new Map<number, string>();
  const wentBack = new Set<number>();
  /** What a record showed of dispatch and tracking at any time: what it never showed can't be missing from it. */
  const shownOnce = new Set<string>();
  /** What it showed otherwise than was said when it showed something for the first time: that is no news. */
  const takenOver = new Set<string>();

  return {
    note({ jobNumber, list, detail, announced, unsure: fields }: Snapshot): void {
      for (const field of fields) unsure.add(`${jobNumber} ${field}`);
      if (detail === null) return;
      // Nor is there a list view to compare the first one with.
      if (list === null) neverListed.add(jobNumber);
      else if (neverListed.delete(jobNumber))
        for (const field of SHARED_FIELDS) unsure.add(`${jobNumber} ${field}`);
      const first = !read.has(jobNumber);
      // What a record shows otherwise than the list when it is first read may be its own word for it.
      for (const field of first && list ? SHARED_FIELDS : []) {
        if (list?.[field] !== detail[field]) unsure.add(`${jobNumber} ${field}`);
      }
      const before = read.get(jobNumber) ?? null;
      read.set(jobNumber, detail.dateOut);
      // There and back between two readings of the record, while the list told the first half: nobody saw the second.
      if (before !== null && before === detail.dateOut && announced.dateOut !== before) {
        takenOver.add(`${jobNumber} dateOut ${before}`);
      } else if (before !== detail.dateOut) takenOver.delete(`${jobNumber} dateOut ${before}`);
      if (detail.dateOut !== null) {
        shownOnce.add(`${jobNumber} dateOut`);
        const other = announced.dateOut !== null && announced.dateOut !== detail.dateOut;
        if (before === null && other) takenOver.add(`${jobNumber} dateOut ${detail.dateOut}`);
      }
      const tracking = JSON.stringify(detail.tracking);
      if (tracking !== parcels.get(jobNumber)) {
        wentBack.delete(jobNumber);
        parcels.set(jobNumber, tracking);
      } else if (announced.tracking.some((one) => !tracking.includes(JSON.stringify(one)))) {
        wentBack.add(jobNumber);
      }
      for (const { number, link } of detail.tracking) {
        const parcel = `${jobNumber} ${number ?? link}`;
        shownOnce.add(parcel);
        const same = announced.tracking.some((said) => said.number === number && said.link === link);
        if (first && announced.tracking.length > 0 && !same) takenOver.add(parcel);
      }
    },
    /** The views may have different words for the field: then one of them is taken over silently. */
    isUnsure: (jobNumber: number, field: string) => unsure.has(`${jobNumber} ${field}`),
    /** What was said of a job that left the list, and what its record shows, as far as they can be compared. */
    between(said: JobSummary, shown: JobSummary): [said: JobSummary, shown: JobSummary] {
      const { jobNumber } = said;
      const parcel = ({ number, link }: TrackingEntry) => `${jobNumber} ${number ?? link}`;
      const silent =
        shown.dateOut === null
          ? !shownOnce.has(`${jobNumber} dateOut`)
          : takenOver.has(`${jobNumber} dateOut ${shown.dateOut}`);
      return [
        {
          ...said,
          tracking: said.tracking.filter(
            (one) =>
              (shownOnce.has(parcel(one)) || shownOnce.has(`${jobNumber} ${one.link}`)) &&
              !(wentBack.has(jobNumber) && !shown.tracking.some((its) => parcel(its) === parcel(one))) &&
              !takenOver.has(parcel(one)),
          ),
        },
        {
          ...shown,
          originCode: said.originCode,
          dateOut: silent ? said.dateOut : shown.dateOut,
          tracking: shown.tracking.filter((one) => !takenOver.has(parcel(one))),
        },
      ];
    },
  };
}

/** While a job is listed the list has the word, from then on its own record. */
function wordOf(snapshot: Snapshot): 'list' | 'detail' {
  return snapshot.settling === null ? 'list' : 'detail';
}

// What the service shows, in the words of the log

function ofList(entry: ActiveJobDto): JobSummary {
  return { ...shared(entry), status: entry.masterJobStatus, tracking: entry.tracking.map(ofParcel) };
}

function ofDetail(detail: JobDto): JobSummary {
  return {
    ...shared({ ...detail, originCode: null }),
    status: detail.jobStatus,
    tracking: detail.shippingAddresses.map(ofParcel),
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

function ofParcel(entry: { trackingNumber: string | null; trackingLink: string | null }): TrackingEntry {
  return { number: entry.trackingNumber, link: entry.trackingLink };
}

/**
 * Whether what was said of a job is what is shown now. A status, a link or a number of a parcel that is not shown stays
 * what it was; parcels have no order, and one with several links has the first of them. `apart`: fields that may differ.
 */
function sayTheSame(
  said: JobSummary,
  shown: JobSummary,
  apart: (field: string) => boolean = () => false,
): boolean {
  const rest = [...shown.tracking];
  const sameTracking =
    said.tracking.every((parcel) => {
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
    (shown.status === null || shown.status === said.status) &&
    (Object.keys(shown) as (keyof JobSummary)[]).every(
      (field) => field === 'tracking' || field === 'status' || apart(field) || shown[field] === said[field],
    )
  );
}

// Whether one event is true

/** Whether in a window something held first, and something else then. */
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

/** Why an event is not borne out by the world, or undefined. */
function untruth(event: JobEvent, all: readonly Stand[]): string | undefined {
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
    // A search that came after the detail proves what only the detail has as well.
    return (field in shown ? shown : (stand.detail as never as Record<string, unknown>))[field] ?? null;
  };
  const parcels = (stand: Stand): TrackingEntry[] => (stand.list?.tracking ?? []).map(ofParcel);
  const has = (stand: Stand, parcel: TrackingEntry) =>
    parcels(stand).some(
      (one) => one.number === parcel.number && (one.number !== null || one.link === parcel.link),
    );
  // Where one of the two has no number, the link tells.
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
    if (field === 'status' && to === null) return 'a status that is not said is no change';
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
    case 'job.overdue': {
      const dueAt = Date.parse(list('dueAt'));
      return window.some(
        (stand, n) =>
          stand.list?.dateOut === null &&
          dueInstant(stand) === dueAt &&
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

function dueInstant(stand: Stand): number {
  const text = stand.list?.dateDue;
  if (!text) return Number.NaN;
  const midnight = /T00:00:00(?:\.0+)?(?:Z|[+-]|$)/.test(text);
  return Date.parse(text) + (midnight ? DAY_MS : 0);
}
