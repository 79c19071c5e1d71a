/** How one endpoint is doing, what was sent to it, and what can be done about it. */
import { Button } from '@mantine/core';
import { useState } from 'react';
import { Link } from 'wouter';
import type * as z from 'zod';
import type { AttemptReport } from '../../../shared/api/endpoint-views.ts';
import { Facts, Failure, Note, Page, Panel, Statistic, useConfirm } from '../components.tsx';
import { useApi } from '../queries.ts';
import { useSession } from '../session.ts';
import { useNow, useRefresh } from '../stream-hooks.ts';
import { formatDuration, RelativeTime, Timestamp } from '../times.tsx';
import { accountHref } from '../urls.ts';
import {
  ActionError,
  type ActionRunner,
  Rows,
  StateNote,
  useActionRunner,
  useHref,
  Waiting,
} from './components.tsx';
import { Deliveries } from './Deliveries.tsx';
import css from './Health.module.css';
import { formatDeadCount } from './OverviewPage.tsx';
import { DeadEvents, ParkedEvents } from './ParkedEvents.tsx';
import { endpointPath, isGone, useEndpoint, useEndpointHealth } from './queries.ts';
import { Replays } from './Replays.tsx';
import {
  ATTEMPT_OUTCOMES,
  type Endpoint,
  formatPercent,
  getSinkName,
  type Health,
  toEndpointState,
} from './status.ts';

type PingResponse = z.infer<typeof AttemptReport>;

/** How often it is looked whether the endpoint is late. */
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
  const acts = useActionRunner([['endpoints']]);
  const [pinged, setPinged] = useState<PingResponse | null>(null);
  const { region, id, kind } = endpoint;
  const { backlog, statistics, parked } = health;
  // What is under way stands in the log of deliveries before it does in its health.
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
              Its setup
            </Link>
          ) : null}
          {may('operate') ? (
            <Actions endpoint={endpoint} health={health} acts={acts} onPinged={setPinged} />
          ) : null}
        </>
      }
    >
      <StateNote words={toEndpointState(endpoint, health, now)} problem={health.problem}>
        <FailingSince health={health} />
      </StateNote>
      <ActionError acts={acts} />
      {pinged ? <PingReport report={pinged} /> : null}
      <div className={css.figures}>
        <Statistic
          name="Waiting for it"
          value={backlog.events}
          note={
            <>
              {backlog.complete ? '' : 'or more; '}
              {backlog.oldestAt === null ? (
                'events'
              ) : (
                <>
                  the oldest <RelativeTime at={backlog.oldestAt} />
                </>
              )}
            </>
          }
        />
        <Statistic
          name="Taken, last 24 hours"
          value={statistics.successRate === null ? '–' : formatPercent(statistics.successRate)}
          note={
            statistics.attempts >= 500
              ? 'of the last 500 attempts'
              : `of ${statistics.attempts} ${statistics.attempts === 1 ? 'attempt' : 'attempts'}`
          }
        />
        <Statistic
          name="Half of it within"
          value={statistics.p50Ms === null ? '–' : formatDuration(statistics.p50Ms)}
          note={
            statistics.p95Ms === null
              ? 'of what was taken'
              : `95 % within ${formatDuration(statistics.p95Ms)}`
          }
        />
        <Statistic
          name="Parked"
          value={parked.count}
          tone={parked.count > 0 ? 'bad' : 'plain'}
          note={
            parked.oldestAt === null ? (
              'set aside'
            ) : (
              <>
                the oldest <RelativeTime at={parked.oldestAt} />
              </>
            )
          }
        />
        <Statistic name="Dead" value={formatDeadCount(health.dead)} note="refused for good" />
        <Statistic
          name="Lost"
          value={health.lost}
          tone={health.lost > 0 ? 'bad' : 'plain'}
          note="too old to be kept"
        />
      </div>
      <div className={css.columns}>
        <Panel title="What it gets">
          <Facts
            rows={[
              [
                'Where',
                <bdi key="url">
                  {kind === 'notifications' ? 'Customers, by e-mail and SMS' : endpoint.url}
                </bdi>,
              ],
              ['For', endpoint.description ?? undefined],
              ['Region', region.toUpperCase()],
              [
                'Accounts',
                endpoint.accounts.length === 0 ? 'all of the region' : endpoint.accounts.join(', '),
              ],
              ['Events', endpoint.types.length === 0 ? 'all types' : endpoint.types.join(', ')],
              ['Last taken', formatLastDelivered(health)],
              ['Last failed', failed ? <RelativeTime key="failed" at={failed} /> : 'never'],
              [
                'What failed last',
                statistics.lastError ? (
                  <span key="error">
                    <RelativeTime at={statistics.lastError.at} />: <bdi>{statistics.lastError.reason}</bdi>
                  </span>
                ) : undefined,
              ],
              ['Made in', endpoint.managed || kind !== 'webhook' ? undefined : 'the configuration'],
            ]}
          />
        </Panel>
        <Panel title="Longest backlogs" aside="Events that it has not come to, wanted or not">
          {backlog.accounts.length === 0 ? (
            <p className={css.quiet}>It has come to all there is.</p>
          ) : (
            <Rows
              label="Longest backlogs"
              rows={backlog.accounts}
              keyOf={({ account }) => account}
              columns={[
                {
                  name: 'Account',
                  render: ({ account }) =>
                    account.startsWith('_') ? (
                      'Of the region itself'
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

/** When it took something last; known to the instant when it is done with what there is. */
function formatLastDelivered({ lastDeliveredAt, statistics }: Health): React.ReactNode {
  if (lastDeliveredAt !== null) return <RelativeTime at={lastDeliveredAt} />;
  return statistics.delivered > 0 ? 'in the last 24 hours' : 'nothing yet';
}

/** Since when, and until when. */
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
        '; it is tried again now.'
      ) : (
        <>
          ; tried again <RelativeTime at={waitUntil} />.
        </>
      )}
    </p>
  );
}

function Actions(props: {
  readonly endpoint: Endpoint;
  readonly health: Health;
  readonly acts: ActionRunner;
  readonly onPinged: (report: PingResponse | null) => void;
}) {
  const { endpoint, health, acts, onPinged } = props;
  const { region, id, kind, managed, paused, revision } = endpoint;
  const api = useApi();
  const ask = useConfirm();
  const query = { region };
  const name = getSinkName(id);
  const ping = () => {
    onPinged(null);
    void acts.run('ping', async () =>
      onPinged(await api.post<PingResponse>(endpointPath(id, '/ping'), { query })),
    );
  };
  const goOn = (verb: 'resume' | 'enable', done: string) => () =>
    void acts.run(verb, () => api.post(endpointPath(id, `/${verb}`), { query, revision }), done);
  const pause = () =>
    ask({
      title: `Pause ${name}?`,
      body: (
        <p>
          It gets nothing until somebody resumes it. It keeps its places in the logs and goes on there; what
          waits for longer than events are kept is lost for it.
        </p>
      ),
      verb: 'Pause',
      onConfirm: () =>
        acts.runConfirmed(
          () => api.post(endpointPath(id, '/pause'), { query, revision }),
          `${name} is paused.`,
        ),
    });
  const failing = health.failingSince !== null || health.waitUntil !== null;
  return (
    <>
      {kind === 'webhook' ? (
        <Button size="xs" variant="default" loading={acts.busy === 'ping'} onClick={ping}>
          Ping
        </Button>
      ) : null}
      {health.disabledAt !== null ? (
        <Button
          size="xs"
          loading={acts.busy === 'enable'}
          onClick={goOn('enable', `${name} goes on where it stood.`)}
        >
          Enable
        </Button>
      ) : failing && !paused ? (
        <Button
          size="xs"
          variant="default"
          loading={acts.busy === 'enable'}
          onClick={goOn('enable', `${name} is tried now.`)}
        >
          Try now
        </Button>
      ) : null}
      {kind !== 'webhook' || !managed ? null : paused ? (
        <Button size="xs" loading={acts.busy === 'resume'} onClick={goOn('resume', `${name} goes on.`)}>
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

function PingReport({ report: { outcome, status, latencyMs, message } }: { readonly report: PingResponse }) {
  const { word, tone } = ATTEMPT_OUTCOMES[outcome];
  return (
    <Note tone={tone === 'good' ? 'good' : 'bad'} live>
      <p>
        <strong>Ping: {word.toLowerCase()}</strong> after {formatDuration(latencyMs)}
        {status === null ? '' : `, answered with ${status}`}. <bdi>{message}</bdi>
      </p>
    </Note>
  );
}
