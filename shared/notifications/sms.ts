/** SMS by SNS: one Publish per message, to a number, never twice. */
import {
  CheckIfPhoneNumberIsOptedOutCommand,
  PublishCommand,
  SNSClient,
  type SNSClientConfig,
} from '@aws-sdk/client-sns';
import { failureOf, NOT_ALLOWED, oneAttempt, THROTTLED, throughThrottling } from './aws.ts';
import type { OutgoingSms, SendOutcome, SmsTransport } from './model.ts';

interface Options {
  /** Region, endpoint and credentials; attempts and time-outs are set here. */
  readonly aws: SNSClientConfig;
  /** For messages without their own; null: what SNS has set for the AWS account, or a number. */
  readonly senderId: string | null;
  /** How long to wait when SNS asks to slow down, before each further call. */
  readonly throttleWaitsMs?: readonly number[];
  readonly random?: () => number;
  /** For each call. */
  readonly timeoutMs?: number;
}

/**
 * Publishes to numbers. SNS answers with a message id for a number that has opted out, and drops the message: so that is
 * asked first. Who may not ask, or gets no answer, publishes all the same: SNS keeps opt-outs in any case.
 */
export function createSnsSmsTransport(options: Options): SmsTransport {
  const { senderId, throttleWaitsMs = [250, 500, 1_000], random = Math.random, timeoutMs = 20_000 } = options;
  const client = new SNSClient({ ...options.aws, ...oneAttempt(timeoutMs) });

  async function hasOptedOut(phoneNumber: string): Promise<boolean> {
    try {
      const answer = await client.send(new CheckIfPhoneNumberIsOptedOutCommand({ phoneNumber }));
      return answer.isOptedOut === true;
    } catch {
      return false;
    }
  }

  return {
    async send(sms) {
      if (!/^\+[1-9]\d{6,14}$/.test(sms.to)) {
        return { kind: 'refused', reason: 'The number is not a phone number.', address: 'bounced' };
      }
      if (await hasOptedOut(sms.to)) return OPTED_OUT;
      try {
        const { MessageId } = await throughThrottling(throttleWaitsMs, random, () =>
          client.send(publishOf(sms, sms.senderId ?? senderId)),
        );
        return { kind: 'accepted', providerId: MessageId ?? null };
      } catch (cause) {
        return judge(cause);
      }
    },
  };
}

const OPTED_OUT: SendOutcome = {
  kind: 'refused',
  reason: 'The number has opted out of SMS from us.',
  address: 'opted_out',
};

function publishOf({ to, text }: OutgoingSms, senderId: string | null): PublishCommand {
  return new PublishCommand({
    PhoneNumber: to,
    Message: text,
    MessageAttributes: {
      'AWS.SNS.SMS.SMSType': { DataType: 'String', StringValue: 'Transactional' },
      ...(senderId === null ? {} : { 'AWS.SNS.SMS.SenderID': { DataType: 'String', StringValue: senderId } }),
    },
  });
}

function judge(cause: unknown): SendOutcome {
  const failure = failureOf('SNS', cause);
  switch (failure.kind) {
    case 'lost':
      return { kind: 'unknown', reason: failure.reason };
    case 'unsent':
      return { kind: 'later', reason: failure.reason, everything: true };
    case 'refused': {
      const { code, message, afterMs } = failure;
      if (/OptedOut/.test(code) || /opted out/i.test(message)) return OPTED_OUT;
      if (THROTTLED.test(code)) {
        return {
          kind: 'later',
          reason: `SNS asks to slow down (${code}).`,
          everything: true,
          ...(afterMs === undefined ? {} : { afterMs }),
        };
      }
      if (NOT_ALLOWED.test(code)) {
        return { kind: 'later', reason: `SNS does not let us send SMS (${code}).`, everything: true };
      }
      // “Invalid parameter: PhoneNumber Reason: … is not valid to publish to”
      if (/^(InvalidParameter|Validation)/.test(code) && /phone ?number/i.test(message)) {
        return { kind: 'refused', reason: `SNS does not send to this number (${code}).`, address: 'bounced' };
      }
      return { kind: 'refused', reason: `SNS did not take the message (${code}).` };
    }
  }
}
