/** One message, with what it says. */
import { useQuery } from '@tanstack/react-query';
import { Link } from 'wouter';
import { messageReasons, messageStates } from '../../../shared/notifications/types.ts';
import { Badge, Empty, Facts, Failure, Note, Panel } from '../components.tsx';
import { channelNames, kindNames, stateNames } from '../messages.ts';
import { useApi } from '../queries.ts';
import { Timestamp } from '../times.tsx';
import css from './customers.module.css';
import { formatCount, localeNames } from './labels.ts';
import { AccountPage, useCustomersHref } from './layout.tsx';
import { JobLinks, type Message } from './MessagesPage.tsx';
import { SmsBubble } from './SmsBubble.tsx';

export default function MessagePage(props: { readonly account: string; readonly message: string }) {
  const { account } = props;
  const api = useApi();
  const path = `/v1/accounts/${encodeURIComponent(account)}/messages/${encodeURIComponent(props.message)}`;
  const { data, error, refetch } = useQuery({
    queryKey: ['messages', account, 'one', props.message],
    queryFn: ({ signal }) => api.get<Message>(path, { signal }),
    refetchInterval: 10_000,
  });
  return (
    <AccountPage
      account={account}
      part="messages"
      title={data ? `Message: ${kindNames[data.kind].toLowerCase()}` : 'Message'}
    >
      {error && !data ? <Failure error={error} again={refetch} /> : null}
      {data ? <MessagePanels account={account} message={data} /> : null}
    </AccountPage>
  );
}

function MessagePanels({ account, message }: { readonly account: string; readonly message: Message }) {
  const href = useCustomersHref(account);
  const { to, channel, text, subject } = message;
  const [state, tone] = stateNames[message.state];
  return (
    <div className={css.twoColumns}>
      <Panel title="What became of it">
        {message.reason || message.detail ? (
          <Note tone={tone}>
            {message.reason ? <p>{messageReasons[message.reason]}</p> : null}
            {message.detail ? <p>{message.detail}</p> : null}
          </Note>
        ) : null}
        <Facts
          rows={[
            [
              'State',
              <span key="state" title={messageStates[message.state]}>
                <Badge tone={tone}>{state}</Badge>
              </span>,
            ],
            [
              'To',
              to ? (
                <Link key="to" href={href('recipients', { recipient: to.recipient })}>
                  {to.name ?? to.recipient}
                </Link>
              ) : (
                'Nobody'
              ),
            ],
            ['Address', to?.address],
            ['By', channel ? channelNames[channel] : undefined],
            ['Language', to ? `${localeNames[to.locale]}, times of ${to.zone}` : undefined],
            ['About', <JobLinks key="jobs" account={account} jobs={message.jobs} most={100} />],
            ['Order group', message.orderGroup ?? undefined],
            ['Made', <Timestamp key="made" at={message.createdAt} as="whole" />],
            ['Due', message.dueAt ? <Timestamp key="due" at={message.dueAt} as="whole" /> : undefined],
            ['Sent', message.sentAt ? <Timestamp key="sent" at={message.sentAt} as="whole" /> : undefined],
            ['Tried', formatCount(message.attempts, 'time')],
            ['Sent again', message.repeats > 0 ? formatCount(message.repeats, 'time') : undefined],
            ['Segments', message.segments ?? undefined],
            ['Id at the server', message.providerId ?? undefined],
          ]}
        />
      </Panel>
      <Panel title="What it says" aside={message.sentAt ? undefined : 'As it would have gone.'}>
        {text === null ? (
          <Empty>It was not written.</Empty>
        ) : channel === 'sms' ? (
          <SmsBubble text={text} />
        ) : (
          <>
            {subject === null ? null : <p className={css.subject}>{subject}</p>}
            <pre className={css.plain}>{text}</pre>
          </>
        )}
      </Panel>
    </div>
  );
}
