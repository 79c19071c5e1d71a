/** Menu of an item of the attention queue: snooze, acknowledge, assign, note, history. */
import { EllipsisHorizontalIcon } from '@heroicons/react/16/solid';
import { ActionIcon, Button, Group, Menu, Modal, TextInput } from '@mantine/core';
import { useQuery, useQueryClient } from '@tanstack/react-query';
import { type FormEvent, useState } from 'react';
import type { ActionRunner } from '../actions.ts';
import { withId } from '../api.ts';
import { ActionMenu, Failure, Loaded, showToast } from '../components.tsx';
import { InputDialog } from '../dialogs.tsx';
import { useApi } from '../queries.ts';
import { useSession } from '../session.ts';
import { formatKeyId } from '../texts.ts';
import { formatHour, Timestamp } from '../times.tsx';
import ui from '../ui.module.css';
import { useLeaveGuard } from '../unsaved-changes.ts';
import { tomorrowAt } from '../zone.ts';
import { getZone } from '../zone-choice.ts';
import { type AttentionItem, explainRank } from './queue.ts';

const HOUR_MS = 3_600_000;
/** Choices of times until which an item is hidden. */
export const SNOOZES = [
  { label: 'Snooze for 1 hour', until: () => Date.now() + HOUR_MS },
  { label: `Snooze until tomorrow, ${formatHour(8)}`, until: () => tomorrowAt(8, Date.now(), getZone()) },
  { label: 'Snooze for a week', until: () => Date.now() + 7 * 24 * HOUR_MS },
] as const;

/** A dialog of the menu. */
export type TriageDialog = 'assign' | 'note' | 'history';

export function TriageMenu(props: {
  readonly item: AttentionItem;
  readonly runner: ActionRunner;
  readonly tabIndex: 0 | -1;
  /** Name of the open dialog. */
  readonly dialog: string | null;
  readonly setDialog: (dialog: TriageDialog | null) => void;
  /** Actions on the subject that have no button. */
  readonly others: readonly { readonly label: string; readonly perform: () => void }[];
}) {
  const { item, runner, tabIndex, dialog, setDialog, others } = props;
  const api = useApi();
  const queries = useQueryClient();
  const { hasRole } = useSession();
  const at = withId(item.id);
  const { name } = item.subject;
  const run = (act: () => Promise<unknown>, done: string) => void runner.run(item.id, act, done);
  const save = async (request: Promise<unknown>, done: string): Promise<void> => {
    await request;
    showToast(done);
    void queries.invalidateQueries({ queryKey: ['attention'] });
  };
  const [change, path, changed] =
    item.state === 'open'
      ? (['Acknowledge', 'acknowledge', 'Acknowledged: hidden until its cause changes.'] as const)
      : (['Reopen', 'reopen', 'The item is open again.'] as const);
  const entries = [
    ...others,
    ...(hasRole('operate')
      ? [
          {
            label: change,
            perform: () => run(() => api.post(`/v1/attention/{id}/${path}`, { ...at, body: {} }), changed),
          },
          ...SNOOZES.map(({ label, until }) => ({
            label,
            perform: () => {
              const body = { until: new Date(until()).toISOString() };
              run(() => api.post('/v1/attention/{id}/snooze', { ...at, body }), 'Snoozed.');
            },
          })),
          { label: 'Assign…', perform: () => setDialog('assign') },
          { label: 'Note…', perform: () => setDialog('note') },
        ]
      : []),
    { label: 'History', perform: () => setDialog('history') },
  ];
  return (
    <>
      <ActionMenu
        target={(ref) => (
          <ActionIcon
            ref={ref}
            variant="default"
            size="sm"
            tabIndex={tabIndex}
            aria-label={`More for ${name}`}
            loading={runner.busy === item.id}
          >
            <EllipsisHorizontalIcon width={14} aria-hidden />
          </ActionIcon>
        )}
      >
        {entries.map(({ label, perform }) => (
          <Menu.Item key={label} onClick={perform}>
            {label}
          </Menu.Item>
        ))}
      </ActionMenu>
      <TextDialog
        opened={dialog === 'assign'}
        title={`Assign ${name}`}
        label="Name"
        value={item.assignee ?? ''}
        maxLength={100}
        close={() => setDialog(null)}
        save={(text) =>
          save(
            api.post('/v1/attention/{id}/assign', { ...at, body: { assignee: text === '' ? null : text } }),
            text === '' ? 'Assignee removed.' : `Assigned to ${text}.`,
          )
        }
      />
      <TextDialog
        opened={dialog === 'note'}
        title={`Note for ${name}`}
        label="Note"
        value={item.note ?? ''}
        maxLength={500}
        close={() => setDialog(null)}
        save={(text) =>
          save(
            api.post('/v1/attention/{id}/note', { ...at, body: { note: text === '' ? null : text } }),
            'The note is saved.',
          )
        }
      />
      <Modal opened={dialog === 'history'} onClose={() => setDialog(null)} title={`History of ${name}`}>
        <div className={ui.stack}>
          <p className={ui.hint}>{explainRank(item).replaceAll('\n', '; ')}</p>
          <History id={item.id} />
        </div>
      </Modal>
    </>
  );
}

/** A dialog with one text. An empty text removes the value. The dialog stays open and shows the error if saving fails. */
export function TextDialog(props: {
  readonly opened: boolean;
  readonly title: string;
  readonly label: string;
  readonly value: string;
  readonly maxLength: number;
  readonly close: () => void;
  readonly save: (text: string) => Promise<void> | void;
}) {
  const { opened, title, close } = props;
  return (
    <InputDialog opened={opened} onClose={close} title={title}>
      <TextForm {...props} />
    </InputDialog>
  );
}

function TextForm({ label, value, maxLength, close, save }: Parameters<typeof TextDialog>[0]) {
  const [text, setText] = useState(value);
  const [isBusy, setIsBusy] = useState(false);
  const [failure, setFailure] = useState<unknown>(null);
  useLeaveGuard(text !== value && !isBusy);
  const submit = async (event: FormEvent): Promise<void> => {
    event.preventDefault();
    setIsBusy(true);
    setFailure(null);
    try {
      await save(text.trim());
      close();
    } catch (cause) {
      setFailure(cause);
      setIsBusy(false);
    }
  };
  return (
    <form onSubmit={(event) => void submit(event)} className={ui.fields}>
      <TextInput
        label={label}
        value={text}
        maxLength={maxLength}
        onChange={({ currentTarget }) => setText(currentTarget.value)}
        autoComplete="off"
        data-autofocus
      />
      {failure ? <Failure error={failure} /> : null}
      <Group justify="flex-end">
        <Button onClick={close}>Cancel</Button>
        <Button variant="filled" type="submit" loading={isBusy}>
          Save
        </Button>
      </Group>
    </form>
  );
}

/** Returns what a user did. Enabling a failing endpoint retries its deliveries at once. */
function describeAction(action: string, kind: string): string {
  return action === 'enable' && kind !== 'endpoint_disabled' ? 'retry now' : action.replaceAll('_', ' ');
}

function History({ id }: { readonly id: string }) {
  const api = useApi();
  const query = useQuery({
    queryKey: ['attention', 'history', id],
    queryFn: ({ signal }) => api.get('/v1/attention/{id}/history', { ...withId(id), signal }),
  });
  return (
    <Loaded query={query}>
      {({ entries }) =>
        entries.length === 0 ? (
          <p className={ui.hint}>This item was not changed.</p>
        ) : (
          <ul className={ui.list}>
            {entries.map(({ at, by, action, until, assignee, note, kind, cause }) => (
              <li key={at} title={cause}>
                <Timestamp at={at} /> {by.name ?? formatKeyId(by.id)}: {describeAction(action, kind)}
                {until === null ? '' : ' until '}
                {until === null ? null : <Timestamp at={until} />}
                {action === 'assign' ? ` to ${assignee ?? 'no one'}` : ''}
                {note === null ? '' : `: ${note}`}
              </li>
            ))}
          </ul>
        )
      }
    </Loaded>
  );
}
