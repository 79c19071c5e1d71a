/** Evaluates the alert rules of a cell. */
import type { Context } from 'aws-lambda';
import { type AlertDeps, evaluateAlerts } from '../../shared/alerts/evaluate.ts';
import type { Telemetry } from '../telemetry.ts';

/** Dependencies of the handler. */
export interface AlertsDeps {
  readonly region: string;
  readonly alerts: AlertDeps;
  readonly telemetry: Pick<Telemetry, 'alerts'>;
}

/** Timeout (ms) of sending one e-mail. */
export const MAIL_TIMEOUT_MS = 8_000;
/**
 * Time (ms) before the function's timeout from which no evaluation starts: a message takes up to 15 s, and its result is stored.
 */
const TAIL_MS = 25_000;

/** Creates the handler. Rules for which no time is left are evaluated a minute later. */
export function createAlertsHandler({ region, alerts, telemetry }: AlertsDeps) {
  return async (_event: unknown, context: Pick<Context, 'getRemainingTimeInMillis'>): Promise<void> => {
    const startedAt = alerts.now();
    const deadline = startedAt + context.getRemainingTimeInMillis() - TAIL_MS;
    const summary = await evaluateAlerts(alerts, region, deadline);
    if (summary) telemetry.alerts(summary, { ms: alerts.now() - startedAt });
  };
}
