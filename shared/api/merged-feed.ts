/**
 * One stream of the events of all accounts and regions of this process, merged from their logs. It stands in until the cell feed
 * gives all of them one sequence; then only the cursor becomes shorter.
 *
 * Until then a cursor has to say where the stream stands in each log: `{ "<region>/<account>": "<epoch>.<sequence>" }`,
 * deflated, in base64url. That is 15 to 40 characters per account with every event, so the number of accounts is bounded:
 * a longer cursor would not come back in a header. Events of one account keep their order; between accounts there is none.
 */
import { deflateRawSync, inflateRawSync } from 'node:zlib';
import pLimit from 'p-limit';
import * as z from 'zod';
import { typeMatches } from '../events/event.ts';
import { parseCursor, toHead } from '../log/log.ts';
import { type AccountRef, cellLog, keys } from '../table/schema.ts';
import { listAccounts } from '../tracking/accounts.ts';
import {
  cursorOf,
  type FeedDeps,
  type Frame,
  type Gone,
  locate,
  locateStream,
  type Place,
  serverSentEvents,
  watchOf,
} from './feed.ts';

/** What the merged stream needs besides. */
export interface MergedDeps extends FeedDeps {
  /** The regions whose accounts are merged. */
  readonly regions: readonly string[];
}

/** A place in the log of each account, by `<region>/<account>`, and in the cells' own. */
export type Places = ReadonlyMap<string, Place>;

/** Accounts one stream follows at most. */
const MAX_MERGED_ACCOUNTS = 1000;
/** A cursor has to fit into a request header: Node takes 16 KB of headers in all. */
const MAX_CURSOR_CHARACTERS = 12_000;
/** What a cursor may unfold to: far more than an honest one does. */
const MAX_UNFOLDED_BYTES = 500_000;
const EVENTS_AT_ONCE = 100;
/** How often accounts are listed anew, for those registered by other processes. */
const RELIST_MS = 30_000;
/** Without hints, looking for growth costs a read per account: so many milliseconds pass for each. */
const RECHECK_MS_PER_ACCOUNT = 20;
/** Reads under way at the same time while a stream is opened. */
const READS_AT_ONCE = 16;

/**
 * Where a merged stream begins: at a cursor, or without one at the heads. An account that the cursor doesn't know was
 * registered since, so all its events are new. `crowded`: there are more accounts than one stream can carry.
 */
export async function locateMerged(
  deps: MergedDeps,
  cursor: Places | undefined,
): Promise<{ readonly kind: 'places'; readonly places: Places } | { readonly kind: 'crowded' } | Gone> {
  const accounts = await listMerged(deps);
  if (!accounts) return { kind: 'crowded' };
  const heads = await readHeads(deps, accounts);
  const limit = pLimit(READS_AT_ONCE);
  const places = new Map<string, Place>();
  let gone = false;
  const found = await Promise.all(
    accounts.map((ref) =>
      limit(async (): Promise<[string, Place] | undefined> => {
        const key = keyOf(ref);
        const head = heads.get(key);
        if (!head) return undefined;
        if (!cursor) return [key, head];
        const given = cursor.get(key);
        // At its head there is nothing to look up, which is how most accounts stand when a stream resumes.
        if (given && given.epoch === head.epoch && given.sequence === head.sequence) return [key, given];
        const place = await (given
          ? locateStream(deps.log, ref, given)
          : locate(deps.log, ref, undefined, 'earliest'));
        if (!place) return undefined;
        if (!('kind' in place)) return [key, place];
        gone = true;
        const from = toPlace(place.restored ?? place.earliest);
        return from && [key, from];
      }),
    ),
  );
  for (const one of found) if (one) places.set(...one);
  if (encodePlaces(places).length > MAX_CURSOR_CHARACTERS) return { kind: 'crowded' };
  // Only the logs that can't be read from the cursor begin anew; the others go on where they were.
  if (gone) return { kind: 'gone', earliest: encodePlaces(places), head: encodePlaces(heads) };
  return { kind: 'places', places };
}

/** The events of all accounts after these places, as server-sent events. It ends as the stream of one account does. */
export function followMerged(
  deps: MergedDeps,
  from: Places,
  types: readonly string[] | undefined,
  abort: AbortSignal,
): AsyncGenerator<string> {
  return serverSentEvents(deps, abort, () => {
    const watch = watchOf(deps, 'any');
    const places = new Map(from);
    /** Accounts whose log may hold more than was read, first come first served. */
    const behind = new Map<string, AccountRef>();
    let refs = new Map<string, AccountRef>();
    let listedAt = Number.NEGATIVE_INFINITY;
    let lookedAt = Number.NEGATIVE_INFINITY;

    function recheckMs(): number {
      return Math.max(deps.pace.recheckMs, deps.growth ? 0 : refs.size * RECHECK_MS_PER_ACCOUNT);
    }

    /** Lists the accounts and takes in the new ones; false when there are too many now. */
    async function relist(): Promise<boolean> {
      const accounts = await listMerged(deps);
      if (!accounts) return false;
      refs = new Map(accounts.map((ref) => [keyOf(ref), ref]));
      for (const [key, ref] of refs) {
        if (places.has(key)) continue;
        const place = await locate(deps.log, ref, undefined, 'earliest');
        if (place && !('kind' in place)) {
          places.set(key, place);
          behind.set(key, ref);
        }
      }
      listedAt = deps.now();
      return encodePlaces(places).length <= MAX_CURSOR_CHARACTERS;
    }

    /** Finds the logs that grew by looking at all heads; what other processes write gives no hint here. */
    async function look(): Promise<void> {
      lookedAt = deps.now();
      for (const [key, head] of await readHeads(deps, [...refs.values()])) {
        const place = places.get(key);
        const ref = refs.get(key);
        const moved = place && (place.epoch !== head.epoch || place.sequence !== head.sequence);
        if (ref && moved) behind.set(key, ref);
      }
    }

    return {
      cursor: () => encodePlaces(places),
      async read() {
        if (deps.now() >= listedAt + RELIST_MS && !(await relist())) return 'over';
        if (deps.now() >= lookedAt + recheckMs()) await look();
        const [next] = behind;
        if (!next) return { frames: [], more: false };
        const [key, ref] = next;
        behind.delete(key);
        const place = places.get(key);
        if (!place) return { frames: [], more: behind.size > 0 };
        const outcome = await deps.log.read(ref, place.sequence, EVENTS_AT_ONCE);
        if (outcome?.kind !== 'events' || outcome.head.epoch !== place.epoch) return 'over';
        const frames: Frame[] = [];
        for (const event of outcome.events) {
          places.set(key, { epoch: place.epoch, sequence: event.sequence });
          if (!types || typeMatches(event.type, types)) frames.push({ id: encodePlaces(places), event });
        }
        // To the end of the line, so that one long log doesn't hold up the others.
        if (outcome.events.length > 0) behind.set(key, ref);
        return { frames, more: behind.size > 0 };
      },
      async wait(ms) {
        for (const ref of await watch.next(Math.min(ms, recheckMs()), abort)) {
          const key = keyOf(ref);
          if (refs.has(key) && places.has(key)) behind.set(key, ref);
          else if (deps.regions.includes(ref.region)) listedAt = Number.NEGATIVE_INFINITY;
        }
      },
      [Symbol.dispose]: () => watch[Symbol.dispose](),
    };
  });
}

/** Places as a cursor. */
export function encodePlaces(places: Places): string {
  const cursors = Object.fromEntries([...places].map(([key, place]) => [key, cursorOf(place)]));
  return deflateRawSync(JSON.stringify(cursors)).toString('base64url');
}

/** Reads what {@link encodePlaces} made; `undefined` for anything else. */
export function decodePlaces(text: string): Places | undefined {
  if (!/^[A-Za-z0-9_-]+$/.test(text) || text.length > MAX_CURSOR_CHARACTERS) return undefined;
  const cursors = z.record(z.string(), z.string()).safeParse(unfold(text));
  if (!cursors.success) return undefined;
  const places = new Map<string, Place>();
  for (const [key, cursor] of Object.entries(cursors.data)) {
    const place = toPlace(cursor);
    if (!place) return undefined;
    places.set(key, place);
  }
  return places;
}

function unfold(text: string): unknown {
  try {
    const unfolded = inflateRawSync(Buffer.from(text, 'base64url'), { maxOutputLength: MAX_UNFOLDED_BYTES });
    return JSON.parse(unfolded.toString());
  } catch {
    return undefined;
  }
}

function toPlace(cursor: string): Place | undefined {
  const parsed = parseCursor(cursor);
  return parsed?.epoch === undefined ? undefined : { epoch: parsed.epoch, sequence: parsed.sequence };
}

/**
 * The logs of all regions, or `undefined` when there are too many accounts: to leave some out would be to hide their events.
 */
async function listMerged(deps: MergedDeps): Promise<AccountRef[] | undefined> {
  const lists = await Promise.all(
    deps.regions.map((region) => listAccounts(deps.table, region, MAX_MERGED_ACCOUNTS + 1)),
  );
  const accounts = lists.flat();
  return accounts.length > MAX_MERGED_ACCOUNTS ? undefined : [...accounts, ...deps.regions.map(cellLog)];
}

/** The heads of those accounts that have a log, by `<region>/<account>`. */
async function readHeads(deps: MergedDeps, refs: readonly AccountRef[]): Promise<Map<string, Place>> {
  const byPartition = new Map(refs.map((ref) => [keys.head(ref).pk, keyOf(ref)]));
  const heads = new Map<string, Place>();
  for (const item of await deps.table.getMany(refs.map(keys.head))) {
    const key = byPartition.get(item.pk);
    const { epoch, sequence } = toHead(item);
    if (key !== undefined) heads.set(key, { epoch, sequence });
  }
  return heads;
}

function keyOf(ref: AccountRef): string {
  return `${ref.region}/${ref.account}`;
}
