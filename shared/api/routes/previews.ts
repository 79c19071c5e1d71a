/** Previews of messages, and test messages to addresses of the account itself. */
import { randomUUID } from 'node:crypto';
import * as z from 'zod';
import { SettingsInput, TemplateInput, zone as zoneName } from '../../notifications/notification-input.ts';
import { ChannelName, Kind, LocaleName, Preview } from '../../notifications/notification-views.ts';
import { readRecipient } from '../../notifications/recipients.ts';
import type { NotificationSettings as Settings } from '../../notifications/records.ts';
import { previewRenderer } from '../../notifications/rendering.ts';
import { sampleNotice } from '../../notifications/samples.ts';
import { readSettings } from '../../notifications/settings.ts';
import {
  type EmailTemplate,
  emailTemplateSchema,
  type SmsTemplate,
  smsTemplateSchema,
} from '../../notifications/template.ts';
import { resolveTemplate } from '../../notifications/templates.ts';
import { sendTestEmail, TEST_EMAILS_PER_HOUR } from '../../notifications/test-email.ts';
import type { Channel, ContentKind, JobFacts, NoticeContent } from '../../notifications/types.ts';
import { PREVIEW_TOKEN } from '../../notifications/unsubscribe.ts';
import { getRegionDefaults } from '../../region-defaults.ts';
import { textOrNull } from '../../representation.ts';
import { type Rejection, rejected } from '../../resources.ts';
import type { AccountRef } from '../../storage/schema.ts';
import { type Checked, checkInput, existingId, jobNumber } from '../../validation.ts';
import { accountSubject } from '../access.ts';
import { readJob } from '../jobs.ts';
import { roleAllows } from '../key-input.ts';
import { problem } from '../problems.ts';
import { createRouteFactory, type Route, type RouteParts, type Subject, toFieldResult } from '../route.ts';

const route = createRouteFactory('Notifications');

/** Notification settings of an account. Default if none are stored: the defaults of the region, disabled. */
export const settingsSubject: Subject<Settings> = {
  params: accountSubject.params,
  getRevision: ({ revision }) => revision,
  async find(lookup, parts) {
    const found = await accountSubject.find(lookup, parts);
    if (found instanceof Response) return found;
    const { region, account } = found;
    const saved = await readSettings(parts.feed.table, found);
    const { locale, zone } = getRegionDefaults(region);
    const rest = SettingsInput.parse({ enabled: false, branding: { name: account } });
    return saved ?? { ...rest, region, account, locale, zone, since: 0, revision: 0 };
  },
};

/** Content of a message. */
const kind = Kind.describe('Kind of message.');
const content = {
  locale: LocaleName.optional().describe('Locale. Default: that of the recipient, or of the account.'),
  zone: zoneName
    .optional()
    .describe('Time zone (IANA name). Default: that of the recipient, or of the account.'),
  jobNumber: jobNumber.optional().describe('Number of a job of the account. Default: sample jobs.'),
  recipient: existingId.optional().describe('Id of the recipient whose name, locale and zone are used.'),
};
const PreviewRequest = z
  .strictObject({
    kind,
    channel: ChannelName.describe('Channel of the message.'),
    ...content,
    template: TemplateInput.optional().describe('Template to use instead of the stored one.'),
  })
  .meta({ id: 'PreviewRequest' });
const TestEmail = z
  .strictObject({
    to: z
      .string('must be an e-mail address')
      .max(320, 'must be an e-mail address')
      .describe(
        'Address of the signed-in user, reply-to address of the settings, or address of a recipient who gets messages about all jobs of the account.',
      ),
    kind,
    ...content,
    template: TemplateInput.optional().describe(
      'Template to use instead of the stored one. Requires the role `admin`.',
    ),
  })
  .meta({ id: 'TestEmailRequest' });
const TestEmailResult = z
  .object({
    sent: z.boolean(),
    subject: z.string(),
    message: textOrNull.describe('Why the mail server did not accept the e-mail. `null`: accepted.'),
  })
  .meta({ id: 'TestEmailResult' });

/** Routes of previews and test messages. */
export const previewRoutes: readonly Route[] = [
  route(
    {
      method: 'post',
      path: '/v1/accounts/{id}/notifications/preview',
      id: 'previewMessage',
      summary: 'Preview a message',
      description: 'Renders a message for a job or for sample data. Nothing is sent.',
      role: 'operate',
      subject: settingsSubject,
      repeatable: true,
      body: PreviewRequest,
      example: { kind: 'dispatched', channel: 'email', locale: 'en-GB' },
      answer: { description: 'The rendered message.', schema: Preview },
      problems: ['unprocessable-content'],
    },
    async ({ subject, body }, parts) => toFieldResult(await renderPreview(subject, body, parts), 'preview'),
  ),
  route(
    {
      method: 'post',
      path: '/v1/accounts/{id}/notifications/test',
      id: 'sendTestEmail',
      summary: 'Send a test e-mail',
      description: `Renders an e-mail as for a preview, adds \`[Test]\` before the subject, and sends it. The message history does not contain it. Nothing is sent to suppressed addresses. An account can send ${TEST_EMAILS_PER_HOUR} test e-mails per clock hour (UTC).`,
      role: 'operate',
      subject: settingsSubject,
      body: TestEmail,
      example: { to: 'orders@acme.example', kind: 'dispatched', locale: 'en-GB' },
      answer: { description: 'The result.', schema: TestEmailResult },
      problems: ['conflict', 'unprocessable-content'],
    },
    async ({ c, caller, subject: settings, body: { to, ...request } }, parts) => {
      const { manage, feed, notifications } = parts;
      if (request.template && !roleAllows(caller.role, 'admin')) {
        const detail = 'A test with a template that is not saved requires a key with the role admin.';
        return problem(c, 'forbidden', { detail });
      }
      if (!manage.mailer) return rejected('to cannot be used: no mail server is configured.');
      const rendered = await renderPreview(settings, { ...request, channel: 'email' }, parts);
      if (!('preview' in rendered)) return rendered;
      const { subject, html, text } = rendered.preview;
      const deps = { table: feed.table, now: feed.now, newId: randomUUID, mailer: manage.mailer };
      const unsubscribeUrl = toUnsubscribeUrl(notifications);
      const mail = { subject: subject ?? '', html: html ?? '', text, unsubscribeUrl };
      const result = await sendTestEmail(deps, settings, { ...mail, to, own: caller.email });
      return 'sent' in result ? { body: result } : result;
    },
  ),
];

/** The link of a preview, which has no recipient to unsubscribe. */
export const toUnsubscribeUrl = ({ publicUrl }: RouteParts['notifications']): string =>
  `${publicUrl}/v1/unsubscribe/${PREVIEW_TOKEN}`;

/** Renders a message. */
async function renderPreview(
  settings: Settings,
  request: z.output<typeof PreviewRequest>,
  { feed, notifications }: RouteParts,
): Promise<{ readonly preview: z.output<typeof Preview> } | Rejection> {
  const { kind, channel, jobNumber } = request;
  const recipient =
    request.recipient === undefined ? null : await readRecipient(feed.table, settings, request.recipient);
  if (recipient === undefined) return rejected('recipient must be the id of a recipient of this account.');
  const notice =
    jobNumber === undefined ? sampleNotice(kind) : await readNoticeContent(feed, settings, kind, jobNumber);
  if (!notice) return rejected('jobNumber must be the number of a stored job.');
  const locale = request.locale ?? recipient?.locale ?? settings.locale;
  const zone = request.zone ?? recipient?.zone ?? settings.zone;
  const stored = await resolveTemplate(feed.table, settings, kind, channel, locale);
  const checked = request.template && checkTemplateInput(channel, request.template);
  if (checked?.kind === 'rejected') return { ...checked, reason: `template.${checked.reason}` };
  const template = checked?.value ?? stored;
  const input = {
    content: notice,
    recipient: { name: recipient?.name ?? null, locale, zone },
    branding: settings.branding,
    replyTo: settings.replyTo,
    unsubscribeUrl: toUnsubscribeUrl(notifications),
    ...(template === undefined ? {} : { template }),
  };
  const common = {
    ...{ kind, channel, locale, zone },
    jobNumber: jobNumber ?? null,
    custom: stored !== undefined && checked === undefined,
  };
  if (channel === 'email') {
    const mail = await previewRenderer.email(input, settings.account);
    if (mail.kind === 'failed') return toRejection(mail.reason, checked !== undefined);
    return { preview: { ...common, ...mail.value, segments: null, encoding: null } };
  }
  const sms = await previewRenderer.sms(input, settings.account);
  if (sms.kind === 'failed') return toRejection(sms.reason, checked !== undefined);
  return { preview: { ...common, subject: null, html: null, ...sms.value } };
}

/** Checks a template of a channel. */
export function checkTemplateInput(channel: Channel, raw: object): Checked<EmailTemplate | SmsTemplate> {
  if (channel === 'email') return checkInput<EmailTemplate>(emailTemplateSchema, raw);
  const other = Object.keys(raw).find((field) => field !== 'text');
  return other === undefined
    ? checkInput(smsTemplateSchema, raw)
    : rejected(`${other} is not a field of SMS templates, which have only text.`);
}

/** Returns a rendering failure (`field: reason`) as a rejection. `given`: the template was part of the request. */
function toRejection(reason: string, given: boolean) {
  const [field = 'text', ...what] = reason.split(': ');
  const text = given
    ? `template.${field} cannot be rendered: ${what.join(': ')}.`
    : `The template failed: ${reason}`;
  return { kind: 'rejected' as const, reason: text };
}

/** Returns the current facts of a job for a message. */
export async function readNoticeContent(
  feed: Parameters<typeof readJob>[0] & { readonly now: () => number },
  ref: AccountRef,
  kind: ContentKind,
  jobNumber: number,
): Promise<NoticeContent | undefined> {
  const found = await readJob(feed, ref, jobNumber);
  if (!found) return undefined;
  const { orderNumber, orderGroup, description, dateOut, dateDue, tracking } = found.job;
  const facts: JobFacts = {
    ...{ jobNumber, orderNumber, description, dateOut, dateDue },
    formerDateDue: null,
    tracking: tracking.map(({ number, link }) => ({
      number,
      link: /^https?:/i.test(link ?? '') ? link : null,
    })),
  };
  return { kind, orderGroup, jobs: [facts], observedAt: feed.now() };
}
