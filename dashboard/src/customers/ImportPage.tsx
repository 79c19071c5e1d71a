/** Import of recipients from a file: a dry run first, then the import. */

import { TableCellsIcon } from '@heroicons/react/16/solid';
import { Button, FileButton } from '@mantine/core';
import { useQueryClient } from '@tanstack/react-query';
import { useEffect, useRef, useState } from 'react';
import { Link } from 'wouter';
import { columns } from '../../../shared/notifications/recipients-file.ts';
import { withId } from '../api.ts';
import { Failure, Note, Panel } from '../components.tsx';
import { DataTable } from '../DataTable.tsx';
import { useApi } from '../queries.ts';
import { formatCount } from '../texts.ts';
import ui from '../ui.module.css';
import { useLeaveGuard } from '../unsaved-changes.ts';
import css from './customers.module.css';
import { type ImportProgress, type ImportReport, importInParts, readCsvFile } from './import.ts';
import { AccountPage, useCustomersHref } from './layout.tsx';

/** State of an import. */
type Step =
  | { readonly at: 'start'; readonly problem?: string }
  | { readonly at: 'running'; readonly dryRun: boolean; readonly progress: ImportProgress }
  | { readonly at: 'checked'; readonly report: ImportReport }
  | { readonly at: 'imported'; readonly report: ImportReport }
  | {
      readonly at: 'failed';
      readonly error: unknown;
      readonly dryRun: boolean;
      readonly progress: ImportProgress;
    };

interface Chosen {
  readonly name: string;
  readonly text: string;
}

export default function ImportPage({ account }: { readonly account: string }) {
  const api = useApi();
  const queries = useQueryClient();
  const href = useCustomersHref(account);
  const [file, setFile] = useState<Chosen | null>(null);
  const [step, setStep] = useState<Step>({ at: 'start' });
  const running = useRef<AbortController>(null);
  useEffect(() => () => running.current?.abort(), []);
  useLeaveGuard(step.at === 'running' && !step.dryRun, {
    title: 'Leave during the import?',
    body: 'The rest of the file is not imported.',
  });

  async function run(text: string, dryRun: boolean): Promise<void> {
    running.current?.abort();
    const controller = new AbortController();
    running.current = controller;
    const { signal } = controller;
    let progress: ImportProgress = { done: 0, total: 1 };
    const onProgress = (current: ImportProgress): void => {
      progress = current;
      if (!signal.aborted) setStep({ at: 'running', dryRun, progress });
    };
    try {
      const send = (csv: string) =>
        api.post('/v1/accounts/{id}/recipients/import', {
          ...withId(account),
          body: { csv, dryRun },
          signal,
        });
      const report = await importInParts(text, send, onProgress);
      if (!signal.aborted) setStep({ at: dryRun ? 'checked' : 'imported', report });
    } catch (error) {
      if (!signal.aborted) setStep({ at: 'failed', error, dryRun, progress });
    } finally {
      if (!dryRun) void queries.invalidateQueries({ queryKey: ['recipients', account] });
    }
  }

  async function choose(chosen: File | null | undefined): Promise<void> {
    if (!chosen) return;
    setFile(null);
    const read = readCsvFile(new Uint8Array(await chosen.arrayBuffer()));
    if ('problem' in read) return setStep({ at: 'start', problem: read.problem });
    setFile({ name: chosen.name, text: read.text });
    await run(read.text, true);
  }

  return (
    <AccountPage account={account} part="recipients" title={`Import recipients of ${account}`}>
      <Panel title="File" aside="CSV, separated by commas, semicolons or tabs">
        <Picker busy={step.at === 'running'} choose={(chosen) => void choose(chosen)} />
        <p className={ui.hint}>
          The first line contains the column names: {columns.join(', ')}. The values of absent columns are
          kept. A row without <code>id</code> updates the recipient with the same address and the same jobs,
          so importing a file again creates no duplicates.
        </p>
      </Panel>
      {step.at === 'start' && step.problem !== undefined ? (
        <Note tone="bad" live>
          {step.problem}
        </Note>
      ) : null}
      {step.at === 'running' ? <Progress {...step} name={file?.name ?? ''} /> : null}
      {step.at === 'failed' ? (
        <>
          <Failure error={step.error} again={() => file && run(file.text, step.dryRun)} />
          {!step.dryRun && step.progress.done > 0 ? (
            <Note tone="warn">
              {step.progress.done} of {step.progress.total} parts of the file were imported. To import the
              rest, import the file again: it creates no duplicates.
            </Note>
          ) : null}
        </>
      ) : null}
      {step.at === 'checked' && file ? (
        <Panel title={`Preview of ${file.name}`} aside="Nothing is imported yet">
          <Report report={step.report} />
          <div className={ui.actions}>
            {step.report.created + step.report.updated > 0 ? (
              <Button variant="filled" onClick={() => void run(file.text, false)}>
                Import {formatCount(step.report.created + step.report.updated, 'row')}
              </Button>
            ) : (
              <span>No changes to import.</span>
            )}
            <Button component={Link} href={href('recipients')}>
              Cancel
            </Button>
          </div>
        </Panel>
      ) : null}
      {step.at === 'imported' ? (
        <Panel title="Imported">
          <Report report={step.report} />
          <div className={ui.actions}>
            <Button variant="filled" component={Link} href={href('recipients')}>
              Show recipients
            </Button>
          </div>
        </Panel>
      ) : null}
    </AccountPage>
  );
}

/** File input with a drop area. */
function Picker(props: { readonly busy: boolean; readonly choose: (file: File | null | undefined) => void }) {
  const { busy, choose } = props;
  const [over, setOver] = useState(false);
  const reset = useRef<() => void>(null);
  return (
    // biome-ignore lint/a11y/noStaticElementInteractions: dropping is optional; the button in it does the same
    <div
      className={`${ui.actions} ${css.drop}`}
      data-over={over || undefined}
      onDragOver={(event) => {
        event.preventDefault();
        setOver(true);
      }}
      onDragLeave={() => setOver(false)}
      onDrop={(event) => {
        event.preventDefault();
        setOver(false);
        if (!busy) choose(event.dataTransfer.files[0]);
      }}
    >
      <TableCellsIcon width={28} aria-hidden />
      <FileButton
        accept=".csv,.tsv,.txt,text/csv,text/tab-separated-values,text/plain"
        disabled={busy}
        // Allows choosing the same file again after editing it.
        resetRef={reset}
        onChange={(file) => {
          choose(file);
          reset.current?.();
        }}
      >
        {(button) => <Button {...button}>Choose a file</Button>}
      </FileButton>
      <span className={ui.hint}>or drop it here. You see a preview before anything is imported.</span>
    </div>
  );
}

function Progress(props: {
  readonly dryRun: boolean;
  readonly progress: ImportProgress;
  readonly name: string;
}) {
  const { dryRun, name } = props;
  const { done, total: of } = props.progress;
  return (
    <Note live>
      <p>
        {dryRun ? `Checking ${name}` : `Importing ${name}`}
        {of > 1 ? `: part ${Math.min(done + 1, of)} of ${of}` : ''} …
      </p>
      {of > 1 ? <progress className={ui.progress} aria-label="Parts" value={done} max={of} /> : null}
    </Note>
  );
}

function Report({ report }: { readonly report: ImportReport }) {
  const { created, updated, unchanged, invalidRows } = report;
  return (
    <>
      <ul className={`${ui.list} ${css.counts}`} aria-label="Rows">
        {Object.entries({ new: created, changed: updated, unchanged, invalid: invalidRows.length }).map(
          ([name, rows]) => (
            <li key={name} data-bad={(name === 'invalid' && rows > 0) || undefined}>
              <strong>{rows.toLocaleString()}</strong> {name}
            </li>
          ),
        )}
      </ul>
      {invalidRows.length > 0 ? (
        <>
          <p className={ui.hint}>Invalid rows, which are not imported:</p>
          <DataTable
            label="Invalid rows, which are not imported"
            rows={invalidRows}
            getKey={({ line, field, reason }) => `${line} ${field} ${reason}`}
            columns={{
              Line: ({ line }) => line,
              Field: ({ field }) => field ?? 'Row',
              Error: { wide: true, render: ({ reason }) => reason },
            }}
          />
        </>
      ) : null}
    </>
  );
}
