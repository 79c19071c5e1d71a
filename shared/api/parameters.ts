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

/** Where a list of things that are sorted by their id goes on. */
export const afterId = textUpTo(200).optional().describe('The `next` of the page before.');

/** The instant (epoch ms) as people and programs read it. */
export function instantText(ms: number): string;
export function instantText(ms: number | null): string | null;
export function instantText(ms: number | null): string | null {
  return ms === null ? null : new Date(ms).toISOString();
}

/** An instant in an answer. */
export const instant = z.iso.datetime().describe('An instant, ISO 8601 in UTC.');
