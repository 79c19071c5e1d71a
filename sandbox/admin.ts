// The sandbox's control panel over HTTP, on its own port: accounts, jobs, faults, happenings, the clock and the request log.

import type { ServerResponse } from 'node:http';
import { setImmediate } from 'node:timers/promises';
import { type Context, Hono } from 'hono';
import * as z from 'zod';
import { knownAccount, ruleSchema, strictObject, UnknownAccountError } from './http/faults.ts';
import { type FreedomSettings, freedomSchema } from './http/freedom.ts';
import {
  type Answer,
  answerUnexpected,
  json,
  problem,
  readBody,
  requestPath,
  type SandboxEnv,
  send,
  TOO_LARGE,
} from './http/responses.ts';
import { OPERATIONS } from './http/traffic.ts';
import { formatIssue } from './http/validation-messages.ts';
import { JOB_ACTIONS, newJobShape } from './job-actions.ts';
import type { Service } from './service.ts';
import type { SandboxClock } from './simulation/clock.ts';
import { happeningSchema, type PlannedHappening } from './simulation/event-schemas.ts';
import { LONGEST_ADVANCE_SECONDS } from './simulation/scenario.ts';
import { REGIONS, type RegionCode } from './world/regions.ts';
import type { SandboxAccount } from './world/world.ts';

/** An operation of the panel. `body` describes its request body. */
interface Route {
  method: 'GET' | 'POST' | 'DELETE';
  path: string;
  does: string;
  body?: string;
  handle: (c: Context<SandboxEnv>) => Answer | Promise<Answer>;
}

/**
 * Creates the control panel; `GET /` lists its operations. With `clock`, which then is the world's, it can advance time.
 *
 * The panel has no key: every local client may use it, except web pages. It rejects requests with an Origin header, and
 * requests to a host name other than its own, because any DNS name can resolve to this address.
 */
export function createAdminApp(
  service: Service,
  clock?: SandboxClock,
  longestAdvanceSeconds = LONGEST_ADVANCE_SECONDS,
): Hono<SandboxEnv> {
  const { world, faults, freedom, requests, tokens, agenda } = service;
  const routes: Route[] = [
    {
      method: 'GET',
      path: '/',
      does: 'Operations of the control panel.',
      handle: () =>
        json({
          routes: routes.map(({ method, path, does, body }) => ({
            method,
            path,
            does,
            ...(body && { body }),
          })),
          jobActions: Object.fromEntries(
            Object.entries(JOB_ACTIONS).map(([name, { takes }]) => [name, takes]),
          ),
        }),
    },
    {
      method: 'GET',
      path: '/accounts',
      does: 'All accounts with their credentials and number of open jobs.',
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
      does: 'The latest requests; ?operation=, ?region= and ?account= filter them.',
      handle: (c) => {
        const { account, ...filter } = parseQuery(c, requestFilterSchema);
        const found = account === undefined ? {} : { account: findAccount(account, filter.region).name };
        return json(requests.list({ ...filter, ...found }));
      },
    },
    {
      method: 'DELETE',
      path: '/requests',
      does: 'Clears the request log.',
      handle: () => {
        requests.clear();
        return json({});
      },
    },
    {
      method: 'POST',
      path: '/tokens/revoke',
      does: 'Revokes all tokens, or those of a region or an account.',
      body: '{ region?, account? }',
      handle: async (c) => {
        const { account: key, region } = revokeSchema.parse(await readBodyObject(c));
        if (key === undefined) return json({ revoked: tokens.revoke({ ...(region && { region }) }) });
        const account = findAccount(key, region);
        return json({ revoked: tokens.revoke({ region: account.region, account: account.name }) });
      },
    },
    {
      method: 'GET',
      path: '/faults',
      does: 'The active rules, with the number of requests matched and faulted.',
      handle: () =>
        json(
          faults.list().map((rule) => ({
            ...rule,
            match: { ...rule.match, ...(rule.match.path && { path: rule.match.path.source }) },
            until: ruleEnd(rule.id),
          })),
        ),
    },
    {
      method: 'POST',
      path: '/faults',
      does: 'Activates a rule, for a number of seconds or until it is deleted.',
      body: '{ match?, fault, forSeconds? }, as { "match": { "operation": "activeJobs" }, "fault": { "kind": "status", "status": 503 } }',
      handle: async (c) => {
        const { forSeconds, ...rule } = timedRuleSchema.parse(await readBodyObject(c));
        const { account, region } = rule.match;
        if (account !== undefined) findAccount(account, region);
        const until = forSeconds === undefined ? null : world.now() + forSeconds * 1000;
        return json({ id: agenda.putRule(rule, until) }, 201);
      },
    },
    {
      method: 'DELETE',
      path: '/faults',
      does: 'Deletes all rules.',
      handle: () => {
        faults.clear();
        return json({});
      },
    },
    {
      method: 'DELETE',
      path: '/faults/:id',
      does: 'Deletes a rule.',
      handle: (c) =>
        faults.remove(c.req.param('id') ?? '')
          ? json({})
          : problem(404, 'The fault does not exist.', requestPath(c)),
    },
    {
      method: 'GET',
      path: '/freedom',
      does: 'Settings of the contract freedom.',
      handle: () => json(freedom.settings),
    },
    {
      method: 'POST',
      path: '/freedom',
      does: 'Replaces the given settings of the contract freedom; the others stay.',
      body: `{ ${Object.keys(freedomSchema.shape).join('?, ')}? }, as { "lagSeconds": { "search": 60 } }`,
      handle: async (c) => {
        freedom.set((await readBodyObject(c)) as FreedomSettings);
        return json(freedom.settings);
      },
    },
    {
      method: 'DELETE',
      path: '/freedom',
      does: 'Resets the contract freedom to none.',
      handle: () => {
        freedom.clear();
        return json({});
      },
    },
    {
      method: 'GET',
      path: '/happenings',
      does: 'Planned, active and completed happenings.',
      handle: () => json(agenda.list().map(toHappeningView)),
    },
    {
      method: 'POST',
      path: '/happenings',
      does: 'Plans a happening of a scenario file, relative to now; immediately without afterSeconds.',
      body: '{ do: fault | swapCredentials | rotateSecret | revokeTokens | addStatus | renameStatus, afterSeconds?, forSeconds?, … }, as { "do": "addStatus", "name": "Second press", "stage": "production" }',
      handle: async (c) => {
        const planned = agenda.plan(happeningSchema.parse(await readBodyObject(c)), world.now());
        agenda.advanceTo(world.now());
        return json(toHappeningView(planned), 201);
      },
    },
    {
      method: 'DELETE',
      path: '/happenings/:id',
      does: 'Ends an active happening, or cancels a planned one.',
      handle: (c) =>
        agenda.end(c.req.param('id') ?? '')
          ? json({})
          : problem(404, 'No planned or active happening has this id.', requestPath(c)),
    },
    {
      method: 'GET',
      path: '/clock',
      does: 'The current time in the sandbox.',
      handle: () => json(time()),
    },
    {
      method: 'POST',
      path: '/clock/advance',
      does: 'Advances the sandbox clock and runs everything that is due. Other requests are answered meanwhile; closing this request stops it.',
      body: `{ seconds }, at most ${longestAdvanceSeconds}`,
      handle: async (c) => {
        const { seconds } = strictObject({ seconds: z.number().positive().max(longestAdvanceSeconds) }).parse(
          await readBodyObject(c),
        );
        if (!clock) return problem(409, 'The sandbox does not control this clock.', requestPath(c));
        await advanceInSlices(clock, seconds * 1000, c.env?.outgoing);
        return json(time());
      },
    },
    {
      method: 'GET',
      path: '/jobs',
      does: 'The active list of an account: ?region=&account=, by name, client id or upstream id.',
      handle: (c) => {
        const { region, account } = parseQuery(c, accountSchema);
        const found = findAccount(account, region);
        return json(found.activeJobNumbers().map((jobNumber) => found.jobListEntry(jobNumber)));
      },
    },
    {
      method: 'POST',
      path: '/jobs',
      does: 'Creates a job, which changes only if `live` is requested.',
      body: `{ region, account, …fields }; fields: ${Object.keys(newJobShape).join(', ')}`,
      handle: async (c) => {
        const { region, account, ...fields } = strictObject({ ...accountSchema.shape, ...newJobShape }).parse(
          await readBodyObject(c),
        );
        const owner = findAccount(account, region);
        return json({ jobNumber: rejectOnError(() => owner.createJob(fields)) }, 201);
      },
    },
    {
      method: 'GET',
      path: '/jobs/:region/:jobNumber',
      does: 'A job in list and detail form, and for each line the number of artwork attempts and the last error.',
      handle: (c) => {
        const { region } = regionSchema.parse(c.req.param());
        const found = world.findJob(region, Number(c.req.param('jobNumber')));
        return found
          ? json(toJobView(found.account, found.job.jobNumber))
          : problem(404, 'The job does not exist.', requestPath(c));
      },
    },
    {
      method: 'POST',
      path: '/jobs/:region/:jobNumber/:action',
      does: 'Changes a job; see jobActions.',
      handle: async (c) => {
        const { region } = regionSchema.parse(c.req.param());
        const jobNumber = Number(c.req.param('jobNumber'));
        const account = world.findJob(region, jobNumber)?.account;
        if (!account) return problem(404, 'The job does not exist.', requestPath(c));
        const act = JOB_ACTIONS[c.req.param('action') ?? ''];
        if (!act) {
          return problem(404, `The actions are: ${Object.keys(JOB_ACTIONS).join(', ')}.`, requestPath(c));
        }
        const body = await readBodyObject(c);
        rejectOnError(() => act.act(account, jobNumber, body, service));
        return json(toJobView(account, jobNumber));
      },
    },
  ];

  const time = () => ({
    now: new Date(world.now()).toISOString(),
    canBeSetForward: clock !== undefined,
    ...(clock && { standing: clock.standing }),
  });

  /** Advances the clock in slices, so that the process stays responsive, until its request is closed. */
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

  /** Returns the account. Throws RejectedError if it does not exist. */
  function findAccount(key: string | number, region?: RegionCode): SandboxAccount {
    try {
      return knownAccount(world, key, region);
    } catch (cause) {
      throw new RejectedError(`account ${cause instanceof Error ? cause.message : ''}.`, { cause });
    }
  }

  function ruleEnd(ruleId: string): string | null {
    const until = agenda.endOfRule(ruleId);
    return until === null ? null : new Date(until).toISOString();
  }

  const app = new Hono<SandboxEnv>();
  app.use(async (c, next) => {
    if (c.req.header('origin') !== undefined) {
      return send(c, problem(403, 'Web pages may not use the control panel.', requestPath(c)));
    }
    if (!isOwnHost(c)) {
      return send(
        c,
        problem(403, 'The control panel accepts requests only to its own address.', requestPath(c)),
      );
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
        errors[field] = [...(errors[field] ?? []), formatIssue(issue, 'the body')];
      }
      return send(c, problem(400, formatIssue(first, 'the body'), requestPath(c), errors));
    }
    if (error instanceof RejectedError || error instanceof UnknownAccountError) {
      return send(c, problem(400, error.message, requestPath(c)));
    }
    if (error instanceof TooLargeError) return send(c, problem(413, TOO_LARGE, requestPath(c)));
    return answerUnexpected(error, c);
  });
  for (const { method, path, handle } of routes) {
    app.on(method, path, async (c) => send(c, await handle(c)));
  }
  app.notFound((c) => send(c, problem(404, 'Not found; GET / lists the operations.', requestPath(c))));
  return app;
}

/** Whether the Host header is a loopback name or the address at which the request arrived. */
function isOwnHost(c: Context<SandboxEnv>): boolean {
  const host = `http://${c.req.header('host') ?? new URL(c.req.url).host}`;
  if (!URL.canParse(host)) return false;
  const name = new URL(host).hostname.replace(/^\[|\]$/g, '');
  const arrivedAt = c.env?.incoming?.socket.localAddress?.replace(/^::ffff:/, '');
  return name === 'localhost' || name === '::1' || /^127(\.\d+){3}$/.test(name) || name === arrivedAt;
}

/** Real time for which advancing the clock may block other requests. */
const MOST_SLICE_MS = 20;

/** A job in both forms, with the artwork state of its lines (0-based); undefined if it was removed. */
function toJobView(account: SandboxAccount, jobNumber: number) {
  const lines = (account.job(jobNumber)?.lines ?? []).map((line, index) => ({ ...line, index }));
  return {
    list: account.jobListEntry(jobNumber),
    detail: account.jobDetail(jobNumber),
    artwork: lines
      .filter(({ artworkUrl, needsArtwork }) => artworkUrl !== null || needsArtwork)
      .map(({ index, artworkUrl: url, artworkTries, artworkReason }) => ({
        line: index,
        url: url === null ? null : redactUrl(url),
        tries: artworkTries,
        reason: url === null ? 'No artwork URL was given.' : artworkReason,
      })),
  };
}

/** Removes possible secrets from a URL: credentials and query. */
function redactUrl(text: string): string {
  const url = URL.parse(text);
  if (!url) return 'no address';
  return `${url.protocol}//${url.username || url.password ? '…@' : ''}${url.host}${url.pathname}${url.search && '?…'}`;
}

function toHappeningView({ happening, at, until, ...rest }: PlannedHappening) {
  return {
    ...rest,
    at: new Date(at).toISOString(),
    until: until === null ? null : new Date(until).toISOString(),
    // JSON has no regular expressions.
    happening: JSON.parse(
      JSON.stringify(happening, (_, value) => (value instanceof RegExp ? value.source : value)),
    ),
  };
}

const accountKey = z.union([z.string(), z.int()], { error: 'must be a name, a client id or an upstream id' });
const accountSchema = strictObject({ region: z.enum(REGIONS), account: accountKey });
const regionSchema = z.object({ region: z.enum(REGIONS) });
const revokeSchema = strictObject({ region: z.enum(REGIONS).optional(), account: accountKey.optional() });
const timedRuleSchema = strictObject({
  ...ruleSchema.shape,
  forSeconds: z.number().positive().max(1e9).optional(),
});
const requestFilterSchema = strictObject({
  operation: z.enum(OPERATIONS).optional(),
  region: z.enum(REGIONS).optional(),
  account: z.string().optional(),
});
/** A request that cannot be executed. */
class RejectedError extends Error {}

/** The body exceeds the panel's limit. */
class TooLargeError extends Error {}

/** Converts errors of the world, such as an existing job number, to RejectedError. */
function rejectOnError<T>(does: () => T): T {
  try {
    return does();
  } catch (cause) {
    if (cause instanceof Error && cause.constructor === Error)
      throw new RejectedError(`${cause.message}.`, { cause });
    throw cause;
  }
}

/** Parses the query by a schema; errors name the parameter. */
function parseQuery<T>(c: Context<SandboxEnv>, schema: z.ZodType<T>): T {
  const parsed = schema.safeParse(c.req.query());
  if (parsed.success) return parsed.data;
  throw new RejectedError(`The query: ${formatIssue(parsed.error.issues[0], 'it')}`, { cause: parsed.error });
}

/** Returns the JSON body as an object; `{}` if it is empty. Throws TooLargeError as soon as the limit is exceeded. */
async function readBodyObject(c: Context<SandboxEnv>): Promise<Record<string, unknown>> {
  const body = await readBody(c);
  if (body === undefined) throw new TooLargeError();
  if (body.trim() === '') return {};
  try {
    return z.record(z.string(), z.unknown()).parse(JSON.parse(body));
  } catch (cause) {
    throw new RejectedError('The body is not a JSON object.', { cause });
  }
}
