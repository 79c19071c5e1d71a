/** The form of a new account, and the fields that the settings of an account share with it. */
import { useQueryClient } from '@tanstack/react-query';
import type { Account } from '../../../client/index.ts';
import { MAX_INTERVAL_SECONDS, NewAccount } from '../../../shared/accounts/account-input.ts';
import { Panel, showToast } from '../components.tsx';
import { CheckField, Form, FormActions, Group, NumberField, RadioFields, TextField } from '../form.tsx';
import { parseNumber } from '../form-values.ts';
import { useApiForm } from '../forms.ts';
import { useApi, useRegions } from '../queries.ts';
import ui from '../ui.module.css';
import { useRegion } from '../urls.ts';
import { checkRegion, IdField, RegionField } from './components.tsx';
import { CredentialFields, NO_CREDENTIALS, TestNewCredentials } from './credentials.tsx';

/** The form of a new account. `cancel`: target of the link that leaves it. */
export function NewAccountForm(props: {
  readonly cancel?: string;
  readonly onCreated: (account: Account) => void;
}) {
  const { cancel, onCreated } = props;
  const api = useApi();
  const queries = useQueryClient();
  const { data: served } = useRegions();
  const currentRegion = useRegion();
  const regions = served?.map(({ id }) => id) ?? [];
  const form = useApiForm({
    schema: NewAccount,
    initial: {
      id: '',
      region: currentRegion ?? '',
      source: 'credentials' as 'credentials' | 'reference',
      credentials: NO_CREDENTIALS,
      secretRef: '',
      pollIntervalSeconds: '120',
      paused: false,
    },
    toBody: ({ id, region, source, credentials, secretRef, paused, ...rest }) => ({
      id: id.trim(),
      ...(region === '' ? {} : { region }),
      ...(source === 'credentials' ? { credentials } : { secretRef: secretRef.trim() }),
      ...toInterval(rest),
      paused,
    }),
    check: ({ region }) => checkRegion(region, regions),
    send: async (body) => {
      const created = await api.post('/v1/accounts', { body });
      void queries.invalidateQueries({ queryKey: ['accounts'], exact: true });
      const started = created.paused ? 'created, paused.' : 'created. Polling starts now.';
      showToast(
        [`Account ${created.id} ${started}`, ...created.warnings].join(' '),
        created.warnings.length > 0 ? 'warn' : 'good',
      );
      onCreated(created);
    },
  });
  const { source, region } = form.form.values;
  return (
    <Form of={form}>
      <Panel title="Account">
        <div className={ui.columns}>
          <IdField required description="Part of paths, events and cursors. Cannot be changed later." />
          <RegionField regions={regions} description="Region of the ordering API." />
        </div>
      </Panel>
      <Panel title="Credentials">
        <Group name="Source">
          <RadioFields
            name="source"
            options={{ credentials: 'Enter them here', reference: 'Secret of the cell (AWS only)' }}
          />
        </Group>
        {source === 'credentials' ? (
          <>
            <CredentialFields />
            <TestNewCredentials region={region === '' ? undefined : region} />
          </>
        ) : (
          <ReferenceField />
        )}
      </Panel>
      <Panel title="Polling">
        <IntervalField />
        <CheckField
          name="paused"
          label="Start paused"
          description="The account is not polled until it is resumed."
        />
      </Panel>
      <FormActions verb="Create account" {...(cancel === undefined ? {} : { cancel })} />
    </Form>
  );
}

export function IntervalField() {
  return (
    <NumberField
      name="pollIntervalSeconds"
      label="Poll interval (seconds)"
      description={`1 to ${MAX_INTERVAL_SECONDS.toLocaleString()}. On AWS at least 60.`}
      required
    />
  );
}

export function ReferenceField() {
  return (
    <TextField
      name="secretRef"
      label="Secret name"
      description="The name must begin with the prefix of the cell. To select a key of a JSON secret, append # and the key."
      required
    />
  );
}

export const toInterval = ({ pollIntervalSeconds }: { readonly pollIntervalSeconds: string }) => ({
  pollIntervalSeconds: parseNumber(pollIntervalSeconds) ?? '',
});
