/**
 * A child process: measures the first poll of a new process with the deployed pollAccount (process start, import, poll of 500 jobs),
 * compared with its later polls and with a bare process that fetches the same pages. The account is past its baseline, so polls are
 * quiet. Its token is in the table, as for an account that is polled every few minutes.
 */
import { spawn } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { createTables } from '../local/dynamo-tables.ts';
import { registerAccount } from '../shared/accounts/accounts.ts';
import { createAccountSecrets } from '../shared/accounts/credentials.ts';
import { createEventLog } from '../shared/log/log.ts';
import { createDynamoTable } from '../shared/storage/dynamo-table.ts';
import { keys } from '../shared/storage/schema.ts';
import { startDynamo } from '../test/support/dynoxide.ts';
import { KMS_KEY, sealWithKms } from '../test/support/kms.ts';
import { synthesize } from './assets.ts';
import { startChild } from './child.ts';
import { lambdaEnvironment, sqsEvent, startEnvironment, startKms } from './lambda.ts';
import { median } from './statistics.ts';
import { newToken } from './token.ts';
import type { UpstreamFacts } from './upstream.ts';

/** Results: medians in ms. */
export interface ColdStartResults {
  readonly jobs: number;
  readonly importMs: number;
  readonly coldMs: number;
  readonly warmMs: number;
  /** With an upstream latency of {@link ANSWER_MS}. */
  readonly ratio: number;
  readonly nearColdMs: number;
  readonly nearWarmMs: number;
  /** Without upstream latency. */
  readonly nearRatio: number;
  readonly bareColdMs: number;
  /** Bare process without upstream latency: the warm-up of Node itself. */
  readonly bareNearRatio: number;
  /** Cold start / that of the bare process, without upstream latency. */
  readonly overBare: number;
}

/**
 * Upstream latency: a tenth of that in the cost estimate, about a network round trip within a continent. Without latency, the cold start
 * would be compared with a poll that never waits.
 */
const ANSWER_MS = 30;
const WARM_POLLS = 10;
const ACCOUNT = { region: 'us', account: 'bench' };

const [jobs = 0, rounds = 0] = process.argv.slice(2).map(Number);
const upstream = await startChild<UpstreamFacts>('upstream.ts', [String(jobs)]);
const { apiUrl, authUrl, clientId, clientSecret } = upstream.facts;
using kms = await startKms();
using cell = await synthesize();
const pollAccount = cell.functions.find(({ entry }) => entry === 'poll-account');
if (!pollAccount) throw new Error('The cell has no pollAccount.');
const dynamo = await startDynamo();
const client = dynamo.client();
await createTables(client, 'bench');
const table = createDynamoTable(client, { tableName: 'bench' });
const secretRef = await createAccountSecrets(sealWithKms(table, kms.kms, { stage: 'prod' })).save(
  ACCOUNT.region,
  ACCOUNT.account,
  { clientId, clientSecret },
);
await registerAccount(
  table,
  createEventLog(table, { now: Date.now, newId: randomUUID, schemaBaseUrl: 'http://bench' }),
  { ...ACCOUNT, secretRef, pollIntervalSeconds: 60, paused: false },
  { now: Date.now(), epoch: 'bench' },
);
const { file, memoryMb, environment } = pollAccount;
const env = lambdaEnvironment(environment, {
  AWS_LAMBDA_FUNCTION_MEMORY_SIZE: String(memoryMb),
  AWS_ENDPOINT_URL_DYNAMODB: dynamo.endpoint,
  AWS_ENDPOINT_URL_KMS: kms.url,
  JOBWIRE_KEY_ARN: KMS_KEY,
  JOBWIRE_TABLE: 'bench',
  JOBWIRE_UPSTREAM_BASE_URL: apiUrl,
  JOBWIRE_UPSTREAM_AUTH_URL: authUrl,
});
const event = (): object => sqsEvent([{ account: ACCOUNT.account, dueAt: Date.now() }]);

interface Start {
  readonly importMs: number;
  readonly coldMs: number;
  readonly warmMs: number;
}

/** Sets the due time of the account to now, because a poll before the due time does nothing. */
async function due(): Promise<void> {
  await table.write({ update: keys.status(ACCOUNT), set: { nextPollAt: Date.now() } });
}

async function startAndPoll(): Promise<Start> {
  await due();
  const before = await revision();
  using started = await startEnvironment(file, env);
  await started.invoke(event());
  const coldMs = started.ageMs();
  const warm: number[] = [];
  for (let poll = 0; poll < WARM_POLLS; poll += 1) {
    await due();
    warm.push((await started.invoke(event())).ms);
  }
  // Each poll increments it, a quiet poll by one.
  if ((await revision()) < before + 1 + WARM_POLLS) throw new Error('A poll did nothing.');
  return { importMs: started.importMs, coldMs, warmMs: median(warm) };
}

async function revision(): Promise<number> {
  return Number((await table.get(keys.status(ACCOUNT)))?.revision);
}

/** Fetches the pages as often as the function polls, and returns the durations. */
const BARE = `
const [url, token, pages, times] = process.argv.slice(1);
const tookMs = [];
for (let time = 0; time <= Number(times); time += 1) {
  const from = performance.now();
  let next = 1;
  const read = async () => {
    while (next <= Number(pages)) {
      const page = next++;
      const answer = await fetch(url + '/Jobs/active?pageSize=100&page=' + page, { headers: { authorization: 'Bearer ' + token } });
      JSON.parse(await answer.text());
    }
  };
  await Promise.all([read(), read(), read(), read()]);
  tookMs.push(performance.now() - from);
  if (time === 0) process.send('first');
}
process.send(tookMs.slice(1), () => process.exit(0));`;

async function startBare(token: string): Promise<Pick<Start, 'coldMs' | 'warmMs'>> {
  const from = performance.now();
  const args = [
    '--input-type=module',
    '--eval',
    BARE,
    apiUrl,
    token,
    String(Math.ceil(jobs / 100)),
    String(WARM_POLLS),
  ];
  const child = spawn(process.execPath, args, { env: {}, stdio: ['ignore', 'inherit', 'inherit', 'ipc'] });
  await once(child, 'message');
  const coldMs = performance.now() - from;
  const [warm] = (await once(child, 'message')) as [number[]];
  return { coldMs, warmMs: median(warm) };
}

const token = await newToken(upstream.facts);
// Creates the baseline and stores the token.
await startAndPoll();
const far: Start[] = [];
const near: Start[] = [];
const bare: Awaited<ReturnType<typeof startBare>>[] = [];
const ratio = (starts: readonly Pick<Start, 'coldMs' | 'warmMs'>[]): number =>
  median(starts.map(({ coldMs, warmMs }) => coldMs / warmMs));
for (let round = 0; round < rounds; round += 1) {
  const work = [
    async () => near.push(await startAndPoll()),
    async () => bare.push(await startBare(token)),
    async () => {
      await upstream.ask({ answerMs: ANSWER_MS });
      far.push(await startAndPoll());
      await upstream.ask({ answerMs: 0 });
    },
  ];
  // The order alternates, so that noise of the machine affects all sides equally.
  for (const measure of round % 2 === 0 ? work : work.reverse()) await measure();
}

const of = (starts: readonly Start[], what: keyof Start): number =>
  median(starts.map((start) => start[what]));
process.send?.({
  jobs,
  importMs: of([...near, ...far], 'importMs'),
  coldMs: of(far, 'coldMs'),
  warmMs: of(far, 'warmMs'),
  ratio: ratio(far),
  nearColdMs: of(near, 'coldMs'),
  nearWarmMs: of(near, 'warmMs'),
  nearRatio: ratio(near),
  bareColdMs: median(bare.map(({ coldMs }) => coldMs)),
  bareNearRatio: ratio(bare),
  overBare: median(near.map(({ coldMs }, at) => coldMs / (bare[at]?.coldMs ?? Number.NaN))),
} satisfies ColdStartResults);
await dynamo.stop();
upstream[Symbol.dispose]();
process.disconnect();
