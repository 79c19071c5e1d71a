/** One tab stop for a list or table: arrow keys move between its controls. */
import { useCallback } from 'react';

const CONTROLS = 'a[href], button, input, select, textarea, summary';
/** Controls in which arrow keys have another meaning. */
const TEXT = 'input:not([type="checkbox"]), select, textarea';

/**
 * Returns a ref for the element that contains the rows. Up and Down move to the control at the same place of another row, Left and
 * Right to another control of the row, Home and End to the first and last row. Controls with a `tabIndex` of their own are left out.
 */
export function useRovingFocus(rowSelector: string): (root: HTMLElement | null) => (() => void) | undefined {
  return useCallback(
    (root) => {
      if (!root) return undefined;
      let current: HTMLElement | undefined;
      const listControls = (within: Element): HTMLElement[] =>
        [...within.querySelectorAll<HTMLElement>(CONTROLS)].filter(
          (one) => !one.matches(':disabled') && (one.tabIndex >= 0 || one.dataset.roving !== undefined),
        );
      const setStop = (): void => {
        const controls = listControls(root);
        if (current === undefined || !controls.includes(current)) current = controls[0];
        for (const one of controls) {
          one.dataset.roving = '';
          one.tabIndex = one === current ? 0 : -1;
        }
      };
      const onFocus = ({ target }: FocusEvent): void => {
        if (!(target instanceof HTMLElement) || target.dataset.roving === undefined) return;
        current = target;
        setStop();
      };
      const onKey = (event: KeyboardEvent): void => {
        const { target, key, altKey, ctrlKey, metaKey, shiftKey, defaultPrevented } = event;
        if (defaultPrevented || altKey || ctrlKey || metaKey || shiftKey) return;
        if (!(target instanceof HTMLElement) || target.dataset.roving === undefined || target.matches(TEXT))
          return;
        const rows = [...root.querySelectorAll(rowSelector)]
          .map(listControls)
          .filter((controls) => controls.length > 0);
        const row = rows.findIndex((controls) => controls.includes(target));
        const place = rows[row]?.indexOf(target) ?? 0;
        const moves: Readonly<Record<string, readonly [row: number, place: number]>> = {
          ArrowDown: [row + 1, place],
          ArrowUp: [row - 1, place],
          ArrowRight: [row, place + 1],
          ArrowLeft: [row, place - 1],
          Home: [0, place],
          End: [rows.length - 1, place],
        };
        const move = moves[key];
        if (!move || row < 0) return;
        event.preventDefault();
        const next = rows[move[0]];
        const to =
          key.endsWith('Left') || key.endsWith('Right') ? next?.[move[1]] : (next?.[move[1]] ?? next?.at(-1));
        to?.focus();
      };
      setStop();
      const observer = new MutationObserver(setStop);
      observer.observe(root, { childList: true, subtree: true, attributeFilter: ['disabled', 'href'] });
      root.addEventListener('focusin', onFocus);
      root.addEventListener('keydown', onKey);
      return () => {
        observer.disconnect();
        root.removeEventListener('focusin', onFocus);
        root.removeEventListener('keydown', onKey);
      };
    },
    [rowSelector],
  );
}
