import { expect, test } from 'vitest';
import { describeEvent, eventTypeGroups, eventTypeLabels, getJobNumber } from '../../dashboard/src/events.ts';
import { type EventType, eventTypes } from '../../shared/events/catalogue.ts';
import type { JobEvent } from '../../shared/events/event.ts';
import { getExample } from '../../shared/events/examples.ts';
import { typeMatches } from '../../shared/events/types.ts';

/** Label, old and new value in the description of each example of the catalogue. */
const expected: { readonly [T in EventType]: readonly (string | undefined)[] } = {
  'job.created': ['New job', undefined, 'Tote bags for the open day, two colours'],
  'job.status_changed': ['Status', 'Awaiting artwork', 'In production'],
  'job.line_status_changed': ['Status of a line', 'Awaiting artwork', 'In production'],
  'job.dispatched': ['Dispatched', undefined, '2026-03-04T15:21:00-07:00'],
  'job.dispatch_revoked': ['Dispatch revoked', '2026-03-04T15:21:00-07:00'],
  'job.tracking_added': ['Tracking added', undefined, '1Z0000000000000017'],
  'job.tracking_updated': ['Tracking link added', undefined, '1Z0000000000000017'],
  'job.tracking_removed': ['Tracking removed', '1Z0000000000000017'],
  'job.due_date_changed': ['Due date', '2026-03-06T17:00:00-07:00', '2026-03-05T17:00:00-07:00'],
  'job.updated': ['Order number', 'none', 'PO-2281'],
  'job.locked': ['Locked: can no longer be edited'],
  'job.unlocked': ['Unlocked: can be edited again'],
  'job.overdue': ['Overdue since', undefined, '2026-03-05T17:00:00-07:00'],
  'job.due_soon': ['Due soon', undefined, '2026-03-05T17:00:00-07:00'],
  'job.stalled': ['5 working days in status', undefined, 'Scheduled'],
  'job.needs_attention': ['Needs attention', undefined, 'Awaiting artwork'],
  'job.production_started': ['Production started: can no longer be cancelled'],
  'job.closed': ['Closed'],
  'job.cancelled': ['Cancelled (inferred; status in the job detail: Cancelled)'],
  'job.unavailable': ['Unavailable (inferred)'],
  'job.reopened': ['Reopened; was cancelled'],
  'job.invoiced': ['Invoiced', undefined, 'INV-50318'],
  'order_group.partially_dispatched': [
    ...['Order group partially dispatched', undefined, 'SPRING-38 (1 of 2 jobs)'],
  ],
  'order_group.dispatched': [
    'Order group dispatched',
    undefined,
    'SPRING-38 (2 jobs, 1 ended without dispatch)',
  ],
  'account.baselined': ['Baseline complete: 184 open jobs; changes are emitted from now on'],
  'account.poll_failing': [
    'Polling failing, 3 consecutive failures: GET /Jobs/active failed: the ordering API is unavailable (503)',
  ],
  'account.poll_recovered': ['Polling recovered after 4 failed polls'],
  'account.credentials_rejected': [
    'Credentials rejected: The client id or the client secret is wrong (HTTP 401). Compare both with those that the operator of the ordering API issued; only the latest secret is valid. The id and the secret are valid only in the region of the account ("us").',
  ],
  'account.credentials_accepted': ['Credentials accepted'],
  'account.identity_mismatch': [
    'Polling stopped: the credentials belong to another account (20977, not 20418)',
  ],
  'account.quarantined': [
    'Quarantined: 171 jobs missing. Cancellations are not reported until the jobs return or an operator confirms that they are gone',
  ],
  'account.resumed': ['Quarantine ended'],
  'account.payment_completed': ['Payment completed', undefined, '88121, 184.20 USD, JOB 4711'],
  'account.payment_failed': ['Payment failed', undefined, '88120, 184.20 USD, JOB 4711'],
  'account.restored': [
    `Restored from a backup: changes after t3k9x1a2b3c4.${1041 + eventTypes.indexOf('account.restored') - 1} are emitted again`,
  ],
  'status.discovered': ['New status name', undefined, 'In production'],
  'upstream.outage': [
    'Outage of the ordering API: GET /Jobs/active failed: the ordering API is unavailable (503)',
  ],
  'upstream.recovered': ['The ordering API recovered after 30 min'],
  'endpoint.disabled': ['Endpoint “erp” disabled: The endpoint responded with status 410 (Gone).'],
  'endpoint.recovered': ['Endpoint “erp” recovered'],
  'endpoint.events_lost': ['Endpoint “erp” lost 3 events: expired before delivery'],
  'endpoint.event_dead': [
    'Endpoint “erp” rejected an event on every attempt, so the event is dead (10 attempts). The endpoint responded with status 422.',
  ],
  'jobwire.ping': ['Ping of endpoint “erp”'],
};

const example = (type: string): JobEvent => {
  const event = getExample(type);
  if (!event) throw new Error(`No example for ${type}.`);
  return event;
};
const withData = (type: string, data: object): JobEvent => {
  const event = example(type);
  return { ...event, data: { ...event.data, ...data } };
};

test.each(eventTypes)('describes the example of %s', (type) => {
  const { label, from, to } = describeEvent(example(type));
  expect([label, from, to]).toEqual([0, 1, 2].map((at) => expected[type][at]));
});

test('every event type has a label, and every type except pings is in a filter group', () => {
  expect(Object.keys(eventTypeLabels).sort()).toEqual([...eventTypes].sort());
  const grouped = eventTypes.filter((type) => eventTypeGroups.some(({ types }) => typeMatches(type, types)));
  expect(eventTypes.filter((type) => !grouped.includes(type))).toEqual(['jobwire.ping']);
});

test('further changes of an event are described too', () => {
  expect(describeEvent(example('job.due_date_changed')).more).toEqual([
    { label: 'The due date is mandatory' },
  ]);
  const changes = { description: { from: 'Mugs', to: 'Cups' }, dateOut: { from: null, to: '2026-03-04' } };
  expect(describeEvent(withData('job.updated', { changes }))).toEqual({
    ...{ label: 'Description', from: 'Mugs', to: 'Cups', tone: 'plain' },
    more: [{ label: 'Dispatch date', from: 'none', to: '2026-03-04', areDates: true }],
  });
  const alone = { changes: { mustDate: { from: true, to: false } } };
  expect(describeEvent(withData('job.due_date_changed', alone)).label).toBe('The due date is not mandatory');
});

test('removed, added and changed lines of a job are described one by one', () => {
  const line = (jobLineId: number, quantity: number | null, comments: string | null = null) => ({
    ...{ jobLineId, quantity, comments },
  });
  const lines = {
    from: [line(1, 5), line(2, 10), line(4, null)],
    to: [line(2, 12, 'Left'), line(3, 7, 'Sleeve')],
  };
  const { label, from, more } = describeEvent(withData('job.updated', { changes: { lines } }));
  expect([label, from]).toEqual(['Line 1 removed', 'quantity 5']);
  expect(more).toEqual([
    { label: 'Line 4 removed', from: undefined },
    { label: 'Quantity of line 2', from: '10', to: '12' },
    { label: 'Comments of line 2', from: 'none', to: 'Left' },
    { label: 'Line 3 added', to: 'quantity 7, Sleeve' },
  ]);
});

test('equal status changes of lines are described once, different ones separately', () => {
  const line = { jobLineId: 1, from: 'A', to: 'B' };
  const alike = { lines: [line, { ...line, jobLineId: 2 }] };
  const { label, from, to, more } = describeEvent(withData('job.line_status_changed', alike));
  expect([label, from, to, more]).toEqual(['Status of 2 lines', 'A', 'B', undefined]);
  const different = { lines: [line, { jobLineId: 2, from: 'A', to: 'C' }] };
  expect(describeEvent(withData('job.line_status_changed', different)).more).toEqual([
    { label: 'Line 1', from: 'A', to: 'B' },
    { label: 'Line 2', from: 'A', to: 'C' },
  ]);
});

test('external text cannot change the writing direction, and unpaired surrogates are replaced', () => {
  const job = { ...(example('job.created').data.job as object), description: '\u202Eevil\n\ud800 text' };
  expect(describeEvent(withData('job.created', { job })).to).toBe(' evil \ufffd text');
});

test('an unknown event type is described by its name', () => {
  const event = { ...example('job.closed'), type: 'job.laminated' as EventType };
  expect(describeEvent(event)).toEqual({ label: 'job.laminated', tone: 'plain' });
});

test('the job number is read from the subject of an event', () => {
  expect(getJobNumber(example('job.dispatched'))).toBe(4711);
  expect(getJobNumber(example('order_group.dispatched'))).toBeUndefined();
  expect(getJobNumber(example('account.baselined'))).toBeUndefined();
});
