/** Pairing of wall displays. The first two operations need no key: the device token authenticates the screen. */
import type { Context } from 'hono';
import * as z from 'zod';
import { textOrNull, timestamp, timestampOrNull } from '../../representation.ts';
import { rejected } from '../../resources.ts';
import { tooManyFailures } from '../access.ts';
import type { ApiEnv } from '../env.ts';
import { approvePairing, CLAIM_SECONDS, claimKey, startPairing } from '../pairing.ts';
import { KeyClaim, PairingApproval } from '../pairing-input.ts';
import { problem } from '../problems.ts';
import { createRouteFactory, type Route, toHandlerResult } from '../route.ts';
import { foreignPage, isForeignPage } from './sign-in.ts';

const route = createRouteFactory('Keys');

const WALL = 'wall displays';

/** All routes of the pairing of wall displays. */
export const pairingRoutes: readonly Route[] = [
  route(
    {
      method: 'post',
      path: '/v1/wall-pairings',
      id: 'startWallPairing',
      summary: 'Start the pairing of a wall display',
      description:
        'Returns a code, which the screen shows, and a secret device token. The code is valid for 10 minutes. At most 20 pairings per minute can be started from one address.',
      role: null,
      answer: {
        status: 201,
        description: 'The started pairing.',
        schema: z
          .object({
            code: z.string().describe('Code of 6 digits.'),
            deviceToken: z
              .string()
              .describe('Secret with which the screen requests its key. Returned only once.'),
            expiresAt: timestamp.describe('Time at which the code expires.'),
            claimSeconds: z
              .int()
              .describe('Interval at which the screen should request its key, in seconds.'),
          })
          .meta({ id: 'WallPairing' }),
      },
      problems: ['forbidden', 'too-many-requests'],
    },
    async ({ c }, { feed: { table, now }, pairingStarts }) => {
      if (isForeignPage(c)) return foreignPage(c, WALL);
      const address = c.env?.clientAddress;
      const limit = await pairingStarts.reached(address);
      if (limit) return tooManyStarts(c, limit.resetSeconds);
      await pairingStarts.add(address);
      const started = await startPairing({ table, now });
      if (started.kind === 'too many')
        return tooManyStarts(c, Math.max(1, Math.ceil((started.retryAt - now()) / 1000)));
      return { body: { ...started, claimSeconds: CLAIM_SECONDS } };
    },
  ),
  route(
    {
      method: 'post',
      path: '/v1/wall-pairings/key',
      id: 'claimWallKey',
      summary: 'Get the API key of a paired wall display',
      description:
        'Returns the key after a user has confirmed the code. Repeated requests return the same key until the code expires.',
      role: null,
      body: KeyClaim,
      example: { code: '123456', deviceToken: 'd'.repeat(43) },
      answer: {
        description: 'The key, or `null` while the code is not confirmed.',
        schema: z
          .object({
            key: textOrNull.describe('Complete API key. `null`: the code is not confirmed yet.'),
          })
          .meta({ id: 'WallKey' }),
      },
      problems: [
        ...(['forbidden', 'not-found', 'conflict'] as const),
        ...(['unprocessable-content', 'too-many-failed-authentications'] as const),
      ],
    },
    async ({ c, body }, { feed: { table, now }, failures }) => {
      if (isForeignPage(c)) return foreignPage(c, WALL);
      const address = c.env?.clientAddress;
      const limit = await failures.reached(address);
      if (limit) return tooManyFailures(c, limit);
      const claimed = await claimKey({ table, now }, body);
      switch (claimed.kind) {
        case 'waiting':
          return { body: { key: null } };
        case 'paired':
          return { body: { key: claimed.secret } };
        case 'ended':
          await failures.add(address);
          return problem(c, 'not-found', { detail: 'The pairing has ended. Start another one.' });
        default:
          return claimed;
      }
    },
  ),
  route(
    {
      method: 'post',
      path: '/v1/wall-pairings/approval',
      id: 'approveWallPairing',
      summary: 'Confirm the code of a wall display',
      description:
        "The screen gets its own API key with the role `read`, which expires with the caller's key. A code can be confirmed once.",
      role: 'admin',
      body: PairingApproval,
      example: { code: '123456', name: 'Dispatch desk', accounts: ['acme'] },
      answer: {
        description: 'The permissions of the key.',
        schema: z
          .object({
            name: z.string().describe('Name of the key.'),
            accounts: z
              .array(z.string())
              .nullable()
              .describe('Ids of the accounts that the screen shows. `null`: all accounts.'),
            expiresAt: timestampOrNull.describe('Time at which the key expires. `null`: never.'),
          })
          .meta({ id: 'ApprovedWallPairing' }),
      },
      problems: ['unprocessable-content', 'too-many-failed-authentications'],
    },
    async ({ c, caller, body, generators }, { feed: { table, now }, pairingGuesses }) => {
      // Counted by key, so that one caller cannot search for codes from several addresses.
      const guesses = await pairingGuesses.reached(caller.keyId);
      if (guesses)
        return problem(c, 'too-many-failed-authentications', {
          detail: `Too many unknown codes. Retry after ${guesses.resetSeconds} s.`,
          headers: { 'retry-after': String(guesses.resetSeconds) },
        });
      const outcome = await approvePairing({ table, now, newId: generators.newId }, body, caller);
      if (outcome.kind === 'unknown code') {
        await pairingGuesses.add(caller.keyId);
        return rejected(
          'code must be a code that a screen shows now. A code expires after 10 minutes and can be used once.',
        );
      }
      return toHandlerResult(outcome);
    },
  ),
];

const tooManyStarts = (c: Context<ApiEnv>, retryAfterSeconds: number): Response =>
  problem(c, 'too-many-requests', {
    detail: `Too many pairings of wall displays are in progress. Retry after ${retryAfterSeconds} s.`,
    headers: { 'retry-after': String(retryAfterSeconds) },
  });
