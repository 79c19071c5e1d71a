/** Asks for confirmation before the user leaves a page with unsaved changes. */
import { useEffect, useRef } from 'react';
import { navigate } from 'wouter/use-browser-location';
import { useConfirm } from './components.tsx';

/** Title and text of the confirmation. */
export interface LeaveWarning {
  readonly title: string;
  readonly body: string;
}

interface Guard {
  onPop(event: PopStateEvent): void;
  /** Calls `leave` after the user has confirmed it, for all guards. */
  confirmThen(leave: () => void): void;
  stop(): void;
}

/** The active guards. The last one applies. */
const guards: Guard[] = [];
// `main.tsx` imports this module before the router, so that this listener runs first.
window.addEventListener('popstate', (event) => guards.at(-1)?.onPop(event));

/** Leaves the page by a command of the user other than a link; after a confirmation if the page has unsaved changes. */
export function leavePage(leave: () => void): void {
  const guard = guards.at(-1);
  if (guard) guard.confirmThen(leave);
  else leave();
}

const UNSAVED_CHANGES: LeaveWarning = {
  title: 'Leave without saving?',
  body: 'Your changes are not saved and will be lost.',
};

/**
 * While `active`, following a link, going back, {@link leavePage} and closing the tab require confirmation. Navigation by the page itself, such as to a
 * created resource, does not.
 */
export function useLeaveGuard(active: boolean, warning: LeaveWarning = UNSAVED_CHANGES): void {
  const confirm = useConfirm();
  const latest = useRef({ confirm, warning });
  latest.current = { confirm, warning };
  useEffect(() => {
    if (!active) return;
    const here = location.href;
    const confirmThen = (leave: () => void): void => {
      const { confirm, warning } = latest.current;
      const onConfirm = async (): Promise<void> => {
        for (const one of [...guards]) one.stop();
        leave();
      };
      confirm({ ...warning, verb: 'Leave', destructive: true, onConfirm });
    };
    const onClick = (event: MouseEvent): void => {
      const to = guards.at(-1) === guard ? findInternalTarget(event, here) : undefined;
      if (to === undefined) return;
      event.preventDefault();
      // The API reference is no page of the dashboard.
      const leave = (): void => (to.startsWith('/docs') ? location.assign(to) : navigate(to));
      // A menu that contains the link closes before the dialog opens.
      setTimeout(() => confirmThen(leave));
    };
    // The browser has already gone back: restore the address until the user answers.
    const onPop = (event: PopStateEvent): void => {
      event.stopImmediatePropagation();
      history.pushState(null, '', here);
      confirmThen(() => history.back());
    };
    const onUnload = (event: BeforeUnloadEvent): void => event.preventDefault();
    const stop = (): void => {
      document.removeEventListener('click', onClick, true);
      if (guards.includes(guard)) guards.splice(guards.indexOf(guard), 1);
      window.removeEventListener('beforeunload', onUnload);
    };
    const guard: Guard = { onPop, confirmThen, stop };
    document.addEventListener('click', onClick, true);
    guards.push(guard);
    window.addEventListener('beforeunload', onUnload);
    return stop;
  }, [active]);
}

/** Returns the target of a click on a link within the dashboard. `undefined`: the click does not leave the page. */
function findInternalTarget(event: MouseEvent, here: string): string | undefined {
  if (event.button !== 0 || event.metaKey || event.ctrlKey || event.shiftKey || event.altKey)
    return undefined;
  const link = event.target instanceof Element ? event.target.closest('a[href]') : null;
  if (!(link instanceof HTMLAnchorElement) || link.target === '_blank' || link.download !== '')
    return undefined;
  const to = new URL(link.href);
  const from = new URL(here);
  const isHere = to.pathname === from.pathname && to.search === from.search;
  if (to.origin !== from.origin || isHere) return undefined;
  return `${to.pathname}${to.search}${to.hash}`;
}
