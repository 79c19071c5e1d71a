// An account's job list, kept sorted and serialized: a page of 20,000 jobs costs little more than its bytes.

import { findDeliveryOption } from './delivery.ts';
import type { PastJob, Place } from './history.ts';
import type { JobRecord } from './records.ts';
import type { RegionCode } from './regions.ts';
import { activeJobDto, daysFromDue } from './views.ts';

/*
 * Where the contract is silent, the sandbox chose:
 *
 * - A page after the last page is empty, with the status 200.
 * - `searchText` is split into words at blanks. A job matches if its fields contain each word, at the start of a field
 *   or after a blank or a punctuation mark. So `po-4` and `4411` find `PO-4411`. Case is ignored.
 * - `orderGroup` must match exactly. `sortColumn` accepts the names of the fields of the list that are not objects or
 *   arrays. The default direction is descending, except for `orderGroupSequence`. Jobs with equal values are sorted
 *   newest first.
 * - A dispatched job stays in the list of active jobs until it is closed, unless `leavesListOnDispatch` is set.
 */

/** Columns by which the active list can be sorted. */
export const SORT_COLUMNS = [
  'jobNumber',
  'masterJobStatus',
  'originCode',
  'description',
  'mustDate',
  'dateDue',
  'dateOut',
  'shippedDaysToProcess',
  'orderNumber',
  'orderGroup',
  'orderGroupSequence',
] as const;

/** A column of the active list. */
type SortColumn = (typeof SORT_COLUMNS)[number];

/** A question to the job list; `page` is 1-based. */
export interface JobsQuery {
  page: number;
  pageSize: number;
  excludeJobNumber?: number;
  searchText?: string;
  includeClosedJobs?: boolean;
  sortColumn?: SortColumn;
  sortDirection?: 'ascending' | 'descending';
  orderGroup?: string;
  customerUserId?: number;
}

/** A page of the job list: its entries as JSON array text, and the number of entries on all pages. */
export interface JobsPage {
  itemsJson: string;
  totalCount: number;
}

/** A listed job with cached values. */
interface Row {
  readonly jobNumber: number;
  /** Undefined until first access: the job may not be created yet. */
  job: JobRecord | undefined;
  json: string | null;
  /** The `shippedDaysToProcess` in `json`: it changes with the clock, which invalidates the JSON. */
  jsonDays: number | null;
  searchable: string | null;
  where: Place;
}

/** The jobs an account lists, active and closed. */
export class JobList {
  readonly #region: RegionCode;
  readonly #loadJob: (jobNumber: number) => JobRecord;
  readonly #rows = new Map<number, Row>();
  /** Both ascending by job number: the active list, and the same with closed jobs. */
  readonly #active: Row[] = [];
  readonly #withClosed: Row[] = [];
  /** Cached results of filters and sorts, so that the pages of one search are cut from one list; valid for one version. */
  readonly #selections = new Map<string, { version: number; rows: readonly Row[] }>();
  #version = 0;

  /** `region` is the account's. `loadJob` returns a job reserved with `expect` when it is first needed. */
  constructor(region: RegionCode, loadJob: (jobNumber: number) => JobRecord) {
    this.#region = region;
    this.#loadJob = loadJob;
  }

  /** Lists a job that will be created on first access. */
  expect(jobNumber: number, where: Place): void {
    if (where !== 'nowhere') this.#move(newRow(jobNumber), where);
  }

  /** Moves a new or changed job to its place: active, closed, or nowhere. */
  place(job: JobRecord, where: Place): void {
    const row = this.#rows.get(job.jobNumber) ?? newRow(job.jobNumber);
    this.#version += 1;
    row.job = job;
    row.json = null;
    row.searchable = null;
    if (row.where !== where) this.#move(row, where);
  }

  /** The numbers of the active jobs, ascending. */
  activeJobNumbers(): number[] {
    return this.#active.map(({ jobNumber }) => jobNumber);
  }

  /** Number of active jobs. */
  get activeCount(): number {
    return this.#active.length;
  }

  /**
   * Cuts a page at `now` (epoch ms). A page beyond the last is empty. The caller has checked the parameters. Jobs in `past` are
   * listed as given there.
   */
  page(query: JobsQuery, now: number, past?: ReadonlyMap<number, PastJob | undefined>): JobsPage {
    const current = query.includeClosedJobs ? this.#withClosed : this.#active;
    const base = past?.size ? replaceRows(current, past, query.includeClosedJobs ?? false) : current;
    const rows = this.#select(query, now, base, base === current);
    // Sorted ascending and served newest first, so read from the end.
    const backwards = rows === base;
    const from = (query.page - 1) * query.pageSize;
    const to = Math.min(from + query.pageSize, rows.length);
    let itemsJson = '[';
    for (let index = from; index < to; index++) {
      const row = rows[backwards ? rows.length - 1 - index : index];
      if (row) itemsJson += (index === from ? '' : ',') + entryJson(row, this.#jobIn(row), now);
    }
    return { itemsJson: `${itemsJson}]`, totalCount: rows.length };
  }

  #select(query: JobsQuery, now: number, base: readonly Row[], isCurrent: boolean): readonly Row[] {
    const { excludeJobNumber, orderGroup, customerUserId } = query;
    const terms = (query.searchText ?? '').toLowerCase().split(/\s+/).filter(Boolean);
    const column = query.sortColumn ?? (orderGroup === undefined ? 'jobNumber' : 'orderGroupSequence');
    const direction = query.sortDirection ?? (column === 'orderGroupSequence' ? 'ascending' : 'descending');
    const filtered =
      excludeJobNumber !== undefined ||
      orderGroup !== undefined ||
      customerUserId !== undefined ||
      terms.length > 0;
    if (!filtered && column === 'jobNumber' && direction === 'descending') return base;

    const key = JSON.stringify([
      query.includeClosedJobs ?? false,
      terms,
      column,
      direction,
      orderGroup,
      customerUserId,
      excludeJobNumber,
    ]);
    const known = this.#selections.get(key);
    // The drifting column moves without a change of version.
    if (isCurrent && known?.version === this.#version && column !== 'shippedDaysToProcess') return known.rows;

    const rows = base.filter(
      (row) =>
        row.jobNumber !== excludeJobNumber &&
        (orderGroup === undefined || this.#jobIn(row).orderGroup === orderGroup) &&
        (customerUserId === undefined || this.#jobIn(row).userId === customerUserId) &&
        terms.every((term) => hasPrefix(searchable(row, this.#jobIn(row), this.#region), term)),
    );
    const sign = direction === 'ascending' ? 1 : -1;
    const value = (row: Row) =>
      column === 'jobNumber' ? row.jobNumber : sortValue(this.#jobIn(row), column, now);
    rows.sort((a, b) => sign * compare(value(a), value(b)) || b.jobNumber - a.jobNumber);
    if (!isCurrent) return rows;
    if (this.#selections.size >= 16) this.#selections.clear();
    this.#selections.set(key, { version: this.#version, rows });
    return rows;
  }

  #move(row: Row, where: Place): void {
    row.where = where;
    this.#version += 1;
    setMember(this.#active, row, where === 'active');
    setMember(this.#withClosed, row, where !== 'nowhere');
    if (where === 'nowhere') this.#rows.delete(row.jobNumber);
    else this.#rows.set(row.jobNumber, row);
  }

  #jobIn(row: Row): JobRecord {
    row.job ??= this.#loadJob(row.jobNumber);
    return row.job;
  }
}

/** A list entry as JSON text, overrides included; `now` in epoch ms. */
export function listEntryJson(job: JobRecord, now: number): string {
  return JSON.stringify({ ...activeJobDto(job, now), ...job.listOverride });
}

function entryJson(row: Row, job: JobRecord, now: number): string {
  const days = daysFromDue(job, now);
  if (row.json === null || row.jsonDays !== days) {
    row.json = listEntryJson(job, now);
    row.jsonDays = days;
  }
  return row.json;
}

/** Replaces changed jobs in a list by their earlier versions; ascending by job number. */
function replaceRows(
  current: readonly Row[],
  past: ReadonlyMap<number, PastJob | undefined>,
  withClosed: boolean,
): readonly Row[] {
  const rows = current.filter(({ jobNumber }) => !past.has(jobNumber));
  for (const [jobNumber, version] of past) {
    if (version?.where === 'active' || (withClosed && version?.where === 'closed')) {
      rows.push({ ...newRow(jobNumber), ...version });
    }
  }
  return rows.sort((one, other) => one.jobNumber - other.jobNumber);
}

function newRow(jobNumber: number): Row {
  return { jobNumber, job: undefined, json: null, jsonDays: null, searchable: null, where: 'nowhere' };
}

function setMember(list: Row[], row: Row, member: boolean): void {
  let low = 0;
  let high = list.length;
  while (low < high) {
    const middle = (low + high) >>> 1;
    if ((list[middle]?.jobNumber ?? 0) < row.jobNumber) low = middle + 1;
    else high = middle;
  }
  const found = list[low]?.jobNumber === row.jobNumber;
  if (member && !found) list.splice(low, 0, row);
  if (!member && found) list.splice(low, 1);
}

/** The fields that searchText covers, in lower case, one per line. */
function searchable(row: Row, job: JobRecord, region: RegionCode): string {
  if (row.searchable !== null) return row.searchable;
  const option = findDeliveryOption(region, job.deliveryOption);
  row.searchable = [
    '',
    job.jobNumber,
    job.orderNumber,
    job.description,
    job.client,
    ...job.tags,
    job.deliveryOption,
    option?.code,
    option?.label,
    job.location?.name,
    ...job.lines.flatMap((line) => [line.gang, line.assetSku, line.garment]),
  ]
    .join('\n')
    .toLowerCase();
  return row.searchable;
}

/** Whether a term of the text starts with `term`; blanks and punctuation separate terms. */
function hasPrefix(text: string, term: string): boolean {
  for (let at = text.indexOf(term); at >= 0; at = text.indexOf(term, at + 1)) {
    if (!/[\p{L}\p{N}]/u.test(text.charAt(at - 1))) return true;
  }
  return false;
}

function sortValue(job: JobRecord, column: SortColumn, now: number): string | number | boolean | null {
  switch (column) {
    case 'shippedDaysToProcess':
      return daysFromDue(job, now);
    case 'dateDue':
      return Number.isNaN(job.dueMs) ? null : job.dueMs;
    case 'dateOut':
      return Number.isNaN(job.outMs) ? null : job.outMs;
    default: {
      const value = job[column];
      return typeof value === 'string' ? value.toLowerCase() : value;
    }
  }
}

function compare(a: string | number | boolean | null, b: string | number | boolean | null): number {
  if (a === b) return 0;
  if (a === null) return -1;
  if (b === null) return 1;
  return a < b ? -1 : 1;
}
