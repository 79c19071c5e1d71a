/** The Now page: what needs attention, figures, live events. Also the wall display. */

import { TvIcon } from '@heroicons/react/16/solid';
import { Button } from '@mantine/core';
import { useWindowEvent } from '@mantine/hooks';
import type { ReactNode } from 'react';
import { Link } from 'wouter';
import { ContentSkeleton, Empty, Note, Page, QueryError, Tabs } from '../components.tsx';
import { explainTotals } from '../counted-accounts.ts';
import { loadLater } from '../load-later.tsx';
import { useFigures } from '../queries.ts';
import { useSession } from '../session.ts';
import { ConnectionState } from '../shell/Shell.tsx';
import { useConnection, useNow, useRefresh } from '../stream-hooks.ts';
import { formatWallClock } from '../times.tsx';
import { useHref, useParams, useRegion } from '../urls.ts';
import { Days } from './Days.tsx';
import css from './NowPage.module.css';
import { QueuePanel } from './QueuePanel.tsx';
import { FILTERS } from './queue.ts';
import { Statuses, Tiles } from './Statistics.tsx';

const StreamPanel = loadLater(() => import('./StreamPanel.tsx'));

/**
 * Minimum interval of refetches while events arrive. With those of the queue, the figures and the shell, the page sends at most 40
 * requests a minute.
 */
const REFRESH_MS = 6_000;

/** `children`: shown above the content. */
export default function NowPage({ children }: { readonly children?: ReactNode }) {
  const figures = useFigures();
  const region = useRegion();
  const href = useHref();
  const [read] = useParams();
  const isFeed = read('view') === 'feed' && read('wall') === undefined;
  useRefresh(['*'], [['attention']], { everyMs: REFRESH_MS });
  const { data } = figures;
  // Each tab keeps the filters of the other.
  const filters = Object.fromEntries([...FILTERS, 'types', 'text'].map((name) => [name, read(name)]));
  const waiting = data ? data.accounts - data.accountsCounted : 0;
  const open = data?.attention.open;
  return (
    <Page title={region === null ? 'Now' : `Now in ${region.toUpperCase()}`} actions={<WallDisplayToggle />}>
      {children}
      {data?.accounts === 0 ? (
        <NoAccounts />
      ) : (
        <Tiles figures={data} isOutdated={figures.isPlaceholderData} />
      )}
      <QueryError queries={[figures]} />
      {waiting > 0 ? (
        <Note>
          Not yet included: jobs of{' '}
          <Link href={href('/health')}>{waiting === 1 ? '1 account' : `${waiting} accounts`}</Link> without a
          baseline, because their first crawl is not complete.
        </Note>
      ) : null}
      {data
        ? explainTotals(data).map((text) => (
            <Note key={text} tone="warn">
              {text}
            </Note>
          ))
        : null}
      {figures.isPending && figures.failureCount === 0 ? <ContentSkeleton /> : null}
      {/* Notes above it come with the figures: it appears at its final place. */}
      <div className={figures.isPending && figures.failureCount === 0 ? css.waiting : css.below}>
        {read('wall') === undefined ? (
          <Tabs
            label="Views of this page"
            tabs={[
              {
                name: open === undefined ? 'Needs attention' : `Needs attention (${open.toLocaleString()})`,
                href: href('/', filters),
                isCurrent: !isFeed,
              },
              { name: 'Live events', href: href('/', { ...filters, view: 'feed' }), isCurrent: isFeed },
            ]}
          />
        ) : null}
        {isFeed ? (
          <StreamPanel className={css.stream} />
        ) : (
          <div className={css.columns}>
            <QueuePanel>
              <div className={css.lists} data-outdated={figures.isPlaceholderData || undefined}>
                {/* Their height is known with the first figures. */}
                {data ? (
                  <>
                    <Statuses open={data.open} />
                    <Days days={data.days} of={data.regions.join()} />
                  </>
                ) : null}
              </div>
            </QueuePanel>
          </div>
        )}
      </div>
    </Page>
  );
}

function NoAccounts() {
  const href = useHref();
  const region = useRegion();
  const { hasRole, hasAllAccounts } = useSession();
  return (
    <Empty>
      {region === null
        ? 'No accounts yet. Events appear here after an account is added.'
        : 'No accounts in this region.'}{' '}
      {hasRole('admin') && hasAllAccounts ? (
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
  const leave = (): void => {
    change({ wall: undefined });
    if (document.fullscreenElement) void document.exitFullscreen().catch(() => {});
  };
  useWindowEvent('keydown', ({ key, defaultPrevented }) => {
    if (on && key === 'Escape' && !defaultPrevented) leave();
  });
  useWindowEvent('fullscreenchange', () => {
    if (on && !document.fullscreenElement) leave();
  });
  if (!on)
    return (
      <Button
        size="xs"
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
      <Button size="xs" onClick={leave}>
        Exit wall display
      </Button>
    </>
  );
}

/** The time, and the state of the connection if it is lost. */
function Clock() {
  return (
    <>
      {useConnection().phase === 'lost' ? <ConnectionState /> : null}
      <span className={css.clock}>{formatWallClock(useNow(1_000))}</span>
    </>
  );
}
