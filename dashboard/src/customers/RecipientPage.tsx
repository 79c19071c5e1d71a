/** One recipient, or a new one. */
import { Button, Checkbox, NativeSelect, TextInput } from '@mantine/core';
import { useQuery, useQueryClient } from '@tanstack/react-query';
import { useState } from 'react';
import { Link, useLocation } from 'wouter';
import { NewRecipient, RecipientUpdate } from '../../../shared/notifications/notification-input.ts';
import { messageKinds } from '../../../shared/notifications/types.ts';
import { ApiError } from '../api.ts';
import { Badge, Facts, Failure, Note, Panel, showToast, useConfirm } from '../components.tsx';
import { type ApiForm, useApiForm } from '../forms.ts';
import { channelNames, kindNames, kinds } from '../messages.ts';
import { useApi } from '../queries.ts';
import { useSession } from '../session.ts';
import { Timestamp } from '../times.tsx';
import css from './customers.module.css';
import { formatScope, localeNames, localeOptions, zoneOptions } from './labels.ts';
import { AccountPage, useCustomersHref } from './layout.tsx';
import { MessageList } from './MessagesPage.tsx';
import {
  type Recipient,
  type RecipientValues,
  toNewRecipient,
  toRecipientChange,
  toRecipientValues,
} from './recipients.ts';

const pathOf = (account: string, id?: string): string =>
  `/v1/accounts/${encodeURIComponent(account)}/recipients${id === undefined ? '' : `/${encodeURIComponent(id)}`}`;

/** Somebody new who is told. */
export function NewRecipientPage({ account }: { readonly account: string }) {
  const api = useApi();
  const queries = useQueryClient();
  const href = useCustomersHref(account);
  const [, go] = useLocation();
  const whole = useApiForm<RecipientValues>({
    schema: NewRecipient,
    initial: toRecipientValues(),
    toBody: toNewRecipient,
    send: async (body) => {
      const made = await api.post<Recipient>(pathOf(account), { body });
      whole.markSaved();
      await queries.invalidateQueries({ queryKey: ['recipients', account] });
      showToast(`${made.name ?? made.id} is told about ${formatScope(made)} of ${account}.`);
      go(href('recipients'));
    },
  });
  return (
    <AccountPage account={account} part="recipients" title={`New recipient of ${account}`}>
      <form className={css.form} onSubmit={whole.submit} noValidate>
        <RecipientFields form={whole.form} isNew own={false} zone={null} />
        <End whole={whole} verb="Add" account={account} />
      </form>
    </AccountPage>
  );
}

/** Somebody who is told: what is said of them, and what they were told. */
export function RecipientPage({ account, id }: { readonly account: string; readonly id: string }) {
  const api = useApi();
  const may = useSession().may('admin');
  const queries = useQueryClient();
  const [version, setVersion] = useState(0);
  const queryKey = ['recipients', account, 'one', id];
  const { data, error, refetch } = useQuery({
    queryKey,
    queryFn: ({ signal }) => api.get<Recipient>(pathOf(account, id), { signal }),
  });
  return (
    <AccountPage account={account} part="recipients" title={data?.name ?? id}>
      {error && !data ? <Failure error={error} again={refetch} /> : null}
      {data && !may ? <RecipientFacts recipient={data} /> : null}
      {data && may ? (
        <RecipientForm
          key={version}
          account={account}
          recipient={data}
          begin={async (fresh) => {
            // At once, so that nothing that is typed in after it is lost.
            if (fresh) queries.setQueryData(queryKey, fresh);
            else await refetch();
            setVersion((before) => before + 1);
          }}
        />
      ) : null}
      {data ? (
        <Panel title="What they were told" aside="Newest first">
          <MessageList
            account={account}
            path={`recipients/${encodeURIComponent(id)}/messages`}
            empty="They were told nothing yet."
          />
        </Panel>
      ) : null}
    </AccountPage>
  );
}

function RecipientForm(props: {
  readonly account: string;
  readonly recipient: Recipient;
  /** Begins anew, with what was saved or else with what is there now. */
  readonly begin: (fresh?: Recipient) => Promise<void>;
}) {
  const { account, begin } = props;
  const [recipient] = useState(props.recipient);
  const { id, name } = recipient;
  const own = recipient.source === 'upstream';
  const api = useApi();
  const ask = useConfirm();
  const queries = useQueryClient();
  const href = useCustomersHref(account);
  const [, go] = useLocation();
  const whole = useApiForm<RecipientValues>({
    schema: RecipientUpdate,
    initial: toRecipientValues(recipient),
    toBody: (values) => toRecipientChange(values, recipient),
    send: async (body) => {
      const changed = await api.patch<Recipient>(pathOf(account, id), { body, revision: recipient.revision });
      whole.markSaved();
      showToast('The recipient is changed.');
      await begin(changed);
      await queries.invalidateQueries({ queryKey: ['recipients', account], exact: true });
    },
  });
  const outdated = whole.error instanceof ApiError && whole.error.status === 412;
  const remove = (): void =>
    ask({
      title: `Remove ${name ?? id}?`,
      body: `They are told nothing more about ${formatScope(recipient)} of ${account}, and what waits to be sent to them is not sent. What they were told stays in the history.`,
      verb: 'Remove',
      destructive: true,
      onConfirm: async () => {
        await api.delete(pathOf(account, id));
        whole.markSaved();
        await queries.invalidateQueries({ queryKey: ['recipients', account], refetchType: 'none' });
        showToast(`${name ?? id} is removed.`);
        go(href('recipients'));
      },
    });
  return (
    <form className={css.form} onSubmit={whole.submit} noValidate>
      {own ? (
        <Note>
          This is the user of the account’s credentials. Who he is, and his addresses, are changed in the
          ordering service; to tell him nothing, pause him, or switch it off in the settings.
        </Note>
      ) : null}
      <RecipientFields form={whole.form} isNew={false} own={own} zone={recipient.zone} />
      {outdated ? (
        <Note
          tone="bad"
          live
          actions={
            <Button size="xs" variant="default" onClick={() => void begin()}>
              Show it as it is now
            </Button>
          }
        >
          <p>
            Somebody has changed this recipient since you opened it, and yours was not saved. Shown as it is
            now, what you typed in here is lost.
          </p>
        </Note>
      ) : null}
      <End whole={outdated ? { ...whole, formError: null } : whole} verb="Save" account={account}>
        {own ? null : (
          <Button variant="subtle" color="red" onClick={remove}>
            Remove
          </Button>
        )}
      </End>
    </form>
  );
}

/** What went wrong, and what can be done. */
function End(props: {
  readonly whole: Pick<ApiForm<RecipientValues>, 'formError' | 'busy'>;
  readonly verb: string;
  readonly account: string;
  readonly children?: React.ReactNode;
}) {
  const { whole, verb, account, children } = props;
  const href = useCustomersHref(account);
  return (
    <>
      {whole.formError === null ? null : (
        <Note tone="bad" live>
          {whole.formError}
        </Note>
      )}
      <div className={css.foot}>
        <Button type="submit" loading={whole.busy}>
          {verb}
        </Button>
        <Button component={Link} variant="default" href={href('recipients')}>
          Cancel
        </Button>
        {children}
      </div>
    </>
  );
}

const SCOPE_OPTIONS = [
  { value: 'account', label: 'All jobs of the account' },
  { value: 'orderGroup', label: 'Jobs of one order group' },
  { value: 'orderNumber', label: 'Jobs with one order number' },
  { value: 'jobNumber', label: 'One job' },
];
const CHANNEL_OPTIONS = [
  { value: 'auto', label: 'What there is an address for' },
  { value: 'email', label: 'E-mail only' },
  { value: 'sms', label: 'SMS only' },
  { value: 'both', label: 'E-mail and SMS' },
];

/** `own`: the ordering service's, of whom less can be said here. */
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
      <Panel title="Who">
        <TextInput label="Name" description="How they are addressed." disabled={own} {...field('name')} />
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
            data={[{ value: '', label: 'The account’s' }, ...localeOptions]}
            {...field('locale')}
          />
          <NativeSelect
            label="Times of"
            data={[{ value: '', label: 'The account’s' }, ...zoneOptions(zone)]}
            {...field('zone')}
          />
        </div>
        {isNew ? (
          <TextInput
            label="Id"
            description="What they are known by, for good; made up unless you give one."
            autoComplete="off"
            {...field('id')}
          />
        ) : null}
      </Panel>
      <Panel title="What they are told">
        <NativeSelect label="About" data={SCOPE_OPTIONS} disabled={own} {...field('scope')} />
        {form.values.scope === 'orderGroup' ? (
          <TextInput label="Order group" disabled={own} {...field('orderGroup')} />
        ) : null}
        {form.values.scope === 'orderNumber' ? (
          <TextInput label="Order number" disabled={own} {...field('orderNumber')} />
        ) : null}
        {form.values.scope === 'jobNumber' ? (
          <TextInput label="Job number" inputMode="numeric" disabled={own} {...field('jobNumber')} />
        ) : null}
        <NativeSelect label="By" data={CHANNEL_OPTIONS} {...field('channels')} />
        <Checkbox.Group label="Of" {...field('kinds')}>
          <div className={css.boxes}>
            {kinds.map((kind) => (
              <Checkbox key={kind} value={kind} label={kindNames[kind]} description={messageKinds[kind]} />
            ))}
          </div>
        </Checkbox.Group>
        <Checkbox
          label="Paused"
          description="They are told nothing for the time being."
          {...form.getInputProps('paused', { type: 'checkbox' })}
        />
      </Panel>
    </div>
  );
}

/** For keys that may not change them. */
function RecipientFacts({ recipient }: { readonly recipient: Recipient }) {
  const { name, email, mobile, locale, zone, channels, paused } = recipient;
  return (
    <Panel title="Recipient">
      <Facts
        rows={[
          [
            'State',
            <Badge key="state" tone={paused ? 'warn' : 'good'}>
              {paused ? 'Paused' : 'Is told'}
            </Badge>,
          ],
          ['Name', name],
          ['E-mail', email],
          ['Mobile', mobile],
          ['Told about', formatScope(recipient)],
          ['Of', recipient.kinds.map((kind) => kindNames[kind]).join(', ')],
          ['By', channels.map((channel) => channelNames[channel]).join(', ')],
          ['Language', locale === null ? 'The account’s' : localeNames[locale]],
          ['Times of', zone ?? 'The account’s'],
          ['Made', <Timestamp key="made" at={recipient.createdAt} as="whole" />],
        ]}
      />
    </Panel>
  );
}
