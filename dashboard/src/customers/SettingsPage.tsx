/** Notification settings of an account. */
import { withId, withRevision } from '../api.ts';
import { Badge, DescriptionList, Loaded, Note, Panel, useConfirm } from '../components.tsx';
import { toOptions } from '../filters.tsx';
import { AreaField, CheckField, Form, FormActions, NumberField, SelectField, TextField } from '../form.tsx';
import { type ApiForm, useResourceForm } from '../forms.ts';
import { useApi } from '../queries.ts';
import { type Resource, useResource } from '../resources.ts';
import { useSession } from '../session.ts';
import { formatCount } from '../texts.ts';
import { Timestamp } from '../times.tsx';
import ui from '../ui.module.css';
import css from './customers.module.css';
import { localeNames, zoneOptions } from './labels.ts';
import { AccountPage } from './layout.tsx';
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
  return (
    <AccountPage account={account} part="" title={`Notifications of ${account}`}>
      <NotificationSettings account={account} />
    </AccountPage>
  );
}

/** The notification settings of an account, and their warnings. Editable with the role admin. `onSaved`: called after a save. */
export function NotificationSettings(props: { readonly account: string; readonly onSaved?: () => void }) {
  const { account, onSaved } = props;
  const api = useApi();
  const may = useSession().hasRole('admin');
  const settings = useResource(['notifications', account], ['notifications'], () =>
    api.get('/v1/accounts/{id}/notifications', withId(account)),
  );
  return (
    <Loaded query={settings}>
      {(resource) => (
        <>
          <Warnings settings={resource.latest} />
          {may ? (
            <SettingsForm account={account} resource={resource} onSaved={onSaved} />
          ) : (
            <SettingsFacts settings={resource.latest} />
          )}
        </>
      )}
    </Loaded>
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
            <strong>No channel is configured:</strong> the configuration has no <code>notifications</code>, so
            messages fail. Self-hosted, add a sender and a mail server (<code>from</code> and{' '}
            <code>smtp</code>) and restart Jobwire. On AWS, add <code>notifications</code> to the cell in{' '}
            <code>jobwire.cells.json</code> and deploy.
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

const FIELD_LABELS = {
  enabled: 'notifications',
  dryRun: 'dry run',
  ownUser: 'API user',
  windowSeconds: 'notification window',
  maxAgeHours: 'maximum age',
  locale: 'language',
  zone: 'time zone',
  replyTo: 'reply-to address',
  branding: 'branding',
  sms: 'SMS',
};

function SettingsForm(props: {
  readonly account: string;
  readonly resource: Resource<Settings>;
  readonly onSaved: (() => void) | undefined;
}) {
  const { account, resource } = props;
  const api = useApi();
  const confirm = useConfirm();
  const form = useResourceForm<Settings, SettingsValues>({
    schema: SettingsInput,
    resource,
    toValues: toSettingsValues,
    toBody: toSettingsBody,
    save: async (body, { revision }) => {
      const options = { ...withRevision(withId(account), revision), body };
      const saved = await api.put('/v1/accounts/{id}/notifications', options);
      props.onSaved?.();
      return saved;
    },
    done: () => 'Settings saved.',
    labels: FIELD_LABELS,
  });
  const { base, submit } = form;
  const { values, setFieldValue, isValid } = form.form;
  const submitOrConfirm: ApiForm<SettingsValues>['submit'] = (event) => {
    const confirmation = isValid() ? getConfirmation(account, base, values) : undefined;
    if (!confirmation) return submit(event);
    event?.preventDefault();
    confirm({ ...confirmation, onConfirm: async () => submit() });
  };
  const { color } = values.branding;
  const [status, tone] = toNotificationStatus(base);
  return (
    <Form of={form} className="" onSubmit={submitOrConfirm}>
      <div className={ui.panels}>
        <Panel title="Notifications" aside={<Badge tone={tone}>{status}</Badge>}>
          <CheckField
            name="enabled"
            label="Notify customers"
            description={
              base.since ? undefined : 'Customers are notified only of changes after this is turned on.'
            }
          />
          <CheckField
            name="dryRun"
            label="Dry run"
            description="Messages are created and listed under Messages, but not sent."
          />
          <CheckField
            name="ownUser"
            label="Notify the API user"
            description="The user’s notification settings in the ordering API apply. The ordering API may also send its own messages."
          />
          <TextField name="replyTo" label="Reply-to address" type="email" placeholder="orders@example.com" />
          <div className={ui.columns}>
            <NumberField
              name="windowSeconds"
              label="Notification window (seconds)"
              description="Changes of an order group (or of a job without a group) within this time after the first change are combined into one message."
            />
            <NumberField
              name="maxAgeHours"
              label="Maximum age (hours)"
              description="Customers are not notified of older changes. The age of a dispatch is counted from its dispatch date."
            />
          </div>
          <div className={ui.columns}>
            <SelectField name="locale" label="Language" data={toOptions(localeNames)} />
            <SelectField name="zone" label="Time zone" data={zoneOptions(base.zone)} />
          </div>
          <p className={ui.hint}>Language and time zone are the defaults for recipients.</p>
        </Panel>
        <div className={ui.stack}>
          <Panel title="Branding">
            <TextField name="branding.name" label="Name" description="Sender name of messages." required />
            <div className={ui.columns}>
              <TextField
                name="branding.color"
                label="Button colour"
                rightSection={
                  <input
                    type="color"
                    className={css.color}
                    aria-label="Choose the button colour"
                    value={/^#[0-9a-f]{6}$/i.test(color) ? color : '#000000'}
                    onChange={({ currentTarget }) => setFieldValue('branding.color', currentTarget.value)}
                  />
                }
              />
              <TextField name="branding.website" label="Website" placeholder="https://example.com" />
            </div>
            <TextField
              name="branding.logoUrl"
              label="Logo"
              description="https URL of an image. Default: the name as text."
              placeholder="https://example.com/logo.png"
            />
            <AreaField
              name="branding.footer"
              label="Footer"
              description="One or two lines at the end of e-mails, such as a postal address."
              spellCheck
            />
          </Panel>
          <Panel title="SMS">
            <CheckField name="sms.enabled" label="Send SMS" />
            <div className={ui.columns}>
              <TextField
                name="sms.senderId"
                label="Sender id"
                description="Not supported in all countries."
              />
              <NumberField
                name="sms.monthlySegments"
                label="Monthly limit (segments)"
                description="No SMS are sent above this limit."
              />
            </div>
            <CheckField
              name="sms.quiet"
              label="Quiet hours"
              description="SMS are delayed until the quiet hours end, in the recipient’s time zone."
            />
            {values.sms.quiet ? (
              <div className={ui.columns}>
                <TextField name="sms.quietHours.from" label="From" type="time" />
                <TextField name="sms.quietHours.to" label="To" type="time" />
              </div>
            ) : null}
          </Panel>
        </div>
      </div>
      <FormActions verb="Save">
        {base.since ? (
          <span className={ui.hint}>
            {values.enabled ? 'On since' : 'Last turned on or off'} <Timestamp at={base.since} as="whole" />
          </span>
        ) : null}
      </FormActions>
    </Form>
  );
}

/** Read-only view, for keys without the role admin. */
function SettingsFacts({ settings }: { readonly settings: Settings }) {
  const { branding, sms } = settings;
  const [status, tone] = toNotificationStatus(settings);
  const { quietHours } = sms;
  return (
    <div className={ui.panels}>
      <Panel title="Notifications">
        <DescriptionList
          rows={{
            Status: <Badge tone={tone}>{status}</Badge>,
            Since: settings.since ? <Timestamp at={settings.since} as="whole" /> : undefined,
            'API user': settings.ownUser ? 'Notified' : 'Not notified',
            'Reply-to address': settings.replyTo,
            'Notification window': formatCount(settings.windowSeconds, 'second'),
            'Maximum age': formatCount(settings.maxAgeHours, 'hour'),
            Language: localeNames[settings.locale],
            'Time zone': settings.zone,
          }}
        />
      </Panel>
      <div className={ui.stack}>
        <Panel title="Branding">
          <DescriptionList
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
          <DescriptionList
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
