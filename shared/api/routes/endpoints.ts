/** Endpoint routes: webhooks, deliveries, parked and dead events, replays. */
import type { Context } from 'hono';
import * as z from 'zod';
import { regionRule } from '../../accounts/managed-accounts.ts';
import type { DeliveryEntry } from '../../delivery/delivery-log.ts';
import { type Endpoint as EndpointRecord, listEndpointsPage, toEndpoint } from '../../delivery/endpoint.ts';
import {
  enableEndpoint,
  pauseEndpoint,
  pingEndpoint,
  resumeEndpoint,
  rotateSecret,
} from '../../delivery/endpoint-controls.ts';
import { readEndpointHealth } from '../../delivery/endpoint-health.ts';
import { EndpointUpdate, NewEndpoint, NewReplay, Rotation } from '../../delivery/endpoint-input.ts';
import { createEndpoint, deleteEndpoint, updateEndpoint } from '../../delivery/endpoints.ts';
import {
  discardAllParked,
  listDeadPage,
  listParkedPage,
  retryAllParked,
} from '../../delivery/parked-events.ts';
import { MAX_PARKED } from '../../delivery/parking.ts';
import { cancelReplay, listReplays, readReplay, resendEvent, startReplay } from '../../delivery/replays.ts';
import type { Expectation, Rejection } from '../../resources.ts';
import { CELL_LOG, keys } from '../../storage/schema.ts';
import { isId } from '../../validation.ts';
import { isFor, isForEndpoint, ofAccount, ofEndpoint, ofWebhook } from '../access.ts';
import {
  AttemptReport,
  CreatedEndpoint,
  DeadEvent,
  Delivery,
  Endpoint,
  EndpointHealth,
  ParkedEvent,
  Replay,
  showDead,
  showDelivery,
  showEndpoint,
  showHealth,
  showParked,
  showReplay,
} from '../endpoint-views.ts';
import type { ApiEnv } from '../env.ts';
import { readJobEvents } from '../job-events.ts';
import type { Caller } from '../keys.ts';
import {
  afterBy,
  afterId,
  afterInTime,
  decodePlace,
  encodePlace,
  flag,
  instant,
  instantText,
  limit,
  nextOf,
  one,
  pageInTime,
  wholeNumber,
} from '../parameters.ts';
import { badParameter, notDone, problem } from '../problems.ts';
import { etagOf, type Route, type RouteParts, route } from '../route.ts';
import { ofEvent, partsOfId } from './events.ts';
import { afterJobEvent, jobParams } from './jobs.ts';

const ETAG = 'Revision of the endpoint, for `If-Match`.';
const PAGE_NOTE =
  'Entries of accounts outside the scope of the API key are left out. A page can therefore be shorter than `limit` and still have a `next`.';

const OUTCOMES = ['delivered', 'rejected', 'retry', 'failed'] as const;
const DELIVERIES_CURSOR = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z#[\w-]{1,100}$/;

/** Maximum number of delivery attempts returned per event. */
const EVENT_DELIVERIES = 100;
/** Maximum number of events per page of a job's deliveries. */
const MAX_JOB_EVENTS = 20;

/** Upper limit of a page of replays: each replay may need the cursors of a thousand accounts. */
const MAX_REPLAYS = 100;
const DEFAULT_REPLAYS = 20;

function decodeEndpointPlace(text: string) {
  const [, id, region] = /^([^/]+)\/([^/]+)$/.exec(decodePlace(text) ?? '') ?? [];
  return id === undefined || region === undefined ? undefined : { id, region };
}

function decodeReplayPlace(text: string) {
  const [, startedAt, id] = /^(\d{1,15})\/(.+)$/.exec(decodePlace(text) ?? '') ?? [];
  return id === undefined ? undefined : { startedAt: Number(startedAt), id };
}

/** Parses the cursor of a list of parked events into a sort key: `<account>#<lane>#<sequence>`. */
const decodeParkedPlace = (text: string) => decodeOwnPlace(text, /^([^#]+)#.*#\d{16}$/s);
/** Parses the cursor of a list of dead events into a sort key: `<account>#<sequence>`. */
const decodeDeadPlace = (text: string) => decodeOwnPlace(text, /^([^#]+)#\d{16}$/);

function decodeOwnPlace(text: string, shape: RegExp): string | undefined {
  const place = decodePlace(text);
  const [, account] = shape.exec(place ?? '') ?? [];
  return account !== undefined && (isId(account) || account === CELL_LOG) ? place : undefined;
}

const Which = z
  .strictObject({
    events: z
      .array(z.string('must be an event id').min(1, 'must be an event id').max(400))
      .min(1, 'must contain at least one event id')
      .max(MAX_PARKED, `must contain at most ${MAX_PARKED} event ids`)
      .optional()
      .describe('Ids of the events.'),
    all: z.literal(true, 'must be true').optional().describe('`true`: all parked events.'),
  })
  .superRefine(({ events, all }, context) => {
    if ((events === undefined) === (all === undefined)) {
      context.addIssue('must have either events or all');
    }
  })
  .meta({ id: 'ParkedEventSelection', minProperties: 1, maxProperties: 1 });

const EVENT_RULE = 'must be an event id: `<account>.<epoch>.<sequence>`';

const missing = z
  .array(z.string())
  .describe('Ids from the request that are not parked (already delivered, discarded or dead).');

const replayParams = z.object({ replay: one.describe('Id of the replay.') });
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
        schema: z.object({ endpoints: z.array(Endpoint), next: nextOf }),
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
      return { body: { endpoints: endpoints.map(showEndpoint), next: behind } };
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
    async ({ c, caller, body: { region: wanted, ...input }, making }, { feed, manage }) => {
      const rejection = checkAccounts(caller, input.accounts ?? null);
      if (rejection) return notDone(c, rejection);
      const region = await regionFor(feed, wanted, input.accounts);
      if (typeof region !== 'string') return notDone(c, region);
      const outcome = await createEndpoint(manage.endpoints, region, input, making);
      if (outcome.kind !== 'created') return notDone(c, outcome);
      const { endpoint, secret, late } = outcome;
      return {
        body: { endpoint: showEndpoint(endpoint), secret, truncatedAccounts: [...late] },
        headers: { etag: etagOf(endpoint.revision), location: pathOf(feed, endpoint) },
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
    async ({ c, caller, subject, body, expected }, { manage }) => {
      const rejection = body.accounts === undefined ? undefined : checkAccounts(caller, body.accounts);
      if (rejection) return notDone(c, rejection);
      // For a key of some accounts, concurrent changes by other keys must not be overwritten or reported.
      const condition = caller.accounts === null ? expected : { revision: subject.revision };
      const { region, id } = subject;
      return changed(c, await updateEndpoint(manage.endpoints, region, id, body, condition), expected);
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
    async ({ c, subject: { region, id }, expected }, { manage }) => {
      const outcome = await deleteEndpoint(manage.endpoints, region, id, expected);
      return outcome.kind === 'deleted' ? { body: undefined } : notDone(c, outcome, expected);
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
    async ({ c, subject: { region, id }, expected }, { manage }) =>
      changed(c, await pauseEndpoint(manage.endpoints, region, id, expected), expected),
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
    async ({ c, subject: { region, id }, expected }, { manage }) =>
      changed(c, await resumeEndpoint(manage.endpoints, region, id, expected), expected),
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
    async ({ c, subject: { region, id }, expected }, { manage }) =>
      changed(c, await enableEndpoint(manage.endpoints, region, id, expected), expected),
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
    async ({ c, subject: { region, id } }, { manage }) => {
      const outcome = await pingEndpoint(manage.endpoints, region, id);
      if (outcome.kind !== 'attempted') return notDone(c, outcome);
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
              const parts = partsOfId(text);
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
    async ({ c, subject: { region, id }, body, making }, { manage }) => {
      const outcome = await rotateSecret(manage.endpoints, region, id, body, making);
      if (outcome.kind !== 'rotated') return notDone(c, outcome);
      return {
        body: {
          secret: outcome.secret,
          previousSecretsExpireAt: instantText(outcome.previousSecretsExpireAt),
        },
      };
    },
  ),
  route(
    {
      method: 'get',
      path: '/v1/endpoints/{id}/health',
      id: 'getEndpointHealth',
      tag: 'Endpoints',
      summary: 'Get the health of an endpoint',
      role: 'read',
      of: ofEndpoint,
      answer: { status: 200, description: 'Health of the endpoint.', schema: EndpointHealth },
    },
    async ({ c, subject: { region, id } }, { feed, deliveries }) => {
      const health = await readEndpointHealth({ ...feed, deliveries }, region, id);
      if (!health) return problem(c, 'not-found', { detail: 'There is no such endpoint.' });
      return { body: showHealth(health) };
    },
  ),
  route(
    {
      method: 'get',
      path: '/v1/endpoints/{id}/deliveries',
      id: 'listEndpointDeliveries',
      tag: 'Endpoints',
      summary: 'List deliveries to an endpoint',
      description: `Newest first. ${PAGE_NOTE}`,
      role: 'read',
      of: ofEndpoint,
      query: z.strictObject({
        limit,
        after: afterId('deliveries', (text) => DELIVERIES_CURSOR.test(text)),
        outcome: one
          .refine(
            (text) => OUTCOMES.some((known) => known === text),
            'must be delivered, rejected, retry or failed',
          )
          .transform((text) => text as (typeof OUTCOMES)[number])
          .meta({ enum: [...OUTCOMES] })
          .optional()
          .describe('Only attempts with this outcome. `failed` includes `rejected` and `retry`.'),
      }),
      answer: {
        status: 200,
        description: 'A page of deliveries.',
        schema: z.object({ deliveries: z.array(Delivery), next: nextOf }),
      },
    },
    async ({ caller, subject, query: { after, limit: most, outcome } }, { deliveries }) => {
      const { region, id, createdAt: sinkCreatedAt } = subject;
      const page = await deliveries.bySink(region, id, {
        before: after,
        limit: most,
        outcome,
        sinkCreatedAt,
      });
      // The endpoint may have followed other accounts before. A ping belongs to no account.
      const theirs = page.entries.filter(({ account, cause }) => cause === 'ping' || isFor(caller, account));
      return { body: { deliveries: theirs.map(showDelivery), next: page.next ?? null } };
    },
  ),
  route(
    {
      method: 'get',
      path: '/v1/events/{event}/deliveries',
      id: 'listEventDeliveries',
      tag: 'Events',
      summary: 'List deliveries of an event',
      description: `The last ${EVENT_DELIVERIES} attempts, oldest first, to endpoints visible to the API key. The most recent attempts can be missing.`,
      role: 'read',
      of: ofEvent,
      query: z.strictObject({ limit, after: afterInTime('deliveries of an event') }),
      answer: {
        status: 200,
        description: 'A page of deliveries of the event.',
        schema: z.object({ deliveries: z.array(Delivery), next: nextOf }),
      },
    },
    async ({ caller, subject, query }, parts) => {
      const ids = [String((JSON.parse(subject.json) as { id: unknown }).id)];
      const all = await deliveriesOf(caller, subject.ref, ids, parts);
      const { page, next } = pageInTime(all, ({ at }) => Date.parse(at), 'oldest', query);
      return { body: { deliveries: [...page], next } };
    },
  ),
  route(
    {
      method: 'get',
      path: '/v1/accounts/{id}/jobs/{jobNumber}/deliveries',
      id: 'listJobDeliveries',
      tag: 'Jobs',
      summary: 'List deliveries of the events of a job',
      description:
        'Grouped by event, newest event first. Only endpoints visible to the API key are included. The most recent attempts can be missing.',
      role: 'read',
      of: ofAccount,
      params: jobParams,
      query: z.strictObject({
        limit: wholeNumber(1, MAX_JOB_EVENTS)
          .default(MAX_JOB_EVENTS)
          .describe(`Maximum number of events per page, 1 to ${MAX_JOB_EVENTS}. Default: ${MAX_JOB_EVENTS}.`),
        after: afterJobEvent,
      }),
      answer: {
        status: 200,
        description: 'Deliveries of a page of events.',
        schema: z.object({ deliveries: z.array(Delivery), next: nextOf }),
      },
    },
    async ({ caller, subject, params: { jobNumber }, query }, parts) => {
      const page = { order: 'newest', ...query } as const;
      const { events, next } = await readJobEvents(parts.feed, subject, Number(jobNumber), page);
      const ids = events.map((json) => String((JSON.parse(json) as { id: unknown }).id));
      return { body: { deliveries: await deliveriesOf(caller, subject, ids, parts), next } };
    },
  ),
  route(
    {
      method: 'get',
      path: '/v1/endpoints/{id}/parked',
      id: 'listParkedEvents',
      tag: 'Endpoints',
      summary: 'List parked events of an endpoint',
      description: `Ordered by account, job and sequence. ${PAGE_NOTE}`,
      role: 'read',
      of: ofEndpoint,
      query: z.strictObject({ limit, after: afterBy('parked events', decodeParkedPlace) }),
      answer: {
        status: 200,
        description: 'A page of parked events.',
        schema: z.object({ parked: z.array(ParkedEvent), next: nextOf }),
      },
    },
    async ({ caller, subject: { region, id }, query }, { feed }) => {
      const { parked, next } = await listParkedPage(feed.table, region, id, query);
      const theirs = parked.filter(({ account }) => isFor(caller, account));
      return { body: { parked: theirs.map(showParked), next: encodePlace(next) } };
    },
  ),
  route(
    {
      method: 'post',
      path: '/v1/endpoints/{id}/parked/retry',
      id: 'retryParkedEvents',
      tag: 'Endpoints',
      summary: 'Retry parked events',
      description:
        'The first parked event of each job is sent; the following ones after it is acknowledged. Nothing is sent while the endpoint is paused or waits after a failure.',
      role: 'operate',
      of: ofEndpoint,
      repeatable: true,
      body: Which,
      answer: {
        status: 200,
        description: 'Number of events scheduled for a retry.',
        schema: z
          .object({ retried: z.int().describe('Number of events scheduled for a retry.'), missing })
          .meta({ id: 'RetriedEvents' }),
      },
    },
    async ({ caller, subject: { region, id }, body }, { feed }) => {
      const which = whichOf(caller, body);
      const outcome = await retryAllParked(feed.table, region, id, which, feed.now());
      return { body: { retried: outcome.count, missing: [...outcome.missing] } };
    },
  ),
  route(
    {
      method: 'post',
      path: '/v1/endpoints/{id}/parked/discard',
      id: 'discardParkedEvents',
      tag: 'Endpoints',
      summary: 'Discard parked events',
      description:
        'Discarded events are not sent any more. The next event of the job is sent immediately. A discarded event can still be resent.',
      role: 'operate',
      of: ofEndpoint,
      body: Which,
      answer: {
        status: 200,
        description: 'Number of discarded events.',
        schema: z
          .object({ discarded: z.int().describe('Number of discarded events.'), missing })
          .meta({ id: 'DiscardedEvents' }),
      },
    },
    async ({ caller, subject: { region, id }, body }, { feed }) => {
      const which = whichOf(caller, body);
      const outcome = await discardAllParked(feed.table, region, id, which, feed.now());
      return { body: { discarded: outcome.count, missing: [...outcome.missing] } };
    },
  ),
  route(
    {
      method: 'get',
      path: '/v1/endpoints/{id}/dead',
      id: 'listDeadEvents',
      tag: 'Endpoints',
      summary: 'List dead-lettered events of an endpoint',
      description: `Events that the endpoint rejected on the last attempt, ordered by account and sequence. ${PAGE_NOTE}`,
      role: 'read',
      of: ofEndpoint,
      query: z.strictObject({ limit, after: afterBy('dead events', decodeDeadPlace) }),
      answer: {
        status: 200,
        description: 'A page of dead events.',
        schema: z.object({ dead: z.array(DeadEvent), next: nextOf }),
      },
    },
    async ({ caller, subject: { region, id }, query }, { feed }) => {
      const { dead, next } = await listDeadPage(feed.table, region, id, query);
      const theirs = dead.filter(({ account }) => isFor(caller, account));
      return { body: { dead: theirs.map(showDead), next: encodePlace(next) } };
    },
  ),
  route(
    {
      method: 'get',
      path: '/v1/endpoints/{id}/replays',
      id: 'listReplays',
      tag: 'Endpoints',
      summary: 'List replays to an endpoint',
      description: 'Newest first: running replays and recently completed ones.',
      role: 'read',
      of: ofEndpoint,
      query: z.strictObject({
        limit: wholeNumber(1, MAX_REPLAYS)
          .default(DEFAULT_REPLAYS)
          .describe(`Maximum number of replays per page, 1 to ${MAX_REPLAYS}. Default: ${DEFAULT_REPLAYS}.`),
        after: afterBy('replays', decodeReplayPlace),
      }),
      answer: {
        status: 200,
        description: 'A page of replays.',
        schema: z.object({ replays: z.array(Replay), next: nextOf }),
      },
    },
    async ({ caller, subject: { region, id }, query: { limit: most, after } }, { feed }) => {
      const shows = (accounts: readonly string[]) => isForAll(caller, accounts);
      const found = await listReplays(feed, region, id, { limit: most + 1, after, shows });
      const replays = found.slice(0, most);
      const last = found.length > most ? replays.at(-1) : undefined;
      const next = last ? encodePlace(`${last.startedAt}/${last.id}`) : null;
      return { body: { replays: replays.map(showReplay), next } };
    },
  ),
  route(
    {
      method: 'post',
      path: '/v1/endpoints/{id}/replays',
      id: 'startReplay',
      tag: 'Endpoints',
      summary: 'Start a replay',
      description:
        'Sends a range of the logs again, in parallel to live deliveries. Events keep their ids. Requests have the header `webhook-replay: true`, which the signature does not cover. Rejected events are counted, not parked.',
      role: 'operate',
      of: ofEndpoint,
      body: NewReplay,
      example: { from: { at: '2026-03-02T08:00:00Z' }, filter: { types: ['job.dispatched'] } },
      answer: {
        status: 201,
        description: 'The replay.',
        schema: Replay,
        headers: { Location: 'Path of the replay.' },
      },
      problems: ['unprocessable-content', 'conflict'],
    },
    async ({ c, caller, subject, body, making }, { feed, manage }) => {
      const { region, id } = subject;
      // An existing replay with this id may cover accounts that the endpoint followed before.
      const there = body.id === undefined ? undefined : await readReplay(feed, region, id, body.id);
      if (there && !isForAll(caller, there.accounts)) {
        return notDone(c, { kind: 'conflict', reason: `id must be new: "${body.id}" is in use.` });
      }
      const outcome = await startReplay(manage.endpoints, region, id, body, making);
      if (outcome.kind !== 'started') return notDone(c, outcome);
      const location = pathOf(feed, subject, `/replays/${outcome.replay.id}`);
      return { body: showReplay(outcome.replay), headers: { location } };
    },
  ),
  route(
    {
      method: 'get',
      path: '/v1/endpoints/{id}/replays/{replay}',
      id: 'getReplay',
      tag: 'Endpoints',
      summary: 'Get a replay and its progress',
      role: 'read',
      of: ofEndpoint,
      params: replayParams,
      answer: { status: 200, description: 'The replay.', schema: Replay },
    },
    async ({ c, caller, subject, params }, parts) => {
      const replay = await findReplay(c, caller, subject, params.replay, parts);
      return replay instanceof Response ? replay : { body: showReplay(replay) };
    },
  ),
  route(
    {
      method: 'post',
      path: '/v1/endpoints/{id}/replays/{replay}/cancel',
      id: 'cancelReplay',
      tag: 'Endpoints',
      summary: 'Cancel a replay',
      description: 'Requests in flight are completed. No further events of the replay are sent.',
      role: 'operate',
      of: ofEndpoint,
      params: replayParams,
      repeatable: true,
      answer: { status: 200, description: 'The cancelled replay.', schema: Replay },
      problems: ['conflict'],
    },
    async ({ c, caller, subject, params }, parts) => {
      const replay = await findReplay(c, caller, subject, params.replay, parts);
      if (replay instanceof Response) return replay;
      const { region, id } = subject;
      const outcome = await cancelReplay(parts.manage.endpoints, region, id, replay.id);
      return outcome.kind === 'cancelled' ? { body: showReplay(outcome.replay) } : notDone(c, outcome);
    },
  ),
];

const isForAll = (caller: Caller, accounts: readonly string[]): boolean =>
  accounts.every((account) => isFor(caller, account));

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
function pathOf(
  { regions }: RouteParts['feed'],
  { region, id }: Pick<EndpointRecord, 'region' | 'id'>,
  rest = '',
): string {
  const query = regions.length > 1 ? `?region=${encodeURIComponent(region)}` : '';
  return `/v1/endpoints/${encodeURIComponent(id)}${rest}${query}`;
}

function shown(endpoint: EndpointRecord) {
  return { body: showEndpoint(endpoint), headers: { etag: etagOf(endpoint.revision) } };
}

function changed(
  c: Context<ApiEnv>,
  outcome: { readonly kind: 'changed'; readonly endpoint: EndpointRecord } | Rejection,
  expected: Expectation,
) {
  return outcome.kind === 'changed' ? shown(outcome.endpoint) : notDone(c, outcome, expected);
}

function whichOf(caller: Caller, { events }: z.output<typeof Which>) {
  return { ids: events ?? ('all' as const), isWanted: (account: string) => isFor(caller, account) };
}

async function findReplay(
  c: Context<ApiEnv>,
  caller: Caller,
  { region, id }: EndpointRecord,
  replay: string,
  { feed }: RouteParts,
) {
  const found = isId(replay) ? await readReplay(feed, region, id, replay) : undefined;
  if (found && isForAll(caller, found.accounts)) return found;
  return problem(c, 'not-found', { detail: 'There is no such replay to this endpoint.' });
}

/** Returns the deliveries of `events` to the endpoints visible to the key. */
async function deliveriesOf(
  caller: Caller,
  { region }: { readonly region: string },
  events: readonly string[],
  { feed, deliveries }: RouteParts,
) {
  const found = await Promise.all(events.map((event) => deliveries.byEvent(region, event, EVENT_DELIVERIES)));
  const entries = found.flat();
  if (caller.accounts === null) return entries.map(showDelivery);
  const sinks = [...new Set(entries.map(({ sink }) => sink))];
  const items = await feed.table.getMany(sinks.map((sink) => keys.sink(region, sink)));
  const seen = new Map(
    items
      .map(toEndpoint)
      .filter((one) => isForEndpoint(caller, one))
      .map(({ id, createdAt }) => [id, createdAt ?? undefined]),
  );
  // A deleted endpoint may have had the same id. Entries of older versions do not record the creation time.
  const isOwn = ({ sink, sinkCreatedAt, at }: DeliveryEntry): boolean => {
    const createdAt = seen.get(sink);
    return sinkCreatedAt === undefined ? at >= (createdAt ?? 0) : sinkCreatedAt === createdAt;
  };
  return entries.filter((entry) => seen.has(entry.sink) && isOwn(entry)).map(showDelivery);
}
