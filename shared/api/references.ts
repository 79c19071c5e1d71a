/** Removes references to a deleted account from API keys and endpoints. */
import { type EndpointDeps, removeAccountFromEndpoints } from '../sinks/endpoints.ts';
import type { DeletionDeps } from '../tracking/deletion.ts';
import { removeAccountFromKeys } from './keys.ts';

/** Creates the part of a deletion that removes an account from keys and endpoints. */
export function createReferenceRemover(endpoints: EndpointDeps): DeletionDeps['removeReferences'] {
  return async (ref) => {
    const done = await Promise.all([
      removeAccountFromKeys(endpoints.table, ref.account),
      removeAccountFromEndpoints(endpoints, ref),
    ]);
    return done.every(Boolean);
  };
}
