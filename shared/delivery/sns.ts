/**
 * The SNS sink: publishes events to a topic, with attributes for subscription filters.
 *
 * A FIFO topic keeps the order of each job and accepts an event once within five minutes; it delivers to SQS
 * only. A standard topic guarantees neither, and also delivers to e-mail, SMS, Lambda and HTTP.
 */
import {
  type BatchResultErrorEntry,
  type MessageAttributeValue,
  PublishBatchCommand,
  type PublishBatchRequestEntry,
  type SNSClient,
} from '@aws-sdk/client-sns';
import type { JobEvent } from '../events/event.ts';
import { formatCursor } from '../log/head.ts';
import type { LoggedEvent } from '../log/log.ts';
import { isCell } from '../storage/schema.ts';
import type { Delivery, DeliveryOutcome, SinkPort } from './sink.ts';

/** SNS's limit on the entries of one PublishBatch. */
const MAX_ENTRIES = 10;
/** SNS's limit on the bytes of one message, and of all messages of a batch together: bodies and attributes. */
const MAX_BYTES = 262_144;
/** Reserve of that per call, for other data that SNS might count. */
const SPARE_BYTES = 4_096;
/** Size of the wrapper that SNS adds for subscriptions without raw delivery, besides body and attributes. */
const WRAPPING_BYTES = 2_048;
/** Maximum length of an attribute. A longer one is omitted: truncated, its value would be wrong. */
const MAX_ATTRIBUTE_CHARACTERS = 1_024;
/** SNS requires e-mail subjects shorter than 100 characters. */
const MAX_SUBJECT_CHARACTERS = 99;

interface Options {
  /** Base URL of the HTTP API: an event that is too large for SNS is fetched from its feed. */
  readonly publicUrl: string;
}

/**
 * Creates a sink that publishes to an SNS topic, FIFO if its name ends in `.fifo`. In a FIFO topic, the
 * message group is the event's lane: account and job, or the account as a whole. The deduplication id is the
 * event's id, so an event published again within five minutes is one message. A requested resend has another
 * deduplication id, because it must arrive.
 *
 * The message is the envelope; for an event that is too large, a reference to it in the feed. Attributes:
 * type, accountId (absent in a cell's own log), region, and if the event has them jobNumber, orderGroup,
 * originCode and subject. `reference` and `replay` are `true` or absent. All are text. An attribute that SNS
 * does not accept is omitted.
 *
 * Each entry gets its own result. A batch that is rejected as a whole because of its content is sent again
 * entry by entry, so that one bad event does not block others.
 */
export function createSnsSink(client: SNSClient, topicArn: string, options: Options): SinkPort {
  const fifo = topicArn.endsWith('.fifo');
  const publicUrl = options.publicUrl.replace(/\/$/, '');

  async function publish(entries: readonly PublishBatchRequestEntry[]): Promise<DeliveryOutcome[]> {
    try {
      const answer = await client.send(
        new PublishBatchCommand({ TopicArn: topicArn, PublishBatchRequestEntries: [...entries] }),
      );
      const published = new Set(answer.Successful?.map(({ Id }) => Id));
      const failed = new Map(answer.Failed?.map((entry) => [entry.Id, entry]));
      return entries.map(({ Id }) => {
        if (published.has(Id)) return { kind: 'delivered' };
        const failure = failed.get(Id);
        return failure
          ? classifyEntryError(failure)
          : { kind: 'retry', reason: 'SNS returned no outcome for this event.' };
      });
    } catch (cause) {
      const { outcome, aboutContent } = classifyCallError(cause);
      if (!aboutContent) return entries.map(() => outcome);
      // For a single entry, the cause may still be the topic and not the event.
      if (entries.length === 1) return [{ ...outcome, suspect: true }];
      return (await Promise.all(entries.map((entry) => publish([entry])))).flat();
    }
  }

  return {
    maxBatch: MAX_ENTRIES,
    async deliver(deliveries) {
      const entries = deliveries.map((delivery, at) => toEntry(delivery, String(at), { fifo, publicUrl }));
      return (await Promise.all(toBatches(entries).map(publish))).flat();
    },
  };
}

// Messages

function toEntry(
  delivery: Delivery,
  id: string,
  { fifo, publicUrl }: { readonly fifo: boolean; readonly publicUrl: string },
): PublishBatchRequestEntry {
  const { event, replay = false } = delivery;
  const envelope = JSON.parse(event.json) as JobEvent;
  const entry = (body: string, reference: boolean): PublishBatchRequestEntry => ({
    Id: id,
    Message: toAcceptedJson(body),
    MessageAttributes: toMessageAttributes(event, envelope, { reference, replay }),
    ...(fifo
      ? {
          MessageGroupId: `${event.account}/${event.jobNumber ?? 'account'}`,
          MessageDeduplicationId: replay ? `${event.id}.replay` : event.id,
        }
      : // Without a message group: with one, subscribed SQS queues would become fair queues, which not every subscriber wants.
        { Subject: subjectLine(event, envelope) }),
  });
  const whole = entry(event.json, false);
  return fits(whole) ? whole : entry(toReference(event, envelope, publicUrl), true);
}

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

function toMessageAttributes(
  event: LoggedEvent,
  envelope: JobEvent,
  marks: { readonly reference: boolean; readonly replay: boolean },
): Record<string, MessageAttributeValue> {
  const data = envelope.data as {
    orderGroup?: string;
    job?: { orderGroup?: string | null; originCode?: string | null };
  };
  // Ten at most: SNS drops messages with more for SQS queues with raw delivery, and it adds one when it
  // replays.
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
  return Object.fromEntries(
    Object.entries(values).flatMap(([name, value]) =>
      typeof value !== 'string' || value.trim() === '' || value.length > MAX_ATTRIBUTE_CHARACTERS
        ? []
        : [[name, { DataType: 'String', StringValue: value.replace(UNSUPPORTED_CHARACTERS, '\uFFFD') }]],
    ),
  );
}

/** Returns the subject line of an e-mail. */
function subjectLine({ account, region }: LoggedEvent, { type, subject }: JobEvent): string {
  const about = subject ?? `region ${region}`;
  return `${type}, ${about} (${account})`.slice(0, MAX_SUBJECT_CHARACTERS);
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

/** Splits entries into batches of the size that SNS accepts, in the given order. */
function toBatches(entries: readonly PublishBatchRequestEntry[]): PublishBatchRequestEntry[][] {
  const batches: PublishBatchRequestEntry[][] = [];
  let room = 0;
  for (const entry of entries) {
    const bytes = measureEntry(entry);
    const last = batches.at(-1);
    if (last && bytes <= room) {
      last.push(entry);
      room -= bytes;
    } else {
      batches.push([entry]);
      room = MAX_BYTES - SPARE_BYTES - bytes;
    }
  }
  return batches;
}

/**
 * Reports whether SNS accepts an entry, and can deliver it wrapped as a text in JSON, where every quotation
 * mark is escaped.
 */
function fits(entry: PublishBatchRequestEntry): boolean {
  const limit = MAX_BYTES - SPARE_BYTES;
  const bytes = measureEntry(entry);
  // An escaped text is at most twice as long.
  if (2 * bytes + WRAPPING_BYTES <= limit) return true;
  const { Message, MessageAttributes } = entry;
  const wrapped = Buffer.byteLength(JSON.stringify({ Message, MessageAttributes }));
  return Math.max(bytes, wrapped + WRAPPING_BYTES) <= limit;
}

function measureEntry(entry: PublishBatchRequestEntry): number {
  const { Id, Message, Subject, MessageGroupId, MessageDeduplicationId, MessageAttributes } = entry;
  const texts = [Id, Message, Subject, MessageGroupId, MessageDeduplicationId];
  for (const [name, { DataType, StringValue }] of Object.entries(MessageAttributes ?? {})) {
    texts.push(name, DataType, StringValue);
  }
  return texts.reduce((sum, text) => sum + Buffer.byteLength(text ?? ''), 0);
}

// Answers

/**
 * The meaning of error codes; the first match applies. The entries before `content` concern the topic,
 * regardless of the event.
 */
const ERROR_CLASSES: readonly (readonly [
  pattern: RegExp,
  about: 'topic' | 'throttle' | 'content',
  message: string,
])[] = [
  [/^KMS/, 'topic', 'SNS cannot use the encryption key of the topic'],
  [/^(NotFound|ResourceNotFound)$/, 'topic', 'The topic does not exist'],
  [
    /Authorization|AccessDenied|Credentials|Token|Signature|InvalidSecurity/,
    'topic',
    'Jobwire has no permission to publish to the topic',
  ],
  [/Throttl|TooManyRequests|LimitExceeded|SlowDown/, 'throttle', 'SNS throttles requests'],
  [/^(InternalError|InternalFailure|ServiceUnavailable)$/, 'topic', 'SNS failed'],
  [
    /^(InvalidParameter|InvalidParameterValue|Validation|ValidationError|BatchRequestTooLong)$/,
    'content',
    'SNS rejected the request as invalid',
  ],
];

function classifyEntryError({ Code, SenderFault }: BatchResultErrorEntry): DeliveryOutcome {
  const code = normalizeCode(Code);
  const [, about, message] = classifyCode(code) ?? [undefined, 'content', 'SNS rejected the event'];
  const reason = `${message} (${code}).`;
  return SenderFault && about === 'content' ? { kind: 'rejected', reason } : { kind: 'retry', reason };
}

/** Classifies a call that failed as a whole. Ids, ARNs and messages of SNS are omitted from the reason. */
function classifyCallError(cause: unknown): {
  readonly outcome: DeliveryOutcome & { readonly kind: 'retry' };
  readonly aboutContent: boolean;
} {
  const answer = getResponse(cause);
  if (!answer) return { outcome: { kind: 'retry', reason: describeUnreachable(cause) }, aboutContent: false };
  const code = normalizeCode(answer.code);
  const [, about, message] = classifyCode(code) ?? [
    undefined,
    'topic',
    `SNS responded with status ${answer.status}`,
  ];
  const afterMs = answer.retryAfterMs;
  return {
    outcome: {
      kind: 'retry',
      reason: `${message} (${code}).`,
      ...(afterMs === undefined ? {} : { afterMs }),
    },
    aboutContent: about === 'content',
  };
}

function classifyCode(code: string): (typeof ERROR_CLASSES)[number] | undefined {
  return ERROR_CLASSES.find(([pattern]) => pattern.test(code));
}

/** Returns a code as SNS documents it; the SDK's classes add a suffix. */
function normalizeCode(name: string | undefined): string {
  const code = /^[A-Za-z][A-Za-z0-9.]{0,63}$/.exec(name ?? '')?.[0] ?? 'no code';
  return code.replace(/(?<=.)Exception$/, '');
}

/** Returns the response of SNS, if there was one. */
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
function describeUnreachable(cause: unknown): string {
  if (!(cause instanceof Error)) return 'SNS could not be reached.';
  // The SDK also reports every broken connection as a timeout; the error code distinguishes them.
  const code = 'code' in cause && typeof cause.code === 'string' ? cause.code : cause.name;
  if (code === 'TimeoutError' || code === 'ETIMEDOUT') return 'SNS did not respond in time.';
  return `SNS could not be reached (${normalizeCode(code)}).`;
}
