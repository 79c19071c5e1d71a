/** Unsubscribe routes: the target of the link in every message, for recipients and their mail programs. */
import type { Context } from 'hono';
import * as z from 'zod';
import type { NotificationSettings } from '../../notifications/records.ts';
import { readSettings } from '../../notifications/settings.ts';
import {
  findSuppressions,
  findUnsubscription,
  resubscribe,
  suppress,
} from '../../notifications/suppressions.ts';
import type { Locale } from '../../notifications/types.ts';
import { PREVIEW_TOKEN, readUnsubscribeToken, type Unsubscription } from '../../notifications/unsubscribe.ts';
import type { Table } from '../../storage/table.ts';
import type { ApiEnv } from '../env.ts';
import { one } from '../parameters.ts';
import { createRouteFactory, type ResponseSpec, type Route, type Subject } from '../route.ts';
import { CHOICE, choices, selectLocale, type UnsubscribeView, unsubscribePage } from '../unsubscribe-page.ts';

const route = createRouteFactory('Notifications');

/** Default locale if the request has no `Accept-Language` and the link is unknown. */
const DEFAULT_LOCALE: Locale = 'en-GB';

interface Link extends Unsubscription {
  readonly settings: NotificationSettings;
}

/** The target of an unsubscribe link. An unknown token is answered with a page, because recipients open it. */
const linkSubject: Subject<Link> = {
  params: { token: one.describe('Signed token of the link.') },
  async find({ c, params }, { feed }) {
    if (params.token === PREVIEW_TOKEN) return renderPage(c, 'preview', undefined, 200);
    const link = await readUnsubscribeToken(feed, params.token ?? '');
    const settings = link && (await readSettings(feed.table, link.ref));
    return link && settings ? { ...link, settings } : renderPage(c, 'unknown', undefined, 404);
  },
};

const answer = {
  description: 'The web page.',
  schema: z.string(),
  contentType: 'text/html',
} as const satisfies ResponseSpec;
const also = [{ ...answer, status: 404, description: 'A web page: the link is invalid.' }] as const;

/** Routes to unsubscribe and to subscribe again. */
export const unsubscribeRoutes: readonly Route[] = [
  route(
    {
      path: '/v1/unsubscribe/{token}',
      id: 'getUnsubscribePage',
      summary: 'Get the unsubscribe page',
      description:
        'Returns a web page with a button that unsubscribes the address. The page itself changes nothing. `Accept-Language` selects its language.',
      role: null,
      subject: linkSubject,
      answer,
      also,
    },
    async ({ c, subject }, { feed }) => {
      const unsubscription = await findUnsubscription(feed.table, subject.ref, subject);
      if (unsubscription?.entered) return renderPage(c, 'unsubscribed by account', subject);
      if (unsubscription) return renderPage(c, 'unsubscribed', subject);
      return renderPage(c, await selectView(feed.table, subject, 'subscribed'), subject);
    },
  ),
  route(
    {
      method: 'post',
      path: '/v1/unsubscribe/{token}',
      id: 'unsubscribe',
      summary: 'Unsubscribe or subscribe again',
      description:
        'Unsubscribes the address from messages of the account (one-click unsubscribe, RFC 8058). With `choice=subscribe`, the unsubscription ends. Other suppressions of the address remain, for example after a bounce.',
      role: null,
      subject: linkSubject,
      form: z
        .object({
          [CHOICE]: z
            .enum(choices, `must be ${choices.join(' or ')}`)
            .default('unsubscribe')
            .describe(
              '`unsubscribe`: no more messages of the account. `subscribe`: the unsubscription ends.',
            ),
        })
        .meta({ id: 'UnsubscribeForm' }),
      answer,
      also,
    },
    async ({ c, subject, body }, { manage }) => {
      if (body[CHOICE] === 'subscribe') {
        const done = await resubscribe(manage.endpoints, subject.ref, subject);
        if (!done) return renderPage(c, 'unsubscribed by account', subject);
        return renderPage(c, await selectView(manage.endpoints.table, subject, 'resubscribed'), subject);
      }
      // If the account has just been deleted, nothing is sent either.
      await suppress(manage.endpoints, subject.ref, subject, 'unsubscribed');
      return renderPage(c, 'unsubscribed', subject);
    },
  ),
];

/** Returns the view of an address that is not unsubscribed: the given one, unless the address is suppressed for another reason. */
async function selectView(table: Table, link: Link, view: UnsubscribeView): Promise<UnsubscribeView> {
  const [suppression] = await findSuppressions(table, [link]);
  return suppression ? 'suppressed' : view;
}

function renderPage(
  c: Context<ApiEnv>,
  view: UnsubscribeView,
  link: Link | undefined,
  status: 200 | 404 = 200,
): Response {
  const { body, headers } = unsubscribePage(view, {
    locale: selectLocale(c.req.header('accept-language'), link?.settings.locale ?? DEFAULT_LOCALE),
    channel: link?.channel ?? 'email',
    branding: link?.settings.branding,
  });
  return c.body(body, status, headers);
}
