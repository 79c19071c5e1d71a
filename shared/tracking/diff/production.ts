/** job.production_started: a job can no longer be cancelled, but stays open (rule 21). Pure. */
import type { Snapshot } from '../snapshot.ts';
import type { DetailView } from '../views.ts';
import type { CaughtUp } from './lag.ts';
import { MAX_LAG_MS } from './lag.ts';
import type { EventContent, ListEntry, ViewResponse } from './step.ts';

/** Result of comparing `isCancelable`. */
interface Production {
  /** Value to store. */
  readonly isCancelable: boolean | null;
  /** Whether the stored value is another one than that of the detail. */
  readonly kept: boolean;
  /** See {@link Snapshot.lockedInAt}. */
  readonly lockedInAt?: number;
  readonly events: readonly EventContent[];
}

/**
 * Compares `isCancelable` of two details of a job. A change counts if the later detail is provably not older than the
 * former one: it was requested an hour later, or shows a value that the list has shown since.
 *
 * A job that was just cancelled cannot be cancelled either, and may still be listed. So a job counts as open if the
 * detail shows it as editable, or if it is still listed an hour after its detail first showed the change. A search does not
 * prove it.
 */
export function compareCancelable(
  { detail: was, detailAt, cancelableAt = detailAt, lockedInAt }: Snapshot,
  next: DetailView,
  { repeated }: Pick<CaughtUp, 'repeated'>,
  listed: ListEntry | undefined,
  response: ViewResponse,
  dispatched: boolean,
): Production {
  const before = was?.isCancelable ?? null;
  const now = next.isCancelable;
  const pending = lockedInAt === undefined ? {} : { lockedInAt };
  if (now === null && before !== null) return { ...keep(before), ...pending };
  if (before === null || now === before) return { isCancelable: now, kept: false, events: [] };
  const isLater = response.requestedAt - cancelableAt >= MAX_LAG_MS || repeated.length > 0;
  if (now) return isLater ? { isCancelable: true, kept: false, events: [] } : keep(before);
  // At dispatch, and after the departure, it says nothing about production.
  if (!listed || dispatched) return { isCancelable: false, kept: false, events: [] };
  const isOpen =
    next.canEdit === true || (lockedInAt ?? response.requestedAt) + MAX_LAG_MS <= response.requestedAt;
  // Found only by a search after the detail: it may have been closed when the detail was read.
  const isFound = listed.response.view === 'search';
  if (!isLater || !isOpen || isFound)
    return { ...keep(before), lockedInAt: lockedInAt ?? response.requestedAt };
  const changes = { isCancelable: { from: true, to: false } };
  return { isCancelable: false, kept: false, events: [{ type: 'job.production_started', changes }] };
}

function keep(isCancelable: boolean): Production {
  return { isCancelable, kept: true, events: [] };
}
