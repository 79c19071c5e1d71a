/**
 * Contract freedom: settings with which the sandbox uses what the contract of the ordering API leaves open. By default it uses
 * none of it.
 */
import * as z from 'zod';
import type { World } from '../world/world.ts';
import { strictObject } from './faults.ts';
import { VIEWS, type View } from './traffic.ts';

/** Maximum lag of a view: a day. */
const MOST_LAG_SECONDS = 86_400;

/** The settings. Absent ones use no freedom. */
export const freedomSchema = strictObject({
  /** Age of the state that each view shows, in seconds. Default of each view: 0; of `closedSearch`: that of `search`. */
  lagSeconds: z.partialRecord(z.enum(VIEWS), z.number().min(0).max(MOST_LAG_SECONDS)).default({}),
});

/** Settings as given by the caller. */
export type FreedomSettings = z.input<typeof freedomSchema>;

/** The freedoms in use. */
export class ContractFreedom {
  readonly #world: World;
  #settings = freedomSchema.parse({});

  constructor(world: World) {
    this.#world = world;
  }

  /** The settings in force, complete. */
  get settings(): z.output<typeof freedomSchema> {
    return this.#settings;
  }

  /** Changes the given settings; others stay. Throws ZodError if they are invalid. */
  set(changes: FreedomSettings): void {
    this.#settings = { ...this.#settings, ...pick(freedomSchema.parse(changes), changes) };
    const longest = Math.max(0, ...Object.values(this.#settings.lagSeconds).map((seconds) => seconds ?? 0));
    // A lag that is reduced for a while must find earlier versions when it is raised again.
    this.#world.historyMs = Math.max(this.#world.historyMs, longest * 1000);
  }

  /** Uses no freedom any more, and forgets the history. */
  clear(): void {
    this.#settings = freedomSchema.parse({});
    this.#world.historyMs = 0;
  }

  /** How far behind a view is, in ms. */
  lagMs(view: View | undefined): number {
    if (view === undefined || this.#world.historyMs === 0) return 0;
    const { lagSeconds } = this.#settings;
    return (lagSeconds[view] ?? (view === 'closedSearch' ? lagSeconds.search : undefined) ?? 0) * 1000;
  }
}

/** The fields of `all` that `given` has, too. */
function pick<T extends object>(all: T, given: object): Partial<T> {
  return Object.fromEntries(Object.entries(all).filter(([name]) => name in given)) as Partial<T>;
}
