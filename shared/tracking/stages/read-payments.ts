/** Stages of a poll: reads and emits the payments of an account that wants events about them (rule 19). */
import type { PaymentTransaction, TransactionsPage } from '../../ordering/schemas.ts';
import { keys } from '../../storage/schema.ts';
import { describeProblem } from '../account-state.ts';
import {
  applyPayments,
  endPage,
  isInOrder,
  NO_PAYMENTS,
  type Payments,
  restartIfShorter,
  startReading,
} from '../payments.ts';
import { isOutOfTime, type Poll, type Session } from '../poll-context.ts';
import type { Attributes } from '../poll-writer.ts';
import type { Committed } from './commit.ts';

/** Interval between two readings, and after a failed request (ms). */
const INTERVAL_MS = 900_000;
/** Maximum number of payments in one transaction, each with an event. */
const PART = 40;

/** A page of payments, and the state before it. */
export interface PaymentsRead {
  readonly page?: { readonly body: TransactionsPage; readonly respondedAt: number };
  readonly state: Payments;
  /** Error message of the request. */
  readonly problem?: string;
}

/**
 * Requests one page of payments if a reading is due. Otherwise returns `undefined`. A failure does not affect the
 * observation of jobs.
 */
export async function readPayments(
  { account, baselined, context, status, payments }: Poll,
  { client, signal }: Session,
): Promise<PaymentsRead | undefined> {
  if (!account.events?.payments || !baselined || signal.aborted) return undefined;
  if (context.startedAt < (status.paymentsDueAt ?? 0)) return undefined;
  const known = status.paymentsReadAt === null ? undefined : payments;
  const state = startReading(known ?? NO_PAYMENTS, context.startedAt);
  try {
    const { body, respondedAt } = await client.transactions(state.reading.page, signal);
    const problem = findContradiction(body, state.reading.page);
    return { state, ...(problem === undefined ? { page: { body, respondedAt } } : { problem }) };
  } catch (problem) {
    return signal.aborted ? undefined : { state, problem: describeProblem(problem, account.region) };
  }
}

function findContradiction({ currentPage, entities, totalResults }: TransactionsPage, page: number) {
  const what = 'GET /account/transactions failed: the response';
  if (currentPage !== page) return `${what} is page ${currentPage}, not ${page}`;
  if (entities === null && totalResults > 0) return `${what} has no payments`;
  return isInOrder(entities ?? []) ? undefined : `${what} is not in descending order of the ids`;
}

/**
 * Emits the payments of a page, once everything else is committed. Returns the Status attributes to write at the end of
 * the poll.
 */
export async function commitPayments(
  poll: Poll,
  read: PaymentsRead | undefined,
  { all }: Committed,
): Promise<Attributes> {
  const { account, status, context, writer } = poll;
  if (!account.events?.payments) {
    return { paymentsDueAt: undefined, paymentsReadAt: undefined, paymentsProblem: undefined };
  }
  if (!read || !all || isOutOfTime(poll)) return {};
  const later = { paymentsDueAt: context.startedAt + INTERVAL_MS };
  if (!read.page) return { ...later, paymentsProblem: read.problem };
  const { body, respondedAt } = read.page;
  const key = keys.payments(account);
  const restarted = restartIfShorter(read.state, body.totalResults);
  if (restarted) {
    await writer.commit({ writes: [{ put: { ...key, state: JSON.stringify(restarted) } }] });
    return { paymentsProblem: undefined };
  }
  const evidence = { respondedAt, since: poll.payments ? status.paymentsReadAt : null };
  const parts = toParts(body.entities ?? []);
  let { state } = read;
  for (const [at, part] of parts.entries()) {
    if (isOutOfTime(poll)) return {};
    const applied = applyPayments(state, part, evidence);
    const isLast = at === parts.length - 1;
    const end = { hasNext: body.hasNext, total: body.totalResults, isFirst: evidence.since === null };
    state = isLast ? endPage(applied.state, end) : applied.state;
    const attributes = isLast && !state.reading ? { paymentsReadAt: read.state.reading?.startedAt } : {};
    const text = JSON.stringify(state);
    const isMoved = evidence.since === null || text !== JSON.stringify(poll.payments);
    if (applied.events.length > 0 || (isLast && isMoved)) {
      await writer.commit({
        events: applied.events,
        // The first reading decides which payments are new.
        durable: evidence.since === null,
        writes: [{ put: { ...key, state: text } }],
        status: attributes,
      });
    }
    if (isLast && !state.reading) return { ...later, ...attributes, paymentsProblem: undefined };
  }
  return { paymentsProblem: undefined };
}

/** Returns the payments in parts, at least one. */
function toParts(payments: readonly PaymentTransaction[]): (readonly PaymentTransaction[])[] {
  return Array.from({ length: Math.max(1, Math.ceil(payments.length / PART)) }, (_, at) =>
    payments.slice(at * PART, (at + 1) * PART),
  );
}
