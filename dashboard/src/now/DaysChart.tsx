/** Chart of the last days. Loaded on demand, because the chart library is large. */
import { BarChart } from '@mantine/charts';
import '@mantine/charts/styles.layer.css';
import { memo } from 'react';
import type { Rollup } from '../../../client/index.ts';
import { formatDay } from '../times.tsx';

/** Two bars per day. */
export default memo(function DaysChart({ days }: { readonly days: readonly Rollup[] }) {
  const data = days.map(({ day, created, dispatched }) => ({
    ...{ day: formatDay(day), Created: created, Dispatched: dispatched },
  }));
  return (
    <div role="img" aria-label={describe(days)}>
      <BarChart
        h="15rem"
        data={data}
        dataKey="day"
        series={[
          { name: 'Created', color: 'var(--quiet)' },
          { name: 'Dispatched', color: 'var(--accent)' },
        ]}
        withLegend
        legendProps={{ verticalAlign: 'top', height: 30 }}
        tickLine="none"
        accessibilityLayer={false}
        xAxisProps={{ interval: 'equidistantPreserveStart' }}
        yAxisProps={{ allowDecimals: false, width: 36 }}
      />
    </div>
  );
});

function describe(days: readonly Rollup[]): string {
  const sum = (count: (day: Rollup) => number): string =>
    days.reduce((total, day) => total + count(day), 0).toLocaleString();
  return `Last ${days.length} days: ${sum(({ created }) => created)} jobs created, ${sum(({ dispatched }) => dispatched)} dispatched. Select Show table for each day.`;
}
