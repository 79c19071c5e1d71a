/** Credentials of accounts: input and test. They are never shown. */
import { Button } from '@mantine/core';
import { useState } from 'react';
import type { TestReport } from '../../../client/index.ts';
import { CredentialsTest } from '../../../shared/accounts/account-input.ts';
import { withId } from '../api.ts';
import { CredentialsReport } from '../CredentialsReport.tsx';
import { Failure } from '../components.tsx';
import { SecretField, TextField, useFormContext } from '../form.tsx';
import { toFieldPath, validate } from '../form-validation.ts';
import { useApi } from '../queries.ts';
import ui from '../ui.module.css';

export const NO_CREDENTIALS = { clientId: '', clientSecret: '' };

/** Inputs of client id and client secret. */
export function CredentialFields() {
  return (
    <div className={ui.columns}>
      <TextField
        name="credentials.clientId"
        label="Client id"
        description="From the ordering API."
        required
      />
      <SecretField
        name="credentials.clientSecret"
        label="Client secret"
        description="Stored encrypted. Not shown again."
        required
        toggleLabel="Show the client secret"
      />
    </div>
  );
}

/** Tests entered credentials before they are saved. Requires a key for all accounts. */
export function TestNewCredentials({ region }: { readonly region: string | undefined }) {
  const { form } = useFormContext<{ readonly credentials: typeof NO_CREDENTIALS }>();
  const api = useApi();
  const { credentials } = form.values;
  const body = { ...(region === undefined ? {} : { region }), credentials };
  function check(): boolean {
    const errors = validate(CredentialsTest, body, (path) => toFieldPath(form.values, path));
    for (const [field, message] of Object.entries(errors)) form.setFieldError(field, message);
    return Object.keys(errors).length === 0;
  }
  return (
    <CredentialsTester
      label="Test credentials"
      subject={JSON.stringify(body)}
      request={() => api.post('/v1/credentials/test', { body })}
      check={check}
      hint="Requests a token, the identity and one page of jobs. Nothing is saved."
    />
  );
}

/** Tests the stored credentials of an account. */
export function TestAccount({ account }: { readonly account: string }) {
  const api = useApi();
  return (
    <CredentialsTester
      label="Test stored credentials"
      subject={account}
      request={() => api.post('/v1/accounts/{id}/test', withId(account))}
    />
  );
}

/** Runs a test, if `check` permits it. Its result is shown while `subject`, which identifies what was tested, stays the same. */
function CredentialsTester(props: {
  readonly label: string;
  readonly subject: string;
  readonly request: () => Promise<TestReport>;
  readonly check?: () => boolean;
  readonly hint?: string;
}) {
  const { label, subject, request, check, hint } = props;
  const [busy, setBusy] = useState(false);
  const [last, setLast] = useState<{
    readonly subject: string;
    readonly report?: TestReport;
    readonly error?: unknown;
  }>();
  async function run(): Promise<void> {
    if (check?.() === false) return;
    setBusy(true);
    try {
      setLast({ subject, report: await request() });
    } catch (error) {
      setLast({ subject, error });
    } finally {
      setBusy(false);
    }
  }
  const result = last?.subject === subject ? last : undefined;
  return (
    <>
      <div className={ui.actions}>
        <Button loading={busy} onClick={() => void run()}>
          {label}
        </Button>
        {hint === undefined ? null : <span className={ui.hint}>{hint}</span>}
      </div>
      {result?.error ? <Failure error={result.error} /> : null}
      {result?.report ? <CredentialsReport report={result.report} /> : null}
    </>
  );
}
