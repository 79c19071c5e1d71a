/**
 * One poll of one account: read, decide, write.
 *
 *   read     Status (its revision is the fence), Head and index in one Query, the list page by page, snapshots of the
 *            jobs whose fingerprint moved, and the detail of those for whom it pays
 *   decide   diff.ts, departures.ts and account-state.ts, pure
 *   write    chunks, each a transaction complete in itself; last the Status that says how far we have seen
 *
 * A quiet poll reads Account, Status, what was heard of the region's service, Head and index, and writes Status alone. A
 * poll that loses its fence drops what it saw. A poll that dies leaves what it committed true, and the next one finds the
 * rest by itself.
 */
import type { EventDraft } from '../events/event.ts';
import { type EventLog, type Head, toHead } from '../log/log.ts';
import type { OrderingClient } from '../ordering/client.ts';
import type { ActiveJob } from '../ordering/schemas.ts';
import type { TokenSource } from '../ordering/tokens.ts';
import { type AccountRef, indexPk, keys } from '../table/schema.ts';
import type { Table, Value, Write } from '../table/table.ts';
import { type PollResult, sentence, transition } from './account-state.ts';
import { type Account, type AccountState, type Status, schedule, toAccount, toStatus } from './accounts.ts';
import {
  failsForAll,
  hearUpstream,
  isServiceFault,
  noteAnswer,
  noteFailure,
  type Upstream,
} from './breaker.ts';
import { type Crawl, crawl, ListReader, type Noticed } from './crawl.ts';
import { type Known, type Sighting, seenInList, sinceListed } from './diff.ts';
import { GroupBook, groupDispatched, judgeGroup, readGroup, type Told } from './groups.ts';
import { type IndexEntry, JobIndex, UNKNOWN } from './job-index.ts';
import { conclude, type LookContext, lookAtJobs } from './looks.ts';
import { type Absence, addToTally, countTally, judgeAbsence, type Ruling, type Tally } from './quarantine.ts';
import { adopt, type Snapshot, toSnapshot } from './snapshot.ts';
import { StatusNames } from './statuses.ts';
import { fingerprint, listView, PROJECTION_VERSION } from './views.ts';
import {
  chunks,
  type Discovery,
  isChanged,
  isDue,
  isTooLarge,
  MAX_DISCOVERED,
  membershipChanges,
  phaseOf,
  type ScheduleContext,
  type TrackingSettings,
  takeInList,
  type Work,
} from './work.ts';

/** What a poll needs. */
export interface PollDeps {
  readonly table: Table;
  readonly log: EventLog;
  readonly settings: TrackingSettings;
  /** Epoch ms. */
  readonly now: () => number;
  readonly newId: () => string;
  /** Another version than this code's, for tests of upgrades. */
  readonly projectionVersion?: number;
  /** The ordering service with the account's credentials. Throws when they can't be had. */
  readonly connect: (account: Account) => Promise<{ client: OrderingClient; tokens: TokenSource }>;
}

/** What one poll did: the wide log line. Ids and counts only. */
export interface PollReport {
  readonly region: string;
  readonly account: string;
  readonly outcome: /** Complete, and all of it committed. */
    | 'complete'
    /** Something was left for the next poll: pages that failed, or time that ran out. */
    | 'partial'
    /** Nothing could be read. */
    | 'failed'
    /** Another poll has spoken since this one began. */
    | 'fenced'
    /** Not polled: unknown, paused, stopped, or stored by newer code. */
    | 'skipped';
  readonly state?: AccountState;
  readonly pages: number;
  readonly openJobs: number;
  /** Entries of the list that could not be read (rule 2), and of the newest jobs that are read with the closed ones (rule 8). */
  readonly unread: number;
  readonly unreadInSweep: number;
  readonly changedJobs: number;
  readonly events: number;
  readonly looks: number;
  /** Looks that stay owed: without an answer, or over the budget. */
  readonly looksLeft: number;
  /** Requests to the ordering service; tokens are not counted. */
  readonly requests: number;
  readonly ms: number;
  readonly problem?: string;
}

/** Milliseconds before the deadline from which on nothing new is begun. */
const RESERVE_MS = 3_000;
/** The account's identity is compared with every new token, and at least this often. */
const IDENTITY_CHECK_MS = 600_000;
/** Pages of closed jobs read at most in one sweep: of more than 10,000 jobs since the last one, the oldest are not found. */
const MAX_SWEEP_PAGES = 100;
/** Order groups asked for in one poll at most. */
const GROUPS_PER_POLL = 20;

/**
 * Polls one account once. `deadline` (epoch ms) is when the process may be stopped. Outcomes are in the report; it throws
 * TableError when the table does not answer, and then the next poll makes good for it.
 */
export async function pollAccount(deps: PollDeps, ref: AccountRef, deadline: number): Promise<PollReport> {
  const startedAt = deps.now();
  const poll = await begin(deps, ref, startedAt, deadline);
  const report = typeof poll === 'string' ? { ...NOTHING, ...ref, problem: poll } : await poll.run();
  const { region, account } = ref;
  return { ...report, region, account, ms: deps.now() - startedAt };
}

const NOTHING = {
  outcome: 'skipped',
  pages: 0,
  openJobs: 0,
  unread: 0,
  unreadInSweep: 0,
  changedJobs: 0,
  events: 0,
  looks: 0,
  looksLeft: 0,
  requests: 0,
} as const;

/** Reads what the tracker knows, and says why there is nothing to poll if so. */
async function begin(
  deps: PollDeps,
  ref: AccountRef,
  startedAt: number,
  deadline: number,
): Promise<Poll | string> {
  const [accountItem, statusItem, upstream] = await Promise.all([
    deps.table.get(keys.account(ref)),
    deps.table.get(keys.status(ref)),
    hearUpstream(deps.table, ref.region),
  ]);
  if (!accountItem || !statusItem) return 'The account is not registered.';
  const account = toAccount(accountItem);
  const status = toStatus(statusItem);
  if (account.paused) return 'The account is paused.';
  if (status.state === 'identity_mismatch') return 'The account waits for an operator.';
  // Read after the fence: what another poll writes between the two raises the revision, and this poll is fenced.
  const [headItem, ...others] = await deps.table.query({ pk: indexPk(ref) });
  if (headItem?.sk !== 'HEAD') return 'The account has no log.';
  const head = toHead(headItem);
  const projectionVersion = deps.projectionVersion ?? PROJECTION_VERSION;
  if (Number(head.attributes.projectionVersion ?? 0) > projectionVersion) {
    return 'The account’s snapshots were written by newer code.';
  }
  const index = JobIndex.decode(
    others.flatMap(({ sk, packed, projection }) =>
      sk.startsWith('SHARD#')
        ? [
            {
              lowest: Number(sk.slice('SHARD#'.length)),
              packed: packed as Uint8Array,
              stale: projection !== projectionVersion,
            },
          ]
        : [],
    ),
  );
  const groups = new GroupBook(
    ref,
    others.filter(({ sk }) => sk.startsWith('PENDING#')),
  );
  return new Poll(deps, account, status, upstream, head, index, groups, startedAt, deadline);
}

/** Another poll has spoken since this one began. */
class Fenced extends Error {}

/** The account the credentials belong to, and the one pinned at the baseline (the same before there is a baseline). */
interface Identity {
  readonly id: number;
  readonly pinned: number;
}

class Poll {
  readonly #deps: PollDeps;
  readonly #account: Account;
  readonly #status: Status;
  readonly #index: JobIndex;
  readonly #groups: GroupBook;
  readonly #startedAt: number;
  readonly #deadline: number;
  readonly #known: Known;
  readonly #statuses: StatusNames;
  readonly #pollId: string;
  #upstream: Upstream;
  #head: Head;
  #revision: number;
  #events = 0;
  #unreadInSweep = 0;

  constructor(
    deps: PollDeps,
    account: Account,
    status: Status,
    upstream: Upstream,
    head: Head,
    index: JobIndex,
    groups: GroupBook,
    startedAt: number,
    deadline: number,
  ) {
    this.#deps = deps;
    this.#account = account;
    this.#status = status;
    this.#upstream = upstream;
    this.#head = head;
    this.#index = index;
    this.#groups = groups;
    this.#startedAt = startedAt;
    this.#deadline = deadline;
    this.#revision = status.revision;
    this.#pollId = deps.newId();
    this.#statuses = new StatusNames(head.attributes);
    this.#known = {
      startedAt,
      lastGoodCrawlStartedAt: status.lastGoodCrawlStartedAt,
      baselineStartedAt: numberOrNull(head.attributes.baselineStartedAt),
    };
  }

  get #projectionVersion(): number {
    return this.#deps.projectionVersion ?? PROJECTION_VERSION;
  }

  get #baselined(): boolean {
    return this.#known.baselineStartedAt !== null;
  }

  async run(): Promise<Omit<PollReport, 'region' | 'account' | 'ms'>> {
    let client: OrderingClient | undefined;
    let pages = 0;
    const report = (outcome: PollReport['outcome'], more: Partial<PollReport>) => ({
      ...NOTHING,
      openJobs: this.#status.openJobs ?? 0,
      pages,
      events: this.#events,
      requests: client?.counts.requests ?? 0,
      outcome,
      ...more,
    });
    /** `accepted`: the service answered something with these credentials. */
    const failed = async (problem: unknown, accepted: boolean) => {
      if (pages === 0 && isServiceFault(problem)) {
        const failure = { at: this.#deps.now(), reason: problem.message };
        this.#upstream = await noteFailure(this.#deps, this.#account, failure, this.#upstream);
      }
      const state = await this.#finish(
        { kind: 'failed', problem, accepted },
        { lastPollAt: this.#startedAt },
      );
      return report('failed', { state, problem: sentence(problem) });
    };
    try {
      const connected = await this.#connect();
      if ('problem' in connected) return await failed(connected.problem, false);
      client = connected.client;
      let { identity } = connected;
      // Which tokens are known to be this account's: the first, and every one until its identity was asked for.
      const checkedTokens = Math.max(1, client.counts.tokens);
      const signal = AbortSignal.timeout(Math.max(1, this.#deadline - RESERVE_MS - this.#deps.now()));

      const notice = (job: ActiveJob): Noticed => this.#notice(job);
      const seen = await crawl(client, { now: this.#deps.now, notice, signal });
      pages = seen.pages;
      if (seen.answeredAt === null) return await failed(seen.problem, identity !== undefined);
      this.#upstream = await noteAnswer(this.#deps, this.#account.region, seen.answeredAt, this.#upstream);

      if (this.#baselined && statusesIn(seen).some((name) => this.#statuses.mayBeRenamed(name))) {
        await this.#readStatuses(client, signal);
      }
      const { works, upgraded } = await this.#workOn(seen);
      const swept = await this.#sweep(client, seen, works, identity !== undefined, signal);
      const context: ScheduleContext = {
        startedAt: this.#startedAt,
        pollIntervalSeconds: this.#account.pollIntervalSeconds,
        settings: this.#deps.settings,
        projectionVersion: this.#projectionVersion,
      };
      const looking: LookContext = { ...context, client, seen, known: this.#known, signal };
      const looks = this.#baselined
        ? await lookAtJobs(works.values(), looking)
        : { made: 0, left: 0, gone: [] };
      const absence = seen.complete && this.#baselined ? this.#judgeAbsence(seen, works) : undefined;
      const mayAnnounce = absence?.ruling === 'clear' && this.#status.quarantinedAt === null;
      conclude(looks.gone, mayAnnounce ? 'announce' : 'hold up', looking);

      // A token that was replaced on the way may be another account's: then so is what was seen.
      if (client.counts.tokens > checkedTokens) {
        const again = await this.#identify(client);
        if ('problem' in again) return await failed(again.problem, true);
        identity = again;
      }
      if (identity && identity.id !== identity.pinned) {
        const { pinned: expectedId, id: actualId } = identity;
        const state = await this.#finish(
          { kind: 'mismatch', expectedId, actualId },
          { lastPollAt: this.#startedAt },
        );
        return report('failed', { state, problem: 'The credentials belong to another account.' });
      }
      const { all, changed, tooLarge } = await this.#commit(works, context);
      const groups = all ? await this.#confirmGroups(client, context, signal) : undefined;
      const done = all && upgraded;
      const state = await this.#conclude(client, seen, { all, upgraded }, swept, identity?.id, absence);
      const problem = seen.problem ?? looks.problem ?? groups?.problem;
      return report(seen.complete && done ? 'complete' : 'partial', {
        state,
        ...(seen.complete ? { openJobs: seen.observations.size + seen.unread } : {}),
        unread: seen.unread,
        unreadInSweep: this.#unreadInSweep,
        changedJobs: changed,
        looks: looks.made,
        looksLeft: looks.left,
        ...(tooLarge === undefined ? {} : { problem: `Job ${tooLarge} is too large to be stored.` }),
        ...(problem === undefined ? {} : { problem: sentence(problem) }),
        ...(upgraded ? {} : { problem: 'Jobs that older code stored are still to be taken over.' }),
      });
    } catch (cause) {
      if (cause instanceof Fenced) return report('fenced', {});
      throw cause;
    }
  }

  // Reading

  /** Client, token, and the account's identity if it is time to compare it (rule 9). */
  async #connect(): Promise<{ client: OrderingClient; identity?: Identity } | { problem: unknown }> {
    try {
      const { client, tokens } = await this.#deps.connect(this.#account);
      const token = await tokens.get();
      const checkedAt = this.#status.identityCheckedAt;
      const recent = checkedAt !== null && this.#startedAt - checkedAt < IDENTITY_CHECK_MS;
      if (this.#baselined && recent && !token.fresh) return { client };
      const identity = await this.#identify(client);
      return 'problem' in identity ? identity : { client, identity };
    } catch (problem) {
      return { problem };
    }
  }

  /** Without knowing whose jobs these are nothing may be said of them, so a failure here is a failed poll. */
  async #identify(client: OrderingClient): Promise<Identity | { problem: unknown }> {
    try {
      const { id } = (await client.account()).body;
      return { id, pinned: numberOrNull(this.#head.attributes.upstreamId) ?? id };
    } catch (problem) {
      return { problem };
    }
  }

  /** A job is quiet when its list view is the one the index knows, and nothing else is due. */
  #notice(job: ActiveJob): Noticed {
    const view = listView(job);
    const print = fingerprint(view);
    const entry = this.#index.get(job.jobNumber);
    const quiet = entry?.fingerprint === print && entry.phase === 'listed' && !isDue(entry, this.#startedAt);
    return quiet ? { print } : { print, view };
  }

  /**
   * What the crawl shows, job by job: only jobs that moved, are missing, or asked to be looked at are worked on. And those
   * whose fingerprint older code made, in portions: `upgraded` when there are no more.
   */
  async #workOn(seen: Crawl): Promise<{ works: Map<number, Work>; upgraded: boolean }> {
    const touched = new Map<number, { listed: Sighting; print: number } | undefined>();
    let stale = 0;
    for (const [jobNumber, { print, view, look }] of seen.observations) {
      if (!view) continue;
      if (this.#index.get(jobNumber)?.fingerprint === UNKNOWN) stale += 1;
      if (stale <= this.#deps.settings.upgradesPerPoll)
        touched.set(jobNumber, { listed: { view, look }, print });
    }
    for (const [jobNumber, entry] of this.#index) {
      if (seen.observations.has(jobNumber)) continue;
      // Absence from an incomplete crawl proves nothing, so whoever is asked after because of it waits.
      const wanted = entry.phase === 'listed' ? seen.complete : isDue(entry, this.#startedAt);
      if (wanted) touched.set(jobNumber, undefined);
    }
    const works = new Map<number, Work>();
    const upgraded = stale <= this.#deps.settings.upgradesPerPoll;
    if (touched.size === 0) return { works, upgraded };
    const items = await this.#deps.table.getMany(
      [...touched.keys()].map((jobNumber) => keys.snapshot(this.#account, jobNumber)),
    );
    const stored = new Map(items.map(toSnapshot).map((snapshot) => [snapshot.jobNumber, snapshot]));
    for (const [jobNumber, shown] of touched) {
      const before = stored.get(jobNumber);
      const entry = this.#index.get(jobNumber);
      const work = shown
        ? this.#listed(jobNumber, entry, before, shown.listed, shown.print)
        : before && this.#missing(jobNumber, entry, before, seen);
      if (work) works.set(jobNumber, work);
    }
    return { works, upgraded };
  }

  #listed(
    jobNumber: number,
    entry: IndexEntry | undefined,
    before: Snapshot | undefined,
    listed: Sighting,
    print: number,
  ): Work {
    const known = this.#known;
    const base = { jobNumber, entry, stored: before, listed, events: [], shown: [] };
    let work: Work;
    if (before && this.#baselined) {
      // An unproven job stays as it was first seen, and so does the fingerprint that goes with it.
      const fingerprint = before.unproven === null ? print : (entry?.fingerprint ?? print);
      const known = adopt(this.#statuses.inTodaysNames(before), 'list', listed.view);
      const snapshot = before.unproven === null ? known : { ...known, departure: null };
      work = { ...base, snapshot, fingerprint };
    } else {
      const { snapshot, shown } = seenInList(jobNumber, undefined, listed, known);
      work = { ...base, snapshot, shown: [...shown], fingerprint: print };
    }
    takeInList(work, known);
    if (this.#owes(work.snapshot)) work.lookSince = work.snapshot.owed?.at ?? 0;
    return work;
  }

  #missing(jobNumber: number, entry: IndexEntry | undefined, before: Snapshot, seen: Crawl): Work {
    const { startedAt } = this.#known;
    const base = {
      jobNumber,
      entry,
      stored: before,
      events: [],
      shown: [],
      fingerprint: entry?.fingerprint ?? 0,
    };
    if (!this.#baselined) {
      // Stored by a baseline that was cut off, and gone since: it never counted.
      return { ...base, snapshot: before, untracked: 'delete snapshot' };
    }
    const leaving = before.departure === null && before.settling === null;
    const today = this.#statuses.inTodaysNames(before);
    const snapshot: Snapshot = leaving
      ? {
          ...today,
          // Until now every complete crawl showed it; from here on it has a "last seen" of its own.
          listAt: sinceListed(before, this.#known),
          departure: { tries: 0, suspected: null },
          owed: { at: startedAt, tries: 0 },
        }
      : today;
    const answerable = seen.complete || snapshot.ended !== null;
    return {
      ...base,
      snapshot,
      ...(answerable && this.#owes(snapshot) ? { lookSince: snapshot.owed?.at ?? 0 } : {}),
    };
  }

  /** What jobs are missing after the looks, and whether so many may be gone (rule 10). */
  #judgeAbsence(seen: Crawl, works: ReadonlyMap<number, Work>): { counts: Absence; ruling: Ruling } {
    const phases = { departed: 0, suspected: 0, contradictory: 0, listed: 0, settling: 0 };
    for (const [jobNumber, { phase }] of this.#index) {
      if (phase !== 'settling' && !seen.observations.has(jobNumber) && !works.has(jobNumber))
        phases[phase] += 1;
    }
    for (const { snapshot, untracked } of works.values()) if (!untracked) phases[phaseOf(snapshot)] += 1;
    const { startedAt } = this.#known;
    const { allowedGone, allowedGoneUntil } = this.#status;
    const counts: Absence = {
      // Entries that can't be read are in the list all the same: as many of the missing jobs are not.
      listed: seen.observations.size + seen.unread,
      suspected: phases.suspected,
      contradictory: phases.contradictory,
      unanswered: Math.max(0, phases.departed - seen.unread),
      announced: countTally(this.#goneTally, startedAt),
    };
    const allowed = allowedGoneUntil !== null && startedAt < allowedGoneUntil ? allowedGone : 0;
    return { counts, ruling: judgeAbsence(counts, allowed) };
  }

  #owes({ owed }: Snapshot): boolean {
    return owed !== null && owed.at <= this.#startedAt;
  }

  /**
   * Jobs that came and went between two polls (rule 8): now and then the newest jobs are read with the closed ones, down
   * to the highest number of the last time. Whoever is new there is asked after like a missing job. What can't be read
   * there is passed over: who was never read in any list is not known by a number to be asked after.
   *
   * One request besides the pages is enough for a quiet poll, so it waits for one that does not ask for the identity; but
   * not for ever, for of polls that are far apart each one does.
   */
  async #sweep(
    client: OrderingClient,
    seen: Crawl,
    works: Map<number, Work>,
    identified: boolean,
    signal: AbortSignal,
  ): Promise<{ sweptAt: number; sweptThrough: number } | undefined> {
    const overdueMs = this.#startedAt - (this.#status.sweptAt ?? 0) - this.#deps.settings.sweepSeconds * 1000;
    const waits = identified && this.#baselined && overdueMs < this.#deps.settings.sweepSeconds * 1000;
    if (!seen.complete || overdueMs < 0 || waits) return undefined;
    const through = this.#status.sweptThrough;
    let highest = through;
    for (const jobNumber of seen.observations.keys()) highest = Math.max(highest, jobNumber);
    const unknown = new Map<number, number>();
    const list = new ListReader(client, { includeClosedJobs: true }, signal);
    try {
      // At the baseline the newest number is all that is needed: whatever is older is history.
      for (let page = 1; page <= (this.#baselined ? MAX_SWEEP_PAGES : 1); page += 1) {
        const { items, hasNextPage } = await list.read(page);
        for (const job of items) {
          highest = Math.max(highest, job.jobNumber);
          const known =
            job.jobNumber <= through ||
            seen.observations.has(job.jobNumber) ||
            this.#index.get(job.jobNumber);
          if (!known) unknown.set(job.jobNumber, fingerprint(listView(job)));
        }
        if (!hasNextPage || items.some((job) => job.jobNumber <= through)) break;
      }
      this.#unreadInSweep = list.unread;
    } catch {
      // Without a number to go down to, the next sweep would take all history for new.
      return this.#baselined ? undefined : { sweptAt: 0, sweptThrough: highest };
    }
    if (this.#baselined && unknown.size > 0) {
      const items = await this.#deps.table.getMany(
        [...unknown.keys()].map((jobNumber) => keys.snapshot(this.#account, jobNumber)),
      );
      for (const item of items) unknown.delete(toSnapshot(item).jobNumber);
      for (const [jobNumber, print] of unknown) works.set(jobNumber, this.#cameAndWent(jobNumber, print));
    }
    // Whoever went made the others move up, maybe to a page that was read already.
    if (list.shrank && this.#baselined) return undefined;
    return { sweptAt: this.#startedAt, sweptThrough: highest };
  }

  /** A job that was never seen in the active list: all that is known of it is its number. */
  #cameAndWent(jobNumber: number, print: number): Work {
    const { startedAt } = this.#known;
    return {
      jobNumber,
      entry: undefined,
      stored: undefined,
      snapshot: {
        jobNumber,
        list: null,
        listAt: 0,
        detail: null,
        detailAt: 0,
        unsure: [],
        unproven: startedAt,
        announced: { dateOut: null, tracking: [], overdueFor: null },
        ended: null,
        departure: { tries: 0, suspected: null },
        settling: null,
        owed: { at: startedAt, tries: 0 },
      },
      events: [],
      shown: [],
      fingerprint: print,
      lookSince: startedAt,
    };
  }

  // Writing

  /** Commits what changed: how many jobs; a job that could not be stored; and whether time was enough for all. */
  async #commit(
    works: Map<number, Work>,
    context: ScheduleContext,
  ): Promise<{ all: boolean; changed: number; tooLarge: number | undefined }> {
    const changed = [...works.values()].filter(isChanged);
    const tooLarge = changed.find(isTooLarge)?.jobNumber;
    const writable = tooLarge === undefined ? changed : changed.filter((work) => !isTooLarge(work));
    const found = new Set<string>();
    const discover = (work: Work) => this.#discover(work, found);
    const groups = this.#baselined ? this.#groups : undefined;
    if (groups)
      await this.#loadGroups(writable.flatMap(membershipChanges).map(({ orderGroup }) => orderGroup));
    for (const chunk of chunks(this.#account, writable, this.#index, context, discover, groups)) {
      if (this.#deps.now() > this.#deadline - RESERVE_MS / 2)
        return { all: false, changed: changed.length, tooLarge };
      this.#statuses.meet(chunk.discovered);
      const gone = chunk.events.filter(({ type }) => isNegative(type)).length;
      const head = {
        ...this.#statuses.takeChanges(),
        ...(gone > 0 ? { goneTally: addToTally(this.#goneTally, gone, this.#startedAt) } : {}),
      };
      await this.#write(chunk.events, chunk.writes, {}, Object.keys(head).length > 0 ? head : undefined);
    }
    return { all: true, changed: changed.length, tooLarge };
  }

  /** What the log has said of jobs so far. */
  async #told(jobNumbers: readonly number[]): Promise<(jobNumber: number) => Told> {
    const items = await this.#deps.table.getMany(
      jobNumbers.map((jobNumber) => keys.snapshot(this.#account, jobNumber)),
    );
    const known = new Map(items.map(toSnapshot).map((snapshot) => [snapshot.jobNumber, snapshot]));
    return (jobNumber) => {
      const snapshot = known.get(jobNumber);
      if (snapshot) return snapshot.announced.dateOut === null ? 'open' : 'dispatched';
      // Whoever came in since the last sweep will be seen by the next one.
      return jobNumber > this.#status.sweptThrough ? 'unseen' : 'history';
    };
  }

  async #loadGroups(names: readonly string[]): Promise<void> {
    const wanted = [...new Set(names)].map((name) => keys.group(this.#account, name));
    if (wanted.length > 0) this.#groups.load(await this.#deps.table.getMany(wanted));
  }

  /**
   * Asks for groups that are complete as far as is known (rule 18), within a budget; what the service proves is announced.
   * The others stay pending, and so do all when a token was replaced meanwhile: these may be another account's answers.
   */
  async #confirmGroups(
    client: OrderingClient,
    context: ScheduleContext,
    signal: AbortSignal,
  ): Promise<{ problem?: unknown }> {
    const names = this.#groups.pendingAt(this.#startedAt).slice(0, GROUPS_PER_POLL);
    if (names.length === 0 || signal.aborted) return {};
    await this.#loadGroups(names);
    const { tokens } = client.counts;
    const events: EventDraft[] = [];
    let problem: unknown;
    const confirm = async (name: string): Promise<void> => {
      const group = this.#groups.get(name);
      try {
        const { shown, look } = await readGroup(client, name, signal);
        const strangers = shown.filter(({ jobNumber }) => !group.members.has(jobNumber));
        const told = await this.#told(strangers.map(({ jobNumber }) => jobNumber));
        const verdict = judgeGroup(group, shown, told);
        if (verdict.kind === 'unproven') return this.#groups.triedInVain(name, context);
        this.#groups.set(verdict.group);
        if (verdict.kind === 'complete') events.push(groupDispatched(verdict.group, look));
      } catch (cause) {
        problem ??= cause;
        this.#groups.triedInVain(name, context);
      }
    };
    await Promise.all(names.map(confirm));
    const outcome = problem === undefined ? {} : { problem };
    if (client.counts.tokens !== tokens || this.#deps.now() > this.#deadline - RESERVE_MS / 2) return outcome;
    await this.#write(events, this.#groups.takeWrites(this.#startedAt), {}, undefined);
    return outcome;
  }

  /** Status names this account never showed before (rule 4): each is an event once, and an ordinary status from then on. */
  #discover(work: Work, found: Set<string>): Discovery {
    const names: string[] = [];
    const events: EventDraft[] = [];
    for (const { status, observed } of work.shown) {
      if (found.has(status) || names.length >= MAX_DISCOVERED || !this.#statuses.isNew(status)) continue;
      found.add(status);
      names.push(status);
      if (!this.#baselined) continue;
      const formerName = this.#statuses.formerName(status);
      const data = { status, ...(formerName === undefined ? {} : { formerName }), observed };
      events.push({ type: 'status.discovered', time: Date.parse(observed.at), data });
    }
    return { names, events };
  }

  /** Negative verdicts that were announced, by the hour. */
  get #goneTally(): Tally {
    return (this.#head.attributes.goneTally as Tally | undefined) ?? [];
  }

  async #write(
    events: readonly EventDraft[],
    writes: readonly Write[],
    statusAttributes: { [attribute: string]: Value | undefined },
    headAttributes: { [attribute: string]: Value | undefined } | undefined,
  ): Promise<void> {
    // From the first thing that newer code writes on, older code must not read it.
    const raised = this.#head.attributes.projectionVersion !== this.#projectionVersion;
    const head = raised ? { ...headAttributes, projectionVersion: this.#projectionVersion } : headAttributes;
    const outcome = await this.#deps.log.commit(this.#account, {
      revision: this.#revision,
      head: this.#head,
      events,
      writes,
      statusAttributes: { ...statusAttributes, pollId: this.#pollId },
      ...(head === undefined ? {} : { headAttributes: head }),
    });
    if (outcome.kind === 'fenced') throw new Fenced();
    this.#revision = outcome.revision;
    this.#head = outcome.head;
    this.#events += events.length;
  }

  // Concluding

  /** The last write of a poll that read something: how far it has seen, and, once, that the baseline stands (rule 5). */
  async #conclude(
    client: OrderingClient,
    seen: Crawl,
    { all, upgraded }: { readonly all: boolean; readonly upgraded: boolean },
    swept: { sweptAt: number; sweptThrough: number } | undefined,
    identity: number | undefined,
    absence: { readonly counts: Absence; readonly ruling: Ruling } | undefined,
  ): Promise<AccountState> {
    const attributes = {
      lastPollAt: this.#startedAt,
      // What a sweep found and could not be stored has to be found again.
      ...(all ? swept : {}),
      ...(identity === undefined ? {} : { identityCheckedAt: this.#startedAt }),
    };
    if (!seen.complete || !all) {
      const problem = seen.complete ? new Error('There was no time to commit everything.') : seen.problem;
      return this.#finish({ kind: 'failed', problem, accepted: true }, attributes);
    }
    const openJobs = seen.observations.size + seen.unread;
    const { unanswered = 0, suspected = 0, contradictory = 0 } = absence?.counts ?? {};
    const missing = { unanswered, suspected, contradictory };
    // What waits for its upgrade was not compared.
    const observed = upgraded ? { lastGoodCrawlStartedAt: seen.startedAt } : {};
    const unreadJobs = seen.unread || undefined;
    const good = { ...attributes, ...observed, openJobs, unreadJobs, ...missing };
    const { problem } = seen;
    if (this.#baselined) return this.#finish({ kind: 'good', problem, ...(absence && { absence }) }, good);
    await this.#readStatuses(client);
    // Known from the start, so that they are no news later.
    this.#statuses.meetLookup();
    return this.#finish({ kind: 'good', problem, baselinedWith: openJobs }, good, {
      ...this.#statuses.takeChanges(),
      baselineStartedAt: seen.startedAt,
      baselinedAt: this.#deps.now(),
      projectionVersion: this.#projectionVersion,
      upstreamId: identity,
    });
  }

  /** Reads the service's lookup of statuses. When that fails, no harm is done: names are words as well without it. */
  async #readStatuses(client: OrderingClient, signal?: AbortSignal): Promise<void> {
    try {
      this.#statuses.learn((await client.jobStatuses(signal)).body);
    } catch {
      // The next name that nobody has met asks for it again.
    }
  }

  /** Writes the account's next state, in one transaction with the events that announce it. */
  async #finish(
    result: PollResult,
    attributes: { [attribute: string]: Value | undefined },
    head?: { [attribute: string]: Value | undefined },
  ): Promise<AccountState> {
    const now = this.#deps.now();
    const ofService = result.kind === 'failed' && isServiceFault(result.problem);
    const next = transition(
      result,
      {
        status: this.#status,
        account: this.#account,
        baselined: this.#baselined,
        failuresBeforeAlarm: this.#deps.settings.failuresBeforeAlarm,
        regionFails: ofService && failsForAll(this.#upstream, now),
      },
      this.#startedAt,
      now,
    );
    const set = {
      ...attributes,
      state: next.state,
      consecutiveFailures: next.consecutiveFailures,
      alarmed: next.alarmed,
      problem: next.problem,
      quarantinedAt: next.quarantinedAt ?? undefined,
      ...schedule(this.#account, next.nextPollAt),
    };
    if (next.events.length > 0 || head) {
      await this.#write(next.events, [], set, head);
      return next.state;
    }
    const outcome = await this.#deps.table.write({
      update: keys.status(this.#account),
      set: { ...set, revision: this.#revision + 1, pollId: this.#pollId },
      when: [['revision', '=', this.#revision]],
    });
    // A retry after a lost answer finds its own write: that is no lost race.
    if (!outcome.done && outcome.item?.pollId !== this.#pollId) throw new Fenced();
    return next.state;
  }
}

/** The status names of the jobs that are worked on because the list shows them otherwise than before. */
function statusesIn({ observations }: Crawl): string[] {
  const names = new Set<string>();
  for (const { view } of observations.values()) if (view?.status) names.add(view.status);
  return [...names];
}

/** Whether an event says that a job is gone without the service's own word for it. */
function isNegative(type: EventDraft['type']): boolean {
  return type === 'job.cancelled' || type === 'job.unavailable';
}

function numberOrNull(value: Value | undefined): number | null {
  return typeof value === 'number' ? value : null;
}
