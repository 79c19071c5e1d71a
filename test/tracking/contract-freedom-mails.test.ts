/**
 * Messages to customers follow the truth of the events: the age of a dispatch, what a dispatch or a return makes obsolete, and the
 * consent of the API user. Each test polls the sandbox, folds the events and sends the messages.
 * One file: its tests share the tracked account with its recipients and the sent messages.
 */
import { randomUUID } from 'node:crypto';
import { describe, expect, test } from 'vitest';
import type { FaultRule } from '../../sandbox/http/faults.ts';
import type { RegionCode } from '../../sandbox/world/regions.ts';
import { listMessages } from '../../shared/notifications/message-history.ts';
import { createNotificationsSink } from '../../shared/notifications/notifications-sink.ts';
import { createRecipient, readRecipient, updateRecipient } from '../../shared/notifications/recipients.ts';
import { sendDue } from '../../shared/notifications/sender.ts';
import { saveSettings } from '../../shared/notifications/settings.ts';
import { createSuppression, liftSuppression } from '../../shared/notifications/suppressions.ts';
import {
  NOTIFICATIONS_SINK,
  type OutgoingEmail,
  type OutgoingSms,
  OWN_USER,
  type SendOutcome,
} from '../../shared/notifications/types.ts';
import { historySchema, keys } from '../../shared/storage/schema.ts';
import { createMemoryTable } from '../../shared/storage/sqlite-table.ts';
import { createRig, START } from '../support/tracker.ts';

const MINUTE = 60_000;
const HOUR = 60 * MINUTE;
const DAY = 24 * HOUR;
/** Polls until a notice is sent: its window of a minute, the wait for late events, and one poll to observe the change. */
const SENT = 4;
/** Polls until a cancellation is confirmed and sent. */
const CONFIRMED = 18 + SENT;
const KINDS = ['dispatched', 'tracking', 'dispatch_revoked', 'due_date_changed', 'cancelled'];

/** A tracked account that notifies its customers. `jobs` are open before tracking begins. */
async function createShop(
  options: { settings?: object; sms?: object; region?: RegionCode; jobs?: readonly object[] } = {},
) {
  const rig = await createRig(options.region ? { region: options.region } : {});
  const { table, ref, now } = rig;
  const jobs = (options.jobs ?? [{}]).map((job) => rig.upstream.createJob(job));
  const history = createMemoryTable(historySchema);
  const deps = { table, history, log: rig.log, now, newId: randomUUID };
  const save = async (changes: object = {}) => {
    const saved = await saveSettings(deps, ref, {
      ...{ enabled: true, windowSeconds: 60, branding: { name: 'Acme' }, locale: 'en-GB', zone: 'UTC' },
      ...{ sms: { enabled: true, quietHours: null, ...options.sms }, ...options.settings, ...changes },
    });
    if (saved.kind !== 'saved') throw new Error(saved.reason);
  };
  await save();
  const sink = createNotificationsSink({ table, history, now });
  const emails: OutgoingEmail[] = [];
  const sms: OutgoingSms[] = [];
  const transport: { email: () => SendOutcome } = { email: () => ({ kind: 'accepted', providerId: 'p' }) };
  let position = 0;
  const fold = async () => {
    for (;;) {
      const page = await rig.log.read(ref, position, 200);
      if (page?.kind !== 'events' || page.events.length === 0) break;
      for (const event of page.events) {
        expect(await sink.deliver([{ event }])).toEqual([{ kind: 'delivered' }]);
        position = event.sequence;
      }
    }
    const key = keys.cursor(ref.region, NOTIFICATIONS_SINK, ref.account);
    await table.write({ put: { ...key, sink: NOTIFICATIONS_SINK, position } });
  };
  const send = () =>
    sendDue(
      {
        ...{ table, history, now, newId: randomUUID, random: () => 0.5 },
        publicUrl: 'https://jobwire.example',
        email: {
          domain: 'mail.example',
          async send(mail) {
            const outcome = transport.email();
            if (outcome.kind === 'accepted') emails.push(mail);
            return outcome;
          },
          close() {},
        },
        sms: {
          async send(one) {
            sms.push(one);
            return { kind: 'accepted', providerId: 's' };
          },
        },
        report: (line) => {
          if (line.outcome === 'fault') throw new Error(line.detail ?? 'fault');
        },
      },
      ref.region,
      now() + HOUR,
    );
  /** Polls every minute. Folds and sends after each poll. */
  const run = async (polls: number) => {
    for (let n = 0; n < polls; n += 1) {
      expect((await rig.poll()).outcome).toBe('complete');
      await fold();
      await send();
    }
  };
  await run(1);
  return {
    ...{ rig, deps, table, history, jobs, emails, sms, transport, run, save },
    job: jobs[0] ?? 0,
    upstream: rig.upstream,
    iso: (ms: number) => new Date(ms).toISOString().slice(0, 19),
    async recipient(input: object = {}) {
      const made = await createRecipient(deps, ref, { email: 'ann@example.com', kinds: KINDS, ...input });
      if (made.kind !== 'created') throw new Error(made.reason);
      return made.recipient;
    },
    subjects: () => emails.map(({ subject }) => subject),
    async records() {
      const { messages } = await listMessages(history, ref, { limit: 200 });
      return messages
        .reverse()
        .map(({ kind, channel, state, reason }) => `${kind} ${channel} ${state} ${reason}`);
    },
  };
}

describe('maxAgeHours counts from the dispatch itself when it is known', () => {
  test('an old dispatch first seen today is not “on its way”', async () => {
    const shop = await createShop({ jobs: [{ orderNumber: 'OLD' }, { orderNumber: 'NEW' }] });
    await shop.recipient();
    const [old = 0, fresh = 0] = shop.jobs;
    shop.upstream.dispatch(old, { dateOut: `${shop.iso(START - 5 * DAY)}Z` });
    shop.upstream.dispatch(fresh, { dateOut: `${shop.iso(START - 20 * HOUR)}Z` });
    await shop.run(SENT);
    expect(shop.subjects()).toEqual(['Your order NEW is on its way']);
    expect((await shop.records()).sort()).toEqual([
      'dispatched email sent null',
      'dispatched null suppressed too_old',
    ]);
    // As if it had not happened: neither its tracking nor its reversal is news.
    shop.upstream.addTracking(old, { trackingNumber: '1Z' });
    await shop.run(SENT);
    shop.upstream.clearDateOut(old);
    await shop.run(SENT);
    expect(shop.emails).toHaveLength(1);
  });

  test('of an order group only the jobs that were dispatched recently are “on their way”', async () => {
    const jobs = [1, 2, 3].map((n) => ({ orderGroup: 'SPRING', orderNumber: `PO-${n}` }));
    const shop = await createShop({ jobs });
    await shop.recipient();
    const [one = 0, two = 0, three = 0] = shop.jobs;
    shop.upstream.dispatch(one, { dateOut: `${shop.iso(START - HOUR)}Z` });
    shop.upstream.dispatch(two, { dateOut: `${shop.iso(START - 5 * DAY)}Z` });
    shop.upstream.dispatch(three, { dateOut: `${shop.iso(START - HOUR)}Z` });
    await shop.run(SENT);
    expect(shop.subjects()).toEqual(['2 print jobs of your order SPRING are on their way']);
    expect(shop.emails[0]?.text).toContain('PO-1');
    expect(shop.emails[0]?.text).toContain('PO-3');
    expect(shop.emails[0]?.text).not.toContain('PO-2');
    expect(await shop.records()).toContain('dispatched null suppressed too_old');
  });

  test('a date without a time counts from the end of that day, a time without an offset in the zone of the location', async () => {
    const shop = await createShop({ region: 'nz' });
    await shop.recipient();
    const numbers = ['DAY', 'DAY-OLD', 'LOCAL', 'LOCAL-OLD'];
    const [day = 0, dayOld = 0, local = 0, localOld = 0] = numbers.map((orderNumber) =>
      shop.upstream.createJob({ orderNumber }),
    );
    // The details of new jobs name the zone.
    await shop.run(1);
    // 8:00 UTC is 21:00 in New Zealand.
    const local21 = START + 13 * HOUR;
    shop.upstream.edit(day, { dateOut: shop.iso(local21 - DAY).slice(0, 10) });
    shop.upstream.edit(dayOld, { dateOut: shop.iso(local21 - 2 * DAY).slice(0, 10) });
    shop.upstream.edit(local, { dateOut: shop.iso(local21 - 23 * HOUR) });
    shop.upstream.edit(localOld, { dateOut: shop.iso(local21 - 25 * HOUR) });
    await shop.run(SENT);
    expect(shop.subjects().sort()).toEqual([
      'Your order DAY is on its way',
      'Your order LOCAL is on its way',
    ]);
  });

  test('a time without an offset at an unknown location can mean any time until it has passed in UTC−12', async () => {
    // The list of the baseline names no location.
    const shop = await createShop({ jobs: ['RECENT', 'OLD'].map((orderNumber) => ({ orderNumber })) });
    await shop.recipient();
    const [recent = 0, old = 0] = shop.jobs;
    shop.upstream.edit(recent, { dateOut: shop.iso(START - 35 * HOUR) });
    shop.upstream.edit(old, { dateOut: shop.iso(START - 37 * HOUR) });
    await shop.run(SENT);
    expect(shop.subjects()).toEqual(['Your order RECENT is on its way']);
  });

  test('a mail that is delayed is not sent once the dispatch is too old', async () => {
    const shop = await createShop({ settings: { maxAgeHours: 3 } });
    await shop.recipient();
    shop.transport.email = () => ({ kind: 'later', reason: 'Busy.', everything: false });
    shop.upstream.dispatch(shop.job, { dateOut: `${shop.iso(START - 2 * HOUR)}Z` });
    await shop.run(SENT);
    shop.transport.email = () => ({ kind: 'accepted', providerId: 'p' });
    shop.rig.pass(3600);
    await shop.run(1);
    expect(shop.emails).toEqual([]);
    expect(await shop.records()).toEqual(['dispatched email failed attempts_exhausted']);
  });

  test('a dispatch that upstream dates in the future counts from when it was observed', async () => {
    const shop = await createShop({ settings: { maxAgeHours: 3 } });
    await shop.recipient();
    shop.transport.email = () => ({ kind: 'later', reason: 'Busy.', everything: false });
    shop.upstream.dispatch(shop.job, { dateOut: `${shop.iso(START + 3 * DAY)}Z` });
    await shop.run(SENT);
    shop.transport.email = () => ({ kind: 'accepted', providerId: 'p' });
    shop.rig.pass(4 * 3600);
    await shop.run(1);
    expect(shop.emails).toEqual([]);
  });
});

describe('no “new due date” after “dispatched”', () => {
  test('a new due date whose window is open when the job is dispatched is not sent', async () => {
    const shop = await createShop({ settings: { windowSeconds: 600 }, jobs: [{ orderNumber: 'PO-1' }] });
    await shop.recipient();
    shop.upstream.edit(shop.job, { dateDue: '2026-03-20T17:00:00' });
    await shop.run(3);
    shop.upstream.dispatch(shop.job);
    await shop.run(20);
    expect(shop.subjects()).toEqual(['Your order PO-1 is on its way']);
    expect(await shop.records()).toEqual([
      'due_date_changed null suppressed revoked',
      'dispatched email sent null',
    ]);
  });

  test('a new due date that upstream sets after the dispatch is not sent, also if the dispatch was too old to be sent', async () => {
    const shop = await createShop({ jobs: [{ orderNumber: 'PO-1' }, { orderNumber: 'OLD' }] });
    await shop.recipient();
    const [one = 0, old = 0] = shop.jobs;
    shop.upstream.dispatch(one);
    shop.upstream.dispatch(old, { dateOut: `${shop.iso(START - 5 * DAY)}Z` });
    await shop.run(SENT);
    for (const job of shop.jobs) shop.upstream.edit(job, { dateDue: '2026-03-20T17:00:00' });
    await shop.run(SENT);
    expect(shop.subjects()).toEqual(['Your order PO-1 is on its way']);
  });

  test('a new due date that waits for the end of quiet hours or for the mail server is not sent if the job is dispatched before', async () => {
    // It is 8:00 UTC.
    const shop = await createShop({ sms: { quietHours: { from: '07:00', to: '12:00' } } });
    await shop.recipient({ mobile: '+12025550123' });
    shop.transport.email = () => ({ kind: 'later', reason: 'Busy.', everything: false });
    shop.upstream.edit(shop.job, { dateDue: '2026-03-20T17:00:00' });
    await shop.run(SENT);
    shop.upstream.dispatch(shop.job);
    await shop.run(SENT);
    shop.transport.email = () => ({ kind: 'accepted', providerId: 'p' });
    shop.rig.pass(4 * 3600);
    await shop.run(2);
    expect(shop.emails.map(({ subject }) => subject)).toEqual([expect.stringContaining('is on its way')]);
    expect(shop.sms.map(({ text }) => text)).toEqual([expect.stringContaining('is on its way')]);
  });

  test('of an order group only the jobs that are not dispatched have a new due date', async () => {
    const jobs = [1, 2].map((n) => ({ orderGroup: 'SPRING', orderNumber: `PO-${n}` }));
    const shop = await createShop({ settings: { windowSeconds: 300 }, jobs });
    await shop.recipient();
    const [one = 0, two = 0] = shop.jobs;
    for (const job of [one, two]) shop.upstream.edit(job, { dateDue: '2026-03-20T17:00:00' });
    await shop.run(1);
    shop.upstream.dispatch(one);
    await shop.run(10);
    const due = shop.emails.find(({ subject }) => subject.includes('now expected'));
    expect(due?.text).toContain('PO-2');
    expect(due?.text).not.toContain('PO-1');
    expect(shop.subjects().filter((subject) => subject.includes('way'))).toEqual([
      'A print job of your order SPRING is on its way',
    ]);
  });

  test('a due date that changed is sent after all if the dispatch is revoked', async () => {
    const shop = await createShop({ jobs: [{ orderNumber: 'PO-1' }] });
    await shop.recipient();
    shop.upstream.dispatch(shop.job);
    await shop.run(SENT);
    shop.upstream.edit(shop.job, { dateDue: '2026-03-20T17:00:00' });
    await shop.run(SENT);
    shop.upstream.clearDateOut(shop.job);
    await shop.run(SENT);
    expect(shop.subjects()).toEqual([
      'Your order PO-1 is on its way',
      'Your order PO-1 has not been dispatched yet',
      'Your order PO-1 is now expected to be dispatched by Friday 20 March',
    ]);
  });
});

describe('a correction when a job that was reported cancelled is back', () => {
  /** Jobs beside it, so that its absence is no mass cancellation and searches can be verified. */
  const others = Array.from({ length: 4 }, () => ({}));

  test('goes once to those who were sent the cancellation: in their language, by the same channel, in the same thread', async () => {
    const shop = await createShop({ jobs: [{ orderNumber: 'PO-1' }, ...others] });
    await shop.recipient({ email: 'ann@example.com' });
    await shop.recipient({ email: 'bert@example.com', locale: 'de' });
    await shop.recipient({ email: 'chloe@example.com', locale: 'fr' });
    await shop.recipient({ email: undefined, mobile: '+12025550123', locale: 'en-US' });
    await shop.recipient({ email: 'dispatch@example.com', kinds: ['dispatched', 'tracking'] });
    shop.upstream.cancel(shop.job);
    await shop.run(CONFIRMED);
    expect(shop.emails).toHaveLength(3);
    const cancellations = [...shop.emails];
    expect(shop.sms).toHaveLength(1);
    // A recipient that is new since then was not notified of the cancellation.
    await shop.recipient({ email: 'new@example.com' });
    shop.upstream.reopen(shop.job);
    await shop.run(CONFIRMED);
    const corrections = new Map(shop.emails.slice(3).map((mail) => [mail.to.address, mail]));
    expect([...corrections].map(([address, { subject }]) => [address, subject]).sort()).toEqual([
      ['ann@example.com', 'Your order PO-1 is not cancelled'],
      ['bert@example.com', 'Ihre Bestellung PO-1 ist nicht storniert'],
      ['chloe@example.com', 'Votre commande PO-1 n’est pas annulée'],
    ]);
    for (const { to, messageId } of cancellations) {
      expect(corrections.get(to.address)?.references).toEqual([messageId]);
    }
    expect(shop.sms.slice(1).map(({ text }) => text)).toEqual([
      expect.stringContaining('Your order PO-1 is not canceled'),
    ]);
    // Once: the next cancellation is sent again, and corrected again.
    shop.upstream.cancel(shop.job);
    await shop.run(CONFIRMED);
    shop.upstream.reopen(shop.job);
    await shop.run(CONFIRMED);
    const { length } = shop.emails.filter(({ to }) => to.address === 'ann@example.com');
    expect(length).toBe(4);
    expect(shop.sms).toHaveLength(4);
  });

  test('is not sent to those who were not sent the cancellation: suppressed, or delayed until the job was back', async () => {
    const shop = await createShop({
      sms: { quietHours: { from: '07:00', to: '12:00' } },
      jobs: [{}, ...others],
    });
    await shop.recipient({ mobile: '+12025550123' });
    const suppressed = await createSuppression(shop.deps, shop.rig.ref, {
      channel: 'email',
      address: 'ann@example.com',
    });
    if (suppressed.kind !== 'created') throw new Error(suppressed.kind);
    shop.upstream.cancel(shop.job);
    await shop.run(CONFIRMED);
    expect(await shop.records()).toEqual([
      'cancelled email suppressed unsubscribed',
      'cancelled sms waiting null',
    ]);
    await liftSuppression(shop.deps, shop.rig.ref, suppressed.suppression.id);
    shop.upstream.reopen(shop.job);
    await shop.run(SENT);
    shop.rig.pass(4 * 3600);
    await shop.run(2);
    expect([shop.emails, shop.sms]).toEqual([[], []]);
    const last = (await listMessages(shop.history, shop.rig.ref)).messages[0];
    expect(last).toMatchObject({
      ...{ kind: 'cancelled', state: 'suppressed', reason: 'revoked' },
      detail: 'The cancellation that it corrects was not sent to this address.',
    });
  });

  test('is not sent while notifications are simulated unless the cancellation was simulated as well', async () => {
    const shop = await createShop({ settings: { dryRun: true }, jobs: [{}, ...others] });
    await shop.recipient();
    shop.upstream.cancel(shop.job);
    await shop.run(CONFIRMED);
    shop.upstream.reopen(shop.job);
    await shop.run(SENT);
    expect(await shop.records()).toEqual(['cancelled email dry_run null', 'cancelled email dry_run null']);
    shop.upstream.cancel(shop.job);
    await shop.run(CONFIRMED);
    await shop.save({ dryRun: false });
    shop.upstream.reopen(shop.job);
    await shop.run(SENT);
    expect(shop.emails).toEqual([]);
  });

  test('is replaced by “dispatched” if the job is back and dispatched', async () => {
    const shop = await createShop({ jobs: [{ orderNumber: 'PO-1' }, ...others] });
    await shop.recipient();
    shop.upstream.cancel(shop.job);
    await shop.run(CONFIRMED);
    shop.upstream.reopen(shop.job);
    shop.upstream.dispatch(shop.job);
    await shop.run(CONFIRMED);
    expect(shop.subjects()).toEqual([
      'Your order PO-1 seems to be cancelled',
      'Your order PO-1 is on its way',
    ]);
  });

  test('is sent in the thread of the cancellation if the job is back in another order group', async () => {
    const jobs = [{ orderGroup: 'SPRING', orderNumber: 'PO-1' }, ...others];
    const shop = await createShop({ jobs });
    await shop.recipient();
    shop.upstream.cancel(shop.job);
    await shop.run(CONFIRMED);
    const [cancellation] = shop.emails;
    shop.upstream.edit(shop.job, { orderGroup: 'SUMMER' });
    shop.upstream.reopen(shop.job);
    await shop.run(CONFIRMED);
    expect(shop.subjects()).toEqual([
      'A print job of your order SPRING seems to be cancelled',
      'A print job of your order SUMMER is not cancelled',
    ]);
    expect(shop.emails[1]?.references).toEqual([cancellation?.messageId]);
  });

  test('uses the built-in text, although the account has its own text for cancellations', async () => {
    const shop = await createShop({ jobs: [{ orderNumber: 'PO-1' }, ...others] });
    await shop.recipient();
    const template = JSON.stringify({ subject: 'Cancelled!', intro: 'It is cancelled.' });
    await shop.table.write({
      put: { ...keys.template(shop.rig.ref, 'cancelled', 'email', 'en-GB'), template, changedAt: START },
    });
    shop.upstream.cancel(shop.job);
    await shop.run(CONFIRMED);
    shop.upstream.reopen(shop.job);
    await shop.run(SENT);
    expect(shop.subjects()).toEqual(['Cancelled!', 'Your order PO-1 is not cancelled']);
  });
});

describe('the API user', () => {
  /** A shop that notifies its API user by e-mail and SMS. */
  async function withUser(options: Parameters<typeof createShop>[0] = {}) {
    const shop = await createShop({ ...options, settings: { ownUser: true, ...options.settings } });
    const [user] = shop.upstream.users;
    if (!user) throw new Error('The account has no user.');
    Object.assign(user, { mobile: '(212) 555-2368', textNotifyDispatch: true, receiveEmails: true });
    // The first poll read the user before that.
    await shop.save({ ownUser: false });
    shop.rig.pass(1);
    await shop.save({ ownUser: true });
    await shop.run(1);
    return {
      ...{ ...shop, user },
      read: () => readRecipient(shop.table, shop.rig.ref, OWN_USER),
      reads: () => shop.rig.sandbox.requests.count({ operation: 'accountUser' }),
    };
  }

  test('textNotifyDispatch covers dispatches only: no other SMS, whatever kinds are chosen', async () => {
    const shop = await withUser({ jobs: [{}, {}, {}, {}] });
    expect(await shop.read()).toMatchObject({ channels: ['email', 'sms'] });
    const changed = await updateRecipient(shop.deps, shop.rig.ref, OWN_USER, { kinds: KINDS });
    expect(changed.kind).toBe('changed');
    const [one = 0, two = 0] = shop.jobs;
    shop.upstream.edit(one, { dateDue: '2026-03-20T17:00:00' });
    await shop.run(SENT);
    shop.upstream.dispatch(one);
    await shop.run(SENT);
    shop.upstream.addTracking(one, { trackingNumber: '1Z', trackingLink: 'https://carrier.example/1Z' });
    await shop.run(SENT);
    shop.upstream.clearDateOut(one);
    await shop.run(SENT);
    shop.upstream.dispatch(one);
    await shop.run(SENT);
    shop.upstream.cancel(two);
    await shop.run(CONFIRMED);
    shop.upstream.reopen(two);
    await shop.run(SENT);
    expect(shop.emails).toHaveLength(7);
    // The repeated dispatch would follow a revocation that no SMS reported.
    expect(shop.sms.map(({ text }) => text)).toEqual([expect.stringContaining('is on its way')]);
  });

  const optOuts: Record<string, (shop: Awaited<ReturnType<typeof withUser>>) => void> = {
    'answers 404': ({ upstream, user }) => upstream.removeUser(user.id),
    'is inactive': ({ user }) => void Object.assign(user, { active: false }),
    'opted out': ({ user }) => void Object.assign(user, { receiveEmails: false, textNotifyDispatch: false }),
  };

  test.each(Object.keys(optOuts))('that %s gets no message after an hour', async (what) => {
    const shop = await withUser({ jobs: [{}, {}, {}] });
    const [one = 0, two = 0, three = 0] = shop.jobs;
    shop.upstream.dispatch(one);
    await shop.run(SENT);
    expect([shop.emails.length, shop.sms.length]).toEqual([1, 1]);
    // A mail that waits for the mail server, and one that is created later.
    shop.transport.email = () => ({ kind: 'later', reason: 'Busy.', everything: false });
    shop.upstream.dispatch(two);
    await shop.run(SENT);
    optOuts[what]?.(shop);
    await shop.run(60);
    expect(await shop.read()).toBeUndefined();
    shop.transport.email = () => ({ kind: 'accepted', providerId: 'p' });
    const { length } = shop.sms;
    shop.upstream.dispatch(three);
    await shop.run(10);
    expect([shop.emails.length, shop.sms.length]).toEqual([1, length]);
  });

  test('is read once an hour, and is notified again once upstream allows it', async () => {
    const shop = await withUser();
    const before = shop.reads();
    await shop.run(60);
    expect(shop.reads() - before).toBe(1);
    shop.user.receiveEmails = false;
    await shop.run(60);
    expect(shop.reads() - before).toBe(2);
    expect(await shop.read()).toMatchObject({ channels: ['sms'] });
    shop.user.receiveEmails = true;
    await shop.run(60);
    expect(await shop.read()).toMatchObject({ channels: ['email', 'sms'] });
  });

  test('costs quiet polls no list request and no job detail', async () => {
    const count = async (ownUser: boolean) => {
      const shop = await createShop({ settings: { ownUser } });
      // Reads of the user: with the second poll, and an hour later.
      await shop.run(62);
      const { requests } = shop.rig.sandbox;
      return {
        others: [requests.count({ operation: 'activeJobs' }), requests.count({ operation: 'job' })],
        users: requests.count({ operation: 'accountUser' }),
      };
    };
    const [without, withIt] = [await count(false), await count(true)];
    expect(withIt.others).toEqual(without.others);
    expect([without.users, withIt.users]).toEqual([0, 2]);
  });

  const failures: readonly FaultRule['fault'][] = [
    { kind: 'status', status: 500 },
    { kind: 'status', status: 403 },
    { kind: 'status', status: 503 },
    { kind: 'raw', body: '<html>Not Found</html>', status: 404 } as FaultRule['fault'],
    { kind: 'reset' },
  ];

  test.each(failures)('keeps the last known consent while the lookup fails: %j', async (fault) => {
    const shop = await withUser({ jobs: [{}] });
    shop.rig.fault({ match: { operation: 'accountUser' }, fault });
    await shop.run(62);
    expect(await shop.read()).toMatchObject({ channels: ['email', 'sms'] });
    shop.upstream.dispatch(shop.job);
    await shop.run(SENT);
    expect([shop.emails.length, shop.sms.length]).toEqual([1, 1]);
    // The first answer after that counts.
    shop.upstream.removeUser(shop.user.id);
    shop.rig.sandbox.faults.clear();
    await shop.run(60);
    expect(await shop.read()).toBeUndefined();
  });
});
