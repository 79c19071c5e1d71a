/** Common parts of SNS, SQS and EventBridge: events are sent in batches, and each entry has its own result. */
import { hash } from 'node:crypto';
import type { MessageAttributeValue, PublishBatchResponse } from '@aws-sdk/client-sns';
import { formatCode } from '../error-codes.ts';
import type { JobEvent } from '../events/event.ts';
import { formatCursor } from '../log/head.ts';
import type { LoggedEvent } from '../log/log.ts';
import { isCell } from '../storage/schema.ts';
import type { Delivery, DeliveryOutcome, SinkPort } from './sink.ts';

/** Limit of the services on the entries of one call. */
const MAX_ENTRIES = 10;
/** Limit of the services on the bytes of one entry, and of all entries of a call together. SQS accepts more. */
const MAX_BYTES = 262_144;
/** Reserve of that per call, for other data that the service might count. */
const SPARE_BYTES = 4_096;
/** Maximum size of an entry, and of a batch (bytes). */
export const BATCH_BYTES = MAX_BYTES - SPARE_BYTES;
/** Maximum length of a value to filter by. A longer one is omitted: truncated, it would be wrong. */
const MAX_VALUE_CHARACTERS = 1_024;

/** The result for one entry. */
export type EntryResult =
  | 'accepted'
  | {
      readonly code: string | undefined;
      /** Whether the sender is at fault. Then an error about the content, or with an unknown code, rejects the event. */
      readonly senderFault: boolean;
    };

/** An event to send. */
export interface Message {
  /** Id of the entry in its batch. */
  readonly id: string;
  readonly event: LoggedEvent;
  readonly envelope: JobEvent;
  /** JSON of the envelope, or of a reference to it in the feed if the event is too large. In characters that SQS accepts. */
  readonly body: string;
  readonly replay: string | undefined;
  /** Values by which subscribers can filter events. */
  readonly values: Readonly<Record<string, string>>;
}

/** A service that accepts batches. */
export interface BatchService<Entry> {
  /** Name of the service, for reasons. */
  readonly name: string;
  /** Name of the destination in reasons: `topic`. */
  readonly target: string;
  /** Base URL of the HTTP API: an event that is too large for the service is fetched from its feed. */
  readonly publicUrl: string;
  toEntry(message: Message): Entry;
  /** Returns the size of an entry (bytes). */
  measure(entry: Entry): number;
  /** Whether the service accepts and can deliver an entry. Default: if it fits in a batch. */
  fits?(entry: Entry): boolean;
  /** Sends one batch. Returns the results in the order of the entries. Throws errors of the SDK. */
  send(entries: readonly Entry[]): Promise<readonly (EntryResult | undefined)[]>;
}

/**
 * Creates a sink of a service that accepts batches. Each entry gets its own result. A batch that is rejected as
 * a whole because of its content is sent again entry by entry, so that one bad event does not block others.
 */
export function createBatchSink<Entry>(service: BatchService<Entry>): SinkPort {
  async function publish(entries: readonly Entry[]): Promise<DeliveryOutcome[]> {
    try {
      const results = await service.send(entries);
      return entries.map((_, at) => {
        const result = results[at];
        if (result === 'accepted') return { kind: 'delivered' };
        return result
          ? classifyEntryError(service, result)
          : { kind: 'retry', reason: `${service.name} returned no outcome for this event.` };
      });
    } catch (cause) {
      const { outcome, aboutContent } = classifyCallError(service, cause);
      if (!aboutContent) return entries.map(() => outcome);
      // For a single entry, the cause may still be the target and not the event.
      if (entries.length === 1) return [{ ...outcome, suspect: true }];
      return (await Promise.all(entries.map((entry) => publish([entry])))).flat();
    }
  }

  return {
    maxBatch: MAX_ENTRIES,
    async deliver(deliveries) {
      const entries = deliveries.map((delivery, at) => toEntry(service, delivery, String(at)));
      return (await Promise.all(toBatches(entries, service).map(publish))).flat();
    },
  };
}

/** Returns the entry of an event, or of a reference to it if the event is too large. */
function toEntry<Entry>(service: BatchService<Entry>, { event, replay }: Delivery, id: string): Entry {
  const { measure, fits = (entry: Entry) => measure(entry) <= BATCH_BYTES } = service;
  const envelope = JSON.parse(event.json) as JobEvent;
  const entry = (json: string, reference: boolean): Entry => {
    const values = toFilterValues(event, envelope, { reference, replay });
    return service.toEntry({ ...{ id, event, envelope, replay, values }, body: toAcceptedJson(json) });
  };
  const whole = entry(event.json, false);
  return fits(whole)
    ? whole
    : entry(toReference(event, envelope, service.publicUrl.replace(/\/$/, '')), true);
}

/** Returns the results of the entries in a response of SNS or SQS. */
export function toEntryResults(
  entries: readonly { readonly Id?: string | undefined }[],
  { Successful, Failed }: Pick<PublishBatchResponse, 'Successful' | 'Failed'>,
): (EntryResult | undefined)[] {
  const accepted = new Set(Successful?.map(({ Id }) => Id));
  const failed = new Map(Failed?.map((entry) => [entry.Id, entry]));
  return entries.map(({ Id }) => {
    if (accepted.has(Id)) return 'accepted';
    const failure = failed.get(Id);
    return failure && { code: failure.Code, senderFault: failure.SenderFault === true };
  });
}

// Messages

/** Returns the location of the event in the feed: the event after the cursor. */
function toReference(event: LoggedEvent, envelope: JobEvent, publicUrl: string): string {
  const { id, type, source, subject, time, sequence } = envelope;
  const epoch = event.id.slice(event.account.length + 1, event.id.lastIndexOf('.'));
  const owner = isCell(event)
    ? `regions/${encodeURIComponent(event.region)}`
    : `accounts/${encodeURIComponent(event.account)}`;
  const after = formatCursor(epoch, event.sequence - 1);
  const feed = `${publicUrl}/v1/${owner}/events?after=${after}&limit=1`;
  return JSON.stringify({ jobwire: 'reference', id, type, source, subject, time, sequence, feed });
}

/**
 * Returns the values by which subscribers can filter events. A blank value, or one that is too long, is
 * omitted.
 */
function toFilterValues(
  event: LoggedEvent,
  envelope: JobEvent,
  marks: { readonly reference: boolean; readonly replay: string | undefined },
): Record<string, string> {
  const data = envelope.data as {
    orderGroup?: string;
    job?: { orderGroup?: string | null; originCode?: string | null };
  };
  const values = {
    type: event.type,
    accountId: isCell(event) ? undefined : event.account,
    region: event.region,
    // As text: SNS compares numbers only up to 10^9.
    jobNumber: event.jobNumber === undefined ? undefined : String(event.jobNumber),
    orderGroup: data.orderGroup ?? data.job?.orderGroup,
    originCode: data.job?.originCode,
    subject: envelope.subject,
    reference: marks.reference ? 'true' : undefined,
    replay: marks.replay ? 'true' : undefined,
  };
  return filterable(values);
}

/**
 * Converts values to attributes of a message. Ten at most: SNS drops messages with more for SQS queues with raw
 * delivery, and it adds one when it replays.
 */
export function toMessageAttributes(
  values: Readonly<Record<string, string>>,
): Record<string, { readonly DataType: string; readonly StringValue: string }> {
  return Object.fromEntries(
    Object.entries(values).map(([name, value]) => [name, { DataType: 'String', StringValue: value }]),
  );
}

/**
 * Returns the message group of an event, its lane, and its deduplication id in a FIFO topic or queue. Each replay and resend has
 * its own, of limited length, because the event must arrive again.
 */
export function toFifoFields({ id, account, jobNumber }: LoggedEvent, replay: string | undefined) {
  return {
    MessageGroupId: `${account}/${jobNumber ?? 'account'}`,
    MessageDeduplicationId: replay === undefined ? id : `${id}.${hash('sha256', replay).slice(0, 16)}`,
  };
}

/** Omits values that are absent, blank or too long to filter by. */
export function filterable(values: Readonly<Record<string, unknown>>): Record<string, string> {
  return Object.fromEntries(
    Object.entries(values).flatMap(([name, value]) =>
      typeof value !== 'string' || value.trim() === '' || value.length > MAX_VALUE_CHARACTERS
        ? []
        : [[name, value.replace(UNSUPPORTED_CHARACTERS, '\uFFFD')]],
    ),
  );
}

/**
 * Characters that SQS does not accept: all but those of XML 1.0. It replaces them with U+FFFD, or rejects the
 * message.
 */
const UNSUPPORTED_CHARACTERS = /[^\t\n\r\u0020-\uD7FF\uE000-\uFFFD\u{10000}-\u{10FFFF}]/gu;

/** Escapes every character that SQS does not accept. In JSON such a character occurs only within a text. */
function toAcceptedJson(json: string): string {
  return json.replace(
    UNSUPPORTED_CHARACTERS,
    (character) => `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`,
  );
}

// Sizes

/** Returns the size of an entry, of its texts and attributes, as SNS and SQS count it (bytes). */
export function measureMessage(entry: {
  readonly MessageAttributes?: Readonly<Record<string, MessageAttributeValue>> | undefined;
}): number {
  const { MessageAttributes = {}, ...texts } = entry;
  const named = Object.entries(MessageAttributes).flatMap(([name, { DataType, StringValue }]) => [
    name,
    DataType,
    StringValue,
  ]);
  const all: readonly (string | undefined)[] = [...Object.values<string | undefined>(texts), ...named];
  return all.reduce((sum, text) => sum + Buffer.byteLength(text ?? ''), 0);
}

/** Splits entries into batches of the size that the service accepts, in the given order. */
function toBatches<Entry>(entries: readonly Entry[], { measure }: BatchService<Entry>): Entry[][] {
  const batches: Entry[][] = [];
  let room = 0;
  for (const entry of entries) {
    const bytes = measure(entry);
    const last = batches.at(-1);
    if (last && bytes <= room) {
      last.push(entry);
      room -= bytes;
    } else {
      batches.push([entry]);
      room = BATCH_BYTES - bytes;
    }
  }
  return batches;
}

// Answers

type Named = Pick<BatchService<unknown>, 'name' | 'target'>;

/**
 * The meaning of error codes; the first match applies. The entries before `content` concern the target,
 * regardless of the event.
 */
const ERROR_CLASSES: readonly (readonly [
  pattern: RegExp,
  about: 'target' | 'throttle' | 'content',
  message: (service: Named) => string,
])[] = [
  [
    /^KMS(?!.*Throttl)/i,
    'target',
    ({ name, target }) => `${name} cannot use the encryption key of the ${target}`,
  ],
  [
    /^(NotFound|ResourceNotFound|QueueDoesNotExist|.*NonExistentQueue|InvalidAddress)$/,
    'target',
    ({ target }) => `The ${target} does not exist`,
  ],
  [
    /Authoriz|AccessDenied|Credentials|Token|Signature|InvalidSecurity/,
    'target',
    ({ target }) => `Jobwire has no permission to publish to the ${target}`,
  ],
  [
    /Throttl|TooManyRequests|LimitExceeded|OverLimit|SlowDown/,
    'throttle',
    ({ name }) => `${name} throttles requests`,
  ],
  [/^(InternalError|InternalFailure|Internal|ServiceUnavailable)$/, 'target', ({ name }) => `${name} failed`],
  [
    /^(InvalidParameter|InvalidParameterValue|InvalidArgument|InvalidMessageContents|MalformedDetail|Validation|ValidationError|BatchRequestTooLong|PayloadSizeLimitExceeded)$/,
    'content',
    ({ name }) => `${name} rejected the request as invalid`,
  ],
];

function classifyEntryError(
  service: Named,
  { code: name, senderFault }: Exclude<EntryResult, string>,
): DeliveryOutcome {
  const code = normalizeCode(name);
  const [, about, describe] = classifyCode(code) ?? [
    undefined,
    'content' as const,
    () => `${service.name} rejected the event`,
  ];
  const reason = `${describe(service)} (${code}).`;
  return senderFault && about === 'content' ? { kind: 'rejected', reason } : { kind: 'retry', reason };
}

/** Classifies a call that failed as a whole. Ids, ARNs and messages of the service are omitted from the reason. */
function classifyCallError(
  service: Named,
  cause: unknown,
): {
  readonly outcome: DeliveryOutcome & { readonly kind: 'retry' };
  readonly aboutContent: boolean;
} {
  const answer = getResponse(cause);
  if (!answer)
    return { outcome: { kind: 'retry', reason: describeUnreachable(service, cause) }, aboutContent: false };
  const code = normalizeCode(answer.code);
  const [, about, describe] = classifyCode(code) ?? [
    undefined,
    'target' as const,
    () => `${service.name} responded with status ${answer.status}`,
  ];
  const afterMs = answer.retryAfterMs;
  return {
    outcome: {
      kind: 'retry',
      reason: `${describe(service)} (${code}).`,
      ...(afterMs === undefined ? {} : { afterMs }),
    },
    aboutContent: about === 'content',
  };
}

function classifyCode(code: string): (typeof ERROR_CLASSES)[number] | undefined {
  return ERROR_CLASSES.find(([pattern]) => pattern.test(code));
}

/** Returns a code as the service documents it; the SDK's classes add a suffix. */
function normalizeCode(name: string | undefined): string {
  const code = /^[A-Za-z][A-Za-z0-9.]{0,63}$/.exec(name ?? '')?.[0] ?? 'no code';
  return code.replace(/(?<=.)Exception$/, '');
}

/** Returns the response of the service, if there was one. */
function getResponse(
  cause: unknown,
): { readonly code: string; readonly status: number; readonly retryAfterMs?: number } | undefined {
  if (!(cause instanceof Error)) return undefined;
  const { name, $metadata, $response } = cause as Error & {
    $metadata?: { httpStatusCode?: number };
    $response?: { headers?: Readonly<Record<string, string>> };
  };
  const status = $metadata?.httpStatusCode;
  if (status === undefined) return undefined;
  const seconds = /^\d{1,9}$/.exec($response?.headers?.['retry-after'] ?? '')?.[0];
  return { code: name, status, ...(seconds === undefined ? {} : { retryAfterMs: Number(seconds) * 1000 }) };
}

/** Describes a call without a response; addresses are omitted. */
function describeUnreachable({ name: service }: Named, cause: unknown): string {
  if (!(cause instanceof Error)) return `${service} could not be reached.`;
  // The SDK also reports every broken connection as a timeout; the error code distinguishes them.
  const code = 'code' in cause && typeof cause.code === 'string' ? cause.code : cause.name;
  if (code === 'TimeoutError' || code === 'ETIMEDOUT') return `${service} did not respond in time.`;
  return `${service} could not be reached${formatCode(normalizeCode(code))}.`;
}
