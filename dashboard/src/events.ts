/** Events in words, as all pages say them. Free of React and the browser, and of the schemas: what it knows of types is erased. */
import type { EventData, EventType, TrackingEntry } from '../../shared/events/catalogue.ts';
import type { JobEvent } from '../../shared/events/event.ts';

/** A value that moved. */
export interface Moved {
  readonly what: string;
  /** As it was, and as it is; `undefined` where there is nothing to say of it. */
  readonly from?: string | undefined;
  readonly to?: string | undefined;
  /** `from` and `to` are dates in the words of the ordering service, to be shown as dates. */
  readonly dates?: boolean;
}

/** What an event says. */
export interface Told extends Moved {
  readonly tone: 'good' | 'warn' | 'bad' | 'plain';
  /** What else moved. */
  readonly more?: readonly Moved[];
}

/** What happened, in a few words. Types that are not known here are called by their names. */
export function describe(event: JobEvent): Told {
  const words = Object.hasOwn(saying, event.type) ? saying[event.type] : undefined;
  if (!words) return { what: plain(event.type), tone: 'plain' };
  return (words as (data: JobEvent['data']) => Told)(event.data);
}

/** The name of each type in words, as a choice. */
export const typeNames: { readonly [T in EventType]: string } = {
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
export const typeGroups: readonly { readonly name: string; readonly types: readonly string[] }[] = [
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
export function jobNumberOf(event: JobEvent): number | undefined {
  const number = /^jobs\/(\d+)$/.exec(event.subject ?? '')?.[1];
  return number === undefined ? undefined : Number(number);
}

/** Text of others as text: no control characters, nor those that turn the direction of writing. */
export function plain(value: unknown): string {
  if (value === null || value === undefined || value === '') return 'none';
  return String(value)
    .toWellFormed()
    .replace(/[\p{Cc}\p{Zl}\p{Zp}\u200e\u200f\u202a-\u202e\u2066-\u2069]+/gu, ' ');
}

const saying: { readonly [T in EventType]: (data: EventData<T>) => Told } = {
  'job.created': ({ job }) => ({
    ...{ what: 'New job', tone: 'plain' },
    to: job.description === null ? undefined : plain(job.description),
  }),
  'job.status_changed': ({ changes }) => ({ ...moved('Status', changes.status), tone: 'plain' }),
  'job.line_status_changed': ({ lines }) => {
    const [first, ...others] = lines;
    const what = lines.length === 1 ? 'Status of a line' : `Status of ${lines.length} lines`;
    if (first && others.every(({ from, to }) => from === first.from && to === first.to))
      return { ...moved(what, first), tone: 'plain' };
    return { what, tone: 'plain', more: lines.map((line) => moved(`Line ${line.jobLineId}`, line)) };
  },
  'job.dispatched': ({ occurredAt }) => ({
    ...{ what: 'Dispatched', to: plain(occurredAt), dates: true, tone: 'good' },
  }),
  'job.dispatch_revoked': ({ changes }) => ({
    ...{ what: 'Dispatch taken back', from: plain(changes.dateOut.from), dates: true, tone: 'warn' },
  }),
  'job.tracking_added': ({ tracking }) => ({ what: 'Tracking added', to: parcels(tracking), tone: 'good' }),
  'job.tracking_updated': ({ tracking }) => ({
    what: tracking.every(({ from, to }) => from.number !== to.number)
      ? 'Tracking number added'
      : tracking.every(({ from }) => from.link === null)
        ? 'Tracking link added'
        : 'Tracking changed',
    to: parcels(tracking.map(({ to }) => to)),
    tone: 'plain',
  }),
  'job.tracking_removed': ({ tracking }) => ({
    ...{ what: 'Tracking taken back', from: parcels(tracking), tone: 'warn' },
  }),
  'job.due_date_changed': ({ changes: { dateDue, mustDate } }) => {
    const must = mustDate && {
      what: mustDate.to === true ? 'The due date must be met' : 'The due date need not be met',
    };
    if (!dateDue) return { ...(must ?? { what: 'Due date changed' }), tone: 'plain' };
    return {
      ...moved('Due date', dateDue, true),
      tone: 'plain',
      ...(must && { more: [must] }),
    };
  },
  'job.updated': ({ changes }) => {
    const [first, ...more] = Object.entries(changes).map(([field, change]) =>
      moved(fieldNames[field] ?? field, change, field === 'dateOut'),
    );
    return {
      ...(first ?? { what: 'Job changed' }),
      tone: 'plain',
      ...(more.length > 0 && { more }),
    };
  },
  'job.locked': () => ({ what: 'Locked: it can no longer be edited', tone: 'plain' }),
  'job.unlocked': () => ({ what: 'Unlocked: it can be edited again', tone: 'plain' }),
  'job.overdue': ({ job, dueAt }) => ({
    ...{ what: 'Overdue, was due', to: plain(job.dateDue ?? dueAt), dates: true, tone: 'warn' },
  }),
  'job.closed': () => ({ what: 'Closed', tone: 'plain' }),
  'job.cancelled': ({ jobStatus }) => ({ what: `Cancelled ${inferred(jobStatus)}`, tone: 'warn' }),
  'job.unavailable': ({ jobStatus }) => ({
    ...{ what: `No longer known to the ordering service ${inferred(jobStatus)}`, tone: 'warn' },
  }),
  'job.reopened': ({ was }) => ({
    what: `Open again; was said to be ${was === 'unavailable' ? 'no longer known' : was}`,
    tone: 'plain',
  }),
  'job.invoiced': ({ changes: { invoiceNumber } }) => ({
    what: 'Invoiced',
    ...(invoiceNumber.from !== null && { from: plain(invoiceNumber.from) }),
    to: plain(invoiceNumber.to),
    tone: 'plain',
  }),
  'order_group.dispatched': ({ orderGroup, jobs, gone, again }) => ({
    what: `Order group dispatched${again ? ' again' : ''}`,
    to: `${plain(orderGroup)} (${count(jobs.length, 'job')}${gone.length > 0 ? `, ${gone.length} gone` : ''})`,
    tone: 'good',
  }),
  'account.baselined': ({ openJobs }) => ({
    ...{ what: `Tracking begins: ${count(openJobs, 'open job')} known`, tone: 'plain' },
  }),
  'account.poll_failing': ({ consecutiveFailures, reason }) => ({
    ...{ what: `Polling fails, ${consecutiveFailures} times in a row: ${plain(reason)}`, tone: 'bad' },
  }),
  'account.poll_recovered': ({ failedPolls }) => ({
    ...{ what: `Polling works again after ${count(failedPolls, 'failed poll')}`, tone: 'good' },
  }),
  'account.credentials_rejected': ({ reason }) => ({
    ...{ what: `Credentials refused: ${plain(reason)}`, tone: 'bad' },
  }),
  'account.credentials_accepted': () => ({ what: 'Credentials accepted again', tone: 'good' }),
  'account.identity_mismatch': ({ expectedId, actualId }) => ({
    what: `Polling stopped: the credentials belong to another account (${actualId}, not ${expectedId})`,
    tone: 'bad',
  }),
  'account.quarantined': ({ suspected, contradictory }) => ({
    what: `${count(suspected + contradictory, 'job')} seem to be gone at once: not believed until they are back or somebody confirms`,
    tone: 'bad',
  }),
  'account.resumed': ({ was, by }) => ({
    what: `${was === 'quarantined' ? 'Missing jobs are no longer in doubt' : 'The credentials are taken for this account'}${by === 'operator' ? ': somebody confirmed' : ''}`,
    tone: 'good',
  }),
  'account.restored': ({ after }) => ({
    ...{ what: `Restored from a backup: what came after ${plain(after)} is said anew`, tone: 'warn' },
  }),
  'status.discovered': ({ status, formerName }) =>
    formerName === undefined
      ? { what: 'New status name', to: plain(status), tone: 'plain' }
      : { what: 'Status renamed', from: plain(formerName), to: plain(status), tone: 'plain' },
  'upstream.outage': ({ reason }) => ({
    ...{ what: `The ordering service fails: ${plain(reason)}`, tone: 'bad' },
  }),
  'upstream.recovered': ({ durationSeconds }) => ({
    ...{ what: `The ordering service answers again after ${span(durationSeconds)}`, tone: 'good' },
  }),
  'endpoint.disabled': ({ endpoint, reason }) => ({
    ...{ what: `Endpoint ${plain(endpoint)} gets no more events: ${plain(reason)}`, tone: 'bad' },
  }),
  'endpoint.recovered': ({ endpoint }) => ({
    ...{ what: `Endpoint ${plain(endpoint)} takes events again`, tone: 'good' },
  }),
  'endpoint.events_lost': ({ endpoint, first, last }) => ({
    what: `Endpoint ${plain(endpoint)} missed ${count(last - first + 1, 'event')}: too old to be kept`,
    tone: 'bad',
  }),
  'endpoint.event_dead': ({ endpoint, attempts, reason }) => ({
    what: `Endpoint ${plain(endpoint)} refused an event for good after ${count(attempts, 'attempt')}: ${plain(reason)}`,
    tone: 'bad',
  }),
  'jobwire.ping': ({ endpoint }) => ({ what: `Test of endpoint ${plain(endpoint)}`, tone: 'plain' }),
};

const fieldNames: Readonly<Record<string, string>> = {
  description: 'Description',
  orderNumber: 'Order number',
  orderGroup: 'Order group',
  orderGroupSequence: 'Place in the order group',
  originCode: 'Origin',
  dateOut: 'Dispatch date',
};

function moved(what: string, change: { from: unknown; to: unknown }, dates = false): Moved {
  return { what, from: plain(change.from), to: plain(change.to), ...(dates && { dates }) };
}

function parcels(entries: readonly TrackingEntry[]): string {
  return entries.map(({ number, link }) => plain(number ?? link)).join(', ');
}

/** No cancellation is ever told by the service; what its record says goes with it. */
function inferred(jobStatus: string | null): string {
  return jobStatus === null ? '(inferred)' : `(inferred; its record says ${plain(jobStatus)})`;
}

function count(number: number, one: string): string {
  return `${number.toLocaleString('en-GB')} ${one}${number === 1 ? '' : 's'}`;
}

function span(seconds: number): string {
  if (seconds < 90) return `${seconds} s`;
  const minutes = Math.round(seconds / 60);
  return minutes < 90 ? `${minutes} min` : `${Math.round(minutes / 60)} h`;
}
