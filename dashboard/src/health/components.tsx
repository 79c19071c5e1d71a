/** What the pages of Health are made of. */
import { Button } from '@mantine/core';
import { type QueryKey, useQueryClient } from '@tanstack/react-query';
import { type ReactNode, type RefObject, useEffect, useRef, useState } from 'react';
import type { PollRecord } from '../../../shared/accounts/account-input.ts';
import { Failure, Hidden, Note, showToast } from '../components.tsx';
import { formatDuration, formatExactTime } from '../times.tsx';
import { buildHref, useRegion } from '../urls.ts';
import css from './Health.module.css';
import { describePolls, POLL_OUTCOMES, type StateText } from './status.ts';

/** A column of {@link Rows}. */
export interface Column<T> {
  readonly name: string;
  readonly render: (row: T) => ReactNode;
  /** Numbers stand right. */
  readonly right?: boolean;
  /** Takes what room there is. */
  readonly wide?: boolean;
  /** The name is there for screen readers only. */
  readonly hiddenName?: boolean;
  /** Whether a row has something there: a column that no row has anything in is left out. */
  readonly hasContent?: (row: T) => boolean;
}

/** Rows that are shown before somebody asks for more. */
const FIRST_ROWS = 60;

/** A table; on a narrow screen each row is a card with the names of its columns. The first column names the row. */
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
      {/* biome-ignore-start lint/a11y/noRedundantRoles: what is laid out otherwise on narrow screens would lose them */}
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

/** A button below a list that goes on. */
export function More(props: { readonly busy: boolean; readonly onClick: () => unknown }) {
  return (
    <div className={css.more}>
      <Button size="xs" variant="default" loading={props.busy} onClick={() => void props.onClick()}>
        Show more
      </Button>
    </div>
  );
}

/** Whether an element is on the screen, or close to it. */
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

/** Addresses that keep the region that is looked at. */
export function useHref(): typeof buildHref {
  const region = useRegion() ?? undefined;
  return (path, params = {}) => buildHref(path, { region, ...params });
}

/** What people do on a page: one thing at a time, after which what is on screen is asked for again. */
export interface ActionRunner {
  /** The name of what is under way. */
  readonly busy: string | null;
  readonly failure: unknown;
  /** Does it; a refusal is kept in `failure`. `done` is said when it worked. */
  run(name: string, act: () => Promise<unknown>, done?: string): Promise<void>;
  /** The same for a dialog, which shows a refusal by itself. */
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

/** What an action was refused for. */
export function ActionError({ acts }: { readonly acts: ActionRunner }) {
  return acts.failure ? <Failure error={acts.failure} /> : null;
}

/** A state with what it means, what is wrong and what to do. */
export function StateNote(props: {
  readonly words: StateText;
  readonly problem?: string | null | undefined;
  readonly children?: ReactNode;
}) {
  const { words, problem, children } = props;
  return (
    <Note tone={words.tone}>
      <div className={css.state}>
        <p>
          <strong>{words.label}.</strong> {words.meaning}
        </p>
        {problem ? (
          <p>
            <span className={css.quiet}>The problem:</span> <bdi>{problem}</bdi>
          </p>
        ) : null}
        {words.advice === undefined ? null : (
          <p>
            <span className={css.quiet}>What to do:</span> {words.advice}
          </p>
        )}
        {children}
      </div>
    </Note>
  );
}

/** How long polls took, oldest to newest, with the same in words. Those that failed are hollow. */
export function PollBars({ polls }: { readonly polls: readonly PollRecord[] }) {
  const slowest = Math.max(1, ...polls.map(({ ms }) => ms));
  return (
    <figure className={css.polls}>
      <div className={css.bars} aria-hidden>
        {[...polls].reverse().map(({ startedAt, ms, outcome, problem }) => (
          <span
            key={startedAt}
            className={css.bar}
            title={`${formatExactTime(startedAt)}\n${POLL_OUTCOMES[outcome].word}, ${formatDuration(ms)}${problem ? `\n${problem}` : ''}`}
          >
            <span data-outcome={outcome} style={{ height: `${Math.max(4, (100 * ms) / slowest)}%` }} />
          </span>
        ))}
      </div>
      <figcaption>{describePolls(polls, formatDuration)}</figcaption>
    </figure>
  );
}

/** A place as large as what is to come, so that nothing moves when it does. */
export function Waiting() {
  return (
    <div className={css.waiting} role="status">
      <Hidden>Being read</Hidden>
    </div>
  );
}
