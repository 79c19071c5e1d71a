/** The Now page, with the checklist above its content until that is complete or dismissed. */
import { type ComponentType, useEffect, useState } from 'react';
import { PageSkeleton, showToast } from '../components.tsx';
import NowPage from '../now/NowPage.tsx';
import { useAccounts } from '../queries.ts';
import { useSession } from '../session.ts';
import { useParams } from '../urls.ts';
import type { ChecklistPanel } from './ChecklistPage.tsx';
import { useDeployment } from './deployment.ts';
import { setDismissed, useDismissed } from './dismissal.ts';
import { isComplete, isManaged, toSteps } from './steps.ts';

/** Renders nothing until it is known whether there is a checklist, so that the page does not move when it appears. */
export default function Home() {
  const { key, hasRole } = useSession();
  const [read] = useParams();
  const dismissed = useDismissed();
  const isOffered = hasRole('admin') && !dismissed && read('wall') === undefined;
  const accounts = useAccounts({ enabled: isOffered });
  const isNeeded = isOffered && accounts.data !== undefined && isManaged(accounts.data);
  const deployment = useDeployment({ enabled: isNeeded });
  const Panel = usePanel(isNeeded);
  const { data } = deployment;
  const steps = data ? toSteps(data.progress, key) : [];
  const isDone = isNeeded && data !== undefined && isComplete(steps);
  useEffect(() => {
    if (!isDone) return;
    setDismissed(true);
    showToast('The setup is complete.');
  }, [isDone]);
  const isLoading =
    (isOffered && isFirst(accounts)) || (isNeeded && (isFirst(deployment) || Panel === undefined));
  if (isLoading) return <PageSkeleton />;
  const isShown = isNeeded && !isDone && data !== undefined && isManaged(data.accounts, data.endpoints);
  return <NowPage>{isShown && Panel ? <Panel steps={steps} deployment={data} /> : null}</NowPage>;
}

/** Whether a query waits for its first response. */
const isFirst = (query: { readonly isPending: boolean; readonly failureCount: number }): boolean =>
  query.isPending && query.failureCount === 0;

/** Loads the code of the panel. `undefined`: not loaded yet. `null`: it cannot be loaded. */
function usePanel(isNeeded: boolean): ComponentType<Parameters<typeof ChecklistPanel>[0]> | null | undefined {
  const [panel, setPanel] = useState<{ readonly Panel: typeof ChecklistPanel | null }>();
  useEffect(() => {
    if (!isNeeded) return;
    import('./ChecklistPage.tsx').then(
      (module) => setPanel({ Panel: module.ChecklistPanel }),
      () => setPanel({ Panel: null }),
    );
  }, [isNeeded]);
  return panel?.Panel;
}
