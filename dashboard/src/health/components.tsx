/** Components shared by the Health pages. */
import { Button } from '@mantine/core';
import type { ReactNode } from 'react';
import type { AttemptReport, Poll } from '../../../client/index.ts';
import type { ActionRunner } from '../actions.ts';
import { Badge, Failure, Note } from '../components.tsx';
import { formatDuration, formatExactTime } from '../times.tsx';
import ui from '../ui.module.css';
import css from './Health.module.css';
import {
  ATTEMPT_OUTCOMES,
  describePolls,
  findFurtherProblem,
  POLL_OUTCOMES,
  type StateText,
} from './status.ts';

/** Label of a state. */
export function StateBadge({ state }: { readonly state: Pick<StateText, 'label' | 'tone'> }) {
  return <Badge tone={state.tone}>{state.label}</Badge>;
}

/** Button of an action. `name`: starts the action of that name, and shows its progress. */
export function ActionButton(props: {
  readonly runner: ActionRunner;
  readonly name?: string;
  readonly primary?: boolean;
  readonly onClick: () => unknown;
  readonly children: ReactNode;
}) {
  const { runner, name, primary = false, onClick, children } = props;
  return (
    <Button
      size="xs"
      variant={primary ? 'filled' : 'default'}
      loading={name !== undefined && runner.busy === name}
      onClick={() => void onClick()}
    >
      {children}
    </Button>
  );
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
  const { state, children } = props;
  const problem = findFurtherProblem(state, props.problem);
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
    <figure className={`${ui.tight} ${css.polls}`}>
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

/** Result of a ping. Announced by screen readers. */
export function PingReport({ report }: { readonly report: AttemptReport }) {
  const { outcome, status, latencyMs, message } = report;
  const { label, tone } = ATTEMPT_OUTCOMES[outcome];
  return (
    <Note tone={tone === 'good' ? 'good' : 'bad'} live>
      <p>
        <strong>Ping: {label.toLowerCase()}</strong> after {formatDuration(latencyMs)}
        {status === null ? '' : `, status code ${status}`}. <bdi>{message}</bdi>
      </p>
    </Note>
  );
}
