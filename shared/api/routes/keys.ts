/** API key routes. */
import * as z from 'zod';
import { textOrNull, timestampOrNull } from '../../representation.ts';
import { NewKey, ROLES } from '../key-input.ts';
import { KeyRecord, User } from '../key-record.ts';
import { createKey, isKeyId, listKeys, readKey, revokeKey } from '../keys.ts';
import { afterId, limit, one } from '../parameters.ts';
import { pageAnswer } from '../resource.ts';
import { createRouteFactory, type Route, toFieldResult } from '../route.ts';

const route = createRouteFactory('Keys');

const params = z.object({
  id: one.describe('Id of the key: the part of the complete key between the first two underscores.'),
});

const Self = z
  .object({
    id: z
      .string()
      .describe(
        'Id of the key. `bootstrap` for the key from the configuration, `user_…` for a signed-in user.',
      ),
    name: textOrNull.describe('Display name of the key or user.'),
    role: z.enum(ROLES).describe('Role of the key.'),
    accounts: z
      .array(z.string())
      .nullable()
      .describe('Ids of the accounts that the key can access. `null`: all accounts.'),
    expiresAt: timestampOrNull.describe('Time at which the key expires. `null`: never.'),
    user: User.nullable().describe('User of the ID token. `null`: an API key was used.'),
  })
  .meta({ id: 'CurrentKey', description: 'The API key or user that authenticated the request.' });

/** All API key routes. */
export const keyRoutes: readonly Route[] = [
  route(
    {
      path: '/v1/key',
      id: 'getCurrentKey',
      summary: 'Get the API key or user that authenticates the request',
      role: 'read',
      answer: { description: 'The key.', schema: Self },
    },
    ({ caller: { keyId: id, user = null, ...key } }) => ({ body: { id, user, ...key } }),
  ),
  route(
    {
      path: '/v1/keys',
      id: 'listKeys',
      summary: 'List API keys',
      description: 'Returns the keys whose permissions do not exceed those of the caller.',
      role: 'admin',
      query: z.strictObject({ limit, after: afterId('keys', isKeyId) }),
      answer: pageAnswer('keys', KeyRecord, 'A page of keys, ordered by id.'),
    },
    async ({ caller, query }, { feed }) => {
      const { keys, next } = await listKeys(feed, query, caller);
      return { body: { keys, next } };
    },
  ),
  route(
    {
      method: 'post',
      path: '/v1/keys',
      id: 'createKey',
      summary: 'Create an API key',
      description: 'The key cannot have more permissions than the caller, or expire later.',
      role: 'admin',
      body: NewKey,
      example: { name: 'dashboard', role: 'read', accounts: ['acme'], expiresAt: '2027-03-02T08:00:00Z' },
      answer: {
        status: 201,
        description: 'The new key, including its `secret`.',
        schema: z
          .object({
            key: KeyRecord,
            secret: z
              .string()
              .describe('Complete key, returned only once. Send it in the header `Authorization: Bearer …`.'),
          })
          .meta({ id: 'CreatedKey' }),
        headers: { Location: 'Path of the key.' },
      },
      problems: ['unprocessable-content', 'conflict'],
    },
    async ({ caller, body, generators: making }, { feed }) => {
      const { now, table } = feed;
      const outcome = await createKey({ table, now, randomBytes: making.randomBytes }, body, caller);
      if (outcome.kind !== 'created') return outcome;
      return { body: outcome, headers: { location: `/v1/keys/${outcome.key.id}` } };
    },
  ),
  route(
    {
      path: '/v1/keys/{id}',
      id: 'getKey',
      summary: 'Get an API key',
      role: 'admin',
      params,
      answer: { description: 'The key.', schema: KeyRecord },
    },
    async ({ caller, params: { id } }, { feed }) => toFieldResult(await readKey(feed, id, caller), 'key'),
  ),
  route(
    {
      method: 'delete',
      path: '/v1/keys/{id}',
      id: 'revokeKey',
      summary: 'Revoke an API key',
      description: 'Takes effect within 30 seconds. Open streams of the key are closed.',
      role: 'admin',
      params,
      answer: { status: 204, description: 'The key is revoked.' },
      problems: ['unprocessable-content'],
    },
    async ({ caller, params: { id } }, { feed }) => {
      const outcome = await revokeKey(feed, id, caller);
      return outcome.kind === 'revoked' ? { body: undefined } : outcome;
    },
  ),
];
