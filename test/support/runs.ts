/** Size of a test: small in `npm test`, full in `npm run test:full` (docs/internals/testing.md). */
import * as fc from 'fast-check';
import { inject } from 'vitest';

declare module 'vitest' {
  export interface ProvidedContext {
    /** Whether tests run at their full size. */
    readonly full: boolean;
    /** The browser of this project. */
    readonly browser: 'chromium' | 'firefox';
  }
}

/** Values of an arbitrary, generated on demand: the same ones for the same seed. */
export function* samples<T>(arbitrary: fc.Arbitrary<T>, seed: number, most: number): Generator<T> {
  let count = 0;
  for (const numRuns of [Math.min(5, most), most]) {
    yield* fc.sample(arbitrary, { seed, numRuns }).slice(count);
    count = numRuns;
  }
}

/** The smaller number in `npm test`, the larger one in `npm run test:full`. */
export const sized = (feedback: number, full: number): number => (inject('full') ? full : feedback);

/** Any Unicode character. fast-check's unit `binary` first builds a table of all of them, which takes a second. */
export const anyCharacter = fc
  .integer({ min: 0, max: 0x10_ffff - 0x800 })
  .map((n) => String.fromCodePoint(n < 0xd800 ? n : n + 0x800));

/** The seed of every property in `npm test`: a failure is caused by the current change, and reproducible. */
const FIXED_SEED = 20_261_121;

/**
 * Parameters of a property: number of runs, and the seed, which is new each time in `npm run test:full`. `RUNS`, `SEED` and
 * `SEED_PATH` in the environment take precedence: they repeat a failure that fast-check reported.
 */
export function runs(
  feedback: number,
  full: number,
  fixedSeed = FIXED_SEED,
): { readonly numRuns: number; readonly seed: number; readonly path?: string } {
  const { RUNS, SEED, SEED_PATH } = process.env;
  const ownSeed = inject('full') ? Date.now() % 2 ** 31 : fixedSeed;
  return {
    numRuns: RUNS === undefined ? sized(feedback, full) : Number(RUNS),
    seed: SEED === undefined ? ownSeed : Number(SEED),
    ...(SEED_PATH === undefined ? {} : { path: SEED_PATH }),
  };
}
