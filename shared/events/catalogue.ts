/**
 * The event catalogue: every type, the condition under which it is emitted, and the schema of its data. JSON Schemas, documents
 * and the receiver types are generated from it. Changes within a type are additive; a breaking change is a new type.
 * One file: it is one list.
 */
import * as z from 'zod';
import { withOpenEnums } from '../json-schema.ts';
import { once } from '../once.ts';
import { textOrNull as text } from '../representation.ts';
import { getSchemaPath } from './types.ts';

const timestamp = z.iso.datetime();
const upstreamDate = z
  .string()
  .describe('Date or timestamp as the ordering API returned it, with or without an offset.');

/** A parcel, identified by its number, or by its link if it has no number. */
const trackingEntry = z.object({
  number: text,
  link: text.describe('Tracking URL. `null`: the carrier provides none yet.'),
});

/** A line of a job, identified by its id. */
const lineSummary = z.object({
  jobLineId: z.int(),
  quantity: z.number().nullable().describe('Quantity of the line. `null`: the quantity is unknown.'),
  comments: text.describe('Comments of the line, at most 256 bytes.'),
});

/** The job after the change. Texts written by customers are untrusted: escape them for display. */
const job = z.object({
  jobNumber: z.int(),
  status: text.describe('Status name in the ordering API.'),
  description: text,
  orderNumber: text.describe('Reference set by the customer. Optional and not unique.'),
  orderGroup: text,
  orderGroupSequence: z.number().nullable(),
  originCode: text,
  dateDue: upstreamDate.nullable(),
  mustDate: z.boolean().nullable(),
  dateOut: upstreamDate.nullable(),
  tracking: z.array(trackingEntry),
});

/** Time of the change: after `since` and not later than `at`. */
const observed = z.object({
  at: timestamp.describe('Time of the first response with the change.'),
  since: timestamp.nullable().describe('Time of the last observation without the change. `null`: none.'),
  view: z
    .enum(['list', 'detail', 'search'])
    .describe('Kind of response that shows the change. `search`: a search, or a reading of the newest jobs.'),
});

const change = <T extends z.ZodType>(value: T) => z.object({ from: value, to: value });

const base = { account: z.string(), region: z.string() };
const jobData = { ...base, job, observed };
const jobDataWithoutChanges = { ...jobData, changes: z.object({}) };
const groupData = {
  ...base,
  observed,
  orderGroup: z.string(),
  jobs: z.array(z.int()).describe('Job numbers of the dispatched jobs, in ascending order.'),
};
const dueTime = {
  dueAt: timestamp.describe('Due time.'),
  zone: z.string().describe('Time zone or offset used for the due date.'),
};
const excludedJobs = z.array(z.int()).describe('Job numbers of the jobs that ended without dispatch.');
/** Events about a region are recorded in the log of the cell and have no account. */
const regionData = { region: z.string(), since: timestamp.describe('Time of the first failure.') };
/** Events about an endpoint are recorded in the log of the cell. */
const endpointData = {
  region: z.string(),
  endpoint: z.string().describe('Id of the endpoint or built-in sink.'),
};
/** A payment, with the names of the ordering API. */
const transaction = z.object({
  id: z.int(),
  gatewayType: text,
  transactionStatus: text.describe('Status name in the ordering API.'),
  createdAt: upstreamDate.nullable(),
  completedAt: upstreamDate.nullable(),
  cardName: text,
  cardNumber: text.describe('Asterisks, followed by the last four digits of the card number.'),
  currencySettlement: text,
  amountSettlement: z.number().nullable(),
  merchantEntityType: text.describe('Kind of object that was paid for, such as `JOB` or `CUSTOMER`.'),
  merchantEntityId: z.int().nullable(),
});

const accountData = { ...base, observed: observed.partial().optional() };

/** Creates the schema of an object with these fields when it is needed: a start needs only the names of the types. */
const fields = <S extends z.core.$ZodLooseShape>(shape: () => S) => once(() => z.object(shape()));

/** All event types with the condition under which each is emitted and the schema of its `data`. */
export const catalogue = {
  'job.created': {
    when: 'A job was created after Jobwire began to observe the account.',
    data: fields(() => ({
      ...jobDataWithoutChanges,
      occurredAt: upstreamDate.nullable().describe('`dateIn` of the job.'),
    })),
  },
  'job.status_changed': {
    when: 'The status of a job changed.',
    data: fields(() => ({ ...jobData, changes: z.object({ status: change(text) }) })),
  },
  'job.line_status_changed': {
    when: 'The status of lines of a job changed. A status of short duration can be missed.',
    data: fields(() => ({
      ...jobDataWithoutChanges,
      lines: z.array(z.object({ jobLineId: z.int(), from: text, to: text })),
    })),
  },
  'job.dispatched': {
    when: 'A job was dispatched (`dateOut` was set). Emitted once per dispatch, even if the date is corrected later.',
    data: fields(() => ({
      ...jobData,
      changes: z.object({ dateOut: change(text) }),
      occurredAt: upstreamDate.describe('`dateOut` of the job.'),
      zone: text.describe(
        "Time zone of the job's location (IANA name), to interpret a `dateOut` without an offset. `null`: not known yet.",
      ),
      late: z
        .boolean()
        .nullable()
        .optional()
        .describe(
          'Whether the job was dispatched after its due time. `null`: unknown, because there is no due date, or a time zone or time of day is missing. Absent in events of older versions of Jobwire.',
        ),
      lateBySeconds: z
        .int()
        .nullable()
        .optional()
        .describe(
          'Time from the due time to the dispatch, in seconds. If the dispatch has no time of day: the shortest possible delay. `null`: not late, or unknown.',
        ),
    })),
  },
  'job.dispatch_revoked': {
    when: 'A dispatch was revoked (`dateOut` was cleared).',
    data: fields(() => ({ ...jobData, changes: z.object({ dateOut: change(text) }) })),
  },
  'job.tracking_added': {
    when: 'Tracking numbers or links of one or more parcels were added.',
    data: fields(() => ({ ...jobDataWithoutChanges, tracking: z.array(trackingEntry) })),
  },
  'job.tracking_updated': {
    when: 'The tracking link of a known parcel was added or changed, or a parcel got its number.',
    data: fields(() => ({
      ...jobDataWithoutChanges,
      tracking: z.array(z.object({ from: trackingEntry, to: trackingEntry })),
    })),
  },
  'job.tracking_removed': {
    when: 'Tracking numbers or links were removed.',
    data: fields(() => ({ ...jobDataWithoutChanges, tracking: z.array(trackingEntry) })),
  },
  'job.due_date_changed': {
    when: 'The due date of a job changed, or whether it is mandatory (`mustDate`).',
    data: fields(() => ({
      ...jobData,
      changes: z.object({ dateDue: change(text), mustDate: change(z.boolean().nullable()) }).partial(),
    })),
  },
  'job.updated': {
    when: 'The description, order number, order group, origin, comments or lines of a job changed, or its dispatch date was corrected.',
    data: fields(() => ({
      ...jobData,
      changes: z
        .object({
          description: change(text),
          orderNumber: change(text),
          orderGroup: change(text),
          orderGroupSequence: change(z.number().nullable()),
          originCode: change(text),
          dateOut: change(text),
          comments: change(text).describe('Comments of the job.'),
          lines: z
            .object({ from: z.array(lineSummary), to: z.array(lineSummary) })
            .describe(
              'Changed lines before (`from`) and after (`to`) the change, at most 200 each. A line only in `from` was removed. A line only in `to` was added.',
            ),
        })
        .partial(),
    })),
  },
  'job.locked': {
    when: 'A job can no longer be edited.',
    data: fields(() => ({ ...jobData, changes: z.object({ canEdit: change(z.boolean().nullable()) }) })),
  },
  'job.unlocked': {
    when: 'A job can be edited again.',
    data: fields(() => ({ ...jobData, changes: z.object({ canEdit: change(z.boolean().nullable()) }) })),
  },
  'job.overdue': {
    when: 'The due time of a job has passed, and Jobwire then observed that the job was not dispatched. Emitted once per due date.',
    data: fields(() => ({ ...jobDataWithoutChanges, ...dueTime })),
  },
  'job.due_soon': {
    when: 'The due time of an undispatched job is near (account setting `events.dueSoonHours`). Emitted once per due date.',
    data: fields(() => ({
      ...jobDataWithoutChanges,
      ...dueTime,
    })),
  },
  'job.stalled': {
    when: 'An undispatched job stayed in one status for too many working days (account settings `events.stalledAfterWorkingDays` and `events.stalledByStatus`). Emitted once per stay in a status.',
    data: fields(() => ({
      ...jobDataWithoutChanges,
      status: z.string().describe('Status name in the ordering API.'),
      inStatusSince: timestamp.describe(
        'Time of the first observation in this status. The job may have entered it earlier.',
      ),
      workingDays: z.int().describe('Number of working days (Monday to Friday) since `inStatusSince`.'),
      zone: z
        .string()
        .describe("Time zone of the working days: that of the job's location, or UTC−12 if unknown."),
    })),
  },
  'job.needs_attention': {
    when: 'A job entered a status that needs attention, or was created in one (account setting `events.attentionStatuses`).',
    data: fields(() => ({
      ...jobDataWithoutChanges,
      status: z.string().describe('Status name in the ordering API.'),
    })),
  },
  'job.production_started': {
    when: 'An open job can no longer be cancelled (`isCancelable` changed to `false`). The event can be delayed, usually by at most a day.',
    data: fields(() => ({
      ...jobData,
      changes: z.object({ isCancelable: change(z.boolean()) }),
    })),
  },
  'job.closed': {
    when: 'A job left the list of active jobs and is among the closed jobs.',
    data: fields(() => ({ ...jobDataWithoutChanges })),
  },
  'job.cancelled': {
    when: 'A job left the list of active jobs, is not among the closed jobs, and is locked and not dispatched. Two checks some minutes apart had the same result. The cancellation is inferred.',
    data: fields(() => ({
      ...jobDataWithoutChanges,
      inferred: z
        .literal(true)
        .describe(
          '`true`: inferred from the absence of the job, because the ordering API does not report cancellations.',
        ),
      jobStatus: text.describe('Status name in the last job detail. `null`: none.'),
    })),
  },
  'job.unavailable': {
    when: 'A job no longer exists: its detail returns 404, and it is neither among the active nor the closed jobs. Two checks some minutes apart had the same result.',
    data: fields(() => ({
      ...jobDataWithoutChanges,
      inferred: z.literal(true),
      jobStatus: text.describe('Always `null`.'),
    })),
  },
  'job.reopened': {
    when: 'A closed, cancelled or unavailable job is in the list of active jobs again.',
    data: fields(() => ({
      ...jobDataWithoutChanges,
      previousOutcome: z.enum(['closed', 'cancelled', 'unavailable']),
    })),
  },
  'job.invoiced': {
    when: 'A job got an invoice number.',
    data: fields(() => ({ ...jobData, changes: z.object({ invoiceNumber: change(text) }) })),
  },
  'order_group.partially_dispatched': {
    when: 'The first job of an order group was dispatched while others are still open. Emitted once per group. If all dispatches of the group are revoked, emitted again at the next one. Not emitted after `order_group.dispatched`.',
    data: fields(() => ({
      ...groupData,
      openJobs: z.array(z.int()).describe('Job numbers of the jobs that are not dispatched yet.'),
      excludedJobs,
      dispatchedCount: z.int().describe('Number of dispatched jobs (`jobs`).'),
      openCount: z.int().describe('Number of open jobs (`openJobs`).'),
    })),
  },
  'order_group.dispatched': {
    when: 'All jobs of an order group are dispatched. Jobs that ended without a dispatch are ignored. If a job is added, a dispatch is revoked or an ignored job is dispatched, the event is emitted again as soon as all jobs are dispatched.',
    data: fields(() => ({
      ...groupData,
      excludedJobs,
      repeated: z
        .boolean()
        .describe(
          '`true`: the event was already emitted for this group, whose jobs or dispatches changed after that.',
        ),
    })),
  },
  'account.baselined': {
    when: 'Jobwire has stored the first complete reading of the list of active jobs. Later changes are emitted as events.',
    data: fields(() => ({ ...accountData, openJobs: z.int() })),
  },
  'account.poll_failing': {
    when: 'Several consecutive polls failed or were incomplete. Until a poll succeeds, not all changes are observed.',
    data: fields(() => ({ ...accountData, consecutiveFailures: z.int(), reason: z.string() })),
  },
  'account.poll_recovered': {
    when: 'A poll succeeded after `account.poll_failing`.',
    data: fields(() => ({ ...accountData, failedPolls: z.int() })),
  },
  'account.credentials_rejected': {
    when: 'The ordering API rejected the credentials of the account.',
    data: fields(() => ({ ...accountData, reason: z.string() })),
  },
  'account.credentials_accepted': {
    when: 'The ordering API accepts the credentials of the account again.',
    data: fields(() => accountData),
  },
  'account.identity_mismatch': {
    when: 'The credentials belong to another account of the ordering API. Polling stops until the operator confirms that the credentials have been corrected, or that the new id (`actualId`) is right.',
    data: fields(() => ({ ...accountData, expectedId: z.int(), actualId: z.int() })),
  },
  'account.quarantined': {
    when: 'So many jobs disappeared from the list within a day that the list may be wrong. Until the quarantine ends, `job.cancelled` and `job.unavailable` are not emitted.',
    data: fields(() => ({
      ...accountData,
      openJobs: z.int().describe('Number of jobs in the list of active jobs.'),
      suspected: z.int().describe('Number of missing jobs that seem to be cancelled or unavailable.'),
      contradictory: z.int().describe('Number of missing jobs with contradictory responses.'),
      reported: z
        .int()
        .describe('Number of `job.cancelled` and `job.unavailable` events in the last 24 hours.'),
    })),
  },
  'account.resumed': {
    when: 'A quarantine ended automatically, or an operator confirmed an account in quarantine or with an identity mismatch.',
    data: fields(() => ({
      ...accountData,
      previousState: z.enum(['quarantined', 'identity_mismatch']),
      by: z.enum(['automatic', 'operator']),
    })),
  },
  'account.payment_completed': {
    when: 'A payment of the account was completed. Emitted only if the account setting `events.payments` is `true`.',
    data: fields(() => ({ ...accountData, transaction })),
  },
  'account.payment_failed': {
    when: 'A payment of the account failed. Emitted only if the account setting `events.payments` is `true`.',
    data: fields(() => ({ ...accountData, transaction })),
  },
  'account.restored': {
    when: 'The log of the account was restored from a backup. All events after the cursor in `after` were lost. Changes that still apply are emitted again, with new ids. Receivers must fetch all jobs again.',
    data: fields(() => ({
      ...accountData,
      after: z.string().describe('Cursor of the last event that was restored.'),
    })),
  },
  'status.discovered': {
    when: 'A status name was observed for the first time in this account.',
    data: fields(() => ({
      ...base,
      observed,
      status: z.string(),
      previousName: z
        .string()
        .optional()
        .describe('Previous name of the status, if the ordering API renamed it.'),
    })),
  },
  'upstream.outage': {
    when: 'The ordering API fails for the whole region. Emitted once, instead of `account.poll_failing` for each account.',
    data: fields(() => ({
      ...regionData,
      failedPolls: z
        .int()
        .describe('Number of failed polls since the first failure. The real number can be higher.'),
      accounts: z.int().describe('Number of affected accounts. The real number can be higher.'),
      reason: z.string().describe('Error message of the last failure.'),
    })),
  },
  'upstream.recovered': {
    when: 'The ordering API responds again after `upstream.outage`.',
    data: fields(() => ({
      ...regionData,
      durationSeconds: z
        .int()
        .describe('Time from the first failure to the first successful response, in seconds.'),
    })),
  },
  'endpoint.disabled': {
    when: 'An endpoint was disabled, because all deliveries failed for days, or because it responded with 410 or with the header `webhook-delivery: disable`. When an operator enables it again, delivery resumes where it stopped.',
    data: fields(() => ({
      ...endpointData,
      reason: z.string().describe('Error message.'),
      failingSince: timestamp
        .nullable()
        .describe('Time of the first failure. `null`: there were no failures.'),
    })),
  },
  'endpoint.recovered': {
    when: 'An endpoint accepts events again after `endpoint.disabled`.',
    data: fields(() => ({ ...endpointData, disabledAt: timestamp })),
  },
  'endpoint.events_lost': {
    when: 'Events expired before they were delivered to an endpoint. Delivery resumes with the oldest event that is still in the log.',
    data: fields(() => ({
      ...endpointData,
      account: z.string().describe('Id of the account whose log contained the events.'),
      first: z.int().describe('Sequence number of the first lost event.'),
      last: z.int().describe('Sequence number of the last lost event.'),
    })),
  },
  'endpoint.event_dead': {
    when: 'An endpoint rejected an event on every attempt. The event is no longer retried. The later events of the job are delivered.',
    data: fields(() => ({
      ...endpointData,
      account: z.string().describe('Id of the account whose log contains the event.'),
      sequence: z.int().describe('Sequence number of the event.'),
      event: z.string().describe('Id of the event.'),
      attempts: z.int(),
      reason: z.string().describe('Error message of the last attempt.'),
    })),
  },
  'jobwire.ping': {
    when: 'A test of an endpoint was requested. Sent to that endpoint only and not recorded in a log.',
    data: fields(() => ({ ...endpointData, endpoint: z.string().describe('Id of the endpoint.') })),
  },
} as const satisfies Record<string, { when: string; data: () => z.ZodType }>;

/** Name of an event type. */
export type EventType = keyof typeof catalogue;

/** Data of an event type. */
export type EventData<T extends EventType> = z.infer<ReturnType<(typeof catalogue)[T]['data']>>;

/** All event types. */
export const eventTypes = Object.keys(catalogue) as EventType[];

/** The job in events. */
export const JobSummary = job;
export type JobSummary = z.infer<typeof job>;
/** A line of a job. */
export type LineSummary = z.infer<typeof lineSummary>;
/** A parcel. */
export type TrackingEntry = z.infer<typeof trackingEntry>;
/** Evidence of an event (rule 13). */
export type Observed = z.infer<typeof observed>;

/**
 * Returns the JSON Schema of the data of a type, or `undefined` for an unknown type. `baseUrl`: prefix of `$id`, so that it
 * equals the `dataschema` of events. `knownValues`: keyword that lists the known values of a text.
 */
export function getDataSchema(
  type: string,
  baseUrl = '',
  knownValues: 'x-extensible-enum' | 'examples' = 'x-extensible-enum',
): object | undefined {
  const entry = Object.hasOwn(catalogue, type) ? catalogue[type as EventType] : undefined;
  if (!entry) return undefined;
  const { $schema, ...schema } = withOpenEnums(z.toJSONSchema(entry.data(), { io: 'input' }), knownValues);
  return {
    $schema,
    $id: `${baseUrl}${getSchemaPath(type)}`,
    title: type,
    description: entry.when,
    ...schema,
  };
}
