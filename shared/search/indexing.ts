/** Maintains the search index where no other code does: for data of an earlier version, and for moved and deleted accounts. */
import { toRecipientSearchItems } from '../notifications/recipient-search.ts';
import { findAddressSealer } from '../notifications/unsubscribe.ts';
import { type AccountRef, accountPk, keys, recipientPk, snapshotPk } from '../storage/schema.ts';
import { putSearchItems } from '../storage/search-index.ts';
import { deleteItems, type Item, type Table } from '../storage/table.ts';
import { toJobSearchItems } from '../tracking/job-search.ts';
import { toSnapshot } from '../tracking/snapshot.ts';

/** Time (ms) for which functions of an earlier version may run after an upgrade began. They write no entries. */
const REINDEX_MS = 20 * 60_000;
/** Number of jobs or recipients read at once. */
const PAGE_ITEMS = 100;

/** Stores the entries of some jobs or recipients of an account. Other items have none. */
export async function putItemEntries(table: Table, ref: AccountRef, items: readonly Item[]): Promise<void> {
  await putSearchItems(table, await toEntries(table, ref, items));
}

/** Removes the entries of some jobs or recipients of an account. Other items have none. */
export async function removeItemEntries(
  table: Table,
  ref: AccountRef,
  items: readonly Item[],
): Promise<void> {
  await deleteItems(table, await toEntries(table, ref, items));
}

/** Progress of a pass: the account that it has reached. */
interface Progress {
  readonly account: string;
  /** Data of the account that is read next. */
  readonly part: 'jobs' | 'recipients' | 'nothing';
  /** Sort key of the last item that was read of this part. */
  readonly after: string;
}

const BEGINNING: Progress = { account: '', part: 'nothing', after: '' };

/**
 * Indexes the jobs and recipients that an earlier version stored: at most `pages` pages per call. During an upgrade, functions of
 * that version still write. So a last pass begins {@link REINDEX_MS} after the first call. Later calls do nothing. A region
 * without accounts needs no indexing. Returns whether everything is indexed.
 */
export async function indexFormerData(
  table: Table,
  region: string,
  now: number,
  pages: number,
): Promise<boolean> {
  const key = keys.searchIndexing(region);
  const known = await table.get(key);
  if (known?.done === true) return true;
  const since = Number(known?.since ?? now);
  const isPaused = known !== undefined && known.begunAt === undefined;
  if (isPaused && now < since + REINDEX_MS) return false;
  const begunAt = Number(known?.begunAt ?? now);
  let progress: Progress =
    known === undefined || isPaused
      ? BEGINNING
      : {
          account: String(known.account),
          part: known.part as Progress['part'],
          after: String(known.after ?? ''),
        };
  for (let page = 0; page < pages; page += 1) {
    const next = await indexPage(table, region, progress);
    if (!next) {
      const isEmpty = known === undefined && progress === BEGINNING;
      const isLast = isEmpty || begunAt >= since + REINDEX_MS;
      await table.write({ put: { ...key, since, ...(isLast ? { done: true } : {}) } });
      return isLast;
    }
    progress = next;
  }
  await table.write({ put: { ...key, since, begunAt, ...progress } });
  return false;
}

/** Indexes the next page. `undefined`: there is no other account. */
async function indexPage(table: Table, region: string, progress: Progress): Promise<Progress | undefined> {
  const bound = progress.part === 'nothing' ? { after: progress.account } : { from: progress.account };
  const [found] = await table.query({ pk: accountPk(region), ...bound, limit: 1 });
  if (!found) return undefined;
  const account = found.sk;
  const ref = { region, account };
  const isSame = progress.account === account && progress.part !== 'nothing';
  const { part, after } = isSame ? progress : ({ part: 'jobs', after: '' } as const);
  const pk = part === 'jobs' ? snapshotPk(ref) : recipientPk(ref);
  const items = await table.query({ pk, ...(after === '' ? {} : { after }), limit: PAGE_ITEMS });
  await putItemEntries(table, ref, items);
  // A deletion that ran meanwhile has removed the items, and perhaps not their entries.
  if (!(await table.get(keys.account(ref)))) await removeItemEntries(table, ref, items);
  if (items.length === PAGE_ITEMS) return { account, part, after: items.at(-1)?.sk ?? '' };
  return { account, part: part === 'jobs' ? 'recipients' : 'nothing', after: '' };
}

async function toEntries(table: Table, ref: AccountRef, items: readonly Item[]): Promise<Item[]> {
  const sealer = await findAddressSealer(table, ref.region);
  return items.flatMap((item) => {
    if (item.pk === snapshotPk(ref) && typeof item.snapshot === 'string') {
      const { ttl } = item;
      return toJobSearchItems(ref, toSnapshot(item)).map((entry) => ({ ...entry, ttl }));
    }
    return item.pk === recipientPk(ref) ? toRecipientSearchItems(ref, item, sealer) : [];
  });
}
