/** The pages of one recipient and of a new one. */
import { Button, Checkbox, NativeSelect, TextInput } from '@mantine/core';
import { useQueryClient } from '@tanstack/react-query';
import { useState } from 'react';
import { Link, useLocation } from 'wouter';
import { ifMatch } from '../../../client/index.ts';
import { NewRecipient, RecipientUpdate } from '../../../shared/notifications/notification-input.ts';
import { messageKinds } from '../../../shared/notifications/types.ts';
import { withId } from '../api.ts';
import { Badge, Facts, Failure, Note, Panel, showToast, useConfirm } from '../components.tsx';
import { type ApiForm, isConflict, useApiForm } from '../forms.ts';
import { channelNames, kindNames, kinds } from '../messages.ts';
import { useApi } from '../queries.ts';
import { useSession } from '../session.ts';
import { Timestamp } from '../times.tsx';
import ui from '../ui.module.css';
import { ConflictNote, FormErrorNote } from './components.tsx';
import css from './customers.module.css';
import { formatScope, localeNames, localeOptions, zoneOptions } from './labels.ts';
import { AccountPage, useCustomersHref } from './layout.tsx';
import { MessageList } from './MessagesPage.tsx';
import { useEditable } from './queries.ts';
import {
  type Recipient,
  type RecipientValues,
  toNewRecipient,
  toRecipientChange,
  toRecipientValues,
} from './recipients.ts';

const RECIPIENT = '/v1/accounts/{id}/recipients/{recipient}';

/** The form of a new recipient. */
export function NewRecipientPage({ account }: { readonly account: string }) {
  const api = useApi();
  const queries = useQueryClient();
  const href = useCustomersHref(account);
  const [, go] = useLocation();
  const recipientForm = useApiForm<RecipientValues>({
    schema: NewRecipient,
    initial: toRecipientValues(),
    toBody: toNewRecipient,
    send: async (body) => {
      const created = await api.post('/v1/accounts/{id}/recipients', { ...withId(account), body });
      recipientForm.markSaved();
      await queries.invalidateQueries({ queryKey: ['recipients', account] });
      showToast(`${created.name ?? created.id} added. Notified of ${formatScope(created)} of ${account}.`);
      go(href('recipients'));
    },
  });
  return (
    <AccountPage account={account} part="recipients" title={`New recipient of ${account}`}>
      <form className={ui.stack} onSubmit={recipientForm.submit} noValidate>
        <RecipientFields form={recipientForm.form} isNew own={false} zone={null} />
        <FormErrorNote error={recipientForm.formError} />
        <FormButtons busy={recipientForm.busy} verb="Add" account={account} />
      </form>
    </AccountPage>
  );
}

/** One recipient: settings and messages. */
export function RecipientPage({ account, id }: { readonly account: string; readonly id: string }) {
  const may = useSession().may('admin');
  const { data, error, refetch, version, restart } = useEditable(
    ['recipients', account, 'one', id],
    (api, signal) => api.get(RECIPIENT, { params: { path: { id: account, recipient: id } }, signal }),
  );
  return (
    <AccountPage account={account} part="recipients" title={data?.name ?? id}>
      {error && !data ? <Failure error={error} again={refetch} /> : null}
      {data && !may ? <RecipientFacts recipient={data} /> : null}
      {data && may ? (
        <RecipientForm key={version} account={account} recipient={data} restart={restart} />
      ) : null}
      {data ? (
        <Panel title="Messages" aside="Newest first">
          <MessageList
            account={account}
            recipient={id}
            empty="No messages yet. Messages to this recipient appear here."
          />
        </Panel>
      ) : null}
    </AccountPage>
  );
}

function RecipientForm(props: {
  readonly account: string;
  readonly recipient: Recipient;
  /** Remounts the form, with the saved recipient or with a new fetch. */
  readonly restart: (saved?: Recipient) => Promise<void>;
}) {
  const { account, restart } = props;
  const [recipient] = useState(props.recipient);
  const { id, name } = recipient;
  const own = recipient.source === 'upstream';
  const path = { id: account, recipient: id };
  const api = useApi();
  const confirm = useConfirm();
  const queries = useQueryClient();
  const href = useCustomersHref(account);
  const [, go] = useLocation();
  const recipientForm = useApiForm<RecipientValues>({
    schema: RecipientUpdate,
    initial: toRecipientValues(recipient),
    toBody: (values) => toRecipientChange(values, recipient),
    send: async (body) => {
      const params = { path, header: ifMatch(recipient.revision) };
      const saved = await api.patch(RECIPIENT, { params, body });
      recipientForm.markSaved();
      showToast('Recipient saved.');
      await restart(saved);
      await queries.invalidateQueries({ queryKey: ['recipients', account], exact: true });
    },
  });
  const conflict = isConflict(recipientForm.error);
  const remove = (): void =>
    confirm({
      title: `Remove ${name ?? id}?`,
      body: `This recipient is no longer notified of ${formatScope(recipient)} of ${account}. Waiting messages are not sent. Sent messages stay in the history.`,
      verb: 'Remove',
      destructive: true,
      onConfirm: async () => {
        await api.delete(RECIPIENT, { params: { path } });
        recipientForm.markSaved();
        await queries.invalidateQueries({ queryKey: ['recipients', account], refetchType: 'none' });
        showToast(`${name ?? id} removed.`);
        go(href('recipients'));
      },
    });
  return (
    <form className={ui.stack} onSubmit={recipientForm.submit} noValidate>
      {own ? (
        <Note>
          This recipient is the API user of the account. Change the name and addresses in the ordering system.
          To stop messages, pause this recipient or turn off “Notify the API user” in the settings.
        </Note>
      ) : null}
      <RecipientFields form={recipientForm.form} isNew={false} own={own} zone={recipient.zone} />
      {conflict ? (
        <ConflictNote what="This recipient was" reload={() => void restart()} />
      ) : (
        <FormErrorNote error={recipientForm.formError} />
      )}
      <FormButtons busy={recipientForm.busy} verb="Save" account={account}>
        {own ? null : (
          <Button variant="subtle" color="red" onClick={remove}>
            Remove
          </Button>
        )}
      </FormButtons>
    </form>
  );
}

function FormButtons(props: {
  readonly busy: boolean;
  readonly verb: string;
  readonly account: string;
  readonly children?: React.ReactNode;
}) {
  const { busy, verb, account, children } = props;
  const href = useCustomersHref(account);
  return (
    <div className={css.foot}>
      <Button type="submit" loading={busy}>
        {verb}
      </Button>
      <Button component={Link} variant="default" href={href('recipients')}>
        Cancel
      </Button>
      {children}
    </div>
  );
}

const SCOPE_OPTIONS = [
  { value: 'account', label: 'All jobs of the account' },
  { value: 'orderGroup', label: 'Jobs of one order group' },
  { value: 'orderNumber', label: 'Jobs with one order number' },
  { value: 'jobNumber', label: 'One job' },
];
const CHANNEL_OPTIONS = [
  { value: 'auto', label: 'All with an address' },
  { value: 'email', label: 'E-mail only' },
  { value: 'sms', label: 'SMS only' },
  { value: 'both', label: 'E-mail and SMS' },
];

/** `own`: the recipient derived from the API user, whose identity and scope are fixed. */
function RecipientFields(props: {
  readonly form: ApiForm<RecipientValues>['form'];
  readonly isNew: boolean;
  readonly own: boolean;
  readonly zone: string | null;
}) {
  const { form, isNew, own, zone } = props;
  const field = form.getInputProps;
  return (
    <div className={css.panels}>
      <Panel title="Recipient">
        <TextInput label="Name" description="Used in the salutation." disabled={own} {...field('name')} />
        <div className={css.pair}>
          <TextInput label="E-mail" type="email" autoComplete="off" disabled={own} {...field('email')} />
          <TextInput
            label="Mobile"
            type="tel"
            autoComplete="off"
            placeholder="+64 21 123 4567"
            disabled={own}
            {...field('mobile')}
          />
        </div>
        <div className={css.pair}>
          <NativeSelect
            label="Language"
            data={[{ value: '', label: 'Account default' }, ...localeOptions]}
            {...field('locale')}
          />
          <NativeSelect
            label="Time zone"
            data={[{ value: '', label: 'Account default' }, ...zoneOptions(zone)]}
            {...field('zone')}
          />
        </div>
        {isNew ? (
          <TextInput
            label="Id"
            description="Optional. Generated if empty. Cannot be changed later."
            autoComplete="off"
            {...field('id')}
          />
        ) : null}
      </Panel>
      <Panel title="Notifications">
        <NativeSelect label="Jobs" data={SCOPE_OPTIONS} disabled={own} {...field('scope')} />
        {form.values.scope === 'orderGroup' ? (
          <TextInput label="Order group" disabled={own} {...field('orderGroup')} />
        ) : null}
        {form.values.scope === 'orderNumber' ? (
          <TextInput label="Order number" disabled={own} {...field('orderNumber')} />
        ) : null}
        {form.values.scope === 'jobNumber' ? (
          <TextInput label="Job number" inputMode="numeric" disabled={own} {...field('jobNumber')} />
        ) : null}
        <NativeSelect label="Channels" data={CHANNEL_OPTIONS} {...field('channels')} />
        <Checkbox.Group label="Message types" {...field('kinds')}>
          <div className={ui.fields}>
            {kinds.map((kind) => (
              <Checkbox key={kind} value={kind} label={kindNames[kind]} description={messageKinds[kind]} />
            ))}
          </div>
        </Checkbox.Group>
        <Checkbox
          label="Paused"
          description="No messages are sent while paused."
          {...form.getInputProps('paused', { type: 'checkbox' })}
        />
      </Panel>
    </div>
  );
}

/** Read-only view, for keys without the role admin. */
function RecipientFacts({ recipient }: { readonly recipient: Recipient }) {
  const { name, email, mobile, locale, zone, channels, paused } = recipient;
  return (
    <Panel title="Recipient">
      <Facts
        rows={{
          State: <Badge tone={paused ? 'warn' : 'good'}>{paused ? 'Paused' : 'Active'}</Badge>,
          Name: name,
          'E-mail': email,
          Mobile: mobile,
          Jobs: formatScope(recipient),
          'Message types': recipient.kinds.map((kind) => kindNames[kind]).join(', '),
          Channels: channels.map((channel) => channelNames[channel]).join(', '),
          Language: locale === null ? 'Account default' : localeNames[locale],
          'Time zone': zone ?? 'Account default',
          Created: <Timestamp at={recipient.createdAt} as="whole" />,
        }}
      />
    </Panel>
  );
}
