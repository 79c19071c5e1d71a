/**
 * The status names of an account (rule 4). No name means anything to the code; but one that nobody has met before is worth
 * an event, and one that the service's lookup gave another name is still the same status: else a renaming would look as if
 * every job had moved.
 */
import type { JobStatus } from '../ordering/schemas.ts';
import type { Value } from '../table/table.ts';
import type { Snapshot } from './snapshot.ts';

/** Names, and renamings, kept per account at most: they are a courtesy, and Head stays small. */
const MAX_NAMES = 500;
const MAX_RENAMINGS = 100;

type Attributes = { readonly [attribute: string]: Value | undefined };

/** What Head says of status names, and what a poll learns of them. */
export class StatusNames {
  /** Met in an answer or in the lookup. */
  readonly #met: Set<string>;
  /** The lookup as last read: name by id. */
  #lookup: ReadonlyMap<number, string>;
  /** Former name → today's. */
  readonly #renamed: Map<string, string>;
  #changed = false;

  constructor(head: Attributes) {
    const texts = (name: string): readonly string[] => (head[name] as readonly string[] | undefined) ?? [];
    this.#met = new Set(texts('statusNames'));
    this.#lookup = new Map(texts('statusLookup').map((text) => JSON.parse(text) as [number, string]));
    this.#renamed = new Map(texts('renamedStatuses').map((text) => JSON.parse(text) as [string, string]));
  }

  /** Whether a name is worth an event: never met, and there is room for it. */
  isNew(name: string): boolean {
    return !this.#met.has(name) && this.#met.size < MAX_NAMES;
  }

  /** Whether a name may be a renamed status, so that the lookup is worth reading. */
  mayBeRenamed(name: string): boolean {
    return this.#lookup.size > 0 && (this.#renamed.has(name) || !this.#met.has(name));
  }

  /** The former name of a status. */
  formerName(name: string): string | undefined {
    return [...this.#renamed].find(([, today]) => today === name)?.[0];
  }

  /** Takes in the lookup. A status with another name than before was renamed, unless its names mean something else by now. */
  learn(entries: readonly JobStatus[]): void {
    const before = this.#lookup;
    const today = new Map(entries.flatMap(({ id, name }) => (id !== null && name ? [[id, name]] : [])));
    const names = new Set(today.values());
    const formerNames = new Set(before.values());
    for (const [id, former] of before) {
      const name = today.get(id);
      if (name === undefined || name === former || names.has(former) || formerNames.has(name)) continue;
      for (const [older, its] of this.#renamed) if (its === former) this.#renamed.set(older, name);
      this.#renamed.set(former, name);
      // Back to what it was once called.
      this.#renamed.delete(name);
    }
    for (const oldest of [...this.#renamed.keys()].slice(0, -MAX_RENAMINGS)) this.#renamed.delete(oldest);
    this.#lookup = today;
    this.#changed = true;
  }

  /** Every name of the lookup counts as met. */
  meetLookup(): void {
    this.meet([...this.#lookup.values()].slice(0, Math.max(0, MAX_NAMES - this.#met.size)));
  }

  /** These names are met: they are no news any more. */
  meet(names: readonly string[]): void {
    for (const name of names) this.#met.add(name);
    this.#changed ||= names.length > 0;
  }

  /** A snapshot in today's names. */
  inTodaysNames(snapshot: Snapshot): Snapshot {
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

  /** What Head has to keep since the last call; undefined when nothing is new. */
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
