/** Works off what SES hears of mails: that they came back, or were marked as spam. */
import type { SQSBatchResponse, SQSEvent } from 'aws-lambda';
import { type JournalDeps, noteFeedback } from '../../shared/notifications/messages.ts';
import { parseSesEvent } from '../../shared/notifications/ses-feedback.ts';
import { suppress } from '../../shared/notifications/suppressions.ts';
import type { Telemetry } from '../telemetry.ts';
import { workOffRecords } from './messages.ts';

/** What the handler needs. */
export interface MailFeedbackDeps {
  readonly region: string;
  readonly messages: JournalDeps;
  readonly telemetry: Pick<Telemetry, 'mailFeedback' | 'fault'>;
}

/**
 * Keeps what is said of messages of the cell, and that who complained, or can't be reached, is told nothing more. SES says things twice, and things of which nothing follows; when the topic is made
 * it sends a line of text.
 */
export function createMailFeedbackHandler({ region, messages, telemetry }: MailFeedbackDeps) {
  return (event: SQSEvent): Promise<SQSBatchResponse> =>
    workOffRecords(event, telemetry, async ({ body }) => {
      const heard = parseSesEvent(body);
      if (heard.kind === 'ignored') return telemetry.mailFeedback({ what: 'ignored', detail: heard.reason });
      const { message, what, detail } = heard;
      if (message.region !== region)
        return telemetry.mailFeedback({ what: 'ignored', detail: 'It is about another cell.' });
      if (what === 'bounced' || what === 'complained') {
        const noted = await noteFeedback(messages, message, what, detail);
        const address = noted?.to?.address;
        if (address !== undefined) await suppress(messages, message, { channel: 'email', address }, what);
      }
      telemetry.mailFeedback({ ...message, what, detail });
    });
}
