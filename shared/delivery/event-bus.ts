/**
 * The EventBridge sink: puts events on a bus, with top-level fields for event patterns.
 *
 * EventBridge keeps no order and can deliver an event to a target more than once. The sequence in the event has
 * the order.
 */
import {
  type EventBridgeClient,
  PutEventsCommand,
  type PutEventsRequestEntry,
} from '@aws-sdk/client-eventbridge';
import { createBatchSink, filterable, type Message } from './batches.ts';
import type { SinkPort } from './sink.ts';

/** Value of `source` of all events on the bus. */
const SOURCE = 'jobwire';
/** Size of what EventBridge adds to an entry: keys, id, AWS account, AWS region. Targets get the event with it. */
const WRAPPING_BYTES = 2_048;
/** Size of an entry's time, as EventBridge counts it (bytes). */
const TIME_BYTES = 14;
/** Errors of an entry that concern its content. Others, also unknown ones, are temporary or concern the bus. */
const CONTENT_ERRORS = /^(InvalidArgument|MalformedDetail)/;

/**
 * Creates a sink that puts events on an EventBridge bus, given by its ARN. `detail-type` is the event's type,
 * `time` its time, and `resources` has the URI of its account or region, with its subject. `detail` is an object of the
 * attributes that SNS has, `orderNumber` and `status` of the job, and `event`: the envelope, or for an event that
 * is too large, a reference to it in the feed.
 *
 * @param options.publicUrl - Base URL of the HTTP API, for references.
 */
export function createEventBusSink(
  client: EventBridgeClient,
  busArn: string,
  options: { readonly publicUrl: string },
): SinkPort {
  return createBatchSink({
    ...{ name: 'EventBridge', target: 'event bus', publicUrl: options.publicUrl },
    toEntry: (message) => toEntry(message, busArn),
    measure: measureEntry,
    async send(entries: readonly PutEventsRequestEntry[]) {
      const { Entries = [] } = await client.send(new PutEventsCommand({ Entries: [...entries] }));
      return Entries.map(({ EventId, ErrorCode = '' }) =>
        EventId ? 'accepted' : { code: ErrorCode, senderFault: CONTENT_ERRORS.test(ErrorCode) },
      );
    },
  });
}

function toEntry({ event, envelope, body, values }: Message, busArn: string): PutEventsRequestEntry {
  const { job } = envelope.data as { job?: { orderNumber?: unknown; status?: unknown } };
  const { replay, ...others } = values;
  const fields = {
    ...others,
    ...filterable({ orderNumber: job?.orderNumber, status: job?.status }),
    ...(replay && { replay }),
  };
  return {
    EventBusName: busArn,
    Source: SOURCE,
    DetailType: event.type,
    Time: new Date(envelope.time),
    Resources: [[envelope.source, envelope.subject].filter(Boolean).join('/')],
    // Not parsed and written again: the event stays as it is in the feed.
    Detail: `${JSON.stringify(fields).slice(0, -1)},"event":${body}}`,
  };
}

function measureEntry({ Source, DetailType, Detail, Resources = [] }: PutEventsRequestEntry): number {
  const texts = [Source, DetailType, Detail, ...Resources];
  return texts.reduce((sum, text) => sum + Buffer.byteLength(text ?? ''), TIME_BYTES + WRAPPING_BYTES);
}
