/** The CSV format of exports. */
import { parse } from 'csv-parse/sync';
import { describe, expect, it } from 'vitest';
import * as z from 'zod';
import { describeCsv } from '../shared/api/csv.ts';
import { formatCsvRow, getField, parseCsvCell, splitCsvRows } from '../shared/csv.ts';

describe('a CSV row', () => {
  it('is read back by a CSV parser as it was, with quotes, separators and line breaks', () => {
    const cells = ['plain', 'a "b"', 'a,b', 'a;b', 'a\r\nb', ' padded ', 'Zürich', ''];
    expect(parse(`${formatCsvRow(cells)}\r\n`)).toEqual([cells]);
  });

  it.each([
    ...['=1+1', '+44 20 7946 0000', '-1', '@SUM(A1)', '\t=1', '\r=1', '\n=1'],
    ...["'=Bob", "''@x"],
    ...['\uff1d1+1', '\uff0b1', '\uff0d1', '\uff20SUM(A1)'],
  ])('has no cell that a spreadsheet interprets as a formula, and is read back as it was: %j', (text) => {
    expect(parse(formatCsvRow([text, 'x']))).toEqual([[`'${text}`, 'x']]);
    expect(parseCsvCell(`'${text}`)).toBe(text);
  });

  it('keeps an apostrophe at the beginning of other text', () => {
    expect(parse(formatCsvRow(["'s-Hertogenbosch"]))).toEqual([["'s-Hertogenbosch"]]);
    expect(parseCsvCell("'s-Hertogenbosch")).toBe("'s-Hertogenbosch");
  });

  it('has numbers, booleans and absent values as they are, and arrays and objects as JSON', () => {
    expect(parse(formatCsvRow([-5, 0, true, false, null, undefined, ['a', 'b'], { c: 1 }]))).toEqual([
      ['-5', '0', 'true', 'false', '', '', '["a","b"]', '{"c":1}'],
    ]);
  });

  it('counts as one row if a cell contains line breaks', () => {
    expect(splitCsvRows('')).toEqual([]);
    const rows = [['a\r\n"b"\n', 'c'], ['d']].map((cells) => `${formatCsvRow(cells)}\r\n`);
    expect(splitCsvRows(rows.join(''))).toEqual(rows);
  });
});

describe('the columns of a list', () => {
  const entry = z.object({
    id: z.string(),
    status: z.object({ open: z.int(), at: z.object({ place: z.string() }).nullable() }).nullish(),
    tags: z.array(z.string()),
    labels: z.record(z.string(), z.string()),
    data: z.looseObject({ account: z.string() }),
  });

  it('are the fields of its schema: nested ones by their path, arrays and maps as one column', () => {
    const page = z.object({ things: z.array(entry), next: z.string().nullable(), asOf: z.string() });
    expect(describeCsv(page)).toEqual({
      field: 'things',
      columns: ['id', 'status.open', 'status.at.place', 'tags', 'labels', 'data'],
    });
  });

  it('are those of the first array, if a page has another one', () => {
    const page = z.object({ things: z.array(entry), next: z.string(), upcoming: z.array(z.object({})) });
    expect(describeCsv(page)?.field).toBe('things');
  });

  it('do not exist for a response that is not a page', () => {
    expect(describeCsv(undefined)).toBeUndefined();
    expect(describeCsv(entry)).toBeUndefined();
    expect(describeCsv(z.object({ things: z.array(entry) }))).toBeUndefined();
    expect(describeCsv(z.object({ things: z.array(z.string()), next: z.string() }))).toBeUndefined();
  });

  it('have the values of nested fields, and nothing below an absent one', () => {
    expect(getField({ a: { b: 0 } }, 'a.b')).toBe(0);
    expect(getField({ a: null }, 'a.b')).toBeUndefined();
    expect(getField({}, 'a.b')).toBeUndefined();
  });
});
