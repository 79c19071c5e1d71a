/**
 * Pages of lists as CSV. Every route whose response is a page supports it: its columns are the fields of the response's schema, so
 * that all pages of a list have the same ones and can be joined to one file.
 */
import type { Context } from 'hono';
import { parseAccept } from 'hono/utils/accept';
import * as z from 'zod';
import { formatCsvRow, getField } from '../csv.ts';

/** Conversion of the entries of a page to rows. */
export interface CsvPage {
  /** Name of the array in the response. */
  readonly field: string;
  /** Paths of the columns: `id`, `status.openJobs`. */
  readonly columns: readonly string[];
}

/**
 * Returns how a response becomes CSV: a row for each entry of its first array. `undefined` if it is not a page: an object with `next` and
 * an array of objects.
 */
export function describeCsv(schema: z.ZodType | undefined): CsvPage | undefined {
  if (!(schema instanceof z.ZodObject) || !('next' in schema.shape)) return undefined;
  const list = Object.entries<z.ZodType>(schema.shape).find(([, of]) => unwrap(of) instanceof z.ZodArray);
  if (!list) return undefined;
  const [field, array] = list;
  const entry = unwrap((unwrap(array) as z.ZodArray).element as z.ZodType);
  if (!(entry instanceof z.ZodObject)) return undefined;
  return { field, columns: listFields(entry) };
}

/** Returns the paths of all fields. Arrays, maps and objects with undeclared fields are one column each. */
function listFields({ shape }: z.ZodObject, prefix = ''): string[] {
  return Object.entries<z.ZodType>(shape).flatMap(([name, of]) => {
    const field = unwrap(of);
    const isNested = field instanceof z.ZodObject && field.def.catchall === undefined;
    const path = `${prefix}${name}`;
    return isNested ? listFields(field, `${path}.`) : [path];
  });
}

function unwrap(schema: z.ZodType): z.ZodType {
  const isWrapper =
    schema instanceof z.ZodOptional ||
    schema instanceof z.ZodNullable ||
    schema instanceof z.ZodDefault ||
    schema instanceof z.ZodReadonly;
  return isWrapper ? unwrap(schema.unwrap() as z.ZodType) : schema;
}

/** Returns a page as CSV if the request prefers `text/csv` to JSON. Otherwise returns the response unchanged. */
export async function toPreferred(c: Context, response: Response, page: CsvPage): Promise<Response> {
  if (response.status !== 200) return response;
  const accepted = parseAccept(c.req.header('accept') ?? '');
  const csv = accepted.find(({ type, q }) => type.toLowerCase() === 'text/csv' && q > 0);
  const json = accepted.find(({ type }) => type.toLowerCase() === 'application/json');
  if (!csv || (json && json.q > csv.q)) return response;
  const body = (await response.json()) as Page;
  const entries = body[page.field] as readonly unknown[];
  const hasHeader = csv.params.header?.toLowerCase() !== 'absent';
  const rows = [
    ...(hasHeader ? [page.columns] : []),
    ...entries.map((entry) => page.columns.map((column) => getField(entry, column))),
  ];
  const headers = new Headers(response.headers);
  headers.set('content-type', `text/csv; charset=utf-8; header=${hasHeader ? 'present' : 'absent'}`);
  headers.append('vary', 'accept');
  const next = getNextPage(new URL(c.req.url), body);
  if (next !== undefined) headers.set('link', `<${next}>; rel="next"`);
  return new Response(rows.map((row) => `${formatCsvRow(row)}\r\n`).join(''), { headers });
}

/** Fields of pages that contain cursors. Only feeds have `head` and `previous`. */
interface Page {
  readonly [field: string]: unknown;
  readonly next?: string | null;
  readonly previous?: string | null;
  readonly head?: string;
}

/** Returns the relative address of the next page. `undefined` at the end of the list; a feed ends at its last event. */
function getNextPage({ searchParams }: URL, { next, previous, head }: Page): string | undefined {
  const [name, cursor] =
    previous === undefined ? (['after', next] as const) : (['before', previous] as const);
  if (typeof cursor !== 'string' || cursor === head || cursor === searchParams.get(name)) return undefined;
  const query = new URLSearchParams(searchParams);
  query.set(name, cursor);
  query.delete('last');
  return `?${query}`;
}
