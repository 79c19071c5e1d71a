/**
 * The lease of a sink: the exclusive right to drain it. Fenced: each holder has a higher token than the
 * previous one, and its writes about the sink fail once a higher token exists.
 *
 * What is NOT guaranteed: that a holder that lost its lease stops at once. It can deliver the same events as
 * its successor.
 */
import { keys } from '../storage/schema.ts';
import type { Clause, Item, Table, Value, Write } from '../storage/table.ts';
import { isReady } from './health.ts';
import { type Sink, type SinkRecord, toSink } from './sink.ts';

/** Duration of a lease (ms) if its holder crashes. */
const LEASE_MS = 60_000;
/**
 * Age (ms) at which a lease is renewed. An attempt takes up to 15 s, so there are several occasions before it
 * expires.
 */
const RENEW_AFTER_MS = 15_000;

/** A lease that is held. */
export class Lease {
  readonly token: number;
  readonly #table: Table;
  readonly #key: { readonly pk: string; readonly sk: string };
  #takenAt: number;
  #lost = false;

  constructor(
    table: Table,
    sink: { readonly region: string; readonly id: string },
    token: number,
    takenAt: number,
  ) {
    this.#table = table;
    this.#key = keys.sink(sink.region, sink.id);
    this.token = token;
    this.#takenAt = takenAt;
  }

  /** Whether another process is known to hold it. */
  get isLost(): boolean {
    return this.#lost;
  }

  /** The condition on the sink's item that no other process has taken the lease. */
  get held(): Clause {
    return ['leaseToken', '=', this.token];
  }

  /** Returns a write on the sink that makes its transaction conditional on the lease. */
  whileHeld(set: { readonly [attribute: string]: Value } = { leaseToken: this.token }): Write {
    return { update: this.#key, set, when: [this.held] };
  }

  /** Reports whether it is time to {@link renew}. */
  isAging(now: number): boolean {
    return now >= this.#takenAt + RENEW_AFTER_MS;
  }

  /** Extends the lease. Returns the sink's current item, or `undefined` if the lease is lost. */
  async renew(now: number): Promise<Item | undefined> {
    this.#takenAt = now;
    return this.note({ leaseUntil: now + LEASE_MS });
  }

  /** Marks the lease as lost, after a write conditional on {@link held} failed. */
  lose(): void {
    this.#lost = true;
  }

  /** Writes attributes of the sink and returns its item; `undefined` if the lease is lost. */
  async note(set: { readonly [attribute: string]: Value | undefined }): Promise<Item | undefined> {
    const outcome = await this.#table.write({ update: this.#key, set, when: [this.held] });
    if (outcome.done) return outcome.item;
    this.#lost = true;
    return undefined;
  }

  /** Releases the lease, together with new attributes of the sink. */
  async release(set: { readonly [attribute: string]: Value | undefined }): Promise<void> {
    await this.note({ ...set, leaseUntil: undefined, leaseOwner: undefined });
  }
}

/**
 * Takes the lease of a sink and returns it with the current sink. `undefined` while another drain holds it,
 * or if the sink cannot be drained now.
 */
export async function takeLease(
  table: Table,
  region: string,
  id: string,
  now: number,
  newId: () => string,
): Promise<{ readonly lease: Lease; readonly sink: Sink; readonly item: Item } | undefined> {
  const key = keys.sink(region, id);
  const known = await table.get(key);
  if (known?.kind === undefined || !isReady(toSink(known), now)) return undefined;
  const before = typeof known.leaseToken === 'number' ? known.leaseToken : undefined;
  // Using the clock prevents a sink that was deleted and re-created from issuing a token twice.
  const token = Math.max(now, (before ?? 0) + 1);
  const owner = newId();
  const outcome = await table.write({
    update: key,
    set: { leaseUntil: now + LEASE_MS, leaseToken: token, leaseOwner: owner },
    when: [
      ['kind', 'present'],
      ['leaseUntil', 'absent or <=', now],
      before === undefined ? ['leaseToken', 'absent'] : ['leaseToken', '=', before],
    ],
  });
  // A retry after a lost response finds its own lease.
  const mine = outcome.done || outcome.item?.leaseOwner === owner;
  if (!mine || !outcome.item) return undefined;
  const sink = toSink(outcome.item);
  return { lease: new Lease(table, sink, token, now), sink, item: outcome.item };
}

/**
 * Ends the current holder's lease. Its fencing token stays the highest, so a holder that is still running is
 * fenced off.
 */
export async function breakLease(table: Table, sink: Pick<SinkRecord, 'region' | 'id'>): Promise<void> {
  await table.write({
    update: keys.sink(sink.region, sink.id),
    set: { leaseUntil: undefined, leaseOwner: undefined },
  });
}
