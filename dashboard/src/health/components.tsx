/** Components shared by the Health pages. */
import { type QueryKey, useQueryClient } from '@tanstack/react-query';
import { type ReactNode, type RefObject, useEffect, useRef, useState } from 'react';
import type { Poll } from '../../../client/index.ts';
import { Failure, Hidden, Note, showToast } from '../components.tsx';
import { formatDuration, formatExactTime } from '../times.tsx';
import ui from '../ui.module.css';
import css from './Health.module.css';
import { describePolls, POLL_OUTCOMES, type StateText } from './status.ts';

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
      <div className={ui.tight}>
        <p>
          <strong>{state.label}.</strong> {state.meaning}
        </p>
        {problem ? (
          <p>
            <span className={ui.quiet}>Problem:</span> <bdi>{problem}</bdi>
          </p>
        ) : null}
        {state.advice === undefined ? null : (
          <p>
            <span className={ui.quiet}>Recommended action:</span> {state.advice}
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
    <figure className={`${ui.tight} ${ui.tight} ${css.polls}`}>
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
      <figcaption className={ui.hint}>{describePolls(polls, formatDuration)}</figcaption>
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
