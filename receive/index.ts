/**
 * Verifies and parses webhooks, and parses SQS and SNS messages, to typed events. Uses only Web APIs (Web Crypto, TextEncoder, atob), so it
 * runs on Node 20.18 and later, Deno, Bun and edge runtimes. Guide for receivers: docs/receiving-events.md.
 */
import type { EventDataByType } from './events.ts';

export type * from './events.ts';

/** An event type known to this version. */
export type EventType = keyof EventDataByType;

/** The CloudEvents 1.0 envelope of an event. */
interface Envelope<Type extends string, Data> {
  readonly specversion: '1.0';
  /** `<account>.<epoch>.<sequence>`. Identical for every delivery of the event. */
  readonly id: string;
  /**
   * `/regions/<region>/accounts/<account>`, or `/regions/<region>` for events about a region. Starts with the public URL of
   * the Jobwire that recorded the event, if one was configured.
   */
  readonly source: string;
  readonly type: Type;
  /** `jobs/<jobNumber>` or `order-groups/<name, percent-encoded>`. Absent for events about the account or region. */
  readonly subject?: string;
  /** Time of the observation of the change (ISO 8601, UTC). */
  readonly time: string;
  /** Sequence number in the log: 20 digits, sortable as text. */
  readonly sequence: string;
  readonly dataschema: string;
  readonly datacontenttype: 'application/json';
  readonly data: Data;
}

/** An event of any known type, or of the given one: `KnownEvent<'job.dispatched'>`. */
export type KnownEvent<T extends EventType = EventType> = { [K in T]: Envelope<K, EventDataByType[K]> }[T];

/** Any string except a known type. It has no value at run time. It lets TypeScript discriminate events by `type`. */
declare enum UnlistedType {
  any = '',
}

/** An event of a type that was added after this version. Its envelope is typed, its data is not. */
export interface UnknownEvent extends Envelope<UnlistedType, Readonly<Record<string, unknown>>> {}

/** An event. `switch (event.type)` discriminates the types. In `default`, it is an {@link UnknownEvent}. */
export type JobwireEvent = KnownEvent | UnknownEvent;

/** An event received by webhook. */
export type ReceivedEvent = JobwireEvent & {
  /**
   * Whether the request has the header `webhook-replay: true`: a replay or resend was requested. The signature does not cover
   * it, so an intermediary can add or remove it. Use it in logs and displays, not for decisions. Deduplicate by `id`.
   */
  readonly replay: boolean;
};

/** The raw body of a request: its text, or its bytes in an `ArrayBuffer` or any view of one (`Uint8Array`, `Buffer`, `DataView`, …). */
export type RawBody = string | ArrayBuffer | ArrayBufferView;

/** A reference to an event that is too large for SNS. Read the event itself from the feed. */
export interface EventReference {
  readonly jobwire: 'reference';
  readonly id: string;
  readonly type: string;
  readonly source: string;
  readonly subject?: string;
  readonly time: string;
  readonly sequence: string;
  /** URL of the event. Requires an API key. */
  readonly feed: string;
}

/** Headers of a request: of the Fetch API, or an object of names and values as in Node and Lambda. Names are case-insensitive. */
export type RequestHeaders =
  | { get(name: string): string | null }
  | { readonly [name: string]: string | readonly string[] | undefined };

/** Options of a receiver. */
export interface ReceiverOptions {
  /** Secret of the endpoint, `whsec_…`. */
  readonly secret?: string | undefined;
  /** Several secrets, during a rotation: a signature by any of them is valid. `undefined` and empty values are ignored. */
  readonly secrets?: readonly (string | undefined)[];
  /** Maximum difference between the sending time and now, in either direction. Default: 300. */
  readonly toleranceSeconds?: number;
  /** Returns the current time in epoch ms. Default: `Date.now`. */
  readonly now?: () => number;
}

/** Verifies webhooks. */
export interface Receiver {
  /**
   * Verifies a webhook and returns its event. `body` is the raw body of the request, before any parsing. Throws
   * {@link WebhookVerificationError}, or {@link EventParseError} if the signed body is not an event.
   */
  receive(body: RawBody, headers: RequestHeaders): Promise<ReceivedEvent>;
  /** Verifies a webhook without parsing its body. Throws {@link WebhookVerificationError}. */
  verify(body: RawBody, headers: RequestHeaders): Promise<void>;
}

/** Reason for the rejection of a webhook. */
export type VerificationErrorCode =
  | 'bad-secret'
  | 'bad-body'
  | 'missing-header'
  | 'bad-timestamp'
  | 'too-old'
  | 'too-new'
  | 'bad-signature';

/** The webhook is not authentic, or the secret is invalid. The message never contains secret or body. */
export class WebhookVerificationError extends Error {
  override readonly name = 'WebhookVerificationError';
  readonly code: VerificationErrorCode;

  constructor(code: VerificationErrorCode, message: string) {
    super(message);
    this.code = code;
  }
}

/** The text is not a valid event. */
export class EventParseError extends Error {
  override readonly name = 'EventParseError';
}

/** Lengths of a secret that Standard Webhooks allows. */
const SECRET_BYTES = { min: 24, max: 64 };

/**
 * Creates a receiver of webhooks that are signed by Standard Webhooks 1.0. Throws {@link WebhookVerificationError} with
 * `bad-secret` if there is no secret or an invalid one, and a `RangeError` if `toleranceSeconds` is not a number from 0.
 */
export function createReceiver(options: ReceiverOptions): Receiver {
  const { toleranceSeconds = 300, now = Date.now } = options;
  const secrets = [options.secret, ...(options.secrets ?? [])].filter((secret) => secret !== undefined);
  const signers = secrets.filter((secret) => secret !== '').map(toSigner);
  if (signers.length === 0) throw new WebhookVerificationError('bad-secret', 'A secret is required.');
  if (!(toleranceSeconds >= 0)) throw new RangeError('toleranceSeconds must be a number of seconds.');

  /** Returns a copy of the verified bytes. */
  async function verifyBytes(body: RawBody, headers: RequestHeaders): Promise<Uint8Array> {
    if (typeof body !== 'string' && !isBytes(body)) {
      throw new WebhookVerificationError(
        'bad-body',
        'The body must be the raw text or bytes of the request, before any parsing.',
      );
    }
    const id = requireHeader(headers, 'webhook-id');
    const timestamp = requireHeader(headers, 'webhook-timestamp');
    const signatures = requireHeader(headers, 'webhook-signature');
    verifyTime(timestamp, now() / 1000, toleranceSeconds);
    const head = new TextEncoder().encode(`${id}.${timestamp}.`);
    const signed = concatenate(head, toBytes(body));
    const macs = await Promise.all(signers.map((sign) => sign(signed)));
    // All are compared, even after a match, so that the duration reveals nothing.
    let matches = false;
    for (const signature of signatures.split(' ')) {
      // The header can also contain signatures of other versions, such as v1a (public key).
      if (!signature.startsWith('v1,')) continue;
      for (const mac of macs) matches = equalInConstantTime(signature.slice(3), mac) || matches;
    }
    if (matches) return signed.subarray(head.length);
    throw new WebhookVerificationError(
      'bad-signature',
      'No signature matches: it was created with another secret, or the body was changed after signing.',
    );
  }

  return {
    async verify(body, headers) {
      await verifyBytes(body, headers);
    },
    async receive(body, headers) {
      // The caller can change the bytes in the meantime.
      const bytes = await verifyBytes(body, headers);
      return { ...parseEvent(bytes), replay: getHeader(headers, 'webhook-replay') === 'true' };
    },
  };
}

/**
 * Parses the JSON of an event: the verified body of a webhook, or an entry of `events` in a page of the feed. Throws
 * {@link EventParseError}. Does not validate `data`: within a type, fields are only ever added.
 */
export function parseEvent(json: RawBody | object): JobwireEvent {
  return toEvent(toObject(json));
}

/**
 * Parses the body of an SQS message or an SNS notification: an event, or a reference to an event that is too large (`'feed' in message`).
 * With or without raw message delivery. Throws {@link EventParseError}.
 */
export function parseMessage(body: RawBody | object): JobwireEvent | EventReference {
  const outer = toObject(body);
  const isNotification = typeof outer.TopicArn === 'string' && typeof outer.Type === 'string';
  if (isNotification && outer.Type !== 'Notification') {
    throw new EventParseError(`Expected an SNS Notification, received a ${outer.Type}.`);
  }
  const message = isNotification ? toObject(outer.Message) : outer;
  return message.jobwire === 'reference' ? toReference(message) : toEvent(message);
}

type Fields = Record<string, unknown>;

function toEvent(fields: Fields): JobwireEvent {
  if (fields.specversion !== '1.0')
    throw new EventParseError('The message is not a CloudEvent of version 1.0.');
  requireTexts(fields, ['id', 'source', 'type', 'time', 'sequence']);
  if (!isObject(fields.data)) throw new EventParseError('The event has no data.');
  return fields as unknown as JobwireEvent;
}

function toReference(fields: Fields): EventReference {
  requireTexts(fields, ['id', 'source', 'type', 'time', 'sequence', 'feed']);
  return fields as unknown as EventReference;
}

function requireTexts(fields: Fields, names: readonly string[]): void {
  for (const name of names) {
    if (typeof fields[name] !== 'string' || fields[name] === '') {
      throw new EventParseError(`The event has no ${name}.`);
    }
  }
}

function toObject(json: unknown): Fields {
  const value = typeof json === 'string' || isBytes(json) ? fromJson(json) : json;
  if (!isObject(value)) throw new EventParseError('The message is not a JSON object.');
  return value;
}

function fromJson(json: RawBody): unknown {
  try {
    return JSON.parse(typeof json === 'string' ? json : new TextDecoder().decode(toBytes(json)));
  } catch {
    // The message of the parser would quote the text.
    throw new EventParseError('The message is not valid JSON.');
  }
}

function isObject(value: unknown): value is Fields {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

function requireHeader(headers: RequestHeaders, name: string): string {
  const value = getHeader(headers, name);
  if (value) return value;
  throw new WebhookVerificationError('missing-header', `The header ${name} is missing.`);
}

function getHeader(headers: RequestHeaders, name: string): string | undefined {
  if (typeof headers.get === 'function') return headers.get(name) ?? undefined;
  const key = Object.keys(headers).find((one) => one.toLowerCase() === name);
  const value: unknown = key === undefined ? undefined : (headers as Fields)[key];
  return Array.isArray(value) ? value.join(' ') : (value as string | undefined);
}

function verifyTime(timestamp: string, nowSeconds: number, toleranceSeconds: number): void {
  if (!/^\d{1,12}$/.test(timestamp)) {
    throw new WebhookVerificationError(
      'bad-timestamp',
      'The header webhook-timestamp must be a number of seconds.',
    );
  }
  const ageSeconds = Math.floor(nowSeconds) - Number(timestamp);
  if (ageSeconds > toleranceSeconds) {
    const message = `The webhook was sent ${ageSeconds} s ago. The maximum age is ${toleranceSeconds} s.`;
    throw new WebhookVerificationError('too-old', message);
  }
  if (-ageSeconds > toleranceSeconds) {
    const message = `The webhook was sent ${-ageSeconds} s in the future. Check the clocks.`;
    throw new WebhookVerificationError('too-new', message);
  }
}

/** Returns a function that signs with a secret. The key is imported at the first webhook, because edge runtimes forbid such work at module load. */
function toSigner(secret: string): (signed: Uint8Array<ArrayBuffer>) => Promise<string> {
  const bytes = secretBytes(secret);
  let key: ReturnType<typeof importKey> | undefined;
  return async (signed) => {
    key ??= importKey(bytes);
    const mac = await crypto.subtle.sign('HMAC', await key, signed);
    return btoa(String.fromCharCode(...new Uint8Array(mac)));
  };
}

function importKey(bytes: Uint8Array<ArrayBuffer>) {
  return crypto.subtle.importKey('raw', bytes, { name: 'HMAC', hash: 'SHA-256' }, false, ['sign']);
}

function secretBytes(secret: string): Uint8Array<ArrayBuffer> {
  const encoded = /^(?:whsec_)?([A-Za-z0-9+/]+)={0,2}$/.exec(secret)?.[1] ?? '';
  // Base64 never has a remainder of one character.
  const text = encoded.length % 4 === 1 ? '' : atob(encoded);
  if (text.length < SECRET_BYTES.min || text.length > SECRET_BYTES.max) {
    throw new WebhookVerificationError(
      'bad-secret',
      `A secret must be whsec_ followed by ${SECRET_BYTES.min} to ${SECRET_BYTES.max} bytes in base64.`,
    );
  }
  return Uint8Array.from(text, (character) => character.charCodeAt(0));
}

/** Recognizes values of other realms too, as in edge runtimes and test runners, where `instanceof` fails. */
function isBytes(value: unknown): value is ArrayBuffer | ArrayBufferView {
  return ArrayBuffer.isView(value) || Object.prototype.toString.call(value) === '[object ArrayBuffer]';
}

/** Returns the bytes of a body. Of a view, only its own range. */
function toBytes(body: RawBody): Uint8Array {
  if (typeof body === 'string') return new TextEncoder().encode(body);
  if (!ArrayBuffer.isView(body)) return new Uint8Array(body);
  return new Uint8Array(body.buffer, body.byteOffset, body.byteLength);
}

function concatenate(head: Uint8Array, body: Uint8Array): Uint8Array<ArrayBuffer> {
  const all = new Uint8Array(head.length + body.length);
  all.set(head);
  all.set(body, head.length);
  return all;
}

/** Compares two texts in a time that depends only on their length. */
function equalInConstantTime(one: string, other: string): boolean {
  if (one.length !== other.length) return false;
  let difference = 0;
  for (let at = 0; at < one.length; at += 1) difference |= one.charCodeAt(at) ^ other.charCodeAt(at);
  return difference === 0;
}
