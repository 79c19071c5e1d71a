/**
 * Histories of a tracked account as fast-check values: the changes at the ordering API, the faults, and their times. Everything
 * random is in the value, so a failing history can be shrunk and repeated.
 */
import { setImmediate as turn } from 'node:timers/promises';
import fc from 'fast-check';
import type { FaultRule } from '../../sandbox/http/faults.ts';
import { keys } from '../../shared/storage/schema.ts';
import type { Table } from '../../shared/storage/table.ts';
import { pollAccount } from '../../shared/tracking/poll.ts';
import type { Snapshot } from '../../shared/tracking/snapshot.ts';
import { sameTime } from '../../shared/tracking/timestamps.ts';
import {
  createFreedoms,
  type RoundFreedom,
  roundFreedoms,
  type WorldFreedom,
  worldFreedoms,
} from './freedom.ts';
import { createFreedomLedger } from './freedom-oracle.ts';
import { type Change, changes, createHistory, creation, faults } from './history.ts';
import { wireTo } from './in-process-upstream.ts';
import { createLedger } from './oracle.ts';
import { rollupProblems } from './rollup-oracle.ts';
import { createRig, START, type TableCall, watchedTable } from './tracker.ts';

/** Disturbances of one poll. */
interface Conduct {
  /** Changes immediately before the n-th request is answered. */
  readonly during: readonly { readonly request: number; readonly change: Change }[];
  /** Failing requests, counted from the beginning of the poll. */
  readonly faults: readonly FaultRule[];
  /** The request whose response, though computed in time, arrives after all other responses in progress. */
  readonly slow: number | null;
  /** The process dies at its n-th write, before or after it takes effect. */
  readonly crash: { readonly write: number; readonly when: When } | null;
}

/** A poll, and the changes before it. */
interface Turn extends Conduct {
  readonly waitSeconds: number;
  readonly changes: readonly Change[];
  /** Freedoms that the API uses in this round, if its contract has any. */
  readonly freedom?: RoundFreedom | null;
}

/** A turn, optionally with a turn of another process that runs while this poll's n-th request or table call is paused. */
interface Round extends Turn {
  readonly overlap: {
    readonly at: 'request' | 'table call';
    readonly nth: number;
    readonly when: When;
    readonly by: Turn;
  } | null;
}

type When = 'before' | 'after';

/** A whole history. */
interface ModelHistory {
  readonly leavesListOnDispatch: boolean;
  readonly pageSize: number;
  readonly fetchesPerPoll: number;
  /** Freedoms of the contract that the API uses. Default: none, so the views may not differ. */
  readonly freedom?: WorldFreedom;
  /** The initial jobs, and their changes before tracking began. */
  readonly jobs: readonly Change[];
  readonly past: readonly Change[];
  /** The baseline is undisturbed. Otherwise it is completed in the first rounds. */
  readonly baselined: boolean;
  readonly rounds: readonly Round[];
}

const HOUR = 3600;
const DAY = 24 * HOUR;
const RENAMING = { from: 'In production', to: 'Printing' };
const MOST_JOBS_AT_FIRST = 8;

/** Null in most cases, and when shrinking. */
function rarely<T>(one: number, arbitrary: fc.Arbitrary<T>): fc.Arbitrary<T | null> {
  return fc.oneof(
    { withCrossShrink: true },
    { weight: one, arbitrary: fc.constant(null) },
    { weight: 1, arbitrary },
  );
}

const change = changes(10);
const when = fc.constantFrom<When[]>('before', 'after');
const turns = {
  /** Mostly the poll interval; also longer than a departure takes to be confirmed, and longer than a job settles. */
  waitSeconds: fc.oneof(
    { withCrossShrink: true },
    { weight: 12, arbitrary: fc.constant(60) },
    { weight: 6, arbitrary: fc.constantFrom(300, 450, 900, 1000, HOUR, 6 * HOUR) },
    { weight: 1, arbitrary: fc.constantFrom(25 * HOUR, 8 * DAY) },
  ),
  changes: fc.array(change, { maxLength: 4 }),
  during: fc.array(fc.record({ request: fc.integer({ min: 1, max: 16 }), change }), { maxLength: 3 }),
  faults: rarely(2, fc.array(faults, { minLength: 1, maxLength: 2 })).map((rules) => rules ?? []),
  slow: rarely(2, fc.integer({ min: 1, max: 10 })),
  crash: rarely(5, fc.record({ write: fc.integer({ min: 1, max: 3 }), when })),
};
const getRounds = <T extends typeof turns>(turns: T) =>
  fc.record({
    ...turns,
    overlap: rarely(
      2,
      fc.record({
        at: fc.constantFrom('request', 'table call'),
        nth: fc.integer({ min: 1, max: 12 }),
        when,
        by: fc.record(turns),
      }),
    ),
  }) as fc.Arbitrary<Round>;

const common = {
  leavesListOnDispatch: fc.boolean(),
  pageSize: fc.constantFrom(4, 2, 5, 100),
  fetchesPerPoll: fc.constantFrom(60, 60, 60, 4),
  jobs: fc.array(creation, { maxLength: MOST_JOBS_AT_FIRST }),
  past: fc.array(change, { maxLength: 4 }),
  baselined: fc.constantFrom(true, true, true, false),
};

/** Histories of up to a dozen jobs, on a few pages. */
export const histories: fc.Arbitrary<ModelHistory> = fc.record({
  ...common,
  rounds: fc.array(getRounds(turns), { minLength: 1, maxLength: 12 }),
});

/** A rename before the baseline is not one for a tracker that never read the former name. */
const freePast = change.map(inBothViews);
const freeChange = fc.oneof(
  { weight: 30, arbitrary: freePast },
  {
    weight: 1,
    arbitrary: fc.record({
      do: fc.constant('prefix' as const),
      job: fc.nat(9),
      count: fc.constantFrom(1, 3),
    }),
  },
  { weight: 1, arbitrary: fc.constant({ do: 'rename' as const, ...RENAMING }) },
);
const freeTurns = {
  ...turns,
  changes: fc.array(freeChange, { maxLength: 4 }),
  during: fc.array(fc.record({ request: fc.integer({ min: 1, max: 16 }), change: freePast }), {
    maxLength: 2,
  }),
  // If the lookup fails, a renamed status counts as another status (rule 4).
  faults: rarely(
    4,
    fc.array(
      faults.filter(({ match }) => isOfOneKind(match?.operation)),
      { minLength: 1, maxLength: 1 },
    ),
  ).map((rules) => rules ?? []),
  freedom: roundFreedoms,
};

/** Histories of an API that uses the freedoms of its contract. */
export const freeHistories: fc.Arbitrary<ModelHistory> = fc.record({
  ...common,
  past: fc.array(freePast, { maxLength: 4 }),
  baselined: fc.constant(true),
  freedom: worldFreedoms,
  rounds: fc.array(getRounds(freeTurns), { minLength: 1, maxLength: 12 }),
});

/**
 * List and detail use the same status names: otherwise the tests could not distinguish an outdated view from a different one.
 */
function inBothViews(change: Change): Change {
  return change.do === 'status' ? { ...change, view: 'both' } : change;
}

function isOfOneKind(operation: string | undefined): boolean {
  return operation !== undefined && operation !== 'jobStatuses';
}

/**
 * Returns the waits (s) before each poll after the last change and the last fault, until the log contains everything that the
 * ordering API shows. That takes five polls:
 * - Immediately: the list is read. Failed detail fetches are repeated within 15 minutes.
 * - After 15 minutes, each departure is investigated. After another 15 minutes, its result is confirmed.
 * - Detail fetches without a result, and those of settling jobs, are at most a day apart. So a day later, every job that may
 *   have changed was fetched. Half an hour after that, its result is confirmed: an undecided departure that was first
 *   investigated by the third poll is closed by its third investigation, 30 minutes after the second one.
 * If a poll fetches fewer details than there are jobs, each of the five is repeated until all jobs were fetched.
 */
export function settlingWaits(jobs: number, fetchesPerPoll: number): number[] {
  return [60, 900, 900, DAY, 1800].flatMap((seconds) => repeated(seconds, jobs, fetchesPerPoll));
}

/**
 * Returns the waits until the delisted jobs have settled (seven days). No further events are allowed then. The first poll makes
 * up for a sweep that the poll before left to the next one: settling can begin anew with it (rule 7).
 */
export function farewellWaits(jobs: number, fetchesPerPoll: number): number[] {
  return [60, 8 * DAY, 60].flatMap((seconds) => repeated(seconds, jobs, fetchesPerPoll));
}

function hasOtherDateThanList({ list, emitted }: Snapshot): boolean {
  return list !== null && list.dateOut !== null && !sameTime(list.dateOut, emitted.dateOut);
}

function repeated(seconds: number, jobs: number, fetchesPerPoll: number): number[] {
  return [seconds, ...Array.from({ length: Math.max(0, Math.ceil(jobs / fetchesPerPoll) - 1) }, () => 60)];
}

/** Runs a history against a tracker on this table, and returns the errors of the log as messages. `table` must be empty. */
export async function play(model: ModelHistory, table: Table): Promise<readonly string[]> {
  const rig = await createRig({
    table,
    leavesListOnDispatch: model.leavesListOnDispatch,
    settings: { fetchesPerPoll: model.fetchesPerPoll },
  });
  const { upstream, sandbox } = rig;
  const history = createHistory(upstream, rig, { isDriftBrief: model.freedom !== undefined });
  const freedoms =
    model.freedom && createFreedoms(model.freedom, history, (settings) => sandbox.freedom.set(settings));
  const ledger = freedoms ? createFreedomLedger(history, freedoms.sight) : createLedger(history);
  let baselinedAt: number | undefined;

  /** The log begins with the stored state at the completion of the baseline, whatever happens next. */
  async function noteBaseline(call: TableCall): Promise<void> {
    if (baselinedAt !== undefined || call.call !== 'transact' || !call.of.includes('INDEX')) return;
    const head = await table.get(keys.head(rig.ref));
    if (typeof head?.baselinedAt !== 'number') return;
    ledger.begin(await rig.snapshots(), Number(head.baselineStartedAt));
    baselinedAt = head.baselinedAt;
  }

  /** A process that polls the account until it dies. */
  function createProcess() {
    let conduct: Turn = QUIET;
    let held: Held | undefined;
    let requests = 0;
    let requestsBefore = 0;
    let writes = 0;
    let dead = false;

    async function meet(at: Held['at'], nth: number, moment: When): Promise<void> {
      if (held?.at !== at || held.nth !== nth || held.when !== moment) return;
      const { until } = held;
      held = undefined;
      await until();
    }
    function live(): void {
      if (dead) throw new Error('This process is gone.');
    }
    function writeIs(moment: When): void {
      dead ||= conduct.crash?.when === moment && conduct.crash.write === writes;
      live();
    }

    const watched = watchedTable(table, {
      async before(call) {
        live();
        await meet('table call', watched.calls.length, 'before');
        if (!isWrite(call)) return;
        writes += 1;
        writeIs('before');
      },
      async after(call) {
        await noteBaseline(call);
        await meet('table call', watched.calls.indexOf(call) + 1, 'after');
        if (isWrite(call)) writeIs('after');
      },
    });
    const fetch = wireTo(sandbox, {
      pageSize: model.pageSize,
      async before(request) {
        live();
        requests = request;
        rig.pass(0.001);
        const nth = request - requestsBefore;
        for (const { request: at, change } of conduct.during) if (at === nth) history.apply(change);
        await meet('request', nth, 'before');
      },
      async after(request) {
        const nth = request - requestsBefore;
        await meet('request', nth, 'after');
        if (conduct.slow === nth) await turn();
      },
    });
    const deps = rig.depsOver(watched, fetch);

    return {
      isDead: () => dead,
      /** Runs a turn. `hold` is awaited where the poll is paused. */
      async take(next: Turn, hold?: Held): Promise<void> {
        conduct = next;
        held = hold;
        requestsBefore = requests;
        watched.calls.length = 0;
        writes = 0;
        rig.pass(next.waitSeconds);
        for (const each of next.changes) history.apply(each);
        history.unhide('locked for too long');
        freedoms?.apply(next.freedom ?? null);
        for (const rule of next.faults) rig.fault(rule);
        try {
          await pollAccount(deps, rig.ref, rig.now() + 600_000);
        } catch (cause) {
          if (!dead) throw cause;
        }
      },
    };
  }

  const processes = [createProcess(), createProcess()];
  async function take(next: Turn, overlap: Round['overlap'] = null): Promise<void> {
    for (const [n, { isDead }] of processes.entries()) if (isDead()) processes[n] = createProcess();
    const [one, other] = processes as [ReturnType<typeof createProcess>, ReturnType<typeof createProcess>];
    if (overlap) {
      const { promise: reached, resolve: reach } = Promise.withResolvers<void>();
      const { promise: released, resolve: release } = Promise.withResolvers<void>();
      const until = () => {
        reach();
        return released;
      };
      const late = one.take(next, { ...overlap, until });
      await Promise.race([reached, late]);
      await check();
      await other.take(overlap.by);
      await check();
      release();
      await late;
    } else {
      await one.take(next);
    }
    sandbox.faults.clear();
    await check();
  }
  async function check(): Promise<void> {
    ledger.take(await rig.fresh());
    ledger.compare(await rig.snapshots());
  }

  // Without another job, searches prove nothing, so an inferred end is never emitted.
  freedoms?.apply(null);
  history.addBystander();
  for (const each of [...model.jobs, ...model.past]) history.apply(each);
  // By then, every view contains the first jobs.
  if (freedoms) rig.pass(freedoms.longestLagSeconds);
  if (model.baselined) await take(QUIET);
  for (const round of model.rounds) {
    await take(round, round.overlap);
    // Further rounds would only repeat the error.
    if (ledger.problems.length > 0) return ledger.problems;
  }

  history.unhide('all');
  const lastFaultAt = Math.max(0, ...sandbox.requests.list().flatMap(({ at, fault }) => (fault ? [at] : [])));
  const { fetchesPerPoll } = model;
  const rotation = () => [DAY, ...history.everyJob.map(() => 60)];
  const waits = settlingWaits(history.jobs.length, fetchesPerPoll);
  if (freedoms) {
    // Until every view contains the last changes, and throttled requests are permitted again.
    waits.unshift(freedoms.longestLagSeconds + 600, 60);
    // Until the detail of every job was fetched for values that the list does not contain (rule 8): at the end, one per poll.
    waits.push(...rotation(), 900, 900);
  }
  for (const waitSeconds of waits) {
    await take({ ...QUIET, waitSeconds });
  }
  // Only the detail can show that a correction of the dispatch date that the list never showed was reversed.
  if ((await rig.snapshots()).some(hasOtherDateThanList)) {
    for (const waitSeconds of rotation()) await take({ ...QUIET, waitSeconds });
  }
  ledger.settle({
    snapshots: await rig.snapshots(),
    index: await rig.index(),
    baselinedAt: baselinedAt ?? 0,
    lastFaultAt,
  });
  for (const waitSeconds of farewellWaits(history.jobs.length, fetchesPerPoll)) {
    await take({ ...QUIET, waitSeconds });
  }
  ledger.farewell(await rig.index());
  const known = { events: ledger.events, snapshots: await rig.snapshots() };
  const counted = await rollupProblems(table, rig.ref, known, { from: START, to: rig.now() });
  return [...ledger.problems, ...counted];
}

/** Where a poll is paused, and until when. */
interface Held {
  readonly at: 'request' | 'table call';
  readonly nth: number;
  readonly when: When;
  readonly until: () => Promise<void>;
}

const QUIET: Turn = { waitSeconds: 60, changes: [], during: [], faults: [], slow: null, crash: null };

function isWrite({ call }: TableCall): boolean {
  return call === 'write' || call === 'transact';
}
