/** State, deliveries, parked events and replays of one endpoint, with actions. */
import { type ReactNode, useState } from 'react';
import { Link } from 'wouter';
import type { AttemptReport } from '../../../client/index.ts';
import { isEndpointKind } from '../../../shared/built-in-sinks.ts';
import { type ActionRunner, useActions } from '../actions.ts';
import { hasStatus, withEndpoint, withRevision } from '../api.ts';
import {
  ContentSkeleton,
  DescriptionList,
  Failure,
  Loaded,
  Panel,
  Statistic,
  TriageSummary,
  Url,
} from '../components.tsx';
import { DataTable } from '../DataTable.tsx';
import { loadLater } from '../load-later.tsx';
import { useApi } from '../queries.ts';
import { ResourcePage } from '../ResourcePage.tsx';
import { useSession } from '../session.ts';
import { useNow, useRefresh } from '../stream-hooks.ts';
import { RelativeTime, Timestamp } from '../times.tsx';
import ui from '../ui.module.css';
import { accountHref, endpointHref, type ResourceTab, useHref } from '../urls.ts';
import { ActionButton, ActionError, PingReport, StateNote } from './components.tsx';
import { Deliveries } from './Deliveries.tsx';
import css from './Health.module.css';
import { formatDeadCount } from './OverviewPage.tsx';
import { DeadEvents, ParkedEvents } from './ParkedEvents.tsx';
import { useEndpoint, useEndpointHealth } from './queries.ts';
import { Replays } from './Replays.tsx';
import { type Endpoint, getSinkName, type Health, isBuiltIn, toEndpointState } from './status.ts';

/** Loaded on the tab Activity. */
const Statistics = loadLater(() => import('./Statistics.tsx'));
/** Loaded if deliveries fail. */
const LastResponse = loadLater(() => import('../now/LastResponse.tsx'));

/** Interval of the check whether the endpoint is lagging. */
const LATE_MS = 5_000;

export function EndpointPage({ region, id }: { readonly region: string; readonly id: string }) {
  const endpoint = useEndpoint(region, id);
  const health = useEndpointHealth({ region, id }, { often: true });
  useRefresh(['endpoint.*'], [['endpoints']]);
  const error = endpoint.error ?? health.error;
  const failure = error ? (
    <Failure error={error} again={() => Promise.all([endpoint.refetch(), health.refetch()])} />
  ) : null;
  if (endpoint.data && health.data && !hasStatus(endpoint.error, 404))
    return (
      <EndpointView endpoint={endpoint.data} health={health.data}>
        {failure}
      </EndpointView>
    );
  return (
    <EndpointTab region={region} id={id} tab="state">
      {failure ?? <ContentSkeleton />}
    </EndpointTab>
  );
}

/** Statistics and deliveries of an endpoint. */
export function EndpointActivity({ region, id }: { readonly region: string; readonly id: string }) {
  const endpoint = useEndpoint(region, id);
  return (
    <EndpointTab region={region} id={id} tab="activity">
      <Loaded query={endpoint} loading={<ContentSkeleton />}>
        {(data) =>
          isEndpointKind(data.kind) ? (
            <Statistics endpoint={data}>
              <Deliveries endpoint={data} />
            </Statistics>
          ) : (
            <Deliveries endpoint={data} />
          )
        }
      </Loaded>
    </EndpointTab>
  );
}

/** A tab of an endpoint. Built-in sinks have no settings. */
function EndpointTab(props: {
  readonly region: string;
  readonly id: string;
  readonly tab: ResourceTab;
  readonly actions?: ReactNode;
  readonly children: ReactNode;
}) {
  const { region, id, ...rest } = props;
  return (
    <ResourcePage
      title={isBuiltIn(id) ? getSinkName(id) : `Endpoint ${id}`}
      toHref={(tab) => endpointHref(region, id, tab)}
      hasSettings={!isBuiltIn(id)}
      {...rest}
    />
  );
}

function EndpointView(props: {
  readonly endpoint: Endpoint;
  readonly health: Health;
  readonly children: ReactNode;
}) {
  const { endpoint, health, children } = props;
  const href = useHref();
  const now = useNow(LATE_MS);
  const { hasRole } = useSession();
  const runner = useActions([['endpoints']]);
  const [pinged, setPinged] = useState<AttemptReport | null>(null);
  const { region, id, kind } = endpoint;
  const { backlog, statistics, parked } = health;
  const failure = isEndpointKind(kind) ? findFailure(health) : null;
  // The delivery log may be newer than the health.
  const failed = [health.lastFailedAt, statistics.lastError?.at]
    .filter((at) => at != null)
    .sort()
    .at(-1);
  return (
    <EndpointTab
      region={region}
      id={id}
      tab="state"
      actions={
        hasRole('operate') ? (
          <Actions endpoint={endpoint} health={health} runner={runner} onPinged={setPinged} />
        ) : null
      }
    >
      {children}
      <StateNote state={toEndpointState(endpoint, health, now)} problem={health.problem}>
        <FailingSince health={health} />
      </StateNote>
      <TriageSummary type="endpoint" id={id} region={region} />
      <ActionError runner={runner} />
      {pinged ? <PingReport report={pinged} /> : null}
      <div className={`${ui.columns} ${css.statistics}`}>
        <Statistic
          name="Backlog"
          value={backlog.events}
          note={
            <>
              {backlog.complete ? '' : 'at least; '}
              <Oldest at={backlog.oldestAt} />
            </>
          }
        />
        <Statistic
          name="Parked"
          value={parked.count}
          tone={parked.count > 0 ? 'bad' : 'plain'}
          note={<Oldest at={parked.oldestAt} />}
        />
        <Statistic
          name="Dead"
          value={formatDeadCount(health.dead)}
          tone={health.dead > 0 ? 'bad' : 'plain'}
          note="rejected on every attempt"
        />
        <Statistic
          name="Lost"
          value={health.lost}
          tone={health.lost > 0 ? 'bad' : 'plain'}
          note="expired before delivery"
        />
      </div>
      <div className={ui.panels}>
        <Panel title="Configuration">
          <DescriptionList
            rows={{
              Destination:
                kind === 'notifications' ? 'Customers, by e-mail and SMS' : <Url url={endpoint.url} />,
              Description: endpoint.description ?? undefined,
              Region: region.toUpperCase(),
              Accounts: endpoint.accounts.length === 0 ? 'All of the region' : endpoint.accounts.join(', '),
              Events: endpoint.types.length === 0 ? 'All types' : endpoint.types.join(', '),
              'Last delivered': formatLastDelivered(health),
              'Last failed': <RelativeTime at={failed} none="Never" />,
              'Last error':
                statistics.lastError && failure === null ? (
                  <span>
                    <RelativeTime at={statistics.lastError.at} />: <bdi>{statistics.lastError.reason}</bdi>
                  </span>
                ) : undefined,
              'Managed by': endpoint.managed || !isEndpointKind(kind) ? undefined : 'Configuration',
            }}
          />
        </Panel>
        {failure === null ? null : (
          <Panel title="Last response">
            <LastResponse {...{ region, id }} outcome={failure} isDisabled={health.disabledAt !== null} />
          </Panel>
        )}
        <Panel title="Longest backlogs" aside="Including events that the filters exclude">
          {backlog.accounts.length === 0 ? (
            <p className={ui.quiet}>No backlog.</p>
          ) : (
            <DataTable
              label="Longest backlogs"
              rows={backlog.accounts}
              getKey={({ account }) => account}
              columns={{
                Account: ({ account }) =>
                  account.startsWith('_') ? (
                    'Region log'
                  ) : (
                    <Link href={href(accountHref(account))}>{account}</Link>
                  ),
                Events: { right: true, render: ({ events }) => events.toLocaleString() },
              }}
            />
          )}
        </Panel>
      </div>
      <ParkedEvents endpoint={endpoint} count={parked.count} />
      <DeadEvents endpoint={endpoint} count={health.dead} />
      <Replays endpoint={endpoint} />
    </EndpointTab>
  );
}

/** Returns the outcome of the attempts that explain the state of an endpoint. `null`: nothing is wrong. */
function findFailure({ failingSince, disabledAt, dead, parked }: Health): 'failed' | 'rejected' | null {
  if (failingSince !== null || disabledAt !== null) return 'failed';
  return dead > 0 || parked.count > 0 ? 'rejected' : null;
}

/** The time of the oldest of some events. */
function Oldest({ at }: { readonly at: string | null }) {
  if (at === null) return 'events';
  return (
    <>
      oldest <RelativeTime at={at} />
    </>
  );
}

/** Returns the time of the last delivery. The exact time is known only when the backlog is empty. */
function formatLastDelivered({ lastDeliveredAt, statistics }: Health): ReactNode {
  if (lastDeliveredAt !== null) return <RelativeTime at={lastDeliveredAt} />;
  return statistics.delivered > 0 ? 'In the last 24 hours' : 'Never';
}

/** Since when an endpoint is failing or disabled, and the time of the next attempt. */
function FailingSince({ health: { failingSince, disabledAt, waitUntil } }: { readonly health: Health }) {
  if (disabledAt !== null) {
    return (
      <p>
        Disabled since <Timestamp at={disabledAt} />, <RelativeTime at={disabledAt} />.
      </p>
    );
  }
  if (failingSince === null) return null;
  return (
    <p>
      Failing since <Timestamp at={failingSince} />, <RelativeTime at={failingSince} />; next attempt{' '}
      <RelativeTime isPlanned at={waitUntil} none="now" />.
    </p>
  );
}

function Actions(props: {
  readonly endpoint: Endpoint;
  readonly health: Health;
  readonly runner: ActionRunner;
  readonly onPinged: (report: AttemptReport | null) => void;
}) {
  const { endpoint, health, runner, onPinged } = props;
  const { id, kind, managed, paused, revision } = endpoint;
  const api = useApi();
  const name = getSinkName(id);
  const options = withRevision(withEndpoint(endpoint), revision);
  const ping = () => {
    onPinged(null);
    return runner.run('ping', async () =>
      onPinged(await api.post('/v1/endpoints/{id}/ping', withEndpoint(endpoint))),
    );
  };
  const restart = (verb: 'resume' | 'enable', done: string) => () =>
    runner.run(verb, () => api.post(`/v1/endpoints/{id}/${verb}`, options), done);
  const pause = () =>
    runner.confirm({
      title: `Pause ${name}?`,
      body: 'No events are sent until the endpoint is resumed. It keeps its cursors. Events that expire in the meantime are lost for this endpoint.',
      verb: 'Pause',
      act: () => api.post('/v1/endpoints/{id}/pause', options),
      done: `${name} is paused.`,
    });
  const resume = restart('resume', `${name} is resumed.`);
  const isDisabled = health.disabledAt !== null;
  const isFailing = health.failingSince !== null || health.waitUntil !== null;
  const enabled = isDisabled
    ? `${name} is enabled and resumes at its cursors.`
    : `Deliveries to ${name} are retried now.`;
  return (
    <>
      {isEndpointKind(kind) ? (
        <ActionButton runner={runner} name="ping" onClick={ping}>
          Ping
        </ActionButton>
      ) : null}
      {isDisabled || (isFailing && !paused) ? (
        <ActionButton runner={runner} name="enable" primary={isDisabled} onClick={restart('enable', enabled)}>
          {isDisabled ? 'Enable' : 'Retry now'}
        </ActionButton>
      ) : null}
      {isEndpointKind(kind) && managed ? (
        <ActionButton runner={runner} name="resume" primary={paused} onClick={paused ? resume : pause}>
          {paused ? 'Resume' : 'Pause'}
        </ActionButton>
      ) : null}
    </>
  );
}
