/** Recipients: who is told about the jobs of an account; and addresses that get nothing more. */
import type { Context } from 'hono';
import * as z from 'zod';
import { isId } from '../../checks.ts';
import type { Expectation, Refusal } from '../../managed.ts';
import type { Recipient as RecipientRecord } from '../../notifications/model.ts';
import { NewRecipient, NewSuppression, RecipientChange } from '../../notifications/notification-input.ts';
import {
  changeRecipient,
  createRecipient,
  deleteRecipient,
  listRecipients,
  readRecipient,
} from '../../notifications/recipients.ts';
import { importRecipients } from '../../notifications/recipients-csv.ts';
import {
  createSuppression,
  isSuppressionId,
  liftSuppression,
  listSuppressions,
} from '../../notifications/suppressions.ts';
import { ofAccount } from '../access.ts';
import type { Caller } from '../keys.ts';
import {
  ImportReport,
  Recipient,
  Suppression,
  showRecipient,
  showSuppression,
} from '../notification-views.ts';
import { afterBy, afterId, decodePlace, encodePlace, limit, nextOf, one } from '../parameters.ts';
import { notDone, problem } from '../problems.ts';
import { type ApiEnv, etagOf, type Route, route, type Subject } from '../route.ts';

const MASKED = 'Keys of role `read` are shown addresses without their middle.';

/** What is in a cursor of the list of recipients before the id: a bare id could be any word. */
const PLACE = 'recipient/';

function decodeRecipientPlace(text: string): string | undefined {
  const place = decodePlace(text);
  const id = place?.startsWith(PLACE) ? place.slice(PLACE.length) : '';
  return isId(id) ? id : undefined;
}

/** A recipient of an account. */
export const ofRecipient: Subject<RecipientRecord> = {
  params: { ...ofAccount.params, recipient: one.describe('The id of the recipient.') },
  revisionOf: ({ revision }) => revision,
  async find(asked, parts) {
    const ref = await ofAccount.find(asked, parts);
    if (ref instanceof Response) return ref;
    const { recipient = '' } = asked.params;
    const found = isId(recipient) ? await readRecipient(parts.feed.table, ref, recipient) : undefined;
    return found ?? problem(asked.c, 'not-found', { detail: 'There is no such recipient of this account.' });
  },
};

const shownAnswer = {
  status: 200,
  description: 'The recipient.',
  schema: Recipient,
  headers: { ETag: 'What `If-Match` takes.' },
} as const;

/** Everything about recipients and suppressions. */
export const recipientRoutes: readonly Route[] = [
  route(
    {
      method: 'get',
      path: '/v1/accounts/{id}/recipients',
      id: 'listRecipients',
      tag: 'Notifications',
      summary: 'Who is told about the jobs of an account, by id',
      description: MASKED,
      role: 'read',
      of: ofAccount,
      query: z.strictObject({ limit, after: afterBy('recipients', decodeRecipientPlace) }),
      answer: {
        status: 200,
        description: 'A page of recipients.',
        schema: z.object({ recipients: z.array(Recipient), next: nextOf }),
      },
    },
    async ({ caller, subject, query }, { feed }) => {
      const { recipients, next } = await listRecipients(feed.table, subject, query);
      return {
        body: {
          recipients: recipients.map((each) => showRecipient(each, caller)),
          next: next && encodePlace(`${PLACE}${next}`),
        },
      };
    },
  ),
  route(
    {
      method: 'post',
      path: '/v1/accounts/{id}/recipients',
      id: 'createRecipient',
      tag: 'Notifications',
      summary: 'Add somebody who is told',
      description:
        'Of all jobs of the account, or with one of `orderGroup`, `orderNumber` and `jobNumber` only of those. At least one of `email` and `mobile` has to be there.',
      role: 'admin',
      of: ofAccount,
      body: NewRecipient,
      example: { name: 'Ann Lee', email: 'ann@example.com', locale: 'en-GB', orderGroup: 'Spring' },
      answer: {
        ...shownAnswer,
        status: 201,
        headers: { ...shownAnswer.headers, Location: 'The path of the recipient.' },
      },
      problems: ['refused', 'conflict'],
    },
    async ({ c, caller, subject, body, making }, { manage }) => {
      const outcome = await createRecipient(manage.endpoints, subject, body, making);
      if (outcome.kind !== 'created') return notDone(c, outcome);
      const { recipient } = outcome;
      const path = `/v1/accounts/${encodeURIComponent(recipient.account)}/recipients`;
      const location = `${path}/${encodeURIComponent(recipient.id)}`;
      return {
        body: showRecipient(recipient, caller),
        headers: { etag: etagOf(recipient.revision), location },
      };
    },
  ),
  route(
    {
      method: 'post',
      path: '/v1/accounts/{id}/recipients/import',
      id: 'importRecipients',
      tag: 'Notifications',
      summary: 'Add and change recipients by a table (CSV)',
      description:
        'The first line names the columns: `id`, `name`, `email`, `mobile`, `locale`, `zone`, `channels`, `kinds`, `paused`, and of `orderGroup`, `orderNumber` and `jobNumber` at most one in a row. A row without `id` changes the recipient with the same address and the same jobs. Rows that are not good are left out, and told with line, field and reason; the others are taken. It may be sent again.',
      role: 'admin',
      of: ofAccount,
      repeatable: true,
      body: z
        .strictObject({
          csv: z
            .string('must be the text of a CSV file')
            .min(1, 'must not be empty')
            .describe('The table, with a line of names.'),
          dryRun: z
            .boolean('must be true or false')
            .default(false)
            .describe('Only look: what would come of it.'),
        })
        .meta({ id: 'RecipientImport' }),
      example: { csv: 'name,email,orderGroup\nAnn Lee,ann@example.com,Spring\n', dryRun: true },
      answer: { status: 200, description: 'What came of each row.', schema: ImportReport },
      problems: ['refused', 'conflict'],
    },
    async ({ c, subject, body: { csv, dryRun } }, { manage }) => {
      const outcome = await importRecipients(manage.endpoints, subject, csv, { dryRun });
      if (outcome.kind !== 'imported') return notDone(c, outcome);
      const { imported, changed, unchanged, bad } = outcome;
      return { body: { imported, changed, unchanged, bad: [...bad] } };
    },
  ),
  route(
    {
      method: 'get',
      path: '/v1/accounts/{id}/recipients/{recipient}',
      id: 'getRecipient',
      tag: 'Notifications',
      summary: 'One recipient',
      description: MASKED,
      role: 'read',
      of: ofRecipient,
      answer: shownAnswer,
    },
    ({ caller, subject }) => shown(caller, subject),
  ),
  route(
    {
      method: 'patch',
      path: '/v1/accounts/{id}/recipients/{recipient}',
      id: 'changeRecipient',
      tag: 'Notifications',
      summary: 'Change a recipient',
      description:
        'What is left out stays as it is, null takes a value away. What it is for is replaced as a whole.',
      role: 'admin',
      of: ofRecipient,
      body: RecipientChange,
      example: { mobile: null, kinds: ['dispatched'] },
      conditional: true,
      answer: shownAnswer,
      problems: ['refused', 'conflict'],
    },
    async ({ c, caller, subject, body, expected }, { manage }) => {
      const outcome = await changeRecipient(manage.endpoints, subject, subject.id, body, expected);
      return changed(c, caller, outcome, expected);
    },
  ),
  route(
    {
      method: 'delete',
      path: '/v1/accounts/{id}/recipients/{recipient}',
      id: 'deleteRecipient',
      tag: 'Notifications',
      summary: 'Remove a recipient',
      description:
        'Nothing is sent to it any more, what waits included. What it was sent stays in the history.',
      role: 'admin',
      of: ofRecipient,
      conditional: true,
      answer: { status: 204, description: 'It is gone.' },
      problems: ['conflict'],
    },
    async ({ c, subject, expected }, { manage }) => {
      const outcome = await deleteRecipient(manage.endpoints, subject, subject.id, expected);
      return outcome.kind === 'deleted' ? { body: undefined } : notDone(c, outcome, expected);
    },
  ),
  route(
    {
      method: 'get',
      path: '/v1/accounts/{id}/suppressions',
      id: 'listSuppressions',
      tag: 'Notifications',
      summary: 'Addresses that get nothing more from an account, and why',
      role: 'operate',
      of: ofAccount,
      query: z.strictObject({ limit, after: afterId('suppressions', isSuppressionId) }),
      answer: {
        status: 200,
        description: 'A page of suppressions.',
        schema: z.object({ suppressions: z.array(Suppression), next: nextOf }),
      },
    },
    async ({ subject, query }, { feed }) => {
      const { suppressions, next } = await listSuppressions(feed.table, subject, query);
      return { body: { suppressions: suppressions.map(showSuppression), next } };
    },
  ),
  route(
    {
      method: 'post',
      path: '/v1/accounts/{id}/suppressions',
      id: 'createSuppression',
      tag: 'Notifications',
      summary: 'Keep an address from getting anything more from an account',
      description: 'For somebody who says so by telephone, say. Of the address only a hash is kept.',
      role: 'operate',
      of: ofAccount,
      repeatable: true,
      body: NewSuppression,
      example: { channel: 'email', address: 'ann@example.com' },
      answer: { status: 201, description: 'The suppression.', schema: Suppression },
      problems: ['refused'],
    },
    async ({ c, subject, body }, { manage }) => {
      const outcome = await createSuppression(manage.endpoints, subject, body);
      if (outcome.kind !== 'created') return notDone(c, outcome);
      return { body: showSuppression(outcome.suppression) };
    },
  ),
  route(
    {
      method: 'delete',
      path: '/v1/accounts/{id}/suppressions/{suppression}',
      id: 'deleteSuppression',
      tag: 'Notifications',
      summary: 'Let an address get messages again',
      description:
        'What was the address’s own (mail that came back, a mark as spam) counts for no account of the region any more. What the messages of other accounts brought up can only be taken back with a key that is for all accounts. Whoever unsubscribed has said that they want none.',
      role: 'operate',
      of: ofAccount,
      params: z.object({ suppression: one.describe('The id of the suppression.') }),
      answer: { status: 204, description: 'It is gone.' },
    },
    async ({ c, caller, subject, params: { suppression } }, { manage }) => {
      const whole = caller.accounts === null;
      const outcome = await liftSuppression(manage.endpoints, subject, suppression, { whole });
      return outcome.kind === 'lifted' ? { body: undefined } : notDone(c, outcome);
    },
  ),
];

function shown(caller: Caller, recipient: RecipientRecord) {
  return { body: showRecipient(recipient, caller), headers: { etag: etagOf(recipient.revision) } };
}

function changed(
  c: Context<ApiEnv>,
  caller: Caller,
  outcome: { readonly kind: 'changed'; readonly recipient: RecipientRecord } | Refusal,
  expected: Expectation,
) {
  return outcome.kind === 'changed' ? shown(caller, outcome.recipient) : notDone(c, outcome, expected);
}
