/** Delivery statistics of an endpoint for a window: totals, failures by cause, and charts over time. */
import { keepPreviousData, type UseQueryResult, useQuery } from '@tanstack/react-query';
import type { ReactNode } from 'react';
import type { DeliveryStatistics } from '../../../client/index.ts';
import { Loaded, Panel, Statistic } from '../components.tsx';
import { FilterSelect, toOptions } from '../filters.tsx';
import { loadLater } from '../load-later.tsx';
import { useApi } from '../queries.ts';
import { ErrorBoundary } from '../shell/ErrorBoundary.tsx';
import { formatCount, formatPercent } from '../texts.ts';
import { formatDuration } from '../times.tsx';
import ui from '../ui.module.css';
import { useParams } from '../urls.ts';
import css from './Health.module.css';
import type { Endpoint } from './status.ts';

const StatisticsChart = loadLater(() => import('./StatisticsChart.tsx'));

const REFETCH_MS = 15_000;
type Window = DeliveryStatistics['window'];
/** Windows in the address; the empty one is the default. */
const WINDOWS = { '1h': 'Last hour', '': 'Last 24 hours', '7d': 'Last 7 days' };

function useStatistics(endpoint: Endpoint, window: Window): UseQueryResult<DeliveryStatistics> {
  const api = useApi();
  const { region, id } = endpoint;
  return useQuery({
    queryKey: ['endpoints', 'statistics', region, id, window],
    queryFn: ({ signal }) =>
      api.get('/v1/endpoints/{id}/statistics', {
        params: { path: { id }, query: { region, window } },
        signal,
      }),
    refetchInterval: REFETCH_MS,
    placeholderData: keepPreviousData,
  });
}

/** The panel of statistics. `children`: shown below it, after the first response, so that they do not move. */
export default function Statistics(props: { readonly endpoint: Endpoint; readonly children: ReactNode }) {
  const { endpoint, children } = props;
  const [read] = useParams();
  const selected = read('window');
  const window: Window = selected === '1h' || selected === '7d' ? selected : '24h';
  const query = useStatistics(endpoint, window);
  const isFirst = query.isPending && query.failureCount === 0;
  return (
    <>
      <Panel
        title="Statistics"
        aside={<FilterSelect param="window" size="xs" aria-label="Window" data={toOptions(WINDOWS)} />}
      >
        <Loaded query={query}>
          {(statistics) => <StatisticsTotals statistics={statistics} isOutdated={query.isPlaceholderData} />}
        </Loaded>
      </Panel>
      {isFirst ? null : children}
    </>
  );
}

/** `isOutdated`: they are those of another window. */
function StatisticsTotals(props: { readonly statistics: DeliveryStatistics; readonly isOutdated: boolean }) {
  const { statistics, isOutdated } = props;
  const outdated = { 'data-outdated': isOutdated || undefined };
  const { attempts, failed, failures, successRate, p50Ms, p95Ms } = statistics.total;
  if (successRate === null) return <p className={ui.quiet}>No attempts in this window.</p>;
  return (
    <>
      <div className={`${ui.columns} ${css.statistics}`} {...outdated}>
        <Statistic
          name="Success rate"
          value={formatPercent(successRate)}
          tone={failed > 0 ? 'warn' : 'plain'}
          note={`of ${formatCount(attempts, 'attempt')}`}
        />
        <Statistic
          name="Failed attempts"
          value={failed}
          tone={failed > 0 ? 'warn' : 'plain'}
          note={formatCauses(failures)}
        />
        <Statistic
          name="Median latency"
          value={p50Ms === null ? '–' : formatDuration(p50Ms)}
          note="of successful attempts"
        />
        <Statistic
          name="95th percentile"
          value={p95Ms === null ? '–' : formatDuration(p95Ms)}
          note="of successful attempts"
        />
      </div>
      <ErrorBoundary fallback={<p className={ui.quiet}>The charts could not be loaded.</p>}>
        <div className={css.charts} {...outdated}>
          <div className={css.room}>
            <StatisticsChart statistics={statistics} />
          </div>
        </div>
      </ErrorBoundary>
    </>
  );
}

const LISTED_CAUSES = 3;

function formatCauses(failures: DeliveryStatistics['total']['failures']): string {
  if (failures.length === 0) return 'none';
  const causes = failures
    .slice(0, LISTED_CAUSES)
    .map(({ status, count }) => `${count.toLocaleString()} × ${status ?? 'no HTTP status'}`);
  return [...causes, ...(failures.length > LISTED_CAUSES ? ['others'] : [])].join(', ');
}
