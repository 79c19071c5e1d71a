/**
 * Commands of the built CLI for single operations of the API, and profiles, against a real Jobwire.
 * One file: its tests share the started Jobwire.
 */
import {
  chmodSync,
  lstatSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { dirname, join, resolve } from 'node:path';
import { Webhook } from 'standardwebhooks';
import { afterAll, beforeAll, beforeEach, describe, expect, onTestFinished, test } from 'vitest';
import { parseConfig, parseConfigText } from '../../shared/config.ts';
import { newSigningSecret } from '../../shared/delivery/signing-secrets.ts';
import type { JobEvent } from '../../shared/events/event.ts';
import { getExample } from '../../shared/events/examples.ts';
import { KEY, OPERATION_COMMANDS, startSite, toDocuments } from '../support/cli-site.ts';
import { fakeApi } from '../support/command.ts';

const folder = mkdtempSync(join(tmpdir(), 'jobwire-cli-'));
const ends: (() => unknown)[] = [() => rmSync(folder, { recursive: true, force: true })];
let site: Awaited<ReturnType<typeof startSite>>;

/** Requests to the receiver, and the status of its responses. */
const received: { readonly body: string; readonly headers: Record<string, string> }[] = [];
let status = 204;
let receiver: string;

beforeAll(async () => {
  const server = createServer(async (request, response) => {
    let body = '';
    for await (const chunk of request.setEncoding('utf8')) body += chunk;
    received.push({ body, headers: request.headers as Record<string, string> });
    response.writeHead(status).end();
  }).listen(0, '127.0.0.1');
  await new Promise((resolve) => server.once('listening', resolve));
  ends.push(() => server.close().closeAllConnections());
  receiver = `http://127.0.0.1:${(server.address() as AddressInfo).port}/hook`;
  site = await startSite((stop) => ends.push(stop), OPERATION_COMMANDS);
}, 60_000);
afterAll(async () => {
  for (const end of ends.reverse()) await end();
});

describe('endpoints', () => {
  let secret: string;
  let event: string;
  beforeAll(async () => {
    const [created] = await site.json('endpoints', 'add', receiver, '--id', 'erp', '--types', 'job.*');
    secret = created.secret;
    const [first] = await site.json('events', 'tail', '--account', 'acme', '--since', '1h', '--once', '1');
    event = first.id;
  });
  beforeEach(() => {
    status = 204;
    received.length = 0;
  });

  test('update changes only the given settings, and all or none removes one', async () => {
    const settings = ['--rate', '5', '--job-field', 'mustDate=true', '--description', 'ERP'];
    expect(await site.json('endpoints', 'update', 'erp', ...settings)).toMatchObject([
      { types: ['job.*'], ratePerSecond: 5, jobFields: { mustDate: true }, description: 'ERP' },
    ]);
    const shown = await site.run('endpoints', 'show', 'erp');
    expect(shown.out).toContain('mustDate = true');
    expect(shown.out).not.toContain(secret);
    const removed = ['--types', 'all', '--job-field', 'all', '--rate', 'none', '--description', 'none'];
    expect(await site.json('endpoints', 'update', 'erp', ...removed)).toMatchObject([
      { types: [], ratePerSecond: null, jobFields: {}, description: null, url: receiver },
    ]);
    expect(await site.run('endpoints', 'update', 'erp')).toMatchObject({ code: 2 });
    expect(await site.run('endpoints', 'update', 'erp', '--types', 'job.dispached')).toMatchObject({
      code: 3,
      err: '--types must match an existing event type (did you mean job.dispatched?).\n',
    });
  });

  test('a job field is compared as its type: an order number of digits stays a text', async () => {
    const fields = [
      'orderNumber=78399',
      'jobNumber=007',
      'orderGroupSequence=1',
      'mustDate=false',
      'orderGroup=null',
    ];
    const update = ['endpoints', 'update', 'erp'];
    expect(await site.json(...update, ...fields.flatMap((one) => ['--job-field', one]))).toMatchObject([
      {
        jobFields: {
          ...{ orderNumber: '78399', jobNumber: 7, orderGroupSequence: 1, mustDate: false, orderGroup: null },
        },
      },
    ]);
    await site.run(...update, '--job-field', 'all');
  });

  test('resend sends the event with its id, and exits with 1 if the receiver rejects it', async () => {
    expect(await site.run('endpoints', 'resend', 'erp', event)).toMatchObject({ code: 0, err: '' });
    expect(received.map(({ body }) => JSON.parse(body).id)).toEqual([event]);
    status = 422;
    expect(await site.run('endpoints', 'resend', 'erp', event)).toMatchObject({
      code: 1,
      out: expect.stringMatching(/^Failed: HTTP 422 /),
    });
    expect(await site.run('endpoints', 'resend', 'erp', 'x')).toMatchObject({ code: 3 });
  });

  test('rotate-secret prints a new secret, and requests are signed with the new and the previous one', async () => {
    const [rotated] = await site.json('endpoints', 'rotate-secret', 'erp', '--grace', '3600');
    expect(rotated.secret).not.toBe(secret);
    await site.run('endpoints', 'ping', 'erp');
    for (const one of [secret, rotated.secret]) {
      expect(() =>
        new Webhook(one).verify(received[0]?.body ?? '', received[0]?.headers ?? {}),
      ).not.toThrow();
    }
    expect(await site.run('endpoints', 'rotate-secret', 'erp', '--grace', '604801')).toMatchObject({
      code: 2,
      err: '--grace must be an integer from 0 to 604800.\n',
    });
  });

  test('parked events are retried and discarded, and an event that is not parked is reported', async () => {
    expect(await site.json('endpoints', 'retry', 'erp', '--all')).toEqual([{ retried: 0, missing: [] }]);
    expect(
      await site.run('endpoints', 'redeliver', 'erp', '--dead', '--statuses', '422', '--dry-run'),
    ).toMatchObject({ out: expect.stringMatching(/0 dead events would be replayed/) });
    expect(await site.run('endpoints', 'redeliver', 'erp', '--jobs', 'x')).toMatchObject({
      err: expect.stringContaining('--jobs must be positive integers.'),
    });
    expect(await site.run('endpoints', 'discard', 'erp', '--event', event)).toMatchObject({
      code: 1,
      err: `Not parked: ${event}.\n`,
    });
    expect(await site.run('endpoints', 'discard', 'erp', '--all')).toMatchObject({ code: 0 });
    expect(await site.run('endpoints', 'discard', 'erp', '--all', '--event', event)).toMatchObject({
      code: 2,
    });
    expect(await site.run('endpoints', 'dead', 'erp')).toMatchObject({
      code: 0,
      err: 'There are no dead events.\n',
    });
  });

  test('a batch prints the result of each endpoint or account, and exits with 1 if one failed', async () => {
    const paused = await site.run('endpoints', 'batch', 'pause', '--ids', 'erp');
    expect(paused).toMatchObject({ code: 0, out: expect.stringMatching(/^erp +us +done$/m) });
    const resumed = await site.run('endpoints', 'batch', 'resume', '--ids', 'erp,nothing', '--json');
    expect(resumed.code).toBe(1);
    expect(JSON.parse(resumed.out).results).toMatchObject([
      { id: 'erp', problem: null },
      { id: 'nothing', problem: { status: 404 } },
    ]);
    expect((await site.run('endpoints', 'batch', 'discard', '--all')).out).toMatch(/^erp +us +0 events$/m);
    // The configuration file declares its only account.
    const declared = await site.json('accounts', 'batch', 'resume', '--all', '--region', 'us');
    expect(declared).toMatchObject([{ results: [{ id: 'acme', problem: { status: 409 } }] }]);
    for (const args of [['pause'], ['pause', '--all', '--ids', 'erp'], ['stop', '--all']]) {
      expect(await site.run('endpoints', 'batch', ...args)).toMatchObject({ code: 2, out: '' });
    }
  });

  test('a batch of which a later page fails prints the results of the earlier ones, and the error', async () => {
    const done = { id: 'erp', region: 'us', events: 3, problem: null };
    const api = await fakeApi({
      'POST /v1/endpoints/batch': ({ body }) =>
        (body as { after?: string }).after === undefined
          ? { json: { results: [done], next: 'erp/us' } }
          : { status: 503, json: { detail: 'The store does not respond.' } },
    });
    onTestFinished(() => api.stop());
    const ended = await site.run('endpoints', 'batch', 'discard', '--all', '--url', api.url);
    expect(ended.out).toMatch(/^erp +us +3 events$/m);
    expect(ended.err).toContain('The store does not respond.');
    expect(ended.code).toBeGreaterThan(1);
  });

  test('a replay to a paused endpoint is cancelled', async () => {
    await site.run('endpoints', 'pause', 'erp');
    const [replay] = await site.json('endpoints', 'replay', 'erp', '--from', 'beginning');
    expect(await site.json('endpoints', 'cancel-replay', 'erp', replay.id)).toMatchObject([
      { id: replay.id, state: 'cancelled' },
    ]);
  });
});

describe('statistics and lists', () => {
  test('print the delivery statistics of an endpoint', async () => {
    const [statistics] = await site.json('endpoints', 'statistics', 'erp', '--window', '1h');
    expect(statistics).toMatchObject({ window: '1h', stepSeconds: 300 });
    expect((await site.run('endpoints', 'statistics', 'erp')).out).toMatch(/^Attempts +\d+$/m);
  });

  test('print polls, daily statistics and open jobs of accounts and regions', async () => {
    const [poll] = await site.json('accounts', 'polls', 'acme', '--limit', '1');
    expect(poll).toMatchObject({ outcome: 'complete', problem: null });
    for (const args of [
      ['accounts', 'statistics', 'acme'],
      ['regions', 'statistics', 'us'],
    ]) {
      const [statistics] = await site.json(...args, '--from', '2026-03-01', '--to', '2026-03-02');
      expect(statistics.days.map(({ day }: { day: string }) => day)).toEqual(['2026-03-01', '2026-03-02']);
    }
    expect((await site.run('accounts', 'statistics', 'acme')).out).toMatch(/^DAY .*\n(.*\n){7}total /);
    expect(await site.json('accounts', 'open-jobs', 'acme')).toMatchObject([{ jobs: 1 }]);
    expect((await site.run('regions', 'open-jobs', 'us')).out).toMatch(/^Open jobs .*1\n[\s\S]*\nacme +1 /);
    expect(await site.json('regions', 'list')).toMatchObject([{ id: 'us', state: 'ok' }]);
    expect(await site.json('regions', 'show', 'us')).toMatchObject([{ id: 'us', state: 'ok' }]);
    expect((await site.run('jobs', 'deliveries', 'acme', String(site.job))).code).toBe(0);
  });

  test('show event types with an example, and suggest one for a misspelled type', async () => {
    expect((await site.run('event-types', 'list')).out).toMatch(/^job\.dispatched +\S/m);
    expect(await site.json('event-types', 'show', 'job.dispatched')).toMatchObject([
      { type: 'job.dispatched', example: { specversion: '1.0', type: 'job.dispatched' } },
    ]);
    expect(await site.run('event-types', 'show', 'job.dispached')).toMatchObject({
      code: 3,
      err: 'There is no such event type. Did you mean job.dispatched?\n',
    });
  });

  test('show the key in use, another key and a recipient', async () => {
    expect(await site.json('keys', 'show')).toMatchObject([{ role: 'admin', accounts: null }]);
    const [created] = await site.json('keys', 'create', '--role', 'read');
    const shown = await site.run('keys', 'show', created.key.id);
    expect(shown.out).toContain('Role        read');
    expect(shown.out).not.toContain(created.secret);
    await site.run('recipients', 'add', 'acme', '--id', 'ann', '--email', 'ann@example.com');
    expect(await site.json('recipients', 'show', 'acme', 'ann')).toMatchObject([
      { id: 'ann', email: 'ann@example.com' },
    ]);
  });
});

describe('get', () => {
  test('prints the document at a path', async () => {
    expect(await site.json('get', '/v1/accounts?limit=1')).toMatchObject([{ accounts: [{ id: 'acme' }] }]);
    expect((await site.runHere(['get', '/openapi.json'])).out).toMatch(/^\{\n {2}"openapi": "3\.1/);
  });

  test.each([
    [2, '@example.com/', /^PATH must begin with \//],
    [2, '/v1/events/stream', /^PATH must not be that of a stream/],
    [2, '/docs', /^PATH must be that of a JSON document\.$/],
    [3, '/v1/nothing', /^There is no such resource\.$/],
  ])('exits with %i for %s', async (code, path, message) => {
    const ended = await site.runHere(['get', path]);
    expect(ended.err.trim()).toMatch(message);
    expect(ended).toMatchObject({ code, out: '' });
  });
});

describe('profiles', () => {
  const config = join(folder, 'config');
  const file = join(config, 'jobwire', 'profiles.json');
  const without = { JOBWIRE_URL: undefined, JOBWIRE_API_KEY: undefined, XDG_CONFIG_HOME: config };
  const exec = (args: readonly string[], env: Record<string, string | undefined> = {}, input = '') =>
    site.exec(args, { env: { ...without, ...env }, input });

  test('are stored with mode 0600, selected by option, variable or as the current one, and never print the key', async () => {
    const outputs = [
      await exec(['profiles', 'add', 'here', '--url', site.url], {}, `${KEY}\n`),
      await exec(['profiles', 'add', 'away', '--url', 'http://127.0.0.1:9', '--key-env', 'AWAY'], {
        AWAY: 'jw_other',
      }),
      await exec(['profiles', 'list']),
      await exec(['accounts', 'list']),
      await exec(['profiles', 'use', 'away']),
      await exec(['accounts', 'list', '--profile', 'here']),
      await exec(['accounts', 'list'], { JOBWIRE_PROFILE: 'here' }),
      await exec(['--profile', 'here', 'accounts', 'list']),
    ];
    expect(outputs.map(({ code }) => code)).toEqual(outputs.map(() => 0));
    // The printed commands do not repeat options of profiles add.
    expect(outputs[0]?.err).toBe('It is the current profile. To test it, run: jobwire doctor\n');
    expect(outputs[1]?.err).toBe('To test it, run: jobwire doctor --profile away\n');
    for (const { out, err } of outputs) expect(out + err).not.toMatch(new RegExp(`${KEY}|jw_other`));
    expect(statSync(file).mode & 0o777).toBe(0o600);
    expect(toDocuments((await exec(['profiles', 'list', '--json'])).out)).toEqual([
      { name: 'here', url: site.url, current: false },
      { name: 'away', url: 'http://127.0.0.1:9', current: true },
    ]);
    expect((await exec(['accounts', 'list'])).code).toBe(4);
    expect(await exec(['profiles', 'remove', 'away'])).toMatchObject({
      code: 0,
      err: 'There is no current profile now. To choose one, run: jobwire profiles use NAME\n',
    });
    expect(await exec(['accounts', 'list'])).toMatchObject({
      code: 5,
      err: expect.stringMatching(
        /^The API key is missing\. .* select a profile with jobwire profiles use NAME, or /,
      ),
    });
    expect(readFileSync(file, 'utf8')).not.toContain('jw_other');
  });

  test('keep a symbolic link to their file', async () => {
    const kept = join(folder, 'kept-profiles.json');
    renameSync(file, kept);
    symlinkSync(kept, file);
    expect(await exec(['profiles', 'use', 'here'])).toMatchObject({ code: 0 });
    expect(lstatSync(file).isSymbolicLink()).toBe(true);
    expect(JSON.parse(readFileSync(kept, 'utf8')).current).toBe('here');
  });

  test('never send their key to an address that is given otherwise', async () => {
    expect((await exec(['profiles', 'use', 'here'])).code).toBe(0);
    const { err } = await exec(['accounts', 'list', '--url', site.url]);
    expect(err).toMatch(/^The API key is missing\. /);
    for (const [args, env] of [
      [['accounts', 'list', '--profile', 'here', '--url', site.url], {}],
      [['accounts', 'list'], { JOBWIRE_PROFILE: 'here', JOBWIRE_URL: site.url }],
    ] as const) {
      const ended = await exec(args, env);
      expect(ended.err).toMatch(/can’t be combined with /);
      expect(ended.code).toBe(2);
    }
  });

  test('suggest a similar name, and reject existing names, invalid files and open modes', async () => {
    const rejected = async (args: readonly string[], message: RegExp) => {
      const ended = await exec(args, {}, KEY);
      expect(ended.err).toMatch(message);
      expect(ended).toMatchObject({ code: 2, out: '' });
    };
    await rejected(
      ['accounts', 'list', '--profile', 'hera'],
      /^There is no profile "hera"\. Did you mean here\?/,
    );
    await rejected(['profiles', 'add', 'here', '--url', site.url], /^The profile here exists\. /);
    await rejected(['profiles', 'add', 'x y', '--url', site.url], /^NAME must be /);
    await rejected(['profiles', 'add', 'new', '--url', 'ftp://x'], /^--url must start with http/);
    const withPassword = `http://user:${KEY}@127.0.0.1:9`;
    await rejected(
      ['profiles', 'add', 'new', '--url', withPassword],
      /^--url must not contain a user name or password\./,
    );
    await rejected(
      ['accounts', 'list', '--url', withPassword],
      /^--url must not contain a user name or pass/,
    );
    chmodSync(file, 0o644);
    await rejected(['accounts', 'list'], /is accessible to other users\. Run chmod 600 /);
    chmodSync(file, 0o600);
    writeFileSync(file, `{"profiles": "${KEY}"`);
    await rejected(['accounts', 'list'], /^\S+profiles\.json is not a valid file of profiles\. /);
    expect((await exec(['accounts', 'list'])).err).not.toContain(KEY);
  });
});

describe('trigger', () => {
  const secret = newSigningSecret();
  const trigger = (type: string, to = receiver, input = secret) =>
    site.exec(['trigger', type, '--forward-to', to, '--json'], { input });
  beforeEach(() => {
    status = 204;
    received.length = 0;
  });

  test('sends the example of a type, signed, each time with another id and the current time', async () => {
    const startedAt = Date.now();
    const [first, second] = [await trigger('job.dispatched'), await trigger('job.dispatched')];
    expect([first, second]).toMatchObject([
      { code: 0, err: expect.stringContaining('not an event of your account') },
      { code: 0 },
    ]);
    const events = received.map(({ body, headers }) => new Webhook(secret).verify(body, headers) as JobEvent);
    const { id: _, time: __, source: ___, data, ...rest } = getExample('job.dispatched') as JobEvent;
    // Recognizable as an example, also by the receiver.
    const example = { ...rest, data: { ...data, account: 'example' } };
    for (const event of events) {
      expect(event).toMatchObject(example);
      expect(event.id).toMatch(/^example\./);
      expect(event.source).toMatch(/\/accounts\/example$/);
      expect(Date.parse(event.time)).toBeGreaterThanOrEqual(startedAt);
    }
    expect(new Set(events.map(({ id }) => id)).size).toBe(2);
    status = 500;
    expect(await trigger('upstream.outage')).toMatchObject({ code: 1 });
  });

  test.each([
    ['endpoint.event_dead', true],
    ['endpoint.events_lost', true],
    ['endpoint.disabled', false],
    ['jobwire.ping', false],
  ])('sends %s as an event of the region; it names an account: %s', async (type, namesAccount) => {
    const { err } = await trigger(type);
    expect(err.includes('Its account is')).toBe(namesAccount);
    const event = JSON.parse(received[0]?.body ?? '') as JobEvent;
    expect(event.id).toMatch(type === 'jobwire.ping' ? /^ping\.[0-9a-z]+$/ : /^_cell\.t[0-9a-z]+\.\d+$/);
    expect(event.source).toBe(getExample(type)?.source);
    expect(event.data.account).toBe(namesAccount ? 'example' : undefined);
  });

  test('rejects an unknown type with a suggestion, an invalid secret and an invalid URL', async () => {
    for (const [ended, message] of [
      [await trigger('job.dispached'), /^TYPE must be a known value\. Did you mean job\.dispatched\?$/],
      [await trigger('job.created', receiver, 'whsec_x'), /^The signing secret must be "whsec_" and /],
      [
        await trigger('job.created', '127.0.0.1:3111/hook'),
        /^--forward-to is not accepted\. It must begin with a scheme: https:\/\/ or http:\/\/\.$/,
      ],
    ] as const) {
      expect(ended.code).toBe(2);
      expect(JSON.parse(ended.err)).toMatchObject({ detail: expect.stringMatching(message), exitCode: 2 });
    }
    expect(received).toEqual([]);
  });
});

describe('init --endpoint', () => {
  const options = (...more: string[]) => {
    const { baseUrl, authUrl } = site.region;
    const account = ['--account', 'acme', '--region', 'us', '--client-id', 'acme-api', '--no-test'];
    const file = join(mkdtempSync(join(folder, 'init-')), 'jobwire.json');
    return ['init', ...account, '--base-url', baseUrl, '--auth-url', authUrl, '--config', file, ...more];
  };

  test('writes a valid configuration with the endpoint, its closed secret and the schema', async () => {
    const args = options('--endpoint', 'https://erp.example.com/jobs');
    const written = await site.runHere([...args, '--json'], { input: 'a-client-secret' });
    const { config, signingSecretFile } = JSON.parse(written.out);
    expect(statSync(signingSecretFile).mode & 0o777).toBe(0o600);
    const secret = readFileSync(signingSecretFile, 'utf8').trim();
    expect(written.out).not.toContain(secret);
    const text = readFileSync(config, 'utf8');
    expect(text).not.toContain(secret);
    const { endpoints } = parseConfig(parseConfigText(config, text), {}, dirname(config));
    expect(endpoints).toEqual([{ id: 'webhook', url: 'https://erp.example.com/jobs', secret }]);
    const schema = JSON.parse(readFileSync(resolve(dirname(config), JSON.parse(text).$schema), 'utf8'));
    expect(schema.properties).toHaveProperty('endpoints');
  });

  test('permits private networks if the option says so', async () => {
    const args = options('--endpoint', 'http://127.0.0.1:3000/hook', '--allow-private-networks');
    const written = await site.runHere([...args, '--json'], { input: 'a-client-secret' });
    const { config } = JSON.parse(written.out);
    const text = readFileSync(config, 'utf8');
    expect(parseConfig(parseConfigText(config, text), {}, dirname(config))).toMatchObject({
      webhooks: { allowPrivateNetworks: true },
      endpoints: [{ url: 'http://127.0.0.1:3000/hook' }],
    });
  });

  test('rejects a URL that webhooks cannot be sent to, and writes nothing', async () => {
    const args = options('--endpoint', 'http://localhost:3000');
    const ended = await site.runHere(args, { input: 'a-client-secret' });
    expect(ended.err).toMatch(
      /^--endpoint is not accepted\. The endpoint is on this machine .*--allow-private-networks\.$/m,
    );
    expect(ended.code).toBe(2);
    expect(readdirSync(dirname(args[args.indexOf('--config') + 1] ?? ''))).toEqual([]);
  });
});

test('every command above ran as a process once', () => {
  expect(site.notStarted()).toEqual([]);
});
