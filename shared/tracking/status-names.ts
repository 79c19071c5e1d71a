/**
 * The status names of an account (rule 4). The code gives no name a meaning. A new name causes an event. A
 * name that replaced another one in the upstream lookup is the same status: otherwise, a renaming would
 * look like a change of every job.
 */
import type { OrderingClient } from '../ordering/client.ts';
import type { JobStatus } from '../ordering/schemas.ts';
import type { Value } from '../storage/table.ts';
import type { Snapshot } from './snapshot.ts';

/**
 * Maximum number of names, and of renamings, stored per account. They are optional data, and Head must stay
 * small.
 */
const MAX_NAMES = 500;
const MAX_RENAMINGS = 100;

type Attributes = { readonly [attribute: string]: Value | undefined };

/** Status names stored in Head, and names learned in a poll. */
export class StatusNames {
  /** Names that occurred in an answer or in the lookup. */
  readonly #met: Set<string>;
  /** Last lookup read: name by id. */
  #lookup: ReadonlyMap<number, string>;
  /** Former name → current name. */
  readonly #renamed: Map<string, string>;
  #changed = false;

  constructor(head: Attributes) {
    const texts = (name: string): readonly string[] => (head[name] as readonly string[] | undefined) ?? [];
    this.#met = new Set(texts('statusNames'));
    this.#lookup = new Map(texts('statusLookup').map((text) => JSON.parse(text) as [number, string]));
    this.#renamed = new Map(texts('renamedStatuses').map((text) => JSON.parse(text) as [string, string]));
  }

  /** Returns whether a name causes an event: it never occurred before, and there is room to store it. */
  isNew(name: string): boolean {
    return !this.#met.has(name) && this.#met.size < MAX_NAMES;
  }

  /** Returns whether a name may be a renamed status, so that reading the lookup is worthwhile. */
  mayBeRenamed(name: string): boolean {
    return this.#lookup.size > 0 && (this.#renamed.has(name) || !this.#met.has(name));
  }

  /** Returns the former name of a status, or `undefined`. */
  previousName(name: string): string | undefined {
    return [...this.#renamed].find(([, today]) => today === name)?.[0];
  }

  /**
   * Applies the lookup. A status whose name differs from before was renamed, unless one of the two names
   * belongs to another status.
   */
  applyLookup(entries: readonly JobStatus[]): void {
    const before = this.#lookup;
    const today = new Map(entries.flatMap(({ id, name }) => (id !== null && name ? [[id, name]] : [])));
    const names = new Set(today.values());
    const formerNames = new Set(before.values());
    for (const [id, former] of before) {
      const name = today.get(id);
      if (name === undefined || name === former || names.has(former) || formerNames.has(name)) continue;
      for (const [older, its] of this.#renamed) if (its === former) this.#renamed.set(older, name);
      this.#renamed.set(former, name);
      // Renamed back to a former name.
      this.#renamed.delete(name);
    }
    for (const oldest of [...this.#renamed.keys()].slice(0, -MAX_RENAMINGS)) this.#renamed.delete(oldest);
    this.#lookup = today;
    this.#changed = true;
  }

  /** Marks every name in the lookup as known. */
  markLookupKnown(): void {
    this.markKnown([...this.#lookup.values()].slice(0, Math.max(0, MAX_NAMES - this.#met.size)));
  }

  /** Marks names as known: they cause no further event. */
  markKnown(names: readonly string[]): void {
    for (const name of names) this.#met.add(name);
    this.#changed ||= names.length > 0;
  }

  /** Returns a snapshot with current status names. */
  withCurrentNames(snapshot: Snapshot): Snapshot {
    if (this.#renamed.size === 0) return snapshot;
    const { list, detail } = snapshot;
    return {
      ...snapshot,
      list: list && this.#renameIn(list),
      detail: detail && {
        ...this.#renameIn(detail),
        lines: detail.lines.map((line) => this.#renameIn(line)),
      },
    };
  }

  #renameIn<T extends { readonly status: string | null }>(of: T): T {
    return { ...of, status: of.status === null ? null : (this.#renamed.get(of.status) ?? of.status) };
  }

  /** Returns the Head attributes changed since the last call. `undefined` if nothing changed. */
  takeChanges(): Attributes | undefined {
    if (!this.#changed) return undefined;
    this.#changed = false;
    return {
      statusNames: [...this.#met],
      statusLookup: [...this.#lookup].slice(0, MAX_NAMES).map((entry) => JSON.stringify(entry)),
      renamedStatuses: [...this.#renamed].map((entry) => JSON.stringify(entry)),
    };
  }
}

/**
 * Reads the upstream status lookup. A failure is harmless, because a status name is readable without the
 * lookup.
 */
export async function readStatusLookup(
  statuses: StatusNames,
  client: OrderingClient,
  signal?: AbortSignal,
): Promise<void> {
  try {
    statuses.applyLookup((await client.jobStatuses(signal)).body);
  } catch {
    // The next unknown status name triggers another read.
  }
}
