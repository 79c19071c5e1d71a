/** A message contains what is new to its address: parcels and due dates, whichever messages other addresses got. */
import { describe, expect, test } from 'vitest';
import type { OutgoingEmail, Parcel, SendOutcome } from '../../shared/notifications/types.ts';
import { keys } from '../../shared/storage/schema.ts';
import {
  ACME,
  CLOSED_AFTER,
  createNotifyingWorld,
  draftEvent,
  HOUR,
  parcel,
  START,
} from '../support/notification-world.ts';

const DOWN: SendOutcome = { kind: 'later', reason: 'The server is down.', everything: true };
const ACCEPTED: SendOutcome = { kind: 'accepted', providerId: null };

/** The numbers of the parcels in a mail. */
const getParcels = ({ text }: OutgoingEmail): string[] =>
  [
    ...new Set([...text.matchAll(/https:\/\/carrier\.example\/(\w+)/g)].map(([, number]) => number ?? '')),
  ].sort();

describe('tracking', () => {
  const createWorld = async () => {
    const world = await createNotifyingWorld();
    const track = async (job: number, ...tracking: readonly Parcel[]) => {
      await world.fold(draftEvent('job.tracking_added', job, world.clock.now, { tracking }));
      world.emails.length = 0;
      await world.send(CLOSED_AFTER);
      return world.emails.map((mail) => [mail.to.name, getParcels(mail)]).sort();
    };
    /** Dispatches two jobs of an order group: the first one has a parcel. */
    const dispatch = async () => {
      await world.fold(
        draftEvent('job.dispatched', 1, START, { tracking: [parcel('P1')] }),
        draftEvent('job.dispatched', 2, START),
      );
      await world.send(CLOSED_AFTER);
    };
    return { ...world, track, dispatch };
  };

  test('of a parcel that another customer’s message of the order group contained is sent, and to no address twice', async () => {
    const { recipient, dispatch, track, messages } = await createWorld();
    await recipient({ name: 'Ann', email: 'ann@example.com', jobNumber: 1 });
    await recipient({ name: 'Bob', email: 'bob@example.com', jobNumber: 2 });
    await recipient({ name: 'Cy', email: 'cy@example.com' });
    await dispatch();
    expect(await track(2, parcel('P1'))).toEqual([['Bob', ['P1']]]);
    const known = (await messages()).find(({ kind, to }) => kind === 'tracking' && to?.name === 'Cy');
    expect(known).toMatchObject({
      state: 'suppressed',
      reason: 'revoked',
      detail: 'The parcels were already sent to this address.',
    });
    expect(await track(2, parcel('P1'))).toEqual([]);
    expect(await track(1, parcel('P1'))).toEqual([]);
  });

  test('contains only the parcels that are new to the address', async () => {
    const { recipient, dispatch, track } = await createWorld();
    await recipient({ name: 'Bob', email: 'bob@example.com', jobNumber: 2 });
    await recipient({ name: 'Cy', email: 'cy@example.com' });
    await dispatch();
    expect(await track(2, parcel('P1'), parcel('P2'))).toEqual([
      ['Bob', ['P1', 'P2']],
      ['Cy', ['P2']],
    ]);
  });

  test('of a parcel is sent again with its link to those who got it without one, and only to them', async () => {
    const { recipient, fold, send, track } = await createWorld();
    await recipient({ name: 'Ann', email: 'ann@example.com', jobNumber: 1 });
    await recipient({ name: 'Bob', email: 'bob@example.com', jobNumber: 2 });
    await fold(
      draftEvent('job.dispatched', 1, START, { tracking: [{ number: 'P1', link: null }] }),
      draftEvent('job.dispatched', 2, START),
    );
    await send(CLOSED_AFTER);
    expect(await track(2, parcel('P1'))).toEqual([['Bob', ['P1']]]);
    expect(await track(1, parcel('P1'))).toEqual([['Ann', ['P1']]]);
  });

  test('that a former release notified of is not repeated', async () => {
    const { recipient, dispatch, track, table } = await createWorld();
    await recipient({ name: 'Cy', email: 'cy@example.com', jobNumber: 2 });
    await dispatch();
    const item = await table.get(keys.thread(ACME, '=SPRING'));
    const state = JSON.parse(String(item?.state)) as { parcels: Record<string, object> };
    state.parcels = Object.fromEntries(
      Object.keys(state.parcels).map((key) => [key, { link: true, at: START }]),
    );
    expect(Object.keys(state.parcels)).toHaveLength(1);
    await table.write({ put: { ...item, ...keys.thread(ACME, '=SPRING'), state: JSON.stringify(state) } });
    expect(await track(2, parcel('P1'))).toEqual([]);
    expect(await track(2, parcel('P1'), parcel('P2'))).toEqual([['Cy', ['P2']]]);
  });
});

describe('a new due date', () => {
  /** Observes due dates of a job (days of March), each with its former one, and sends the messages that are due. */
  const createWorld = async () => {
    const world = await createNotifyingWorld({ settings: { maxAgeHours: 168 } });
    await world.recipient({ name: 'Ann', email: 'ann@example.com', kinds: ['due_date_changed'] });
    const observe = async (outcome: SendOutcome, ...days: readonly [number, number][]) => {
      world.answers.email = async () => outcome;
      for (const [from, to] of days) {
        const dates = { formerDateDue: `2026-03-${from}`, dateDue: `2026-03-${to}`, dateOut: null };
        await world.fold(draftEvent('job.due_date_changed', 1, world.clock.now, dates));
        world.emails.length = 0;
        await world.send(CLOSED_AFTER);
      }
      const [mail] = outcome === ACCEPTED ? world.emails : [];
      return mail && [...mail.text.matchAll(/March\s(\d\d)/g)].map(([, day]) => Number(day));
    };
    /** The days in a message sent after an outage. */
    const recover = async () => {
      world.answers.email = async () => ACCEPTED;
      world.emails.length = 0;
      await world.send(HOUR);
      await world.send(HOUR);
      return world.emails.map(({ text }) =>
        [...text.matchAll(/March\s(\d\d)/g)].map(([, day]) => Number(day)),
      );
    };
    return { ...world, observe, recover };
  };

  test('is sent with the due date that the recipient knows, not with one that was never sent', async () => {
    const { observe, recover } = await createWorld();
    await observe(DOWN, [20, 25], [25, 27]);
    const [days] = await recover();
    expect(days).toContain(27);
    expect(days).toContain(20);
    expect(days).not.toContain(25);
  });

  test('is not sent if it is the one that the recipient knows', async () => {
    const { observe, recover, messages } = await createWorld();
    await observe(DOWN, [20, 25], [25, 20]);
    expect(await recover()).toEqual([]);
    expect((await messages()).map(({ state, reason, detail }) => [state, reason, detail])).toEqual([
      ['suppressed', 'revoked', null],
      ['suppressed', 'revoked', 'The recipient already knows this due date.'],
    ]);
  });

  test('is compared with the last due date that was sent', async () => {
    const { observe, recover } = await createWorld();
    expect(await observe(ACCEPTED, [20, 25])).toEqual(expect.arrayContaining([20, 25]));
    await observe(DOWN, [25, 27], [27, 25]);
    expect(await recover()).toEqual([]);
    await observe(DOWN, [25, 28], [28, 29]);
    const [days] = await recover();
    expect(days).toEqual(expect.arrayContaining([25, 29]));
    expect(days).not.toContain(28);
  });

  test('is sent if the message about another one may have arrived', async () => {
    const { observe, recover } = await createWorld();
    await observe({ kind: 'unknown', reason: 'time-out' }, [20, 25]);
    await observe(DOWN, [25, 20]);
    const [days] = await recover();
    expect(days).toEqual(expect.arrayContaining([20, 25]));
  });
});
