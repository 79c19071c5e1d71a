/**
 * API keys: `jw_<id>_<secret>`. ID tokens of users are accepted too (`sign-in.ts`). A key identifies a {@link Caller}, whose
 * permissions are limited by role and accounts. Keys are created and revoked, never changed. The complete key is returned only once.
 *
 * Only the SHA-256 of the key is stored. A slow hash is unnecessary, because secrets have 256 random bits.
 *
 * A key can create and list only keys whose permissions do not exceed its own. All others are reported as not found.
 *
 * Not guaranteed: that a revoked key is rejected immediately. Each process caches a verified key for 30 seconds. Keys created by
 * a revoked key stay valid.
 */
import { hash, randomBytes as nodeRandomBytes, timingSafeEqual } from 'node:crypto';
import { getRevision, notFound, type Rejection, rejected } from '../resources.ts';
import { API_KEY_PK, keys } from '../storage/schema.ts';
import type { Clause, Item, Table, WriteOutcome } from '../storage/table.ts';
import { checkInput } from '../validation.ts';
import { NewKey, ROLES, type Role, roleAllows } from './key-input.ts';
import type { KeyRecord, User } from './key-record.ts';
import { BOOTSTRAP_KEY } from './waiting-limit.ts';

/** The authenticated caller, without secrets. */
export interface Caller {
  readonly keyId: string;
  readonly name: string | null;
  readonly role: Role;
  /** Ids of accounts. `null`: all accounts. */
  readonly accounts: readonly string[] | null;
  /** Epoch ms. For a user: when the ID token expires. */
  readonly expiresAt: number | null;
  /** The signed-in user. Absent for API keys. Personal data: never logged. */
  readonly user?: User;
  /** E-mail address of the user, unless the issuer has not verified it. Absent for API keys. */
  readonly email?: string;
}

/** Verifies ID tokens of users. */
export interface UserVerifier {
  /** Returns the user of an ID token. `undefined` if it is invalid. Throws if the user has no access, or the issuer does not respond. */
  verify(token: string): Promise<Caller | undefined>;
  /** Returns whether this process has verified this token before. */
  isKnown(token: string): boolean;
}

/** The caller of the cell's operator function, who has no key. */
export const OPERATOR: Caller = {
  keyId: 'operator',
  name: null,
  role: 'admin',
  accounts: null,
  expiresAt: null,
};

/** Maximum number of keys, including recently expired ones. */
export const MAX_KEYS = 1000;
/** Number of these reserved for keys created by callers with access to all accounts. */
const RESERVED_KEYS = 100;
/** Maximum number of keys per account, so that no tenant uses up all keys. */
export const MAX_KEYS_OF_ACCOUNT = 100;
/** Time for which a verified key is cached. */
const CACHE_MS = 30_000;
/** The same for open streams. They check the key with each heartbeat (15 seconds), so they end within 30 seconds. */
const STREAM_CACHE_MS = 10_000;
/** Maximum number of cached keys: all keys, and some revoked ones. */
const MAX_CACHED = MAX_KEYS + 200;
/** Minimum interval between two writes of the last use of a key. */
const RECORD_USE_EVERY_MS = 5 * 60_000;
const USE_TTL_MS = 400 * 86_400_000;
/** Time for which an expired key is still listed. */
const EXPIRED_TTL_MS = 30 * 86_400_000;
/** Time for which a stream continues after the user's token has expired: the accepted difference of clocks. */
const USER_GRACE_MS = 30_000;
/** Minimum length of the key from the configuration. */
const MIN_BOOTSTRAP = 16;

const ID_ALPHABET = 'abcdefghijkmnpqrstuvwxyz23456789';
const ID_CHARACTERS = 12;
const SECRET_BYTES = 32;
/** Without `_` and `-`, so that a double click selects the whole secret. */
const SECRET_ALPHABET = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz';
/** Number of base-62 characters for 256 bits. */
const SECRET_CHARACTERS = 43;
const KEY = new RegExp(`^jw_([${ID_ALPHABET}]{${ID_CHARACTERS}})_[0-9A-Za-z]{${SECRET_CHARACTERS}}$`);
const ID = new RegExp(`^[${ID_ALPHABET}]{${ID_CHARACTERS}}$`);
/** Returns whether a text is a valid key id. Other texts are not looked up. */
export const isKeyId = (text: string): boolean => ID.test(text);

/** Returns whether a bearer token has the form of a JWT. API keys contain no dot. */
const isToken = (bearer: string): boolean => /^eyJ[\w-]*\.[\w-]+\.[\w-]*$/.test(bearer);

/** Verifies API keys, and ID tokens of users. */
export interface Keyring {
  /**
   * Returns the caller of a key. `undefined` if the key is unknown, expired or revoked (after at most 30 seconds). Invalid keys are
   * not cached. Throws `TableError` if the table does not respond, and the errors of {@link UserVerifier}.
   */
  verify(key: string): Promise<Caller | undefined>;
  /**
   * Returns whether this process has verified this key before. Such a key is exempt from the limit on failed authentications. It may
   * be invalid now.
   */
  isKnown(key: string): boolean;
  /**
   * Returns whether the caller's key is still valid, for the same accounts. Throws `TableError` if the table does not respond.
   */
  isCurrent(caller: Caller): Promise<boolean>;
  /** Resolves when all pending writes of last uses have ended, successfully or not. Never rejects. */
  settled(): Promise<void>;
}

interface CachedKey {
  readonly digest: Buffer;
  readonly caller: Caller;
  /** Time before the read (epoch ms). */
  readonly readAt: number;
}

/**
 * Creates a keyring for the keys of the table and the key of the configuration, `bootstrap`. Digests are compared in constant time;
 * an unknown id takes the same path as a wrong secret. Concurrent lookups of one id share one read. The last use of a key is written in
 * the background; errors are ignored. Throws if `bootstrap` is too short.
 */
export function createKeyring(deps: {
  readonly table: Table;
  /** Epoch ms. */
  readonly now: () => number;
  readonly bootstrap?: string | undefined;
  /** Absent: only keys are accepted. */
  readonly users?: UserVerifier | undefined;
}): Keyring {
  const { table, now, bootstrap, users } = deps;
  if (bootstrap !== undefined && bootstrap.length < MIN_BOOTSTRAP) {
    throw new Error(`The API key must be at least ${MIN_BOOTSTRAP} characters long.`);
  }
  const configured = bootstrap === undefined ? undefined : sha256(bootstrap);
  /** Digest to compare with if the key is unknown. */
  const noDigest = nodeRandomBytes(32);
  const cache = new Map<string, CachedKey>();
  const reading = new Map<string, Promise<Omit<CachedKey, 'digest'> & { readonly digest?: Buffer }>>();
  const noted = new Map<string, number>();
  const writing = new Set<Promise<unknown>>();

  /** Reads a key. Concurrent reads of the same id share one request. */
  function read(id: string) {
    const under = reading.get(id);
    if (under) return under;
    const readAt = now();
    const answer = table
      .get(keys.apiKey(id))
      .then((item) => {
        const digest = item?.digest instanceof Uint8Array ? Buffer.from(item.digest) : undefined;
        return { readAt, caller: toCaller(id, item), ...(digest?.length === 32 ? { digest } : {}) };
      })
      .finally(() => reading.delete(id));
    reading.set(id, answer);
    return answer;
  }

  function cacheKey(id: string, entry: CachedKey) {
    cache.delete(id);
    cache.set(id, entry);
    const [oldest] = cache.keys();
    if (cache.size > MAX_CACHED && oldest !== undefined) cache.delete(oldest);
  }

  function recordUse(id: string) {
    const usedAt = now();
    if (usedAt < (noted.get(id) ?? Number.NEGATIVE_INFINITY) + RECORD_USE_EVERY_MS) return;
    noted.delete(id);
    noted.set(id, usedAt);
    const [oldest] = noted.keys();
    if (noted.size > MAX_CACHED && oldest !== undefined) noted.delete(oldest);
    const done = table
      .write({
        put: { ...keys.apiKeyUse(id), usedAt, ttl: seconds(usedAt + USE_TTL_MS) },
        // Another process may have written it.
        when: [['usedAt', 'absent or <=', usedAt - RECORD_USE_EVERY_MS]],
      })
      .catch(() => undefined)
      .finally(() => writing.delete(done));
    writing.add(done);
  }

  async function find(id: string, digest: Buffer): Promise<Caller | undefined> {
    const known = cache.get(id);
    if (known && now() < known.readAt + CACHE_MS && timingSafeEqual(digest, known.digest)) {
      return known.caller;
    }
    const { digest: stored, ...found } = await read(id);
    const isRight = timingSafeEqual(digest, stored ?? noDigest);
    if (!stored) cache.delete(id);
    if (!isRight || !stored) return undefined;
    cacheKey(id, { digest: stored, ...found });
    return found.caller;
  }

  return {
    async verify(key) {
      const digest = sha256(key);
      if (configured && timingSafeEqual(digest, configured)) {
        return { ...OPERATOR, keyId: BOOTSTRAP_KEY };
      }
      const id = KEY.exec(key)?.[1];
      if (id === undefined) return users && isToken(key) ? users.verify(key) : undefined;
      const caller = await find(id, digest);
      if (!caller || isExpired(caller.expiresAt, now())) return undefined;
      recordUse(id);
      return caller;
    },

    isKnown(key) {
      const digest = sha256(key);
      if (configured && timingSafeEqual(digest, configured)) return true;
      const known = cache.get(KEY.exec(key)?.[1] ?? '');
      if (known) return timingSafeEqual(digest, known.digest);
      return users?.isKnown(key) ?? false;
    },

    async isCurrent(caller) {
      const { keyId, accounts, expiresAt, user } = caller;
      if (user) return !isExpired(expiresAt, now() - USER_GRACE_MS);
      if (keyId === BOOTSTRAP_KEY || keyId === OPERATOR.keyId) return true;
      if (isExpired(expiresAt, now())) return false;
      const known = cache.get(keyId);
      if (known && now() < known.readAt + STREAM_CACHE_MS) return isSame(known.caller.accounts, accounts);
      const { digest, ...found } = await read(keyId);
      if (!digest) cache.delete(keyId);
      else cacheKey(keyId, { digest, ...found });
      return digest !== undefined && isSame(found.caller.accounts, accounts);
    },

    async settled() {
      await Promise.all(writing);
    },
  };
}

/** Dependencies of the key operations. */
export interface KeyDeps {
  readonly table: Table;
  /** Epoch ms. */
  readonly now: () => number;
  /**
   * Source of id and secret, called in the same order each time. A repeated request (`idempotency.ts`) gets the same bytes and
   * creates the same key again. Default: random.
   */
  readonly randomBytes?: (bytes: number) => Uint8Array;
}

/** Result of the creation of a key. */
export interface KeyCreated {
  readonly kind: 'created';
  readonly key: KeyRecord;
  /** The complete key, for `Authorization: Bearer …`. Not returned again. */
  readonly secret: string;
}

/**
 * Creates a key whose permissions and lifetime do not exceed those of the caller. A rejected request stores nothing. Concurrent
 * requests can slightly exceed {@link MAX_KEYS}.
 */
export async function createKey(deps: KeyDeps, input: unknown, by: Caller): Promise<KeyCreated | Rejection> {
  const checked = checkInput(NewKey, input);
  if (checked.kind === 'rejected') return checked;
  const { table, now, randomBytes = nodeRandomBytes } = deps;
  const { name, role, accounts, expiresAt } = checked.value;
  const createdAt = now();
  const wanted = {
    role,
    accounts: accounts ? [...new Set(accounts)].sort() : null,
    expiresAt: expiresAt === undefined ? null : Date.parse(expiresAt),
  };
  const reason = checkPermissions(wanted, by, createdAt);
  if (reason) return rejected(reason);

  const id = newKeyId(randomBytes);
  const secret = `jw_${id}_${newSecret(randomBytes)}`;
  const digest = sha256(secret);
  const others = (await table.query({ pk: API_KEY_PK, limit: MAX_KEYS + 1 })).filter(({ sk }) => sk !== id);
  const most = by.accounts === null ? MAX_KEYS : MAX_KEYS - RESERVED_KEYS;
  if (others.length >= most) {
    return { kind: 'conflict', reason: `The maximum of ${most} keys is reached. Revoke an unused key.` };
  }
  const full = wanted.accounts?.find(
    (account) => others.filter((key) => readAccounts(key).includes(account)).length >= MAX_KEYS_OF_ACCOUNT,
  );
  if (full !== undefined) {
    const reason = `The account "${full}" has the maximum of ${MAX_KEYS_OF_ACCOUNT} keys. Revoke one first.`;
    return { kind: 'conflict', reason };
  }
  const item: Item = {
    ...keys.apiKey(id),
    digest: new Uint8Array(digest),
    name,
    role,
    accounts: wanted.accounts ?? undefined,
    createdAt,
    createdBy: by.keyId,
    createdBySubject: by.user?.subject,
    createdByName: by.user?.name ?? undefined,
    expiresAt: wanted.expiresAt ?? undefined,
    ttl: wanted.expiresAt === null ? undefined : seconds(wanted.expiresAt + EXPIRED_TTL_MS),
  };
  const put = await table.write({ put: item, when: [['pk', 'absent']] });
  if (put.done) return { kind: 'created', key: toRecord(item, undefined), secret };
  const there = put.item?.digest;
  const isSame = there instanceof Uint8Array && Buffer.from(there).equals(digest);
  if (put.item && isSame) return { kind: 'created', key: toRecord(put.item, undefined), secret };
  return { kind: 'conflict', reason: 'The generated id of the key is in use. Retry.' };
}

/** Returns a page of the keys visible to the caller, ordered by id. `next`: the last id, or `null` on the last page. */
export async function listKeys(
  { table }: Pick<KeyDeps, 'table'>,
  page: { readonly limit: number; readonly after?: string | undefined },
  by: Caller,
): Promise<{ readonly keys: readonly KeyRecord[]; readonly next: string | null }> {
  const { limit } = page;
  const seen: Item[] = [];
  let after = page.after;
  // Most keys may be hidden from the caller.
  const size = Math.max(limit + 1, 100);
  for (;;) {
    const items = await table.query({ pk: API_KEY_PK, ...(after !== undefined && { after }), limit: size });
    seen.push(...items.filter((item) => isVisible(by, item)));
    after = items.at(-1)?.sk;
    if (seen.length > limit || items.length < size) break;
  }
  const shown = seen.slice(0, limit);
  const uses = await table.getMany(shown.map(({ sk }) => keys.apiKeyUse(sk)));
  const usesById = new Map(uses.map((use) => [use.sk, use]));
  return {
    keys: shown.map((item) => toRecord(item, usesById.get(item.sk))),
    next: seen.length > limit ? (shown.at(-1)?.sk ?? null) : null,
  };
}

/** Returns a key visible to the caller. */
export async function readKey(
  { table }: Pick<KeyDeps, 'table'>,
  id: string,
  by: Caller,
): Promise<{ readonly kind: 'found'; readonly key: KeyRecord } | Rejection> {
  const item = await find(table, id, by);
  if (!item) return unknownKey();
  const [use] = await table.getMany([keys.apiKeyUse(id)]);
  return { kind: 'found', key: toRecord(item, use) };
}

/**
 * Revokes a key, possibly the caller's own. Takes effect within 30 seconds. The key of the configuration cannot be revoked here.
 */
export async function revokeKey(
  { table }: Pick<KeyDeps, 'table'>,
  id: string,
  by: Caller,
): Promise<{ readonly kind: 'revoked' } | Rejection> {
  if (id === BOOTSTRAP_KEY && by.role === 'admin' && by.accounts === null) {
    return rejected('Change this key in the configuration, or in the file api-key of the data folder.');
  }
  if (!(await find(table, id, by))) return unknownKey();
  // The key first: a remaining last use expires.
  await table.write({ delete: keys.apiKey(id) });
  await table.write({ delete: keys.apiKeyUse(id) });
  return { kind: 'revoked' };
}

/**
 * Removes a deleted account from the keys that were created up to a time (epoch ms), because its id can be reused. A key without other
 * accounts is revoked: without accounts it would apply to all. Returns false if a key was modified concurrently; call it again.
 */
export async function removeAccountFromKeys(table: Table, account: string, until: number): Promise<boolean> {
  const items = await table.query({ pk: API_KEY_PK });
  const changes = items.flatMap((item): Promise<WriteOutcome>[] => {
    const accounts = readAccounts(item);
    if (!accounts.includes(account) || Number(item.createdAt) > until) return [];
    const others = accounts.filter((each) => each !== account);
    const { pk, sk } = item;
    // Concurrent deletions must not undo each other.
    const when: Clause[] = [
      ['pk', 'present'],
      ['revision', 'absent or =', getRevision(item)],
    ];
    if (others.length === 0) return [table.write({ delete: { pk, sk }, when })];
    return [
      table.write({ update: { pk, sk }, set: { accounts: others, revision: getRevision(item) + 1 }, when }),
    ];
  });
  return (await Promise.all(changes)).every(({ done }) => done);
}

/** Returns the accounts of a key. Empty if it applies to all accounts. */
const readAccounts = ({ accounts }: Item): readonly string[] =>
  (accounts as readonly string[] | undefined) ?? [];

/** Returns whether two sorted lists of accounts are equal. */
const isSame = (one: Caller['accounts'], other: Caller['accounts']): boolean =>
  String(one) === String(other) && (one === null) === (other === null);

/** Permissions of a key. */
type Permissions = Pick<Caller, 'role' | 'accounts'>;

/** Returns why the caller cannot create a key, as an error message; `undefined` if allowed. */
export function checkPermissions(
  wanted: Permissions & Pick<Caller, 'expiresAt'>,
  by: Caller,
  now: number,
): string | undefined {
  if (!roleAllows(by.role, wanted.role)) {
    return `role must be ${by.role} or lower: a key cannot grant more than its own permissions.`;
  }
  if (!coversAccounts(by.accounts, wanted.accounts)) {
    return wanted.accounts === null
      ? 'accounts is required: a key for some accounts cannot create a key for all accounts.'
      : 'accounts must contain only accounts of the creating key.';
  }
  if (isExpired(wanted.expiresAt, now)) return 'expiresAt must be in the future.';
  // The token of a user is renewed: its expiry limits no key.
  if (!by.user && by.expiresAt !== null && (wanted.expiresAt === null || wanted.expiresAt > by.expiresAt)) {
    return `expiresAt must be ${toIso(by.expiresAt)} or earlier: a key cannot create a key that expires later.`;
  }
  return undefined;
}

function isVisible(by: Permissions, item: Item): boolean {
  const { role, accounts } = toCaller(item.sk, item);
  return roleAllows(by.role, role) && coversAccounts(by.accounts, accounts);
}

function coversAccounts(all: Caller['accounts'], some: Caller['accounts']): boolean {
  return all === null || (some?.every((account) => all.includes(account)) ?? false);
}

async function find(table: Table, id: string, by: Permissions): Promise<Item | undefined> {
  if (!isKeyId(id)) return undefined;
  const item = await table.get(keys.apiKey(id));
  return item && isVisible(by, item) ? item : undefined;
}

/** Converts an item. An invalid item results in the least permissions: role `read` and no accounts. */
function toCaller(keyId: string, item: Item | undefined): Caller {
  const { name, role, accounts, expiresAt } = (item ?? {}) as Partial<Item>;
  return {
    keyId,
    name: typeof name === 'string' ? name : null,
    role: ROLES.find((known) => known === role) ?? 'read',
    accounts: accounts === undefined && item ? null : Array.isArray(accounts) ? accounts : [],
    expiresAt: typeof expiresAt === 'number' ? expiresAt : null,
  };
}

function toRecord(item: Item, use: Item | undefined): KeyRecord {
  const { keyId, name, role, accounts, expiresAt } = toCaller(item.sk, item);
  return {
    id: keyId,
    name,
    role,
    accounts: accounts && [...accounts],
    createdAt: toIso(Number(item.createdAt)),
    createdBy: String(item.createdBy),
    createdByUser:
      typeof item.createdBySubject === 'string'
        ? { subject: item.createdBySubject, name: (item.createdByName as string | undefined) ?? null }
        : null,
    expiresAt: expiresAt === null ? null : toIso(expiresAt),
    lastUsedAt: typeof use?.usedAt === 'number' ? toIso(use.usedAt) : null,
  };
}

/** 60 random bits. */
function newKeyId(randomBytes: (bytes: number) => Uint8Array): string {
  return Array.from(randomBytes(ID_CHARACTERS), (byte) => ID_ALPHABET[byte % ID_ALPHABET.length]).join('');
}

/** Encodes 256 random bits in base 62. */
function newSecret(randomBytes: (bytes: number) => Uint8Array): string {
  let rest = BigInt(`0x${Buffer.from(randomBytes(SECRET_BYTES)).toString('hex')}`);
  const base = BigInt(SECRET_ALPHABET.length);
  let text = '';
  for (let place = 0; place < SECRET_CHARACTERS; place += 1) {
    text = `${SECRET_ALPHABET[Number(rest % base)]}${text}`;
    rest /= base;
  }
  return text;
}

function sha256(text: string): Buffer {
  return hash('sha256', text, 'buffer');
}

function isExpired(expiresAt: number | null, now: number): boolean {
  return expiresAt !== null && expiresAt <= now;
}

const seconds = (ms: number): number => Math.ceil(ms / 1000);
const toIso = (ms: number): string => new Date(ms).toISOString();

/** Does not quote the id, because it may be a complete key. */
const unknownKey = (): Rejection => notFound('such key');
