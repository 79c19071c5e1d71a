/**
 * `npm start` and the built `jobwire start` as processes: startup errors, crashes, and that it never repeats or loses an event.
 * One file: its tests share the configuration and its receiver.
 */
import { once } from 'node:events';
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { SMTPServer } from 'smtp-server';
import { Webhook } from 'standardwebhooks';
import { expect, inject, onTestFinished, test, vi } from 'vitest';
import { openTransports } from '../../local/transports.ts';
import { parseConfig } from '../../shared/config.ts';
import { loadCli } from '../support/cli-site.ts';
import { launch, type Running } from '../support/command.ts';
import {
  builtProgram,
  configFor,
  launchJobwire,
  startJobwire,
  startSandbox,
  writeConfig,
} from '../support/jobwire.ts';
import { findPort } from '../support/port.ts';

const KEY = 'a-key-for-the-tests-only';
const cli = await loadCli(join(inject('packageFolder'), 'cli'));
const SECRET = `whsec_${Buffer.alloc(32, 9).toString('base64')}`;

/** The lines of a program that ended, on either stream, and its exit code. */
async function waitForEnd(running: Running): Promise<{ code: number | null; lines: string[] }> {
  const { code, out, err } = await running.ended;
  return { code, lines: `${out}${err}`.split('\n').filter((line) => line !== '') };
}

test.each([
  [
    ['--config', 'no-such-file.json'],
    'The configuration file no-such-file.json can’t be read: the file or its folder does not exist (ENOENT).',
    builtProgram(),
  ],
  [['--prot', '1'], /^Unknown option '--prot'\. Usage: npm start/, undefined],
  [['--port', 'x'], '--port must be an integer from 0 to 65535.', undefined],
])('%s: one error message and exit code 2', async (args, sentence, command) => {
  const { code, lines } = await waitForEnd(launchJobwire(args, { ...(command && { command }) }));
  expect(code).toBe(2);
  expect(lines).toHaveLength(1);
  expect(lines[0]).toMatch(sentence);
});

test('an occupied port: one error message and exit code 1', async () => {
  const server = createServer();
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  onTestFinished(() => void server.close());
  const { port } = server.address() as AddressInfo;
  const { code, lines } = await waitForEnd(
    launchJobwire(['--port', String(port)], { command: builtProgram() }),
  );
  expect(code).toBe(1);
  expect(lines).toEqual([
    `Port ${port} is in use. Stop the program that listens there, or choose another port with --port, or with port in the configuration.`,
  ]);
});

test('until the store responds, requests get the problem and the Retry-After of an unavailable service', async () => {
  const store = createServer(() => {});
  await new Promise<void>((resolve) => store.listen(0, '127.0.0.1', resolve));
  onTestFinished(() => {
    store.closeAllConnections();
    store.close();
  });
  const setup = await configured();
  const port = await findPort();
  setup.write({ port, dynamodbEndpoint: `http://127.0.0.1:${(store.address() as AddressInfo).port}` });
  const running = setup.launch();
  let response: Response | undefined;
  while (!response) response = await fetch(`http://127.0.0.1:${port}/v1/events`).catch(() => undefined);
  expect(response.status).toBe(503);
  expect(response.headers.get('retry-after')).toBe('5');
  expect(response.headers.get('content-type')).toBe('application/problem+json');
  expect(await response.json()).toEqual({
    ...{ type: 'urn:jobwire:problem:service-unavailable', title: 'Service Unavailable', status: 503 },
    ...{ detail: 'Jobwire is starting. Retry later.', requestId: response.headers.get('x-request-id') },
  });
  expect(response.headers.get('x-request-id')).toBeTruthy();
  running.child.kill('SIGKILL');
  await running.ended;
});

test('--help describes each option', async () => {
  const { code, lines } = await waitForEnd(launchJobwire(['--help']));
  expect(code).toBe(0);
  expect(lines[0]).toMatch(/^Usage: npm start -- /);
  for (const option of ['config FILE', 'port N', 'seed N', 'verbose']) {
    expect(
      lines.some((line) => new RegExp(`^ +--${option} {2,}\\S`).test(line)),
      option,
    ).toBe(true);
  }
});

test.runIf(existsSync('/dev/full'))(
  'a full disk below stdout: one line on stderr, and Jobwire keeps running',
  async () => {
    const port = await findPort();
    const command = ['sh', '-c', 'exec "$@" > /dev/full', 'sh', ...builtProgram()];
    const running = launchJobwire(['--port', String(port)], { command });
    await running.printed(/ are lost/);
    const isReady = () => fetch(`http://127.0.0.1:${port}/readyz`).then(({ ok }) => ok);
    await vi.waitUntil(isReady, { timeout: 20_000, interval: 100 });
    running.child.kill('SIGTERM');
    expect(await running.ended).toMatchObject({
      code: 0,
      err: 'Lines of the output are lost: the disk is full (ENOSPC). Jobwire keeps running.\n',
    });
  },
);

test('the program that reads stdout exits: one line on stderr, the exit code of a program that SIGPIPE ended, and no temporary folder', async () => {
  const TMPDIR = mkdtempSync(join(tmpdir(), 'jobwire-closed-'));
  onTestFinished(() => rmSync(TMPDIR, { recursive: true }));
  const running = await startJobwire(['--port', '0'], { command: builtProgram(), env: { TMPDIR } });
  expect(readdirSync(TMPDIR)).toEqual([expect.stringMatching(/^jobwire-demo-/)]);
  running.child.stdout?.destroy();
  expect(await running.ended).toMatchObject({
    code: 141,
    err: 'The output can’t be written: the connection was cut (EPIPE). Jobwire stops.\n',
  });
  expect(readdirSync(TMPDIR)).toEqual([]);
});

/** A sandbox with one account, a receiver, and a configuration for both. */
async function configured() {
  const { sandbox, world } = await startSandbox();
  const account = world.addAccount({ region: 'us', name: 'acme' });
  const received: { id: string; type: string; job: string }[] = [];
  const heard = new Set<() => void>();
  let status = 204;
  const server = createServer((request, response) => {
    const chunks: Buffer[] = [];
    request.on('data', (chunk: Buffer) => chunks.push(chunk));
    request.on('end', () => {
      const body = Buffer.concat(chunks).toString();
      new Webhook(SECRET).verify(body, request.headers as Record<string, string>);
      const { id, type, subject } = JSON.parse(body) as { id: string; type: string; subject?: string };
      received.push({ id, type, job: subject?.slice(5) ?? '' });
      response.writeHead(status).end();
      for (const hear of heard) hear();
    });
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  onTestFinished(() => {
    server.closeAllConnections();
    server.close();
  });
  const file = writeConfig({
    ...configFor(sandbox, [account]),
    apiKey: 'env:JOBWIRE_TEST_KEY',
    endpoints: [
      {
        id: 'erp',
        url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/`,
        secret: SECRET,
        accounts: ['acme'],
        types: ['job.*'],
      },
    ],
    webhooks: { allowPrivateNetworks: true, retrySeconds: [1] },
    departures: { confirmAfterSeconds: 2 },
    settling: { scheduleSeconds: [1], days: 1 },
  });
  const config = JSON.parse(readFileSync(file, 'utf8')) as object;
  const options = { command: builtProgram(), env: { JOBWIRE_TEST_KEY: KEY } };
  return {
    file,
    sandbox,
    account,
    received,
    /** Sets the status of the receiver's responses. */
    answer: (next: number): void => {
      status = next;
    },
    /** Changes the configuration. */
    write: (changed: object) => writeFileSync(file, JSON.stringify({ ...config, ...changed })),
    start: () => startJobwire(['--config', file], options),
    launch: () => launchJobwire(['--config', file], options),
    /** Waits until a webhook for this was received. */
    async got(type: string, job: number) {
      const found = () => received.some((event) => event.type === type && event.job === String(job));
      while (!found()) {
        await new Promise<void>((resolve) => {
          const hear = () => {
            heard.delete(hear);
            resolve();
          };
          heard.add(hear);
        });
      }
    },
  };
}

test('after kill -9 and a restart no event is emitted twice, and no change in between is missed', {
  timeout: 90_000,
}, async () => {
  const setup = await configured();
  setup.write({ sns: true });
  const [moving, leaving, cancelled] = [
    setup.account.createJob({ status: 'Scheduled' }),
    setup.account.createJob({ status: 'Scheduled' }),
    setup.account.createJob({ status: 'Scheduled' }),
  ] as const;
  const first = await setup.start();
  await first.printed(/account\.baselined/);
  setup.account.setStatus(moving, 'In production');
  await setup.got('job.status_changed', moving);
  first.child.kill('SIGKILL');
  await first.ended;

  // While it is stopped: one job is dispatched and closed, one cancelled, one created.
  setup.account.dispatch(leaving, { tracking: [{ trackingNumber: 'T1', trackingLink: null }] });
  setup.account.close(leaving);
  setup.account.cancel(cancelled);
  const created = setup.account.createJob({ status: 'Scheduled' });

  const second = await setup.start();
  await Promise.all([
    setup.got('job.dispatched', leaving),
    setup.got('job.closed', leaving),
    setup.got('job.tracking_added', leaving),
    setup.got('job.cancelled', cancelled),
    setup.got('job.created', created),
  ]);
  const said = new Map(setup.received.map((event) => [event.id, `${event.type} ${event.job}`]));
  const dispatches = [...said.values()].filter((event) => event === `job.dispatched ${leaving}`);
  expect(dispatches).toHaveLength(1);
  expect(new Set(said.values()).size, 'no event under two ids').toBe(said.size);

  const feed = (await (
    await fetch(`${second.url}/v1/accounts/acme/events?limit=500`, {
      headers: { authorization: `Bearer ${KEY}` },
    })
  ).json()) as { events: { sequence: string; type: string }[] };
  expect(feed.events.map(({ sequence }) => Number(sequence))).toEqual(feed.events.map((_, at) => at + 1));
  expect(feed.events.filter(({ type }) => type === 'account.baselined')).toHaveLength(1);
  second.child.kill('SIGTERM');
  const stopped = await second.ended;
  expect(stopped.code).toBe(0);
  expect(stopped.out.match(/^Stopping.*$/gm)).toEqual(['Stopping: received SIGTERM.']);
});

test('an account whose credentials were corrected is polled as soon as Jobwire starts again', {
  timeout: 60_000,
}, async () => {
  const setup = await configured();
  const { accounts } = JSON.parse(readFileSync(setup.file, 'utf8')) as {
    accounts: { clientSecret: string }[];
  };
  const slow = accounts.map((account) => ({ ...account, pollIntervalSeconds: 3_600 }));
  setup.write({ accounts: slow.map((account) => ({ ...account, clientSecret: 'wrong' })) });
  const first = await setup.start();
  await first.printed(/account\.credentials_rejected/);
  first.child.kill('SIGTERM');
  await first.ended;
  setup.write({ accounts: slow });
  const second = await setup.start();
  await second.printed(/account\.credentials_accepted/);
});

test('with "sns": false, webhooks are sent, no SNS and SQS run, and no credentials of them are named', {
  timeout: 60_000,
}, async () => {
  const setup = await configured();
  const job = setup.account.createJob({ status: 'Scheduled' });
  setup.write({ sns: false });
  const off = await setup.start();
  await off.printed(/Live events/);
  await off.printed(/account\.baselined/);
  setup.account.setStatus(job, 'In production');
  await setup.got('job.status_changed', job);
  expect(off.out()).not.toMatch(/SNS and SQS|AWS credentials/);
  // As when its terminal is closed.
  off.child.kill('SIGHUP');
  expect(await off.ended).toMatchObject({
    code: 0,
    out: expect.stringContaining('Stopping: received SIGHUP.'),
  });
  expect(existsSync(join(dirname(setup.file), 'data', 'queues'))).toBe(false);
});

test('a printed command works; a data folder in use: one error message and exit code 1; secrets are never printed', {
  timeout: 60_000,
}, async () => {
  const setup = await configured();
  const first = await setup.start();
  await first.printed(/Live events/);
  const [, command = ''] = /with JOBWIRE_API_KEY set\n +(.+)\n/.exec(first.out()) ?? [];
  const listed = await launch(['sh', '-c', command], { env: { JOBWIRE_API_KEY: KEY } }).ended;
  expect(listed, 'the first printed command').toMatchObject({
    code: 0,
    out: expect.stringMatching(/^acme /m),
  });
  const { code, lines } = await waitForEnd(setup.launch());
  expect(code).toBe(1);
  expect(lines).toHaveLength(1);
  expect(lines[0]).toMatch(/^The data folder \S+ is in use by another Jobwire\. /);
  const shown = first.out() + first.err();
  for (const secret of [KEY, SECRET, setup.account.clientSecret]) expect(shown).not.toContain(secret);
});

test('a tables.db that is no database: one error message and exit code 1', async () => {
  const setup = await configured();
  const dataDir = join(dirname(setup.file), 'data');
  mkdirSync(dataDir, { recursive: true });
  writeFileSync(join(dataDir, 'tables.db'), 'no database at all');
  const { code, lines } = await waitForEnd(setup.launch());
  expect(code).toBe(1);
  expect(lines).toHaveLength(1);
  expect(lines[0]).toContain(join(dataDir, 'tables.db'));
  expect(lines[0]).toContain('not a database');
});

test('damaged databases: one error message with the file and what to do, which doctor also reports', {
  timeout: 60_000,
}, async () => {
  const setup = await configured();
  setup.write({ sns: true });
  const dataDir = join(dirname(setup.file), 'data');
  const first = await setup.start();
  await first.printed(/account\.baselined/);
  first.child.kill('SIGTERM');
  await first.ended;
  /** Overwrites everything after the first pages of a file, which contain the schema. */
  const damage = (name: string, from: number) => {
    const file = join(dataDir, name);
    const bytes = readFileSync(file);
    writeFileSync(file, Buffer.concat([bytes.subarray(0, from), Buffer.alloc(bytes.length - from, 0xee)]));
    return bytes;
  };
  damage('queues/fauxqs.db', 100);
  expect((await waitForEnd(setup.launch())).lines).toEqual([
    expect.stringMatching(
      /^The database \S+\/queues\/fauxqs\.db can’t be used: .* \(SQLITE_\w+\)\. Restore a backup\. Or remove the file, /,
    ),
  ]);
  setup.write({ sns: false });
  damage('tables.db', 2 * 4096);
  expect((await waitForEnd(setup.launch())).lines).toEqual([
    `The tables in ${join(dataDir, 'tables.db')} can’t be used: the database is damaged (SQLITE_CORRUPT). Restore a backup (jobwire restore).`,
  ]);
  const env = { JOBWIRE_TEST_KEY: KEY };
  const doctor = await cli.run(['doctor', '--config', setup.file, '--json'], { env });
  expect((JSON.parse(doctor.out) as { checks: object[] }).checks).toContainEqual({
    ...{ check: 'Data folder', state: 'fail' },
    message: expect.stringMatching(/^The database \S+tables\.db can’t be used: .*Restore a backup/),
  });
});

test('without the key of the stored secrets, or with another one: one error message with its file, also of doctor, and no other key is created', {
  timeout: 60_000,
}, async () => {
  const setup = await configured();
  const file = join(dirname(setup.file), 'data', 'secret.key');
  const first = await setup.start();
  await first.printed(/Live events/);
  first.child.kill('SIGTERM');
  await first.ended;
  const key = readFileSync(file);
  rmSync(file);
  const fix = `Copy the former secret.key to ${file}, or set JOBWIRE_SECRET_KEY to its content.`;
  expect(await waitForEnd(setup.launch())).toEqual({
    code: 1,
    lines: [`The key of the stored secrets of endpoints and accounts is missing. ${fix}`],
  });
  /** The message of doctor is that of the start. */
  const doctor = async () => {
    const env = { JOBWIRE_TEST_KEY: KEY };
    const { out } = await cli.run(['doctor', '--config', setup.file, '--json'], { env });
    const { checks } = JSON.parse(out) as { checks: { check: string; message: string }[] };
    return checks.find(({ check }) => check === 'Data folder')?.message;
  };
  expect(await doctor()).toBe(`The key of the stored secrets of endpoints and accounts is missing. ${fix}`);
  expect(existsSync(file)).toBe(false);
  writeFileSync(file, Buffer.alloc(32, 7).toString('base64'), { mode: 0o600 });
  const { lines } = await waitForEnd(setup.launch());
  const differs = `The secret key in ${file} differs from the key that encrypted the secrets of endpoints and accounts. ${fix}`;
  expect(lines).toEqual([differs]);
  expect(await doctor()).toBe(differs);
  writeFileSync(file, 'short', { mode: 0o600 });
  expect(await doctor()).toBe(`The secret key in ${file} must be 32 bytes in base64.`);
  writeFileSync(file, key);
  await (await setup.start()).printed(/Live events/);
});

test('an occupied metrics port is reported with its setting', async () => {
  const setup = await configured();
  const taken = createServer().listen(0, '127.0.0.1');
  onTestFinished(() => void taken.close());
  await once(taken, 'listening');
  const { port } = taken.address() as AddressInfo;
  setup.write({ metrics: { port } });
  expect((await waitForEnd(setup.launch())).lines).toEqual([
    `Port ${port} is in use. Stop the program that listens there, or choose another port with metrics.port in the configuration.`,
  ]);
});

test('from the sources, an error message names commands as a shell starts them there', async () => {
  const setup = await configured();
  setup.write({ webhooks: {} });
  const env = { JOBWIRE_TEST_KEY: KEY };
  const { lines } = await waitForEnd(launchJobwire(['--config', setup.file], { env }));
  expect(lines.join(' ')).toContain('for development, use npm run -s jobwire -- listen, which');
});

test('an invalid setting is named, before anything is started, and the exit code is the one for which systemd does not start Jobwire again', async () => {
  const setup = await configured();
  setup.write({ settling: { days: 'seven' } });
  const { code, lines } = await waitForEnd(setup.launch());
  expect(readFileSync('jobwire.service', 'utf8')).toContain(`\nRestartPreventExitStatus=${code}\n`);
  expect(code).toBe(2);
  expect(lines).toEqual([`${setup.file}: settling.days must be a number of days.`]);
});

test('two accounts with the same credentials: one warning that names both, and Jobwire starts', {
  timeout: 60_000,
}, async () => {
  const setup = await configured();
  const { name, region, clientId, clientSecret } = setup.account;
  const [first, second] = [name, 'acme-2'].map((id) => ({ id, region, clientId, clientSecret }));
  setup.write({ accounts: [first, second] });
  const running = await setup.start();
  await running.printed(/Live events/);
  expect(running.err()).toBe(
    'Warning: The accounts "acme" and "acme-2" in region us have the same credentials, so each of them reports the same jobs.\n',
  );
});

test('a mail server that can’t be used: Jobwire starts, with one warning with the setting and the remedy, and one line when e-mails are sent again', {
  timeout: 60_000,
}, async () => {
  const closed = createServer().listen(0, '127.0.0.1');
  await once(closed, 'listening');
  const { port } = closed.address() as AddressInfo;
  closed.close();
  await once(closed, 'close');
  const setup = await configured();
  const smtp = { host: '127.0.0.1', port };
  setup.write({ publicUrl: 'https://jobwire.example.com', notifications: { from: 'a@shop.example', smtp } });
  const running = await setup.start();
  await running.printed(/Live events/);
  const warning = `Warning: e-mails can’t be sent. The mail server 127.0.0.1:${port} can’t be used: the connection was refused (ECONNREFUSED). Check notifications.smtp.host and notifications.smtp.port, and that this machine may connect there. E-mails wait until the mail server accepts them.\n`;
  await expect.poll(() => running.err(), { timeout: 30_000 }).toBe(warning);
  const send = async (method: string, path: string, body: object) => {
    const headers = { authorization: `Bearer ${KEY}`, 'content-type': 'application/json' };
    const url = `${running.url}/v1/accounts/acme/notifications${path}`;
    return (await fetch(url, { method, headers, body: JSON.stringify(body) })).json();
  };
  const to = 'orders@shop.example';
  await send('PUT', '', { enabled: false, branding: { name: 'Shop' }, replyTo: to });
  expect(await send('POST', '/test', { to, kind: 'dispatched' })).toMatchObject({ sent: false });
  const server = new SMTPServer({ logger: false, authOptional: true, disabledCommands: ['STARTTLS'] });
  onTestFinished(() => void server.close(() => {}));
  server.listen(port, '127.0.0.1');
  await once(server.server, 'listening');
  expect(await send('POST', '/test', { to, kind: 'dispatched' })).toMatchObject({ sent: true });
  await running.printed(/^E-mails are sent again\.$/m);
  expect(running.err()).toBe(`${warning}E-mails are sent again.\n`);
});

test('without AWS credentials for SMS: Jobwire starts, with one warning', { timeout: 60_000 }, async () => {
  const setup = await configured();
  const server = new SMTPServer({ logger: false, authOptional: true, disabledCommands: ['STARTTLS'] });
  onTestFinished(() => void server.close(() => {}));
  server.listen(0, '127.0.0.1');
  await once(server.server, 'listening');
  const smtp = { host: '127.0.0.1', port: (server.server.address() as AddressInfo).port };
  const notifications = { from: 'a@shop.example', smtp, sms: { awsRegion: 'us-east-1' } };
  setup.write({ publicUrl: 'https://jobwire.example.com', notifications });
  const none = join(dirname(setup.file), 'none');
  const aws = { AWS_ACCESS_KEY_ID: undefined, AWS_PROFILE: undefined, AWS_EC2_METADATA_DISABLED: 'true' };
  const files = { AWS_SHARED_CREDENTIALS_FILE: none, AWS_CONFIG_FILE: none };
  const running = await startJobwire(['--config', setup.file], {
    command: builtProgram(),
    env: { JOBWIRE_TEST_KEY: KEY, ...aws, ...files },
  });
  await running.printed(
    /^Warning: SMS can’t be sent\. No AWS credentials for Amazon SNS were found\. Set AWS_ACCESS_KEY_ID .* SMS wait until Amazon SNS accepts them\.$/m,
  );
  expect(running.err().trimEnd().split('\n')).toHaveLength(1);
});

test('the outcome of each SMS is reported', async () => {
  const closed = createServer().listen(0, '127.0.0.1');
  await once(closed, 'listening');
  const { port } = closed.address() as AddressInfo;
  closed.close();
  const smtp = { host: '127.0.0.1', port };
  const sms = { awsRegion: 'us-east-1', endpoint: `http://127.0.0.1:${port}` };
  const outcomes: object[] = [];
  const transports = await openTransports({
    config: parseConfig(
      {
        regions: { us: { baseUrl: 'https://x.example', authUrl: 'https://x.example', realm: 'us' } },
        accounts: [],
        publicUrl: 'https://jobwire.example.com',
        notifications: { from: 'a@shop.example', smtp, sms },
      },
      {},
    ),
    smsCredentials: { accessKeyId: 'AKID', secretAccessKey: 'secret' },
    onSms: (outcome) => outcomes.push(outcome),
  });
  onTestFinished(() => transports.email?.close());
  await transports.sms?.send({ to: '+12025550123', text: 'Sent', senderId: null });
  expect(outcomes).toMatchObject([{ kind: 'later', everything: true }]);
});

test('a target of an alert rule that does not accept messages: one line on stderr, and a warning of doctor', {
  timeout: 120_000,
}, async () => {
  const setup = await configured();
  setup.account.createJob({ status: 'Scheduled', dateDue: '2020-01-01T00:00:00Z' });
  const first = await setup.start();
  await first.printed(/account\.baselined/);
  const target = createServer((_, response) => void response.writeHead(500).end()).listen(0, '127.0.0.1');
  onTestFinished(() => void target.close());
  await once(target, 'listening');
  const { port } = target.address() as AddressInfo;
  const rule = { id: 'late', name: 'Late', condition: 'late_jobs', threshold: 0 };
  const created = await fetch(`${first.url}/v1/alert-rules`, {
    method: 'POST',
    headers: { authorization: `Bearer ${KEY}`, 'content-type': 'application/json' },
    body: JSON.stringify({ ...rule, target: { kind: 'webhook', url: `http://127.0.0.1:${port}/` } }),
  });
  expect(created.status, await created.text()).toBe(201);
  // The first tick after a start evaluates rules at once.
  first.child.kill('SIGTERM');
  await first.ended;
  const running = await setup.start();
  const line =
    /^Messages of the alert rule us\/late can’t be sent: The endpoint responded with status 500\.$/m;
  // If a minute began before the first process ended, that process may have evaluated the rule.
  await Promise.any([first.printed(line), running.printed(line)]);
  const env = { JOBWIRE_API_KEY: KEY };
  const { out } = await cli.run(['doctor', '--json', '--url', running.url], { env });
  expect((JSON.parse(out) as { checks: object[] }).checks).toContainEqual({
    ...{ check: 'Alert rule late', state: 'warn' },
    message: 'The last message was not accepted: The endpoint responded with status 500.',
    fix: expect.stringMatching(/ alerts test late --region us /),
  });
});

test('an account removed from the configuration is paused and keeps its log; it and a removed endpoint are not resumed without their entry, and can be deleted', {
  timeout: 60_000,
}, async () => {
  const setup = await configured();
  setup.account.createJob({});
  const first = await setup.start();
  await first.printed(/account\.baselined/);
  first.child.kill('SIGTERM');
  await first.ended;
  setup.write({ accounts: [], endpoints: [] });
  const { url } = await setup.start();
  const read = async (path: string) => {
    const headers = { authorization: `Bearer ${KEY}` };
    return (await fetch(`${url}/v1/accounts/acme/${path}`, { headers })).json();
  };
  expect(await read('status')).toMatchObject({ state: 'paused' });
  expect(await read('events')).toMatchObject({ events: [{ type: 'account.baselined' }] });
  const env = { JOBWIRE_API_KEY: KEY, JOBWIRE_URL: url };
  const run = (...args: string[]) => cli.run(args, { env });
  expect(await run('accounts', 'resume', 'acme')).toMatchObject({
    code: 3,
    err: expect.stringMatching(
      /^The account "acme" is no longer in the configuration file, which contained its credentials\. Restore its entry there, under "accounts", and restart Jobwire, or set new credentials with .+ accounts rotate\.\n$/,
    ),
  });
  expect((await run('accounts', 'show', 'acme')).out).toMatch(
    /^Managed by +API \(its entry was removed from the configuration\)$/m,
  );
  for (const action of ['resume', 'enable']) {
    expect(await run('endpoints', action, 'erp')).toMatchObject({
      code: 3,
      err: expect.stringContaining(
        'The endpoint "erp" is no longer in the configuration file. Restore its entry',
      ),
    });
  }
  expect(await run('endpoints', 'remove', 'erp')).toMatchObject({ code: 0 });
  expect((await run('endpoints', 'list', '--json')).out).not.toContain('erp');
  const { clientId, clientSecret } = setup.account;
  const secret = join(dirname(setup.file), 'new.secret');
  writeFileSync(secret, clientSecret);
  const rotate = ['accounts', 'rotate', 'acme', '--client-id', clientId, '--client-secret-file', secret];
  expect(await run(...rotate)).toMatchObject({ code: 0 });
  expect(await run('accounts', 'resume', 'acme')).toMatchObject({ code: 0 });
  expect((await run('accounts', 'show', 'acme')).out).toMatch(/^Managed by +API$/m);
});

test('failing polls and deliveries: one line each on stderr when they begin and when they end, with the cause that doctor reports', {
  timeout: 90_000,
}, async () => {
  const setup = await configured();
  const job = setup.account.createJob({ status: 'Scheduled' });
  setup.answer(503);
  const running = await setup.start();
  await running.printed(/account\.baselined/);
  setup.account.setStatus(job, 'In production');
  await running.printed(
    /^Deliveries to the endpoint us\/erp fail: The endpoint responded with status 503\. The next attempt/m,
  );
  setup.answer(204);
  await running.printed(/^Deliveries to the endpoint us\/erp succeed again\.$/m);
  setup.sandbox.faults.add({ match: { operation: 'activeJobs' }, fault: { kind: 'status', status: 404 } });
  await running.printed(
    /^Polls of the account us\/acme fail: The ordering API is not at this address \(HTTP 404\)\. Check the path of baseUrl of region "us"\.$/m,
  );
  setup.sandbox.faults.clear();
  await running.printed(/^Polls of the account us\/acme succeed again\.$/m);
  expect(running.err().split('\n')).toHaveLength(5);
  for (const secret of [KEY, SECRET, setup.account.clientSecret]) expect(running.err()).not.toContain(secret);
});

test('while writes fail: not ready, doctor fails with the reason, one line on stderr when it begins and one when it ends, and no restart is needed', {
  timeout: 90_000,
}, async () => {
  const setup = await configured();
  const running = await setup.start();
  await running.printed(/account\.baselined/);
  const env = { JOBWIRE_API_KEY: KEY, JOBWIRE_URL: running.url };
  const run = (...args: string[]) => cli.run(args, { env });
  const ready = async () => {
    const answer = await fetch(`${running.url}/readyz`);
    const { detail } = (await answer.json()) as { detail?: string };
    return { status: answer.status, detail, retryAfter: answer.headers.get('retry-after') };
  };
  expect((await ready()).status).toBe(200);
  // Fails as a full disk does.
  const tables = new DatabaseSync(join(dirname(setup.file), 'data', 'tables.db'), { timeout: 30_000 });
  onTestFinished(() => tables.close());
  const full = (event: string) =>
    `CREATE TRIGGER "full ${event}" BEFORE ${event} ON state BEGIN SELECT RAISE(ABORT, 'database or disk is full'); END`;
  tables.exec(['INSERT', 'UPDATE'].map(full).join(';'));
  await running.printed(
    /^Writes to the tables fail: database or disk is full\. Polls and deliveries wait\.$/m,
  );
  const detail = 'Writes to the store fail: database or disk is full.';
  const failing = { status: 503, detail, retryAfter: '5' };
  // The second check repeats a write.
  for (const at of [1, 2]) expect(await ready(), String(at)).toEqual(failing);
  expect(await run('health')).toMatchObject({
    code: 4,
    err: expect.stringContaining('HTTP 503: Writes to the store fail: database or disk is full.'),
  });
  const doctor = await run('doctor', '--json');
  expect(doctor.code).toBe(1);
  expect((JSON.parse(doctor.out) as { checks: object[] }).checks).toContainEqual(
    expect.objectContaining({ check: 'Store', state: 'fail', message: failing.detail }),
  );
  tables.exec('DROP TRIGGER "full INSERT"; DROP TRIGGER "full UPDATE"');
  await running.printed(/^Writes to the tables succeed again\.$/m);
  expect((await ready()).status).toBe(200);
  expect((await run('keys', 'create', '--role', 'read')).code).toBe(0);
  expect(running.err().trimEnd().split('\n')).toHaveLength(2);
});

test('the summary counts the endpoints of the configuration and those that were created through the API', {
  timeout: 60_000,
}, async () => {
  const setup = await configured();
  const first = await setup.start();
  await first.printed(/^ +Endpoints +1 webhook$/m);
  const created = await fetch(`${first.url}/v1/endpoints`, {
    method: 'POST',
    headers: { authorization: `Bearer ${KEY}`, 'content-type': 'application/json' },
    body: JSON.stringify({ id: 'crm', url: 'https://crm.example.com/hook' }),
  });
  expect(created.status).toBe(201);
  first.child.kill('SIGTERM');
  await first.ended;
  setup.write({ endpoints: [] });
  const second = await setup.start();
  await second.printed(/^ +Endpoints +1 webhook, 1 paused$/m);
});
