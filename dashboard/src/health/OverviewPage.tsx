/** Health of regions, and the lists of all accounts and endpoints, the most severe first. */
import { Button } from '@mantine/core';
import { useIntersection } from '@mantine/hooks';
import { useQueryClient } from '@tanstack/react-query';
import { useEffect } from 'react';
import { Link } from 'wouter';
import { listAccountActions, listEndpointActions } from '../bulk/resource-actions.ts';
import { type Bulk, SelectableTable } from '../bulk/SelectableTable.tsx';
import { ContentSkeleton, Empty, Loaded, Note, Page, Panel } from '../components.tsx';
import type { Column, Columns } from '../DataTable.tsx';
import { type CsvSource, ExportButton } from '../export.tsx';
import { FilterInput } from '../filters.tsx';
import { type Account, type Region, useAccounts, useApi, useFigures, useRegions } from '../queries.ts';
import { useInRegion } from '../resources.ts';
import { useSession } from '../session.ts';
import { useRefresh } from '../stream-hooks.ts';
import { formatPercent, matchesQuery } from '../texts.ts';
import { formatDuration, RelativeTime, Timestamp } from '../times.tsx';
import ui from '../ui.module.css';
import { accountHref, endpointHref, type ResourceTab, useHref, useParams, useRegion } from '../urls.ts';
import { StateBadge } from './components.tsx';
import css from './Health.module.css';
import { getCachedHealth, useEndpointHealth, useEndpoints } from './queries.ts';
import {
  type Endpoint,
  getSinkName,
  type Health,
  isBuiltIn,
  sortAccounts,
  sortEndpoints,
  staleSince,
  summarizeHealth,
  toAccountState,
  toEndpointState,
} from './status.ts';

/** Minimum interval between refetches of endpoint health, because each request reads many logs. */
const HEALTHS_MS = 10_000;

export function OverviewPage() {
  const all = useAccounts();
  const accounts = useInRegion(all);
  const endpoints = useInRegion(useEndpoints());
  const figures = useFigures();
  const { data: regions = [] } = useRegions();
  const chosen = useRegion();
  // Without newer data, an account does not become stale.
  const now = all.dataUpdatedAt;
  useRefresh(['account.*', 'upstream.*'], [['accounts'], ['regions']]);
  useRefresh(['endpoint.*'], [['endpoints', 'all']]);
  useRefresh(['endpoint.*'], [['endpoints', 'health']], { everyMs: HEALTHS_MS });
  const outages = regions.filter(({ id, state }) => state === 'outage' && (chosen === null || id === chosen));
  const isRead = [accounts, endpoints, figures].every(({ data, error }) => data || error);
  useEffect(() => {
    if (isRead && location.hash !== '') document.getElementById(location.hash.slice(1))?.scrollIntoView();
  }, [isRead]);
  const { byKind = [], hiddenByKind = [] } = figures.data?.attention ?? {};
  const countItems = (kind: string): number =>
    [...byKind, ...hiddenByKind].reduce((sum, one) => sum + (one.kind === kind ? one.items : 0), 0);
  const whole = summarizeHealth(accounts.data ?? [], endpoints.data, outages, now, {
    dead: countItems('events_dead'),
    parked: countItems('events_parked'),
  });
  return (
    <Page title="Health">
      {isRead ? (
        <>
          {accounts.data ? (
            <Note tone={whole.tone} live={whole.tone === 'bad'}>
              <p className={css.summary}>{whole.text}</p>
            </Note>
          ) : null}
          {outages.map((region) => (
            <Outage key={region.id} region={region} />
          ))}
          <Loaded query={accounts}>{(data) => <AccountsPanel accounts={data} now={now} />}</Loaded>
          <Loaded query={endpoints}>{(data) => <EndpointsPanel endpoints={data} />}</Loaded>
        </>
      ) : (
        <ContentSkeleton />
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
          During the outage, only a few accounts are polled, in turn. After the first successful poll, all
          accounts are polled within minutes. Changes that were made in the meantime are then detected.
        </p>
      </div>
    </Note>
  );
}

/** Number of rows above which a filter is shown. */
const FILTER_THRESHOLD = 5;

/** List of a kind of resources with a filter. `all`: in order; `match`: texts that the filter searches. */
function ListPanel<T extends { readonly id: string; readonly region: string }>(props: {
  readonly kind: 'account' | 'endpoint';
  readonly all: readonly T[];
  readonly toTexts: (one: T) => readonly (string | null | undefined)[];
  readonly toHref: (one: T, tab?: ResourceTab) => string;
  readonly toName: (one: T) => string;
  /** Quiet text below the name. */
  readonly toHint?: (one: T) => string;
  readonly hasSettings?: (one: T) => boolean;
  readonly columns: Columns<T>;
  readonly bulk: Bulk<T>;
  readonly csv: CsvSource;
  /** Whether the key can create one. */
  readonly canCreate: boolean;
}) {
  const { kind, all, toTexts, toHref, toName, toHint, hasSettings, columns, bulk, csv, canCreate } = props;
  const title = kind === 'account' ? 'Accounts' : 'Endpoints';
  const href = useHref();
  const [read] = useParams();
  const query = read(`${kind}s`) ?? '';
  const isFiltered = all.length > FILTER_THRESHOLD || query !== '';
  const rows = all.filter((one) => matchesQuery(query, one.region, ...toTexts(one)));
  const several = new Set(all.map(({ region }) => region)).size > 1;
  const renderName = (one: T) => (
    <div className={css.name}>
      <Link href={href(toHref(one))}>{toName(one)}</Link>
      {several ? <span className={ui.quiet}> {one.region.toUpperCase()}</span> : null}
      {toHint ? (
        <div className={`${ui.hint} ${ui.ellipsis} ${css.hint}`} title={toHint(one)}>
          {toHint(one)}
        </div>
      ) : null}
    </div>
  );
  const renderTabs = (one: T) => (
    <span className={css.tabs}>
      <Link href={href(toHref(one, 'activity'))} aria-label={`Activity of ${toName(one)}`}>
        Activity
      </Link>
      {hasSettings?.(one) === false ? null : (
        <Link href={href(toHref(one, 'settings'))} aria-label={`Settings of ${toName(one)}`}>
          Settings
        </Link>
      )}
    </span>
  );
  const tools = (
    <div className={ui.actions}>
      {isFiltered ? (
        <FilterInput
          param={`${kind}s`}
          size="xs"
          type="search"
          className={css.filter}
          aria-label={`Filter ${kind}s`}
          placeholder={`Filter ${kind}s`}
        />
      ) : null}
      {all.length > 0 ? <ExportButton name={`${kind}s`} source={csv} /> : null}
      {canCreate ? (
        <Button variant="filled" component={Link} size="compact-sm" href={href(`/setup/new-${kind}`)}>
          New {kind}
        </Button>
      ) : null}
    </div>
  );
  return (
    <div id={`${kind}s`} className={css.list}>
      <Panel title={title} aside={tools}>
        {rows.length > 0 ? (
          <SelectableTable
            bulk={bulk}
            label={title}
            columns={{
              [title.slice(0, -1)]: renderName,
              ...columns,
              Pages: { hiddenName: true, right: true, render: renderTabs },
            }}
            rows={rows}
            getKey={({ region, id }) => `${region}/${id}`}
          />
        ) : (
          <Empty>
            {all.length > 0
              ? `No ${kind}s match the filter.`
              : `No ${kind}s yet. ${title} appear here when they are added.`}
          </Empty>
        )}
      </Panel>
    </div>
  );
}

function AccountsPanel({ accounts, now }: { readonly accounts: readonly Account[]; readonly now: number }) {
  const api = useApi();
  const region = useRegion() ?? undefined;
  const { hasRole, hasAllAccounts } = useSession();
  return (
    <ListPanel<Account>
      kind="account"
      bulk={{
        ...{ noun: 'account', toName: ({ id }) => id, actions: listAccountActions(api) },
        refreshed: [['accounts']],
      }}
      all={sortAccounts(accounts, now)}
      toTexts={(one) => [one.id, toAccountState(one, now).label, one.status?.problem]}
      toHref={({ id }, tab) => accountHref(id, tab)}
      toName={({ id }) => id}
      csv={(options) =>
        api.csv('/v1/accounts', { params: { query: { include: 'status', region } }, ...options })
      }
      canCreate={hasRole('admin') && hasAllAccounts}
      columns={{
        State: (one) => <StateBadge state={toAccountState(one, now)} />,
        'Observed up to': (one) => <ObservedThrough account={one} now={now} />,
        'Last poll': ({ status }) => <RelativeTime at={status?.lastPollAt} />,
        'Poll duration, last · median': {
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
        'Consecutive failures': {
          right: true,
          render: ({ status }) => <ProblemCount count={status?.consecutiveFailures ?? 0} />,
        },
        'Open jobs': { right: true, render: (one) => <OpenJobs account={one} none="–" /> },
        Problem: {
          wide: true,
          render: ({ paused, status }) => (paused ? '' : status?.problem && <bdi>{status.problem}</bdi>),
          hasContent: ({ paused, status }) => !paused && Boolean(status?.problem),
        },
      }}
    />
  );
}

/** A number that is highlighted unless it is 0. */
export function ProblemCount({ count }: { readonly count: number }) {
  return <span className={count > 0 ? css.loud : ''}>{count.toLocaleString()}</span>;
}

/** Number of open jobs with a link to them. `none`: shown if it is not known. */
export function OpenJobs({ account, none }: { readonly account: Account; readonly none: string }) {
  const href = useHref();
  const { id, status } = account;
  if (status?.openJobs == null) return none;
  return <Link href={href('/jobs', { account: id, which: 'open' })}>{status.openJobs.toLocaleString()}</Link>;
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
const healthColumn = (show: (health: Health) => React.ReactNode): Column<Endpoint> => ({
  right: true,
  render: (one) => <EndpointHealthValue endpoint={one} show={show} />,
});

function EndpointsPanel({ endpoints }: { readonly endpoints: readonly Endpoint[] }) {
  const client = useQueryClient();
  const api = useApi();
  const region = useRegion() ?? undefined;
  const { hasRole } = useSession();
  // Ids are unique within a region.
  const several = new Set(endpoints.map(({ region: one }) => one)).size > 1;
  const toFullName = ({ id, region: one }: Endpoint): string =>
    several ? `${id} (${one.toUpperCase()})` : id;
  return (
    <ListPanel<Endpoint>
      kind="endpoint"
      bulk={{
        ...{ noun: 'endpoint', toName: toFullName, actions: listEndpointActions(api) },
        ...{ refreshed: [['endpoints']], isSelectable: ({ id }) => !isBuiltIn(id) },
      }}
      all={sortEndpoints(endpoints)}
      toTexts={(one) => [getSinkName(one.id), one.url, one.description, toEndpointState(one).label]}
      toHref={(one, tab) => endpointHref(one.region, one.id, tab)}
      toName={({ id }) => getSinkName(id)}
      toHint={({ id, description, url }) => (isBuiltIn(id) ? '' : (description ?? url ?? ''))}
      hasSettings={({ id }) => !isBuiltIn(id)}
      csv={(options) => api.csv('/v1/endpoints', { params: { query: { region } }, ...options })}
      canCreate={hasRole('admin')}
      columns={{
        State: (one) => <EndpointState endpoint={one} />,
        Backlog: healthColumn(({ backlog }) => <Backlog backlog={backlog} />),
        'Success rate, 24 h': healthColumn(({ statistics: { successRate } }) =>
          successRate === null ? '–' : formatPercent(successRate),
        ),
        'Latency, median · p95': healthColumn(({ statistics }) => formatLatency(statistics)),
        Parked: healthColumn(({ parked }) => <ProblemCount count={parked.count} />),
        Dead: healthColumn(({ dead }) => formatDeadCount(dead)),
        Problem: {
          wide: true,
          render: (one) => (
            <EndpointHealthValue endpoint={one} show={({ problem }) => problem && <bdi>{problem}</bdi>} />
          ),
          hasContent: (one) => isUnhealthy(one) || Boolean(getCachedHealth(client, one)?.problem),
        },
      }}
    />
  );
}

function isUnhealthy({ state }: Endpoint): boolean {
  return state === 'failing' || state === 'disabled';
}

/** State of an endpoint. Loads the health while the row is visible, or if the endpoint is failing or disabled. */
function EndpointState({ endpoint }: { readonly endpoint: Endpoint }) {
  const { ref, entry } = useIntersection({ rootMargin: '100px' });
  const { data } = useEndpointHealth(endpoint, { enabled: entry?.isIntersecting || isUnhealthy(endpoint) });
  return (
    <span ref={ref}>
      <StateBadge state={toEndpointState(endpoint, data)} />
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
          {' · oldest '}
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
