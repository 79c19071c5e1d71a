/** The checklist: each step with its state, its form in a dialog, and its live result. */
import { CheckIcon } from '@heroicons/react/16/solid';
import { Button, NativeSelect } from '@mantine/core';
import { type UseMutationResult, useMutation, useQueryClient } from '@tanstack/react-query';
import { type ReactNode, useState } from 'react';
import { Link } from 'wouter';
import { withEndpoint, withId } from '../api.ts';
import { CredentialsReport } from '../CredentialsReport.tsx';
import { Failure, Hidden, Note, useNarrow } from '../components.tsx';
import { InputDialog } from '../dialogs.tsx';
import { PingReport } from '../health/components.tsx';
import { toAccountState } from '../health/status.ts';
import { loadLater } from '../load-later.tsx';
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

const NewAccountForm = loadLater(async () => (await import('../setup/NewAccountForm.tsx')).NewAccountForm);
const NewEndpointForm = loadLater(async () => (await import('../setup/NewEndpointForm.tsx')).NewEndpointForm);
const NotificationSettings = loadLater(
  async () => (await import('../customers/SettingsPage.tsx')).NotificationSettings,
);

const TITLES: Readonly<Record<StepId, string>> = {
  account: 'Add an account',
  observation: 'Baseline',
  endpoint: 'Create an endpoint',
  delivery: 'First delivery',
  notifications: 'Notify customers',
};
const STATES: Readonly<Record<StepState, string>> = { done: 'Done', open: 'To do', later: 'Later' };

export function Checklist(props: { readonly steps: readonly Step[]; readonly deployment: Deployment }) {
  const { steps, deployment } = props;
  const { accounts, endpoints } = deployment;
  const api = useApi();
  const queries = useQueryClient();
  const [chosen, setChosen] = useState<string>();
  const test = useMutation({
    mutationFn: (account: string) => api.post('/v1/accounts/{id}/test', withId(account)),
  });
  const ping = useMutation({
    mutationFn: (endpoint: { readonly region: string; readonly id: string }) =>
      api.post('/v1/endpoints/{id}/ping', withEndpoint(endpoint)),
  });
  const refresh = () => void queries.invalidateQueries({ queryKey: ['deployment'] });
  const notified = chosen ?? accounts[0]?.id;
  const contents: Readonly<Record<StepId, (state: StepState) => ReactNode>> = {
    account: (state) => (
      <FormStep
        state={state}
        done={`${formatCount(accounts.length, 'account')} of the ordering API.`}
        purpose="An account of the ordering API, with the client id and the client secret of its API credentials."
        verb="Add an account"
        title="New account"
        onSaved={(account: Account) => {
          refresh();
          test.mutate(account.id);
        }}
        renderForm={(onCreated) => <NewAccountForm onCreated={onCreated} />}
      >
        <Result of={test} pending="Testing the credentials…">
          {(report) => <CredentialsReport report={report} />}
        </Result>
      </FormStep>
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
      <FormStep
        state={state}
        done={`${formatCount(endpoints.length, 'endpoint')}.`}
        purpose="A webhook URL that receives the events, signed and in order for each job."
        verb="Create an endpoint"
        title="New endpoint"
        onSaved={(endpoint: { readonly region: string; readonly id: string }) => {
          refresh();
          ping.mutate(endpoint);
        }}
        renderForm={(onCreated) => <NewEndpointForm start="beginning" onCreated={onCreated} />}
      >
        <Result of={ping} pending="Sending a ping…">
          {(report) => <PingReport report={report} />}
        </Result>
      </FormStep>
    ),
    delivery: (state) => (
      <DeliveryStep state={state} deployment={deployment} onPing={ping.mutate} isPinging={ping.isPending} />
    ),
    notifications: (state) => (
      <FormStep
        state={notified === undefined && state === 'open' ? 'later' : state}
        done="Customers are notified when their orders are dispatched."
        purpose="E-mails and SMS to customers when their orders are dispatched."
        choice={
          accounts.length > 1 ? (
            <NativeSelect
              aria-label="Account whose customers are notified"
              data={accounts.map(({ id }) => id)}
              value={notified}
              onChange={({ currentTarget: { value } }) => setChosen(value)}
            />
          ) : null
        }
        verb="Set up notifications"
        title={`Notifications of ${notified}`}
        onSaved={refresh}
        renderForm={(onSaved) => <NotificationSettings account={notified ?? ''} onSaved={onSaved} />}
      />
    ),
  };
  return (
    <ol className={ui.list} aria-label="Steps">
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

/** A step with a form in a dialog. `onSaved`: called after the form, which then closes. `children`: result of the step. */
function FormStep<T extends readonly unknown[]>(props: {
  readonly state: StepState;
  /** Text if the step is done. */
  readonly done: string;
  /** Text if it is not done. */
  readonly purpose: string;
  /** Control in front of the button. */
  readonly choice?: ReactNode;
  readonly verb: string;
  /** Title of the dialog. */
  readonly title: string;
  readonly onSaved: (...saved: T) => void;
  readonly renderForm: (onSaved: (...saved: T) => void) => ReactNode;
  readonly children?: ReactNode;
}) {
  const { state, onSaved } = props;
  const isNarrow = useNarrow();
  const [isOpen, setOpen] = useState(false);
  return (
    <>
      <p className={ui.hint}>{state === 'done' ? props.done : props.purpose}</p>
      {state === 'open' ? (
        <div className={ui.actions}>
          {props.choice}
          <Button variant="filled" onClick={() => setOpen(true)}>
            {props.verb}
          </Button>
        </div>
      ) : null}
      {props.children}
      <InputDialog
        opened={isOpen}
        onClose={() => setOpen(false)}
        title={props.title}
        size="xl"
        fullScreen={isNarrow}
      >
        {props.renderForm((...saved) => {
          setOpen(false);
          onSaved(...saved);
        })}
      </InputDialog>
    </>
  );
}

/** The result of a request that a step sends. */
function Result<T>(props: {
  readonly of: Pick<UseMutationResult<T>, 'isPending' | 'error' | 'data'>;
  readonly pending: string;
  readonly children: (data: T) => ReactNode;
}) {
  const { isPending, error, data } = props.of;
  return (
    <>
      {isPending ? <Note live>{props.pending}</Note> : null}
      {error ? <Failure error={error} /> : null}
      {data ? props.children(data) : null}
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
  const { hasRole } = useSession();
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
        {account.id} has {formatCount(status?.openJobs ?? 0, 'open job')}. Last observed{' '}
        <RelativeTime at={status?.observedThrough ?? null} />.
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
      {hasRole('operate') && status?.problem ? (
        <div className={ui.actions}>
          <Button size="xs" loading={isTesting} onClick={() => onTest(account.id)}>
            Test the credentials
          </Button>
          <Link href={link(accountHref(account.id))}>View health</Link>
        </div>
      ) : null}
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
  const { hasRole } = useSession();
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
        {hasRole('operate') ? (
          <Button size="xs" loading={isPinging} onClick={() => onPing(endpoint)}>
            Ping {endpoint.id}
          </Button>
        ) : null}
        <Link href={link(endpointHref(endpoint.region, endpoint.id))}>View deliveries and replays</Link>
      </div>
    </>
  );
}
