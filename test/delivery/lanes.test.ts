/** The limit of concurrent lanes: how it follows latencies and failures of a simulated receiver. */
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { INITIAL_LANES, LaneLimit, MAX_LANES } from '../../shared/delivery/lanes.ts';

/** Sends windows of responses with all lanes in use. `getLatency`: latency at a number of concurrent requests (ms). */
function send(limit: LaneLimit, windows: number, getLatency: (lanes: number) => number): number {
  for (let window = 0; window < windows; window += 1) {
    const lanes = limit.current;
    limit.noteReached();
    for (let response = 0; response < lanes; response += 1) limit.noteResponse(getLatency(lanes));
  }
  return limit.current;
}

/** Latency of a receiver with this many workers, of which each takes 200 ms. */
const withWorkers = (workers: number) => (lanes: number) => 200 * Math.max(1, lanes / workers);

describe('the limit of concurrent lanes', () => {
  it('reaches the maximum in five windows if the receiver keeps its speed', () => {
    const limit = new LaneLimit(undefined, undefined);
    expect(limit.current).toBe(INITIAL_LANES);
    expect(send(limit, 5, () => 200)).toBe(MAX_LANES);
  });

  it.each([20, 40, 80])('settles near the %i requests that a receiver processes at once', (workers) => {
    const limit = new LaneLimit(undefined, undefined);
    send(limit, 20, withWorkers(workers));
    for (let round = 0; round < 50; round += 1) {
      send(limit, 1, withWorkers(workers));
      expect(limit.current).toBeGreaterThanOrEqual(Math.min(INITIAL_LANES, workers));
      expect(limit.current).toBeLessThanOrEqual(2.5 * workers);
    }
  });

  it('does not grow while it is not reached', () => {
    const limit = new LaneLimit(undefined, undefined);
    for (let response = 0; response < 1_000; response += 1) limit.noteResponse(5);
    expect(limit.current).toBe(INITIAL_LANES);
    expect(limit.stored).toBeUndefined();
  });

  it('is halved by a failure, down to one, and then grows by an eighth per window', () => {
    const limit = new LaneLimit(undefined, 40);
    limit.noteFailure();
    expect(limit.current).toBe(20);
    expect(send(limit, 1, () => 5)).toBe(23);
    for (let failure = 0; failure < 10; failure += 1) limit.noteFailure();
    expect(limit.current).toBe(1);
    expect(send(limit, 3, () => 5)).toBe(4);
  });

  it('continues after a failure where the previous drain ended, and otherwise searches again', () => {
    const limit = new LaneLimit(undefined, undefined);
    send(limit, 2, () => 200);
    expect(limit.stored).toBeUndefined();
    limit.noteFailure();
    expect(limit.current).toBeGreaterThan(INITIAL_LANES);
    expect(new LaneLimit(undefined, limit.stored).current).toBe(limit.current);
  });

  it('doubles again in the next drain once it has grown to its initial value after a failure', () => {
    const limit = new LaneLimit(undefined, undefined);
    limit.noteFailure();
    send(limit, 4, () => 200);
    expect(limit.stored).toBe(15);
    send(limit, 1, () => 200);
    const next = new LaneLimit(undefined, limit.stored);
    expect(send(next, 5, () => 200)).toBe(MAX_LANES);
  });

  it('measures the latency anew after 50 windows, because a receiver may stay slower than it was', () => {
    const limit = new LaneLimit(undefined, undefined);
    send(limit, 4, () => 20);
    expect(send(limit, 46, () => 200)).toBe(INITIAL_LANES);
    expect(send(limit, 5, () => 200)).toBe(MAX_LANES);
  });

  it('stays within 1 and the maximum of the sink, whatever happens', () => {
    fc.assert(
      fc.property(
        fc.integer({ min: 1, max: MAX_LANES }),
        fc.option(fc.integer({ min: 1, max: 200 }), { nil: undefined }),
        fc.array(fc.oneof(fc.constant('failure' as const), fc.double({ min: 0, max: 20_000, noNaN: true })), {
          maxLength: 300,
        }),
        (max, stored, steps) => {
          const limit = new LaneLimit(max, stored);
          for (const step of steps) {
            limit.noteReached();
            if (step === 'failure') limit.noteFailure();
            else limit.noteResponse(step);
            expect(limit.current).toBeGreaterThanOrEqual(1);
            expect(limit.current).toBeLessThanOrEqual(max);
          }
        },
      ),
    );
  });
});
