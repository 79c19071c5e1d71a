/** Customer notifications about a job. */
import { Button, Modal } from '@mantine/core';
import { useState } from 'react';
import type { Message } from '../../../client/index.ts';
import { messageReasons } from '../../../shared/notifications/types.ts';
import { Badge, DescriptionList, Loaded, Panel } from '../components.tsx';
import { LoadMore, usePages } from '../DataTable.tsx';
import { loadLater } from '../load-later.tsx';
import { channelNames, formatMessageKind, stateNames } from '../messages.ts';
import { useApi } from '../queries.ts';
import { useSession } from '../session.ts';
import { RelativeTime, Timestamp } from '../times.tsx';
import ui from '../ui.module.css';
import css from './Job.module.css';
import { JOB, type JobLocation, toPath } from './JobTimeline.tsx';

/** Loaded when it is first opened. */
const NotifyDialog = loadLater(() => import('../now/NotifyDialog.tsx'));

/** Sent and upcoming notifications about the job, and a note to its customer. */
export function Messages(props: { readonly location: JobLocation; readonly status: string | null }) {
  const { location, status } = props;
  const { account, jobNumber } = location;
  const api = useApi();
  const { hasRole } = useSession();
  const [opened, setOpened] = useState<Message | null>(null);
  const [isNotifying, setIsNotifying] = useState(false);
  const query = usePages({
    queryKey: ['jobs', 'messages', account, jobNumber],
    fetchPage: (after, signal) => {
      const params = { path: toPath(location), query: { limit: 20, after } };
      return api.get(`${JOB}/messages`, { params, signal });
    },
    toRows: (page) => page.messages,
    refetchMs: 20_000,
    refetchAll: true,
  });
  const upcoming = query.pages?.[0]?.upcoming ?? [];
  return (
    <Panel
      title="Customer notifications"
      aside={
        hasRole('operate') ? (
          <Button size="compact-xs" onClick={() => setIsNotifying(true)}>
            Notify
          </Button>
        ) : undefined
      }
    >
      {isNotifying ? (
        <NotifyDialog
          {...{ account, status }}
          jobNumber={String(jobNumber)}
          close={() => setIsNotifying(false)}
        />
      ) : null}
      <Loaded query={query}>
        {(messages) =>
          messages.length === 0 && upcoming.length === 0 ? (
            <p className={ui.hint}>No notifications yet.</p>
          ) : (
            <ul className={`${ui.list} ${css.items}`}>
              {upcoming.map(({ kind, dueAt, jobs }) => (
                <li key={`${kind} ${dueAt}`} className={css.message}>
                  <span>
                    <strong>{formatMessageKind(kind)}</strong> <Badge>Scheduled</Badge>
                  </span>
                  <span className={ui.hint}>
                    <RelativeTime isPlanned at={dueAt} />, for{' '}
                    {jobs.length === 1 ? 'this job' : `${jobs.length} jobs`}
                  </span>
                </li>
              ))}
              {messages.map((message) => (
                <MessageRow
                  key={message.id + (message.to?.address ?? '')}
                  message={message}
                  open={setOpened}
                />
              ))}
            </ul>
          )
        }
      </Loaded>
      <LoadMore query={query} label="Earlier messages" />
      <Modal
        opened={opened !== null}
        onClose={() => setOpened(null)}
        title={opened ? `${formatMessageKind(opened.kind)}: text` : ''}
        size="lg"
      >
        {opened ? <MessageText message={opened} /> : null}
      </Modal>
    </Panel>
  );
}

function MessageRow(props: { readonly message: Message; readonly open: (message: Message) => void }) {
  const { message, open } = props;
  const { kind, channel, to, state, reason, detail, sentAt, dueAt, createdAt, text } = message;
  const [label, tone] = stateNames[state];
  return (
    <li className={css.message}>
      <span>
        <strong>{formatMessageKind(kind)}</strong> <Badge tone={tone}>{label}</Badge>
      </span>
      <span className={ui.hint}>
        {to === null ? (
          'No recipient'
        ) : (
          <>
            {channel ? `${channelNames[channel]} to ` : ''}
            <bdi>{to.address}</bdi>
          </>
        )}
        , <Timestamp at={sentAt ?? dueAt ?? createdAt} />
      </span>
      {reason === null ? null : (
        <span className={ui.hint}>
          {messageReasons[reason]} {detail}
        </span>
      )}
      {text === null ? null : (
        <Button size="compact-xs" onClick={() => open(message)}>
          Show text
        </Button>
      )}
    </li>
  );
}

function MessageText({ message }: { readonly message: Message }) {
  const { subject, text, to } = message;
  return (
    <div className={ui.stack}>
      <DescriptionList
        rows={{
          To: to === null ? undefined : <bdi>{[to.name, to.address].filter(Boolean).join(', ')}</bdi>,
          Subject: subject === null ? undefined : <bdi>{subject}</bdi>,
        }}
      />
      <pre className={ui.verbatim}>{text}</pre>
    </div>
  );
}
