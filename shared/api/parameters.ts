/** Schemas of path and query parameters. Each rule completes a sentence that begins with the parameter's name. */
import * as z from 'zod';
import { eventTypes } from '../events/catalogue.ts';
import { typeMatches } from '../events/types.ts';
import { textOrNull } from '../representation.ts';
import { CELL_LOG } from '../storage/schema.ts';
import { isId, suggestType, timestamp } from '../validation.ts';

/** A parameter that must occur exactly once. */
export const one = z.string('must be given once');

/** An integer in a range. */
export function integer(lowest: number, highest: number) {
  return one
    .refine(
      (text) => /^\d{1,6}$/.test(text) && lowest <= Number(text) && Number(text) <= highest,
      `must be an integer from ${lowest} to ${highest}`,
    )
    .transform(Number)
    .meta({ type: 'integer', minimum: lowest, maximum: highest });
}

/** A string of limited length. */
export function textUpTo(characters: number) {
  return one.min(1, lengthRule(characters)).max(characters, lengthRule(characters));
}

const lengthRule = (characters: number) => `must be 1 to ${characters} characters long`;

/** A cursor. `decode` returns `undefined` for an invalid cursor. */
export function cursorBy<T>(decode: (text: string) => T | undefined, rule: string) {
  return one.transform((text, context): T => {
    const decoded = decode(text);
    if (decoded !== undefined) return decoded;
    context.addIssue(rule);
    return z.NEVER;
  });
}

/** Comma-separated values. */
export function commaSeparated<const T extends string>(values: readonly T[], rule: string) {
  return cursorBy((text) => {
    const names = text.split(',');
    return names.every((name) => values.some((value) => value === name)) ? (names as T[]) : undefined;
  }, rule);
}

/** A boolean parameter. */
export const flag = one
  .refine((text) => text === 'true' || text === 'false', 'must be true or false')
  .transform((text) => text === 'true')
  .meta({ enum: ['true', 'false'] });

/** A calendar day, for example 2026-03-02. */
export const day = one.pipe(z.iso.date('must be a day (YYYY-MM-DD)'));

/** A timestamp with its time zone, as epoch ms. */
export const time = one.pipe(timestamp).transform((text) => Date.parse(text));

/** Event types or prefixes. A pattern that matches no type is rejected, because its feed would always be empty. */
export const typePatterns = one
  .transform((text, context): string[] => {
    const patterns = text.split(',');
    const futile = patterns.find((pattern) => !eventTypes.some((type) => typeMatches(type, [pattern])));
    if (futile === undefined) return [...new Set(patterns)];
    context.addIssue(
      `must be comma-separated event types or prefixes followed by *; no type matches ${JSON.stringify(futile.slice(0, 100))}${suggestType(futile) || ' (see /v1/event-types)'}`,
    );
    return z.NEVER;
  })
  .describe('Comma-separated event types. A trailing `*` matches any suffix: `job.*`.');

const MAX_LIMIT = 500;
const DEFAULT_LIMIT = 100;

/** Maximum size of a page of events. Larger than for other lists, to speed up catching up. */
export const MAX_EVENTS = 1000;

/** Maximum number of items per page. */
export const limit = limitUpTo(MAX_LIMIT);
/** Maximum number of events per page of a feed. */
export const eventLimit = limitUpTo(MAX_EVENTS);

function limitUpTo(most: number) {
  return integer(1, most)
    .default(DEFAULT_LIMIT)
    .describe(`Maximum number of items per page. Default: ${DEFAULT_LIMIT}.`);
}

/** Cursor of the next page, in a response. */
export const nextCursor = textOrNull.describe('`null` on the last page.');

/** `after` of a list. `decode` parses a cursor and returns `undefined` for an invalid one, which results in a 400. */
export function afterBy<T>(things: string, decode: (text: string) => T | undefined) {
  return cursorBy(decode, `must be the \`next\` of a page of ${things}`)
    .optional()
    .describe('The `next` of the previous page.');
}

/** `after` of a list whose cursors are item ids. */
export const afterId = (things: string, isOne: (text: string) => boolean) =>
  afterBy(things, (text) => (isOne(text) ? text : undefined));

/** Encodes an opaque cursor as base64url, so that it cannot be confused with an id. */
export function encodePageCursor(text: string): string;
export function encodePageCursor(text: string | null): string | null;
export function encodePageCursor(text: string | null): string | null {
  return text === null ? null : Buffer.from(text).toString('base64url');
}

/** Maximum length in base64. Sort keys are limited to 1,024 bytes. */
const MAX_PLACE = 1360;

/** Decodes the result of {@link encodePageCursor}. Returns `undefined` for any other text. */
export function decodePageCursor(text: string): string | undefined {
  const decoded = Buffer.from(text, 'base64url').toString();
  const isOne = text.length <= MAX_PLACE && decoded !== '' && encodePageCursor(decoded) === text;
  return isOne ? decoded : undefined;
}

/** A position in a list ordered by time: after the first `count` items with this time (epoch ms). */
interface PlaceInTime {
  readonly at: number;
  readonly count: number;
}

/** `after` of a list paged by {@link pageInTime}. */
export const afterInTime = (things: string) =>
  afterBy(things, (text): PlaceInTime | undefined => {
    const [, at, count] = /^(\d{1,15})\/(\d{1,6})$/.exec(decodePageCursor(text) ?? '') ?? [];
    return at === undefined ? undefined : { at: Number(at), count: Number(count) };
  });

/**
 * Returns a page of a complete list ordered by time, newest or oldest first. Items added or removed between two requests do not
 * shift other items to another page, unless they have the same millisecond as the last item of the page.
 */
export function pageInTime<T>(
  all: readonly T[],
  getTime: (one: T) => number,
  order: 'newest' | 'oldest',
  { limit, after }: { readonly limit: number; readonly after?: PlaceInTime | undefined },
): { readonly page: readonly T[]; readonly next: string | null } {
  const isBefore = (one: T, at: number) => (order === 'newest' ? getTime(one) > at : getTime(one) < at);
  const begin = after ? all.filter((one) => isBefore(one, after.at)).length + after.count : 0;
  const page = all.slice(begin, begin + limit);
  const last = page.at(-1);
  if (last === undefined || all.length <= begin + limit) return { page, next: null };
  const at = getTime(last);
  const count = all.slice(0, begin + limit).filter((one) => getTime(one) === at).length;
  return { page, next: encodePageCursor(`${at}/${count}`) };
}

/** Parses an event id into its parts. Returns `undefined` if it is not valid; only valid ids are looked up. */
export function parseEventId(id: string) {
  const [, account = '', epoch, sequence] = /^([^.]+)\.([0-9a-z]{1,32})\.(\d{1,15})$/.exec(id) ?? [];
  if (epoch === undefined || !(isId(account) || account === CELL_LOG)) return undefined;
  return { account, epoch, sequence: Number(sequence) };
}
