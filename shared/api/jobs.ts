/** An account's jobs as they are known: pages through the snapshots, and one job with what its own record says. */
import * as z from 'zod';
import type { JobSummary } from '../events/catalogue.ts';
import { type EventLog, parseCursor } from '../log/log.ts';
import {
  type AccountRef,
  type JobRange,
  jobsDueBefore,
  jobsWithOrderNumber,
  jobsWithStatus,
  keys,
  snapshotPk,
  stateSchema,
} from '../table/schema.ts';
import type { Item, Table } from '../table/table.ts';
import { toStatus } from '../tracking/accounts.ts';
import { sinceListed } from '../tracking/diff.ts';
import type { Phase } from '../tracking/job-index.ts';
import { type Ending, type Snapshot, summarize, toSnapshot } from '../tracking/snapshot.ts';
import { cursorOf, type Gone, locate } from './feed.ts';

/** A job in a list. Instants are ISO texts. */
export interface JobEntry extends JobSummary {
  /** `listed`: among the active jobs; `departed`: missing, why is not known yet; `settling`: left, looked at for some days. */
  readonly phase: Phase;
  /** What became of it, once that was announced. */
  readonly ended: Ending | null;
  /** The last time known at which it was in the list of active jobs. */
  readonly listedThrough: string | null;
}

/** A job on its own. What only its own record shows is null as long as that was not read. */
export interface JobRecord extends JobEntry {
  /** When its own record was last read. */
  readonly detailAt: string | null;
  readonly lines: readonly { readonly jobLineId: number; readonly status: string | null }[] | null;
  readonly invoiceNumber: string | null;
  /** IANA name of the zone of the location that makes it. */
  readonly timezone: string | null;
}

/** Which jobs of an account: all, or those of one index. */
export type JobFilter =
  | { readonly by: 'none' }
  | { readonly by: 'status'; readonly status: string }
  | { readonly by: 'orderNumber'; readonly orderNumber: string }
  /** Open, undispatched jobs due before a day (YYYY-MM-DD). */
  | { readonly by: 'dueBefore'; readonly day: string };

/** Where a list of jobs goes on. */
export interface JobsCursor {
  /** The log's cursor from before the first page. */
  readonly asOf: string;
  readonly filter: JobFilter;
  /** The sort key of the last job of the page before. */
  readonly behind: string;
}

/** A page of jobs. */
export interface JobsPage {
  readonly kind: 'jobs';
  readonly jobs: readonly JobEntry[];
  /** Null on the last page. */
  readonly next: string | null;
  /**
   * The log's cursor from before the first page was read, the same on all pages: whoever has read them all and follows
   * the feed from here misses nothing. An event after it may already be in a job as shown; taking it in again is harmless,
   * for events carry the job as it stands.
   */
  readonly asOf: string;
}

/** A page is cut (after its first job) before its snapshots grow over this. */
const PAGE_BYTES = 4_000_000;

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
  const lastGood = status ? toStatus(status).lastGoodCrawlStartedAt : null;

  const found = await readPlaces(deps.table, ref, filter, cursor?.behind, limit);
  const jobs: JobEntry[] = [];
  let bytes = 0;
  let last: string | undefined;
  for (const { behind, item } of found) {
    bytes += item ? Buffer.byteLength(String(item.snapshot)) : 0;
    if (last !== undefined && bytes > PAGE_BYTES) break;
    last = behind;
    if (!item) continue;
    const snapshot = toSnapshot(item);
    if (bearsOut(snapshot, filter)) jobs.push(toEntry(snapshot, lastGood));
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
): Promise<{ readonly job: JobRecord; readonly asOf: string } | undefined> {
  const place = await locate(deps.log, ref, undefined, 'head');
  if (!place || 'kind' in place) return undefined;
  const status = await deps.table.get(keys.status(ref));
  const item = await deps.table.get(keys.snapshot(ref, jobNumber));
  if (!item) return undefined;
  const snapshot = toSnapshot(item);
  const { detail } = snapshot;
  const job = {
    ...toEntry(snapshot, status ? toStatus(status).lastGoodCrawlStartedAt : null),
    detailAt: detail ? instant(snapshot.detailAt) : null,
    lines: detail?.lines ?? null,
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
  filter: z.discriminatedUnion('by', [
    z.strictObject({ by: z.literal('none') }),
    z.strictObject({ by: z.literal('status'), status: z.string() }),
    z.strictObject({ by: z.literal('orderNumber'), orderNumber: z.string() }),
    z.strictObject({ by: z.literal('dueBefore'), day: z.string() }),
  ]),
  // DynamoDB takes no empty key, and none over 1,024 bytes.
  behind: z.string().min(1).max(300),
});

/** Snapshots in the order of their list, each with its sort key there; one that is gone since is left out of its place. */
async function readPlaces(
  table: Table,
  ref: AccountRef,
  filter: JobFilter,
  behind: string | undefined,
  limit: number,
): Promise<{ behind: string; item: Item | undefined }[]> {
  const after = behind === undefined ? {} : { after: behind };
  if (filter.by === 'none') {
    const items = await table.query({ pk: snapshotPk(ref), ...after, limit });
    return items.map((item) => ({ behind: item.sk, item }));
  }
  const range = rangeOf(ref, filter);
  const entries = await table.query({ ...range, ...after, limit });
  const items = await table.getMany(entries.map(({ pk, sk }) => ({ pk, sk })));
  const byKey = new Map(items.map((item) => [`${item.pk}\n${item.sk}`, item]));
  return entries.map((entry) => ({
    behind: String(entry[stateSchema.indexes[range.index].sortKey]),
    item: byKey.get(`${entry.pk}\n${entry.sk}`),
  }));
}

function rangeOf(ref: AccountRef, filter: Exclude<JobFilter, { by: 'none' }>): JobRange {
  switch (filter.by) {
    case 'status':
      return jobsWithStatus(ref, filter.status);
    case 'orderNumber':
      return jobsWithOrderNumber(ref, filter.orderNumber);
    case 'dueBefore':
      return jobsDueBefore(ref, filter.day);
  }
}

function bearsOut(snapshot: Snapshot, filter: JobFilter): boolean {
  const job = summarize(snapshot);
  switch (filter.by) {
    case 'none':
      return true;
    case 'status':
      return job.status === filter.status;
    case 'orderNumber':
      return job.orderNumber === filter.orderNumber;
    case 'dueBefore':
      return (
        snapshot.ended === null &&
        snapshot.settling === null &&
        job.dateOut === null &&
        job.dateDue !== null &&
        job.dateDue < filter.day
      );
  }
}

function toEntry(snapshot: Snapshot, lastGoodCrawlStartedAt: number | null): JobEntry {
  const known = { lastGoodCrawlStartedAt, baselineStartedAt: null };
  return {
    ...summarize(snapshot),
    phase: phaseOf(snapshot),
    ended: snapshot.ended,
    listedThrough: snapshot.list === null ? null : instant(sinceListed(snapshot, known)),
  };
}

function phaseOf(snapshot: Snapshot): Phase {
  if (snapshot.departure !== null) return 'departed';
  return snapshot.settling === null && snapshot.ended === null ? 'listed' : 'settling';
}

function instant(ms: number): string {
  return new Date(ms).toISOString();
}
