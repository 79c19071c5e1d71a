/** Addresses that get nothing more from an account. */
import { Button, NativeSelect, TextInput } from '@mantine/core';
import { useInfiniteQuery, useQueryClient } from '@tanstack/react-query';
import type * as z from 'zod';
import type * as views from '../../../shared/api/notification-views.ts';
import { NewSuppression } from '../../../shared/notifications/notification-input.ts';
import { channels } from '../../../shared/notifications/types.ts';
import {
  Badge,
  type Confirmation,
  Empty,
  Failure,
  Note,
  Panel,
  showToast,
  useConfirm,
} from '../components.tsx';
import { useApiForm } from '../forms.ts';
import { channelNames } from '../messages.ts';
import { useApi } from '../queries.ts';
import { useSession } from '../session.ts';
import { RelativeTime } from '../times.tsx';
import css from './customers.module.css';
import { AccountPage } from './layout.tsx';

type Suppression = z.infer<typeof views.Suppression>;
type Reason = Suppression['reason'];

const PAGE_SIZE = 100;

/** Why an address gets nothing, shortly, at length, and what it means to let it get messages again. */
const REASONS: Readonly<
  Record<Reason, { readonly name: string; readonly why: string; readonly lifting: string }>
> = {
  unsubscribed: {
    name: 'Unsubscribed',
    why: 'They said that they want no messages, by the link in a mail or to you.',
    lifting:
      'Lift it only when they have asked for messages again: to write to them against their word is against the law in many countries.',
  },
  complained: {
    name: 'Marked as spam',
    why: 'They marked a message as spam.',
    lifting:
      'This is dangerous: another mark as spam harms the reputation of your domain, and mail to all customers may be turned away for it. Lift it only when they have asked for it in writing.',
  },
  opted_out: {
    name: 'Answered STOP',
    why: 'The number takes no SMS from you: they answered STOP, or their network says so.',
    lifting: 'The SMS service may go on refusing the number until they answer START.',
  },
  bounced: {
    name: 'Came back',
    why: 'Mail to this address came back for good: it does not exist, or takes no mail.',
    lifting:
      'Lift it when you know that the address is right. Mail that keeps coming back harms the reputation of your domain.',
  },
};

export default function SuppressionsPage({ account }: { readonly account: string }) {
  const may = useSession().may('operate');
  return (
    <AccountPage account={account} part="suppressions" title={`Who gets nothing more from ${account}`}>
      {may ? (
        <>
          <AddForm account={account} />
          <Suppressions account={account} />
        </>
      ) : (
        <Note>Your key may not see these addresses. It takes one of role operate or admin.</Note>
      )}
    </AccountPage>
  );
}

const pathOf = (account: string): string => `/v1/accounts/${encodeURIComponent(account)}/suppressions`;

function AddForm({ account }: { readonly account: string }) {
  const api = useApi();
  const queries = useQueryClient();
  const {
    form,
    formError: problem,
    busy,
    submit,
    markSaved: settle,
  } = useApiForm({
    schema: NewSuppression,
    initial: { channel: 'email', address: '' },
    toBody: (values) => values,
    send: async (body) => {
      await api.post(pathOf(account), { body });
      await queries.invalidateQueries({ queryKey: ['suppressions', account] });
      form.setFieldValue('address', '');
      settle({ channel: form.getValues().channel, address: '' });
      showToast('They get nothing more.');
    },
  });
  return (
    <Panel title="Somebody wants no more messages">
      <form className={css.inline} onSubmit={submit} noValidate>
        <NativeSelect
          label="By"
          data={channels.map((value) => ({ value, label: channelNames[value] }))}
          {...form.getInputProps('channel')}
        />
        <TextInput
          label={form.values.channel === 'email' ? 'E-mail address' : 'Mobile number'}
          className={css.wide}
          autoComplete="off"
          {...form.getInputProps('address')}
        />
        <Button type="submit" loading={busy}>
          Send nothing more
        </Button>
      </form>
      {problem === null ? null : (
        <Note tone="bad" live>
          {problem}
        </Note>
      )}
    </Panel>
  );
}

function Suppressions({ account }: { readonly account: string }) {
  const api = useApi();
  const ask = useConfirm();
  const queries = useQueryClient();
  const found = useInfiniteQuery({
    queryKey: ['suppressions', account],
    queryFn: ({ pageParam, signal }) =>
      api.get<{ suppressions: Suppression[]; next: string | null }>(pathOf(account), {
        query: { limit: PAGE_SIZE, after: pageParam },
        signal,
      }),
    initialPageParam: undefined as string | undefined,
    getNextPageParam: ({ next }) => next ?? undefined,
    refetchInterval: 15_000,
  });
  const lift = async (id: string): Promise<void> => {
    await api.delete(`${pathOf(account)}/${encodeURIComponent(id)}`);
    await queries.invalidateQueries({ queryKey: ['suppressions', account] });
    showToast('They get messages again.');
  };
  const all = found.data?.pages.flatMap((page) => page.suppressions);
  return (
    <Panel
      title="Addresses that get nothing"
      aside="Of an address only a hash is kept, and what is shown of it."
    >
      {found.error && !all ? <Failure error={found.error} again={found.refetch} /> : null}
      {all?.length === 0 ? (
        <Empty>
          Everybody gets what they are to get. Who unsubscribes, answers STOP, marks mail as spam, or whose
          mail comes back stands here.
        </Empty>
      ) : null}
      <ul className={css.list}>
        {all?.map((one) => (
          <li key={one.id} className={css.suppressionRow}>
            <span className={css.name}>{formatAddress(one)}</span>
            <span className={css.quiet}>{channelNames[one.channel]}</span>
            <span className={css.reasons}>
              {one.reasons.map(({ reason, since }) => (
                <span key={reason}>
                  <Badge tone={reason === 'complained' ? 'bad' : 'warn'}>{REASONS[reason].name}</Badge>{' '}
                  <span className={css.quiet}>
                    <RelativeTime at={since} />
                  </span>
                </span>
              ))}
            </span>
            <Button
              size="xs"
              variant="default"
              aria-label={`Let them get messages again: ${formatAddress(one)}`}
              onClick={() => ask(toConfirmation(one, account, () => lift(one.id)))}
            >
              Let them get messages again
            </Button>
          </li>
        ))}
      </ul>
      {found.hasNextPage ? (
        <Button
          variant="default"
          className={css.more}
          loading={found.isFetchingNextPage}
          onClick={() => void found.fetchNextPage()}
        >
          Show more
        </Button>
      ) : null}
    </Panel>
  );
}

const formatAddress = ({ address, channel }: Suppression): string =>
  address ?? `An ${channel === 'email' ? 'address' : 'number'} known by its hash alone`;

function toConfirmation(one: Suppression, account: string, act: () => Promise<void>): Confirmation {
  const whole = one.reasons.some(({ reason }) => reason !== 'unsubscribed');
  return {
    title: `Let ${formatAddress(one)} get messages again?`,
    verb: 'Let them get messages',
    destructive: one.reasons.some(({ reason }) => reason === 'complained'),
    body: (
      <div className={css.stack}>
        {one.reasons.map(({ reason }) => (
          <div key={reason}>
            <p>
              <strong>{REASONS[reason].name}.</strong> {REASONS[reason].why}
            </p>
            <p>{REASONS[reason].lifting}</p>
          </div>
        ))}
        <p>
          {whole
            ? `${account} writes to them again, and so may other accounts of the region: what was wrong with the address itself counts for all of them.`
            : `${account} writes to them again.`}
        </p>
      </div>
    ),
    onConfirm: act,
  };
}
