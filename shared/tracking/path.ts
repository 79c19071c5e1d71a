/** The statuses that a job entered until its dispatch, and the durations that follow from them (rule 22). Pure. */
import type { EventDraft } from '../events/event.ts';
import { type Duration, type DurationKind, toCountedDuration } from './durations.ts';
import type { Snapshot, StatusEntry } from './snapshot.ts';

/** Maximum number of stays remembered of a job: the latest ones. */
const MAX_STAYS = 12;

/**
 * Applies the events of one job, in order. Returns its path, and the durations that are now known: that of each stay that
 * ended, and after the dispatch the time from the beginning of each stay to the dispatch.
 *
 * A stay of which the beginning was not observed is not in the path. This includes the status of a job at the baseline
 * and after its return to the list.
 */
export function followPath(
  path: readonly StatusEntry[],
  events: readonly EventDraft[],
): { readonly path: readonly StatusEntry[]; readonly durations: readonly Duration[] } {
  let stays = path;
  const durations: Duration[] = [];
  const count = (kind: DurationKind, [status, from, to]: StatusEntry, end: Period): void => {
    // Both changes are in the same observation: their order is unknown.
    if (end.to <= to) return;
    const ms = toCountedDuration(end.from - to, end.to - from);
    if (ms !== undefined) durations.push({ status, kind, ms });
  };
  for (const { type, data } of events) {
    switch (type) {
      case 'job.created':
      case 'job.status_changed': {
        const period = toPeriod(data.observed);
        const last = stays.at(-1);
        if (type === 'job.created') stays = [];
        else if (period && last && last[0] === data.changes.status.from) count('stay', last, period);
        const status = type === 'job.created' ? data.job.status : data.changes.status.to;
        if (period && status !== null) {
          stays = [...stays, [status, period.from, period.to] as const].slice(-MAX_STAYS);
        }
        break;
      }
      case 'job.dispatched': {
        const period = toPeriod(data.observed);
        const last = stays.at(-1);
        if (period && last && last[0] === data.job.status) count('stay', last, period);
        if (period) for (const entry of stays) count('remaining', entry, period);
        stays = [];
        break;
      }
      case 'job.dispatch_revoked':
      case 'job.reopened':
      case 'job.closed':
      case 'job.cancelled':
      case 'job.unavailable':
        stays = [];
        break;
      default:
        break;
    }
  }
  return { path: stays, durations };
}

/** Returns the beginning of the current stay of a job, or `undefined` if it was not observed. */
export function findEntry({ path }: Pick<Snapshot, 'path'>, status: string | null): StatusEntry | undefined {
  const last = path?.at(-1);
  return last && last[0] === status ? last : undefined;
}

/** Times between which a change happened (epoch ms). */
interface Period {
  readonly from: number;
  readonly to: number;
}

function toPeriod({ since, at }: { readonly since: string | null; readonly at: string }): Period | undefined {
  return since === null ? undefined : { from: Date.parse(since), to: Date.parse(at) };
}
