/** What the API calls by names, in words. Free of React and the browser. */
import type { EventDescription } from '../events.ts';
import { ATTEMPT_OUTCOMES, type Attempt } from '../health/status.ts';
import { type JobQuery, parseJobNumber, type SearchResult } from './search.ts';

/** What came of the attempts to deliver one event to one endpoint, first to last. */
export function summarizeAttempts(attempts: readonly Pick<Attempt, 'outcome'>[]): {
  readonly tone: EventDescription['tone'];
  readonly words: string;
} {
  const failed = attempts.filter(({ outcome }) => outcome !== 'delivered').length;
  const times = failed === 1 ? 'once' : `${failed} times`;
  const taken = attempts.some(({ outcome }) => outcome === 'delivered');
  const word =
    ATTEMPT_OUTCOMES[taken ? 'delivered' : (attempts.at(-1)?.outcome ?? 'retry')].word.toLowerCase();
  if (!taken) return { tone: 'bad', words: `${word} ${times}` };
  return { tone: 'good', words: failed === 0 ? word : `${word}, after it failed ${times}` };
}

/** A link that leads to a page of the web; `undefined` for anything else that a link can do. */
export function toWebLink(link: string | null): string | undefined {
  if (link === null || !URL.canParse(link)) return undefined;
  const { protocol, href } = new URL(link);
  return protocol === 'https:' || protocol === 'http:' ? href : undefined;
}

/** How many were found, and whether these are all. */
export function formatResultCount(found: SearchResult, wanted: JobQuery): string {
  const { rows, complete, cut, reading, answered, accounts, read, failures } = found;
  const many = (jobs: number): string => (jobs === 1 ? '1 job' : `${jobs.toLocaleString()} jobs`);
  if (reading && answered < accounts) {
    return accounts < 8 ? 'Looking…' : `Looking: ${answered} of ${accounts} accounts have answered`;
  }
  if (reading && rows.length === 0) return `Looking: ${many(read)} read so far`;
  const order = wanted.sort === 'number' ? 'by number' : 'by due day';
  if (cut)
    return `${many(rows.length)}, sorted ${order} among the first ${read.toLocaleString()} that were read: there are more`;
  if (complete) {
    return `${many(rows.length)} ${order}${failures.length > 0 ? ', without accounts that could not be read' : ''}`;
  }
  return `The first ${many(rows.length)} ${order}; more come as you scroll`;
}

/** Why none was found; `failed`: of some accounts it is not known. */
export function formatEmptyResult({ q, all, open, status, ...rest }: JobQuery, failed: boolean): string {
  if (failed) return 'No such job is in the accounts that could be read.';
  if (q !== undefined) {
    return parseJobNumber(q) === undefined
      ? 'No job has this order number. It is looked for in full, with capitals and small letters as they are.'
      : 'No job has this number, as its own or as its order’s. Numbers are looked for in full.';
  }
  const { dispatchedOn, orderGroup, late, dueOn, dueBefore } = rest;
  const narrowed = [dispatchedOn, orderGroup, late, dueOn, dueBefore, status].some(
    (one) => one !== undefined,
  );
  if (narrowed) return 'No job is like that.';
  if (open) return 'No job is open.';
  return all ? 'No jobs are known.' : 'No open job is still to be dispatched.';
}
