// Manual changes of jobs through the control panel.

import * as z from 'zod';
import { strictObject } from './http/faults.ts';
import type { Service } from './service.ts';
import type { SandboxAccount } from './world/world.ts';

const trackingSchema = z.array(
  z
    .strictObject({ trackingNumber: z.string().nullish(), trackingLink: z.string().nullish() })
    .transform(({ trackingNumber = null, trackingLink = null }) => ({ trackingNumber, trackingLink })),
);
const text = z.string().nullable();
/** Epoch ms of the years 1 to 9999 in every time zone, or text that is served unchanged. */
const when = z.union([
  z.number().min(Date.parse('0001-01-02T00:00:00Z')).max(Date.parse('9999-12-31T00:00:00Z')),
  z.string(),
]);
/** Part of a link, which cannot contain half of a surrogate pair. */
const invoiceNumber = z
  .string()
  .refine((number) => number.isWellFormed(), { error: 'must be a text without lone surrogates' });
const jobShape = {
  status: text.optional(),
  masterJobStatus: text.optional(),
  jobStatus: text.optional(),
  description: text.optional(),
  comments: text.optional(),
  orderNumber: text.optional(),
  originCode: text.optional(),
  creator: text.optional(),
  userId: z.int().optional(),
  dateIn: when.optional(),
  dateDue: when.nullable().optional(),
  dateOut: when.nullable().optional(),
  mustDate: z.boolean().optional(),
  invoiceNumber: invoiceNumber.nullable().optional(),
  orderGroup: text.optional(),
  orderGroupSequence: z.int().nullable().optional(),
  isCancelable: z.boolean().optional(),
  location: strictObject({ name: text, timezone: text }).nullable().optional(),
  tracking: trackingSchema.optional(),
  client: text.optional(),
  tags: z.array(z.string()).optional(),
  deliveryOption: text.optional(),
};
const jobSchema = strictObject(jobShape);

/** Fields of a new job. */
export const newJobShape = { ...jobShape, jobNumber: z.int().min(1).max(1e9).optional() };
const statusSchema = strictObject({ status: z.string().optional() });

/** Manual operations on a job: their body, and their effect. */
interface Action {
  takes: string;
  act: (account: SandboxAccount, jobNumber: number, body: Record<string, unknown>, service: Service) => void;
}

/** An action with a body of a certain form. */
const action = <Body>(
  takes: string,
  form: z.ZodType<Body>,
  act: (account: SandboxAccount, jobNumber: number, body: Body, service: Service) => void,
): Action => ({ takes, act: (account, job, body, service) => act(account, job, form.parse(body), service) });

const withStatus = (name: 'close' | 'cancel' | 'reopen'): Action =>
  action('{ status? }', statusSchema, (account, job, body) => account[name](job, body));

/** The actions by their names. */
export const JOB_ACTIONS: Record<string, Action> = {
  edit: action('{ …fields }', jobSchema, (account, job, fields) => account.edit(job, fields)),
  status: action(
    '{ status } or { master?, detail? }',
    z.strictObject({ status: text.optional(), master: text.optional(), detail: text.optional() }),
    (account, job, { status, ...parts }) => account.setStatus(job, status === undefined ? parts : status),
  ),
  'line-status': action(
    '{ line, status }',
    strictObject({ line: z.int().min(0), status: text }),
    (account, job, { line, status }) => account.setLineStatus(job, line, status),
  ),
  artwork: action(
    '{ line, url }: sets the artwork URL of a line; it is fetched immediately',
    strictObject({ line: z.int().min(0), url: z.string() }),
    (account, job, { line, url }, { ordered }) => {
      account.supplyArtwork(job, line, url);
      ordered?.(account, job);
    },
  ),
  live: {
    takes: '{}: the job proceeds automatically, as if it had been ordered now',
    act: (account, job, _, { ordered }) => ordered?.(account, job),
  },
  dispatch: action(
    '{ dateOut?, tracking?, status? }',
    z.strictObject({
      dateOut: when.optional(),
      tracking: trackingSchema.optional(),
      status: z.string().optional(),
    }),
    (account, job, body) => account.dispatch(job, body),
  ),
  'clear-date-out': { takes: '{}', act: (account, job) => account.clearDateOut(job) },
  tracking: action(
    '{ tracking: [{ trackingNumber?, trackingLink? }] }',
    strictObject({ tracking: trackingSchema }),
    (account, job, { tracking }) => account.setTracking(job, tracking),
  ),
  invoice: action(
    '{ invoiceNumber?, file? }',
    strictObject({ invoiceNumber: invoiceNumber.optional(), file: z.boolean().optional() }),
    (account, job, body) => account.invoice(job, body),
  ),
  close: withStatus('close'),
  cancel: withStatus('cancel'),
  reopen: withStatus('reopen'),
  lock: action('{ reason? }', strictObject({ reason: z.string().optional() }), (account, job, { reason }) =>
    account.lock(job, reason),
  ),
  unlock: { takes: '{}', act: (account, job) => account.unlock(job) },
  hide: { takes: '{}: removes the job from the lists', act: (account, job) => account.hide(job) },
  unhide: { takes: '{}', act: (account, job) => account.unhide(job) },
  prefix: action(
    '{ count }: creates that many jobs whose numbers begin with that of the job',
    strictObject({ count: z.int().min(1).max(10_000) }),
    (account, job, { count }) => account.createPrefixed(job, count),
  ),
  remove: { takes: '{}: deletes the job', act: (account, job) => account.remove(job) },
};
