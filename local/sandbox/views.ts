// What the service shows of the world: the documented shapes of jobs, accounts and users.

import { startOfDay } from './dates.ts';
import type { Stage } from './regions.ts';
import type { JobRecord, SandboxAccount, SandboxUser, TrackingEntry } from './world.ts';

const DAY_MS = 86_400_000;
const QUARTER_HOUR_MS = 900_000;
/** Past these a job can be neither cancelled nor taken out of the queue; a name the lookup lacks counts as past. */
const CANCELABLE_STAGES: readonly (Stage | undefined)[] = ['artwork', 'intake', 'scheduled', 'hold'];

/** Whether a job may be amended, and if not, why. */
interface PermissionsDto {
  canEdit: boolean;
  lockedReason: string | null;
}

/** An entry of the active job list. */
export interface ActiveJobDto {
  permissions: PermissionsDto;
  jobNumber: number;
  masterJobStatus: string | null;
  originCode: string | null;
  description: string | null;
  mustDate: boolean;
  dateDue: string | null;
  dateOut: string | null;
  shippedDaysToProcess: number | null;
  orderNumber: string | null;
  orderGroup: string | null;
  orderGroupSequence: number | null;
  tracking: TrackingEntry[];
}

/** A line of a job's detail; `imageUrl` carries an expiry and so changes with time. */
interface JobLineDto {
  jobLineId: number;
  assetSku: string | null;
  processCode: string | null;
  garment: string | null;
  description: string | null;
  comments: string | null;
  quantity: number;
  unitPrice: number;
  customerReference: string | null;
  imageUrl: string | null;
  gang: string | null;
  jobLineStatus: string | null;
}

/** A job's detail. */
export interface JobDto {
  jobNumber: number;
  description: string | null;
  comments: string | null;
  orderNumber: string | null;
  jobStatus: string | null;
  dateDue: string | null;
  mustDate: boolean;
  creator: string | null;
  invoiceNumber: string | null;
  orderGroup: string | null;
  orderGroupSequence: number | null;
  dateIn: string | null;
  dateOut: string | null;
  shippedDateStatus: string | null;
  shippedDaysToProcess: number | null;
  processingDays: number | null;
  taxTotal: number | null;
  isCancelable: boolean;
  permissions: PermissionsDto;
  location: { name: string | null; timezone: string | null } | null;
  invoiceFile: { uri: string | null; uriExpires: string | null } | null;
  customerId: number;
  lines: JobLineDto[];
  shippingAddresses: TrackingEntry[];
}

/** Shows a job as an entry of the active list at `now` (epoch ms). */
export function activeJobDto(job: JobRecord, now: number): ActiveJobDto {
  return {
    permissions: permissions(job),
    jobNumber: job.jobNumber,
    masterJobStatus: job.masterJobStatus,
    originCode: job.originCode,
    description: job.description,
    mustDate: job.mustDate,
    dateDue: job.dateDue,
    dateOut: job.dateOut,
    shippedDaysToProcess: daysFromDue(job, now),
    orderNumber: job.orderNumber,
    orderGroup: job.orderGroup,
    orderGroupSequence: job.orderGroupSequence,
    tracking: job.tracking,
  };
}

/** Shows a job's detail at `now` (epoch ms). */
export function jobDto(job: JobRecord, account: SandboxAccount, now: number): JobDto {
  return {
    jobNumber: job.jobNumber,
    description: job.description,
    comments: job.comments,
    orderNumber: job.orderNumber,
    jobStatus: job.jobStatus,
    dateDue: job.dateDue,
    mustDate: job.mustDate,
    creator: job.creator,
    invoiceNumber: job.invoiceNumber,
    orderGroup: job.orderGroup,
    orderGroupSequence: job.orderGroupSequence,
    dateIn: job.dateIn,
    dateOut: job.dateOut,
    shippedDateStatus: shippedDateStatus(job, now),
    shippedDaysToProcess: daysFromDue(job, now),
    processingDays: days((job.dateOut === null ? now : job.outMs) - job.inMs),
    taxTotal: job.taxTotal,
    isCancelable: job.isCancelable ?? isCancelable(job, account),
    permissions: permissions(job),
    location: job.location && { ...job.location },
    invoiceFile: invoiceFile(job, now),
    customerId: account.id,
    lines: job.lines.map(({ image, gang, jobLineStatus, ...line }) => ({
      ...line,
      imageUrl: image === null ? null : imageUrl(image, now),
      gang,
      jobLineStatus,
    })),
    shippingAddresses: job.tracking.map(({ trackingLink, trackingNumber }) => ({
      trackingLink,
      trackingNumber,
    })),
  };
}

/**
 * Days from the due instant to dispatch, or to `now` (epoch ms) until then; two decimals, negative is early. It drifts by
 * itself while a job is open. Null when either instant is unknown.
 */
export function daysFromDue(job: JobRecord, now: number): number | null {
  return days((job.dateOut === null ? now : job.outMs) - job.dueMs);
}

/** The account profile as `GET /account` shows it. */
export function accountProfile(account: SandboxAccount) {
  return {
    id: account.id,
    name: account.name,
    priceTierCode: 'T2',
    currency: { us: 'USD', nz: 'NZD', au: 'AUD', uk: 'GBP', eu: 'EUR' }[account.region],
    taxRateType: null,
    taxRate: null,
    taxSystemTaxExempt: false,
    taxSystemTaxExemptReason: null,
    showPayNow: false,
    creditCardRequired: false,
    shipmentCarriersCSV: null,
    excludeShipmentsCsv: null,
    courierAccountCode: null,
    courierSiteID: null,
    crmId: null,
    accountManagerName: 'Sam Keeper',
    accountManagerEmail: 'sam.keeper@transfers.example',
    tierLast12Months: null,
    paymentTermDays: 20,
    paymentTermType: null,
    entityAddress: null,
    taxCertificates: [],
    paymentMode: null,
    paymentMethods: [],
  };
}

/** A user in full, as `GET /account/user` shows the calling one. */
export function userProfile(account: SandboxAccount, user: SandboxUser) {
  return {
    id: user.id,
    guid: `00000000-0000-4000-8000-${String(user.id).padStart(12, '0')}`,
    customerId: account.id,
    customerName: account.name,
    userName: user.userName,
    firstName: user.firstName,
    lastName: user.lastName,
    emailAddress: user.emailAddress,
    active: user.active,
    phone: null,
    mobile: user.mobile,
    streetAddress: null,
    addressLine2: null,
    suburb: null,
    city: null,
    state: null,
    postalCode: null,
    country: null,
    locationID: null,
    locationName: null,
    defaultPage: null,
    orderNumberPrefix: null,
    receiveEmails: user.receiveEmails,
    promotionRecipient: false,
    receiveInvoice: true,
    receiveInwards: false,
    textNotifyProof: false,
    textNotifyDispatch: user.textNotifyDispatch,
    usernameLoginOnly: false,
    lastLogin: null,
    loginCount: 0,
  };
}

function permissions(job: JobRecord): PermissionsDto {
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

function isCancelable(job: JobRecord, account: SandboxAccount): boolean {
  const status = account.world.statuses(account.region).find(({ name }) => name === job.masterJobStatus);
  return job.phase === 'open' && job.dateOut === null && CANCELABLE_STAGES.includes(status?.stage);
}

function shippedDateStatus(job: JobRecord, now: number): string | null {
  const at = job.dateOut === null ? now : job.outMs;
  if (Number.isNaN(job.dueMs) || Number.isNaN(at)) return null;
  if (at > job.dueMs) return 'Late';
  const zone = job.location?.timezone ?? null;
  // The due instant of a date without a time is the next midnight: a millisecond before it is that day.
  const early = job.dateOut !== null && startOfDay(at, zone) < startOfDay(job.dueMs - 1, zone);
  return early ? 'Early' : 'On time';
}

function invoiceFile(job: JobRecord, now: number): JobDto['invoiceFile'] {
  if (!job.invoiceStored || (job.dateOut === null && job.phase !== 'closed')) return null;
  const expires = now + QUARTER_HOUR_MS;
  return {
    uri: `https://files.transfers.example/invoices/${job.invoiceNumber}.pdf?expires=${expires}`,
    uriExpires: new Date(expires).toISOString(),
  };
}

function imageUrl(image: string, now: number): string {
  const expires = Math.floor(now / QUARTER_HOUR_MS) * QUARTER_HOUR_MS + 4 * QUARTER_HOUR_MS;
  return `https://files.transfers.example/previews/${image}.png?expires=${expires}`;
}

function days(ms: number): number | null {
  return Number.isNaN(ms) ? null : Math.round((ms / DAY_MS) * 100) / 100;
}
