/** Batches: one action on several resources, with a result for each. One that fails does not affect the others. */
import type { Context } from 'hono';
import pLimit from 'p-limit';
import * as z from 'zod';
import { textOrNull } from '../representation.ts';
import type { Rejection } from '../resources.ts';
import { TableError } from '../storage/table.ts';
import type { ApiEnv } from './env.ts';
import { nextCursor } from './parameters.ts';
import { problem, rejectionProblem } from './problems.ts';
import type { RouteParts } from './route.ts';

/** Maximum number of resources per request. */
export const MAX_BATCH = 100;
/** Number of resources that are processed at once. */
const AT_ONCE = 8;

const IDS_RULE = `must be a list of 1 to ${MAX_BATCH} ids`;

/** Body of a batch of these actions: on named resources, or on all of them, page by page. */
export function batchBody<A extends string>(actions: readonly [A, ...A[]], names: string) {
  return z
    .strictObject({
      action: z.enum(actions, `must be one of ${actions.join(', ')}`).describe('Action to perform.'),
      ids: z
        .array(z.string('must be an id').min(1, 'must be an id').max(100, 'must be an id'), IDS_RULE)
        .min(1, IDS_RULE)
        .max(MAX_BATCH, IDS_RULE)
        .optional()
        .describe(`Ids of the ${names}. Either \`ids\` or \`all\` is required.`),
      all: z
        .literal(true, 'must be true')
        .optional()
        .describe(
          `\`true\`: all ${names}, at most ${MAX_BATCH} per request. For the others, repeat the request with the \`next\` of the response as \`after\`.`,
        ),
      region: z.string('must be the name of a region').optional().describe(`Only ${names} of this region.`),
      after: z.string('must be a cursor').optional().describe('The `next` of the previous response.'),
    })
    .superRefine(({ ids, all, after }, context) => {
      if ((ids === undefined) === (all === undefined)) context.addIssue('must have either ids or all');
      if (after !== undefined && !all) {
        context.addIssue({ code: 'custom', path: ['after'], message: 'requires all' });
      }
    });
}

const ItemProblem = z
  .object({
    type: z.string().describe('Kind of the problem, as in a problem document.'),
    title: z.string(),
    status: z.int().describe('HTTP status of the problem.'),
    detail: z.string(),
  })
  .meta({ id: 'BatchProblem', description: 'Reason why the action failed for a resource.' });

/** Results of a batch. */
export const BatchResponse = z
  .object({
    results: z
      .array(
        z.object({
          id: z.string().describe('Id of the resource.'),
          region: textOrNull.describe('Region of the resource. `null`: it was not found.'),
          events: z
            .int()
            .nullable()
            .describe('Number of scheduled or discarded events. `null` for other actions.'),
          problem: ItemProblem.nullable().describe('Reason why the action failed. `null`: it succeeded.'),
        }),
      )
      .describe('Results in the order of the ids.'),
    next: nextCursor,
  })
  .meta({ id: 'BatchResponse' });
export type BatchResponse = z.infer<typeof BatchResponse>;

/** A resource of a batch: as found, or the response that there is none. */
interface BatchItem<T> {
  readonly id: string;
  readonly found: (T & { readonly region: string }) | Response;
}

/** Reads the resources of a batch, each id once, a few at a time. */
export function findEach<T>(
  ids: readonly string[],
  find: (id: string) => Promise<BatchItem<T>>,
): Promise<BatchItem<T>[]> {
  return pLimit(AT_ONCE).map([...new Set(ids)], find);
}

/** Performs an action on each resource. `act` returns the number of events if the action has one. */
export async function runBatch<T>(
  c: Context<ApiEnv>,
  { report }: Pick<RouteParts, 'report'>,
  items: readonly BatchItem<T>[],
  act: (resource: T) => Promise<{ readonly events?: number } | Rejection>,
): Promise<BatchResponse['results']> {
  const run = async (found: T): Promise<{ readonly events: number | null } | Response> => {
    try {
      const outcome = await act(found);
      return 'reason' in outcome ? rejectionProblem(c, outcome) : { events: outcome.events ?? null };
    } catch (cause) {
      report(c, cause);
      return cause instanceof TableError
        ? problem(c, 'service-unavailable', { detail: 'The store does not respond. Retry later.' })
        : problem(c, 'internal-server-error', { detail: 'An unexpected error occurred.' });
    }
  };
  return pLimit(AT_ONCE).map(items, async ({ id, found }) => {
    const outcome = found instanceof Response ? found : await run(found);
    const region = found instanceof Response ? null : found.region;
    if (!(outcome instanceof Response)) return { id, region, events: outcome.events, problem: null };
    const { type, title, status, detail } = (await outcome.json()) as z.infer<typeof ItemProblem>;
    return { id, region, events: null, problem: { type, title, status, detail } };
  });
}
