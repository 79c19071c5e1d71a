/**
 * Order groups (rule 18): when the first job of one checkout is dispatched while others are open, and when the
 * last one is, one event is emitted for the whole group.
 * - In a member's transaction, the Group item records the member. If one of the events is due as far as is
 *   known, a pending mark is set.
 * - After the poll's commits, the poller queries upstream for all of the group's jobs. If the answer confirms
 *   it, one transaction writes the event and the Group item, and removes the mark.
 *
 * A group contains the members that changed since tracking began. That is sufficient: a missing member is
 * found when upstream is queried, and is a member from then on. So the baseline writes no groups, and a
 * group complete by then is never emitted. Marks are stored next to Head, so a poll finds them without a
 * separate read.
 */
import type { EventDraft } from '../events/event.ts';
import type { OrderingClient } from '../ordering/client.ts';
import { type AccountRef, keys } from '../storage/schema.ts';
import type { Item, Table, Write } from '../storage/table.ts';
import { readListPage } from './crawl.ts';
import { toObserved, type ViewResponse } from './diff/step.ts';
import type { ScheduleContext } from './schedule.ts';
import { KEPT_DAYS, type Snapshot, summarize } from './snapshot.ts';
import { presentDate } from './timestamps.ts';

/** Phase of a member. `gone` members (cancelled, unavailable, closed without dispatch) do not count. */
export type MemberPhase = 'open' | 'dispatched' | 'gone';

/** Known state of one order group. Times are epoch ms. */
export interface Group {
  readonly orderGroup: string;
  readonly members: ReadonlyMap<number, MemberPhase>;
  /** Whether all members that count were dispatched and the event was emitted. */
  readonly emitted: boolean;
  /**
   * Whether the event was emitted before, and since then the set of members changed, or a member was no
   * longer dispatched.
   */
  readonly again: boolean;
  /** Time of the last evidence that the group was not complete, or an earlier time. `null` if not known. */
  readonly since: number | null;
  /**
   * The first dispatch: the time before it (epoch ms, `null` if not known), and whether
   * order_group.partially_dispatched was emitted or can no longer be. `null` while no member is dispatched.
   */
  readonly partial: { readonly since: number | null; readonly done: boolean } | null;
  /** Whether the group exceeds the maximum number of members. Then no event is ever emitted for it. */
  readonly tooLarge: boolean;
}

/** A job of a group in the upstream list. */
export interface ListedMember {
  readonly jobNumber: number;
  readonly dateOut: string | null;
  /** Set if the entry does not give its group. */
  readonly groupMissing?: true;
}

/** State of a job according to the log. */
export type RecordedState =
  | 'dispatched'
  | 'open'
  /** Ended without dispatch, and settles. */
  | 'gone'
  /** Left the list before tracking began, or settled: the log will not contain another dispatch, nor its revocation. */
  | 'history'
  /** Not recorded yet. */
  | 'unseen';

/** Maximum number of members stored per group: 1,000 members are an item and an event of 15 KB each. */
const MAX_MEMBERS = 1_000;
const MAX_PAGES = 20;
const DAY_MS = 86_400_000;

/**
 * Returns the group in which a job counts, and its phase. `undefined` for a job without a group, and for an
 * unproven job.
 */
export function toMembership(
  snapshot: Snapshot | undefined,
): { readonly orderGroup: string; readonly phase: MemberPhase } | undefined {
  if (!snapshot || snapshot.unproven !== null) return undefined;
  const { orderGroup, dateOut } = summarize(snapshot);
  if (orderGroup === null) return undefined;
  if (dateOut !== null) return { orderGroup, phase: 'dispatched' };
  return { orderGroup, phase: snapshot.ended === null ? 'open' : 'gone' };
}

/** Returns the state of a job according to the log. */
export function toRecordedState({ unproven, emitted, ended, settling, owed }: Snapshot): RecordedState {
  if (unproven !== null) return 'unseen';
  if (settling !== null && owed === null) return 'history';
  if (emitted.dateOut !== null) return 'dispatched';
  return ended === null ? 'open' : 'gone';
}

/** Change of a job's membership in one group. `phase` is `undefined` if the job leaves. */
export interface MembershipChange {
  readonly orderGroup: string;
  readonly phase: MemberPhase | undefined;
  /** Time at which the change had not happened yet (epoch ms). `null` if not known. */
  readonly since: number | null;
  /** Whether the change is not in the log: the job was only hidden, and its state counts as emitted. */
  readonly silent: boolean;
}

/**
 * Returns the group with a member that changed, joined, or left (`phase` is `undefined`). `since`: time at
 * which the change had not happened yet. Pure.
 */
export function withMember(
  group: Group,
  jobNumber: number,
  phase: MemberPhase | undefined,
  since: number | null,
): Group {
  const before = group.members.get(jobNumber);
  if (before === phase) return group;
  const members = new Map(group.members);
  if (phase === undefined) members.delete(jobNumber);
  else members.set(jobNumber, phase);
  // A member that joins late, returns, or is no longer dispatched reopens the group. A gone member does not.
  const opened = phase === 'open' || (phase === 'dispatched' && before !== 'open');
  const isOut = [...members.values()].includes('dispatched');
  return {
    ...group,
    partial: isOut ? (group.partial ?? { since, done: group.emitted || group.again }) : null,
    members: members.size > MAX_MEMBERS ? new Map() : members,
    tooLarge: group.tooLarge || members.size > MAX_MEMBERS,
    emitted: group.emitted && !opened,
    again: group.again || (group.emitted && opened),
    // A group that is complete is complete without a member that leaves it, too.
    since: since === null || !(opened || before === 'open') ? group.since : Math.max(since, group.since ?? 0),
  };
}

/** Returns whether all known members that count are dispatched and the event was not yet emitted. */
export function isPending({ members, emitted, tooLarge }: Group): boolean {
  const phases = [...members.values()];
  return !emitted && !tooLarge && phases.includes('dispatched') && !phases.includes('open');
}

/** Returns whether some known members are dispatched and others open, and no event was emitted for the group yet. */
export function isPartial({ members, emitted, again, partial, tooLarge }: Group): boolean {
  const isDone = emitted || again || tooLarge || partial === null || partial.done;
  return !isDone && [...members.values()].includes('open');
}

/** Returns the event for which upstream is to be queried. */
function findDueEvent(group: Group): 'dispatched' | 'partially_dispatched' | undefined {
  if (isPending(group)) return 'dispatched';
  return isPartial(group) ? 'partially_dispatched' : undefined;
}

/** Verdict about a pending group after upstream listed all of its jobs. */
export type GroupVerdict =
  | { readonly kind: 'complete'; readonly group: Group }
  /** A job that was not known belongs to the group and is not dispatched. */
  | { readonly kind: 'open'; readonly group: Group }
  /** The answer contradicts the known state: the query is repeated. */
  | { readonly kind: 'unproven' };

/**
 * Judges an answer with all jobs of a pending group, including closed ones. The answer may be ahead of the
 * log. A group is complete only if the log contains each dispatch in it (`recorded`), or will never contain
 * it. `active`: numbers of the jobs that the list without closed jobs contains. Pure.
 */
export function judgeGroup(
  group: Group,
  listed: readonly ListedMember[],
  recorded: (jobNumber: number) => RecordedState,
  active: ReadonlySet<number>,
): GroupVerdict {
  let after = group;
  let open = false;
  let unseen = false;
  let isEvidence = false;
  for (const { jobNumber, dateOut } of listed) {
    const before = group.members.get(jobNumber);
    isEvidence ||= before === 'dispatched' && dateOut !== null;
    if (dateOut === null ? before === 'gone' : before === 'dispatched') continue;
    const phase = toMemberPhase(recorded(jobNumber), dateOut !== null, active.has(jobNumber));
    open ||= phase === 'open';
    unseen ||= phase === 'unseen';
    if (phase !== 'unseen') after = withMember(after, jobNumber, phase, null);
  }
  if (after.tooLarge || open) return { kind: 'open', group: after };
  // An answer without any dispatch that the log contains, or without an open member, describes another time or other jobs.
  if (unseen || !isEvidence || [...after.members.values()].includes('open')) return { kind: 'unproven' };
  return { kind: 'complete', group: { ...after, emitted: true } };
}

/**
 * Judges whether a group with an open member became partially dispatched. `before`: the group before the answer,
 * `after`: the group in the verdict. `isListed`: whether the active list contains a job.
 * - `earlier`: a member was dispatched before tracking began, so no event reports that the group is partially dispatched.
 * - `unproven`: the answer contradicts the log, or no open member is in the active list.
 *
 * Pure.
 */
export function judgePartial(
  before: Group,
  after: Group,
  listed: readonly ListedMember[],
  isListed: (jobNumber: number) => boolean,
): 'partial' | 'earlier' | 'unproven' {
  const out = listed.filter(({ dateOut }) => dateOut !== null);
  const isKnown = ({ jobNumber }: ListedMember): boolean => before.members.get(jobNumber) === 'dispatched';
  if (out.some(({ jobNumber }) => after.members.get(jobNumber) !== 'dispatched')) return 'unproven';
  if (!out.every(isKnown)) return 'earlier';
  const rest = listed.filter(({ dateOut }) => dateOut === null);
  const isOpen = rest.some(({ jobNumber }) => after.members.get(jobNumber) === 'open' && isListed(jobNumber));
  return out.length > 0 && isOpen && !rest.some(isKnown) ? 'partial' : 'unproven';
}

/** Returns the phase of a job in an answer. `unseen`: the log and the answer contradict each other. */
function toMemberPhase(
  state: RecordedState,
  isDispatched: boolean,
  isActive: boolean,
): MemberPhase | 'unseen' {
  // A job of the history that is in the list again is tracked from the next crawl on.
  if (state === 'history') return isActive ? 'unseen' : isDispatched ? 'dispatched' : 'gone';
  // The dispatch is in the log soon, because the job settles.
  if (isDispatched) return state === 'gone' ? 'unseen' : state;
  // The log contains a dispatch that the answer lacks. It is either withdrawn, and that must be emitted
  // first, or reappears soon. A job that is not tracked does not become a member: no event might ever end its
  // membership.
  return state === 'dispatched' ? 'unseen' : state;
}

/**
 * Builds the event for a complete group. `group` is the result of {@link judgeGroup}. The event lists the
 * dispatched jobs in `listed`: other members may have left the group since their last observation.
 */
export function groupDispatched(
  group: Group,
  listed: readonly ListedMember[],
  response: ViewResponse,
): EventDraft {
  const { orderGroup, again, since } = group;
  return {
    type: 'order_group.dispatched',
    time: response.respondedAt,
    data: {
      orderGroup,
      jobs: findMembers(group, 'dispatched', listed),
      excludedJobs: findMembers(group, 'gone'),
      repeated: again,
      observed: toObserved(response, since),
    },
  };
}

/** Builds the event for a group that {@link judgePartial} found partially dispatched. */
export function groupPartiallyDispatched(
  group: Group,
  listed: readonly ListedMember[],
  response: ViewResponse,
): EventDraft {
  const jobs = findMembers(group, 'dispatched', listed);
  const openJobs = findMembers(group, 'open', listed);
  return {
    type: 'order_group.partially_dispatched',
    time: response.respondedAt,
    data: {
      orderGroup: group.orderGroup,
      ...{ jobs, openJobs, excludedJobs: findMembers(group, 'gone') },
      ...{ dispatchedCount: jobs.length, openCount: openJobs.length },
      observed: toObserved(response, group.partial?.since ?? null),
    },
  };
}

/** Returns the numbers of the members in a phase, in ascending order. With `listed`, only of those in the answer. */
function findMembers(
  { members }: Group,
  wanted: MemberPhase,
  listed: readonly ListedMember[] = [...members.keys()].map((jobNumber) => ({ jobNumber, dateOut: null })),
): number[] {
  return listed
    .flatMap(({ jobNumber }) => (members.get(jobNumber) === wanted ? [jobNumber] : []))
    .sort((a, b) => a - b);
}

/**
 * Queries upstream for the jobs of a group, with closed ones or without. `whole` is `false` if jobs were
 * added or removed during paging, because a job may then have been skipped. Throws `OrderingError` if a page
 * is not answered.
 */
export async function readGroup(
  client: OrderingClient,
  { orderGroup, members }: Pick<Group, 'orderGroup' | 'members'>,
  includeClosedJobs: boolean,
  signal: AbortSignal,
): Promise<{
  readonly listed: readonly ListedMember[];
  readonly response: ViewResponse;
  readonly whole: boolean;
}> {
  const listed: ListedMember[] = [];
  const numbers = new Set<number>();
  let whole = true;
  let total: number | undefined;
  for (let page = 1; ; page += 1) {
    const query = { page, orderGroup, includeClosedJobs };
    const { body, requestedAt, respondedAt } = await readListPage(client, query, signal);
    // An upstream API that ignores the filter would return other jobs. A missing group is "not given".
    for (const { jobNumber, dateOut, orderGroup: its } of body.items) {
      if ((!its || its === orderGroup) && !numbers.has(jobNumber)) {
        const groupMissing = !its && !members.has(jobNumber);
        listed.push({
          jobNumber,
          dateOut: presentDate(dateOut),
          ...(groupMissing && { groupMissing }),
        });
      }
      numbers.add(jobNumber);
    }
    total ??= body.totalCount;
    whole &&= body.totalCount === total;
    if (!body.hasNextPage) return { listed, whole, response: { requestedAt, respondedAt, view: 'search' } };
    if (page === MAX_PAGES) throw new Error(`An order group has more than ${MAX_PAGES} pages of jobs.`);
  }
}

// Storage

/** Mark of a group that is due for a query. Times are epoch ms. */
interface Mark {
  readonly since: number;
  /** Earliest time of the next query. */
  readonly at: number;
  /** Number of inconclusive queries. */
  readonly tries: number;
}

/** The groups that a poll changes, and their pending writes. */
export class PollGroups {
  readonly #ref: AccountRef;
  readonly #groups = new Map<string, Group>();
  readonly #marks: Map<string, Mark>;
  readonly #touched = new Set<string>();
  /** Groups for which another event is due than before: their queries start anew. */
  readonly #anew = new Set<string>();

  /** `marks`: the stored pending marks. */
  constructor(ref: AccountRef, marks: readonly Item[]) {
    this.#ref = ref;
    this.#marks = new Map(
      marks.map(({ orderGroup, since, at, tries }) => [
        String(orderGroup),
        { since: Number(since), at: Number(at), tries: Number(tries) },
      ]),
    );
  }

  /** Loads the given groups from the table. */
  async read(table: Pick<Table, 'getMany'>, orderGroups: readonly string[]): Promise<void> {
    const wanted = [...new Set(orderGroups)].map((orderGroup) => keys.group(this.#ref, orderGroup));
    if (wanted.length === 0) return;
    for (const item of await table.getMany(wanted)) this.#groups.set(String(item.orderGroup), toGroup(item));
  }

  get(orderGroup: string): Group {
    const none = { emitted: false, again: false, since: null, partial: null, tooLarge: false };
    return this.#groups.get(orderGroup) ?? { orderGroup, members: new Map(), ...none };
  }

  /** Returns the groups due for a query at a time (epoch ms), the longest waiting first. */
  pendingAt(now: number): readonly string[] {
    return [...this.#marks]
      .filter(([, { at }]) => at <= now)
      .sort(([, a], [, b]) => a.at - b.at)
      .map(([orderGroup]) => orderGroup);
  }

  /**
   * Applies a member's change: see {@link withMember}. A change without an event (`silent`) counts only if
   * the job is already a member.
   */
  move(jobNumber: number, { orderGroup, phase, since, silent }: MembershipChange): void {
    const group = this.get(orderGroup);
    if (!silent || group.members.has(jobNumber)) this.set(withMember(group, jobNumber, phase, since));
  }

  set(group: Group): void {
    const { orderGroup } = group;
    if (this.#groups.get(orderGroup) === group) return;
    if (findDueEvent(this.get(orderGroup)) !== findDueEvent(group)) this.#anew.add(orderGroup);
    this.#groups.set(orderGroup, group);
    this.#touched.add(orderGroup);
  }

  /**
   * Reschedules a group after an inconclusive query: first for the next poll, then at increasing intervals,
   * until the settling time ends. A change of a member starts anew. A pause of polling does not count.
   */
  rescheduleInconclusive(orderGroup: string, { startedAt, settings }: ScheduleContext): void {
    const mark = this.#marks.get(orderGroup) ?? { since: startedAt, at: startedAt, tries: 0 };
    const { tries } = mark;
    const since = mark.since + Math.max(0, startedAt - mark.at - DAY_MS);
    const schedule = settings.settlingScheduleSeconds;
    const gapSeconds = tries === 0 ? 0 : (schedule[Math.min(tries, schedule.length) - 1] ?? 0);
    const givenUp = startedAt - since >= settings.settlingDays * DAY_MS;
    this.#marks.set(orderGroup, {
      since,
      at: givenUp ? Number.POSITIVE_INFINITY : startedAt + gapSeconds * 1000,
      tries: tries + 1,
    });
    this.#touched.add(orderGroup);
    this.#anew.delete(orderGroup);
  }

  /** Number of groups with pending writes for {@link takeWrites}. Each has at most two writes. */
  get touched(): number {
    return this.#touched.size;
  }

  /**
   * Returns the writes pending since the last call, for the transaction that carries the members. `now` is
   * epoch ms.
   */
  takeWrites(now: number): Write[] {
    const writes: Write[] = [];
    for (const orderGroup of this.#touched) {
      const group = this.get(orderGroup);
      const key = keys.pendingGroup(this.#ref, orderGroup);
      const known = this.#anew.has(orderGroup) ? undefined : this.#marks.get(orderGroup);
      const mark = known ?? { since: now, at: now, tries: 0 };
      if (findDueEvent(group) && mark.at < Number.POSITIVE_INFINITY) {
        this.#marks.set(orderGroup, mark);
        writes.push({ put: { ...key, orderGroup, ...mark } });
      } else if (this.#marks.delete(orderGroup)) {
        writes.push({ delete: key });
      }
      writes.push(this.#groupWrite(group, now));
    }
    this.#touched.clear();
    this.#anew.clear();
    return writes;
  }

  #groupWrite(group: Group, now: number): Write {
    const key = keys.group(this.#ref, group.orderGroup);
    const { members, emitted, again, tooLarge } = group;
    const forgettable = members.size === 0 && !emitted && !again && !tooLarge;
    return forgettable ? { delete: key } : putGroup(key, group, now);
  }
}

function putGroup(key: { pk: string; sk: string }, group: Group, now: number): Write {
  return {
    put: {
      ...key,
      orderGroup: group.orderGroup,
      members: [...group.members].map(([jobNumber, phase]) => `${jobNumber} ${phase}`),
      announced: group.emitted,
      again: group.again,
      since: group.since,
      ...(group.partial && { partialSince: group.partial.since, partialDone: group.partial.done }),
      tooLarge: group.tooLarge,
      ttl: Math.ceil(now / 1000) + KEPT_DAYS * 86_400,
    },
  };
}

function toGroup(item: Item): Group {
  const members = (item.members as readonly string[]).map((text): [number, MemberPhase] => {
    const [jobNumber, phase] = text.split(' ');
    return [Number(jobNumber), phase as MemberPhase];
  });
  return {
    orderGroup: String(item.orderGroup),
    members: new Map(members),
    partial:
      item.partialDone === undefined
        ? null
        : { since: item.partialSince as number | null, done: item.partialDone === true },
    emitted: item.announced === true,
    again: item.again === true,
    since: item.since as number | null,
    tooLarge: item.tooLarge === true,
  };
}
