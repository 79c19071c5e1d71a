/** Replay routes. */
import * as z from 'zod';
import { NewReplay } from '../../delivery/endpoint-input.ts';
import { type Endpoint, Replay } from '../../delivery/endpoint-views.ts';
import { cancelReplay, listReplays, readReplay, startReplay } from '../../delivery/replays.ts';
import { isId } from '../../validation.ts';
import { canAccessAll, endpointSubject } from '../access.ts';
import { endpointItem } from '../attention/items.ts';
import { recordAction } from '../attention/recording.ts';
import { afterBy, decodePageCursor, encodePageCursor, integer, one } from '../parameters.ts';
import { problem } from '../problems.ts';
import { defineResource } from '../resource.ts';
import type { Route, Subject } from '../route.ts';
import { endpointPath } from './endpoints.ts';

/** Upper limit of a page of replays: each replay may need the cursors of a thousand accounts. */
const MAX_REPLAYS = 100;
const DEFAULT_REPLAYS = 20;

function decodeReplayPlace(text: string) {
  const [, startedAt, id] = /^(\d{1,15})\/(.+)$/.exec(decodePageCursor(text) ?? '') ?? [];
  return id === undefined ? undefined : { startedAt: Number(startedAt), id };
}

/** A replay to an endpoint, if the key gives access to all of its accounts. */
const replaySubject: Subject<Replay & { readonly to: Endpoint }> = {
  params: { ...endpointSubject.params, replay: one.describe('Id of the replay.') },
  query: endpointSubject.query,
  async find(lookup, parts) {
    const to = await endpointSubject.find(lookup, parts);
    if (to instanceof Response) return to;
    const { replay: id = '' } = lookup.params;
    const found = isId(id) ? await readReplay(parts.feed, to.region, to.id, id) : undefined;
    if (found && canAccessAll(lookup.caller, found.accounts)) return { ...found, to };
    return problem(lookup.c, 'not-found', { detail: 'There is no such replay to this endpoint.' });
  },
};

const replays = defineResource({
  ...{ name: 'replay', names: 'replays', one: 'a replay', current: 'The replay.', tag: 'Endpoints' },
  ...{ path: '/v1/endpoints/{id}/replays', item: '/{replay}', schema: Replay },
  ...{ subject: replaySubject as Subject<Replay>, within: endpointSubject },
});

/** All replay routes. */
export const replayRoutes: readonly Route[] = [
  replays.list(
    {
      summary: 'List replays to an endpoint',
      description: 'Returns running and recently completed replays, newest first.',
      query: z.strictObject({
        limit: integer(1, MAX_REPLAYS)
          .default(DEFAULT_REPLAYS)
          .describe(`Maximum number of replays per page. Default: ${DEFAULT_REPLAYS}.`),
        after: afterBy('replays', decodeReplayPlace),
      }),
      page: 'A page of replays.',
    },
    async ({ caller, subject: { region, id }, query: { limit: most, after } }, { feed }) => {
      const shows = (accounts: readonly string[]) => canAccessAll(caller, accounts);
      const found = await listReplays(feed, region, id, { limit: most + 1, after, shows });
      const replays = found.slice(0, most);
      const last = found.length > most ? replays.at(-1) : undefined;
      const next = last ? encodePageCursor(`${last.startedAt}/${last.id}`) : null;
      return { replays, next };
    },
  ),
  replays.create(
    {
      ...{ id: 'startReplay', role: 'operate' },
      summary: 'Start a replay',
      description:
        'Sends a range of the logs again, in parallel to live deliveries. Rejected events are counted, not parked.',
      body: NewReplay,
      record: ({ subject, ...by }, parts) => recordAction('replay', endpointItem(subject), by, parts),
      example: { from: { at: '2026-03-02T08:00:00Z' }, filter: { types: ['job.dispatched'] } },
      location: ({ id }, { feed }, endpoint) => endpointPath(feed, endpoint, `/replays/${id}`),
    },
    async ({ caller, subject, body, generators }, { feed, manage }) => {
      const { region, id } = subject;
      // An existing replay with this id may cover accounts that the endpoint followed before.
      const there = body.id === undefined ? undefined : await readReplay(feed, region, id, body.id);
      if (there && !canAccessAll(caller, there.accounts)) {
        return { kind: 'conflict', reason: `id must be new: "${body.id}" is in use.` };
      }
      return startReplay(manage.endpoints, region, id, body, generators);
    },
  ),
  replays.get({ summary: 'Get a replay and its progress' }),
  replays.act(
    'cancel',
    {
      summary: 'Cancel a replay',
      description: 'Requests in flight are completed.',
      subject: replaySubject,
      repeatable: true,
      result: 'The cancelled replay.',
    },
    ({ subject: { id, to } }, { manage }) => cancelReplay(manage.endpoints, to.region, to.id, id),
  ),
];
