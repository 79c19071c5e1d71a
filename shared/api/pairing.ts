/**
 * Pairing of wall displays. A screen without a key starts a pairing and shows its code. A user confirms the code. The screen then
 * gets a key with the role `read`, which it requests with its device token: a secret that only the screen has.
 *
 * The table contains the hash of the device token. The key is derived from the token when the screen requests it, so that neither
 * the table nor a backup contains it, and a repeated request gets the same key.
 *
 * Not guaranteed: that concurrent starts do not exceed {@link MAX_PAIRINGS} by a few.
 */
import { createHmac, hash, randomBytes, randomInt, randomUUID, timingSafeEqual } from 'node:crypto';
import { type Rejection, rejected } from '../resources.ts';
import { keys, PAIRING_PK } from '../storage/schema.ts';
import type { Item, Table } from '../storage/table.ts';
import { ROLES } from './key-input.ts';
import { type Caller, checkPermissions, createKey } from './keys.ts';
import { type PairingApproval, WALL_KEY_PREFIX } from './pairing-input.ts';

/** Time for which a code is valid. */
export const PAIRING_MS = 10 * 60_000;
/** Maximum number of valid codes. Of a million codes, so few are valid that a mistyped one hardly ever is. */
export const MAX_PAIRINGS = 100;
/** Time after the confirmation in which the screen must request its key for the first time. */
export const APPROVED_MS = 60_000;
/** Interval at which a screen asks for its key. */
export const CLAIM_SECONDS = 3;
const CODES = 1_000_000;
const MAX_ATTEMPTS = 10;

export interface PairingDeps {
  readonly table: Table;
  /** Epoch ms. */
  readonly now: () => number;
  /** Returns a code number below {@link CODES}. Default: random. */
  readonly newCode?: () => number;
  /** Returns the id of a confirmation. A repeated request gets the same one. Default: random. */
  readonly newId?: () => string;
}

/** A started pairing. */
export interface StartedPairing {
  readonly kind: 'started';
  readonly code: string;
  /** 256 random bits. Not returned again. */
  readonly deviceToken: string;
  /** Epoch ms. */
  readonly expiresAt: number;
}

/** Starts a pairing. `too many`: the maximum of valid codes is reached until `retryAt` (epoch ms). */
export async function startPairing(
  deps: PairingDeps,
): Promise<StartedPairing | { readonly kind: 'too many'; readonly retryAt: number }> {
  const { table, now, newCode = () => randomInt(CODES) } = deps;
  const startedAt = now();
  const all = await table.query({ pk: PAIRING_PK, limit: MAX_PAIRINGS * 2 });
  const valid = all.filter((item) => !isExpired(item, startedAt));
  if (valid.length >= MAX_PAIRINGS)
    return { kind: 'too many', retryAt: Math.min(...valid.map(({ expiresAt }) => Number(expiresAt))) };
  // DynamoDB deletes expired items up to some days later.
  for (const { pk, sk } of all.filter((item) => isExpired(item, startedAt)))
    await table.write({ delete: { pk, sk }, when: [['expiresAt', '<=', startedAt]] });
  const deviceToken = randomBytes(32).toString('base64url');
  const expiresAt = startedAt + PAIRING_MS;
  for (let attempt = 0; attempt < MAX_ATTEMPTS; attempt += 1) {
    const code = String(newCode()).padStart(6, '0');
    const put = await table.write({
      put: {
        ...keys.pairing(code),
        digest: new Uint8Array(toDigest(deviceToken)),
        expiresAt,
        ttl: Math.ceil(expiresAt / 1000),
      },
      when: [['pk', 'absent']],
    });
    if (put.done) return { kind: 'started', code, deviceToken, expiresAt };
  }
  return { kind: 'too many', retryAt: startedAt + 1_000 };
}

/** Permissions that a confirmed code grants. */
export interface ApprovedPairing {
  readonly kind: 'approved';
  /** Name of the key. */
  readonly name: string;
  readonly accounts: readonly string[] | null;
  /** When the key expires (epoch ms): with the key of the caller. `null`: never. */
  readonly expiresAt: number | null;
}

/**
 * Confirms a code, once, on behalf of the caller. The screen can then request a key for these accounts. `unknown code`: no screen
 * shows it, or it has expired, or was confirmed before.
 */
export async function approvePairing(
  { table, now, newId = randomUUID }: PairingDeps,
  { code, name: screen, accounts = null }: PairingApproval,
  by: Caller,
): Promise<ApprovedPairing | { readonly kind: 'unknown code' } | Rejection> {
  const approvedAt = now();
  // The token of a user is renewed: its expiry limits no key.
  const expiresAt = by.user ? null : by.expiresAt;
  const reason = checkPermissions({ role: 'read', accounts, expiresAt }, by, approvedAt);
  if (reason) return rejected(reason);
  const name = `${WALL_KEY_PREFIX} ${screen.trim()}`.trim();
  const approval = newId();
  const write = await table.write({
    update: keys.pairing(code),
    set: {
      ...{ approvedAt, name, approval },
      accounts: accounts ?? undefined,
      keyExpiresAt: expiresAt ?? undefined,
      // The caller, for whom the key is created.
      ...{ byKeyId: by.keyId, byRole: by.role, bySubject: by.user?.subject },
      byName: by.user?.name ?? undefined,
      byAccounts: by.accounts ?? undefined,
      byExpiresAt: by.expiresAt ?? undefined,
    },
    when: [
      ['expiresAt', '>', approvedAt],
      ['approvedAt', 'absent'],
    ],
  });
  if (!write.done && write.item?.approval !== approval) return { kind: 'unknown code' };
  return { kind: 'approved', name, accounts, expiresAt };
}

/** `ended`: there is no such pairing, or it has expired, or its key is revoked. */
export type Claimed =
  | { readonly kind: 'waiting' }
  | { readonly kind: 'paired'; readonly secret: string }
  | { readonly kind: 'ended' };

/** Returns the key of a confirmed pairing to its screen. Until the code expires, a repeated request returns the same key. */
export async function claimKey(
  { table, now }: PairingDeps,
  { code, deviceToken }: { readonly code: string; readonly deviceToken: string },
): Promise<Claimed | Rejection> {
  const item = await table.get(keys.pairing(code));
  const digest = item?.digest instanceof Uint8Array ? Buffer.from(item.digest) : randomBytes(32);
  const isDevice = timingSafeEqual(digest, toDigest(deviceToken));
  if (!item || !isDevice || isExpired(item, now())) return { kind: 'ended' };
  if (item.approvedAt === undefined) return { kind: 'waiting' };
  // The permissions of the user and the accounts may change after the confirmation.
  if (item.keyId === undefined && now() >= Number(item.approvedAt) + APPROVED_MS) return { kind: 'ended' };
  // The key was created before: it may be revoked, and must not be created again.
  if (typeof item.keyId === 'string' && !(await table.get(keys.apiKey(item.keyId)))) return { kind: 'ended' };
  const { name, accounts, keyExpiresAt } = item;
  const created = await createKey(
    { table, now, randomBytes: createDerivation(deviceToken) },
    {
      ...{ name, role: 'read' },
      ...(accounts === undefined ? {} : { accounts }),
      ...(keyExpiresAt === undefined ? {} : { expiresAt: new Date(Number(keyExpiresAt)).toISOString() }),
    },
    toApprover(item),
  );
  if (created.kind !== 'created') return created;
  await table.write({
    update: keys.pairing(code),
    set: { keyId: created.key.id },
    when: [['digest', 'present']],
  });
  return { kind: 'paired', secret: created.secret };
}

/** Returns the caller that confirmed the code. */
function toApprover(item: Item): Caller {
  const { byKeyId, byRole, byAccounts, byExpiresAt, bySubject, byName } = item;
  return {
    ...{ keyId: String(byKeyId), name: null },
    role: ROLES.find((known) => known === byRole) ?? 'read',
    accounts: byAccounts === undefined ? null : (byAccounts as readonly string[]),
    expiresAt: byExpiresAt === undefined ? null : Number(byExpiresAt),
    ...(typeof bySubject === 'string'
      ? { user: { subject: bySubject, name: typeof byName === 'string' ? byName : null } }
      : {}),
  };
}

const toDigest = (deviceToken: string): Buffer => hash('sha256', deviceToken, 'buffer');

/** Returns a source of bytes that depend on the device token only. Each call returns at most 32. */
function createDerivation(deviceToken: string): (bytes: number) => Uint8Array {
  let call = 0;
  return (bytes) => {
    call += 1;
    return createHmac('sha256', deviceToken)
      .update(`key of a wall display, ${call}`)
      .digest()
      .subarray(0, bytes);
  };
}

const isExpired = (item: Item, nowMs: number): boolean => Number(item.expiresAt) <= nowMs;
