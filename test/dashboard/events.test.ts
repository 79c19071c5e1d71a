import { expect, test } from 'vitest';
import { describeEvent, eventTypeGroups, eventTypeLabels, getJobNumber } from '../../dashboard/src/events.ts';
import { type EventType, eventTypes } from '../../shared/events/catalogue.ts';
import type { JobEvent } from '../../shared/events/event.ts';
import { exampleOf } from '../../shared/events/examples.ts';
import { typeMatches } from '../../shared/events/types.ts';

/** Expected description of each example of the catalogue: label, from, to. */
const descriptions: { readonly [T in EventType]: readonly (string | undefined)[] } = {
  'job.created': ['New job', undefined, 'Tote bags for the open day, two colours'],
  'job.status_changed': ['Status', 'Awaiting artwork', 'In production'],
  'job.line_status_changed': ['Status of a line', 'Awaiting artwork', 'In production'],
  'job.dispatched': ['Dispatched', undefined, '2026-03-04T15:20:00-07:00'],
  'job.dispatch_revoked': ['Dispatch taken back', '2026-03-04T15:20:00-07:00'],
  'job.tracking_added': ['Tracking added', undefined, '1Z0000000000000017'],
  'job.tracking_updated': ['Tracking link added', undefined, '1Z0000000000000017'],
  'job.tracking_removed': ['Tracking taken back', '1Z0000000000000017'],
  'job.due_date_changed': ['Due date', '2026-03-06T17:00:00-07:00', '2026-03-05T17:00:00-07:00'],
  'job.updated': ['Order number', 'none', 'PO-2281'],
  'job.locked': ['Locked: it can no longer be edited'],
  'job.unlocked': ['Unlocked: it can be edited again'],
  'job.overdue': ['Overdue, was due', undefined, '2026-03-05T17:00:00-07:00'],
  'job.closed': ['Closed'],
  'job.cancelled': ['Cancelled (inferred; its record says Cancelled)'],
  'job.unavailable': ['No longer known to the ordering service (inferred)'],
  'job.reopened': ['Open again; was said to be cancelled'],
  'job.invoiced': ['Invoiced', undefined, 'INV-50318'],
  'order_group.dispatched': ['Order group dispatched', undefined, 'SPRING-38 (2 jobs, 1 gone)'],
  'account.baselined': ['Tracking begins: 184 open jobs known'],
  'account.poll_failing': [
    'Polling fails, 3 times in a row: GET /Jobs/active failed, the service is not available (503)',
  ],
  'account.poll_recovered': ['Polling works again after 11 failed polls'],
  'account.credentials_rejected': [
    'Credentials refused: POST /protocol/openid-connect/token failed, the token endpoint refused the credentials (401)',
  ],
  'account.credentials_accepted': ['Credentials accepted again'],
  'account.identity_mismatch': [
    'Polling stopped: the credentials belong to another account (20977, not 20418)',
  ],
  'account.quarantined': [
    '171 jobs seem to be gone at once: not believed until they are back or somebody confirms',
  ],
  'account.resumed': ['Missing jobs are no longer in doubt'],
  'account.restored': [
    `Restored from a backup: what came after t3k9x1a2b3c4.${1041 + eventTypes.indexOf('account.restored') - 1} is said anew`,
  ],
  'status.discovered': ['New status name', undefined, 'In production'],
  'upstream.outage': [
    'The ordering service fails: GET /Jobs/active failed, the service is not available (503)',
  ],
  'upstream.recovered': ['The ordering service answers again after 30 min'],
  'endpoint.disabled': ['Endpoint erp gets no more events: The endpoint answered 410: it is gone for good.'],
  'endpoint.recovered': ['Endpoint erp takes events again'],
  'endpoint.events_lost': ['Endpoint erp missed 3 events: too old to be kept'],
  'endpoint.event_dead': [
    'Endpoint erp refused an event for good after 12 attempts: The endpoint answered 422.',
  ],
  'jobwire.ping': ['Test of endpoint erp'],
};

const example = (type: string): JobEvent => {
  const event = exampleOf(type);
  if (!event) throw new Error(`There is no example of ${type}.`);
  return event;
};
const withData = (type: string, data: object): JobEvent => {
  const event = example(type);
  return { ...event, data: { ...event.data, ...data } };
};

test.each(eventTypes)('%s has a description', (type) => {
  const { label: what, from, to } = describeEvent(example(type));
  expect([what, from, to]).toEqual([0, 1, 2].map((at) => descriptions[type][at]));
});

test('every type has a label, and all but pings are in a group', () => {
  expect(Object.keys(eventTypeLabels).sort()).toEqual([...eventTypes].sort());
  const grouped = eventTypes.filter((type) => eventTypeGroups.some(({ types }) => typeMatches(type, types)));
  expect(eventTypes.filter((type) => !grouped.includes(type))).toEqual(['jobwire.ping']);
});

test('further changed fields are listed', () => {
  expect(describeEvent(example('job.due_date_changed')).more).toEqual([
    { label: 'The due date must be met' },
  ]);
  const changes = { description: { from: 'Mugs', to: 'Cups' }, dateOut: { from: null, to: '2026-03-04' } };
  expect(describeEvent(withData('job.updated', { changes }))).toEqual({
    ...{ label: 'Description', from: 'Mugs', to: 'Cups', tone: 'plain' },
    more: [{ label: 'Dispatch date', from: 'none', to: '2026-03-04', areDates: true }],
  });
  const alone = { changes: { mustDate: { from: true, to: false } } };
  expect(describeEvent(withData('job.due_date_changed', alone)).label).toBe('The due date need not be met');
});

test('lines with the same change are listed once, others separately', () => {
  const line = { jobLineId: 1, from: 'A', to: 'B' };
  const alike = { lines: [line, { ...line, jobLineId: 2 }] };
  const { label: what, from, to, more } = describeEvent(withData('job.line_status_changed', alike));
  expect([what, from, to, more]).toEqual(['Status of 2 lines', 'A', 'B', undefined]);
  const different = { lines: [line, { jobLineId: 2, from: 'A', to: 'C' }] };
  expect(describeEvent(withData('job.line_status_changed', different)).more).toEqual([
    { label: 'Line 1', from: 'A', to: 'B' },
    { label: 'Line 2', from: 'A', to: 'C' },
  ]);
});

test('customer text cannot change the direction of adjacent text, and lone surrogates are harmless', () => {
  const job = { ...(example('job.created').data.job as object), description: '\u202Eevil\n\ud800 text' };
  expect(describeEvent(withData('job.created', { job })).to).toBe(' evil \ufffd text');
});

test('a type from a newer service is called by its name', () => {
  const event = { ...example('job.closed'), type: 'job.laminated' as EventType };
  expect(describeEvent(event)).toEqual({ label: 'job.laminated', tone: 'plain' });
});

test('the job of an event is known by its subject', () => {
  expect(getJobNumber(example('job.dispatched'))).toBe(4711);
  expect(getJobNumber(example('order_group.dispatched'))).toBeUndefined();
  expect(getJobNumber(example('account.baselined'))).toBeUndefined();
});
