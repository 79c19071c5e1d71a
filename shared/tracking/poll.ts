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
import { type Crawl, crawl, type Noticed, readListPage } from './crawl.ts';
import { type Known, type Sighting, seenInList, sinceListed } from './diff.ts';
import { type IndexEntry, JobIndex } from './job-index.ts';
import { lookAtJobs } from './looks.ts';
import { type Snapshot, toSnapshot } from './snapshot.ts';
import { fingerprint, listView, PROJECTION_VERSION } from './views.ts';
import {
  chunks,
  type Discovery,
  isChanged,
  isDue,
  isTooLarge,
  MAX_DISCOVERED,
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
/** Status names kept per account at most: they are a courtesy, and Head stays small. */
const MAX_STATUS_NAMES = 500;

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
  const [headItem, ...shardItems] = await deps.table.query({ pk: indexPk(ref) });
  if (headItem?.sk !== 'HEAD') return 'The account has no log.';
  const head = toHead(headItem);
  if (Number(head.attributes.projectionVersion ?? 0) > PROJECTION_VERSION) {
    return 'The account’s snapshots were written by newer code.';
  }
  const index = JobIndex.decode(
    shardItems.map((item) => ({
      lowest: Number(item.sk.slice('SHARD#'.length)),
      packed: item.packed as Uint8Array,
    })),
  );
  return new Poll(deps, account, status, upstream, head, index, startedAt, deadline);
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
  readonly #startedAt: number;
  readonly #deadline: number;
  readonly #known: Known;
  readonly #pollId: string;
  #upstream: Upstream;
  #head: Head;
  #revision: number;
  #events = 0;

  constructor(
    deps: PollDeps,
    account: Account,
    status: Status,
    upstream: Upstream,
    head: Head,
    index: JobIndex,
    startedAt: number,
    deadline: number,
  ) {
    this.#deps = deps;
    this.#account = account;
    this.#status = status;
    this.#upstream = upstream;
    this.#head = head;
    this.#index = index;
    this.#startedAt = startedAt;
    this.#deadline = deadline;
    this.#revision = status.revision;
    this.#pollId = deps.newId();
    this.#known = {
      startedAt,
      lastGoodCrawlStartedAt: status.lastGoodCrawlStartedAt,
      baselineStartedAt: numberOrNull(head.attributes.baselineStartedAt),
    };
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

      const works = await this.#workOn(seen);
      const swept = await this.#sweep(client, seen, works, identity !== undefined, signal);
      const context: ScheduleContext = {
        startedAt: this.#startedAt,
        pollIntervalSeconds: this.#account.pollIntervalSeconds,
        settings: this.#deps.settings,
      };
      const looks = this.#baselined
        ? await lookAtJobs(works.values(), { ...context, client, seen, known: this.#known, signal })
        : { made: 0, left: 0 };

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
      const state = await this.#conclude(client, seen, all, swept, identity?.id);
      const problem = seen.problem ?? looks.problem;
      return report(seen.complete && all ? 'complete' : 'partial', {
        state,
        ...(seen.complete ? { openJobs: seen.observations.size } : {}),
        changedJobs: changed,
        looks: looks.made,
        looksLeft: looks.left,
        ...(tooLarge === undefined ? {} : { problem: `Job ${tooLarge} is too large to be stored.` }),
        ...(problem === undefined ? {} : { problem: sentence(problem) }),
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

  /** What the crawl shows, job by job: only jobs that moved, are missing, or asked to be looked at are worked on. */
  async #workOn(seen: Crawl): Promise<Map<number, Work>> {
    const touched = new Map<number, { listed: Sighting; print: number } | undefined>();
    for (const [jobNumber, { print, view, look }] of seen.observations) {
      if (view) touched.set(jobNumber, { listed: { view, look }, print });
    }
    for (const [jobNumber, entry] of this.#index) {
      if (seen.observations.has(jobNumber)) continue;
      // Absence from an incomplete crawl proves nothing, so whoever is asked after because of it waits.
      const wanted = entry.phase === 'listed' ? seen.complete : isDue(entry, this.#startedAt);
      if (wanted) touched.set(jobNumber, undefined);
    }
    const works = new Map<number, Work>();
    if (touched.size === 0) return works;
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
    return works;
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
      const snapshot = before.unproven === null ? before : { ...before, departure: null };
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
    const snapshot: Snapshot = leaving
      ? {
          ...before,
          // Until now every complete crawl showed it; from here on it has a "last seen" of its own.
          listAt: sinceListed(before, this.#known),
          departure: { tries: 0, suspected: null },
          owed: { at: startedAt, tries: 0 },
        }
      : before;
    const answerable = seen.complete || snapshot.ended !== null;
    return {
      ...base,
      snapshot,
      ...(answerable && this.#owes(snapshot) ? { lookSince: snapshot.owed?.at ?? 0 } : {}),
    };
  }

  #owes({ owed }: Snapshot): boolean {
    return owed !== null && owed.at <= this.#startedAt;
  }

  /**
   * Jobs that came and went between two polls (rule 8): now and then the newest jobs are read with the closed ones, down
   * to the highest number of the last time. Whoever is new there is asked after like a missing job.
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
    try {
      // At the baseline the newest number is all that is needed: whatever is older is history.
      for (let page = 1; page <= (this.#baselined ? MAX_SWEEP_PAGES : 1); page += 1) {
        const { body } = await readListPage(client, { page, includeClosedJobs: true }, signal);
        for (const job of body.items) {
          highest = Math.max(highest, job.jobNumber);
          const known =
            job.jobNumber <= through ||
            seen.observations.has(job.jobNumber) ||
            this.#index.get(job.jobNumber);
          if (!known) unknown.set(job.jobNumber, fingerprint(listView(job)));
        }
        if (!body.hasNextPage || body.items.some((job) => job.jobNumber <= through)) break;
      }
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
    const written = [...this.#statusNames];
    const names = new Set(written);
    const discover = (work: Work) => this.#discover(work, names);
    for (const chunk of chunks(this.#account, writable, this.#index, context, discover)) {
      if (this.#deps.now() > this.#deadline - RESERVE_MS / 2)
        return { all: false, changed: changed.length, tooLarge };
      written.push(...chunk.discovered);
      await this.#write(
        chunk.events,
        chunk.writes,
        {},
        chunk.discovered.length > 0 ? { statusNames: written } : undefined,
      );
    }
    return { all: true, changed: changed.length, tooLarge };
  }

  /** Status names this account never showed before (rule 4): each is an event once, and an ordinary status from then on. */
  #discover(work: Work, names: Set<string>): Discovery {
    const found: { names: string[]; events: EventDraft[] } = { names: [], events: [] };
    for (const { status, observed } of work.shown) {
      if (names.has(status) || names.size >= MAX_STATUS_NAMES || found.names.length >= MAX_DISCOVERED)
        continue;
      names.add(status);
      found.names.push(status);
      if (!this.#baselined) continue;
      found.events.push({
        type: 'status.discovered',
        time: Date.parse(observed.at),
        data: { status, observed },
      });
    }
    return found;
  }

  get #statusNames(): readonly string[] {
    return (this.#head.attributes.statusNames as readonly string[] | undefined) ?? [];
  }

  async #write(
    events: readonly EventDraft[],
    writes: readonly Write[],
    statusAttributes: { [attribute: string]: Value | undefined },
    headAttributes: { [attribute: string]: Value | undefined } | undefined,
  ): Promise<void> {
    const outcome = await this.#deps.log.commit(this.#account, {
      revision: this.#revision,
      head: this.#head,
      events,
      writes,
      statusAttributes: { ...statusAttributes, pollId: this.#pollId },
      ...(headAttributes === undefined ? {} : { headAttributes }),
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
    all: boolean,
    swept: { sweptAt: number; sweptThrough: number } | undefined,
    identity: number | undefined,
  ): Promise<AccountState> {
    const attributes = {
      lastPollAt: this.#startedAt,
      // What a sweep found and could not be stored has to be found again.
      ...(all ? swept : {}),
      ...(identity === undefined ? {} : { identityCheckedAt: this.#startedAt }),
    };
    if (!seen.complete || !all) {
      const problem = seen.problem ?? new Error('There was no time to commit everything.');
      return this.#finish({ kind: 'failed', problem, accepted: true }, attributes);
    }
    const openJobs = seen.observations.size;
    const good = { ...attributes, lastGoodCrawlStartedAt: seen.startedAt, openJobs };
    if (this.#baselined) return this.#finish({ kind: 'good' }, good);
    return this.#finish({ kind: 'good', baselinedWith: openJobs }, good, {
      baselineStartedAt: seen.startedAt,
      baselinedAt: this.#deps.now(),
      projectionVersion: PROJECTION_VERSION,
      upstreamId: identity,
      statusNames: await this.#allStatusNames(client),
    });
  }

  /** The names met so far and those of the service's lookup: known from the start. A failing lookup harms nothing. */
  async #allStatusNames(client: OrderingClient): Promise<string[]> {
    const met = this.#statusNames;
    try {
      const lookup = (await client.jobStatuses()).body.flatMap(({ name }) => (name ? [name] : []));
      return [...new Set([...met, ...lookup])].slice(0, MAX_STATUS_NAMES);
    } catch {
      return [...met];
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

function numberOrNull(value: Value | undefined): number | null {
  return typeof value === 'number' ? value : null;
}
