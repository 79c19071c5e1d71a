/** The common part of all operations on an endpoint: dependencies, lock, precondition, conditional update. */

import { isEndpointKind } from '../built-in-sinks.ts';
import type { EventUrls } from '../events/event.ts';
import type { EventLog } from '../log/log.ts';
import {
  alreadyExists,
  type Expectation,
  getRevision,
  modified,
  notFound,
  type Rejection,
  revisionUnchanged,
  withItemLock,
} from '../resources.ts';
import { keys } from '../storage/schema.ts';
import type { Item, Table, Value } from '../storage/table.ts';
import type { AttemptDeps } from './attempt.ts';
import { isManaged, toEndpoint } from './endpoint.ts';
import type { Endpoint } from './endpoint-views.ts';
import type { SigningSecrets } from './signing-secrets.ts';

/** Dependencies of the endpoint operations. */
export interface EndpointDeps extends AttemptDeps, EventUrls {
  readonly table: Table;
  readonly log: EventLog;
  readonly secrets: SigningSecrets;
  readonly allowPrivateNetworks: boolean;
  /** Returns why Jobwire cannot send to a queue, by its ARN; `undefined` if it can. Absent: to no queue. */
  readonly checkQueue?: (arn: string) => string | undefined;
  /** Returns whether the configuration file still has the entry of an endpoint that it declared. Default: it has. */
  readonly isDeclared?: (region: string, id: string) => boolean;
}

/**
 * Sources of the ids and secrets of new resources. A repeated request gets the same values again, so that it
 * creates the same resource and not a second one. Never for locks and transactions, which need new values
 * each time.
 */
export interface ResourceGenerators {
  readonly newId: () => string;
  readonly randomBytes: (bytes: number) => Uint8Array;
}

/** Maximum number of attempts of a change after concurrent modifications. */
export const ATTEMPTS = 5;

/**
 * Updates the item of an endpoint on the condition that it is unchanged since the read. Writes nothing if the
 * item is already as required.
 */
export async function updateEndpointItem(
  deps: EndpointDeps,
  region: string,
  id: string,
  expected: Expectation,
  decide: (item: Item) => { readonly [attribute: string]: Value | undefined } | undefined,
  options: ManagedOptions = {},
): Promise<{ readonly kind: 'changed'; readonly endpoint: Endpoint } | Rejection> {
  for (let attempt = 0; attempt < ATTEMPTS; attempt += 1) {
    const found = await findManaged(deps, region, id, expected, options);
    if (found.kind !== 'found') return found;
    const { item } = found;
    const set = decide(item);
    if (!set) return { kind: 'changed', endpoint: toEndpoint(item) };
    const changed = await deps.table.write({
      update: keys.sink(region, id),
      set: { ...set, revision: getRevision(item) + 1, changedAt: deps.now() },
      when: [revisionUnchanged(item), ['kind', 'present']],
    });
    if (changed.done && changed.item) return { kind: 'changed', endpoint: toEndpoint(changed.item) };
  }
  return endpointModified(id);
}

type Found = { readonly kind: 'found'; readonly item: Item } | Rejection;

export async function findManaged(
  deps: EndpointDeps,
  region: string,
  id: string,
  expected: Expectation,
  options: ManagedOptions = {},
): Promise<Found> {
  const item = await deps.table.get(keys.sink(region, id));
  return item ? checkManaged(deps, region, item, expected, options) : endpointNotFound(id);
}

/** Endpoints, beside those of the API, to which an operation applies. */
interface ManagedOptions {
  /** Built-in endpoints, and those that the configuration file declares. */
  readonly declared?: boolean;
  /** Endpoints whose entry was removed from the configuration file. */
  readonly removed?: boolean;
}

export function checkManaged(
  { isDeclared }: EndpointDeps,
  region: string,
  item: Item,
  expected: Expectation,
  options: ManagedOptions,
): Found {
  const id = item.sk;
  if (isEndpointKind(item.kind) && !isManaged(item) && isDeclared?.(region, id) === false) {
    if (options.removed) return checkRevision(item, id, expected);
    const reason = `The endpoint "${id}" is no longer in the configuration file. Restore its entry there, under "endpoints", and restart Jobwire, or delete the endpoint.`;
    return { kind: 'conflict', reason };
  }
  if (options.declared) return checkRevision(item, id, expected);
  if (!isEndpointKind(item.kind)) return endpointNotFound(id);
  if (!isManaged(item)) {
    const reason = `The endpoint "${id}" is declared in the configuration file. Change or remove it there, under "endpoints", and restart Jobwire.`;
    return { kind: 'conflict', reason };
  }
  return checkRevision(item, id, expected);
}

function checkRevision(item: Item, id: string, { revision = getRevision(item) }: Expectation): Found {
  return revision === getRevision(item) ? { kind: 'found', item } : endpointModified(id);
}

interface Lock {
  readonly owner: string;
  /** The highest lease token of an earlier endpoint of this id. */
  readonly fence: number;
  /** The last revision of an endpoint of this id that was deleted within a day. */
  readonly revision: number;
}

/** Runs an operation on an endpoint under its lock, exclusively. */
export function withLock<T>(
  deps: Pick<EndpointDeps, 'table' | 'newId' | 'now'>,
  region: string,
  id: string,
  work: (lock: Lock) => Promise<T>,
): Promise<T | Rejection> {
  return withItemLock(deps, keys.endpointLock(region, id), id, ({ owner, item }) =>
    work({ owner, fence: Number(item?.fence ?? 0), revision: Number(item?.revision ?? 0) }),
  );
}

export const endpointNotFound = (id: string): Rejection => notFound(`endpoint "${id}"`);

export const endpointExists = (id: string): Rejection => alreadyExists('an endpoint', id);

export const endpointModified = (id: string): Rejection => modified(`endpoint "${id}"`);
