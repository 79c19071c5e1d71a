/** Filters that are kept in the address. */
import { NativeSelect, TextInput } from '@mantine/core';
import { type ComponentProps, useEffect, useRef, useState } from 'react';
import { useParams } from './urls.ts';

/** Returns the options of a select: values and their labels. */
export const toOptions = (labels: Readonly<Record<string, string>>): { value: string; label: string }[] =>
  Object.entries(labels).map(([value, label]) => ({ value, label }));

/** Adds the selected value to the options if it is missing. */
export const includeSelected = (selected: string | undefined, options: readonly string[]): string[] =>
  selected === undefined || options.includes(selected) ? [...options] : [selected, ...options];

/** Select whose value is the query parameter `param`. */
export function FilterSelect(all: ComponentProps<typeof NativeSelect> & { readonly param: string }) {
  const { param, ...props } = all;
  const [read, change] = useParams();
  return (
    <NativeSelect
      value={read(param) ?? ''}
      onChange={({ currentTarget: { value } }) => change({ [param]: value })}
      {...props}
    />
  );
}

const DEBOUNCE_MS = 300;

/** Text input whose value is the query parameter `param`. Written after a pause, on blur and on Enter. */
export function FilterInput(all: ComponentProps<typeof TextInput> & { readonly param: string }) {
  const { param, ...props } = all;
  const [read, change] = useParams();
  const value = read(param) ?? '';
  const [typed, setTyped] = useState(value);
  const reported = useRef(value);
  if (reported.current !== value && typed.trim() === reported.current) {
    // Changed by navigation.
    reported.current = value;
    setTyped(value);
  }
  const report = (text: string): void => {
    const trimmed = text.trim();
    if (trimmed === reported.current) return;
    reported.current = trimmed;
    change({ [param]: trimmed });
  };
  const latestReport = useRef(report);
  latestReport.current = report;
  // Depends on the input alone: results re-render this component continuously.
  useEffect(() => {
    const timer = setTimeout(() => latestReport.current(typed), DEBOUNCE_MS);
    return () => clearTimeout(timer);
  }, [typed]);
  return (
    <TextInput
      {...props}
      value={typed}
      autoComplete="off"
      spellCheck={false}
      onChange={({ currentTarget }) => setTyped(currentTarget.value)}
      onBlur={() => report(typed)}
      onKeyDown={({ key }) => {
        if (key === 'Enter') report(typed);
      }}
    />
  );
}
