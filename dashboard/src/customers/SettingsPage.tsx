/** How an account tells its customers. */
import { Button, Checkbox, NativeSelect, Textarea, TextInput } from '@mantine/core';
import { useQuery, useQueryClient } from '@tanstack/react-query';
import { useState } from 'react';
import { ApiError } from '../api.ts';
import { Badge, Facts, Failure, Note, Panel, showToast, useConfirm } from '../components.tsx';
import { useApiForm } from '../forms.ts';
import { useApi } from '../queries.ts';
import { useSession } from '../session.ts';
import { Timestamp } from '../times.tsx';
import css from './customers.module.css';
import { formatCount, localeNames, localeOptions, zoneOptions } from './labels.ts';
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
  const api = useApi();
  const may = useSession().may('admin');
  const queries = useQueryClient();
  const queryKey = ['notifications', account];
  const { data, error, refetch } = useQuery({
    queryKey,
    queryFn: ({ signal }) => api.get<Settings>(pathOf(account), { signal }),
  });
  // Counted up when the form begins anew: what is typed in is not lost when the settings are read again.
  const [version, setVersion] = useState(0);
  return (
    <AccountPage account={account} part="" title={`What customers of ${account} are told`}>
      {error && !data ? <Failure error={error} again={refetch} /> : null}
      {data ? (
        <>
          <Warnings settings={data} />
          {may ? (
            <SettingsForm
              key={version}
              account={account}
              settings={data}
              begin={async (fresh) => {
                // At once, so that nothing that is typed in after it is lost.
                if (fresh) queries.setQueryData(queryKey, fresh);
                else await refetch();
                setVersion((before) => before + 1);
              }}
            />
          ) : (
            <SettingsFacts settings={data} />
          )}
        </>
      ) : null}
    </AccountPage>
  );
}

const pathOf = (account: string): string => `/v1/accounts/${encodeURIComponent(account)}/notifications`;

/** What may surprise, and what to do where nothing can be sent. */
function Warnings({ settings }: { readonly settings: Settings }) {
  const { channels, warnings } = settings;
  return (
    <>
      {channels.length === 0 ? (
        <Note tone="warn">
          <p>
            <strong>Nothing can be sent from here:</strong> there is no <code>notifications</code> in the
            configuration. Name a sender and a mail server there (<code>from</code> and <code>smtp</code>; on
            AWS <code>notifications</code> in <code>infra/settings.ts</code>), and start Jobwire again. Until
            then messages are held back, with “Nothing is set up that could send it”.
          </p>
        </Note>
      ) : null}
      {channels.includes('email') && !channels.includes('sms') && settings.sms.enabled ? (
        <Note tone="warn">
          <p>
            <strong>No SMS can be sent from here:</strong> add <code>sms</code> to <code>notifications</code>{' '}
            in the configuration, and start Jobwire again, or switch SMS off below.
          </p>
        </Note>
      ) : null}
      {warnings
        .filter((warning) => !/is set up here/.test(warning))
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
  /** Begins anew, with what was saved or else with what is there now. */
  readonly begin: (fresh?: Settings) => Promise<void>;
}) {
  const { account, begin } = props;
  const [settings] = useState(props.settings);
  const api = useApi();
  const ask = useConfirm();

  async function save(body: unknown): Promise<void> {
    const saved = await api.put<Settings>(pathOf(account), { body, revision: settings.revision });
    settle();
    showToast('The settings are saved.');
    await begin(saved);
  }
  const {
    form,
    formError: problem,
    error,
    busy,
    submit,
    markSaved: settle,
  } = useApiForm<SettingsValues>({
    schema: SettingsInput,
    initial: toSettingsValues(settings),
    toBody: toSettingsBody,
    send: save,
  });
  const submitOrAsk = (event: React.FormEvent<HTMLFormElement>): void => {
    const body = toSettingsBody(form.values) as SettingsInput;
    const question = form.isValid() ? getConfirmation(account, settings, body) : undefined;
    if (!question) {
      submit(event);
      return;
    }
    event.preventDefault();
    ask({
      ...question,
      onConfirm: () => save(body),
    });
  };
  const outdated = error instanceof ApiError && error.status === 412;
  const field = form.getInputProps;
  const box = (name: string) => form.getInputProps(name, { type: 'checkbox' });
  const isOn = form.values.enabled;
  return (
    <form className={css.form} onSubmit={submitOrAsk} noValidate>
      <div className={css.panels}>
        <Panel
          title="Telling customers"
          aside={<Badge tone={toNotificationStatus(settings)[1]}>{toNotificationStatus(settings)[0]}</Badge>}
        >
          <Checkbox
            label="Customers are told"
            description={settings.since ? undefined : 'What happened before it is switched on is not told.'}
            {...box('enabled')}
          />
          <Checkbox
            label="Dry run"
            description="Everything happens but sending: under Messages stands what would have gone to whom."
            {...box('dryRun')}
          />
          <Checkbox
            label="The user of the account’s credentials is told too"
            description="As his settings in the ordering service say. The service may write to him as well."
            {...box('ownUser')}
          />
          <TextInput
            label="Answers to e-mails go to"
            type="email"
            placeholder="orders@example.com"
            {...field('replyTo')}
          />
          <div className={css.pair}>
            <TextInput
              label="Gathered into one for (seconds)"
              inputMode="numeric"
              {...field('windowSeconds')}
            />
            <TextInput
              label="Not told when older than (hours)"
              inputMode="numeric"
              {...field('maxAgeHours')}
            />
          </div>
          <div className={css.pair}>
            <NativeSelect label="Language" data={localeOptions} {...field('locale')} />
            <NativeSelect label="Times of" data={zoneOptions(settings.zone)} {...field('zone')} />
          </div>
          <p className={css.quiet}>Language and zone are for recipients without their own.</p>
        </Panel>
        <div className={css.stack}>
          <Panel title="The look of messages">
            <TextInput
              label="Name"
              description="Who the messages come from."
              required
              {...field('branding.name')}
            />
            <div className={css.pair}>
              <TextInput
                label="Colour of the buttons"
                rightSection={
                  <input
                    type="color"
                    className={css.color}
                    aria-label="Pick the colour"
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
              description="The address of a picture, over https; without one the name stands there."
              placeholder="https://example.com/logo.png"
              {...field('branding.logoUrl')}
            />
            <Textarea
              label="Footer"
              description="A line or two at the end of e-mails: a postal address, say."
              rows={2}
              {...field('branding.footer')}
            />
          </Panel>
          <Panel title="SMS">
            <Checkbox label="SMS are sent" {...box('sms.enabled')} />
            <div className={css.pair}>
              <TextInput
                label="Sender"
                description="Where the country allows it."
                {...field('sms.senderId')}
              />
              <TextInput
                label="Segments in a month at most"
                description="What is above is not sent."
                inputMode="numeric"
                {...field('sms.monthlySegments')}
              />
            </div>
            <Checkbox
              label="Quiet hours"
              description="SMS wait until they are over, by the clock of the recipient’s zone."
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
      {outdated ? (
        <Note
          tone="bad"
          live
          actions={
            <Button size="xs" variant="default" onClick={() => void begin()}>
              Show them as they are now
            </Button>
          }
        >
          <p>
            Somebody has changed these settings since you opened them, and yours were not saved. Shown as they
            are now, what you typed in here is lost.
          </p>
        </Note>
      ) : null}
      {problem === null || outdated ? null : (
        <Note tone="bad" live>
          {problem}
        </Note>
      )}
      <div className={css.foot}>
        <Button type="submit" loading={busy}>
          Save
        </Button>
        <span className={css.quiet}>
          {settings.since ? (
            <>
              {isOn ? 'Told since' : 'Switched on or off last'} <Timestamp at={settings.since} as="whole" />
            </>
          ) : null}
        </span>
      </div>
    </form>
  );
}

/** For keys that may not change them. */
function SettingsFacts({ settings }: { readonly settings: Settings }) {
  const { branding, sms } = settings;
  const [words, tone] = toNotificationStatus(settings);
  const { quietHours } = sms;
  return (
    <div className={css.panels}>
      <Panel title="Telling customers">
        <Facts
          rows={[
            [
              'Customers are told',
              <Badge key="on" tone={tone}>
                {words}
              </Badge>,
            ],
            ['Since', settings.since ? <Timestamp key="since" at={settings.since} as="whole" /> : undefined],
            ['User of the credentials', settings.ownUser ? 'Is told too' : 'Is not told'],
            ['Answers go to', settings.replyTo],
            ['One message for', `What comes within ${formatCount(settings.windowSeconds, 'second')}`],
            ['Not told', `When older than ${formatCount(settings.maxAgeHours, 'hour')}`],
            ['Language', localeNames[settings.locale]],
            ['Times of', settings.zone],
          ]}
        />
      </Panel>
      <div className={css.stack}>
        <Panel title="The look of messages">
          <Facts
            rows={[
              ['Name', branding.name],
              ['Colour', branding.color],
              ['Website', branding.website],
              ['Logo', branding.logoUrl],
              ['Footer', branding.footer],
            ]}
          />
        </Panel>
        <Panel title="SMS">
          <Facts
            rows={[
              ['SMS', sms.enabled ? 'Are sent' : 'Are not sent'],
              ['Sender', sms.senderId],
              ['In a month at most', formatCount(sms.monthlySegments, 'segment')],
              ['Quiet hours', quietHours ? `${quietHours.from} to ${quietHours.to}` : 'None'],
            ]}
          />
        </Panel>
      </div>
    </div>
  );
}
