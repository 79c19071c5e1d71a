/** The messages of an account, with their state. */
import type { ReactNode } from 'react';
import { Link } from 'wouter';
import type { Message } from '../../../client/index.ts';
import { messageReasons, messageStates } from '../../../shared/notifications/types.ts';
import { Badge, Panel } from '../components.tsx';
import { QueryTable, usePages } from '../DataTable.tsx';
import { ExportButton } from '../export.tsx';
import { FilterSelect } from '../filters.tsx';
import { channelNames, formatMessageKind, stateNames, states } from '../messages.ts';
import { useApi } from '../queries.ts';
import { useRefresh } from '../stream-hooks.ts';
import { formatCount } from '../texts.ts';
import { RelativeTime } from '../times.tsx';
import ui from '../ui.module.css';
import { jobHref, useHref, useParams } from '../urls.ts';
import { AccountPage, useCustomersHref } from './layout.tsx';

const PAGE_SIZE = 50;
/** Refresh interval. Messages change state without an event. */
const REFRESH_MS = 10_000;

export default function MessagesPage({ account }: { readonly account: string }) {
  const api = useApi();
  const [read] = useParams();
  const state = states.find((one) => one === read('state'));
  return (
    <AccountPage
      account={account}
      part="messages"
      title={`Messages of ${account}`}
      actions={
        <>
          <ExportButton
            name={`messages-${account}`}
            source={(options) =>
              api.csv('/v1/accounts/{id}/messages', {
                ...{ params: { path: { id: account }, query: { state } }, ...options },
              })
            }
          />
          <FilterSelect
            param="state"
            aria-label="State"
            data={[
              { value: '', label: 'All messages' },
              ...states.map((one) => ({ value: one, label: stateNames[one][0] })),
            ]}
          />
        </>
      }
    >
      <Panel
        title={state ? stateNames[state][0] : 'Newest first'}
        aside={state ? messageStates[state] : undefined}
      >
        <MessageList
          account={account}
          state={state}
          empty={
            state
              ? 'No messages in this state.'
              : 'No messages yet. Once notifications are on, a message appears here when jobs are dispatched, get tracking or change their due date.'
          }
        />
      </Panel>
    </AccountPage>
  );
}

/** Messages of an account, in a state or to a recipient, newest first, with further pages. */
export function MessageList(props: {
  readonly account: string;
  readonly recipient?: string;
  readonly state?: Message['state'] | undefined;
  readonly empty: ReactNode;
}) {
  const { account, recipient, state, empty } = props;
  const api = useApi();
  const href = useCustomersHref(account);
  const messages = usePages({
    queryKey: ['messages', account, { recipient, state }],
    fetchPage: (after, signal) => {
      const query = { limit: PAGE_SIZE, after };
      if (recipient === undefined) {
        const params = { path: { id: account }, query: { ...query, state } };
        return api.get('/v1/accounts/{id}/messages', { params, signal });
      }
      const params = { path: { id: account, recipient }, query };
      return api.get('/v1/accounts/{id}/recipients/{recipient}/messages', { params, signal });
    },
    toRows: (page) => page.messages,
    refetchMs: REFRESH_MS,
  });
  useRefresh(['job.*', 'order_group.*'], [['messages', account]], { account });
  return (
    <QueryTable
      label="Messages"
      query={messages}
      empty={empty}
      more="Load older messages"
      getKey={({ id }) => id}
      columns={{
        Message: ({ id, kind, orderGroup, jobs }) => (
          <>
            <Link href={href(`messages/${encodeURIComponent(id)}`)}>
              {formatMessageKind(kind)}
              {orderGroup === null ? '' : `: ${orderGroup}`}
            </Link>
            <div className={ui.hint}>
              <JobLinks account={account} jobs={jobs} max={3} />
            </div>
          </>
        ),
        Recipient: {
          wide: true,
          render: ({ to, channel }) =>
            to === null ? (
              <span className={ui.hint}>No recipient</span>
            ) : (
              <>
                {to.name ?? to.recipient}
                <div className={ui.hint}>
                  {channel ? `${channelNames[channel]} to ` : ''}
                  {to.address}
                </div>
              </>
            ),
        },
        State: {
          wide: true,
          render: ({ state, reason }) => (
            <>
              <Badge tone={stateNames[state][1]}>{stateNames[state][0]}</Badge>
              {reason ? <div className={ui.hint}>{messageReasons[reason]}</div> : null}
            </>
          ),
        },
        Time: { right: true, render: ({ sentAt, createdAt }) => <RelativeTime at={sentAt ?? createdAt} /> },
      }}
    />
  );
}

/** Links to jobs. Those beyond `max` are counted. */
export function JobLinks(props: {
  readonly account: string;
  readonly jobs: readonly number[];
  readonly max: number;
}) {
  const { account, jobs, max } = props;
  const href = useHref();
  const more = jobs.length - max;
  return (
    <>
      {jobs.length === 1 ? 'Job ' : 'Jobs '}
      {jobs.slice(0, max).map((job, at) => (
        <span key={job}>
          {at > 0 ? ', ' : ''}
          <Link href={href(jobHref(account, job))}>{job}</Link>
        </span>
      ))}
      {more > 0 ? ` and ${formatCount(more, 'more', 'more')}` : ''}
    </>
  );
}
