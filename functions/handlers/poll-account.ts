/** Works off poll messages: one poll for each. */
import type { Context, SQSBatchResponse, SQSEvent } from 'aws-lambda';
import { type PollDeps, pollAccount } from '../../shared/tracking/poll.ts';
import type { Telemetry } from '../telemetry.ts';
import { CLAIM_SECONDS, PollMessage, workOff } from './messages.ts';

/** What the handler needs. */
export interface PollAccountDeps {
  readonly region: string;
  readonly polling: PollDeps;
  readonly telemetry: Pick<Telemetry, 'poll' | 'fault'>;
}

/**
 * Polls the accounts of a batch side by side: a poll mostly waits for the ordering service, and one that waits long keeps
 * no other from reading, committing and reporting. A message that comes again after its poll is none; two at the same time
 * are two polls, of which the fence lets one speak; one whose claim has run out is none, for another was asked for. A failed poll is an outcome; only a fault (the table does not answer) fails its message, and that is not delivered
 * again: the account's claim runs out, and a later tick is the retry.
 */
export function createPollAccountHandler(deps: PollAccountDeps) {
  const { region, polling, telemetry } = deps;
  return async (
    event: SQSEvent,
    context: Pick<Context, 'getRemainingTimeInMillis'>,
  ): Promise<SQSBatchResponse> => {
    const deadline = polling.now() + context.getRemainingTimeInMillis();
    return workOff(event, PollMessage, telemetry, async ({ account, dueAt }, { attributes }) => {
      const claimedFrom = Math.max(dueAt, Number(attributes.SentTimestamp));
      if (polling.now() > claimedFrom + CLAIM_SECONDS * 1000) return;
      const lagMs = Math.max(0, polling.now() - dueAt);
      telemetry.poll(await pollAccount(polling, { region, account }, deadline, dueAt), { lagMs });
    });
  };
}
