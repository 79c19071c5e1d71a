/** `jobwire doctor`: checks for everything that can prevent operation, concurrently, each within five seconds. */
import { accessSync, constants, existsSync, readFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { dirname, resolve, sep } from 'node:path';
import { type Config, parseConfig } from '../shared/config.ts';
import { whyUnreachable } from './client.ts';
import type { Context } from './command.ts';
import { clean } from './output.ts';
import { startsOn } from './start.ts';

/** Result of one check. */
interface Check {
  readonly check: string;
  readonly state: 'ok' | 'warn' | 'fail';
  readonly words: string;
  /** Suggested fix. */
  readonly todo?: string;
}

const PROBE_MS = 5_000;
/**
 * Clock skew above which a check warns. Receivers reject signatures that are minutes off, and timestamps of events come from this clock.
 */
const SKEW_WARN_MS = 5_000;
const SKEW_FAIL_MS = 60_000;

/** Runs and prints all checks. Returns 1 if one fails. */
export async function doctor(
  context: Context,
  flags: { readonly config: string | undefined },
): Promise<number | undefined> {
  const { out, env } = context;
  out.progress('Looking …');
  const file = flags.config === undefined ? undefined : readConfig(flags.config, env);
  const probes: Promise<Check[]>[] = [
    Promise.resolve([checkNode()]),
    checkDynamo(file?.config),
    checkPort(file),
    checkApi(context),
    ...(file ? [Promise.resolve(file.checks), checkDataDir(file, context.url)] : []),
    ...(file ? file.regions.map(checkRegion) : []),
    checkMail(file?.config),
  ];
  const checks = (await Promise.all(probes)).flat();
  const failed = checks.some(({ state }) => state === 'fail');
  out.document({ ok: !failed, checks }, () => {
    const width = Math.max(...checks.map(({ check }) => check.length));
    const style = { ok: 'green', warn: 'yellow', fail: 'red' } as const;
    for (const { check, state, words, todo } of checks) {
      out.hang(`${out.paint(style[state], state.padEnd(4))}  ${check.padEnd(width)}  `, clean(words));
      if (todo !== undefined) out.hang(`${''.padEnd(width + 8)}→ `, clean(todo));
    }
    if (file === undefined) out.note('With --config FILE it looks at your configuration, too.');
  });
  return failed ? 1 : undefined;
}

function checkNode(): Check {
  const { node } = process.versions;
  const found = startsOn();
  if (!found) {
    return {
      check: 'Node',
      state: 'warn',
      words: `${node} runs every command but start.`,
      todo: 'For jobwire start: npm install node@24 beside jobwire, or run it on Node 24 or later.',
    };
  }
  const words = found.beside
    ? `${node}; jobwire start runs on ${found.version}, which is installed beside.`
    : node;
  return { check: 'Node', state: 'ok', words };
}

async function checkDynamo(config: Config | undefined): Promise<Check[]> {
  if (config?.dynamodbEndpoint === undefined) return [];
  const probe = await reach(config.dynamodbEndpoint);
  if (probe.answered) return [{ check: 'DynamoDB', state: 'ok', words: 'dynamodbEndpoint answers.' }];
  const words = `dynamodbEndpoint can’t be reached: ${probe.why}.`;
  return [{ check: 'DynamoDB', state: 'fail', words, todo: 'Start it, or correct dynamodbEndpoint.' }];
}

/** A configuration, as far as it can be parsed. */
interface ConfigFile {
  readonly checks: Check[];
  readonly config: Config | undefined;
  /** Read even if the rest of the configuration is invalid. */
  readonly port: number;
  readonly host: string;
  readonly dataDir: string;
  readonly regions: readonly { readonly id: string; readonly baseUrl: string; readonly tokenUrl: string }[];
}

function readConfig(path: string, env: Context['env']): ConfigFile {
  const check = 'Configuration';
  const nothing = { config: undefined, port: 4000, host: '127.0.0.1', dataDir: '.jobwire', regions: [] };
  const failed = (words: string, todo: string) => ({
    ...nothing,
    checks: [{ check, state: 'fail' as const, words, todo }],
  });
  let text: string;
  try {
    text = readFileSync(path, 'utf8');
  } catch {
    return failed(`${path} can’t be read.`, 'Give the path of the file with --config.');
  }
  let raw: Record<string, unknown>;
  try {
    raw = JSON.parse(text) as Record<string, unknown>;
  } catch {
    return failed(`${path} is not JSON.`, 'Correct it; a comma too many is the usual reason.');
  }
  const places = {
    port: typeof raw?.port === 'number' ? raw.port : nothing.port,
    host: typeof raw?.host === 'string' ? raw.host : nothing.host,
    dataDir: typeof raw?.dataDir === 'string' ? raw.dataDir : nothing.dataDir,
    regions: regionsIn(raw?.regions),
  };
  const missing = [...new Set(namesIn(raw))].filter((name) => !env[name]);
  if (missing.length > 0) {
    const words = `These environment variables that it names are not set: ${missing.join(', ')}.`;
    return {
      ...places,
      config: undefined,
      checks: [{ check, state: 'fail', words, todo: 'Set them, then run doctor again to check the rest.' }],
    };
  }
  try {
    const config = parseConfig(raw, env);
    const { accounts, endpoints, regions } = config;
    const words = `${Object.keys(regions).length} regions, ${accounts.length} accounts, ${endpoints.length} endpoints.`;
    return { ...places, config, checks: [{ check, state: 'ok', words }] };
  } catch (cause) {
    const words = cause instanceof Error ? cause.message : 'It is not valid.';
    return {
      ...places,
      config: undefined,
      checks: [{ check, state: 'fail', words, todo: `Correct ${path}.` }],
    };
  }
}

/** Returns the environment variables that a configuration names. */
function namesIn(value: unknown): string[] {
  if (typeof value === 'string') return value.startsWith('env:') ? [value.slice('env:'.length)] : [];
  if (typeof value !== 'object' || value === null) return [];
  return Object.values(value).flatMap(namesIn);
}

function regionsIn(value: unknown): ConfigFile['regions'] {
  if (typeof value !== 'object' || value === null) return [];
  return Object.entries(value).flatMap(([id, region]) => {
    const { baseUrl, authUrl, realm } = (region ?? {}) as Record<string, unknown>;
    if (
      ![baseUrl, authUrl].every(
        (url) => typeof url === 'string' && /^https?:\/\//.test(url) && URL.canParse(url),
      )
    ) {
      return [];
    }
    const auth = String(authUrl).replace(/\/+$/, '');
    const tokenUrl = `${auth}/realms/${encodeURIComponent(String(realm))}/protocol/openid-connect/token`;
    return [{ id, baseUrl: String(baseUrl), tokenUrl }];
  });
}

async function checkDataDir({ dataDir, port, host }: ConfigFile, url: string): Promise<Check[]> {
  const check = 'Data folder';
  const path = resolve(dataDir);
  const todo = 'Make it writable for this user, or set another dataDir.';
  if (!existsSync(path)) {
    let parent = dirname(path);
    while (!existsSync(parent)) parent = dirname(parent);
    try {
      accessSync(parent + sep, constants.W_OK | constants.X_OK);
      return [{ check, state: 'ok', words: `${path} will be made.` }];
    } catch {
      return [
        {
          check,
          state: 'fail',
          words: `${path} can’t be made: ${parent} is no folder that can be written to.`,
          todo,
        },
      ];
    }
  }
  try {
    accessSync(path + sep, constants.W_OK | constants.R_OK | constants.X_OK);
  } catch {
    return [{ check, state: 'fail', words: `${path} is no folder that can be written to.`, todo }];
  }
  let openDataDir: typeof import('../local/data-dir.ts').openDataDir;
  try {
    ({ openDataDir } = await import('../local/data-dir.ts'));
  } catch {
    const words = `${path} is writable; whether it is in use can’t be told on Node ${process.versions.node}.`;
    return [{ check, state: 'ok', words }];
  }
  try {
    openDataDir(path).release();
    return [{ check, state: 'ok', words: `${path} is writable and not in use.` }];
  } catch (cause) {
    const words = cause instanceof Error ? cause.message : String(cause);
    // Normally the port is in use by the Jobwire that this configuration starts, which is correct.
    const addresses = [addressOf(host, port), ...(isInside(url) ? [url.replace(/\/+$/, '')] : [])];
    for (const address of /in use/.test(words) ? addresses : []) {
      if (await answersAsJobwire(address)) {
        return [{ check, state: 'ok', words: `${path} is in use, and Jobwire runs at ${address}.` }];
      }
    }
    return [
      {
        check,
        state: 'fail',
        words: `${words.split(';')[0]?.replace(/\.$/, '')}.`,
        todo: 'Stop the other Jobwire, or set another dataDir.',
      },
    ];
  }
}

async function checkPort(file: ConfigFile | undefined): Promise<Check[]> {
  const { port = 4000, host = '127.0.0.1' } = file ?? {};
  const check = 'Port';
  if (port === 0) return [];
  const fault = await new Promise<NodeJS.ErrnoException | undefined>((done) => {
    const server = createServer();
    server.once('error', done);
    server.listen({ port, host, exclusive: true }, () => server.close(() => done(undefined)));
  });
  if (!fault) return [{ check, state: 'ok', words: `${port} is free.` }];
  if (fault.code === 'EADDRINUSE' && (await answersAsJobwire(addressOf(host, port)))) {
    return [{ check, state: 'ok', words: `Jobwire runs on ${port}.` }];
  }
  const words =
    fault.code === 'EADDRINUSE'
      ? `${port} is in use by something else.`
      : `${host}:${port} can’t be listened on (${fault.code}).`;
  return [{ check, state: 'fail', words, todo: 'Stop what listens there, or choose another port.' }];
}

async function checkApi(context: Context): Promise<Check[]> {
  const { url, env } = context;
  const check = 'Jobwire API';
  const probe = await reach(`${url.replace(/\/+$/, '')}/healthz`);
  if (!probe.answered) {
    const asked = url !== 'http://127.0.0.1:4000' || Boolean(env.JOBWIRE_URL);
    const words = `${url} can’t be reached: ${probe.why}.`;
    const todo = 'Start it with jobwire start, or give its address with --url or JOBWIRE_URL.';
    return [{ check, state: asked ? 'fail' : 'warn', words, todo }];
  }
  const clock = skewOf('Clock', 'the API', probe);
  let key: string | undefined;
  try {
    key = context.key();
  } catch (cause) {
    const words = cause instanceof Error ? cause.message : String(cause);
    return [...clock, { check: 'API key', state: 'fail', words, todo: 'Name a file that holds the key.' }];
  }
  if (key === undefined) {
    const words = `${url} answers; there is no key to try.`;
    return [
      ...clock,
      { check, state: 'warn', words, todo: 'Set JOBWIRE_API_KEY, or name a file with --key-file.' },
    ];
  }
  const shown = await reach(`${url.replace(/\/+$/, '')}/v1/key`, { authorization: `Bearer ${key}` });
  if (!shown.answered) {
    return [
      ...clock,
      { check, state: 'fail', words: `${url} can’t be reached: ${shown.why}.`, todo: 'Look at its log.' },
    ];
  }
  if (shown.status === 401 || shown.status === 403) {
    const todo = 'Check JOBWIRE_API_KEY; jobwire keys create makes a new one with another admin key.';
    return [...clock, { check, state: 'fail', words: `${url} refuses the key.`, todo }];
  }
  if (shown.status >= 500) {
    const words = `${url} answers with ${shown.status}.`;
    return [...clock, { check, state: 'fail', words, todo: 'Look at its log.' }];
  }
  if (new URL(url).protocol === 'http:' && !isInside(url)) {
    const words = `${url} takes the key, which goes there unencrypted.`;
    return [...clock, { check, state: 'warn', words, todo: 'Use an https:// address.' }];
  }
  return [...clock, { check, state: 'ok', words: `${url} answers and takes the key.` }];
}

async function checkRegion(region: ConfigFile['regions'][number]): Promise<Check[]> {
  const [token, api] = await Promise.all([reach(region.tokenUrl), reach(region.baseUrl)]);
  const told = (what: string, field: string, probe: Probe): Check => {
    const check = `Region ${region.id}`;
    if (probe.answered) return { check, state: 'ok', words: `${what} answers.` };
    const todo = `Check regions.${region.id}.${field}, and what stands between: DNS, firewall, proxy.`;
    return { check, state: 'fail', words: `${what} can’t be reached: ${probe.why}.`, todo };
  };
  const clock = [token, api].find((probe) => probe.answered);
  return [
    told('Its token endpoint', 'authUrl', token),
    told('Its API', 'baseUrl', api),
    ...(clock ? skewOf(`Clock`, `the ordering service (${region.id})`, clock) : []),
  ];
}

/** Connects to the mail server and goes as far as possible without sending a mail. */
async function checkMail(config: Config | undefined): Promise<Check[]> {
  if (!config?.notifications) return [];
  const check = 'Mail server';
  const { host, port, secure, user, password } = config.notifications.smtp;
  const { createTransport } = await import('nodemailer');
  const mailer = createTransport({
    ...{ host, port, secure },
    ...(user === undefined ? {} : { auth: { user, pass: password ?? '' } }),
    requireTLS: !secure && user !== undefined && !isInside(addressOf(host, port)),
    ...{
      connectionTimeout: PROBE_MS,
      greetingTimeout: PROBE_MS,
      socketTimeout: PROBE_MS,
      dnsTimeout: PROBE_MS,
    },
  });
  const failed = (words: string, todo: string): Check[] => [{ check, state: 'fail', words, todo }];
  try {
    await mailer.verify();
    return [{ check, state: 'ok', words: `${host}:${port} answers and lets us in.` }];
  } catch (cause) {
    const { code = 'no code' } = cause as { code?: string };
    const todo = 'Check notifications.smtp, and what stands between: DNS, firewall.';
    if (code === 'EAUTH') {
      const correct = 'Correct notifications.smtp.user and password.';
      return failed(`${host}:${port} doesn’t take the user and password.`, correct);
    }
    if (code === 'ETLS') {
      const trust = 'Check notifications.smtp.secure, and that its certificate is one that Node trusts.';
      return failed(`The connection to ${host}:${port} can’t be secured.`, trust);
    }
    return failed(`${host}:${port} can’t be reached (${code}).`, todo);
  } finally {
    mailer.close();
  }
}

type Probe =
  | { readonly answered: true; readonly status: number; readonly skewMs: number | undefined }
  | { readonly answered: false; readonly why: string };

/** Checks whether a server responds, and how far its clock is ahead of ours. */
async function reach(url: string, headers: Record<string, string> = {}): Promise<Probe> {
  const askedAt = Date.now();
  try {
    const answer = await fetch(url, { headers, redirect: 'manual', signal: AbortSignal.timeout(PROBE_MS) });
    const middle = (askedAt + Date.now()) / 2;
    await answer.body?.cancel();
    const date = Date.parse(answer.headers.get('date') ?? '');
    // The header has whole seconds, rounded down.
    const skewMs = Number.isNaN(date) ? undefined : date + 500 - middle;
    return { answered: true, status: answer.status, skewMs };
  } catch (cause) {
    return { answered: false, why: whyUnreachable(cause) };
  }
}

function skewOf(check: string, whose: string, probe: Probe): Check[] {
  if (!probe.answered || probe.skewMs === undefined) return [];
  const off = Math.abs(probe.skewMs);
  const state = off >= SKEW_FAIL_MS ? 'fail' : off >= SKEW_WARN_MS ? 'warn' : 'ok';
  if (state === 'ok') return [{ check, state, words: `Agrees with ${whose}.` }];
  const words = `${Math.round(off / 1000)} s ${probe.skewMs > 0 ? 'behind' : 'ahead of'} ${whose}.`;
  return [{ check, state, words, todo: 'Let this machine keep its time by NTP.' }];
}

/** Returns whether an address belongs to this machine. */
function isInside(url: string): boolean {
  return /^(localhost|127\..*|\[::1\])$/.test(new URL(url).hostname);
}

function addressOf(host: string, port: number): string {
  return `http://${host.includes(':') ? `[${host}]` : host}:${port}`;
}

async function answersAsJobwire(url: string): Promise<boolean> {
  try {
    const answer = await fetch(`${url}/healthz`, {
      redirect: 'manual',
      signal: AbortSignal.timeout(PROBE_MS),
    });
    const body = (await answer.json()) as { status?: unknown } | null;
    return body?.status === 'ok';
  } catch {
    return false;
  }
}
