/**
 * Lines and comments of a job, which only its detail shows (rule 4). Pure.
 *
 * A line is identified by its `jobLineId`. What an answer does not give is no change: a null quantity or comment, and a
 * list of lines that is null, empty or has a line without an id. An empty comment is a removed one.
 */
import { hash } from 'node:crypto';
import type { LineSummary } from '../../events/catalogue.ts';
import type { SupersededLines } from '../snapshot.ts';
import type { DetailLine, DetailView } from '../views.ts';
import type { Changes } from './fields.ts';
import { MAX_LAG_MS } from './lag.ts';

/** Maximum number of lines on each side of a change. */
const MAX_LINES = 200;
/** Maximum number of superseded states kept. */
const MAX_SUPERSEDED = 8;

type Lines = Pick<DetailView, 'lines' | 'comments'>;

/** Lines and comments after a detail. */
export interface LinesStep extends Lines {
  readonly changes: Changes;
  readonly superseded: readonly SupersededLines[] | undefined;
  /** Whether the detail shows an earlier state, which is not stored. */
  readonly isBehind: boolean;
}

/**
 * Applies the lines and comments of a detail, requested at `requestedAt` (epoch ms). A state that another one superseded
 * less than {@link MAX_LAG_MS} ago is not news: the detail is outdated.
 */
export function applyLines(
  was: DetailView | null,
  detail: DetailView,
  superseded: readonly SupersededLines[] | undefined,
  requestedAt: number,
): LinesStep {
  const next = carryForwardLines(was, detail);
  if (was === null) return { ...next, changes: {}, superseded, isBehind: false };
  const changes = compareLines(was, next);
  if (Object.keys(changes).length === 0) return { ...next, changes, superseded, isBehind: false };
  const recent = (superseded ?? []).filter(({ at }) => requestedAt - at < MAX_LAG_MS);
  const nextPrint = printLines(next);
  if (recent.some(({ print }) => print === nextPrint)) {
    return { lines: was.lines, comments: was.comments, changes: {}, superseded, isBehind: true };
  }
  const added = { print: printLines(was), at: requestedAt };
  return { ...next, changes, superseded: [...recent, added].slice(-MAX_SUPERSEDED), isBehind: false };
}

/** Returns the lines and comments of a detail, with the former values of what it does not give. */
function carryForwardLines(was: DetailView | null, { lines, comments }: DetailView): Lines {
  const before = new Map(was?.lines.map((line) => [line.jobLineId, line]));
  const carried = lines.map((line) => {
    const former = before.get(line.jobLineId);
    const status = line.status ?? former?.status ?? null;
    if (line.quantity === undefined) return { ...line, status };
    const quantity = line.quantity ?? former?.quantity ?? null;
    return { ...line, status, quantity, comments: carryForwardText(former?.comments, line.comments) };
  });
  return {
    lines: lines.length === 0 ? (was?.lines ?? []) : carried,
    comments: carryForwardText(was?.comments, comments),
  };
}

/** Returns a comment, or `null` for none. An empty text removes it, `null` does not. */
function carryForwardText(was: string | null | undefined, text: string | null | undefined): string | null {
  return (text ?? was) || null;
}

function compareLines(was: DetailView, next: Lines): Changes {
  const comments = { from: was.comments || null, to: next.comments };
  const { from, to } = pairLines(was.lines, next.lines);
  return {
    ...(comments.from === comments.to ? {} : { comments }),
    ...(from.length + to.length === 0 ? {} : { lines: { from: toSummaries(from), to: toSummaries(to) } }),
  };
}

/** Returns the lines that differ, before and after. Without lines before, it is unknown whether the others are new. */
function pairLines(was: readonly DetailLine[], next: readonly DetailLine[]) {
  if (was.length === 0) return { from: [], to: [] };
  const before = new Map(was.map((line) => [line.jobLineId, line]));
  const after = new Map(next.map((line) => [line.jobLineId, line]));
  return {
    from: was.filter((line) => isDifferent(line, after.get(line.jobLineId))),
    to: next.filter((line) => isDifferent(before.get(line.jobLineId), line)),
  };
}

/** Returns whether a line was added, removed or changed. A quantity or comment that was not stored is unknown. */
function isDifferent(from: DetailLine | undefined, to: DetailLine | undefined): boolean {
  if (!from || !to) return true;
  if (from.quantity === undefined || to.quantity === undefined) return false;
  return (from.quantity !== null && from.quantity !== to.quantity) || from.comments !== to.comments;
}

function toSummaries(lines: readonly DetailLine[]): LineSummary[] {
  return lines
    .slice(0, MAX_LINES)
    .map(({ jobLineId, quantity = null, comments = null }) => ({ jobLineId, quantity, comments }));
}

/** Returns a 48-bit fingerprint of lines and comments, without the statuses. */
function printLines({ lines, comments }: Lines): number {
  const canonical = [comments || null, lines.map((line) => [line.jobLineId, line.quantity, line.comments])];
  return Number.parseInt(hash('sha256', JSON.stringify(canonical)).slice(0, 12), 16);
}
