/** Polls after the clock was set back: what earlier polls stored is in the future (shared/tracking/set-back.ts). */
import { describe, expect, test } from 'vitest';
import { createPayment } from '../../sandbox/world/payments.ts';
import type { EventData } from '../../shared/events/catalogue.ts';
import type { JobEvent } from '../../shared/events/event.ts';
import { createRig, type Rig } from '../support/tracker.ts';

const HOUR = 3_600;

/** Polls, and returns the events with their delay after `from` (epoch ms) in minutes. */
async function pollOn(
  rig: Rig,
  times: number,
): Promise<(readonly [type: string, minutes: number, event: JobEvent])[]> {
  const from = rig.now();
  const found: (readonly [string, number, JobEvent])[] = [];
  for (let n = 0; n < times; n += 1) {
    await rig.poll();
    for (const event of await rig.fresh()) {
      const name = event.subject ? `${event.type} ${event.subject.slice(5)}` : event.type;
      found.push([name, (rig.now() - from) / 60_000, event]);
    }
  }
  return found;
}

describe.each([
  ['ten hours', 10 * HOUR],
  ['a year', 365 * 24 * HOUR],
])('after the clock was ahead by %s', (_, ahead) => {
  /** Polls with the clock ahead, while `act` changes jobs, and then sets the clock back. */
  async function setBack(act: (rig: Rig, jobs: readonly number[]) => void) {
    const rig = await createRig({ events: { payments: true } });
    const dateDue = rig.now() + 3 * 365 * 24 * HOUR * 1000;
    const jobs = Array.from({ length: 12 }, () => rig.upstream.createJob({ status: 'Scheduled', dateDue }));
    await pollOn(rig, 20);
    rig.pass(ahead);
    act(rig, jobs);
    await pollOn(rig, 3);
    rig.pass(-ahead);
    return { rig, jobs };
  }
  const names = (events: Awaited<ReturnType<typeof pollOn>>) => events.map(([name]) => name);

  test('jobs, payments and cancellations are reported as soon as usual', async () => {
    const { rig, jobs } = await setBack((at, [first = 0, second = 0]) => {
      at.upstream.cancel(first);
      at.upstream.close(second);
    });
    const [cancelled = 0, closed = 0] = jobs;
    rig.upstream.invoice(closed);
    createPayment(rig.upstream, { transactionStatus: 'Completed' });
    const quick = rig.upstream.createJob();
    rig.upstream.dispatch(quick);
    rig.upstream.close(quick);
    const events = await pollOn(rig, 20);
    expect(names(events)).toEqual(
      expect.arrayContaining([
        `job.cancelled ${cancelled}`,
        `job.invoiced ${closed}`,
        `job.created ${quick}`,
        `job.dispatched ${quick}`,
        'account.payment_completed',
      ]),
    );
  });

  test('no event claims an observation later than its own', async () => {
    const { rig, jobs } = await setBack((at, [, , third = 0]) => at.upstream.setStatus(third, 'Proof'));
    const [first = 0, second = 0, third = 0] = jobs;
    rig.upstream.setStatus(third, 'In production');
    rig.upstream.cancel(first);
    rig.upstream.close(second);
    const events = await pollOn(rig, 20);
    expect(names(events)).toEqual(
      expect.arrayContaining([
        `job.status_changed ${third}`,
        `job.cancelled ${first}`,
        `job.closed ${second}`,
      ]),
    );
    for (const [, , { data }] of events) {
      const { at, since } = (data as Partial<Pick<EventData<'job.locked'>, 'observed'>>).observed ?? {};
      if (at && since) expect(Date.parse(since)).toBeLessThanOrEqual(Date.parse(at));
    }
  });

  test('a Retry-After that was received before does not stop the polls', async () => {
    const { rig, jobs } = await setBack((at) =>
      at.fault({
        match: { operation: 'activeJobs' },
        fault: { kind: 'status', status: 429, retryAfter: 1800 },
      }),
    );
    rig.sandbox.faults.clear();
    const [first = 0] = jobs;
    rig.upstream.setStatus(first, 'Proof');
    expect(names(await pollOn(rig, 2))).toContain(`job.status_changed ${first}`);
  });
});
