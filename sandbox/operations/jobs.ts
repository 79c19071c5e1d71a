// Jobs: the active list, the detail, changes, and dispatch dates.

/*
 * Where the contract is silent, the sandbox chose (dispatch dates: `delivery.ts`; lists: `joblist.ts`; detail: `views.ts`):
 *
 * - The checks of a patch run in this order: whether the job exists, whether it is locked, whether privileged fields
 *   are allowed, and whether the values are valid. The `detail` of the 403 for a locked job is its `lockedReason`.
 * - A body that the schema rejects, such as an array of patch operations, results in a problem with `errors`. An
 *   unknown location code, an invalid due date and a due date that is too early result in
 *   `{ isValid: false, validationMessages }` with `LocationInvalid`, `DateDueInvalid` or `DateDueTooEarly`.
 * - An empty string in a patch becomes the value of the field. Administrators may not set `locationCode`. Everyone may
 *   send `locationCode: null`, which changes nothing.
 * - A due date without a time, or at midnight of its offset, includes the whole day at the location of the job. The
 *   earliest possible due date is the ship date of the processes of the job, or the current due date if that is in the
 *   future and earlier.
 * - If a job moves to another location, its times are returned in the time zone of that location. A due date without a
 *   time keeps its day. A due date with a time of day stays the same point in time.
 * - A locked job can be cancelled. The cancellation of a job that is in production, dispatched or closed results in
 *   409. The cancellation of a cancelled job changes nothing.
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
import { createOperationFactory } from '../http/operation.ts';
import { commaList, direction, enumParameter, flag, integer, pageParameters } from '../http/parameters.ts';
import { json, jsonOr404, NO_CONTENT, problem } from '../http/responses.ts';
import { hasRight } from '../http/roles.ts';
import { isWritable } from '../world/dates.ts';
import {
  earliestShipDate,
  listDeliveryOptions,
  listLocations,
  parseDueDate,
  shipDate,
} from '../world/delivery.ts';
import { SORT_COLUMNS } from '../world/joblist.ts';
import type { JobRecord } from '../world/records.ts';
import type { Site } from '../world/regions.ts';
import { isCancelable, jobPermissions } from '../world/views.ts';
import type { SandboxAccount } from '../world/world.ts';
import type { ErrorCode } from './order-errors.ts';

/** Media types in which a job is ordered and amended. */
const operation = createOperationFactory('Jobs');

export const JOB_MEDIA_TYPES = [
  'application/json',
  'text/json',
  'application/json-patch+json',
  'application/*+json',
] as const;

const jobNumber = z.object({ jobNumber: integer });
const NO_SUCH_JOB = { description: 'The account has no such job.' };

export const jobOperations = [
  operation({
    name: 'job',
    path: '/Jobs/{jobNumber}',
    summary: 'One job in detail.',
    params: jobNumber,
    needs: 'ordering',
    answers: { 200: { description: 'The job.', schema: Job }, 404: NO_SUCH_JOB },
    // Jobs of other accounts answer exactly like unknown ones.
    handle: ({ account, params, instance, now }) =>
      jsonOr404(account.jobDetail(params.jobNumber, now), 'The job does not exist.', instance),
  }),
  operation({
    name: 'patchJob',
    method: 'patch',
    path: '/Jobs/{jobNumber}',
    summary: 'Amends a job.',
    description: 'Null and absent fields stay unchanged. The change is atomic.',
    params: jobNumber,
    body: JobPatch,
    consumes: JOB_MEDIA_TYPES,
    needs: 'ordering',
    answers: {
      200: { description: 'The changed job.', schema: Job },
      400: {
        description: 'A value is invalid, the location cannot produce jobs, or the due date cannot be met.',
        schema: z.union([Problem, ValidationFailure]),
      },
      403: { description: 'The job is locked, or a field is for privileged staff only.' },
      404: NO_SUCH_JOB,
    },
    handle: ({ account, role, params, body, instance, now }) => {
      const job = account.job(params.jobNumber);
      if (!job) return problem(404, 'The job does not exist.', instance);
      const { canEdit, lockedReason } = jobPermissions(job);
      if (!canEdit) return problem(403, lockedReason ?? 'The job is locked.', instance);
      const { locationCode, dateDue, ...fields } = withoutNulls(body);
      if (locationCode !== undefined && !hasRight(role, 'privileged')) {
        return problem(403, 'locationCode is for privileged staff only.', instance);
      }
      const failures: ValidationFailure['validationMessages'] = [];
      const report = (errorCode: ErrorCode | 'DateDueTooEarly', message: string) =>
        failures.push({ errorCode, message });

      const place = locationCode === undefined ? findSite(account, job) : openPlace(account, locationCode);
      if (locationCode !== undefined && !place) {
        report('LocationInvalid', 'locationCode must be the code of an active location that is not virtual.');
      }
      const zone = place?.timezone ?? job.location?.timezone ?? null;
      const requested = dateDue === undefined ? undefined : parseDueDate(dateDue, zone);
      const due = requested && isWritable(requested.ms, zone) ? requested : undefined;
      if (dateDue !== undefined && !due) {
        report('DateDueInvalid', 'dateDue must be an ISO 8601 date up to the year 9999, such as 2026-11-30.');
      }
      if (due && !canMeet(account, job, due.byMs, now, place)) {
        report('DateDueTooEarly', 'The job cannot go out by then.');
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
    summary: 'Cancels a job. Cancelling it again succeeds.',
    params: jobNumber,
    needs: 'ordering',
    answers: {
      204: { description: 'The job is cancelled.' },
      404: NO_SUCH_JOB,
      409: { description: 'The job can no longer be cancelled.' },
    },
    handle: ({ account, params, instance, now }) => {
      const job = account.job(params.jobNumber);
      if (!job) return problem(404, 'The job does not exist.', instance);
      if (job.phase === 'cancelled') return NO_CONTENT;
      if (!isCancelable(job, account, now))
        return problem(409, 'The job can no longer be cancelled.', instance);
      account.cancel(job.jobNumber);
      return NO_CONTENT;
    },
  }),
  operation({
    name: 'activeJobs',
    path: '/Jobs/active',
    summary: 'The open jobs, page by page.',
    query: z.object({
      ...pageParameters(20, 100),
      excludeJobNumber: integer.optional(),
      searchText: z.string().optional(),
      includeClosedJobs: flag.optional(),
      sortColumn: enumParameter(SORT_COLUMNS).optional(),
      sortDirection: direction.optional(),
      orderGroup: z.string().optional(),
      customerUserId: integer.optional(),
    }),
    needs: 'ordering',
    answers: { 200: { description: 'A page.', schema: ActiveJobsPage } },
    handle: ({ account, query, instance, now }) => {
      const { page, pageSize, customerUserId } = query;
      if (customerUserId !== undefined && !account.users.some(({ id }) => id === customerUserId)) {
        const errors = { customerUserId: ['The user is not a user of the calling customer.'] };
        return problem(400, 'A parameter is not valid.', instance, errors);
      }
      const { itemsJson, totalCount } = account.listJobs(query, now);
      const totalPages = Math.ceil(totalCount / pageSize);
      return json(
        `{"items":${itemsJson},"totalCount":${totalCount},"pageNumber":${page},"pageSize":${pageSize},"totalPages":${totalPages},"hasPreviousPage":${page > 1},"hasNextPage":${page < totalPages}}`,
      );
    },
  }),
  operation({
    name: 'deliveryOptions',
    path: '/Jobs/delivery-options',
    summary: 'The delivery options.',
    needs: 'ordering',
    answers: {
      200: { description: 'All delivery options, sorted by rank.', schema: z.array(DeliveryOption) },
    },
    handle: ({ account }) => json(listDeliveryOptions(account.region)),
  }),
  operation({
    name: 'earliestShipDate',
    path: '/Jobs/earliest-ship-date',
    summary: 'The earliest dispatch date. It changes with the workload, so do not cache it.',
    query: z.object({ processCodes: commaList.optional() }),
    takesAnything: true,
    answers: {
      200: { description: 'The dispatch date, and the days without work.', schema: ShipDate },
      404: { description: 'The user does not exist, or there is no possible dispatch date.' },
    },
    handle: ({ account, user, query, instance, now }) => {
      if (!user) return problem(404, 'The user does not exist.', instance);
      const earliest = earliestShipDate(account, query.processCodes ?? [], now);
      return jsonOr404(
        earliest && shipDate(account, earliest, now),
        'No dispatch is possible within half a year.',
        instance,
      );
    },
  }),
];

/** The location that produces a job; undefined if it is not one of the region's. */
function findSite({ region }: SandboxAccount, { location }: JobRecord): Site | undefined {
  return listLocations(region).find(({ name }) => name === location?.name);
}

/** The location of a code, if it can produce jobs. */
function openPlace({ region }: SandboxAccount, locationCode: string): Site | undefined {
  return listLocations(region).find(
    ({ code, active, virtual }) => code === locationCode && active && !virtual,
  );
}

/** Whether a job can be dispatched by a time (epoch ms). A current due date in the future can always be kept. */
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

/** Moves a job to another location: its times change to that zone, a due day stays the same day. */
function moveTo(account: SandboxAccount, job: JobRecord, { name, timezone }: Site): void {
  const due = job.dateDue === null ? undefined : parseDueDate(job.dateDue, job.location?.timezone ?? null);
  const isDay = due !== undefined && due.ms !== due.byMs;
  const dueThere = isDay ? parseDueDate(job.dateDue?.slice(0, 10) ?? '', timezone) : due;
  account.edit(job.jobNumber, {
    location: { name, timezone },
    ...(!Number.isNaN(job.inMs) && { dateIn: job.inMs }),
    ...(!Number.isNaN(job.outMs) && { dateOut: job.outMs }),
    ...(dueThere && { dateDue: dueThere.ms }),
  });
}

/** The fields that are not null. */
function withoutNulls<T extends object>(fields: T): { [K in keyof T]?: NonNullable<T[K]> } {
  return Object.fromEntries(
    Object.entries(fields).filter(([, value]) => value !== null && value !== undefined),
  ) as { [K in keyof T]?: NonNullable<T[K]> };
}
