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
import { applyProof, asEmitted, createSnapshot, proveCreated, withOldDispatch } from './diff/creation.ts';
import {
  applyDetailDispatch,
  applyDetailTracking,
  applyDispatchDate,
  applyTracking,
  dropRevoked,
  isMissing,
  retainEmitted,
} from './diff/dispatch.ts';
import { OMITTED_IN_DETAIL } from './diff/equality.ts';
import {
  addToUpdated,
  buildLineEvents,
  buildListEvents,
  carryForwardMissing,
  compareDelistedDetail,
  compareListedDetail,
  fillFromList,
  findIncomparable,
} from './diff/fields.ts';
import { addListValues, addRevocation, catchUp } from './diff/lag.ts';
import { applyLines } from './diff/lines.ts';
import { compareCancelable } from './diff/production.ts';
import { followStay, withAttention } from './diff/status.ts';
import {
  buildStep,
  type EventContent,
  type ListEntry,
  type ObservationContext,
  type Step,
  sinceListed,
  type ViewResponse,
} from './diff/step.ts';
import { checkTimers } from './diff/timers.ts';
import { addWithdrawn, mayPrecedeDispatch, withoutWithdrawn } from './diff/withdrawn.ts';
import { isListAuthoritative, type Snapshot } from './snapshot.ts';
import { sameTime } from './timestamps.ts';
import type { DetailView, ListView } from './views.ts';

/**
 * Applies a list entry to a job (rules 4, 5, 6). `before` is the job's snapshot, and absent for an unknown
 * job. It must not be unproven.
 */
export function applyListEntry(
  jobNumber: number,
  before: Snapshot | undefined,
  { view, response }: ListEntry,
  known: ObservationContext,
): Step {
  if (known.baselineStartedAt === null || !before) {
    const first = createSnapshot(jobNumber, view, response.requestedAt);
    const stay = { since: response.respondedAt };
    return buildStep(
      known.baselineStartedAt === null
        ? { ...first, emitted: asEmitted(view), ...(view.status === null ? {} : { stay }) }
        : {
            ...{ ...first, stay, unproven: response.requestedAt, owed: { at: known.startedAt, tries: 0 } },
            ...(known.rules?.timers ? { timers: known.rules.timers } : {}),
          },
      response,
      null,
      [],
      [view.status],
    );
  }

  const was = before.list;
  const current = withoutWithdrawn(view, was, before, response.requestedAt, 'list');
  const { view: next, silent } = carryForwardMissing(was, current);
  // Until now the detail was authoritative.
  const returns = !isListAuthoritative(before);
  const changes = was === null ? [] : buildListEvents(was, next, returns ? before : undefined);
  const zone = before.detail?.timezone ?? null;
  // A date that this list lacked is from the list with closed jobs, and can be corrected here unless the detail has another one.
  const isFromClosed = !before.detail?.dateOut || sameTime(before.detail.dateOut, next.dateOut);
  const date = was?.dateOut ?? (isFromClosed ? before.emitted.dateOut : null);
  // The date was corrected by a detail, so the list may be behind: the detail decides.
  const isBehind = date !== null && !sameTime(date, before.emitted.dateOut ?? date);
  const dispatch = applyDispatchDate(before.emitted.dateOut, isBehind ? null : date, next.dateOut, zone);
  const tracking = applyTracking(before.emitted.tracking, was?.tracking ?? [], next.tracking, []);
  const emitted = { ...before.emitted, dateOut: dispatch.dateOut, tracking: tracking.emitted };
  const { retained, hasRetained } = retainEmitted(was, next, emitted);
  // Emitted from the list with closed jobs, and not in this list: it was last observed before this entry.
  const isElsewhere = before.detail === null && isMissing(retained, emitted);
  const ahead = addListValues(before, next, response.respondedAt);
  const unsure = findIncomparable(before.detail, was ?? next, next, returns ? [] : before.unsure).filter(
    (field) => !(ahead && field in ahead),
  );
  // Withdrawn only in this observation. The schedule for an earlier withdrawal is unaffected.
  const anew = hasRetained && !before.heldBack;
  // The detail fetched at this time is the base of comparison once the job has left the list.
  const news =
    returns ||
    current !== view ||
    (isBehind && !sameTime(next.dateOut, date)) ||
    dispatch.events.length > 0 ||
    tracking.events.length > 0 ||
    changes.some((change) => change.type === 'job.status_changed');

  const { heldBack: _, detailPending: __, returned, stay: ___, ...rest } = before;
  const stay = followStay(before, next, response, before.settling !== null);
  const snapshot: Snapshot = {
    ...rest,
    list: retained,
    listAt: hasRetained || silent || isElsewhere ? sinceListed(before, known) : response.requestedAt,
    unsure,
    ahead,
    withdrawn: addWithdrawn(before, emitted, response.respondedAt),
    emitted,
    ended: null,
    departure: null,
    settling: null,
    owed:
      news || hasRetained || before.owed !== null
        ? {
            at: news || anew || before.owed === null ? known.startedAt : before.owed.at,
            tries: returns || anew || before.owed === null ? 0 : before.owed.tries,
          }
        : null,
    ...(hasRetained || silent || isElsewhere ? { heldBack: true } : {}),
    ...(returned && (next.canEdit !== true || mayPrecedeDispatch(before.withdrawn, response.requestedAt))
      ? { returned }
      : {}),
    ...(stay ? { stay } : {}),
  };
  const step = buildStep(
    snapshot,
    response,
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
  const isFirst = was?.status === null && before.stay !== undefined;
  const since = sinceListed(before, known);
  return withAttention(
    step,
    response,
    known.rules,
    isFirst ? { status: next.status, since, attended: before.stay.attended } : undefined,
  );
}

/**
 * Applies a detail to a job. `listed` is the job's list entry in the same poll. Without it the job has left
 * the list, and from here on the detail is authoritative.
 *
 * For a job observed for the first time, the detail decides whether the job is new (rule 5): created after
 * the baseline, or only hidden until now. `open` of the result: the list entry lacks a
 * dispatch or a parcel that stays emitted.
 */
export function applyDetail(
  before: Snapshot,
  answer: DetailView,
  listed: ListEntry | undefined,
  response: ViewResponse,
  known: ObservationContext,
): Step & { readonly open: boolean } {
  const detail = withoutWithdrawn(answer, before.detail, before, response.requestedAt, 'detail');
  const proof = before.unproven === null ? undefined : proveCreated(before, detail, response, known);
  const tracked = proof === undefined ? before : applyProof(before, detail, proof);
  const proven = proof?.created === true ? tracked : withOldDispatch(tracked, detail, known);
  const start = { ...proven, detail: proven.detail && fillFromList(proven.detail, proven) };
  const was = start.detail;
  const filled = fillFromList(detail, start);
  const { view, silent } = carryForwardMissing(was, filled);
  // The detail itself did not prove the values that it omits: at most the list did, before it.
  const isFilled = OMITTED_IN_DETAIL.some((field) => filled[field] !== detail[field]);
  const lines = applyLines(was, detail, start.supersededLines, response.requestedAt);
  const next: DetailView = {
    ...view,
    invoiceNumber: detail.invoiceNumber ?? was?.invoiceNumber ?? null,
    timezone: detail.timezone ?? was?.timezone ?? null,
    comments: lines.comments,
    lines: lines.lines,
  };
  const dispatchedSince = next.dateOut !== null && start.list?.dateOut == null;
  const caughtUp = catchUp(start, next, response.requestedAt, dispatchedSince, detail);
  const sinceList = sinceListed(before, known);
  // A change from a value of the list may have happened as soon as the list had shown it.
  const fromList = listed || Object.keys(caughtUp.from).length > 0;
  const since = was === null ? sinceList : fromList ? Math.min(start.detailAt, sinceList) : start.detailAt;
  const fields = listed
    ? compareListedDetail(start, next, caughtUp)
    : compareDelistedDetail(start, next, caughtUp);
  const first = proof?.created === true ? start.list : null;
  const dispatch = applyDetailDispatch(start, first, next, listed, caughtUp);
  const tracking = applyDetailTracking(start, first, next, listed);
  const emitted = { ...start.emitted, dateOut: dispatch.dateOut, tracking: tracking.emitted };
  const production = compareCancelable(
    ...([start, next, caughtUp, listed, response, emitted.dateOut !== null] as const),
  );
  const { isCancelable } = production;
  const { retained, hasRetained } = retainEmitted(was, { ...next, ...fields.kept, isCancelable }, emitted);
  const list = start.list && dropRevoked({ ...start.list, ...fields.followed }, emitted);
  const open = listed !== undefined && isMissing(listed.view, emitted);
  // Only the list with closed jobs has shown it: it was last observed before this detail.
  const isElsewhere = isMissing(retained, emitted) && (!list || isMissing(list, emitted));
  const revoked = dispatch.events.some(({ type }) => type === 'job.dispatch_revoked');
  const unseen = was?.dateOut == null ? (start.emitted.dateOut ?? first?.dateOut ?? null) : null;
  const ahead = revoked ? addRevocation(caughtUp.ahead, response.respondedAt, unseen) : caughtUp.ahead;
  const withdrawn = addWithdrawn(start, emitted, response.respondedAt);
  // A view from before the dispatch shows the job as editable, too.
  const isEditable =
    (next.canEdit === true && !ahead?.dateOut) ||
    (listed?.view.canEdit === true && !mayPrecedeDispatch(withdrawn, response.requestedAt));
  // The withdrawal in the list is now resolved, unless the detail still contains the value.
  const { heldBack, detailPending: _, returned, lockedInAt: __, cancelableAt, stay, ...rest } = start;
  const heldStill =
    heldBack &&
    (!listed ||
      !list ||
      carryForwardMissing(list, listed.view).silent ||
      retainEmitted(list, listed.view, emitted).hasRetained);

  // An old job may have had its status for long.
  const isStayUnknown = proof?.created === false && list?.status == null;

  const detailAt =
    hasRetained ||
    silent ||
    detail !== answer ||
    isElsewhere ||
    lines.isBehind ||
    production.kept ||
    Object.keys(fields.kept).length > 0
      ? start.detailAt
      : isFilled
        ? Math.max(start.detailAt, Math.min(response.requestedAt, sinceList))
        : response.requestedAt;
  const snapshot: Snapshot = {
    ...rest,
    list,
    detail: retained,
    detailAt,
    unsure: fields.unsure,
    ahead,
    supersededLines: lines.superseded,
    withdrawn,
    emitted,
    ...(listed
      ? { owed: open ? { at: known.startedAt, tries: start.owed?.tries ?? 0 } : null }
      : { departure: null, settling: start.settling ?? { since: known.startedAt, fetches: 0 } }),
    ...(heldStill ? { heldBack: true } : {}),
    ...((returned || revoked) && !isEditable ? { returned: true } : {}),
    ...(isCancelable !== null &&
      detailAt === start.detailAt && {
        cancelableAt: production.kept ? (cancelableAt ?? detailAt) : response.requestedAt,
      }),
    ...(production.lockedInAt === undefined ? {} : { lockedInAt: production.lockedInAt }),
    ...(stay && !isStayUnknown ? { stay } : {}),
  };
  const invoiced: EventContent[] =
    (was !== null || proof?.created) && (was?.invoiceNumber ?? null) === null && next.invoiceNumber !== null
      ? [{ type: 'job.invoiced', changes: { invoiceNumber: { from: null, to: next.invoiceNumber } } }]
      : [];
  const step = buildStep(
    // The state of an old job that was only hidden counts as emitted, including that it is overdue.
    proof?.created === false
      ? checkTimers(snapshot, response, { ...known, baselineStartedAt: null }).snapshot
      : snapshot,
    response,
    proof?.created ? proof.since : since,
    [
      ...(proof?.created
        ? [{ type: 'job.created' as const, changes: {}, occurredAt: detail.dateIn }]
        : [...addToUpdated(fields.changes, lines.changes), ...buildLineEvents(was, next)]),
      ...dispatch.events,
      ...tracking.events,
      ...production.events,
      ...invoiced,
    ],
    [detail.status, ...detail.lines.map((line) => line.status)],
    was === null ? null : since,
  );
  return { ...withAttention(step, response, known.rules), open };
}

/**
 * Starts tracking a job whose detail cannot be read. The job cannot be proved new, so job.created is never
 * emitted for it. Changes in the list after the job's first list entry are emitted.
 */
export function trackWithoutDetail(before: Snapshot, current: ListView | null): Snapshot {
  const first = before.list ?? current;
  return { ...before, unproven: null, emitted: first ? asEmitted(first) : before.emitted };
}

/** Emits the events of a verdict about a job that left the list (rule 3), in the same form as all others. */
export function applyEnding(
  snapshot: Snapshot,
  ending: NonNullable<Snapshot['ended']>,
  response: ViewResponse,
  since: number,
  known: ObservationContext,
): Step {
  const after: Snapshot = {
    ...snapshot,
    ended: ending,
    departure: null,
    settling: { since: known.startedAt, fetches: 0 },
  };
  switch (ending) {
    case 'closed':
      return buildStep(after, response, since, [{ type: 'job.closed', changes: {} }]);
    case 'cancelled':
      return buildStep(after, response, since, [
        {
          type: 'job.cancelled',
          changes: {},
          inferred: true,
          jobStatus: snapshot.detail?.status ?? null,
        },
      ]);
    case 'unavailable':
      // The job's record no longer exists, so it has no status.
      return buildStep(after, response, since, [
        { type: 'job.unavailable', changes: {}, inferred: true, jobStatus: null },
      ]);
  }
}
