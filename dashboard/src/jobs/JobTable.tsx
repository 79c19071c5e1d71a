// biome-ignore-all lint/a11y/useSemanticElements: the grid is virtualized, which a table cannot be
// biome-ignore-all lint/a11y/useFocusableInteractive: the rows take the focus
/** Virtualized grid of the jobs found. */
import { useWindowVirtualizer } from '@tanstack/react-virtual';
import {
  type KeyboardEvent,
  type MouseEvent,
  memo,
  useEffect,
  useLayoutEffect,
  useRef,
  useState,
} from 'react';
import { useLocation } from 'wouter';
import { Hidden, useNarrow } from '../components.tsx';
import { UpstreamDate, ZoneName } from '../times.tsx';
import ui from '../ui.module.css';
import { buildHref, jobHref, useParams, useRegion } from '../urls.ts';
import css from './Jobs.module.css';
import { RiskBadge } from './RiskBadge.tsx';
import { formatHours, formatShortReason, formatStay, formatTiming } from './risk.ts';
import type { Row, SearchResult, Sort } from './search.ts';

const ROW_PX = { wide: 38, narrow: 88 };
/** More rows are requested when fewer than this remain below the visible ones. */
const AHEAD = 100;
const toRowId = ({ account, job }: Row): string => `${account}/${job.jobNumber}`;
/** Id of the selected row, for the return to the list. */
let lastActive: string | null = null;

/** Grid: arrows, Page Up, Page Down, Home and End select a row; Enter opens it. */
export function JobTable(props: {
  readonly result: SearchResult;
  readonly requestRows: (rows: number) => void;
  /** Whether no matching job is dispatched: the columns about the dispatch are omitted. */
  readonly isUndispatched: boolean;
}) {
  const { result, requestRows, isUndispatched } = props;
  const { rows } = result;
  const body = useRef<HTMLDivElement>(null);
  const narrow = useNarrow();
  const [top, setTop] = useState(0);
  const [active, setActive] = useState(lastActive);
  useEffect(() => {
    lastActive = active;
  }, [active]);
  const toFocus = useRef<number | null>(null);
  const [, navigate] = useLocation();
  const region = useRegion() ?? undefined;
  const size = narrow ? ROW_PX.narrow : ROW_PX.wide;

  // The content above the rows can change its height.
  useLayoutEffect(() => {
    const measure = (): void => {
      const { current } = body;
      if (current) setTop(Math.round(current.getBoundingClientRect().top + window.scrollY));
    };
    measure();
    const observer = new ResizeObserver(measure);
    observer.observe(document.body);
    return () => observer.disconnect();
  }, []);

  const found = rows.findIndex((row) => toRowId(row) === active);
  const here = rows.length === 0 ? -1 : Math.max(0, found);
  const virtualizer = useWindowVirtualizer({
    count: rows.length,
    estimateSize: () => size,
    overscan: 12,
    scrollMargin: top,
    // The page header and the column headers cover the first rows.
    scrollPaddingStart: 100,
    // A bar at the bottom covers the last rows, except on wide screens.
    scrollPaddingEnd: 80,
    // The focused row stays rendered, or the focus would be lost.
    rangeExtractor: ({ startIndex, endIndex, overscan, count }) => {
      const first = Math.max(0, startIndex - overscan);
      const last = Math.min(count - 1, endIndex + overscan);
      const indexes = Array.from({ length: Math.max(0, last - first + 1) }, (_, at) => first + at);
      if (here >= 0 && here < first) indexes.unshift(here);
      if (here > last) indexes.push(here);
      return indexes;
    },
  });
  // biome-ignore lint/correctness/useExhaustiveDependencies: measures again when the row height changes
  useEffect(() => virtualizer.measure(), [virtualizer, size]);

  const items = virtualizer.getVirtualItems();
  const seen = items.reduce((last, { index }) => (index === here ? last : Math.max(last, index)), 0);
  useEffect(() => {
    if (seen + AHEAD > rows.length) requestRows(rows.length + 3 * AHEAD);
  }, [seen, rows.length, requestRows]);

  useEffect(() => {
    if (toFocus.current === null) return;
    const row = body.current?.querySelector<HTMLElement>(`[data-index="${toFocus.current}"]`);
    if (!row) return;
    toFocus.current = null;
    row.focus({ preventScroll: true });
  });

  function move(event: KeyboardEvent): void {
    if (event.target instanceof Element && event.target.closest('button')) return;
    const page = Math.max(1, Math.floor((window.innerHeight - 120) / size) - 1);
    const steps: Partial<Record<string, number>> = {
      ...{ ArrowDown: here + 1, ArrowUp: here - 1, PageDown: here + page, PageUp: here - page },
      ...{ Home: 0, End: rows.length - 1 },
    };
    const step = steps[event.key];
    const row = rows[here];
    if (event.key === 'Enter' && row && !event.ctrlKey && !event.metaKey) {
      event.preventDefault();
      navigate(buildHref(jobHref(row.account, row.job.jobNumber), { region }));
      return;
    }
    if (step === undefined || event.ctrlKey || event.metaKey || event.altKey) return;
    event.preventDefault();
    const to = Math.max(0, Math.min(rows.length - 1, step));
    toFocus.current = to;
    if (rows[to]) setActive(toRowId(rows[to]));
    virtualizer.scrollToIndex(to, { align: 'auto' });
  }

  function follow(event: MouseEvent): void {
    const link = event.target instanceof Element ? event.target.closest('a') : null;
    if (!link || event.button !== 0 || event.ctrlKey || event.metaKey || event.shiftKey || event.altKey)
      return;
    event.preventDefault();
    navigate(link.getAttribute('href') ?? '/jobs');
  }

  return (
    <div
      className={`${ui.box} ${css.table}`}
      role="grid"
      aria-label="Jobs"
      aria-rowcount={result.complete ? rows.length + 1 : -1}
      aria-busy={result.reading || undefined}
      data-undispatched={isUndispatched || undefined}
      tabIndex={-1}
      onKeyDown={move}
      onClick={follow}
    >
      <div role="rowgroup" className={css.head}>
        <div role="row" aria-rowindex={1} className={css.row}>
          <Column name="Job" sort="number" />
          <Column name="Account" />
          <Column name="Description" />
          <Column name="Order" />
          <Column name="Status" />
          <Column name="Due" sort="due" isTime />
          <Column name="Risk details" />
          <Column name="Dispatched" isTime />
          <Column name="Parcels" />
        </div>
      </div>
      <div role="rowgroup" ref={body} className={css.rows} style={{ height: virtualizer.getTotalSize() }}>
        {items.map(({ index, start }) => {
          const row = rows[index];
          return row ? (
            <JobRow
              key={toRowId(row)}
              row={row}
              index={index}
              y={start - top}
              active={index === here}
              region={region}
              onFocus={setActive}
            />
          ) : null;
        })}
      </div>
    </div>
  );
}

/** Column header; a button if the column is sortable. `isTime`: the name is followed by the time zone. */
function Column(props: { readonly name: string; readonly sort?: Sort; readonly isTime?: boolean }) {
  const { name, sort, isTime } = props;
  const [read, change] = useParams();
  const sorted = (read('sort') ?? 'due') === sort;
  const label = isTime ? (
    <>
      {name}, <ZoneName />
    </>
  ) : (
    name
  );
  return (
    <div role="columnheader" className={css.cell} {...(sorted ? { 'aria-sort': 'ascending' as const } : {})}>
      {sort === undefined ? (
        label
      ) : (
        <button
          type="button"
          className={css.sort}
          title={sorted ? undefined : `Sort by ${sort === 'due' ? 'due day' : 'job number'}`}
          onClick={() => change({ sort: sort === 'due' ? undefined : sort })}
        >
          {label}
          <span aria-hidden>{sorted ? ' ↑' : ''}</span>
        </button>
      )}
    </div>
  );
}

const JobRow = memo(function JobRow(props: {
  readonly row: Row;
  readonly index: number;
  readonly y: number;
  readonly active: boolean;
  readonly region: string | undefined;
  readonly onFocus: (id: string) => void;
}) {
  const { row, index, y, active, region, onFocus } = props;
  const { account, job, gone } = row;
  return (
    <div
      role="row"
      className={css.row}
      data-index={index}
      data-gone={gone || undefined}
      aria-rowindex={index + 2}
      tabIndex={active ? 0 : -1}
      style={{ transform: `translateY(${y}px)` }}
      onFocus={() => onFocus(toRowId(row))}
    >
      <Cell area="job">
        {/* The grid handles the click: a Link component in each row is too slow. */}
        <a href={buildHref(jobHref(account, job.jobNumber), { region })} tabIndex={-1}>
          {job.jobNumber}
        </a>
      </Cell>
      <Cell area="account">
        <Text text={account} />
      </Cell>
      <Cell area="description">
        <Text text={job.description} />
      </Cell>
      <Cell area="order">
        <Text text={job.orderNumber} />
      </Cell>
      <Cell area="status">
        {gone ? <span className={css.goneWord}>No longer matches: </span> : null}
        <Text text={OUTCOME_LABELS[job.outcome ?? 'open'] ?? job.status} />
        <Stay job={job} />
      </Cell>
      <Cell area="due">
        {job.dateDue === null ? <Text text={null} /> : <UpstreamDate at={job.dateDue} />}
        <RiskBadge job={job} />
      </Cell>
      <Cell area="risk">
        <Reason job={job} />
      </Cell>
      <Cell area="dispatched">
        {job.dateOut === null ? <Text text={null} /> : <UpstreamDate at={job.dateOut} />}
      </Cell>
      <Cell area="parcels">{job.tracking.length > 0 ? job.tracking.length : <Text text={null} />}</Cell>
    </div>
  );
});

/** Time in the current status, with the usual time in the tooltip. */
function Stay({ job }: { readonly job: Row['job'] }) {
  const { inStatus } = job;
  if (!inStatus) return null;
  const { hours, usual, sinceEarliest } = inStatus;
  return (
    <span className={css.stay} title={`${formatStay(job)} in this status`}>
      {sinceEarliest === null ? '≥ ' : ''}
      {formatHours(hours)}
      {usual ? ` / ${formatHours(usual.p50Hours)}` : ''}
      <Hidden> in this status{usual ? ', compared with the usual time' : ''}</Hidden>
    </span>
  );
}

/** Short reason for the risk of a job that is late or at risk, complete in the tooltip. */
function Reason({ job }: { readonly job: Row['job'] }) {
  const text = formatShortReason(job);
  return text === '' ? <Text text={null} /> : <bdi title={formatTiming(job)}>{text}</bdi>;
}

/** The outcome of a delisted job replaces its last status. */
const OUTCOME_LABELS: Partial<Record<string, string>> = {
  cancelled: 'Cancelled (inferred)',
  unavailable: 'Unavailable (inferred)',
};

function Cell({ area, children }: { readonly area: string; readonly children: React.ReactNode }) {
  return (
    <div role="gridcell" className={css.cell} data-area={area}>
      {children}
    </div>
  );
}

/** Customer text on one line, complete in the tooltip. */
function Text({ text }: { readonly text: string | null }) {
  if (text === null || text === '')
    return (
      <>
        <span className={ui.quiet} aria-hidden>
          –
        </span>
        <Hidden>none</Hidden>
      </>
    );
  return <bdi title={text}>{text}</bdi>;
}
