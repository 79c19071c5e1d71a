/** How an account tells its customers: in words, as the values of a form, and as the API takes it. */
import type * as z from 'zod';
import type { NotificationSettings } from '../../../shared/api/notification-views.ts';
import { SettingsInput } from '../../../shared/notifications/notification-input.ts';

export { SettingsInput };
export type Settings = z.infer<typeof NotificationSettings>;

/** Whether customers are told, in a few words, and how that is. */
export function toNotificationStatus(
  settings: Pick<Settings, 'enabled' | 'dryRun'>,
): readonly [string, 'good' | 'warn' | 'plain'] {
  if (!settings.enabled) return ['Off', 'plain'];
  return settings.dryRun ? ['Dry run: nothing is sent', 'warn'] : ['On', 'good'];
}

/** What stands in the form: numbers as they are typed in, nothing as an empty text. */
export function toSettingsValues(settings: Settings) {
  const { enabled, dryRun, ownUser, locale, zone, replyTo, branding, sms } = settings;
  return {
    ...{ enabled, dryRun, ownUser, locale: locale as string, zone },
    windowSeconds: String(settings.windowSeconds),
    maxAgeHours: String(settings.maxAgeHours),
    replyTo: replyTo ?? '',
    branding: {
      name: branding.name,
      color: branding.color,
      logoUrl: branding.logoUrl ?? '',
      website: branding.website ?? '',
      footer: branding.footer ?? '',
    },
    sms: {
      enabled: sms.enabled,
      senderId: sms.senderId ?? '',
      monthlySegments: String(sms.monthlySegments),
      quiet: sms.quietHours !== null,
      quietHours: { ...(sms.quietHours ?? { from: '21:00', to: '08:00' }) },
    },
  };
}
export type SettingsValues = ReturnType<typeof toSettingsValues>;

/** What the API is to keep. */
export function toSettingsBody(values: SettingsValues): unknown {
  const { branding, sms } = values;
  return {
    ...values,
    windowSeconds: parseWholeNumber(values.windowSeconds),
    maxAgeHours: parseWholeNumber(values.maxAgeHours),
    replyTo: emptyToNull(values.replyTo),
    branding: {
      ...branding,
      logoUrl: emptyToNull(branding.logoUrl),
      website: emptyToNull(branding.website),
      footer: emptyToNull(branding.footer),
    },
    sms: {
      enabled: sms.enabled,
      senderId: emptyToNull(sms.senderId),
      monthlySegments: parseWholeNumber(sms.monthlySegments),
      quietHours: sms.quiet ? sms.quietHours : null,
    },
  };
}

/** What is asked before something is done. */
interface Question {
  readonly title: string;
  readonly body: string;
  readonly verb: string;
  readonly harm?: boolean;
}

/** What is asked before settings are saved by which messages begin to go, or no longer do; `undefined`: nothing. */
export function getConfirmation(
  account: string,
  before: Pick<Settings, 'enabled' | 'dryRun'>,
  after: Pick<SettingsInput, 'enabled' | 'dryRun'>,
): Question | undefined {
  const went = before.enabled && !before.dryRun;
  const goes = after.enabled && !after.dryRun;
  if (!went && goes) {
    return {
      title: `Write to the customers of ${account}?`,
      body: 'From here on its recipients get real e-mails and SMS about what happens to its jobs. What happened before it was switched on is not told.',
      verb: 'Save, and write to them',
    };
  }
  if (before.enabled && !after.enabled) {
    return {
      title: `Tell the customers of ${account} nothing more?`,
      body: 'What waits to be sent is not sent either. What happens while it is off is not told later.',
      verb: 'Save, and tell them nothing',
      harm: true,
    };
  }
  return undefined;
}

/** A number as it was typed in; what is none is left to the check, which says what it must be. */
export function parseWholeNumber(text: string): number | string {
  return /^\s*\d+\s*$/.test(text) ? Number(text) : text;
}

/** Nothing where nothing was typed in. */
export const emptyToNull = (text: string): string | null => (text.trim() === '' ? null : text);
