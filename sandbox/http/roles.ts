// Rights of the roles of credentials.

import type { Role } from '../world/records.ts';

/**
 * Rights: to order and read orders, to administer the account, to read and set privileged fields. A viewer has none of them,
 * and may use only operations that need no right.
 */
const ALLOWED = {
  ordering: ['user', 'administrator', 'staff'],
  administrator: ['administrator', 'staff'],
  privileged: ['staff'],
} as const satisfies Readonly<Record<string, readonly Role[]>>;

/** Something that only some roles may do. */
export type Right = keyof typeof ALLOWED;

/** Whether credentials of a role may do something. */
export function hasRight(role: Role, right: Right): boolean {
  return ALLOWED[right].some((allowed) => allowed === role);
}
