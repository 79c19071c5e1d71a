/** Output of the CLI: text or JSON on stdout, notes and progress on stderr. */
import { stripVTControlCharacters, styleText } from 'node:util';
import { formatTime, nameCli, sanitizeText } from '../local/terminal.ts';
import { BYTE_ORDER_MARK } from '../shared/csv.ts';

export { count } from '../local/terminal.ts';

type Style = Parameters<typeof styleText>[0];

/** A time as in the API: ISO text, or epoch ms. */
export type Time = string | number | null | undefined;

/** A column of a table. */
export interface Column<T> {
  readonly name: string;
  readonly value: (entry: T) => unknown;
  readonly style?: (entry: T) => Style | undefined;
  /** Whether to align right, for numbers. */
  readonly right?: true;
  /** Whether texts are long. Such columns shrink first on a narrow terminal. */
  readonly long?: true;
}

/** Entries of a list, and a callback that reports further ones. */
export type Listing<T> = (more: () => void) => AsyncIterable<T>;

/** An error as JSON: the fields of a problem document (RFC 9457), those that the API adds, and those of the CLI. */
export interface CommandError {
  readonly [member: string]: unknown;
  readonly type: string;
  readonly title: string;
  /** HTTP status. Absent without response. */
  readonly status?: number;
  /** The error message, as it is shown as text. */
  readonly detail: string;
  readonly exitCode: number;
  /** Absent without response, or if the response is not from Jobwire. */
  readonly requestId?: string;
}

/** Output of a command. */
export interface Output {
  /** Whether `--json` was given. */
  readonly json: boolean;
  readonly verbose: boolean;
  readonly stdout: NodeJS.WriteStream;
  /** Prints a line of text unmodified. */
  line(text?: string): void;
  /** Prints a document: with `--json` as JSON, otherwise as a line of text, or by calling `human`. */
  document(value: unknown, human: string | (() => void)): void;
  /** Prints one JSON object as a line. */
  jsonLine(value: unknown): void;
  /** Prints a table that fits the terminal, or the line `none` if it is empty. */
  table<T>(entries: readonly T[], columns: readonly Column<T>[], none: string): void;
  /** Prints a list: a JSON object a line as it arrives, or a table. Adds a note on stderr if the list was truncated. */
  list<T>(listing: Listing<T>, columns: readonly Column<T>[], none: string): Promise<undefined>;
  /** Prints the texts of a list as CSV. */
  csv(listing: Listing<string>): Promise<undefined>;
  /** Prints names and values, one a line. Omits values that are `null` or absent. */
  fields(rows: readonly (readonly [name: string, value: string | null | undefined])[]): void;
  /** Prints text after a heading. On a terminal, wrapped lines are indented below the text. */
  hang(head: string, text: string): void;
  /** Prints a note that is not part of the result on stderr. As JSON: `{"note": …}`. */
  note(text: string): void;
  /** Prints an error on stderr: as JSON one line with `error`, as text `lines`. */
  error(error: CommandError, lines: readonly string[]): void;
  /** Prints a line on stderr that the next one replaces. Only on a terminal. Without text, removes the line. */
  progress(text?: string): void;
  paint(style: Style, text: string): string;
  /** Returns a time, or `–` if there is none. For tables. */
  formatTimeCell(at: Time): string;
  /** Returns a time, on a terminal also its age, or `null` if there is none. */
  formatTimeWithAge(at: Time): string | null;
}

/** Creates an output. `now` is epoch ms. */
export function createOutput(options: {
  readonly stdout: NodeJS.WriteStream;
  readonly stderr: NodeJS.WriteStream;
  /** Returns whether a switch of the command line is given, by name. */
  readonly flagged: (name: string) => boolean;
  readonly now: () => number;
}): Output {
  const { stdout, stderr, flagged, now } = options;
  const [json, verbose] = [flagged('json'), flagged('verbose')];
  const terminal = stdout.isTTY === true;
  const width = terminal ? Math.max(40, stdout.columns || 80) : Number.POSITIVE_INFINITY;
  const paint = (style: Style, text: string): string => styleText(style, text, { stream: stdout });
  let shown = false;

  const output: Output = {
    json,
    verbose,
    stdout,
    paint,
    line: (text = '') => {
      output.progress();
      stdout.write(`${text}\n`);
    },
    document(value, human) {
      if (json) output.line(toJson(value, terminal ? 2 : undefined));
      else if (typeof human === 'string') output.line(human);
      else human();
    },
    jsonLine: (value) => output.line(toJson(value)),
    table(entries, requested, none) {
      if (entries.length === 0) {
        output.note(none);
        return;
      }
      const all = requested.map((column) => entries.map((entry) => formatCell(column.value(entry))));
      // An empty column is omitted if space is scarce. Scripts always find each column at its position.
      const kept = requested.map(
        (_, at) => !terminal || all[at]?.some((text) => text !== '' && text !== EMPTY),
      );
      const columns = requested.filter((_, at) => kept[at]);
      const cells = entries.map((_, row) =>
        all.filter((_, at) => kept[at]).map((column) => column[row] ?? ''),
      );
      const widths = fitWidths(
        columns.map(({ name, long }, at) => ({
          least: long ? Math.max(8, measureWidth(name)) : Number.POSITIVE_INFINITY,
          wanted: cells.reduce(
            (most, row) => Math.max(most, measureWidth(row[at] ?? '')),
            measureWidth(name),
          ),
        })),
        width,
      );
      const write = (texts: readonly string[], style: (at: number) => Style | undefined): void => {
        const parts = texts.map((text, at) => {
          const room = widths[at] ?? 0;
          const cut = truncate(text, room);
          const gap = ' '.repeat(Math.max(0, room - measureWidth(cut)));
          const last = at === texts.length - 1 && !columns[at]?.right;
          const painted = style(at);
          const body = painted === undefined ? cut : paint(painted, cut);
          return columns[at]?.right ? gap + body : last ? body : body + gap;
        });
        output.line(parts.join('  ').trimEnd());
      };
      write(
        columns.map(({ name }) => name),
        () => 'dim',
      );
      cells.forEach((row, index) => {
        const entry = entries[index];
        write(row, (at) => (entry === undefined ? undefined : columns[at]?.style?.(entry)));
      });
    },
    async csv(listing) {
      let more = false;
      const texts = listing(() => {
        more = true;
      });
      if (flagged('bom')) stdout.write(BYTE_ORDER_MARK);
      for await (const text of texts) stdout.write(terminal ? cleanLines(text) : text);
      if (more) output.note(MORE);
    },
    async list(listing, columns, none) {
      // With --csv, the client returns the pages of lists as text.
      if (flagged('csv')) return output.csv(listing as Listing<unknown> as Listing<string>);
      let more = false;
      const found = [];
      for await (const entry of listing(() => {
        more = true;
      })) {
        if (json) output.jsonLine(entry);
        else found.push(entry);
      }
      if (!json) output.table(found, columns, none);
      if (more) output.note(MORE);
    },
    fields(rows) {
      const given = rows.filter(([, value]) => value !== null && value !== undefined);
      const wide = Math.max(...given.map(([name]) => measureWidth(name)));
      for (const [name, value] of given) output.hang(`${paint('dim', name.padEnd(wide))}  `, value ?? '');
    },
    hang(head, text) {
      const indent = measureWidth(stripVTControlCharacters(head));
      const [first = '', ...rest] = wrap(text, width, indent);
      output.line([head + first.trimStart(), ...rest].join('\n'));
    },
    note(text) {
      output.progress();
      const named = nameCli(text);
      stderr.write(`${json ? toJson({ note: named }) : named}\n`);
    },
    error(error, lines) {
      output.progress();
      const named = { ...error, detail: nameCli(error.detail) };
      stderr.write(`${json ? toJson(named) : nameCli(lines.join('\n'))}\n`);
    },
    progress(text) {
      if (stderr.isTTY !== true || (text === undefined && !shown)) return;
      stderr.write(`\r\x1b[K${text === undefined ? '' : truncate(text, (stderr.columns || 80) - 1)}`);
      shown = text !== undefined;
    },
    formatTimeCell(at) {
      const ms = toMs(at);
      return ms === undefined ? EMPTY : formatTime(ms);
    },
    formatTimeWithAge(at) {
      const ms = toMs(at);
      if (ms === undefined) return null;
      const exact = formatTime(ms);
      return terminal ? `${exact} (${formatAge(ms - now())})` : exact;
    },
  };
  return output;
}

const MORE = 'There are more entries. Use --limit to show more.';

/** Sanitizes untrusted text for a cell or a line: no control characters, and truncated only at an extreme length. */
export function sanitizeLine(value: unknown): string {
  return sanitizeText(value, 4_000);
}

/** Sanitizes each line of an untrusted text for a terminal. */
const cleanLines = (text: string): string =>
  text
    .split(/\r?\n/)
    .map((line) => sanitizeText(line, Number.POSITIVE_INFINITY))
    .join('\n');

/** Result of `sanitizeText` for an empty value. */
const EMPTY = '–';

function formatCell(value: unknown): string {
  return Array.isArray(value) ? sanitizeLine(value.join(', ')) : sanitizeLine(value);
}

/** Serializes JSON for a terminal: characters that a terminal might interpret are escaped as `\\u….` */
export function toJson(value: unknown, indent?: number): string {
  return escapeControls(JSON.stringify(value, undefined, indent) ?? 'null');
}

/** Escapes every character of a JSON text that a terminal might interpret. The document is unchanged. */
export function escapeControls(json: string): string {
  return json.replace(
    /[\u007f-\u009f\u200e\u200f\u2028-\u202e\u2066-\u2069]/g,
    (character) => `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`,
  );
}

function toMs(at: Time): number | undefined {
  const ms = typeof at === 'string' ? Date.parse(at) : at;
  return typeof ms === 'number' && Number.isFinite(ms) && Math.abs(ms) < 8.64e15 ? ms : undefined;
}

/** Formats a time relative to now: `3 min ago`, `in 2 d`. */
function formatAge(ms: number): string {
  const seconds = Math.round(Math.abs(ms) / 1000);
  if (seconds < 1) return 'now';
  const text =
    seconds < 90
      ? `${seconds} s`
      : seconds < 90 * 60
        ? `${Math.round(seconds / 60)} min`
        : seconds < 36 * 3600
          ? `${Math.round(seconds / 3600)} h`
          : `${Math.round(seconds / 86_400)} d`;
  return ms < 0 ? `${text} ago` : `in ${text}`;
}

/** Returns column widths that fit. Of the shrinkable columns the widest shrinks first. A line can still be too long. */
function fitWidths(columns: readonly { least: number; wanted: number }[], width: number): number[] {
  const widths = columns.map(({ wanted }) => wanted);
  const room = width - 2 * (columns.length - 1);
  let over = widths.reduce((sum, one) => sum + one, 0) - room;
  while (over > 0) {
    const slack = widths.map((one, at) => one - (columns[at]?.least ?? 0));
    const widest = slack.indexOf(Math.max(...slack));
    if ((slack[widest] ?? 0) <= 0) break;
    widths[widest] = (widths[widest] ?? 0) - 1;
    over -= 1;
  }
  return widths;
}

const segments = new Intl.Segmenter('en', { granularity: 'grapheme' });
/** Characters that are two columns wide in terminals. */
const WIDE =
  /\p{Emoji_Presentation}|\ufe0f|[\u1100-\u115f\u2e80-\u303e\u3041-\u33ff\u3400-\u4dbf\u4e00-\u9fff\ua000-\ua4cf\uac00-\ud7a3\uf900-\ufaff\ufe30-\ufe6f\uff00-\uff60\uffe0-\uffe6]|[\u{20000}-\u{3fffd}]/u;

/** Returns the width of a text in columns. */
export function measureWidth(text: string): number {
  if (/^[\x20-\x7e]*$/.test(text)) return text.length;
  let width = 0;
  for (const { segment } of segments.segment(text)) width += WIDE.test(segment) ? 2 : 1;
  return width;
}

function truncate(text: string, room: number): string {
  if (measureWidth(text) <= room) return text;
  let cut = '';
  let width = 0;
  for (const { segment } of segments.segment(text)) {
    const wide = measureWidth(segment);
    if (width + wide > room - 1) break;
    cut += segment;
    width += wide;
  }
  return `${cut}…`;
}

/** Wraps text to a width with an indent. A longer word has a separate line. */
export function wrap(text: string, width: number, indent: number): string[] {
  const room = Math.max(30, width - indent);
  const lines: string[] = [];
  let line = '';
  for (const word of text.split(' ')) {
    if (line !== '' && measureWidth(line) + 1 + measureWidth(word) > room) {
      lines.push(line);
      line = word;
    } else line = line === '' ? word : `${line} ${word}`;
  }
  return [...lines, line].map((one) => ' '.repeat(indent) + one);
}
