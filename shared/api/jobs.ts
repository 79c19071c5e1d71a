/** An account's jobs as they are known: pages through the snapshots, and one job with what its own record says. */
import * as z from 'zod';
import { JobSummary } from '../events/catalogue.ts';
import { type EventLog, parseCursor } from '../log/log.ts';
import {
  type AccountRef,
  type JobRange,
  jobsAwaited,
  jobsDispatchedOn,
  jobsDueBefore,
  jobsDueOn,
  jobsInGroup,
  jobsWithOrderNumber,
  jobsWithStatus,
  keys,
  snapshotPk,
  stateSchema,
} from '../table/schema.ts';
import type { Item, Table } from '../table/table.ts';
import { toStatus } from '../tracking/accounts.ts';
import { sinceListed } from '../tracking/diff.ts';
import { readInstants } from '../tracking/instants.ts';
import { dispatchedDayOf, type Ending, type Snapshot, summarize, toSnapshot } from '../tracking/snapshot.ts';
import { cursorOf, type Gone, locate } from './feed.ts';
import { instant, instantText, nextOf } from './parameters.ts';

/** Where a job stands, as far as anybody asks. */
const PHASES = ['listed', 'departed', 'settling'] as const;

/** A job in a list. Instants are ISO texts. */
export const JobEntry = z
  .object({
    ...JobSummary.shape,
    phase: z
      .enum(PHASES)
      .describe(
        '`listed`: among the active jobs; `departed`: missing, why is not known yet; `settling`: left, looked at for some days.',
      ),
    ended: z
      .enum(['closed', 'cancelled', 'unavailable'] satisfies Ending[])
      .nullable()
      .describe('What became of it, once that was announced.'),
    late: z.boolean().describe('Whether it is open and was seen undispatched after its due instant.'),
    listedThrough: instant
      .nullable()
      .describe('The last time known at which it was in the list of active jobs.'),
  })
  .meta({ id: 'JobEntry', description: 'A job as it is known.' });
export type JobEntry = z.infer<typeof JobEntry>;

/** A job on its own. What only its own record shows is null as long as that was not read. */
export const JobRecord = z
  .object({
    ...JobEntry.shape,
    detailAt: instant.nullable().describe('When its own record was last read.'),
    lines: z
      .array(
        z.object({
          jobLineId: z.int().describe('The number that the service has for the line.'),
          status: z.string().nullable().describe('In the words of the ordering service.'),
        }),
      )
      .nullable()
      .describe('Its lines, as its own record shows them.'),
    invoiceNumber: z.string().nullable().describe('The number of its invoice, once there is one.'),
    timezone: z.string().nullable().describe('IANA name of the zone of the location that makes it.'),
  })
  .meta({ id: 'JobRecord', description: 'A job as it is known, with what its own record shows.' });
export type JobRecord = z.infer<typeof JobRecord>;

const asOfText = z
  .string()
  .describe(
    'The cursor of the feed from before this was read: whoever follows the feed from here misses nothing. An event after it may already be in what is shown.',
  );

/** The answer with one job. */
export const JobAnswer = z
  .object({ job: JobRecord, asOf: asOfText })
  .meta({ id: 'JobAnswer', description: 'One job.' });

/** The answer with a page of jobs. */
export const JobsAnswer = z
  .object({
    jobs: z.array(JobEntry).describe('Can be fewer than were asked for, also none, before the last page.'),
    next: nextOf,
    asOf: asOfText,
  })
  .meta({ id: 'JobsAnswer', description: 'A page of jobs.' });
type JobsAnswer = z.infer<typeof JobsAnswer>;

/** Which jobs of an account: all, or those of one index. */
export type JobFilter = z.infer<typeof JobFilter>;
const JobFilter = z.discriminatedUnion('by', [
  z.strictObject({ by: z.literal('none') }),
  z.strictObject({ by: z.literal('status'), status: z.string() }),
  z.strictObject({ by: z.literal('orderNumber'), orderNumber: z.string() }),
  z.strictObject({ by: z.literal('orderGroup'), orderGroup: z.string() }),
  z.strictObject({ by: z.literal('jobNumber'), jobNumber: z.int() }),
  z.strictObject({ by: z.literal('dispatchedOn'), day: z.string() }),
  // Open, undispatched jobs; of them those due before a day (YYYY-MM-DD), or on it.
  z.strictObject({ by: z.literal('awaited') }),
  z.strictObject({ by: z.literal('dueBefore'), day: z.string() }),
  z.strictObject({ by: z.literal('dueOn'), day: z.string() }),
  // Open jobs that were seen undispatched after their due instant (rule 15).
  z.strictObject({ by: z.literal('late') }),
]);

/** Where a list of jobs goes on. */
export interface JobsCursor {
  /** The log's cursor from before the first page. */
  readonly asOf: string;
  readonly filter: JobFilter;
  /** The sort key of the last job of the page before. */
  readonly behind: string;
}

/**
 * A page of jobs. `asOf` is the same on all pages: whoever has read them all and follows the feed from there misses
 * nothing. Taking an event in again is harmless, for events carry the job as it stands.
 */
export interface JobsPage extends JobsAnswer {
  readonly kind: 'jobs';
}

/** A page is cut (after its first job) before its snapshots grow over this. */
const PAGE_BYTES = 4_000_000;
const DAY_MS = 86_400_000;

/**
 * A page of an account's jobs: by job number, or in the order of the filter's index. Index entries can lag behind, so a
 * job is only shown when its snapshot bears the filter out; pages can be short, and the last one is where `next` is null.
 * `undefined` for an account without a log.
 */
export async function listJobs(
  deps: { readonly table: Table; readonly log: EventLog },
  ref: AccountRef,
  query: { readonly filter: JobFilter; readonly limit: number; readonly cursor: JobsCursor | undefined },
): Promise<JobsPage | Gone | undefined> {
  const { filter, limit, cursor } = query;
  // Before the snapshots: what is written from here on is in the feed after it.
  const place = await locate(deps.log, ref, cursor && parseCursor(cursor.asOf), 'head');
  if (!place || 'kind' in place) return place;
  const asOf = cursorOf(place);
  const status = await deps.table.get(keys.status(ref));
  const { lastGoodCrawlStartedAt: lastGood = null, lastPollAt = null } = status ? toStatus(status) : {};

  const range = rangeOf(ref, filter, Math.max(lastGood ?? 0, lastPollAt ?? 0));
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

/** One job, with the log's cursor from before it was read. `undefined` when the account or the job is unknown. */
export async function readJob(
  deps: { readonly table: Table; readonly log: EventLog },
  ref: AccountRef,
  jobNumber: number,
): Promise<z.infer<typeof JobAnswer> | undefined> {
  const place = await locate(deps.log, ref, undefined, 'head');
  if (!place || 'kind' in place) return undefined;
  const status = await deps.table.get(keys.status(ref));
  const item = await deps.table.get(keys.snapshot(ref, jobNumber));
  if (!item) return undefined;
  const snapshot = toSnapshot(item);
  const { detail } = snapshot;
  const job = {
    ...toEntry(snapshot, status ? toStatus(status).lastGoodCrawlStartedAt : null),
    detailAt: detail ? instantText(snapshot.detailAt) : null,
    lines: detail?.lines.map((line) => ({ ...line })) ?? null,
    invoiceNumber: detail?.invoiceNumber ?? null,
    timezone: detail?.timezone ?? null,
  };
  return { job, asOf: cursorOf(place) };
}

/** Reads a cursor of a list of jobs; `undefined` for anything else. */
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

// Whoever makes one up gets no further than to another place of the same list: the partition is never in it.
const JobsCursorText = z.strictObject({
  asOf: z.string().refine((text) => parseCursor(text)?.epoch !== undefined),
  filter: JobFilter,
  // DynamoDB takes no empty key, none over 1,024 bytes, and no lone surrogates.
  behind: z
    .string()
    .min(1)
    .max(300)
    .refine((text) => text.isWellFormed()),
});

/** Snapshots in the order of their list, each with its sort key there; one that is gone since is left out of its place. */
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

/** A range of an index, or of the snapshots themselves. */
type Range = JobRange | { readonly pk: string; readonly from?: string; readonly to?: string };

/** Where the jobs of a filter stand, and maybe others; `seenAt` (epoch ms): no job was seen much later than that. */
function rangeOf(ref: AccountRef, filter: JobFilter, seenAt: number): Range {
  switch (filter.by) {
    case 'none':
      return { pk: snapshotPk(ref) };
    case 'jobNumber': {
      const { pk, sk } = keys.snapshot(ref, filter.jobNumber);
      return { pk, from: sk, to: sk };
    }
    case 'awaited':
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
      // A day begins at most 14 hours before it does in UTC; a poll that was cut off may have seen later than it says.
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
    case 'awaited':
      return isAwaited(snapshot, job);
    case 'dispatchedOn':
      return dispatchedDayOf(snapshot) === filter.day;
    case 'status':
      return job.status === filter.status;
    case 'orderNumber':
      return job.orderNumber === filter.orderNumber;
    case 'orderGroup':
      return job.orderGroup === filter.orderGroup;
    case 'dueBefore':
      return isAwaited(snapshot, job) && job.dateDue !== null && job.dateDue < filter.day;
    case 'dueOn':
      return isAwaited(snapshot, job) && job.dateDue?.slice(0, 10) === filter.day;
    case 'late':
      return isLate(snapshot, job, lastGood);
  }
}

/** Whether a job is open and not dispatched. */
function isAwaited({ ended, settling }: Snapshot, job: JobSummary): boolean {
  return ended === null && settling === null && job.dateOut === null;
}

/** Whether a job is awaited and was seen in the list after its due instant, read as rule 15 has it. */
function isLate(snapshot: Snapshot, job: JobSummary, lastGood: number | null): boolean {
  const { dateDue } = job;
  if (!isAwaited(snapshot, job) || dateDue === null || snapshot.list === null) return false;
  const due = readInstants(dateDue, snapshot.detail?.timezone ?? null, { midnightIsEndOfDay: true });
  return due !== undefined && lastSeenListed(snapshot, lastGood) > due.latest;
}

function lastSeenListed(snapshot: Snapshot, lastGoodCrawlStartedAt: number | null): number {
  return sinceListed(snapshot, { lastGoodCrawlStartedAt });
}

function toEntry(snapshot: Snapshot, lastGood: number | null): JobEntry {
  const job = summarize(snapshot);
  return {
    ...job,
    phase: phaseOf(snapshot),
    ended: snapshot.ended,
    late: isLate(snapshot, job, lastGood),
    listedThrough: snapshot.list === null ? null : instantText(lastSeenListed(snapshot, lastGood)),
  };
}

function phaseOf(snapshot: Snapshot): JobEntry['phase'] {
  if (snapshot.departure !== null) return 'departed';
  return snapshot.settling === null && snapshot.ended === null ? 'listed' : 'settling';
}
