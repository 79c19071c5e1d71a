/**
 * Times that earlier polls stored before the clock was set back. They are in the future, and nothing may wait for them. The first
 * complete crawl after that corrects them. Pure.
 */
import type { Status } from '../accounts/accounts.ts';
import { isFromFuture } from './clock-tolerance.ts';
import type { IndexEntry } from './job-index.ts';
import type { Attributes } from './poll-writer.ts';
import type { Snapshot } from './snapshot.ts';

/** Returns the start of the last complete crawl, or else of the last poll (epoch ms), if the clock was set back since. Otherwise `undefined`. */
export function findSetBack(
  { lastGoodCrawlStartedAt, lastPollAt }: Status,
  startedAt: number,
): number | undefined {
  const times = [lastGoodCrawlStartedAt, lastPollAt];
  return times.find((time) => time !== null && isFromFuture(time, startedAt)) ?? undefined;
}

/** Times in the Status for which a poll waits. */
const TIMES = ['sweptAt', 'rotatedThrough', 'identityCheckedAt', 'ownUserDueAt', 'paymentsDueAt'] as const;

/** Status attributes that remove these times. */
export const WITHOUT_TIMES: Attributes = Object.fromEntries(TIMES.map((name) => [name, undefined]));

/** Returns a Status without the times of earlier polls. */
export function withoutTimes(status: Status): Status {
  const none = Object.fromEntries(TIMES.map((name) => [name, null]));
  return { ...status, ...none, lastGoodCrawlStartedAt: null, holds: [] };
}

/** Returns whether a fetch of a job that is not listed was scheduled after `setBackFrom` (epoch ms): by the last polls before the clock was set back. */
export function isScheduledAfter(
  { phase, nextCheckAt }: IndexEntry,
  setBackFrom: number | undefined,
): boolean {
  return setBackFrom !== undefined && phase !== 'listed' && nextCheckAt * 1000 > setBackFrom;
}

/** Returns a snapshot whose fetch is owed now at the latest, and without a suspicion from the future. `setBackFrom`: see {@link findSetBack}. */
export function withPastTimes(
  snapshot: Snapshot,
  startedAt: number,
  setBackFrom: number | undefined,
): Snapshot {
  if (setBackFrom === undefined) return snapshot;
  const { owed, departure } = snapshot;
  const isLater = departure?.suspected && departure.suspected.at > startedAt;
  return {
    ...snapshot,
    owed: owed && owed.at > setBackFrom ? { ...owed, at: startedAt } : owed,
    departure: isLater ? { ...departure, suspected: null } : departure,
  };
}
