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
import { syncOwnUser } from '../notifications/recipients.ts';
import type { ErrorCounts, OrderingClient, OrderingCounts } from '../ordering/client.ts';
import { OrderingError } from '../ordering/errors.ts';
import type { AccountUser, ActiveJob } from '../ordering/schemas.ts';
import type { TokenSource } from '../ordering/tokens.ts';
import { type AccountRef, indexPk, keys, pollPhase } from '../table/schema.ts';
import type { Item, Table, Value, Write } from '../table/table.ts';
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
import { type Crawl, crawl } from './crawl.ts';
import { GroupBook, groupDispatched, judgeGroup, readGroup, type Told } from './groups.ts';
import { JobIndex } from './job-index.ts';
import { conclude, type LookContext, lookAtJobs } from './looks.ts';
import { countAbsence, notice, observe, readSnapshots, type Tracked } from './observe.ts';
import { OpenKinds, openJobsWrite, tallyOpen } from './open-jobs.ts';
import { addPoll, type PollOutcome } from './poll-history.ts';
import { type Absence, addToTally, judgeAbsence, type Ruling, type Tally } from './quarantine.ts';
import { countWork, RollupBook } from './rollups.ts';
import { StatusNames } from './statuses.ts';
import { sweep } from './sweep.ts';
import { PROJECTION_VERSION } from './views.ts';
import {
  chunks,
  type Discovery,
  isChanged,
  isTooLarge,
  MAX_DISCOVERED,
  membershipChanges,
  type ScheduleContext,
  type TrackingSettings,
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
  /** Jobs missing from the list whose fate is open. Absent when it was not seen: the list was not read to its end. */
  readonly unresolved?: number;
  /** Requests to the ordering service; tokens are not counted. */
  readonly requests: number;
  /** Of those, the ones that repeated another. */
  readonly retries: number;
  /** Faults of the service by kind, of requests that were repeated as well. */
  readonly upstreamErrors: ErrorCounts;
  /** The types of what was said of the account itself. */
  readonly announced: readonly EventDraft['type'][];
  /** An outage of the whole region was announced, and is not over as far as this poll knows. */
  readonly outage: boolean;
  readonly ms: number;
  readonly problem?: string;
}

/** Milliseconds before the deadline from which on nothing new is begun. */
const RESERVE_MS = 3_000;
/** The account's identity is compared with every new token, and at least this often. */
const IDENTITY_CHECK_MS = 600_000;
/** How often the user of an account that wants it is read, and how soon again when that failed. */
const OWN_USER_MS = 6 * 3_600_000;
const OWN_USER_RETRY_MS = 900_000;
/** Order groups asked for in one poll at most. */
const GROUPS_PER_POLL = 20;

/**
 * Polls one account once. `deadline` (epoch ms) is when the process may be stopped; `dueAt`, where it was asked for some
 * time ago, since when it is due: then it is skipped if the account was polled in between. Outcomes are in the report; it throws
 * TableError when the table does not answer, and then the next poll makes good for it.
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

/** Reads what the tracker knows, and says why there is nothing to poll if so. */
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
  // A pause, or new credentials, that came between the two reads: with this fence the poll would undo it.
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
  return new Poll(deps, account, statusItem, status, upstream, head, index, groups, startedAt, deadline);
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
  /** What the client of this poll has counted so far. */
  #counts: OrderingCounts | undefined;
  /** Why there was no token to begin with. */
  #tokenFault: OrderingError | undefined;
  #announced: readonly EventDraft['type'][] = [];
  /** What the account's user was read for, and when he is to be read again. */
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
    /** `accepted`: the service answered something with these credentials. */
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
      // Which tokens are known to be this account's: the first, and every one until its identity was asked for.
      const checkedTokens = Math.max(1, client.counts.tokens);
      const signal = AbortSignal.timeout(Math.max(1, this.#deadline - RESERVE_MS - this.#deps.now()));

      const tracked = this.#tracked;
      /** The status names of jobs that the list shows otherwise than before. */
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
      const looking: LookContext = { ...context, client, seen, known: tracked.known, signal };
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
      // A token that was replaced on the way may be another account's: then so is what was seen.
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

  /** Client, token, and the account's identity if it is time to compare it (rule 9). */
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

  /** Without knowing whose jobs these are nothing may be said of them, so a failure here is a failed poll. */
  async #identify(client: OrderingClient): Promise<Identity | { problem: unknown }> {
    try {
      const { id } = (await client.account()).body;
      return { id, pinned: numberOrNull(this.#head.attributes.upstreamId) ?? id };
    } catch (problem) {
      return { problem };
    }
  }

  /**
   * The user of the credentials, when the account wants that and it is time. He is believed only if the same token was asked
   * whose it is right after (rule 9). That this fails is no reason to see less of the jobs: it is tried again some time later.
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

  /** Makes the recipient that the account's user is what he asks for by now. */
  async #tellOwnUser(user: AccountUser): Promise<void> {
    const since = this.#account.ownUserSince;
    if (since === undefined) return;
    await syncOwnUser(this.#deps, this.#account, since, user);
    this.#ownUser = { ownUserSince: since, ownUserDueAt: this.#startedAt + OWN_USER_MS };
  }

  /** Commits what changed: how many jobs; a job that could not be stored; and whether time was enough for all. */
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

  /** What the log has said of jobs so far. */
  async #told(jobNumbers: readonly number[]): Promise<(jobNumber: number) => Told> {
    const known = await readSnapshots(this.#tracked, jobNumbers);
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

  /** Status names this account never showed before (rule 4): each is an event once, and an ordinary status from then on. */
  #discover(work: Work, found: Set<string>): Discovery {
    const names: string[] = [];
    const events: EventDraft[] = [];
    for (const { status, observed } of work.shown) {
      if (found.has(status) || names.length >= MAX_DISCOVERED || !this.#tracked.statuses.isNew(status))
        continue;
      found.add(status);
      names.push(status);
      if (!this.#baselined) continue;
      const formerName = this.#tracked.statuses.formerName(status);
      const data = { status, ...(formerName === undefined ? {} : { formerName }), observed };
      events.push({ type: 'status.discovered', time: Date.parse(observed.at), data });
    }
    return { names, events };
  }

  /** Whether so many jobs may be gone (rule 10). */
  #judge(counts: Absence): { counts: Absence; ruling: Ruling } {
    const { allowedGone, allowedGoneUntil } = this.#status;
    const allowed = allowedGoneUntil !== null && this.#startedAt < allowedGoneUntil ? allowedGone : 0;
    return { counts, ruling: judgeAbsence(counts, allowed) };
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
      ...this.#ownUser,
    };
    if (!seen.complete || !all) {
      const problem = seen.complete ? new Error('There was no time to commit everything.') : seen.problem;
      return this.#finish({ kind: 'failed', problem, accepted: true }, 'partial', attributes);
    }
    const openJobs = seen.observations.size + seen.unread;
    const { unanswered = 0, suspected = 0, contradictory = 0 } = absence?.counts ?? {};
    const missing = { unanswered, suspected, contradictory };
    // What waits for its upgrade was not compared.
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
    // Known from the start, so that they are no news later.
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

  /** Reads the service's lookup of statuses. When that fails, no harm is done: names are words as well without it. */
  async #readStatuses(client: OrderingClient, signal?: AbortSignal): Promise<void> {
    try {
      this.#tracked.statuses.learn((await client.jobStatuses(signal)).body);
    } catch {
      // The next name that nobody has met asks for it again.
    }
  }

  /** Writes the account's next state, in one transaction with the events that announce it and whatever else goes with it. */
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
    // A retry after a lost answer finds its own write: that is no lost race.
    if (!written.done && written.item?.pollId !== this.#pollId) throw new Fenced();
    return next.state;
  }
}

/** Whether an event says that a job is gone without the service's own word for it. */
function isNegative(type: EventDraft['type']): boolean {
  return type === 'job.cancelled' || type === 'job.unavailable';
}

/** How many jobs are missing from the list without anybody knowing for certain why. */
function missingOf({ unanswered, suspected, contradictory }: Absence): number {
  return unanswered + suspected + contradictory;
}

function numberOrNull(value: Value | undefined): number | null {
  return typeof value === 'number' ? value : null;
}
