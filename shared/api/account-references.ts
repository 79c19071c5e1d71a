/** Removes references to a deleted account from API keys, endpoints and alert rules. */

import type { DeletionDeps } from '../accounts/deletion.ts';
import type { EndpointDeps } from '../delivery/endpoint-edits.ts';
import { removeAccountFromEndpoints } from '../delivery/endpoints.ts';
import { removeAccountFromKeys } from './keys.ts';

/** Creates the part of a deletion that removes an account from keys, endpoints and alert rules. */
export function createReferenceRemover(endpoints: EndpointDeps): DeletionDeps['removeReferences'] {
  return async (ref, from, since) => {
    if (from === 'keys') return removeAccountFromKeys(endpoints.table, ref.account, since);
    // Loaded when it is needed: a start does not wait for it.
    const { removeAccountFromAlertRules } = await import('../alerts/rules.ts');
    const done = await Promise.all([
      removeAccountFromEndpoints(endpoints, ref),
      removeAccountFromAlertRules(endpoints, ref),
    ]);
    return done.every(Boolean);
  };
}
