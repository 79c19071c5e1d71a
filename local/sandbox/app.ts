// One region of the ordering service over HTTP: its token endpoint, and of its API what a tracker of jobs reads.

import { randomBytes } from 'node:crypto';
import { type Context, Hono } from 'hono';
import * as z from 'zod';
import { ALREADY_SENT, type Answer, json, problem, type SandboxEnv, send } from './answers.ts';
import { type FaultBook, strike } from './faults.ts';
import { SORT_COLUMNS } from './joblist.ts';
import type { RegionCode } from './regions.ts';
import type { Operation, RequestHook, RequestInfo, RequestLog } from './traffic.ts';
import { accountProfile, userProfile } from './views.ts';
import type { SandboxAccount, World } from './world.ts';

/*
 * Where the contract is silent, the sandbox chose:
 *
 * - A pageSize over 100 or below 1, a page below 1, and any parameter of the wrong type are refused with 400 and `errors`.
 *   A page beyond the last is an empty one with 200. Without results there are 0 pages. Unknown parameters are ignored.
 * - searchText ignores case. Each of its words is compared with the beginning of the words of a field, which are what
 *   blanks separate and also what punctuation separates: `PO-4411` is found by `po-4` and by `4411`.
 * - orderGroup compares exactly. sortColumn takes the scalar field names of the list (any case), sortDirection
 *   Ascending/Descending/ASC/DESC (any case); descending when omitted, except by orderGroupSequence. Null sorts lowest;
 *   what is equal comes newest first.
 * - A dispatched job stays in the active list until it is closed, unless the world was told otherwise; then it counts as closed.
 * - GET /Jobs/{jobNumber} with something that is no integer is 400, not 404.
 * - Paths are case-sensitive. What is not built, and a method that is not served, answer 404, after the token was checked.
 * - customerId is in the job's detail. The calling user is the account's first one.
 * - Timestamps are local to the job's location and carry its offset. A due date without a time of day is that day's midnight.
 *   invoiceFile.uri and imageUrl carry an expiry and change with time. shippedDaysToProcess and processingDays have two
 *   decimals, and drift until dispatch.
 * - isCancelable follows from the stage of masterJobStatus: up to production, not from there on.
 * - At the token endpoint: wrong client or secret 401 invalid_client, another grant 400 unsupported_grant_type, anything else
 *   amiss 400 invalid_request, an unknown realm 404. The realm is named like the region. Tokens are opaque; several may live.
 */

/** What all regions of a running sandbox share. */
export interface Service {
  world: World;
  tokens: TokenBook;
  faults: FaultBook;
  requests: RequestLog;
  /** Called before each answer is made up; may be replaced at any time. */
  onRequest: RequestHook | undefined;
  /** Brings jobs that live by themselves up to now (epoch ms) before a request looks at them. */
  advance: ((now: number) => void) | undefined;
}

/** Access tokens in force. A token is known in its own region only. */
export class TokenBook {
  readonly #world: World;
  readonly #lifetimeSeconds: number;
  readonly #tokens = new Map<string, { account: SandboxAccount; expiresAt: number }>();

  constructor(world: World, lifetimeSeconds = 600) {
    this.#world = world;
    this.#lifetimeSeconds = lifetimeSeconds;
  }

  /** Issues a token; it lives by the sandbox clock. */
  issue(account: SandboxAccount): { token: string; expiresInSeconds: number } {
    const now = this.#world.now();
    for (const [token, { expiresAt }] of this.#tokens) if (expiresAt <= now) this.#tokens.delete(token);
    const token = `${account.region}.${randomBytes(24).toString('base64url')}`;
    this.#tokens.set(token, { account, expiresAt: now + this.#lifetimeSeconds * 1000 });
    return { token, expiresInSeconds: this.#lifetimeSeconds };
  }

  /** Whose token this is in a region, if it is valid there. */
  holder(region: RegionCode, token: string): SandboxAccount | undefined {
    const entry = this.#tokens.get(token);
    return entry && entry.account.region === region && entry.expiresAt > this.#world.now()
      ? entry.account
      : undefined;
  }

  /** Forgets the tokens of a region, of an account (by name), or all; returns how many. */
  revoke(which: { region?: RegionCode; account?: string } = {}): number {
    let count = 0;
    for (const [token, { account }] of this.#tokens) {
      if (which.region !== undefined && which.region !== account.region) continue;
      if (which.account !== undefined && which.account !== account.name) continue;
      this.#tokens.delete(token);
      count += 1;
    }
    return count;
  }
}

/** Makes the app of one region: API below `/api`, token endpoint below `/auth`. */
export function createRegionApp(service: Service, region: RegionCode): Hono<SandboxEnv> {
  const { world, tokens, faults, requests } = service;
  const app = new Hono<SandboxEnv>();

  const serve = async (
    c: Context<SandboxEnv>,
    operation: Operation,
    account: SandboxAccount | undefined,
    answer: () => Answer,
  ): Promise<Response> => {
    const instance = c.req.path;
    const jobNumber = Number(c.req.param('jobNumber'));
    const info: RequestInfo = {
      region,
      operation,
      account,
      method: c.req.method,
      path: instance.startsWith(`/${region}/`) ? instance.slice(region.length + 1) : instance,
      query: c.req.query(),
      jobNumber: Number.isNaN(jobNumber) ? undefined : jobNumber,
    };
    const entry = requests.begin(info, world.now());
    let sent: Answer | null = null;
    try {
      service.advance?.(world.now());
      await service.onRequest?.(info);
      const rule = faults.take(
        info,
        (listed) => operation === 'activeJobs' && jobsIn(answer()).includes(listed),
      );
      if (rule) {
        entry.fault = rule.id;
        const revokeTokens = () => tokens.revoke({ region, ...(account && { account: account.name }) });
        sent = await strike(rule.fault, { info, instance, answer, outgoing: c.env?.outgoing, revokeTokens });
      } else {
        sent = answer();
      }
    } finally {
      requests.end(entry, sent?.status ?? null);
    }
    return sent ? send(c, sent) : ALREADY_SENT;
  };

  const api = (
    path: string,
    operation: Operation,
    answer: (account: SandboxAccount, c: Context<SandboxEnv>) => Answer,
    method = 'GET',
  ): void => {
    app.on(method, `/api${path}`, (c) => {
      const token = bearerToken(c);
      // Known now for hooks and rules; asked again when it counts, since those may have revoked it.
      return serve(c, operation, tokens.holder(region, token), () => {
        const account = tokens.holder(region, token);
        if (!account) return problem(401, 'A valid bearer token of this region is required.', c.req.path);
        return answer(account, c);
      });
    });
  };

  api('/Jobs/active', 'activeJobs', listActiveJobs);
  api('/Jobs/:jobNumber', 'job', getJob);
  api('/Lookups/job-statuses', 'jobStatuses', ({ world, region }) =>
    json(world.statuses(region).map(({ id, name }) => ({ id, name }))),
  );
  api('/account', 'account', (account) => json(accountProfile(account)));
  api('/account/user', 'accountUser', (account, c) => {
    const user = account.users[0];
    return user ? json(userProfile(account, user)) : problem(404, 'There is no such user.', c.req.path);
  });
  for (const method of ['GET', 'POST', 'PUT', 'PATCH', 'DELETE']) {
    api('/*', 'unknown', (_account, c) => problem(404, 'There is no such resource.', c.req.path), method);
  }

  app.post('/auth/realms/:realm/protocol/openid-connect/token', async (c) => {
    const isForm = /^application\/x-www-form-urlencoded\b/i.test(c.req.header('content-type') ?? '');
    const form = new URLSearchParams(isForm ? await c.req.text() : '');
    const account = world.accounts(region).find(({ clientId }) => clientId === form.get('client_id'));
    return serve(c, 'token', account, () => grantToken(c.req.param('realm'), form, account));
  });
  app.all('/auth/*', (c) => serve(c, 'unknown', undefined, () => json({ error: 'Not found' }, 404)));

  function grantToken(realm: string, form: URLSearchParams, account: SandboxAccount | undefined): Answer {
    const refuse = (status: number, error: string, description: string) =>
      json({ error, error_description: description }, status, NO_STORE);
    if (realm !== region) return json({ error: 'Realm does not exist' }, 404);
    const grantType = form.get('grant_type');
    if (!grantType) return refuse(400, 'invalid_request', 'Missing form parameter: grant_type');
    if (grantType !== 'client_credentials') {
      return refuse(400, 'unsupported_grant_type', 'Unsupported grant_type');
    }
    if (!account || form.get('client_secret') !== account.clientSecret) {
      return refuse(401, 'invalid_client', 'Invalid client or Invalid client credentials');
    }
    const { token, expiresInSeconds } = tokens.issue(account);
    return json({ access_token: token, expires_in: expiresInSeconds, token_type: 'Bearer' }, 200, NO_STORE);
  }

  return app;
}

const NO_STORE = { 'cache-control': 'no-store' };

const integer = z
  .string()
  .regex(/^-?\d{1,15}$/, 'The value is not an integer.')
  .transform(Number);
const atLeastOne = integer.refine((value) => value >= 1, 'The value must be at least 1.');
const boolean = z
  .string()
  .toLowerCase()
  .pipe(z.enum(['true', 'false'], 'The value is not true or false.'))
  .transform((value) => value === 'true');

const jobsQuerySchema = z.object({
  page: atLeastOne.default(1),
  pageSize: atLeastOne.refine((value) => value <= 100, 'The value must be at most 100.').default(20),
  excludeJobNumber: integer.optional(),
  searchText: z.string().optional(),
  includeClosedJobs: boolean.optional(),
  sortColumn: z
    .string()
    .transform((text) => SORT_COLUMNS.find((column) => column.toLowerCase() === text.toLowerCase()))
    .refine((column) => column !== undefined, 'The list cannot be sorted by this.')
    .optional(),
  sortDirection: z
    .string()
    .toLowerCase()
    .pipe(z.enum(['ascending', 'asc', 'descending', 'desc'], 'The value is not a direction.'))
    .transform((value): 'ascending' | 'descending' => (value.startsWith('asc') ? 'ascending' : 'descending'))
    .optional(),
  orderGroup: z.string().optional(),
  customerUserId: integer.optional(),
});

function listActiveJobs(account: SandboxAccount, c: Context<SandboxEnv>): Answer {
  const parsed = jobsQuerySchema.safeParse(c.req.query());
  if (!parsed.success) {
    return problem(
      400,
      'A parameter is not valid.',
      c.req.path,
      z.flattenError(parsed.error).fieldErrors as Record<string, string[]>,
    );
  }
  const query = parsed.data;
  const { page, pageSize, customerUserId } = query;
  if (customerUserId !== undefined && !account.users.some(({ id }) => id === customerUserId)) {
    const errors = { customerUserId: ['The user is not a user of the calling customer.'] };
    return problem(400, 'A parameter is not valid.', c.req.path, errors);
  }
  const { itemsJson, totalCount } = account.listJobs(query);
  const totalPages = Math.ceil(totalCount / pageSize);
  return json(
    `{"items":${itemsJson},"totalCount":${totalCount},"pageNumber":${page},"pageSize":${pageSize},"totalPages":${totalPages},"hasPreviousPage":${page > 1},"hasNextPage":${page < totalPages}}`,
  );
}

/** The numbers of the jobs that a list answer shows; none if it is not one. */
function jobsIn({ status, body }: Answer): number[] {
  if (status !== 200) return [];
  return JSON.parse(body).items.map(({ jobNumber }: { jobNumber: number }) => jobNumber);
}

function getJob(account: SandboxAccount, c: Context<SandboxEnv>): Answer {
  const parsed = integer.safeParse(c.req.param('jobNumber'));
  if (!parsed.success) {
    const errors = { jobNumber: parsed.error.issues.map(({ message }) => message) };
    return problem(400, 'A parameter is not valid.', c.req.path, errors);
  }
  const job = account.jobDetail(parsed.data);
  // Another account's job answers exactly like one that does not exist.
  return job ? json(job) : problem(404, 'There is no such job.', c.req.path);
}

function bearerToken(c: Context<SandboxEnv>): string {
  return /^Bearer +(\S+)$/i.exec(c.req.header('authorization') ?? '')?.[1] ?? '';
}
