/** Writes of one poll. Each is conditional on the fence and raises it. */
import type { EventDraft } from '../events/event.ts';
import type { Head } from '../log/head.ts';
import type { EventLog } from '../log/log.ts';
import { type AccountRef, keys } from '../storage/schema.ts';
import { RELAXED, type Table, type Value, type Write } from '../storage/table.ts';

/** Superseded: a newer poll committed first. */
export class Fenced extends Error {}

export type Attributes = { readonly [attribute: string]: Value | undefined };

/** One transaction of a poll. `status` and `head`: changed attributes of Status and Head. */
export interface Transaction {
  readonly events?: readonly EventDraft[];
  /** Whether it must survive a power failure even without events. */
  readonly durable?: boolean;
  readonly writes?: readonly Write[];
  readonly status?: Attributes;
  readonly head?: Attributes | undefined;
}

interface Options {
  readonly table: Table;
  readonly log: EventLog;
  readonly ref: AccountRef;
  readonly pollId: string;
  readonly projectionVersion: number;
  /** Revision of the Status that the poll read. */
  readonly revision: number;
  readonly head: Head;
}

/** Writes the results of one poll. Every method throws {@link Fenced} if a newer poll committed first. */
export class PollWriter {
  readonly #options: Options;
  #revision: number;
  #head: Head;
  #events = 0;

  constructor(options: Options) {
    this.#options = options;
    this.#revision = options.revision;
    this.#head = options.head;
  }

  /** Head of the log after the last commit. */
  get head(): Head {
    return this.#head;
  }

  /** Number of committed events. */
  get events(): number {
    return this.#events;
  }

  /** Commits a transaction to the log. */
  async commit({ events = [], durable, writes = [], status = {}, head }: Transaction): Promise<void> {
    const { log, ref, pollId, projectionVersion } = this.#options;
    // After the first write of newer code, older code must not read the account.
    const raised = this.#head.attributes.projectionVersion !== projectionVersion;
    const headAttributes = raised ? { ...head, projectionVersion } : head;
    const outcome = await log.commit(ref, {
      revision: this.#revision,
      head: this.#head,
      events,
      durable,
      writes,
      statusAttributes: { ...status, pollId },
      ...(headAttributes === undefined ? {} : { headAttributes }),
    });
    if (outcome.kind === 'fenced') throw new Fenced();
    this.#revision = outcome.revision;
    this.#head = outcome.head;
    this.#events += events.length;
  }

  /** Writes only the Status. */
  async writeStatus(set: Attributes): Promise<void> {
    const { table, ref, pollId } = this.#options;
    const written = await table.write(
      {
        update: keys.status(ref),
        set: { ...set, revision: this.#revision + 1, pollId },
        when: [['revision', '=', this.#revision]],
      },
      RELAXED,
    );
    if (!written.done) throw new Fenced();
  }
}
