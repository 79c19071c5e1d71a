/** What an operator can say to tracking, where it waits for one (rules 9 and 10). */
import type { EventLog } from '../log/log.ts';
import { type AccountRef, keys } from '../table/schema.ts';
import type { Table } from '../table/table.ts';
import { type AccountState, schedule, toAccount, toStatus } from './accounts.ts';
import { countTally, goneAtOnce, type Tally, WINDOW_HOURS } from './quarantine.ts';

/** What became of a confirmation. */
export type Confirmed =
  /** `was` is over; the account is polled on. */
  | { readonly kind: 'confirmed'; readonly was: 'quarantined' | 'identity_mismatch' }
  /** The account waits for nothing. */
  | { readonly kind: 'nothing to confirm'; readonly state: AccountState }
  | { readonly kind: 'unknown account' };

/** So often a poll may come between; each of them is seconds long. */
const ATTEMPTS = 5;

/**
 * Confirms what an account waits for, in one transaction with the `account.resumed` that says so:
 * - quarantined: the missing jobs are truly gone. As many as are missing now may be announced within a day, each after
 *   fresh answers about it.
 * - identity mismatch: the credentials are in order again, which the next poll checks. With `upstreamId` the account is to be
 *   that one from now on; its state and log go on.
 *
 * A poll that is under way loses its fence, so that it can't undo this; the next one finds what it saw.
 */
export async function confirmAccount(
  deps: { readonly table: Table; readonly log: EventLog; readonly now: () => number },
  ref: AccountRef,
  options: { readonly upstreamId?: number } = {},
): Promise<Confirmed> {
  const { table, log, now } = deps;
  for (let attempt = 0; attempt < ATTEMPTS; attempt += 1) {
    const [account, item, head] = await Promise.all([
      table.get(keys.account(ref)),
      table.get(keys.status(ref)),
      log.head(ref),
    ]);
    if (!account || !item || !head) return { kind: 'unknown account' };
    const status = toStatus(item);
    const mismatch = status.state === 'identity_mismatch';
    if (!mismatch && status.quarantinedAt === null) {
      return { kind: 'nothing to confirm', state: status.state };
    }
    const was = mismatch ? 'identity_mismatch' : 'quarantined';
    const at = now();
    const announced = countTally((head.attributes.goneTally as Tally | undefined) ?? [], at);
    const { upstreamId } = options;
    const outcome = await log.commit(ref, {
      revision: status.revision,
      head,
      events: [{ type: 'account.resumed', time: at, data: { was, by: 'operator' } }],
      writes: [],
      statusAttributes: mismatch
        ? {
            state: status.quarantinedAt === null ? 'tracking' : 'quarantined',
            identityCheckedAt: undefined,
            problem: undefined,
            ...schedule(ref, toAccount(account).paused ? null : at),
          }
        : {
            // A state that says more than "quarantined" is not over by this.
            state: status.state === 'quarantined' ? 'tracking' : status.state,
            quarantinedAt: undefined,
            allowedGone: goneAtOnce({ listed: 0, announced, ...status.missing }) + status.missing.unanswered,
            allowedGoneUntil: at + WINDOW_HOURS * 3_600_000,
          },
      ...(mismatch && upstreamId !== undefined ? { headAttributes: { upstreamId } } : {}),
    });
    if (outcome.kind === 'committed') return { kind: 'confirmed', was };
  }
  throw new Error(`Polls of ${ref.account} kept coming between while it was confirmed.`);
}
