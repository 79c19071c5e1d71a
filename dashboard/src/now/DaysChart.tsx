/** The chart of the last days; loaded when it is shown, for what draws it is large. */
import { BarChart } from '@mantine/charts';
import '@mantine/charts/styles.layer.css';
import { memo } from 'react';
import type { Rollup } from '../../../shared/api/statistics.ts';

const short = new Intl.DateTimeFormat(undefined, { day: 'numeric', month: 'short', timeZone: 'UTC' });

/** Two bars a day. Drawn anew only when the numbers change. */
export default memo(function DaysChart({ days }: { readonly days: readonly Rollup[] }) {
  const data = days.map(({ day, created, dispatched }) => ({
    ...{ day: short.format(Date.parse(day)), Created: created, Dispatched: dispatched },
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
        yAxisProps={{ allowDecimals: false, width: 36 }}
      />
    </div>
  );
});

function describe(days: readonly Rollup[]): string {
  const sum = (of: (day: Rollup) => number): string =>
    days.reduce((so, day) => so + of(day), 0).toLocaleString();
  return `In the last ${days.length} days ${sum(({ created }) => created)} jobs were created and ${sum(({ dispatched }) => dispatched)} dispatched. The table has each day.`;
}
