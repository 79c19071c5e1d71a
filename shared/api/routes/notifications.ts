/**
 * Notification routes: settings, templates and messages of an account.
 * One file: the routes share their tags, permissions and problem texts.
 */

import * as z from 'zod';
import { listMessages, readMessage } from '../../notifications/message-history.ts';
import { isMessageId } from '../../notifications/message-ids.ts';
import { SettingsInput, TemplateInput } from '../../notifications/notification-input.ts';
import {
  ChannelName,
  Kind,
  ListedTemplate,
  LocaleName,
  Message,
  NotificationSettings,
  Template,
  Upcoming,
} from '../../notifications/notification-views.ts';
import type { Message as MessageRecord } from '../../notifications/records.ts';
import { saveSettings } from '../../notifications/settings.ts';
import type { TemplatePlace } from '../../notifications/template.ts';
import {
  defaultTemplate,
  deleteTemplate,
  listTemplates,
  readTemplate,
  type StoredTemplate,
  saveTemplate,
} from '../../notifications/templates.ts';
import { listUpcoming } from '../../notifications/thread-store.ts';
import { channels, locales, type MessageKind, messageKinds } from '../../notifications/types.ts';
import { rejected } from '../../resources.ts';
import type { AccountRef } from '../../storage/schema.ts';
import { accountSubject } from '../access.ts';
import { readJob } from '../jobs.ts';
import type { Caller } from '../keys.ts';
import { toMessageResponse, toSettingsResponse } from '../notification-responses.ts';
import {
  afterBy,
  afterId,
  decodePageCursor,
  encodePageCursor,
  limit,
  nextCursor,
  one,
} from '../parameters.ts';
import { problem } from '../problems.ts';
import { defineResource, pageAnswer } from '../resource.ts';
import { createRouteFactory, type Route, type Subject } from '../route.ts';
import { jobParams } from './jobs.ts';
import { checkTemplateInput, previewRoutes, settingsSubject } from './previews.ts';
import { recipientSubject } from './recipients.ts';

const route = createRouteFactory('Notifications');

/** A message of an account. */
const messageSubject: Subject<MessageRecord> = {
  params: { ...accountSubject.params, message: one.describe('Id of the message.') },
  async find(lookup, parts) {
    const ref = await accountSubject.find(lookup, parts);
    if (ref instanceof Response) return ref;
    const { message = '' } = lookup.params;
    const found = isMessageId(message)
      ? await readMessage(parts.notifications.history, ref, message)
      : undefined;
    return found ?? problem(lookup.c, 'not-found', { detail: 'There is no such message of this account.' });
  },
};

const settingsRoutes = defineResource({
  ...{ name: 'settings', names: 'settings', one: 'the notification settings of an account' },
  ...{ title: 'NotificationSettings', tag: 'Notifications', path: '/v1/accounts/{id}/notifications' },
  ...{ item: '', current: 'The settings.', schema: NotificationSettings, subject: settingsSubject },
  view: (record, _caller, { notifications }) => toSettingsResponse(record, notifications.channels),
});

/** A custom template, or the default template, with the account. `changedAt` is `null` for a default template. */
type FoundTemplate = Omit<StoredTemplate, 'changedAt'> & {
  readonly account: AccountRef;
  readonly changedAt: number | null;
};

const templateSubject: Subject<FoundTemplate> = {
  params: {
    ...accountSubject.params,
    kind: Kind.describe('Kind of message.'),
    channel: ChannelName.describe('Channel of the message.'),
    locale: LocaleName.describe('Locale of the message.'),
  },
  getRevision: ({ revision }) => revision,
  async find(lookup, parts) {
    const account = await accountSubject.find(lookup, parts);
    if (account instanceof Response) return account;
    const { kind, channel, locale } = lookup.params as unknown as TemplatePlace;
    const place = { kind, channel, locale };
    const stored = await readTemplate(parts.feed.table, account, place);
    const template = defaultTemplate(kind, channel, locale);
    return { ...(stored ?? { ...place, template, changedAt: null, revision: 0 }), account };
  },
};

const templates = defineResource({
  ...{ name: 'template', names: 'templates', one: 'a template', current: 'The template.' },
  ...{ tag: 'Notifications', path: '/v1/accounts/{id}/templates', item: '/{kind}/{channel}/{locale}' },
  ...{ schema: Template, subject: templateSubject },
  view: ({ template, changedAt, ...place }) => {
    const parts = template as { readonly [part: string]: string };
    return { ...place, template: parts, custom: changedAt !== null, changedAt };
  },
});

const messagesAnswer = {
  description: 'A page of messages.',
  schema: z.object({ messages: z.array(Message), next: nextCursor }),
} as const;
const pageOnly = z.strictObject({ limit, after: afterId('messages', isMessageId) });

/** All notification routes, except those of recipients and suppressions. */
export const notificationRoutes: readonly Route[] = [
  settingsRoutes.get({
    description: 'Returns the defaults if no settings are stored.',
  }),
  settingsRoutes.act(
    '',
    {
      ...{ method: 'put', id: 'saveNotificationSettings', role: 'admin' },
      summary: 'Replace the notification settings of an account',
      description: 'Replaces all settings. Omitted fields get their default values.',
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
  ...previewRoutes,
  route(
    {
      path: '/v1/accounts/{id}/templates',
      id: 'listTemplates',
      summary: 'List templates of an account',
      description: 'Returns one entry for each kind, channel and locale.',
      role: 'read',
      subject: accountSubject,
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
      const next = last && places.length > after + most ? encodePageCursor(toTemplateName(last)) : null;
      return { body: { templates, next } };
    },
  ),
  templates.get({ description: 'Returns the custom or the default template.' }),
  templates.act(
    '',
    {
      ...{ method: 'put', id: 'saveTemplate', role: 'admin', summary: 'Save a custom template' },
      description:
        'Saves a Liquid template. It is rejected if it cannot be rendered with sample jobs. It also applies to other locales of the language that have no custom template.',
      body: TemplateInput,
      example: { subject: '{{ order }} is on its way', intro: 'Hello {{ name }}, it has left us.' },
    },
    async ({ subject, body, expected }, { feed }) => {
      const checked = checkTemplateInput(subject.channel, body);
      if (checked.kind === 'rejected') return checked;
      const { account } = subject;
      const outcome = await saveTemplate(feed.table, account, subject, checked.value, feed.now(), expected);
      if (outcome.kind === 'saved') return { template: { ...outcome.stored, account } };
      return 'problems' in outcome ? rejected(formatProblem(outcome.problems[0])) : outcome;
    },
  ),
  templates.remove(
    {
      summary: 'Delete a custom template',
      description: 'The default template applies again.',
      result: 'No custom template exists.',
    },
    ({ subject, expected }, { feed }) => deleteTemplate(feed.table, subject.account, subject, expected),
  ),
  route(
    {
      path: '/v1/accounts/{id}/messages',
      id: 'listMessages',
      summary: 'List messages of an account',
      description: 'Returns messages, newest first, including those that were not sent.',
      role: 'read',
      subject: accountSubject,
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
      path: '/v1/accounts/{id}/messages/{message}',
      id: 'getMessage',
      summary: 'Get a message and its content',
      role: 'read',
      subject: messageSubject,
      answer: { description: 'The message.', schema: Message },
    },
    ({ caller, subject }) => ({ body: toMessageResponse(subject, caller) }),
  ),
  route(
    {
      path: '/v1/accounts/{id}/jobs/{jobNumber}/messages',
      id: 'listJobMessages',
      summary: 'List messages about a job',
      description: 'Returns messages, newest first, and the upcoming ones.',
      role: 'read',
      subject: accountSubject,
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
      path: '/v1/accounts/{id}/recipients/{recipient}/messages',
      id: 'listRecipientMessages',
      summary: 'List messages to a recipient',
      description: 'Returns messages, newest first.',
      role: 'read',
      subject: recipientSubject,
      query: pageOnly,
      answer: messagesAnswer,
    },
    async ({ caller, subject, query }, { notifications }) => {
      const filter = { ...query, recipient: subject.id };
      return toMessagesPage(caller, await listMessages(notifications.history, subject, filter));
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
  const name = decodePageCursor(text);
  const at = places.findIndex((place) => toTemplateName(place) === name);
  return at === -1 ? undefined : at + 1;
}

const formatProblem = (problem: { readonly field: string; readonly reason: string } | undefined): string =>
  problem ? `${problem.field} cannot be rendered: ${problem.reason}.` : 'The template cannot be rendered.';

function toMessagesPage(
  caller: Caller,
  { messages, next = null }: { readonly messages: readonly MessageRecord[]; readonly next?: string | null },
) {
  return { body: { messages: messages.map((message) => toMessageResponse(message, caller)), next } };
}
