/** The sign-in page. */
import { Button, Divider, PasswordInput } from '@mantine/core';
import { type FormEvent, useEffect, useRef, useState } from 'react';
import { createClient } from '../../client/index.ts';
import { hasStatus, toErrorMessage } from './api.ts';
import { Note } from './components.tsx';
import css from './SignIn.module.css';
import type { CurrentKey } from './session.ts';
import ui from './ui.module.css';
import { fetchIssuer, type Issuer, startSignIn } from './user-session.ts';

/** Offers the sign-in at the issuer, if there is one. Asks for an API key and verifies it with `GET /v1/key`. `reason`: reason the previous session ended. */
export function SignIn(props: {
  readonly reason: string | null;
  readonly onSignedIn: (key: string, own: CurrentKey) => void;
}) {
  const [busy, setBusy] = useState(false);
  const [error, setError] = useState<string | null>(null);
  const [issuer, setIssuer] = useState<Issuer | null>();
  const [issuerError, setIssuerError] = useState<string | null>(null);
  const field = useRef<HTMLInputElement>(null);
  useEffect(() => {
    document.title = 'Sign in · Jobwire';
    fetchIssuer().then(setIssuer, (cause: unknown) => {
      setIssuerError(toErrorMessage(cause));
      setIssuer(null);
    });
  }, []);
  useEffect(() => {
    if (issuer === null) field.current?.focus();
  }, [issuer]);

  async function signIn(event: FormEvent<HTMLFormElement>): Promise<void> {
    event.preventDefault();
    const key = field.current?.value.trim() ?? '';
    if (key === '') return setError('Enter an API key.');
    // The only characters that are valid in a header. Keys have no others.
    if (!/^[\x21-\x7e]+$/.test(key))
      return setError('Not an API key: keys consist of ASCII letters, digits and symbols, without spaces.');
    setBusy(true);
    try {
      props.onSignedIn(key, await createClient({ url: location.origin, key }).get('/v1/key'));
    } catch (cause) {
      setBusy(false);
      setError(hasStatus(cause, 401) ? 'This key is unknown, revoked or expired.' : toErrorMessage(cause));
      field.current?.focus();
    }
  }

  if (issuer === undefined) return null;
  return (
    <main className={css.place}>
      <form className={`${ui.box} ${css.form}`} onSubmit={(event) => void signIn(event)}>
        <h1>Jobwire</h1>
        {props.reason === null ? null : (
          <Note tone="warn" live>
            {props.reason}
          </Note>
        )}
        {issuerError === null ? null : (
          <Note tone="warn">Single sign-on is not available: {issuerError}</Note>
        )}
        {issuer === null ? null : (
          <>
            <IssuerButton issuer={issuer}>Continue with single sign-on</IssuerButton>
            <Divider label="or with an API key" />
          </>
        )}
        <PasswordInput
          ref={field}
          label="API key"
          description="Kept for this tab only. Closing the tab deletes it."
          error={error}
          aria-invalid={error !== null}
          errorProps={{ role: 'alert' }}
          autoComplete="off"
          spellCheck={false}
          visibilityToggleButtonProps={{ 'aria-label': 'Show the key', tabIndex: 0 }}
        />
        <Button type="submit" loading={busy} variant={issuer === null ? 'filled' : 'default'} fullWidth>
          Sign in
        </Button>
        <p className={ui.hint}>
          Create keys in Setup, with <code>jobwire keys create</code>, or through the API.{' '}
          <code>npm start</code> prints the path of the file with the first key.
        </p>
      </form>
    </main>
  );
}

function IssuerButton(props: {
  readonly issuer: Issuer;
  readonly anew?: boolean;
  readonly children: string;
}) {
  const { issuer, anew = false } = props;
  const [leaving, setLeaving] = useState(false);
  const [error, setError] = useState<string | null>(null);
  const start = async (): Promise<void> => {
    setLeaving(true);
    setError(null);
    try {
      await startSignIn(issuer, { anew });
    } catch (cause) {
      setLeaving(false);
      setError(isSecureContext ? toErrorMessage(cause) : 'Single sign-on requires HTTPS.');
    }
  };
  return (
    <>
      <Button variant="filled" fullWidth autoFocus loading={leaving} onClick={() => void start()}>
        {props.children}
      </Button>
      {error === null ? null : (
        <Note tone="bad" live>
          {error}
        </Note>
      )}
    </>
  );
}

/** The page of a user who is in no group with access. `onOther`: shows the sign-in page. */
export function NoAccess(props: {
  readonly reason: string;
  readonly onOther: (reason: string | null) => void;
}) {
  const [issuer, setIssuer] = useState<Issuer | null>(null);
  useEffect(() => {
    document.title = 'No access · Jobwire';
    fetchIssuer().then(setIssuer, () => {});
  }, []);
  return (
    <main className={css.place}>
      <div className={`${ui.box} ${css.form}`}>
        <h1>No access</h1>
        <p role="status">{props.reason}</p>
        {issuer === null ? null : (
          <IssuerButton issuer={issuer} anew>
            Sign in as another user
          </IssuerButton>
        )}
        <Button fullWidth onClick={() => props.onOther(null)}>
          Use an API key
        </Button>
      </div>
    </main>
  );
}
