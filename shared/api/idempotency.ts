/**
 * `Idempotency-Key`: a request that is repeated because its response was lost is not executed again. There is one item for each API
 * key and idempotency key:
 *
 *   free ── claim ──▶ in progress ── answer kept ──▶ answered, for 24 hours
 *                         │  ▲
 *      5xx, 429, fault,   ▼  │ next try
 *      or deadline    to be done again
 *
 * A response can contain a secret, so it is encrypted (AES-256-GCM) with a key derived from the API key and the idempotency key. The
 * table reveals neither responses nor idempotency keys, as long as the API key cannot be guessed.
 *
 * An interrupted request may have been executed in part. Its repetition gets the same ids and random bytes ({@link Generators}), so that it
 * creates the same resource again, not a second one.
 *
 * Not guaranteed: that an action runs once. It runs again after an error or its deadline, so it must be repeatable. With another API
 * key, the same idempotency key identifies another request.
 */
import { hash, hkdfSync, randomBytes } from 'node:crypto';
import * as z from 'zod';
import { seal, unseal } from '../secrets.ts';
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
  /** Result of {@link getFingerprint}. An idempotency key identifies one request. */
  readonly fingerprint: string;
}

/** A stored response. */
export interface StoredResponse {
  readonly status: number;
  /** Headers that belong to the result, not to the exchange. */
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
}

/** Source of ids and random bytes. A repeated request gets the same values in the same order of calls. */
export interface Generators {
  /** For ids of created resources. Not for transaction tokens, which must differ if the content differs. */
  newId(): string;
  /** For secrets of created resources. */
  randomBytes(bytes: number): Uint8Array;
}

/** Outcome of a request. */
export type IdempotencyResult =
  /** Executed now. */
  | { readonly kind: 'done'; readonly answer: StoredResponse }
  /** Executed before, with this response. */
  | { readonly kind: 'replayed'; readonly answer: StoredResponse }
  /** Executed before; the response was too large to be stored. */
  | { readonly kind: 'answer not kept'; readonly status: number }
  /** In progress. */
  | { readonly kind: 'in progress'; readonly retryAfterSeconds: number }
  /** The idempotency key was used for another request. */
  | { readonly kind: 'other request' };

/** Executes requests once. */
export interface Idempotency {
  /**
   * Executes the action unless it was executed before. Throws the errors of the action, and `TableError` if the table does not respond
   * before the action. If it does not respond afterwards, the response is returned all the same.
   */
  run(
    request: IdempotentRequest,
    action: (making: Generators) => Promise<StoredResponse>,
  ): Promise<IdempotencyResult>;
}

/** Time for which a response is stored and ids and bytes stay the same. */
const KEEP_MS = 24 * 3_600_000;
/** Larger bodies are not stored. */
const MAX_BODY_BYTES = 100_000;
/** Larger responses with headers, as JSON, are not stored. Items are limited to 400 kB. */
const MAX_KEPT_BYTES = 350_000;
/** Default time after which an action counts as interrupted. Longer than any function may run. */
export const DEADLINE_MS = 60_000;
/** Minimum and maximum of `Retry-After` while another request is in progress. */
const LEAST_RETRY_SECONDS = 1;
const MOST_RETRY_SECONDS = 5;
/** Maximum number of attempts to claim a request after conflicts. */
const ATTEMPTS = 5;

/** Returns the fingerprint of a request: SHA-256 of method, path with query, and body, in hex. */
export function getFingerprint(method: string, path: string, body: string | Uint8Array): string {
  // Unambiguous: the body comes last, and method and path contain no line break.
  const bytes = typeof body === 'string' ? Buffer.from(body) : body;
  return hash('sha256', Buffer.concat([Buffer.from(`${method}\n${path}\n`), bytes]));
}

/** Creates an {@link Idempotency} that stores its state in a table. */
export function createIdempotency(deps: {
  readonly table: Table;
  /** Epoch ms. */
  readonly now: () => number;
  /** Time after which an action counts as interrupted. Must be longer than any action. */
  readonly deadlineMs?: number;
  /** Called if the result of a request could not be stored. The request then ends with its deadline. */
  readonly onFault?: (cause: unknown) => void;
}): Idempotency {
  const { table, now, deadlineMs = DEADLINE_MS, onFault } = deps;

  return {
    async run(request, action) {
      const claimed = await claim(request);
      if ('kind' in claimed) return claimed;
      const { secrets, finish } = claimed;
      let answer: StoredResponse;
      try {
        answer = await action(createGenerators(secrets));
      } catch (cause) {
        await finish({ until: 0 });
        throw cause;
      }
      await finish(ending(secrets, answer));
      return { kind: 'done', answer };
    },
  };

  /** Claims the request, or returns why it must not be executed. */
  async function claim(request: IdempotentRequest) {
    const key = keys.idempotent(request.keyId, deriveName(request));
    const owner = randomBytes(16).toString('hex');
    let item: Item | undefined;
    for (let attempt = 0; attempt < ATTEMPTS; attempt += 1) {
      const at = now();
      const found = item && !isExpired(item, at) ? item : undefined;
      const seed = found?.seed instanceof Uint8Array ? found.seed : randomBytes(32);
      const secrets = deriveSecrets(request, seed);
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
      // The claim succeeds only if the item is unchanged since it was read, or still absent.
      const when: Clause = item ? ['owner', '=', String(item.owner)] : ['pk', 'absent'];
      const written = await table.write({ put: { ...key, ...claimed }, when: [when] });
      if (written.done) {
        const finish = async (set: Record<string, Value | undefined>) => {
          // After the deadline, another process may own the claim. Its result counts.
          await table.write({ update: key, set, when: [['owner', '=', owner]] }).catch((cause) => {
            onFault?.(cause);
          });
        };
        return { secrets, finish };
      }
      item = written.item;
    }
    return { kind: 'in progress' as const, retryAfterSeconds: LEAST_RETRY_SECONDS };
  }

  /** Returns the attributes to store for a response. Temporary errors (5xx, 429, `Retry-After`) and too large responses are not stored. */
  function ending(secrets: Secrets, answer: StoredResponse): Record<string, Value | undefined> {
    const { status, headers, body } = answer;
    if (status >= 500 || status === 429 || 'retry-after' in headers) return { until: 0 };
    const text = JSON.stringify(answer);
    const kept = Buffer.byteLength(body) <= MAX_BODY_BYTES && Buffer.byteLength(text) <= MAX_KEPT_BYTES;
    return {
      until: undefined,
      ...(kept ? { answer: seal(secrets.key, secrets.request, text) } : { status }),
      ...lasting(now() + KEEP_MS),
    };
  }
}

/** Returns why a request must not be executed; `undefined` if it must be executed again. */
function judge(
  item: Item,
  secrets: Secrets,
  now: number,
): Exclude<IdempotencyResult, { kind: 'done' }> | undefined {
  if (item.request !== secrets.request) return { kind: 'other request' };
  if (typeof item.until === 'number') {
    if (item.until <= now) return undefined;
    const left = Math.ceil((item.until - now) / 1000);
    return { kind: 'in progress', retryAfterSeconds: Math.min(MOST_RETRY_SECONDS, left) };
  }
  if (!(item.answer instanceof Uint8Array)) return { kind: 'answer not kept', status: Number(item.status) };
  const text = unseal(secrets.key, secrets.request, item.answer);
  if (text === undefined) throw new Error('The stored response was modified.');
  return { kind: 'replayed', answer: JSON.parse(text) as StoredResponse };
}

const lasting = (expiresAt: number) => ({ expiresAt, ttl: Math.ceil(expiresAt / 1000) });

function isExpired({ expiresAt }: Item, now: number): boolean {
  return typeof expiresAt !== 'number' || expiresAt <= now;
}

/** Values derived from the API key, the idempotency key and the item's seed. */
interface Secrets {
  /** Keyed fingerprint, from which the request cannot be guessed. */
  readonly request: string;
  /** Encryption key of responses. */
  readonly key: Uint8Array;
  /** Derives ids and bytes. */
  readonly derive: (what: string, bytes: number) => Uint8Array;
}

function deriveSecrets(request: IdempotentRequest, seed: Uint8Array): Secrets {
  const derive = (what: string, bytes: number) => derived(request, seed, what, bytes);
  const fingerprint = Buffer.from(derive(`request ${request.fingerprint}`, 32)).toString('hex');
  return { request: fingerprint, key: derive('answer', 32), derive };
}

/** Returns the sort key, from which the idempotency key cannot be guessed. */
function deriveName(request: IdempotentRequest): string {
  return Buffer.from(derived(request, new Uint8Array(), 'name', 32)).toString('hex');
}

/** Derives bytes with HKDF. Its info is limited to 1,024 bytes, so it gets a digest of the long parts. */
function derived(request: IdempotentRequest, seed: Uint8Array, what: string, bytes: number): Uint8Array {
  const purpose = hash('sha256', JSON.stringify([request.keyId, request.idempotencyKey, what]));
  return new Uint8Array(hkdfSync('sha256', request.bearer, seed, `jobwire idempotency ${purpose}`, bytes));
}

function createGenerators({ derive }: Secrets): Generators {
  let count = 0;
  const next = (bytes: number) => {
    count += 1;
    return derive(`made ${count}`, bytes);
  };
  return {
    randomBytes: next,
    newId() {
      const bytes = Buffer.from(next(16));
      // A UUID of version 8 (custom).
      bytes[6] = ((bytes[6] ?? 0) & 0x0f) | 0x80;
      bytes[8] = ((bytes[8] ?? 0) & 0x3f) | 0x80;
      return bytes.toString('hex').replace(/^(.{8})(.{4})(.{4})(.{4})/, '$1-$2-$3-$4-');
    },
  };
}
