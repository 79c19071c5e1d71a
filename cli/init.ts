/** `jobwire init`: tests the credentials of a first account, and writes the configuration for it. */

import { accessSync, constants, existsSync, realpathSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { dirname, isAbsolute, join, relative, resolve, sep } from 'node:path';
import { fileURLToPath } from 'node:url';
import * as z from 'zod';
import { findCli, quote } from '../local/terminal.ts';
import { NewCredentials } from '../shared/accounts/account-input.ts';
import { testCredentials } from '../shared/accounts/account-test.ts';
import type { TestReport } from '../shared/accounts/account-views.ts';
import { baseUrl } from '../shared/config.ts';
import { checkUrl, isPrivateUrl } from '../shared/delivery/outbound.ts';
import { newSigningSecret } from '../shared/delivery/signing-secrets.ts';
import { formatCode } from '../shared/error-codes.ts';
import { id } from '../shared/validation.ts';
import { printSteps, readClientSecret } from './accounts.ts';
import { type Context, type FlagValues, UsageError } from './command.ts';
import { type CLIENT_SECRET, prompt } from './input.ts';
import { sanitizeLine } from './output.ts';

const { clientId, clientSecret } = NewCredentials.shape;

/** File of the signing secret. No account's secret has this name, because its id contains no underscore. */
const SIGNING_SECRET = 'webhook_signing.secret';

/** Settings in the order of their prompts, by option: the prompt and the rule. */
const SETTINGS = {
  account: { ask: 'Id of the account in Jobwire, such as acme', rule: id },
  region: { ask: 'Region of the ordering API, such as us', rule: id },
  'base-url': { ask: 'Base URL of the ordering API', rule: baseUrl },
  'auth-url': { ask: 'URL of the server that issues tokens for the ordering API', rule: baseUrl },
  realm: { ask: 'Realm on that server', rule: z.string().min(1, 'must not be empty') },
  'client-id': { ask: 'Client id', rule: clientId },
} as const;
type Setting = keyof typeof SETTINGS;
type Settings = Record<Setting, string>;

type InitFlags = { readonly [S in Setting]: string | undefined } & FlagValues<typeof CLIENT_SECRET> & {
    readonly config: string | undefined;
    readonly endpoint: string | undefined;
    readonly 'allow-private-networks': boolean;
    readonly force: boolean;
    readonly 'no-test': boolean;
  };

/** Asks for the missing settings, tests them and writes the files. Returns 1 if the test fails. */
export async function init(context: Context, flags: InitFlags): Promise<number | undefined> {
  const { out, stdin } = context;
  const path = flags.config ?? 'jobwire.json';
  const folder = dirname(resolve(path));
  checkTarget(path, flags.force);
  let endpoint: Endpoint | undefined;
  if (flags.endpoint !== undefined) {
    const url = flags.endpoint;
    const isPrivateAllowed = flags['allow-private-networks'] || (await askPermission(context, url));
    const problem = checkUrl(url, isPrivateAllowed);
    if (problem !== undefined) {
      const isPermitMissing = isPrivateUrl(url) && checkUrl(url, true) === undefined;
      const why = isPermitMissing ? `${PRIVATE} To set it, add --allow-private-networks.` : problem;
      throw new UsageError(`--endpoint is not accepted. ${why}`);
    }
    endpoint = { url, isPrivateAllowed };
  }
  const kept = findKeptSecret(flags);
  const names = Object.keys(SETTINGS) as Setting[];
  const prompts = stdin.isTTY && (kept === undefined || names.some((name) => flags[name] === undefined));

  let options: Partial<Settings> = Object.fromEntries(names.map((name) => [name, flags[name]]));
  let settings: Partial<Settings> = {};
  for (;;) {
    const given = await readSettings(context, options, settings);
    const { account, region, realm } = given;
    const secretPath = join(dirname(path), `${account}.secret`);
    if (kept === undefined) checkTarget(secretPath, flags.force);
    const secret = await readClientSecret(context, flags);
    const problem = findProblem(clientSecret, secret);
    if (problem !== undefined) throw new UsageError(`The client secret ${problem}.`);
    const service = { baseUrl: given['base-url'], authUrl: given['auth-url'], realm };
    const credentials = { clientId: given['client-id'], clientSecret: secret };

    const report = flags['no-test'] ? undefined : await test(context, region, service, credentials);
    if (report?.ok === false) {
      out.document(report, () => printSteps(context, report));
      out.note('Nothing was written. To skip the test, use --no-test.');
      if (!prompts) return 1;
      out.note('Correct the settings. Enter keeps a value, and Ctrl-C exits.');
      settings = given;
      options = {};
      continue;
    }

    if (prompts) endpoint ??= await askEndpoint(context, flags['allow-private-networks']);
    const signingSecretPath = join(dirname(path), SIGNING_SECRET);
    if (endpoint) checkTarget(signingSecretPath, flags.force);
    if (kept === undefined) write(secretPath, `${secret}\n`, flags.force, 0o600);
    if (endpoint) write(signingSecretPath, `${newSigningSecret()}\n`, flags.force, 0o600);
    const schema = findSchema(folder);
    const config = {
      ...(schema === undefined ? {} : { $schema: schema }),
      dataDir: join(folder, '.jobwire'),
      regions: { [region]: service },
      accounts: [
        {
          ...{ id: account, region, clientId: credentials.clientId },
          clientSecret: kept ?? `file:${account}.secret`,
        },
      ],
      ...(endpoint
        ? { endpoints: [{ id: 'webhook', url: endpoint.url, secret: `file:${SIGNING_SECRET}` }] }
        : {}),
      ...(endpoint?.isPrivateAllowed || flags['allow-private-networks']
        ? { webhooks: { allowPrivateNetworks: true } }
        : {}),
    };
    write(path, `${JSON.stringify(config, null, 2)}\n`, flags.force, 0o666);
    const secretFile = kept === undefined ? secretPath : null;
    const apiKeyFile = join(config.dataDir, 'api-key');
    const signingSecretFile = endpoint ? signingSecretPath : null;
    const files = { config: path, secretFile, signingSecretFile, apiKeyFile };
    out.document({ ...files, test: report ?? null }, () => {
      if (report) printSteps(context, report);
      printNext(context, { ...files, account });
    });
    return undefined;
  }
}

/** A first endpoint, and whether private networks are allowed. */
interface Endpoint {
  readonly url: string;
  readonly isPrivateAllowed: boolean;
}

const PRIVATE =
  'The endpoint is on this machine or in a private network. Jobwire sends events there only with the setting webhooks.allowPrivateNetworks, which applies to all endpoints.';

/** Prompts for the URL of a first endpoint. `undefined`: none. */
async function askEndpoint(context: Context, isAllowed: boolean): Promise<Endpoint | undefined> {
  const { stdin, out } = context;
  for (;;) {
    const question = 'URL of a webhook endpoint to add (Enter for none): ';
    const url = (await prompt(stdin, question, 'visible')).trim();
    if (url === '') return undefined;
    const isPrivateAllowed = isAllowed || (await askPermission(context, url));
    const problem = checkUrl(url, isPrivateAllowed);
    if (problem === undefined) return { url, isPrivateAllowed };
    out.note(problem);
  }
}

/** Prompts on a terminal whether to allow private networks, if a URL requires it. */
async function askPermission({ stdin, out }: Context, url: string): Promise<boolean> {
  if (!stdin.isTTY || !isPrivateUrl(url)) return false;
  out.note(PRIVATE);
  const answer = await prompt(stdin, 'Allow private networks? [y/N]: ', 'visible');
  return /^y(es)?$/i.test(answer.trim());
}

/** Returns the path of the JSON Schema in this package, relative to a folder, or its URL. `undefined` if there is none. */
function findSchema(folder: string): string | undefined {
  // Beside the built CLI, and in the repository.
  const candidates = ['../jobwire.schema.json', '../docs/jobwire.schema.json'];
  const found = candidates.map((path) => new URL(path, import.meta.url)).find((url) => existsSync(url));
  if (found === undefined) return undefined;
  const path = relative(realpathSync(folder), realpathSync(fileURLToPath(found))).replaceAll(sep, '/');
  // On another drive of Windows there is no relative path.
  if (isAbsolute(path)) return found.href;
  return path.startsWith('.') ? path : `./${path}`;
}

/** Returns the reference to a secret that stays where it is. `undefined` for one to store. */
function findKeptSecret(flags: InitFlags): string | undefined {
  const { 'client-secret-file': file, 'client-secret-env': variable } = flags;
  if (variable !== undefined) return `env:${variable}`;
  // A pipe, such as that of a process substitution, does not exist later.
  const isFile = file !== undefined && statSync(file, { throwIfNoEntry: false })?.isFile();
  return isFile ? `file:${resolve(file)}` : undefined;
}

/** Returns the settings: of options, and on a terminal from prompts with the previous values as defaults. */
async function readSettings(
  { stdin, out }: Context,
  options: Partial<Settings>,
  previous: Partial<Settings>,
): Promise<Settings> {
  const names = Object.keys(SETTINGS) as Setting[];
  const missing = names.filter((name) => name !== 'realm' && options[name] === undefined);
  if (!stdin.isTTY && missing.length > 0) {
    const list = missing.map((name) => `--${name}`).join(', ');
    throw new UsageError(
      `${list} ${missing.length > 1 ? 'are' : 'is'} missing. Without a terminal, the command does not prompt.`,
    );
  }
  const settings: Partial<Settings> = {};
  for (const name of names) {
    const { ask, rule } = SETTINGS[name];
    const fallback = previous[name] ?? (name === 'realm' ? settings.region : undefined);
    let value = options[name] ?? (stdin.isTTY ? undefined : fallback);
    const problem = value === undefined ? undefined : findProblem(rule, value);
    if (problem !== undefined) throw new UsageError(`--${name} ${problem}.`);
    while (value === undefined) {
      const hint = fallback === undefined ? '' : ` [${sanitizeLine(fallback)}]`;
      const typed = (await prompt(stdin, `${ask}${hint}: `, 'visible')).trim() || (fallback ?? '');
      const problem = findProblem(rule, typed);
      if (problem === undefined) value = typed;
      else out.note(`The value ${problem}.`);
    }
    settings[name] = value;
  }
  return settings as Settings;
}

/** Returns what a value must be, if it is invalid. */
function findProblem(rule: z.ZodType, value: string): string | undefined {
  return rule.safeParse(value).error?.issues[0]?.message;
}

async function test(
  { out }: Context,
  region: string,
  service: { readonly baseUrl: string; readonly authUrl: string; readonly realm: string },
  credentials: NewCredentials,
): Promise<TestReport> {
  out.progress('Testing the credentials …');
  const services = { [region]: service };
  const outcome = await testCredentials({ services, now: Date.now }, { region, credentials });
  out.progress();
  if (outcome.kind !== 'tested') throw new UsageError(outcome.reason);
  return outcome.report;
}

/** Throws {@link UsageError} if a file exists and must be kept, or if its folder is not writable. */
function checkTarget(path: string, force: boolean): void {
  if (existsSync(path) && !force) throw existsError(path);
  try {
    accessSync(dirname(resolve(path)), constants.W_OK | constants.X_OK);
  } catch (cause) {
    throw writeError(path, cause);
  }
}

/** Creates a file with this mode. With `force`, replaces an existing one, or a link. */
function write(path: string, text: string, force: boolean, mode: number): void {
  try {
    if (force) rmSync(path, { force: true });
    writeFileSync(path, text, { flag: 'wx', mode });
  } catch (cause) {
    throw (cause as NodeJS.ErrnoException).code === 'EEXIST' ? existsError(path) : writeError(path, cause);
  }
}

const existsError = (path: string) =>
  new UsageError(
    `${path} exists. To replace it, use --force. To keep it, use --config with a file in another folder.`,
  );

function writeError(path: string, cause: unknown): UsageError {
  const { code } = cause as NodeJS.ErrnoException;
  return new UsageError(`${path} can’t be written${formatCode(code)}. Choose another file with --config.`, {
    cause,
  });
}

function printNext(
  { out }: Context,
  files: {
    readonly config: string;
    readonly secretFile: string | null;
    readonly signingSecretFile: string | null;
    readonly apiKeyFile: string;
    readonly account: string;
  },
): void {
  const { config: path, secretFile, signingSecretFile, apiKeyFile, account } = files;
  out.line(`Written: ${sanitizeLine(path)}`);
  if (secretFile !== null)
    out.line(`Written: ${sanitizeLine(secretFile)} (the client secret; only you can read it)`);
  if (signingSecretFile !== null) {
    out.line(
      `Written: ${sanitizeLine(signingSecretFile)} (the signing secret, for the receiver; only you can read it)`,
    );
  }
  out.line();
  const jobwire = findCli();
  out.line('To start Jobwire:');
  out.line(`  ${jobwire} start --config ${quote(path)}`);
  out.line();
  out.line('The first start creates the API key. Then, in another terminal:');
  out.line(`  export JOBWIRE_API_KEY="$(cat ${quote(apiKeyFile)})"`);
  out.line(`  ${jobwire} accounts show ${account}`);
  out.line(`  ${jobwire} events tail --account ${account}`);
  out.line(
    signingSecretFile === null
      ? `  ${jobwire} endpoints add https://receiver.example/webhooks --types 'job.*'`
      : `  ${jobwire} endpoints ping webhook`,
  );
}
