/** Recipients from a file: looked at first, then taken. */
import { Button } from '@mantine/core';
import { IconFileSpreadsheet } from '@tabler/icons-react';
import { useQueryClient } from '@tanstack/react-query';
import { useEffect, useRef, useState } from 'react';
import { Link } from 'wouter';
import { columns } from '../../../shared/notifications/recipients-file.ts';
import { Failure, Note, Panel } from '../components.tsx';
import { useApi } from '../queries.ts';
import css from './customers.module.css';
import { type ImportProgress, type ImportReport, importInParts, readCsvFile } from './import.ts';
import { formatCount } from './labels.ts';
import { AccountPage, useCustomersHref } from './layout.tsx';

/** Where an import is. */
type Step =
  | { readonly at: 'begin'; readonly problem?: string }
  | { readonly at: 'work'; readonly dryRun: boolean; readonly progress: ImportProgress }
  | { readonly at: 'looked'; readonly report: ImportReport }
  | { readonly at: 'done'; readonly report: ImportReport }
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

export function ImportPage({ account }: { readonly account: string }) {
  const api = useApi();
  const queries = useQueryClient();
  const href = useCustomersHref(account);
  const [file, setFile] = useState<Chosen | null>(null);
  const [step, setStep] = useState<Step>({ at: 'begin' });
  const ending = useRef<AbortController>(null);
  useEffect(() => () => ending.current?.abort(), []);

  async function run(text: string, dryRun: boolean): Promise<void> {
    ending.current?.abort();
    const ended = new AbortController();
    ending.current = ended;
    const { signal } = ended;
    let progress: ImportProgress = { done: 0, total: 1 };
    const tell = (to: ImportProgress): void => {
      progress = to;
      if (!signal.aborted) setStep({ at: 'work', dryRun, progress });
    };
    const path = `/v1/accounts/${encodeURIComponent(account)}/recipients/import`;
    try {
      const send = (csv: string) => api.post<ImportReport>(path, { body: { csv, dryRun }, signal });
      const report = await importInParts(text, send, tell);
      if (!signal.aborted) setStep({ at: dryRun ? 'looked' : 'done', report });
    } catch (error) {
      if (!signal.aborted) setStep({ at: 'failed', error, dryRun, progress });
    } finally {
      if (!dryRun) void queries.invalidateQueries({ queryKey: ['recipients', account] });
    }
  }

  async function choose(chosen: File | undefined): Promise<void> {
    if (!chosen) return;
    setFile(null);
    const read = readCsvFile(new Uint8Array(await chosen.arrayBuffer()));
    if ('problem' in read) return setStep({ at: 'begin', problem: read.problem });
    setFile({ name: chosen.name, text: read.text });
    await run(read.text, true);
  }

  return (
    <AccountPage account={account} part="recipients" title={`Import recipients of ${account}`}>
      <Panel title="A table of recipients" aside="CSV, separated by commas, semicolons or tabs">
        <Picker busy={step.at === 'work'} choose={(chosen) => void choose(chosen)} />
        <p className={css.paragraph}>
          The first line names the columns: {columns.join(', ')}. What is not there is left alone. A row
          without <code>id</code> changes the recipient with the same address and the same jobs, so the same
          file brings nothing new the second time.
        </p>
      </Panel>
      {step.at === 'begin' && step.problem !== undefined ? (
        <Note tone="bad" live>
          {step.problem}
        </Note>
      ) : null}
      {step.at === 'work' ? <Progress {...step} name={file?.name ?? ''} /> : null}
      {step.at === 'failed' ? (
        <>
          <Failure error={step.error} again={() => file && run(file.text, step.dryRun)} />
          {!step.dryRun && step.progress.done > 0 ? (
            <Note tone="warn">
              {step.progress.done} of {step.progress.total} parts of the file were taken. The same file can be
              imported again: what was taken is not taken twice.
            </Note>
          ) : null}
        </>
      ) : null}
      {step.at === 'looked' && file ? (
        <Panel title={`What ${file.name} would do`} aside="Nothing is written yet">
          <Report report={step.report} />
          <div className={css.row}>
            {step.report.created + step.report.updated > 0 ? (
              <Button onClick={() => void run(file.text, false)}>
                Import {formatCount(step.report.created + step.report.updated, 'row')}
              </Button>
            ) : (
              <span>There is nothing to import.</span>
            )}
            <Button component={Link} variant="default" href={href('recipients')}>
              Cancel
            </Button>
          </div>
        </Panel>
      ) : null}
      {step.at === 'done' ? (
        <Panel title="Imported">
          <Report report={step.report} />
          <div className={css.row}>
            <Button component={Link} href={href('recipients')}>
              Show the recipients
            </Button>
          </div>
        </Panel>
      ) : null}
    </AccountPage>
  );
}

/** A file is chosen, or dropped here. */
function Picker({
  busy,
  choose,
}: {
  readonly busy: boolean;
  readonly choose: (file: File | undefined) => void;
}) {
  const [over, setOver] = useState(false);
  return (
    // biome-ignore lint/a11y/noStaticElementInteractions: dropping is a way besides; the button in it does the same
    <div
      className={css.drop}
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
      <IconFileSpreadsheet size={28} stroke={1.5} aria-hidden />
      <label className={css.file}>
        <input
          type="file"
          accept=".csv,.tsv,.txt,text/csv,text/tab-separated-values,text/plain"
          disabled={busy}
          onChange={(event) => {
            choose(event.currentTarget.files?.[0]);
            // So that the same file, changed, can be chosen again.
            event.currentTarget.value = '';
          }}
        />
        Choose a file
      </label>
      <span className={css.quiet}>or drop it here. It is looked at first.</span>
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
        {dryRun ? `Looking at ${name}` : `Importing ${name}`}
        {of > 1 ? `: part ${Math.min(done + 1, of)} of ${of}` : ''} …
      </p>
      {of > 1 ? <progress className={css.progress} aria-label="Parts" value={done} max={of} /> : null}
    </Note>
  );
}

function Report({ report }: { readonly report: ImportReport }) {
  const { created, updated, unchanged, invalidRows } = report;
  return (
    <>
      <ul className={css.counts} aria-label="Rows">
        <li>
          <strong>{created.toLocaleString()}</strong> new
        </li>
        <li>
          <strong>{updated.toLocaleString()}</strong> changed
        </li>
        <li>
          <strong>{unchanged.toLocaleString()}</strong> as they were
        </li>
        <li data-bad={invalidRows.length > 0 || undefined}>
          <strong>{invalidRows.length.toLocaleString()}</strong> not good
        </li>
      </ul>
      {invalidRows.length > 0 ? (
        <div className={css.scrolls}>
          <table className={css.bad}>
            <caption>Rows that are not good, and are left out</caption>
            <thead>
              <tr>
                <th scope="col">Line</th>
                <th scope="col">Field</th>
                <th scope="col">Why</th>
              </tr>
            </thead>
            <tbody>
              {invalidRows.slice(0, MAX_SHOWN).map(({ line, field, reason }) => (
                <tr key={`${line} ${field} ${reason}`}>
                  <td>{line}</td>
                  <td>{field ?? 'The row'}</td>
                  <td>{reason}</td>
                </tr>
              ))}
            </tbody>
          </table>
          {invalidRows.length > MAX_SHOWN ? (
            <p className={css.quiet}>
              and {formatCount(invalidRows.length - MAX_SHOWN, 'more', 'more')}. Mend these first, and choose
              the file again.
            </p>
          ) : null}
        </div>
      ) : null}
    </>
  );
}

/** Rows that are named; a file with more is mostly wrong in the same way. */
const MAX_SHOWN = 200;
