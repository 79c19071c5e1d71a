/** Selection of rows in a list. */
import {
  type ChangeEvent,
  type KeyboardEvent,
  type MouseEvent,
  useCallback,
  useMemo,
  useRef,
  useState,
} from 'react';

/** Selected rows, by their keys. */
export interface Selection {
  readonly selected: ReadonlySet<string>;
  /** Whether all rows are selected, or some. */
  readonly all: boolean | 'some';
  selectAll(on: boolean): void;
  clear(): void;
  /** Attributes of the checkbox of a row. With Shift, a click or the space bar changes all rows since the last change. */
  checkbox(key: string): {
    readonly checked: boolean;
    readonly onClick: (event: MouseEvent) => void;
    readonly onKeyDown: (event: KeyboardEvent) => void;
    readonly onChange: (event: ChangeEvent<HTMLInputElement>) => void;
  };
}

/** Returns a selection of rows. Rows that are no longer listed are not selected. */
export function useSelection(listed: readonly string[]): Selection {
  // Lists are made anew with each rendering, mostly with the same keys.
  const text = JSON.stringify(listed);
  const keys = useMemo(() => JSON.parse(text) as string[], [text]);
  const [chosen, setChosen] = useState<ReadonlySet<string>>(new Set());
  const last = useRef<string | null>(null);
  const isRange = useRef(false);
  const selected = useMemo(() => new Set(keys.filter((key) => chosen.has(key))), [keys, chosen]);
  const change = useCallback(
    (key: string, on: boolean) => {
      const [from, to] = [keys.indexOf(last.current ?? key), keys.indexOf(key)];
      const isKnown = isRange.current && from >= 0 && to >= 0;
      const range = isKnown ? keys.slice(Math.min(from, to), Math.max(from, to) + 1) : [key];
      last.current = key;
      isRange.current = false;
      setChosen((before) => {
        const after = new Set(before);
        for (const one of range) {
          if (on) after.add(one);
          else after.delete(one);
        }
        return after;
      });
    },
    [keys],
  );
  return {
    selected,
    all: selected.size === 0 ? false : selected.size === keys.length ? true : 'some',
    selectAll: (on) => setChosen(new Set(on ? keys : [])),
    clear: () => setChosen(new Set()),
    checkbox: (key) => ({
      checked: selected.has(key),
      onClick: ({ shiftKey }) => {
        isRange.current = shiftKey;
      },
      onKeyDown: (event) => {
        if (event.key !== ' ' || !event.shiftKey) return;
        event.preventDefault();
        isRange.current = true;
        change(key, !selected.has(key));
      },
      onChange: ({ currentTarget }) => change(key, currentTarget.checked),
    }),
  };
}
