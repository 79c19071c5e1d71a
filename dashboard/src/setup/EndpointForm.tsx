/** The fields of an endpoint form. */
import { Button, Checkbox, NativeSelect, PasswordInput, Radio, Textarea, TextInput } from '@mantine/core';
import { type ReactNode, useState } from 'react';
import { Panel } from '../components.tsx';
import { parseLocalTime, toLocalTime } from '../dates.ts';
import type { ApiForm } from '../forms.ts';
import { useAccounts } from '../queries.ts';
import { formatExactTime } from '../times.tsx';
import ui from '../ui.module.css';
import { AccountScope, Group, IdInput, RegionSelect } from './components.tsx';
import {
  addsAccounts,
  type Endpoint,
  type EndpointValues,
  jobFieldNames,
  typeGroups,
} from './endpoint-values.ts';
import css from './setup.module.css';

/** All fields, in panels. `before`: the endpoint to change; default: a new endpoint. `regions`: the regions to choose from. */
export function EndpointFields(props: {
  readonly of: ApiForm<EndpointValues>;
  readonly before?: Endpoint;
  readonly regions: readonly string[];
}) {
  const { of, before, regions } = props;
  const { form } = of;
  return (
    <>
      <Panel title="Destination">
        <div className={ui.fields}>
          <TextInput
            label="URL"
            description="An https URL at a public address."
            required
            type="url"
            inputMode="url"
            autoComplete="off"
            {...form.getInputProps('url')}
          />
          <TextInput
            label="Description"
            description="Purpose of the endpoint."
            {...form.getInputProps('description')}
          />
          {before ? null : (
            <div className={ui.columns}>
              <IdInput
                description="Optional. Generated if empty. Cannot be changed later."
                {...form.getInputProps('id')}
              />
              <RegionSelect
                regions={regions}
                description="The endpoint receives the events of this region."
                {...form.getInputProps('region')}
              />
            </div>
          )}
        </div>
      </Panel>
      <Panel title="Events">
        <div className={ui.fields}>
          <EndpointAccounts of={of} />
          <EndpointTypes of={of} />
          <div className={ui.columns}>
            <Textarea
              label="Order groups"
              description="Only events of these order groups, one per line. Default: all."
              rows={2}
              spellCheck={false}
              {...form.getInputProps('orderGroups')}
            />
            <Textarea
              label="Origins"
              description="Only events of jobs with these origins, one per line. Default: all."
              rows={2}
              spellCheck={false}
              {...form.getInputProps('origins')}
            />
          </div>
          <JobFields of={of} />
        </div>
      </Panel>
      {before === undefined || addsAccounts(form.values, before) ? (
        <StartPanel of={of} adds={before !== undefined} />
      ) : null}
      <Panel title="Delivery">
        <div className={ui.fields}>
          <Headers of={of} kept={before?.headers ?? []} />
          <div className={ui.columns}>
            <TextInput
              label="Concurrent jobs"
              description="1 to 64. Default: 16. Events of one job are always sent one at a time."
              inputMode="numeric"
              autoComplete="off"
              {...form.getInputProps('concurrency')}
            />
            <TextInput
              label="Requests per second"
              description="0.1 to 1,000. Default: no limit."
              inputMode="decimal"
              autoComplete="off"
              {...form.getInputProps('ratePerSecond')}
            />
          </div>
        </div>
      </Panel>
    </>
  );
}

interface FieldsProps {
  readonly of: ApiForm<EndpointValues>;
}

function EndpointAccounts({ of }: FieldsProps) {
  const { data: accounts } = useAccounts();
  const { region } = of.form.values;
  const offered = (accounts ?? [])
    .filter((account) => region === '' || account.region === region)
    .map(({ id }) => id);
  return (
    <AccountScope
      of={of}
      allLabel="All accounts of the region, including future ones, and events of the region itself"
      offered={offered}
    />
  );
}

function EndpointTypes({ of: { form } }: FieldsProps) {
  const { typeScope, types } = form.values;
  const toggle = (name: string, on: boolean): void =>
    form.setFieldValue('types', on ? [...types, name] : types.filter((other) => other !== name));
  return (
    <Group name="Event types" path="types" error={form.errors.types}>
      <Radio
        label="All types"
        name="typeScope"
        {...form.getInputProps('typeScope', { type: 'radio', value: 'all' })}
      />
      <Radio
        label="Selected types"
        name="typeScope"
        {...form.getInputProps('typeScope', { type: 'radio', value: 'some' })}
      />
      {typeScope === 'some' ? (
        <>
          <div className={`${ui.fields} ${ui.fields} ${css.types}`}>
            {typeGroups.map(({ pattern, name, types: members }) => {
              const isWhole = types.includes(pattern);
              return (
                <div key={pattern} className={ui.fields}>
                  <Checkbox
                    label={`${name}: all of ${pattern}`}
                    checked={isWhole}
                    onChange={({ currentTarget }) => toggle(pattern, currentTarget.checked)}
                  />
                  {isWhole ? null : (
                    <div className={`${ui.columns} ${ui.columns} ${css.choices}`}>
                      {members.map(({ type, when }) => (
                        <Checkbox
                          key={type}
                          label={type}
                          title={when}
                          checked={types.includes(type)}
                          onChange={({ currentTarget }) => toggle(type, currentTarget.checked)}
                        />
                      ))}
                    </div>
                  )}
                </div>
              );
            })}
          </div>
          <Textarea
            label="Other patterns"
            description="One per line. A final * matches the rest of a name: job.tracking_*"
            rows={2}
            spellCheck={false}
            {...form.getInputProps('patterns')}
          />
        </>
      ) : null}
    </Group>
  );
}

function JobFields({ of }: FieldsProps) {
  const { form } = of;
  return (
    <Group
      name="Job fields"
      path="jobFields"
      error={form.errors.jobFields}
      hint="Only events of jobs with these values. An empty value matches jobs without a value."
    >
      <Rows of={of} list="jobFields" noun="field">
        {(at) => (
          <>
            <NativeSelect
              aria-label={`Field ${at + 1}`}
              data={[{ value: '', label: 'Choose a field' }, ...jobFieldNames]}
              {...form.getInputProps(`jobFields.${at}.name`)}
            />
            <TextInput
              aria-label={`Value of field ${at + 1}`}
              autoComplete="off"
              spellCheck={false}
              {...form.getInputProps(`jobFields.${at}.value`)}
            />
          </>
        )}
      </Rows>
    </Group>
  );
}

function Headers({ of, kept }: FieldsProps & { readonly kept: readonly string[] }) {
  const { form } = of;
  return (
    <Group
      name="Headers"
      path="headers"
      error={form.errors.headers}
      hint="Added to each request. Values are stored encrypted and not shown again."
    >
      {kept.length > 0 ? (
        <>
          <Radio
            label={`Keep current headers: ${kept.join(', ')}`}
            name="headersMode"
            {...form.getInputProps('headersMode', { type: 'radio', value: 'keep' })}
          />
          <Radio
            label="Replace all headers"
            name="headersMode"
            {...form.getInputProps('headersMode', { type: 'radio', value: 'replace' })}
          />
        </>
      ) : null}
      {form.values.headersMode === 'replace' ? (
        <Rows of={of} list="headers" noun="header">
          {(at) => (
            <>
              <TextInput
                aria-label={`Name of header ${at + 1}`}
                placeholder="x-tenant"
                autoComplete="off"
                spellCheck={false}
                {...form.getInputProps(`headers.${at}.name`)}
              />
              <PasswordInput
                aria-label={`Value of header ${at + 1}`}
                autoComplete="new-password"
                spellCheck={false}
                visibilityToggleButtonProps={{
                  'aria-label': `Show the value of header ${at + 1}`,
                  tabIndex: 0,
                }}
                {...form.getInputProps(`headers.${at}.value`)}
                aria-invalid={form.errors[`headers.${at}.value`] !== undefined}
              />
            </>
          )}
        </Rows>
      ) : null}
    </Group>
  );
}

/** Rows of names and values that can be added and removed. */
function Rows(props: {
  readonly of: ApiForm<EndpointValues>;
  readonly list: 'jobFields' | 'headers';
  readonly noun: string;
  /** Renders the inputs of a row. */
  readonly children: (at: number) => ReactNode;
}) {
  const { list, noun, children } = props;
  const { form } = props.of;
  return (
    <>
      {form.values[list].map((_, at) => (
        // biome-ignore lint/suspicious/noArrayIndexKey: rows have no other identity
        <div key={at} className={css.pair}>
          {children(at)}
          <Button
            variant="default"
            aria-label={`Remove ${noun} ${at + 1}`}
            onClick={() => form.removeListItem(list, at)}
          >
            Remove
          </Button>
        </div>
      ))}
      <div>
        <Button
          size="xs"
          variant="default"
          onClick={() => form.insertListItem(list, { name: '', value: '' })}
        >
          Add a {noun}
        </Button>
      </div>
    </>
  );
}

function StartPanel({ of: { form }, adds }: FieldsProps & { readonly adds: boolean }) {
  const { start, startAt } = form.values;
  const time = start === 'at' ? parseLocalTime(startAt) : undefined;
  // The latest selectable time: when the form was opened.
  const [latest] = useState(() => toLocalTime(Date.now()));
  return (
    <Panel title={adds ? 'Start of the added accounts' : 'Start'}>
      <Group name="Start position" path="start" error={form.errors.start}>
        <Radio
          label="Now: new events only"
          name="start"
          {...form.getInputProps('start', { type: 'radio', value: 'now' })}
        />
        <Radio
          label="Beginning: all retained events"
          name="start"
          {...form.getInputProps('start', { type: 'radio', value: 'beginning' })}
        />
        <Radio
          label="At a time"
          name="start"
          {...form.getInputProps('start', { type: 'radio', value: 'at' })}
        />
        {start === 'at' ? (
          <TextInput
            label="Start time"
            type="datetime-local"
            step={1}
            max={latest}
            description={time === undefined ? 'Local time.' : formatExactTime(time)}
            {...form.getInputProps('startAt')}
          />
        ) : null}
      </Group>
    </Panel>
  );
}
