/** A self-hosted Jobwire in a temporary folder, for the benchmarks of deliveries. */
import { mkdtempDisposableSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { startHost } from '../local/host.ts';
import { openTables } from '../local/tables.ts';
import { parseConfig } from '../shared/config.ts';
import type { UpstreamFacts } from './upstream.ts';
import { ACCOUNT, SECRET } from './wire.ts';

/** Starts it with one account, which is polled once. `onGrowth`: called after each commit. `stop`: within a time in ms. */
export async function startBenchHost(
  { apiUrl, authUrl, clientId, clientSecret }: UpstreamFacts,
  endpoints: readonly { readonly id: string; readonly url: string }[],
  onGrowth?: () => void,
) {
  const folder = mkdtempDisposableSync(join(tmpdir(), 'jobwire-bench-'));
  const { table, history, close } = await openTables({ folder: folder.path });
  const config = {
    regions: { us: { baseUrl: apiUrl, authUrl, realm: 'us' } },
    accounts: [{ id: ACCOUNT.account, region: 'us', pollIntervalSeconds: 86_400, clientId, clientSecret }],
    endpoints: endpoints.map((endpoint) => ({ ...endpoint, secret: SECRET })),
    webhooks: { allowPrivateNetworks: true },
  };
  const host = await startHost({
    ...{ table, history, onGrowth, publicUrl: 'http://bench', secretKey: Buffer.alloc(32) },
    config: parseConfig(config, {}),
    onFault: (what, cause) => console.error(`Could not ${what}.`, cause),
  });
  return {
    log: host.log,
    async stop(ms: number): Promise<void> {
      await host.stop(ms);
      await close();
      folder.remove();
    },
  };
}
