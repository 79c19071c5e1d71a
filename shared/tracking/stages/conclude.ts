/**
 * Last stage of a poll that read something: writes the time observed through and, once, that the baseline is
 * complete (rule 5).
 */
import type { AccountState } from '../../accounts/accounts.ts';
import type { OrderingClient } from '../../ordering/client.ts';
import type { Crawl } from '../crawl.ts';
import type { FetchResult } from '../detail-fetches.ts';
import { countOpenJobs, openJobsWrite } from '../open-jobs.ts';
import type { Identity, Poll } from '../poll-context.ts';
import type { Attributes } from '../poll-writer.ts';
import { recordState } from '../record-state.ts';
import { WITHOUT_TIMES } from '../set-back.ts';
import type { Committed } from './commit.ts';
import type { Absences } from './quarantine.ts';
import type { ApiUserStatus } from './read-api-user.ts';
import type { Reconciled } from './reconcile.ts';

/** Maximum number of jobs with an unreadable detail in Status. */
const MAX_UNREAD = 20;

/** Results of the stages before. */
interface Results {
  readonly list: Crawl;
  readonly observed: Reconciled;
  readonly fetched: FetchResult;
  readonly absences: Absences | undefined;
  readonly identity: Identity | undefined;
  readonly committed: Committed;
  readonly apiUser: ApiUserStatus | undefined;
  /** Status attributes of the payments. */
  readonly payments: Attributes;
}

/** Records the account's state after the poll. Returns the state. */
export async function conclude(poll: Poll, client: OrderingClient, results: Results): Promise<AccountState> {
  const { list, observed, fetched, absences, identity } = results;
  const { all, tooLarge } = results.committed;
  const { statuses } = poll.tracked;
  const attributes = {
    ...(poll.tracked.known.setBackFrom === undefined ? {} : WITHOUT_TIMES),
    lastPollAt: poll.context.startedAt,
    // The next sweep must find again what this one found but could not store.
    ...(all ? observed.swept.through : {}),
    ...(identity && { identityCheckedAt: poll.context.startedAt, tokenHash: identity.token }),
    ...results.apiUser,
    ...results.payments,
  };
  const details = unreadDetails(poll, fetched);
  if (!list.complete || !all) {
    const problem = list.complete
      ? new Error('The poll ran out of time before it committed all changes.')
      : list.problem;
    const result = { kind: 'failed', problem, accepted: true, covered: list.covered } as const;
    const head = poll.baselined ? statuses.takeChanges() : undefined;
    return recordState(poll, { result, outcome: 'partial', status: attributes, head });
  }
  const { upstreamId } = poll.writer.head.attributes;
  const open = openJobsWrite(poll.account, countOpenJobs(list), {
    changedAt: list.startedAt,
    upstreamId: typeof upstreamId === 'number' ? upstreamId : identity?.id,
  });
  const moved = open.print !== poll.status.openPrint;
  const ending = {
    outcome: observed.upgraded ? 'complete' : 'partial',
    status: {
      ...attributes,
      ...completeAttributes(results),
      ...details.attributes,
      rotatedThrough: rotationCursor(results),
      ...(moved ? { openPrint: open.print } : {}),
    },
    writes: moved ? [open.write] : [],
  } as const;
  const unstored =
    tooLarge === undefined ? undefined : new Error(`Job ${tooLarge} is too large to be stored.`);
  const problem = list.problem ?? unstored ?? details.problem ?? findPaymentsProblem(poll, results);
  if (poll.baselined) {
    const absence = absences && { absence: absences };
    const head = statuses.takeChanges();
    return recordState(poll, { ...ending, head, result: { kind: 'good', problem, ...absence } });
  }
  const head = {
    ...(await baselineAttributes(poll, client, list, identity)),
    baselineNumber: observed.swept.through?.sweptThrough,
  };
  const baselinedWith = list.observations.size + list.unread;
  return recordState(poll, { ...ending, head, result: { kind: 'good', problem, baselinedWith } });
}

/**
 * Returns the jobs whose detail cannot be read, as Status attributes and as a message. A job is removed once
 * its detail is read, or no fetch of it is owed.
 */
function unreadDetails({ status, tracked }: Poll, { unreadable, readable, detailProblem }: FetchResult) {
  const failing = new Set([...status.unreadDetails, ...unreadable]);
  for (const jobNumber of readable) failing.delete(jobNumber);
  const jobs = [...failing].filter((jobNumber) => (tracked.index.get(jobNumber)?.nextCheckAt ?? 0) > 0);
  const [first] = jobs;
  if (first === undefined) return { attributes: { unreadDetails: undefined, detailProblem: undefined } };
  const reason = detailProblem?.message ?? status.detailProblem ?? '';
  const others = jobs.length > 1 ? ` and ${jobs.length - 1} other jobs` : '';
  return {
    attributes: { unreadDetails: jobs.slice(0, MAX_UNREAD).map(String), detailProblem: reason },
    problem: new Error(`The detail of job ${first}${others} can’t be read: ${reason}`),
  };
}

/** Returns the error of the last request for payments, of this poll or an earlier one. */
function findPaymentsProblem({ status }: Poll, { payments }: Results): Error | undefined {
  const message = 'paymentsProblem' in payments ? payments.paymentsProblem : status.paymentsProblem;
  return typeof message === 'string' ? new Error(message) : undefined;
}

/** Returns the cursor of the rotation to store, or `undefined` if it is the start of this crawl. */
function rotationCursor({ list, observed, fetched }: Results): number | undefined {
  const done = Math.min(observed.rotatedThrough ?? list.startedAt, fetched.firstUnsentTurn - 1);
  return done === list.startedAt ? undefined : done;
}

/** Returns the Status attributes that a complete crawl changes. */
function completeAttributes({ list, observed, absences }: Results): Attributes {
  const { unanswered = 0, suspected = 0, contradictory = 0 } = absences?.counts ?? {};
  const { allowedGone } = absences ?? {};
  return {
    // Jobs that wait for their upgrade were not compared.
    ...(observed.upgraded ? { lastGoodCrawlStartedAt: list.startedAt } : {}),
    openJobs: list.observations.size + list.unread,
    unreadJobs: list.unread || undefined,
    truncatedJobs: countTruncated(list) || undefined,
    ...{ unanswered, suspected, contradictory },
    ...(allowedGone === undefined ? {} : { allowedGone }),
  };
}

function countTruncated({ observations }: Crawl): number {
  let count = 0;
  for (const { truncated } of observations.values()) if (truncated) count += 1;
  return count;
}

/** Returns the Head attributes of a new baseline. */
async function baselineAttributes(
  { deps, tracked, context }: Poll,
  client: OrderingClient,
  list: Crawl,
  identity: Identity | undefined,
): Promise<Attributes> {
  await tracked.statuses.read(client, []);
  // Known from the start, so these names cause no event later.
  tracked.statuses.markLookupKnown();
  return {
    ...tracked.statuses.takeChanges(),
    baselineStartedAt: list.startedAt,
    baselinedAt: deps.now(),
    projectionVersion: context.projectionVersion,
    upstreamId: identity?.id,
  };
}
