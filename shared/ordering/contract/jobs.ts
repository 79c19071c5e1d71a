/**
 * Jobs of the ordering API, and their changeable fields. Requests that create a job are in
 * `./candidates.ts`.
 */
import * as z from 'zod';
import { money, pageSchema, text, timestamp } from './common.ts';

/** Whether a job may be amended, and if not, the reason. Independent of whether it can be cancelled. */
export const Permissions = z
  .strictObject({
    canEdit: z.boolean(),
    lockedReason: text.describe('Null while editable.'),
  })
  .meta({ id: 'Permissions' });
/** Permissions in a response. */
export type Permissions = z.infer<typeof Permissions>;

/** A parcel. */
export const Tracking = z
  .strictObject({
    trackingNumber: text,
    trackingLink: text.describe('Null when the carrier gives none.'),
  })
  .meta({ id: 'Tracking' });
/** A parcel in a response. */
export type Tracking = z.infer<typeof Tracking>;

/** An entry of the active list. */
export const ActiveJob = z
  .strictObject({
    permissions: Permissions.nullable(),
    jobNumber: z.int(),
    masterJobStatus: text,
    originCode: text,
    description: text,
    mustDate: z.boolean(),
    dateDue: timestamp.nullable(),
    dateOut: timestamp.nullable(),
    shippedDaysToProcess: z.number().nullable().describe('Negative is early, positive is late.'),
    orderNumber: text,
    orderGroup: text,
    orderGroupSequence: z.int().nullable(),
    tracking: z.array(Tracking).nullable().describe('Empty when there is none.'),
  })
  .meta({ id: 'ActiveJobDto' });
/** An entry in a response. */
export type ActiveJob = z.infer<typeof ActiveJob>;

/** A page of the active list. */
export const ActiveJobsPage = pageSchema(ActiveJob, 'ActiveJobsPage');
/** A page in a response. */
export type ActiveJobsPage = z.infer<typeof ActiveJobsPage>;

/** A line of a job. */
export const JobLine = z
  .strictObject({
    jobLineId: z.int(),
    assetSku: text,
    processCode: text,
    garment: text,
    description: text,
    comments: text,
    quantity: z.int(),
    unitPrice: money,
    customerReference: text,
    imageUrl: text,
    gang: text,
    jobLineStatus: text.describe('Status name. Lines and jobs have the same status names.'),
  })
  .meta({ id: 'JobLineDto' });
/** A line in a response. */
export type JobLine = z.infer<typeof JobLine>;

/** Detail of a job. */
export const Job = z
  .strictObject({
    jobNumber: z.int(),
    description: text,
    comments: text,
    orderNumber: text,
    jobStatus: text,
    dateDue: timestamp,
    mustDate: z.boolean().describe('The due date must be met.'),
    creator: text,
    invoiceNumber: text.describe('Set once invoiced.'),
    orderGroup: text,
    orderGroupSequence: z.int().nullable(),
    dateIn: timestamp.nullable().describe('Time of creation.'),
    dateOut: timestamp.nullable().describe('Time of dispatch.'),
    shippedDateStatus: text.describe('Early, on time or late, as text.'),
    shippedDaysToProcess: z
      .number()
      .nullable()
      .describe('Days against the due date: negative is early, positive is late.'),
    processingDays: z.number().nullable().describe('Days from creation to shipping.'),
    taxTotal: money.nullable().describe('Tax of all lines.'),
    isCancelable: z.boolean(),
    permissions: Permissions.nullable(),
    location: z.strictObject({ name: text, timezone: text.describe('IANA name.') }).nullable(),
    invoiceFile: z
      .strictObject({ uri: text, uriExpires: timestamp.nullable() })
      .nullable()
      .describe('Only once dispatched or closed and an invoice is stored. The link expires.'),
    customerId: z.int(),
    lines: z.array(JobLine).nullable(),
    shippingAddresses: z.array(Tracking).nullable(),
  })
  .meta({ id: 'JobDto' });
/** A job in a response. */
export type Job = z.infer<typeof Job>;

/** Amendable fields. Fields that are `null` or absent stay unchanged. */
export const JobPatch = z
  .object({
    description: text.optional(),
    comments: text.optional(),
    orderNumber: text.optional(),
    mustDate: z.boolean().nullable().optional(),
    dateDue: timestamp.nullable().optional().describe('Rejected, not moved, if it cannot be met.'),
    locationCode: text.optional().describe('For privileged staff only.'),
  })
  .meta({ id: 'PatchJobDto' });
/** A patch in a request. */
export type JobPatch = z.infer<typeof JobPatch>;

/** A delivery method. */
export const DeliveryOption = z
  .strictObject({
    code: text.describe('Value for `deliveryAddress.deliveryMethod`.'),
    label: text.describe('For display; not sent back.'),
    isCollection: z.boolean(),
    rank: z.int().describe('Ascending order of display.'),
    gangRank: z.int().describe('Order of display for gang sheets.'),
    value: text.describe('The same as `code`.'),
    deliveryLabelEnabled: z.boolean(),
  })
  .meta({ id: 'DeliveryOption' });
/** A delivery option in a response. */
export type DeliveryOption = z.infer<typeof DeliveryOption>;

/** Earliest dispatch date. Computed per request, do not cache. */
export const ShipDate = z
  .strictObject({
    shippingDateUtc: timestamp,
    shippingDateLocal: timestamp,
    timezone: text.describe('IANA name.'),
    dateExclusions: z
      .array(
        z.strictObject({
          dateFrom: z.string().describe('A day.'),
          dateTo: z.string().describe('A day.'),
        }),
      )
      .nullable()
      .describe('Holidays and days without work.'),
  })
  .meta({ id: 'ShipDate' });
/** A ship date in a response. */
export type ShipDate = z.infer<typeof ShipDate>;
