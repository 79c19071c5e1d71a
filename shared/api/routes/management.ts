/** Routes for operations: accounts, customer notifications, alerts, keys, sign-in, search and the attention queue. */
import type { Route } from '../route.ts';
import { accountRoutes } from './accounts.ts';
import { alertRuleRoutes } from './alert-rules.ts';
import { attentionRoutes } from './attention.ts';
import { keyRoutes } from './keys.ts';
import { noteRoutes } from './notes.ts';
import { notificationRoutes } from './notifications.ts';
import { pairingRoutes } from './pairings.ts';
import { recipientRoutes } from './recipients.ts';
import { regionRoutes } from './regions.ts';
import { searchRoutes } from './search.ts';
import { signInRoutes } from './sign-in.ts';
import { unsubscribeRoutes } from './unsubscribe.ts';

export const managementRoutes: readonly Route[] = [
  ...accountRoutes,
  ...attentionRoutes,
  ...notificationRoutes,
  ...noteRoutes,
  ...recipientRoutes,
  ...unsubscribeRoutes,
  ...alertRuleRoutes,
  ...keyRoutes,
  ...pairingRoutes,
  ...signInRoutes,
  ...regionRoutes,
  ...searchRoutes,
];
