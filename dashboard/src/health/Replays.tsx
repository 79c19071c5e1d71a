/** Stretches of the logs that are sent to an endpoint once more: started here, followed to their end, or ended. */
import { Button, Modal } from '@mantine/core';
import { keepPreviousData, useQuery, useQueryClient } from '@tanstack/react-query';
import { lazy, Suspense, useState } from 'react';
import { Badge, Empty, Failure, Loading, Panel, showToast, useConfirm } from '../components.tsx';
import { useApi } from '../queries.ts';
import { useSession } from '../session.ts';
import { RelativeTime, Timestamp } from '../times.tsx';
import { Rows, useActionRunner } from './components.tsx';
import css from './Health.module.css';
import { endpointPath } from './queries.ts';
import {
  type Endpoint,
  formatReplayProgress,
  getSinkName,
  isRunning,
  REPLAY_STATES,
  type ReplayRun,
} from './status.ts';

// Brings the schemas along, which nobody needs who only looks.
const ReplayForm = lazy(() => import('./ReplayForm.tsx'));

const RUNNING_MS = 1_000;
const QUIET_MS = 15_000;

export function Replays({ endpoint }: { readonly endpoint: Endpoint }) {
  const { region, id } = endpoint;
  const api = useApi();
  const client = useQueryClient();
  const ask = useConfirm();
  const { may } = useSession();
  const queryKey = ['endpoints', 'replays', region, id];
  const acts = useActionRunner([queryKey]);
  const [asking, setAsking] = useState(false);
  const { data, error, refetch } = useQuery({
    queryKey,
    queryFn: async ({ signal }) =>
      (await api.get<{ replays: ReplayRun[] }>(endpointPath(id, '/replays'), { query: { region }, signal }))
        .replays,
    refetchInterval: ({ state }) => (state.data?.some(isRunning) ? RUNNING_MS : QUIET_MS),
    placeholderData: keepPreviousData,
  });
  const cancel = (replay: ReplayRun) =>
    ask({
      title: 'End this replay?',
      body: <p>What is under way arrives, nothing else of it is sent. It can’t be taken up again.</p>,
      verb: 'End it',
      destructive: true,
      onConfirm: () =>
        acts.runConfirmed(
          () =>
            api.post(endpointPath(id, `/replays/${encodeURIComponent(replay.id)}/cancel`), {
              query: { region },
            }),
          'The replay is ended.',
        ),
    });
  return (
    <Panel
      title="Replays"
      aside={
        may('operate') ? (
          <Button size="xs" variant="default" onClick={() => setAsking(true)}>
            Send events again
          </Button>
        ) : undefined
      }
    >
      {error && !data ? <Failure error={error} again={refetch} /> : null}
      {data?.length === 0 ? <Empty>Nothing was sent again lately.</Empty> : null}
      {data && data.length > 0 ? (
        <Rows
          label="Replays"
          rows={data}
          keyOf={(replay) => replay.id}
          columns={[
            { name: 'Began', render: ({ startedAt }) => <Timestamp at={startedAt} /> },
            {
              name: 'State',
              render: ({ state }) => (
                <Badge tone={REPLAY_STATES[state].tone}>{REPLAY_STATES[state].word}</Badge>
              ),
            },
            { name: 'How far', wide: true, render: (replay) => <Progress replay={replay} /> },
            { name: 'Accounts', render: ({ accounts }) => accountsText(accounts) },
            {
              name: 'Ended',
              render: ({ finishedAt }) => (finishedAt === null ? '–' : <RelativeTime at={finishedAt} />),
            },
            {
              name: 'What can be done',
              hiddenName: true,
              render: (replay) =>
                isRunning(replay) && may('operate') ? (
                  <Button size="compact-xs" variant="default" onClick={() => cancel(replay)}>
                    End
                  </Button>
                ) : null,
            },
          ]}
        />
      ) : null}
      <Modal
        opened={asking}
        onClose={() => setAsking(false)}
        title={`Send events to ${getSinkName(endpoint.id)} again`}
        lockScroll={false}
        centered
        closeButtonProps={{ 'aria-label': 'Close' }}
      >
        <Suspense fallback={<Loading />}>
          <ReplayForm
            endpoint={endpoint}
            onStarted={async () => {
              await client.invalidateQueries({ queryKey });
              setAsking(false);
              showToast('The replay has begun.');
            }}
          />
        </Suspense>
      </Modal>
    </Panel>
  );
}

function Progress({ replay }: { readonly replay: ReplayRun }) {
  const { total, done, truncatedAccounts } = replay;
  return (
    <>
      <progress className={css.progress} value={done} max={Math.max(1, total)} aria-label="How far it is" />
      <span className={css.small}>
        {formatReplayProgress(replay)}
        {truncatedAccounts.length > 0
          ? `; begins later than asked for in ${accountsText(truncatedAccounts)}, for events are kept only so long`
          : ''}
      </span>
    </>
  );
}

function accountsText(accounts: readonly string[]): string {
  return accounts.length > 3 ? `${accounts.length} accounts` : accounts.join(', ');
}
