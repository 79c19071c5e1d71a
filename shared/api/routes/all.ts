/** All routes of the HTTP API. */
import type { Route } from '../route.ts';
import { accountRoutes } from './accounts.ts';
import { alertRuleRoutes } from './alert-rules.ts';
import { attentionRoutes } from './attention.ts';
import { deliveryRoutes } from './deliveries.ts';
import { endpointRoutes } from './endpoints.ts';
import { eventRoutes } from './events.ts';
import { jobRoutes } from './jobs.ts';
import { keyRoutes } from './keys.ts';
import { noteRoutes } from './notes.ts';
import { notificationRoutes } from './notifications.ts';
import { pairingRoutes } from './pairings.ts';
import { parkedEventRoutes } from './parked-events.ts';
import { recipientRoutes } from './recipients.ts';
import { regionRoutes } from './regions.ts';
import { replayRoutes } from './replays.ts';
import { searchRoutes } from './search.ts';
import { serviceRoutes } from './service.ts';
import { signInRoutes } from './sign-in.ts';
import { unsubscribeRoutes } from './unsubscribe.ts';

export const routes: readonly Route[] = [
  ...serviceRoutes,
  ...accountRoutes,
  ...jobRoutes,
  ...attentionRoutes,
  ...eventRoutes,
  ...notificationRoutes,
  ...noteRoutes,
  ...recipientRoutes,
  ...unsubscribeRoutes,
  ...endpointRoutes,
  ...deliveryRoutes,
  ...parkedEventRoutes,
  ...replayRoutes,
  ...alertRuleRoutes,
  ...keyRoutes,
  ...pairingRoutes,
  ...signInRoutes,
  ...regionRoutes,
  ...searchRoutes,
];
