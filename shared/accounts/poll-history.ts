/**
 * The last polls of an account: start, duration and outcome. They are stored in the Status that every poll
 * writes anyway, in so few bytes that the write costs nothing more (docs/decisions/0036-poll-history-in-status.md).
 * Pure.
 */
import { estimateSize, type Value } from '../storage/table.ts';

/** Outcome of a poll: complete, partial (work left for the next one), or failed (nothing read). */
export const POLL_OUTCOMES = ['complete', 'partial', 'failed'] as const;
export type PollOutcome = (typeof POLL_OUTCOMES)[number];

/** A completed poll. */
export interface PastPoll {
  /** Start in epoch ms, in whole seconds. */
  readonly startedAt: number;
  /** Duration up to the last write (ms). */
  readonly ms: number;
  readonly outcome: PollOutcome;
  /** Number of requests to the ordering API. */
  readonly requests: number;
  /** Number of events emitted. */
  readonly events: number;
  /** Error message. `null` if there was no error, or the message is no longer stored. */
  readonly problem: string | null;
}

type Attributes = { readonly [attribute: string]: Value | undefined };

/** Maximum number of polls kept. */
export const KEPT_POLLS = 20;
/** Maximum number of distinct error messages kept, and their maximum length (characters). */
const KEPT_PROBLEMS = 3;
const PROBLEM_LENGTH = 160;
/**
 * Maximum size of a Status with polls (bytes). A write unit is 1,024 bytes. The rest is for other writes in
 * between: a claim, a change of the account, a confirmation.
 */
const MOST_BYTES = 943;

/**
 * Size of a stored poll (bytes): seconds, outcome (2 bits) and message number, ms (3 bytes), requests,
 * events.
 */
const BYTES = 12;
/** Number of the message that the Status contains anyway as its `problem`. */
const CURRENT = 63;
const LARGEST = { ms: 2 ** 24 - 1, count: 2 ** 16 - 1 } as const;

/**
 * Returns the attributes to write after a poll. `others` is the rest of the item after the write. If there
 * is too little room, messages are dropped first, oldest first, and then polls.
 */
export function addPoll(
  before: readonly PastPoll[],
  poll: PastPoll,
  others: Attributes,
): { polls: Uint8Array | undefined; pollProblems: string[] | undefined } {
  const current = typeof others.problem === 'string' ? others.problem : undefined;
  const room = MOST_BYTES - estimateSize({ ...others, polls: undefined, pollProblems: undefined });
  const kept = [...before, poll].slice(-KEPT_POLLS);
  for (let first = 0; first < kept.length; first += 1) {
    for (let most = KEPT_PROBLEMS; most >= 0; most -= 1) {
      const stored = encode(kept.slice(first), most, current);
      if (estimateSize(stored) <= room) return stored;
    }
  }
  return { polls: undefined, pollProblems: undefined };
}

function encode(polls: readonly PastPoll[], mostProblems: number, current: string | undefined) {
  const problems: string[] = [];
  const toNumber = (problem: string | null): number => {
    if (problem === null) return 0;
    if (problem === current) return CURRENT;
    const text = shortened(problem);
    if (!problems.includes(text) && problems.length < mostProblems) problems.push(text);
    return problems.indexOf(text) + 1;
  };
  const bytes = new Uint8Array(polls.length * BYTES);
  const view = new DataView(bytes.buffer);
  // Newest first: their messages are kept.
  for (const [back, { startedAt, ms, outcome, requests, events, problem }] of [...polls]
    .reverse()
    .entries()) {
    const at = (polls.length - 1 - back) * BYTES;
    view.setUint32(at, Math.floor(startedAt / 1000));
    view.setUint8(at + 4, POLL_OUTCOMES.indexOf(outcome) | (toNumber(problem) << 2));
    view.setUint8(at + 5, within(ms, LARGEST.ms) >> 16);
    view.setUint16(at + 6, within(ms, LARGEST.ms) & 0xffff);
    view.setUint16(at + 8, within(requests, LARGEST.count));
    view.setUint16(at + 10, within(events, LARGEST.count));
  }
  return { polls: bytes, pollProblems: problems.length > 0 ? problems : undefined };
}

/** Returns the polls in a Status item, oldest first. */
export function readPolls({ polls, pollProblems, problem: current }: Attributes): PastPoll[] {
  if (!(polls instanceof Uint8Array)) return [];
  const problems = Array.isArray(pollProblems) ? pollProblems : [];
  const toProblem = (number: number): string | null =>
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
      problem: toProblem(flags >> 2),
    };
  });
}

/**
 * Returns the durations of polls (ms): the last one, the median, and the slowest. `null` if there are no
 * polls.
 */
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
