/** API key pages: the list and a new key. */
import { Button, NativeSelect, Radio, TextInput } from '@mantine/core';
import { useQuery, useQueryClient } from '@tanstack/react-query';
import { useState } from 'react';
import { Link, useLocation } from 'wouter';
import type { ApiKey } from '../../../client/index.ts';
import { NewKey, ROLES, type Role, roleAllows } from '../../../shared/api/key-input.ts';
import { withId } from '../api.ts';
import { Badge, Empty, Facts, Failure, Note, Page, Panel, showToast, useConfirm } from '../components.tsx';
import { formatCount } from '../customers/labels.ts';
import { DataTable } from '../DataTable.tsx';
import { parseLocalTime } from '../dates.ts';
import type { FieldErrors } from '../form-validation.ts';
import { useApiForm } from '../forms.ts';
import { collect, useAccounts, useApi } from '../queries.ts';
import { useSession } from '../session.ts';
import { formatExactTime, RelativeTime, Timestamp } from '../times.tsx';
import ui from '../ui.module.css';
import { useHref } from '../urls.ts';
import { AccountScope, ButtonLink, FormActions, Group } from './components.tsx';
import { type NewSecret, SecretDialog } from './SecretDialog.tsx';
import css from './setup.module.css';

const ROLE_LABELS: Readonly<Record<Role, { readonly name: string; readonly permissions: string }>> = {
  read: {
    name: 'Read',
    permissions: 'Reads jobs, events and states. Customer addresses are masked.',
  },
  operate: {
    name: 'Operate',
    permissions: 'Read, and pauses, resumes, confirms, pings, replays and retries.',
  },
  admin: {
    name: 'Admin',
    permissions: 'Operate, and creates, changes and deletes accounts, endpoints, recipients and keys.',
  },
};

/** Fetches the keys. Disabled without the role admin. */
export function useKeys() {
  const api = useApi();
  const { may } = useSession();
  return useQuery({
    queryKey: ['keys'],
    queryFn: ({ signal }) => collect(api.list('/v1/keys', 'keys', { signal })),
    refetchInterval: 30_000,
    enabled: may('admin'),
  });
}

/** The list of keys. */
export function KeysPage() {
  const { data: keys, error, refetch } = useKeys();
  const { may, key: own } = useSession();
  const link = useHref();
  const isListed = keys?.some(({ id }) => id === own.id) === true;
  return (
    <Page
      title="Keys"
      actions={may('admin') ? <ButtonLink href={link('/setup/new-key')}>New key</ButtonLink> : null}
    >
      <p className={ui.hint}>API keys of users and programs, with their role, accounts and expiry.</p>
      {may('admin') ? null : (
        <Note>Other keys are visible only with the role admin. This is the key you signed in with.</Note>
      )}
      {error && !keys ? <Failure error={error} again={refetch} /> : null}
      {may('admin') && (keys === undefined || isListed) ? null : (
        <Panel title="The key you signed in with">
          <Facts
            rows={{
              Name: own.name ?? (own.id === 'bootstrap' ? 'Key from the configuration' : '–'),
              Role: ROLE_LABELS[own.role].name,
              Accounts: own.accounts === null ? 'All' : own.accounts.join(', '),
              Expires: own.expiresAt === null ? 'Never' : <Timestamp at={own.expiresAt} />,
            }}
          />
          {own.id === 'bootstrap' ? (
            <p className={ui.hint}>
              Declared in the configuration as <code>apiKey</code>, and can only be changed there.
            </p>
          ) : null}
        </Panel>
      )}
      {keys?.length === 0 ? <Empty>No keys yet. Each key that you create appears here.</Empty> : null}
      {keys && keys.length > 0 ? <KeyTable keys={keys} /> : null}
    </Page>
  );
}

function KeyTable({ keys }: { readonly keys: readonly ApiKey[] }) {
  const { key: own } = useSession();
  const newestFirst = [...keys].sort((a, b) => (a.createdAt < b.createdAt ? 1 : -1));
  return (
    <Panel title={formatCount(keys.length, 'key')}>
      <DataTable
        label="Keys"
        rows={newestFirst}
        keyOf={({ id }) => id}
        columns={[
          {
            name: 'Key',
            render: ({ id, name }) => (
              <>
                <div className={ui.name}>{name ?? 'Unnamed'}</div>
                <div className={ui.hint}>
                  {id}
                  {id === own.id ? ', the key you signed in with' : ''}
                </div>
              </>
            ),
          },
          { name: 'Role', render: ({ role }) => ROLE_LABELS[role].name },
          { name: 'Accounts', wide: true, render: ({ accounts }) => accounts?.join(', ') ?? 'All' },
          { name: 'Created', render: ({ createdAt }) => <RelativeTime at={createdAt} /> },
          {
            name: 'Last used',
            render: ({ lastUsedAt }) => (lastUsedAt === null ? 'Never' : <RelativeTime at={lastUsedAt} />),
          },
          { name: 'Expires', render: ({ expiresAt }) => <Expiry at={expiresAt} /> },
          { name: 'Actions', hiddenName: true, render: (key) => <Revoke of={key} /> },
        ]}
      />
    </Panel>
  );
}

function Expiry({ at }: { readonly at: string | null }) {
  if (at === null) return 'Never';
  return Date.parse(at) <= Date.now() ? <Badge tone="warn">Expired</Badge> : <Timestamp at={at} />;
}

function Revoke({ of: key }: { readonly of: ApiKey }) {
  const api = useApi();
  const confirm = useConfirm();
  const queries = useQueryClient();
  const { key: own, signOut } = useSession();
  const name = key.name ?? key.id;
  const isOwn = key.id === own.id;
  const body = (
    <>
      <p>Requests with this key are rejected within 30 seconds. This cannot be undone.</p>
      <p>Open streams continue until they end. Keys created with it remain valid.</p>
      {isOwn ? <p>This is the key you signed in with: you will be signed out.</p> : null}
    </>
  );
  return (
    <Button
      size="compact-sm"
      variant="subtle"
      color="red"
      aria-label={`Revoke ${name}`}
      onClick={() =>
        confirm({
          title: `Revoke key ${name}?`,
          body,
          verb: 'Revoke',
          destructive: true,
          onConfirm: async () => {
            await api.delete('/v1/keys/{id}', withId(key.id));
            if (isOwn) return signOut('You revoked the key you were signed in with.');
            showToast(`Key ${name} revoked.`);
            await queries.invalidateQueries({ queryKey: ['keys'] });
          },
        })
      }
    >
      Revoke
    </Button>
  );
}

/** The form of a new key. Shows the key once after creation. */
export function NewKeyPage() {
  const api = useApi();
  const queries = useQueryClient();
  const [, navigate] = useLocation();
  const link = useHref();
  const { key: own, forAll } = useSession();
  const { data: accounts } = useAccounts();
  const [created, setCreated] = useState<NewSecret | null>(null);
  const form = useApiForm({
    schema: NewKey,
    initial: {
      name: '',
      role: 'read' as Role,
      accountScope: (forAll ? 'all' : 'some') as 'all' | 'some',
      accounts: [] as readonly string[],
      expiry: (own.expiresAt === null ? 'never' : 'at') as 'never' | 'at',
      expiresAt: '',
    },
    toBody: ({ name, role, accountScope, accounts: some, expiry, expiresAt }) => ({
      ...(name.trim() === '' ? {} : { name: name.trim() }),
      role,
      ...(accountScope === 'all' ? {} : { accounts: some }),
      ...(expiry === 'never' ? {} : { expiresAt: parseLocalTime(expiresAt) }),
    }),
    check: ({ expiry, expiresAt }): FieldErrors => {
      if (expiry === 'never') return {};
      const time = parseLocalTime(expiresAt);
      if (time === undefined) return { expiresAt: 'It must be a date and time.' };
      return Date.parse(time) <= Date.now() ? { expiresAt: 'It must be in the future.' } : {};
    },
    send: async (body) => {
      const { key, secret } = await api.post('/v1/keys', { body });
      void queries.invalidateQueries({ queryKey: ['keys'] });
      setCreated({
        secret,
        title: `Key ${key.name ?? key.id} created`,
        name: 'API key',
        note: (
          <p className={ui.hint}>
            Sign in with it, or send it as <code>Authorization: Bearer …</code>.
          </p>
        ),
      });
    },
  });
  const { values, getInputProps } = form.form;
  const time = parseLocalTime(values.expiresAt);
  return (
    <Page title="New key">
      <form className={`${ui.stack} ${ui.stack} ${css.form}`} onSubmit={form.submit} noValidate>
        <Panel title="Key">
          <div className={ui.fields}>
            <TextInput
              label="Name"
              description="Purpose of the key."
              autoComplete="off"
              {...getInputProps('name')}
            />
            <NativeSelect
              label="Role"
              description={ROLE_LABELS[values.role].permissions}
              data={ROLES.filter((role) => roleAllows(own.role, role)).map((value) => ({
                value,
                label: ROLE_LABELS[value].name,
              }))}
              {...getInputProps('role')}
            />
            <AccountScope
              of={form}
              allLabel="All accounts, including future ones"
              offered={forAll ? (accounts ?? []).map(({ id }) => id) : (own.accounts ?? [])}
            />
            <Group
              name="Expiry"
              {...(own.expiresAt === null
                ? {}
                : { hint: `At the latest when your key expires: ${formatExactTime(own.expiresAt)}` })}
            >
              {own.expiresAt === null ? (
                <Radio
                  label="Never"
                  name="expiry"
                  {...getInputProps('expiry', { type: 'radio', value: 'never' })}
                />
              ) : null}
              <Radio
                label="At a time"
                name="expiry"
                {...getInputProps('expiry', { type: 'radio', value: 'at' })}
              />
              {values.expiry === 'at' ? (
                <TextInput
                  label="Expiry time"
                  type="datetime-local"
                  description={time === undefined ? 'Local time.' : formatExactTime(time)}
                  {...getInputProps('expiresAt')}
                />
              ) : null}
            </Group>
          </div>
        </Panel>
        <FormActions of={form} verb="Create key" more={<Link href={link('/setup/keys')}>Cancel</Link>} />
      </form>
      <SecretDialog
        secret={created}
        onClose={() => {
          setCreated(null);
          navigate(link('/setup/keys'));
        }}
      />
    </Page>
  );
}
