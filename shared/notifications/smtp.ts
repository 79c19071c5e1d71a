/** E-mail transport by an SMTP server, for self-hosted Jobwire. */
import { createPrivateKey } from 'node:crypto';
import { Readable } from 'node:stream';
import { buffer } from 'node:stream/consumers';
import { createTransport } from 'nodemailer';
import DKIM from 'nodemailer/lib/dkim';
import { findCode, formatCode } from '../error-codes.ts';
import { isLoopbackHost } from '../loopback.ts';
import { compose, getDomain, INVALID_ADDRESS, parseSender, toAsciiAddress } from './email.ts';
import type { ChannelProblem, EmailTransport, SendOutcome } from './types.ts';

export interface SmtpConfig {
  /** Sender address. Its domain is used in message ids. */
  readonly from: string;
  readonly host: string;
  readonly port: number;
  /** TLS from the first byte (port 465); otherwise STARTTLS where the server offers it. */
  readonly secure?: boolean;
  readonly user?: string;
  readonly password?: string;
  readonly dkim?: DkimKey;
  /** PEM of a private certificate authority. */
  readonly ca?: string;
  /** Maximum number of concurrent mails, each on its own connection. */
  readonly connections?: number;
  /** Time without a response from the server after which a mail is abandoned. */
  readonly silenceMs?: number;
  /** Maximum duration of a send. */
  readonly timeoutMs?: number;
}

export interface DkimKey {
  readonly domain: string;
  readonly selector: string;
  /** PEM of an RSA key. */
  readonly privateKey: string;
}

/** Creates a transport with persistent connections to one server. Throws for an invalid config. */
export function createSmtpTransport(config: SmtpConfig): EmailTransport {
  const { connections = 4 } = config;
  const { silenceMs = 40_000, timeoutMs = 55_000 } = config;
  const from = parseSender(config.from);
  const domain = getDomain(from);
  const signer = config.dkim && createSigner(config.dkim);
  const stages = new WeakMap<object, Handover>();
  const mailer = createTransport({
    pool: true,
    ...toServer(config),
    name: domain,
    maxConnections: connections,
    // Retries of mails whose connection was found closed before the server asked for them.
    maxRequeues: 2,
    connectionTimeout: Math.min(15_000, silenceMs),
    greetingTimeout: Math.min(15_000, silenceMs),
    socketTimeout: silenceMs,
    disableFileAccess: true,
    disableUrlAccess: true,
  });
  mailer.use('stream', (mail, done) => {
    const stage = stages.get(mail.data.envelope as object);
    // The mail is composed already. Parsing and composing it again costs as much as sending it.
    if (stage && mail.message) mail.message.createReadStream = () => toStream(stage);
    done();
  });

  return {
    ...{ domain, connections },
    async send(mail) {
      const address = toAsciiAddress(mail.to.address);
      if (address === undefined) return INVALID_ADDRESS;
      const composed = await compose(mail, from, address);
      const raw = signer ? await buffer(signer.sign(composed)) : composed;
      const envelope = { from, to: [address] };
      const stage: Handover = { raw, at: 'connecting' };
      stages.set(envelope, stage);
      try {
        const { response } = await mailer.sendMail({ envelope, raw, signal: AbortSignal.timeout(timeoutMs) });
        return { kind: 'accepted', providerId: QUEUE_ID.exec(response)?.[1] ?? null };
      } catch (cause) {
        return classifySmtpError(cause as SmtpError, stage.at);
      }
    },
    close: () => mailer.close(),
  };
}

type ServerConfig = Pick<SmtpConfig, 'host' | 'port' | 'secure' | 'user' | 'password' | 'ca'>;

/** Returns the options of nodemailer that describe the server. */
function toServer({ host, port, secure = false, user, password, ca }: ServerConfig) {
  return {
    ...{ host, port, secure },
    ...(user === undefined ? {} : { auth: { user, pass: password ?? '' } }),
    // Passwords are never sent unencrypted. On loopback no third party can read them.
    requireTLS: !secure && user !== undefined && !isLoopbackHost(host),
    ...(ca === undefined ? {} : { tls: { ca } }),
  };
}

/**
 * Connects to the server and signs in, without sending a mail. `timeoutMs`: of each step. `onLogin` is called if the server accepts the
 * login. A server that offers no login is used without one. `undefined`: no problem.
 */
export async function checkSmtp(
  config: ServerConfig,
  timeoutMs: number,
  onLogin: () => void = () => {},
): Promise<ChannelProblem | undefined> {
  const mailer = createTransport({
    ...toServer(config),
    // nodemailer reports a login only to its log.
    logger: { info: (entry: { readonly action?: unknown }) => entry.action === 'authenticated' && onLogin() },
    ...{ connectionTimeout: timeoutMs, greetingTimeout: timeoutMs },
    ...{ socketTimeout: timeoutMs, dnsTimeout: timeoutMs },
  });
  try {
    await mailer.verify();
    return undefined;
  } catch (cause) {
    return describeProblem(`The mail server ${config.host}:${config.port}`, cause as SmtpError);
  } finally {
    mailer.close();
  }
}

function describeProblem(server: string, cause: SmtpError): ChannelProblem {
  const code = findCode(cause);
  if (cause.code === 'EAUTH') {
    const login = 'notifications.smtp.user and notifications.smtp.password';
    return cause.responseCode === undefined
      ? { message: `${server} supports none of the login methods of Jobwire.`, fix: `Check ${login}.` }
      : { message: `${server} rejects the user or the password.`, fix: `Correct ${login}.` };
  }
  const address = 'notifications.smtp.host and notifications.smtp.port';
  if (cause.code === 'EDNS') {
    return {
      message: `${server} can’t be reached${formatCode(code)}.`,
      fix: 'Correct notifications.smtp.host, or check the DNS of this machine.',
    };
  }
  if (isTlsFailure(cause)) {
    return {
      message: `${server} responds, but TLS failed${formatCode(code)}.`,
      fix: `Check notifications.smtp.secure (true for port 465, otherwise false), and that Node trusts the certificate (NODE_EXTRA_CA_CERTS).`,
    };
  }
  if (cause.code === 'ETIMEDOUT') {
    return {
      message: `${server} does not respond in time.`,
      fix: `Check ${address}, notifications.smtp.secure (true for port 465), and firewalls. Many networks block port 25.`,
    };
  }
  const answer = cause.responseCode === undefined ? formatCode(code) : ` (SMTP ${cause.responseCode})`;
  return {
    message: `${server} can’t be used${answer}.`,
    fix: `Check ${address}, and that this machine may connect there.`,
  };
}

/** Returns whether TLS failed. nodemailer reports some of these failures as those of a socket. */
function isTlsFailure(cause: SmtpError): boolean {
  return cause.code === 'ETLS' || /^(ERR_SSL_|ERR_TLS_|EPROTO$)|CERT|SIGNATURE/.test(findCode(cause) ?? '');
}

/** Id of the mail in the server's own log, in the format of Postfix, Exim and most others. */
const QUEUE_ID = /\b(?:queued as |id=)([\w.-]{1,100})/i;

/** Progress of a mail: no session yet, in a session, all bytes sent to the server. */
type Stage = 'connecting' | 'talking' | 'handed';

interface Handover {
  readonly raw: Buffer;
  at: Stage;
}

/** Returns the bytes of a mail as a stream. They are read only when the server accepts the mail. */
function toStream(stage: Handover): Readable {
  stage.at = 'talking';
  return Readable.from([stage.raw], { objectMode: false }).once('end', () => {
    stage.at = 'handed';
  });
}

type SmtpError = Error & {
  readonly code?: string;
  readonly command?: string;
  readonly response?: string;
  readonly responseCode?: number;
};

/** Classifies an error. Before the recipient is named it concerns all mails, afterwards this one. */
function classifySmtpError(cause: SmtpError, stage: Stage): SendOutcome {
  const { code, command = '', response = '', responseCode } = cause;
  if (responseCode === undefined) {
    const why = formatCode(findCode(cause));
    if (stage === 'handed') {
      return { kind: 'unknown', reason: `The mail server did not confirm the mail${why}.` };
    }
    const reason = isTlsFailure(cause)
      ? `TLS with the mail server failed${why}.`
      : code === 'EAUTH'
        ? 'The mail server requires an unsupported authentication method.'
        : stage === 'talking'
          ? `The connection to the mail server was lost${why}.`
          : `The mail server could not be reached${why}.`;
    return { kind: 'later', reason, everything: stage === 'connecting' };
  }
  const status = /^\d{3}[ -]([245]\.\d{1,3}\.\d{1,3})\b/.exec(response)?.[1];
  const answer = status === undefined ? `${responseCode}` : `${responseCode} ${status}`;
  if (code === 'EAUTH' || [530, 534, 535, 538].includes(responseCode)) {
    return { kind: 'later', reason: `The mail server rejected the login (${answer}).`, everything: true };
  }
  if (stage === 'connecting' || command === 'MAIL FROM') {
    return {
      kind: 'later',
      reason: `The mail server accepts no mail from this sender (${answer}).`,
      everything: true,
    };
  }
  if (responseCode < 500 || responseCode === 503) {
    return {
      kind: 'later',
      reason: `The mail server deferred the mail (${answer}).`,
      everything: false,
    };
  }
  if (status !== undefined && NO_SUCH_ADDRESS.test(status)) {
    return { kind: 'rejected', reason: `The address does not exist (${answer}).`, address: 'bounced' };
  }
  return { kind: 'rejected', reason: `The mail server rejected the mail (${answer}).` };
}

/** Enhanced status codes (RFC 3463, RFC 7505) of addresses that accept no mail. A full mailbox (5.2.2) may be emptied. */
const NO_SUCH_ADDRESS = /^5\.(1\.(1|2|3|6|10)|2\.1)$/;

/**
 * Headers that identify sender, recipient and content. Our own are excluded, because servers of SES or of a mailing list may remove them.
 */
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
  // RFC 8058, 4: both have to be signed for one-click unsubscribe. nodemailer's own list lacks the second.
  'List-Unsubscribe',
  'List-Unsubscribe-Post',
];

/** Creates a signer. nodemailer omits the signature if the key is unusable, so the key is tested here. */
function createSigner({ domain, selector, privateKey }: DkimKey): DKIM {
  const key = createPrivateKey(privateKey);
  if (key.asymmetricKeyType !== 'rsa') throw new Error('The DKIM key must be an RSA key.');
  return new DKIM({
    domainName: domain,
    keySelector: selector,
    privateKey,
    headerFieldNames: SIGNED_HEADERS.join(':'),
  });
}
