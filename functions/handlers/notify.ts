/** Works off messages of the tick: tells customers what is due. */
import type { Context, SQSBatchResponse, SQSEvent } from 'aws-lambda';
import type { SendReport } from '../../shared/notifications/sender.ts';
import type { Telemetry } from '../telemetry.ts';
import { NotifyMessage, workOff } from './messages.ts';

/** What the handler needs. */
export interface NotifyDeps {
  /** Tells what is due, and begins nothing from the deadline (epoch ms) on. */
  readonly send: (deadline: number) => Promise<SendReport>;
  readonly telemetry: Pick<Telemetry, 'notify' | 'fault'>;
  /** Epoch ms. */
  readonly now: () => number;
}

/** SES and SNS are waited for up to 20 s; where they ask to slow down, they are asked again for some seconds. */
export const SEND_TIMEOUT_MS = 30_000;
/** How long before the function's time is up nothing new is sent: what is on its way comes to its end, and is kept. */
const TAIL_MS = SEND_TIMEOUT_MS + 15_000;

/** Tells what is due until nothing is left, or time runs out; the next tick asks again. */
export function createNotifyHandler({ send, telemetry, now }: NotifyDeps) {
  return async (
    event: SQSEvent,
    context: Pick<Context, 'getRemainingTimeInMillis'>,
  ): Promise<SQSBatchResponse> => {
    const deadline = now() + context.getRemainingTimeInMillis() - TAIL_MS;
    return workOff(event, NotifyMessage, telemetry, async () => {
      const from = now();
      const report = await send(deadline);
      telemetry.notify(report, { ms: now() - from });
    });
  };
}
