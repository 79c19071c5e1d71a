/** Fields of an alert rule. */
import type { ReactNode } from 'react';
import { conditions, weekdays } from '../../../shared/alerts/rule-input.ts';
import { Panel } from '../components.tsx';
import { toOptions } from '../filters.tsx';
import {
  AreaField,
  CheckField,
  Group,
  NumberField,
  SelectField,
  TextField,
  useFormContext,
} from '../form.tsx';
import ui from '../ui.module.css';
import type { AlertValues } from './alert-values.ts';
import { AccountScope, Choices } from './components.tsx';

const CONDITIONS = Object.fromEntries(Object.entries(conditions).map(([key, { name }]) => [key, name]));
const TARGETS = {
  email: 'E-mail',
  slack: 'Slack (incoming webhook)',
  teams: 'Teams (workflow webhook)',
  webhook: 'Webhook (JSON)',
};
const DAY_NAMES = Object.fromEntries(
  weekdays.map((day) => [day, `${day.charAt(0).toUpperCase()}${day.slice(1)}`]),
);

/** `current`: target of an existing rule, which stays if no other is entered. `children`: further fields of a new one. */
export function AlertRuleFields(props: { readonly current?: string; readonly children?: ReactNode }) {
  const { current, children } = props;
  const { form } = useFormContext<AlertValues>();
  const { condition, targetKind, hasQuietHours, quietDays } = form.values;
  const { about, unit } = conditions[condition];
  return (
    <>
      <Panel title="Rule">
        <TextField name="name" label="Name" required description="Part of each message." spellCheck />
        {children}
        <SelectField name="condition" label="Condition" description={about} data={toOptions(CONDITIONS)} />
        <div className={ui.columns}>
          <NumberField
            name="threshold"
            label={`Threshold (${unit})`}
            description="Fires if the value is greater."
          />
          <NumberField
            name="forMinutes"
            label="Duration (minutes)"
            description="Time for which the value must be above the threshold. Empty: the rule fires at once."
          />
          <NumberField
            name="repeatMinutes"
            label="Reminders (minutes)"
            description="Interval of reminders while the rule fires. Empty: no reminders."
          />
        </div>
        {condition === 'notifications_delayed' ? null : <AccountScope />}
        <CheckField
          name="notifyResolved"
          label="Report the end"
          description="Send a message when the rule no longer fires."
        />
        <CheckField name="enabled" label="Enabled" description="Evaluate the rule once a minute." />
      </Panel>
      <Panel title="Target">
        <SelectField
          name="targetKind"
          label="Send by"
          data={toOptions(current === undefined ? TARGETS : { keep: `Unchanged (${current})`, ...TARGETS })}
        />
        {targetKind === 'email' ? (
          <AreaField name="to" label="E-mail addresses" description="One per line, at most 10." />
        ) : targetKind === 'keep' ? null : (
          <TextField
            name="url"
            label="URL"
            type="password"
            description="The URL is a secret. It is stored encrypted, and cannot be shown again."
          />
        )}
      </Panel>
      <Panel title="Quiet hours">
        <CheckField name="hasQuietHours" label="Use quiet hours" description="" />
        {hasQuietHours ? (
          <>
            <div className={ui.columns}>
              <TextField name="quietFrom" label="From" type="time" />
              <TextField
                name="quietTo"
                label="To"
                type="time"
                description="On the next day if this time is not after the start."
              />
              <TextField name="quietZone" label="Time zone" description="Such as Europe/London." />
            </div>
            <Group name="Days on which the quiet hours begin" path="quietDays">
              <Choices
                options={weekdays.map((name) => ({ name, title: DAY_NAMES[name] ?? name }))}
                chosen={quietDays}
                choose={(days) => form.setFieldValue('quietDays', days)}
              />
            </Group>
            <SelectField
              name="quietAction"
              label="Messages in quiet hours"
              data={toOptions({
                defer: 'Send afterwards, if the state differs from the last reported one',
                drop: 'Never send',
              })}
            />
          </>
        ) : null}
      </Panel>
    </>
  );
}
