/** Finds the recipients of jobs by the pointers under their scopes. */
import pLimit from 'p-limit';
import { type AccountRef, keys, recipientPlace, recipientPlacePk } from '../storage/schema.ts';
import type { Item, Table } from '../storage/table.ts';
import { toRecipient, toScopeKey } from './recipient-fields.ts';
import { isVisible } from './recipient-search.ts';
import type { Recipient } from './records.ts';
import type { Scope } from './types.ts';

/** Number of concurrent reads and writes. */
const AT_ONCE = 16;

const unique = <T>(values: readonly T[]): T[] => [...new Set(values)];

/** Fields of a job by which recipients are matched, in full length. */
export interface JobIdentity {
  readonly jobNumber: number;
  readonly orderNumber: string | null;
  readonly orderGroup: string | null;
}

/** Returns the recipients of any of the jobs, by id, each with its jobs. Includes those who are paused or want other kinds. */
export async function findRecipients(
  table: Table,
  ref: AccountRef,
  jobs: readonly JobIdentity[],
): Promise<{ readonly recipient: Recipient; readonly jobs: readonly number[] }[]> {
  if (jobs.length === 0) return [];
  const ids = await pLimit(AT_ONCE).map(toKeyRanges(jobs), (range) => readIds(table, ref, range));
  const found = await readItems(table, ref, ids.flat());
  return found
    .map((item) => toRecipient(ref, item))
    .map((recipient) => ({
      recipient,
      // Checked against the recipient's own scope: it may have changed since the pointer was read.
      jobs: jobs.filter((job) => matchesScope(recipient.scope, job)).map(({ jobNumber }) => jobNumber),
    }))
    .filter((match) => match.jobs.length > 0)
    .sort((a, b) => (a.recipient.id < b.recipient.id ? -1 : 1));
}

/** Returns the items of recipients with exactly this scope. */
export async function readItemsByScope(table: Table, ref: AccountRef, scope: Scope): Promise<Item[]> {
  const place = toScopeKey(scope);
  const items = await readItems(table, ref, await readIds(table, ref, toScopeRange(place)));
  return items.filter((item) => toScopeKey(toRecipient(ref, item).scope) === place);
}

/** Returns the items of those recipients that exist. */
export async function readItems(table: Table, ref: AccountRef, ids: readonly string[]): Promise<Item[]> {
  const items = await table.getMany(unique(ids).map((recipient) => keys.recipient(ref, recipient)));
  return items.filter(isVisible);
}

interface Range {
  readonly from: string;
  readonly to: string;
}

/** Range of all ids in one scope: `~` sorts after every id. */
const toScopeRange = (place: string): Range => ({ from: `${place}#`, to: `${place}#~` });

/** Returns the ranges to read. Jobs of one order have adjacent numbers, so one range covers them. */
function toKeyRanges(jobs: readonly JobIdentity[]): Range[] {
  const numbers = jobs.map(({ jobNumber }) => jobNumber);
  const named = jobs.flatMap(({ orderNumber, orderGroup }) => [
    ...(orderGroup ? [recipientPlace.orderGroup(orderGroup)] : []),
    ...(orderNumber ? [recipientPlace.orderNumber(orderNumber)] : []),
  ]);
  return [
    ...unique([recipientPlace.account(), ...named]).map(toScopeRange),
    {
      from: recipientPlace.job(Math.min(...numbers)),
      to: `${recipientPlace.job(Math.max(...numbers))}#~`,
    },
  ];
}

async function readIds(table: Table, ref: AccountRef, range: Range): Promise<string[]> {
  const places = await table.query({ pk: recipientPlacePk(ref), ...range });
  return places.map(({ recipient }) => String(recipient));
}

/** Returns whether a scope contains a job. */
export function matchesScope(scope: Scope, job: JobIdentity): boolean {
  switch (scope.for) {
    case 'account':
      return true;
    case 'orderGroup':
      return scope.orderGroup === job.orderGroup;
    case 'orderNumber':
      return scope.orderNumber === job.orderNumber;
    case 'job':
      return scope.jobNumber === job.jobNumber;
  }
}
