/** Commands as data: what is parsed, what `--help` says and what docs/cli.md lists all come from one table. */
import { parseArgs } from 'node:util';
import type { Client } from './client.ts';
import { type Output, wrapped } from './output.ts';

/** An option of a command. Without `value` it is a switch. */
export interface Flag {
  /** What stands for its value in help: `FILE`. */
  readonly value?: string;
  readonly about: string;
  /** It may be given more than once. */
  readonly many?: true;
  readonly required?: true;
  /** What the API calls it, where that is another name. */
  readonly field?: string;
}
export type Flags = Readonly<Record<string, Flag>>;

/** The values of options, by their names. */
export type FlagValues<F extends Flags> = {
  readonly [N in keyof F]: F[N] extends { value: string }
    ? F[N] extends { many: true }
      ? readonly string[]
      : F[N] extends { required: true }
        ? string
        : string | undefined
    : boolean;
};
/** The arguments of a command by place; one whose name ends in `?` may be absent. */
type ArgValues<A extends readonly string[]> = {
  readonly [N in keyof A]: A[N] extends `${string}?` ? string | undefined : string;
};

/** What commands run with. */
export interface Context {
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly stdin: NodeJS.ReadStream;
  readonly out: Output;
  /** The API's client. Throws {@link KeyError} when there is no key. */
  api(): Client;
  /** The API's address, and the key if there is one. */
  readonly url: string;
  key(): string | undefined;
  /** Says what to tell somebody who interrupts with Ctrl-C; `undefined`: nothing. */
  onInterrupt(words: string | undefined): void;
}

/** A command of the tool. */
export interface Command {
  readonly about: string;
  /** Further sentences of its help. */
  readonly more?: string;
  readonly args: readonly string[];
  readonly flags: Flags;
  /** What follows `jobwire`. */
  readonly example: string;
  /** It has no use for the API's address and key. */
  readonly local?: true;
  /** What it says is for people alone: it has no --json. */
  readonly textOnly?: true;
  /** The exit code; none is 0. */
  run(context: Context, args: readonly (string | undefined)[], flags: object): Promise<number | undefined>;
}

/** Checks a command's declaration; inside `run` arguments and options have their own types. */
export function command<const A extends readonly string[], const F extends Flags>(
  declared: Omit<Command, 'args' | 'flags' | 'run'> & {
    readonly args: A;
    readonly flags: F;
    run(context: Context, args: ArgValues<A>, flags: FlagValues<F>): Promise<number | undefined>;
  },
): Command {
  return declared as unknown as Command;
}

/** Commands by their words: `accounts add`. */
export type Commands = Readonly<Record<string, Command>>;

/** Options of every command. */
export const COMMON_FLAGS = {
  json: {
    about: 'JSON instead of text, errors included: one document, or one object a line for lists and streams',
  },
  verbose: { about: 'Say more: ids of events, the request id of a refusal' },
  help: { about: 'Show help' },
} as const satisfies Flags;

/** Options of every command that talks to the API. */
export const API_FLAGS = {
  url: { value: 'URL', about: 'Address of the API (JOBWIRE_URL; http://127.0.0.1:4000)' },
  'key-file': {
    value: 'FILE',
    about: 'File that holds the API key (else JOBWIRE_API_KEY; never an argument, process lists show those)',
  },
} as const satisfies Flags;

/** What was typed can't be meant: one sentence that names the flag or argument. */
export class UsageError extends Error {
  override readonly name = 'UsageError';
}

/** Ctrl-C was pressed at a prompt. */
export class InterruptedError extends Error {
  override readonly name = 'InterruptedError';
}

/** What was typed. */
export type Parsed = { readonly kind: 'help'; readonly about: string | undefined } | Ran;

/** A command and what it is given. */
export interface Ran {
  readonly kind: 'run';
  readonly name: string;
  readonly command: Command;
  readonly args: readonly (string | undefined)[];
  readonly flags: FlagValues<typeof COMMON_FLAGS & typeof API_FLAGS>;
}

/** Reads a command line. Throws {@link UsageError}. */
export function parse(commands: Commands, argv: readonly string[]): Parsed {
  const words = argv.filter((word) => !word.startsWith('-'));
  if (argv.length === 0) throw new UsageError('Say what to do: jobwire help lists the commands.');
  if (words[0] === 'help') return { kind: 'help', about: nameIn(commands, words.slice(1), true) };
  if (words.length === 0) {
    if (argv.includes('--help') || argv.includes('-h')) return { kind: 'help', about: undefined };
    throw new UsageError(`There is no option ${argv[0]} without a command; see jobwire help.`);
  }
  const asksHelp = argv.includes('--help') || argv.includes('-h');
  const name = nameIn(commands, words, asksHelp);
  const chosen = name === undefined ? undefined : commands[name];
  if (name === undefined || chosen === undefined || asksHelp) return { kind: 'help', about: name };
  return { kind: 'run', name, command: chosen, ...valuesOf(name, chosen, withoutName(argv, name)) };
}

/** The command, or with `groups` the group of commands, that words begin with. */
function nameIn(commands: Commands, words: readonly string[], groups: boolean): string | undefined {
  const [first, second] = words;
  if (first === undefined) return undefined;
  const names = Object.keys(commands);
  if (names.includes(first)) return first;
  const beginnings = [...new Set(names.map((name) => name.split(' ')[0] ?? name))];
  if (!beginnings.includes(first)) {
    throw new UsageError(`There is no command "${first}"${guess(first, beginnings)}; see jobwire help.`);
  }
  const members = names
    .filter((name) => name.startsWith(`${first} `))
    .map((name) => name.slice(first.length + 1));
  if (second !== undefined && members.includes(second)) return `${first} ${second}`;
  if (second === undefined && groups) return first;
  if (second === undefined) {
    throw new UsageError(`${first} wants one of ${members.join(', ')} after it; see jobwire help ${first}.`);
  }
  throw new UsageError(
    `There is no command "${first} ${second}"${guess(second, members)}; there are ${members.join(', ')}.`,
  );
}

function withoutName(argv: readonly string[], name: string): string[] {
  const rest = [...argv];
  for (const word of name.split(' ')) rest.splice(rest.indexOf(word), 1);
  return rest;
}

function valuesOf(name: string, chosen: Command, argv: string[]) {
  const flags = flagsOf(chosen);
  let parsed: { values: Record<string, unknown>; positionals: string[] };
  try {
    parsed = parseArgs({
      args: argv,
      allowPositionals: true,
      options: Object.fromEntries(
        Object.entries(flags).map(([flag, { value, many }]) => [
          flag,
          {
            type: value === undefined ? ('boolean' as const) : ('string' as const),
            multiple: many === true,
            ...(flag === 'help' ? { short: 'h' } : {}),
          },
        ]),
      ),
    });
  } catch (cause) {
    throw new UsageError(optionSentence(name, flags, cause), { cause });
  }
  const { values, positionals } = parsed;
  const needed = chosen.args.filter((arg) => !arg.endsWith('?'));
  const missing = needed[positionals.length];
  if (missing !== undefined) throw new UsageError(`${missing} is missing: ${usage(name, chosen)}.`);
  const extra = positionals[chosen.args.length];
  if (extra !== undefined) {
    throw new UsageError(`"${extra.slice(0, 60)}" is one argument too many: ${usage(name, chosen)}.`);
  }
  for (const [flag, { required, value, many }] of Object.entries(flags)) {
    if (required && values[flag] === undefined) throw new UsageError(`--${flag} ${value} is missing.`);
    if (values[flag] === '') throw new UsageError(`--${flag} must not be empty.`);
    values[flag] ??= many ? [] : value === undefined ? false : undefined;
  }
  return {
    args: positionals,
    flags: values as unknown as FlagValues<typeof COMMON_FLAGS & typeof API_FLAGS>,
  };
}

/** All options of a command, its own first. */
export function flagsOf(chosen: Command): Flags {
  const { json, ...others } = COMMON_FLAGS;
  return {
    ...chosen.flags,
    ...(chosen.local ? {} : API_FLAGS),
    ...(chosen.textOnly ? {} : { json }),
    ...others,
  };
}

function optionSentence(name: string, flags: Flags, cause: unknown): string {
  const { code, message } = cause as { code?: string; message: string };
  const [, option = ''] = /'(?:-\w, )?(-{1,2}[^' =]*)/.exec(message) ?? [];
  if (code === 'ERR_PARSE_ARGS_UNKNOWN_OPTION') {
    const known = Object.keys(flags).map((flag) => `--${flag}`);
    return `There is no option ${option}${guess(option, known)}; see jobwire help ${name}.`;
  }
  const flag = flags[option.replace(/^--/, '')];
  return flag?.value === undefined
    ? `${option} takes no value.`
    : `${option} wants a value after it: ${option} ${flag.value} (or ${option}=${flag.value} if that begins with a hyphen).`;
}

/** What somebody may have meant, as the rest of a sentence; nothing when nothing is near. */
export function guess(typed: string, known: readonly string[]): string {
  const near = known
    .map((word) => ({ word, distance: distance(typed, word) }))
    .sort((a, b) => a.distance - b.distance)[0];
  return near && near.distance <= Math.max(1, Math.floor(near.word.replace(/^-+/, '').length / 3))
    ? `; perhaps ${near.word}`
    : '';
}

/** Letters to add, drop, change or swap with the next one. */
function distance(a: string, b: string): number {
  const rows = Array.from({ length: a.length + 1 }, (_, at) => [at, ...Array<number>(b.length).fill(0)]);
  const at = (row: number, column: number): number => rows[row]?.[column] ?? column;
  for (let i = 0; i <= a.length; i += 1) {
    for (let j = 1; j <= b.length; j += 1) {
      const row = rows[i];
      if (!row) continue;
      if (i === 0) {
        row[j] = j;
        continue;
      }
      const same = a[i - 1] === b[j - 1] ? 0 : 1;
      row[j] = Math.min(at(i - 1, j) + 1, at(i, j - 1) + 1, at(i - 1, j - 1) + same);
      if (i > 1 && j > 1 && a[i - 1] === b[j - 2] && a[i - 2] === b[j - 1]) {
        row[j] = Math.min(row[j] ?? 0, at(i - 2, j - 2) + 1);
      }
    }
  }
  return at(a.length, b.length);
}

/** A sentence of the API about a field, with the name of the option that it was given with. */
export function inWordsOf({ command, flags: values }: Ran, sentence: string, field: unknown): string {
  if (typeof field !== 'string' || !sentence.startsWith(`${field} `)) return sentence;
  const [name = ''] = field.replace(/^(filter|credentials)\./, '').split('[');
  const options = Object.entries(command.flags).flatMap(([flag, one]) =>
    (one.field ?? flag) === name ? [flag] : [],
  );
  const given = options.find((flag) => isGiven((values as Record<string, unknown>)[flag])) ?? options[0];
  return given === undefined ? sentence : `--${given}${sentence.slice(field.length)}`;
}

const isGiven = (value: unknown): boolean =>
  Array.isArray(value) ? value.length > 0 : value !== undefined && value !== false;

/** How a command is typed. */
export function usage(name: string, { args, flags }: Command): string {
  const places = args.map((arg) => (arg.endsWith('?') ? `[${arg.slice(0, -1)}]` : arg));
  const needed = Object.entries(flags)
    .filter(([, { required }]) => required)
    .map(([flag, { value }]) => `--${flag} ${value}`);
  return ['jobwire', name, ...places, ...needed, '[options]'].join(' ');
}

/** Help: of everything, of a group (`accounts`), or of a command. */
export function helpText(commands: Commands, about: string | undefined, width: number): string {
  const chosen = about === undefined ? undefined : commands[about];
  if (about !== undefined && chosen) {
    const own = Object.entries(chosen.flags);
    const shared = Object.entries(flagsOf(chosen)).filter(([flag]) => !(flag in chosen.flags));
    return [
      `Usage: ${usage(about, chosen)}`,
      '',
      ...wrapped(chosen.about, width, 0),
      ...(chosen.more === undefined ? [] : ['', ...wrapped(chosen.more, width, 0)]),
      ...(own.length === 0 ? [] : ['', 'Options', ...rows(own.map(flagRow), width)]),
      '',
      'Options of all commands',
      ...rows(shared.map(flagRow), width),
      '',
      `Example: jobwire ${chosen.example}`,
    ].join('\n');
  }
  const listed = Object.entries(commands).filter(
    ([name]) => about === undefined || name.startsWith(`${about} `),
  );
  return [
    `Usage: jobwire ${about ?? 'COMMAND'} ${about === undefined ? '' : 'COMMAND '}[options]`,
    '',
    ...rows(
      listed.map(([name, { args, about }]) => [
        [name, ...args.map((arg) => (arg.endsWith('?') ? `[${arg.slice(0, -1)}]` : arg))].join(' '),
        about,
      ]),
      width,
    ),
    '',
    ...wrapped(
      'jobwire help COMMAND shows the options of a command and an example. The API is that of --url or JOBWIRE_URL (http://127.0.0.1:4000), its key is taken from JOBWIRE_API_KEY or --key-file.',
      width,
      0,
    ),
    '',
    'Exit codes',
    ...rows(Object.entries(EXIT_CODES), width),
  ].join('\n');
}

/** What a script can go by. */
export const EXIT_CODES = {
  0: 'Done.',
  1: 'What was asked for failed or does not hold: a test, a ping, something that doctor found.',
  2: 'The command line is not right.',
  3: 'The API refused (4xx).',
  4: 'The API can’t be reached, or failed (5xx).',
  5: 'The key is missing, refused, or may not do this (401, 403).',
  6: 'Of an import: some rows are not good. The others were taken.',
  130: 'Interrupted with Ctrl-C.',
} as const;

function flagRow([flag, { value, about, many }]: [string, Flag]): [string, string] {
  const name = value === undefined ? `--${flag}` : `--${flag} ${value}`;
  return [flag === 'help' ? '-h, --help' : name, many ? `${about} (may be repeated)` : about];
}

function rows(pairs: readonly (readonly [string, string])[], width: number): string[] {
  const first = Math.min(36, Math.max(...pairs.map(([name]) => name.length)));
  return pairs.flatMap(([name, text]) => {
    const [head = '', ...rest] = wrapped(text, width, first + 4);
    const lines = [head.trim(), ...rest];
    return name.length > first
      ? [`  ${name}`, `${''.padEnd(first + 4)}${lines[0]}`, ...rest]
      : [`  ${name.padEnd(first)}  ${lines[0]}`, ...rest];
  });
}
