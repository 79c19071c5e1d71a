/** Forms that are validated with the schemas of the HTTP API and show API errors at the field they name. */
import { type UseFormReturnType, useForm } from '@mantine/form';
import { useEffect, useRef, useState } from 'react';
import type * as z from 'zod';
import { ApiError } from '../../client/index.ts';
import { toErrorMessage } from './api.ts';
import { showToast } from './components.tsx';
import { type FieldErrors, toFieldMessage, toFieldPath, validate } from './form-validation.ts';
import { findChangedFields, isEqual, rebase } from './form-values.ts';
import type { Resource } from './resources.ts';
import { useLeaveGuard } from './unsaved-changes.ts';

/** State and actions of a form. */
export interface ApiForm<V extends object> {
  readonly form: UseFormReturnType<V>;
  /** Message of an error without a field. */
  readonly formError: string | null;
  /** Error of the last request. `null`: no request was sent, or it succeeded. */
  readonly error: unknown;
  readonly busy: boolean;
  /** Number of failed attempts, whether by validation or by the API. */
  readonly failedAttempts: number;
  /** Whether the form has unsaved changes. Leaving the page then requires confirmation. */
  readonly dirty: boolean;
  /** Marks values as saved. Default: the current ones. Required if `send` then sets other values. */
  readonly markSaved: (values?: V) => void;
  /** Submit handler: validates, sends, and shows errors at their fields. */
  readonly submit: (event?: React.FormEvent<HTMLFormElement>) => void;
  /** Loads the latest version of the edited resource, and keeps the edits. `undefined`: the form edits no resource. */
  readonly reload?: () => Promise<void>;
  /** Labels of the fields that others modified, after `reload`. */
  readonly modified?: readonly string[] | null;
}

interface FormRules<V> {
  readonly schema: z.ZodType;
  readonly toField?: (path: readonly PropertyKey[], values: V, rule: string) => string | undefined;
  readonly check?: (values: V) => FieldErrors;
}

/**
 * Creates a form. `toBody` converts its values to a request body, which is validated with `schema` and passed to `send`.
 * Field paths are paths of the body; `toField` maps those that differ. `check` returns errors that only the form values show.
 * Include a required text in the body even if it is empty, so that its rule is reported.
 */
export function useApiForm<V extends object>(
  options: FormRules<V> & {
    readonly initial: V;
    readonly toBody: (values: V) => unknown;
    readonly send: (body: never, values: V) => Promise<unknown>;
  },
): ApiForm<V> {
  const { schema, initial, toBody, send, toField, check } = options;
  const [formError, setFormError] = useState<string | null>(null);
  const [error, setError] = useState<unknown>(null);
  const [busy, setBusy] = useState(false);
  const [failedAttempts, setFailedAttempts] = useState(0);
  const saved = useRef('');
  /** Whether `send` called `markSaved`. */
  const isMarked = useRef(false);
  const findField = (path: readonly PropertyKey[], values: V, rule: string): string =>
    toField?.(path, values, rule) ?? toFieldPath(values, path);
  const form = useForm<V>({
    initialValues: initial,
    validate: (values) => ({
      ...validate(schema, toBody(values), (path, rule) => findField(path, values, rule)),
      ...check?.(values),
    }),
  });
  if (saved.current === '') saved.current = JSON.stringify(form.values);
  const dirty = JSON.stringify(form.values) !== saved.current;
  useLeaveGuard(dirty);

  const submit = form.onSubmit(
    async (values) => {
      setFormError(null);
      setError(null);
      setBusy(true);
      isMarked.current = false;
      try {
        await send(toBody(values) as never, values);
        if (!isMarked.current) saved.current = JSON.stringify(values);
      } catch (cause) {
        const message = toErrorMessage(cause);
        const named = cause instanceof ApiError ? cause.field : undefined;
        const field = named === undefined ? '' : findField(named.split(/[.[\]]+/), values, message);
        if (field !== '') form.setFieldError(field, toFieldMessage(message, named));
        else setFormError(message);
        setError(cause);
        setFailedAttempts((count) => count + 1);
      } finally {
        setBusy(false);
      }
    },
    () => {
      setFormError(null);
      setError(null);
      setFailedAttempts((count) => count + 1);
    },
  );
  const markSaved = (values: V = form.getValues()): void => {
    saved.current = JSON.stringify(values);
    isMarked.current = true;
  };
  return { form, formError, error, busy, failedAttempts, dirty, markSaved, submit };
}

/**
 * Creates a form that edits a resource. It follows the latest version; while it has edits, only if its own fields are unchanged,
 * so that a save cannot overwrite changes of others unseen. `base`: the version that it edits.
 */
export function useResourceForm<T extends { readonly revision: number }, V extends object>(
  options: FormRules<V> & {
    readonly resource: Resource<T>;
    readonly toValues: (resource: T) => V;
    readonly toBody: (values: V, base: T) => unknown;
    /** Sends the change of `base`. */
    readonly save: (body: never, base: T) => Promise<T>;
    /** Notification after a save. */
    readonly done: (saved: T) => string;
    /** Labels of the fields of the resource, for the list of those that others modified. */
    readonly labels: Readonly<Partial<Record<keyof T, string>>>;
  },
): ApiForm<V> & { readonly base: T } {
  const { resource, toValues, toBody, save, done, labels, ...rules } = options;
  const { latest } = resource;
  const [base, setBase] = useState(latest);
  const [modified, setModified] = useState<readonly string[] | null>(null);
  const apiForm = useApiForm<V>({
    ...rules,
    initial: toValues(latest),
    toBody: (values) => toBody(values, base),
    send: async (body, values) => {
      const saved = await save(body, base);
      showToast(done(saved));
      edit(saved, values);
      setModified(null);
      resource.store(saved);
    },
  });
  const { form, dirty, markSaved } = apiForm;
  /** Edits another version. Values that differ from `before` are kept. */
  function edit(version: T, before: V): void {
    const values = toValues(version);
    form.setValues(rebase(before, form.getValues(), values));
    markSaved(values);
    setBase(version);
  }
  // biome-ignore lint/correctness/useExhaustiveDependencies: runs once for each revision
  useEffect(() => {
    // Changes of other fields do not conflict with the edits.
    const isChanged = !isEqual(toValues(latest), toValues(base));
    if (latest.revision <= base.revision || (dirty && isChanged)) return;
    edit(latest, toValues(base));
    setModified(null);
  }, [latest.revision, dirty]);
  const reload = async (): Promise<void> => {
    const version = await resource.read();
    setModified(findChangedFields(base, version, labels));
    edit(version, toValues(base));
  };
  return { ...apiForm, base, reload, modified };
}
