/** The condition `notifications_delayed`: the time for which the oldest unsent message has been due. */
import { describe, expect, test } from 'vitest';
import { createValueReader } from '../../shared/alerts/values.ts';
import { oldestUnsent } from '../../shared/notifications/oldest-unsent.ts';
import type { SendOutcome } from '../../shared/notifications/types.ts';
import { keys } from '../../shared/storage/schema.ts';
import { TableError } from '../../shared/storage/table.ts';
import {
  ACME,
  CLOSED_AFTER,
  createNotifyingWorld,
  draftEvent,
  HOUR,
  MINUTE,
  START,
  type WorldOptions,
} from '../support/notification-world.ts';
import { type TableCall, watchedTable } from '../support/tracker.ts';

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

describe('the delay of a notice grows from the end of its window', () => {
  const GROUP = { orderGroup: 'SPRING #2' };
  /** Runs the sender for 20 minutes after the end of a window. Each call on the partitions fails. */
  async function runLate(failing?: TableCall['call'], partitions?: string, prepare?: Prepare): Promise<void> {
    const fails = ({ call, of }: TableCall): void => {
      if (call === failing && of.includes(partitions ?? '')) throw new TableError('read', 'out of order');
    };
    const world = await createNotifyingWorld({
      around: ({ table, history }) => ({ table: watchedTable(table, { before: fails }), history }),
    });
    await world.recipient({ email: 'ann@example.com' });
    await world.fold(draftEvent('job.dispatched', 1, START, GROUP));
    await prepare?.(world);
    const dueAt = START + CLOSED_AFTER;
    world.clock.now = dueAt;
    // A run reports the failure of its only notice.
    for (; world.clock.now < dueAt + 20 * MINUTE; world.clock.now += MINUTE) await world.send().catch(String);
    expect(world.emails).toEqual([]);
    expect(await oldestUnsent(world.table, 'us', world.clock.now)).toBe(dueAt);
    const read = createValueReader(world, 'us', world.clock.now);
    expect(await read({ condition: 'notifications_delayed', accounts: null })).toBe(20);
  }
  type Prepare = (world: Awaited<ReturnType<typeof createNotifyingWorld>>) => Promise<unknown>;

  test('while its messages cannot be created', () => runLate('transact', 'MESSAGES'));

  test('while its recipients cannot be read', () => runLate('query', 'RECIPIENTSOF'));

  test('while its thread cannot be read', () => runLate('get', 'THREADS'));

  test('while its thread is invalid', () =>
    runLate(undefined, undefined, ({ table }) =>
      table.write({ update: keys.thread(ACME, `=${GROUP.orderGroup}`), set: { state: '{' } }),
    ));

  test('while it waits for events that were observed in the window', () =>
    runLate(undefined, undefined, ({ log }) =>
      log.append(ACME, [draftEvent('job.dispatched', 2, START + MINUTE, GROUP)]),
    ));
});
