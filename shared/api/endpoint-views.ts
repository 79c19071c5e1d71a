/** Endpoints and their deliveries as they are shown: instants as texts, what is not known as null, and no secrets. */
import * as z from 'zod';
import type { DeliveryEntry } from '../sinks/delivery-log.ts';
import type { EndpointHealth as Health } from '../sinks/endpoint-health.ts';
import type { Endpoint as Record } from '../sinks/endpoints.ts';
import type { DeadEvent as Dead, ParkedEvent as Parked } from '../sinks/parking.ts';
import type { Replay as Running } from '../sinks/replays.ts';
import { instant, instantText } from './parameters.ts';

const count = z.int().min(0);
const eventId = z.string().describe('The id of the event: `<account>.<epoch>.<sequence>`.');
const account = z.string().describe('The id of the account; `_cell` for the region’s own log.');
const sequence = count.describe('The number of the event in the log of the account.');
const jobNumber = z.int().nullable().describe('The job it is about, if it is about one.');
const accounts = z.array(z.string());
const late = accounts.describe(
  'Accounts of which some events that were asked for may no longer be kept: it begins later there.',
);

const filter = {
  types: z
    .array(z.string())
    .describe('Only events of these types; a final `*` stands for the rest of a name.'),
  orderGroups: z.array(z.string()).describe('Only events of these order groups.'),
  origins: z.array(z.string()).describe('Only events of jobs of these origins.'),
  jobFields: z
    .record(z.string(), z.union([z.string(), z.number(), z.boolean(), z.null()]))
    .describe('Only events whose job has these values.'),
};

/** An endpoint. */
export const Endpoint = z
  .object({
    id: z.string().describe('Its id; unique in its region.'),
    region: z.string().describe('The region whose events it gets.'),
    kind: z
      .enum(['webhook', 'sns', 'notifications'])
      .describe('`sns`: a topic that is built in; `notifications`: what tells customers, built in as well.'),
    url: z.string().describe('Where it is; the ARN of a topic; `-` for notifications.'),
    accounts: accounts.describe('Accounts it follows; empty: all of the region, also those that come later.'),
    types: filter.types.describe('Types of events it gets, a final `*` standing for the rest; empty: all.'),
    orderGroups: filter.orderGroups.describe('Order groups whose events it gets; empty: all.'),
    origins: filter.origins.describe('Origins of jobs whose events it gets; empty: all.'),
    jobFields: filter.jobFields.describe('Values that a job must have; empty: any.'),
    headers: z.array(z.string()).describe('Names of the headers that each request carries besides ours.'),
    concurrency: z.int().nullable().describe('How many jobs are delivered side by side; null: 16.'),
    ratePerSecond: z.number().nullable().describe('Requests a second at most; null: as many as it takes.'),
    description: z.string().nullable().describe('What it is for, in the words of whoever made it.'),
    state: z
      .enum(['active', 'paused', 'failing', 'disabled'])
      .describe('`failing`: nothing was taken since the last failure. `…/health` says more.'),
    paused: z.boolean().describe('It keeps its places in the logs, and gets nothing.'),
    managed: z
      .boolean()
      .describe('Whether it was made here; what the configuration declares can only be changed there.'),
    revision: count.describe('Counted up with each change; the `ETag` is this.'),
    createdAt: instant.nullable().describe('When it was made; null for what was not made here.'),
    changedAt: instant.nullable().describe('When it was changed last.'),
  })
  .meta({ id: 'Endpoint' });

/** An endpoint as it is shown. */
export function showEndpoint(endpoint: Record): z.input<typeof Endpoint> {
  const { accounts, types = [], orderGroups = [], origins = [], jobFields = {}, headers } = endpoint;
  return {
    ...endpoint,
    accounts: [...accounts],
    ...{
      types: [...types],
      orderGroups: [...orderGroups],
      origins: [...origins],
      jobFields: { ...jobFields },
    },
    headers: [...headers],
    createdAt: instantText(endpoint.createdAt),
    changedAt: instantText(endpoint.changedAt),
  };
}

/** How an endpoint is doing. */
export const EndpointHealth = z
  .object({
    state: z
      .enum(['active', 'paused', 'failing', 'disabled'])
      .describe(
        '`failing`: it took nothing since its last failure. `disabled`: it gets nothing until it is enabled.',
      ),
    waitUntil: instant.nullable().describe('Until when it is left alone after a failure.'),
    problem: z.string().nullable().describe('What is wrong, in a sentence.'),
    failingSince: instant.nullable().describe('When the failures began that go on.'),
    disabledAt: instant.nullable().describe('When it was disabled.'),
    lastDeliveredAt: instant.nullable().describe('When it took something last.'),
    lastFailedAt: instant.nullable().describe('When it failed last.'),
    lost: count.describe('Events that were no longer kept when it came to them.'),
    parked: z
      .object({
        count: count.describe('How many.'),
        oldestAt: instant.nullable().describe('When the oldest of them was set aside.'),
      })
      .describe('Events set aside because it refused them, or one before them of the same job.'),
    dead: count.describe('Events refused to the last attempt, of those that are kept; counted up to 100.'),
    backlog: z
      .object({
        events: count.describe('How many.'),
        oldestAt: instant.nullable().describe('When the oldest of them happened.'),
        accounts: z
          .array(z.object({ account, events: count.describe('How many of them are in its log.') }))
          .describe('Those with the longest backlogs, a few of them.'),
        complete: z.boolean().describe('False: there are too many accounts for all to be counted.'),
      })
      .describe('Events that it has not come to yet, whether it wants them or not.'),
    lately: z
      .object({
        attempts: count.describe('Attempts of the last 24 hours, the last 500 at most.'),
        delivered: count.describe('Those that were taken.'),
        successRate: z.number().nullable().describe('From 0 to 1; null without attempts.'),
        p50Ms: z.number().nullable().describe('Half of what was taken was taken as fast as this.'),
        p95Ms: z.number().nullable().describe('And 95 of 100 as fast as this.'),
        lastError: z
          .object({ at: instant, reason: z.string().describe('In words.') })
          .nullable()
          .describe('The last attempt that failed.'),
      })
      .describe('How deliveries went lately; pings and resends don’t count.'),
  })
  .meta({ id: 'EndpointHealth' });

/** Its health as it is shown. */
export function showHealth(health: Health): z.input<typeof EndpointHealth> {
  const { parked, backlog, lately } = health;
  return {
    ...health,
    waitUntil: instantText(health.waitUntil),
    failingSince: instantText(health.failingSince),
    disabledAt: instantText(health.disabledAt),
    lastDeliveredAt: instantText(health.lastDeliveredAt),
    lastFailedAt: instantText(health.lastFailedAt),
    parked: { ...parked, oldestAt: instantText(parked.oldestAt) },
    backlog: { ...backlog, oldestAt: instantText(backlog.oldestAt), accounts: [...backlog.accounts] },
    lately: {
      attempts: lately.attempts,
      delivered: lately.delivered,
      successRate: lately.successRate ?? null,
      p50Ms: lately.p50Ms ?? null,
      p95Ms: lately.p95Ms ?? null,
      lastError: lately.lastError ? { ...lately.lastError, at: instantText(lately.lastError.at) } : null,
    },
  };
}

/** An attempt to deliver an event. */
export const Delivery = z
  .object({
    region: z.string().describe('The region of the endpoint.'),
    endpoint: z.string().describe('The id of the endpoint, or the name of a built-in sink.'),
    event: eventId,
    type: z.string().describe('The type of the event.'),
    account,
    sequence,
    jobNumber,
    at: instant.describe('When the attempt began.'),
    latencyMs: z.number().describe('How long it took.'),
    outcome: z
      .enum(['delivered', 'rejected', 'retry'])
      .describe('`rejected`: this event was refused. `retry`: the endpoint could take nothing.'),
    reason: z.string().nullable().describe('Why it was not delivered, in words.'),
    status: z.int().nullable().describe('The status of the answer; null when none came.'),
    excerpt: z.string().nullable().describe('How the answer began: 1 kB at most.'),
    cause: z.enum(['live', 'parked', 'replay', 'resend', 'ping']).describe('Why it was sent.'),
    replay: z.string().nullable().describe('The replay it belongs to.'),
  })
  .meta({ id: 'Delivery', description: 'One attempt to deliver one event; kept for 30 days.' });

/** A delivery as it is shown. */
export function showDelivery(entry: DeliveryEntry): z.input<typeof Delivery> {
  const { region, sink, eventId: event, type, account: of, latencyMs, outcome, cause } = entry;
  return {
    ...{ region, endpoint: sink, event, type, account: of, sequence: entry.sequence },
    jobNumber: entry.jobNumber ?? null,
    at: instantText(entry.at),
    ...{ latencyMs, outcome },
    reason: entry.reason ?? null,
    status: entry.status ?? null,
    excerpt: entry.excerpt ?? null,
    cause,
    replay: entry.replay ?? null,
  };
}

const setAside = {
  event: eventId,
  type: z.string().describe('The type of the event.'),
  account,
  sequence,
  jobNumber,
  parkedAt: instant.describe('When it was set aside.'),
  attempts: count.describe('How often it was refused; 0: it only waits behind another one of its job.'),
  reason: z.string().nullable().describe('How it was refused the last time, in words.'),
};

/** An event that is set aside. */
export const ParkedEvent = z
  .object({
    ...setAside,
    lane: z.string().describe('What it is delivered in turn with: the number of a job, say.'),
    retryAt: instant
      .nullable()
      .describe('When it is tried again; null: when it has become the first of its lane.'),
  })
  .meta({ id: 'ParkedEvent', description: 'An event that was refused, or waits behind one that was.' });

/** An event that was refused to the last attempt. */
export const DeadEvent = z
  .object({ ...setAside, lane: ParkedEvent.shape.lane, diedAt: instant.describe('When it was given up.') })
  .meta({ id: 'DeadEvent', description: 'An event that was refused to the last attempt; kept for 90 days.' });

/** An event that is set aside as it is shown. */
export function showParked(parked: Parked): z.input<typeof ParkedEvent> {
  return { ...showSetAside(parked), retryAt: instantText(parked.retryAt) };
}

/** A dead event as it is shown. */
export function showDead(dead: Dead): z.input<typeof DeadEvent> {
  return { ...showSetAside(dead), diedAt: instantText(dead.diedAt) };
}

function showSetAside({ eventId: event, type, account: of, ...rest }: Omit<Parked, 'retryAt'>) {
  const { sequence: number, lane, attempts, reason } = rest;
  return {
    ...{ event, type, account: of, sequence: number, jobNumber: rest.jobNumber ?? null, lane },
    parkedAt: instantText(rest.parkedAt),
    ...{ attempts, reason },
  };
}

/** Events that are sent once more. */
export const Replay = z
  .object({
    id: z.string().describe('Its id; unique for the endpoint.'),
    state: z
      .enum(['starting', 'running', 'done', 'cancelled'])
      .describe('`starting`: cut off before all of it was stored; the next start of a replay finishes it.'),
    accounts: accounts.describe('The accounts whose events it has.'),
    filter: z.object(filter).partial().describe('Which of their events, on top of what the endpoint gets.'),
    total: count.describe('Events in the range, wanted or not.'),
    done: count.describe('Those of them that are done with.'),
    delivered: count.describe('Events that were taken.'),
    failed: count.describe('Events that were refused: they are not set aside.'),
    skipped: count.describe('Events that were not wanted.'),
    late,
    startedAt: instant.describe('When it began.'),
    finishedAt: instant.nullable().describe('When it was done or cancelled.'),
  })
  .meta({ id: 'Replay', description: 'A stretch of the logs that is sent to an endpoint once more.' });

/** A replay as it is shown. */
export function showReplay(replay: Running): z.input<typeof Replay> {
  const { types, orderGroups, origins, jobFields } = replay.filter;
  return {
    ...replay,
    accounts: [...replay.accounts],
    filter: {
      ...(types ? { types: [...types] } : {}),
      ...(orderGroups ? { orderGroups: [...orderGroups] } : {}),
      ...(origins ? { origins: [...origins] } : {}),
      ...(jobFields ? { jobFields: { ...jobFields } } : {}),
    },
    late: [...replay.late],
    startedAt: instantText(replay.startedAt),
    finishedAt: instantText(replay.finishedAt),
  };
}

/** What came of sending one event at once. */
export const AttemptReport = z
  .object({
    outcome: z
      .enum(['delivered', 'rejected', 'retry'])
      .describe('`rejected`: it refused this event. `retry`: it could take nothing, or did not answer.'),
    status: z.int().nullable().describe('The status of the answer; null when none came.'),
    latencyMs: z.number().describe('How long it took.'),
    words: z.string().describe('What came of it, in a sentence.'),
    logged: z.boolean().describe('Whether it stands among the deliveries.'),
  })
  .meta({ id: 'AttemptReport' });

/** A new endpoint with what is shown once. */
export const NewEndpointAnswer = z
  .object({
    endpoint: Endpoint,
    secret: z.string().describe('What its requests are signed with. Shown here and never again.'),
    late,
  })
  .meta({ id: 'NewEndpointAnswer' });
