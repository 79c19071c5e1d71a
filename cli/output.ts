/** What a user sees: text or JSON on stdout, notes and progress on stderr. */
import { stripVTControlCharacters, styleText } from 'node:util';
import { plain } from '../local/terminal.ts';

type Style = Parameters<typeof styleText>[0];

/** An instant as the API says it: ISO text, or epoch ms. */
export type Instant = string | number | null | undefined;

/** A column of a table. */
export interface Column<T> {
  readonly name: string;
  readonly of: (entry: T) => unknown;
  readonly style?: (entry: T) => Style | undefined;
  /** Numbers stand to the right. */
  readonly right?: true;
  /** Long texts: these give way first where the terminal is narrow. */
  readonly long?: true;
}

/** Entries of a list as they come, and whether there are others. */
export type Listing<T> = (more: () => void) => AsyncIterable<T>;

/** An error as JSON: the fields of a problem document (RFC 9457), those that the API adds, and ours. */
export interface CommandError {
  readonly [member: string]: unknown;
  readonly type: string;
  readonly title: string;
  /** Of the answer. Absent if there was none. */
  readonly status?: number;
  /** The error message, as it is shown as text. */
  readonly detail: string;
  readonly exitCode: number;
  /** Absent if there was no answer, or none of Jobwire. */
  readonly requestId?: string;
}

/** Where a command's words go. */
export interface Output {
  /** Whether JSON was asked for. */
  readonly json: boolean;
  readonly verbose: boolean;
  readonly stdout: NodeJS.WriteStream;
  /** A line of text as it is. */
  line(text?: string): void;
  /** A document: as JSON, or as `human` says it. */
  document(value: unknown, human: () => void): void;
  /** One JSON object on a line of its own. */
  jsonLine(value: unknown): void;
  /** A table that fits the terminal; a line that says `none` when there is nothing in it. */
  table<T>(entries: readonly T[], columns: readonly Column<T>[], none: string): void;
  /** A list: a JSON object a line as it comes, or a table; and a word on stderr where it was cut off. */
  list<T>(listing: Listing<T>, columns: readonly Column<T>[], none: string): Promise<undefined>;
  /** Names and values, one a line; what is null or absent is left out. */
  facts(rows: readonly (readonly [name: string, value: string | null | undefined])[]): void;
  /** Text behind a head, on a terminal wrapped below itself. */
  hang(head: string, text: string): void;
  /** A word to the user that is not the result, on stderr; as JSON `{"note": …}`. */
  note(text: string): void;
  /** Why the command failed, on stderr: as JSON one line with `error`, as text `lines`. */
  error(error: CommandError, lines: readonly string[]): void;
  /** A line on stderr that the next one replaces; only on a terminal. Without text it is taken away. */
  progress(text?: string): void;
  paint(style: Style, text: string): string;
  /** How long ago on a terminal, the exact instant elsewhere. */
  when(at: Instant): string;
  /** The exact instant, and on a terminal how long ago that is. */
  exactly(at: Instant): string | null;
}

/** Makes one. `now` in epoch ms. */
export function createOutput(options: {
  readonly stdout: NodeJS.WriteStream;
  readonly stderr: NodeJS.WriteStream;
  readonly json: boolean;
  readonly verbose: boolean;
  readonly now: () => number;
}): Output {
  const { stdout, stderr, json, verbose, now } = options;
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
      else human();
    },
    jsonLine: (value) => output.line(toJson(value)),
    table(entries, asked, none) {
      if (entries.length === 0) {
        output.note(none);
        return;
      }
      const all = asked.map((column) => entries.map((entry) => cell(column.of(entry))));
      // A column without anything in it is left out where room is dear; scripts find each in its place.
      const kept = asked.map(
        (_, at) => !terminal || all[at]?.some((text) => text !== '' && text !== NOTHING),
      );
      const columns = asked.filter((_, at) => kept[at]);
      const cells = entries.map((_, row) =>
        all.filter((_, at) => kept[at]).map((column) => column[row] ?? ''),
      );
      const widths = widthsIn(
        columns.map(({ name, long }, at) => ({
          least: long ? Math.max(8, widthOf(name)) : Number.POSITIVE_INFINITY,
          wanted: Math.max(widthOf(name), ...cells.map((row) => widthOf(row[at] ?? ''))),
        })),
        width,
      );
      const write = (texts: readonly string[], style: (at: number) => Style | undefined): void => {
        const parts = texts.map((text, at) => {
          const room = widths[at] ?? 0;
          const cut = cutTo(text, room);
          const gap = ' '.repeat(Math.max(0, room - widthOf(cut)));
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
    async list(listing, columns, none) {
      let more = false;
      const found = [];
      for await (const entry of listing(() => {
        more = true;
      })) {
        if (json) output.jsonLine(entry);
        else found.push(entry);
      }
      if (!json) output.table(found, columns, none);
      if (more) output.note('There are more; --limit shows more of them.');
      return undefined;
    },
    facts(rows) {
      const given = rows.filter(([, value]) => value !== null && value !== undefined);
      const wide = Math.max(...given.map(([name]) => widthOf(name)));
      for (const [name, value] of given) output.hang(`${paint('dim', name.padEnd(wide))}  `, value ?? '');
    },
    hang(head, text) {
      const indent = widthOf(stripVTControlCharacters(head));
      const [first = '', ...rest] = wrapped(text, width, indent);
      output.line([head + first.trimStart(), ...rest].join('\n'));
    },
    note(text) {
      output.progress();
      stderr.write(`${json ? toJson({ note: text }) : text}\n`);
    },
    error(error, lines) {
      output.progress();
      stderr.write(`${json ? toJson(error) : lines.join('\n')}\n`);
    },
    progress(text) {
      if (stderr.isTTY !== true || (text === undefined && !shown)) return;
      stderr.write(`\r\x1b[K${text === undefined ? '' : cutTo(text, (stderr.columns || 80) - 1)}`);
      shown = text !== undefined;
    },
    when(at) {
      const ms = toMs(at);
      if (ms === undefined) return '–';
      return terminal ? relative(ms - now()) : new Date(ms).toISOString();
    },
    exactly(at) {
      const ms = toMs(at);
      if (ms === undefined) return null;
      const exact = new Date(ms).toISOString();
      return terminal ? `${exact} (${relative(ms - now())})` : exact;
    },
  };
  return output;
}

/** Others' text in a cell or a line: no control characters, and whole unless it grows without end. */
export function clean(value: unknown): string {
  return plain(value, 4_000);
}

/** What `plain` makes of nothing. */
const NOTHING = '–';

function cell(value: unknown): string {
  return Array.isArray(value) ? clean(value.join(', ')) : clean(value);
}

/** JSON that a terminal takes for nothing else: what a terminal might obey stands as `\\u….` */
export function toJson(value: unknown, indent?: number): string {
  return harmless(JSON.stringify(value, undefined, indent) ?? 'null');
}

/** JSON text with every character escaped that a terminal might obey. The same document. */
export function harmless(json: string): string {
  return json.replace(
    /[\u007f-\u009f\u200e\u200f\u2028-\u202e\u2066-\u2069]/g,
    (character) => `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`,
  );
}

function toMs(at: Instant): number | undefined {
  const ms = typeof at === 'string' ? Date.parse(at) : at;
  return typeof ms === 'number' && Number.isFinite(ms) && Math.abs(ms) < 8.64e15 ? ms : undefined;
}

/** `3 min ago`, `in 2 d`. */
function relative(ms: number): string {
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

/** Widths of columns that fit: of those that may, the widest gives way first; in the end a line may be too long. */
function widthsIn(columns: readonly { least: number; wanted: number }[], width: number): number[] {
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
/** Characters that terminals show over two columns. */
const WIDE =
  /\p{Emoji_Presentation}|\ufe0f|[\u1100-\u115f\u2e80-\u303e\u3041-\u33ff\u3400-\u4dbf\u4e00-\u9fff\ua000-\ua4cf\uac00-\ud7a3\uf900-\ufaff\ufe30-\ufe6f\uff00-\uff60\uffe0-\uffe6]|[\u{20000}-\u{3fffd}]/u;

/** How many columns a text takes. */
export function widthOf(text: string): number {
  if (/^[\x20-\x7e]*$/.test(text)) return text.length;
  let width = 0;
  for (const { segment } of segments.segment(text)) width += WIDE.test(segment) ? 2 : 1;
  return width;
}

function cutTo(text: string, room: number): string {
  if (widthOf(text) <= room) return text;
  let cut = '';
  let width = 0;
  for (const { segment } of segments.segment(text)) {
    const wide = widthOf(segment);
    if (width + wide > room - 1) break;
    cut += segment;
    width += wide;
  }
  return `${cut}…`;
}

/** Text as lines that fit a width, each indented; a word that is longer stands alone. */
export function wrapped(text: string, width: number, indent: number): string[] {
  const room = Math.max(30, width - indent);
  const lines: string[] = [];
  let line = '';
  for (const word of text.split(' ')) {
    if (line !== '' && widthOf(line) + 1 + widthOf(word) > room) {
      lines.push(line);
      line = word;
    } else line = line === '' ? word : `${line} ${word}`;
  }
  return [...lines, line].map((one) => ' '.repeat(indent) + one);
}
