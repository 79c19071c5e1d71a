/** What a form could not be saved for, in one place: it takes the focus, and each line leads to its field. */
import { useEffect, useRef, useState } from 'react';
import { Note } from './components.tsx';
import css from './FormErrors.module.css';
import type { ApiForm } from './forms.ts';

/** Stands in the form; there is nothing to see as long as nothing has failed. `children`: what can be done about it. */
export function FormErrors<V extends object>(props: {
  readonly of: ApiForm<V>;
  readonly children?: React.ReactNode;
}) {
  const { failedAttempts: failures, formError: problem, form } = props.of;
  const place = useRef<HTMLDivElement>(null);
  const [names, setNames] = useState<Readonly<Record<string, string>>>({});
  const faults = Object.entries(form.errors).flatMap(([field, error]) =>
    error ? [{ field, sentence: String(error) }] : [],
  );
  // biome-ignore lint/correctness/useExhaustiveDependencies: names are read, and the focus taken, once for each failure
  useEffect(() => {
    if (failures === 0) return;
    setNames(
      Object.fromEntries(faults.map(({ field }) => [field, getLabel(findInput(place.current, field))])),
    );
    place.current?.focus();
  }, [failures]);
  if (failures === 0 || (faults.length === 0 && problem === null)) return null;
  return (
    <div ref={place} tabIndex={-1} className={css.problems}>
      <Note tone="bad" live>
        {problem === null ? null : <p>{problem}</p>}
        {faults.length === 0 ? null : (
          <>
            <p>
              {faults.length === 1
                ? 'One thing is not right yet:'
                : `${faults.length} things are not right yet:`}
            </p>
            <ul>
              {faults.map(({ field, sentence }) => (
                <li key={field}>
                  {names[field] ? (
                    <button type="button" onClick={() => findInput(place.current, field)?.focus()}>
                      {names[field]}
                    </button>
                  ) : null}
                  {names[field] ? ': ' : ''}
                  {sentence}
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

/** The control of a field in the form that this stands in; of a group its first one. */
function findInput(within: Element | null, field: string): HTMLElement | null {
  const found = within?.closest('form')?.querySelector<HTMLElement>(`[data-path="${CSS.escape(field)}"]`);
  if (!found) return null;
  return found.matches('input, textarea, select, button')
    ? found
    : found.querySelector<HTMLElement>('input, textarea, select, button');
}

/** What it is called on screen: of a group by its name. */
function getLabel(input: HTMLElement | null): string {
  const group = input?.closest('fieldset')?.querySelector('legend');
  const isGrouped = input instanceof HTMLInputElement && /^(checkbox|radio)$/.test(input.type) && group;
  const label = isGrouped ? group : (input as HTMLInputElement | null)?.labels?.[0];
  // Without the star of what is required.
  const text = [...(label?.childNodes ?? [])].find(
    ({ nodeType }) => nodeType === Node.TEXT_NODE,
  )?.textContent;
  return (text ?? label?.textContent ?? input?.getAttribute('aria-label') ?? '').trim();
}
