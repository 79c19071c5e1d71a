/** The error summary of a form. It takes the focus; each line leads to its field. */
import { useEffect, useRef, useState } from 'react';
import { Note } from './components.tsx';
import css from './FormErrors.module.css';
import type { ApiForm } from './forms.ts';

/** Lists the errors of the form that contains it, once an attempt has failed. `children`: further help. */
export function FormErrors<V extends object>(props: {
  readonly of: ApiForm<V>;
  readonly children?: React.ReactNode;
}) {
  const { failedAttempts, formError, form } = props.of;
  const summary = useRef<HTMLDivElement>(null);
  const [labels, setLabels] = useState<Readonly<Record<string, string>>>({});
  const errors = Object.entries(form.errors).flatMap(([field, error]) =>
    error ? [{ field, message: String(error) }] : [],
  );
  // biome-ignore lint/correctness/useExhaustiveDependencies: reads the labels and takes the focus once per failed attempt
  useEffect(() => {
    if (failedAttempts === 0) return;
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
        {props.children}
      </Note>
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
