/** Export of lists as CSV files. */

import { ArrowDownTrayIcon } from '@heroicons/react/16/solid';
import { Button } from '@mantine/core';
import { useState } from 'react';
import { useSearch } from 'wouter';
import { BYTE_ORDER_MARK, formatCsvRow } from '../../shared/csv.ts';
import { toErrorMessage } from './api.ts';
import { showToast } from './components.tsx';
import { toLocalDay } from './dates.ts';
import ui from './ui.module.css';

/** Maximum number of rows of a file. */
const MAX_ROWS = 10_000;

/** Yields the texts of a list as CSV, at most `max` rows. Calls `onMore` if there are more. `note`: what the file has. */
export type CsvSource = (options: {
  readonly max: number;
  readonly onMore: (note?: string) => void;
}) => AsyncIterable<string>;

/**
 * Button that saves a list as a file. `name`: name of the list in the file name. `iconOnly`: without a visible label, for narrow
 * screens; default is false.
 */
export function ExportButton(props: {
  readonly name: string;
  readonly source: CsvSource;
  readonly size?: 'compact-sm' | 'xs';
  readonly iconOnly?: boolean;
}) {
  const { name, source, size = 'compact-sm', iconOnly = false } = props;
  const [busy, setBusy] = useState(false);
  // The note is about the filters in the address.
  const filters = useSearch();
  const [cut, setCut] = useState<{ readonly filters: string; readonly note: string } | null>(null);
  const save = async (): Promise<void> => {
    setBusy(true);
    try {
      setCut(null);
      const texts: string[] = [BYTE_ORDER_MARK];
      const onMore = (note = `The file has the first ${MAX_ROWS.toLocaleString()} rows only.`): void =>
        setCut({ filters, note });
      for await (const text of source({ max: MAX_ROWS, onMore })) texts.push(text);
      download(`${name}-${toLocalDay(Date.now())}.csv`, texts);
    } catch (error) {
      showToast(toErrorMessage(error), 'bad');
    } finally {
      setBusy(false);
    }
  };
  const icon = <ArrowDownTrayIcon width={14} aria-hidden />;
  return (
    <>
      <span role="status" className={ui.hint}>
        {cut?.filters === filters ? cut.note : ''}
      </span>
      <Button
        size={size}
        leftSection={iconOnly ? null : icon}
        loading={busy}
        aria-label={`Export CSV: ${name}`}
        onClick={() => void save()}
      >
        {iconOnly ? icon : 'Export CSV'}
      </Button>
    </>
  );
}

/** Returns a row with its line break. */
export const toCsvLine = (cells: readonly unknown[]): string => `${formatCsvRow(cells)}\r\n`;

/** Downloads texts as a CSV file. */
export function download(name: string, texts: string[]): void {
  const url = URL.createObjectURL(new Blob(texts, { type: 'text/csv;charset=utf-8' }));
  const link = document.createElement('a');
  link.href = url;
  link.download = name;
  link.click();
  // Long after the browser has read it.
  setTimeout(() => URL.revokeObjectURL(url), 60_000);
}
