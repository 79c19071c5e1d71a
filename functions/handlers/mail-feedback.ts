/** Processes the mail feedback of SES: bounces and complaints. */
import type { SQSBatchResponse, SQSEvent } from 'aws-lambda';
import { type JournalDeps, recordFeedback } from '../../shared/notifications/messages.ts';
import { parseSesEvent } from '../../shared/notifications/ses-feedback.ts';
import { suppress } from '../../shared/notifications/suppressions.ts';
import type { Telemetry } from '../telemetry.ts';
import { processRecords } from './messages.ts';

/** Dependencies of the handler. */
export interface MailFeedbackDeps {
  readonly region: string;
  readonly messages: JournalDeps;
  readonly telemetry: Pick<Telemetry, 'mailFeedback' | 'fault'>;
}

/**
 * Records feedback about the cell's messages, and suppresses addresses that complained or cannot be reached.
 * SES can report feedback twice, and reports events without consequences. When the topic is created, it sends
 * a line of text.
 */
export function createMailFeedbackHandler({ region, messages, telemetry }: MailFeedbackDeps) {
  return (event: SQSEvent): Promise<SQSBatchResponse> =>
    processRecords(event, telemetry, async ({ body }) => {
      const feedback = parseSesEvent(body);
      if (feedback.kind === 'ignored')
        return telemetry.mailFeedback({ what: 'ignored', detail: feedback.reason });
      const { message, what, detail } = feedback;
      if (message.region !== region)
        return telemetry.mailFeedback({ what: 'ignored', detail: 'It is about another cell.' });
      if (what === 'bounced' || what === 'complained') {
        const noted = await recordFeedback(messages, message, what, detail);
        const address = noted?.to?.address;
        if (address !== undefined) await suppress(messages, message, { channel: 'email', address }, what);
      }
      telemetry.mailFeedback({ ...message, what, detail });
    });
}
