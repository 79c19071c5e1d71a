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
const when = z.union([z.number(), z.string()]);
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
  invoiceNumber: text.optional(),
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

const withStatus = (action: 'close' | 'cancel' | 'reopen'): Action => ({
  takes: '{ status? }',
  act: (account, job, body) => account[action](job, statusSchema.parse(body)),
});

/** The actions by their names. */
export const JOB_ACTIONS: Record<string, Action> = {
  edit: {
    takes: '{ …fields }',
    act: (account, job, body) => account.edit(job, jobSchema.parse(body)),
  },
  status: {
    takes: '{ status } or { master?, detail? }',
    act: (account, job, body) => {
      const { status, master, detail } = z
        .strictObject({ status: text.optional(), master: text.optional(), detail: text.optional() })
        .parse(body);
      account.setStatus(job, status === undefined ? { master, detail } : status);
    },
  },
  'line-status': {
    takes: '{ line, status }',
    act: (account, job, body) => {
      const { line, status } = strictObject({ line: z.int().min(0), status: text }).parse(body);
      account.setLineStatus(job, line, status);
    },
  },
  artwork: {
    takes: '{ line, url }: sets the artwork URL of a line; it is fetched immediately',
    act: (account, job, body, { ordered }) => {
      const { line, url } = strictObject({ line: z.int().min(0), url: z.string() }).parse(body);
      account.supplyArtwork(job, line, url);
      ordered?.(account, job);
    },
  },
  live: {
    takes: '{}: the job proceeds automatically, as if it had been ordered now',
    act: (account, job, _, { ordered }) => ordered?.(account, job),
  },
  dispatch: {
    takes: '{ dateOut?, tracking?, status? }',
    act: (account, job, body) =>
      account.dispatch(
        job,
        z
          .strictObject({
            dateOut: when.optional(),
            tracking: trackingSchema.optional(),
            status: z.string().optional(),
          })
          .parse(body),
      ),
  },
  'clear-date-out': { takes: '{}', act: (account, job) => account.clearDateOut(job) },
  tracking: {
    takes: '{ tracking: [{ trackingNumber?, trackingLink? }] }',
    act: (account, job, body) =>
      account.setTracking(job, strictObject({ tracking: trackingSchema }).parse(body).tracking),
  },
  invoice: {
    takes: '{ invoiceNumber?, file? }',
    act: (account, job, body) =>
      account.invoice(
        job,
        strictObject({ invoiceNumber: z.string().optional(), file: z.boolean().optional() }).parse(body),
      ),
  },
  close: withStatus('close'),
  cancel: withStatus('cancel'),
  reopen: withStatus('reopen'),
  lock: {
    takes: '{ reason? }',
    act: (account, job, body) =>
      account.lock(job, strictObject({ reason: z.string().optional() }).parse(body).reason),
  },
  unlock: { takes: '{}', act: (account, job) => account.unlock(job) },
  hide: { takes: '{}: removes the job from the lists', act: (account, job) => account.hide(job) },
  unhide: { takes: '{}', act: (account, job) => account.unhide(job) },
  prefix: {
    takes: '{ count }: creates that many jobs whose numbers begin with that of the job',
    act: (account, job, body) => {
      const { count } = strictObject({ count: z.int().min(1).max(10_000) }).parse(body);
      account.createPrefixed(job, count);
    },
  },
  remove: { takes: '{}: deletes the job', act: (account, job) => account.remove(job) },
};
