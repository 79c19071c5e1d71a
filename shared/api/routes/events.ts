/**
 * Event routes: paged feeds, long polls and server-sent event streams.
 * One file: the feeds, long polls and streams of accounts and cells share the reading from a cursor.
 */
import type { Context } from 'hono';
import * as z from 'zod';
import { getOrCreate } from '../../get-or-create.ts';
import { parseCursor } from '../../log/head.ts';
import { createEncoder, timestampOrNull } from '../../representation.ts';
import { type AccountRef, isCell, keys } from '../../storage/schema.ts';
import { shareCalls } from '../../storage/shared-reads.ts';
import type { Item, Key } from '../../storage/table.ts';
import { accountSubject, canAccess, regionSubject } from '../access.ts';
import type { ApiEnv } from '../env.ts';
import {
  type Crowded,
  type FeedDeps,
  followLog,
  type GivenCursor,
  type Gone,
  locateStream,
  type Page,
  type PageQuery,
  readNewestPage,
  readPage,
  toBody,
} from '../feed.ts';
import { Event, readEvent } from '../job-events.ts';
import type { Caller } from '../keys.ts';
import {
  type CellFeedDeps,
  type FeedPage,
  findPlace,
  followFeed,
  locateFeed,
  type ParsedFeedCursor,
  parsePlaces,
  readFeedPage,
  readNewestFeedPage,
} from '../merged-feed.ts';
import { cursorBy, eventLimit, integer, MAX_EVENTS, one, parseEventId, typePatterns } from '../parameters.ts';
import { problem } from '../problems.ts';
import { rateLimitHeaders } from '../rate-limit-headers.ts';
import { createRouteFactory, type Route, type RouteParts, type Subject } from '../route.ts';
import { SLOT_GRACE_MS, type Slot } from '../waiting-limit.ts';

const route = createRouteFactory('Events');

const MAX_WAIT_SECONDS = 25;
/** Time after the end of a stream at which an unread response is aborted. */
const CUT_AFTER_MS = 20_000;
/** `Retry-After` of a response that is rejected because all stream slots of the key are in use. */
const CROWDED_RETRY_SECONDS = 15;

const CURSOR_RULE =
  'must be a cursor (`<epoch>.<number>`) from `next`, `head` or the `id:` of a stream, or a bare number';
const CELL_CURSOR_RULE = 'must be a `next` or `head` of /v1/events, or an `id:` of its stream';

const Cursor = z.string().describe('Cursor: `<epoch>.<number>`.');

const EventPage = z
  .object({
    events: z.array(Event),
    next: Cursor.describe(
      'Cursor of the next page. With `order=newest`: the position after the newest event, from which new events can be read.',
    ),
    previous: Cursor.nullable()
      .optional()
      .describe('Cursor of older events, for `before`. `null`: none. Only with `order=newest`.'),
    head: Cursor.describe('Cursor of the last event in the log.'),
    observedThrough: timestampOrNull
      .optional()
      .describe(
        'Start of the last complete reading of the list. The changes that it showed are in the log up to `next`. The field of the same name in the account status describes the exceptions. `null`: the page does not reach the end of the log. Absent in the log of a region.',
      ),
  })
  .meta({ id: 'EventPage' });

const cursor = cursorBy(parseCursor, CURSOR_RULE).optional();

const EventsQuery = z.strictObject({
  after: cursor.describe('Return events after this cursor. Default: all stored events.'),
  limit: eventLimit,
  types: typePatterns.optional(),
  wait: integer(0, MAX_WAIT_SECONDS)
    .default(0)
    .describe(`Time to wait for the first event, in seconds. Default: 0.`),
  order: z
    .enum(['oldest', 'newest'], 'must be oldest or newest')
    .default('oldest')
    .describe('`newest`: begin with the newest event. To get older events, send `previous` as `before`.'),
  before: cursor.describe(
    'With `order=newest`: return events up to this cursor. Default: the end of the log.',
  ),
});

/** Rejects parameters of the other order. */
function checkOrder(
  given: {
    readonly order: 'oldest' | 'newest';
    readonly before?: unknown;
    readonly after?: unknown;
    readonly last?: unknown;
    readonly wait: number;
  },
  context: z.core.$RefinementCtx,
): void {
  const add = (name: string, message: string) => context.addIssue({ code: 'custom', path: [name], message });
  if (given.order === 'oldest') {
    if (given.before !== undefined) add('before', 'requires order=newest');
    return;
  }
  const rest = 'cannot be combined with order=newest';
  if (given.after !== undefined) add('after', rest);
  else if (given.last !== undefined) add('last', rest);
  else if (given.wait > 0) add('wait', rest);
}

const StreamQuery = z.strictObject({
  after: cursor.describe('Return events after this cursor. Default: the end of the log.'),
  types: typePatterns.optional(),
});

/** Query of the merged feed. Its cursor is parsed when the regions are known. */
const CellEventsQuery = z
  .strictObject({
    ...EventsQuery.shape,
    after: one.optional().describe('Return events after this cursor. Default: all stored events.'),
    before: one
      .optional()
      .describe('With `order=newest`: return events up to this cursor. Default: the end of the logs.'),
    last: integer(1, MAX_EVENTS)
      .optional()
      .describe(
        'Instead of `after`: begin this number of events before the end of the feed of each region. Fewer events are returned with `types`, or with a restricted API key.',
      ),
  })
  .superRefine((given, context) => {
    checkOrder(given, context);
    const { after, last } = given;
    if (after === undefined || last === undefined) return;
    context.addIssue({ code: 'custom', path: ['last'], message: 'cannot be combined with after' });
  });

const CellStreamQuery = z.strictObject({
  after: one.optional().describe('Return events after this cursor. Default: the end of the logs.'),
  types: typePatterns.optional(),
});

const CellPage = EventPage.omit({ observedThrough: true }).meta({ id: 'CellEventPage' });

const LAST_EVENT_ID = {
  'Last-Event-ID': 'The `id:` of the last event received. Takes precedence over `after`.',
};
const STREAM = {
  description:
    'Server-sent events: `id:` is the cursor, `event:` is the type, and `data:` is the event. The first message has `event: cursor` and contains only a cursor. Such a message is also sent in place of events that `types` excludes. The server closes a stream after some minutes. Connect again with the last id.',
  schema: z.string(),
  contentType: 'text/event-stream',
  headers: {
    'RateLimit-Policy': 'Limit of open streams and waiting long polls of the API key.',
  },
} as const;

/** Returns the feed and stream routes of a log of an account or a region. */
function logRoutes<S extends { readonly region: string; readonly account: string }>(
  path: `/${string}`,
  subject: Subject<S>,
  names: { readonly id: string; readonly log: string },
): Route[] {
  return [
    route(
      {
        path,
        id: `list${names.id}Events`,
        summary: `List events of ${names.log}`,
        role: 'read',
        subject,
        query: EventsQuery.superRefine(checkOrder),
        answer: { description: 'A page of the log.', schema: EventPage },
        problems: ['cursor-gone'],
        waits: true,
      },
      async ({ c, caller, subject: ref, query: { wait, order, before, ...options } }, parts) => {
        const { feed } = parts;
        if (order === 'newest') {
          return sendPage(
            c,
            parts,
            serializePage(ref, await readNewestPage(feed, ref, { ...options, before })),
          );
        }
        const waitMs = await getWaitMs(wait, caller, parts);
        await using hold = createHold(c, parts, waitMs);
        const signal = c.req.raw.signal;
        const page =
          waitMs > 0
            ? serializePage(
                ref,
                await readPage(feed, ref, { ...options, waitMs, mayWait: hold.take }, signal),
              )
            : await createPageReader(feed)({ ref: { region: ref.region, account: ref.account }, ...options });
        return sendPage(c, parts, page);
      },
    ),
    route(
      {
        path: `${path}/stream`,
        id: `stream${names.id}Events`,
        summary: `Stream events of ${names.log}`,
        role: 'read',
        subject,
        query: StreamQuery,
        headers: LAST_EVENT_ID,
        answer: STREAM,
        problems: ['cursor-gone'],
        waits: true,
      },
      async ({ c, subject: ref, query }, parts) => {
        const given = resumeAt(c, query.after);
        if (given instanceof Response) return given;
        const place = await locateStream(parts.feed.log, ref, given);
        if (!place) return noLog(c);
        if ('kind' in place) return cursorGone(c, place);
        return eventStream(c, parts, (abort) => followLog(parts.feed, ref, place, query.types, abort));
      },
    ),
  ];
}

const encodeInstant = createEncoder(timestampOrNull);

/** A serialized page. */
interface WrittenPage {
  readonly kind: 'written';
  readonly json: Uint8Array<ArrayBuffer>;
}

/** Serializes a page of the log of `ref`, or without it of the merged feed. */
function serializePage<P extends FeedPage | Gone | Crowded | undefined>(
  ref: AccountRef | undefined,
  page: P,
): Exclude<P, FeedPage> | WrittenPage {
  if (page?.kind !== 'page') return page as Exclude<P, FeedPage>;
  const { events, next, previous, head, observedThrough }: FeedPage & Partial<Page> = page;
  const observed = ref && !isCell(ref) ? { observedThrough: encodeInstant(observedThrough) } : {};
  const rest = JSON.stringify({ next, previous, head, ...observed });
  // The envelopes are inserted as stored, so that every route returns identical bytes.
  const text = `{"events":[${events.join(',')}],${rest.slice(1)}`;
  return { kind: 'written', json: new TextEncoder().encode(text) } as const satisfies WrittenPage;
}

type PageRequest = { readonly ref: AccountRef } & Pick<PageQuery, 'after' | 'limit' | 'types'>;
const pages = new WeakMap<FeedDeps, (options: PageRequest) => Promise<ReturnType<typeof serializePage>>>();
const NEVER = new AbortController().signal;

/** Returns the reader of pages without a wait. Identical requests in the same turn share one read. */
function createPageReader(feed: FeedDeps) {
  const read = async ({ ref, ...options }: PageRequest) =>
    serializePage(ref, await readPage(feed, ref, { ...options, waitMs: 0 }, NEVER));
  return getOrCreate(pages, feed, () => shareCalls(read, { inTurn: true }));
}

/** An event by its id: of an account of the key, or of the log of a region for a key for all accounts. */
export const eventSubject: Subject<{ readonly ref: AccountRef; readonly json: string }> = {
  params: { event: one.describe('Id of the event.') },
  async find({ c, caller, params }, { feed }) {
    const id = parseEventId(params.event ?? '');
    const mayBe = id && canAccess(caller, id.account) ? id : undefined;
    const refs = mayBe ? feed.regions.map((region) => ({ region, account: mayBe.account })) : [];
    for (const ref of refs) {
      const json = mayBe && (await readEvent(feed, ref, mayBe.epoch, mayBe.sequence));
      if (json !== undefined) return { ref, json };
    }
    return problem(c, 'not-found', { detail: 'There is no such event, or it is no longer stored.' });
  },
};

/** All event routes. */
export const eventRoutes: readonly Route[] = [
  ...logRoutes('/v1/accounts/{id}/events', accountSubject, { id: 'Account', log: 'an account' }),
  ...logRoutes('/v1/regions/{id}/events', regionSubject, { id: 'Region', log: 'a region' }),
  route(
    {
      path: '/v1/events',
      id: 'listEvents',
      summary: 'List events of all accounts and regions',
      description:
        'Returns the events of all logs in one sequence. A restricted API key receives only the events of its accounts. The cursor is valid for this feed only.',
      role: 'read',
      query: CellEventsQuery,
      answer: { description: 'A page of events.', schema: CellPage },
      problems: ['cursor-gone'],
      waits: true,
    },
    async ({ c, caller, query: { wait, after, order, before, ...options } }, parts) => {
      const feed = await feedFor(parts.feed, caller);
      if (order === 'newest') {
        const until = await placesIn(c, feed, 'before', before);
        if (until instanceof Response) return until;
        const query = { ...options, accounts: caller.accounts, before: until };
        return sendPage(c, parts, serializePage(undefined, await readNewestFeedPage(feed, query)));
      }
      const given = await placesIn(c, feed, 'after', after);
      if (given instanceof Response) return given;
      const waitMs = await getWaitMs(wait, caller, parts);
      await using hold = createHold(c, parts, waitMs);
      const page = await readFeedPage(
        feed,
        { ...options, after: given, accounts: caller.accounts, waitMs, mayWait: hold.take },
        c.req.raw.signal,
      );
      return sendPage(c, parts, serializePage(undefined, page));
    },
  ),
  route(
    {
      path: '/v1/events/stream',
      id: 'streamEvents',
      summary: 'Stream events of all accounts and regions',
      description:
        'Returns the events of all logs in one sequence. A restricted API key receives only the events of its accounts. The cursor is valid for this feed only.',
      role: 'read',
      query: CellStreamQuery,
      headers: LAST_EVENT_ID,
      answer: STREAM,
      problems: ['cursor-gone'],
      waits: true,
    },
    async ({ c, caller, query: { after, types } }, parts) => {
      const feed = await feedFor(parts.feed, caller);
      const last = c.req.header('last-event-id') || undefined;
      const given = await placesIn(c, feed, last === undefined ? 'after' : 'Last-Event-ID', last ?? after);
      if (given instanceof Response) return given;
      const start = await locateFeed(feed, given, 'head');
      if (start.kind === 'gone') return cursorGone(c, start);
      const filter = { accounts: caller.accounts, types };
      return eventStream(c, parts, (abort) => followFeed(feed, start.places, filter, abort));
    },
  ),
  route(
    {
      path: '/v1/events/{event}',
      id: 'getEvent',
      summary: 'Get an event',
      role: 'read',
      subject: eventSubject,
      answer: {
        description: 'The stored envelope.',
        schema: Event,
        contentType: 'application/cloudevents+json',
      },
    },
    ({ c, subject }) =>
      c.body(subject.json, 200, { 'content-type': 'application/cloudevents+json; charset=utf-8' }),
  ),
];

/** Responds that the log cannot be read from the cursor, with the range that can be read. */
export function cursorGone(c: Context<ApiEnv>, gone: Gone): Response {
  const { earliest, head, restored } = gone;
  if (restored !== undefined) {
    return problem(c, 'cursor-gone', {
      detail:
        'The log was restored from a backup that is older than the cursor. Resume from `restored` (all events since the backup) and fetch the jobs again, because the events after the backup are lost.',
      members: { restored, earliest, head },
    });
  }
  return problem(c, 'cursor-gone', {
    detail:
      'The cursor belongs to an epoch that is not in this log, is beyond the end of the log, or is older than the retention period. Resume from `earliest` (all stored events) or from `head` (new events only), and fetch the jobs again to miss no change.',
    members: { earliest, head },
  });
}

function sendPage(c: Context<ApiEnv>, parts: RouteParts, page: ReturnType<typeof serializePage>): Response {
  if (!page) return noLog(c);
  if (page.kind === 'gone') return cursorGone(c, page);
  if (page.kind === 'crowded') return tooManyWaiting(c, parts);
  return c.body(page.json, 200, { 'content-type': 'application/json' });
}

function noLog(c: Context<ApiEnv>): Response {
  return problem(c, 'not-found', { detail: 'The log does not exist yet.' });
}

/**
 * Returns the merged feed for a key. For a key of some accounts it covers only the regions of those accounts, because a cursor
 * reveals the number of events in each region that it names.
 */
async function feedFor(
  feed: RouteParts['feed'],
  { accounts }: Caller,
): Promise<RouteParts['feed'] & CellFeedDeps> {
  if (accounts === null || feed.regions.length === 1) return feed;
  const places = feed.regions.flatMap((region) => accounts.map((account) => ({ region, account })));
  const found = await feed.table.getMany(places.map(keys.account));
  const regions = feed.regions.filter((region) =>
    places.some((ref) => ref.region === region && found.some((item) => isItem(item, keys.account(ref)))),
  );
  return { ...feed, regions, isPart: true };
}

const isItem = (item: Item, { pk, sk }: Key): boolean => item.pk === pk && item.sk === sk;

/** Parses a cursor of the merged feed. */
async function placesIn(
  c: Context<ApiEnv>,
  feed: CellFeedDeps,
  field: string,
  text: string | undefined,
): Promise<ParsedFeedCursor | undefined | Response> {
  if (text === undefined) return undefined;
  const places = parsePlaces(feed, text) ?? (await findPlace(feed, text));
  return places ?? problem(c, 'invalid-parameter', { field, detail: `${field} ${CELL_CURSOR_RULE}.` });
}

/** Returns the start of a stream. `Last-Event-ID` is newer than the `after` that the stream was opened with. */
function resumeAt(c: Context<ApiEnv>, after: GivenCursor | undefined): GivenCursor | Response | undefined {
  const header = c.req.header('last-event-id');
  if (header === undefined || header === '') return after;
  const field = 'Last-Event-ID';
  const detail = `${field} ${CURSOR_RULE}.`;
  return parseCursor(header) ?? problem(c, 'invalid-parameter', { field, detail });
}

/**
 * Returns a stream as a response that holds a slot until it ends. The source is opened when the response is read, and not
 * for a HEAD request.
 */
async function eventStream(
  c: Context<ApiEnv>,
  parts: RouteParts,
  make: (abort: AbortSignal) => AsyncGenerator<string>,
): Promise<Response> {
  const headers = {
    'content-type': 'text/event-stream',
    // Disables response buffering in proxies.
    'x-accel-buffering': 'no',
    ...streamLimit(parts),
  };
  if (c.req.method === 'HEAD') return c.body(null, 200, headers);
  const { streamMs } = parts.feed.pace;
  const hold = createHold(c, parts, streamMs);
  if (!(await hold.take())) return tooManyWaiting(c, parts);
  const body = toBody((abort) => whileCurrent(c, parts, make(abort)), {
    onFault: hold.report,
    onEnd: () => hold[Symbol.asyncDispose](),
    cutMs: streamMs + CUT_AFTER_MS,
  });
  return c.body(body, 200, headers);
}

/** Ends a stream when its key is revoked, expires or changes its accounts. */
async function* whileCurrent(
  c: Context<ApiEnv>,
  { isCurrent }: RouteParts,
  text: AsyncGenerator<string>,
): AsyncGenerator<string> {
  for await (const piece of text) {
    if (!(await isCurrent(c.get('caller')))) return;
    yield piece;
  }
}

/** Returns how long a request may wait (ms): not at all if its cached key was revoked, has expired or has other accounts now. */
async function getWaitMs(seconds: number, caller: Caller, { feed, isCurrent }: RouteParts): Promise<number> {
  return seconds > 0 && (await isCurrent(caller)) ? Math.min(seconds * 1000, feed.pace.waitMs) : 0;
}

/** Returns the slot of a request. `take` resolves to `true` if there is a slot or no limit. The release never rejects. */
function createHold(c: Context<ApiEnv>, { slots, report: reportFault }: RouteParts, ms: number) {
  const { keyId } = c.get('caller');
  let held: Slot | undefined;
  const report = (cause: unknown) => reportFault(c, cause);
  return {
    report,
    async take(): Promise<boolean> {
      held ??= await slots?.acquire(keyId, ms + SLOT_GRACE_MS);
      return held !== undefined || slots === undefined;
    },
    // A slot that could not be released becomes free when it expires.
    [Symbol.asyncDispose]: async () => held?.release().catch(report),
  };
}

function tooManyWaiting(c: Context<ApiEnv>, { slots }: RouteParts): Response {
  const inAll = slots?.inAll === undefined ? '' : `, and ${slots.inAll} of all keys together`;
  return problem(c, 'too-many-streams', {
    detail: `At most ${slots?.perKey} streams and long polls of a key can be open at a time${inAll}. Retry when one has ended.`,
    headers: { 'retry-after': String(CROWDED_RETRY_SECONDS), ...streamLimit({ slots }, true) },
  });
}

/** Returns the headers of the limit of streams. A reached limit of all keys together says nothing about that of the key. */
function streamLimit({ slots }: Pick<RouteParts, 'slots'>, isReached = false): Record<string, string> {
  if (!slots) return {};
  const isOwn = isReached && slots.inAll === undefined;
  const state = { remaining: 0, resetSeconds: CROWDED_RETRY_SECONDS };
  return rateLimitHeaders({ name: 'streams', quota: slots.perKey }, isOwn ? state : undefined);
}
