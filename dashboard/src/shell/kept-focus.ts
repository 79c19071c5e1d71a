/** Keeps the focus near a control that disappears. */
import { useEffect } from 'react';

/**
 * If a control within `main` is removed while it has the focus, or while a dialog that it opened has it, moves the focus to the section
 * of the control. Otherwise, keyboard users would start again at the top of the page. The queue moves the focus itself.
 */
export function useKeptFocus(): void {
  useEffect(() => {
    let control: Element | null = null;
    let section: HTMLElement | null = null;
    const onFocusIn = ({ target }: FocusEvent): void => {
      if (!(target instanceof Element) || target.closest('main') === null) return;
      control = target.closest('[data-item]') ? null : target;
      section = target.closest('section');
    };
    const onFocusOut = ({ target, relatedTarget }: FocusEvent): void => {
      if (target !== control || relatedTarget !== null) return;
      // Browsers fire the event before they remove the control.
      queueMicrotask(() => {
        if (control?.isConnected) control = null;
      });
    };
    const observer = new MutationObserver(() => {
      if (control === null || control.isConnected || document.activeElement !== document.body) return;
      control = null;
      const place = section?.isConnected ? section : document.querySelector('main');
      place?.setAttribute('tabindex', '-1');
      place?.focus({ preventScroll: true });
    });
    observer.observe(document.body, { childList: true, subtree: true });
    document.addEventListener('focusin', onFocusIn);
    document.addEventListener('focusout', onFocusOut);
    return () => {
      observer.disconnect();
      document.removeEventListener('focusin', onFocusIn);
      document.removeEventListener('focusout', onFocusOut);
    };
  }, []);
}
