/**
 * `npm run smoke -- --cell NAME`: proves that a deployed cell polls, records and delivers. It deploys a simulated ordering API,
 * registers an account against it, waits until every sink has its events, and removes everything it created.
 */
import { execFile } from 'node:child_process';
import { hash, randomBytes } from 'node:crypto';
import { mkdtempSync, rmSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { delimiter, dirname, join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { parseArgs, promisify } from 'node:util';
import {
  CreateSecretCommand,
  DeleteSecretCommand,
  ListSecretsCommand,
  SecretsManagerClient,
} from '@aws-sdk/client-secrets-manager';
import { DeleteMessageBatchCommand, ReceiveMessageCommand, SQSClient } from '@aws-sdk/client-sqs';
import { type Client, createClient } from '../client/index.ts';
import { SMOKE_CLIENT, SMOKE_HOOK, type SmokeWebhook } from '../functions/handlers/smoke-sandbox.ts';
import { createReceiver, parseEvent, parseMessage } from '../receive/index.ts';
import { secretPrefix } from '../shared/secrets.ts';
import { readOutputs, requestAws } from './aws.ts';
import { type Cell, findCell, SMOKE_PREFIX, smokeStackName } from './cell.ts';
import { readStages, SETTINGS_FILE } from './settings.ts';

const USAGE = `Usage: npm run smoke -- --cell NAME [options]

Deploys a simulated ordering API, registers an account of it in the cell, and waits until the feed, the topic and a webhook
have its events. Then removes everything it created. The result is one line per sink; the exit code is 1 on a problem.

  --cell NAME      cell of the settings: <stage>-<cell>, or <cell> if it is in one stage only
  --settings FILE  settings file (${SETTINGS_FILE})
  --url URL        address of the cell's HTTP API (output ApiUrl)
  --minutes N      maximum time to wait for the events, 1 to 60 (10)`;

const ROOT = join(import.meta.dirname, '..');
const KEY_NAME = 'jobwire-smoke';
const KEY_LIFETIME_MS = 4 * 3_600_000;
const POLL_INTERVAL_MS = 2_000;
const BATCH = 10;
const run = promisify(execFile);

/** The arguments or the cell are not usable; the message says what to do. */
class SmokeError extends Error {}

/** Removals for the end, last created first. */
class Cleanup {
  readonly #steps: { readonly what: string; readonly by: string; readonly remove: () => Promise<unknown> }[] =
    [];

  /** Registers before the creation, so that a creation that was interrupted is removed too. `by`: how to remove it by hand. */
  add(what: string, by: string, remove: () => Promise<unknown>): void {
    this.#steps.unshift({ what, by, remove });
  }

  /** Removes everything, even if some of it cannot be removed. Returns whether all is removed. */
  async run(): Promise<boolean> {
    let complete = true;
    for (const { what, by, remove } of this.#steps) {
      try {
        await remove();
        print('ok', 'removed', what);
      } catch (cause) {
        complete = false;
        print('problem', 'not removed', `${what}: ${explain(cause)} Remove it: ${by}`);
      }
    }
    return complete;
  }
}

interface Options {
  readonly cell: Cell;
  readonly settings: string;
  readonly url: string | undefined;
  readonly minutes: number;
  readonly signal: AbortSignal;
}

/** Runs the smoke test. Returns whether it succeeded and everything is removed. */
async function smoke(options: Options): Promise<boolean> {
  const cleanup = new Cleanup();
  let passed = false;
  try {
    passed = await probe(options, cleanup);
  } catch (cause) {
    print('problem', 'smoke', options.signal.aborted ? 'Interrupted.' : explain(cause));
  }
  const clean = await cleanup.run();
  return passed && clean;
}

async function probe({ cell, settings, url, minutes, signal }: Options, cleanup: Cleanup): Promise<boolean> {
  const { name, id: cellId, stage, region } = cell;
  const { awsRegion } = cell.cell;
  const outputs = await readOutputs(awsRegion, `jobwire-${name}`);
  const { TopicArn = '', ApiUrl = '', OperateFunction = '' } = outputs;
  if (!TopicArn)
    throw new SmokeError(`The stack jobwire-${name} is not deployed. Run "npx cdk deploy jobwire-${name}".`);

  const key = await createKey(OperateFunction, awsRegion);
  const api = createClient({ url: url ?? ApiUrl, key: key.secret });
  cleanup.add('the API key', 'it expires within four hours', () =>
    api.delete('/v1/keys/{id}', { params: { path: { id: key.id } } }),
  );
  const secrets = new SecretsManagerClient({ region: awsRegion });
  const ownSecrets = `${secretPrefix(stage.stage, cellId)}${SMOKE_PREFIX}`;
  await removeRemains(api, key.id, secrets, ownSecrets);

  const id = `${SMOKE_PREFIX}${randomBytes(4).toString('hex')}`;
  const secret = randomBytes(32).toString('base64url');
  const stack = await deploy(cell, settings, { topicArn: TopicArn, secret, signal }, cleanup);
  signal.throwIfAborted();

  const sandbox = stack.Url ?? '';
  const secretRef = `${secretPrefix(stage.stage, cellId)}${id}`;
  const { WebhooksUrl = '', MessagesUrl = '' } = stack;
  cleanup.add(`the secret ${secretRef}`, `aws secretsmanager delete-secret --secret-id ${secretRef}`, () =>
    deleteSecret(secrets, secretRef),
  );
  const upstream = { baseUrl: `${sandbox}${region}/api`, authUrl: `${sandbox}${region}/auth`, realm: region };
  const SecretString = JSON.stringify({ clientId: SMOKE_CLIENT, clientSecret: secret, upstream });
  await secrets.send(new CreateSecretCommand({ Name: secretRef, SecretString }));

  const path = { params: { path: { id } } };
  cleanup.add(`the account ${id}`, `jobwire accounts delete ${id} --yes`, () =>
    api.delete('/v1/accounts/{id}', path),
  );
  await api.post('/v1/accounts', { body: { id, secretRef, pollIntervalSeconds: 60, paused: true } });
  const signing = `whsec_${randomBytes(32).toString('base64')}`;
  cleanup.add(`the endpoint ${id}`, `jobwire endpoints remove ${id}`, () =>
    api.delete('/v1/endpoints/{id}', path),
  );
  await api.post('/v1/endpoints', {
    body: {
      ...{ id, accounts: [id], secret: signing, url: `${sandbox}${SMOKE_HOOK}` },
      headers: { authorization: `Bearer ${secret}` },
    },
  });

  await api.post('/v1/accounts/{id}/resume', path);
  print('ok', 'account', `${id} is registered; its first poll is due within a minute`);

  // Webhooks wait in the queue until they are read.
  const receiver = createReceiver({ secret: signing, toleranceSeconds: 3_600 });
  const queues = new SQSClient({ region: awsRegion });
  const seen = { topic: new Set<string>(), webhook: new Set<string>() };
  const until = performance.now() + minutes * 60_000;
  for (;;) {
    const feed = await readFeed(api, id);
    for (const body of await take(queues, MessagesUrl)) seen.topic.add(parseMessage(body).id);
    for (const body of await take(queues, WebhooksUrl)) {
      const webhook = JSON.parse(body) as SmokeWebhook;
      // Webhooks of a run that was killed have another secret.
      if (!parseEvent(webhook.body).id.startsWith(`${id}.`)) continue;
      seen.webhook.add((await receiver.receive(webhook.body, webhook.headers)).id);
    }
    const jobEvents = feed.filter(({ type }) => type.startsWith('job.')).length;
    const baselined = feed.some(({ type }) => type === 'account.baselined');
    const missing = (sink: Set<string>) => feed.filter((event) => !sink.has(event.id)).length;
    const complete = baselined && jobEvents > 0;
    if (complete && missing(seen.topic) + missing(seen.webhook) === 0) {
      print('ok', 'feed', `${feed.length} events, ${jobEvents} of them about jobs`);
      print('ok', 'topic', 'received all of them');
      print('ok', 'webhook', 'received all of them, signed');
      return true;
    }
    if (performance.now() > until) {
      const { state, problem } = await api.get('/v1/accounts/{id}/status', path);
      print(
        complete ? 'ok' : 'problem',
        'feed',
        complete
          ? `${feed.length} events`
          : `${baselined ? 'no event about a job' : 'no baseline'} within ${minutes} minutes; the account is ${state}${problem ? `: ${problem}` : ''}. See tick-not-running and polls-incomplete in docs/runbook.md.`,
      );
      for (const [sink, ids] of Object.entries(seen)) {
        const lacks = missing(ids);
        if (lacks > 0)
          print(
            'problem',
            sink,
            `${lacks} of ${feed.length} events are missing. See oldest-undelivered in docs/runbook.md.`,
          );
      }
      return false;
    }
    await sleep(POLL_INTERVAL_MS, undefined, { signal });
  }
}

/** Creates an API key with the operator's function. */
async function createKey(fn: string, region: string): Promise<{ id: string; secret: string }> {
  const text = await requestAws({
    ...{ service: 'lambda', region, path: `/2015-03-31/functions/${fn}/invocations`, timeoutMs: 60_000 },
    json: {
      ...{ do: 'keys.create', name: KEY_NAME },
      expiresAt: new Date(Date.now() + KEY_LIFETIME_MS).toISOString(),
    },
  });
  const { key, secret, error } = JSON.parse(text) as {
    key?: { id: string };
    secret?: string;
    error?: { message: string };
  };
  if (!key || !secret)
    throw new SmokeError(`No API key was created: ${error?.message ?? 'the function failed.'}`);
  return { id: key.id, secret };
}

/** Removes what runs left that were killed, except the stack: it is deployed again. */
async function removeRemains(
  api: Client,
  ownKey: string,
  secrets: SecretsManagerClient,
  ownSecrets: string,
): Promise<void> {
  const report = (what: string) => print('ok', 'removed', `${what} of an earlier run`);
  for await (const { id } of api.list('/v1/endpoints', 'endpoints')) {
    if (!id.startsWith(SMOKE_PREFIX)) continue;
    await api.delete('/v1/endpoints/{id}', { params: { path: { id } } });
    report(`the endpoint ${id}`);
  }
  for await (const { id } of api.list('/v1/accounts', 'accounts')) {
    if (!id.startsWith(SMOKE_PREFIX)) continue;
    await api.delete('/v1/accounts/{id}', { params: { path: { id } } });
    report(`the account ${id}`);
  }
  for await (const { id, name } of api.list('/v1/keys', 'keys')) {
    if (name !== KEY_NAME || id === ownKey) continue;
    await api.delete('/v1/keys/{id}', { params: { path: { id } } });
    report(`the API key ${id}`);
  }
  const Filters = [{ Key: 'name' as const, Values: [ownSecrets] }];
  const { SecretList = [] } = await secrets.send(new ListSecretsCommand({ Filters }));
  for (const { Name = '' } of SecretList) {
    await deleteSecret(secrets, Name);
    report(`the secret ${Name}`);
  }
}

async function deleteSecret(secrets: SecretsManagerClient, SecretId: string): Promise<void> {
  await secrets.send(new DeleteSecretCommand({ SecretId, ForceDeleteWithoutRecovery: true }));
}

/** Deploys the stack of the smoke test and returns its outputs. */
async function deploy(
  cell: Cell,
  settings: string,
  given: { readonly topicArn: string; readonly secret: string; readonly signal: AbortSignal },
  cleanup: Cleanup,
): Promise<Record<string, string>> {
  const stack = smokeStackName(cell.name);
  const folder = mkdtempSync(join(tmpdir(), 'jobwire-smoke-'));
  const context = {
    ...{ cells: settings, cell: cell.name, topicArn: given.topicArn },
    ...{ secretHash: hash('sha256', given.secret), startedAt: Date.now() },
  };
  const general = [
    ...['--app', 'node infra/smoke-app.ts', '--output', join(folder, 'out')],
    ...['--no-notices', '--no-color', '--ci'],
    ...Object.entries(context).flatMap(([name, value]) => ['-c', `${name}=${value}`]),
  ];
  const env = { ...process.env, PATH: `${dirname(process.execPath)}${delimiter}${process.env.PATH ?? ''}` };
  // In its own process group, so that Ctrl-C does not end a removal halfway.
  const cdk = (args: string[], signal?: AbortSignal) =>
    run(process.execPath, [join(ROOT, 'node_modules/aws-cdk/bin/cdk'), ...args, ...general], {
      ...{ cwd: ROOT, maxBuffer: 64 * 1024 * 1024, detached: true, env },
      ...(signal && { signal }),
    } as Parameters<typeof run>[2]).catch((cause: { stderr?: string }) => {
      const lines = String(cause.stderr ?? '')
        .split('\n')
        .filter((line) => line.trim() !== '');
      throw new SmokeError(`cdk ${args[0]} failed: ${lines.at(-1) ?? explain(cause)}`);
    });
  cleanup.add(`the stack ${stack}`, `aws cloudformation delete-stack --stack-name ${stack}`, async () => {
    await cdk(['destroy', stack, '--force']);
    rmSync(folder, { recursive: true, force: true });
  });
  print('ok', 'sandbox', `deploying the stack ${stack}`);
  const file = join(folder, 'outputs.json');
  await cdk(['deploy', stack, '--require-approval', 'never', '--outputs-file', file], given.signal);
  return JSON.parse(await readFile(file, 'utf8'))[stack];
}

async function readFeed(api: Client, id: string): Promise<{ id: string; type: string }[]> {
  const events: { id: string; type: string }[] = [];
  for (let after: string | undefined; ; ) {
    const page = await api.get('/v1/accounts/{id}/events', {
      params: { path: { id }, query: { limit: 1000, ...(after !== undefined && { after }) } },
    });
    events.push(...page.events);
    if (page.next === page.head) return events;
    after = page.next;
  }
}

/** Takes all messages from a queue and returns their bodies. */
async function take(queues: SQSClient, QueueUrl: string): Promise<string[]> {
  const bodies: string[] = [];
  for (;;) {
    const { Messages = [] } = await queues.send(
      new ReceiveMessageCommand({ QueueUrl, MaxNumberOfMessages: BATCH }),
    );
    if (Messages.length === 0) return bodies;
    bodies.push(...Messages.map(({ Body = '' }) => Body));
    const Entries = Messages.map(({ ReceiptHandle }, at) => ({ Id: String(at), ReceiptHandle }));
    await queues.send(new DeleteMessageBatchCommand({ QueueUrl, Entries }));
  }
}

function print(result: 'ok' | 'problem', subject: string, message: string): void {
  console.log(`${result.padEnd(8)} ${subject}: ${message}`);
}

function explain(cause: unknown): string {
  if (cause instanceof SmokeError) return cause.message;
  return cause instanceof Error ? `${cause.name}: ${cause.message}` : String(cause);
}

async function main(): Promise<void> {
  const text = { type: 'string' } as const;
  const { values } = parseArgs({
    options: { cell: text, settings: text, url: text, minutes: text, help: { type: 'boolean', short: 'h' } },
  });
  if (values.help) return console.log(USAGE);
  const minutes = Number(values.minutes ?? 10);
  if (!(minutes >= 1 && minutes <= 60)) throw new SmokeError('--minutes must be a number from 1 to 60.');
  const settings = values.settings ?? join(ROOT, SETTINGS_FILE);
  const cell = findCell(readStages(settings), values.cell ?? '');
  const interrupted = new AbortController();
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) {
    process.on(signal, () => {
      if (!interrupted.signal.aborted)
        console.error('Interrupted: removing what was created. This takes minutes.');
      interrupted.abort();
    });
  }
  const ok = await smoke({ cell, settings, url: values.url, minutes, signal: interrupted.signal });
  if (!ok) process.exitCode = 1;
}

await main().catch((cause: unknown) => {
  console.error(cause instanceof Error ? cause.message : String(cause));
  process.exitCode = 1;
});
