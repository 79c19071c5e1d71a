/** Replays of an endpoint: start, progress, cancel. */
import { Button } from '@mantine/core';
import { keepPreviousData, useQuery, useQueryClient } from '@tanstack/react-query';
import { useState } from 'react';
import { useActions } from '../actions.ts';
import { withEndpoint } from '../api.ts';
import { Panel, showToast } from '../components.tsx';
import { QueryTable } from '../DataTable.tsx';
import { InputDialog } from '../dialogs.tsx';
import { loadLater } from '../load-later.tsx';
import { useApi } from '../queries.ts';
import { useSession } from '../session.ts';
import { RelativeTime, Timestamp } from '../times.tsx';
import ui from '../ui.module.css';
import { ActionButton, StateBadge } from './components.tsx';
import {
  type Endpoint,
  formatReplayProgress,
  getSinkName,
  isRunning,
  REPLAY_STATES,
  type ReplayRun,
} from './status.ts';

// Loaded on demand, because it includes the schemas.
const ReplayForm = loadLater(() => import('./ReplayForm.tsx'));

const RUNNING_MS = 1_000;
const QUIET_MS = 15_000;

export function Replays({ endpoint }: { readonly endpoint: Endpoint }) {
  const { region, id } = endpoint;
  const api = useApi();
  const client = useQueryClient();
  const { hasRole } = useSession();
  const queryKey = ['endpoints', 'replays', region, id];
  const runner = useActions([queryKey]);
  const [isFormOpen, setFormOpen] = useState(false);
  const replays = useQuery({
    queryKey,
    queryFn: async ({ signal }) =>
      (await api.get('/v1/endpoints/{id}/replays', { ...withEndpoint(endpoint), signal })).replays,
    refetchInterval: ({ state }) => (state.data?.some(isRunning) ? RUNNING_MS : QUIET_MS),
    placeholderData: keepPreviousData,
  });
  const cancel = (replay: ReplayRun) =>
    runner.confirm({
      title: 'Stop this replay?',
      body: 'Deliveries in progress are completed. No further events are sent. A stopped replay cannot be resumed.',
      verb: 'Stop replay',
      destructive: true,
      act: () =>
        api.post('/v1/endpoints/{id}/replays/{replay}/cancel', {
          params: { path: { id, replay: replay.id }, query: { region } },
        }),
      done: 'The replay is stopped.',
    });
  return (
    <Panel
      title="Replays"
      aside={
        hasRole('operate') ? (
          <ActionButton runner={runner} onClick={() => setFormOpen(true)}>
            Start replay
          </ActionButton>
        ) : undefined
      }
    >
      <QueryTable
        label="Replays"
        query={replays}
        empty="No recent replays. A replay sends recorded events to this endpoint again."
        getKey={(replay) => replay.id}
        columns={{
          Started: { isTime: true, render: ({ startedAt }) => <Timestamp at={startedAt} /> },
          State: ({ state }) => <StateBadge state={REPLAY_STATES[state]} />,
          Progress: { wide: true, render: (replay) => <Progress replay={replay} /> },
          Accounts: ({ accounts }) => formatAccounts(accounts),
          Finished: ({ finishedAt }) => <RelativeTime at={finishedAt} />,
          Actions: {
            hiddenName: true,
            render: (replay) =>
              isRunning(replay) && hasRole('operate') ? (
                <Button size="compact-xs" onClick={() => cancel(replay)}>
                  Stop
                </Button>
              ) : null,
          },
        }}
      />
      <InputDialog
        opened={isFormOpen}
        onClose={() => setFormOpen(false)}
        title={`Replay events to ${getSinkName(endpoint.id)}`}
      >
        <ReplayForm
          endpoint={endpoint}
          onStarted={async () => {
            await client.invalidateQueries({ queryKey });
            setFormOpen(false);
            showToast('The replay is started.');
          }}
        />
      </InputDialog>
    </Panel>
  );
}

function Progress({ replay }: { readonly replay: ReplayRun }) {
  const { total, done, truncatedAccounts } = replay;
  return (
    <>
      <progress className={ui.progress} value={done} max={Math.max(1, total)} aria-label="Progress" />
      <span className={ui.hint}>
        {formatReplayProgress(replay)}
        {truncatedAccounts.length > 0
          ? `; starts later than requested in ${formatAccounts(truncatedAccounts)}, because older events have expired`
          : ''}
      </span>
    </>
  );
}

function formatAccounts(accounts: readonly string[]): string {
  return accounts.length > 3 ? `${accounts.length} accounts` : accounts.join(', ');
}
