/** Components that the setup pages share. */
import { Button, Checkbox, NativeSelect, Radio, TextInput } from '@mantine/core';
import { type ReactNode, useEffect, useId, useState } from 'react';
import { Link, useLocation } from 'wouter';
import { Failure, Note, Panel, useConfirm } from '../components.tsx';
import { FormErrors } from '../FormErrors.tsx';
import { type ApiForm, isConflict } from '../forms.ts';
import { useSession } from '../session.ts';
import ui from '../ui.module.css';
import { useHref } from '../urls.ts';
import { rebase } from './endpoint-values.ts';
import css from './setup.module.css';

const SECTIONS = [
  { path: '/setup', name: 'Overview', paths: [] },
  { path: '/setup/accounts', name: 'Accounts', paths: ['/setup/new-account'] },
  { path: '/setup/endpoints', name: 'Endpoints', paths: ['/setup/new-endpoint'] },
  { path: '/setup/customers', name: 'Customers', paths: [] },
  { path: '/setup/keys', name: 'Keys', paths: ['/setup/new-key'] },
] as const;

/** Navigation within the setup. */
export function SetupNavigation() {
  const [location] = useLocation();
  const link = useHref();
  return (
    <nav className={`${ui.tabs} ${ui.tabs} ${css.places}`} aria-label="Setup">
      {SECTIONS.map(({ path, name, paths }) => {
        const isCurrent =
          location === path ||
          (path !== '/setup' && location.startsWith(`${path}/`)) ||
          paths.some((other) => other === location);
        return (
          <Link key={path} href={link(path)} aria-current={isCurrent ? 'page' : undefined}>
            {name}
          </Link>
        );
      })}
    </nav>
  );
}

/** A link in the form of a button. */
export function ButtonLink(props: { readonly href: string; readonly children: ReactNode }) {
  return (
    <Button component={Link} href={props.href} className={css.button}>
      {props.children}
    </Button>
  );
}

/** Note for a resource from the configuration file. `part`: its section there. */
export function DeclaredNote({ what, part }: { readonly what: string; readonly part: string }) {
  return (
    <Note>
      {what} is declared in the configuration file. To change or remove it, edit <code>{part}</code> there and
      restart Jobwire.
    </Note>
  );
}

/** A group of controls with a legend. `path`: the field whose error is shown here. */
export function Group(props: {
  readonly name: string;
  readonly path?: string;
  readonly error?: ReactNode;
  readonly hint?: ReactNode;
  readonly children: ReactNode;
}) {
  const { name, path, error, hint } = props;
  const id = useId();
  return (
    <fieldset
      className={`${ui.fields} ${ui.fields} ${css.group}`}
      {...(path === undefined ? {} : { 'data-path': path })}
      {...(error ? { 'aria-describedby': id } : {})}
    >
      <legend>{name}</legend>
      {hint ? <p className={ui.hint}>{hint}</p> : null}
      {props.children}
      {error ? (
        <p id={id} className={ui.error}>
          {error}
        </p>
      ) : null}
    </fieldset>
  );
}

/** The id of a new resource. */
export function IdInput(props: { readonly required?: boolean; readonly description: string }) {
  return <TextInput label="Id" autoComplete="off" spellCheck={false} {...props} />;
}

/** The region of a new resource. Omitted if there is only one. */
export function RegionSelect(props: { readonly regions: readonly string[]; readonly description: string }) {
  const { regions, ...inputProps } = props;
  return regions.length > 1 ? (
    <NativeSelect
      label="Region"
      required
      data={[
        { value: '', label: 'Choose a region' },
        ...regions.map((id) => ({ value: id, label: id.toUpperCase() })),
      ]}
      {...inputProps}
    />
  ) : null;
}

/** The end of a form: its errors and its submit button. */
export function FormActions<V extends object>(props: {
  readonly of: ApiForm<V>;
  readonly verb: string;
  /** Further actions. */
  readonly more?: ReactNode;
  /** Help for the error. */
  readonly help?: ReactNode;
}) {
  const { of, verb, more, help } = props;
  return (
    <>
      <FormErrors of={of}>{help}</FormErrors>
      <div className={ui.actions}>
        <Button type="submit" loading={of.busy}>
          {verb}
        </Button>
        {more}
      </div>
    </>
  );
}

/**
 * Keeps the version of a resource that a form edits. It follows `latest` until the user edits the form, so that a save cannot
 * overwrite changes of others unseen. `reload` loads the latest version and keeps the user's edits.
 */
export function useFormBase<T extends { readonly revision: number }, V extends object>(
  latest: T,
  [base, setBase]: readonly [T, (base: T) => void],
  { form, dirty, markSaved }: ApiForm<V>,
  toValues: (of: T) => V,
  read: () => Promise<T>,
): { readonly reload: () => Promise<void>; readonly reloaded: readonly [before: T, now: T] | null } {
  const [reloaded, setReloaded] = useState<readonly [T, T] | null>(null);
  function apply(now: T): void {
    const values = rebase(toValues(base), form.getValues(), toValues(now));
    setBase(now);
    form.setValues(values);
    markSaved(toValues(now));
  }
  // biome-ignore lint/correctness/useExhaustiveDependencies: runs once for each revision
  useEffect(() => {
    if (latest.revision <= base.revision || dirty) return;
    apply(latest);
    setReloaded(null);
  }, [latest.revision, dirty]);
  const reload = async (): Promise<void> => {
    const now = await read();
    setReloaded([base, now]);
    apply(now);
  };
  return { reload, reloaded };
}

/** Help for a conflict: a button that loads the latest version. */
export function ConflictNote(props: { readonly error: unknown; readonly reload: () => Promise<void> }) {
  const [failure, setFailure] = useState<unknown>(null);
  if (!isConflict(props.error)) return null;
  return (
    <div className={ui.fields}>
      <p>
        It was modified after you opened this page. Your changes were not saved. Load the latest version and
        save again: your input is kept.
      </p>
      {failure ? <Failure error={failure} /> : null}
      <div>
        <Button
          size="xs"
          variant="default"
          onClick={() => void props.reload().then(() => setFailure(null), setFailure)}
        >
          Load latest version
        </Button>
      </div>
    </div>
  );
}

/** Lists what others changed, after the latest version was loaded. */
export function ReloadedNote({ changed }: { readonly changed: readonly string[] }) {
  return (
    <Note tone="warn" live>
      Latest version loaded.{' '}
      {changed.length === 0
        ? 'No field of this form was modified.'
        : `Modified meanwhile: ${changed.join(', ')}.`}{' '}
      Your input is kept: review it and save again.
    </Note>
  );
}

/** A panel that deletes a resource after confirmation. */
export function DeletePanel(props: {
  readonly kind: 'account' | 'endpoint';
  readonly id: string;
  readonly summary: string;
  /** What is deleted with it. */
  readonly deleted: readonly string[];
  /** What is not deleted. */
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
}

/** Selects all accounts or some of them. A key for some accounts can only select some. */
export function AccountScope<V extends AccountScopeValues>(props: {
  readonly of: ApiForm<V>;
  readonly allLabel: string;
  readonly offered: readonly string[];
}) {
  const form = props.of.form as unknown as ApiForm<AccountScopeValues>['form'];
  const { forAll } = useSession();
  const { accountScope, accounts } = form.values;
  return (
    <Group name="Accounts" path="accounts" error={form.errors.accounts}>
      {forAll ? (
        <>
          <Radio
            label={props.allLabel}
            name="accountScope"
            {...form.getInputProps('accountScope', { type: 'radio', value: 'all' })}
          />
          <Radio
            label="Selected accounts"
            name="accountScope"
            {...form.getInputProps('accountScope', { type: 'radio', value: 'some' })}
          />
        </>
      ) : null}
      {accountScope === 'some' ? (
        <AccountChoices
          offered={props.offered}
          chosen={accounts}
          choose={(chosen) => form.setFieldValue('accounts', chosen)}
        />
      ) : null}
    </Group>
  );
}

/** Number of accounts above which a search field is shown. */
const SEARCH_THRESHOLD = 12;

/** Checkboxes of accounts. Includes chosen accounts that are not offered. */
function AccountChoices(props: {
  readonly offered: readonly string[];
  readonly chosen: readonly string[];
  readonly choose: (chosen: readonly string[]) => void;
}) {
  const { offered, chosen, choose } = props;
  const [search, setSearch] = useState('');
  const all = [...new Set([...offered, ...chosen])].sort();
  const found = all.filter((account) => account.includes(search.trim().toLowerCase()));
  return (
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
      <div className={`${ui.columns} ${ui.columns} ${css.choices}`}>
        {found.length === 0 ? <p className={ui.hint}>No account matches.</p> : null}
        {found.map((account) => (
          <Checkbox
            key={account}
            label={account}
            checked={chosen.includes(account)}
            onChange={({ currentTarget }) =>
              choose(
                currentTarget.checked ? [...chosen, account] : chosen.filter((other) => other !== account),
              )
            }
          />
        ))}
      </div>
    </>
  );
}
