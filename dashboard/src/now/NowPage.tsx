/** The Now page: current events, totals, late jobs. Also the wall display. */

import { TvIcon } from '@heroicons/react/16/solid';
import { Button } from '@mantine/core';
import { type ReactNode, useCallback, useEffect } from 'react';
import { Link } from 'wouter';
import { Empty, Page } from '../components.tsx';
import { useSession } from '../session.ts';
import { useNow } from '../stream-hooks.ts';
import { formatWallClock } from '../times.tsx';
import { useHref, useParams, useRegion } from '../urls.ts';
import { Days } from './Days.tsx';
import css from './NowPage.module.css';
import {
  JobsAtRisk,
  LateJobs,
  QueryError,
  StaleNotes,
  Statuses,
  Tiles,
  useStatistics,
} from './Statistics.tsx';
import { StreamPanel } from './StreamPanel.tsx';

/** `children`: shown above the content. */
export default function NowPage({ children }: { readonly children?: ReactNode }) {
  const statistics = useStatistics();
  const region = useRegion();
  const { accounts } = statistics;
  return (
    <Page title={region === null ? 'Now' : `Now in ${region.toUpperCase()}`} actions={<WallDisplayToggle />}>
      {children}
      {accounts?.length === 0 ? <NoAccounts /> : <Tiles statistics={statistics} />}
      <QueryError queries={statistics.queries} />
      {accounts ? <StaleNotes accounts={accounts} /> : null}
      <div className={css.columns}>
        <StreamPanel className={css.stream} />
        <div className={css.lists}>
          {/* Their height is known with the first statistics. */}
          {statistics.open.data ? (
            <>
              <div className={css.group}>
                <LateJobs statistics={statistics} />
                <JobsAtRisk statistics={statistics} />
              </div>
              <div className={css.group}>
                <Statuses open={statistics.open} />
                <Days days={statistics.days} />
              </div>
            </>
          ) : null}
        </div>
      </div>
    </Page>
  );
}

function NoAccounts() {
  const href = useHref();
  const region = useRegion();
  const { may, forAll } = useSession();
  return (
    <Empty>
      {region === null
        ? 'No accounts yet. Events appear here after an account is added.'
        : 'No accounts in this region.'}{' '}
      {may('admin') && forAll ? (
        <Link href={href('/setup/new-account')}>Add an account</Link>
      ) : (
        'Sign in with an admin key to add one.'
      )}
    </Empty>
  );
}

/** Enters the wall display; a button, Escape or leaving full screen exits it. */
function WallDisplayToggle() {
  const [read, change] = useParams();
  const on = read('wall') !== undefined;
  const leave = useCallback(() => {
    change({ wall: undefined });
    if (document.fullscreenElement) void document.exitFullscreen().catch(() => {});
  }, [change]);
  useEffect(() => {
    if (!on) return;
    const onKey = (event: KeyboardEvent): void => {
      if (event.key === 'Escape' && !event.defaultPrevented) leave();
    };
    const onScreen = (): void => {
      if (!document.fullscreenElement) leave();
    };
    document.addEventListener('keydown', onKey);
    document.addEventListener('fullscreenchange', onScreen);
    return () => {
      document.removeEventListener('keydown', onKey);
      document.removeEventListener('fullscreenchange', onScreen);
    };
  }, [on, leave]);
  if (!on)
    return (
      <Button
        size="xs"
        variant="default"
        leftSection={<TvIcon width={15} aria-hidden />}
        onClick={() => {
          change({ wall: '1' });
          // If full screen is not allowed, only the page is enlarged.
          void document.documentElement.requestFullscreen?.().catch(() => {});
        }}
      >
        Wall display
      </Button>
    );
  return (
    <>
      <Clock />
      <Button size="xs" variant="default" onClick={leave}>
        Exit wall display
      </Button>
    </>
  );
}

function Clock() {
  return <span className={css.clock}>{formatWallClock(useNow(1_000))}</span>;
}
