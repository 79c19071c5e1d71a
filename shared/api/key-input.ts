/** Schemas of API keys. Free of Node, because web pages use them too. */
import * as z from 'zod';
import { id as accountId, line, timestamp } from '../validation.ts';

/** Roles, in ascending order of permissions. */
export const ROLES = ['read', 'operate', 'admin'] as const;
export type Role = (typeof ROLES)[number];

/** Returns whether `role` includes the permissions of `needed`. */
export function roleAllows(role: Role, needed: Role): boolean {
  return ROLES.indexOf(role) >= ROLES.indexOf(needed);
}

const role = z.enum(ROLES, 'must be read, operate or admin');
const MAX_ACCOUNTS = 200;

/** A new key. Default: all accounts, no expiry. */
export const NewKey = z
  .strictObject({
    name: line(100).optional().describe('Display name.'),
    role: role.describe('Role: `read`, `operate` (includes `read`) or `admin` (includes `operate`).'),
    accounts: z
      .array(accountId, 'must be a list of ids of accounts')
      .min(1, 'must name at least one account')
      .max(MAX_ACCOUNTS, `must name at most ${MAX_ACCOUNTS} accounts`)
      .nullable()
      .optional()
      .describe(
        'Ids of the accounts that the key can access. They need not exist yet. `null` or absent: all accounts.',
      ),
    expiresAt: timestamp.optional().describe('Time at which the key expires. Default: never.'),
  })
  .meta({ id: 'NewKey' });
export type NewKey = z.infer<typeof NewKey>;
