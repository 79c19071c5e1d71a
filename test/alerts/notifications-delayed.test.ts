/** The condition `notifications_delayed`: the time for which the oldest unsent message has been due. */
import { expect, test } from 'vitest';
import { createValueReader } from '../../shared/alerts/values.ts';
import type { SendOutcome } from '../../shared/notifications/types.ts';
import {
  CLOSED_AFTER,
  createNotifyingWorld,
  draftEvent,
  HOUR,
  MINUTE,
  START,
  type WorldOptions,
} from '../support/notification-world.ts';

/** Sends one message about a dispatch as soon as it is due, and to transports with this outcome. */
async function trySending(outcome: SendOutcome, recipient: object, options?: WorldOptions) {
  const world = await createNotifyingWorld(options);
  await world.recipient(recipient);
  world.answers.email = async () => outcome;
  world.answers.sms = async () => outcome;
  await world.fold(draftEvent('job.dispatched', 1, START));
  await world.send(CLOSED_AFTER);
  const due = world.clock.now;
  return {
    world,
    /** Runs the sender once a minute until this time after the message was due, and returns the value. */
    async runUntil(ms: number): Promise<number> {
      while (world.clock.now < due + ms) await world.send(MINUTE);
      const read = createValueReader(world, 'us', world.clock.now);
      return read({ condition: 'notifications_delayed', accounts: null });
    },
  };
}

test('the delay of a message grows while the mail server is down, although each retry postpones it', async () => {
  const down = { kind: 'later', reason: 'The server is down.', everything: true } as const;
  const { world, runUntil } = await trySending(down, { email: 'ann@example.com' });
  expect(await runUntil(20 * MINUTE)).toBe(20);
  expect(world.emails.length).toBeGreaterThan(15);
  world.answers.email = async () => ({ kind: 'accepted', providerId: null });
  expect(await runUntil(25 * MINUTE)).toBe(0);
});

test('the delay of a message grows between two retries, and quiet hours are no delay', async () => {
  const busy = { kind: 'later', reason: 'Busy.', everything: false } as const;
  const sms = { enabled: true, quietHours: { from: '14:00', to: '20:00' } };
  const settings = { zone: 'UTC', sms };
  const { runUntil } = await trySending(busy, { mobile: '+12125550123' }, { settings });
  // The retries are due after 1, 6 and 21 minutes, and the next one is an hour later.
  expect(await runUntil(50 * MINUTE)).toBe(50);
  expect(await runUntil(7 * HOUR)).toBe(0);
  expect(await runUntil(8 * HOUR + 15 * MINUTE)).toBe(20);
});
