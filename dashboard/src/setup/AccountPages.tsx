/** Account pages: the list, a new account, and one account. */
import { Checkbox, Radio, Textarea, TextInput } from '@mantine/core';
import { useQuery, useQueryClient } from '@tanstack/react-query';
import { type ReactNode, useEffect, useRef, useState } from 'react';
import { Link, useLocation } from 'wouter';
import * as z from 'zod';
import type { Account } from '../../../client/index.ts';
import {
  AccountUpdate,
  MAX_INTERVAL_SECONDS,
  NewAccount,
  NewCredentials,
} from '../../../shared/accounts/account-input.ts';
import { withId, withRevision } from '../api.ts';
import { Badge, Empty, Facts, Failure, Note, Page, Panel, showToast } from '../components.tsx';
import { formatCount } from '../customers/labels.ts';
import { DataTable } from '../DataTable.tsx';
import { type ApiForm, useApiForm } from '../forms.ts';
import { useAccounts, useApi, useRegions } from '../queries.ts';
import { useSession } from '../session.ts';
import { RelativeTime } from '../times.tsx';
import ui from '../ui.module.css';
import { accountHref, useHref, useRegion } from '../urls.ts';
import {
  ButtonLink,
  ConflictNote,
  DeclaredNote,
  DeletePanel,
  FormActions,
  Group,
  IdInput,
  RegionSelect,
  ReloadedNote,
  useFormBase,
} from './components.tsx';
import { CredentialFields, NO_CREDENTIALS, TestAccount, TestNewCredentials } from './credentials.tsx';
import { findChangedFields } from './endpoint-values.ts';
import { toEventSettings, toEventValues } from './event-settings.ts';
import css from './setup.module.css';

export const accountSetupHref = (account: string): string => `/setup/accounts/${encodeURIComponent(account)}`;

/** The list of accounts. */
export function AccountsPage() {
  const { data: all, error, refetch } = useAccounts();
  const { may, forAll } = useSession();
  const region = useRegion();
  const link = useHref();
  const accounts = all?.filter((account) => region === null || account.region === region);
  const canCreate = may('admin') && forAll;
  return (
    <Page
      title="Accounts"
      actions={canCreate ? <ButtonLink href={link('/setup/new-account')}>New account</ButtonLink> : null}
    >
      <p className={ui.hint}>
        Accounts of the ordering system that Jobwire polls. Each has its own event log.
      </p>
      {error && !all ? <Failure error={error} again={refetch} /> : null}
      {accounts?.length === 0 ? (
        <Empty>
          {region === null
            ? 'No accounts yet. Each account that you create appears here and is polled.'
            : `No accounts in region ${region.toUpperCase()}.`}
        </Empty>
      ) : null}
      {accounts && accounts.length > 0 ? (
        <Panel title={formatCount(accounts.length, 'account')}>
          <DataTable
            label="Accounts"
            rows={accounts}
            keyOf={({ region, id }) => `${region}/${id}`}
            columns={[
              { name: 'Account', render: ({ id }) => <Link href={link(accountSetupHref(id))}>{id}</Link> },
              { name: 'Region', render: ({ region }) => region.toUpperCase() },
              {
                name: 'Poll interval',
                render: ({ paused, pollIntervalSeconds }) =>
                  paused ? <Badge tone="warn">Paused</Badge> : formatInterval(pollIntervalSeconds),
              },
              { name: 'Credentials', wide: true, render: formatCredentials },
              {
                name: 'Created',
                render: ({ createdAt }) => (createdAt ? <RelativeTime at={createdAt} /> : '–'),
              },
            ]}
          />
        </Panel>
      ) : null}
    </Page>
  );
}

/** One account. Editable with the role admin, unless it is declared in the configuration file. */
export function AccountPage({ id }: { readonly id: string }) {
  const api = useApi();
  const queries = useQueryClient();
  const { may, forAll } = useSession();
  const link = useHref();
  const [deleting, setDeleting] = useState<Account | null>(null);
  const queryKey = ['accounts', 'one', id];
  const read = (): Promise<Account> => api.get('/v1/accounts/{id}', withId(id));
  const { data, error, refetch } = useQuery({
    queryKey,
    queryFn: read,
    refetchInterval: 15_000,
    enabled: deleting === null,
  });
  const changed = (now: Account): void => {
    queries.setQueryData(queryKey, now);
    void queries.invalidateQueries({ queryKey: ['accounts'], exact: true });
  };
  const finish = useAfterDeletion();
  if (deleting) return <DeletionPage account={deleting} finish={() => finish(id)} />;
  const account = data;
  return (
    <Page title={id} actions={account ? <Link href={link(accountHref(id))}>View health</Link> : null}>
      {error && !account ? <Failure error={error} again={refetch} /> : null}
      {account ? (
        <>
          {account.managed ? null : <DeclaredNote what={`Account ${id}`} part="accounts" />}
          <Panel title="Account">
            <Facts
              rows={{
                Id: account.id,
                Region: account.region.toUpperCase(),
                'Poll interval': `${formatInterval(account.pollIntervalSeconds)}${account.paused ? ', paused' : ''}`,
                Credentials: formatCredentials(account),
                Created: account.createdAt ? <RelativeTime at={account.createdAt} /> : undefined,
                Modified: account.changedAt ? <RelativeTime at={account.changedAt} /> : undefined,
              }}
            />
            {may('operate') ? <TestAccount account={id} /> : null}
          </Panel>
          {account.managed && may('admin') ? (
            <>
              <IntervalPanel account={account} read={read} changed={changed} />
              <EventSettingsPanel account={account} read={read} changed={changed} />
              <CredentialsPanel account={account} changed={changed} />
              {account.secretRef !== null && forAll ? (
                <ReferencePanel account={account} read={read} changed={changed} />
              ) : null}
              <DeleteAccount
                account={account}
                onDeleted={(complete) => (complete ? finish(id) : setDeleting(account))}
              />
            </>
          ) : null}
        </>
      ) : null}
    </Page>
  );
}

interface AccountFormProps {
  readonly account: Account;
  readonly read: () => Promise<Account>;
  readonly changed: (now: Account) => void;
}

const FIELD_LABELS = {
  pollIntervalSeconds: 'poll interval',
  secretRef: 'credentials',
  paused: 'paused',
  events: 'events',
};

/** A panel that changes one field of the account. */
function FieldPanel<V extends object>(props: {
  readonly of: AccountFormProps;
  readonly title: string;
  readonly verb: string;
  /** Notification after saving. */
  readonly saved: string;
  readonly toValues: (account: Account) => V;
  readonly toBody: (values: V) => unknown;
  readonly children: (form: ApiForm<V>) => ReactNode;
}) {
  const { title, verb, saved, toValues, toBody, children } = props;
  const { account, read, changed } = props.of;
  const api = useApi();
  const version = useState(account);
  const [base] = version;
  const form = useApiForm<V>({
    schema: AccountUpdate,
    initial: toValues(account),
    toBody,
    send: async (body) => {
      changed(
        await api.patch('/v1/accounts/{id}', { ...withRevision(withId(account.id), base.revision), body }),
      );
      showToast(saved);
    },
  });
  const { reload, reloaded } = useFormBase(account, version, form, toValues, read);
  return (
    <Panel title={title}>
      <form className={`${ui.stack} ${ui.stack} ${css.form}`} onSubmit={form.submit} noValidate>
        {reloaded ? <ReloadedNote changed={findChangedFields(...reloaded, FIELD_LABELS)} /> : null}
        {children(form)}
        <FormActions of={form} verb={verb} help={<ConflictNote error={form.error} reload={reload} />} />
      </form>
    </Panel>
  );
}

function IntervalPanel(props: AccountFormProps) {
  return (
    <FieldPanel
      of={props}
      title="Poll interval"
      verb="Save interval"
      saved={`Poll interval of ${props.account.id} saved.`}
      toValues={({ pollIntervalSeconds }) => ({ pollIntervalSeconds: String(pollIntervalSeconds) })}
      toBody={toInterval}
    >
      {({ form }) => <IntervalInput {...form.getInputProps('pollIntervalSeconds')} />}
    </FieldPanel>
  );
}

function EventSettingsPanel(props: AccountFormProps) {
  return (
    <FieldPanel
      of={props}
      title="Events"
      verb="Save events"
      saved={`Event settings of ${props.account.id} saved.`}
      toValues={({ events }) => ({ events: toEventValues(events) })}
      toBody={({ events }) => ({ events: toEventSettings(events) })}
    >
      {({ form: { getInputProps } }) => (
        <>
          <div className={ui.columns}>
            <TextInput
              label="Due soon (hours)"
              description="Lead time of job.due_soon before the due time. Empty: not emitted."
              inputMode="numeric"
              autoComplete="off"
              {...getInputProps('events.dueSoonHours')}
            />
            <TextInput
              label="Stalled (working days)"
              description="Time in one status until job.stalled. Empty: not emitted."
              inputMode="numeric"
              autoComplete="off"
              {...getInputProps('events.stalledAfterWorkingDays')}
            />
          </div>
          <Textarea
            label="Stalled, by status"
            description="Other values, one per line: In production = 3. Without a number: not emitted."
            rows={2}
            spellCheck={false}
            {...getInputProps('events.stalledByStatus')}
          />
          <Textarea
            label="Statuses that need attention"
            description="Status names for job.needs_attention, one per line."
            rows={2}
            spellCheck={false}
            {...getInputProps('events.attentionStatuses')}
          />
          <Checkbox
            label="Payments"
            description="Emit events about payments."
            {...getInputProps('events.payments', { type: 'checkbox' })}
          />
        </>
      )}
    </FieldPanel>
  );
}

function ReferencePanel(props: AccountFormProps) {
  return (
    <FieldPanel
      of={props}
      title="Credentials secret"
      verb="Save"
      saved={`Credentials secret of ${props.account.id} saved.`}
      toValues={({ secretRef }) => ({ secretRef: secretRef ?? '' })}
      toBody={({ secretRef }) => ({ secretRef: secretRef.trim() })}
    >
      {({ form }) => <ReferenceInput {...form.getInputProps('secretRef')} />}
    </FieldPanel>
  );
}

function CredentialsPanel({ account, changed }: Pick<AccountFormProps, 'account' | 'changed'>) {
  const api = useApi();
  const { forAll } = useSession();
  const form = useApiForm({
    schema: z.object({ credentials: NewCredentials }),
    initial: { credentials: NO_CREDENTIALS },
    toBody: (values) => values,
    send: async ({ credentials: body }: { credentials: typeof NO_CREDENTIALS }) => {
      changed(await api.put('/v1/accounts/{id}/credentials', { ...withId(account.id), body }));
      form.form.setValues({ credentials: NO_CREDENTIALS });
      form.markSaved({ credentials: NO_CREDENTIALS });
      showToast(`Credentials of ${account.id} replaced.`);
    },
    // The API names fields without the prefix: credentials are the whole body there.
    toField: ([field, part]) => (part ? `credentials.${String(part)}` : `credentials.${String(field)}`),
  });
  return (
    <Panel title="New credentials">
      <form className={`${ui.stack} ${ui.stack} ${css.form}`} onSubmit={form.submit} noValidate>
        <p className={ui.hint}>
          They replace the current credentials immediately. The next poll uses them, even if polling was
          suspended.
        </p>
        <CredentialFields of={form} />
        {forAll ? <TestNewCredentials of={form} region={account.region} /> : null}
        <FormActions of={form} verb="Replace credentials" />
      </form>
    </Panel>
  );
}

function DeleteAccount(props: {
  readonly account: Account;
  /** `complete`: whether all its data is deleted. Otherwise deletion continues. */
  readonly onDeleted: (complete: boolean) => void;
}) {
  const { id, revision } = props.account;
  const api = useApi();
  return (
    <DeletePanel
      kind="account"
      id={id}
      summary="Stops polling and permanently deletes the event log, jobs and recipients of the account."
      deleted={[
        'its event log, which feeds, streams and replays read',
        'its jobs and their daily totals',
        'its cursors at all endpoints, and endpoints for this account only',
        'its entry in API keys, and keys for this account only',
        'its notification settings, recipients, templates, messages and suppressions',
        'its stored credentials',
      ]}
      kept="The ordering system is not changed."
      onDelete={async () => {
        props.onDeleted(await api.delete('/v1/accounts/{id}', withRevision(withId(id), revision)));
      }}
    />
  );
}

/** Returns a function that shows the list of accounts after a deletion. */
function useAfterDeletion(): (account: string) => void {
  const queries = useQueryClient();
  const [, navigate] = useLocation();
  const link = useHref();
  return (account) => {
    navigate(link('/setup/accounts'));
    queries.removeQueries({ queryKey: ['accounts', 'one', account] });
    void queries.invalidateQueries({ queryKey: ['accounts'], exact: true });
    showToast(`Account ${account} deleted.`);
  };
}

/** Progress page: repeats the request until all data of a large account is deleted. */
function DeletionPage(props: { readonly account: Account; readonly finish: () => void }) {
  const { account } = props;
  const api = useApi();
  const finish = useRef(props.finish);
  finish.current = props.finish;
  const {
    data: complete,
    error,
    refetch,
  } = useQuery({
    queryKey: ['deletion', account.id],
    queryFn: async () => {
      try {
        return await api.delete('/v1/accounts/{id}', withId(account.id));
      } catch (cause) {
        // Deletion is complete.
        if (cause instanceof Error && 'status' in cause && cause.status === 404) return true;
        throw cause;
      }
    },
    refetchInterval: ({ state }) => (state.data ? false : 5_000),
    gcTime: 0,
  });
  useEffect(() => {
    if (complete) finish.current();
  }, [complete]);
  return (
    <Page title={account.id}>
      {error ? <Failure error={error} again={refetch} /> : null}
      <Note tone="warn" live>
        Account {account.id} is deleted. Its data is still being removed, which continues if you leave this
        page.
      </Note>
    </Page>
  );
}

/** The form of a new account. */
export function NewAccountPage() {
  const api = useApi();
  const queries = useQueryClient();
  const [, navigate] = useLocation();
  const link = useHref();
  const { data: regions } = useRegions();
  const currentRegion = useRegion();
  const regionIds = regions?.map(({ id }) => id) ?? [];
  const form = useApiForm({
    schema: NewAccount,
    initial: {
      id: '',
      region: currentRegion ?? '',
      source: 'credentials' as 'credentials' | 'reference',
      credentials: NO_CREDENTIALS,
      secretRef: '',
      pollIntervalSeconds: '120',
      paused: false,
    },
    toBody: ({ id, region, source, credentials, secretRef, paused, ...rest }) => ({
      id: id.trim(),
      ...(region === '' ? {} : { region }),
      ...(source === 'credentials' ? { credentials } : { secretRef: secretRef.trim() }),
      ...toInterval(rest),
      paused,
    }),
    check: ({ region }): Record<string, string> =>
      region === '' && regionIds.length > 1 ? { region: 'It must be one of the listed regions.' } : {},
    send: async (body) => {
      const created = await api.post('/v1/accounts', { body });
      void queries.invalidateQueries({ queryKey: ['accounts'], exact: true });
      showToast(
        created.paused
          ? `Account ${created.id} created, paused.`
          : `Account ${created.id} created. Polling starts now.`,
      );
      navigate(link(accountSetupHref(created.id)));
    },
  });
  const { values, getInputProps } = form.form;
  const region = values.region === '' ? undefined : values.region;
  return (
    <Page title="New account">
      <form className={`${ui.stack} ${ui.stack} ${css.form}`} onSubmit={form.submit} noValidate>
        <Panel title="Account">
          <div className={ui.fields}>
            <div className={ui.columns}>
              <IdInput
                required
                description="Part of paths, events and cursors. Cannot be changed later."
                {...getInputProps('id')}
              />
              <RegionSelect
                regions={regionIds}
                description="Region of the ordering API."
                {...getInputProps('region')}
              />
            </div>
          </div>
        </Panel>
        <Panel title="Credentials">
          <div className={ui.fields}>
            <Group name="Source">
              <Radio
                label="Enter them here"
                name="source"
                {...getInputProps('source', { type: 'radio', value: 'credentials' })}
              />
              <Radio
                label="Secret of the cell (AWS only)"
                name="source"
                {...getInputProps('source', { type: 'radio', value: 'reference' })}
              />
            </Group>
            {values.source === 'credentials' ? (
              <>
                <CredentialFields of={form} />
                <TestNewCredentials of={form} region={region} />
              </>
            ) : (
              <ReferenceInput {...getInputProps('secretRef')} />
            )}
          </div>
        </Panel>
        <Panel title="Polling">
          <div className={ui.fields}>
            <IntervalInput {...getInputProps('pollIntervalSeconds')} />
            <Checkbox
              label="Start paused"
              description="The account is not polled until it is resumed."
              {...getInputProps('paused', { type: 'checkbox' })}
            />
          </div>
        </Panel>
        <FormActions
          of={form}
          verb="Create account"
          more={<Link href={link('/setup/accounts')}>Cancel</Link>}
        />
      </form>
    </Page>
  );
}

function IntervalInput(props: { readonly error?: ReactNode }) {
  return (
    <TextInput
      label="Poll interval (seconds)"
      description={`1 to ${MAX_INTERVAL_SECONDS.toLocaleString()}. On AWS at least 60.`}
      required
      inputMode="numeric"
      autoComplete="off"
      {...props}
    />
  );
}

function ReferenceInput(props: { readonly error?: ReactNode }) {
  return (
    <TextInput
      label="Secret name"
      description="A name below the name of the cell. To select a key of a JSON secret, append # and the key."
      required
      autoComplete="off"
      spellCheck={false}
      {...props}
    />
  );
}

/** Converts the interval to a number. Returns other text unchanged, for the schema to reject. */
function toInterval({ pollIntervalSeconds }: { readonly pollIntervalSeconds: string }) {
  const text = pollIntervalSeconds.trim();
  return { pollIntervalSeconds: text === '' || Number.isNaN(Number(text)) ? text : Number(text) };
}

/** Formats an interval exactly: `2 min`, `90 s`. */
function formatInterval(seconds: number): string {
  if (seconds % 3600 === 0) return `${seconds / 3600} h`;
  if (seconds % 60 === 0) return `${seconds / 60} min`;
  return `${seconds} s`;
}

function formatCredentials({ managed, secretRef }: Account): ReactNode {
  if (!managed) return 'In the configuration file';
  return secretRef === null ? 'Stored in Jobwire' : <code>{secretRef}</code>;
}
