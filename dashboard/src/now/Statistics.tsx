/** Figures of the Now page: open, late, due and dispatched jobs, jobs by status. */
import { Button } from '@mantine/core';
import { useState } from 'react';
import { Link } from 'wouter';
import type { Figures } from '../../../client/index.ts';
import { Hidden, Panel, Statistic } from '../components.tsx';
import { toPlainText } from '../events.ts';
import { useToday } from '../queries.ts';
import { formatPercent } from '../texts.ts';
import { Day, formatDay } from '../times.tsx';
import ui from '../ui.module.css';
import { useHref, useParams } from '../urls.ts';
import css from './Statistics.module.css';

/** Number of statuses before "more". Fewer on the wall display, which must fit without scrolling. */
const STATUSES = { page: 8, wall: 6 };

/** Totals at the top of the page. `isOutdated`: they are those of another region. */
export function Tiles(props: { readonly figures: Figures | undefined; readonly isOutdated: boolean }) {
  const { figures, isOutdated } = props;
  const href = useHref();
  const [read] = useParams();
  const { day, open, attention, onTime, paused } = figures ?? {};
  const today = useToday();
  const isToday = day === undefined || (today.isToday && day === today.day);
  const at = isToday ? 'today' : `on ${formatDay(day)}`;
  return (
    <div className={css.tiles} data-outdated={isOutdated || undefined}>
      <Statistic
        name="Needs attention"
        value={attention?.open}
        tone={(attention?.open ?? 0) > 0 ? 'bad' : 'plain'}
        note={attention && `${(attention.snoozed + attention.acknowledged).toLocaleString()} hidden`}
        href={href('/')}
      />
      <Statistic
        name="Open jobs"
        value={open?.jobs}
        note={open && `${open.dispatched.toLocaleString()} of them dispatched${formatPaused(paused?.jobs)}`}
        href={href('/jobs', { which: 'open' })}
      />
      <Statistic
        name="Late"
        value={open?.late}
        tone={(open?.late ?? 0) > 0 ? 'bad' : 'plain'}
        note={`past due, not dispatched${formatPaused(paused?.late)}`}
        href={href('/jobs', { late: 'true' })}
      />
      <Statistic
        name={`Due ${at}`}
        value={figures?.dueToday}
        note={day && <DayNote day={isToday && day} text="not dispatched" />}
        href={href('/jobs', { dueOn: day })}
      />
      <Statistic
        name={`Dispatched ${at}`}
        value={figures?.dispatchedToday}
        note={day && <DayNote day={isToday && day} text="regardless of due date" />}
        href={href('/jobs', { dispatchedOn: day })}
      />
      <Statistic
        name="On time"
        value={onTime && formatPercent(onTime.onTime, onTime.of)}
        note={
          onTime &&
          `${onTime.onTime.toLocaleString()} of ${onTime.of.toLocaleString()} dispatches, last ${onTime.days} days`
        }
        href={read('view') === undefined ? '#days' : href('/#days')}
      />
      <p className={`${ui.hint} ${css.days}`}>Days are local to the location of each job.</p>
    </div>
  );
}

/** Formats the part of a number that belongs to paused accounts. */
const formatPaused = (jobs = 0): string =>
  jobs === 0 ? '' : `; ${jobs.toLocaleString()} of paused accounts`;

/** `day`: `false` if the name of the statistic contains it. */
function DayNote({ day, text }: { readonly day: string | false; readonly text: string }) {
  if (day === false) return text;
  return (
    <>
      <Day day={day} />, {text}
    </>
  );
}

/** Open jobs by status; each bar links to its jobs. No filter selects jobs without a status. */
export function Statuses({ open }: { readonly open: Figures['open'] }) {
  const href = useHref();
  const [all, setAll] = useState(false);
  const [read] = useParams();
  const few = STATUSES[read('wall') === undefined ? 'page' : 'wall'];
  const statuses = open.byStatus;
  const shown = all ? statuses : statuses.slice(0, few);
  const most = statuses[0]?.jobs ?? 1;
  const hidden = statuses.length - shown.length;
  return (
    <Panel
      title="Open jobs by status"
      aside={<Link href={href('/jobs', { which: 'open' })}>All: {open.jobs.toLocaleString()}</Link>}
    >
      <div className={ui.tight}>
        {statuses.length === 0 ? <p className={ui.hint}>No open jobs.</p> : null}
        <ul className={ui.list}>
          {shown.map(({ status, jobs }) => {
            const bar = (
              <>
                <bdi className={`${ui.ellipsis} ${css.statusName}`}>
                  {status === null ? 'No status' : toPlainText(status)}
                </bdi>
                <span className={css.track} aria-hidden>
                  <span className={css.bar} style={{ width: `${(jobs / most) * 100}%` }} />
                </span>
                <span className={css.number}>
                  {jobs.toLocaleString()}
                  <Hidden> {jobs === 1 ? 'job' : 'jobs'}</Hidden>
                </span>
              </>
            );
            return (
              <li key={status}>
                {status === null ? (
                  <span className={css.status}>{bar}</span>
                ) : (
                  <Link className={css.status} href={href('/jobs', { status })}>
                    {bar}
                  </Link>
                )}
              </li>
            );
          })}
        </ul>
        {hidden > 0 || all ? (
          <Button className={css.more} size="compact-xs" variant="subtle" onClick={() => setAll(!all)}>
            {all ? 'Show fewer' : `Show ${hidden} more`}
          </Button>
        ) : null}
        {open.otherStatuses > 0 ? (
          <p className={ui.hint}>{open.otherStatuses.toLocaleString()} with other statuses.</p>
        ) : null}
      </div>
    </Panel>
  );
}
