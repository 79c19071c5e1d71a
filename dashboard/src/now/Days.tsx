/** Created and dispatched jobs by day, as a chart or a table with links. */
import { Button } from '@mantine/core';
import { useMemo, useState } from 'react';
import { Link } from 'wouter';
import type { Rollup } from '../../../client/index.ts';
import { Panel } from '../components.tsx';
import { DataTable } from '../DataTable.tsx';
import { loadLater } from '../load-later.tsx';
import { ErrorBoundary } from '../shell/ErrorBoundary.tsx';
import { useNow } from '../stream-hooks.ts';
import { Day } from '../times.tsx';
import { useHref } from '../urls.ts';
import css from './Days.module.css';

const CHART_MS = 60_000;
const DaysChart = loadLater(() => import('./DaysChart.tsx'));

/** `of`: identifies what the days are about. */
export function Days({ days, of }: { readonly days: readonly Rollup[]; readonly of: string }) {
  const [table, setTable] = useState(false);
  const charted = useChartedDays(days, of);
  return (
    <div id="days" className={css.anchor}>
      <Panel
        title="Created and dispatched, last 14 days"
        aside={
          <Button
            className={css.toggle}
            size="compact-xs"
            aria-pressed={table}
            onClick={() => setTable(!table)}
          >
            Show table
          </Button>
        }
      >
        <div className={css.room}>
          {table ? (
            <DaysTable days={days} />
          ) : (
            <ErrorBoundary fallback={<DaysTable days={days} />}>
              <DaysChart days={charted} />
            </ErrorBoundary>
          )}
        </div>
      </Panel>
    </div>
  );
}

/** Updates the chart once a minute, because rendering it takes most of a frame. The table is updated immediately. */
function useChartedDays(days: readonly Rollup[], of: string): readonly Rollup[] {
  const minute = useNow(CHART_MS);
  // biome-ignore lint/correctness/useExhaustiveDependencies: deliberately not on each change of the data
  return useMemo(() => days, [minute, of]);
}

function DaysTable({ days }: { readonly days: readonly Rollup[] }) {
  const href = useHref();
  return (
    <DataTable
      label="Jobs by day"
      rows={[...days].reverse()}
      getKey={({ day }) => day}
      columns={{
        Day: ({ day }) => <Day day={day} />,
        Created: { right: true, render: ({ created }) => created.toLocaleString() },
        Dispatched: {
          right: true,
          render: ({ day, dispatched }) => (
            <Link href={href('/jobs', { dispatchedOn: day })}>{dispatched.toLocaleString()}</Link>
          ),
        },
        'On time': { right: true, render: ({ onTime }) => onTime.toLocaleString() },
        Late: { right: true, render: ({ late }) => late.toLocaleString() },
      }}
    />
  );
}
