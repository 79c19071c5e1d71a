/**
 * One requested delivery of one event to one sink. No cursor moves, and the sink's health does not change.
 */
import type { LoggedEvent } from '../log/log.ts';
import { type Attempt, type DeliveryLog, toDeliveryEntry } from './delivery-log.ts';
import type { AttemptReport } from './endpoint-views.ts';
import type { DeliveryOutcome, SinkPort, SinkRecord } from './sink.ts';

/** Dependencies of an attempt. */
export interface AttemptDeps {
  /** Opens the sink of a record. Throws if it cannot be created. */
  readonly open: (record: SinkRecord) => Promise<SinkPort>;
  readonly deliveries: Pick<DeliveryLog, 'record'>;
  /** Called with each attempt. Must not throw. Default: no callback. */
  readonly attempted?: (attempt: Attempt) => void;
  /** Epoch ms. */
  readonly now: () => number;
  readonly newId: () => string;
}

/** Sends one event, even to a paused, disabled or waiting sink, and records the attempt. */
export async function attemptNow(
  deps: AttemptDeps,
  record: SinkRecord,
  event: LoggedEvent,
  cause: 'ping' | 'resend',
): Promise<AttemptReport> {
  const at = deps.now();
  const outcome = await tryOnce(deps, record, event, cause === 'resend' ? deps.newId() : undefined);
  const endedAt = deps.now();
  const entry = toDeliveryEntry(record, event, outcome, { at, endedAt, cause });
  const { at: _, excerpt: __, headers: ___, ...attempt } = entry;
  deps.attempted?.({ ...attempt, lagMs: Math.max(0, endedAt - event.time) });
  const logged = await deps.deliveries.record([entry]).then(
    () => true,
    () => false,
  );
  const { latencyMs, reason = 'Delivered.', status = null } = entry;
  const isUnauthorized = status === 401 || status === 403;
  const message = isUnauthorized && record.kind === 'webhook' ? `${reason} ${CHECK_SECRET}` : reason;
  return { outcome: outcome.kind, status, latencyMs, message, logged };
}

/** Remedy for a receiver that does not accept the signature. */
const CHECK_SECRET =
  'Probably the receiver verifies webhooks with another signing secret than that of the endpoint. Compare both, and the custom headers if the receiver requires one.';

async function tryOnce(
  deps: AttemptDeps,
  record: SinkRecord,
  event: LoggedEvent,
  replay: string | undefined,
): Promise<DeliveryOutcome> {
  try {
    const port = await deps.open(record);
    const [outcome] = await port.deliver([{ event, ...(replay !== undefined && { replay }) }]);
    return outcome ?? { kind: 'retry', reason: 'The sink returned no outcome for this event.' };
  } catch (cause) {
    const reason = cause instanceof Error ? cause.message : 'The sink could not be opened.';
    return { kind: 'retry', reason };
  }
}
