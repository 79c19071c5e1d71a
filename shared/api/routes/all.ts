/** All routes of the HTTP API. */
import type { Route } from '../route.ts';
import { accountRoutes } from './accounts.ts';
import { endpointRoutes } from './endpoints.ts';
import { eventRoutes } from './events.ts';
import { jobRoutes } from './jobs.ts';
import { keyRoutes } from './keys.ts';
import { notificationRoutes } from './notifications.ts';
import { recipientRoutes } from './recipients.ts';
import { regionRoutes } from './regions.ts';
import { serviceRoutes } from './service.ts';
import { unsubscribeRoutes } from './unsubscribe.ts';

export const routes: readonly Route[] = [
  ...serviceRoutes,
  ...accountRoutes,
  ...jobRoutes,
  ...eventRoutes,
  ...notificationRoutes,
  ...recipientRoutes,
  ...unsubscribeRoutes,
  ...endpointRoutes,
  ...keyRoutes,
  ...regionRoutes,
];
