/** Records the outcomes of messages in batches. */
import { TableError } from '../storage/table.ts';
import { type Change, type Changed, changeMessages, isFinal, type Work } from './messages.ts';
import { reportFault, reportMessage, type SendDeps } from './send-report.ts';

/** Maximum number of sends whose outcome is not recorded. A crash sends at most these again, and those in progress. */
const MAX_UNRECORDED = 60;

/** With a journal entry they make one transaction. */
const RECORD_BATCH = 99;

/** Outcomes are recorded once there are this many, or after a short wait. A batch costs a fraction of single writes. */
const RECORD_BATCH_MIN = 40;

const RECORD_WAIT_MS = 50;

/** Maximum number of retries after concurrent modification. */
export const ATTEMPTS = 20;

/** A change of a message to be recorded. */
export interface MessageRecord {
  readonly work: Work;
  readonly change: Change;
  /** Of the attempt that caused it. */
  readonly latencyMs?: number;
  /** Whether not to report it. */
  readonly quiet?: boolean;
  /** Called if the message was modified since it was read. */
  readonly onConflict?: () => Promise<void>;
}

/**
 * Records outcomes of messages: in batches, in the background, each after those before it. An outcome that cannot be written has the effect
 * of a crash at that point.
 */
export class OutcomeRecorder {
  readonly counts = { sent: 0, repeats: 0, later: 0, failed: 0, suppressed: 0, dryRun: 0, unknown: 0 };
  /** Number of messages that are final. */
  finalCount = 0;
  readonly #deps: SendDeps;
  readonly #region: string;
  readonly #running = new Set<Promise<void>>();
  #queue: MessageRecord[] = [];
  #writeLoop: Promise<void> | undefined;
  /** Ends the wait for more outcomes. */
  #stopWaiting: (() => void) | undefined;
  #fault: { readonly cause: unknown } | undefined;

  constructor(deps: SendDeps, region: string) {
    this.#deps = deps;
    this.#region = region;
  }

  get hasFailed(): boolean {
    return this.#fault !== undefined;
  }

  fail(cause: unknown): void {
    this.#fault ??= { cause };
  }

  add(note: MessageRecord): void {
    this.#queue.push(note);
    this.#writeLoop ??= this.#write();
    if (this.#queue.length >= RECORD_BATCH_MIN) this.#stopWaiting?.();
  }

  /** Waits until few enough outcomes are unrecorded to add more. */
  async waitForCapacity(): Promise<void> {
    while (this.#queue.length > MAX_UNRECORDED) await this.#writeLoop;
  }

  /** Waits until everything is written, including the history. */
  async flush(): Promise<void> {
    while (this.#writeLoop || this.#running.size > 0) {
      this.#stopWaiting?.();
      await Promise.all([this.#writeLoop, ...this.#running]);
    }
  }

  /** Waits until everything is written. Throws the first error. */
  async close(): Promise<void> {
    await this.flush();
    if (this.#fault) throw this.#fault.cause;
  }

  /** Writes a decision on the current message, and decides again after concurrent modification. */
  async recordDecision(decide: () => Promise<MessageRecord | undefined>): Promise<void> {
    for (let tries = 0; tries < ATTEMPTS; tries += 1) {
      const note = await decide();
      if (!note) return;
      const changed = await changeMessages(this.#deps, this.#region, [note.change]);
      if (!changed.done[0]) continue;
      this.#count(note);
      this.#writeHistory(changed);
      return;
    }
    throw new TableError('write', 'a message was modified concurrently on every attempt');
  }

  async #write(): Promise<void> {
    while (this.#queue.length > 0) {
      if (this.#queue.length < RECORD_BATCH_MIN) await this.#waitForMore();
      const notes = this.#queue.splice(0, RECORD_BATCH);
      try {
        const changes = notes.map(({ change }) => change);
        const changed = await changeMessages(this.#deps, this.#region, changes);
        notes.forEach((note, at) => {
          if (changed.done[at]) this.#count(note);
          else if (note.onConflict) this.#runInBackground(note.onConflict());
        });
        this.#writeHistory(changed);
      } catch (cause) {
        this.fail(cause);
      }
    }
    this.#writeLoop = undefined;
  }

  /** Waits briefly for more outcomes. */
  async #waitForMore(): Promise<void> {
    let timer: NodeJS.Timeout | undefined;
    await new Promise<void>((resolve) => {
      this.#stopWaiting = resolve;
      timer = setTimeout(resolve, RECORD_WAIT_MS);
    });
    clearTimeout(timer);
    this.#stopWaiting = undefined;
  }

  /** Writes the history without waiting. If that fails, it is written later. */
  #writeHistory(changed: Changed): void {
    this.#runInBackground(
      changed.keep().catch((cause: unknown) => {
        reportFault(this.#deps, { ref: { region: this.#region } }, cause);
      }),
    );
  }

  #runInBackground(work: Promise<void>): void {
    const running = work
      .catch((cause: unknown) => this.fail(cause))
      .then(() => {
        this.#running.delete(running);
      });
    this.#running.add(running);
  }

  #count({ change: { message }, latencyMs, quiet }: MessageRecord): void {
    if (quiet) return;
    const { counts } = this;
    if (message.state === 'sent') {
      counts.sent += 1;
      if (message.repeats > 0) counts.repeats += 1;
    } else if (message.state === 'waiting') counts.later += 1;
    else if (message.state === 'failed') counts.failed += 1;
    else if (message.state === 'suppressed') counts.suppressed += 1;
    else if (message.state === 'dry_run') counts.dryRun += 1;
    else if (message.state === 'unknown') counts.unknown += 1;
    if (isFinal(message.state)) this.finalCount += 1;
    reportMessage(this.#deps, message, latencyMs);
  }
}
