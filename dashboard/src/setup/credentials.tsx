/** Credentials of accounts: input and test. They are never shown. */
import { Button, PasswordInput, TextInput } from '@mantine/core';
import { useState } from 'react';
import type { TestReport, TestStep } from '../../../client/index.ts';
import { CredentialsTest } from '../../../shared/accounts/account-input.ts';
import { withId } from '../api.ts';
import { Badge, Failure } from '../components.tsx';
import { formatCount } from '../customers/labels.ts';
import { toFieldPath, validate } from '../form-validation.ts';
import type { ApiForm } from '../forms.ts';
import { useApi } from '../queries.ts';
import { formatDuration } from '../times.tsx';
import ui from '../ui.module.css';
import css from './setup.module.css';

/** Form values that include credentials. */
export interface WithCredentials {
  readonly credentials: { readonly clientId: string; readonly clientSecret: string };
}

export const NO_CREDENTIALS = { clientId: '', clientSecret: '' };

/** Inputs of client id and client secret. */
export function CredentialFields<V extends WithCredentials>({ of: { form } }: { readonly of: ApiForm<V> }) {
  return (
    <div className={ui.columns}>
      <TextInput
        label="Client id"
        description="From the ordering system."
        required
        autoComplete="off"
        spellCheck={false}
        {...form.getInputProps('credentials.clientId')}
      />
      <PasswordInput
        label="Client secret"
        description="Stored encrypted. Not shown again."
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

/** Tests entered credentials before they are saved. Requires a key for all accounts. */
export function TestNewCredentials<V extends WithCredentials>(props: {
  readonly of: ApiForm<V>;
  readonly region: string | undefined;
}) {
  const { form } = props.of;
  const api = useApi();
  const { credentials } = form.values;
  const body = { ...(props.region === undefined ? {} : { region: props.region }), credentials };
  const { run, ...outcome } = useCredentialsTest(JSON.stringify(body), () =>
    api.post('/v1/credentials/test', { body }),
  );
  function test(): void {
    const errors = validate(CredentialsTest, body, (path) => toFieldPath(form.values, path));
    for (const [field, message] of Object.entries(errors)) form.setFieldError(field, message);
    if (Object.keys(errors).length === 0) void run();
  }
  return (
    <div>
      <div className={ui.actions}>
        <Button variant="default" loading={outcome.busy} onClick={test}>
          Test credentials
        </Button>
        <span className={ui.hint}>
          Requests a token, the identity and one page of jobs. Nothing is saved.
        </span>
      </div>
      <TestOutcome {...outcome} />
    </div>
  );
}

/** Tests the stored credentials of an account. */
export function TestAccount({ account }: { readonly account: string }) {
  const api = useApi();
  const { run, ...outcome } = useCredentialsTest(account, () =>
    api.post('/v1/accounts/{id}/test', withId(account)),
  );
  return (
    <div>
      <div className={ui.actions}>
        <Button variant="default" loading={outcome.busy} onClick={() => void run()}>
          Test stored credentials
        </Button>
      </div>
      <TestOutcome {...outcome} />
    </div>
  );
}

/** Runs a test. Its result is returned while `subject`, which identifies what was tested, stays the same. */
function useCredentialsTest(subject: string, request: () => Promise<TestReport>) {
  const [busy, setBusy] = useState(false);
  const [result, setResult] = useState<{
    readonly subject: string;
    readonly report?: TestReport;
    readonly error?: unknown;
  }>();
  async function run(): Promise<void> {
    setBusy(true);
    try {
      setResult({ subject, report: await request() });
    } catch (error) {
      setResult({ subject, error });
    } finally {
      setBusy(false);
    }
  }
  const current = result?.subject === subject ? result : undefined;
  return { run, busy, report: current?.report, error: current?.error };
}

const STEPS: Readonly<Record<TestStep['step'], string>> = {
  token: 'Token',
  identity: 'Identity',
  page: 'Job list',
};

function TestOutcome({
  report,
  error,
}: {
  readonly report?: TestReport | undefined;
  readonly error?: unknown;
}) {
  return (
    <div role="status" className={css.outcome}>
      {error ? <Failure error={error} /> : null}
      {report ? (
        <ol className={`${ui.list} ${ui.list} ${css.steps}`} aria-label="Steps of the test">
          {report.steps.map(({ step, ok, message, ms }) => (
            <li key={step}>
              <span>
                <Badge tone={ok ? 'good' : 'bad'}>{STEPS[step]}</Badge>
              </span>
              <p>{message}</p>
              <span className={ui.hint}>{formatDuration(ms)}</span>
            </li>
          ))}
        </ol>
      ) : null}
      {report?.ok ? (
        <p className={ui.hint}>
          Credentials valid: upstream account {report.upstreamId ?? '–'},{' '}
          {formatCount(report.openJobs ?? 0, 'open job')}.
        </p>
      ) : null}
    </div>
  );
}
