/** Addresses that receive no messages from an account. */
import { Button, NativeSelect, TextInput } from '@mantine/core';
import { useQueryClient } from '@tanstack/react-query';
import type { Suppression } from '../../../client/index.ts';
import { NewSuppression } from '../../../shared/notifications/notification-input.ts';
import { channels } from '../../../shared/notifications/types.ts';
import { withId } from '../api.ts';
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
import { LoadMore, usePages } from '../DataTable.tsx';
import { useApiForm } from '../forms.ts';
import { channelNames } from '../messages.ts';
import { useApi } from '../queries.ts';
import { useSession } from '../session.ts';
import { RelativeTime } from '../times.tsx';
import ui from '../ui.module.css';
import { FormErrorNote } from './components.tsx';
import css from './customers.module.css';
import { AccountPage } from './layout.tsx';

type Reason = Suppression['reason'];

const PAGE_SIZE = 100;

/** Reasons of a suppression: name, explanation, and the consequences of lifting it. */
const REASONS: Readonly<
  Record<Reason, { readonly name: string; readonly why: string; readonly lifting: string }>
> = {
  unsubscribed: {
    name: 'Unsubscribed',
    why: 'The recipient unsubscribed, by the link in an e-mail or through you.',
    lifting:
      'Lift the suppression only if the recipient asks for messages again. Sending without consent is illegal in many countries.',
  },
  complained: {
    name: 'Marked as spam',
    why: 'The recipient marked a message as spam.',
    lifting:
      'Another complaint harms the reputation of your domain: mail servers may then reject mail to all customers. Lift the suppression only on a written request.',
  },
  opted_out: {
    name: 'Answered STOP',
    why: 'The recipient answered STOP, or the network reports that the number has opted out.',
    lifting: 'The SMS service may reject the number until the recipient answers START.',
  },
  bounced: {
    name: 'Bounced',
    why: 'Mail to this address was returned as undeliverable: the address does not exist or accepts no mail.',
    lifting:
      'Lift the suppression only if you know that the address is correct. Repeated bounces harm the reputation of your domain.',
  },
};

export default function SuppressionsPage({ account }: { readonly account: string }) {
  const may = useSession().may('operate');
  return (
    <AccountPage account={account} part="suppressions" title={`Suppressions of ${account}`}>
      {may ? (
        <>
          <AddForm account={account} />
          <Suppressions account={account} />
        </>
      ) : (
        <Note>Requires a key with the role operate or admin.</Note>
      )}
    </AccountPage>
  );
}

function AddForm({ account }: { readonly account: string }) {
  const api = useApi();
  const queries = useQueryClient();
  const { form, formError, busy, submit, markSaved } = useApiForm({
    schema: NewSuppression,
    initial: { channel: 'email', address: '' },
    toBody: (values) => values,
    send: async (body) => {
      await api.post('/v1/accounts/{id}/suppressions', { ...withId(account), body });
      await queries.invalidateQueries({ queryKey: ['suppressions', account] });
      form.setFieldValue('address', '');
      markSaved({ channel: form.getValues().channel, address: '' });
      showToast('Address suppressed.');
    },
  });
  return (
    <Panel title="Suppress an address">
      <form className={`${ui.actions} ${ui.actions} ${css.inline}`} onSubmit={submit} noValidate>
        <NativeSelect
          label="Channel"
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
          Suppress
        </Button>
      </form>
      <FormErrorNote error={formError} />
    </Panel>
  );
}

function Suppressions({ account }: { readonly account: string }) {
  const api = useApi();
  const confirm = useConfirm();
  const queries = useQueryClient();
  const found = usePages({
    queryKey: ['suppressions', account],
    fetchPage: (after, signal) =>
      api.get('/v1/accounts/{id}/suppressions', {
        params: { path: { id: account }, query: { limit: PAGE_SIZE, after } },
        signal,
      }),
    toRows: ({ suppressions }) => suppressions,
    refetchMs: 15_000,
    refetchAll: true,
  });
  const lift = async (id: string): Promise<void> => {
    const params = { path: { id: account, suppression: id } };
    await api.delete('/v1/accounts/{id}/suppressions/{suppression}', { params });
    await queries.invalidateQueries({ queryKey: ['suppressions', account] });
    showToast('Suppression lifted.');
  };
  const all = found.rows;
  return (
    <Panel title="Suppressed addresses" aside="Only a hash and the masked address are stored.">
      {found.error && !all ? <Failure error={found.error} again={found.refetch} /> : null}
      {all?.length === 0 ? (
        <Empty>
          No suppressed addresses. An address appears here when its recipient unsubscribes, answers STOP or
          marks mail as spam, or when its mail bounces.
        </Empty>
      ) : null}
      <ul className={`${ui.list} ${css.rows}`}>
        {all?.map((one) => (
          <li key={one.id} className={css.suppressionRow}>
            <span className={ui.name}>{formatAddress(one)}</span>
            <span className={ui.hint}>{channelNames[one.channel]}</span>
            <span className={ui.tight}>
              {one.reasons.map(({ reason, since }) => (
                <span key={reason}>
                  <Badge tone={reason === 'complained' ? 'bad' : 'warn'}>{REASONS[reason].name}</Badge>{' '}
                  <span className={ui.hint}>
                    <RelativeTime at={since} />
                  </span>
                </span>
              ))}
            </span>
            <Button
              size="xs"
              variant="default"
              aria-label={`Lift suppression: ${formatAddress(one)}`}
              onClick={() => confirm(toConfirmation(one, account, () => lift(one.id)))}
            >
              Lift suppression
            </Button>
          </li>
        ))}
      </ul>
      <LoadMore query={found} label="Load more" />
    </Panel>
  );
}

const formatAddress = ({ address, channel }: Suppression): string =>
  address ?? (channel === 'email' ? 'Unknown address (hash only)' : 'Unknown number (hash only)');

function toConfirmation(one: Suppression, account: string, act: () => Promise<void>): Confirmation {
  const isShared = one.reasons.some(({ reason }) => reason !== 'unsubscribed');
  return {
    title: `Lift the suppression of ${formatAddress(one)}?`,
    verb: 'Lift suppression',
    destructive: one.reasons.some(({ reason }) => reason === 'complained'),
    body: (
      <div className={`${ui.fields} ${css.reasonTexts}`}>
        {one.reasons.map(({ reason }) => (
          <div key={reason}>
            <p>
              <strong>{REASONS[reason].name}.</strong> {REASONS[reason].why}
            </p>
            <p>{REASONS[reason].lifting}</p>
          </div>
        ))}
        <p>
          {isShared
            ? `The address receives messages of ${account} again, and of the other accounts of the region: bounces, complaints and opt-outs apply to all of them.`
            : `The address receives messages of ${account} again.`}
        </p>
      </div>
    ),
    onConfirm: act,
  };
}
