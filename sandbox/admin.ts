// The sandbox's control panel over HTTP, on a port of its own: accounts, jobs, faults, happenings, the clock and the request log.

import type { ServerResponse } from 'node:http';
import { setImmediate } from 'node:timers/promises';
import { type Context, Hono } from 'hono';
import * as z from 'zod';
import { knownAccount, ruleSchema, strictly, UnknownAccountError } from './http/faults.ts';
import {
  type Answer,
  answerUnexpected,
  json,
  pathOf,
  problem,
  readBody,
  type SandboxEnv,
  send,
  TOO_LARGE,
} from './http/responses.ts';
import { OPERATIONS } from './http/traffic.ts';
import { sentence } from './http/validation-messages.ts';
import type { Service } from './service.ts';
import type { SandboxClock } from './simulation/clock.ts';
import { happeningSchema, type PlannedHappening } from './simulation/event-schemas.ts';
import { LONGEST_ADVANCE_SECONDS } from './simulation/scenario.ts';
import { REGIONS, type RegionCode } from './world/regions.ts';
import type { SandboxAccount } from './world/world.ts';

/** One thing that the panel can do. `body` says what it takes, in words. */
interface Route {
  method: 'GET' | 'POST' | 'DELETE';
  path: string;
  does: string;
  body?: string;
  handle: (c: Context<SandboxEnv>) => Answer | Promise<Answer>;
}

/**
 * Makes the control panel; `GET /` lists what it can do. With a clock, which then is the world's, it sets that forward.
 *
 * It has no key: whoever reaches its port may use it, except web pages, which could reach it from the user's own browser: what
 * carries an Origin is refused, and so is what was sent to a name that is not the panel's own, since any name of the web can be
 * made to lead here.
 */
export function createAdminApp(
  service: Service,
  clock?: SandboxClock,
  longestAdvanceSeconds = LONGEST_ADVANCE_SECONDS,
): Hono<SandboxEnv> {
  const { world, faults, requests, tokens, agenda } = service;
  const routes: Route[] = [
    {
      method: 'GET',
      path: '/',
      does: 'What the control panel can do.',
      handle: () =>
        json({
          routes: routes.map(({ method, path, does, body }) => ({
            method,
            path,
            does,
            ...(body && { body }),
          })),
          jobActions: ACTION_WORDS,
        }),
    },
    {
      method: 'GET',
      path: '/accounts',
      does: 'All accounts with their credentials and how many jobs are open.',
      handle: () =>
        json(
          world.accounts().map(({ region, name, id, clientId, clientSecret, activeCount, credentials }) => ({
            region,
            name,
            id,
            clientId,
            clientSecret,
            credentials: credentials.map(({ userId: _, ...one }) => one),
            activeJobs: activeCount,
          })),
        ),
    },
    {
      method: 'GET',
      path: '/requests',
      does: 'The latest requests; ?operation=, ?region= and ?account= narrow them.',
      handle: (c) => {
        const { account, ...filter } = queryOf(c, requestFilterSchema);
        const found = account === undefined ? {} : { account: named(account, filter.region).name };
        return json(requests.list({ ...filter, ...found }));
      },
    },
    {
      method: 'DELETE',
      path: '/requests',
      does: 'Forgets the requests.',
      handle: () => {
        requests.clear();
        return json({});
      },
    },
    {
      method: 'POST',
      path: '/tokens/revoke',
      does: 'Forgets all tokens, or those of a region or an account.',
      body: '{ region?, account? }',
      handle: async (c) => {
        const { account: key, region } = revokeSchema.parse(await bodyOf(c));
        if (key === undefined) return json({ revoked: tokens.revoke({ ...(region && { region }) }) });
        const account = named(key, region);
        return json({ revoked: tokens.revoke({ region: account.region, account: account.name }) });
      },
    },
    {
      method: 'GET',
      path: '/faults',
      does: 'The rules in force, and how many requests each has struck.',
      handle: () =>
        json(
          faults.list().map((rule) => ({
            ...rule,
            match: { ...rule.match, ...(rule.match.path && { path: rule.match.path.source }) },
            until: endOf(rule.id),
          })),
        ),
    },
    {
      method: 'POST',
      path: '/faults',
      does: 'Puts a rule in force, for so many seconds or until it is ended.',
      body: '{ match?, fault, forSeconds? }, as { "match": { "operation": "activeJobs" }, "fault": { "kind": "status", "status": 503 } }',
      handle: async (c) => {
        const { forSeconds, ...rule } = timedRuleSchema.parse(await bodyOf(c));
        const { account, region } = rule.match;
        if (account !== undefined) named(account, region);
        const until = forSeconds === undefined ? null : world.now() + forSeconds * 1000;
        return json({ id: agenda.putRule(rule, until) }, 201);
      },
    },
    {
      method: 'DELETE',
      path: '/faults',
      does: 'Ends all rules.',
      handle: () => {
        faults.clear();
        return json({});
      },
    },
    {
      method: 'DELETE',
      path: '/faults/:id',
      does: 'Ends a rule.',
      handle: (c) =>
        faults.remove(c.req.param('id') ?? '')
          ? json({})
          : problem(404, 'There is no such fault.', pathOf(c)),
    },
    {
      method: 'GET',
      path: '/happenings',
      does: 'What was planned: what is to come, in force and over.',
      handle: () => json(agenda.list().map(shownHappening)),
    },
    {
      method: 'POST',
      path: '/happenings',
      does: 'Plans what a scenario file may say, counted from now; at once without afterSeconds.',
      body: '{ do: fault | swapCredentials | rotateSecret | revokeTokens | addStatus, afterSeconds?, forSeconds?, … }, as { "do": "addStatus", "name": "Second press", "stage": "production" }',
      handle: async (c) => {
        const planned = agenda.plan(happeningSchema.parse(await bodyOf(c)), world.now());
        agenda.advanceTo(world.now());
        return json(shownHappening(planned), 201);
      },
    },
    {
      method: 'DELETE',
      path: '/happenings/:id',
      does: 'Ends what is in force, or sees to it that it never comes.',
      handle: (c) =>
        agenda.end(c.req.param('id') ?? '')
          ? json({})
          : problem(404, 'There is no such happening that could end.', pathOf(c)),
    },
    {
      method: 'GET',
      path: '/clock',
      does: 'What time it is in the sandbox.',
      handle: () => json(time()),
    },
    {
      method: 'POST',
      path: '/clock/advance',
      does: 'Sets the sandbox clock forward, and lets happen what happens meanwhile. Other requests are answered while it goes on; it ends when its own is given up.',
      body: `{ seconds }, at most ${longestAdvanceSeconds}`,
      handle: async (c) => {
        const { seconds } = strictly({ seconds: z.number().positive().max(longestAdvanceSeconds) }).parse(
          await bodyOf(c),
        );
        if (!clock) return problem(409, 'The clock is not the sandbox’s own.', pathOf(c));
        await advanceInSlices(clock, seconds * 1000, c.env?.outgoing);
        return json(time());
      },
    },
    {
      method: 'GET',
      path: '/jobs',
      does: 'The active list of an account: ?region=&account=, by name, client id or upstream id.',
      handle: (c) => {
        const { region, account } = queryOf(c, accountSchema);
        const found = named(account, region);
        return json(found.activeJobNumbers().map((jobNumber) => found.jobListEntry(jobNumber)));
      },
    },
    {
      method: 'POST',
      path: '/jobs',
      does: 'Makes a job, which stands still unless it is told to live.',
      body: `{ region, account, …fields }; fields: ${Object.keys(newJobShape).join(', ')}`,
      handle: async (c) => {
        const { region, account, ...fields } = strictly({ ...accountSchema.shape, ...newJobShape }).parse(
          await bodyOf(c),
        );
        const owner = named(account, region);
        return json({ jobNumber: refusable(() => owner.createJob(fields)) }, 201);
      },
    },
    {
      method: 'GET',
      path: '/jobs/:region/:jobNumber',
      does: 'A job as list and detail show it, and of its lines how often their artwork was asked for, and why it was not found.',
      handle: (c) => {
        const { region } = regionSchema.parse(c.req.param());
        const found = world.jobOf(region, Number(c.req.param('jobNumber')));
        return found
          ? json(shownJob(found.account, found.job.jobNumber))
          : problem(404, 'There is no such job.', pathOf(c));
      },
    },
    {
      method: 'POST',
      path: '/jobs/:region/:jobNumber/:action',
      does: 'Moves a job; see jobActions.',
      handle: async (c) => {
        const { region } = regionSchema.parse(c.req.param());
        const jobNumber = Number(c.req.param('jobNumber'));
        const account = world.jobOf(region, jobNumber)?.account;
        if (!account) return problem(404, 'There is no such job.', pathOf(c));
        const act = ACTIONS[c.req.param('action') ?? ''];
        if (!act) {
          return problem(404, `The actions are: ${Object.keys(ACTIONS).join(', ')}.`, pathOf(c));
        }
        const body = await bodyOf(c);
        refusable(() => act.act(account, jobNumber, body, service));
        return json(shownJob(account, jobNumber));
      },
    },
  ];

  const time = () => ({
    now: new Date(world.now()).toISOString(),
    canBeSetForward: clock !== undefined,
    ...(clock && { standing: clock.standing }),
  });

  /** Sets the clock forward bit by bit, so that the process does not stand still, until its request is given up. */
  async function advanceInSlices(
    own: SandboxClock,
    ms: number,
    outgoing: ServerResponse | undefined,
  ): Promise<void> {
    let sliceMs = 1000;
    for (let leftMs = ms; leftMs > 0 && !outgoing?.destroyed; ) {
      const startedAt = performance.now();
      const nextMs = Math.min(leftMs, sliceMs);
      leftMs -= nextMs;
      own.advance(nextMs);
      agenda.advanceTo(world.now());
      const tookMs = performance.now() - startedAt;
      if (tookMs > MOST_SLICE_MS) sliceMs = Math.max(1, sliceMs / 2);
      if (tookMs < MOST_SLICE_MS / 4) sliceMs *= 2;
      await setImmediate();
    }
  }

  /** The account that is meant. Throws Refusal when there is none. */
  function named(key: string | number, region?: RegionCode): SandboxAccount {
    try {
      return knownAccount(world, key, region);
    } catch (cause) {
      throw new Refusal(`account ${cause instanceof Error ? cause.message : ''}.`, { cause });
    }
  }

  function endOf(ruleId: string): string | null {
    const until = agenda.endOfRule(ruleId);
    return until === null ? null : new Date(until).toISOString();
  }

  const app = new Hono<SandboxEnv>();
  app.use(async (c, next) => {
    if (c.req.header('origin') !== undefined) {
      return send(c, problem(403, 'Web pages may not use the control panel.', pathOf(c)));
    }
    if (!isOwnHost(c)) {
      return send(c, problem(403, 'The control panel answers to its own address only.', pathOf(c)));
    }
    agenda.advanceTo(world.now());
    return next();
  });
  app.onError((error, c) => {
    if (error instanceof z.ZodError) {
      const [first] = error.issues;
      const errors: Record<string, string[]> = {};
      for (const issue of error.issues) {
        const field = issue.path.join('.') || 'body';
        errors[field] = [...(errors[field] ?? []), sentence(issue, 'the body')];
      }
      return send(c, problem(400, sentence(first, 'the body'), pathOf(c), errors));
    }
    if (error instanceof Refusal || error instanceof UnknownAccountError) {
      return send(c, problem(400, error.message, pathOf(c)));
    }
    if (error instanceof TooLargeError) return send(c, problem(413, TOO_LARGE, pathOf(c)));
    return answerUnexpected(error, c);
  });
  for (const { method, path, handle } of routes) {
    app.on(method, path, async (c) => send(c, await handle(c)));
  }
  app.notFound((c) => send(c, problem(404, 'There is no such thing; GET / lists what there is.', pathOf(c))));
  return app;
}

/** Whether a request was sent to this machine by a name of its own: a loopback one, or the address that it arrived at. */
function isOwnHost(c: Context<SandboxEnv>): boolean {
  const host = `http://${c.req.header('host') ?? new URL(c.req.url).host}`;
  if (!URL.canParse(host)) return false;
  const name = new URL(host).hostname.replace(/^\[|\]$/g, '');
  const arrivedAt = c.env?.incoming?.socket.localAddress?.replace(/^::ffff:/, '');
  return name === 'localhost' || name === '::1' || /^127(\.\d+){3}$/.test(name) || name === arrivedAt;
}

/** So long, in real time, a clock that is set forward keeps others waiting. */
const MOST_SLICE_MS = 20;

/** A job, if it is still there, in both views, and how the artwork of its lines (from 0) stands. */
function shownJob(account: SandboxAccount, jobNumber: number) {
  const lines = (account.job(jobNumber)?.lines ?? []).map((line, index) => ({ ...line, index }));
  return {
    list: account.jobListEntry(jobNumber),
    detail: account.jobDetail(jobNumber),
    artwork: lines
      .filter(({ artworkUrl, needsArtwork }) => artworkUrl !== null || needsArtwork)
      .map(({ index, artworkUrl: url, artworkTries, artworkReason }) => ({
        line: index,
        url: url === null ? null : shownUrl(url),
        tries: artworkTries,
        reason: url === null ? 'Nobody said where it is.' : artworkReason,
      })),
  };
}

/** An address without what may be a secret: who asks, and what is asked with. */
function shownUrl(text: string): string {
  const url = URL.parse(text);
  if (!url) return 'no address';
  return `${url.protocol}//${url.username || url.password ? '…@' : ''}${url.host}${url.pathname}${url.search && '?…'}`;
}

function shownHappening({ happening, at, until, ...rest }: PlannedHappening) {
  return {
    ...rest,
    at: new Date(at).toISOString(),
    until: until === null ? null : new Date(until).toISOString(),
    // A regular expression is no JSON.
    happening: JSON.parse(
      JSON.stringify(happening, (_, value) => (value instanceof RegExp ? value.source : value)),
    ),
  };
}

const trackingSchema = z.array(
  z
    .strictObject({ trackingNumber: z.string().nullish(), trackingLink: z.string().nullish() })
    .transform(({ trackingNumber = null, trackingLink = null }) => ({ trackingNumber, trackingLink })),
);
const text = z.string().nullable();
const when = z.union([z.number(), z.string()]);
const jobShape = {
  status: text.optional(),
  masterJobStatus: text.optional(),
  jobStatus: text.optional(),
  description: text.optional(),
  comments: text.optional(),
  orderNumber: text.optional(),
  originCode: text.optional(),
  creator: text.optional(),
  userId: z.int().optional(),
  dateIn: when.optional(),
  dateDue: when.nullable().optional(),
  dateOut: when.nullable().optional(),
  mustDate: z.boolean().optional(),
  invoiceNumber: text.optional(),
  orderGroup: text.optional(),
  orderGroupSequence: z.int().nullable().optional(),
  isCancelable: z.boolean().optional(),
  location: strictly({ name: text, timezone: text }).nullable().optional(),
  tracking: trackingSchema.optional(),
  client: text.optional(),
  tags: z.array(z.string()).optional(),
  deliveryOption: text.optional(),
};
const jobSchema = strictly(jobShape);
const newJobShape = { ...jobShape, jobNumber: z.int().min(1).max(1e9).optional() };
const accountKey = z.union([z.string(), z.int()], { error: 'must be a name, a client id or an upstream id' });
const accountSchema = strictly({ region: z.enum(REGIONS), account: accountKey });
const regionSchema = z.object({ region: z.enum(REGIONS) });
const revokeSchema = strictly({ region: z.enum(REGIONS).optional(), account: accountKey.optional() });
const timedRuleSchema = strictly({
  ...ruleSchema.shape,
  forSeconds: z.number().positive().max(1e9).optional(),
});
const requestFilterSchema = strictly({
  operation: z.enum(OPERATIONS).optional(),
  region: z.enum(REGIONS).optional(),
  account: z.string().optional(),
});
const statusSchema = strictly({ status: z.string().optional() });

/** What can be done to a job by hand: what it takes, and how it is done. */
interface Action {
  takes: string;
  act: (account: SandboxAccount, jobNumber: number, body: Record<string, unknown>, service: Service) => void;
}

const ACTIONS: Record<string, Action> = {
  edit: {
    takes: '{ …fields }',
    act: (account, job, body) => account.edit(job, jobSchema.parse(body)),
  },
  status: {
    takes: '{ status } or { master?, detail? }',
    act: (account, job, body) => {
      const { status, master, detail } = z
        .strictObject({ status: text.optional(), master: text.optional(), detail: text.optional() })
        .parse(body);
      account.setStatus(job, status === undefined ? { master, detail } : status);
    },
  },
  'line-status': {
    takes: '{ line, status }',
    act: (account, job, body) => {
      const { line, status } = strictly({ line: z.int().min(0), status: text }).parse(body);
      account.setLineStatus(job, line, status);
    },
  },
  artwork: {
    takes: '{ line, url }: where the artwork of a line is; it is asked for at once',
    act: (account, job, body, { ordered }) => {
      const { line, url } = strictly({ line: z.int().min(0), url: z.string() }).parse(body);
      account.supplyArtwork(job, line, url);
      ordered?.(account, job);
    },
  },
  live: {
    takes: '{}: it lives from now on as if it had been ordered now',
    act: (account, job, _, { ordered }) => ordered?.(account, job),
  },
  dispatch: {
    takes: '{ dateOut?, tracking?, status? }',
    act: (account, job, body) =>
      account.dispatch(
        job,
        z
          .strictObject({
            dateOut: when.optional(),
            tracking: trackingSchema.optional(),
            status: z.string().optional(),
          })
          .parse(body),
      ),
  },
  'clear-date-out': { takes: '{}', act: (account, job) => account.clearDateOut(job) },
  tracking: {
    takes: '{ tracking: [{ trackingNumber?, trackingLink? }] }',
    act: (account, job, body) =>
      account.setTracking(job, strictly({ tracking: trackingSchema }).parse(body).tracking),
  },
  invoice: {
    takes: '{ invoiceNumber?, file? }',
    act: (account, job, body) =>
      account.invoice(
        job,
        strictly({ invoiceNumber: z.string().optional(), file: z.boolean().optional() }).parse(body),
      ),
  },
  close: {
    takes: '{ status? }',
    act: (account, job, body) => account.close(job, statusSchema.parse(body)),
  },
  cancel: {
    takes: '{ status? }',
    act: (account, job, body) => account.cancel(job, statusSchema.parse(body)),
  },
  reopen: {
    takes: '{ status? }',
    act: (account, job, body) => account.reopen(job, statusSchema.parse(body)),
  },
  lock: {
    takes: '{ reason? }',
    act: (account, job, body) =>
      account.lock(job, strictly({ reason: z.string().optional() }).parse(body).reason),
  },
  unlock: { takes: '{}', act: (account, job) => account.unlock(job) },
  hide: { takes: '{}: it vanishes from the lists', act: (account, job) => account.hide(job) },
  unhide: { takes: '{}', act: (account, job) => account.unhide(job) },
  remove: { takes: '{}: it is gone for good', act: (account, job) => account.remove(job) },
};

const ACTION_WORDS = Object.fromEntries(Object.entries(ACTIONS).map(([name, { takes }]) => [name, takes]));

/** Something that can't be done as it was asked for. */
class Refusal extends Error {}

/** A body is larger than the panel takes. */
class TooLargeError extends Error {}

/** Does what the world refuses with an Error of no special kind, such as a job number that is taken. */
function refusable<T>(does: () => T): T {
  try {
    return does();
  } catch (cause) {
    if (cause instanceof Error && cause.constructor === Error)
      throw new Refusal(`${cause.message}.`, { cause });
    throw cause;
  }
}

/** The query as a schema has it; what is wrong is said of a parameter. */
function queryOf<T>(c: Context<SandboxEnv>, schema: z.ZodType<T>): T {
  const parsed = schema.safeParse(c.req.query());
  if (parsed.success) return parsed.data;
  throw new Refusal(`The query: ${sentence(parsed.error.issues[0], 'it')}`, { cause: parsed.error });
}

/** The JSON body as an object; `{}` when there is none. Throws TooLargeError as soon as it is known to be that. */
async function bodyOf(c: Context<SandboxEnv>): Promise<Record<string, unknown>> {
  const body = await readBody(c);
  if (body === undefined) throw new TooLargeError();
  if (body.trim() === '') return {};
  try {
    return z.record(z.string(), z.unknown()).parse(JSON.parse(body));
  } catch (cause) {
    throw new Refusal('The body is not a JSON object.', { cause });
  }
}
