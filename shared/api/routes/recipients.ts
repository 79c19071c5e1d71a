/** Recipient and suppression routes. */
import * as z from 'zod';
import { NewRecipient, NewSuppression, RecipientUpdate } from '../../notifications/notification-input.ts';
import { ImportReport, Recipient, Suppression } from '../../notifications/notification-views.ts';
import {
  createRecipient,
  deleteRecipient,
  listRecipients,
  readRecipient,
  updateRecipient,
} from '../../notifications/recipients.ts';
import { importRecipients } from '../../notifications/recipients-csv.ts';
import type { Recipient as RecipientRecord } from '../../notifications/records.ts';
import {
  createSuppression,
  isSuppressionId,
  liftSuppression,
  listSuppressions,
} from '../../notifications/suppressions.ts';
import { flag, isId } from '../../validation.ts';
import { accountSubject } from '../access.ts';
import { toRecipientResponse } from '../notification-responses.ts';
import { afterBy, afterId, decodePageCursor, encodePageCursor, limit, one } from '../parameters.ts';
import { problem } from '../problems.ts';
import { defineResource, pageAnswer } from '../resource.ts';
import { createRouteFactory, type Route, type Subject, toFieldResult, toHandlerResult } from '../route.ts';

const route = createRouteFactory('Notifications');

/** Prefix of the id in a cursor of the list of recipients. Distinguishes cursors from bare ids. */
const PLACE = 'recipient/';

function decodeRecipientPlace(text: string): string | undefined {
  const place = decodePageCursor(text);
  const id = place?.startsWith(PLACE) ? place.slice(PLACE.length) : '';
  return isId(id) ? id : undefined;
}

/** A recipient of an account. */
export const recipientSubject: Subject<RecipientRecord> = {
  params: { ...accountSubject.params, recipient: one.describe('Id of the recipient.') },
  getRevision: ({ revision }) => revision,
  async find(lookup, parts) {
    const ref = await accountSubject.find(lookup, parts);
    if (ref instanceof Response) return ref;
    const { recipient = '' } = lookup.params;
    const found = isId(recipient) ? await readRecipient(parts.feed.table, ref, recipient) : undefined;
    return found ?? problem(lookup.c, 'not-found', { detail: 'There is no such recipient of this account.' });
  },
};

const recipients = defineResource({
  ...{ name: 'recipient', names: 'recipients', one: 'a recipient', current: 'The recipient.' },
  ...{ tag: 'Notifications', path: '/v1/accounts/{id}/recipients', item: '/{recipient}', schema: Recipient },
  ...{ subject: recipientSubject, within: accountSubject, view: toRecipientResponse },
});

/** All recipient and suppression routes. */
export const recipientRoutes: readonly Route[] = [
  recipients.list(
    {
      summary: 'List recipients of an account',
      description: 'Returns recipients, ordered by id.',
      query: z.strictObject({ limit, after: afterBy('recipients', decodeRecipientPlace) }),
      page: 'A page of recipients.',
    },
    async ({ subject, query }, { feed }) => {
      const { recipients, next } = await listRecipients(feed.table, subject, query);
      return { recipients, next: next && encodePageCursor(`${PLACE}${next}`) };
    },
  ),
  recipients.create(
    {
      description:
        '`email` or `mobile` is required. At most one of `orderGroup`, `orderNumber` and `jobNumber` is allowed. Without them, the recipient is notified about all jobs.',
      body: NewRecipient,
      example: { name: 'Ann Lee', email: 'ann@example.com', locale: 'en-GB', orderGroup: 'Spring' },
      location: ({ account, id }) =>
        `/v1/accounts/${encodeURIComponent(account)}/recipients/${encodeURIComponent(id)}`,
    },
    ({ subject, body, generators }, { manage }) =>
      createRecipient(manage.endpoints, subject, body, generators),
  ),
  route(
    {
      method: 'post',
      path: '/v1/accounts/{id}/recipients/import',
      id: 'importRecipients',
      summary: 'Import recipients from CSV',
      description:
        'The first line contains the column names: `id`, `name`, `email`, `mobile`, `locale`, `zone`, `channels`, `kinds`, `paused`, and `orderGroup`, `orderNumber`, `jobNumber`. A row can set at most one of the last three. A row without `id` updates the recipient with the same address and the same value in these three columns, or creates one. Invalid rows are skipped and reported. The request can be repeated.',
      role: 'admin',
      subject: accountSubject,
      repeatable: true,
      body: z
        .strictObject({
          csv: z
            .string('must be the text of a CSV file')
            .min(1, 'must not be empty')
            .describe('CSV table with a header line.'),
          dryRun: flag.default(false).describe('`true`: the rows are only validated.'),
        })
        .meta({ id: 'RecipientImport' }),
      example: { csv: 'name,email,orderGroup\nAnn Lee,ann@example.com,Spring\n', dryRun: true },
      answer: { description: 'Result of the import.', schema: ImportReport },
      problems: ['unprocessable-content', 'conflict'],
    },
    async ({ subject, body: { csv, dryRun } }, { manage }) =>
      toHandlerResult(await importRecipients(manage.endpoints, subject, csv, { dryRun })),
  ),
  recipients.get(),
  recipients.update(
    {
      description: 'A request with `orderGroup`, `orderNumber` or `jobNumber` replaces all three.',
      body: RecipientUpdate,
      example: { mobile: null, kinds: ['dispatched'] },
    },
    ({ subject, body, expected }, { manage }) =>
      updateRecipient(manage.endpoints, subject, subject.id, body, expected),
  ),
  recipients.remove(
    {
      description: 'Waiting messages to the recipient are discarded. Sent messages stay in the history.',
    },
    ({ subject, expected }, { manage }) => deleteRecipient(manage.endpoints, subject, subject.id, expected),
  ),
  route(
    {
      path: '/v1/accounts/{id}/suppressions',
      id: 'listSuppressions',
      summary: 'List suppressed addresses of an account',
      role: 'operate',
      subject: accountSubject,
      query: z.strictObject({ limit, after: afterId('suppressions', isSuppressionId) }),
      answer: pageAnswer('suppressions', Suppression, 'A page of suppressions.'),
    },
    async ({ subject, query }, { feed }) => ({ body: await listSuppressions(feed.table, subject, query) }),
  ),
  route(
    {
      method: 'post',
      path: '/v1/accounts/{id}/suppressions',
      id: 'createSuppression',
      summary: 'Suppress an address',
      description:
        'Stops all messages from the account to the address. Only a hash and the masked address are stored.',
      role: 'operate',
      subject: accountSubject,
      repeatable: true,
      body: NewSuppression,
      example: { channel: 'email', address: 'ann@example.com' },
      answer: { status: 201, description: 'The suppression.', schema: Suppression },
      problems: ['unprocessable-content'],
    },
    async ({ subject, body }, { manage }) =>
      toFieldResult(await createSuppression(manage.endpoints, subject, body), 'suppression'),
  ),
  route(
    {
      method: 'delete',
      path: '/v1/accounts/{id}/suppressions/{suppression}',
      id: 'deleteSuppression',
      summary: 'Delete a suppression',
      description:
        'The reasons `bounced`, `complained` and `opted_out` are removed for all accounts of the cell. If messages of other accounts caused them, this requires an API key for all accounts. If the recipient unsubscribed, delete the suppression only if the recipient asks for it.',
      role: 'operate',
      subject: accountSubject,
      params: z.object({ suppression: one.describe('Id of the suppression.') }),
      answer: { status: 204, description: 'The suppression is deleted.' },
    },
    async ({ caller, subject, params: { suppression } }, { manage }) => {
      const whole = caller.accounts === null;
      const outcome = await liftSuppression(manage.endpoints, subject, suppression, { whole });
      return outcome.kind === 'lifted' ? { body: undefined } : outcome;
    },
  ),
];
