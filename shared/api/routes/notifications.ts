/**
 * Notification routes: settings, templates and messages of an account.
 * One file: the routes share their tags, permissions and problem texts.
 */

import * as z from 'zod';
import { getRegionDefaults } from '../../notifications/addresses.ts';
import { listMessages, readMessage } from '../../notifications/message-history.ts';
import { isMessageId } from '../../notifications/message-ids.ts';
import { SettingsInput, TemplateInput, zone as zoneName } from '../../notifications/notification-input.ts';
import {
  ChannelName,
  Kind,
  ListedTemplate,
  LocaleName,
  Message,
  NotificationSettings,
  Preview,
  Template,
  Upcoming,
} from '../../notifications/notification-views.ts';
import { readRecipient } from '../../notifications/recipients.ts';
import type {
  Message as MessageRecord,
  NotificationSettings as Settings,
} from '../../notifications/records.ts';
import { previewRenderer } from '../../notifications/rendering.ts';
import { sampleNotice } from '../../notifications/samples.ts';
import { readSettings, saveSettings } from '../../notifications/settings.ts';
import {
  type EmailTemplate,
  emailTemplateSchema,
  type SmsTemplate,
  smsTemplateSchema,
  type TemplatePlace,
} from '../../notifications/template.ts';
import {
  defaultTemplate,
  deleteTemplate,
  listTemplates,
  readTemplate,
  resolveTemplate,
  type StoredTemplate,
  saveTemplate,
} from '../../notifications/templates.ts';
import { listUpcoming } from '../../notifications/thread-store.ts';
import {
  type Channel,
  channels,
  type JobFacts,
  locales,
  type MessageKind,
  messageKinds,
  type NoticeContent,
} from '../../notifications/types.ts';
import { rejected } from '../../resources.ts';
import type { AccountRef } from '../../storage/schema.ts';
import { type Checked, checkInput, existingId } from '../../validation.ts';
import { ofAccount } from '../access.ts';
import { readJob } from '../jobs.ts';
import type { Caller } from '../keys.ts';
import { toMessageResponse, toSettingsResponse } from '../notification-responses.ts';
import { afterBy, afterId, decodePlace, encodePlace, limit, nextCursor, one } from '../parameters.ts';
import { problem } from '../problems.ts';
import { defineResource, pageAnswer } from '../resource.ts';
import { type Route, route, type Subject } from '../route.ts';
import { jobParams } from './jobs.ts';
import { recipientSubject } from './recipients.ts';

const MASKED = 'Addresses are masked for keys with the role `read`.';

/** Notification settings of an account. Default if none are stored: the defaults of the region, disabled. */
const settingsSubject: Subject<Settings> = {
  params: ofAccount.params,
  getRevision: ({ revision }) => revision,
  async find(asked, parts) {
    const found = await ofAccount.find(asked, parts);
    if (found instanceof Response) return found;
    const { region, account } = found;
    const saved = await readSettings(parts.feed.table, found);
    const { locale, zone } = getRegionDefaults(region);
    const rest = SettingsInput.parse({ enabled: false, branding: { name: account } });
    return saved ?? { ...rest, region, account, locale, zone, since: 0, revision: 0 };
  },
};

/** A message of an account. */
const messageSubject: Subject<MessageRecord> = {
  params: { ...ofAccount.params, message: one.describe('Id of the message.') },
  async find(asked, parts) {
    const ref = await ofAccount.find(asked, parts);
    if (ref instanceof Response) return ref;
    const { message = '' } = asked.params;
    const found = isMessageId(message)
      ? await readMessage(parts.notifications.history, ref, message)
      : undefined;
    return found ?? problem(asked.c, 'not-found', { detail: 'There is no such message of this account.' });
  },
};

const settingsRoutes = defineResource({
  ...{ name: 'settings', names: 'settings', one: 'the notification settings of an account' },
  ...{
    title: 'NotificationSettings',
    tag: 'Notifications',
    path: '/v1/accounts/{id}/notifications',
    item: '',
  },
  ...{ current: 'The settings.', schema: NotificationSettings, of: settingsSubject },
  view: (record, _caller, { notifications }) => toSettingsResponse(record, notifications.channels),
});

const templateParams = z.object({
  kind: Kind.describe('Kind of message.'),
  channel: ChannelName.describe('Channel of the message.'),
  locale: LocaleName.describe('Locale of the message.'),
});

const messagesAnswer = {
  status: 200,
  description: 'A page of messages.',
  schema: z.object({ messages: z.array(Message), next: nextCursor }),
} as const;
const pageOnly = z.strictObject({ limit, after: afterId('messages', isMessageId) });

/** All notification routes, except those of recipients and suppressions. */
export const notificationRoutes: readonly Route[] = [
  settingsRoutes.get({
    description: 'Returns the defaults, with `enabled` set to `false`, if no settings are stored.',
  }),
  settingsRoutes.act(
    '',
    {
      ...{ method: 'put', id: 'saveNotificationSettings', role: 'admin' },
      summary: 'Replace the notification settings of an account',
      description:
        'Replaces all settings. Omitted fields get their default values. Customers are not notified of changes that were observed before notifications were enabled.',
      body: SettingsInput,
      example: {
        enabled: true,
        branding: { name: 'Acme Print', color: '#1a73e8' },
        replyTo: 'orders@acme.example',
        sms: { enabled: true, quietHours: { from: '21:00', to: '08:00' } },
      },
    },
    ({ subject, body, expected }, { manage }) => saveSettings(manage.endpoints, subject, body, expected),
  ),
  route(
    {
      method: 'post',
      path: '/v1/accounts/{id}/notifications/preview',
      id: 'previewMessage',
      tag: 'Notifications',
      summary: 'Preview a message',
      description: 'Renders a message for a job of the account or for sample data. Nothing is sent.',
      role: 'operate',
      of: settingsSubject,
      repeatable: true,
      body: z
        .strictObject({
          kind: Kind.describe('Kind of message.'),
          channel: ChannelName.describe('Channel of the message.'),
          locale: LocaleName.optional().describe(
            'Locale. Default: the locale of the recipient, or of the account.',
          ),
          zone: zoneName
            .optional()
            .describe('Time zone (IANA name). Default: the zone of the recipient, or of the account.'),
          jobNumber: z
            .int('must be the number of a job')
            .min(1, 'must be the number of a job')
            .max(999_999_999_999, 'must be the number of a job')
            .optional()
            .describe('Number of a job of the account. Default: sample jobs.'),
          recipient: existingId
            .optional()
            .describe('Id of the recipient whose name, locale and zone are used.'),
          template: TemplateInput.optional().describe('Template to use instead of the stored one.'),
        })
        .meta({ id: 'PreviewRequest' }),
      example: { kind: 'dispatched', channel: 'email', locale: 'en-GB' },
      answer: { status: 200, description: 'The rendered message.', schema: Preview },
      problems: ['unprocessable-content'],
    },
    async ({ subject: settings, body }, { feed, notifications }) => {
      const { kind, channel, jobNumber } = body;
      const recipient =
        body.recipient === undefined ? null : await readRecipient(feed.table, settings, body.recipient);
      if (recipient === undefined) {
        return rejected('recipient must be the id of a recipient of this account.');
      }
      const content =
        jobNumber === undefined
          ? sampleNotice(kind)
          : await readNoticeContent(feed, settings, kind, jobNumber);
      if (!content) return rejected('jobNumber must be the number of a stored job.');
      const locale = body.locale ?? recipient?.locale ?? settings.locale;
      const zone = body.zone ?? recipient?.zone ?? settings.zone;
      const stored = await resolveTemplate(feed.table, settings, kind, channel, locale);
      const checked = body.template && checkTemplateInput(channel, body.template);
      if (checked?.kind === 'rejected') {
        return { ...checked, reason: `template.${checked.reason}` };
      }
      const template = checked?.value ?? stored;
      const input = {
        content,
        recipient: { name: recipient?.name ?? null, locale, zone },
        branding: settings.branding,
        replyTo: settings.replyTo,
        // A placeholder link: a preview has no recipient to unsubscribe.
        unsubscribeUrl: `${notifications.publicUrl}/v1/unsubscribe/preview`,
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
        return { body: { ...common, ...mail.value, segments: null, encoding: null } };
      }
      const sms = await previewRenderer.sms(input, settings.account);
      if (sms.kind === 'failed') return toRejection(sms.reason, checked !== undefined);
      return { body: { ...common, subject: null, html: null, ...sms.value } };
    },
  ),
  route(
    {
      method: 'get',
      path: '/v1/accounts/{id}/templates',
      id: 'listTemplates',
      tag: 'Notifications',
      summary: 'List templates of an account',
      description:
        'Returns one entry for each kind, channel and locale. `custom` marks the custom templates of the account.',
      role: 'read',
      of: ofAccount,
      query: z.strictObject({ limit, after: afterBy('templates', decodeTemplatePlace) }),
      answer: pageAnswer('templates', ListedTemplate, 'A page of templates.'),
    },
    async ({ subject, query: { limit: most, after = 0 } }, { feed }) => {
      const own = await listTemplates(feed.table, subject);
      const page = places.slice(after, after + most);
      const templates = page.map((place) => {
        const found = own.find((one) => isSamePlace(one, place));
        return { ...place, custom: found !== undefined, changedAt: found?.changedAt ?? null };
      });
      const last = page.at(-1);
      const next = last && places.length > after + most ? encodePlace(toTemplateName(last)) : null;
      return { body: { templates, next } };
    },
  ),
  route(
    {
      method: 'get',
      path: '/v1/accounts/{id}/templates/{kind}/{channel}/{locale}',
      id: 'getTemplate',
      tag: 'Notifications',
      summary: 'Get a template',
      description: 'Returns the custom template of the account, or the default template.',
      role: 'read',
      of: ofAccount,
      params: templateParams,
      answer: { status: 200, description: 'The template.', schema: Template },
    },
    async ({ subject, params }, { feed }) => {
      const stored = await readTemplate(feed.table, subject, params);
      const template = stored?.template ?? defaultTemplate(params.kind, params.channel, params.locale);
      return toTemplateResult(params, template, stored?.changedAt ?? null);
    },
  ),
  route(
    {
      method: 'put',
      path: '/v1/accounts/{id}/templates/{kind}/{channel}/{locale}',
      id: 'saveTemplate',
      tag: 'Notifications',
      summary: 'Save a custom template',
      description:
        'Saves a Liquid template. Jobwire renders it with several sample jobs and rejects it if a rendering fails. The template also applies to other locales of the same language that have no custom template.',
      role: 'admin',
      of: ofAccount,
      params: templateParams,
      body: TemplateInput,
      example: { subject: '{{ order }} is on its way', intro: 'Hello {{ name }}, it has left us.' },
      answer: { status: 200, description: 'The template.', schema: Template },
      problems: ['unprocessable-content'],
    },
    async ({ subject, params, body }, { feed }) => {
      const checked = checkTemplateInput(params.channel, body);
      if (checked.kind === 'rejected') return checked;
      const outcome = await saveTemplate(feed.table, subject, params, checked.value, feed.now());
      if (outcome.kind === 'saved') {
        return toTemplateResult(params, outcome.stored.template, outcome.stored.changedAt);
      }
      const [first] = outcome.problems;
      return rejected(formatProblem(first));
    },
  ),
  route(
    {
      method: 'delete',
      path: '/v1/accounts/{id}/templates/{kind}/{channel}/{locale}',
      id: 'deleteTemplate',
      tag: 'Notifications',
      summary: 'Delete a custom template',
      description: 'The default template applies again.',
      role: 'admin',
      of: ofAccount,
      params: templateParams,
      answer: { status: 204, description: 'The custom template is deleted, or did not exist.' },
    },
    async ({ subject, params }, { feed }) => {
      await deleteTemplate(feed.table, subject, params);
      return { body: undefined };
    },
  ),
  route(
    {
      method: 'get',
      path: '/v1/accounts/{id}/messages',
      id: 'listMessages',
      tag: 'Notifications',
      summary: 'List messages of an account',
      description: `Returns messages, newest first. Includes messages that were not sent, with the reason. ${MASKED} With the filter \`state\`, a page can have fewer messages than \`limit\` although further pages follow.`,
      role: 'read',
      of: ofAccount,
      query: pageOnly.extend({
        state: Message.shape.state.optional().describe('Only messages in this state.'),
      }),
      answer: messagesAnswer,
    },
    async ({ caller, subject, query }, { notifications }) =>
      toMessagesPage(caller, await listMessages(notifications.history, subject, query)),
  ),
  route(
    {
      method: 'get',
      path: '/v1/accounts/{id}/messages/{message}',
      id: 'getMessage',
      tag: 'Notifications',
      summary: 'Get a message and its content',
      description: MASKED,
      role: 'read',
      of: messageSubject,
      answer: { status: 200, description: 'The message.', schema: Message },
    },
    ({ caller, subject }) => ({ body: toMessageResponse(subject, caller) }),
  ),
  route(
    {
      method: 'get',
      path: '/v1/accounts/{id}/jobs/{jobNumber}/messages',
      id: 'listJobMessages',
      tag: 'Notifications',
      summary: 'List messages about a job',
      description: `Returns messages, newest first. Includes the messages that will be sent when their notification windows end. ${MASKED}`,
      role: 'read',
      of: ofAccount,
      params: jobParams,
      query: pageOnly,
      answer: {
        ...messagesAnswer,
        schema: messagesAnswer.schema
          .extend({
            upcoming: z
              .array(Upcoming)
              .describe(
                'Messages that will be sent when their notification windows end. Every page contains them.',
              ),
          })
          .meta({ id: 'JobMessagePage' }),
      },
    },
    async ({ caller, subject, params, query }, { feed, notifications }) => {
      const job = Number(params.jobNumber);
      const known = await readJob(feed, subject, job);
      const [page, upcoming] = await Promise.all([
        listMessages(notifications.history, subject, { ...query, job }),
        listUpcoming(feed.table, subject, job, known?.job.orderGroup ?? null),
      ]);
      return { body: { ...toMessagesPage(caller, page).body, upcoming } };
    },
  ),
  route(
    {
      method: 'get',
      path: '/v1/accounts/{id}/recipients/{recipient}/messages',
      id: 'listRecipientMessages',
      tag: 'Notifications',
      summary: 'List messages to a recipient',
      description: `Newest first. ${MASKED}`,
      role: 'read',
      of: recipientSubject,
      query: pageOnly,
      answer: messagesAnswer,
    },
    async ({ caller, subject, query }, { notifications }) => {
      const asked = { ...query, recipient: subject.id };
      return toMessagesPage(caller, await listMessages(notifications.history, subject, asked));
    },
  ),
];

/** Every combination of kind, channel and locale. */
const places: readonly TemplatePlace[] = (Object.keys(messageKinds) as MessageKind[]).flatMap((kind) =>
  channels.flatMap((channel) => locales.map((locale) => ({ kind, channel, locale }))),
);
const isSamePlace = (one: TemplatePlace, { kind, channel, locale }: TemplatePlace): boolean =>
  one.kind === kind && one.channel === channel && one.locale === locale;

const toTemplateName = ({ kind, channel, locale }: TemplatePlace): string => `${kind}/${channel}/${locale}`;

/** Parses a cursor into the number of templates before the page. */
function decodeTemplatePlace(text: string): number | undefined {
  const name = decodePlace(text);
  const at = places.findIndex((place) => toTemplateName(place) === name);
  return at === -1 ? undefined : at + 1;
}

function checkTemplateInput(channel: Channel, raw: object): Checked<EmailTemplate | SmsTemplate> {
  if (channel === 'email') return checkInput<EmailTemplate>(emailTemplateSchema, raw);
  const other = Object.keys(raw).find((field) => field !== 'text');
  return other === undefined
    ? checkInput(smsTemplateSchema, raw)
    : rejected(`${other} is not a field of SMS templates, which have only text.`);
}

/** Returns a template with its place. `changedAt` is `null` for a default template. */
const toTemplateResult = (
  place: TemplatePlace,
  template: StoredTemplate['template'],
  changedAt: number | null,
) => {
  const parts = template as { readonly [part: string]: string };
  return { body: { ...place, template: parts, custom: changedAt !== null, changedAt } };
};

const formatProblem = (problem: { readonly field: string; readonly reason: string } | undefined): string =>
  problem ? `${problem.field} cannot be rendered: ${problem.reason}.` : 'The template cannot be rendered.';

/** Returns a rendering failure (`field: reason`) as a rejection. `given`: the template was part of the request. */
function toRejection(reason: string, given: boolean) {
  const [field = 'text', ...what] = reason.split(': ');
  const text = given
    ? `template.${field} cannot be rendered: ${what.join(': ')}.`
    : `The template failed: ${reason}`;
  return { kind: 'rejected' as const, reason: text };
}

function toMessagesPage(
  caller: Caller,
  { messages, next = null }: { readonly messages: readonly MessageRecord[]; readonly next?: string | null },
) {
  return { body: { messages: messages.map((message) => toMessageResponse(message, caller)), next } };
}

/** Returns the current facts of a job for a message. */
async function readNoticeContent(
  feed: Parameters<typeof readJob>[0] & { readonly now: () => number },
  ref: AccountRef,
  kind: MessageKind,
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
