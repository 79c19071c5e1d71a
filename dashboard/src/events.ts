/** Descriptions of events for all pages. Independent of React, the browser and the schemas. */
import type { EventData, EventType, LineSummary, TrackingEntry } from '../../shared/events/catalogue.ts';
import type { JobEvent } from '../../shared/events/event.ts';
import { formatCount, type Tone } from './texts.ts';

/** A changed value. */
export interface ValueChange {
  readonly label: string;
  /** Old and new value; `undefined` if there is none to display. */
  readonly from?: string | undefined;
  readonly to?: string | undefined;
  /** `from` and `to` are dates in the format of the ordering API. */
  readonly areDates?: boolean;
}

/** Description of an event. */
export interface EventDescription extends ValueChange {
  readonly tone: Tone;
  /** Further changes in the same event. */
  readonly more?: readonly ValueChange[];
}

/** Describes an event in a few words. An unknown type is described by its name. */
export function describeEvent(event: JobEvent): EventDescription {
  const toDescription = Object.hasOwn(descriptions, event.type) ? descriptions[event.type] : undefined;
  if (!toDescription) return { label: toPlainText(event.type), tone: 'plain' };
  return (toDescription as (data: JobEvent['data']) => EventDescription)(event.data);
}

/** Label of each event type in filters and tables. */
export const eventTypeLabels: { readonly [T in EventType]: string } = {
  'job.created': 'New job',
  'job.status_changed': 'Status changed',
  'job.line_status_changed': 'Status of lines changed',
  'job.dispatched': 'Dispatched',
  'job.dispatch_revoked': 'Dispatch revoked',
  'job.tracking_added': 'Tracking added',
  'job.tracking_updated': 'Tracking updated',
  'job.tracking_removed': 'Tracking removed',
  'job.due_date_changed': 'Due date changed',
  'job.updated': 'Job updated',
  'job.locked': 'Locked',
  'job.unlocked': 'Unlocked',
  'job.overdue': 'Overdue',
  'job.due_soon': 'Due soon',
  'job.stalled': 'Stalled',
  'job.needs_attention': 'Needs attention',
  'job.production_started': 'Production started',
  'job.closed': 'Closed',
  'job.cancelled': 'Cancelled',
  'job.unavailable': 'Unavailable',
  'job.reopened': 'Reopened',
  'job.invoiced': 'Invoiced',
  'order_group.partially_dispatched': 'Order group partially dispatched',
  'order_group.dispatched': 'Order group dispatched',
  'account.baselined': 'Account: baselined',
  'account.poll_failing': 'Account: polling failing',
  'account.poll_recovered': 'Account: polling recovered',
  'account.credentials_rejected': 'Account: credentials rejected',
  'account.credentials_accepted': 'Account: credentials accepted',
  'account.identity_mismatch': 'Account: identity mismatch',
  'account.quarantined': 'Account: quarantined',
  'account.resumed': 'Account: resumed',
  'account.payment_completed': 'Account: payment completed',
  'account.payment_failed': 'Account: payment failed',
  'account.restored': 'Account: restored from a backup',
  'status.discovered': 'New status name',
  'upstream.outage': 'Ordering API: outage',
  'upstream.recovered': 'Ordering API: recovered',
  'endpoint.disabled': 'Endpoint: disabled',
  'endpoint.recovered': 'Endpoint: recovered',
  'endpoint.events_lost': 'Endpoint: events lost',
  'endpoint.event_dead': 'Endpoint: event dead',
  'jobwire.ping': 'Ping',
};

/** Groups of event types for filters, as patterns. A type may be in several groups. */
export const eventTypeGroups: readonly { readonly name: string; readonly types: readonly string[] }[] = [
  { name: 'Dispatch', types: ['job.dispatched', 'job.dispatch_revoked', 'order_group.*'] },
  { name: 'Tracking', types: ['job.tracking_*'] },
  {
    name: 'Status',
    types: [
      ...['job.status_changed', 'job.line_status_changed', 'status.discovered'],
      ...['job.needs_attention', 'job.production_started', 'job.stalled'],
    ],
  },
  { name: 'Due date', types: ['job.due_date_changed', 'job.due_soon', 'job.overdue'] },
  {
    name: 'Created and closed jobs',
    types: ['job.created', 'job.closed', 'job.cancelled', 'job.unavailable', 'job.reopened'],
  },
  { name: 'Other changes', types: ['job.updated', 'job.locked', 'job.unlocked', 'job.invoiced'] },
  {
    name: 'Problems',
    types: [
      ...['job.overdue', 'job.cancelled', 'job.unavailable', 'job.dispatch_revoked', 'job.tracking_removed'],
      ...['job.stalled', 'job.needs_attention', 'account.*', 'upstream.*', 'endpoint.*'],
    ],
  },
  { name: 'Accounts and endpoints', types: ['account.*', 'upstream.*', 'endpoint.*'] },
];

/** Returns the number of the job in the subject of an event. */
export function getJobNumber(event: JobEvent): number | undefined {
  const number = /^jobs\/(\d+)$/.exec(event.subject ?? '')?.[1];
  return number === undefined ? undefined : Number(number);
}

/** Returns external text without control characters and bidirectional formatting characters. */
export function toPlainText(value: unknown): string {
  if (value === null || value === undefined || value === '') return 'none';
  return String(value)
    .toWellFormed()
    .replace(/[\p{Cc}\p{Zl}\p{Zp}\u200e\u200f\u202a-\u202e\u2066-\u2069]+/gu, ' ');
}

/** Returns a function that creates descriptions with a tone. */
const toned =
  (tone: EventDescription['tone']) =>
  (label: string, change: Omit<EventDescription, 'label' | 'tone'> = {}): EventDescription => ({
    ...{ label, tone, ...change },
  });
const plain = toned('plain');
const good = toned('good');
const warn = toned('warn');
const bad = toned('bad');

const descriptions: { readonly [T in EventType]: (data: EventData<T>) => EventDescription } = {
  'job.created': ({ job }) =>
    plain('New job', { to: job.description === null ? undefined : toPlainText(job.description) }),
  'job.status_changed': ({ changes }) => ({ ...toChange('Status', changes.status), tone: 'plain' }),
  'job.line_status_changed': ({ lines }) => {
    const [first, ...others] = lines;
    const what = lines.length === 1 ? 'Status of a line' : `Status of ${lines.length} lines`;
    if (first && others.every(({ from, to }) => from === first.from && to === first.to))
      return { ...toChange(what, first), tone: 'plain' };
    return plain(what, { more: lines.map((line) => toChange(`Line ${line.jobLineId}`, line)) });
  },
  'job.dispatched': ({ occurredAt, late }) =>
    good(late === true ? 'Dispatched late' : 'Dispatched', { to: toPlainText(occurredAt), areDates: true }),
  'job.dispatch_revoked': ({ changes }) =>
    warn('Dispatch revoked', { from: toPlainText(changes.dateOut.from), areDates: true }),
  'job.tracking_added': ({ tracking }) => good('Tracking added', { to: joinParcels(tracking) }),
  'job.tracking_updated': ({ tracking }) => {
    const isNumber = tracking.every(({ from, to }) => from.number !== to.number);
    const isLink = tracking.every(({ from }) => from.link === null);
    const label = isNumber ? 'Tracking number added' : isLink ? 'Tracking link added' : 'Tracking updated';
    return plain(label, { to: joinParcels(tracking.map(({ to }) => to)) });
  },
  'job.tracking_removed': ({ tracking }) => warn('Tracking removed', { from: joinParcels(tracking) }),
  'job.due_date_changed': ({ changes: { dateDue, mustDate } }) => {
    const must = mustDate && {
      label: mustDate.to === true ? 'The due date is mandatory' : 'The due date is not mandatory',
    };
    if (!dateDue) return { ...(must ?? { label: 'Due date changed' }), tone: 'plain' };
    return {
      ...toChange('Due date', dateDue, true),
      tone: 'plain',
      ...(must && { more: [must] }),
    };
  },
  'job.updated': ({ changes: { lines, ...fields } }) => {
    const [first, ...more] = [
      ...Object.entries(fields).map(([field, change]) =>
        toChange(fieldNames[field] ?? field, change, field === 'dateOut'),
      ),
      ...(lines ? toLineChanges(lines) : []),
    ];
    return {
      ...(first ?? { label: 'Job updated' }),
      tone: 'plain',
      ...(more.length > 0 && { more }),
    };
  },
  'job.locked': () => plain('Locked: can no longer be edited'),
  'job.unlocked': () => plain('Unlocked: can be edited again'),
  'job.overdue': ({ job, dueAt }) =>
    warn('Overdue since', { to: toPlainText(job.dateDue ?? dueAt), areDates: true }),
  'job.due_soon': ({ job, dueAt }) =>
    plain('Due soon', { to: toPlainText(job.dateDue ?? dueAt), areDates: true }),
  'job.stalled': ({ status, workingDays }) =>
    warn(`${formatCount(workingDays, 'working day')} in status`, { to: toPlainText(status) }),
  'job.needs_attention': ({ status }) => warn('Needs attention', { to: toPlainText(status) }),
  'job.production_started': () => plain('Production started: can no longer be cancelled'),
  'job.closed': () => plain('Closed'),
  'job.cancelled': ({ jobStatus }) => warn(`Cancelled ${formatInference(jobStatus)}`),
  'job.unavailable': ({ jobStatus }) => warn(`Unavailable ${formatInference(jobStatus)}`),
  'job.reopened': ({ previousOutcome }) => plain(`Reopened; was ${previousOutcome}`),
  'job.invoiced': ({ changes: { invoiceNumber } }) =>
    plain('Invoiced', {
      from: invoiceNumber.from === null ? undefined : toPlainText(invoiceNumber.from),
      to: toPlainText(invoiceNumber.to),
    }),
  'order_group.partially_dispatched': ({ orderGroup, dispatchedCount, openCount }) =>
    plain('Order group partially dispatched', {
      to: `${toPlainText(orderGroup)} (${dispatchedCount} of ${formatCount(dispatchedCount + openCount, 'job')})`,
    }),
  'order_group.dispatched': ({ orderGroup, jobs, excludedJobs, repeated }) =>
    good(`Order group dispatched${repeated ? ' again' : ''}`, {
      to: `${toPlainText(orderGroup)} (${formatCount(jobs.length, 'job')}${excludedJobs.length > 0 ? `, ${excludedJobs.length} ended without dispatch` : ''})`,
    }),
  'account.baselined': ({ openJobs }) =>
    plain(`Baseline complete: ${formatCount(openJobs, 'open job')}; changes are emitted from now on`),
  'account.poll_failing': ({ consecutiveFailures, reason }) =>
    bad(
      `Polling failing, ${formatCount(consecutiveFailures, 'consecutive failure')}: ${toPlainText(reason)}`,
    ),
  'account.poll_recovered': ({ failedPolls }) =>
    good(`Polling recovered after ${formatCount(failedPolls, 'failed poll')}`),
  'account.credentials_rejected': ({ reason }) => bad(`Credentials rejected: ${toPlainText(reason)}`),
  'account.credentials_accepted': () => good('Credentials accepted'),
  'account.identity_mismatch': ({ expectedId, actualId }) =>
    bad(`Polling stopped: the credentials belong to another account (${actualId}, not ${expectedId})`),
  'account.quarantined': ({ suspected, contradictory }) =>
    bad(
      `Quarantined: ${formatCount(suspected + contradictory, 'job')} missing. Cancellations are not reported until the jobs return or an operator confirms that they are gone`,
    ),
  'account.resumed': ({ previousState, by }) =>
    good(
      `${previousState === 'quarantined' ? 'Quarantine ended' : 'Identity accepted'}${by === 'operator' ? ', confirmed by an operator' : ''}`,
    ),
  'account.payment_completed': ({ transaction }) =>
    good('Payment completed', { to: formatPayment(transaction) }),
  'account.payment_failed': ({ transaction }) => bad('Payment failed', { to: formatPayment(transaction) }),
  'account.restored': ({ after }) =>
    warn(`Restored from a backup: changes after ${toPlainText(after)} are emitted again`),
  'status.discovered': ({ status, previousName }) =>
    previousName === undefined
      ? plain('New status name', { to: toPlainText(status) })
      : plain('Status renamed', { from: toPlainText(previousName), to: toPlainText(status) }),
  'upstream.outage': ({ reason }) => bad(`Outage of the ordering API: ${toPlainText(reason)}`),
  'upstream.recovered': ({ durationSeconds }) =>
    good(`The ordering API recovered after ${formatDuration(durationSeconds)}`),
  'endpoint.disabled': ({ endpoint, reason }) =>
    bad(`Endpoint “${toPlainText(endpoint)}” disabled: ${toPlainText(reason)}`),
  'endpoint.recovered': ({ endpoint }) => good(`Endpoint “${toPlainText(endpoint)}” recovered`),
  'endpoint.events_lost': ({ endpoint, first, last }) =>
    bad(
      `Endpoint “${toPlainText(endpoint)}” lost ${formatCount(last - first + 1, 'event')}: expired before delivery`,
    ),
  'endpoint.event_dead': ({ endpoint, attempts, reason }) =>
    bad(
      `Endpoint “${toPlainText(endpoint)}” rejected an event on every attempt, so the event is dead (${formatCount(attempts, 'attempt')}). ${toPlainText(reason)}`,
    ),
  'jobwire.ping': ({ endpoint }) => plain(`Ping of endpoint “${toPlainText(endpoint)}”`),
};

const fieldNames: Readonly<Record<string, string>> = {
  description: 'Description',
  orderNumber: 'Order number',
  orderGroup: 'Order group',
  orderGroupSequence: 'Position in the order group',
  originCode: 'Origin',
  dateOut: 'Dispatch date',
  comments: 'Comments',
};

/** Describes removed, added and changed lines of a job. */
function toLineChanges({ from, to }: { from: LineSummary[]; to: LineSummary[] }): ValueChange[] {
  const before = new Map(from.map((line) => [line.jobLineId, line]));
  const after = new Set(to.map(({ jobLineId }) => jobLineId));
  const removed = from.filter(({ jobLineId }) => !after.has(jobLineId));
  return [
    ...removed.map((line) => ({ label: `Line ${line.jobLineId} removed`, from: formatLine(line) })),
    ...to.flatMap((line) => {
      const { jobLineId, quantity, comments } = line;
      const former = before.get(jobLineId);
      if (!former) return [{ label: `Line ${jobLineId} added`, to: formatLine(line) }];
      return [
        { label: `Quantity of line ${jobLineId}`, from: former.quantity, to: quantity },
        { label: `Comments of line ${jobLineId}`, from: former.comments, to: comments },
      ].flatMap(({ label, ...change }) => (change.from === change.to ? [] : [toChange(label, change)]));
    }),
  ];
}

function formatLine({ quantity, comments }: LineSummary): string | undefined {
  const parts = [
    ...(quantity === null ? [] : [`quantity ${quantity}`]),
    ...(comments === null ? [] : [comments]),
  ];
  return parts.length === 0 ? undefined : toPlainText(parts.join(', '));
}

function toChange(label: string, change: { from: unknown; to: unknown }, areDates = false): ValueChange {
  return {
    label,
    from: toPlainText(change.from),
    to: toPlainText(change.to),
    ...(areDates && { areDates }),
  };
}

function formatPayment(payment: EventData<'account.payment_failed'>['transaction']): string {
  const { id, amountSettlement, currencySettlement, merchantEntityType, merchantEntityId } = payment;
  const amount = [amountSettlement?.toFixed(2), currencySettlement].filter(Boolean).join(' ');
  const what = [merchantEntityType, merchantEntityId].filter((part) => part !== null).join(' ');
  return toPlainText([`${id}`, amount, what].filter(Boolean).join(', '));
}

function joinParcels(entries: readonly TrackingEntry[]): string {
  return entries.map(({ number, link }) => toPlainText(number ?? link)).join(', ');
}

/** The ordering API does not report cancellations, so they are inferred. Adds the status in the job detail. */
function formatInference(jobStatus: string | null): string {
  return jobStatus === null
    ? '(inferred)'
    : `(inferred; status in the job detail: ${toPlainText(jobStatus)})`;
}

function formatDuration(seconds: number): string {
  if (seconds < 90) return `${seconds} s`;
  const minutes = Math.round(seconds / 60);
  return minutes < 90 ? `${minutes} min` : `${Math.round(minutes / 60)} h`;
}
