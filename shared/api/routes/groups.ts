/**
 * Routes in groups, each loaded at the first request to one of its paths: a start need not wait for the schemas of all routes. Groups are
 * few, because every additional one splits the bundles further (docs/decisions/0086-route-groups.md).
 */
import type { Route } from '../route.ts';

/** Routes that are loaded together. */
export interface RouteGroup {
  /** Matches the paths of these routes, except those that an earlier group matches. */
  readonly paths: RegExp;
  load(): Promise<readonly Route[]>;
}

/** All groups. The last one matches every path. */
export const groups: readonly RouteGroup[] = [
  {
    paths: /^\/((?!v1\/)|v1\/event-types)/,
    load: async () => (await import('./service.ts')).serviceRoutes,
  },
  {
    paths: /^\/v1\/endpoints(?!\/[^/]+\/(health|statistics|deliveries)$)/,
    load: async () => (await import('./webhooks.ts')).webhookRoutes,
  },
  {
    paths:
      /^\/v1\/(endpoints|events|(accounts|regions)\/[^/]+\/(events|jobs(?!\/[^/]+\/(messages|recipients)$)|rollups|open-jobs|status-durations))/,
    load: async () => (await import('./reading.ts')).readingRoutes,
  },
  {
    paths: /^/,
    load: async () => (await import('./management.ts')).managementRoutes,
  },
];

/** Loads all groups, one after the other, so that other work can continue in between. */
export async function loadGroups(): Promise<void> {
  for (const group of groups) await group.load();
}
