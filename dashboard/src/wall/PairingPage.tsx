/** The page of a screen without a key: shows a code, and waits until a user confirms it in the dashboard. */
import { Button } from '@mantine/core';
import { useEffect, useState } from 'react';
import { ApiError, createClient } from '../../../client/index.ts';
import { sleep } from '../../../shared/retry.ts';
import { hasStatus, toErrorMessage } from '../api.ts';
import { Note } from '../components.tsx';
import type { CurrentKey } from '../session.ts';
import { useNow } from '../stream-hooks.ts';
import ui from '../ui.module.css';
import css from './PairingPage.module.css';

/** Time until the next attempt after an error. A screen may start before its network. */
const RETRY_MS = 10_000;

type Pairing = Readonly<{ code: string; deviceToken: string; expiresAt: string; claimSeconds: number }>;

/** `onPaired`: called with the key of this screen. `onSignIn`: shows the sign-in page. */
export default function PairingPage(props: {
  readonly onPaired: (key: string, own: CurrentKey) => void;
  readonly onSignIn: () => void;
}) {
  const { onPaired, onSignIn } = props;
  const [pairing, setPairing] = useState<Pairing | null>(null);
  const [error, setError] = useState<string | null>(null);
  // biome-ignore lint/correctness/useExhaustiveDependencies: one pairing for each time the page is shown
  useEffect(() => {
    document.title = 'Wall display · Jobwire';
    const stopping = new AbortController();
    void pair(stopping.signal, {
      onStarted(started) {
        setPairing(started);
        setError(null);
      },
      onError: (cause) => setError(toErrorMessage(cause)),
    }).then((paired) => paired && onPaired(paired.key, paired.own));
    return () => stopping.abort();
  }, []);
  return (
    <main className={css.place}>
      <h1 className={css.title}>Pair this wall display</h1>
      {error === null ? null : (
        <Note tone="warn" live>
          {error} The next attempt follows in a few seconds.
        </Note>
      )}
      <p
        className={css.code}
        role="status"
        aria-label={pairing ? `Code ${pairing.code}` : 'Loading the code'}
      >
        <span>{pairing ? pairing.code.slice(0, 3) : '–'}</span> <span>{pairing?.code.slice(3)}</span>
      </p>
      <p className={css.help}>
        In the dashboard, open <strong>Setup</strong>, then <strong>Wall displays</strong>, and enter this
        code.
      </p>
      {pairing ? <Remaining until={pairing.expiresAt} /> : null}
      <Button onClick={onSignIn}>Sign in instead</Button>
    </main>
  );
}

function Remaining({ until }: { readonly until: string }) {
  const left = Math.max(0, Math.ceil((Date.parse(until) - useNow()) / 1000));
  const text = `${Math.floor(left / 60)}:${String(left % 60).padStart(2, '0')}`;
  return <p className={ui.hint}>A new code appears in {text} minutes.</p>;
}

/** Starts pairings until one is confirmed. Returns the key; `undefined` when stopped. */
async function pair(
  signal: AbortSignal,
  on: { readonly onStarted: (pairing: Pairing) => void; readonly onError: (cause: unknown) => void },
): Promise<{ readonly key: string; readonly own: CurrentKey } | undefined> {
  const api = createClient({ url: location.origin, key: '' });
  while (!signal.aborted) {
    try {
      const pairing = await api.post('/v1/wall-pairings');
      if (signal.aborted) return undefined;
      on.onStarted(pairing);
      const key = await claim(api, pairing, signal);
      if (key === undefined) continue;
      return { key, own: await createClient({ url: location.origin, key }).get('/v1/key') };
    } catch (cause) {
      if (!signal.aborted) on.onError(cause);
      await sleep(RETRY_MS, signal);
    }
  }
  return undefined;
}

/** Requests the key until the code is confirmed. `undefined`: the pairing has ended. */
async function claim(
  api: ReturnType<typeof createClient>,
  { code, deviceToken, claimSeconds }: Pairing,
  signal: AbortSignal,
): Promise<string | undefined> {
  while (!signal.aborted) {
    await sleep(claimSeconds * 1000, signal);
    if (signal.aborted) return undefined;
    try {
      const { key } = await api.post('/v1/wall-pairings/key', { body: { code, deviceToken } });
      if (key !== null) return key;
    } catch (cause) {
      if (hasStatus(cause, 404)) return undefined;
      // The code stays valid while the network fails.
      if (cause instanceof ApiError && cause.status < 429) throw cause;
    }
  }
  return undefined;
}
