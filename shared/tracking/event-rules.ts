/** Event settings of an account, with the current names of its statuses. */
import { hash } from 'node:crypto';
import type { EventSettings } from '../accounts/event-settings.ts';
import type { EventRules } from './diff/step.ts';
import type { StatusNames } from './status-names.ts';

const HOUR_MS = 3_600_000;

/** Returns the rules of an account's settings. A configured name also means the name that replaced it upstream. */
export function createEventRules(
  { dueSoonHours, stalledAfterWorkingDays, stalledByStatus, attentionStatuses }: EventSettings,
  statuses: Pick<StatusNames, 'isSame'>,
): EventRules {
  const byStatus = Object.entries(stalledByStatus);
  const timers = JSON.stringify([dueSoonHours, stalledAfterWorkingDays, byStatus]);
  const hasTimers = dueSoonHours !== null || stalledAfterWorkingDays !== null || byStatus.length > 0;
  return {
    dueSoonMs: dueSoonHours === null ? null : dueSoonHours * HOUR_MS,
    stalledAfter(status) {
      const own = byStatus.find(([name]) => statuses.isSame(name, status));
      return own ? own[1] : stalledAfterWorkingDays;
    },
    needsAttention: (status) => attentionStatuses.some((name) => statuses.isSame(name, status)),
    timers: hasTimers ? hash('sha256', timers).slice(0, 8) : '',
  };
}
