/** Form and fields. A field belongs to the form around it; `name` is the path of its value. */
import { Button, Checkbox, NativeSelect, PasswordInput, Radio, Textarea, TextInput } from '@mantine/core';
import {
  type ComponentProps,
  createContext,
  type ReactNode,
  useContext,
  useEffect,
  useId,
  useRef,
  useState,
} from 'react';
import { Link } from 'wouter';
import { hasStatus } from './api.ts';
import { Failure, Note } from './components.tsx';
import css from './form.module.css';
import type { ApiForm } from './forms.ts';
import ui from './ui.module.css';

const FormContext = createContext<ApiForm<object> | null>(null);

/** Returns the form around the component. */
export function useFormContext<V extends object>(): ApiForm<V> {
  const form = useContext(FormContext);
  if (!form) throw new Error('Form is missing.');
  return form as unknown as ApiForm<V>;
}

/** A form. `onSubmit`: default is to validate and send it. */
export function Form<V extends object>(props: {
  readonly of: ApiForm<V>;
  readonly className?: string | undefined;
  readonly onSubmit?: ApiForm<V>['submit'];
  readonly children: ReactNode;
}) {
  const { of, className = css.form, onSubmit = of.submit } = props;
  return (
    <FormContext value={of as unknown as ApiForm<object>}>
      <form className={`${ui.stack} ${className}`} onSubmit={onSubmit} noValidate>
        {of.modified ? (
          <Note tone="warn" live>
            Latest version loaded.{' '}
            {of.modified.length === 0
              ? 'No field of this form was modified.'
              : `Modified meanwhile: ${of.modified.join(', ')}.`}{' '}
            Your input is kept: review it and save again.
          </Note>
        ) : null}
        {props.children}
      </form>
    </FormContext>
  );
}

/** The end of a form: its errors, its submit button, and a link that leaves it. `children`: further actions. */
export function FormActions(props: {
  readonly verb: string;
  readonly cancel?: string;
  readonly isDisabled?: boolean;
  readonly children?: ReactNode;
}) {
  const { busy } = useFormContext();
  return (
    <>
      <FormErrors />
      <div className={ui.actions}>
        <Button variant="filled" type="submit" loading={busy} disabled={props.isDisabled ?? false}>
          {props.verb}
        </Button>
        {props.cancel === undefined ? null : (
          <Button component={Link} href={props.cancel}>
            Cancel
          </Button>
        )}
        {props.children}
      </div>
    </>
  );
}

/** Lists the errors of the form in the order of its fields, once an attempt has failed. Takes the focus; each line leads to its field. */
export function FormErrors() {
  const { failedAttempts, formError, error: lastError, form, reload } = useFormContext();
  const summary = useRef<HTMLDivElement>(null);
  const [labels, setLabels] = useState<Readonly<Record<string, string>>>({});
  const errors = Object.entries(form.errors).flatMap(([field, error]) =>
    error ? [{ field, message: String(error) }] : [],
  );
  const order = Object.keys(labels);
  errors.sort((one, other) => order.indexOf(one.field) - order.indexOf(other.field));
  // biome-ignore lint/correctness/useExhaustiveDependencies: reads the labels and takes the focus once per failed attempt
  useEffect(() => {
    if (failedAttempts === 0) return;
    const inputs = summary.current?.closest('form')?.querySelectorAll<HTMLElement>('[data-path]') ?? [];
    const paths = [...inputs].map(({ dataset }) => dataset.path ?? '');
    errors.sort((one, other) => paths.indexOf(one.field) - paths.indexOf(other.field));
    setLabels(
      Object.fromEntries(errors.map(({ field }) => [field, getLabel(findInput(summary.current, field))])),
    );
    summary.current?.focus();
  }, [failedAttempts]);
  if (failedAttempts === 0 || (errors.length === 0 && formError === null)) return null;
  return (
    <div ref={summary} tabIndex={-1} className={css.errors}>
      <Note tone="bad" live>
        {formError === null ? null : <p>{formError}</p>}
        {errors.length === 0 ? null : (
          <>
            <p>{errors.length === 1 ? 'Correct this field:' : `Correct these ${errors.length} fields:`}</p>
            <ul>
              {errors.map(({ field, message }) => (
                <li key={field}>
                  {labels[field] ? (
                    <button type="button" onClick={() => findInput(summary.current, field)?.focus()}>
                      {labels[field]}
                    </button>
                  ) : null}
                  {labels[field] ? ': ' : ''}
                  {message}
                </li>
              ))}
            </ul>
          </>
        )}
        {reload && hasStatus(lastError, 412) ? <ConflictHelp reload={reload} /> : null}
      </Note>
    </div>
  );
}

/** Help for a conflict: a button that loads the latest version. */
function ConflictHelp({ reload }: { readonly reload: () => Promise<void> }) {
  const [failure, setFailure] = useState<unknown>(null);
  return (
    <div className={ui.fields}>
      <p>
        The data was modified after you opened this page, so your changes were not saved. Load the latest
        version and save again. Your input is kept.
      </p>
      {failure ? <Failure error={failure} /> : null}
      <div>
        <Button size="xs" onClick={() => void reload().then(() => setFailure(null), setFailure)}>
          Load latest version
        </Button>
      </div>
    </div>
  );
}

/** Returns the control of a field in the enclosing form; of a group, its first control. */
function findInput(within: Element | null, field: string): HTMLElement | null {
  const found = within?.closest('form')?.querySelector<HTMLElement>(`[data-path="${CSS.escape(field)}"]`);
  if (!found) return null;
  return found.matches('input, textarea, select, button')
    ? found
    : found.querySelector<HTMLElement>('input, textarea, select, button');
}

/** Returns the visible label of a control; of a checkbox or radio button in a group, the group's legend. */
function getLabel(input: HTMLElement | null): string {
  const group = input?.closest('fieldset')?.querySelector('legend');
  const isGrouped = input instanceof HTMLInputElement && /^(checkbox|radio)$/.test(input.type) && group;
  const label = isGrouped ? group : (input as HTMLInputElement | null)?.labels?.[0];
  // Text nodes only: without the asterisk of required fields.
  const text = [...(label?.childNodes ?? [])].find(
    ({ nodeType }) => nodeType === Node.TEXT_NODE,
  )?.textContent;
  return (text ?? label?.textContent ?? input?.getAttribute('aria-label') ?? '').trim();
}

type FieldProps<Input extends React.ElementType> = Omit<ComponentProps<Input>, 'name'> & {
  readonly name: string;
};

export function TextField({ name, ...props }: FieldProps<typeof TextInput>) {
  const { form } = useFormContext();
  return <TextInput autoComplete="off" spellCheck={false} {...props} {...form.getInputProps(name)} />;
}

/** A number as text, for the schema to check. */
export function NumberField(props: FieldProps<typeof TextInput>) {
  return <TextField inputMode="numeric" {...props} />;
}

/** A text of several lines. */
export function AreaField({ name, ...props }: FieldProps<typeof Textarea>) {
  const { form } = useFormContext();
  return <Textarea rows={2} spellCheck={false} {...props} {...form.getInputProps(name)} />;
}

export function SelectField({ name, ...props }: FieldProps<typeof NativeSelect>) {
  const { form } = useFormContext();
  return <NativeSelect {...props} {...form.getInputProps(name)} />;
}

export function CheckField({ name, ...props }: FieldProps<typeof Checkbox>) {
  const { form } = useFormContext();
  return <Checkbox {...props} {...form.getInputProps(name, { type: 'checkbox' })} />;
}

/** A secret. `toggleLabel`: label of the button that shows it. */
export function SecretField(all: FieldProps<typeof PasswordInput> & { readonly toggleLabel: string }) {
  const { name, toggleLabel, ...props } = all;
  const { form } = useFormContext();
  return (
    <PasswordInput
      autoComplete="new-password"
      spellCheck={false}
      visibilityToggleButtonProps={{ 'aria-label': toggleLabel, tabIndex: 0 }}
      {...props}
      {...form.getInputProps(name)}
      aria-invalid={form.errors[name] !== undefined}
    />
  );
}

/** Radio buttons. `options`: values and their labels. */
export function RadioFields(props: {
  readonly name: string;
  readonly options: Readonly<Record<string, string>>;
}) {
  const { name, options } = props;
  const { form } = useFormContext();
  return Object.entries(options).map(([value, label]) => (
    <Radio key={value} label={label} name={name} {...form.getInputProps(name, { type: 'radio', value })} />
  ));
}

/** A group of controls with a legend. `path`: the field whose error is shown here. */
export function Group(props: {
  readonly name: string;
  readonly path?: string;
  readonly hint?: ReactNode;
  readonly children: ReactNode;
}) {
  const { name, path, hint } = props;
  const { form } = useFormContext();
  const error = path === undefined ? undefined : form.errors[path];
  const id = useId();
  return (
    <fieldset
      className={`${ui.fields} ${css.group}`}
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
