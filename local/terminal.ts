/** Terminal output of events: one readable line each. */
import { existsSync, realpathSync } from 'node:fs';
import { basename, delimiter, join } from 'node:path';
import { styleText } from 'node:util';
import type { JobEvent } from '../shared/events/event.ts';
import { maskAddress } from '../shared/notifications/masking.ts';
import type { Caught } from './mailbox.ts';

/** Formatter for a stream. Uses colors only if the stream supports them. */
export interface Terminal {
  line(text?: string): void;
  event(event: JobEvent): void;
  /** Prints a notification that the mailbox caught. */
  caught(message: Caught): void;
  /** Prints a line again and again: after every 20 lines of events and messages, so that it never leaves the screen. */
  repeat(text: () => string): void;
  heading(text: string): string;
  dim(text: string): string;
}

type Style = Parameters<typeof styleText>[0];

/** Creates a formatter for a stream such as `process.stdout`. */
export function createTerminal(stream: NodeJS.WriteStream): Terminal {
  const paint = (style: Style, text: string): string => styleText(style, text, { stream });
  let repeated: (() => string) | undefined;
  let lines = 0;
  // Texts are cut only on a terminal. In a file, nothing may be missing.
  const text = (value: unknown): string => sanitizeText(value, stream.isTTY ? MAX_TEXT : MAX_FILE_TEXT);
  const write = (line: string): void => {
    stream.write(`${line}\n`);
    lines += 1;
    if (repeated && lines % REPEAT_LINES === 0) stream.write(`${repeated()}\n`);
  };
  return {
    line: (text = '') => void stream.write(`${text}\n`),
    repeat(text) {
      repeated = text;
    },
    heading: (text) => paint('bold', text),
    dim: (text) => paint('dim', text),
    event(event) {
      const { region, account } = event.data;
      const [, job = ''] = /^jobs\/(\d+)$/.exec(event.subject ?? '') ?? [];
      const columns = [
        paint('dim', formatTime(event.time)),
        sanitizeText(account === undefined ? region : `${region}/${account}`, getAccountWidth(stream)).padEnd(
          ACCOUNT_WIDTH,
        ),
        job.padEnd(7),
        paint(getStyle(event.type), sanitizeText(event.type).padEnd(24)),
        paint('dim', sanitizeText(describe(event, text), Number.POSITIVE_INFINITY)),
      ];
      write(columns.join(' ').trimEnd());
    },
    caught({ channel, from, to, subject, preview, at }) {
      const columns = [
        paint('dim', formatTime(at)),
        cut(sanitizeText(from.name ?? from.address), ACCOUNT_WIDTH).padEnd(ACCOUNT_WIDTH),
        ''.padEnd(7),
        paint('blue', (channel === 'sms' ? 'SMS' : 'e-mail').padEnd(24)),
        paint('dim', `to ${maskAddress(to.address)}: ${text(subject ?? preview)}`),
      ];
      write(columns.join(' '));
    },
  };
}

/** Maximum length of a text on a terminal, and elsewhere. */
const MAX_TEXT = 60;
const MAX_FILE_TEXT = 4_000;

/** Lines between two repetitions of a line. A usual terminal has 24 lines. */
const REPEAT_LINES = 20;

/** Minimum width of the account column. On a wide terminal it takes the width that other columns do not need. */
const ACCOUNT_WIDTH = 22;
const OTHER_COLUMNS = 95;

function getAccountWidth({ isTTY, columns }: NodeJS.WriteStream): number {
  return isTTY ? Math.max(ACCOUNT_WIDTH, (columns || 80) - OTHER_COLUMNS) : Number.POSITIVE_INFINITY;
}

const cut = (text: string, most: number): string =>
  text.length > most ? `${text.slice(0, most - 1)}…` : text;

function getStyle(type: string): Style {
  if (type.startsWith('account.')) return 'magenta';
  switch (type) {
    case 'job.dispatched':
    case 'job.tracking_added':
    case 'order_group.dispatched':
    case 'upstream.recovered':
      return 'green';
    case 'job.cancelled':
    case 'job.unavailable':
    case 'job.overdue':
    case 'job.stalled':
    case 'job.dispatch_revoked':
    case 'upstream.outage':
      return 'red';
    case 'job.created':
      return 'cyan';
    default:
      return 'yellow';
  }
}

interface EventData {
  job?: { description?: string | null; dateDue?: string | null; tracking?: Parcel[] };
  changes?: Record<string, { from: unknown; to: unknown }>;
  tracking?: (Parcel & { to?: Parcel })[];
  [field: string]: unknown;
}
interface Parcel {
  number: string | null;
  link: string | null;
}

/** Sanitizes a text of an event. */
type Sanitize = (value: unknown) => string;

/** Returns a short description of an event. */
function describe(event: JobEvent, text: Sanitize): string {
  const data = event.data as EventData;
  const changes = Object.entries(data.changes ?? {}).map(([field, { from, to }]) => {
    const values = `${formatValue(from, text)} → ${formatValue(to, text)}`;
    return field === 'status' ? values : `${field}: ${values}`;
  });
  switch (event.type) {
    case 'job.created':
      return text(data.job?.description);
    case 'job.dispatched':
      return `on ${text(data.occurredAt)}${formatParcels(data.job?.tracking, text, ', ')}`;
    case 'job.tracking_added':
    case 'job.tracking_removed':
      return formatParcels(data.tracking, text);
    case 'job.tracking_updated':
      return formatParcels(
        data.tracking?.map((entry) => entry.to ?? entry),
        text,
      );
    case 'job.stalled':
      return `${text(data.workingDays)} working days in ${text(data.status)}`;
    case 'job.needs_attention':
      return text(data.status);
    case 'job.due_soon':
    case 'job.overdue':
      return `due ${text(data.job?.dateDue)}`;
    case 'job.cancelled':
    case 'job.unavailable':
      return `inferred; job status: ${text(data.jobStatus)}`;
    case 'order_group.partially_dispatched':
      return `${text(data.orderGroup)}: ${text((data.jobs as number[]).join(', '))}; open: ${text((data.openJobs as number[]).join(', '))}`;
    case 'order_group.dispatched':
      return `${text(data.orderGroup)}: ${text((data.jobs as number[]).join(', '))}`;
    case 'account.identity_mismatch':
      return `expected ${text(data.expectedId)}, found ${text(data.actualId)}`;
    case 'account.poll_recovered':
      return `after ${text(data.failedPolls)} failed polls`;
    case 'account.quarantined':
      return `${Number(data.suspected) + Number(data.contradictory)} jobs disappeared; not reported until they return or an operator confirms that they are gone`;
    case 'account.resumed':
      return `was ${text(data.previousState)}; by ${text(data.by)}`;
    case 'account.payment_completed':
    case 'account.payment_failed': {
      const { id, amountSettlement, currencySettlement } = data.transaction as Record<string, unknown>;
      return `${text(id)}: ${text(amountSettlement)} ${text(currencySettlement)}`;
    }
    case 'account.restored':
      return `resumes after ${text(data.after)}`;
    case 'account.baselined':
      return `${data.openJobs} open jobs; changes are emitted from now on`;
    case 'status.discovered':
      return text(data.status);
    case 'upstream.recovered':
      return `after ${data.durationSeconds} s`;
    case 'endpoint.events_lost':
      return `${text(data.endpoint)}: events ${text(data.first)} to ${text(data.last)}`;
    case 'endpoint.disabled':
    case 'endpoint.event_dead':
      return `${text(data.endpoint)}: ${text(data.reason)}`;
    case 'endpoint.recovered':
      return text(data.endpoint);
    default:
      return changes.length > 0 ? changes.join('; ') : text(data.reason ?? '');
  }
}

/** Formats a value of a change. Of lines, only the ids. */
function formatValue(value: unknown, text: Sanitize): string {
  return Array.isArray(value)
    ? text(value.map((line: { jobLineId: number }) => line.jobLineId).join(', ') || undefined)
    : text(value);
}

function formatParcels(entries: readonly Parcel[] | undefined, text: Sanitize, before = ''): string {
  if (!entries || entries.length === 0) return '';
  return before + entries.map(({ number, link }) => text(number ?? link)).join(', ');
}

/** Formats a time (ISO text, or epoch ms) as the terminal output and the CLI show all times: ISO 8601 in UTC, to the second. */
export function formatTime(at: string | number): string {
  return `${new Date(at).toISOString().slice(0, -'.000Z'.length)}Z`;
}

/** Returns how a shell starts the CLI: from the sources, by npx, as an installed command, or by the path of this program. */
export function findCli(): string {
  if (import.meta.filename.endsWith('.ts')) return 'npm run -s jobwire --';
  const script = process.argv[1] ?? '';
  // Another program, such as a test, has loaded the CLI.
  if (!/^jobwire(\.js)?$/.test(basename(script))) return 'jobwire';
  const installed = (process.env.PATH ?? '').split(delimiter).map((folder) => join(folder, 'jobwire'));
  const [found] = installed.filter((file) => existsSync(file));
  if (found === undefined || realpathSync(found) !== realpathSync(script)) return `node ${quote(script)}`;
  // npx adds its folder to PATH only for the process that it starts.
  return process.env.npm_command === 'exec' ? 'npx jobwire' : 'jobwire';
}

/** Replaces `jobwire` before the name of a command by how a shell starts the CLI here. */
export function nameCli(text: string): string {
  return text.replace(/(?<!npx |[\w./-])jobwire (?=[a-z])/g, () => `${findCli()} `);
}

/** Quotes a text for a POSIX shell, if necessary. */
export function quote(text: string): string {
  return /^[\w@%+=:,./-]+$/.test(text) ? text : `'${text.replaceAll("'", "'\\''")}'`;
}

/** Returns a number with its noun: `1 account`, `2 accounts`. */
export function count(number: number, noun: string): string {
  return `${number} ${noun}${number === 1 ? '' : 's'}`;
}

/** Sanitizes untrusted text: removes control characters and direction marks, and limits its length. */
export function sanitizeText(value: unknown, most = MAX_TEXT): string {
  if (value === null || value === undefined) return '–';
  const text = String(value).replace(/[\p{Cc}\p{Zl}\p{Zp}\u200e\u200f\u202a-\u202e\u2066-\u2069]+/gu, ' ');
  return cut(text, most);
}
