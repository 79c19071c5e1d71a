/** Routes of parked and dead-lettered events. */
import * as z from 'zod';
import { Redelivery } from '../../delivery/endpoint-input.ts';
import { DeadEvent, ParkedEvent, RedeliveryReport } from '../../delivery/endpoint-views.ts';
import {
  discardAllParked,
  listDeadPage,
  listParkedPage,
  retryAllParked,
  toRejectedEvent,
} from '../../delivery/parked-events.ts';
import { MAX_PARKED } from '../../delivery/parking.ts';
import { redeliver } from '../../delivery/redelivery.ts';
import { CELL_LOG } from '../../storage/schema.ts';
import { isId } from '../../validation.ts';
import { canAccess, endpointSubject } from '../access.ts';
import { endpointItem } from '../attention/items.ts';
import { recordAction } from '../attention/recording.ts';
import type { Caller } from '../keys.ts';
import { afterBy, decodePageCursor, encodePageCursor, limit } from '../parameters.ts';
import { pageAnswer } from '../resource.ts';
import { createRouteFactory, type Route, toHandlerResult } from '../route.ts';

const route = createRouteFactory('Endpoints');

/** Parses the cursor of a list of parked events into a sort key: `<account>#<lane>#<sequence>`. */
const decodeParkedPlace = (text: string) => decodeOwnPlace(text, /^([^#]+)#.*#\d{16}$/s);
/** Parses the cursor of a list of dead events into a sort key: `<account>#<sequence>`. */
const decodeDeadPlace = (text: string) => decodeOwnPlace(text, /^([^#]+)#\d{16}$/);

function decodeOwnPlace(text: string, shape: RegExp): string | undefined {
  const place = decodePageCursor(text);
  const [, account] = shape.exec(place ?? '') ?? [];
  return account !== undefined && (isId(account) || account === CELL_LOG) ? place : undefined;
}

const Which = z
  .strictObject({
    events: z
      .array(z.string('must be an event id').min(1, 'must be an event id').max(400))
      .min(1, 'must contain at least one event id')
      .max(MAX_PARKED, `must contain at most ${MAX_PARKED} event ids`)
      .optional(),
    all: z.literal(true, 'must be true').optional().describe('`true`: select all parked events.'),
  })
  .superRefine(({ events, all }, context) => {
    if ((events === undefined) === (all === undefined)) {
      context.addIssue('must have either events or all');
    }
  })
  .meta({ id: 'ParkedEventSelection', minProperties: 1, maxProperties: 1 });

const missing = z.array(z.string()).describe('Ids that belong to no parked event.');

/** All routes of parked and dead-lettered events. */
export const parkedEventRoutes: readonly Route[] = [
  route(
    {
      path: '/v1/endpoints/{id}/parked',
      id: 'listParkedEvents',
      summary: 'List parked events of an endpoint',
      description: 'Returns parked events, ordered by account, job and sequence.',
      role: 'read',
      subject: endpointSubject,
      query: z.strictObject({ limit, after: afterBy('parked events', decodeParkedPlace) }),
      answer: pageAnswer('parked', ParkedEvent, 'A page of parked events.'),
    },
    async ({ caller, subject: { region, id }, query }, { feed }) => {
      const { accounts } = caller;
      const { parked, next } = await listParkedPage(feed.table, region, id, { ...query, accounts });
      return { body: { parked: parked.map(toRejectedEvent), next: encodePageCursor(next) } };
    },
  ),
  route(
    {
      method: 'post',
      path: '/v1/endpoints/{id}/parked/retry',
      id: 'retryParkedEvents',
      summary: 'Retry parked events',
      description:
        'For each job of the selected events, the first parked event is sent first, even if it is not selected. After the endpoint has acknowledged it, the later events of the job are sent. Nothing is sent while the endpoint is paused or waits after a failure.',
      role: 'operate',
      subject: endpointSubject,
      repeatable: true,
      body: Which,
      example: { all: true },
      record: ({ subject, ...by }, parts) => recordAction('retry_parked', endpointItem(subject), by, parts),
      hasEffect: ({ retried }) => retried > 0,
      answer: {
        description: 'Number of events scheduled for a retry.',
        schema: z
          .object({ retried: z.int().describe('Number of events scheduled for a retry.'), missing })
          .meta({ id: 'RetriedEvents' }),
      },
    },
    async ({ caller, subject: { region, id }, body }, { feed }) => {
      const which = toSelection(caller, body);
      const outcome = await retryAllParked(feed.table, region, id, which, feed.now());
      return { body: { retried: outcome.count, missing: outcome.missing } };
    },
  ),
  route(
    {
      method: 'post',
      path: '/v1/endpoints/{id}/parked/discard',
      id: 'discardParkedEvents',
      summary: 'Discard parked events',
      description: 'Discarded events are no longer delivered automatically, but can still be resent.',
      role: 'operate',
      subject: endpointSubject,
      body: Which,
      example: { events: ['acme.t3k9x1a2b3c4.1044'] },
      record: ({ subject, ...by }, parts) => recordAction('discard_parked', endpointItem(subject), by, parts),
      hasEffect: ({ discarded }) => discarded > 0,
      answer: {
        description: 'Number of discarded events.',
        schema: z
          .object({ discarded: z.int().describe('Number of discarded events.'), missing })
          .meta({ id: 'DiscardedEvents' }),
      },
    },
    async ({ caller, subject: { region, id }, body }, { feed }) => {
      const which = toSelection(caller, body);
      const outcome = await discardAllParked(feed.table, region, id, which, feed.now());
      return { body: { discarded: outcome.count, missing: outcome.missing } };
    },
  ),
  route(
    {
      method: 'post',
      path: '/v1/endpoints/{id}/redeliver',
      id: 'redeliverEvents',
      summary: 'Retry parked events and replay dead events by filter',
      description:
        'Retries the selected parked events, as `POST …/parked/retry` does, and replays the selected dead events. The events of each job are sent in order. A dead event that is rejected again stays dead.',
      role: 'operate',
      subject: endpointSubject,
      body: Redelivery,
      record: ({ subject, body: { dryRun }, ...by }, parts) =>
        dryRun ? undefined : recordAction('redeliver', endpointItem(subject), by, parts),
      hasEffect: ({ parked, dead }) => parked + dead > 0,
      example: { states: ['dead'], filter: { statuses: [422], from: '2026-03-02T08:00:00Z' }, dryRun: true },
      answer: {
        description: 'The selected events, and the replay of the dead ones.',
        schema: RedeliveryReport,
      },
      problems: ['conflict'],
    },
    async ({ caller, subject, body, generators }, { manage }) => {
      const { accounts } = subject;
      const isVisible = (account: string): boolean =>
        canAccess(caller, account) && (accounts.length === 0 || accounts.includes(account));
      return toHandlerResult(await redeliver(manage.endpoints, subject, body, isVisible, generators));
    },
  ),
  route(
    {
      path: '/v1/endpoints/{id}/dead',
      id: 'listDeadEvents',
      summary: 'List dead events of an endpoint',
      description: 'Returns dead events, ordered by account and sequence.',
      role: 'read',
      subject: endpointSubject,
      query: z.strictObject({ limit, after: afterBy('dead events', decodeDeadPlace) }),
      answer: pageAnswer('dead', DeadEvent, 'A page of dead events.'),
    },
    async ({ caller, subject: { region, id }, query }, { feed }) => {
      const { accounts } = caller;
      const { dead, next } = await listDeadPage(feed.table, region, id, { ...query, accounts });
      return { body: { dead: dead.map(toRejectedEvent), next: encodePageCursor(next) } };
    },
  ),
];

function toSelection(caller: Caller, { events }: z.output<typeof Which>) {
  return {
    ids: events ?? ('all' as const),
    isWanted: ({ account }: { readonly account: string }) => canAccess(caller, account),
  };
}
