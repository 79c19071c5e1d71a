/** What functions have handed over to SES and SNS for customers. It goes nowhere. */
import { randomUUID } from 'node:crypto';
import type { AwsCall } from './aws-call.ts';

/** An e-mail as SES took it. */
export interface SentMail {
  readonly to: readonly string[];
  readonly from: string;
  /** The whole of it. */
  readonly raw: Buffer;
  readonly configurationSet: string | undefined;
  readonly tags: Readonly<Record<string, string>>;
}

/** An SMS as SNS took it. */
export interface SentSms {
  readonly to: string;
  readonly text: string;
  readonly senderId: string | undefined;
}

/** Keeps what is handed over, in order. */
export class Outbox {
  readonly mails: SentMail[] = [];
  readonly sms: SentSms[] = [];

  /** Takes a call that hands something over, and gives the id that the service answers with; `undefined` for other calls. */
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
