// Jobs that live by themselves: a reproducible stream of orders, moves, dispatches and mishaps, driven by a clock from outside.

import { startOfDay, writeDay } from './dates.ts';
import { LOCATIONS, REGIONS, type RegionCode, type Stage } from './regions.ts';
import { AWKWARD_TEXTS, CARRIERS, CUSTOMERS, DESIGNS, GARMENTS, ORIGINS, PROCESSES } from './wares.ts';
import type { JobInput, JobRecord, SandboxAccount, TrackingEntry, World } from './world.ts';

/** What can happen in a scenario. */
type ScenarioEventKind =
  | 'created'
  | 'status'
  | 'line status'
  | 'edited'
  | 'due date changed'
  | 'locked'
  | 'unlocked'
  | 'dispatched'
  | 'tracking added'
  | 'tracking link filled in'
  | 'tracking corrected'
  | 'dispatch date corrected'
  | 'dispatch revoked'
  | 'invoiced'
  | 'closed'
  | 'reopened'
  | 'cancelled';

/** Something that happened to a job; `at` in epoch ms of the sandbox clock. */
export interface ScenarioEvent {
  at: number;
  region: RegionCode;
  account: string;
  jobNumber: number;
  kind: ScenarioEventKind;
}

/** What a scenario is made of. */
export interface ScenarioOptions {
  world: World;
  /** Same seed, same history; 1 by default. */
  seed?: number;
  /** Epoch ms. What open jobs went through before is told too, but not in the history. */
  startAt: number;
  /**
   * Seconds of a job's life that go by in a second of the sandbox clock; 1 by default, where a job takes about three days.
   * The dates jobs show are of the sandbox clock: at 120 a job is due within the hour. So a tracker beside a hurried sandbox
   * may live on the real clock.
   */
  speed?: number;
  /** The accounts that order; all of the world's by default. */
  accounts?: readonly SandboxAccount[];
  /** Open jobs at the start, and about as many later; 40 by default. */
  jobsPerAccount?: number;
  /** A dozen jobs made to show something of everything in the first half minute, whatever the speed; true by default. */
  opening?: boolean;
  /** Told of each event after `startAt` as it is applied. */
  onEvent?: (event: ScenarioEvent) => void;
}

/** A scenario in progress. */
export interface Scenario {
  /**
   * Lets everything happen up to and including an instant (epoch ms); an earlier one than before does nothing. How many
   * steps it takes to get somewhere makes no difference.
   */
  advanceTo(instantMs: number): void;
  /** The latest events (at least 10,000) since `startAt`, oldest first. */
  readonly history: readonly ScenarioEvent[];
}

/** Adds customers to each region of a world, and returns them in the order in which they were added. */
export function addDemoAccounts(world: World, accountsPerRegion = 1): SandboxAccount[] {
  const accounts: SandboxAccount[] = [];
  for (let index = 0; index < accountsPerRegion; index++) {
    for (const region of REGIONS) {
      accounts.push(
        world.addAccount({
          region,
          name: CUSTOMERS[region][index] ?? `Customer ${index + 1}`,
          clientId: `${region}-demo-${index + 1}`,
          clientSecret: `${region}-demo-${index + 1}-secret`,
          users: [
            { firstName: 'Alex', lastName: 'Order' },
            { firstName: 'Kim', lastName: 'Shop' },
          ],
        }),
      );
    }
  }
  return accounts;
}

/** Fills the world with jobs as they stand at `startAt`, and returns the clockwork that moves them on. */
export function createScenario(options: ScenarioOptions): Scenario {
  const { world, startAt, onEvent } = options;
  const speed = options.speed ?? 1;
  const accounts = options.accounts ?? world.accounts();
  const jobsPerAccount = options.jobsPerAccount ?? 40;
  const queue = new Timeline();
  let history: ScenarioEvent[] = [];

  const note = (at: number, account: SandboxAccount, jobNumber: number, kind: ScenarioEventKind): void => {
    if (at <= startAt) return;
    const event = { at, region: account.region, account: account.name, jobNumber, kind };
    history.push(event);
    if (history.length >= 20_000) history = history.slice(-10_000);
    onEvent?.(event);
  };

  /** Puts the steps of a job's life on the timeline, one at a time. */
  const live = (
    account: SandboxAccount,
    jobNumber: number,
    bornAt: number,
    steps: Step[],
    index = 0,
  ): void => {
    const step = steps[index];
    if (!step) return;
    const at = Math.round(bornAt + step.afterMs);
    queue.add(at, () => {
      const job = account.job(jobNumber);
      // Someone else may have moved the job meanwhile: then this step is not taken.
      if (job && step.possible(job)) {
        step.take(account, job, at);
        note(at, account, jobNumber, step.kind);
      }
      if (job) live(account, jobNumber, bornAt, steps, index + 1);
    });
  };

  const order = (account: SandboxAccount, at: number, { jobs, skippedNumbers }: Order): void => {
    // Other accounts of the service take numbers too.
    world.skipJobNumbers(account.region, skippedNumbers);
    for (const { input, steps } of jobs) {
      const jobNumber = account.createJob(input(at));
      note(at, account, jobNumber, 'created');
      live(account, jobNumber, at, steps);
    }
  };

  accounts.forEach((account, index) => {
    const dice = new Dice((options.seed ?? 1) * 7919 + index * 104_729);
    const opening =
      options.opening === false
        ? []
        : OPENING.filter((_, n) => n % accounts.length === index).map((plan) => plan(account));
    for (const planned of opening) {
      const at = startAt - OPENING_AGE_MS;
      queue.add(at, () => order(account, at, planned));
    }
    const plan = (mostJobs?: number) => planOrder(new Dice(dice.int(0, 2 ** 31)), account, speed, mostJobs);
    const orderBefore = (planned: Order, ageMs: number): void => {
      const at = Math.round(startAt - ageMs);
      queue.add(at, () => order(account, at, planned));
    };

    for (let missing = jobsPerAccount - opening.flatMap(({ jobs }) => jobs).length; missing > 0; ) {
      const open = plan(missing);
      orderBefore(open, dice.next() * Math.min(...open.jobs.map((job) => job.leavesAfterMs)));
      missing -= open.jobs.length;
    }
    for (let closed = 0; closed < Math.floor(jobsPerAccount / 5); closed++) {
      const gone = plan(1);
      orderBefore(gone, (1 + dice.next()) * Math.max(...gone.jobs.map((job) => job.leavesAfterMs)));
    }

    if (jobsPerAccount === 0) return;
    // As many come as leave: told from a sample, since few open jobs would tell little.
    const lives = Array.from({ length: 100 }, () => plan().jobs.map((job) => job.leavesAfterMs)).flat();
    const meanGapMs = lives.reduce((sum, life) => sum + life, 0) / 100 / jobsPerAccount;
    const orderAfter = (before: number): void => {
      const at = Math.ceil(before - Math.log(1 - dice.next()) * meanGapMs);
      const next = plan();
      queue.add(at, () => {
        order(account, at, next);
        orderAfter(at);
      });
    };
    orderAfter(startAt);
  });

  queue.runUntil(startAt);
  return {
    advanceTo: (instantMs) => queue.runUntil(instantMs),
    get history() {
      return history;
    },
  };
}

/** One move of a job, so long after its creation. */
interface Step {
  afterMs: number;
  kind: ScenarioEventKind;
  possible: (job: Readonly<JobRecord>) => boolean;
  take: (account: SandboxAccount, job: Readonly<JobRecord>, at: number) => void;
}

/** A job to come: what it is created with, and everything that will happen to it. */
interface PlannedJob {
  input: (bornAt: number) => JobInput;
  steps: Step[];
  /** When it leaves the active list. */
  leavesAfterMs: number;
}

/** Jobs ordered together, and how many job numbers others took before. */
interface Order {
  jobs: PlannedJob[];
  skippedNumbers: number;
}

const HOUR_MS = 3_600_000;
const DAY_MS = 24 * HOUR_MS;
const undispatched = (job: Readonly<JobRecord>) => job.phase === 'open' && job.dateOut === null;
const dispatched = (job: Readonly<JobRecord>) => job.phase !== 'cancelled' && job.dateOut !== null;

/** Everything about an order is drawn here, before any of it happens: so it cannot depend on how time is cut. */
function planOrder(dice: Dice, account: SandboxAccount, speed: number, mostJobs = 4): Order {
  const wanted = dice.chance(0.15) ? dice.int(2, 4) : 1;
  const jobCount = Math.min(wanted, mostJobs);
  const group = jobCount > 1 ? `WEB-${dice.int(100_000, 999_999)}` : null;
  const orderNumber = dice.chance(0.9)
    ? `${dice.pick(['PO-', 'SO', '#', ''])}${dice.int(1000, 99_999)}`
    : null;
  const jobs: PlannedJob[] = [];
  for (let index = 0; index < jobCount; index++) {
    const { steps, firstStage, lineCount, collected } = planLife(dice, account.region, speed);
    const leaving = steps.find(({ kind }) => kind === 'closed' || kind === 'cancelled');
    jobs.push({
      input: planInput(dice, account, speed, { group, index, orderNumber, firstStage, lineCount, collected }),
      steps,
      leavesAfterMs: leaving?.afterMs ?? 0,
    });
  }
  return { jobs, skippedNumbers: dice.int(0, 3) };
}

function planInput(
  dice: Dice,
  account: SandboxAccount,
  speed: number,
  given: {
    group: string | null;
    index: number;
    orderNumber: string | null;
    firstStage: Stage;
    lineCount: number;
    collected: boolean;
  },
): (bornAt: number) => JobInput {
  const location = dice.pick(LOCATIONS[account.region]);
  const zone = location.timezone;
  const dueAfterMs = dice.hours(36, 120) / speed;
  const wholeDay = dice.chance(dueAfterMs >= DAY_MS ? 0.65 : 0.2);
  const design = dice.pick(DESIGNS);
  const status = account.world.statusName(account.region, given.firstStage);
  const lines = Array.from({ length: given.lineCount }, (_, line) => ({
    processCode: dice.pick(PROCESSES),
    garment: dice.pick(GARMENTS),
    description: design,
    quantity: dice.int(1, 25) * 12,
    unitPrice: dice.int(90, 620) / 100,
    customerReference: `${design.slice(0, 3).toUpperCase()}-${line + 1}`,
    gang: dice.chance(0.5) ? `G${dice.int(100, 999)}` : null,
    jobLineStatus: status,
  }));
  const rest: JobInput = {
    status,
    location,
    lines,
    description: dice.chance(0.12) ? dice.pick(AWKWARD_TEXTS) : `${design} × ${lines.length}`,
    comments: dice.chance(0.15) ? dice.pick(AWKWARD_TEXTS) : null,
    orderNumber: given.orderNumber,
    orderGroup: given.group,
    orderGroupSequence: given.group === null ? null : given.index + 1,
    originCode: given.group === null ? dice.pick(ORIGINS) : 'SHOP',
    userId: dice.pick(account.users.map(({ id }) => id)),
    mustDate: dice.chance(0.2),
    taxTotal: dice.int(0, 9000) / 100,
    deliveryOption: given.collected ? 'Collection' : dice.pick(CARRIERS[account.region]).name,
    tags: dice.chance(0.2) ? ['rush'] : [],
  };
  return (bornAt) => ({
    ...rest,
    dateIn: bornAt,
    dateDue: dueDate(bornAt + dueAfterMs, zone, wholeDay, dueAfterMs, account),
  });
}

/** A day, five in the afternoon of that day, or in a hurried world the next full minute. */
function dueDate(
  ms: number,
  zone: string | null,
  wholeDay: boolean,
  dueAfterMs: number,
  account: SandboxAccount,
): JobInput['dateDue'] {
  if (wholeDay) return writeDay(ms, zone, account.dateStyle);
  return dueAfterMs >= DAY_MS ? startOfDay(ms, zone) + 17 * HOUR_MS : Math.ceil(ms / 60_000) * 60_000;
}

/** Draws a job's life; hours are those of a factory that works round the clock. */
function planLife(
  dice: Dice,
  region: RegionCode,
  speed: number,
): { steps: Step[]; firstStage: Stage; lineCount: number; collected: boolean } {
  const steps: Step[] = [];
  let clockMs = 0;
  const wait = (fromHours: number, toHours: number) => {
    clockMs += dice.hours(fromHours, toHours);
  };
  const add = (step: Omit<Step, 'afterMs'>, laterMs = 0) =>
    steps.push({ ...step, afterMs: (clockMs + laterMs) / speed });
  /** Detail and list often learn of a move at different times. */
  const status = (stage: Stage): void => {
    if (dice.chance(0.5)) {
      add(setStatus(stage));
    } else {
      add(setStatus(stage, ['jobStatus']));
      add(setStatus(stage, ['masterJobStatus']), dice.hours(0.05, 0.4));
    }
  };
  const lineMoves = (stage: Stage) => {
    for (let line = 0; line < lineCount; line++) add(setLineStatus(line, stage), dice.hours(0, 1.5));
  };
  const lineCount = dice.int(1, 4);
  const collected = dice.chance(0.06);
  const firstStage: Stage = dice.chance(0.3) ? 'artwork' : 'intake';
  const done = () => ({
    steps: steps.sort((a, b) => a.afterMs - b.afterMs),
    firstStage,
    lineCount,
    collected,
  });

  if (firstStage === 'artwork') {
    wait(2, 18);
    status('intake');
  }
  if (dice.chance(0.15)) {
    const input: JobInput = dice.chance(0.5)
      ? { orderNumber: `PO-${dice.int(1000, 99_999)}-R` }
      : { description: dice.chance(0.4) ? dice.pick(AWKWARD_TEXTS) : `${dice.pick(DESIGNS)} (amended)` };
    add(changeText(input), dice.hours(0.2, 0.5));
  }
  wait(0.5, 5);
  status('scheduled');
  if (dice.chance(0.1)) {
    wait(1, 4);
    status('hold');
    wait(2, 16);
    status('scheduled');
  }
  if (dice.chance(0.12)) add(changeDueDate(dice.pick([-12, 24, 24, 48]), speed), dice.hours(0, 2));
  if (dice.chance(0.07)) {
    wait(0.5, 3);
    add(CANCEL);
    return done();
  }
  wait(2, 20);
  status('production');
  lineMoves('production');
  if (dice.chance(0.03)) {
    add(LOCK, dice.hours(0.5, 1));
    add(UNLOCK, dice.hours(1.5, 3));
  }
  if (dice.chance(0.08)) {
    wait(1, 3);
    status('hold');
    wait(1, 4);
    status('production');
  }
  wait(4, 16);
  status('finishing');
  lineMoves('finishing');
  wait(2, 5);
  status('packing');
  wait(0.5, 8);

  const parcel = (): TrackingEntry => {
    const carrier = dice.pick(CARRIERS[region]);
    const trackingNumber = `${carrier.prefix}${dice.int(100_000_000, 999_999_999)}`;
    return { trackingNumber, trackingLink: carrier.link && carrier.link + trackingNumber };
  };
  const ship = () => {
    const roll = dice.next();
    const first = parcel();
    if (collected) {
      add(dispatch([]));
    } else if (roll < 0.6) {
      add(dispatch([first]));
    } else if (roll < 0.72) {
      const trackingLink = first.trackingLink ?? `https://trace.example/${first.trackingNumber}`;
      add(dispatch([{ ...first, trackingLink: null }]));
      add(fillInLink({ ...first, trackingLink }), dice.hours(0.5, 5));
    } else if (roll < 0.85) {
      add(dispatch([first, parcel()]));
    } else {
      add(dispatch([]));
      add(addTracking(first), dice.hours(0.3, 5));
    }
  };
  ship();
  if (dice.chance(0.015)) {
    wait(1, 4);
    add(REVOKE_DISPATCH);
    wait(2, 8);
    ship();
  }
  for (let line = 0; line < lineCount; line++)
    add(setLineStatus(line, 'shipped', dispatched), dice.hours(0, 0.2));
  if (dice.chance(0.04)) add(correctDateOut(dice.hours(0.2, 2) / speed), dice.hours(0.5, 4));
  if (!collected && dice.chance(0.02)) add(correctTracking(parcel()), dice.hours(2, 5));
  if (dice.chance(0.9)) add(INVOICE, dice.hours(0.5, 6));
  wait(6, 30);
  add(CLOSE);
  if (dice.chance(0.04)) {
    wait(6, 48);
    add(REOPEN);
    wait(6, 24);
    add(CLOSE);
  }
  return done();
}

function setStatus(
  stage: Stage,
  views: readonly ('masterJobStatus' | 'jobStatus')[] = ['masterJobStatus', 'jobStatus'],
): Omit<Step, 'afterMs'> {
  return {
    kind: 'status',
    possible: undispatched,
    take: (account, { jobNumber }) => {
      const name = account.world.statusName(account.region, stage);
      account.edit(jobNumber, Object.fromEntries(views.map((view) => [view, name])));
    },
  };
}

/** Gives a job a status that the region's lookup did not have before. */
function meetNewStatus(name: string): Omit<Step, 'afterMs'> {
  return {
    kind: 'status',
    possible: undispatched,
    take: (account, { jobNumber }) => {
      const { world, region } = account;
      if (!world.statuses(region).some((status) => status.name === name)) {
        world.addStatus(region, name, 'production');
      }
      account.setStatus(jobNumber, name);
    },
  };
}

function setLineStatus(line: number, stage: Stage, possible = undispatched): Omit<Step, 'afterMs'> {
  return {
    kind: 'line status',
    possible: (job) => possible(job) && job.lines[line] !== undefined,
    take: (account, { jobNumber }) =>
      account.setLineStatus(jobNumber, line, account.world.statusName(account.region, stage)),
  };
}

function changeText(input: JobInput): Omit<Step, 'afterMs'> {
  return {
    kind: 'edited',
    possible: undispatched,
    take: (account, { jobNumber }) => account.edit(jobNumber, input),
  };
}

function changeDueDate(byHours: number, speed: number): Omit<Step, 'afterMs'> {
  return {
    kind: 'due date changed',
    possible: (job) => undispatched(job) && !Number.isNaN(job.dueMs),
    take: (account, job) => {
      const zone = job.location?.timezone ?? null;
      // A day as due date moves by days, however hurried the world is.
      const dateDue = /T00:00:00/.test(job.dateDue ?? '')
        ? writeDay(job.dueMs - 1 + Math.sign(byHours) * DAY_MS, zone, account.dateStyle)
        : Math.ceil((job.dueMs + (byHours * HOUR_MS) / speed) / 60_000) * 60_000;
      account.edit(job.jobNumber, { dateDue });
    },
  };
}

function dispatch(tracking: TrackingEntry[]): Omit<Step, 'afterMs'> {
  return {
    kind: 'dispatched',
    possible: undispatched,
    take: (account, { jobNumber }, at) =>
      account.dispatch(jobNumber, {
        dateOut: at,
        tracking,
        status: account.world.statusName(account.region, 'shipped'),
      }),
  };
}

function addTracking(entry: TrackingEntry): Omit<Step, 'afterMs'> {
  return {
    kind: 'tracking added',
    possible: dispatched,
    take: (account, { jobNumber }) => account.addTracking(jobNumber, entry),
  };
}

function fillInLink(entry: TrackingEntry): Omit<Step, 'afterMs'> {
  const same = (other: TrackingEntry) => other.trackingNumber === entry.trackingNumber;
  return {
    kind: 'tracking link filled in',
    possible: (job) => dispatched(job) && job.tracking.some(same),
    take: (account, job) =>
      account.setTracking(
        job.jobNumber,
        job.tracking.map((other) => (same(other) ? entry : other)),
      ),
  };
}

function correctTracking(entry: TrackingEntry): Omit<Step, 'afterMs'> {
  return {
    kind: 'tracking corrected',
    possible: (job) => dispatched(job) && job.tracking.length > 0,
    take: (account, job) => account.setTracking(job.jobNumber, [entry, ...job.tracking.slice(1)]),
  };
}

function correctDateOut(byMs: number): Omit<Step, 'afterMs'> {
  return {
    kind: 'dispatch date corrected',
    possible: dispatched,
    take: (account, job) => account.correctDateOut(job.jobNumber, Math.round(job.outMs - byMs)),
  };
}

const CANCEL: Omit<Step, 'afterMs'> = {
  kind: 'cancelled',
  possible: undispatched,
  take: (account, { jobNumber }) => account.cancel(jobNumber),
};

const LOCK: Omit<Step, 'afterMs'> = {
  kind: 'locked',
  possible: undispatched,
  take: (account, { jobNumber }) => account.lock(jobNumber, 'On the press.'),
};

const UNLOCK: Omit<Step, 'afterMs'> = {
  kind: 'unlocked',
  possible: (job) => undispatched(job) && job.permissions?.canEdit === false,
  take: (account, { jobNumber }) => account.unlock(jobNumber),
};

const REVOKE_DISPATCH: Omit<Step, 'afterMs'> = {
  kind: 'dispatch revoked',
  possible: (job) => dispatched(job) && job.phase === 'open',
  take: (account, { jobNumber }) => {
    account.clearDateOut(jobNumber);
    account.edit(jobNumber, { tracking: [], status: account.world.statusName(account.region, 'packing') });
  },
};

const INVOICE: Omit<Step, 'afterMs'> = {
  kind: 'invoiced',
  possible: (job) => dispatched(job) && job.invoiceNumber === null,
  take: (account, { jobNumber }) => account.invoice(jobNumber),
};

const CLOSE: Omit<Step, 'afterMs'> = {
  kind: 'closed',
  possible: (job) => job.phase === 'open',
  take: (account, { jobNumber }) =>
    account.close(jobNumber, { status: account.world.statusName(account.region, 'closed') }),
};

const REOPEN: Omit<Step, 'afterMs'> = {
  kind: 'reopened',
  possible: (job) => job.phase === 'closed',
  take: (account, { jobNumber }) =>
    account.reopen(jobNumber, { status: account.world.statusName(account.region, 'returned') }),
};

/** An act of the opening: a job or group whose moves come at given seconds after the start, shared out among accounts. */
type Act = (account: SandboxAccount) => Order;

type Move = readonly [secondsAfterStart: number, step: Omit<Step, 'afterMs'>];

/** How long before the start the jobs of the opening were created. */
const OPENING_AGE_MS = HOUR_MS / 2;

/** The order group of the opening whose jobs are dispatched at once. */
export const SHARED_GROUP = 'WEB-100002';

const OPENING: readonly Act[] = [
  act('scheduled', [
    [1.5, setStatus('production')],
    [3.5, setLineStatus(0, 'production')],
    [18, setLineStatus(1, 'production')],
    [25, setStatus('finishing', ['jobStatus'])],
    [27, setStatus('finishing', ['masterJobStatus'])],
  ]),
  act('packing', [
    [4.5, dispatch([parcelOf('OPEN-1001', true)])],
    [13, CLOSE],
    [31, REOPEN],
  ]),
  act('intake', [
    [6, changeDueDate(24, 1)],
    [9.5, changeText({ description: AWKWARD_TEXTS[0], comments: AWKWARD_TEXTS[1] })],
  ]),
  act('scheduled', [[7.5, CANCEL]]),
  act('packing', [
    [9, dispatch([parcelOf('OPEN-1002', false)])],
    [15, fillInLink(parcelOf('OPEN-1002', true))],
    [20, INVOICE],
  ]),
  act('packing', [[10.5, dispatch([parcelOf('OPEN-1003', true), parcelOf('OPEN-1004', true)])]]),
  // A group of two, whose first member has gone before the start.
  (account) => ({
    skippedNumbers: 0,
    jobs: [-60, 12].map((second, index) =>
      openingJob(account, 'packing', [[second, dispatch([parcelOf(`OPEN-200${index}`, true)])]], {
        orderGroup: 'WEB-100001',
        orderGroupSequence: index + 1,
        originCode: 'SHOP',
      }),
    ),
  }),
  act('packing', [
    [14, dispatch([])],
    [22, addTracking(parcelOf('OPEN-1005', true))],
  ]),
  // Falls due, undispatched, while one watches.
  act('production', [], 17),
  act('intake', [[24, CANCEL]]),
  act('production', [[29, meetNewStatus('Press test')]]),
  // Ordered together and dispatched at once, two of them in one parcel.
  (account) => ({
    skippedNumbers: 0,
    jobs: ['OPEN-3001', 'OPEN-3001', 'OPEN-3002'].map((parcel, index) =>
      openingJob(account, 'packing', [[16, dispatch([parcelOf(parcel, true)])]], {
        description: DESIGNS[index],
        orderNumber: 'PO-3001',
        orderGroup: SHARED_GROUP,
        orderGroupSequence: index + 1,
        originCode: 'SHOP',
      }),
    ),
  }),
];

function act(stage: Stage, moves: readonly Move[], dueAfterSeconds?: number): Act {
  return (account) => ({
    skippedNumbers: 1,
    jobs: [openingJob(account, stage, moves, {}, dueAfterSeconds)],
  });
}

function openingJob(
  account: SandboxAccount,
  stage: Stage,
  moves: readonly Move[],
  input: JobInput,
  dueAfterSeconds = 6 * 3600,
): PlannedJob {
  const status = account.world.statusName(account.region, stage);
  const steps = [...moves, ...OPENING_END].map(([seconds, step]) => ({
    ...step,
    afterMs: OPENING_AGE_MS + seconds * 1000,
  }));
  return {
    input: (bornAt) => ({
      status,
      description: DESIGNS[0],
      lines: GARMENTS.slice(0, 2).map((garment) => ({ garment, jobLineStatus: status })),
      dateIn: bornAt,
      dateDue: bornAt + OPENING_AGE_MS + dueAfterSeconds * 1000,
      ...input,
    }),
    steps,
    leavesAfterMs: 0,
  };
}

/** How the jobs of the opening end, so that they do not stay for ever. */
const OPENING_END: readonly Move[] = [
  [75, dispatch([parcelOf('OPEN-1009', true)])],
  [180, CLOSE],
];

function parcelOf(trackingNumber: string, linked: boolean): TrackingEntry {
  return { trackingNumber, trackingLink: linked ? `https://trace.example/${trackingNumber}` : null };
}

/** Seeded random numbers (mulberry32): the same seed gives the same ones for ever. */
class Dice {
  #state: number;

  constructor(seed: number) {
    this.#state = seed >>> 0;
  }

  /** From 0 up to but not including 1. */
  next(): number {
    this.#state = (this.#state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(this.#state ^ (this.#state >>> 15), this.#state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  }

  /** An integer between two, both included. */
  int(from: number, to: number): number {
    return from + Math.floor(this.next() * (to - from + 1));
  }

  chance(probability: number): boolean {
    return this.next() < probability;
  }

  pick<T>(list: readonly T[]): T {
    return list[this.int(0, list.length - 1)] as T;
  }

  /** A time between two in hours, in ms. */
  hours(from: number, to: number): number {
    return (from + this.next() * (to - from)) * HOUR_MS;
  }
}

/** What is yet to happen, earliest first. What falls on the same instant is ordered by what was added before, not by chance. */
class Timeline {
  /** A binary heap. */
  readonly #heap: { at: number; run: () => void }[] = [];

  add(at: number, run: () => void): void {
    const heap = this.#heap;
    heap.push({ at, run });
    let child = heap.length - 1;
    while (child > 0 && this.#before(child, (child - 1) >>> 1)) {
      this.#swap(child, (child - 1) >>> 1);
      child = (child - 1) >>> 1;
    }
  }

  /** Runs all up to and including an instant, and what these add within it. */
  runUntil(instantMs: number): void {
    for (let first = this.#heap[0]; first && first.at <= instantMs; first = this.#heap[0]) {
      this.#removeFirst();
      first.run();
    }
  }

  #removeFirst(): void {
    const heap = this.#heap;
    this.#swap(0, heap.length - 1);
    heap.pop();
    let parent = 0;
    for (;;) {
      let least = parent;
      for (const child of [2 * parent + 1, 2 * parent + 2]) {
        if (child < heap.length && this.#before(child, least)) least = child;
      }
      if (least === parent) return;
      this.#swap(parent, least);
      parent = least;
    }
  }

  #before(a: number, b: number): boolean {
    const [left, right] = [this.#heap[a], this.#heap[b]];
    return left !== undefined && right !== undefined && left.at < right.at;
  }

  #swap(a: number, b: number): void {
    const [left, right] = [this.#heap[a], this.#heap[b]];
    if (!left || !right) return;
    this.#heap[a] = right;
    this.#heap[b] = left;
  }
}
