/** Actions on several selected rows: which rows they apply to, requests, and results. Independent of React. */
import pLimit from 'p-limit';
import type { Client } from '../../../client/index.ts';
import { toErrorMessage } from '../api.ts';
import { formatCount } from '../texts.ts';

/** Result for a row. `problem`: why the action failed. */
export interface BulkResult {
  readonly name: string;
  readonly problem: string | null;
}

/** An action on rows. */
export interface BulkAction<T> {
  /** Label of the button, such as `Pause`. */
  readonly label: string;
  /** Whether the label is a phrase that a colon separates from the rows: `Assign to ann: 3 items`. Default: `false`. */
  readonly isPhrase?: boolean;
  /** Past participle of the results, such as `paused`. */
  readonly done: string;
  /** Effect on the rows, in the confirmation. */
  readonly effect: string;
  /** Whether the action applies to a row, and why it does not: `is already paused`. */
  readonly unless?: (row: T) => string | null;
  /** Performs the action. Returns a result for each row, in any order, also for a row whose request failed. */
  run(rows: readonly T[]): Promise<BulkResult[]>;
}

/** Rows to which an action applies, and the others by reason. */
export interface Preview<T> {
  readonly rows: readonly T[];
  readonly skipped: readonly string[];
}

/** Returns what an action would do. */
export function previewBulk<T>({ unless }: Pick<BulkAction<T>, 'unless'>, rows: readonly T[]): Preview<T> {
  const reasons = rows.map((row) => unless?.(row) ?? null);
  const counts = new Map<string, number>();
  for (const reason of reasons) if (reason !== null) counts.set(reason, (counts.get(reason) ?? 0) + 1);
  return {
    rows: rows.filter((_, at) => reasons[at] === null),
    skipped: [...counts].map(([reason, count]) => `${count.toLocaleString()} ${reason}`),
  };
}

/** Formats an action with its number of rows: `Pause 2 accounts`. */
export function formatCommand(
  { label, isPhrase = false }: Pick<BulkAction<never>, 'label' | 'isPhrase'>,
  count: string,
): string {
  return `${label}${isPhrase ? ':' : ''} ${count}`;
}

/** Formats the results: `3 accounts paused, 1 failed`. */
export function summarizeResults(results: readonly BulkResult[], noun: string, done: string): string {
  const failed = results.filter(({ problem }) => problem !== null).length;
  const succeeded = `${formatCount(results.length - failed, noun)} ${done}`;
  return failed === 0 ? `${succeeded}.` : `${succeeded}, ${failed.toLocaleString()} failed.`;
}

/** Maximum number of ids in a request. */
const MAX_BATCH = 100;
/** Number of concurrent requests for single rows. */
const AT_ONCE = 4;

interface Identified {
  readonly id: string;
  readonly region: string;
}

/** Performs an action of the API on accounts or endpoints, with a request for each region and 100 ids. */
export async function runBatches(
  api: Client,
  kind: 'accounts' | 'endpoints',
  action: 'pause' | 'resume' | 'enable' | 'retry',
  rows: readonly Identified[],
): Promise<BulkResult[]> {
  const results: BulkResult[] = [];
  const byRegion = Object.entries(Object.groupBy(rows, ({ region }) => region));
  for (const [region, inRegion] of byRegion) {
    // Ids are unique within a region.
    const toName = (id: string): string => (byRegion.length > 1 ? `${id} (${region.toUpperCase()})` : id);
    const ids = (inRegion ?? []).map(({ id }) => id);
    for (let at = 0; at < ids.length; at += MAX_BATCH) {
      const batch = ids.slice(at, at + MAX_BATCH);
      try {
        const body = { action, ids: batch, region };
        const answer =
          kind === 'accounts'
            ? await api.post('/v1/accounts/batch', { body: body as typeof body & { action: 'pause' } })
            : await api.post('/v1/endpoints/batch', { body });
        results.push(
          ...answer.results.map(({ id, problem }) => ({
            name: toName(id),
            problem: problem?.detail ?? null,
          })),
        );
      } catch (cause) {
        // The other batches do not depend on it.
        results.push(...batch.map((id) => ({ name: toName(id), problem: toErrorMessage(cause) })));
      }
    }
  }
  return results;
}

/** Performs a request for each row, a few at a time. */
export function runEach<T>(
  rows: readonly T[],
  toName: (row: T) => string,
  act: (row: T) => Promise<unknown>,
): Promise<BulkResult[]> {
  return pLimit(AT_ONCE).map(rows, async (row) => {
    try {
      await act(row);
      return { name: toName(row), problem: null };
    } catch (cause) {
      return { name: toName(row), problem: toErrorMessage(cause) };
    }
  });
}
