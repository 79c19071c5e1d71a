/** API keys: who may do what, a new one, and taking one away. */
import { Button, NativeSelect, Radio, TextInput } from '@mantine/core';
import { useQuery, useQueryClient } from '@tanstack/react-query';
import { useState } from 'react';
import { Link, useLocation } from 'wouter';
import type * as z from 'zod';
import { type KeyRecord, NewKey, ROLES, type Role, roleAllows } from '../../../shared/api/key-input.ts';
import { Badge, Empty, Facts, Failure, Note, Page, Panel, showToast, useConfirm } from '../components.tsx';
import { parseLocalTime } from '../dates.ts';
import type { FieldErrors } from '../form-validation.ts';
import { useApiForm } from '../forms.ts';
import { allPages, useAccounts, useApi } from '../queries.ts';
import { useSession } from '../session.ts';
import { formatExactTime, RelativeTime, Timestamp } from '../times.tsx';
import { AccountChoices, ButtonLink, FormActions, Group, useSetupHref } from './components.tsx';
import { type NewSecret, SecretDialog } from './SecretDialog.tsx';
import css from './setup.module.css';

type Key = z.infer<typeof KeyRecord>;

const ROLE_WORDS: Readonly<Record<Role, { readonly name: string; readonly what: string }>> = {
  read: { name: 'Read', what: 'sees jobs, events and how things stand; addresses of customers only in part' },
  operate: { name: 'Operate', what: 'pauses, resumes, confirms, pings, replays and retries besides' },
  admin: {
    name: 'Admin',
    what: 'makes, changes and deletes accounts, endpoints, customers and keys besides',
  },
};

/** The keys that the own one may see; null for keys that see none. */
export function useKeys() {
  const api = useApi();
  const { may } = useSession();
  return useQuery({
    queryKey: ['keys'],
    queryFn: ({ signal }) => allPages<Key>(api, '/v1/keys', 'keys', { signal }),
    refetchInterval: 30_000,
    enabled: may('admin'),
  });
}

/** All keys. */
export function KeysPage() {
  const { data: keys, error, refetch } = useKeys();
  const { may, key: own } = useSession();
  const link = useSetupHref();
  const isListed = keys?.some(({ id }) => id === own.id) === true;
  return (
    <Page
      title="Keys"
      actions={may('admin') ? <ButtonLink href={link('/setup/new-key')}>New key</ButtonLink> : null}
    >
      <p className={css.what}>Who may read, operate or change what is here: people and programs alike.</p>
      {may('admin') ? null : (
        <Note>Only keys of the role admin see other keys. This is the one you signed in with.</Note>
      )}
      {error && !keys ? <Failure error={error} again={refetch} /> : null}
      {may('admin') && (keys === undefined || isListed) ? null : (
        <Panel title="The key you signed in with">
          <Facts
            rows={[
              ['Name', own.name ?? (own.id === 'bootstrap' ? 'The key of the configuration' : '–')],
              ['Role', ROLE_WORDS[own.role].name],
              ['Accounts', own.accounts === null ? 'All' : own.accounts.join(', ')],
              ['Expires', own.expiresAt === null ? 'Never' : <Timestamp key="at" at={own.expiresAt} />],
            ]}
          />
          {own.id === 'bootstrap' ? (
            <p className={css.what}>
              It is declared in the configuration, under <code>apiKey</code>, and can only be changed there.
            </p>
          ) : null}
        </Panel>
      )}
      {keys?.length === 0 ? <Empty>No key has been made yet.</Empty> : null}
      {keys && keys.length > 0 ? <KeyTable keys={keys} /> : null}
    </Page>
  );
}

function KeyTable({ keys }: { readonly keys: readonly Key[] }) {
  const { key: own } = useSession();
  const newestFirst = [...keys].sort((a, b) => (a.createdAt < b.createdAt ? 1 : -1));
  return (
    <Panel title={keys.length === 1 ? '1 key' : `${keys.length} keys`}>
      <div className={css.wide}>
        <table className={css.table}>
          <thead>
            <tr>
              <th>Key</th>
              <th>Role</th>
              <th className={css.extra}>Accounts</th>
              <th className={css.extra}>Made</th>
              <th className={css.extra}>Last used</th>
              <th>Expires</th>
              <th>
                <span className={css.quiet}>Act</span>
              </th>
            </tr>
          </thead>
          <tbody>
            {newestFirst.map((key) => (
              <tr key={key.id}>
                <td className={css.break}>
                  <div className={css.name}>{key.name ?? 'Without a name'}</div>
                  <div className={`${css.quiet} ${css.small}`}>
                    {key.id}
                    {key.id === own.id ? ', the one you signed in with' : ''}
                  </div>
                </td>
                <td>{ROLE_WORDS[key.role].name}</td>
                <td className={`${css.extra} ${css.break}`}>
                  {key.accounts === null ? 'All' : key.accounts.join(', ')}
                </td>
                <td className={css.extra}>
                  <RelativeTime at={key.createdAt} />
                </td>
                <td className={css.extra}>
                  {key.lastUsedAt === null ? 'Not yet' : <RelativeTime at={key.lastUsedAt} />}
                </td>
                <td>
                  {key.expiresAt === null ? (
                    'Never'
                  ) : Date.parse(key.expiresAt) <= Date.now() ? (
                    <Badge tone="warn">Expired</Badge>
                  ) : (
                    <Timestamp at={key.expiresAt} />
                  )}
                </td>
                <td>
                  <Revoke of={key} />
                </td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
    </Panel>
  );
}

function Revoke({ of: key }: { readonly of: Key }) {
  const api = useApi();
  const ask = useConfirm();
  const queries = useQueryClient();
  const { key: own, signOut } = useSession();
  const name = key.name ?? key.id;
  const isOwn = key.id === own.id;
  const what = (
    <>
      <p>Whoever uses it is refused within 30 seconds; that can’t be taken back.</p>
      <p>Streams that are open with it go on to their end, and keys that it has made stay.</p>
      {isOwn ? <p>It is the key you signed in with: you are signed out.</p> : null}
    </>
  );
  return (
    <Button
      size="compact-sm"
      variant="subtle"
      color="red"
      aria-label={`Revoke ${name}`}
      onClick={() =>
        ask({
          title: `Revoke the key ${name}?`,
          body: what,
          verb: 'Revoke',
          destructive: true,
          onConfirm: async () => {
            await api.delete(`/v1/keys/${encodeURIComponent(key.id)}`);
            if (isOwn) return signOut('You revoked the key you were signed in with.');
            showToast(`The key ${name} is revoked.`);
            await queries.invalidateQueries({ queryKey: ['keys'] });
          },
        })
      }
    >
      Revoke
    </Button>
  );
}

/** A new key. It is shown at the end, once. */
export function NewKeyPage() {
  const api = useApi();
  const queries = useQueryClient();
  const [, navigate] = useLocation();
  const link = useSetupHref();
  const { key: own, forAll } = useSession();
  const { data: accounts } = useAccounts();
  const [made, setMade] = useState<NewSecret | null>(null);
  const form = useApiForm({
    schema: NewKey,
    initial: {
      name: '',
      role: 'read' as Role,
      whose: (forAll ? 'all' : 'some') as 'all' | 'some',
      accounts: [] as readonly string[],
      ends: (own.expiresAt === null ? 'never' : 'at') as 'never' | 'at',
      expiresAt: '',
    },
    toBody: ({ name, role, whose, accounts: some, ends, expiresAt }) => ({
      ...(name.trim() === '' ? {} : { name: name.trim() }),
      role,
      ...(whose === 'all' ? {} : { accounts: some }),
      ...(ends === 'never' ? {} : { expiresAt: parseLocalTime(expiresAt) }),
    }),
    check: ({ ends, expiresAt }): FieldErrors => {
      if (ends === 'never') return {};
      const instant = parseLocalTime(expiresAt);
      if (instant === undefined) return { expiresAt: 'It must be a day and a time.' };
      return Date.parse(instant) <= Date.now() ? { expiresAt: 'It must be in the future.' } : {};
    },
    send: async (body) => {
      const { key, secret } = await api.post<{ readonly key: Key; readonly secret: string }>('/v1/keys', {
        body,
      });
      void queries.invalidateQueries({ queryKey: ['keys'] });
      setMade({
        secret,
        title: `The key ${key.name ?? key.id} is made`,
        name: 'The key',
        note: (
          <p className={css.what}>
            Sign in with it, or send it as <code>Authorization: Bearer …</code>.
          </p>
        ),
      });
    },
  });
  const { values, errors, getInputProps, setFieldValue } = form.form;
  const instant = parseLocalTime(values.expiresAt);
  return (
    <Page title="New key">
      <form className={css.form} onSubmit={form.submit} noValidate>
        <Panel title="Key">
          <div className={css.fields}>
            <TextInput
              label="Name"
              description="What it is for, in your words."
              autoComplete="off"
              {...getInputProps('name')}
            />
            <NativeSelect
              label="Role"
              description={`It ${ROLE_WORDS[values.role].what}.`}
              data={ROLES.filter((role) => roleAllows(own.role, role)).map((value) => ({
                value,
                label: ROLE_WORDS[value].name,
              }))}
              {...getInputProps('role')}
            />
            <Group name="Accounts" path="accounts" error={errors.accounts}>
              {forAll ? (
                <>
                  <Radio
                    label="All, also those that come later"
                    name="whose"
                    {...getInputProps('whose', { type: 'radio', value: 'all' })}
                  />
                  <Radio
                    label="Only these"
                    name="whose"
                    {...getInputProps('whose', { type: 'radio', value: 'some' })}
                  />
                </>
              ) : null}
              {values.whose === 'some' ? (
                <AccountChoices
                  offered={forAll ? (accounts ?? []).map(({ id }) => id) : (own.accounts ?? [])}
                  chosen={values.accounts}
                  choose={(chosen) => setFieldValue('accounts', chosen)}
                />
              ) : null}
            </Group>
            <Group
              name="Expires"
              {...(own.expiresAt === null
                ? {}
                : { hint: `At the latest with yours: ${formatExactTime(own.expiresAt)}` })}
            >
              {own.expiresAt === null ? (
                <Radio
                  label="Never"
                  name="ends"
                  {...getInputProps('ends', { type: 'radio', value: 'never' })}
                />
              ) : null}
              <Radio
                label="At a time"
                name="ends"
                {...getInputProps('ends', { type: 'radio', value: 'at' })}
              />
              {values.ends === 'at' ? (
                <TextInput
                  label="From then on it is refused"
                  type="datetime-local"
                  description={instant === undefined ? 'By your clock.' : formatExactTime(instant)}
                  {...getInputProps('expiresAt')}
                />
              ) : null}
            </Group>
          </div>
        </Panel>
        <FormActions of={form} verb="Make the key" more={<Link href={link('/setup/keys')}>Cancel</Link>} />
      </form>
      <SecretDialog
        made={made}
        done={() => {
          setMade(null);
          navigate(link('/setup/keys'));
        }}
      />
    </Page>
  );
}
