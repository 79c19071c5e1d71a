/** Texts of the job pages. Independent of React and the browser. */
import type { EventDescription } from '../events.ts';
import { ATTEMPT_OUTCOMES, type Attempt } from '../health/status.ts';
import { formatCount } from '../texts.ts';
import { type JobQuery, parseJobNumber, type SearchResult } from './search.ts';

/** Summarizes the attempts to deliver one event to one endpoint, oldest first. */
export function summarizeAttempts(attempts: readonly Pick<Attempt, 'outcome'>[]): {
  readonly tone: EventDescription['tone'];
  readonly text: string;
} {
  const failed = attempts.filter(({ outcome }) => outcome !== 'delivered').length;
  const isDelivered = attempts.some(({ outcome }) => outcome === 'delivered');
  const label =
    ATTEMPT_OUTCOMES[isDelivered ? 'delivered' : (attempts.at(-1)?.outcome ?? 'retry')].label.toLowerCase();
  if (!isDelivered) return { tone: 'bad', text: `${label} ${failed === 1 ? 'once' : `${failed} times`}` };
  return {
    tone: 'good',
    text: failed === 0 ? label : `${label} after ${formatCount(failed, 'failure')}`,
  };
}

/** Retention of deliveries (ms). */
const DELIVERIES_MS = 30 * 86_400_000;

/** Formats that an event (time: ISO 8601) has no deliveries. Those of an older event have expired. */
export const formatNoDeliveries = (time: string, nowMs: number): string =>
  nowMs - Date.parse(time) > DELIVERIES_MS ? 'No deliveries in the last 30 days.' : 'No deliveries yet.';

/** Returns an http or https link; `undefined` for any other scheme. */
export function toWebLink(link: string | null): string | undefined {
  if (link === null || !URL.canParse(link)) return undefined;
  const { protocol, href } = new URL(link);
  return protocol === 'https:' || protocol === 'http:' ? href : undefined;
}

/** Formats the number of jobs found, and whether the result is complete. */
export function formatResultCount(found: SearchResult, wanted: JobQuery): string {
  const { rows, complete, cut, reading, answered, accounts, read, failures } = found;
  const many = (jobs: number): string => formatCount(jobs, 'job');
  if (reading && answered < accounts) {
    return accounts < 8 ? 'Searching…' : `Searching: ${answered} of ${accounts} accounts`;
  }
  if (reading && rows.length === 0) return `Searching: ${many(read)} read`;
  const order = wanted.sort === 'number' ? 'by number' : 'by due day';
  if (cut)
    return `${many(rows.length)}, sorted ${order} among the first ${read.toLocaleString()} read; more jobs exist`;
  if (complete) {
    return `${many(rows.length)} ${order}${failures.length > 0 ? ', without accounts that failed to load' : ''}`;
  }
  return `First ${many(rows.length)} ${order}; scroll for more`;
}

/** Formats the errors of accounts whose jobs could not be loaded. */
export function formatFailures(failures: SearchResult['failures']): string {
  const [first] = failures;
  if (first === undefined) return '';
  return failures.length === 1
    ? `Loading the jobs of ${first.account} failed: ${first.message}`
    : `Loading the jobs of ${failures.length} accounts failed, including ${first.account}: ${first.message}`;
}

/** Formats the message for an empty result. `failed`: the jobs of some accounts could not be loaded. */
export function formatEmptyResult({ q, all, open, status, ...rest }: JobQuery, failed: boolean): string {
  if (failed) return 'No matching jobs in the accounts that could be loaded.';
  if (q !== undefined) {
    return parseJobNumber(q) === undefined
      ? 'No job has this order number. Enter the complete number; case matters.'
      : 'No job has this job number or order number. Enter the complete number.';
  }
  const { dispatchedOn, orderGroup, late, risk, dueOn, dueBefore } = rest;
  const narrowed = [dispatchedOn, orderGroup, late, risk, dueOn, dueBefore, status].some(
    (one) => one !== undefined,
  );
  if (narrowed) return 'No jobs match the filters.';
  if (open) return 'No open jobs.';
  return all
    ? 'No jobs yet. Jobs appear here after the first poll of an account.'
    : 'No open jobs await dispatch.';
}
