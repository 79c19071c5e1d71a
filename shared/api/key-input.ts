/** What may be asked of API keys, and what is shown of them. Free of Node, for pages check with it too. */
import * as z from 'zod';
import { id as accountId, instant } from '../checks.ts';

/** What a key may do; each may do all that those before it may. */
export const ROLES = ['read', 'operate', 'admin'] as const;
export type Role = (typeof ROLES)[number];

/** Whether a role may do what another may. */
export function roleAllows(role: Role, needed: Role): boolean {
  return ROLES.indexOf(role) >= ROLES.indexOf(needed);
}

const role = z.enum(ROLES, 'must be read, operate or admin');
const NAME_RULE = 'must be 1 to 100 characters long';
const MAX_ACCOUNTS = 200;

/** A new key. Without `accounts`, or with null, it is for all of them; without `expiresAt` it does not expire. */
export const NewKey = z
  .strictObject({
    name: z
      .string('must be text')
      .min(1, NAME_RULE)
      .max(100, NAME_RULE)
      .optional()
      .describe('What it is for, in your words.'),
    role: role.describe('What it may do: `read`; `operate` more than that; `admin` everything.'),
    accounts: z
      .array(accountId, 'must be a list of ids of accounts')
      .min(1, 'must name at least one account')
      .max(MAX_ACCOUNTS, `must name at most ${MAX_ACCOUNTS} accounts`)
      .nullable()
      .optional()
      .describe('Ids of the accounts it is for, registered or not yet; null or absent: all of them.'),
    expiresAt: instant.optional().describe('From when on it is refused; absent: never.'),
  })
  .meta({ id: 'NewKey' });
export type NewKey = z.infer<typeof NewKey>;

/** A key as it is shown: without its secret. */
export const KeyRecord = z
  .strictObject({
    id: z.string().describe('What the key is known by: the part between the first two `_`.'),
    name: z.string().nullable().describe('What somebody called it.'),
    role: role.describe('What it may do: `read`; `operate` more than that; `admin` everything.'),
    accounts: z.array(z.string()).nullable().describe('Ids of the accounts it is for; null: all of them.'),
    createdAt: z.iso.datetime().describe('When it was made.'),
    createdBy: z.string().describe('The id of the key that made it; `operator` for the command of a cell.'),
    expiresAt: z.iso.datetime().nullable().describe('From when on it is refused; null: never.'),
    lastUsedAt: z.iso
      .datetime()
      .nullable()
      .describe('When it was last used, to about 5 minutes; null: not within the last 400 days.'),
  })
  .meta({ id: 'ApiKey' });
export type KeyRecord = z.infer<typeof KeyRecord>;
