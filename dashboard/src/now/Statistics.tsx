/** Statistics of the Now page: open, late, due and dispatched jobs; lists of late jobs and jobs at risk. */
import { Button } from '@mantine/core';
import { keepPreviousData, type UseQueryResult, useQuery } from '@tanstack/react-query';
import { type ReactNode, useState } from 'react';
import { Link } from 'wouter';
import { ApiError, type Rollup } from '../../../client/index.ts';
import { withId } from '../api.ts';
import { Failure, Hidden, Note, Panel, Statistic } from '../components.tsx';
import { shiftDay, toLocalDay } from '../dates.ts';
import { toPlainText } from '../events.ts';
import { FlagResults, RiskBadge } from '../jobs/RiskBadge.tsx';
import { formatTiming } from '../jobs/risk.ts';
import type { JobFilter } from '../jobs/search.ts';
import { type Account, useAccounts, useApi, useRegions } from '../queries.ts';
import { useInRegion } from '../resources.ts';
import { useSession } from '../session.ts';
import { useNow, useRefresh } from '../stream-hooks.ts';
import { formatCount, formatPercent } from '../texts.ts';
import { Day, RelativeTime, UpstreamDate } from '../times.tsx';
import ui from '../ui.module.css';
import { accountHref, jobHref, useHref, useParams, useRegion } from '../urls.ts';
import css from './Statistics.module.css';
import {
  countDueOn,
  countOnTime,
  findStaleAccounts,
  formatListScope,
  type ListedJob,
  type OpenTotals,
  sortByDueDate,
  sumDays,
  sumOpenJobs,
} from './statistics.ts';

/** Days of the chart and of the on-time rate, including today. */
const CHART_DAYS = 14;
const RATE_DAYS = 7;
/** Number of jobs per list, height of a row, and maximum number of accounts queried per list. */
const LISTED_JOBS = { page: 10, wall: 6 };
const ROW_REM = { page: 4.2, wall: 1.85 };
const MAX_ACCOUNTS = 30;
const MAX_CONCURRENT_REQUESTS = 6;
/** Number of statuses before "more". Fewer on the wall display, which must fit without scrolling. */
const STATUSES = { page: 8, wall: 6 };
/** Minimum refetch intervals while events arrive; maximum interval without events, because jobs become late without one. */
const REFRESH_MS = 2_000;
const LISTS_REFRESH_MS = 5_000;
const IDLE_MS = 30_000;

/** Data of the page apart from the event stream. */
export interface NowStatistics {
  readonly today: string;
  readonly open: UseQueryResult<OpenTotals>;
  readonly days: UseQueryResult<readonly Rollup[]>;
  readonly accounts: readonly Account[] | undefined;
  /** Queries whose first error is displayed. */
  readonly queries: readonly UseQueryResult<unknown>[];
}

/** Loads the statistics of the selected region or of all regions; with a key for some accounts, of those accounts. */
export function useStatistics(): NowStatistics {
  const api = useApi();
  const region = useRegion();
  const { forAll } = useSession();
  const regions = useRegions();
  const accounts = useAccounts();
  const today = toLocalDay(useNow(60_000));
  const { data: own } = useInRegion(accounts);
  const known = forAll ? regions.data?.map(({ id }) => id) : own?.map(({ id }) => id);
  const kind = forAll ? 'regions' : 'accounts';
  const ids = known?.filter((id) => !forAll || region === null || id === region);
  const options = {
    enabled: ids !== undefined,
    refetchInterval: IDLE_MS,
    placeholderData: keepPreviousData,
  };
  const open = useQuery({
    ...options,
    queryKey: ['statistics', 'open', kind, ids],
    queryFn: async ({ signal }) => {
      const read = (id: string) => api.get(`/v1/${kind}/{id}/open-jobs`, { ...withId(id), signal });
      return sumOpenJobs(await fetchAll(ids, read));
    },
  });
  const days = useQuery({
    ...options,
    queryKey: ['statistics', 'days', kind, ids, today],
    queryFn: async ({ signal }) => {
      const query = { from: shiftDay(today, 1 - CHART_DAYS), to: today };
      const read = (id: string) =>
        api.get(`/v1/${kind}/{id}/rollups`, { params: { path: { id }, query }, signal });
      return sumDays(await fetchAll(ids, read));
    },
  });
  // Refetched less often if each account needs its own request.
  const many = forAll ? 1 : Math.max(1, (ids?.length ?? 1) / 4);
  useRefresh(['job.*', 'account.*'], [['statistics']], REFRESH_MS * many);
  // The lists query each account, so the interval grows with the number of accounts.
  const queried = Math.min(MAX_ACCOUNTS, own?.length ?? 0);
  useRefresh(
    ['job.*', 'account.*'],
    [['jobs', 'now']],
    LISTS_REFRESH_MS * Math.max(1, queried / MAX_CONCURRENT_REQUESTS),
  );
  return { today, open, days, accounts: own, queries: [...(forAll ? [regions] : []), accounts, open] };
}

async function fetchAll<Part>(
  ids: readonly string[] = [],
  read: (id: string) => Promise<Part>,
): Promise<Part[]> {
  const parts = await mapInBatches(ids, (id) =>
    read(id).catch((cause: unknown) => {
      // An account without a baseline has no statistics.
      if (cause instanceof ApiError && cause.status === 404) return undefined;
      throw cause;
    }),
  );
  return parts.filter((part) => part !== undefined);
}

/** Maps in batches, because a browser opens few connections to one server. */
async function mapInBatches<T, R>(all: readonly T[], map: (one: T) => Promise<R>): Promise<R[]> {
  const answers: R[] = [];
  for (let at = 0; at < all.length; at += MAX_CONCURRENT_REQUESTS)
    answers.push(...(await Promise.all(all.slice(at, at + MAX_CONCURRENT_REQUESTS).map(map))));
  return answers;
}

/** Totals at the top of the page. */
export function Tiles({ statistics }: { readonly statistics: NowStatistics }) {
  const { today, open, days } = statistics;
  const href = useHref();
  const rate = days.data && countOnTime(days.data.slice(-RATE_DAYS));
  const dispatched = days.data?.find(({ day }) => day === today)?.dispatched;
  const { data } = open;
  return (
    <div className={css.tiles}>
      <Statistic
        name="Open jobs"
        value={data?.jobs}
        note={data && `${data.dispatched.toLocaleString()} of them dispatched`}
        href={href('/jobs', { which: 'open' })}
      />
      <Statistic
        name="Late"
        value={data?.late}
        tone={(data?.late ?? 0) > 0 ? 'bad' : 'plain'}
        note="past due, not dispatched"
        href={href('/jobs', { late: 'true' })}
      />
      <Statistic
        name="Due today"
        value={data && countDueOn(data, today)}
        note={
          <>
            <Day day={today} />, not dispatched
          </>
        }
        href={href('/jobs', { dueOn: today })}
      />
      <Statistic
        name="Dispatched today"
        value={days.data && (dispatched ?? 0)}
        note={
          <>
            <Day day={today} />, any due date
          </>
        }
        href={href('/jobs', { dispatchedOn: today })}
      />
      <Statistic
        name="On time"
        value={rate && formatPercent(rate.onTime, rate.of)}
        note={
          rate &&
          `${rate.onTime.toLocaleString()} of ${rate.of.toLocaleString()} dispatches, last ${RATE_DAYS} days`
        }
        href="#days"
      />
      <p className={`${ui.hint} ${css.days}`}>Days are local to the location of each job.</p>
    </div>
  );
}

/** Notes about stale accounts and accounts without a baseline. */
export function StaleNotes({ accounts }: { readonly accounts: readonly Account[] }) {
  const href = useHref();
  const { stale, unread } = findStaleAccounts(accounts, useNow(10_000));
  const [oldest, ...others] = stale;
  const [first, ...more] = unread;
  return (
    <>
      {oldest === undefined ? null : (
        <Note tone="warn">
          Statistics are stale: jobs of <Link href={href(accountHref(oldest.account))}>{oldest.account}</Link>{' '}
          were last observed <RelativeTime at={oldest.through} />
          {others.length === 0 ? null : (
            <>
              , and jobs of{' '}
              <Link href={`${href('/health')}#accounts`}>{formatCount(others.length, 'other account')}</Link>{' '}
              later
            </>
          )}
          .
        </Note>
      )}
      {first === undefined ? null : (
        <Note>
          Not yet included: jobs of <Link href={href(accountHref(first))}>{first}</Link>
          {more.length === 0 ? null : ` and ${more.length} more`}, whose first crawl is not complete.
        </Note>
      )}
    </>
  );
}

/** Open jobs by status; each bar links to its jobs. */
export function Statuses({ open }: { readonly open: UseQueryResult<OpenTotals> }) {
  const href = useHref();
  const [all, setAll] = useState(false);
  const few = STATUSES[useDisplayMode()];
  const { data } = open;
  const statuses = data?.byStatus ?? [];
  const shown = all ? statuses : statuses.slice(0, few);
  const most = statuses[0]?.jobs ?? 1;
  const hidden = statuses.length - shown.length;
  const aside = data && (
    <Link href={href('/jobs', { which: 'open' })}>All: {data.jobs.toLocaleString()}</Link>
  );
  return (
    <Panel title="Open jobs by status" aside={aside}>
      <div className={ui.tight}>
        <QueryError queries={[open]} />
        {data && statuses.length === 0 ? <p className={ui.hint}>No open jobs.</p> : null}
        <ul className={ui.list}>
          {shown.map(({ status, jobs }) => (
            <li key={status}>
              <Link
                className={css.status}
                href={href('/jobs', status === null ? { which: 'open' } : { status })}
              >
                <bdi className={`${ui.ellipsis} ${css.statusName}`}>
                  {status === null ? 'No status' : toPlainText(status)}
                </bdi>
                <span className={css.track} aria-hidden>
                  <span className={css.bar} style={{ width: `${(jobs / most) * 100}%` }} />
                </span>
                <span className={css.number}>
                  {jobs.toLocaleString()}
                  <Hidden> {jobs === 1 ? 'job' : 'jobs'}</Hidden>
                </span>
              </Link>
            </li>
          ))}
        </ul>
        {hidden > 0 || all ? (
          <Button className={css.more} size="compact-xs" variant="subtle" onClick={() => setAll(!all)}>
            {all ? 'Show fewer' : `Show ${hidden} more`}
          </Button>
        ) : null}
        {data && data.otherStatuses > 0 ? (
          <p className={ui.hint}>{data.otherStatuses.toLocaleString()} with other statuses.</p>
        ) : null}
      </div>
    </Panel>
  );
}

/** Late jobs, earliest due date first. */
export function LateJobs({ statistics }: { readonly statistics: NowStatistics }) {
  const href = useHref();
  const { data } = statistics.open;
  const accounts = data?.accounts.filter(({ late }) => late > 0).sort((a, b) => b.late - a.late);
  return (
    <JobList
      title="Late"
      description="Past due, not dispatched."
      emptyText="No late jobs."
      total={data?.late}
      full={[{ name: 'All', jobs: data?.late, href: href('/jobs', { late: 'true' }) }]}
      accounts={accounts?.map(({ account }) => account)}
      filters={[{ late: 'true' }]}
    />
  );
}

/** Open jobs of which similar jobs often needed longer than the time left. */
export function JobsAtRisk({ statistics }: { readonly statistics: NowStatistics }) {
  const href = useHref();
  const mode = useDisplayMode();
  const { data } = statistics.open;
  const accounts = data?.accounts
    .filter(({ jobs, dispatched }) => jobs > dispatched)
    .sort((a, b) => b.jobs - b.dispatched - (a.jobs - a.dispatched));
  const ids = accounts?.map(({ account }) => account);
  return (
    <JobList
      title="At risk"
      description="Similar jobs often needed longer than the time left."
      emptyText="No jobs are known to be at risk. A status needs 10 dispatched jobs before its risk is known."
      total={undefined}
      full={[{ name: 'All', jobs: undefined, href: href('/jobs', { risk: 'at-risk' }) }]}
      accounts={ids}
      filters={[{ risk: 'at-risk' }]}
      note={
        mode === 'wall' ? null : <FlagResults accounts={data?.accounts.map(({ account }) => account) ?? []} />
      }
    />
  );
}

function JobList(props: {
  readonly title: string;
  readonly description: string;
  readonly emptyText: string;
  readonly total: number | undefined;
  readonly full: readonly {
    readonly name: string;
    readonly jobs: number | undefined;
    readonly href: string;
  }[];
  /** Accounts to query. */
  readonly accounts: readonly string[] | undefined;
  /** Filters of the API. Each is used only if the previous ones returned too few jobs. */
  readonly filters: readonly JobFilter[];
  readonly note?: ReactNode;
}) {
  const { title, description, emptyText, total, full, accounts, filters, note } = props;
  const api = useApi();
  const mode = useDisplayMode();
  const most = LISTED_JOBS[mode];
  // Sorted in the key, because the order of accounts changes with every event.
  const queried = accounts?.slice(0, MAX_ACCOUNTS) ?? [];
  const query = useQuery({
    queryKey: ['jobs', 'now', most, filters, [...queried].sort()],
    queryFn: async ({ signal }) => {
      const found: ListedJob[] = [];
      for (const filter of filters) {
        if (found.length >= most) break;
        const parts = await mapInBatches(queried, async (account) => {
          const params = { path: { id: account }, query: { ...filter, limit: most } };
          const { jobs } = await api.get('/v1/accounts/{id}/jobs', { params, signal });
          return sortByDueDate(
            jobs.map((job) => ({ ...job, account })),
            most,
          );
        });
        found.push(...sortByDueDate(parts.flat(), most - found.length));
      }
      return found;
    },
    enabled: accounts !== undefined,
    refetchInterval: IDLE_MS,
    placeholderData: keepPreviousData,
  });
  const { data } = query;
  const left = accounts && accounts.length > queried.length ? accounts.length - queried.length : 0;
  return (
    <Panel
      title={title}
      aside={
        <span className={css.full}>
          {full.map(({ name, jobs, href }) => (
            <Link key={name} href={href}>
              {name}
              {jobs === undefined ? '' : `: ${jobs.toLocaleString()}`}
            </Link>
          ))}
        </span>
      }
    >
      {/* The number of rows is known before they are loaded. */}
      <div
        className={`${ui.tight} ${css.list}`}
        style={{ minHeight: `${1.7 + ROW_REM[mode] * Math.min(most, total ?? 0)}rem` }}
      >
        <p className={ui.hint}>
          {description}
          {total === undefined ? '' : ` ${formatListScope(total, most, queried.length, left)}`}
        </p>
        {note}
        <QueryError queries={[query]} />
        {data && data.length === 0 && (left === 0 || total === 0) ? (
          <p className={ui.hint}>{emptyText}</p>
        ) : null}
        <ul className={ui.list}>
          {data?.map((job) => (
            <li key={`${job.account}/${job.jobNumber}`}>
              <JobLink job={job} />
            </li>
          ))}
        </ul>
      </div>
    </Panel>
  );
}

function useDisplayMode(): 'page' | 'wall' {
  const [read] = useParams();
  return read('wall') === undefined ? 'page' : 'wall';
}

function JobLink({ job }: { readonly job: ListedJob }) {
  const href = useHref();
  return (
    <Link className={css.job} href={href(jobHref(job.account, job.jobNumber))}>
      <span className={css.jobNumber}>{job.jobNumber}</span>
      <span className={`${ui.ellipsis} ${css.account}`}>{job.account}</span>
      <bdi className={ui.ellipsis}>{job.description === null ? '' : toPlainText(job.description)}</bdi>
      <bdi className={`${ui.ellipsis} ${css.jobStatus}`}>
        {job.status === null ? '' : toPlainText(job.status)}
      </bdi>
      <span className={css.due}>
        <Hidden>due </Hidden>
        {job.dateDue === null ? null : <UpstreamDate at={job.dateDue} />}
      </span>
      <span className={css.timing}>
        <RiskBadge job={job} /> <bdi className={css.reason}>{formatTiming(job)}</bdi>
      </span>
    </Link>
  );
}

/** Error of the first query that failed. */
export function QueryError({ queries }: { readonly queries: readonly UseQueryResult<unknown>[] }): ReactNode {
  const failed = queries.find(({ isError }) => isError);
  return failed ? <Failure error={failed.error} again={failed.refetch} /> : null;
}
