/** CSV files of recipients, as spreadsheets read and write them. The CLI and the dashboard use it too, so it imports nothing from Node. */
import { BYTE_ORDER_MARK, formatCsvRow as formatRow } from '../csv.ts';

/** Supported columns. */
export const columns = [
  'id',
  'name',
  'email',
  'mobile',
  'locale',
  'zone',
  'channels',
  'kinds',
  'orderGroup',
  'orderNumber',
  'jobNumber',
  'paused',
] as const;
export type Column = (typeof columns)[number];

/** Error for a file in another encoding, without its name. */
export const NOT_UTF8 =
  'must be UTF-8, and is in another encoding such as Windows-1252; in Excel, save it as “CSV UTF-8”';

/**
 * Decodes a file: UTF-8, or UTF-16 with byte order mark, as Excel saves “Unicode text”. Returns `undefined` for any other encoding: a wrong
 * guess would silently corrupt names.
 */
export function decodeCsv(bytes: Uint8Array): string | undefined {
  const [first, second] = bytes;
  const encoding =
    first === 0xff && second === 0xfe ? 'utf-16le' : first === 0xfe && second === 0xff ? 'utf-16be' : 'utf-8';
  try {
    return new TextDecoder(encoding, { fatal: true }).decode(bytes);
  } catch {
    return undefined;
  }
}

/** Header of an exported file. Excel recognizes UTF-8 by its byte order mark. */
export const csvHeader = `${BYTE_ORDER_MARK}${columns.join(',')}`;

/** Returns a line of a file. Cells that a spreadsheet would interpret as formulas get a leading apostrophe. */
export function formatCsvRow(recipient: { readonly [column in Column]: unknown }): string {
  return formatRow(
    columns.map((column) => {
      const value = recipient[column];
      return Array.isArray(value) ? value.join(' ') : value;
    }),
  );
}

/** Maximum size of one import request: the API accepts 100,000 bytes, and each row takes several writes. */
const CHUNK_BYTES = 80_000;
const CHUNK_ROWS = 250;
/** Length to which a record is cut that is larger than a request. The API then reports its line. */
const CUT_LENGTH = 10_000;

/**
 * Splits a file into parts for one request each, every one with the header. Records are never split. If the quotes of a record do not match
 * and it is larger than a request, the API gets its beginning, and no later records.
 */
export function splitCsv(text: string): { readonly csv: string; toLine(line: number): number }[] {
  const [first, ...others] = splitRecords(text.replace(/^\ufeff/, ''));
  // Excel's separator line belongs to the header.
  const isSeparator = first !== undefined && /^sep=.\s*$/i.test(first.text);
  const head = isSeparator ? { text: first.text + (others[0]?.text ?? ''), line: 1 } : first;
  const rows = isSeparator ? others.slice(1) : others;
  if (head === undefined) return [{ csv: '', toLine: (line) => line }];
  const chunks: { rows: string[]; bytes: number; first: number }[] = [];
  for (const { text, line } of rows) {
    const row = requestSize(text) > CHUNK_BYTES ? cutRecord(text) : text;
    const bytes = requestSize(row);
    const last = chunks.at(-1);
    if (last && last.bytes + bytes <= CHUNK_BYTES && last.rows.length < CHUNK_ROWS) {
      last.rows.push(row);
      last.bytes += bytes;
    } else {
      chunks.push({ rows: [row], bytes: requestSize(head.text) + bytes, first: line });
    }
    if (row !== text && row.split('"').length % 2 === 0) break;
  }
  if (chunks.length === 0) return [{ csv: head.text, toLine: (line) => line }];
  const before = countLines(head.text);
  return chunks.map(({ rows, first }) => ({
    csv: head.text + rows.join(''),
    toLine: (line) => (line <= before ? line : first + line - before - 1),
  }));
}

/** Splits a text into records with the line where each begins. A line break within quotes ends no record. */
function splitRecords(text: string): { readonly text: string; readonly line: number }[] {
  const records: { text: string; line: number }[] = [];
  let begins = 0;
  let line = 1;
  let quoted = false;
  for (let at = 0; at < text.length; at += 1) {
    const character = text[at];
    if (character === '"') quoted = !quoted;
    else if (quoted || (character !== '\n' && (character !== '\r' || text[at + 1] === '\n'))) continue;
    else {
      const record = text.slice(begins, at + 1);
      records.push({ text: record, line });
      line += countLines(record);
      begins = at + 1;
    }
  }
  if (begins < text.length) records.push({ text: text.slice(begins), line });
  return records;
}

/** Returns the first lines of a large record, or the beginning of its only line. */
function cutRecord(text: string): string {
  const cut = text.slice(0, CUT_LENGTH);
  return cut.slice(0, cut.lastIndexOf('\n') + 1) || `${cut}\n`;
}

const countLines = (text: string): number => text.match(/\r\n|\r|\n/g)?.length ?? 0;

/** Returns the size of a text in a request, bytes. */
const requestSize = (text: string): number => new TextEncoder().encode(JSON.stringify(text)).length;
