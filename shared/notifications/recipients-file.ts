/** Files of recipients as spreadsheets read and write them; for the command as well, so it depends on nothing. */

/** The columns that there can be. */
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

/** What is wrong with a file in another encoding, without its name. */
export const NOT_UTF8 =
  'must be UTF-8, and seems to be in an older encoding such as Windows-1252: in Excel, save it as “CSV UTF-8”';

/**
 * The text of a file: UTF-8, or UTF-16 with its mark, as Excel saves “Unicode text”. Of what is in neither there is none: read
 * as something else, names would come out wrong and nobody would notice.
 */
export function decodedCsv(bytes: Uint8Array): string | undefined {
  const [first, second] = bytes;
  const encoding =
    first === 0xff && second === 0xfe ? 'utf-16le' : first === 0xfe && second === 0xff ? 'utf-16be' : 'utf-8';
  try {
    return new TextDecoder(encoding, { fatal: true }).decode(bytes);
  } catch {
    return undefined;
  }
}

/** What a file begins with; by the mark before it Excel knows that it is UTF-8. */
export const csvHead = `\ufeff${columns.join(',')}`;

/** A line of a file. What a spreadsheet would take for a formula has an apostrophe before it. */
export function csvRow(recipient: { readonly [column in Column]: unknown }): string {
  return columns.map((column) => cellOf(recipient[column])).join(',');
}

const FORMULA = /^[=+\-@\t\r]/;

function cellOf(value: unknown): string {
  const text = Array.isArray(value) ? value.join(' ') : String(value ?? '');
  const guarded = FORMULA.test(text) ? `'${text}` : text;
  return /[",;\t\r\n]|^\s|\s$/.test(guarded) ? `"${guarded.replaceAll('"', '""')}"` : guarded;
}
