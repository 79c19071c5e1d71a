/** Actions on the selected rows of a list, with the number of rows before, and a result for each row afterwards. */
import { Button } from '@mantine/core';
import { type QueryKey, useQueryClient } from '@tanstack/react-query';
import { type ReactNode, useState } from 'react';
import { Note, useConfirm } from '../components.tsx';
import { formatCount } from '../texts.ts';
import ui from '../ui.module.css';
import { type BulkAction, type BulkResult, formatCommand, previewBulk, summarizeResults } from './actions.ts';
import css from './BulkBar.module.css';
import type { Selection } from './selection.ts';

/** Maximum number of names in the confirmation. */
const MAX_NAMES = 10;

/** `children`: further controls, which call the function with an action. */
export default function BulkBar<T>(props: {
  readonly noun: string;
  readonly rows: readonly T[];
  readonly total: number;
  readonly toName: (row: T) => string;
  readonly actions: readonly BulkAction<T>[];
  readonly selection: Selection;
  readonly refreshed: readonly QueryKey[];
  readonly children?: (perform: (action: BulkAction<T>) => void) => ReactNode;
}) {
  const { noun, rows, total, toName, actions, selection, refreshed } = props;
  const client = useQueryClient();
  const confirm = useConfirm();
  const [outcome, setOutcome] = useState<Outcome | null>(null);
  const ask = (action: BulkAction<T>): void => {
    const preview = previewBulk(action, rows);
    const count = formatCount(preview.rows.length, noun);
    if (preview.rows.length === 0) {
      setOutcome({
        text: `${action.label} applies to no selected ${noun} (${preview.skipped.join(', ')}).`,
        results: [],
      });
      return;
    }
    const command = formatCommand(action, count);
    confirm({
      title: `${command}?`,
      body: (
        <>
          <p>{action.effect}</p>
          <p>
            {preview.rows.slice(0, MAX_NAMES).map(toName).join(', ')}
            {preview.rows.length > MAX_NAMES
              ? ` and ${(preview.rows.length - MAX_NAMES).toLocaleString()} more`
              : ''}
          </p>
          {preview.skipped.length > 0 ? <p>Left out: {preview.skipped.join(', ')}.</p> : null}
        </>
      ),
      verb: command,
      onConfirm: async () => {
        const results = await action.run(preview.rows);
        setOutcome({ text: summarizeResults(results, noun, action.done), results });
        if (results.every(({ problem }) => problem === null)) selection.clear();
        await Promise.all(refreshed.map((queryKey) => client.invalidateQueries({ queryKey })));
      },
    });
  };
  return (
    <div className={css.bar}>
      {outcome ? <Results outcome={outcome} close={() => setOutcome(null)} /> : null}
      {rows.length > 0 ? (
        // biome-ignore lint/a11y/useSemanticElements: a toolbar is no fieldset
        <div
          className={`${ui.actions} ${css.actions}`}
          role="group"
          aria-label={`Actions on selected ${noun}s`}
        >
          <strong>
            {rows.length.toLocaleString()} of {formatCount(total, noun)} selected
          </strong>
          {actions.map((action) => (
            <Button key={action.label} size="compact-sm" onClick={() => ask(action)}>
              {action.label}
            </Button>
          ))}
          {props.children?.(ask)}
          {rows.length < total ? (
            <Button size="compact-sm" variant="subtle" onClick={() => selection.selectAll(true)}>
              Select all {total.toLocaleString()}
            </Button>
          ) : null}
          <Button size="compact-sm" variant="subtle" onClick={selection.clear}>
            Clear selection
          </Button>
        </div>
      ) : null}
    </div>
  );
}

interface Outcome {
  readonly text: string;
  readonly results: readonly BulkResult[];
}

function Results({ outcome, close }: { readonly outcome: Outcome; readonly close: () => void }): ReactNode {
  const { text, results } = outcome;
  const failed = results.filter(({ problem }) => problem !== null);
  const tone = failed.length > 0 ? 'bad' : results.length === 0 ? 'warn' : 'good';
  return (
    <Note
      live
      tone={tone}
      actions={
        <Button size="compact-xs" onClick={close}>
          Close results
        </Button>
      }
    >
      <p>{text}</p>
      {results.length > 0 ? (
        <details open={failed.length > 0}>
          <summary>Result of each</summary>
          <ul className={ui.list}>
            {[...failed, ...results.filter(({ problem }) => problem === null)].map(({ name, problem }) => (
              <li key={name}>
                <strong>{name}</strong>: {problem ?? 'done'}
              </li>
            ))}
          </ul>
        </details>
      ) : null}
    </Note>
  );
}
