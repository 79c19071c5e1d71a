/** Parts of the program that a start does not need. */
import { loadGroups } from '../shared/api/routes/groups.ts';

/** Time from the start until the rest of the program is loaded. */
export const LOAD_REST_MS = 10_000;

/** Loads the rest of the program, before an update can replace the files of a running one. Throws if files are missing. */
export async function loadRest(): Promise<void> {
  await loadGroups();
  await import('../shared/notifications/render.ts');
}
