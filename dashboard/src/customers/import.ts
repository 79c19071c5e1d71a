/** Imports of recipients: a file in parts, and one report of all of them. */
import type * as z from 'zod';
import type { ImportReport as Report } from '../../../shared/api/notification-views.ts';
import { decodeCsv, NOT_UTF8, splitCsv } from '../../../shared/notifications/recipients-file.ts';

/** What came of an import, or would. */
export type ImportReport = z.infer<typeof Report>;

/** How far an import is, in parts of the file. */
export interface ImportProgress {
  readonly done: number;
  readonly total: number;
}

/** The text of a file that somebody chose, or in a sentence why there is none. */
export function readCsvFile(bytes: Uint8Array): { readonly text: string } | { readonly problem: string } {
  const text = decodeCsv(bytes);
  if (text === undefined) return { problem: `The file ${NOT_UTF8}.` };
  if (text.trim() === '') return { problem: 'The file is empty; its first line must name the columns.' };
  return { text };
}

/**
 * Imports a text in as many requests as it takes, one after another, and adds up what came of them; lines are those of the
 * whole text. What `send` throws ends it, with what was done until then done: the same file can be imported again.
 */
export async function importInParts(
  text: string,
  send: (csv: string) => Promise<ImportReport>,
  onProgress: (progress: ImportProgress) => void,
): Promise<ImportReport> {
  const parts = splitCsv(text);
  const sum = { created: 0, updated: 0, unchanged: 0, invalidRows: [] as ImportReport['invalidRows'] };
  for (const [done, part] of parts.entries()) {
    onProgress({ done, total: parts.length });
    const report = await send(part.csv);
    sum.created += report.created;
    sum.updated += report.updated;
    sum.unchanged += report.unchanged;
    sum.invalidRows.push(...report.invalidRows.map((row) => ({ ...row, line: part.lineOf(row.line) })));
  }
  onProgress({ done: parts.length, total: parts.length });
  return sum;
}
