/** Routes of jobs, events and deliveries. */
import type { Route } from '../route.ts';
import { deliveryRoutes } from './deliveries.ts';
import { eventRoutes } from './events.ts';
import { jobRoutes } from './jobs.ts';

export const readingRoutes: readonly Route[] = [...jobRoutes, ...eventRoutes, ...deliveryRoutes];
