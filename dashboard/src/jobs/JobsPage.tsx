/** Jobs of all accounts: found by number, narrowed by what the address says. */
import { Button, Checkbox, NativeSelect, TextInput } from '@mantine/core';
import { IconAdjustmentsHorizontal, IconSearch } from '@tabler/icons-react';
import { useQuery } from '@tanstack/react-query';
import { type RefObject, useEffect, useMemo, useRef, useState } from 'react';
import type { OpenJobs, RegionOpenJobs } from '../../../shared/api/statistics.ts';
import { Empty, Failure, Note, Page } from '../components.tsx';
import { toLocalDay } from '../dates.ts';
import { type Account, useAccounts, useApi, useRegions } from '../queries.ts';
import { useSession } from '../session.ts';
import { useNow } from '../stream-hooks.ts';
import { useParams, useRegion } from '../urls.ts';
import css from './Jobs.module.css';
import { JobTable } from './JobTable.tsx';
import { formatEmptyResult, formatResultCount } from './labels.ts';
import { type JobQuery, parseJobQuery } from './search.ts';
import { type ActiveSearch, useJobs } from './useJobs.ts';

/** What in the address narrows the list. */
const FILTERS = [
  ...['q', 'account', 'status', 'due', 'dueOn', 'dueBefore', 'late', 'dispatchedOn', 'orderGroup', 'which'],
];
const MINUTE_MS = 60_000;

/** The page of all jobs. */
export default function JobsPage() {
  const accounts = useAccounts();
  return (
    <Page title="Jobs">
      {accounts.error && !accounts.data ? (
        <Failure error={accounts.error} again={accounts.refetch} />
      ) : accounts.data === undefined ? (
        <div className={css.waiting} />
      ) : accounts.data.length === 0 ? (
        <Empty>There are no accounts yet, so there are no jobs.</Empty>
      ) : (
        <Jobs accounts={accounts.data} />
      )}
    </Page>
  );
}

function Jobs({ accounts }: { readonly accounts: readonly Account[] }) {
  const [read] = useParams();
  const today = toLocalDay(useNow(MINUTE_MS));
  const wanted = useMemo(() => parseJobQuery(read, today), [read, today]);
  const search = useJobs(wanted, accounts);
  const field = useRef<HTMLInputElement>(null);
  useSlashShortcut(field);
  const unknown = wanted.account !== undefined && !accounts.some(({ id }) => id === wanted.account);
  return (
    <>
      <Filters accounts={accounts} field={field} />
      <Summary wanted={wanted} search={search} />
      {unknown ? (
        <Empty>There is no account {wanted.account}, or your key is not for it.</Empty>
      ) : search.result.rows.length === 0 && search.result.complete ? (
        <Empty>{formatEmptyResult(wanted, search.result.failures.length > 0)}</Empty>
      ) : (
        <JobTable found={search.result} want={search.requestRows} />
      )}
    </>
  );
}

/** `/` leads to the search, wherever nothing is being written. */
function useSlashShortcut(field: RefObject<HTMLInputElement | null>): void {
  useEffect(() => {
    const onKey = (event: KeyboardEvent): void => {
      const { target } = event;
      const writing =
        target instanceof HTMLElement && target.closest('input, select, textarea, [role="dialog"]') !== null;
      if (event.key !== '/' || writing || event.ctrlKey || event.metaKey || event.altKey) return;
      event.preventDefault();
      field.current?.focus();
      field.current?.select();
    };
    document.addEventListener('keydown', onKey);
    return () => document.removeEventListener('keydown', onKey);
  }, [field]);
}

function Filters({
  accounts,
  field,
}: {
  readonly accounts: readonly Account[];
  readonly field: RefObject<HTMLInputElement | null>;
}) {
  const [read, change] = useParams();
  const [shown, setShown] = useState(false);
  const region = useRegion();
  const statuses = useStatuses(accounts);
  const status = read('status');
  const among = accounts.filter((one) => region === null || one.region === region);
  const set = FILTERS.filter((name) => name !== 'q' && read(name) !== undefined).length;
  const due = read('due') ?? (read('dueOn') ? 'on' : read('dueBefore') ? 'before' : '');
  // The choice of a day comes before the day.
  const [dayFor, setDayFor] = useState<'on' | 'before' | null>(null);
  const dueChoice = due || (dayFor ?? '');
  const only = read('q') ?? read('orderGroup') ?? read('dispatchedOn') ?? read('late') ?? (due || undefined);
  // Only such jobs are late or due, whatever else is asked for.
  const toGoOut = due !== '' || read('late') !== undefined || (only === undefined && status === undefined);
  return (
    <search className={css.filters} aria-label="Jobs">
      <DebouncedTextInput
        className={css.search}
        ref={field}
        label="Job or order number"
        value={read('q') ?? ''}
        onChange={(q) => change({ q })}
        leftSection={<IconSearch size={16} aria-hidden />}
        placeholder="In full, as it is written"
        aria-keyshortcuts="/"
      />
      <Button
        className={css.more}
        variant="default"
        aria-expanded={shown}
        aria-controls="job-filters"
        onClick={() => setShown(!shown)}
        leftSection={<IconAdjustmentsHorizontal size={16} aria-hidden />}
      >
        Filters{set > 0 ? ` (${set})` : ''}
      </Button>
      <div className={css.choices} id="job-filters" data-shown={shown || undefined}>
        <NativeSelect
          label="Account"
          value={read('account') ?? ''}
          onChange={({ currentTarget }) => change({ account: currentTarget.value })}
          data={[
            { value: '', label: 'All' },
            ...includeSelected(
              read('account'),
              among.map(({ id }) => id),
            ),
          ]}
        />
        <NativeSelect
          label="Which"
          value={read('which') ?? ''}
          onChange={({ currentTarget }) => change({ which: currentTarget.value })}
          disabled={only !== undefined}
          data={[
            { value: '', label: toGoOut ? 'To go out' : only ? 'All' : 'Open' },
            ...(only
              ? []
              : [
                  ...(status === undefined ? [{ value: 'open', label: 'Open' }] : []),
                  { value: 'all', label: 'All known' },
                ]),
          ]}
        />
        <NativeSelect
          label="Status"
          value={status ?? ''}
          onChange={({ currentTarget }) => change({ status: currentTarget.value })}
          data={[{ value: '', label: 'Any' }, ...includeSelected(status, statuses)]}
        />
        <NativeSelect
          label="Due"
          value={dueChoice}
          onChange={({ currentTarget: { value } }) => {
            const day = value === 'on' || value === 'before';
            setDayFor(day ? value : null);
            change({ due: day ? undefined : value, dueOn: undefined, dueBefore: undefined });
          }}
          data={[
            { value: '', label: 'Any day' },
            { value: 'today', label: 'Today' },
            { value: 'tomorrow', label: 'Tomorrow' },
            { value: 'week', label: 'This week' },
            { value: 'on', label: 'On a day' },
            { value: 'before', label: 'Before a day' },
          ]}
        />
        {dueChoice === 'on' || dueChoice === 'before' ? (
          <TextInput
            type="date"
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
          label="Dispatched on"
          value={read('dispatchedOn') ?? ''}
          onChange={({ currentTarget }) => change({ dispatchedOn: currentTarget.value })}
        />
        <DebouncedTextInput
          label="Order group"
          value={read('orderGroup') ?? ''}
          onChange={(orderGroup) => change({ orderGroup })}
        />
        <div className={css.checks}>
          <Checkbox
            label="Late"
            checked={read('late') === 'true'}
            onChange={({ currentTarget }) => change({ late: currentTarget.checked ? 'true' : undefined })}
          />
        </div>
      </div>
    </search>
  );
}

/** What is chosen can be chosen, also when nothing is known of it. */
function includeSelected(chosen: string | undefined, known: readonly string[]): string[] {
  return chosen === undefined || known.includes(chosen) ? [...known] : [chosen, ...known];
}

/** A text that is taken when one pauses, leaves the field or presses Enter. */
function DebouncedTextInput(
  props: Omit<React.ComponentProps<typeof TextInput>, 'value' | 'onChange' | 'ref'> & {
    readonly value: string;
    readonly onChange: (value: string) => void;
    readonly ref?: RefObject<HTMLInputElement | null>;
  },
) {
  const { value, onChange, ...rest } = props;
  const [typed, setTyped] = useState(value);
  const told = useRef(value);
  if (told.current !== value && typed.trim() === told.current) {
    // It was changed elsewhere: by a link, or a step back.
    told.current = value;
    setTyped(value);
  }
  const tell = (text: string): void => {
    const trimmed = text.trim();
    if (trimmed === told.current) return;
    told.current = trimmed;
    onChange(trimmed);
  };
  const telling = useRef(tell);
  telling.current = tell;
  // Begun by what is typed alone: what is found draws this anew all the time.
  useEffect(() => {
    const timer = setTimeout(() => telling.current(typed), DEBOUNCE_MS);
    return () => clearTimeout(timer);
  }, [typed]);
  return (
    <TextInput
      {...rest}
      value={typed}
      autoComplete="off"
      spellCheck={false}
      onChange={({ currentTarget }) => setTyped(currentTarget.value)}
      onBlur={() => tell(typed)}
      onKeyDown={(event) => {
        if (event.key === 'Enter') tell(typed);
      }}
    />
  );
}
const DEBOUNCE_MS = 400;

/** Names of statuses that open jobs are in, those with most jobs first. */
function useStatuses(accounts: readonly Account[]): readonly string[] {
  const api = useApi();
  const region = useRegion();
  const { forAll } = useSession();
  const { data: regions } = useRegions();
  // A key for some accounts may not ask for a region; of accounts that were not read yet there is nothing.
  const paths = forAll
    ? (regions ?? [])
        .map(({ id }) => id)
        .filter((id) => region === null || id === region)
        .map((id) => `/v1/regions/${encodeURIComponent(id)}`)
    : accounts
        .filter((one) => one.status?.openJobs != null && (region === null || one.region === region))
        .slice(0, MAX_ACCOUNTS)
        .map(({ id }) => `/v1/accounts/${encodeURIComponent(id)}`);
  const { data } = useQuery({
    queryKey: ['figures', 'statuses', ...paths],
    queryFn: ({ signal }) =>
      Promise.all(paths.map((path) => api.get<RegionOpenJobs | OpenJobs>(`${path}/open-jobs`, { signal }))),
    enabled: paths.length > 0,
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

/** How many there are, of what, and whether these are all. */
function Summary({ wanted, search }: { readonly wanted: JobQuery; readonly search: ActiveSearch }) {
  const { result: found } = search;
  const [read, change] = useParams();
  const words = formatResultCount(found, wanted);
  return (
    <div className={css.summary}>
      <p className={css.count}>
        {/* What is on its way is not read out at each step. */}
        {found.reading ? <span>{words}</span> : null}
        <span role="status">{found.reading ? '' : words}</span>
      </p>
      {FILTERS.some((name) => read(name) !== undefined) ? (
        <Button
          size="compact-sm"
          variant="subtle"
          onClick={() => {
            change(Object.fromEntries(FILTERS.map((name) => [name, undefined])));
            document.querySelector<HTMLInputElement>('search input')?.focus();
          }}
        >
          Clear the filters
        </Button>
      ) : null}
      {found.fresh > 0 ? (
        <Button size="compact-sm" variant="light" onClick={search.restart}>
          {found.fresh === 1
            ? 'Show 1 more job that matches now'
            : `Show ${found.fresh} more jobs that match now`}
        </Button>
      ) : null}
      {found.cut ? (
        <Button size="compact-sm" variant="default" onClick={search.readMore}>
          Read on
        </Button>
      ) : null}
      {found.failures.length > 0 ? (
        <div className={css.wide}>
          <Note
            tone="bad"
            live
            actions={
              <Button size="xs" variant="default" onClick={search.retry}>
                Try again
              </Button>
            }
          >
            <p>
              {found.failures.length === 1
                ? `Jobs of ${found.failures[0]?.account} could not be read: `
                : `Jobs of ${found.failures.length} accounts could not be read, among them ${found.failures[0]?.account}: `}
              {found.failures[0]?.sentence}
            </p>
          </Note>
        </div>
      ) : null}
    </div>
  );
}
