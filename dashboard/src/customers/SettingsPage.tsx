/** Notification settings of an account. */
import { Button, Checkbox, NativeSelect, Textarea, TextInput } from '@mantine/core';
import { useState } from 'react';
import type { NotificationSettingsInput } from '../../../client/index.ts';
import { withId, withRevision } from '../api.ts';
import { Badge, Facts, Failure, Note, Panel, showToast, useConfirm } from '../components.tsx';
import { isConflict, useApiForm } from '../forms.ts';
import { useApi } from '../queries.ts';
import { useSession } from '../session.ts';
import { Timestamp } from '../times.tsx';
import ui from '../ui.module.css';
import { ConflictNote, FormErrorNote } from './components.tsx';
import css from './customers.module.css';
import { formatCount, localeNames, localeOptions, zoneOptions } from './labels.ts';
import { AccountPage } from './layout.tsx';
import { useEditable } from './queries.ts';
import {
  getConfirmation,
  type Settings,
  SettingsInput,
  type SettingsValues,
  toNotificationStatus,
  toSettingsBody,
  toSettingsValues,
} from './settings.ts';

export default function SettingsPage({ account }: { readonly account: string }) {
  const may = useSession().may('admin');
  const { data, error, refetch, version, restart } = useEditable(['notifications', account], (api, signal) =>
    api.get('/v1/accounts/{id}/notifications', { ...withId(account), signal }),
  );
  return (
    <AccountPage account={account} part="" title={`Notifications of ${account}`}>
      {error && !data ? <Failure error={error} again={refetch} /> : null}
      {data ? (
        <>
          <Warnings settings={data} />
          {may ? (
            <SettingsForm key={version} account={account} settings={data} restart={restart} />
          ) : (
            <SettingsFacts settings={data} />
          )}
        </>
      ) : null}
    </AccountPage>
  );
}

/** Warnings of the API, and what to configure if a channel is missing. */
function Warnings({ settings }: { readonly settings: Settings }) {
  const { channels, warnings } = settings;
  return (
    <>
      {channels.length === 0 ? (
        <Note tone="warn">
          <p>
            <strong>No channel is configured:</strong> the configuration has no <code>notifications</code>.
            Add a sender and a mail server (<code>from</code> and <code>smtp</code>; on AWS{' '}
            <code>notifications</code> in <code>infra/settings.ts</code>) and restart Jobwire. Until then
            messages are suppressed.
          </p>
        </Note>
      ) : null}
      {channels.includes('email') && !channels.includes('sms') && settings.sms.enabled ? (
        <Note tone="warn">
          <p>
            <strong>SMS is not configured:</strong> add <code>sms</code> to <code>notifications</code> in the
            configuration and restart Jobwire, or turn off SMS below.
          </p>
        </Note>
      ) : null}
      {warnings
        .filter((warning) => !/^No .* is configured/.test(warning))
        .map((warning) => (
          <Note key={warning} tone="warn">
            {warning}
          </Note>
        ))}
    </>
  );
}

function SettingsForm(props: {
  readonly account: string;
  readonly settings: Settings;
  /** Remounts the form, with the saved settings or with a new fetch. */
  readonly restart: (saved?: Settings) => Promise<void>;
}) {
  const { account, restart } = props;
  const [settings] = useState(props.settings);
  const api = useApi();
  const confirm = useConfirm();

  async function save(body: NotificationSettingsInput): Promise<void> {
    const at = withRevision(withId(account), settings.revision);
    const saved = await api.put('/v1/accounts/{id}/notifications', { ...at, body });
    markSaved();
    showToast('Settings saved.');
    await restart(saved);
  }
  const { form, formError, error, busy, submit, markSaved } = useApiForm<SettingsValues>({
    schema: SettingsInput,
    initial: toSettingsValues(settings),
    toBody: toSettingsBody,
    send: save,
  });
  const submitOrConfirm = (event: React.FormEvent<HTMLFormElement>): void => {
    const body = toSettingsBody(form.values) as SettingsInput;
    const confirmation = form.isValid() ? getConfirmation(account, settings, body) : undefined;
    if (!confirmation) {
      submit(event);
      return;
    }
    event.preventDefault();
    confirm({ ...confirmation, onConfirm: () => save(body) });
  };
  const field = form.getInputProps;
  const box = (name: string) => form.getInputProps(name, { type: 'checkbox' });
  const isOn = form.values.enabled;
  const [status, tone] = toNotificationStatus(settings);
  return (
    <form className={ui.stack} onSubmit={submitOrConfirm} noValidate>
      <div className={css.panels}>
        <Panel title="Notifications" aside={<Badge tone={tone}>{status}</Badge>}>
          <Checkbox
            label="Notify customers"
            description={settings.since ? undefined : 'Only changes after it is turned on are sent.'}
            {...box('enabled')}
          />
          <Checkbox
            label="Dry run"
            description="Messages are created and listed under Messages, but not sent."
            {...box('dryRun')}
          />
          <Checkbox
            label="Notify the API user"
            description="According to that user’s notification settings in the ordering system, which may send its own messages."
            {...box('ownUser')}
          />
          <TextInput
            label="Reply-to address"
            type="email"
            placeholder="orders@example.com"
            {...field('replyTo')}
          />
          <div className={css.pair}>
            <TextInput
              label="Collection window (seconds)"
              description="Changes of an order within it are one message."
              inputMode="numeric"
              {...field('windowSeconds')}
            />
            <TextInput
              label="Maximum age (hours)"
              description="Older changes are not sent. A dispatch counts from its date."
              inputMode="numeric"
              {...field('maxAgeHours')}
            />
          </div>
          <div className={css.pair}>
            <NativeSelect label="Language" data={localeOptions} {...field('locale')} />
            <NativeSelect label="Time zone" data={zoneOptions(settings.zone)} {...field('zone')} />
          </div>
          <p className={ui.hint}>Language and time zone are the defaults for recipients.</p>
        </Panel>
        <div className={ui.stack}>
          <Panel title="Branding">
            <TextInput
              label="Name"
              description="Sender name of messages."
              required
              {...field('branding.name')}
            />
            <div className={css.pair}>
              <TextInput
                label="Button colour"
                rightSection={
                  <input
                    type="color"
                    className={css.color}
                    aria-label="Choose the button colour"
                    value={
                      /^#[0-9a-f]{6}$/i.test(form.values.branding.color)
                        ? form.values.branding.color
                        : '#000000'
                    }
                    onChange={(event) => form.setFieldValue('branding.color', event.currentTarget.value)}
                  />
                }
                {...field('branding.color')}
              />
              <TextInput label="Website" placeholder="https://example.com" {...field('branding.website')} />
            </div>
            <TextInput
              label="Logo"
              description="https URL of an image. Default: the name as text."
              placeholder="https://example.com/logo.png"
              {...field('branding.logoUrl')}
            />
            <Textarea
              label="Footer"
              description="One or two lines at the end of e-mails, such as a postal address."
              rows={2}
              {...field('branding.footer')}
            />
          </Panel>
          <Panel title="SMS">
            <Checkbox label="Send SMS" {...box('sms.enabled')} />
            <div className={css.pair}>
              <TextInput
                label="Sender id"
                description="Not supported in all countries."
                {...field('sms.senderId')}
              />
              <TextInput
                label="Monthly limit (segments)"
                description="SMS above it are not sent."
                inputMode="numeric"
                {...field('sms.monthlySegments')}
              />
            </div>
            <Checkbox
              label="Quiet hours"
              description="SMS are delayed until they end, in the recipient’s time zone."
              {...box('sms.quiet')}
            />
            {form.values.sms.quiet ? (
              <div className={css.pair}>
                <TextInput label="From" type="time" {...field('sms.quietHours.from')} />
                <TextInput label="To" type="time" {...field('sms.quietHours.to')} />
              </div>
            ) : null}
          </Panel>
        </div>
      </div>
      {isConflict(error) ? (
        <ConflictNote what="These settings were" reload={() => void restart()} />
      ) : (
        <FormErrorNote error={formError} />
      )}
      <div className={css.foot}>
        <Button type="submit" loading={busy}>
          Save
        </Button>
        <span className={ui.hint}>
          {settings.since ? (
            <>
              {isOn ? 'On since' : 'Last turned on or off'} <Timestamp at={settings.since} as="whole" />
            </>
          ) : null}
        </span>
      </div>
    </form>
  );
}

/** Read-only view, for keys without the role admin. */
function SettingsFacts({ settings }: { readonly settings: Settings }) {
  const { branding, sms } = settings;
  const [status, tone] = toNotificationStatus(settings);
  const { quietHours } = sms;
  return (
    <div className={css.panels}>
      <Panel title="Notifications">
        <Facts
          rows={{
            Status: <Badge tone={tone}>{status}</Badge>,
            Since: settings.since ? <Timestamp at={settings.since} as="whole" /> : undefined,
            'API user': settings.ownUser ? 'Notified' : 'Not notified',
            'Reply-to address': settings.replyTo,
            'Collection window': formatCount(settings.windowSeconds, 'second'),
            'Maximum age': formatCount(settings.maxAgeHours, 'hour'),
            Language: localeNames[settings.locale],
            'Time zone': settings.zone,
          }}
        />
      </Panel>
      <div className={ui.stack}>
        <Panel title="Branding">
          <Facts
            rows={{
              Name: branding.name,
              'Button colour': branding.color,
              Website: branding.website,
              Logo: branding.logoUrl,
              Footer: branding.footer,
            }}
          />
        </Panel>
        <Panel title="SMS">
          <Facts
            rows={{
              Status: sms.enabled ? 'On' : 'Off',
              'Sender id': sms.senderId,
              'Monthly limit': formatCount(sms.monthlySegments, 'segment'),
              'Quiet hours': quietHours ? `${quietHours.from} to ${quietHours.to}` : 'None',
            }}
          />
        </Panel>
      </div>
    </div>
  );
}
