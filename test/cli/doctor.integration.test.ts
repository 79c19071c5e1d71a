/** `jobwire doctor` against a real Jobwire, and servers with problems. */
import { once } from 'node:events';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { createServer as createHttpServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { SMTPServer } from 'smtp-server';
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import { startSite } from '../support/cli-site.ts';
import { fakeApi } from '../support/command.ts';

const folder = mkdtempSync(join(tmpdir(), 'jobwire-doctor-'));
const ends: (() => unknown)[] = [() => rmSync(folder, { recursive: true, force: true })];
let site: Awaited<ReturnType<typeof startSite>>;
beforeAll(async () => {
  site = await startSite((stop) => ends.push(stop));
}, 60_000);
afterAll(async () => {
  for (const end of ends.reverse()) await end();
});
const open: (() => unknown)[] = [];
afterEach(async () => {
  for (const close of open.splice(0).reverse()) await close();
});

const run = (args: readonly string[], env: Record<string, string>) => site.exec(args, { env });

/** A proxy of the Jobwire whose clock differs by this number of seconds. */
async function withClock(seconds: number): Promise<string> {
  const server = createHttpServer(async ({ url = '/', headers: { authorization = '' } }, response) => {
    const answer = await fetch(site.url + url, { headers: { authorization } });
    const date = new Date(Date.now() + seconds * 1000).toUTCString();
    const type = answer.headers.get('content-type') ?? '';
    response.writeHead(answer.status, { date, 'content-type': type }).end(await answer.text());
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  open.push(() => server.close());
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

describe('doctor', () => {
  const configure = (upstream: { url: string }, more: object = {}) => {
    const file = join(folder, 'doctor.json');
    const region = { baseUrl: `${upstream.url}/api`, authUrl: `${upstream.url}/auth`, realm: 'us' };
    const accounts = [{ id: 'acme', region: 'us', clientId: 'c', clientSecret: 'env:ACME_SECRET' }];
    const config = {
      port: 0,
      dataDir: join(folder, 'data'),
      dynamodbEndpoint: upstream.url,
      regions: { us: region },
      accounts,
      ...more,
    };
    writeFileSync(file, JSON.stringify(config));
    return ['doctor', '--config', file, '--json'];
  };
  const env = { ACME_SECRET: 'a-secret-that-nobody-sees' };
  type Check = { check: string; state: string; message: string; fix?: string };
  const checksIn = (out: string) => (JSON.parse(out) as { checks: Check[] }).checks;
  const find = (out: string, check: string) => checksIn(out).find((one) => one.check === check);

  test('without problems: exit code 0; the ordering API gets no credentials', async () => {
    const upstream = await fakeApi({});
    open.push(() => upstream.stop());
    const ended = await run(configure(upstream), env);
    expect(ended.code, ended.out).toBe(0);
    expect(checksIn(ended.out).filter(({ state }) => state === 'fail')).toEqual([]);
    const paths = upstream.asked.map(({ path }) => path).sort();
    expect(paths).toEqual(['/', '/api', '/auth/realms/us/protocol/openid-connect/token']);
    for (const { headers, body } of upstream.asked) {
      expect(headers.authorization).toBeUndefined();
      expect(body).toBeUndefined();
    }
    expect(ended.out + ended.err).not.toContain(env.ACME_SECRET);
  });

  test('each problem is named with its fix, and makes the exit code 1', async () => {
    const gone = await fakeApi({});
    await gone.stop();
    const ended = await run(configure(gone), { JOBWIRE_API_KEY: 'jw_k1_unknown' });
    expect(ended.code).toBe(1);
    expect(find(ended.out, 'Configuration')).toMatchObject({
      state: 'fail',
      message: 'Environment variables of the configuration are not set: ACME_SECRET.',
    });
    expect(find(ended.out, 'Region us')).toMatchObject({
      state: 'fail',
      message: 'The token endpoint can’t be reached: the connection was refused.',
    });
    expect(find(ended.out, 'Jobwire API')).toMatchObject({
      state: 'fail',
      message: `${site.url} rejects the API key.`,
    });
    for (const { state, fix } of checksIn(ended.out)) if (state !== 'ok') expect(fix).toMatch(/\.$/);
  });

  test('an invalid setting, an occupied port and an unusable folder are reported', async () => {
    const taken = createServer().listen(0, '127.0.0.1');
    await once(taken, 'listening');
    open.push(() => taken.close());
    const file = join(folder, 'a-file');
    writeFileSync(file, '');
    const { port } = taken.address() as AddressInfo;
    const args = configure(site, { port, dataDir: join(file, 'data'), settling: { days: 'seven' } });
    // That server never answers: the probe has a time-out.
    taken.on('connection', (socket) => socket.destroy());
    const ended = await run(args, env);
    expect(find(ended.out, 'Configuration')?.message).toBe('settling.days must be a number of days.');
    expect(find(ended.out, 'Port')).toMatchObject({
      state: 'fail',
      message: `${port} is in use by another program.`,
    });
    expect(find(ended.out, 'Data folder')).toMatchObject({
      state: 'fail',
      message: expect.stringContaining(`${file} is not a writable folder`),
    });
  });

  test('the mail server is tested as far as possible without a mail', async () => {
    const publicUrl = 'https://jobwire.example.com';
    const askedOf = async (smtp: object) => {
      const notifications = { from: 'orders@acme.example', smtp: { host: '127.0.0.1', ...smtp } };
      const ended = await run(configure(site, { publicUrl, notifications }), env);
      return find(ended.out, 'Mail server');
    };
    const server = new SMTPServer({
      ...{ logger: false, disabledCommands: ['STARTTLS'], allowInsecureAuth: true },
      onAuth: (_, __, done) => done(new Error('No.')),
      authOptional: true,
    });
    server.on('error', () => {});
    await new Promise<void>((done) => server.listen(0, '127.0.0.1', done));
    const { port } = server.server.address() as AddressInfo;
    expect(await askedOf({ port })).toMatchObject({ state: 'ok' });
    const refused = await askedOf({ port, user: 'me', password: 'a-password-that-nobody-sees' });
    expect(refused).toMatchObject({
      state: 'fail',
      message: `127.0.0.1:${port} rejects the user and password.`,
    });
    await new Promise<void>((done) => server.close(() => done()));
    expect(await askedOf({ port })).toMatchObject({
      state: 'fail',
      message: expect.stringMatching(/^127\.0\.0\.1:\d+ can’t be reached \(E[A-Z]+\)\.$/),
    });
  });

  test('a wrong clock is reported: a small difference as a warning, a larger one as an error', async () => {
    for (const [seconds, state] of [
      [30, 'warn'],
      [-400, 'fail'],
    ] as const) {
      const url = await withClock(seconds);
      const ended = await run(['doctor', '--json', '--url', url], {});
      const clock = find(ended.out, 'Clock');
      expect(clock?.state).toBe(state);
      expect(clock?.message).toMatch(
        seconds > 0 ? /^(29|30|31) s behind the API\.$/ : /^\d+ s ahead of the API\.$/,
      );
    }
  });
});
