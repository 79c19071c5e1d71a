/** Processes messages of the tick: sends the due notifications. */
import type { Context, SQSBatchResponse, SQSEvent } from 'aws-lambda';
import type { SendReport } from '../../shared/notifications/send-report.ts';
import type { Telemetry } from '../telemetry.ts';
import { NotifyMessage, processMessages } from './messages.ts';

/** Dependencies of the handler. */
export interface NotifyDeps {
  /** Sends due messages, and begins nothing after the deadline (epoch ms). */
  readonly send: (deadline: number) => Promise<SendReport>;
  readonly telemetry: Pick<Telemetry, 'notify' | 'fault'>;
  /** Epoch ms. */
  readonly now: () => number;
}

/** Timeout of sending: SES and SNS calls last up to 20 s; if throttled, they are retried for some seconds. */
export const SEND_TIMEOUT_MS = 30_000;
/**
 * Time (ms) before the function's timeout from which no sending begins: messages in progress complete and are
 * recorded.
 */
const TAIL_MS = SEND_TIMEOUT_MS + 15_000;

/**
 * Creates the handler, which sends due messages until nothing is left or time runs out; the next tick
 * requests the rest.
 */
export function createNotifyHandler({ send, telemetry, now }: NotifyDeps) {
  return async (
    event: SQSEvent,
    context: Pick<Context, 'getRemainingTimeInMillis'>,
  ): Promise<SQSBatchResponse> => {
    const deadline = now() + context.getRemainingTimeInMillis() - TAIL_MS;
    return processMessages(event, NotifyMessage, telemetry, async () => {
      const from = now();
      const report = await send(deadline);
      telemetry.notify(report, { ms: now() - from });
    });
  };
}
