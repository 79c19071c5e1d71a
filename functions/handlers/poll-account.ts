/** Processes poll messages: one poll for each. */
import type { Context, SQSBatchResponse, SQSEvent } from 'aws-lambda';
import { pollAccount } from '../../shared/tracking/poll.ts';
import type { PollDeps } from '../../shared/tracking/poll-context.ts';
import type { PollReport } from '../../shared/tracking/poll-report.ts';
import type { Telemetry } from '../telemetry.ts';
import type { Tracing } from '../tracing.ts';
import { CLAIM_SECONDS, PollMessage, processMessages } from './messages.ts';

/** Dependencies of the handler. */
export interface PollAccountDeps {
  readonly region: string;
  readonly polling: PollDeps;
  readonly telemetry: Pick<Telemetry, 'poll' | 'fault'>;
  /** Absent: polls are not traced. */
  readonly tracing?: Pick<Tracing, 'beginPoll' | 'endPoll'> | undefined;
}

/**
 * Polls the accounts of a batch concurrently: a poll mostly waits for the ordering API, and a slow one delays
 * no other.
 *
 * A message that is repeated after its poll is ignored. Two at the same time are two polls, of which the
 * fence lets one commit. A message whose claim has expired is ignored, because another one was sent.
 *
 * A failed poll is a result. Only a fault (the table does not respond) fails its message, which is delivered
 * once more. After that, the account's claim expires, and a later tick is the retry.
 */
export function createPollAccountHandler(deps: PollAccountDeps) {
  const { region, polling, telemetry, tracing } = deps;
  return async (
    event: SQSEvent,
    context: Pick<Context, 'getRemainingTimeInMillis'>,
  ): Promise<SQSBatchResponse> => {
    const deadline = polling.now() + context.getRemainingTimeInMillis();
    return processMessages(event, PollMessage, telemetry, async ({ account, dueAt }, { attributes }) => {
      const claimedFrom = Math.max(dueAt, Number(attributes.SentTimestamp));
      if (polling.now() > claimedFrom + CLAIM_SECONDS * 1000) return;
      const startedAt = polling.now();
      const lagMs = Math.max(0, startedAt - dueAt);
      tracing?.beginPoll({ region, account });
      let report: PollReport | undefined;
      try {
        report = await pollAccount(polling, { region, account }, deadline, dueAt);
        telemetry.poll(report, { lagMs });
      } finally {
        const thrown = { region, account, outcome: 'failed', ms: polling.now() - startedAt } as const;
        tracing?.endPoll(report ?? thrown, { lagMs });
      }
    });
  };
}
