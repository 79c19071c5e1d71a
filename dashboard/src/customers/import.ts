/** Imports a recipients file in parts, with one combined report. */
import type { ImportReport } from '../../../client/index.ts';
import { decodeCsv, NOT_UTF8, splitCsv } from '../../../shared/notifications/recipients-file.ts';

export type { ImportReport };

/** Progress in parts of the file. */
export interface ImportProgress {
  readonly done: number;
  readonly total: number;
}

/** Decodes a chosen file. Returns its text, or an error message. */
export function readCsvFile(bytes: Uint8Array): { readonly text: string } | { readonly problem: string } {
  const text = decodeCsv(bytes);
  if (text === undefined) return { problem: `The file ${NOT_UTF8}.` };
  if (text.trim() === '')
    return { problem: 'The file is empty. The first line must contain the column names.' };
  return { text };
}

/**
 * Sends the text in one or more requests, one after another, and adds up the reports. Line numbers refer to the whole text. Throws the
 * first error of `send`. Parts sent before it remain imported; importing the same file again is safe.
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
    sum.invalidRows.push(...report.invalidRows.map((row) => ({ ...row, line: part.toLine(row.line) })));
  }
  onProgress({ done: parts.length, total: parts.length });
  return sum;
}
