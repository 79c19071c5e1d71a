/** Health of regions, accounts and endpoints, the most severe first. */
import { TextInput } from '@mantine/core';
import { useQueryClient } from '@tanstack/react-query';
import { useMemo } from 'react';
import { Link } from 'wouter';
import { Badge, Empty, Failure, Note, Page, Panel } from '../components.tsx';
import { type Column, DataTable } from '../DataTable.tsx';
import { type Account, type Region, useAccounts, useRegions } from '../queries.ts';
import { useNow, useRefresh } from '../stream-hooks.ts';
import { formatDuration, RelativeTime, Timestamp } from '../times.tsx';
import ui from '../ui.module.css';
import { accountHref, endpointHref, useHref, useParams, useRegion } from '../urls.ts';
import { useIsOnScreen, Waiting } from './components.tsx';
import css from './Health.module.css';
import { getCachedHealth, useEndpointHealth, useEndpoints } from './queries.ts';
import {
  type Endpoint,
  formatPercent,
  getSinkName,
  type Health,
  matchesQuery,
  sortAccounts,
  sortEndpoints,
  staleSince,
  summarizeHealth,
  toAccountState,
  toEndpointState,
} from './status.ts';

/** Interval of the check for stale accounts. */
const STALE_MS = 5_000;
/** Minimum interval between refetches of endpoint health, because each request reads many logs. */
const HEALTHS_MS = 10_000;

export function OverviewPage() {
  const accounts = useAccounts();
  const endpoints = useEndpoints();
  const regions = useRegions();
  const chosen = useRegion();
  const now = useNow(STALE_MS);
  useRefresh(['account.*', 'upstream.*'], [['accounts'], ['regions']]);
  useRefresh(['endpoint.*'], [['endpoints', 'all']]);
  useRefresh(['endpoint.*'], [['endpoints', 'health']], HEALTHS_MS);
  const here = <T extends { readonly region: string }>(all: readonly T[] | undefined): readonly T[] =>
    (all ?? []).filter(({ region }) => chosen === null || region === chosen);
  const outages = (regions.data ?? []).filter(
    ({ id, state }) => state === 'outage' && (chosen === null || id === chosen),
  );
  const all = here(accounts.data);
  const sinks = here(endpoints.data);
  const read = (accounts.data || accounts.error) && (endpoints.data || endpoints.error);
  const whole = summarizeHealth(all, endpoints.data && sinks, outages, now);

  return (
    <Page title="Health">
      {read ? (
        <>
          {accounts.data ? (
            <Note tone={whole.tone} live={whole.tone === 'bad'}>
              <p className={css.summary}>{whole.text}</p>
            </Note>
          ) : null}
          {outages.map((region) => (
            <Outage key={region.id} region={region} />
          ))}
          {accounts.error && !accounts.data ? (
            <Failure error={accounts.error} again={accounts.refetch} />
          ) : (
            <AccountsPanel accounts={all} now={now} />
          )}
          {endpoints.error && !endpoints.data ? (
            <Failure error={endpoints.error} again={endpoints.refetch} />
          ) : (
            <EndpointsPanel endpoints={sinks} />
          )}
        </>
      ) : (
        <Waiting />
      )}
    </Page>
  );
}

function Outage({ region: { id, failingSince, problem } }: { readonly region: Region }) {
  return (
    <Note tone="bad" live>
      <div className={ui.tight}>
        <p>
          <strong>Outage of the ordering API in {id.toUpperCase()}</strong>
          {failingSince === null ? null : (
            <>
              {' '}
              since <Timestamp at={failingSince} />, <RelativeTime at={failingSince} />
            </>
          )}
          . {problem}
        </p>
        <p>
          A few accounts are polled in turn. After the first successful poll, all accounts are polled within
          minutes. Changes made meanwhile are detected then.
        </p>
      </div>
    </Note>
  );
}

function Filter(props: {
  readonly label: string;
  readonly value: string;
  readonly onChange: (to: string) => void;
}) {
  return (
    <TextInput
      size="xs"
      type="search"
      className={css.filter}
      aria-label={props.label}
      placeholder={props.label}
      value={props.value}
      onChange={({ currentTarget }) => props.onChange(currentTarget.value)}
    />
  );
}

function AccountsPanel({ accounts, now }: { readonly accounts: readonly Account[]; readonly now: number }) {
  const href = useHref();
  const [read, change] = useParams();
  const query = read('accounts') ?? '';
  const several = new Set(accounts.map(({ region }) => region)).size > 1;
  const rows = sortAccounts(accounts, now).filter((one) =>
    matchesQuery(query, one.id, one.region, toAccountState(one, now).label, one.status?.problem),
  );
  const columns: Column<Account>[] = [
    {
      name: 'Account',
      render: ({ id, region }) => (
        <>
          <Link href={href(accountHref(id))}>{id}</Link>
          {several ? <span className={ui.quiet}> {region.toUpperCase()}</span> : null}
        </>
      ),
    },
    {
      name: 'State',
      render: (one) => {
        const { label, tone } = toAccountState(one, now);
        return <Badge tone={tone}>{label}</Badge>;
      },
    },
    { name: 'Observed through', render: (one) => <ObservedThrough account={one} now={now} /> },
    {
      name: 'Last poll',
      render: ({ status }) => (status?.lastPollAt ? <RelativeTime at={status.lastPollAt} /> : '–'),
    },
    {
      name: 'Poll duration · median',
      right: true,
      render: ({ status }) =>
        status?.pollMs ? (
          <>
            {formatDuration(status.pollMs.last)}
            <span className={ui.quiet}> · {formatDuration(status.pollMs.median)}</span>
          </>
        ) : (
          '–'
        ),
    },
    {
      name: 'Consecutive failures',
      right: true,
      render: ({ status }) =>
        status && status.consecutiveFailures > 0 ? (
          <span className={css.loud}>{status.consecutiveFailures}</span>
        ) : (
          0
        ),
    },
    {
      name: 'Open jobs',
      right: true,
      render: ({ id, status }) =>
        status?.openJobs == null ? (
          '–'
        ) : (
          <Link href={href('/jobs', { account: id, which: 'open' })}>{status.openJobs.toLocaleString()}</Link>
        ),
    },
    {
      name: 'Problem',
      wide: true,
      render: ({ paused, status }) => (paused ? '' : <bdi>{status?.problem}</bdi>),
      hasContent: ({ paused, status }) => !paused && Boolean(status?.problem),
    },
  ];
  return (
    <div id="accounts">
      <Panel
        title="Accounts"
        aside={
          accounts.length > 5 ? (
            <Filter label="Filter accounts" value={query} onChange={(text) => change({ accounts: text })} />
          ) : undefined
        }
      >
        {accounts.length === 0 ? (
          <Empty>
            No accounts yet. Accounts appear here when they are added.{' '}
            <Link href={href('/setup/accounts')}>Add an account</Link>
          </Empty>
        ) : rows.length === 0 ? (
          <Empty>No accounts match the filter.</Empty>
        ) : (
          <DataTable label="Accounts" columns={columns} rows={rows} keyOf={({ id }) => id} />
        )}
      </Panel>
    </div>
  );
}

/** Time up to which an account was completely observed; highlighted if stale. */
export function ObservedThrough({ account, now }: { readonly account: Account; readonly now: number }) {
  const at = account.status?.observedThrough;
  if (!at) return <span className={ui.quiet}>Never</span>;
  const stale = staleSince(account, now);
  if (stale === null) return <RelativeTime at={at} />;
  return (
    <span className={css.loud}>
      <RelativeTime at={at} />, stale
    </span>
  );
}

/** Column with a value of the endpoint's health. */
function healthColumn(name: string, show: (health: Health) => React.ReactNode): Column<Endpoint> {
  return { name, right: true, render: (one) => <EndpointHealthValue endpoint={one} show={show} /> };
}

function EndpointsPanel({ endpoints }: { readonly endpoints: readonly Endpoint[] }) {
  const href = useHref();
  const client = useQueryClient();
  const [read, change] = useParams();
  const query = read('endpoints') ?? '';
  const several = new Set(endpoints.map(({ region }) => region)).size > 1;
  // Sorted once per list, so that rows do not move when their health is loaded.
  const ordered = useMemo(
    () => sortEndpoints(endpoints, (one) => getCachedHealth(client, one), Date.now()),
    [endpoints, client],
  );
  const rows = ordered.filter((one) =>
    matchesQuery(
      query,
      getSinkName(one.id),
      one.url,
      one.region,
      one.description,
      toEndpointState(one, undefined, 0).label,
    ),
  );
  const columns: Column<Endpoint>[] = [
    {
      name: 'Endpoint',
      render: (one) => (
        <>
          <Link href={href(endpointHref(one.region, one.id))}>{getSinkName(one.id)}</Link>
          {several ? <span className={ui.quiet}> {one.region.toUpperCase()}</span> : null}
        </>
      ),
    },
    { name: 'State', render: (one) => <EndpointState endpoint={one} /> },
    healthColumn('Backlog', ({ backlog }) => <Backlog backlog={backlog} />),
    healthColumn('Success rate, 24 h', ({ statistics: { successRate } }) =>
      successRate === null ? '–' : formatPercent(successRate),
    ),
    healthColumn('Latency, median · 95 %', ({ statistics }) => formatLatency(statistics)),
    healthColumn('Parked', ({ parked: { count } }) =>
      count > 0 ? <span className={css.loud}>{count.toLocaleString()}</span> : 0,
    ),
    healthColumn('Dead', ({ dead }) => formatDeadCount(dead)),
    {
      name: 'Problem',
      wide: true,
      render: (one) => <EndpointHealthValue endpoint={one} show={({ problem }) => <bdi>{problem}</bdi>} />,
      hasContent: (one) => isUnhealthy(one) || Boolean(getCachedHealth(client, one)?.problem),
    },
  ];
  return (
    <div id="endpoints">
      <Panel
        title="Endpoints"
        aside={
          endpoints.length > 5 ? (
            <Filter label="Filter endpoints" value={query} onChange={(text) => change({ endpoints: text })} />
          ) : undefined
        }
      >
        {endpoints.length === 0 ? (
          <Empty>
            No endpoints yet. Endpoints appear here when they are added.{' '}
            <Link href={href('/setup/endpoints')}>Add an endpoint</Link>
          </Empty>
        ) : rows.length === 0 ? (
          <Empty>No endpoints match the filter.</Empty>
        ) : (
          <DataTable
            label="Endpoints"
            columns={columns}
            rows={rows}
            keyOf={({ region, id }) => `${region}/${id}`}
          />
        )}
      </Panel>
    </div>
  );
}

function isUnhealthy({ state }: Endpoint): boolean {
  return state === 'failing' || state === 'disabled';
}

/** State of an endpoint. Loads the health while the row is visible, or if the endpoint is failing or disabled. */
function EndpointState({ endpoint }: { readonly endpoint: Endpoint }) {
  const [ref, isVisible] = useIsOnScreen<HTMLSpanElement>();
  const { data } = useEndpointHealth(endpoint, { enabled: isVisible || isUnhealthy(endpoint) });
  const { label, tone } = toEndpointState(endpoint, data, Date.now());
  return (
    <span ref={ref}>
      <Badge tone={tone}>{label}</Badge>
    </span>
  );
}

/** A value of the endpoint's health; a dash until it is loaded. */
function EndpointHealthValue(props: {
  readonly endpoint: Endpoint;
  readonly show: (health: Health) => React.ReactNode;
}) {
  const { data } = useEndpointHealth(props.endpoint, { enabled: false });
  return data ? props.show(data) : '–';
}

function Backlog({ backlog: { events, oldestAt, complete } }: Pick<Health, 'backlog'>) {
  if (events === 0) return 0;
  return (
    <>
      {events.toLocaleString()}
      {complete ? '' : ' or more'}
      {oldestAt === null ? null : (
        <span className={ui.quiet}>
          {' · '}
          <RelativeTime at={oldestAt} />
        </span>
      )}
    </>
  );
}

function formatLatency({ p50Ms, p95Ms }: Health['statistics']): string {
  return p50Ms === null || p95Ms === null ? '–' : `${formatDuration(p50Ms)} · ${formatDuration(p95Ms)}`;
}

/** Formats the number of dead events, which the API counts up to 100. */
export function formatDeadCount(dead: number): string {
  return dead >= 100 ? '100 or more' : String(dead);
}
