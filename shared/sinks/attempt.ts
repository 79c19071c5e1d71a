/** One event to one sink at once, because somebody asked for it: no cursor moves, and the sink's health is left alone. */
import type { LoggedEvent } from '../log/log.ts';
import type { DeliveryOutcome, SinkPort, SinkRecord } from './sink.ts';

/** What an attempt needs. */
export interface AttemptDeps {
  /** The sink behind a record. Throws when it can't be made. */
  readonly open: (record: SinkRecord) => Promise<SinkPort>;
  /** Notes an attempt in the delivery log. */
  readonly note: (attempt: NotedAttempt) => Promise<void>;
  /** Epoch ms. */
  readonly now: () => number;
}

/** An attempt as the delivery log takes it. */
export interface NotedAttempt {
  readonly region: string;
  readonly sink: string;
  readonly event: LoggedEvent;
  readonly cause: 'ping' | 'resend';
  /** Epoch ms. */
  readonly at: number;
  readonly latencyMs: number;
  readonly outcome: DeliveryOutcome;
}

/** What came of it. */
export interface AttemptReport {
  readonly outcome: 'delivered' | 'rejected' | 'failed';
  /** Null when no answer came. */
  readonly status: number | null;
  readonly latencyMs: number;
  /** In a sentence. */
  readonly words: string;
}

/** Sends one event, whether the sink is paused, disabled or waiting, and notes it. */
export async function attemptNow(
  deps: AttemptDeps,
  record: SinkRecord,
  event: LoggedEvent,
  cause: NotedAttempt['cause'],
): Promise<AttemptReport> {
  const at = deps.now();
  const outcome = await tryOnce(deps, record, event, cause === 'resend');
  const latencyMs = deps.now() - at;
  await deps.note({ region: record.region, sink: record.id, event, cause, at, latencyMs, outcome });
  return {
    outcome: outcome.kind === 'retry' ? 'failed' : outcome.kind,
    status: outcome.answer?.status ?? null,
    latencyMs,
    words: outcome.kind === 'delivered' ? 'The endpoint took it.' : outcome.reason,
  };
}

async function tryOnce(
  deps: AttemptDeps,
  record: SinkRecord,
  event: LoggedEvent,
  replay: boolean,
): Promise<DeliveryOutcome> {
  try {
    const port = await deps.open(record);
    const [outcome] = await port.deliver([{ event, ...(replay ? { replay } : {}) }]);
    return outcome ?? { kind: 'retry', reason: 'The sink did not answer for this event.' };
  } catch (cause) {
    const reason = cause instanceof Error ? cause.message : 'The sink could not be opened.';
    return { kind: 'retry', reason };
  }
}
