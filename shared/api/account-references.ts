/** Removes references to a deleted account from API keys and endpoints. */

import type { DeletionDeps } from '../accounts/deletion.ts';
import type { EndpointDeps } from '../delivery/endpoint-edits.ts';
import { removeAccountFromEndpoints } from '../delivery/endpoints.ts';
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
