/** Payments (rule 19): each completed or failed one is emitted once, however the ordering API pages, lags, spells or fails. */
import { describe, expect, it } from 'vitest';
import type { FaultRule } from '../../sandbox/http/faults.ts';
import { createPayment, type PaymentInput, settlePayment } from '../../sandbox/world/payments.ts';
import { withEventDefaults } from '../../shared/accounts/event-settings.ts';
import { keys } from '../../shared/storage/schema.ts';
import { createMemoryTable } from '../../shared/storage/sqlite-table.ts';
import { confirmAccount } from '../../shared/tracking/operator.ts';
import { pollAccount } from '../../shared/tracking/poll.ts';
import { createRig, type Rig, watchedTable } from '../support/tracker.ts';

const DAY = 86_400;
const QUARTER = 900;

async function switchPayments(rig: Rig, payments: boolean): Promise<void> {
  const events = JSON.stringify(withEventDefaults({ payments }));
  await rig.table.write({ update: keys.account(rig.ref), set: { events } });
}

/** An account with payments from before the first reading. */
async function tracked(options: Parameters<typeof createRig>[0] = {}) {
  const rig = await createRig(options);
  rig.upstream.createJob({ dateDue: rig.now() + 90 * DAY * 1000 });
  await switchPayments(rig, true);
  await rig.poll();
  await read(rig);
  await rig.fresh();
  return rig;
}

/** Polls until a reading of the payments is complete, and returns the events. */
async function read(rig: Rig, polls = 1) {
  rig.pass(QUARTER);
  for (let n = 0; n < polls; n += 1) await rig.poll();
  return (await rig.fresh()).flatMap(({ type, data }) =>
    type.startsWith('account.payment_')
      ? [`${type.slice(16)} ${(data.transaction as { id: number }).id}`]
      : [],
  );
}

const pay = (rig: Rig, input?: PaymentInput) => createPayment(rig.upstream, input);
const settle = (rig: Rig, id: number, status: string) => settlePayment(rig.upstream, id, status);
const asked = (rig: Rig) => rig.sandbox.requests.list({ operation: 'transactions' });
const fails = (status: number): FaultRule => ({
  match: { operation: 'transactions' },
  fault: { kind: 'status', status },
});

describe('Payments', () => {
  it('emits account.payment_completed and account.payment_failed once each, with masked card data only', async () => {
    const rig = await tracked();
    const [card] = rig.upstream.books.cards;
    const paid = pay(rig, {
      cardNumber: '4111 1111 1111 1234',
      merchantEntityType: 'JOB',
      merchantEntityId: 7,
    });
    settle(rig, paid, 'Completed');
    const failed = pay(rig);
    settle(rig, failed, 'Failed');
    const since = new Date(rig.now()).toISOString();
    rig.pass(QUARTER);
    const report = await rig.poll();
    const [completed, failure, ...others] = await rig.fresh();
    expect(others).toEqual([]);
    expect(completed).toMatchObject({
      type: 'account.payment_completed',
      source: '/regions/us/accounts/acme',
    });
    expect(completed?.data).toEqual({
      ...{ account: 'acme', region: 'us' },
      observed: { since, at: completed?.time },
      transaction: {
        ...{ id: paid, gatewayType: 'Paygrove', transactionStatus: 'Completed' },
        ...{ createdAt: since, completedAt: since, cardName: 'Visa', cardNumber: '**** 1234' },
        ...{ currencySettlement: 'USD', amountSettlement: 120 },
        ...{ merchantEntityType: 'JOB', merchantEntityId: 7 },
      },
    });
    expect(failure).toMatchObject({
      type: 'account.payment_failed',
      data: {
        transaction: { id: failed, cardNumber: `**** ${card?.cardNumber?.slice(-4)}`, completedAt: null },
      },
    });
    const stored = await rig.table.get(keys.payments(rig.ref));
    const kept = JSON.stringify([report, completed, failure, stored, await rig.status()]);
    for (const secret of ['41111', '4111 1', card?.cardExpiry ?? '']) expect(kept).not.toContain(secret);
    expect(await read(rig, 3)).toEqual([]);
  });

  it('are not read unless the setting is on, and never in the poll of the baseline', async () => {
    const rig = await createRig();
    await rig.poll();
    settle(rig, pay(rig), 'Failed');
    expect(await read(rig, 3)).toEqual([]);
    expect(asked(rig)).toEqual([]);
  });

  it('the first reading emits nothing, also after the setting was off; what was pending then is followed', async () => {
    const rig = await tracked();
    const pending = pay(rig);
    expect(await read(rig)).toEqual([]);
    await switchPayments(rig, false);
    settle(rig, pay(rig), 'Completed');
    expect(await read(rig, 2)).toEqual([]);
    await switchPayments(rig, true);
    expect(await read(rig, 2)).toEqual([]);
    settle(rig, pending, 'Failed');
    expect(await read(rig)).toEqual([`failed ${pending}`]);
  });

  it('an account without payments emits its very first one', async () => {
    const rig = await createRig();
    rig.upstream.books.transactions = [];
    await switchPayments(rig, true);
    await rig.poll();
    expect(await read(rig)).toEqual([]);
    const first = pay(rig, { id: 5 });
    settle(rig, first, 'Completed');
    expect(await read(rig)).toEqual([`completed ${first}`]);
  });

  it('makes one request every 15 minutes, and one a poll while more pages are unread', async () => {
    const rig = await tracked();
    rig.sandbox.requests.clear();
    for (let n = 0; n < 60; n += 1) await rig.poll();
    expect(asked(rig).length).toBeLessThanOrEqual(4);
    const many = Array.from({ length: 250 }, () => pay(rig));
    for (const id of many) settle(rig, id, 'Completed');
    rig.pass(QUARTER);
    const emitted: string[] = [];
    for (let n = 0; n < 5; n += 1) {
      rig.sandbox.requests.clear();
      await rig.poll();
      expect(asked(rig).length).toBeLessThanOrEqual(1);
      // Payments that come in between move the others to later pages.
      if (n < 2) settle(rig, pay(rig), 'Completed');
      emitted.push(...(await rig.fresh()).map(({ data }) => String((data.transaction as { id: number }).id)));
    }
    expect(new Set(emitted).size).toBe(emitted.length);
    expect(emitted).toHaveLength(250);
    expect(await read(rig)).toHaveLength(2);
  });

  it('a pending payment is followed for a week behind hundreds of newer ones, and not longer', async () => {
    const rig = await tracked();
    const [slow, never] = [pay(rig), pay(rig)];
    expect(await read(rig)).toEqual([]);
    for (let n = 0; n < 300; n += 1) pay(rig, { transactionStatus: 'Cancelled' });
    expect(await read(rig, 5)).toEqual([]);
    rig.pass(5 * DAY);
    settle(rig, slow, 'completed');
    expect(await read(rig, 5)).toEqual([`completed ${slow}`]);
    rig.pass(3 * DAY);
    expect(await read(rig, 5)).toEqual([]);
    settle(rig, never, 'Failed');
    expect(await read(rig, 5)).toEqual([]);
    const stored = JSON.stringify(await rig.table.get(keys.payments(rig.ref)));
    expect(stored.length).toBeLessThan(4_000);
  });

  it('a view that lags, null fields and other spellings cause no second event and no false one', async () => {
    const rig = await tracked();
    const paid = pay(rig);
    settle(rig, paid, 'Completed');
    expect(await read(rig)).toEqual([`completed ${paid}`]);
    rig.sandbox.freedom.set({ lagSeconds: { transactions: 1_200 } });
    expect(await read(rig)).toEqual([]);
    const failed = pay(rig);
    rig.pass(60);
    settle(rig, failed, 'Failed');
    expect([await read(rig), await read(rig), await read(rig)].flat()).toEqual([`failed ${failed}`]);
    rig.sandbox.freedom.clear();
    rig.sandbox.freedom.set({ nulls: { share: 1 }, spelling: { styles: ['noOffset'], placeholders: 1 } });
    const silent = pay(rig);
    settle(rig, silent, 'Completed');
    expect(await read(rig)).toEqual([]);
    rig.sandbox.freedom.clear();
    expect(await read(rig)).toEqual([`completed ${silent}`]);
    expect(await read(rig, 2)).toEqual([]);
  });

  it('a payment that appears with a lower id than others is found', async () => {
    const rig = await tracked();
    const [first, late, last] = [pay(rig), pay(rig), pay(rig)];
    for (const id of [first, late, last]) settle(rig, id, 'Completed');
    const { transactions } = rig.upstream.books;
    const hidden = transactions.splice(
      transactions.findIndex(({ id }) => id === late),
      1,
    );
    expect(await read(rig)).toEqual([`completed ${first}`, `completed ${last}`]);
    transactions.push(...hidden);
    expect(await read(rig)).toEqual([`completed ${late}`]);
  });

  it.each([401, 403, 404, 500])(
    'a %d of the request shows in the status and does not disturb the jobs; it is repeated after 15 minutes',
    async (status) => {
      const rig = await tracked();
      rig.fault(fails(status));
      const paid = pay(rig);
      settle(rig, paid, 'Completed');
      const job = rig.upstream.createJob();
      rig.pass(QUARTER);
      expect(await rig.poll()).toMatchObject({ outcome: 'complete' });
      expect((await rig.fresh()).map(({ type, subject }) => [type, subject])).toEqual([
        ['job.created', `jobs/${job}`],
      ]);
      const failing = await rig.status();
      expect(failing).toMatchObject({ state: 'tracking', consecutiveFailures: 0 });
      expect(failing.problem).toMatch('GET /account/transactions');
      await rig.poll();
      expect((await rig.status()).problem).toBe(failing.problem);
      rig.sandbox.faults.clear();
      expect(await read(rig)).toEqual([`completed ${paid}`]);
      expect((await rig.status()).problem).toBeNull();
    },
  );

  it.each([
    ['another page', { currentPage: 2 }],
    ['no payments', { entities: null }],
    ['payments in another order', undefined],
  ])('an answer with %s proves nothing', async (_, change) => {
    const rig = await tracked();
    const { transactions } = rig.upstream.books;
    const page = { totalResults: 50, currentPage: 1, hasNext: false, entities: transactions };
    rig.fault({
      match: { operation: 'transactions' },
      fault: { kind: 'raw', status: 200, body: JSON.stringify({ ...page, ...change }) },
    } as FaultRule);
    const paid = pay(rig);
    settle(rig, paid, 'Completed');
    expect(await read(rig)).toEqual([]);
    expect((await rig.status()).problem).toMatch('GET /account/transactions');
    rig.sandbox.faults.clear();
    expect(await read(rig)).toEqual([`completed ${paid}`]);
  });

  it('a process that dies at any write, or another one that polls later, emits each payment once', async () => {
    for (let at = 1; ; at += 1) {
      for (const when of ['before', 'after'] as const) {
        let writes = Number.NEGATIVE_INFINITY;
        const strike = (now: 'before' | 'after') => (call: { call: string }) => {
          if (call.call !== 'write' && call.call !== 'transact') return;
          if (now === 'before') writes += 1;
          if (now === when && writes === at) throw new Error('killed');
        };
        const table = watchedTable(createMemoryTable(), { before: strike('before'), after: strike('after') });
        const rig = await tracked({ table });
        const ids = Array.from({ length: 90 }, () => pay(rig));
        for (const id of ids) settle(rig, id, 'Completed');
        rig.pass(QUARTER);
        writes = 0;
        const died = await rig.poll().then(
          () => false,
          () => true,
        );
        writes = Number.NEGATIVE_INFINITY;
        await pollAccount(rig.depsOver(rig.table), rig.ref, rig.now() + 600_000);
        const emitted = (await read(rig, 2)).sort();
        if (!died) {
          expect(at).toBeGreaterThan(3);
          return;
        }
        expect(emitted, `${when} write ${at}`).toEqual(ids.map((id) => `completed ${id}`).sort());
      }
    }
  });

  it('payments of another account are never emitted: the identity is checked first', async () => {
    const rig = await tracked();
    const other = rig.world.addAccount({ region: 'us', name: 'other' });
    settlePayment(other, createPayment(other), 'Failed');
    rig.actAs(other);
    expect(await read(rig, 2)).toEqual([]);
    expect((await rig.status()).state).toBe('identity_mismatch');
  });

  it('payments from before an operator confirmed another account are not emitted', async () => {
    const rig = await tracked();
    const other = rig.world.addAccount({ region: 'us', name: 'other' });
    settlePayment(other, createPayment(other), 'Failed');
    rig.actAs(other);
    await read(rig);
    await confirmAccount(rig.deps, rig.ref, { upstreamId: other.id });
    expect(await read(rig, 2)).toEqual([]);
    const id = createPayment(other);
    settlePayment(other, id, 'Completed');
    expect(await read(rig, 2)).toEqual([`completed ${id}`]);
  });
});
