/** CSV as spreadsheets read it (RFC 4180). The CLI and the dashboard use it too, so it has no dependencies. */

/** Beginning of a file by which Excel recognizes UTF-8. */
export const BYTE_ORDER_MARK = '\ufeff';

/** Returns a row without its line break. */
export function formatCsvRow(cells: readonly unknown[]): string {
  return cells.map(formatCsvCell).join(',');
}

/** Beginning of text that a spreadsheet would interpret as a formula, also after apostrophes. Some accept full-width characters, too. */
const FORMULA = /^'*[=+\-@\t\r\n\uff0b\uff0d\uff1d\uff20]/;

/** Returns a cell: text as it is, arrays and objects as JSON. Text that a spreadsheet would interpret as a formula gets a leading apostrophe. */
function formatCsvCell(value: unknown): string {
  const text = value !== null && typeof value === 'object' ? JSON.stringify(value) : String(value ?? '');
  const guarded = typeof value === 'string' && FORMULA.test(text) ? `'${text}` : text;
  return /[",;\t\r\n]|^\s|\s$/.test(guarded) ? `"${guarded.replaceAll('"', '""')}"` : guarded;
}

/** Returns the text of a cell without the apostrophe that {@link formatCsvRow} adds to what looks like a formula. */
export function parseCsvCell(cell: string): string {
  return cell.startsWith("'") && FORMULA.test(cell.slice(1)) ? cell.slice(1) : cell;
}

/** Returns a field of a JSON object by its path: `status.openJobs`. */
export function getField(record: unknown, path: string): unknown {
  return path
    .split('.')
    .reduce<unknown>(
      (value, name) =>
        value !== null && typeof value === 'object' ? (value as Record<string, unknown>)[name] : undefined,
      record,
    );
}

/** Returns the complete rows of a text, each with its line break. A line break within quotes ends no row. */
export function splitCsvRows(text: string): string[] {
  const rows: string[] = [];
  let isQuoted = false;
  for (const line of text.match(/[^\n]*\n/g) ?? []) {
    rows.push(isQuoted ? rows.pop() + line : line);
    if (line.split('"').length % 2 === 0) isQuoted = !isQuoted;
  }
  return rows;
}
