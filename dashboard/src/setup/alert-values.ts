/** Values of the form of an alert rule, and request bodies. Independent of React. */
import type { AlertRule } from '../../../client/index.ts';
import { type Condition, weekdays } from '../../../shared/alerts/rule-input.ts';
import { parseNumber } from '../form-values.ts';
import type { AccountScopeValues } from './components.tsx';

/** Values of a new rule. */
export const NEW_ALERT_RULE = {
  ...{ name: '', region: '', condition: 'late_jobs' as Condition },
  ...{ threshold: '5', forMinutes: '', repeatMinutes: '' },
  ...{ notifyResolved: true, enabled: true },
  /** `keep`: the target stays. */
  targetKind: 'email' as 'keep' | 'email' | 'slack' | 'teams' | 'webhook',
  ...{ to: '', url: '', hasQuietHours: false, quietFrom: '21:00', quietTo: '08:00' },
  quietZone: Intl.DateTimeFormat().resolvedOptions().timeZone,
  quietDays: weekdays as readonly string[],
  quietAction: 'defer' as 'defer' | 'drop',
  ...({ accountScope: 'all', accounts: [] } as AccountScopeValues),
};

/** Values of the form. */
export type AlertValues = Readonly<typeof NEW_ALERT_RULE>;

/** Returns the form values of a rule. */
export function toAlertValues(rule: AlertRule): AlertValues {
  const { quietHours: quiet } = rule;
  return {
    ...NEW_ALERT_RULE,
    ...{ name: rule.name, region: rule.region, condition: rule.condition, threshold: String(rule.threshold) },
    forMinutes: rule.forMinutes === 0 ? '' : String(rule.forMinutes),
    repeatMinutes: rule.repeatMinutes === null ? '' : String(rule.repeatMinutes),
    ...{ notifyResolved: rule.notifyResolved, enabled: rule.enabled, targetKind: 'keep' },
    ...{ accountScope: rule.accounts === null ? 'all' : 'some', accounts: rule.accounts ?? [] },
    hasQuietHours: quiet !== null,
    ...(quiet && { quietFrom: quiet.from, quietTo: quiet.to, quietZone: quiet.zone }),
    ...(quiet && { quietDays: quiet.days, quietAction: quiet.action }),
  };
}

/** Returns the body of a change. */
export function toChange(values: AlertValues) {
  const { name, condition, targetKind, hasQuietHours } = values;
  const isWholeRegion = condition === 'notifications_delayed' || values.accountScope === 'all';
  return {
    ...{ name: name.trim(), condition, threshold: parseNumber(values.threshold) },
    forMinutes: parseNumber(values.forMinutes),
    repeatMinutes: parseNumber(values.repeatMinutes),
    ...{ notifyResolved: values.notifyResolved, enabled: values.enabled },
    accounts: isWholeRegion ? null : values.accounts,
    quietHours: hasQuietHours
      ? {
          ...{ from: values.quietFrom, to: values.quietTo, zone: values.quietZone.trim() },
          ...{ days: values.quietDays, action: values.quietAction },
        }
      : null,
    ...(targetKind === 'keep' ? {} : { target: toTarget(values) }),
  };
}

/** Returns the body of a new rule. */
export function toNewAlertRule(values: AlertValues) {
  const { region } = values;
  const given = Object.entries(toChange(values)).filter(([, value]) => value !== null);
  return { ...Object.fromEntries(given), ...(region === '' ? {} : { region }) };
}

function toTarget({ targetKind: kind, to, url }: AlertValues) {
  const addresses = to.split(/[\s,;]+/).filter((address) => address !== '');
  return kind === 'email' ? { kind, to: addresses } : { kind, url: url.trim() };
}

/** Returns the form field of a path in a body. */
export function toAlertFormField(
  [field, part]: readonly PropertyKey[],
  values: AlertValues,
): string | undefined {
  if (field === 'target') return values.targetKind === 'email' ? 'to' : 'url';
  if (field !== 'quietHours') return undefined;
  const name = String(part ?? 'from');
  return `quiet${name.charAt(0).toUpperCase()}${name.slice(1)}`;
}
