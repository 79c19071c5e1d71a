/** Delivery routes: health of an endpoint, and deliveries by endpoint, event and job. */
import * as z from 'zod';
import { type DeliveryEntry, toDelivery } from '../../delivery/delivery-log.ts';
import { toEndpoint } from '../../delivery/endpoint.ts';
import { readEndpointHealth } from '../../delivery/endpoint-health.ts';
import { Delivery, DeliveryStatistics, EndpointHealth } from '../../delivery/endpoint-views.ts';
import { keys } from '../../storage/schema.ts';
import {
  accountSubject,
  canAccess,
  canAccessEndpoint,
  endpointSubject,
  ownEndpointSubject,
} from '../access.ts';
import { readJobEvents } from '../job-events.ts';
import type { Caller } from '../keys.ts';
import { afterId, afterInTime, integer, limit, pageInTime, time, typePatterns } from '../parameters.ts';
import { problem } from '../problems.ts';
import { pageAnswer } from '../resource.ts';
import { createRouteFactory, type Route, type RouteParts, route } from '../route.ts';
import { eventSubject } from './events.ts';
import { afterJobEvent, jobParams } from './jobs.ts';

const endpointRoute = createRouteFactory('Endpoints');

const DELIVERIES_CURSOR = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z#[\w-]{1,100}$/;

/** Maximum number of delivery attempts returned per event. */
const EVENT_DELIVERIES = 100;
/** Maximum number of events per page of a job's deliveries. */
const MAX_JOB_EVENTS = 20;

const DeliveriesQuery = z
  .strictObject({
    limit,
    after: afterId('deliveries', (text) => DELIVERIES_CURSOR.test(text)),
    outcome: z
      .enum(['delivered', 'rejected', 'retry', 'failed'], 'must be delivered, rejected, retry or failed')
      .optional()
      .describe('Only attempts with this outcome. `failed` includes `rejected` and `retry`.'),
    types: typePatterns.optional(),
    from: time.optional().describe('Only attempts that began at this time or later.'),
    to: time.optional().describe('Only attempts that began before this time.'),
  })
  .superRefine(({ from, to }, context) => {
    if (from === undefined || to === undefined || from < to) return;
    context.addIssue({ code: 'custom', path: ['from'], message: 'must be before to' });
  });

/** All delivery routes. */
export const deliveryRoutes: readonly Route[] = [
  endpointRoute(
    {
      path: '/v1/endpoints/{id}/health',
      id: 'getEndpointHealth',
      summary: 'Get the health of an endpoint',
      role: 'read',
      subject: endpointSubject,
      answer: { description: 'Health of the endpoint.', schema: EndpointHealth },
    },
    async ({ c, subject: { region, id } }, { feed, deliveries }) => {
      const health = await readEndpointHealth({ ...feed, deliveries }, region, id);
      if (!health) return problem(c, 'not-found', { detail: 'There is no such endpoint.' });
      return { body: health };
    },
  ),
  endpointRoute(
    {
      path: '/v1/endpoints/{id}/statistics',
      id: 'getEndpointStatistics',
      summary: 'Get the delivery statistics of an endpoint',
      description: 'New attempts are included within a minute. Only webhooks and queues have statistics.',
      role: 'read',
      subject: ownEndpointSubject,
      query: z.strictObject({
        window: z
          .enum(['1h', '24h', '7d'], 'must be 1h, 24h or 7d')
          .default('24h')
          .describe('Length of the window.'),
      }),
      answer: { description: 'Statistics of the endpoint.', schema: DeliveryStatistics },
    },
    async ({ subject: { region, id, createdAt }, query: { window } }, { feed, deliveries }) => ({
      body: await deliveries.statistics(
        { region, id, ...(createdAt !== null && { createdAt }) },
        window,
        feed.now(),
      ),
    }),
  ),
  endpointRoute(
    {
      path: '/v1/endpoints/{id}/deliveries',
      id: 'listEndpointDeliveries',
      summary: 'List deliveries to an endpoint',
      description: 'Returns deliveries, newest first.',
      role: 'read',
      subject: endpointSubject,
      query: DeliveriesQuery,
      answer: pageAnswer('deliveries', Delivery, 'A page of deliveries.'),
    },
    async ({ caller, subject, query }, { deliveries }) => {
      const { region, id, createdAt: sinkCreatedAt } = subject;
      const { after: before, from: since, to: until, ...rest } = query;
      const page = await deliveries.bySink(region, id, { ...rest, before, since, until, sinkCreatedAt });
      // The endpoint may have followed other accounts before. A ping belongs to no account.
      const theirs = page.entries.filter(
        ({ account, cause }) => cause === 'ping' || canAccess(caller, account),
      );
      return { body: { deliveries: theirs.map(toDelivery), next: page.next ?? null } };
    },
  ),
  route(
    {
      method: 'get',
      path: '/v1/events/{event}/deliveries',
      id: 'listEventDeliveries',
      tag: 'Events',
      summary: 'List deliveries of an event',
      description: `Returns the last ${EVENT_DELIVERIES} attempts, oldest first. The most recent attempts can be missing for a short time.`,
      role: 'read',
      subject: eventSubject,
      query: z.strictObject({ limit, after: afterInTime('deliveries of an event') }),
      answer: pageAnswer('deliveries', Delivery, 'A page of deliveries of the event.'),
    },
    async ({ caller, subject, query }, parts) => {
      const ids = [String((JSON.parse(subject.json) as { id: unknown }).id)];
      const all = await listDeliveriesOfEvents(caller, subject.ref, ids, parts);
      const { page, next } = pageInTime(all, ({ at }) => at, 'oldest', query);
      return { body: { deliveries: page, next } };
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
        'Returns deliveries, grouped by event, newest event first. The most recent attempts can be missing for a short time.',
      role: 'read',
      subject: accountSubject,
      params: jobParams,
      query: z.strictObject({
        limit: integer(1, MAX_JOB_EVENTS)
          .default(MAX_JOB_EVENTS)
          .describe(`Maximum number of events per page. Default: ${MAX_JOB_EVENTS}.`),
        after: afterJobEvent,
      }),
      answer: pageAnswer('deliveries', Delivery, 'Deliveries of a page of events.'),
    },
    async ({ caller, subject, params: { jobNumber }, query }, parts) => {
      const page = { order: 'newest', ...query } as const;
      const { events, next } = await readJobEvents(parts.feed, subject, Number(jobNumber), page);
      const ids = events.map((json) => String((JSON.parse(json) as { id: unknown }).id));
      return { body: { deliveries: await listDeliveriesOfEvents(caller, subject, ids, parts), next } };
    },
  ),
];

/** Returns the deliveries of `events` to the endpoints visible to the key. */
async function listDeliveriesOfEvents(
  caller: Caller,
  { region }: { readonly region: string },
  events: readonly string[],
  { feed, deliveries }: RouteParts,
) {
  const found = await Promise.all(events.map((event) => deliveries.byEvent(region, event, EVENT_DELIVERIES)));
  const entries = found.flat();
  if (caller.accounts === null) return entries.map(toDelivery);
  const sinks = [...new Set(entries.map(({ sink }) => sink))];
  const items = await feed.table.getMany(sinks.map((sink) => keys.sink(region, sink)));
  const seen = new Map(
    items
      .map(toEndpoint)
      .filter((one) => canAccessEndpoint(caller, one))
      .map(({ id, createdAt }) => [id, createdAt ?? undefined]),
  );
  // A deleted endpoint may have had the same id. Entries of older versions do not record the creation time.
  const isOwn = ({ sink, sinkCreatedAt, at }: DeliveryEntry): boolean => {
    const createdAt = seen.get(sink);
    return sinkCreatedAt === undefined ? at >= (createdAt ?? 0) : sinkCreatedAt === createdAt;
  };
  return entries.filter((entry) => seen.has(entry.sink) && isOwn(entry)).map(toDelivery);
}
