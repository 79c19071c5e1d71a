/** Runs a command line and prints errors. Returns the exit code. */

import { existsSync } from 'node:fs';
import { ApiError, type Client, createClient, UnreachableError } from '../client/index.ts';
import { eventTypes } from '../client/inputs.ts';
import { findCli, nameCli, quote } from '../local/terminal.ts';
import { formatCode } from '../shared/error-codes.ts';
import { VERSION } from '../shared/version.ts';
import {
  COMPLETE,
  type Commands,
  type Context,
  command,
  findWords,
  getOwnFlags,
  helpText,
  InterruptedError,
  type Invocation,
  KeyError,
  OperationError,
  parse,
  toInputNames,
  UsageError,
} from './command.ts';
import type { Shell } from './completion.ts';
import { AFTER, CLIENT_SECRET, HEADER_ENV, SELECTION } from './input.ts';
import { type CommandError, createOutput, sanitizeLine } from './output.ts';
import { findConnection, isUnencrypted, NO_CONNECTION } from './profiles.ts';

/** API key of a self-hosted Jobwire with the default data folder, in the current folder. */
const KEY_FILE = '.jobwire/api-key';
const INTERRUPTED = 130;
/** As the shell reports a program that SIGPIPE ended. */
const CLOSED = 141;

/** Options that name the data folder of a self-hosted Jobwire. */
const DATA_FOLDER = {
  config: { value: 'FILE', about: 'Configuration file that contains the data folder. Default: jobwire.json' },
  'data-dir': { value: 'FOLDER', about: 'Data folder, instead of the one in the configuration' },
} as const;

/** Commands that belong to no group. Their modules are loaded when they run. */
const single: Commands = {
  init: command({
    about:
      'Writes the configuration of a self-hosted Jobwire for a first account. If the test of the credentials fails, nothing is written.',
    more: 'On a terminal, the command prompts for values that are not given. The client secret is read from stdin, or from a file or an environment variable to which the configuration then refers. A secret from stdin or a prompt is stored next to the configuration, in a file that only you can read.',
    flags: {
      config: { value: 'FILE', about: 'Configuration file to write. Default: jobwire.json' },
      account: { value: 'ID', about: 'Id of the account in Jobwire, of your choice' },
      region: { value: 'REGION', about: 'Region of the ordering API, such as us' },
      'base-url': { value: 'URL', about: 'Base URL of the ordering API' },
      'auth-url': { value: 'URL', about: 'URL of the server that issues tokens for the ordering API' },
      realm: { value: 'NAME', about: 'Realm on that server. Default: the region' },
      'client-id': { value: 'ID', about: 'Client id of the account’s credentials' },
      ...CLIENT_SECRET,
      endpoint: {
        value: 'URL',
        about: 'URL of a first webhook endpoint for all events',
      },
      'allow-private-networks': {
        about:
          'Permit endpoints on this machine and in private networks, also with http://. Default: a prompt, if --endpoint requires it',
      },
      force: { about: 'Replace existing files' },
      'no-test': { about: 'Skip the test of the credentials' },
    },
    example:
      'init --account acme --region us --base-url https://orders.example.com/api --auth-url https://login.example.com --client-id acme-api < secret.txt',
    local: true,
    run: async (context, _args, flags) => (await import('./init.ts')).init(context, flags),
  }),
  start: command({
    about: 'Starts a self-hosted Jobwire: a demo, or your own accounts with --config.',
    more: 'Requires Node 24. If your Node is older, run npm install node@24, with the options with which you installed jobwire.',
    flags: {
      config: { value: 'FILE', about: 'Configuration file. Default: a demo' },
      port: {
        value: 'N',
        about: 'Port of the HTTP API. Default: the port in the configuration, otherwise 4000',
        range: { least: 0, most: 65_535 },
      },
      seed: {
        value: 'N',
        about: 'Seed of the demo data',
        range: { least: 0, most: 4_294_967_295 },
      },
    },
    example: 'start --config jobwire.json',
    local: true,
    textOnly: true,
    run: async (context, _args, flags) => (await import('./start.ts')).start(context, flags),
  }),
  health: command({
    about: 'Reports whether Jobwire runs and its store responds. Requires no API key.',
    more: 'If Jobwire is not ready, the exit code is 4. jobwire doctor shows the cause.',
    example: 'health --url http://127.0.0.1:4000',
    run: async (context) => (await import('./health.ts')).health(context),
  }),
  backup: command({
    about: 'Writes a backup of the data folder of a self-hosted Jobwire to a file. Jobwire may be running.',
    more: 'The file is a tar.gz archive that only you can read. Unless --without-keys is given, it contains the keys of the data folder. With - as the file, the backup is written to stdout. An existing file is not replaced. The data folder needs free space for a temporary copy of the databases.',
    args: ['FILE'],
    flags: {
      ...DATA_FOLDER,
      'without-keys': {
        about: 'Omit secret.key, api-key and aws-credentials. Then keep a copy of secret.key elsewhere',
      },
    },
    example: 'backup jobwire-2026-03-02.tar.gz --config jobwire.json',
    local: true,
    run: async (context, [file], flags) => (await import('./backup.ts')).backup(context, file, flags),
  }),
  restore: command({
    about: 'Restores a backup into a new or empty data folder.',
    more: 'At the next start, all logs continue in a new epoch with the event account.restored. With - as the file, the backup is read from stdin.',
    args: ['FILE'],
    flags: DATA_FOLDER,
    example: 'restore jobwire-2026-03-02.tar.gz --config jobwire.json',
    local: true,
    run: async (context, [file], flags) => (await import('./backup.ts')).restore(context, file, flags),
  }),
  doctor: command({
    about:
      'Checks the running Jobwire, its accounts, their credentials and its endpoints, and suggests fixes.',
    more: 'With --config, it also checks the file and everything to which it refers, and uses the address in the file instead of the current profile. It reports files that changed after the start of Jobwire, because Jobwire reads them only when it starts. If Jobwire is not running, the credentials in the file are tested. Credentials are sent only to the ordering API.',
    flags: {
      config: { value: 'FILE', about: 'Configuration file to check' },
    },
    example: 'doctor --config jobwire.json',
    run: async (context, _args, flags) => (await import('./doctor.ts')).doctor(context, flags),
  }),
  find: command({
    about:
      'Finds accounts, jobs, order groups, recipients and endpoints by the beginning of an id, job number, order number, tracking number or name.',
    more: 'Case is ignored. The roles operate and admin also find recipients by a complete e-mail address or mobile number.',
    args: ['TEXT'],
    fields: { TEXT: 'q' },
    flags: {
      kinds: {
        value: 'A,B',
        about: 'Only results of these kinds. Default: all',
        choices: ['account', 'job', 'orderNumber', 'orderGroup', 'trackingNumber', 'recipient', 'endpoint'],
        many: true,
      },
      region: { value: 'REGION', about: 'Only this region' },
      limit: {
        value: 'N',
        about: 'Maximum number of results of each kind and region. Default: 5',
        range: { least: 1, most: 20 },
      },
    },
    example: 'find 1000',
    run: async (context, [text], flags) => (await import('./find.ts')).find(context, text, flags),
  }),
  listen: command({
    about: 'Forwards new events to a URL, such as a receiver on this machine, as signed webhooks.',
    more: 'Jobwire needs no route to the URL. Events are sent one at a time, in order. An event that the receiver does not accept is not sent again. After a lost connection to Jobwire, the command continues at its last position. If the log can no longer be read from there, because events have expired or a backup was restored, the command ends and prints a cursor for --after.',
    flags: {
      'forward-to': { value: 'URL', about: 'URL of the receiver', required: true },
      ...SELECTION,
      after: AFTER,
      'secret-file': { value: 'FILE', about: 'File that contains the signing secret. Default: generated' },
      'secret-env': { value: 'NAME', about: 'Environment variable that contains the signing secret' },
      ...HEADER_ENV,
      once: {
        value: 'N',
        about: 'Exit after this number of events, with exit code 1 if the receiver did not accept all',
        range: { least: 1, most: 1_000_000 },
      },
    },
    example: "listen --forward-to http://localhost:3000/jobs --types 'job.*'",
    run: async (context, _args, flags) => (await import('./listen.ts')).listen(context, flags),
  }),
  trigger: command({
    about: 'Sends an example event of a type to a receiver, as a signed webhook.',
    more: 'The event has a new id and the current time. Jobwire need not be running. The signing secret of the receiver is read from stdin, a file or an environment variable, or entered at a prompt. To send an event of the log to an endpoint, use jobwire endpoints resend.',
    args: ['TYPE'],
    choices: { TYPE: eventTypes },
    flags: {
      'forward-to': { value: 'URL', about: 'URL of the receiver', required: true },
      'secret-file': { value: 'FILE', about: 'File that contains the signing secret' },
      'secret-env': { value: 'NAME', about: 'Environment variable that contains the signing secret' },
      ...HEADER_ENV,
    },
    example: 'trigger job.dispatched --forward-to http://localhost:3000/jobs --secret-env WEBHOOK_SECRET',
    local: true,
    run: async (context, [type], flags) => (await import('./listen.ts')).trigger(context, type, flags),
  }),
  completion: command({
    about: 'Prints the script that completes commands, options and values in a shell.',
    more: 'bash: add source <(jobwire completion bash) to ~/.bashrc. zsh: add source <(jobwire completion zsh) to ~/.zshrc, after compinit. fish: write the output to ~/.config/fish/completions/jobwire.fish. Completion needs no network.',
    args: ['SHELL'],
    choices: { SHELL: ['bash', 'zsh', 'fish'] },
    example: 'completion bash',
    local: true,
    textOnly: true,
    run: async ({ out }, [shell]) => {
      const { getScript } = await import('./completion.ts');
      out.line(getScript(shell as Shell).trimEnd());
    },
  }),
  get: command({
    about: 'Sends a GET request with the API key, and prints the JSON of the response.',
    more: 'PATH is a path of the HTTP API with its query. The page /docs of Jobwire lists all paths.',
    args: ['PATH'],
    example: "get '/v1/accounts?limit=2'",
    run: async (context, [path]) => (await import('./catalogue.ts')).get(context, path),
  }),
};

/** Groups without commands of the API. */
const LOCAL_GROUPS = ['help', 'profiles', 'cells'];

const loadNotifications = async () => (await import('./notifications.ts')).notifications;
/** Commands by group. A command line loads only its group. */
const groups: Readonly<Record<string, () => Promise<Commands>>> = {
  accounts: async () => ({
    ...(await import('./accounts.ts')).accounts,
    ...(await import('./cells.ts')).moves,
  }),
  attention: async () => (await import('./attention.ts')).attentionCommands,
  cells: async () => (await import('./cells.ts')).cells,
  endpoints: async () => (await import('./endpoints.ts')).endpoints,
  events: async () => (await import('./events.ts')).events,
  'event-types': async () => (await import('./catalogue.ts')).eventTypeCommands,
  jobs: async () => (await import('./jobs.ts')).jobs,
  regions: async () => (await import('./catalogue.ts')).regions,
  notifications: loadNotifications,
  templates: loadNotifications,
  messages: async () => ({ ...(await loadNotifications()), ...(await import('./notes.ts')).notes }),
  suppressions: loadNotifications,
  recipients: async () => (await import('./recipients.ts')).recipients,
  alerts: async () => (await import('./alerts.ts')).alerts,
  keys: async () => (await import('./keys.ts')).keys,
  profiles: async () => (await import('./profile-commands.ts')).profiles,
};

/** Returns the commands of a group and those of no group. Default: all. */
export async function loadCommands(group = ''): Promise<Commands> {
  const load = Object.hasOwn(groups, group) ? groups[group] : undefined;
  const loaded = await Promise.all((load ? [load] : Object.values(groups)).map((one) => one()));
  return Object.assign({}, single, ...loaded);
}

/** Streams, environment and signals that a command line uses. */
export type Host = Pick<NodeJS.Process, 'stdin' | 'stdout' | 'stderr' | 'env' | 'on' | 'off' | 'exit'>;

/** Runs one command line. Returns an exit code of `EXIT_CODES`. */
export async function run(argv: readonly string[], host: Host = process): Promise<number> {
  const { stdout, stderr, stdin, env } = host;
  const wide = Math.min(110, stdout.columns || 100);
  const flagged = (name: string) => argv.includes(`--${name}`);
  const out = createOutput({ stdout, stderr, flagged, now: Date.now });
  let interruptMessage: string | undefined;
  let running: Invocation | undefined;
  let keySource: string | undefined;
  const interrupted = (): void => {
    out.progress();
    if (interruptMessage !== undefined) out.note(interruptMessage);
    host.exit(INTERRUPTED);
  };
  host.on('SIGINT', interrupted);
  const outputFailed = ({ code }: NodeJS.ErrnoException): void => {
    // The reader of stdout may exit first, such as `head`. Half a backup is an error.
    if (code === 'EPIPE' && running?.name !== 'backup') host.exit(CLOSED);
    const failure = new OperationError(`The output can’t be written${formatCode(code)}.`);
    const { error, lines } = toCommandError(failure, { running, keySource, verbose: false });
    out.error(error, lines);
    host.exit(error.exitCode);
  };
  stdout.on('error', outputFailed);

  try {
    if (argv[0] === '--version') {
      out.line(VERSION);
      return 0;
    }
    if (argv[0] === COMPLETE) {
      const { complete } = await import('./completion.ts');
      const words = argv.slice(1);
      for (const line of complete(await loadCommands(findWords(words)[0]?.word), words, env)) out.line(line);
      return 0;
    }
    const commands = await loadCommands(findWords(argv)[0]?.word);
    const parsed = parse(commands, argv);
    if (parsed.kind === 'help') {
      // Other lines are wrapped.
      out.line(helpText(commands, parsed.about, wide).replace(/^(Usage|Example): .*/gm, nameCli));
      return 0;
    }
    const { flags } = parsed;
    // The configuration then names the Jobwire.
    const isConfigChecked = parsed.name === 'doctor' && (flags as { config?: string }).config !== undefined;
    const connection = parsed.command.local ? NO_CONNECTION : findConnection(flags, env, isConfigChecked);
    const { url, urlIsDefault, key } = connection;
    keySource = connection.keySource;
    let warned = false;
    const context: Context = {
      env,
      stdin,
      out,
      url,
      urlIsDefault,
      key,
      toCommand: (line, options = []) => {
        const [name = ''] = line.split(' ');
        const isLocal = LOCAL_GROUPS.includes(name) || single[name]?.local;
        // Options of the same name of a command without the API have another meaning.
        const given = parsed.command.local ? [] : listConnectionOptions(flags);
        return [findCli(), line, ...(isLocal ? [] : [...given, ...options])].join(' ');
      },
      api() {
        const shown = key();
        if (shown === undefined) {
          const isFileHere = existsSync(KEY_FILE);
          const file = isFileHere ? `--key-file ${KEY_FILE}` : 'a file with --key-file';
          const where = `The generated key of a self-hosted Jobwire is in the file api-key of its dataDir, by default ${KEY_FILE}.`;
          const profile = connection.isProfileUnset
            ? 'select a profile with jobwire profiles use NAME, or add one'
            : 'or add a profile';
          throw new KeyError(
            `The API key is missing. Set JOBWIRE_API_KEY, pass ${file}, ${profile} with jobwire profiles add.${isFileHere ? '' : ` ${where}`}`,
          );
        }
        if (!/^[\x21-\x7e]+$/.test(shown))
          throw new KeyError('The API key must be printable ASCII without spaces.');
        if (isUnencrypted(url) && !warned) {
          out.note(`Warning: the API key is sent to ${url} without encryption. Use an https:// URL.`);
          warned = true;
        }
        const client = createClient({ url, key: shown });
        if (!flagged('csv')) return client;
        const list = (path: never, _field: string, init: never) => client.csv(path, init);
        return { ...client, list: list as unknown as Client['list'] };
      },
      onInterrupt: (message) => {
        interruptMessage = message;
      },
    };
    running = parsed;
    if (flagged('csv') && flagged('json')) throw new UsageError('--csv and --json can’t be combined.');
    if (flagged('bom') && !flagged('csv')) throw new UsageError('--bom requires --csv.');
    // Jobwire itself decides when it ends.
    if (parsed.name === 'start') {
      host.off('SIGINT', interrupted);
      stdout.off('error', outputFailed);
    }
    return (await parsed.command.run(context, parsed.args, getOwnFlags(parsed))) ?? 0;
  } catch (cause) {
    if (cause instanceof InterruptedError) return INTERRUPTED;
    const { error, lines } = toCommandError(cause, { running, keySource, verbose: flagged('verbose') });
    out.error(error, lines);
    return error.exitCode;
  }
}

/** Returns the given options for the URL, the API key and the profile, for a shell. */
function listConnectionOptions(flags: Invocation['flags']): string[] {
  return (['profile', 'url', 'key-file'] as const).flatMap((name) => {
    const value = flags[name];
    return value === undefined ? [] : [`--${name}`, quote(value)];
  });
}

/** Facts beside the error on which an error message depends. */
interface ErrorContext {
  /** `undefined`: the command line is invalid. */
  readonly running: Invocation | undefined;
  readonly keySource: string | undefined;
  readonly verbose: boolean;
}

/** Returns an error as JSON with its exit code, and the same as lines of text. */
function toCommandError(
  cause: unknown,
  context: ErrorContext,
): { readonly error: CommandError; readonly lines: readonly string[] } {
  if (cause instanceof ApiError) return toApiCommandError(cause, context);
  const known = CLI_ERRORS.find(({ of }) => cause instanceof of);
  if (known && cause instanceof Error) {
    const detail = sanitizeLine(cause.message);
    const { kind, title, exitCode } = known;
    return { error: { type: `${CLI_ERROR_TYPE}${kind}`, title, detail, exitCode }, lines: [detail] };
  }
  const text = cause instanceof Error ? (context.verbose ? cause.stack : cause.message) : cause;
  const detail = `Internal error: ${sanitizeLine(text)}`;
  return {
    error: { type: `${CLI_ERROR_TYPE}fault`, title: 'Internal Error', detail, exitCode: 1 },
    lines: [detail],
  };
}

/** Prefix of `type` of errors that are not from the API. */
const CLI_ERROR_TYPE = 'urn:jobwire:cli:';
const CLI_ERRORS = [
  { of: UsageError, kind: 'usage', title: 'Invalid command line', exitCode: 2 },
  { of: OperationError, kind: 'failed', title: 'Operation failed', exitCode: 1 },
  { of: KeyError, kind: 'key', title: 'No usable API key', exitCode: 5 },
  { of: UnreachableError, kind: 'unreachable', title: 'API unreachable', exitCode: 4 },
] as const;

function toApiCommandError(
  cause: ApiError,
  { running, keySource, verbose }: ErrorContext,
): { readonly error: CommandError; readonly lines: readonly string[] } {
  const { status, requestId, kind, problem } = cause;
  const message = running ? toInputNames(running, cause.message, problem.field) : cause.message;
  // The API's own message there is for developers who set headers.
  const detail =
    status === 401
      ? `The API key is invalid. Check ${keySource ?? 'JOBWIRE_API_KEY or --key-file'}.`
      : sanitizeLine(message);
  const lines = [detail];
  // Only the log of Jobwire has details of its internal errors.
  if (verbose || kind === 'internal') {
    lines.push(`HTTP ${status}${kind && `, ${sanitizeLine(kind)}`}, request ${sanitizeLine(requestId)}`);
  }
  if (kind === 'cursor-gone') {
    const { restored, earliest } = problem;
    lines.push(`Resume with --after ${sanitizeLine(restored ?? earliest)}`);
  }
  const { type, title } = problem;
  const error = {
    ...problem,
    // Default of problem documents without a `type`.
    type: typeof type === 'string' ? type : 'about:blank',
    title: typeof title === 'string' ? title : `HTTP ${status}`,
    ...{ status, detail, exitCode: status === 401 || status === 403 ? 5 : status < 500 ? 3 : 4 },
    ...(requestId === undefined ? {} : { requestId }),
  };
  return { error, lines };
}
