/** Routes of endpoints, parked and dead events, and replays. */
import type { Route } from '../route.ts';
import { endpointRoutes } from './endpoints.ts';
import { parkedEventRoutes } from './parked-events.ts';
import { replayRoutes } from './replays.ts';

export const webhookRoutes: readonly Route[] = [...endpointRoutes, ...parkedEventRoutes, ...replayRoutes];
