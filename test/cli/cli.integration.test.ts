/**
 * The built CLI `jobwire` against a fake API: requests, output and exit codes.
 * One file: its tests share the fake API and the launcher of the built CLI.
 */
import { execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import type { ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { SMTPServer } from 'smtp-server';
import { afterAll, afterEach, describe, expect, inject, test } from 'vitest';
import { type Answer, type Asked, cleanEnv, fakeApi, launch, problem, stream } from '../support/command.ts';

const KEY = 'jw_k1_0123456789abcdef';
const folder = mkdtempSync(join(tmpdir(), 'jobwire-cli-'));
const binary = join(inject('packageFolder'), 'cli', 'jobwire.js');

afterAll(() => rmSync(folder, { recursive: true, force: true }));
const open: (() => unknown)[] = [];
afterEach(async () => {
  for (const close of open.splice(0).reverse()) await close();
});

async function serve(routes: Record<string, Answer | ((asked: Asked) => Answer)>) {
  const api = await fakeApi(routes);
  open.push(() => api.stop());
  const env = { JOBWIRE_URL: api.url, JOBWIRE_API_KEY: KEY };
  const start = (args: string[], more: { env?: Record<string, string | undefined>; input?: string } = {}) => {
    const running = launch([process.execPath, binary, ...args], { ...more, env: { ...env, ...more.env } });
    open.push(() => running.child.kill('SIGKILL'));
    return running;
  };
  return { ...api, start, run: (...given: Parameters<typeof start>) => start(...given).ended };
}

const line = (text: string): string[] => text.split('\n').filter((one) => one !== '');

const ACCOUNT = { id: 'acme', region: 'us', pollIntervalSeconds: 120, paused: false, managed: true };
const STATUS = {
  state: 'tracking',
  lastPollAt: '2026-11-21T12:00:00.000Z',
  observedThrough: '2026-11-21T12:00:00.000Z',
  consecutiveFailures: 0,
  openJobs: 40,
  unreadJobs: 0,
  head: 'e1.7',
  problem: null,
  missingJobs: { pending: 0, suspected: 0, contradictory: 0 },
  quarantinedAt: null,
};
const step = (name: string, ok: boolean, message: string) => ({ step: name, ok, message, ms: 12 });
const PASSED = { ok: true, steps: [step('token', true, 'A token was issued.')] };
const FAILED = { ok: false, steps: [step('token', false, 'The service refused the credentials.')] };

function event(sequence: number, more: object = {}) {
  return {
    specversion: '1.0',
    id: `acme.e1.${sequence}`,
    source: '/regions/us/accounts/acme',
    type: 'job.status_changed',
    subject: 'jobs/100042',
    time: '2026-11-21T12:00:00.000Z',
    sequence: String(sequence).padStart(20, '0'),
    dataschema: 'http://x/schema',
    datacontenttype: 'application/json',
    data: { account: 'acme', region: 'us', changes: { status: { from: 'a', to: 'b' } } },
    ...more,
  };
}
/** First frame of a stream, with its cursor. */
const cursorFrame = (sequence: number): string =>
  `id: e1.${sequence}\nevent: cursor\ndata: {"cursor":"e1.${sequence}"}\n\n`;
const frame = (sequence: number, more: object = {}): string =>
  `id: e1.${sequence}\nevent: job.status_changed\ndata: ${JSON.stringify(event(sequence, more))}\n\n`;

describe('exit codes', () => {
  const routes = {
    'GET /v1/accounts/acme': { json: ACCOUNT },
    'GET /v1/accounts/acme/status': { json: STATUS },
    'POST /v1/accounts/acme/test': { json: FAILED },
    'POST /v1/accounts/acme/pause': problem(403, 'forbidden', 'The key must be of role operate.'),
    'POST /v1/accounts/acme/resume': problem(503, 'service-unavailable', 'The store did not answer.'),
    'GET /v1/accounts/gone': problem(404, 'not-found', 'There is no such account.'),
    'GET /v1/accounts/in': problem(401, 'unauthorized', 'Send the API key.'),
    'GET /v1/accounts/odd': { write: (response: ServerResponse) => response.end('<html>') },
  };
  test.each([
    [0, ['accounts', 'show', 'acme'], {}, /^$/],
    [1, ['accounts', 'test', 'acme'], {}, /^$/],
    [
      2,
      ['accounts', 'shw', 'acme'],
      {},
      /^Unknown command "accounts shw"\. Did you mean show\? Available: add, /,
    ],
    [2, ['acounts'], {}, /^Unknown command "acounts"\. Did you mean accounts\? See jobwire help\.$/],
    [2, ['accounts'], {}, /^accounts requires a subcommand: add, list, /],
    [2, [], {}, /^A command is missing\. /],
    [2, ['accounts', 'show'], {}, /^ID is missing\. Usage: jobwire accounts show ID \[options\]$/],
    [2, ['accounts', 'show', 'a', 'b'], {}, /^Unexpected argument "b"\. /],
    [2, ['accounts', 'show', 'acme', '--jsn'], {}, /^Unknown option --jsn\. Did you mean --json\? /],
    [2, ['accounts', 'show', 'acme', '--url'], {}, /^--url requires a value: --url URL, /],
    [2, ['accounts', 'show', 'acme', '--json=1'], {}, /^--json does not take a value\.$/],
    [2, ['accounts', 'show', 'acme', '--url', 'ftp://x'], {}, /^--url must start with http/],
    [2, ['accounts', 'show', 'acme', '--key', KEY], {}, /^Unknown option --key\./],
    [
      2,
      ['accounts', 'show', 'acme', '--key-file', '/nowhere'],
      {},
      /^--key-file: the file \/nowhere can’t be read/,
    ],
    [2, ['accounts', 'add', 'acme'], {}, /^--client-id ID is missing\.$/],
    [2, ['keys', 'create', '--role', 'owner'], {}, /^--role must be one of read, operate, admin\.$/],
    [2, ['jobs', 'list', 'acme', '--late', '--status', 'x'], {}, /^Only one of --late, --status, /],
    [2, ['jobs', 'list', 'acme', '--due', 'monday'], {}, /^--due must be a day \(YYYY-MM-DD\)\.$/],
    [2, ['jobs', 'show', 'acme', 'x1'], {}, /^NUMBER must be a job number\.$/],
    [2, ['endpoints', 'replay', 'erp'], {}, /^--since WHEN or --from CURSOR is required\.$/],
    [2, ['endpoints', 'replay', 'erp', '--since', 'soon'], {}, /^--since must be a duration such as 2h/],
    [
      2,
      ['endpoints', 'replay', 'erp', '--since', '2h', '--from', 'beginning'],
      {},
      /^--since and --from can’t/,
    ],
    [2, ['events', 'tail', '--once', '0'], {}, /^--once must be an integer from 1 /],
    [2, ['start', '--port', '70000'], {}, /^--port must be an integer from 0 to 65535\.$/],
    [2, ['start', '--json'], {}, /"detail":"Unknown option --json\./],
    [3, ['accounts', 'show', 'gone'], {}, /^There is no such account\.$/],
    [
      3,
      ['accounts', 'show', 'gone', '--verbose'],
      {},
      /^There is no such account\.\nHTTP 404, not-found, request request-77$/,
    ],
    [4, ['accounts', 'resume', 'acme'], {}, /^The store did not answer\.$/],
    [4, ['accounts', 'show', 'odd'], {}, / responds, but not as Jobwire does\. /],
    [
      4,
      ['accounts', 'show', 'acme', '--url', 'http://127.0.0.1:1'],
      {},
      /^http:\/\/127\.0\.0\.1:1 can’t be reached: /,
    ],
    [5, ['accounts', 'show', 'in'], {}, /^The API key is invalid\. Check /],
    [5, ['accounts', 'pause', 'acme'], {}, /^The key must be of role operate\.$/],
    [
      5,
      ['accounts', 'show', 'acme'],
      { JOBWIRE_API_KEY: '' },
      /^The API key is missing\. Set JOBWIRE_API_KEY/,
    ],
  ] as const)('%i: %j', async (code, args, env, sentence) => {
    const api = await serve(routes);
    const ended = await api.run([...args], { env });
    expect(ended.err.trim()).toMatch(sentence);
    expect(ended.code).toBe(code);
    expect(ended.err + ended.out).not.toContain(KEY);
    if (code > 1) expect(ended.out).toBe('');
  });

  test('a closed stdout is no error', async () => {
    const jobs = Array.from({ length: 500 }, (_, at) => ({ id: `account-${at}`, region: 'us' }));
    const api = await serve({ 'GET /v1/accounts': { json: { accounts: jobs, next: null } } });
    const running = api.start(['accounts', 'list', '--json']);
    running.child.stdout?.destroy();
    expect(await running.ended).toMatchObject({ code: 0, err: '' });
  });
});

describe('API key', () => {
  test('is read from a file, and sent only to the given URL', async () => {
    const other = await serve({});
    const api = await serve({
      'GET /v1/accounts/acme': { status: 307, headers: { location: `${other.url}/v1/x` } },
    });
    const file = join(folder, 'key');
    writeFileSync(file, 'a-key-of-its-own\n');
    const ended = await api.run(['accounts', 'show', 'acme', '--key-file', file], {
      env: { JOBWIRE_API_KEY: '' },
    });
    expect(api.asked[0]?.headers.authorization).toBe('Bearer a-key-of-its-own');
    expect(ended.code).toBe(4);
    expect(ended.err).toContain(`redirects to ${other.url}. The API key is not sent there.`);
    expect(other.asked).toEqual([]);
  });
});

describe('lists', () => {
  test('are read by page, printed as JSON lines, and no further than the limit', async () => {
    const api = await serve({
      'GET /v1/accounts': ({ query }) => ({
        json: query.after
          ? { accounts: [{ ...ACCOUNT, id: 'c' }], next: null }
          : { accounts: [ACCOUNT, { ...ACCOUNT, id: 'b' }], next: 'p2' },
      }),
    });
    const all = await api.run(['accounts', 'list', '--region', 'us', '--json']);
    expect(line(all.out).map((one) => JSON.parse(one).id)).toEqual(['acme', 'b', 'c']);
    expect(api.asked.map(({ query }) => query)).toEqual([
      { region: 'us', include: 'status', limit: '500' },
      { region: 'us', include: 'status', limit: '500', after: 'p2' },
    ]);
    expect(all.err).toBe('');
    const two = await api.run(['accounts', 'list', '--limit', '2']);
    expect(two.err).toBe('There are more entries. Use --limit to show more.\n');
    expect(line(two.out)).toHaveLength(3);
    expect(api.asked).toHaveLength(3);
  });

  test('have aligned columns for any content, and no control characters', async () => {
    const nasty = 'red\u001b[31m\u0007\u009b2J \u202Eevil\nnew line';
    const job = {
      jobNumber: 1,
      status: 'Größe 名刺',
      description: nasty,
      tracking: [],
      phase: 'listed',
      outcome: null,
    };
    const api = await serve({
      'GET /v1/accounts/acme/jobs': { json: { jobs: [job, { ...job, status: 'e\u0301' }], next: null } },
    });
    const text = await api.run(['jobs', 'list', 'acme']);
    // biome-ignore lint/suspicious/noControlCharactersInRegex: they are what is looked for
    expect(text.out.replaceAll('\n', '')).not.toMatch(/[\u0000-\u001f\u007f-\u009f\u202e]/);
    expect(line(text.out)).toHaveLength(3);
    const [, wide = '', combined = ''] = line(text.out);
    expect(wide.indexOf('–')).toBe(combined.indexOf('–') - 3);
    const json = await api.run(['jobs', 'list', 'acme', '--json']);
    // biome-ignore lint/suspicious/noControlCharactersInRegex: they are what is looked for
    expect(json.out.replaceAll('\n', '')).not.toMatch(/[\u0000-\u001f\u007f-\u009f\u202e]/);
    expect(JSON.parse(line(json.out)[0] ?? '')).toMatchObject({ description: nasty });
  });

  test.skipIf(!hasScript())('fit the terminal, with colour only there and only if wanted', async () => {
    const api = await serve({
      'GET /v1/accounts': {
        json: { accounts: [{ ...ACCOUNT, status: { ...STATUS, problem: 'why '.repeat(60) } }], next: null },
      },
    });
    const shown = async (env: object) => {
      // With CI set, Node assumes a terminal without colours.
      const words = `stty cols 70; env -u CI ${process.execPath} ${binary} accounts list`;
      const running = launch(['script', '-qec', words, '/dev/null'], {
        env: { JOBWIRE_URL: api.url, JOBWIRE_API_KEY: KEY, TERM: 'xterm', ...env },
      });
      open.push(() => running.child.kill('SIGKILL'));
      return (await running.ended).out.replaceAll('\r', '');
    };
    const plain = await shown({ NO_COLOR: '1' });
    expect(plain).not.toContain('\u001b[3');
    expect(Math.max(...line(plain).map((one) => one.length))).toBe(70);
    expect(plain).toMatch(/why \w*…$/m);
    expect(plain).toMatch(/ \d+ \w+ ago /);
    expect(await shown({})).toContain('\u001b[32mtracking');
  });
});

describe.skipIf(!hasScript())('a prompt on a terminal', () => {
  const asked = /The client secret: /;
  /** `accounts add` on its own pseudo-terminal; `type` is sent to it after the prompt. */
  async function atPrompt(type: string, more: readonly string[] = []) {
    const api = await serve({
      'POST /v1/accounts': { status: 201, json: ACCOUNT },
      'POST /v1/credentials/test': { json: PASSED },
    });
    const add = ['accounts', 'add', 'acme', '--client-id', 'api', ...more];
    const words = `${process.execPath} ${binary} ${add.join(' ')}`;
    const child = spawn('script', ['-qec', words, '/dev/null'], {
      env: { ...cleanEnv, JOBWIRE_URL: api.url, JOBWIRE_API_KEY: KEY, TERM: 'xterm' },
    });
    open.push(() => child.kill('SIGKILL'));
    let shown = '';
    child.stdout.setEncoding('utf8').on('data', (text: string) => {
      const before = asked.test(shown);
      shown += text;
      if (!before && asked.test(shown)) child.stdin.write(type);
    });
    const [code] = await once(child, 'close');
    return { code: code as number, shown, requests: api.asked };
  }

  test.each([[[]], [['--json']]])(
    'Ctrl-C exits with 130, without an error and without a request: %j',
    async (more) => {
      const { code, shown, requests } = await atPrompt('\u0003', more);
      expect(code).toBe(130);
      expect(shown.split(asked)[1]?.replaceAll(/[\r\n]/g, '')).toBe('');
      expect(requests).toEqual([]);
    },
  );

  test('Ctrl-C within a secret exits with 130, and prints none of it', async () => {
    const { code, shown, requests } = await atPrompt('half-a-s3cret\u0003');
    expect(code).toBe(130);
    expect(shown).not.toContain('s3cret');
    expect(requests).toEqual([]);
  });

  test('the typed secret is used, and not printed', async () => {
    const { code, shown, requests } = await atPrompt('a-whole-s3cret\r');
    expect(code).toBe(0);
    expect(shown).not.toContain('s3cret');
    expect(requests[0]?.body).toMatchObject({ credentials: { clientSecret: 'a-whole-s3cret' } });
  });
});

describe('errors with --json', () => {
  const gone = { earliest: 'e1.5', head: 'e1.9', restored: 'e2.4' };
  const routes = {
    'GET /v1/accounts/acme': { json: ACCOUNT },
    'GET /v1/accounts/gone': problem(404, 'not-found', 'There is no such account.'),
    'GET /v1/accounts/in': problem(401, 'unauthorized', 'Send the API key.'),
    'GET /v1/accounts/busy': problem(503, 'service-unavailable', 'The store did not\u001b[2J answer.'),
    'GET /v1/accounts/proxy': { status: 502, json: 'Bad gateway' },
    'POST /v1/accounts/acme/pause': problem(403, 'forbidden', 'The key must be of role operate.'),
    'GET /v1/accounts/acme/events/stream': problem(410, 'cursor-gone', 'It is gone.', gone),
    'GET /v1/endpoints/x/deliveries': problem(400, 'invalid-request', 'limit must be less.', {
      field: 'limit',
    }),
  };
  const of = (kind: string, status: number) => ({ type: `urn:jobwire:problem:${kind}`, status });
  const requestId = 'request-77';
  test.each<[object, readonly string[], object?]>([
    [
      {
        ...of('not-found', 404),
        title: 'not-found',
        detail: 'There is no such account.',
        exitCode: 3,
        requestId,
      },
      ['accounts', 'show', 'gone'],
    ],
    [
      {
        ...of('not-found', 404),
        title: 'not-found',
        detail: 'There is no such account.',
        exitCode: 3,
        requestId,
      },
      ['accounts', 'show', 'gone', '--verbose'],
    ],
    [
      {
        ...of('unauthorized', 401),
        ...{ title: 'unauthorized', exitCode: 5, requestId },
        detail: 'The API key is invalid. Check JOBWIRE_API_KEY or --key-file.',
      },
      ['accounts', 'show', 'in'],
    ],
    [
      {
        ...of('forbidden', 403),
        ...{ title: 'forbidden', detail: 'The key must be of role operate.', exitCode: 5, requestId },
      },
      ['accounts', 'pause', 'acme'],
    ],
    [
      {
        ...of('cursor-gone', 410),
        title: 'cursor-gone',
        detail: 'It is gone.',
        exitCode: 3,
        requestId,
        ...gone,
      },
      ['events', 'tail', '--account', 'acme', '--after', 'e1.1'],
    ],
    [
      {
        ...of('invalid-request', 400),
        ...{
          title: 'invalid-request',
          detail: '--limit must be less.',
          exitCode: 3,
          requestId,
          field: 'limit',
        },
      },
      ['endpoints', 'deliveries', 'x'],
    ],
    [
      {
        type: 'about:blank',
        title: 'HTTP 502',
        status: 502,
        exitCode: 4,
        requestId,
        detail: expect.any(String),
      },
      ['accounts', 'show', 'proxy'],
    ],
    [
      {
        ...{ type: 'urn:jobwire:cli:usage', title: 'Invalid command line', exitCode: 2 },
        detail: expect.stringMatching(/^Unknown command "acounts"\. /),
      },
      ['acounts'],
    ],
    [
      {
        ...{ type: 'urn:jobwire:cli:key', title: 'No usable API key', exitCode: 5 },
        detail: expect.stringMatching(/^The API key is missing\. /),
      },
      ['accounts', 'show', 'acme'],
      { JOBWIRE_API_KEY: '' },
    ],
    [
      {
        ...{ type: 'urn:jobwire:cli:unreachable', title: 'API unreachable', exitCode: 4 },
        detail: expect.stringMatching(/^http:\/\/127\.0\.0\.1:1 can’t be reached: /),
      },
      ['accounts', 'show', 'acme', '--url', 'http://127.0.0.1:1'],
    ],
  ])('are one object on stderr: %j', async (error, args, env = {}) => {
    const api = await serve(routes);
    const ended = await api.run([...args, '--json'], { env: { ...env } });
    expect(ended.out).toBe('');
    expect(line(ended.err)).toHaveLength(1);
    expect(JSON.parse(ended.err)).toEqual(error);
    expect(ended.code).toBe((error as { exitCode: number }).exitCode);
    expect(ended.err).not.toContain(KEY);
  });

  test('contain no terminal control characters', async () => {
    const api = await serve(routes);
    const { err } = await api.run(['accounts', 'show', 'busy', '--json']);
    // biome-ignore lint/suspicious/noControlCharactersInRegex: they are what is looked for
    expect(err.trimEnd()).not.toMatch(/[\u0000-\u001f\u007f-\u009f]/);
    expect(JSON.parse(err)).toMatchObject({ status: 503, exitCode: 4 });
  });

  test('a result with failures is on stdout, and a note on stderr is an object as well', async () => {
    const api = await serve({ 'POST /v1/credentials/test': { json: FAILED } });
    const ended = await api.run(['accounts', 'add', 'acme', '--client-id', 'api', '--json'], { input: 'x' });
    expect(ended.code).toBe(1);
    expect(JSON.parse(ended.out)).toMatchObject({ ok: false });
    expect(line(ended.err).map((one) => JSON.parse(one))).toEqual([
      { note: 'The account was not added. To skip the test, use --no-test.' },
    ]);
  });
});

function hasScript(): boolean {
  try {
    execFileSync('script', ['-qec', 'true', '/dev/null'], { stdio: 'ignore' });
    return process.platform === 'linux';
  } catch {
    return false;
  }
}

describe('accounts', () => {
  const made = { 'POST /v1/accounts': { status: 201, json: ACCOUNT } };
  const add = ['accounts', 'add', 'acme', '--region', 'us', '--client-id', 'api'];
  const credentials = { clientId: 'api', clientSecret: 's3cret of mine' };

  test.each(['stdin', 'file', 'environment'])(
    'add: tests, then adds, with the secret from %s, which is never printed',
    async (from) => {
      const api = await serve({ ...made, 'POST /v1/credentials/test': { json: PASSED } });
      const file = join(folder, 'secret');
      writeFileSync(file, `${credentials.clientSecret}\n`);
      const flags =
        from === 'file'
          ? ['--client-secret-file', file]
          : from === 'environment'
            ? ['--client-secret-env', 'ACME_SECRET']
            : [];
      const ended = await api.run([...add, ...flags, '--poll-interval', '60'], {
        input: from === 'stdin' ? `${credentials.clientSecret}\n` : '',
        env: { ACME_SECRET: credentials.clientSecret },
      });
      expect(ended).toMatchObject({ code: 0, err: '' });
      expect(api.asked.map(({ path, body }) => [path, body])).toEqual([
        ['/v1/credentials/test', { region: 'us', credentials }],
        ['/v1/accounts', { id: 'acme', region: 'us', credentials, pollIntervalSeconds: 60 }],
      ]);
      expect(ended.out).toMatch(/^ok {4}Token {5}A token was issued\. \(12 ms\)\nacme was added in us\. /);
      expect(ended.out).not.toContain(credentials.clientSecret);
    },
  );

  test('add: failing credentials are not added, except without test', async () => {
    const api = await serve({ ...made, 'POST /v1/credentials/test': { json: FAILED } });
    const refused = await api.run(add, { input: 'x' });
    expect(refused.code).toBe(1);
    expect(refused.out).toMatch(/^fail {2}Token {5}The service refused the credentials\./);
    expect(refused.err).toBe('The account was not added. To skip the test, use --no-test.\n');
    expect(api.asked.map(({ path }) => path)).toEqual(['/v1/credentials/test']);
    expect((await api.run([...add, '--no-test', '--paused'], { input: 'x' })).code).toBe(0);
    expect(api.asked.slice(1).map(({ path }) => path)).toEqual(['/v1/accounts']);
    expect(api.asked[1]?.body).toMatchObject({ paused: true });
    const none = await api.run(add);
    expect(none).toMatchObject({
      code: 2,
      err: 'The client secret is missing. Provide it on stdin, or with --client-secret-file or --client-secret-env.\n',
    });
  });

  test.skipIf(!hasScript())('add: on a terminal it prompts for the secret without echo', async () => {
    const api = await serve({ ...made, 'POST /v1/credentials/test': { json: PASSED } });
    const words = [process.execPath, binary, ...add].join(' ');
    const running = launch(['script', '-qec', words, '/dev/null'], {
      env: { JOBWIRE_URL: api.url, JOBWIRE_API_KEY: KEY },
      input: 'typed-secret\r',
    });
    open.push(() => running.child.kill('SIGKILL'));
    await running.said(/acme was added in us/);
    await running.ended;
    expect(running.out()).toContain('The client secret: ');
    expect(api.asked[1]?.body).toMatchObject({ credentials: { clientSecret: 'typed-secret' } });
  });

  test('show, test, pause, resume and confirm send the documented requests, and print the result', async () => {
    const api = await serve({
      'GET /v1/accounts/acme': { json: ACCOUNT },
      'GET /v1/accounts/acme/status': { json: { ...STATUS, state: 'quarantined', problem: 'In doubt.' } },
      'POST /v1/accounts/acme/test': { json: PASSED },
      'POST /v1/accounts/acme/pause': { json: { ...ACCOUNT, paused: true } },
      'POST /v1/accounts/acme/resume': { json: ACCOUNT },
      'POST /v1/accounts/acme/confirm': { json: { confirmed: 'identity_mismatch' } },
    });
    const shown = await api.run(['accounts', 'show', 'acme']);
    expect(shown.out).toMatch(/^State +quarantined\nProblem +In doubt\.$/m);
    expect(shown.err).toBe('Confirmation required: jobwire accounts confirm acme\n');
    expect((await api.run(['accounts', 'test', 'acme'])).out).toMatch(/^ok /);
    expect((await api.run(['accounts', 'pause', 'acme'])).out).toBe('acme is paused.\n');
    expect((await api.run(['accounts', 'resume', 'acme'])).out).toBe('acme is resumed.\n');
    const confirmed = await api.run(['accounts', 'confirm', 'acme', '--upstream-id', '4711']);
    expect(confirmed.out).toBe('acme resumes after identity mismatch.\n');
    expect(api.asked.at(-1)?.body).toEqual({ upstreamId: 4711 });
    expect(JSON.parse((await api.run(['accounts', 'show', 'acme', '--json'])).out)).toMatchObject({
      region: 'us',
      status: { head: 'e1.7' },
    });
  });

  test('rotate and delete: new credentials are in the body; deleting requires --yes', async () => {
    let left = true;
    const api = await serve({
      'PUT /v1/accounts/acme/credentials': { json: ACCOUNT },
      'DELETE /v1/accounts/acme': () => ({ status: left ? 202 : 204 }),
    });
    await api.run(['accounts', 'rotate', 'acme', '--client-id', 'api'], { input: credentials.clientSecret });
    expect(api.asked[0]?.body).toEqual(credentials);
    expect(await api.run(['accounts', 'delete', 'acme'])).toMatchObject({ code: 2 });
    expect(api.asked).toHaveLength(1);
    const going = await api.run(['accounts', 'delete', 'acme', '--yes']);
    expect(going.out).toBe('acme is being deleted. Its data is removed in the background.\n');
    left = false;
    expect((await api.run(['accounts', 'delete', 'acme', '--yes'])).out).toBe('acme was deleted.\n');
  });
});

describe('endpoints', () => {
  const ENDPOINT = {
    id: 'erp',
    region: 'us',
    url: 'https://erp.example/jobs',
    accounts: [],
    types: [],
    paused: false,
    managed: true,
  };
  const HEALTH = {
    state: 'active',
    problem: null,
    waitUntil: null,
    failingSince: null,
    disabledAt: null,
    lastDeliveredAt: null,
    lastFailedAt: null,
    lost: 0,
    parked: { count: 3, oldestAt: null },
    backlog: { events: 2, oldestAt: null, accounts: [], complete: true },
    statistics: { attempts: 9, delivered: 8, successRate: 0.9, p50Ms: 4, p95Ms: 8, lastError: null },
  };
  const health = { 'GET /v1/endpoints/erp/health': { json: HEALTH } };
  const SECRET = 'whsec_c2VjcmV0c2VjcmV0c2VjcmV0c2VjcmV0';
  const replay = (done: number, state = 'running') => ({
    id: 'r1',
    state,
    accounts: ['acme'],
    total: 10,
    done,
    delivered: done,
    failed: 0,
    skipped: 0,
    truncatedAccounts: [],
    startedAt: '2026-11-21T12:00:00.000Z',
    finishedAt: state === 'done' ? '2026-11-21T12:00:02.000Z' : null,
  });

  test('add: sends the options, prints the secret once with a warning', async () => {
    const api = await serve({
      'POST /v1/endpoints': {
        status: 201,
        json: { endpoint: ENDPOINT, secret: SECRET, truncatedAccounts: ['acme'] },
      },
    });
    const ended = await api.run(
      [
        'endpoints',
        'add',
        ENDPOINT.url,
        '--types',
        'job.*,order_group.*',
        '--accounts',
        'acme',
        '--start',
        'beginning',
        '--rate',
        '2.5',
        '--header-env',
        'x-tenant=TENANT',
        '--region',
        'us',
      ],
      { env: { TENANT: 'seven' } },
    );
    expect(ended.code).toBe(0);
    expect(api.asked[0]?.body).toEqual({
      url: ENDPOINT.url,
      region: 'us',
      accounts: ['acme'],
      types: ['job.*', 'order_group.*'],
      start: 'beginning',
      ratePerSecond: 2.5,
      headers: { 'x-tenant': 'seven' },
    });
    expect(ended.out.split(SECRET)).toHaveLength(2);
    expect(ended.err).toMatch(
      /^Store this signing secret now\. It is not shown again\.\nThe log starts later than requested/,
    );
  });

  test('ping: 0 if it was accepted, 1 if it was not', async () => {
    const report = { outcome: 'delivered', status: 204, latencyMs: 9, message: '', logged: true };
    let taken = true;
    const api = await serve({
      'POST /v1/endpoints/erp/ping': () => ({
        json: taken
          ? report
          : { ...report, outcome: 'retry', status: null, message: 'Nothing listens there.' },
      }),
    });
    expect(await api.run(['endpoints', 'ping', 'erp'])).toMatchObject({
      code: 0,
      out: 'Delivered: HTTP 204 after 9 ms.\n',
    });
    taken = false;
    expect(await api.run(['endpoints', 'ping', 'erp'])).toMatchObject({
      code: 1,
      out: 'Failed: no response after 9 ms. Nothing listens there.\n',
    });
  });

  test('list and replays: as tables, and as JSON lines', async () => {
    const api = await serve({
      ...health,
      'GET /v1/endpoints': { json: { endpoints: [ENDPOINT, { ...ENDPOINT, id: 'gone' }], next: null } },
      'GET /v1/endpoints/erp/replays': { json: { replays: [replay(3), replay(10, 'done')], next: null } },
      'GET /v1/endpoints/erp/replays/r1': { json: replay(3) },
    });
    const listed = await api.run(['endpoints', 'list']);
    expect(listed.out).toMatch(/^erp +us +active +3 +https:\/\/erp\.example\/jobs +all/m);
    expect(listed.out).toMatch(/^gone +us +– +– /m);
    expect(line((await api.run(['endpoints', 'replays', 'erp', '--json'])).out)).toHaveLength(2);
    expect((await api.run(['endpoints', 'replays', 'erp', 'r1'])).out).toMatch(
      /^Done +3 of 10 events \(30 %\)$/m,
    );
  });

  test('replay: a time, the beginning or cursors, and its filters', async () => {
    const api = await serve({ 'POST /v1/endpoints/erp/replays': { status: 201, json: replay(0) } });
    const before = Date.now();
    const ended = await api.run([
      'endpoints',
      'replay',
      'erp',
      '--since',
      '2h',
      '--accounts',
      'acme',
      '--types',
      'job.*',
    ]);
    expect(ended.out).toBe(
      'Replay r1 started: 10 events.\nTo see its progress, run: jobwire endpoints replays erp r1 --watch\n',
    );
    const { from, filter } = (api.asked[0] as Asked).body as { from: { at: string }; filter: object };
    const at = Date.parse(from.at) + 2 * 3_600_000;
    expect(before <= at && at <= Date.now()).toBe(true);
    expect(filter).toEqual({ accounts: ['acme'], types: ['job.*'] });
    const elsewhere = await api.run([
      'endpoints',
      'replay',
      'erp',
      '--region',
      'us',
      '--from',
      'acme=e1.3',
      '--from',
      'kiwi=e1.9',
      '--until',
      '2026-11-20',
    ]);
    expect(elsewhere.out).toMatch(/: jobwire endpoints replays erp r1 --region us --watch$/m);
    await api.run(['endpoints', 'replay', 'erp', '--from', 'beginning']);
    expect(api.asked.slice(1).map(({ body }) => body)).toEqual([
      { from: { cursors: { acme: 'e1.3', kiwi: 'e1.9' } }, to: { at: '2026-11-20T00:00:00.000Z' } },
      { from: 'beginning' },
    ]);
  });

  test('replay --watch: waits for the end', async () => {
    let looks = 0;
    const api = await serve({
      ...health,
      'POST /v1/endpoints/erp/replays': { status: 201, json: replay(0) },
      'GET /v1/endpoints/erp/replays/r1': () => {
        looks += 1;
        return { json: looks === 1 ? replay(4) : replay(10, 'done') };
      },
    });
    const ended = await api.run(['endpoints', 'replay', 'erp', '--from', 'beginning', '--watch']);
    expect(ended).toMatchObject({ code: 0, err: '' });
    expect(ended.out).toMatch(/^Done +10 of 10 events \(100 %\)$/m);
  });

  test('replay --watch: Ctrl-C leaves it running, prints how to continue watching, and exits with 130', async () => {
    let looked: () => void = () => {};
    const looking = new Promise<void>((resolve) => {
      looked = resolve;
    });
    const api = await serve({
      'GET /v1/endpoints/erp/health': { json: { ...HEALTH, state: 'paused' } },
      'POST /v1/endpoints/erp/replays': { status: 201, json: replay(0) },
      'GET /v1/endpoints/erp/replays/r1': () => {
        looked();
        return { json: replay(4) };
      },
    });
    const running = api.start(['endpoints', 'replay', 'erp', '--from', 'beginning', '--watch']);
    await looking;
    running.child.kill('SIGINT');
    const ended = await running.ended;
    expect(ended.code).toBe(130);
    expect(ended.err).toBe(
      'The endpoint is paused. The replay resumes when delivery succeeds again.\nThe replay continues. To see its progress, run: jobwire endpoints replays erp r1 --watch\n',
    );
    expect(api.asked.map(({ method }) => method)).not.toContain('DELETE');
    expect(api.asked.some(({ path }) => path.endsWith('/cancel'))).toBe(false);
  });

  test('health, deliveries, parked, pause, resume, enable and remove send the documented requests', async () => {
    const delivery = {
      at: '2026-11-21T12:00:01.000Z',
      endpoint: 'erp',
      event: 'acme.e1.5',
      type: 'job.closed',
    };
    const parked = {
      event: 'acme.e1.6',
      type: 'job.closed',
      attempts: 2,
      parkedAt: '2026-11-21T12:00:01.000Z',
    };
    const api = await serve({
      ...health,
      'GET /v1/endpoints/erp/deliveries': { json: { deliveries: [delivery], next: null } },
      'GET /v1/endpoints/erp/parked': { json: { parked: [parked], next: null } },
      ...Object.fromEntries(
        ['pause', 'resume', 'enable'].map((verb) => [`POST /v1/endpoints/erp/${verb}`, { json: ENDPOINT }]),
      ),
      'DELETE /v1/endpoints/erp': { status: 204 },
    });
    const run = (...args: string[]) => api.run(['endpoints', ...args, 'erp', '--region', 'us']);
    expect((await run('health')).out).toMatch(/^Last 24 hours +8 of 9 attempts delivered/m);
    expect((await run('deliveries', '--failed')).out).toMatch(/^2026-\S+ +acme\.e1\.5 +job\.closed/m);
    expect((await run('parked')).out).toMatch(/^2026-\S+ +acme\.e1\.6 +job\.closed +2/m);
    for (const verb of ['pause', 'resume', 'enable', 'remove']) {
      expect(await run(verb)).toMatchObject({ code: 0, err: '' });
    }
    expect(api.asked.map(({ query }) => query)).toEqual([
      { region: 'us' },
      { region: 'us', outcome: 'failed', limit: '50' },
      { region: 'us', limit: '100' },
      ...Array(4).fill({ region: 'us' }),
    ]);
  });
});

describe('events tail', () => {
  const PATH = 'GET /v1/accounts/acme/events/stream';
  const tail = ['events', 'tail', '--account', 'acme', '--json'];
  const sequences = (out: string) => line(out).map((one) => Number(JSON.parse(one).sequence));

  test('resumes at its cursor after a disconnection, also within an event: none missed, none twice', async () => {
    const answers = [
      stream([`retry: 1\nid: e1.4\n\n`, frame(5), frame(6), frame(7).slice(0, 60)], 'cut'),
      problem(503, 'service-unavailable', 'The store did not answer.'),
      stream([`retry: 1\nid: e1.6\n\n`, frame(7), frame(8)], 'open'),
    ];
    const api = await serve({
      [PATH]: () => answers.shift() ?? problem(500, 'internal-server-error', 'Too many.'),
    });
    const ended = await api.run([...tail, '--once', '4', '--types', 'job.*', '--after', 'e1.4']);
    expect(ended.code).toBe(0);
    expect(sequences(ended.out)).toEqual([5, 6, 7, 8]);
    expect(api.asked.map(({ query }) => query)).toEqual([
      { types: 'job.*', after: 'e1.4' },
      { types: 'job.*', after: 'e1.6' },
      { types: 'job.*', after: 'e1.6' },
    ]);
    expect(ended.err).toMatch(
      /^{"note":"Connection lost: .* Reconnecting until you press Ctrl-C\."}\n{"note":"Reconnected\. The stream resumes at its last position\."}\n$/,
    );
  });

  test("a disconnection before the first event resumes at the stream's start, and heartbeats advance the cursor", async () => {
    const answers = [
      stream([`retry: 1\n${cursorFrame(4)}`], 'cut'),
      stream([cursorFrame(4), ':\n\n', cursorFrame(9)], 'cut'),
      stream([cursorFrame(9), frame(10)], 'open'),
    ];
    const api = await serve({
      [PATH]: () => answers.shift() ?? problem(500, 'internal-server-error', 'Too many.'),
    });
    const ended = await api.run([...tail, '--once', '1']);
    expect(sequences(ended.out)).toEqual([10]);
    expect(api.asked.map(({ query }) => query.after)).toEqual([undefined, 'e1.4', 'e1.9']);
  });

  test('an id without data, which earlier API versions send first, advances the cursor as well', async () => {
    const answers = [
      stream(['retry: 1\nid: e1.4\n\n'], 'cut'),
      stream(['id: e1.4\n\n', ':\nid: e1.9\n\n'], 'cut'),
      stream(['id: e1.9\n\n', frame(10)], 'open'),
    ];
    const api = await serve({
      [PATH]: () => answers.shift() ?? problem(500, 'internal-server-error', 'Too many.'),
    });
    const ended = await api.run([...tail, '--once', '1']);
    expect(sequences(ended.out)).toEqual([10]);
    expect(api.asked.map(({ query }) => query.after)).toEqual([undefined, 'e1.4', 'e1.9']);
  });

  test('the regular end of a stream is not reported', async () => {
    const answers = [
      stream(['retry: 1\nid: e1.4\n\n', frame(5)], 'end'),
      stream(['retry: 1\nid: e1.5\n\n', frame(6)], 'open'),
    ];
    const api = await serve({
      [PATH]: () => answers.shift() ?? problem(500, 'internal-server-error', 'Too many.'),
    });
    expect(await api.run([...tail, '--once', '2'])).toMatchObject({ code: 0, err: '' });
  });

  /** A feed of two regions, `nz` and `us`, with one event a minute in each, which stores those of `us` from a number on. */
  const feedOf = (length: number, kept: number) => {
    const began = Date.parse('2026-11-20T00:00:00Z');
    const heads = { nz: length, us: length };
    const cursor = (places: Record<string, number>) => `nz.e1.${places.nz}~us.e7.${places.us}`;
    const route = ({ query }: Asked): Answer => {
      const at: Record<string, number> = { nz: 0, us: kept };
      for (const part of query.after?.split('~') ?? []) at[part.slice(0, 2)] = Number(part.split('.')[2]);
      if (Number(at.us) < kept) {
        return problem(410, 'cursor-gone', 'No.', {
          earliest: cursor({ ...at, us: kept }),
          head: cursor(heads),
        });
      }
      const events: object[] = [];
      const fair = Math.ceil(Number(query.limit) / 2);
      for (const region of ['nz', 'us']) {
        for (let taken = 0; taken < fair && Number(at[region]) < length; taken += 1) {
          const number = Number(at[region]) + 1;
          at[region] = number;
          const time = new Date(began + number * 60_000).toISOString();
          events.push(event(number, { time, data: { region, account: region } }));
        }
      }
      return { json: { events, next: cursor(at), head: cursor(heads) } };
    };
    return { route, instant: (number: number) => new Date(began + number * 60_000).toISOString() };
  };

  test('--since: past events are found without reading all before them, the rest comes from the stream', async () => {
    const { route, instant } = feedOf(20_000, 0);
    const api = await serve({
      'GET /v1/events': route,
      'GET /v1/events/stream': stream(['id: m3\n\n', frame(20_001)], 'open'),
    });
    const ended = await api.run(['events', 'tail', '--since', instant(19_901), '--once', '201', '--json']);
    const numbers = sequences(ended.out);
    expect(numbers.slice(0, -1).sort((a, b) => a - b)).toEqual(
      Array.from({ length: 200 }, (_, at) => 19_901 + Math.floor(at / 2)),
    );
    expect(numbers.at(-1)).toBe(20_001);
    expect(api.asked.length).toBeLessThan(25);
    expect(api.asked.at(-1)).toMatchObject({
      path: '/v1/events/stream',
      query: { after: 'nz.e1.20000~us.e7.20000' },
    });
  });

  test.each([100, 11_000])('--since: before the retention, and with %i expired ones', async (kept) => {
    const { route, instant } = feedOf(12_000, kept);
    const api = await serve({ 'GET /v1/events': route });
    const all = await api.run(['events', 'tail', '--since', instant(0), '--once', '3', '--json']);
    expect(sequences(all.out)).toEqual([1, 2, 3]);
    const some = await api.run(['events', 'tail', '--since', instant(11_500), '--once', '1002', '--json']);
    expect(sequences(some.out).filter((one) => one === 11_500)).toHaveLength(2);
    expect(sequences(some.out).filter((one) => one === 12_000)).toHaveLength(2);
  });

  test('an expired cursor ends it, with the one to resume from; so does an unavailable API', async () => {
    const gone = problem(410, 'cursor-gone', 'The log can’t be read from there.', {
      earliest: 'e2.0',
      head: 'e2.9',
    });
    const api = await serve({ 'GET /v1/regions/us/events/stream': gone });
    const ended = await api.run(['events', 'tail', '--region', 'us', '--after', 'e1.3']);
    expect(ended).toMatchObject({
      code: 3,
      err: 'The log can’t be read from there.\nResume with --after e2.0\n',
    });
    expect((await api.run(['events', 'tail', '--url', 'http://127.0.0.1:1'])).code).toBe(4);
  });

  test('one text line each, with the day when it changes, and the id on request', async () => {
    const renamed = { status: { from: 'a\u001b[2J', to: 'b' } };
    const data = { account: 'acme', region: 'us', changes: renamed };
    const api = await serve({
      [PATH]: stream(['id: e1.4\n\n', frame(5, { data, time: '2020-06-15T12:00:00.000Z' })], 'open'),
    });
    const ended = await api.run(['events', 'tail', '--account', 'acme', '--once', '1', '--verbose']);
    expect(line(ended.out)).toEqual([
      expect.stringMatching(/^— 2020-06-1\d —$/),
      expect.stringMatching(/^\d\d:\d\d:\d\d us\/acme +100042 +job\.status_changed +a \[2J → b$/),
      '          acme.e1.5',
    ]);
  });

  test('Ctrl-C ends it with 130', async () => {
    const api = await serve({ [PATH]: stream(['id: e1.4\n\n', frame(5)], 'open') });
    const running = api.start(tail);
    await running.said(/acme\.e1\.5/);
    running.child.kill('SIGINT');
    expect(await running.ended).toMatchObject({ code: 130, err: '' });
  });
});

test('events show, with deliveries', async () => {
  const delivery = {
    at: '2026-11-21T12:00:01.000Z',
    endpoint: 'erp',
    cause: 'live',
    outcome: 'delivered',
    status: 204,
    latencyMs: 8,
  };
  const api = await serve({
    'GET /v1/events/acme.e1.5': { json: event(5) },
    'GET /v1/events/acme.e1.5/deliveries': { json: { deliveries: [delivery], next: null } },
  });
  const shown = await api.run(['events', 'show', 'acme.e1.5', '--deliveries']);
  expect(shown.out).toMatch(/^Type +job\.status_changed$/m);
  expect(shown.out).toMatch(/^2026-11-21T12:00:01\.000Z +erp +live +delivered +204 +8/m);
  expect(api.asked[1]?.query).toEqual({});
  expect(JSON.parse((await api.run(['events', 'show', 'acme.e1.5', '--json'])).out)).toEqual(event(5));
});

test('jobs: each filter is the query parameter with its name; one job has its events', async () => {
  const job = {
    jobNumber: 100042,
    status: 'Shipped',
    description: 'Cards',
    orderNumber: 'PO-1',
    orderGroup: null,
    originCode: 'WEB',
    dateDue: '2026-11-21T06:29:00-07:00',
    mustDate: true,
    dateOut: null,
    tracking: [{ number: 'T1', link: null }],
    phase: 'listed',
    outcome: null,
    lastListedAt: null,
    detailAt: null,
    lines: [{ jobLineId: 7, status: 'Printed' }],
    invoiceNumber: null,
  };
  const api = await serve({
    'GET /v1/accounts/acme/jobs': { json: { jobs: [job], next: null, asOf: 'e1.7' } },
    'GET /v1/accounts/acme/jobs/100042': { json: { job, asOf: 'e1.7' } },
    'GET /v1/accounts/acme/jobs/100042/events': { json: { events: [event(6), event(5)], next: null } },
  });
  for (const filter of [
    ['--late'],
    ['--status', 'Shipped'],
    ['--due', '2026-11-21'],
    ['--due-before', '2026-11-21'],
    ['--order-number', 'PO-1'],
    ['--order-group', 'Größe & Co'],
  ]) {
    expect((await api.run(['jobs', 'list', 'acme', ...filter])).code).toBe(0);
  }
  expect(api.asked.map(({ query }) => Object.entries(query).filter(([name]) => name !== 'limit')[0])).toEqual(
    [
      ['late', 'true'],
      ['status', 'Shipped'],
      ['dueOn', '2026-11-21'],
      ['dueBefore', '2026-11-21'],
      ['orderNumber', 'PO-1'],
      ['orderGroup', 'Größe & Co'],
    ],
  );
  const shown = await api.run(['jobs', 'show', 'acme', '100042']);
  expect(shown.out).toMatch(/^Due +2026-11-21T06:29:00-07:00 \(must\)$/m);
  expect(shown.out).toMatch(/^Line 7 +Printed$/m);
  expect(shown.out).toMatch(/us\/acme +100042 +job\.status_changed/);
  const document = JSON.parse((await api.run(['jobs', 'show', 'acme', '100042', '--json'])).out);
  expect(document).toEqual({ job, asOf: 'e1.7', events: [event(5), event(6)] });
});

test('keys: created with role, accounts and expiry, printed once; listed without secrets; revoked', async () => {
  const key = {
    id: 'k2',
    name: 'reports',
    role: 'read',
    accounts: ['a', 'b'],
    expiresAt: '2027-02-19T00:00:00.000Z',
  };
  const api = await serve({
    'POST /v1/keys': { status: 201, json: { key, secret: 'jw_k2_shown-once' } },
    'GET /v1/keys': { json: { keys: [key, { ...key, accounts: null, expiresAt: null }], next: null } },
    'DELETE /v1/keys/k2': { status: 204 },
  });
  const create = [
    'keys',
    'create',
    '--role',
    'read',
    '--accounts',
    'a,b',
    '--expires',
    '90d',
    '--name',
    'reports',
  ];
  const before = Date.now();
  const made = await api.run(create);
  expect(made.out.split('jw_k2_shown-once')).toHaveLength(2);
  expect(made.err).toBe('Store the key now. It is not shown again.\n');
  const { expiresAt, ...body } = (api.asked[0] as Asked).body as { expiresAt: string };
  expect(body).toEqual({ role: 'read', accounts: ['a', 'b'], name: 'reports' });
  const days = (Date.parse(expiresAt) - before) / 86_400_000;
  expect(days >= 90 && days < 90.1).toBe(true);
  expect((await api.run(['keys', 'list'])).out).toMatch(/^k2 +reports +read +all +never +–$/m);
  expect(await api.run(['keys', 'revoke', 'k2'])).toMatchObject({
    code: 0,
    out: 'Key k2 is revoked. The API rejects it within 30 seconds.\n',
  });
  expect(JSON.parse((await api.run(['keys', 'revoke', 'k2', '--json'])).out)).toEqual({ revoked: 'k2' });
});

describe('doctor', () => {
  const healthy = { 'GET /healthz': { json: { status: 'ok' } }, 'GET /v1/key': { json: { role: 'admin' } } };
  const configure = (api: { url: string }, more: object = {}) => {
    const file = join(folder, 'doctor.json');
    const region = { baseUrl: `${api.url}/api`, authUrl: `${api.url}/auth`, realm: 'us' };
    const accounts = [{ id: 'acme', region: 'us', clientId: 'c', clientSecret: 'env:ACME_SECRET' }];
    const config = {
      port: 0,
      dataDir: join(folder, 'data'),
      dynamodbEndpoint: api.url,
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
    const api = await serve(healthy);
    const upstream = await serve({});
    const ended = await api.run(configure(upstream), { env });
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
    const api = await serve({ ...healthy, 'GET /v1/key': problem(401, 'unauthorized', 'No.') });
    const gone = await serve({});
    await gone.stop();
    open.splice(open.length - 1, 1);
    const ended = await api.run(configure(gone), { env: {} });
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
      message: `${api.url} rejects the API key.`,
    });
    for (const { state, fix } of checksIn(ended.out)) if (state !== 'ok') expect(fix).toMatch(/\.$/);
  });

  test('an invalid setting, an occupied port and an unusable folder are reported', async () => {
    const api = await serve(healthy);
    const taken = createServer().listen(0, '127.0.0.1');
    await once(taken, 'listening');
    open.push(() => taken.close());
    const file = join(folder, 'a-file');
    writeFileSync(file, '');
    const { port } = taken.address() as AddressInfo;
    const args = configure(api, { port, dataDir: join(file, 'data'), settling: { days: 'seven' } });
    // That server never answers: the probe has a time-out.
    taken.on('connection', (socket) => socket.destroy());
    const ended = await api.run(args, { env });
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
    const api = await serve(healthy);
    const publicUrl = 'https://jobwire.example.com';
    const askedOf = async (smtp: object) => {
      const notifications = { from: 'orders@acme.example', smtp: { host: '127.0.0.1', ...smtp } };
      const ended = await api.run(configure(api, { publicUrl, notifications }), { env });
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
      const date = () => new Date(Date.now() + seconds * 1000).toUTCString();
      const api = await serve({
        ...healthy,
        'GET /healthz': () => ({ json: { status: 'ok' }, headers: { date: date() } }),
      });
      const ended = await api.run(['doctor', '--json']);
      const clock = find(ended.out, 'Clock');
      expect(clock?.state).toBe(state);
      expect(clock?.message).toMatch(
        seconds > 0 ? /^(29|30|31) s behind the API\.$/ : /^\d+ s ahead of the API\.$/,
      );
    }
  });
});

describe('a broken connection', () => {
  const cut: Answer = { write: (response: ServerResponse) => void response.socket?.resetAndDestroy() };
  const create = ['keys', 'create', '--role', 'read'];
  const key = { id: 'k2', role: 'read', accounts: null, expiresAt: null };
  const idempotencyKeys = (asked: readonly Asked[]) => asked.map(({ headers }) => headers['idempotency-key']);

  test('is retried once, with the same Idempotency-Key, and waits while the first request runs', async () => {
    const busy = problem(409, 'request-in-progress', 'A request with this key is being answered.');
    const answers = [cut, busy, { status: 201, json: { key, secret: 'jw_k2_shown-once' } }];
    const api = await serve({ 'POST /v1/keys': () => answers.shift() ?? cut });
    expect(await api.run(create)).toMatchObject({ code: 0 });
    const [first, ...others] = idempotencyKeys(api.asked);
    expect(first).toMatch(/^[\w-]{32,}$/);
    expect(others).toEqual([first, first]);
    answers.push({ status: 201, json: { key, secret: 'jw_k2_shown-once' } });
    await api.run(create);
    expect(idempotencyKeys(api.asked).at(-1)).not.toBe(first);
  });

  test('for good: the message says that the request may have been executed', async () => {
    const api = await serve({ 'POST /v1/keys': cut, 'DELETE /v1/keys/k2': cut, 'GET /v1/keys': cut });
    const made = await api.run(create);
    expect(made.code).toBe(4);
    expect(made.err).toMatch(/: the connection was cut\. The request may have been processed\.$/m);
    expect(api.asked).toHaveLength(2);
    expect((await api.run(['keys', 'revoke', 'k2'])).err).toMatch(/The request may have been processed\.$/m);
    expect(api.asked).toHaveLength(3);
    expect((await api.run(['keys', 'list'])).err).toMatch(/: the connection was cut\.$/m);
    expect((await api.run([...create, '--url', 'http://127.0.0.1:1'])).err).not.toMatch(/may have been/);
  });
});

test("the API's error for a field names the option", async () => {
  const about = (field: string, rule: string) => problem(400, 'invalid-body', `${field} ${rule}`, { field });
  const api = await serve({
    'POST /v1/endpoints': about('ratePerSecond', 'must be a number from 0.1 to 1000.'),
    'POST /v1/endpoints/erp/replays': ({ body }) =>
      (body as { filter?: object }).filter
        ? about('filter.types[0]', 'must match an existing event type.')
        : about('from', 'must not be in the future.'),
  });
  expect((await api.run(['endpoints', 'add', 'https://x.example', '--rate', '2000'])).err).toMatch(
    /^--rate must be a number/,
  );
  const replay = ['endpoints', 'replay', 'erp'];
  expect((await api.run([...replay, '--since', '2h', '--types', 'x'])).err).toMatch(/^--types must match/);
  expect((await api.run([...replay, '--since', '2h'])).err).toMatch(/^--since must not be/);
  expect((await api.run([...replay, '--from', 'beginning'])).err).toMatch(/^--from must not be/);
});

describe('recipients', () => {
  const good = { created: 1, updated: 0, unchanged: 0, invalidRows: [] };

  test('an import reports invalid rows by line of the file, for any number of parts, and exits with 6', async () => {
    // The first row has two lines.
    const rows = Array.from({ length: 600 }, (_, at) => `Somebody ${at},s${at}@example.com`);
    const file = join(folder, 'recipients.csv');
    const all = `"Ann\r\nLee",ann@example.com\r\n${rows.join('\r\n')}\r\n`;
    writeFileSync(file, `\ufeffname,email\r\n${all}`);
    const api = await serve({
      'POST /v1/accounts/acme/recipients/import': {
        json: { ...good, invalidRows: [{ line: 2, field: 'name', reason: 'name must be one line.' }] },
      },
    });
    const ended = await api.run(['recipients', 'import', 'acme', file, '--dry-run', '--json']);
    expect(ended.code).toBe(6);
    const parts = api.asked.map(({ body }) => body as { csv: string; dryRun: boolean });
    expect(parts.map(({ dryRun }) => dryRun)).toEqual([true, true, true]);
    const within = parts.map(({ csv }) => csv.replace(/^name,email\r\n/, ''));
    expect(within.join('')).toBe(all);
    // Of each part the second line, that is its first row.
    const lines = within.map((_, at) => 2 + within.slice(0, at).join('').split('\r\n').length - 1);
    const report = JSON.parse(ended.out);
    expect(report.invalidRows.map(({ line: at }: { line: number }) => at)).toEqual(lines);
    expect(report).toMatchObject({ created: 3, dryRun: true });
  });

  test('an import without invalid rows exits with 0, and one of a binary file says so', async () => {
    const file = join(folder, 'good.csv');
    writeFileSync(file, 'name,email\nAnn,ann@example.com');
    const api = await serve({ 'POST /v1/accounts/acme/recipients/import': { json: good } });
    const ended = await api.run(['recipients', 'import', 'acme', file]);
    expect(ended).toMatchObject({ code: 0, out: '1 new, 0 changed, 0 unchanged, 0 invalid.\n' });
    writeFileSync(file, Buffer.from('name\nJos\xe9', 'latin1'));
    const refused = await api.run(['recipients', 'import', 'acme', file]);
    expect([refused.code, refused.err]).toEqual([2, expect.stringContaining('must be UTF-8')]);
    writeFileSync(file, '\n');
    expect((await api.run(['recipients', 'import', 'acme', file])).err).toContain('must name the columns');
    expect((await api.run(['recipients', 'import', 'acme', '/nowhere.csv'])).code).toBe(2);
    expect(api.asked).toHaveLength(1);
    // As Excel saves “Unicode text”.
    writeFileSync(file, Buffer.from('\ufeffname\temail\nJosé\tjose@example.com', 'utf16le'));
    await api.run(['recipients', 'import', 'acme', file]);
    expect(api.asked[1]?.body).toEqual({ csv: 'name\temail\nJosé\tjose@example.com' });
  });

  test('an export can be imported, and requires readable addresses', async () => {
    const recipient = {
      ...{ id: 'ann', name: 'Lee, "Ann"', email: 'ann@example.com', mobile: '+64211234567', locale: null },
      ...{ zone: null, channels: ['email', 'sms'], kinds: ['dispatched'], orderGroup: null },
      ...{ orderNumber: null, jobNumber: 7, paused: false, source: 'manual', revision: 1 },
      createdAt: '2026-11-21T12:00:00.000Z',
    };
    let role = 'operate';
    const api = await serve({
      'GET /v1/key': () => ({ json: { role } }),
      'GET /v1/accounts/acme/recipients': {
        json: { recipients: [recipient, { ...recipient, source: 'upstream' }], next: null },
      },
    });
    expect(line((await api.run(['recipients', 'export', 'acme'])).out)).toEqual([
      '\ufeffid,name,email,mobile,locale,zone,channels,kinds,orderGroup,orderNumber,jobNumber,paused',
      // Without the apostrophe a spreadsheet would evaluate it as a formula.
      'ann,"Lee, ""Ann""",ann@example.com,\'+64211234567,,,email sms,dispatched,,,7,false',
    ]);
    role = 'read';
    expect(await api.run(['recipients', 'export', 'acme'])).toMatchObject({ code: 5, out: '' });
  });

  test('a change removes fields set to none, and prints the API’s message with the name of the option', async () => {
    const refused = {
      status: 422,
      json: {
        type: 'urn:jobwire:problem:unprocessable-content',
        field: 'mobile',
        detail: 'mobile is missing.',
      },
    };
    const api = await serve({ 'PATCH /v1/accounts/acme/recipients/ann': refused });
    const args = ['--mobile', 'none', '--kinds', 'dispatched', '--pause'];
    const ended = await api.run(['recipients', 'change', 'acme', 'ann', ...args]);
    expect(ended).toMatchObject({ code: 3, err: '--mobile is missing.\n' });
    expect(api.asked[0]?.body).toEqual({ mobile: null, kinds: ['dispatched'], paused: true });
    expect((await api.run(['recipients', 'change', 'acme', 'ann'])).code).toBe(2);
  });
});

describe('notifications', () => {
  const settings = {
    ...{ enabled: false, since: null, dryRun: false, ownUser: false, windowSeconds: 300, maxAgeHours: 24 },
    ...{ locale: 'en-GB', zone: 'Europe/London', replyTo: null, revision: 3, warnings: ['Mind this.'] },
    branding: {
      ...{ name: 'Acme', logoUrl: 'https://x.example/a.png', color: '#112233' },
      ...{ website: null, footer: null },
    },
    sms: {
      ...{ enabled: false, senderId: null, monthlySegments: 1000 },
      quietHours: { from: '21:00', to: '08:00' },
    },
  };
  const path = '/v1/accounts/acme/notifications';

  test('keeps unnamed settings, and does not overwrite concurrent changes', async () => {
    const api = await serve({ [`GET ${path}`]: { json: settings }, [`PUT ${path}`]: { json: settings } });
    const args = ['--send', 'on', '--logo', 'none', '--quiet', '22:00-07:30', '--sms-limit', '50'];
    const ended = await api.run(['notifications', 'set', 'acme', ...args]);
    expect(ended).toMatchObject({ code: 0, err: 'Mind this.\n' });
    const put = api.asked.find(({ method }) => method === 'PUT');
    const { since: _, revision: __, warnings: ___, ...kept } = settings;
    expect(put?.headers['if-match']).toBe('"3"');
    expect(put?.body).toEqual({
      ...kept,
      enabled: true,
      branding: { ...settings.branding, logoUrl: null },
      sms: { ...settings.sms, monthlySegments: 50, quietHours: { from: '22:00', to: '07:30' } },
    });
  });

  test.each([
    [['set', 'acme'], /^Nothing to set\. /],
    [['set', 'acme', '--send', 'yes'], /^--send must be one of on, off\.$/],
    [['set', 'acme', '--quiet', '25:00-08:00'], /^--quiet must be HH:MM-HH:MM, /],
    [['set', 'acme', '--window', 'long'], /^--window must be an integer /],
    [['preview', 'acme'], /^--kind KIND is missing\.$/],
    [
      ['preview', 'acme', '--kind', 'x', '--channel', 'sms', '--html', 'f'],
      /^--html requires --channel email\.$/,
    ],
    [['preview', 'acme', '--kind', 'x', '--template', '/nowhere'], /^--template: \/nowhere can’t be read/],
  ])('%j is rejected without a request', async (args, sentence) => {
    const api = await serve({});
    const ended = await api.run(['notifications', ...args]);
    expect([ended.code, api.asked.length]).toEqual([2, 0]);
    expect(ended.err.trim()).toMatch(sentence);
  });

  test('a preview is printed without control characters, and its HTML is written unchanged', async () => {
    const html = '<p>\u001b[31mred</p>';
    const preview = {
      ...{ kind: 'dispatched', channel: 'email', locale: 'en-GB', zone: 'Europe/London', jobNumber: 7 },
      ...{ custom: false, subject: 'Gone\u001b[31m', html, text: 'Hello\u001b[31m\n\nBye\n' },
      ...{ segments: null, encoding: null },
    };
    const api = await serve({ [`POST ${path}/preview`]: { json: preview } });
    const file = join(folder, 'out.html');
    const args = ['--kind', 'dispatched', '--job', '7', '--html', file];
    const ended = await api.run(['notifications', 'preview', 'acme', ...args]);
    expect(api.asked[0]?.body).toEqual({ kind: 'dispatched', channel: 'email', jobNumber: 7 });
    expect(ended.out).not.toContain('\u001b');
    expect(line(ended.out)).toEqual(['Subject  Gone [31m', 'Hello [31m', 'Bye']);
    expect(readFileSync(file, 'utf8')).toBe(html);
  });

  test('messages of a job include pending ones', async () => {
    const upcoming = [{ kind: 'dispatched', dueAt: '2026-11-21T12:00:00.000Z', jobs: [7, 8] }];
    const api = await serve({
      'GET /v1/accounts/acme/jobs/7/messages': { json: { messages: [], upcoming, next: null } },
    });
    const ended = await api.run(['messages', 'list', 'acme', '--job', '7']);
    expect(line(ended.err)).toEqual([
      expect.stringMatching(/^Upcoming \(.*\): dispatched, 2 jobs\.$/),
      'There are no messages.',
    ]);
    const both = await api.run(['messages', 'list', 'acme', '--job', '7', '--state', 'sent']);
    expect([both.code, both.err]).toEqual([2, 'Only one of --job, --recipient and --state can be given.\n']);
  });
});
