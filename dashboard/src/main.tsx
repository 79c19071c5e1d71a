/** Entry point: signs in, then renders the shell with the page of the address. */
import { backoff } from '../../shared/retry.ts';
import './zod.ts';
import { createTheme, localStorageColorSchemeManager, MantineProvider } from '@mantine/core';
import { Notifications } from '@mantine/notifications';
import { QueryClient, QueryClientProvider } from '@tanstack/react-query';
import { StrictMode, useEffect, useMemo, useState } from 'react';
import { createRoot } from 'react-dom/client';
import { Route, Switch } from 'wouter';
import { ApiError, createClient } from '../../client/index.ts';
import { getRetryAfterMs, isTransient } from './api.ts';
import './unsaved-changes.ts';
import { ApiContext } from './queries.ts';
import { SignIn } from './SignIn.tsx';
import { type CurrentKey, keyStore, SessionContext, toSession } from './session.ts';
import { PageErrorBoundary } from './shell/ErrorBoundary.tsx';
import { Shell } from './shell/Shell.tsx';
import { createEventStream, type EventStream } from './stream.ts';
import { documentVisibility, StreamContext } from './stream-hooks.ts';
import { decodeSegment } from './urls.ts';
import './theme.css';
import { ConfirmProvider, Failure, NotFound, Page } from './components.tsx';
import { loadLater } from './load-later.tsx';

const NowPage = loadLater(() => import('./now/NowPage.tsx'));
const JobsPage = loadLater(() => import('./jobs/JobsPage.tsx'));
const JobPage = loadLater(() => import('./jobs/JobPage.tsx'));
const HealthPages = loadLater(() => import('./health/HealthPages.tsx'));
const SetupPages = loadLater(() => import('./setup/SetupPages.tsx'));

const theme = createTheme({
  primaryColor: 'indigo',
  cursorType: 'pointer',
  components: {
    Modal: {
      defaultProps: { centered: true, lockScroll: false, closeButtonProps: { 'aria-label': 'Close' } },
    },
  },
});
const schemes = localStorageColorSchemeManager({ key: 'jobwire.colours' });
/** Maximum number of retries of transient errors. */
const MAX_RETRIES = 3;

function App() {
  const [signedIn, setSignedIn] = useState<{ readonly key: string; readonly own: CurrentKey } | null>(null);
  const [signOutReason, setSignOutReason] = useState<string | null>(null);
  const [savedKey] = useState(() => keyStore.read());
  const [resuming, setResuming] = useState(savedKey !== null);
  const [failure, setFailure] = useState<unknown>(null);

  useEffect(() => {
    if (savedKey === null || !resuming) return;
    const controller = new AbortController();
    createClient({ url: location.origin, key: savedKey })
      .get('/v1/key', { signal: controller.signal })
      .then(
        (own) => setSignedIn({ key: savedKey, own }),
        (cause: unknown) => {
          if (controller.signal.aborted) return;
          if (!(cause instanceof ApiError) || cause.status !== 401) return setFailure(cause);
          keyStore.clear();
          setSignOutReason('The saved key is no longer valid. Sign in again.');
        },
      )
      .finally(() => {
        if (!controller.signal.aborted) setResuming(false);
      });
    return () => controller.abort();
  }, [savedKey, resuming]);

  if (signedIn) {
    return (
      <SignedIn
        key={signedIn.key}
        apiKey={signedIn.key}
        own={signedIn.own}
        signOut={(reason) => {
          keyStore.clear();
          setSignOutReason(reason ?? null);
          setSignedIn(null);
        }}
      />
    );
  }
  if (resuming) return null;
  if (failure) {
    return (
      <main>
        <Page title="Jobwire">
          <Failure
            error={failure}
            again={() => {
              setFailure(null);
              setResuming(true);
            }}
          />
        </Page>
      </main>
    );
  }
  return (
    <SignIn
      reason={signOutReason}
      onSignedIn={(key, own) => {
        keyStore.save(key);
        setSignedIn({ key, own });
      }}
    />
  );
}

function SignedIn(props: {
  readonly apiKey: string;
  readonly own: CurrentKey;
  readonly signOut: (reason?: string) => void;
}) {
  const { apiKey, own, signOut } = props;
  // biome-ignore lint/correctness/useExhaustiveDependencies: one session for each key
  const session = useMemo(() => toSession(own, signOut), [own]);
  const api = useMemo(
    () =>
      createClient({
        ...{ url: location.origin, key: apiKey },
        onUnauthorized: () =>
          session.signOut('Your key has expired or was revoked. Sign in with another key.'),
      }),
    [apiKey, session],
  );
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
      <Route path="/" component={NowPage} />
      <Route path="/jobs" component={JobsPage} />
      <Route path="/jobs/:account/:jobNumber">
        {({ account, jobNumber }) => (
          <JobPage key={`${account}/${jobNumber}`} account={decodeSegment(account)} jobNumber={jobNumber} />
        )}
      </Route>
      <Route path="/health/*?" component={HealthPages} />
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
createRoot(root).render(
  <StrictMode>
    <MantineProvider
      theme={theme}
      defaultColorScheme="auto"
      colorSchemeManager={schemes}
      withCssVariables={false}
      withGlobalClasses={false}
    >
      <App />
      <Notifications position="bottom-right" containerWidth={380} />
    </MantineProvider>
  </StrictMode>,
);
