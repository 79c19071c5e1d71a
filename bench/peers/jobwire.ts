/**
 * The compared Jobwire: `jobwire start` with a data folder and `"sns": false` (host, tables, HTTP API), and in addition
 * `POST /publish/<account>`, which commits an event to the log of the account. Accounts are created when they are needed. They are never
 * polled. Arguments: data folder, port, API key, delays of retries (s, comma-separated).
 */
import { createAdaptorServer, type HttpBindings } from '@hono/node-server';
import { readApiFile } from '../../local/api-files.ts';
import { openDataDir } from '../../local/data-dir.ts';
import { LOAD_DEFERRED_MS, loadDeferredModules } from '../../local/deferred-modules.ts';
import { getClientAddress } from '../../local/guard.ts';
import { startHost } from '../../local/host.ts';
import { openTables } from '../../local/tables.ts';
import { createAccount } from '../../shared/accounts/managed-accounts.ts';
import { createApi } from '../../shared/api/app.ts';
import { createIdempotency } from '../../shared/api/idempotency.ts';
import { createKeyring } from '../../shared/api/keys.ts';
import { parseConfig } from '../../shared/config.ts';
import type { EventDraft } from '../../shared/events/event.ts';

/** Maximum number of events of a transaction, similar to that of a poll. */
const MAX_EVENTS = 48;
const REGION = 'us';

main();

/** Not at the top level, because the bundle is CommonJS. */
async function main(): Promise<void> {
  const [folder = '', port, apiKey = '', retrySeconds = ''] = process.argv.slice(2);
  const publicUrl = `http://127.0.0.1:${port}`;
  const dataDir = openDataDir(folder);
  const { table, history, close } = await openTables({ folder: dataDir.path });
  const host = await startHost({
    config: parseConfig(
      {
        regions: {
          [REGION]: { baseUrl: 'http://127.0.0.1:1', authUrl: 'http://127.0.0.1:1', realm: 'none' },
        },
        accounts: [],
        webhooks: { allowPrivateNetworks: true, retrySeconds: retrySeconds.split(',').map(Number) },
      },
      {},
    ),
    ...{ table, history, publicUrl, secretKey: dataDir.secretKey(), exclusive: true },
    onFault: (what, cause) => console.error(`Could not ${what}.`, cause),
  });
  const { log, growth, deliveries, accounts, endpoints } = host;
  const api = createApi({
    ...{ table, log, growth, deliveries, now: Date.now, regions: [REGION], readFile: readApiFile },
    keyring: createKeyring({ table, now: Date.now, bootstrap: apiKey }),
    manage: { idempotency: createIdempotency({ table, now: Date.now }), accounts, endpoints },
    onError: (cause) => console.error(cause),
  });

  /** Events that wait for the transaction in progress of their account. */
  const waiting = new Map<string, { draft: EventDraft; resolve(): void; reject(cause: unknown): void }[]>();

  const server = createAdaptorServer({
    async fetch(request, env) {
      const account = /\/publish\/([^/]+)$/.exec(request.url)?.[1];
      if (account === undefined) {
        return api.fetch(request, { clientAddress: getClientAddress((env as HttpBindings).incoming, {}) });
      }
      await publish(account, (await request.json()) as EventDraft);
      return new Response(null, { status: 202 });
    },
  });
  server.listen(Number(port), '127.0.0.1');
  setTimeout(loadDeferredModules, LOAD_DEFERRED_MS).unref();
  process.on('SIGTERM', async () => {
    server.close();
    await host.stop(2_500);
    await close();
    process.exit(0);
  });

  /** Commits an event. Events that arrive during a commit are committed together by the next one. */
  async function publish(account: string, draft: EventDraft): Promise<void> {
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    const pending = waiting.get(account);
    if (pending) {
      pending.push({ draft, resolve, reject });
      return promise;
    }
    const queue = [{ draft, resolve, reject }];
    waiting.set(account, queue);
    while (queue.length > 0) {
      const batch = queue.splice(0, MAX_EVENTS);
      try {
        await commit(
          account,
          batch.map((one) => one.draft),
        );
        for (const one of batch) one.resolve();
      } catch (cause) {
        for (const one of batch) one.reject(cause);
      }
    }
    waiting.delete(account);
    return promise;
  }

  async function commit(account: string, drafts: readonly EventDraft[]): Promise<void> {
    const ref = { region: REGION, account };
    if ((await log.append(ref, drafts)).kind === 'appended') return;
    const credentials = { clientId: 'none', clientSecret: 'none' };
    await createAccount(accounts, { id: account, region: REGION, credentials, paused: true });
    const { kind } = await log.append(ref, drafts);
    if (kind !== 'appended') throw new Error(`The account ${account} did not accept the events.`);
  }
}
