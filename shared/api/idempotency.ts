/**
 * `Idempotency-Key`: a request that is sent again, because its answer was lost, is not done again. Per API key and
 * idempotency key there is one item:
 *
 *   free ── claim ──▶ in progress ── answer kept ──▶ answered, for 24 hours
 *                         │  ▲
 *      5xx, 429, fault,   ▼  │ next try
 *      or deadline    to be done again
 *
 * An answer may show a secret once, so it is encrypted (AES-256-GCM) under a key derived from the API key that was shown and
 * the idempotency key: whoever reads the table learns nothing from it, not even which idempotency keys there were. That is
 * worth as much as the API key is hard to guess.
 *
 * What was begun and cut off may have been done in part. Whoever repeats it gets the same ids and the same random bytes
 * ({@link Making}), so that an action that makes things under those makes the same again instead of a second one.
 *
 * What is NOT guaranteed: that an action runs once. It runs again after a fault or beyond its deadline, and must be able to.
 * With another API key the same idempotency key is another one.
 */
import { createCipheriv, createDecipheriv, hash, hkdfSync, randomBytes } from 'node:crypto';
import * as z from 'zod';
import { keys } from '../storage/schema.ts';
import type { Clause, Item, Table, Value } from '../storage/table.ts';

/** Schema of `Idempotency-Key`. */
export const IdempotencyKey = z
  .string('must be given once')
  .regex(/^[!-~]{1,255}$/, 'must be 1 to 255 visible ASCII characters');

/** A request to be executed once. */
export interface IdempotentRequest {
  /** Id of the API key. */
  readonly keyId: string;
  /** As the client sent it. */
  readonly idempotencyKey: string;
  /** The complete API key. */
  readonly bearer: string;
  /** Result of {@link fingerprintOf}. An idempotency key identifies one request. */
  readonly fingerprint: string;
}

/** A stored response. */
export interface StoredAnswer {
  readonly status: number;
  /** Those that belong to what was done; not those of this one exchange. */
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
}

/** What a repeated request has in common with the first: each gives the same as then, in the order of the calls. */
export interface Making {
  /** For ids of what is made; not for the tokens of transactions, which must differ when their content does. */
  newId(): string;
  /** For secrets of what is made. */
  randomBytes(bytes: number): Uint8Array;
}

/** Outcome of a request. */
export type Once =
  /** Executed now. */
  | { readonly kind: 'done'; readonly answer: StoredAnswer }
  /** Executed before, with this response. */
  | { readonly kind: 'replayed'; readonly answer: StoredAnswer }
  /** Executed before; the response was too large to be stored. */
  | { readonly kind: 'answer not kept'; readonly status: number }
  /** In progress. */
  | { readonly kind: 'in progress'; readonly retryAfterSeconds: number }
  /** The idempotency key was used for another request. */
  | { readonly kind: 'other request' };

/** Executes requests once. */
export interface Idempotency {
  /**
   * Does the action unless it was done. Throws what the action throws, and `TableError` when the table does not answer
   * before it; after it the answer is given all the same.
   */
  run(request: IdempotentRequest, action: (making: Making) => Promise<StoredAnswer>): Promise<Once>;
}

/** How long an answer is kept, and ids and bytes stay the same. */
const KEEP_MS = 24 * 3_600_000;
/** A body of more than that is not kept. */
const MAX_BODY_BYTES = 100_000;
/** Nor is what makes more than that with its headers, written as JSON: an item of the table holds 400 kB. */
const MAX_KEPT_BYTES = 350_000;
/** After this time an action is given up for dead unless told otherwise: longer than any function that does one may run. */
export const DEADLINE_MS = 60_000;
/** A client that waits for another is asked back so soon at least, and at most. */
const LEAST_RETRY_SECONDS = 1;
const MOST_RETRY_SECONDS = 5;
/** How often it is looked again because somebody else came in between. */
const ATTEMPTS = 5;

/** What a request is about: its method, its path with the query, and its body. SHA-256 in hex. */
export function fingerprintOf(method: string, path: string, body: string | Uint8Array): string {
  // The body comes last, and neither of the others holds a line break.
  const bytes = typeof body === 'string' ? Buffer.from(body) : body;
  return hash('sha256', Buffer.concat([Buffer.from(`${method}\n${path}\n`), bytes]));
}

/** Makes what does requests once, over a table. */
export function createIdempotency(deps: {
  readonly table: Table;
  /** Epoch ms. */
  readonly now: () => number;
  /** After this time an action that has not ended is given up for dead; longer than any may take. */
  readonly deadlineMs?: number;
  /** Told when what became of a request could not be written; it ends in its deadline then. */
  readonly onFault?: (cause: unknown) => void;
}): Idempotency {
  const { table, now, deadlineMs = DEADLINE_MS, onFault } = deps;

  return {
    async run(request, action) {
      const claim = await claimOf(request);
      if ('kind' in claim) return claim;
      const { secrets, finish } = claim;
      let answer: StoredAnswer;
      try {
        answer = await action(makingOf(secrets));
      } catch (cause) {
        await finish({ until: 0 });
        throw cause;
      }
      await finish(ending(secrets, answer));
      return { kind: 'done', answer };
    },
  };

  /** Takes the request on, or says why that is not to be done. */
  async function claimOf(request: IdempotentRequest) {
    const key = keys.idempotent(request.keyId, nameOf(request));
    const owner = randomBytes(16).toString('hex');
    let item: Item | undefined;
    for (let attempt = 0; attempt < ATTEMPTS; attempt += 1) {
      const at = now();
      const found = item && !isExpired(item, at) ? item : undefined;
      const seed = found?.seed instanceof Uint8Array ? found.seed : randomBytes(32);
      const secrets = secretsOf(request, seed);
      if (found) {
        const before = judge(found, secrets, at);
        if (before) return before;
      }
      const expiresAt = found ? Number(found.expiresAt) : at + KEEP_MS;
      const claimed = {
        owner,
        until: at + deadlineMs,
        seed: new Uint8Array(seed),
        request: secrets.request,
        ...lasting(expiresAt),
      };
      // Whoever has the item as it was read has it; nobody has one that is not there.
      const when: Clause = item ? ['owner', '=', String(item.owner)] : ['pk', 'absent'];
      const taken = await table.write({ put: { ...key, ...claimed }, when: [when] });
      if (taken.done) {
        const finish = async (set: Record<string, Value | undefined>) => {
          // Somebody else's by now when it took too long: then that one counts.
          await table.write({ update: key, set, when: [['owner', '=', owner]] }).catch((cause) => {
            onFault?.(cause);
          });
        };
        return { secrets, finish };
      }
      item = taken.item;
    }
    return { kind: 'in progress' as const, retryAfterSeconds: LEAST_RETRY_SECONDS };
  }

  /** What is kept of an answer. Those that invite to try again (also with `Retry-After`) are not kept, nor what has no room. */
  function ending(secrets: Secrets, answer: StoredAnswer): Record<string, Value | undefined> {
    const { status, headers, body } = answer;
    if (status >= 500 || status === 429 || 'retry-after' in headers) return { until: 0 };
    const text = JSON.stringify(answer);
    const kept = Buffer.byteLength(body) <= MAX_BODY_BYTES && Buffer.byteLength(text) <= MAX_KEPT_BYTES;
    return {
      until: undefined,
      ...(kept ? { answer: seal(secrets, text) } : { status }),
      ...lasting(now() + KEEP_MS),
    };
  }
}

/** What stands in the way of doing a request; `undefined` when it is to be done again. */
function judge(item: Item, secrets: Secrets, now: number): Exclude<Once, { kind: 'done' }> | undefined {
  if (item.request !== secrets.request) return { kind: 'other request' };
  if (typeof item.until === 'number') {
    if (item.until <= now) return undefined;
    const left = Math.ceil((item.until - now) / 1000);
    return { kind: 'in progress', retryAfterSeconds: Math.min(MOST_RETRY_SECONDS, left) };
  }
  if (!(item.answer instanceof Uint8Array)) return { kind: 'answer not kept', status: Number(item.status) };
  return { kind: 'replayed', answer: unseal(secrets, item.answer) };
}

const lasting = (expiresAt: number) => ({ expiresAt, ttl: Math.ceil(expiresAt / 1000) });

function isExpired({ expiresAt }: Item, now: number): boolean {
  return typeof expiresAt !== 'number' || expiresAt <= now;
}

/** Everything that follows from the API key, the idempotency key and the item's seed. */
interface Secrets {
  /** The fingerprint, of which nothing can be guessed. */
  readonly request: string;
  /** What answers are encrypted with. */
  readonly key: Uint8Array;
  /** What ids and bytes come from. */
  readonly derive: (what: string, bytes: number) => Uint8Array;
}

function secretsOf(request: IdempotentRequest, seed: Uint8Array): Secrets {
  const derive = (what: string, bytes: number) => derived(request, seed, what, bytes);
  const fingerprint = Buffer.from(derive(`request ${request.fingerprint}`, 32)).toString('hex');
  return { request: fingerprint, key: derive('answer', 32), derive };
}

/** The sort key: nobody finds out the idempotency key by trying. */
function nameOf(request: IdempotentRequest): string {
  return Buffer.from(derived(request, new Uint8Array(), 'name', 32)).toString('hex');
}

/** HKDF takes at most 1,024 bytes of what it is for, so it gets a digest of the long parts. */
function derived(request: IdempotentRequest, seed: Uint8Array, what: string, bytes: number): Uint8Array {
  const purpose = hash('sha256', JSON.stringify([request.keyId, request.idempotencyKey, what]));
  return new Uint8Array(hkdfSync('sha256', request.bearer, seed, `jobwire idempotency ${purpose}`, bytes));
}

function makingOf({ derive }: Secrets): Making {
  let made = 0;
  const next = (bytes: number) => {
    made += 1;
    return derive(`made ${made}`, bytes);
  };
  return {
    randomBytes: next,
    newId() {
      const bytes = Buffer.from(next(16));
      // A UUID of version 8: of no agreed making.
      bytes[6] = ((bytes[6] ?? 0) & 0x0f) | 0x80;
      bytes[8] = ((bytes[8] ?? 0) & 0x3f) | 0x80;
      const hex = bytes.toString('hex');
      return [hex.slice(0, 8), hex.slice(8, 12), hex.slice(12, 16), hex.slice(16, 20), hex.slice(20)].join(
        '-',
      );
    },
  };
}

const CIPHER = 'aes-256-gcm';
const NONCE_BYTES = 12;
const TAG_BYTES = 16;

/** Nonce, tag, and what was encrypted; bound to its request. */
function seal({ key, request }: Secrets, text: string): Uint8Array {
  const nonce = randomBytes(NONCE_BYTES);
  const cipher = createCipheriv(CIPHER, key, nonce).setAAD(Buffer.from(request));
  const sealed = Buffer.concat([cipher.update(text, 'utf8'), cipher.final()]);
  return new Uint8Array(Buffer.concat([nonce, cipher.getAuthTag(), sealed]));
}

/** Throws when somebody has changed what was kept. */
function unseal({ key, request }: Secrets, bytes: Uint8Array): StoredAnswer {
  const tagged = NONCE_BYTES + TAG_BYTES;
  const decipher = createDecipheriv(CIPHER, key, bytes.subarray(0, NONCE_BYTES), {
    authTagLength: TAG_BYTES,
  });
  decipher.setAAD(Buffer.from(request)).setAuthTag(bytes.subarray(NONCE_BYTES, tagged));
  const text = decipher.update(bytes.subarray(tagged), undefined, 'utf8') + decipher.final('utf8');
  return JSON.parse(text) as StoredAnswer;
}
