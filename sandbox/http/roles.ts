// What the roles of credentials may do.

import type { Role } from '../world/records.ts';

/**
 * To order and see orders, to administer the account, to see and set privileged fields. A viewer may see the account and the
 * lookups, and nothing that has to do with orders.
 */
const ALLOWED = {
  ordering: ['user', 'administrator', 'staff'],
  administrator: ['administrator', 'staff'],
  privileged: ['staff'],
} as const satisfies Readonly<Record<string, readonly Role[]>>;

/** Something that only some roles may do. */
export type Right = keyof typeof ALLOWED;

/** Whether credentials of a role may do something. */
export function may(role: Role, right: Right): boolean {
  return ALLOWED[right].some((allowed) => allowed === role);
}
