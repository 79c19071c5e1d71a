/**
 * Checks the log of an account whose API uses the freedoms of the contract, against the true history of its jobs. It does not
 * repeat decisions of the tracker: it compares values with the true ones within the maximum lag of the views.
 *
 * Never allowed: a value that was not true in that time; a change of a value that did not change; values in another order than
 * in the history (back and forth); an end, a return or a dispatch that did not happen; anything twice.
 *
 * Required once nothing has changed for long enough: the state of every job, as far as any view contains it.
 *
 * Allowed, but not required:
 * - Adoption without an event of a value that a view never contains ({@link Sight}), when another view contains it.
 * - job.created of a job that came in before the baseline by less than the difference of the clocks or the lag of the list.
 * - A status change from `null`: the first status may be news or not (rule 4).
 * - job.cancelled of a job that is in no list, and locked or of unknown permissions, if its dispatch was not in the log: it
 *   cannot be distinguished from a returned job.
 * One file: what is never allowed, required and allowed is decided from the same history.
 */
import type { ActiveJobDto } from '../../sandbox/world/views.ts';
import type { JobSummary, TrackingEntry } from '../../shared/events/catalogue.ts';
import type { JobEvent } from '../../shared/events/event.ts';
import { isListAuthoritative, type Snapshot, summarize } from '../../shared/tracking/snapshot.ts';
import { during, type History, type Stand } from './history.ts';
import type { Ledger } from './oracle.ts';

/** What the views of the API contain, by the settings of the sandbox. */
export interface Sight {
  /** Maximum lag of any view. */
  readonly slackMs: number;
  /** Lead of the server's clock. */
  readonly skewMs: number;
  /** Whether a view never contains a field of a job: `dateOut`, `tracking`, … */
  isHidden(view: 'list' | 'detail', jobNumber: number, field: string): boolean;
  /** Whether the job's detail or list entry is unusable permanently, and whether it ever was. */
  isUnreadable(view: 'list' | 'detail', jobNumber: number): boolean;
  wasUnreadable(view: 'list' | 'detail', jobNumber: number): boolean;
  /** Whether a job has local times without a time zone. */
  isZoneless(jobNumber: number): boolean;
  /** Whether details were ever throttled. A new job that has waited a day for its detail is tracked without it (rule 5). */
  wasThrottled(): boolean;
  /** The current name of a status. */
  toCurrentName(name: string): string;
}

/** Event types of jobs that are not checked here, because they need further fields. */
const IGNORED: ReadonlySet<string> = new Set([
  'job.due_soon',
  'job.stalled',
  'job.needs_attention',
  'job.production_started',
  'job.late',
  'order_group.partially_dispatched',
]);
/** Event types of accounts; model.tables.test.ts checks them. */
const OF_ACCOUNTS = /^(?:account|payment|upstream)\./;

const FIELDS = [
  'status',
  'description',
  'orderNumber',
  'orderGroup',
  'orderGroupSequence',
  'originCode',
  'dateDue',
  'mustDate',
  'dateOut',
] as const;
type Field = (typeof FIELDS)[number];
const ENDS = { 'job.closed': 'closed', 'job.cancelled': 'cancelled', 'job.unavailable': 'nowhere' } as const;
const MINUTE_MS = 60_000;
const DAY_MS = 86_400_000;
/** From the first time zone to the last. */
const ALL_ZONES_MS = 26 * 60 * MINUTE_MS;
/** Maximum difference of clocks: a smaller difference proves nothing (rule 5). */
const NUMBER_TOLERANCE_MS = 15 * MINUTE_MS;
/** Only requests take time in a poll. */
const POLL_MS = 10_000;

interface Fold {
  job: JobSummary;
  created: boolean;
  /** Whether the list is the deciding view. When the other view becomes it, its status is not a change (rule 4). */
  isListed: boolean;
  /** Views that were read before. */
  known: { readonly list: boolean; readonly detail: boolean };
  /** Fields that differed when both views were first known. */
  readonly apart: Set<string>;
  dispatched: boolean;
  ended: string | undefined;
  overdueFor: Set<string>;
  /** Position in the true history of the last emitted value of each field. */
  readonly at: Map<string, number>;
  lastAt: number;
  readonly types: string[];
}

/** Creates a ledger for the log of an account with this history. */
export function createFreedomLedger(history: History, sight: Sight): Ledger {
  const problems: string[] = [];
  const events: JobEvent[] = [];
  const ids = new Set<string>();
  const folds = new Map<number, Fold>();
  const discovered = new Set<string>();
  let begunAt: number | undefined;

  const canon = (name: string | null): string | null => (name === null ? null : sight.toCurrentName(name));
  const isDim = (jobNumber: number, field: string): boolean => {
    const names =
      field === 'canEdit'
        ? ['permissions']
        : field === 'status'
          ? ['masterJobStatus', 'jobStatus']
          : field === 'tracking'
            ? ['tracking', 'shippingAddresses']
            : [field];
    return (
      sight.wasUnreadable('detail', jobNumber) ||
      sight.wasUnreadable('list', jobNumber) ||
      names.some(
        (name) => sight.isHidden('list', jobNumber, name) || sight.isHidden('detail', jobNumber, name),
      )
    );
  };
  const trueValue = ({ list, detail }: Stand, field: string): unknown => {
    if (field === 'status') return canon(list?.masterJobStatus ?? null);
    if (field === 'canEdit') return list?.permissions?.canEdit ?? null;
    if (field === 'invoiceNumber') return detail?.invoiceNumber ?? null;
    return list?.[field as keyof ActiveJobDto] ?? null;
  };
  const isValue = (stand: Stand, field: string, value: unknown): boolean => {
    const own = trueValue(stand, field);
    if (field === 'dateDue' || field === 'dateOut') return isSameTime(own, value);
    if (field === 'description' && isOversized(value)) return true;
    return own === (field === 'status' ? canon(value as string | null) : value);
  };
  const isSame = (field: string, a: unknown, b: unknown): boolean => {
    if (field === 'dateDue' || field === 'dateOut') return isSameTime(a, b);
    return a === b || (field === 'status' && canon(a as string | null) === canon(b as string | null));
  };
  const isRecentDispatch = (jobNumber: number, at: number): boolean => {
    const earliest = (begunAt ?? 0) - NUMBER_TOLERANCE_MS - Math.abs(sight.skewMs) - sight.slackMs - POLL_MS;
    const stands = history.stands(jobNumber);
    return (
      (sight.slackMs > 0 || sight.isHidden('list', jobNumber, 'dateOut')) &&
      stands.some(({ list, ...stand }, n) => {
        const isDispatch = list?.dateOut && !stands[n - 1]?.list?.dateOut;
        return isDispatch && stand.at >= earliest && stand.at <= at;
      })
    );
  };
  const existing = (jobNumber: number): readonly Stand[] =>
    history.stands(jobNumber).filter(({ list }) => list !== undefined);

  /** Returns the fields in which the two views of a job differ, if both are known. */
  function findApart({ list, detail }: Snapshot): Field[] {
    if (!list || !detail) return [];
    return FIELDS.filter((field) => field !== 'originCode' && !isSame(field, list[field], detail[field]));
  }

  function start(snapshot: Snapshot): Fold {
    const job = summarize(snapshot);
    return {
      job,
      created: false,
      isListed: isListAuthoritative(snapshot),
      known: { list: snapshot.list !== null, detail: snapshot.detail !== null },
      apart: new Set(findApart(snapshot)),
      dispatched: job.dateOut !== null,
      ended: snapshot.ended === null ? undefined : `job.${snapshot.ended}`,
      overdueFor: new Set(),
      at: new Map(),
      lastAt: 0,
      types: [],
    };
  }

  function takeJobEvent(event: JobEvent, jobNumber: number, fresh: readonly JobEvent[]): void {
    const { type } = event;
    if (IGNORED.has(type)) return;
    const data = event.data as unknown as {
      job: JobSummary;
      observed: { since: string | null; at: string; view: string };
      changes: Record<string, { from: unknown; to: unknown }>;
      tracking?: readonly TrackingEntry[] | readonly { from: TrackingEntry; to: TrackingEntry }[];
      lines?: readonly { jobLineId: number; from: string | null; to: string | null }[];
      previousOutcome?: string;
      dueAt?: string;
    };
    const complain = (what: string) =>
      problems.push(`${type} of ${jobNumber} (${event.id}): ${what} ${JSON.stringify(event.data)}`);
    const all = history.stands(jobNumber);
    if (all.length < 2) {
      complain('there was never such a job');
      return;
    }
    if (begunAt === undefined) complain('emitted before the baseline');
    const at = Date.parse(data.observed.at);
    const since = data.observed.since === null ? null : Date.parse(data.observed.since);
    if (since !== null && since > at) complain('since is after at');
    const window = during(all, since === null ? null : since - sight.slackMs - POLL_MS, at);
    const past = all.filter((stand) => stand.at <= at && stand.list);
    const recent = during(all, at - sight.slackMs - POLL_MS, at);

    const before = folds.get(jobNumber);
    const { job } = data;
    const sameAnswer = (wanted: string) =>
      fresh.some(
        (other) =>
          other.type === wanted &&
          other.subject === event.subject &&
          other.time === event.time &&
          Number(other.sequence) >= Number(event.sequence),
      );
    const fold: Fold = before ?? {
      job,
      created: false,
      isListed: true,
      known: { list: false, detail: false },
      apart: new Set(),
      // The first state of a job that is not provably new counts as emitted, unless an event of the same response emits it.
      dispatched: type === 'job.dispatch_revoked' || (job.dateOut !== null && !sameAnswer('job.dispatched')),
      ended: undefined,
      overdueFor: new Set(),
      at: new Map(),
      lastAt: 0,
      types: [],
    };
    folds.set(jobNumber, fold);

    for (const field of FIELDS) {
      const value = job[field];
      // An earlier event of the same poll can have proved it with a later response.
      const isProved = fresh.some(
        (other) =>
          other.subject === event.subject &&
          Number(other.sequence) < Number(event.sequence) &&
          isSame(field, (other.data.job as JobSummary)[field], value),
      );
      if (isProved) continue;
      if (value !== null && !past.some((stand) => isValue(stand, field, value))) {
        complain(`${field} was never ${String(value).slice(0, 40)}`);
      }
    }
    for (const [field, { from, to }] of Object.entries(data.changes)) {
      if (!['canEdit', 'invoiceNumber', ...FIELDS].includes(field as Field)) continue;
      if (field === 'description' && [from, to].some(isOversized)) continue;
      const went = (a: (stand: Stand) => boolean, b: (stand: Stand) => boolean): boolean => {
        const first = window.findIndex(a);
        return first >= 0 && window.slice(first).some(b);
      };
      const isTo = (stand: Stand) => isValue(stand, field, to);
      // An outdated entry of a job that was not listed before counts as newer than the details (rule 4). Its status and its
      // dispatch date are compared with the entry before only.
      const isReturn = !fold.isListed && data.observed.view === 'list';
      const isOutdated = isReturn && field !== 'status' && field !== 'dateOut' && recent.some(isTo);
      // In the first observation of a new job: it may have been hidden when the list was read before.
      const isFirst = fold.created && fold.lastAt === at;
      if (from === null && (field === 'status' || isFirst)) {
        if (!window.some(isTo)) complain(`${field} was not ${to} then`);
      } else if (field === 'dateOut' && from === null && isRecentDispatch(jobNumber, at)) {
        // Only the detail contains it, and its date does not prove that it is older than the baseline.
      } else if (from === null && isDim(jobNumber, field)) {
        // A view that omitted the value does not prove that it was absent.
        if (past.every(isTo) || !window.some(isTo)) complain(`${field} did not become ${to}`);
      } else if (
        !went(
          (stand) => !stand.list || isValue(stand, field, from),
          (stand) => isOutdated || isTo(stand),
        ) ||
        isSame(field, from, to)
      ) {
        complain(`${field} did not go from ${from} to ${to} then`);
      }
      // In the order of the history: never back to an earlier value that the job did not have again.
      const stands = existing(jobNumber);
      let position = fold.at.get(field) ?? 0;
      if (!fold.at.has(field) && field in fold.job) {
        const known = fold.job[field as Field];
        // A value that a view omitted has no position.
        const isOmitted = known === null && isDim(jobNumber, field);
        position = Math.max(
          0,
          stands.findIndex((stand) => isOmitted || isValue(stand, field, known)),
        );
      }
      const later = stands.findIndex((stand, n) => n >= position && isTo(stand));
      const next =
        later < 0 && isReturn ? stands.findIndex((stand) => recent.includes(stand) && isTo(stand)) : later;
      if (next < 0) complain(`${field} goes back to ${to}`);
      else fold.at.set(field, next);
    }

    const happened = (is: (stand: Stand) => boolean) => window.some(is);
    switch (type) {
      case 'job.created': {
        if (before || fold.types.length > 0) complain('is not the first event of the job');
        const [, first] = all;
        // The date in is by the server's clock, the baseline by ours.
        const tolerance =
          Math.max(NUMBER_TOLERANCE_MS + sight.skewMs, sight.slackMs) +
          // A local time without a zone is read in the latest one (rule 5).
          (sight.isZoneless(jobNumber) ? ALL_ZONES_MS : MINUTE_MS);
        // Without a date, only its number proves that it is new. A job that was in no list then cannot be distinguished.
        const isDated = !sight.isHidden('detail', jobNumber, 'dateIn');
        if (isDated && first && first.at < (begunAt ?? 0) - tolerance)
          complain('the job is older than the baseline');
        fold.created = true;
        break;
      }
      case 'job.dispatched':
        if (fold.dispatched) complain('dispatched twice');
        fold.dispatched = true;
        break;
      case 'job.dispatch_revoked':
        if (!fold.dispatched) complain('was not dispatched');
        fold.dispatched = false;
        break;
      case 'job.closed':
      case 'job.cancelled':
      case 'job.unavailable': {
        if (fold.ended) complain('ended twice');
        fold.ended = type;
        const where = ENDS[type];
        const isReturn =
          type === 'job.cancelled' &&
          !fold.types.includes('job.dispatched') &&
          window.some(
            (stand) =>
              stand.where === 'hidden' &&
              (stand.list?.permissions?.canEdit === false ||
                sight.isHidden('detail', jobNumber, 'permissions')),
          );
        if (!happened((stand) => stand.where === where) && !isReturn) complain('it did not end so then');
        break;
      }
      case 'job.reopened':
        if (fold.ended !== `job.${data.previousOutcome}`) complain(`had not ended so, but ${fold.ended}`);
        fold.ended = undefined;
        if (!happened((stand) => stand.where === 'active')) complain('it did not come back then');
        break;
      case 'job.overdue': {
        const due = String(data.dueAt);
        if (fold.overdueFor.has(due)) complain('was emitted before');
        fold.overdueFor.add(due);
        // Without an offset, the time in the latest zone counts.
        const isDue = ({ list }: Stand) =>
          list !== undefined &&
          list.dateOut === null &&
          list.dateDue !== null &&
          Date.parse(list.dateDue) <= at;
        // A dispatch that the list does not contain is known only from the next detail.
        if (!window.some(isDue) && !isDim(jobNumber, 'dateOut')) complain('it was not due then');
        break;
      }
      case 'job.tracking_added':
      case 'job.tracking_removed':
        for (const parcel of (data.tracking ?? []) as readonly TrackingEntry[]) {
          const has = (stand: Stand) => hasParcel(stand, parcel);
          const wanted = type === 'job.tracking_added';
          if (!window.some((stand) => has(stand) === wanted)) complain('was not so then');
          if (!past.some((stand) => has(stand))) complain('there was never such a parcel');
        }
        break;
      case 'job.tracking_updated':
        for (const { to } of (data.tracking ?? []) as readonly { to: TrackingEntry }[]) {
          if (!past.some((stand) => hasParcel(stand, to))) complain('there was never such a parcel');
        }
        break;
      case 'job.line_status_changed':
        for (const { jobLineId, from, to } of data.lines ?? []) {
          const is = (wanted: string | null) => (stand: Stand) =>
            canon(stand.detail?.lines.find((line) => line.jobLineId === jobLineId)?.jobLineStatus ?? null) ===
            canon(wanted);
          if (!window.some(is(to)) || (from !== null && !window.some(is(from))))
            complain('the line did not change so then');
          if (canon(from) === canon(to)) complain('is only another name');
        }
        break;
      case 'job.due_date_changed':
        // A new due date can be missed again.
        if (data.changes.dateDue) fold.overdueFor.clear();
        break;
      case 'job.status_changed':
      case 'job.updated':
      case 'job.locked':
      case 'job.unlocked':
      case 'job.invoiced':
        break;
      default:
        complain('is unknown to the oracle');
    }
    fold.job = job;
    fold.lastAt = at;
    fold.types.push(type);
  }

  function takeGroupEvent(event: JobEvent): void {
    const { orderGroup, jobs, excludedJobs, observed } = event.data as unknown as {
      orderGroup: string;
      jobs: readonly number[];
      excludedJobs: readonly number[];
      observed: { since: string | null; at: string };
    };
    const at = Date.parse(observed.at);
    const since = observed.since === null ? null : Date.parse(observed.since) - sight.slackMs - POLL_MS;
    const complain = (what: string) =>
      problems.push(`${event.id} of ${orderGroup}: ${what} ${JSON.stringify(event.data)}`);
    for (const job of jobs) {
      const past = history.stands(job).filter((stand) => stand.at <= at);
      if (!past.some(({ list }) => list?.orderGroup === orderGroup)) complain(`${job} was never in it`);
      if (!past.some(({ list }) => list?.dateOut)) complain(`${job} was never dispatched`);
    }
    for (const job of history.jobs) {
      if (jobs.includes(job) || excludedJobs.includes(job)) continue;
      if (
        sight.wasUnreadable('list', job) ||
        ['list', 'detail'].some((view) => sight.isHidden(view as 'list', job, 'orderGroup'))
      )
        continue;
      const window = during(history.stands(job), since, at);
      const isOpen = ({ list, where }: Stand) =>
        where === 'active' && list?.orderGroup === orderGroup && list.dateOut === null;
      const known = Date.parse(observed.at) - sight.slackMs - POLL_MS;
      if (window.length > 0 && window.every(isOpen) && (window[0]?.at ?? 0) < known)
        complain(`${job} was open all the time`);
    }
  }

  function compare(snapshots: readonly Snapshot[]): void {
    if (begunAt === undefined) return;
    const stored = new Set<number>();
    for (const snapshot of snapshots) {
      const { jobNumber } = snapshot;
      stored.add(jobNumber);
      if (snapshot.unproven !== null) {
        if (folds.has(jobNumber))
          problems.push(`Events of ${jobNumber} before it is known whether it is new.`);
        continue;
      }
      const fold = folds.get(jobNumber);
      if (!fold) {
        folds.set(jobNumber, start(snapshot));
        continue;
      }
      const job = summarize(snapshot);
      const isListed = isListAuthoritative(snapshot);
      const { list, detail } = snapshot;
      if (!(fold.known.list && fold.known.detail))
        for (const field of findApart(snapshot)) fold.apart.add(field);
      // When the other view becomes the deciding one, its first values are not changes, and neither are values that differed
      // from the beginning: each view is compared only with itself (rule 4).
      const passes = fold.isListed !== isListed;
      const isFirst = !fold.known[isListed ? 'list' : 'detail'];
      // A dispatch dated before the baseline that the first detail shows is adopted with its parcels (rule 4).
      const isOld = ({ list, at }: Stand) =>
        list?.dateOut && Math.min(at, Date.parse(list.dateOut) - sight.skewMs) < (begunAt ?? 0);
      const wasOld = !fold.types.includes('job.dispatched') && history.stands(jobNumber).some(isOld);
      const isOldDispatch = wasOld && !fold.known.detail && detail !== null;
      for (const field of FIELDS) {
        const [emitted, stored] = [fold.job[field], job[field]];
        if (isSame(field, emitted, stored)) continue;
        const adopted =
          (emitted === null && (field === 'status' || field === 'originCode' || field === 'mustDate')) ||
          ((emitted === null || stored === null) && isDim(jobNumber, field)) ||
          // A detail may have omitted it, and no list contains it.
          (emitted === null && list === null && /^order/.test(field)) ||
          // The views name statuses differently: after the departure, the detail's name replaces the list's.
          (field === 'status' &&
            (isDim(jobNumber, field) ||
              passes ||
              (!isListed && isSame(field, emitted, snapshot.list?.status ?? null)))) ||
          (passes && (isFirst || fold.apart.has(field))) ||
          (isOldDispatch && field === 'dateOut' && emitted === null) ||
          (field === 'description' && [emitted, stored].some(isOversized));
        if (!adopted) {
          problems.push(
            `The log leaves ${field} of ${jobNumber} as ${emitted}, its snapshot has ${stored}. ${fold.types.join(', ')}`,
          );
        }
      }
      const parcels = (set: readonly TrackingEntry[]) =>
        JSON.stringify(set.map(({ number, link }) => [number, link]).sort());
      if (parcels(fold.job.tracking) !== parcels(job.tracking) && !isOldDispatch) {
        problems.push(
          `The log leaves ${jobNumber} with ${parcels(fold.job.tracking)}, its snapshot has ${parcels(job.tracking)}.`,
        );
      }
      fold.job = job;
      fold.isListed = isListed;
      fold.known = { list: list !== null, detail: detail !== null };
      if ((snapshot.ended ?? undefined) !== fold.ended?.slice('job.'.length)) {
        problems.push(`The log ends ${jobNumber} with ${fold.ended}, its snapshot with ${snapshot.ended}.`);
      }
      if (job.dateOut !== null && wasOld) fold.dispatched = true;
      if ((job.dateOut !== null) !== fold.dispatched) {
        problems.push(
          `The log has ${jobNumber} dispatched: ${fold.dispatched}. Its snapshot has ${job.dateOut}.`,
        );
      }
    }
    for (const jobNumber of folds.keys()) {
      if (!stored.has(jobNumber)) problems.push(`${jobNumber} has events and no snapshot.`);
    }
  }

  const settle: Ledger['settle'] = ({ index, baselinedAt, lastFaultAt }) => {
    const numbersProve = history.everyJob.every((job) => String(job).length <= 6);
    // Any job may be behind an unread entry (rule 2).
    const isListIncomplete = history.jobs.some((job) => sight.isUnreadable('list', job));
    // If most entries are unread, no crawl is complete, so nothing proves that a job left the list (rule 2).
    const listed = history.everyJob.filter((job) => history.now(job).where === 'active');
    const unread = listed.filter((job) => sight.isUnreadable('list', job)).length;
    const isNeverComplete = unread > Math.max(1, listed.length - unread);
    for (const jobNumber of history.jobs) {
      if (sight.isUnreadable('list', jobNumber)) continue;
      const fold = folds.get(jobNumber);
      const { where, list, at } = history.now(jobNumber);
      const [, first, ...more] = history.stands(jobNumber);
      if (!first) continue;
      const complain = (what: string) =>
        problems.push(
          `${jobNumber} ${what}: emitted ${fold?.types.join(', ') || 'nothing'} ${JSON.stringify(fold?.job)}, since ` +
            `${new Date(at).toISOString()} it is ${where} ${JSON.stringify(list)}`,
        );
      const readable = !sight.isUnreadable('detail', jobNumber);
      const undisturbed =
        !sight.wasUnreadable('detail', jobNumber) && !sight.wasUnreadable('list', jobNumber);
      const dateProves =
        !sight.isHidden('detail', jobNumber, 'dateIn') && first.at + sight.skewMs > baselinedAt;
      const isNew =
        first.at > baselinedAt &&
        (dateProves || (numbersProve && Math.abs(sight.skewMs) < NUMBER_TOLERANCE_MS));
      // The sweep ends at the highest known number.
      const seen = (stand: Stand) => stand.where === 'active' || stand.where === 'closed';
      if (
        !fold?.created &&
        isNew &&
        undisturbed &&
        !sight.wasThrottled() &&
        lastFaultAt < first.at &&
        (where === 'active' || (numbersProve && !isNeverComplete && more.every(seen)))
      ) {
        complain('was not emitted to be created');
      }
      const shows = (view: 'list' | 'detail', field: string) =>
        !sight.isHidden(view, jobNumber, field) && (view === 'list' || readable);
      const phase = index.get(jobNumber)?.phase;
      if (where === 'active') {
        if (phase !== 'listed') complain('is listed, and is not known to be');
        if (!fold || fold.ended) {
          complain('is listed, and not emitted to be');
          continue;
        }
        const now = history.now(jobNumber);
        for (const field of FIELDS) {
          const name = field === 'status' ? 'masterJobStatus' : field;
          if (field === 'dateOut') continue;
          if (shows('list', name) && trueValue(now, field) !== null && !isValue(now, field, fold.job[field]))
            complain(`differs in ${field}`);
        }
        const out = list?.dateOut ?? null;
        if (out !== null && (shows('list', 'dateOut') || shows('detail', 'dateOut')) && !fold.dispatched)
          complain('was not emitted to be dispatched');
        if (out === null && readable && fold.dispatched) complain('was not emitted to be not dispatched');
        if (shows('list', 'tracking')) {
          for (const entry of list?.tracking ?? []) {
            const key = (entry.trackingNumber ?? entry.trackingLink) as string;
            const has = fold.job.tracking.some(
              ({ number, link }) => number === key || link === entry.trackingLink,
            );
            if (!has) complain(`misses the parcel ${key}`);
          }
        }
        continue;
      }
      const forgotten = fold && phase === undefined && at >= fold.lastAt + 7 * DAY_MS;
      if (!fold || forgotten || !readable || !undisturbed) continue;
      if (isNeverComplete && (phase === 'listed' || phase === 'departed')) continue;
      if (phase === 'listed' || phase === 'departed') complain(`is ${where}, and believed ${phase}`);
      if (
        !fold.ended &&
        (where === 'closed' ||
          (!isListIncomplete &&
            where !== 'hidden' &&
            !fold.dispatched &&
            !fold.types.includes('job.dispatched')))
      ) {
        complain('has another outcome than emitted');
      }
      if (list?.dateOut && shows('detail', 'dateOut') && !fold.dispatched)
        complain('was not emitted to be dispatched');
    }
  };

  return {
    problems,
    events,
    begin(snapshots, startedAt) {
      begunAt = startedAt;
      for (const snapshot of snapshots) folds.set(snapshot.jobNumber, start(snapshot));
    },
    take(fresh) {
      for (const event of fresh) {
        if (Number(event.sequence) !== events.length + 1)
          problems.push(`${event.id} comes after ${events.at(-1)?.id}.`);
        if (ids.has(event.id)) problems.push(`${event.id} is in the log twice.`);
        ids.add(event.id);
        events.push(event);
        if (event.subject?.startsWith('jobs/')) takeJobEvent(event, Number(event.subject.slice(5)), fresh);
        else if (event.type === 'order_group.dispatched') takeGroupEvent(event);
        else if (event.type === 'status.discovered') {
          const { status } = event.data as unknown as { status: string };
          if (discovered.has(status)) problems.push(`The status ${status} was discovered twice.`);
          discovered.add(status);
        } else if (!OF_ACCOUNTS.test(event.type) && !IGNORED.has(event.type)) {
          problems.push(`${event.type} is unknown to the oracle.`);
        }
      }
    },
    compare,
    settle,
    farewell() {},
  };
}

/** The text that the sandbox adds to an oversized detail, truncated or not. */
function isOversized(text: unknown): boolean {
  return typeof text === 'string' && /^x{99}/.test(text);
}

function hasParcel({ list }: Stand, { number, link }: TrackingEntry): boolean {
  return (list?.tracking ?? []).some(
    ({ trackingNumber, trackingLink }) =>
      (number !== null && trackingNumber === number) || (link !== null && trackingLink === link),
  );
}

/** Whether two timestamps are the same point in time, or the same local time if one of them has no offset. */
function isSameTime(a: unknown, b: unknown): boolean {
  if (a === null || b === null || typeof a !== 'string' || typeof b !== 'string')
    return (a ?? null) === (b ?? null);
  const [one, other] = [readTime(a), readTime(b)];
  if (!one || !other) return a === b;
  if (one.offset === undefined || other.offset === undefined) return one.local === other.local;
  return one.local - one.offset === other.local - other.offset;
}

function readTime(text: string): { readonly local: number; readonly offset: number | undefined } | undefined {
  const match = /^(\d{4}-\d\d-\d\d)(?:[T ](\d\d:\d\d)(?::(\d\d)(\.\d+)?)?)?(Z|([+-])(\d\d):(\d\d))?$/.exec(
    text,
  );
  if (!match) return undefined;
  const [, day, time = '00:00', seconds = '00', fraction = '', zone, sign, hours, minutes] = match;
  const local = Date.parse(`${day}T${time}:${seconds}Z`) + Math.round(Number(`0${fraction || '.0'}`) * 1000);
  if (zone === undefined) return { local, offset: undefined };
  const offset =
    zone === 'Z' ? 0 : (sign === '-' ? -1 : 1) * (Number(hours) * 60 + Number(minutes)) * MINUTE_MS;
  return { local, offset };
}
