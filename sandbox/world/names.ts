// Generated users of an account.

import { DAY_MS } from './dates.ts';
import type { AccountFacts } from './records.ts';
import { FIRST_NAMES, LAST_NAMES } from './sample-data.ts';

/** Number of users who do not order: enough for more than one page. */
const COLLEAGUES = 57;

/**
 * Adds users with recent, old or no logins. One in nine is inactive. Shop-floor users share an e-mail address and log in by
 * name.
 */
export function addColleagues(account: AccountFacts, count = COLLEAGUES): void {
  for (let index = 0; index < count; index += 1) {
    const seed = account.id + index * 7;
    const firstName = FIRST_NAMES[seed % FIRST_NAMES.length] ?? '';
    const lastName = LAST_NAMES[(account.id + index * 5) % LAST_NAMES.length] ?? '';
    const userName = `${firstName}.${lastName}${index}`
      .normalize('NFD')
      .replace(/[^A-Za-z0-9.]/g, '')
      .toLowerCase();
    const isOnTheFloor = index % 8 === 5;
    const loginCount = index % 11 === 4 ? 0 : ((seed * 31) % 240) + 1;
    account.addUser({
      userName,
      firstName,
      lastName,
      emailAddress: isOnTheFloor ? 'floor@customer.example' : `${userName}@customer.example`,
      usernameLoginOnly: isOnTheFloor,
      active: index % 9 !== 7,
      receiveEmails: index % 3 !== 0,
      loginCount,
      lastLogin: loginCount === 0 ? null : account.openedAt - ((seed * 17) % 300) * DAY_MS - index * 61_000,
    });
  }
}
