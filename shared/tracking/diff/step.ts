/** Result of applying one observation to a job: the new snapshot and the events, with their evidence. */
import type { Observed } from '../../events/catalogue.ts';
import type { EventDraft } from '../../events/event.ts';
import { type Snapshot, summarize } from '../snapshot.ts';
import { toLateness } from '../timestamps.ts';
import type { ListView } from '../views.ts';

/** One answer of the ordering API: time of the request, time of the response (epoch ms), and kind of view. */
export interface ViewResponse {
  readonly requestedAt: number;
  readonly respondedAt: number;
  readonly view: Observed['view'];
}

/** A job as an entry of the active list. */
export interface ListEntry {
  readonly view: ListView;
  readonly response: ViewResponse;
}

/** State of the account at the time of an observation. Times are epoch ms. */
export interface ObservationContext {
  /** Start of this poll. */
  readonly startedAt: number;
  /** Start of the last complete crawl before this one. `null` before the first. */
  readonly lastGoodCrawlStartedAt: number | null;
  /** Start of the last complete crawl, or else of the last poll, if the clock was set back since: see set-back.ts. */
  readonly setBackFrom?: number | undefined;
  /**
   * Start of the crawl that became the baseline. `null` before there is a baseline: then no events are
   * emitted (rule 5).
   */
  readonly baselineStartedAt: number | null;
  /** Jobs with higher numbers were created after the baseline (rule 5). `null` if numbers prove nothing. */
  readonly newAbove: number | null;
  /** Absent: no configured events. */
  readonly rules?: EventRules;
}

/** Rules of the events that an account configures. */
export interface EventRules {
  /** Lead time of job.due_soon (ms). `null`: not emitted. */
  readonly dueSoonMs: number | null;
  /** Returns the number of working days in a status after which a job is stalled. `null`: never. */
  stalledAfter(status: string): number | null;
  /** Returns whether job.needs_attention is emitted for a status. */
  needsAttention(status: string): boolean;
  /** Fingerprint of the settings with a time. Empty if there are none. */
  readonly timers: string;
}

/** Result of applying one observation. */
export interface Step {
  readonly snapshot: Snapshot;
  readonly events: readonly EventDraft[];
  /** Status names in the observation, with its evidence. */
  readonly observedStatuses: readonly { readonly status: string; readonly observed: Observed }[];
}

export type EventContent = EventDraft extends infer D
  ? D extends { type: infer T; data: infer Data }
    ? { readonly type: T } & Omit<Data, 'job' | 'observed'>
    : never
  : never;

/** Returns the times of a change (epoch ms) as evidence. A later `since` is from before the clock was set back. */
export const toBounds = (respondedAt: number, since: number | null) => ({
  at: new Date(respondedAt).toISOString(),
  since: since === null || since === 0 || since > respondedAt ? null : new Date(since).toISOString(),
});

/** Returns the evidence of a change: its observation, and the last time without it (epoch ms). */
export const toObserved = ({ respondedAt, view }: ViewResponse, since: number | null): Observed => ({
  ...toBounds(respondedAt, since),
  view,
});

/**
 * Builds the step with its events and evidence. `statusSince`: time since which the job was known without
 * the status names, if it differs from `since`.
 */
export function buildStep(
  snapshot: Snapshot,
  response: ViewResponse,
  since: number | null,
  contents: readonly EventContent[],
  statuses: readonly (string | null)[] = [],
  statusSince = since,
): Step {
  const observed = toObserved(response, since);
  const job = summarize(snapshot);
  const zone = snapshot.detail?.timezone ?? null;
  const events = withoutFirstStatus(contents).map(
    ({ type, ...rest }) =>
      ({
        type,
        jobNumber: snapshot.jobNumber,
        time: response.respondedAt,
        data: {
          ...{ job, observed, ...rest },
          ...(type === 'job.dispatched' ? toLateness(job.dateOut, job.dateDue, zone) : {}),
        },
      }) as EventDraft,
  );
  const observedStatuses = statuses.flatMap((status) =>
    status === null ? [] : [{ status, observed: toObserved(response, statusSince) }],
  );
  return { snapshot, events, observedStatuses };
}

/** A status that was not known before is only a change if something else of the job changed as well. */
function withoutFirstStatus(contents: readonly EventContent[]): readonly EventContent[] {
  const isFirst = (content: EventContent): boolean =>
    (content.type === 'job.status_changed' && content.changes.status.from === null) ||
    (content.type === 'job.line_status_changed' && content.lines.every(({ from }) => from === null));
  return contents.every(isFirst) ? [] : contents;
}

/** Returns the time at which the job was last known to match its list view (epoch ms). */
export function sinceListed(
  snapshot: Snapshot,
  known: Pick<ObservationContext, 'lastGoodCrawlStartedAt'>,
): number {
  // A job that is simply listed was in the last complete crawl with the same values.
  const isUnchanged =
    snapshot.departure === null &&
    snapshot.settling === null &&
    snapshot.unproven === null &&
    !snapshot.heldBack;
  return Math.max(snapshot.listAt, isUnchanged ? (known.lastGoodCrawlStartedAt ?? 0) : 0);
}
