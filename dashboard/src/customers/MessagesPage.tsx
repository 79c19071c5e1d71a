/** The messages of an account, with their state. */
import { NativeSelect } from '@mantine/core';
import type { ReactNode } from 'react';
import { Link } from 'wouter';
import type { Message } from '../../../client/index.ts';
import { messageReasons, messageStates } from '../../../shared/notifications/types.ts';
import { Badge, Empty, Failure, Hidden, Panel } from '../components.tsx';
import { LoadMore, usePages } from '../DataTable.tsx';
import { channelNames, kindNames, stateNames, states } from '../messages.ts';
import { useApi } from '../queries.ts';
import { useRefresh } from '../stream-hooks.ts';
import { RelativeTime } from '../times.tsx';
import ui from '../ui.module.css';
import { jobHref, useParams } from '../urls.ts';
import css from './customers.module.css';
import { formatCount } from './labels.ts';
import { AccountPage, useCustomersHref } from './layout.tsx';

const PAGE_SIZE = 50;
/** Refresh interval. Messages change state without an event. */
const REFRESH_MS = 10_000;

export default function MessagesPage({ account }: { readonly account: string }) {
  const [read, change] = useParams();
  const state = states.find((one) => one === read('state'));
  return (
    <AccountPage
      account={account}
      part="messages"
      title={`Messages of ${account}`}
      actions={
        <NativeSelect
          aria-label="State"
          value={state ?? ''}
          onChange={({ currentTarget: { value } }) => change({ state: value })}
          data={[
            { value: '', label: 'All messages' },
            ...states.map((one) => ({ value: one, label: stateNames[one][0] })),
          ]}
        />
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
  const found = usePages({
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
    toRows: ({ messages }) => messages,
    refetchMs: REFRESH_MS,
  });
  useRefresh(['job.*', 'order_group.*'], [['messages', account]]);
  const messages = found.rows;
  if (!messages) return found.error ? <Failure error={found.error} again={found.refetch} /> : null;
  return (
    <>
      {messages.length === 0 && !found.hasNextPage ? <Empty>{empty}</Empty> : null}
      <ul className={`${ui.list} ${css.rows}`}>
        {messages.map((message) => (
          <MessageRow key={message.id} account={account} message={message} />
        ))}
      </ul>
      <LoadMore query={found} label="Load older messages" />
    </>
  );
}

function MessageRow({ account, message }: { readonly account: string; readonly message: Message }) {
  const href = useCustomersHref(account);
  const [state, tone] = stateNames[message.state];
  const { to, channel, orderGroup, jobs } = message;
  return (
    <li className={css.messageRow}>
      <div className={`${ui.tight} ${css.cell}`}>
        <Link className={ui.name} href={href(`messages/${encodeURIComponent(message.id)}`)}>
          {kindNames[message.kind]}
          {orderGroup === null ? '' : `: ${orderGroup}`}
        </Link>
        <span className={ui.hint}>
          <JobLinks account={account} jobs={jobs} max={3} />
        </span>
      </div>
      <div className={`${ui.tight} ${css.cell}`}>
        {to ? (
          <>
            <span>{to.name ?? to.recipient}</span>
            <span className={ui.hint}>
              {channel ? `${channelNames[channel]} to ` : ''}
              {to.address}
            </span>
          </>
        ) : (
          <span className={ui.hint}>No recipient</span>
        )}
      </div>
      <div className={`${ui.tight} ${css.cell}`}>
        <span>
          <Badge tone={tone}>{state}</Badge>
        </span>
        {message.reason ? <span className={ui.hint}>{messageReasons[message.reason]}</span> : null}
      </div>
      <div className={`${ui.hint} ${ui.hint} ${css.when}`}>
        <Hidden>Created </Hidden>
        <RelativeTime at={message.sentAt ?? message.createdAt} />
      </div>
    </li>
  );
}

/** Links to jobs. Those beyond `max` are counted. */
export function JobLinks(props: {
  readonly account: string;
  readonly jobs: readonly number[];
  readonly max: number;
}) {
  const { account, jobs, max } = props;
  const more = jobs.length - max;
  return (
    <>
      {jobs.length === 1 ? 'Job ' : 'Jobs '}
      {jobs.slice(0, max).map((job, at) => (
        <span key={job}>
          {at > 0 ? ', ' : ''}
          <Link href={jobHref(account, job)}>{job}</Link>
        </span>
      ))}
      {more > 0 ? ` and ${formatCount(more, 'more', 'more')}` : ''}
    </>
  );
}
