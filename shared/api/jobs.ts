/**
 * Jobs of an account: pages of snapshots, and a job with its detail.
 * One file: the fields of an entry, the filters on them and the order of a page are one contract.
 */
import { hash } from 'node:crypto';
import * as z from 'zod';
import { toStatus } from '../accounts/accounts.ts';
import { JobSummary } from '../events/catalogue.ts';
import { parseCursor } from '../log/head.ts';
import type { EventLog } from '../log/log.ts';
import { textOrNull, timestampOrNull } from '../representation.ts';
import {
  type JobRange,
  jobsAwaited,
  jobsDispatched,
  jobsInGroup,
  jobsWithOrderNumber,
  jobsWithStatus,
  toDayKeys,
} from '../storage/job-indexes.ts';
import { type AccountRef, keys, snapshotPk, stateSchema } from '../storage/schema.ts';
import type { Item, Table } from '../storage/table.ts';
import { sinceListed } from '../tracking/diff/step.ts';
import type { Durations } from '../tracking/durations.ts';
import { type Ending, type Snapshot, summarize, toDispatchedDay, toSnapshot } from '../tracking/snapshot.ts';
import { readTimes } from '../tracking/timestamps.ts';
import { JOB_NUMBER_RULE } from '../validation.ts';
import { formatPlace, type Gone, locate } from './feed.ts';
import { Event, readJobEvents } from './job-events.ts';
import { jobTiming, RISKS, readDurations, toJobTiming } from './job-timing.ts';
import { day, flag, nextCursor, one, textUpTo } from './parameters.ts';

/** Phases of a job in the API. */
const PHASES = ['listed', 'departed', 'settling'] as const;

/** State of a job. Timestamps are ISO 8601. */
const jobState = {
  ...JobSummary.shape,
  phase: z
    .enum(PHASES)
    .describe(
      '`listed`: the job is in the list of active jobs. `departed`: it left the list, and its outcome is not yet known. `settling`: its outcome is known, and Jobwire observes it for some more days.',
    ),
  outcome: z
    .enum(['closed', 'cancelled', 'unavailable'] satisfies Ending[])
    .nullable()
    .describe(
      'Outcome of the job, set when the corresponding event is emitted. `null`: the job has not ended.',
    ),
  late: z
    .boolean()
    .describe(
      '`true`: the job is open, and an observation after its due time showed that it was not dispatched.',
    ),
  lastListedAt: timestampOrNull.describe('Last time at which the list contained the job.'),
  ...jobTiming,
};

/** Fields of the detail. */
const jobDetail = {
  detailAt: timestampOrNull.describe('Time at which the job detail was last fetched. `null`: never.'),
  lines: z
    .array(
      z.object({
        jobLineId: z.int().describe('Id of the line in the ordering API.'),
        status: textOrNull.describe('Status name of the line in the ordering API.'),
      }),
    )
    .nullable()
    .describe('Lines of the job. `null`: the job detail was never fetched.'),
  invoiceNumber: textOrNull.describe('Invoice number. `null`: none yet.'),
  timezone: textOrNull.describe('IANA name of the time zone of the production location.'),
};

/** Maximum number of events of a job in a list of jobs, and of jobs per page with their events. */
export const EXPANDED = { events: 10, jobs: 50 } as const;

/** A job in a list. */
export const JobEntry = z
  .object({
    ...jobState,
    ...z.object(jobDetail).partial().shape,
    events: z
      .array(Event)
      .optional()
      .describe(
        `The newest stored events of the job, at most ${EXPANDED.events}. Only with \`expand=events\`.`,
      ),
  })
  .meta({
    id: 'JobEntry',
    description:
      'A job at its last observation. `detailAt`, `lines`, `invoiceNumber` and `timezone` are only present with `expand=detail`.',
  });
export type JobEntry = z.infer<typeof JobEntry>;

/** A job with its detail. Fields of the detail are `null` before it is fetched. */
export const JobRecord = z
  .object({ ...jobState, ...jobDetail })
  .meta({ id: 'JobRecord', description: 'A job at its last observation, with its detail.' });
export type JobRecord = z.infer<typeof JobRecord>;

const LATER_CHANGES = 'The events after it contain all later changes.';

/** A response with a job. */
export const JobResponse = z
  .object({
    job: JobRecord,
    asOf: z
      .string()
      .describe(
        `Cursor of the end of the log just before the job was read. ${LATER_CHANGES} The returned job may already include some of them.`,
      ),
  })
  .meta({ id: 'JobResponse', description: 'A job.' });

/** A response with a page of jobs. */
export const JobPage = z
  .object({
    jobs: z.array(JobEntry),
    next: nextCursor,
    asOf: z
      .string()
      .describe(
        `Cursor of the end of the log just before the first page was read. ${LATER_CHANGES} The returned jobs may already include some of them.`,
      ),
  })
  .meta({ id: 'JobPage', description: 'A page of jobs.' });
export type JobPage = z.infer<typeof JobPage>;

/** A job number in a path or query. */
export const jobNumberText = one.regex(/^[1-9]\d{0,11}$/, JOB_NUMBER_RULE);

/** Filters of a list. A job must match all that are given. */
export const JobFilter = z
  .object({
    jobNumber: jobNumberText.transform(Number).describe('The job with this number.'),
    status: textUpTo(200).describe('Jobs with this status name.'),
    dueOn: day.describe('Open, undispatched jobs due on this day.'),
    dueFrom: day.describe('Open, undispatched jobs due on this day or later.'),
    dueBefore: day.describe('Open, undispatched jobs due before this day.'),
    late: flag.describe('`true`: late jobs (see the field `late`). `false`: all other jobs.'),
    risk: z
      .enum(RISKS, `must be one of ${RISKS.join(', ')}`)
      .describe('Open, undispatched jobs with this risk at the time of the response.'),
    undispatched: flag.describe('`true`: open, undispatched jobs. `false`: all other jobs.'),
    dispatchedOn: day.describe('Jobs dispatched on this calendar day at the production location.'),
    dispatchedFrom: day.describe('Jobs dispatched on this day or later, as in `dispatchedOn`.'),
    dispatchedBefore: day.describe('Jobs dispatched before this day, as in `dispatchedOn`.'),
    orderNumber: textUpTo(500).describe('Jobs with exactly this order number.'),
    orderGroup: textUpTo(500).describe('Jobs of this order group.'),
  })
  .partial();
export type JobFilter = z.infer<typeof JobFilter>;

/** Filters that only match open, undispatched jobs, and filters that only match dispatched ones. */
export const OPEN_FILTERS = ['undispatched', 'dueOn', 'dueFrom', 'dueBefore', 'late', 'risk'] as const;
export const DISPATCHED_FILTERS = ['dispatchedOn', 'dispatchedFrom', 'dispatchedBefore'] as const;

/** Orders of a list. By job number within a day. With `-`: descending. */
export const JOB_SORTS = [
  'jobNumber',
  '-jobNumber',
  'dateDue',
  '-dateDue',
  'dateOut',
  '-dateOut',
] as const satisfies readonly JobSort[];
type JobOrder = 'jobNumber' | 'dateDue' | 'dateOut';
export type JobSort = JobOrder | `-${JobOrder}`;

/** Fields of a job in a list, besides its state. */
export type JobExpansion = 'detail' | 'events';

/** Query of a list of jobs. `cursor` must be of the same account, filter and sort order; see {@link isCursorFor}. */
export interface JobsQuery {
  readonly filter: JobFilter;
  /** Default: the order of the most selective index. Must be one that {@link canSort} accepts. */
  readonly sort?: JobSort | undefined;
  readonly limit: number;
  readonly cursor?: JobsCursor | undefined;
  readonly expand?: readonly JobExpansion[] | undefined;
}

/** Position in a list of jobs. */
export interface JobsCursor {
  /** Cursor of the log before the first page. */
  readonly asOf: string;
  /** Fingerprint of account, filter and sort order. */
  readonly of: string;
  /** Sort key of the last job that was read for the previous page. */
  readonly behind: string;
}

/**
 * A page of jobs. `asOf` is the same on all pages: a client that reads all pages and then follows the feed from there misses
 * no changes. Processing an event twice is harmless, because events contain the complete state of the job.
 */
export interface JobsPage extends JobPage {
  readonly kind: 'jobs';
}

/** Maximum size of the snapshots read for a page, and of its events. A page has at least one job if one matches. */
const PAGE_BYTES = 4_000_000;
/** Maximum number of snapshots read for a page. */
const MAX_READ = 500;
/** Number of snapshots read at once after the first jobs did not fill the page. */
const NEXT_READ = 100;
/** Number of jobs whose events are read at once. */
const EVENTS_OF_JOBS = 10;
const DAY_MS = 86_400_000;

/**
 * Returns a page of jobs. One index is read in its order, and each of its jobs is listed only if its snapshot matches all
 * filters: index entries can lag behind. Reads at most 500 snapshots, so pages can be short. `next` is `null` on the last one.
 * Returns `undefined` for an account without a log.
 */
export async function listJobs(
  deps: { readonly table: Table; readonly log: EventLog; readonly now: () => number },
  ref: AccountRef,
  { filter, sort, limit, cursor, expand = [] }: JobsQuery,
): Promise<JobsPage | Gone | undefined> {
  // Before the snapshots are read: later changes are in the feed after this cursor.
  const place = await locate(deps.log, ref, cursor && parseCursor(cursor.asOf), 'head');
  if (!place || 'kind' in place) return place;
  const asOf = formatPlace(place);
  const [status, durations] = await Promise.all([deps.table.get(keys.status(ref)), readDurations(deps, ref)]);
  const { lastGoodCrawlStartedAt: lastGood = null, lastPollAt = null } = status ? toStatus(status) : {};
  const at = { lastGood, durations, now: deps.now() };

  const range = chooseRange(ref, { filter, sort }, Math.max(lastGood ?? 0, lastPollAt ?? 0));
  const wanted = expand.includes('events') ? Math.min(limit, EXPANDED.jobs) : limit;
  const found: { readonly behind: string; readonly entry: JobEntry }[] = [];
  let behind = cursor?.behind;
  let [more, read, bytes] = [true, 0, 0];
  while (more && found.length < wanted && read < MAX_READ && bytes <= PAGE_BYTES) {
    const missing = wanted - found.length;
    const size = Math.min(MAX_READ - read, read === 0 ? missing : Math.max(missing, NEXT_READ));
    const places = await readPlaces(deps.table, range, behind, size);
    more = places.length === size;
    for (const { behind: place, item } of places) {
      bytes += item ? Buffer.byteLength(String(item.snapshot)) : 0;
      if (found.length === wanted || (read > 0 && bytes > PAGE_BYTES)) {
        more = true;
        break;
      }
      read += 1;
      behind = place;
      const snapshot = item && toSnapshot(item);
      if (!snapshot || !matchesFilter(snapshot, filter, lastGood)) continue;
      const entry = toEntry(snapshot, at);
      if (filter.risk !== undefined && entry.risk !== filter.risk) continue;
      found.push({ behind, entry: expand.includes('detail') ? { ...entry, ...toDetail(snapshot) } : entry });
    }
  }
  const jobs = expand.includes('events')
    ? await addEvents(deps, ref, found)
    : found.map(({ entry }) => entry);
  if (jobs.length < found.length) {
    more = true;
    behind = found[jobs.length - 1]?.behind;
  }
  const next =
    more && behind !== undefined
      ? encodeJobsCursor({ asOf, of: fingerprint(ref, { filter, sort }), behind })
      : null;
  return { kind: 'jobs', jobs, next, asOf };
}

/** Returns the first jobs with their newest events: as many as fit in a page, at least one. */
async function addEvents(
  deps: { readonly table: Table; readonly now: () => number },
  ref: AccountRef,
  found: readonly { readonly entry: JobEntry }[],
): Promise<JobEntry[]> {
  const jobs: JobEntry[] = [];
  let bytes = 0;
  for (let at = 0; at < found.length; at += EVENTS_OF_JOBS) {
    const batch = found.slice(at, at + EVENTS_OF_JOBS);
    const query = { order: 'newest', limit: EXPANDED.events } as const;
    const pages = await Promise.all(
      batch.map(({ entry }) => readJobEvents(deps, ref, entry.jobNumber, query)),
    );
    for (const [index, { entry }] of batch.entries()) {
      const { events = [] } = pages[index] ?? {};
      bytes += events.reduce((sum, text) => sum + Buffer.byteLength(text), 0);
      if (jobs.length > 0 && bytes > PAGE_BYTES) return jobs;
      jobs.push({ ...entry, events: events.map((text) => JSON.parse(text) as z.infer<typeof Event>) });
    }
  }
  return jobs;
}

/** Returns a job with the cursor of the log before it was read. Returns `undefined` if the account or the job is unknown. */
export async function readJob(
  deps: { readonly table: Table; readonly log: EventLog; readonly now: () => number },
  ref: AccountRef,
  jobNumber: number,
): Promise<z.infer<typeof JobResponse> | undefined> {
  const place = await locate(deps.log, ref, undefined, 'head');
  if (!place || 'kind' in place) return undefined;
  const [status, durations] = await Promise.all([deps.table.get(keys.status(ref)), readDurations(deps, ref)]);
  const item = await deps.table.get(keys.snapshot(ref, jobNumber));
  if (!item) return undefined;
  const snapshot = toSnapshot(item);
  const lastGood = status ? toStatus(status).lastGoodCrawlStartedAt : null;
  const job = { ...toEntry(snapshot, { lastGood, durations, now: deps.now() }), ...toDetail(snapshot) };
  return { job, asOf: formatPlace(place) };
}

/** Parses a cursor of a list of jobs. Returns `undefined` if it is invalid. */
export function decodeJobsCursor(text: string): JobsCursor | undefined {
  try {
    const parsed = JobsCursorText.safeParse(JSON.parse(Buffer.from(text, 'base64url').toString()));
    return parsed.success ? parsed.data : undefined;
  } catch {
    return undefined;
  }
}

/** Returns whether a cursor belongs to a list of this account with this filter and sort order. */
export function isCursorFor(
  cursor: JobsCursor,
  ref: AccountRef,
  list: Pick<JobsQuery, 'filter' | 'sort'>,
): boolean {
  return cursor.of === fingerprint(ref, list);
}

function fingerprint(
  { region, account }: AccountRef,
  { filter, sort }: Pick<JobsQuery, 'filter' | 'sort'>,
): string {
  const given = Object.entries(filter).filter(([, value]) => value !== undefined);
  const text = JSON.stringify([region, account, given.sort(), sort ?? null]);
  return hash('sha256', text, 'base64url').slice(0, 16);
}

function encodeJobsCursor(cursor: JobsCursor): string {
  return Buffer.from(JSON.stringify(cursor)).toString('base64url');
}

// A forged cursor can only address another position of the same list, because the partition is not part of it.
const JobsCursorText = z.strictObject({
  asOf: z.string().refine((text) => parseCursor(text)?.epoch !== undefined),
  of: z.string().length(16),
  // DynamoDB rejects keys that are empty, longer than 1,024 bytes or not well-formed.
  behind: z
    .string()
    .min(1)
    .max(300)
    .refine((text) => text.isWellFormed()),
});

/** Reads snapshots in list order with their sort keys. `item` is `undefined` if the snapshot no longer exists. */
async function readPlaces(
  table: Table,
  range: Range & { readonly descending: boolean },
  behind: string | undefined,
  limit: number,
): Promise<{ behind: string; item: Item | undefined }[]> {
  const isIndex = 'index' in range;
  const sortKey = isIndex ? stateSchema.indexes[range.index].sortKey : stateSchema.sortKey;
  const found = await table.query({
    ...range,
    // The upper bound is inclusive; the job at the bound was read before.
    ...(behind === undefined ? {} : range.descending ? { to: behind } : { after: behind }),
    limit: range.descending && behind !== undefined ? limit + 1 : limit,
  });
  const entries = found.filter((entry) => entry[sortKey] !== behind).slice(0, limit);
  if (!isIndex) return entries.map((item) => ({ behind: item.sk, item }));
  const items = await table.getMany(entries.map(({ pk, sk }) => ({ pk, sk })));
  const byKey = new Map(items.map((item) => [`${item.pk}\n${item.sk}`, item]));
  return entries.map((entry) => ({
    behind: String(entry[sortKey]),
    item: byKey.get(`${entry.pk}\n${entry.sk}`),
  }));
}

/** A range of an index or of the snapshots. */
type Range = JobRange | { readonly pk: string; readonly from?: string; readonly to?: string };

/** Returns whether a list with these filters can be sorted so with bounded reads: an index of a filter has this order. */
export function canSort(filter: JobFilter, sort: JobSort): boolean {
  const ref = { region: '', account: '' };
  return listRanges(ref, filter, 0).some(({ order }) => order === toOrder(sort));
}

const toOrder = (sort: JobSort) => sort.replace('-', '') as JobOrder;

/** Returns the most selective range with the order of a list. `seenAt` (epoch ms): no job was observed much later. */
function chooseRange(
  ref: AccountRef,
  { filter, sort }: Pick<JobsQuery, 'filter' | 'sort'>,
  seenAt: number,
): Range & { readonly descending: boolean } {
  const ranges = listRanges(ref, filter, seenAt);
  const chosen = ranges.find(({ order }) => sort === undefined || order === toOrder(sort));
  if (!chosen) throw new Error('A list of jobs must have an order of one of its filters.');
  return { ...chosen.range, descending: sort?.startsWith('-') ?? false };
}

/** Returns the ranges that contain all jobs of a filter, with their order, the most selective first. */
function listRanges(
  ref: AccountRef,
  filter: JobFilter,
  seenAt: number,
): { readonly order: JobOrder; readonly range: Range }[] {
  const ranges: { order: JobOrder; range: Range }[] = [];
  const add = (range: Range, ...orders: JobOrder[]) =>
    ranges.push(...orders.map((order) => ({ order, range })));
  if (filter.jobNumber !== undefined) {
    const { pk, sk } = keys.snapshot(ref, filter.jobNumber);
    add({ pk, from: sk, to: sk }, 'jobNumber', 'dateDue', 'dateOut');
  }
  if (filter.orderNumber !== undefined) add(jobsWithOrderNumber(ref, filter.orderNumber), 'jobNumber');
  if (filter.orderGroup !== undefined) add(jobsInGroup(ref, filter.orderGroup), 'jobNumber');
  const { dispatchedOn: on, dispatchedFrom: from, dispatchedBefore } = filter;
  if (DISPATCHED_FILTERS.some((name) => filter[name] !== undefined)) {
    const range = jobsDispatched(ref, toDayKeys({ on, from, before: [dispatchedBefore] }));
    add(range, 'dateOut', ...(on === undefined ? [] : (['jobNumber'] as const)));
  }
  // A day begins up to 14 hours earlier than in UTC. An interrupted poll can have observed jobs after its recorded time.
  const isLateOnly = filter.late || filter.risk === 'late';
  const lateBefore = isLateOnly ? new Date(seenAt + 2 * DAY_MS).toISOString().slice(0, 10) : undefined;
  const before = [filter.dueBefore, lateBefore];
  const days = toDayKeys({ on: filter.dueOn, from: filter.dueFrom, before });
  if (filter.status !== undefined) add(jobsWithStatus(ref, filter.status, days), 'dateDue');
  if (OPEN_FILTERS.some((name) => filter[name])) add(jobsAwaited(ref, days), 'dateDue');
  add({ pk: snapshotPk(ref) }, 'jobNumber');
  return ranges;
}

function matchesFilter(snapshot: Snapshot, filter: JobFilter, lastGood: number | null): boolean {
  const job = summarize(snapshot);
  const { jobNumber, status, orderNumber, orderGroup } = filter;
  const day = DISPATCHED_FILTERS.some((name) => filter[name] !== undefined) && toDispatchedDay(snapshot);
  return (
    (jobNumber === undefined || job.jobNumber === jobNumber) &&
    (status === undefined || job.status === status) &&
    (orderNumber === undefined || job.orderNumber === orderNumber) &&
    (orderGroup === undefined || job.orderGroup === orderGroup) &&
    (!OPEN_FILTERS.some((name) => filter[name]) || isUndispatched(snapshot, job)) &&
    isWithin(job.dateDue, filter.dueOn, filter.dueFrom, filter.dueBefore) &&
    (day === false || isWithin(day, filter.dispatchedOn, filter.dispatchedFrom, filter.dispatchedBefore)) &&
    (filter.undispatched !== false || !isUndispatched(snapshot, job)) &&
    (filter.late === undefined || isLate(snapshot, job, lastGood) === filter.late)
  );
}

/** Returns whether a date that begins with a day is on a day, from a day, and before a day, each if given. */
function isWithin(date: string | null, on?: string, from?: string, before?: string): boolean {
  if (on === undefined && from === undefined && before === undefined) return true;
  return (
    date !== null &&
    (on === undefined || date.slice(0, 10) === on) &&
    (from === undefined || date >= from) &&
    (before === undefined || date < before)
  );
}

/** Returns whether a job is open and not dispatched. */
function isUndispatched({ ended, settling }: Snapshot, job: JobSummary): boolean {
  return ended === null && settling === null && job.dateOut === null;
}

/** Returns whether a job is awaited and was listed after its due time (rule 15). */
function isLate(snapshot: Snapshot, job: JobSummary, lastGood: number | null): boolean {
  const { dateDue } = job;
  if (!isUndispatched(snapshot, job) || dateDue === null || snapshot.list === null) return false;
  const due = readTimes(dateDue, snapshot.detail?.timezone ?? null, { midnightIsEndOfDay: true });
  return due !== undefined && lastSeenListed(snapshot, lastGood) > due.latest;
}

function lastSeenListed(snapshot: Snapshot, lastGoodCrawlStartedAt: number | null): number {
  return sinceListed(snapshot, { lastGoodCrawlStartedAt });
}

/** Facts with which a job is compared: the last complete crawl, the usual durations, and the time (epoch ms). */
interface Comparison {
  readonly lastGood: number | null;
  readonly durations: Durations;
  readonly now: number;
}

function toEntry(snapshot: Snapshot, { lastGood, durations, now }: Comparison): JobEntry {
  const job = summarize(snapshot);
  const late = isLate(snapshot, job, lastGood);
  const open = isUndispatched(snapshot, job);
  return {
    ...job,
    phase: toPhase(snapshot),
    outcome: snapshot.ended,
    late,
    lastListedAt: snapshot.list === null ? null : lastSeenListed(snapshot, lastGood),
    ...toJobTiming(snapshot, { ...job, late, open }, durations, now),
  };
}

function toDetail({ detail, detailAt }: Snapshot): Required<Pick<JobEntry, keyof typeof jobDetail>> {
  return {
    detailAt: detail ? detailAt : null,
    lines: detail?.lines.map(({ jobLineId, status }) => ({ jobLineId, status })) ?? null,
    invoiceNumber: detail?.invoiceNumber ?? null,
    timezone: detail?.timezone ?? null,
  };
}

function toPhase(snapshot: Snapshot): JobEntry['phase'] {
  if (snapshot.departure !== null) return 'departed';
  return snapshot.settling === null && snapshot.ended === null ? 'listed' : 'settling';
}
