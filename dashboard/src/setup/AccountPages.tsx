/** Accounts: what there is, a new one, and what can be changed of one. */
import { Button, Checkbox, NativeSelect, Radio, TextInput } from '@mantine/core';
import { useQuery, useQueryClient } from '@tanstack/react-query';
import { type ReactNode, useEffect, useRef, useState } from 'react';
import { Link, useLocation } from 'wouter';
import * as z from 'zod';
import {
  type AccountRecord,
  AccountUpdate,
  MAX_INTERVAL_SECONDS,
  NewAccount,
  NewCredentials,
} from '../../../shared/accounts/account-input.ts';
import { Badge, Empty, Facts, Failure, Note, Page, Panel, showToast, useConfirm } from '../components.tsx';
import { useApiForm } from '../forms.ts';
import { useAccounts, useApi, useRegions } from '../queries.ts';
import { useSession } from '../session.ts';
import { RelativeTime } from '../times.tsx';
import { accountHref, useRegion } from '../urls.ts';
import {
  ButtonLink,
  ConflictNote,
  DeclaredNote,
  FormActions,
  Group,
  ReloadedNote,
  useFormBase,
  useSetupHref,
} from './components.tsx';
import { CredentialFields, NO_CREDENTIALS, TestAccount, TestNewCredentials } from './credentials.tsx';
import { findChangedFields } from './endpoint-values.ts';
import css from './setup.module.css';

type Account = z.infer<typeof AccountRecord>;

const pathOf = (account: string): string => `/v1/accounts/${encodeURIComponent(account)}`;
export const accountSetupHref = (account: string): string => `/setup/accounts/${encodeURIComponent(account)}`;

/** All accounts. */
export function AccountsPage() {
  const { data: all, error, refetch } = useAccounts();
  const { may, forAll } = useSession();
  const region = useRegion();
  const link = useSetupHref();
  const accounts = all?.filter((account) => region === null || account.region === region);
  const canMake = may('admin') && forAll;
  return (
    <Page
      title="Accounts"
      actions={canMake ? <ButtonLink href={link('/setup/new-account')}>New account</ButtonLink> : null}
    >
      <p className={css.what}>
        Each account of the ordering service that is polled, with its own log of events.
      </p>
      {error && !all ? <Failure error={error} again={refetch} /> : null}
      {accounts?.length === 0 ? (
        <Empty>
          {region === null
            ? 'No account is registered yet.'
            : `No account of ${region.toUpperCase()} is registered.`}
        </Empty>
      ) : null}
      {accounts && accounts.length > 0 ? (
        <Panel title={accounts.length === 1 ? '1 account' : `${accounts.length} accounts`}>
          <div className={css.wide}>
            <table className={css.table}>
              <thead>
                <tr>
                  <th>Account</th>
                  <th>Region</th>
                  <th>Polled</th>
                  <th>Credentials</th>
                  <th className={css.extra}>Made</th>
                </tr>
              </thead>
              <tbody>
                {accounts.map((account) => (
                  <tr key={`${account.region}/${account.id}`}>
                    <td className={css.name}>
                      <Link href={link(accountSetupHref(account.id))}>{account.id}</Link>
                    </td>
                    <td>{account.region.toUpperCase()}</td>
                    <td>
                      {account.paused ? (
                        <Badge tone="warn">Paused</Badge>
                      ) : (
                        `every ${formatInterval(account.pollIntervalSeconds)}`
                      )}
                    </td>
                    <td className={css.break}>{formatCredentials(account)}</td>
                    <td className={css.extra}>
                      {account.createdAt ? <RelativeTime at={account.createdAt} /> : '–'}
                    </td>
                  </tr>
                ))}
              </tbody>
            </table>
          </div>
        </Panel>
      ) : null}
    </Page>
  );
}

/** One account; changes for keys that may, of what is not declared elsewhere. */
export function AccountPage({ id }: { readonly id: string }) {
  const api = useApi();
  const queries = useQueryClient();
  const { may, forAll } = useSession();
  const link = useSetupHref();
  const [going, setGoing] = useState<Account | null>(null);
  const queryKey = ['accounts', 'one', id];
  const read = (): Promise<Account> => api.get<Account>(pathOf(id));
  const { data, error, refetch } = useQuery({
    queryKey,
    queryFn: read,
    refetchInterval: 15_000,
    enabled: going === null,
  });
  const changed = (now: Account): void => {
    queries.setQueryData(queryKey, now);
    void queries.invalidateQueries({ queryKey: ['accounts'], exact: true });
  };
  const finish = useAfterDeletion();
  if (going) return <DeletionPage account={going} finish={() => finish(id)} />;
  const account = data;
  return (
    <Page title={id} actions={account ? <Link href={link(accountHref(id))}>How it stands</Link> : null}>
      {error && !account ? <Failure error={error} again={refetch} /> : null}
      {account ? (
        <>
          {account.managed ? null : <DeclaredNote what={`The account ${id}`} part="accounts" />}
          <Panel title="Account">
            <Facts
              rows={[
                ['Id', account.id],
                ['Region', account.region.toUpperCase()],
                [
                  'Polled',
                  `every ${formatInterval(account.pollIntervalSeconds)}${account.paused ? ', but paused' : ''}`,
                ],
                ['Credentials', formatCredentials(account)],
                ['Made', account.createdAt ? <RelativeTime key="at" at={account.createdAt} /> : undefined],
                ['Changed', account.changedAt ? <RelativeTime key="at" at={account.changedAt} /> : undefined],
              ]}
            />
            {may('operate') ? <TestAccount account={id} /> : null}
          </Panel>
          {account.managed && may('admin') ? (
            <>
              <IntervalPanel account={account} read={read} changed={changed} />
              <CredentialsPanel account={account} changed={changed} />
              {account.secretRef !== null && forAll ? (
                <ReferencePanel account={account} read={read} changed={changed} />
              ) : null}
              <DeletePanel
                account={account}
                gone={(complete) => (complete ? finish(id) : setGoing(account))}
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
  pollIntervalSeconds: 'the interval',
  secretRef: 'the credentials',
  paused: 'whether it is paused',
};

function IntervalPanel({ account, read, changed }: AccountFormProps) {
  const api = useApi();
  const own = useState(account);
  const [base] = own;
  const valuesOf = (of: Account) => ({ pollIntervalSeconds: String(of.pollIntervalSeconds) });
  const form = useApiForm({
    schema: AccountUpdate,
    initial: valuesOf(account),
    toBody: toInterval,
    send: async (body) => {
      changed(await api.patch<Account>(pathOf(account.id), { body, revision: base.revision }));
      showToast(`The interval of ${account.id} is saved.`);
    },
  });
  const { reload, reloaded } = useFormBase(account, own, form, valuesOf, read);
  return (
    <Panel title="How often it is polled">
      <form className={css.form} onSubmit={form.submit} noValidate>
        {reloaded ? <ReloadedNote changed={findChangedFields(...reloaded, FIELD_LABELS)} /> : null}
        <IntervalInput {...form.form.getInputProps('pollIntervalSeconds')} />
        <FormActions
          of={form}
          verb="Save the interval"
          help={<ConflictNote error={form.error} reload={reload} />}
        />
      </form>
    </Panel>
  );
}

function ReferencePanel({ account, read, changed }: AccountFormProps) {
  const api = useApi();
  const own = useState(account);
  const [base] = own;
  const valuesOf = (of: Account) => ({ secretRef: of.secretRef ?? '' });
  const form = useApiForm({
    schema: AccountUpdate,
    initial: valuesOf(account),
    toBody: ({ secretRef }) => ({ secretRef: secretRef.trim() }),
    send: async (body) => {
      changed(await api.patch<Account>(pathOf(account.id), { body, revision: base.revision }));
      showToast(`The credentials of ${account.id} are read from there now.`);
    },
  });
  const { reload, reloaded } = useFormBase(account, own, form, valuesOf, read);
  return (
    <Panel title="Where its credentials are">
      <form className={css.form} onSubmit={form.submit} noValidate>
        {reloaded ? <ReloadedNote changed={findChangedFields(...reloaded, FIELD_LABELS)} /> : null}
        <ReferenceInput {...form.form.getInputProps('secretRef')} />
        <FormActions of={form} verb="Save" help={<ConflictNote error={form.error} reload={reload} />} />
      </form>
    </Panel>
  );
}

function CredentialsPanel({ account, changed }: Pick<AccountFormProps, 'account' | 'changed'>) {
  const api = useApi();
  const { forAll } = useSession();
  const form = useApiForm({
    schema: z.object({ credentials: NewCredentials }),
    initial: { credentials: NO_CREDENTIALS },
    toBody: (values) => values,
    send: async ({ credentials }: { credentials: object }) => {
      changed(await api.put<Account>(`${pathOf(account.id)}/credentials`, { body: credentials }));
      form.form.setValues({ credentials: NO_CREDENTIALS });
      form.markSaved({ credentials: NO_CREDENTIALS });
      showToast(`${account.id} is polled with the new credentials.`);
    },
    // Here they are the whole of the body.
    fieldOf: ([field, part]) => (part ? `credentials.${String(part)}` : `credentials.${String(field)}`),
  });
  return (
    <Panel title="New credentials">
      <form className={css.form} onSubmit={form.submit} noValidate>
        <p className={css.what}>
          They count at once, in place of those that it has: it is polled with them, whatever it waited for.
        </p>
        <CredentialFields of={form} />
        {forAll ? <TestNewCredentials of={form} region={account.region} /> : null}
        <FormActions of={form} verb="Replace the credentials" />
      </form>
    </Panel>
  );
}

function DeletePanel(props: {
  readonly account: Account;
  /** It is gone, and all of it, or not all yet. */
  readonly gone: (complete: boolean) => void;
}) {
  const { account } = props;
  const api = useApi();
  const ask = useConfirm();
  const { id, revision } = account;
  const what = (
    <>
      <p>All that is kept of it goes with it, and can’t be brought back:</p>
      <ul className={css.plain}>
        <li>its log of events, which feeds, streams and replays read,</li>
        <li>its jobs, with what happened to them day by day,</li>
        <li>its place at every endpoint; endpoints that are for this account only are deleted,</li>
        <li>its place in API keys; keys that are for this account only are revoked,</li>
        <li>its recipients, templates, messages, suppressions and how customers are told,</li>
        <li>its credentials, if they were given here.</li>
      </ul>
      <p>Nothing is changed in the ordering service.</p>
    </>
  );
  return (
    <Panel title="Delete the account">
      <p className={css.what}>
        It is polled no more, and its log, its jobs and its recipients are gone for good.
      </p>
      <div>
        <Button
          color="red"
          variant="light"
          onClick={() =>
            ask({
              title: `Delete the account ${id}?`,
              body: what,
              verb: 'Delete for good',
              destructive: true,
              confirmText: id,
              onConfirm: async () => {
                const { status } = await api.call('DELETE', pathOf(id), { revision });
                props.gone(status !== 202);
              },
            })
          }
        >
          Delete {id}
        </Button>
      </div>
    </Panel>
  );
}

/** Says that an account is gone, and goes on to those that are left. */
function useAfterDeletion(): (account: string) => void {
  const queries = useQueryClient();
  const [, navigate] = useLocation();
  const link = useSetupHref();
  return (account) => {
    navigate(link('/setup/accounts'));
    queries.removeQueries({ queryKey: ['accounts', 'one', account] });
    void queries.invalidateQueries({ queryKey: ['accounts'], exact: true });
    showToast(`The account ${account} is deleted.`);
  };
}

/** What is kept of a large account goes by and by: asked about until nothing is left. */
function DeletionPage(props: { readonly account: Account; readonly finish: () => void }) {
  const { account } = props;
  const api = useApi();
  const finish = useRef(props.finish);
  finish.current = props.finish;
  const {
    data: status,
    error,
    refetch,
  } = useQuery({
    queryKey: ['deletion', account.id],
    queryFn: async () => {
      try {
        return (await api.call('DELETE', pathOf(account.id))).status;
      } catch (cause) {
        // Nothing is left of it.
        if (cause instanceof Error && 'status' in cause && cause.status === 404) return 204;
        throw cause;
      }
    },
    refetchInterval: ({ state }) => (state.data === 204 ? false : 5_000),
    gcTime: 0,
  });
  useEffect(() => {
    if (status === 204) finish.current();
  }, [status]);
  return (
    <Page title={account.id}>
      {error ? <Failure error={error} again={refetch} /> : null}
      <Note tone="warn" live>
        The account {account.id} is gone. What was kept of it is still being taken away; that goes on by
        itself when you leave.
      </Note>
    </Page>
  );
}

/** A new account. */
export function NewAccountPage() {
  const api = useApi();
  const queries = useQueryClient();
  const [, navigate] = useLocation();
  const link = useSetupHref();
  const { data: regions } = useRegions();
  const looked = useRegion();
  const served = regions?.map(({ id }) => id) ?? [];
  const form = useApiForm({
    schema: NewAccount,
    initial: {
      id: '',
      region: looked ?? '',
      by: 'credentials' as 'credentials' | 'reference',
      credentials: NO_CREDENTIALS,
      secretRef: '',
      pollIntervalSeconds: '120',
      paused: false,
    },
    toBody: ({ id, region, by, credentials, secretRef, paused, ...rest }) => ({
      id: id.trim(),
      ...(region === '' ? {} : { region }),
      ...(by === 'credentials' ? { credentials } : { secretRef: secretRef.trim() }),
      ...toInterval(rest),
      paused,
    }),
    check: ({ region }): Record<string, string> =>
      region === '' && served.length > 1 ? { region: 'It must be the region that the account is in.' } : {},
    send: async (body) => {
      const made = await api.post<Account>('/v1/accounts', { body });
      void queries.invalidateQueries({ queryKey: ['accounts'], exact: true });
      showToast(
        made.paused
          ? `The account ${made.id} is made, and paused.`
          : `The account ${made.id} is made, and polled now.`,
      );
      navigate(link(accountSetupHref(made.id)));
    },
  });
  const { values, getInputProps } = form.form;
  const region = values.region === '' ? undefined : values.region;
  return (
    <Page title="New account">
      <form className={css.form} onSubmit={form.submit} noValidate>
        <Panel title="Account">
          <div className={css.fields}>
            <div className={css.two}>
              <TextInput
                label="Id"
                description="In paths, events and cursors; it can’t be changed later."
                required
                autoComplete="off"
                spellCheck={false}
                {...getInputProps('id')}
              />
              {served.length > 1 ? (
                <NativeSelect
                  label="Region"
                  description="Of the ordering service."
                  required
                  data={[
                    { value: '', label: 'Choose one' },
                    ...served.map((id) => ({ value: id, label: id.toUpperCase() })),
                  ]}
                  {...getInputProps('region')}
                />
              ) : null}
            </div>
          </div>
        </Panel>
        <Panel title="Credentials">
          <div className={css.fields}>
            <Group name="They are">
              <Radio
                label="typed in here"
                name="by"
                {...getInputProps('by', { type: 'radio', value: 'credentials' })}
              />
              <Radio
                label="in a secret of the cell (on AWS)"
                name="by"
                {...getInputProps('by', { type: 'radio', value: 'reference' })}
              />
            </Group>
            {values.by === 'credentials' ? (
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
          <div className={css.fields}>
            <IntervalInput {...getInputProps('pollIntervalSeconds')} />
            <Checkbox
              label="Start paused"
              description="Nothing is polled until it is resumed."
              {...getInputProps('paused', { type: 'checkbox' })}
            />
          </div>
        </Panel>
        <FormActions
          of={form}
          verb="Make the account"
          more={<Link href={link('/setup/accounts')}>Cancel</Link>}
        />
      </form>
    </Page>
  );
}

function IntervalInput(props: { readonly error?: ReactNode }) {
  return (
    <TextInput
      label="Seconds between polls"
      description={`Up to ${MAX_INTERVAL_SECONDS.toLocaleString()}; on AWS at least 60.`}
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
      label="Name of the secret"
      description="Below the cell’s own name; or that, # and a key of the JSON in it."
      required
      autoComplete="off"
      spellCheck={false}
      {...props}
    />
  );
}

/** What is no number stays what it is, for the schema to say so. */
function toInterval({ pollIntervalSeconds }: { readonly pollIntervalSeconds: string }) {
  const text = pollIntervalSeconds.trim();
  return { pollIntervalSeconds: text === '' || Number.isNaN(Number(text)) ? text : Number(text) };
}

/** `2 min`; exact, for it is a setting. */
function formatInterval(seconds: number): string {
  if (seconds % 3600 === 0) return `${seconds / 3600} h`;
  if (seconds % 60 === 0) return `${seconds / 60} min`;
  return `${seconds} s`;
}

function formatCredentials({ managed, secretRef }: Account): ReactNode {
  if (!managed) return 'In the configuration file';
  return secretRef === null ? 'Given here' : <code>{secretRef}</code>;
}
