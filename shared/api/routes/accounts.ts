/** Accounts: what is polled, how that goes, and what an operator can say to it. */

import type { Context } from 'hono';
import * as z from 'zod';
import { isId } from '../../checks.ts';
import { type Expectation, type Refusal, revisionOf } from '../../managed.ts';
import type { AccountRef } from '../../table/schema.ts';
import {
  AccountChange,
  AccountRecord,
  AccountReport,
  CredentialsTest,
  NewAccount,
  NewCredentials,
  PollRecord,
  TestReport,
} from '../../tracking/account-input.ts';
import { testAccount, testCredentials } from '../../tracking/account-test.ts';
import { readDeletion } from '../../tracking/deletion.ts';
import {
  type ChangedAccount,
  changeAccount,
  createAccount,
  deleteAccount,
  pageAccounts,
  pauseAccount,
  resumeAccount,
  rotateCredentials,
} from '../../tracking/managed-accounts.ts';
import { confirmAccount, reportAccount, reportPolls } from '../../tracking/operator.ts';
import { isFor, ofAccount, ofAccountRecord } from '../access.ts';
import { afterId, afterInTime, limit, nextOf, one, pageInTime } from '../parameters.ts';
import { badParameter, notDone, problem } from '../problems.ts';
import { type ApiEnv, etagOf, type Route, route, type Subject } from '../route.ts';

const UPSTREAM_RULE = 'must be a whole number: the id the service gives the account';

const Listed = AccountRecord.extend({
  status: AccountReport.nullable()
    .optional()
    .describe('With `include=status`; null while it is not registered to its end.'),
}).meta({ id: 'ListedAccount' });

const record = {
  status: 200,
  description: 'The account as it is now.',
  schema: AccountRecord,
  headers: { ETag: 'Its revision, for `If-Match`.' },
} as const;

/** Whether a text can be a cursor of the list of accounts: `<region>/<account>`. */
function isAccountPlace(text: string): boolean {
  const parts = text.split('/');
  return parts.length === 2 && parts.every(isId);
}

/** An account that is there, or one that is being deleted. */
const ofDeletable: Subject<{
  readonly region: string;
  readonly account: string;
  readonly revision: number;
}> = {
  params: ofAccount.params,
  revisionOf: ({ revision }) => revision,
  async find(asked, parts) {
    const found = await ofAccountRecord.find(asked, parts);
    if (!(found instanceof Response))
      return { region: found.region, account: found.id, revision: found.revision };
    const { id: account = '' } = asked.params;
    if (isId(account) && isFor(asked.caller, account)) {
      for (const region of parts.feed.regions) {
        const note = await readDeletion(parts.feed.table, { region, account });
        if (note) return { region, account, revision: revisionOf(note) };
      }
    }
    return found;
  },
};

/** Everything about accounts. */
export const accountRoutes: readonly Route[] = [
  route(
    {
      method: 'get',
      path: '/v1/accounts',
      id: 'listAccounts',
      tag: 'Accounts',
      summary: 'Accounts, by region and id',
      role: 'read',
      query: z.strictObject({
        region: one.optional().describe('Only those of this region.'),
        include: z
          .literal('status', 'must be status')
          .optional()
          .describe('`status`: how each of them stands, too.'),
        limit,
        after: afterId('accounts', isAccountPlace),
      }),
      answer: {
        status: 200,
        description: 'A page of accounts: those of the key.',
        schema: z.object({ accounts: z.array(Listed), next: nextOf }),
      },
    },
    async ({ c, caller, query: { include, ...asked } }, { feed, isDeclared }) => {
      const { table, log, regions } = feed;
      const page = await pageAccounts(
        { table, log, regions, isDeclared },
        { ...asked, only: caller.accounts, status: include === 'status' },
      );
      if (page.kind !== 'page') return badParameter(c, page.reason);
      return { body: { accounts: [...page.accounts], next: page.next } };
    },
  ),
  route(
    {
      method: 'post',
      path: '/v1/accounts',
      id: 'createAccount',
      tag: 'Accounts',
      summary: 'Register an account',
      description:
        'Its first poll is due at once, unless it is to begin paused. Credentials are kept, and never shown.',
      role: 'admin',
      allAccounts: true,
      body: NewAccount,
      example: {
        id: 'acme',
        region: 'us',
        credentials: { clientId: 'acme-api', clientSecret: '…' },
        pollIntervalSeconds: 120,
      },
      answer: {
        ...record,
        status: 201,
        headers: { ...record.headers, Location: 'The path of the account.' },
      },
      problems: ['conflict', 'refused'],
    },
    async ({ c, body }, { manage }) => {
      const outcome = await createAccount(manage.accounts, body);
      if (outcome.kind !== 'created') return notDone(c, outcome);
      const { id, revision } = outcome.account;
      return { body: outcome.account, headers: { etag: etagOf(revision), location: `/v1/accounts/${id}` } };
    },
  ),
  route(
    {
      method: 'get',
      path: '/v1/accounts/{id}',
      id: 'getAccount',
      tag: 'Accounts',
      summary: 'One account',
      role: 'read',
      of: ofAccountRecord,
      answer: record,
    },
    ({ subject }) => shown(subject),
  ),
  route(
    {
      method: 'patch',
      path: '/v1/accounts/{id}',
      id: 'changeAccount',
      tag: 'Accounts',
      summary: 'Change how an account is polled, or where its credentials are',
      description:
        '`secretRef` takes a key that is for all accounts: it may name the credentials of any of them.',
      role: 'admin',
      of: ofAccountRecord,
      conditional: true,
      body: AccountChange,
      example: { pollIntervalSeconds: 300 },
      answer: record,
      problems: ['conflict', 'refused'],
    },
    async ({ c, caller, subject, body, expected }, { manage }) => {
      // Whoever reads jobs with the credentials of another account reads that account.
      if (body.secretRef !== undefined && caller.accounts !== null) {
        return problem(c, 'forbidden', {
          field: 'secretRef',
          detail: 'secretRef takes a key that is for all accounts; give the account its credentials instead.',
        });
      }
      return changed(c, await changeAccount(manage.accounts, refOf(subject), body, expected), expected);
    },
  ),
  route(
    {
      method: 'delete',
      path: '/v1/accounts/{id}',
      id: 'deleteAccount',
      tag: 'Accounts',
      summary: 'Delete an account with all that is kept of it',
      description:
        'There is no such account from then on. Where much is kept, the rest goes by and by: ask again until it is 204, or wait.',
      role: 'admin',
      of: ofDeletable,
      conditional: true,
      answer: { status: 204, description: 'Nothing is left of it.' },
      also: [{ status: 202, description: 'It is gone, and what was kept of it is going.' }],
      problems: ['conflict', 'refused'],
    },
    async ({ c, subject, expected }, { manage }) => {
      const outcome = await deleteAccount(manage.accounts, subject, expected);
      if (outcome.kind !== 'deleted') return notDone(c, outcome, expected);
      return outcome.complete ? { body: undefined } : c.body(null, 202, { 'retry-after': '5' });
    },
  ),
  route(
    {
      method: 'put',
      path: '/v1/accounts/{id}/credentials',
      id: 'rotateCredentials',
      tag: 'Accounts',
      summary: 'Give an account new credentials',
      description:
        'They count at once: the account is polled with them, whatever it waited for after a refusal.',
      role: 'admin',
      of: ofAccountRecord,
      conditional: true,
      body: NewCredentials,
      example: { clientId: 'acme-api', clientSecret: '…' },
      answer: record,
      problems: ['conflict', 'refused'],
    },
    async ({ c, subject, body, expected }, { manage }) =>
      changed(c, await rotateCredentials(manage.accounts, refOf(subject), body, expected), expected),
  ),
  route(
    {
      method: 'post',
      path: '/v1/accounts/{id}/test',
      id: 'testAccount',
      tag: 'Accounts',
      summary: 'Try out the credentials of an account: token, identity, one page',
      role: 'operate',
      of: ofAccount,
      repeatable: true,
      answer: { status: 200, description: 'What came of it, step by step.', schema: TestReport },
    },
    async ({ c, subject }, { manage }) => {
      const outcome = await testAccount(manage.accounts, subject);
      return outcome.kind === 'tested' ? { body: outcome.report } : notDone(c, outcome);
    },
  ),
  route(
    {
      method: 'post',
      path: '/v1/credentials/test',
      id: 'testCredentials',
      tag: 'Accounts',
      summary: 'Try out credentials before an account has them',
      description: 'Nothing is stored.',
      role: 'admin',
      allAccounts: true,
      body: CredentialsTest,
      example: { region: 'us', credentials: { clientId: 'acme-api', clientSecret: '…' } },
      repeatable: true,
      answer: { status: 200, description: 'What came of it, step by step.', schema: TestReport },
      problems: ['refused'],
    },
    async ({ c, body }, { manage }) => {
      const outcome = await testCredentials(manage.accounts, body);
      return outcome.kind === 'tested' ? { body: outcome.report } : notDone(c, outcome);
    },
  ),
  route(
    {
      method: 'post',
      path: '/v1/accounts/{id}/pause',
      id: 'pauseAccount',
      tag: 'Accounts',
      summary: 'Poll an account no more, until it is resumed',
      description: 'Its log, its jobs and its state stay.',
      role: 'operate',
      of: ofAccountRecord,
      conditional: true,
      answer: record,
      problems: ['conflict'],
    },
    async ({ c, subject, expected }, { manage }) =>
      changed(c, await pauseAccount(manage.accounts, refOf(subject), expected), expected),
  ),
  route(
    {
      method: 'post',
      path: '/v1/accounts/{id}/resume',
      id: 'resumeAccount',
      tag: 'Accounts',
      summary: 'Poll a paused account again, and at once',
      role: 'operate',
      of: ofAccountRecord,
      conditional: true,
      answer: record,
      problems: ['conflict'],
    },
    async ({ c, subject, expected }, { manage }) =>
      changed(c, await resumeAccount(manage.accounts, refOf(subject), expected), expected),
  ),
  route(
    {
      method: 'get',
      path: '/v1/accounts/{id}/status',
      id: 'getAccountStatus',
      tag: 'Accounts',
      summary: 'How tracking of an account stands',
      role: 'read',
      of: ofAccount,
      answer: { status: 200, description: 'How it stands.', schema: AccountReport },
    },
    async ({ c, subject }, { feed }) => {
      const report = await reportAccount(feed, subject);
      return report ? { body: report } : problem(c, 'not-found', { detail: 'There is no such account.' });
    },
  ),
  route(
    {
      method: 'get',
      path: '/v1/accounts/{id}/polls',
      id: 'listAccountPolls',
      tag: 'Accounts',
      summary: 'The last polls of an account, newest first: how long each took, and how it ended',
      description: 'The last 20 at most; fewer where their problems are long.',
      role: 'read',
      of: ofAccount,
      query: z.strictObject({ limit, after: afterInTime('polls') }),
      answer: {
        status: 200,
        description: 'A page of those that are kept.',
        schema: z.object({ polls: z.array(PollRecord), next: nextOf }),
      },
    },
    async ({ c, subject, query }, { feed }) => {
      const all = await reportPolls(feed, subject);
      if (!all) return problem(c, 'not-found', { detail: 'There is no such account.' });
      const { page, next } = pageInTime(all, ({ startedAt }) => Date.parse(startedAt), 'newest', query);
      return { body: { polls: [...page], next } };
    },
  ),
  route(
    {
      method: 'post',
      path: '/v1/accounts/{id}/confirm',
      id: 'confirmAccount',
      tag: 'Accounts',
      summary: 'Confirm what an account waits for',
      description:
        'Ends a quarantine (the missing jobs are truly gone) or an identity mismatch (the credentials are in order again; with `upstreamId`: the account is that one from now on).',
      role: 'operate',
      of: ofAccount,
      body: z
        .strictObject({
          upstreamId: z
            .int(UPSTREAM_RULE)
            .positive(UPSTREAM_RULE)
            .optional()
            .describe('The id that the ordering service has for the account from now on.'),
        })
        .meta({ id: 'AccountConfirmation' }),
      answer: {
        status: 200,
        description: 'What is over.',
        schema: z
          .object({
            confirmed: z
              .enum(['quarantined', 'identity_mismatch'])
              .describe('The state that it was in, and that is over.'),
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
            detail: `The account is ${outcome.state}: it waits for nobody.`,
          });
        case 'unknown account':
          return problem(c, 'not-found', { detail: 'There is no such account.' });
      }
    },
  ),
];

function refOf({ region, id }: AccountRecord): AccountRef {
  return { region, account: id };
}

function shown(account: AccountRecord) {
  return { body: account, headers: { etag: etagOf(account.revision) } };
}

function changed(c: Context<ApiEnv>, outcome: ChangedAccount | Refusal, expected: Expectation) {
  return outcome.kind === 'changed' ? shown(outcome.account) : notDone(c, outcome, expected);
}
