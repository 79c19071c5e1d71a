/** SMS transport by SNS: one Publish per message, to a phone number, never twice. */
import {
  CheckIfPhoneNumberIsOptedOutCommand,
  PublishCommand,
  SNSClient,
  type SNSClientConfig,
} from '@aws-sdk/client-sns';
import { type CallOptions, retryThrottled, singleAttempt, toSendOutcome } from './aws.ts';
import type { ChannelProblem, OutgoingSms, SendOutcome, SmsTransport } from './types.ts';

interface Options extends CallOptions {
  /** Region, endpoint and credentials. Attempts and timeouts are set here. */
  readonly aws: SNSClientConfig;
  /** Default for messages without their own. `null`: the default of the AWS account, or a number. */
  readonly senderId: string | null;
}

/**
 * Creates a transport that publishes to phone numbers. For a number that has opted out, SNS returns a message id and drops the message, so
 * the opt-out is checked first. If that check is forbidden or fails, the message is published anyway: SNS enforces opt-outs in any case.
 */
export function createSnsSmsTransport(options: Options): SmsTransport {
  const { senderId, throttleWaitsMs = [250, 500, 1_000], random = Math.random, timeoutMs = 20_000 } = options;
  const client = new SNSClient({ ...options.aws, ...singleAttempt(timeoutMs) });

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
        return { kind: 'rejected', reason: 'The number is not in E.164 format.', address: 'bounced' };
      }
      if (await hasOptedOut(sms.to)) return OPTED_OUT;
      try {
        const { MessageId } = await retryThrottled(throttleWaitsMs, random, () =>
          client.send(toPublishCommand(sms, sms.senderId ?? senderId)),
        );
        return { kind: 'accepted', providerId: MessageId ?? null };
      } catch (cause) {
        return classifyError(cause);
      }
    },
  };
}

/** Returns why no SMS can be sent, because no AWS credentials are found, with the settings to check. `undefined`: no problem. */
export async function checkSmsCredentials(awsRegion: string): Promise<ChannelProblem | undefined> {
  const client = new SNSClient({ region: awsRegion });
  try {
    await client.config.credentials();
    return undefined;
  } catch {
    return {
      message: 'No AWS credentials for Amazon SNS were found.',
      fix: 'Set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or another source of AWS credentials, in the environment of Jobwire.',
    };
  } finally {
    client.destroy();
  }
}

const OPTED_OUT: SendOutcome = {
  kind: 'rejected',
  reason: 'The number has opted out of SMS.',
  address: 'opted_out',
};

function toPublishCommand({ to, text }: OutgoingSms, senderId: string | null): PublishCommand {
  return new PublishCommand({
    PhoneNumber: to,
    Message: text,
    MessageAttributes: {
      'AWS.SNS.SMS.SMSType': { DataType: 'String', StringValue: 'Transactional' },
      ...(senderId === null ? {} : { 'AWS.SNS.SMS.SenderID': { DataType: 'String', StringValue: senderId } }),
    },
  });
}

/** Codes besides those of all services: none. */
const SNS_ERRORS = { messages: 'SMS', throttled: /^$/, notAllowed: /^$/ };

function classifyError(cause: unknown): SendOutcome {
  return toSendOutcome('SNS', cause, SNS_ERRORS, (code, message) => {
    if (/OptedOut/.test(code) || /opted out/i.test(message)) return OPTED_OUT;
    // “Invalid parameter: PhoneNumber Reason: … is not valid to publish to”
    if (/^(InvalidParameter|Validation)/.test(code) && /phone ?number/i.test(message)) {
      const reason = `SNS does not send to this number (${code}).`;
      return { kind: 'rejected', reason, address: 'bounced' };
    }
    return { kind: 'rejected', reason: `SNS rejected the message (${code}).` };
  });
}
