/** API keys: who may do what through the API. */
import * as z from 'zod';
import { KeyRecord, NewKey, ROLES } from '../key-input.ts';
import { type Caller, createKey, isKeyId, listKeys, readKey, revokeKey } from '../keys.ts';
import { afterId, instant, instantText, limit, nextOf, one } from '../parameters.ts';
import { notDone } from '../problems.ts';
import { type Route, route } from '../route.ts';

const params = z.object({
  id: one.describe('The id of the key: what stands between the first two `_` of it.'),
});

const Self = z
  .object({
    id: z
      .string()
      .describe('What the key is known by; `bootstrap` for the one that the configuration names.'),
    name: z.string().nullable().describe('What somebody called it.'),
    role: z.enum(ROLES).describe('What it may do.'),
    accounts: z.array(z.string()).nullable().describe('Ids of the accounts it is for; null: all of them.'),
    expiresAt: instant.nullable().describe('From when on it is refused; null: never.'),
  })
  .meta({ id: 'OwnKey', description: 'The key that a request was made with.' });

/** Everything about keys. */
export const keyRoutes: readonly Route[] = [
  route(
    {
      method: 'get',
      path: '/v1/key',
      id: 'getOwnKey',
      tag: 'Keys',
      summary: 'The key that is shown: what it may do, and for which accounts',
      role: 'read',
      answer: { status: 200, description: 'The key.', schema: Self },
    },
    ({ caller }) => ({ body: selfOf(caller) }),
  ),
  route(
    {
      method: 'get',
      path: '/v1/keys',
      id: 'listKeys',
      tag: 'Keys',
      summary: 'All keys that may no more than the one that asks',
      role: 'admin',
      query: z.strictObject({ limit, after: afterId('keys', isKeyId) }),
      answer: {
        status: 200,
        description: 'A page of keys, by id.',
        schema: z.object({ keys: z.array(KeyRecord), next: nextOf }),
      },
    },
    async ({ caller, query }, { feed }) => {
      const { keys, next } = await listKeys(feed, query, caller);
      return { body: { keys: [...keys], next } };
    },
  ),
  route(
    {
      method: 'post',
      path: '/v1/keys',
      id: 'createKey',
      tag: 'Keys',
      summary: 'Make a key',
      description: 'It may no more than the key that makes it, and does not outlive it.',
      role: 'admin',
      body: NewKey,
      example: { name: 'dashboard', role: 'read', accounts: ['acme'], expiresAt: '2027-03-02T08:00:00Z' },
      answer: {
        status: 201,
        description: 'The key. Its secret is shown here and never again.',
        schema: z
          .object({
            key: KeyRecord,
            secret: z.string().describe('The whole key: what to send as `Authorization: Bearer …`.'),
          })
          .meta({ id: 'NewKeyAnswer' }),
        headers: { Location: 'The path of the key.' },
      },
      problems: ['refused'],
    },
    async ({ c, caller, body, making }, { feed }) => {
      const { now, table } = feed;
      const outcome = await createKey({ table, now, randomBytes: making.randomBytes }, body, caller);
      if (outcome.kind !== 'created') return notDone(c, outcome);
      const { key, secret } = outcome;
      return { body: { key, secret }, headers: { location: `/v1/keys/${key.id}` } };
    },
  ),
  route(
    {
      method: 'get',
      path: '/v1/keys/{id}',
      id: 'getKey',
      tag: 'Keys',
      summary: 'One key',
      role: 'admin',
      params,
      answer: { status: 200, description: 'The key.', schema: KeyRecord },
    },
    async ({ c, caller, params: { id } }, { feed }) => {
      const outcome = await readKey(feed, id, caller);
      return outcome.kind === 'found' ? { body: outcome.key } : notDone(c, outcome);
    },
  ),
  route(
    {
      method: 'delete',
      path: '/v1/keys/{id}',
      id: 'revokeKey',
      tag: 'Keys',
      summary: 'Take a key away',
      description: 'Counts within 30 seconds; streams that are open with it go on to their end.',
      role: 'admin',
      params,
      answer: { status: 204, description: 'It is gone.' },
      problems: ['refused'],
    },
    async ({ c, caller, params: { id } }, { feed }) => {
      const outcome = await revokeKey(feed, id, caller);
      return outcome.kind === 'revoked' ? { body: undefined } : notDone(c, outcome);
    },
  ),
];

function selfOf({ keyId: id, name, role, accounts, expiresAt }: Caller): z.input<typeof Self> {
  return { id, name, role, accounts: accounts && [...accounts], expiresAt: instantText(expiresAt) };
}
