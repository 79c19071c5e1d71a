/** Endpoints and deliveries as returned by the API, without secrets. Their records have the same fields, with times as epoch ms. */
import * as z from 'zod';
import { count, type SchemaOutput, textOrNull, timestamp, timestampOrNull } from '../representation.ts';
import { MAX_LANES } from './lanes.ts';

const eventId = z.string().describe('Id of the event.');
const account = z.string().describe('Id of the account. `_cell` for the log of the region.');
const sequence = count.describe('Sequence number of the event in the log.');
const jobNumber = z.int().nullable().describe('Number of the job. `null`: not about a job.');
const accounts = z.array(z.string());
const httpStatus = z
  .int()
  .nullable()
  .describe('HTTP status of the response. `null`: no response, or not a webhook.');
const truncatedAccounts = accounts.describe(
  'Ids of accounts of which some requested events may have expired. Their deliveries begin with the oldest stored event.',
);

const filter = {
  types: z.array(z.string()).describe('Only events of these types. A trailing `*` matches any suffix.'),
  orderGroups: z
    .array(z.string())
    .describe('Only events of jobs in these order groups, and the `order_group.*` events of these groups.'),
  origins: z.array(z.string()).describe('Only events of jobs with these origins (`originCode`).'),
  jobFields: z
    .record(z.string(), z.union([z.string(), z.number(), z.boolean(), z.null()]))
    .describe('Only events of jobs with these field values.'),
};

/** An endpoint. */
export const Endpoint = z
  .object({
    id: z.string().describe('Id of the endpoint, unique in its region.'),
    region: z.string().describe('Region whose events are delivered.'),
    kind: z
      .enum(['webhook', 'sqs', 'sns', 'notifications'])
      .describe(
        'Kind of endpoint: `webhook`, or `sqs` (an SQS queue). Built in: `sns` (an SNS topic, or the EventBridge bus with the id `event-bus`) and `notifications` (customer notifications).',
      ),
    url: z.string().describe('URL of a webhook, or ARN of a queue, topic or bus. For notifications: `-`.'),
    accounts: accounts.describe('Ids of the accounts. Empty: all, including future ones.'),
    types: filter.types.describe('Event types. A trailing `*` matches any suffix. Empty: all.'),
    orderGroups: filter.orderGroups.describe('Names of order groups. Empty: all.'),
    origins: filter.origins.describe('Origins of jobs (`originCode`). Empty: all.'),
    jobFields: filter.jobFields.describe('Only events of jobs with these field values. Empty: all.'),
    headers: z.array(z.string()).describe('Names of the custom headers.'),
    concurrency: z
      .int()
      .nullable()
      .describe(`Maximum number of jobs whose events are delivered in parallel. \`null\`: ${MAX_LANES}.`),
    ratePerSecond: z
      .number()
      .nullable()
      .describe('Maximum number of requests per second. `null`: unlimited.'),
    description: textOrNull.describe('Description, as set through the API.'),
    state: z
      .enum(['active', 'paused', 'failing', 'disabled'])
      .describe(
        'State of deliveries. `failing`: nothing has been delivered since the last failure, and events wait.',
      ),
    paused: z.boolean(),
    managed: z
      .boolean()
      .describe('`true`: managed through the API. `false`: built in or defined in the configuration file.'),
    revision: count.describe('Revision number. Each change increments it.'),
    createdAt: timestampOrNull.describe('Creation time. `null`: not created through the API.'),
    changedAt: timestampOrNull.describe('Time of the last change.'),
  })
  .meta({ id: 'Endpoint' });

export type Endpoint = SchemaOutput<typeof Endpoint>;

/** Health of an endpoint. */
export const EndpointHealth = z
  .object({
    state: z
      .enum(['active', 'paused', 'failing', 'disabled'])
      .describe(
        'State of deliveries. `failing`: nothing has been delivered since the last failure, and events wait. `disabled`: nothing is sent until the endpoint is enabled.',
      ),
    waitUntil: timestampOrNull.describe('Time of the next attempt after a failure.'),
    problem: textOrNull.describe('Error message of the current problem.'),
    failingSince: timestampOrNull.describe('Start of the current series of failures.'),
    disabledAt: timestampOrNull.describe('Time at which the endpoint was disabled.'),
    lastDeliveredAt: timestampOrNull.describe('Time of the last successful delivery.'),
    lastFailedAt: timestampOrNull.describe('Time of the last failed attempt.'),
    lost: count.describe('Number of events that expired before their delivery.'),
    parked: z
      .object({
        count: count.describe('Number of parked events, at most 1,100.'),
        oldestAt: timestampOrNull.describe('Time at which the oldest parked event was parked.'),
      })
      .describe('Parked events.'),
    dead: count.describe('Number of dead events, at most 100.'),
    backlog: z
      .object({
        events: count.describe('Number of unprocessed events.'),
        oldestAt: timestampOrNull.describe('Time of the oldest unprocessed event.'),
        accounts: z
          .array(
            z.object({
              account,
              events: count.describe('Number of unprocessed events of the account.'),
            }),
          )
          .describe('Accounts with the largest backlogs.'),
        complete: z.boolean().describe('Whether the events of all accounts were counted.'),
      })
      .describe('Unprocessed events, including those that filters exclude.'),
    statistics: z
      .object({
        attempts: count.describe('Number of attempts in the last 24 hours, at most 500.'),
        delivered: count.describe('Number of successful attempts.'),
        successRate: z.number().nullable().describe('Share of successful attempts. `null`: no attempts.'),
        p50Ms: z.number().nullable().describe('Median latency of successful attempts, in milliseconds.'),
        p95Ms: z.number().nullable().describe('95th percentile of the latency, in milliseconds.'),
        lastError: z
          .object({ at: timestamp, reason: z.string().describe('Error message.') })
          .nullable()
          .describe('Last failed attempt.'),
      })
      .describe('Recent delivery statistics, without pings and resends.'),
  })
  .meta({ id: 'EndpointHealth' });

export type EndpointHealth = SchemaOutput<typeof EndpointHealth>;

const figures = {
  attempts: count.describe('Number of attempts.'),
  delivered: count.describe('Number of successful attempts.'),
  failed: count.describe('Number of failed attempts.'),
  successRate: z.number().nullable().describe('Share of successful attempts. `null`: no attempts.'),
  p50Ms: z.number().nullable().describe('Estimated median latency of successful attempts, in milliseconds.'),
  p95Ms: z.number().nullable().describe('Estimated 95th percentile of the latency, in milliseconds.'),
};

/** Delivery statistics of an endpoint for a window. */
export const DeliveryStatistics = z
  .object({
    window: z.enum(['1h', '24h', '7d']).describe('Length of the window.'),
    from: timestamp,
    to: timestamp.describe('End of the window: the time of the response.'),
    stepSeconds: z.int().describe('Period of a point, in seconds.'),
    total: z.object({
      ...figures,
      failures: z
        .array(
          z.object({
            status: httpStatus,
            count: count.describe('Number of failed attempts.'),
          }),
        )
        .describe('Failed attempts by HTTP status, largest number first.'),
    }),
    points: z
      .array(z.object({ at: timestamp.describe('Start of the period.'), ...figures }))
      .describe('Statistics over time, in ascending order.'),
  })
  .meta({
    id: 'DeliveryStatistics',
    description: 'Delivery statistics of an endpoint, without pings and resends.',
  });
export type DeliveryStatistics = SchemaOutput<typeof DeliveryStatistics>;

/** An attempt to deliver an event. */
export const Delivery = z
  .object({
    region: z.string(),
    endpoint: z.string().describe('Id of the endpoint.'),
    event: eventId,
    type: z.string(),
    account,
    sequence,
    jobNumber,
    at: timestamp,
    latencyMs: z.number().describe('Duration of the attempt, in milliseconds.'),
    outcome: z
      .enum(['delivered', 'rejected', 'retry'])
      .describe('`rejected`: the endpoint rejected this event. `retry`: the endpoint was unavailable.'),
    reason: textOrNull.describe('Error message. `null`: delivered.'),
    status: httpStatus,
    headers: z
      .record(z.string(), z.string())
      .describe('Selected headers of an unsuccessful response, by lower-case name.'),
    excerpt: textOrNull.describe('Beginning of the response body, up to 1 kB.'),
    cause: z.enum(['live', 'parked', 'replay', 'resend', 'ping']).describe('Cause of the attempt.'),
    replay: textOrNull.describe('Id of the replay. `null`: not part of a replay.'),
  })
  .meta({ id: 'Delivery', description: 'An attempt to deliver an event. The record is kept for 30 days.' });
export type Delivery = SchemaOutput<typeof Delivery>;

const commonFields = {
  event: eventId,
  type: z.string(),
  account,
  sequence,
  jobNumber,
  parkedAt: timestamp.describe('Time at which the event was parked.'),
  attempts: count.describe('Number of rejected attempts.'),
  reason: textOrNull.describe('Error message of the last rejection.'),
  status: z
    .int()
    .nullable()
    .describe('HTTP status of the last rejection. `null`: no response, not a webhook, or not sent.'),
};

/** A parked event. */
export const ParkedEvent = z
  .object({
    ...commonFields,
    attempts: count.describe('Number of rejected attempts. 0: waits for an earlier event of its `lane`.'),
    lane: z.string().describe('Group of events that are delivered in order, such as those of one job.'),
    retryAt: timestampOrNull.describe(
      'Time of the next attempt. `null`: waits for an earlier event of its `lane`.',
    ),
  })
  .meta({
    id: 'ParkedEvent',
    description:
      'An event that the endpoint rejected, that alone caused failures of the endpoint, or that waits for such an event.',
  });

/** A dead-lettered event: rejected on the last attempt. */
export const DeadEvent = z
  .object({
    ...commonFields,
    status: commonFields.status.describe(
      'HTTP status of the last rejection. `null`: no response, or not a webhook.',
    ),
    lane: ParkedEvent.shape.lane,
    diedAt: timestamp.describe('Time of the last attempt.'),
  })
  .meta({
    id: 'DeadEvent',
    description:
      'An event that the endpoint rejected on every attempt. It is listed for as long as events are kept, and for at least 90 days. A redelivery or a resend that delivers it removes it from the list.',
  });

/** A replay. */
export const Replay = z
  .object({
    id: z.string().describe('Id of the replay, unique for the endpoint.'),
    state: z
      .enum(['starting', 'running', 'done', 'cancelled'])
      .describe(
        '`starting`: the creation was interrupted. To complete it, repeat the request with the same `id` or `Idempotency-Key`.',
      ),
    accounts: accounts.describe('Ids of the accounts whose events are replayed.'),
    filter: z.object(filter).partial().describe('Filter, in addition to that of the endpoint.'),
    dead: z
      .object({
        accounts: accounts.describe('Ids of the accounts. Empty: all.'),
        types: z.array(z.string()).describe('Event types. Empty: all.'),
        jobNumbers: z.array(z.int()).describe('Numbers of the jobs. Empty: all.'),
        statuses: z.array(z.int()).describe('HTTP statuses of the last rejection. Empty: all.'),
        from: timestampOrNull.describe('Only events parked at this time or later. `null`: no limit.'),
        to: timestampOrNull.describe('Only events parked before this time. `null`: no limit.'),
      })
      .nullable()
      .describe('Filter of dead events. `null`: a range of the logs is replayed.'),
    total: count.describe(
      'Number of events in the range, including those that filters exclude, or number of dead events.',
    ),
    done: count,
    delivered: count,
    failed: count.describe('Number of rejected events. They are not parked.'),
    skipped: count.describe('Number of events that filters exclude, or of dead events that have expired.'),
    truncatedAccounts,
    startedAt: timestamp,
    finishedAt: timestampOrNull.describe('Time of completion or cancellation. `null`: in progress.'),
  })
  .meta({
    id: 'Replay',
    description: 'Events that are sent to an endpoint again.',
  });

export type Replay = SchemaOutput<typeof Replay>;

/** Parked and dead events that are sent again, or would be. */
export const RedeliveryReport = z
  .object({
    dryRun: z.boolean().describe('`true`: nothing was changed.'),
    parked: count,
    dead: count,
    complete: z.boolean().describe('`false`: only the first 10,000 dead events were examined.'),
    events: z
      .array(
        z.object({
          ...commonFields,
          state: z.enum(['parked', 'dead']),
        }),
      )
      .describe('The first 20 selected events: parked events, then dead events.'),
    replay: Replay.nullable().describe('Replay of the dead events. `null`: none.'),
  })
  .meta({ id: 'RedeliveryReport' });
export type RedeliveryReport = SchemaOutput<typeof RedeliveryReport>;

/** Result of an immediate attempt to send an event. */
export const AttemptReport = z
  .object({
    outcome: z
      .enum(['delivered', 'rejected', 'retry'])
      .describe(
        '`rejected`: the endpoint rejected this event. `retry`: the endpoint was unavailable or did not respond.',
      ),
    status: httpStatus,
    latencyMs: z.number().describe('Duration of the attempt, in milliseconds.'),
    message: z.string().describe('Human-readable result.'),
    logged: z.boolean().describe('Whether the attempt is recorded in the delivery log.'),
  })
  .meta({ id: 'AttemptReport' });
export type AttemptReport = SchemaOutput<typeof AttemptReport>;

/** A new endpoint with its secret. */
export const CreatedEndpoint = z
  .object({
    endpoint: Endpoint,
    secret: textOrNull.describe('Signing secret. It is returned only once. `null`: the endpoint is a queue.'),
    truncatedAccounts,
  })
  .meta({ id: 'CreatedEndpoint' });
