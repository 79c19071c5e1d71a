/** What customers get: each of what is to be said once, to whom it is for, whatever crashes, hangs or refuses on the way. */
import { setImmediate } from 'node:timers/promises';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { isFinal, noteFeedback, toWork, type Work, workKey } from '../shared/notifications/messages.ts';
import type { Channel, SendOutcome } from '../shared/notifications/model.ts';
import { deleteRecipient } from '../shared/notifications/recipients.ts';
import { notificationsDue, type SendDeps, sendDue } from '../shared/notifications/sender.ts';
import { readSmsUse } from '../shared/notifications/sms-limits.ts';
import { suppress, suppressionOf } from '../shared/notifications/suppressions.ts';
import { keys, sentOfJobPk, sentToRecipientPk } from '../shared/table/schema.ts';
import { type Table, TableError } from '../shared/table/table.ts';
import {
  ACME,
  CLOSED_AFTER,
  createNotifyingWorld,
  HOUR,
  MINUTE,
  parcel,
  START,
  said,
  type WorldOptions,
} from './support/notifying.ts';

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

  /** Two messages that are to be tried again, and transports that take everything from now on. */
  const createWaitingWorld = async (around?: WorldOptions['around']) => {
    const world = await createNotifyingWorld(around && { around });
    await world.recipient({ name: 'Ann', email: 'ann@example.com' });
    world.answers.email = async () => ({ kind: 'later', reason: 'Busy.', everything: false });
    await world.fold(said(DISPATCHED, 1, START), said(DISPATCHED, 2, START, { orderGroup: 'SUMMER' }));
    await world.send(CLOSED_AFTER);
    world.answers.email = async () => ({ kind: 'accepted', providerId: null });
    return world;
  };

  test('a notice that can’t be made into messages holds up none that are there', async () => {
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
    await world.fold(said(DISPATCHED, 3, world.clock.now, { orderGroup: 'WINTER' }));
    await expect(world.send(CLOSED_AFTER)).rejects.toThrow('too large');
    expect((await world.messages()).map(({ state }) => state)).toEqual(['sent', 'sent']);
  });

  test('a message that can’t be read holds up no other, and is told of', async () => {
    const world = await createWaitingWorld();
    const [broken] = await world.works();
    if (!broken) throw new Error('There is no message.');
    await world.table.write({ update: workKey(broken), set: { message: '{' } });
    expect(await world.send(CLOSED_AFTER)).toMatchObject({ sent: 1 });
    expect(world.lines.some(({ outcome }) => outcome === 'fault')).toBe(true);
  });

  test('however much there is to be made, what is made is sent', async () => {
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
      ...groups.map((orderGroup, place) => said(DISPATCHED, 10 + place, world.clock.now, { orderGroup })),
    );
    Object.assign(late, { byMs: 20 * MINUTE, clock: world.clock });
    const report = await world.send(CLOSED_AFTER);
    expect(report.more).toBe(true);
    expect(report.sent).toBeGreaterThan(0);
  });
});

/** What the other side does with a message. */
const ANSWERS = [
  'ok',
  'ok',
  'ok',
  'ok',
  'later',
  'down',
  'refused',
  'bounced',
  'unknown',
  'throw',
  'hang',
] as const;
type Answer = (typeof ANSWERS)[number];
/** What else happens while a message is handed over. */
const MEANWHILE = ['nothing', 'nothing', 'nothing', 'steal', 'feedback'] as const;

const round = () =>
  fc.record({
    afterMs: fc.constantFrom(0, MINUTE, 6 * MINUTE, HOUR, 5 * HOUR),
    /** The table fails from this write on, and whether that one is still written. */
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

/** One time that a message was handed over. */
interface Handed {
  readonly message: string;
  readonly channel: Channel;
  /** The Message-ID, or the text of an SMS. */
  readonly known: string;
  readonly answer: Answer;
  readonly at: number;
}

test('whatever the transports answer, wherever senders crash or overtake each other: each message goes as often as it says, SMS once at most, in order, and the history says what became of it', async () => {
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
        const groupOf = (at: number) => `G${jobs[at]?.group}`;
        await world.fold(
          ...jobs.map(({ tracked }, at) =>
            said(DISPATCHED, at + 1, START, {
              ...{ orderGroup: groupOf(at), orderNumber: `PO-${groupOf(at)}` },
              tracking: tracked ? [parcel(`T${at}`)] : [],
            }),
          ),
        );
        clock.now += CLOSED_AFTER;

        const handed: Handed[] = [];
        const noted = new Set<string>();
        const taken = new Map<string, number>();
        const shut = new Set<string>();
        /** Somebody else may be about to write there at that moment. */
        const shutBy = new Set<string>();
        const settleShut = async (): Promise<void> => {
          for (const address of shutBy) {
            const channel = address.includes('@') ? 'email' : 'sms';
            if (await suppressionOf(world.table, ACME, channel, address)) shut.add(address);
          }
        };
        let plan:
          | { answers: readonly Answer[]; meanwhile: readonly (typeof MEANWHILE)[number][] }
          | undefined;
        let asked = 0;
        let depth = 0;
        const problems: string[] = [];
        /** The text of an SMS tells which message it is. */
        const isText = (text: string, { content }: Work): boolean =>
          text.includes(`PO-${content.orderGroup}`) &&
          text.includes('on its way') === (content.kind === 'dispatched') &&
          (content.kind === 'dispatched' ||
            content.jobs.some((job) => job.tracking.some(({ number }) => text.includes(`/${number}`))));
        const workOf = async (channel: Channel, address: string, known: string): Promise<Work> => {
          const works = (await world.works()).filter(
            ({ message }) => message.to?.address === address && message.channel === channel,
          );
          const found = works.filter((work) =>
            channel === 'email'
              ? known.startsWith(work.message.id.split('-')[1] ?? '?')
              : work.message.state === 'sending' && isText(known, work),
          );
          const [one] = found;
          if (!one || found.length > 1) throw new Error(`It is ${found.length} messages: ${known}`);
          return one;
        };
        const hand = async (channel: Channel, address: string, known: string): Promise<SendOutcome> => {
          const work = await workOf(channel, address, known);
          const { id } = work.message;
          const answer = plan?.answers[asked % plan.answers.length] ?? 'ok';
          const meanwhile = plan?.meanwhile[asked % plan.meanwhile.length] ?? 'nothing';
          asked += 1;
          handed.push({ message: id, channel, known, answer, at: clock.now });
          const maybe = ['ok', 'unknown', 'throw', 'hang'].includes(answer);
          if (maybe) taken.set(id, (taken.get(id) ?? 0) + 1);
          // What was to be said before to the same address is settled.
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
            await sendDue(world.deps, 'us', clock.now + HOUR);
            depth -= 1;
          }
          if (meanwhile === 'feedback' && answer === 'ok') {
            const message = await noteFeedback(world.deps, { ...ACME, message: id }, 'bounced', 'x');
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
            case 'refused':
              return { kind: 'refused', reason: `no ${address}` };
            case 'bounced':
              shutBy.add(address);
              return {
                kind: 'refused',
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
              said('job.tracking_added', 1, clock.now, {
                ...{ orderGroup: groupOf(0), orderNumber: `PO-${groupOf(0)}` },
                tracking: [parcel(`N${tracked}`)],
              }),
            );
          }
          if (one.before === 'revoke') {
            await world.fold(
              said('job.dispatch_revoked', jobs.length, clock.now, { orderGroup: groupOf(jobs.length - 1) }),
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
        }
        await settleShut();
        // From here on all is well.
        plan = undefined;
        Object.assign(faults, { left: Number.POSITIVE_INFINITY, history: false });
        for (let turn = 0; turn < 60; turn += 1) {
          clock.now += 31 * MINUTE;
          await sendDue(deps, 'us', clock.now + HOUR);
        }

        seen.runs += 1;
        expect(problems).toEqual([]);
        expect(await notificationsDue(world.table, 'us', clock.now + 24 * HOUR)).toBe(false);
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
          seen.sent += message.state === 'sent' ? 1 : 0;
          seen.repeats += message.repeats;
          seen.unknown += message.state === 'unknown' ? 1 : 0;
        }
        seen.handed += handed.length;
        // Who was there all the time has a message of each dispatch, unless it was turned off.
        if (
          !rounds.some(({ before }) => before === 'turn off' || before === 'revoke') &&
          maxAgeHours === 168
        ) {
          for (const group of new Set(jobs.map((_, at) => groupOf(at)))) {
            const told = works.filter(
              ({ message }) => message.orderGroup === group && message.kind === 'dispatched',
            );
            const numbers = jobs.flatMap((_, at) => (groupOf(at) === group ? [at + 1] : []));
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
        // Of one whose claim nobody answered for, the text is not known; each of these is one segment.
        expect(used).toBe(
          counted.reduce(
            (sum, { message, reserved }) => sum + (message.segments ?? reserved?.segments ?? 0),
            0,
          ),
        );
        expect(used).toBeLessThanOrEqual(limit);
      },
    ),
    { numRuns: Number(process.env.RUNS ?? 60) },
  );
  console.log(seen);
  expect(
    Math.min(seen.sent, seen.repeats, seen.unknown, seen.crashes, seen.steals, seen.feedback),
  ).toBeGreaterThan(0);
}, 120_000);
