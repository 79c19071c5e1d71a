/** State, polls and events of one account, with actions. */
import { Button } from '@mantine/core';
import { useState } from 'react';
import { Link } from 'wouter';
import type { AccountStatus, TestReport } from '../../../client/index.ts';
import { withId, withRevision } from '../api.ts';
import { Badge, Empty, Facts, Failure, Note, Page, Panel, useConfirm } from '../components.tsx';
import { DataTable } from '../DataTable.tsx';
import { EventSummary } from '../EventSummary.tsx';
import { useApi } from '../queries.ts';
import { useSession } from '../session.ts';
import { useNow, useRefresh } from '../stream-hooks.ts';
import { formatDuration, RelativeTime, Timestamp } from '../times.tsx';
import ui from '../ui.module.css';
import { useHref } from '../urls.ts';
import {
  ActionError,
  type ActionRunner,
  PollBars,
  StateNote,
  useActionRunner,
  Waiting,
} from './components.tsx';
import css from './Health.module.css';
import { ObservedThrough } from './OverviewPage.tsx';
import { type AccountDetails, isGone, SCANNED_EVENTS, useAccount, useAccountEvents } from './queries.ts';
import { countMissingJobs, getPendingConfirmation, POLL_OUTCOMES, toAccountState } from './status.ts';

/** Interval of the check whether the account is stale. */
const STALE_MS = 5_000;

export function AccountPage({ id }: { readonly id: string }) {
  const account = useAccount(id);
  useRefresh(
    ['account.*', 'upstream.*'],
    [
      ['accounts', 'health', id],
      ['accountEvents', id],
    ],
  );
  if (account.data && !isGone(account)) return <AccountView account={account.data} />;
  return (
    <Page title={`Account ${id}`}>
      {account.error ? <Failure error={account.error} again={account.refetch} /> : <Waiting />}
    </Page>
  );
}

function AccountView({ account: { record, report, polls } }: { readonly account: AccountDetails }) {
  const { id } = record;
  const href = useHref();
  const now = useNow(STALE_MS);
  const { may } = useSession();
  const runner = useActionRunner([['accounts'], ['accountEvents', id]]);
  const [tested, setTested] = useState<TestReport | null>(null);
  const whole = { ...record, status: report };
  const state = toAccountState(whole, now);
  return (
    <Page
      title={`Account ${id}`}
      actions={
        <>
          <Link href={href('/jobs', { account: id })}>Account jobs</Link>
          <Link href={href(`/setup/accounts/${encodeURIComponent(id)}`)}>Account setup</Link>
          {may('operate') ? <Actions account={whole} runner={runner} onTested={setTested} /> : null}
        </>
      }
    >
      <StateNote state={state} problem={record.paused ? null : report?.problem}>
        {report && may('operate') ? <ConfirmActions id={id} report={report} runner={runner} /> : null}
      </StateNote>
      <ActionError runner={runner} />
      {tested ? <TestResult report={tested} /> : null}
      <div className={css.columns}>
        <Panel title="Status">
          <Facts
            rows={{
              Region: record.region.toUpperCase(),
              'Poll interval': record.paused ? 'Paused' : formatDuration(record.pollIntervalSeconds * 1000),
              'Observed through': <ObservedThrough account={whole} now={now} />,
              'Last poll': report?.lastPollAt ? <RelativeTime at={report.lastPollAt} /> : 'None yet',
              'Next poll': report?.nextPollAt ? <RelativeTime at={report.nextPollAt} /> : 'None scheduled',
              'Consecutive failures':
                report && report.consecutiveFailures > 0 ? (
                  <span className={css.loud}>{report.consecutiveFailures}</span>
                ) : (
                  '0'
                ),
              'Open jobs':
                report?.openJobs == null ? (
                  'Not yet known'
                ) : (
                  <Link href={href('/jobs', { account: id, which: 'open' })}>
                    {report.openJobs.toLocaleString()}
                  </Link>
                ),
              'Unread jobs': report && report.unreadJobs > 0 ? report.unreadJobs.toLocaleString() : undefined,
              'Missing jobs': report ? <MissingJobs report={report} /> : undefined,
              'Quarantined since': report?.quarantinedAt ? (
                <Timestamp at={report.quarantinedAt} />
              ) : undefined,
              Credentials: record.secretRef ?? undefined,
              'Managed by': record.managed ? undefined : 'Configuration file',
            }}
          />
        </Panel>
        <Panel title="Polls">
          <PollBars polls={polls} />
          <FailedPolls polls={polls} />
        </Panel>
      </div>
      <AccountEvents id={id} head={report?.head} />
    </Page>
  );
}

function MissingJobs({ report: { missingJobs } }: { readonly report: AccountStatus }) {
  const { pending, suspected, contradictory } = missingJobs;
  if (countMissingJobs(missingJobs) === 0) return 'None';
  return [
    suspected > 0 ? `${suspected} to be confirmed by a second observation` : '',
    pending > 0 ? `${pending} not yet investigated` : '',
    contradictory > 0 ? `${contradictory} with contradictory answers` : '',
  ]
    .filter(Boolean)
    .join('; ');
}

/** Failed and partial polls with their problems. */
function FailedPolls({ polls }: { readonly polls: AccountDetails['polls'] }) {
  const rows = polls.filter(({ outcome, problem }) => outcome !== 'complete' || problem !== null);
  if (rows.length === 0) return null;
  return (
    <DataTable
      label="Failed and partial polls"
      rows={rows}
      keyOf={({ startedAt }) => startedAt}
      columns={[
        { name: 'Started', render: ({ startedAt }) => <Timestamp at={startedAt} as="clock" /> },
        {
          name: 'Outcome',
          render: ({ outcome }) => (
            <Badge tone={POLL_OUTCOMES[outcome].tone}>{POLL_OUTCOMES[outcome].label}</Badge>
          ),
        },
        { name: 'Duration', right: true, render: ({ ms }) => formatDuration(ms) },
        { name: 'Requests', right: true, render: ({ requests }) => requests },
        {
          name: 'Problem',
          wide: true,
          render: ({ problem }) => problem ?? <span className={ui.quiet}>Expired</span>,
        },
      ]}
    />
  );
}

function AccountEvents({ id, head }: { readonly id: string; readonly head: string | undefined }) {
  const { data, error, refetch } = useAccountEvents(id, head);
  return (
    <Panel title="Account events" aside="Newest first">
      {error && !data ? (
        <Failure error={error} again={refetch} />
      ) : data?.length === 0 ? (
        <Empty>
          No account events among the last {SCANNED_EVENTS.toLocaleString()} events of the log. Baselines,
          polling failures and quarantines appear here.
        </Empty>
      ) : (
        <ul className={`${ui.list} ${ui.list} ${css.events}`}>
          {data?.map((event) => (
            <li key={event.id}>
              <span className={ui.quiet}>
                <Timestamp at={event.time} />
              </span>
              <span>
                <EventSummary event={event} />
              </span>
            </li>
          ))}
        </ul>
      )}
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
  const ask = useConfirm();
  const test = () => {
    onTested(null);
    void runner.run('test', async () => onTested(await api.post('/v1/accounts/{id}/test', withId(id))));
  };
  const resume = () =>
    void runner.run(
      'resume',
      () => api.post('/v1/accounts/{id}/resume', withRevision(withId(id), revision)),
      `Polling of ${id} is resumed.`,
    );
  const pause = () =>
    ask({
      title: `Pause polling of ${id}?`,
      body: 'No events are emitted for its jobs until polling is resumed. The log and the jobs are kept. Changes made meanwhile are detected when polling resumes.',
      verb: 'Pause',
      onConfirm: () =>
        runner.runConfirmed(
          () => api.post('/v1/accounts/{id}/pause', withRevision(withId(id), revision)),
          `Polling of ${id} is paused.`,
        ),
    });
  return (
    <>
      <Button size="xs" variant="default" loading={runner.busy === 'test'} onClick={test}>
        Test credentials
      </Button>
      {!managed ? null : paused ? (
        <Button size="xs" loading={runner.busy === 'resume'} onClick={resume}>
          Resume
        </Button>
      ) : (
        <Button size="xs" variant="default" onClick={pause}>
          Pause
        </Button>
      )}
    </>
  );
}

const STEP_NAMES = { token: 'Token', identity: 'Identity', page: 'Page of jobs' } as const;

/** Result of each step of a credentials test. */
function TestResult({ report: { ok, steps, upstreamId, openJobs } }: { readonly report: TestReport }) {
  return (
    <Note tone={ok ? 'good' : 'bad'} live>
      <div className={ui.tight}>
        <p>
          <strong>{ok ? 'The credentials are valid.' : 'The credentials test failed.'}</strong>
          {upstreamId === null ? '' : ` They belong to account ${upstreamId} of the ordering API`}
          {openJobs === null
            ? upstreamId === null
              ? ''
              : '.'
            : `, with ${openJobs.toLocaleString()} open jobs.`}
        </p>
        <ol className={`${ui.list} ${ui.list} ${css.steps}`}>
          {steps.map(({ step, ok: worked, message, ms }) => (
            <li key={step}>
              <Badge tone={worked ? 'good' : 'bad'}>
                {STEP_NAMES[step]}: {worked ? 'passed' : 'failed'}
              </Badge>
              <span>{message}</span>
              <span className={ui.quiet}>{formatDuration(ms)}</span>
            </li>
          ))}
        </ol>
      </div>
    </Note>
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
  const ask = useConfirm();
  const kind = getPendingConfirmation(report);
  const events = useAccountEvents(id, report.head);
  if (kind === null) return null;
  const confirm = (body: { readonly upstreamId?: number }, done: string) =>
    runner.runConfirmed(() => api.post('/v1/accounts/{id}/confirm', { ...withId(id), body }), done);
  if (kind === 'quarantine') {
    const missing = countMissingJobs(report.missingJobs);
    const jobs = missing === 1 ? '1 job is' : `${missing.toLocaleString()} jobs are`;
    return (
      <div className={ui.actions}>
        <Button
          size="xs"
          onClick={() =>
            ask({
              title: `Confirm the missing jobs of ${id}?`,
              body: `${jobs} missing from the list. Each is investigated once more. Within a day, all of them may be reported cancelled or unavailable: endpoints receive the events, and customers may be notified. This cannot be undone.`,
              verb: 'Confirm',
              destructive: true,
              onConfirm: () => confirm({}, `The missing jobs of ${id} are confirmed.`),
            })
          }
        >
          Confirm missing jobs
        </Button>
      </div>
    );
  }
  const mismatch = events.data?.find(({ type }) => type === 'account.identity_mismatch')?.data;
  const { expectedId, actualId } = (mismatch ?? {}) as { expectedId?: number; actualId?: number };
  return (
    <>
      {actualId === undefined ? null : (
        <p>
          <span className={ui.quiet}>Expected:</span> account {expectedId} of the ordering API.{' '}
          <span className={ui.quiet}>Found:</span> account {actualId}.
        </p>
      )}
      <div className={ui.actions}>
        <Button
          size="xs"
          onClick={() =>
            ask({
              title: `Resume polling of ${id}?`,
              body: (
                <p>
                  A poll starts at once and checks the identity.{' '}
                  {expectedId === undefined
                    ? 'If the identity is wrong, polling stops again before any event is emitted.'
                    : `If it is not account ${expectedId}, polling stops again before any event is emitted.`}
                </p>
              ),
              verb: 'Resume polling',
              onConfirm: () => confirm({}, `Polling of ${id} is resumed.`),
            })
          }
        >
          Confirm credentials
        </Button>
        {actualId === undefined ? null : (
          <Button
            size="xs"
            variant="default"
            onClick={() =>
              ask({
                title: `Change ${id} to account ${actualId}?`,
                body: `The log and the jobs continue with the data of account ${actualId}. Jobs of account ${expectedId} that it does not list are reported missing. This cannot be undone.`,
                verb: `Change to ${actualId}`,
                destructive: true,
                onConfirm: () =>
                  confirm({ upstreamId: actualId }, `${id} is now account ${actualId} of the ordering API.`),
              })
            }
          >
            Change to account {actualId}
          </Button>
        )}
      </div>
    </>
  );
}
