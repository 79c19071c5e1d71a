/**
 * Payments of an account (rule 19): which ones completed or failed since they were last read. Pure.
 *
 * A reading goes from the newest payment down to the ones that are known, page by page. The state after each part of a
 * page is stored with its events, so that a reading can resume anywhere. The state is bounded: the newest
 * {@link MAX_RECENT} ids, and at most {@link MAX_PENDING} pending payments.
 */
import type { EventData } from '../events/catalogue.ts';
import type { EventDraft } from '../events/event.ts';
import type { PaymentTransaction } from '../ordering/schemas.ts';
import { toBounds } from './diff/step.ts';
import { MAX_BYTES, toText } from './texts.ts';
import { presentDate } from './timestamps.ts';

/** Maximum number of ids kept. A payment that appears late is found if fewer newer ones exist. */
const MAX_RECENT = 50;
/** Maximum number of pending payments that are followed. */
const MAX_PENDING = 100;
/** Time for which a pending payment is followed (ms). */
const FOLLOWED_MS = 7 * 86_400_000;
/** Maximum number of pages that are read only for pending payments. */
const MAX_PAGES = 10;

/** A reading that is not complete. */
interface Reading {
  /** Epoch ms. */
  readonly startedAt: number;
  /** Number of the page to request. */
  readonly page: number;
  /** Payments with this id or a higher one are done. */
  readonly below: number;
  /** Number of payments on all pages, as of the latest one. */
  readonly total: number;
}

/** Stored state of the payments of an account. */
export interface Payments {
  /** Newest known ids in descending order, as of the last complete reading. */
  readonly recent: readonly number[];
  /** Payments with this id or a lower one are known. */
  readonly bound: number;
  /** Pending payments: id, and time since which it is followed (epoch ms). */
  readonly pending: readonly (readonly [id: number, since: number])[];
  /** Ids of this reading that belong to the newest ones. */
  readonly newest: readonly number[];
  /** `null` after a complete reading. */
  readonly reading: Reading | null;
}

/** State before the first reading. */
export const NO_PAYMENTS: Payments = { recent: [], bound: 0, pending: [], newest: [], reading: null };

/** Returns the state with a reading in progress. */
export function startReading(state: Payments, startedAt: number): Payments & { readonly reading: Reading } {
  const reading = state.reading ?? { startedAt, page: 1, below: Number.MAX_SAFE_INTEGER, total: 0 };
  return { ...state, reading };
}

/** Evidence of the payments in one answer. Times are epoch ms. */
interface Evidence {
  readonly respondedAt: number;
  /** Start of the last complete reading. `null`: this is the first one, which emits nothing. */
  readonly since: number | null;
}

type Outcome = 'completed' | 'failed' | 'ended' | 'pending';

/**
 * Applies a part of a page: payments in descending order of their ids. A payment causes one event, when it is first
 * known to be completed or failed.
 */
export function applyPayments(
  state: Payments,
  listed: readonly PaymentTransaction[],
  evidence: Evidence,
): { readonly state: Payments; readonly events: readonly EventDraft[] } {
  const { recent, bound, reading } = state;
  const below = reading?.below ?? Number.MAX_SAFE_INTEGER;
  const pending = new Map(state.pending);
  const events: EventDraft[] = [];
  const part = listed.filter(({ id }) => id < below);
  for (const payment of part) {
    const { id } = payment;
    const isKnown = evidence.since === null || id <= bound || recent.includes(id);
    if (isKnown && evidence.since !== null && !pending.has(id)) continue;
    const outcome = findOutcome(payment);
    if (outcome === 'pending') {
      if (!pending.has(id)) pending.set(id, evidence.respondedAt);
      continue;
    }
    pending.delete(id);
    if (outcome !== 'ended' && evidence.since !== null) events.push(toEvent(payment, outcome, evidence));
  }
  const lowest = part.at(-1)?.id ?? below;
  return {
    state: {
      ...state,
      pending: [...pending],
      newest: [...new Set([...state.newest, ...part.map(({ id }) => id)])]
        .sort(descending)
        .slice(0, MAX_RECENT),
      reading: reading && { ...reading, below: lowest },
    },
    events: events.reverse(),
  };
}

/** Where a reading is after a page. */
interface PageEnd {
  readonly hasNext: boolean;
  /** Number of payments on all pages. */
  readonly total: number;
  readonly isFirst: boolean;
}

/**
 * Ends a page: the reading resumes with the next one, or is complete. The first reading ends with its first page: older
 * payments count as known.
 */
export function endPage(state: Payments, { hasNext, total, isFirst }: PageEnd): Payments {
  const { reading, pending } = state;
  if (!reading) return state;
  const oldest = Math.min(state.bound, ...pending.map(([id]) => id - 1));
  const isEnough =
    reading.below - 1 <= oldest || (reading.page >= MAX_PAGES && reading.below - 1 <= state.bound);
  if (hasNext && !isFirst && !isEnough)
    return { ...state, reading: { ...reading, page: reading.page + 1, total } };
  const known = [...new Set([...state.newest, ...state.recent])].sort(descending);
  const recent = known.slice(0, MAX_RECENT);
  const isCut = known.length > MAX_RECENT || recent.length === MAX_RECENT || (isFirst && hasNext);
  return {
    recent,
    bound: isCut ? Math.max(state.bound, (recent.at(-1) ?? 1) - 1) : state.bound,
    pending: pending
      .filter(([, since]) => reading.startedAt - since < FOLLOWED_MS)
      .sort(([a], [b]) => b - a)
      .slice(0, MAX_PENDING),
    newest: [],
    reading: null,
  };
}

/**
 * Returns the state if the list became shorter between two pages, so that payments may have moved to pages that were
 * read: the reading resumes with page 1. Otherwise `undefined`.
 */
export function restartIfShorter(state: Payments, total: number): Payments | undefined {
  const { reading } = state;
  if (!reading || reading.page === 1 || total >= reading.total) return undefined;
  return { ...state, reading: { ...reading, page: 1, total } };
}

/** Returns whether payments are in descending order of their ids, without duplicates. */
export function isInOrder(listed: readonly PaymentTransaction[]): boolean {
  return listed.every(({ id }, at) => at === 0 || id < (listed[at - 1]?.id ?? 0));
}

/**
 * Returns the outcome of a payment. The status names are examples in the contract: any other payment with a completion
 * time is completed, and without one pending.
 */
function findOutcome({ transactionStatus, completedAt }: PaymentTransaction): Outcome {
  switch (transactionStatus?.trim().toLowerCase()) {
    case 'completed':
      return 'completed';
    case 'failed':
      return 'failed';
    case 'cancelled':
    case 'canceled':
      return 'ended';
    case 'pending':
      return 'pending';
    default:
      return presentDate(completedAt) === null ? 'pending' : 'completed';
  }
}

function toEvent(
  payment: PaymentTransaction,
  outcome: 'completed' | 'failed',
  { respondedAt, since }: Evidence,
): EventDraft {
  const text = (value: string | null) => toText(value, MAX_BYTES.status);
  const transaction: EventData<'account.payment_failed'>['transaction'] = {
    id: payment.id,
    gatewayType: text(payment.gatewayType),
    transactionStatus: text(payment.transactionStatus),
    createdAt: presentDate(payment.createdAt),
    completedAt: presentDate(payment.completedAt),
    cardName: payment.cardName === null ? null : text(payment.cardName.replace(/\d(?:[ -]?\d){4,}/g, '****')),
    cardNumber: maskCardNumber(payment.cardNumber),
    currencySettlement: text(payment.currencySettlement),
    amountSettlement: payment.amountSettlement,
    merchantEntityType: text(payment.merchantEntityType),
    merchantEntityId: payment.merchantEntityId,
  };
  const observed = toBounds(respondedAt, since);
  return { type: `account.payment_${outcome}`, time: respondedAt, data: { transaction, observed } };
}

/** Returns the last four digits of a card number after asterisks, whatever the ordering API sent. */
function maskCardNumber(text: string | null): string | null {
  const digits = text?.replaceAll(/\D/g, '') ?? '';
  return text ? `**** ${digits.length < 4 ? '****' : digits.slice(-4)}` : null;
}

function descending(a: number, b: number): number {
  return b - a;
}
