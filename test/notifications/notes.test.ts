/** Notes: on-demand texts about a job to one of its recipients. */
import { randomUUID } from 'node:crypto';
import { describe, expect, test } from 'vitest';
import { createNote, findJobRecipients, type Note } from '../../shared/notifications/notes.ts';
import { readSettings } from '../../shared/notifications/settings.ts';
import { createSuppression } from '../../shared/notifications/suppressions.ts';
import type { Channel } from '../../shared/notifications/types.ts';
import { ACME, createNotifyingWorld, HOUR } from '../support/notification-world.ts';

const JOB = { jobNumber: 17, orderNumber: 'PO-17', orderGroup: null };
const TEXT = 'It leaves our press on Thursday.\n\nPlease call us {{ name }} <b>soon</b>.';

async function createWorld(options: Parameters<typeof createNotifyingWorld>[0] = {}) {
  const world = await createNotifyingWorld(options);
  const recipients = async (available: readonly Channel[] = ['email', 'sms']) => {
    const settings = await readSettings(world.table, ACME);
    if (!settings) throw new Error('There are no settings.');
    return findJobRecipients({ table: world.table, now: world.clock.now, available }, settings, JOB);
  };
  const toNote = async (channel: Channel, text = TEXT): Promise<Note> => {
    const place = (await recipients()).find((one) => one.channel === channel);
    if (!place) throw new Error('There is no recipient.');
    const facts = { ...JOB, description: 'Flyers', dateOut: null, dateDue: null, formerDateDue: null };
    const jobs = [{ ...facts, tracking: [] }];
    const content = { kind: 'note', orderGroup: null, jobs, observedAt: world.clock.now, text } as const;
    return { place, content, sentBy: { id: 'k1', name: 'ann' } };
  };
  const create = async (note: Note, dryRun = false) =>
    createNote({ ...world.people, history: world.history, newId: randomUUID }, ACME, note, { dryRun });
  return { ...world, recipients, toNote, create };
}

describe('a note', () => {
  test('is sent to the recipient with its text as plain text, and is in the history with its sender', async () => {
    const { recipient, toNote, create, send, emails, messages } = await createWorld();
    // The kinds of a recipient select among messages that follow from events.
    await recipient({ id: 'bea', name: 'Bea', email: 'bea@example.com', jobNumber: 17, kinds: ['tracking'] });
    const { created, message } = await create(await toNote('email'));
    expect({ created, message }).toMatchObject({
      created: true,
      message: { state: 'waiting', kind: 'note' },
    });
    await send();
    expect(emails).toHaveLength(1);
    const [mail] = emails;
    expect(mail?.to.address).toBe('bea@example.com');
    expect(mail?.subject).toBe('About your order PO-17');
    expect(mail?.text).toContain('It leaves our press on Thursday.');
    expect(mail?.text).toContain('Please call us {{ name }} <b>soon</b>.');
    expect(mail?.html).toContain('&lt;b&gt;soon&lt;/b&gt;');
    expect(await messages()).toMatchObject([
      {
        kind: 'note',
        jobs: [17],
        state: 'sent',
        sentBy: { id: 'k1', name: 'ann' },
        to: { recipient: 'bea' },
      },
    ]);
  });

  test('with the same text about the same job is sent to an address once, also if requested concurrently', async () => {
    const { recipient, toNote, create, send, emails } = await createWorld();
    await recipient({ email: 'bea@example.com' });
    const note = await toNote('email');
    const results = await Promise.all([create(note), create(note), create(note)]);
    expect(results.filter(({ created }) => created)).toHaveLength(1);
    expect(new Set(results.map(({ message }) => message.id)).size).toBe(1);
    await send();
    expect(await create(note)).toMatchObject({ created: false, message: { state: 'sent' } });
    await send(HOUR);
    expect(emails).toHaveLength(1);
    expect(await create(await toNote('email', 'Another text.'))).toMatchObject({ created: true });
    await send();
    expect(emails).toHaveLength(2);
  });

  test('is created again if it was not sent', async () => {
    const { recipient, toNote, create, send, emails, answers } = await createWorld();
    await recipient({ email: 'bea@example.com' });
    const { email } = answers;
    answers.email = async () => ({ kind: 'rejected', reason: 'policy' });
    await create(await toNote('email'));
    await send();
    answers.email = email;
    expect(await create(await toNote('email'))).toMatchObject({ created: true });
    await send();
    expect(emails).toHaveLength(2);
  });

  test('is not sent to an address that unsubscribed before or after it was created', async () => {
    const { recipient, recipients, toNote, create, send, emails, people, messages } = await createWorld();
    await recipient({ email: 'bea@example.com' });
    await create(await toNote('email'));
    await createSuppression(people, ACME, { channel: 'email', address: 'bea@example.com' });
    await send();
    expect(emails).toEqual([]);
    expect(await messages()).toMatchObject([{ state: 'suppressed', reason: 'unsubscribed' }]);
    expect(await recipients()).toMatchObject([
      { reason: 'unsubscribed', detail: 'The recipient has unsubscribed, or a user suppressed the address.' },
    ]);
  });

  test('by SMS waits for the end of quiet hours', async () => {
    const quietHours = { from: '11:00', to: '15:00' };
    const settings = { sms: { enabled: true, quietHours }, zone: 'UTC' };
    const { recipient, recipients, toNote, create, send, sms } = await createWorld({ settings });
    await recipient({ mobile: '+12125550123', zone: 'UTC', channels: ['sms'] });
    // The clock begins at 12:00 UTC.
    expect(await recipients()).toMatchObject([{ notBefore: Date.parse('2026-03-04T15:00:00Z') }]);
    await create(await toNote('sms', 'Soon.'));
    await send();
    expect(sms).toEqual([]);
    await send(3 * HOUR);
    expect(sms).toMatchObject([{ to: '+12125550123', text: 'Acme Prints, PO-17: Soon.' }]);
  });

  test('of a dry run is not stored', async () => {
    const { recipient, toNote, create, send, emails, messages } = await createWorld();
    await recipient({ email: 'bea@example.com' });
    expect(await create(await toNote('email'), true)).toMatchObject({
      created: false,
      message: { state: 'dry_run' },
    });
    await send();
    expect([emails, await messages()]).toEqual([[], []]);
  });
});

describe('the recipients of a job', () => {
  test('are listed by channel, with the reason why no note can be sent', async () => {
    const { recipient, recipients, settings } = await createWorld();
    expect(await recipients()).toEqual([]);
    await recipient({ id: 'a', email: 'a@example.com', mobile: '+12125550123', channels: ['email'] });
    await recipient({ id: 'b', email: 'b@example.com', paused: true });
    await recipient({ id: 'c', email: 'c@example.com', jobNumber: 18 });
    const list = async (available?: readonly Channel[]) =>
      (await recipients(available)).map(({ recipient: { id }, channel, reason }) => [id, channel, reason]);
    expect(await list()).toEqual([
      ['a', 'email', null],
      ['a', 'sms', 'disabled'],
      ['b', 'email', 'disabled'],
    ]);
    expect((await list([]))[0]).toEqual(['a', 'email', 'no_channel']);
    await settings({ enabled: false });
    expect((await list())[0]).toEqual(['a', 'email', 'disabled']);
  });
});
