/**
 * Validation rules for the configuration file and for requests, and the error message for a violated rule.
 */
import * as z from 'zod';
import { BUILT_IN_SINKS } from './built-in-sinks.ts';
import { eventTypes } from './events/catalogue.ts';
import { typeMatches } from './events/types.ts';
import { findSimilarName } from './similar-name.ts';

const ID = /^[a-z0-9][a-z0-9-]{0,62}$/;
const ID_RULE = 'must be 1–63 lower-case letters, digits and hyphens, beginning with a letter or digit';

/** The user-defined id of an account, a region or an endpoint. */
export const id = z.string().regex(ID, ID_RULE);

/**
 * Reports whether a text can be the id of an account, an endpoint, a recipient or a replay. No other text is
 * looked up.
 */
export const isId = (text: string): boolean => ID.test(text);

/**
 * An id that refers to an existing resource. It has no pattern in the OpenAPI documents: released ones have
 * none there, and a new one would count as a breaking change.
 */
export const existingId = z.string().refine(isId, ID_RULE);

/** The id of an endpoint: endpoints and built-in sinks share one namespace. */
export const endpointId = id.refine(
  (value) => !BUILT_IN_SINKS.some((builtIn) => builtIn === value),
  `must not be ${BUILT_IN_SINKS.join(', ').replace(/, ([^,]*)$/, ' or $1')}: built-in sinks have these names`,
);

/** Maximum job number that fits into keys. */
export const MAX_JOB_NUMBER = 999_999_999_999;
export const JOB_NUMBER_RULE = `must be an integer from 1 to ${MAX_JOB_NUMBER}`;

export const flag = z.boolean('must be true or false');

/** An integer in a range, inclusive. */
export const integerFrom = (
  least: number,
  most: number,
  rule = `must be an integer from ${least} to ${most}`,
) => z.int(rule).min(least, rule).max(most, rule);

export const jobNumber = integerFrom(1, MAX_JOB_NUMBER, JOB_NUMBER_RULE);

const textUpTo = (max: number) =>
  z.string('must be text').trim().max(max, `must be at most ${max} characters`);

/** Text of one line, which may be empty: no line breaks, no control characters. */
export const lineOrEmpty = (max: number) =>
  textUpTo(max).refine(
    (text) => !/[\p{Cc}\u2028\u2029]/u.test(text),
    'must be one line without control characters',
  );

/** Text of one line: no line breaks, no control characters. */
export const line = (max: number) => lineOrEmpty(max).min(1, 'must not be empty');

/** Text of any number of lines: no control characters but line feeds. */
export const lines = (max: number) =>
  textUpTo(max).refine(
    (text) => !/(?!\n)\p{Cc}/u.test(text),
    'must contain no control characters except line feeds',
  );

const RECEIVER_SECRET_RULE = 'must be "whsec_" and 24 to 64 random bytes in base64';
/** Rule of {@link webhookSecret}. */
export const SECRET_RULE = `${RECEIVER_SECRET_RULE}, with padding`;
const secretText = z.string('must be text that begins with whsec_');

function isSecret(value: string): boolean {
  const encoded = /^whsec_([A-Za-z0-9+/]+={0,2})$/.exec(value)?.[1];
  const bytes = Math.floor(((encoded?.replace(/=+$/, '').length ?? 0) * 3) / 4);
  return bytes >= 24 && bytes <= 64;
}

/** The secret of an existing receiver. Its padding is optional: earlier versions accepted secrets without it. */
export const receiverSecret = secretText.refine(isSecret, RECEIVER_SECRET_RULE);

/** A new webhook secret: `whsec_` and 24–64 bytes in base64, with padding. */
export const webhookSecret = secretText.refine(
  (value) => isSecret(value) && (value.length - 'whsec_'.length) % 4 === 0,
  SECRET_RULE,
);

/** Returns ` (did you mean …?)` for a misspelled event type, or an empty string. */
export function suggestType(typed: string): string {
  const groups = eventTypes.map((type) => type.replace(/\..*/, '.*'));
  const similar = findSimilarName(typed, typed.endsWith('*') ? groups : eventTypes);
  return similar === undefined ? '' : ` (did you mean ${similar}?)`;
}

/** Patterns of event types; a final `*` matches the rest of the name. */
export const typePatterns = z
  .array(
    z
      .string('must be text')
      .regex(/^[a-z_.]*\*?$/, 'must be an event type, or a prefix followed by *')
      .refine((pattern) => eventTypes.some((type) => typeMatches(type, [pattern])), {
        error: ({ input }) => `must match an existing event type${suggestType(String(input))}`,
      }),
    'must be a list of event types',
  )
  .min(1, 'must name at least one type');

const TIMESTAMP_RULE = 'must be a timestamp such as 2026-03-02T08:00:00Z';

/** A time in ISO 8601, whose year in UTC has four digits. */
export const timestamp = z.iso
  .datetime({ offset: true, error: TIMESTAMP_RULE })
  .refine((text) => /^\d{4}-/.test(new Date(Date.parse(text) || 0).toISOString()), TIMESTAMP_RULE);

const ORIGIN_RULE = 'must be an origin such as https://tools.example.com, without a path or a final slash';

/** Origins of web pages that may call the HTTP API. */
export const corsOrigins = z
  .array(
    z
      .string(ORIGIN_RULE)
      .refine((text) => /^https?:/.test(text) && URL.parse(text)?.origin === text, ORIGIN_RULE),
    'must be a list of origins',
  )
  .max(20, 'must name at most 20 origins')
  .default([]);

/** Zod's issue codes for an absent value: by its type, its choices, or none of its shapes. */
const ABSENT = new Set<string | undefined>(['invalid_type', 'invalid_value', 'invalid_union']);

/**
 * Returns the error message of an issue as one sentence without its full stop: it names the field and the
 * accepted values. Values are never quoted, because they may be secrets. `whole` names the document; `issue`
 * is as zod reports it with `reportInput`.
 */
export function formatIssue(issue: z.core.$ZodIssue | undefined, whole: string): string {
  if (!issue) return `${whole} is not valid`;
  const where = pathText(issue.path, whole);
  if (issue.code === 'unrecognized_keys') {
    const key = [...issue.path, issue.keys[0] ?? ''];
    return `${pathText(key, whole)} is not a known setting`;
  }
  if (issue.code === 'invalid_key') return `${where} ${issue.issues[0]?.message ?? 'is not a valid name'}`;
  const missing = ABSENT.has(issue.code) && issue.input === undefined;
  const isQuotedNumber =
    issue.code === 'invalid_type' &&
    /^(number|int)$/.test(issue.expected) &&
    typeof issue.input === 'string' &&
    /^-?\d+(\.\d+)?$/.test(issue.input);
  const rule = `${describeRule(issue)}${isQuotedNumber ? ', as a number, not as text' : ''}`;
  return `${where} ${missing ? `is missing; it ${rule}` : rule}`;
}

/** Returns the accepted values: the rule's own message instead of zod's. */
function describeRule(issue: z.core.$ZodIssue): string {
  if (issue.code === 'too_small' && issue.message.startsWith('Too small')) {
    return describeSize(issue.origin, issue.inclusive === false ? 'more than' : 'at least', issue.minimum);
  }
  if (issue.code === 'too_big' && issue.message.startsWith('Too big')) {
    return describeSize(issue.origin, issue.inclusive === false ? 'less than' : 'at most', issue.maximum);
  }
  if (!issue.message.startsWith('Invalid ')) return issue.message;
  if (issue.code === 'invalid_value') return `must be one of ${issue.values.map(String).join(', ')}`;
  if (issue.code === 'invalid_type') return `must be ${TYPES[issue.expected] ?? `of type ${issue.expected}`}`;
  return 'must be valid';
}

function describeSize(origin: string, bound: string, size: number | bigint): string {
  const isOne = Number(size) === 1;
  if (origin === 'array') return `must contain ${bound} ${size} ${isOne ? 'entry' : 'entries'}`;
  return `must be ${bound} ${size}${origin === 'string' ? ` character${isOne ? '' : 's'}` : ''}`;
}

/** Names of types in messages. */
const TYPES: Readonly<Record<string, string>> = {
  string: 'text',
  number: 'a number',
  int: 'an integer',
  boolean: 'true or false',
  array: 'a list',
  object: 'an object',
};

/** Formats the path of a field. */
export function pathText(path: readonly PropertyKey[], whole: string): string {
  if (path.length === 0) return whole;
  return path.reduce<string>((text, part) => {
    if (typeof part === 'number') return `${text}[${part}]`;
    return text === '' ? String(part) : `${text}.${String(part)}`;
  }, '');
}

/** The validated input, or the reason for its rejection as one sentence. */
export type Checked<T> =
  | { readonly kind: 'checked'; readonly value: T }
  | { readonly kind: 'rejected'; readonly reason: string };

/** Validates an input of any shape. Values are not quoted, because they may be secrets. */
export function checkInput<T>(shape: z.ZodType<T>, raw: unknown): Checked<T> {
  const result = shape.safeParse(raw, { reportInput: true });
  if (result.success) return { kind: 'checked', value: result.data };
  return { kind: 'rejected', reason: `${formatIssue(result.error.issues[0], 'The request')}.` };
}

/** Returns the fields of a change: each of them can be absent or `null`. */
export function nullableFields<T extends { readonly [name: string]: z.ZodType }>(fields: T) {
  const entries = Object.entries<z.ZodType>(fields);
  return Object.fromEntries(entries.map(([name, of]) => [name, of.nullable().optional()])) as unknown as {
    [K in keyof T]: z.ZodOptional<z.ZodNullable<T[K]>>;
  };
}
