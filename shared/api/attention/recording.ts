/** Records actions on the subjects of items, such as a retry, in the history of the items. */
import { randomUUID } from 'node:crypto';
import type { Call, RouteParts } from '../route.ts';
import type { ItemId } from './items.ts';
import { prepareRecord, type QueueDeps } from './queue.ts';
import type { SubjectAction } from './views.ts';

/** The request that performs an action. */
export type ActionCall = Pick<Call<unknown, unknown, unknown, unknown>, 'c' | 'caller'>;

/** Returns the dependencies of the queue. */
export function toQueueDeps({ feed, messages }: RouteParts): QueueDeps {
  const { table, log, regions, now } = feed;
  return { table, log, regions, now, history: messages };
}

/**
 * Prepares the record of an action. Returns a function to be called after the action. An action that cannot be recorded is
 * performed nevertheless, and the error is reported.
 */
export async function recordAction(
  action: SubjectAction,
  id: ItemId,
  { c, caller }: ActionCall,
  parts: RouteParts,
): Promise<() => Promise<void>> {
  const report = (cause: unknown): undefined => void parts.report(c, cause);
  const deps = { ...toQueueDeps(parts), newId: randomUUID };
  const write = await prepareRecord(deps, caller, id, action).catch(report);
  return async () => write?.().catch(report);
}
