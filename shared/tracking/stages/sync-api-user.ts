/** Stage of a poll: updates the recipient that represents the API user. */
import type { Poll } from '../poll-context.ts';
import type { Committed } from './commit.ts';
import type { ApiUserRead, ApiUserStatus } from './read-api-user.ts';

/** Interval between reads of the API user (ms). */
const INTERVAL_MS = 6 * 3_600_000;

/** Synchronizes the user once everything is committed. Returns the Status attributes to write. */
export async function syncApiUser(
  { deps, account, context }: Poll,
  read: ApiUserRead | undefined,
  { all }: Committed,
): Promise<ApiUserStatus | undefined> {
  if (!read?.answer || !all) return read?.status;
  const { ownUserSince } = read.status;
  await deps.syncApiUser(deps, account, ownUserSince, read.answer.user);
  return { ownUserSince, ownUserDueAt: context.startedAt + INTERVAL_MS };
}
