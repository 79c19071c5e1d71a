/** Accounts with the same credentials. They report the same jobs, each in its own log. */
import { createHash } from 'node:crypto';

/** Identity of the credentials of an account. */
interface CredentialsIdentity {
  readonly account: string;
  readonly region: string;
  /** Location of the credentials. */
  readonly secretRef: string;
  /** {@link hashClientId} of the client id. Absent if Jobwire does not know it: the credentials are only referenced. */
  readonly clientHash?: string;
}

/** Returns the hash under which a client id is stored with the account, so that accounts can be compared. */
export function hashClientId(clientId: string): string {
  return createHash('sha256').update(clientId).digest('base64url');
}

/**
 * Returns a warning if other accounts of a list have the credentials of `account`: its region, and its client id or its secret. `undefined`
 * if there are none. Contains ids of accounts only.
 */
export function warnOfSharedCredentials(
  account: CredentialsIdentity,
  list: readonly CredentialsIdentity[],
): string | undefined {
  const { region, secretRef, clientHash } = account;
  const same = list.filter(
    (other) =>
      other.region === region &&
      other.account !== account.account &&
      (other.secretRef === secretRef || (clientHash !== undefined && other.clientHash === clientHash)),
  );
  if (same.length === 0) return undefined;
  const names = [...same, account].map((one) => `"${one.account}"`).sort();
  return `The accounts ${names.slice(0, -1).join(', ')} and ${names.at(-1)} in region ${region} have the same credentials, so each of them reports the same jobs.`;
}

/** Returns a warning for each group of accounts of a region with the same client id or the same secret. */
export function listSharedCredentials(accounts: readonly CredentialsIdentity[]): ReadonlySet<string> {
  const groups = (['secretRef', 'clientHash'] as const).flatMap((name) => [
    ...Map.groupBy(accounts, (account) => account[name]),
  ]);
  const warnings = groups.map(([shared, group]) =>
    shared !== undefined && group[0] ? warnOfSharedCredentials(group[0], group) : undefined,
  );
  return new Set(warnings.filter((warning) => warning !== undefined));
}
