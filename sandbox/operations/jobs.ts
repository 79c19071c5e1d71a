// Jobs: the active list, one in detail, what may be done with one, and how and when jobs go out.

/*
 * Where the contract is silent, the sandbox chose (how and when jobs go out: `delivery.ts`; lists: `joblist.ts`; detail: `views.ts`):
 *
 * - A patch is all or nothing. What is asked first: is there such a job, is it locked (the detail of the 403 is its
 *   lockedReason), is a privileged field in it, are the values right.
 * - What the body's schema refuses is a problem with `errors`; a location code, an unreadable due date and one that cannot be
 *   met are `{ isValid: false, validationMessages }` with `LocationInvalid`, `DateDueInvalid`, `DateDueTooEarly`.
 * - An empty text is a text. `locationCode: null` says nothing, so a customer may send it; only staff are privileged, an
 *   administrator is a customer. All JSON media types take the same object; an array of patch operations is refused.
 * - A due date without a time, or at a midnight of whatever offset, is that day at the job's location. It can be met from the
 *   earliest ship date of the job's processes on, or from the present due date on while that is still ahead; to repeat the
 *   present one is no change.
 * - A job that is sent to another location shows its times in that zone. A due day stays the day, an instant the instant.
 * - Cancelling takes no notice of a lock: editing and cancelling are independent. A job that is dispatched or closed answers
 *   409 like one in production. Cancelling twice changes nothing.
 */

import * as z from 'zod';
import { Problem, ValidationFailure } from '../../shared/ordering/contract/common.ts';
import {
  ActiveJobsPage,
  DeliveryOption,
  Job,
  JobPatch,
  ShipDate,
} from '../../shared/ordering/contract/jobs.ts';
import { operation } from '../http/operation.ts';
import { commaList, direction, flag, integer, oneOf, pageParameters } from '../http/parameters.ts';
import { json, jsonOr404, NO_CONTENT, problem } from '../http/responses.ts';
import { may } from '../http/roles.ts';
import { isWritable } from '../world/dates.ts';
import {
  deliveryOptionsOf,
  earliestShipDate,
  locationsOf,
  readDueDate,
  shipDate,
} from '../world/delivery.ts';
import { SORT_COLUMNS } from '../world/joblist.ts';
import type { JobRecord } from '../world/records.ts';
import type { Site } from '../world/regions.ts';
import { isCancelable, permissionsOf } from '../world/views.ts';
import type { SandboxAccount } from '../world/world.ts';
import type { ErrorCode } from './order-errors.ts';

/** Media types in which a job is ordered and amended. */
export const JOB_MEDIA_TYPES = [
  'application/json',
  'text/json',
  'application/json-patch+json',
  'application/*+json',
] as const;

const jobNumber = z.object({ jobNumber: integer });
const NO_SUCH_JOB = { description: 'There is no such job on this account.', schema: Problem };
const MAY_NOT = { description: 'The credentials may not do this.', schema: Problem };

export const jobOperations = [
  operation({
    name: 'job',
    method: 'get',
    path: '/Jobs/{jobNumber}',
    tag: 'Jobs',
    summary: 'One job in detail.',
    params: jobNumber,
    needs: 'ordering',
    answers: { 200: { description: 'The job.', schema: Job }, 403: MAY_NOT, 404: NO_SUCH_JOB },
    // Another account's job answers exactly like one that does not exist.
    handle: ({ account, params, instance }) =>
      jsonOr404(account.jobDetail(params.jobNumber), 'There is no such job.', instance),
  }),
  operation({
    name: 'patchJob',
    method: 'patch',
    path: '/Jobs/{jobNumber}',
    tag: 'Jobs',
    summary: 'Amends a job.',
    description: 'What is null or left out is left alone. Nothing is changed unless everything can be.',
    params: jobNumber,
    body: JobPatch,
    consumes: JOB_MEDIA_TYPES,
    needs: 'ordering',
    answers: {
      200: { description: 'The job as it is now.', schema: Job },
      400: {
        description: 'A value is not valid, no job can be made at the place, or the due date cannot be met.',
        schema: z.union([Problem, ValidationFailure]),
      },
      403: { description: 'The job is locked, or a field is for privileged staff only.', schema: Problem },
      404: NO_SUCH_JOB,
    },
    handle: ({ account, role, params, body, instance, now }) => {
      const job = account.job(params.jobNumber);
      if (!job) return problem(404, 'There is no such job.', instance);
      const { canEdit, lockedReason } = permissionsOf(job);
      if (!canEdit) return problem(403, lockedReason ?? 'The job is locked.', instance);
      const { locationCode, dateDue, ...fields } = withoutNulls(body);
      if (locationCode !== undefined && !may(role, 'privileged')) {
        return problem(403, 'locationCode is for privileged staff only.', instance);
      }
      const failures: ValidationFailure['validationMessages'] = [];
      const say = (errorCode: ErrorCode | 'DateDueTooEarly', message: string) =>
        failures.push({ errorCode, message });

      const place = locationCode === undefined ? placeOf(account, job) : openPlace(account, locationCode);
      if (locationCode !== undefined && !place) {
        say('LocationInvalid', 'locationCode must be the code of an active location that is not virtual.');
      }
      const zone = place?.timezone ?? job.location?.timezone ?? null;
      const asked = dateDue === undefined ? undefined : readDueDate(dateDue, zone);
      const due = asked && isWritable(asked.ms, zone, account.dateStyle) ? asked : undefined;
      if (dateDue !== undefined && !due) {
        say('DateDueInvalid', 'dateDue must be an ISO 8601 date of the years to 9999, such as 2026-11-30.');
      }
      if (due && !canMeet(account, job, due.byMs, now, place)) {
        say('DateDueTooEarly', 'The job cannot go out by then.');
      }
      if (failures.length > 0) return json({ isValid: false, validationMessages: failures }, 400);

      account.edit(job.jobNumber, fields);
      if (locationCode !== undefined && place) moveTo(account, job, place);
      if (due) account.edit(job.jobNumber, { dateDue: due.ms });
      return json(account.jobDetail(job.jobNumber));
    },
  }),
  operation({
    name: 'cancelJob',
    method: 'post',
    path: '/Jobs/{jobNumber}/cancel',
    tag: 'Jobs',
    summary: 'Cancels a job. Cancelling it again is a success.',
    params: jobNumber,
    needs: 'ordering',
    answers: {
      204: { description: 'The job is cancelled.' },
      404: NO_SUCH_JOB,
      409: { description: 'The job can no longer be cancelled.', schema: Problem },
    },
    handle: ({ account, params, instance }) => {
      const job = account.job(params.jobNumber);
      if (!job) return problem(404, 'There is no such job.', instance);
      if (job.phase === 'cancelled') return NO_CONTENT;
      if (!isCancelable(job, account)) return problem(409, 'The job can no longer be cancelled.', instance);
      account.cancel(job.jobNumber);
      return NO_CONTENT;
    },
  }),
  operation({
    name: 'activeJobs',
    method: 'get',
    path: '/Jobs/active',
    tag: 'Jobs',
    summary: 'The open jobs, page by page.',
    query: z.object({
      ...pageParameters(20, 100),
      excludeJobNumber: integer.optional(),
      searchText: z.string().optional(),
      includeClosedJobs: flag.optional(),
      sortColumn: oneOf(SORT_COLUMNS).optional(),
      sortDirection: direction.optional(),
      orderGroup: z.string().optional(),
      customerUserId: integer.optional(),
    }),
    needs: 'ordering',
    answers: { 200: { description: 'A page.', schema: ActiveJobsPage }, 403: MAY_NOT },
    handle: ({ account, query, instance }) => {
      const { page, pageSize, customerUserId } = query;
      if (customerUserId !== undefined && !account.users.some(({ id }) => id === customerUserId)) {
        const errors = { customerUserId: ['The user is not a user of the calling customer.'] };
        return problem(400, 'A parameter is not valid.', instance, errors);
      }
      const { itemsJson, totalCount } = account.listJobs(query);
      const totalPages = Math.ceil(totalCount / pageSize);
      return json(
        `{"items":${itemsJson},"totalCount":${totalCount},"pageNumber":${page},"pageSize":${pageSize},"totalPages":${totalPages},"hasPreviousPage":${page > 1},"hasNextPage":${page < totalPages}}`,
      );
    },
  }),
  operation({
    name: 'deliveryOptions',
    method: 'get',
    path: '/Jobs/delivery-options',
    tag: 'Jobs',
    summary: 'The ways of delivery.',
    needs: 'ordering',
    answers: {
      200: { description: 'All ways, in the order of their rank.', schema: z.array(DeliveryOption) },
      403: MAY_NOT,
    },
    handle: ({ account }) => json(deliveryOptionsOf(account.region)),
  }),
  operation({
    name: 'earliestShipDate',
    method: 'get',
    path: '/Jobs/earliest-ship-date',
    tag: 'Jobs',
    summary: 'The soonest day of dispatch. Not to be kept: it moves with the workload.',
    query: z.object({ processCodes: commaList.optional() }),
    takesAnything: true,
    answers: {
      200: { description: 'The day, and days without work.', schema: ShipDate },
      404: { description: 'There is no such user, or no such day.', schema: Problem },
    },
    handle: ({ account, user, query, instance, now }) => {
      if (!user) return problem(404, 'There is no such user.', instance);
      const earliest = earliestShipDate(account, query.processCodes ?? [], now);
      return jsonOr404(
        earliest && shipDate(account, earliest, now),
        'There is no day on which this could be dispatched.',
        instance,
      );
    },
  }),
];

/** The place where a job is made; undefined when it is none of the region's. */
function placeOf({ region }: SandboxAccount, { location }: JobRecord): Site | undefined {
  return locationsOf(region).find(({ name }) => name === location?.name);
}

/** The place of a code, if jobs can be made there. */
function openPlace({ region }: SandboxAccount, locationCode: string): Site | undefined {
  return locationsOf(region).find(({ code, active, virtual }) => code === locationCode && active && !virtual);
}

/** Whether a job can have left by an instant (epoch ms). What was promised before, and is still ahead, can be kept. */
function canMeet(
  account: SandboxAccount,
  job: JobRecord,
  byMs: number,
  now: number,
  place: Site | undefined,
): boolean {
  if (byMs === job.dueMs || (job.dueMs >= now && byMs >= job.dueMs)) return true;
  const processCodes = job.lines.flatMap(({ processCode }) => processCode ?? []);
  const earliest = earliestShipDate(account, processCodes, now, place);
  return earliest !== undefined && byMs >= earliest.ms;
}

/** Has a job made elsewhere: its times are shown there as they are there, a due day stays that day. */
function moveTo(account: SandboxAccount, job: JobRecord, { name, timezone }: Site): void {
  const due = job.dateDue === null ? undefined : readDueDate(job.dateDue, job.location?.timezone ?? null);
  const isDay = due !== undefined && due.ms !== due.byMs;
  const dueThere = isDay ? readDueDate(job.dateDue?.slice(0, 10) ?? '', timezone) : due;
  account.edit(job.jobNumber, {
    location: { name, timezone },
    ...(!Number.isNaN(job.inMs) && { dateIn: job.inMs }),
    ...(!Number.isNaN(job.outMs) && { dateOut: job.outMs }),
    ...(dueThere && { dateDue: dueThere.ms }),
  });
}

/** The fields that say something. */
function withoutNulls<T extends object>(fields: T): { [K in keyof T]?: NonNullable<T[K]> } {
  return Object.fromEntries(
    Object.entries(fields).filter(([, value]) => value !== null && value !== undefined),
  ) as { [K in keyof T]?: NonNullable<T[K]> };
}
