/** Account routes: registration, credentials, polling state and operator actions. */

import * as z from 'zod';
import { AccountUpdate, CredentialsTest, NewAccount, NewCredentials } from '../../accounts/account-input.ts';
import { testAccount, testCredentials } from '../../accounts/account-test.ts';
import {
  AccountRecord,
  AccountReport,
  CreatedAccount,
  PollRecord,
  TestReport,
} from '../../accounts/account-views.ts';
import { readDeletion } from '../../accounts/deletion.ts';
import {
  createAccount,
  deleteAccount,
  pageAccounts,
  pauseAccount,
  resumeAccount,
  rotateCredentials,
  updateAccount,
} from '../../accounts/managed-accounts.ts';
import { getRevision } from '../../resources.ts';
import type { AccountRef } from '../../storage/schema.ts';
import {
  confirmAccount,
  pageAccountsWithStatus,
  reportAccounts,
  reportPolls,
} from '../../tracking/operator.ts';
import { isId } from '../../validation.ts';
import { accountRecordSubject, accountSubject, canAccess } from '../access.ts';
import { accountItem } from '../attention/items.ts';
import { recordAction } from '../attention/recording.ts';
import { BatchResponse, batchBody, findEach, MAX_BATCH, runBatch } from '../batch.ts';
import { afterId, afterInTime, limit, one, pageInTime } from '../parameters.ts';
import { badParameter, problem } from '../problems.ts';
import { defineResource, pageAnswer } from '../resource.ts';
import { createRouteFactory, type Route, type Subject, toFieldResult } from '../route.ts';
import { moveRoutes, toRef } from './account-moves.ts';

const route = createRouteFactory('Accounts');

const UPSTREAM_RULE = 'must be a positive integer: the id of the account in the ordering API';

const Listed = AccountRecord.extend({
  status: AccountReport.nullable()
    .optional()
    .describe('Polling state. Only with `include=status`. `null` while the registration is incomplete.'),
}).meta({ id: 'ListedAccount' });

const accounts = defineResource({
  ...{ name: 'account', names: 'accounts', one: 'an account', current: 'The current account.' },
  ...{ tag: 'Accounts', path: '/v1/accounts', schema: AccountRecord, subject: accountRecordSubject },
});

/** Returns whether `text` can be a cursor of the list of accounts: `<region>/<account>`. */
function isAccountPlace(text: string): boolean {
  const parts = text.split('/');
  return parts.length === 2 && parts.every(isId);
}

/** An account that exists or is being deleted. */
const deletableSubject: Subject<AccountRef & { readonly revision: number }> = {
  params: accountSubject.params,
  getRevision: ({ revision }) => revision,
  async find(lookup, parts) {
    const found = await accountRecordSubject.find(lookup, parts);
    if (!(found instanceof Response))
      return { region: found.region, account: found.id, revision: found.revision };
    const { id: account = '' } = lookup.params;
    if (isId(account) && canAccess(lookup.caller, account)) {
      for (const region of parts.feed.regions) {
        const note = await readDeletion(parts.feed.table, { region, account });
        if (note) return { region, account, revision: getRevision(note) };
      }
    }
    return found;
  },
};

/** All account routes. */
export const accountRoutes: readonly Route[] = [
  accounts.list(
    {
      page: 'A page of accounts, ordered by region and id.',
      items: Listed,
      query: z.strictObject({
        region: one.optional().describe('Only accounts of this region.'),
        include: z
          .literal('status', 'must be status')
          .optional()
          .describe('`status`: include the polling state.'),
        limit,
        after: afterId('accounts', isAccountPlace),
      }),
    },
    async ({ c, caller, query: { include, ...filter } }, { feed, isDeclared }) => {
      const { table, regions } = feed;
      const read = include === 'status' ? pageAccountsWithStatus : pageAccounts;
      const page = await read({ table, regions, isDeclared }, { ...filter, only: caller.accounts });
      return page.kind === 'page' ? page : badParameter(c, page.reason);
    },
  ),
  accounts.create(
    {
      summary: 'Register an account',
      description:
        'The first poll is due immediately, unless the account is paused. Credentials are write-only.',
      allAccounts: true,
      body: NewAccount,
      example: {
        id: 'acme',
        region: 'us',
        credentials: { clientId: 'acme-api', clientSecret: '…' },
        pollIntervalSeconds: 120,
      },
      location: ({ id }) => `/v1/accounts/${id}`,
      answer: { description: 'The new account, with warnings.', schema: CreatedAccount },
    },
    ({ body, generators }, { manage }) => createAccount(manage.accounts, body, generators),
    ({ account, warnings }) => ({ ...account, warnings }),
  ),
  ...moveRoutes,
  accounts.get(),
  accounts.update(
    {
      description: '`secretRef` requires an API key for all accounts.',
      body: AccountUpdate,
      example: { pollIntervalSeconds: 300 },
    },
    async ({ c, caller, subject, body, expected }, { manage }) => {
      // A secret reference can name the credentials of another account, and so give access to its jobs.
      if (body.secretRef !== undefined && caller.accounts !== null) {
        return problem(c, 'forbidden', {
          field: 'secretRef',
          detail: 'secretRef requires a key for all accounts. Send credentials instead.',
        });
      }
      return updateAccount(manage.accounts, toRef(subject), body, expected);
    },
  ),
  accounts.remove(
    {
      summary: 'Delete an account and its data',
      description:
        'The account no longer exists after the first request. If the response is 202, some data remains. Repeat the request until it returns 204 or 404. On AWS, only further requests continue the deletion.',
      subject: deletableSubject,
      result: 'The account and its data are deleted. Only delivery attempts remain until they expire.',
      also: [
        {
          status: 202,
          description: 'Some data remains. Repeat the request.',
        },
      ],
      problems: ['unprocessable-content'],
    },
    async ({ c, subject, expected }, { manage }) => {
      const outcome = await deleteAccount(manage.accounts, subject, expected);
      const isBegun = outcome.kind === 'deleted' && !outcome.complete;
      return isBegun ? c.body(null, 202, { 'retry-after': '5' }) : outcome;
    },
  ),
  accounts.act(
    'credentials',
    {
      ...{ method: 'put', id: 'rotateCredentials', role: 'admin' },
      summary: 'Replace the credentials of an account',
      description:
        'Takes effect immediately. If polling was stopped because the old credentials were rejected, it resumes.',
      body: NewCredentials,
      example: { clientId: 'acme-api', clientSecret: '…' },
      record: ({ subject, ...by }, parts) =>
        recordAction('replace_credentials', accountItem(toRef(subject)), by, parts),
    },
    ({ subject, body, expected }, { manage }) =>
      rotateCredentials(manage.accounts, toRef(subject), body, expected),
  ),
  route(
    {
      method: 'post',
      path: '/v1/accounts/{id}/test',
      id: 'testAccount',
      summary: 'Test the credentials of an account',
      role: 'operate',
      subject: accountSubject,
      repeatable: true,
      description: 'Requests a token, verifies the identity and reads one page of jobs.',
      answer: { description: 'Result of each step.', schema: TestReport },
    },
    async ({ subject }, { manage }) => toFieldResult(await testAccount(manage.accounts, subject), 'report'),
  ),
  route(
    {
      method: 'post',
      path: '/v1/credentials/test',
      id: 'testCredentials',
      summary: 'Test credentials before registration',
      description: 'Requests a token, verifies the identity and reads one page of jobs. Nothing is stored.',
      role: 'admin',
      allAccounts: true,
      body: CredentialsTest,
      example: { region: 'us', credentials: { clientId: 'acme-api', clientSecret: '…' } },
      repeatable: true,
      answer: { description: 'Result of each step.', schema: TestReport },
      problems: ['unprocessable-content'],
    },
    async ({ body }, { manage }) => toFieldResult(await testCredentials(manage.accounts, body), 'report'),
  ),
  accounts.act(
    'pause',
    {
      summary: 'Pause polling of an account',
      description: 'The log, the jobs and the polling state are kept.',
      record: ({ subject, ...by }, parts) => recordAction('pause', accountItem(toRef(subject)), by, parts),
    },
    ({ subject, expected }, { manage }) => pauseAccount(manage.accounts, toRef(subject), expected),
  ),
  accounts.act(
    'resume',
    {
      summary: 'Resume polling of a paused account',
      record: ({ subject, ...by }, parts) => recordAction('resume', accountItem(toRef(subject)), by, parts),
    },
    ({ subject, expected }, { manage }) => resumeAccount(manage.accounts, toRef(subject), expected),
  ),
  route(
    {
      method: 'post',
      path: '/v1/accounts/batch',
      id: 'batchAccounts',
      summary: 'Perform an action on several accounts',
      description: 'Each account has its own result. The status is 200 even if all actions failed.',
      role: 'operate',
      body: batchBody(['pause', 'resume'], 'accounts').meta({ id: 'AccountBatch' }),
      example: { action: 'pause', ids: ['acme', 'globex'] },
      answer: { description: 'Result for each account.', schema: BatchResponse },
    },
    async ({ c, caller, body: { action, ids, region, after } }, parts) => {
      const { manage, feed, isDeclared } = parts;
      const change = action === 'pause' ? pauseAccount : resumeAccount;
      const run = (items: Parameters<typeof runBatch<AccountRecord>>[2]) =>
        runBatch(c, parts, items, async (account) => {
          const ref = toRef(account);
          const record = await recordAction(action, accountItem(ref), { c, caller }, parts);
          const outcome = await change(manage.accounts, ref);
          if (!('account' in outcome)) return outcome;
          await record();
          return {};
        });
      if (after !== undefined && !isAccountPlace(after)) {
        return badParameter(c, 'after must be the `next` of a previous response.');
      }
      const deps = { table: feed.table, regions: feed.regions, isDeclared };
      const query = { limit: MAX_BATCH, only: caller.accounts, after, region };
      const page = ids ? undefined : await pageAccounts(deps, query);
      if (page && page.kind !== 'page') return badParameter(c, page.reason);
      if (page) {
        const items = page.accounts.map((account) => ({ id: account.id, found: account }));
        return { body: { results: await run(items), next: page.next } };
      }
      const find = async (id: string) => {
        const found = await accountRecordSubject.find({ c, caller, params: { id }, query: {} }, parts);
        const isOther = !(found instanceof Response) && region !== undefined && found.region !== region;
        const detail = 'There is no such account in this region.';
        return { id, found: isOther ? problem(c, 'not-found', { detail }) : found };
      };
      return { body: { results: await run(await findEach(ids ?? [], find)), next: null } };
    },
  ),
  route(
    {
      path: '/v1/accounts/{id}/status',
      id: 'getAccountStatus',
      summary: 'Get the polling state of an account',
      role: 'read',
      subject: accountSubject,
      answer: { description: 'Polling state of the account.', schema: AccountReport },
    },
    async ({ c, subject }, { feed }) => {
      const [report] = await reportAccounts(feed, [subject]);
      return report ? { body: report } : problem(c, 'not-found', { detail: 'There is no such account.' });
    },
  ),
  route(
    {
      path: '/v1/accounts/{id}/polls',
      id: 'listAccountPolls',
      summary: 'List recent polls of an account',
      description: 'Returns up to 20 polls, newest first.',
      role: 'read',
      subject: accountSubject,
      query: z.strictObject({ limit, after: afterInTime('polls') }),
      answer: pageAnswer('polls', PollRecord, 'A page of the stored polls.'),
    },
    async ({ c, subject, query }, { feed }) => {
      const all = await reportPolls(feed, subject);
      if (!all) return problem(c, 'not-found', { detail: 'There is no such account.' });
      const { page, next } = pageInTime(all, ({ startedAt }) => Date.parse(startedAt), 'newest', query);
      return { body: { polls: page, next } };
    },
  ),
  route(
    {
      method: 'post',
      path: '/v1/accounts/{id}/confirm',
      id: 'confirmAccount',
      record: ({ subject, ...by }, parts) => recordAction('confirm', accountItem(subject), by, parts),
      summary: 'Confirm a quarantine or an identity mismatch',
      description:
        'In a quarantine, the operator confirms that the missing jobs are no longer open. In an identity mismatch, the operator confirms that the credentials have been corrected. With `upstreamId`, the operator instead accepts the other account to which the credentials belong.',
      role: 'operate',
      subject: accountSubject,
      body: z
        .strictObject({
          upstreamId: z
            .int(UPSTREAM_RULE)
            .positive(UPSTREAM_RULE)
            .optional()
            .describe('Id of the account in the ordering API that is expected from now on.'),
        })
        .meta({ id: 'AccountConfirmation' }),
      answer: {
        description: 'The confirmed state.',
        schema: z
          .object({
            confirmed: z
              .enum(['quarantined', 'identity_mismatch'])
              .describe('Account state that the confirmation ended.'),
          })
          .meta({ id: 'ConfirmedAccount' }),
      },
      problems: ['nothing-to-confirm'],
    },
    async ({ c, subject, body: { upstreamId } }, { feed }) => {
      const outcome = await confirmAccount(feed, subject, upstreamId === undefined ? {} : { upstreamId });
      switch (outcome.kind) {
        case 'confirmed':
          return { body: { confirmed: outcome.was } };
        case 'nothing to confirm':
          return problem(c, 'nothing-to-confirm', {
            detail: `The account is ${outcome.state}: there is nothing to confirm.`,
          });
        case 'unknown account':
          return problem(c, 'not-found', { detail: 'There is no such account.' });
      }
    },
  ),
];
