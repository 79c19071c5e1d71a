/**
 * A constant example of every event type: complete envelopes of one account and its orders. Only the API and the documents import
 * them; functions that write events do not.
 */
import { cellLog } from '../storage/schema.ts';
import { type EventData, type EventType, eventTypes, type JobSummary, type Observed } from './catalogue.ts';
import { type EventDraft, type JobEvent, toEvent } from './event.ts';

/** Public URL of the examples. */
export const EXAMPLE_URL = 'https://us.jobwire.example';

const URLS = { schemaBaseUrl: EXAMPLE_URL, sourceBaseUrl: EXAMPLE_URL };

const REGION = 'us';
const ACCOUNT = 'acme';
const EPOCH = 't3k9x1a2b3c4';
/** Epoch after a restore. */
const LATER_EPOCH = 't3kj0f5d6e7f';
/** Minutes from the last poll that listed a job to the second check that did not find it. */
const INVESTIGATION_MINUTES = 18;
/** Sequence of the first example. The others follow in the order of the catalogue. */
const FIRST = 1041;

/** An example of each type without its position in a log. `at` is the time of the response that showed the change. */
type Drafts = {
  readonly [T in EventType]: Omit<Extract<EventDraft, { type: T }>, 'type' | 'time'> & {
    readonly at: string;
  };
};

const job: JobSummary = {
  jobNumber: 4711,
  status: 'In production',
  description: 'Tote bags for the open day, two colours',
  orderNumber: 'PO-2281',
  orderGroup: 'SPRING-38',
  orderGroupSequence: 1,
  originCode: 'SHOP',
  dateDue: '2026-03-05T17:00:00-07:00',
  mustDate: true,
  dateOut: null,
  tracking: [],
};
const DISPATCHED_ON = '2026-03-04T15:21:00-07:00';
const parcel = {
  number: '1Z0000000000000017',
  link: 'https://carrier.example/track/1Z0000000000000017',
};
const sent: JobSummary = { ...job, status: 'Shipped', dateOut: DISPATCHED_ON };
const sentWithParcel: JobSummary = { ...sent, tracking: [parcel] };
const cancelled: JobSummary = {
  ...{ jobNumber: 4718, status: 'Awaiting artwork', description: 'Staff shirts', orderNumber: null },
  ...{ orderGroup: null, orderGroupSequence: null, originCode: 'API', dateDue: '2026-03-09T17:00:00-07:00' },
  ...{ mustDate: false, dateOut: null, tracking: [] },
};

/** Returns the evidence of a change observed at `at`. `minutes`: time since the previous observation. */
function observedAt(at: string, view: Observed['view'] = 'list', minutes = 2): Observed {
  return { at, since: new Date(Date.parse(at) - minutes * 60_000).toISOString(), view };
}

/** Returns an event about a job; `now` is its current state. No field has changed unless `rest` has `changes`. */
function about<D extends object>(
  now: JobSummary,
  at: string,
  rest: D,
  view?: Observed['view'],
  minutes?: number,
) {
  const observed = observedAt(at, view, minutes);
  return { at, jobNumber: now.jobNumber, data: { job: now, observed, changes: {}, ...rest } };
}

function aboutAccount<D extends object>(at: string, data: D) {
  return { at, data };
}

/** Returns an event about a payment. Payments are read every 15 minutes. */
function aboutPayment(at: string, transaction: EventData<'account.payment_failed'>['transaction']) {
  const { view: _, ...observed } = observedAt(at, 'list', 15);
  return { at, data: { transaction, observed } };
}

const payment = {
  ...{ id: 88121, gatewayType: 'Paygrove', transactionStatus: 'Completed' },
  ...{ createdAt: '2026-03-04T23:34:50Z', completedAt: '2026-03-04T23:35:02Z' },
  ...{ cardName: 'Visa', cardNumber: '**** 1042', currencySettlement: 'USD', amountSettlement: 184.2 },
  ...{ merchantEntityType: 'JOB', merchantEntityId: 4711 },
};
const failedPayment = {
  ...{ ...payment, id: 88120, transactionStatus: 'Failed' },
  ...{ createdAt: '2026-03-04T23:21:40Z', completedAt: null },
};

const OUTAGE_SINCE = '2026-03-03T02:10:04.512Z';
const ENDPOINT = 'erp';

const drafts: Drafts = {
  'job.created': about({ ...job, status: 'Awaiting artwork' }, '2026-03-02T16:04:11.250Z', {
    occurredAt: '2026-03-02T09:02:47-07:00',
  }),
  'job.status_changed': about(job, '2026-03-03T15:30:12.008Z', {
    changes: { status: { from: 'Awaiting artwork', to: 'In production' } },
  }),
  'job.line_status_changed': about(
    job,
    '2026-03-03T15:30:13.371Z',
    { lines: [{ jobLineId: 90211, from: 'Awaiting artwork', to: 'In production' }] },
    'detail',
  ),
  'job.dispatched': about(sent, '2026-03-04T22:22:10.640Z', {
    changes: { dateOut: { from: null, to: DISPATCHED_ON } },
    occurredAt: DISPATCHED_ON,
    zone: 'America/Denver',
    late: false,
    lateBySeconds: null,
  }),
  'job.dispatch_revoked': about(
    job,
    '2026-03-04T22:48:09.117Z',
    { changes: { dateOut: { from: DISPATCHED_ON, to: null } } },
    'detail',
  ),
  'job.tracking_added': about(sentWithParcel, '2026-03-04T23:12:14.902Z', { tracking: [parcel] }),
  'job.tracking_updated': about(sentWithParcel, '2026-03-04T23:40:12.455Z', {
    tracking: [{ from: { ...parcel, link: null }, to: parcel }],
  }),
  'job.tracking_removed': about(sent, '2026-03-05T00:04:11.783Z', { tracking: [parcel] }, 'detail'),
  'job.due_date_changed': about(job, '2026-03-03T17:02:10.334Z', {
    changes: {
      dateDue: { from: '2026-03-06T17:00:00-07:00', to: '2026-03-05T17:00:00-07:00' },
      mustDate: { from: false, to: true },
    },
  }),
  'job.updated': about(job, '2026-03-03T17:20:11.590Z', {
    changes: { orderNumber: { from: null, to: 'PO-2281' } },
  }),
  'job.locked': about(sent, '2026-03-04T22:22:10.640Z', { changes: { canEdit: { from: true, to: false } } }),
  'job.unlocked': about(job, '2026-03-04T22:48:09.117Z', {
    changes: { canEdit: { from: false, to: true } },
  }),
  'job.overdue': about(job, '2026-03-06T00:02:10.071Z', {
    dueAt: '2026-03-06T00:00:00.000Z',
    zone: '-07:00',
  }),
  'job.due_soon': about(job, '2026-03-04T00:02:10.071Z', {
    dueAt: '2026-03-06T00:00:00.000Z',
    zone: '-07:00',
  }),
  'job.stalled': about({ ...job, status: 'Scheduled' }, '2026-03-10T15:32:10.512Z', {
    ...{ status: 'Scheduled', inStatusSince: '2026-03-03T15:30:12.008Z' },
    ...{ workingDays: 5, zone: 'America/Denver' },
  }),
  'job.needs_attention': about({ ...job, status: 'Awaiting artwork' }, '2026-03-02T16:04:11.250Z', {
    status: 'Awaiting artwork',
  }),
  'job.production_started': about(
    job,
    '2026-03-03T15:30:13.371Z',
    { changes: { isCancelable: { from: true, to: false } } },
    'detail',
  ),
  'job.closed': about(sentWithParcel, '2026-03-06T18:30:14.266Z', {}, 'search'),
  'job.cancelled': about(
    cancelled,
    '2026-03-04T18:44:12.809Z',
    { inferred: true as const, jobStatus: 'Cancelled' },
    'search',
    INVESTIGATION_MINUTES,
  ),
  'job.unavailable': about(
    cancelled,
    '2026-03-04T18:44:12.809Z',
    { inferred: true as const, jobStatus: null },
    'search',
    INVESTIGATION_MINUTES,
  ),
  'job.reopened': about(cancelled, '2026-03-05T16:10:11.438Z', {
    previousOutcome: 'cancelled' as const,
  }),
  'job.invoiced': about(
    sentWithParcel,
    '2026-03-06T18:30:14.266Z',
    { changes: { invoiceNumber: { from: null, to: 'INV-50318' } } },
    'detail',
  ),
  'order_group.partially_dispatched': {
    at: '2026-03-04T20:14:09.530Z',
    data: {
      observed: observedAt('2026-03-04T20:14:09.530Z', 'search'),
      orderGroup: 'SPRING-38',
      ...{ jobs: [4712], openJobs: [4711], excludedJobs: [4713] },
      ...{ dispatchedCount: 1, openCount: 1 },
    },
  },
  'order_group.dispatched': {
    at: '2026-03-04T22:22:10.640Z',
    data: {
      observed: observedAt('2026-03-04T22:22:10.640Z', 'search'),
      orderGroup: 'SPRING-38',
      jobs: [4711, 4712],
      excludedJobs: [4713],
      repeated: false,
    },
  },
  'account.baselined': aboutAccount('2026-03-02T08:00:03.914Z', { openJobs: 184 }),
  'account.poll_failing': aboutAccount('2026-03-02T11:16:04.201Z', {
    consecutiveFailures: 3,
    reason: 'GET /Jobs/active failed: the ordering API is unavailable (503)',
  }),
  'account.poll_recovered': aboutAccount('2026-03-02T11:38:05.677Z', { failedPolls: 4 }),
  'account.credentials_rejected': aboutAccount('2026-03-03T09:00:02.345Z', {
    reason:
      'The client id or the client secret is wrong (HTTP 401). Compare both with those that the operator of the ordering API issued; only the latest secret is valid. The id and the secret are valid only in the region of the account ("us").',
  }),
  'account.credentials_accepted': aboutAccount('2026-03-03T09:32:03.120Z', {}),
  'account.identity_mismatch': aboutAccount('2026-03-03T09:34:02.986Z', {
    expectedId: 20418,
    actualId: 20977,
  }),
  'account.quarantined': aboutAccount('2026-03-03T12:08:04.433Z', {
    ...{ openJobs: 12, suspected: 171, contradictory: 0, reported: 2 },
  }),
  'account.resumed': aboutAccount('2026-03-03T12:52:03.508Z', {
    previousState: 'quarantined' as const,
    by: 'automatic' as const,
  }),
  'account.payment_completed': aboutPayment('2026-03-04T23:45:12.300Z', payment),
  'account.payment_failed': aboutPayment('2026-03-04T23:30:11.840Z', failedPayment),
  'account.restored': aboutAccount('2026-03-07T06:00:02.050Z', {
    after: `${EPOCH}.${FIRST + eventTypes.indexOf('account.restored') - 1}`,
  }),
  'status.discovered': {
    at: '2026-03-03T15:30:12.008Z',
    data: { observed: observedAt('2026-03-03T15:30:12.008Z'), status: 'In production' },
  },
  'upstream.outage': {
    at: '2026-03-03T02:14:05.330Z',
    data: {
      since: OUTAGE_SINCE,
      failedPolls: 24,
      accounts: 9,
      reason: 'GET /Jobs/active failed: the ordering API is unavailable (503)',
    },
  },
  'upstream.recovered': {
    at: '2026-03-03T02:40:04.512Z',
    data: { since: OUTAGE_SINCE, durationSeconds: 1800 },
  },
  'endpoint.disabled': {
    at: '2026-03-08T10:00:00.417Z',
    data: {
      endpoint: ENDPOINT,
      reason: 'The endpoint responded with status 410 (Gone).',
      failingSince: null,
    },
  },
  'endpoint.recovered': {
    at: '2026-03-09T07:45:30.262Z',
    data: { endpoint: ENDPOINT, disabledAt: '2026-03-08T10:00:00.417Z' },
  },
  'endpoint.events_lost': {
    at: '2026-06-02T00:15:00.731Z',
    data: { endpoint: ENDPOINT, account: ACCOUNT, first: 1041, last: 1043 },
  },
  'endpoint.event_dead': {
    at: '2026-03-08T01:57:21.058Z',
    data: {
      ...{ endpoint: ENDPOINT, account: ACCOUNT, sequence: 1044, event: `${ACCOUNT}.${EPOCH}.1044` },
      ...{ attempts: 10, reason: 'The endpoint responded with status 422.' },
    },
  },
  'jobwire.ping': { at: '2026-03-02T08:05:00.000Z', data: { endpoint: ENDPOINT } },
};

/** The example of a type, or `undefined` for a type that is not in the catalogue. */
export function getExample(type: string): JobEvent | undefined {
  const place = eventTypes.indexOf(type as EventType);
  if (place === -1) return undefined;
  const { at, ...rest } = drafts[type as EventType];
  const isOfCell = /^(upstream|endpoint|jobwire)\./.test(type);
  const draft = { ...rest, type, time: Date.parse(at) } as EventDraft;
  const ref = isOfCell ? cellLog(REGION) : { region: REGION, account: ACCOUNT };
  const epoch = type === 'account.restored' ? LATER_EPOCH : EPOCH;
  const event = toEvent(draft, ref, { epoch, sequence: FIRST + place }, URLS);
  // A ping is not recorded in a log.
  if (type !== 'jobwire.ping') return event;
  return { ...event, id: 'ping.01hqz6v3f8', sequence: '0'.repeat(20) };
}
