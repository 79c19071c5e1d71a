/**
 * Computes what an observation of a job proves: snapshot × observation → snapshot and events. Pure: the
 * time is part of the observation.
 *
 * The two views are kept apart, because they can disagree for any length of time without a change of the
 * job (rule 4):
 * - The **list** is authoritative for a listed job. Each field is compared with the previous list view.
 * - The **detail** is authoritative for a job that left the list. Each field is compared with the previous
 *   detail view.
 * - Only two changes count across the views: a dispatch date where none was known, and tracking where there
 *   was none.
 * - If a view withdraws dispatch or tracking of a listed job, this counts once both views lack it. Until
 *   then the value stays in the snapshot, and so does the time at which the view last contained it.
 *
 * A change emitted from one view must not be emitted again when authority passes to the other view. In the
 * observation with which it passes, a change counts unless it leads to the other view's value. If the views
 * held different values of a field before one of them changed it, the other's next value cannot be judged
 * that way. It is adopted without an event (`unsure`).
 *
 * Evidence (rule 13): `since` is a time at which the view that contains the change was observed without it,
 * or an earlier time.
 */
import type { Observed, TrackingEntry } from '../events/catalogue.ts';
import type { EventDraft } from '../events/event.ts';
import { KEPT_DAYS, type SharedField, type Snapshot, summarize } from './snapshot.ts';
import { readInstants, sameTime } from './timestamps.ts';
import { type DetailView, type ListView, pairUp, SHARED_FIELDS } from './views.ts';

/** One answer of the ordering API: time of the request, time of the response (epoch ms), and kind of view. */
export interface Look {
  readonly askedAt: number;
  readonly answeredAt: number;
  readonly view: Observed['view'];
}

/** A job as an entry of the active list. */
export interface Sighting {
  readonly view: ListView;
  readonly look: Look;
}

/** State of the account at the time of an observation. Times are epoch ms. */
export interface Known {
  /** Start of this poll. */
  readonly startedAt: number;
  /** Start of the last complete crawl before this one. `null` before the first. */
  readonly lastGoodCrawlStartedAt: number | null;
  /**
   * Start of the crawl that became the baseline. `null` before there is a baseline: then no events are
   * emitted (rule 5).
   */
  readonly baselineStartedAt: number | null;
}

/** Result of applying one observation. */
export interface Step {
  readonly snapshot: Snapshot;
  readonly events: readonly EventDraft[];
  /** Status names in the observation, with its evidence. */
  readonly shown: readonly { readonly status: string; readonly observed: Observed }[];
}

/**
 * Applies a list entry to a job (rules 4, 5, 6). `before` is the job's snapshot, and absent for an unknown
 * job. It must not be unproven.
 */
export function seenInList(
  jobNumber: number,
  before: Snapshot | undefined,
  { view, look }: Sighting,
  known: Known,
): Step {
  if (known.baselineStartedAt === null || !before) {
    const first = firstSeen(jobNumber, view, look);
    return announce(
      known.baselineStartedAt === null
        ? { ...first, announced: counted(view) }
        : { ...first, unproven: look.askedAt, owed: { at: known.startedAt, tries: 0 } },
      look,
      null,
      [],
      [view.status],
    );
  }

  const was = before.list;
  const { view: next, silent } = withUnsaid(was, view);
  // Until now the detail was authoritative.
  const returns = before.settling !== null;
  const changes = was === null ? [] : listChanges(was, next, returns ? before : undefined);
  const dispatch = dispatchShown(before.announced.dateOut, was?.dateOut ?? null, next.dateOut);
  const tracking = trackingShown(before.announced.tracking, was?.tracking ?? [], next.tracking, []);
  const announced = { ...before.announced, dateOut: dispatch.dateOut, tracking: tracking.announced };
  const { believed, takenBack } = believe(was, next, announced);
  const unsure = stillUnsure(before.detail, was ?? next, next, returns ? [] : before.unsure);
  // Withdrawn only in this observation. The schedule for an earlier withdrawal is unaffected.
  const anew = takenBack && !before.heldBack;
  // The detail fetched at this time is the base of comparison once the job has left the list.
  const news =
    returns ||
    dispatch.events.length > 0 ||
    tracking.events.length > 0 ||
    changes.some((change) => change.type === 'job.status_changed');

  const { heldBack: _, ...rest } = before;
  const snapshot: Snapshot = {
    ...rest,
    list: believed,
    listAt: takenBack || silent ? sinceListed(before, known) : look.askedAt,
    unsure,
    announced,
    ended: null,
    departure: null,
    settling: null,
    owed:
      news || takenBack || before.owed !== null
        ? {
            at: news || anew || before.owed === null ? known.startedAt : before.owed.at,
            tries: returns || anew || before.owed === null ? 0 : before.owed.tries,
          }
        : null,
    ...(takenBack || silent ? { heldBack: true } : {}),
  };
  return announce(
    snapshot,
    look,
    sinceListed(before, known),
    [
      ...(before.ended === null
        ? []
        : [{ type: 'job.reopened' as const, previousOutcome: before.ended, changes: {} }]),
      ...changes,
      ...dispatch.events,
      ...tracking.events,
    ],
    [view.status],
  );
}

/**
 * Applies a detail to a job. `listed` is the job's list entry in the same poll. Without it the job has left
 * the list, and from here on the detail is authoritative.
 *
 * For a job observed for the first time, the detail decides whether the job is new (rule 5): created after
 * the baseline, or only hidden until now. `open`: the list lacks a value that stays announced.
 */
export function seenInDetail(
  before: Snapshot,
  detail: DetailView,
  listed: Sighting | undefined,
  look: Look,
  known: Known,
): Step & { readonly open: boolean } {
  const proof = before.unproven === null ? undefined : proveCreated(before, detail, look, known);
  const start = proof === undefined ? before : proven(before, detail, proof);
  const was = start.detail;
  const sinceList = sinceListed(before, known);
  const since = was === null ? sinceList : listed ? Math.min(start.detailAt, sinceList) : start.detailAt;

  const { view, silent } = withUnsaid(was, detail);
  const next: DetailView = {
    ...view,
    invoiceNumber: detail.invoiceNumber ?? was?.invoiceNumber ?? null,
    timezone: detail.timezone ?? was?.timezone ?? null,
    lines: detail.lines.map((line) => ({ ...line, status: line.status ?? statusOf(was, line.jobLineId) })),
  };
  const fields = listed ? heard(start, next) : spoken(start, next);
  const first = proof?.created === true ? start.list : null;
  const dispatch = dispatchInDetail(start, first, next, listed);
  const tracking = trackingInDetail(start, first, next, listed);
  const announced = { ...start.announced, dateOut: dispatch.dateOut, tracking: tracking.announced };
  const { believed, takenBack } = believe(was, { ...next, ...fields.kept }, announced);
  const list = start.list && agreed(start.list, announced);
  const open =
    listed !== undefined &&
    ((announced.dateOut !== null && listed.view.dateOut === null) ||
      pairUp(announced.tracking, listed.view.tracking).gone.length > 0);
  // The withdrawal in the list is now resolved, unless the detail still contains the value.
  const { heldBack, ...rest } = start;
  const heldStill =
    heldBack &&
    (!listed ||
      !list ||
      withUnsaid(list, listed.view).silent ||
      believe(list, listed.view, announced).takenBack);

  const snapshot: Snapshot = {
    ...rest,
    list,
    detail: believed,
    detailAt: takenBack || silent || Object.keys(fields.kept).length > 0 ? start.detailAt : look.askedAt,
    unsure: fields.unsure,
    announced,
    ...(listed
      ? { owed: open ? { at: known.startedAt, tries: start.owed?.tries ?? 0 } : null }
      : { departure: null, settling: start.settling ?? { since: known.startedAt, looks: 0 } }),
    ...(heldStill ? { heldBack: true } : {}),
  };
  const invoiced: Said[] =
    (was !== null || proof?.created) && (was?.invoiceNumber ?? null) === null && next.invoiceNumber !== null
      ? [{ type: 'job.invoiced', changes: { invoiceNumber: { from: null, to: next.invoiceNumber } } }]
      : [];
  const step = announce(
    // The state of an old job that was only hidden counts as announced, including that it is overdue.
    proof?.created === false && overdueIn(snapshot, look) ? overdueSaid(snapshot) : snapshot,
    look,
    proof?.created ? proof.since : since,
    [
      ...(proof?.created
        ? [{ type: 'job.created' as const, changes: {}, occurredAt: detail.dateIn }]
        : [...fields.changes, ...lineChanges(was, next)]),
      ...dispatch.events,
      ...tracking.events,
      ...invoiced,
    ],
    [detail.status, ...detail.lines.map((line) => line.status)],
    was === null ? null : since,
  );
  return { ...step, open };
}

/**
 * Starts tracking a job whose detail cannot be read. The job cannot be proved new, so job.created is never
 * emitted for it. Changes in the list after the job's first list entry are emitted.
 */
export function takenOn(before: Snapshot, shown: ListView | null): Snapshot {
  const first = before.list ?? shown;
  return { ...before, unproven: null, announced: first ? counted(first) : before.announced };
}

/** Emits the events of a verdict about a job that left the list (rule 3), in the same form as all others. */
export function announceEnding(
  snapshot: Snapshot,
  ending: NonNullable<Snapshot['ended']>,
  look: Look,
  since: number,
  known: Known,
): Step {
  const after: Snapshot = {
    ...snapshot,
    ended: ending,
    departure: null,
    settling: { since: known.startedAt, looks: 0 },
  };
  switch (ending) {
    case 'closed':
      return announce(after, look, since, [{ type: 'job.closed', changes: {} }]);
    case 'cancelled':
      return announce(after, look, since, [
        {
          type: 'job.cancelled',
          changes: {},
          inferred: true,
          jobStatus: snapshot.detail?.status ?? null,
        },
      ]);
    case 'unavailable':
      // The job's record no longer exists, so it has no status.
      return announce(after, look, since, [
        { type: 'job.unavailable', changes: {}, inferred: true, jobStatus: null },
      ]);
  }
}

/**
 * Emits job.overdue if a listed job is overdue and the event was not yet emitted for its due date (rule
 * 15). Overdue means undispatched in an observation requested after the due time.
 */
export function checkOverdue(snapshot: Snapshot, look: Look, known: Known): Step {
  const due = overdueIn(snapshot, look);
  if (!due) return { snapshot, events: [], shown: [] };
  const after = overdueSaid(snapshot);
  if (known.baselineStartedAt === null) return { snapshot: after, events: [], shown: [] };
  // At the due time the job was not overdue yet, whenever the due date was set.
  return announce(after, look, due.at, [
    { type: 'job.overdue', changes: {}, dueAt: new Date(due.at).toISOString(), zone: due.zone },
  ]);
}

/**
 * Returns when a listed job becomes overdue (epoch ms). Returns `undefined` if it is dispatched, has no due
 * date, or job.overdue was already emitted.
 */
export function dueOf(snapshot: Snapshot): { readonly at: number; readonly zone: string } | undefined {
  const { list, announced } = snapshot;
  if (!list?.dateDue || list.dateOut || announced.dateOut !== null) return undefined;
  if (sameTime(announced.overdueFor, list.dateDue)) return undefined;
  const reading = readInstants(list.dateDue, snapshot.detail?.timezone ?? null, { midnightIsEndOfDay: true });
  return reading && { at: reading.latest, zone: reading.zone };
}

/** Returns the time at which the job was last known to match its list view (epoch ms). */
export function sinceListed(snapshot: Snapshot, known: Pick<Known, 'lastGoodCrawlStartedAt'>): number {
  // A job that is simply listed was in the last complete crawl with the same values.
  const shown =
    snapshot.departure === null &&
    snapshot.settling === null &&
    snapshot.unproven === null &&
    !snapshot.heldBack;
  return Math.max(snapshot.listAt, shown ? (known.lastGoodCrawlStartedAt ?? 0) : 0);
}

// Event content before the evidence is added.

type Said = EventDraft extends infer D
  ? D extends { type: infer T; data: infer Data }
    ? { readonly type: T } & Omit<Data, 'job' | 'observed'>
    : never
  : never;

/**
 * Builds the step with its events and evidence. `statusSince`: time since which the job was known without
 * the status names, if it differs from `since`.
 */
function announce(
  snapshot: Snapshot,
  look: Look,
  since: number | null,
  said: readonly Said[],
  statuses: readonly (string | null)[] = [],
  statusSince = since,
): Step {
  const observedSince = (time: number | null): Observed => ({
    at: new Date(look.answeredAt).toISOString(),
    since: time === null || time === 0 ? null : new Date(time).toISOString(),
    view: look.view,
  });
  const observed = observedSince(since);
  const job = summarize(snapshot);
  const events = said.map(
    ({ type, ...rest }) =>
      ({
        type,
        jobNumber: snapshot.jobNumber,
        time: look.answeredAt,
        data: { job, observed, ...rest },
      }) as EventDraft,
  );
  const shown = statuses.flatMap((status) =>
    status === null ? [] : [{ status, observed: observedSince(statusSince) }],
  );
  return { snapshot, events, shown };
}

/** Returns the snapshot of a job at its first list entry. None of it is announced. */
function firstSeen(jobNumber: number, view: ListView, look: Look): Snapshot {
  return {
    jobNumber,
    list: view,
    listAt: look.askedAt,
    detail: null,
    detailAt: 0,
    unsure: [],
    unproven: null,
    announced: { dateOut: null, tracking: [], overdueFor: null },
    ended: null,
    departure: null,
    settling: null,
    owed: null,
  };
}

/** Returns the job's values at the start of tracking, which count as announced. */
function counted(view: Pick<ListView, 'dateOut' | 'tracking'>): Snapshot['announced'] {
  return { dateOut: view.dateOut, tracking: view.tracking, overdueFor: null };
}

// Authority

type SharedValues = Pick<ListView, SharedField>;

/**
 * Returns whether a field of one view is unchanged. A flag that is missing on one side is unknown, and not
 * a change.
 */
function same(field: SharedField, a: SharedValues, b: SharedValues): boolean {
  const flag = field === 'canEdit' || field === 'mustDate';
  return (flag && (a[field] === null || b[field] === null)) || equal(field, a, b);
}

/**
 * Returns whether both views have the same value of a field. A flag that only one side contains is not
 * equal.
 */
function equal(field: SharedField, a: SharedValues, b: SharedValues): boolean {
  return field === 'dateDue' ? sameTime(a.dateDue, b.dateDue) : a[field] === b[field];
}

/**
 * Fills in what a view omits this time, which is not a change: the last known status and flags stay.
 * `silent`: a known value was omitted.
 */
function withUnsaid<V extends Pick<ListView, 'status' | 'canEdit' | 'mustDate'>>(
  was: V | null,
  view: V,
): { view: V; silent: boolean } {
  const merged = {
    ...view,
    status: view.status ?? was?.status ?? null,
    canEdit: view.canEdit ?? was?.canEdit ?? null,
    mustDate: view.mustDate ?? was?.mustDate ?? null,
  };
  const silent =
    merged.status !== view.status || merged.canEdit !== view.canEdit || merged.mustDate !== view.mustDate;
  return { view: merged, silent };
}

/**
 * Returns the shared fields of a view whose change must be emitted. `passing`: the other view was
 * authoritative until now. Its values are not emitted again, and fields of this view can be unsure.
 */
function newsIn(
  was: SharedValues,
  next: SharedValues,
  passing: { readonly other: SharedValues | null; readonly unsure: readonly SharedField[] } | undefined,
): SharedField[] {
  return SHARED_FIELDS.filter(
    (field) =>
      !same(field, was, next) &&
      !(passing?.other && equal(field, passing.other, next)) &&
      !passing?.unsure.includes(field),
  );
}

/**
 * Returns the fields of the other view that can no longer be compared after the authoritative view changed
 * from `was` to `next`.
 */
function stillUnsure(
  other: SharedValues | null,
  was: SharedValues,
  next: SharedValues,
  unsure: readonly SharedField[],
): readonly SharedField[] {
  if (other === null) return [];
  return SHARED_FIELDS.filter((field) =>
    same(field, was, next) ? unsure.includes(field) : !same(field, was, other) && !same(field, next, other),
  );
}

interface DetailFields {
  readonly changes: readonly Said[];
  /** Shared fields stored with another value than the current detail contains. */
  readonly kept: Partial<SharedValues>;
  readonly unsure: readonly SharedField[];
}

/**
 * Applies the detail of a listed job, where the list is authoritative for the shared fields. A value that
 * changed only in the detail is not stored. It is thus found as a change if the job leaves the list before
 * the list contains it.
 */
function heard({ list, detail, unsure }: Snapshot, next: DetailView): DetailFields {
  if (detail === null) return { changes: [], kept: {}, unsure: [] };
  const apart = SHARED_FIELDS.filter(
    (field) => !same(field, detail, next) && !(list && equal(field, list, next)),
  );
  const kept = apart.filter((field) => !unsure.includes(field));
  return {
    changes: [],
    kept: Object.fromEntries(kept.map((field) => [field, detail[field]])),
    // After a change, the value is the detail's own again.
    unsure: unsure.filter((field) => same(field, detail, next) && !(list && same(field, list, next))),
  };
}

/** Applies the detail of a job that left the list: the detail is authoritative. */
function spoken({ list, detail, settling, unsure }: Snapshot, next: DetailView): DetailFields {
  const passing = settling === null ? { other: list, unsure } : undefined;
  return {
    changes:
      detail === null
        ? []
        : sharedChanges(
            newsIn(detail, next, passing),
            detail,
            next,
            detail.status !== next.status && !(passing && list?.status === next.status),
          ),
    kept: {},
    unsure: stillUnsure(list, detail ?? next, next, passing ? [] : unsure),
  };
}

// Fields

/**
 * Returns the changes in the list. `settled`: the job's snapshot, if the job returns to the list and the
 * detail was authoritative.
 */
function listChanges(was: ListView, next: ListView, settled: Snapshot | undefined): Said[] {
  const other = settled?.detail ?? null;
  const origin: Changes =
    was.originCode === next.originCode ? {} : { originCode: { from: was.originCode, to: next.originCode } };
  return sharedChanges(
    newsIn(was, next, settled && { other, unsure: settled.unsure }),
    was,
    next,
    was.status !== next.status && other?.status !== next.status,
    origin,
  );
}

type Changes = Record<string, { from: unknown; to: unknown }>;

/** Returns the changes of the fields that both views have. `more` is added to job.updated. */
function sharedChanges<V extends SharedValues & { readonly status: string | null }>(
  news: readonly SharedField[],
  was: V,
  next: V,
  statusMoved: boolean,
  more: Changes = {},
): Said[] {
  const changed = (...fields: SharedField[]): Changes =>
    Object.fromEntries(
      fields
        .filter((field) => news.includes(field))
        .map((field) => [field, { from: was[field], to: next[field] }]),
    );
  const updated = { ...changed('description', 'orderNumber', 'orderGroup', 'orderGroupSequence'), ...more };
  const due = changed('dateDue', 'mustDate');
  const said: Said[] = [];
  if (Object.keys(updated).length > 0) said.push({ type: 'job.updated', changes: updated });
  if (Object.keys(due).length > 0) said.push({ type: 'job.due_date_changed', changes: due });
  if (news.includes('canEdit')) {
    const changes = { canEdit: { from: was.canEdit, to: next.canEdit } };
    said.push({ type: next.canEdit ? 'job.unlocked' : 'job.locked', changes });
  }
  if (statusMoved) {
    said.push({ type: 'job.status_changed', changes: { status: { from: was.status, to: next.status } } });
  }
  return said;
}

function lineChanges(was: DetailView | null, next: DetailView): Said[] {
  if (was === null) return [];
  const before = new Map(was.lines.map((line) => [line.jobLineId, line.status]));
  const lines = next.lines.flatMap(({ jobLineId, status }) => {
    const from = before.get(jobLineId);
    return from === undefined || from === status ? [] : [{ jobLineId, from, to: status }];
  });
  return lines.length === 0 ? [] : [{ type: 'job.line_status_changed', changes: {}, lines }];
}

function statusOf(detail: DetailView | null, jobLineId: number): string | null {
  return detail?.lines.find((line) => line.jobLineId === jobLineId)?.status ?? null;
}

// Dispatch and tracking: announced values, and the events that bring them up to date.

interface Dispatch {
  readonly dateOut: string | null;
  readonly events: readonly Said[];
}

interface Tracking {
  readonly announced: readonly TrackingEntry[];
  readonly events: readonly Said[];
}

/**
 * Applies the dispatch date in a view (`null`: none) to the announced one. `was` is the date in the same
 * view before.
 */
function dispatchShown(announced: string | null, was: string | null, next: string | null): Dispatch {
  if (next === null) return { dateOut: announced, events: [] };
  if (announced === null) {
    const changes = { dateOut: { from: null, to: next } };
    return { dateOut: next, events: [{ type: 'job.dispatched', changes, occurredAt: next }] };
  }
  // A correction is emitted as a change of the date, not as another dispatch. The other view may already have
  // caused that event.
  if (was !== null && !sameTime(was, next) && !sameTime(announced, next)) {
    const changes = { dateOut: { from: was, to: next } };
    return { dateOut: next, events: [{ type: 'job.updated', changes }] };
  }
  return { dateOut: announced, events: [] };
}

/**
 * Applies the dispatch date of a detail. `first` is the first list view of a job whose creation is emitted
 * in this step.
 */
function dispatchInDetail(
  before: Snapshot,
  first: ListView | null,
  next: DetailView,
  listed: Sighting | undefined,
): Dispatch {
  const was = before.detail?.dateOut ?? null;
  const inList = dispatchShown(before.announced.dateOut, null, first?.dateOut ?? null);
  const shown = dispatchShown(inList.dateOut, was, next.dateOut);
  const events = [...inList.events, ...shown.events];
  const { dateOut } = shown;
  // Withdrawn: both views lack the date. For a delisted job, the view that contained it lacks it.
  const lacking = next.dateOut === null && (listed ? listed.view.dateOut === null : was !== null);
  if (dateOut === null || !lacking) return { dateOut, events };
  const changes = { dateOut: { from: was ?? dateOut, to: null } };
  return { dateOut: null, events: [...events, { type: 'job.dispatch_revoked', changes }] };
}

/**
 * Applies the tracking in a view to the announced tracking.
 *
 * `was` is the tracking in the same view before. `null` if there is none: then entries count only if
 * nothing was announced. Entries in `passed` are not emitted, although they are not announced.
 */
function trackingShown(
  announced: readonly TrackingEntry[],
  was: readonly TrackingEntry[] | null,
  next: readonly TrackingEntry[],
  passed: readonly TrackingEntry[],
): Tracking {
  if (was === null && announced.length > 0) return { announced, events: [] };
  const { both, added: unknown } = pairUp(announced, next);
  const known = pairUp(passed, next).both.map(([, to]) => to);
  const added = unknown.filter((entry) => !known.includes(entry));
  const own = new Map(pairUp(was ?? [], next).both.map(([from, to]) => [to, from]));
  const updated = both.flatMap(([from, entry]) => {
    const to = { number: entry.number ?? from.number, link: entry.link ?? from.link };
    if (to.number === from.number && to.link === from.link) return [];
    // Previous entries of this view are not emitted. A link that differs from the other view's is emitted
    // only if this view changed.
    const before = own.get(entry);
    const moved = before
      ? before.number !== entry.number || before.link !== entry.link
      : from.link === null || from.link === to.link;
    return moved ? [{ from, to }] : [];
  });
  const events: Said[] = [];
  if (added.length > 0) events.push({ type: 'job.tracking_added', changes: {}, tracking: [...added] });
  if (updated.length > 0) events.push({ type: 'job.tracking_updated', changes: {}, tracking: updated });
  return {
    announced: [
      ...announced.map((entry) => updated.find(({ from }) => from === entry)?.to ?? entry),
      ...added,
    ],
    events,
  };
}

/** Applies the tracking of a detail, with the same rules as {@link dispatchInDetail}. */
function trackingInDetail(
  before: Snapshot,
  first: ListView | null,
  next: DetailView,
  listed: Sighting | undefined,
): Tracking {
  const was = before.detail?.tracking ?? null;
  const inList = trackingShown(before.announced.tracking, [], first?.tracking ?? [], []);
  const shown = trackingShown(inList.announced, was, next.tracking, was ?? []);
  const events = [...inList.events, ...shown.events];
  const { announced } = shown;
  const lacking = pairUp(announced, next.tracking).gone;
  // Each set is compared as a whole: one parcel in it matches one, even if two have the same link.
  const takenBack = listed
    ? pairUp(announced, listed.view.tracking).gone
    : pairUp(announced, was ?? []).both.map(([entry]) => entry);
  const removed = lacking.filter((entry) => takenBack.includes(entry));
  if (removed.length === 0) return { announced, events };
  return {
    announced: announced.filter((entry) => !removed.includes(entry)),
    events: [...events, { type: 'job.tracking_removed', changes: {}, tracking: [...removed] }],
  };
}

/**
 * Returns a view that keeps announced dispatch and tracking which it no longer contains, as long as they
 * stay announced.
 */
function believe<V extends Pick<ListView, 'dateOut' | 'tracking'>>(
  was: Pick<ListView, 'dateOut' | 'tracking'> | null,
  next: V,
  announced: Snapshot['announced'],
): { believed: V; takenBack: boolean } {
  const dateOut = next.dateOut ?? (announced.dateOut === null ? null : (was?.dateOut ?? null));
  const shown = was?.tracking ?? [];
  const missing = pairUp(shown, next.tracking).gone;
  const kept = pairUp(shown, announced.tracking)
    .both.map(([entry]) => entry)
    .filter((entry) => missing.includes(entry));
  return {
    believed: { ...next, dateOut, tracking: [...next.tracking, ...kept] },
    takenBack: dateOut !== next.dateOut || kept.length > 0,
  };
}

/** Removes from the list view what is no longer announced. */
function agreed(list: ListView, announced: Snapshot['announced']): ListView {
  return {
    ...list,
    dateOut: announced.dateOut === null ? null : list.dateOut,
    tracking: pairUp(list.tracking, announced.tracking).both.map(([entry]) => entry),
  };
}

// Overdue

/** Returns the due time of a snapshot, if the observation was requested after it. */
function overdueIn(snapshot: Snapshot, look: Look): ReturnType<typeof dueOf> {
  const due = dueOf(snapshot);
  return due && look.askedAt > due.at ? due : undefined;
}

function overdueSaid(snapshot: Snapshot): Snapshot {
  return {
    ...snapshot,
    announced: { ...snapshot.announced, overdueFor: snapshot.list?.dateDue ?? null },
  };
}

// New or only hidden

interface Proof {
  readonly created: boolean;
  /** Time at which the job cannot have existed yet. */
  readonly since: number | null;
}

/**
 * Decides whether a job without a history is new (rule 5): it came in after the baseline, read in the time
 * zone that makes that later.
 */
function proveCreated(before: Snapshot, detail: DetailView, look: Look, known: Known): Proof {
  const { baselineStartedAt, lastGoodCrawlStartedAt } = known;
  const cameIn = detail.dateIn === null ? undefined : readInstants(detail.dateIn, detail.timezone);
  if (cameIn === undefined || baselineStartedAt === null) return { created: false, since: null };
  // A job older than the retention of snapshots may have been tracked before.
  const remembered = look.askedAt - KEPT_DAYS * 86_400_000;
  const created = cameIn.latest >= Math.max(baselineStartedAt, remembered);
  // A crawl without the job proves nothing, because the job may have been hidden then. Its own date proves
  // it.
  const bounds = [lastGoodCrawlStartedAt, baselineStartedAt].filter(
    (at) => at !== null && at <= cameIn.earliest && (before.list === null || at <= before.listAt),
  );
  return { created, since: bounds[0] ?? null };
}

/** Returns an unproven job after its first detail, with the values announced before this observation. */
function proven(before: Snapshot, detail: DetailView, { created, since }: Proof): Snapshot {
  const { list } = before;
  return {
    ...before,
    unproven: null,
    listAt: list === null ? (since ?? 0) : before.listAt,
    announced: created ? before.announced : counted(list ?? detail),
  };
}
