/** Tables, and lists that are loaded page by page. */
import { Button } from '@mantine/core';
import { keepPreviousData, type QueryKey, useInfiniteQuery } from '@tanstack/react-query';
import { type ReactNode, useState } from 'react';
import { Hidden } from './components.tsx';
import css from './DataTable.module.css';

/** A column of {@link DataTable}. */
export interface Column<T> {
  readonly name: string;
  readonly render: (row: T) => ReactNode;
  /** Right-aligned, for numbers. */
  readonly right?: boolean;
  /** Takes the remaining width. */
  readonly wide?: boolean;
  /** Shows the name to screen readers only. */
  readonly hiddenName?: boolean;
  /** Whether a row has content in this column. A column without content in any row is omitted. */
  readonly hasContent?: (row: T) => boolean;
}

/** Number of rows before "Show all". */
const FIRST_ROWS = 60;

/** Table; on narrow screens each row is a card. The first column is the row header. */
export function DataTable<T>(props: {
  readonly label: string;
  readonly columns: readonly Column<T>[];
  readonly rows: readonly T[];
  readonly keyOf: (row: T) => string;
}) {
  const { label, rows, keyOf } = props;
  const columns = props.columns.filter(({ hasContent: has }) => has === undefined || rows.some(has));
  const [all, setAll] = useState(false);
  const shown = all ? rows : rows.slice(0, FIRST_ROWS);
  return (
    <>
      {/* biome-ignore-start lint/a11y/noRedundantRoles: the card layout on narrow screens would remove the roles */}
      <table className={css.rows} role="table" aria-label={label}>
        <thead role="rowgroup">
          <tr role="row">
            {columns.map(({ name, hiddenName, ...column }) => (
              <th key={name} role="columnheader" scope="col" {...toAttributes(column)}>
                {hiddenName ? <Hidden>{name}</Hidden> : name}
              </th>
            ))}
          </tr>
        </thead>
        <tbody role="rowgroup">
          {shown.map((row) => (
            <tr key={keyOf(row)} role="row">
              {columns.map(({ name, render, hiddenName, ...column }, at) =>
                at === 0 ? (
                  <th key={name} role="rowheader" scope="row">
                    {render(row)}
                  </th>
                ) : (
                  <td
                    key={name}
                    role="cell"
                    data-label={hiddenName ? undefined : name}
                    {...toAttributes(column)}
                  >
                    {render(row)}
                  </td>
                ),
              )}
            </tr>
          ))}
        </tbody>
      </table>
      {/* biome-ignore-end lint/a11y/noRedundantRoles: as above */}
      {shown.length < rows.length ? (
        <div className={css.more}>
          <Button size="xs" variant="default" onClick={() => setAll(true)}>
            Show all {rows.length.toLocaleString()}
          </Button>
        </div>
      ) : null}
    </>
  );
}

const toAttributes = ({ right, wide }: Pick<Column<never>, 'right' | 'wide'>) => ({
  'data-right': right || undefined,
  'data-wide': wide || undefined,
});

/** A page of a list. `next`: cursor of the next page. */
interface ListPage {
  readonly next: string | null;
}

/** Loads a list page by page. `rows`: all loaded entries; `undefined` before the first page. */
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
    refetchInterval: ({ state }) => (!refetchAll && (state.data?.pages.length ?? 1) > 1 ? false : refetchMs),
    placeholderData: keepPreviousData,
    enabled,
  });
  return { ...query, rows: query.data?.pages.flatMap(toRows) };
}

/** Button that loads the next page of a list, if there is one. */
export function LoadMore(props: {
  readonly query: Pick<ReturnType<typeof usePages>, 'hasNextPage' | 'isFetchingNextPage' | 'fetchNextPage'>;
  readonly label?: string;
}) {
  const { hasNextPage, isFetchingNextPage, fetchNextPage } = props.query;
  return hasNextPage ? (
    <div className={css.more}>
      <Button size="xs" variant="default" loading={isFetchingNextPage} onClick={() => void fetchNextPage()}>
        {props.label ?? 'Show more'}
      </Button>
    </div>
  ) : null;
}
