/** What happens now: for a desk that has it open all day, and for a display on a wall. */
import { Button } from '@mantine/core';
import { IconDeviceTv } from '@tabler/icons-react';
import { useCallback, useEffect } from 'react';
import { Link } from 'wouter';
import { Empty, Page } from '../components.tsx';
import { useSession } from '../session.ts';
import { useNow } from '../stream-hooks.ts';
import { buildHref, useParams, useRegion } from '../urls.ts';
import { Days } from './Days.tsx';
import css from './NowPage.module.css';
import {
  FirstQueryError,
  JobsAtRisk,
  LateJobs,
  StaleNotes,
  Statuses,
  Tiles,
  useStatistics,
} from './Statistics.tsx';
import { StreamPanel } from './StreamPanel.tsx';

/** The page. */
export default function NowPage() {
  const figures = useStatistics();
  const region = useRegion();
  const { accounts } = figures;
  return (
    <Page title={region === null ? 'Now' : `Now in ${region.toUpperCase()}`} actions={<WallDisplayToggle />}>
      {accounts?.length === 0 ? <NoAccounts /> : <Tiles figures={figures} />}
      <FirstQueryError queries={figures.queries} />
      {accounts ? <StaleNotes accounts={accounts} /> : null}
      <div className={css.columns}>
        <StreamPanel className={css.stream} />
        <div className={css.lists}>
          {/* How high these are is known with the first figures. */}
          {figures.open.data ? (
            <>
              <div className={css.group}>
                <LateJobs figures={figures} />
                <JobsAtRisk figures={figures} />
              </div>
              <div className={css.group}>
                <Statuses open={figures.open} />
                <Days days={figures.days} />
              </div>
            </>
          ) : null}
        </div>
      </div>
    </Page>
  );
}

function NoAccounts() {
  const region = useRegion();
  const { may, forAll } = useSession();
  return (
    <Empty>
      {region === null ? 'No account is tracked yet.' : 'No account is tracked in this region.'}{' '}
      {may('admin') && forAll ? (
        <Link href={buildHref('/setup/new-account', { region: region ?? undefined })}>
          Set up the first one
        </Link>
      ) : (
        'Somebody with an admin key has to set one up.'
      )}
    </Empty>
  );
}

/** The way to the display for a wall, and back: a button, Escape, or leaving the full screen. */
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
        leftSection={<IconDeviceTv size={15} aria-hidden />}
        onClick={() => {
          change({ wall: '1' });
          // Where that is not allowed, the page alone is larger.
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
        Leave the wall display
      </Button>
    </>
  );
}

const clock = new Intl.DateTimeFormat(undefined, {
  weekday: 'short',
  day: 'numeric',
  month: 'short',
  hour: '2-digit',
  minute: '2-digit',
});

function Clock() {
  return <span className={css.clock}>{clock.format(useNow(1_000))}</span>;
}
