/**
 * The status names of an account (rule 4). The code gives no name a meaning. A new name causes an event. A
 * name that replaced another one in the upstream lookup is the same status: otherwise, a renaming would
 * look like a change of every job.
 *
 * While a renaming spreads, some answers still contain the former name. So both sides of each comparison get
 * the current name. The lookup decides whether the former name belongs to another status meanwhile.
 */
import { hash } from 'node:crypto';
import type { OrderingClient } from '../ordering/client.ts';
import type { JobStatus } from '../ordering/schemas.ts';
import type { Value } from '../storage/table.ts';
import type { Snapshot } from './snapshot.ts';
import { MAX_BYTES, toName } from './texts.ts';
import type { DetailView, ListView } from './views.ts';

/**
 * Maximum number of names, and of renamings, stored per account. They are optional data, and Head must stay
 * small.
 */
const MAX_NAMES = 500;
const MAX_RENAMINGS = 100;

const HOUR_MS = 3_600_000;
/** Interval between reads of the lookup, and after a failure or an empty answer (ms). */
const READ_EVERY_MS = 12 * HOUR_MS;
const RETRY_MS = 900_000;
/** Time after the last confirmation by the lookup for which a renaming applies (ms). */
const RENAMING_MS = 24 * HOUR_MS;

type Attributes = { readonly [attribute: string]: Value | undefined };

/** Renaming of a status. Times are epoch ms. */
interface Renaming {
  readonly name: string;
  /** Time at which the lookup last had the current name and not the former one. */
  readonly confirmedAt: number;
  /** Time at which the former name was another status. `null`: not observed. */
  readonly endedAt: number | null;
}

/** Status names stored in Head, and names learned in a poll. */
export class StatusNames {
  readonly #now: number;
  /** Names that occurred in an answer or in the lookup. */
  readonly #met: Set<string>;
  /** Last lookup read: name by id. */
  #lookup: ReadonlyMap<number, string>;
  /** Renamings by former name. */
  readonly #renamed: Map<string, Renaming>;
  /** Time at which the lookup is due to be read again (epoch ms). */
  #lookupDueAt: number;
  /** Fingerprint of the listed jobs with a former name, when the lookup was last read because of them. */
  #formerPrint: string | null;
  #changed = false;
  #reading: Promise<boolean> | undefined;

  /** `now`: start of the poll (epoch ms). */
  constructor(head: Attributes, now: number) {
    const texts = (name: string): readonly string[] => (head[name] as readonly string[] | undefined) ?? [];
    this.#now = now;
    const dueAt = Number(head.statusLookupDueAt ?? 0);
    // A later time is from before the clock was set back.
    this.#lookupDueAt = dueAt > now + READ_EVERY_MS ? 0 : dueAt;
    this.#formerPrint = typeof head.formerStatusPrint === 'string' ? head.formerStatusPrint : null;
    this.#met = new Set(texts('statusNames'));
    this.#lookup = new Map(texts('statusLookup').map((text) => JSON.parse(text) as [number, string]));
    this.#renamed = new Map(
      texts('renamedStatuses').map((text) => {
        const [former, name, confirmedAt, endedAt] = JSON.parse(text) as StoredRenaming;
        return [former, { name, confirmedAt, endedAt }];
      }),
    );
  }

  /** Returns whether a name causes an event: it never occurred before, and there is room to store it. */
  isNew(name: string): boolean {
    return !this.#met.has(name) && this.#met.size < MAX_NAMES;
  }

  /** Returns whether an answer contains the former name of a renamed status. */
  isFormer(name: string | null): boolean {
    return name !== null && this.#toCurrent(name, this.#now) !== name;
  }

  /** Returns the current name of a status. A former name is replaced until it belongs to another status. */
  toCurrentName(name: string): string {
    const renaming = this.#renamed.get(name);
    return renaming?.endedAt === null ? renaming.name : name;
  }

  /** Returns whether a configured name refers to a status: it is its current name, or a former one that refers to no other status. */
  isSame(configured: string, status: string): boolean {
    const renaming = this.#renamed.get(configured);
    return configured === status || (renaming?.endedAt === null && renaming.name === status);
  }

  /** Returns the former name of a status, or `undefined`. */
  previousName(name: string): string | undefined {
    return [...this.#renamed].find(([, today]) => today.name === name && today.endedAt === null)?.[0];
  }

  /**
   * Applies the lookup. A status whose name differs from before was renamed, unless one of the two names
   * belongs to another status.
   */
  applyLookup(entries: readonly JobStatus[]): void {
    const before = this.#lookup;
    const today = new Map(
      entries.flatMap(({ id, name: given }) => {
        // Like the statuses of jobs.
        const name = toName(given, MAX_BYTES.status);
        return id !== null && name !== null ? [[id, name]] : [];
      }),
    );
    const names = new Set(today.values());
    const formerNames = new Set(before.values());
    for (const [id, former] of before) {
      const name = today.get(id);
      if (name === undefined || name === former || names.has(former) || formerNames.has(name)) continue;
      for (const [older, its] of this.#renamed)
        if (its.name === former) this.#renamed.set(older, { ...its, name });
      this.#renamed.set(former, { name, confirmedAt: this.#now, endedAt: null });
      // Renamed back to a former name.
      this.#renamed.delete(name);
      this.#changed = true;
    }
    for (const [former, renaming] of this.#renamed) {
      if (renaming.endedAt === null) this.#confirm(former, renaming, names);
    }
    for (const oldest of [...this.#renamed.keys()].slice(0, -MAX_RENAMINGS)) this.#renamed.delete(oldest);
    // An omitted status keeps its name, so that its renaming is found later.
    const omitted = [...before].filter(([id, name]) => !today.has(id) && !names.has(name));
    const lookup = new Map([...today, ...omitted]);
    this.#changed ||= JSON.stringify([...lookup]) !== JSON.stringify([...before]);
    this.#lookup = lookup;
  }

  #confirm(former: string, renaming: Renaming, names: ReadonlySet<string>): void {
    // Written at most once an hour.
    const recent = this.#now - renaming.confirmedAt < HOUR_MS;
    if (names.has(former)) this.#renamed.set(former, { ...renaming, endedAt: this.#now });
    else if (names.has(renaming.name) && !recent)
      this.#renamed.set(former, { ...renaming, confirmedAt: this.#now });
    else return;
    this.#changed = true;
  }

  /** Marks every name in the lookup as known, except the given ones. */
  markLookupKnown(except: readonly string[] = []): void {
    const names = [...this.#lookup.values()].filter((name) => !except.includes(name));
    this.markKnown(names.slice(0, Math.max(0, MAX_NAMES - this.#met.size)));
  }

  /** Marks names as known: they cause no further event. */
  markKnown(names: readonly string[]): void {
    for (const name of names) this.#met.add(name);
    this.#changed ||= names.length > 0;
  }

  /** Returns a view from an answer with current status names: the same object if it contains no other ones. */
  withCurrentName(view: ListView): ListView {
    return this.isFormer(view.status) ? this.#renameIn(view, this.#now) : view;
  }

  /** Returns a detail from an answer with current status names. */
  withCurrentNamesIn(detail: DetailView): DetailView {
    return this.#renameInDetail(detail, this.#now);
  }

  /** Returns a snapshot with current status names. */
  withCurrentNames(snapshot: Snapshot): Snapshot {
    if (this.#renamed.size === 0) return snapshot;
    const { list, listAt, detail, detailAt, path, ahead, stay } = snapshot;
    const later = ahead?.status;
    const rename = (name: string | null) => name && this.#toCurrent(name, later?.at ?? 0);
    return {
      ...snapshot,
      ...(later && {
        ahead: {
          ...ahead,
          status: { ...later, before: rename(later.before), values: later.values.map(rename) },
        },
      }),
      ...(stay?.attended && { stay: { ...stay, attended: this.toCurrentName(stay.attended) } }),
      ...(path && { path: path.map(([name, from, to]) => [this.#toCurrent(name, to), from, to] as const) }),
      list: list && this.#renameIn(list, listAt),
      detail: detail && this.#renameInDetail(detail, detailAt),
    };
  }

  #renameInDetail(detail: DetailView, at: number): DetailView {
    if (this.#renamed.size === 0) return detail;
    return { ...this.#renameIn(detail, at), lines: detail.lines.map((line) => this.#renameIn(line, at)) };
  }

  #renameIn<T extends { readonly status: string | null }>(of: T, at: number): T {
    return { ...of, status: of.status === null ? null : this.#toCurrent(of.status, at) };
  }

  /** Returns the current name of a status that had the given name at a time (epoch ms). */
  #toCurrent(name: string, at: number): string {
    const renaming = this.#renamed.get(name);
    if (!renaming) return name;
    const { confirmedAt, endedAt } = renaming;
    return at < Math.min(endedAt ?? Number.POSITIVE_INFINITY, confirmedAt + RENAMING_MS)
      ? renaming.name
      : name;
  }

  /**
   * Reads the lookup after a crawl if that is worthwhile: it is due, changed jobs have `unknown` names, or
   * other listed jobs than before have a former name (`former`: number and name of each).
   */
  async readAfterCrawl(
    client: OrderingClient,
    unknown: readonly string[],
    former: readonly string[],
    signal: AbortSignal,
  ): Promise<void> {
    const print = former.length === 0 ? null : hash('sha256', [...former].sort().join('\n')).slice(0, 12);
    const isFirst = this.#lookup.size === 0;
    const isNeeded = unknown.length > 0 || (print !== null && print !== this.#formerPrint);
    if (isNeeded || this.#now >= this.#lookupDueAt) {
      if (!(await this.read(client, unknown, signal))) return;
      if (isFirst) this.markLookupKnown(unknown);
    }
    this.#changed ||= print !== this.#formerPrint;
    this.#formerPrint = print;
  }

  /**
   * Reads the lookup if a detail contains an unknown or a former name. Without a stored lookup, a name
   * cannot be recognized as new.
   */
  async readForDetail(client: OrderingClient, detail: DetailView, signal: AbortSignal): Promise<void> {
    const names = [detail, ...detail.lines].flatMap(({ status }) => (status === null ? [] : [status]));
    const unclear = names.filter((name) => this.isNew(name) || this.isFormer(name));
    if (unclear.length > 0 && this.#lookup.size > 0) await this.read(client, unclear, signal);
  }

  /**
   * Reads the lookup, at most once per poll. Returns whether that succeeded. A failure is harmless, because a
   * status name is readable without the lookup. If the lookup lacks one of the given names, it may be outdated,
   * and is read again soon.
   */
  read(client: OrderingClient, names: readonly string[], signal?: AbortSignal): Promise<boolean> {
    this.#reading ??= this.#read(client, names, signal);
    return this.#reading;
  }

  async #read(client: OrderingClient, names: readonly string[], signal?: AbortSignal): Promise<boolean> {
    const entries = await client.jobStatuses(signal).then(
      ({ body }) => body,
      () => [],
    );
    if (entries.length > 0) this.applyLookup(entries);
    const listed = new Set(this.#lookup.values());
    const isWhole = entries.length > 0 && names.every((name) => listed.has(name));
    this.#lookupDueAt = this.#now + (isWhole ? READ_EVERY_MS : RETRY_MS);
    this.#changed = true;
    return entries.length > 0;
  }

  /** Returns the Head attributes changed since the last call. `undefined` if nothing changed. */
  takeChanges(): Attributes | undefined {
    if (!this.#changed) return undefined;
    this.#changed = false;
    return {
      statusNames: [...this.#met],
      statusLookup: [...this.#lookup].slice(0, MAX_NAMES).map((entry) => JSON.stringify(entry)),
      renamedStatuses: [...this.#renamed].map(([former, { name, confirmedAt, endedAt }]) =>
        JSON.stringify([former, name, confirmedAt, endedAt] satisfies StoredRenaming),
      ),
      statusLookupDueAt: this.#lookupDueAt,
      formerStatusPrint: this.#formerPrint,
    };
  }
}

type StoredRenaming = [former: string, name: string, confirmedAt: number, endedAt: number | null];
