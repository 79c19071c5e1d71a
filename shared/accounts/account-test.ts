/**
 * Tests credentials interactively in three steps: get a token, read the account's identity, read one page
 * of its jobs. Each step reports its result, or the error and its remedy. Nothing is stored, and no token
 * is kept.
 */

import { createOrderingClient } from '../ordering/client.ts';
import { cleanLine, OrderingError } from '../ordering/errors.ts';
import { createTokenSource } from '../ordering/tokens.ts';
import type { Rejection } from '../resources.ts';
import { SecretError } from '../secrets.ts';
import { type AccountRef, keys } from '../storage/schema.ts';
import type { Table } from '../storage/table.ts';
import { checkInput } from '../validation.ts';
import { CredentialsTest, type TestReport, type TestStep } from './account-input.ts';
import { toAccount } from './accounts.ts';
import type { RegionSettings } from './connect.ts';
import type { AccountSecrets, GivenCredentials } from './credentials.ts';
import { oneRegion } from './managed-accounts.ts';

/** Dependencies of a credentials test. */
export interface TestDeps {
  readonly table: Table;
  readonly secrets: Pick<AccountSecrets, 'read'>;
  /** Addresses of the ordering API by region. */
  readonly services: Readonly<Record<string, RegionSettings>>;
  /** Current time in epoch ms. */
  readonly now: () => number;
  /** Timeout of a step (ms). Default: 10 s. */
  readonly stepMs?: number;
  /** Function that sends requests. Default: the global fetch. */
  readonly fetch?: typeof globalThis.fetch;
}

type Tested = { readonly kind: 'tested'; readonly report: TestReport };

const STEP_MS = 10_000;
const PAGE_SIZE = 20;
const MAX_STATUSES = 5;
const MAX_STATUS_LENGTH = 60;

/** Tests the current credentials of an account, and whether they still belong to the tracked account. */
export async function testAccount(deps: TestDeps, ref: AccountRef): Promise<Tested | Rejection> {
  const [record, head] = await Promise.all([
    deps.table.get(keys.account(ref)),
    deps.table.get(keys.head(ref)),
  ]);
  if (!record) return { kind: 'unknown', reason: `There is no account "${ref.account}".` };
  const pinned = typeof head?.upstreamId === 'number' ? head.upstreamId : null;
  const read = () => deps.secrets.read(toAccount(record).secretRef);
  return { kind: 'tested', report: await tryOut(deps, ref.region, ref.account, read, pinned) };
}

/** Tests credentials before an account has them. */
export async function testCredentials(deps: TestDeps, input: unknown): Promise<Tested | Rejection> {
  const checked = checkInput(CredentialsTest, input);
  if (checked.kind === 'rejected') return checked;
  const region = oneRegion({ regions: Object.keys(deps.services) }, checked.value.region);
  if (typeof region === 'object') return region;
  const { credentials } = checked.value;
  return { kind: 'tested', report: await tryOut(deps, region, null, async () => credentials, null) };
}

async function tryOut(
  deps: TestDeps,
  region: string,
  account: string | null,
  read: () => Promise<GivenCredentials>,
  pinned: number | null,
): Promise<TestReport> {
  const { now, stepMs = STEP_MS, fetch } = deps;
  const steps: TestStep[] = [];
  let upstreamId: number | null = null;
  let openJobs: number | null = null;
  let statuses: string[] = [];

  /** Runs a step. Returns whether the next step is worthwhile. */
  async function attempt(
    step: TestStep['step'],
    work: (signal: AbortSignal) => Promise<{ readonly ok: boolean; readonly message: string }>,
  ): Promise<boolean> {
    const startedAt = now();
    const signal = AbortSignal.timeout(stepMs);
    const outcome = await work(signal).catch((fault: unknown) => ({
      ok: false,
      message: explain(step, region, signal.aborted ? 'timeout' : fault, stepMs),
    }));
    steps.push({ step, ...outcome, ms: Math.max(0, Math.round(now() - startedAt)) });
    return outcome.ok;
  }

  const service = deps.services[region];
  const done = await (async (): Promise<boolean> => {
    let client: ReturnType<typeof createOrderingClient> | undefined;
    const hasToken = await attempt('token', async (signal) => {
      if (!service) throw new Error(`The region ${region} is not configured.`);
      const { clientId, clientSecret } = await read();
      const common = { now, timeoutMs: stepMs, ...(fetch && { fetch }) };
      const tokens = createTokenSource({
        ...common,
        ...{ authUrl: service.authUrl, realm: service.realm, clientId, clientSecret },
      });
      await tokens.get(signal);
      // A user waits for the result, so a `Retry-After` beyond 2 s is not honored.
      client = createOrderingClient({ ...common, baseUrl: service.baseUrl, tokens, maxRetryAfterMs: 2_000 });
      return { ok: true, message: 'The credentials are accepted: a token was issued.' };
    });
    const api = client;
    if (!hasToken || !api) return false;
    const isItself = await attempt('identity', async (signal) => {
      const { id } = (await api.account(signal)).body;
      upstreamId = id;
      if (pinned === null)
        return { ok: true, message: `They belong to account ${id} of the ordering service.` };
      if (pinned === id)
        return { ok: true, message: `They belong to account ${id}, the one that is tracked.` };
      const message = `They belong to account ${id} of the ordering service, but the one that is tracked is ${pinned}: give the credentials of account ${pinned}, or make a new account here for ${id}. If ${id} is the same customer by a new number, confirm the account with upstreamId ${id}.`;
      return { ok: false, message };
    });
    if (!isItself) return false;
    return attempt('page', async (signal) => {
      const { items, totalCount } = (await api.activeJobs({ page: 1, pageSize: PAGE_SIZE }, signal)).body;
      openJobs = Math.max(0, totalCount);
      const newest = [...items].sort((a, b) => b.jobNumber - a.jobNumber);
      const names = newest.flatMap(({ masterJobStatus: name }) =>
        name ? [cleanLine(name).slice(0, MAX_STATUS_LENGTH)] : [],
      );
      statuses = [...new Set(names)].slice(0, MAX_STATUSES);
      const newestAre = statuses.length === 0 ? '' : `; statuses of the newest: ${statuses.join(', ')}`;
      const jobs = openJobs === 1 ? 'is 1 job' : `are ${openJobs} jobs`;
      return { ok: true, message: `Jobs can be read: there ${jobs} in the list${newestAre}.` };
    });
  })();
  return { ok: done, region, account, steps, upstreamId, openJobs, statuses };
}

const PLACES: Record<TestStep['step'], { readonly what: string; readonly setting: string }> = {
  token: { what: 'The token endpoint', setting: 'authUrl' },
  identity: { what: 'The ordering service', setting: 'baseUrl' },
  page: { what: 'The ordering service', setting: 'baseUrl' },
};

/**
 * Returns the error and its remedy for an operator. Of an upstream answer it contains only the status,
 * because the rest may contain anything.
 */
function explain(step: TestStep['step'], region: string, fault: unknown, stepMs: number): string {
  const { what, setting } = PLACES[step];
  const where = `${setting} of the region "${region}"`;
  const time = `${what} gave no complete answer within ${stepMs / 1000} seconds: try again later, and if it stays so, check ${where} and the network in between.`;
  if (fault === 'timeout') return time;
  if (fault instanceof SecretError) {
    return `${fault.message} Give the account its credentials anew, or another secretRef.`;
  }
  if (!(fault instanceof OrderingError)) return `The test itself failed: ${messageOf(fault)}`;
  const { kind, status, retryAfterMs, detail = '' } = fault;
  const answered = status === undefined ? '' : ` (${status})`;
  const isPage = detail.includes('HTML page');
  switch (kind) {
    case 'timeout':
      return time;
    case 'network':
      return `${what} could not be reached${detail ? ` (${detail})` : ''}: check ${where}, and whether this machine may connect to it.`;
    case 'not_found':
      return step === 'token'
        ? `There is no such realm at the token endpoint${answered}: check realm and ${where}.`
        : `${what} is not at this address${answered}: check ${where}.`;
    case 'credentials_rejected':
      return /disabled/i.test(detail)
        ? `The account, or its client, is disabled${answered}: its owner has to have it enabled by the ordering service.`
        : `The client id or the client secret is wrong${answered}: compare both, letter by letter, with what the ordering service gave out; a secret that was renewed there counts from then on. They count in one region only, and this is "${region}".`;
    case 'unauthorized':
      return `A token was issued, but the ordering service does not accept it${answered}: check that realm and ${where} are of the same region, and whether the account is disabled there.`;
    case 'forbidden':
      return `The credentials are good, but they may not do this${answered}: ask the ordering service to let them read the account and its jobs.`;
    case 'rate_limited': {
      const wait = retryAfterMs === undefined ? 'a minute' : `${Math.ceil(retryAfterMs / 1000)} seconds`;
      return `${what} was asked too often${answered}: try again in ${wait}.`;
    }
    case 'server_error':
    case 'unavailable':
      return `${what} is in trouble itself${answered}: nothing is wrong here as far as can be seen; try again later.`;
    case 'malformed':
      return isPage
        ? `${what} answered with a web page${answered}: something else is at this address, a proxy or a sign-in page perhaps; check ${where}.`
        : `${what} answered with something that is not what it should be${answered}: check ${where}; if it is right, the service has changed or its answer was cut off.`;
    case 'bad_request':
    case 'conflict':
      return `${what} refused the request${answered}: check ${where}.`;
  }
}

const messageOf = (fault: unknown): string =>
  fault instanceof Error ? fault.message : 'for no known reason.';
