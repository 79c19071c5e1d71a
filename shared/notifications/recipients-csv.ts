/**
 * Recipients from a spreadsheet. Columns stand in any order; those that are not there leave alone what they are about.
 * Good rows are taken, bad ones are named by line, without their values.
 *
 * A row is known by its id or, without one, by what it is for and its address. So the same file brings nothing new the second
 * time, and one whose import was cut off is simply imported again.
 */
import { parse } from 'csv-parse/sync';
import pLimit from 'p-limit';
import { sentenceOf } from '../checks.ts';
import type { Refusal } from '../managed.ts';
import { type AccountRef, keys } from '../table/schema.ts';
import type { Item } from '../table/table.ts';
import { normalized } from './addresses.ts';
import { locales, type Recipient, type Scope } from './model.ts';
import { NewRecipient } from './notification-input.ts';
import {
  completed,
  full,
  type Given,
  itemsAt,
  itemsOf,
  merged,
  placeOf,
  putNew,
  replace,
  roomFor,
  toRecipient,
} from './recipients.ts';
import { type Column, columns, NOT_UTF8 } from './recipients-file.ts';
import { type PeopleDeps, unknownAccount } from './settings.ts';
import { addressSealOf } from './unsubscribe.ts';

/** Rows of a file at most: what is imported within the time of a request. */
export const MAX_ROWS = 5_000;
const MAX_CSV_BYTES = 4_000_000;
/** Rows worked on side by side. */
const AT_ONCE = 16;
/** How often a row is decided anew because somebody else came in between. */
const ATTEMPTS = 5;

/** A row that was left out. */
export interface BadRow {
  /** From 1, as an editor counts: the line that the row begins in. */
  readonly line: number;
  /** Null when it is the row as a whole. */
  readonly field: string | null;
  /** A sentence, without the value. */
  readonly reason: string;
}

/** What came of an import; of a dry run, what would. */
export interface ImportReport {
  readonly kind: 'imported';
  readonly imported: number;
  readonly changed: number;
  readonly unchanged: number;
  /** By line. */
  readonly bad: readonly BadRow[];
}

/** Takes recipients from a CSV text, which may be separated by commas, semicolons or tabs. Whole files are refused only when they can't be read. */
export async function importRecipients(
  deps: PeopleDeps,
  ref: AccountRef,
  csv: string,
  { dryRun = false }: { readonly dryRun?: boolean } = {},
): Promise<ImportReport | Refusal> {
  const sheet = readSheet(csv);
  if (sheet.kind !== 'sheet') return sheet;
  if (!(await deps.table.get(keys.account(ref)))) return unknownAccount(ref);
  const bad: BadRow[] = [...sheet.bad];
  const rows = sheet.rows.flatMap((cells) => {
    const row = readRow(ref.region, cells);
    if (row.kind === 'row') return [row];
    bad.push({ line: cells.line, field: row.field, reason: row.reason });
    return [];
  });
  const known = await findKnown(deps, ref, rows);
  const counts = { imported: 0, changed: 0, unchanged: 0 };
  let room = rows.every((row) => known(row)) ? 0 : await roomFor(deps.table, ref);
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
      reason: `The row is about the same recipient as line ${former}.`,
    });
    return [];
  });
  const limit = pLimit(AT_ONCE);
  const takeRows = limit.map(unique, async (row) => {
    const isNew = !known(row);
    if (isNew && room < 1) {
      bad.push({ line: row.line, field: null, reason: full(ref).reason });
      return;
    }
    if (isNew) room -= 1;
    const outcome = await takeRow(deps, ref, row, known(row), dryRun);
    if (typeof outcome === 'string') counts[outcome] += 1;
    else bad.push({ line: row.line, ...outcome });
  });
  await takeRows.finally(() => limit.clearQueue());
  return { kind: 'imported', ...counts, bad: bad.sort((a, b) => a.line - b.line) };
}

// Reading the text

interface Cells {
  readonly line: number;
  readonly cells: { readonly [column in Column]?: string };
}

type Sheet =
  | { readonly kind: 'sheet'; readonly rows: readonly Cells[]; readonly bad: readonly BadRow[] }
  | Refusal;

const refuse = (reason: string): Refusal => ({ kind: 'refused', reason: `csv ${reason}.` });

/** The rows of a text, by its first line. */
function readSheet(csv: string): Sheet {
  if (Buffer.byteLength(csv) > MAX_CSV_BYTES) return refuse(`must be at most ${MAX_CSV_BYTES} bytes`);
  if (csv.includes('\ufffd')) return { kind: 'refused', reason: `csv ${NOT_UTF8}.` };
  if (csv.includes('\0')) return refuse('must be text, and has characters that are none');
  const plain = csv.replace(/^\ufeff/, '').replaceAll(/\r\n?/g, '\n');
  // Excel's own first line that says how cells are separated.
  const told = /^sep=(.)\n/i.exec(plain);
  const text = told ? plain.slice(told[0].length) : plain;
  const bad: BadRow[] = [];
  const skippedLines = told ? 1 : 0;
  /** Where rows begin and end is not known from there on. */
  let unreadFrom = Number.POSITIVE_INFINITY;
  const records = parse(text, {
    delimiter: told?.[1] ?? separatorOf(text),
    info: true,
    raw: true,
    relax_column_count: true,
    skip_records_with_error: true,
    trim: true,
    on_skip: (error, raw) => {
      const endLine = Number((error as { lines?: number } | undefined)?.lines ?? 1);
      unreadFrom = Math.min(unreadFrom, startOf(endLine, raw ?? ''));
    },
  }) as unknown as readonly { info: { lines: number }; record: string[]; raw: string }[];
  const read = records.filter(({ info, raw }) => startOf(info.lines, raw) < unreadFrom);
  const [header, ...rest] = read.filter(({ record }) => record.some((cell) => cell !== ''));
  if (Number.isFinite(unreadFrom)) {
    const reason =
      'The quotes of this row don’t fit together, and nothing was read from here on; a quote in a cell is written twice, and the cell in quotes.';
    bad.push({ line: unreadFrom + skippedLines, field: null, reason });
  }
  if (!header) return refuse('must begin with a line that names the columns');
  const named = columnsOf(header.record);
  if (typeof named === 'string') return refuse(named);
  if (rest.length > MAX_ROWS) return refuse(`must hold at most ${MAX_ROWS} rows; split it`);
  const rows = rest.flatMap(({ info, record, raw }) => {
    const line = startOf(info.lines, raw) + skippedLines;
    if (record.length === named.length) {
      const cells = Object.fromEntries(named.map((column, at) => [column, plainCell(record[at] ?? '')]));
      return [{ line, cells }];
    }
    const reason = `The row must have ${named.length} cells, as the first line has; it has ${record.length}.`;
    bad.push({ line, field: null, reason });
    return [];
  });
  return { kind: 'sheet', rows, bad };
}

/** The line that a record begins in, from the one it ends in. */
function startOf(endLine: number, raw: string): number {
  return endLine - (raw.replace(/\n$/, '').match(/\n/g)?.length ?? 0);
}

/** What separates the names of the columns. */
function separatorOf(text: string): string {
  const [first = ''] = text.trimStart().split('\n', 1);
  const count = (separator: string) => first.split(separator).length;
  return [',', ';', '\t'].reduce((best, other) => (count(other) > count(best) ? other : best));
}

/** A cell in one line, without the apostrophe that guards it. */
const plainCell = (cell: string): string => cell.replaceAll(/\s*\n\s*/g, ' ').replace(/^'(?=[=+\-@])/, '');

/** How columns may be named as well; capitals, spaces, hyphens and underscores make no difference. */
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

/** The columns by a first line, or what is wrong with it. Its texts are not quoted: without a header they are somebody's data. */
function columnsOf(header: readonly string[]): Column[] | string {
  const named: Column[] = [];
  for (const [at, text] of header.entries()) {
    const name = text.toLowerCase().replaceAll(/[\s_-]/g, '');
    const column = Object.hasOwn(ALIASES, name) ? ALIASES[name] : undefined;
    const where = `must name the columns in its first line, and of column ${at + 1}`;
    if (!column) return `${where} the name is not known; those are ${columns.join(', ')}`;
    if (named.includes(column)) return `${where} the name is there twice (${column})`;
    named.push(column);
  }
  if (!named.includes('email') && !named.includes('mobile') && !named.includes('id')) {
    return 'must have a column email or mobile';
  }
  return named;
}

// Reading a row

interface Row {
  readonly kind: 'row';
  readonly line: number;
  readonly id: string | undefined;
  /** What its cells say: null for empty ones, absent where there is no column. */
  readonly said: Partial<Given>;
  /** Of a row without an id: what it is for, and what it is known by. */
  readonly known: { readonly scope: Scope; readonly identity: string } | undefined;
}

type Fault = { readonly field: string | null; readonly reason: string };

function readRow(region: string, { line, cells }: Cells): Row | ({ readonly kind: 'bad' } & Fault) {
  const raw: Record<string, unknown> = {};
  for (const [column, cell] of Object.entries(cells)) raw[column] = inputOf(column as Column, cell);
  const checked = NewRecipient.safeParse(raw, { reportInput: true });
  if (!checked.success) {
    const [issue] = checked.error.issues;
    return {
      kind: 'bad',
      field: String(issue?.path[0] ?? '') || null,
      reason: `${sentenceOf(issue && { ...issue, path: issue.path.slice(0, 1) }, 'The row')}.`,
    };
  }
  const { id, ...all } = checked.data;
  const said = Object.fromEntries(Object.entries(all).filter(([name]) => name in cells)) as Partial<Given>;
  const row = { kind: 'row', line, id, said } as const;
  // With an id, what is not said here may be there already.
  if (id !== undefined) return { ...row, known: undefined };
  const whole = completed(region, all);
  if (whole.kind === 'refused') return { kind: 'bad', ...faultOf(whole.reason) };
  return { ...row, known: { scope: whole.value.scope, identity: identityOf(whole.value) } };
}

/** The field that a sentence begins with. */
function faultOf(reason: string): Fault {
  const word = reason.split(' ', 1)[0] ?? '';
  return { field: columns.find((column) => column === word) ?? null, reason };
}

const YES = ['true', 'yes', 'y', '1', 'x', 'ja', 'oui', 'wahr', 'vrai'];
const NO = ['false', 'no', 'n', '0', 'nein', 'non', 'falsch', 'faux'];

/** What a cell says, for the check of the field. */
function inputOf(column: Column, cell: string): unknown {
  if (cell === '') return column === 'paused' || column === 'id' ? undefined : null;
  const word = cell.toLowerCase();
  switch (column) {
    case 'channels':
      return listOf(word).map((name) => (name === 'e-mail' ? 'email' : name));
    case 'kinds':
      return listOf(word);
    case 'paused':
      return YES.includes(word) ? true : NO.includes(word) ? false : cell;
    case 'jobNumber':
      return /^\d{1,12}$/.test(cell) ? Number(cell) : cell;
    case 'locale':
      return locales.find((locale) => locale.toLowerCase() === word.replace('_', '-')) ?? cell;
    default:
      return cell;
  }
}

const listOf = (cell: string): string[] => cell.split(/[\s,;|+/]+/).filter((name) => name !== '');

// Taking a row

/** What a row without an id is known by: what it is for, and its address; of two, the e-mail address. */
function identityOf({ scope, email, mobile }: Pick<Recipient, 'scope' | 'email' | 'mobile'>): string {
  const address = email === null ? `sms ${mobile}` : `email ${normalized('email', email)}`;
  return `${placeOf(scope)} ${address}`;
}

/** Which recipients the rows are about, of those that there are. */
async function findKnown(
  { table }: PeopleDeps,
  ref: AccountRef,
  rows: readonly Row[],
): Promise<(row: Row) => Item | undefined> {
  const named = await itemsOf(
    table,
    ref,
    rows.flatMap(({ id }) => id ?? []),
  );
  const byId = new Map(named.map((item) => [item.sk, item]));
  const scopes = new Map(rows.flatMap(({ known }) => (known ? [[placeOf(known.scope), known.scope]] : [])));
  const found = await pLimit(AT_ONCE).map([...scopes.values()], (scope) => itemsAt(table, ref, scope));
  const byIdentity = new Map<string, Item>();
  for (const item of found.flat()) {
    if (item.source !== 'people') continue;
    const identity = identityOf(toRecipient(ref, item));
    // Of several with the same address always the same one.
    const other = byIdentity.get(identity);
    if (!other || item.sk < other.sk) byIdentity.set(identity, item);
  }
  return ({ id, known }) => (known ? byIdentity.get(known.identity) : byId.get(id ?? ''));
}

async function takeRow(
  deps: PeopleDeps,
  ref: AccountRef,
  row: Row,
  known: Item | undefined,
  dryRun: boolean,
): Promise<'imported' | 'changed' | 'unchanged' | Fault> {
  let before = known;
  let place = 0;
  for (let attempt = 0; attempt < ATTEMPTS; attempt += 1) {
    const said = completed(
      ref.region,
      before ? merged(toRecipient(ref, before), row.said) : { paused: false, ...row.said },
    );
    if (said.kind === 'refused') return faultOf(said.reason);
    if (before) {
      const changed = await replace(deps, ref, before, said.value, dryRun);
      if (changed !== undefined) return changed === before ? 'unchanged' : 'changed';
      before = (await itemsOf(deps.table, ref, [before.sk]))[0];
      continue;
    }
    if (dryRun) return 'imported';
    const id = row.id ?? (await importedId(deps, ref, row.known?.identity ?? '', place));
    const made = await putNew(deps, ref, id, said.value, `import ${deps.newId()}`);
    if (made.kind === 'created') return 'imported';
    if (made.kind !== 'conflict') return { field: null, reason: made.reason };
    // Somebody has made it at the same moment, or one that was imported so is somebody else by now.
    const [there] = await itemsOf(deps.table, ref, [id]);
    const isSame = !row.known || (there && identityOf(toRecipient(ref, there)) === row.known.identity);
    if (there && isSame) before = there;
    else place += 1;
  }
  return { field: null, reason: 'The recipient kept changing at that moment; import the file again.' };
}

/** The same for the same row, so that two imports of a file at the same time make everybody once; nobody finds the address by it. */
async function importedId({ table }: PeopleDeps, { region }: AccountRef, identity: string, place: number) {
  const seal = await addressSealOf(table, region);
  return `i-${Buffer.from(seal(`${identity} ${place}`), 'base64url')
    .toString('hex')
    .slice(0, 24)}`;
}
