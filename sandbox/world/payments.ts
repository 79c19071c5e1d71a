// Payments that tests and the control panel create and settle.

import type { PaymentTransaction } from '../../shared/ordering/contract/account.ts';
import { REGION_FACTS } from './regions.ts';
import type { SandboxAccount } from './world.ts';

/** A payment; `settledAt` (epoch ms) is the time of its last change, for views that lag behind. */
export type PaymentRecord = PaymentTransaction & { settledAt?: number };

/** Fields of a new payment. */
export type PaymentInput = Partial<PaymentTransaction>;

/** Creates a payment by the account's first card, and returns its id. Default: pending, created now. */
export function createPayment(account: SandboxAccount, input: PaymentInput = {}): number {
  const { transactions, cards } = account.books;
  const { region, world } = account;
  const id = input.id ?? Math.max(account.id * 1000, ...transactions.map((payment) => payment.id)) + 1;
  if (transactions.some((payment) => payment.id === id)) throw new Error(`Payment ${id} exists already`);
  const [card] = cards;
  transactions.push({
    id,
    gatewayType: 'Paygrove',
    transactionStatus: 'Pending',
    createdAt: new Date(world.now() + world.clockSkewMs).toISOString(),
    completedAt: null,
    cardName: card?.cardName ?? null,
    cardNumber: card?.cardNumber ?? null,
    cardExpiry: card?.cardExpiry ?? null,
    currencySettlement: REGION_FACTS[region].currency,
    amountSettlement: 120,
    merchantEntityType: 'CUSTOMER',
    merchantEntityId: account.id,
    ...input,
  });
  return id;
}

/** Settles a payment, now; a completed one gets `completedAt`. */
export function settlePayment(account: SandboxAccount, id: number, status: string): void {
  const payment: PaymentRecord | undefined = account.books.transactions.find((one) => one.id === id);
  if (!payment) throw new Error(`Account ${account.name} has no payment ${id}`);
  const { world } = account;
  payment.transactionStatus = status;
  payment.settledAt = world.now();
  payment.completedAt =
    status === 'Completed' ? new Date(world.now() + world.clockSkewMs).toISOString() : null;
}

/** A payment as it was at a time (epoch ms): none before its creation, pending before it was settled. Default: as it is. */
export function paymentAt(
  { settledAt, ...payment }: PaymentRecord,
  at: number | undefined,
  clockSkewMs: number,
): PaymentTransaction[] {
  if (at === undefined) return [payment];
  if (Date.parse(payment.createdAt) - clockSkewMs > at) return [];
  const { completedAt } = payment;
  const settled = settledAt ?? (completedAt === null ? at : Date.parse(completedAt) - clockSkewMs);
  return [settled <= at ? payment : { ...payment, transactionStatus: 'Pending', completedAt: null }];
}
