/** How one account is doing, and what can be done about it. */
import { Button } from '@mantine/core';
import { useState } from 'react';
import { Link } from 'wouter';
import type { AccountReport, TestReport } from '../../../shared/accounts/account-input.ts';
import { Badge, Empty, Facts, Failure, Note, Page, Panel, useConfirm } from '../components.tsx';
import { EventSummary } from '../EventSummary.tsx';
import { useApi } from '../queries.ts';
import { useSession } from '../session.ts';
import { useNow, useRefresh } from '../stream-hooks.ts';
import { formatDuration, RelativeTime, Timestamp } from '../times.tsx';
import {
  ActionError,
  type ActionRunner,
  PollBars,
  Rows,
  StateNote,
  useActionRunner,
  useHref,
  Waiting,
} from './components.tsx';
import css from './Health.module.css';
import { ObservedThrough } from './OverviewPage.tsx';
import {
  type AccountDetails,
  accountPath,
  isGone,
  SCANNED_EVENTS,
  useAccount,
  useAccountEvents,
} from './queries.ts';
import { countMissingJobs, getPendingConfirmation, POLL_OUTCOMES, toAccountState } from './status.ts';

/** How often it is looked whether the account has become stale. */
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
  const acts = useActionRunner([['accounts'], ['accountEvents', id]]);
  const [tested, setTested] = useState<TestReport | null>(null);
  const whole = { ...record, status: report };
  const words = toAccountState(whole, now);
  return (
    <Page
      title={`Account ${id}`}
      actions={
        <>
          <Link href={href('/jobs', { account: id })}>Its jobs</Link>
          <Link href={href(`/setup/accounts/${encodeURIComponent(id)}`)}>Its setup</Link>
          {may('operate') ? <Actions account={whole} acts={acts} onTested={setTested} /> : null}
        </>
      }
    >
      <StateNote words={words} problem={record.paused ? null : report?.problem}>
        {report && may('operate') ? <ConfirmActions id={id} report={report} acts={acts} /> : null}
      </StateNote>
      <ActionError acts={acts} />
      {tested ? <TestResult report={tested} /> : null}
      <div className={css.columns}>
        <Panel title="How it stands">
          <Facts
            rows={[
              ['Region', record.region.toUpperCase()],
              [
                'Polled',
                record.paused
                  ? 'not at all: paused'
                  : `every ${formatDuration(record.pollIntervalSeconds * 1000)}`,
              ],
              ['Observed through', <ObservedThrough key="observed" account={whole} now={now} />],
              [
                'Last poll',
                report?.lastPollAt ? <RelativeTime key="last" at={report.lastPollAt} /> : 'none yet',
              ],
              [
                'Next poll',
                report?.nextPollAt ? (
                  <RelativeTime key="next" at={report.nextPollAt} />
                ) : (
                  'not until somebody acts'
                ),
              ],
              [
                'Failed in a row',
                report && report.consecutiveFailures > 0 ? (
                  <span key="failed" className={css.loud}>
                    {report.consecutiveFailures}
                  </span>
                ) : (
                  '0'
                ),
              ],
              [
                'Open jobs',
                report?.openJobs == null ? (
                  'not known yet'
                ) : (
                  <Link key="open" href={href('/jobs', { account: id, which: 'open' })}>
                    {report.openJobs.toLocaleString()}
                  </Link>
                ),
              ],
              ['Not readable', report && report.unreadJobs > 0 ? `${report.unreadJobs} of them` : undefined],
              ['Missing jobs', report ? <MissingJobs key="missing" report={report} /> : undefined],
              [
                'In doubt since',
                report?.quarantinedAt ? <Timestamp key="doubt" at={report.quarantinedAt} /> : undefined,
              ],
              ['Credentials', record.secretRef ?? undefined],
              ['Made in', record.managed ? undefined : 'the configuration file'],
            ]}
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

function MissingJobs({ report: { missingJobs } }: { readonly report: AccountReport }) {
  const { pending, suspected, contradictory } = missingJobs;
  if (countMissingJobs(missingJobs) === 0) return 'none';
  return [
    suspected > 0 ? `${suspected} seem to be gone, and are looked at once more before that is said` : '',
    pending > 0 ? `${pending} not answered for yet` : '',
    contradictory > 0 ? `${contradictory} with answers that don’t fit together` : '',
  ]
    .filter(Boolean)
    .join('; ');
}

/** Those that did not go well, with what is known of why. */
function FailedPolls({ polls }: { readonly polls: AccountDetails['polls'] }) {
  const rows = polls.filter(({ outcome, problem }) => outcome !== 'complete' || problem !== null);
  if (rows.length === 0) return null;
  return (
    <Rows
      label="Polls that did not go well"
      rows={rows}
      keyOf={({ startedAt }) => startedAt}
      columns={[
        { name: 'Began', render: ({ startedAt }) => <Timestamp at={startedAt} as="clock" /> },
        {
          name: 'Ended',
          render: ({ outcome }) => (
            <Badge tone={POLL_OUTCOMES[outcome].tone}>{POLL_OUTCOMES[outcome].word}</Badge>
          ),
        },
        { name: 'Took', right: true, render: ({ ms }) => formatDuration(ms) },
        { name: 'Requests', right: true, render: ({ requests }) => requests },
        {
          name: 'Why',
          wide: true,
          render: ({ problem }) => problem ?? <span className={css.quiet}>no longer kept</span>,
        },
      ]}
    />
  );
}

function AccountEvents({ id, head }: { readonly id: string; readonly head: string | undefined }) {
  const { data, error, refetch } = useAccountEvents(id, head);
  return (
    <Panel title="What was said of it" aside="Events of the account itself, newest first">
      {error && !data ? (
        <Failure error={error} again={refetch} />
      ) : data?.length === 0 ? (
        <Empty>None among the last {SCANNED_EVENTS.toLocaleString()} events of its log.</Empty>
      ) : (
        <ul className={css.events}>
          {data?.map((event) => (
            <li key={event.id}>
              <span className={css.quiet}>
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
  readonly acts: ActionRunner;
  readonly onTested: (report: TestReport | null) => void;
}) {
  const { account, acts, onTested } = props;
  const { id, paused, managed, revision } = account;
  const api = useApi();
  const ask = useConfirm();
  const test = () => {
    onTested(null);
    void acts.run('test', async () => onTested(await api.post<TestReport>(accountPath(id, '/test'))));
  };
  const resume = () =>
    void acts.run(
      'resume',
      () => api.post(accountPath(id, '/resume'), { revision }),
      `${id} is polled again.`,
    );
  const pause = () =>
    ask({
      title: `Pause polling of ${id}?`,
      body: (
        <p>
          It is not polled, and nothing new is said of its jobs, until somebody resumes it. Its log, its jobs
          and its state stay; what changed meanwhile is found then.
        </p>
      ),
      verb: 'Pause',
      onConfirm: () =>
        acts.runConfirmed(
          () => api.post(accountPath(id, '/pause'), { revision }),
          `Polling of ${id} is paused.`,
        ),
    });
  return (
    <>
      <Button size="xs" variant="default" loading={acts.busy === 'test'} onClick={test}>
        Test credentials
      </Button>
      {!managed ? null : paused ? (
        <Button size="xs" loading={acts.busy === 'resume'} onClick={resume}>
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

const STEP_NAMES = { token: 'Token', identity: 'Whose account', page: 'One page of jobs' } as const;

/** What came of trying out the credentials, step by step. */
function TestResult({ report: { ok, steps, upstreamId, openJobs } }: { readonly report: TestReport }) {
  return (
    <Note tone={ok ? 'good' : 'bad'} live>
      <div className={css.state}>
        <p>
          <strong>{ok ? 'The credentials work.' : 'The credentials don’t work.'}</strong>
          {upstreamId === null ? '' : ` They belong to account ${upstreamId} of the ordering service`}
          {openJobs === null
            ? upstreamId === null
              ? ''
              : '.'
            : `, with ${openJobs.toLocaleString()} open jobs.`}
        </p>
        <ol className={css.steps}>
          {steps.map(({ step, ok: worked, message, ms }) => (
            <li key={step}>
              <Badge tone={worked ? 'good' : 'bad'}>
                {STEP_NAMES[step]}: {worked ? 'works' : 'fails'}
              </Badge>
              <span>{message}</span>
              <span className={css.quiet}>{formatDuration(ms)}</span>
            </li>
          ))}
        </ol>
      </div>
    </Note>
  );
}

/** What an operator can say to an account that waits for it. */
function ConfirmActions(props: {
  readonly id: string;
  readonly report: AccountReport;
  readonly acts: ActionRunner;
}) {
  const { id, report, acts } = props;
  const api = useApi();
  const ask = useConfirm();
  const kind = getPendingConfirmation(report);
  const events = useAccountEvents(id, report.head);
  if (kind === null) return null;
  const confirm = (body: { readonly upstreamId?: number }, done: string) =>
    acts.runConfirmed(() => api.post(accountPath(id, '/confirm'), { body }), done);
  if (kind === 'quarantine') {
    const missing = countMissingJobs(report.missingJobs);
    const jobs = missing === 1 ? '1 job is' : `${missing.toLocaleString()} jobs are`;
    return (
      <div className={css.tools}>
        <Button
          size="xs"
          onClick={() =>
            ask({
              title: `Are the missing jobs of ${id} truly gone?`,
              body: (
                <p>
                  {jobs} missing from the list. As many may be announced as cancelled or unavailable within a
                  day, each after the ordering service was asked for it once more. Receivers get those events,
                  and customers may be told. That can’t be taken back.
                </p>
              ),
              verb: 'They are gone',
              destructive: true,
              onConfirm: () => confirm({}, `Confirmed: the missing jobs of ${id} are gone.`),
            })
          }
        >
          Confirm that they are gone
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
          <span className={css.quiet}>Expected:</span> account {expectedId} of the ordering service.{' '}
          <span className={css.quiet}>Found:</span> account {actualId}.
        </p>
      )}
      <div className={css.tools}>
        <Button
          size="xs"
          onClick={() =>
            ask({
              title: `Are the credentials of ${id} in order again?`,
              body: (
                <p>
                  It is polled again at once. The poll asks whose account it is
                  {expectedId === undefined ? '' : `: unless it is ${expectedId}`}, it stops again before
                  anything is said of its jobs.
                </p>
              ),
              verb: 'Poll it again',
              onConfirm: () => confirm({}, `Confirmed: ${id} is polled again.`),
            })
          }
        >
          The credentials are right again
        </Button>
        {actualId === undefined ? null : (
          <Button
            size="xs"
            variant="default"
            onClick={() =>
              ask({
                title: `Is ${id} account ${actualId} from now on?`,
                body: (
                  <p>
                    Its log and its jobs go on with what account {actualId} shows. Jobs of account{' '}
                    {expectedId} that it does not show will seem to be gone. That can’t be taken back.
                  </p>
                ),
                verb: `It is ${actualId} from now on`,
                destructive: true,
                onConfirm: () =>
                  confirm({ upstreamId: actualId }, `Confirmed: ${id} is account ${actualId} from now on.`),
              })
            }
          >
            It is account {actualId} from now on
          </Button>
        )}
      </div>
    </>
  );
}
