/** Where the links at the end of messages lead: for people who have no key, and for their mail programs. */
import type { Context } from 'hono';
import * as z from 'zod';
import type { Locale, NotificationSettings } from '../../notifications/model.ts';
import { readSettings } from '../../notifications/settings.ts';
import { resubscribe, suppress, unsubscriptionOf } from '../../notifications/suppressions.ts';
import { readUnsubscribeToken, type Unsubscription } from '../../notifications/unsubscribe.ts';
import { one } from '../parameters.ts';
import { type Answer, type ApiEnv, type Route, route, type Subject } from '../route.ts';
import { CHOICE, choices, localeFor, type UnsubscribeView, unsubscribePage } from '../unsubscribe-page.ts';

/** What is read best by whoever says nothing. */
const DEFAULT_LOCALE: Locale = 'en-GB';

interface Link extends Unsubscription {
  readonly settings: NotificationSettings;
}

/** What a link is for. Whatever it is not, is answered with a page too: people open it. */
const ofLink: Subject<Link> = {
  params: { token: one.describe('What the link says, signed.') },
  async find({ c, params }, { feed }) {
    const link = await readUnsubscribeToken(feed, params.token ?? '');
    const settings = link && (await readSettings(feed.table, link.ref));
    return link && settings ? { ...link, settings } : page(c, 'unknown', undefined, 404);
  },
};

const answer = {
  status: 200,
  description: 'A web page.',
  schema: z.string(),
  contentType: 'text/html',
} as const satisfies Answer;
const also = [{ ...answer, status: 404, description: 'A web page: the link leads nowhere.' }] as const;

/** Stopping messages, and letting them come again. */
export const unsubscribeRoutes: readonly Route[] = [
  route(
    {
      method: 'get',
      path: '/v1/unsubscribe/{token}',
      id: 'getUnsubscribePage',
      tag: 'Notifications',
      summary: 'The page behind the link of a message',
      description:
        'It changes nothing: programs that look at links open it as well. Its button does. In the language that `Accept-Language` asks for.',
      role: null,
      of: ofLink,
      answer,
      also,
    },
    async ({ c, subject }, { feed }) => {
      const out = await unsubscriptionOf(feed.table, subject.ref, subject);
      return page(c, out ? (out.entered ? 'stopped by them' : 'stopped') : 'asks', subject);
    },
  ),
  route(
    {
      method: 'post',
      path: '/v1/unsubscribe/{token}',
      id: 'unsubscribe',
      tag: 'Notifications',
      summary: 'Stop messages to the address of a link, or let them come again',
      description:
        'Whatever is sent stops them, as mail programs do with one click (RFC 8058), unless the field `choice` says `subscribe`.',
      role: null,
      of: ofLink,
      form: z
        .object({
          [CHOICE]: z
            .enum(choices, `must be ${choices.join(' or ')}`)
            .default('unsubscribe')
            .describe('`subscribe` lets messages come again.'),
        })
        .meta({ id: 'UnsubscribeForm' }),
      answer,
      also,
    },
    async ({ c, subject, body }, { manage }) => {
      if (body[CHOICE] === 'subscribe') {
        const done = await resubscribe(manage.endpoints, subject.ref, subject);
        return page(c, done ? 'goes on' : 'stopped by them', subject);
      }
      // Of an account that went in this moment nothing comes either.
      await suppress(manage.endpoints, subject.ref, subject, 'unsubscribed');
      return page(c, 'stopped', subject);
    },
  ),
];

function page(
  c: Context<ApiEnv>,
  view: UnsubscribeView,
  link: Link | undefined,
  status: 200 | 404 = 200,
): Response {
  const { body, headers } = unsubscribePage(view, {
    locale: localeFor(c.req.header('accept-language'), link?.settings.locale ?? DEFAULT_LOCALE),
    channel: link?.channel ?? 'email',
    branding: link?.settings.branding,
  });
  return c.body(body, status, headers);
}
