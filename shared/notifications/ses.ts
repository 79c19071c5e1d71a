/** E-mail transport by SES. Separate from SMTP, because no function needs nodemailer's SMTP half. */
import { SESv2Client, type SESv2ClientConfig, SendEmailCommand } from '@aws-sdk/client-sesv2';
import { type CallOptions, retryThrottled, singleAttempt, toSendOutcome } from './aws.ts';
import { compose, getDomain, INVALID_ADDRESS, parseSender, toAsciiAddress } from './email.ts';
import type { EmailTransport, SendOutcome } from './types.ts';

export interface SesConfig extends CallOptions {
  /** Region, endpoint and credentials. Attempts and timeouts are set here. */
  readonly aws: SESv2ClientConfig;
  readonly from: string;
  /** Configuration set whose events report bounces and complaints. */
  readonly configurationSet?: string;
}

/** Creates a transport that sends composed mails by SES's SendEmail. SES signs the mail and assigns its own Message-ID and Date. */
export function createSesTransport(config: SesConfig): EmailTransport {
  const { configurationSet, throttleWaitsMs = [250, 500, 1_000, 2_000], random = Math.random } = config;
  const from = parseSender(config.from);
  const client = new SESv2Client({ ...config.aws, ...singleAttempt(config.timeoutMs ?? 20_000) });
  return {
    domain: getDomain(from),
    async send(mail) {
      const address = toAsciiAddress(mail.to.address);
      if (address === undefined) return INVALID_ADDRESS;
      const command = new SendEmailCommand({
        Content: { Raw: { Data: await compose(mail, from, address) } },
        FromEmailAddress: from,
        Destination: { ToAddresses: [address] },
        EmailTags: Object.entries(mail.tags).map(([Name, Value]) => ({ Name, Value })),
        ...(configurationSet === undefined ? {} : { ConfigurationSetName: configurationSet }),
      });
      try {
        const { MessageId } = await retryThrottled(throttleWaitsMs, random, () => client.send(command));
        return { kind: 'accepted', providerId: MessageId ?? null };
      } catch (cause) {
        return classifySesError(cause, from);
      }
    },
    close: () => client.destroy(),
  };
}

/** Codes besides those of all services. */
const SES_ERRORS = {
  messages: 'mail',
  throttled: /LimitExceeded/,
  notAllowed: /^(AccountSuspended|SendingPaused|MailFromDomainNotVerified|NotFound)$/,
};

function classifySesError(cause: unknown, from: string): SendOutcome {
  return toSendOutcome('SES', cause, SES_ERRORS, (code, message) => {
    if (!/not verified/i.test(message))
      return { kind: 'rejected', reason: `SES rejected the mail (${code}).` };
    // In the sandbox recipients have to be verified as well. SES names the addresses that are not.
    const named = message.toLowerCase().split(/[\s,:<>]+/);
    if (named.some((part) => [from.toLowerCase(), getDomain(from)].includes(part))) {
      const reason = `The sender address is not verified in SES (${code}).`;
      return { kind: 'later', reason, everything: true };
    }
    const reason = `SES is in its sandbox, and the recipient is not verified (${code}).`;
    return { kind: 'rejected', reason };
  });
}
