/** What stands around every page: where one can go, which region is looked at, and whether what is seen is live. */
import { ActionIcon, Menu, NativeSelect, useComputedColorScheme, useMantineColorScheme } from '@mantine/core';
import {
  IconActivityHeartbeat,
  IconBolt,
  IconKey,
  IconLayoutList,
  IconMoon,
  IconSettings,
  IconSun,
} from '@tabler/icons-react';
import { useIsFetching, useQuery } from '@tanstack/react-query';
import { type ReactNode, useEffect } from 'react';
import { Link, useLocation } from 'wouter';
import { useAccounts, useRegions } from '../queries.ts';
import { useSession } from '../session.ts';
import { useConnection, useNow } from '../stream-hooks.ts';
import { formatRelativeTime } from '../times.tsx';
import { buildHref, useParams, useRegion } from '../urls.ts';
import css from './Shell.module.css';

const SECTIONS = [
  { path: '/', name: 'Now', icon: IconBolt },
  { path: '/jobs', name: 'Jobs', icon: IconLayoutList },
  { path: '/health', name: 'Health', icon: IconActivityHeartbeat },
  { path: '/setup', name: 'Setup', icon: IconSettings },
] as const;

/** The page's frame. `wall` in the address leaves only the page, larger, for displays that hang on a wall. */
export function Shell({ children }: { readonly children: ReactNode }) {
  const [read] = useParams();
  const wall = read('wall') !== undefined;
  useScrollToTop();
  return (
    <div className={css.shell} data-wall={wall || undefined}>
      <a className={css.skip} href="#content">
        Skip to the content
      </a>
      <header className={css.bar}>
        <Link className={css.brand} href={buildHref('/', { region: useRegion() ?? undefined })}>
          Jobwire
        </Link>
        <Navigation />
        <div className={css.tools}>
          <ConnectionState />
          <RegionSwitcher />
          <ColorSchemeButton />
          <KeyMenu />
        </div>
      </header>
      <Content>{children}</Content>
    </div>
  );
}

/** The page itself: busy while something of it was never there before. */
function Content({ children }: { readonly children: ReactNode }) {
  const missing = useIsFetching({ predicate: ({ state }) => state.status === 'pending' });
  return (
    <main id="content" className={css.content} tabIndex={-1} aria-busy={missing > 0}>
      {children}
    </main>
  );
}

/** A page that one goes on to begins at its top. Where one goes back to, the browser knows the place. */
function useScrollToTop(): void {
  useEffect(() => {
    let here = location.href;
    // The router tells of each address that it puts there.
    const onPush = (): void => {
      if (location.href !== here && location.hash === '') window.scrollTo({ top: 0, behavior: 'instant' });
      here = location.href;
    };
    const onOther = (): void => {
      here = location.href;
    };
    window.addEventListener('pushState', onPush);
    window.addEventListener('replaceState', onOther);
    window.addEventListener('popstate', onOther);
    return () => {
      window.removeEventListener('pushState', onPush);
      window.removeEventListener('replaceState', onOther);
      window.removeEventListener('popstate', onOther);
    };
  }, []);
}

function Navigation() {
  const [location] = useLocation();
  const region = useRegion() ?? undefined;
  return (
    <nav className={css.places} aria-label="Pages">
      {SECTIONS.map(({ path, name, icon: Icon }) => {
        const here = path === '/' ? location === '/' : location.startsWith(path);
        return (
          <Link key={path} href={buildHref(path, { region })} aria-current={here ? 'page' : undefined}>
            <Icon size={18} stroke={1.75} aria-hidden />
            <span>{name}</span>
          </Link>
        );
      })}
    </nav>
  );
}

/** Says loudly when the page does not know what happens. */
function ConnectionState() {
  const connection = useConnection();
  const now = useNow();
  const words = {
    connecting: 'Connecting',
    live: 'Live',
    lost:
      connection.phase === 'lost' ? `Not live: broken off ${formatRelativeTime(connection.since, now)}` : '',
  }[connection.phase];
  return (
    <span
      className={css.connection}
      data-phase={connection.phase}
      title={connection.phase === 'lost' ? connection.why : undefined}
    >
      <span role="status">{connection.phase === 'lost' ? 'Not live' : words}</span>
      {connection.phase === 'lost' ? (
        <span className={css.since}>{words.slice('Not live'.length)}; trying again</span>
      ) : null}
    </span>
  );
}

/** Other cells' dashboards, where this one knows them. */
interface Cells {
  readonly cells: readonly { readonly region: string; readonly url: string }[];
}

/** The region that is looked at. Other cells have dashboards of their own: choosing one leads there. */
function RegionSwitcher() {
  const [read, change] = useParams();
  const { forAll } = useSession();
  const { data: regions } = useRegions();
  const { data: accounts } = useAccounts({ enabled: !forAll });
  const { data: others } = useQuery({
    queryKey: ['cells'],
    queryFn: async (): Promise<Cells> => {
      const response = await fetch('/cells.json');
      return response.ok ? ((await response.json()) as Cells) : { cells: [] };
    },
    staleTime: Number.POSITIVE_INFINITY,
    retry: false,
  });
  const own = forAll
    ? regions?.map(({ id }) => id)
    : [...new Set(accounts?.map(({ region }) => region))].sort();
  if (!own) return null;
  const elsewhere = (others?.cells ?? []).filter(({ region }) => !own.includes(region));
  if (own.length < 2 && elsewhere.length === 0) return null;
  const chosen = read('region') ?? (own.length === 1 ? own[0] : '');
  return (
    <NativeSelect
      aria-label="Region"
      size="xs"
      value={chosen}
      onChange={({ currentTarget: { value } }) => {
        const other = elsewhere.find(({ region }) => region === value);
        if (other) window.location.assign(other.url);
        else change({ region: value || undefined });
      }}
      data={[
        ...(own.length > 1 ? [{ value: '', label: 'All regions' }] : []),
        ...[...own, ...elsewhere.map(({ region }) => region)].map((id) => ({
          value: id,
          label: id.toUpperCase(),
        })),
      ]}
    />
  );
}

function ColorSchemeButton() {
  // To hold transitions back it would write a style element, which the policy forbids.
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
      {scheme === 'dark' ? <IconSun size={16} aria-hidden /> : <IconMoon size={16} aria-hidden />}
    </ActionIcon>
  );
}

/** Which key this is, what it may do, and the way out. */
function KeyMenu() {
  const { key, signOut } = useSession();
  return (
    <Menu position="bottom-end" width={240} withinPortal>
      <Menu.Target>
        <ActionIcon
          variant="default"
          size="md"
          aria-label="The key you signed in with"
          title="The key you signed in with"
        >
          <IconKey size={16} aria-hidden />
        </ActionIcon>
      </Menu.Target>
      <Menu.Dropdown>
        <div className={css.key}>
          <strong>{key.name ?? key.id}</strong>
          <span>
            Role {key.role}, {key.accounts === null ? 'all accounts' : `for ${key.accounts.join(', ')}`}
          </span>
        </div>
        <Menu.Item component="a" href="/docs">
          The HTTP API
        </Menu.Item>
        <Menu.Item onClick={() => signOut()}>Sign out</Menu.Item>
      </Menu.Dropdown>
    </Menu>
  );
}
