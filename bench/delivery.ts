/**
 * A child process: measures the latency from the commit of an event to its webhook, on a self-hosted Jobwire, compared with a bare signed
 * POST to the same receiver.
 */
import { once } from 'node:events';
import { Webhook } from 'standardwebhooks';
import { request } from 'undici';
import { startChild } from './child.ts';
import { startBenchHost } from './host.ts';
import type { Received, ReceiverFacts } from './receiver.ts';
import { percentile } from './statistics.ts';
import type { UpstreamFacts } from './upstream.ts';
import { ACCOUNT, SECRET } from './wire.ts';

/** Results; times in ms. */
export interface DeliveryResults {
  readonly deliveries: number;
  readonly webhookP50Ms: number;
  readonly webhookP99Ms: number;
  readonly bareP50Ms: number;
  readonly bareP99Ms: number;
}

const rounds = Number(process.argv[2]);

const [receiver, upstream] = await Promise.all([
  startChild<ReceiverFacts>('receiver.ts'),
  startChild<UpstreamFacts>('upstream.ts', ['0']),
]);
let committedAt = 0;
const endpoint = { id: 'bench', url: `${receiver.facts.url}each` };
const host = await startBenchHost(upstream.facts, [endpoint], () => {
  committedAt = performance.timeOrigin + performance.now();
});

// The first delivery is that of account.baselined.
await once(receiver.process, 'message');
const webhooks: number[] = [];
const bare: number[] = [];
for (let round = -20; round < rounds; round += 1) {
  const received = once(receiver.process, 'message') as Promise<[Received]>;
  await host.log.append(ACCOUNT, [
    { type: 'account.baselined', time: Date.now(), data: { openJobs: round + 20 } },
  ]);
  const [{ receivedAt }] = await received;
  const took = await bareSignedPost();
  // The first rounds warm up both sides.
  if (round < 0) continue;
  webhooks.push(receivedAt - committedAt);
  bare.push(took);
}
await host.stop(2_000);
receiver[Symbol.dispose]();
upstream[Symbol.dispose]();
process.send?.({
  deliveries: rounds,
  webhookP50Ms: percentile(webhooks, 0.5),
  webhookP99Ms: percentile(webhooks, 0.99),
  bareP50Ms: percentile(bare, 0.5),
  bareP99Ms: percentile(bare, 0.99),
} satisfies DeliveryResults);
process.disconnect();

/** Measures from before the signature until receipt, like the other side. */
async function bareSignedPost(): Promise<number> {
  const received = once(receiver.process, 'message') as Promise<[Received]>;
  const start = performance.timeOrigin + performance.now();
  const sentAt = new Date();
  const body = JSON.stringify({ specversion: '1.0', id: 'bare', data: { filler: 'x'.repeat(400) } });
  const answer = await request(`${receiver.facts.url}each`, {
    method: 'POST',
    headers: {
      'content-type': 'application/cloudevents+json; charset=utf-8',
      'webhook-id': 'bare',
      'webhook-timestamp': String(Math.floor(sentAt.getTime() / 1000)),
      'webhook-signature': new Webhook(SECRET).sign('bare', sentAt, body),
    },
    body,
  });
  await answer.body.dump();
  return (await received)[0].receivedAt - start;
}
