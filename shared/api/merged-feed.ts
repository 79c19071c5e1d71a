/**
 * Reads the cell feed for clients: the events of all accounts of a region in one sequence, paged with a cursor, as a long poll, or
 * as a stream. A process that serves several regions merges their feeds.
 *
 * A cursor is a position in the feed, `<epoch>.<number>`, or one for each of several regions:
 * `nz.<epoch>.<number>~us.<epoch>.<number>`. It is the position up to which the client has read, and also advances past events
 * that a filter excludes. Events of a region are in order; events of different regions have no defined order.
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
  type LogPosition,
  matcher,
  PAGE_BYTES,
  type Page,
  type PageQuery,
  serverSentEvents,
  waitForGrowth,
  watchLogs,
} from './feed.ts';
import { type BackSource, readBack } from './feed-back.ts';
import { createTimer } from './growth-signal.ts';

/** Dependencies of reading cell feeds. */
export interface CellFeedDeps extends Pick<FeedDeps, 'growth' | 'pace' | 'now'> {
  readonly feed: CellFeed;
  /** Served regions. A cursor has a position in each. */
  readonly regions: readonly string[];
  /** Whether `regions` is a subset of the served regions. Cursors then name each region, even if there is only one. */
  readonly isPart?: boolean;
}

/** Cursor of a feed without regions. */
const NOWHERE = 'none.0';

/** Positions in the feed of each region. The epoch is empty if the feed of the region was not started. */
export type FeedPositions = ReadonlyMap<string, LogPosition>;
/** Positions as given by a client. */
export type ParsedFeedCursor = ReadonlyMap<string, GivenCursor>;

/** Filter of the feed. */
export interface FeedFilter {
  /** Ids of accounts. `null`: all accounts, and the logs of the regions. */
  readonly accounts: readonly string[] | null;
  /** Patterns for {@link typeMatches}. Default: all types. */
  readonly types?: readonly string[] | undefined;
}

/** Query of a page of the feed. Without `after`, it begins with the earliest stored event. */
export type FeedPageQuery = FeedFilter &
  Pick<PageQuery, 'limit' | 'waitMs' | 'mayWait'> & {
    readonly after?: ParsedFeedCursor | undefined;
    /** Alternative to `after`: number of events before the end of each region's feed, before filters are applied. */
    readonly last?: number | undefined;
  };

/** A page of the feed. */
export type FeedPage = Omit<Page, 'observedThrough'>;

/** Maximum number of references and events examined for a page. */
const MAX_EXAMINED = 4_000;
/** Maximum numbers of references and events per read. Most references may belong to other accounts. */
const RANGES_AT_ONCE = 500;
const EVENTS_AT_ONCE = 250;
/** Maximum number of events that a stream reads at once. */
const STREAM_BATCH = 100;

/**
 * Returns a page of the feed. If `waitMs` is given and no event matches, it waits until one does, the time has elapsed, or the
 * client disconnects. A page can be empty although it ends before the head: the limit of examined events was reached, and `next`
 * has advanced.
 */
export async function readFeedPage(
  deps: CellFeedDeps,
  query: FeedPageQuery,
  abort: AbortSignal,
): Promise<FeedPage | Gone | Crowded> {
  const until = deps.now() + query.waitMs;
  // The watch starts before the first read, so that no event between the two is missed.
  using watch = query.waitMs > 0 ? watchLogs(deps, deps.regions.map(feedLog)) : createTimer();
  const start = await locateFeed(deps, query.after, query.last ?? 'earliest');
  if (start.kind === 'gone') return start;
  const places = new Map(start.places);
  const page: Scan = { events: [], bytes: 0, examined: 0, heads: new Map(start.heads) };
  for (;;) {
    const isGone = await scan(deps, places, query, page);
    if (isGone && page.events.length === 0) {
      const now = await locateFeed(deps, places, 'earliest');
      // The earliest event has expired since it was looked up. Without a cursor, reading starts again.
      if (query.after === undefined) return readFeedPage(deps, query, abort);
      if (now.kind === 'gone') return now;
    }
    const left = until - deps.now();
    if (page.events.length > 0 || page.examined >= MAX_EXAMINED || left <= 0 || abort.aborted) {
      const { events, heads } = page;
      return { kind: 'page', events, next: formatPlaces(deps, places), head: formatPlaces(deps, heads) };
    }
    if (query.mayWait && !(await query.mayWait())) return { kind: 'crowded' };
    const hasGrown = async () => (await findGrown(deps, places)).length > 0;
    await waitForGrowth(deps, watch, until, abort, hasGrown);
  }
}

/**
 * Returns a page of the feed that begins with the newest events of all regions, or with the last events before a cursor. A page can be
 * empty although there are older events, if the limit of examined events was reached.
 */
export async function readNewestFeedPage(
  deps: Pick<CellFeedDeps, 'feed' | 'regions' | 'isPart'>,
  query: FeedFilter & { readonly before?: ParsedFeedCursor | undefined; readonly limit: number },
): Promise<FeedPage | Gone> {
  const { accounts, before, limit, types } = query;
  const known = before && (await locateBefore(deps, before));
  const start = known ? { kind: 'places' as const, places: known } : await locateFeed(deps, before, 'head');
  if (start.kind === 'gone') return start;
  const from = [...start.places];
  const heads = new Map(from);
  const sources = from.map(
    ([region, place]): BackSource => ({
      from: place.sequence,
      isHead: before === undefined,
      async readWindow(after, upTo) {
        const size = upTo - after;
        const outcome = await deps.feed.read(region, after, { accounts, events: size, ranges: size });
        if (outcome) heads.set(region, outcome.head);
        if (outcome?.kind !== 'events') return outcome;
        const events = outcome.events.filter(({ number }) => number <= upTo);
        return { kind: 'events', events, through: Math.min(outcome.through, upTo) };
      },
    }),
  );
  const share = Math.ceil(limit / Math.max(1, sources.length));
  const batch = types || accounts ? EVENTS_AT_ONCE : Math.min(share, EVENTS_AT_ONCE);
  const page = { limit, maxBytes: PAGE_BYTES, matches: matcher(types), budget: MAX_EXAMINED, batch };
  const read = await readBack(sources, page);
  const cursorAt = (toNumber: (place: (typeof read.places)[number]) => number): string => {
    const places = from.map(([region, { epoch }], at) => {
      const place = read.places[at];
      return [region, { epoch, sequence: place ? toNumber(place) : 0 }] as const;
    });
    return formatPlaces(deps, new Map(places));
  };
  const isEnd = read.places.every(({ older }) => older === null);
  return {
    kind: 'page',
    events: read.events,
    next: cursorAt(({ newest }) => newest),
    previous: isEnd ? null : cursorAt(({ older }) => older ?? 0),
    head: formatPlaces(deps, heads),
  };
}

/**
 * Returns the positions of a cursor before which events are read, or `undefined` if one is not in its feed. Expired positions are
 * valid: there are no older events. A region that the cursor does not name has only newer events.
 */
async function locateBefore(
  { feed, regions }: Pick<CellFeedDeps, 'feed' | 'regions'>,
  cursor: ParsedFeedCursor,
): Promise<FeedPositions | undefined> {
  const places = new Map<string, LogPosition>();
  const heads = await Promise.all(regions.map((region) => feed.head(region)));
  for (const [at, region] of regions.entries()) {
    const head = heads[at] ?? { epoch: '', sequence: 0, attributes: {} };
    const { epoch, sequence: number } = cursor.get(region) ?? { epoch: '', sequence: 0 };
    const sequence = resolveCursor(head, epoch ? { epoch, sequence: number } : { sequence: number });
    if (sequence === undefined) return undefined;
    places.set(region, { epoch: head.epoch, sequence });
  }
  return places;
}

/** State of a page under construction. */
interface Scan {
  readonly events: string[];
  bytes: number;
  examined: number;
  readonly heads: Map<string, LogPosition>;
}

/**
 * Reads the feeds, in turns by region, until the page is full, all ends are reached, or the limit of examined events is reached.
 * Advances the positions. Returns `true` if a feed cannot be read from its position.
 */
async function scan(
  deps: CellFeedDeps,
  places: Map<string, LogPosition>,
  query: FeedPageQuery,
  page: Scan,
): Promise<boolean> {
  const behind = [...places.keys()];
  while (behind.length > 0) {
    const region = behind.shift() ?? '';
    const place = places.get(region);
    const wanted = query.limit - page.events.length;
    if (!place || wanted <= 0 || page.examined >= MAX_EXAMINED) break;
    const fair = Math.ceil(wanted / (behind.length + 1));
    const outcome = await deps.feed.read(region, place.sequence, {
      accounts: query.accounts,
      events: query.types ? EVENTS_AT_ONCE : Math.min(fair, EVENTS_AT_ONCE),
      ranges: RANGES_AT_ONCE,
    });
    if (!outcome) continue;
    if (outcome.kind === 'gone' || isElsewhere(outcome.head, place)) return true;
    const { epoch, sequence } = outcome.head;
    page.examined += outcome.examined;
    let at = place.sequence;
    let added = 0;
    let [isFull, isCut] = [false, false];
    for (const { number, event } of outcome.events) {
      if (!query.types || typeMatches(event.type, query.types)) {
        const bytes = page.bytes + Buffer.byteLength(event.json);
        isFull = page.events.length > 0 && bytes > PAGE_BYTES;
        isCut = isFull || added === fair;
        if (isCut) break;
        page.events.push(event.json);
        page.bytes = bytes;
        added += 1;
      }
      at = number;
    }
    if (!isCut) at = outcome.through;
    places.set(region, { epoch, sequence: at });
    page.heads.set(region, { epoch, sequence: Math.max(sequence, at) });
    if (isFull) break;
    if (at > place.sequence && at < sequence) behind.push(region);
  }
  return false;
}

/** Returns whether a position no longer exists in a feed. If the feed was renewed meanwhile, it still contains what was read. */
function isElsewhere(head: Head, place: LogPosition): boolean {
  return place.epoch !== '' && resolveCursor(head, place) === undefined;
}

/** Returns the regions whose feed has moved from its position, with one small read for each. */
async function findGrown(deps: CellFeedDeps, places: FeedPositions): Promise<string[]> {
  const looked = await Promise.all(
    [...places].map(async ([region, place]) => {
      const head = await deps.feed.head(region);
      const moved = head && (head.epoch !== place.epoch || head.sequence !== place.sequence);
      return moved ? [region] : [];
    }),
  );
  return looked.flat();
}

/** Start without a cursor: the earliest events, the heads, or a number of events before the heads. */
type Beginning = 'earliest' | 'head' | number;

/**
 * Returns where reading begins: at the cursor, or without one at `otherwise`. A region that the cursor does not name was added
 * later, so all its events are new. For a `gone` cursor, only the feeds that cannot be read from it restart; the others resume at
 * their positions.
 */
export async function locateFeed(
  deps: Pick<CellFeedDeps, 'feed' | 'regions' | 'isPart'>,
  cursor: ParsedFeedCursor | undefined,
  otherwise: Beginning,
): Promise<
  { readonly kind: 'places'; readonly places: FeedPositions; readonly heads: FeedPositions } | Gone
> {
  const { feed, regions } = deps;
  const places = new Map<string, LogPosition>();
  const heads = new Map<string, LogPosition>();
  const restored = new Map<string, LogPosition>();
  let isGone = false;
  const found = await Promise.all(regions.map((region) => locateOne(feed, region, cursor, otherwise)));
  for (const [at, one] of found.entries()) {
    const region = regions[at] ?? '';
    places.set(region, one.place);
    heads.set(region, one.head);
    if (one.restored) restored.set(region, one.restored);
    isGone ||= one.isGone;
  }
  if (!isGone) return { kind: 'places', places, heads };
  return {
    kind: 'gone',
    earliest: formatPlaces(deps, places),
    head: formatPlaces(deps, heads),
    ...(restored.size > 0 && { restored: formatPlaces(deps, new Map([...places, ...restored])) }),
  };
}

interface Located {
  readonly place: LogPosition;
  readonly head: LogPosition;
  readonly isGone: boolean;
  /** The feed was restored to a place before the cursor. */
  readonly restored?: LogPosition;
}

async function locateOne(
  feed: CellFeed,
  region: string,
  cursor: ParsedFeedCursor | undefined,
  otherwise: Beginning,
): Promise<Located> {
  const found = await feed.head(region);
  const given = cursor?.get(region);
  const { epoch, sequence } = found ?? { epoch: '', sequence: 0 };
  const head = { epoch, sequence };
  const earliest = async (): Promise<LogPosition> =>
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
    // Most clients resume at the head, which needs no further read.
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
 * Yields the events of the feed after these positions as server-sent events. It ends like the stream of an account. While idle,
 * each check costs one small read per region.
 */
export function followFeed(
  deps: CellFeedDeps,
  from: FeedPositions,
  { accounts, types }: FeedFilter,
  abort: AbortSignal,
): AsyncGenerator<string> {
  return serverSentEvents(deps, abort, () => {
    const watch = watchLogs(deps, deps.regions.map(feedLog));
    const places = new Map(from);
    /** Regions whose feed may have unread events, in the order in which they are read. */
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
        // Moves to the end of the set, so that one long feed does not delay the others.
        if (outcome.through > place.sequence) behind.add(region);
        return { frames, more: behind.size > 0 };
      },
      async wait(ms) {
        const hints = await watch.next(Math.min(ms, deps.pace.recheckMs), abort);
        if (abort.aborted) return;
        const grown = hints.length > 0 ? hints.map(({ region }) => region) : await findGrown(deps, places);
        for (const region of grown) if (places.has(region)) behind.add(region);
      },
      [Symbol.dispose]: () => watch[Symbol.dispose](),
    };
  });
}

/** Formats positions as a cursor. */
export function formatPlaces(
  { regions, isPart = false }: Pick<CellFeedDeps, 'regions' | 'isPart'>,
  places: FeedPositions,
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
 * Parses a cursor of the feed of these regions, or returns `undefined`. For one region, a bare number refers to the current epoch.
 * Positions in regions that are no longer served are ignored, unless there are no others.
 */
export function parsePlaces(
  { regions, isPart = false }: Pick<CellFeedDeps, 'regions' | 'isPart'>,
  text: string,
): ParsedFeedCursor | undefined {
  const [only = ''] = regions;
  const plain = regions.length === 1 && !isPart ? parseCursor(text) : undefined;
  if (plain) return new Map([[only, plain]]);
  const places = new Map<string, GivenCursor>();
  for (const part of text.split('~')) {
    const [, region = '', rest = ''] = /^([a-z0-9-]{1,63})\.(.+)$/.exec(part) ?? [];
    const cursor = parseCursor(rest);
    if (!cursor) return undefined;
    if (regions.includes(region)) places.set(region, cursor);
    // `<epoch>.<number>` names no region. Only the position in a feed that was not started has no epoch.
    else if (cursor.epoch === undefined && cursor.sequence > 0) return undefined;
  }
  return places.size > 0 || isPart ? places : undefined;
}

/**
 * Returns the position of a cursor from the time when only one region was served. It names no region, so its region is the one
 * whose feed has its epoch. If that feed was not started then, all events are new.
 */
export async function findPlace(
  { feed, regions }: Pick<CellFeedDeps, 'feed' | 'regions'>,
  text: string,
): Promise<ParsedFeedCursor | undefined> {
  const cursor = parseCursor(text);
  if (cursor?.epoch === undefined) return cursor?.sequence === 0 ? new Map() : undefined;
  for (const region of regions) {
    const head = await feed.head(region);
    const isHere = head && resolveCursor(head, { epoch: cursor.epoch, sequence: 0 }) !== undefined;
    if (isHere) return new Map([[region, cursor]]);
  }
  return undefined;
}
