/** The sign-in: an API key, tried at once. */
import { Button, PasswordInput } from '@mantine/core';
import { type FormEvent, useEffect, useRef, useState } from 'react';
import { createApi, toErrorMessage } from './api.ts';
import { Note } from './components.tsx';
import css from './SignIn.module.css';
import type { CurrentKey } from './session.ts';

/** Asks for a key; `why`: a sentence about what ended the session before. */
export function SignIn(props: {
  readonly why: string | null;
  readonly onSignedIn: (key: string, own: CurrentKey) => void;
}) {
  const [busy, setBusy] = useState(false);
  const [problem, setProblem] = useState<string | null>(null);
  const field = useRef<HTMLInputElement>(null);
  useEffect(() => {
    document.title = 'Sign in · Jobwire';
    field.current?.focus();
  }, []);

  async function signIn(event: FormEvent<HTMLFormElement>): Promise<void> {
    event.preventDefault();
    const key = field.current?.value.trim() ?? '';
    if (key === '') return setProblem('Type or paste a key.');
    // A header takes no other characters, and no key has any.
    if (!/^[\x21-\x7e]+$/.test(key))
      return setProblem('That is no key: a key has letters, digits and signs only.');
    setBusy(true);
    try {
      props.onSignedIn(key, await createApi(key).get<CurrentKey>('/v1/key'));
    } catch (cause) {
      setBusy(false);
      setProblem(
        isUnauthorized(cause) ? 'This key is not known here, or it has expired.' : toErrorMessage(cause),
      );
      field.current?.focus();
    }
  }

  return (
    <main className={css.place}>
      <form className={css.form} onSubmit={(event) => void signIn(event)}>
        <h1>Jobwire</h1>
        {props.why === null ? null : (
          <Note tone="warn" live>
            {props.why}
          </Note>
        )}
        <PasswordInput
          ref={field}
          label="API key"
          description="It stays in this tab, and is forgotten when the tab is closed."
          error={problem}
          aria-invalid={problem !== null}
          errorProps={{ role: 'alert' }}
          autoComplete="off"
          spellCheck={false}
          visibilityToggleButtonProps={{ 'aria-label': 'Show the key', tabIndex: 0 }}
        />
        <Button type="submit" loading={busy} fullWidth>
          Sign in
        </Button>
        <p className={css.help}>
          Keys are made in Setup, with <code>jobwire keys create</code> or with the API.{' '}
          <code>npm start</code> prints which file holds the first one.
        </p>
      </form>
    </main>
  );
}

function isUnauthorized(cause: unknown): boolean {
  return cause instanceof Error && 'status' in cause && cause.status === 401;
}
