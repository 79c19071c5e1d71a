/**
 * The event catalogue: every type, the condition under which it is emitted, and the schema of its data. JSON Schemas, documents
 * and the receiver types are generated from it. Changes within a type are additive; a breaking change is a new type.
 */
import * as z from 'zod';
import { getSchemaPath } from './types.ts';

const timestamp = z.iso.datetime().describe('Timestamp (ISO 8601, UTC).');
const asSaid = z.string().describe('Date or timestamp as reported by the ordering API.');

/** A parcel, identified by its number, or by its link if it has no number. */
const trackingEntry = z.object({
  number: z.string().nullable(),
  link: z.string().nullable().describe('Tracking URL. `null`: none provided by the carrier.'),
});

/** A line of a job, identified by its id. */
const lineSummary = z.object({
  jobLineId: z.int(),
  quantity: z.number().nullable().describe('`null`: unknown.'),
  comments: z.string().nullable().describe('At most 256 bytes.'),
});

/** The job after the change. Texts written by customers are untrusted: escape them for display. */
const job = z.object({
  jobNumber: z.int(),
  status: z.string().nullable().describe('Upstream status name.'),
  description: z.string().nullable(),
  orderNumber: z.string().nullable().describe('Reference set by the customer. Optional and not unique.'),
  orderGroup: z.string().nullable(),
  orderGroupSequence: z.number().nullable(),
  originCode: z.string().nullable(),
  dateDue: asSaid.nullable(),
  mustDate: z.boolean().nullable(),
  dateOut: asSaid.nullable(),
  tracking: z.array(trackingEntry),
});

/** Time of the change: after `since` and not later than `at`. */
const observed = z.object({
  at: timestamp.describe('Time of the upstream response that contains the change.'),
  since: timestamp
    .nullable()
    .describe('Time of the previous observation of the job, or of the whole list. `null`: none.'),
  view: z
    .enum(['list', 'detail', 'search'])
    .describe(
      'Source of the observation in the ordering API: the list of active jobs, the job detail, or a search.',
    ),
});

const change = <T extends z.ZodType>(value: T) => z.object({ from: value, to: value });
const text = z.string().nullable();

const base = { account: z.string(), region: z.string() };
const ofJob = { ...base, job, observed };
/** Events about a region are recorded in the log of the cell and have no account. */
const ofCell = { region: z.string(), since: timestamp.describe('Time of the first failure.') };
/** Events about an endpoint are recorded in the log of the cell. */
const ofSink = {
  region: z.string(),
  endpoint: z.string().describe('Id of the endpoint, or name of the built-in sink.'),
};
/** A payment, with the names of the ordering API. */
const transaction = z.object({
  id: z.int(),
  gatewayType: text,
  transactionStatus: text.describe('Upstream status name.'),
  createdAt: asSaid.nullable(),
  completedAt: asSaid.nullable(),
  cardName: text,
  cardNumber: text.describe('Last four digits after asterisks.'),
  currencySettlement: text,
  amountSettlement: z.number().nullable(),
  merchantEntityType: text.describe('What was paid for, such as `JOB` or `CUSTOMER`.'),
  merchantEntityId: z.int().nullable(),
});

const ofAccount = { ...base, observed: observed.partial().optional() };

/** All event types with the condition under which each is emitted and the schema of its `data`. */
export const catalogue = {
  'job.created': {
    when: 'A job was created after tracking began.',
    data: z.object({
      ...ofJob,
      changes: z.object({}),
      occurredAt: asSaid.nullable().describe('Value of `dateIn` upstream.'),
    }),
  },
  'job.status_changed': {
    when: 'The status of a job changed in the list, or in the job detail if the job is no longer listed.',
    data: z.object({ ...ofJob, changes: z.object({ status: change(text) }) }),
  },
  'job.line_status_changed': {
    when: 'The status of one or more lines changed. Lines are only in the job detail, which is fetched less often than the list. So some changes can be missed.',
    data: z.object({
      ...ofJob,
      changes: z.object({}),
      lines: z.array(z.object({ jobLineId: z.int(), from: text, to: text })),
    }),
  },
  'job.dispatched': {
    when: 'A job was dispatched (`dateOut` was set). Emitted once per dispatch, even if the date is corrected later.',
    data: z.object({
      ...ofJob,
      changes: z.object({ dateOut: change(text) }),
      occurredAt: asSaid.describe('Value of `dateOut` upstream.'),
      zone: z
        .string()
        .nullable()
        .describe(
          "IANA name of the time zone of the job's location: a `dateOut` without an offset is local time there. `null`: not known yet.",
        ),
      late: z
        .boolean()
        .nullable()
        .optional()
        .describe(
          'Whether the job was dispatched after its due time. If the due date has no time of day, the job is due by the end of that day at the production location. `null`: unknown, because the job has no due date, or because the result depends on a time of day or a time zone that is missing. Absent in events recorded by older versions of Jobwire.',
        ),
      lateBySeconds: z
        .int()
        .nullable()
        .optional()
        .describe(
          'Time from the due time to the dispatch, in seconds. If the dispatch date has no time of day, the shortest possible delay. `null`: not late, or unknown.',
        ),
    }),
  },
  'job.dispatch_revoked': {
    when: 'A dispatch was revoked (`dateOut` was cleared, confirmed by the job detail).',
    data: z.object({ ...ofJob, changes: z.object({ dateOut: change(text) }) }),
  },
  'job.tracking_added': {
    when: 'Tracking was added to one or more parcels. One event contains all parcels that were observed at the same time.',
    data: z.object({ ...ofJob, changes: z.object({}), tracking: z.array(trackingEntry) }),
  },
  'job.tracking_updated': {
    when: 'The tracking link of a known parcel was added or changed, or a parcel that had only a link got its number.',
    data: z.object({
      ...ofJob,
      changes: z.object({}),
      tracking: z.array(z.object({ from: trackingEntry, to: trackingEntry })),
    }),
  },
  'job.tracking_removed': {
    when: 'Tracking was removed, confirmed by the job detail.',
    data: z.object({ ...ofJob, changes: z.object({}), tracking: z.array(trackingEntry) }),
  },
  'job.due_date_changed': {
    when: 'The due date changed, or the flag that marks it as mandatory.',
    data: z.object({
      ...ofJob,
      changes: z.object({ dateDue: change(text), mustDate: change(z.boolean().nullable()) }).partial(),
    }),
  },
  'job.updated': {
    when: 'The description, order number, order group, origin, comments or lines of a job changed, or its dispatch date was corrected. Comments and lines are compared only when the detail is fetched.',
    data: z.object({
      ...ofJob,
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
              'Lines that differ, at most 200 on each side. Only in `from`: removed. Only in `to`: added. In both, with the same `jobLineId`: quantity or comments changed.',
            ),
        })
        .partial(),
    }),
  },
  'job.locked': {
    when: 'A job can no longer be edited.',
    data: z.object({ ...ofJob, changes: z.object({ canEdit: change(z.boolean().nullable()) }) }),
  },
  'job.unlocked': {
    when: 'A job can be edited again.',
    data: z.object({ ...ofJob, changes: z.object({ canEdit: change(z.boolean().nullable()) }) }),
  },
  'job.overdue': {
    when: 'A job was observed undispatched after its due time. Emitted once per due date.',
    data: z.object({ ...ofJob, changes: z.object({}), dueAt: timestamp, zone: z.string() }),
  },
  'job.due_soon': {
    when: 'A job is undispatched and its due time is near. The lead time is a setting of the account (`events.dueSoonHours`). Emitted once per due date.',
    data: z.object({
      ...ofJob,
      changes: z.object({}),
      dueAt: timestamp.describe('Due time (ISO 8601, UTC).'),
      zone: z.string().describe('Time zone or offset that was used to interpret the due date.'),
    }),
  },
  'job.stalled': {
    when: 'A listed, undispatched job stayed in one status for a number of working days. The number is a setting of the account (`events.stalledAfterWorkingDays`, `events.stalledByStatus`). Emitted once per stay in a status.',
    data: z.object({
      ...ofJob,
      changes: z.object({}),
      status: z.string().describe('Upstream status name.'),
      inStatusSince: timestamp.describe(
        'Time of the first observation of the job in this status. The job may have entered the status earlier.',
      ),
      workingDays: z.int().describe('Number of working days (Monday to Friday) that have passed since then.'),
      zone: z.string().describe('Time zone in which working days are counted: that of the location.'),
    }),
  },
  'job.needs_attention': {
    when: 'A job entered a status that the account configured as one that needs attention (`events.attentionStatuses`), or was created in it.',
    data: z.object({
      ...ofJob,
      changes: z.object({}),
      status: z.string().describe('Upstream status name.'),
    }),
  },
  'job.production_started': {
    when: 'An open job can no longer be cancelled (`isCancelable` changed to `false`). The value is only in the job detail, which is fetched when the job changes in the list, and otherwise once a day.',
    data: z.object({
      ...ofJob,
      changes: z.object({ isCancelable: change(z.boolean()) }),
    }),
  },
  'job.closed': {
    when: 'A job left the list of active jobs and is among the closed jobs.',
    data: z.object({ ...ofJob, changes: z.object({}) }),
  },
  'job.cancelled': {
    when: 'A job left the list of active jobs, is not among the closed jobs, and is locked and not dispatched. Two checks some minutes apart had the same result. The cancellation is inferred, because the ordering API does not list cancelled jobs.',
    data: z.object({
      ...ofJob,
      changes: z.object({}),
      inferred: z
        .literal(true)
        .describe('The cancellation is inferred from absence; the ordering API does not report it.'),
      jobStatus: text.describe('Status name in the job detail.'),
    }),
  },
  'job.unavailable': {
    when: 'A job no longer exists in the ordering API: its detail responds with 404, and neither the active nor the closed jobs include it. Two checks some minutes apart had the same result.',
    data: z.object({ ...ofJob, changes: z.object({}), inferred: z.literal(true), jobStatus: text }),
  },
  'job.reopened': {
    when: 'A closed, cancelled or unavailable job is in the list of active jobs again.',
    data: z.object({
      ...ofJob,
      changes: z.object({}),
      previousOutcome: z.enum(['closed', 'cancelled', 'unavailable']),
    }),
  },
  'job.invoiced': {
    when: 'A job got an invoice number.',
    data: z.object({ ...ofJob, changes: z.object({ invoiceNumber: change(text) }) }),
  },
  'order_group.partially_dispatched': {
    when: 'The first job of an order group was dispatched while others are open. Emitted once per group, and again only if all dispatches of the group were revoked in between. Not emitted after order_group.dispatched.',
    data: z.object({
      ...base,
      observed,
      orderGroup: z.string(),
      jobs: z.array(z.int()).describe('Numbers of the dispatched jobs of the group, in ascending order.'),
      openJobs: z.array(z.int()).describe('Numbers of its jobs that are not dispatched yet.'),
      excludedJobs: z
        .array(z.int())
        .describe('Numbers of its jobs that ended without dispatch: cancelled, unavailable or closed.'),
      dispatchedCount: z.int().describe('Number of `jobs`.'),
      openCount: z.int().describe('Number of `openJobs`.'),
    }),
  },
  'order_group.dispatched': {
    when: 'All jobs of an order group are dispatched. Jobs that ended without a dispatch (cancelled, closed or unavailable) are ignored. Emitted again when all are dispatched again after a job was added or a dispatch was revoked, and when an ignored job is dispatched later.',
    data: z.object({
      ...base,
      observed,
      orderGroup: z.string(),
      jobs: z.array(z.int()).describe('Numbers of the dispatched jobs of the group, in ascending order.'),
      excludedJobs: z
        .array(z.int())
        .describe(
          'Numbers of the jobs of the group that ended without dispatch: cancelled, unavailable or closed.',
        ),
      repeated: z
        .boolean()
        .describe(
          'Whether the event was emitted before for this group. Since then, a job was added or a dispatch was revoked.',
        ),
    }),
  },
  'account.baselined': {
    when: 'The first complete reading of the list of open jobs is stored. Later changes are emitted as events.',
    data: z.object({ ...ofAccount, openJobs: z.int() }),
  },
  'account.poll_failing': {
    when: 'Several consecutive polls failed. No changes are observed until a poll succeeds.',
    data: z.object({ ...ofAccount, consecutiveFailures: z.int(), reason: z.string() }),
  },
  'account.poll_recovered': {
    when: 'A poll succeeded after `account.poll_failing`.',
    data: z.object({ ...ofAccount, failedPolls: z.int() }),
  },
  'account.credentials_rejected': {
    when: 'The ordering API rejected the credentials of the account.',
    data: z.object({ ...ofAccount, reason: z.string() }),
  },
  'account.credentials_accepted': {
    when: 'The ordering API accepts the credentials of the account again.',
    data: z.object(ofAccount),
  },
  'account.identity_mismatch': {
    when: 'The credentials belong to another account of the ordering API. Polling stops until the operator confirms the other account or replaces the credentials.',
    data: z.object({ ...ofAccount, expectedId: z.int(), actualId: z.int() }),
  },
  'account.quarantined': {
    when: 'So many jobs disappeared at once that the list may be wrong. During the quarantine, `job.cancelled` and `job.unavailable` are not emitted.',
    data: z.object({
      ...ofAccount,
      openJobs: z.int().describe('Number of jobs in the list.'),
      suspected: z.int().describe('Number of missing jobs that seem cancelled or unavailable.'),
      contradictory: z.int().describe('Number of missing jobs whose responses contradict each other.'),
      reported: z.int().describe('Number of jobs reported as cancelled or unavailable in the last 24 hours.'),
    }),
  },
  'account.resumed': {
    when: 'An identity mismatch or a quarantine ended, either automatically or because the operator confirmed it.',
    data: z.object({
      ...ofAccount,
      previousState: z.enum(['quarantined', 'identity_mismatch']),
      by: z.enum(['automatic', 'operator']),
    }),
  },
  'account.payment_completed': {
    when: 'A payment of the account was completed. Emitted only if the event setting `payments` of the account is on.',
    data: z.object({ ...ofAccount, transaction }),
  },
  'account.payment_failed': {
    when: 'A payment of the account failed. Emitted only if the event setting `payments` of the account is on.',
    data: z.object({ ...ofAccount, transaction }),
  },
  'account.restored': {
    when: 'The log of the account was restored from a backup. All events later than the cursor in `after` were lost. Changes that still apply are emitted again, with new ids. Fetch all jobs again.',
    data: z.object({
      ...ofAccount,
      after: z.string().describe('Cursor of the last event that was restored.'),
    }),
  },
  'status.discovered': {
    when: 'A status name was observed for the first time in this account.',
    data: z.object({
      ...base,
      observed,
      status: z.string(),
      previousName: z
        .string()
        .optional()
        .describe('Previous name of the status, if it was renamed upstream.'),
    }),
  },
  'upstream.outage': {
    when: 'The ordering API fails for the whole region. Emitted once, instead of `account.poll_failing` for each account.',
    data: z.object({
      ...ofCell,
      failedPolls: z.int().describe('Number of failed polls since `since`. The real number can be higher.'),
      accounts: z.int().describe('Number of affected accounts. The real number can be higher.'),
      reason: z.string().describe('Error message of the last failure.'),
    }),
  },
  'upstream.recovered': {
    when: 'The ordering API responds again after `upstream.outage`.',
    data: z.object({
      ...ofCell,
      durationSeconds: z.int().describe('Time from `since` to the first response, in seconds.'),
    }),
  },
  'endpoint.disabled': {
    when: 'An endpoint was disabled, because all deliveries failed for days or because it responded with 410. When an operator enables it again, delivery resumes where it stopped.',
    data: z.object({
      ...ofSink,
      reason: z.string().describe('Error message.'),
      failingSince: timestamp.nullable().describe('Start of the failures. `null`: there were no failures.'),
    }),
  },
  'endpoint.recovered': {
    when: 'An endpoint accepts events again after `endpoint.disabled`.',
    data: z.object({ ...ofSink, disabledAt: timestamp }),
  },
  'endpoint.events_lost': {
    when: 'Events expired before they were delivered to an endpoint. Delivery resumes with the oldest event that is still in the log.',
    data: z.object({
      ...ofSink,
      account: z.string().describe('Id of the account whose log contained the events.'),
      first: z.int().describe('Sequence number of the first lost event.'),
      last: z.int().describe('Sequence number of the last lost event.'),
    }),
  },
  'endpoint.event_dead': {
    when: 'An endpoint rejected an event on the last attempt. The event is no longer retried. The later events of the job are delivered.',
    data: z.object({
      ...ofSink,
      account: z.string().describe('Id of the account whose log contains the event.'),
      sequence: z.int().describe('Sequence number of the event.'),
      event: z.string().describe('Id of the event.'),
      attempts: z.int(),
      reason: z.string().describe('Error message of the last attempt.'),
    }),
  },
  'jobwire.ping': {
    when: 'A test of an endpoint was requested. Sent to that endpoint only and not recorded in a log.',
    data: z.object(ofSink),
  },
} as const satisfies Record<string, { when: string; data: z.ZodType }>;

/** Name of an event type. */
export type EventType = keyof typeof catalogue;

/** Data of an event type. */
export type EventData<T extends EventType> = z.infer<(typeof catalogue)[T]['data']>;

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
 * equals the `dataschema` of events.
 */
export function getDataSchema(type: string, baseUrl = ''): object | undefined {
  const entry = Object.hasOwn(catalogue, type) ? catalogue[type as EventType] : undefined;
  if (!entry) return undefined;
  const { $schema, ...schema } = z.toJSONSchema(entry.data, { io: 'input' });
  return {
    $schema,
    $id: `${baseUrl}${getSchemaPath(type)}`,
    title: type,
    description: entry.when,
    ...schema,
  };
}
