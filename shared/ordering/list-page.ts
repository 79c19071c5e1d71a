/** Pages of the list of jobs, of which only entries with an unknown text are parsed. */
import { hash } from 'node:crypto';
import { isHtml } from './errors.ts';
import { type Exchanged, readJson } from './exchange.ts';
import { exceedsMaxValues, findStringEnd } from './json-text.ts';
import { type ActiveJob, ActiveJobsPage } from './schemas.ts';

/** A parsed entry. `digest`: SHA-256 of its text, if the page was read with {@link Recall}. */
export type ListedJob = ActiveJob & { readonly digest?: string };

/** Returns what the caller knows of an entry by the digest of its text. `undefined`: the entry is parsed. */
export type Recall<T> = (digest: string) => T | undefined;

/** A page. Each known entry is replaced by what the caller knows of it. */
export type ListPage<T = never> = Omit<ActiveJobsPage, 'items'> & { readonly items: (ListedJob | T)[] };

/** Parses a successful answer. Throws like {@link readJson}, whose result it has, except for known entries. */
export function readListPage<T>(operation: string, answer: Exchanged, recall?: Recall<T>): ListPage<T> {
  const isExpected = recall && !isHtml(answer.headers, answer.text);
  return (isExpected && readByEntry(answer.text, recall)) || readJson(operation, answer, ActiveJobsPage);
}

/** Returns `undefined` for any text that is not a page in its usual form. */
function readByEntry<T>(text: string, recall: Recall<T>): ListPage<T> | undefined {
  if (exceedsMaxValues(text)) return undefined;
  const { entries, frame } = splitEntries(text);
  const items: (ListedJob | T)[] = [];
  const unknown: { readonly at: number; readonly digest: string; readonly text: string }[] = [];
  for (const [at, entry] of entries.entries()) {
    const digest = hash('sha256', entry, 'binary');
    const known = recall(digest);
    if (known === undefined) unknown.push({ at, digest, text: entry });
    else items[at] = known;
  }
  try {
    const page = JSON.parse(frame);
    // Anything else in the list would break the sequence.
    if (page.items.length !== entries.length || page.items.some((item: unknown, at: number) => item !== at))
      return undefined;
    page.items = JSON.parse(`[${unknown.map((entry) => entry.text).join()}]`);
    const parsed = ActiveJobsPage.safeParse(page);
    if (!parsed.success) return undefined;
    for (const [nth, { at, digest }] of unknown.entries()) {
      const job = parsed.data.items[nth];
      if (job) items[at] = Object.assign(job, { digest });
    }
    return { ...parsed.data, items };
  } catch {
    return undefined;
  }
}

const ITEMS = /(?<!\\)"items"\s*:\s*$/;

/**
 * Returns the texts of the objects in the list `items` of a page, and the page with each of them replaced by its position (from
 * 0). A text that is not valid JSON stays invalid.
 */
function splitEntries(text: string): { readonly entries: string[]; readonly frame: string } {
  const entries: string[] = [];
  let frame = '';
  let rest = 0;
  let depth = 0;
  let start = -1;
  let isItems = false;
  for (let at = 0; at < text.length; at += 1) {
    const code = text.charCodeAt(at);
    if (code === 0x22) {
      at = findStringEnd(text, at);
      if (at < 0) break;
    } else if (code === 0x7b || code === 0x5b) {
      depth += 1;
      if (depth === 2) isItems = code === 0x5b && ITEMS.test(text.slice(Math.max(0, at - 20), at));
      if (depth === 3 && isItems && code === 0x7b) start = at;
    } else if (code === 0x7d || code === 0x5d) {
      depth -= 1;
      if (depth === 2 && start >= 0) {
        // The spaces keep a part of a number beside an entry invalid.
        frame += `${text.slice(rest, start)} ${entries.length} `;
        rest = at + 1;
        entries.push(text.slice(start, rest));
        start = -1;
      }
    }
  }
  return { entries, frame: frame + text.slice(rest) };
}
