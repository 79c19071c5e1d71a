/**
 * The lease of a sink, or of a part of a divided sink: the exclusive right to drain it. Fenced: each holder
 * has a higher token than the previous one, and its writes about the sink fail once a higher token exists.
 *
 * What is NOT guaranteed: that a holder that lost its lease stops at once. It can deliver the same events as
 * its successor.
 */
import { getDrainNames, getSinkId, isPart, keys } from '../storage/schema.ts';
import {
  type Clause,
  type Item,
  type Key,
  RELAXED,
  type Table,
  type Value,
  type Write,
} from '../storage/table.ts';
import { hasElapsed, MAX_SKEW_MS } from './clock.ts';
import { healthAttributes, isReady, toHealth } from './health.ts';
import { type Sink, type SinkRecord, toSink, withStateOfPart } from './sink.ts';

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
  /** The name under which the sink is drained: its id, or that of a part. */
  readonly name: string;
  /** The item with the lease and the health. */
  readonly key: Key;
  readonly #table: Table;
  #takenAt: number;
  #lost = false;

  constructor(table: Table, region: string, name: string, token: number, takenAt: number) {
    this.#table = table;
    this.name = name;
    this.key = keys.sinkState(region, name);
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
  toGuardWrite(set: { readonly [attribute: string]: Value } = { leaseToken: this.token }): Write {
    return { update: this.key, set, when: [this.held] };
  }

  /** Reports whether it is time to {@link renew}. */
  isAging(now: number): boolean {
    return hasElapsed(this.#takenAt, RENEW_AFTER_MS, now);
  }

  /** Extends the lease. */
  async renew(now: number): Promise<void> {
    this.#takenAt = now;
    await this.note({ leaseUntil: now + LEASE_MS });
  }

  /** Marks the lease as lost, after a write conditional on {@link held} failed. */
  lose(): void {
    this.#lost = true;
  }

  /** Writes attributes of the sink, unless the lease is lost. */
  async note(set: { readonly [attribute: string]: Value | undefined }): Promise<void> {
    const { done } = await this.#table.write({ update: this.key, set, when: [this.held] }, RELAXED);
    if (!done) this.#lost = true;
  }

  /** Releases the lease, together with new attributes of the sink. */
  async release(set: { readonly [attribute: string]: Value | undefined }): Promise<void> {
    await this.note({ ...set, leaseUntil: undefined, leaseOwner: undefined });
  }
}

/**
 * Takes the lease of a drain name and returns it with the current sink. `undefined` while another drain holds
 * it, or if the sink cannot be drained now.
 */
export async function acquireLease(
  table: Table,
  region: string,
  name: string,
  now: number,
  newId: () => string,
): Promise<{ readonly lease: Lease; readonly sink: Sink; readonly item: Item } | undefined> {
  const divided = isPart(name);
  const key = keys.sinkState(region, name);
  const [known, part] = await Promise.all([
    table.get(keys.sink(region, getSinkId(name))),
    divided ? table.get(key) : undefined,
  ]);
  if (known?.kind === undefined) return undefined;
  const toState = (state: Item | undefined) => (divided ? withStateOfPart(known, state) : (state ?? known));
  const current = toState(part);
  if (!isReady(toSink(current), now)) return undefined;
  // Also that of the whole sink: version 0.1.0 did not divide sinks, and one of its drains may still run.
  if (isHeld(known, now) || isHeld(part, now)) return undefined;
  const before = typeof current.leaseToken === 'number' ? current.leaseToken : undefined;
  // Using the clock prevents a sink that was deleted and re-created from issuing a token twice.
  const token = Math.max(now, (before ?? 0) + 1);
  const owner = newId();
  const lease = { leaseUntil: now + LEASE_MS, leaseToken: token, leaseOwner: owner };
  const outcome = await table.write(
    {
      update: key,
      // The first drain of a part stores the health with which the part starts.
      set: divided && !part ? { ...lease, ...getStateAttributes(current) } : lease,
      when: [
        ...(divided ? [] : [['kind', 'present'] as const]),
        // Not renewed since it was read.
        ['leaseUntil', 'absent or =', Number((divided ? part : known)?.leaseUntil ?? 0)],
        before === undefined ? ['leaseToken', 'absent'] : ['leaseToken', '=', before],
      ],
    },
    RELAXED,
  );
  // A retry after a lost response finds its own lease.
  const mine = outcome.done || outcome.item?.leaseOwner === owner;
  if (!mine || !outcome.item) return undefined;
  const item = toState(outcome.item);
  return { lease: new Lease(table, region, name, token, now), sink: toSink(item), item };
}

/** Reports whether the lease of an item has not expired. One that ends too late was taken before the clock was set back. */
function isHeld(item: Item | undefined, now: number): boolean {
  const leaseUntil = Number(item?.leaseUntil ?? 0);
  return leaseUntil > now && leaseUntil <= now + LEASE_MS + MAX_SKEW_MS;
}

function getStateAttributes(item: Item): { readonly [attribute: string]: Value | undefined } {
  return { ...healthAttributes(toHealth(item)), parking: item.parking };
}

/**
 * Ends the current holder's lease, of all parts. Its fencing token stays the highest, so a holder that is still
 * running is fenced off.
 */
export async function breakLease(
  table: Table,
  { region, id }: Pick<SinkRecord, 'region' | 'id'>,
): Promise<void> {
  const states = new Set([id, ...getDrainNames(id)]);
  const stored = await table.getMany([...states].map((name) => keys.sinkState(region, name)));
  const leased = stored.filter(({ leaseUntil }) => leaseUntil !== undefined);
  await Promise.all(
    leased.map(({ pk, sk }) =>
      table.write({
        update: { pk, sk },
        set: { leaseUntil: undefined, leaseOwner: undefined },
        when: [['leaseToken', 'present']],
      }),
    ),
  );
}
