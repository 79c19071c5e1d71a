/** Jobs of an account: pages of snapshots, and a job with its detail. */
import * as z from 'zod';
import { toStatus } from '../accounts/accounts.ts';
import { JobSummary } from '../events/catalogue.ts';
import { parseCursor } from '../log/head.ts';
import type { EventLog } from '../log/log.ts';
import { timestamp } from '../representation.ts';
import {
  type JobRange,
  jobsAwaited,
  jobsDispatchedOn,
  jobsDueBefore,
  jobsDueOn,
  jobsInGroup,
  jobsWithOrderNumber,
  jobsWithStatus,
} from '../storage/job-indexes.ts';
import { type AccountRef, keys, snapshotPk, stateSchema } from '../storage/schema.ts';
import type { Item, Table } from '../storage/table.ts';
import { sinceListed } from '../tracking/diff/step.ts';
import { type Ending, type Snapshot, summarize, toDispatchedDay, toSnapshot } from '../tracking/snapshot.ts';
import { readTimes } from '../tracking/timestamps.ts';
import { formatPlace, type Gone, locate } from './feed.ts';
import { nextCursor } from './parameters.ts';

/** Phases of a job in the API. */
const PHASES = ['listed', 'departed', 'settling'] as const;

/** A job in a list. Timestamps are ISO 8601. */
export const JobEntry = z
  .object({
    ...JobSummary.shape,
    phase: z
      .enum(PHASES)
      .describe(
        '`listed`: the job is in the list of active jobs. `departed`: the job left the list, and its outcome is not yet known. `settling`: the job left the list, its outcome is known, and Jobwire observes it for some more days.',
      ),
    outcome: z
      .enum(['closed', 'cancelled', 'unavailable'] satisfies Ending[])
      .nullable()
      .describe(
        'Outcome of the job. It is set when the corresponding event is emitted. `null`: the job has not ended.',
      ),
    late: z
      .boolean()
      .describe(
        '`true`: the job is open, and Jobwire observed after its due time that it was not dispatched.',
      ),
    lastListedAt: timestamp
      .nullable()
      .describe('Last time at which Jobwire found the job in the list of active jobs.'),
  })
  .meta({ id: 'JobEntry', description: 'State of a job at its last observation.' });
export type JobEntry = z.infer<typeof JobEntry>;

/** A job with its detail. Fields of the detail are `null` before it is fetched. */
export const JobRecord = z
  .object({
    ...JobEntry.shape,
    detailAt: timestamp
      .nullable()
      .describe('Time at which the job detail was last fetched. `null`: it was never fetched.'),
    lines: z
      .array(
        z.object({
          jobLineId: z.int().describe('Id of the line in the ordering API.'),
          status: z.string().nullable().describe('Status name of the line in the ordering API.'),
        }),
      )
      .nullable()
      .describe('Lines of the job. `null`: the job detail was never fetched.'),
    invoiceNumber: z.string().nullable().describe('Invoice number. `null`: the job has none yet.'),
    timezone: z.string().nullable().describe('IANA name of the time zone of the production location.'),
  })
  .meta({ id: 'JobRecord', description: 'State of a job at its last observation, with its detail.' });
export type JobRecord = z.infer<typeof JobRecord>;

const asOfText = z
  .string()
  .describe(
    'Cursor of the end of the event log just before the jobs were read. Read the events after this cursor to get all later changes. The returned jobs may already include some of these changes.',
  );

/** A response with a job. */
export const JobResponse = z
  .object({ job: JobRecord, asOf: asOfText })
  .meta({ id: 'JobResponse', description: 'A job.' });

/** A response with a page of jobs. */
export const JobPage = z
  .object({
    jobs: z
      .array(JobEntry)
      .describe(
        'Jobs of the page. A page can contain fewer jobs than `limit`, or none, although further pages follow.',
      ),
    next: nextCursor,
    asOf: asOfText,
  })
  .meta({ id: 'JobPage', description: 'A page of jobs.' });
type JobPage = z.infer<typeof JobPage>;

/** Selects all jobs of an account, or those of an index. */
export type JobFilter = z.infer<typeof JobFilter>;
const JobFilter = z.discriminatedUnion('by', [
  z.strictObject({ by: z.literal('none') }),
  z.strictObject({ by: z.literal('status'), status: z.string() }),
  z.strictObject({ by: z.literal('orderNumber'), orderNumber: z.string() }),
  z.strictObject({ by: z.literal('orderGroup'), orderGroup: z.string() }),
  z.strictObject({ by: z.literal('jobNumber'), jobNumber: z.int() }),
  z.strictObject({ by: z.literal('dispatchedOn'), day: z.string() }),
  // Open, undispatched jobs: all, those due before a day (YYYY-MM-DD), or those due on it.
  z.strictObject({ by: z.literal('undispatched') }),
  z.strictObject({ by: z.literal('dueBefore'), day: z.string() }),
  z.strictObject({ by: z.literal('dueOn'), day: z.string() }),
  // Open jobs observed undispatched after their due time (rule 15).
  z.strictObject({ by: z.literal('late') }),
]);

/** Position in a list of jobs. */
export interface JobsCursor {
  /** Cursor of the log before the first page. */
  readonly asOf: string;
  readonly filter: JobFilter;
  /** Sort key of the last job of the previous page. */
  readonly behind: string;
}

/**
 * A page of jobs. `asOf` is the same on all pages: a client that reads all pages and then follows the feed from there misses
 * no changes. Processing an event twice is harmless, because events contain the complete state of the job.
 */
export interface JobsPage extends JobPage {
  readonly kind: 'jobs';
}

/** Maximum size of the snapshots of a page. A page has at least one job. */
const PAGE_BYTES = 4_000_000;
const DAY_MS = 86_400_000;

/**
 * Returns a page of jobs, ordered by job number or by the index of the filter. Index entries can lag behind, so a job is only
 * listed if its snapshot matches the filter. Pages can be short; `next` is `null` on the last one. Returns `undefined` for an
 * account without a log.
 */
export async function listJobs(
  deps: { readonly table: Table; readonly log: EventLog },
  ref: AccountRef,
  query: { readonly filter: JobFilter; readonly limit: number; readonly cursor: JobsCursor | undefined },
): Promise<JobsPage | Gone | undefined> {
  const { filter, limit, cursor } = query;
  // Before the snapshots are read: later changes are in the feed after this cursor.
  const place = await locate(deps.log, ref, cursor && parseCursor(cursor.asOf), 'head');
  if (!place || 'kind' in place) return place;
  const asOf = formatPlace(place);
  const status = await deps.table.get(keys.status(ref));
  const { lastGoodCrawlStartedAt: lastGood = null, lastPollAt = null } = status ? toStatus(status) : {};

  const range = toRange(ref, filter, Math.max(lastGood ?? 0, lastPollAt ?? 0));
  const found = await readPlaces(deps.table, range, cursor?.behind, limit);
  const jobs: JobEntry[] = [];
  let bytes = 0;
  let last: string | undefined;
  for (const { behind, item } of found) {
    bytes += item ? Buffer.byteLength(String(item.snapshot)) : 0;
    if (last !== undefined && bytes > PAGE_BYTES) break;
    last = behind;
    if (!item) continue;
    const snapshot = toSnapshot(item);
    if (bearsOut(snapshot, filter, lastGood)) jobs.push(toEntry(snapshot, lastGood));
  }
  const more = found.length === limit || last !== found.at(-1)?.behind;
  const next = more && last !== undefined ? encodeJobsCursor({ asOf, filter, behind: last }) : null;
  return { kind: 'jobs', jobs, next, asOf };
}

/** Returns a job with the cursor of the log before it was read. Returns `undefined` if the account or the job is unknown. */
export async function readJob(
  deps: { readonly table: Table; readonly log: EventLog },
  ref: AccountRef,
  jobNumber: number,
): Promise<z.infer<typeof JobResponse> | undefined> {
  const place = await locate(deps.log, ref, undefined, 'head');
  if (!place || 'kind' in place) return undefined;
  const status = await deps.table.get(keys.status(ref));
  const item = await deps.table.get(keys.snapshot(ref, jobNumber));
  if (!item) return undefined;
  const snapshot = toSnapshot(item);
  const { detail } = snapshot;
  const job = {
    ...toEntry(snapshot, status ? toStatus(status).lastGoodCrawlStartedAt : null),
    detailAt: detail ? snapshot.detailAt : null,
    lines: detail?.lines.map(({ jobLineId, status }) => ({ jobLineId, status })) ?? null,
    invoiceNumber: detail?.invoiceNumber ?? null,
    timezone: detail?.timezone ?? null,
  };
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

function encodeJobsCursor(cursor: JobsCursor): string {
  return Buffer.from(JSON.stringify(cursor)).toString('base64url');
}

// A forged cursor can only address another position of the same list, because the partition is not part of it.
const JobsCursorText = z.strictObject({
  asOf: z.string().refine((text) => parseCursor(text)?.epoch !== undefined),
  filter: JobFilter,
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
  range: Range,
  behind: string | undefined,
  limit: number,
): Promise<{ behind: string; item: Item | undefined }[]> {
  const after = behind === undefined ? {} : { after: behind };
  if (!('index' in range)) {
    const items = await table.query({ ...range, ...after, limit });
    return items.map((item) => ({ behind: item.sk, item }));
  }
  const entries = await table.query({ ...range, ...after, limit });
  const items = await table.getMany(entries.map(({ pk, sk }) => ({ pk, sk })));
  const byKey = new Map(items.map((item) => [`${item.pk}\n${item.sk}`, item]));
  return entries.map((entry) => ({
    behind: String(entry[stateSchema.indexes[range.index].sortKey]),
    item: byKey.get(`${entry.pk}\n${entry.sk}`),
  }));
}

/** A range of an index or of the snapshots. */
type Range = JobRange | { readonly pk: string; readonly from?: string; readonly to?: string };

/** Returns the range that contains the jobs of a filter. `seenAt` (epoch ms): no job was observed much later. */
function toRange(ref: AccountRef, filter: JobFilter, seenAt: number): Range {
  switch (filter.by) {
    case 'none':
      return { pk: snapshotPk(ref) };
    case 'jobNumber': {
      const { pk, sk } = keys.snapshot(ref, filter.jobNumber);
      return { pk, from: sk, to: sk };
    }
    case 'undispatched':
      return jobsAwaited(ref);
    case 'dispatchedOn':
      return jobsDispatchedOn(ref, filter.day);
    case 'status':
      return jobsWithStatus(ref, filter.status);
    case 'orderNumber':
      return jobsWithOrderNumber(ref, filter.orderNumber);
    case 'dueBefore':
      return jobsDueBefore(ref, filter.day);
    case 'dueOn':
      return jobsDueOn(ref, filter.day);
    case 'late':
      // A day begins up to 14 hours earlier than in UTC. An interrupted poll can have observed jobs after its recorded time.
      return jobsDueBefore(ref, new Date(seenAt + 2 * DAY_MS).toISOString().slice(0, 10));
    case 'orderGroup':
      return jobsInGroup(ref, filter.orderGroup);
  }
}

function bearsOut(snapshot: Snapshot, filter: JobFilter, lastGood: number | null): boolean {
  const job = summarize(snapshot);
  switch (filter.by) {
    case 'none':
    case 'jobNumber':
      return true;
    case 'undispatched':
      return isUndispatched(snapshot, job);
    case 'dispatchedOn':
      return toDispatchedDay(snapshot) === filter.day;
    case 'status':
      return job.status === filter.status;
    case 'orderNumber':
      return job.orderNumber === filter.orderNumber;
    case 'orderGroup':
      return job.orderGroup === filter.orderGroup;
    case 'dueBefore':
      return isUndispatched(snapshot, job) && job.dateDue !== null && job.dateDue < filter.day;
    case 'dueOn':
      return isUndispatched(snapshot, job) && job.dateDue?.slice(0, 10) === filter.day;
    case 'late':
      return isLate(snapshot, job, lastGood);
  }
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

function toEntry(snapshot: Snapshot, lastGood: number | null): JobEntry {
  const job = summarize(snapshot);
  return {
    ...job,
    phase: toPhase(snapshot),
    outcome: snapshot.ended,
    late: isLate(snapshot, job, lastGood),
    lastListedAt: snapshot.list === null ? null : lastSeenListed(snapshot, lastGood),
  };
}

function toPhase(snapshot: Snapshot): JobEntry['phase'] {
  if (snapshot.departure !== null) return 'departed';
  return snapshot.settling === null && snapshot.ended === null ? 'listed' : 'settling';
}
