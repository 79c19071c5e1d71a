/** What the pages of the setup share. */
import { Button, Checkbox, TextInput } from '@mantine/core';
import { type ReactNode, useEffect, useId, useState } from 'react';
import { Link, useLocation } from 'wouter';
import { ApiError } from '../api.ts';
import { Failure, Note } from '../components.tsx';
import { FormErrors } from '../FormErrors.tsx';
import type { ApiForm } from '../forms.ts';
import { buildHref, useRegion } from '../urls.ts';
import { rebase } from './endpoint-values.ts';
import css from './setup.module.css';

const SECTIONS = [
  { path: '/setup', name: 'Overview', more: [] },
  { path: '/setup/accounts', name: 'Accounts', more: ['/setup/new-account'] },
  { path: '/setup/endpoints', name: 'Endpoints', more: ['/setup/new-endpoint'] },
  { path: '/setup/customers', name: 'Customers', more: [] },
  { path: '/setup/keys', name: 'Keys', more: ['/setup/new-key'] },
] as const;

/** Where one can go within the setup. */
export function SetupNavigation() {
  const [location] = useLocation();
  const link = useSetupHref();
  return (
    <nav className={css.places} aria-label="Setup">
      {SECTIONS.map(({ path, name, more }) => {
        const here =
          location === path ||
          (path !== '/setup' && location.startsWith(`${path}/`)) ||
          more.some((other) => other === location);
        return (
          <Link key={path} href={link(path)} aria-current={here ? 'page' : undefined}>
            {name}
          </Link>
        );
      })}
    </nav>
  );
}

/** Addresses that keep the region that is looked at. */
export function useSetupHref(): (path: string) => string {
  const region = useRegion() ?? undefined;
  return (path) => buildHref(path, { region });
}

/** A button that leads somewhere. */
export function ButtonLink(props: { readonly href: string; readonly children: ReactNode }) {
  return (
    <Button component={Link} href={props.href} className={css.button}>
      {props.children}
    </Button>
  );
}

/** What the configuration file says can only be changed there. `part`: where in it. */
export function DeclaredNote({ what, part }: { readonly what: string; readonly part: string }) {
  return (
    <Note>
      {what} is declared in the configuration file. Change or remove it under <code>{part}</code> there, and
      start Jobwire again.
    </Note>
  );
}

/** Controls that belong together, under a name; `path` is the field whose error is told here. */
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
      className={css.group}
      {...(path === undefined ? {} : { 'data-path': path })}
      {...(error ? { 'aria-describedby': id } : {})}
    >
      <legend>{name}</legend>
      {hint ? <p className={css.hint}>{hint}</p> : null}
      {props.children}
      {error ? (
        <p id={id} className={css.error}>
          {error}
        </p>
      ) : null}
    </fieldset>
  );
}

/** The end of a form: what is wrong, and the button that sends it. */
export function FormActions<V extends object>(props: {
  readonly of: ApiForm<V>;
  readonly verb: string;
  /** What else can be done here. */
  readonly more?: ReactNode;
  /** What can be done about what went wrong. */
  readonly help?: ReactNode;
}) {
  const { of, verb, more, help } = props;
  return (
    <>
      <FormErrors of={of}>{help}</FormErrors>
      <div className={css.save}>
        <Button type="submit" loading={of.busy}>
          {verb}
        </Button>
        {more}
      </div>
    </>
  );
}

/**
 * What a form of changes goes out from: what is shown of it at the moment, until something is typed in; from then on what it was
 * then, so that nobody's changes are written over unseen. `reload` brings it up to date and leaves what was typed.
 */
export function useFormBase<T extends { readonly revision: number }, V extends object>(
  latest: T,
  [base, setBase]: readonly [T, (base: T) => void],
  { form, dirty, markSaved: settle }: ApiForm<V>,
  valuesOf: (of: T) => V,
  read: () => Promise<T>,
): { readonly reload: () => Promise<void>; readonly reloaded: readonly [before: T, now: T] | null } {
  const [reloaded, setReloaded] = useState<readonly [T, T] | null>(null);
  function take(now: T): void {
    const values = rebase(valuesOf(base), form.getValues(), valuesOf(now));
    setBase(now);
    form.setValues(values);
    settle(valuesOf(now));
  }
  // biome-ignore lint/correctness/useExhaustiveDependencies: followed when it is another one
  useEffect(() => {
    if (latest.revision <= base.revision || dirty) return;
    take(latest);
    setReloaded(null);
  }, [latest.revision, dirty]);
  const reload = async (): Promise<void> => {
    const now = await read();
    setReloaded([base, now]);
    take(now);
  };
  return { reload, reloaded };
}

/** Whether somebody else was faster. */
export function isConflict(error: unknown): boolean {
  return error instanceof ApiError && error.status === 412;
}

/** What to do when somebody else was faster. */
export function ConflictNote(props: { readonly error: unknown; readonly reload: () => Promise<void> }) {
  const [failure, setFailure] = useState<unknown>(null);
  if (!isConflict(props.error)) return null;
  return (
    <div className={css.fields}>
      <p>
        Somebody else has changed it since it was loaded here, and nothing of yours is saved yet. Load it as
        it is now: what you typed stays.
      </p>
      {failure ? <Failure error={failure} /> : null}
      <div>
        <Button
          size="xs"
          variant="default"
          onClick={() => void props.reload().then(() => setFailure(null), setFailure)}
        >
          Load it as it is now
        </Button>
      </div>
    </div>
  );
}

/** What was loaded anew, so that it is looked at before it is saved. */
export function ReloadedNote({ changed }: { readonly changed: readonly string[] }) {
  return (
    <Note tone="warn" live>
      This is how it is now.{' '}
      {changed.length === 0
        ? 'Nothing that stands here was changed.'
        : `Changed meanwhile: ${changed.join(', ')}.`}{' '}
      What you typed is still there: look through it, and save again.
    </Note>
  );
}

/** From so many on they can be searched. */
const SEARCH_THRESHOLD = 12;

/** Accounts to choose some of; those that are chosen already and not known here stay. */
export function AccountChoices(props: {
  readonly offered: readonly string[];
  readonly chosen: readonly string[];
  readonly choose: (chosen: readonly string[]) => void;
}) {
  const { offered, chosen, choose } = props;
  const [sought, setSought] = useState('');
  const all = [...new Set([...offered, ...chosen])].sort();
  const shown = all.filter((account) => account.includes(sought.trim().toLowerCase()));
  return (
    <>
      {all.length > SEARCH_THRESHOLD ? (
        <TextInput
          aria-label="Find an account"
          placeholder="Find an account"
          type="search"
          value={sought}
          onChange={({ currentTarget }) => setSought(currentTarget.value)}
        />
      ) : null}
      <div className={css.choices}>
        {shown.length === 0 ? <p className={css.hint}>No account fits.</p> : null}
        {shown.map((account) => (
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
