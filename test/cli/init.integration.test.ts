/** `jobwire init` of the built CLI against a sandbox: the files that it writes, and a Jobwire that starts with them. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  realpathSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join, relative } from 'node:path';
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest';
import type { Sandbox } from '../../sandbox/server.ts';
import type { SandboxAccount } from '../../sandbox/world/world.ts';
import { binary, loadCli, type RunOptions } from '../support/cli-site.ts';
import { cleanEnv, fakeApi, hasScript, launch } from '../support/command.ts';
import { builtProgram, generatedKey, startJobwire, startSandbox } from '../support/jobwire.ts';

const ends: (() => unknown)[] = [];
let sandbox: Sandbox;
let acme: SandboxAccount;
let cli: Awaited<ReturnType<typeof loadCli>>;
beforeAll(async () => {
  const started = await startSandbox({}, (stop) => ends.push(stop));
  sandbox = started.sandbox;
  acme = started.world.addAccount({ region: 'us', name: 'acme' });
  acme.createJob({ status: 'Scheduled' });
  cli = await loadCli(join(binary, '..'));
});
afterAll(async () => {
  for (const end of ends.reverse()) await end();
});

function createFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), 'jobwire-init-'));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  return folder;
}

/** The options for the account, with changes. `undefined` omits an option. */
function options(folder: string, changes: Record<string, string | undefined> = {}): string[] {
  const values = {
    config: join(folder, 'jobwire.json'),
    ...{ account: 'acme', region: 'us', 'client-id': acme.clientId },
    ...{ 'base-url': sandbox.apiUrl('us'), 'auth-url': sandbox.authUrl('us') },
    ...changes,
  };
  return Object.entries(values).flatMap(([name, value]) => (value === undefined ? [] : [`--${name}`, value]));
}
const init = (args: readonly string[], more: RunOptions = {}) =>
  cli.run(['init', ...args], { input: acme.clientSecret, ...more });
const getMode = (file: string) => statSync(file).mode & 0o777;
const configWith = (folder: string, clientSecret: string) => ({
  $schema: relative(realpathSync(folder), join(realpathSync(binary), '../../jobwire.schema.json')),
  dataDir: join(folder, '.jobwire'),
  regions: { us: { baseUrl: sandbox.apiUrl('us'), authUrl: sandbox.authUrl('us'), realm: 'us' } },
  accounts: [{ id: 'acme', region: 'us', clientId: acme.clientId, clientSecret }],
});
const readConfig = (folder: string) => JSON.parse(readFileSync(join(folder, 'jobwire.json'), 'utf8'));

describe('init', () => {
  test('writes a configuration and a closed secret file, with which Jobwire tracks the account', {
    timeout: 60_000,
  }, async () => {
    const folder = createFolder();
    const args = ['init', ...options(folder, { config: undefined })];
    const written = await launch([process.execPath, binary, ...args], {
      ...{ cwd: folder, input: `${acme.clientSecret}\n` },
    }).ended;
    expect(written).toMatchObject({ code: 0, err: '' });
    expect(readdirSync(folder).sort()).toEqual(['acme.secret', 'jobwire.json']);
    expect(readFileSync(join(folder, 'jobwire.json'), 'utf8')).toBe(
      `${JSON.stringify(configWith(folder, 'file:acme.secret'), null, 2)}\n`,
    );
    expect(readFileSync(join(folder, 'acme.secret'), 'utf8')).toBe(`${acme.clientSecret}\n`);
    expect(getMode(join(folder, 'acme.secret'))).toBe(0o600);
    expect(written.out).not.toContain(acme.clientSecret);
    const apiKeyFile = join(folder, '.jobwire', 'api-key');
    expect(written.out.slice(written.out.indexOf('Written:'))).toBe(
      [
        'Written: jobwire.json',
        'Written: acme.secret (the client secret; only you can read it)',
        '',
        'To start Jobwire:',
        `  node ${binary} start --config jobwire.json`,
        '',
        'The first start creates the API key. Then, in another terminal:',
        `  export JOBWIRE_API_KEY="$(cat ${apiKeyFile})"`,
        `  node ${binary} accounts show acme`,
        `  node ${binary} events tail --account acme`,
        `  node ${binary} endpoints add https://receiver.example/webhooks --types 'job.*'`,
        '',
      ].join('\n'),
    );

    // Without a key, the error names that of the Jobwire of the folder.
    mkdirSync(join(folder, '.jobwire'), { mode: 0o700 });
    writeFileSync(apiKeyFile, '');
    const keyless = await launch([process.execPath, binary, 'accounts', 'list'], { cwd: folder }).ended;
    expect(keyless).toMatchObject({
      code: 5,
      err: expect.stringMatching(/^The API key is missing\. .* pass --key-file \.jobwire\/api-key, or /),
    });
    rmSync(apiKeyFile);

    // Another working folder: the data and the secret are found nevertheless.
    const config = ['--config', join(folder, 'jobwire.json'), '--port', '0'];
    const running = await startJobwire(config, { command: builtProgram(), cwd: tmpdir() });
    await running.printed(/account\.baselined/);
    expect(await generatedKey(running)).toBe(readFileSync(apiKeyFile, 'utf8').trim());
    const tail = ['events', 'tail', '--account', 'acme', '--since', '1h', '--once', '1', '--json'];
    const env = {
      JOBWIRE_URL: running.url,
      JOBWIRE_API_KEY: readFileSync(apiKeyFile, 'utf8').trim(),
    };
    const event = await cli.run(tail, { env });
    expect(JSON.parse(event.out)).toMatchObject({ type: 'account.baselined' });
  });

  test('refers to a secret in a variable or a file, and does not copy it', async () => {
    const folder = createFolder();
    const fromVariable = await init([...options(folder), '--client-secret-env', 'ACME', '--json'], {
      env: { ACME: acme.clientSecret },
    });
    expect(JSON.parse(fromVariable.out)).toEqual({
      config: join(folder, 'jobwire.json'),
      secretFile: null,
      signingSecretFile: null,
      apiKeyFile: join(folder, '.jobwire', 'api-key'),
      test: expect.objectContaining({ ok: true, openJobs: 1 }),
    });
    expect(readConfig(folder)).toEqual(configWith(folder, 'env:ACME'));
    const file = join(createFolder(), 'a secret');
    writeFileSync(file, `${acme.clientSecret}\n`);
    const fromFile = await init([...options(folder), '--client-secret-file', file, '--force']);
    expect(fromFile).toMatchObject({ code: 0, err: '' });
    expect(readConfig(folder)).toEqual(configWith(folder, `file:${file}`));
    expect(readdirSync(folder)).toEqual(['jobwire.json']);
  });

  test('reports the setting that fails the test, and writes nothing', async () => {
    const gone = await fakeApi({});
    await gone.stop();
    const us = sandbox.apiUrl('us');
    for (const [changes, input, message] of [
      [{}, 'another-secret', /^fail {2}Token +The client id or the client secret is wrong \(HTTP 401\)/],
      [{ realm: 'moon' }, undefined, /^fail {2}Token .* Check realm and authUrl of region "us"\./],
      [{ 'base-url': `${us}/v9` }, undefined, /^fail {2}Identity .* Check the path of baseUrl of region/m],
      [{ 'base-url': gone.url }, undefined, /^fail {2}Identity .*can’t be reached.*Check baseUrl of region/m],
      [{ 'auth-url': gone.url }, undefined, /^fail {2}Token .*can’t be reached.*Check authUrl of region/],
    ] as const) {
      const folder = createFolder();
      const ended = await init(options(folder, changes), { input: input ?? acme.clientSecret });
      expect(ended.out).toMatch(message);
      expect(ended.out.match(/^fail/gm)).toHaveLength(1);
      expect(ended).toMatchObject({
        code: 1,
        err: 'Nothing was written. To skip the test, use --no-test.\n',
      });
      expect(ended.out + ended.err).not.toContain(input ?? acme.clientSecret);
      expect(readdirSync(folder)).toEqual([]);
    }
  });

  test('rejects missing and invalid options, each with its name, and writes nothing', async () => {
    const folder = createFolder();
    for (const [changes, input, message] of [
      [
        { account: undefined, 'base-url': undefined },
        'x',
        '--account, --base-url are missing. Without a terminal, the command does not prompt.',
      ],
      [{ 'auth-url': 'login.example.com' }, 'x', /^--auth-url must be a URL that begins with http:/],
      [{ account: 'Acme Ltd' }, 'x', /^--account must be 1–63 lower-case letters/],
      [{ 'client-id': ' acme' }, 'x', /^--client-id must not begin or end with a space/],
      [{}, ' a-secret', /^The client secret must not begin or end with a space/],
      [{}, '', /^The client secret is missing\. Provide it on stdin, or with --client-secret-file or /],
      [
        { config: join(folder, 'none', 'jobwire.json') },
        'x',
        /jobwire\.json can’t be written: the file or its folder does not exist \(ENOENT\)/,
      ],
    ] as const) {
      const ended = await init(options(folder, changes), { input });
      expect(ended).toMatchObject({ code: 2, out: '' });
      if (typeof message === 'string') expect(ended.err).toBe(`${message}\n`);
      else expect(ended.err).toMatch(message);
      expect(ended.err).not.toContain('a-secret');
    }
    expect(readdirSync(folder)).toEqual([]);
  });

  test('keeps existing files, unless --force is given; then the secret file is closed', async () => {
    const folder = createFolder();
    const [config, secret] = [join(folder, 'jobwire.json'), join(folder, 'acme.secret')];
    for (const file of [config, secret]) {
      writeFileSync(file, 'mine', { mode: 0o644 });
      expect(await init(options(folder))).toEqual({
        ...{ code: 2, out: '' },
        err: `${file} exists. To replace it, use --force. To keep it, use --config with a file in another folder.\n`,
      });
      expect([readdirSync(folder).length, readFileSync(file, 'utf8')]).toEqual([1, 'mine']);
      if (file === config) rmSync(file);
    }
    writeFileSync(config, 'mine');
    expect(await init([...options(folder), '--force'])).toMatchObject({ code: 0 });
    expect(readConfig(folder)).toEqual(configWith(folder, 'file:acme.secret'));
    expect(getMode(secret)).toBe(0o600);
  });

  test('--no-test writes the configuration without a request to the ordering API', async () => {
    const folder = createFolder();
    const changes = { 'base-url': 'https://orders.invalid', 'auth-url': 'https://login.invalid', realm: 'x' };
    const written = await init([...options(folder, changes), '--no-test'], { input: 'not-yet-valid' });
    expect(written).toMatchObject({ code: 0, err: '' });
    expect(readConfig(folder).regions.us.realm).toBe('x');
  });
});

describe.skipIf(!hasScript())('init on a terminal', () => {
  /** Runs `init` in a folder on a pseudo-terminal, and answers each prompt when it appears. `args` need no quotes. */
  async function converse(
    folder: string,
    dialog: readonly (readonly [prompt: string, answer: string])[],
    args: readonly string[] = [],
  ) {
    const command = [process.execPath, binary, 'init', ...args].join(' ');
    const child = spawn('script', ['-qec', command, '/dev/null'], {
      ...{ cwd: folder, env: { ...cleanEnv, TERM: 'xterm', COLUMNS: '200' } },
    });
    onTestFinished(() => void child.kill('SIGKILL'));
    const rest = [...dialog];
    let printed = '';
    let unread = '';
    child.stdout.setEncoding('utf8').on('data', (text: string) => {
      printed += text;
      unread += text;
      for (let [next] = rest; next && unread.includes(next[0]); [next] = rest) {
        unread = unread.slice(unread.indexOf(next[0]) + next[0].length);
        child.stdin.write(next[1]);
        rest.shift();
      }
    });
    const [code] = await once(child, 'close');
    return { code: code as number, printed, rest };
  }

  test('prompts for each setting, again after an invalid value or a failed test, and never shows the secret', async () => {
    const folder = createFolder();
    const ended = await converse(folder, [
      ['Id of the account in Jobwire, such as acme: ', 'Acme Ltd\r'],
      ['The value must be 1–63 lower-case letters', ''],
      ['Id of the account in Jobwire, such as acme: ', 'acme\r'],
      ['Region of the ordering API, such as us: ', 'us\r'],
      ['Base URL of the ordering API: ', `${sandbox.apiUrl('us')}\r`],
      ['URL of the server that issues tokens for the ordering API: ', `${sandbox.authUrl('us')}\r`],
      ['Realm on that server [us]: ', 'moon\r'],
      ['Client id: ', `${acme.clientId}\r`],
      ['The client secret: ', '\r'],
      ['The client secret must not be empty.', ''],
      ['The client secret: ', `${acme.clientSecret}\r`],
      ['The token endpoint does not know this realm', ''],
      ['Id of the account in Jobwire, such as acme [acme]: ', '\r'],
      ['Region of the ordering API, such as us [us]: ', '\r'],
      [`Base URL of the ordering API [${sandbox.apiUrl('us')}]: `, '\r'],
      [`URL of the server that issues tokens for the ordering API [${sandbox.authUrl('us')}]: `, '\r'],
      ['Realm on that server [moon]: ', 'us\r'],
      [`Client id [${acme.clientId}]: `, '\r'],
      ['The client secret: ', `${acme.clientSecret}\r`],
      ['URL of a webhook endpoint to add (Enter for none): ', 'http://shop.example\r'],
      ['It must begin with https', ''],
      ['URL of a webhook endpoint to add (Enter for none): ', 'http://localhost\r'],
      ['Allow private networks? [y/N]: ', '\r'],
      ['It must begin with https', ''],
      ['URL of a webhook endpoint to add (Enter for none): ', '\r'],
    ]);
    expect(ended).toMatchObject({ code: 0, rest: [] });
    expect(ended.printed).not.toContain(acme.clientSecret);
    expect(readConfig(folder)).toEqual(configWith(folder, 'file:acme.secret'));
    expect(getMode(join(folder, 'acme.secret'))).toBe(0o600);
  });

  test('a private endpoint: explains the setting, and sets it if the user agrees', async () => {
    const endpoints = [{ id: 'webhook', url: 'http://10.0.0.5/hook', secret: 'file:webhook_signing.secret' }];
    const expected = { endpoints, webhooks: { allowPrivateNetworks: true } };
    const folder = createFolder();
    const given = options(folder, { config: undefined, realm: 'us' });
    const end = [
      ['only with the setting webhooks.allowPrivateNetworks, which applies to all endpoints.', ''],
      ['Allow private networks? [y/N]: ', 'y\r'],
    ] as const;
    const secret = ['The client secret: ', `${acme.clientSecret}\r`] as const;
    const asked = await converse(
      folder,
      [secret, ['URL of a webhook endpoint to add (Enter for none): ', 'http://10.0.0.5/hook\r'], ...end],
      given,
    );
    expect(asked).toMatchObject({ code: 0, rest: [] });
    expect(readConfig(folder)).toMatchObject(expected);
    const flag = [...given, '--force', '--endpoint', 'http://10.0.0.5/hook'];
    expect(await converse(folder, [...end, secret], flag)).toMatchObject({ code: 0, rest: [] });
    expect(readConfig(folder)).toMatchObject(expected);
  });

  test('a private endpoint as an option, without a terminal, names the option that allows it', async () => {
    const ended = await init([...options(createFolder()), '--endpoint', 'http://127.0.0.1:3000']);
    expect(ended).toMatchObject({
      code: 2,
      err: expect.stringMatching(
        / setting webhooks\.allowPrivateNetworks, .* add --allow-private-networks\.$/m,
      ),
    });
  });

  test.each(['\u0003', '\u0004'])('Ctrl-C and Ctrl-D exit with 130, and write nothing (%j)', async (key) => {
    const folder = createFolder();
    const { code } = await converse(folder, [['Id of the account in Jobwire', key]]);
    expect(code).toBe(130);
    expect(existsSync(join(folder, 'jobwire.json'))).toBe(false);
  });
});
