/** Components shared by the Health pages. */
import { Button } from '@mantine/core';
import { type QueryKey, useQueryClient } from '@tanstack/react-query';
import { type ReactNode, type RefObject, useEffect, useRef, useState } from 'react';
import type { Poll } from '../../../client/index.ts';
import { Failure, Hidden, Note, showToast } from '../components.tsx';
import { formatDuration, formatExactTime } from '../times.tsx';
import { buildHref, useRegion } from '../urls.ts';
import css from './Health.module.css';
import { describePolls, POLL_OUTCOMES, type StateText } from './status.ts';

/** A column of {@link Rows}. */
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
export function Rows<T>(props: {
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
            {columns.map(({ name, right, wide, hiddenName: quiet }) => (
              <th
                key={name}
                role="columnheader"
                scope="col"
                data-right={right || undefined}
                data-wide={wide || undefined}
              >
                {quiet ? <Hidden>{name}</Hidden> : name}
              </th>
            ))}
          </tr>
        </thead>
        <tbody role="rowgroup">
          {shown.map((row) => (
            <tr key={keyOf(row)} role="row">
              {columns.map(({ name, render: of, right, wide, hiddenName: quiet }, at) =>
                at === 0 ? (
                  <th key={name} role="rowheader" scope="row">
                    {of(row)}
                  </th>
                ) : (
                  <td
                    key={name}
                    role="cell"
                    data-label={quiet ? undefined : name}
                    data-right={right || undefined}
                    data-wide={wide || undefined}
                  >
                    {of(row)}
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

/** Loads the next page of a list. */
export function More(props: { readonly busy: boolean; readonly onClick: () => unknown }) {
  return (
    <div className={css.more}>
      <Button size="xs" variant="default" loading={props.busy} onClick={() => void props.onClick()}>
        Show more
      </Button>
    </div>
  );
}

/** Whether an element is visible or within 100 px of the viewport. */
export function useIsOnScreen<E extends Element>(): readonly [RefObject<E | null>, boolean] {
  const ref = useRef<E>(null);
  const [seen, setSeen] = useState(false);
  useEffect(() => {
    if (!ref.current) return;
    const observer = new IntersectionObserver(
      (entries) => setSeen(entries.some(({ isIntersecting }) => isIntersecting)),
      { rootMargin: '100px' },
    );
    observer.observe(ref.current);
    return () => observer.disconnect();
  }, []);
  return [ref, seen];
}

/** Returns `buildHref` with the selected region as default parameter. */
export function useHref(): typeof buildHref {
  const region = useRegion() ?? undefined;
  return (path, params = {}) => buildHref(path, { region, ...params });
}

/** Runs one action at a time and refetches the queries of the page afterwards. */
export interface ActionRunner {
  /** Name of the running action. */
  readonly busy: string | null;
  readonly failure: unknown;
  /** Runs `act`. Keeps an error in `failure`; shows `done` as a toast on success. */
  run(name: string, act: () => Promise<unknown>, done?: string): Promise<void>;
  /** Same for a confirmation dialog, which displays errors itself. */
  runConfirmed(act: () => Promise<unknown>, done: string): Promise<void>;
}

export function useActionRunner(refreshed: readonly QueryKey[]): ActionRunner {
  const client = useQueryClient();
  const [busy, setBusy] = useState<string | null>(null);
  const [failure, setFailure] = useState<unknown>(null);
  const refresh = () => Promise.all(refreshed.map((queryKey) => client.invalidateQueries({ queryKey })));
  return {
    busy,
    failure,
    async run(name, act, done) {
      setBusy(name);
      setFailure(null);
      try {
        await act();
        if (done !== undefined) showToast(done);
      } catch (cause) {
        setFailure(cause);
      } finally {
        await refresh();
        setBusy(null);
      }
    },
    async runConfirmed(act, done) {
      setFailure(null);
      await act();
      showToast(done);
      await refresh();
    },
  };
}

/** Error of the last action. */
export function ActionError({ runner }: { readonly runner: ActionRunner }) {
  return runner.failure ? <Failure error={runner.failure} /> : null;
}

/** A state with its meaning, problem and recommended action. */
export function StateNote(props: {
  readonly state: StateText;
  readonly problem?: string | null | undefined;
  readonly children?: ReactNode;
}) {
  const { state, problem, children } = props;
  return (
    <Note tone={state.tone}>
      <div className={css.state}>
        <p>
          <strong>{state.label}.</strong> {state.meaning}
        </p>
        {problem ? (
          <p>
            <span className={css.quiet}>Problem:</span> <bdi>{problem}</bdi>
          </p>
        ) : null}
        {state.advice === undefined ? null : (
          <p>
            <span className={css.quiet}>Recommended action:</span> {state.advice}
          </p>
        )}
        {children}
      </div>
    </Note>
  );
}

/** Durations of polls, oldest first, with a text alternative. Bars of failed polls are hollow. */
export function PollBars({ polls }: { readonly polls: readonly Poll[] }) {
  const slowest = Math.max(1, ...polls.map(({ ms }) => ms));
  return (
    <figure className={css.polls}>
      <div className={css.bars} aria-hidden>
        {[...polls].reverse().map(({ startedAt, ms, outcome, problem }) => (
          <span
            key={startedAt}
            className={css.bar}
            title={`${formatExactTime(startedAt)}\n${POLL_OUTCOMES[outcome].label}, ${formatDuration(ms)}${problem ? `\n${problem}` : ''}`}
          >
            <span data-outcome={outcome} style={{ height: `${Math.max(4, (100 * ms) / slowest)}%` }} />
          </span>
        ))}
      </div>
      <figcaption>{describePolls(polls, formatDuration)}</figcaption>
    </figure>
  );
}

/** Placeholder that reserves space, so that the layout does not shift. */
export function Waiting() {
  return (
    <div className={css.waiting} role="status">
      <Hidden>Loading</Hidden>
    </div>
  );
}
