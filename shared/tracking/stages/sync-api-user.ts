/** Stage of a poll: updates the recipient that represents the API user. */
import type { Poll } from '../poll-context.ts';
import type { Committed } from './commit.ts';
import type { ApiUserRead, ApiUserStatus } from './read-api-user.ts';

/** Maximum time between reads, within which an opt-out upstream is noticed (seconds). */
const MAX_AGE_SECONDS = 3600;

/** Synchronizes the user once everything is committed. Returns the Status attributes to write. */
export async function syncApiUser(
  { deps, account, context }: Poll,
  read: ApiUserRead | undefined,
  { all }: Committed,
): Promise<ApiUserStatus | undefined> {
  if (!read?.answer || !all) return read?.status;
  const { ownUserSince } = read.status;
  await deps.syncApiUser(deps, account, ownUserSince, read.answer.user);
  const { pollIntervalSeconds } = account;
  // The last poll within that time, however punctually it starts. At long poll intervals that is every poll.
  const polls = Math.floor(MAX_AGE_SECONDS / pollIntervalSeconds);
  const intervalMs = Math.max(0, polls - 0.5) * pollIntervalSeconds * 1000;
  return { ownUserSince, ownUserDueAt: context.startedAt + intervalMs };
}
