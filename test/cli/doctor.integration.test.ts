/** `jobwire doctor` against a real Jobwire, and servers with problems. One file: its tests share the started Jobwire. */
import { once } from 'node:events';
import { mkdirSync, mkdtempSync, rmSync, symlinkSync, utimesSync, writeFileSync } from 'node:fs';
import { createServer as createHttpServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { SMTPServer } from 'smtp-server';
import { afterAll, afterEach, beforeAll, describe, expect, onTestFinished, test } from 'vitest';
import { binary, KEY, type Region, startSite } from '../support/cli-site.ts';
import { fakeApi, launch } from '../support/command.ts';
import { startIssuer } from '../support/issuer.ts';
import { findPort } from '../support/port.ts';

const folder = mkdtempSync(join(tmpdir(), 'jobwire-doctor-'));
const ends: (() => unknown)[] = [() => rmSync(folder, { recursive: true, force: true })];
let site: Awaited<ReturnType<typeof startSite>>;
beforeAll(async () => {
  site = await startSite((stop) => ends.push(stop), ['doctor']);
}, 60_000);
afterAll(async () => {
  for (const end of ends.reverse()) await end();
});
const open: (() => unknown)[] = [];
afterEach(async () => {
  for (const close of open.splice(0).reverse()) await close();
});

const WAIT = { timeout: 30_000, interval: 100 };
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
  const atUpstream = ({ url }: { url: string }): Region => ({
    baseUrl: `${url}/api`,
    authUrl: `${url}/auth`,
    realm: 'us',
  });
  const configure = (region: Region, more: object = {}) => {
    const file = join(folder, 'doctor.json');
    const { clientId } = site.acme;
    const accounts = [{ id: 'acme', region: 'us', clientId, clientSecret: 'env:ACME_SECRET' }];
    const config = { port: 0, dataDir: join(folder, 'data'), regions: { us: region }, accounts, ...more };
    writeFileSync(file, JSON.stringify(config));
    return ['doctor', '--config', file, '--json'];
  };
  const env = () => ({ ACME_SECRET: site.acme.clientSecret });
  type Check = { check: string; state: string; message: string; fix?: string };
  const checksIn = (out: string) => (JSON.parse(out) as { checks: Check[] }).checks;
  const find = (out: string, check: string) => checksIn(out).find((one) => one.check === check);
  const notOk = (out: string) => checksIn(out).filter(({ state }) => state !== 'ok');

  test('without problems: exit code 0; the credentials of the running accounts are tested', async () => {
    const ended = await run(configure(site.region, { dynamodbEndpoint: site.url }), env());
    expect(notOk(ended.out)).toEqual([]);
    expect(ended.code, ended.out).toBe(0);
    expect(find(ended.out, 'Configuration')?.message).toBe('1 region, 1 account, 0 endpoints.');
    expect(find(ended.out, 'Accounts')?.message).toBe('1 account without problems, credentials of 1 tested.');
    expect(ended.out + ended.err).not.toContain(site.acme.clientSecret);
  });

  test('without a running Jobwire: that is reported, and the credentials of the configuration are tested', async () => {
    const args = configure(site.region, { port: await findPort() });
    const started = await run(args, { ...env(), JOBWIRE_URL: '' });
    expect(started.code).toBe(1);
    expect(notOk(started.out)).toMatchObject([{ check: 'Jobwire API', state: 'fail' }]);
    expect(find(started.out, 'Jobwire API')?.message).toContain(
      'can’t be reached: the connection was refused.',
    );
    expect(find(started.out, 'Account acme')?.message).toContain('Jobs can be read: the list has 1 job.');
    const wrong = await run(args, { ACME_SECRET: 'another-secret', JOBWIRE_URL: '' });
    expect(find(wrong.out, 'Account acme')).toMatchObject({
      state: 'fail',
      message: expect.stringContaining('The client id or the client secret is wrong (HTTP 401).'),
    });
    expect(wrong.out + wrong.err).not.toContain('another-secret');
  });

  test('a wrong realm and a wrong path of the ordering API are reported with the setting to correct', async () => {
    const { baseUrl, authUrl, realm } = site.region;
    const unused = { port: await findPort() };
    const offline = { ...env(), JOBWIRE_URL: '' };
    const wrongRealm = await run(configure({ baseUrl, authUrl, realm: 'moon' }, unused), offline);
    expect(find(wrongRealm.out, 'Region us')).toEqual({
      ...{ check: 'Region us', state: 'fail' },
      message: 'The token endpoint is not at this address (HTTP 404).',
      fix: 'Correct regions.us.authUrl or realm.',
    });
    const wrongPath = await run(configure({ baseUrl: `${baseUrl}/v9`, authUrl, realm }, unused), offline);
    expect(find(wrongPath.out, 'Account acme')).toMatchObject({
      state: 'fail',
      message:
        'The ordering API is not at this address (HTTP 404). Check the path of baseUrl of region "us".',
    });
  });

  test('each problem is named with its fix, and makes the exit code 1', async () => {
    const gone = await fakeApi({});
    await gone.stop();
    const ended = await run(configure(atUpstream(gone)), { JOBWIRE_API_KEY: 'jw_k1_unknown' });
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
      message: `${site.url} rejects the API key. So its accounts, their credentials and its endpoints were not checked.`,
    });
    for (const { state, fix } of checksIn(ended.out))
      if (state !== 'ok') expect(fix).toMatch(/\.$|[Rr]un: \S+ .*[^.]$/);
  });

  test('an invalid setting, an occupied port and an unusable folder are reported', async () => {
    const taken = createServer().listen(0, '127.0.0.1');
    await once(taken, 'listening');
    open.push(() => taken.close());
    const file = join(folder, 'a-file');
    writeFileSync(file, '');
    const { port } = taken.address() as AddressInfo;
    const args = configure(site.region, { port, dataDir: join(file, 'data'), settling: { days: 'seven' } });
    // That server never answers: the probe has a time-out.
    taken.on('connection', (socket) => socket.destroy());
    const ended = await run(args, env());
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

  test('an address that this machine does not have is reported with the setting', async () => {
    const host = '192.0.2.1';
    const port = await findPort();
    const metrics = { port: await findPort(), host };
    const ended = await run(
      configure(site.region, { port, host, metrics, dataDir: join(folder, 'new') }),
      env(),
    );
    const message = (at: number) =>
      `Can’t listen on ${host}:${at}: this machine does not have this address (EADDRNOTAVAIL).`;
    expect(find(ended.out, 'Port')).toMatchObject({
      ...{ state: 'fail', message: message(port) },
      fix: 'Set host in the configuration to an address of this machine.',
    });
    expect(find(ended.out, 'Metrics port')).toMatchObject({
      ...{ state: 'fail', message: message(metrics.port) },
      fix: 'Set metrics.host in the configuration to an address of this machine.',
    });
  });

  test('a port that no program can have, and a host that is no name, are reported', async () => {
    for (const port of [70_000, -1, 1.5]) {
      const ended = await run(configure(site.region, { port, dataDir: join(folder, 'new') }), env());
      expect(find(ended.out, 'Configuration')).toMatchObject({
        ...{ state: 'fail', message: expect.stringMatching(/^port must /) },
      });
    }
    const settings = { port: await findPort(), host: 'not an ip' };
    for (const dataDir of [join(folder, 'new'), site.dataDir]) {
      const ended = await run(configure(site.region, { ...settings, dataDir }), {
        ...env(),
        JOBWIRE_URL: '',
      });
      expect(find(ended.out, 'Port')).toMatchObject({
        state: 'fail',
        fix: 'Set host in the configuration to an address of this machine.',
      });
    }
  });

  test('another program at the address of Jobwire is reported, and gets no API key', async () => {
    const other = await fakeApi({ 'GET /healthz': { json: { status: 'ok' } } });
    open.push(() => other.stop());
    const ended = await run(['doctor', '--json', '--url', other.url], {});
    expect(ended.code).toBe(1);
    expect(find(ended.out, 'Jobwire API')).toEqual({
      ...{ check: 'Jobwire API', state: 'fail' },
      message: `${other.url} responds, but not as Jobwire (HTTP 200). Another program uses this address.`,
      fix: 'Set the URL of Jobwire with --url or JOBWIRE_URL.',
    });
    for (const { headers } of other.asked) expect(headers).not.toHaveProperty('authorization');
    const { port } = new URL(other.url);
    const config = configure(site.region, { port: Number(port), dataDir: join(folder, 'other') });
    const configured = await run(config, { ...env(), JOBWIRE_URL: '' });
    expect(find(configured.out, 'Port')).toMatchObject({
      state: 'fail',
      message: `${port} is in use by another program.`,
    });
    const proxy = await fakeApi({ 'GET /healthz': { status: 503 } });
    open.push(() => proxy.stop());
    const starting = await run(['doctor', '--json', '--url', proxy.url], {});
    expect(find(starting.out, 'Jobwire API')?.message).toMatch(/HTTP 503.*Jobwire is starting, or/);
  });

  test('an occupied metrics port is reported with its setting', async () => {
    const taken = createServer().listen(0, '127.0.0.1');
    await once(taken, 'listening');
    open.push(() => taken.close());
    const { port } = taken.address() as AddressInfo;
    const ended = await run(configure(site.region, { metrics: { port } }), env());
    expect(find(ended.out, 'Metrics port')).toMatchObject({
      state: 'fail',
      message: `${port} is in use by another program.`,
      fix: expect.stringContaining('metrics.port'),
    });
    const sitePort = Number(new URL(site.url).port);
    const other = await run(configure(site.region, { metrics: { port: sitePort } }), env());
    expect(find(other.out, 'Metrics port')).toMatchObject({
      message: expect.stringMatching(/^Another Jobwire, with another data folder than /),
      fix: expect.stringContaining('with metrics.port in the configuration'),
    });
    const free = await run(configure(site.region, { metrics: { port: await findPort() } }), env());
    expect(find(free.out, 'Metrics port')).toMatchObject({ state: 'ok' });
  });

  test('another Jobwire with another data folder on the port is reported, and skipped credentials too', async () => {
    const port = Number(new URL(site.url).port);
    const args = configure(site.region, { port, dataDir: join(folder, 'other') });
    const ended = await run(args, { ...env(), JOBWIRE_URL: '', JOBWIRE_API_KEY: '' });
    expect(find(ended.out, 'Port')).toMatchObject({
      state: 'fail',
      message: `Another Jobwire, with another data folder than ${join(folder, 'other')}, runs on ${port}.`,
    });
    expect(find(ended.out, 'Credentials')).toMatchObject({
      state: 'warn',
      message: 'The credentials of the accounts were not tested, because no API key is set.',
    });
    const own = await run(configure(site.region, { port, dataDir: site.dataDir }), env());
    expect(find(own.out, 'Port')).toMatchObject({ state: 'ok', message: `Jobwire runs on ${port}.` });
    const unset = await run(configure(site.region, { port: await findPort() }), { JOBWIRE_URL: '' });
    expect(find(unset.out, 'Credentials')).toMatchObject({ state: 'warn' });
  });

  test('a configuration or secret file that changed after the start of the running Jobwire is reported', async () => {
    const port = Number(new URL(site.url).port);
    const secret = join(folder, 'acme.secret');
    writeFileSync(secret, site.acme.clientSecret);
    const { clientId } = site.acme;
    const accounts = [{ id: 'acme', region: 'us', clientId, clientSecret: 'file:acme.secret' }];
    const args = configure(site.region, { port, dataDir: site.dataDir, accounts });
    const [, , config = ''] = args;
    const check = async () => find((await run(args, {})).out, 'Settings');
    const [past, later] = [new Date(Date.now() - 86_400_000), new Date()];
    utimesSync(config, past, past);
    utimesSync(secret, past, past);
    expect(await check()).toEqual({
      ...{ check: 'Settings', state: 'ok' },
      message: expect.stringMatching(
        /doctor\.json and the files to which it refers are unchanged since Jobwire started at \S+Z\.$/,
      ),
    });
    utimesSync(secret, later, later);
    expect(await check()).toMatchObject({
      ...{ state: 'warn', fix: 'To apply the changes, restart Jobwire.' },
      message: expect.stringMatching(/^Changed since Jobwire started at \S+Z: \S+acme\.secret\.$/),
    });
    utimesSync(secret, past, past);
    utimesSync(config, later, later);
    expect((await check())?.message).toMatch(/: \S+doctor\.json\.$/);
    // The running Jobwire does not use the new port.
    const schema = join(folder, 'jobwire.schema.json');
    writeFileSync(schema, '{}');
    const more = { port: await findPort(), dataDir: site.dataDir, $schema: `file://${schema}` };
    const ended = await run(configure(site.region, more), { ...env(), JOBWIRE_URL: '' });
    // The schema is not a file that Jobwire reads.
    expect(find(ended.out, 'Settings')?.message).toMatch(/Z: \S+doctor\.json\.$/);
  });

  test.each([
    ['does not exist', undefined, /^The configuration file nope\.json can’t be read: /],
    ['is not JSON', '{', /^nope\.json is not JSON: /],
  ])(
    'a configuration file that %s is an error of the command line: no other Jobwire and key are used',
    async (_, text, message) => {
      const cwd = mkdtempSync(join(folder, 'elsewhere-'));
      symlinkSync(site.dataDir, join(cwd, '.jobwire'));
      if (text !== undefined) writeFileSync(join(cwd, 'nope.json'), text);
      const command = [process.execPath, binary, 'doctor', '--config', 'nope.json'];
      const { code, out, err } = await launch(command, { cwd, env: site.env }).ended;
      expect([code, out, err]).toEqual([2, '', expect.stringMatching(message)]);
    },
  );

  test('a given URL replaces the check of the default port', async () => {
    const ended = await run(['doctor', '--json', '--url', site.url], {});
    expect(find(ended.out, 'Port')).toBeUndefined();
    expect(ended.code, ended.out).toBe(0);
  });

  test('with --config, the Jobwire of the configuration is checked, not that of the current profile', async () => {
    const home = mkdtempSync(join(folder, 'home-'));
    mkdirSync(join(home, 'jobwire'));
    const profiles = { live: { url: site.url, key: 'jw_k1_another' } };
    writeFileSync(join(home, 'jobwire', 'profiles.json'), JSON.stringify({ current: 'live', profiles }), {
      mode: 0o600,
    });
    const offline = { ...env(), JOBWIRE_URL: '', JOBWIRE_API_KEY: '', XDG_CONFIG_HOME: home };
    const port = await findPort();
    const args = configure(site.region, { port });
    const own = await run(args, offline);
    expect(find(own.out, 'Jobwire API')?.message).toContain(`http://127.0.0.1:${port} can’t be reached`);
    const given = await run([...args, '--profile', 'live'], offline);
    expect(find(given.out, 'Jobwire API')?.message).toContain(`${site.url} rejects the API key`);
  });

  /** Runs doctor on a Jobwire with one account. Returns the check of the account. */
  async function checkAccount(status: object) {
    const account = { id: 'acme', paused: false, pollIntervalSeconds: 60, status };
    const api = await fakeApi({
      'GET /v1/event-types/job.dispatched': { json: { type: 'job.dispatched' } },
      'GET /v1/key': { json: { role: 'read' } },
      'GET /v1/accounts': { json: { accounts: [account], next: null } },
      'GET /v1/endpoints': { json: { endpoints: [], next: null } },
      'GET /v1/alert-rules': { json: { alertRules: [], next: null } },
    });
    open.push(() => api.stop());
    return find((await run(['doctor', '--json', '--url', api.url], {})).out, 'Account acme');
  }

  test('a quarantine is explained with the number of missing jobs', async () => {
    const missingJobs = { pending: 2, suspected: 170, contradictory: 1 };
    const observedThrough = new Date().toISOString();
    expect(await checkAccount({ state: 'quarantined', problem: null, observedThrough, missingJobs })).toEqual(
      {
        ...{ check: 'Account acme', state: 'fail' },
        message:
          'quarantined: too many jobs disappeared from the list of active jobs within a day. Now missing, with an unknown outcome: 173 jobs. Until the quarantine ends, no job is reported as cancelled or unavailable.',
        fix: expect.stringMatching(/the quarantine ends when .* run: jobwire accounts confirm acme /),
      },
    );
  });

  test('for an identity mismatch, one command confirms corrected credentials, and one the other account', async () => {
    const observedThrough = new Date().toISOString();
    const check = await checkAccount({ state: 'identity_mismatch', problem: 'Other id.', observedThrough });
    expect(check?.fix).toMatch(
      /^Correct the credentials, and then run this command\. Or, .* add --upstream-id N to it: jobwire accounts confirm acme --url \S+$/,
    );
  });

  test('an account whose last poll failed is reported before its state is failing, also one without any complete poll', async () => {
    const status = {
      ...{ state: 'baselining', problem: 'The ordering API responds with 503.', observedThrough: null },
      ...{ consecutiveFailures: 1, nextPollAt: '2026-03-02T08:02:00.000Z' },
    };
    expect(await checkAccount(status)).toEqual({
      ...{ check: 'Account acme', state: 'warn' },
      message: 'The last poll failed. The ordering API responds with 503.',
      fix: 'The next poll is due at 2026-03-02T08:02:00.000Z. Then run this check again.',
    });
    const healthy = { ...status, state: 'tracking', problem: null, consecutiveFailures: 0 };
    expect(await checkAccount(healthy)).toBeUndefined();
  });

  test('the issuer of users is tested with its discovery document and keys', async () => {
    const issuer = await startIssuer({ users: {}, origins: [site.url] });
    const check = async (url: string) => {
      const signIn = { issuer: url, clientId: 'jobwire', groups: { desk: { role: 'read' } } };
      const ended = await run(configure(site.region, { signIn }), env());
      return find(ended.out, 'Sign-in');
    };
    expect(await check(issuer.url)).toEqual({
      ...{ check: 'Sign-in', state: 'ok', message: `${issuer.url} responds and has 1 key.` },
    });
    const elsewhere = `${issuer.url}/realms/acme`;
    expect(await check(elsewhere)).toMatchObject({
      state: 'fail',
      message: `${elsewhere} responds with status 404.`,
    });
    await issuer.stop();
    expect(await check(issuer.url)).toMatchObject({
      state: 'fail',
      message: `${issuer.url} cannot be reached.`,
    });
  });

  test('the mail server is tested as far as possible without a mail', async () => {
    const publicUrl = 'https://jobwire.example.com';
    const getRequests = async (smtp: object) => {
      const notifications = { from: 'orders@acme.example', smtp: { host: '127.0.0.1', ...smtp } };
      const ended = await run(configure(site.region, { publicUrl, notifications }), env());
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
    expect(await getRequests({ port })).toMatchObject({ state: 'ok' });
    const refused = await getRequests({ port, user: 'me', password: 'a-password-that-nobody-sees' });
    expect(refused).toMatchObject({
      state: 'fail',
      message: `The mail server 127.0.0.1:${port} rejects the user or the password.`,
    });
    const open = new SMTPServer({ logger: false, disabledCommands: ['STARTTLS', 'AUTH'] });
    await new Promise<void>((done) => open.listen(0, '127.0.0.1', done));
    const login = { port: (open.server.address() as AddressInfo).port, user: 'me', password: 'secret' };
    expect(await getRequests(login)).toMatchObject({
      state: 'warn',
      message: `127.0.0.1:${login.port} responds, but offers no login. So user and password are not used.`,
    });
    await new Promise<void>((done) => open.close(() => done()));
    server.onAuth = (_, __, done) => done(null, { user: 'me' });
    expect(await getRequests({ ...login, port })).toMatchObject({
      state: 'ok',
      message: `127.0.0.1:${port} responds and accepts the login.`,
    });
    await new Promise<void>((done) => server.close(() => done()));
    expect(await getRequests({ port })).toMatchObject({
      state: 'fail',
      message: expect.stringMatching(/:\d+ can’t be used: the connection was refused \(ECONNREFUSED\)\.$/),
    });
  });

  test('missing AWS credentials for SMS are reported', async () => {
    const smtp = { host: '127.0.0.1', port: await findPort() };
    const notifications = { from: 'orders@acme.example', smtp, sms: { awsRegion: 'us-east-1' } };
    const args = configure(site.region, { publicUrl: 'https://jobwire.example.com', notifications });
    const none = join(folder, 'none');
    const withKey = async (AWS_ACCESS_KEY_ID?: string) => {
      const aws = { AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY: AWS_ACCESS_KEY_ID, AWS_PROFILE: undefined };
      const files = { AWS_SHARED_CREDENTIALS_FILE: none, AWS_CONFIG_FILE: none };
      const options = { env: { ...env(), ...aws, ...files, AWS_EC2_METADATA_DISABLED: 'true' } };
      return find((await site.start(args, options).ended).out, 'SMS');
    };
    expect(await withKey()).toEqual({
      ...{ check: 'SMS', state: 'fail', message: 'No AWS credentials for Amazon SNS were found.' },
      fix: expect.stringMatching(/^Set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or .*this command\.$/),
    });
    expect(await withKey('AKIDEXAMPLE')).toMatchObject({ state: 'ok' });
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

  test('a paused endpoint is not reported as one without problems', async () => {
    for (const id of ['works', 'stopped']) {
      await site.run('endpoints', 'add', 'http://127.0.0.1:9/', '--id', id, '--types', 'jobwire.ping');
    }
    onTestFinished(async () => {
      for (const id of ['works', 'stopped']) await site.run('endpoints', 'remove', id);
    });
    const message = async () => find((await run(['doctor', '--json'], {})).out, 'Endpoints')?.message;
    await site.run('endpoints', 'pause', 'stopped');
    expect(await message()).toBe('1 endpoint without problems, 1 paused.');
    await site.run('endpoints', 'pause', 'works');
    expect(await message()).toBe('2 endpoints paused.');
  });

  // Last, because the account is not polled any more.
  test('an account with rejected credentials and a failing endpoint are reported with their problems', async () => {
    const receiver = await fakeApi({ 'POST /hook': { status: 500 } });
    open.push(() => receiver.stop());
    const { acme, json } = site;
    await site.run('endpoints', 'add', `${receiver.url}/hook`, '--id', 'erp');
    acme.createJob({ status: 'Scheduled' });
    await expect.poll(async () => (await json('endpoints', 'health', 'erp'))[0]?.state, WAIT).toBe('failing');
    acme.clientSecret = 'changed-upstream';
    site.sandbox.revokeTokens({ region: 'us' });
    const shown = async () => (await json('accounts', 'show', 'acme'))[0]?.status.state;
    await expect.poll(shown, WAIT).toBe('credentials_rejected');
    const { clientId } = site.bakery;
    const body = { id: 'bakery', region: 'us', credentials: { clientId, clientSecret: 'wrong' } };
    await fetch(`${site.url}/v1/accounts`, {
      method: 'POST',
      headers: { authorization: `Bearer ${KEY}`, 'content-type': 'application/json' },
      body: JSON.stringify(body),
    });
    const ended = await run(['doctor', '--json'], {});
    expect(ended.code).toBe(1);
    expect(find(ended.out, 'Account acme')).toMatchObject({
      state: 'fail',
      message: expect.stringContaining('The client id or the client secret is wrong (HTTP 401).'),
    });
    expect(find(ended.out, 'Account bakery')?.fix).toBe(
      'If the credentials are wrong, replace them. Run: jobwire accounts rotate bakery --client-id CLIENT_ID. Then test it again. Run: jobwire accounts test bakery',
    );
    // No line says that 0 accounts are without problems.
    expect(find(ended.out, 'Accounts')).toBeUndefined();
    expect(find(ended.out, 'Endpoint erp')).toMatchObject({
      state: 'fail',
      message: expect.stringContaining('500'),
      fix: `Check the receiver at ${receiver.url}/hook. To send a test event and see the probable cause, run: jobwire endpoints ping erp --region us. To retry at once after the fix, run: jobwire endpoints enable erp --region us`,
    });
    const { secret } = (await json('keys', 'create', '--role', 'read'))[0];
    const read = await run(['doctor', '--json'], { JOBWIRE_API_KEY: secret });
    expect(find(read.out, 'Account acme')?.message).toMatch(/^credentials_rejected: /);
  });
});
