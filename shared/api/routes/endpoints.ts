/** Endpoint routes: create, change, control and delete webhooks. */
import * as z from 'zod';
import { regionRule } from '../../accounts/managed-accounts.ts';
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
import { resendEvent } from '../../delivery/replays.ts';
import { instant } from '../../representation.ts';
import type { Rejection } from '../../resources.ts';
import { keys } from '../../storage/schema.ts';
import { isForAll, isForEndpoint, ofEndpoint, ofWebhook } from '../access.ts';
import type { Caller } from '../keys.ts';
import { afterBy, decodePlace, encodePlace, flag, limit, nextCursor, one } from '../parameters.ts';
import { badParameter, problem } from '../problems.ts';
import { type Route, type RouteParts, route } from '../route.ts';
import { parseEventId } from './events.ts';

const ETAG = 'Revision of the endpoint, for `If-Match`.';

function decodeEndpointPlace(text: string) {
  const [, id, region] = /^([^/]+)\/([^/]+)$/.exec(decodePlace(text) ?? '') ?? [];
  return id === undefined || region === undefined ? undefined : { id, region };
}

const EVENT_RULE = 'must be an event id: `<account>.<epoch>.<sequence>`';

const changedAnswer = {
  status: 200,
  description: 'The current endpoint.',
  schema: Endpoint,
  headers: { ETag: ETAG },
} as const;

/** All endpoint routes. */
export const endpointRoutes: readonly Route[] = [
  route(
    {
      method: 'get',
      path: '/v1/endpoints',
      id: 'listEndpoints',
      tag: 'Endpoints',
      summary: 'List endpoints',
      role: 'read',
      query: z.strictObject({
        limit,
        after: afterBy('endpoints', decodeEndpointPlace),
        region: one.optional().describe('Only endpoints of this region.'),
        builtIn: flag.optional().describe('Include built-in topics. Requires a key for all accounts.'),
      }),
      answer: {
        status: 200,
        description: 'A page of endpoints, ordered by id.',
        schema: z.object({ endpoints: z.array(Endpoint), next: nextCursor }),
      },
    },
    async ({ c, caller, query: { region, builtIn, ...page } }, { feed }) => {
      if (region !== undefined && !feed.regions.includes(region)) {
        return badParameter(c, `region ${regionRule(feed.regions)}.`);
      }
      const regions = feed.regions.filter((served) => region === undefined || served === region);
      const { endpoints, next } = await listEndpointsPage(feed, regions, {
        ...page,
        shows: (endpoint) =>
          (endpoint.kind === 'webhook' || builtIn === true) && isForEndpoint(caller, endpoint),
      });
      const behind = next && encodePlace(`${next.id}/${next.region}`);
      return { body: { endpoints: endpoints, next: behind } };
    },
  ),
  route(
    {
      method: 'post',
      path: '/v1/endpoints',
      id: 'createEndpoint',
      tag: 'Endpoints',
      summary: 'Create an endpoint',
      description:
        'Omitted filters do not restrict anything. A key for some accounts must set `accounts` to a subset of its own accounts.',
      role: 'admin',
      body: NewEndpoint.extend({
        region: z
          .string('must be the name of a region')
          .optional()
          .describe(
            'Region of the endpoint. Required if several regions are served and `accounts` is omitted.',
          ),
      }).meta({ id: 'NewEndpoint' }),
      example: {
        id: 'erp',
        region: 'us',
        url: 'https://erp.example.com/jobs',
        accounts: ['acme'],
        types: ['job.*'],
      },
      answer: {
        status: 201,
        description: 'The endpoint and its signing secret. The secret is not returned again.',
        schema: CreatedEndpoint,
        headers: { ETag: ETAG, Location: 'Path of the endpoint.' },
      },
      problems: ['unprocessable-content', 'conflict'],
    },
    async ({ caller, body: { region: wanted, ...input }, generators: making }, { feed, manage }) => {
      const rejection = checkAccounts(caller, input.accounts ?? null);
      if (rejection) return rejection;
      const region = await regionFor(feed, wanted, input.accounts);
      if (typeof region !== 'string') return region;
      const outcome = await createEndpoint(manage.endpoints, region, input, making);
      if (outcome.kind !== 'created') return outcome;
      const { endpoint, secret, late } = outcome;
      return {
        body: { endpoint, secret, truncatedAccounts: late },
        revision: endpoint.revision,
        headers: { location: endpointPath(feed, endpoint) },
      };
    },
  ),
  route(
    {
      method: 'get',
      path: '/v1/endpoints/{id}',
      id: 'getEndpoint',
      tag: 'Endpoints',
      summary: 'Get an endpoint',
      role: 'read',
      of: ofEndpoint,
      answer: changedAnswer,
    },
    ({ subject }) => shown(subject),
  ),
  route(
    {
      method: 'patch',
      path: '/v1/endpoints/{id}',
      id: 'updateEndpoint',
      tag: 'Endpoints',
      summary: 'Update an endpoint',
      description:
        'Omitted fields are unchanged; `null` removes a restriction. A key for some accounts cannot subscribe the endpoint to other accounts.',
      role: 'admin',
      of: ofWebhook,
      body: EndpointUpdate,
      example: { types: ['job.dispatched', 'job.tracking_added'], ratePerSecond: null },
      conditional: true,
      answer: changedAnswer,
      problems: ['unprocessable-content', 'conflict'],
    },
    async ({ caller, subject, body, expected }, { manage }) => {
      const rejection = body.accounts === undefined ? undefined : checkAccounts(caller, body.accounts);
      if (rejection) return rejection;
      // For a key of some accounts, concurrent changes by other keys must not be overwritten or reported.
      const condition = caller.accounts === null ? expected : { revision: subject.revision };
      const { region, id } = subject;
      return toResult(await updateEndpoint(manage.endpoints, region, id, body, condition));
    },
  ),
  route(
    {
      method: 'delete',
      path: '/v1/endpoints/{id}',
      id: 'deleteEndpoint',
      tag: 'Endpoints',
      summary: 'Delete an endpoint and its data',
      description:
        'Requests in flight are completed. Entries in the delivery log are kept until they expire.',
      role: 'admin',
      of: ofWebhook,
      conditional: true,
      answer: { status: 204, description: 'The endpoint is deleted.' },
      problems: ['conflict'],
    },
    async ({ subject: { region, id }, expected }, { manage }) => {
      const outcome = await deleteEndpoint(manage.endpoints, region, id, expected);
      return outcome.kind === 'deleted' ? { body: undefined } : outcome;
    },
  ),
  route(
    {
      method: 'post',
      path: '/v1/endpoints/{id}/pause',
      id: 'pauseEndpoint',
      tag: 'Endpoints',
      summary: 'Pause an endpoint',
      description: 'Nothing is sent while the endpoint is paused. Its cursors are kept.',
      role: 'operate',
      of: ofWebhook,
      conditional: true,
      answer: changedAnswer,
      problems: ['conflict'],
    },
    async ({ subject: { region, id }, expected }, { manage }) =>
      toResult(await pauseEndpoint(manage.endpoints, region, id, expected)),
  ),
  route(
    {
      method: 'post',
      path: '/v1/endpoints/{id}/resume',
      id: 'resumeEndpoint',
      tag: 'Endpoints',
      summary: 'Resume a paused endpoint',
      description: 'Deliveries resume after the last cursor.',
      role: 'operate',
      of: ofWebhook,
      conditional: true,
      answer: changedAnswer,
      problems: ['conflict'],
    },
    async ({ subject: { region, id }, expected }, { manage }) =>
      toResult(await resumeEndpoint(manage.endpoints, region, id, expected)),
  ),
  route(
    {
      method: 'post',
      path: '/v1/endpoints/{id}/enable',
      id: 'enableEndpoint',
      tag: 'Endpoints',
      summary: 'Enable an endpoint',
      description:
        'Resumes deliveries to an endpoint that is disabled, or that waits after a failure. One event is sent first, the others after it is acknowledged. Also for configured and built-in endpoints.',
      role: 'operate',
      of: ofEndpoint,
      conditional: true,
      answer: changedAnswer,
      problems: ['conflict'],
    },
    async ({ subject: { region, id }, expected }, { manage }) =>
      toResult(await enableEndpoint(manage.endpoints, region, id, expected)),
  ),
  route(
    {
      method: 'post',
      path: '/v1/endpoints/{id}/ping',
      id: 'pingEndpoint',
      tag: 'Endpoints',
      summary: 'Send a test event',
      description:
        'Sends an event of type `jobwire.ping` immediately, signed like every event, even if the endpoint is paused or disabled. The event is not recorded in a log.',
      role: 'operate',
      of: ofWebhook,
      repeatable: true,
      answer: { status: 200, description: 'Result of the attempt.', schema: AttemptReport },
    },
    async ({ subject: { region, id } }, { manage }) => {
      const outcome = await pingEndpoint(manage.endpoints, region, id);
      if (outcome.kind !== 'attempted') return outcome;
      const { kind: _, ...report } = outcome;
      return { body: report };
    },
  ),
  route(
    {
      method: 'post',
      path: '/v1/endpoints/{id}/resend',
      id: 'resendEvent',
      tag: 'Endpoints',
      summary: 'Resend an event',
      description:
        'Sends one event of the log immediately, even if its type is filtered out or the endpoint is paused or disabled. The event keeps its id. The request has the header `webhook-replay: true`, which the signature does not cover.',
      role: 'operate',
      of: ofWebhook,
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
      answer: { status: 200, description: 'Result of the attempt.', schema: AttemptReport },
      problems: ['unprocessable-content'],
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
      const { kind: _, ...report } = outcome;
      return { body: report };
    },
  ),
  route(
    {
      method: 'post',
      path: '/v1/endpoints/{id}/rotate-secret',
      id: 'rotateEndpointSecret',
      tag: 'Endpoints',
      summary: 'Rotate the signing secret of an endpoint',
      description: 'Requests are also signed with the previous secrets, by default for one day.',
      role: 'admin',
      of: ofWebhook,
      body: Rotation,
      example: { gracePeriodSeconds: 86_400 },
      answer: {
        status: 200,
        description: 'The new secret. It is not returned again.',
        schema: z
          .object({
            secret: z.string().describe('New signing secret.'),
            previousSecretsExpireAt: instant.describe('Time at which the previous secrets expire.'),
          })
          .meta({ id: 'RotatedSecret' }),
      },
      problems: ['unprocessable-content', 'conflict'],
    },
    async ({ subject: { region, id }, body, generators: making }, { manage }) => {
      const outcome = await rotateSecret(manage.endpoints, region, id, body, making);
      if (outcome.kind !== 'rotated') return outcome;
      return {
        body: {
          secret: outcome.secret,
          previousSecretsExpireAt: outcome.previousSecretsExpireAt,
        },
      };
    },
  ),
];

/** Returns why a key cannot subscribe an endpoint to `accounts`; `null` means all accounts. */
function checkAccounts(caller: Caller, accounts: readonly string[] | null): Rejection | undefined {
  if (caller.accounts === null || (accounts && isForAll(caller, accounts))) return undefined;
  const reason = accounts
    ? 'accounts must be a subset of the accounts of the key.'
    : 'accounts must be named, for the key is for some accounts only.';
  return { kind: 'rejected', reason };
}

/** Returns the region of a new endpoint: the given one, the only one served, or the one of its accounts. */
async function regionFor(
  { table, regions }: RouteParts['feed'],
  given: string | undefined,
  accounts: readonly string[] = [],
): Promise<string | Rejection> {
  if (given !== undefined) {
    if (regions.includes(given)) return given;
    return { kind: 'rejected', reason: `region ${regionRule(regions)}.` };
  }
  const [only, ...others] = regions;
  if (only !== undefined && others.length === 0) return only;
  const [account] = accounts;
  const refs = account === undefined ? [] : regions.map((region) => ({ region, account }));
  const known = await table.getMany(refs.map((ref) => keys.account(ref)));
  const [ref, ...more] = refs.filter((one) => known.some(({ pk }) => pk === keys.account(one).pk));
  if (ref && more.length === 0) return ref.region;
  if (account !== undefined && !ref) {
    const reason = `accounts must name accounts that are registered, and "${account}" is not.`;
    return { kind: 'rejected', reason };
  }
  return { kind: 'rejected', reason: `region is missing; it ${regionRule(regions)}.` };
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

function shown(endpoint: Endpoint) {
  return { body: endpoint, revision: endpoint.revision };
}

function toResult(outcome: { readonly kind: 'changed'; readonly endpoint: Endpoint } | Rejection) {
  return outcome.kind === 'changed' ? shown(outcome.endpoint) : outcome;
}
