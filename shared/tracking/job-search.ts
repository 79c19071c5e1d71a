/** Entries of jobs in the search index. They are written before the commit of a job, and former ones removed with it. */
import type { AccountRef } from '../storage/schema.ts';
import { toGroupSearchItem, toJobSearchItem } from '../storage/search-index.ts';
import type { Item, Key } from '../storage/table.ts';
import { expiresAfter, type Snapshot, summarize } from './snapshot.ts';
import { toIndexEntry, type Work } from './work.ts';

/** Maximum number of tracking numbers of a job that can be searched for. */
const MAX_TRACKING = 20;

/** Returns the entries of a job. That of its order group belongs to all jobs of the group. */
export function toJobSearchItems(ref: AccountRef, snapshot: Snapshot): Item[] {
  const { group, own } = toEntries(ref, snapshot);
  return [...own, ...group];
}

/** Returns the entries that only this job has. */
export const toOwnSearchItems = (ref: AccountRef, snapshot: Snapshot): Item[] => toEntries(ref, snapshot).own;

function toEntries(ref: AccountRef, snapshot: Snapshot): { readonly group: Item[]; readonly own: Item[] } {
  const { jobNumber, orderNumber, orderGroup, tracking } = summarize(snapshot);
  const parcels = tracking.flatMap(({ number }) => number ?? []).slice(0, MAX_TRACKING);
  const found = [
    toJobSearchItem(ref, 'job', String(jobNumber), jobNumber),
    orderNumber ? toJobSearchItem(ref, 'orderNumber', orderNumber, jobNumber) : undefined,
    ...parcels.map((number) => toJobSearchItem(ref, 'trackingNumber', number, jobNumber)),
  ].filter((item) => item !== undefined);
  // Values that differ only in case or spaces have one entry.
  const own = [...new Map(found.map((item) => [toText(item), item])).values()];
  const group = orderGroup ? toGroupSearchItem(ref, orderGroup) : undefined;
  return { group: group ? [group] : [], own };
}

/** Changes of the search index. */
export interface SearchChanges {
  /** Entries to store before the commit. An entry whose job is not committed finds nothing. */
  readonly items: readonly Item[];
  /** Former entries, to remove with the commit. */
  readonly former: readonly Key[];
}

/**
 * Returns the changes of the search index by a work: the entries of new values. All entries, if the job begins or ceases to
 * expire. `leavesIndexAt` (epoch ms): time at which it ceases to be tracked.
 */
export function toSearchChanges(ref: AccountRef, work: Work, leavesIndexAt: number): SearchChanges {
  const before = work.stored ? toJobSearchItems(ref, work.stored) : [];
  const ownBefore = work.stored ? toOwnSearchItems(ref, work.stored) : [];
  if (work.untracked === 'delete snapshot') return { items: [], former: ownBefore.map(toKey) };
  const after = toJobSearchItems(ref, work.snapshot);
  const leaves = toIndexEntry(work) === undefined;
  const isKept = work.stored !== undefined && work.entry !== undefined && !leaves;
  const known = new Set(isKept ? before.map(toText) : []);
  const present = new Set(after.map(toText));
  const ttl = leaves ? { ttl: expiresAfter(leavesIndexAt) } : {};
  return {
    items: after.filter((item) => !known.has(toText(item))).map((item) => ({ ...item, ...ttl })),
    former: ownBefore.filter((item) => !present.has(toText(item))).map(toKey),
  };
}

const toKey = ({ pk, sk }: Key): Key => ({ pk, sk });
const toText = ({ pk, sk }: Key): string => `${pk} ${sk}`;
