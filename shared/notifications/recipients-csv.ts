/**
 * Import of recipients from a spreadsheet. Columns may be in any order. Fields without a column are unchanged. Valid rows are imported,
 * invalid ones are reported by line, without their values.
 *
 * A row is identified by its id or, without one, by its scope and address. So importing the same file again creates nothing new, and an
 * interrupted import is simply repeated.
 */
import { parse } from 'csv-parse/sync';
import pLimit from 'p-limit';
import { parseCsvCell } from '../csv.ts';
import { type Rejection, rejected } from '../resources.ts';
import { type AccountRef, keys } from '../storage/schema.ts';
import type { Item } from '../storage/table.ts';
import { formatIssue } from '../validation.ts';
import { normalizeAddress } from './email-address.ts';
import { NewRecipient } from './notification-input.ts';
import type { ImportReport } from './notification-views.ts';
import {
  applyChange,
  type RecipientInput,
  toRecipient,
  toRecipientFields,
  toScopeKey,
} from './recipient-fields.ts';
import { readItems, readItemsByScope } from './recipient-matching.ts';
import { insertRecipient, limitReached, readRemainingCapacity, replaceRecipient } from './recipients.ts';
import { type Column, columns, NOT_UTF8 } from './recipients-file.ts';
import type { Recipient } from './records.ts';
import { type NotificationDeps, unknownAccount } from './settings.ts';
import { locales, type Scope } from './types.ts';
import { createSealer } from './unsubscribe.ts';

/** Maximum number of rows of a file: as many as one request has time for. */
export const MAX_ROWS = 5_000;
const MAX_CSV_BYTES = 4_000_000;
/** Number of rows processed concurrently. */
const AT_ONCE = 16;
/** Maximum number of retries of a row after concurrent modification. */
const ATTEMPTS = 5;

type InvalidRow = ImportReport['invalidRows'][number];

/** Imports recipients from a CSV text separated by commas, semicolons or tabs. Rejects the whole file only if it cannot be parsed. */
export async function importRecipients(
  deps: NotificationDeps,
  ref: AccountRef,
  csv: string,
  { dryRun = false }: { readonly dryRun?: boolean } = {},
): Promise<({ readonly kind: 'imported' } & ImportReport) | Rejection> {
  const sheet = parseSheet(csv);
  if (sheet.kind !== 'sheet') return sheet;
  if (!(await deps.table.get(keys.account(ref)))) return unknownAccount(ref);
  const bad: InvalidRow[] = [...sheet.bad];
  const rows = sheet.rows.flatMap((cells) => {
    const row = parseRow(ref.region, cells);
    if (row.kind === 'row') return [row];
    bad.push({ line: cells.line, field: row.field, reason: row.reason });
    return [];
  });
  const known = await findExisting(deps, ref, rows);
  const counts = { created: 0, updated: 0, unchanged: 0 };
  let room = rows.every((row) => known(row)) ? 0 : await readRemainingCapacity(deps.table, ref);
  const lines = new Map<string, number>();
  const unique = rows.flatMap((row) => {
    const target = known(row)?.sk ?? row.id ?? row.known?.identity ?? '';
    const former = lines.get(target);
    if (former === undefined) {
      lines.set(target, row.line);
      return [row];
    }
    bad.push({
      line: row.line,
      field: null,
      reason: `The row has the same recipient as line ${former}.`,
    });
    return [];
  });
  const limit = pLimit(AT_ONCE);
  const imports = limit.map(unique, async (row) => {
    const isNew = !known(row);
    if (isNew && room < 1) {
      bad.push({ line: row.line, field: null, reason: limitReached(ref).reason });
      return;
    }
    if (isNew) room -= 1;
    const outcome = await importRow(deps, ref, row, known(row), dryRun);
    if (typeof outcome === 'string') counts[outcome] += 1;
    else bad.push({ line: row.line, ...outcome });
  });
  await imports.finally(() => limit.clearQueue());
  return { kind: 'imported', ...counts, invalidRows: bad.sort((a, b) => a.line - b.line) };
}

// Parsing the text

interface Cells {
  readonly line: number;
  readonly cells: { readonly [column in Column]?: string };
}

type Sheet =
  | { readonly kind: 'sheet'; readonly rows: readonly Cells[]; readonly bad: readonly InvalidRow[] }
  | Rejection;

const rejectCsv = (reason: string): Rejection => rejected(`csv ${reason}.`);

/** Parses the rows of a text by its header. */
function parseSheet(csv: string): Sheet {
  if (Buffer.byteLength(csv) > MAX_CSV_BYTES) return rejectCsv(`must be at most ${MAX_CSV_BYTES} bytes`);
  if (csv.includes('\ufffd')) return rejected(`csv ${NOT_UTF8}.`);
  if (csv.includes('\0')) return rejectCsv('must be text without NUL characters');
  const plain = csv.replace(/^\ufeff/, '').replaceAll(/\r\n?/g, '\n');
  // First line of files that Excel writes: names the separator.
  const separatorLine = /^sep=(.)\n/i.exec(plain);
  const text = separatorLine ? plain.slice(separatorLine[0].length) : plain;
  const bad: InvalidRow[] = [];
  const skippedLines = separatorLine ? 1 : 0;
  /** Rows cannot be delimited after this line. */
  let unreadFrom = Number.POSITIVE_INFINITY;
  const records = parse(text, {
    delimiter: separatorLine?.[1] ?? detectSeparator(text),
    info: true,
    raw: true,
    relax_column_count: true,
    skip_records_with_error: true,
    trim: true,
    on_skip: (error, raw) => {
      const endLine = Number((error as { lines?: number } | undefined)?.lines ?? 1);
      unreadFrom = Math.min(unreadFrom, firstLine(endLine, raw ?? ''));
    },
  }) as unknown as readonly { info: { lines: number }; record: string[]; raw: string }[];
  const read = records.filter(({ info, raw }) => firstLine(info.lines, raw) < unreadFrom);
  const [header, ...rest] = read.filter(({ record }) => record.some((cell) => cell !== ''));
  if (Number.isFinite(unreadFrom)) {
    const reason =
      'The quotes of this row do not match, so this row and all later rows were not read. Write each quote in a cell twice, and put the cell in quotes.';
    bad.push({ line: unreadFrom + skippedLines, field: null, reason });
  }
  if (!header) return rejectCsv('must begin with a line of column names');
  const named = parseHeader(header.record);
  if (typeof named === 'string') return rejectCsv(named);
  if (rest.length > MAX_ROWS) return rejectCsv(`must have at most ${MAX_ROWS} rows; split the file`);
  const rows = rest.flatMap(({ info, record, raw }) => {
    const line = firstLine(info.lines, raw) + skippedLines;
    if (record.length === named.length) {
      const cells = Object.fromEntries(named.map((column, at) => [column, parseCell(record[at] ?? '')]));
      return [{ line, cells }];
    }
    const reason = `The row must have ${named.length} cells, like the first line; it has ${record.length}.`;
    bad.push({ line, field: null, reason });
    return [];
  });
  return { kind: 'sheet', rows, bad };
}

/** Returns the line that a record begins in, given the line it ends in. */
function firstLine(endLine: number, raw: string): number {
  return endLine - (raw.replace(/\n$/, '').match(/\n/g)?.length ?? 0);
}

/** Returns the separator of the header. */
function detectSeparator(text: string): string {
  const [first = ''] = text.trimStart().split('\n', 1);
  const count = (separator: string) => first.split(separator).length;
  return [',', ';', '\t'].reduce((best, other) => (count(other) > count(best) ? other : best));
}

/** A cell as one line. */
const parseCell = (cell: string): string => parseCsvCell(cell.replaceAll(/\s*\n\s*/g, ' '));

/** Other accepted column names. Case, spaces, hyphens and underscores are ignored. */
const ALIASES: { readonly [name: string]: Column } = {
  ...Object.fromEntries(columns.map((column) => [column.toLowerCase(), column])),
  emailaddress: 'email',
  mobilenumber: 'mobile',
  mobilephone: 'mobile',
  phone: 'mobile',
  language: 'locale',
  timezone: 'zone',
  channel: 'channels',
  kind: 'kinds',
  order: 'orderNumber',
  job: 'jobNumber',
};

/**
 * Returns the columns of a header, or an error message. The message does not quote the header: without one, the first line is customer
 * data.
 */
function parseHeader(header: readonly string[]): Column[] | string {
  const named: Column[] = [];
  for (const [at, text] of header.entries()) {
    const name = text.toLowerCase().replaceAll(/[\s_-]/g, '');
    const column = Object.hasOwn(ALIASES, name) ? ALIASES[name] : undefined;
    const where = `must have valid column names in its first line; column ${at + 1}`;
    if (!column) return `${where} is not one of ${columns.join(', ')}`;
    if (named.includes(column)) return `${where} repeats ${column}`;
    named.push(column);
  }
  if (!named.includes('email') && !named.includes('mobile') && !named.includes('id')) {
    return 'must have a column email or mobile';
  }
  return named;
}

// Parsing a row

interface Row {
  readonly kind: 'row';
  readonly line: number;
  readonly id: string | undefined;
  /** Values of its cells: `null` for empty ones, absent without a column. */
  readonly fields: Partial<RecipientInput>;
  /** For a row without an id: its scope and identity. */
  readonly known: { readonly scope: Scope; readonly identity: string } | undefined;
}

type Fault = { readonly field: string | null; readonly reason: string };

function parseRow(region: string, { line, cells }: Cells): Row | ({ readonly kind: 'bad' } & Fault) {
  const raw: Record<string, unknown> = {};
  for (const [column, cell] of Object.entries(cells)) raw[column] = toInput(column as Column, cell);
  const checked = NewRecipient.safeParse(raw, { reportInput: true });
  if (!checked.success) {
    const [issue] = checked.error.issues;
    return {
      kind: 'bad',
      field: String(issue?.path[0] ?? '') || null,
      reason: `${formatIssue(issue && { ...issue, path: issue.path.slice(0, 1) }, 'The row')}.`,
    };
  }
  const { id, ...all } = checked.data;
  const fields = Object.fromEntries(
    Object.entries(all).filter(([name]) => name in cells),
  ) as Partial<RecipientInput>;
  const row = { kind: 'row', line, id, fields } as const;
  // With an id, fields that are missing here may exist already.
  if (id !== undefined) return { ...row, known: undefined };
  const whole = toRecipientFields(region, all);
  if (whole.kind === 'rejected') return { kind: 'bad', ...toFault(whole.reason) };
  return { ...row, known: { scope: whole.value.scope, identity: toIdentity(whole.value) } };
}

/** Returns the field that an error message begins with. */
function toFault(reason: string): Fault {
  const field = reason.split(' ', 1)[0] ?? '';
  return { field: columns.find((column) => column === field) ?? null, reason };
}

const YES = ['true', 'yes', 'y', '1', 'x', 'ja', 'oui', 'wahr', 'vrai'];
const NO = ['false', 'no', 'n', '0', 'nein', 'non', 'falsch', 'faux'];

/** Converts a cell to the input of its field's schema. */
function toInput(column: Column, cell: string): unknown {
  if (cell === '') return column === 'paused' || column === 'id' ? undefined : null;
  const lowered = cell.toLowerCase();
  switch (column) {
    case 'channels':
      return splitList(lowered).map((name) => (name === 'e-mail' ? 'email' : name));
    case 'kinds':
      return splitList(lowered);
    case 'paused':
      return YES.includes(lowered) ? true : NO.includes(lowered) ? false : cell;
    case 'jobNumber':
      return /^-?\d+(\.\d+)?$/.test(cell) ? Number(cell) : cell;
    case 'locale':
      return locales.find((locale) => locale.toLowerCase() === lowered.replace('_', '-')) ?? cell;
    default:
      return cell;
  }
}

const splitList = (cell: string): string[] => cell.split(/[\s,;|+/]+/).filter((name) => name !== '');

// Importing a row

/** Returns the identity of a row without an id: its scope and address. Of two addresses the e-mail address counts. */
function toIdentity({ scope, email, mobile }: Pick<Recipient, 'scope' | 'email' | 'mobile'>): string {
  const address = email === null ? `sms ${mobile}` : `email ${normalizeAddress('email', email)}`;
  return `${toScopeKey(scope)} ${address}`;
}

/** Returns the existing recipients that the rows refer to. */
async function findExisting(
  { table }: NotificationDeps,
  ref: AccountRef,
  rows: readonly Row[],
): Promise<(row: Row) => Item | undefined> {
  const named = await readItems(
    table,
    ref,
    rows.flatMap(({ id }) => id ?? []),
  );
  const byId = new Map(named.map((item) => [item.sk, item]));
  const scopes = new Map(
    rows.flatMap(({ known }) => (known ? [[toScopeKey(known.scope), known.scope]] : [])),
  );
  const found = await pLimit(AT_ONCE).map([...scopes.values()], (scope) =>
    readItemsByScope(table, ref, scope),
  );
  const byIdentity = new Map<string, Item>();
  for (const item of found.flat()) {
    if (item.source !== 'manual') continue;
    const identity = toIdentity(toRecipient(ref, item));
    // Of several recipients with the same address, always choose the same one.
    const other = byIdentity.get(identity);
    if (!other || item.sk < other.sk) byIdentity.set(identity, item);
  }
  return ({ id, known }) => (known ? byIdentity.get(known.identity) : byId.get(id ?? ''));
}

async function importRow(
  deps: NotificationDeps,
  ref: AccountRef,
  row: Row,
  known: Item | undefined,
  dryRun: boolean,
): Promise<'created' | 'updated' | 'unchanged' | Fault> {
  let before = known;
  let place = 0;
  for (let attempt = 0; attempt < ATTEMPTS; attempt += 1) {
    const fields = toRecipientFields(
      ref.region,
      before ? applyChange(toRecipient(ref, before), row.fields) : { paused: false, ...row.fields },
    );
    if (fields.kind === 'rejected') return toFault(fields.reason);
    if (before) {
      const changed = await replaceRecipient(deps, ref, before, fields.value, dryRun);
      if (changed !== undefined) return changed === before ? 'unchanged' : 'updated';
      before = (await readItems(deps.table, ref, [before.sk]))[0];
      continue;
    }
    if (dryRun) return 'created';
    const id = row.id ?? (await deriveId(deps, ref, row.known?.identity ?? '', place));
    const created = await insertRecipient(deps, ref, id, fields.value, `import ${deps.newId()}`);
    if (created.kind === 'created') return 'created';
    if (created.kind !== 'conflict') return { field: null, reason: created.reason };
    // A concurrent request created it, or a recipient that was imported from this row has other fields now.
    const [existing] = await readItems(deps.table, ref, [id]);
    const isSame = !row.known || (existing && toIdentity(toRecipient(ref, existing)) === row.known.identity);
    if (existing && isSame) before = existing;
    else place += 1;
  }
  return { field: null, reason: 'The recipient was modified concurrently. Import the file again.' };
}

/**
 * Returns an id that is stable for a row, so that concurrent imports of a file create each recipient once. The address cannot be recovered
 * from it.
 */
async function deriveId(
  { table }: NotificationDeps,
  { region }: AccountRef,
  identity: string,
  place: number,
) {
  const seal = await createSealer(table, region);
  return `i-${Buffer.from(seal(`${identity} ${place}`), 'base64url')
    .toString('hex')
    .slice(0, 24)}`;
}
