/** One event to one sink at once, because somebody asked for it: no cursor moves, and the sink's health is left alone. */
import type { LoggedEvent } from '../log/log.ts';
import type { Attempt, DeliveryEntry, DeliveryLog } from './delivery-log.ts';
import type { DeliveryOutcome, SinkPort, SinkRecord } from './sink.ts';

/** What an attempt needs. */
export interface AttemptDeps {
  /** The sink behind a record. Throws when it can't be made. */
  readonly open: (record: SinkRecord) => Promise<SinkPort>;
  readonly deliveries: Pick<DeliveryLog, 'record'>;
  /** Told of each attempt. Must not throw. Absent: nobody listens. */
  readonly attempted?: (attempt: Attempt) => void;
  /** Epoch ms. */
  readonly now: () => number;
}

/** What came of it. */
export interface AttemptReport {
  readonly outcome: DeliveryOutcome['kind'];
  /** Null when no answer came. */
  readonly status: number | null;
  readonly latencyMs: number;
  /** In a sentence. */
  readonly words: string;
  /** Whether it stands in the delivery log; nothing else goes by that. */
  readonly logged: boolean;
}

/** Sends one event, whether the sink is paused, disabled or waiting, and notes it. */
export async function attemptNow(
  deps: AttemptDeps,
  record: SinkRecord,
  event: LoggedEvent,
  cause: 'ping' | 'resend',
): Promise<AttemptReport> {
  const at = deps.now();
  const outcome = await tryOnce(deps, record, event, cause === 'resend');
  const latencyMs = deps.now() - at;
  const reason = outcome.kind === 'delivered' ? undefined : outcome.reason;
  const attempt: Omit<DeliveryEntry, 'at' | 'excerpt'> = {
    region: record.region,
    sink: record.id,
    sinkCreatedAt: record.createdAt,
    eventId: event.id,
    type: event.type,
    account: event.account,
    sequence: event.sequence,
    jobNumber: event.jobNumber,
    ...{ latencyMs, cause, reason },
    outcome: outcome.kind,
    status: outcome.answer?.status,
  };
  deps.attempted?.({ ...attempt, lagMs: Math.max(0, at + latencyMs - event.time) });
  const logged = await deps.deliveries.record([{ ...attempt, at, excerpt: outcome.answer?.excerpt }]).then(
    () => true,
    () => false,
  );
  return {
    outcome: outcome.kind,
    status: outcome.answer?.status ?? null,
    latencyMs,
    words: reason ?? 'The endpoint took it.',
    logged,
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
