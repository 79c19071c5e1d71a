/**
 * A child process: measures the rate of a backlog to one endpoint, to fifty, and to a slow one, compared with a bare loop of signed POSTs
 * to the same receiver with the same concurrency and the same writes to the delivery log.
 */
import { INITIAL_LANES } from '../shared/delivery/lanes.ts';
import { startChild } from './child.ts';
import type { ReceiverFacts } from './receiver.ts';
import { median } from './statistics.ts';
import { addSink, createBareLoop, createWire, drain, fill, readEvents, startTables, timed } from './wire.ts';

/** Results: events per second; ratios are medians of the rounds. */
export interface RateResults {
  readonly rounds: number;
  readonly barePerSecond: number;
  readonly onePerSecond: number;
  readonly oneRatio: number;
  readonly fiftyPerSecond: number;
  readonly fiftyRatio: number;
  readonly slowPerSecond: number;
  /** Rate divided by that of {@link INITIAL_LANES} which are never idle. */
  readonly slowRatio: number;
}

/** Number of events in the log, which every sink receives from its beginning. */
const EVENTS = 3_000;
const ENDPOINTS = 50;
const EVENTS_OF_FIFTY = 300;
/** Latency of the slow endpoint, and duration of its drain. */
const SLOW_MS = 200;
const SLOW_FOR_MS = 5_000;

const rounds = Number(process.argv[2]);
const [receiver, tables] = await Promise.all([startChild<ReceiverFacts>('receiver.ts'), startTables()]);
const { url } = receiver.facts;
const wire = createWire(tables.client);
await fill(wire, EVENTS);
const events = await readEvents(wire, EVENTS);
const bareLoop = createBareLoop(wire, `${url}bare`);
let sinks = 0;

const bare: number[] = [];
const one: number[] = [];
const fifty: number[] = [];
for (let round = -1; round < rounds; round += 1) {
  // The order alternates, so that noise of the machine affects all sides equally.
  const work = [
    async () => bare.push(await rateOfBare()),
    async () => one.push(await measureRate(1, EVENTS)),
    async () => fifty.push(await measureRate(ENDPOINTS, EVENTS_OF_FIFTY)),
  ];
  for (const measure of round % 2 === 0 ? work : work.reverse()) await measure();
  if (round < 0) for (const rates of [bare, one, fifty]) rates.length = 0;
}
await addSink(wire, 'slow', `${url}after/${SLOW_MS}`, EVENTS);
const slow = await timed(() => drain(wire, 'slow', SLOW_FOR_MS));
const slowPerSecond = slow.result.delivered / slow.seconds;

const ratio = (rates: readonly number[]): number =>
  median(rates.map((rate, at) => rate / (bare[at] ?? Number.NaN)));
process.send?.({
  rounds,
  barePerSecond: median(bare),
  onePerSecond: median(one),
  oneRatio: ratio(one),
  fiftyPerSecond: median(fifty),
  fiftyRatio: ratio(fifty),
  slowPerSecond,
  slowRatio: slowPerSecond / (INITIAL_LANES * (1000 / SLOW_MS)),
} satisfies RateResults);
wire.connections.close();
await tables.stop();
receiver[Symbol.dispose]();
process.disconnect();

async function rateOfBare(): Promise<number> {
  const { seconds } = await timed(() => bareLoop(events));
  return EVENTS / seconds;
}

/** Returns the total rate of concurrent new sinks, each with the given number of events. */
async function measureRate(count: number, eventsEach: number): Promise<number> {
  const ids = Array.from({ length: count }, () => `sink-${++sinks}`);
  for (const id of ids) await addSink(wire, id, `${url}${id}`, EVENTS, EVENTS - eventsEach);
  const { seconds, result } = await timed(() => Promise.all(ids.map((id) => drain(wire, id))));
  for (const { outcome, delivered, unlogged } of result) {
    if (outcome !== 'drained' || delivered !== eventsEach || unlogged > 0) {
      throw new Error(`A drain was ${outcome} with ${delivered} events, ${unlogged} not logged.`);
    }
  }
  return (count * eventsEach) / seconds;
}
