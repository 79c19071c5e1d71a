/**
 * API keys: `jw_<id>_<secret>`. Who shows one is a {@link Caller}: it may do what its role allows, with the accounts it is for.
 * A key is made, shown once, and revoked; it is never changed.
 *
 * Of a key only the SHA-256 of the whole text is stored. A slow hash is for what people think up: a secret here is 256
 * random bits, and nobody tries out so many however fast each try is.
 *
 * A key makes and sees only keys that may no more than itself; all others are to it as if they were not there.
 *
 * What is NOT guaranteed: that a revoked key is refused at once. Each process remembers a verified key for 30 seconds, so
 * revoking counts within 30 seconds. Keys that a revoked key has made go on.
 */
import { hash, randomBytes as nodeRandomBytes, timingSafeEqual } from 'node:crypto';
import * as z from 'zod';
import { type Refusal, revisionOf } from '../resources.ts';
import { API_KEY_PK, keys } from '../storage/schema.ts';
import type { Clause, Item, Table, WriteOutcome } from '../storage/table.ts';
import { checkInput } from '../validation.ts';
import { type KeyRecord, NewKey, ROLES, type Role, roleAllows } from './key-input.ts';
import { BOOTSTRAP_KEY } from './waiting-limit.ts';

/** Who asks: the key that was shown, as it may be known to anybody. */
export interface Caller {
  readonly keyId: string;
  readonly name: string | null;
  readonly role: Role;
  /** Ids; null: all. */
  readonly accounts: readonly string[] | null;
  /** Epoch ms. */
  readonly expiresAt: number | null;
}

/** Whoever may invoke the cell's operator function; it is no key. */
export const OPERATOR: Caller = {
  keyId: 'operator',
  name: null,
  role: 'admin',
  accounts: null,
  expiresAt: null,
};

/** How many keys there are at most, those that have expired a short while ago among them. */
export const MAX_KEYS = 1000;
/** Of these, places that only keys for all accounts can fill. */
const KEPT_PLACES = 100;
/** How many keys can name one account: no tenant takes the places of the others. */
export const MAX_KEYS_OF_ACCOUNT = 100;
/** How long a verified key is taken without asking the table again. */
const REMEMBER_MS = 30_000;
/** Keys that a process remembers: more than there can be, but for some that were revoked meanwhile. */
const MAX_REMEMBERED = MAX_KEYS + 200;
/** A key's use is written so often at most. */
const NOTE_USE_EVERY_MS = 5 * 60_000;
const USE_TTL_MS = 400 * 86_400_000;
/** How long a key that has expired can still be seen. */
const EXPIRED_TTL_MS = 30 * 86_400_000;
/** The least length of a configured key. */
const MIN_BOOTSTRAP = 16;

const ID_ALPHABET = 'abcdefghijkmnpqrstuvwxyz23456789';
const ID_CHARACTERS = 12;
const SECRET_BYTES = 32;
/** Neither `_` nor `-`: a double click takes the whole of it. */
const SECRET_ALPHABET = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz';
/** So many characters of 62 hold 256 bits. */
const SECRET_CHARACTERS = 43;
const SHOWN = new RegExp(`^jw_([${ID_ALPHABET}]{${ID_CHARACTERS}})_[0-9A-Za-z]{${SECRET_CHARACTERS}}$`);
const ID = new RegExp(`^[${ID_ALPHABET}]{${ID_CHARACTERS}}$`);
/** Whether a text can be the id of a key. No other text is looked up. */
export const isKeyId = (text: string): boolean => ID.test(text);

/** The id of a key: no text that holds a whole one. */
export const keyId = z
  .string('must be the id of a key')
  .regex(ID, 'must be the id of a key: the part between the first two `_` of it');

/** What checks keys. */
export interface Keyring {
  /**
   * Who shows a key; `undefined` when there is no such key, it was revoked (see above: within 30 seconds), or it has
   * expired (at once). Wrong ones are never remembered. Throws `TableError` when the table does not answer.
   */
  verify(shown: string): Promise<Caller | undefined>;
  /**
   * Whether this very key was good when this process looked last, however long ago: so that it need not suffer for what
   * others at its address do. No word on whether it still is.
   */
  isKnown(shown: string): boolean;
  /**
   * Whether the caller's key still is what it was when it was verified: not revoked, not expired, and for the same accounts.
   * Remembered for 30 seconds, like `verify`. Throws `TableError` when the table does not answer.
   */
  isCurrent(caller: Caller): Promise<boolean>;
  /** Resolves when all uses so far are written, or have failed to be. Never rejects. */
  settled(): Promise<void>;
}

interface Remembered {
  readonly digest: Buffer;
  readonly caller: Caller;
  /** Epoch ms, before the reading began. */
  readonly readAt: number;
}

/**
 * Makes a keyring over the table's keys and the configured one, `bootstrap`, if there is one. Digests are compared in
 * constant time, and an unknown id takes the same path as a wrong secret. Lookups of one id at the same time share one
 * read. That a key is used is written in the background; it delays nothing, and its failing is nobody's concern.
 * Throws when `bootstrap` is too short.
 */
export function createKeyring(deps: {
  readonly table: Table;
  /** Epoch ms. */
  readonly now: () => number;
  readonly bootstrap?: string | undefined;
}): Keyring {
  const { table, now, bootstrap } = deps;
  if (bootstrap !== undefined && bootstrap.length < MIN_BOOTSTRAP) {
    throw new Error(`The API key must be at least ${MIN_BOOTSTRAP} characters long.`);
  }
  const configured = bootstrap === undefined ? undefined : digestOf(bootstrap);
  /** What is compared with where there is no key. */
  const nobody = nodeRandomBytes(32);
  const remembered = new Map<string, Remembered>();
  const reading = new Map<string, Promise<Omit<Remembered, 'digest'> & { readonly digest?: Buffer }>>();
  const noted = new Map<string, number>();
  const writing = new Set<Promise<unknown>>();

  /** One read for all who ask for the same id at the same time. */
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

  function remember(id: string, entry: Remembered) {
    remembered.delete(id);
    remembered.set(id, entry);
    const [oldest] = remembered.keys();
    if (remembered.size > MAX_REMEMBERED && oldest !== undefined) remembered.delete(oldest);
  }

  function noteUse(id: string) {
    const usedAt = now();
    if (usedAt < (noted.get(id) ?? Number.NEGATIVE_INFINITY) + NOTE_USE_EVERY_MS) return;
    noted.delete(id);
    noted.set(id, usedAt);
    const [oldest] = noted.keys();
    if (noted.size > MAX_REMEMBERED && oldest !== undefined) noted.delete(oldest);
    const done = table
      .write({
        put: { ...keys.apiKeyUse(id), usedAt, ttl: seconds(usedAt + USE_TTL_MS) },
        // Another process may have said so already.
        when: [['usedAt', 'absent or <=', usedAt - NOTE_USE_EVERY_MS]],
      })
      .catch(() => undefined)
      .finally(() => writing.delete(done));
    writing.add(done);
  }

  async function find(id: string, digest: Buffer): Promise<Caller | undefined> {
    const known = remembered.get(id);
    if (known && now() < known.readAt + REMEMBER_MS && timingSafeEqual(digest, known.digest)) {
      return known.caller;
    }
    const { digest: stored, ...found } = await read(id);
    const isRight = timingSafeEqual(digest, stored ?? nobody);
    if (!stored) remembered.delete(id);
    if (!isRight || !stored) return undefined;
    remember(id, { digest: stored, ...found });
    return found.caller;
  }

  return {
    async verify(shown) {
      const digest = digestOf(shown);
      if (configured && timingSafeEqual(digest, configured)) {
        return { ...OPERATOR, keyId: BOOTSTRAP_KEY };
      }
      const id = SHOWN.exec(shown)?.[1];
      if (id === undefined) return undefined;
      const caller = await find(id, digest);
      if (!caller || isOver(caller.expiresAt, now())) return undefined;
      noteUse(id);
      return caller;
    },

    isKnown(shown) {
      const digest = digestOf(shown);
      if (configured && timingSafeEqual(digest, configured)) return true;
      const known = remembered.get(SHOWN.exec(shown)?.[1] ?? '');
      return known !== undefined && timingSafeEqual(digest, known.digest);
    },

    async isCurrent(caller) {
      const { keyId, accounts, expiresAt } = caller;
      if (keyId === BOOTSTRAP_KEY || keyId === OPERATOR.keyId) return true;
      if (isOver(expiresAt, now())) return false;
      const known = remembered.get(keyId);
      if (known && now() < known.readAt + REMEMBER_MS) return isSame(known.caller.accounts, accounts);
      const { digest, ...found } = await read(keyId);
      if (!digest) remembered.delete(keyId);
      else remember(keyId, { digest, ...found });
      return digest !== undefined && isSame(found.caller.accounts, accounts);
    },

    async settled() {
      await Promise.all(writing);
    },
  };
}

/** What the use-cases of keys need. */
export interface KeyDeps {
  readonly table: Table;
  /** Epoch ms. */
  readonly now: () => number;
  /**
   * What id and secret are made of, asked in the same order each time: with the bytes of a repeated request
   * (`idempotency.ts`) a repeat makes the same key again. Absent: random.
   */
  readonly randomBytes?: (bytes: number) => Uint8Array;
}

/** What came of making a key. */
export interface KeyMade {
  readonly kind: 'created';
  readonly key: KeyRecord;
  /** The whole key, to be shown as `Authorization: Bearer …`; given here and never again. */
  readonly secret: string;
}

/**
 * Makes a key that may no more than whoever makes it, and does not outlive it. Nothing is stored when it is refused. Who
 * makes several at the same moment may get a few beyond {@link MAX_KEYS}.
 */
export async function createKey(deps: KeyDeps, input: unknown, by: Caller): Promise<KeyMade | Refusal> {
  const checked = checkInput(NewKey, input);
  if (checked.kind === 'refused') return checked;
  const { table, now, randomBytes = nodeRandomBytes } = deps;
  const { name, role, accounts, expiresAt } = checked.value;
  const createdAt = now();
  const wanted = {
    role,
    accounts: accounts ? [...new Set(accounts)].sort() : null,
    expiresAt: expiresAt === undefined ? null : Date.parse(expiresAt),
  };
  const reason = refuseKey(wanted, by, createdAt);
  if (reason) return { kind: 'refused', reason };

  const id = newKeyId(randomBytes);
  const secret = `jw_${id}_${newSecret(randomBytes)}`;
  const digest = digestOf(secret);
  const others = (await table.query({ pk: API_KEY_PK, limit: MAX_KEYS + 1 })).filter(({ sk }) => sk !== id);
  // Who is for some accounts can't take the last places from who is for all.
  const most = by.accounts === null ? MAX_KEYS : MAX_KEYS - KEPT_PLACES;
  if (others.length >= most) {
    return { kind: 'conflict', reason: `There are ${most} keys already; revoke one that nobody needs.` };
  }
  const full = wanted.accounts?.find(
    (account) => others.filter((key) => accountsOf(key).includes(account)).length >= MAX_KEYS_OF_ACCOUNT,
  );
  if (full !== undefined) {
    const reason = `${MAX_KEYS_OF_ACCOUNT} keys name the account "${full}", and no more can; revoke one first.`;
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
    expiresAt: wanted.expiresAt ?? undefined,
    ttl: wanted.expiresAt === null ? undefined : seconds(wanted.expiresAt + EXPIRED_TTL_MS),
  };
  const put = await table.write({ put: item, when: [['pk', 'absent']] });
  if (put.done) return { kind: 'created', key: toRecord(item, undefined), secret };
  const there = put.item?.digest;
  const isSame = there instanceof Uint8Array && Buffer.from(there).equals(digest);
  if (put.item && isSame) return { kind: 'created', key: toRecord(put.item, undefined), secret };
  return { kind: 'conflict', reason: 'The id that was made up for the key is taken; try again.' };
}

/** A page of the keys that a caller may see, by id. `next` is the last id of a page that is not the last one. */
export async function listKeys(
  { table }: Pick<KeyDeps, 'table'>,
  page: { readonly limit: number; readonly after?: string | undefined },
  by: Caller,
): Promise<{ readonly keys: readonly KeyRecord[]; readonly next: string | null }> {
  const { limit } = page;
  const seen: Item[] = [];
  let after = page.after;
  for (;;) {
    const items = await table.query({
      pk: API_KEY_PK,
      ...(after === undefined ? {} : { after }),
      limit: limit + 1,
    });
    seen.push(...items.filter((item) => maySee(by, item)));
    after = items.at(-1)?.sk;
    if (seen.length > limit || items.length <= limit) break;
  }
  const shown = seen.slice(0, limit);
  const uses = await table.getMany(shown.map(({ sk }) => keys.apiKeyUse(sk)));
  const useOf = new Map(uses.map((use) => [use.sk, use]));
  return {
    keys: shown.map((item) => toRecord(item, useOf.get(item.sk))),
    next: seen.length > limit ? (shown.at(-1)?.sk ?? null) : null,
  };
}

/** One key that a caller may see. */
export async function readKey(
  { table }: Pick<KeyDeps, 'table'>,
  id: string,
  by: Caller,
): Promise<{ readonly kind: 'found'; readonly key: KeyRecord } | Refusal> {
  const item = await find(table, id, by);
  if (!item) return unknownKey();
  const [use] = await table.getMany([keys.apiKeyUse(id)]);
  return { kind: 'found', key: toRecord(item, use) };
}

/**
 * Takes a key away for good; also the one that asks for it. Of the configured key that is refused, for it can only be
 * changed where it is configured. Counts within 30 seconds.
 */
export async function revokeKey(
  { table }: Pick<KeyDeps, 'table'>,
  id: string,
  by: Caller,
): Promise<{ readonly kind: 'revoked' } | Refusal> {
  if (id === BOOTSTRAP_KEY && by.role === 'admin' && by.accounts === null) {
    return { kind: 'refused', reason: 'The key of the configuration can only be changed there.' };
  }
  if (!(await find(table, id, by))) return unknownKey();
  // First the key: what is left of its use leaves by itself.
  await table.write({ delete: keys.apiKey(id) });
  await table.write({ delete: keys.apiKeyUse(id) });
  return { kind: 'revoked' };
}

/**
 * Removes a deleted account from all keys, for its id can be used again. A key that names no other account is revoked: without
 * accounts it would be for all. False when a key was changed meanwhile; call it again.
 */
export async function removeAccountFromKeys(table: Table, account: string): Promise<boolean> {
  const items = await table.query({ pk: API_KEY_PK });
  const changes = items.flatMap((item): Promise<WriteOutcome>[] => {
    const accounts = accountsOf(item);
    if (!accounts.includes(account)) return [];
    const others = accounts.filter((each) => each !== account);
    const { pk, sk } = item;
    // Of two deletions at the same time, neither undoes what the other did.
    const when: Clause[] = [
      ['pk', 'present'],
      ['revision', 'absent or =', revisionOf(item)],
    ];
    if (others.length === 0) return [table.write({ delete: { pk, sk }, when })];
    return [
      table.write({ update: { pk, sk }, set: { accounts: others, revision: revisionOf(item) + 1 }, when }),
    ];
  });
  return (await Promise.all(changes)).every(({ done }) => done);
}

/** The accounts that a key names; none if it is for all. */
const accountsOf = ({ accounts }: Item): readonly string[] =>
  (accounts as readonly string[] | undefined) ?? [];

/** Whether two keys are for the same accounts; both are sorted. */
const isSame = (one: Caller['accounts'], other: Caller['accounts']): boolean =>
  String(one) === String(other) && (one === null) === (other === null);

/** What a key may. */
type Powers = Pick<Caller, 'role' | 'accounts'>;

/** Why somebody can't make a key: one sentence. */
function refuseKey(wanted: Powers & Pick<Caller, 'expiresAt'>, by: Caller, now: number): string | undefined {
  if (!roleAllows(by.role, wanted.role)) {
    return `role must be ${by.role} or less: a key makes no key that may more than itself.`;
  }
  if (!coversAccounts(by.accounts, wanted.accounts)) {
    return wanted.accounts === null
      ? 'accounts must be given: a key that is for some accounts makes no key for all of them.'
      : 'accounts must be among those that the key which makes it is for.';
  }
  if (isOver(wanted.expiresAt, now)) return 'expiresAt must be in the future.';
  if (by.expiresAt !== null && (wanted.expiresAt === null || wanted.expiresAt > by.expiresAt)) {
    return `expiresAt must be ${isoOf(by.expiresAt)} or earlier: a key makes no key that outlives it.`;
  }
  return undefined;
}

function maySee(by: Powers, item: Item): boolean {
  const { role, accounts } = toCaller(item.sk, item);
  return roleAllows(by.role, role) && coversAccounts(by.accounts, accounts);
}

function coversAccounts(all: Caller['accounts'], some: Caller['accounts']): boolean {
  return all === null || (some?.every((account) => all.includes(account)) ?? false);
}

async function find(table: Table, id: string, by: Powers): Promise<Item | undefined> {
  if (!isKeyId(id)) return undefined;
  const item = await table.get(keys.apiKey(id));
  return item && maySee(by, item) ? item : undefined;
}

/** An item that is not as it should be gives the least: a key of no accounts that may read. */
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
    createdAt: isoOf(Number(item.createdAt)),
    createdBy: String(item.createdBy),
    expiresAt: expiresAt === null ? null : isoOf(expiresAt),
    lastUsedAt: typeof use?.usedAt === 'number' ? isoOf(use.usedAt) : null,
  };
}

/** 60 random bits. */
function newKeyId(randomBytes: (bytes: number) => Uint8Array): string {
  return Array.from(randomBytes(ID_CHARACTERS), (byte) => ID_ALPHABET[byte % ID_ALPHABET.length]).join('');
}

/** 256 random bits, in characters that belong to one word. */
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

function digestOf(text: string): Buffer {
  return hash('sha256', text, 'buffer');
}

function isOver(expiresAt: number | null, now: number): boolean {
  return expiresAt !== null && expiresAt <= now;
}

const seconds = (ms: number): number => Math.ceil(ms / 1000);
const isoOf = (ms: number): string => new Date(ms).toISOString();

/** Not quoted: somebody may have given the whole key. */
const unknownKey = (): Refusal => ({ kind: 'unknown', reason: 'There is no such key.' });
