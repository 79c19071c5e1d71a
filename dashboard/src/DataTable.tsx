/** Tables, and lists that are loaded page by page. */
import { Button } from '@mantine/core';
import { keepPreviousData, type QueryKey, useInfiniteQuery } from '@tanstack/react-query';
import { type ReactNode, useState } from 'react';
import type { Selection } from './bulk/selection.ts';
import { Empty, Hidden, Loaded, useNarrow } from './components.tsx';
import css from './DataTable.module.css';
import type { LoadedQuery } from './queries.ts';
import { isFrozenList } from './refresh.ts';
import { useRovingFocus } from './roving-focus.ts';
import { useZone, ZoneName } from './times.tsx';
import ui from './ui.module.css';
import { formatZone } from './zone.ts';

/** A column of {@link DataTable}. */
export interface Column<T> {
  readonly render: (row: T) => ReactNode;
  /** Right-aligned, for numbers. */
  readonly right?: boolean;
  /** Contains times: the name is followed by the time zone. */
  readonly isTime?: boolean;
  /** Takes the remaining width. */
  readonly wide?: boolean;
  /** Shows the name to screen readers only. */
  readonly hiddenName?: boolean;
  /** Whether a row has content in this column. A column without content in any row is omitted. */
  readonly hasContent?: (row: T) => boolean;
}

/** Columns by their names. A function is a column without options. */
export type Columns<T> = Readonly<Record<string, Column<T> | Column<T>['render']>>;

interface TableProps<T> {
  readonly label: string;
  readonly columns: Columns<T>;
  readonly getKey: (row: T) => string;
  /** Adds a checkbox to each row. */
  readonly selection?: {
    readonly of: Selection;
    readonly toName: (row: T) => string;
    readonly isSelectable?: (row: T) => boolean;
  };
}

/** Number of rows before "Show all". */
const FIRST_ROWS = 60;

/**
 * Table; in a window that is too narrow for its columns, each row is a card. The first column is the row header. `isOutdated`: the
 * rows are those of other filters.
 */
export function DataTable<T>(
  props: TableProps<T> & { readonly rows: readonly T[]; readonly isOutdated?: boolean | undefined },
) {
  const { label, rows, getKey, selection, isOutdated } = props;
  const columns = Object.entries(props.columns)
    .map(([name, column]) => ({ name, ...(typeof column === 'function' ? { render: column } : column) }))
    .filter(({ hasContent }) => hasContent === undefined || rows.some(hasContent));
  const [all, setAll] = useState(false);
  const { zone } = useZone();
  const isNarrow = useNarrow(Math.max(48, 12 * columns.length - 24));
  const body = useRovingFocus('tr');
  const visibleRows = all ? rows : rows.slice(0, FIRST_ROWS);
  return (
    <>
      {/* biome-ignore-start lint/a11y/noRedundantRoles: the card layout on narrow screens would remove the roles */}
      <table
        className={css.rows}
        data-cards={isNarrow || undefined}
        data-outdated={isOutdated || undefined}
        role="table"
        aria-label={label}
      >
        <thead role="rowgroup">
          <tr role="row">
            {selection ? (
              <th role="columnheader" scope="col" className={css.select}>
                <SelectAll selection={selection.of} label={label} />
              </th>
            ) : null}
            {columns.map(({ name, hiddenName, right, wide, isTime }) => (
              <th key={name} role="columnheader" scope="col" data-right={right} data-wide={wide}>
                {hiddenName ? <Hidden>{name}</Hidden> : bindUnits(name)}
                {isTime ? (
                  <>
                    , <ZoneName />
                  </>
                ) : null}
              </th>
            ))}
          </tr>
        </thead>
        <tbody ref={body} role="rowgroup">
          {visibleRows.map((row) => (
            <tr
              key={getKey(row)}
              role="row"
              data-selected={selection?.of.selected.has(getKey(row)) || undefined}
            >
              {selection ? (
                <td role="cell" className={css.select}>
                  {selection.isSelectable?.(row) === false ? null : (
                    <input
                      type="checkbox"
                      className={ui.checkbox}
                      aria-label={`Select ${selection.toName(row)}`}
                      {...selection.of.checkbox(getKey(row))}
                    />
                  )}
                </td>
              ) : null}
              {columns.map(({ name, render, hiddenName, right, wide, isTime }, at) => {
                const Cell = at === 0 ? 'th' : 'td';
                const attributes =
                  at === 0
                    ? { role: 'rowheader', scope: 'row' }
                    : {
                        role: 'cell',
                        'data-label': hiddenName ? undefined : isTime ? `${name}, ${formatZone(zone)}` : name,
                        'data-right': right,
                      };
                return (
                  <Cell key={name} {...attributes} data-wide={wide}>
                    {render(row)}
                  </Cell>
                );
              })}
            </tr>
          ))}
        </tbody>
      </table>
      {/* biome-ignore-end lint/a11y/noRedundantRoles: as above */}
      {visibleRows.length < rows.length ? (
        <More label={`Show all ${rows.length.toLocaleString()}`} onClick={() => setAll(true)} />
      ) : null}
    </>
  );
}

function SelectAll({ selection, label }: { readonly selection: Selection; readonly label: string }) {
  const { all, selectAll } = selection;
  return (
    <input
      type="checkbox"
      className={ui.checkbox}
      aria-label={`Select all: ${label}`}
      checked={all === true}
      ref={(box) => {
        if (box) box.indeterminate = all === 'some';
      }}
      onChange={({ currentTarget }) => selectAll(currentTarget.checked)}
    />
  );
}

/** Table of a list that is being loaded: also shows an error, `empty` if there are no rows, and the button for more. */
export function QueryTable<T>(
  props: TableProps<T> & {
    readonly query: LoadedQuery<readonly T[]> & Partial<NextPage>;
    readonly empty: ReactNode;
    /** Label of the button that loads the next page. */
    readonly more?: string;
  },
) {
  const { query, empty, more, ...table } = props;
  return (
    <>
      <Loaded query={query}>
        {(rows) => {
          if (rows.length > 0)
            return <DataTable {...table} rows={rows} isOutdated={query.isPlaceholderData} />;
          return query.hasNextPage ? null : <Empty>{empty}</Empty>;
        }}
      </Loaded>
      <LoadMore query={query} label={more} />
    </>
  );
}

/** A page of a list. `next`: cursor of the next page. */
interface ListPage {
  readonly next: string | null;
}

/** Loads a list page by page. `data`: all loaded entries; `undefined` before the first page. */
export function usePages<P extends ListPage, T>(options: {
  readonly queryKey: QueryKey;
  readonly fetchPage: (after: string | undefined, signal: AbortSignal) => Promise<P>;
  readonly toRows: (page: P) => readonly T[];
  readonly refetchMs: number;
  /** Also refetches when several pages are loaded. Default: only a single page, so that rows do not move. */
  readonly refetchAll?: boolean;
  readonly enabled?: boolean;
}) {
  const { queryKey, fetchPage, toRows, refetchMs, refetchAll = false, enabled = true } = options;
  const query = useInfiniteQuery({
    queryKey,
    queryFn: ({ pageParam, signal }) => fetchPage(pageParam, signal),
    initialPageParam: undefined as string | undefined,
    getNextPageParam: ({ next }) => next ?? undefined,
    meta: { freezes: !refetchAll },
    refetchInterval: (list) => (isFrozenList(list) ? false : refetchMs),
    refetchOnWindowFocus: (list) => !isFrozenList(list),
    placeholderData: keepPreviousData,
    enabled,
  });
  const pages = query.data?.pages;
  const isFrozen = !refetchAll && (pages?.length ?? 0) > 1;
  return { ...query, data: pages?.flatMap(toRows), pages, isFrozen };
}

type NextPage = Pick<
  ReturnType<typeof usePages>,
  'hasNextPage' | 'isFetchingNextPage' | 'fetchNextPage' | 'isFrozen' | 'isPlaceholderData'
>;

/** Button that loads the next page of a list, if there is one, and a note if the list is not refetched. */
export function LoadMore(props: {
  readonly query: Partial<NextPage> & Pick<LoadedQuery<unknown>, 'refetch'>;
  readonly label?: string | undefined;
}) {
  const { query, label = 'Show more' } = props;
  const { hasNextPage, isFetchingNextPage = false, fetchNextPage, isFrozen, refetch } = query;
  return (
    <>
      {hasNextPage ? (
        <More label={label} loading={isFetchingNextPage} onClick={() => void fetchNextPage?.()} />
      ) : null}
      {isFrozen ? (
        <p className={ui.hint}>
          The list is not updated while it has several pages.{' '}
          <Button size="compact-xs" onClick={() => void refetch()}>
            Update
          </Button>
        </p>
      ) : null}
    </>
  );
}

function More(props: { readonly label: string; readonly loading?: boolean; readonly onClick: () => void }) {
  const { label, ...button } = props;
  return (
    <div className={css.more}>
      <Button size="xs" {...button}>
        {label}
      </Button>
    </div>
  );
}

/** Keeps a number and its unit on one line. */
const bindUnits = (name: string): string => name.replace(/(\d) (?=[h%])/, '$1\u00a0');
