// The sandbox's control panel over HTTP: accounts, jobs, faults and the request log, for playing by hand and for other processes.

import { type Context, Hono } from 'hono';
import * as z from 'zod';
import { json, problem, type SandboxEnv, send } from './answers.ts';
import type { Service } from './app.ts';
import type { FaultRule } from './faults.ts';
import { REGIONS, type RegionCode } from './regions.ts';
import { OPERATIONS } from './traffic.ts';
import type { SandboxAccount } from './world.ts';

/**
 * Makes the app below `/_admin`. It has no key: whoever reaches the sandbox's port may use it, except web pages, which could
 * reach it from the user's own browser: what carries an Origin is refused.
 *
 * - `GET accounts` · `GET requests` (`?operation=&region=&account=`) · `DELETE requests` · `POST tokens/revoke` `{region?, account?}`
 * - `GET faults` · `POST faults` with a rule → `{id}` · `DELETE faults` · `DELETE faults/:id`
 * - `GET jobs?region=&account=` · `POST jobs` `{region, account, …fields}` → `{jobNumber}`
 * - `POST jobs/:region/:jobNumber/:action` with a body for edit, status, line-status, dispatch, tracking, invoice, close,
 *   cancel, reopen, lock; without one for clear-date-out, unlock, hide, unhide, remove
 */
export function createAdminApp(service: Service): Hono<SandboxEnv> {
  const { world, faults, requests, tokens } = service;
  const app = new Hono<SandboxEnv>();

  app.use(async (c, next) => {
    service.advance?.(world.now());
    if (c.req.header('origin') === undefined) return next();
    return send(c, problem(403, 'Web pages may not use the control panel.', c.req.path));
  });
  app.onError((error, c) => {
    if (error instanceof z.ZodError) {
      const errors: Record<string, string[]> = {};
      for (const { path, message } of error.issues) {
        const field = path.join('.') || 'body';
        errors[field] = [...(errors[field] ?? []), message];
      }
      return send(c, problem(400, 'The body is not valid.', c.req.path, errors));
    }
    return send(c, problem(400, error.message, c.req.path));
  });

  app.get('/accounts', (c) =>
    send(
      c,
      json(
        world.accounts().map(({ region, name, id, clientId, clientSecret, activeCount }) => ({
          region,
          name,
          id,
          clientId,
          clientSecret,
          activeJobs: activeCount,
        })),
      ),
    ),
  );

  app.get('/requests', (c) => send(c, json(requests.list(requestFilterSchema.parse(c.req.query())))));
  app.delete('/requests', (c) => {
    requests.clear();
    return send(c, json({}));
  });
  app.post('/tokens/revoke', async (c) =>
    send(c, json({ revoked: tokens.revoke(revokeSchema.parse(await bodyOf(c))) })),
  );

  app.get('/faults', (c) =>
    send(
      c,
      json(
        faults.list().map((rule) => ({
          ...rule,
          match: { ...rule.match, ...(rule.match.path && { path: rule.match.path.source }) },
        })),
      ),
    ),
  );
  // FaultBook.add checks the rule itself.
  app.post('/faults', async (c) =>
    send(c, json({ id: faults.add((await bodyOf(c)) as unknown as FaultRule) }, 201)),
  );
  app.delete('/faults', (c) => {
    faults.clear();
    return send(c, json({}));
  });
  app.delete('/faults/:id', (c) =>
    send(
      c,
      faults.remove(c.req.param('id')) ? json({}) : problem(404, 'There is no such fault.', c.req.path),
    ),
  );

  app.get('/jobs', (c) => {
    const { region, account } = accountSchema.parse(c.req.query());
    const found = accountOf(region, account);
    return send(c, json(found.activeJobNumbers().map((jobNumber) => found.jobListEntry(jobNumber))));
  });
  app.post('/jobs', async (c) => {
    const { region, account, ...fields } = accountSchema.extend(newJobShape).parse(await bodyOf(c));
    return send(c, json({ jobNumber: accountOf(region, account).createJob(fields) }, 201));
  });
  app.post('/jobs/:region/:jobNumber/:action', async (c) => {
    const region = z.enum(REGIONS).parse(c.req.param('region'));
    const jobNumber = Number(c.req.param('jobNumber'));
    const account = world.accounts(region).find((candidate) => candidate.job(jobNumber));
    if (!account) return send(c, problem(404, 'There is no such job.', c.req.path));
    const act = ACTIONS[c.req.param('action')];
    if (!act) {
      return send(c, problem(404, `The actions are: ${Object.keys(ACTIONS).join(', ')}.`, c.req.path));
    }
    act(account, jobNumber, await bodyOf(c));
    return send(c, json({ list: account.jobListEntry(jobNumber), detail: account.jobDetail(jobNumber) }));
  });

  function accountOf(region: RegionCode, key: string): SandboxAccount {
    const account = world.account(region, key);
    if (!account) throw new Error(`There is no account ${key} in ${region}.`);
    return account;
  }

  return app;
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
  location: z.strictObject({ name: text, timezone: text }).nullable().optional(),
  tracking: trackingSchema.optional(),
  client: text.optional(),
  tags: z.array(z.string()).optional(),
  deliveryOption: text.optional(),
};
const jobSchema = z.strictObject(jobShape);
const newJobShape = { ...jobShape, jobNumber: z.int().optional() };
const accountSchema = z.strictObject({ region: z.enum(REGIONS), account: z.string() });
const revokeSchema = z.strictObject({ region: z.enum(REGIONS).optional(), account: z.string().optional() });
const requestFilterSchema = z.strictObject({
  operation: z.enum(OPERATIONS).optional(),
  region: z.enum(REGIONS).optional(),
  account: z.string().optional(),
});
const statusSchema = z.strictObject({ status: z.string().optional() });

type Action = (account: SandboxAccount, jobNumber: number, body: Record<string, unknown>) => void;

const ACTIONS: Record<string, Action> = {
  edit: (account, job, body) => account.edit(job, jobSchema.parse(body)),
  status: (account, job, body) => {
    const { status, master, detail } = z
      .strictObject({ status: text.optional(), master: text.optional(), detail: text.optional() })
      .parse(body);
    account.setStatus(job, status === undefined ? { master, detail } : status);
  },
  'line-status': (account, job, body) => {
    const { line, status } = z.strictObject({ line: z.int().min(0), status: text }).parse(body);
    account.setLineStatus(job, line, status);
  },
  dispatch: (account, job, body) =>
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
  'clear-date-out': (account, job) => account.clearDateOut(job),
  tracking: (account, job, body) =>
    account.setTracking(job, z.strictObject({ tracking: trackingSchema }).parse(body).tracking),
  invoice: (account, job, body) =>
    account.invoice(
      job,
      z.strictObject({ invoiceNumber: z.string().optional(), file: z.boolean().optional() }).parse(body),
    ),
  close: (account, job, body) => account.close(job, statusSchema.parse(body)),
  cancel: (account, job, body) => account.cancel(job, statusSchema.parse(body)),
  reopen: (account, job, body) => account.reopen(job, statusSchema.parse(body)),
  lock: (account, job, body) =>
    account.lock(job, z.strictObject({ reason: z.string().optional() }).parse(body).reason),
  unlock: (account, job) => account.unlock(job),
  hide: (account, job) => account.hide(job),
  unhide: (account, job) => account.unhide(job),
  remove: (account, job) => account.remove(job),
};

/** The JSON body as an object; `{}` when there is none. */
async function bodyOf(c: Context<SandboxEnv>): Promise<Record<string, unknown>> {
  const body = await c.req.text();
  if (body.trim() === '') return {};
  try {
    return z.record(z.string(), z.unknown()).parse(JSON.parse(body));
  } catch (cause) {
    throw new Error('The body is not a JSON object.', { cause });
  }
}
