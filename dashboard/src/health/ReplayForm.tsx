/** Form that starts a replay: start and accounts. Validated by the schema of the API. */
import { NewReplay } from '../../../shared/delivery/endpoint-input.ts';
import { withEndpoint } from '../api.ts';
import { parseLocalTime, toLocalTime } from '../dates.ts';
import { toOptions } from '../filters.tsx';
import { Form, FormActions, SelectField, TextField } from '../form.tsx';
import { useApiForm } from '../forms.ts';
import { useApi } from '../queries.ts';
import { useZone } from '../times.tsx';
import type { Endpoint } from './status.ts';

interface Values {
  readonly kind: 'at' | 'cursor' | 'beginning';
  /** Value of a `datetime-local` input, in the chosen time zone. */
  readonly at: string;
  readonly account: string;
  readonly cursor: string;
  /** Ids separated by commas or spaces. Empty: all. */
  readonly accounts: string;
}

const HOUR_MS = 3_600_000;
const STARTS = { at: 'Time', cursor: 'Cursor of one account', beginning: 'Oldest kept event' };

export default function ReplayForm(props: {
  readonly endpoint: Endpoint;
  readonly onStarted: () => Promise<unknown>;
}) {
  const { endpoint, onStarted } = props;
  const api = useApi();
  const form = useApiForm<Values>({
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
      await api.post('/v1/endpoints/{id}/replays', { ...withEndpoint(endpoint), body });
      await onStarted();
    },
  });
  const { kind } = form.form.values;
  const { zone } = useZone();
  return (
    <Form of={form}>
      <p>
        Events that pass the filters of the endpoint are sent again with their original ids, marked as a
        replay, in parallel to live events. Rejected events are counted, not parked.
      </p>
      <SelectField name="kind" label="Start" data={toOptions(STARTS)} />
      {kind === 'at' ? (
        <TextField
          name="at"
          type="datetime-local"
          step={1}
          label="Start time"
          description={`Time zone: ${zone}`}
        />
      ) : null}
      {kind === 'cursor' ? (
        <>
          <TextField name="account" label="Account" />
          <TextField
            name="cursor"
            label="Cursor"
            description="For example e1.17. Events after it are sent."
          />
        </>
      ) : (
        <TextField
          name="accounts"
          label="Accounts"
          description="Comma-separated ids. Default: all accounts of the endpoint."
          placeholder="All"
        />
      )}
      <FormActions verb="Start replay" />
    </Form>
  );
}

function toBody({ kind, at, account, cursor, accounts }: Values): unknown {
  const named = accounts.split(/[\s,]+/).filter(Boolean);
  const filter = kind !== 'cursor' && named.length > 0 ? { filter: { accounts: named } } : {};
  switch (kind) {
    case 'at':
      // An invalid time is passed on, so that the schema reports it.
      return { from: { at: parseLocalTime(at) ?? at }, ...filter };
    case 'cursor':
      // Accounts without a cursor start at the end of their logs and send nothing.
      return { from: { cursors: account.trim() === '' ? {} : { [account.trim()]: cursor.trim() } } };
    case 'beginning':
      return { from: 'beginning', ...filter };
  }
}
