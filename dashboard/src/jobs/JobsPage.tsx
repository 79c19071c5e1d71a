/** Search for jobs of all accounts. The query is in the address. */

import { AdjustmentsHorizontalIcon, MagnifyingGlassIcon } from '@heroicons/react/16/solid';
import { Button, NativeSelect, TextInput } from '@mantine/core';
import { useWindowEvent } from '@mantine/hooks';
import { useQuery } from '@tanstack/react-query';
import { Fragment, type RefObject, useMemo, useRef, useState } from 'react';
import { Link } from 'wouter';
import { withId } from '../api.ts';
import { ContentSkeleton, Empty, Failure, Loaded, Note, Page } from '../components.tsx';
import { explainRows, listUnobserved, type Unobserved } from '../counted-accounts.ts';
import { ExportButton } from '../export.tsx';
import { FilterInput, FilterSelect, includeSelected, toOptions } from '../filters.tsx';
import { type Account, useAccounts, useApi, useFigures, useRegions, useToday } from '../queries.ts';
import { useSession } from '../session.ts';
import { formatCount } from '../texts.ts';
import { Timestamp } from '../times.tsx';
import ui from '../ui.module.css';
import { accountHref, useHref, useParams, useRegion } from '../urls.ts';
import { exportJobs } from './export.ts';
import css from './Jobs.module.css';
import { JobTable } from './JobTable.tsx';
import { formatEmptyResult, formatFailures, formatResultCount } from './labels.ts';
import { FlagResults } from './RiskBadge.tsx';
import { RISKS } from './risk.ts';
import { findsUndispatched, type JobQuery, parseJobQuery } from './search.ts';
import { type ActiveSearch, useJobs } from './useJobs.ts';

/** Query parameters that filter the list. */
const FILTERS = [
  ...['q', 'account', 'status', 'due', 'dueOn', 'dueBefore'],
  ...['late', 'risk', 'dispatchedOn', 'orderGroup', 'which'],
];
const MINUTE_MS = 60_000;
const DUE = {
  '': 'Any day',
  today: 'Today',
  tomorrow: 'Tomorrow',
  week: 'This week',
  on: 'On',
  before: 'Before',
};

export default function JobsPage() {
  const accounts = useAccounts();
  return (
    <Page title="Jobs">
      <Loaded query={accounts} loading={<ContentSkeleton />}>
        {(all) =>
          all.length === 0 ? (
            <Empty>No accounts yet. Jobs appear here after the first poll of an account.</Empty>
          ) : (
            <Jobs accounts={all} />
          )
        }
      </Loaded>
    </Page>
  );
}

function Jobs({ accounts }: { readonly accounts: readonly Account[] }) {
  const [read] = useParams();
  const { day: today } = useToday();
  const query = useMemo(() => parseJobQuery(read, today), [read, today]);
  const search = useJobs(query, accounts);
  const field = useRef<HTMLInputElement>(null);
  useSlashShortcut(field);
  const unknown = query.account !== undefined && !accounts.some(({ id }) => id === query.account);
  return (
    <>
      <Filters accounts={accounts} field={field} />
      <Summary query={query} search={search} accounts={accounts} />
      {unknown ? (
        <Empty>Account {query.account} does not exist, or your key does not permit access to it.</Empty>
      ) : search.result.rows.length === 0 && search.result.complete ? (
        <Empty>{formatEmptyResult(query, search.result.failures.length > 0)}</Empty>
      ) : (
        <JobTable
          result={search.result}
          requestRows={search.requestRows}
          isUndispatched={findsUndispatched(query)}
        />
      )}
    </>
  );
}

/** Focuses the search field on `/`, unless the focus is in an input. */
function useSlashShortcut(field: RefObject<HTMLInputElement | null>): void {
  useWindowEvent('keydown', (event) => {
    const { target } = event;
    const writing =
      target instanceof HTMLElement && target.closest('input, select, textarea, [role="dialog"]') !== null;
    if (event.key !== '/' || writing || event.ctrlKey || event.metaKey || event.altKey) return;
    event.preventDefault();
    field.current?.focus();
    field.current?.select();
  });
}

function Filters(props: {
  readonly accounts: readonly Account[];
  readonly field: RefObject<HTMLInputElement | null>;
}) {
  const { accounts, field } = props;
  const [read, change] = useParams();
  const [shown, setShown] = useState(false);
  const region = useRegion();
  const statuses = useStatuses(accounts);
  const status = read('status');
  const ids = accounts.filter((one) => region === null || one.region === region).map(({ id }) => id);
  const set = FILTERS.filter((name) => name !== 'q' && read(name) !== undefined).length;
  const due = read('due') ?? (read('dueOn') ? 'on' : read('dueBefore') ? 'before' : '');
  // "On" or "before" is selected before a day is entered.
  const [dayFor, setDayFor] = useState<'on' | 'before' | null>(null);
  const dueChoice = due || (dayFor ?? '');
  const only =
    read('q') ??
    read('orderGroup') ??
    read('dispatchedOn') ??
    read('late') ??
    read('risk') ??
    (due || undefined);
  // These filters apply only to jobs that await dispatch.
  const toGoOut =
    due !== '' ||
    read('late') !== undefined ||
    read('risk') !== undefined ||
    (only === undefined && status === undefined);
  return (
    <search className={css.filters} aria-label="Jobs">
      <FilterInput
        param="q"
        className={css.search}
        ref={field}
        label="Job or order number"
        leftSection={<MagnifyingGlassIcon width={16} aria-hidden />}
        placeholder="Full number"
        aria-keyshortcuts="/"
      />
      <Button
        className={css.more}
        aria-expanded={shown}
        aria-controls="job-filters"
        onClick={() => setShown(!shown)}
        leftSection={<AdjustmentsHorizontalIcon width={16} aria-hidden />}
      >
        Filters{set > 0 ? ` (${set})` : ''}
      </Button>
      <div className={css.choices} id="job-filters" data-shown={shown || undefined}>
        <FilterSelect
          param="account"
          label="Account"
          data={[{ value: '', label: 'All' }, ...includeSelected(read('account'), ids)]}
        />
        <FilterSelect
          param="which"
          label="Jobs"
          w="11.25rem"
          disabled={only !== undefined}
          data={[
            { value: '', label: toGoOut ? 'Awaiting dispatch' : only ? 'All' : 'Open' },
            ...(only
              ? []
              : [
                  ...(status === undefined ? [{ value: 'open', label: 'Open' }] : []),
                  { value: 'all', label: 'All' },
                ]),
          ]}
        />
        <FilterSelect
          param="status"
          label="Status"
          data={[{ value: '', label: 'Any' }, ...includeSelected(status, statuses)]}
        />
        <NativeSelect
          label="Risk"
          value={read('late') === 'true' ? 'late' : (read('risk') ?? '')}
          onChange={({ currentTarget: { value } }) => {
            const late = value === 'late';
            change({ late: late ? 'true' : undefined, risk: late ? undefined : value });
          }}
          data={[{ value: '', label: 'Any' }, ...toOptions(RISKS)]}
        />
        <NativeSelect
          label="Due"
          value={dueChoice}
          onChange={({ currentTarget: { value } }) => {
            const day = value === 'on' || value === 'before';
            setDayFor(day ? value : null);
            change({ due: day ? undefined : value, dueOn: undefined, dueBefore: undefined });
          }}
          data={toOptions(DUE)}
        />
        {dueChoice === 'on' || dueChoice === 'before' ? (
          <TextInput
            type="date"
            w="9rem"
            label={dueChoice === 'on' ? 'Due on' : 'Due before'}
            value={read(dueChoice === 'on' ? 'dueOn' : 'dueBefore') ?? ''}
            onChange={({ currentTarget: { value } }) => {
              setDayFor(value === '' ? dueChoice : null);
              change(
                dueChoice === 'on'
                  ? { dueOn: value, dueBefore: undefined }
                  : { dueOn: undefined, dueBefore: value },
              );
            }}
          />
        ) : null}
        <TextInput
          type="date"
          w="9rem"
          label="Dispatched on"
          value={read('dispatchedOn') ?? ''}
          onChange={({ currentTarget }) => change({ dispatchedOn: currentTarget.value })}
        />
        <FilterInput param="orderGroup" label="Order group" />
      </div>
    </search>
  );
}

/** Returns the statuses of open jobs, most frequent first. */
function useStatuses(accounts: readonly Account[]): readonly string[] {
  const api = useApi();
  const region = useRegion();
  const { hasAllAccounts } = useSession();
  const { data: regions } = useRegions();
  // A key for some accounts cannot read regions. Accounts without a baseline have no statistics.
  const kind = hasAllAccounts ? 'regions' : 'accounts';
  const ids = hasAllAccounts
    ? (regions ?? []).map(({ id }) => id).filter((id) => region === null || id === region)
    : accounts
        .filter((one) => one.status?.openJobs != null && (region === null || one.region === region))
        .slice(0, MAX_ACCOUNTS)
        .map(({ id }) => id);
  const { data } = useQuery({
    queryKey: ['statistics', 'statuses', kind, ...ids],
    queryFn: ({ signal }) =>
      Promise.all(ids.map((id) => api.get(`/v1/${kind}/{id}/open-jobs`, { ...withId(id), signal }))),
    enabled: ids.length > 0,
    staleTime: MINUTE_MS,
  });
  return useMemo(() => {
    const jobs = new Map<string, number>();
    for (const one of data?.flatMap(({ byStatus }) => byStatus) ?? [])
      if (one.status) jobs.set(one.status, (jobs.get(one.status) ?? 0) + one.jobs);
    return [...jobs].sort(([a, n], [b, m]) => m - n || (a < b ? -1 : 1)).map(([name]) => name);
  }, [data]);
}
const MAX_ACCOUNTS = 20;

/** Number of results, with errors and the buttons for more. */
function Summary(props: {
  readonly query: JobQuery;
  readonly search: ActiveSearch;
  readonly accounts: readonly Account[];
}) {
  const { query, search, accounts } = props;
  const api = useApi();
  const { result } = search;
  const failures = [...result.failures, ...result.rereadFailures];
  const [read, change] = useParams();
  const text = formatResultCount(result, query);
  const countedTwice = useFigures().data?.countedTwice ?? [];
  const ids = result.rows.map(({ account }) => account);
  const notes = explainRows(ids, countedTwice);
  const unobserved = listUnobserved(ids, accounts, useAccounts().dataUpdatedAt);
  const region = useRegion();
  const account = accounts.find(({ id }) => id === query.account);
  return (
    <div className={`${ui.actions} ${css.summary}`}>
      <p className={ui.hint}>
        {/* Progress is not announced by screen readers. */}
        {result.reading ? <span>{text}</span> : null}
        <span role="status">{result.reading ? '' : text}</span>
      </p>
      {account && region !== null && account.region !== region ? (
        <span className={ui.hint}>
          {account.id} is in {account.region.toUpperCase()}. The selected region does not apply.
        </span>
      ) : null}
      {FILTERS.some((name) => read(name) !== undefined) ? (
        <Button
          size="compact-sm"
          variant="subtle"
          onClick={() => {
            change(Object.fromEntries(FILTERS.map((name) => [name, undefined])));
            document.querySelector<HTMLInputElement>('search input')?.focus();
          }}
        >
          Clear filters
        </Button>
      ) : null}
      {result.fresh > 0 ? (
        <Button size="compact-sm" variant="light" onClick={search.restart}>
          Show {formatCount(result.fresh, 'new match', 'new matches')}
        </Button>
      ) : null}
      {result.cut ? (
        <Button size="compact-sm" onClick={search.readMore}>
          Load more
        </Button>
      ) : null}
      {result.rows.length > 0 ? (
        <ExportButton name="jobs" source={(options) => exportJobs(api, query, accounts, options)} />
      ) : null}
      {read('risk') === 'at-risk' ? (
        <FlagResults
          accounts={accounts
            .filter(({ id, region }) => (query.account ?? id) === id && (query.region ?? region) === region)
            .map(({ id }) => id)}
        />
      ) : null}
      {notes.length > 0 || unobserved.length > 0 ? (
        <div className={css.wide}>
          {unobserved.length > 0 ? <Outdated accounts={unobserved} /> : null}
          {notes.map((text) => (
            <Note key={text} tone="warn">
              {text}
            </Note>
          ))}
        </div>
      ) : null}
      {failures.length > 0 ? (
        <div className={css.wide}>
          <Failure error={new Error(formatFailures(failures))} again={search.retry} />
        </div>
      ) : null}
    </div>
  );
}

/** Maximum number of accounts in a note. */
const MAX_NAMED = 5;

/** Names the accounts that are not observed, with the time of their last observation. */
function Outdated({ accounts }: { readonly accounts: readonly Unobserved[] }) {
  const href = useHref();
  const more = accounts.length - MAX_NAMED;
  return (
    <Note tone="warn">
      Jobs of accounts that are not observed may be outdated:{' '}
      {accounts.slice(0, MAX_NAMED).map(({ id, state, observedThrough }, at) => (
        <Fragment key={id}>
          {at > 0 ? ', ' : ''}
          <Link href={href(accountHref(id))}>{id}</Link> ({state}
          {observedThrough === null ? null : (
            <>
              , observed up to <Timestamp at={observedThrough} />
            </>
          )}
          )
        </Fragment>
      ))}
      {more > 0 ? ` and ${more.toLocaleString()} more` : ''}.
    </Note>
  );
}
