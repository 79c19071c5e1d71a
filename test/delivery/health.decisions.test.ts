/** The state of a sink after a drain: waits, probes, suspects, disabling (shared/delivery/health.ts). */
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import {
  combineHealth,
  DEFAULT_DISABLE_AFTER_SECONDS,
  DEFAULT_RETRY_SECONDS,
  type DrainObservations,
  enableHealth,
  type FailurePolicy,
  getRetryWait,
  healthAttributes,
  isReady,
  resumeHealth,
  type SinkHealth,
  toHealth,
  updateHealth,
} from '../../shared/delivery/health.ts';

const NOW = Date.parse('2026-03-02T08:00:00Z');
const DAY_MS = 86_400_000;
/** In the middle of the jitter. */
const EVEN = 0.5;

function createPolicy(change: Partial<FailurePolicy> = {}): FailurePolicy {
  return { retrySeconds: [5, 300, 1800], disableAfterSeconds: 5 * 86_400, ...change };
}

function healthy(change: Partial<SinkHealth> = {}): SinkHealth {
  return {
    failures: 0,
    waitUntil: 0,
    problem: null,
    failingSince: null,
    rejections: 0,
    suspects: [],
    disabledAt: null,
    disabledReason: null,
    announcedAt: null,
    lost: 0,
    lastDeliveredAt: null,
    lastFailedAt: null,
    ...change,
  };
}

function saw(change: Partial<DrainObservations> = {}): DrainObservations {
  return {
    deliveredAt: null,
    failedAt: null,
    failure: null,
    rejections: 0,
    suspects: [],
    disable: null,
    ...change,
  };
}

describe('a wait', () => {
  test('is that of its index in the schedule, whose last one repeats', () => {
    const waits = [1, 2, 3, 4, 1000].map((n) => getRetryWait([5, 300, 1800], n, EVEN));
    expect(waits).toEqual([5_000, 300_000, 1_800_000, 1_800_000, 1_800_000]);
  });

  test('varies by a fifth either way, uniformly', () => {
    for (const [random, wait] of [
      [0, 240_000],
      [0.25, 270_000],
      [0.5, 300_000],
      [0.75, 330_000],
      [1, 360_000],
    ] as const) {
      expect(getRetryWait([5, 300], 2, random)).toBeCloseTo(wait, 6);
    }
  });

  test('is a minute without a schedule', () => {
    expect(getRetryWait([], 3, EVEN)).toBe(60_000);
  });
});

describe('the state after a drain', () => {
  test('without events is unchanged, except that it no longer waits', () => {
    const before = healthy({
      failures: 3,
      waitUntil: NOW - 1,
      problem: 'down',
      failingSince: NOW - 60_000,
      rejections: 2,
      suspects: ['a.e1.1'],
      announcedAt: NOW - 50_000,
      lost: 4,
      lastDeliveredAt: NOW - 90_000,
      lastFailedAt: NOW - 55_000,
    });
    const after = updateHealth(
      before,
      saw({ rejections: 2, suspects: ['a.e1.1'] }),
      createPolicy(),
      NOW,
      EVEN,
    );
    expect(after).toEqual({ ...before, waitUntil: 0 });
  });

  test('with a delivery has no failures; the rest is unchanged', () => {
    const before = healthy({
      failures: 7,
      waitUntil: NOW - 1,
      problem: 'down',
      failingSince: NOW - 60_000,
      announcedAt: NOW - 50_000,
      lost: 4,
      lastFailedAt: NOW - 55_000,
    });
    const after = updateHealth(before, saw({ deliveredAt: NOW - 10 }), createPolicy(), NOW, EVEN);
    expect(after).toEqual({
      ...before,
      failures: 0,
      waitUntil: 0,
      problem: null,
      failingSince: null,
      lastDeliveredAt: NOW - 10,
    });
  });

  test('with a rejected attempt has its time, and no failure of the sink', () => {
    const before = healthy({ lastFailedAt: NOW - 55_000 });
    const after = updateHealth(before, saw({ failedAt: NOW - 10 }), createPolicy(), NOW, EVEN);
    expect(after).toEqual({ ...before, lastFailedAt: NOW - 10 });
  });

  test('has the rejections and suspects of the drain', () => {
    const before = healthy({ rejections: 5, suspects: ['a.e1.1'] });
    const seen = saw({ rejections: 1, suspects: ['a.e1.2', 'a.e1.3'] });
    expect(updateHealth(before, seen, createPolicy(), NOW, EVEN)).toEqual({ ...before, ...pick(seen) });
    function pick({ rejections, suspects }: DrainObservations) {
      return { rejections, suspects };
    }
  });

  test('that failed waits by the schedule with a reason, since the first failure, with the number of failures', () => {
    const failure = { reason: 'The endpoint responded with status 503.' };
    const first = updateHealth(healthy({ lastDeliveredAt: 5 }), saw({ failure }), createPolicy(), NOW, EVEN);
    expect(first).toEqual(
      healthy({
        failures: 1,
        waitUntil: NOW + 5_000,
        problem: failure.reason,
        failingSince: NOW,
        lastDeliveredAt: 5,
        lastFailedAt: NOW,
      }),
    );
    const later = NOW + 10_000;
    const second = updateHealth(first, saw({ failure: { reason: 'reset' } }), createPolicy(), later, EVEN);
    expect(second).toEqual({
      ...first,
      failures: 2,
      waitUntil: later + 300_000,
      problem: 'reset',
      lastFailedAt: later,
    });
    expect(updateHealth(second, saw({ failure }), createPolicy(), later, 1).waitUntil).toBe(
      later + 2_160_000,
    );
  });

  test('with a delivery and then a failure starts counting again', () => {
    const before = healthy({ failures: 9, failingSince: NOW - 6 * DAY_MS, problem: 'old' });
    const seen = saw({ deliveredAt: NOW - 1, failure: { reason: 'down' } });
    expect(updateHealth(before, seen, createPolicy(), NOW, EVEN)).toEqual(
      healthy({
        failures: 1,
        waitUntil: NOW + 5_000,
        problem: 'down',
        failingSince: NOW,
        lastDeliveredAt: NOW - 1,
        lastFailedAt: NOW,
      }),
    );
  });

  test.each([
    ['longer than the schedule is honoured', 7_000, 7_000],
    ['shorter is not', 4_000, 5_000],
    ['is honoured up to a day', DAY_MS, DAY_MS],
    ['is not beyond that', DAY_MS + 1, DAY_MS],
  ])('a Retry-After that is %s', (_, afterMs, wait) => {
    const seen = saw({ failure: { reason: 'busy', afterMs } });
    expect(updateHealth(healthy(), seen, createPolicy(), NOW, EVEN).waitUntil).toBe(NOW + wait);
  });
});

describe('disabling a sink', () => {
  const failure = { reason: 'The endpoint responded with status 500.' };

  test('happens after days of failure, not a millisecond before', () => {
    const before = healthy({ failures: 90, failingSince: NOW - 5 * DAY_MS });
    const waiting = updateHealth(before, saw({ failure }), createPolicy(), NOW - 1, EVEN);
    expect(waiting).toMatchObject({ disabledAt: null, disabledReason: null, waitUntil: NOW - 1 + 1_800_000 });
    expect(updateHealth(before, saw({ failure }), createPolicy(), NOW, EVEN)).toEqual({
      ...before,
      failures: 91,
      waitUntil: 0,
      problem: failure.reason,
      lastFailedAt: NOW,
      disabledAt: NOW,
      disabledReason:
        'All deliveries failed for 5 days. Last failure: The endpoint responded with status 500.',
    });
  });

  test('has the duration of the failure, to a tenth of a day', () => {
    const before = healthy({ failures: 90, failingSince: NOW - 1.26 * DAY_MS });
    const after = updateHealth(before, saw({ failure }), createPolicy({ disableAfterSeconds: 1 }), NOW, EVEN);
    expect(after.disabledReason).toBe(
      'All deliveries failed for 1.3 days. Last failure: The endpoint responded with status 500.',
    );
  });

  test('does not happen after a delivery, nor without a failure', () => {
    const before = healthy({ failures: 90, failingSince: NOW - 6 * DAY_MS });
    const took = saw({ deliveredAt: NOW, failure });
    expect(updateHealth(before, took, createPolicy(), NOW, EVEN).disabledAt).toBeNull();
    expect(updateHealth(before, saw(), createPolicy(), NOW, EVEN).disabledAt).toBeNull();
  });

  test('happens at once on request, with any other result, and ends the wait', () => {
    for (const deliveredAt of [null, NOW - 1]) {
      for (const failed of [null, failure]) {
        const seen = saw({
          deliveredAt,
          failure: failed,
          disable: 'The endpoint responded with status 410.',
        });
        const after = updateHealth(healthy(), seen, createPolicy(), NOW, EVEN);
        expect(after).toMatchObject({
          disabledAt: NOW,
          disabledReason: 'The endpoint responded with status 410.',
          waitUntil: 0,
          failures: failed ? 1 : 0,
          problem: failed ? failure.reason : null,
        });
      }
    }
  });

  test('by the receiver has that reason, also on the day it would be disabled anyway', () => {
    const before = healthy({ failures: 90, failingSince: NOW - 6 * DAY_MS });
    const seen = saw({ failure, disable: 'The endpoint responded with status 410.' });
    expect(updateHealth(before, seen, createPolicy(), NOW, EVEN).disabledReason).toBe(
      'The endpoint responded with status 410.',
    );
  });
});

describe('a sink that an operator enables', () => {
  test('resumes at once with a probe; the failure duration restarts, and the emitted state stays', () => {
    const before = healthy({
      failures: 90,
      waitUntil: NOW + 5,
      problem: 'down',
      failingSince: NOW - 6 * DAY_MS,
      rejections: 3,
      suspects: ['a.e1.1'],
      disabledAt: NOW - 9,
      disabledReason: 'Nothing but failures.',
      announcedAt: NOW - 9,
      lost: 2,
    });
    expect(enableHealth(before)).toEqual({
      ...before,
      waitUntil: 0,
      failingSince: null,
      disabledAt: null,
      disabledReason: null,
    });
    expect(
      enableHealth(healthy({ disabledAt: NOW })).failures,
      'a probe also for one that never failed',
    ).toBe(1);
  });

  test('is still failing if it only waited, and waits no longer after another failure than before', () => {
    const before = healthy({ failures: 3, waitUntil: NOW + 5, failingSince: NOW - DAY_MS, problem: 'down' });
    const retried = enableHealth(before);
    expect(retried).toEqual({ ...before, failures: 2, waitUntil: 0 });
    const after = updateHealth(retried, saw({ failure: { reason: 'down' } }), createPolicy(), NOW, EVEN);
    expect(after).toMatchObject({ failures: 3, failingSince: NOW - DAY_MS });
    expect(enableHealth(healthy({ failures: 1, waitUntil: NOW + 5 })).failures, 'a probe first').toBe(1);
  });

  test('is not disabled by the next failure', () => {
    const before = enableHealth(
      healthy({ failures: 90, failingSince: NOW - 6 * DAY_MS, disabledAt: NOW - 9 }),
    );
    const after = updateHealth(before, saw({ failure: { reason: 'down' } }), createPolicy(), NOW, EVEN);
    expect(after).toMatchObject({ disabledAt: null, failingSince: NOW, failures: 91 });
  });
});

describe('a sink that is resumed', () => {
  const at = { pk: 'SINKS#us', sk: 'erp' };

  test('is probed at once if it is failing, and the time of its pause does not count as time of failures', () => {
    expect(resumeHealth({ ...at, failingSince: NOW - DAY_MS, waitUntil: NOW + 5 }, NOW)).toEqual({
      ...{ waitUntil: undefined, failingSince: NOW },
    });
  });

  test('is not failing if it was not', () => {
    expect(resumeHealth(at, NOW)).toStrictEqual({ waitUntil: undefined });
  });
});

describe('whether a sink can be drained', () => {
  test.each([
    ['by default', {}, false, true],
    ['not while it is paused', {}, true, false],
    ['not while it waits', { waitUntil: NOW + 1 }, false, false],
    ['as soon as the wait has ended', { waitUntil: NOW }, false, true],
    ['not if clocks differ a little', { waitUntil: NOW + DAY_MS, lastFailedAt: NOW + 60_000 }, false, false],
    [
      'if the wait began before the clock was set back',
      { waitUntil: NOW + DAY_MS, lastFailedAt: NOW + 60_001 },
      false,
      true,
    ],
    ['not while it is disabled', { disabledAt: 0 }, false, false],
    ['for any failures', { failures: 5, failingSince: 1, announcedAt: 1 }, false, true],
  ])('%s', (_, change, paused, ready) => {
    expect(isReady({ paused, health: healthy(change) }, NOW)).toBe(ready);
  });
});

describe('the stored state', () => {
  const instant = () => fc.option(fc.integer({ min: 1, max: 4e12 }), { nil: null });
  const text = () => fc.option(fc.string(), { nil: null });
  const health = (): fc.Arbitrary<SinkHealth> =>
    fc.record({
      failures: fc.nat(),
      waitUntil: fc.nat(),
      problem: text(),
      failingSince: instant(),
      rejections: fc.nat(9),
      suspects: fc.array(fc.string(), { maxLength: 5 }),
      disabledAt: instant(),
      disabledReason: text(),
      announcedAt: instant(),
      lost: fc.nat(),
      lastDeliveredAt: instant(),
      lastFailedAt: instant(),
    });

  test('is read as it was written, over any earlier one', () => {
    fc.assert(
      fc.property(health(), health(), (before, after) => {
        const item = { pk: 'SINKS#us', sk: 'erp', ...healthAttributes(before), ...healthAttributes(after) };
        expect(toHealth(item)).toEqual(after);
      }),
    );
  });

  test('is empty for a sink without failures, as for a new sink', () => {
    const attributes = healthAttributes(healthy());
    expect(Object.keys(attributes).sort(), 'all are removed').toEqual(Object.keys(healthy()).sort());
    expect(Object.values(attributes).filter((value) => value !== undefined)).toEqual([]);
    expect(toHealth({ pk: 'SINKS#us', sk: 'erp' })).toEqual(healthy());
  });

  test('of a wrong type counts as empty', () => {
    const names = Object.keys(healthy());
    const item = { pk: 'SINKS#us', sk: 'erp', ...Object.fromEntries(names.map((name) => [name, true])) };
    expect(toHealth(item)).toEqual(healthy());
  });
});

test('defaults to the schedule of Standard Webhooks, and to disabling after five days of failure', () => {
  expect(DEFAULT_RETRY_SECONDS).toEqual([5, 300, 1800, 7200, 18_000, 36_000, 50_400, 72_000, 86_400]);
  expect(DEFAULT_DISABLE_AFTER_SECONDS).toBe(432_000);
});

describe('the health of a sink with parts', () => {
  const empty = healthy();
  const early: SinkHealth = {
    ...{ failures: 1, waitUntil: 20, problem: 'first', failingSince: 3, rejections: 4, suspects: ['a'] },
    ...{
      disabledAt: 5,
      disabledReason: 'gone',
      announcedAt: 6,
      lost: 7,
      lastDeliveredAt: 8,
      lastFailedAt: 9,
    },
  };
  const late: SinkHealth = {
    ...{ failures: 2, waitUntil: 10, problem: 'second', failingSince: 13, rejections: 1, suspects: ['b'] },
    ...{
      disabledAt: 15,
      disabledReason: 'off',
      announcedAt: 16,
      lost: 17,
      lastDeliveredAt: 18,
      lastFailedAt: 19,
    },
  };

  test('is that of its worst part', () => {
    const worst = {
      ...{ failures: 2, waitUntil: 20, failingSince: 3, rejections: 4, disabledAt: 5, announcedAt: 6 },
      ...{ lost: 24, lastDeliveredAt: 18, lastFailedAt: 19 },
    };
    expect(combineHealth([early, late])).toEqual({ ...early, ...worst, suspects: ['a', 'b'] });
    expect(combineHealth([late, early])).toEqual({ ...late, ...worst, suspects: ['b', 'a'] });
  });

  test('has the values that only one part has', () => {
    for (const parts of [[early, empty], [empty, early], [empty, early, empty], [early]])
      expect(combineHealth(parts)).toEqual(early);
    expect(combineHealth([empty, empty])).toEqual(empty);
    expect(() => combineHealth([])).toThrow('A sink has at least one part.');
  });
});
