/**
 * The built CLI `jobwire` against a real Jobwire: requests, output and exit codes.
 * One file: its tests share the started Jobwire.
 */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { Webhook } from 'standardwebhooks';
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest';
import { newSigningSecret } from '../../shared/delivery/signing-secrets.ts';
import { binary, KEY, startSite, toDocuments } from '../support/cli-site.ts';
import { cleanEnv, fakeApi, hasScript, launch, stream } from '../support/command.ts';

const folder = mkdtempSync(join(tmpdir(), 'jobwire-cli-'));
const ends: (() => unknown)[] = [() => rmSync(folder, { recursive: true, force: true })];
let site: Awaited<ReturnType<typeof startSite>>;
/** A key of role read for `acme` only. */
let reader: string;

beforeAll(async () => {
  const groups = ['accounts', 'endpoints', 'alerts', 'events', 'jobs', 'keys'];
  site = await startSite((stop) => ends.push(stop), [...groups, 'attention show', 'health', 'listen']);
  const [created] = await site.json('keys', 'create', '--role', 'read', '--accounts', 'acme');
  reader = created.secret;
}, 60_000);
afterAll(async () => {
  for (const end of ends.reverse()) await end();
});

const lines = (text: string): string[] => text.split('\n').filter((one) => one !== '');

describe('exit codes', () => {
  const addAlert = ['alerts', 'add', 'x', '--condition', 'late_jobs', '--above', '5'];
  const rows: [number, readonly string[], RegExp, Record<string, string>?][] = [
    [0, ['accounts', 'show', 'acme'], /^$/],
    [
      2,
      ['accounts', 'shw', 'acme'],
      /^Unknown command "accounts shw"\. Did you mean show\? Available: add, /,
    ],
    [2, ['acounts'], /^Unknown command "acounts"\. Did you mean accounts\? See jobwire help\.$/],
    [
      2,
      ['status'],
      /^Unknown command "status"\. Did you mean health, or accounts list\? See jobwire help\.$/,
    ],
    [2, ['version'], /^Unknown command "version"\. Did you mean --version\? /],
    [2, ['webhooks', 'list'], /^Unknown command "webhooks"\. Did you mean endpoints\? /],
    [2, ['endpoints', 'delete', 'x'], /^Unknown command "endpoints delete"\. Did you mean remove\? /],
    [2, ['endpoints', 'create'], /^Unknown command "endpoints create"\. Did you mean add\? /],
    [2, ['keys', 'add'], /^Unknown command "keys add"\. Did you mean create\? /],
    [2, ['endpoints', 'test', 'x'], /^Unknown command "endpoints test"\. Did you mean ping\? /],
    [2, ['endpoints', 'disable', 'x'], /^Unknown command "endpoints disable"\. Did you mean pause\? /],
    [2, ['endpoints', 'logs', 'x'], /^Unknown command "endpoints logs"\. Did you mean deliveries\? /],
    [2, ['endpoints', 'rotate', 'x'], /^Unknown command "endpoints rotate"\. Did you mean rotate-secret\? /],
    [2, ['events', 'resend', 'x'], /^Unknown command "events resend"\. Did you mean endpoints resend\? /],
    [2, ['login'], /^Unknown command "login"\. Did you mean profiles add\? /],
    [2, ['ping', 'x'], /^Unknown command "ping"\. Did you mean endpoints ping\? /],
    [2, ['accounts'], /^accounts requires a subcommand: add, list, /],
    [2, [], /^A command is missing\. /],
    [2, ['accounts', 'show'], /^ID is missing\. Usage: jobwire accounts show ID \[options\]$/],
    [2, ['accounts', 'show', 'a', 'b'], /^Unexpected argument "b"\. /],
    [2, ['accounts', 'show', 'acme', '--jsn'], /^Unknown option --jsn\. Did you mean --json\? /],
    [2, ['accounts', 'show', 'acme', '--url'], /^--url requires a value: --url URL, /],
    [2, ['accounts', 'show', 'acme', '--json=1'], /^--json does not take a value\.$/],
    [2, ['accounts', 'show', 'acme', '--url', 'ftp://x'], /^--url must start with http/],
    [2, ['accounts', 'list', '--foo'], /^Unknown option --foo\. See jobwire help accounts list\.$/],
    [2, ['accounts', 'show', 'acme', '--key', KEY], /^Unknown option --key\./],
    [
      2,
      ['accounts', 'show', 'acme', '--key-file', '/nowhere'],
      /^--key-file: the file \/nowhere can’t be read/,
    ],
    [2, ['accounts', 'add', 'acme'], /^--client-id ID is missing\.$/],
    [2, ['accounts', 'delete', 'acme'], /^--yes is missing\. /],
    [2, ['keys', 'create', '--role', 'owner'], /^--role must be one of read, operate, admin\.$/],
    [2, ['jobs', 'list', 'acme', '--descending'], /^--descending requires --sort\.$/],
    [2, ['jobs', 'list', 'acme', '--sort', 'due'], /^--sort must be one of jobNumber, dateDue, dateOut\.$/],
    [
      3,
      ['jobs', 'list', 'acme', '--sort', 'dateDue'],
      /^--sort requires one of these filters for dateDue: status, undispatched=true, dueOn, dueFrom, dueBefore, late=true, risk\./,
    ],
    [2, ['jobs', 'list', 'acme', '--due', '2026-02-30'], /^--due must be a day \(YYYY-MM-DD\)\.$/],
    [2, ['jobs', 'list', 'acme', '--due', 'monday'], /^--due must be a day \(YYYY-MM-DD\)\.$/],
    [2, ['jobs', 'show', 'acme', 'x1'], /^NUMBER must be an integer from 1 to 999999999999\.$/],
    [2, ['endpoints', 'replay', 'erp'], /^--since WHEN or --from CURSOR is required\.$/],
    [2, ['endpoints', 'update', 'erp', '--header-env', 'X-A'], /^--header-env must be HEADER=NAME\.$/],
    [2, ['endpoints', 'update', 'erp', '--job-field', 'status'], /^--job-field must be NAME=VALUE\.$/],
    [
      2,
      ['endpoints', 'update', 'erp', '--job-field', 'status=A', '--job-field', 'status=B'],
      /^--job-field must not contain "status" twice\.$/,
    ],
    [2, ['endpoints', 'replay', 'erp', '--from', 'acme='], /^--from must be ACCOUNT=CURSOR\.$/],
    [
      2,
      ['endpoints', 'add', 'https://acme.example', '--start', 'tomorrow'],
      /^--start must be now, beginning, a duration such as 2h/,
    ],
    [2, ['endpoints', 'replay', 'erp', '--since', 'soon'], /^--since must be a duration such as 2h/],
    [2, ['endpoints', 'replay', 'erp', '--since', '2026-02-30'], /^--since must be a duration such as 2h/],
    [2, ['events', 'tail', '--since', '2026-02-31T00:00:00Z'], /^--since must be a duration such as 2h/],
    [2, ['keys', 'create', '--role', 'read', '--expires', '2027-02-30'], /^--expires must be a duration/],
    [2, ['toString'], /^Unknown command "toString"\. See jobwire help\.$/],
    [3, ['find', 'x'], /^TEXT must be 2 to 200 characters long\.$/],
    [2, ['endpoints', 'replay', 'erp', '--since', '2h', '--from', 'beginning'], /^--since and --from can’t/],
    [2, ['events', 'tail', '--once', '0'], /^--once must be an integer from 1 /],
    [2, ['listen'], /^--forward-to URL is missing\.$/],
    [
      2,
      ['listen', '--forward-to', 'localhost:3000'],
      /^--forward-to is not accepted\. It must begin with a scheme: /,
    ],
    [
      2,
      ['listen', '--forward-to', 'http://localhost:3000', '--secret-env', 'SHORT'],
      /^The signing secret must be "whsec_" and 24 to 64 random bytes in base64\.$/,
      { SHORT: 'whsec_c2hvcnQ=' },
    ],
    [2, ['start', '--port', '70000'], /^--port must be an integer from 0 to 65535\.$/],
    [2, ['start', '--json'], /"detail":"Unknown option --json\./],
    [2, ['recipients', 'change', 'acme', 'ann'], /^Nothing to change\. /],
    [2, ['recipients', 'add', 'acme', '--name', 'Ann'], /^--email or --mobile is missing\.$/],
    [
      3,
      [
        'alerts',
        'add',
        'x',
        '--condition',
        'late_jobs',
        '--above',
        '5',
        '--post',
        'slack',
        '--url-env',
        'HOOK',
      ],
      /^--url-env is not accepted\. It must begin with https:\/\//,
      { HOOK: 'ftp://hooks.example/x' },
    ],
    [
      3,
      ['alerts', 'add', 'x', '--condition', 'late_jobs', '--above', '5', '--email', 'ops@acme.example'],
      /^--email cannot be used: the kind email requires a mail server, and none is configured\.$/,
    ],
    ...['--quiet-days=sat', '--quiet-zone=UTC', '--quiet-action=drop', '--quiet-days=sat --quiet=none'].map(
      (options): (typeof rows)[number] => [
        2,
        ['alerts', 'change', 'late', ...options.split(' ')],
        /^--quiet-days, --quiet-zone and --quiet-action require --quiet HH:MM-HH:MM\.$/,
      ],
    ),
    [2, ['recipients', 'import', 'acme', '/nowhere.csv'], /^FILE: \/nowhere\.csv can’t be read/],
    [2, ['notifications', 'set', 'acme'], /^Nothing to set\. /],
    [2, ['notifications', 'set', 'acme', '--name', 'none'], /^--name can’t be removed\.$/],
    [2, ['notifications', 'set', 'acme', '--send', 'yes'], /^--send must be one of on, off\.$/],
    [2, ['notifications', 'set', 'acme', '--quiet', '25:00-08:00'], /^--quiet must be HH:MM-HH:MM, /],
    [2, ['notifications', 'set', 'acme', '--window', 'long'], /^--window must be an integer /],
    [2, ['notifications', 'preview', 'acme'], /^--kind KIND is missing\.$/],
    [
      2,
      ['notifications', 'preview', 'acme', '--kind', 'dispatched', '--template', '/nowhere'],
      /^--template: \/nowhere can’t/,
    ],
    [
      2,
      ['messages', 'list', 'acme', '--job', '7', '--state', 'sent'],
      /^Only one of --job, --recipient and --state /,
    ],
    [3, ['accounts', 'show', 'gone'], /^There is no such account\.$/],
    [
      3,
      ['accounts', 'show', 'gone', '--verbose'],
      /^There is no such account\.\nHTTP 404, not-found, request [\w-]+$/,
    ],
    ...['Infinity', '0x10', '1e3', '-1', ' 5', '0', '2000', 'abc'].flatMap((text): typeof rows => [
      [
        2,
        ['endpoints', 'update', 'x', `--rate=${text}`],
        /^--rate must be a number from 0\.1 to 1000, or none\.$/,
      ],
      [
        2,
        ['endpoints', 'update', 'x', `--concurrency=${text}`],
        /^--concurrency must be an integer from 1 to 400, or none\.$/,
      ],
    ]),
    [
      2,
      ['endpoints', 'add', 'https://x.example', '--concurrency', '1.5'],
      /^--concurrency must be an integer /,
    ],
    [
      2,
      ['accounts', 'update', 'acme', '--due-soon', '0'],
      /^--due-soon must be an integer from 1 to 1440, or off\.$/,
    ],
    [
      2,
      ['accounts', 'update', 'acme', '--stalled-after', 'x'],
      /^--stalled-after must be an integer from 1 to 250, or off\.$/,
    ],
    ...['A=x', 'A=0', 'A', '=1'].map((text): (typeof rows)[number] => [
      2,
      ['accounts', 'update', 'acme', '--stalled-status', text],
      /^--stalled-status must be NAME=DAYS with an integer from 1 to 250, or NAME=off\.$/,
    ]),
    [
      2,
      ['alerts', 'change', 'late', '--repeat', '4'],
      /^--repeat must be an integer from 5 to 10080, or none\.$/,
    ],
    [
      3,
      [...addAlert, '--email', 'ops@acme.example', '--quiet', '21:00-08:00', '--quiet-zone', 'Foo'],
      /^--quiet-zone must be the IANA name of a time zone, such as Europe\/London\.$/,
    ],
    [3, [...addAlert, '--email', 'ops@acme.example', '--quiet', '21:00-28:00'], /^--quiet /],
    [
      3,
      [...addAlert, '--email', Array.from({ length: 11 }, (_, at) => `a${at}@acme.example`).join(',')],
      /^--email must name at most 10 addresses\.$/,
    ],
    [
      3,
      ['endpoints', 'add', 'https://x.example', '--job-field', 'mustDate=maybe'],
      /^--job-field mustDate must be true or false\.$/,
    ],
    [
      3,
      ['endpoints', 'add', 'https://x.example', '--job-field', 'jobNumber=x'],
      /^--job-field jobNumber must be an integer\.$/,
    ],
    [
      2,
      ['accounts', 'add', 'Bad_ID', '--client-id', 'x', '--client-secret-env', 'SECRET'],
      /^ID must be 1–63 lower-case letters/,
      { SECRET: 'x' },
    ],
    [
      3,
      ['templates', 'send-test', 'acme', 'a@x.example', '--kind', 'dispatched'],
      /^ADDRESS cannot be used: /,
    ],
    [
      4,
      ['accounts', 'show', 'acme', '--url', 'http://127.0.0.1:1'],
      /^http:\/\/127\.0\.0\.1:1 can’t be reached: Node and browsers do not connect to this port\. Use another one\./,
    ],
    [
      5,
      ['accounts', 'show', 'acme'],
      /^The API key is invalid\. Check /,
      { JOBWIRE_API_KEY: 'jw_k1_unknown' },
    ],
    [5, ['accounts', 'pause', 'acme'], /role/, { JOBWIRE_API_KEY: 'reader' }],
    [5, ['recipients', 'export', 'acme'], /^The API key has the role read/, { JOBWIRE_API_KEY: 'reader' }],
    [
      5,
      ['accounts', 'show', 'acme'],
      /^The API key is missing\. Set JOBWIRE_API_KEY.* is in the file api-key of its dataDir, by default \.jobwire\/api-key\./,
      { JOBWIRE_API_KEY: '' },
    ],
  ];
  test.each(rows)('%i: %j', async (code, args, message, env = {}) => {
    const key = env.JOBWIRE_API_KEY === 'reader' ? { JOBWIRE_API_KEY: reader } : env;
    // The first of each exit code is a process.
    const isFirst = rows.find(([one]) => one === code)?.[1] === args;
    const ended = await (isFirst ? site.start(args, { env: key }).ended : site.runHere(args, { env: key }));
    expect(ended.err.trim()).toMatch(message);
    expect(ended.code).toBe(code);
    expect(ended.err + ended.out).not.toContain(KEY);
    if (code > 1) expect(ended.out).toBe('');
  });

  test('warns once per command of an API key that is sent without encryption to another machine', async () => {
    const url = site.url.replace('127.0.0.1', '0.0.0.0');
    const ended = await site.runHere(['accounts', 'list', '--url', url]);
    const warning = `Warning: the API key is sent to ${url} without encryption. Use an https:// URL.`;
    expect(ended.err.split('\n').filter((line) => line === warning)).toHaveLength(1);
    expect((await site.exec(['accounts', 'list'])).err).toBe('');
    expect((await site.runHere(['health', '--url', url])).err, 'sends no key').not.toContain('Warning');
  });

  test('a URL with a final slash is accepted by every command, also by health', async () => {
    expect(await site.exec(['health', '--url', `${site.url}/`])).toMatchObject({ code: 0, err: '' });
  });

  test('a closed stdout ends a command quietly, with the exit code of a program that SIGPIPE ended', async () => {
    const running = site.start(['accounts', 'list', '--json']);
    running.child.stdout?.destroy();
    expect(await running.ended).toMatchObject({ code: 141, err: '' });
  });

  test('a hint is a complete command: it has the options for the URL and the API key', async () => {
    const file = join(folder, 'admin key');
    writeFileSync(file, KEY);
    const options = ['--url', site.url, '--key-file', file];
    const ended = await site.exec([
      'endpoints',
      'add',
      'https://erp.example.com/hint',
      '--id',
      'hint',
      ...options,
    ]);
    const [, hint = ''] = /^To test it, run: (.*)$/m.exec(ended.out) ?? [];
    expect(hint).toBe(`jobwire endpoints ping hint --url ${site.url} --key-file '${file}'`);
    expect((await site.run('endpoints', 'remove', 'hint')).code).toBe(0);
  });

  test('the API key is read from a file', async () => {
    const file = join(folder, 'key');
    writeFileSync(file, `${KEY}\n`);
    const show = ['accounts', 'show', 'acme', '--key-file', file];
    const ended = await site.exec(show, { env: { JOBWIRE_API_KEY: '' } });
    expect(ended).toMatchObject({ code: 0, err: '' });
  });
});

describe('errors with --json', () => {
  const requestId = expect.any(String);
  test.each<[readonly string[], number, object, Record<string, string>?]>([
    [
      ['accounts', 'show', 'gone'],
      3,
      { type: 'urn:jobwire:problem:not-found', status: 404, detail: 'There is no such account.', requestId },
    ],
    [
      ['accounts', 'show', 'acme'],
      5,
      {
        type: 'urn:jobwire:problem:unauthorized',
        detail: 'The API key is invalid. Check JOBWIRE_API_KEY or --key-file.',
      },
      { JOBWIRE_API_KEY: 'jw_k1_unknown' },
    ],
    [
      ['events', 'tail', '--account', 'acme', '--after', 'e1.999999'],
      3,
      {
        type: 'urn:jobwire:problem:cursor-gone',
        status: 410,
        earliest: expect.any(String),
        head: expect.any(String),
      },
    ],
    [
      ['endpoints', 'add', 'https://x.example', '--job-field', 'mustDate=maybe'],
      3,
      {
        type: 'urn:jobwire:problem:invalid-body',
        field: expect.stringMatching(/^jobFields/),
        detail: '--job-field mustDate must be true or false.',
      },
    ],
    [['acounts'], 2, { type: 'urn:jobwire:cli:usage', title: 'Invalid command line' }],
    [
      ['accounts', 'list'],
      5,
      { type: 'urn:jobwire:cli:key', title: 'No usable API key' },
      { JOBWIRE_API_KEY: '' },
    ],
    [
      ['accounts', 'list', '--url', 'http://127.0.0.1:1'],
      4,
      { type: 'urn:jobwire:cli:unreachable', title: 'API unreachable' },
    ],
  ])('are one object on stderr: %j', async (args, exitCode, error, env = {}) => {
    const ended = await site.runHere([...args, '--json'], { env });
    expect([ended.code, ended.out, toDocuments(ended.err)]).toEqual([
      exitCode,
      '',
      [expect.objectContaining({ ...error, exitCode })],
    ]);
    expect(ended.err).not.toContain(KEY);
  });

  test('contain no terminal control characters', async () => {
    const { err } = await site.run('\u001b[31macounts', '--json');
    // biome-ignore lint/suspicious/noControlCharactersInRegex: the test searches for them
    expect(err.trimEnd()).not.toMatch(/[\u0000-\u001f\u007f-\u009f]/);
  });
});

test('a key for an account that does not exist is created, with a note', async () => {
  const create = (accounts: string) => site.run('keys', 'create', '--role', 'read', '--accounts', accounts);
  const stored = 'Store the key now. It is not shown again.\n';
  expect(await create('acme')).toMatchObject({ code: 0, err: stored });
  expect(await create('acme,future')).toMatchObject({
    code: 0,
    err: `${stored}There is no account future. The key gives access to the account as soon as the account is created.\n`,
  });
});

describe('lists', () => {
  test('end at the limit, with a note', async () => {
    await site.run('keys', 'create', '--role', 'read', '--name', 'second');
    const all = await site.json('keys', 'list');
    expect(all.length).toBeGreaterThan(1);
    const one = await site.run('keys', 'list', '--limit', '1');
    expect(one.err).toBe('There are more entries. Use --limit to show more.\n');
    expect(lines(one.out)).toHaveLength(2);
  });

  test('contain no control characters of the data', async () => {
    const name = 'red\u001b[31m\u0007\u009b2J \u202Eevil';
    await site.acme.createJob({ status: 'Scheduled', description: name });
    await expect
      .poll(async () => (await site.json('jobs', 'list', 'acme')).length, { timeout: 20_000 })
      .toBe(2);
    for (const args of [[], ['--json']]) {
      const { out } = await site.run('jobs', 'list', 'acme', ...args);
      // biome-ignore lint/suspicious/noControlCharactersInRegex: the test searches for them
      expect(out.replaceAll('\n', '')).not.toMatch(/[\u0000-\u001f\u007f-\u009f\u202e]/);
    }
    const jobs = await site.json('jobs', 'list', 'acme');
    expect(jobs.map(({ description }) => description)).toContain(name);
  });

  test('with --csv are a file with the names of the fields, with --bom one for Excel', async () => {
    const jobs = await site.json('jobs', 'list', 'acme');
    const { out } = await site.run('jobs', 'list', 'acme', '--csv');
    const [header = '', ...rows] = lines(out.replaceAll('\r', ''));
    expect(header.split(',').slice(0, 2)).toEqual(Object.keys(jobs[0]).slice(0, 2));
    expect(rows).toHaveLength(jobs.length);

    const first = await site.run('accounts', 'list', '--csv', '--bom', '--limit', '1');
    expect(first.out).toMatch(/^\ufeffid,region,/);

    const cut = await site.run('events', 'list', '--account', 'acme', '--csv', '--limit', '1');
    expect(lines(cut.out)).toHaveLength(2);
    expect(cut.err).toBe('There are more entries. Use --limit to show more.\n');

    const both = await site.run('keys', 'list', '--csv', '--json');
    expect([both.code, both.err]).toEqual([
      2,
      expect.stringContaining('--csv and --json can’t be combined.'),
    ]);
    const alone = await site.run('keys', 'list', '--bom');
    expect([alone.code, alone.err]).toEqual([2, '--bom requires --csv.\n']);
  });

  test.skipIf(!hasScript())('fit the terminal, with color only there and only if wanted', async () => {
    const print = async (env: object) => {
      // With CI set, Node assumes a terminal without colors.
      const command = `stty cols 70; env -u CI ${process.execPath} ${binary} accounts list`;
      const running = launch(['script', '-qec', command, '/dev/null'], {
        env: { ...site.env, TERM: 'xterm', ...env },
      });
      return (await running.ended).out.replaceAll('\r', '');
    };
    const plain = await print({ NO_COLOR: '1' });
    expect(plain).not.toContain('\u001b[3');
    expect(Math.max(...lines(plain).map((one) => one.length))).toBeLessThanOrEqual(70);
    expect(await print({})).toContain('\u001b[32mtracking');
  });
});

describe('accounts', () => {
  const add = (id: string, ...more: string[]) => [
    ...['accounts', 'add', id, '--region', 'us', '--client-id', site.bakery.clientId],
    ...['--poll-interval', '60', ...more],
  ];

  test('add: failing credentials are not added, except without test', async () => {
    const rejected = await site.start(add('first'), { input: 'not-this-one' }).ended;
    expect(rejected).toMatchObject({ code: 1, out: expect.stringMatching(/^fail {2}Token/) });
    expect(rejected.err).toBe('The account was not added. To skip the test, use --no-test.\n');
    const asJson = await site.runHere([...add('first'), '--json'], { input: 'not-this-one' });
    expect(toDocuments(asJson.out)).toMatchObject([{ ok: false }]);
    expect(toDocuments(asJson.err)).toEqual([
      { note: expect.stringMatching(/^The account was not added\. /) },
    ]);
    expect(await site.run('accounts', 'show', 'first')).toMatchObject({ code: 3 });
    const untested = await site.exec(add('first', '--no-test', '--paused'), { input: 'not-this-one' });
    expect(untested).toMatchObject({ code: 0, out: 'first was added in us, paused.\n' });
    expect(await site.runHere(['accounts', 'test', 'first'])).toMatchObject({ code: 1 });
    const rotate = ['accounts', 'rotate', 'first', '--client-id', site.bakery.clientId];
    expect(await site.exec(rotate, { input: site.bakery.clientSecret })).toMatchObject({ code: 0 });
    expect(await site.run('accounts', 'test', 'first')).toMatchObject({ code: 0 });
    expect(await site.run('accounts', 'delete', 'first', '--yes')).toMatchObject({ code: 0 });
    expect(await site.exec(add('first'))).toMatchObject({
      code: 2,
      err: 'The client secret is missing. Provide it on stdin, or with --client-secret-file or --client-secret-env.\n',
    });
  });

  test('add: an id in use is rejected before the client secret is read', async () => {
    expect(await site.exec(add('acme'))).toMatchObject({
      code: 2,
      err: 'ID must be new: an account "acme" already exists.\n',
    });
  });

  test.each(['stdin', 'file', 'environment'])(
    'add: tests, then adds, with the secret from %s, which is never printed',
    async (from) => {
      const { clientSecret } = site.bakery;
      const file = join(folder, 'secret');
      writeFileSync(file, `${clientSecret}\n`);
      const flags = {
        stdin: [],
        file: ['--client-secret-file', file],
        environment: ['--client-secret-env', 'BAKERY_SECRET'],
      }[from];
      const options = {
        input: from === 'stdin' ? `${clientSecret}\n` : '',
        env: { BAKERY_SECRET: clientSecret },
      };
      const args = add(`from-${from}`, ...(flags ?? []));
      const ended = await (from === 'stdin' ? site.start(args, options).ended : site.exec(args, options));
      expect(ended).toMatchObject({ code: 0, err: '' });
      expect(ended.out).toMatch(/^ok .*\nok .*\nok .*\nfrom-\w+ was added in us\. /);
      expect(ended.out).not.toContain(clientSecret);
      expect(await site.json('accounts', 'show', `from-${from}`)).toMatchObject([
        { pollIntervalSeconds: 60 },
      ]);
      expect((await site.run('accounts', 'delete', `from-${from}`, '--yes')).out).toMatch(
        /^from-\w+ (?:was deleted\.|no longer exists, but )/,
      );
      await expect
        .poll(async () => (await site.run('accounts', 'delete', `from-${from}`, '--yes')).code, {
          timeout: 20_000,
        })
        .toBe(3);
    },
  );

  test('add: warns if another account has the same credentials', async () => {
    const input = site.bakery.clientSecret;
    await site.exec(add('one', '--paused'), { input });
    expect(await site.exec(add('two', '--paused', '--no-test'), { input })).toMatchObject({
      code: 0,
      out: 'two was added in us, paused.\n',
      err: 'Warning: The accounts "one" and "two" in region us have the same credentials, so each of them reports the same jobs.\n',
    });
    for (const id of ['one', 'two']) await site.run('accounts', 'delete', id, '--yes');
  });

  test('update changes the given event settings, and show prints them', async () => {
    await site.exec(add('third', '--paused'), { input: site.bakery.clientSecret });
    const update = (...more: string[]) => site.run('accounts', 'update', 'third', ...more);
    expect(await site.runHere(['accounts', 'update', 'third'])).toMatchObject({
      code: 2,
      err: expect.stringMatching(/^Nothing to change\./),
    });
    const statuses = ['--attention-status', 'Awaiting artwork', '--stalled-status', 'On hold=off'];
    expect((await update('--due-soon', '48', '--stalled-after', '5', ...statuses)).out).toBe(
      'third was updated.\n',
    );
    expect(await update('--stalled-status', 'Printing=3', '--payments', 'on')).toMatchObject({ code: 0 });
    expect((await site.run('accounts', 'show', 'third')).out).toMatch(
      /48 h before the due time\n.* 5 working days\n.* Printing: 3 working days\n.* Awaiting artwork\n.* on\n/,
    );
    expect(await update('--due-soon', 'off', '--attention-status', 'none')).toMatchObject({ code: 0 });
    expect(await site.json('accounts', 'show', 'third')).toMatchObject([
      { events: { dueSoonHours: null, attentionStatuses: [], stalledByStatus: { Printing: 3 } } },
    ]);
    expect(await update('--due-soon', '0')).toMatchObject({ code: 2 });
    await site.run('accounts', 'delete', 'third', '--yes');
  });

  test('pause, resume and confirm print the result', async () => {
    await site.exec(add('second'), { input: site.bakery.clientSecret });
    expect((await site.run('accounts', 'pause', 'second')).out).toBe('second is paused.\n');
    expect((await site.run('accounts', 'resume', 'second')).out).toBe('second is resumed.\n');
    expect((await site.run('accounts', 'resume', 'second')).out).toBe(
      'second was not paused, so nothing changed.\n',
    );
    expect((await site.run('accounts', 'batch', 'pause', '--ids', 'second')).out).toMatch(
      /^second +us +done$/m,
    );
    expect(await site.run('accounts', 'confirm', 'second', '--upstream-id', '4711')).toMatchObject({
      code: 3,
    });
    await site.run('accounts', 'delete', 'second', '--yes');
  });
});

describe.skipIf(!hasScript())('a prompt on a terminal', () => {
  const prompt = /The client secret: /;
  /** `accounts add` on its own pseudo-terminal; `type` is sent to it after the prompt. */
  async function atPrompt(type: string, more: readonly string[] = []) {
    const args = ['accounts', 'add', 'typed', '--client-id', site.bakery.clientId, ...more];
    const command = `${process.execPath} ${binary} ${args.join(' ')}`;
    const child = spawn('script', ['-qec', command, '/dev/null'], {
      env: { ...cleanEnv, ...site.env, TERM: 'xterm' },
    });
    let printed = '';
    child.stdout.setEncoding('utf8').on('data', (text: string) => {
      const before = prompt.test(printed);
      printed += text;
      if (!before && prompt.test(printed)) child.stdin.write(type);
    });
    const [code] = await once(child, 'close');
    return { code: code as number, printed, added: (await site.run('accounts', 'show', 'typed')).code === 0 };
  }

  test.each([[[]], [['--json']]])(
    'Ctrl-C exits with 130, without an error and without a request: %j',
    async (more) => {
      const { code, printed, added } = await atPrompt('\u0003', more);
      expect([code, added]).toEqual([130, false]);
      expect(printed.split(prompt)[1]?.replaceAll(/[\r\n]/g, '')).toBe('');
    },
  );

  test('Ctrl-C within a secret exits with 130, and prints none of it', async () => {
    const { code, printed, added } = await atPrompt('half-a-s3cret\u0003');
    expect([code, added]).toEqual([130, false]);
    expect(printed).not.toContain('s3cret');
  });

  test('the typed secret is used, and not printed', async () => {
    const { code, printed, added } = await atPrompt(`${site.bakery.clientSecret}\r`);
    expect([code, added]).toEqual([0, true]);
    expect(printed).not.toContain(site.bakery.clientSecret);
    await site.run('accounts', 'delete', 'typed', '--yes');
  });
});

describe('endpoints', () => {
  let received: { readonly tenant: unknown }[];
  let status: number;
  let url: string;
  beforeAll(async () => {
    [received, status] = [[], 204];
    const server = createServer((request, response) => {
      received.push({ tenant: request.headers['x-tenant'] });
      request.resume();
      response.writeHead(status).end();
    }).listen(0, '127.0.0.1');
    await once(server, 'listening');
    ends.push(() => server.close());
    url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/hook`;
  });

  test('add prints the secret once with a warning; the options are those of the endpoint', async () => {
    const options = ['--id', 'erp', '--accounts', 'acme', '--types', 'job.*,order_group.*', '--start', 'now'];
    const more = [
      '--rate',
      '2.5',
      '--header-env',
      'x-tenant=TENANT',
      '--region',
      'us',
      '--description',
      'ERP',
    ];
    const args = ['endpoints', 'add', url, ...options, ...more];
    const ended = await site.exec(args, { env: { TENANT: 'seven' } });
    expect(ended).toMatchObject({ code: 0, err: 'Store this signing secret now. It is not shown again.\n' });
    expect(ended.out.match(/whsec_/g)).toHaveLength(1);
    expect(await site.json('endpoints', 'list')).toMatchObject([
      {
        ...{ id: 'erp', url, accounts: ['acme'], types: ['job.*', 'order_group.*'], ratePerSecond: 2.5 },
        ...{ headers: ['x-tenant'], description: 'ERP', health: { state: 'active' } },
      },
    ]);
    expect((await site.run('endpoints', 'list')).out).toMatch(
      /^erp +us +active +0 +http:\S+ +acme +job\.\*/m,
    );
  });

  test('after a successful ping of a failing endpoint, the command that resumes delivery is printed', async () => {
    const api = await fakeApi({
      'POST /v1/endpoints/erp/ping': { json: { outcome: 'delivered', status: 204, latencyMs: 3 } },
      'GET /v1/endpoints/erp': { json: { id: 'erp', state: 'failing' } },
    });
    onTestFinished(() => api.stop());
    expect(await site.run('endpoints', 'ping', 'erp', '--region', 'us', '--url', api.url)).toMatchObject({
      code: 0,
      err: `The endpoint is failing. To resume delivery at once, run: jobwire endpoints enable erp --region us --url ${api.url}\n`,
    });
  });

  test('health prints no numbers of attempts if none is recorded, as of a topic', async () => {
    const json = {
      ...{ state: 'active', lastDeliveredAt: new Date(0).toISOString(), lost: 0, dead: 0 },
      ...{
        parked: { count: 0, oldestAt: null },
        backlog: { events: 1, oldestAt: null, accounts: [], complete: true },
      },
      statistics: { attempts: 0, delivered: 0, successRate: null, p50Ms: null, p95Ms: null, lastError: null },
    };
    const api = await fakeApi({ 'GET /v1/endpoints/sns/health': { json } });
    onTestFinished(() => api.stop());
    const { out } = await site.run('endpoints', 'health', 'sns', '--url', api.url);
    expect(out).toMatch(/^Backlog +1 event$/m);
    expect(out).not.toContain('attempts');
  });

  test('ping of a queue, which responds without an HTTP status, does not report a missing response', async () => {
    const api = await fakeApi({
      'POST /v1/endpoints/erp/ping': { json: { outcome: 'delivered', status: null, latencyMs: 3 } },
      'GET /v1/endpoints/erp': { json: { id: 'erp', state: 'active' } },
      'POST /v1/endpoints/crm/ping': {
        json: { outcome: 'retry', status: null, latencyMs: 3, message: 'The queue does not exist.' },
      },
    });
    onTestFinished(() => api.stop());
    const ping = (id: string) => site.run('endpoints', 'ping', id, '--url', api.url);
    expect(await ping('erp')).toMatchObject({ code: 0, out: 'Delivered after 3 ms.\n' });
    expect(await ping('crm')).toMatchObject({
      code: 1,
      out: 'Failed after 3 ms. The queue does not exist.\n',
    });
  });

  test.each([
    ['arn:aws:sqs:us-east-1:111122223333:jobs.fifo', 'sqs'],
    ['https://sqs.us-east-1.amazonaws.com/111122223333/jobs', 'sqs'],
    ['https://sqs.cn-north-1.amazonaws.com.cn/111122223333/jobs', 'sqs'],
    ['https://erp.example.com/sqs.amazonaws.com/', undefined],
  ])('add: the default kind of %s is %s', async (target, kind) => {
    const api = await fakeApi({
      'POST /v1/endpoints': {
        json: { endpoint: { id: 'erp', region: 'us', url: target }, secret: null, truncatedAccounts: [] },
      },
    });
    onTestFinished(() => api.stop());
    expect(await site.run('endpoints', 'add', target, '--url', api.url)).toMatchObject({ code: 0 });
    expect(api.asked.map(({ body }) => (body as { kind?: string }).kind)).toEqual([kind]);
  });

  test('attention show prints the actions as commands, with the options of this command line', async () => {
    const actions = [
      { operation: 'pingEndpoint', method: 'POST', path: '/v1/endpoints/erp/ping?region=us', body: null },
      { operation: 'newOperation', method: 'POST', path: '/v1/new', body: null },
    ];
    const item = {
      ...{ id: 'x', kind: 'endpoint_failing', subject: { name: 'erp' }, cause: { summary: 'Failing.' } },
      ...{ impact: { jobs: null }, rank: { score: 1, components: [] }, state: 'open', actions },
    };
    const api = await fakeApi({ 'GET /v1/attention/x': { json: item } });
    onTestFinished(() => api.stop());
    const { out } = await site.run('attention', 'show', 'x', '--url', api.url);
    expect(out.match(/^Action .*$/gm)).toEqual([
      expect.stringMatching(`^Action +jobwire endpoints ping erp --region us --url ${api.url}$`),
      expect.stringMatching(/^Action +newOperation: POST \/v1\/new$/),
    ]);
  });

  test('deliveries --failed prints each problem once, with the beginning of the response body', async () => {
    const attempt = (event: string, reason: string, excerpt: string | null) => ({
      ...{ endpoint: 'erp', event, type: 'job.created', account: 'acme', sequence: 1, jobNumber: 7 },
      ...{ at: '2026-03-02T08:00:00.000Z', latencyMs: 3, outcome: 'rejected', status: 422, headers: {} },
      ...{ cause: 'live', replay: null, reason, excerpt },
    });
    const reason = 'The endpoint responded with status 422.';
    const deliveries = [
      attempt('a', reason, '{"error":\n"unknown SKU"}'),
      attempt('b', reason, '{"error":\n"unknown SKU"}'),
      attempt('c', 'The connection was refused.', null),
    ];
    const api = await fakeApi({ 'GET /v1/endpoints/erp/deliveries': { json: { deliveries, next: null } } });
    onTestFinished(() => api.stop());
    const run = (...more: string[]) => site.run('endpoints', 'deliveries', 'erp', ...more, '--url', api.url);
    const [table] = (await run()).out.split('\n\n');
    const failed = await run('--failed');
    expect([failed.code, failed.err]).toEqual([0, '']);
    expect(failed.out).toBe(
      `${table?.trimEnd()}\n\n2 attempts: ${reason}\nResponse: {"error": "unknown SKU"}\n\n1 attempt: The connection was refused.\n`,
    );
    expect((await run('--failed', '--json')).out.trim().split('\n')).toHaveLength(3);
  });

  test('ping exits with 0 if it was accepted, with 1 if it was not', async () => {
    expect(await site.run('endpoints', 'ping', 'erp')).toMatchObject({
      code: 0,
      out: expect.stringMatching(/^Delivered: HTTP 204 after \d+ ms\.\n$/),
    });
    expect(received.at(-1)).toEqual({ tenant: 'seven' });
    status = 500;
    expect(await site.run('endpoints', 'ping', 'erp')).toMatchObject({
      code: 1,
      out: expect.stringMatching(/^Failed: HTTP 500 after \d+ ms\. \S/),
    });
    for (const code of [401, 403]) {
      status = code;
      expect((await site.run('endpoints', 'ping', 'erp')).out).toMatch(
        /The endpoint responded with status 40[13]\. Probably .* another signing secret than that of the endpoint\./,
      );
    }
    status = 204;
    expect(
      (await site.json('endpoints', 'deliveries', 'erp', '--failed')).map(({ status }) => status),
    ).toEqual([403, 401, 500]);
    const narrowed = ['--since', '1h', '--outcome', 'delivered', '--types', 'job.*', '--until', '2020-01-01'];
    expect(await site.run('endpoints', 'deliveries', 'erp', ...narrowed)).toMatchObject({
      code: 3,
      err: '--since must be before to.\n',
    });
    const today = await site.run('endpoints', 'deliveries', 'erp', ...narrowed.slice(0, 6));
    expect(today).toMatchObject({ code: 0 });
    expect(await site.run('endpoints', 'deliveries', 'erp', '--failed', '--outcome', 'retry')).toMatchObject({
      code: 2,
    });
    const window = await site.run('endpoints', 'statistics', 'erp', '--window', '7d');
    expect([window.code, window.err]).toEqual([0, '']);
    expect(window.out).toMatch(/^Attempts +\d+$/m);
    const matching = await site.run('endpoints', 'redeliver', 'erp', '--statuses', '422', '--dry-run');
    expect([matching.code, matching.err]).toEqual([0, '']);
    expect(matching.out).toMatch(/\S/);
    expect((await site.run('endpoints', 'health', 'erp')).out).toMatch(/^State +active$/m);
    expect((await site.run('endpoints', 'parked', 'erp')).err).toBe('No events are parked.\n');
  });

  test('pause, resume and enable print the result; a watched replay resumes then', async () => {
    expect(await site.run('endpoints', 'pause', 'erp')).toMatchObject({ out: 'erp is paused.\n', err: '' });
    for (const command of ['enable', 'ping', 'health']) {
      expect((await site.run('endpoints', command, 'erp')).err, command).toBe(
        'The endpoint is paused. To resume delivery at once, run: jobwire endpoints resume erp\n',
      );
    }
    const running = site.start(['endpoints', 'replay', 'erp', '--from', 'beginning', '--watch']);
    await running.printed(/The endpoint is paused\. The replay resumes when delivery succeeds again\./);
    await new Promise((done) => setTimeout(done, 500));
    running.child.kill('SIGINT');
    const ended = await running.ended;
    const [, replay = ''] = /jobwire endpoints replays erp (\S+) --watch/.exec(ended.err) ?? [];
    expect(ended.code).toBe(130);
    expect(ended.err).toContain('The replay continues. To see its progress, run: ');
    expect((await site.run('endpoints', 'resume', 'erp')).out).toBe('erp is resumed.\n');
    expect(await site.run('endpoints', 'resume', 'erp')).toMatchObject({
      ...{ code: 0, out: 'erp was not paused, so nothing changed.\n' },
    });
    expect((await site.run('endpoints', 'enable', 'erp')).code).toBe(0);
    const watched = await site.run('endpoints', 'replays', 'erp', replay, '--watch');
    expect(watched).toMatchObject({
      code: 0,
      out: expect.stringMatching(/^Done +(\d+) of \1 events \(100 %\)$/m),
    });
    expect(await site.json('endpoints', 'replays', 'erp')).toMatchObject([{ id: replay, state: 'done' }]);
  });

  test('replay takes a time, the beginning or cursors, and filters; errors name the option', async () => {
    const replay = (...args: string[]) => site.run('endpoints', 'replay', 'erp', ...args);
    expect(await replay('--since', '2h', '--accounts', 'acme', '--types', 'job.*')).toMatchObject({
      code: 0,
    });
    const region = await replay('--region', 'us', '--from', 'beginning', '--until', new Date().toISOString());
    expect(region.out).toMatch(/: jobwire endpoints replays erp \S+ --region us --watch$/m);
    expect((await replay('--from', 'acme=nowhere')).err).toMatch(/^--from/);
    expect((await replay('--since', '2h', '--types', 'x')).err).toMatch(/^--types/);
  });

  test('remove deletes it', async () => {
    expect(await site.run('endpoints', 'remove', 'erp', '--region', 'us')).toMatchObject({
      code: 0,
      err: '',
    });
    expect(await site.run('endpoints', 'health', 'erp')).toMatchObject({ code: 3 });
  });
});

describe('events', () => {
  const tail = ['events', 'tail', '--account', 'acme', '--json'];
  let head: string;
  beforeAll(async () => {
    const [{ status }] = await site.json('accounts', 'show', 'acme');
    head = status.head;
    site.acme.setStatus(site.job, 'In production');
    await site.run(...tail, '--after', head, '--once', '1');
  });

  test('tail: events after a cursor, exactly as logged, of a type', async () => {
    const ended = await site.run(...tail, '--after', head, '--types', 'job.status_changed', '--once', '1');
    expect(ended).toMatchObject({ code: 0, err: '' });
    const [event] = toDocuments(ended.out);
    expect(event).toMatchObject({ type: 'job.status_changed', subject: `jobs/${site.job}` });
    expect(await site.json('events', 'show', event.id)).toEqual([event]);
    const shown = await site.run('events', 'show', event.id, '--deliveries');
    expect(shown.out).toMatch(/^Type +job\.status_changed$/m);
  });

  test('tail: past events of all accounts and of a region, then live ones', async () => {
    const [past] = toDocuments(
      (await site.run('events', 'tail', '--since', '1h', '--once', '1', '--json')).out,
    );
    expect(past).toMatchObject({ type: 'account.baselined' });
    const running = site.start([
      'events',
      'tail',
      '--since',
      '1h',
      '--types',
      'job.status_changed',
      '--once',
      '2',
    ]);
    await running.printed(/In production/);
    site.acme.setStatus(site.job, 'Quality check');
    expect(lines((await running.ended).out)).toEqual([
      expect.stringMatching(/ us\/acme +\d+ +job\.status_changed +Scheduled → In production$/),
      expect.stringMatching(/ us\/acme +\d+ +job\.status_changed +In production → Quality check$/),
    ]);
    const [newest, older] = await site.json('events', 'list', '--account', 'acme', '--limit', '2');
    expect(Number(older.sequence)).toBe(Number(newest.sequence) - 1);
    expect((await site.json('events', 'list', '--limit', '1'))[0].id).toBe(newest.id);
    expect(await site.run('events', 'list', '--region', 'us')).toMatchObject({
      ...{ code: 0, out: '', err: 'There are no matching events.\n' },
    });
    const both = await site.run('events', 'tail', '--account', 'acme', '--region', 'us');
    expect(both).toMatchObject({ code: 2, err: '--account and --region can’t be combined.\n' });
  });

  test('tail: an expired cursor ends it, with the one to resume from', async () => {
    const ended = await site.run('events', 'tail', '--account', 'acme', '--after', 'e1.999999');
    expect([ended.code, ended.err]).toEqual([3, expect.stringMatching(/\nResume with --after \S+\n$/)]);
  });

  test('tail: Ctrl-C ends it with 130', async () => {
    const running = site.start([...tail, '--after', head]);
    await running.printed(/job\.status_changed/);
    running.child.kill('SIGINT');
    expect(await running.ended).toMatchObject({ code: 130, err: '' });
  });
});

describe('listen', () => {
  /** A receiver that responds with these statuses in turn. Its requests throw when verified with another secret. */
  async function receive(...statuses: number[]) {
    const received: {
      readonly body: string;
      readonly tenant: string | undefined;
      verify(secret: string): unknown;
    }[] = [];
    const server = createServer(async (request, response) => {
      const body = await text(request);
      const headers = request.headers as Record<string, string>;
      const tenant = headers['x-tenant'];
      received.push({ body, tenant, verify: (secret) => new Webhook(secret).verify(body, headers) });
      response.writeHead(statuses.shift() ?? 204).end();
    }).listen(0, '127.0.0.1');
    await once(server, 'listening');
    ends.push(() => server.close());
    return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/jobs`, received };
  }
  const ready = /Forwarding events to /;

  test('forwards each new event of the filter once and in order, signed like a webhook with the printed secret', async () => {
    const { url, received } = await receive(204, 500);
    const options = ['--account', 'acme', '--types', 'job.status_changed', '--once', '3'];
    const running = site.start(['listen', '--forward-to', url, ...options]);
    await running.printed(ready);
    for (const status of ['Printing', 'Folding', 'Packing']) {
      site.acme.setStatus(site.job, status);
      await running.printed(new RegExp(`→ ${status}`));
    }
    const { code, out, err } = await running.ended;
    // One was not accepted.
    expect([code, err]).toEqual([1, '']);
    const [first = '', second, ...printed] = lines(out);
    const [, secret = ''] = /^Signing secret: (whsec_\S+)$/.exec(first) ?? [];
    expect(second).toBe(`Forwarding events to ${url}. Press Ctrl-C to stop.`);
    expect(printed).toEqual([
      expect.stringMatching(/^204 .* us\/acme +\d+ +job\.status_changed .*→ Printing$/),
      expect.stringMatching(/^500 .* Printing → Folding$/),
      expect.stringMatching(/^204 .* Folding → Packing$/),
    ]);
    expect(received).toHaveLength(3);
    for (const request of received) {
      const event = request.verify(secret) as { id: string };
      expect(await site.json('events', 'show', event.id)).toEqual([JSON.parse(request.body)]);
      expect(() => request.verify(newSigningSecret())).toThrow();
    }
  });

  test.each<[number, ...string[]]>([
    [3, '--types', 'nonsense'],
    [3, '--after', 'e1.999999'],
    [2, '--since', 'nonsense'],
    [2, '--since', '1h', '--after', 'e1.1'],
    [3, '--account', 'unknown'],
  ])(
    'does not say that it forwards events before it can: exit code %i for %s %s',
    async (code, ...options) => {
      const ended = await site.runHere(['listen', '--forward-to', 'http://127.0.0.1:1/', ...options]);
      expect(ended).toMatchObject({ code, out: '' });
    },
  );

  test('past events, with a given secret, which is not printed; a receiver that cannot be reached is reported', async () => {
    const { url, received } = await receive();
    const secret = newSigningSecret();
    const listen = (to: string) =>
      site.exec(
        [
          ...['listen', '--forward-to', to, '--secret-env', 'SECRET', '--since', '1h', '--json'],
          ...['--types', 'account.baselined', '--once', '1'],
        ],
        { env: { SECRET: secret } },
      );
    const ended = await listen(url);
    expect(ended).toMatchObject({ code: 0, err: '' });
    const [id] = received.map(({ verify }) => (verify(secret) as { id: string }).id);
    expect(toDocuments(ended.out)).toEqual([
      { forwardTo: url },
      { event: id, type: 'account.baselined', status: 204, ms: expect.any(Number), error: null },
    ]);
    const unreachable = await listen('http://127.0.0.1:1/jobs');
    expect(unreachable.code).toBe(1);
    expect(toDocuments(unreachable.out)[1]).toMatchObject({
      status: null,
      error: expect.stringContaining('ECONNREFUSED'),
    });
  });

  test('listen and trigger add the given headers, and reject those that Jobwire or the connection sets', async () => {
    const { url, received } = await receive();
    const env = { SECRET: newSigningSecret(), TENANT: 'seven' };
    const target = ['--forward-to', url, '--secret-env', 'SECRET', '--header-env'];
    const run = (command: string[], header: string) => site.exec([...command, ...target, header], { env });
    const once = ['listen', '--since', '1h', '--types', 'account.baselined', '--once', '1'];
    for (const command of [once, ['trigger', 'job.dispatched']]) {
      expect(await run(command, 'X-Tenant=TENANT')).toMatchObject({ code: 0 });
      for (const header of ['webhook-id', 'Host', 'X Y'])
        expect(await run(command, `${header}=TENANT`)).toMatchObject({
          ...{ code: 2, out: '' },
          err: expect.stringMatching(`^--header-env: ${header} must (not be|contain only) `),
        });
    }
    expect(received.map(({ tenant }) => tenant)).toEqual(['seven', 'seven']);
  });

  test('forwards the events after a given cursor', async () => {
    const { url, received } = await receive();
    const [first, second] = (await site.json('events', 'list', '--account', 'acme')).reverse();
    const [, epoch, number] = first.id.split('.');
    const after = ['--account', 'acme', '--after', `${epoch}.${number}`];
    const ended = await site.exec(['listen', '--forward-to', url, ...after, '--once', '1']);
    expect(ended, ended.err).toMatchObject({ code: 0 });
    expect(received.map(({ body }) => JSON.parse(body).id)).toEqual([second.id]);
  });

  test('a lost connection to Jobwire is reopened at the last forwarded event', async () => {
    const { url, received } = await receive();
    const piece = (number: number) => {
      const event = { id: `acme.e.${number}`, type: 'job.created', time: new Date(0).toISOString() };
      return `id: e.${number}\ndata: ${JSON.stringify({ ...event, data: { region: 'us', account: 'acme' } })}\n\n`;
    };
    const api = await fakeApi({
      'GET /v1/events': { json: { events: [], next: 'e.0', head: 'e.0' } },
      'GET /v1/events/stream': ({ query }) =>
        query.after === 'e.0' ? stream([piece(1)], 'cut') : stream([piece(2)], 'open'),
    });
    ends.push(() => api.stop());
    const ended = await site.exec(['listen', '--forward-to', url, '--once', '2', '--url', api.url]);
    expect(ended.code).toBe(0);
    expect(ended.err).toMatch(/^Connection lost: .*\nReconnected\. /);
    expect(received.map(({ body }) => JSON.parse(body).id)).toEqual(['acme.e.1', 'acme.e.2']);
    const opened = api.asked.filter(({ path }) => path.endsWith('/stream'));
    expect(opened.map(({ query }) => query.after)).toEqual(['e.0', 'e.1']);
  });
});

test('find accepts spaces between its kinds', async () => {
  const [found] = await site.json('find', 'acme', '--kinds', 'job, account');
  expect(found).toMatchObject({ kind: 'account', account: 'acme' });
});

test('jobs: each filter selects jobs; one job has its events', async () => {
  const today = new Date().toISOString().slice(0, 10);
  for (const [filter, found] of [
    [['--late'], false],
    [['--status', 'Scheduled'], true],
    [['--status', 'Nowhere'], false],
    [['--due', '2020-01-01'], false],
    [['--due-before', today], false],
    [['--order-number', 'Größe & Co'], false],
    [['--order-group', 'Größe & Co'], false],
    [['--status', 'Scheduled', '--sort', 'dateDue', '--descending'], true],
    [['--status', 'Scheduled', '--late', '--undispatched', '--due-from', '2020-01-01'], false],
    [['--dispatched', today, '--dispatched-from', today, '--dispatched-before', today], false],
  ] as const) {
    const ended = await site.run('jobs', 'list', 'acme', ...filter);
    expect([filter, ended.code, ended.err === '']).toEqual([filter, 0, found]);
  }
  const [expanded] = await site.json('jobs', 'list', 'acme', '--expand', 'detail,events');
  expect(expanded).toMatchObject({ jobNumber: site.job, detailAt: expect.any(String) });
  expect(expanded.events.map(({ type }: { type: string }) => type)).toContain('job.status_changed');
  const shown = await site.run('jobs', 'show', 'acme', String(site.job));
  expect(shown.out).toMatch(new RegExp(`^Job +${site.job} of acme$`, 'm'));
  expect(shown.out).toMatch(/job\.status_changed +Scheduled → In production/);
  const [document] = await site.json('jobs', 'show', 'acme', String(site.job), '--limit', '1');
  expect(document).toMatchObject({ job: { jobNumber: site.job }, events: [{ type: 'job.status_changed' }] });
  const durations = await site.run('jobs', 'durations', 'acme');
  const { fromMonth, statuses } = (await site.json('jobs', 'durations', 'acme'))[0];
  // The account has been tracked for minutes only.
  expect(fromMonth >= new Date(Date.now() - 3_600_000).toISOString().slice(0, 7)).toBe(true);
  expect(durations.code).toBe(0);
  if (statuses.length > 0) {
    expect(durations.out).toMatch(new RegExp(`^Durations  since ${fromMonth}; unknown with fewer`, 'm'));
  } else expect(durations.err).toMatch(/^There are no durations yet\. /);
  expect(durations.out).toMatch(/^Flagged +no results yet: /m);
});

test('alerts: added, listed, changed, tested and removed; the URL is never printed', async () => {
  const posts: string[] = [];
  const server = createServer(async (request, response) => {
    posts.push(await text(request));
    response.end();
  }).listen(0, '127.0.0.1');
  ends.push(() => server.close());
  await once(server, 'listening');
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/c4n4ry`;
  const file = join(folder, 'url');
  writeFileSync(file, `${url}\n`);
  const quiet = ['--quiet', '21:00-08:00', '--quiet-days', 'sat,sun', '--repeat', '60'];
  const fields = [
    '--condition',
    'late_jobs',
    '--above',
    '5',
    '--post',
    'slack',
    '--url-file',
    file,
    ...quiet,
  ];
  const added = await site.run('alerts', 'add', 'late', ...fields);
  expect([added.code, added.err]).toEqual([0, '']);
  expect(added.out).toMatch(/^Fires if +late_jobs > 5$/m);
  expect(added.out, 'not evaluated yet').toMatch(/^State +new$/m);
  expect((await site.run('alerts', 'list')).out).toMatch(/^late +us +(new|ok) +late_jobs > 5 +/m);
  const changed = await site.json('alerts', 'change', 'late', '--above', '7', '--enabled', 'off');
  expect(changed[0]).toMatchObject({ threshold: 7, enabled: false, repeatMinutes: 60 });
  const limited = await site.json('alerts', 'change', 'late', '--accounts', 'acme');
  expect(limited[0].accounts).toEqual(['acme']);
  const reset = await site.json('alerts', 'change', 'late', '--accounts', 'all', '--repeat', 'none');
  expect(reset[0]).toMatchObject({ accounts: null, repeatMinutes: null });
  expect((await site.run('alerts', 'test', 'late')).out).toBe('The test message was sent.\n');
  expect(posts[0]).toContain('[Test] late (US)');
  const shown = await site.run('alerts', 'show', 'late', '--json');
  expect(added.out + shown.out).not.toContain('c4n4ry');
  const incomplete = await site.run('alerts', 'add', 'x', '--condition', 'late_jobs', '--above', '5');
  expect([incomplete.code, incomplete.err]).toEqual([2, '--email or --post is missing.\n']);
  expect((await site.run('alerts', 'remove', 'late')).out).toBe('The alert rule late is deleted.\n');
});

test('keys: created with role, accounts and expiry, printed once; listed without secrets; revoked', async () => {
  const options = ['--role', 'read', '--accounts', 'acme', '--expires', '90d', '--name', 'reports'];
  const created = await site.run('keys', 'create', ...options);
  expect(created.out.match(/jw_\w+_\w+/g)).toHaveLength(1);
  expect(created.err).toBe('Store the key now. It is not shown again.\n');
  const [key] = (await site.json('keys', 'list')).filter(({ name }) => name === 'reports');
  expect(key).toMatchObject({ role: 'read', accounts: ['acme'] });
  const days = (Date.parse(key.expiresAt) - Date.now()) / 86_400_000;
  expect(days > 89.9 && days <= 90).toBe(true);
  expect(await site.run('keys', 'revoke', key.id)).toMatchObject({
    code: 0,
    out: `Key ${key.id} is revoked. The API rejects it within 30 seconds.\n`,
  });
});

test('keys pair: a wall display gets a key of the given accounts after its code is confirmed', async () => {
  const started = await fetch(`${site.url}/v1/wall-pairings`, { method: 'POST' });
  expect(started.status).toBe(201);
  const { code, deviceToken } = (await started.json()) as { code: string; deviceToken: string };
  const pair = (digits: string) => site.run('keys', 'pair', digits, '--name', 'desk', '--accounts', 'acme');
  expect(await pair(code)).toMatchObject({
    ...{ code: 0, err: '' },
    out: expect.stringMatching(/^The screen gets the key .*desk.* within a few seconds\.\n$/),
  });
  const claimed = await fetch(`${site.url}/v1/wall-pairings/key`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ code, deviceToken }),
  });
  const { key } = (await claimed.json()) as { key: string };
  const shown = await site.runHere(['keys', 'show', '--json'], { env: { JOBWIRE_API_KEY: key } });
  expect(toDocuments(shown.out)).toMatchObject([{ role: 'read', accounts: ['acme'] }]);
  // A code is confirmed once.
  expect(await pair(code)).toMatchObject({ code: 3, out: '' });
});

// Runs last.
test('every command of these groups, and each other command, was successful as a process', () => {
  // To confirm an account requires a quarantine. Above, a process is rejected.
  // move.integration.test.ts moves an account.
  expect(site.notStarted()).toEqual(['accounts confirm', 'accounts move']);
});
