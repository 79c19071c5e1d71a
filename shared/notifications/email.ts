/** E-mails as bytes, and validation of their addresses. The same for every transport. */
import MailComposer from 'nodemailer/lib/mail-composer';
import { checkEmail } from './email-address.ts';
import { MESSAGE_HEADER } from './ses-feedback.ts';
import type { OutgoingEmail, SendOutcome } from './types.ts';

/** Maximum number of message ids in `References`: the first one and the last ones. Header length is limited. */
const MAX_REFERENCES = 20;

/** Composes the MIME message, both addresses by {@link toAsciiAddress}: ASCII, with lines that mail servers accept. */
export function compose(mail: OutgoingEmail, from: string, to: string): Promise<Buffer> {
  const { messageId, references, unsubscribeUrl, tags } = mail;
  const [first, ...rest] = references.map((id) => `<${id}>`);
  const last = references.at(-1);
  const replyTo = mail.replyTo === null ? undefined : toAsciiAddress(mail.replyTo);
  const composer = new MailComposer({
    from: { name: toLine(mail.fromName), address: from },
    to: { name: toLine(mail.to.name ?? ''), address: to },
    ...(replyTo === undefined ? {} : { replyTo: { name: '', address: replyTo } }),
    subject: toLine(mail.subject),
    messageId: `<${messageId}>`,
    ...(first === undefined || last === undefined
      ? {}
      : { inReplyTo: `<${last}>`, references: [first, ...rest.slice(1 - MAX_REFERENCES)] }),
    headers: {
      // RFC 3834: no out-of-office answers.
      'Auto-Submitted': 'auto-generated',
      'X-Auto-Response-Suppress': 'All',
      [MESSAGE_HEADER]: `${tags.region}/${tags.account}/${tags.message}`,
      ...(unsubscribeUrl === null
        ? {}
        : {
            'List-Unsubscribe': { prepared: true, value: `<${new URL(unsubscribeUrl).href}>` },
            'List-Unsubscribe-Post': { prepared: true, value: 'List-Unsubscribe=One-Click' },
          }),
    },
    text: mail.text,
    html: mail.html,
    // Quoted-printable keeps lines short and all bytes ASCII, for any content.
    encoding: 'quoted-printable',
    newline: 'win',
    disableFileAccess: true,
    disableUrlAccess: true,
  });
  return composer.compile().build();
}

/** Returns the text as a single line without control characters. */
function toLine(text: string): string {
  return text
    .replace(/[\p{Cc}\u2028\u2029]+/gu, ' ')
    .replace(/ {2,}/g, ' ')
    .trim();
}

/**
 * Returns an address that every mail server accepts, with its domain in ASCII. `undefined` for an invalid address and for one that requires
 * SMTPUTF8.
 */
export function toAsciiAddress(address: string): string | undefined {
  const checked = checkEmail(address);
  return checked.kind === 'checked' && address === address.trim() ? checked.address : undefined;
}

/** Returns the address that mails are sent from. Throws if it is invalid. */
export function parseSender(from: string): string {
  const address = toAsciiAddress(from);
  if (address === undefined) throw new Error('The sender address is not a valid e-mail address.');
  return address;
}

export function getDomain(address: string): string {
  return address.slice(address.lastIndexOf('@') + 1);
}

/** Outcome of a mail to an invalid address. */
export const INVALID_ADDRESS: SendOutcome = {
  kind: 'rejected',
  reason: 'The recipient’s address is not a valid e-mail address.',
};
