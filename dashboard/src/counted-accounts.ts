/** Texts that name the accounts behind misleading totals. Independent of React. */
import type { Figures } from '../../client/index.ts';
import { type Account, staleSince, toAccountState } from './health/status.ts';
import { formatCount, joinNames } from './texts.ts';

type Counted = Pick<Figures, 'paused' | 'countedTwice'>;

/** Maximum number of names in a text. */
const MAX_NAMES = 5;

/** Returns a sentence for each reason why totals are misleading: paused accounts, and accounts with the same jobs. */
export function explainTotals({ paused, countedTwice }: Counted): string[] {
  const { total, jobs, late, accounts } = paused;
  const named = accounts.map(({ account, jobs: its }) => `${account} (${its.toLocaleString()})`);
  return [
    ...(total === 0
      ? []
      : [
          `${formatCount(jobs, 'open job')}, ${late.toLocaleString()} of them late, ${jobs === 1 ? 'belongs' : 'belong'} to ${formatCount(total, 'paused account')}, which ${total === 1 ? 'is' : 'are'} not observed: ${listNames(named, total)}.`,
        ]),
    ...countedTwice.map(
      (group) =>
        `${formatCount(group.jobs, 'job is', 'jobs are')} counted more than once, because ${explainGroup(group.accounts)}.`,
    ),
  ];
}

/** Returns sentences about jobs that are in a list more than once, by the ids of their accounts. */
export function explainRows(accounts: readonly string[], countedTwice: Counted['countedTwice']): string[] {
  return countedTwice
    .map((group) => group.accounts.filter((account) => accounts.includes(account)))
    .filter(({ length }) => length > 1)
    .map((group) => `Jobs are listed more than once, because ${explainGroup(group)}.`);
}

/** An account whose jobs may be outdated. `observedThrough`: time of its last observation. */
export interface Unobserved {
  readonly id: string;
  /** Why: `paused`. */
  readonly state: string;
  readonly observedThrough: string | null;
}

/** States in which no poll completes. */
const UNOBSERVED: ReadonlySet<unknown> = new Set(['failing', 'credentials_rejected', 'identity_mismatch']);

/** Returns the accounts of jobs in a list that are not observed at present. `ids`: the accounts of the jobs. */
export function listUnobserved(
  ids: readonly string[],
  accounts: readonly Account[],
  nowMs: number,
): Unobserved[] {
  const listed = new Set(ids);
  return accounts
    .filter((account) => listed.has(account.id))
    .filter(
      (account) =>
        account.paused || UNOBSERVED.has(account.status?.state) || staleSince(account, nowMs) !== null,
    )
    .map((account) => ({
      id: account.id,
      state: toAccountState(account, nowMs).label.toLowerCase(),
      observedThrough: account.status?.observedThrough ?? null,
    }));
}

/** Returns a clause that names accounts with the same jobs. */
function explainGroup(accounts: readonly string[]): string {
  const names = accounts.map((account) => `“${account}”`);
  return `the Jobwire accounts ${listNames(names, names.length)} belong to one account of the ordering API`;
}

function listNames(names: readonly string[], total: number): string {
  const shown = names.slice(0, MAX_NAMES);
  const more = total - shown.length;
  return more > 0 ? `${shown.join(', ')} and ${more.toLocaleString()} more` : joinNames(shown);
}
