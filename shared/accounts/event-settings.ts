/** Settings of an account for the events that need them: times, status names, and events that are off by default. */
import * as z from 'zod';
import type { Value } from '../storage/table.ts';

/** Maximum lead time of job.due_soon (hours): 60 days. */
const MAX_DUE_SOON_HOURS = 1_440;
/** Maximum number of working days until job.stalled. */
const MAX_STALLED_DAYS = 250;
/** Maximum number and length of status names in one setting. */
const MAX_STATUSES = 50;
const MAX_STATUS_LENGTH = 200;

const wholeNumber = (what: string, most: number) => {
  const rule = `must be an integer number of ${what} from 1 to ${most}, or null`;
  return z.int(rule).min(1, rule).max(most, rule).nullable();
};
const NAME_RULE = `must be a status name of 1 to ${MAX_STATUS_LENGTH} characters, without spaces around it`;
const statusName = z
  .string(NAME_RULE)
  .min(1, NAME_RULE)
  .max(MAX_STATUS_LENGTH, NAME_RULE)
  .refine((name) => name === name.trim(), NAME_RULE);
const COUNT_RULE = `must name at most ${MAX_STATUSES} statuses`;

/** Event settings of an account. */
export const EventSettings = z
  .strictObject({
    dueSoonHours: wholeNumber('hours', MAX_DUE_SOON_HOURS).describe(
      'Hours before the due time at which `job.due_soon` is emitted. `null`: never. Default: `null`.',
    ),
    stalledAfterWorkingDays: wholeNumber('working days', MAX_STALLED_DAYS).describe(
      'Number of working days in one status after which `job.stalled` is emitted (Monday to Friday at the location of the job). `null`: never. Default: `null`.',
    ),
    stalledByStatus: z
      .record(
        statusName,
        wholeNumber('working days', MAX_STALLED_DAYS),
        'must map status names to working days',
      )
      .refine((days) => Object.keys(days).length <= MAX_STATUSES, COUNT_RULE)
      .describe(
        'Working days by status name, instead of `stalledAfterWorkingDays`. `null`: never. Default: `{}`.',
      ),
    attentionStatuses: z
      .array(statusName, 'must be a list of status names')
      .max(MAX_STATUSES, COUNT_RULE)
      .refine((names) => new Set(names).size === names.length, 'must name each status once')
      .describe('Names of the statuses at which `job.needs_attention` is emitted. Default: none.'),
    payments: z
      .boolean('must be true or false')
      .describe('Whether events about payments are emitted. Default: `false`.'),
  })
  .describe('Settings of optional events.')
  .meta({ id: 'EventSettings' });
export type EventSettings = z.infer<typeof EventSettings>;

/** Event settings in a request. Absent fields keep their value or default. */
export const EventSettingsUpdate = EventSettings.partial()
  .describe('Settings of optional events.')
  .meta({ id: 'EventSettingsUpdate' });
export type EventSettingsUpdate = z.infer<typeof EventSettingsUpdate>;

const DEFAULTS: EventSettings = {
  dueSoonHours: null,
  stalledAfterWorkingDays: null,
  stalledByStatus: {},
  attentionStatuses: [],
  payments: false,
};

/** Returns the settings with all defaults. */
export function withEventDefaults(given: EventSettingsUpdate | undefined): EventSettings {
  return { ...DEFAULTS, ...given };
}

/** Returns the stored form of settings. `undefined` if all have their default. */
export function toStoredEventSettings(given: EventSettingsUpdate | undefined): string | undefined {
  const text = JSON.stringify(withEventDefaults(given));
  return text === JSON.stringify(DEFAULTS) ? undefined : text;
}

/** Reads stored settings. `undefined`: all defaults. */
export function readEventSettings(stored: Value | undefined): EventSettings | undefined {
  return typeof stored === 'string' ? withEventDefaults(JSON.parse(stored) as EventSettings) : undefined;
}
