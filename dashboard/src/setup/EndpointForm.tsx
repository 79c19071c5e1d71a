/** The fields of an endpoint, new or to be changed. */
import { Button, Checkbox, NativeSelect, PasswordInput, Radio, Textarea, TextInput } from '@mantine/core';
import { useState } from 'react';
import { Panel } from '../components.tsx';
import { parseLocalTime, toLocalTime } from '../dates.ts';
import type { ApiForm } from '../forms.ts';
import { useAccounts } from '../queries.ts';
import { useSession } from '../session.ts';
import { formatExactTime } from '../times.tsx';
import { AccountChoices, Group } from './components.tsx';
import {
  addsAccounts,
  type Endpoint,
  type EndpointValues,
  jobFieldNames,
  typeGroups,
} from './endpoint-values.ts';
import css from './setup.module.css';

/** All fields, in panels. `before`: the endpoint that is changed; absent: a new one. `regions`: those to choose from. */
export function EndpointFields(props: {
  readonly of: ApiForm<EndpointValues>;
  readonly before?: Endpoint;
  readonly regions: readonly string[];
}) {
  const { of, before, regions } = props;
  const { form } = of;
  return (
    <>
      <Panel title="Where events go">
        <div className={css.fields}>
          <TextInput
            label="URL"
            description="https, at an address that is public."
            required
            type="url"
            inputMode="url"
            autoComplete="off"
            {...form.getInputProps('url')}
          />
          <TextInput
            label="Description"
            description="What it is for, in your words."
            {...form.getInputProps('description')}
          />
          {before ? null : (
            <div className={css.two}>
              <TextInput
                label="Id"
                description="Made up unless given; it can’t be changed later."
                autoComplete="off"
                spellCheck={false}
                {...form.getInputProps('id')}
              />
              {regions.length > 1 ? (
                <NativeSelect
                  label="Region"
                  description="Of the ordering service; its events are what it gets."
                  required
                  data={[
                    { value: '', label: 'Choose one' },
                    ...regions.map((id) => ({ value: id, label: id.toUpperCase() })),
                  ]}
                  {...form.getInputProps('region')}
                />
              ) : null}
            </div>
          )}
        </div>
      </Panel>
      <Panel title="Which events">
        <div className={css.fields}>
          <EndpointAccounts of={of} />
          <EndpointTypes of={of} />
          <div className={css.two}>
            <Textarea
              label="Order groups"
              description="Only of these, one to a line; all where there is none."
              rows={2}
              spellCheck={false}
              {...form.getInputProps('orderGroups')}
            />
            <Textarea
              label="Origins"
              description="Only of jobs of these, one to a line."
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
      <Panel title="How they are sent">
        <div className={css.fields}>
          <Headers of={of} kept={before?.headers ?? []} />
          <div className={css.two}>
            <TextInput
              label="Jobs side by side"
              description="1 to 64; 16 unless told. Events of one job go one after another."
              inputMode="numeric"
              autoComplete="off"
              {...form.getInputProps('concurrency')}
            />
            <TextInput
              label="Requests a second"
              description="0.1 to 1,000 at most; as many as it takes unless told."
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

function EndpointAccounts({ of: { form } }: FieldsProps) {
  const { forAll } = useSession();
  const { data: all } = useAccounts();
  const { region, whose, accounts } = form.values;
  const offered = (all ?? [])
    .filter((account) => region === '' || account.region === region)
    .map(({ id }) => id);
  return (
    <Group name="Accounts" path="accounts" error={form.errors.accounts}>
      {forAll ? (
        <>
          <Radio
            label="All of the region, also those that come later, and what is said of the region itself"
            name="whose"
            {...form.getInputProps('whose', { type: 'radio', value: 'all' })}
          />
          <Radio
            label="Only these"
            name="whose"
            {...form.getInputProps('whose', { type: 'radio', value: 'some' })}
          />
        </>
      ) : null}
      {whose === 'some' ? (
        <AccountChoices
          offered={offered}
          chosen={accounts}
          choose={(chosen) => form.setFieldValue('accounts', chosen)}
        />
      ) : null}
    </Group>
  );
}

function EndpointTypes({ of: { form } }: FieldsProps) {
  const { which, types } = form.values;
  const toggle = (name: string, on: boolean): void =>
    form.setFieldValue('types', on ? [...types, name] : types.filter((other) => other !== name));
  return (
    <Group name="Types" path="types" error={form.errors.types}>
      <Radio
        label="All types"
        name="which"
        {...form.getInputProps('which', { type: 'radio', value: 'all' })}
      />
      <Radio
        label="Only these"
        name="which"
        {...form.getInputProps('which', { type: 'radio', value: 'some' })}
      />
      {which === 'some' ? (
        <>
          <div className={css.types}>
            {typeGroups.map(({ pattern, name, types: members }) => {
              const whole = types.includes(pattern);
              return (
                <div key={pattern} className={css.fields}>
                  <Checkbox
                    label={`${name}: all of ${pattern}`}
                    checked={whole}
                    onChange={({ currentTarget }) => toggle(pattern, currentTarget.checked)}
                  />
                  {whole ? null : (
                    <div className={css.choices}>
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
            description="One to a line; a final * stands for the rest of a name: job.tracking_*"
            rows={2}
            spellCheck={false}
            {...form.getInputProps('patterns')}
          />
        </>
      ) : null}
    </Group>
  );
}

function JobFields({ of: { form } }: FieldsProps) {
  const { jobFields } = form.values;
  return (
    <Group
      name="Fields of the job"
      path="jobFields"
      error={form.errors.jobFields}
      hint="Only events whose job has these values. A value that is empty: the job has none."
    >
      {jobFields.map((_, at) => (
        // biome-ignore lint/suspicious/noArrayIndexKey: a row is its place
        <div key={at} className={css.pair}>
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
          <Button
            variant="default"
            aria-label={`Remove field ${at + 1}`}
            onClick={() => form.removeListItem('jobFields', at)}
          >
            Remove
          </Button>
        </div>
      ))}
      <div>
        <Button
          size="xs"
          variant="default"
          onClick={() => form.insertListItem('jobFields', { name: '', value: '' })}
        >
          Add a field
        </Button>
      </div>
    </Group>
  );
}

function Headers({ of: { form }, kept }: FieldsProps & { readonly kept: readonly string[] }) {
  const { headers, headersAre } = form.values;
  return (
    <Group
      name="Headers"
      path="headers"
      error={form.errors.headers}
      hint="Each request carries them besides ours. Their values are kept encrypted, and never shown again."
    >
      {kept.length > 0 ? (
        <>
          <Radio
            label={`Keep those that there are: ${kept.join(', ')}`}
            name="headersAre"
            {...form.getInputProps('headersAre', { type: 'radio', value: 'kept' })}
          />
          <Radio
            label="Replace all of them"
            name="headersAre"
            {...form.getInputProps('headersAre', { type: 'radio', value: 'given' })}
          />
        </>
      ) : null}
      {headersAre === 'given' ? (
        <>
          {headers.map((_, at) => (
            // biome-ignore lint/suspicious/noArrayIndexKey: a row is its place
            <div key={at} className={css.pair}>
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
              <Button
                variant="default"
                aria-label={`Remove header ${at + 1}`}
                onClick={() => form.removeListItem('headers', at)}
              >
                Remove
              </Button>
            </div>
          ))}
          <div>
            <Button
              size="xs"
              variant="default"
              onClick={() => form.insertListItem('headers', { name: '', value: '' })}
            >
              Add a header
            </Button>
          </div>
        </>
      ) : null}
    </Group>
  );
}

function StartPanel({ of: { form }, adds }: FieldsProps & { readonly adds: boolean }) {
  const { begin, at } = form.values;
  const instant = begin === 'at' ? parseLocalTime(at) : undefined;
  // What can be chosen ends with the moment at which the form was opened.
  const [latest] = useState(() => toLocalTime(Date.now()));
  return (
    <Panel title={adds ? 'Where the accounts that are added begin' : 'Where it begins'}>
      <Group name="In the logs of its accounts" path="begin" error={form.errors.begin}>
        <Radio
          label="Now: it gets what happens from here on"
          name="begin"
          {...form.getInputProps('begin', { type: 'radio', value: 'now' })}
        />
        <Radio
          label="At the beginning: it gets everything that is still kept"
          name="begin"
          {...form.getInputProps('begin', { type: 'radio', value: 'beginning' })}
        />
        <Radio
          label="At a time"
          name="begin"
          {...form.getInputProps('begin', { type: 'radio', value: 'at' })}
        />
        {begin === 'at' ? (
          <TextInput
            label="From"
            type="datetime-local"
            step={1}
            max={latest}
            description={instant === undefined ? 'By your clock.' : formatExactTime(instant)}
            {...form.getInputProps('at')}
          />
        ) : null}
      </Group>
    </Panel>
  );
}
