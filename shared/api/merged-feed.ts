/**
 * Reading the cell feed, as clients do: all events of all accounts of a region in one sequence, page by page with a cursor,
 * waiting for what comes (long poll), or as a stream. A process that serves several regions merges their feeds.
 *
 * A cursor is a place in the feed, `<epoch>.<number>`; of several regions one for each: `nz.<epoch>.<number>~us.<epoch>.<number>`.
 * As in a log it says "everything up to here is mine", and moves past what is filtered out. Events of a region keep their
 * order, those of one account with it; between regions there is none.
 */
import { typeMatches } from '../events/types.ts';
import type { CellFeed } from '../log/cell-feed.ts';
import { findEpochEnd, formatCursor, type Head, parseCursor, resolveCursor } from '../log/head.ts';
import { feedLog } from '../storage/schema.ts';
import {
  type Crowded,
  type FeedDeps,
  type Frame,
  type GivenCursor,
  type Gone,
  PAGE_BYTES,
  type PageQuery,
  type Place,
  serverSentEvents,
  watchOf,
} from './feed.ts';
import { deafWatch, type Watch } from './growth-signal.ts';

/** What reading cell feeds needs. */
export interface CellFeedDeps extends Pick<FeedDeps, 'growth' | 'pace' | 'now'> {
  readonly feed: CellFeed;
  /** The regions this process serves; at most a handful, for a cursor has a place in each. */
  readonly regions: readonly string[];
  /** These are not all regions that the process serves: then a cursor names each of them, also when there is one or none. */
  readonly isPart?: boolean;
}

/** Cursor of a feed of no region. */
const NOWHERE = 'none.0';

/** A place in the feed of each region; of one whose feed was not started the epoch is empty. */
export type Places = ReadonlyMap<string, Place>;
/** Places as a client gave them. */
export type GivenPlaces = ReadonlyMap<string, GivenCursor>;

/** Which events of the feed somebody wants. */
export interface FeedFilter {
  /** Ids. Events of these accounts only; null: of all, and the regions' own. */
  readonly accounts: readonly string[] | null;
  /** Patterns as of {@link typeMatches}; absent: all types. */
  readonly types?: readonly string[] | undefined;
}

/** What a page of the feed is asked for with. Without `after` it begins with the earliest events there still are. */
export type FeedPageQuery = FeedFilter &
  Pick<PageQuery, 'limit' | 'waitMs' | 'mayWait'> & {
    readonly after?: GivenPlaces | undefined;
    /** Instead of `after`: from so many events before the end of each region's feed, whoever they are of. */
    readonly last?: number | undefined;
  };

/** A page of the feed. */
export interface FeedPage {
  readonly kind: 'page';
  /** The envelopes as stored, byte for byte. */
  readonly events: readonly string[];
  /** The cursor to go on with. */
  readonly next: string;
  readonly head: string;
}

/** References and events looked at for one page, whether they match or not. */
const LOOKED_AT = 4_000;
/** References looked at in one read, when most may be of other accounts; events read at once. */
const RANGES_AT_ONCE = 500;
const EVENTS_AT_ONCE = 250;
/** Events a stream reads at once. */
const STREAM_BATCH = 100;

/**
 * One page of the feed. When `waitMs` is given and nothing matches, it waits until something does, the time is over, or the
 * client is gone. A page can be empty and yet end before the head: then as much was looked at as one request may, and `next`
 * has moved.
 */
export async function readFeedPage(
  deps: CellFeedDeps,
  query: FeedPageQuery,
  abort: AbortSignal,
): Promise<FeedPage | Gone | Crowded> {
  const until = deps.now() + query.waitMs;
  // Listening begins before the first look, so that nothing falls between the two.
  using watch = query.waitMs > 0 ? watchOf(deps, deps.regions.map(feedLog)) : deafWatch();
  const start = await locateFeed(deps, query.after, query.last ?? 'earliest');
  if (start.kind === 'gone') return start;
  const places = new Map(start.places);
  const page: Scan = { events: [], bytes: 0, looked: 0, heads: new Map() };
  for (;;) {
    const isGone = await scan(deps, places, query, page);
    if (isGone && page.events.length === 0) {
      const now = await locateFeed(deps, places, 'earliest');
      // Retention moved on since the earliest was looked up, and nobody asked for what is gone now.
      if (query.after === undefined) return readFeedPage(deps, query, abort);
      if (now.kind === 'gone') return now;
    }
    const left = until - deps.now();
    if (page.events.length > 0 || page.looked >= LOOKED_AT || left <= 0 || abort.aborted) {
      const { events, heads } = page;
      return { kind: 'page', events, next: formatPlaces(deps, places), head: formatPlaces(deps, heads) };
    }
    if (query.mayWait && !(await query.mayWait())) return { kind: 'crowded' };
    await anyGrown(deps, places, watch, until, abort);
  }
}

/** What a page has so far. */
interface Scan {
  readonly events: string[];
  bytes: number;
  looked: number;
  readonly heads: Map<string, Place>;
}

/**
 * Looks through the feeds, some of each region in turn, until the page is full, their ends, or as much was looked at as may
 * be; moves the places. True when a feed can't be read on from its place.
 */
async function scan(
  deps: CellFeedDeps,
  places: Map<string, Place>,
  query: FeedPageQuery,
  page: Scan,
): Promise<boolean> {
  const behind = [...places.keys()];
  while (behind.length > 0) {
    const region = behind.shift() ?? '';
    const place = places.get(region);
    const wanted = query.limit - page.events.length;
    if (!place || wanted <= 0 || page.looked >= LOOKED_AT) break;
    const fair = Math.ceil(wanted / (behind.length + 1));
    const outcome = await deps.feed.read(region, place.sequence, {
      accounts: query.accounts,
      events: query.types ? EVENTS_AT_ONCE : Math.min(fair, EVENTS_AT_ONCE),
      ranges: RANGES_AT_ONCE,
    });
    if (!outcome) {
      page.heads.set(region, place);
      continue;
    }
    if (outcome.kind === 'gone' || isElsewhere(outcome.head, place)) return true;
    const { epoch, sequence } = outcome.head;
    page.looked += outcome.examined;
    let at = place.sequence;
    let taken = 0;
    let [isFull, isCut] = [false, false];
    for (const { number, event } of outcome.events) {
      if (!query.types || typeMatches(event.type, query.types)) {
        const bytes = page.bytes + Buffer.byteLength(event.json);
        isFull = page.events.length > 0 && bytes > PAGE_BYTES;
        isCut = isFull || taken === fair;
        if (isCut) break;
        page.events.push(event.json);
        page.bytes = bytes;
        taken += 1;
      }
      at = number;
    }
    if (!isCut) at = outcome.through;
    places.set(region, { epoch, sequence: at });
    page.heads.set(region, { epoch, sequence: Math.max(sequence, at) });
    if (isFull) break;
    if (at > place.sequence && at < sequence) behind.push(region);
  }
  for (const [region, place] of places) if (!page.heads.has(region)) page.heads.set(region, place);
  return false;
}

/** Whether a feed no longer has a place. It may have been renewed since: what was read so far is in it all the same. */
function isElsewhere(head: Head, place: Place): boolean {
  return place.epoch !== '' && resolveCursor(head, place) === undefined;
}

/** Waits until a feed has grown beyond its place, the time is over, or the client is gone. */
async function anyGrown(
  deps: CellFeedDeps,
  places: Places,
  watch: Watch,
  until: number,
  abort: AbortSignal,
): Promise<void> {
  for (;;) {
    const left = until - deps.now();
    if (left <= 0 || abort.aborted) return;
    const hints = await watch.next(Math.min(left, deps.pace.recheckMs), abort);
    if (hints.length > 0 || (await grownOf(deps, places)).length > 0) return;
  }
}

/** The regions whose feed stands elsewhere than a place: one small read for each. */
async function grownOf(deps: CellFeedDeps, places: Places): Promise<string[]> {
  const looked = await Promise.all(
    [...places].map(async ([region, place]) => {
      const head = await deps.feed.head(region);
      const moved = head && (head.epoch !== place.epoch || head.sequence !== place.sequence);
      return moved ? [region] : [];
    }),
  );
  return looked.flat();
}

/** Where reading begins without a cursor: at the earliest events, at the heads, or so many events before them. */
type Beginning = 'earliest' | 'head' | number;

/**
 * Where reading begins: at a cursor, or without one as `otherwise` has it. A region that the cursor doesn't
 * know came since, so all its events are new. Only the feeds that can't be read from the cursor begin anew with what `gone`
 * says; the others go on where they were.
 */
export async function locateFeed(
  deps: Pick<CellFeedDeps, 'feed' | 'regions' | 'isPart'>,
  cursor: GivenPlaces | undefined,
  otherwise: Beginning,
): Promise<{ readonly kind: 'places'; readonly places: Places } | Gone> {
  const { feed, regions } = deps;
  const places = new Map<string, Place>();
  const heads = new Map<string, Place>();
  const restored = new Map<string, Place>();
  let isGone = false;
  const found = await Promise.all(regions.map((region) => locateOne(feed, region, cursor, otherwise)));
  for (const [at, one] of found.entries()) {
    const region = regions[at] ?? '';
    places.set(region, one.place);
    heads.set(region, one.head);
    if (one.restored) restored.set(region, one.restored);
    isGone ||= one.isGone;
  }
  if (!isGone) return { kind: 'places', places };
  return {
    kind: 'gone',
    earliest: formatPlaces(deps, places),
    head: formatPlaces(deps, heads),
    ...(restored.size > 0 && { restored: formatPlaces(deps, new Map([...places, ...restored])) }),
  };
}

interface Located {
  readonly place: Place;
  readonly head: Place;
  readonly isGone: boolean;
  /** The feed was restored to a place before the cursor. */
  readonly restored?: Place;
}

async function locateOne(
  feed: CellFeed,
  region: string,
  cursor: GivenPlaces | undefined,
  otherwise: Beginning,
): Promise<Located> {
  const found = await feed.head(region);
  const given = cursor?.get(region);
  const { epoch, sequence } = found ?? { epoch: '', sequence: 0 };
  const head = { epoch, sequence };
  const earliest = async (): Promise<Place> =>
    found ? { epoch, sequence: (await feed.earliest(region, found)) - 1 } : head;
  if (!given) {
    if (otherwise === 'head' && !cursor) return { place: head, head, isGone: false };
    const first = await earliest();
    if (cursor || typeof otherwise !== 'number') return { place: first, head, isGone: false };
    const place = { epoch, sequence: Math.max(first.sequence, sequence - otherwise) };
    return { place, head, isGone: false };
  }
  const known = given.epoch === '' ? { sequence: given.sequence } : given;
  const at = resolveCursor(found ?? { ...head, attributes: {} }, known);
  if (at !== undefined) {
    const place = { epoch, sequence: at };
    // At its head there is nothing to look up, which is how most resume.
    if (at === sequence) return { place, head, isGone: false };
    const outcome = await feed.read(region, at, { accounts: [], events: 0, ranges: 1 });
    if (outcome?.kind !== 'gone') return { place, head, isGone: false };
  }
  const end = found && known.epoch !== undefined && at === undefined && findEpochEnd(found, known.epoch);
  return {
    ...{ place: await earliest(), head, isGone: true },
    ...(typeof end === 'number' && { restored: { epoch, sequence: end } }),
  };
}

/**
 * The events of the feed after these places, as server-sent events. It ends as the stream of one account does. While nothing
 * comes, looking for it costs one small read for each region.
 */
export function followFeed(
  deps: CellFeedDeps,
  from: Places,
  { accounts, types }: FeedFilter,
  abort: AbortSignal,
): AsyncGenerator<string> {
  return serverSentEvents(deps, abort, () => {
    const watch = watchOf(deps, deps.regions.map(feedLog));
    const places = new Map(from);
    /** Regions whose feed may hold more than was read, first come first served. */
    const behind = new Set(places.keys());
    return {
      cursor: () => formatPlaces(deps, places),
      async read() {
        const [region] = behind;
        const place = region === undefined ? undefined : places.get(region);
        if (region === undefined || !place) return { frames: [], more: false };
        behind.delete(region);
        const ranges = accounts ? RANGES_AT_ONCE : STREAM_BATCH;
        const query = { accounts, events: STREAM_BATCH, ranges };
        const outcome = await deps.feed.read(region, place.sequence, query);
        if (!outcome) return { frames: [], more: behind.size > 0 };
        const { epoch } = outcome.head;
        const isOver = outcome.kind === 'gone' || (place.epoch !== '' && place.epoch !== epoch);
        if (isOver) return 'over';
        const frames: Frame[] = [];
        for (const { number, event } of outcome.events) {
          if (types && !typeMatches(event.type, types)) continue;
          places.set(region, { epoch, sequence: number });
          frames.push({ id: formatPlaces(deps, places), event });
        }
        places.set(region, { epoch, sequence: outcome.through });
        // To the end of the line, so that one long feed doesn't hold up the others.
        if (outcome.through > place.sequence) behind.add(region);
        return { frames, more: behind.size > 0 };
      },
      async wait(ms) {
        const hints = await watch.next(Math.min(ms, deps.pace.recheckMs), abort);
        if (abort.aborted) return;
        const grown = hints.length > 0 ? hints.map(({ region }) => region) : await grownOf(deps, places);
        for (const region of grown) if (places.has(region)) behind.add(region);
      },
      [Symbol.dispose]: () => watch[Symbol.dispose](),
    };
  });
}

/** Places as a cursor. */
export function formatPlaces(
  { regions, isPart = false }: Pick<CellFeedDeps, 'regions' | 'isPart'>,
  places: Places,
): string {
  const cursors = [...places]
    .sort(([a], [b]) => (a < b ? -1 : 1))
    .map(([region, { epoch, sequence }]) => {
      const cursor = epoch === '' ? String(sequence) : formatCursor(epoch, sequence);
      return regions.length === 1 && !isPart ? cursor : `${region}.${cursor}`;
    });
  return cursors.join('~') || NOWHERE;
}

/**
 * Reads a cursor of the feed of these regions; `undefined` for anything else. Of one region it may be a bare number, of the
 * current epoch. Places in regions that are no longer served here are passed over, unless there are no others.
 */
export function parsePlaces(
  { regions, isPart = false }: Pick<CellFeedDeps, 'regions' | 'isPart'>,
  text: string,
): GivenPlaces | undefined {
  const [only = ''] = regions;
  const plain = regions.length === 1 && !isPart ? parseCursor(text) : undefined;
  if (plain) return new Map([[only, plain]]);
  const places = new Map<string, GivenCursor>();
  for (const part of text.split('~')) {
    const [, region = '', rest = ''] = /^([a-z0-9-]{1,63})\.(.+)$/.exec(part) ?? [];
    const cursor = parseCursor(rest);
    if (!cursor) return undefined;
    if (regions.includes(region)) places.set(region, cursor);
  }
  return places.size > 0 || isPart ? places : undefined;
}
