/** What customers get: each of what is to be said once, to whom it is for, whatever crashes, hangs or refuses on the way. */
import { describe, expect, test } from 'vitest';
import { CLOSED_AFTER, createNotifyingWorld, parcel, START, said } from './support/notifying.ts';

const DISPATCHED = 'job.dispatched';

describe('sending', () => {
  test('a notice becomes one message for each channel and address, sent once and told in the history', async () => {
    const world = await createNotifyingWorld();
    const ann = await world.recipient({ name: 'Ann', email: 'ann@example.com', mobile: '+12125550123' });
    const bob = await world.recipient({ name: 'Bob', email: 'Ann@Example.com', jobNumber: 2 });
    await world.fold(
      said(DISPATCHED, 1, START, { tracking: [parcel('1Z1')] }),
      said(DISPATCHED, 2, START, { tracking: [parcel('1Z1')] }),
    );
    const report = await world.send(CLOSED_AFTER);
    expect(report).toMatchObject({ notices: 1, messages: 2, sent: 2, repeats: 0, more: false });
    expect(world.emails).toHaveLength(1);
    expect(world.sms).toHaveLength(1);
    // Who is for a job is closer than who is for the account.
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
});
