/** Virtualized list of live events, newest first. It is held while the user reads. */

import { PauseIcon, PlayIcon } from '@heroicons/react/16/solid';
import { Button } from '@mantine/core';
import { useVirtualizer } from '@tanstack/react-virtual';
import { memo, type ReactNode, useCallback, useEffect, useId, useMemo, useRef, useState } from 'react';
import { Link } from 'wouter';
import type { JobEvent } from '../../../shared/events/event.ts';
import { Empty, Hidden, Note, useNarrow } from '../components.tsx';
import { EventSummary } from '../EventSummary.tsx';
import { describeEvent, eventTypeGroups, eventTypeLabels, getJobNumber, toPlainText } from '../events.ts';
import { ExportButton } from '../export.tsx';
import { FilterInput, FilterSelect, includeSelected } from '../filters.tsx';
import { useAccounts, useApi } from '../queries.ts';
import { useInRegion } from '../resources.ts';
import { useRovingFocus } from '../roving-focus.ts';
import type { StreamState } from '../stream.ts';
import { useNow, useStreamState } from '../stream-hooks.ts';
import { isToday, Timestamp, useDay, ZoneName } from '../times.tsx';
import ui from '../ui.module.css';
import { accountHref, endpointHref, jobHref, useHref, useParams, useRegion } from '../urls.ts';
import { exportEvents } from './export.ts';
import { countAfter, createRowFilter, type EventFilter, type Row } from './feed.ts';
import css from './StreamPanel.module.css';

/** Row height in px: one line; on narrow screens two lines or more. */
const ROW_PX = { wide: 34, narrow: 58 };
/** Rows rendered beyond the visible ones, so that scrolling shows no blank area. */
const OVERSCAN = 6;
/** Time for which the pointer holds the list after its last movement. */
const HOVER_MS = 10_000;
/** Interval of the announcements of waiting events to screen readers. */
const SUMMARY_MS = 30_000;

export default function StreamPanel({ className }: { readonly className?: string | undefined }) {
  const id = useId();
  const api = useApi();
  const live = useStreamState();
  const narrow = useNarrow();
  const filter = useFilter();
  const scroller = useRef<HTMLElement>(null);
  const { held, reasons, hold, catchUp, release } = useHold(live);
  const select = useMemo(() => createRowFilter(filter), [filter]);
  const selectLive = useMemo(() => createRowFilter(filter), [filter]);
  const rows = select((held ?? live).rows);
  const waiting = held ? countAfter(selectLive(live.rows), held.count) : 0;
  // Some of the new events are no longer in the list.
  const hasMore = held !== null && (live.rows[0]?.number ?? 0) > held.count + 1;
  const paused = reasons.has('paused');

  const toTop = (): void => scroller.current?.scrollTo({ top: 0 });
  const toggle = useCallback(() => {
    if (!paused) return hold('paused', true);
    release();
    scroller.current?.scrollTo({ top: 0 });
  }, [paused, hold, release]);
  const state = paused
    ? 'Paused'
    : held
      ? 'Held while you read'
      : `${rows.length.toLocaleString()} events, newest first`;
  return (
    <section className={`${ui.box} ${css.panel} ${className ?? ''}`} aria-labelledby={id}>
      <div className={css.head}>
        <h2 id={id}>Live events</h2>
        <span className={`${ui.hint} ${ui.ellipsis} ${css.state}`}>
          {live.loaded ? state : 'Loading'}, times in <ZoneName />
        </span>
        {held && waiting > 0 ? (
          <Button
            variant="filled"
            className={css.new}
            size="xs"
            radius="xl"
            onClick={() => {
              catchUp();
              toTop();
            }}
          >
            {waiting.toLocaleString()}
            {hasMore ? '+' : ''} new
            <Hidden> {waiting === 1 ? 'event' : 'events'}: show</Hidden>
          </Button>
        ) : null}
        <div className={css.export}>
          <ExportButton
            name="events"
            size="xs"
            iconOnly={narrow}
            source={(options) => exportEvents(api, filter, options)}
          />
        </div>
        <PauseButton paused={paused} toggle={toggle} />
      </div>
      <Filters />
      <StreamProblems live={live} />
      <div className={css.body}>
        <Announcer paused={paused} waiting={waiting} />
        <List rows={rows} scroller={scroller} hold={hold}>
          {live.loaded && rows.length === 0 ? <EmptyList filtered={live.rows.length > 0} /> : null}
        </List>
      </div>
    </section>
  );
}

const PauseButton = memo(function PauseButton(props: {
  readonly paused: boolean;
  readonly toggle: () => void;
}) {
  const Icon = props.paused ? PlayIcon : PauseIcon;
  return (
    <Button
      className={css.pause}
      size="xs"
      variant={props.paused ? 'filled' : 'default'}
      leftSection={<Icon width={13} aria-hidden />}
      onClick={props.toggle}
    >
      {props.paused ? 'Resume' : 'Pause'}
    </Button>
  );
});

/** Announces to screen readers whether the list is paused and, periodically, the number of new events. */
function Announcer({ paused, waiting }: { readonly paused: boolean; readonly waiting: number }) {
  const step = useNow(SUMMARY_MS);
  // biome-ignore lint/correctness/useExhaustiveDependencies: the count is announced periodically only
  const text = useMemo(
    () => (waiting > 0 ? `${waiting} new ${waiting === 1 ? 'event' : 'events'}.` : ''),
    [step, paused],
  );
  return (
    <div role="status">
      <Hidden>
        {paused ? 'The list of events is paused. ' : ''}
        {text}
      </Hidden>
    </div>
  );
}

type HoldReason = 'paused' | 'scrolled' | 'hovered' | 'focused';

/**
 * Holds the list while it is paused, scrolled, hovered or focused by keyboard. A held list shows the rows of that time; new
 * rows appear when it is released.
 */
function useHold(live: StreamState) {
  const [{ reasons, held }, setHold] = useState<{
    readonly reasons: ReadonlySet<HoldReason>;
    readonly held: StreamState | null;
  }>(NOT_HELD);
  const drawn = useRef(live);
  useEffect(() => {
    drawn.current = live;
  });
  /** Adds or removes a reason to hold the list. */
  const hold = useCallback((reason: HoldReason, on: boolean): void => {
    setHold((old) => {
      if (old.reasons.has(reason) === on) return old;
      const next = new Set(old.reasons);
      if (on) next.add(reason);
      else next.delete(reason);
      return next.size === 0 ? NOT_HELD : { reasons: next, held: old.held ?? drawn.current };
    });
  }, []);
  /** Shows all rows received so far. A paused list is held again. */
  const catchUp = (): void =>
    setHold(({ reasons: old }) =>
      old.has('paused') ? { reasons: new Set(['paused']), held: live } : NOT_HELD,
    );
  const release = useCallback(() => setHold(NOT_HELD), []);
  return { held, reasons, hold, catchUp, release };
}

const NOT_HELD = { reasons: new Set<HoldReason>(), held: null };

/** Returns the filter in the address. */
function useFilter(): EventFilter {
  const [read] = useParams();
  const region = useRegion() ?? undefined;
  const [types, account, text] = ['types', 'account', 'text'].map(read);
  return useMemo(() => ({ types: types?.split(','), account, region, text }), [types, account, region, text]);
}

const GROUPS = eventTypeGroups.map(({ name, types }) => ({ label: name, value: types.join(',') }));
const TYPES = Object.entries(eventTypeLabels)
  .filter(([type]) => type !== 'jobwire.ping')
  .map(([value, label]) => ({ label, value }))
  .sort((a, b) => a.label.localeCompare(b.label));

/** Separate from the list, which renders up to ten times a second. */
const Filters = memo(function Filters() {
  const [read] = useParams();
  const { data: accounts = [] } = useInRegion(useAccounts());
  const types = read('types') ?? '';
  const ids = accounts.map(({ id }) => id);
  const known = types === '' || [...GROUPS, ...TYPES].some(({ value }) => value === types);
  return (
    <div className={css.filters}>
      <FilterSelect
        param="types"
        aria-label="Event type"
        size="xs"
        data={[
          { value: '', label: 'All events' },
          ...(known ? [] : [{ value: types, label: types }]),
          { group: 'Groups', items: GROUPS },
          { group: 'Types', items: TYPES },
        ]}
      />
      <FilterSelect
        param="account"
        aria-label="Account"
        size="xs"
        data={[{ value: '', label: 'All accounts' }, ...includeSelected(read('account'), ids)]}
      />
      <FilterInput
        param="text"
        aria-label="Search events"
        placeholder="Text, job or order number"
        size="xs"
        type="search"
      />
    </div>
  );
});

/** Warnings: connection lost, events missing. */
function StreamProblems({ live }: { readonly live: StreamState }) {
  const { connection, rows } = live;
  const [known, setKnown] = useState(0);
  const gap = rows.findLast((row) => row.kind === 'gap' && row.number > known);
  return (
    <>
      {connection.phase === 'lost' ? (
        <Note tone="bad">
          Connection lost at <Timestamp at={new Date(connection.since).toISOString()} as="clock" />:{' '}
          {connection.failureReason} Missed events are loaded when the connection returns.
        </Note>
      ) : null}
      {gap?.kind === 'gap' ? (
        <Note
          tone="bad"
          live
          actions={
            <Button size="compact-xs" onClick={() => setKnown(gap.number)}>
              Dismiss
            </Button>
          }
        >
          Events are missing in this list: {gap.reason}
        </Note>
      ) : null}
    </>
  );
}

function EmptyList({ filtered }: { readonly filtered: boolean }) {
  const [, change] = useParams();
  if (!filtered)
    return <Empty>No events yet. Changes of jobs and accounts appear here as they are detected.</Empty>;
  return (
    <Empty>
      No recent events match the filters. New matching events appear here.{' '}
      <Button
        size="compact-xs"
        onClick={() => change({ types: undefined, account: undefined, text: undefined })}
      >
        Clear filters
      </Button>
    </Empty>
  );
}

function List(props: {
  readonly rows: readonly Row[];
  readonly scroller: React.RefObject<HTMLElement | null>;
  readonly hold: (reason: HoldReason, on: boolean) => void;
  readonly children: ReactNode;
}) {
  const { rows, scroller, hold } = props;
  const narrow = useNarrow();
  const height = narrow ? ROW_PX.narrow : ROW_PX.wide;
  const at = (index: number): Row | undefined => rows[rows.length - 1 - index];
  const virtual = useVirtualizer({
    count: rows.length,
    getScrollElement: () => scroller.current,
    estimateSize: () => height,
    overscan: OVERSCAN,
    getItemKey: (index) => at(index)?.number ?? index,
  });
  // biome-ignore lint/correctness/useExhaustiveDependencies: measures again when the row height changes
  useEffect(() => virtual.measure(), [height]);
  const hoverTimer = useRef<ReturnType<typeof setTimeout> | undefined>(undefined);
  const hover = (on: boolean): void => {
    clearTimeout(hoverTimer.current);
    hold('hovered', on);
    if (on) hoverTimer.current = setTimeout(() => hold('hovered', false), HOVER_MS);
  };
  useEffect(() => () => clearTimeout(hoverTimer.current), []);
  const href = useHref();
  const list = useRovingFocus('li');
  return (
    <section
      ref={scroller}
      className={css.scroller}
      aria-label="Events, newest first"
      // A scrolling element must be reachable by keyboard, if none of its content is.
      tabIndex={rows.length === 0 ? 0 : -1}
      onScroll={({ currentTarget }) => hold('scrolled', currentTarget.scrollTop > 1)}
      onPointerMove={({ pointerType }) => {
        if (pointerType === 'mouse') hover(true);
      }}
      onPointerLeave={() => hover(false)}
      onFocus={({ target, currentTarget }) =>
        hold('focused', target !== currentTarget && target.matches(':focus-visible'))
      }
      onBlur={() => hold('focused', false)}
    >
      {props.children}
      {/* biome-ignore-start lint/a11y/noRedundantRoles: some screen readers ignore lists without bullets */}
      <ol
        ref={list}
        className={`${ui.list} ${css.list}`}
        role="list"
        aria-label="Events"
        style={{ height: virtual.getTotalSize() }}
      >
        {virtual.getVirtualItems().map(({ index, key, start }) => {
          const row = at(index);
          return row === undefined ? null : (
            <li
              key={key}
              className={css.row}
              style={{ transform: `translateY(${start}px)`, [narrow ? 'minHeight' : 'height']: height }}
              // On narrow screens, texts wrap.
              ref={narrow ? virtual.measureElement : undefined}
              data-index={index}
              aria-posinset={index + 1}
              aria-setsize={rows.length}
              data-number={row.number}
            >
              <RowContent row={row} href={href} />
            </li>
          );
        })}
      </ol>
      {/* biome-ignore-end lint/a11y/noRedundantRoles: as above */}
    </section>
  );
}

/** Memoized: not rendered again when the list moves. */
const RowContent = memo(function RowContent({ row, href }: { readonly row: Row; readonly href: Href }) {
  useDay();
  if (row.kind === 'gap') return <div className={css.gap}>Events are missing here: {row.reason}</div>;
  const { event } = row;
  const { tone } = describeEvent(event);
  const { account } = event.data;
  const number = getJobNumber(event);
  const { description } = (event.data.job ?? {}) as { description?: string | null };
  return (
    <div className={css.content} data-tone={tone} data-event={event.id}>
      <span className={css.time}>
        <Timestamp at={event.time} as={isToday(event.time) ? 'clock' : 'short'} />
      </span>
      <span className={`${ui.ellipsis} ${css.account}`}>{account ?? event.data.region}</span>
      <span className={`${ui.ellipsis} ${css.job}`}>
        {number === undefined || account === undefined ? (
          <SubjectLink event={event} href={href} />
        ) : (
          <Link href={href(jobHref(account, number))}>{number}</Link>
        )}
      </span>
      <span
        className={`${ui.ellipsis} ${css.text}`}
        title={description ? toPlainText(description) : undefined}
      >
        {tone === 'bad' || tone === 'warn' ? <Hidden>Problem: </Hidden> : null}
        <EventSummary event={event} />
        {description && event.type !== 'job.created' ? (
          <bdi className={css.description}>{toPlainText(description)}</bdi>
        ) : null}
      </span>
    </div>
  );
});

type Href = ReturnType<typeof useHref>;

/** Link to the subject of an event without a single job. */
function SubjectLink({ event, href }: { readonly event: JobEvent; readonly href: Href }) {
  const { account, endpoint, orderGroup, region } = event.data as {
    readonly account?: string;
    readonly endpoint?: string;
    readonly orderGroup?: string;
    readonly region: string;
  };
  if (endpoint !== undefined) return <Link href={href(endpointHref(region, endpoint))}>endpoint</Link>;
  if (orderGroup !== undefined && account !== undefined)
    return <Link href={href('/jobs', { account, orderGroup })}>group</Link>;
  if (account !== undefined) return <Link href={href(accountHref(account))}>account</Link>;
  return <Link href={href('/health')}>region</Link>;
}
