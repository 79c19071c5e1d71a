/**
 * A child process: measures the latency from the commit of an event to its delivery to 49 endpoints of a self-hosted Jobwire, with a
 * healthy 50th endpoint and with one that accepts requests but never responds.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import { startChild } from './child.ts';
import { startBenchHost } from './host.ts';
import type { ReceiverFacts, ReceiverRequest, Tally } from './receiver.ts';
import { median, percentile } from './statistics.ts';
import type { UpstreamFacts } from './upstream.ts';
import { ACCOUNT } from './wire.ts';

/** Results; times in ms, medians of the rounds. */
export interface HangingResults {
  readonly rounds: number;
  readonly deliveriesPerRound: number;
  readonly healthyP99Ms: number;
  readonly besideHangingP99Ms: number;
  readonly ratio: number;
}

const HEALTHY = 49;
const EVENTS = 25;
const WARM_UP = 5;
const EVERY_MS = 400;

const rounds = Number(process.argv[2]);
const [receiver, upstream] = await Promise.all([
  startChild<ReceiverFacts>('receiver.ts'),
  startChild<UpstreamFacts>('upstream.ts', ['0']),
]);
const ask = (request: ReceiverRequest) => receiver.ask<Tally>(request);
const without: number[] = [];
const beside: number[] = [];
for (let round = 0; round < rounds; round += 1) {
  const work = [
    async () => without.push(await p99With('healthy-50')),
    async () => beside.push(await p99With('hang')),
  ];
  for (const measure of round % 2 === 0 ? work : work.reverse()) await measure();
}
receiver[Symbol.dispose]();
upstream[Symbol.dispose]();
process.send?.({
  rounds,
  deliveriesPerRound: HEALTHY * EVENTS,
  healthyP99Ms: median(without),
  besideHangingP99Ms: median(beside),
  ratio: median(beside.map((ms, at) => ms / (without[at] ?? Number.NaN))),
} satisfies HangingResults);
process.disconnect();

/** Returns the 99th percentile of deliveries to the healthy endpoints, with one additional endpoint. */
async function p99With(another: string): Promise<number> {
  const paths = [...Array.from({ length: HEALTHY }, (_, at) => `healthy-${at + 1}`), another];
  const endpoints = paths.map((id) => ({ id, url: `${receiver.facts.url}${id}` }));
  const host = await startBenchHost(upstream.facts, endpoints);
  const committedAt = new Map<string, number>();
  await ask({ note: true });
  for (let at = 0; at < WARM_UP + EVENTS; at += 1) {
    const appended = await host.log.append(ACCOUNT, [
      { type: 'account.baselined', time: Date.now(), data: { openJobs: at } },
    ]);
    if (appended.kind !== 'appended') throw new Error('The log did not accept the event.');
    const { epoch, sequence } = appended.head;
    if (at >= WARM_UP) {
      committedAt.set(`${ACCOUNT.account}.${epoch}.${sequence}`, performance.timeOrigin + performance.now());
    }
    await sleep(EVERY_MS);
  }
  const took: number[] = [];
  const expected = HEALTHY * EVENTS;
  for (let patience = 0; took.length < expected; patience += 1) {
    for (const { id, path, receivedAt } of (await ask({ note: true })).noted) {
      const committed = committedAt.get(id);
      if (committed !== undefined && path !== `/${another}`) took.push(receivedAt - committed);
    }
    if (patience > 100) throw new Error(`Only ${took.length} of ${expected} deliveries arrived.`);
    if (took.length < expected) await sleep(100);
  }
  await host.stop(100);
  await ask({ note: false });
  return percentile(took, 0.99);
}
