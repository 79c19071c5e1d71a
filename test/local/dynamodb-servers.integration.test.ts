/** A self-hosted Jobwire whose tables are on a server with the DynamoDB API (`dynamodbEndpoint`). */
import { execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdirSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { describe, expect, inject, onTestFinished, test } from 'vitest';
import { createTables } from '../../local/dynamo-tables.ts';
import { createDynamoTable } from '../../shared/storage/dynamo-table.ts';
import { createDynamoClient, startDynamo } from '../support/dynoxide.ts';
import { builtProgram, configFor, startJobwire, startSandbox, writeConfig } from '../support/jobwire.ts';
import { findPort } from '../support/port.ts';

const KEY = 'a-key-for-the-tests-only';
const env = {
  JOBWIRE_TEST_KEY: KEY,
  ...{ AWS_ACCESS_KEY_ID: 'local', AWS_SECRET_ACCESS_KEY: 'local', AWS_REGION: 'us-east-1' },
};
const CACHE = join(tmpdir(), 'jobwire-dynamodb-servers');
const DYNAMODB_LOCAL = '2.6.1';
const MOTO = 'moto[server]==5.2.5';

const INSTALL_MS = 240_000;
const run = promisify(execFile);

type Skip = (reason: string) => never;

/** The servers, each with a function that starts it and returns its URL. Those that must be installed are part of the full size. */
const SERVERS: readonly [string, boolean, (skip: Skip) => Promise<string>][] = [
  ['dynoxide', true, startDynoxide],
  ['DynamoDB Local', inject('full'), startDynamoDbLocal],
  ['moto', inject('full'), startMoto],
];

describe.each(SERVERS)('tables on %s', (_, isWanted, startServer) => {
  test.runIf(isWanted)(
    'events are gapless and in order, also after a restart, and conditions hold',
    { timeout: 600_000 },
    async ({ skip }) => {
      const endpoint = await startServer(skip);
      await checkConditions(endpoint);

      const { sandbox, world } = await startSandbox();
      const acme = world.addAccount({ region: 'us', name: 'acme' });
      const jobs = Array.from({ length: 5 }, () => acme.createJob({ status: 'Scheduled' }));
      const file = writeConfig({
        ...configFor(sandbox, [acme]),
        ...{ dynamodbEndpoint: endpoint, apiKey: 'env:JOBWIRE_TEST_KEY' },
      });
      const start = () => startJobwire(['--config', file], { command: builtProgram(), env });
      const first = await start();
      await first.printed(/account\.baselined/);
      for (const job of jobs) acme.setStatus(job, 'In production');
      await readFeed(first.url, 1 + jobs.length);
      // After kill -9, a poll that was interrupted resumes within three minutes.
      first.child.kill(inject('full') ? 'SIGKILL' : 'SIGTERM');
      await first.ended;

      for (const job of jobs) acme.setStatus(job, 'Packed');
      const second = await start();
      const events = await readFeed(second.url, 1 + 2 * jobs.length);
      expect(events.map(({ sequence }) => Number(sequence))).toEqual(events.map((_, at) => at + 1));
      expect(new Set(events.map(({ id }) => id.split('.')[1])).size, 'epochs').toBe(1);
      expect(events.filter(({ type }) => type === 'account.baselined')).toHaveLength(1);
      for (const job of jobs) {
        const changes = events.filter(({ subject }) => subject === `jobs/${job}`);
        expect(changes.map(({ data }) => data.changes?.status?.to)).toEqual(['In production', 'Packed']);
      }
    },
  );
});

interface FeedEvent {
  readonly id: string;
  readonly type: string;
  readonly subject?: string;
  readonly sequence: string;
  readonly data: { readonly changes?: { readonly status?: { readonly to: string } } };
}

/** Reads the feed of the account until it has a number of events. */
async function readFeed(url: string, count: number): Promise<FeedEvent[]> {
  const events: FeedEvent[] = [];
  let after = '';
  while (events.length < count) {
    const response = await fetch(`${url}/v1/accounts/acme/events?wait=25${after}`, {
      headers: { authorization: `Bearer ${KEY}` },
    });
    expect(response.status).toBe(200);
    const page = (await response.json()) as { events: FeedEvent[]; next: string };
    events.push(...page.events);
    after = `&after=${page.next}`;
  }
  return events;
}

/** Of concurrent conditional writes exactly one is done. A cancelled transaction writes nothing. */
async function checkConditions(endpoint: string): Promise<void> {
  const client = createDynamoClient(endpoint);
  onTestFinished(() => client.destroy());
  await createTables(client, 'conditions');
  const table = createDynamoTable(client, { tableName: 'conditions' });
  const claims = await Promise.all(
    Array.from({ length: 10 }, (_, by) =>
      table.write({ put: { pk: 'CLAIM', sk: '1', by }, when: [['pk', 'absent']] }),
    ),
  );
  expect(claims.filter(({ done }) => done)).toHaveLength(1);
  const outcome = await table.transact(
    [
      { put: { pk: 'LOG', sk: '1' }, when: [['pk', 'absent']] },
      { put: { pk: 'CLAIM', sk: '1', by: 99 }, when: [['pk', 'absent']] },
    ],
    'token',
  );
  expect(outcome.done).toBe(false);
  expect(await table.get({ pk: 'LOG', sk: '1' })).toBeUndefined();
}

async function startDynoxide(): Promise<string> {
  const dynamo = await startDynamo();
  onTestFinished(dynamo.stop);
  return dynamo.endpoint;
}

/** Installs a program once. Skips the test if that fails. */
async function installOnce(name: string, skip: Skip, install: (folder: string) => Promise<unknown>) {
  const folder = join(CACHE, name);
  if (existsSync(join(folder, 'installed'))) return folder;
  mkdirSync(folder, { recursive: true });
  try {
    await install(folder);
  } catch (cause) {
    skip(`${name} cannot be installed: ${String(cause).slice(0, 200)}`);
  }
  writeFileSync(join(folder, 'installed'), '');
  return folder;
}

/** Starts a server and waits until it responds. */
async function serve(program: string, args: readonly string[], port: number): Promise<string> {
  const child = spawn(program, args, { stdio: 'ignore' });
  const ended = once(child, 'exit');
  onTestFinished(async () => {
    child.kill('SIGKILL');
    await ended;
  });
  const endpoint = `http://127.0.0.1:${port}`;
  const answers = () =>
    fetch(endpoint).then(
      () => true,
      () => false,
    );
  await expect.poll(answers, { timeout: 60_000, interval: 200 }).toBe(true);
  return endpoint;
}

async function startDynamoDbLocal(skip: Skip): Promise<string> {
  const folder = await installOnce(`dynamodb-local-${DYNAMODB_LOCAL}`, skip, async (folder) => {
    const artifact = `<groupId>com.amazonaws</groupId><artifactId>DynamoDBLocal</artifactId><version>${DYNAMODB_LOCAL}</version>`;
    const own =
      '<groupId>x</groupId><artifactId>x</artifactId><version>1</version><packaging>pom</packaging>';
    const pom = `<project><modelVersion>4.0.0</modelVersion>${own}<dependencies><dependency>${artifact}</dependency></dependencies></project>`;
    writeFileSync(join(folder, 'pom.xml'), pom);
    const copy = ['-q', '-B', 'dependency:copy-dependencies', '-DoutputDirectory=lib'];
    await run('mvn', copy, { cwd: folder, timeout: INSTALL_MS });
  });
  const port = await findPort();
  const main = 'com.amazonaws.services.dynamodbv2.local.main.ServerRunner';
  const java = ['-cp', join(folder, 'lib/*'), main, '-inMemory', '-disableTelemetry', '-port', `${port}`];
  return serve('java', java, port);
}

async function startMoto(skip: Skip): Promise<string> {
  const folder = await installOnce('moto', skip, async (folder) => {
    await run('python3', ['-m', 'venv', folder], { timeout: INSTALL_MS });
    await run(join(folder, 'bin/pip'), ['install', '--quiet', MOTO], { timeout: INSTALL_MS });
  });
  const port = await findPort();
  return serve(join(folder, 'bin/moto_server'), ['-H', '127.0.0.1', '-p', `${port}`], port);
}
