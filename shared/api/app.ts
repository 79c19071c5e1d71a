/**
 * The HTTP API: feeds of accounts and regions, jobs and status of accounts. One app for a Node server and for Lambda; it
 * holds nothing between requests but those under way.
 *
 * What is registered before `requireKey` is open to everybody, what comes after needs the key.
 */
import { createHash, timingSafeEqual } from 'node:crypto';
import { type Context, Hono, type MiddlewareHandler } from 'hono';
import { bodyLimit } from 'hono/body-limit';
import { methodNotAllowed } from 'hono/method-not-allowed';
import { requestId } from 'hono/request-id';
import { validator } from 'hono/validator';
import * as z from 'zod';
import { catalogue, dataSchemaOf, eventTypes } from '../events/catalogue.ts';
import { typeMatches } from '../events/event.ts';
import { createCellFeed } from '../log/cell-feed.ts';
import { type EventLog, parseCursor } from '../log/log.ts';
import { type AccountRef, cellLog, isCell } from '../table/schema.ts';
import { type Table, TableError } from '../table/table.ts';
import { type Account, findAccount } from '../tracking/accounts.ts';
import { confirmAccount, reportAccount } from '../tracking/operator.ts';
import {
  type FeedDeps,
  type FeedPace,
  followLog,
  type Gone,
  locateStream,
  readPage,
  toBody,
} from './feed.ts';
import type { GrowthSignal } from './growth.ts';
import { decodeJobsCursor, type JobFilter, listJobs, readJob } from './jobs.ts';
import { type CellFeedDeps, followFeed, locateFeed, parsePlaces } from './merged-feed.ts';
import { problem } from './problems.ts';
import { BOOTSTRAP_KEY, type Slot, type Slots } from './slots.ts';

/** What the API is made of. */
export interface ApiDeps {
  readonly table: Table;
  readonly log: EventLog;
  /** The regions this process serves: an account id is looked up in each. */
  readonly regions: readonly string[];
  /** What clients show as `Authorization: Bearer …`. Asked for with each request, where it may change. */
  readonly apiKey: string | (() => Promise<string>);
  /** Epoch ms. */
  readonly now: () => number;
  /** Wakes long polls and streams when a log grows in this process. */
  readonly growth?: GrowthSignal;
  /** Called with every fault that became a 500 or 503, and with those that ended a stream. Ids only, no parameters. */
  readonly onError?: (cause: unknown, request: { readonly requestId: string; readonly path: string }) => void;
  /** How readers wait and how streams go; see {@link FeedPace}. */
  readonly pace?: Partial<FeedPace>;
  /** What streams and waiting long polls hold while they last. Absent: as many as come may wait. */
  readonly slots?: Slots;
}

/** What handlers find in their context, besides the id of the request. */
export interface ApiEnv {
  Variables: {
    requestId: string;
    /** The id of the key that was shown. */
    keyId: string;
    /** The account of `/v1/accounts/:id/…`. */
    account: Account;
    /** Whose log a feed reads: an account's, or a region's own. */
    log: AccountRef;
  };
}

/** How often waiting readers look at the table: often where nothing wakes them. */
const RECHECK_MS = 1_000;
const HINTED_RECHECK_MS = 5_000;
const HEARTBEAT_MS = 15_000;
const STREAM_MS = 10 * 60_000;
const RETRY_MS = 1_000;
/** How long after its end a stream that is not read to it is cut off. */
const CUT_AFTER_MS = 20_000;
/** How long beyond its time a slot is held if nobody gives it back: a while longer than anything that holds it lasts. */
export const SLOT_GRACE_MS = 30_000;
/** A client is asked to come back after this time when the table can't answer. */
const RETRY_AFTER_SECONDS = 5;
/** The same where somebody else's stream or long poll has to end first. */
const CROWDED_RETRY_SECONDS = 15;
const MAX_WAIT_SECONDS = 25;
const MAX_LIMIT = 500;
const DEFAULT_LIMIT = 100;
const MAX_BODY_BYTES = 10_000;
/** No id of an account is longer, and no key of the table may be much longer. */
const MAX_ACCOUNT_ID = 200;

/**
 * Makes the app. Every answer has an `x-request-id`; whatever is not what was asked for is a problem document
 * ({@link problem}). Throws when the key is empty.
 */
export function createApi(deps: ApiDeps): Hono<ApiEnv> {
  if (deps.apiKey === '') throw new Error('The API key must not be empty.');
  const { table, log, regions } = deps;
  const feed: FeedDeps & CellFeedDeps = {
    table,
    log,
    regions,
    feed: createCellFeed(table, deps.now),
    growth: deps.growth,
    now: deps.now,
    pace: {
      recheckMs: deps.growth ? HINTED_RECHECK_MS : RECHECK_MS,
      heartbeatMs: HEARTBEAT_MS,
      streamMs: STREAM_MS,
      retryMs: RETRY_MS,
      waitMs: MAX_WAIT_SECONDS * 1000,
      ...deps.pace,
    },
  };
  const app = new Hono<ApiEnv>();

  app.use(requestId());
  app.use(async (c, next) => {
    c.header('cache-control', 'no-store');
    // Customers' texts are in the answers: nobody shall take them for anything but the data they are.
    c.header('x-content-type-options', 'nosniff');
    await next();
  });
  app.notFound((c) => problem(c, 'not-found', { detail: 'There is no such resource.' }));
  app.onError((cause, c) => {
    deps.onError?.(cause, about(c));
    if (cause instanceof TableError) {
      return problem(c, 'unavailable', {
        detail: 'The store did not answer. Nothing is lost; ask again.',
        headers: { 'retry-after': String(RETRY_AFTER_SECONDS) },
      });
    }
    return problem(c, 'internal', { detail: 'The fault was recorded under the id of this request.' });
  });

  app.get('/healthz', (c) => c.json({ status: 'ok' }));

  app.get('/v1/event-types', query(z.strictObject({})), (c) => {
    c.header('cache-control', 'public, max-age=3600');
    return c.json({
      types: eventTypes.map((type) => ({
        type,
        when: catalogue[type].when,
        schema: `/v1/event-types/${type}/schema`,
      })),
    });
  });

  app.get('/v1/event-types/:type/schema', query(z.strictObject({})), (c) => {
    const found = dataSchemaOf(c.req.param('type'));
    if (!found) return problem(c, 'not-found', { detail: 'There is no such event type.' });
    return c.body(JSON.stringify(found), 200, {
      'content-type': 'application/schema+json',
      'cache-control': 'public, max-age=3600',
    });
  });

  app.use('/v1/*', requireKey(deps.apiKey));
  app.use(
    methodNotAllowed({
      app,
      onMethodNotAllowed: (c, methods) =>
        problem(c, 'method-not-allowed', {
          detail: `Allowed here: ${methods.join(', ')}.`,
          headers: { allow: methods.join(', ') },
        }),
    }),
  );

  /** Puts the account into the context, or answers 404. */
  const account: MiddlewareHandler<ApiEnv> = async (c, next) => {
    const id = c.req.param('id') ?? '';
    const found = id.length > MAX_ACCOUNT_ID ? undefined : await findAccount(table, regions, id);
    if (!found) return unknownAccount(c);
    c.set('account', found);
    c.set('log', found);
    return next();
  };

  /** Puts the region's own log into the context, or answers 404. */
  const region: MiddlewareHandler<ApiEnv> = async (c, next) => {
    const ref = cellLog(c.req.param('id') ?? '');
    if (!regions.includes(ref.region)) return noLog(c, ref);
    c.set('log', ref);
    return next();
  };

  for (const [path, whose] of [
    ['/v1/accounts/:id/events', account],
    ['/v1/regions/:id/events', region],
  ] as const) {
    app.get(path, whose, query(EventsQuery), async (c) => {
      const { wait, ...asked } = c.req.valid('query');
      const ref = c.get('log');
      const waitMs = Math.min(wait * 1000, feed.pace.waitMs);
      await using hold = holdOf(c, waitMs);
      const page = await readPage(feed, ref, { ...asked, waitMs, mayWait: hold.take }, c.req.raw.signal);
      if (!page) return noLog(c, ref);
      if (page.kind === 'gone') return cursorGone(c, page);
      if (page.kind === 'crowded') return tooManyWaiting(c);
      const { next, head, observedThrough } = page;
      const observed = isCell(ref) ? {} : { observedThrough: instant(observedThrough) };
      const rest = JSON.stringify({ next, head, ...observed });
      // Spliced in as they are stored: whoever keeps or compares envelopes gets the same bytes on every way.
      return c.body(`{"events":[${page.events.join(',')}],${rest.slice(1)}`, 200, {
        'content-type': 'application/json',
      });
    });

    app.get(`${path}/stream`, whose, query(StreamQuery), async (c) => {
      const { after, types } = c.req.valid('query');
      const given = resumeAt(c, after, parseCursor, CURSOR_RULE);
      if (given instanceof Response) return given;
      const ref = c.get('log');
      const place = await locateStream(log, ref, given);
      if (!place) return noLog(c, ref);
      if ('kind' in place) return cursorGone(c, place);
      return eventStream(c, (abort) => followLog(feed, ref, place, types, abort));
    });
  }

  app.get('/v1/events/stream', query(CellStreamQuery), async (c) => {
    const { after, types } = c.req.valid('query');
    const given = resumeAt(c, after, (text) => text, CELL_CURSOR_RULE);
    if (given instanceof Response) return given;
    const cursor = given === undefined ? undefined : parsePlaces(feed, given);
    if (given !== undefined && !cursor) {
      const field = after === given ? 'after' : 'Last-Event-ID';
      return problem(c, 'bad-parameter', { field, detail: `${field} ${CELL_CURSOR_RULE}.` });
    }
    const start = await locateFeed(feed, cursor, 'head');
    if (start.kind === 'gone') return cursorGone(c, start);
    return eventStream(c, (abort) => followFeed(feed, start.places, { accounts: null, types }, abort));
  });

  app.get('/v1/accounts/:id/status', account, query(z.strictObject({})), async (c) => {
    const ref = c.get('account');
    const report = await reportAccount({ table, log }, ref);
    return report ? c.json(report) : unknownAccount(c);
  });

  app.post(
    '/v1/accounts/:id/confirm',
    account,
    query(z.strictObject({})),
    bodyLimit({
      maxSize: MAX_BODY_BYTES,
      onError: (c) =>
        problem(c, 'too-large', { detail: `The body must be no larger than ${MAX_BODY_BYTES} bytes.` }),
    }),
    async (c) => {
      const asked = await bodyOf(c, ConfirmBody);
      if (asked instanceof Response) return asked;
      const outcome = await confirmAccount({ table, log, now: deps.now }, c.get('account'), asked);
      switch (outcome.kind) {
        case 'confirmed':
          return c.json({ confirmed: outcome.was });
        case 'nothing to confirm':
          return problem(c, 'nothing-to-confirm', {
            detail: `The account is ${outcome.state}: it waits for nobody.`,
          });
        case 'unknown account':
          return unknownAccount(c);
      }
    },
  );

  app.get('/v1/accounts/:id/jobs', account, query(JobsQuery), async (c) => {
    const { after: cursor, limit, ...given } = c.req.valid('query');
    const filter = toFilter(given);
    if (cursor && JSON.stringify(cursor.filter) !== JSON.stringify(filter)) {
      const detail = 'after must be the `next` of a page with the same filter.';
      return problem(c, 'bad-parameter', { field: 'after', detail });
    }
    const page = await listJobs({ table, log }, c.get('account'), { filter, limit, cursor });
    if (!page) return unknownAccount(c);
    if (page.kind === 'gone') return cursorGone(c, page);
    return c.json({ jobs: page.jobs, next: page.next, asOf: page.asOf });
  });

  app.get('/v1/accounts/:id/jobs/:jobNumber', account, query(z.strictObject({})), async (c) => {
    const text = c.req.param('jobNumber');
    if (!/^[1-9]\d{0,11}$/.test(text)) {
      const detail = 'jobNumber must be a whole number from 1 to 999999999999.';
      return problem(c, 'bad-parameter', { field: 'jobNumber', detail });
    }
    const found = await readJob({ table, log }, c.get('account'), Number(text));
    return found ? c.json(found) : problem(c, 'not-found', { detail: 'There is no such job.' });
  });

  return app;

  /**
   * A stream as a response, which holds a slot until it ends. What it is made from is opened when it is read, and for a HEAD
   * request not at all.
   */
  async function eventStream(
    c: Context<ApiEnv>,
    make: (abort: AbortSignal) => AsyncGenerator<string>,
  ): Promise<Response> {
    const headers = {
      'content-type': 'text/event-stream',
      // Proxies that collect answers would hold the events back.
      'x-accel-buffering': 'no',
    };
    if (c.req.method === 'HEAD') return c.body(null, 200, headers);
    const hold = holdOf(c, feed.pace.streamMs);
    if (!(await hold.take())) return tooManyWaiting(c);
    const body = toBody(make, {
      onFault: hold.report,
      onEnd: () => hold[Symbol.asyncDispose](),
      cutMs: feed.pace.streamMs + CUT_AFTER_MS,
    });
    return c.body(body, 200, headers);
  }

  /** The slot of a request, once it takes one: true when it has one, or needs none. Giving it back never rejects. */
  function holdOf(c: Context<ApiEnv>, ms: number) {
    const request = about(c);
    const keyId = c.get('keyId');
    let held: Slot | undefined;
    const report = (cause: unknown) => deps.onError?.(cause, request);
    return {
      report,
      async take(): Promise<boolean> {
        held ??= await deps.slots?.take(keyId, ms + SLOT_GRACE_MS);
        return held !== undefined || deps.slots === undefined;
      },
      // What could not be given back is free again when it has expired.
      [Symbol.asyncDispose]: async () => held?.giveBack().catch(report),
    };
  }

  function tooManyWaiting(c: Context): Response {
    return problem(c, 'too-many-waiting', {
      detail: `At most ${deps.slots?.perKey} streams and waiting long polls at a time: come back when one has ended.`,
      headers: { 'retry-after': String(CROWDED_RETRY_SECONDS) },
    });
  }
}

/** Lets only those pass who know the key. Digests are compared, so neither content nor length shows in the time it takes. */
function requireKey(apiKey: ApiDeps['apiKey']): MiddlewareHandler<ApiEnv> {
  return async (c, next) => {
    const expected = typeof apiKey === 'string' ? apiKey : await apiKey();
    const shown = /^Bearer +(\S+) *$/i.exec(c.req.header('authorization') ?? '')?.[1];
    if (shown !== undefined && timingSafeEqual(digest(shown), digest(expected))) {
      c.set('keyId', BOOTSTRAP_KEY);
      return next();
    }
    const error = shown === undefined ? '' : ', error="invalid_token"';
    return problem(c, 'unauthorized', {
      detail: 'Send the API key as `Authorization: Bearer <key>`.',
      headers: { 'www-authenticate': `Bearer realm="jobwire"${error}` },
    });
  };
}

function digest(text: string): Buffer {
  return createHash('sha256').update(text).digest();
}

// Parameters. Each rule is the rest of a sentence that begins with the parameter's name.

const CURSOR_RULE =
  'must be a cursor (`<epoch>.<number>`) as found in `next`, in `head` or in the `id:` of a stream, or a bare number';
const CELL_CURSOR_RULE = 'must be an `id:` of this stream';

const one = z.string('must be given once');

const wholeNumber = (lowest: number, highest: number) =>
  one
    .refine(
      (text) => /^\d{1,6}$/.test(text) && lowest <= Number(text) && Number(text) <= highest,
      `must be a whole number from ${lowest} to ${highest}`,
    )
    .transform(Number);

const textUpTo = (characters: number) =>
  one.refine(
    (text) => text.length > 0 && text.length <= characters,
    `must be 1 to ${characters} characters long`,
  );

/** A cursor read by `decode`, which gives `undefined` for what is none. */
const cursorOf = <T>(decode: (text: string) => T | undefined, rule: string) =>
  one.transform((text, context): T => {
    const decoded = decode(text);
    if (decoded !== undefined) return decoded;
    context.addIssue(rule);
    return z.NEVER;
  });

/** A pattern that can't match anything is a slip of the pen, and would be a feed that stays silent forever. */
const typePatterns = one.transform((text, context): string[] => {
  const patterns = text.split(',');
  const futile = patterns.find((pattern) => !eventTypes.some((type) => typeMatches(type, [pattern])));
  if (futile === undefined) return [...new Set(patterns)];
  context.addIssue(
    `must be event types or beginnings of them closed by *, separated by commas; none matches ${JSON.stringify(futile.slice(0, 100))} (see /v1/event-types)`,
  );
  return z.NEVER;
});

const EventsQuery = z.strictObject({
  after: cursorOf(parseCursor, CURSOR_RULE).optional(),
  limit: wholeNumber(1, MAX_LIMIT).default(DEFAULT_LIMIT),
  types: typePatterns.optional(),
  wait: wholeNumber(0, MAX_WAIT_SECONDS).default(0),
});

const StreamQuery = z.strictObject({
  after: cursorOf(parseCursor, CURSOR_RULE).optional(),
  types: typePatterns.optional(),
});

/** The cursor is read when the regions are known. */
const CellStreamQuery = z.strictObject({
  after: one.optional(),
  types: typePatterns.optional(),
});

/** What may be said with a confirmation; see {@link confirmAccount}. */
const ConfirmBody = z.strictObject({
  upstreamId: z.int('must be a whole number: the id the service gives the account').positive().optional(),
});

const JOB_FILTERS = ['status', 'orderNumber', 'dueBefore'] as const;

const JobsQuery = z
  .strictObject({
    after: cursorOf(decodeJobsCursor, 'must be the `next` of a page of jobs').optional(),
    limit: wholeNumber(1, MAX_LIMIT).default(DEFAULT_LIMIT),
    status: textUpTo(200).optional(),
    orderNumber: textUpTo(500).optional(),
    dueBefore: one.pipe(z.iso.date('must be a day (YYYY-MM-DD)')).optional(),
  })
  .superRefine((given, context) => {
    const [first, second] = JOB_FILTERS.filter((name) => given[name] !== undefined);
    if (second === undefined) return;
    context.addIssue({ code: 'custom', path: [second], message: `can't be combined with ${first}` });
  });

function toFilter(given: { status?: string; orderNumber?: string; dueBefore?: string }): JobFilter {
  if (given.status !== undefined) return { by: 'status', status: given.status };
  if (given.orderNumber !== undefined) return { by: 'orderNumber', orderNumber: given.orderNumber };
  if (given.dueBefore !== undefined) return { by: 'dueBefore', day: given.dueBefore };
  return { by: 'none' };
}

/** Reads the query by a strict schema; what does not fit is refused by the name of the parameter. */
function query<T extends z.ZodObject>(schema: T) {
  return validator('query', (value, c) => {
    const parsed = schema.safeParse(value);
    if (parsed.success) return parsed.data;
    const [issue] = parsed.error.issues;
    if (issue?.code === 'unrecognized_keys') {
      const field = String(issue.keys[0]).slice(0, 100);
      const known = Object.keys(schema.shape).join(', ') || 'none';
      return problem(c, 'bad-parameter', {
        field,
        detail: `${field} is not a parameter here. There are: ${known}.`,
      });
    }
    const field = String(issue?.path[0] ?? '');
    return problem(c, 'bad-parameter', { field, detail: `${field} ${issue?.message ?? 'is not valid'}.` });
  });
}

/** A JSON body read by a strict schema; none at all is an empty one. What does not fit is refused by the field's name. */
async function bodyOf<T extends z.ZodObject>(c: Context, schema: T): Promise<z.infer<T> | Response> {
  const text = await c.req.text();
  let value: unknown;
  try {
    value = text.trim() === '' ? {} : JSON.parse(text);
  } catch {
    return problem(c, 'bad-body', { detail: 'The body must be JSON.' });
  }
  const parsed = schema.safeParse(value);
  if (parsed.success) return parsed.data;
  const [issue] = parsed.error.issues;
  if (issue?.code === 'unrecognized_keys') {
    const field = String(issue.keys[0]).slice(0, 100);
    const known = Object.keys(schema.shape).join(', ');
    return problem(c, 'bad-body', { field, detail: `${field} is not a field here. There are: ${known}.` });
  }
  const field = issue?.path.map(String).join('.') ?? '';
  if (field === '') return problem(c, 'bad-body', { detail: 'The body must be a JSON object.' });
  return problem(c, 'bad-body', { field, detail: `${field} ${issue?.message ?? 'is not valid'}.` });
}

/** Where a stream begins: the browser's Last-Event-ID is newer than the `after` it was opened with. */
function resumeAt<T>(
  c: Context,
  after: T | undefined,
  decode: (text: string) => T | undefined,
  rule: string,
): T | undefined | Response {
  const header = c.req.header('last-event-id');
  if (header === undefined || header === '') return after;
  const field = 'Last-Event-ID';
  return decode(header) ?? problem(c, 'bad-parameter', { field, detail: `${field} ${rule}.` });
}

// Answers

function unknownAccount(c: Context): Response {
  return problem(c, 'not-found', { detail: 'There is no such account.' });
}

function noLog(c: Context, ref: AccountRef): Response {
  if (!isCell(ref)) return unknownAccount(c);
  return problem(c, 'not-found', { detail: 'There is no such region, or it has no accounts yet.' });
}

function cursorGone(c: Context, gone: Gone): Response {
  const { earliest, head, restored } = gone;
  if (restored !== undefined) {
    return problem(c, 'cursor-gone', {
      detail:
        'The log was restored from a backup that is older than the cursor. Go on from `restored` (all that was said since), and read the jobs anew, for what was said in between is known here no more.',
      members: { restored, earliest, head },
    });
  }
  return problem(c, 'cursor-gone', {
    detail:
      'The cursor is of another epoch, beyond the head, or older than what is kept. Go on from `earliest` (all there still is) or from `head` (what comes), and read the jobs anew if nothing may be missed.',
    members: { earliest, head },
  });
}

function about(c: Context<ApiEnv>): { requestId: string; path: string } {
  return { requestId: c.get('requestId'), path: c.req.path };
}

function instant(ms: number | null): string | null {
  return ms === null ? null : new Date(ms).toISOString();
}
