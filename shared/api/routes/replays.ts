/** Replay routes. */
import type { Context } from 'hono';
import * as z from 'zod';
import { NewReplay } from '../../delivery/endpoint-input.ts';
import { type Endpoint, Replay } from '../../delivery/endpoint-views.ts';
import { cancelReplay, listReplays, readReplay, startReplay } from '../../delivery/replays.ts';
import { isId } from '../../validation.ts';
import { isForAll, ofEndpoint } from '../access.ts';
import type { ApiEnv } from '../env.ts';
import type { Caller } from '../keys.ts';
import { afterBy, decodePlace, encodePlace, integer, nextCursor, one } from '../parameters.ts';
import { problem } from '../problems.ts';
import { type Route, type RouteParts, route } from '../route.ts';
import { endpointPath } from './endpoints.ts';

/** Upper limit of a page of replays: each replay may need the cursors of a thousand accounts. */
const MAX_REPLAYS = 100;
const DEFAULT_REPLAYS = 20;

function decodeReplayPlace(text: string) {
  const [, startedAt, id] = /^(\d{1,15})\/(.+)$/.exec(decodePlace(text) ?? '') ?? [];
  return id === undefined ? undefined : { startedAt: Number(startedAt), id };
}

const replayParams = z.object({ replay: one.describe('Id of the replay.') });
/** All replay routes. */
export const replayRoutes: readonly Route[] = [
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
        limit: integer(1, MAX_REPLAYS)
          .default(DEFAULT_REPLAYS)
          .describe(`Maximum number of replays per page, 1 to ${MAX_REPLAYS}. Default: ${DEFAULT_REPLAYS}.`),
        after: afterBy('replays', decodeReplayPlace),
      }),
      answer: {
        status: 200,
        description: 'A page of replays.',
        schema: z.object({ replays: z.array(Replay), next: nextCursor }),
      },
    },
    async ({ caller, subject: { region, id }, query: { limit: most, after } }, { feed }) => {
      const shows = (accounts: readonly string[]) => isForAll(caller, accounts);
      const found = await listReplays(feed, region, id, { limit: most + 1, after, shows });
      const replays = found.slice(0, most);
      const last = found.length > most ? replays.at(-1) : undefined;
      const next = last ? encodePlace(`${last.startedAt}/${last.id}`) : null;
      return { body: { replays, next } };
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
    async ({ caller, subject, body, generators: making }, { feed, manage }) => {
      const { region, id } = subject;
      // An existing replay with this id may cover accounts that the endpoint followed before.
      const there = body.id === undefined ? undefined : await readReplay(feed, region, id, body.id);
      if (there && !isForAll(caller, there.accounts)) {
        return { kind: 'conflict', reason: `id must be new: "${body.id}" is in use.` };
      }
      const outcome = await startReplay(manage.endpoints, region, id, body, making);
      if (outcome.kind !== 'started') return outcome;
      const location = endpointPath(feed, subject, `/replays/${outcome.replay.id}`);
      return { body: outcome.replay, headers: { location } };
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
      return replay instanceof Response ? replay : { body: replay };
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
      return outcome.kind === 'cancelled' ? { body: outcome.replay } : outcome;
    },
  ),
];

async function findReplay(
  c: Context<ApiEnv>,
  caller: Caller,
  { region, id }: Endpoint,
  replay: string,
  { feed }: RouteParts,
) {
  const found = isId(replay) ? await readReplay(feed, region, id, replay) : undefined;
  if (found && isForAll(caller, found.accounts)) return found;
  return problem(c, 'not-found', { detail: 'There is no such replay to this endpoint.' });
}
