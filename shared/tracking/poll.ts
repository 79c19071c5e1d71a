/**
 * One poll of one account: list page → observation → diff → commit.
 *
 * The revision of the Status, read first, is the fence of every write. A quiet poll reads Account, Status,
 * the state of the region's upstream API, Head and index, and writes only Status. A poll that loses its
 * fence discards its observations. If a poll crashes, its committed writes remain valid, and the next poll
 * finds the rest without recovery.
 */
import type { AccountState } from '../accounts/accounts.ts';
import type { AccountRef } from '../storage/schema.ts';
import { describeProblem } from './account-state.ts';
import { IdentityMismatch, type Poll, type PollDeps, PollFailure } from './poll-context.ts';
import { type PollReport, type PollSummary, reportPoll, reportSkipped } from './poll-report.ts';
import { Fenced } from './poll-writer.ts';
import { countUnresolvedJobs } from './quarantine.ts';
import { abort } from './stages/abort.ts';
import { authenticate } from './stages/authenticate.ts';
import { commit } from './stages/commit.ts';
import { conclude } from './stages/conclude.ts';
import { confirmGroups } from './stages/confirm-groups.ts';
import { investigate } from './stages/investigate.ts';
import { loadPoll } from './stages/load.ts';
import { applyQuarantine } from './stages/quarantine.ts';
import { readList } from './stages/read.ts';
import { readApiUser } from './stages/read-api-user.ts';
import { commitPayments, readPayments } from './stages/read-payments.ts';
import { reconcile } from './stages/reconcile.ts';
import { syncApiUser } from './stages/sync-api-user.ts';
import { verifyIdentity } from './stages/verify-identity.ts';

/**
 * Polls one account once.
 *
 * `deadline` is the time at which the process may be stopped (epoch ms). `dueAt` is the time since which a
 * queued poll is due. With it, the poll is skipped if the account was polled in between. The report
 * contains every outcome. Throws `TableError` if the table does not respond. The next poll then recovers
 * what is missing.
 */
export async function pollAccount(
  deps: PollDeps,
  ref: AccountRef,
  deadline: number,
  dueAt?: number,
): Promise<PollReport> {
  const startedAt = deps.now();
  const poll = await loadPoll(deps, ref, { startedAt, deadline, dueAt });
  const report = typeof poll === 'string' ? reportSkipped(poll) : await run(poll);
  const { region, account } = ref;
  return { ...report, region, account, ms: deps.now() - startedAt };
}

/** Runs the stages. A poll that cannot observe the jobs is recorded as failed. */
async function run(poll: Poll): Promise<PollSummary> {
  try {
    return await runStages(poll).catch(async (cause: unknown) => {
      if (!(cause instanceof PollFailure || cause instanceof IdentityMismatch)) throw cause;
      return reportPoll(poll, 'failed', await abort(poll, cause));
    });
  } catch (cause) {
    if (cause instanceof Fenced) return reportPoll(poll, 'fenced');
    throw cause;
  }
}

async function runStages(poll: Poll): Promise<PollSummary> {
  const session = await authenticate(poll);
  const list = await readList(poll, session);
  const observed = await reconcile(poll, session, list);
  const fetched = await investigate(poll, session, list, observed.works.values());
  const absences = applyQuarantine(poll, list, observed, fetched.gone);
  const user = await readApiUser(poll, session);
  const paymentsRead = await readPayments(poll, session);
  const identity = await verifyIdentity(poll, session, user?.answer?.identity);
  const committed = await commit(poll, observed.works.values());
  const apiUser = await syncApiUser(poll, user, committed);
  const groups = await confirmGroups(poll, session, committed);
  const payments = await commitPayments(poll, paymentsRead, committed);
  const results = { list, observed, fetched, absences, identity, committed, apiUser, payments };
  const state = await conclude(poll, session.client, results);
  return reportResults(poll, state, { ...results, groups });
}

function reportResults(
  poll: Poll,
  state: AccountState,
  results: Omit<Parameters<typeof conclude>[2], 'identity' | 'apiUser' | 'payments'> & {
    readonly groups: Awaited<ReturnType<typeof confirmGroups>>;
  },
): PollSummary {
  const { list, observed, absences, committed, fetched, groups } = results;
  const { all, changed, tooLarge } = committed;
  const { upgraded, swept } = observed;
  const problem = list.problem ?? fetched.problem ?? groups.problem;
  return reportPoll(poll, list.complete && all && upgraded ? 'complete' : 'partial', {
    state,
    ...(list.complete ? { openJobs: list.observations.size + list.unread } : {}),
    ...(absences && { unresolved: countUnresolvedJobs(absences.counts) }),
    unread: list.unread,
    unreadInSweep: swept.unread,
    changedJobs: changed,
    detailFetches: fetched.fetched,
    fetchesLeft: fetched.left,
    ...(tooLarge === undefined ? {} : { problem: `Job ${tooLarge} is too large to be stored.` }),
    ...(problem === undefined ? {} : { problem: describeProblem(problem, poll.account.region) }),
    ...(upgraded
      ? {}
      : {
          problem:
            'Some jobs are still stored in the format of an older version of Jobwire. The next polls convert them.',
        }),
  });
}
