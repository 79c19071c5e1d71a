/**
 * Receiving events: webhooks verified and parsed, messages of SQS and SNS parsed, into typed events. Nothing but Web APIs is
 * used (Web Crypto, TextEncoder, atob), so it runs on Node 20 and later, on Deno and Bun, and on edge runtimes alike.
 * How to use it, and what receivers have to keep in mind: docs/receiving-events.md.
 */
import type { EventDataByType } from './events.ts';

export type * from './events.ts';

/** The event types that this version knows. */
export type EventType = keyof EventDataByType;

/** The CloudEvents 1.0 envelope of an event. */
interface Envelope<Type extends string, Data> {
  readonly specversion: '1.0';
  /** `<account>.<epoch>.<sequence>`: the same however often the event is sent. */
  readonly id: string;
  /**
   * `/regions/<region>/accounts/<account>`, or `/regions/<region>` for events about a region. Begins with the public URL of
   * the Jobwire that recorded the event, if one was configured.
   */
  readonly source: string;
  readonly type: Type;
  /** `jobs/<jobNumber>` or `order-groups/<name, percent-encoded>`; absent for events about the account or region. */
  readonly subject?: string;
  /** When the change was seen, ISO 8601 in UTC. */
  readonly time: string;
  /** 20 digits; sorts as text. */
  readonly sequence: string;
  readonly dataschema: string;
  readonly datacontenttype: 'application/json';
  readonly data: Data;
}

/** An event of one of the known types, or of the one that is named: `KnownEvent<'job.dispatched'>`. */
export type KnownEvent<T extends EventType = EventType> = { [K in T]: Envelope<K, EventDataByType[K]> }[T];

/** Any text but that of a known type. It has no value at run time; it lets TypeScript tell the events apart by `type`. */
declare enum UnlistedType {
  any = '',
}

/** An event of a type that came after this version: its envelope is sure, its data is not known. */
export interface UnknownEvent extends Envelope<UnlistedType, Readonly<Record<string, unknown>>> {}

/** An event. `switch (event.type)` tells the types apart; what is left in `default` is an {@link UnknownEvent}. */
export type JobwireEvent = KnownEvent | UnknownEvent;

/** An event as it came by webhook. */
export type ReceivedEvent = JobwireEvent & {
  /**
   * Whether the request has the header `webhook-replay: true`: a replay or resend was requested. The signature does not cover
   * it, so anyone on the way can add or remove it. Use it in logs and displays, not for decisions: deduplicate by `id`.
   */
  readonly replay: boolean;
};

/** The raw body of a request: its text, or its bytes in an `ArrayBuffer` or any view of one (`Uint8Array`, `Buffer`, `DataView`, …). */
export type RawBody = string | ArrayBuffer | ArrayBufferView;

/** What stands for an event that is too large for SNS; the event itself is to be read from the feed. */
export interface EventReference {
  readonly jobwire: 'reference';
  readonly id: string;
  readonly type: string;
  readonly source: string;
  readonly subject?: string;
  readonly time: string;
  readonly sequence: string;
  /** Where the event is read, with the API key. */
  readonly feed: string;
}

/** Headers of a request: those of the Fetch API, or names and values as Node and Lambda have them, in upper or lower case. */
export type RequestHeaders =
  | { get(name: string): string | null }
  | { readonly [name: string]: string | readonly string[] | undefined };

/** How webhooks are verified. */
export interface ReceiverOptions {
  /** The endpoint's secret, `whsec_…`. */
  readonly secret?: string | undefined;
  /** Several, while one is rotated: a signature of any of them is good. Those that are undefined or empty are left out. */
  readonly secrets?: readonly (string | undefined)[];
  /** How far the time of sending may be from now, either way. */
  readonly toleranceSeconds?: number;
  /** Epoch ms. */
  readonly now?: () => number;
}

/** Takes webhooks in. */
export interface Receiver {
  /**
   * Verifies a webhook and gives its event. `body` is the request's raw body, before anything parsed it. Throws
   * {@link WebhookVerificationError}, or {@link EventParseError} for a signed body that is no event.
   */
  receive(body: RawBody, headers: RequestHeaders): Promise<ReceivedEvent>;
  /** Verifies a webhook and leaves its body alone. Throws {@link WebhookVerificationError}. */
  verify(body: RawBody, headers: RequestHeaders): Promise<void>;
}

/** Why a webhook is not believed. */
export type VerificationErrorCode =
  | 'bad-secret'
  | 'bad-body'
  | 'missing-header'
  | 'bad-timestamp'
  | 'too-old'
  | 'too-new'
  | 'bad-signature';

/** A webhook that must not be believed, or a secret that can't verify any. Its message never shows secret or body. */
export class WebhookVerificationError extends Error {
  override readonly name = 'WebhookVerificationError';
  readonly code: VerificationErrorCode;

  constructor(code: VerificationErrorCode, message: string) {
    super(message);
    this.code = code;
  }
}

/** A text that is no event. */
export class EventParseError extends Error {
  override readonly name = 'EventParseError';
}

/** The lengths of a secret that Standard Webhooks allows. */
const SECRET_BYTES = { min: 24, max: 64 };

/**
 * Makes what takes webhooks in, signed as Standard Webhooks 1.0 has it. Throws {@link WebhookVerificationError} with
 * `bad-secret` at once when there is no secret, or one that can't be right.
 */
export function createReceiver(options: ReceiverOptions): Receiver {
  const { toleranceSeconds = 300, now = Date.now } = options;
  const secrets = [options.secret, ...(options.secrets ?? [])].filter((secret) => secret !== undefined);
  const signers = secrets.filter((secret) => secret !== '').map(toSigner);
  if (signers.length === 0) throw new WebhookVerificationError('bad-secret', 'There is no secret.');

  /** Gives a copy of the bytes that were verified. */
  async function verified(body: RawBody, headers: RequestHeaders): Promise<Uint8Array> {
    if (typeof body !== 'string' && !isBytes(body)) {
      throw new WebhookVerificationError(
        'bad-body',
        'The body must be the raw text or bytes of the request, before anything parsed it.',
      );
    }
    const id = required(headers, 'webhook-id');
    const timestamp = required(headers, 'webhook-timestamp');
    const signatures = required(headers, 'webhook-signature');
    verifyTime(timestamp, now() / 1000, toleranceSeconds);
    const head = new TextEncoder().encode(`${id}.${timestamp}.`);
    const signed = concatenate(head, toBytes(body));
    const macs = await Promise.all(signers.map((sign) => sign(signed)));
    // All are compared, whichever fits, so that the time it takes says nothing.
    let fits = false;
    for (const signature of signatures.split(' ')) {
      // Other versions (v1a, with a public key) can stand beside ours.
      if (!signature.startsWith('v1,')) continue;
      for (const mac of macs) fits = equalInConstantTime(signature.slice(3), mac) || fits;
    }
    if (fits) return signed.subarray(head.length);
    throw new WebhookVerificationError(
      'bad-signature',
      'No signature fits: another secret was used, or the body is not the one that was signed.',
    );
  }

  return {
    async verify(body, headers) {
      await verified(body, headers);
    },
    async receive(body, headers) {
      // The caller can change a body of bytes meanwhile.
      const bytes = await verified(body, headers);
      return { ...parseEvent(bytes), replay: headerOf(headers, 'webhook-replay') === 'true' };
    },
  };
}

/**
 * An event from its JSON: a webhook's body that was verified, or one of `events` in a page of the feed. Throws
 * {@link EventParseError}. Of the data nothing is checked: within a type it only ever grows.
 */
export function parseEvent(json: RawBody | object): JobwireEvent {
  return toEvent(toObject(json));
}

/**
 * What the body of an SQS message, or an SNS notification, holds: an event, or the reference to one (`'feed' in message`) that
 * was too large. With or without raw message delivery. Throws {@link EventParseError}.
 */
export function parseMessage(body: RawBody | object): JobwireEvent | EventReference {
  const outer = toObject(body);
  const wrapped = typeof outer.TopicArn === 'string' && typeof outer.Type === 'string';
  if (wrapped && outer.Type !== 'Notification') {
    throw new EventParseError(`This is a ${outer.Type} of SNS, not an event.`);
  }
  const message = wrapped ? toObject(outer.Message) : outer;
  return message.jobwire === 'reference' ? toReference(message) : toEvent(message);
}

type Fields = Record<string, unknown>;

function toEvent(fields: Fields): JobwireEvent {
  if (fields.specversion !== '1.0') throw new EventParseError('This is no CloudEvent of version 1.0.');
  requireTexts(fields, ['id', 'source', 'type', 'time', 'sequence']);
  if (!isObject(fields.data)) throw new EventParseError('The event lacks its data.');
  return fields as unknown as JobwireEvent;
}

function toReference(fields: Fields): EventReference {
  requireTexts(fields, ['id', 'source', 'type', 'time', 'sequence', 'feed']);
  return fields as unknown as EventReference;
}

function requireTexts(fields: Fields, names: readonly string[]): void {
  for (const name of names) {
    if (typeof fields[name] !== 'string' || fields[name] === '') {
      throw new EventParseError(`The event lacks its ${name}.`);
    }
  }
}

function toObject(json: unknown): Fields {
  const value = typeof json === 'string' || isBytes(json) ? fromJson(json) : json;
  if (!isObject(value)) throw new EventParseError('This is no JSON object.');
  return value;
}

function fromJson(json: RawBody): unknown {
  try {
    return JSON.parse(typeof json === 'string' ? json : new TextDecoder().decode(toBytes(json)));
  } catch {
    // The parser's message would quote the text.
    throw new EventParseError('This is no JSON.');
  }
}

function isObject(value: unknown): value is Fields {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

function required(headers: RequestHeaders, name: string): string {
  const value = headerOf(headers, name);
  if (value) return value;
  throw new WebhookVerificationError('missing-header', `The header ${name} is missing.`);
}

function headerOf(headers: RequestHeaders, name: string): string | undefined {
  if (typeof headers.get === 'function') return headers.get(name) ?? undefined;
  const key = Object.keys(headers).find((one) => one.toLowerCase() === name);
  const value: unknown = key === undefined ? undefined : (headers as Fields)[key];
  return Array.isArray(value) ? value.join(' ') : (value as string | undefined);
}

function verifyTime(timestamp: string, nowSeconds: number, toleranceSeconds: number): void {
  if (!/^\d{1,12}$/.test(timestamp)) {
    throw new WebhookVerificationError(
      'bad-timestamp',
      'The header webhook-timestamp is no number of seconds.',
    );
  }
  const ageSeconds = Math.floor(nowSeconds) - Number(timestamp);
  if (ageSeconds > toleranceSeconds) {
    const message = `The webhook was sent ${ageSeconds} s ago, and ${toleranceSeconds} s are allowed.`;
    throw new WebhookVerificationError('too-old', message);
  }
  if (-ageSeconds > toleranceSeconds) {
    const message = `The webhook was sent ${-ageSeconds} s in the future; check the clocks.`;
    throw new WebhookVerificationError('too-new', message);
  }
}

/** Signs as a secret does. The key is imported with the first webhook: edge runtimes do no such work while a module loads. */
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
  // One character over a whole number of bytes is no base64.
  const text = encoded.length % 4 === 1 ? '' : atob(encoded);
  if (text.length < SECRET_BYTES.min || text.length > SECRET_BYTES.max) {
    throw new WebhookVerificationError(
      'bad-secret',
      `A secret is whsec_ and ${SECRET_BYTES.min} to ${SECRET_BYTES.max} bytes in base64.`,
    );
  }
  return Uint8Array.from(text, (character) => character.charCodeAt(0));
}

/** Also of another realm, as edge runtimes and test runners have them: there `instanceof` is false. */
function isBytes(value: unknown): value is ArrayBuffer | ArrayBufferView {
  return ArrayBuffer.isView(value) || Object.prototype.toString.call(value) === '[object ArrayBuffer]';
}

/** The bytes of a body. Of a view, those that it shows, whatever its elements are. */
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

/** Whether two texts are the same, in a time that depends on their length alone. */
function equalInConstantTime(one: string, other: string): boolean {
  if (one.length !== other.length) return false;
  let difference = 0;
  for (let at = 0; at < one.length; at += 1) difference |= one.charCodeAt(at) ^ other.charCodeAt(at);
  return difference === 0;
}
