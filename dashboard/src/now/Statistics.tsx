/** The figures: how many jobs are open, late and due, what goes out, and which jobs need somebody. */
import { Button } from '@mantine/core';
import { keepPreviousData, type UseQueryResult, useQuery } from '@tanstack/react-query';
import { type ReactNode, useState } from 'react';
import { Link } from 'wouter';
import type { JobEntry } from '../../../shared/api/jobs.ts';
import type { OpenJobs, RegionOpenJobs, RegionRollups, Rollup } from '../../../shared/api/statistics.ts';
import { type Api, ApiError } from '../api.ts';
import { Failure, Hidden, Note, Panel, Statistic } from '../components.tsx';
import { shiftDay, toLocalDay } from '../dates.ts';
import { toPlainText } from '../events.ts';
import { type Account, useAccounts, useApi, useRegions } from '../queries.ts';
import { useSession } from '../session.ts';
import { useNow, useRefresh } from '../stream-hooks.ts';
import { Day, RelativeTime, UpstreamDate } from '../times.tsx';
import { accountHref, buildHref, jobHref, useParams, useRegion } from '../urls.ts';
import css from './Statistics.module.css';
import {
  countDueOn,
  countOnTime,
  findStaleAccounts,
  formatListScope,
  formatPercent,
  type ListedJob,
  type OpenTotals,
  sortByDueDate,
  sumDays,
  sumOpenJobs,
} from './statistics.ts';

/** Days that the chart shows, and that the rate is of; today is the last of them. */
const CHART_DAYS = 14;
const RATE_DAYS = 7;
/** Jobs shown of a list, how high each is, and the accounts that are asked for them at most. */
const LISTED_JOBS = { page: 10, wall: 6 };
const ROW_REM = 1.85;
const MAX_ACCOUNTS = 30;
const MAX_CONCURRENT_REQUESTS = 6;
/** Statuses shown before one asks for all. On a wall nobody does, and all has to be seen without scrolling. */
const STATUSES = { page: 8, wall: 6 };
/** Figures are asked for again at most so often while events come, and so often without any: what is late moves by itself. */
const REFRESH_MS = 2_000;
const LISTS_REFRESH_MS = 5_000;
const IDLE_MS = 30_000;

/** All that the page shows besides the stream. */
export interface NowStatistics {
  readonly today: string;
  readonly open: UseQueryResult<OpenTotals>;
  readonly days: UseQueryResult<readonly Rollup[]>;
  readonly accounts: readonly Account[] | undefined;
  /** All that the page asks for; what fails is said once. */
  readonly queries: readonly UseQueryResult<unknown>[];
}

/** Asks for the figures of the region that is looked at, or of all; with a key for some accounts, of these. */
export function useStatistics(): NowStatistics {
  const api = useApi();
  const region = useRegion();
  const { forAll } = useSession();
  const regions = useRegions();
  const accounts = useAccounts();
  const today = toLocalDay(useNow(60_000));
  const own = accounts.data?.filter((account) => region === null || account.region === region);
  const ids = forAll ? regions.data?.map(({ id }) => id) : own?.map(({ id }) => id);
  const kind = forAll ? 'regions' : 'accounts';
  const paths = ids
    ?.filter((id) => !forAll || region === null || id === region)
    .map((id) => `/v1/${kind}/${encodeURIComponent(id)}`);
  const asking = {
    enabled: paths !== undefined,
    refetchInterval: IDLE_MS,
    placeholderData: keepPreviousData,
  };
  const open = useQuery({
    ...asking,
    queryKey: ['figures', 'open', paths],
    queryFn: async ({ signal }) => {
      type Part = RegionOpenJobs | OpenJobs;
      return sumOpenJobs(await fetchAll<Part>(api, paths ?? [], '/open-jobs', {}, signal));
    },
  });
  const days = useQuery({
    ...asking,
    queryKey: ['figures', 'days', paths, today],
    queryFn: async ({ signal }) => {
      const range = { from: shiftDay(today, 1 - CHART_DAYS), to: today };
      return sumDays(await fetchAll<RegionRollups>(api, paths ?? [], '/rollups', range, signal));
    },
  });
  // Where each account is asked for itself, less often.
  const many = forAll ? 1 : Math.max(1, (paths?.length ?? 1) / 4);
  useRefresh(['job.*', 'account.*'], [['figures']], REFRESH_MS * many);
  // The lists ask accounts one by one, and so the more seldom the more accounts there are.
  const asked = Math.min(MAX_ACCOUNTS, own?.length ?? 0);
  useRefresh(
    ['job.*', 'account.*'],
    [['jobs', 'now']],
    LISTS_REFRESH_MS * Math.max(1, asked / MAX_CONCURRENT_REQUESTS),
  );
  return { today, open, days, accounts: own, queries: [...(forAll ? [regions] : []), accounts, open] };
}

async function fetchAll<Part>(
  api: Api,
  paths: readonly string[],
  what: string,
  query: Record<string, string>,
  signal: AbortSignal,
): Promise<Part[]> {
  const parts = await mapInBatches(paths, (path) =>
    api.get<Part>(path + what, { query, signal }).catch((cause: unknown) => {
      // An account whose list was not read to its end yet has no figures.
      if (cause instanceof ApiError && cause.status === 404) return undefined;
      throw cause;
    }),
  );
  return parts.filter((part) => part !== undefined);
}

/** Some at a time, for a browser opens few connections to one server. */
async function mapInBatches<T, R>(all: readonly T[], ask: (one: T) => Promise<R>): Promise<R[]> {
  const answers: R[] = [];
  for (let at = 0; at < all.length; at += MAX_CONCURRENT_REQUESTS)
    answers.push(...(await Promise.all(all.slice(at, at + MAX_CONCURRENT_REQUESTS).map(ask))));
  return answers;
}

/** The numbers at the top. */
export function Tiles({ figures }: { readonly figures: NowStatistics }) {
  const { today, open, days } = figures;
  const region = useRegion() ?? undefined;
  const rate = days.data && countOnTime(days.data.slice(-RATE_DAYS));
  const dispatched = days.data?.find(({ day }) => day === today)?.dispatched;
  const { data } = open;
  return (
    <div className={css.tiles}>
      <Statistic
        name="Open jobs"
        value={data?.jobs}
        note={data && `${data.dispatched.toLocaleString()} of them dispatched`}
        href={buildHref('/jobs', { which: 'open', region })}
      />
      <Statistic
        name="Late"
        value={data?.late}
        tone={(data?.late ?? 0) > 0 ? 'bad' : 'plain'}
        note="not dispatched, due time is over"
        href={buildHref('/jobs', { late: 'true', region })}
      />
      <Statistic
        name="Due today, still open"
        value={data && countDueOn(data, today)}
        note={
          <>
            <Day day={today} />, not dispatched
          </>
        }
        href={buildHref('/jobs', { dueOn: today, region })}
      />
      <Statistic
        name="Dispatched today"
        value={days.data && (dispatched ?? 0)}
        note={
          <>
            <Day day={today} />, whenever due
          </>
        }
        href={buildHref('/jobs', { dispatchedOn: today, region })}
      />
      <Statistic
        name="On time"
        value={rate && formatPercent(rate.onTime, rate.of)}
        note={
          rate &&
          `${rate.onTime.toLocaleString()} of ${rate.of.toLocaleString()} dispatched in ${RATE_DAYS} days`
        }
        href="#days"
      />
    </div>
  );
}

/** Says when what is shown is older than it should be. */
export function StaleNotes({ accounts }: { readonly accounts: readonly Account[] }) {
  const region = useRegion() ?? undefined;
  const { stale, unread } = findStaleAccounts(accounts, useNow(10_000));
  const [oldest, ...others] = stale;
  const [first, ...more] = unread;
  return (
    <>
      {oldest === undefined ? null : (
        <Note tone="warn">
          The figures are not up to date: the jobs of{' '}
          <Link href={buildHref(accountHref(oldest.account), { region })}>{oldest.account}</Link> are as they
          were <RelativeTime at={oldest.through} />
          {others.length === 0 ? null : (
            <>
              , those of{' '}
              <Link href={`${buildHref('/health', { region })}#accounts`}>
                {others.length} other {others.length === 1 ? 'account' : 'accounts'}
              </Link>{' '}
              since then
            </>
          )}
          .
        </Note>
      )}
      {first === undefined ? null : (
        <Note>
          Not in the figures yet: the jobs of{' '}
          <Link href={buildHref(accountHref(first), { region })}>{first}</Link>
          {more.length === 0 ? null : ` and ${more.length} more`}, which have not been read once to the end.
        </Note>
      )}
    </>
  );
}

/** Open jobs by status: a bar for each, that leads to the jobs. */
export function Statuses({ open }: { readonly open: UseQueryResult<OpenTotals> }) {
  const region = useRegion() ?? undefined;
  const [all, setAll] = useState(false);
  const few = STATUSES[useDisplayMode()];
  const { data } = open;
  const statuses = data?.byStatus ?? [];
  const shown = all ? statuses : statuses.slice(0, few);
  const most = statuses[0]?.jobs ?? 1;
  const hidden = statuses.length - shown.length;
  const aside = data && (
    <Link href={buildHref('/jobs', { which: 'open', region })}>{data.jobs.toLocaleString()} in all</Link>
  );
  return (
    <Panel title="Open jobs by status" aside={aside}>
      <div className={css.statuses}>
        <QueryError query={open} />
        {data && statuses.length === 0 ? <p className={css.none}>No job is open.</p> : null}
        <ul>
          {shown.map(({ status, jobs }) => (
            <li key={status}>
              <Link
                className={css.status}
                href={buildHref('/jobs', status === null ? { which: 'open', region } : { status, region })}
              >
                <bdi className={css.statusName}>
                  {status === null ? 'Without a status' : toPlainText(status)}
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
            {all ? 'Fewer' : `${hidden} more`}
          </Button>
        ) : null}
        {data && data.otherStatuses > 0 ? (
          <p className={css.none}>
            {data.otherStatuses.toLocaleString()} in statuses that are not counted apart.
          </p>
        ) : null}
      </div>
    </Panel>
  );
}

/** The jobs that are late, the longest ago due first. */
export function LateJobs({ figures }: { readonly figures: NowStatistics }) {
  const region = useRegion() ?? undefined;
  const { data } = figures.open;
  const accounts = data?.accounts.filter(({ late }) => late > 0).sort((a, b) => b.late - a.late);
  return (
    <JobList
      title="Late"
      says="Not dispatched, and the due time is over."
      none="No job is late."
      total={data?.late}
      full={[{ name: 'All', jobs: data?.late, href: buildHref('/jobs', { late: 'true', region }) }]}
      accounts={accounts?.map(({ account }) => account)}
      filters={[{ late: 'true' }]}
    />
  );
}

/** The jobs that have to go out today or tomorrow. */
export function JobsAtRisk({ figures }: { readonly figures: NowStatistics }) {
  const region = useRegion() ?? undefined;
  const { data } = figures.open;
  const { today } = figures;
  const tomorrow = shiftDay(today, 1);
  const accounts = data?.accounts
    .filter(({ jobs, dispatched }) => jobs > dispatched)
    .sort((a, b) => b.jobs - b.dispatched - (a.jobs - a.dispatched));
  const [first, second] = [today, tomorrow].map((day) => data && countDueOn(data, day));
  return (
    <JobList
      title="At risk"
      says="Not dispatched, and due today or tomorrow."
      none="No open job is due today or tomorrow."
      total={first === undefined ? undefined : first + (second ?? 0)}
      full={[
        { name: 'Today', jobs: first, href: buildHref('/jobs', { dueOn: today, region }) },
        { name: 'Tomorrow', jobs: second, href: buildHref('/jobs', { dueOn: tomorrow, region }) },
      ]}
      accounts={accounts?.map(({ account }) => account)}
      filters={[{ dueOn: today }, { dueOn: tomorrow }]}
    />
  );
}

function JobList(props: {
  readonly title: string;
  readonly says: string;
  readonly none: string;
  readonly total: number | undefined;
  readonly full: readonly {
    readonly name: string;
    readonly jobs: number | undefined;
    readonly href: string;
  }[];
  /** Whose jobs are asked for. */
  readonly accounts: readonly string[] | undefined;
  /** Filters of the API; those behind the first only where there are not enough jobs yet. */
  readonly filters: readonly Readonly<Record<string, string>>[];
}) {
  const { title, says, none, total, full, accounts, filters } = props;
  const api = useApi();
  const most = LISTED_JOBS[useDisplayMode()];
  const region = useRegion() ?? undefined;
  // Only as long as there is something to find: their order moves with every event.
  const asked = accounts?.slice(0, MAX_ACCOUNTS) ?? [];
  const query = useQuery({
    queryKey: ['jobs', 'now', most, filters, [...asked].sort()],
    queryFn: async ({ signal }) => {
      const found: ListedJob[] = [];
      for (const filter of filters) {
        if (found.length >= most) break;
        const parts = await mapInBatches(asked, async (account) => {
          const { jobs } = await api.get<{ jobs: readonly JobEntry[] }>(
            `/v1/accounts/${encodeURIComponent(account)}/jobs`,
            { query: { ...filter, limit: most }, signal },
          );
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
  const left = accounts && accounts.length > asked.length ? accounts.length - asked.length : 0;
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
      {/* How many there will be is known before they are. */}
      <div className={css.list} style={{ minHeight: `${1.7 + ROW_REM * Math.min(most, total ?? 0)}rem` }}>
        <p className={css.says}>
          {says}
          {total === undefined ? '' : ` ${formatListScope(total, most, asked.length, left)}`}
        </p>
        <QueryError query={query} />
        {data && data.length === 0 && (left === 0 || total === 0) ? <p className={css.none}>{none}</p> : null}
        <ul>
          {data?.map((job) => (
            <li key={`${job.account}/${job.jobNumber}`}>
              <JobLink job={job} region={region} />
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

function JobLink({ job, region }: { readonly job: ListedJob; readonly region: string | undefined }) {
  return (
    <Link className={css.job} href={buildHref(jobHref(job.account, job.jobNumber), { region })}>
      <span className={css.jobNumber}>{job.jobNumber}</span>
      <span className={css.account}>{job.account}</span>
      <bdi className={css.description}>{job.description === null ? '' : toPlainText(job.description)}</bdi>
      <bdi className={css.jobStatus}>{job.status === null ? '' : toPlainText(job.status)}</bdi>
      <span className={css.due}>
        <Hidden>due </Hidden>
        {job.dateDue === null ? null : <UpstreamDate at={job.dateDue} />}
      </span>
    </Link>
  );
}

/** Why there is nothing, or nothing new: of several questions the first that failed. */
export function FirstQueryError({
  queries,
}: {
  readonly queries: readonly UseQueryResult<unknown>[];
}): ReactNode {
  const failed = queries.find(({ isError }) => isError);
  return failed ? <QueryError query={failed} /> : null;
}

/** Why a panel shows nothing, or nothing new. */
export function QueryError({ query }: { readonly query: UseQueryResult<unknown> }): ReactNode {
  return query.isError ? <Failure error={query.error} again={query.refetch} /> : null;
}
