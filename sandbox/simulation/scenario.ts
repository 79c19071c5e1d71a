/*
 * A reproducible stream of orders, status changes, dispatches and incidents, driven by an external clock. Where the contract is
 * silent, the sandbox chose:
 *
 * - It deletes old jobs: for each account the latest 5,000 closed and cancelled jobs stay, or twice the number of initially
 *   open jobs if that is more. Older ones are in no list and answer 404. A world without a scenario deletes nothing.
 */

import { addColleagues } from '../world/names.ts';
import { REGION_FACTS, REGIONS, type RegionCode } from '../world/regions.ts';
import type { SandboxAccount, World } from '../world/world.ts';
import { OPENING, OPENING_AGE_MS } from './initial-jobs.ts';
import { OrderedJobs } from './ordered-jobs.ts';
import { SeededRandom } from './random.ts';
import { listBuyers, type Order, type PlannedJob, planOrder, type Step } from './simulation.ts';
import { Timeline } from './timeline.ts';
import { listStateAfter, type TransitionKind } from './transitions.ts';

/** Something that happened to a job; `at` in epoch ms of the sandbox clock. */
export interface ScenarioEvent {
  at: number;
  region: RegionCode;
  account: string;
  jobNumber: number;
  kind: TransitionKind | 'created';
}

/** Options of a scenario. */
export interface ScenarioOptions {
  world: World;
  /** Same seed, same history; 1 by default. */
  seed?: number;
  /** Epoch ms. Open jobs also have a past before it, which is not in the history. */
  startAt: number;
  /**
   * Seconds of a job's life per second of the sandbox clock. Default: 1, at which a job takes about three days. Dates of jobs
   * are of the sandbox clock: at 120 a job is due within the hour, so that a tracker can use real time.
   */
  speed?: number;
  /** The accounts that order; all of the world's by default. */
  accounts?: readonly SandboxAccount[];
  /** Open jobs at the start, and about as many later; 40 by default. */
  jobsPerAccount?: number | ((account: SandboxAccount) => number);
  /** Share of the jobs that are cancelled, from 0 to 1. Default: that of `life.ts`. */
  cancelledShare?: number;
  /**
   * Whether some of the open jobs change within half a minute, at any speed, so that all kinds of changes occur. All accounts
   * together have 15 such jobs, if each has enough jobs. Default: true.
   */
  opening?: boolean;
  /** Number of an account's closed and cancelled jobs to keep. Default: 5,000, or twice the open ones if that is more. */
  keptJobs?: number;
  /** Called for each event after `startAt`. */
  onEvent?: (event: ScenarioEvent) => void;
}

/** A scenario in progress. */
export interface Scenario {
  /**
   * Runs everything up to a time (epoch ms), inclusive; an earlier time than before has no effect. The size of the time steps
   * does not change the result.
   */
  advanceTo(instantMs: number): void;
  /** Starts the life of a job that was ordered now: see `ordered-jobs.ts`. For a job that awaits artwork, fetches it again. */
  adopt(account: SandboxAccount, jobNumber: number): void;
  /** Resolves when no artwork is being fetched and all resulting moves are done. */
  settled(): Promise<void>;
  /** Aborts all fetches. */
  stop(): void;
  /** Maximum number of seconds by which to advance a clock: more takes minutes. */
  readonly longestAdvanceSeconds: number;
  /** The latest events (at least 10,000) since `startAt`, oldest first. */
  readonly history: readonly ScenarioEvent[];
}

/** A month of the clock, for sandboxes in which little happens. */
export const LONGEST_ADVANCE_SECONDS = 31 * 86_400;
/** The moves of 20,000 open jobs in a month: about a minute of work. */
const MOST_JOB_DAYS = 31 * 20_000;
/** Maximum speed at which the moves of a minute take less than a minute. */
export const fastestSpeed = (openJobs: number): number => Math.floor((MOST_JOB_DAYS * 1440) / openJobs);

/**
 * Adds customers to each region of a world, and returns them in the order in which they were added. Each has credentials of
 * all roles: `us-demo-1` of an ordinary user, `us-demo-1-admin`, `-staff` and `-viewer`, all with `-secret` behind.
 */
export function addDemoAccounts(world: World, accountsPerRegion = 1): SandboxAccount[] {
  const accounts: SandboxAccount[] = [];
  for (let index = 0; index < accountsPerRegion; index++) {
    for (const region of REGIONS) {
      const account = world.addAccount({
        region,
        name: REGION_FACTS[region].customers[index] ?? `Customer ${index + 1}`,
        clientId: `${region}-demo-${index + 1}`,
        clientSecret: `${region}-demo-${index + 1}-secret`,
        users: [
          { firstName: 'Alex', lastName: 'Order' },
          { firstName: 'Kim', lastName: 'Shop' },
        ],
      });
      accounts.push(addPeople(account));
    }
  }
  return accounts;
}

/** Adds users to an account, and credentials of all roles: its client id with `-admin`, `-staff`, `-viewer`. */
export function addPeople(account: SandboxAccount): SandboxAccount {
  addColleagues(account);
  for (const [role, suffix] of [
    ['administrator', 'admin'],
    ['staff', 'staff'],
    ['viewer', 'viewer'],
  ] as const) {
    account.addCredentials({ role, clientId: `${account.clientId}-${suffix}` });
  }
  return account;
}

/** Fills the world with jobs in their state at `startAt`, and returns the scenario that advances them. */
export function createScenario(options: ScenarioOptions): Scenario {
  const { world, startAt, onEvent } = options;
  const speed = options.speed ?? 1;
  const accounts = options.accounts ?? world.accounts();
  const { cancelledShare } = options;
  const openJobCount = (account: SandboxAccount): number =>
    typeof options.jobsPerAccount === 'function'
      ? options.jobsPerAccount(account)
      : (options.jobsPerAccount ?? 40);
  const queue = new Timeline((at, run) => world.changeAt(at, run));
  const jobDaysPerSecond =
    (accounts.reduce((sum, account) => sum + openJobCount(account), 0) * speed) / 86_400;
  let history: ScenarioEvent[] = [];

  const note = (
    at: number,
    account: SandboxAccount,
    jobNumber: number,
    kind: ScenarioEvent['kind'],
  ): void => {
    if (at <= startAt) return;
    const event = { at, region: account.region, account: account.name, jobNumber, kind };
    // Moves that follow from fetched artwork come before later ones.
    let place = history.length;
    while (place > 0 && (history[place - 1]?.at ?? 0) > at) place -= 1;
    history.splice(place, 0, event);
    if (history.length >= 20_000) history = history.slice(-10_000);
    onEvent?.(event);
  };

  const ordered = new OrderedJobs({ timeline: queue, seed: options.seed ?? 1, speed, note });

  /** Applies a step, unless an earlier change made it impossible; false if the job does not exist or was adopted. */
  const take = (account: SandboxAccount, jobNumber: number, { move }: Step, at: number): boolean => {
    const job = account.job(jobNumber);
    if (!job || ordered.has(account, job)) return false;
    if (move.possible(job)) {
      move.take(account, job, at);
      note(at, account, jobNumber, move.kind);
    }
    return true;
  };

  /** Schedules the steps of a job from an index on, one at a time. */
  const live = (
    account: SandboxAccount,
    jobNumber: number,
    bornAt: number,
    steps: readonly Step[],
    index = 0,
  ): void => {
    const step = steps[index];
    if (!step) return;
    const at = stepTime(step, bornAt);
    queue.add(at, () => {
      if (take(account, jobNumber, step, at)) live(account, jobNumber, bornAt, steps, index + 1);
    });
  };

  const retirements = new Map(
    accounts.map((account) => [
      account,
      { kept: options.keptJobs ?? Math.max(5000, 2 * openJobCount(account)), at: 0 },
    ]),
  );

  /** Forgets an account's oldest jobs that are over, some at a time since all of them are looked through for that. */
  const retire = (account: SandboxAccount): void => {
    const retirement = retirements.get(account);
    if (!retirement || account.jobCount < retirement.at) return;
    const over = [...account.jobs()].filter(({ phase }) => phase !== 'open');
    for (const { jobNumber } of over.slice(0, Math.max(0, over.length - retirement.kept))) {
      account.remove(jobNumber);
      ordered.forget(account, jobNumber);
    }
    // Doubled until it exceeds the number of kept jobs.
    const missing = Math.max(0, retirement.kept - over.length);
    retirement.at = account.jobCount + missing + Math.ceil(retirement.kept / 50) + 1;
  };

  const order = (account: SandboxAccount, at: number, { jobs, skippedNumbers }: Order): void => {
    retire(account);
    // Other accounts of the service take numbers too.
    world.skipJobNumbers(account.region, skippedNumbers);
    for (const { input, steps } of jobs) {
      const jobNumber = account.createJob(input(at));
      note(at, account, jobNumber, 'created');
      live(account, jobNumber, at, steps);
    }
  };

  /** Orders from before the start. The past of their jobs needs no timeline: a job's steps affect no other job. */
  const past: { at: number; order: () => void }[] = [];

  /**
   * An order from before the start. Its jobs are created on first access or when their next step is due. Until then only their
   * list state is stored: the rest is drawn again.
   */
  const orderBefore = (account: SandboxAccount, at: number, planned: Order, draw: () => Order): void => {
    const outlines = planned.jobs.map(({ steps, lineCount }) => {
      const behind = steps.filter((step) => stepTime(step, at) <= startAt);
      const next = steps[behind.length];
      return {
        lineCount,
        listState: listStateAfter(behind.map(({ move }) => move)),
        taken: behind.length,
        nextAt: next && stepTime(next, at),
      };
    });
    const { skippedNumbers } = planned;
    past.push({
      at,
      order: () => {
        retire(account);
        world.skipJobNumbers(account.region, skippedNumbers);
        for (const [index, { lineCount, listState, taken, nextAt }] of outlines.entries()) {
          const redraw = () => draw().jobs[index] as PlannedJob;
          const jobNumber = account.reserveJob(lineCount, listState, () => {
            const { input, steps } = redraw();
            const behind = steps.slice(0, taken);
            return {
              input: input(at),
              live: () => {
                for (const step of behind) take(account, jobNumber, step, stepTime(step, at));
              },
            };
          });
          if (nextAt === undefined) continue;
          queue.add(nextAt, () => {
            const { steps } = redraw();
            const step = steps[taken];
            if (step && take(account, jobNumber, step, nextAt))
              live(account, jobNumber, at, steps, taken + 1);
          });
        }
      },
    });
  };

  accounts.forEach((account, index) => {
    const jobsPerAccount = openJobCount(account);
    const dice = new SeededRandom((options.seed ?? 1) * 7919 + index * 104_729);
    let missing = jobsPerAccount;
    const opening = options.opening === false ? [] : OPENING.filter((_, n) => n % accounts.length === index);
    for (const act of opening) {
      const planned = act(account);
      if (planned.jobs.length > missing) continue;
      missing -= planned.jobs.length;
      orderBefore(account, startAt - OPENING_AGE_MS, planned, () => planned);
    }
    const plan = () => planOrder(new SeededRandom(dice.int(0, 2 ** 31)), account, speed, { cancelledShare });
    const buyers = listBuyers(account);
    /** Draws the age of an order from the lifetime of its jobs (ms). */
    const planBefore = (mostJobs: number, chooseAge: (livesMs: number[]) => number): Order => {
      const seed = dice.int(0, 2 ** 31);
      const draw = () =>
        planOrder(new SeededRandom(seed), account, speed, { mostJobs, buyers, cancelledShare });
      const planned = draw();
      const ageMs = chooseAge(planned.jobs.map((job) => job.leavesAfterMs));
      orderBefore(account, Math.round(startAt - ageMs), planned, draw);
      return planned;
    };

    while (missing > 0) {
      const open = planBefore(missing, (livesMs) => dice.next() * Math.min(...livesMs));
      missing -= open.jobs.length;
    }
    for (let closed = 0; closed < Math.floor(jobsPerAccount / 5); closed++) {
      planBefore(1, (livesMs) => (1 + dice.next()) * Math.max(...livesMs));
    }

    if (jobsPerAccount === 0) return;
    // As many orders arrive as jobs leave, estimated from a sample, because few open jobs would be imprecise.
    const lives = Array.from({ length: 100 }, () => plan().jobs.map((job) => job.leavesAfterMs)).flat();
    const meanGapMs = lives.reduce((sum, life) => sum + life, 0) / 100 / jobsPerAccount;
    const orderAfter = (before: number): void => {
      const at = Math.ceil(before - Math.log(1 - dice.next()) * meanGapMs);
      const next = plan();
      queue.add(at, () => {
        // Planned first, so that orders continue if this one fails.
        orderAfter(at);
        order(account, at, next);
      });
    };
    orderAfter(startAt);
  });

  past.sort((one, other) => one.at - other.at);
  for (const { order: orderThen } of past) orderThen();
  queue.runUntil(startAt);
  return {
    adopt: (account, jobNumber) => {
      const now = world.now();
      retire(account);
      if (ordered.adopt(account, jobNumber, now)) note(now, account, jobNumber, 'created');
    },
    settled: () => ordered.settled(),
    stop: () => ordered.stop(),
    longestAdvanceSeconds: Math.floor(
      Math.max(1, Math.min(LONGEST_ADVANCE_SECONDS, MOST_JOB_DAYS / jobDaysPerSecond)),
    ),
    advanceTo: (instantMs) => queue.runUntil(instantMs),
    get history() {
      return history;
    },
  };
}

/** Epoch ms at which a step is due, for a job created at `bornAt`. */
const stepTime = ({ afterMs }: Step, bornAt: number): number => Math.round(bornAt + afterMs);
