/** Form that sends parked and dead events again by filter. Counts and lists the selected events before. */
import { useDebouncedValue } from '@mantine/hooks';
import { keepPreviousData, useQuery } from '@tanstack/react-query';
import type { RedeliveryReport } from '../../../client/index.ts';
import { Redelivery } from '../../../shared/delivery/endpoint-input.ts';
import { withEndpoint } from '../api.ts';
import { Failure, Note } from '../components.tsx';
import { DataTable } from '../DataTable.tsx';
import { parseLocalTime } from '../dates.ts';
import { eventTypeLabels } from '../events.ts';
import { toOptions } from '../filters.tsx';
import { Form, FormActions, SelectField, TextField } from '../form.tsx';
import { useApiForm } from '../forms.ts';
import { useApi } from '../queries.ts';
import { formatCount } from '../texts.ts';
import { RelativeTime, useZone } from '../times.tsx';
import ui from '../ui.module.css';
import { formatZone } from '../zone.ts';
import { getTypeLabel, Subject } from './Deliveries.tsx';
import type { Endpoint } from './status.ts';

interface Values {
  readonly state: 'dead' | 'parked' | 'both';
  readonly type: string;
  /** Lists separated by commas or spaces. Empty: all. */
  readonly accounts: string;
  readonly jobNumbers: string;
  readonly statuses: string;
  /** Values of `datetime-local` inputs, in the chosen time zone. Empty: no limit. */
  readonly from: string;
  readonly to: string;
}

const STATES = { dead: 'Dead events', parked: 'Parked events', both: 'Parked and dead events' };
/** Labels of the button. */
const VERBS = { dead: 'Replay', parked: 'Retry', both: 'Retry and replay' };
const DEBOUNCE_MS = 300;

export default function RedeliveryForm(props: {
  readonly endpoint: Endpoint;
  readonly state: 'dead' | 'parked';
  readonly onStarted: (report: RedeliveryReport) => Promise<unknown>;
}) {
  const { endpoint, state, onStarted } = props;
  const api = useApi();
  const form = useApiForm<Values>({
    schema: Redelivery,
    initial: { state, type: '', accounts: '', jobNumbers: '', statuses: '', from: '', to: '' },
    toBody: toRedelivery,
    toField: ([first, second]) =>
      first === 'states' ? 'state' : second === 'types' ? 'type' : String(second),
    send: async (body: Redelivery) => {
      await onStarted(await api.post('/v1/endpoints/{id}/redeliver', { ...withEndpoint(endpoint), body }));
    },
  });
  const { values } = form.form;
  const zone = formatZone(useZone().zone);
  const [selected] = useDebouncedValue(values, DEBOUNCE_MS);
  const checked = Redelivery.safeParse(toRedelivery(selected));
  const preview = useQuery({
    queryKey: ['endpoints', 'redelivery', endpoint.region, endpoint.id, selected],
    queryFn: ({ signal }) =>
      api.post('/v1/endpoints/{id}/redeliver', {
        ...withEndpoint(endpoint),
        body: { ...checked.data, dryRun: true },
        signal,
      }),
    enabled: checked.success,
    placeholderData: keepPreviousData,
    gcTime: 0,
  });
  const verb = VERBS[values.state];
  const isCurrent = selected === values && checked.success && !preview.isPlaceholderData;
  const count = isCurrent && preview.data ? preview.data.parked + preview.data.dead : undefined;
  return (
    <Form of={form}>
      <p>
        Fix the receiver first. Dead events are replayed. Parked events are retried with the later events of
        their jobs, in order.
      </p>
      <div className={ui.columns}>
        <SelectField name="state" label="Events" data={toOptions(STATES)} />
        <SelectField
          name="type"
          label="Event type"
          data={toOptions({ '': 'All types', ...eventTypeLabels })}
        />
        <TextField name="accounts" label="Accounts" placeholder="All" />
        <TextField name="jobNumbers" label="Job numbers" placeholder="All" />
        <TextField name="statuses" label="Status codes" placeholder="All" />
        <TextField name="from" type="datetime-local" step={1} label={`Parked since (${zone})`} />
        <TextField name="to" type="datetime-local" step={1} label={`Parked before (${zone})`} />
      </div>
      {preview.error ? <Failure error={preview.error} again={preview.refetch} /> : null}
      {preview.data && checked.success ? <Preview report={preview.data} /> : null}
      <FormActions
        verb={count === undefined ? verb : `${verb} ${formatCount(count, 'event')}`}
        isDisabled={!count}
      />
    </Form>
  );
}

/** The number of selected events, and the first of them. */
function Preview({ report: { parked, dead, complete, events } }: { readonly report: RedeliveryReport }) {
  return (
    <>
      <p role="status">
        <strong>{formatCount(dead, 'dead event')}</strong> and{' '}
        <strong>{formatCount(parked, 'parked event')}</strong> match.
        {parked + dead > events.length ? ` The first ${events.length}:` : ''}
      </p>
      {complete ? null : (
        <Note tone="warn">Only the first 10,000 dead events are included. Repeat this after the replay.</Note>
      )}
      {events.length === 0 ? null : (
        <DataTable
          label="Selected events"
          rows={events}
          getKey={({ state, event }) => `${state} ${event}`}
          columns={{
            Event: ({ type }) => getTypeLabel(type),
            Subject: (one) => <Subject {...one} />,
            State: ({ state }) => (state === 'dead' ? 'Dead' : 'Parked'),
            'Status code': { right: true, render: ({ status }) => status ?? 'None' },
            'Parked since': ({ parkedAt }) => <RelativeTime at={parkedAt} />,
          }}
        />
      )}
    </>
  );
}

/** Converts the values to a request body. Invalid texts are passed on, so that the schema reports them. */
function toRedelivery({ state, type, accounts, jobNumbers, statuses, from, to }: Values): Redelivery {
  const split = (text: string): string[] | undefined => text.match(/[^\s,]+/g) ?? undefined;
  const numbers = (text: string): number[] | undefined => split(text)?.map(Number);
  const time = (text: string): string | undefined => parseLocalTime(text) ?? (text || undefined);
  const filter = {
    types: split(type),
    accounts: split(accounts),
    jobNumbers: numbers(jobNumbers),
    statuses: numbers(statuses),
    from: time(from),
    to: time(to),
  };
  return { states: state === 'both' ? ['parked', 'dead'] : [state], filter };
}
