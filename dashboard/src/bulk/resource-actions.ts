/** Actions on several accounts or endpoints. Independent of React. */
import type { Client } from '../../../client/index.ts';
import type { Endpoint } from '../health/status.ts';
import { type BulkAction, runBatches } from './actions.ts';

interface Resource {
  readonly id: string;
  readonly region: string;
  readonly paused: boolean;
  readonly managed: boolean;
}

const DECLARED = 'declared in the configuration';
const unlessPaused = ({ paused, managed }: Resource) =>
  paused ? 'already paused' : managed ? null : DECLARED;
const unlessRunning = ({ paused, managed }: Resource) =>
  paused ? (managed ? null : DECLARED) : 'not paused';
const unlessActive = ({ state }: Pick<Endpoint, 'state'>) =>
  state === 'disabled' || state === 'failing' ? null : 'not disabled';

/** Returns the actions on accounts. */
export const listAccountActions = (api: Client): BulkAction<Resource>[] => [
  {
    ...{ label: 'Pause', done: 'paused', unless: unlessPaused },
    effect: 'They are not polled until they are resumed. Their jobs stay as they are.',
    run: (rows) => runBatches(api, 'accounts', 'pause', rows),
  },
  {
    ...{ label: 'Resume', done: 'resumed', unless: unlessRunning },
    effect: 'They are polled again at once. Changes that were made in the meantime are then detected.',
    run: (rows) => runBatches(api, 'accounts', 'resume', rows),
  },
];

/** Returns the actions on endpoints. */
export const listEndpointActions = (api: Client): BulkAction<Endpoint>[] => [
  {
    ...{ label: 'Pause', done: 'paused', unless: unlessPaused },
    effect: 'They receive no events until they are resumed. Events wait for them.',
    run: (rows) => runBatches(api, 'endpoints', 'pause', rows),
  },
  {
    ...{ label: 'Resume', done: 'resumed', unless: unlessRunning },
    effect: 'They receive the waiting events, in order.',
    run: (rows) => runBatches(api, 'endpoints', 'resume', rows),
  },
  {
    ...{ label: 'Enable', done: 'enabled', unless: unlessActive },
    effect:
      'Disabled endpoints receive events again, from where they stopped. Deliveries of failing ones are retried at once.',
    run: (rows) => runBatches(api, 'endpoints', 'enable', rows),
  },
  {
    ...{ label: 'Retry parked', isPhrase: true, done: 'retried' },
    effect: 'Their parked events are sent again at once.',
    run: (rows) => runBatches(api, 'endpoints', 'retry', rows),
  },
];
