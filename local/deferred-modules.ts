/** Modules that a start does not need. */
import { loadGroups } from '../shared/api/routes/groups.ts';

/** Time from the start until these modules are loaded. */
export const LOAD_DEFERRED_MS = 10_000;

/** Loads these modules, before an update can replace the files of the running program. Throws if files are missing. */
export async function loadDeferredModules(): Promise<void> {
  await loadGroups();
  await import('./notifications.ts');
  await import('../shared/notifications/render.ts');
}
