/** Credentials of accounts: typed in, tried out, never shown. */
import { Button, PasswordInput, TextInput } from '@mantine/core';
import { useState } from 'react';
import type * as z from 'zod';
import { CredentialsTest, type TestReport, type TestStep } from '../../../shared/accounts/account-input.ts';
import { Badge, Failure } from '../components.tsx';
import { toFieldPath, validate } from '../form-validation.ts';
import type { ApiForm } from '../forms.ts';
import { useApi } from '../queries.ts';
import { formatDuration } from '../times.tsx';
import css from './setup.module.css';

/** What a form has of credentials. */
export interface WithCredentials {
  readonly credentials: { readonly clientId: string; readonly clientSecret: string };
}

export const NO_CREDENTIALS = { clientId: '', clientSecret: '' };

/** The two fields. */
export function CredentialFields<V extends WithCredentials>({ of: { form } }: { readonly of: ApiForm<V> }) {
  return (
    <div className={css.two}>
      <TextInput
        label="Client id"
        description="As the ordering service gave it out."
        required
        autoComplete="off"
        spellCheck={false}
        {...form.getInputProps('credentials.clientId')}
      />
      <PasswordInput
        label="Client secret"
        description="Kept encrypted, and never shown again."
        required
        autoComplete="new-password"
        spellCheck={false}
        visibilityToggleButtonProps={{ 'aria-label': 'Show the client secret', tabIndex: 0 }}
        {...form.getInputProps('credentials.clientSecret')}
        aria-invalid={form.errors['credentials.clientSecret'] !== undefined}
      />
    </div>
  );
}

/** Tries out what is typed in, before anything is saved. Asked for by keys for all accounts only. */
export function TestNewCredentials<V extends WithCredentials>(props: {
  readonly of: ApiForm<V>;
  readonly region: string | undefined;
}) {
  const { form } = props.of;
  const api = useApi();
  const { credentials } = form.values;
  const body = { ...(props.region === undefined ? {} : { region: props.region }), credentials };
  const asked = JSON.stringify(body);
  const { run, ...outcome } = useCredentialsTest(asked, () => api.post('/v1/credentials/test', { body }));
  function test(): void {
    const faults = validate(CredentialsTest, body, (path) => toFieldPath(form.values, path));
    for (const [field, sentence] of Object.entries(faults)) form.setFieldError(field, sentence);
    if (Object.keys(faults).length === 0) void run();
  }
  return (
    <div>
      <div className={css.save}>
        <Button variant="default" loading={outcome.busy} onClick={test}>
          Test first
        </Button>
        <span className={css.hint}>Gets a token, asks whose it is and reads one page. Nothing is saved.</span>
      </div>
      <TestOutcome {...outcome} />
    </div>
  );
}

/** Tries out the credentials that an account has. */
export function TestAccount({ account }: { readonly account: string }) {
  const api = useApi();
  const { run, ...outcome } = useCredentialsTest(account, () =>
    api.post(`/v1/accounts/${encodeURIComponent(account)}/test`),
  );
  return (
    <div>
      <div className={css.save}>
        <Button variant="default" loading={outcome.busy} onClick={() => void run()}>
          Test the credentials it has
        </Button>
      </div>
      <TestOutcome {...outcome} />
    </div>
  );
}

type Report = z.infer<typeof TestReport>;

/** A test of something that is known by a text: what comes of it counts as long as that stays the same. */
function useCredentialsTest(of: string, ask: () => Promise<Report>) {
  const [busy, setBusy] = useState(false);
  const [came, setCame] = useState<{
    readonly of: string;
    readonly report?: Report;
    readonly error?: unknown;
  }>();
  async function run(): Promise<void> {
    setBusy(true);
    try {
      setCame({ of, report: await ask() });
    } catch (error) {
      setCame({ of, error });
    } finally {
      setBusy(false);
    }
  }
  const current = came?.of === of ? came : undefined;
  return { run, busy, report: current?.report, error: current?.error };
}

const STEPS: Readonly<Record<z.infer<typeof TestStep>['step'], string>> = {
  token: 'Token',
  identity: 'Whose it is',
  page: 'One page',
};

function TestOutcome({ report, error }: { readonly report?: Report | undefined; readonly error?: unknown }) {
  return (
    <div role="status" className={css.outcome}>
      {error ? <Failure error={error} /> : null}
      {report ? (
        <ol className={css.steps} aria-label="Steps of the test">
          {report.steps.map(({ step, ok, message, ms }) => (
            <li key={step}>
              <span>
                <Badge tone={ok ? 'good' : 'bad'}>{STEPS[step]}</Badge>
              </span>
              <p>{message}</p>
              <span className={css.hint}>{formatDuration(ms)}</span>
            </li>
          ))}
        </ol>
      ) : null}
      {report?.ok ? (
        <p className={css.what}>
          The credentials work: they belong to account {report.upstreamId ?? '–'} of the ordering service,
          which has {report.openJobs ?? 0} open jobs.
        </p>
      ) : null}
    </div>
  );
}
