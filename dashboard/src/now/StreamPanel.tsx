/** The live events: newest on top, only what is seen is drawn, and it stands still for whoever reads. */
import { Button, NativeSelect, TextInput } from '@mantine/core';
import { IconPlayerPauseFilled, IconPlayerPlayFilled } from '@tabler/icons-react';
import { useVirtualizer } from '@tanstack/react-virtual';
import { memo, type ReactNode, useCallback, useEffect, useId, useMemo, useRef, useState } from 'react';
import { Link } from 'wouter';
import type { JobEvent } from '../../../shared/events/event.ts';
import { Hidden, useNarrow } from '../components.tsx';
import { EventSummary } from '../EventSummary.tsx';
import { describeEvent, eventTypeGroups, eventTypeLabels, getJobNumber, toPlainText } from '../events.ts';
import { useAccounts } from '../queries.ts';
import type { StreamState } from '../stream.ts';
import { useNow, useStreamState } from '../stream-hooks.ts';
import { isToday, Timestamp } from '../times.tsx';
import { accountHref, buildHref, endpointHref, jobHref, useParams, useRegion } from '../urls.ts';
import { countAfter, createRowFilter, type EventFilter, type Row } from './feed.ts';
import css from './StreamPanel.module.css';

/** Rows are as high as this, in px: one line, or two where there is little room. */
const ROW_PX = { wide: 34, narrow: 58 };
/** Rows drawn beyond what is seen, so that there is no white while one scrolls. */
const OVERSCAN = 6;
/** The list stands still so long under a pointer that does not move. */
const HOVER_MS = 10_000;
/** What is typed is taken when nothing more came for so long. */
const DEBOUNCE_MS = 250;
/** A screen reader is told so often how many wait. */
const SUMMARY_MS = 30_000;

/** The stream with its filters. */
export function StreamPanel({ className }: { readonly className?: string | undefined }) {
  const id = useId();
  const live = useStreamState();
  const filter = useFilter();
  const scroller = useRef<HTMLElement>(null);
  const { held, whys, still, catchUp, goOn } = useHold(live);
  const select = useMemo(() => createRowFilter(filter), [filter]);
  const selectLive = useMemo(() => createRowFilter(filter), [filter]);
  const rows = select((held ?? live).rows);
  const waiting = held ? countAfter(selectLive(live.rows), held.count) : 0;
  // So many came meanwhile that some of them are no longer kept here.
  const more = held !== null && (live.rows[0]?.number ?? 0) > held.count + 1;
  const paused = whys.has('paused');

  const toTop = (): void => scroller.current?.scrollTo({ top: 0 });
  const toggle = useCallback(() => {
    if (!paused) return still('paused', true);
    goOn();
    scroller.current?.scrollTo({ top: 0 });
  }, [paused, still, goOn]);
  const state = paused
    ? 'Paused'
    : held
      ? 'Stands still while you read'
      : `${rows.length.toLocaleString()} shown, newest first`;
  return (
    <section className={`${css.panel} ${className ?? ''}`} aria-labelledby={id}>
      <div className={css.head}>
        <h2 id={id}>Live events</h2>
        <span className={css.state}>{live.loaded ? state : 'Loading'}</span>
        {held && waiting > 0 ? (
          <Button
            className={css.new}
            size="xs"
            radius="xl"
            onClick={() => {
              catchUp();
              toTop();
            }}
          >
            {waiting.toLocaleString()}
            {more ? '+' : ''} new
            <Hidden> {waiting === 1 ? 'event' : 'events'}: show</Hidden>
          </Button>
        ) : null}
        <PauseButton paused={paused} toggle={toggle} />
      </div>
      <Filters />
      <StreamProblems live={live} />
      <div className={css.body}>
        <Announcer paused={paused} waiting={waiting} />
        <List rows={rows} scroller={scroller} still={still}>
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
  const Icon = props.paused ? IconPlayerPlayFilled : IconPlayerPauseFilled;
  return (
    <Button
      className={css.pause}
      size="xs"
      variant={props.paused ? 'filled' : 'default'}
      leftSection={<Icon size={13} aria-hidden />}
      onClick={props.toggle}
    >
      {props.paused ? 'Resume' : 'Pause'}
    </Button>
  );
});

/** For screen readers: whether it stands still, and now and then how many wait. Events are not read out one by one. */
function Announcer({ paused, waiting }: { readonly paused: boolean; readonly waiting: number }) {
  const step = useNow(SUMMARY_MS);
  // biome-ignore lint/correctness/useExhaustiveDependencies: what waits is told now and then only
  const words = useMemo(
    () => (waiting > 0 ? `${waiting} new ${waiting === 1 ? 'event waits' : 'events wait'}.` : ''),
    [step, paused],
  );
  return (
    <div role="status">
      <Hidden>
        {paused ? 'The list of events is paused. ' : ''}
        {words}
      </Hidden>
    </div>
  );
}

type HoldReason = 'paused' | 'scrolled' | 'hovered' | 'focused';

/**
 * Has the list stand still: while it is paused, scrolled down, under a pointer that was moved, or has the focus of a
 * keyboard. It shows what there was then; all that comes meanwhile waits, and is there when it goes on.
 */
function useHold(live: StreamState) {
  const [{ whys, held }, setHold] = useState<{
    readonly whys: ReadonlySet<HoldReason>;
    readonly held: StreamState | null;
  }>(NOT_HELD);
  const drawn = useRef(live);
  useEffect(() => {
    drawn.current = live;
  });
  /** One more reason to stand still, or one less. */
  const still = useCallback((why: HoldReason, on: boolean): void => {
    setHold((old) => {
      if (old.whys.has(why) === on) return old;
      const next = new Set(old.whys);
      if (on) next.add(why);
      else next.delete(why);
      return next.size === 0 ? NOT_HELD : { whys: next, held: old.held ?? drawn.current };
    });
  }, []);
  /** Shows all there is by now; while it is paused it stands still again then. */
  const catchUp = (): void =>
    setHold(({ whys: old }) => (old.has('paused') ? { whys: new Set(['paused']), held: live } : NOT_HELD));
  const goOn = useCallback(() => setHold(NOT_HELD), []);
  return { held, whys, still, catchUp, goOn };
}

const NOT_HELD = { whys: new Set<HoldReason>(), held: null };

/** The filter that stands in the address. */
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

/** Drawn apart from the events, for they come ten times a second. */
const Filters = memo(function Filters() {
  const [read, change] = useParams();
  const region = useRegion();
  const { data: accounts = [] } = useAccounts();
  const types = read('types') ?? '';
  const account = read('account') ?? '';
  const ids = accounts.filter((one) => region === null || one.region === region).map(({ id }) => id);
  const known = types === '' || [...GROUPS, ...TYPES].some(({ value }) => value === types);
  return (
    <div className={css.filters}>
      <NativeSelect
        aria-label="What happened"
        size="xs"
        value={types}
        onChange={({ currentTarget: { value } }) => change({ types: value })}
        data={[
          { value: '', label: 'Everything' },
          ...(known ? [] : [{ value: types, label: types }]),
          { group: 'Together', items: GROUPS },
          { group: 'One kind', items: TYPES },
        ]}
      />
      <NativeSelect
        aria-label="Account"
        size="xs"
        value={account}
        onChange={({ currentTarget: { value } }) => change({ account: value })}
        data={[
          { value: '', label: 'All accounts' },
          ...(account === '' || ids.includes(account) ? ids : [account, ...ids]).map((id) => ({
            value: id,
            label: id,
          })),
        ]}
      />
      <TextFilter />
    </div>
  );
});

/** What is typed stands in the address a moment later. */
function TextFilter() {
  const [read, change] = useParams();
  const asked = read('text') ?? '';
  const [typed, setTyped] = useState(asked);
  const [told, setTold] = useState(asked);
  if (asked !== told) {
    // The address was changed by something else: a link, or a step back.
    setTold(asked);
    if (asked !== typed.trim()) setTyped(asked);
  }
  useEffect(() => {
    if (typed.trim() === asked) return;
    const timer = setTimeout(() => change({ text: typed.trim() }), DEBOUNCE_MS);
    return () => clearTimeout(timer);
  }, [typed, asked, change]);
  return (
    <TextInput
      aria-label="Text in the events"
      placeholder="Text, job or order number"
      size="xs"
      type="search"
      value={typed}
      onChange={({ currentTarget: { value } }) => setTyped(value)}
    />
  );
}

/** Says loudly what is not as it should be: no connection, or events that are missing. */
function StreamProblems({ live }: { readonly live: StreamState }) {
  const { connection, rows } = live;
  const [known, setKnown] = useState(0);
  const hole = rows.findLast((row) => row.kind === 'hole' && row.number > known);
  return (
    <>
      {connection.phase === 'lost' ? (
        <div className={css.trouble}>
          <span>
            Not live since <Timestamp at={new Date(connection.since).toISOString()} as="clock" />:{' '}
            {connection.why} What happens meanwhile will come in here without a gap.
          </span>
        </div>
      ) : null}
      {hole?.kind === 'hole' ? (
        <div className={css.trouble} role="alert">
          <span>Events are missing in this list: {hole.reason}</span>
          <Button size="compact-xs" variant="default" onClick={() => setKnown(hole.number)}>
            Understood
          </Button>
        </div>
      ) : null}
    </>
  );
}

function EmptyList({ filtered }: { readonly filtered: boolean }) {
  const [, change] = useParams();
  if (!filtered) return <p className={css.nothing}>Nothing has happened yet. What happens appears here.</p>;
  return (
    <p className={css.nothing}>
      None of the latest events fits the filter. What fits appears here.{' '}
      <Button
        size="compact-xs"
        variant="default"
        onClick={() => change({ types: undefined, account: undefined, text: undefined })}
      >
        Show all
      </Button>
    </p>
  );
}

function List(props: {
  readonly rows: readonly Row[];
  readonly scroller: React.RefObject<HTMLElement | null>;
  readonly still: (why: HoldReason, on: boolean) => void;
  readonly children: ReactNode;
}) {
  const { rows, scroller, still } = props;
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
  // biome-ignore lint/correctness/useExhaustiveDependencies: the rows' height is all that counts
  useEffect(() => virtual.measure(), [height]);
  const resting = useRef<ReturnType<typeof setTimeout> | undefined>(undefined);
  const hover = (on: boolean): void => {
    clearTimeout(resting.current);
    still('hovered', on);
    if (on) resting.current = setTimeout(() => still('hovered', false), HOVER_MS);
  };
  useEffect(() => () => clearTimeout(resting.current), []);
  const region = useRegion() ?? undefined;
  return (
    <section
      ref={scroller}
      className={css.scroller}
      aria-label="Events, newest first"
      // biome-ignore lint/a11y/noNoninteractiveTabindex: it scrolls, and a keyboard has to get at that
      tabIndex={0}
      onScroll={({ currentTarget }) => still('scrolled', currentTarget.scrollTop > 1)}
      onPointerMove={({ pointerType }) => {
        if (pointerType === 'mouse') hover(true);
      }}
      onPointerLeave={() => hover(false)}
      onFocus={({ target, currentTarget }) =>
        still('focused', target !== currentTarget && target.matches(':focus-visible'))
      }
      onBlur={() => still('focused', false)}
    >
      {props.children}
      {/* biome-ignore lint/a11y/noRedundantRoles: a list without bullets is none to some screen readers */}
      <ol className={css.list} role="list" aria-label="Events" style={{ height: virtual.getTotalSize() }}>
        {virtual.getVirtualItems().map(({ index, key, start }) => {
          const row = at(index);
          return row === undefined ? null : (
            <li
              key={key}
              className={css.row}
              style={{ transform: `translateY(${start}px)`, height }}
              aria-posinset={index + 1}
              aria-setsize={rows.length}
              data-number={row.number}
            >
              <RowContent row={row} region={region} />
            </li>
          );
        })}
      </ol>
    </section>
  );
}

/** Drawn once, however often the list around it moves. */
const RowContent = memo(function RowContent({
  row,
  region,
}: {
  readonly row: Row;
  readonly region: string | undefined;
}) {
  if (row.kind === 'hole') return <div className={css.hole}>Events are missing here: {row.reason}</div>;
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
      <span className={css.account}>{account ?? event.data.region}</span>
      <span className={css.job}>
        {number === undefined || account === undefined ? (
          <SubjectLink event={event} region={region} />
        ) : (
          <Link href={buildHref(jobHref(account, number), { region })}>{number}</Link>
        )}
      </span>
      <span className={css.words} title={description ? toPlainText(description) : undefined}>
        {tone === 'bad' || tone === 'warn' ? <Hidden>Trouble: </Hidden> : null}
        <EventSummary event={event} />
        {description && event.type !== 'job.created' ? (
          <bdi className={css.description}>{toPlainText(description)}</bdi>
        ) : null}
      </span>
    </div>
  );
});

/** Where one finds more about what concerns no single job. */
function SubjectLink({ event, region }: { readonly event: JobEvent; readonly region: string | undefined }) {
  const { account, endpoint, orderGroup } = event.data as {
    readonly account?: string;
    readonly endpoint?: string;
    readonly orderGroup?: string;
  };
  if (endpoint !== undefined)
    return <Link href={buildHref(endpointHref(event.data.region, endpoint), { region })}>endpoint</Link>;
  if (orderGroup !== undefined && account !== undefined)
    return <Link href={buildHref('/jobs', { account, orderGroup, region })}>group</Link>;
  if (account !== undefined) return <Link href={buildHref(accountHref(account), { region })}>account</Link>;
  return <Link href={buildHref('/health', { region })}>region</Link>;
}
