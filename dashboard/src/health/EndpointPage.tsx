/** State, deliveries, parked events and replays of one endpoint, with actions. */
import { Button } from '@mantine/core';
import { useState } from 'react';
import { Link } from 'wouter';
import type { AttemptReport } from '../../../client/index.ts';
import { withEndpoint, withRevision } from '../api.ts';
import { Facts, Failure, Note, Page, Panel, Statistic, useConfirm } from '../components.tsx';
import { DataTable } from '../DataTable.tsx';
import { useApi } from '../queries.ts';
import { useSession } from '../session.ts';
import { useNow, useRefresh } from '../stream-hooks.ts';
import { formatDuration, RelativeTime, Timestamp } from '../times.tsx';
import ui from '../ui.module.css';
import { accountHref, useHref } from '../urls.ts';
import { ActionError, type ActionRunner, StateNote, useActionRunner, Waiting } from './components.tsx';
import { Deliveries } from './Deliveries.tsx';
import css from './Health.module.css';
import { formatDeadCount } from './OverviewPage.tsx';
import { DeadEvents, ParkedEvents } from './ParkedEvents.tsx';
import { isGone, useEndpoint, useEndpointHealth } from './queries.ts';
import { Replays } from './Replays.tsx';
import {
  ATTEMPT_OUTCOMES,
  type Endpoint,
  formatPercent,
  getSinkName,
  type Health,
  toEndpointState,
} from './status.ts';

/** Interval of the check whether the endpoint is lagging. */
const LATE_MS = 5_000;

export function EndpointPage({ region, id }: { readonly region: string; readonly id: string }) {
  const endpoint = useEndpoint(region, id);
  const health = useEndpointHealth({ region, id }, { often: true });
  useRefresh(['endpoint.*'], [['endpoints']]);
  const error = endpoint.error ?? health.error;
  if (endpoint.data && health.data && !isGone(endpoint))
    return <EndpointView endpoint={endpoint.data} health={health.data} />;
  return (
    <Page title={`Endpoint ${id}`}>
      {error ? (
        <Failure error={error} again={() => Promise.all([endpoint.refetch(), health.refetch()])} />
      ) : (
        <Waiting />
      )}
    </Page>
  );
}

function EndpointView({ endpoint, health }: { readonly endpoint: Endpoint; readonly health: Health }) {
  const href = useHref();
  const now = useNow(LATE_MS);
  const { may } = useSession();
  const runner = useActionRunner([['endpoints']]);
  const [pinged, setPinged] = useState<AttemptReport | null>(null);
  const { region, id, kind } = endpoint;
  const { backlog, statistics, parked } = health;
  // The delivery log may be newer than the health.
  const failed = [health.lastFailedAt, statistics.lastError?.at]
    .filter((at) => at != null)
    .sort()
    .at(-1);
  return (
    <Page
      title={kind === 'webhook' ? `Endpoint ${id}` : getSinkName(id)}
      actions={
        <>
          {kind === 'webhook' ? (
            <Link href={href(`/setup/endpoints/${encodeURIComponent(region)}/${encodeURIComponent(id)}`)}>
              Endpoint setup
            </Link>
          ) : null}
          {may('operate') ? (
            <Actions endpoint={endpoint} health={health} runner={runner} onPinged={setPinged} />
          ) : null}
        </>
      }
    >
      <StateNote state={toEndpointState(endpoint, health, now)} problem={health.problem}>
        <FailingSince health={health} />
      </StateNote>
      <ActionError runner={runner} />
      {pinged ? <PingReport report={pinged} /> : null}
      <div className={`${ui.columns} ${ui.columns} ${css.statistics}`}>
        <Statistic
          name="Backlog"
          value={backlog.events}
          note={
            <>
              {backlog.complete ? '' : 'at least; '}
              {backlog.oldestAt === null ? (
                'events'
              ) : (
                <>
                  oldest <RelativeTime at={backlog.oldestAt} />
                </>
              )}
            </>
          }
        />
        <Statistic
          name="Success rate, 24 h"
          value={statistics.successRate === null ? '–' : formatPercent(statistics.successRate)}
          note={
            statistics.attempts >= 500
              ? 'of the last 500 attempts'
              : `of ${statistics.attempts} ${statistics.attempts === 1 ? 'attempt' : 'attempts'}`
          }
        />
        <Statistic
          name="Median latency"
          value={statistics.p50Ms === null ? '–' : formatDuration(statistics.p50Ms)}
          note={
            statistics.p95Ms === null
              ? 'of successful deliveries'
              : `95th percentile ${formatDuration(statistics.p95Ms)}`
          }
        />
        <Statistic
          name="Parked"
          value={parked.count}
          tone={parked.count > 0 ? 'bad' : 'plain'}
          note={
            parked.oldestAt === null ? (
              'events'
            ) : (
              <>
                oldest <RelativeTime at={parked.oldestAt} />
              </>
            )
          }
        />
        <Statistic name="Dead" value={formatDeadCount(health.dead)} note="rejected on every attempt" />
        <Statistic
          name="Lost"
          value={health.lost}
          tone={health.lost > 0 ? 'bad' : 'plain'}
          note="expired before delivery"
        />
      </div>
      <div className={css.columns}>
        <Panel title="Configuration">
          <Facts
            rows={{
              Destination: (
                <bdi>{kind === 'notifications' ? 'Customers, by e-mail and SMS' : endpoint.url}</bdi>
              ),
              Description: endpoint.description ?? undefined,
              Region: region.toUpperCase(),
              Accounts: endpoint.accounts.length === 0 ? 'All of the region' : endpoint.accounts.join(', '),
              Events: endpoint.types.length === 0 ? 'All types' : endpoint.types.join(', '),
              'Last delivered': formatLastDelivered(health),
              'Last failed': failed ? <RelativeTime at={failed} /> : 'Never',
              'Last error': statistics.lastError ? (
                <span>
                  <RelativeTime at={statistics.lastError.at} />: <bdi>{statistics.lastError.reason}</bdi>
                </span>
              ) : undefined,
              'Managed by': endpoint.managed || kind !== 'webhook' ? undefined : 'Configuration file',
            }}
          />
        </Panel>
        <Panel title="Longest backlogs" aside="Events after the cursor, before filtering">
          {backlog.accounts.length === 0 ? (
            <p className={ui.quiet}>No backlog.</p>
          ) : (
            <DataTable
              label="Longest backlogs"
              rows={backlog.accounts}
              keyOf={({ account }) => account}
              columns={[
                {
                  name: 'Account',
                  render: ({ account }) =>
                    account.startsWith('_') ? (
                      'Region log'
                    ) : (
                      <Link href={href(accountHref(account))}>{account}</Link>
                    ),
                },
                { name: 'Events', right: true, render: ({ events }) => events.toLocaleString() },
              ]}
            />
          )}
        </Panel>
      </div>
      <ParkedEvents endpoint={endpoint} count={parked.count} />
      <DeadEvents endpoint={endpoint} count={health.dead} />
      <Replays endpoint={endpoint} />
      <Deliveries endpoint={endpoint} />
    </Page>
  );
}

/** Returns the time of the last delivery. The exact time is known only when the backlog is empty. */
function formatLastDelivered({ lastDeliveredAt, statistics }: Health): React.ReactNode {
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
      Failing since <Timestamp at={failingSince} />, <RelativeTime at={failingSince} />
      {waitUntil === null ? (
        '; next attempt now.'
      ) : (
        <>
          ; next attempt <RelativeTime at={waitUntil} />.
        </>
      )}
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
  const ask = useConfirm();
  const name = getSinkName(id);
  const ping = () => {
    onPinged(null);
    void runner.run('ping', async () =>
      onPinged(await api.post('/v1/endpoints/{id}/ping', withEndpoint(endpoint))),
    );
  };
  const restart = (verb: 'resume' | 'enable', done: string) => () =>
    void runner.run(
      verb,
      () => api.post(`/v1/endpoints/{id}/${verb}`, withRevision(withEndpoint(endpoint), revision)),
      done,
    );
  const pause = () =>
    ask({
      title: `Pause ${name}?`,
      body: 'No events are sent until the endpoint is resumed. It keeps its cursors and resumes there. Events that expire meanwhile are lost for this endpoint.',
      verb: 'Pause',
      onConfirm: () =>
        runner.runConfirmed(
          () => api.post('/v1/endpoints/{id}/pause', withRevision(withEndpoint(endpoint), revision)),
          `${name} is paused.`,
        ),
    });
  const failing = health.failingSince !== null || health.waitUntil !== null;
  return (
    <>
      {kind === 'webhook' ? (
        <Button size="xs" variant="default" loading={runner.busy === 'ping'} onClick={ping}>
          Ping
        </Button>
      ) : null}
      {health.disabledAt !== null ? (
        <Button
          size="xs"
          loading={runner.busy === 'enable'}
          onClick={restart('enable', `${name} is enabled and resumes at its cursors.`)}
        >
          Enable
        </Button>
      ) : failing && !paused ? (
        <Button
          size="xs"
          variant="default"
          loading={runner.busy === 'enable'}
          onClick={restart('enable', `Delivery to ${name} is retried now.`)}
        >
          Retry now
        </Button>
      ) : null}
      {kind !== 'webhook' || !managed ? null : paused ? (
        <Button
          size="xs"
          loading={runner.busy === 'resume'}
          onClick={restart('resume', `${name} is resumed.`)}
        >
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

function PingReport({ report: { outcome, status, latencyMs, message } }: { readonly report: AttemptReport }) {
  const { label, tone } = ATTEMPT_OUTCOMES[outcome];
  return (
    <Note tone={tone === 'good' ? 'good' : 'bad'} live>
      <p>
        <strong>Ping: {label.toLowerCase()}</strong> after {formatDuration(latencyMs)}
        {status === null ? '' : `, status code ${status}`}. <bdi>{message}</bdi>
      </p>
    </Note>
  );
}
