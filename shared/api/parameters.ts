/** What parameters of a path or a query may be. Each rule is the rest of a sentence that begins with the parameter's name. */
import * as z from 'zod';
import { eventTypes } from '../events/catalogue.ts';
import { typeMatches } from '../events/types.ts';

/** A text that is there once. */
export const one = z.string('must be given once');

/** A whole number in a range. */
export function wholeNumber(lowest: number, highest: number) {
  return one
    .refine(
      (text) => /^\d{1,6}$/.test(text) && lowest <= Number(text) && Number(text) <= highest,
      `must be a whole number from ${lowest} to ${highest}`,
    )
    .transform(Number)
    .meta({ type: 'integer', minimum: lowest, maximum: highest });
}

/** A text of a bounded length. */
export function textUpTo(characters: number) {
  return one.min(1, lengthRule(characters)).max(characters, lengthRule(characters));
}

const lengthRule = (characters: number) => `must be 1 to ${characters} characters long`;

/** A cursor read by `decode`, which gives `undefined` for what is none. */
export function cursorBy<T>(decode: (text: string) => T | undefined, rule: string) {
  return one.transform((text, context): T => {
    const decoded = decode(text);
    if (decoded !== undefined) return decoded;
    context.addIssue(rule);
    return z.NEVER;
  });
}

/** A switch that is on when it is there. */
export const flag = one
  .refine((text) => text === 'true' || text === 'false', 'must be true or false')
  .transform((text) => text === 'true')
  .meta({ enum: ['true', 'false'] });

/** A day, as in 2026-03-02. */
export const day = one.pipe(z.iso.date('must be a day (YYYY-MM-DD)'));

/** Event types, or beginnings of them; a pattern that can't match would be a feed that stays silent forever. */
export const typePatterns = one
  .transform((text, context): string[] => {
    const patterns = text.split(',');
    const futile = patterns.find((pattern) => !eventTypes.some((type) => typeMatches(type, [pattern])));
    if (futile === undefined) return [...new Set(patterns)];
    context.addIssue(
      `must be event types or beginnings of them closed by *, separated by commas; none matches ${JSON.stringify(futile.slice(0, 100))} (see /v1/event-types)`,
    );
    return z.NEVER;
  })
  .describe(
    'Only events of these types, separated by commas; a final `*` stands for the rest of a name: `job.*`.',
  );

const MAX_LIMIT = 500;
const DEFAULT_LIMIT = 100;

/** A feed's pages may be longer: whoever catches up reads many. */
export const MAX_EVENTS = 1000;

/** How many things a page has at most. */
export const limit = limitUpTo(MAX_LIMIT);
/** How many events a page of a feed has at most. */
export const eventLimit = limitUpTo(MAX_EVENTS);

function limitUpTo(most: number) {
  return wholeNumber(1, most)
    .default(DEFAULT_LIMIT)
    .describe(`How many at most: 1 to ${most}, ${DEFAULT_LIMIT} unless told.`);
}

/** Where a list goes on, in its answer. */
export const nextOf = z
  .string()
  .nullable()
  .describe('What `after` takes for the next page; null: this is the last.');

/** `after` of a list whose cursors `decode` reads; it returns `undefined` for anything else, which is a 400. */
export function afterBy<T>(things: string, decode: (text: string) => T | undefined) {
  return cursorBy(decode, `must be the \`next\` of a page of ${things}`)
    .optional()
    .describe('The `next` of the page before.');
}

/** `after` of a list whose cursors are the ids of its things. */
export const afterId = (things: string, isOne: (text: string) => boolean) =>
  afterBy(things, (text) => (isOne(text) ? text : undefined));

/** A cursor that says nothing: base64url, so that no id can be taken for one. */
export function encodePlace(text: string): string;
export function encodePlace(text: string | null): string | null;
export function encodePlace(text: string | null): string | null {
  return text === null ? null : Buffer.from(text).toString('base64url');
}

/** In base64; no sort key is longer than 1,024 bytes. */
const MAX_PLACE = 1360;

/** What {@link encodePlace} was given; `undefined` for any other text. */
export function decodePlace(text: string): string | undefined {
  const decoded = Buffer.from(text, 'base64url').toString();
  const isOne = text.length <= MAX_PLACE && decoded !== '' && encodePlace(decoded) === text;
  return isOne ? decoded : undefined;
}

/** A place in a list that is in order of time: behind the first `count` things of that time (epoch ms). */
interface PlaceInTime {
  readonly at: number;
  readonly count: number;
}

/** `after` of a list that {@link pageInTime} cuts. */
export const afterInTime = (things: string) =>
  afterBy(things, (text): PlaceInTime | undefined => {
    const [, at, count] = /^(\d{1,15})\/(\d{1,6})$/.exec(decodePlace(text) ?? '') ?? [];
    return at === undefined ? undefined : { at: Number(at), count: Number(count) };
  });

/**
 * A page of a list that was read whole, in order of time: the newest first, or the oldest. What is added to the list, or leaves
 * it, between two pages moves nothing to another page, unless it is of the same millisecond as the last thing of the page.
 */
export function pageInTime<T>(
  all: readonly T[],
  timeOf: (one: T) => number,
  order: 'newest' | 'oldest',
  { limit, after }: { readonly limit: number; readonly after?: PlaceInTime | undefined },
): { readonly page: readonly T[]; readonly next: string | null } {
  const isBefore = (one: T, at: number) => (order === 'newest' ? timeOf(one) > at : timeOf(one) < at);
  const begin = after ? all.filter((one) => isBefore(one, after.at)).length + after.count : 0;
  const page = all.slice(begin, begin + limit);
  const last = page.at(-1);
  if (last === undefined || all.length <= begin + limit) return { page, next: null };
  const at = timeOf(last);
  const count = all.slice(0, begin + limit).filter((one) => timeOf(one) === at).length;
  return { page, next: encodePlace(`${at}/${count}`) };
}

/** The instant (epoch ms) as people and programs read it. */
export function instantText(ms: number): string;
export function instantText(ms: number | null): string | null;
export function instantText(ms: number | null): string | null {
  return ms === null ? null : new Date(ms).toISOString();
}

/** An instant in an answer. */
export const instant = z.iso.datetime().describe('An instant, ISO 8601 in UTC.');
