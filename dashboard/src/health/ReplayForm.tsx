/** What is to be sent again: from when on, and of which accounts. Checked by the schema of the API. */
import { Button, Group, NativeSelect, TextInput } from '@mantine/core';
import { NewReplay } from '../../../shared/delivery/endpoint-input.ts';
import { Failure } from '../components.tsx';
import { parseLocalTime, toLocalTime } from '../dates.ts';
import { useApiForm } from '../forms.ts';
import { useApi } from '../queries.ts';
import css from './Health.module.css';
import { endpointPath } from './queries.ts';
import type { Endpoint } from './status.ts';

interface Values {
  readonly kind: 'at' | 'cursor' | 'beginning';
  /** As `datetime-local` has it, in the viewer's zone. */
  readonly at: string;
  readonly account: string;
  readonly cursor: string;
  /** Ids, with commas or spaces between; empty: all. */
  readonly accounts: string;
}

const HOUR_MS = 3_600_000;

export default function ReplayForm(props: {
  readonly endpoint: Endpoint;
  readonly onStarted: () => Promise<unknown>;
}) {
  const { endpoint, onStarted } = props;
  const { region, id } = endpoint;
  const api = useApi();
  const {
    form,
    formError: problem,
    busy,
    submit,
  } = useApiForm<Values>({
    schema: NewReplay,
    initial: {
      kind: 'at',
      at: toLocalTime(Date.now() - HOUR_MS),
      account: endpoint.accounts[0] ?? '',
      cursor: '',
      accounts: '',
    },
    toBody,
    toField: ([first, second], values, rule) =>
      first === 'filter'
        ? 'accounts'
        : values.kind === 'at'
          ? 'at'
          : second === 'cursors' && rule.includes('name')
            ? 'account'
            : 'cursor',
    send: async (body) => {
      await api.post(endpointPath(id, '/replays'), { query: { region }, body });
      await onStarted();
    },
  });
  const { kind } = form.values;
  return (
    <form onSubmit={submit} className={css.form} noValidate>
      <p>
        Events that it wants are sent once more, with the ids that they had and marked as a replay, beside
        what is live. What it refuses is counted, not set aside.
      </p>
      <NativeSelect
        label="From when on"
        data={[
          { value: 'at', label: 'A time' },
          { value: 'cursor', label: 'A cursor in the log of one account' },
          { value: 'beginning', label: 'All that is kept' },
        ]}
        {...form.getInputProps('kind')}
      />
      {kind === 'at' ? (
        <TextInput
          type="datetime-local"
          step={1}
          label="What happened then or later"
          description={`In your zone, ${Intl.DateTimeFormat().resolvedOptions().timeZone}`}
          {...form.getInputProps('at')}
        />
      ) : null}
      {kind === 'cursor' ? (
        <>
          <TextInput label="Account" {...form.getInputProps('account')} />
          <TextInput
            label="After the cursor"
            description="Such as e1.17: as found in events and in the feed"
            {...form.getInputProps('cursor')}
          />
        </>
      ) : (
        <TextInput
          label="Accounts"
          description="Ids with commas between; empty: all that it follows"
          placeholder="all"
          {...form.getInputProps('accounts')}
        />
      )}
      {problem === null ? null : <Failure error={new Error(problem)} />}
      <Group justify="flex-end">
        <Button type="submit" loading={busy}>
          Send again
        </Button>
      </Group>
    </form>
  );
}

function toBody({ kind, at, account, cursor, accounts }: Values): unknown {
  const named = accounts.split(/[\s,]+/).filter(Boolean);
  const filter = kind !== 'cursor' && named.length > 0 ? { filter: { accounts: named } } : {};
  switch (kind) {
    case 'at':
      // What is no time stays as it is, for the schema to say so.
      return { from: { at: parseLocalTime(at) ?? at }, ...filter };
    case 'cursor':
      // Those that are not named begin now, and have nothing to be sent.
      return { from: { cursors: account.trim() === '' ? {} : { [account.trim()]: cursor.trim() } } };
    case 'beginning':
      return { from: 'beginning', ...filter };
  }
}
