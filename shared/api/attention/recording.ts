/** Records actions on the subjects of items, such as a retry, in the history of the items. */
import { randomUUID } from 'node:crypto';
import type { Endpoint } from '../../delivery/endpoint-views.ts';
import type { AccountRef } from '../../storage/schema.ts';
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

/** Prepares the record of an action on an account. Returns a function to be called after the action. */
export function recordOnAccount(
  action: SubjectAction,
  { region, account }: AccountRef,
  by: ActionCall,
  parts: RouteParts,
): Promise<() => Promise<void>> {
  return record(action, { region, account, type: 'account', subject: account }, by, parts);
}

/** Prepares the record of an action on an endpoint. Returns a function to be called after the action. */
export function recordOnEndpoint(
  action: SubjectAction,
  { region, id, accounts }: Pick<Endpoint, 'region' | 'id' | 'accounts'>,
  by: ActionCall,
  parts: RouteParts,
): Promise<() => Promise<void>> {
  const [account = '', ...others] = accounts;
  const item = {
    region,
    account: others.length === 0 ? account : '',
    type: 'endpoint',
    subject: id,
  } as const;
  return record(action, item, by, parts);
}

/** Prepares the record of an action on a job. Returns a function to be called after the action. */
export function recordOnJob(
  action: SubjectAction,
  { region, account }: AccountRef,
  jobNumber: string,
  by: ActionCall,
  parts: RouteParts,
): Promise<() => Promise<void>> {
  return record(action, { region, account, type: 'job', subject: jobNumber }, by, parts);
}

/** An action that cannot be recorded is performed nevertheless, and the error is reported. */
async function record(
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
