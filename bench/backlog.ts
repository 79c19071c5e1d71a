/**
 * A child process: what a long backlog behind a dead endpoint costs. The process that drains is one of its own; the
 * schedule of retries is the usual one, on a clock that leaps.
 */
import { startChild } from './child.ts';
import type { DeadRequest, SpeedFigures, StepFigures } from './dead.ts';
import type { ReceiverFacts, ReceiverRequest, Tally } from './receiver.ts';
import { addSink, createWire, fill, median, startTables } from './wire.ts';

/** What was measured. */
export interface BacklogFigures {
  readonly events: number;
  readonly fillSeconds: number;
  /** Times the sink was tried again, over so many days. */
  readonly steps: number;
  readonly days: number;
  /** Requests to the endpoint per step. */
  readonly fewestProbes: number;
  readonly mostProbes: number;
  readonly heapMb: number;
  /** The most after any step, over that after the first ones. */
  readonly heapGrowth: number;
  readonly rssGrowth: number;
  /** Events per second after the endpoint is back, and of an endpoint beside it that was never away. */
  readonly recoveredPerSecond: number;
  readonly steadyPerSecond: number;
  /** The median of rounds. */
  readonly recoveryRatio: number;
}

/** Of the configuration, unless it says otherwise; repeated often enough for a look at memory. */
const RETRY_SECONDS = [5, 300, 1800, 7200, 18_000];
/** After five days the endpoint would be disabled. */
const DAYS = 4.7;
/** Steps before memory is looked at: code is compiled, connections are made. */
const WARM_UP = 5;
const SPEED_MS = 1_500;

const events = Number(process.argv[2]);
const rounds = Number(process.argv[3]);
const [receiver, tables] = await Promise.all([startChild<ReceiverFacts>('receiver.ts'), startTables()]);
const { url } = receiver.facts;
const wire = createWire(tables.client);
const begin = performance.now();
await fill(wire, events);
const fillSeconds = (performance.now() - begin) / 1000;
await addSink(wire, 'dead', `${url}dead`, events);
await addSink(wire, 'steady', `${url}steady`, events);
const drains = await startChild<object>(
  'dead.ts',
  [JSON.stringify({ endpoint: tables.endpoint, retrySeconds: RETRY_SECONDS })],
  ['--expose-gc'],
);
const answer = (status: number): Promise<Tally> =>
  receiver.ask({ status } satisfies ReceiverRequest) as Promise<Tally>;
const step = (): Promise<StepFigures> =>
  drains.ask({ step: 'dead' } satisfies DeadRequest) as Promise<StepFigures>;

// The first drain finds out that the endpoint is away; from then on it is probed.
await answer(503);
await step();
await answer(503);
const steps: StepFigures[] = [];
const probes: number[] = [];
while ((steps.at(-1)?.day ?? 0) < DAYS) {
  const figures = await step();
  if (figures.outcome !== 'waiting') throw new Error(`A drain of a dead endpoint was ${figures.outcome}.`);
  steps.push(figures);
  probes.push((await answer(503)).requests);
}

const recovered: number[] = [];
const steady: number[] = [];
for (let round = 0; round < rounds; round += 1) {
  const work = [
    async () => {
      await answer(204);
      recovered.push(await rateOf('dead'));
      // It is away once more, for the next round.
      await answer(503);
      await step();
    },
    async () => {
      await answer(204);
      steady.push(await rateOf('steady'));
    },
  ];
  for (const measure of round % 2 === 0 ? work : work.reverse()) await measure();
}

const settled = steps.slice(WARM_UP);
const growthOf = (field: 'heapMb' | 'rssMb'): number =>
  Math.max(...settled.map((figures) => figures[field])) / (settled[0]?.[field] ?? Number.NaN);
process.send?.({
  events,
  fillSeconds,
  steps: steps.length,
  days: steps.at(-1)?.day ?? 0,
  fewestProbes: Math.min(...probes),
  mostProbes: Math.max(...probes),
  heapMb: steps.at(-1)?.heapMb ?? Number.NaN,
  heapGrowth: growthOf('heapMb'),
  rssGrowth: growthOf('rssMb'),
  recoveredPerSecond: median(recovered),
  steadyPerSecond: median(steady),
  recoveryRatio: median(recovered.map((rate, at) => rate / (steady[at] ?? Number.NaN))),
} satisfies BacklogFigures);
drains[Symbol.dispose]();
await tables.stop();
receiver[Symbol.dispose]();
process.disconnect();

async function rateOf(sink: string): Promise<number> {
  const { perSecond, outcome } = (await drains.ask({
    ...{ speed: sink, forMs: SPEED_MS },
  } satisfies DeadRequest)) as SpeedFigures;
  if (outcome !== 'more') throw new Error(`A drain of ${sink} was ${outcome}.`);
  return perSecond;
}
