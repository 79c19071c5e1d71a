// Payments that tests and the control panel create and settle.

import type { PaymentTransaction } from '../../shared/ordering/contract/account.ts';
import { REGION_FACTS } from './regions.ts';
import type { SandboxAccount } from './world.ts';

/** A payment. `earlier`: its previous states, each until a time (epoch ms), oldest first; the first is its absence. */
export type PaymentRecord = PaymentTransaction & {
  earlier?: { readonly until: number; readonly payment: PaymentTransaction | undefined }[];
};

/** Fields of a new payment. */
export type PaymentInput = Partial<PaymentTransaction>;

/** Creates a payment by the account's first card, and returns its id. Default: pending, created now. */
export function createPayment(account: SandboxAccount, input: PaymentInput = {}): number {
  const { transactions, cards } = account.books;
  const { region, world } = account;
  const id = input.id ?? Math.max(account.id * 1000, ...transactions.map((payment) => payment.id)) + 1;
  if (transactions.some((payment) => payment.id === id)) throw new Error(`Payment ${id} exists already`);
  const [card] = cards;
  const createdAt = new Date(world.now() + world.clockSkewMs).toISOString();
  const payment: PaymentRecord = {
    id,
    gatewayType: 'Paygrove',
    transactionStatus: 'Pending',
    createdAt,
    completedAt: input.transactionStatus === 'Completed' ? createdAt : null,
    cardName: card?.cardName ?? null,
    cardNumber: card?.cardNumber ?? null,
    cardExpiry: card?.cardExpiry ?? null,
    currencySettlement: REGION_FACTS[region].currency,
    amountSettlement: 120,
    merchantEntityType: 'CUSTOMER',
    merchantEntityId: account.id,
    ...input,
    earlier: [{ until: world.now(), payment: undefined }],
  };
  transactions.push(payment);
  return id;
}

/** Settles a payment, now; a completed one gets `completedAt`. */
export function settlePayment(account: SandboxAccount, id: number, status: string): void {
  const payment: PaymentRecord | undefined = account.books.transactions.find((one) => one.id === id);
  if (!payment) throw new Error(`Account ${account.name} has no payment ${id}`);
  const { world } = account;
  const { earlier = [], ...before } = payment;
  payment.earlier = [...earlier, { until: world.now(), payment: before }];
  payment.transactionStatus = status;
  payment.completedAt =
    status === 'Completed' ? new Date(world.now() + world.clockSkewMs).toISOString() : null;
}

/**
 * A payment as it was at a time (epoch ms), or none. Default: as it is. A payment without recorded states was created and
 * completed at the times that it contains.
 */
export function paymentAt(
  { earlier, ...payment }: PaymentRecord,
  at = Number.POSITIVE_INFINITY,
): PaymentTransaction[] {
  const past = earlier?.find(({ until }) => until > at);
  if (past) return past.payment ? [past.payment] : [];
  if (earlier) return [payment];
  if (Date.parse(payment.createdAt) > at) return [];
  const isPending = payment.completedAt !== null && Date.parse(payment.completedAt) > at;
  return [isPending ? { ...payment, transactionStatus: 'Pending', completedAt: null } : payment];
}
