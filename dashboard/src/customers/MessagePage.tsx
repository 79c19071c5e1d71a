/** One message: its state and its content. */
import { useQuery } from '@tanstack/react-query';
import { Link } from 'wouter';
import type { Message } from '../../../client/index.ts';
import { messageReasons, messageStates } from '../../../shared/notifications/types.ts';
import { Badge, DescriptionList, Empty, Loaded, Note, Panel } from '../components.tsx';
import { channelNames, formatMessageKind, stateNames } from '../messages.ts';
import { useApi } from '../queries.ts';
import { Timestamp } from '../times.tsx';
import ui from '../ui.module.css';
import { localeNames } from './labels.ts';
import { AccountPage, useCustomersHref } from './layout.tsx';
import { JobLinks } from './MessagesPage.tsx';
import { SmsBubble } from './SmsBubble.tsx';

export default function MessagePage(props: { readonly account: string; readonly message: string }) {
  const { account } = props;
  const api = useApi();
  const params = { path: { id: account, message: props.message } };
  const message = useQuery({
    queryKey: ['messages', account, 'one', props.message],
    queryFn: ({ signal }) => api.get('/v1/accounts/{id}/messages/{message}', { params, signal }),
    refetchInterval: 10_000,
  });
  return (
    <AccountPage
      account={account}
      part="messages"
      title={message.data ? formatMessageKind(message.data.kind) : 'Message'}
    >
      <Loaded query={message}>{(data) => <MessagePanels account={account} message={data} />}</Loaded>
    </AccountPage>
  );
}

function MessagePanels({ account, message }: { readonly account: string; readonly message: Message }) {
  const href = useCustomersHref(account);
  const { to, channel, text, subject } = message;
  const [state, tone] = stateNames[message.state];
  return (
    <div className={ui.panels}>
      <Panel title="State">
        {message.reason || message.detail ? (
          <Note tone={tone}>
            {message.reason ? <p>{messageReasons[message.reason]}</p> : null}
            {message.detail ? <p>{message.detail}</p> : null}
          </Note>
        ) : null}
        <DescriptionList
          rows={{
            State: (
              <span title={messageStates[message.state]}>
                <Badge tone={tone}>{state}</Badge>
              </span>
            ),
            To: to ? (
              <Link href={href('recipients', { recipient: to.recipient })}>{to.name ?? to.recipient}</Link>
            ) : (
              'No recipient'
            ),
            Address: to?.address,
            Channel: channel ? channelNames[channel] : undefined,
            Language: to ? localeNames[to.locale] : undefined,
            'Time zone': to?.zone,
            Jobs: <JobLinks account={account} jobs={message.jobs} max={100} />,
            'Order group': message.orderGroup ?? undefined,
            Created: <Timestamp at={message.createdAt} as="whole" />,
            Due: message.dueAt ? <Timestamp at={message.dueAt} as="whole" /> : undefined,
            Sent: message.sentAt ? <Timestamp at={message.sentAt} as="whole" /> : undefined,
            'Sent by': message.sentBy ? (message.sentBy.name ?? message.sentBy.id) : undefined,
            Attempts: message.attempts,
            Repeats: message.repeats > 0 ? message.repeats : undefined,
            Segments: message.segments ?? undefined,
            'Provider id': message.providerId ?? undefined,
          }}
        />
      </Panel>
      <Panel title="Content" aside={message.sentAt ? undefined : 'Not sent'}>
        {text === null ? (
          <Empty>This message was not rendered.</Empty>
        ) : channel === 'sms' ? (
          <SmsBubble text={text} />
        ) : (
          <>
            {subject === null ? null : <p className={ui.name}>{subject}</p>}
            <pre className={ui.verbatim}>{text}</pre>
          </>
        )}
      </Panel>
    </div>
  );
}
