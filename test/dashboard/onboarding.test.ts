/** The checklist of an empty deployment: its steps are derived from what the API returns. */
import { describe, expect, it } from 'vitest';
import { isComplete, isManaged, type Progress, toSteps } from '../../dashboard/src/onboarding/steps.ts';

const EMPTY: Progress = { accounts: 0, observed: false, endpoints: 0, delivered: false, notifying: false };
const ADMIN = { role: 'admin', accounts: null } as const;
const states = (progress: Partial<Progress>, key: Parameters<typeof toSteps>[1] = ADMIN) =>
  Object.fromEntries(toSteps({ ...EMPTY, ...progress }, key).map(({ id, state }) => [id, state]));

describe('toSteps', () => {
  it('opens only the first step of an empty deployment', () => {
    expect(states({})).toEqual({
      ...{ account: 'open', observation: 'later', endpoint: 'later' },
      ...{ delivery: 'later', notifications: 'later' },
    });
  });

  it('opens the steps that an account permits, also before it is observed', () => {
    expect(states({ accounts: 1 })).toEqual({
      ...{ account: 'done', observation: 'open', endpoint: 'open' },
      ...{ delivery: 'later', notifications: 'open' },
    });
  });

  it('is complete when every step is done', () => {
    const all = { accounts: 1, observed: true, endpoints: 1, delivered: true, notifying: true };
    expect(isComplete(toSteps(all, ADMIN))).toBe(true);
    for (const missing of ['observed', 'delivered', 'notifying'] as const)
      expect(isComplete(toSteps({ ...all, [missing]: false }, ADMIN))).toBe(false);
  });

  it('offers no step that the key cannot perform', () => {
    expect(Object.keys(states({}, { role: 'admin', accounts: ['acme'] }))).toEqual([
      'observation',
      'endpoint',
      'delivery',
      'notifications',
    ]);
    for (const role of ['read', 'operate'] as const)
      expect(Object.keys(states({}, { role, accounts: null }))).toEqual(['observation', 'delivery']);
  });
});

describe('isManaged', () => {
  it('is false if any resource is declared in the configuration file', () => {
    expect(isManaged([], [])).toBe(true);
    expect(isManaged([{ managed: true }], [{ managed: true }])).toBe(true);
    expect(isManaged([{ managed: true }], [{ managed: false }])).toBe(false);
  });
});
