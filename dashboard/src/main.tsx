/** Entry point: signs in, then renders the shell with the page of the address. */
import { backoff } from '../../shared/retry.ts';
import './zod.ts';
import { createTheme, localStorageColorSchemeManager, MantineProvider } from '@mantine/core';
import { useInterval } from '@mantine/hooks';
import { QueryClient, QueryClientProvider } from '@tanstack/react-query';
import { StrictMode, useEffect, useMemo, useState } from 'react';
import { createRoot } from 'react-dom/client';
import { Route, Switch } from 'wouter';
import { createClient } from '../../client/index.ts';
import { getRetryAfterMs, isTransient } from './api.ts';
import './unsaved-changes.ts';
import { ApiContext } from './queries.ts';
import { isWallDisplay, resume, type SignInState, toSignedOut } from './resume.ts';
import { NoAccess, SignIn } from './SignIn.tsx';
import { type CurrentKey, keyStore, SessionContext, toSession, wallKeyStore } from './session.ts';
import { ErrorBoundary, PageErrorBoundary } from './shell/ErrorBoundary.tsx';
import { Shell } from './shell/Shell.tsx';
import { createEventStream, type EventStream } from './stream.ts';
import { documentVisibility, StreamContext } from './stream-hooks.ts';
import { decodeSegment } from './urls.ts';
import type { UserSession } from './user-session.ts';
import './theme.css';
import { ConfirmProvider, Failure, NotFound, Page, PageSkeleton } from './components.tsx';
import { loadLater } from './load-later.tsx';

const Home = loadLater(() => import('./onboarding/Home.tsx'), <PageSkeleton />);
const JobsPage = loadLater(() => import('./jobs/JobsPage.tsx'), <PageSkeleton />);
const JobPage = loadLater(() => import('./jobs/JobPage.tsx'), <PageSkeleton />);
const HealthPages = loadLater(() => import('./health/HealthPages.tsx'), <PageSkeleton />);
const ChecklistPage = loadLater(() => import('./onboarding/ChecklistPage.tsx'), <PageSkeleton />);
const PairingPage = loadLater(() => import('./wall/PairingPage.tsx'));
const SetupPages = loadLater(() => import('./setup/SetupPages.tsx'), <PageSkeleton />);
const Toasts = loadLater(() => import('./toasts.tsx'), null);

const theme = createTheme({
  primaryColor: 'indigo',
  cursorType: 'pointer',
  components: {
    // The one main action of a page or form is `filled`.
    Button: { defaultProps: { variant: 'default' } },
    Modal: {
      defaultProps: { centered: true, lockScroll: false, closeButtonProps: { 'aria-label': 'Close' } },
    },
  },
});
const schemes = localStorageColorSchemeManager({ key: 'jobwire.colours' });
/** Interval at which a wall display that cannot sign in tries again. */
const WALL_RETRY_MS = 15_000;
/** Maximum number of retries of transient errors. */
const MAX_RETRIES = 3;

function App({ first }: { readonly first: Promise<SignInState> }) {
  const [state, setState] = useState<SignInState | null>(null);
  /** Whether the user of a wall display without a key signs in instead of pairing it. */
  const [signsIn, setSignsIn] = useState(false);
  useEffect(() => void first.then(setState), [first]);

  if (!state) return null;
  switch (state.phase) {
    case 'signed in': {
      const { by, own } = state;
      const isKey = typeof by === 'string';
      return (
        <SignedIn
          key={isKey ? by : own.id}
          by={by}
          own={own}
          onEnd={(cause) => setState(toSignedOut(cause))}
          signOut={async (reason) => {
            keyStore.clear();
            if (by === wallKeyStore.read()) wallKeyStore.clear();
            setState({ phase: 'signed out', reason: reason ?? null });
            if (!isKey && reason === undefined) await by.end();
          }}
        />
      );
    }
    case 'failed':
      return (
        <main>
          {isWallDisplay() ? <RetryLater retry={() => void resume().then(setState)} /> : null}
          <Page title="Jobwire">
            <Failure error={state.error} again={() => void resume().then(setState)} />
          </Page>
        </main>
      );
    case 'no access':
      return (
        <NoAccess reason={state.reason} onOther={(reason) => setState({ phase: 'signed out', reason })} />
      );
    case 'signed out':
      if (isWallDisplay() && !signsIn)
        return (
          <PairingPage
            onSignIn={() => setSignsIn(true)}
            onPaired={(key, own) => {
              wallKeyStore.save(key);
              setState({ phase: 'signed in', by: key, own });
            }}
          />
        );
      return (
        <SignIn
          reason={state.reason}
          onSignedIn={(key, own) => {
            keyStore.save(key);
            setState({ phase: 'signed in', by: key, own });
          }}
        />
      );
  }
}

/** Resumes a wall display whose network or server was not available. */
function RetryLater({ retry }: { readonly retry: () => void }) {
  useInterval(retry, WALL_RETRY_MS, { autoInvoke: true });
  return null;
}

function SignedIn(props: {
  readonly by: string | UserSession;
  readonly own: CurrentKey;
  readonly onEnd: (cause: unknown) => void;
  readonly signOut: (reason?: string) => void;
}) {
  const { by, own, onEnd, signOut } = props;
  // biome-ignore lint/correctness/useExhaustiveDependencies: one session for each key
  const session = useMemo(() => toSession(own, signOut), [own]);
  // biome-ignore lint/correctness/useExhaustiveDependencies: one client for each key
  const api = useMemo(() => {
    const url = location.origin;
    if (typeof by !== 'string') {
      by.onEnd = onEnd;
      return createClient({ url, key: by.token, onUnauthorized: onEnd });
    }
    const reason = 'Your key has expired or was revoked. Sign in with another key.';
    return createClient({ url, key: by, onUnauthorized: () => session.signOut(reason) });
  }, [by, session]);
  const [queries] = useState(createQueries);
  const [stream, setStream] = useState<EventStream | null>(null);
  useEffect(() => {
    const opened = createEventStream(api, documentVisibility);
    setStream(opened);
    return () => {
      opened.stop();
      queries.clear();
    };
  }, [api, queries]);
  if (!stream) return null;
  return (
    <SessionContext value={session}>
      <ApiContext value={api}>
        <StreamContext value={stream}>
          <QueryClientProvider client={queries}>
            <ConfirmProvider>
              <Shell>
                <PageErrorBoundary>
                  <Pages />
                </PageErrorBoundary>
              </Shell>
            </ConfirmProvider>
          </QueryClientProvider>
        </StreamContext>
      </ApiContext>
    </SessionContext>
  );
}

function Pages() {
  return (
    <Switch>
      <Route path="/" component={Home} />
      <Route path="/jobs" component={JobsPage} />
      <Route path="/jobs/:account/:jobNumber">
        {({ account, jobNumber }) => (
          <JobPage key={`${account}/${jobNumber}`} account={decodeSegment(account)} jobNumber={jobNumber} />
        )}
      </Route>
      <Route path="/start" component={ChecklistPage} />
      {['/health/*?', '/accounts/*?', '/endpoints/*?'].map((path) => (
        <Route key={path} path={path} component={HealthPages} />
      ))}
      <Route path="/setup/*?" component={SetupPages} />
      <Route>
        <NotFound href="/">Now</NotFound>
      </Route>
    </Switch>
  );
}

function createQueries(): QueryClient {
  return new QueryClient({
    defaultOptions: {
      queries: {
        // Jobwire may run on this computer, so that requests succeed while the browser is offline.
        networkMode: 'always',
        staleTime: 5_000,
        retry: (failures, error) => failures < MAX_RETRIES && isTransient(error),
        retryDelay: (failures, error) =>
          Math.max(getRetryAfterMs(error) ?? 0, backoff(failures, { first: 500, max: 10_000 })),
      },
      mutations: { networkMode: 'always', retry: false },
    },
  });
}

const root = document.getElementById('root');
if (!root) throw new Error('The element #root is missing.');
// Once: an authorization code can be exchanged only once.
const first = resume();
createRoot(root).render(
  <StrictMode>
    <MantineProvider
      theme={theme}
      defaultColorScheme="auto"
      colorSchemeManager={schemes}
      withCssVariables={false}
      withGlobalClasses={false}
    >
      <App first={first} />
      {/* Without it, pages still work. */}
      <ErrorBoundary fallback={null}>
        <Toasts />
      </ErrorBoundary>
    </MantineProvider>
  </StrictMode>,
);
