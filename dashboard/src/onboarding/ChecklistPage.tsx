/** The page that always shows the checklist, and the panel of the Now page. */
import { Button } from '@mantine/core';
import { Loaded, Page, Panel } from '../components.tsx';
import { useSession } from '../session.ts';
import ui from '../ui.module.css';
import { Checklist } from './Checklist.tsx';
import { type Deployment, useDeployment } from './deployment.ts';
import { setDismissed } from './dismissal.ts';
import { type Step, toSteps } from './steps.ts';

export default function ChecklistPage() {
  const { key } = useSession();
  return (
    <Page title="Getting started">
      <Loaded query={useDeployment()}>
        {(deployment) => {
          const steps = toSteps(deployment.progress, key);
          return (
            <Panel title="Setup of this deployment" aside={<Count steps={steps} />}>
              <Checklist steps={steps} deployment={deployment} />
            </Panel>
          );
        }}
      </Loaded>
    </Page>
  );
}

/** The checklist above the content of the Now page. */
export function ChecklistPanel(props: { readonly steps: readonly Step[]; readonly deployment: Deployment }) {
  const { steps, deployment } = props;
  return (
    <Panel title="Getting started" aside={<Count steps={steps} />}>
      <Checklist steps={steps} deployment={deployment} />
      <div className={ui.actions}>
        <Button size="xs" onClick={() => setDismissed(true)}>
          Dismiss
        </Button>
        <span className={ui.hint}>To open it again, choose Getting started in the user menu.</span>
      </div>
    </Panel>
  );
}

function Count({ steps }: { readonly steps: readonly Step[] }) {
  const done = steps.filter(({ state }) => state === 'done').length;
  return (
    <span role="status">
      {done} of {steps.length} done
    </span>
  );
}
