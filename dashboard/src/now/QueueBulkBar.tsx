/** Acknowledge, snooze and assign several items of the attention queue. */
import { Button, Menu } from '@mantine/core';
import { useState } from 'react';
import { withId } from '../api.ts';
import { type BulkAction, runEach } from '../bulk/actions.ts';
import BulkBar from '../bulk/BulkBar.tsx';
import type { Selection } from '../bulk/selection.ts';
import { ActionMenu } from '../components.tsx';
import { useApi } from '../queries.ts';
import type { AttentionItem } from './queue.ts';
import { SNOOZES, TextDialog } from './TriageMenu.tsx';

const toName = ({ subject, account }: AttentionItem): string =>
  account === null || account === subject.id ? subject.name : `${subject.name} (${account})`;

export default function QueueBulkBar(props: {
  readonly items: readonly AttentionItem[];
  readonly selection: Selection;
}) {
  const { items, selection } = props;
  const api = useApi();
  const [assigns, setAssigns] = useState(false);
  const each = (
    path: 'acknowledge' | 'snooze' | 'reopen' | 'assign',
    toBody: () => { until?: string; assignee?: string | null } = () => ({}),
  ): BulkAction<AttentionItem>['run'] => {
    return (rows) =>
      runEach(rows, toName, ({ id }) =>
        // The bodies of the operations differ.
        api.post(`/v1/attention/{id}/${path}` as '/v1/attention/{id}/snooze', {
          ...withId(id),
          body: toBody() as { until: string },
        }),
      );
  };
  const isHidden = ({ state }: AttentionItem) => (state === 'open' ? null : `already ${state}`);
  const actions: BulkAction<AttentionItem>[] = [
    {
      ...{ label: 'Acknowledge', done: 'acknowledged', unless: isHidden, run: each('acknowledge') },
      effect: 'They are hidden until their cause changes.',
    },
    {
      ...{ label: 'Reopen', done: 'reopened', run: each('reopen') },
      effect: 'They are listed again.',
      unless: ({ state }) => (state === 'open' ? 'open' : null),
    },
  ];
  const snoozes = SNOOZES.map(
    ({ label, until }): BulkAction<AttentionItem> => ({
      ...{
        label,
        isPhrase: true,
        done: 'snoozed',
        effect: 'They are hidden until then, or until their cause changes.',
      },
      run: each('snooze', () => ({ until: new Date(until()).toISOString() })),
    }),
  );
  return (
    <BulkBar
      {...{ actions, selection, toName }}
      noun="item"
      rows={items.filter(({ id }) => selection.selected.has(id))}
      total={items.length}
      refreshed={[['attention']]}
    >
      {(perform) => (
        <>
          <ActionMenu
            position="bottom-start"
            target={(ref) => (
              <Button ref={ref} size="compact-sm">
                Snooze…
              </Button>
            )}
          >
            {snoozes.map((action) => (
              <Menu.Item key={action.label} onClick={() => perform(action)}>
                {action.label}
              </Menu.Item>
            ))}
          </ActionMenu>
          <Button size="compact-sm" onClick={() => setAssigns(true)}>
            Assign…
          </Button>
          <TextDialog
            opened={assigns}
            title="Assign the selected items"
            label="Name (empty: remove the assignee)"
            value=""
            maxLength={100}
            close={() => setAssigns(false)}
            save={(text) =>
              perform({
                ...{ label: text === '' ? 'Unassign' : `Assign to ${text}`, isPhrase: text !== '' },
                done: 'assigned',
                effect: text === '' ? 'The assignees are removed.' : 'Other assignees are replaced.',
                run: each('assign', () => ({ assignee: text === '' ? null : text })),
              })
            }
          />
        </>
      )}
    </BulkBar>
  );
}
