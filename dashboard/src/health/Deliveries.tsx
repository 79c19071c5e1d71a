/** What was sent to an endpoint lately, and what it answered. */
import { NativeSelect } from '@mantine/core';
import { keepPreviousData, useInfiniteQuery } from '@tanstack/react-query';
import { Link } from 'wouter';
import { Badge, Empty, Failure, Panel } from '../components.tsx';
import { plain, typeNames } from '../events.ts';
import { useApi } from '../queries.ts';
import { Instant, spanText } from '../times.tsx';
import { accountHref, jobHref, useParams } from '../urls.ts';
import { type Column, More, Rows, useHref } from './components.tsx';
import css from './Health.module.css';
import { endpointPath } from './queries.ts';
import { type Attempt, CAUSE_WORDS, type Endpoint, OUTCOME_WORDS } from './status.ts';

const PAGE = 25;
/** What was loaded page by page is not asked for again: it would move under the reader. */
const EVERY_MS = 5_000;

const CHOICES = [
  { value: '', label: 'All attempts' },
  { value: 'failed', label: 'Not taken' },
  { value: 'rejected', label: 'Refused' },
  { value: 'retry', label: 'Failed' },
  { value: 'delivered', label: 'Taken' },
];

export function Deliveries({ endpoint: { region, id } }: { readonly endpoint: Endpoint }) {
  const api = useApi();
  const [read, change] = useParams();
  const outcome = CHOICES.find(({ value }) => value === read('outcome'))?.value || undefined;
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
    { name: 'When', of: ({ at }) => <Instant at={at} as="clock" /> },
    {
      name: 'Came of it',
      of: (one) => <Badge tone={OUTCOME_WORDS[one.outcome].tone}>{OUTCOME_WORDS[one.outcome].word}</Badge>,
    },
    { name: 'Event', of: ({ type }) => nameOfType(type) },
    {
      name: 'Of',
      of: (one) => (one.cause === 'ping' ? '–' : <About {...one} />),
    },
    { name: 'Sent as', of: ({ cause }) => CAUSE_WORDS[cause] },
    { name: 'Answer', right: true, of: ({ status }) => status ?? 'none' },
    { name: 'Took', right: true, of: ({ latencyMs }) => spanText(latencyMs) },
    {
      name: 'Details',
      wide: true,
      of: (one) => <Details attempt={one} />,
      has: ({ reason, excerpt }) => Boolean(reason) || Boolean(excerpt),
    },
  ];
  return (
    <Panel
      title="Deliveries"
      aside={
        <NativeSelect
          size="xs"
          aria-label="Which attempts"
          data={CHOICES}
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
export function About({ account, jobNumber }: Pick<Attempt, 'account' | 'jobNumber'>) {
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
export function nameOfType(type: string): string {
  return Object.hasOwn(typeNames, type) ? typeNames[type as keyof typeof typeNames] : plain(type);
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
