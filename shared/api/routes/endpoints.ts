/** Endpoints: webhooks, what was delivered to them, what is set aside, and what is sent once more. */
import type { Context } from 'hono';
import * as z from 'zod';
import { isId } from '../../checks.ts';
import type { Expectation, Refusal } from '../../managed.ts';
import type { DeliveryEntry } from '../../sinks/delivery-log.ts';
import { endpointHealth } from '../../sinks/endpoint-health.ts';
import { EndpointChange, NewEndpoint, NewReplay, Rotation } from '../../sinks/endpoint-input.ts';
import {
  changeEndpoint,
  createEndpoint,
  deleteEndpoint,
  type Endpoint as EndpointRecord,
  enableEndpoint,
  pageOfEndpoints,
  pauseEndpoint,
  pingEndpoint,
  resumeEndpoint,
  rotateSecret,
  toEndpoint,
} from '../../sinks/endpoints.ts';
import {
  discardAllParked,
  MAX_PARKED,
  pageOfDead,
  pageOfParked,
  retryAllParked,
} from '../../sinks/parking.ts';
import { cancelReplay, listReplays, readReplay, resendEvent, startReplay } from '../../sinks/replays.ts';
import { CELL_LOG, keys } from '../../table/schema.ts';
import { regionRule } from '../../tracking/managed-accounts.ts';
import { isFor, isForEndpoint, ofAccount, ofEndpoint, ofWebhook } from '../access.ts';
import {
  AttemptReport,
  DeadEvent,
  Delivery,
  Endpoint,
  EndpointHealth,
  NewEndpointAnswer,
  ParkedEvent,
  Replay,
  showDead,
  showDelivery,
  showEndpoint,
  showHealth,
  showParked,
  showReplay,
} from '../endpoint-views.ts';
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
import { type ApiEnv, etagOf, type Route, type RouteParts, route } from '../route.ts';
import { ofEvent, partsOfId } from './events.ts';
import { afterJobEvent, jobParams } from './jobs.ts';

const ETAG = 'What `If-Match` takes.';
const PAGE_NOTE =
  'A page can be shorter than asked for, with a `next` all the same: what is of accounts that are not the key’s is left out.';

const OUTCOMES = ['delivered', 'rejected', 'retry', 'failed'] as const;
const DELIVERIES_CURSOR = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z#[\w-]{1,100}$/;

/** Attempts of one event that are shown. */
const EVENT_DELIVERIES = 100;
/** Events of a job whose deliveries are on one page. */
const MAX_JOB_EVENTS = 20;

/** A page of replays may read the cursors of a thousand accounts for each. */
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

/** The sort key behind which a list of parked events resumes: `<account>#<lane>#<sequence>`. */
const decodeParkedPlace = (text: string) => decodeOwnPlace(text, /^([^#]+)#.*#\d{16}$/s);
/** The same of dead events: `<account>#<sequence>`. */
const decodeDeadPlace = (text: string) => decodeOwnPlace(text, /^([^#]+)#\d{16}$/);

function decodeOwnPlace(text: string, shape: RegExp): string | undefined {
  const place = decodePlace(text);
  const [, account] = shape.exec(place ?? '') ?? [];
  return account !== undefined && (isId(account) || account === CELL_LOG) ? place : undefined;
}

const Which = z
  .strictObject({
    events: z
      .array(z.string('must be the id of an event').min(1, 'must be the id of an event').max(400))
      .min(1, 'must name at least one event')
      .max(MAX_PARKED, `must name at most ${MAX_PARKED} events`)
      .optional()
      .describe('The ids of the events.'),
    all: z.literal(true, 'must be true').optional().describe('All that are set aside.'),
  })
  .superRefine(({ events, all }, context) => {
    if ((events === undefined) === (all === undefined)) {
      context.addIssue('must have either events or all');
    }
  })
  .meta({ id: 'WhichParked', minProperties: 1, maxProperties: 1 });

const EVENT_RULE = 'must be the id of an event: `<account>.<epoch>.<sequence>`';

const missing = z
  .array(z.string())
  .describe('Ids of those that were named and are not set aside: delivered meanwhile, discarded, dead.');

const replayParams = z.object({ replay: one.describe('The id of the replay.') });
const changedAnswer = {
  status: 200,
  description: 'The endpoint.',
  schema: Endpoint,
  headers: { ETag: ETAG },
} as const;

/** Everything about endpoints. */
export const endpointRoutes: readonly Route[] = [
  route(
    {
      method: 'get',
      path: '/v1/endpoints',
      id: 'listEndpoints',
      tag: 'Endpoints',
      summary: 'All endpoints, by id',
      role: 'read',
      query: z.strictObject({
        limit,
        after: afterBy('endpoints', decodeEndpointPlace),
        region: one.optional().describe('Only those of this region.'),
        builtIn: flag.optional().describe('Topics that are built in as well, for keys for all accounts.'),
      }),
      answer: {
        status: 200,
        description: 'A page of endpoints.',
        schema: z.object({ endpoints: z.array(Endpoint), next: nextOf }),
      },
    },
    async ({ c, caller, query: { region, builtIn, ...page } }, { feed }) => {
      if (region !== undefined && !feed.regions.includes(region)) {
        return badParameter(c, `region ${regionRule(feed.regions)}.`);
      }
      const regions = feed.regions.filter((served) => region === undefined || served === region);
      const { endpoints, next } = await pageOfEndpoints(feed, regions, {
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
      summary: 'Make an endpoint',
      description:
        'What is left out restricts nothing. A key that is for some accounts has to name accounts, all of them its own.',
      role: 'admin',
      body: NewEndpoint.extend({
        region: z
          .string('must be the name of a region')
          .optional()
          .describe('Where it is: needed where several regions are served and no accounts are named.'),
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
        description: 'The endpoint, and the secret that signs its requests, which is shown this once.',
        schema: NewEndpointAnswer,
        headers: { ETag: ETAG, Location: 'The path of the endpoint.' },
      },
      problems: ['refused', 'conflict'],
    },
    async ({ c, caller, body: { region: wanted, ...input }, making }, { feed, manage }) => {
      const refusal = refuseAccounts(caller, input.accounts ?? null);
      if (refusal) return notDone(c, refusal);
      const region = await regionFor(feed, wanted, input.accounts);
      if (typeof region !== 'string') return notDone(c, region);
      const outcome = await createEndpoint(manage.endpoints, region, input, making);
      if (outcome.kind !== 'created') return notDone(c, outcome);
      const { endpoint, secret, late } = outcome;
      return {
        body: { endpoint: showEndpoint(endpoint), secret, late: [...late] },
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
      summary: 'One endpoint',
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
      id: 'changeEndpoint',
      tag: 'Endpoints',
      summary: 'Change an endpoint',
      description:
        'What is left out stays as it is, null takes a restriction away. A key that is for some accounts can’t have it follow others.',
      role: 'admin',
      of: ofWebhook,
      body: EndpointChange,
      example: { types: ['job.dispatched', 'job.tracking_added'], ratePerSecond: null },
      conditional: true,
      answer: changedAnswer,
      problems: ['refused', 'conflict'],
    },
    async ({ c, caller, subject, body, expected }, { manage }) => {
      const refusal = body.accounts === undefined ? undefined : refuseAccounts(caller, body.accounts);
      if (refusal) return notDone(c, refusal);
      // What others have it follow meanwhile is none of this key's business.
      const condition = caller.accounts === null ? expected : { revision: subject.revision };
      const { region, id } = subject;
      return changed(c, await changeEndpoint(manage.endpoints, region, id, body, condition), expected);
    },
  ),
  route(
    {
      method: 'delete',
      path: '/v1/endpoints/{id}',
      id: 'deleteEndpoint',
      tag: 'Endpoints',
      summary: 'Delete an endpoint with everything that is kept of it',
      description:
        'What is under way to it arrives. Deliveries stay in the log of deliveries until they expire.',
      role: 'admin',
      of: ofWebhook,
      conditional: true,
      answer: { status: 204, description: 'It is gone.' },
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
      summary: 'Hold an endpoint back: it keeps its places in the logs, and gets nothing',
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
      summary: 'Let an endpoint that was paused go on where it stood',
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
      summary: 'Let an endpoint that was disabled, or that waits after a failure, go on at once',
      description: 'One event goes first. Also for endpoints of the configuration and for what is built in.',
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
      summary: 'Send an event of type jobwire.ping at once',
      description: 'Signed as all are, also to an endpoint that is paused or disabled; it stands in no log.',
      role: 'operate',
      of: ofWebhook,
      repeatable: true,
      answer: { status: 200, description: 'What came of it.', schema: AttemptReport },
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
      summary: 'Send one event of the log again at once',
      description:
        'With the id it had, and the header `webhook-replay: true`, which the signature does not cover; whatever types the endpoint gets, also when it is paused or disabled.',
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
            .describe('The id of the event.'),
        })
        .meta({ id: 'ResendRequest' }),
      answer: { status: 200, description: 'What came of it.', schema: AttemptReport },
      problems: ['refused'],
    },
    async ({ c, subject: { region, id }, body: { event } }, { manage }) => {
      const { account, epoch, sequence } = event;
      const outcome = await resendEvent(manage.endpoints, region, id, account, sequence, epoch);
      if (outcome.kind !== 'attempted') {
        return problem(c, 'refused', {
          field: 'event',
          detail: `event can't be sent: ${outcome.reason}`,
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
      summary: 'Give an endpoint a new signing secret',
      description: 'The former ones sign along for a day unless told otherwise.',
      role: 'admin',
      of: ofWebhook,
      body: Rotation,
      example: { keepOldSeconds: 86_400 },
      answer: {
        status: 200,
        description: 'The new secret, which is shown this once.',
        schema: z
          .object({
            secret: z.string().describe('What requests are signed with from now on.'),
            oldSignUntil: instant.describe('Until when the former ones sign along.'),
          })
          .meta({ id: 'RotatedSecret' }),
      },
      problems: ['refused', 'conflict'],
    },
    async ({ c, subject: { region, id }, body, making }, { manage }) => {
      const outcome = await rotateSecret(manage.endpoints, region, id, body, making);
      if (outcome.kind !== 'rotated') return notDone(c, outcome);
      return { body: { secret: outcome.secret, oldSignUntil: instantText(outcome.oldSignUntil) } };
    },
  ),
  route(
    {
      method: 'get',
      path: '/v1/endpoints/{id}/health',
      id: 'getEndpointHealth',
      tag: 'Endpoints',
      summary: 'How an endpoint is doing',
      role: 'read',
      of: ofEndpoint,
      answer: { status: 200, description: 'Its health.', schema: EndpointHealth },
    },
    async ({ c, subject: { region, id } }, { feed, deliveries }) => {
      const health = await endpointHealth({ ...feed, deliveries }, region, id);
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
      summary: 'What was sent to an endpoint, and what came of it: newest first',
      description: PAGE_NOTE,
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
          .describe('Only attempts with this outcome; `failed` stands for `rejected` and `retry`.'),
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
      // It may have followed others before. A ping is of no account.
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
      summary: 'To which endpoints an event was sent, and what came of it: first to last',
      description: `The last ${EVENT_DELIVERIES} attempts, to endpoints that the key may see. Those of the last moment can be missing.`,
      role: 'read',
      of: ofEvent,
      query: z.strictObject({ limit, after: afterInTime('deliveries of an event') }),
      answer: {
        status: 200,
        description: 'A page of its deliveries.',
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
      summary: 'To which endpoints the events of a job were sent, and what came of it',
      description:
        'By event, the newest first; to endpoints that the key may see. Those of the last moment can be missing.',
      role: 'read',
      of: ofAccount,
      params: jobParams,
      query: z.strictObject({
        limit: wholeNumber(1, MAX_JOB_EVENTS)
          .default(MAX_JOB_EVENTS)
          .describe(`Of how many events at most: 1 to ${MAX_JOB_EVENTS}, ${MAX_JOB_EVENTS} unless told.`),
        after: afterJobEvent,
      }),
      answer: {
        status: 200,
        description: 'Deliveries of a page of its events.',
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
      summary: 'Events that are set aside for an endpoint, by account and job, first to last',
      description: PAGE_NOTE,
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
      const { parked, next } = await pageOfParked(feed.table, region, id, query);
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
      summary: 'Have events that are set aside tried again now',
      description:
        'Of each job the first event that is set aside is tried, and once it is taken those behind it. An endpoint that is paused or waits gets nothing before that is over.',
      role: 'operate',
      of: ofEndpoint,
      repeatable: true,
      body: Which,
      answer: {
        status: 200,
        description: 'How many are to be tried.',
        schema: z
          .object({ retried: z.int().describe('How many events.'), missing })
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
      summary: 'Give up events that are set aside: they are not sent any more',
      description: 'The next event of the job goes on at once. What was discarded can still be resent.',
      role: 'operate',
      of: ofEndpoint,
      body: Which,
      answer: {
        status: 200,
        description: 'How many were discarded.',
        schema: z
          .object({ discarded: z.int().describe('How many events.'), missing })
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
      summary: 'Events that an endpoint refused to the last attempt, by account and sequence',
      description: PAGE_NOTE,
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
      const { dead, next } = await pageOfDead(feed.table, region, id, query);
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
      summary: 'Replays to an endpoint, newest first: those that run, and the last that ran',
      role: 'read',
      of: ofEndpoint,
      query: z.strictObject({
        limit: wholeNumber(1, MAX_REPLAYS)
          .default(DEFAULT_REPLAYS)
          .describe(`How many at most: 1 to ${MAX_REPLAYS}, ${DEFAULT_REPLAYS} unless told.`),
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
      summary: 'Send a stretch of the logs to an endpoint once more',
      description:
        'Beside what is live, with the ids that the events had, and the header `webhook-replay: true`, which the signature does not cover. What it refuses is counted, not set aside.',
      role: 'operate',
      of: ofEndpoint,
      body: NewReplay,
      example: { from: { at: '2026-03-02T08:00:00Z' }, filter: { types: ['job.dispatched'] } },
      answer: {
        status: 201,
        description: 'The replay.',
        schema: Replay,
        headers: { Location: 'The path of the replay.' },
      },
      problems: ['refused', 'conflict'],
    },
    async ({ c, caller, subject, body, making }, { feed, manage }) => {
      const { region, id } = subject;
      // One that is there by this id may be of accounts that the endpoint followed before.
      const there = body.id === undefined ? undefined : await readReplay(feed, region, id, body.id);
      if (there && !isForAll(caller, there.accounts)) {
        return notDone(c, { kind: 'conflict', reason: `id must be new, and "${body.id}" is taken.` });
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
      summary: 'One replay, and how far it is',
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
      summary: 'End a replay',
      description: 'What is under way arrives, nothing else of it is sent.',
      role: 'operate',
      of: ofEndpoint,
      params: replayParams,
      repeatable: true,
      answer: { status: 200, description: 'The replay, as far as it came.', schema: Replay },
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

/** Why a key can't have an endpoint follow these accounts; null stands for all of them. */
function refuseAccounts(caller: Caller, accounts: readonly string[] | null): Refusal | undefined {
  if (caller.accounts === null || (accounts && isForAll(caller, accounts))) return undefined;
  const reason = accounts
    ? 'accounts must be among those that the key is for.'
    : 'accounts must be named, for the key is for some accounts only.';
  return { kind: 'refused', reason };
}

/** The region of a new endpoint: the one that was given, the only one, or that of its accounts. */
async function regionFor(
  { table, regions }: RouteParts['feed'],
  given: string | undefined,
  accounts: readonly string[] = [],
): Promise<string | Refusal> {
  if (given !== undefined) {
    if (regions.includes(given)) return given;
    return { kind: 'refused', reason: `region ${regionRule(regions)}.` };
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
    return { kind: 'refused', reason };
  }
  return { kind: 'refused', reason: `region is missing; it ${regionRule(regions)}.` };
}

/** The path of an endpoint, with its region where there are several. */
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
  outcome: { readonly kind: 'changed'; readonly endpoint: EndpointRecord } | Refusal,
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

/** What became of some events, to endpoints that the key may see: what others do with them is their business. */
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
  // An id may have been another endpoint's before; entries of older versions don't say of which.
  const isOwn = ({ sink, sinkCreatedAt, at }: DeliveryEntry): boolean => {
    const createdAt = seen.get(sink);
    return sinkCreatedAt === undefined ? at >= (createdAt ?? 0) : sinkCreatedAt === createdAt;
  };
  return entries.filter((entry) => seen.has(entry.sink) && isOwn(entry)).map(showDelivery);
}
