/** API key pages: the list and a new key. */
import { Button } from '@mantine/core';
import { useQueryClient } from '@tanstack/react-query';
import { useState } from 'react';
import { useLocation } from 'wouter';
import type { ApiKey } from '../../../client/index.ts';
import { NewKey, ROLES, type Role, roleAllows } from '../../../shared/api/key-input.ts';
import { withId } from '../api.ts';
import { Badge, DescriptionList, Note, Page, Panel, showToast, useConfirm } from '../components.tsx';
import { parseLocalTime } from '../dates.ts';
import { Form, FormActions, Group, RadioFields, SelectField, TextField } from '../form.tsx';
import type { FieldErrors } from '../form-validation.ts';
import { useApiForm } from '../forms.ts';
import { useApi } from '../queries.ts';
import { useSession } from '../session.ts';
import { formatKeyId } from '../texts.ts';
import { formatExactTime, RelativeTime, Timestamp } from '../times.tsx';
import ui from '../ui.module.css';
import { useHref } from '../urls.ts';
import { getZone } from '../zone-choice.ts';
import { AccountScope, ListPage } from './components.tsx';
import { useKeys } from './queries.ts';
import { type NewSecret, SecretDialog } from './SecretDialog.tsx';

const ROLE_LABELS: Readonly<Record<Role, { readonly name: string; readonly permissions: string }>> = {
  read: {
    name: 'Read',
    permissions: 'Reads jobs, events and states. Customer addresses are masked.',
  },
  operate: {
    name: 'Operate',
    permissions: 'The permissions of Read. Also pauses, resumes, confirms, pings, replays and retries.',
  },
  admin: {
    name: 'Admin',
    permissions:
      'The permissions of Operate. Also creates, changes and deletes accounts, endpoints, recipients and keys.',
  },
};

/** The list of keys. Without the role admin, only the key of the session. */
export function KeysPage() {
  const { hasRole } = useSession();
  if (hasRole('admin')) return <AllKeys />;
  return (
    <Page title="Keys">
      <Note>Other keys are visible only with the role admin.</Note>
      <OwnKey />
    </Page>
  );
}

/** The list of keys, newest first. */
function AllKeys() {
  const api = useApi();
  const keys = useKeys();
  const { key: own } = useSession();
  const data = keys.data?.toSorted((a, b) => (a.createdAt < b.createdAt ? 1 : -1));
  return (
    <ListPage
      title="Keys"
      noun="key"
      purpose="API keys of users and programs, with their role, accounts and expiry."
      newHref="/setup/new-key"
      query={{ ...keys, data }}
      empty="No keys yet. Each key that you create appears here."
      csv={(options) => api.csv('/v1/keys', { ...options })}
      getKey={({ id }) => id}
      columns={{
        Key: ({ id, name }) => (
          <>
            <div className={ui.name}>{name ?? 'Unnamed'}</div>
            <div className={ui.hint}>
              {id}
              {id === own.id ? ', the key you signed in with' : ''}
            </div>
          </>
        ),
        Role: ({ role }) => ROLE_LABELS[role].name,
        Accounts: { wide: true, render: ({ accounts }) => accounts?.join(', ') ?? 'All' },
        Created: ({ createdAt, createdByUser: by }) => (
          <>
            <RelativeTime at={createdAt} />
            {by ? <div className={ui.hint}>by {by.name ?? by.subject}</div> : null}
          </>
        ),
        'Last used': ({ lastUsedAt }) => <RelativeTime at={lastUsedAt} none="Never" />,
        Expires: ({ expiresAt }) => <Expiry at={expiresAt} />,
        Actions: { hiddenName: true, render: (key) => <Revoke of={key} /> },
      }}
    >
      {data?.some(({ id }) => id === own.id) === false ? <OwnKey /> : null}
    </ListPage>
  );
}

/** The key of the session, if it is not in the list. */
function OwnKey() {
  const { id, name, role, accounts, expiresAt, user } = useSession().key;
  return (
    <Panel title={user ? 'The user you signed in as' : 'The key you signed in with'}>
      <DescriptionList
        rows={{
          Name: name ?? user?.subject ?? (id === 'bootstrap' ? formatKeyId(id) : '–'),
          Role: ROLE_LABELS[role].name,
          Accounts: accounts?.join(', ') ?? 'All',
          // The token of a user is renewed.
          ...(user ? {} : { Expires: <Expiry at={expiresAt} /> }),
        }}
      />
      {id === 'bootstrap' ? (
        <p className={ui.hint}>
          Declared in the configuration as <code>apiKey</code>, and can only be changed there.
        </p>
      ) : null}
    </Panel>
  );
}

function Expiry({ at }: { readonly at: string | null }) {
  if (at === null) return 'Never';
  return Date.parse(at) <= Date.now() ? <Badge tone="warn">Expired</Badge> : <Timestamp at={at} />;
}

/** Button that revokes a key after confirmation. */
export function Revoke({ of: key }: { readonly of: ApiKey }) {
  const api = useApi();
  const confirm = useConfirm();
  const queries = useQueryClient();
  const { key: own, signOut } = useSession();
  const name = key.name ?? key.id;
  const isOwn = key.id === own.id;
  const body = (
    <>
      <p>Requests with this key are rejected within 30 seconds. This cannot be undone.</p>
      <p>Open streams of the key are closed. Keys created with it remain valid.</p>
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
  const { key: own, hasAllAccounts } = useSession();
  const [created, setCreated] = useState<NewSecret | null>(null);
  const form = useApiForm({
    schema: NewKey,
    initial: {
      name: '',
      role: 'read' as Role,
      accountScope: (hasAllAccounts ? 'all' : 'some') as 'all' | 'some',
      accounts: [] as readonly string[],
      expiry: (own.expiresAt === null ? 'never' : 'at') as 'never' | 'at',
      expiresAt: '',
    },
    toBody: ({ name, role, accountScope, accounts, expiry, expiresAt }) => ({
      ...(name.trim() === '' ? {} : { name: name.trim() }),
      role,
      ...(accountScope === 'all' ? {} : { accounts }),
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
  const { values } = form.form;
  const time = parseLocalTime(values.expiresAt);
  return (
    <Page title="New key">
      <Form of={form}>
        <Panel title="Key">
          <TextField name="name" label="Name" description="Purpose of the key." spellCheck />
          <SelectField
            name="role"
            label="Role"
            description={ROLE_LABELS[values.role].permissions}
            data={ROLES.filter((role) => roleAllows(own.role, role)).map((value) => ({
              value,
              label: ROLE_LABELS[value].name,
            }))}
          />
          <AccountScope />
          <Group
            name="Expiry"
            hint={own.expiresAt && `At the latest when your key expires: ${formatExactTime(own.expiresAt)}`}
          >
            <RadioFields
              name="expiry"
              options={{ ...(own.expiresAt === null && { never: 'Never' }), at: 'At a time' }}
            />
            {values.expiry === 'at' ? (
              <TextField
                name="expiresAt"
                label="Expiry time"
                type="datetime-local"
                description={time === undefined ? `Time zone: ${getZone()}` : formatExactTime(time)}
              />
            ) : null}
          </Group>
        </Panel>
        <FormActions verb="Create key" cancel={link('/setup/keys')} />
      </Form>
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
