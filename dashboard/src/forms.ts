/** Forms that are checked by the schemas that the HTTP API checks with, and that show its refusals at the field they are about. */
import { type UseFormReturnType, useForm } from '@mantine/form';
import { useRef, useState } from 'react';
import type * as z from 'zod';
import { ApiError, toErrorMessage } from './api.ts';
import { type FieldErrors, toFieldMessage, toFieldPath, validate } from './form-validation.ts';
import { useLeaveGuard } from './unsaved-changes.ts';

/** A form over a schema. */
export interface ApiForm<V extends object> {
  readonly form: UseFormReturnType<V>;
  /** What went wrong that is about no field of the form. */
  readonly formError: string | null;
  /** What the last attempt to send failed with, for what can be done about it besides; null: it was not sent, or did not fail. */
  readonly error: unknown;
  readonly busy: boolean;
  /** Attempts that failed, by the check or by a refusal. */
  readonly failedAttempts: number;
  /** Whether something is typed in that is not saved; a page is not left then without asking. */
  readonly dirty: boolean;
  /** Takes values for what is saved: those that there are, unless others are given. What sends and then puts others in has to. */
  readonly markSaved: (values?: V) => void;
  /** For `onSubmit`: checks, sends, and puts a refusal where it belongs. */
  readonly submit: (event?: React.FormEvent<HTMLFormElement>) => void;
}

/**
 * A form whose values become a body (`toBody`: what was left empty is left out) that the schema checks before it is sent.
 * Field names of the form are paths of the body; where they are not, `fieldOf` says which field a path of the body is about.
 * `check` knows what the schema can't, for it sees the values: sentences, by field. Texts that must be there are best sent as they
 * are: so an empty one is told the rule.
 */
export function useApiForm<V extends object>(options: {
  readonly schema: z.ZodType;
  readonly initial: V;
  readonly toBody: (values: V) => unknown;
  readonly send: (body: never) => Promise<unknown>;
  readonly fieldOf?: (path: readonly PropertyKey[], values: V, rule: string) => string | undefined;
  readonly check?: (values: V) => FieldErrors;
}): ApiForm<V> {
  const { schema, initial, toBody, send, fieldOf, check } = options;
  const [problem, setProblem] = useState<string | null>(null);
  const [error, setError] = useState<unknown>(null);
  const [busy, setBusy] = useState(false);
  const [failures, setFailures] = useState(0);
  const saved = useRef('');
  /** Whether what sends has said itself what is saved. */
  const settled = useRef(false);
  const place = (path: readonly PropertyKey[], values: V, rule: string): string =>
    fieldOf?.(path, values, rule) ?? toFieldPath(values, path);
  const form = useForm<V>({
    initialValues: initial,
    validate: (values) => ({
      ...validate(schema, toBody(values), (path, rule) => place(path, values, rule)),
      ...check?.(values),
    }),
  });
  if (saved.current === '') saved.current = JSON.stringify(form.values);
  const dirty = JSON.stringify(form.values) !== saved.current;
  useLeaveGuard(dirty);

  const submit = form.onSubmit(
    async (values) => {
      setProblem(null);
      setError(null);
      setBusy(true);
      settled.current = false;
      try {
        await send(toBody(values) as never);
        if (!settled.current) saved.current = JSON.stringify(values);
      } catch (cause) {
        const sentence = toErrorMessage(cause);
        const named = cause instanceof ApiError ? cause.field : undefined;
        const field = named === undefined ? '' : place(named.split(/[.[\]]+/), values, sentence);
        if (field !== '') form.setFieldError(field, toFieldMessage(sentence, named));
        else setProblem(sentence);
        setError(cause);
        setFailures((count) => count + 1);
      } finally {
        setBusy(false);
      }
    },
    () => {
      setProblem(null);
      setError(null);
      setFailures((count) => count + 1);
    },
  );
  const settle = (values: V = form.getValues()): void => {
    saved.current = JSON.stringify(values);
    settled.current = true;
  };
  return {
    form,
    formError: problem,
    error,
    busy,
    failedAttempts: failures,
    dirty,
    markSaved: settle,
    submit,
  };
}
