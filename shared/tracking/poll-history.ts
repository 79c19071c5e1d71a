/**
 * The last polls of an account: when each began, how long it took and how it ended. They are kept within the Status that
 * every poll writes anyway, in so few bytes that the write costs nothing more (docs/decisions/0036-polls-kept.md). Pure.
 */
import { sizeOf, type Value } from '../table/table.ts';

/** How a poll ended: complete, something left for the next one, or nothing read. */
export const POLL_OUTCOMES = ['complete', 'partial', 'failed'] as const;
export type PollOutcome = (typeof POLL_OUTCOMES)[number];

/** A poll that is over. */
export interface PastPoll {
  /** Epoch ms, in whole seconds. */
  readonly startedAt: number;
  /** How long it took, up to its last write. */
  readonly ms: number;
  readonly outcome: PollOutcome;
  /** Requests to the ordering service. */
  readonly requests: number;
  /** What it announced. */
  readonly events: number;
  /** What went wrong, in a sentence; null when nothing did, or when that is no longer kept. */
  readonly problem: string | null;
}

type Attributes = { readonly [attribute: string]: Value | undefined };

/** Polls that are kept at most. */
export const KEPT_POLLS = 20;
/** Different sentences that are kept at most, and their length. */
const KEPT_PROBLEMS = 3;
const PROBLEM_LENGTH = 160;
/**
 * A Status is no larger than this because of them: a write unit is 1,024 bytes. What is left is for what others write to it
 * in between: a claim, a change of the account, a confirmation.
 */
const MOST_BYTES = 940;

/** Seconds, outcome (2 bits) and number of the sentence, ms (3 bytes), requests, events. */
const BYTES = 12;
/** The number of the sentence that the Status has as its `problem` anyway. */
const CURRENT = 63;
const LARGEST = { ms: 2 ** 24 - 1, count: 2 ** 16 - 1 } as const;

/**
 * The attributes to be written after a poll; `others` is the rest of the item as it will be. Where there is little room
 * sentences go first, the oldest first, and then polls.
 */
export function addPoll(
  before: readonly PastPoll[],
  poll: PastPoll,
  others: Attributes,
): { polls: Uint8Array | undefined; pollProblems: string[] | undefined } {
  const current = typeof others.problem === 'string' ? others.problem : undefined;
  const room = MOST_BYTES - sizeOf({ ...others, polls: undefined, pollProblems: undefined });
  const kept = [...before, poll].slice(-KEPT_POLLS);
  for (let first = 0; first < kept.length; first += 1) {
    for (let most = KEPT_PROBLEMS; most >= 0; most -= 1) {
      const stored = encode(kept.slice(first), most, current);
      if (sizeOf(stored) <= room) return stored;
    }
  }
  return { polls: undefined, pollProblems: undefined };
}

function encode(polls: readonly PastPoll[], mostProblems: number, current: string | undefined) {
  const problems: string[] = [];
  const numberOf = (problem: string | null): number => {
    if (problem === null) return 0;
    if (problem === current) return CURRENT;
    const text = shortened(problem);
    if (!problems.includes(text) && problems.length < mostProblems) problems.push(text);
    return problems.indexOf(text) + 1;
  };
  const bytes = new Uint8Array(polls.length * BYTES);
  const view = new DataView(bytes.buffer);
  // The newest first: their sentences are the ones that are kept.
  for (const [back, { startedAt, ms, outcome, requests, events, problem }] of [...polls]
    .reverse()
    .entries()) {
    const at = (polls.length - 1 - back) * BYTES;
    view.setUint32(at, Math.floor(startedAt / 1000));
    view.setUint8(at + 4, POLL_OUTCOMES.indexOf(outcome) | (numberOf(problem) << 2));
    view.setUint8(at + 5, within(ms, LARGEST.ms) >> 16);
    view.setUint16(at + 6, within(ms, LARGEST.ms) & 0xffff);
    view.setUint16(at + 8, within(requests, LARGEST.count));
    view.setUint16(at + 10, within(events, LARGEST.count));
  }
  return { polls: bytes, pollProblems: problems.length > 0 ? problems : undefined };
}

/** The polls that a Status item holds, the oldest first. */
export function readPolls({ polls, pollProblems, problem: current }: Attributes): PastPoll[] {
  if (!(polls instanceof Uint8Array)) return [];
  const problems = Array.isArray(pollProblems) ? pollProblems : [];
  const problemOf = (number: number): string | null =>
    number === CURRENT ? (typeof current === 'string' ? current : null) : (problems[number - 1] ?? null);
  const view = new DataView(polls.buffer, polls.byteOffset, polls.byteLength);
  return Array.from({ length: Math.floor(polls.byteLength / BYTES) }, (_, number) => {
    const at = number * BYTES;
    const flags = view.getUint8(at + 4);
    return {
      startedAt: view.getUint32(at) * 1000,
      ms: view.getUint8(at + 5) * 2 ** 16 + view.getUint16(at + 6),
      outcome: POLL_OUTCOMES[flags & 3] ?? 'failed',
      requests: view.getUint16(at + 8),
      events: view.getUint16(at + 10),
      problem: problemOf(flags >> 2),
    };
  });
}

/** How long polls took (ms): the last one, half of them at most, and the slowest; null when there are none. */
export function pollTimes(
  polls: readonly PastPoll[],
): { readonly last: number; readonly median: number; readonly slowest: number } | null {
  const last = polls.at(-1);
  if (!last) return null;
  const sorted = polls.map(({ ms }) => ms).sort((a, b) => a - b);
  const median = sorted[Math.floor((sorted.length - 1) / 2)] ?? last.ms;
  return { last: last.ms, median, slowest: sorted.at(-1) ?? last.ms };
}

function shortened(text: string): string {
  return text.length <= PROBLEM_LENGTH ? text : `${text.slice(0, PROBLEM_LENGTH - 1).trimEnd()}…`;
}

function within(value: number, most: number): number {
  return Math.max(0, Math.min(most, Math.round(value)));
}
