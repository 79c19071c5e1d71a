/** Parsing of option values, and input of secrets, which are never option values. */

import { readFileSync } from 'node:fs';
import { createInterface } from 'node:readline';
import { Writable } from 'node:stream';
import { ApiError } from '../client/index.ts';
import { eventTypes } from '../client/inputs.ts';
import { findCode, formatCode } from '../shared/error-codes.ts';
import { mapValues } from '../shared/map-values.ts';
import { type Context, type Flags, InterruptedError, splitValues, suggest, UsageError } from './command.ts';

/** The option for the time from which on things are selected. */
export const sinceFlag = (things: string) =>
  ({
    value: 'WHEN',
    about: `${things} since this time: a duration (2h), a date (2026-03-02) or a timestamp`,
    field: 'from',
  }) as const;

/** Options that select events of all accounts. */
export const SELECTION = {
  account: { value: 'ID', about: 'Only events of this account' },
  types: {
    value: 'A,B',
    about: 'Only events of these types. With job.*, all types that begin with "job." match',
    many: true,
    suggestions: eventTypes,
  },
  since: sinceFlag('Events'),
} as const satisfies Flags;

/** Option that selects the first event by a cursor. */
export const AFTER = { value: 'CURSOR', about: 'Events after this cursor' } as const;

/** Options that name the location of a client secret. */
export const CLIENT_SECRET = {
  'client-secret-file': { value: 'FILE', about: 'File that contains the client secret' },
  'client-secret-env': { value: 'NAME', about: 'Environment variable that contains the client secret' },
} as const satisfies Flags;

/** Option that names custom headers, and the locations of their values. */
export const HEADER_ENV = {
  'header-env': {
    value: 'HEADER=NAME',
    about: 'Header to add to each request, and the environment variable that contains its value',
    many: true,
    field: 'headers',
  },
} as const satisfies Flags;

const UNIT_MS = { s: 1000, m: 60_000, h: 3_600_000, d: 86_400_000, w: 7 * 86_400_000 } as const;
const MAX_SECRET_BYTES = 64_000;

/** Parses a duration such as `90d`, `2h` or `30m` to ms. `undefined` for anything else. */
function parseDurationMs(text: string): number | undefined {
  const [, digits = '', unit = ''] = /^(\d{1,6})([smhdw])$/.exec(text) ?? [];
  return digits === '' ? undefined : Number(digits) * UNIT_MS[unit as keyof typeof UNIT_MS];
}

/** Returns whether a text is a day of the calendar, such as `2026-03-02`. */
export function isDay(text: string): boolean {
  const at = /^\d{4}-\d\d-\d\d$/.test(text) ? Date.parse(text) : Number.NaN;
  // Date.parse turns 30 February into 2 March.
  return !Number.isNaN(at) && new Date(at).toISOString().startsWith(text);
}

/** Parses a time: a duration before now (or `ahead` of it), a day, or an ISO timestamp with its zone. `others`: what the option also accepts, for its error. */
export function parseTime(
  flag: string,
  text: string,
  direction: 'back' | 'ahead' = 'back',
  others = '',
): string {
  const span = parseDurationMs(text);
  const ms = span === undefined ? undefined : Date.now() + (direction === 'back' ? -span : span);
  const iso = isDay(text.slice(0, 10)) && /^.{10}(T\d\d:\d\d(:\d\d(\.\d+)?)?(Z|[+-]\d\d:\d\d))?$/.test(text);
  const at = ms ?? (iso ? Date.parse(text) : Number.NaN);
  if (Number.isNaN(at)) {
    throw new UsageError(
      `--${flag} must be ${others}a duration such as 2h or 90d, a date such as 2026-03-02, or a timestamp such as 2026-03-02T08:00:00Z.`,
    );
  }
  return new Date(at).toISOString();
}

/** Parses a comma-separated list of a repeatable option. */
export function parseList<T extends string>(values: readonly T[]): T[] | undefined {
  const given = splitValues(values) as T[];
  return given.length === 0 ? undefined : given;
}

/** Parses a comma-separated list of positive integers of a repeatable option. */
export function parseIntegers(flag: string, values: readonly string[]): number[] | undefined {
  return parseList(values)?.map((text) => {
    if (!/^[1-9]\d{0,14}$/.test(text)) throw new UsageError(`--${flag} must be positive integers.`);
    return Number(text);
  });
}

/** Parses pairs such as `NAME=VALUE`, the `form` that errors name. Each name may be given once. */
export function parsePairs(
  flag: string,
  values: readonly string[],
  form: string,
): Record<string, string> | undefined {
  const pairs = new Map<string, string>();
  for (const value of values) {
    const at = value.indexOf('=');
    if (at < 1 || at === value.length - 1) throw new UsageError(`--${flag} must be ${form}.`);
    const name = value.slice(0, at);
    if (pairs.has(name)) throw new UsageError(`--${flag} must not contain "${name}" twice.`);
    pairs.set(name, value.slice(at + 1));
  }
  return pairs.size === 0 ? undefined : Object.fromEntries(pairs);
}

/** Returns a handler of errors that adds a suggestion to a 404. */
export const suggestText = (text: string, known: readonly string[]) => (cause: unknown) => {
  if (cause instanceof ApiError && cause.status === 404) cause.message += suggest(text, known);
  throw cause;
};

/** Handles the error of a resource that does not exist, or was deleted meanwhile. */
export function ignoreNotFound(cause: unknown): undefined {
  if (cause instanceof ApiError && cause.status === 404) return undefined;
  throw cause;
}

/** Returns the parameters of a path with one id. */
export const withId = (id: string) => ({ params: { path: { id } } });

/** Reads a file. `what` names it in the error, which ends with `advice`. Throws {@link UsageError}. */
export function readInputFile(path: string, what: string, advice = ''): Buffer {
  try {
    return readFileSync(path);
  } catch (cause) {
    throw new UsageError(`${what} can’t be read${formatCode(findCode(cause))}.${advice}`, { cause });
  }
}

/** Reads a secret from the first line of a file. Errors never quote it. */
export function readSecretFile(flag: string, path: string): string {
  const where = `--${flag}: the file ${path}`;
  return validateSecret(where, readInputFile(path, where).toString());
}

/** Reads a secret from an environment variable. */
export function readSecretVariable(flag: string, name: string, env: Context['env']): string {
  const value = env[name];
  if (value === undefined || value === '') {
    throw new UsageError(`--${flag}: the environment variable ${name} is not set.`);
  }
  return value;
}

/** Reads the values of custom headers from the environment variables that the option names. */
export function readHeaders(values: readonly string[], env: Context['env']): Record<string, string> {
  const pairs = parsePairs('header-env', values, HEADER_ENV['header-env'].value) ?? {};
  return mapValues(pairs, (name) => readSecretVariable('header-env', name, env));
}

/** Reads a secret from a file, an environment variable or stdin. On a terminal, prompts for it without echo. */
export async function readSecret(
  { stdin, env }: Pick<Context, 'stdin' | 'env'>,
  what: string,
  from: { readonly flag: string; readonly file: string | undefined; readonly variable: string | undefined },
): Promise<string> {
  const { flag, file, variable } = from;
  if (file !== undefined && variable !== undefined) {
    throw new UsageError(`--${flag}-file and --${flag}-env can’t be combined.`);
  }
  if (file !== undefined) return readSecretFile(`${flag}-file`, file);
  if (variable !== undefined) return readSecretVariable(`${flag}-env`, variable, env);
  if (stdin.isTTY) {
    for (;;) {
      const typed = await prompt(stdin, `${what}: `, 'silent');
      if (typed !== '') return validateSecret(what, typed);
      process.stderr.write(`${what} must not be empty.\n`);
    }
  }
  let text = '';
  for await (const chunk of stdin.setEncoding('utf8')) {
    text += chunk;
    if (text.length > MAX_SECRET_BYTES) break;
  }
  if (text.trim() === '') {
    throw new UsageError(`${what} is missing. Provide it on stdin, or with --${flag}-file or --${flag}-env.`);
  }
  return validateSecret(`${what} on stdin`, text);
}

function validateSecret(where: string, text: string): string {
  const secret = text.replace(/\r?\n$/, '');
  if (secret === '') throw new UsageError(`${where} is empty.`);
  if (/[\r\n]/.test(secret)) throw new UsageError(`${where} must be a single line.`);
  return secret;
}

/** Prompts on stderr, with or without echo. Throws {@link InterruptedError} on Ctrl-C and Ctrl-D. */
export function prompt(
  stdin: NodeJS.ReadStream,
  question: string,
  echo: 'visible' | 'silent',
): Promise<string> {
  const silent = new Writable({ write: (_chunk, _encoding, done) => done() });
  const output = echo === 'visible' ? process.stderr : silent;
  const lines = createInterface({ input: stdin, output, terminal: true, prompt: question });
  // The terminal no longer echoes from here on.
  if (echo === 'silent') process.stderr.write(question);
  else lines.prompt();
  let answered = false;
  return new Promise((resolve, reject) => {
    // The terminal is in raw mode, so Ctrl-C is a character and not a signal.
    lines.on('SIGINT', () => lines.close());
    lines.on('close', () => {
      process.stderr.write(echo === 'silent' || !answered ? '\n' : '');
      if (!answered) reject(new InterruptedError());
    });
    lines.on('line', (line) => {
      answered = true;
      resolve(line);
      lines.close();
    });
  });
}

/** Reads a template from a file with a JSON object, which can be the output of `templates show --json`. `flag`: the option that names it, or `FILE` for the argument. Throws {@link UsageError}. */
export function readTemplateFile(flag: string, file: string): object {
  const where = `${flag === 'FILE' ? flag : `--${flag}`}: ${file}`;
  const bytes = readInputFile(file, where);
  try {
    const json = JSON.parse(bytes.toString());
    const value: unknown = json?.template ?? json;
    if (typeof value === 'object' && value !== null && !Array.isArray(value)) return value;
  } catch {
    // Reported below.
  }
  throw new UsageError(`${where} must contain a JSON object, such as {"subject": "…"}.`);
}
