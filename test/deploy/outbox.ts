/** Messages to customers that functions have sent to SES and SNS. They are not sent further. */
import { randomUUID } from 'node:crypto';
import type { AwsCall } from './aws-call.ts';

/** An e-mail that SES accepted. */
export interface SentMail {
  readonly to: readonly string[];
  readonly from: string;
  /** The complete message. */
  readonly raw: Buffer;
  readonly configurationSet: string | undefined;
  readonly tags: Readonly<Record<string, string>>;
}

/** An SMS that SNS accepted. */
export interface SentSms {
  readonly to: string;
  readonly text: string;
  readonly senderId: string | undefined;
}

/** Records the messages, in order. */
export class Outbox {
  readonly mails: SentMail[] = [];
  readonly sms: SentSms[] = [];

  /** Processes a call that sends a message, and returns the message id of the service. `undefined`: other calls. */
  take({ service, operation, text }: AwsCall): string | undefined {
    if (service === 'ses' && operation === 'SendEmail') {
      this.mails.push(toMail(JSON.parse(text)));
      return randomUUID();
    }
    const form = service === 'sns' && operation === 'Publish' ? new URLSearchParams(text) : undefined;
    const to = form?.get('PhoneNumber');
    if (!form || !to) return undefined;
    this.sms.push({
      to,
      text: form.get('Message') ?? '',
      senderId: getAttribute(form, 'AWS.SNS.SMS.SenderID'),
    });
    return randomUUID();
  }
}

interface SendEmail {
  readonly FromEmailAddress: string;
  readonly Destination: { readonly ToAddresses: readonly string[] };
  readonly Content: { readonly Raw: { readonly Data: string } };
  readonly ConfigurationSetName?: string;
  readonly EmailTags?: readonly { readonly Name: string; readonly Value: string }[];
}

function toMail({
  FromEmailAddress,
  Destination,
  Content,
  ConfigurationSetName,
  EmailTags = [],
}: SendEmail): SentMail {
  return {
    to: Destination.ToAddresses,
    from: FromEmailAddress,
    raw: Buffer.from(Content.Raw.Data, 'base64'),
    configurationSet: ConfigurationSetName,
    tags: Object.fromEntries(EmailTags.map(({ Name, Value }) => [Name, Value])),
  };
}

function getAttribute(form: URLSearchParams, name: string): string | undefined {
  for (const [key, value] of form) {
    const [, entry] = /^MessageAttributes\.entry\.(\d+)\.Name$/.exec(key) ?? [];
    if (entry && value === name)
      return form.get(`MessageAttributes.entry.${entry}.Value.StringValue`) ?? undefined;
  }
  return undefined;
}
