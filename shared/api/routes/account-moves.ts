/** Routes that move an account to another cell. */
import * as z from 'zod';
import { NewAccount, NewCredentials } from '../../accounts/account-input.ts';
import { AccountRecord } from '../../accounts/account-views.ts';
import { textOrNull } from '../../representation.ts';
import type { AccountRef } from '../../storage/schema.ts';
import { accountRecordSubject } from '../access.ts';
import { isPagePlace } from '../account-items.ts';
import { beginMove, cancelMove, exportAccount, importAccount } from '../account-move.ts';
import { createRouteFactory, type Route, toFieldResult, toHandlerResult } from '../route.ts';

const route = createRouteFactory('Accounts');

const NEXT_RULE = 'must be the `next` of a previous page';

const TO_RULE = 'must be 1 to 300 characters that name the other cell, such as the base URL of its API';

/** Maximum size of a page of an account that is moved to this cell: two items of the table, in base64. */
const MAX_IMPORT_BYTES = 1_500_000;

/** The routes, of the cell that the account leaves and of the one that it enters. */
export const moveRoutes: readonly Route[] = [
  route(
    {
      ...{ method: 'put', path: '/v1/accounts/{id}/move', id: 'beginAccountMove', role: 'admin' },
      summary: 'Begin to move an account to another cell',
      description:
        'Pauses the account, closes its log and stops its customer notifications. Repeat the request until `waitingFor` is `null`, then export the data. The account cannot be resumed in this cell.',
      allAccounts: true,
      subject: accountRecordSubject,
      conditional: true,
      body: z
        .strictObject({
          to: z
            .string(TO_RULE)
            .trim()
            .min(1, TO_RULE)
            .max(300, TO_RULE)
            .describe('Name of the other cell, such as its base URL.'),
        })
        .meta({ id: 'NewMove' }),
      example: { to: 'https://large.jobwire.example.com' },
      answer: {
        description: 'State of the move.',
        schema: z
          .object({
            account: AccountRecord,
            waitingFor: textOrNull.describe(
              'Work that must be complete before the data can be exported. `null`: none.',
            ),
          })
          .meta({ id: 'BegunAccountMove' }),
      },
      problems: ['conflict'],
    },
    async ({ subject, body: { to }, expected }, { manage }) =>
      toHandlerResult(await beginMove(manage.accounts, toRef(subject), to, expected)),
  ),
  route(
    {
      ...{ method: 'delete', path: '/v1/accounts/{id}/move', id: 'cancelAccountMove' },
      ...{ role: 'admin', allAccounts: true, subject: accountRecordSubject, conditional: true },
      summary: 'Cancel the move of an account',
      description:
        'Opens the log of the account again. The account stays paused. Delete the account in the other cell first. Otherwise, both cells can emit its events.',
      answer: { description: 'The current account.', schema: AccountRecord },
      problems: ['conflict', 'unprocessable-content'],
    },
    async ({ subject, expected }, { manage }) =>
      toFieldResult(await cancelMove(manage.accounts, toRef(subject), expected), 'account'),
  ),
  route(
    {
      ...{ method: 'post', path: '/v1/accounts/{id}/export', id: 'exportAccount' },
      ...{ role: 'admin', allAccounts: true, subject: accountRecordSubject, repeatable: true },
      summary: 'Export an account that is moved to another cell',
      description:
        'Returns the jobs, settings, recipients and unsent messages of the account, page by page. Includes personal data and the key that signs unsubscribe links, but no credentials.',
      body: z
        .strictObject({
          after: z
            .string('must be text')
            .max(2000, 'must be at most 2000 characters')
            .regex(/^\d{1,2}:/, NEXT_RULE)
            .refine(isPagePlace, NEXT_RULE)
            .optional()
            .describe('`next` of the previous page.'),
        })
        .meta({ id: 'AccountExport' }),
      example: {},
      answer: {
        description: 'A page.',
        schema: z
          .object({
            data: z.string().describe('Content of the page, for the import in the other cell.'),
            next: textOrNull.describe('Value of `after` for the next page. `null` on the last page.'),
          })
          .meta({ id: 'AccountExportPage' }),
      },
      problems: ['conflict'],
    },
    async ({ subject, body: { after } }, { manage }) =>
      toHandlerResult(await exportAccount(manage.accounts, toRef(subject), after)),
  ),
  route(
    {
      ...{ method: 'post', path: '/v1/accounts/import', id: 'importAccount' },
      ...{ role: 'admin', allAccounts: true, repeatable: true, maxBodyBytes: MAX_IMPORT_BYTES },
      summary: 'Import an account from another cell',
      description:
        'Stores a page of an export. The first page creates the account, with a log in a new epoch. The last page starts its polls, unless the account was paused before the move. A page can be sent again. If this is done after the last page, only the suppressions of the page are added again.',
      body: z
        .strictObject({
          data: z
            .string('must be the data of a page of an export')
            .max(1_400_000, 'must be at most 1400000 characters')
            .describe('`data` of a page of the export.'),
          credentials: NewCredentials.optional(),
          secretRef: NewAccount.shape.secretRef,
        })
        .meta({ id: 'AccountImport' }),
      example: { data: 'H4sIAAAAAAAAA…', credentials: { clientId: 'acme-api', clientSecret: '…' } },
      answer: { description: 'The account in this cell.', schema: AccountRecord },
      problems: ['conflict', 'unprocessable-content'],
    },
    async ({ body }, { manage }) => toFieldResult(await importAccount(manage.accounts, body), 'account'),
  ),
];

/** Key of an account in the tables. */
export function toRef({ region, id }: AccountRecord): AccountRef {
  return { region, account: id };
}
