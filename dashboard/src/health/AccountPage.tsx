/** State, polls and events of one account, with actions. */
import { type ReactNode, useState } from 'react';
import { Link } from 'wouter';
import type { AccountStatus, TestReport } from '../../../client/index.ts';
import { type ActionRunner, useActions } from '../actions.ts';
import { hasStatus, withId, withRevision } from '../api.ts';
import { CredentialsReport } from '../CredentialsReport.tsx';
import { ContentSkeleton, DescriptionList, Failure, Loaded, Panel, TriageSummary } from '../components.tsx';
import { DataTable, QueryTable } from '../DataTable.tsx';
import { EventSummary } from '../EventSummary.tsx';
import { useApi } from '../queries.ts';
import { ResourcePage } from '../ResourcePage.tsx';
import { useSession } from '../session.ts';
import { formatCount, formatInterval } from '../texts.ts';
import { formatDuration, RelativeTime, Timestamp } from '../times.tsx';
import ui from '../ui.module.css';
import { accountHref, useHref } from '../urls.ts';
import { ActionButton, ActionError, PollBars, StateBadge, StateNote } from './components.tsx';
import { ObservedThrough, OpenJobs, ProblemCount } from './OverviewPage.tsx';
import { type AccountDetails, SCANNED_EVENTS, useAccount, useAccountEvents } from './queries.ts';
import { countMissingJobs, getPendingConfirmation, POLL_OUTCOMES, toAccountState } from './status.ts';

export function AccountPage({ id }: { readonly id: string }) {
  const account = useAccount(id);
  const { data, error, refetch, dataUpdatedAt } = account;
  const failure = error ? <Failure error={error} again={refetch} /> : null;
  if (data && !hasStatus(error, 404))
    return (
      <AccountView account={data} readAt={dataUpdatedAt}>
        {failure}
      </AccountView>
    );
  return (
    <ResourcePage title={`Account ${id}`} tab="state" toHref={(tab) => accountHref(id, tab)}>
      {failure ?? <ContentSkeleton />}
    </ResourcePage>
  );
}

/** The events about an account itself. */
export function AccountActivity({ id }: { readonly id: string }) {
  const account = useAccount(id);
  const href = useHref();
  return (
    <ResourcePage
      title={`Account ${id}`}
      tab="activity"
      toHref={(tab) => accountHref(id, tab)}
      actions={<Link href={href('/jobs', { account: id })}>Account jobs</Link>}
    >
      <Loaded query={account} loading={<ContentSkeleton />}>
        {() => <AccountEvents id={id} />}
      </Loaded>
    </ResourcePage>
  );
}

/** `readAt`: time of the data (epoch ms). Without newer data, an account does not become stale. */
function AccountView(props: {
  readonly account: AccountDetails;
  readonly readAt: number;
  readonly children: ReactNode;
}) {
  const { account, readAt: now, children } = props;
  const { record, report, polls } = account;
  const { id } = record;
  const href = useHref();
  const { hasRole } = useSession();
  const runner = useActions([['accounts'], ['accountEvents', id]]);
  const [tested, setTested] = useState<TestReport | null>(null);
  const whole = { ...record, status: report };
  const state = toAccountState(whole, now);
  return (
    <ResourcePage
      title={`Account ${id}`}
      tab="state"
      toHref={(tab) => accountHref(id, tab)}
      actions={
        <>
          <Link href={href('/jobs', { account: id })}>Account jobs</Link>
          {hasRole('operate') ? <Actions account={whole} runner={runner} onTested={setTested} /> : null}
        </>
      }
    >
      {children}
      <StateNote state={state} problem={record.paused ? null : report?.problem}>
        {report && hasRole('operate') ? <ConfirmActions id={id} report={report} runner={runner} /> : null}
      </StateNote>
      <TriageSummary type="account" id={id} account={id} />
      <ActionError runner={runner} />
      {tested ? <CredentialsReport report={tested} /> : null}
      <div className={ui.panels}>
        <Panel title="State">
          <DescriptionList
            rows={{
              Region: record.region.toUpperCase(),
              'Poll interval': record.paused
                ? 'Paused'
                : formatInterval(record.pollIntervalSeconds) +
                  (report?.consecutiveFailures ? ', longer after failed polls' : ''),
              'Observed up to': <ObservedThrough account={whole} now={now} />,
              'Last poll': <RelativeTime at={report?.lastPollAt} none="None yet" />,
              'Next poll': <RelativeTime isPlanned at={report?.nextPollAt} none="None scheduled" />,
              'Consecutive failures': <ProblemCount count={report?.consecutiveFailures ?? 0} />,
              'Open jobs': <OpenJobs account={whole} none="Not yet known" />,
              'Unread jobs': report && report.unreadJobs > 0 ? report.unreadJobs.toLocaleString() : undefined,
              // Without a complete poll, no job can be missing.
              'Missing jobs': report?.observedThrough ? <MissingJobs report={report} /> : undefined,
              'Quarantined since': report?.quarantinedAt ? (
                <Timestamp at={report.quarantinedAt} />
              ) : undefined,
              Credentials: record.secretRef ?? undefined,
              'Managed by': record.managed ? undefined : 'Configuration',
            }}
          />
        </Panel>
        <Panel title="Polls">
          <PollBars polls={polls} />
          <FailedPolls polls={polls} />
        </Panel>
      </div>
    </ResourcePage>
  );
}

function MissingJobs({ report: { missingJobs } }: { readonly report: AccountStatus }) {
  const { pending, suspected, contradictory } = missingJobs;
  if (countMissingJobs(missingJobs) === 0) return 'None';
  return [
    suspected > 0 ? `${suspected} awaiting a second check` : '',
    pending > 0 ? `${pending} not yet investigated` : '',
    contradictory > 0 ? `${contradictory} with contradictory responses` : '',
  ]
    .filter(Boolean)
    .join('; ');
}

/** Failed and partial polls with their problems. */
function FailedPolls({ polls }: { readonly polls: AccountDetails['polls'] }) {
  const rows = polls
    .filter(({ outcome, problem }) => outcome !== 'complete' || problem !== null)
    .map((poll, at, all) => ({ ...poll, isRepeated: at > 0 && poll.problem === all[at - 1]?.problem }));
  if (rows.length === 0) return null;
  return (
    <DataTable
      label="Failed and partial polls"
      rows={rows}
      getKey={({ startedAt }) => startedAt}
      columns={{
        Started: {
          isTime: true,
          render: ({ startedAt }) => <Timestamp at={startedAt} as="clock" />,
        },
        Outcome: ({ outcome }) => <StateBadge state={POLL_OUTCOMES[outcome]} />,
        Duration: { right: true, render: ({ ms }) => formatDuration(ms) },
        'API requests': { right: true, render: ({ requests }) => requests },
        Problem: {
          wide: true,
          render: ({ problem, isRepeated }) =>
            problem === null || isRepeated ? (
              <span className={ui.quiet}>{problem === null ? 'Expired' : 'As above'}</span>
            ) : (
              problem
            ),
        },
      }}
    />
  );
}

function AccountEvents({ id }: { readonly id: string }) {
  return (
    <Panel title="Account events" aside="Newest first">
      <QueryTable
        label="Account events"
        query={useAccountEvents(id)}
        empty={`No account events among the last ${SCANNED_EVENTS.toLocaleString()} events of the log. Baselines, polling failures and quarantines appear here.`}
        getKey={(event) => event.id}
        columns={{
          Time: { isTime: true, render: ({ time }) => <Timestamp at={time} /> },
          Event: { wide: true, render: (event) => <EventSummary event={event} /> },
        }}
      />
    </Panel>
  );
}

function Actions(props: {
  readonly account: AccountDetails['record'];
  readonly runner: ActionRunner;
  readonly onTested: (report: TestReport | null) => void;
}) {
  const { account, runner, onTested } = props;
  const { id, paused, managed, revision } = account;
  const api = useApi();
  const options = withRevision(withId(id), revision);
  const test = () => {
    onTested(null);
    return runner.run('test', async () => onTested(await api.post('/v1/accounts/{id}/test', withId(id))));
  };
  const resume = () =>
    runner.run('resume', () => api.post('/v1/accounts/{id}/resume', options), `Polling of ${id} is resumed.`);
  const pause = () =>
    runner.confirm({
      title: `Pause polling of ${id}?`,
      body: 'No events are emitted for its jobs until polling is resumed. The log and the jobs are kept. Changes that are made in the meantime are detected when polling resumes.',
      verb: 'Pause',
      act: () => api.post('/v1/accounts/{id}/pause', options),
      done: `Polling of ${id} is paused.`,
    });
  return (
    <>
      <ActionButton runner={runner} name="test" onClick={test}>
        Test credentials
      </ActionButton>
      {managed ? (
        <ActionButton runner={runner} name="resume" primary={paused} onClick={paused ? resume : pause}>
          {paused ? 'Resume' : 'Pause'}
        </ActionButton>
      ) : null}
    </>
  );
}

/** Buttons for the confirmations that an account waits for. */
function ConfirmActions(props: {
  readonly id: string;
  readonly report: AccountStatus;
  readonly runner: ActionRunner;
}) {
  const { id, report, runner } = props;
  const api = useApi();
  const kind = getPendingConfirmation(report);
  const events = useAccountEvents(id);
  if (kind === null) return null;
  const confirm = (body: { readonly upstreamId?: number }) => () =>
    api.post('/v1/accounts/{id}/confirm', { ...withId(id), body });
  if (kind === 'quarantine') {
    const missing = countMissingJobs(report.missingJobs);
    const ask = () =>
      runner.confirm({
        title: `Confirm the missing jobs of ${id}?`,
        body: `${formatCount(missing, 'job is', 'jobs are')} missing from the list. Each is investigated once more. Within a day, all of them may be reported cancelled or unavailable: endpoints receive the events, and customers may be notified. This cannot be undone.`,
        verb: 'Confirm',
        destructive: true,
        act: confirm({}),
        done: `The missing jobs of ${id} are confirmed.`,
      });
    return (
      <div className={ui.actions}>
        <ActionButton runner={runner} primary onClick={ask}>
          Confirm missing jobs
        </ActionButton>
      </div>
    );
  }
  const mismatch = events.data?.find(({ type }) => type === 'account.identity_mismatch')?.data;
  const { expectedId, actualId } = (mismatch ?? {}) as { expectedId?: number; actualId?: number };
  const resume = () =>
    runner.confirm({
      title: `Resume polling of ${id}?`,
      body: `A poll starts at once and checks which account the credentials belong to. If ${expectedId === undefined ? 'the identity is wrong' : `it is not account ${expectedId}`}, polling stops again before any event is emitted.`,
      verb: 'Resume polling',
      act: confirm({}),
      done: `Polling of ${id} is resumed.`,
    });
  const changeTo = (upstreamId: number) =>
    runner.confirm({
      title: `Change ${id} to account ${upstreamId}?`,
      body: `The log and the jobs continue with the data of account ${upstreamId}. Jobs of account ${expectedId} that account ${upstreamId} does not list are treated as missing. This cannot be undone.`,
      verb: `Change to ${upstreamId}`,
      destructive: true,
      act: confirm({ upstreamId }),
      done: `${id} is now account ${upstreamId} of the ordering API.`,
    });
  return (
    <>
      {actualId === undefined ? null : (
        <p>
          <span className={ui.quiet}>Expected:</span> account {expectedId} of the ordering API.{' '}
          <span className={ui.quiet}>Found:</span> account {actualId}.
        </p>
      )}
      <div className={ui.actions}>
        <ActionButton runner={runner} primary onClick={resume}>
          Confirm credentials
        </ActionButton>
        {actualId === undefined ? null : (
          <ActionButton runner={runner} onClick={() => changeTo(actualId)}>
            Change to account {actualId}
          </ActionButton>
        )}
      </div>
    </>
  );
}
