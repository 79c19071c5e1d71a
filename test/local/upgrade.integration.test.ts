/**
 * Upgrades: the current code on data folders that earlier versions wrote, which are stored as backups in `data-folders`, by version.
 * `DATA_FOLDER=write npx vitest run test/local/upgrade.integration.test.ts` writes the one of the current version.
 */
import { execFileSync } from 'node:child_process';
import { mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { expect, inject, test } from 'vitest';
import { createWorld } from '../../sandbox/world/world.ts';
import { loadCli } from '../support/cli-site.ts';
import { builtProgram, configFor, startJobwire, startSandbox, writeConfig } from '../support/jobwire.ts';
import { call, type Event, startReceiver } from '../support/webhooks.ts';

const FOLDER = join(import.meta.dirname, 'data-folders');
const cli = await loadCli(join(inject('packageFolder'), 'cli'));
const versions = readdirSync(FOLDER).flatMap((file) => (file.endsWith('.json') ? [file.slice(0, -5)] : []));

/** Description of a stored folder. */
interface Facts {
  /** Time at which the jobs were created (epoch ms). */
  readonly jobsCreatedAt: number;
  /** Time at which the folder was written (epoch ms). */
  readonly writtenAt: number;
  readonly apiKey: string;
  readonly endpoint: string;
  readonly signingSecret: string;
  /** All events of the account. */
  readonly events: readonly Event[];
}

/** Shifts the clock of a process by `CLOCK_SHIFT_MS`. */
const SHIFTED_CLOCK = `
  const RealDate = Date;
  const shift = Number(process.env.CLOCK_SHIFT_MS);
  globalThis.Date = class extends RealDate {
    constructor(...given) { super(...(given.length === 0 ? [RealDate.now() + shift] : given)); }
    static now() { return RealDate.now() + shift; }
  };`;

/** Starts a sandbox whose two jobs were created at `jobsCreatedAt`, the first of them in production since. `shift` is that of the clock. */
async function startUpstream(jobsCreatedAt: number, shift: number) {
  let now = (): number => jobsCreatedAt;
  const world = createWorld({ now: () => now() });
  const account = world.addAccount({ region: 'us', name: 'acme' });
  const [first, second] = [
    account.createJob({ status: 'Scheduled' }),
    account.createJob({ status: 'Scheduled' }),
  ];
  const { sandbox } = await startSandbox({ world });
  const { regions } = configFor(sandbox, [account]);
  return {
    ...{ account, first, second },
    config: {
      port: 0,
      sns: true,
      regions,
      accounts: [],
      webhooks: { allowPrivateNetworks: true, retrySeconds: [1] },
    },
    changeFirst: () => account.setStatus(first, 'In production'),
    /** Continues at the current time. */
    continue() {
      now = () => Date.now() + shift;
    },
  };
}

const moved = (job: number) => (event: Event) =>
  event.type === 'job.status_changed' && event.subject === `jobs/${job}`;

test.runIf(process.env.DATA_FOLDER === 'write')('writes the data folder of this version', async () => {
  const jobsCreatedAt = Date.now();
  const upstream = await startUpstream(jobsCreatedAt, 0);
  const receiver = await startReceiver();
  const file = writeConfig(upstream.config);
  const running = await startJobwire(['--config', file], { command: builtProgram() });
  const dataDir = join(dirname(file), 'data');
  const key = readFileSync(join(dataDir, 'api-key'), 'utf8').trim();
  const { clientId, clientSecret } = upstream.account;
  const input = { id: 'acme', region: 'us', credentials: { clientId, clientSecret }, pollIntervalSeconds: 1 };
  const account = await call(`${running.url}/v1/accounts`, input, { key });
  expect(account.status, JSON.stringify(account.json)).toBe(201);
  const created = await call(`${running.url}/v1/endpoints`, { url: receiver.url, region: 'us' }, { key });
  const { endpoint, secret }: { endpoint: { id: string }; secret: string } = created.json;
  receiver.verifyWith(secret);
  await running.printed(/account\.baselined/);
  upstream.changeFirst();
  await receiver.event(moved(upstream.first));
  const { events }: { events: Event[] } = (
    await call(`${running.url}/v1/accounts/acme/events`, undefined, { key })
  ).json;
  running.child.kill('SIGTERM');
  await running.ended;
  const { version } = JSON.parse(readFileSync('package.json', 'utf8'));
  mkdirSync(FOLDER, { recursive: true });
  const target = join(FOLDER, `${version}.tar.gz`);
  rmSync(target, { force: true });
  expect(await cli.run(['backup', target, '--data-dir', dataDir], {})).toMatchObject({ code: 0 });
  const facts: Facts = {
    ...{
      jobsCreatedAt,
      writtenAt: Date.now(),
      apiKey: key,
      endpoint: endpoint.id,
      signingSecret: secret,
      events,
    },
  };
  writeFileSync(join(FOLDER, `${version}.json`), `${JSON.stringify(facts, null, 2)}\n`);
});

test('there is a stored data folder', () => {
  expect(versions.length).toBeGreaterThan(0);
});

test.each(versions)(
  'a data folder of version %s: its events, keys and secrets are kept, its account is polled, and new events follow in the same epoch',
  { timeout: 60_000 },
  async (version) => {
    const archive = join(FOLDER, `${version}.tar.gz`);
    const facts: Facts = JSON.parse(readFileSync(join(FOLDER, `${version}.json`), 'utf8'));
    // The program continues an hour later: otherwise events and retries would have expired.
    const shift = facts.writtenAt + 3_600_000 - Date.now();
    const upstream = await startUpstream(facts.jobsCreatedAt, shift);
    upstream.changeFirst();
    upstream.continue();
    const receiver = await startReceiver();
    receiver.verifyWith(facts.signingSecret);
    const file = writeConfig(upstream.config);
    const dataDir = join(dirname(file), 'data');
    mkdirSync(dataDir, { mode: 0o700 });
    execFileSync('tar', ['-xzf', archive, '-C', dataDir, '--exclude=backup.json']);

    const running = await startJobwire(['--config', file], {
      command: builtProgram(),
      env: {
        CLOCK_SHIFT_MS: String(shift),
        NODE_OPTIONS: `--import=data:text/javascript,${encodeURIComponent(SHIFTED_CLOCK)}`,
      },
    });
    const { apiKey: key } = facts;
    const endpoint = `${running.url}/v1/endpoints/${facts.endpoint}`;
    const patched = await call(endpoint, { url: receiver.url }, { key, method: 'PATCH' });
    expect(patched.status, JSON.stringify(patched.json)).toBe(200);
    upstream.account.setStatus(upstream.second, 'In production');
    const next = await receiver.event(moved(upstream.second));

    const { events }: { events: Event[] } = (
      await call(`${running.url}/v1/accounts/acme/events`, undefined, { key })
    ).json;
    expect(events.slice(0, facts.events.length)).toEqual(facts.events);
    expect(events.slice(facts.events.length).map(({ id }) => id)).toEqual([next.id]);
    expect(next.id.split('.')[1]).toBe(facts.events[0]?.id.split('.')[1]);
    running.child.kill('SIGTERM');
    expect(await running.ended).toMatchObject({ code: 0, err: '' });

    const restored = await cli.run(['restore', archive, '--data-dir', join(dirname(file), 'restored')], {});
    expect(restored, 'the backup of that version').toMatchObject({ code: 0 });
  },
);
