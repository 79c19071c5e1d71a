/** Owners of files, for messages. */
import { readFileSync, statSync } from 'node:fs';

/** Returns the owner of a file as `the user NAME`, if it is not the current user. Otherwise `undefined`. */
export function findOtherOwner(path: string): string | undefined {
  if (!process.geteuid) return undefined;
  const { uid } = statSync(path);
  return uid === process.geteuid() ? undefined : `the user ${findName(uid) ?? `with the id ${uid}`}`;
}

function findName(uid: number): string | undefined {
  let users = '';
  try {
    users = readFileSync('/etc/passwd', 'utf8');
  } catch {
    // The id is enough.
  }
  return users
    .split('\n')
    .map((line) => line.split(':'))
    .find(([, , id]) => id === String(uid))?.[0];
}
