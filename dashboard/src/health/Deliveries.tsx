/** What was sent to an endpoint lately, and what it answered. */
import { NativeSelect } from '@mantine/core';
import { keepPreviousData, useInfiniteQuery } from '@tanstack/react-query';
import { Link } from 'wouter';
import { Badge, Empty, Failure, Panel } from '../components.tsx';
import { eventTypeLabels, toPlainText } from '../events.ts';
import { useApi } from '../queries.ts';
import { formatDuration, Timestamp } from '../times.tsx';
import { accountHref, jobHref, useParams } from '../urls.ts';
import { type Column, More, Rows, useHref } from './components.tsx';
import css from './Health.module.css';
import { endpointPath } from './queries.ts';
import { ATTEMPT_CAUSES, ATTEMPT_OUTCOMES, type Attempt, type Endpoint } from './status.ts';

const PAGE = 25;
/** What was loaded page by page is not asked for again: it would move under the reader. */
const EVERY_MS = 5_000;

const OUTCOME_FILTERS = [
  { value: '', label: 'All attempts' },
  { value: 'failed', label: 'Not taken' },
  { value: 'rejected', label: 'Refused' },
  { value: 'retry', label: 'Failed' },
  { value: 'delivered', label: 'Taken' },
];

export function Deliveries({ endpoint: { region, id } }: { readonly endpoint: Endpoint }) {
  const api = useApi();
  const [read, change] = useParams();
  const outcome = OUTCOME_FILTERS.find(({ value }) => value === read('outcome'))?.value || undefined;
  const { data, error, refetch, fetchNextPage, hasNextPage, isFetchingNextPage } = useInfiniteQuery({
    queryKey: ['endpoints', 'deliveries', region, id, outcome],
    queryFn: ({ pageParam, signal }) =>
      api.get<{ deliveries: Attempt[]; next: string | null }>(endpointPath(id, '/deliveries'), {
        query: { region, limit: PAGE, outcome, after: pageParam },
        signal,
      }),
    initialPageParam: undefined as string | undefined,
    getNextPageParam: ({ next }) => next ?? undefined,
    refetchInterval: ({ state }) => ((state.data?.pages.length ?? 1) > 1 ? false : EVERY_MS),
    placeholderData: keepPreviousData,
  });
  const rows = data?.pages.flatMap(({ deliveries }) => deliveries) ?? [];
  const columns: Column<Attempt>[] = [
    { name: 'When', render: ({ at }) => <Timestamp at={at} as="clock" /> },
    {
      name: 'Came of it',
      render: (one) => (
        <Badge tone={ATTEMPT_OUTCOMES[one.outcome].tone}>{ATTEMPT_OUTCOMES[one.outcome].word}</Badge>
      ),
    },
    { name: 'Event', render: ({ type }) => getTypeLabel(type) },
    {
      name: 'Of',
      render: (one) => (one.cause === 'ping' ? '–' : <Subject {...one} />),
    },
    { name: 'Sent as', render: ({ cause }) => ATTEMPT_CAUSES[cause] },
    { name: 'Answer', right: true, render: ({ status }) => status ?? 'none' },
    { name: 'Took', right: true, render: ({ latencyMs }) => formatDuration(latencyMs) },
    {
      name: 'Details',
      wide: true,
      render: (one) => <Details attempt={one} />,
      hasContent: ({ reason, excerpt }) => Boolean(reason) || Boolean(excerpt),
    },
  ];
  return (
    <Panel
      title="Deliveries"
      aside={
        <NativeSelect
          size="xs"
          aria-label="Which attempts"
          data={OUTCOME_FILTERS}
          value={outcome ?? ''}
          onChange={({ currentTarget }) => change({ outcome: currentTarget.value })}
        />
      }
    >
      {error && !data ? (
        <Failure error={error} again={refetch} />
      ) : !data ? null : rows.length === 0 ? (
        <Empty>
          {outcome === undefined
            ? 'Nothing was sent to it in the last 30 days.'
            : 'No attempt of the last 30 days ended like that.'}
        </Empty>
      ) : (
        <Rows
          label="Deliveries"
          rows={rows}
          columns={columns}
          keyOf={({ event, at, cause }) => `${event} ${at} ${cause}`}
        />
      )}
      {hasNextPage ? <More busy={isFetchingNextPage} onClick={fetchNextPage} /> : null}
    </Panel>
  );
}

/** What an event is about, with a way there. */
export function Subject({ account, jobNumber }: Pick<Attempt, 'account' | 'jobNumber'>) {
  const href = useHref();
  if (account.startsWith('_')) return 'the region';
  if (jobNumber === null) return <Link href={href(accountHref(account))}>{account}</Link>;
  return (
    <>
      <Link href={href(jobHref(account, jobNumber))}>{jobNumber}</Link>{' '}
      <span className={css.quiet}>{account}</span>
    </>
  );
}

/** Types that this page does not know are called by their names. */
export function getTypeLabel(type: string): string {
  return Object.hasOwn(eventTypeLabels, type)
    ? eventTypeLabels[type as keyof typeof eventTypeLabels]
    : toPlainText(type);
}

function Details({ attempt: { reason, excerpt } }: { readonly attempt: Attempt }) {
  return (
    <>
      {reason === null ? null : <bdi>{reason}</bdi>}
      {excerpt === null || excerpt === '' ? null : (
        <details>
          <summary>How the answer began</summary>
          {/* biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls has to be reached by keyboard */}
          <pre className={css.excerpt} tabIndex={0}>
            {excerpt}
          </pre>
        </details>
      )}
    </>
  );
}
