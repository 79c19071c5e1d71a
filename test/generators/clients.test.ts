/**
 * docs/clients.md: its commands generate clients from a Jobwire that runs, and its programs list late jobs, add an endpoint, follow the
 * feed and verify webhooks. Needs Go, Python and their package registries: `npm run test:generators`.
 */
import { randomBytes } from 'node:crypto';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { Webhook } from 'standardwebhooks';
import { expect, onTestFinished, test } from 'vitest';
import { launch } from '../support/command.ts';
import { configFor, startJobwire, startSandbox, writeConfig } from '../support/jobwire.ts';
import { getBlocks, getCommands, readSection } from '../support/markdown.ts';
import { findPort } from '../support/port.ts';
import { COMPILE_MS, INSTALL_MS, installOapiCodegen, installPythonClient, makeEmpty, run } from './tools.ts';

const KEY = 'a-key-for-the-tests-only';

test('the Python programs of docs/clients.md run against a Jobwire', async ({ skip }) => {
  await installPythonClient(skip);
  const section = readSection('docs/clients.md', 'Python');
  const [example = '', receiver = ''] = getBlocks(section, 'python');
  const folder = makeEmpty('docs-python');
  const site = await startSite();
  await runCommands(section, folder, site.env);
  writeFileSync(join(folder, 'example.py'), example);
  writeFileSync(join(folder, 'receiver.py'), receiver);
  const python = join(folder, 'venv/bin/python');
  await verify(site, folder, [python, 'example.py'], [python, 'receiver.py']);
});

test('the Go programs of docs/clients.md run against a Jobwire', async ({ skip }) => {
  await installOapiCodegen(skip);
  const section = readSection('docs/clients.md', 'Go');
  const [example = '', receiver = ''] = getBlocks(section, 'go');
  const folder = makeEmpty('docs-go');
  const site = await startSite();
  // Before the programs are saved, as in the document: `go mod tidy` removes modules that no file imports.
  await runCommands(section, folder, site.env);
  writeFileSync(join(folder, 'main.go'), example);
  writeFileSync(join(folder, 'receiver/main.go'), receiver);
  await run(folder, COMPILE_MS, 'go', 'vet', '.', './receiver');
  await run(folder, COMPILE_MS, 'go', 'build', '-o', 'bin/example', '.');
  await run(folder, COMPILE_MS, 'go', 'build', '-o', 'bin/receiver', './receiver');
  expect(await run(folder, COMPILE_MS, 'gofmt', '-l', 'main.go', 'receiver')).toBe('');
  await verify(site, folder, [join(folder, 'bin/example')], [join(folder, 'bin/receiver')]);
});

type Site = Awaited<ReturnType<typeof startSite>>;

/** Starts a Jobwire with a late job of the account `acme`. */
async function startSite() {
  const { sandbox, world } = await startSandbox();
  const acme = world.addAccount({ region: 'us', name: 'acme' });
  const lateJob = acme.createJob({ status: 'Scheduled', dateDue: '2026-02-20T00:00:00-07:00' });
  const job = acme.createJob({ status: 'Scheduled' });
  const config = { ...configFor(sandbox, [acme]), apiKey: KEY, webhooks: { allowPrivateNetworks: true } };
  const running = await startJobwire(['--config', writeConfig(config)]);
  await running.printed(/account\.baselined/);
  const port = await findPort();
  const receiver = `http://127.0.0.1:${port}/`;
  const env = {
    ...{ JOBWIRE_URL: running.url, JOBWIRE_API_KEY: KEY, RECEIVER_URL: receiver, PORT: String(port) },
    JOBWIRE_SECRET: `whsec_${randomBytes(32).toString('base64')}`,
  };
  return { acme, lateJob, job, env, receiver };
}

/** Runs the commands of a section in one shell. */
async function runCommands(section: string, folder: string, env: Record<string, string>): Promise<void> {
  await run(folder, INSTALL_MS, 'env', ...toAssignments(env), 'sh', '-ec', getCommands(section).join('\n'));
}

const toAssignments = (env: Record<string, string>) =>
  Object.entries(env).map(([name, value]) => `${name}=${value}`);

/** Runs an example and its receiver, and changes a job. */
async function verify(site: Site, cwd: string, example: readonly string[], receiver: readonly string[]) {
  const { env, receiver: url } = site;
  const start = (command: readonly string[]) => {
    const running = launch(command, { cwd, env });
    onTestFinished(async () => {
      running.child.kill('SIGKILL');
      await running.ended;
    });
    return running;
  };
  const receives = start(receiver);
  const post = (headers: Record<string, string>, body = '{"id":"x.1","type":"job.closed"}') =>
    fetch(url, { method: 'POST', body, headers }).then(
      ({ status }) => status,
      () => 0,
    );
  await expect.poll(() => post({}), { timeout: 30_000 }).toBe(401);
  const follows = start(example);
  await follows.printed(new RegExp(`late ${site.lateJob} `));
  await follows.printed(/created erp/);
  site.acme.setStatus(site.job, 'In production');
  await follows.printed(/event job\.status_changed acme\./);
  await receives.printed(/verified job\.status_changed acme\./);
  expect(follows.out()).not.toContain(`late ${site.job} `);

  const body = '{"id":"x.1","type":"job.closed"}';
  const now = new Date();
  const signed = {
    'webhook-id': 'x.1',
    'webhook-timestamp': String(Math.floor(now.getTime() / 1_000)),
    'webhook-signature': new Webhook(env.JOBWIRE_SECRET).sign('x.1', now, body),
  };
  expect(await post(signed, body)).toBe(204);
  expect(await post(signed, body.replace('closed', 'opened'))).toBe(401);
  expect(await post({ ...signed, 'webhook-signature': 'v1,AAAA' }, body)).toBe(401);
  expect(await post({ ...signed, 'webhook-signature': 'no signature' }, body)).toBe(401);
  expect(await post({ ...signed, 'webhook-timestamp': '1700000000' }, body)).toBe(401);

  // A second run finds the endpoint, and continues at its cursor.
  follows.child.kill('SIGKILL');
  await follows.ended;
  const again = start(example);
  await again.printed(/late/);
  site.acme.setStatus(site.job, 'Packed');
  await again.printed(/event job\.\w+ acme\./);
  expect(again.out()).not.toMatch(/created|In production/);
  expect(receives.out()).not.toContain('job.opened');
}
