/**
 * Maximum lengths of the texts of a job, so that a job with all of its texts and events fits into the
 * table. Pure.
 */

/**
 * Maximum number of bytes of a text in JSON, without quotes. A status name is an index key as well, and a job can have
 * hundreds of lines.
 */
export const MAX_BYTES = { description: 32_768, status: 1_000, lineComments: 256, other: 4_096 } as const;

/** End of every truncated text. */
export const TRUNCATED = '… [truncated]';

/** Returns the length of a text in JSON, without quotes (bytes of UTF-8). */
function countBytes(text: string): number {
  return Buffer.byteLength(JSON.stringify(text)) - 2;
}

/**
 * Returns a status name or the name of an order group like {@link toText}, as well-formed text, because it is part of keys: half of a
 * surrogate pair becomes U+FFFD.
 */
export const toName = (text: string | null, maxBytes: number): string | null =>
  toText(text?.toWellFormed() ?? null, maxBytes);

/**
 * Returns a text of a job, or `null` for an empty one. A longer text than `maxBytes` is cut between two
 * characters and marked with {@link TRUNCATED}. The result has no trace of what follows, so texts that
 * differ only there are equal. A truncated text stays the same.
 */
export function toText(text: string | null, maxBytes: number): string | null {
  if (!text) return null;
  // No character needs more than 6 bytes per UTF-16 unit.
  if (text.length * 6 <= maxBytes || (text.length <= maxBytes && countBytes(text) <= maxBytes)) return text;
  let bytes = countBytes(TRUNCATED);
  let end = 0;
  for (const character of text) {
    bytes += countBytes(character);
    if (bytes > maxBytes) break;
    end += character.length;
  }
  return text.slice(0, end) + TRUNCATED;
}
