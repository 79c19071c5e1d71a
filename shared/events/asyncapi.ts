/**
 * The AsyncAPI 3.0 document, generated from the catalogue: every event type as a message of each transport (webhooks, SNS topic,
 * live streams), with the headers that the transport adds.
 */
import { VERSION } from '../version.ts';
import { type EventType, eventTypes } from './catalogue.ts';
import type { JobEvent } from './event.ts';
import { getExample } from './examples.ts';
import { isAboutRegion, sharedSchemas, textSchema as text, toEnvelopeSchema } from './schemas.ts';

type Json = { readonly [name: string]: unknown };

/** A transport of events. */
interface Way {
  /** Prefix of its messages in the components. */
  readonly name: 'webhook' | 'topic' | 'stream';
  readonly contentType: string;
  /** Schema of its headers; `buildHeaders` returns those of an example. */
  readonly headers: Json;
  buildHeaders(event: JobEvent): Json;
}

const ENVELOPE = 'application/cloudevents+json';

/** Headers of webhooks, as a schema. */
export const webhookHeaders = (): Json => WAYS[0]?.headers ?? {};

const WAYS: readonly Way[] = [
  {
    name: 'webhook',
    contentType: `${ENVELOPE}; charset=utf-8`,
    headers: {
      type: 'object',
      description: 'Headers of Standard Webhooks 1.0, and `webhook-replay`.',
      properties: {
        'webhook-id': text('Id of the event, the same for every attempt.'),
        'webhook-timestamp': text('Time of the attempt, in seconds since 1970-01-01 UTC.', {
          pattern: '^\\d+$',
        }),
        'webhook-signature': text(
          '`v1,` and the base64 HMAC-SHA256 of `<id>.<timestamp>.<body>`. Several signatures are separated by spaces.',
          { pattern: '^v1,\\S+( v1,\\S+)*$' },
        ),
        'webhook-replay': text('`true`: replayed or resent. Not covered by the signature.', {
          const: 'true',
        }),
      },
      required: ['webhook-id', 'webhook-timestamp', 'webhook-signature'],
    },
    buildHeaders: (event) => ({
      'webhook-id': event.id,
      'webhook-timestamp': String(Math.floor(Date.parse(event.time) / 1000) + 1),
      // The shape of a signature; of no secret.
      'webhook-signature': `v1,${'A'.repeat(43)}=`,
    }),
  },
  {
    name: 'topic',
    contentType: ENVELOPE,
    headers: {
      type: 'object',
      description:
        'Message attributes for subscription filters, of type `String`. Blank values, and values longer than 1,024 characters, are omitted.',
      properties: {
        type: text('Type of the event.'),
        accountId: text('Id of the account. Absent in events of a region.'),
        region: text('Id of the region.'),
        jobNumber: text('Number of the job. Absent if not about a job.'),
        orderGroup: text('Order group. Absent if there is none.'),
        originCode: text('Origin of the job. Absent if unknown.'),
        subject: text(
          'Subject of the event, for example `jobs/4711` or `order-groups/G%201`. Absent in events about an account or a region.',
        ),
        reference: text('`true`: a reference to an event that is too large for SNS.', { const: 'true' }),
        replay: text('`true`: the event is part of a replay.', {
          const: 'true',
        }),
      },
      required: ['type', 'region'],
    },
    buildHeaders(event) {
      const { account, region, job, orderGroup } = event.data as {
        account?: string;
        region: string;
        job?: { jobNumber: number; orderGroup: string | null; originCode: string | null };
        orderGroup?: string;
      };
      const attributes = {
        type: event.type,
        // Events in the log of a region do not belong to an account, even if they name one.
        accountId: event.source.includes('/accounts/') ? account : undefined,
        region,
        jobNumber: job && String(job.jobNumber),
        orderGroup: orderGroup ?? job?.orderGroup ?? undefined,
        originCode: job?.originCode ?? undefined,
        subject: event.subject,
      };
      return Object.fromEntries(Object.entries(attributes).filter(([, value]) => value !== undefined));
    },
  },
  {
    name: 'stream',
    contentType: 'application/json',
    headers: {
      type: 'object',
      description: 'Fields of the server-sent event other than `data`.',
      properties: {
        id: text('Cursor of the event, for `Last-Event-ID` or `after`.'),
        event: text('Type of the event, or `cursor`.'),
      },
      required: ['id', 'event'],
    },
    buildHeaders(event) {
      return { id: event.id.slice(event.id.indexOf('.') + 1), event: event.type };
    },
  },
];

/** The document. The same each time, but a new object. */
export function asyncApiDocument(): object {
  const server = (name: string) => ({ $ref: `#/servers/${name}` });
  const listMessages = (way: Way['name'], types: readonly string[]) =>
    Object.fromEntries(types.map((type) => [type, { $ref: `#/components/messages/${way}.${type}` }]));
  const logged = eventTypes.filter((type) => type !== 'jobwire.ping');
  const regionTypes = logged.filter(isAboutRegion);
  const accountTypes = logged.filter((type) => !isAboutRegion(type));
  const stream = (address: string, description: string, types: readonly string[], parameters?: Json) => ({
    address,
    description,
    servers: [server('api')],
    ...(parameters && { parameters }),
    messages: { ...listMessages('stream', types), cursor: { $ref: '#/components/messages/stream.cursor' } },
  });
  const sends = (channel: string, title: string, summary: string, rest: Json = {}) => ({
    ...{ action: 'send', channel: { $ref: `#/channels/${channel}` }, title, summary },
    ...rest,
  });
  const follows = (channel: string, title: string, summary: string) =>
    sends(channel, title, summary, {
      description:
        'The first message has the type `cursor`. If there are no events, a comment is sent every 15 seconds. The server closes a stream after some minutes. Connect again with the last `id`.',
      bindings: { http: { method: 'GET', query: STREAM_QUERY, bindingVersion: '0.3.0' } },
    });
  return {
    asyncapi: '3.0.0',
    id: 'urn:jobwire:events',
    info: {
      title: 'Jobwire events',
      version: VERSION,
      description:
        'Events about print jobs as CloudEvents 1.0, ordered and without gaps. New types and fields can be added at any time. Ignore those that your program does not know. An event can be delivered more than once: deduplicate events by `id`. A new epoch begins when a log is restored from a backup. For each `subject`, keep the state with the latest epoch and the highest `sequence`. Texts written by customers are untrusted: escape them for display.',
      tags: TAGS.map(({ name }) => ({ $ref: `#/components/tags/${name}` })),
    },
    defaultContentType: ENVELOPE,
    servers: {
      receiver: {
        host: '{host}',
        protocol: 'https',
        description: 'Server of the receiver.',
        variables: { host: { default: 'erp.example', description: 'Host of the endpoint URL.' } },
        security: [{ $ref: '#/components/securitySchemes/signature' }],
      },
      sns: {
        host: 'sns.{awsRegion}.amazonaws.com',
        protocol: 'sns',
        description: 'Amazon SNS, in the AWS region of Jobwire.',
        variables: {
          awsRegion: { default: 'us-east-1', description: 'AWS region where Jobwire is deployed.' },
        },
        security: [{ $ref: '#/components/securitySchemes/aws' }],
      },
      api: {
        host: '{host}',
        protocol: 'https',
        description: 'The HTTP API.',
        variables: {
          host: { default: 'us.jobwire.example', description: 'Host of the Jobwire API.' },
        },
        security: [{ $ref: '#/components/securitySchemes/key' }],
      },
    },
    channels: {
      webhook: {
        description:
          'URL of an endpoint. Each event is one POST request. A 2xx response within 15 seconds acknowledges it.',
        servers: [server('receiver')],
        messages: listMessages('webhook', eventTypes),
      },
      topic: {
        address: 'jobwire-{stage}-{region}-events.fifo',
        description:
          'FIFO topic for the events of a region. The message group is `<account>/<jobNumber>` for events about a job, so they are delivered in order, and `<account>/account` for other events. The deduplication id is the id of the event.',
        servers: [server('sns')],
        parameters: {
          stage: { description: 'Stage of the deployment, for example `dev`.', examples: ['prod'] },
          region: { description: 'Id of the region.', examples: ['us'] },
        },
        messages: {
          ...listMessages('topic', logged),
          reference: { $ref: '#/components/messages/topic.reference' },
        },
      },
      accountStream: stream(
        '/v1/accounts/{id}/events/stream',
        'Log of an account as server-sent events.',
        accountTypes,
        { id: { description: 'Id of the account.', examples: ['acme'] } },
      ),
      regionStream: stream(
        '/v1/regions/{id}/events/stream',
        'Log of a region as server-sent events: outages and the state of endpoints.',
        regionTypes,
        { id: { description: 'Id of the region.', examples: ['us'] } },
      ),
      stream: stream(
        '/v1/events/stream',
        'Logs of all accounts and regions that the API key can access, as one stream of server-sent events. The `id` of a message is valid for this stream only.',
        logged,
      ),
    },
    operations: {
      deliverWebhook: sends('webhook', 'Webhook', 'Sends each event to all endpoints subscribed to it.', {
        bindings: { http: { method: 'POST', bindingVersion: '0.3.0' } },
      }),
      publishEvent: sends('topic', 'SNS', 'Publishes each event to the SNS topic of its region.'),
      followAccount: follows('accountStream', 'Stream of an account', 'Streams the events of an account.'),
      followRegion: follows('regionStream', 'Stream of a region', 'Streams the events of a region.'),
      followAll: follows('stream', 'Stream of all events', 'Streams the events of all accounts and regions.'),
    },
    components: {
      tags: Object.fromEntries(TAGS.map((tag) => [tag.name, tag])),
      securitySchemes: {
        key: { type: 'http', scheme: 'bearer', description: 'API key with at least the role `read`.' },
        signature: {
          type: 'symmetricEncryption',
          description:
            'Standard Webhooks 1.0: verify `webhook-signature` with the raw body and the secret of the endpoint.',
        },
        aws: {
          type: 'plain',
          description: 'IAM permissions. The policy of the topic allows its own AWS account to subscribe.',
        },
      },
      messages: Object.fromEntries([
        ...WAYS.flatMap((way) =>
          (way.name === 'webhook' ? eventTypes : logged).map((type) => [
            `${way.name}.${type}`,
            toMessage(way, type),
          ]),
        ),
        ['topic.reference', referenceMessage()],
        ['stream.cursor', cursorMessage()],
      ]),
      messageTraits: Object.fromEntries(
        WAYS.map(({ name, contentType, headers }) => [name, { contentType, headers }]),
      ),
      schemas: {
        ...sharedSchemas(),
        ...Object.fromEntries(eventTypes.map((type) => [type, toEnvelopeSchema(type)])),
        reference: REFERENCE,
        cursor: CURSOR,
      },
    },
  };
}

/** Tags by what an event is about: the beginning of its type. */
const TAGS = [
  { name: 'job', description: 'A job of the ordering API.' },
  {
    name: 'order_group',
    description: 'An order group: the jobs that were ordered together in one checkout.',
  },
  { name: 'account', description: 'An account of the ordering API and its polling state.' },
  { name: 'status', description: 'The status names of the ordering API.' },
  { name: 'upstream', description: 'The ordering API in a region.' },
  { name: 'endpoint', description: 'An endpoint and its deliveries.' },
  { name: 'jobwire', description: 'Tests of endpoints.' },
];

const STREAM_QUERY = {
  type: 'object',
  properties: {
    after: text('Return events after this cursor. Default: the end of the log.'),
    types: text(
      'Only events of these types, comma-separated. A trailing `*` matches any suffix. Default: all types.',
    ),
  },
  additionalProperties: false,
};

function toMessage(way: Way, type: EventType): Json {
  const example = getExample(type);
  if (!example) throw new Error(`${type} has no example.`);
  return {
    name: type,
    title: type,
    tags: [{ $ref: `#/components/tags/${type.slice(0, type.indexOf('.'))}` }],
    traits: [{ $ref: `#/components/messageTraits/${way.name}` }],
    payload: { $ref: `#/components/schemas/${type}` },
    // The payload is the same on each way: it is shown once.
    examples: [
      {
        name: way.name,
        headers: way.buildHeaders(example),
        ...(way.name === 'webhook' && { payload: example }),
      },
    ],
  };
}

// Schemas

const REFERENCE = {
  type: 'object',
  title: 'Reference',
  description:
    'Reference to an event that is too large for SNS. The fields other than `jobwire` and `feed` are those of the event.',
  properties: {
    jobwire: { const: 'reference' },
    ...{ id: { type: 'string' }, type: { type: 'string' } },
    ...{ source: { type: 'string' }, subject: { type: 'string' } },
    ...{
      time: { type: 'string', format: 'date-time' },
      sequence: { type: 'string' },
    },
    feed: text('URL of a page of the event log that contains only this event. Requires an API key.', {
      format: 'uri',
    }),
  },
  required: ['jobwire', 'id', 'type', 'source', 'time', 'sequence', 'feed'],
};

const CURSOR = {
  type: 'object',
  title: 'cursor',
  description: 'Current cursor of a stream.',
  properties: {
    cursor: text('The cursor, as in `id`. All events up to it were sent, or `types` excludes them.'),
  },
  required: ['cursor'],
};

function cursorMessage(): Json {
  const cursor = 'mf2k8t9x3a.1044';
  return {
    name: 'cursor',
    title: 'Cursor',
    summary:
      'The current cursor: the first message of each stream, also sent after events that `types` excludes.',
    traits: [{ $ref: '#/components/messageTraits/stream' }],
    payload: { $ref: '#/components/schemas/cursor' },
    examples: [{ name: 'stream', headers: { id: cursor, event: 'cursor' }, payload: { cursor } }],
  };
}

function referenceMessage(): Json {
  const { id, type, source, subject, time, sequence } = getExample('job.updated') ?? {};
  const after = id?.slice(id.indexOf('.') + 1).replace(/\d+$/, (number) => String(Number(number) - 1));
  const feed = `https://us.jobwire.example/v1/accounts/acme/events?after=${after}&limit=1`;
  return {
    name: 'reference',
    title: 'Reference to an event',
    summary:
      'If an event exceeds the limit of SNS (256 KB), a reference is published, with the same attributes and `reference` = `true`.',
    traits: [{ $ref: '#/components/messageTraits/topic' }],
    payload: { $ref: '#/components/schemas/reference' },
    examples: [
      {
        name: 'topic',
        headers: { type, accountId: 'acme', region: 'us', jobNumber: '4711', subject, reference: 'true' },
        payload: { jobwire: 'reference', id, type, source, subject, time, sequence, feed },
      },
    ],
  };
}
