/**
 * Entries of lists that this process has read and found unchanged, of all accounts, by the digest of their text. A text always
 * gives the same fingerprint, so an entry is valid for ever, and only memory limits their number.
 */
import type { OpenKind } from './open-jobs.ts';

/** Parts of an unchanged entry that a poll needs. */
export interface KnownEntry {
  readonly jobNumber: number;
  /** Fingerprint of its list view. */
  readonly fingerprint: number;
  readonly kind: OpenKind;
}

/** Number of entries after which those not used since the last such moment are forgotten. 25,000 take about 4 MB. */
const GENERATION = 25_000;

let recent = new Map<string, KnownEntry>();
let former = new Map<string, KnownEntry>();

/** Returns the entry with a digest, or `undefined`. */
export function recallEntry(digest: string): KnownEntry | undefined {
  const entry = recent.get(digest);
  if (entry) return entry;
  const older = former.get(digest);
  if (older) rememberEntry(digest, older);
  return older;
}

/** Adds an entry. */
export function rememberEntry(digest: string, entry: KnownEntry): void {
  if (recent.size >= GENERATION) {
    former = recent;
    recent = new Map();
  }
  recent.set(digest, entry);
}
