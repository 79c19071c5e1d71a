/**
 * Order groups (rule 18): when the last job of one checkout is dispatched, that is said once for all of them.
 *
 *   a member's transaction   Group item takes in the member; complete as far as known → a pending mark is set
 *   after the poll's commits the service is asked for all of the group's jobs; complete → the event, the Group item, and
 *                            the mark's end in one transaction
 *
 * A group is known by the members that moved since tracking began, which is enough: whoever is missing from it is found when
 * the service is asked, and is a member from then on. So the baseline writes no groups, and what was complete by then is
 * never announced. Marks stand beside Head, so a poll finds them without a read of its own.
 */
import type { EventDraft } from '../events/event.ts';
import type { OrderingClient } from '../ordering/client.ts';
import { type AccountRef, keys } from '../table/schema.ts';
import type { Item, Write } from '../table/table.ts';
import { readListPage } from './crawl.ts';
import type { Look } from './diff.ts';
import { KEPT_DAYS, type Snapshot, summarize } from './snapshot.ts';
import type { ScheduleContext } from './work.ts';

/** Where a member stands: `gone` ones (cancelled, unavailable) don't count. */
export type MemberPhase = 'open' | 'dispatched' | 'gone';

/** What is known of one order group. Times are epoch ms. */
export interface Group {
  readonly orderGroup: string;
  readonly members: ReadonlyMap<number, MemberPhase>;
  /** All that count were dispatched, and that was said. */
  readonly announced: boolean;
  /** It was said before, of members that were not the same or not dispatched any more since. */
  readonly again: boolean;
  /** It was not complete at this time or later; null when that is not known. */
  readonly since: number | null;
  /** It has more members than are kept: nothing is ever said of it. */
  readonly tooLarge: boolean;
}

/** The job of a group as the service's list shows it. */
interface ShownMember {
  readonly jobNumber: number;
  readonly dateOut: string | null;
}

/** What the log says of a job that was not known to belong to a group. */
export type Told =
  | 'dispatched'
  | 'open'
  /** Nothing, and nothing will be said: it was dispatched and gone before tracking began. */
  | 'history'
  /** Nothing yet. */
  | 'unseen';

/** Members kept of one group at most: 1,000 of them are a 15 KB item and event. */
const MAX_MEMBERS = 1_000;
const MAX_PAGES = 20;
const DAY_MS = 86_400_000;

/** The group a job counts in, and how. Undefined for a job without one, and for one of which nothing was said yet. */
export function membershipOf(
  snapshot: Snapshot | undefined,
): { readonly orderGroup: string; readonly phase: MemberPhase } | undefined {
  if (!snapshot || snapshot.unproven !== null) return undefined;
  const { orderGroup, dateOut } = summarize(snapshot);
  if (orderGroup === null) return undefined;
  if (dateOut !== null) return { orderGroup, phase: 'dispatched' };
  const gone = snapshot.ended === 'cancelled' || snapshot.ended === 'unavailable';
  return { orderGroup, phase: gone ? 'gone' : 'open' };
}

/** What becomes of a job's membership in one group; `phase` is undefined where it leaves. */
export interface MembershipChange {
  readonly orderGroup: string;
  readonly phase: MemberPhase | undefined;
  /** When it was not so yet (epoch ms); null when that is not known. */
  readonly since: number | null;
  /** The log does not say it: the job was only hidden, and what it is counts as announced. */
  readonly silent: boolean;
}

/** The group with a member that moved, joined, or (`phase` undefined) left. `since`: when it was not so yet. Pure. */
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
  // Whoever comes in late or comes back, or is not dispatched any more, opens it again. Who is gone takes nothing back.
  const opened = phase === 'open' || (phase === 'dispatched' && before !== 'open');
  return {
    ...group,
    members: members.size > MAX_MEMBERS ? new Map() : members,
    tooLarge: group.tooLarge || members.size > MAX_MEMBERS,
    announced: group.announced && !opened,
    again: group.again || (group.announced && opened),
    since: since === null ? group.since : Math.max(since, group.since ?? 0),
  };
}

/** Whether, as far as is known, every member that counts is dispatched, and that was not said yet. */
export function isPending({ members, announced, tooLarge }: Group): boolean {
  const phases = [...members.values()];
  return !announced && !tooLarge && phases.includes('dispatched') && !phases.includes('open');
}

/** A pending group, once the service has shown all of its jobs. */
export type GroupVerdict =
  | { readonly kind: 'complete'; readonly group: Group }
  /** A job that was not known belongs to it and is not dispatched. */
  | { readonly kind: 'open'; readonly group: Group }
  /** The answer does not fit what is known: it is asked for again. */
  | { readonly kind: 'unproven' };

/**
 * What an answer with all jobs of a pending group, closed ones included, proves. It may be ahead of the log: a group is
 * complete only when each dispatch in it was `told`, where there is something to tell. Pure.
 */
export function judgeGroup(
  group: Group,
  shown: readonly ShownMember[],
  told: (jobNumber: number) => Told,
): GroupVerdict {
  const known = shown.filter(({ jobNumber }) => group.members.has(jobNumber));
  let after = group;
  let open = false;
  let unseen = false;
  for (const { jobNumber, dateOut } of shown) {
    if (group.members.has(jobNumber)) continue;
    const said = told(jobNumber);
    // A dispatch that was said and is not shown: taken back, which is to be said first, or back in a moment.
    const its = dateOut !== null ? said : said === 'dispatched' ? 'unseen' : 'open';
    open ||= its === 'open';
    unseen ||= its === 'unseen';
    if (its !== 'unseen') after = withMember(after, jobNumber, its === 'open' ? 'open' : 'dispatched', null);
  }
  if (after.tooLarge || open) return { kind: 'open', group: after };
  // An answer without any job we know is none. One that lacks a dispatch we know of tells of a moment before it, or of its end.
  if (unseen || known.length === 0 || known.some(({ dateOut }) => dateOut === null))
    return { kind: 'unproven' };
  return { kind: 'complete', group: { ...after, announced: true } };
}

/**
 * The event that says a group is complete; `group` is as {@link judgeGroup} leaves it. Its jobs are those that were `shown`:
 * a member that is not may have left the group since it was last looked at.
 */
export function groupDispatched(group: Group, shown: readonly ShownMember[], look: Look): EventDraft {
  const { orderGroup, members, again, since } = group;
  const inOrder = (jobNumbers: readonly number[]): number[] => [...jobNumbers].sort((a, b) => a - b);
  return {
    type: 'order_group.dispatched',
    time: look.answeredAt,
    data: {
      orderGroup,
      jobs: inOrder(shown.map(({ jobNumber }) => jobNumber)),
      gone: inOrder([...members].flatMap(([jobNumber, phase]) => (phase === 'gone' ? [jobNumber] : []))),
      again,
      observed: {
        at: new Date(look.answeredAt).toISOString(),
        since: since === null ? null : new Date(since).toISOString(),
        view: look.view,
      },
    },
  };
}

/**
 * Asks the service for all jobs of a group, closed ones included. Not `whole` when jobs came or went while the pages were
 * read: then one may have been passed over. Throws OrderingError when a page stays unanswered.
 */
export async function readGroup(
  client: OrderingClient,
  orderGroup: string,
  signal: AbortSignal,
): Promise<{ readonly shown: readonly ShownMember[]; readonly look: Look; readonly whole: boolean }> {
  const shown: ShownMember[] = [];
  const seen = new Set<number>();
  let whole = true;
  let total: number | undefined;
  for (let page = 1; ; page += 1) {
    const query = { page, orderGroup, includeClosedJobs: true };
    const { body, askedAt, answeredAt } = await readListPage(client, query, signal);
    // A service that does not know the filter would show other jobs.
    for (const { jobNumber, dateOut, orderGroup: its } of body.items) {
      if (its === orderGroup && !seen.has(jobNumber)) shown.push({ jobNumber, dateOut });
      seen.add(jobNumber);
    }
    total ??= body.totalCount;
    whole &&= body.totalCount === total;
    if (!body.hasNextPage) return { shown, whole, look: { askedAt, answeredAt, view: 'search' } };
    if (page === MAX_PAGES) throw new Error(`An order group has more than ${MAX_PAGES} pages of jobs.`);
  }
}

// Storing

/** A group that is to be asked for. Times are epoch ms. */
interface Mark {
  readonly since: number;
  /** Not before this time. */
  readonly at: number;
  /** How often it was asked for in vain. */
  readonly tries: number;
}

/** The groups that a poll touches, and what has to be written of them. */
export class GroupBook {
  readonly #ref: AccountRef;
  readonly #groups = new Map<string, Group>();
  readonly #marks: Map<string, Mark>;
  readonly #touched = new Set<string>();

  /** `marks`: the pending marks as they are stored. */
  constructor(ref: AccountRef, marks: readonly Item[]) {
    this.#ref = ref;
    this.#marks = new Map(
      marks.map(({ orderGroup, since, at, tries }) => [
        String(orderGroup),
        { since: Number(since), at: Number(at), tries: Number(tries) },
      ]),
    );
  }

  /** Takes in stored Group items. */
  load(items: readonly Item[]): void {
    for (const item of items) this.#groups.set(String(item.orderGroup), toGroup(item));
  }

  get(orderGroup: string): Group {
    const none = { members: new Map(), announced: false, again: false, since: null, tooLarge: false };
    return this.#groups.get(orderGroup) ?? { orderGroup, ...none };
  }

  /** Groups to be asked for at an instant (epoch ms), the longest waiting first. */
  pendingAt(now: number): readonly string[] {
    return [...this.#marks]
      .filter(([, { at }]) => at <= now)
      .sort(([, a], [, b]) => a.at - b.at)
      .map(([orderGroup]) => orderGroup);
  }

  /** A member moved: see {@link withMember}. One of which nothing is said (`silent`) only counts where it was known to be. */
  move(jobNumber: number, { orderGroup, phase, since, silent }: MembershipChange): void {
    const group = this.get(orderGroup);
    if (!silent || group.members.has(jobNumber)) this.set(withMember(group, jobNumber, phase, since));
  }

  set(group: Group): void {
    if (this.#groups.get(group.orderGroup) === group) return;
    this.#groups.set(group.orderGroup, group);
    this.#touched.add(group.orderGroup);
  }

  /**
   * The service could not tell: it is asked again, first by the next poll and then at growing distances, until it is not
   * worth it any more. A member that moves begins anew.
   */
  triedInVain(orderGroup: string, { startedAt, settings }: ScheduleContext): void {
    const { since = startedAt, tries = 0 } = this.#marks.get(orderGroup) ?? {};
    const schedule = settings.settlingScheduleSeconds;
    const gapSeconds = tries === 0 ? 0 : (schedule[Math.min(tries, schedule.length) - 1] ?? 0);
    const givenUp = startedAt - since >= settings.settlingDays * DAY_MS;
    this.#marks.set(orderGroup, {
      since,
      at: givenUp ? Number.POSITIVE_INFINITY : startedAt + gapSeconds * 1000,
      tries: tries + 1,
    });
    this.#touched.add(orderGroup);
  }

  /** How many groups {@link takeWrites} has something to say of; two writes each at most. */
  get touched(): number {
    return this.#touched.size;
  }

  /** What must be written since the last call, in the transaction that carries the members. `now` is epoch ms. */
  takeWrites(now: number): Write[] {
    const writes: Write[] = [];
    for (const orderGroup of this.#touched) {
      const group = this.get(orderGroup);
      const key = keys.pendingGroup(this.#ref, orderGroup);
      const mark = this.#marks.get(orderGroup) ?? { since: now, at: now, tries: 0 };
      if (isPending(group) && mark.at < Number.POSITIVE_INFINITY) {
        this.#marks.set(orderGroup, mark);
        writes.push({ put: { ...key, orderGroup, ...mark } });
      } else if (this.#marks.delete(orderGroup)) {
        writes.push({ delete: key });
      }
      writes.push(this.#groupWrite(group, now));
    }
    this.#touched.clear();
    return writes;
  }

  #groupWrite(group: Group, now: number): Write {
    const key = keys.group(this.#ref, group.orderGroup);
    const { members, announced, again, tooLarge } = group;
    const forgettable = members.size === 0 && !announced && !again && !tooLarge;
    return forgettable ? { delete: key } : putGroup(key, group, now);
  }
}

function putGroup(key: { pk: string; sk: string }, group: Group, now: number): Write {
  return {
    put: {
      ...key,
      orderGroup: group.orderGroup,
      members: [...group.members].map(([jobNumber, phase]) => `${jobNumber} ${phase}`),
      announced: group.announced,
      again: group.again,
      since: group.since,
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
    announced: item.announced === true,
    again: item.again === true,
    since: typeof item.since === 'number' ? item.since : null,
    tooLarge: item.tooLarge === true,
  };
}
