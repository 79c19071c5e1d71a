/** Authentication, and the resources that a key for some accounts can access. */
import type { Context, MiddlewareHandler } from 'hono';
import type { AccountRecord } from '../accounts/account-views.ts';
import { type Account, findAccount } from '../accounts/accounts.ts';
import { readAccount } from '../accounts/managed-accounts.ts';
import { isEndpointKind } from '../built-in-sinks.ts';
import { toEndpoint } from '../delivery/endpoint.ts';
import type { Endpoint } from '../delivery/endpoint-views.ts';
import { withHealthOfParts } from '../delivery/sink.ts';
import { type AccountRef, cellLog, keys } from '../storage/schema.ts';
import { isId } from '../validation.ts';
import { createFailureLimit, FAILURES_POLICY } from './auth-rate-limit.ts';
import type { ApiEnv } from './env.ts';
import type { Caller, Keyring } from './keys.ts';
import { one } from './parameters.ts';
import { problem } from './problems.ts';
import { type RateLimitState, rateLimitHeaders } from './rate-limit-headers.ts';
import type { Subject } from './route.ts';

/** Returns whether a key gives access to an account. */
export function canAccess({ accounts }: Caller, account: string): boolean {
  return accounts === null || accounts.includes(account);
}

/** Returns whether a key gives access to all of these accounts. */
export const canAccessAll = (caller: Caller, accounts: readonly string[]): boolean =>
  accounts.every((account) => canAccess(caller, account));

const CHALLENGE = 'Bearer realm="jobwire"';

/**
 * Rejects requests without a valid key or ID token. After too many failures, requests from an address are rejected unread, unless
 * their key is known. `failures`: counters that others use too. Default: its own.
 */
export function requireKey(keyring: Keyring, failures = createFailureLimit()): MiddlewareHandler<ApiEnv> {
  return async (c, next) => {
    const key = /^Bearer +(\S+) *$/i.exec(c.req.header('authorization') ?? '')?.[1];
    if (key === undefined) {
      return problem(c, 'unauthorized', {
        detail: 'Send an API key, or the ID token of a signed-in user, as `Authorization: Bearer <key>`.',
        headers: { 'www-authenticate': CHALLENGE },
      });
    }
    const address = c.env?.clientAddress;
    const reached = keyring.isKnown(key) ? undefined : await failures.reached(address);
    if (reached) return tooManyFailures(c, reached);
    const caller = await keyring.verify(key);
    if (!caller) {
      const headers = rateLimitHeaders(FAILURES_POLICY, await failures.add(address));
      return problem(c, 'unauthorized', {
        detail: 'The API key or ID token is not valid. Send a valid one as `Authorization: Bearer <key>`.',
        headers: { 'www-authenticate': `${CHALLENGE}, error="invalid_token"`, ...headers },
      });
    }
    c.set('caller', caller);
    return next();
  };
}

/** Returns the problem for an address with too many failed authentications. */
export function tooManyFailures(c: Context<ApiEnv>, limit: RateLimitState): Response {
  return problem(c, 'too-many-failed-authentications', {
    detail: `Too many failed authentications from this address. Retry after ${limit.resetSeconds} s.`,
    headers: {
      'retry-after': String(limit.resetSeconds),
      ...rateLimitHeaders(FAILURES_POLICY, limit),
    },
  });
}

const accountId = one.describe('Id of the account.');

/** An account by its id, which is looked up in each served region. */
export const accountSubject: Subject<Account> = {
  params: { id: accountId },
  async find({ c, caller, params }, { feed }) {
    const { id = '' } = params;
    const mayBe = isId(id) && canAccess(caller, id);
    const found = mayBe ? await findAccount(feed.table, feed.regions, id) : undefined;
    return found ?? problem(c, 'not-found', { detail: 'There is no such account.' });
  },
};

/** A served region and its own log. Only for keys for all accounts. */
export const regionSubject: Subject<AccountRef> = {
  params: { id: one.describe('Name of the region, for example `us`.') },
  async find({ c, caller, params }, { feed }) {
    const ref = cellLog(params.id ?? '');
    if (caller.accounts === null && feed.regions.includes(ref.region)) return ref;
    return problem(c, 'not-found', { detail: 'There is no such region, or the API key cannot access it.' });
  },
};

/** An account by its id, as returned by the API, with its revision. */
export const accountRecordSubject: Subject<AccountRecord> = {
  params: accountSubject.params,
  getRevision: ({ revision }) => revision,
  async find({ c, caller, params }, { feed, isDeclared }) {
    const { id: account = '' } = params;
    const mayBe = isId(account) && canAccess(caller, account);
    for (const region of mayBe ? feed.regions : []) {
      const record = await readAccount({ table: feed.table, isDeclared }, { region, account });
      if (record) return record;
    }
    return problem(c, 'not-found', { detail: 'There is no such account.' });
  },
};

/** Returns whether a key gives access to an endpoint, that is, to all accounts that it follows. */
export function canAccessEndpoint(caller: Caller, { accounts }: Pick<Endpoint, 'accounts'>): boolean {
  if (caller.accounts === null) return true;
  return accounts.length > 0 && canAccessAll(caller, accounts);
}

/** An endpoint, or a built-in sink for keys for all accounts. Looked up in each served region. */
export const endpointSubject: Subject<Endpoint> = {
  params: { id: one.describe('Id of the endpoint.') },
  query: {
    region: one.optional().describe('Required if several regions have this id.'),
  },
  async find({ c, caller, params, query }, { feed }) {
    const { id = '' } = params;
    const regions = feed.regions.filter((region) => query.region === undefined || region === query.region);
    const items = isId(id) ? await feed.table.getMany(regions.map((region) => keys.sink(region, id))) : [];
    const known = items.filter(({ kind }) => kind !== undefined);
    const found = (await withHealthOfParts(feed.table, known))
      .map(toEndpoint)
      .filter((endpoint) => canAccessEndpoint(caller, endpoint));
    const [endpoint, ...others] = found;
    if (!endpoint) return problem(c, 'not-found', { detail: 'There is no such endpoint.' });
    if (others.length === 0) return endpoint;
    const names = found.map(({ region }) => region).sort();
    return problem(c, 'invalid-parameter', {
      field: 'region',
      detail: `region is required: endpoints with this id exist in ${names.join(', ')}.`,
    });
  },
  getRevision: ({ revision }) => revision,
};

/** An endpoint that is not built in. A built-in one has no statistics (404), and no operation changes it (409). */
export const ownEndpointSubject: Subject<Endpoint> = {
  ...endpointSubject,
  async find(lookup, parts) {
    const found = await endpointSubject.find(lookup, parts);
    if (found instanceof Response || isEndpointKind(found.kind)) return found;
    const isRead = lookup.c.req.method === 'GET' || lookup.c.req.method === 'HEAD';
    const kind = isRead ? 'not-found' : 'conflict';
    const detail = `The endpoint "${found.id}" is built in. Built-in endpoints do not support this operation.`;
    return problem(lookup.c, kind, { detail });
  },
};
