/**
 * One poll of one account, in three steps:
 * - read: Status, whose revision is the fence, then Head and index in one Query, then the list page by
 *   page. Snapshots of jobs with a changed fingerprint follow, and details of the jobs for which a fetch is
 *   worthwhile.
 * - decide: diff.ts, departures.ts and account-state.ts, all pure.
 * - write: chunks, each a self-contained transaction. The Status, with the time observed through, is
 *   written last.
 *
 * A quiet poll reads Account, Status, the state of the region's upstream API, Head and index, and writes
 * only Status. A poll that loses its fence discards its observations. If a poll crashes, its committed
 * writes remain valid, and the next poll finds the rest without recovery.
 */

import {
  type Account,
  type AccountState,
  type Status,
  schedule,
  toAccount,
  toStatus,
} from '../accounts/accounts.ts';
import { addPoll, type PollOutcome } from '../accounts/poll-history.ts';
import type { EventDraft } from '../events/event.ts';
import { type Head, toHead } from '../log/head.ts';
import type { EventLog } from '../log/log.ts';
import type { ErrorCounts, OrderingClient, OrderingCounts } from '../ordering/client.ts';
import { OrderingError } from '../ordering/errors.ts';
import type { AccountUser, ActiveJob } from '../ordering/schemas.ts';
import type { TokenSource } from '../ordering/tokens.ts';
import { type AccountRef, indexPk, keys, pollPhase } from '../storage/schema.ts';
import type { Item, Table, Value, Write } from '../storage/table.ts';
import { type PollResult, sentence, transition } from './account-state.ts';
import {
  failsForAll,
  hearUpstream,
  isServiceFault,
  noteAnswer,
  noteFailure,
  type Upstream,
} from './breaker.ts';
import { chunks, type Discovery, isTooLarge, MAX_DISCOVERED } from './chunks.ts';
import { type Crawl, crawl } from './crawl.ts';
import { conclude, type LookContext, lookAtJobs } from './detail-fetches.ts';
import { GroupBook, groupDispatched, judgeGroup, readGroup, type Told } from './groups.ts';
import { JobIndex } from './job-index.ts';
import { countAbsence, notice, observe, readSnapshots, type Tracked } from './observation.ts';
import { OpenKinds, openJobsWrite, tallyOpen } from './open-jobs.ts';
import { type Absence, addToTally, judgeAbsence, type Ruling, type Tally } from './quarantine.ts';
import { RollupBook } from './rollups.ts';
import type { ScheduleContext, TrackingSettings } from './schedule.ts';
import { StatusNames } from './status-names.ts';
import { sweep } from './sweep.ts';
import { PROJECTION_VERSION } from './views.ts';
import { countWork, isChanged, membershipChanges, type Work } from './work.ts';

/** Dependencies of a poll. */
export interface PollDeps {
  readonly table: Table;
  readonly log: EventLog;
  readonly settings: TrackingSettings;
  /** Current time in epoch ms. */
  readonly now: () => number;
  readonly newId: () => string;
  /** Projection version to use instead of this code's version, for upgrade tests. */
  readonly projectionVersion?: number;
  /**
   * Connects to the ordering API with the account's credentials. Throws if the credentials are unavailable.
   */
  readonly connect: (account: Account) => Promise<{ client: OrderingClient; tokens: TokenSource }>;
  /**
   * Updates the recipient that represents the API user. `since` is the account's `ownUserSince`: if it has
   * changed meanwhile, nothing is written.
   */
  readonly syncApiUser: (
    deps: Pick<PollDeps, 'table' | 'now' | 'newId'>,
    ref: AccountRef,
    since: number,
    user: AccountUser,
  ) => Promise<unknown>;
}

/** Result of one poll, written as the wide log line. Contains only ids and counts. */
export interface PollReport {
  readonly region: string;
  readonly account: string;
  readonly outcome: /** The poll read everything and committed all of it. */
    | 'complete'
    /** The poll left work for the next one, because pages failed or time ran out. */
    | 'partial'
    /** The poll could read nothing. */
    | 'failed'
    /** Superseded: a newer poll committed first. */
    | 'fenced'
    /** Not polled: the account is unknown, paused, stopped, or stored by newer code. */
    | 'skipped';
  readonly state?: AccountState;
  readonly pages: number;
  readonly openJobs: number;
  /**
   * Number of unreadable entries in the list (rule 2). `unreadInSweep` counts those among the newest jobs
   * that the sweep reads together with closed jobs (rule 8).
   */
  readonly unread: number;
  readonly unreadInSweep: number;
  readonly changedJobs: number;
  readonly events: number;
  readonly looks: number;
  /** Number of detail fetches still owed, because they were not answered or exceed the budget. */
  readonly looksLeft: number;
  /** Number of delisted jobs whose outcome is not yet known. Absent if the list was not read to its end. */
  readonly unresolved?: number;
  /** Number of requests to the ordering API, without token requests. */
  readonly requests: number;
  /** Number of those requests that were retries. */
  readonly retries: number;
  /** Number of upstream faults by kind, including those of requests that were retried. */
  readonly upstreamErrors: ErrorCounts;
  /** Types of the events about the account itself. */
  readonly announced: readonly EventDraft['type'][];
  /** Whether an outage of the whole region was emitted and, as far as this poll knows, is not resolved. */
  readonly outage: boolean;
  readonly ms: number;
  readonly problem?: string;
}

/** Time before the deadline from which the poll starts nothing new (ms). */
const RESERVE_MS = 3_000;
/** Maximum time between two comparisons of the account's identity (ms). Every new token also triggers one. */
const IDENTITY_CHECK_MS = 600_000;
/**
 * Interval between reads of the API user, for accounts with that option, and the retry interval after a
 * failure (ms).
 */
const OWN_USER_MS = 6 * 3_600_000;
const OWN_USER_RETRY_MS = 900_000;
/** Maximum number of order groups to query in one poll. */
const GROUPS_PER_POLL = 20;

/**
 * Polls one account once.
 *
 * `deadline` is the time at which the process may be stopped (epoch ms). `dueAt` is the time since which a
 * queued poll is due. With it, the poll is skipped if the account was polled in between. The report
 * contains every outcome. Throws `TableError` if the table does not respond. The next poll then recovers
 * what is missing.
 */
export async function pollAccount(
  deps: PollDeps,
  ref: AccountRef,
  deadline: number,
  dueAt?: number,
): Promise<PollReport> {
  const startedAt = deps.now();
  const poll = await begin(deps, ref, startedAt, deadline, dueAt);
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
  retries: 0,
  upstreamErrors: {},
  announced: [],
  outage: false,
} as const;

/** Reads the tracker's state. Returns the reason if there is nothing to poll. */
async function begin(
  deps: PollDeps,
  ref: AccountRef,
  startedAt: number,
  deadline: number,
  dueAt: number | undefined,
): Promise<Poll | string> {
  const [found, statusItem, upstream] = await Promise.all([
    deps.table.get(keys.account(ref)),
    deps.table.get(keys.status(ref)),
    hearUpstream(deps.table, ref.region),
  ]);
  // A pause or new credentials arrived between the two reads. With this fence, the poll would undo them.
  const isOlder = Number(statusItem?.recordRevision ?? 0) > Number(found?.revision ?? 0);
  const accountItem = isOlder ? await deps.table.get(keys.account(ref)) : found;
  if (!accountItem || !statusItem) return 'The account is not registered.';
  const account = toAccount(accountItem);
  const status = toStatus(statusItem);
  if (account.paused) return 'The account is paused.';
  if (status.state === 'identity_mismatch') return 'The account waits for an operator.';
  if (dueAt !== undefined && (status.nextPollAt ?? 0) > Math.max(dueAt, startedAt)) {
    return 'The account was polled since it was asked for.';
  }
  // Read after the fence: a write of another poll between the two reads raises the revision, and this poll is
  // fenced.
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
  return new Poll(deps, account, statusItem, status, upstream, head, index, groups, startedAt, deadline);
}

/** Superseded: a newer poll committed first. */
class Fenced extends Error {}

/**
 * Account of the current credentials, and the account pinned at the baseline. Both are equal before there
 * is a baseline.
 */
interface Identity {
  readonly id: number;
  readonly pinned: number;
}

class Poll {
  readonly #deps: PollDeps;
  readonly #account: Account;
  readonly #statusItem: Item;
  readonly #status: Status;
  readonly #groups: GroupBook;
  readonly #startedAt: number;
  readonly #deadline: number;
  readonly #tracked: Tracked;
  readonly #pollId: string;
  #upstream: Upstream;
  #head: Head;
  #revision: number;
  #events = 0;
  /** Counters of this poll's client. `undefined` before the client exists. */
  #counts: OrderingCounts | undefined;
  /** Error of the initial token request. */
  #tokenFault: OrderingError | undefined;
  #announced: readonly EventDraft['type'][] = [];
  /**
   * The account's `ownUserSince` for which the API user was read, and the time of the next read (epoch ms).
   */
  #ownUser: { readonly ownUserSince: number; readonly ownUserDueAt: number } | undefined;

  constructor(
    deps: PollDeps,
    account: Account,
    statusItem: Item,
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
    this.#statusItem = statusItem;
    this.#status = status;
    this.#upstream = upstream;
    this.#head = head;
    this.#groups = groups;
    this.#startedAt = startedAt;
    this.#deadline = deadline;
    this.#revision = status.revision;
    this.#pollId = deps.newId();
    this.#tracked = {
      ref: { region: account.region, account: account.account },
      table: deps.table,
      settings: deps.settings,
      index,
      statuses: new StatusNames(head.attributes),
      kinds: new OpenKinds(),
      known: {
        startedAt,
        lastGoodCrawlStartedAt: status.lastGoodCrawlStartedAt,
        baselineStartedAt: numberOrNull(head.attributes.baselineStartedAt),
      },
    };
  }

  get #projectionVersion(): number {
    return this.#deps.projectionVersion ?? PROJECTION_VERSION;
  }

  get #baselined(): boolean {
    return this.#tracked.known.baselineStartedAt !== null;
  }

  async run(): Promise<Omit<PollReport, 'region' | 'account' | 'ms'>> {
    let pages = 0;
    const report = (outcome: PollReport['outcome'], more: Partial<PollReport>) => ({
      ...NOTHING,
      openJobs: this.#status.openJobs ?? 0,
      pages,
      events: this.#events,
      requests: this.#counts?.requests ?? 0,
      retries: this.#counts?.retries ?? 0,
      upstreamErrors: this.#tokenFault ? { [this.#tokenFault.kind]: 1 } : { ...this.#counts?.errors },
      announced: this.#announced,
      outage: this.#upstream.openedAt !== null,
      outcome,
      ...more,
    });
    /** `accepted`: the upstream API answered at least one request with these credentials. */
    const failed = async (problem: unknown, accepted: boolean) => {
      if (pages === 0 && isServiceFault(problem)) {
        const failure = { at: this.#deps.now(), reason: problem.message };
        this.#upstream = await noteFailure(this.#deps, this.#account, failure, this.#upstream);
      }
      const state = await this.#finish({ kind: 'failed', problem, accepted }, 'failed', {
        lastPollAt: this.#startedAt,
      });
      return report('failed', { state, problem: sentence(problem) });
    };
    try {
      const connected = await this.#connect();
      if ('problem' in connected) return await failed(connected.problem, false);
      const { client } = connected;
      let { identity } = connected;
      // Number of tokens known to belong to this account: the first one, and every one issued before an
      // identity check.
      const checkedTokens = Math.max(1, client.counts.tokens);
      const signal = AbortSignal.timeout(Math.max(1, this.#deadline - RESERVE_MS - this.#deps.now()));

      const tracked = this.#tracked;
      /** Status names of jobs whose list entry changed. */
      const shown = new Set<string>();
      const noticed = (job: ActiveJob) => {
        const it = notice(tracked, job);
        if (it.view?.status) shown.add(it.view.status);
        return it;
      };
      const seen = await crawl(client, { now: this.#deps.now, notice: noticed, signal });
      pages = seen.pages;
      if (seen.answeredAt === null) return await failed(seen.problem, identity !== undefined);
      this.#upstream = await noteAnswer(this.#deps, this.#account.region, seen.answeredAt, this.#upstream);

      if (this.#baselined && [...shown].some((name) => tracked.statuses.mayBeRenamed(name))) {
        await this.#readStatuses(client, signal);
      }
      const observed = await observe(tracked, seen);
      const { works, upgraded } = observed;
      const swept = await sweep(tracked, client, this.#status, seen, identity !== undefined, signal);
      for (const work of swept.works) works.set(work.jobNumber, work);
      const context: ScheduleContext = {
        startedAt: this.#startedAt,
        pollIntervalSeconds: this.#account.pollIntervalSeconds,
        settings: this.#deps.settings,
        projectionVersion: this.#projectionVersion,
      };
      const { known, index } = tracked;
      const looking: LookContext = { ...context, client, seen, known, index, signal };
      const looks = this.#baselined
        ? await lookAtJobs(works.values(), looking)
        : { made: 0, left: 0, gone: [] };
      const absence =
        seen.complete && this.#baselined
          ? this.#judge(countAbsence(tracked, seen, observed, this.#goneTally))
          : undefined;
      const mayAnnounce = absence?.ruling === 'clear' && this.#status.quarantinedAt === null;
      conclude(looks.gone, mayAnnounce ? 'announce' : 'hold up', looking);

      const owner = await this.#readOwnUser(client, signal);
      identity = owner?.identity ?? identity;
      // A token renewed during the poll may belong to another account. Then the observations do too.
      if (client.counts.tokens > checkedTokens) {
        const again = await this.#identify(client);
        if ('problem' in again) return await failed(again.problem, true);
        identity = again;
      }
      if (identity && identity.id !== identity.pinned) {
        const { pinned: expectedId, id: actualId } = identity;
        const state = await this.#finish({ kind: 'mismatch', expectedId, actualId }, 'failed', {
          lastPollAt: this.#startedAt,
        });
        return report('failed', { state, problem: 'The credentials belong to another account.' });
      }
      const { all, changed, tooLarge } = await this.#commit(works, context);
      if (owner && all) await this.#tellOwnUser(owner.user);
      const groups = all ? await this.#confirmGroups(client, context, signal) : undefined;
      const done = all && upgraded;
      const state = await this.#conclude(
        client,
        seen,
        { all, upgraded },
        swept.through,
        identity?.id,
        absence,
      );
      const problem = seen.problem ?? looks.problem ?? groups?.problem;
      return report(seen.complete && done ? 'complete' : 'partial', {
        state,
        ...(seen.complete ? { openJobs: seen.observations.size + seen.unread } : {}),
        ...(absence && { unresolved: missingOf(absence.counts) }),
        unread: seen.unread,
        unreadInSweep: swept.unread,
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

  /** Returns the client, with a token, and the account's identity if its comparison is due (rule 9). */
  async #connect(): Promise<{ client: OrderingClient; identity?: Identity } | { problem: unknown }> {
    try {
      const { client, tokens } = await this.#deps.connect(this.#account);
      this.#counts = client.counts;
      const token = await tokens.get().catch((fault: unknown) => {
        if (fault instanceof OrderingError) this.#tokenFault = fault;
        throw fault;
      });
      const checkedAt = this.#status.identityCheckedAt;
      const recent = checkedAt !== null && this.#startedAt - checkedAt < IDENTITY_CHECK_MS;
      if (this.#baselined && recent && !token.fresh) return { client };
      const identity = await this.#identify(client);
      return 'problem' in identity ? identity : { client, identity };
    } catch (problem) {
      return { problem };
    }
  }

  /**
   * Reads the account's identity. If that fails, the poll fails: no event may be emitted while the owner of
   * the jobs is unknown.
   */
  async #identify(client: OrderingClient): Promise<Identity | { problem: unknown }> {
    try {
      const { id } = (await client.account()).body;
      return { id, pinned: numberOrNull(this.#head.attributes.upstreamId) ?? id };
    } catch (problem) {
      return { problem };
    }
  }

  /**
   * Reads the API user if the account has that option and the read is due.
   *
   * The answer is accepted only if an identity check with the same token follows it (rule 9). A failure
   * does not affect the observation of jobs. The read is retried after `OWN_USER_RETRY_MS`.
   */
  async #readOwnUser(
    client: OrderingClient,
    signal: AbortSignal,
  ): Promise<{ readonly user: AccountUser; readonly identity: Identity } | undefined> {
    const since = this.#account.ownUserSince;
    if (since === undefined || !this.#baselined || signal.aborted) return undefined;
    const { ownUserSince, ownUserDueAt } = this.#status;
    if (ownUserSince === since && this.#startedAt < (ownUserDueAt ?? 0)) return undefined;
    this.#ownUser = { ownUserSince: since, ownUserDueAt: this.#startedAt + OWN_USER_RETRY_MS };
    try {
      const user = (await client.accountUser(signal)).body;
      const { tokens } = client.counts;
      const identity = await this.#identify(client);
      return 'problem' in identity || client.counts.tokens !== tokens ? undefined : { user, identity };
    } catch {
      return undefined;
    }
  }

  // Writing

  /** Updates the recipient that represents the API user to that user's current settings. */
  async #tellOwnUser(user: AccountUser): Promise<void> {
    const since = this.#account.ownUserSince;
    if (since === undefined) return;
    await this.#deps.syncApiUser(this.#deps, this.#account, since, user);
    this.#ownUser = { ownUserSince: since, ownUserDueAt: this.#startedAt + OWN_USER_MS };
  }

  /**
   * Commits the changes. Returns the number of changed jobs, a job too large to store, and whether time
   * sufficed for all.
   */
  async #commit(
    works: Map<number, Work>,
    context: ScheduleContext,
  ): Promise<{ all: boolean; changed: number; tooLarge: number | undefined }> {
    const changed = [...works.values()].filter(isChanged);
    for (const work of changed) countWork(work);
    const tooLarge = changed.find(isTooLarge)?.jobNumber;
    const writable = tooLarge === undefined ? changed : changed.filter((work) => !isTooLarge(work));
    const found = new Set<string>();
    const discover = (work: Work) => this.#discover(work, found);
    const groups = this.#baselined ? this.#groups : undefined;
    const rollups = new RollupBook(this.#account);
    const counted = rollups.wanted(writable.flatMap(({ counts = [] }) => counts));
    const [, stored] = await Promise.all([
      groups && this.#loadGroups(writable.flatMap(membershipChanges).map(({ orderGroup }) => orderGroup)),
      counted.length === 0 ? [] : this.#deps.table.getMany(counted),
    ]);
    rollups.load(stored);
    const { index } = this.#tracked;
    for (const chunk of chunks(this.#account, writable, index, context, discover, groups, rollups)) {
      if (this.#deps.now() > this.#deadline - RESERVE_MS / 2)
        return { all: false, changed: changed.length, tooLarge };
      this.#tracked.statuses.meet(chunk.discovered);
      const gone = chunk.events.filter(({ type }) => isNegative(type)).length;
      const head = {
        ...this.#tracked.statuses.takeChanges(),
        ...(gone > 0 ? { goneTally: addToTally(this.#goneTally, gone, this.#startedAt) } : {}),
      };
      await this.#write(chunk.events, chunk.writes, {}, Object.keys(head).length > 0 ? head : undefined);
    }
    return { all: true, changed: changed.length, tooLarge };
  }

  /** Returns a lookup of the state of each job according to the log. */
  async #told(jobNumbers: readonly number[]): Promise<(jobNumber: number) => Told> {
    const known = await readSnapshots(this.#tracked, jobNumbers);
    return (jobNumber) => {
      const snapshot = known.get(jobNumber);
      if (snapshot) return snapshot.announced.dateOut === null ? 'open' : 'dispatched';
      // The next sweep observes jobs created since the last one.
      return jobNumber > this.#status.sweptThrough ? 'unseen' : 'history';
    };
  }

  async #loadGroups(names: readonly string[]): Promise<void> {
    const wanted = [...new Set(names)].map((name) => keys.group(this.#account, name));
    if (wanted.length > 0) this.#groups.load(await this.#deps.table.getMany(wanted));
  }

  /**
   * Queries the groups that are complete as far as is known (rule 18), within a budget. Emits what upstream
   * proves.
   *
   * The other groups stay pending. All stay pending if a token was renewed meanwhile, because the answers
   * may belong to another account.
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
        const { shown, look, whole } = await readGroup(client, name, signal);
        const strangers = shown.filter(({ jobNumber }) => !group.members.has(jobNumber));
        const told = await this.#told(strangers.map(({ jobNumber }) => jobNumber));
        const verdict = judgeGroup(group, shown, told);
        if (!whole || verdict.kind === 'unproven') {
          this.#groups.triedInVain(name, context);
          return;
        }
        this.#groups.set(verdict.group);
        if (verdict.kind === 'complete') events.push(groupDispatched(verdict.group, shown, look));
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

  /**
   * Returns the status names that are new to this account (rule 4). Each causes one event and is an
   * ordinary status from then on.
   */
  #discover(work: Work, found: Set<string>): Discovery {
    const names: string[] = [];
    const events: EventDraft[] = [];
    for (const { status, observed } of work.shown) {
      if (found.has(status) || names.length >= MAX_DISCOVERED || !this.#tracked.statuses.isNew(status))
        continue;
      found.add(status);
      names.push(status);
      if (!this.#baselined) continue;
      const previousName = this.#tracked.statuses.previousName(status);
      const data = { status, ...(previousName === undefined ? {} : { previousName }), observed };
      events.push({ type: 'status.discovered', time: Date.parse(observed.at), data });
    }
    return { names, events };
  }

  /** Decides whether this many departures are plausible (rule 10). */
  #judge(counts: Absence): { counts: Absence; ruling: Ruling } {
    const { allowedGone, allowedGoneUntil } = this.#status;
    const allowed = allowedGoneUntil !== null && this.#startedAt < allowedGoneUntil ? allowedGone : 0;
    return { counts, ruling: judgeAbsence(counts, allowed) };
  }

  /** Number of recorded negative verdicts per hour. */
  get #goneTally(): Tally {
    return (this.#head.attributes.goneTally as Tally | undefined) ?? [];
  }

  async #write(
    events: readonly EventDraft[],
    writes: readonly Write[],
    statusAttributes: { [attribute: string]: Value | undefined },
    headAttributes: { [attribute: string]: Value | undefined } | undefined,
  ): Promise<void> {
    // After the first write of newer code, older code must not read the account.
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

  /**
   * Writes the final Status of a poll that read something: the time observed through and, once, that the
   * baseline is complete (rule 5).
   */
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
      // The next sweep must find again what this one found but could not store.
      ...(all ? swept : {}),
      ...(identity === undefined ? {} : { identityCheckedAt: this.#startedAt }),
      ...this.#ownUser,
    };
    if (!seen.complete || !all) {
      const problem = seen.complete ? new Error('There was no time to commit everything.') : seen.problem;
      return this.#finish({ kind: 'failed', problem, accepted: true }, 'partial', attributes);
    }
    const openJobs = seen.observations.size + seen.unread;
    const { unanswered = 0, suspected = 0, contradictory = 0 } = absence?.counts ?? {};
    const missing = { unanswered, suspected, contradictory };
    // Jobs that wait for their upgrade were not compared.
    const observed = upgraded ? { lastGoodCrawlStartedAt: seen.startedAt } : {};
    const unreadJobs = seen.unread || undefined;
    const open = openJobsWrite(this.#account, tallyOpen(seen), seen.startedAt);
    const moved = open.print !== this.#status.openPrint;
    const good = {
      ...attributes,
      ...observed,
      openJobs,
      unreadJobs,
      ...missing,
      ...(moved ? { openPrint: open.print } : {}),
    };
    const writes = moved ? [open.write] : [];
    const { problem } = seen;
    const outcome = upgraded ? 'complete' : 'partial';
    if (this.#baselined) {
      const result = { kind: 'good', problem, ...(absence && { absence }) } as const;
      return this.#finish(result, outcome, good, undefined, writes);
    }
    await this.#readStatuses(client);
    // Known from the start, so these names cause no event later.
    this.#tracked.statuses.meetLookup();
    const head = {
      ...this.#tracked.statuses.takeChanges(),
      baselineStartedAt: seen.startedAt,
      baselinedAt: this.#deps.now(),
      projectionVersion: this.#projectionVersion,
      upstreamId: identity,
    };
    return this.#finish({ kind: 'good', problem, baselinedWith: openJobs }, outcome, good, head, writes);
  }

  /**
   * Reads the upstream status lookup. A failure is harmless, because a status name is readable without the
   * lookup.
   */
  async #readStatuses(client: OrderingClient, signal?: AbortSignal): Promise<void> {
    try {
      this.#tracked.statuses.learn((await client.jobStatuses(signal)).body);
    } catch {
      // The next unknown status name triggers another read.
    }
  }

  /** Writes the account's next state in one transaction with its events and the given additional writes. */
  async #finish(
    result: PollResult,
    outcome: PollOutcome,
    attributes: { [attribute: string]: Value | undefined },
    head?: { [attribute: string]: Value | undefined },
    writes: readonly Write[] = [],
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
        phase: pollPhase(this.#account),
      },
      this.#startedAt,
      now,
    );
    const changed = {
      ...attributes,
      state: next.state,
      consecutiveFailures: next.consecutiveFailures,
      alarmed: next.alarmed,
      problem: next.problem,
      quarantinedAt: next.quarantinedAt ?? undefined,
      ...schedule(this.#account, next.nextPollAt),
    };
    const poll = {
      startedAt: this.#startedAt,
      ms: now - this.#startedAt,
      outcome,
      requests: this.#counts?.requests ?? 0,
      events: this.#events + next.events.length,
      problem: next.problem ?? null,
    };
    const set = { ...changed, ...addPoll(this.#status.polls, poll, { ...this.#statusItem, ...changed }) };
    if (next.events.length > 0 || head || writes.length > 0) {
      await this.#write(next.events, writes, set, head);
      this.#announced = next.events.map(({ type }) => type);
      return next.state;
    }
    const written = await this.#deps.table.write({
      update: keys.status(this.#account),
      set: { ...set, revision: this.#revision + 1, pollId: this.#pollId },
      when: [['revision', '=', this.#revision]],
    });
    // A retry after a lost response finds its own write. That is not a lost race.
    if (!written.done && written.item?.pollId !== this.#pollId) throw new Fenced();
    return next.state;
  }
}

/**
 * Returns whether an event reports a job as gone by inference, without a direct statement of the upstream
 * API.
 */
function isNegative(type: EventDraft['type']): boolean {
  return type === 'job.cancelled' || type === 'job.unavailable';
}

/** Returns the number of jobs missing from the list whose outcome is not certain. */
function missingOf({ unanswered, suspected, contradictory }: Absence): number {
  return unanswered + suspected + contradictory;
}

function numberOrNull(value: Value | undefined): number | null {
  return typeof value === 'number' ? value : null;
}
