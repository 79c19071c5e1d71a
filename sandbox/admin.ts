// The sandbox's control panel over HTTP, on its own port: accounts, jobs, faults, scheduled changes, the clock and the request log.

import type { ServerResponse } from 'node:http';
import { setImmediate } from 'node:timers/promises';
import { type Context, Hono } from 'hono';
import * as z from 'zod';
import { accountKey, requireAccount, ruleSchema, strictObject, UnknownAccountError } from './http/faults.ts';
import { type FreedomSettings, freedomSchema } from './http/freedom.ts';
import {
  answerUnexpected,
  type HttpResponse,
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
import { type CallPanel, createPanelPages, isOwnForm, PANEL } from './panel.ts';
import type { Service } from './service.ts';
import type { SandboxClock } from './simulation/clock.ts';
import { LONGEST_ADVANCE_SECONDS } from './simulation/scenario.ts';
import { describeKinds, type PlannedChange, scheduledChangeSchema } from './simulation/scheduled-changes.ts';
import { createPayment, settlePayment } from './world/payments.ts';
import { REGIONS, type RegionCode } from './world/regions.ts';
import type { SandboxAccount } from './world/world.ts';

/** An operation of the panel. `body` describes its request body. */
interface Route {
  method: string;
  path: string;
  does: string;
  body?: string;
  handle: Handler;
}

type Handler = (c: Context<SandboxEnv>) => HttpResponse | Promise<HttpResponse>;

/** Declares an operation by method and path, description, optional description of the body, and handler. */
function route(target: string, does: string, ...rest: [Handler] | [body: string, handle: Handler]): Route {
  const [method = '', path = ''] = target.split(' ');
  const [body, handle] = rest.length === 1 ? [undefined, rest[0]] : rest;
  return { method, path, does, ...(body && { body }), handle };
}

/**
 * Creates the control panel; `GET /` lists its operations. With `clock`, which then is the world's, it can advance time.
 *
 * The panel has no key: every local client may use it, except web pages other than its own. It rejects requests with an Origin
 * header, except forms of its own page, and requests to a host name other than its own, because any DNS name can resolve to this
 * address.
 */
export function createAdminApp(
  service: Service,
  clock?: SandboxClock,
  longestAdvanceSeconds = LONGEST_ADVANCE_SECONDS,
): Hono<SandboxEnv> {
  const { world, faults, freedom, requests, tokens, scheduler } = service;
  const routes: Route[] = [
    route('GET /', 'Operations of the control panel; for browsers, its page at /panel.', (c) => {
      if (c.req.header('accept')?.includes('text/html'))
        return { status: 303, headers: { location: PANEL }, body: '' };
      return json({
        routes: routes.map(({ handle: _, ...described }) => described),
        jobActions: Object.fromEntries(Object.entries(JOB_ACTIONS).map(([name, { takes }]) => [name, takes])),
      });
    }),
    route('GET /accounts', 'All accounts with their credentials and number of open jobs.', () =>
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
    ),
    route('GET /requests', 'The latest requests; ?operation=, ?region= and ?account= filter them.', (c) => {
      const { account, ...filter } = parseQuery(c, requestFilterSchema);
      const found = account === undefined ? {} : { account: findAccount(account, filter.region).name };
      return json(requests.list({ ...filter, ...found }));
    }),
    route('DELETE /requests', 'Clears the request log.', () => {
      requests.clear();
      return json({});
    }),
    route(
      'POST /tokens/revoke',
      'Revokes all tokens, or those of a region or an account.',
      '{ region?, account? }',
      async (c) => {
        const { account: key, region } = revokeSchema.parse(await readBodyObject(c));
        if (key === undefined) return json({ revoked: tokens.revoke({ ...(region && { region }) }) });
        const account = findAccount(key, region);
        return json({ revoked: tokens.revoke({ region: account.region, account: account.name }) });
      },
    ),
    route(
      'POST /payments',
      'Creates a payment, pending unless `transactionStatus` is given.',
      '{ region, account, transactionStatus?, amountSettlement?, merchantEntityType?, merchantEntityId? }',
      async (c) => {
        const { region, account, ...fields } = paymentSchema.parse(await readBodyObject(c));
        const owner = findAccount(account, region);
        return json({ id: rejectOnError(() => createPayment(owner, fields)) }, 201);
      },
    ),
    route(
      'POST /payments/settle',
      'Settles a payment with a status such as Completed, Failed or Cancelled.',
      '{ region, account, id, status }',
      async (c) => {
        const { region, account, id, status } = settleSchema.parse(await readBodyObject(c));
        const owner = findAccount(account, region);
        rejectOnError(() => settlePayment(owner, id, status));
        return json({});
      },
    ),
    route('GET /faults', 'The active rules, with the number of requests matched and faulted.', () =>
      json(
        faults.list().map((rule) => ({
          ...rule,
          match: { ...rule.match, ...(rule.match.path && { path: rule.match.path.source }) },
          until: ruleEnd(rule.id),
        })),
      ),
    ),
    route(
      'POST /faults',
      'Activates a rule, for a number of seconds or until it is deleted.',
      '{ match?, fault, forSeconds? }, as { "match": { "operation": "activeJobs" }, "fault": { "kind": "status", "status": 503 } }',
      async (c) => {
        const { forSeconds, ...rule } = timedRuleSchema.parse(await readBodyObject(c));
        const { account, region } = rule.match;
        if (account !== undefined) findAccount(account, region);
        const until = forSeconds === undefined ? null : world.now() + forSeconds * 1000;
        return json({ id: scheduler.putRule(rule, until) }, 201);
      },
    ),
    route('DELETE /faults', 'Deletes all rules.', () => {
      for (const { id } of faults.list()) scheduler.endRule(id);
      return json({});
    }),
    route('DELETE /faults/:id', 'Deletes a rule.', (c) =>
      scheduler.endRule(c.req.param('id') ?? '')
        ? json({})
        : problem(404, 'The fault does not exist.', requestPath(c)),
    ),
    route('GET /freedom', 'Settings of the contract freedom.', () => json(freedom.settings)),
    route(
      'POST /freedom',
      'Replaces the given settings of the contract freedom. The other settings are kept.',
      `{ ${Object.keys(freedomSchema.shape).join('?, ')}? }, as { "lagSeconds": { "search": 60 } }`,
      async (c) => {
        freedom.set((await readBodyObject(c)) as FreedomSettings);
        return json(freedom.settings);
      },
    ),
    route('DELETE /freedom', 'Resets the contract freedom to none.', () => {
      freedom.clear();
      return json({});
    }),
    route('GET /scheduled-changes', 'Planned, active, completed and cancelled scheduled changes.', () =>
      json(scheduler.list().map(toScheduledChangeView)),
    ),
    route(
      'POST /scheduled-changes',
      'Plans a scheduled change of a scenario file, relative to now; immediately without afterSeconds.',
      `${describeKinds()}, as { "do": "addStatus", "name": "Second press", "stage": "production" }`,
      async (c) => {
        const planned = scheduler.plan(scheduledChangeSchema.parse(await readBodyObject(c)), world.now());
        scheduler.advanceTo(world.now());
        return json(toScheduledChangeView(planned), 201);
      },
    ),
    route(
      'DELETE /scheduled-changes/:id',
      'Ends an active scheduled change, or cancels a planned one.',
      (c) =>
        scheduler.end(c.req.param('id') ?? '')
          ? json({})
          : problem(404, 'No planned or active scheduled change has this id.', requestPath(c)),
    ),
    route('GET /clock', 'The current time in the sandbox.', () => json(time())),
    route(
      'POST /clock/advance',
      'Advances the sandbox clock and runs everything that is due. Other requests are processed in the meantime. Closing this request stops the advance.',
      `{ seconds }, at most ${longestAdvanceSeconds}`,
      async (c) => {
        const { seconds } = strictObject({ seconds: z.number().positive().max(longestAdvanceSeconds) }).parse(
          await readBodyObject(c),
        );
        if (!clock) return problem(409, 'The sandbox does not control this clock.', requestPath(c));
        await advanceInSlices(clock, seconds * 1000, c.env?.outgoing);
        return json(time());
      },
    ),
    route(
      'GET /jobs',
      'The active list of an account: ?region=&account=, by name, client id or upstream id.',
      (c) => {
        const { region, account } = parseQuery(c, accountSchema);
        const found = findAccount(account, region);
        return json(found.activeJobNumbers().map((jobNumber) => found.jobListEntry(jobNumber)));
      },
    ),
    route(
      'POST /jobs',
      'Creates a job, which changes only if `live` is requested.',
      `{ region, account, …fields }; fields: ${Object.keys(newJobShape).join(', ')}`,
      async (c) => {
        const { region, account, ...fields } = strictObject({ ...accountSchema.shape, ...newJobShape }).parse(
          await readBodyObject(c),
        );
        const owner = findAccount(account, region);
        return json({ jobNumber: rejectOnError(() => owner.createJob(fields)) }, 201);
      },
    ),
    route(
      'GET /jobs/:region/:jobNumber',
      'A job in list and detail form, and for each line the number of artwork attempts and the last error.',
      (c) => {
        const { region } = regionSchema.parse(c.req.param());
        const found = world.findJob(region, Number(c.req.param('jobNumber')));
        return found
          ? json(toJobView(found.account, found.job.jobNumber))
          : problem(404, 'The job does not exist.', requestPath(c));
      },
    ),
    route('POST /jobs/:region/:jobNumber/:action', 'Changes a job; see jobActions.', async (c) => {
      const { region } = regionSchema.parse(c.req.param());
      const jobNumber = Number(c.req.param('jobNumber'));
      const account = world.findJob(region, jobNumber)?.account;
      if (!account) return problem(404, 'The job does not exist.', requestPath(c));
      const name = c.req.param('action') ?? '';
      if (!Object.hasOwn(JOB_ACTIONS, name)) {
        return problem(404, `The actions are: ${Object.keys(JOB_ACTIONS).join(', ')}.`, requestPath(c));
      }
      const body = await readBodyObject(c);
      rejectOnError(() => JOB_ACTIONS[name]?.act(account, jobNumber, body, service));
      return json(toJobView(account, jobNumber));
    }),
  ];

  const time = () => ({
    now: new Date(world.now()).toISOString(),
    canBeSetForward: clock !== undefined,
    ...(clock && { stopped: clock.stopped }),
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
      scheduler.advanceTo(world.now());
      const tookMs = performance.now() - startedAt;
      if (tookMs > MOST_SLICE_MS) sliceMs = Math.max(1, sliceMs / 2);
      if (tookMs < MOST_SLICE_MS / 4) sliceMs *= 2;
      await setImmediate();
    }
  }

  /** Returns the account. Throws RejectedError if it does not exist. */
  function findAccount(key: string | number, region?: RegionCode): SandboxAccount {
    try {
      return requireAccount(world, key, region);
    } catch (cause) {
      throw new RejectedError(`account ${cause instanceof Error ? cause.message : ''}.`, { cause });
    }
  }

  function ruleEnd(ruleId: string): string | null {
    const until = scheduler.endOfRule(ruleId);
    return until === null ? null : new Date(until).toISOString();
  }

  const app = new Hono<SandboxEnv>();
  app.use(async (c, next) => {
    if (c.req.header('origin') !== undefined && !isOwnForm(c)) {
      return send(c, problem(403, 'Web pages may not use the control panel.', requestPath(c)));
    }
    if (!isOwnHost(c)) {
      return send(
        c,
        problem(403, 'The control panel accepts requests only to its own address.', requestPath(c)),
      );
    }
    scheduler.advanceTo(world.now());
    return next();
  });
  const call: CallPanel = async (method, path, body) =>
    app.request(
      `http://localhost${path}`,
      body === undefined ? { method } : { method, body: JSON.stringify(body) },
    );
  app.route('/', createPanelPages(service, clock, call));
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

function toScheduledChangeView({ change, at, until, ...rest }: PlannedChange) {
  return {
    ...rest,
    at: new Date(at).toISOString(),
    until: until === null ? null : new Date(until).toISOString(),
    // JSON has no regular expressions.
    change: JSON.parse(
      JSON.stringify(change, (_, value) => (value instanceof RegExp ? value.source : value)),
    ),
  };
}

const accountSchema = strictObject({ region: z.enum(REGIONS), account: accountKey });
const paymentSchema = strictObject({
  ...accountSchema.shape,
  transactionStatus: z.string().optional(),
  amountSettlement: z.number().optional(),
  merchantEntityType: z.string().optional(),
  merchantEntityId: z.int().nullable().optional(),
});
const settleSchema = strictObject({ ...accountSchema.shape, id: z.int(), status: z.string() });
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
