/** Events in words, as all pages say them. Free of React and the browser, and of the schemas: what it knows of types is erased. */
import type { EventData, EventType, TrackingEntry } from '../../shared/events/catalogue.ts';
import type { JobEvent } from '../../shared/events/event.ts';

/** A value that moved. */
export interface ValueChange {
  readonly label: string;
  /** As it was, and as it is; `undefined` where there is nothing to say of it. */
  readonly from?: string | undefined;
  readonly to?: string | undefined;
  /** `from` and `to` are dates in the words of the ordering service, to be shown as dates. */
  readonly areDates?: boolean;
}

/** What an event says. */
export interface EventDescription extends ValueChange {
  readonly tone: 'good' | 'warn' | 'bad' | 'plain';
  /** What else moved. */
  readonly more?: readonly ValueChange[];
}

/** What happened, in a few words. Types that are not known here are called by their names. */
export function describeEvent(event: JobEvent): EventDescription {
  const words = Object.hasOwn(descriptions, event.type) ? descriptions[event.type] : undefined;
  if (!words) return { label: toPlainText(event.type), tone: 'plain' };
  return (words as (data: JobEvent['data']) => EventDescription)(event.data);
}

/** The name of each type in words, as a choice. */
export const eventTypeLabels: { readonly [T in EventType]: string } = {
  'job.created': 'New job',
  'job.status_changed': 'Status changed',
  'job.line_status_changed': 'Status of lines changed',
  'job.dispatched': 'Dispatched',
  'job.dispatch_revoked': 'Dispatch taken back',
  'job.tracking_added': 'Tracking added',
  'job.tracking_updated': 'Tracking changed',
  'job.tracking_removed': 'Tracking taken back',
  'job.due_date_changed': 'Due date changed',
  'job.updated': 'Job changed',
  'job.locked': 'Locked',
  'job.unlocked': 'Unlocked',
  'job.overdue': 'Overdue',
  'job.closed': 'Closed',
  'job.cancelled': 'Cancelled',
  'job.unavailable': 'No longer known',
  'job.reopened': 'Open again',
  'job.invoiced': 'Invoiced',
  'order_group.dispatched': 'Order group dispatched',
  'account.baselined': 'Account: tracking begins',
  'account.poll_failing': 'Account: polling fails',
  'account.poll_recovered': 'Account: polling works again',
  'account.credentials_rejected': 'Account: credentials refused',
  'account.credentials_accepted': 'Account: credentials accepted again',
  'account.identity_mismatch': 'Account: credentials of another one',
  'account.quarantined': 'Account: answers in doubt',
  'account.resumed': 'Account: tracking goes on',
  'account.restored': 'Account: restored from a backup',
  'status.discovered': 'New status name',
  'upstream.outage': 'Ordering service: outage',
  'upstream.recovered': 'Ordering service: answers again',
  'endpoint.disabled': 'Endpoint: disabled',
  'endpoint.recovered': 'Endpoint: takes events again',
  'endpoint.events_lost': 'Endpoint: events lost',
  'endpoint.event_dead': 'Endpoint: event refused for good',
  'jobwire.ping': 'Test of an endpoint',
};

/** Types that people ask for together, as patterns. A type may be in several. */
export const eventTypeGroups: readonly { readonly name: string; readonly types: readonly string[] }[] = [
  { name: 'Dispatch', types: ['job.dispatched', 'job.dispatch_revoked', 'order_group.dispatched'] },
  { name: 'Tracking', types: ['job.tracking_*'] },
  { name: 'Status', types: ['job.status_changed', 'job.line_status_changed', 'status.discovered'] },
  { name: 'Due date', types: ['job.due_date_changed', 'job.overdue'] },
  {
    name: 'New and gone jobs',
    types: ['job.created', 'job.closed', 'job.cancelled', 'job.unavailable', 'job.reopened'],
  },
  { name: 'Other changes', types: ['job.updated', 'job.locked', 'job.unlocked', 'job.invoiced'] },
  {
    name: 'Trouble',
    types: [
      ...['job.overdue', 'job.cancelled', 'job.unavailable', 'job.dispatch_revoked', 'job.tracking_removed'],
      ...['account.*', 'upstream.*', 'endpoint.*'],
    ],
  },
  { name: 'Accounts and endpoints', types: ['account.*', 'upstream.*', 'endpoint.*'] },
];

/** The number of the job that an event is about. */
export function getJobNumber(event: JobEvent): number | undefined {
  const number = /^jobs\/(\d+)$/.exec(event.subject ?? '')?.[1];
  return number === undefined ? undefined : Number(number);
}

/** Text of others as text: no control characters, nor those that turn the direction of writing. */
export function toPlainText(value: unknown): string {
  if (value === null || value === undefined || value === '') return 'none';
  return String(value)
    .toWellFormed()
    .replace(/[\p{Cc}\p{Zl}\p{Zp}\u200e\u200f\u202a-\u202e\u2066-\u2069]+/gu, ' ');
}

const descriptions: { readonly [T in EventType]: (data: EventData<T>) => EventDescription } = {
  'job.created': ({ job }) => ({
    ...{ label: 'New job', tone: 'plain' },
    to: job.description === null ? undefined : toPlainText(job.description),
  }),
  'job.status_changed': ({ changes }) => ({ ...toChange('Status', changes.status), tone: 'plain' }),
  'job.line_status_changed': ({ lines }) => {
    const [first, ...others] = lines;
    const what = lines.length === 1 ? 'Status of a line' : `Status of ${lines.length} lines`;
    if (first && others.every(({ from, to }) => from === first.from && to === first.to))
      return { ...toChange(what, first), tone: 'plain' };
    return {
      label: what,
      tone: 'plain',
      more: lines.map((line) => toChange(`Line ${line.jobLineId}`, line)),
    };
  },
  'job.dispatched': ({ occurredAt }) => ({
    ...{ label: 'Dispatched', to: toPlainText(occurredAt), areDates: true, tone: 'good' },
  }),
  'job.dispatch_revoked': ({ changes }) => ({
    ...{
      label: 'Dispatch taken back',
      from: toPlainText(changes.dateOut.from),
      areDates: true,
      tone: 'warn',
    },
  }),
  'job.tracking_added': ({ tracking }) => ({
    label: 'Tracking added',
    to: joinParcels(tracking),
    tone: 'good',
  }),
  'job.tracking_updated': ({ tracking }) => ({
    label: tracking.every(({ from, to }) => from.number !== to.number)
      ? 'Tracking number added'
      : tracking.every(({ from }) => from.link === null)
        ? 'Tracking link added'
        : 'Tracking changed',
    to: joinParcels(tracking.map(({ to }) => to)),
    tone: 'plain',
  }),
  'job.tracking_removed': ({ tracking }) => ({
    ...{ label: 'Tracking taken back', from: joinParcels(tracking), tone: 'warn' },
  }),
  'job.due_date_changed': ({ changes: { dateDue, mustDate } }) => {
    const must = mustDate && {
      label: mustDate.to === true ? 'The due date must be met' : 'The due date need not be met',
    };
    if (!dateDue) return { ...(must ?? { label: 'Due date changed' }), tone: 'plain' };
    return {
      ...toChange('Due date', dateDue, true),
      tone: 'plain',
      ...(must && { more: [must] }),
    };
  },
  'job.updated': ({ changes }) => {
    const [first, ...more] = Object.entries(changes).map(([field, change]) =>
      toChange(fieldNames[field] ?? field, change, field === 'dateOut'),
    );
    return {
      ...(first ?? { label: 'Job changed' }),
      tone: 'plain',
      ...(more.length > 0 && { more }),
    };
  },
  'job.locked': () => ({ label: 'Locked: it can no longer be edited', tone: 'plain' }),
  'job.unlocked': () => ({ label: 'Unlocked: it can be edited again', tone: 'plain' }),
  'job.overdue': ({ job, dueAt }) => ({
    ...{ label: 'Overdue, was due', to: toPlainText(job.dateDue ?? dueAt), areDates: true, tone: 'warn' },
  }),
  'job.closed': () => ({ label: 'Closed', tone: 'plain' }),
  'job.cancelled': ({ jobStatus }) => ({ label: `Cancelled ${formatInference(jobStatus)}`, tone: 'warn' }),
  'job.unavailable': ({ jobStatus }) => ({
    ...{ label: `No longer known to the ordering service ${formatInference(jobStatus)}`, tone: 'warn' },
  }),
  'job.reopened': ({ previousOutcome }) => ({
    label: `Open again; was said to be ${previousOutcome === 'unavailable' ? 'no longer known' : previousOutcome}`,
    tone: 'plain',
  }),
  'job.invoiced': ({ changes: { invoiceNumber } }) => ({
    label: 'Invoiced',
    ...(invoiceNumber.from !== null && { from: toPlainText(invoiceNumber.from) }),
    to: toPlainText(invoiceNumber.to),
    tone: 'plain',
  }),
  'order_group.dispatched': ({ orderGroup, jobs, excludedJobs, repeated }) => ({
    label: `Order group dispatched${repeated ? ' again' : ''}`,
    to: `${toPlainText(orderGroup)} (${formatCount(jobs.length, 'job')}${excludedJobs.length > 0 ? `, ${excludedJobs.length} gone` : ''})`,
    tone: 'good',
  }),
  'account.baselined': ({ openJobs }) => ({
    ...{ label: `Tracking begins: ${formatCount(openJobs, 'open job')} known`, tone: 'plain' },
  }),
  'account.poll_failing': ({ consecutiveFailures, reason }) => ({
    ...{ label: `Polling fails, ${consecutiveFailures} times in a row: ${toPlainText(reason)}`, tone: 'bad' },
  }),
  'account.poll_recovered': ({ failedPolls }) => ({
    ...{ label: `Polling works again after ${formatCount(failedPolls, 'failed poll')}`, tone: 'good' },
  }),
  'account.credentials_rejected': ({ reason }) => ({
    ...{ label: `Credentials refused: ${toPlainText(reason)}`, tone: 'bad' },
  }),
  'account.credentials_accepted': () => ({ label: 'Credentials accepted again', tone: 'good' }),
  'account.identity_mismatch': ({ expectedId, actualId }) => ({
    label: `Polling stopped: the credentials belong to another account (${actualId}, not ${expectedId})`,
    tone: 'bad',
  }),
  'account.quarantined': ({ suspected, contradictory }) => ({
    label: `${formatCount(suspected + contradictory, 'job')} seem to be gone at once: not believed until they are back or somebody confirms`,
    tone: 'bad',
  }),
  'account.resumed': ({ previousState, by }) => ({
    label: `${previousState === 'quarantined' ? 'Missing jobs are no longer in doubt' : 'The credentials are taken for this account'}${by === 'operator' ? ': somebody confirmed' : ''}`,
    tone: 'good',
  }),
  'account.restored': ({ after }) => ({
    ...{ label: `Restored from a backup: what came after ${toPlainText(after)} is said anew`, tone: 'warn' },
  }),
  'status.discovered': ({ status, previousName }) =>
    previousName === undefined
      ? { label: 'New status name', to: toPlainText(status), tone: 'plain' }
      : { label: 'Status renamed', from: toPlainText(previousName), to: toPlainText(status), tone: 'plain' },
  'upstream.outage': ({ reason }) => ({
    ...{ label: `The ordering service fails: ${toPlainText(reason)}`, tone: 'bad' },
  }),
  'upstream.recovered': ({ durationSeconds }) => ({
    ...{ label: `The ordering service answers again after ${formatDuration(durationSeconds)}`, tone: 'good' },
  }),
  'endpoint.disabled': ({ endpoint, reason }) => ({
    ...{
      label: `Endpoint ${toPlainText(endpoint)} gets no more events: ${toPlainText(reason)}`,
      tone: 'bad',
    },
  }),
  'endpoint.recovered': ({ endpoint }) => ({
    ...{ label: `Endpoint ${toPlainText(endpoint)} takes events again`, tone: 'good' },
  }),
  'endpoint.events_lost': ({ endpoint, first, last }) => ({
    label: `Endpoint ${toPlainText(endpoint)} missed ${formatCount(last - first + 1, 'event')}: too old to be kept`,
    tone: 'bad',
  }),
  'endpoint.event_dead': ({ endpoint, attempts, reason }) => ({
    label: `Endpoint ${toPlainText(endpoint)} refused an event for good after ${formatCount(attempts, 'attempt')}: ${toPlainText(reason)}`,
    tone: 'bad',
  }),
  'jobwire.ping': ({ endpoint }) => ({ label: `Test of endpoint ${toPlainText(endpoint)}`, tone: 'plain' }),
};

const fieldNames: Readonly<Record<string, string>> = {
  description: 'Description',
  orderNumber: 'Order number',
  orderGroup: 'Order group',
  orderGroupSequence: 'Place in the order group',
  originCode: 'Origin',
  dateOut: 'Dispatch date',
};

function toChange(label: string, change: { from: unknown; to: unknown }, areDates = false): ValueChange {
  return {
    label,
    from: toPlainText(change.from),
    to: toPlainText(change.to),
    ...(areDates && { areDates }),
  };
}

function joinParcels(entries: readonly TrackingEntry[]): string {
  return entries.map(({ number, link }) => toPlainText(number ?? link)).join(', ');
}

/** No cancellation is ever told by the service; what its record says goes with it. */
function formatInference(jobStatus: string | null): string {
  return jobStatus === null ? '(inferred)' : `(inferred; its record says ${toPlainText(jobStatus)})`;
}

function formatCount(number: number, one: string): string {
  return `${number.toLocaleString('en-GB')} ${one}${number === 1 ? '' : 's'}`;
}

function formatDuration(seconds: number): string {
  if (seconds < 90) return `${seconds} s`;
  const minutes = Math.round(seconds / 60);
  return minutes < 90 ? `${minutes} min` : `${Math.round(minutes / 60)} h`;
}
