/** The phases of a round: measures one system with fresh data. */
import { setTimeout as sleep } from 'node:timers/promises';
import type { Child } from '../child.ts';
import { percentile } from '../statistics.ts';
import { waitUntil } from './processes.ts';
import type { Behaviour, ReceiverFacts, ReceiverRequest, ReceiverState } from './receiver.ts';
import { judge, type Measured, omitUnread, readClockMs, type Verdict } from './results.ts';
import type { System } from './systems.ts';

/** Sizes of the phases. */
export interface Sizes {
  readonly sustainedEvents: number;
  readonly fanOutEvents: number;
  readonly slowEvents: number;
  /** Number of events that are not delivered when the processes are killed. */
  readonly outstandingEvents: number;
  readonly latencySeconds: number;
  readonly idleSeconds: number;
  readonly outageSeconds: number;
  /** Minimum time for duplicates to arrive after a restart. */
  readonly duplicateSeconds: number;
}

const CONCURRENCY = 16;
/** A multiple of the concurrency, so that the events of a job are published one after the other. */
const JOBS = 400;
const OUTAGE_JOBS = 100;
const FAN_OUT = 50;
const PER_SECOND = 20;
/** Events of the latency phase that are not evaluated. */
const WARM_UP_EVENTS = 60;
/** Rate of the receiver while events accumulate that a kill interrupts. */
const GATED_PER_SECOND = 50;
const SETTLE_MS = 5_000;
/** Until connections, caches and garbage of the last phase are gone. */
const IDLE_SETTLE_MS = 30_000;
/** Maximum time for all events of a phase to arrive. */
const PHASE_MS = 600_000;
const RECOVERY_MS = 180_000;

/** Measures a system, from its initialization to its last phase. A failed phase is reported and does not end the round. */
export async function measureSystem(
  system: System,
  receiver: Child<ReceiverFacts>,
  sizes: Sizes,
  onFailure: (phase: string, cause: unknown) => void,
): Promise<Measured> {
  const { processes } = system;
  const ask = (request: ReceiverRequest) => receiver.ask<ReceiverState>(request);
  const respond = (behaviour: Behaviour) => ask({ behaviour });
  const results: Measured = {};

  /** Creates a tenant with endpoints, and measures it. */
  async function phase(
    name: string,
    endpoints: number,
    work: (tenant: string) => Promise<Measured>,
  ): Promise<void> {
    try {
      await ask({ phase: name });
      const urls = Array.from({ length: endpoints }, (_, at) => `${receiver.facts.url}/${name}/${at}`);
      if (endpoints > 0) await system.addEndpoints(name, urls);
      Object.assign(results, await work(name));
    } catch (cause) {
      onFailure(name, cause);
    }
  }

  /** Waits until a number of events has arrived. */
  const arrived = (events: number) =>
    waitUntil(async () => (await ask({})).events >= events, `${events} events`, PHASE_MS);

  async function evaluate(events: number, endpoints = 1): Promise<Verdict> {
    return judge(await listDeliveries(), events, endpoints);
  }

  const listDeliveries = async () => (await ask({ list: true })).deliveries ?? [];

  /**
   * Publishes events as fast as they are acknowledged, at most `limit`, and none after `isEnough` holds. Events of a job are published one
   * after the other. Returns the number of events.
   */
  async function publishAll(
    tenant: string,
    limit: number,
    isEnough: (acknowledged: number) => boolean = () => false,
  ): Promise<number> {
    let last = limit;
    let highest = 0;
    let acknowledged = 0;
    await Promise.all(
      Array.from({ length: CONCURRENCY }, async (_, lane) => {
        for (let event = lane + 1; event <= last; event += CONCURRENCY) {
          highest = Math.max(highest, event);
          await system.publish(tenant, event, getJob(event, JOBS));
          acknowledged += 1;
          if (isEnough(acknowledged)) last = Math.min(last, highest);
        }
      }),
    );
    return last;
  }

  /** Publishes events, and waits for their arrival. Returns deliveries per second. */
  async function rate(tenant: string, events: number, endpoints = 1): Promise<number> {
    const from = readClockMs();
    await publishAll(tenant, events);
    await arrived(events * endpoints);
    return (events * endpoints) / (((await evaluate(events, endpoints)).lastAt - from) / 1000);
  }

  /** Publishes events at a constant rate. Returns the times at which they were published. */
  async function publishEvenly(tenant: string, events: number, jobs: number): Promise<number[]> {
    const from = readClockMs();
    const requests: Promise<void>[] = [];
    const times: number[] = [];
    for (let event = 1; event <= events; event += 1) {
      await sleep(Math.max(0, from + (event * 1000) / PER_SECOND - readClockMs()));
      times.push(readClockMs());
      requests.push(system.publish(tenant, event, getJob(event, jobs)));
    }
    await Promise.all(requests);
    return times;
  }

  /** Kills processes while events are outstanding, starts them again, and waits for the rest of the events. */
  async function recover(tenant: string, part?: string): Promise<{ seconds?: number } & Verdict> {
    await respond({ perSecond: GATED_PER_SECOND });
    let accepted = 0;
    let isDone = false;
    const counting = (async () => {
      while (!isDone) {
        accepted = (await ask({})).events;
        await sleep(100);
      }
    })();
    const isEnough = (acknowledged: number) => acknowledged - accepted >= sizes.outstandingEvents;
    const events = await publishAll(tenant, Number.POSITIVE_INFINITY, isEnough).finally(() => {
      isDone = true;
      return counting;
    });
    const killedAt = await processes.kill(part);
    await respond({});
    await system.start();
    const startedAt = readClockMs();
    const isComplete = async () => (await ask({})).events >= events;
    await waitUntil(isComplete, 'the outstanding events', RECOVERY_MS).catch(() => {});
    await sleep(Math.max(SETTLE_MS, startedAt + sizes.duplicateSeconds * 1000 - readClockMs()));
    const verdict = judge(omitUnread(await listDeliveries(), killedAt), events);
    return { ...verdict, ...(verdict.lost === 0 ? { seconds: (verdict.lastAt - killedAt) / 1000 } : {}) };
  }

  await system.initialize();
  await sleep(SETTLE_MS);
  const first = processes.measure();
  Object.assign(results, { idleMemory: first.memoryMb, processes: first.count });

  await phase('warm-up', 2, async (tenant) => {
    await rate(tenant, JOBS, 2);
    return {};
  });
  await phase('fan-out', FAN_OUT, async (tenant) => {
    const fanOut = await rate(tenant, sizes.fanOutEvents, FAN_OUT);
    await sleep(SETTLE_MS);
    return { fanOut, fanOutMemory: processes.measure().memoryMb };
  });
  await phase('idle', 0, async () => {
    await sleep(IDLE_SETTLE_MS);
    const before = processes.measure().cpuMs;
    await sleep(sizes.idleSeconds * 1000);
    return { idleCpu: (processes.measure().cpuMs - before) / (sizes.idleSeconds * 10) };
  });
  await phase('sustained', 1, async (tenant) => ({ sustained: await rate(tenant, sizes.sustainedEvents) }));
  await phase('slow', 1, async (tenant) => {
    await respond({ delayMs: 200 });
    return { slow: await rate(tenant, sizes.slowEvents) };
  });
  await phase('latency', 1, async (tenant) => {
    const events = WARM_UP_EVENTS + sizes.latencySeconds * PER_SECOND;
    await sleep(SETTLE_MS);
    const before = processes.measure().cpuMs;
    const times = await publishEvenly(tenant, events, JOBS);
    await arrived(events);
    await sleep(1_000);
    const cpuMs = processes.measure().cpuMs - before;
    const { arrivals } = await evaluate(events);
    const delays = times.map((time, at) => (arrivals.get(at + 1) ?? Number.NaN) - time).slice(WARM_UP_EVENTS);
    return {
      latencyP50: percentile(delays, 0.5),
      latencyP99: percentile(delays, 0.99),
      cpuPer1000: cpuMs / events,
    };
  });
  await phase('start', 0, async () => {
    await system.stop();
    const from = readClockMs();
    await system.start();
    return { start: (readClockMs() - from) / 1000 };
  });
  await phase('kill-all', 1, async (tenant) => {
    const { seconds, duplicates, lost } = await recover(tenant);
    return {
      ...(seconds === undefined ? {} : { killAll: seconds }),
      ...{ killAllDuplicates: duplicates, killAllLost: lost },
    };
  });
  await phase('kill-server', 1, async (tenant) => {
    const { seconds, duplicates, lost } = await recover(tenant, 'server');
    return {
      ...(seconds === undefined ? {} : { killServer: seconds }),
      ...{ killServerDuplicates: duplicates, killServerLost: lost },
    };
  });
  await phase('outage', 1, async (tenant) => {
    await respond({ status: 503 });
    // Publishing continues after the outage, so that new events compete with retries.
    const outage = sizes.outageSeconds * PER_SECOND;
    const events = Math.round(outage * 1.5);
    const publishing = publishEvenly(tenant, events, OUTAGE_JOBS);
    await sleep(sizes.outageSeconds * 1000);
    await respond({});
    const endedAt = readClockMs();
    await publishing;
    const isComplete = async () => (await ask({})).events >= events;
    await waitUntil(isComplete, 'the events of the outage', RECOVERY_MS).catch(() => {});
    const { lost, jobsOutOfOrder, arrivals } = await evaluate(events);
    const late = Array.from({ length: outage }, (_, at) => arrivals.get(at + 1));
    return {
      ...{ outageLost: lost, outageOutOfOrder: jobsOutOfOrder },
      ...(late.includes(undefined)
        ? {}
        : { outageDrain: (Math.max(...late.filter((at) => at !== undefined)) - endedAt) / 1000 }),
    };
  });
  return results;
}

function getJob(event: number, jobs: number): number {
  return 100_000 + (event % jobs);
}
