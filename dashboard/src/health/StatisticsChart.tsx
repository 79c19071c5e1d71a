/** Charts of the success rate and the latency over time. Loaded on demand, because the chart library is large. */
import { LineChart } from '@mantine/charts';
import '@mantine/charts/styles.layer.css';
import { memo } from 'react';
import type { DeliveryStatistics } from '../../../client/index.ts';
import { formatCount, formatPercent } from '../texts.ts';
import { formatChartTime, formatDuration, useZone } from '../times.tsx';
import ui from '../ui.module.css';

/** Properties that both charts share. */
const CHART = {
  h: '12rem',
  dataKey: 'time',
  tickLine: 'none',
  withDots: true,
  dotProps: { r: 2 },
  accessibilityLayer: false,
  // A step without attempts has no value.
  connectNulls: false,
  curveType: 'linear',
  xAxisProps: { minTickGap: 40, interval: 'equidistantPreserveStart' },
} as const;

export default memo(function StatisticsChart({ statistics }: { readonly statistics: DeliveryStatistics }) {
  const { points, window } = statistics;
  useZone();
  const data = points.map(({ at, successRate, p50Ms, p95Ms }) => ({
    time: formatChartTime(at, { withDay: window === '7d' }),
    Success: successRate,
    Median: p50Ms,
    '95th percentile': p95Ms,
  }));
  return (
    <div className={ui.panels}>
      <div role="img" aria-label={describeSuccess(statistics)}>
        <p className={ui.hint}>Success rate</p>
        <LineChart
          {...CHART}
          data={data}
          series={[{ name: 'Success', color: 'var(--accent)' }]}
          // The axis passes the place of the tick as a second argument.
          valueFormatter={(share) => formatPercent(share)}
          yAxisProps={{ domain: [0, 1], ticks: [0, 0.5, 1], width: 52 }}
        />
      </div>
      <div role="img" aria-label={describeLatency(statistics)}>
        <p className={ui.hint}>Latency of successful attempts</p>
        <LineChart
          {...CHART}
          data={data}
          series={[
            { name: 'Median', color: 'var(--accent)' },
            { name: '95th percentile', color: 'var(--quiet)', strokeDasharray: '5 5' },
          ]}
          valueFormatter={formatDuration}
          yAxisProps={{ width: 64 }}
          withLegend
          legendProps={{ verticalAlign: 'bottom', height: 24 }}
        />
      </div>
    </div>
  );
});

function describeSuccess({ total, points }: DeliveryStatistics): string {
  if (total.successRate === null) return 'No attempts.';
  const failing = points.filter(({ failed }) => failed > 0).length;
  return `Success rate over time: ${formatPercent(total.successRate)} of ${formatCount(total.attempts, 'attempt')}; failures in ${failing} of ${points.length} points.`;
}

function describeLatency({ total, points }: DeliveryStatistics): string {
  if (total.p50Ms === null || total.p95Ms === null) return 'No successful attempts.';
  const highest = Math.max(...points.map(({ p95Ms }) => p95Ms ?? 0));
  return `Latency over time: median ${formatDuration(total.p50Ms)}, 95th percentile ${formatDuration(total.p95Ms)}, at most ${formatDuration(highest)} in one point.`;
}
