/** Notification settings: their display status, form values and request body. */
import type { NotificationSettings as Settings } from '../../../client/index.ts';
import { SettingsInput } from '../../../shared/notifications/notification-input.ts';
import { emptyToNull, nullToEmpty, parseNumber } from '../form-values.ts';
import type { Tone } from '../texts.ts';

export type { Settings };
export { SettingsInput };

/** Returns the name and tone of the notification status. */
export function toNotificationStatus(
  settings: Pick<Settings, 'enabled' | 'dryRun'>,
): readonly [string, Tone] {
  if (!settings.enabled) return ['Off', 'plain'];
  return settings.dryRun ? ['Dry run', 'warn'] : ['On', 'good'];
}

/** Converts settings to form values: numbers as text, `null` as empty text. */
export function toSettingsValues(settings: Settings) {
  const { enabled, dryRun, ownUser, locale, zone, replyTo, branding, sms } = settings;
  return {
    ...{ enabled, dryRun, ownUser, locale: locale as string, zone },
    windowSeconds: String(settings.windowSeconds),
    maxAgeHours: String(settings.maxAgeHours),
    replyTo: replyTo ?? '',
    branding: nullToEmpty(branding),
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

/** Converts form values to a request body. */
export function toSettingsBody(values: SettingsValues): unknown {
  const { branding, sms } = values;
  return {
    ...values,
    windowSeconds: parseNumber(values.windowSeconds),
    maxAgeHours: parseNumber(values.maxAgeHours),
    replyTo: emptyToNull(values.replyTo),
    // Name and color are required, so that their rule is reported.
    branding: { ...emptyToNull(branding), name: branding.name, color: branding.color },
    sms: {
      enabled: sms.enabled,
      senderId: emptyToNull(sms.senderId),
      monthlySegments: parseNumber(sms.monthlySegments),
      quietHours: sms.quiet ? sms.quietHours : null,
    },
  };
}

/** Returns the confirmation for settings that start or stop messages. `undefined`: the change needs no confirmation. */
export function getConfirmation(
  account: string,
  before: Pick<Settings, 'enabled' | 'dryRun'>,
  after: Pick<SettingsInput, 'enabled' | 'dryRun'>,
): { title: string; body: string; verb: string; destructive?: boolean } | undefined {
  const sentBefore = before.enabled && !before.dryRun;
  const sendsAfter = after.enabled && !after.dryRun;
  if (!sentBefore && sendsAfter) {
    return {
      title: `Start notifying the customers of ${account}?`,
      body: 'From now on, its recipients receive e-mails and SMS about changes of its jobs. Earlier changes are not sent.',
      verb: 'Save and start sending',
    };
  }
  if (before.enabled && !after.enabled) {
    return {
      title: `Stop notifying the customers of ${account}?`,
      body: 'Waiting messages are not sent. Changes that occur while notifications are off are never sent.',
      verb: 'Save and stop sending',
      destructive: true,
    };
  }
  return undefined;
}
