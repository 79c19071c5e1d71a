/**
 * `npm run bench`: measures what polling and delivering cost, prints a table and JSON lines, and says of each bar whether
 * it is met. Exit code 1 when one is not. Ratios are taken within one run, for machines differ and are busy.
 */
import { once } from 'node:events';
import { type Child, startChild } from './child.ts';
import type { DeliveryFigures } from './delivery.ts';
import type { PollingFigures } from './polling.ts';

interface Bar {
  readonly what: string;
  readonly measured: number;
  readonly atMost: number;
}

const SIZES = [
  { jobs: 500, rounds: 21 },
  { jobs: 5_000, rounds: 15 },
  { jobs: 20_000, rounds: 11 },
];
/** How much a ratio may differ between two sizes before it counts as growth: what noise alone does. */
const GROWTH = 1.15;

const polling: PollingFigures[] = [];
for (const { jobs, rounds } of SIZES) {
  console.log(`Polling ${jobs} open jobs …`);
  polling.push(await measure<PollingFigures>('polling.ts', [String(jobs), String(rounds)]));
}
console.log('Delivering …');
const delivery = await measure<DeliveryFigures>('delivery.ts', ['300']);

console.table(
  Object.fromEntries(
    polling.map((figures) => [
      `${figures.jobs} jobs`,
      Object.fromEntries(Object.entries(figures).map(([name, value]) => [name, round(value as number)])),
    ]),
  ),
);
console.table({
  delivery: Object.fromEntries(
    Object.entries(delivery).map(([name, value]) => [name, round(value as number)]),
  ),
});
for (const figures of polling) console.log(JSON.stringify({ bench: 'polling', ...figures }));
console.log(JSON.stringify({ bench: 'delivery', ...delivery }));

const [small, middle, large] = polling;
if (!small || !middle || !large) throw new Error('Not every size was measured.');
const bars: Bar[] = [
  { what: 'Quiet poll of 5,000 jobs: requests', measured: middle.quietRequests, atMost: 51 },
  { what: 'Quiet poll of 5,000 jobs: read units', measured: middle.readUnits, atMost: 24 },
  { what: 'Quiet poll of 5,000 jobs: writes (Status only)', measured: middle.writesPerQuietPoll, atMost: 1 },
  { what: 'Quiet poll of 5,000 jobs: CPU / floor', measured: middle.quietCpuRatio, atMost: 1.5 },
  { what: 'Quiet poll of 5,000 jobs: wall / floor', measured: middle.quietWallRatio, atMost: 1.5 },
  { what: 'Quiet poll of 5,000 jobs: peak memory, MB', measured: middle.peakMemoryMb, atMost: 200 },
  {
    what: 'Poll of 5,000 jobs with 50 changes: wall less commit / floor',
    measured: middle.changedWallRatio,
    atMost: 2,
  },
  {
    what: 'Growth of the CPU ratio from 500 to 20,000 jobs',
    measured: large.quietCpuRatio / small.quietCpuRatio,
    atMost: GROWTH,
  },
  {
    what: 'Growth of the wall ratio from 500 to 20,000 jobs',
    measured: large.quietWallRatio / small.quietWallRatio,
    atMost: GROWTH,
  },
  {
    what: 'Commit → webhook, p50 / bare signed POST, p50',
    measured: delivery.webhookP50Ms / delivery.bareP50Ms,
    atMost: 10,
  },
];
console.log();
for (const bar of bars) {
  const met = bar.measured <= bar.atMost;
  console.log(`${met ? 'met   ' : 'MISSED'}  ${bar.what}: ${round(bar.measured)} (at most ${bar.atMost})`);
  console.log(JSON.stringify({ bench: 'bar', ...bar, met }));
  if (!met) process.exitCode = 1;
}

/** Runs one part in a process of its own and returns what it measured. */
async function measure<Figures>(module: string, args: string[]): Promise<Figures> {
  const part: Child<Figures> = await startChild<Figures>(module, args, ['--expose-gc']);
  if (part.process.exitCode === null) await once(part.process, 'exit');
  return part.facts;
}

function round(value: number): number {
  return Math.round(value * 100) / 100;
}
