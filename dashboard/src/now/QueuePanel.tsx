/** The attention queue: what needs attention, ranked, with actions in each row. */
import {
  BellAlertIcon,
  BoltSlashIcon,
  ClockIcon,
  EnvelopeIcon,
  ExclamationTriangleIcon,
  FlagIcon,
  SignalSlashIcon,
} from '@heroicons/react/16/solid';
import { Button } from '@mantine/core';
import { keepPreviousData, useQuery } from '@tanstack/react-query';
import { type KeyboardEvent, memo, type ReactNode, useEffect, useId, useRef, useState } from 'react';
import { Link, useLocation } from 'wouter';
import type { AttentionPage } from '../../../client/index.ts';
import { useActions } from '../actions.ts';
import { type Selection, useSelection } from '../bulk/selection.ts';
import { Empty, Failure, Hidden, Skeleton } from '../components.tsx';
import { toPlainText } from '../events.ts';
import { FilterSelect, includeSelected } from '../filters.tsx';
import { loadLater } from '../load-later.tsx';
import { ATTENTION_MS, useApi } from '../queries.ts';
import { useSession } from '../session.ts';
import { useNow } from '../stream-hooks.ts';
import { formatCount, type Tone } from '../texts.ts';
import { Timestamp, ZoneName } from '../times.tsx';
import ui from '../ui.module.css';
import { useHref, useParams, useRegion } from '../urls.ts';
import css from './QueuePanel.module.css';
import {
  type AttentionItem,
  explainRank,
  FILTERS,
  formatAge,
  formatCustomer,
  formatImpact,
  getFailure,
  getImpactHref,
  getSubjectHref,
  type ListAttentionState,
  listRowActions,
} from './queue.ts';
import { type TriageDialog, TriageMenu } from './TriageMenu.tsx';
import { ViewsMenu } from './ViewsMenu.tsx';

/** Loaded when they are first opened. */
const LastResponse = loadLater(() => import('./LastResponse.tsx'));
const NotifyDialog = loadLater(() => import('./NotifyDialog.tsx'));
/** Loaded with the first selected item. */
const QueueBulkBar = loadLater(() => import('./QueueBulkBar.tsx'));

/** Number of items on a page, and on the wall display. */
const ITEMS = { page: 50, wall: 12 };
/** Maximum number of items in a response. */
const MAX_ITEMS = 500;
/** Actions with a button of their own. The others are in the menu of the row. */
const BUTTONS = 3;

/** Labels, severity and icons of the kinds, in the order of the filter. */
const KINDS = {
  job_late: { label: 'Late jobs', tone: 'bad', Icon: ClockIcon },
  job_needs_attention: { label: 'Statuses that need attention', tone: 'warn', Icon: FlagIcon },
  job_stalled: { label: 'Stalled jobs', tone: 'warn', Icon: FlagIcon },
  job_at_risk: { label: 'Jobs at risk', tone: 'warn', Icon: ClockIcon },
  job_due_soon: { label: 'Due soon', tone: 'plain', Icon: ClockIcon },
  endpoint_disabled: { label: 'Disabled endpoints', tone: 'bad', Icon: BoltSlashIcon },
  endpoint_failing: { label: 'Failing endpoints', tone: 'bad', Icon: BoltSlashIcon },
  events_dead: { label: 'Dead events', tone: 'bad', Icon: ExclamationTriangleIcon },
  events_parked: { label: 'Parked events', tone: 'warn', Icon: ExclamationTriangleIcon },
  account_not_observed: { label: 'Accounts not observed', tone: 'bad', Icon: SignalSlashIcon },
  region_outage: { label: 'Outages', tone: 'bad', Icon: BellAlertIcon },
  message_undelivered: { label: 'Undelivered messages', tone: 'warn', Icon: EnvelopeIcon },
} as const satisfies Record<AttentionItem['kind'], { label: string; tone: Tone; Icon: typeof ClockIcon }>;

/** Loads the items that match the filters in the address. */
function useQueue() {
  const api = useApi();
  const region = useRegion() ?? undefined;
  const [read] = useParams();
  const [pages, setPages] = useState(1);
  const limit = read('wall') === undefined ? ITEMS.page * pages : ITEMS.wall;
  const query = {
    ...{ region, kind: read('kind'), account: read('account'), assignee: read('assignee') },
    state: (read('state') ?? 'open') as ListAttentionState,
    limit: Math.min(MAX_ITEMS, limit),
  };
  const result = useQuery({
    queryKey: ['attention', 'queue', query],
    queryFn: ({ signal }) => api.get('/v1/attention', { params: { query }, signal }),
    refetchInterval: ATTENTION_MS,
    placeholderData: keepPreviousData,
  });
  return { ...result, more: () => setPages((shown) => shown + 1) };
}

/** The queue. `children` follow it once its height is known, so that the layout does not shift. */
export function QueuePanel({ children }: { readonly children: ReactNode }) {
  const { data, error, refetch, more, isPlaceholderData } = useQueue();
  const runner = useActions([['attention']]);
  const selects = useSession().hasRole('operate');
  const selection = useSelection(data?.items.map(({ id }) => id) ?? []);
  const [read] = useParams();
  const isWall = read('wall') !== undefined;
  const [isUsed, setIsUsed] = useState(false);
  if (selection.selected.size > 0 && !isUsed) setIsUsed(true);
  if (data === undefined)
    return (
      <section className={`${ui.box} ${css.panel}`} aria-label="Needs attention">
        <Filters items={[]} />
        {error ? (
          <Failure error={error} again={refetch} />
        ) : (
          <div className={css.waiting}>
            <Skeleton lines={8} />
          </div>
        )}
      </section>
    );
  const { items, total, counts, rule } = data;
  return (
    <>
      <section
        className={`${ui.box} ${css.panel}`}
        aria-label="Needs attention"
        aria-busy={isPlaceholderData}
      >
        <Filters items={items} />
        {error ? <Failure error={error} again={refetch} /> : null}
        {runner.failure && !items.some((item) => isNamed(item, runner.failed)) ? (
          <Failure error={runner.failure} />
        ) : null}
        {items.length === 0 && !error ? <EmptyQueue page={data} /> : null}
        <div className={css.rows} data-outdated={isPlaceholderData || undefined}>
          <Rows items={items} rule={rule} runner={runner} selection={selects ? selection : undefined} />
          {isUsed ? <QueueBulkBar items={items} selection={selection} /> : null}
        </div>
        <p className={`${ui.hint} ${css.foot}`}>
          {isWall ? `${formatCount(total, 'item')} in all. ` : null}
          {items.length < total && !isWall ? (
            <>
              First {items.length} of {total.toLocaleString()}.{' '}
              {items.length < MAX_ITEMS ? (
                <Button size="compact-xs" onClick={more}>
                  Show more
                </Button>
              ) : (
                'Select filters to see others.'
              )}{' '}
            </>
          ) : null}
          {counts.complete
            ? null
            : 'There are more items than Jobwire lists at once. These are the most urgent. '}
          <Hiding counts={counts} />
          Checked <Timestamp at={data.asOf} as="clock" /> <ZoneName />.
        </p>
      </section>
      {children}
    </>
  );
}

/** Whether an action is of an item: its name begins with the id of the item. */
const isNamed = ({ id }: AttentionItem, name: string | null): boolean => name?.split(' ')[0] === id;

/** Numbers of hidden items, with links to them. */
function Hiding({ counts }: Pick<AttentionPage, 'counts'>) {
  const href = useHref();
  const parts = (['snoozed', 'acknowledged'] as const).filter((state) => counts[state] > 0);
  if (parts.length === 0) return null;
  return (
    <>
      Hidden:{' '}
      {parts.map((state, at) => (
        <span key={state}>
          {at > 0 ? ', ' : ''}
          <Link href={href('/', { state })}>
            {counts[state].toLocaleString()} {state}
          </Link>
        </span>
      ))}
      .{' '}
    </>
  );
}

function Filters({ items }: { readonly items: readonly AttentionItem[] }) {
  const [read] = useParams();
  const known = (values: readonly (string | null)[]): string[] =>
    [...new Set(values.filter((value) => value !== null))].sort();
  const assignees = known(items.map(({ assignee }) => assignee));
  const selected = read('assignee');
  return (
    <div className={css.filters}>
      <FilterSelect
        param="kind"
        aria-label="Kind"
        size="xs"
        data={[
          { value: '', label: 'All kinds' },
          ...Object.entries(KINDS).map(([value, { label }]) => ({ value, label })),
        ]}
      />
      <FilterSelect
        param="account"
        aria-label="Account"
        size="xs"
        data={[
          { value: '', label: 'All accounts' },
          ...includeSelected(read('account'), known(items.map(({ account }) => account))),
        ]}
      />
      <FilterSelect
        param="assignee"
        aria-label="Assignee"
        size="xs"
        data={[
          { value: '', label: 'Anyone' },
          { value: 'none', label: 'Unassigned' },
          ...includeSelected(selected === 'none' ? undefined : selected, assignees),
        ]}
      />
      <FilterSelect
        param="state"
        aria-label="State"
        size="xs"
        data={[
          { value: '', label: 'Open' },
          { value: 'snoozed', label: 'Snoozed' },
          { value: 'acknowledged', label: 'Acknowledged' },
          { value: 'all', label: 'All states' },
        ]}
      />
      <ViewsMenu />
    </div>
  );
}

/** Says what is watched, and that nothing is listed. */
function EmptyQueue({ page: { watched, counts } }: { readonly page: AttentionPage }) {
  const [read, change] = useParams();
  const isFiltered = FILTERS.some((name) => read(name) !== undefined);
  if (isFiltered)
    return (
      <Empty>
        No items match the filters. {formatCount(counts.open, 'item is', 'items are')} open in total.{' '}
        <Button
          size="compact-xs"
          onClick={() => change(Object.fromEntries(FILTERS.map((name) => [name, undefined])))}
        >
          Clear filters
        </Button>
      </Empty>
    );
  const { regions, accounts, endpoints, messages } = watched;
  if (accounts === 0) return <Empty>There are no accounts to watch.</Empty>;
  return (
    <Empty>
      {counts.open === 0 ? 'Nothing needs attention. ' : ''}Watched: {formatCount(accounts, 'account')} and{' '}
      {formatCount(endpoints, 'endpoint')} in {regions.map((region) => region.toUpperCase()).join(', ')}. Jobs
      appear here if they are late, stalled, at risk, due soon or in a status that needs attention.{' '}
      {messages
        ? 'Failing deliveries and polls, parked and dead events, and undelivered messages'
        : 'Failing deliveries and polls, and parked and dead events'}{' '}
      appear here too.
    </Empty>
  );
}

/** The rows. One row is in the tab order; the arrow keys move between rows. */
function Rows(props: {
  readonly items: readonly AttentionItem[];
  readonly rule: string;
  readonly runner: ReturnType<typeof useActions>;
  readonly selection: Selection | undefined;
}) {
  const { items: listed, rule, runner, selection } = props;
  const list = useRef<HTMLOListElement>(null);
  const [current, setCurrent] = useState<string | null>(null);
  // One at a time: an open response sends requests.
  const [opened, setOpened] = useState<Opened | null>(null);
  const isDelisted =
    opened !== null && opened.what !== 'response' && !listed.some(({ id }) => id === opened.item.id);
  // The row of an open dialog stays, so that no input is lost.
  const items = isDelisted ? [...listed, opened.item] : listed;
  const active = items.find(({ id }) => id === current)?.id ?? items[0]?.id;
  /** Index of the row that contains the focus. */
  const focused = useRef<number | null>(null);
  const focusRow = (id: string, control: string): void => {
    const rows = [...(list.current?.querySelectorAll<HTMLElement>('[data-item]') ?? [])];
    const row = rows.find(({ dataset }) => dataset.item === id);
    row?.querySelector<HTMLElement>(control)?.focus();
  };
  // The focus is lost if its row is removed or its button is disabled.
  useEffect(() => {
    if (focused.current === null || document.activeElement !== document.body) return;
    const next = items.find(({ id }) => id === current) ?? items[focused.current] ?? items.at(-1);
    if (next) focusRow(next.id, 'a');
  });
  const onKeyDown = (event: KeyboardEvent): void => {
    const at = items.findIndex(({ id }) => id === active);
    const to = { ArrowDown: at + 1, ArrowUp: at - 1, Home: 0, End: items.length - 1 }[event.key];
    const next = to === undefined ? undefined : items[to];
    // Within a menu or a dialog, the keys have another meaning.
    const isRow =
      event.target instanceof Element &&
      list.current?.contains(event.target) &&
      !event.target.closest('[data-details]');
    if (next === undefined || !isRow) return;
    event.preventDefault();
    setCurrent(next.id);
    focusRow(next.id, event.target instanceof HTMLInputElement ? 'input' : 'a');
  };
  return (
    // biome-ignore lint/a11y/noRedundantRoles: some screen readers ignore lists without bullets
    <ol ref={list} className={`${ui.list} ${css.list}`} role="list" aria-label="Items" onKeyDown={onKeyDown}>
      {items.map((item, at) => (
        <li
          key={item.id}
          className={css.row}
          data-item={item.id}
          data-tone={KINDS[item.kind].tone}
          data-selected={selection?.selected.has(item.id) || undefined}
          onFocus={() => {
            setCurrent(item.id);
            focused.current = at;
          }}
          onBlur={({ target }) => {
            if (target.isConnected && !target.matches(':disabled')) focused.current = null;
          }}
        >
          <span className={css.select}>
            {selection ? (
              <input
                type="checkbox"
                className={ui.checkbox}
                tabIndex={item.id === active ? 0 : -1}
                aria-label={`Select ${item.subject.name}`}
                {...selection.checkbox(item.id)}
              />
            ) : null}
          </span>
          <Row
            {...{ item, rule, runner, setOpened }}
            opened={opened?.item.id === item.id ? opened.what : null}
            tabIndex={item.id === active ? 0 : -1}
          />
        </li>
      ))}
    </ol>
  );
}

function Age({ item }: { readonly item: AttentionItem }) {
  return formatAge(item, useNow(10_000));
}

/** Open part of an item: the last response, the form of a note to the customer, or a dialog of the menu. */
interface Opened {
  readonly item: AttentionItem;
  readonly what: 'response' | 'notify' | TriageDialog;
}

/** An item without its checkbox. Hundreds of them are rendered again only if they change. */
const Row = memo(function Row(props: {
  readonly item: AttentionItem;
  readonly rule: string;
  readonly runner: ReturnType<typeof useActions>;
  readonly opened: Opened['what'] | null;
  readonly setOpened: (opened: Opened | null) => void;
  readonly tabIndex: 0 | -1;
}) {
  const { item, rule, runner, opened, setOpened, tabIndex } = props;
  const api = useApi();
  const href = useHref();
  const [, go] = useLocation();
  const { kind, subject, account, cause, state, assignee, note } = item;
  const { Icon, label } = KINDS[kind];
  const customer = formatCustomer(item);
  const impact = formatImpact(item);
  const impactHref = getImpactHref(item);
  const actions = listRowActions(item);
  const details = useId();
  const perform = (action: (typeof actions)[number]) => {
    if (action.opens === 'page') return go(href(action.path));
    if (action.opens) return setOpened(opened === action.opens ? null : { item, what: action.opens });
    const name = `${item.id} ${action.label}`;
    const act = () => action.run(api);
    if (action.confirmation) runner.confirm({ ...action.confirmation, act, done: action.done });
    else void runner.run(name, act, action.done);
  };
  return (
    <>
      <span className={css.kind} title={`${label}\n${explainRank(item)}\n\n${rule}`}>
        <Icon width={16} aria-hidden />
        <Hidden>{label}</Hidden>
      </span>
      <span className={css.subject}>
        <Link href={href(getSubjectHref(item))} tabIndex={tabIndex}>
          {subject.name}
        </Link>
        <span className={`${ui.hint} ${ui.ellipsis}`}>
          {[account === subject.id ? null : account, subject.orderNumber && toPlainText(subject.orderNumber)]
            .filter(Boolean)
            .join(' · ') || item.region.toUpperCase()}
        </span>
      </span>
      <span className={css.cause}>
        <bdi>{toPlainText(cause.summary)}</bdi>
        {note === null ? null : <span className={ui.hint}>Note: {note}</span>}
        {item.returned === 'changed' ? <span className={ui.hint}>Changed since it was hidden.</span> : null}
      </span>
      <span className={css.age} title={explainRank(item)}>
        <Age item={item} />
      </span>
      <span className={`${ui.hint} ${css.impact}`}>
        {impactHref === undefined || impact === '' ? (
          impact
        ) : (
          <Link href={href(impactHref)} tabIndex={tabIndex}>
            {impact}
          </Link>
        )}
      </span>
      <span className={`${ui.hint} ${css.customer}`} title={customer?.title}>
        {customer?.label}
      </span>
      <span className={`${ui.hint} ${ui.ellipsis} ${css.assignee}`}>
        {[assignee, state === 'open' ? null : state].filter(Boolean).join(', ')}
      </span>
      <span className={css.actions}>
        {actions.slice(0, BUTTONS).map((action) => (
          <Button
            key={action.label}
            size="compact-xs"
            tabIndex={tabIndex}
            loading={runner.busy === `${item.id} ${action.label}`}
            disabled={runner.busy !== null}
            {...(action.opens === 'response'
              ? { 'aria-expanded': opened === 'response', 'aria-controls': details }
              : {})}
            onClick={() => perform(action)}
          >
            {action.label}
            <Hidden> {subject.name}</Hidden>
          </Button>
        ))}
        <TriageMenu
          item={item}
          runner={runner}
          tabIndex={tabIndex}
          dialog={opened}
          setDialog={(what) => setOpened(what && { item, what })}
          others={actions.slice(BUTTONS).map((action) => ({ ...action, perform: () => perform(action) }))}
        />
      </span>
      {runner.failure && isNamed(item, runner.failed) ? (
        <div className={css.details} data-details>
          <Failure error={runner.failure} />
        </div>
      ) : null}
      {opened === 'response' ? (
        <div id={details} className={css.details} data-details>
          <LastResponse
            region={item.region}
            id={subject.id}
            outcome={getFailure(item)}
            isDisabled={cause.code === 'disabled'}
          />
        </div>
      ) : null}
      {opened === 'notify' ? (
        <NotifyDialog
          account={account ?? ''}
          jobNumber={String(subject.jobNumber)}
          status={cause.status}
          close={() => setOpened(null)}
        />
      ) : null}
    </>
  );
});
