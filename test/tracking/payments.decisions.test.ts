/** Which payments of a page are news, and when a reading is complete (rule 19). */
import { describe, expect, test } from 'vitest';
import { PaymentTransaction } from '../../shared/ordering/schemas.ts';
import {
  applyPayments,
  endPage,
  isInOrder,
  NO_PAYMENTS,
  type Payments,
  restartIfShorter,
  startReading,
} from '../../shared/tracking/payments.ts';

const AT = Date.parse('2026-03-02T08:00:00Z');
const DAY = 86_400_000;

const payment = (id: number, transactionStatus: string | null = 'Completed', fields: object = {}) =>
  PaymentTransaction.parse({ id, transactionStatus, ...fields });
const range = (from: number, to: number, status = 'Completed') =>
  Array.from({ length: from - to + 1 }, (_, n) => payment(from - n, status));

/** One page after the other, as one reading; the events as `<outcome> <id>`. */
function read(state: Payments, pages: readonly PaymentTransaction[][], since: number | null = AT, at = AT) {
  let next: Payments = startReading(state, at);
  const events: string[] = [];
  for (const [n, page] of pages.entries()) {
    const applied = applyPayments(next, page, { respondedAt: at, since });
    events.push(
      ...applied.events.map(
        ({ type, data }) =>
          `${type.slice(16)} ${(data as never as { transaction: { id: number } }).transaction.id}`,
      ),
    );
    next = endPage(applied.state, { hasNext: n < pages.length - 1, total: 0, isFirst: since === null });
  }
  return { state: next, events };
}

const first = (...page: PaymentTransaction[]): Payments => read(NO_PAYMENTS, [page], null).state;

describe('payments', () => {
  test('the first reading emits nothing and follows what is pending', () => {
    const { state, events } = read(
      NO_PAYMENTS,
      [[payment(9, 'Pending'), payment(8), payment(7, 'Failed')]],
      null,
    );
    expect(events).toEqual([]);
    expect(state).toEqual({ recent: [9, 8, 7], bound: 0, pending: [[9, AT]], newest: [], reading: null });
  });

  test.each<[string | null, string | null, string[]]>([
    ['Completed', null, ['completed 2']],
    [' COMPLETED ', null, ['completed 2']],
    ['Failed', '2026-03-02T08:00:00Z', ['failed 2']],
    ['Cancelled', '2026-03-02T08:00:00Z', []],
    ['canceled', null, []],
    ['Pending', '2026-03-02T08:00:00Z', []],
    ['Authorised', null, []],
    ['Captured', '2026-03-02T08:00:00Z', ['completed 2']],
    [null, '2026-03-02T08:00:00Z', ['completed 2']],
    [null, '0001-01-01T00:00:00', []],
    [null, null, []],
  ])('with the status %s and the completion time %s', (status, completedAt, expected) => {
    expect(read(first(payment(1)), [[payment(2, status, { completedAt }), payment(1)]]).events).toEqual(
      expected,
    );
  });

  test('each is emitted once, in ascending order, and a settled one is not followed', () => {
    const known = first(payment(3, 'Pending'), payment(2, 'Pending'), payment(1));
    const settled = [
      payment(5, 'Failed'),
      payment(4),
      payment(3),
      payment(2, 'Cancelled'),
      payment(1, 'Failed'),
    ];
    const { state, events } = read(known, [settled]);
    expect(events).toEqual(['completed 3', 'completed 4', 'failed 5']);
    expect(state.pending).toEqual([]);
    expect(read(state, [[payment(5), ...settled.slice(1, 3), payment(2)]]).events).toEqual([]);
  });

  test('a reading continues to the known ones, and to the oldest pending one', () => {
    const known = first(...range(100, 1));
    expect(known).toMatchObject({ bound: 50, reading: null });
    expect(known.recent).toHaveLength(50);
    const begun = startReading(known, AT);
    const page = (from: number, to: number) =>
      endPage(applyPayments(begun, range(from, to), { respondedAt: AT, since: AT }).state, {
        ...{ hasNext: true, total: 300, isFirst: false },
      }).reading;
    expect(page(150, 51)).toBeNull();
    expect(page(151, 52)).toMatchObject({ page: 2, below: 52, total: 300 });
    const waiting = { ...begun, pending: [[20, AT]] as const };
    expect(
      endPage(
        { ...waiting, reading: { ...begun.reading, below: 21 } },
        { hasNext: true, total: 1, isFirst: false },
      ).reading,
    ).not.toBeNull();
    expect(
      endPage(
        { ...waiting, reading: { ...begun.reading, below: 20 } },
        { hasNext: true, total: 1, isFirst: false },
      ).reading,
    ).toBeNull();
    expect(
      endPage(
        { ...waiting, reading: { ...begun.reading, below: 21, page: 10 } },
        { hasNext: true, total: 1, isFirst: false },
      ).reading,
    ).toBeNull();
  });

  test('a page that moved contains no payment twice, and newer ones wait for the next reading', () => {
    const known = first(payment(1));
    const begun = applyPayments(startReading(known, AT), range(6, 4), { respondedAt: AT, since: AT }).state;
    const moved = applyPayments(begun, range(7, 2), { respondedAt: AT, since: AT });
    expect(moved.events).toHaveLength(2);
    const done = endPage(moved.state, { hasNext: false, total: 7, isFirst: false });
    expect(done.recent).toEqual([6, 5, 4, 3, 2, 1]);
    expect(read(done, [range(7, 1)]).events).toEqual(['completed 7']);
  });

  test('a list that became shorter is read again from page 1, without the payments that are done', () => {
    const begun = startReading(first(payment(1)), AT);
    expect(restartIfShorter(begun, 0)).toBeUndefined();
    const second = { ...begun, reading: { ...begun.reading, page: 2, below: 5, total: 10 } };
    expect(restartIfShorter(second, 10)).toBeUndefined();
    expect(restartIfShorter(second, 9)?.reading).toMatchObject({ page: 1, below: 5, total: 9 });
    expect(restartIfShorter(NO_PAYMENTS, 9)).toBeUndefined();
  });

  test('the state is bounded: 50 ids, and 100 pending payments for seven days', () => {
    const { state } = read(first(payment(1)), [range(200, 2, 'Pending')]);
    expect(state.recent).toHaveLength(50);
    expect(state.pending).toHaveLength(100);
    expect(state.pending[0]).toEqual([200, AT]);
    expect(state.bound).toBe(150);
    const later = (time: number) => read(state, [range(200, 2, 'Pending')], AT, AT + time).state.pending;
    expect(later(7 * DAY - 1)).toHaveLength(100);
    expect(later(7 * DAY)).toEqual([]);
  });

  test('card data is masked, whatever the ordering API sends', () => {
    const masked = (cardNumber: string | null, cardName: string | null = null) => {
      const { events } = applyPayments(
        startReading(first(payment(1)), AT),
        [payment(2, 'Failed', { cardNumber, cardName })],
        {
          ...{ respondedAt: AT, since: AT },
        },
      );
      const [event] = events;
      const { transaction } = event?.type === 'account.payment_failed' ? event.data : {};
      return [transaction?.cardNumber, transaction?.cardName];
    };
    expect(masked('************1042', 'Visa')).toEqual(['**** 1042', 'Visa']);
    expect(masked('4111 1111-1111 1234', 'Visa 4111 1111 1111 1234')).toEqual(['**** 1234', 'Visa ****']);
    expect(masked('12')).toEqual(['**** ****', null]);
    expect(masked('')).toEqual([null, null]);
    expect(masked(null)).toEqual([null, null]);
  });

  test('only payments in descending order prove which ones are known', () => {
    expect(isInOrder([])).toBe(true);
    expect(isInOrder(range(3, 1))).toBe(true);
    expect(isInOrder([payment(1), payment(2)])).toBe(false);
    expect(isInOrder([payment(2), payment(2)])).toBe(false);
  });
});
