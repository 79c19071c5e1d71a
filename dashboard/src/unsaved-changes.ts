/** Asks before a page is left on which something would be lost. */
import { useEffect, useRef } from 'react';
import { navigate } from 'wouter/use-browser-location';
import { useConfirm } from './components.tsx';

/** What would be lost. */
export interface LeaveWarning {
  readonly title: string;
  readonly body: string;
}

/** What stands against going back, the last one first. */
const guards: ((event: PopStateEvent) => void)[] = [];
// Listened to from the beginning, and so before the router hears of it: `main.tsx` sees to that.
window.addEventListener('popstate', (event) => guards.at(-1)?.(event));

const UNSAVED_CHANGES: LeaveWarning = {
  title: 'Leave without saving?',
  body: 'What you typed is not saved, and would be lost.',
};

/**
 * As long as `active`: whoever follows a link, goes back or closes the tab is asked first. What the page itself does, such as
 * going on to what was made, is not asked about.
 */
export function useLeaveGuard(active: boolean, loss: LeaveWarning = UNSAVED_CHANGES): void {
  const ask = useConfirm();
  const asking = useRef({ ask, loss });
  asking.current = { ask, loss };
  useEffect(() => {
    if (!active) return;
    const here = location.href;
    const question = (go: () => void): void => {
      const { title, body } = asking.current.loss;
      const act = async (): Promise<void> => {
        stop();
        go();
      };
      asking.current.ask({ title, body, verb: 'Leave', destructive: true, onConfirm: act });
    };
    const onClick = (event: MouseEvent): void => {
      const to = findInternalTarget(event, here);
      if (to === undefined) return;
      event.preventDefault();
      event.stopPropagation();
      question(() => navigate(to));
    };
    // The browser has gone back already: the address is put there again until there is an answer.
    const onPop = (event: PopStateEvent): void => {
      event.stopImmediatePropagation();
      history.pushState(null, '', here);
      question(() => history.back());
    };
    const onUnload = (event: BeforeUnloadEvent): void => event.preventDefault();
    const stop = (): void => {
      document.removeEventListener('click', onClick, true);
      if (guards.includes(onPop)) guards.splice(guards.indexOf(onPop), 1);
      window.removeEventListener('beforeunload', onUnload);
    };
    document.addEventListener('click', onClick, true);
    guards.push(onPop);
    window.addEventListener('beforeunload', onUnload);
    return stop;
  }, [active]);
}

/** Where a click on a link leads within the page; `undefined` where it leaves this place as it is. */
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
