/** Actions on several accounts or endpoints. Independent of React. */
import type { Client } from '../../../client/index.ts';
import { type BulkAction, runBatches } from './actions.ts';

interface Resource {
  readonly id: string;
  readonly region: string;
  readonly paused: boolean;
}

const unlessPaused = ({ paused }: Resource) => (paused ? 'already paused' : null);
const unlessRunning = ({ paused }: Resource) => (paused ? null : 'not paused');

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
export const listEndpointActions = (api: Client): BulkAction<Resource>[] => [
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
    ...{ label: 'Enable', done: 'enabled' },
    effect: 'Disabled endpoints receive events again, from where they stopped.',
    run: (rows) => runBatches(api, 'endpoints', 'enable', rows),
  },
  {
    ...{ label: 'Retry parked', isPhrase: true, done: 'retried' },
    effect: 'Their parked events are sent again at once.',
    run: (rows) => runBatches(api, 'endpoints', 'retry', rows),
  },
];
