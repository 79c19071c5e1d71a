/**
 * Every message is sent once to its recipients, despite crashes, time-outs and rejections.
 * One file: its tests share the sender's rig, also its property over crashes.
 */
import { setImmediate } from 'node:timers/promises';
import fc from 'fast-check';
import { describe, expect, onTestFinished, test, vi } from 'vitest';
import type { EventDraft } from '../../shared/events/event.ts';
import { listMessages, type MessageQuery } from '../../shared/notifications/message-history.ts';
import {
  isFinal,
  recordFeedback,
  toWork,
  toWorkKey,
  type Work,
} from '../../shared/notifications/messages.ts';
import { createDueMessages } from '../../shared/notifications/notice-messages.ts';
import { oldestUnsent } from '../../shared/notifications/oldest-unsent.ts';
import { deleteRecipient, listRecipients, updateRecipient } from '../../shared/notifications/recipients.ts';
import { messageRenderer } from '../../shared/notifications/rendering.ts';
import type { SendDeps } from '../../shared/notifications/send-report.ts';
import { sendDue } from '../../shared/notifications/sender.ts';
import { quietUntil, readSmsUse } from '../../shared/notifications/sms-limits.ts';
import { createSmtpTransport } from '../../shared/notifications/smtp.ts';
import { suppress } from '../../shared/notifications/suppressions.ts';
import { saveTemplate } from '../../shared/notifications/templates.ts';
import { takeDueNotices } from '../../shared/notifications/thread-store.ts';
import type { Channel, SendOutcome } from '../../shared/notifications/types.ts';
import { keys, sentOfJobPk, sentToRecipientPk } from '../../shared/storage/schema.ts';
import { estimateSize, type Table, TableError } from '../../shared/storage/table.ts';
import {
  ACME,
  CLOSED_AFTER,
  createNotifyingWorld,
  draftEvent,
  findSuppression,
  HOUR,
  MINUTE,
  parcel,
  START,
  type WorldOptions,
} from '../support/notification-world.ts';
import { runs } from '../support/runs.ts';

const DISPATCHED = 'job.dispatched';
const ACCEPTED: SendOutcome = { kind: 'accepted', providerId: null };
const DOWN: SendOutcome = { kind: 'later', reason: 'The server is down.', everything: true };

describe('message sending', () => {
  test('the id of a message does not reveal the address by brute force', async () => {
    const getId = async () => {
      const world = await createNotifyingWorld();
      await world.recipient({ mobile: '+12125550123' });
      await world.fold(draftEvent(DISPATCHED, 1, START));
      await world.send(CLOSED_AFTER);
      return (await world.messages())[0]?.id;
    };
    // The value that an id without the installation's key would have.
    expect(await getId()).not.toBe(await getId());
  });

  test('a notice becomes one message for each channel and address, sent once and recorded in the history', async () => {
    const world = await createNotifyingWorld();
    const ann = await world.recipient({ name: 'Ann', email: 'ann@example.com', mobile: '+12125550123' });
    const bob = await world.recipient({ name: 'Bob', email: 'Ann@Example.com', jobNumber: 2 });
    await world.fold(
      draftEvent(DISPATCHED, 1, START, { tracking: [parcel('1Z1')] }),
      draftEvent(DISPATCHED, 2, START, { tracking: [parcel('1Z1')] }),
    );
    const report = await world.send(CLOSED_AFTER);
    expect(report).toMatchObject({ notices: 1, messages: 2, sent: 2, repeats: 0, more: false });
    expect(world.emails).toHaveLength(1);
    expect(world.sms).toHaveLength(1);
    // A recipient for the job precedes one for the account.
    expect(world.emails[0]).toMatchObject({
      to: { name: 'Bob', address: 'Ann@example.com' },
      references: [],
    });
    const messages = await world.messages();
    expect(messages).toMatchObject([
      { channel: 'email', jobs: [1, 2], state: 'sent', attempts: 1, repeats: 0, providerId: 'p-1' },
      { channel: 'sms', jobs: [1, 2], state: 'sent', segments: 1 },
    ]);
    expect((await world.works()).map(({ recipients }) => recipients.length).sort()).toEqual([1, 2]);
    expect(bob.id).not.toBe(ann.id);
    expect(await world.journal()).toEqual([]);
    expect(await world.send(1)).toMatchObject({ sent: 0, more: false });
    expect(world.emails).toHaveLength(1);
  });

  /** Two messages that wait for a retry, and transports that accept everything from now on. */
  const createWaitingWorld = async (around?: WorldOptions['around']) => {
    const world = await createNotifyingWorld(around && { around });
    await world.recipient({ name: 'Ann', email: 'ann@example.com' });
    world.answers.email = async () => ({ kind: 'later', reason: 'Busy.', everything: false });
    await world.fold(
      draftEvent(DISPATCHED, 1, START),
      draftEvent(DISPATCHED, 2, START, { orderGroup: 'SUMMER' }),
    );
    await world.send(CLOSED_AFTER);
    world.answers.email = async () => ({ kind: 'accepted', providerId: null });
    return world;
  };

  test('a notice that cannot become messages does not delay existing messages', async () => {
    const world = await createWaitingWorld(({ table, history }) => ({
      history,
      table: {
        ...table,
        transact: async (writes, token) => {
          const isMade = writes.some((write) => 'put' in write && /WINTER/.test(String(write.put.work)));
          if (isMade) throw new TableError('write', 'it is too large');
          return table.transact(writes, token);
        },
      },
    }));
    await world.fold(draftEvent(DISPATCHED, 3, world.clock.now, { orderGroup: 'WINTER' }));
    await expect(world.send(CLOSED_AFTER)).rejects.toThrow('too large');
    expect((await world.messages()).map(({ state }) => state)).toEqual(['sent', 'sent']);
  });

  test('large messages fit into transactions, whose limit counts whole items', async () => {
    const world = await createNotifyingWorld({
      around: ({ table, history }) => ({
        history,
        table: {
          ...table,
          transact: async (writes, token) => {
            const outcome = await table.transact(writes, token);
            const items = await Promise.all(
              writes.flatMap((write) =>
                'put' in write ? table.get(write.put) : 'update' in write ? table.get(write.update) : [],
              ),
            );
            const bytes = items.reduce((sum, item) => sum + (item ? estimateSize(item) : 0), 0);
            if (bytes > 4_000_000) throw new TableError('write', `${bytes} bytes are too many`);
            return outcome;
          },
        },
      }),
    });
    for (let place = 0; place < 40; place += 1) await world.recipient({ email: `r${place}@example.com` });
    const link = `https://carrier.example/${'x'.repeat(1900)}`;
    await world.fold(
      ...Array.from({ length: 70 }, (_, place) =>
        draftEvent(DISPATCHED, place + 1, START, {
          tracking: [{ number: `1Z${place}`, link: link + place }],
        }),
      ),
    );
    expect(await world.send(CLOSED_AFTER)).toMatchObject({ messages: 40, sent: 40 });
  }, 60_000);

  test('an unreadable message delays no other message, and is reported', async () => {
    const world = await createWaitingWorld();
    const [broken] = await world.works();
    if (!broken) throw new Error('There is no message.');
    await world.table.write({ update: toWorkKey(broken), set: { message: '{' } });
    expect(await world.send(CLOSED_AFTER)).toMatchObject({ sent: 1 });
    expect(world.lines.some(({ outcome }) => outcome === 'fault')).toBe(true);
  });

  test('existing messages are sent while many more are being created', async () => {
    const late = { byMs: 0, clock: { now: 0 } };
    const world = await createWaitingWorld(({ table, history }) => ({
      history,
      table: {
        ...table,
        transact: async (writes, token) => {
          if (writes.some((write) => 'put' in write && write.put.work !== undefined)) {
            late.clock.now += late.byMs;
          }
          return table.transact(writes, token);
        },
      },
    }));
    const groups = Array.from({ length: 110 }, (_, place) => `G${place}`);
    await world.fold(
      ...groups.map((orderGroup, place) =>
        draftEvent(DISPATCHED, 10 + place, world.clock.now, { orderGroup }),
      ),
    );
    Object.assign(late, { byMs: 20 * MINUTE, clock: world.clock });
    const report = await world.send(CLOSED_AFTER);
    expect(report.more).toBe(true);
    expect(report.sent).toBeGreaterThan(0);
  });
});

describe('an e-mail', () => {
  test('with an unknown outcome is sent again with the same Message-ID, and counted', async () => {
    const world = await createNotifyingWorld();
    await world.recipient({ email: 'ann@example.com' });
    await world.fold(draftEvent(DISPATCHED, 1, START));
    world.answers.email = () => new Promise(() => undefined);
    expect(await world.send(CLOSED_AFTER, { sendTimeoutMs: 5 })).toMatchObject({ sent: 0, later: 1 });
    expect(await world.send(30_000)).toMatchObject({ sent: 0 });
    world.answers.email = async () => ({ kind: 'later', reason: 'busy', everything: false });
    expect(await world.send(HOUR)).toMatchObject({ later: 1 });
    // A certain rejection is not a repetition.
    expect(await world.messages()).toMatchObject([
      { state: 'waiting', attempts: 2, repeats: 0, detail: 'busy' },
    ]);
    world.answers.email = async () => ({ kind: 'accepted', providerId: 'p' });
    expect(await world.send(HOUR)).toMatchObject({ sent: 1, repeats: 1 });
    expect(await world.messages()).toMatchObject([{ state: 'sent', attempts: 3, repeats: 1, detail: null }]);
    expect(new Set(world.emails.map(({ messageId }) => messageId)).size).toBe(1);
  });

  test('that failed is retried after 1, 5, 15 and then each 60 minutes, until it is too old', async () => {
    const world = await createNotifyingWorld({ settings: { maxAgeHours: 3 } });
    await world.recipient({ email: 'ann@example.com' });
    await world.fold(draftEvent(DISPATCHED, 1, START));
    const at: number[] = [];
    world.answers.email = async () => {
      at.push((world.clock.now - START - CLOSED_AFTER) / MINUTE);
      return { kind: 'later', reason: 'busy', everything: false };
    };
    await world.send(CLOSED_AFTER);
    for (let minute = 0; minute < 240; minute += 1) await world.send(MINUTE);
    expect(at).toEqual([0, 1, 6, 21, 81, 141]);
    expect(await world.messages()).toMatchObject([
      { state: 'failed', reason: 'attempts_exhausted', detail: 'busy' },
    ]);
  });

  test('that is rejected for now after an outage of the mail server is retried after 1, 5 and 15 minutes', async () => {
    const world = await createNotifyingWorld();
    await world.recipient({ email: 'ann@example.com' });
    await world.fold(draftEvent(DISPATCHED, 1, START));
    world.answers.email = async () => DOWN;
    await world.send(CLOSED_AFTER);
    for (let minute = 0; minute < 30; minute += 1) await world.send(MINUTE);
    const restored = world.clock.now;
    const at: number[] = [];
    world.answers.email = async () => {
      at.push((world.clock.now - restored) / MINUTE);
      return at.length < 4
        ? { kind: 'later', reason: 'Greylisted.', everything: false }
        : { kind: 'accepted', providerId: null };
    };
    for (let minute = 0; minute < 40; minute += 1) await world.send(MINUTE);
    expect(at).toEqual([1, 2, 7, 22]);
    expect(await world.messages()).toMatchObject([{ state: 'sent' }]);
  });

  test('is a reply in its thread, and is never sent before the earlier mail', async () => {
    const world = await createNotifyingWorld();
    await world.recipient({ email: 'ann@example.com' });
    await world.fold(draftEvent(DISPATCHED, 1, START));
    world.answers.email = async () => ({ kind: 'later', reason: 'busy', everything: false, afterMs: HOUR });
    await world.send(CLOSED_AFTER);
    await world.fold(draftEvent('job.tracking_added', 1, world.clock.now, { tracking: [parcel('1Z1')] }));
    world.answers.email = async () => ({ kind: 'accepted', providerId: null });
    expect(await world.send(CLOSED_AFTER)).toMatchObject({ messages: 1, sent: 0, later: 1 });
    expect(await world.send(HOUR)).toMatchObject({ sent: 2 });
    const [, first, second] = world.emails;
    expect(second?.references).toEqual([first?.messageId]);
    expect(second?.messageId).not.toBe(first?.messageId);
    expect((await world.messages()).map(({ kind, state }) => [kind, state])).toEqual([
      ['dispatched', 'sent'],
      ['tracking', 'sent'],
    ]);
  });

  test('waits for an earlier notice in its thread that another process is converting to messages', async () => {
    const world = await createNotifyingWorld();
    await world.recipient({ email: 'ann@example.com', kinds: ['dispatched', 'due_date_changed'] });
    await world.fold(
      draftEvent(DISPATCHED, 1, START),
      draftEvent('job.due_date_changed', 2, START + 30_000, { dateOut: null, dateDue: '2026-03-12' }),
    );
    world.clock.now += CLOSED_AFTER;
    // A process takes the first notice and crashes.
    expect(await takeDueNotices(world.deps, 'us', 10)).toHaveLength(1);
    expect(await world.send(30_000)).toMatchObject({ notices: 0, sent: 0 });
    for (let turn = 0; turn < 8; turn += 1) await world.send(30_000);
    expect((await world.messages()).map(({ kind, state }) => [kind, state])).toEqual([
      ['dispatched', 'sent'],
      ['due_date_changed', 'sent'],
    ]);
    expect(world.emails.map(({ references }) => references.length)).toEqual([0, 1]);
  });

  test('that bounced before it was recorded as sent is recorded as bounced, and is not sent again', async () => {
    const world = await createNotifyingWorld();
    await world.recipient({ email: 'ann@example.com' });
    await world.fold(draftEvent(DISPATCHED, 1, START));
    world.answers.email = async ({ tags }) => {
      await recordFeedback(world.deps, { ...ACME, message: tags.message }, 'bounced', 'no mailbox');
      return { kind: 'unknown', reason: 'cut' };
    };
    await world.send(CLOSED_AFTER);
    const bounced = { state: 'bounced', reason: 'bounced', detail: 'no mailbox' };
    expect(await world.messages()).toMatchObject([bounced]);
    await world.send(HOUR);
    expect(world.emails).toHaveLength(1);
    const [message] = await world.messages();
    const at = { ...ACME, message: message?.id ?? '' };
    await recordFeedback(world.deps, at, 'complained', null);
    // Much later, after the work item is gone, and for an unknown message.
    for (const { ref, message: gone } of await world.works()) {
      await world.table.write({ delete: keys.message(ref, gone.id.split('-')[1] ?? '') });
    }
    expect(await recordFeedback(world.deps, at, 'bounced', 'late')).toMatchObject({ state: 'complained' });
    expect(await world.messages()).toMatchObject([{ state: 'complained', detail: null }]);
    expect(await recordFeedback(world.deps, { ...ACME, message: 'm0-e0' }, 'bounced', null)).toBeUndefined();
  });
});

describe('the message about a dispatch', () => {
  const BOTH = ['dispatched', 'dispatch_revoked'];
  type World = Awaited<ReturnType<typeof createNotifyingWorld>>;

  async function observe(world: World, ...types: readonly ('job.dispatched' | 'job.dispatch_revoked')[]) {
    for (const type of types) {
      await world.fold(draftEvent(type, 1, world.clock.now));
      await world.send(CLOSED_AFTER);
    }
  }
  const listSent = async (world: World) =>
    (await world.messages())
      .filter(({ state }) => state === 'sent' || state === 'unknown')
      .map(({ kind, to }) => [to?.name, kind]);

  test('is sent once after quiet hours in which the job was dispatched, revoked and dispatched again', async () => {
    const quietHours = { from: '11:00', to: '18:00' };
    const world = await createNotifyingWorld({
      settings: { zone: 'UTC', sms: { enabled: true, quietHours } },
    });
    await world.recipient({ name: 'Ann', mobile: '+12025550123' });
    await world.recipient({ name: 'Bea', mobile: '+12025550124', kinds: BOTH });
    await observe(world, 'job.dispatched', 'job.dispatch_revoked', 'job.dispatched');
    expect(world.sms).toEqual([]);
    await world.send(6 * HOUR);
    await world.send(HOUR);
    expect(world.sms.map(({ to }) => to).sort()).toEqual(['+12025550123', '+12025550124']);
    expect((await listSent(world)).sort()).toEqual([
      ['Ann', 'dispatched'],
      ['Bea', 'dispatched'],
    ]);
  });

  test('is sent once after an outage of the mail server in which the job was dispatched, revoked and dispatched again', async () => {
    const world = await createNotifyingWorld();
    await world.recipient({ name: 'Ann', email: 'ann@example.com' });
    await world.recipient({ name: 'Bea', email: 'bea@example.com', kinds: BOTH });
    world.answers.email = async () => DOWN;
    await observe(world, 'job.dispatched', 'job.dispatch_revoked', 'job.dispatched');
    world.answers.email = async () => ACCEPTED;
    for (let turn = 0; turn < 3; turn += 1) await world.send(HOUR);
    expect((await listSent(world)).sort()).toEqual([
      ['Ann', 'dispatched'],
      ['Bea', 'dispatched'],
    ]);
  });

  test('is sent once if a revocation is undone in its window, although it was due in between', async () => {
    const world = await createNotifyingWorld();
    await world.recipient({ name: 'Ann', email: 'ann@example.com' });
    world.answers.email = async () => DOWN;
    await observe(world, 'job.dispatched');
    world.answers.email = async () => ACCEPTED;
    await world.fold(draftEvent('job.dispatch_revoked', 1, world.clock.now));
    await world.send(2 * MINUTE);
    expect(await listSent(world)).toEqual([]);
    await world.fold(draftEvent('job.dispatched', 1, world.clock.now));
    await world.send(3 * MINUTE);
    await world.send(HOUR);
    expect(await listSent(world)).toEqual([['Ann', 'dispatched']]);
  });

  test('is not sent if the job is not dispatched any more, nor is a correction', async () => {
    const world = await createNotifyingWorld();
    await world.recipient({ name: 'Bea', email: 'bea@example.com', kinds: BOTH });
    world.answers.email = async () => DOWN;
    await observe(world, 'job.dispatched');
    world.answers.email = async () => ACCEPTED;
    await observe(world, 'job.dispatch_revoked');
    await world.send(HOUR);
    expect((await world.messages()).map(({ kind, state, reason }) => [kind, state, reason])).toEqual([
      ['dispatched', 'suppressed', 'revoked'],
      ['dispatch_revoked', 'suppressed', 'revoked'],
    ]);
  });

  test('is repeated only for those who got a correction, however often it is revoked', async () => {
    const world = await createNotifyingWorld({ settings: { maxAgeHours: 168 } });
    await world.recipient({ name: 'Ann', email: 'ann@example.com' });
    await world.recipient({ name: 'Bea', email: 'bea@example.com', kinds: BOTH });
    await observe(world, 'job.dispatched');
    for (let turn = 0; turn < 7; turn += 1) await observe(world, 'job.dispatch_revoked', 'job.dispatched');
    const sent = await listSent(world);
    expect(sent.filter(([name]) => name === 'Ann')).toEqual([['Ann', 'dispatched']]);
    expect(sent.filter(([name]) => name === 'Bea').map(([, kind]) => kind)).toEqual([
      'dispatched',
      ...Array.from({ length: 7 }, () => ['dispatch_revoked', 'dispatched']).flat(),
    ]);
  });

  test('is repeated if it contains parcels that were not sent to the address, and only then', async () => {
    const world = await createNotifyingWorld({ settings: { maxAgeHours: 168 } });
    await world.recipient({ name: 'Ann', email: 'ann@example.com' });
    await world.recipient({ name: 'Bea', email: 'bea@example.com', kinds: ['dispatched'] });
    const tracking = [{ number: '1Z 1', link: 'https://carrier.example/1' }];
    await observe(world, 'job.dispatched', 'job.dispatch_revoked');
    await world.fold(draftEvent('job.dispatched', 1, world.clock.now, { tracking }));
    await world.send(CLOSED_AFTER);
    const names = async () => (await listSent(world)).map(([name]) => name).sort();
    expect(await names(), 'Bea wants no tracking').toEqual(['Ann', 'Ann', 'Bea']);
    await observe(world, 'job.dispatch_revoked');
    await world.fold(draftEvent('job.dispatched', 1, world.clock.now, { tracking }));
    await world.send(CLOSED_AFTER);
    expect(await names()).toEqual(['Ann', 'Ann', 'Bea']);
  });

  test('is sent once for a day, although another day was observed while it could not be sent', async () => {
    const world = await createNotifyingWorld({ settings: { maxAgeHours: 168 } });
    await world.recipient({ name: 'Ann', email: 'ann@example.com' });
    await observe(world, 'job.dispatched');
    world.answers.email = async () => DOWN;
    const other = { dateOut: '2026-03-05T10:00:00' };
    await world.fold(draftEvent('job.dispatch_revoked', 1, world.clock.now));
    await world.fold(draftEvent('job.dispatched', 1, world.clock.now, other));
    await world.send(CLOSED_AFTER);
    await observe(world, 'job.dispatch_revoked', 'job.dispatched');
    world.answers.email = async () => ACCEPTED;
    for (let turn = 0; turn < 3; turn += 1) await world.send(HOUR);
    expect(await listSent(world)).toEqual([['Ann', 'dispatched']]);
  });

  test('is repeated for those who got a message about a cancellation in between', async () => {
    const world = await createNotifyingWorld();
    await world.recipient({ name: 'Ann', email: 'ann@example.com', kinds: ['dispatched', 'cancelled'] });
    await observe(world, 'job.dispatched', 'job.dispatch_revoked');
    await world.fold(draftEvent('job.cancelled', 1, world.clock.now, { dateOut: null }));
    await world.send(CLOSED_AFTER);
    await observe(world, 'job.dispatched');
    expect((await listSent(world)).map(([, kind]) => kind)).toEqual([
      'dispatched',
      'cancelled',
      'dispatched',
    ]);
  });

  test('is sent to a recipient who was added after the first dispatch', async () => {
    const world = await createNotifyingWorld();
    await observe(world, 'job.dispatched', 'job.dispatch_revoked');
    await world.recipient({ name: 'Ann', email: 'ann@example.com' });
    await observe(world, 'job.dispatched');
    expect(await listSent(world)).toEqual([['Ann', 'dispatched']]);
  });
});

describe('the correction of a dispatch', () => {
  const kinds = ['dispatched', 'dispatch_revoked'];

  test('is sent after quiet hours if a new dispatch was undone in its window', async () => {
    const quietHours = { from: '12:20', to: '18:00' };
    const world = await createNotifyingWorld({
      settings: { zone: 'UTC', sms: { enabled: true, quietHours } },
    });
    await world.recipient({ mobile: '+12025550123', kinds });
    await world.fold(draftEvent(DISPATCHED, 1, START));
    await world.send(CLOSED_AFTER);
    await world.send(15 * MINUTE);
    await world.fold(draftEvent('job.dispatch_revoked', 1, world.clock.now));
    await world.send(5 * HOUR + 38 * MINUTE);
    await world.fold(draftEvent(DISPATCHED, 1, world.clock.now));
    await world.send(3 * MINUTE);
    await world.fold(draftEvent('job.dispatch_revoked', 1, world.clock.now));
    await world.send(3 * MINUTE);
    await world.send(HOUR);
    expect((await world.messages()).map(({ kind, state }) => [kind, state])).toEqual([
      ['dispatched', 'sent'],
      ['dispatch_revoked', 'sent'],
      ['dispatched', 'suppressed'],
    ]);
  });

  test('follows an e-mail that may have arrived before it was dropped', async () => {
    const world = await createNotifyingWorld();
    await world.recipient({ email: 'ann@example.com', kinds });
    world.answers.email = async () => ({ kind: 'unknown', reason: 'time-out' });
    await world.fold(draftEvent(DISPATCHED, 1, START));
    await world.send(CLOSED_AFTER);
    await world.fold(draftEvent('job.dispatch_revoked', 1, world.clock.now));
    world.answers.email = async () => ({ kind: 'accepted', providerId: null });
    await world.send(CLOSED_AFTER);
    await world.send(HOUR);
    expect((await world.messages()).map(({ kind, state }) => [kind, state])).toEqual([
      ['dispatched', 'suppressed'],
      ['dispatch_revoked', 'sent'],
    ]);
  });
});

describe('a message that is due while its change is undone', () => {
  const OPEN = { dateOut: null };
  const due = (time: number, from: string, to: string) =>
    draftEvent('job.due_date_changed', 1, time, { ...OPEN, formerDateDue: from, dateDue: to });

  /** A message about a change waits for the mail server when other changes are observed, a minute apart. */
  const createWaiting = async (kind: string, change: (time: number) => EventDraft) => {
    const world = await createNotifyingWorld();
    await world.recipient({ email: 'ann@example.com', kinds: [kind] });
    world.answers.email = async () => DOWN;
    await world.fold(change(START));
    await world.send(CLOSED_AFTER);
    world.answers.email = async () => ACCEPTED;
    const observe = async (...changes: ((time: number) => EventDraft)[]) => {
      for (const next of changes) {
        await world.fold(next(world.clock.now));
        await world.send(MINUTE);
      }
      await world.send(HOUR);
      return (await world.messages()).filter(({ state }) => state === 'sent').map(({ subject }) => subject);
    };
    return { ...world, observe };
  };

  test.each([
    ['the job was listed', ['job.reopened']],
    ['a dispatch was revoked', ['job.dispatched', 'job.dispatch_revoked']],
  ] as const)('is sent if the job is cancelled again in the window in which %s', async (_, undone) => {
    const cancelled = (time: number) => draftEvent('job.cancelled', 1, time, OPEN);
    const world = await createWaiting('cancelled', cancelled);
    const changes = undone.map(
      (type) => (time: number) => draftEvent(type, 1, time, type === DISPATCHED ? {} : OPEN),
    );
    expect(await world.observe(...changes, cancelled)).toEqual([expect.stringMatching(/cancel/i)]);
  });

  test('is sent if it is about a due date that is restored in the window', async () => {
    const world = await createWaiting('due_date_changed', (time) => due(time, '2026-03-09', '2026-03-12'));
    const sent = await world.observe(
      (time) => due(time, '2026-03-12', '2026-03-13'),
      (time) => due(time, '2026-03-13', '2026-03-12'),
    );
    expect(sent).toHaveLength(1);
    expect(world.emails.at(-1)?.text).toMatch(/by Thursday, March\s12/);
  });

  test('is sent if it is about a due date and a dispatch is revoked in its window', async () => {
    const world = await createWaiting('due_date_changed', (time) => due(time, '2026-03-09', '2026-03-12'));
    const sent = await world.observe(
      (time) => draftEvent(DISPATCHED, 1, time, { dateDue: '2026-03-12' }),
      (time) => draftEvent('job.dispatch_revoked', 1, time, { dateDue: '2026-03-12' }),
    );
    expect(sent).toHaveLength(1);
  });

  test('is sent if it corrects a cancellation and another one is undone in its window', async () => {
    const world = await createWaiting('cancelled', (time) => draftEvent('job.cancelled', 1, time, OPEN));
    await world.send(HOUR);
    expect(world.emails.length).toBeGreaterThan(0);
    world.answers.email = async () => DOWN;
    await world.fold(draftEvent('job.reopened', 1, world.clock.now, OPEN));
    await world.send(CLOSED_AFTER);
    world.answers.email = async () => ACCEPTED;
    const sent = await world.observe(
      (time) => draftEvent('job.cancelled', 1, time, OPEN),
      (time) => draftEvent('job.reopened', 1, time, OPEN),
    );
    expect(sent).toHaveLength(2);
  });

  test('is not sent if its change stays undone', async () => {
    const world = await createWaiting('cancelled', (time) => draftEvent('job.cancelled', 1, time, OPEN));
    expect(await world.observe((time) => draftEvent('job.reopened', 1, time, OPEN))).toEqual([]);
    expect((await world.messages()).map(({ state }) => state)).toEqual(['suppressed', 'suppressed']);
  });
});

test('for any dispatches, revocations and outages, each address gets each dispatch once, and finally knows the current one', async () => {
  const DAYS = ['2026-03-04T10:00:00', '2026-03-05T10:00:00'];
  const step = fc.record({
    job: fc.constantFrom(1, 2),
    day: fc.nat(1),
    isDown: fc.boolean(),
    afterMs: fc.constantFrom(0, MINUTE, 2 * MINUTE, CLOSED_AFTER, HOUR),
  });
  const seen = { repeated: 0, corrected: 0, runs: 0 };
  await fc.assert(
    fc.asyncProperty(fc.array(step, { minLength: 2, maxLength: 20 }), async (steps) => {
      const world = await createNotifyingWorld({ settings: { maxAgeHours: 168 } });
      await world.recipient({ name: 'Ann', email: 'ann@example.com' });
      const kinds = ['dispatched', 'dispatch_revoked'];
      await world.recipient({ name: 'Bea', email: 'bea@example.com', kinds });
      const outs = new Map<number, string | null>([1, 2].map((job) => [job, null]));
      const accepted: { id: string; outs: ReadonlyMap<number, string | null> }[] = [];
      let isDown = false;
      world.answers.email = async ({ tags }) => {
        if (isDown) return { kind: 'later', reason: 'The server is down.', everything: true };
        accepted.push({ id: tags.message, outs: new Map(outs) });
        return { kind: 'accepted', providerId: null };
      };
      for (const { job, day, ...one } of steps) {
        const dateOut = outs.get(job) === null ? (DAYS[day] ?? null) : null;
        outs.set(job, dateOut);
        const type = dateOut === null ? 'job.dispatch_revoked' : DISPATCHED;
        await world.fold(draftEvent(type, job, world.clock.now, { dateOut }));
        isDown = one.isDown;
        await world.send(one.afterMs);
      }
      isDown = false;
      for (let turn = 0; turn < 6; turn += 1) await world.send(HOUR);

      const works = new Map((await world.works()).map((work) => [work.message.id, work]));
      for (const [name, isSubscribed] of [
        ['Ann', false],
        ['Bea', true],
      ] as const) {
        for (const job of [1, 2]) {
          let known: string | null = null;
          const days = new Set<string | null>();
          for (const { id, outs: current } of accepted) {
            const { message, content } = works.get(id) ?? {};
            if (message?.to?.name !== name || !message.jobs.includes(job)) continue;
            if (content?.kind === 'dispatched') {
              const out = content.jobs.find(({ jobNumber }) => jobNumber === job)?.dateOut ?? null;
              expect(current.get(job)).toBe(out);
              expect(known).not.toBe(out);
              if (days.has(out)) seen.repeated += 1;
              known = out;
              days.add(out);
            } else {
              expect(current.get(job)).toBeNull();
              expect(known).not.toBeNull();
              seen.corrected += 1;
              known = null;
            }
          }
          const now = outs.get(job) ?? null;
          if (isSubscribed || now !== null) expect(known).toBe(now);
        }
      }
      seen.runs += 1;
    }),
    runs(60, 300),
  );
  expect(seen.corrected).toBeGreaterThan(seen.runs / 10);
  expect(seen.repeated).toBeGreaterThan(0);
}, 120_000);

describe('an SMS', () => {
  const withSms = async (settings: object = {}) => {
    const world = await createNotifyingWorld({
      settings: { sms: { enabled: true, quietHours: null, ...settings } },
    });
    await world.recipient({ mobile: '+12125550123', zone: 'America/New_York' });
    return world;
  };

  test('with an unknown outcome is recorded as unknown, and never sent again', async () => {
    const world = await withSms();
    await world.fold(draftEvent(DISPATCHED, 1, START));
    world.answers.sms = () => new Promise(() => undefined);
    expect(await world.send(CLOSED_AFTER, { sendTimeoutMs: 5 })).toMatchObject({ unknown: 1 });
    expect(world.lines).toMatchObject([{ outcome: 'unknown', reason: 'unknown_outcome', attempts: 1 }]);
    await world.send(HOUR);
    expect(world.sms).toHaveLength(1);
    // It may have been sent, so it stays counted.
    expect((await readSmsUse(world.table, ACME, '2026-03')).segments).toBe(1);
  });

  test('whose sender crashed is unknown after its claim expires', async () => {
    const world = await withSms();
    await world.fold(draftEvent(DISPATCHED, 1, START));
    const crash = new TableError('write', 'crash');
    let down = false;
    const dead: Table = {
      ...world.table,
      get: async (key) => (down ? Promise.reject(crash) : world.table.get(key)),
    };
    world.answers.sms = async () => {
      down = true;
      return { kind: 'accepted', providerId: 'p' };
    };
    await expect(world.send(CLOSED_AFTER, { table: dead })).rejects.toBe(crash);
    expect(await world.send(170_000)).toMatchObject({ unknown: 0 });
    expect(await world.send(11_000)).toMatchObject({ unknown: 1 });
    expect(world.sms).toHaveLength(1);
  });

  test('is counted before it is sent, not sent above the monthly limit, and subtracted after a certain failure', async () => {
    const world = await withSms({ monthlySegments: 2 });
    const used = async () => (await readSmsUse(world.table, ACME, '2026-03')).segments;
    await world.fold(
      ...[1, 2, 3, 4].map((job) => draftEvent(DISPATCHED, job, START, { orderGroup: `G${job}` })),
    );
    let counted: number | undefined;
    world.answers.sms = async () => {
      counted ??= await used();
      return world.sms.length === 1
        ? { kind: 'rejected', reason: 'not a mobile number' }
        : { kind: 'accepted', providerId: 'p' };
    };
    expect(await world.send(CLOSED_AFTER, { concurrency: 1 })).toMatchObject({
      sent: 2,
      failed: 1,
      suppressed: 1,
    });
    expect(counted).toBe(1);
    expect(await used()).toBe(2);
    expect((await world.messages()).filter(({ reason }) => reason === 'quota')).toHaveLength(1);
    // The next month has its own limit.
    world.clock.now = Date.parse('2026-04-01T12:00:00Z');
    await world.fold(
      draftEvent(DISPATCHED, 9, world.clock.now, { orderGroup: 'G9', dateOut: '2026-04-01T10:00:00' }),
    );
    expect(await world.send(CLOSED_AFTER)).toMatchObject({ sent: 1 });
  });

  test('to a number that has opted out is suppressed, as are all later ones, and no failure', async () => {
    const world = await withSms();
    await world.fold(...[1, 2].map((job) => draftEvent(DISPATCHED, job, START, { orderGroup: `G${job}` })));
    world.answers.sms = async () => ({
      kind: 'rejected',
      reason: 'The number has opted out of SMS.',
      address: 'opted_out',
    });
    expect(await world.send(CLOSED_AFTER)).toMatchObject({ failed: 0, suppressed: 2 });
    expect(world.sms).toHaveLength(1);
    const optedOut = { state: 'suppressed', reason: 'opted_out' };
    expect(await world.messages()).toMatchObject([optedOut, optedOut]);
  });

  test('that was not sent does not count for the limit of the region, however often it is tried', async () => {
    const world = await withSms();
    await world.fold(draftEvent(DISPATCHED, 1, START));
    const limited = { regionMonthlySegments: 2 };
    world.answers.sms = async () => ({ kind: 'later', reason: 'no access', everything: true });
    await world.send(CLOSED_AFTER, limited);
    for (let attempt = 0; attempt < 3; attempt += 1) await world.send(2 * 60_000, limited);
    expect(world.sms).toHaveLength(4);
    world.answers.sms = async () => ({ kind: 'accepted', providerId: 'p' });
    expect(await world.send(2 * 60_000, limited)).toMatchObject({ sent: 1, suppressed: 0 });
    const region = { region: ACME.region, account: '_cell' };
    expect((await readSmsUse(world.table, region, '2026-03')).segments).toBe(1);
  });

  test('is not sent above the monthly limit of the region', async () => {
    const world = await withSms({ monthlySegments: 1_000 });
    await world.fold(
      ...[1, 2, 3].map((job) => draftEvent(DISPATCHED, job, START, { orderGroup: `G${job}` })),
    );
    const limited = { concurrency: 1, regionMonthlySegments: 2 };
    expect(await world.send(CLOSED_AFTER, limited)).toMatchObject({ sent: 2, suppressed: 1 });
    expect((await world.messages()).filter(({ reason }) => reason === 'quota')).toHaveLength(1);
    const region = { region: ACME.region, account: '_cell' };
    expect((await readSmsUse(world.table, region, '2026-03')).segments).toBe(2);
    expect((await readSmsUse(world.table, ACME, '2026-03')).segments).toBe(2);
  });

  test("waits for the end of quiet hours in the recipient's time zone", async () => {
    const world = await withSms({ quietHours: { from: '21:00', to: '08:00' } });
    // 23:30 in New York.
    world.clock.now = Date.parse('2026-03-05T04:30:00Z');
    await world.fold(draftEvent(DISPATCHED, 1, world.clock.now));
    expect(await world.send(CLOSED_AFTER)).toMatchObject({ sent: 0, later: 1 });
    const [waiting] = await world.messages();
    expect(new Date(waiting?.dueAt ?? 0).toISOString()).toBe('2026-03-05T13:00:00.000Z');
    world.clock.now = Date.parse('2026-03-05T12:59:59Z');
    expect(await world.send()).toMatchObject({ sent: 0 });
    expect(await world.send(1000)).toMatchObject({ sent: 1 });
  });

  test('that becomes too old during quiet hours is sent until an hour after them', async () => {
    const quietHours = { from: '21:00', to: '08:00' };
    const settings = { maxAgeHours: 6, sms: { enabled: true, quietHours } };
    const world = await createNotifyingWorld({ settings });
    await world.recipient({ mobile: '+12125550123', zone: 'America/New_York' });
    // 23:30 in New York.
    const changedAt = Date.parse('2026-03-05T04:30:00Z');
    world.clock.now = changedAt;
    await world.fold(draftEvent(DISPATCHED, 1, changedAt, { dateOut: '2026-03-04T23:30:00' }));
    expect(await world.send(CLOSED_AFTER)).toMatchObject({ sent: 0, later: 1 });
    world.answers.sms = async () => ({ kind: 'later', reason: 'busy', everything: false });
    world.clock.now = Date.parse('2026-03-05T13:00:00Z');
    expect(await world.send()).toMatchObject({ later: 1 });
    world.clock.now = Date.parse('2026-03-05T14:00:00Z');
    expect(await world.send()).toMatchObject({ later: 1 });
    expect(await world.send(1000)).toMatchObject({ failed: 1 });
    expect(world.sms).toHaveLength(2);
    expect(await world.messages()).toMatchObject([{ state: 'failed', reason: 'attempts_exhausted' }]);
  });

  test('waits for the end of quiet hours in a time zone that the recipient got while it waited', async () => {
    const world = await withSms({ quietHours: { from: '21:00', to: '08:00' } });
    const [person] = (await listRecipients(world.table, ACME)).recipients;
    // 23:30 in New York.
    world.clock.now = Date.parse('2026-03-05T04:30:00Z');
    await world.fold(draftEvent(DISPATCHED, 1, world.clock.now));
    await world.send(CLOSED_AFTER);
    await updateRecipient(world.people, ACME, person?.id ?? '', { zone: 'America/Los_Angeles' });
    // 8:00 in New York, 5:00 in Los Angeles.
    world.clock.now = Date.parse('2026-03-05T13:00:00Z');
    expect(await world.send()).toMatchObject({ sent: 0, later: 1 });
    world.clock.now = Date.parse('2026-03-05T16:00:00Z');
    expect(await world.send()).toMatchObject({ sent: 1 });
  });
});

test('a run of a process that stops begins no further message, and completes those in progress', async () => {
  const world = await createNotifyingWorld();
  await world.recipient({ email: 'ann@example.com', mobile: '+12125550123' });
  await world.fold(
    ...Array.from({ length: 30 }, (_, job) =>
      draftEvent(DISPATCHED, job + 1, START, { orderGroup: `G${job}` }),
    ),
  );
  const stopping = new AbortController();
  const accept = async (): Promise<SendOutcome> => {
    if (world.emails.length >= 3 && world.sms.length >= 3) stopping.abort();
    await setImmediate();
    return ACCEPTED;
  };
  Object.assign(world.answers, { email: accept, sms: accept });
  const report = await world.send(CLOSED_AFTER, { concurrency: 2, stopping: stopping.signal });
  expect(report).toMatchObject({ more: true, unknown: 0, sent: world.emails.length + world.sms.length });
  expect(report.sent).toBeLessThan(20);
  // The next process sends the others at once.
  expect(await world.send()).toMatchObject({ sent: 60 - report.sent, repeats: 0, unknown: 0, more: false });
});

test('quiet hours end at the first minute outside them, also on days of clock changes', () => {
  const time = fc
    .record({ hour: fc.nat(23), minute: fc.constantFrom(0, 15, 30, 59) })
    .map(({ hour, minute }) => `${String(hour).padStart(2, '0')}:${String(minute).padStart(2, '0')}`);
  // The days around clock changes, of an hour and of half an hour.
  const zones = [
    ['America/New_York', '2026-03-08T07:00:00Z'],
    ['America/New_York', '2026-11-01T06:00:00Z'],
    ['Europe/Berlin', '2026-03-29T01:00:00Z'],
    ['Australia/Lord_Howe', '2026-10-03T15:30:00Z'],
    ['Australia/Lord_Howe', '2026-04-04T15:00:00Z'],
    ['Pacific/Auckland', '2026-06-01T12:00:00Z'],
    ['Asia/Kolkata', '2026-06-01T12:00:00Z'],
  ] as const;
  fc.assert(
    fc.property(
      time,
      time,
      fc.constantFrom(...zones),
      fc.integer({ min: -1800, max: 1800 }),
      (from, to, [zone, around], minutes) => {
        const clockFormat = new Intl.DateTimeFormat('en', {
          hour: '2-digit',
          minute: '2-digit',
          hourCycle: 'h23',
          timeZone: zone,
        });
        const isQuiet = (at: number): boolean => {
          const clock = clockFormat.format(at);
          return from <= to ? clock >= from && clock < to : clock >= from || clock < to;
        };
        const now = Date.parse(around) + minutes * MINUTE + 7_000;
        let expected = now;
        while (isQuiet(expected)) expected = Math.floor(expected / MINUTE + 1) * MINUTE;
        expect(quietUntil({ from, to }, zone, now)).toBe(expected);
      },
    ),
    runs(20, 150),
  );
  expect(quietUntil(null, 'UTC', 5)).toBe(5);
});

test('a certain result overrides `unknown`, which another process recorded after the claim expired', async () => {
  const world = await createNotifyingWorld();
  await world.recipient({ email: 'ann@example.com', mobile: '+12125550123' });
  await world.fold(draftEvent(DISPATCHED, 1, START));
  let nested = false;
  /** Accepted after another process was rejected. */
  const late = async (): Promise<SendOutcome> => {
    if (nested) return { kind: 'rejected', reason: 'no' };
    nested = true;
    await world.send(181_000);
    nested = false;
    return { kind: 'accepted', providerId: 'late' };
  };
  world.answers.email = late;
  await world.send(CLOSED_AFTER, { sms: undefined, report: undefined });
  expect(await world.messages()).toMatchObject([
    { channel: 'email', state: 'sent', reason: null, attempts: 2, repeats: 0, providerId: 'late' },
    { channel: 'sms' },
  ]);
  await world.fold(draftEvent(DISPATCHED, 2, world.clock.now, { orderGroup: 'G2' }));
  world.answers.sms = late;
  world.answers.email = async () => ({ kind: 'accepted', providerId: null });
  await world.send(CLOSED_AFTER);
  const sms = (await world.messages()).find(
    ({ channel, orderGroup }) => channel === 'sms' && orderGroup === 'G2',
  );
  expect(sms).toMatchObject({ state: 'sent', reason: null, attempts: 1, providerId: 'late' });
  expect(await world.works()).toHaveLength(4);
  expect((await world.works()).map(({ message }) => message).sort(byId)).toEqual(
    (await world.messages()).sort(byId),
  );
});

const byId = (a: { readonly id: string }, b: { readonly id: string }): number => (a.id < b.id ? -1 : 1);

describe('failing transports', () => {
  test('an unavailable server is called once per run, and all due messages are sent once it is available', async () => {
    const world = await createNotifyingWorld();
    await world.recipient({ email: 'ann@example.com' });
    await world.fold(
      ...Array.from({ length: 120 }, (_, at) =>
        draftEvent(DISPATCHED, at + 1, START, { orderGroup: `G${at}` }),
      ),
    );
    world.answers.email = async () => ({ kind: 'later', reason: 'down', everything: true });
    expect(await world.send(CLOSED_AFTER)).toMatchObject({ later: 1, held: ['email'] });
    // Unsent messages keep their claims.
    expect((await world.works()).filter(({ revision }) => revision > 1)).toHaveLength(1);
    expect(await world.send(1000)).toMatchObject({ later: 1, held: ['email'] });
    expect(world.emails).toHaveLength(2);
    // It fails midway: only messages in progress are sent.
    let left = 10;
    world.answers.email = async () => {
      left -= 1;
      const isUp = left >= 0;
      await setImmediate();
      return isUp
        ? { kind: 'accepted', providerId: null }
        : { kind: 'later', reason: 'down', everything: true };
    };
    const broken = await world.send(1000, { concurrency: 4 });
    expect(broken).toMatchObject({ sent: 10, held: ['email'] });
    expect(broken.later).toBeLessThanOrEqual(4);
    expect(
      (await world.messages()).every(({ attempts, state }) => attempts <= 1 && state !== 'sending'),
    ).toBe(true);
    left = 1000;
    expect(await world.send(2 * HOUR)).toMatchObject({ sent: 110, held: [] });
    expect((await world.messages()).every(({ repeats }) => repeats === 0)).toBe(true);
  });

  test('no more mails are sent at once than the server has connections: their wait would count as their time', async () => {
    const world = await createNotifyingWorld();
    await world.recipient({ email: 'ann@example.com' });
    await world.fold(
      ...Array.from({ length: 20 }, (_, at) =>
        draftEvent(DISPATCHED, at + 1, START, { orderGroup: `G${at}` }),
      ),
    );
    let [current, most] = [0, 0];
    const send = async (): Promise<SendOutcome> => {
      current += 1;
      most = Math.max(most, current);
      await setImmediate();
      current -= 1;
      return ACCEPTED;
    };
    const smtp = createSmtpTransport({ from: 'shop@mail.example', host: 'mail.example', port: 25 });
    expect(await world.send(CLOSED_AFTER, { email: { ...smtp, send } })).toMatchObject({ sent: 20 });
    expect(most).toBe(4);
  });

  test('a server that does not respond is skipped after three mails, until the next run', async () => {
    const world = await createNotifyingWorld();
    await world.recipient({ email: 'ann@example.com' });
    await world.fold(
      ...Array.from({ length: 9 }, (_, at) =>
        draftEvent(DISPATCHED, at + 1, START, { orderGroup: `G${at}` }),
      ),
    );
    world.answers.email = () => new Promise(() => undefined);
    expect(await world.send(CLOSED_AFTER, { sendTimeoutMs: 2 })).toMatchObject({ later: 3, held: ['email'] });
    expect(world.emails).toHaveLength(3);
  });

  test('a rejected address delays no other message, and gets no more messages', async () => {
    const world = await createNotifyingWorld();
    await world.recipient({ email: 'gone@example.com' });
    await world.recipient({ email: 'ann@example.com' });
    await world.fold(
      ...[1, 2, 3].map((job) => draftEvent(DISPATCHED, job, START, { orderGroup: `G${job}` })),
    );
    world.answers.email = async ({ to }) =>
      to.address.startsWith('gone')
        ? { kind: 'rejected', reason: '550 <gone@example.com>: no such user', address: 'bounced' }
        : { kind: 'accepted', providerId: null };
    expect(await world.send(CLOSED_AFTER, { concurrency: 1 })).toMatchObject({
      sent: 3,
      failed: 1,
      suppressed: 2,
    });
    expect(world.emails.filter(({ to }) => to.address.startsWith('gone'))).toHaveLength(1);
    const gone = (await world.messages()).filter(({ to }) => to?.address.startsWith('gone'));
    expect(gone.map(({ state, reason }) => `${state} ${reason}`).sort()).toEqual([
      'failed rejected',
      'suppressed bounced',
      'suppressed bounced',
    ]);
    expect(gone.find(({ state }) => state === 'failed')?.detail).toBe('550 <…>: no such user');
  });

  test('a change after a message was created prevents sending, and the history has the reason', async () => {
    const world = await createNotifyingWorld();
    const people = ['ann', 'bob', 'cy', 'dee'];
    for (const id of people) await world.recipient({ id, email: `${id}@example.com` });
    await world.recipient({ id: 'dan', email: 'DEE@example.com' });
    await world.recipient({ id: 'eve', email: 'eve@example.com', jobNumber: 2 });
    await world.fold(draftEvent(DISPATCHED, 1, START), draftEvent(DISPATCHED, 2, START));
    world.answers.email = async () => ({ kind: 'later', reason: 'busy', everything: false });
    await world.send(CLOSED_AFTER);
    await suppress(world.people, ACME, { channel: 'email', address: 'ann@example.com' }, 'unsubscribed');
    await deleteRecipient(world.people, ACME, 'bob');
    await updateRecipient(world.people, ACME, 'cy', { paused: true });
    // Another recipient has the same address.
    await deleteRecipient(world.people, ACME, 'dee');
    await world.fold(draftEvent('job.dispatch_revoked', 2, world.clock.now));
    world.answers.email = async () => ({ kind: 'accepted', providerId: null });
    await world.send(HOUR);
    const became = new Map(
      (await world.messages())
        .filter(({ kind }) => kind === 'dispatched')
        .map(({ to, state, reason, jobs }) => [
          to?.address.toLowerCase().split('@')[0],
          [state, reason, jobs],
        ]),
    );
    expect(Object.fromEntries(became)).toEqual({
      ann: ['suppressed', 'unsubscribed', [1, 2]],
      bob: ['suppressed', 'disabled', [1, 2]],
      cy: ['suppressed', 'disabled', [1, 2]],
      dee: ['sent', null, [1]],
      eve: ['suppressed', 'revoked', [2]],
    });
  });

  test('a message that waits contains only the jobs that its recipients still get messages about', async () => {
    const world = await createNotifyingWorld();
    const place = { orderGroup: null, orderNumber: null, jobNumber: null };
    await world.recipient({ id: 'ann', email: 'ann@example.com', orderGroup: 'SPRING' });
    await world.recipient({ id: 'bob', email: 'bob@example.com' });
    await world.recipient({ id: 'cy', email: 'cy@example.com', orderNumber: 'PO-1' });
    await world.fold(draftEvent(DISPATCHED, 1, START), draftEvent(DISPATCHED, 2, START));
    world.answers.email = async () => ({ kind: 'later', reason: 'busy', everything: false });
    await world.send(CLOSED_AFTER);
    // Ann was entered for the order of another customer.
    await updateRecipient(world.people, ACME, 'ann', { ...place, orderGroup: 'AUTUMN' });
    await updateRecipient(world.people, ACME, 'bob', { ...place, jobNumber: 2 });
    world.answers.email = async () => ({ kind: 'accepted', providerId: null });
    world.emails.length = 0;
    await world.send(HOUR);
    expect(world.emails.map(({ to }) => to.address).sort()).toEqual(['bob@example.com', 'cy@example.com']);
    const messages = await world.messages();
    expect(messages.map(({ to, state, reason, jobs }) => [to?.recipient, state, reason, jobs])).toEqual(
      expect.arrayContaining([
        ['ann', 'suppressed', 'no_recipient', [1, 2]],
        ['bob', 'sent', null, [2]],
        ['cy', 'sent', null, [1]],
      ]),
    );
  });

  test('a message that waits is not sent if notifications were disabled meanwhile, even if they are enabled again', async () => {
    const world = await createNotifyingWorld();
    await world.recipient({ email: 'ann@example.com' });
    await world.fold(draftEvent(DISPATCHED, 1, START));
    world.answers.email = async () => ({ kind: 'later', reason: 'busy', everything: false });
    await world.send(CLOSED_AFTER);
    await world.settings({ enabled: false });
    world.clock.now += 1000;
    await world.settings({ enabled: true });
    await world.fold(draftEvent(DISPATCHED, 2, world.clock.now, { orderGroup: 'G2' }));
    world.answers.email = async () => ({ kind: 'accepted', providerId: null });
    world.emails.length = 0;
    await world.send(HOUR);
    expect(world.emails.map(({ tags }) => tags.message)).toHaveLength(1);
    expect((await world.messages()).map(({ jobs, state, reason }) => [jobs, state, reason])).toEqual([
      [[1], 'suppressed', 'disabled'],
      [[2], 'sent', null],
    ]);
  });

  test('messages that are too old, without recipients or without channels are not sent', async () => {
    const world = await createNotifyingWorld();
    const { email: _, ...mute } = world.deps;
    await world.recipient({ id: 'ann', email: 'ann@example.com', orderGroup: 'G1' });
    await world.fold(
      draftEvent(DISPATCHED, 1, START, { orderGroup: 'G1' }),
      draftEvent(DISPATCHED, 2, START, { orderGroup: 'G2' }),
    );
    world.clock.now += CLOSED_AFTER;
    await sendDue(mute, 'us', world.clock.now + HOUR);
    const nobody = { orderGroup: 'G2', to: null, channel: null, state: 'suppressed', reason: 'no_recipient' };
    expect(await world.messages()).toEqual(
      expect.arrayContaining([
        expect.objectContaining(nobody),
        expect.objectContaining({ orderGroup: 'G1', state: 'failed', reason: 'no_channel' }),
      ]),
    );
    await world.fold(draftEvent(DISPATCHED, 3, world.clock.now, { orderGroup: 'G1' }));
    world.clock.now += CLOSED_AFTER;
    await createDueMessages(world.deps, 'us', world.clock.now + HOUR);
    await world.send(25 * HOUR);
    expect(world.emails).toEqual([]);
    expect((await world.messages()).map(({ reason }) => reason)).toContain('too_old');
  });

  test('a failing template prevents only its own messages', async () => {
    const world = await createNotifyingWorld();
    await world.recipient({ email: 'ann@example.com' });
    await world.recipient({ email: 'uwe@example.com', locale: 'de' });
    const template = { subject: '{% if %}', html: '{{ nothing.there }}' };
    const key = keys.template(ACME, 'dispatched', 'email', 'de');
    await world.table.write({ put: { ...key, template: JSON.stringify(template), changedAt: START } });
    await world.fold(draftEvent(DISPATCHED, 1, START));
    expect(await world.send(CLOSED_AFTER)).toMatchObject({ sent: 1, failed: 1 });
    const failed = (await world.messages()).find(({ state }) => state === 'failed');
    expect(failed).toMatchObject({ reason: 'template', to: { locale: 'de' } });
  });

  test('a message whose rendering fails for a reason other than its template is sent by a later run', async () => {
    const world = await createNotifyingWorld();
    await world.recipient({ email: 'ann@example.com' });
    await world.fold(draftEvent(DISPATCHED, 1, START));
    const fault = vi
      .spyOn(messageRenderer, 'email')
      .mockRejectedValue(new Error('No worker can be started.'));
    onTestFinished(() => fault.mockRestore());
    expect(await world.send(CLOSED_AFTER)).toMatchObject({ sent: 0, failed: 0 });
    expect(world.lines).toMatchObject([{ outcome: 'fault', detail: 'Error' }]);
    fault.mockRestore();
    expect(await world.send(MINUTE)).toMatchObject({ sent: 1 });
  });

  test('a dry run sends nothing, and records the messages and recipients', async () => {
    const world = await createNotifyingWorld({ settings: { dryRun: true } });
    await world.recipient({ email: 'ann@example.com', mobile: '+12125550123' });
    await world.fold(draftEvent(DISPATCHED, 1, START));
    expect(await world.send(CLOSED_AFTER)).toMatchObject({ dryRun: 2, sent: 0 });
    expect([...world.emails, ...world.sms]).toEqual([]);
    expect(await world.messages()).toMatchObject([
      { state: 'dry_run', to: { address: 'ann@example.com' }, text: expect.stringContaining('SPRING') },
      {
        state: 'dry_run',
        to: { address: '+12125550123' },
        text: expect.stringContaining('SPRING'),
        segments: 1,
      },
    ]);
    expect((await readSmsUse(world.table, ACME, '2026-03')).segments).toBe(0);
  });

  test('no log line contains an address, for any answer of a server', async () => {
    const world = await createNotifyingWorld();
    await world.recipient({ email: 'ann@example.com', mobile: '+12125550123' });
    await world.fold(
      draftEvent(DISPATCHED, 1, START),
      draftEvent(DISPATCHED, 2, START, { orderGroup: 'G2' }),
    );
    world.answers.email = async () => ({
      kind: 'later',
      reason: 'RCPT TO:<ANN@example.com> busy\r\nann@other.example',
      everything: false,
    });
    world.answers.sms = async () => {
      throw new Error('+12125550123');
    };
    await world.send(CLOSED_AFTER);
    const text = JSON.stringify(world.lines);
    expect(world.lines).toHaveLength(4);
    expect(text).not.toMatch(/ann@|2125550123/i);
  });
});

describe('message history', () => {
  test('unavailability delays and repeats no message, and is repaired later', async () => {
    const world = await createNotifyingWorld();
    await world.recipient({ email: 'ann@example.com' });
    await world.fold(...[1, 2].map((job) => draftEvent(DISPATCHED, job, START, { orderGroup: `G${job}` })));
    world.clock.now += CLOSED_AFTER;
    await createDueMessages(world.deps, 'us', world.clock.now + HOUR);
    const fails = async (): Promise<never> => Promise.reject(new TableError('write', 'out of order'));
    const history: Table = { ...world.history, write: fails, transact: fails, putMany: fails };
    expect(await world.send(0, { history })).toMatchObject({ sent: 2 });
    expect((await world.messages()).map(({ state }) => state)).toEqual(['waiting', 'waiting']);
    expect(await world.journal()).not.toEqual([]);
    expect(world.lines.filter(({ outcome }) => outcome === 'fault')).not.toEqual([]);
    expect(await oldestUnsent(world.table, 'us', world.clock.now + 61_000)).toBeDefined();
    expect(await world.send(61_000)).toMatchObject({ sent: 0 });
    expect((await world.messages()).map(({ state, repeats }) => [state, repeats])).toEqual([
      ['sent', 0],
      ['sent', 0],
    ]);
    expect(await world.journal()).toEqual([]);
    expect(world.emails).toHaveLength(2);
  });

  test('is listed newest first, by account, job, recipient and state, by page', async () => {
    const world = await createNotifyingWorld();
    const ann = await world.recipient({ email: 'ann@example.com' });
    await world.recipient({ email: 'bob@example.com', orderGroup: 'G3' });
    for (let group = 1; group <= 5; group += 1) {
      await world.fold(draftEvent(DISPATCHED, group, START + group, { orderGroup: `G${group}` }));
    }
    world.answers.email = async ({ to, subject }) =>
      to.address.startsWith('bob') || subject.includes('G5')
        ? { kind: 'rejected', reason: 'no' }
        : { kind: 'accepted', providerId: null };
    await world.send(CLOSED_AFTER + MINUTE);
    const getGroups = async (query: MessageQuery) => {
      const groups: string[] = [];
      let after: string | undefined;
      for (;;) {
        const page = await listMessages(world.history, ACME, {
          ...query,
          ...(after === undefined ? {} : { after }),
        });
        expect(page.messages.length).toBeLessThanOrEqual(query.limit ?? 50);
        groups.push(...page.messages.map(({ orderGroup }) => orderGroup ?? ''));
        if (page.next === undefined) return groups;
        after = page.next;
      }
    };
    for (const limit of [1, 2, 3, 50]) {
      expect(await getGroups({ limit })).toEqual(['G5', 'G4', 'G3', 'G3', 'G2', 'G1']);
      expect(await getGroups({ limit, recipient: ann.id })).toEqual(['G5', 'G4', 'G3', 'G2', 'G1']);
      expect(await getGroups({ limit, job: 3 })).toEqual(['G3', 'G3']);
      expect(await getGroups({ limit, state: 'failed' })).toEqual(['G5', 'G3']);
      expect(await getGroups({ limit, job: 4, state: 'failed' })).toEqual([]);
    }
  });
});

/** Answer of the server to a message. */
const ANSWERS = [
  'ok',
  'ok',
  'ok',
  'ok',
  'later',
  'down',
  'rejected',
  'bounced',
  'unknown',
  'throw',
  'hang',
] as const;
type Answer = (typeof ANSWERS)[number];
/** Another action during sending. */
const MEANWHILE = ['nothing', 'nothing', 'nothing', 'steal', 'feedback'] as const;

const round = () =>
  fc.record({
    afterMs: fc.constantFrom(0, MINUTE, 6 * MINUTE, HOUR, 5 * HOUR),
    /** The table fails from this write on; `written` tells whether that one succeeds. */
    failsAt: fc.option(fc.integer({ min: 1, max: 30 })),
    lands: fc.boolean(),
    history: fc.constantFrom('well', 'well', 'well', 'fails'),
    answers: fc.array(fc.constantFrom(...ANSWERS), { minLength: 1, maxLength: 12 }),
    meanwhile: fc.array(fc.constantFrom(...MEANWHILE), { minLength: 1, maxLength: 12 }),
    senders: fc.constantFrom(1, 1, 2),
    before: fc.constantFrom(
      'nothing',
      'nothing',
      'unsubscribe',
      'leave',
      'track',
      'revoke',
      'turn off',
      'turn on',
    ),
  });

/** A delivery of a message. */
interface Handed {
  readonly message: string;
  readonly channel: Channel;
  /** The Message-ID, or the text of an SMS. */
  readonly known: string;
  readonly answer: Answer;
  readonly at: number;
}

test('for any answers and crashes, each message is sent as often as recorded, each SMS at most once, in order, and the history has the outcome', async () => {
  const seen = { handed: 0, sent: 0, repeats: 0, unknown: 0, crashes: 0, steals: 0, feedback: 0, runs: 0 };
  await fc.assert(
    fc.asyncProperty(
      fc.array(fc.record({ group: fc.integer({ min: 1, max: 3 }), tracked: fc.boolean() }), {
        minLength: 1,
        maxLength: 7,
      }),
      fc.array(round(), { minLength: 1, maxLength: 7 }),
      fc.record({
        maxAgeHours: fc.constantFrom(3, 168, 168),
        quiet: fc.boolean(),
        segments: fc.constantFrom(2, 1000),
      }),
      fc.array(fc.nat(5), { minLength: 1, maxLength: 20 }),
      async (jobs, rounds, { maxAgeHours, quiet, segments: limit }, paces) => {
        const faults = { left: Number.POSITIVE_INFINITY, lands: false, history: false };
        let calls = 0;
        const slowly = async <T>(call: () => Promise<T>): Promise<T> => {
          for (let turns = paces[calls++ % paces.length] ?? 0; turns > 0; turns -= 1) await setImmediate();
          return call();
        };
        const faulty = async <T>(write: () => Promise<T>): Promise<T> => {
          faults.left -= 1;
          if (faults.left === 0) seen.crashes += 1;
          if (faults.left === 0 && faults.lands) await write();
          if (faults.left <= 0) throw new TableError('write', 'crash');
          return write();
        };
        const world = await createNotifyingWorld({
          settings: {
            maxAgeHours,
            sms: {
              enabled: true,
              monthlySegments: limit,
              quietHours: quiet ? { from: '21:00', to: '08:00' } : null,
            },
          },
        });
        const { clock } = world;
        const flaky = (table: Table, fails: () => boolean): Table => ({
          ...table,
          get: (key) => slowly(() => table.get(key)),
          getMany: (all) => slowly(() => table.getMany(all)),
          query: (query) => slowly(() => table.query(query)),
          write: (write) => slowly(() => (fails() ? faulty(() => table.write(write)) : table.write(write))),
          transact: (writes, token) =>
            slowly(() =>
              fails() ? faulty(() => table.transact(writes, token)) : table.transact(writes, token),
            ),
          putMany: (items) =>
            slowly(() => (fails() ? faulty(() => table.putMany(items)) : table.putMany(items))),
        });
        const historyFails = async (): Promise<never> => {
          throw new TableError('write', 'the history is out of order');
        };
        const stateTable = flaky(world.table, () => true);
        const historyTable: Table = {
          ...flaky(world.history, () => true),
          transact: (writes, token) =>
            faults.history ? historyFails() : faulty(() => world.history.transact(writes, token)),
          putMany: (items) => (faults.history ? historyFails() : faulty(() => world.history.putMany(items))),
        };

        await world.recipient({
          id: 'ann',
          email: 'ann@example.com',
          mobile: '+12125550123',
          zone: 'America/New_York',
        });
        await world.recipient({ id: 'bob', email: 'bob@example.com', orderGroup: 'G1' });
        await world.recipient({ id: 'leo', email: 'leo@example.com', mobile: '+12125550199' });
        const stays = ['ann@example.com', '+12125550123'];
        const getGroup = (at: number) => `G${jobs[at]?.group}`;
        await world.fold(
          ...jobs.map(({ tracked }, at) =>
            draftEvent(DISPATCHED, at + 1, START, {
              ...{ orderGroup: getGroup(at), orderNumber: `PO-${getGroup(at)}` },
              tracking: tracked ? [parcel(`T${at}`)] : [],
            }),
          ),
        );
        clock.now += CLOSED_AFTER;

        const handed: Handed[] = [];
        const noted = new Set<string>();
        const taken = new Map<string, number>();
        const shut = new Set<string>();
        /** Another process may be about to write there. */
        const shutBy = new Set<string>();
        const settleShut = async (): Promise<void> => {
          for (const address of shutBy) {
            const channel = address.includes('@') ? 'email' : 'sms';
            if (await findSuppression(world.table, ACME, channel, address)) shut.add(address);
          }
        };
        let plan:
          | { answers: readonly Answer[]; meanwhile: readonly (typeof MEANWHILE)[number][] }
          | undefined;
        let asked = 0;
        let depth = 0;
        const stealing = new Set<Promise<unknown>>();
        const problems: string[] = [];
        // The text of an SMS identifies the message.
        for (const kind of ['dispatched', 'tracking'] as const) {
          const place = { kind, channel: 'sms', locale: 'en-US' } as const;
          const text = `{{ order }} ${kind} {{ tracking }}`;
          expect(await saveTemplate(world.table, ACME, place, { text }, START)).toMatchObject({
            kind: 'saved',
          });
        }
        const isText = (text: string, { content: { kind, orderGroup, jobs } }: Work): boolean =>
          text.startsWith(`${orderGroup} ${kind}`) &&
          (kind === 'dispatched' ||
            jobs.some((job) => job.tracking.some(({ number }) => text.includes(`/${number}`))));
        const createWork = async (channel: Channel, address: string, known: string): Promise<Work> => {
          const works = (await world.works()).filter(
            ({ message }) => message.to?.address === address && message.channel === channel,
          );
          const found = works.filter((work) =>
            channel === 'email'
              ? known.startsWith(work.message.id.split('-')[1] ?? '?')
              : work.message.state === 'sending' && isText(known, work),
          );
          const [one] = found;
          if (!one || found.length > 1) {
            problems.push(`It is ${found.length} messages: ${known}`);
            throw new Error('unknown message');
          }
          return one;
        };
        const hand = async (channel: Channel, address: string, known: string): Promise<SendOutcome> => {
          const work = await createWork(channel, address, known);
          const { id } = work.message;
          const answer = plan?.answers[asked % plan.answers.length] ?? 'ok';
          const meanwhile = plan?.meanwhile[asked % plan.meanwhile.length] ?? 'nothing';
          asked += 1;
          handed.push({ message: id, channel, known, answer, at: clock.now });
          const maybe = ['ok', 'unknown', 'throw', 'hang'].includes(answer);
          if (maybe) taken.set(id, (taken.get(id) ?? 0) + 1);
          // Earlier messages to the same address are settled.
          for (const before of work.before) {
            const item = await world.table.get(keys.message(ACME, before));
            if (item && !isFinal(toWork(item).message.state)) problems.push(`${id} overtook ${before}`);
          }
          if (shut.has(address)) problems.push(`${id} went to an address that was shut`);
          if (channel === 'sms' && quiet) {
            const hour = Number(
              new Intl.DateTimeFormat('en', {
                hour: 'numeric',
                hourCycle: 'h23',
                timeZone: 'America/New_York',
              }).format(clock.now),
            );
            if (address === '+12125550123' && (hour >= 21 || hour < 8))
              problems.push(`${id} went at ${hour}`);
          }
          if (meanwhile === 'steal' && depth === 0) {
            seen.steals += 1;
            depth += 1;
            clock.now += 181_000;
            const run = sendDue({ ...world.deps, sendTimeoutMs: 5 }, 'us', clock.now + HOUR);
            stealing.add(run);
            await run;
            depth -= 1;
          }
          if (meanwhile === 'feedback' && answer === 'ok') {
            const message = await recordFeedback(world.deps, { ...ACME, message: id }, 'bounced', 'x');
            if (message) {
              seen.feedback += 1;
              noted.add(id);
            }
          }
          switch (answer) {
            case 'ok':
              return { kind: 'accepted', providerId: 'p' };
            case 'later':
              return { kind: 'later', reason: `busy for ${address}`, everything: false };
            case 'down':
              return { kind: 'later', reason: 'down', everything: true };
            case 'rejected':
              return { kind: 'rejected', reason: `no ${address}` };
            case 'bounced':
              shutBy.add(address);
              return {
                kind: 'rejected',
                reason: `no ${address}`,
                address: channel === 'sms' ? 'opted_out' : 'bounced',
              };
            case 'unknown':
              return { kind: 'unknown', reason: 'cut' };
            case 'throw':
              throw new Error(`secret ${address}`);
            case 'hang':
              return new Promise(() => undefined);
          }
        };
        world.answers.email = (mail) => hand('email', mail.to.address, mail.messageId);
        world.answers.sms = ({ to, text }) => hand('sms', to, text);
        const deps: SendDeps = {
          ...world.deps,
          table: stateTable,
          history: historyTable,
          sendTimeoutMs: 5,
          concurrency: 3,
        };

        let tracked = 0;
        for (const one of rounds) {
          clock.now += one.afterMs;
          if (one.before === 'unsubscribe') {
            await suppress(
              world.people,
              ACME,
              { channel: 'email', address: 'leo@example.com' },
              'unsubscribed',
            );
            shut.add('leo@example.com');
          }
          if (one.before === 'leave') {
            await deleteRecipient(world.people, ACME, 'leo');
            shut.add('leo@example.com').add('+12125550199');
          }
          if (one.before === 'track') {
            tracked += 1;
            await world.fold(
              draftEvent('job.tracking_added', 1, clock.now, {
                ...{ orderGroup: getGroup(0), orderNumber: `PO-${getGroup(0)}` },
                tracking: [parcel(`N${tracked}`)],
              }),
            );
          }
          if (one.before === 'revoke') {
            await world.fold(
              draftEvent('job.dispatch_revoked', jobs.length, clock.now, {
                orderGroup: getGroup(jobs.length - 1),
              }),
            );
          }
          if (one.before === 'turn off') await world.settings({ enabled: false, maxAgeHours });
          if (one.before === 'turn on') await world.settings({ enabled: true, maxAgeHours });
          await settleShut();
          plan = one;
          asked = 0;
          Object.assign(faults, {
            left: one.failsAt ?? Number.POSITIVE_INFINITY,
            lands: one.lands,
            history: one.history === 'fails',
          });
          await Promise.all(
            Array.from({ length: one.senders }, () =>
              sendDue(deps, 'us', clock.now + HOUR).catch((cause) => {
                if (!(cause instanceof TableError)) throw cause;
              }),
            ),
          );
          // Their sends may outlast the run from which they took the message. What happens before the next round must not overtake them.
          await Promise.all(stealing);
        }
        await settleShut();
        // No faults from here on.
        plan = undefined;
        Object.assign(faults, { left: Number.POSITIVE_INFINITY, history: false });
        for (let turn = 0; turn < 60; turn += 1) {
          clock.now += 31 * MINUTE;
          await sendDue(deps, 'us', clock.now + HOUR);
        }

        seen.runs += 1;
        expect(problems).toEqual([]);
        expect(await oldestUnsent(world.table, 'us', clock.now + 24 * HOUR)).toBeUndefined();
        expect(await world.journal()).toEqual([]);
        const works = await world.works();
        const records = new Map((await world.messages()).map((message) => [message.id, message]));
        for (const { message, recipients } of works) {
          expect(isFinal(message.state)).toBe(true);
          expect(records.get(message.id)).toEqual(message);
          for (const job of message.jobs) {
            const pointers = await world.history.query({ pk: sentOfJobPk(ACME, job) });
            expect(pointers.map(({ sk }) => sk)).toContain(message.id);
          }
          for (const recipient of recipients) {
            const pointers = await world.history.query({ pk: sentToRecipientPk(ACME, recipient) });
            expect(pointers.map(({ sk }) => sk)).toContain(message.id);
          }
          const mine = handed.filter((one) => one.message === message.id);
          const copies = taken.get(message.id) ?? 0;
          const wentOk = mine.some(({ answer }) => answer === 'ok');
          if (message.channel === 'sms') {
            expect(copies).toBeLessThanOrEqual(1);
            if (message.state === 'sent') expect(wentOk).toBe(true);
            if (copies === 1) expect(['sent', 'unknown', 'bounced']).toContain(message.state);
          } else {
            expect(copies).toBeLessThanOrEqual(1 + message.repeats);
            expect(new Set(mine.map(({ known }) => known)).size).toBeLessThanOrEqual(1);
            if (message.state === 'sent') expect(wentOk).toBe(true);
          }
          if (noted.has(message.id)) expect(message.state).toBe('bounced');
          expect(message.detail ?? '').not.toMatch(/@|\d{7}/);
          seen.sent += message.state === 'sent' && message.channel === 'sms' ? 1 : 0;
          seen.repeats += message.repeats;
          seen.unknown += message.state === 'unknown' ? 1 : 0;
        }
        seen.handed += handed.length;
        // A permanent recipient has a message for each dispatch, unless it was disabled.
        if (
          !rounds.some(({ before }) => before === 'turn off' || before === 'revoke') &&
          maxAgeHours === 168
        ) {
          for (const group of new Set(jobs.map((_, at) => getGroup(at)))) {
            const told = works.filter(
              ({ message }) => message.orderGroup === group && message.kind === 'dispatched',
            );
            const numbers = jobs.flatMap((_, at) => (getGroup(at) === group ? [at + 1] : []));
            for (const address of stays) {
              const mine = told.filter(({ message }) => message.to?.address === address);
              expect(mine.map(({ message }) => message.jobs)).toEqual([numbers]);
            }
          }
        }
        // Also of an SMS that was claimed, and never handed over.
        const months = new Set([START, clock.now].map((at) => new Date(at).toISOString().slice(0, 7)));
        let used = 0;
        for (const month of months) used += (await readSmsUse(world.table, ACME, month)).segments;
        const went = works.filter(({ message }) => message.channel === 'sms' && message.attempts > 0);
        const counted = went.filter(({ message }) => ['sent', 'unknown', 'bounced'].includes(message.state));
        // The text of a message with an expired claim is not known; each is one segment.
        expect(used).toBe(
          counted.reduce(
            (sum, { message, reserved }) => sum + (message.segments ?? reserved?.segments ?? 0),
            0,
          ),
        );
        expect(used).toBeLessThanOrEqual(limit);
      },
    ),
    runs(12, 60),
  );
  expect(
    Math.min(seen.sent, seen.repeats, seen.unknown, seen.crashes, seen.steals, seen.feedback),
  ).toBeGreaterThan(0);
});
