/** Stage of a poll: confirms order groups that are dispatched, in part or as a whole, as far as is known (rule 18). */
import type { EventDraft } from '../../events/event.ts';
import {
  groupDispatched,
  groupPartiallyDispatched,
  isPartial,
  judgeGroup,
  judgePartial,
  type ListedMember,
  type RecordedState,
  readGroup,
  toRecordedState,
} from '../groups.ts';
import { readSnapshots } from '../observation.ts';
import { isOutOfTime, type Poll, type Session } from '../poll-context.ts';
import { summarize } from '../snapshot.ts';
import type { Committed } from './commit.ts';

/** Maximum number of order groups to query in one poll. */
const GROUPS_PER_POLL = 20;

/**
 * Queries the pending groups, within a budget, and emits what upstream proves. Runs only once everything is
 * committed. Returns the first error.
 *
 * The other groups stay pending. All stay pending if a token was renewed meanwhile, because the answers
 * may belong to another account.
 */
export async function confirmGroups(
  poll: Poll,
  session: Session,
  { all }: Committed,
): Promise<{ readonly problem?: unknown }> {
  const { deps, groups, context, writer } = poll;
  const { client, signal } = session;
  if (!all) return {};
  const names = groups.pendingAt(context.startedAt).slice(0, GROUPS_PER_POLL);
  if (names.length === 0 || signal.aborted) return {};
  await groups.read(deps.table, names);
  const { tokens } = client.counts;
  const events: EventDraft[] = [];
  let outcome: { readonly problem?: unknown } = {};
  const confirm = async (name: string): Promise<void> => {
    try {
      const event = await confirmGroup(poll, session, name);
      if (event) events.push(event);
    } catch (problem) {
      if (outcome.problem === undefined) outcome = { problem };
      groups.rescheduleInconclusive(name, context);
    }
  };
  await Promise.all(names.map(confirm));
  if (client.counts.tokens !== tokens || isOutOfTime(poll)) return outcome;
  await writer.commit({ events, writes: groups.takeWrites(context.startedAt) });
  return outcome;
}

/** Queries one group. Returns its event if the answer confirms it. */
async function confirmGroup(
  poll: Poll,
  { client, signal }: Session,
  name: string,
): Promise<EventDraft | undefined> {
  const { groups, context } = poll;
  const group = groups.get(name);
  const { listed: answered, response, whole } = await readGroup(client, group, true, signal);
  const isDispatched = ({ jobNumber, dateOut }: ListedMember): boolean =>
    dateOut !== null && group.members.get(jobNumber) === 'dispatched';
  const { recorded, isOther } = await readRecordedStates(
    poll,
    name,
    answered.flatMap((member) => (isDispatched(member) ? [] : [member.jobNumber])),
  );
  const listed = answered.filter((member) => !isOther(member));
  // Only such a job can be closed, or in the list again, without the log containing that.
  const unclear = listed.filter((member) => {
    const { jobNumber, dateOut } = member;
    const isKnown = isDispatched(member) || (dateOut === null && group.members.get(jobNumber) === 'gone');
    return !isKnown && recorded(jobNumber) === 'history';
  });
  const active = unclear.length === 0 ? undefined : await readGroup(client, group, false, signal);
  const verdict = judgeGroup(
    group,
    listed,
    recorded,
    new Set((active?.listed ?? listed).map(({ jobNumber }) => jobNumber)),
  );
  if (!whole || active?.whole === false || verdict.kind === 'unproven') {
    groups.rescheduleInconclusive(name, context);
    return undefined;
  }
  groups.set(verdict.group);
  if (verdict.kind === 'complete') return groupDispatched(verdict.group, listed, response);
  if (!isPartial(verdict.group)) return undefined;
  const isListed = (jobNumber: number) => poll.tracked.index.get(jobNumber)?.phase === 'listed';
  const outcome = judgePartial(group, verdict.group, listed, isListed);
  if (outcome === 'unproven') {
    groups.rescheduleInconclusive(name, context);
    return undefined;
  }
  const { partial } = verdict.group;
  groups.set({ ...verdict.group, partial: partial && { ...partial, done: true } });
  return outcome === 'partial' ? groupPartiallyDispatched(verdict.group, listed, response) : undefined;
}

/**
 * Returns lookups of the state of each job according to the log, and whether an entry without a group is a job of another one:
 * the ordering API may ignore the filter.
 */
async function readRecordedStates(
  { tracked, status }: Poll,
  name: string,
  jobNumbers: readonly number[],
): Promise<{ recorded(jobNumber: number): RecordedState; isOther(member: ListedMember): boolean }> {
  const known = await readSnapshots(tracked, jobNumbers);
  const findGroup = (jobNumber: number): string | null => {
    const snapshot = known.get(jobNumber);
    return snapshot ? summarize(snapshot).orderGroup : null;
  };
  const read = (jobNumber: number): RecordedState => {
    const snapshot = known.get(jobNumber);
    if (snapshot) return toRecordedState(snapshot);
    // The next sweep observes jobs created since the last one.
    return jobNumber > status.sweptThrough ? 'unseen' : 'history';
  };
  return {
    recorded(jobNumber) {
      const state = read(jobNumber);
      // A job that moved to another group: either the answer or the log is behind.
      return state !== 'history' && (findGroup(jobNumber) ?? name) !== name ? 'unseen' : state;
    },
    isOther: ({ jobNumber, groupMissing }) =>
      groupMissing === true && read(jobNumber) !== 'unseen' && findGroup(jobNumber) !== name,
  };
}
