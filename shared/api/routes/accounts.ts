/** Accounts: what is polled, how that goes, and what an operator can say to it. */
import * as z from 'zod';
import { confirmAccount, reportAccount } from '../../tracking/operator.ts';
import { ofAccount } from '../access.ts';
import { problem } from '../problems.ts';
import { type Route, route } from '../route.ts';

const Report = z.looseObject({});

const UPSTREAM_RULE = 'must be a whole number: the id the service gives the account';

/** Everything about accounts. */
export const accountRoutes: readonly Route[] = [
  route(
    {
      method: 'get',
      path: '/v1/accounts/{id}/status',
      id: 'getAccountStatus',
      tag: 'Accounts',
      summary: 'How tracking of an account stands',
      role: 'read',
      of: ofAccount,
      answer: { status: 200, description: 'How it stands.', schema: Report },
    },
    async ({ c, subject }, { feed }) => {
      const report = await reportAccount(feed, subject);
      return report
        ? { body: { ...report } }
        : problem(c, 'not-found', { detail: 'There is no such account.' });
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
      body: z.strictObject({ upstreamId: z.int(UPSTREAM_RULE).positive(UPSTREAM_RULE).optional() }),
      answer: {
        status: 200,
        description: 'What is over.',
        schema: z.object({ confirmed: z.enum(['quarantined', 'identity_mismatch']) }),
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
