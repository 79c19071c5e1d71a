/** How everything is doing: regions, accounts, endpoints; what is in trouble stands first. */
import { TextInput } from '@mantine/core';
import { useQueryClient } from '@tanstack/react-query';
import { useMemo } from 'react';
import { Link } from 'wouter';
import { Badge, Empty, Failure, Note, Page, Panel } from '../components.tsx';
import { type Account, type Region, useAccounts, useRegions } from '../queries.ts';
import { useNow, useRefresh } from '../stream-hooks.ts';
import { formatDuration, RelativeTime, Timestamp } from '../times.tsx';
import { accountHref, endpointHref, useParams, useRegion } from '../urls.ts';
import { type Column, Rows, useHref, useIsOnScreen, Waiting } from './components.tsx';
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

/** How often it is looked whether something has become stale. */
const STALE_MS = 5_000;
/** Healths are asked for again at most so often while events come: each reads many logs. */
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
      <div className={css.state}>
        <p>
          <strong>The ordering service fails in {id.toUpperCase()}</strong>
          {failingSince === null ? null : (
            <>
              {' '}
              since <Timestamp at={failingSince} />, <RelativeTime at={failingSince} />
            </>
          )}
          . {problem}
        </p>
        <p>
          A few accounts are tried in turn; its first answer ends this, and all are polled within minutes.
          Nothing is lost: what happens meanwhile is told then.
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
          {several ? <span className={css.quiet}> {region.toUpperCase()}</span> : null}
        </>
      ),
    },
    {
      name: 'State',
      render: (one) => {
        const { label: word, tone } = toAccountState(one, now);
        return <Badge tone={tone}>{word}</Badge>;
      },
    },
    { name: 'Observed through', render: (one) => <ObservedThrough account={one} now={now} /> },
    {
      name: 'Last poll',
      render: ({ status }) => (status?.lastPollAt ? <RelativeTime at={status.lastPollAt} /> : '–'),
    },
    {
      name: 'Took, usually',
      right: true,
      render: ({ status }) =>
        status?.pollMs ? (
          <>
            {formatDuration(status.pollMs.last)}
            <span className={css.quiet}> · {formatDuration(status.pollMs.median)}</span>
          </>
        ) : (
          '–'
        ),
    },
    {
      name: 'Failed in a row',
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
            <Filter label="Find accounts" value={query} onChange={(text) => change({ accounts: text })} />
          ) : undefined
        }
      >
        {accounts.length === 0 ? (
          <Empty>
            No account is tracked here yet. <Link href={href('/setup/accounts')}>Go to the setup</Link>
          </Empty>
        ) : rows.length === 0 ? (
          <Empty>No account is called that, or in such a state.</Empty>
        ) : (
          <Rows label="Accounts" columns={columns} rows={rows} keyOf={({ id }) => id} />
        )}
      </Panel>
    </div>
  );
}

/** Up to when an account was seen; loud when that is too long ago. */
export function ObservedThrough({ account, now }: { readonly account: Account; readonly now: number }) {
  const at = account.status?.observedThrough;
  if (!at) return <span className={css.quiet}>not yet</span>;
  const stale = staleSince(account, now);
  if (stale === null) return <RelativeTime at={at} />;
  return (
    <span className={css.loud}>
      <RelativeTime at={at} />, too long ago
    </span>
  );
}

/** A column with a figure of an endpoint's health. */
function healthColumn(name: string, show: (health: Health) => React.ReactNode): Column<Endpoint> {
  return { name, right: true, render: (one) => <EndpointHealthValue endpoint={one} show={show} /> };
}

function EndpointsPanel({ endpoints }: { readonly endpoints: readonly Endpoint[] }) {
  const href = useHref();
  const client = useQueryClient();
  const [read, change] = useParams();
  const query = read('endpoints') ?? '';
  const several = new Set(endpoints.map(({ region }) => region)).size > 1;
  // By what is known when the list comes, so that rows don't move whenever one of them says how it is.
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
          {several ? <span className={css.quiet}> {one.region.toUpperCase()}</span> : null}
        </>
      ),
    },
    { name: 'State', render: (one) => <EndpointState endpoint={one} /> },
    healthColumn('Waiting for it', ({ backlog }) => <Backlog backlog={backlog} />),
    healthColumn('Taken, last 24 h', ({ statistics: { successRate } }) =>
      successRate === null ? '–' : formatPercent(successRate),
    ),
    healthColumn('Half · 95 % within', ({ statistics }) => formatLatency(statistics)),
    healthColumn('Parked', ({ parked: { count } }) =>
      count > 0 ? <span className={css.loud}>{count.toLocaleString()}</span> : 0,
    ),
    healthColumn('Dead', ({ dead }) => formatDeadCount(dead)),
    {
      name: 'Problem',
      wide: true,
      render: (one) => <EndpointHealthValue endpoint={one} show={({ problem }) => <bdi>{problem}</bdi>} />,
      hasContent: (one) => isInTrouble(one) || Boolean(getCachedHealth(client, one)?.problem),
    },
  ];
  return (
    <div id="endpoints">
      <Panel
        title="Endpoints"
        aside={
          endpoints.length > 5 ? (
            <Filter label="Find endpoints" value={query} onChange={(text) => change({ endpoints: text })} />
          ) : undefined
        }
      >
        {endpoints.length === 0 ? (
          <Empty>
            Nothing is delivered anywhere yet. <Link href={href('/setup/endpoints')}>Go to the setup</Link>
          </Empty>
        ) : rows.length === 0 ? (
          <Empty>No endpoint is called that, or in such a state.</Empty>
        ) : (
          <Rows
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

function isInTrouble({ state }: Endpoint): boolean {
  return state === 'failing' || state === 'disabled';
}

/** The state of an endpoint, which has its health asked for while it is on screen, or in trouble. */
function EndpointState({ endpoint }: { readonly endpoint: Endpoint }) {
  const [ref, seen] = useIsOnScreen<HTMLSpanElement>();
  const { data } = useEndpointHealth(endpoint, { enabled: seen || isInTrouble(endpoint) });
  const { label: word, tone } = toEndpointState(endpoint, data, Date.now());
  return (
    <span ref={ref}>
      <Badge tone={tone}>{word}</Badge>
    </span>
  );
}

/** What is known of an endpoint's health, once it is. */
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
        <span className={css.quiet}>
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

/** They are counted up to a hundred. */
export function formatDeadCount(dead: number): string {
  return dead >= 100 ? '100 or more' : String(dead);
}
