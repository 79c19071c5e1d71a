/** The checks of `jobwire doctor` that ask the running Jobwire: its accounts, endpoints and alert rules. */
import pLimit from 'p-limit';
import { describeNetworkError } from '../client/errors.ts';
import {
  type AccountState,
  ApiError,
  type Client,
  createClient,
  type ListedAccount,
  type TestReport,
  UnreachableError,
} from '../client/index.ts';
import { staleSince } from '../shared/stale.ts';
import { ignoreNotFound } from './input.ts';
import { count } from './output.ts';

/** Result of one check. */
export interface Check {
  readonly check: string;
  readonly state: 'ok' | 'warn' | 'fail';
  readonly message: string;
  /** Texts with commands get them complete from the caller. */
  readonly fix?: string | ((toCommand: ToCommand) => string);
}
type ToCommand = (line: string) => string;

/** Maximum number of accounts whose credentials are tested at the same time. */
export const CONCURRENT_TESTS = 4;
/** Maximum number of accounts, failing ones first, whose credentials are tested. Each test sends three requests. */
const MAX_TESTS = 50;
const TIMEOUT_MS = 40_000;
/** Maximum time for the readiness to be reported. */
const READY_MS = 5_000;

/** Checks what the key may see: the state and credentials of accounts, the delivery of endpoints, and the messages of alert rules. */
export async function checkRunning(options: {
  readonly url: string;
  readonly key: string;
}): Promise<Check[]> {
  const { url } = options;
  const check = 'Jobwire API';
  try {
    const client = createClient({ ...options, timeoutMs: TIMEOUT_MS });
    const key = await client.get('/v1/key');
    const [accounts, endpoints, alerts] = await Promise.all([
      checkAccounts(client, key.role !== 'read'),
      checkEndpoints(client),
      checkAlerts(client),
    ]);
    return [
      { check, state: 'ok', message: `${url} responds and accepts the API key (${key.role}).` },
      ...accounts,
      ...endpoints,
      ...alerts,
    ];
  } catch (cause) {
    if (!(cause instanceof ApiError || cause instanceof UnreachableError)) throw cause;
    if (cause instanceof ApiError && (cause.status === 401 || cause.status === 403)) {
      const fix = 'Check JOBWIRE_API_KEY. With another admin key, keys create creates a new key.';
      const skipped = 'So its accounts, their credentials and its endpoints were not checked.';
      return [{ check, state: 'fail', message: `${url} rejects the API key. ${skipped}`, fix }];
    }
    return [{ check, state: 'fail', message: cause.message, fix: 'Check the log of Jobwire.' }];
  }
}

/** Checks whether the running Jobwire can use its store. */
export async function checkStore(url: string): Promise<Check[]> {
  const check = 'Store';
  try {
    const answer = await fetch(`${url}/readyz`, {
      redirect: 'manual',
      signal: AbortSignal.timeout(READY_MS),
    });
    if (answer.ok) return [{ check, state: 'ok', message: 'The store of Jobwire responds.' }];
    const { detail } = (await answer.json()) as { detail?: unknown };
    const fix =
      'Free space on the disk of the data folder, or check the disk and the permissions of the folder. Jobwire continues without a restart.';
    return [{ check, state: 'fail', message: String(detail), fix }];
  } catch (cause) {
    const fix = 'Check the log of Jobwire.';
    return [{ check, state: 'fail', message: `/readyz can’t be read: ${describeNetworkError(cause)}.`, fix }];
  }
}

/** Fix for each state that prevents events. */
const ACCOUNT_FIXES: Partial<Record<AccountState, (id: string, toCommand: ToCommand) => string>> = {
  failing: (id, toCommand) =>
    `Check the ordering API and the network. For details, run: ${toCommand(`accounts test ${id}`)}`,
  credentials_rejected: (id, toCommand) =>
    `To replace the credentials, run: ${toCommand(`accounts rotate ${id} --client-id CLIENT_ID`)}`,
  identity_mismatch: (id, toCommand) =>
    `Correct the credentials, and then run this command. Or, to accept the other account, add --upstream-id N to it: ${toCommand(`accounts confirm ${id}`)}`,
  quarantined: (id, toCommand) =>
    `Check whether the missing jobs still exist. If they do, wait: the quarantine ends when they are listed again. If they are gone, run: ${toCommand(`accounts confirm ${id}`)}`,
};

async function checkAccounts(client: Client, mayTest: boolean): Promise<Check[]> {
  const listed: ListedAccount[] = [];
  const query = { include: 'status' } as const;
  for await (const account of client.list('/v1/accounts', 'accounts', { params: { query } }))
    listed.push(account);
  const active = listed.filter(({ paused }) => !paused);
  const failing = active.filter(({ status }) => status && status.state in ACCOUNT_FIXES);
  const others = active.filter((account) => !failing.includes(account));
  const limit = pLimit(CONCURRENT_TESTS);
  const tested = mayTest ? [...failing, ...others].slice(0, MAX_TESTS) : [];
  const reports = new Map(
    await limit.map(tested, async ({ id }): Promise<[string, TestReport | undefined]> => {
      const params = { path: { id } };
      return [id, await client.post('/v1/accounts/{id}/test', { params }).catch(ignoreNotFound)];
    }),
  );
  const checks = active.flatMap((account): Check[] => {
    const { id, status } = account;
    const report = reports.get(id);
    if (report?.ok === false) {
      const correct = (toCommand: ToCommand): string =>
        account.managed
          ? `If the credentials are wrong, replace them. Run: ${toCommand(`accounts rotate ${id} --client-id CLIENT_ID`)}. `
          : 'If a setting or a secret is wrong, correct it in the configuration file, or in the file or environment variable that it names, and restart Jobwire. ';
      const fix = (toCommand: ToCommand) =>
        `${correct(toCommand)}Then test it again. Run: ${toCommand(`accounts test ${id}`)}`;
      return [toTestCheck(id, report, fix)];
    }
    const fix = status ? ACCOUNT_FIXES[status.state] : undefined;
    if (status && !fix && status.consecutiveFailures > 0) {
      const message = `The last poll failed. ${status.problem ?? ''}`.trim();
      const next = `The next poll is due at ${status.nextPollAt}. Then run this check again.`;
      return [{ check: `Account ${id}`, state: 'warn', message, fix: next }];
    }
    if (status && !fix && staleSince(status.observedThrough, account.pollIntervalSeconds, Date.now())) {
      const message = `No poll has been complete since ${status.observedThrough}, although no poll failed.`;
      const next = 'Check the load of this machine and the log of Jobwire.';
      return [{ check: `Account ${id}`, state: 'warn', message, fix: next }];
    }
    if (!status || !fix) return [];
    const message = `${status.state}: ${status.problem ?? describeQuarantine(status)}`;
    return [{ check: `Account ${id}`, state: 'fail', message, fix: (toCommand) => fix(id, toCommand) }];
  });
  if (listed.length === 0) {
    const fix = (toCommand: ToCommand) =>
      `To add one, run: ${toCommand('accounts add ID --client-id CLIENT_ID')}`;
    return [{ check: 'Accounts', state: 'warn', message: 'There are no accounts.', fix }];
  }
  const healthy = active.length - checks.length;
  const paused = listed.length - active.length;
  const credentials = mayTest
    ? `credentials of ${tested.length} tested`
    : 'credentials not tested (the role read of the API key does not permit it)';
  const parts = [...summarize('account', healthy, paused), ...(healthy + paused > 0 ? [credentials] : [])];
  if (parts.length === 0) return checks;
  return [{ check: 'Accounts', state: 'ok', message: `${parts.join(', ')}.` }, ...checks];
}

/** Returns the numbers of resources without problems and of paused ones, without zeros. */
function summarize(noun: string, healthy: number, paused: number): string[] {
  return [
    ...(healthy > 0 ? [`${count(healthy, noun)} without problems`] : []),
    ...(paused > 0 ? [healthy > 0 ? `${paused} paused` : `${count(paused, noun)} paused`] : []),
  ];
}

/** Returns the meaning of a quarantine: the only of these states in which polls succeed, so that it has no error message. */
function describeQuarantine({ missingJobs }: NonNullable<ListedAccount['status']>): string {
  const { pending, suspected, contradictory } = missingJobs;
  const missing = count(pending + suspected + contradictory, 'job');
  return `too many jobs disappeared from the list of active jobs within a day. Now missing, with an unknown outcome: ${missing}. Until the quarantine ends, no job is reported as cancelled or unavailable.`;
}

async function checkEndpoints(client: Client): Promise<Check[]> {
  const checks: Check[] = [];
  let [healthy, paused] = [0, 0];
  for await (const endpoint of client.list('/v1/endpoints', 'endpoints')) {
    const { id, region, url, state } = endpoint;
    if (state === 'paused') paused += 1;
    if (state === 'active') healthy += 1;
    if (state !== 'failing' && state !== 'disabled') continue;
    const params = { path: { id }, query: { region } };
    const health = await client.get('/v1/endpoints/{id}/health', { params }).catch(ignoreNotFound);
    const fix = (toCommand: ToCommand): string =>
      state === 'disabled'
        ? `Repair the receiver at ${url}. Then run: ${toCommand(`endpoints enable ${id} --region ${region}`)}`
        : `Check the receiver at ${url}. To send a test event and see the probable cause, run: ${toCommand(`endpoints ping ${id} --region ${region}`)}. To retry at once after the fix, run: ${toCommand(`endpoints enable ${id} --region ${region}`)}`;
    const message = `${state}: ${health?.problem ?? 'no details.'}`;
    checks.push({ check: `Endpoint ${id}`, state: 'fail', message, fix });
  }
  const parts = summarize('endpoint', healthy, paused);
  if (parts.length === 0) return checks;
  return [{ check: 'Endpoints', state: 'ok', message: `${parts.join(', ')}.` }, ...checks];
}

/** Warns about alert rules whose last message was not accepted. */
async function checkAlerts(client: Client): Promise<Check[]> {
  const checks: Check[] = [];
  for await (const { id, region, state } of client.list('/v1/alert-rules', 'alertRules')) {
    if (state.problem === null) continue;
    const message = `The last message was not accepted: ${state.problem}`;
    const fix = (toCommand: ToCommand): string =>
      `Check the target of the rule. To send a test message, run: ${toCommand(`alerts test ${id} --region ${region}`)}`;
    checks.push({ check: `Alert rule ${id}`, state: 'warn', message, fix });
  }
  return checks;
}

/** Returns the result of a credentials test as a check. Its last step names the setting to change. `fix`: what to do after the change. */
export function toTestCheck(id: string, { ok, steps }: TestReport, fix: NonNullable<Check['fix']>): Check {
  const check = `Account ${id}`;
  const message = steps.at(-1)?.message ?? 'Nothing was tested.';
  if (ok) return { check, state: 'ok', message };
  return { check, state: 'fail', message, fix };
}
