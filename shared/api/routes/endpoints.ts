/** Endpoint routes: create, change, control and delete webhooks and queues. */
import * as z from 'zod';
import { regionRule } from '../../accounts/managed-accounts.ts';
import { isEndpointKind } from '../../built-in-sinks.ts';
import { listEndpointsPage } from '../../delivery/endpoint.ts';
import {
  enableEndpoint,
  pauseEndpoint,
  pingEndpoint,
  resumeEndpoint,
  rotateSecret,
} from '../../delivery/endpoint-controls.ts';
import { EndpointUpdate, NewEndpoint, Rotation } from '../../delivery/endpoint-input.ts';
import { AttemptReport, CreatedEndpoint, Endpoint } from '../../delivery/endpoint-views.ts';
import { createEndpoint, deleteEndpoint, updateEndpoint } from '../../delivery/endpoints.ts';
import { discardAllParked, retryAllParked } from '../../delivery/parked-events.ts';
import { resendEvent } from '../../delivery/replays.ts';
import { timestamp } from '../../representation.ts';
import { type Rejection, rejected } from '../../resources.ts';
import { keys } from '../../storage/schema.ts';
import {
  canAccess,
  canAccessAll,
  canAccessEndpoint,
  endpointSubject,
  ownEndpointSubject,
} from '../access.ts';
import { endpointItem } from '../attention/items.ts';
import { type ActionCall, recordAction } from '../attention/recording.ts';
import type { SubjectAction } from '../attention/views.ts';
import { BatchResponse, batchBody, findEach, MAX_BATCH, runBatch } from '../batch.ts';
import type { Caller } from '../keys.ts';
import {
  afterBy,
  decodePageCursor,
  encodePageCursor,
  flag,
  limit,
  one,
  parseEventId,
} from '../parameters.ts';
import { badParameter, problem } from '../problems.ts';
import { defineResource } from '../resource.ts';
import { createRouteFactory, type Route, type RouteParts, toHandlerResult } from '../route.ts';

const route = createRouteFactory('Endpoints');

function decodeEndpointPlace(text: string) {
  const [, id, region] = /^([^/]+)\/([^/]+)$/.exec(decodePageCursor(text) ?? '') ?? [];
  return id === undefined || region === undefined ? undefined : { id, region };
}

const EVENT_RULE = 'must be an event id: `<account>.<epoch>.<sequence>`';

const endpoints = defineResource({
  ...{ name: 'endpoint', names: 'endpoints', one: 'an endpoint', current: 'The current endpoint.' },
  ...{ tag: 'Endpoints', path: '/v1/endpoints', schema: Endpoint, subject: endpointSubject },
});

/** Actions of a batch. */
const ACTIONS = ['pause', 'resume', 'enable', 'retry', 'discard'] as const;

/** Names of the actions of a batch in the history of the item of the attention queue. */
const RECORDED: { readonly [action in (typeof ACTIONS)[number]]: SubjectAction } = {
  ...{ pause: 'pause', resume: 'resume', enable: 'enable' },
  ...{ retry: 'retry_parked', discard: 'discard_parked' },
};

/** Performs an action of a batch on an endpoint. */
async function runAction(
  action: (typeof ACTIONS)[number],
  endpoint: Endpoint,
  by: ActionCall,
  parts: RouteParts,
): Promise<{ readonly events?: number } | Rejection> {
  const record = await recordAction(RECORDED[action], endpointItem(endpoint), by, parts);
  const outcome = await perform(action, endpoint, by.caller, parts);
  if (!('kind' in outcome) && outcome.events !== 0) await record();
  return outcome;
}

async function perform(
  action: (typeof ACTIONS)[number],
  { region, id }: Endpoint,
  caller: Caller,
  { feed, manage }: RouteParts,
): Promise<{ readonly events?: number } | Rejection> {
  const which = {
    ids: 'all' as const,
    isWanted: ({ account }: { readonly account: string }) => canAccess(caller, account),
  };
  switch (action) {
    case 'retry':
      return { events: (await retryAllParked(feed.table, region, id, which, feed.now())).count };
    case 'discard':
      return { events: (await discardAllParked(feed.table, region, id, which, feed.now())).count };
    case 'pause':
    case 'resume':
    case 'enable': {
      const change = { pause: pauseEndpoint, resume: resumeEndpoint, enable: enableEndpoint }[action];
      const outcome = await change(manage.endpoints, region, id);
      return 'endpoint' in outcome ? {} : outcome;
    }
  }
}

/** All endpoint routes. */
export const endpointRoutes: readonly Route[] = [
  endpoints.list(
    {
      page: 'A page of endpoints, ordered by id.',
      query: z.strictObject({
        limit,
        after: afterBy('endpoints', decodeEndpointPlace),
        region: one.optional().describe('Only endpoints of this region.'),
        builtIn: flag
          .optional()
          .describe('Include the built-in endpoints. Requires an API key for all accounts.'),
      }),
    },
    async ({ c, caller, query: { region, builtIn, ...page } }, { feed }) => {
      if (region !== undefined && !feed.regions.includes(region)) {
        return badParameter(c, `region ${regionRule(feed.regions)}.`);
      }
      const regions = feed.regions.filter((served) => region === undefined || served === region);
      const { endpoints, next } = await listEndpointsPage(feed, regions, {
        ...page,
        shows: (endpoint) =>
          (isEndpointKind(endpoint.kind) || builtIn === true) && canAccessEndpoint(caller, endpoint),
      });
      return { endpoints, next: next && encodePageCursor(`${next.id}/${next.region}`) };
    },
  ),
  endpoints.create(
    {
      description: 'With a restricted API key, `accounts` is required.',
      body: NewEndpoint.extend({
        region: z
          .string('must be the name of a region')
          .optional()
          .describe('Required if Jobwire serves several regions and `accounts` is omitted.'),
      }).meta({ id: 'NewEndpoint' }),
      example: {
        id: 'erp',
        region: 'us',
        url: 'https://erp.example.com/jobs',
        accounts: ['acme'],
        types: ['job.*'],
      },
      answer: {
        description: 'The endpoint and its signing secret.',
        schema: CreatedEndpoint,
      },
      location: (endpoint, { feed }) => endpointPath(feed, endpoint),
    },
    async ({ caller, body: { region: wanted, ...input }, generators }, { feed, manage }) => {
      const rejection = checkAccounts(caller, input.accounts ?? null) ?? checkQueues(caller, input.kind);
      if (rejection) return rejection;
      const region = await regionFor(feed, wanted, input.accounts);
      if (typeof region !== 'string') return region;
      return createEndpoint(manage.endpoints, region, input, generators);
    },
    ({ endpoint, secret, late }) => ({ endpoint, secret, truncatedAccounts: late }),
  ),
  endpoints.get(),
  endpoints.update(
    {
      description:
        'The parked and dead events of removed accounts are deleted. A restricted API key cannot add other accounts.',
      subject: ownEndpointSubject,
      body: EndpointUpdate,
      example: { types: ['job.dispatched', 'job.tracking_added'], ratePerSecond: null },
    },
    async ({ caller, subject, body, expected }, { manage }) => {
      const rejection =
        (body.accounts === undefined ? undefined : checkAccounts(caller, body.accounts)) ??
        (body.url === undefined ? undefined : checkQueues(caller, subject.kind));
      if (rejection) return rejection;
      // For a key of some accounts, concurrent changes by other keys must not be overwritten or reported.
      const condition = caller.accounts === null ? expected : { revision: subject.revision };
      const { region, id } = subject;
      return updateEndpoint(manage.endpoints, region, id, body, condition);
    },
  ),
  endpoints.remove(
    {
      summary: 'Delete an endpoint and its data',
      description: 'Entries in the delivery log are kept until they expire.',
      subject: ownEndpointSubject,
    },
    ({ subject: { region, id }, expected }, { manage }) =>
      deleteEndpoint(manage.endpoints, region, id, expected),
  ),
  endpoints.act(
    'pause',
    {
      summary: 'Pause an endpoint',
      description: 'Delivery stops within about 2 seconds. Events are kept.',
      subject: ownEndpointSubject,
      record: ({ subject, ...by }, parts) => recordAction('pause', endpointItem(subject), by, parts),
    },
    ({ subject: { region, id }, expected }, { manage }) =>
      pauseEndpoint(manage.endpoints, region, id, expected),
  ),
  endpoints.act(
    'resume',
    {
      summary: 'Resume a paused endpoint',
      description: 'Deliveries resume where they stopped.',
      subject: ownEndpointSubject,
      record: ({ subject, ...by }, parts) => recordAction('resume', endpointItem(subject), by, parts),
    },
    ({ subject: { region, id }, expected }, { manage }) =>
      resumeEndpoint(manage.endpoints, region, id, expected),
  ),
  endpoints.act(
    'enable',
    {
      summary: 'Enable an endpoint',
      description:
        'Resumes deliveries to an endpoint that is disabled, or that waits after a failure. Also works for endpoints that are built in or in the configuration file.',
      record: ({ subject, ...by }, parts) => recordAction('enable', endpointItem(subject), by, parts),
    },
    ({ subject: { region, id }, expected }, { manage }) =>
      enableEndpoint(manage.endpoints, region, id, expected),
  ),
  route(
    {
      method: 'post',
      path: '/v1/endpoints/batch',
      id: 'batchEndpoints',
      summary: 'Perform an action on several endpoints',
      description:
        '`retry` and `discard` apply to all parked events of each endpoint. Each endpoint has its own result. The status is 200 even if all actions failed. `all` does not include built-in endpoints.',
      role: 'operate',
      body: batchBody(ACTIONS, 'endpoints').meta({ id: 'EndpointBatch' }),
      example: { action: 'pause', ids: ['erp', 'shop'] },
      answer: { description: 'Result for each endpoint.', schema: BatchResponse },
    },
    async ({ c, caller, body: { action, ids, region, after } }, parts) => {
      const { feed } = parts;
      if (region !== undefined && !feed.regions.includes(region)) {
        return badParameter(c, `region ${regionRule(feed.regions)}.`);
      }
      const run = (items: Parameters<typeof runBatch<Endpoint>>[2]) =>
        runBatch(c, parts, items, (endpoint) => runAction(action, endpoint, { c, caller }, parts));
      if (ids) {
        const subject = action === 'pause' || action === 'resume' ? ownEndpointSubject : endpointSubject;
        const query: Readonly<Record<string, string>> = region === undefined ? {} : { region };
        const find = async (id: string) => ({
          id,
          found: await subject.find({ c, caller, params: { id }, query }, parts),
        });
        return { body: { results: await run(await findEach(ids, find)), next: null } };
      }
      const place = after === undefined ? undefined : decodeEndpointPlace(after);
      if (after !== undefined && !place) {
        return badParameter(c, 'after must be the `next` of a previous response.');
      }
      const { endpoints, next } = await listEndpointsPage(
        feed,
        feed.regions.filter((served) => region === undefined || served === region),
        {
          ...{ limit: MAX_BATCH, after: place },
          shows: (endpoint) => isEndpointKind(endpoint.kind) && canAccessEndpoint(caller, endpoint),
        },
      );
      const results = await run(endpoints.map((endpoint) => ({ id: endpoint.id, found: endpoint })));
      return { body: { results, next: next && encodePageCursor(`${next.id}/${next.region}`) } };
    },
  ),
  route(
    {
      method: 'post',
      path: '/v1/endpoints/{id}/ping',
      id: 'pingEndpoint',
      summary: 'Send a test event',
      description:
        'Immediately sends an event of type `jobwire.ping`, even if the endpoint is paused or disabled. The event is not recorded in a log.',
      role: 'operate',
      subject: ownEndpointSubject,
      repeatable: true,
      answer: { description: 'Result of the attempt.', schema: AttemptReport },
      problems: ['conflict'],
    },
    async ({ subject: { region, id } }, { manage }) =>
      toHandlerResult(await pingEndpoint(manage.endpoints, region, id)),
  ),
  route(
    {
      method: 'post',
      path: '/v1/endpoints/{id}/resend',
      id: 'resendEvent',
      summary: 'Resend an event',
      description:
        'Sends one event of the log immediately, even if a filter excludes its type, or if the endpoint is paused or disabled.',
      role: 'operate',
      subject: ownEndpointSubject,
      body: z
        .strictObject({
          event: z
            .string(EVENT_RULE)
            .transform((text, context) => {
              const parts = parseEventId(text);
              if (!parts) context.addIssue(EVENT_RULE);
              return parts ?? z.NEVER;
            })
            .describe('Id of the event.'),
        })
        .meta({ id: 'ResendRequest' }),
      example: { event: 'acme.t3k9x1a2b3c4.1044' },
      answer: { description: 'Result of the attempt.', schema: AttemptReport },
      problems: ['conflict', 'unprocessable-content'],
    },
    async ({ c, subject: { region, id }, body: { event } }, { manage }) => {
      const { account, epoch, sequence } = event;
      const outcome = await resendEvent(manage.endpoints, region, id, account, sequence, epoch);
      if (outcome.kind !== 'attempted') {
        return problem(c, 'unprocessable-content', {
          field: 'event',
          detail: `event cannot be sent: ${outcome.reason}`,
        });
      }
      return toHandlerResult(outcome);
    },
  ),
  route(
    {
      method: 'post',
      path: '/v1/endpoints/{id}/rotate-secret',
      id: 'rotateEndpointSecret',
      summary: 'Rotate the signing secret of an endpoint',
      description: 'Requests are also signed with the previous secrets until these expire.',
      role: 'admin',
      subject: ownEndpointSubject,
      body: Rotation,
      example: { gracePeriodSeconds: 86_400 },
      answer: {
        description: 'The new secret. It is returned only once.',
        schema: z
          .object({
            secret: z.string().describe('New signing secret.'),
            previousSecretsExpireAt: timestamp.describe('Time at which the previous secrets expire.'),
          })
          .meta({ id: 'RotatedSecret' }),
      },
      problems: ['unprocessable-content', 'conflict'],
    },
    async ({ subject: { region, id }, body, generators }, { manage }) =>
      toHandlerResult(await rotateSecret(manage.endpoints, region, id, body, generators)),
  ),
];

/** Returns why a key cannot subscribe an endpoint to `accounts`; `null` means all accounts. */
function checkAccounts(caller: Caller, accounts: readonly string[] | null): Rejection | undefined {
  if (caller.accounts === null || (accounts && canAccessAll(caller, accounts))) return undefined;
  const reason = accounts
    ? 'accounts must contain only accounts of the API key.'
    : 'accounts is required, because the API key is restricted to some accounts.';
  return rejected(reason);
}

/**
 * Returns why a key cannot choose the queue of an endpoint: Jobwire's own permissions reach the queues of all
 * customers.
 */
function checkQueues(caller: Caller, kind: Endpoint['kind'] | undefined): Rejection | undefined {
  if (kind !== 'sqs' || caller.accounts === null) return undefined;
  return rejected('kind must be webhook, because sqs requires an API key for all accounts.');
}

/** Returns the region of a new endpoint: the given one, the only one served, or the one of its accounts. */
async function regionFor(
  { table, regions }: RouteParts['feed'],
  given: string | undefined,
  accounts: readonly string[] = [],
): Promise<string | Rejection> {
  if (given !== undefined) {
    if (regions.includes(given)) return given;
    return rejected(`region ${regionRule(regions)}.`);
  }
  const [only, ...others] = regions;
  if (only !== undefined && others.length === 0) return only;
  const [account] = accounts;
  const refs = account === undefined ? [] : regions.map((region) => ({ region, account }));
  const known = await table.getMany(refs.map((ref) => keys.account(ref)));
  const [ref, ...more] = refs.filter((one) => known.some(({ pk }) => pk === keys.account(one).pk));
  if (ref && more.length === 0) return ref.region;
  if (account !== undefined && !ref) {
    return rejected(`accounts must contain only registered accounts; "${account}" is not registered.`);
  }
  return rejected(`region is missing; it ${regionRule(regions)}.`);
}

/** Returns the path of an endpoint, with its region if several regions are served. */
export function endpointPath(
  { regions }: RouteParts['feed'],
  { region, id }: Pick<Endpoint, 'region' | 'id'>,
  rest = '',
): string {
  const query = regions.length > 1 ? `?region=${encodeURIComponent(region)}` : '';
  return `/v1/endpoints/${encodeURIComponent(id)}${rest}${query}`;
}
