/** Display texts for recipients and languages. */
import type { Recipient } from '../../../client/index.ts';
import type { Locale } from '../../../shared/notifications/types.ts';

export const localeNames: Readonly<Record<Locale, string>> = {
  'en-US': 'English (United States)',
  'en-GB': 'English (United Kingdom)',
  'en-AU': 'English (Australia)',
  'en-NZ': 'English (New Zealand)',
  de: 'German',
  fr: 'French',
};

/** Returns the names of all time zones. Includes `chosen`, which the browser may know by another name. */
export function zoneOptions(chosen: string | null): string[] {
  const all = new Set([...Intl.supportedValuesOf('timeZone'), 'UTC', ...(chosen === null ? [] : [chosen])]);
  return [...all].sort();
}

/** Formats the jobs that a recipient is notified of: `all jobs`, `order group Spring`, `order PO-1`, `job 17`. */
export function formatScope(of: Pick<Recipient, 'orderGroup' | 'orderNumber' | 'jobNumber'>): string {
  if (of.orderGroup !== null) return `order group ${of.orderGroup}`;
  if (of.orderNumber !== null) return `order ${of.orderNumber}`;
  return of.jobNumber === null ? 'all jobs' : `job ${of.jobNumber}`;
}
