/** Components that the setup pages share. */
import { Button, Checkbox, TextInput } from '@mantine/core';
import { type ReactNode, useState } from 'react';
import { Link } from 'wouter';
import { Empty, Loaded, Note, Page, Panel, useConfirm } from '../components.tsx';
import { type Columns, DataTable } from '../DataTable.tsx';
import { type CsvSource, ExportButton } from '../export.tsx';
import { toOptions } from '../filters.tsx';
import { Group, RadioFields, SelectField, TextField, useFormContext } from '../form.tsx';
import { type LoadedQuery, useAccounts } from '../queries.ts';
import { useSession } from '../session.ts';
import { formatCount } from '../texts.ts';
import ui from '../ui.module.css';
import { useHref } from '../urls.ts';
import css from './setup.module.css';

/** Page with the list of all resources of a kind. `newHref`: form of a new one; default: not permitted. */
export function ListPage<T>(props: {
  readonly title: string;
  readonly noun: string;
  readonly purpose: string;
  readonly newHref: string | undefined;
  readonly query: LoadedQuery<readonly T[]>;
  readonly empty: string;
  readonly columns: Columns<T>;
  readonly getKey: (row: T) => string;
  /** Content of the exported file. */
  readonly csv: CsvSource;
  /** Content above the list. */
  readonly children?: ReactNode;
}) {
  const { title, noun, newHref, query, columns, getKey } = props;
  const link = useHref();
  return (
    <Page
      title={title}
      actions={
        newHref === undefined ? null : (
          <Button variant="filled" component={Link} href={link(newHref)}>
            New {noun}
          </Button>
        )
      }
    >
      <p className={ui.hint}>{props.purpose}</p>
      {props.children}
      <Loaded query={query}>
        {(rows) =>
          rows.length === 0 ? (
            <Empty>{props.empty}</Empty>
          ) : (
            <Panel
              title={formatCount(rows.length, noun)}
              aside={
                <div className={ui.actions}>
                  <ExportButton name={`${noun}s`.replace(' ', '-')} source={props.csv} />
                </div>
              }
            >
              <DataTable {...{ rows, getKey, columns }} label={title} />
            </Panel>
          )
        }
      </Loaded>
    </Page>
  );
}

/** Note for a resource from the configuration: a file, or what the demo has instead. `part`: its section there. */
export function DeclaredNote({ what, part }: { readonly what: string; readonly part: string }) {
  return (
    <Note>
      {what} is declared in the configuration. To change or remove it, edit <code>{part}</code> there and
      restart Jobwire.
    </Note>
  );
}

/** The id of a new resource. */
export function IdField(props: { readonly required?: boolean; readonly description: string }) {
  return <TextField name="id" label="Id" {...props} />;
}

/** The region of a new resource. Omitted if there is only one. */
export function RegionField(props: { readonly regions: readonly string[]; readonly description: string }) {
  const { regions, description } = props;
  if (regions.length < 2) return null;
  const options = regions.map((id) => [id, id.toUpperCase()]);
  const data = toOptions({ '': 'Choose a region', ...Object.fromEntries(options) });
  return <SelectField name="region" label="Region" required description={description} data={data} />;
}

/** Returns the error of a region that is not chosen. */
export const checkRegion = (region: string, regions: readonly string[]): Record<string, string> =>
  region === '' && regions.length > 1 ? { region: 'It must be one of the listed regions.' } : {};

/** A panel that deletes a resource after confirmation. */
export function DeletePanel(props: {
  readonly kind: 'account' | 'endpoint';
  readonly id: string;
  readonly summary: string;
  /** Data that is deleted with it. */
  readonly deleted: readonly string[];
  /** Data that is not deleted. */
  readonly kept: string;
  readonly onDelete: () => Promise<void>;
}) {
  const { kind, id, summary, deleted, kept, onDelete } = props;
  const confirm = useConfirm();
  const body = (
    <>
      <p>This permanently deletes:</p>
      <ul className={css.plain}>
        {deleted.map((item) => (
          <li key={item}>{item}</li>
        ))}
      </ul>
      <p>{kept}</p>
    </>
  );
  const ask = (): void =>
    confirm({
      ...{ title: `Delete ${kind} ${id}?`, body, verb: 'Delete permanently', destructive: true },
      ...{ confirmText: id, onConfirm: onDelete },
    });
  return (
    <Panel title={`Delete ${kind}`}>
      <p className={ui.hint}>{summary}</p>
      <div>
        <Button color="red" variant="light" onClick={ask}>
          Delete {id}
        </Button>
      </div>
    </Panel>
  );
}

/** Form values of {@link AccountScope}. */
export interface AccountScopeValues {
  readonly accountScope: 'all' | 'some';
  readonly accounts: readonly string[];
  readonly region?: string;
}

/** Number of accounts above which a search field is shown. */
const SEARCH_THRESHOLD = 12;

/** Selects all accounts or some of them, in the region of the form if it has one. A key for some accounts can only select some. */
export function AccountScope({ allLabel = 'All accounts, including future ones' }) {
  const { form } = useFormContext<AccountScopeValues>();
  const { hasAllAccounts, key } = useSession();
  const { data: known = [] } = useAccounts();
  const [search, setSearch] = useState('');
  const { accountScope, accounts, region } = form.values;
  const inRegion = known.filter((one) => !region || one.region === region).map(({ id }) => id);
  // Accounts of the own key need not be registered yet.
  const offered = region === undefined ? (key.accounts ?? inRegion) : inRegion;
  const all = [...new Set([...offered, ...accounts])].sort();
  const found = all.filter((account) => account.includes(search.trim().toLowerCase()));
  return (
    <Group name="Accounts" path="accounts">
      {hasAllAccounts ? (
        <RadioFields name="accountScope" options={{ all: allLabel, some: 'Selected accounts' }} />
      ) : null}
      {accountScope === 'some' ? (
        <>
          {all.length > SEARCH_THRESHOLD ? (
            <TextInput
              aria-label="Find an account"
              placeholder="Find an account"
              type="search"
              value={search}
              onChange={({ currentTarget }) => setSearch(currentTarget.value)}
            />
          ) : null}
          {found.length === 0 ? <p className={ui.hint}>No account matches.</p> : null}
          <Choices
            options={found.map((name) => ({ name }))}
            chosen={accounts}
            choose={(chosen) => form.setFieldValue('accounts', chosen)}
          />
        </>
      ) : null}
    </Group>
  );
}

/** Checkboxes of names, in columns. */
export function Choices(props: {
  readonly options: readonly { readonly name: string; readonly title?: string }[];
  readonly chosen: readonly string[];
  readonly choose: (chosen: readonly string[]) => void;
}) {
  const { options, chosen, choose } = props;
  return (
    <div className={`${ui.columns} ${css.choices}`}>
      {options.map(({ name, title }) => (
        <Checkbox
          key={name}
          label={name}
          title={title}
          checked={chosen.includes(name)}
          onChange={({ currentTarget }) => choose(toggle(chosen, name, currentTarget.checked))}
        />
      ))}
    </div>
  );
}

/** Adds a name to a list or removes it. */
export const toggle = (names: readonly string[], name: string, on: boolean): readonly string[] =>
  on ? [...names, name] : names.filter((other) => other !== name);
