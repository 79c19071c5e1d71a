/** From a command line to an exit code: finds the command, runs it, and says in one sentence what went wrong. */
import { accounts } from './accounts.ts';
import { ApiError, createClient, KeyError, UnreachableError } from './client.ts';
import {
  type Commands,
  type Context,
  command,
  helpText,
  inWordsOf,
  parse,
  type Ran,
  UsageError,
} from './command.ts';
import { endpoints } from './endpoints.ts';
import { events } from './events.ts';
import { secretInFile } from './input.ts';
import { jobs } from './jobs.ts';
import { keys } from './keys.ts';
import { notifications } from './notifications.ts';
import { clean, createOutput } from './output.ts';
import { recipients } from './recipients.ts';

const DEFAULT_URL = 'http://127.0.0.1:4000';
const INTERRUPTED = 130;

/** Every command. What is heavy is loaded when it is run. */
export const commands: Commands = {
  start: command({
    about: 'Starts Jobwire on this machine: a demo, or with --config your own accounts.',
    more: 'It needs Node 24; npm install node@24 puts one beside jobwire.',
    args: [],
    flags: {
      config: { value: 'FILE', about: 'Configuration file; without one it is a demo' },
      port: { value: 'N', about: 'Port of the HTTP API (4000, or that of the configuration)' },
      seed: { value: 'N', about: 'Another demo' },
    },
    example: 'start --config jobwire.json',
    local: true,
    textOnly: true,
    run: async (context, _args, flags) => (await import('./start.ts')).start(context, flags),
  }),
  doctor: command({
    about: 'Looks for what would keep Jobwire from working here, and says what to do about it.',
    more: 'No credentials are sent to the ordering service: any answer of it counts.',
    args: [],
    flags: { config: { value: 'FILE', about: 'Configuration file to check, with all that it names' } },
    example: 'doctor --config jobwire.json',
    run: async (context, _args, flags) => (await import('./doctor.ts')).doctor(context, flags),
  }),
  ...accounts,
  ...endpoints,
  ...events,
  ...jobs,
  ...notifications,
  ...recipients,
  ...keys,
};

/** Runs one command line; the exit codes are those of `EXIT_CODES`. */
export async function run(argv: readonly string[]): Promise<number> {
  const { stdout, stderr, stdin, env } = process;
  // Whoever reads our output may have had enough.
  stdout.on('error', () => process.exit(0));
  const wide = Math.min(110, stdout.columns || 100);
  const flagged = (name: string) => argv.includes(`--${name}`);
  const out = createOutput({
    stdout,
    stderr,
    json: flagged('json'),
    verbose: flagged('verbose'),
    now: Date.now,
  });
  let farewell: string | undefined;
  let running: Ran | undefined;
  const interrupted = (): void => {
    out.progress();
    if (farewell !== undefined) stderr.write(`${farewell}\n`);
    process.exit(INTERRUPTED);
  };
  process.on('SIGINT', interrupted);

  try {
    if (argv[0] === '--version') {
      out.line(VERSION);
      return 0;
    }
    const parsed = parse(commands, argv);
    if (parsed.kind === 'help') {
      out.line(helpText(commands, parsed.about, wide));
      return 0;
    }
    const { flags } = parsed;
    const url = flags.url ?? (env.JOBWIRE_URL || DEFAULT_URL);
    if (!isHttp(url)) {
      throw new UsageError(`${flags.url ? '--url' : 'JOBWIRE_URL'} must begin with http:// or https://.`);
    }
    const key = () =>
      flags['key-file'] === undefined
        ? env.JOBWIRE_API_KEY || undefined
        : secretInFile('key-file', flags['key-file']);
    const context: Context = {
      env,
      stdin,
      out,
      url,
      key,
      api() {
        const shown = key();
        if (shown === undefined) {
          throw new KeyError('The API key is missing: set JOBWIRE_API_KEY, or name a file with --key-file.');
        }
        if (!/^[\x21-\x7e]+$/.test(shown))
          throw new KeyError('The API key must be printable ASCII without spaces.');
        return createClient({ url, key: shown });
      },
      onInterrupt: (words) => {
        farewell = words;
      },
    };
    running = parsed;
    if (parsed.name === 'start') process.off('SIGINT', interrupted);
    return (await parsed.command.run(context, parsed.args, flags)) ?? 0;
  } catch (cause) {
    return explain(cause, running, (text) => out.note(text), flagged('verbose'));
  }
}

/** Says what went wrong, and which exit code that is. */
function explain(
  cause: unknown,
  running: Ran | undefined,
  say: (text: string) => void,
  verbose: boolean,
): number {
  if (cause instanceof UsageError) {
    say(clean(cause.message));
    return 2;
  }
  if (cause instanceof KeyError) {
    say(clean(cause.message));
    return 5;
  }
  if (cause instanceof UnreachableError) {
    say(clean(cause.message));
    return 4;
  }
  if (cause instanceof ApiError) {
    const { status, requestId, kind, problem } = cause;
    const message = running ? inWordsOf(running, cause.message, problem.field) : cause.message;
    // Its own sentence there is for who writes headers.
    say(status === 401 ? 'The API refuses the key; check JOBWIRE_API_KEY or --key-file.' : clean(message));
    // Nobody but its log can say more of its faults.
    if (verbose || kind === 'internal')
      say(`HTTP ${status}${kind && `, ${clean(kind)}`}, request ${clean(requestId)}`);
    if (kind === 'cursor-gone') {
      const { restored, earliest } = problem;
      say(`Go on with --after ${clean(restored ?? earliest)}`);
    }
    return status === 401 || status === 403 ? 5 : status < 500 ? 3 : 4;
  }
  say(
    `This is a fault of jobwire: ${clean(cause instanceof Error ? (verbose ? cause.stack : cause.message) : cause)}`,
  );
  return 1;
}

function isHttp(url: string): boolean {
  return URL.canParse(url) && /^https?:$/.test(new URL(url).protocol);
}

/** Put in by the build. */
declare const JOBWIRE_VERSION: string | undefined;
const VERSION = typeof JOBWIRE_VERSION === 'string' ? JOBWIRE_VERSION : 'from the sources';
