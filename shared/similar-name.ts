/** Suggestions for misspelled names. */
import { closestMatch } from 'leven';

/** Returns the known name that a misspelled one most likely means; `undefined` if none is similar. */
export function findSimilarName(typed: string, known: readonly string[]): string | undefined {
  const near = closestMatch(typed.slice(0, 100), known);
  if (near === undefined) return undefined;
  const maxDistance = Math.ceil(near.replace(/^-+/, '').length / 3);
  return closestMatch(typed.slice(0, 100), [near], { maxDistance });
}
