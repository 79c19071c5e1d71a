/** Texts that name the accounts behind misleading totals. Independent of React. */
import type { Figures } from '../../client/index.ts';
import { formatCount } from './texts.ts';

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
        `${formatCount(group.jobs, 'job')} counted more than once: ${listNames(group.accounts, group.accounts.length)} are the same account of the ordering API.`,
    ),
  ];
}

/** Returns sentences about jobs in a list, by the ids of their accounts. */
export function explainRows(
  accounts: readonly string[],
  isPaused: (account: string) => boolean,
  countedTwice: Counted['countedTwice'],
): string[] {
  const counts = new Map<string, number>();
  for (const account of accounts) counts.set(account, (counts.get(account) ?? 0) + 1);
  const paused = [...counts.keys()].filter(isPaused).sort();
  const jobs = paused.reduce((sum, account) => sum + (counts.get(account) ?? 0), 0);
  const twice = countedTwice
    .map((group) => group.accounts.filter((account) => counts.has(account)))
    .filter(({ length }) => length > 1);
  return [
    ...(jobs === 0
      ? []
      : [
          `${formatCount(jobs, 'job')} of paused accounts, which are not observed: ${listNames(paused, paused.length)}.`,
        ]),
    ...twice.map(
      (group) =>
        `Jobs are listed more than once: ${listNames(group, group.length)} are the same account of the ordering API.`,
    ),
  ];
}

function listNames(names: readonly string[], total: number): string {
  const shown = names.slice(0, MAX_NAMES);
  const more = total - shown.length;
  if (more > 0) return `${shown.join(', ')} and ${more.toLocaleString()} more`;
  return shown.length < 2 ? shown.join('') : `${shown.slice(0, -1).join(', ')} and ${shown.at(-1)}`;
}
