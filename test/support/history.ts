/**
 * A sandbox account that changes. Each {@link Change} is a value, and every past state of the jobs is stored, so that events
 * can be checked against it. One file: a change and its effect on the stored states belong together.
 */
import fc from 'fast-check';
import type { FaultRule } from '../../sandbox/http/faults.ts';
import type { JobInput, JobRecord, TrackingEntry } from '../../sandbox/world/records.ts';
import type { ActiveJobDto, JobDto } from '../../sandbox/world/views.ts';
import type { SandboxAccount, World } from '../../sandbox/world/world.ts';

/** True state of one job from a time (epoch ms) on. */
export interface Stand {
  readonly at: number;
  /** List entry of the job, whether it is listed or not. Undefined, as is `detail`: there was no such job. */
  readonly list: ActiveJobDto | undefined;
  readonly detail: JobDto | undefined;
  readonly where: 'active' | 'closed' | 'cancelled' | 'hidden' | 'nowhere';
}

/** Returns the states that overlap a window. `since` null: from the beginning. */
export function during(stands: readonly Stand[], since: number | null, at: number): readonly Stand[] {
  return stands.filter(
    (stand, n) => stand.at <= at && (stands[n + 1]?.at ?? Number.POSITIVE_INFINITY) > (since ?? -1),
  );
}

/** State before a job is created. */
export const NOWHERE: Stand = { at: 0, list: undefined, detail: undefined, where: 'nowhere' };

/** A change at the ordering API. `job` counts from the newest job back, modulo the number of jobs. */
export type Change =
  | {
      readonly do: 'create';
      readonly status: string;
      readonly orderNumber: string | null;
      readonly orderGroup: string | null;
      /** Hours from now, rounded to the hour. Null: no due date. */
      readonly dueInHours: number | null;
    }
  | {
      readonly do: 'status';
      readonly job: number;
      readonly view: 'both' | 'list' | 'detail';
      readonly to: string | null;
    }
  | { readonly do: 'line status'; readonly job: number; readonly to: string }
  | { readonly do: 'edit'; readonly job: number; readonly fields: Pick<JobInput, EditedField> }
  | {
      readonly do: 'regroup';
      readonly job: number;
      readonly orderGroup: string | null;
      readonly orderGroupSequence: number | null;
    }
  | { readonly do: 'due'; readonly job: number; readonly inHours: number | null }
  | {
      readonly do: 'dispatch';
      readonly job: number;
      readonly tracking?: readonly TrackingEntry[];
      readonly status?: string;
    }
  | { readonly do: 'correct date'; readonly job: number; readonly minutesAgo: number }
  | { readonly do: 'track'; readonly job: number; readonly parcel: TrackingEntry }
  | { readonly do: 'link'; readonly job: number; readonly link: string }
  | { readonly do: 'close' | 'reopen'; readonly job: number; readonly status?: string }
  /** The status is renamed in the lookup and in all jobs, once. */
  | { readonly do: 'rename'; readonly from: string; readonly to: string }
  /** Other jobs come in, whose numbers begin with the number of the job. */
  | { readonly do: 'prefix'; readonly job: number; readonly count: number }
  /** The last change is reverted, possibly between two polls. */
  | { readonly do: 'undo' }
  | { readonly do: Plain; readonly job: number };

type EditedField = 'description' | 'orderNumber' | 'mustDate';

const PLAIN = [
  'clear date',
  'untrack',
  // Parcels that had only a link get a number.
  'number',
  'invoice',
  'lock',
  'unlock',
  'cancel',
  'remove',
  'hide',
  'unhide',
] as const;
type Plain = (typeof PLAIN)[number];

/** A changing account, and its past states. */
export interface History {
  /** Applies a change between two milliseconds. Returns false if it is not possible for the job. */
  apply(change: Change): boolean;
  /** Adds a job that never changes. */
  addBystander(): void;
  /** Ends drift: for every job, or for locked jobs that have been hidden for too long. */
  unhide(which: 'all' | 'locked for too long'): void;
  /** The renamed status. Undefined: none. */
  readonly renaming: { readonly from: string; readonly to: string } | undefined;
  /** All jobs ever created, in order. `everyJob`: including bystanders. */
  readonly jobs: readonly number[];
  readonly everyJob: readonly number[];
  /** Returns the states of a job, oldest first. */
  stands(jobNumber: number): readonly Stand[];
  /** Epoch ms. */
  clock(): number;
  /** Returns the current state of a job. */
  now(jobNumber: number): Stand;
}

/**
 * Creates the history of an account. `clock` returns the time and advances it. `isDriftBrief`: drift never hides a job for as
 * long as a cancellation takes to be confirmed, because without permissions every job in no list looks cancelled.
 */
export function createHistory(
  upstream: SandboxAccount,
  clock: { readonly now: () => number; readonly pass: (seconds: number) => void; readonly world: World },
  { isDriftBrief = false } = {},
): History {
  const { now, world } = clock;
  const renamed = new Map<string, string>();
  const current = <S extends string | null | undefined>(name: S): S | string =>
    (typeof name === 'string' && renamed.get(name)) || name;
  const stands = new Map<number, Stand[]>();
  const jobs: number[] = [];
  const bystanders: number[] = [];
  const hidden = new Map<number, number>();
  const flickered = new Set<number>();
  /** State of the last changed job before its change. */
  let before: JobRecord | undefined;

  function note(jobNumber: number): void {
    const past = stands.get(jobNumber) ?? [NOWHERE];
    past.push({
      at: now(),
      list: upstream.jobListEntry(jobNumber),
      detail: upstream.jobDetail(jobNumber),
      where: whereIs(upstream.job(jobNumber), upstream),
    });
    stands.set(jobNumber, past);
  }

  /** Returns the number of the job of a change, if the change is possible for it. */
  function getSubject(change: Exclude<Change, { do: 'create' | 'undo' | 'rename' }>): number | undefined {
    const jobNumber = jobs.at(-1 - (change.job % Math.max(1, jobs.length)));
    const job = jobNumber === undefined ? undefined : upstream.job(jobNumber);
    if (!job || !isPossible(change.do, job)) return undefined;
    // A dispatched job can only be returned, which cannot be distinguished from a cancellation (rule 3).
    if (change.do === 'cancel' && stands.get(job.jobNumber)?.some(({ list }) => list?.dateOut))
      return undefined;
    // A job that is cancelled, reopened and cancelled again during its investigation looks closed.
    const wasCancelled = ({ at, where }: Stand) => where === 'cancelled' && now() - at < LONGEST_POLL_MS;
    if (change.do === 'cancel' && stands.get(job.jobNumber)?.some(wasCancelled)) return undefined;
    if (change.do === 'hide' && (isDriftBrief || looksCancelled(job))) {
      // Hiding it twice would be the two results that confirm a cancellation.
      if (flickered.has(job.jobNumber)) return undefined;
      flickered.add(job.jobNumber);
    }
    return jobNumber;
  }

  /** Full hours, so one of them is midnight, the end of a day. */
  function inHours(hours: number | null): number | null {
    return hours === null ? null : (Math.floor(now() / HOUR_MS) + hours) * HOUR_MS;
  }

  /** Reverts the last change of a job that still exists and is not hidden by drift. */
  function undo(): number | undefined {
    const now = before && upstream.job(before.jobNumber);
    if (!before || !now || now.hidden || before.hidden || before.phase === 'cancelled') return undefined;
    const { jobNumber, phase, description, orderNumber, mustDate } = before;
    const [masterJobStatus, jobStatus] = [current(before.masterJobStatus), current(before.jobStatus)];
    const { orderGroup, orderGroupSequence, dateDue, dateOut, tracking } = before;
    before = undefined;
    if (phase !== now.phase) upstream[phase === 'open' ? 'reopen' : 'close'](jobNumber);
    upstream.edit(jobNumber, {
      ...{ masterJobStatus, jobStatus, description, orderNumber, mustDate },
      ...{ orderGroup, orderGroupSequence, dateDue, dateOut, tracking },
    });
    return jobNumber;
  }

  /** A parcel with only a link occurs once: if it is added again, it cannot be distinguished from the first. */
  function isUnused(jobNumber: number, { trackingNumber, trackingLink }: TrackingEntry): boolean {
    const used = (stand: Stand) =>
      stand.list?.tracking.some((parcel) => parcel.trackingLink === trackingLink);
    return trackingNumber !== null || !stands.get(jobNumber)?.some(used);
  }

  function act(change: Change): number | undefined {
    if (change.do === 'create') {
      const { status, orderNumber, orderGroup, dueInHours } = change;
      const dateDue = inHours(dueInHours);
      const jobNumber = upstream.createJob({ status: current(status), orderNumber, orderGroup, dateDue });
      jobs.push(jobNumber);
      return jobNumber;
    }
    if (change.do === 'undo') return undo();
    if (change.do === 'rename') {
      if (renamed.size > 0 || !world.statuses(upstream.region).some(({ name }) => name === change.from)) {
        return undefined;
      }
      world.renameStatus(upstream.region, change.from, change.to);
      renamed.set(change.from, change.to);
      for (const job of [...bystanders, ...jobs]) if (upstream.job(job)) note(job);
      return bystanders[0];
    }
    const n = getSubject(change);
    if (n === undefined) return undefined;
    before = structuredClone(upstream.job(n));
    switch (change.do) {
      case 'status':
        upstream.setStatus(n, inView(change.view, current(change.to)));
        break;
      case 'line status':
        upstream.setLineStatus(n, 0, current(change.to));
        break;
      case 'edit':
        upstream.edit(n, change.fields);
        break;
      case 'regroup':
        upstream.edit(n, {
          orderGroup: change.orderGroup,
          orderGroupSequence: change.orderGroup === null ? null : change.orderGroupSequence,
        });
        break;
      case 'due':
        upstream.edit(n, { dateDue: inHours(change.inHours) });
        break;
      case 'dispatch':
        upstream.dispatch(n, {
          ...(change.tracking && { tracking: change.tracking.filter((parcel) => isUnused(n, parcel)) }),
          ...(change.status !== undefined && { status: current(change.status) }),
        });
        break;
      case 'prefix': {
        const known = new Set([...upstream.jobs()].map(({ jobNumber }) => jobNumber));
        if (String(n).length > 6) return undefined;
        upstream.createPrefixed(n, change.count);
        for (const { jobNumber } of upstream.jobs()) {
          if (known.has(jobNumber)) continue;
          bystanders.push(jobNumber);
          note(jobNumber);
        }
        return undefined;
      }
      case 'correct date':
        upstream.correctDateOut(n, now() - change.minutesAgo * 60_000);
        break;
      case 'clear date':
        upstream.clearDateOut(n);
        break;
      case 'track':
        if (!isUnused(n, change.parcel)) return undefined;
        upstream.addTracking(n, change.parcel);
        break;
      case 'number':
        upstream.setTracking(
          n,
          (upstream.job(n)?.tracking ?? []).map((entry) => ({
            ...entry,
            trackingNumber: entry.trackingNumber ?? `N${entry.trackingLink?.at(-1)}`,
          })),
        );
        break;
      case 'link':
        upstream.setTracking(
          n,
          (upstream.job(n)?.tracking ?? []).map((entry) => ({
            ...entry,
            trackingLink: entry.trackingLink ?? change.link,
          })),
        );
        break;
      case 'untrack':
        upstream.removeTracking(n);
        break;
      case 'close':
      case 'reopen':
        upstream[change.do](n, change.status === undefined ? {} : { status: current(change.status) });
        break;
      case 'hide':
        upstream.hide(n);
        hidden.set(n, now());
        break;
      case 'unhide':
        upstream.unhide(n);
        hidden.delete(n);
        break;
      case 'invoice':
      case 'lock':
      case 'unlock':
      case 'cancel':
      case 'remove':
        upstream[change.do](n);
    }
    return n;
  }

  return {
    apply(change) {
      clock.pass(0.001);
      const jobNumber = act(change);
      if (jobNumber !== undefined) note(jobNumber);
      clock.pass(0.001);
      return jobNumber !== undefined;
    },
    addBystander() {
      const jobNumber = upstream.createJob({ dateDue: null });
      bystanders.push(jobNumber);
      note(jobNumber);
    },
    unhide(which) {
      for (const [jobNumber, at] of hidden) {
        const job = upstream.job(jobNumber);
        const isBrief = isDriftBrief || (job && looksCancelled(job));
        if (which !== 'all' && !(isBrief && now() - at > LONGEST_FLICKER_MS)) continue;
        hidden.delete(jobNumber);
        if (!job) continue;
        clock.pass(0.001);
        upstream.unhide(jobNumber);
        note(jobNumber);
        clock.pass(0.001);
      }
    },
    get renaming() {
      const [first] = renamed;
      return first && { from: first[0], to: first[1] };
    },
    jobs,
    get everyJob() {
      return [...bystanders, ...jobs];
    },
    stands: (jobNumber) => stands.get(jobNumber) ?? [NOWHERE],
    clock: now,
    now: (jobNumber) => stands.get(jobNumber)?.at(-1) ?? NOWHERE,
  };
}

const HOUR_MS = 3_600_000;
/** Less than the 15 minutes after which a cancellation is confirmed. */
const LONGEST_FLICKER_MS = 240_000;
/** Only requests take time in a poll, one millisecond each. */
const LONGEST_POLL_MS = 10_000;

function whereIs(job: Readonly<JobRecord> | undefined, upstream: SandboxAccount): Stand['where'] {
  if (!job) return 'nowhere';
  if (job.phase === 'cancelled') return 'cancelled';
  if (job.hidden) return 'hidden';
  return upstream.activeJobNumbers().includes(job.jobNumber) ? 'active' : 'closed';
}

function inView(view: 'both' | 'list' | 'detail', status: string | null) {
  return view === 'both' ? status : view === 'list' ? { master: status } : { detail: status };
}

/**
 * Returns whether the ordering API allows a change: a dispatched job cannot be cancelled, nor a cancelled one dispatched, and a
 * cancelled job stays locked. A job hidden by drift does not become one that looks cancelled, because the two cannot be
 * distinguished.
 */
function isPossible(what: Change['do'], job: Readonly<JobRecord>): boolean {
  const { phase, dateOut, hidden, permissions } = job;
  const locked = permissions?.canEdit === false;
  switch (what) {
    case 'dispatch':
    case 'unlock':
      return phase !== 'cancelled';
    case 'lock':
      return phase !== 'cancelled' && !hidden;
    case 'clear date':
    case 'reopen':
      return !(hidden && locked);
    case 'correct date':
      return dateOut !== null;
    case 'close':
      return phase === 'open' && !hidden;
    case 'cancel':
      return dateOut === null && permissions?.canEdit !== true;
    case 'hide':
      return phase === 'open' && !hidden;
    case 'unhide':
      return hidden !== false;
    default:
      return true;
  }
}

/** Returns whether a job that is in no list looks cancelled. */
function looksCancelled({ dateOut, permissions }: Readonly<JobRecord>): boolean {
  return dateOut === null && permissions?.canEdit === false;
}

// As fast-check values

// Few values of everything, so that reverted and repeated changes are frequent.
const status = fc.constantFrom('Awaiting artwork', 'In production', 'Shipped');
const anyStatus = fc.oneof(
  { weight: 6, arbitrary: status },
  { weight: 1, arbitrary: fc.constant(null) },
  { weight: 1, arbitrary: fc.nat(99).map((n) => `Stage ${n}`) },
);
const hours = fc.option(fc.integer({ min: -24, max: 48 }), { freq: 5 });
const orderNumber = fc.constantFrom('PO-1', 'PO-2', null);
const orderGroup = fc.constantFrom(null, 'G1', 'G2');
const link = fc.constantFrom('https://parcels.example/1', 'https://parcels.example/2');
const parcel: fc.Arbitrary<TrackingEntry> = fc.oneof(
  {
    weight: 4,
    arbitrary: fc.record({
      trackingNumber: fc.constantFrom('T1', 'T2', 'T3'),
      trackingLink: fc.option(link, { freq: 1 }),
    }),
  },
  {
    weight: 1,
    arbitrary: fc.record({
      trackingNumber: fc.constant(null),
      trackingLink: fc.constantFrom('https://unnumbered.example/1', 'https://unnumbered.example/2'),
    }),
  },
);

/** A job that comes in. */
export const creation: fc.Arbitrary<Change> = fc.record({
  do: fc.constant('create' as const),
  status,
  orderNumber,
  orderGroup,
  dueInHours: hours,
});

/** Any change of one of the `jobs` newest jobs, preferably of the same few jobs. */
export function changes(jobs: number): fc.Arbitrary<Change> {
  const job = fc.oneof({ weight: 2, arbitrary: fc.nat(2) }, { weight: 1, arbitrary: fc.nat(jobs - 1) });
  const to = <T extends Change['do']>(what: T) => ({ do: fc.constant(what), job });
  const plain = (what: Plain, weight: number) => ({ weight, arbitrary: fc.record(to(what)) });
  return fc.oneof(
    { weight: 5, arbitrary: creation },
    { weight: 5, arbitrary: fc.record({ do: fc.constant('undo' as const) }) },
    {
      weight: 6,
      arbitrary: fc.record({
        ...to('status'),
        view: fc.constantFrom('both', 'both', 'both', 'list', 'detail'),
        to: anyStatus,
      }),
    },
    { weight: 1, arbitrary: fc.record({ ...to('line status'), to: status }) },
    {
      weight: 2,
      arbitrary: fc.record({
        ...to('edit'),
        fields: fc.record(
          {
            description: fc.constantFrom('A', 'B <b>&"', null),
            orderNumber,
            mustDate: fc.boolean(),
          },
          { requiredKeys: [] },
        ),
      }),
    },
    {
      weight: 1,
      arbitrary: fc.record({
        ...to('regroup'),
        orderGroup,
        orderGroupSequence: fc.option(fc.integer({ min: 1, max: 3 })),
      }),
    },
    { weight: 1, arbitrary: fc.record({ ...to('due'), inHours: hours }) },
    {
      weight: 4,
      arbitrary: fc.record(
        {
          ...to('dispatch'),
          tracking: fc.array(parcel, { maxLength: 2 }),
          status: fc.constant('Shipped'),
        },
        { requiredKeys: ['do', 'job'] },
      ),
    },
    {
      weight: 1,
      arbitrary: fc.record({ ...to('correct date'), minutesAgo: fc.integer({ min: 1, max: 300 }) }),
    },
    { weight: 3, arbitrary: fc.record({ ...to('track'), parcel }) },
    { weight: 2, arbitrary: fc.record({ ...to('link'), link }) },
    {
      weight: 3,
      arbitrary: fc.record(
        { ...to('close'), status: fc.constant('Archived') },
        { requiredKeys: ['do', 'job'] },
      ),
    },
    {
      weight: 4,
      arbitrary: fc.record({ ...to('reopen'), status }, { requiredKeys: ['do', 'job'] }),
    },
    plain('number', 1),
    plain('cancel', 3),
    plain('clear date', 3),
    plain('hide', 2),
    plain('unhide', 2),
    plain('untrack', 2),
    plain('lock', 1),
    plain('unlock', 2),
    plain('invoice', 1),
    plain('remove', 1),
  );
}

/** A sequence of requests that fail in one way. Faults with false data about single jobs are not included. */
export const faults: fc.Arbitrary<FaultRule> = fc.record({
  match: fc.record(
    {
      operation: fc.constantFrom(
        ...([
          'activeJobs',
          'activeJobs',
          'activeJobs',
          'job',
          'job',
          'account',
          'token',
          'jobStatuses',
        ] as const),
      ),
      nth: fc.integer({ min: 1, max: 6 }),
      times: fc.oneof(
        { weight: 3, arbitrary: fc.integer({ min: 1, max: 4 }) },
        { weight: 1, arbitrary: fc.constant(40) },
      ),
    },
    { requiredKeys: ['nth', 'times'] },
  ),
  fault: fc.constantFrom<FaultRule['fault'][]>(
    { kind: 'status', status: 500 },
    { kind: 'status', status: 503, body: 'html' },
    { kind: 'status', status: 429, retryAfter: 1 },
    { kind: 'status', status: 403 },
    { kind: 'status', status: 401 },
    { kind: 'status', status: 404, body: 'html' },
    { kind: 'cutBody' },
    { kind: 'reset' },
    { kind: 'truncatedJson' },
    { kind: 'itemsNull' },
    { kind: 'wrongPageEcho' },
    { kind: 'raw', body: '{"unexpected":true}' },
    { kind: 'revokeTokens' },
  ),
});
