/** Scans JSON texts without parsing them. */

/** A full page of 100 jobs has some 5,000 values. An answer far beyond that is rejected before parsing, because parsing blocks every other account. */
export const MAX_VALUES = 100_000;

/**
 * Returns whether a JSON text contains more values than {@link MAX_VALUES}. One pass over the text, and none over a short one:
 * each value takes two characters at least.
 */
export function exceedsMaxValues(text: string): boolean {
  if (text.length < 2 * MAX_VALUES) return false;
  let values = 1;
  for (let at = 0; at < text.length; at += 1) {
    switch (text.charCodeAt(at)) {
      case 0x22:
        at = findStringEnd(text, at);
        if (at < 0) return false;
        break;
      case 0x5b:
      case 0x7b:
      case 0x2c:
        values += 1;
        if (values > MAX_VALUES) return true;
    }
  }
  return false;
}

/** Returns the position of the quote that ends the string beginning at a position, or -1. */
export function findStringEnd(text: string, start: number): number {
  let end = start;
  // A string ends at a quote that is not preceded by an odd number of backslashes.
  do end = text.indexOf('"', end + 1);
  while (end >= 0 && isEscaped(text, end));
  return end;
}

function isEscaped(text: string, at: number): boolean {
  let backslashes = 0;
  while (text.charCodeAt(at - 1 - backslashes) === 0x5c) backslashes += 1;
  return backslashes % 2 === 1;
}
