// Creates and changes job records from the input of tests, scenarios and orders.

import { formatTimestamp, parseDue, parseTimestamp } from './dates.ts';
import type { AccountFacts, JobInput, JobLine, JobRecord, When } from './records.ts';
import type { Location } from './regions.ts';

/** A new job with default values, without dates and lines. */
export function newJob(
  jobNumber: number,
  { name, users }: AccountFacts,
  status: string,
  location: Location | null,
): JobRecord {
  return {
    jobNumber,
    phase: 'open',
    masterJobStatus: status,
    jobStatus: status,
    description: `Transfer print ${jobNumber}`,
    comments: null,
    orderNumber: `PO-${jobNumber % 10_000}`,
    originCode: 'API',
    creator: users[0]?.userName ?? null,
    userId: users[0]?.id ?? 0,
    dateIn: '',
    dateDue: null,
    dateOut: null,
    inMs: Number.NaN,
    dueMs: Number.NaN,
    outMs: Number.NaN,
    mustDate: false,
    invoiceNumber: null,
    orderGroup: null,
    orderGroupSequence: null,
    taxTotal: 0,
    isCancelable: undefined,
    permissions: undefined,
    location,
    lines: [],
    tracking: [],
    client: name,
    tags: [],
    deliveryOption: null,
    deliveryAddress: null,
    costs: null,
    shop: null,
    invoiceStored: false,
    hidden: false,
    keptListed: false,
    listOverride: undefined,
    detailOverride: undefined,
  };
}

/** Writes the fields of an input into a job. */
export function writeInput(job: JobRecord, input: JobInput, takeLineId: () => number): void {
  const { status, dateIn, dateDue, dateOut, lines, tracking } = input;
  if (status !== undefined) {
    job.masterJobStatus = status;
    job.jobStatus = status;
  }
  const fields = job as unknown as Record<string, unknown>;
  for (const key in input) {
    const value = input[key as keyof JobInput];
    if (value !== undefined && !WRITTEN_APART.has(key)) fields[key] = value;
  }
  const zone = job.location?.timezone ?? null;
  const write = (when: When) => (typeof when === 'number' ? formatTimestamp(when, zone) : when);
  const read = (when: When) => (typeof when === 'number' ? when : parseTimestamp(when, zone));
  if (dateIn !== undefined) {
    job.dateIn = write(dateIn);
    job.inMs = read(dateIn);
  }
  if (dateDue !== undefined) {
    job.dateDue = dateDue === null ? null : write(dateDue);
    job.dueMs = job.dateDue === null ? Number.NaN : parseDue(job.dateDue, zone).byMs;
  }
  if (dateOut !== undefined) {
    // A dispatch overrides `lock` and `unlock`.
    if (dateOut !== null && job.dateOut === null) job.permissions = undefined;
    job.dateOut = dateOut === null ? null : write(dateOut);
    job.outMs = dateOut === null ? Number.NaN : read(dateOut);
  }
  if (tracking) job.tracking = tracking.map((entry) => ({ ...entry }));
  if (lines) job.lines = lines.map((line, index) => newLine(job, line, index, takeLineId));
}

/** Fields of an input that are not copied unchanged. */
const WRITTEN_APART = new Set(['jobNumber', 'status', 'dateIn', 'dateDue', 'dateOut', 'lines', 'tracking']);

function newLine(job: JobRecord, line: Partial<JobLine>, index: number, takeLineId: () => number): JobLine {
  const jobLineId = line.jobLineId ?? takeLineId();
  return {
    jobLineId,
    assetSku: `AS${jobLineId}`,
    processCode: 'UC',
    garment: null,
    description: job.description,
    comments: null,
    quantity: 24,
    unitPrice: 2.4,
    customerReference: `LINE-${index + 1}`,
    image: `line-${jobLineId}`,
    gang: null,
    jobLineStatus: job.jobStatus,
    itemType: null,
    code: null,
    artworkUrl: null,
    needsArtwork: false,
    artworkTries: 0,
    artworkReason: null,
    ...line,
  };
}
