/** Works off what SES hears of mails: that they came back, or were marked as spam. */
import type { SQSBatchResponse, SQSEvent } from 'aws-lambda';
import { type MailFeedback, parseSesEvent } from '../../shared/notifications/ses-feedback.ts';
import type { Telemetry } from '../telemetry.ts';
import { workOffRecords } from './messages.ts';

/** What the handler needs. */
export interface MailFeedbackDeps {
  readonly region: string;
  /** Keeps what became of a message, and that its recipient gets no more. */
  readonly note: (message: MailFeedback['message'], what: Heard, detail: string) => Promise<void>;
  readonly telemetry: Pick<Telemetry, 'mailFeedback' | 'fault'>;
}

type Heard = 'bounced' | 'complained';

/**
 * Keeps what is said of messages of the cell. SES says things twice, and things of which nothing follows; when the topic is made
 * it sends a line of text.
 */
export function createMailFeedbackHandler({ region, note, telemetry }: MailFeedbackDeps) {
  return (event: SQSEvent): Promise<SQSBatchResponse> =>
    workOffRecords(event, telemetry, async ({ body }) => {
      const heard = parseSesEvent(body);
      if (heard.kind === 'ignored') return telemetry.mailFeedback({ what: 'ignored', detail: heard.reason });
      const { message, what, detail } = heard;
      if (message.region !== region)
        return telemetry.mailFeedback({ what: 'ignored', detail: 'It is about another cell.' });
      if (what === 'bounced' || what === 'complained') await note(message, what, detail);
      telemetry.mailFeedback({ ...message, what, detail });
    });
}
