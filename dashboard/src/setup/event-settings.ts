/** Form values of an account's event settings, and their conversion to a request body. */
import type { EventSettings } from '../../../client/index.ts';
import { parseNumber } from '../form-values.ts';
import { splitLines } from './endpoint-values.ts';

/**
 * Converts event settings to form values: numbers as text, lists with one entry per line. Of `stalledByStatus`, a line is
 * `Name = days`, or only the name if the event is not emitted for the status.
 */
export function toEventValues(events: EventSettings) {
  const { dueSoonHours, stalledAfterWorkingDays, stalledByStatus, attentionStatuses, payments } = events;
  return {
    dueSoonHours: String(dueSoonHours ?? ''),
    stalledAfterWorkingDays: String(stalledAfterWorkingDays ?? ''),
    stalledByStatus: Object.entries(stalledByStatus)
      .map(([name, days]) => (days === null ? `${name} =` : `${name} = ${days}`))
      .join('\n'),
    attentionStatuses: attentionStatuses.join('\n'),
    payments,
  };
}

/** Converts form values to the settings in a request body. */
export function toEventSettings(values: ReturnType<typeof toEventValues>) {
  const byStatus = splitLines(values.stalledByStatus).map((line) => {
    const at = line.lastIndexOf('=');
    return at < 0
      ? ([line, null] as const)
      : ([line.slice(0, at).trim(), parseNumber(line.slice(at + 1))] as const);
  });
  return {
    dueSoonHours: parseNumber(values.dueSoonHours),
    stalledAfterWorkingDays: parseNumber(values.stalledAfterWorkingDays),
    stalledByStatus: Object.fromEntries(byStatus),
    attentionStatuses: splitLines(values.attentionStatuses),
    payments: values.payments,
  };
}
