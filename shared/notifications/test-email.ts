/**
 * Test e-mails. Only addresses that an administrator has entered, or that belong to the caller, are accepted, so that no key can send
 * mail to others.
 */
import { type Rejection, rejected } from '../resources.ts';
import { keys } from '../storage/schema.ts';
import type { Table } from '../storage/table.ts';
import { checkEmail, normalizeAddress } from './email-address.ts';
import { toRecipient } from './recipient-fields.ts';
import { readItemsByScope } from './recipient-matching.ts';
import type { NotificationSettings } from './records.ts';
import { findSuppressions } from './suppressions.ts';
import type { EmailTransport, OutgoingEmail } from './types.ts';

/** Maximum number of test e-mails of an account in an hour. */
export const TEST_EMAILS_PER_HOUR = 10;
const HOUR_MS = 3_600_000;
/** Number of attempts to count an e-mail while others are counted. */
const ATTEMPTS = 5;

/** Dependencies of test e-mails. */
export interface TestEmailDeps {
  readonly table: Table;
  /** Epoch ms. */
  readonly now: () => number;
  readonly newId: () => string;
  readonly mailer: Pick<EmailTransport, 'domain' | 'send'>;
}

/** A rendered message, and its address as requested. */
export type TestEmail = Pick<OutgoingEmail, 'subject' | 'html' | 'text' | 'unsubscribeUrl'> & {
  readonly to: string;
  /** Verified address of the signed-in user who requests it. */
  readonly own: string | undefined;
};

/** Outcome of a test e-mail. `message`: why the mail server did not accept it. */
export interface TestEmailResult {
  readonly sent: boolean;
  readonly subject: string;
  readonly message: string | null;
}

/** Sends a test e-mail. Nothing is stored besides the number of test e-mails of the hour. */
export async function sendTestEmail(
  deps: TestEmailDeps,
  settings: NotificationSettings,
  { to, own, ...mail }: TestEmail,
): Promise<TestEmailResult | Rejection> {
  const { table, newId, mailer } = deps;
  const { region, account, branding, replyTo } = settings;
  const checked = checkEmail(to);
  if (checked.kind === 'rejected') return rejected(`to ${checked.rule}.`);
  const { address } = checked;
  if (!(await isOwnAddress(table, settings, address, own))) {
    return rejected(
      'to must be the address of the signed-in user, the reply-to address of the settings, or the address of a recipient who gets messages about all jobs of the account.',
    );
  }
  const [suppression] = await findSuppressions(table, [{ ref: settings, channel: 'email', address }]);
  if (suppression) return rejected('to is a suppressed address. Lift its suppression first.');
  if (!(await count(deps, settings))) {
    const reason = `The account has sent ${TEST_EMAILS_PER_HOUR} test e-mails in this hour. Retry in the next hour.`;
    return { kind: 'conflict', reason };
  }
  const id = `test-${newId()}`;
  const subject = `[Test] ${mail.subject}`;
  const outcome = await mailer.send({
    ...mail,
    ...{ subject, replyTo, references: [], messageId: `${id}@${mailer.domain}` },
    fromName: branding.name,
    to: { name: null, address },
    tags: { region, account, message: id },
  });
  const sent = outcome.kind === 'accepted';
  return { sent, subject, message: sent ? null : outcome.reason };
}

async function isOwnAddress(
  table: Table,
  settings: NotificationSettings,
  address: string,
  own: string | undefined,
): Promise<boolean> {
  const isSame = (other: string | null | undefined) =>
    typeof other === 'string' && normalizeAddress('email', other) === normalizeAddress('email', address);
  if (isSame(own) || isSame(settings.replyTo)) return true;
  const recipients = await readItemsByScope(table, settings, { for: 'account' });
  return recipients.some((item) => isSame(toRecipient(settings, item).email));
}

/** Counts a test e-mail of the current hour. Returns `false` if the account has sent all that it may. */
async function count(
  { table, now }: Pick<TestEmailDeps, 'table' | 'now'>,
  settings: NotificationSettings,
): Promise<boolean> {
  const hour = Math.floor(now() / HOUR_MS);
  const key = keys.testEmails(settings);
  for (let attempt = 0; attempt < ATTEMPTS; attempt += 1) {
    const item = await table.get(key);
    const before = item?.hour === hour ? Number(item.sent ?? 0) : 0;
    if (before >= TEST_EMAILS_PER_HOUR) return false;
    const ttl = Math.ceil((now() + 2 * HOUR_MS) / 1000);
    const outcome = await table.write({
      update: key,
      set: { hour, sent: before + 1, ttl },
      when: item
        ? [
            ['hour', '=', Number(item.hour)],
            ['sent', '=', Number(item.sent)],
          ]
        : [['pk', 'absent']],
    });
    if (outcome.done) return true;
  }
  return false;
}
