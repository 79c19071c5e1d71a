/** Table whose rows can be selected for actions on several of them. */
import type { QueryKey } from '@tanstack/react-query';
import { useState } from 'react';
import { DataTable } from '../DataTable.tsx';
import { loadLater } from '../load-later.tsx';
import { useSession } from '../session.ts';
import type { BulkAction } from './actions.ts';
import { useSelection } from './selection.ts';

/** Loaded with the first selected row. */
const BulkBar = loadLater(() => import('./BulkBar.tsx')) as typeof import('./BulkBar.tsx').default;

/** Actions on several rows. */
export interface Bulk<T> {
  readonly noun: string;
  readonly toName: (row: T) => string;
  readonly actions: readonly BulkAction<T>[];
  /** Keys of the queries to refetch. */
  readonly refreshed: readonly QueryKey[];
  /** Rows that can be selected. Default: all. */
  readonly isSelectable?: (row: T) => boolean;
}

export function SelectableTable<T>(props: Parameters<typeof DataTable<T>>[0] & { readonly bulk: Bulk<T> }) {
  const { bulk, ...table } = props;
  const { hasRole } = useSession();
  const { rows, getKey } = table;
  const { isSelectable, ...bar } = bulk;
  const selectable = isSelectable ? rows.filter(isSelectable) : rows;
  const selection = useSelection(selectable.map(getKey));
  const [isUsed, setIsUsed] = useState(false);
  const isActive = selection.selected.size > 0;
  if (isActive && !isUsed) setIsUsed(true);
  if (!hasRole('operate')) return <DataTable {...table} />;
  return (
    <div>
      <DataTable
        {...table}
        selection={{ of: selection, toName: bulk.toName, ...(isSelectable && { isSelectable }) }}
      />
      {isUsed ? (
        <BulkBar
          {...bar}
          rows={selectable.filter((row) => selection.selected.has(getKey(row)))}
          total={selectable.length}
          selection={selection}
        />
      ) : null}
    </div>
  );
}
