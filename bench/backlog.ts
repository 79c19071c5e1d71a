/**
 * A child process: drains a long backlog of an endpoint that is down for five days, on a clock that advances from one back-off step to
 * the next. Compares the rate after its recovery with a new endpoint on the same log.
 */
import { enableHealth, healthAttributes, toHealth } from '../shared/delivery/health.ts';
import { keys } from '../shared/storage/schema.ts';
import { startChild } from './child.ts';
import type { ReceiverFacts, ReceiverRequest, Tally } from './receiver.ts';
import { median } from './statistics.ts';
import { ACCOUNT, addSink, createWire, drain, fill, startTables, timed } from './wire.ts';

/** Results. */
export interface BacklogResults {
  readonly events: number;
  /** Back-off steps until the endpoint was disabled. */
  readonly steps: number;
  /** Maximum number of requests of a step after the first. */
  readonly probesPerStep: number;
  /** Maximum memory after a step, relative to the memory after the first step. */
  readonly memoryGrowth: number;
  readonly recoveredPerSecond: number;
  readonly newPerSecond: number;
  /** Median of the rounds. */
  readonly recoveryRatio: number;
}

const events = Number(process.argv[2]);
const ROUNDS = 3;
const DRAIN_FOR_MS = 3_000;

const [receiver, tables] = await Promise.all([startChild<ReceiverFacts>('receiver.ts'), startTables()]);
const { url } = receiver.facts;
const ask = (request: ReceiverRequest) => receiver.ask<Tally>(request);
let ahead = 0;
const wire = createWire(tables.client, { now: () => Date.now() + ahead });
await fill(wire, events);
await addSink(wire, 'dead', `${url}dead`, events);
await ask({ status: 503 });

const memory: number[] = [];
const probes: number[] = [];
for (;;) {
  const { outcome, waitUntil = 0 } = await drain(wire, 'dead');
  globalThis.gc?.();
  memory.push(process.memoryUsage().heapUsed + process.memoryUsage().external);
  probes.push((await ask({})).requests);
  if (outcome === 'disabled') break;
  if (outcome !== 'waiting') throw new Error(`A drain of a dead endpoint was ${outcome}.`);
  ahead = waitUntil - Date.now();
}

await ask({ status: 204 });
const key = keys.sink(ACCOUNT.region, 'dead');
const item = await wire.table.get(key);
if (!item) throw new Error('The sink does not exist.');
await wire.table.write({ update: key, set: healthAttributes(enableHealth(toHealth(item))) });
const recovered: number[] = [];
const fresh: number[] = [];
for (let round = 0; round < ROUNDS; round += 1) {
  const work = [
    async () => recovered.push(await measureRate('dead')),
    async () => {
      await addSink(wire, `new-${round}`, `${url}new`, events);
      fresh.push(await measureRate(`new-${round}`));
    },
  ];
  for (const measure of round % 2 === 0 ? work : work.reverse()) await measure();
}

const [firstMemory = Number.NaN] = memory;
process.send?.({
  events,
  steps: probes.length,
  probesPerStep: Math.max(...probes.slice(1)),
  memoryGrowth: Math.max(...memory) / firstMemory,
  recoveredPerSecond: median(recovered),
  newPerSecond: median(fresh),
  recoveryRatio: median(recovered.map((rate, at) => rate / (fresh[at] ?? Number.NaN))),
} satisfies BacklogResults);
wire.connections.close();
await tables.stop();
receiver[Symbol.dispose]();
process.disconnect();

async function measureRate(id: string): Promise<number> {
  const { seconds, result } = await timed(() => drain(wire, id, DRAIN_FOR_MS));
  return result.delivered / seconds;
}
