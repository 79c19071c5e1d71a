/** Steps from an empty deployment to events that are delivered. Derived from the API, so that they need no storage. */
import type { Role } from '../../../shared/api/key-input.ts';

/** Contents of a deployment, as far as the key can read them. */
export interface Progress {
  readonly accounts: number;
  /** Whether an account was polled completely. */
  readonly observed: boolean;
  readonly endpoints: number;
  /** Whether an endpoint has acknowledged an event. */
  readonly delivered: boolean;
  /** Whether an account notifies its customers. */
  readonly notifying: boolean;
}

/** `later`: another step must be done first. */
export type StepState = 'done' | 'open' | 'later';

const STEPS = {
  account: { after: null, admin: true, forAll: true, isDone: ({ accounts }: Progress) => accounts > 0 },
  observation: { after: 'account', admin: false, forAll: false, isDone: (one: Progress) => one.observed },
  endpoint: { after: 'account', admin: true, forAll: false, isDone: (one: Progress) => one.endpoints > 0 },
  delivery: { after: 'endpoint', admin: false, forAll: false, isDone: (one: Progress) => one.delivered },
  notifications: {
    after: 'account',
    admin: true,
    forAll: false,
    isDone: (one: Progress) => one.notifying,
  },
} as const;

export type StepId = keyof typeof STEPS;

export interface Step {
  readonly id: StepId;
  readonly state: StepState;
}

/** Returns the steps that a key can take or watch. A key without the role admin watches the steps that happen by themselves. */
export function toSteps(
  progress: Progress,
  key: { readonly role: Role; readonly accounts: readonly string[] | null },
): Step[] {
  return Object.entries(STEPS)
    .filter(([, { admin, forAll }]) => (!admin || key.role === 'admin') && (!forAll || key.accounts === null))
    .map(([id, { after, isDone }]) => {
      const isReady = after === null || STEPS[after].isDone(progress);
      return { id: id as StepId, state: isDone(progress) ? 'done' : isReady ? 'open' : 'later' };
    });
}

/** Whether no step is left. */
export const isComplete = (steps: readonly Step[]): boolean => steps.every(({ state }) => state === 'done');

/** Whether a deployment is set up in the dashboard, at least so far: none of its resources are in the configuration file. */
export const isManaged = (...lists: readonly (readonly { readonly managed: boolean }[])[]): boolean =>
  lists.every((list) => list.every(({ managed }) => managed));
