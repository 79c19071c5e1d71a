/**
 * Ordered jobs, scenario files, and the control panel.
 * One file: its tests share the receiver of artwork requests and the scenario files.
 */
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, describe, expect, onTestFinished, test, vi } from 'vitest';
import { PortTakenError, startSandbox } from '../../sandbox/server.ts';
import { fetchArtwork } from '../../sandbox/simulation/artwork.ts';
import { SandboxClock } from '../../sandbox/simulation/clock.ts';
import { SeededRandom } from '../../sandbox/simulation/random.ts';
import { createScenario, type Scenario, type ScenarioEvent } from '../../sandbox/simulation/scenario.ts';
import {
  loadScenario,
  ScenarioFileError,
  type StartScenarioOptions,
  scenarioNames,
  startScenario,
} from '../../sandbox/simulation/scenario-file.ts';
import type { ScheduledChange } from '../../sandbox/simulation/scheduled-changes.ts';
import { planOrder } from '../../sandbox/simulation/simulation.ts';
import { changeDueDate } from '../../sandbox/simulation/transitions.ts';
import { listDeliveryOptions } from '../../sandbox/world/delivery.ts';
import type { JobInput } from '../../sandbox/world/records.ts';
import { REGIONS, type RegionCode } from '../../sandbox/world/regions.ts';
import { createWorld, type SandboxAccount, type World } from '../../sandbox/world/world.ts';
import { startService } from '../support/ordering-api.ts';

const START = Date.parse('2026-11-20T16:14:00Z');
const MINUTE = 60_000;
const HOUR = 60 * MINUTE;
const DAY = 24 * HOUR;

/** An artwork server: its requests, and its configurable answer. */
interface ArtworkServer {
  readonly url: string;
  readonly asked: { path: string; headers: IncomingMessage['headers'] }[];
  answer: (request: IncomingMessage, response: ServerResponse) => void;
}

const servers: Server[] = [];
afterEach(() => {
  for (const server of servers.splice(0)) {
    server.close();
    server.closeAllConnections();
  }
});

const PRINT = Buffer.from('not much of a picture');
const serves = (_: IncomingMessage, response: ServerResponse) =>
  void response.writeHead(200, { 'content-type': 'image/png' }).end(PRINT);
const lost = (_: IncomingMessage, response: ServerResponse) => void response.writeHead(404).end();

async function artworkServer(answer: ArtworkServer['answer'] = serves): Promise<ArtworkServer> {
  const server = createServer((request, response) => {
    artwork.asked.push({ path: request.url ?? '', headers: request.headers });
    artwork.answer(request, response);
  });
  servers.push(server);
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const artwork: ArtworkServer = {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    asked: [],
    answer,
  };
  return artwork;
}

/** An account with automatic jobs, on a clock that only `advance` moves. */
function factory({ seed = 1, speed = 1 } = {}) {
  const clock = { now: START };
  const world = createWorld({ now: () => clock.now });
  const acme = world.addAccount({ region: 'us', name: 'acme' });
  const scenario = createScenario({
    world,
    startAt: START - 1,
    seed,
    speed,
    jobsPerAccount: 0,
    opening: false,
  });
  onTestFinished(() => scenario.stop());
  const order = (input: JobInput = {}, account = acme): number => {
    const jobNumber = account.createJob({ lines: [{}], ...input });
    scenario.adopt(account, jobNumber);
    return jobNumber;
  };
  /** Advances the clock, and waits for the artwork requested meanwhile. */
  const to = async (instantMs: number): Promise<void> => {
    clock.now = instantMs;
    scenario.advanceTo(instantMs);
    await scenario.settled();
  };
  return { clock, world, acme, scenario, order, to };
}

/** Advances from event to event until a condition is true, up to a limit. */
async function until(
  { clock, to }: { clock: { now: number }; to: (ms: number) => Promise<void> },
  condition: () => boolean,
  mostMs = 30 * DAY,
): Promise<void> {
  const end = clock.now + mostMs;
  while (!condition()) {
    if (clock.now >= end) throw new Error('The condition was not met');
    await to(clock.now + 5 * MINUTE);
  }
}

const getStage = (world: World, account: SandboxAccount, jobNumber: number) =>
  world.statuses(account.region).find(({ name }) => name === account.job(jobNumber)?.masterJobStatus)?.stage;

const kinds = ({ history }: Scenario, jobNumber: number) =>
  history.filter((event) => event.jobNumber === jobNumber).map(({ kind }) => kind);

describe('an ordered job', () => {
  test('goes through production, is dispatched near its due date, invoiced and closed', async () => {
    const simulated = factory();
    const { acme, world, scenario, order } = simulated;
    const artwork = await artworkServer();
    const job = order({ lines: [{ artworkUrl: `${artwork.url}/a.png` }], dateDue: START + 3 * DAY });
    const stages: unknown[] = [];
    await until(simulated, () => {
      const stage = getStage(world, acme, job);
      if (stages.at(-1) !== stage) stages.push(stage);
      return acme.job(job)?.phase === 'closed';
    });
    expect(stages).toEqual([
      'intake',
      'scheduled',
      'production',
      'finishing',
      'packing',
      'shipped',
      'closed',
    ]);
    const { outMs, invoiceNumber, invoiceStored, dateOut } = acme.job(job) ?? {};
    expect(dateOut).not.toBeNull();
    expect(outMs).toBeGreaterThan(START + 2 * DAY);
    expect(outMs).toBeLessThan(START + 4 * DAY);
    expect(invoiceNumber).toMatch(/^INV-/);
    expect(invoiceStored).toBe(true);
    expect(kinds(scenario, job)).toEqual(
      expect.arrayContaining(['status', 'line status', 'dispatched', 'invoiced', 'closed']),
    );
    const { lines } = acme.jobDetail(job) ?? {};
    expect(lines?.map(({ jobLineStatus }) => jobLineStatus)).toEqual(['Shipped']);
  });

  test('JobDto · isCancelable, Permissions · canEdit: in production a job can be edited but not cancelled; dispatch locks editing', async () => {
    const simulated = factory();
    const { acme, world, order } = simulated;
    const jobs = Array.from({ length: 60 }, () => order({ dateDue: START + 2 * DAY }));
    const seen = new Set<string>();
    await until(simulated, () => {
      for (const jobNumber of jobs) {
        const stage = getStage(world, acme, jobNumber);
        const { isCancelable, permissions, dateOut } = acme.jobDetail(jobNumber) ?? {};
        seen.add(`${stage} edit:${permissions?.canEdit} cancel:${isCancelable}`);
        // Locked on the press or by its dispatch: the reason is given.
        expect(permissions?.lockedReason === null).toBe(permissions?.canEdit);
        if (dateOut !== null) expect(permissions?.canEdit).toBe(false);
      }
      return jobs.every((jobNumber) => acme.job(jobNumber)?.dateOut !== null);
    });
    // The orders cover all four combinations, and most jobs in production are open to edits.
    for (const each of [
      'scheduled edit:true cancel:true',
      'scheduled edit:false cancel:true',
      'production edit:true cancel:false',
      'production edit:false cancel:false',
    ]) {
      expect(seen).toContain(each);
    }
    expect(
      [...seen].filter((each) => /^(production|finishing|packing|shipped).*cancel:true/.test(each)),
    ).toEqual([]);
  });

  test('Tracking · trackingNumber, trackingLink: some appear only hours after the dispatch, and collected jobs have none', async () => {
    const simulated = factory();
    const { acme, world, order } = simulated;
    const jobs = Array.from({ length: 60 }, () => order({ dateDue: START + 2 * DAY }));
    const collected = order({ deliveryOption: 'COLLECT' });
    const collection = listDeliveryOptions('us').find(({ isCollection }) => isCollection);
    acme.edit(collected, { deliveryOption: collection?.code ?? '' });
    const other = order({ deliveryOption: collection?.code ?? '' });
    const empty = new Map<number, number>();
    await until(simulated, () => {
      for (const jobNumber of jobs) {
        const job = acme.job(jobNumber);
        if (job?.dateOut && job.tracking.length === 0) empty.set(jobNumber, simulated.clock.now - job.outMs);
      }
      return [...jobs, other].every((jobNumber) => acme.job(jobNumber)?.phase === 'closed');
    });
    expect(empty.size).toBeGreaterThan(3);
    expect(empty.size).toBeLessThan(20);
    expect(Math.max(...empty.values())).toBeGreaterThan(HOUR);
    for (const jobNumber of jobs) expect(acme.job(jobNumber)?.tracking.length).toBeGreaterThan(0);
    expect(acme.job(other)?.tracking).toEqual([]);
    expect(world.statuses('us').length).toBeGreaterThan(5);
  });

  test('is sometimes reopened after closing, locked as before, and closed again', async () => {
    const simulated = factory();
    const { acme, world, scenario, order } = simulated;
    const jobs = Array.from({ length: 60 }, () => order({ dateDue: START + DAY }));
    const returned = new Set<number>();
    for (let day = 0; day < 14; day += 0.25) {
      await simulated.to(START + day * DAY);
      for (const jobNumber of jobs) {
        if (getStage(world, acme, jobNumber) !== 'returned') continue;
        returned.add(jobNumber);
        expect(acme.jobDetail(jobNumber)?.permissions.canEdit).toBe(false);
        expect(acme.activeJobNumbers()).toContain(jobNumber);
      }
    }
    expect(returned.size).toBeGreaterThan(0);
    expect(returned.size).toBeLessThan(12);
    for (const jobNumber of returned) {
      expect(kinds(scenario, jobNumber).filter((kind) => ['closed', 'reopened'].includes(kind))).toEqual([
        'closed',
        'reopened',
        'closed',
      ]);
    }
    expect(acme.activeCount).toBe(0);
  });

  test('orderGroup: the jobs of a group are dispatched at the same time with the same parcels, other jobs separately', async () => {
    const simulated = factory();
    const { acme, order } = simulated;
    const group = [1, 2, 3].map((orderGroupSequence) => order({ orderGroup: 'G', orderGroupSequence }));
    const others = [order(), order({ orderGroup: 'H' })];
    await until(simulated, () =>
      [...group, ...others].every((jobNumber) => acme.job(jobNumber)?.dateOut !== null),
    );
    const outs = group.map((jobNumber) => acme.job(jobNumber)?.dateOut);
    expect(new Set(outs).size).toBe(1);
    await simulated.to(simulated.clock.now + 6 * HOUR);
    const [first, ...rest] = group.map((jobNumber) => acme.job(jobNumber)?.tracking);
    for (const tracking of rest) expect(tracking).toEqual(first);
    expect(new Set([...outs, ...others.map((jobNumber) => acme.job(jobNumber)?.dateOut)]).size).toBe(3);
  });

  test('orderGroup: a cancelled member, and one that awaits artwork, does not delay the others', async () => {
    const simulated = factory();
    const { acme, world, order } = simulated;
    const leaves = order({ orderGroup: 'G' });
    const cancelled = order({ orderGroup: 'G' });
    const waits = order({ orderGroup: 'G', lines: [{ needsArtwork: true }] });
    await simulated.to(START + HOUR);
    acme.cancel(cancelled);
    await until(simulated, () => acme.job(leaves)?.dateOut !== null, 6 * DAY);
    expect(acme.job(cancelled)).toMatchObject({ phase: 'cancelled', dateOut: null });
    expect(getStage(world, acme, waits)).toBe('artwork');
  });

  test("keeps a customer's cancellation or amendment: later steps do not run", async () => {
    const simulated = factory();
    const { acme, scenario, order } = simulated;
    const [early, late, amended] = [order(), order(), order()] as [number, number, number];
    await simulated.to(START + 10 * MINUTE);
    acme.cancel(early);
    acme.edit(amended, { description: 'Other', orderNumber: 'PO-X', lines: [] });
    await until(simulated, () => acme.job(late)?.jobStatus === 'Scheduled');
    acme.cancel(late);
    await simulated.to(START + 12 * DAY);
    for (const jobNumber of [early, late]) {
      expect(acme.job(jobNumber)).toMatchObject({ phase: 'cancelled', dateOut: null, jobStatus: 'Canceled' });
    }
    expect(kinds(scenario, early)).toEqual(['created']);
    expect(acme.job(amended)).toMatchObject({
      phase: 'closed',
      description: 'Other',
      orderNumber: 'PO-X',
      lines: [],
    });
  });

  test('is the same for the same seed, with any time steps; a different seed gives a different life', async () => {
    const artwork = await artworkServer();
    const play = async (seed: number, stepMs: number): Promise<readonly ScenarioEvent[]> => {
      const { order, to, scenario } = factory({ seed });
      for (let n = 0; n < 8; n++) {
        order({
          lines: [{ artworkUrl: `${artwork.url}/${n}` }],
          orderGroup: n < 2 ? 'G' : null,
        });
      }
      for (let ms = stepMs; ms <= 12 * DAY; ms += stepMs) await to(START + ms);
      return scenario.history;
    };
    const history = await play(3, 6 * HOUR);
    expect(history.filter(({ kind }) => kind === 'dispatched')).toHaveLength(8);
    const sorted = (events: readonly ScenarioEvent[]) =>
      events.toSorted((a, b) => a.at - b.at || a.jobNumber - b.jobNumber || a.kind.localeCompare(b.kind));
    expect(sorted(await play(3, 12 * DAY))).toEqual(sorted(history));
    expect(sorted(await play(4, 6 * HOUR))).not.toEqual(sorted(history));
  });

  test('speed shortens its life', async () => {
    const simulated = factory({ speed: 120 });
    const job = simulated.order();
    await simulated.to(START + 3 * HOUR);
    expect(simulated.acme.job(job)?.phase).toBe('closed');
  });
});

describe('the jobs of a scenario', () => {
  /** A scenario at its start, at high speed. */
  function started({ leavesListOnDispatch = false } = {}) {
    const clock = { now: START };
    const world = createWorld({ now: () => clock.now, leavesListOnDispatch });
    const acme = world.addAccount({ region: 'us', name: 'acme', users: [{}, {}] });
    const scenario = createScenario({ world, startAt: START, speed: 20, seed: 30, jobsPerAccount: 300 });
    const to = (instantMs: number) => {
      clock.now = instantMs;
      scenario.advanceTo(instantMs);
    };
    return { world, acme, scenario, to };
  }
  const allJobs = (account: SandboxAccount) => structuredClone([...account.jobs()]);

  test.each([false, true])(
    'leavesListOnDispatch %s: a job that was never accessed is listed like an accessed one',
    (leavesListOnDispatch) => {
      const { acme } = started({ leavesListOnDispatch });
      const query = { page: 1, pageSize: 1000 } as const;
      const unseen = [
        acme.activeJobNumbers(),
        acme.activeCount,
        acme.listJobs({ page: 99, pageSize: 1000, includeClosedJobs: true }).totalCount,
      ];
      const userQuery = { ...query, customerUserId: acme.users[0]?.id ?? 0 };
      const found = acme.listJobs(userQuery);
      const firstPage = acme.listJobs(query);
      const phases = new Set(allJobs(acme).map(({ phase }) => phase));
      expect(phases).toEqual(new Set(['open', 'closed', 'cancelled']));
      expect([
        acme.activeJobNumbers(),
        acme.activeCount,
        acme.listJobs({ ...query, includeClosedJobs: true }).totalCount,
      ]).toEqual(unseen);
      expect(acme.listJobs(query)).toEqual(firstPage);
      const { acme: seen } = started({ leavesListOnDispatch });
      // Includes jobs that were reopened after closing.
      expect(allJobs(seen).some(({ phase, keptListed }) => phase === 'open' && keptListed)).toBe(true);
      expect(found).toEqual(seen.listJobs(userQuery));
      const listed = JSON.parse(firstPage.itemsJson) as { jobNumber: number; dateOut: string | null }[];
      expect(listed.length).toBeGreaterThan(100);
      expect(listed.filter(({ dateOut }) => dateOut !== null).length > 10).toBe(!leavesListOnDispatch);
    },
  );

  test('do not depend on when and in which order they are first accessed', () => {
    const [early, late] = [started(), started()];
    // The latest first, so that jobs are created in a different order.
    for (const jobNumber of early.acme.activeJobNumbers().reverse()) early.acme.job(jobNumber);
    for (const { acme, to } of [early, late]) {
      to(START + HOUR);
      acme.removeUser(acme.users[0]?.id ?? 0);
    }
    expect(late.acme.assets.list()).toEqual(early.acme.assets.list());
    expect(allJobs(late.acme)).toEqual(allJobs(early.acme));
    expect(late.scenario.history).toEqual(early.scenario.history);
  });

  test('keep their past statuses when a status is added or renamed, accessed or not', () => {
    const [seen, unseen] = [started(), started()];
    allJobs(seen.acme);
    for (const { world } of [seen, unseen]) {
      world.addStatus('us', 'Second shift', 'production', 2);
      world.renameStatus('us', 'In production', 'On the press');
    }
    const jobs = allJobs(unseen.acme);
    expect(jobs).toEqual(allJobs(seen.acme));
    expect(jobs.some(({ jobStatus }) => jobStatus === 'On the press')).toBe(true);
    expect(jobs.some(({ jobStatus }) => jobStatus === 'Second shift')).toBe(false);
  });

  test('change only as ordered jobs after their adoption', () => {
    const [{ acme, scenario, to }, untouched] = [started(), started()];
    const jobs = acme.activeJobNumbers().filter((job) => acme.job(job)?.dateOut === null);
    for (const job of jobs) scenario.adopt(acme, job);
    // Before the first change of an ordered job.
    for (const one of [to, untouched.to]) one(START + 12_000);
    const moved = ({ history }: Scenario) =>
      new Set(history.filter(({ kind }) => kind !== 'created').map(({ jobNumber }) => jobNumber));
    expect(jobs.filter((job) => moved(untouched.scenario).has(job)).length).toBeGreaterThan(5);
    expect(jobs.filter((job) => moved(scenario).has(job))).toEqual([]);
  });

  test('keep the latest closed ones, delete older ones, and never delete open ones', () => {
    const clock = { now: START };
    const world = createWorld({ now: () => clock.now });
    const acme = world.addAccount({ region: 'us', name: 'acme' });
    const scenario = createScenario({
      world,
      startAt: START,
      jobsPerAccount: 10,
      keptJobs: 20,
      opening: false,
    });
    const simulated = acme.createJob({ lines: [{}] });
    scenario.adopt(acme, simulated);
    const first = acme.createJob({ lines: [{}] });
    clock.now += 60 * DAY;
    scenario.advanceTo(clock.now);
    const over = [...acme.jobs()].filter(({ phase }) => phase !== 'open');
    expect(over.length).toBeGreaterThanOrEqual(20);
    expect(over.length).toBeLessThanOrEqual(26);
    expect(acme.job(simulated)).toBeUndefined();
    expect(acme.job(first)?.phase).toBe('open');
    const closed = scenario.history.filter(({ kind }) => kind === 'closed').slice(-5);
    for (const { jobNumber } of closed) expect(acme.job(jobNumber)).toBeDefined();
    expect(acme.listJobs({ page: 1, pageSize: 100, includeClosedJobs: true }).totalCount).toBeLessThan(50);
  });

  test('continue after an order that fails', () => {
    const clock = { now: START };
    const world = createWorld({ now: () => clock.now });
    const acme = world.addAccount({ region: 'us', name: 'acme' });
    const scenario = createScenario({ world, startAt: START, jobsPerAccount: 10, opening: false });
    const fails = vi.spyOn(acme, 'createJob').mockImplementationOnce(() => {
      throw new Error('not this one');
    });
    expect(() => scenario.advanceTo(START + 10 * DAY)).toThrow('not this one');
    fails.mockRestore();
    scenario.advanceTo(START + 10 * DAY);
    expect(scenario.history.filter(({ kind }) => kind === 'created').length).toBeGreaterThan(10);
  });
});

describe('on days when clocks change', () => {
  test.each(['2026-11-01', '2027-03-14'])('a date due at a time on %s is due at 17:00 local time', (day) => {
    const clock = { now: Date.parse(`${day}T12:00:00Z`) - 3 * DAY };
    const acme = createWorld({ now: () => clock.now }).addAccount({ region: 'us' });
    const times = new Set<string>();
    for (let seed = 1; seed <= 200; seed++) {
      const [planned] = planOrder(new SeededRandom(seed), acme, 1).jobs;
      const job = acme.createJob(planned?.input(clock.now));
      const due = acme.job(job)?.dateDue ?? '';
      if (due.startsWith(day)) times.add(due.slice(11, 16));
    }
    expect([...times].sort()).toEqual(['00:00', '17:00']);
  });

  test('a due day moved by one day is the next or the previous day', () => {
    const acme = createWorld({ now: () => START }).addAccount({ region: 'us' });
    const moved = (dateDue: string, byHours: number) => {
      const job = acme.createJob({ dateDue });
      changeDueDate(byHours, 1).take(acme, acme.job(job) as never, START);
      return acme.job(job)?.dateDue;
    };
    expect(moved('2027-03-13', 24)).toBe('2027-03-14T00:00:00-07:00');
    expect(moved('2027-03-14', 24)).toBe('2027-03-15T00:00:00-06:00');
    expect(moved('2027-03-15', -12)).toBe('2027-03-14T00:00:00-07:00');
    expect(moved('2026-11-01', 24)).toBe('2026-11-02T00:00:00-07:00');
    expect(moved('2026-11-02', -12)).toBe('2026-11-01T00:00:00-06:00');
  });
});

describe('artwork', () => {
  const waiting = ({ acme, world }: ReturnType<typeof factory>, jobNumber: number) =>
    getStage(world, acme, jobNumber) === 'artwork';

  test('externalArtworkUrl: is fetched when the job is ordered, without credentials, and again before production', async () => {
    const artwork = await artworkServer();
    const simulated = factory();
    const job = simulated.order({ lines: [{ artworkUrl: `${artwork.url}/a.png?sig=1` }, {}] });
    await simulated.scenario.settled();
    expect(artwork.asked.map(({ path }) => path)).toEqual(['/a.png?sig=1']);
    expect(artwork.asked[0]?.headers).not.toHaveProperty('authorization');
    expect(artwork.asked[0]?.headers).not.toHaveProperty('cookie');
    await until(simulated, () => getStage(simulated.world, simulated.acme, job) === 'production');
    expect(artwork.asked).toHaveLength(2);
    await simulated.to(START + 20 * DAY);
    expect(artwork.asked).toHaveLength(2);
  });

  test('externalArtworkUrl: while it is unreachable, job and line await artwork; retries are spaced further apart until it is found', async () => {
    const artwork = await artworkServer(lost);
    const simulated = factory();
    const { acme } = simulated;
    const job = simulated.order({ lines: [{ artworkUrl: `${artwork.url}/a.png` }, {}] });
    await simulated.scenario.settled();
    expect(waiting(simulated, job)).toBe(true);
    expect(acme.jobDetail(job)).toMatchObject({
      jobStatus: 'Awaiting artwork',
      isCancelable: true,
      permissions: { canEdit: true },
    });
    expect(acme.jobDetail(job)?.lines.map(({ jobLineStatus }) => jobLineStatus)).toEqual([
      'Awaiting artwork',
      'Order received',
    ]);
    const at: number[] = [];
    for (let ms = 0; ms <= 2 * DAY; ms += MINUTE) {
      const before = artwork.asked.length;
      await simulated.to(START + ms);
      if (artwork.asked.length > before) at.push(ms);
    }
    expect(at.slice(0, 6)).toEqual([5, 20, 80, 320, 1040, 1760].map((minutes) => minutes * MINUTE));
    artwork.answer = serves;
    await until(simulated, () => !waiting(simulated, job), 12 * HOUR + MINUTE);
    expect(acme.jobDetail(job)?.lines[0]?.jobLineStatus).toBe('Order received');
    await until(simulated, () => acme.job(job)?.phase === 'closed');
  });

  test('externalArtworkUrl: if it is lost before production, the job awaits artwork again, and continues when it is back', async () => {
    const artwork = await artworkServer();
    const simulated = factory();
    const job = simulated.order({ lines: [{ artworkUrl: `${artwork.url}/a.png` }] });
    await until(simulated, () => getStage(simulated.world, simulated.acme, job) === 'scheduled');
    artwork.answer = lost;
    await until(simulated, () => waiting(simulated, job));
    artwork.answer = serves;
    await until(simulated, () => getStage(simulated.world, simulated.acme, job) === 'scheduled', HOUR);
    await until(simulated, () => getStage(simulated.world, simulated.acme, job) === 'production', 3 * HOUR);
    // Not requested again in production.
    artwork.answer = lost;
    await until(simulated, () => simulated.acme.job(job)?.dateOut !== null);
  });

  test('needsArtworkToBeUploaded: without a URL the job waits at once, until artwork is supplied', async () => {
    const artwork = await artworkServer();
    const simulated = factory();
    const job = simulated.order({ lines: [{ needsArtwork: true }] });
    expect(waiting(simulated, job)).toBe(true);
    await simulated.to(START + 40 * DAY);
    expect(waiting(simulated, job)).toBe(true);
    simulated.acme.supplyArtwork(job, 0, `${artwork.url}/late.png`);
    simulated.scenario.adopt(simulated.acme, job);
    await simulated.scenario.settled();
    expect(waiting(simulated, job)).toBe(false);
    expect(artwork.asked).toHaveLength(1);
    expect(kinds(simulated.scenario, job).filter((kind) => kind === 'created')).toHaveLength(1);
    await until(simulated, () => simulated.acme.job(job)?.phase === 'closed');
  });

  test('a URL that is supplied while another one is requested is fetched at once', async () => {
    const asked = Promise.withResolvers<ServerResponse>();
    const artwork = await artworkServer((request, response) => {
      if (request.url === '/first') asked.resolve(response);
      else serves(request, response);
    });
    const simulated = factory();
    const job = simulated.order({ lines: [{ artworkUrl: `${artwork.url}/first` }] });
    const response = await asked.promise;
    simulated.acme.supplyArtwork(job, 0, `${artwork.url}/second`);
    simulated.scenario.adopt(simulated.acme, job);
    response.writeHead(404).end();
    await simulated.scenario.settled();
    expect(artwork.asked.map(({ path }) => path)).toEqual(['/first', '/second']);
    expect(waiting(simulated, job)).toBe(false);
  });

  test('externalArtworkUrl: lines with the same URL share one request, and few URLs are requested at a time', async () => {
    let [open, most] = [0, 0];
    const artwork = await artworkServer((request, response) => {
      open += 1;
      most = Math.max(most, open);
      setImmediate(() => {
        open -= 1;
        serves(request, response);
      });
    });
    const simulated = factory();
    const job = simulated.order({
      lines: Array.from({ length: 60 }, (_, line) => ({ artworkUrl: `${artwork.url}/${line % 20}` })),
    });
    await simulated.to(START);
    expect(artwork.asked).toHaveLength(20);
    expect(most).toBeLessThanOrEqual(4);
    expect(waiting(simulated, job)).toBe(false);
  });

  test('slow artwork of one account does not delay the artwork of another account', async () => {
    const quick = Promise.withResolvers<void>();
    const artwork = await artworkServer(({ url }) => {
      if (url === '/quick') quick.resolve();
    });
    const simulated = factory();
    const other = simulated.world.addAccount({ region: 'us', name: 'other' });
    const urls = Array.from({ length: 8 }, (_, line) => `${artwork.url}/${line}`);
    simulated.order({ lines: urls.map((artworkUrl) => ({ artworkUrl })) });
    simulated.order({ lines: [{ artworkUrl: `${artwork.url}/quick` }] }, other);
    await quick.promise;
    expect(artwork.asked.length).toBeLessThanOrEqual(5);
  });

  test('an error after the fetch of artwork does not end the process', async () => {
    const artwork = await artworkServer();
    const simulated = factory();
    const complaint = vi.spyOn(console, 'error').mockImplementation(() => {});
    onTestFinished(() => complaint.mockRestore());
    simulated.order({ lines: [{ artworkUrl: artwork.url, itemType: 'PriceCode', assetSku: 'GA-US-001' }] });
    await simulated.to(START);
    expect(complaint).toHaveBeenCalledOnce();
  });

  test("a new job with the number of a removed one is not moved by the removed job's steps", async () => {
    const simulated = factory();
    const job = simulated.order({ dateDue: START + DAY });
    simulated.acme.remove(job);
    simulated.acme.createJob({ jobNumber: job });
    const before = simulated.acme.jobDetail(job)?.jobStatus;
    await simulated.to(START + 3 * DAY);
    expect(simulated.acme.jobDetail(job)).toMatchObject({ jobStatus: before, dateOut: null });
  });

  test('a job cancelled while its artwork is being fetched stays cancelled', async () => {
    const arrived = Promise.withResolvers<ServerResponse>();
    const artwork = await artworkServer((_, response) => arrived.resolve(response));
    const simulated = factory();
    const job = simulated.order({ lines: [{ artworkUrl: artwork.url }] });
    const response = await arrived.promise;
    simulated.acme.cancel(job);
    response.writeHead(404).end();
    await simulated.scenario.settled();
    await simulated.to(START + 9 * DAY);
    expect(simulated.acme.job(job)).toMatchObject({ phase: 'cancelled', jobStatus: 'Canceled' });
    expect(artwork.asked).toHaveLength(1);
  });

  test('artwork that never arrives blocks no other job, and its fetch is aborted when the scenario stops', async () => {
    const arrived = Promise.withResolvers<ServerResponse>();
    const artwork = await artworkServer((_, response) => arrived.resolve(response));
    const simulated = factory();
    simulated.order({ lines: [{ artworkUrl: artwork.url }] });
    const other = simulated.order();
    const gone = new Promise((resolve) =>
      arrived.promise.then((response) => response.once('close', resolve)),
    );
    await arrived.promise;
    simulated.clock.now = START + 9 * DAY;
    simulated.scenario.advanceTo(simulated.clock.now);
    expect(simulated.acme.job(other)?.phase).toBe('closed');
    simulated.scenario.stop();
    await Promise.all([gone, simulated.scenario.settled()]);
  });

  test.each<[string, ArtworkServer['answer'], object]>([
    ['existing artwork is found', serves, { found: true, bytes: PRINT.length }],
    [
      'artwork without a media type is accepted',
      (_, response) => void response.end('x'),
      { found: true, bytes: 1 },
    ],
    ['404 is none', lost, { found: false, reason: 'It answered 404.' }],
    ['an empty file is not artwork', (_, response) => void response.end(), { reason: 'It is empty.' }],
    [
      'a web page is not artwork',
      (_, response) =>
        void response.writeHead(200, { 'content-type': 'text/html; charset=utf-8' }).end('<p>'),
      { reason: 'It is a web page.' },
    ],
    [
      'redirects are followed, relative ones too',
      (request, response) =>
        request.url === '/b'
          ? void response.end('xy')
          : void response.writeHead(302, { location: '/b' }).end(),
      { found: true, bytes: 2 },
    ],
    [
      'an endless redirection is not followed',
      (_, response) => void response.writeHead(301, { location: '/' }).end(),
      { reason: 'It redirects too often.' },
    ],
    [
      'a redirect to another scheme is rejected',
      (_, response) => void response.writeHead(307, { location: 'file:///etc/hosts' }).end(),
      { reason: 'The address is neither http nor https.' },
    ],
    [
      'a URL with credentials is rejected',
      (_, response) => void response.writeHead(307, { location: 'http://user:word@127.0.0.1/' }).end(),
      { reason: 'The address carries credentials.' },
    ],
    [
      'a broken response is not artwork',
      (_, response) => void response.destroy(),
      { reason: 'The host is unreachable.' },
    ],
    [
      'a file without end is aborted at the maximum size',
      (_, response) => {
        const more = () => {
          while (!response.destroyed && response.write(Buffer.alloc(1000)));
        };
        response.on('drain', more);
        more();
      },
      { reason: 'It is too large.' },
    ],
    [
      'a body that does not end times out',
      (_, response) => void response.writeHead(200).write('x'),
      { reason: 'The request timed out.' },
    ],
    ['a missing answer times out', () => {}, { reason: 'The request timed out.' }],
  ])('externalArtworkUrl: %s', async (_, answer, expected) => {
    const artwork = await artworkServer(answer);
    const patience = (expected as { reason?: string }).reason === 'The request timed out.' ? 200 : 20_000;
    const limits = { timeoutMs: patience, maxBytes: 100_000, maxRedirects: 3 };
    expect(await fetchArtwork(artwork.url, limits)).toMatchObject(expected);
    expect(artwork.asked.length).toBeLessThanOrEqual(4);
  });

  test.each([
    ['ftp://127.0.0.1/a.png', 'The address is neither http nor https.'],
    ['data:image/png;base64,AAAA', 'The address is neither http nor https.'],
    ['artwork.png', 'The URL is invalid.'],
    ['', 'The URL is invalid.'],
    ['http://user:word@127.0.0.1/a.png', 'The address carries credentials.'],
    ['http://127.0.0.1:1/a.png', 'The host is unreachable.'],
  ])('externalArtworkUrl: %j is not fetched', async (url, reason) => {
    expect(await fetchArtwork(url)).toEqual({ found: false, reason });
  });
});

test('JobDto · taxTotal: of generated jobs, follows from the lines and the rate of the region', async () => {
  const world = createWorld({ now: () => START });
  const rates = { us: 0, nz: 0.15, au: 0.1, uk: 0.2, eu: 0.21 };
  const accounts = REGIONS.map((region) => world.addAccount({ region, name: `${region} buyer` }));
  const scenario = createScenario({ world, startAt: START, jobsPerAccount: 5, opening: false });
  onTestFinished(() => scenario.stop());
  scenario.advanceTo(START);
  for (const account of accounts) {
    const jobs = account.activeJobNumbers();
    expect(jobs.length).toBeGreaterThan(0);
    for (const number of jobs) {
      const { lines = [], taxTotal } = account.jobDetail(number) ?? {};
      const net = lines.reduce((sum, { quantity, unitPrice }) => sum + quantity * unitPrice, 0);
      expect([account.region, Math.abs((taxTotal ?? -1) - net * rates[account.region]) <= 0.00501]).toEqual([
        account.region,
        true,
      ]);
    }
  }
});

describe('over HTTP', () => {
  test('an ordered job lives over HTTP: it awaits missing artwork, and is cancelled or produced as its detail shows', async () => {
    const artwork = await artworkServer(lost);
    const clock = { now: START };
    const world = createWorld({ now: () => clock.now });
    const scenario = createScenario({ world, startAt: START, jobsPerAccount: 0, opening: false });
    const { us, acme } = await startService({ world, scenario });
    const order = async () => {
      const { status, json } = await us.post('/Jobs', {
        deliveryAddress: {
          deliveryMethod: listDeliveryOptions('us')[1]?.code,
          contactName: 'Alex Order',
          streetAddress: '1 Example Street',
          city: 'Denver',
          state: 'CO',
          postalCode: '80202',
          countryCodeISO2: 'US',
        },
        items: [
          {
            itemType: 'PriceCode',
            code: 'DTF:3" x 3"',
            quantity: 12,
            customerReference: 'chest',
            externalArtworkUrl: `${artwork.url}/a.png`,
          },
        ],
      });
      expect([status, json.expectingArtworkToBeUploaded]).toEqual([201, false]);
      return json.jobNumber as number;
    };
    const [kept, given] = [await order(), await order()];
    await scenario.settled();
    expect((await us.get(`/Jobs/${kept}`)).json).toMatchObject({
      jobStatus: 'Awaiting artwork',
      isCancelable: true,
    });
    expect((await us.post(`/Jobs/${given}/cancel`)).status).toBe(204);
    artwork.answer = serves;
    const lookIn = async (ms: number) => {
      clock.now += ms;
      const { json } = await us.get(`/Jobs/${kept}`);
      await scenario.settled();
      return json;
    };
    for (let job = await lookIn(HOUR); job.jobStatus !== 'In production'; ) job = await lookIn(HOUR);
    expect((await us.post(`/Jobs/${kept}/cancel`)).status).toBe(409);
    expect((await us.patch(`/Jobs/${kept}`, { orderNumber: 'PO-LATE' })).status).toBe(200);
    for (let job = await lookIn(HOUR); job.dateOut === null; ) job = await lookIn(HOUR);
    expect((await us.patch(`/Jobs/${kept}`, { orderNumber: 'PO-TOO-LATE' })).status).toBe(403);
    expect((await us.get(`/Jobs/${kept}`)).json).toMatchObject({
      orderNumber: 'PO-LATE',
      isCancelable: false,
    });
    expect(acme.job(given)?.phase).toBe('cancelled');
  });
});

describe('scenarios as files', () => {
  /** A scenario on a stopped clock, and a client of it. */
  async function play(which: Parameters<typeof startScenario>[0], options: StartScenarioOptions = {}) {
    const clock = new SandboxClock({ startAt: START, stopped: true });
    const sandbox = await startScenario(which, { clock, port: 0, ...options });
    onTestFinished(() => sandbox.stop());
    const token = async (region: RegionCode, clientId: string, clientSecret = `${clientId}-secret`) => {
      const answer = await fetch(
        `${sandbox.authUrl(region)}/realms/${region}/protocol/openid-connect/token`,
        {
          method: 'POST',
          body: new URLSearchParams({
            grant_type: 'client_credentials',
            client_id: clientId,
            client_secret: clientSecret,
          }),
        },
      );
      return answer.ok ? ((await answer.json()) as { access_token: string }).access_token : answer.status;
    };
    const get = async (region: RegionCode, bearer: string | number, path: string) => {
      const answer = await fetch(sandbox.apiUrl(region) + path, {
        headers: { authorization: `Bearer ${bearer}` },
      });
      // biome-ignore lint/suspicious/noExplicitAny: the tests read any field.
      return { status: answer.status, json: (await answer.json().catch(() => undefined)) as any };
    };
    const at = (seconds: number) => clock.advance(START + seconds * 1000 - clock.now());
    return { sandbox, clock, token, get, at };
  }

  test.each(scenarioNames())('%s starts, with the accounts and jobs of its file', async (name) => {
    const file = loadScenario(name);
    const { sandbox } = await play(name, name === 'season' ? { jobs: 40 } : {});
    const accounts = sandbox.world.accounts();
    expect(accounts).toHaveLength(
      typeof file.accounts === 'number' ? file.accounts * REGIONS.length : file.accounts.length,
    );
    expect(file.description).toMatch(/\.$/);
    const jobs = name === 'season' ? 40 : file.jobs;
    for (const { activeCount, credentials } of accounts) {
      expect(activeCount).toBeGreaterThanOrEqual(jobs);
      expect(activeCount).toBeLessThanOrEqual(jobs + 4);
      expect(credentials.map(({ role }) => role)).toEqual(['user', 'administrator', 'staff', 'viewer']);
    }
    expect(sandbox.scheduler.list()).toHaveLength(file.scheduledChanges.length);
  });

  test('include an ordinary day, a season of 20,000 open jobs, an outage, swapped credentials and page drift', () => {
    expect(scenarioNames()).toEqual([
      'credentials-swapped',
      'normal-day',
      'page-drift',
      'region-outage',
      'season',
    ]);
    const { accounts } = loadScenario('season');
    const jobs = (accounts as { jobs: number }[]).map((account) => account.jobs);
    expect(jobs.reduce((sum, count) => sum + count, 0)).toBe(20_000);
  });

  test('region-outage: the region fails with its tokens while the outage lasts, no other region fails, and it recovers', async () => {
    const { token, get, at } = await play('region-outage');
    const [us, nz] = [await token('us', 'us-demo-1'), await token('nz', 'nz-demo-1')];
    at(59);
    expect((await get('us', us, '/Jobs/active')).status).toBe(200);
    at(60);
    expect((await get('us', us, '/Jobs/active')).status).toBe(503);
    expect(await token('us', 'us-demo-1')).toBe(503);
    expect((await get('nz', nz, '/Jobs/active')).status).toBe(200);
    at(215);
    await expect(get('us', us, '/Jobs/active')).rejects.toThrow('fetch failed');
    at(301);
    expect((await get('us', us, '/Jobs/active')).status).toBe(200);
  });

  test('credentials-swapped: each key reads the other account until they are swapped back; a rotated secret is rejected', async () => {
    const { token, get, at, sandbox } = await play('credentials-swapped');
    const [one, other] = sandbox.world.accounts('us');
    const getId = async (clientId: string) =>
      (await get('us', await token('us', clientId), '/account')).json.id;
    const first = await token('us', 'us-demo-1');
    expect(await getId('us-demo-1')).toBe(one?.id);
    at(60);
    expect((await get('us', first, '/account')).status).toBe(401);
    expect(await getId('us-demo-1')).toBe(other?.id);
    expect(await getId('us-demo-2')).toBe(one?.id);
    const user = await get('us', await token('us', 'us-demo-1'), '/account/user');
    expect(user.json.customerId).toBe(other?.id);
    at(240);
    expect(await getId('us-demo-1')).toBe(one?.id);
    at(360);
    expect(await token('eu', 'eu-demo-1')).toBe(401);
    expect(await token('eu', 'eu-demo-1', 'eu-demo-1-rotated')).toEqual(expect.any(String));
  });

  test('page-drift: a client that reads page by page misses existing jobs and reads others twice', async () => {
    const { token, get, at, sandbox, clock } = await play('page-drift');
    const us = await token('us', 'us-demo-1');
    const read = async () => {
      const seen: number[] = [];
      for (let page = 1; page <= 3; page++) {
        const { json } = await get('us', us, `/Jobs/active?pageSize=80&page=${page}`);
        seen.push(...json.items.map(({ jobNumber }: { jobNumber: number }) => jobNumber));
      }
      return seen;
    };
    const before = await read();
    expect(new Set(before).size).toBe(240);
    at(30);
    const [account] = sandbox.world.accounts('us');
    sandbox.scenario.advanceTo(clock.now());
    const there = new Set(account?.activeJobNumbers());
    const seen = await read();
    expect(new Set(seen).size).toBe(238);
    const missed = [...there]
      .toSorted((a, b) => b - a)
      .slice(0, 240)
      .filter((job) => !seen.includes(job));
    expect(missed).toHaveLength(3);
    for (const jobNumber of missed) expect((await get('us', us, `/Jobs/${jobNumber}`)).status).toBe(200);
    // Hidden jobs return after their time; added jobs stay and live.
    at(51);
    const { json } = await get('us', us, '/Jobs/active');
    expect(json.totalCount).toBeGreaterThanOrEqual(there.size - 5);
    expect(account?.activeJobNumbers()).toEqual(
      expect.arrayContaining(missed.filter((job) => there.has(job))),
    );
  });

  test('JobStatus: a status is added at run time, and some of the jobs that reach its stage get it', async () => {
    const { token, get, at, sandbox } = await play({
      opening: false,
      jobs: 30,
      scheduledChanges: [
        { do: 'addStatus', afterSeconds: 60, region: 'us', name: 'Heat test', stage: 'production', every: 2 },
      ],
    });
    const names = async (region: RegionCode) =>
      (await get(region, await token(region, `${region}-demo-1`), '/Lookups/job-statuses')).json.map(
        ({ name }: { name: string }) => name,
      );
    expect(await names('us')).not.toContain('Heat test');
    at(60);
    expect(await names('us')).toContain('Heat test');
    expect(await names('nz')).not.toContain('Heat test');
    at(1200);
    expect((await names('us')).filter((name: string) => name === 'Heat test')).toHaveLength(1);
    const shown = new Set<string | null>();
    for (const account of sandbox.world.accounts('us')) {
      for (const { jobNumber, masterJobStatus } of account.jobs()) {
        shown.add(masterJobStatus);
        if (masterJobStatus === 'Heat test') expect(jobNumber % 2).toBe(0);
      }
    }
    expect(shown).toContain('Heat test');
    expect(shown).toContain('In production');
  });

  test('options override the fields of the file', async () => {
    const { sandbox } = await play('region-outage', { seed: 9, speed: 2, accounts: 1, jobs: 5 });
    expect(sandbox.file).toMatchObject({ seed: 9, speed: 2, accounts: 1, jobs: 5 });
    expect(sandbox.world.accounts()).toHaveLength(5);
    const season = await play('season', { jobs: 5 });
    for (const { activeCount } of season.sandbox.world.accounts()) expect(activeCount).toBeLessThan(10);
  });

  test('season: one large or many small time steps give the same jobs and the same history', async () => {
    const plays = await Promise.all(
      [1800, 7].map(async (step) => ({ step, ...(await play('season', { jobs: 60 })) })),
    );
    const [one, other] = plays.map(({ step, at, clock, sandbox }) => {
      for (let seconds = step; seconds < 1800 + step; seconds += step) {
        at(Math.min(seconds, 1800));
        sandbox.scheduler.advanceTo(clock.now());
      }
      return [sandbox.scenario.history, sandbox.world.accounts().map((account) => [...account.jobs()])];
    });
    expect(one?.[0]?.length).toBeGreaterThan(1000);
    expect(other).toEqual(one);
  });

  test('a clock that is stopped can be advanced by at least a second, however many jobs there are', async () => {
    const { sandbox } = await play({ speed: 1e6, accounts: [{ region: 'us', jobs: 60_000 }] });
    expect(sandbox.scenario.longestAdvanceSeconds).toBe(1);
  });

  test('the same file gives the same history', async () => {
    const plays = await Promise.all([1, 2].map(() => play('normal-day', { jobs: 10 })));
    for (const { sandbox, clock, at } of plays) {
      at(900);
      sandbox.scheduler.advanceTo(clock.now());
    }
    const [one, other] = plays.map(({ sandbox }) => sandbox.scenario.history);
    expect(one?.length).toBeGreaterThan(300);
    expect(other).toEqual(one);
  });

  test.each<[unknown, string]>([
    [
      { sped: 3 },
      'the file has no field sped; it may have: description, seed, speed, clock, startAt, accounts',
    ],
    [{ seed: 'x' }, 'seed must be a number.'],
    [{ startAt: 'noon' }, 'startAt must be a timestamp, such as 2026-11-20T16:14:00Z.'],
    [
      { scheduledChanges: [{ do: 'swapCredentials', region: 'us', accounts: ['us-demo-1', 'us-demo-1'] }] },
      'a scheduled change names the same account twice',
    ],
    [
      {
        scheduledChanges: [{ do: 'fault', rule: { match: { account: 'absent' }, fault: { kind: 'hang' } } }],
      },
      'a scheduled change names "absent", which is no account',
    ],
    [{ seed: 1.5 }, 'seed must be an integer.'],
    [{ speed: 0 }, 'speed must be more than 0.'],
    [{ speed: 1e6, jobs: 100_000 }, 'with 500000 open jobs, speed must be at most 1785.'],
    [{ accounts: 'many' }, 'accounts must be an integer from 1 to 100, or a list of accounts.'],
    [{ accounts: [{ region: 'mars' }] }, 'accounts[0].region must be one of: us, nz, au, uk, eu.'],
    [{ scheduledChanges: {} }, 'scheduledChanges must be a list.'],
    [
      { scheduledChanges: [{ do: 'dance' }] },
      'scheduledChanges[0].do must be one of: fault, swapCredentials',
    ],
    [{ scheduledChanges: [{ do: 'fault' }] }, 'scheduledChanges[0].rule must be an object.'],
    [
      { scheduledChanges: [{ do: 'fault', rule: { fault: { kind: 'nap' } } }] },
      'scheduledChanges[0].rule.fault.kind must be one of: status, raw, delay',
    ],
    [
      { scheduledChanges: [{ do: 'fault', rule: { match: { path: '(' }, fault: { kind: 'hang' } } }] },
      'scheduledChanges[0].rule.match.path',
    ],
    [
      { scheduledChanges: [{ do: 'addStatus', name: 'X', stage: 'lunch' }] },
      'scheduledChanges[0].stage must be one of: artwork, intake',
    ],
    [
      { scheduledChanges: [{ do: 'revokeTokens', after: 3 }] },
      'scheduledChanges[0] has no field after; it may have: do, afterSeconds',
    ],
    [[], 'the file must be an object.'],
  ])('%j is rejected with a message that names file, field and accepted values', async (content, reason) => {
    const file = await written(JSON.stringify(content));
    const rejection = await startScenario(file).catch((error: unknown) => error);
    expect(rejection).toBeInstanceOf(ScenarioFileError);
    const { message } = rejection as Error;
    expect(message).toContain(`${file}: `);
    expect(message).toContain(reason);
    expect(message.trim().split('\n')).toHaveLength(1);
    expect(message).toMatch(/\.$/);
  });

  test.each([
    [[{ clientId: 'one' }, { clientId: 'one-admin' }], 'accounts[1].clientId', 'client id one-admin'],
    [[{ clientId: 'one-admin' }, { clientId: 'one' }], 'accounts[1].clientId', 'client id one-admin'],
    [[{ clientId: 'one' }, { clientId: 'one' }], 'accounts[1].clientId', 'client id one'],
    [[{ name: 'A' }, { name: 'A' }], 'accounts[1].name', 'account name A'],
  ])('%j: client ids are unique in a region, and so are account names', async (accounts, field, what) => {
    const content = {
      jobs: 0,
      opening: false,
      accounts: accounts.map((one) => ({ region: 'us', ...one })),
    };
    const file = await written(JSON.stringify(content));
    await expect(startScenario(file)).rejects.toThrow(
      new ScenarioFileError(`${file}: ${field} must be unique: The ${what} exists in us already.`),
    );
  });

  test('a number of accounts together with a list of accounts is rejected', async () => {
    await expect(startScenario('season', { accounts: 2 })).rejects.toThrow(
      new ScenarioFileError('season lists its accounts, so a number of accounts per region cannot be given.'),
    );
  });

  test('startAt: a stopped clock starts there', async () => {
    const startAt = '2026-11-20T16:14:00Z';
    const sandbox = await startScenario({ jobs: 1, opening: false, clock: 'stopped', startAt }, { port: 0 });
    onTestFinished(() => sandbox.stop());
    expect(sandbox.clock.now()).toBe(START);
  });

  test('a scheduled change with an unknown account is rejected', async () => {
    const file = await written(
      JSON.stringify({ scheduledChanges: [{ do: 'rotateSecret', region: 'us', account: 'absent' }] }),
    );
    await expect(startScenario(file)).rejects.toThrow(
      'a scheduled change names "absent", which is no account in us; there are: us-demo-1.',
    );
  });

  test('a missing file, a folder, or a file that is not JSON, is rejected with a message', async () => {
    for (const path of ['no-such', tmpdir()])
      expect(() => loadScenario(path)).toThrow(`The scenario ${path} cannot be read: it must be one of `);
    const file = await written('{');
    expect(() => loadScenario(file)).toThrow(`${file} must contain valid JSON.`);
  });
});

describe('the control panel', () => {
  const ask = async (url: string, body?: unknown, method = body === undefined ? 'GET' : 'POST') => {
    const answer = await fetch(url, { method, ...(body !== undefined && { body: JSON.stringify(body) }) });
    // biome-ignore lint/suspicious/noExplicitAny: the tests read any field.
    return { status: answer.status, json: (await answer.json()) as any };
  };

  test('has its own port: the ordering API has no path to it', async () => {
    const { sandbox } = await startService();
    expect(new URL(sandbox.adminUrl).port).not.toBe(new URL(sandbox.url).port);
    expect((await ask(`${sandbox.url}/_admin/accounts`)).status).toBe(404);
    expect((await ask(`${sandbox.url}/accounts`)).status).toBe(404);
    expect((await ask(`${sandbox.adminUrl}/us/api/Jobs/active`)).status).toBe(404);
    await sandbox.stop();
    await expect(fetch(sandbox.adminUrl)).rejects.toThrow('fetch failed');
  });

  test('an occupied panel port is reported by number, and nothing is left running', async () => {
    const { sandbox } = await startService();
    const adminPort = Number(new URL(sandbox.adminUrl).port);
    const failure = await startSandbox({ world: createWorld(), adminPort }).catch((error: unknown) => error);
    expect(failure).toBeInstanceOf(PortTakenError);
    expect((failure as PortTakenError).port).toBe(adminPort);
  });

  test('GET / lists all operations, and each of them exists', async () => {
    const { sandbox } = await startService();
    const { json } = await ask(sandbox.adminUrl);
    expect(json.routes.length).toBeGreaterThan(12);
    for (const { method, path, does } of json.routes) {
      expect(does).toMatch(/\.$/);
      if (method !== 'GET') continue;
      expect([path, (await ask(sandbox.adminUrl + path)).status]).toEqual([
        path,
        path.startsWith('/jobs') ? 400 : 200,
      ]);
    }
    expect(Object.keys(json.jobActions)).toEqual(
      expect.arrayContaining(['artwork', 'dispatch', 'hide', 'live']),
    );
  });

  test('rejects every request of a web page', async () => {
    const { sandbox } = await startService();
    for (const method of ['GET', 'POST', 'DELETE', 'OPTIONS']) {
      const answer = await fetch(`${sandbox.adminUrl}/faults`, {
        method,
        headers: { origin: 'https://evil.example' },
      });
      expect([method, answer.status]).toEqual([method, 403]);
    }
  });

  test('activates a fault for a number of seconds of the sandbox clock', async () => {
    const { sandbox, us, clock } = await startService();
    const fault = { kind: 'status', status: 500 };
    const put = await ask(`${sandbox.adminUrl}/faults`, {
      match: { operation: 'account' },
      fault,
      forSeconds: 30,
    });
    expect(put.status).toBe(201);
    clock.now += 29_999;
    expect((await fetch(`${sandbox.apiUrl('us')}/account`)).status).toBe(500);
    clock.now += 1;
    expect((await us.get('/account')).status).toBe(200);
    expect((await ask(`${sandbox.adminUrl}/faults`, { fault, forSeconds: -1 })).status).toBe(400);
  });

  test.each([{}, { insert: 0, hide: 0 }])('rejects a page drift that changes nothing: %j', async (fields) => {
    const { sandbox } = await startService();
    const { status, json } = await ask(`${sandbox.adminUrl}/faults`, {
      fault: { kind: 'pageDrift', ...fields },
    });
    expect(status).toBe(400);
    expect(JSON.stringify(json)).toContain('fault must have insert or hide, as a number from 1 to 1000.');
    expect(sandbox.faults.list()).toEqual([]);
  });

  test('plans, lists and ends scheduled changes', async () => {
    const { sandbox, clock, us } = await startService();
    const at = `${sandbox.adminUrl}/scheduled-changes`;
    const rule = { match: { path: 'account' }, fault: { kind: 'status', status: 503 } };
    const { json, status } = await ask(at, { do: 'fault', afterSeconds: 10, forSeconds: 10, rule });
    expect([status, json.state]).toEqual([201, 'planned']);
    const other = await ask(at, { do: 'fault', rule });
    expect(other.json.state).toBe('active');
    expect((await fetch(`${sandbox.apiUrl('us')}/account`)).status).toBe(503);
    expect((await ask(`${at}/${other.json.id}`, undefined, 'DELETE')).status).toBe(200);
    expect((await ask(`${at}/${other.json.id}`, undefined, 'DELETE')).status).toBe(404);
    expect((await us.get('/account')).status).toBe(200);
    clock.now += 10_000;
    expect((await ask(at)).json).toMatchObject([
      { id: json.id, state: 'active', change: { rule: { match: { path: 'account' } } } },
      { state: 'completed' },
    ]);
    clock.now += 10_000;
    expect((await us.get('/account')).status).toBe(200);
    expect((await ask(at)).json.map(({ state }: { state: string }) => state)).toEqual([
      'completed',
      'completed',
    ]);
    expect((await ask(at, { do: 'revokeTokens', region: 'us', account: 'acme' })).json.state).toBe(
      'completed',
    );
    expect((await us.get('/account')).status).toBe(401);
    expect((await ask(at, { do: 'rotateSecret', region: 'us', account: 'absent' })).status).toBe(400);
    const cancelled = (await ask(at, { do: 'revokeTokens', afterSeconds: 10 })).json.id;
    expect((await ask(`${at}/${cancelled}`, undefined, 'DELETE')).status).toBe(200);
    expect((await ask(`${at}/${cancelled}`, undefined, 'DELETE')).status).toBe(404);
    clock.now += 10_000;
    expect((await ask(at)).json.at(-1)).toMatchObject({ id: cancelled, state: 'cancelled' });
  });

  test('names the accepted values of an account', async () => {
    const { sandbox } = await startService();
    const { status, json } = await ask(`${sandbox.adminUrl}/scheduled-changes`, {
      do: 'rotateSecret',
      region: 'us',
    });
    expect(status).toBe(400);
    expect(JSON.stringify(json)).toContain('account must be a name, a client id or an upstream id.');
  });

  test('lists the fields of each kind of scheduled change', async () => {
    const { sandbox } = await startService();
    const { routes } = (await ask(sandbox.adminUrl)).json;
    const { body } = routes.find(
      (route: { method: string; path: string }) =>
        route.method === 'POST' && route.path === '/scheduled-changes',
    );
    expect(body).toContain('{ do: fault, afterSeconds?, forSeconds?, rule }');
    expect(body).toContain('{ do: rotateSecret, afterSeconds?, region, account, secret? }');
  });

  test('renames a status, but not to a name that the lookup already contains', async () => {
    const { sandbox, us, acme } = await startService();
    const job = acme.createJob({ status: 'On hold' });
    const before = (await us.get('/Lookups/job-statuses')).json;
    const rename = (newName: string) =>
      ask(`${sandbox.adminUrl}/scheduled-changes`, {
        do: 'renameStatus',
        region: 'us',
        name: 'On hold',
        newName,
      });
    expect((await rename('Shipped')).json.state).toBe('completed');
    expect((await us.get('/Lookups/job-statuses')).json).toEqual(before);
    expect(acme.job(job)?.jobStatus).toBe('On hold');
    await rename('Paused');
    expect(acme.job(job)?.jobStatus).toBe('Paused');
  });

  test('keeps the latest thousand completed scheduled changes plus all planned and active ones, and never reuses an id', async () => {
    const { sandbox, clock } = await startService();
    const { scheduler } = sandbox;
    const rule = { match: {}, fault: { kind: 'delay', delayMs: 1 } } as const;
    const plan = (change: ScheduledChange) => scheduler.plan(change, clock.now).id;
    const kept = [
      plan({ do: 'fault', afterSeconds: 0, rule }),
      plan({ do: 'fault', afterSeconds: 1e6, rule }),
    ];
    const over: string[] = [];
    for (let count = 0; count < 1500; count++) {
      over.push(plan({ do: 'revokeTokens', afterSeconds: 0, region: 'nz' }));
      scheduler.advanceTo(clock.now);
    }
    const last = plan({ do: 'revokeTokens', afterSeconds: 1 });
    expect(scheduler.list().map(({ id }) => id)).toEqual([...kept, ...over.slice(-1000), last]);
    expect(new Set([...kept, ...over, last]).size).toBe(1503);
    expect([scheduler.end(over[0] ?? ''), scheduler.end(kept[0] ?? '')]).toEqual([false, true]);
  });

  test.each(['/faults', '/faults/fault-1'])(
    'DELETE %s ends the scheduled change that activated the rule',
    async (path) => {
      const { sandbox } = await startService();
      const change = { do: 'fault', rule: { fault: { kind: 'hang' } }, forSeconds: 60 };
      expect((await ask(`${sandbox.adminUrl}/scheduled-changes`, change)).json.state).toBe('active');
      expect((await ask(sandbox.adminUrl + path, undefined, 'DELETE')).status).toBe(200);
      expect((await ask(`${sandbox.adminUrl}/scheduled-changes`)).json).toMatchObject([
        { state: 'completed' },
      ]);
      expect((await ask(`${sandbox.adminUrl}/faults`)).json).toEqual([]);
    },
  );

  test('a job that is hidden during a page drift remains hidden when the drift ends', async () => {
    const { sandbox, acme, us, clock } = await startService();
    const jobs = [acme.createJob(), acme.createJob()];
    sandbox.faults.add({ match: { times: 1 }, fault: { kind: 'pageDrift', hide: 2, forSeconds: 20 } });
    await us.get('/Jobs/active');
    expect(acme.activeJobNumbers()).toEqual([]);
    expect((await ask(`${sandbox.adminUrl}/jobs/us/${jobs[0]}/hide`, {})).status).toBe(200);
    clock.now += 20_000;
    await us.get('/Jobs/active');
    expect(acme.activeJobNumbers()).toEqual([jobs[1]]);
  });

  test('stores no end time of a deleted rule', async () => {
    const { sandbox, clock, us } = await startService();
    const fault = { kind: 'delay', delayMs: 1 };
    await ask(`${sandbox.adminUrl}/faults`, { fault, forSeconds: 30 });
    const { json } = await ask(`${sandbox.adminUrl}/scheduled-changes`, {
      do: 'fault',
      rule: { fault },
      forSeconds: 60,
    });
    const ends = () => ['fault-1', 'fault-2'].map((id) => sandbox.scheduler.endOfRule(id));
    expect(ends()).toEqual([clock.now + 30_000, clock.now + 60_000]);
    clock.now += 30_000;
    expect((await us.get('/account')).status).toBe(200);
    expect(ends()).toEqual([null, clock.now + 30_000]);
    await ask(`${sandbox.adminUrl}/scheduled-changes/${json.id}`, undefined, 'DELETE');
    expect(ends()).toEqual([null, null]);
    expect(sandbox.faults.list()).toEqual([]);
  });

  test("advances the clock if it is the sandbox's own, and jobs live on meanwhile", async () => {
    const own = new SandboxClock({ startAt: START, stopped: true });
    const sandbox = await startScenario({ jobs: 20, scheduledChanges: [] }, { clock: own, port: 0 });
    onTestFinished(() => sandbox.stop());
    expect((await ask(`${sandbox.adminUrl}/clock`)).json).toEqual({
      now: '2026-11-20T16:14:00.000Z',
      canBeSetForward: true,
      stopped: true,
    });
    expect(sandbox.scenario.history).toEqual([]);
    const { json } = await ask(`${sandbox.adminUrl}/clock/advance`, { seconds: 600 });
    expect(json.now).toBe('2026-11-20T16:24:00.000Z');
    expect(sandbox.scenario.history.length).toBeGreaterThan(50);
    expect((await ask(`${sandbox.adminUrl}/clock/advance`, { seconds: -1 })).status).toBe(400);

    const { sandbox: other, clock } = await startService();
    expect((await ask(`${other.adminUrl}/clock/advance`, { seconds: 600 })).status).toBe(409);
    expect(clock.now).toBe(START);
  });

  test('answers other requests while it advances the clock, and stops when the client disconnects', async () => {
    const own = new SandboxClock({ startAt: START, stopped: true });
    const sandbox = await startScenario({ jobs: 20 }, { clock: own, port: 0 });
    onTestFinished(() => sandbox.stop());
    const [{ json: panel }, { json: before }] = [
      await ask(sandbox.adminUrl),
      await ask(`${sandbox.adminUrl}/clock`),
    ];
    const most = sandbox.scenario.longestAdvanceSeconds;
    expect(panel.routes.find(({ path }: { path: string }) => path === '/clock/advance').body).toContain(
      `${most}`,
    );
    const far = await ask(`${sandbox.adminUrl}/clock/advance`, { seconds: most + 1 });
    expect([far.status, far.json.detail + JSON.stringify(far.json.errors)]).toEqual([
      400,
      expect.stringContaining(`${most}`),
    ]);

    const gone = new AbortController();
    const asked = fetch(`${sandbox.adminUrl}/clock/advance`, {
      method: 'POST',
      body: JSON.stringify({ seconds: most }),
      signal: gone.signal,
    });
    const ended = asked.catch((error: Error) => error.name);
    const now = async () => Date.parse((await ask(`${sandbox.adminUrl}/clock`)).json.now);
    const start = Date.parse(before.now);
    while ((await now()) === start) await Promise.resolve();
    const partWay = await now();
    expect(partWay).toBeGreaterThan(start);
    expect(partWay).toBeLessThan(start + most * 1000);
    gone.abort();
    expect(await ended).toBe('AbortError');
    for (let last = 0; last !== own.now(); ) {
      last = own.now();
      await ask(`${sandbox.adminUrl}/clock`);
      await ask(`${sandbox.adminUrl}/clock`);
    }
    expect(own.now()).toBeLessThan(start + most * 1000);
  });

  test.each<[string, unknown, string]>([
    [
      '/faults',
      { fault: { kind: 'hang' }, forSecond: 3 },
      'the body has no field forSecond; it may have: match, fault, forSeconds.',
    ],
    [
      '/faults',
      { fault: { kind: 'hang' }, match: { path: '(' } },
      'match.path must be a regular expression.',
    ],
    [
      '/faults',
      { fault: { kind: 'hang' }, match: { method: 'FLY' } },
      'match.method must be one of: GET, POST',
    ],
    [
      '/faults',
      { fault: { kind: 'hang' }, match: { account: 'absent' } },
      'account names "absent", which is no account; there are: acme-key.',
    ],
    ['/faults', { fault: { kind: 'delay', delayMs: 2 ** 31 } }, 'fault.delayMs must be at most 2147483647.'],
    [
      '/faults',
      { fault: { kind: 'status', status: 503, retryAfter: 'a\nb' } },
      'fault.retryAfter must be a text of one line',
    ],
    ['/faults', [], 'The body is not a JSON object.'],
    ['/clock/advance', { seconds: 'x' }, 'seconds must be a number.'],
    ['/tokens/revoke', { account: 'absent' }, 'account names "absent"'],
    ['/tokens/revoke', { region: 'mars' }, 'region must be one of: us, nz, au, uk, eu.'],
    ['/jobs/mars/1/close', {}, 'region must be one of: us, nz, au, uk, eu.'],
    ['/requests?region=mars', undefined, 'The query: region must be one of: us, nz, au, uk, eu.'],
    ['/requests?account=absent', undefined, 'account names "absent"'],
    ['/jobs?region=us&account=absent', undefined, 'account names "absent", which is no account in us'],
  ])('%s %j is rejected with a message that names the accepted values', async (path, body, message) => {
    const { sandbox } = await startService();
    const { status, json } = await ask(sandbox.adminUrl + path, body);
    expect([status, json.detail]).toEqual([400, expect.stringContaining(message)]);
    expect(sandbox.faults.list()).toEqual([]);
  });

  test('answers an internal error with 500 without details, and logs it to stderr', async () => {
    const { sandbox, acme } = await startService();
    const complaint = vi.spyOn(console, 'error').mockImplementation(() => {});
    onTestFinished(() => complaint.mockRestore());
    vi.spyOn(acme, 'activeJobNumbers').mockImplementation(() => {
      throw new TypeError('a mistake');
    });
    const { status, json } = await ask(`${sandbox.adminUrl}/jobs?region=us&account=acme`);
    expect([status, json.detail]).toEqual([500, 'An unexpected error; retry once.']);
    expect(complaint.mock.calls).toEqual([[expect.stringContaining('GET /jobs failed with TypeError at ')]]);
  });

  test('rejects a body of more than 1 MiB with 413, also if it is chunked', async () => {
    const { sandbox } = await startService();
    const url = `${sandbox.adminUrl}/scheduled-changes`;
    const large = ' '.repeat(1024 * 1024 + 1);
    for (const body of [large, new Blob([large]).stream()]) {
      const answer = await fetch(url, { method: 'POST', body, duplex: 'half' } as RequestInit);
      expect([answer.status, await answer.json()]).toEqual([
        413,
        expect.objectContaining({ status: 413, detail: 'The body is larger than 1048576 bytes.' }),
      ]);
    }
    expect((await ask(url, { do: 'revokeTokens', pad: large.slice(2000) })).status).toBe(400);
  });

  test('accepts name, client id or upstream id for an account everywhere', async () => {
    const { sandbox, acme, as } = await startService();
    for (const account of ['acme', acme.clientId, acme.id]) {
      await as('user');
      expect((await ask(`${sandbox.adminUrl}/tokens/revoke`, { account })).json.revoked).toBeGreaterThan(0);
      expect((await ask(`${sandbox.adminUrl}/requests?account=${account}`)).json.length).toBeGreaterThan(0);
      expect((await ask(`${sandbox.adminUrl}/jobs?region=us&account=${account}`)).status).toBe(200);
    }
  });

  test('active rules list their end time', async () => {
    const { sandbox, clock } = await startService();
    const fault = { kind: 'hang' };
    await ask(`${sandbox.adminUrl}/faults`, { fault });
    await ask(`${sandbox.adminUrl}/faults`, { fault, forSeconds: 30 });
    await ask(`${sandbox.adminUrl}/scheduled-changes`, { do: 'fault', rule: { fault }, forSeconds: 60 });
    const until = (seconds: number) => new Date(clock.now + seconds * 1000).toISOString();
    const ends = (await ask(`${sandbox.adminUrl}/faults`)).json.map((rule: { until: unknown }) => rule.until);
    expect(ends).toEqual([null, until(30), until(60)]);
  });

  test('a job lists by line the number of artwork attempts and the last error, without secrets of the URL', async () => {
    const artwork = await artworkServer(lost);
    const own = new SandboxClock({ startAt: START, stopped: true });
    const sandbox = await startScenario({ jobs: 0, opening: false }, { clock: own, port: 0, speed: 1 });
    onTestFinished(() => sandbox.stop());
    const account = sandbox.world.account('us', 'us-demo-1') as SandboxAccount;
    const shown = async (job: number) => {
      await sandbox.scenario.settled();
      return (await ask(`${sandbox.adminUrl}/jobs/us/${job}`)).json.artwork;
    };
    const secret = artwork.url.replace('//', '//me:pass@');
    const job = account.createJob({
      lines: [{ artworkUrl: `${artwork.url}/a.png?sig=1#x` }, {}, { artworkUrl: `${secret}/b.png` }],
    });
    const url = `${artwork.url}/a.png?…`;
    const bare = secret.replace('me:pass', '…');
    expect(await shown(job)).toEqual([
      { line: 0, url, tries: 0, reason: null },
      { line: 2, url: `${bare}/b.png`, tries: 0, reason: null },
    ]);
    await ask(`${sandbox.adminUrl}/jobs/us/${job}/live`, {});
    expect(await shown(job)).toEqual([
      { line: 0, url, tries: 1, reason: 'It answered 404.' },
      { line: 2, url: `${bare}/b.png`, tries: 1, reason: 'The address carries credentials.' },
    ]);
    artwork.answer = (_, response) => void response.writeHead(200).end();
    await ask(`${sandbox.adminUrl}/clock/advance`, { seconds: 300 });
    expect((await shown(job))[0]).toEqual({ line: 0, url, tries: 2, reason: 'It is empty.' });
    artwork.answer = serves;
    await ask(`${sandbox.adminUrl}/jobs/us/${job}/artwork`, { line: 2, url: `${artwork.url}/b.png` });
    expect(await shown(job)).toEqual([
      { line: 0, url, tries: 3, reason: null },
      { line: 2, url: `${artwork.url}/b.png`, tries: 1, reason: null },
    ]);
    const unnamed = account.createJob({ lines: [{ needsArtwork: true }, { artworkUrl: 'somewhere' }] });
    expect(await shown(unnamed)).toEqual([
      { line: 0, url: null, tries: 0, reason: 'No artwork URL was given.' },
      { line: 1, url: 'no address', tries: 0, reason: null },
    ]);
    expect((await ask(`${sandbox.adminUrl}/jobs/us/1`)).status).toBe(404);
    expect((await ask(`${sandbox.adminUrl}/jobs/mars/${job}`)).status).toBe(400);
  });

  test.each([1e17, 8e14, -1e14])(
    'rejects a date outside the years 1 to 9999 (%d) and changes nothing',
    async (date) => {
      const { sandbox, acme } = await startService();
      const job = acme.createJob();
      const before = structuredClone([...acme.jobs()]);
      for (const [path, body] of [
        ['/jobs', { region: 'us', account: 'acme', dateDue: date }],
        [`/jobs/us/${job}/edit`, { description: 'half', dateDue: date }],
        [`/jobs/us/${job}/dispatch`, { dateOut: date, status: 'Shipped' }],
      ] as const) {
        const { status, json } = await ask(sandbox.adminUrl + path, body);
        expect([status, json.detail]).toEqual([
          400,
          expect.stringMatching(/^date(?:Due|Out) must be at (?:least|most) /),
        ]);
      }
      expect([...acme.jobs()]).toEqual(before);
    },
  );

  test.each(['edit', 'invoice'])('%s rejects an invoice number that no link can contain', async (name) => {
    const { sandbox, acme } = await startService();
    const { status, json } = await ask(`${sandbox.adminUrl}/jobs/us/${acme.createJob()}/${name}`, {
      invoiceNumber: '\ud800',
    });
    expect([status, json.detail]).toEqual([400, 'invoiceNumber must be a text without lone surrogates.']);
  });

  test.each(['constructor', 'fly'])(
    'answers 404 with the list of actions for the action %s',
    async (name) => {
      const { sandbox, acme } = await startService();
      const { status, json } = await ask(`${sandbox.adminUrl}/jobs/us/${acme.createJob()}/${name}`, {});
      expect([status, json.detail]).toEqual([
        404,
        expect.stringContaining('The actions are: edit, status, '),
      ]);
    },
  );

  test('creates a job with a number from 1 to 1e9, so that numbers remain for later ones', async () => {
    const { sandbox } = await startService();
    const make = (jobNumber: number) =>
      ask(`${sandbox.adminUrl}/jobs`, { region: 'us', account: 'acme', jobNumber });
    for (const jobNumber of [-5, 0, 1e9 + 1, Number.MAX_SAFE_INTEGER]) {
      expect([jobNumber, (await make(jobNumber)).status]).toEqual([jobNumber, 400]);
    }
    expect((await make(1e9)).json).toEqual({ jobNumber: 1e9 });
  });

  test('supplies artwork, and starts the life of a manually created job', async () => {
    const artwork = await artworkServer();
    const own = new SandboxClock({ startAt: START, stopped: true });
    const sandbox = await startScenario({ jobs: 0, opening: false }, { clock: own, port: 0, speed: 1000 });
    onTestFinished(() => sandbox.stop());
    const act = (jobNumber: number, action: string, body: object) =>
      ask(`${sandbox.adminUrl}/jobs/us/${jobNumber}/${action}`, body);
    const { json: simulated } = await ask(`${sandbox.adminUrl}/jobs`, { region: 'us', account: 'us-demo-1' });
    await ask(`${sandbox.adminUrl}/clock/advance`, { seconds: 3600 });
    const account = sandbox.world.account('us', 'us-demo-1');
    expect(account?.job(simulated.jobNumber)?.masterJobStatus).toBe('Order received');
    expect((await act(simulated.jobNumber, 'live', {})).status).toBe(200);
    const waits = account?.createJob({ lines: [{ needsArtwork: true }] }) ?? 0;
    await act(waits, 'live', {});
    await ask(`${sandbox.adminUrl}/clock/advance`, { seconds: 3600 });
    expect(account?.job(simulated.jobNumber)?.phase).toBe('closed');
    expect(account?.job(waits)?.masterJobStatus).toBe('Awaiting artwork');
    await act(waits, 'artwork', { line: 0, url: `${artwork.url}/a.png` });
    await sandbox.scenario.settled();
    expect(account?.job(waits)?.masterJobStatus).toBe('Order received');
    expect((await act(waits, 'artwork', { line: 7, url: 'x' })).status).toBe(400);
  });
});

/** A file with this content, gone with the test. */
async function written(content: string): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), 'scenario-'));
  onTestFinished(() => rm(folder, { recursive: true }));
  const file = join(folder, 'my.json');
  await writeFile(file, content);
  return file;
}
