/** Frame of every page: navigation, region, state of the connection, key. */

import {
  BoltIcon,
  Cog6ToothIcon,
  KeyIcon,
  ListBulletIcon,
  MoonIcon,
  SignalIcon,
  SunIcon,
} from '@heroicons/react/16/solid';
import {
  ActionIcon,
  Button,
  Menu,
  NativeSelect,
  useComputedColorScheme,
  useMantineColorScheme,
} from '@mantine/core';
import { useWindowEvent } from '@mantine/hooks';
import { useIsFetching, useQuery } from '@tanstack/react-query';
import { type ReactNode, useEffect, useRef, useState } from 'react';
import { Link, useLocation } from 'wouter';
import { ActionMenu, Hidden, Note } from '../components.tsx';
import { useFigures, useServedRegions } from '../queries.ts';
import { useSession } from '../session.ts';
import { useConnection, useNow } from '../stream-hooks.ts';
import { formatCount, formatKeyId } from '../texts.ts';
import { formatRelativeTime } from '../times.tsx';
import ui from '../ui.module.css';
import { leavePage } from '../unsaved-changes.ts';
import { useHref, useParams } from '../urls.ts';
import { ZoneMenu } from '../ZoneMenu.tsx';
import { useKeptFocus } from './kept-focus.ts';
import { PaletteButton } from './PaletteButton.tsx';
import css from './Shell.module.css';

const SECTIONS = [
  { path: '/', name: 'Now', icon: BoltIcon },
  { path: '/jobs', name: 'Jobs', icon: ListBulletIcon },
  { path: '/health', name: 'Health', icon: SignalIcon, others: ['/accounts/', '/endpoints/'] },
  { path: '/setup', name: 'Setup', icon: Cog6ToothIcon },
] as const;

/** Frame of the page. The query parameter `wall` hides the navigation and enlarges the page. */
export function Shell({ children }: { readonly children: ReactNode }) {
  const [read] = useParams();
  const wall = read('wall') !== undefined;
  useScrollToTop();
  useKeptFocus();
  return (
    <div className={css.shell} data-wall={wall || undefined}>
      <a className={css.skip} href="#content">
        Skip to content
      </a>
      <header className={css.bar}>
        <Link className={css.brand} href={useHref()('/')}>
          Jobwire
        </Link>
        <Navigation />
        <div className={css.tools}>
          <ConnectionState />
          <PaletteButton />
          <RegionSwitcher />
          <ColorSchemeButton />
          <KeyMenu />
        </div>
      </header>
      <Content>
        <NewBuild />
        {children}
      </Content>
    </div>
  );
}

/** Minimum interval between checks for a new build, unless the connection was lost. */
const BUILD_CHECK_MS = 5 * 60_000;

/** Reloads a wall display if a stream is opened and the dashboard has another build; otherwise offers it. */
function NewBuild() {
  // A new object whenever a stream is opened: servers close streams regularly.
  const connection = useConnection();
  const wall = useParams()[0]('wall') !== undefined;
  const checkedAt = useRef(Date.now());
  const [isOld, setOld] = useState(false);
  useEffect(() => {
    if (connection.phase === 'lost') checkedAt.current = 0;
    if (connection.phase !== 'live' || Date.now() < checkedAt.current + BUILD_CHECK_MS) return;
    checkedAt.current = Date.now();
    const script = document.querySelector('script[type="module"]')?.getAttribute('src') ?? '';
    const check = async (): Promise<void> => {
      const page = await (await fetch('/')).text();
      setOld(page.includes('id="root"') && !page.includes(script));
    };
    // Checked again when the next stream is opened.
    check().catch(() => {
      checkedAt.current = 0;
    });
  }, [connection]);
  useEffect(() => {
    if (isOld && wall) location.reload();
  }, [isOld, wall]);
  if (!isOld) return null;
  return (
    <Note
      live
      actions={
        <Button size="xs" onClick={() => location.reload()}>
          Reload
        </Button>
      }
    >
      Jobwire has been upgraded. Reload the page to use its new version.
    </Note>
  );
}

/** Content of the page; busy during initial loading. */
function Content({ children }: { readonly children: ReactNode }) {
  const missing = useIsFetching({ predicate: ({ state }) => state.status === 'pending' });
  return (
    <main id="content" className={css.content} tabIndex={-1} aria-busy={missing > 0}>
      {children}
    </main>
  );
}

/** Scrolls to the top, or to the fragment of the address, after forward navigation. The browser restores the position after back navigation. */
function useScrollToTop(): void {
  const here = useRef(location.href);
  const move = (): void => {
    here.current = location.href;
  };
  // Events of the router.
  useWindowEvent('pushState', () => {
    if (location.href !== here.current) {
      if (location.hash === '') window.scrollTo({ top: 0, behavior: 'instant' });
      else document.getElementById(location.hash.slice(1))?.scrollIntoView();
    }
    move();
  });
  useWindowEvent('replaceState', move);
  useWindowEvent('popstate', move);
}

function Navigation() {
  const [location] = useLocation();
  const href = useHref();
  return (
    <nav className={css.navigation} aria-label="Pages">
      {SECTIONS.map(({ path, name, icon: Icon, ...section }) => {
        const paths = 'others' in section ? [path, ...section.others] : [path];
        const here = path === '/' ? location === '/' : paths.some((one) => location.startsWith(one));
        return (
          <Link key={path} href={href(path)} aria-current={here ? 'page' : undefined}>
            <Icon width={18} aria-hidden />
            <span>{name}</span>
            {path === '/' ? <AttentionCount /> : null}
            {path === '/health' ? <HealthCount /> : null}
          </Link>
        );
      })}
    </nav>
  );
}

/** Number of open items of the attention queue. Separate from the state of the connection. */
function AttentionCount() {
  const { data } = useFigures();
  const { open = 0, complete = true } = data?.attention ?? {};
  return <Count count={open} complete={complete} noun="" />;
}

/** Subjects of the kinds of items on the Health page. */
const HEALTH_KINDS = {
  account: ['account_not_observed'],
  endpoint: ['endpoint_disabled', 'endpoint_failing', 'events_dead', 'events_parked'],
  region: ['region_outage'],
} as const;

/** Number of accounts, endpoints and regions with a problem. Items that are hidden in the queue count too. */
function HealthCount() {
  const { data } = useFigures();
  const { byKind = [], hiddenByKind = [], complete = true } = data?.attention ?? {};
  const parts = Object.entries(HEALTH_KINDS).map(([noun, kinds]) => {
    const own = [...byKind, ...hiddenByKind].filter(({ kind }) => kinds.some((one) => one === kind));
    return { noun, count: own.reduce((sum, { items }) => sum + items, 0) };
  });
  return (
    <Count
      count={parts.reduce((sum, { count }) => sum + count, 0)}
      complete={complete}
      noun={parts
        .filter(({ count }) => count > 0)
        .map(({ noun, count }) => formatCount(count, noun))
        .join(', ')}
    />
  );
}

/** A number of items that need attention, unless it is 0. `noun`: what they are; empty for all. */
function Count(props: { readonly count: number; readonly complete: boolean; readonly noun: string }) {
  const { count, complete, noun } = props;
  if (count === 0) return null;
  const text = `${count.toLocaleString()}${complete ? '' : '+'}`;
  const about = `${noun} ${count === 1 ? 'needs' : 'need'} attention`;
  return (
    <span className={css.count} title={noun ? about : text + about}>
      {text}
      <Hidden>{noun ? `: ${about}` : about}</Hidden>
    </span>
  );
}

/** State of the connection; prominent when it is lost. Says nothing about jobs, accounts and endpoints. */
export function ConnectionState() {
  const connection = useConnection();
  const now = useNow();
  const { phase } = connection;
  return (
    <span
      className={css.connection}
      data-phase={phase}
      title={phase === 'lost' ? connection.failureReason : undefined}
    >
      <span role="status">{{ connecting: 'Connecting', live: 'Live', lost: 'Disconnected' }[phase]}</span>
      {phase === 'lost' ? (
        <span className={css.since}> {formatRelativeTime(connection.since, now)}; reconnecting</span>
      ) : null}
    </span>
  );
}

/** Addresses of the dashboards of other cells. */
interface Cells {
  readonly cells: readonly { readonly name: string; readonly url: string }[];
}

/** Selects the region, or another cell: then its dashboard opens. */
function RegionSwitcher() {
  const [read, change] = useParams();
  const own = useServedRegions();
  const { data: others } = useQuery({
    queryKey: ['cells'],
    queryFn: async (): Promise<Cells> => {
      const response = await fetch('/cells.json');
      return response.ok ? ((await response.json()) as Cells) : { cells: [] };
    },
    staleTime: Number.POSITIVE_INFINITY,
    retry: false,
  });
  if (!own) return null;
  const elsewhere = others?.cells ?? [];
  if (own.length < 2 && elsewhere.length === 0) return null;
  const chosen = read('region') ?? (own.length === 1 ? own[0] : '');
  return (
    <NativeSelect
      aria-label="Region"
      size="xs"
      value={chosen}
      onChange={({ currentTarget: { value } }) => {
        const other = elsewhere.find(({ name }) => toCellOption(name) === value);
        if (other) window.location.assign(other.url);
        else change({ region: value || undefined });
      }}
      data={[
        ...(own.length > 1 ? [{ value: '', label: 'All regions' }] : []),
        ...own.map((id) => ({ value: id, label: id.toUpperCase() })),
        ...elsewhere.map(({ name }) => ({
          value: toCellOption(name),
          // A cell can have the name of a region that this cell serves too.
          label: own.includes(name) ? `Cell ${name}` : name.toUpperCase(),
        })),
      ]}
    />
  );
}

const toCellOption = (name: string): string => `cell:${name}`;

function ColorSchemeButton() {
  // Suppressing transitions would need a style element, which the Content-Security-Policy forbids.
  const { setColorScheme } = useMantineColorScheme({ keepTransitions: true });
  const scheme = useComputedColorScheme('light');
  const other = scheme === 'dark' ? 'light' : 'dark';
  return (
    <ActionIcon
      variant="default"
      size="md"
      aria-label={`Switch to ${other} colours`}
      title={`Switch to ${other} colours`}
      onClick={() => setColorScheme(other)}
    >
      {scheme === 'dark' ? <SunIcon width={16} aria-hidden /> : <MoonIcon width={16} aria-hidden />}
    </ActionIcon>
  );
}

/** Name and permissions of the key, and sign-out. */
function KeyMenu() {
  const href = useHref();
  const { key, signOut } = useSession();
  const regions = useServedRegions() ?? [];
  return (
    <ActionMenu
      target={(ref) => (
        <ActionIcon ref={ref} variant="default" size="md" aria-label="User menu" title="User menu">
          <KeyIcon width={16} aria-hidden />
        </ActionIcon>
      )}
    >
      <div className={css.key}>
        <strong>{key.name ?? formatKeyId(key.id)}</strong>
        <span className={ui.hint}>
          Role {key.role}, {key.accounts === null ? 'all accounts' : `accounts ${key.accounts.join(', ')}`}
        </span>
      </div>
      <ZoneMenu regions={regions} />
      <Menu.Divider />
      <Menu.Item component={Link} href={href('/start')}>
        Getting started
      </Menu.Item>
      <Menu.Item component="a" href="/docs">
        API reference
      </Menu.Item>
      <Menu.Item onClick={() => leavePage(() => signOut())}>Sign out</Menu.Item>
    </ActionMenu>
  );
}
