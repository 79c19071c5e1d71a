/**
 * A child process: measures the latency from the commit of an event to its webhook, on a self-hosted Jobwire, compared with a bare signed
 * POST to the same receiver.
 */
import { once } from 'node:events';
import { mkdtempDisposableSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Webhook } from 'standardwebhooks';
import { request } from 'undici';
import { startHost } from '../local/host.ts';
import { openTables } from '../local/tables.ts';
import { parseConfig } from '../shared/config.ts';
import { startChild } from './child.ts';
import type { Received, ReceiverFacts } from './receiver.ts';
import { percentile } from './statistics.ts';
import type { UpstreamFacts } from './upstream.ts';
import { SECRET } from './wire.ts';

/** Results; times in ms. */
export interface DeliveryResults {
  readonly deliveries: number;
  readonly webhookP50Ms: number;
  readonly webhookP99Ms: number;
  readonly bareP50Ms: number;
  readonly bareP99Ms: number;
}

const rounds = Number(process.argv[2]);
const ref = { region: 'us', account: 'bench' };

const [receiver, upstream] = await Promise.all([
  startChild<ReceiverFacts>('receiver.ts'),
  startChild<UpstreamFacts>('upstream.ts', ['0']),
]);
using folder = mkdtempDisposableSync(join(tmpdir(), 'jobwire-bench-'));
const tables = await openTables({ folder: folder.path });
let committedAt = 0;
const host = await startHost({
  config: parseConfig(
    {
      regions: { us: { baseUrl: upstream.facts.apiUrl, authUrl: upstream.facts.authUrl, realm: 'us' } },
      accounts: [{ id: 'bench', region: 'us', pollIntervalSeconds: 86_400, ...credentials() }],
      endpoints: [{ id: 'bench', url: `${receiver.facts.url}each`, secret: SECRET }],
      webhooks: { allowPrivateNetworks: true },
    },
    {},
  ),
  table: tables.table,
  history: tables.history,
  secretKey: Buffer.alloc(32),
  publicUrl: 'http://bench',
  onGrowth: () => {
    committedAt = performance.timeOrigin + performance.now();
  },
  onFault: (what, cause) => console.error(`Could not ${what}.`, cause),
});

// The first delivery is that of account.baselined.
await once(receiver.process, 'message');
const webhooks: number[] = [];
const bare: number[] = [];
for (let round = -20; round < rounds; round += 1) {
  const received = once(receiver.process, 'message') as Promise<[Received]>;
  await host.log.append(ref, [
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
await tables.close();
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

function credentials(): { clientId: string; clientSecret: string } {
  const { clientId, clientSecret } = upstream.facts;
  return { clientId, clientSecret };
}
