/**
 * Tests credentials interactively in three steps: get a token, read the account's identity, read one page
 * of its jobs. Each step reports its result, or the error and its remedy. Nothing is stored, and no token
 * is kept.
 */

import { createOrderingClient } from '../ordering/client.ts';
import { cleanLine, OrderingError } from '../ordering/errors.ts';
import { describeFault, describeTimeout } from '../ordering/remedies.ts';
import { createTokenSource } from '../ordering/tokens.ts';
import type { Fetch } from '../ordering/transport.ts';
import { notFound, type Rejection } from '../resources.ts';
import { SecretError } from '../secrets.ts';
import { type AccountRef, keys } from '../storage/schema.ts';
import type { Table } from '../storage/table.ts';
import { checkInput } from '../validation.ts';
import { CredentialsTest } from './account-input.ts';
import type { TestReport, TestStep } from './account-views.ts';
import { toAccount } from './accounts.ts';
import type { RegionSettings } from './connect.ts';
import type { AccountSecrets, GivenCredentials } from './credentials.ts';
import { oneRegion } from './managed-accounts.ts';

/** Dependencies of a test of given credentials. */
interface CredentialsTestDeps {
  /** Addresses of the ordering API by region. */
  readonly services: Readonly<Record<string, RegionSettings>>;
  /** Current time in epoch ms. */
  readonly now: () => number;
  /** Timeout of a step (ms). Default: 10 s. */
  readonly stepMs?: number;
  /** Function that sends requests. Default: Node's HTTP client. */
  readonly fetch?: Fetch;
}

/** Dependencies of a test of an account. */
export interface TestDeps extends CredentialsTestDeps {
  readonly table: Table;
  readonly secrets: Pick<AccountSecrets, 'read'>;
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
  if (!record) return notFound(`account "${ref.account}"`);
  const pinned = typeof head?.upstreamId === 'number' ? head.upstreamId : null;
  const read = () => deps.secrets.read(toAccount(record).secretRef);
  return { kind: 'tested', report: await tryOut(deps, ref.region, ref.account, read, pinned) };
}

/** Tests credentials before an account has them. */
export async function testCredentials(
  deps: CredentialsTestDeps,
  input: unknown,
): Promise<Tested | Rejection> {
  const checked = checkInput(CredentialsTest, input);
  if (checked.kind === 'rejected') return checked;
  const region = oneRegion({ regions: Object.keys(deps.services) }, checked.value.region);
  if (typeof region === 'object') return region;
  const { credentials } = checked.value;
  return { kind: 'tested', report: await tryOut(deps, region, null, async () => credentials, null) };
}

async function tryOut(
  deps: CredentialsTestDeps,
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

  const regionService = deps.services[region];
  const done = await (async (): Promise<boolean> => {
    let client: ReturnType<typeof createOrderingClient> | undefined;
    const hasToken = await attempt('token', async (signal) => {
      if (!regionService) throw new Error(`The region ${region} is not configured.`);
      const { clientId, clientSecret, upstream: service = regionService } = await read();
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
        return { ok: true, message: `The credentials belong to account ${id} of the ordering API.` };
      if (pinned === id)
        return { ok: true, message: `The credentials belong to the tracked account, ${id}.` };
      const message = `The credentials belong to account ${id} of the ordering API, but the tracked account is ${pinned}. Set the credentials of account ${pinned}, or add a new account for ${id}. If ${id} is the new id of account ${pinned}, confirm the account with upstreamId ${id}.`;
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
      const newestAre = statuses.length === 0 ? '' : ` Statuses of the newest jobs: ${statuses.join(', ')}.`;
      const jobs = openJobs === 1 ? '1 job' : `${openJobs} jobs`;
      return { ok: true, message: `Jobs can be read: the list has ${jobs}.${newestAre}` };
    });
  })();
  return { ok: done, region, account, steps, upstreamId, openJobs, statuses };
}

/** Returns the error and its remedy for an operator. */
function explain(step: TestStep['step'], region: string, fault: unknown, stepMs: number): string {
  const part = step === 'token' ? 'token' : 'api';
  if (fault === 'timeout') return describeTimeout(part, region, stepMs / 1000);
  if (fault instanceof SecretError) {
    return `${fault.message} Set the credentials of the account again, or another secretRef.`;
  }
  if (fault instanceof OrderingError) return describeFault(part, region, fault, stepMs / 1000);
  return `The test could not run: ${getMessage(fault)}`;
}

const getMessage = (fault: unknown): string => (fault instanceof Error ? fault.message : 'unknown error.');
