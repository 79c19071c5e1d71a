// Jobs in the documented shapes of the API.

import type * as z from 'zod';
import { ActiveJob, Job, JobLine, type Permissions, Tracking } from '../../shared/ordering/contract/jobs.ts';
import { DAY_MS, startOfDay } from './dates.ts';
import { invoiceLink, previewLink } from './links.ts';
import type { AccountFacts, JobRecord } from './records.ts';
import type { Stage } from './regions.ts';

/*
 * Where the contract is silent, the sandbox chose:
 *
 * - Timestamps are local times at the location of the job, with its offset. A due date without a time of day is
 *   midnight of that day. `invoiceFile.uri` and `imageUrl` contain an expiry time, so they change.
 *   `shippedDaysToProcess` and `processingDays` have two decimals, and change until the job is dispatched.
 * - `isCancelable` is true until production starts. The status of the job (`masterJobStatus`) shows whether it has started.
 */

/** Stages in which a job can be cancelled; a name missing from the lookup counts as a later stage. */
const CANCELABLE_STAGES: readonly (Stage | undefined)[] = ['artwork', 'intake', 'scheduled', 'hold'];

/** An object of which these fields are never null. */
type Known<T, K extends keyof T> = T & { [P in K]: NonNullable<T[P]> };

/** An entry of the active job list. */
export type ActiveJobDto = Known<ActiveJob, 'permissions' | 'tracking'>;

/**
 * A job's detail; `imageUrl` of its lines carries an expiry and so changes with time. Only a world that deliberately breaks the
 * contract has jobs without a due date.
 */
export type JobDto = Omit<Known<Job, 'permissions' | 'lines' | 'shippingAddresses' | 'dateIn'>, 'dateDue'> & {
  dateDue: string | null;
};

/** Returns the fields of a record that a shape of the contract has too. */
export function selectFields<S extends z.ZodObject, R extends object>(
  { shape }: S,
  record: R,
): Pick<R, keyof R & keyof z.output<S>> {
  const selected: Partial<R> = {};
  for (const name in record) if (name in shape) selected[name] = record[name];
  return selected as R;
}

/** Converts a job to an entry of the active list at `now` (epoch ms). */
export function activeJobDto(job: JobRecord, now: number): ActiveJobDto {
  return Object.assign(selectFields(ActiveJob, job), {
    permissions: jobPermissions(job),
    shippedDaysToProcess: daysFromDue(job, now),
  });
}

/** Converts a job to its detail at `now` (epoch ms). */
export function jobDto(job: JobRecord, account: AccountFacts, now: number): JobDto {
  return {
    ...selectFields(Job, job),
    shippedDateStatus: shippedDateStatus(job, now),
    shippedDaysToProcess: daysFromDue(job, now),
    processingDays: days((job.dateOut === null ? now : job.outMs) - job.inMs),
    isCancelable: isCancelable(job, account, now),
    permissions: jobPermissions(job),
    location: job.location && { name: job.location.name, timezone: job.location.timezone },
    invoiceFile: invoiceFile(job, account, now),
    customerId: account.id,
    lines: job.lines.map((line) => ({
      ...selectFields(JobLine, line),
      imageUrl: line.image === null ? null : previewLink(account, line.image, now),
    })),
    shippingAddresses: job.tracking.map((parcel) => selectFields(Tracking, parcel)),
  };
}

/**
 * Days from the due time to dispatch, or to `now` (epoch ms) for an undispatched job; two decimals, negative if early. Null if
 * either time is unknown.
 */
export function daysFromDue(job: JobRecord, now: number): number | null {
  return days((job.dateOut === null ? now : job.outMs) - job.dueMs);
}

/** Whether a job may be amended, and why not. */
export function jobPermissions(job: JobRecord): Permissions {
  if (job.permissions) return job.permissions;
  const lockedReason =
    job.phase === 'cancelled'
      ? 'The job has been cancelled.'
      : job.phase === 'closed'
        ? 'The job is closed.'
        : job.dateOut !== null
          ? 'The job has been dispatched.'
          : null;
  return { canEdit: lockedReason === null, lockedReason };
}

/** Whether a job can be cancelled at `now` (epoch ms): its override, otherwise by stage. */
export function isCancelable(job: JobRecord, account: AccountFacts, now: number): boolean {
  if (job.isCancelable !== undefined) return job.isCancelable;
  const status = account.world.statuses(account.region, now).find(({ name }) => name === job.masterJobStatus);
  return job.phase === 'open' && job.dateOut === null && CANCELABLE_STAGES.includes(status?.stage);
}

function shippedDateStatus(job: JobRecord, now: number): string | null {
  const at = job.dateOut === null ? now : job.outMs;
  if (Number.isNaN(job.dueMs) || Number.isNaN(at)) return null;
  if (at > job.dueMs) return 'Late';
  const zone = job.location?.timezone ?? null;
  // A due date without a time passes at the next midnight: one millisecond before is still that day.
  const early = job.dateOut !== null && startOfDay(at, zone) < startOfDay(job.dueMs - 1, zone);
  return early ? 'Early' : 'On time';
}

function invoiceFile(job: JobRecord, account: AccountFacts, now: number): JobDto['invoiceFile'] {
  const { jobNumber, invoiceNumber } = job;
  if (!job.invoiceStored || (job.dateOut === null && job.phase !== 'closed')) return null;
  return invoiceNumber === null ? null : invoiceLink(account, jobNumber, invoiceNumber, now);
}

function days(ms: number): number | null {
  return Number.isNaN(ms) ? null : Math.round((ms / DAY_MS) * 100) / 100;
}
