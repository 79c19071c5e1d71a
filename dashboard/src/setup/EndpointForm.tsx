/** The fields of an endpoint form. */
import { Button, Checkbox } from '@mantine/core';
import { type ReactNode, useState } from 'react';
import { MAX_LANES } from '../../../shared/delivery/lanes.ts';
import { Panel } from '../components.tsx';
import { parseLocalTime, toLocalTime } from '../dates.ts';
import {
  AreaField,
  Group,
  NumberField,
  RadioFields,
  SecretField,
  SelectField,
  TextField,
  useFormContext,
} from '../form.tsx';
import { useSession } from '../session.ts';
import { formatExactTime } from '../times.tsx';
import ui from '../ui.module.css';
import { getZone } from '../zone-choice.ts';
import { AccountScope, Choices, IdField, RegionField, toggle } from './components.tsx';
import {
  addsAccounts,
  type Endpoint,
  type EndpointValues,
  jobFieldNames,
  typeGroups,
} from './endpoint-values.ts';
import css from './setup.module.css';

const KINDS = { webhook: 'Webhook: signed requests to a URL', sqs: 'Queue: messages in Amazon SQS' };

const useEndpointForm = () => useFormContext<EndpointValues>().form;

/** All fields, in panels. `before`: the endpoint to change; default: a new endpoint. `regions`: the regions to choose from. */
export function EndpointFields(props: { readonly before?: Endpoint; readonly regions?: readonly string[] }) {
  const { before, regions = [] } = props;
  const { values } = useEndpointForm();
  // Other keys cannot choose a queue.
  const { hasAllAccounts } = useSession();
  const isQueue = values.kind === 'sqs';
  return (
    <>
      <Panel title="Destination">
        {before === undefined && hasAllAccounts ? (
          <Group name="Kind" path="kind">
            <RadioFields name="kind" options={KINDS} />
          </Group>
        ) : null}
        {isQueue ? (
          <TextField
            name="url"
            label="Queue"
            description="ARN or URL of an SQS queue. On AWS, the settings of the cell must name it."
            required
          />
        ) : (
          <TextField
            name="url"
            label="URL"
            description="An https URL at a public address. Other URLs require the setting webhooks.allowPrivateNetworks."
            required
            type="url"
            inputMode="url"
          />
        )}
        <TextField name="description" label="Description" description="Purpose of the endpoint." spellCheck />
        {before ? null : (
          <div className={ui.columns}>
            <IdField description="Optional. Generated if empty. Cannot be changed later." />
            <RegionField regions={regions} description="The endpoint receives the events of this region." />
          </div>
        )}
      </Panel>
      <Panel title="Events">
        <AccountScope allLabel="All accounts of the region, including future ones, and events of the region itself" />
        <EndpointTypes />
        <div className={ui.columns}>
          <AreaField
            name="orderGroups"
            label="Order groups"
            description="Only events of jobs with these order groups, one per line. Default: all."
          />
          <AreaField
            name="origins"
            label="Origins"
            description="Only events of jobs with these origins, one per line. Default: all."
          />
        </div>
        <JobFields />
      </Panel>
      {before === undefined || addsAccounts(values, before) ? (
        <StartPanel adds={before !== undefined} />
      ) : null}
      <Panel title="Delivery">
        {isQueue ? null : <Headers kept={before?.headers ?? []} />}
        <div className={ui.columns}>
          <NumberField
            name="concurrency"
            label="Concurrent jobs"
            description={`1 to ${MAX_LANES}. Default: ${MAX_LANES}. The actual number adapts to the endpoint. Events of one job are always sent one at a time.`}
          />
          <NumberField
            name="ratePerSecond"
            label={isQueue ? 'Events per second' : 'Requests per second'}
            description="0.1 to 1,000. Default: no limit."
            inputMode="decimal"
          />
        </div>
      </Panel>
    </>
  );
}

function EndpointTypes() {
  const { values, setFieldValue } = useEndpointForm();
  const { typeScope, types } = values;
  const choose = (chosen: readonly string[]): void => setFieldValue('types', chosen);
  return (
    <Group name="Event types" path="types">
      <RadioFields name="typeScope" options={{ all: 'All types', some: 'Selected types' }} />
      {typeScope === 'some' ? (
        <>
          <div className={`${ui.fields} ${css.types}`}>
            {typeGroups.map(({ pattern, name, types: members }) => {
              const isWhole = types.includes(pattern);
              return (
                <div key={pattern} className={ui.fields}>
                  <Checkbox
                    label={`${name}: all of ${pattern}`}
                    checked={isWhole}
                    onChange={({ currentTarget }) => choose(toggle(types, pattern, currentTarget.checked))}
                  />
                  {isWhole ? null : <Choices options={members} chosen={types} choose={choose} />}
                </div>
              );
            })}
          </div>
          <AreaField
            name="patterns"
            label="Other patterns"
            description="One per line. A final * matches the rest of a name: job.tracking_*"
          />
        </>
      ) : null}
    </Group>
  );
}

function JobFields() {
  return (
    <Group
      name="Job fields"
      path="jobFields"
      hint="Only events of jobs with these values. An empty value matches jobs without a value."
    >
      <Rows list="jobFields" noun="field">
        {(path, number) => (
          <>
            <SelectField
              name={`${path}.name`}
              aria-label={`Field ${number}`}
              data={[{ value: '', label: 'Choose a field' }, ...jobFieldNames]}
            />
            <TextField name={`${path}.value`} aria-label={`Value of field ${number}`} />
          </>
        )}
      </Rows>
    </Group>
  );
}

function Headers({ kept }: { readonly kept: readonly string[] }) {
  const { headersMode } = useEndpointForm().values;
  return (
    <Group
      name="Headers"
      path="headers"
      hint="Added to each request. Values are stored encrypted and not shown again."
    >
      {kept.length > 0 ? (
        <RadioFields
          name="headersMode"
          options={{ keep: `Keep current headers: ${kept.join(', ')}`, replace: 'Replace all headers' }}
        />
      ) : null}
      {headersMode === 'replace' ? (
        <Rows list="headers" noun="header">
          {(path, number) => (
            <>
              <TextField
                name={`${path}.name`}
                aria-label={`Name of header ${number}`}
                placeholder="x-tenant"
              />
              <SecretField
                name={`${path}.value`}
                aria-label={`Value of header ${number}`}
                toggleLabel={`Show the value of header ${number}`}
              />
            </>
          )}
        </Rows>
      ) : null}
    </Group>
  );
}

/** Rows of names and values that can be added and removed. `children` renders the inputs of a row. */
function Rows(props: {
  readonly list: 'jobFields' | 'headers';
  readonly noun: string;
  readonly children: (path: string, number: number) => ReactNode;
}) {
  const { list, noun } = props;
  const form = useEndpointForm();
  return (
    <>
      {form.values[list].map((_, at) => (
        // biome-ignore lint/suspicious/noArrayIndexKey: rows have no other identity
        <div key={at} className={css.pair}>
          {props.children(`${list}.${at}`, at + 1)}
          <Button aria-label={`Remove ${noun} ${at + 1}`} onClick={() => form.removeListItem(list, at)}>
            Remove
          </Button>
        </div>
      ))}
      <div>
        <Button size="xs" onClick={() => form.insertListItem(list, { name: '', value: '' })}>
          Add a {noun}
        </Button>
      </div>
    </>
  );
}

const STARTS = {
  now: 'Now: new events only',
  beginning: 'Beginning: all retained events',
  at: 'At a time',
};

function StartPanel({ adds }: { readonly adds: boolean }) {
  const { start, startAt } = useEndpointForm().values;
  const time = start === 'at' ? parseLocalTime(startAt) : undefined;
  // The latest selectable time: when the form was opened.
  const [latest] = useState(() => toLocalTime(Date.now()));
  return (
    <Panel title={adds ? 'Start of the added accounts' : 'Start'}>
      <Group name="Start position" path="start">
        <RadioFields name="start" options={STARTS} />
        {start === 'at' ? (
          <TextField
            name="startAt"
            label="Start time"
            type="datetime-local"
            step={1}
            max={latest}
            description={time === undefined ? `Time zone: ${getZone()}` : formatExactTime(time)}
          />
        ) : null}
      </Group>
    </Panel>
  );
}
