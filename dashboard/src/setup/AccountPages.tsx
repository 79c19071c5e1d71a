/** Account pages: a new account, and the settings of one account. */
import { useQuery, useQueryClient } from '@tanstack/react-query';
import { type ReactNode, useEffect, useRef, useState } from 'react';
import { useLocation } from 'wouter';
import * as z from 'zod';
import type { Account } from '../../../client/index.ts';
import { AccountUpdate, NewCredentials } from '../../../shared/accounts/account-input.ts';
import { hasStatus, withId, withRevision } from '../api.ts';
import { DescriptionList, Failure, Loaded, Note, Page, Panel, showToast } from '../components.tsx';
import { AreaField, CheckField, Form, FormActions, NumberField } from '../form.tsx';
import { useApiForm, useResourceForm } from '../forms.ts';
import { useApi } from '../queries.ts';
import { ResourcePage } from '../ResourcePage.tsx';
import { type Resource, useResource } from '../resources.ts';
import { useSession } from '../session.ts';
import { formatInterval } from '../texts.ts';
import { RelativeTime } from '../times.tsx';
import ui from '../ui.module.css';
import { useLeaveGuard } from '../unsaved-changes.ts';
import { ACCOUNTS_PATH, accountHref, useHref } from '../urls.ts';
import { DeclaredNote, DeletePanel } from './components.tsx';
import { CredentialFields, NO_CREDENTIALS, TestAccount, TestNewCredentials } from './credentials.tsx';
import { toEventSettings, toEventValues } from './event-settings.ts';
import { IntervalField, NewAccountForm, ReferenceField, toInterval } from './NewAccountForm.tsx';

/** One account. Editable with the role admin, unless it is declared in the configuration file. */
export function AccountPage({ id }: { readonly id: string }) {
  const api = useApi();
  const [deleting, setDeleting] = useState<Account | null>(null);
  const account = useResource(
    ['accounts', 'one', id],
    ['accounts'],
    (): Promise<Account> => api.get('/v1/accounts/{id}', withId(id)),
    { enabled: deleting === null },
  );
  const finish = useAfterDeletion();
  if (deleting) return <DeletionPage account={deleting} finish={() => finish(id)} />;
  return (
    <ResourcePage title={`Account ${id}`} tab="settings" toHref={(tab) => accountHref(id, tab)}>
      <Loaded query={account}>
        {(resource) => (
          <AccountPanels
            resource={resource}
            onDeleted={(complete) => (complete ? finish(id) : setDeleting(resource.latest))}
          />
        )}
      </Loaded>
    </ResourcePage>
  );
}

interface AccountProps {
  readonly resource: Resource<Account>;
}

/** `onDeleted`: called with whether all data of the account is deleted. Otherwise deletion continues. */
function AccountPanels(props: AccountProps & { readonly onDeleted: (complete: boolean) => void }) {
  const { resource, onDeleted } = props;
  const { hasRole, hasAllAccounts } = useSession();
  const account = resource.latest;
  const { id, managed, createdAt, changedAt } = account;
  return (
    <>
      {managed ? null : <DeclaredNote what={`Account ${id}`} part="accounts" />}
      <Panel title="Account">
        <DescriptionList
          rows={{
            Id: id,
            Region: account.region.toUpperCase(),
            'Poll interval': `${formatInterval(account.pollIntervalSeconds)}${account.paused ? ', paused' : ''}`,
            Credentials: formatCredentials(account),
            Created: createdAt ? <RelativeTime at={createdAt} /> : undefined,
            Modified: changedAt ? <RelativeTime at={changedAt} /> : undefined,
          }}
        />
        {hasRole('operate') ? <TestAccount account={id} /> : null}
      </Panel>
      {managed && hasRole('admin') ? (
        <>
          <CredentialsPanel resource={resource} />
          {account.secretRef !== null && hasAllAccounts ? (
            <FieldPanel
              resource={resource}
              title="Credentials secret"
              toValues={({ secretRef }) => ({ secretRef: secretRef ?? '' })}
              toBody={({ secretRef }) => ({ secretRef: secretRef.trim() })}
              verb="Save"
            >
              <ReferenceField />
            </FieldPanel>
          ) : null}
          <FieldPanel
            resource={resource}
            title="Poll interval"
            toValues={({ pollIntervalSeconds }) => ({ pollIntervalSeconds: String(pollIntervalSeconds) })}
            toBody={toInterval}
            verb="Save interval"
          >
            <IntervalField />
          </FieldPanel>
          <FieldPanel
            resource={resource}
            title="Event settings"
            toValues={({ events }) => ({ events: toEventValues(events) })}
            toBody={({ events }) => ({ events: toEventSettings(events) })}
            verb="Save events"
          >
            <EventSettingsFields />
          </FieldPanel>
          <DeleteAccount account={account} onDeleted={onDeleted} />
        </>
      ) : null}
    </>
  );
}

/** A panel that changes one field of the account. */
function FieldPanel<V extends object>(
  props: AccountProps & {
    readonly title: string;
    readonly toValues: (account: Account) => V;
    readonly toBody: (values: V) => unknown;
    readonly verb: string;
    readonly children: ReactNode;
  },
) {
  const { resource, title, toValues, toBody, verb } = props;
  const api = useApi();
  const form = useResourceForm({
    schema: AccountUpdate,
    resource,
    toValues,
    toBody,
    save: (body, { id, revision }) =>
      api.patch('/v1/accounts/{id}', { ...withRevision(withId(id), revision), body }),
    done: ({ id }) => `${title} of ${id} saved.`,
    labels: {
      pollIntervalSeconds: 'poll interval',
      secretRef: 'credentials',
      paused: 'paused',
      events: 'events',
    },
  });
  return (
    <Panel title={title}>
      <Form of={form}>
        {props.children}
        <FormActions verb={verb} />
      </Form>
    </Panel>
  );
}

function EventSettingsFields() {
  return (
    <>
      <div className={ui.columns}>
        <NumberField
          name="events.dueSoonHours"
          label="Due soon (hours)"
          description="Lead time of job.due_soon before the due time. Empty: not emitted."
        />
        <NumberField
          name="events.stalledAfterWorkingDays"
          label="Stalled (working days)"
          description="Time in one status until job.stalled. Empty: not emitted."
        />
      </div>
      <AreaField
        name="events.stalledByStatus"
        label="Stalled, by status"
        description="Different numbers for some statuses, one per line: In production = 3. Without a number, the event is not emitted."
      />
      <AreaField
        name="events.attentionStatuses"
        label="Statuses that need attention"
        description="Status names for job.needs_attention, one per line."
      />
      <CheckField name="events.payments" label="Payments" description="Emit events about payments." />
    </>
  );
}

function CredentialsPanel({ resource: { latest, store } }: AccountProps) {
  const { id, region } = latest;
  const api = useApi();
  const { hasAllAccounts } = useSession();
  const form = useApiForm({
    schema: z.object({ credentials: NewCredentials }),
    initial: { credentials: NO_CREDENTIALS },
    toBody: (values) => values,
    send: async ({ credentials: body }: { credentials: typeof NO_CREDENTIALS }) => {
      store(await api.put('/v1/accounts/{id}/credentials', { ...withId(id), body }));
      form.form.setValues({ credentials: NO_CREDENTIALS });
      form.markSaved({ credentials: NO_CREDENTIALS });
      showToast(`Credentials of ${id} replaced.`);
    },
    // The API names fields without the prefix: credentials are the whole body there.
    toField: ([field, part]) => (part ? `credentials.${String(part)}` : `credentials.${String(field)}`),
  });
  return (
    <Panel title="New credentials">
      <Form of={form}>
        <p className={ui.hint}>
          The new credentials replace the current ones immediately. The account is polled with them at once,
          unless it is paused or waits for a confirmation.
        </p>
        <CredentialFields />
        {hasAllAccounts ? <TestNewCredentials region={region} /> : null}
        <FormActions verb="Replace credentials" />
      </Form>
    </Panel>
  );
}

function DeleteAccount(props: {
  readonly account: Account;
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
      kept="The ordering API is not changed."
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
    navigate(link(ACCOUNTS_PATH));
    queries.removeQueries({ queryKey: ['accounts', 'one', account] });
    void queries.invalidateQueries({ queryKey: ['accounts'], exact: true });
    showToast(`Account ${account} deleted.`);
  };
}

/** Progress page: repeats the request until all data of a large account is deleted. */
function DeletionPage(props: { readonly account: Account; readonly finish: () => void }) {
  const { account } = props;
  const api = useApi();
  useLeaveGuard(true, {
    title: 'Leave before the data is removed?',
    body: 'On AWS, the removal stops when you leave this page. To resume it, send the request of the API again.',
  });
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
        if (hasStatus(cause, 404)) return true;
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
        Account {account.id} is deleted. The removal of its data is in progress. Keep this page open until it
        is complete. Self-hosted, the removal also continues without this page.
      </Note>
    </Page>
  );
}

/** The page with the form of a new account. */
export function NewAccountPage() {
  const [, navigate] = useLocation();
  const link = useHref();
  return (
    <Page title="New account">
      <NewAccountForm cancel={link(ACCOUNTS_PATH)} onCreated={({ id }) => navigate(link(accountHref(id)))} />
    </Page>
  );
}

function formatCredentials({ managed, secretRef }: Account): ReactNode {
  if (!managed) return 'In the configuration';
  return secretRef === null ? 'Stored in Jobwire' : <code>{secretRef}</code>;
}
