/** Addresses that receive no messages from an account. */
import { Button } from '@mantine/core';
import { useQueryClient } from '@tanstack/react-query';
import type { Suppression } from '../../../client/index.ts';
import { NewSuppression } from '../../../shared/notifications/notification-input.ts';
import { useActions } from '../actions.ts';
import { withId } from '../api.ts';
import { Badge, Note, Panel, showToast } from '../components.tsx';
import { QueryTable, usePages } from '../DataTable.tsx';
import { ExportButton } from '../export.tsx';
import { toOptions } from '../filters.tsx';
import { Form, FormActions, SelectField, TextField } from '../form.tsx';
import { useApiForm } from '../forms.ts';
import { channelNames } from '../messages.ts';
import { useApi } from '../queries.ts';
import { useSession } from '../session.ts';
import { RelativeTime } from '../times.tsx';
import ui from '../ui.module.css';
import { AccountPage } from './layout.tsx';

type Reason = Suppression['reason'];

const PAGE_SIZE = 100;

/** Reasons of a suppression: name, explanation, and the consequences of lifting it. */
const REASONS: Readonly<
  Record<Reason, { readonly name: string; readonly explanation: string; readonly lifting: string }>
> = {
  unsubscribed: {
    name: 'Unsubscribed, or suppressed by a user',
    explanation: 'The recipient unsubscribed with the link in an e-mail, or you suppressed the address.',
    lifting:
      'Lift the suppression only if the recipient asks for messages again. Sending without consent is illegal in many countries.',
  },
  complained: {
    name: 'Marked as spam',
    explanation: 'The recipient marked a message as spam.',
    lifting:
      'Another complaint harms the reputation of your domain: mail servers may then reject mail to all customers. Lift the suppression only on a written request.',
  },
  opted_out: {
    name: 'Answered STOP',
    explanation: 'The recipient answered STOP, or the network reports that the number has opted out.',
    lifting: 'The SMS service may reject the number until the recipient answers START.',
  },
  bounced: {
    name: 'Bounced',
    explanation:
      'An e-mail to this address was returned as undeliverable, or the mail server or the SMS service rejected the address.',
    lifting:
      'Lift the suppression only if you know that the address is correct. Repeated bounces of e-mails harm the reputation of your domain.',
  },
};

export default function SuppressionsPage({ account }: { readonly account: string }) {
  const may = useSession().hasRole('operate');
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
  const form = useApiForm({
    schema: NewSuppression,
    initial: { channel: 'email', address: '' },
    toBody: (values) => values,
    send: async (body, { channel }) => {
      await api.post('/v1/accounts/{id}/suppressions', { ...withId(account), body });
      await queries.invalidateQueries({ queryKey: ['suppressions', account] });
      form.form.setFieldValue('address', '');
      form.markSaved({ channel, address: '' });
      showToast('Address suppressed.');
    },
  });
  return (
    <Panel title="Suppress an address">
      <Form of={form}>
        <div className={ui.columns}>
          <SelectField name="channel" label="Channel" data={toOptions(channelNames)} />
          <TextField
            name="address"
            label={form.form.values.channel === 'email' ? 'E-mail address' : 'Mobile number'}
          />
        </div>
        <FormActions verb="Suppress" />
      </Form>
    </Panel>
  );
}

function Suppressions({ account }: { readonly account: string }) {
  const api = useApi();
  const { confirm } = useActions([['suppressions', account]]);
  const suppressions = usePages({
    queryKey: ['suppressions', account],
    fetchPage: (after, signal) =>
      api.get('/v1/accounts/{id}/suppressions', {
        params: { path: { id: account }, query: { limit: PAGE_SIZE, after } },
        signal,
      }),
    toRows: (page) => page.suppressions,
    refetchMs: 15_000,
    refetchAll: true,
  });
  const lift = (one: Suppression): void =>
    confirm({
      title: `Lift the suppression of ${formatAddress(one)}?`,
      verb: 'Lift suppression',
      destructive: one.reasons.some(({ reason }) => reason === 'complained'),
      body: <LiftingNote account={account} reasons={one.reasons.map(({ reason }) => reason)} />,
      act: () => {
        const params = { path: { id: account, suppression: one.id } };
        return api.delete('/v1/accounts/{id}/suppressions/{suppression}', { params });
      },
      done: 'Suppression lifted.',
    });
  return (
    <Panel
      title="Suppressed addresses"
      aside={
        <div className={ui.actions}>
          Only a hash and the masked address are stored. If the recipient unsubscribed by the link, only the
          hash is stored.
          <ExportButton
            name={`suppressions-${account}`}
            source={(options) =>
              api.csv('/v1/accounts/{id}/suppressions', { ...withId(account), ...options })
            }
          />
        </div>
      }
    >
      <QueryTable
        label="Suppressed addresses"
        query={suppressions}
        empty="No suppressed addresses. An address appears here when its recipient unsubscribes, answers STOP or marks mail as spam, or when its mail bounces."
        more="Load more"
        getKey={({ id }) => id}
        columns={{
          Address: formatAddress,
          Channel: ({ channel }) => channelNames[channel],
          Reasons: {
            wide: true,
            render: ({ reasons }) =>
              reasons.map(({ reason, since }) => (
                <div key={reason}>
                  <Badge tone={reason === 'complained' ? 'bad' : 'warn'}>{REASONS[reason].name}</Badge>{' '}
                  <span className={ui.hint}>
                    <RelativeTime at={since} />
                  </span>
                </div>
              )),
          },
          Actions: {
            hiddenName: true,
            right: true,
            render: (one) => (
              <Button
                size="xs"
                aria-label={`Lift suppression: ${formatAddress(one)}`}
                onClick={() => lift(one)}
              >
                Lift suppression
              </Button>
            ),
          },
        }}
      />
    </Panel>
  );
}

const formatAddress = ({ address, channel }: Suppression): string =>
  address ?? (channel === 'email' ? 'Unknown address (hash only)' : 'Unknown number (hash only)');

/** Consequences of lifting a suppression. */
function LiftingNote(props: { readonly account: string; readonly reasons: readonly Reason[] }) {
  const { account, reasons } = props;
  return (
    <div className={ui.fields}>
      {reasons.map((reason) => (
        <p key={reason}>
          <strong>{REASONS[reason].name}.</strong> {REASONS[reason].explanation} {REASONS[reason].lifting}
        </p>
      ))}
      <p>
        {reasons.some((reason) => reason !== 'unsubscribed')
          ? `The address receives messages of ${account} and of the other accounts of the cell again, because bounces, complaints and opt-outs apply to all accounts.`
          : `The address receives messages of ${account} again.`}
      </p>
    </div>
  );
}
