/** The pages of one recipient and of a new one. */
import { Button, Checkbox } from '@mantine/core';
import { useQueryClient } from '@tanstack/react-query';
import { useLocation } from 'wouter';
import { ifMatch } from '../../../client/index.ts';
import { NewRecipient, RecipientUpdate } from '../../../shared/notifications/notification-input.ts';
import { messageKinds } from '../../../shared/notifications/types.ts';
import { withId } from '../api.ts';
import { Badge, DescriptionList, Loaded, Note, Panel, showToast, useConfirm } from '../components.tsx';
import { toOptions } from '../filters.tsx';
import {
  CheckField,
  Form,
  FormActions,
  NumberField,
  SelectField,
  TextField,
  useFormContext,
} from '../form.tsx';
import { useApiForm, useResourceForm } from '../forms.ts';
import { channelNames, kindNames, kinds } from '../messages.ts';
import { useApi } from '../queries.ts';
import { type Resource, useResource } from '../resources.ts';
import { useSession } from '../session.ts';
import { Timestamp } from '../times.tsx';
import ui from '../ui.module.css';
import { formatScope, localeNames, zoneOptions } from './labels.ts';
import { AccountPage, useCustomersHref } from './layout.tsx';
import { MessageList } from './MessagesPage.tsx';
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
  const form = useApiForm<RecipientValues>({
    schema: NewRecipient,
    initial: toRecipientValues(),
    toBody: toNewRecipient,
    send: async (body) => {
      const created = await api.post('/v1/accounts/{id}/recipients', { ...withId(account), body });
      form.markSaved();
      await queries.invalidateQueries({ queryKey: ['recipients', account] });
      showToast(`${created.name ?? created.id} added. Notified of ${formatScope(created)} of ${account}.`);
      go(href('recipients'));
    },
  });
  return (
    <AccountPage account={account} part="recipients" title={`New recipient of ${account}`}>
      <Form of={form} className="">
        <RecipientFields />
        <FormActions verb="Add" cancel={href('recipients')} />
      </Form>
    </AccountPage>
  );
}

/** One recipient: settings and messages. */
export function RecipientPage({ account, id }: { readonly account: string; readonly id: string }) {
  const api = useApi();
  const may = useSession().hasRole('admin');
  const recipient = useResource(['recipients', account, 'one', id], ['recipients', account], () =>
    api.get(RECIPIENT, { params: { path: { id: account, recipient: id } } }),
  );
  return (
    <AccountPage account={account} part="recipients" title={recipient.data?.latest.name ?? id}>
      <Loaded query={recipient}>
        {(resource) => (
          <>
            {may ? (
              <RecipientForm account={account} resource={resource} />
            ) : (
              <RecipientFacts recipient={resource.latest} />
            )}
            <Panel title="Messages" aside="Newest first">
              <MessageList
                account={account}
                recipient={id}
                empty="No messages yet. Messages to this recipient appear here."
              />
            </Panel>
          </>
        )}
      </Loaded>
    </AccountPage>
  );
}

const FIELD_LABELS = {
  name: 'name',
  email: 'e-mail',
  mobile: 'mobile',
  locale: 'language',
  zone: 'time zone',
  orderGroup: 'order group',
  orderNumber: 'order number',
  jobNumber: 'job number',
  channels: 'channels',
  kinds: 'message kinds',
  paused: 'paused',
};

function RecipientForm(props: { readonly account: string; readonly resource: Resource<Recipient> }) {
  const { account, resource } = props;
  const api = useApi();
  const confirm = useConfirm();
  const queries = useQueryClient();
  const href = useCustomersHref(account);
  const [, go] = useLocation();
  const { id } = resource.latest;
  const path = { id: account, recipient: id };
  const form = useResourceForm<Recipient, RecipientValues>({
    schema: RecipientUpdate,
    resource,
    toValues: toRecipientValues,
    toBody: toRecipientChange,
    save: (body, { revision }) => api.patch(RECIPIENT, { params: { path, header: ifMatch(revision) }, body }),
    done: () => 'Recipient saved.',
    labels: FIELD_LABELS,
  });
  const recipient = form.base;
  const name = recipient.name ?? id;
  const isApiUser = recipient.source === 'upstream';
  const remove = (): void =>
    confirm({
      title: `Remove ${name}?`,
      body: `This recipient is no longer notified of ${formatScope(recipient)} of ${account}. Waiting messages are not sent. Sent messages stay in the history.`,
      verb: 'Remove',
      destructive: true,
      onConfirm: async () => {
        await api.delete(RECIPIENT, { params: { path } });
        form.markSaved();
        await queries.invalidateQueries({ queryKey: ['recipients', account], refetchType: 'none' });
        showToast(`${name} removed.`);
        go(href('recipients'));
      },
    });
  return (
    <Form of={form} className="">
      {isApiUser ? (
        <Note>
          This recipient is the API user of the account. Change the name and addresses in the ordering API. To
          stop messages, pause this recipient or turn off “Notify the API user” in the settings.
        </Note>
      ) : null}
      <RecipientFields recipient={recipient} />
      <FormActions verb="Save" cancel={href('recipients')}>
        {isApiUser ? null : (
          <Button variant="subtle" color="red" onClick={remove}>
            Remove
          </Button>
        )}
      </FormActions>
    </Form>
  );
}

const SCOPES = {
  account: 'All jobs of the account',
  orderGroup: 'Jobs of one order group',
  orderNumber: 'Jobs with one order number',
  jobNumber: 'One job',
};
const CHANNELS = {
  auto: 'All with an address',
  email: 'E-mail only',
  sms: 'SMS only',
  both: 'E-mail and SMS',
};
const DEFAULT_OPTION = { value: '', label: 'Account default' };

/** The fields of a recipient. Identity and scope of the one derived from the API user are fixed. Default: a new recipient. */
function RecipientFields({ recipient }: { readonly recipient?: Recipient }) {
  const { form } = useFormContext<RecipientValues>();
  const { scope } = form.values;
  const disabled = recipient?.source === 'upstream';
  return (
    <div className={ui.panels}>
      <Panel title="Recipient">
        <TextField name="name" label="Name" description="Used in the salutation." disabled={disabled} />
        <div className={ui.columns}>
          <TextField name="email" label="E-mail" type="email" disabled={disabled} />
          <TextField
            name="mobile"
            label="Mobile"
            type="tel"
            placeholder="+64 21 123 4567"
            disabled={disabled}
          />
        </div>
        <div className={ui.columns}>
          <SelectField name="locale" label="Language" data={[DEFAULT_OPTION, ...toOptions(localeNames)]} />
          <SelectField
            name="zone"
            label="Time zone"
            data={[DEFAULT_OPTION, ...zoneOptions(recipient?.zone ?? null)]}
          />
        </div>
        {recipient ? null : (
          <TextField
            name="id"
            label="Id"
            description="Optional. Generated if empty. Cannot be changed later."
          />
        )}
      </Panel>
      <Panel title="Notifications">
        <SelectField name="scope" label="Jobs" data={toOptions(SCOPES)} disabled={disabled} />
        {scope === 'orderGroup' ? (
          <TextField name="orderGroup" label="Order group" disabled={disabled} />
        ) : null}
        {scope === 'orderNumber' ? (
          <TextField name="orderNumber" label="Order number" disabled={disabled} />
        ) : null}
        {scope === 'jobNumber' ? (
          <NumberField name="jobNumber" label="Job number" disabled={disabled} />
        ) : null}
        <SelectField name="channels" label="Channels" data={toOptions(CHANNELS)} />
        <Checkbox.Group label="Message kinds" {...form.getInputProps('kinds')}>
          <div className={ui.fields}>
            {kinds.map((kind) => (
              <Checkbox key={kind} value={kind} label={kindNames[kind]} description={messageKinds[kind]} />
            ))}
          </div>
        </Checkbox.Group>
        <CheckField name="paused" label="Paused" description="No messages are sent while paused." />
      </Panel>
    </div>
  );
}

/** Read-only view, for keys without the role admin. */
function RecipientFacts({ recipient }: { readonly recipient: Recipient }) {
  const { name, email, mobile, locale, zone, channels, paused } = recipient;
  return (
    <Panel title="Recipient">
      <DescriptionList
        rows={{
          State: <Badge tone={paused ? 'warn' : 'good'}>{paused ? 'Paused' : 'Active'}</Badge>,
          Name: name,
          'E-mail': email,
          Mobile: mobile,
          Jobs: formatScope(recipient),
          'Message kinds': recipient.kinds.map((kind) => kindNames[kind]).join(', '),
          Channels: channels.map((channel) => channelNames[channel]).join(', '),
          Language: locale === null ? 'Account default' : localeNames[locale],
          'Time zone': zone ?? 'Account default',
          Created: <Timestamp at={recipient.createdAt} as="whole" />,
        }}
      />
    </Panel>
  );
}
