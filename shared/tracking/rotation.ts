/**
 * The daily rotation: once a day, the detail of each listed job is fetched without a specific reason. It
 * finds what the list does not show, such as invoices and line statuses.
 *
 * Every job has a fixed time of the day. A cursor in Status is the time through which the rotation is done,
 * so that no state per job is stored. It is only stored if it is not the start of the last complete crawl.
 */
import type { Status } from '../accounts/accounts.ts';
import type { Crawl } from './crawl.ts';
import { readSnapshots } from './observation.ts';
import type { Poll } from './poll-context.ts';
import { createWork, type Work } from './work.ts';

const DAY_MS = 86_400_000;
/** After a pause, the rotation catches up at this multiple of its speed. */
const CATCH_UP = 2;

/** Jobs of the rotation in one poll. */
export interface Rotated {
  /** Works of jobs that the poll did not process before. */
  readonly works: readonly Work[];
  /** Time through which the rotation is done once these jobs are fetched (epoch ms). */
  readonly through: number;
}

/**
 * Returns the job numbers whose turn is after `from` and not after `to` (epoch ms), in order of their turns,
 * at most `limit`. `through` is the time of the last turn, or `to` if all are returned. Pure.
 */
export function turnsBetween(
  jobNumbers: Iterable<number>,
  from: number,
  to: number,
  limit: number,
): { readonly jobNumbers: readonly number[]; readonly through: number } {
  const due: { readonly jobNumber: number; readonly at: number }[] = [];
  for (const jobNumber of jobNumbers) {
    const at = lastTurn(jobNumber, to);
    if (at > from) due.push({ jobNumber, at });
  }
  due.sort((a, b) => a.at - b.at);
  const taken = due.slice(0, limit);
  const through = taken.length === due.length ? to : (taken.at(-1)?.at ?? from);
  return { jobNumbers: taken.map(({ jobNumber }) => jobNumber), through };
}

/**
 * Returns the time through which the rotation is done (epoch ms), at most a day before `startedAt`. A rotation that is further behind
 * keeps its place in the day: each job is fetched in turn, but less often than once a day. Pure.
 */
export function findRotationStart(
  { rotatedThrough, lastGoodCrawlStartedAt }: Pick<Status, 'rotatedThrough' | 'lastGoodCrawlStartedAt'>,
  startedAt: number,
): number {
  if (rotatedThrough === null) return Math.max(lastGoodCrawlStartedAt ?? startedAt, startedAt - DAY_MS);
  const omittedDays = Math.max(0, Math.ceil((startedAt - rotatedThrough) / DAY_MS) - 1);
  return rotatedThrough + omittedDays * DAY_MS;
}

/** Returns the last turn of a job at or before a time (epoch ms). */
function lastTurn(jobNumber: number, time: number): number {
  // Fibonacci hashing spreads consecutive numbers evenly over the day.
  const share = (Math.imul(jobNumber % 2 ** 32, 0x9e3779b1) >>> 0) / 2 ** 32;
  const offset = Math.floor(share * DAY_MS);
  return Math.floor((time - offset) / DAY_MS) * DAY_MS + offset;
}

/**
 * Returns the jobs whose turn has come since the last poll, as far as `room` allows. A work of this poll without a fetch
 * gets one if its turn has come. `works`: jobs that this poll processes anyway.
 */
export async function rotate(
  { tracked, status, context: { pollIntervalSeconds } }: Poll,
  list: Crawl,
  works: ReadonlyMap<number, Work>,
  room: number,
): Promise<Rotated> {
  const { index } = tracked;
  const { startedAt } = list;
  const from = findRotationStart(status, startedAt);
  const perPoll = (list.observations.size * pollIntervalSeconds * 1000) / DAY_MS;
  const limit = Math.min(room, Math.ceil(CATCH_UP * perPoll));
  const turns = turnsBetween(unfetchedJobs(list, works), from, startedAt, limit);
  const quiet = turns.jobNumbers.filter((jobNumber) => !works.has(jobNumber));
  const snapshots = await readSnapshots(tracked, quiet);
  for (const jobNumber of turns.jobNumbers) {
    const work = works.get(jobNumber);
    const turn = lastTurn(jobNumber, startedAt);
    if (work?.snapshot.owed === null) Object.assign(work, { owedSince: startedAt, turn });
  }
  const added = quiet.flatMap((jobNumber): Work[] => {
    const stored = snapshots.get(jobNumber);
    const entry = index.get(jobNumber);
    const observation = list.observations.get(jobNumber);
    if (!stored?.list || !entry || !observation || stored.owed !== null) return [];
    const snapshot = tracked.statuses.withCurrentNames(stored);
    // Its entry is unchanged, so it is the stored one, apart from values that it omits.
    const listed = { view: stored.list, response: observation.response };
    const turn = lastTurn(jobNumber, startedAt);
    return [{ ...createWork(stored, entry), snapshot, listed, owedSince: startedAt, turn }];
  });
  return { works: added, through: turns.through };
}

/** Yields the listed jobs whose detail is not fetched in this poll for another reason. */
function* unfetchedJobs({ observations }: Crawl, works: ReadonlyMap<number, Work>): Generator<number> {
  for (const [jobNumber, { view }] of observations) {
    const work = works.get(jobNumber);
    if (work ? work.owedSince === undefined : view === undefined) yield jobNumber;
  }
}
