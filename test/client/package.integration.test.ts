/** `jobwire/client` from the packed package: installed offline, type-checked, and run against a real Jobwire. */
import { execFile } from 'node:child_process';
import { cpSync, mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, expect, inject, test } from 'vitest';
import { launch } from '../support/command.ts';
import { builtProgram, configFor, launchJobwire, startSandbox, writeConfig } from '../support/jobwire.ts';

const run = promisify(execFile);
const consumer = mkdtempSync(join(tmpdir(), 'jobwire-client-'));
const KEY = 'a-key-for-the-tests-only';
const [guide = ''] = /^```ts\n[\s\S]*?^```$/m.exec(readFileSync('docs/api.md', 'utf8')) ?? [];
const EXAMPLE = guide.replace(/^```(?:ts)?$/gm, '');

/** Wrong calls. The compiler reports each comment above a call that compiles. */
const CHECK = `
import { type Account, type Client, type Endpoint } from 'jobwire/client';
declare const jobwire: Client;
const params = { path: { id: 'acme' } };
export const account: Account = await jobwire.get('/v1/accounts/{id}', { params });
export const endpoints: AsyncGenerator<Endpoint> = jobwire.list('/v1/endpoints', 'endpoints');
export const complete: boolean = await jobwire.delete('/v1/accounts/{id}', { params });
// @ts-expect-error: no such path
await jobwire.get('/v1/account');
// @ts-expect-error: no such method
await jobwire.put('/v1/accounts/{id}', { params });
// @ts-expect-error: the path has a parameter
await jobwire.get('/v1/accounts/{id}');
// @ts-expect-error: no such query parameter
await jobwire.get('/v1/accounts', { params: { query: { regions: 'us' } } });
// @ts-expect-error: no such value
await jobwire.get('/v1/accounts', { params: { query: { include: 'all' } } });
// @ts-expect-error: no such field of the body
await jobwire.post('/v1/keys', { body: { role: 'read', admin: true } });
// @ts-expect-error: not a conditional operation
await jobwire.post('/v1/endpoints/{id}/replays', { params: { ...params, header: { 'If-Match': '"1"' } }, body: { from: 'beginning' } });
// @ts-expect-error: no such field of the response
account.regions;
`;

beforeAll(() => {
  cpSync(inject('consumerFolder'), consumer, { recursive: true, verbatimSymlinks: true });
  mkdirSync(join(consumer, 'node_modules/@types'));
  for (const name of ['@types/node', 'undici-types']) {
    symlinkSync(resolve('node_modules', name), join(consumer, 'node_modules', name));
  }
  writeFileSync(join(consumer, 'example.ts'), EXAMPLE);
  writeFileSync(join(consumer, 'check.ts'), CHECK);
});
afterAll(() => rmSync(consumer, { recursive: true, force: true }));

test.each([
  ['nodenext', ['es2022'], ['node']],
  ['bundler', ['es2022', 'dom'], []],
])('its types accept the documented calls and reject wrong ones (%s)', async (kind, lib, types) => {
  const compilerOptions = {
    ...{ strict: true, noEmit: true, exactOptionalPropertyTypes: true, target: 'es2022', lib, types },
    ...{ module: kind === 'bundler' ? 'esnext' : kind, moduleResolution: kind },
  };
  const files = types.length > 0 ? ['check.ts', 'example.ts'] : ['check.ts'];
  const config = join(consumer, `tsconfig.${kind}.json`);
  writeFileSync(config, JSON.stringify({ compilerOptions, files }));
  const { stdout } = await run(resolve('node_modules/.bin/tsc'), ['-p', config]).catch((error) => error);
  expect(stdout).toBe('');
});

test('the documented example runs against a real Jobwire', async () => {
  const { sandbox, world } = await startSandbox();
  const account = world.addAccount({ region: 'us', name: 'acme' });
  const job = account.createJob({ status: 'Scheduled' });
  const file = writeConfig({ ...configFor(sandbox, [account]), apiKey: KEY });
  const running = launchJobwire(['--config', file], { command: builtProgram() });
  await running.printed(/account\.baselined/);
  const url = await running.printed(/HTTP API +(\S+)/);
  const env = { JOBWIRE_URL: url, JOBWIRE_API_KEY: KEY };
  const program = launch([process.execPath, '--no-warnings', 'example.ts'], { cwd: consumer, env });
  await program.printed(new RegExp(`^${job} Scheduled$`, 'm'));
  // The configuration declares the account: it cannot be paused.
  await program.printed(/^409 conflict .+ undefined \{$/m);
  for (let change = 1; !program.out().includes('job.status_changed'); change += 1) {
    account.setStatus(job, change % 2 === 0 ? 'Scheduled' : 'In production');
    await new Promise((done) => setTimeout(done, 2_000));
  }
  program.child.kill('SIGKILL');
  expect((await program.ended).err).toBe('');
});
