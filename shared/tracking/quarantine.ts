/**
 * Whether so many jobs seem to be gone at once that it is the service's answers that are in doubt rather than the jobs
 * (rule 10). A list that shrank or emptied with a 200 looks like a mass cancellation. Pure.
 */

/** What an account's open jobs look like after a complete crawl and its looks. All are numbers of jobs. */
export interface Absence {
  /** In the list. */
  readonly listed: number;
  /** Missing, and a negative verdict about them waits for its confirmation or is about to be announced. */
  readonly suspected: number;
  /** Missing, and the answers about them don't fit together. */
  readonly contradictory: number;
  /** Missing, and not answered for yet. */
  readonly unanswered: number;
  /** Announced as cancelled or unavailable within the last {@link WINDOW_HOURS} hours. */
  readonly announced: number;
}

/** What follows for negative verdicts. */
export type Ruling =
  /** They may be announced. */
  | 'clear'
  /** Too many, if those that are not answered for yet are gone as well: nothing is announced before they are. */
  | 'wait'
  /** Too many. */
  | 'quarantine';

/** How long an announced negative verdict counts. */
export const WINDOW_HOURS = 24;
/** So many may go without a question, and so large a part of the open jobs. */
const MOST_JOBS = 10;
const MOST_OF_OPEN = 0.1;

/** Judges an absence. `allowed`: so many an operator has confirmed to be truly gone. */
export function judgeAbsence(absence: Absence, allowed: number): Ruling {
  const { listed, contradictory, unanswered, announced } = absence;
  const gone = goneAtOnce(absence);
  const open = listed + absence.suspected + contradictory + unanswered + announced;
  const tooMany = (jobs: number): boolean => jobs - allowed > Math.max(MOST_JOBS, open * MOST_OF_OPEN);
  if (tooMany(gone)) return 'quarantine';
  return tooMany(gone + unanswered) ? 'wait' : 'clear';
}

/** How many jobs would be gone within the window, as far as the answers go. */
export function goneAtOnce({ suspected, contradictory, announced }: Absence): number {
  return suspected + contradictory + announced;
}

// Announced verdicts are counted by the hour, so that their count stays small and ages by itself.

const HOUR_MS = 3_600_000;

/** How many verdicts were announced in each hour, as it is stored: `<hours since 1970>:<number>`. */
export type Tally = readonly string[];

/** The tally with so many more verdicts, and without those that no longer count. `at` is epoch ms. */
export function addToTally(tally: Tally, verdicts: number, at: number): Tally {
  const hour = Math.floor(at / HOUR_MS);
  const counts = new Map(read(tally).filter(([past]) => past > hour - WINDOW_HOURS - 1));
  counts.set(hour, (counts.get(hour) ?? 0) + verdicts);
  return [...counts].map(([past, count]) => `${past}:${count}`);
}

/** How many verdicts count at an instant (epoch ms): those of the last {@link WINDOW_HOURS} hours, and of the hour in which these began. */
export function countTally(tally: Tally, at: number): number {
  const hour = Math.floor(at / HOUR_MS);
  return read(tally).reduce((sum, [past, count]) => sum + (past >= hour - WINDOW_HOURS ? count : 0), 0);
}

function read(tally: Tally): [hour: number, count: number][] {
  return tally.map((text) => {
    const [hour, count] = text.split(':');
    return [Number(hour), Number(count)];
  });
}
