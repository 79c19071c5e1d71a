/**
 * Preflight and smoke test against a cell on ministack. Not covered: requests to function URLs, which are invocations here; the
 * sandbox of SMS; limits of an AWS account.
 */
import './clock.ts';
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { text } from 'node:stream/consumers';
import { fileURLToPath } from 'node:url';
import { ListSecretsCommand, SecretsManagerClient } from '@aws-sdk/client-secrets-manager';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { Deployment } from './deployment.ts';
import { listen } from './emulated.ts';
import { installMinistack, onMinistack } from './ministack.ts';
import { createApiClient } from './partners.ts';

const STACK = 'jobwire-prod-us';
const SMOKE = `${STACK}-smoke`;
const ROOT = fileURLToPath(new URL('../../', import.meta.url));
const SETTINGS = `${ROOT}jobwire.cells.example.json`;
const PATIENCE_MS = 600_000;

/** As the root user of the account. */
const authorize = (service: string) =>
  `AWS4-HMAC-SHA256 Credential=test/20260101/us-east-1/${service}/aws4_request, SignedHeaders=host, Signature=0`;

const ministack = await installMinistack();

describe.skipIf(ministack.kind === 'missing')('operator commands on ministack', () => {
  let cell: Deployment;
  let functionUrls: Awaited<ReturnType<typeof listen>>;
  let api: ReturnType<typeof createApiClient>;

  beforeAll(async () => {
    if (ministack.kind === 'missing') return;
    functionUrls = await listen(createServer((request, response) => void answer(request, response)));
    const hosts = { '*.lambda-url.us-east-1.on.aws': `http://127.0.0.1:${functionUrls.port}` };
    cell = await onMinistack(ministack, `${ROOT}cdk.out`, STACK)({ hosts });
    const { secret } = (await cell.invoke('operate', { do: 'keys.create', name: 'test' })) as {
      secret: string;
    };
    api = createApiClient(cell, secret);
  }, PATIENCE_MS);

  afterAll(async () => {
    await cell?.[Symbol.asyncDispose]();
    await functionUrls?.close();
  });

  /** A request to the function URL, as Lambda passes it on. */
  async function answer(...[request, response]: Parameters<Parameters<typeof createServer>[1] & object>) {
    const { pathname, search } = new URL(request.url ?? '/', 'http://unused');
    const event = {
      version: '2.0',
      ...{ rawPath: pathname, rawQueryString: search.slice(1), headers: request.headers },
      requestContext: { http: { method: request.method, path: pathname }, domainName: request.headers.host },
      ...{ body: Buffer.from(await text(request)).toString('base64'), isBase64Encoded: true },
    };
    const { statusCode, headers, body, isBase64Encoded } = (await requestLambda(SMOKE, event)) as {
      statusCode: number;
      headers: Record<string, string>;
      body?: string;
      isBase64Encoded?: boolean;
    };
    response.writeHead(statusCode, headers);
    response.end(Buffer.from(body ?? '', isBase64Encoded ? 'base64' : 'utf8'));
  }

  async function requestLambda(name: string, event: unknown): Promise<unknown> {
    const authorization = authorize('lambda');
    const url = `${cell.aws.endpoint}/2015-03-31/functions/${name}/invocations`;
    const response = await fetch(url, {
      ...{ method: 'POST', headers: { authorization }, body: JSON.stringify(event) },
    });
    return response.json();
  }

  /** Starts a command. `output` grows while it runs. */
  function start(command: string, args: readonly string[], credentials = cell.aws.credentials) {
    const child: ChildProcess = spawn(
      process.execPath,
      [`${ROOT}infra/${command}.ts`, '--cell', 'prod-us', '--settings', SETTINGS, ...args],
      {
        cwd: ROOT,
        env: {
          PATH: process.env.PATH ?? '',
          AWS_ENDPOINT_URL: cell.aws.endpoint,
          AWS_ACCESS_KEY_ID: credentials.accessKeyId,
          AWS_SECRET_ACCESS_KEY: credentials.secretAccessKey,
          AWS_EC2_METADATA_DISABLED: 'true',
          CDK_DISABLE_CLI_TELEMETRY: 'true',
        },
      },
    );
    const running = { child, output: '', ended: once(child, 'exit').then(([code]) => code as number | null) };
    for (const pipe of [child.stdout, child.stderr]) {
      pipe?.setEncoding('utf8').on('data', (part: string) => {
        running.output += part;
      });
    }
    return running;
  }

  /** Creates a user without any permission. */
  async function createUser(UserName: string) {
    const call = (Action: string) =>
      fetch(cell.aws.endpoint, {
        method: 'POST',
        headers: { authorization: authorize('iam') },
        body: new URLSearchParams({ Action, UserName, Version: '2010-05-08' }),
      }).then((response) => response.text());
    await call('CreateUser');
    const key = await call('CreateAccessKey');
    const read = (tag: string) => new RegExp(`<${tag}>(.*?)<`).exec(key)?.[1] ?? '';
    return { accessKeyId: read('AccessKeyId'), secretAccessKey: read('SecretAccessKey') };
  }

  const startSmoke = () => start('smoke', ['--url', cell.apiUrl]);

  async function printed(running: ReturnType<typeof start>, line: string): Promise<void> {
    const { child } = running;
    while (!running.output.includes(line)) {
      expect(child.exitCode, running.output).toBeNull();
      await Promise.race([once(child.stdout ?? child, 'data'), running.ended]);
    }
  }

  /** Returns the names of everything that smoke tests have left in the cell and in AWS. */
  async function listRemains(): Promise<unknown> {
    const read = async (path: string) => (await api.get(path)).json() as Promise<Record<string, object[]>>;
    const secrets = new SecretsManagerClient(cell.aws);
    const { SecretList = [] } = await secrets.send(new ListSecretsCommand({}));
    secrets.destroy();
    const { accounts } = await read('/v1/accounts');
    const { endpoints } = await read('/v1/endpoints');
    const { keys } = (await read('/v1/keys')) as { keys: { name: string }[] };
    return {
      ...{ accounts, endpoints, keys: keys.map(({ name }) => name) },
      secrets: SecretList.filter(({ Name = '' }) => Name.includes('smoke')),
      // A function that does not exist returns an error.
      stack: JSON.stringify(await requestLambda(SMOKE, {})).includes('not found') ? 'deleted' : 'there',
    };
  }

  const NOTHING = { accounts: [], endpoints: [], keys: ['test'], secrets: [], stack: 'deleted' };

  test('preflight reports each check on one line, and exits with code 1 on a problem', async () => {
    const running = start('preflight', []);
    expect(await running.ended).toBe(1);
    expect(running.output.trim().split('\n')).toEqual([
      'ok       AWS account, us-east-1: 000000000000, as in the settings',
      expect.stringMatching(/^ok {7}CDK bootstrap, us-east-1: version \d+$/),
      expect.stringMatching(/^ok {7}Lambda concurrency, us-east-1: \d+ unreserved, 242 needed \(prod-us\)$/),
      'ok       API Gateway throttling, us-east-1: 10000 requests per second and bursts of 5000; 100 and 200 needed (prod-us)',
      'ok       SES, prod-us: production access, 50000 mails in 24 hours',
      'ok       SES identity print.example, prod-us: verified',
      // Ministack does not support it. A check without a response of AWS is not a success.
      expect.stringMatching(/^problem {2}SMS, prod-us: Not checked: InvalidAction/),
      '1 of the checks found a problem.',
    ]);
  });

  test('the bootstrap version that preflight requires is that of the synthesized stacks', () => {
    const { artifacts } = JSON.parse(readFileSync(`${ROOT}cdk.out/manifest.json`, 'utf8'));
    expect(artifacts[STACK].properties.requiresBootstrapStackVersion).toBe(6);
    expect(readFileSync(`${ROOT}infra/preflight.ts`, 'utf8')).toContain('BOOTSTRAP_VERSION = 6;');
  });

  test('preflight reports checks that the credentials do not permit as problems, with the permission', async () => {
    const running = start('preflight', [], await createUser('nobody'));
    expect(await running.ended).toBe(1);
    // Of these two, ministack implements the permissions.
    expect(running.output.split('\n')).toEqual(
      expect.arrayContaining([
        'problem  CDK bootstrap, us-east-1: Not checked: the credentials lack the permission ssm:GetParameter.',
        'problem  SES, prod-us: Not checked: the credentials lack the permission ses:GetAccount.',
      ]),
    );
  });

  test(
    'a smoke test that was killed is removed by the next one, which passes and removes everything',
    async () => {
      const killed = startSmoke();
      await printed(killed, 'is registered');
      killed.child.kill('SIGKILL');
      await killed.ended;
      // Its webhooks stay in the queue. The next run cannot verify them.
      await cell.tick();
      await cell.settled();
      const running = startSmoke();
      await printed(running, 'is registered');
      for (let minute = 0; minute < 4 && running.child.exitCode === null; minute += 1) {
        await cell.tick();
        await cell.settled();
        await cell.passTime(61);
      }
      expect(await running.ended, running.output).toBe(0);
      expect(running.output).toMatch(/^ok {7}webhook: received all of them, signed$/m);
      expect(await listRemains()).toEqual(NOTHING);
    },
    PATIENCE_MS,
  );

  test(
    'a smoke test that is interrupted removes everything and exits with code 1',
    async () => {
      const running = startSmoke();
      await printed(running, 'is registered');
      running.child.kill('SIGINT');
      expect(await running.ended, running.output).toBe(1);
      expect(await listRemains()).toEqual(NOTHING);
    },
    PATIENCE_MS,
  );
});
