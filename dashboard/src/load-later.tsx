/** Components whose code is loaded when they are first shown. */
import { type ComponentType, type FunctionComponent, type ReactNode, useEffect, useState } from 'react';
import { Loading } from './components.tsx';

/**
 * Returns a component that shows `loading` until `load` has loaded it, or its module. If that fails, rendering throws the error, and the next
 * rendering after an error boundary tries again. Used instead of `lazy` and `Suspense` of React: they show the component no earlier
 * than 300 ms after the fallback.
 */
export function loadLater<P extends object>(
  load: () => Promise<ComponentType<P> | { readonly default: ComponentType<P> }>,
  loading: ReactNode = <Loading />,
): FunctionComponent<P> {
  let loaded: ComponentType<P> | undefined;
  return function Later(props: P) {
    const [Component, setComponent] = useState(() => loaded);
    const [failure, setFailure] = useState<{ readonly cause: unknown }>();
    useEffect(() => {
      if (loaded) return setComponent(() => loaded);
      let isShown = true;
      load().then(
        (module) => {
          loaded = 'default' in module ? module.default : module;
          if (isShown) setComponent(() => loaded);
        },
        (cause: unknown) => {
          if (isShown) setFailure({ cause });
        },
      );
      return () => {
        isShown = false;
      };
    }, []);
    if (failure) throw failure.cause;
    return Component ? <Component {...props} /> : loading;
  };
}
