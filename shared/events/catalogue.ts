/**
 * The catalogue of events: every type, when it is said, and the shape of its data. JSON Schemas, documents and the types
 * that receivers import all come from here. Within a type, changes are additive only; a breaking change is a new type.
 */
import * as z from 'zod';
import { schemaPathOf } from './types.ts';

const instant = z.iso.datetime().describe('An instant, ISO 8601 in UTC.');
const asSaid = z.string().describe('A date or timestamp in the words of the ordering service.');

/** One parcel: known by its number, or else by its link. */
const trackingEntry = z.object({
  number: z.string().nullable(),
  link: z.string().nullable().describe('Null when the carrier gives none.'),
});

/** The job as it stands after the change. Texts written by customers are data: escape them wherever they are shown. */
const job = z.object({
  jobNumber: z.int(),
  status: z.string().nullable().describe('The status name in the words of the ordering service.'),
  description: z.string().nullable(),
  orderNumber: z.string().nullable().describe('The customer’s own reference; neither unique nor required.'),
  orderGroup: z.string().nullable(),
  orderGroupSequence: z.number().nullable(),
  originCode: z.string().nullable(),
  dateDue: asSaid.nullable(),
  mustDate: z.boolean().nullable(),
  dateOut: asSaid.nullable(),
  tracking: z.array(trackingEntry),
});

/** When the change happened: after `since` and not later than `at`. */
const observed = z.object({
  at: instant.describe('When the answer came that shows the change.'),
  since: instant
    .nullable()
    .describe('When the job (or the whole list) was last looked at before; null when it never was.'),
  view: z
    .enum(['list', 'detail', 'search'])
    .describe(
      'Which answer of the ordering service showed it: the list of active jobs, the job, or a search.',
    ),
});

const change = <T extends z.ZodType>(value: T) => z.object({ from: value, to: value });
const text = z.string().nullable();

const base = { account: z.string(), region: z.string() };
const ofJob = { ...base, job, observed };
/** Events about a region as a whole stand in the cell's own log, and have no account. */
const ofCell = { region: z.string(), since: instant.describe('When the first of the failures came.') };
/** Events about a sink stand in the cell's own log too. */
const ofSink = {
  region: z.string(),
  endpoint: z.string().describe('The id of the endpoint, or the name of a built-in sink.'),
};
const ofAccount = { ...base, observed: observed.partial().optional() };

/** Every event type with the sentence that says when it is sent and the schema of its `data`. */
export const catalogue = {
  'job.created': {
    when: 'A job appeared that was created after tracking began.',
    data: z.object({ ...ofJob, changes: z.object({}), occurredAt: asSaid.nullable().describe('dateIn') }),
  },
  'job.status_changed': {
    when: 'The status moved: in the list, or, after the job left the list, in its detail.',
    data: z.object({ ...ofJob, changes: z.object({ status: change(text) }) }),
  },
  'job.line_status_changed': {
    when: 'The status of one or more lines moved. Lines are seen only when the detail is read, so not every move is caught.',
    data: z.object({
      ...ofJob,
      changes: z.object({}),
      lines: z.array(z.object({ jobLineId: z.int(), from: text, to: text })),
    }),
  },
  'job.dispatched': {
    when: 'The job was dispatched (dateOut was set). Said once per dispatch, however often the date is corrected.',
    data: z.object({
      ...ofJob,
      changes: z.object({ dateOut: change(text) }),
      occurredAt: asSaid.describe('dateOut'),
    }),
  },
  'job.dispatch_revoked': {
    when: 'The dispatch was taken back (dateOut was cleared, and the detail agrees).',
    data: z.object({ ...ofJob, changes: z.object({ dateOut: change(text) }) }),
  },
  'job.tracking_added': {
    when: 'Parcels got tracking; one event per look, listing them.',
    data: z.object({ ...ofJob, changes: z.object({}), tracking: z.array(trackingEntry) }),
  },
  'job.tracking_updated': {
    when: 'The link of known parcels was filled in or changed, or a link got its number.',
    data: z.object({
      ...ofJob,
      changes: z.object({}),
      tracking: z.array(z.object({ from: trackingEntry, to: trackingEntry })),
    }),
  },
  'job.tracking_removed': {
    when: 'Tracking was taken back, and the detail agrees.',
    data: z.object({ ...ofJob, changes: z.object({}), tracking: z.array(trackingEntry) }),
  },
  'job.due_date_changed': {
    when: 'The due date, or whether it must be met, changed.',
    data: z.object({
      ...ofJob,
      changes: z.object({ dateDue: change(text), mustDate: change(z.boolean().nullable()) }).partial(),
    }),
  },
  'job.updated': {
    when: 'Description, order number, order group or origin changed, or the dispatch date was corrected.',
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
        })
        .partial(),
    }),
  },
  'job.locked': {
    when: 'The job can no longer be edited.',
    data: z.object({ ...ofJob, changes: z.object({ canEdit: change(z.boolean().nullable()) }) }),
  },
  'job.unlocked': {
    when: 'The job can be edited again.',
    data: z.object({ ...ofJob, changes: z.object({ canEdit: change(z.boolean().nullable()) }) }),
  },
  'job.overdue': {
    when: 'The job was seen undispatched after its due instant; once per due date.',
    data: z.object({ ...ofJob, changes: z.object({}), dueAt: instant, zone: z.string() }),
  },
  'job.closed': {
    when: 'The job left the active list and is among the closed ones.',
    data: z.object({ ...ofJob, changes: z.object({}) }),
  },
  'job.cancelled': {
    when: 'The job is in neither list and locked, undispatched, twice with time between: the service never lists cancelled jobs.',
    data: z.object({
      ...ofJob,
      changes: z.object({}),
      inferred: z
        .literal(true)
        .describe('The service does not say it; it follows from what it no longer shows.'),
      jobStatus: text.describe('What the job’s own record says of its status.'),
    }),
  },
  'job.unavailable': {
    when: 'The service no longer knows the job (404) and lists it nowhere, twice with time between.',
    data: z.object({ ...ofJob, changes: z.object({}), inferred: z.literal(true), jobStatus: text }),
  },
  'job.reopened': {
    when: 'A job said to be closed, cancelled or unavailable is in the active list again.',
    data: z.object({ ...ofJob, changes: z.object({}), was: z.enum(['closed', 'cancelled', 'unavailable']) }),
  },
  'job.invoiced': {
    when: 'An invoice number appeared.',
    data: z.object({ ...ofJob, changes: z.object({ invoiceNumber: change(text) }) }),
  },
  'order_group.dispatched': {
    when: 'The last job of an order group that is not cancelled was dispatched; again when a job joins it later.',
    data: z.object({
      ...base,
      observed,
      orderGroup: z.string(),
      jobs: z.array(z.int()).describe('The dispatched jobs of the group, by number.'),
      gone: z.array(z.int()).describe('Its jobs that were said to be cancelled or unavailable.'),
      again: z.boolean().describe('It was said before; a job joined or was taken back since.'),
    }),
  },
  'account.baselined': {
    when: 'The first complete look at all open jobs is stored; changes from here on are announced.',
    data: z.object({ ...ofAccount, openJobs: z.int() }),
  },
  'account.poll_failing': {
    when: 'Several polls in a row failed; nothing new can be said until they recover.',
    data: z.object({ ...ofAccount, consecutiveFailures: z.int(), reason: z.string() }),
  },
  'account.poll_recovered': {
    when: 'A poll succeeded after account.poll_failing.',
    data: z.object({ ...ofAccount, failedPolls: z.int() }),
  },
  'account.credentials_rejected': {
    when: 'The service refused the account’s credentials.',
    data: z.object({ ...ofAccount, reason: z.string() }),
  },
  'account.credentials_accepted': {
    when: 'The service accepts the account’s credentials again.',
    data: z.object(ofAccount),
  },
  'account.identity_mismatch': {
    when: 'The credentials now belong to another account; polling stops until an operator acts.',
    data: z.object({ ...ofAccount, expectedId: z.int(), actualId: z.int() }),
  },
  'account.quarantined': {
    when: 'So many jobs seem to be gone at once that the service’s answers are in doubt: none of them is said to be cancelled or unavailable.',
    data: z.object({
      ...ofAccount,
      openJobs: z.int().describe('Jobs in the list.'),
      suspected: z.int().describe('Missing jobs that look cancelled or unavailable.'),
      contradictory: z.int().describe('Missing jobs about which the answers don’t fit together.'),
      announced: z.int().describe('Jobs said to be cancelled or unavailable in the last 24 hours.'),
    }),
  },
  'account.resumed': {
    when: 'What stopped or held back tracking (identity mismatch, quarantine) is over: by itself, or because an operator confirmed.',
    data: z.object({
      ...ofAccount,
      was: z.enum(['quarantined', 'identity_mismatch']),
      by: z.enum(['itself', 'operator']),
    }),
  },
  'account.restored': {
    when: 'The account’s log was restored from a backup: what was said after `after` before that is forgotten, and as far as it still holds it is said again. Read the jobs anew.',
    data: z.object({
      ...ofAccount,
      after: z.string().describe('The cursor of the last event that is left of those before.'),
    }),
  },
  'status.discovered': {
    when: 'A status name not seen before in this account.',
    data: z.object({
      ...base,
      observed,
      status: z.string(),
      formerName: z.string().optional().describe('The service’s lookup calls a known status so from now on.'),
    }),
  },
  'upstream.outage': {
    when: 'The ordering service fails for the whole region; said once, in place of account.poll_failing for each account.',
    data: z.object({
      ...ofCell,
      failedPolls: z.int().describe('Polls that failed since then, with none answered: at least so many.'),
      accounts: z.int().describe('Different accounts among them: at least so many.'),
      reason: z.string().describe('Why the last of them failed.'),
    }),
  },
  'upstream.recovered': {
    when: 'The ordering service answers again after upstream.outage.',
    data: z.object({ ...ofCell, durationSeconds: z.int().describe('From `since` to the first answer.') }),
  },
  'endpoint.disabled': {
    when: 'An endpoint gets no more events: it failed for days with nothing in between, or said that it wants none. Enabled again, it goes on where it stood.',
    data: z.object({
      ...ofSink,
      reason: z.string().describe('In words.'),
      failingSince: instant
        .nullable()
        .describe('Since when nothing was taken; null when it was taking events.'),
    }),
  },
  'endpoint.recovered': {
    when: 'An endpoint takes events again after endpoint.disabled.',
    data: z.object({ ...ofSink, disabledAt: instant }),
  },
  'endpoint.events_lost': {
    when: 'Events fell out of retention before an endpoint had taken them; it goes on with the oldest that is left.',
    data: z.object({
      ...ofSink,
      account: z.string().describe('In whose log they stood.'),
      first: z.int().describe('The sequence of the first of them.'),
      last: z.int().describe('The sequence of the last of them.'),
    }),
  },
  'endpoint.event_dead': {
    when: 'An endpoint refused an event to the last attempt; the later events of its job go on without it.',
    data: z.object({
      ...ofSink,
      account: z.string().describe('In whose log the event stands.'),
      sequence: z.int().describe('Its place there.'),
      event: z.string().describe('The id of the event.'),
      attempts: z.int(),
      reason: z.string().describe('How it was refused the last time, in words.'),
    }),
  },
  'jobwire.ping': {
    when: 'Somebody asked for a test of an endpoint; sent to that endpoint alone, and in no log.',
    data: z.object(ofSink),
  },
} as const satisfies Record<string, { when: string; data: z.ZodType }>;

/** The name of an event type. */
export type EventType = keyof typeof catalogue;

/** The data of one event type. */
export type EventData<T extends EventType> = z.infer<(typeof catalogue)[T]['data']>;

/** All event types. */
export const eventTypes = Object.keys(catalogue) as EventType[];

/** The job as events show it. */
export const JobSummary = job;
export type JobSummary = z.infer<typeof job>;
/** One parcel. */
export type TrackingEntry = z.infer<typeof trackingEntry>;
/** The evidence of an event (rule 13). */
export type Observed = z.infer<typeof observed>;

/**
 * Returns the JSON Schema of one type's data, or `undefined` for a type that is not in the catalogue. `baseUrl`: what `$id`
 * starts with, so that it equals `dataschema` of the events.
 */
export function dataSchemaOf(type: string, baseUrl = ''): object | undefined {
  const entry = Object.hasOwn(catalogue, type) ? catalogue[type as EventType] : undefined;
  if (!entry) return undefined;
  const { $schema, ...schema } = z.toJSONSchema(entry.data, { io: 'input' });
  return { $schema, $id: `${baseUrl}${schemaPathOf(type)}`, title: type, description: entry.when, ...schema };
}
