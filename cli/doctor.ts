/** `jobwire doctor`: checks for everything that can prevent operation, concurrently, each with a time limit. */

import { accessSync, constants, existsSync, readFileSync, statSync } from 'node:fs';
import { createServer } from 'node:net';
import { dirname, join, resolve, sep } from 'node:path';
import pLimit from 'p-limit';
import type { DataDirError } from '../local/data-dir.ts';
import { findOtherOwner } from '../local/owner.ts';
import { formatTime, quote } from '../local/terminal.ts';
import { testCredentials } from '../shared/accounts/account-test.ts';
import { type Config, ConfigError, parseConfig, parseConfigText } from '../shared/config.ts';
import { formatCode } from '../shared/error-codes.ts';
import { isLoopbackHost } from '../shared/loopback.ts';
import { type Context, UsageError } from './command.ts';
import { type Check, CONCURRENT_TESTS, checkRunning, checkStore, toTestCheck } from './doctor-running.ts';
import {
  checkDynamo,
  checkMail,
  checkRegion,
  checkSignIn,
  checkSkew,
  checkSms,
  PROBE_MS,
  probeUrl,
  type Region,
} from './doctor-servers.ts';
import { readInputFile } from './input.ts';
import { count, sanitizeLine } from './output.ts';
import { isUnencrypted } from './profiles.ts';
import { describeNodeFix, findNode, NOT_RUN, REBUILD } from './start.ts';

/** Runs and prints all checks. Returns 1 if one fails. */
export async function doctor(
  context: Context,
  flags: { readonly config: string | undefined },
): Promise<number | undefined> {
  const { out, env } = context;
  out.progress('Checking …');
  const file = flags.config === undefined ? undefined : readConfig(flags.config, env);
  const url = file && context.urlIsDefault ? findUrl(file) : context.url;
  const probes: Promise<Check[]>[] = [
    Promise.resolve([checkNode()]),
    checkDynamo(file?.config),
    checkServer(context, url, file),
    ...(file ? [Promise.resolve(file.checks)] : []),
    ...(file ? file.regions.map(checkRegion) : []),
    checkMail(file?.config),
    checkSms(file?.config),
    checkSignIn(file?.config),
  ];
  const found = (await Promise.all(probes)).flat();
  const options = listFoundOptions(context, url, file);
  const checks = found.map(({ fix, ...check }) => ({
    ...check,
    ...(fix === undefined
      ? {}
      : { fix: typeof fix === 'string' ? fix : fix((line) => context.toCommand(line, options)) }),
  }));
  const failed = checks.some(({ state }) => state === 'fail');
  out.document({ ok: !failed, checks }, () => {
    const width = Math.max(...checks.map(({ check }) => check.length));
    const style = { ok: 'green', warn: 'yellow', fail: 'red' } as const;
    for (const { check, state, message, fix } of checks) {
      out.hang(
        `${out.paint(style[state], state.padEnd(4))}  ${check.padEnd(width)}  `,
        sanitizeLine(message),
      );
      if (fix !== undefined) out.hang(`${''.padEnd(width + 8)}→ `, sanitizeLine(fix));
    }
    if (file === undefined) out.note('To check your configuration too, use --config FILE.');
  });
  return failed ? 1 : undefined;
}

/** Returns the options with which a command reaches the Jobwire of the configuration, beside those of this command line. */
function listFoundOptions(context: Context, url: string, file: ConfigFile | undefined): string[] {
  if (!file || !context.urlIsDefault) return [];
  const isGiven = isKeyGiven(context);
  const isKeyFound = !isGiven && file.config?.apiKey === undefined;
  // Without any option, the commands would use the current profile.
  const isDefault = url === context.url && (isGiven || isKeyFound);
  return [
    ...(isDefault ? [] : ['--url', url]),
    ...(isKeyFound ? ['--key-file', quote(join(file.dataDir, 'api-key'))] : []),
  ];
}

function isKeyGiven({ key }: Context): boolean {
  try {
    return key() !== undefined;
  } catch {
    return true;
  }
}

/** Checks the running Jobwire, the data folder and the port. */
async function checkServer(context: Context, url: string, file: ConfigFile | undefined): Promise<Check[]> {
  const [api, folder] = await Promise.all([
    checkApi(context, url, file),
    file ? checkDataDir(file, url, context.env) : { checks: [], inUse: undefined },
  ]);
  // The check of the port listens on it, so it follows the requests to the API. A given URL replaces the default port.
  const isPortUsed = context.urlIsDefault || file?.isPortGiven === true;
  const { port = 4000, host = '127.0.0.1', config } = file ?? {};
  const { inUse } = folder;
  return [
    ...api,
    ...folder.checks,
    ...(isPortUsed ? await checkPort({ check: 'Port', prefix: '', port, host }, file, inUse) : []),
    // A running Jobwire that uses the data folder also uses this port.
    ...(config?.metrics && inUse === false
      ? await checkPort({ check: 'Metrics port', prefix: 'metrics.', ...config.metrics }, file, inUse)
      : []),
  ];
}

function checkNode(): Check {
  const { node } = process.versions;
  const found = findNode();
  if (!found) {
    const message = `${node} runs all commands except start, backup and restore.`;
    return { check: 'Node', state: 'warn', message, fix: describeNodeFix() };
  }
  if (found.missing) return { check: 'Node', state: 'fail', message: NOT_RUN, fix: REBUILD };
  const message = found.beside
    ? `${node}. start, backup and restore use the installed node package, ${found.version}.`
    : node;
  return { check: 'Node', state: 'ok', message };
}

/** A configuration, as far as it can be parsed. */
interface ConfigFile {
  readonly path: string;
  readonly checks: Check[];
  readonly config: Config | undefined;
  /** Read even if the rest of the configuration is invalid. */
  readonly port: number;
  readonly isPortGiven: boolean;
  readonly host: string;
  readonly dataDir: string;
  /** Absolute paths of the files to which the configuration refers. */
  readonly secretFiles: readonly string[];
  readonly regions: readonly Region[];
}

/** Throws {@link UsageError} if the file can't be read or is not JSON: the address and the data folder are then unknown. */
function readConfig(path: string, env: Context['env']): ConfigFile {
  const check = 'Configuration';
  const text = readInputFile(path, `The configuration file ${path}`).toString();
  let raw: Record<string, unknown>;
  try {
    raw = parseConfigText(path, text) as Record<string, unknown>;
  } catch (cause) {
    if (cause instanceof ConfigError) throw new UsageError(cause.message, { cause });
    throw cause;
  }
  const settings = { ...raw, $schema: undefined };
  const places = {
    path,
    port: isPort(raw?.port) ? raw.port : 4000,
    isPortGiven: isPort(raw?.port),
    host: typeof raw?.host === 'string' ? raw.host : '127.0.0.1',
    dataDir: resolve(dirname(path), typeof raw?.dataDir === 'string' ? raw.dataDir : '.jobwire'),
    secretFiles: findReferences(settings, 'file:').map((file) => resolve(dirname(path), file)),
    regions: parseRegions(raw?.regions),
  };
  const missing = findReferences(settings, 'env:').filter((name) => env[name] === undefined);
  if (missing.length > 0) {
    const message = `Environment variables of the configuration are not set: ${missing.join(', ')}.`;
    const fix = 'Set them in this terminal, too, and run this command again to check the rest.';
    return { ...places, config: undefined, checks: [{ check, state: 'fail', message, fix }] };
  }
  try {
    const config = parseConfig(raw, env, dirname(path));
    const { accounts, endpoints, regions } = config;
    const message = `${count(Object.keys(regions).length, 'region')}, ${count(accounts.length, 'account')}, ${count(endpoints.length, 'endpoint')}.`;
    return { ...places, config, checks: [{ check, state: 'ok', message }] };
  } catch (cause) {
    const message = cause instanceof Error ? cause.message : 'The configuration is invalid.';
    const fix = `Correct ${path}.`;
    return { ...places, config: undefined, checks: [{ check, state: 'fail', message, fix }] };
  }
}

const isPort = (port: unknown): port is number =>
  Number.isInteger(port) && Number(port) >= 0 && Number(port) <= 65_535;

/** Returns the environment variables or files that a configuration names, each once. */
function findReferences(value: unknown, prefix: 'env:' | 'file:'): string[] {
  if (typeof value === 'string') return value.startsWith(prefix) ? [value.slice(prefix.length)] : [];
  if (typeof value !== 'object' || value === null) return [];
  return [...new Set(Object.values(value).flatMap((one) => findReferences(one, prefix)))];
}

function parseRegions(value: unknown): Region[] {
  if (typeof value !== 'object' || value === null) return [];
  return Object.entries(value).flatMap(([id, region]) => {
    const { baseUrl, authUrl, realm } = (region ?? {}) as Record<string, unknown>;
    if (!isUrl(baseUrl) || !isUrl(authUrl)) return [];
    const auth = String(authUrl).replace(/\/+$/, '');
    const tokenUrl = `${auth}/realms/${encodeURIComponent(String(realm))}/protocol/openid-connect/token`;
    return [{ id, baseUrl: String(baseUrl), tokenUrl }];
  });
}

const isUrl = (url: unknown) => typeof url === 'string' && /^https?:\/\//.test(url) && URL.canParse(url);

/** Checks the data folder. `inUse`: whether a running Jobwire uses it, if that is known. */
async function checkDataDir(
  file: ConfigFile,
  url: string,
  env: Context['env'],
): Promise<{ readonly checks: Check[]; readonly inUse?: boolean }> {
  const { dataDir, port, host } = file;
  const check = 'Data folder';
  const path = resolve(dataDir);
  const fix = 'Make it writable for the current user, or set another dataDir.';
  if (!existsSync(path)) {
    let parent = dirname(path);
    while (!existsSync(parent)) parent = dirname(parent);
    try {
      accessSync(parent + sep, constants.W_OK | constants.X_OK);
      return { checks: [{ check, state: 'ok', message: `${path} will be created.` }], inUse: false };
    } catch {
      const message = `${path} can’t be created: ${parent} is not a writable folder.`;
      return { checks: [{ check, state: 'fail', message, fix }] };
    }
  }
  const owner = findOtherOwner(path);
  if (owner !== undefined) {
    const message = `${path} belongs to ${owner}.`;
    return { checks: [{ check, state: 'fail', message, fix: 'Run this command as that user.' }] };
  }
  try {
    accessSync(path + sep, constants.W_OK | constants.R_OK | constants.X_OK);
  } catch {
    return { checks: [{ check, state: 'fail', message: `${path} is not a writable folder.`, fix }] };
  }
  let folders: typeof import('../local/data-dir.ts');
  let stored: typeof import('../local/secret-key.ts');
  try {
    [folders, stored] = await Promise.all([import('../local/data-dir.ts'), import('../local/secret-key.ts')]);
  } catch {
    const message = `${path} is writable; whether it is in use can’t be checked on Node ${process.versions.node}.`;
    return { checks: [{ check, state: 'ok', message }] };
  }
  try {
    const held = folders.openDataDir(path);
    try {
      if (file.config?.dynamodbEndpoint === undefined) await stored.checkStored(held, env.JOBWIRE_SECRET_KEY);
    } finally {
      held.release();
    }
    const free = `${path} is writable and not in use.`;
    return { checks: [{ check, state: 'ok', message: free }], inUse: false };
  } catch (cause) {
    const { name, message, problem = message, fix: ownFix } = cause as DataDirError;
    // Normally the port is in use by the Jobwire that this configuration starts, which is correct.
    const isInUse = /in use/.test(problem);
    const addresses = [
      formatUrl(host, port),
      ...(isLoopbackHost(URL.parse(url)?.hostname ?? '') ? [url] : []),
    ];
    const settings = isInUse ? [checkSettings(file, folders.readStartTime(path))] : [];
    for (const address of isInUse ? addresses : []) {
      if (await isJobwire(address)) {
        const used = `${path} is in use, and Jobwire runs at ${address}.`;
        return { checks: [{ check, state: 'ok', message: used }, ...settings], inUse: true };
      }
    }
    // Jobwire may still use the former address.
    const changed = settings.filter(({ state }) => state !== 'ok');
    // Other messages contain the fix.
    const advice = name === 'DataDirError' ? { fix: ownFix ?? fix } : {};
    return { checks: [{ check, state: 'fail', message: problem, ...advice }, ...changed] };
  }
}

/** Checks whether the running Jobwire has read the current configuration. `startedAt`: its start (epoch ms). */
function checkSettings({ path, secretFiles }: ConfigFile, startedAt: number): Check {
  const check = 'Settings';
  const changed = [path, ...secretFiles].filter((file) => {
    try {
      return statSync(file).mtimeMs > startedAt;
    } catch {
      // The check of the configuration reports files that can't be read.
      return false;
    }
  });
  const start = `since Jobwire started at ${formatTime(startedAt)}`;
  if (changed.length > 0) {
    const message = `Changed ${start}: ${changed.join(', ')}.`;
    return { check, state: 'warn', message, fix: 'To apply the changes, restart Jobwire.' };
  }
  const files = secretFiles.length > 0 ? ' and the files to which it refers are' : ' is';
  return { check, state: 'ok', message: `${path}${files} unchanged ${start}.` };
}

/**
 * Checks a port. `prefix`: beginning of the names of its settings. `inUse`: whether a running Jobwire uses the data folder of the
 * configuration, if that is known.
 */
async function checkPort(
  { check, prefix, port, host }: { check: string; prefix: string; port: number; host: string },
  file: ConfigFile | undefined,
  inUse: boolean | undefined,
): Promise<Check[]> {
  if (port === 0) return [];
  const fault = await findPortFault(port, host);
  if (!fault) return [{ check, state: 'ok', message: `${port} is free.` }];
  const { code } = fault;
  if (code === 'EADDRINUSE' && (await isJobwire(formatUrl(host, port)))) {
    if (file === undefined || inUse !== false) {
      return [{ check, state: 'ok', message: `Jobwire runs on ${port}.` }];
    }
    const message = `Another Jobwire, with another data folder than ${resolve(file.dataDir)}, runs on ${port}.`;
    const fix = `Stop it, or choose another port, with ${prefix}port in the configuration. To check that Jobwire, use its configuration with --config.`;
    return [{ check, state: 'fail', message, fix }];
  }
  const message =
    code === 'EADDRINUSE'
      ? `${port} is in use by another program.`
      : `Can’t listen on ${host}:${port}${formatCode(code)}.`;
  const fix =
    code === 'EADDRNOTAVAIL' || code === 'ENOTFOUND' || code === 'EAI_AGAIN'
      ? `Set ${prefix}host in the configuration to an address of this machine.`
      : `Stop the program that listens there, or choose another ${prefix}port in the configuration.`;
  return [{ check, state: 'fail', message, fix }];
}

/** Listens on a port for a moment. Returns the error if that fails. */
function findPortFault(port: number, host: string): Promise<NodeJS.ErrnoException | undefined> {
  return new Promise((done) => {
    const server = createServer();
    server.once('error', done);
    server.listen({ port, host, exclusive: true }, () => server.close(() => done(undefined)));
  });
}

/** Checks the running Jobwire. If none is running, the credentials in the configuration are tested directly. */
async function checkApi(context: Context, url: string, file: ConfigFile | undefined): Promise<Check[]> {
  const check = 'Jobwire API';
  const probe = await probeUrl(`${url}/healthz`);
  if (!probe.responded) {
    const message = `${url} can’t be reached: ${probe.failureReason}.`;
    const start = file === undefined ? 'start' : `start --config ${quote(file.path)}`;
    const fix: Check['fix'] = (toCommand) =>
      `Set its URL with --url or JOBWIRE_URL, or start Jobwire. Run: ${toCommand(start)}`;
    return [{ check, state: 'fail', message, fix }, ...(await checkCredentials(file))];
  }
  // The API key is never sent to another program.
  if (!(await isJobwire(url))) {
    const [cause, fix] =
      probe.status < 300 || probe.status === 404
        ? ['Another program uses this address.', 'Set the URL of Jobwire with --url or JOBWIRE_URL.']
        : [
            'Jobwire is starting, or a proxy in front of it does not pass the request on.',
            'Run this command again. Then check the log, and the URL.',
          ];
    const message = `${url} responds, but not as Jobwire (HTTP ${probe.status}). ${cause}`;
    return [{ check, state: 'fail', message, fix }, ...(await checkCredentials(file))];
  }
  const server = [...checkSkew('Clock', 'the API', probe), ...(await checkStore(url))];
  let key: string | undefined;
  try {
    key = context.key() ?? findKey(file, url);
  } catch (cause) {
    const message = cause instanceof Error ? cause.message : String(cause);
    const fix = 'Pass a file that contains the key.';
    return [...server, { check: 'API key', state: 'fail', message, fix }];
  }
  if (key === undefined) {
    const message = `${url} responds. No API key is set, so accounts and endpoints can’t be checked.`;
    const fix = 'Set JOBWIRE_API_KEY, or pass a file with --key-file.';
    const untested = file ? reportUntested('no API key is set') : [];
    return [...server, { check, state: 'warn', message, fix }, ...untested];
  }
  const message = `The connection to ${url} is not encrypted.`;
  const connection: Check = { check: 'Connection', state: 'warn', message, fix: 'Use an https:// URL.' };
  return [...server, ...(isUnencrypted(url) ? [connection] : []), ...(await checkRunning({ url, key }))];
}

/** Returns the key of the Jobwire that a configuration starts, if the user may read it. */
function findKey(file: ConfigFile | undefined, url: string): string | undefined {
  if (!file || url !== findUrl(file)) return undefined;
  if (file.config?.apiKey !== undefined) return file.config.apiKey;
  try {
    return readFileSync(join(file.dataDir, 'api-key'), 'utf8').trim();
  } catch {
    return undefined;
  }
}

/** Returns a warning that no credentials were tested. */
function reportUntested(reason: string): Check[] {
  const message = `The credentials of the accounts were not tested, because ${reason}.`;
  const fix = 'Correct that first, and run this command again.';
  return [{ check: 'Credentials', state: 'warn', message, fix }];
}

/** Tests the credentials of every account of a configuration: token, identity, one page of jobs. */
async function checkCredentials(file: ConfigFile | undefined): Promise<Check[]> {
  if (!file) return [];
  const { config } = file;
  if (!config) return reportUntested('the configuration can’t be used');
  const limit = pLimit(CONCURRENT_TESTS);
  return limit.map(config.accounts, async ({ id, region, clientId, clientSecret }): Promise<Check> => {
    const outcome = await testCredentials(
      { services: config.regions, now: Date.now },
      { region, credentials: { clientId, clientSecret } },
    );
    if (outcome.kind === 'tested') {
      const fix =
        'If a setting or a secret is wrong, correct it in the configuration file, or in the file or environment variable that it names. Then run this command again.';
      return toTestCheck(id, outcome.report, fix);
    }
    const fix = `Correct the entry of ${id} in accounts.`;
    return { check: `Account ${id}`, state: 'fail', message: outcome.reason, fix };
  });
}

/** Returns the address of the Jobwire that a configuration starts. */
function findUrl({ host, port, config }: ConfigFile): string {
  if (port === 0 && config?.publicUrl !== undefined) return config.publicUrl.replace(/\/+$/, '');
  return formatUrl(host.replace(/^0\.0\.0\.0$/, '127.0.0.1').replace(/^::$/, '::1'), port);
}

function formatUrl(host: string, port: number): string {
  return `http://${host.includes(':') ? `[${host}]` : host}:${port}`;
}

/** Returns whether Jobwire responds: other programs do not have this event type. */
async function isJobwire(url: string): Promise<boolean> {
  try {
    const answer = await fetch(`${url}/v1/event-types/${EVENT_TYPE}`, {
      redirect: 'manual',
      signal: AbortSignal.timeout(PROBE_MS),
    });
    const body = (await answer.json()) as { type?: unknown } | null;
    return body?.type === EVENT_TYPE;
  } catch {
    return false;
  }
}
const EVENT_TYPE = 'job.dispatched';
