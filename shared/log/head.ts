/** The end of a log, and positions in it: heads, epochs, cursors. */
import { randomBytes } from 'node:crypto';
import type { Item, Value } from '../storage/table.ts';

/** The current end of an account's log. */
export interface Head {
  /** New when an account is created or a table is restored, so that no event id is ever reused. */
  readonly epoch: string;
  /** The number of the last event; 0 before the first. */
  readonly sequence: number;
  /**
   * The other attributes of the Head item: those set through `commit`, `eventsExpireAt` of the last event,
   * and `former`, the end of each earlier epoch as cursors.
   */
  readonly attributes: { readonly [attribute: string]: Value | undefined };
}

/**
 * Creates the epoch of a log that begins at `now` (epoch ms). Epochs sort by time as text; two that begin in
 * the same second differ.
 */
export function newEpoch(now: number): string {
  return `${epochFloor(now)}${randomBytes(3).toString('hex')}`;
}

/** Creates the epoch of a log that begins at `now` (epoch ms) and follows a log of another epoch, even if its clock was ahead. */
export function newEpochAfter(epoch: string, now: number): string {
  const next = newEpoch(now);
  if (next > epoch) return next;
  const second = Number.parseInt(epoch.slice(0, next.length - 6), 36);
  return newEpoch(Number.isNaN(second) ? now : (second + 1) * 1000);
}

/** Attribute of the Head of a closed log. */
export const CLOSED = 'closed';

/** Returns whether a log is closed: its account was moved to another cell, and no event is added. */
export function isClosed({ attributes }: Pick<Head, 'attributes'>): boolean {
  return attributes[CLOSED] === true;
}

/**
 * Returns a text that sorts before all epochs that begin at a time (epoch ms) or later, and after all that
 * began before its second.
 */
export function epochFloor(time: number): string {
  return Math.floor(time / 1000).toString(36);
}

/**
 * Returns the sequence of a cursor; `undefined` if its position is not in this log. That is: beyond the head,
 * of an unknown epoch, or beyond what a restored table retained of its epoch. A bare number belongs to the
 * current epoch. Retention is only checked by the read.
 */
export function resolveCursor(
  head: Pick<Head, 'epoch' | 'sequence' | 'attributes'>,
  cursor: { readonly epoch?: string; readonly sequence: number },
): number | undefined {
  const end =
    cursor.epoch === undefined || cursor.epoch === head.epoch
      ? head.sequence
      : findEpochEnd(head, cursor.epoch);
  return end !== undefined && cursor.sequence <= end ? cursor.sequence : undefined;
}

/** Returns the last retained number of an epoch before the current one; `undefined` for an unknown epoch. */
export function findEpochEnd(head: Pick<Head, 'attributes'>, epoch: string): number | undefined {
  const cursor = getFormerEnds(head).find((end) => parseCursor(end)?.epoch === epoch);
  return cursor === undefined ? undefined : parseCursor(cursor)?.sequence;
}

export function getFormerEnds({ attributes }: Pick<Head, 'attributes'>): readonly string[] {
  return (attributes.former as readonly string[] | undefined) ?? [];
}

/** Formats a position in a log as a client's cursor: `<epoch>.<sequence>`. */
export function formatCursor(epoch: string, sequence: number): string {
  return `${epoch}.${sequence}`;
}

/** Parses `<epoch>.<sequence>` or a bare sequence (then `epoch` is absent); `undefined` for anything else. */
export function parseCursor(text: string): { epoch?: string; sequence: number } | undefined {
  const match = /^(?:([0-9a-z]{1,32})\.)?(0|[1-9][0-9]{0,14})$/.exec(text);
  if (!match) return undefined;
  const sequence = Number(match[2]);
  return match[1] === undefined ? { sequence } : { epoch: match[1], sequence };
}

/** Converts an item to a Head, also one that was read together with the index shards. */
export function toHead(item: Item): Head {
  const { pk: _pk, sk: _sk, epoch, sequence, ...attributes } = item;
  return { epoch: String(epoch), sequence: Number(sequence), attributes };
}
