/**
 * E-mails, by an SMTP server or by SES. Both hand over the same bytes, composed here; what becomes of handing them over is
 * judged apart.
 */
import { createPrivateKey } from 'node:crypto';
import { isIP } from 'node:net';
import { PassThrough, type Readable } from 'node:stream';
import { buffer } from 'node:stream/consumers';
import { SESv2Client, type SESv2ClientConfig, SendEmailCommand } from '@aws-sdk/client-sesv2';
import { createTransport } from 'nodemailer';
import DKIM from 'nodemailer/lib/dkim';
import MailComposer from 'nodemailer/lib/mail-composer';
import { failureOf, NOT_ALLOWED, ONE_ATTEMPT, THROTTLED, throughThrottling } from './aws.ts';
import type { EmailTransport, OutgoingEmail, SendOutcome } from './model.ts';
import { MESSAGE_HEADER } from './ses-feedback.ts';

export interface SmtpConfig {
  /** The address that mails come from; its domain is that of message ids. */
  readonly from: string;
  readonly host: string;
  readonly port: number;
  /** TLS from the first byte (port 465); otherwise STARTTLS where the server offers it. */
  readonly secure?: boolean;
  readonly user?: string;
  readonly password?: string;
  readonly dkim?: DkimKey;
  /** PEM of a certificate authority of one's own. */
  readonly ca?: string;
  /** How many mails are on their way at once, each by a connection of its own. */
  readonly connections?: number;
  /** Without a word from the server for so long, a mail is given up. */
  readonly silenceMs?: number;
}

export interface DkimKey {
  readonly domain: string;
  readonly selector: string;
  /** PEM of an RSA key. */
  readonly privateKey: string;
}

export interface SesConfig {
  /** Region, endpoint and credentials; attempts and time-outs are set here. */
  readonly aws: SESv2ClientConfig;
  readonly from: string;
  /** Whose events tell of bounces and complaints. */
  readonly configurationSet?: string;
  /** How long to wait when SES asks to slow down, before each further call. */
  readonly throttleWaitsMs?: readonly number[];
  readonly random?: () => number;
}

// SMTP

/** Connections that are kept open, to one server. Throws for a config that can't work. */
export function createSmtpTransport(config: SmtpConfig): EmailTransport {
  const { from, host, port, secure = false, user, password, connections = 4, silenceMs = 120_000 } = config;
  const domain = domainOf(from);
  const signer = config.dkim && createSigner(config.dkim);
  const stages = new WeakMap<object, { at: Stage }>();
  const mailer = createTransport({
    pool: true,
    host,
    port,
    secure,
    ...(user === undefined ? {} : { auth: { user, pass: password ?? '' } }),
    // A password never goes in the clear; on this machine nobody listens.
    requireTLS: !secure && user !== undefined && !isLoopback(host),
    ...(config.ca === undefined ? {} : { tls: { ca: config.ca } }),
    name: domain,
    maxConnections: connections,
    connectionTimeout: Math.min(15_000, silenceMs),
    greetingTimeout: Math.min(15_000, silenceMs),
    socketTimeout: silenceMs,
    disableFileAccess: true,
    disableUrlAccess: true,
  });
  mailer.use('stream', (mail, done) => {
    const stage = stages.get(mail.data.envelope as object);
    if (stage) mail.message?.processFunc((input) => watch(input as Readable, stage));
    done();
  });

  return {
    domain,
    async send(mail) {
      const address = toAscii(mail.to.address);
      if (address === undefined) return NO_ADDRESS;
      const composed = await compose(mail, from, address);
      const raw = signer ? await buffer(signer.sign(composed)) : composed;
      const envelope = { from, to: [address] };
      const stage: { at: Stage } = { at: 'connecting' };
      stages.set(envelope, stage);
      try {
        const { serverMessageId } = await mailer.sendMail({ envelope, raw });
        return { kind: 'accepted', providerId: serverMessageId ?? null };
      } catch (cause) {
        return judgeSmtp(cause as SmtpError, stage.at);
      }
    },
    close: () => mailer.close(),
  };
}

/** How far a mail came: no session yet; a session; all of its bytes went to the server. */
type Stage = 'connecting' | 'talking' | 'handed';

/** Passes a mail on to the server, which is asked for its bytes only once it wants them. */
function watch(input: Readable, stage: { at: Stage }): Readable {
  stage.at = 'talking';
  const output = new PassThrough();
  input.once('error', (cause) => output.destroy(cause));
  output.once('end', () => {
    stage.at = 'handed';
  });
  return input.pipe(output);
}

type SmtpError = Error & {
  readonly code?: string;
  readonly command?: string;
  readonly response?: string;
  readonly responseCode?: number;
};

/** What is said before the recipient is named is about all mails; from then on it is about this one. */
function judgeSmtp(cause: SmtpError, stage: Stage): SendOutcome {
  const { code = 'no code', command = '', response = '', responseCode } = cause;
  if (responseCode === undefined) {
    if (stage === 'handed') {
      return { kind: 'unknown', reason: `The mail server did not say whether it took the mail (${code}).` };
    }
    const reason =
      code === 'ETLS'
        ? 'The connection to the mail server could not be secured.'
        : code === 'EAUTH'
          ? 'The mail server asks for a password in a way that we don’t have.'
          : stage === 'talking'
            ? `The connection to the mail server broke (${code}).`
            : `The mail server could not be reached (${code}).`;
    return { kind: 'later', reason, everything: stage === 'connecting' };
  }
  const status = /^\d{3}[ -]([245]\.\d{1,3}\.\d{1,3})\b/.exec(response)?.[1];
  const answer = status === undefined ? `${responseCode}` : `${responseCode} ${status}`;
  if (code === 'EAUTH' || [530, 534, 535, 538].includes(responseCode)) {
    return { kind: 'later', reason: `The mail server does not let us in (${answer}).`, everything: true };
  }
  if (!/^(RCPT TO|DATA)$/.test(command)) {
    return { kind: 'later', reason: `The mail server takes nothing from us (${answer}).`, everything: true };
  }
  if (responseCode < 500 || responseCode === 503) {
    return {
      kind: 'later',
      reason: `The mail server did not take the mail yet (${answer}).`,
      everything: false,
    };
  }
  if (status !== undefined && NO_SUCH_ADDRESS.test(status)) {
    return { kind: 'refused', reason: `There is no such address (${answer}).`, address: 'bounced' };
  }
  return { kind: 'refused', reason: `The mail server refused the mail (${answer}).` };
}

/** Enhanced status codes (RFC 3463, RFC 7505) of addresses that take no mail. A full mailbox (5.2.2) may be emptied. */
const NO_SUCH_ADDRESS = /^5\.(1\.(1|2|3|6|10)|2\.1)$/;

// SES

/**
 * By the SendEmail call of SES, with the mail as it is composed here. SES signs it, and gives it a Message-ID and a Date
 * of its own.
 */
export function createSesTransport(config: SesConfig): EmailTransport {
  const { from, configurationSet, throttleWaitsMs = [250, 500, 1_000, 2_000], random = Math.random } = config;
  const domain = domainOf(from);
  const client = new SESv2Client({ ...config.aws, ...ONE_ATTEMPT });
  return {
    domain,
    async send(mail) {
      const address = toAscii(mail.to.address);
      if (address === undefined) return NO_ADDRESS;
      const command = new SendEmailCommand({
        Content: { Raw: { Data: await compose(mail, from, address) } },
        FromEmailAddress: from,
        Destination: { ToAddresses: [address] },
        EmailTags: Object.entries(mail.tags).map(([Name, Value]) => ({ Name, Value })),
        ...(configurationSet === undefined ? {} : { ConfigurationSetName: configurationSet }),
      });
      try {
        const { MessageId } = await throughThrottling(throttleWaitsMs, random, () => client.send(command));
        return { kind: 'accepted', providerId: MessageId ?? null };
      } catch (cause) {
        return judgeSes(cause, from);
      }
    },
    close: () => client.destroy(),
  };
}

function judgeSes(cause: unknown, from: string): SendOutcome {
  const failure = failureOf('SES', cause);
  switch (failure.kind) {
    case 'lost':
      return { kind: 'unknown', reason: failure.reason };
    case 'unsent':
      return { kind: 'later', reason: failure.reason, everything: true };
    case 'refused': {
      const { code, message, afterMs } = failure;
      if (THROTTLED.test(code) || /LimitExceeded/.test(code)) {
        return {
          kind: 'later',
          reason: `SES asks to slow down (${code}).`,
          everything: true,
          ...(afterMs === undefined ? {} : { afterMs }),
        };
      }
      if (
        NOT_ALLOWED.test(code) ||
        /^(AccountSuspended|SendingPaused|MailFromDomainNotVerified|NotFound)$/.test(code)
      ) {
        return { kind: 'later', reason: `SES does not let us send mail (${code}).`, everything: true };
      }
      if (/not verified/i.test(message)) {
        // In the sandbox recipients have to be verified as well: SES says which addresses are not.
        return message.toLowerCase().includes(domainOf(from).toLowerCase())
          ? { kind: 'later', reason: `SES does not know the sender as ours (${code}).`, everything: true }
          : { kind: 'refused', reason: `SES is in its sandbox, and does not know the recipient (${code}).` };
      }
      return { kind: 'refused', reason: `SES did not take the mail (${code}).` };
    }
  }
}

// Composing

const NO_ADDRESS: SendOutcome = {
  kind: 'refused',
  reason: 'The recipient’s address is not one that mail can go to.',
};
/** Of the mails that a mail follows up the first one and the last ones: a header has its limits. */
const MAX_REFERENCES = 20;
/** All that says who, to whom and what; without our own, which SES's or a list's servers may take out. */
const SIGNED_HEADERS = [
  'From',
  'Reply-To',
  'To',
  'Subject',
  'Date',
  'Message-ID',
  'In-Reply-To',
  'References',
  'MIME-Version',
  'Content-Type',
  'Content-Transfer-Encoding',
  'Auto-Submitted',
  // RFC 8058, 4: both have to be signed, or there is no one-click. nodemailer's own list lacks the second.
  'List-Unsubscribe',
  'List-Unsubscribe-Post',
];

/** The mail as it goes: ASCII, no line longer than 76 characters but by a word that is. */
function compose(mail: OutgoingEmail, from: string, to: string): Promise<Buffer> {
  const { messageId, references, unsubscribeUrl, tags } = mail;
  const [first, ...rest] = references.map((id) => `<${id}>`);
  const last = references.at(-1);
  const composer = new MailComposer({
    from: { name: plain(mail.fromName), address: from },
    to: { name: plain(mail.to.name ?? ''), address: to },
    ...(mail.replyTo === null ? {} : { replyTo: { name: '', address: mail.replyTo } }),
    subject: plain(mail.subject),
    messageId: `<${messageId}>`,
    ...(first === undefined || last === undefined
      ? {}
      : { inReplyTo: `<${last}>`, references: [first, ...rest.slice(1 - MAX_REFERENCES)] }),
    headers: {
      // RFC 3834: no out-of-office answers.
      'Auto-Submitted': 'auto-generated',
      'X-Auto-Response-Suppress': 'All',
      [MESSAGE_HEADER]: `${tags.region}/${tags.account}/${tags.message}`,
      'List-Unsubscribe': { prepared: true, value: `<${new URL(unsubscribeUrl).href}>` },
      'List-Unsubscribe-Post': { prepared: true, value: 'List-Unsubscribe=One-Click' },
    },
    text: mail.text,
    html: mail.html,
    // Whatever is in it: quoted-printable keeps lines short and all bytes in ASCII.
    encoding: 'quoted-printable',
    newline: 'win',
    disableFileAccess: true,
    disableUrlAccess: true,
  });
  return composer.compile().build();
}

/** One line without control characters. */
function plain(text: string): string {
  return text
    .replace(/[\p{Cc}\u2028\u2029]+/gu, ' ')
    .replace(/ {2,}/g, ' ')
    .trim();
}

/** An address as servers take it: its domain in ASCII. Nothing for what is not one, or needs servers that take UTF-8. */
function toAscii(address: string): string | undefined {
  const at = address.lastIndexOf('@');
  const local = address.slice(0, at);
  if (at < 1 || local.length > 64 || !/^[!#-'*+\-/-9=?A-Z^-~]+(\.[!#-'*+\-/-9=?A-Z^-~]+)*$/.test(local)) {
    return undefined;
  }
  const host = URL.parse(`http://${address.slice(at + 1)}`);
  const plainHost = host && /^[^/?#:@\\]*$/.test(address.slice(at + 1)) ? host.hostname : '';
  return /^([a-z0-9-]{1,63}\.)+[a-z][a-z0-9-]{0,62}$/.test(plainHost) ? `${local}@${plainHost}` : undefined;
}

function domainOf(from: string): string {
  const address = toAscii(from);
  if (address === undefined) throw new Error('The address that mails come from is not an e-mail address.');
  return address.slice(address.lastIndexOf('@') + 1);
}

/** nodemailer leaves a signature out when the key can't sign: so that is found out now. */
function createSigner({ domain, selector, privateKey }: DkimKey): DKIM {
  const key = createPrivateKey(privateKey);
  if (key.asymmetricKeyType !== 'rsa') throw new Error('The DKIM key has to be an RSA key.');
  return new DKIM({
    domainName: domain,
    keySelector: selector,
    privateKey,
    headerFieldNames: SIGNED_HEADERS.join(':'),
  });
}

function isLoopback(host: string): boolean {
  return host === 'localhost' || host === '::1' || (isIP(host) === 4 && host.startsWith('127.'));
}
