/** Invokes functions for their event sources: queues and the stream of the table, according to their mappings. */
import { randomUUID } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Aws, Caller, Change, Image } from './aws.ts';
import type { Lambda } from './lambda.ts';
import { queueName, type Resource, type StackTemplate, type Value } from './template.ts';

/** A running mapping. */
export interface EventSource {
  /** Returns whether it runs an invocation, or has an event that it could process now. */
  busy(): Promise<boolean>;
  /** Called when there may be an event: a message arrived, or time passed. */
  nudge(): void;
  /** Starts no further invocations. */
  stop(): void;
}

/** Configuration of a mapping. */
export interface Mapping {
  readonly template: StackTemplate;
  readonly resource: Resource;
  readonly fn: Lambda;
  readonly aws: Aws;
  /** The role of the mapping: that of its function. */
  readonly caller: Caller;
}

type BatchAnswer = { readonly batchItemFailures?: readonly { readonly itemIdentifier?: unknown }[] } | null;

/** Interval at which a queue is read without a notification: delayed messages become visible without one. */
const RECHECK_MS = 200;
const RETRY_AFTER_MS = 50;

/** Returns the failed items of a batch from the response of the function. `undefined`: the response contains unknown items. */
function getFailed(
  mapping: Mapping,
  answer: unknown,
  known: readonly string[],
): ReadonlySet<string> | undefined {
  const types = (mapping.resource.properties.FunctionResponseTypes ?? []) as string[];
  if (!types.includes('ReportBatchItemFailures')) return new Set();
  const ids = ((answer as BatchAnswer)?.batchItemFailures ?? []).map(({ itemIdentifier }) => itemIdentifier);
  return ids.every((id) => known.includes(String(id))) ? new Set(ids.map(String)) : undefined;
}

function requireRights(mapping: Mapping, actions: readonly string[], resource: string): void {
  const denied = actions.find((action) => !mapping.caller.role?.may({ action, resource }));
  if (denied) throw new Error(`The role of ${mapping.fn.name} does not allow ${denied} on its event source.`);
}

// Queues

interface Message {
  readonly MessageId: string;
  readonly ReceiptHandle: string;
  readonly Body: string;
  readonly MD5OfBody: string;
  readonly Attributes: Readonly<Record<string, string>>;
  readonly MessageAttributes?: Readonly<Record<string, unknown>>;
}

/**
 * Processes a queue. Batches are passed to the function; processed messages are deleted, failed ones become visible again after
 * the visibility timeout. The number of concurrent batches is limited by the mapping and the environments of the function.
 */
export function followQueue(mapping: Mapping): EventSource {
  const { template, resource, fn, aws, caller } = mapping;
  const { properties } = resource;
  const queueArn = String(template.resolve(properties.EventSourceArn));
  const queue = template.byArn(queueArn);
  const QueueUrl = template.ref(queue.id);
  const batchSize = Math.min(10, Number(properties.BatchSize ?? 10));
  const scaling = (properties.ScalingConfig ?? {}) as { MaximumConcurrency?: number };
  const atOnce = Math.min(scaling.MaximumConcurrency ?? fn.limit, fn.limit);
  const retentionMs = Number(queue.properties.MessageRetentionPeriod ?? 345_600) * 1000;
  const visibilityMs = Number(queue.properties.VisibilityTimeout ?? 30) * 1000;
  if (visibilityMs < fn.timeoutMs) {
    throw new Error(`${queue.path}: AWS refuses a visibility time-out that is shorter than its function's.`);
  }
  requireRights(mapping, ['sqs:ReceiveMessage', 'sqs:DeleteMessage', 'sqs:GetQueueAttributes'], queueArn);

  let running = 0;
  let receiving = false;
  let again = false;
  let stopped = false;
  const timer = setInterval(nudge, RECHECK_MS);

  function nudge(): void {
    if (stopped) return;
    if (receiving) {
      again = true;
      return;
    }
    receiving = true;
    void receiveAll()
      .catch((cause) => console.error(`${queueName(QueueUrl)}:`, cause))
      .finally(() => {
        receiving = false;
        if (again) {
          again = false;
          nudge();
        }
      });
  }

  async function receiveAll(): Promise<void> {
    while (running < atOnce && !stopped) {
      const { Messages = [] } = await aws.call(caller, 'sqs', 'ReceiveMessage', {
        QueueUrl,
        MaxNumberOfMessages: batchSize,
        MessageSystemAttributeNames: ['All'],
        MessageAttributeNames: ['All'],
      });
      const all = Messages as Message[];
      if (all.length === 0) return;
      // The retention time of the queue, which the embedded server does not implement.
      const old = all.filter(
        ({ Attributes }) => Number(Attributes.SentTimestamp) + retentionMs <= Date.now(),
      );
      await remove(old);
      const messages = all.filter((message) => !old.includes(message));
      if (messages.length > 0) void work(messages);
    }
  }

  async function work(messages: readonly Message[]): Promise<void> {
    running += 1;
    try {
      const answer = await fn.invoke({ Records: messages.map(toRecord) });
      const failed = getFailed(
        mapping,
        answer,
        messages.map(({ MessageId }) => MessageId),
      );
      if (failed) await remove(messages.filter(({ MessageId }) => !failed.has(MessageId)));
    } catch {
      // They become visible again after the visibility timeout. The log of the function contains the reason.
    } finally {
      running -= 1;
      nudge();
    }
  }

  async function remove(messages: readonly Message[]): Promise<void> {
    if (messages.length === 0 || stopped) return;
    const Entries = messages.map(({ ReceiptHandle }, at) => ({ Id: String(at), ReceiptHandle }));
    await aws.call(caller, 'sqs', 'DeleteMessageBatch', { QueueUrl, Entries });
  }

  const toRecord = (message: Message) => ({
    messageId: message.MessageId,
    receiptHandle: message.ReceiptHandle,
    body: message.Body,
    attributes: message.Attributes,
    messageAttributes: message.MessageAttributes ?? {},
    md5OfBody: message.MD5OfBody,
    eventSource: 'aws:sqs',
    eventSourceARN: queueArn,
    awsRegion: template.region,
  });

  return {
    nudge,
    async busy() {
      if (running > 0 || receiving) return true;
      const { Attributes } = await aws.call(caller, 'sqs', 'GetQueueAttributes', {
        QueueUrl,
        AttributeNames: ['ApproximateNumberOfMessages'],
      });
      return Number((Attributes as Record<string, string>).ApproximateNumberOfMessages) > 0;
    },
    stop() {
      stopped = true;
      clearInterval(timer);
    },
  };
}

// The stream

interface StreamRecord {
  readonly eventID: string;
  readonly dynamodb: { readonly SequenceNumber: string; readonly ApproximateCreationDateTime: number };
}

/** A stream with a reader: it gets the changes, and decides whether it needs an image before it is read. */
export interface StreamSource extends EventSource {
  wants(table: string, keys: Image): boolean;
  push(change: Change): void;
}

/**
 * Processes the stream of a table as one shard: batch by batch, in order, only records that match the filters. A failed batch
 * is bisected and retried from the first failed record. Records that fail permanently go to the on-failure destination.
 */
export function followStream(mapping: Mapping): StreamSource {
  const { template, resource, fn, aws, caller } = mapping;
  const { properties } = resource;
  const streamArn = String(template.resolve(properties.EventSourceArn));
  const table = template.byArn(streamArn);
  const TableName = template.ref(table.id);
  const view = (table.properties.StreamSpecification as { StreamViewType?: string }).StreamViewType;
  if (view !== 'NEW_IMAGE') throw new Error(`Streams with ${view} are not known here.`);
  const { Filters = [] } = (template.resolve(properties.FilterCriteria) ?? {}) as {
    Filters?: { Pattern: string }[];
  };
  const patterns = Filters.map(({ Pattern }) => JSON.parse(Pattern) as Pattern);
  if (patterns.some((pattern) => 'eventName' in pattern)) {
    throw new Error('What kind of change it was is not known here: the stream is derived from writes.');
  }
  const batchSize = Number(properties.BatchSize ?? 100);
  const retries = Number(properties.MaximumRetryAttempts ?? -1);
  const maxAgeMs = Number(properties.MaximumRecordAgeInSeconds ?? -1) * 1000;
  const bisect = properties.BisectBatchOnFunctionError === true;
  const destination = template.resolve(
    (properties.DestinationConfig as { OnFailure?: { Destination?: Value } })?.OnFailure?.Destination,
  ) as string | undefined;
  requireRights(
    mapping,
    ['dynamodb:DescribeStream', 'dynamodb:GetShardIterator', 'dynamodb:GetRecords', 'dynamodb:ListStreams'],
    streamArn,
  );

  const backlog: StreamRecord[] = [];
  let sequence = 0;
  let working = false;
  let stopped = false;

  const fits = (data: unknown, absent: boolean) =>
    patterns.length === 0 || patterns.some((pattern) => matches(pattern, data, absent));

  async function workOff(): Promise<void> {
    if (working) return;
    working = true;
    while (backlog.length > 0 && !stopped) await process(backlog.splice(0, batchSize), 0);
    working = false;
  }

  async function process(batch: readonly StreamRecord[], tried: number): Promise<void> {
    let records = batch;
    for (let attempt = tried; records.length > 0 && !stopped; ) {
      const first = records[0]?.dynamodb.ApproximateCreationDateTime ?? 0;
      if (maxAgeMs > 0 && first * 1000 + maxAgeMs < Date.now())
        return giveUp(records, 'RecordAgeExceeded', attempt);
      const failedFrom = await invoke(records);
      if (failedFrom === undefined) return;
      const halve = failedFrom === 0 && bisect && records.length > 1;
      records = records.slice(failedFrom);
      if (halve) {
        // Splitting does not count as a retry.
        const half = Math.ceil(records.length / 2);
        await process(records.slice(0, half), attempt);
        records = records.slice(half);
        continue;
      }
      attempt += 1;
      if (retries >= 0 && attempt > retries) return giveUp(records, 'RetryAttemptsExhausted', attempt);
      await sleep(RETRY_AFTER_MS);
    }
  }

  /** Returns the position of the first failed record, or `undefined`. */
  async function invoke(records: readonly StreamRecord[]): Promise<number | undefined> {
    try {
      const ids = records.map(({ dynamodb }) => dynamodb.SequenceNumber);
      const failed = getFailed(mapping, await fn.invoke({ Records: records }), ids);
      if (!failed) return 0;
      return failed.size === 0 ? undefined : ids.findIndex((id) => failed.has(id));
    } catch {
      return 0;
    }
  }

  async function giveUp(
    records: readonly StreamRecord[],
    condition: string,
    invocations: number,
  ): Promise<void> {
    if (destination === undefined || stopped) return;
    const queue = template.byArn(destination);
    await aws.call(caller, 'sqs', 'SendMessage', {
      QueueUrl: template.ref(queue.id),
      MessageBody: JSON.stringify({
        requestContext: {
          requestId: randomUUID(),
          functionArn: fn.arn,
          condition,
          approximateInvokeCount: invocations,
        },
        responseContext: { statusCode: 200, executedVersion: '$LATEST', functionError: 'Unhandled' },
        version: '1.0',
        timestamp: new Date().toISOString(),
        DDBStreamBatchInfo: {
          shardId: 'shardId-0',
          startSequenceNumber: records[0]?.dynamodb.SequenceNumber,
          endSequenceNumber: records.at(-1)?.dynamodb.SequenceNumber,
          batchSize: records.length,
          streamArn,
        },
      }),
    });
  }

  return {
    wants: (name, keys) => name === TableName && fits({ dynamodb: { Keys: keys, NewImage: keys } }, true),
    push(change) {
      sequence += 1;
      const record = {
        eventID: randomUUID(),
        eventName: change.newImage === undefined ? 'REMOVE' : 'MODIFY',
        eventVersion: '1.1',
        eventSource: 'aws:dynamodb',
        awsRegion: template.region,
        dynamodb: {
          ApproximateCreationDateTime: Date.now() / 1000,
          Keys: change.keys,
          ...(change.newImage === undefined ? {} : { NewImage: change.newImage }),
          SequenceNumber: String(sequence).padStart(21, '1'),
          SizeBytes: JSON.stringify(change).length,
          StreamViewType: view,
        },
        eventSourceARN: streamArn,
      };
      if (!fits(record, false)) return;
      backlog.push(record);
      void workOff();
    },
    busy: async () => working || backlog.length > 0,
    nudge: () => {},
    stop() {
      stopped = true;
    },
  };
}

type Pattern = { readonly [name: string]: Pattern | readonly unknown[] };

/** Returns whether data matches a pattern of an event filter. `absent`: the result for missing values. */
function matches(pattern: Pattern, data: unknown, absent: boolean): boolean {
  return Object.entries(pattern).every(([name, wanted]) => {
    const value = (data as Record<string, unknown> | undefined)?.[name];
    if (Array.isArray(wanted)) {
      if (value === undefined && absent) return true;
      return wanted.some((rule) => fitsRule(rule, value));
    }
    return matches(wanted as Pattern, value, absent);
  });
}

function fitsRule(rule: unknown, value: unknown): boolean {
  if (typeof rule !== 'object' || rule === null) return value === rule;
  const [name, argument] = Object.entries(rule)[0] ?? [];
  switch (name) {
    case 'exists':
      return (value !== undefined) === argument;
    case 'prefix':
      return typeof value === 'string' && value.startsWith(String(argument));
    case 'suffix':
      return typeof value === 'string' && value.endsWith(String(argument));
    case 'anything-but':
      return value !== undefined && !(Array.isArray(argument) ? argument : [argument]).includes(value);
    default:
      throw new Error(`An event filter uses ${name}, which is not known here.`);
  }
}
