/** The checklist: each step with its state, its form in a dialog, and its live result. */
import { CheckIcon } from '@heroicons/react/16/solid';
import { Button, Modal, NativeSelect } from '@mantine/core';
import { useMutation, useQueryClient } from '@tanstack/react-query';
import { lazy, type ReactNode, Suspense, useState } from 'react';
import { Link } from 'wouter';
import { withEndpoint, withId } from '../api.ts';
import { CredentialsReport } from '../CredentialsReport.tsx';
import { Failure, Hidden, Loading, Note, useNarrow } from '../components.tsx';
import { PingReport } from '../health/components.tsx';
import { toAccountState } from '../health/status.ts';
import { type Account, useApi } from '../queries.ts';
import { useSession } from '../session.ts';
import { useNow } from '../stream-hooks.ts';
import { formatCount } from '../texts.ts';
import { RelativeTime } from '../times.tsx';
import ui from '../ui.module.css';
import { accountHref, endpointHref, useHref } from '../urls.ts';
import css from './Checklist.module.css';
import type { Deployment } from './deployment.ts';
import type { Step, StepId, StepState } from './steps.ts';

const NewAccountForm = lazy(async () => ({
  default: (await import('../setup/NewAccountForm.tsx')).NewAccountForm,
}));
const NewEndpointForm = lazy(async () => ({
  default: (await import('../setup/NewEndpointForm.tsx')).NewEndpointForm,
}));
const NotificationSettings = lazy(async () => ({
  default: (await import('../customers/SettingsPage.tsx')).NotificationSettings,
}));

const TITLES: Readonly<Record<StepId, string>> = {
  account: 'Add an account',
  observation: 'First observation',
  endpoint: 'Create an endpoint',
  delivery: 'First delivery',
  notifications: 'Notify customers',
};
const STATES: Readonly<Record<StepState, string>> = { done: 'Done', open: 'To do', later: 'Later' };

export function Checklist(props: { readonly steps: readonly Step[]; readonly deployment: Deployment }) {
  const { steps, deployment } = props;
  const api = useApi();
  const queries = useQueryClient();
  const test = useMutation({
    mutationFn: (account: string) => api.post('/v1/accounts/{id}/test', withId(account)),
  });
  const ping = useMutation({
    mutationFn: (endpoint: { readonly region: string; readonly id: string }) =>
      api.post('/v1/endpoints/{id}/ping', withEndpoint(endpoint)),
  });
  const refresh = () => void queries.invalidateQueries({ queryKey: ['deployment'] });
  const contents: Readonly<Record<StepId, (state: StepState) => ReactNode>> = {
    account: (state) => (
      <AccountStep
        state={state}
        deployment={deployment}
        onCreated={({ id }) => {
          refresh();
          test.mutate(id);
        }}
      >
        {test.isPending ? <Note live>Testing the credentials…</Note> : null}
        {test.error ? <Failure error={test.error} /> : null}
        {test.data ? <CredentialsReport report={test.data} /> : null}
      </AccountStep>
    ),
    observation: (state) => (
      <ObservationStep
        state={state}
        deployment={deployment}
        onTest={test.mutate}
        isTesting={test.isPending}
      />
    ),
    endpoint: (state) => (
      <EndpointStep
        state={state}
        deployment={deployment}
        onCreated={(endpoint) => {
          refresh();
          ping.mutate(endpoint);
        }}
      >
        {ping.isPending ? <Note live>Sending a ping…</Note> : null}
        {ping.error ? <Failure error={ping.error} /> : null}
        {ping.data ? <PingReport report={ping.data} /> : null}
      </EndpointStep>
    ),
    delivery: (state) => (
      <DeliveryStep state={state} deployment={deployment} onPing={ping.mutate} isPinging={ping.isPending} />
    ),
    notifications: (state) => <NotificationsStep state={state} deployment={deployment} onSaved={refresh} />,
  };
  return (
    <ol className={css.steps} aria-label="Steps">
      {steps.map(({ id, state }, at) => (
        <li key={id} className={css.step} data-state={state}>
          <span className={css.mark} aria-hidden>
            {state === 'done' ? <CheckIcon width={16} /> : at + 1}
          </span>
          <div className={css.body}>
            <h3 className={css.title}>
              {TITLES[id]} <Hidden>({STATES[state]})</Hidden>
            </h3>
            {contents[id](state)}
          </div>
        </li>
      ))}
    </ol>
  );
}

function AccountStep(props: {
  readonly state: StepState;
  readonly deployment: Deployment;
  readonly onCreated: (account: Account) => void;
  readonly children: ReactNode;
}) {
  const { state, onCreated } = props;
  const { accounts } = props.deployment;
  const [isOpen, setOpen] = useState(false);
  return (
    <>
      <p className={ui.hint}>
        {state === 'done'
          ? `${formatCount(accounts.length, 'account')} of the ordering system.`
          : 'An account of the ordering system, with the client id and the client secret of its API credentials.'}
      </p>
      {state === 'done' ? null : (
        <div className={ui.actions}>
          <Button onClick={() => setOpen(true)}>Add an account</Button>
        </div>
      )}
      {props.children}
      <StepDialog title="New account" isOpen={isOpen} close={() => setOpen(false)}>
        <NewAccountForm
          onCreated={(account) => {
            setOpen(false);
            onCreated(account);
          }}
        />
      </StepDialog>
    </>
  );
}

function ObservationStep(props: {
  readonly state: StepState;
  readonly deployment: Deployment;
  readonly onTest: (account: string) => void;
  readonly isTesting: boolean;
}) {
  const { state, deployment, onTest, isTesting } = props;
  const { may } = useSession();
  const link = useHref();
  const now = useNow(5_000);
  const { accounts } = deployment;
  const account = accounts.find(({ status }) => status?.observedThrough != null) ?? accounts[0];
  if (!account)
    return (
      <p className={ui.hint}>
        {state === 'later' ? 'Jobwire polls the account as soon as it is added.' : null}
      </p>
    );
  const { status } = account;
  if (state === 'done')
    return (
      <p className={ui.hint} role="status">
        {account.id} has {formatCount(status?.openJobs ?? 0, 'open job')}. All changes made until{' '}
        <RelativeTime at={status?.observedThrough ?? null} /> have been observed.
      </p>
    );
  const { label, tone, meaning } = toAccountState(account, now);
  return (
    <>
      <Note tone={status?.problem || tone === 'bad' ? 'bad' : 'plain'} live>
        <p>
          {status?.lastPollAt
            ? `${label}. ${status.problem ?? meaning}`
            : `The first poll of ${account.id} is in progress.`}
        </p>
      </Note>
      {may('operate') && status?.problem ? (
        <div className={ui.actions}>
          <Button size="xs" variant="default" loading={isTesting} onClick={() => onTest(account.id)}>
            Test the credentials
          </Button>
          <Link href={link(accountHref(account.id))}>View health</Link>
        </div>
      ) : null}
    </>
  );
}

function EndpointStep(props: {
  readonly state: StepState;
  readonly deployment: Deployment;
  readonly onCreated: (endpoint: { readonly region: string; readonly id: string }) => void;
  readonly children: ReactNode;
}) {
  const { state, onCreated } = props;
  const { endpoints } = props.deployment;
  const [isOpen, setOpen] = useState(false);
  return (
    <>
      <p className={ui.hint}>
        {state === 'done'
          ? `${formatCount(endpoints.length, 'endpoint')}.`
          : 'A webhook URL that receives the events, signed and in order for each job.'}
      </p>
      {state === 'open' ? (
        <div className={ui.actions}>
          <Button onClick={() => setOpen(true)}>Create an endpoint</Button>
        </div>
      ) : null}
      {props.children}
      <StepDialog title="New endpoint" isOpen={isOpen} close={() => setOpen(false)}>
        <NewEndpointForm
          start="beginning"
          onCreated={(endpoint) => {
            setOpen(false);
            onCreated(endpoint);
          }}
        />
      </StepDialog>
    </>
  );
}

function DeliveryStep(props: {
  readonly state: StepState;
  readonly deployment: Deployment;
  readonly onPing: (endpoint: { readonly region: string; readonly id: string }) => void;
  readonly isPinging: boolean;
}) {
  const { state, deployment, onPing, isPinging } = props;
  const { may } = useSession();
  const link = useHref();
  const [endpoint] = deployment.endpoints;
  if (state === 'done')
    return (
      <p className={ui.hint} role="status">
        An endpoint has acknowledged an event.
      </p>
    );
  if (!endpoint) return <p className={ui.hint}>Events are sent as soon as an endpoint exists.</p>;
  return (
    <>
      <p className={ui.hint} role="status">
        Waiting until {endpoint.id} acknowledges an event. The next change of a job is sent at once.
      </p>
      <div className={ui.actions}>
        {may('operate') ? (
          <Button size="xs" variant="default" loading={isPinging} onClick={() => onPing(endpoint)}>
            Ping {endpoint.id}
          </Button>
        ) : null}
        <Link href={link(endpointHref(endpoint.region, endpoint.id))}>View deliveries and replays</Link>
      </div>
    </>
  );
}

function NotificationsStep(props: {
  readonly state: StepState;
  readonly deployment: Deployment;
  readonly onSaved: () => void;
}) {
  const { state, onSaved } = props;
  const { accounts } = props.deployment;
  const [isOpen, setOpen] = useState(false);
  const [chosen, setChosen] = useState<string>();
  const account = chosen ?? accounts[0]?.id;
  return (
    <>
      <p className={ui.hint}>
        {state === 'done'
          ? 'Customers are notified when their orders are dispatched.'
          : 'E-mails and SMS to customers when their orders are dispatched.'}
      </p>
      {state === 'open' && account !== undefined ? (
        <div className={ui.actions}>
          {accounts.length > 1 ? (
            <NativeSelect
              aria-label="Account whose customers are notified"
              data={accounts.map(({ id }) => id)}
              value={account}
              onChange={({ currentTarget: { value } }) => setChosen(value)}
            />
          ) : null}
          <Button onClick={() => setOpen(true)}>Set up notifications</Button>
        </div>
      ) : null}
      {account === undefined ? null : (
        <StepDialog title={`Notifications of ${account}`} isOpen={isOpen} close={() => setOpen(false)}>
          <NotificationSettings
            account={account}
            onSaved={() => {
              setOpen(false);
              onSaved();
            }}
          />
        </StepDialog>
      )}
    </>
  );
}

/** The form of a step. A click outside does not close it, so that input is not lost. */
function StepDialog(props: {
  readonly title: string;
  readonly isOpen: boolean;
  readonly close: () => void;
  readonly children: ReactNode;
}) {
  const isNarrow = useNarrow();
  return (
    <Modal
      opened={props.isOpen}
      onClose={props.close}
      title={props.title}
      size="xl"
      fullScreen={isNarrow}
      closeOnClickOutside={false}
    >
      <Suspense fallback={<Loading />}>{props.children}</Suspense>
    </Modal>
  );
}
