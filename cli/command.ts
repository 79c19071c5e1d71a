/**
 * Commands as data: parsing, `--help` and docs/cli.md all use one table.
 * One file: what is parsed, described and reported as wrong is the same table.
 */
import { parseArgs } from 'node:util';
import type { Client } from '../client/index.ts';
import { mapValues } from '../shared/map-values.ts';
import { findSimilarName } from '../shared/similar-name.ts';
import { type Output, wrap } from './output.ts';

/** An option of a command. Without `value` it is a switch. */
export interface Flag {
  /** Placeholder of its value in help, such as `FILE`. */
  readonly value?: string;
  readonly about: string;
  /** Whether it can be repeated. */
  readonly many?: true;
  readonly required?: true;
  /** Name of the API's field. Default: the name of the option in camel case. */
  readonly field?: string;
  /** Accepted values. A repeatable option also accepts a comma-separated list of them. */
  readonly choices?: readonly string[];
  /** Bounds of an integer. */
  readonly range?: Range;
  /** Value if the option is absent. */
  readonly default?: string | number;
  /** Values for shell completion, if others are accepted too. */
  readonly suggestions?: readonly string[];
}
/** Bounds of a number, inclusive. */
export interface Range {
  readonly least: number;
  readonly most: number;
}
export type Flags = Readonly<Record<string, Flag>>;

/** Values of options by name. */
export type FlagValues<F extends Flags> = {
  readonly [N in keyof F]: F[N] extends { value: string }
    ? F[N] extends { many: true }
      ? readonly FlagValue<F[N]>[]
      : F[N] extends { required: true } | { default: string | number }
        ? FlagValue<F[N]>
        : FlagValue<F[N]> | undefined
    : boolean;
};
type FlagValue<F extends Flag> = F extends { range: Range }
  ? number
  : F extends { choices: readonly (infer C)[] }
    ? C
    : string;
/** Arguments of a command by position. A name that ends in `?` is optional. */
type ArgValues<A extends readonly string[]> = {
  readonly [N in keyof A]: A[N] extends `${string}?` ? string | undefined : string;
};

/** Context that commands run in. */
export interface Context {
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly stdin: NodeJS.ReadStream;
  readonly out: Output;
  /** Returns the API client. With --csv, its lists yield the texts of their pages. Throws {@link KeyError} without a key. */
  api(): Client;
  /** Base URL of the API, and the key if there is one. */
  readonly url: string;
  /** Whether neither `--url` nor JOBWIRE_URL is given. */
  readonly urlIsDefault: boolean;
  key(): string | undefined;
  /**
   * Returns a command line that works in a shell as printed. A command of the API gets the options of this one for the URL, the API key and the
   * profile, and the given `options`.
   */
  toCommand(line: string, options?: readonly string[]): string;
  /** Sets the message to print on Ctrl-C. `undefined`: no message. */
  onInterrupt(message: string | undefined): void;
}

/** A command of the CLI. */
export interface Command {
  readonly about: string;
  /** Details for its help. */
  readonly more?: string;
  readonly args: readonly string[];
  /** Names of the API's fields of arguments, if different from their names in lower case. */
  readonly fields?: Readonly<Record<string, string>>;
  /** Accepted values of arguments, by name. */
  readonly choices?: Readonly<Record<string, readonly string[]>>;
  /** Values of arguments for shell completion, if others are accepted too. */
  readonly suggestions?: Readonly<Record<string, readonly string[]>>;
  readonly flags: Flags;
  /** The rest of the command line after `jobwire`. */
  readonly example: string;
  /** Whether it does not use the API. */
  readonly local?: true;
  /** Whether its output is text only, without `--json`. */
  readonly textOnly?: true;
  /** Runs the command. Returns the exit code. Default: 0. */
  run(context: Context, args: readonly (string | undefined)[], flags: object): Promise<number | undefined>;
}

/**
 * Type-checks a command's declaration: inside `run`, arguments and options have their specific types. Without `args` or `flags`, the
 * command has none.
 */
export function command<const A extends readonly string[] = [], const F extends Flags = Record<never, never>>(
  declared: Omit<Command, 'args' | 'flags' | 'run'> & {
    readonly args?: A;
    readonly flags?: F;
    run(context: Context, args: ArgValues<A>, flags: FlagValues<F>): Promise<number | undefined>;
  },
): Command {
  return { args: [], flags: {}, ...declared } as unknown as Command;
}

/** Commands by name, such as `accounts add`. */
export type Commands = Readonly<Record<string, Command>>;

/** Options of every command. */
export const COMMON_FLAGS = {
  json: {
    about: 'Print JSON instead of text, including errors',
  },
  verbose: { about: 'Also print event ids, and the request ids of API errors' },
  help: { about: 'Show help' },
} as const satisfies Flags;

/** Options of every command that calls the API. */
export const API_FLAGS = {
  url: {
    value: 'URL',
    about: 'Base URL of the API. Default: JOBWIRE_URL, or http://127.0.0.1:4000',
  },
  'key-file': {
    value: 'FILE',
    about: 'File that contains the API key. Default: the key in JOBWIRE_API_KEY',
  },
  profile: {
    value: 'NAME',
    about:
      'Profile with the base URL and the API key. Default: JOBWIRE_PROFILE, or the current profile, if neither a URL nor a key is given',
  },
} as const satisfies Flags;

/** An invalid command line. The message names the option or argument. */
export class UsageError extends Error {
  override readonly name = 'UsageError';
}

/** The operation failed for a reason outside the command line. The message is that reason. */
export class OperationError extends Error {
  override readonly name = 'OperationError';
}

/** No API key is available. */
export class KeyError extends Error {
  override readonly name = 'KeyError';
}

/** Ctrl-C or Ctrl-D was pressed at a prompt. */
export class InterruptedError extends Error {
  override readonly name = 'InterruptedError';
}

/** A parsed command line. */
export type Parsed = { readonly kind: 'help'; readonly about: string | undefined } | Invocation;

/** A command with its arguments and options. */
export interface Invocation {
  readonly kind: 'run';
  readonly name: string;
  readonly command: Command;
  readonly args: readonly (string | undefined)[];
  readonly flags: FlagValues<typeof COMMON_FLAGS & typeof API_FLAGS>;
}

/** First argument of the command line with which a shell requests completions. The words to complete follow. */
export const COMPLETE = '__complete';

/** Parses a command line. Throws {@link UsageError}. */
export function parse(commands: Commands, argv: readonly string[]): Parsed {
  const words = findWords(argv);
  const positionals = words.map(({ word }) => word);
  if (argv.length === 0) throw new UsageError('A command is missing. See jobwire help.');
  if (positionals[0] === 'help')
    return { kind: 'help', about: findName(commands, positionals.slice(1), true) };
  if (positionals.length === 0) {
    if (argv.includes('--help') || argv.includes('-h')) return { kind: 'help', about: undefined };
    const [option = ''] = argv[0]?.split('=') ?? [];
    const known = Object.keys({ ...API_FLAGS, ...COMMON_FLAGS }).map((flag) => `--${flag}`);
    if (known.includes(option)) throw new UsageError('A command is missing. See jobwire help.');
    throw new UsageError(
      `Unknown option ${option}.${suggest(option, [...known, '--version'])} See jobwire help.`,
    );
  }
  const asksHelp = argv.includes('--help') || argv.includes('-h');
  const name = findName(commands, positionals, asksHelp);
  const chosen = name === undefined ? undefined : commands[name];
  if (name === undefined || chosen === undefined || asksHelp) return { kind: 'help', about: name };
  return { kind: 'run', name, command: chosen, ...parseValues(name, chosen, removeName(argv, words, name)) };
}

/** Returns the name of the command, or with `groups` of the group of commands, that the arguments begin with. */
function findName(commands: Commands, positionals: readonly string[], groups: boolean): string | undefined {
  const [first, second] = positionals;
  if (first === undefined) return undefined;
  const names = Object.keys(commands);
  if (names.includes(first)) return first;
  const beginnings = [...new Set(names.map((name) => name.split(' ')[0] ?? name))];
  if (!beginnings.includes(first)) {
    const meant = Object.hasOwn(COMMANDS_OF_OTHERS, first) ? COMMANDS_OF_OTHERS[first] : undefined;
    const hint = meant === undefined ? suggest(first, beginnings) : ` Did you mean ${meant}?`;
    throw new UsageError(`Unknown command "${first}".${hint} See jobwire help.`);
  }
  const members = names
    .filter((name) => name.startsWith(`${first} `))
    .map((name) => name.slice(first.length + 1));
  if (second !== undefined && members.includes(second)) return `${first} ${second}`;
  if (second === undefined && groups) return first;
  if (second === undefined) {
    throw new UsageError(`${first} requires a subcommand: ${members.join(', ')}. See jobwire help ${first}.`);
  }
  const meant =
    COMMANDS_OF_OTHERS[`${first} ${second}`] ??
    SYNONYMS.find((words) => words.includes(second))?.find((word) => members.includes(word)) ??
    members.find((member) => member.startsWith(`${second}-`));
  const hint = meant === undefined ? suggest(second, members) : ` Did you mean ${meant}?`;
  throw new UsageError(`Unknown command "${first} ${second}".${hint} Available: ${members.join(', ')}.`);
}

/** Commands of other programs, and the commands of this one that do the same. */
const COMMANDS_OF_OTHERS: Readonly<Record<string, string>> = {
  status: 'health, or accounts list',
  version: '--version',
  check: 'doctor',
  serve: 'start',
  run: 'start',
  logs: 'events tail',
  tail: 'events tail',
  send: 'trigger',
  login: 'profiles add',
  ping: 'endpoints ping',
  resend: 'endpoints resend',
  'events resend': 'endpoints resend',
  replay: 'endpoints replay',
  'events replay': 'endpoints replay',
  deliveries: 'endpoints deliveries',
  queues: 'endpoints',
  webhooks: 'endpoints',
  webhook: 'endpoints',
  orders: 'jobs',
};
/** Words for the same action. */
const SYNONYMS: readonly (readonly string[])[] = [
  ['remove', 'delete', 'revoke', 'rm', 'destroy'],
  ['add', 'create', 'new', 'register'],
  ['update', 'change', 'set', 'edit', 'modify'],
  ['show', 'get', 'info', 'describe', 'view'],
  ['list', 'ls', 'all'],
  ['resume', 'start', 'unpause'],
  ['pause', 'stop', 'disable'],
  ['ping', 'test'],
  ['deliveries', 'logs', 'attempts'],
];
/** Commands that new users need first, in their order. */
const FIRST_COMMANDS = [
  ...['init', 'start', 'doctor', 'accounts list', 'jobs list', 'events tail', 'endpoints add', 'listen'],
];

/** A word of a command line that is no option, and no value of an option of all commands. */
interface Word {
  readonly word: string;
  readonly at: number;
}

/** Returns the words of a command line: the name of the command and its arguments. Options of all commands may precede the name. */
export function findWords(argv: readonly string[]): Word[] {
  const shared: Flags = { ...API_FLAGS, ...COMMON_FLAGS };
  return argv.flatMap((word, at) => {
    const previous = argv[at - 1] ?? '';
    const isValue = previous.startsWith('--') && shared[previous.slice(2)]?.value !== undefined;
    return word.startsWith('-') || isValue ? [] : [{ word, at }];
  });
}

function removeName(argv: readonly string[], words: readonly Word[], name: string): string[] {
  const parts = words.slice(0, name.split(' ').length).map(({ at }) => at);
  return argv.filter((_, at) => !parts.includes(at));
}

function parseValues(name: string, chosen: Command, argv: string[]) {
  const flags = getFlags(chosen);
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
    throw new UsageError(toOptionMessage(name, flags, cause), { cause });
  }
  const { values, positionals } = parsed;
  const needed = chosen.args.filter((arg) => !arg.endsWith('?'));
  const missing = needed[positionals.length];
  if (missing !== undefined) throw new UsageError(`${missing} is missing. Usage: ${usage(name, chosen)}`);
  const extra = positionals[chosen.args.length];
  if (extra !== undefined) {
    throw new UsageError(`Unexpected argument "${extra.slice(0, 60)}". Usage: ${usage(name, chosen)}`);
  }
  chosen.args.forEach((arg, at) => {
    const argument = arg.replace(/\?$/, '');
    const choices = chosen.choices?.[argument];
    const text = positionals[at];
    if (text === '') throw new UsageError(`${argument} must not be empty.`);
    if (choices && text !== undefined) checkChoice(argument, text, choices);
  });
  for (const [flag, { required, value, many, range, choices, default: fallback }] of Object.entries(flags)) {
    if (required && values[flag] === undefined) throw new UsageError(`--${flag} ${value} is missing.`);
    if (isEmpty(values[flag])) throw new UsageError(`--${flag} must not be empty.`);
    if (choices) for (const text of splitValues(values[flag])) checkChoice(`--${flag}`, text, choices);
    if (range && typeof values[flag] === 'string') values[flag] = parseRange(flag, values[flag], range);
    values[flag] ??= many ? [] : value === undefined ? false : fallback;
  }
  return {
    args: positionals,
    flags: values as unknown as FlagValues<typeof COMMON_FLAGS & typeof API_FLAGS>,
  };
}

/** Returns whether the value of an option is empty, or one of the values of a repeatable option, such as that of an unset variable. */
const isEmpty = (given: unknown): boolean =>
  given === '' || (Array.isArray(given) && given.some((text) => splitValues([text]).length === 0));

/** Splits comma-separated values of a repeatable option. Returns the value of another option unchanged. */
export const splitValues = (given: unknown): string[] =>
  Array.isArray(given)
    ? given
        .flatMap((text: string) => text.split(',').map((part) => part.trim()))
        .filter((part) => part !== '')
    : typeof given === 'string'
      ? [given]
      : [];

/** Throws a {@link UsageError} that suggests a similar choice if the text is none. `name`: of the option or argument. */
function checkChoice(name: string, text: string, choices: readonly string[]): void {
  if (choices.includes(text)) return;
  const similar = suggest(text, choices);
  // The suggestion replaces a long list.
  const list = similar !== '' && choices.length > 10 ? 'a known value' : `one of ${choices.join(', ')}`;
  throw new UsageError(`${name} must be ${list}.${similar}`);
}

/** Parses an integer. `others`: what the option also accepts, for its error. Throws {@link UsageError}. */
export function parseRange(flag: string, text: string, { least, most }: Range, others = ''): number {
  const value = Number(text);
  if (/^\d{1,12}$/.test(text) && value >= least && value <= most) return value;
  throw new UsageError(`--${flag} must be an integer from ${least} to ${most}${others}.`);
}

/** Returns the option that limits the number of entries of a list. */
export const limitFlag = <const D extends number>(fallback: D, things = 'entries') =>
  ({
    value: 'N',
    about: `Maximum number of ${things}`,
    range: { least: 1, most: 1_000_000 },
    default: fallback,
  }) as const;

/** Options of every command that lists entries. */
export const CSV = {
  csv: { about: 'Print CSV, with the API’s field names in the first row' },
  bom: { about: 'With --csv: begin with a byte order mark, for Excel' },
} as const satisfies Flags;

/** Returns all options of a command, its own first. */
export function getFlags(chosen: Command): Flags {
  const { json, ...others } = COMMON_FLAGS;
  return {
    ...chosen.flags,
    ...(chosen.local ? {} : API_FLAGS),
    ...(chosen.textOnly ? {} : { json }),
    ...others,
  };
}

/** Returns the values of a command's own options, without those of all commands: commands may pass them on to the API. */
export function getOwnFlags({ command, flags }: Invocation): object {
  return Object.fromEntries(Object.entries(flags).filter(([flag]) => flag in command.flags));
}

function toOptionMessage(name: string, flags: Flags, cause: unknown): string {
  const { code, message } = cause as { code?: string; message: string };
  const [, option = ''] = /'(?:-\w, )?(-{1,2}[^' =]*)/.exec(message) ?? [];
  if (code === 'ERR_PARSE_ARGS_UNKNOWN_OPTION') {
    const known = Object.keys(flags).map((flag) => `--${flag}`);
    return `Unknown option ${option}.${suggest(option, known)} See jobwire help ${name}.`;
  }
  const flag = flags[option.replace(/^--/, '')];
  return flag?.value === undefined
    ? `${option} does not take a value.`
    : `${option} requires a value: ${option} ${flag.value}, or ${option}=${flag.value} if the value starts with a hyphen.`;
}

/** Returns a suggestion with a leading space, or an empty string if no known name is similar. */
export function suggest(typed: string, known: readonly string[]): string {
  const similar = findSimilarName(typed, known);
  return similar === undefined ? '' : ` Did you mean ${similar}?`;
}

/** Replaces the field name at the start of an API error message with the name of its option or argument. */
export function toInputNames(
  { command, flags: values }: Invocation,
  message: string,
  field: unknown,
): string {
  if (typeof field !== 'string' || !message.startsWith(`${field} `)) return message;
  // A field of a file, which can have the name of an argument.
  if (message.startsWith(`${field} is not a known field`)) return message;
  const [name = ''] = field.replace(/^(filter|credentials)\./, '').split('[');
  const [parent] = name.split('.');
  const flags = Object.entries(command.flags);
  const exact = flags.filter(([flag, one]) => (one.field ?? toCamelCase(flag)) === name);
  const options = (exact.length > 0 ? exact : flags.filter(([, one]) => one.field === parent)).map(
    ([flag]) => flag,
  );
  const given = options.find((flag) => isGiven((values as Record<string, unknown>)[flag])) ?? options[0];
  const argument = command.args
    .map((arg) => arg.replace(/\?$/, ''))
    .find((arg) => (command.fields?.[arg] ?? arg.toLowerCase()) === name);
  // Of options such as NAME=VALUE, also the name of the pair.
  const isPair = exact.length === 0 && given !== undefined && command.flags[given]?.value?.includes('=');
  const pair = isPair && parent !== undefined ? name.slice(parent.length).replace('.', ' ') : '';
  const input = given === undefined ? argument : `--${given}${pair}`;
  return input === undefined ? message : `${input}${message.slice(field.length)}`;
}

const toCamelCase = (flag: string): string =>
  flag.replace(/-(\w)/g, (_, letter: string) => letter.toUpperCase());

const isGiven = (value: unknown): boolean =>
  Array.isArray(value) ? value.length > 0 : value !== undefined && value !== false;

/** Returns the usage line of a command. */
export function usage(name: string, { args, flags }: Command): string {
  const places = args.map((arg) => (arg.endsWith('?') ? `[${arg.slice(0, -1)}]` : arg));
  const needed = Object.entries(flags)
    .filter(([, { required }]) => required)
    .map(([flag, { value }]) => `--${flag} ${value}`);
  return ['jobwire', name, ...places, ...needed, '[options]'].join(' ');
}

/** Returns help on all commands, on a group (`accounts`), or on a command. */
export function helpText(commands: Commands, about: string | undefined, width: number): string {
  const chosen = about === undefined ? undefined : commands[about];
  if (about !== undefined && chosen) {
    const own = Object.entries(chosen.flags);
    const shared = Object.entries(getFlags(chosen)).filter(([flag]) => !(flag in chosen.flags));
    return [
      `Usage: ${usage(about, chosen)}`,
      '',
      ...wrap(chosen.about, width, 0),
      ...(chosen.more === undefined ? [] : ['', ...wrap(chosen.more, width, 0)]),
      ...(own.length === 0 ? [] : ['', 'Options', ...rows(own.map(toFlagRow), width)]),
      '',
      'Options of all commands',
      ...rows(shared.map(toFlagRow), width),
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
    ...(about === undefined
      ? ['Start here', ...rows(listed.filter(isFirst).sort(byFirst).map(toCommandRow), width), '']
      : []),
    ...groupCommands(listed).flatMap(([group, members]) => [
      ...(about === undefined ? [group] : []),
      ...rows(members.map(toCommandRow), width),
      '',
    ]),
    ...wrap(
      'Run jobwire help COMMAND for the options of a command and an example. Set the base URL of the API with --url or JOBWIRE_URL (default: http://127.0.0.1:4000), and the API key with JOBWIRE_API_KEY or --key-file. To store the URL and the key, use jobwire profiles add.',
      width,
      0,
    ),
    '',
    'Exit codes',
    ...rows(Object.entries(EXIT_CODES), width),
  ].join('\n');
}

type Listed = readonly [name: string, command: Command];
const isFirst = ([name]: Listed): boolean => FIRST_COMMANDS.includes(name);
const byFirst = ([a]: Listed, [b]: Listed): number => FIRST_COMMANDS.indexOf(a) - FIRST_COMMANDS.indexOf(b);

function toCommandRow([name, { args, about }]: Listed): [string, string] {
  return [[name, ...args.map((arg) => (arg.endsWith('?') ? `[${arg.slice(0, -1)}]` : arg))].join(' '), about];
}

/** Returns commands by the first word of their names. Those of one word come first, as the group `Commands`. */
function groupCommands(listed: readonly Listed[]): [string, readonly Listed[]][] {
  const getGroup = ([name]: Listed): string => (name.includes(' ') ? (name.split(' ')[0] ?? '') : 'Commands');
  const groups = new Map<string, Listed[]>();
  for (const one of listed) groups.set(getGroup(one), [...(groups.get(getGroup(one)) ?? []), one]);
  return [...groups];
}

/** Returns the description of an option with its accepted values and its default. */
export function describeFlag({ about, value, choices, range, default: fallback }: Flag): string {
  return [
    about,
    ...(choices && choices.join('|') !== value ? [`Values: ${choices.join(', ')}`] : []),
    ...(range ? [`${range.least} to ${range.most}`] : []),
    ...(fallback === undefined ? [] : [`Default: ${fallback}`]),
  ].join('. ');
}

/** Returns options without the defaults in their descriptions: in a command that changes a resource, an absent option keeps its value. */
export function withoutDefaults<F extends Flags>(flags: F): F {
  return mapValues(flags, (flag) => ({ ...flag, about: flag.about.replace(/\. Default: .*$/, '') })) as F;
}

/** Exit codes, for scripts. */
export const EXIT_CODES = {
  0: 'Success.',
  1: 'The operation failed, or doctor found a problem.',
  2: 'The command line, or for start the configuration, is invalid.',
  3: 'The API rejected the request (4xx).',
  4: 'The API can’t be reached, or failed to respond correctly (5xx).',
  5: 'The API key is missing, invalid, or lacks permission (401, 403).',
  6: 'Some rows of an import are invalid. The others were imported.',
  130: 'Interrupted with Ctrl-C. For start, the exit code is then 0.',
  141: 'The program that reads stdout exited first, such as head. For backup, the exit code is then 1.',
} as const;

function toFlagRow([flag, one]: [string, Flag]): [string, string] {
  const { value, many } = one;
  const name = value === undefined ? `--${flag}` : `--${flag} ${value}`;
  const notes = [...(one.required ? ['required'] : []), ...(many ? ['repeatable'] : [])];
  const about = [describeFlag(one), ...(notes.length > 0 ? [`(${notes.join(', ')})`] : [])].join(' ');
  return [flag === 'help' ? '-h, --help' : name, about];
}

function rows(pairs: readonly (readonly [string, string])[], width: number): string[] {
  const first = Math.min(36, Math.max(...pairs.map(([name]) => name.length)));
  return pairs.flatMap(([name, text]) => {
    const [head = '', ...rest] = wrap(text, width, first + 4);
    const lines = [head.trim(), ...rest];
    return name.length > first
      ? [`  ${name}`, `${''.padEnd(first + 4)}${lines[0]}`, ...rest]
      : [`  ${name.padEnd(first)}  ${lines[0]}`, ...rest];
  });
}
