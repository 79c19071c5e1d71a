/** SES events about accepted mails: bounces, complaints, rejects. */
import * as z from 'zod';

/** Feedback on a message. */
export interface MailFeedback {
  readonly message: { readonly region: string; readonly account: string; readonly message: string };
  /** `noted`: no consequence. */
  readonly what: 'bounced' | 'complained' | 'rejected' | 'noted';
  /** Error message, without addresses. */
  readonly detail: string;
}

export type ParsedFeedback =
  | ({ readonly kind: 'feedback' } & MailFeedback)
  /** Not an event, an event of another type, or not about a message of Jobwire. */
  | { readonly kind: 'ignored'; readonly reason: string };

const NAME = z.string().min(1).max(256);
const mailSchema = z.object({
  tags: z.record(z.string(), z.array(z.string())).optional(),
  headers: z.array(z.object({ name: z.string(), value: z.string() })).optional(),
});
const eventSchema = z.object({
  // Field of event publishing. Identity notifications have the same under another name.
  eventType: z.string().optional(),
  notificationType: z.string().optional(),
  mail: mailSchema,
  bounce: z.object({ bounceType: z.string(), bounceSubType: z.string().optional() }).optional(),
  complaint: z
    .object({
      complaintFeedbackType: z.string().nullish(),
      complaintSubType: z.string().nullish(),
    })
    .optional(),
  reject: z.object({ reason: z.string().optional() }).optional(),
});

/** Parses an SES event from the message of its SNS notification. Never throws. */
export function parseSesEvent(json: string): ParsedFeedback {
  let value: unknown;
  try {
    value = JSON.parse(json);
  } catch {
    return ignored('The message is not JSON.');
  }
  const parsed = eventSchema.safeParse(value);
  if (!parsed.success) return ignored('The message is not an SES event.');
  const { eventType, notificationType, mail, bounce, complaint } = parsed.data;
  const type = eventType ?? notificationType;
  const message = findMessage(mail);
  if (!message) return ignored('The event is not about a message of Jobwire.');
  const feedback = (what: MailFeedback['what'], detail: string): ParsedFeedback => {
    return { kind: 'feedback', message, what, detail };
  };
  if (type === 'Bounce' && bounce) {
    const { bounceType, bounceSubType } = bounce;
    const types = [bounceType, bounceSubType]
      .map(toKeyword)
      .filter((part) => part !== '')
      .join(', ');
    return bounceType === 'Permanent'
      ? feedback('bounced', `The mail bounced permanently (${types}).`)
      : feedback('noted', `The mail bounced temporarily (${types}).`);
  }
  if (type === 'Complaint' && complaint) {
    // The recipient marked the mail as not spam.
    if (complaint.complaintFeedbackType === 'not-spam') {
      return feedback('noted', 'The recipient marked the mail as not spam.');
    }
    const complaintType =
      toKeyword(complaint.complaintFeedbackType ?? complaint.complaintSubType) || 'no type';
    return feedback('complained', `The recipient complained (${complaintType}).`);
  }
  if (type === 'Reject') {
    return feedback('rejected', 'SES did not send the mail, because it contains a virus.');
  }
  return ignored(`Events of type ${toKeyword(type) || 'unknown'} are ignored.`);
}

/** Returns the message by the tags of the mail or by our header. SES assigns its own Message-ID. */
function findMessage({ tags, headers }: z.infer<typeof mailSchema>): MailFeedback['message'] | undefined {
  const tagged = messageReference.safeParse({
    region: tags?.region?.[0],
    account: tags?.account?.[0],
    message: tags?.message?.[0],
  });
  if (tagged.success) return tagged.data;
  const header = headers?.find(({ name }) => name.toLowerCase() === MESSAGE_HEADER.toLowerCase());
  const [region, account, message] = header?.value.trim().split('/') ?? [];
  return messageReference.safeParse({ region, account, message }).data;
}

/** Header that identifies the message of a mail: `<region>/<account>/<message>`. */
export const MESSAGE_HEADER = 'X-Jobwire-Message';

const messageReference = z.object({ region: NAME, account: NAME, message: NAME });

/** Returns an SES keyword, or nothing if the text is anything else. */
function toKeyword(text: string | null | undefined): string {
  return /^[A-Za-z][A-Za-z-]{0,40}$/.exec(text ?? '')?.[0] ?? '';
}

function ignored(reason: string): ParsedFeedback {
  return { kind: 'ignored', reason };
}
