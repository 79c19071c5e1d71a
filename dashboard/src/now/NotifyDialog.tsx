/** Sends a note about a job to one of its recipients: who can be notified and why not, the text, a preview, then sending. */
import { Button, Group, NativeSelect, Radio, Textarea } from '@mantine/core';
import { useQuery, useQueryClient } from '@tanstack/react-query';
import { type FormEvent, useState } from 'react';
import { Link } from 'wouter';
import type { JobRecipient, NoteResult } from '../../../client/index.ts';
import { useActions } from '../actions.ts';
import { Empty, Failure, Loaded, Note, showToast } from '../components.tsx';
import { MailFrame } from '../customers/MailFrame.tsx';
import { SmsBubble } from '../customers/SmsBubble.tsx';
import { InputDialog } from '../dialogs.tsx';
import { channelNames, formatMessageKind, stateNames } from '../messages.ts';
import { useApi } from '../queries.ts';
import { formatCount } from '../texts.ts';
import { Timestamp } from '../times.tsx';
import ui from '../ui.module.css';
import { useLeaveGuard } from '../unsaved-changes.ts';
import { useHref } from '../urls.ts';
import { getNoteText, noteTextNames, suggestNoteText } from './note-texts.ts';
import css from './QueuePanel.module.css';

const MAX_LENGTH = 1000;
const OWN_TEXT = 'Custom text';

interface Target {
  readonly account: string;
  readonly jobNumber: string;
  /** Status of the job. */
  readonly status: string | null;
  readonly close: () => void;
}

export default function NotifyDialog(target: Target) {
  return (
    <InputDialog
      opened
      onClose={target.close}
      title={`Notify the customer of job ${target.jobNumber}`}
      size="lg"
    >
      <Notify {...target} />
    </InputDialog>
  );
}

function Notify(target: Target) {
  const { account, jobNumber } = target;
  const api = useApi();
  const params = { path: { id: account, jobNumber } };
  const query = useQuery({
    queryKey: ['jobs', 'recipients', account, jobNumber],
    queryFn: async ({ signal }) => {
      const [{ recipients }, { messages }] = await Promise.all([
        api.get('/v1/accounts/{id}/jobs/{jobNumber}/recipients', {
          params: { ...params, query: { limit: 500 } },
          signal,
        }),
        api.get('/v1/accounts/{id}/jobs/{jobNumber}/messages', {
          params: { ...params, query: { limit: 3 } },
          signal,
        }),
      ]);
      return { recipients, messages };
    },
    // Recipients may have been added since the dialog was last open.
    gcTime: 0,
  });
  return (
    <Loaded query={query}>
      {({ recipients, messages }) => (
        <div className={ui.stack}>
          {messages.length === 0 ? (
            <p className={ui.hint}>No messages about this job so far.</p>
          ) : (
            <ul className={ui.list}>
              {messages.map(({ id, kind, state, to, sentAt, createdAt }) => (
                <li key={id} className={ui.hint}>
                  {formatMessageKind(kind)}, {stateNames[state][0].toLowerCase()}
                  {to === null ? '' : ` (${to.address})`}, <Timestamp at={sentAt ?? createdAt} />
                </li>
              ))}
            </ul>
          )}
          {recipients.some(({ detail }) => detail === null) ? (
            <NoteForm {...target} recipients={recipients} />
          ) : (
            <NoRecipient account={account} recipients={recipients} />
          )}
        </div>
      )}
    </Loaded>
  );
}

/** Renders the reason why no recipient can be notified, and a link to the settings that change it. */
function NoRecipient(props: { readonly account: string; readonly recipients: readonly JobRecipient[] }) {
  const { account, recipients } = props;
  const href = useHref();
  const settings = `/setup/customers/${encodeURIComponent(account)}`;
  return (
    <Empty>
      {recipients.length === 0 ? (
        <p>The job has no recipient with an address.</p>
      ) : (
        <ul className={ui.list}>
          {recipients.map((one) => (
            <li key={toKey(one)}>
              <bdi>{formatRecipient(one)}</bdi>: {one.detail}
            </li>
          ))}
        </ul>
      )}
      <p>
        <Link href={href(`${settings}/recipients`)}>Recipients</Link> ·{' '}
        <Link href={href(settings)}>Notification settings</Link>
      </p>
    </Empty>
  );
}

const toKey = ({ recipient, channel }: JobRecipient): string => `${channel} ${recipient}`;
const formatRecipient = ({ name, address, channel }: JobRecipient): string =>
  `${channelNames[channel]} to ${name === null ? address : `${name}, ${address}`}`;

function NoteForm(props: Target & { readonly recipients: readonly JobRecipient[] }) {
  const { account, jobNumber, status, close, recipients } = props;
  const api = useApi();
  const queries = useQueryClient();
  const [first] = recipients.filter(({ detail }) => detail === null);
  const [chosen, setChosen] = useState(first ? toKey(first) : '');
  const [name, setName] = useState(suggestNoteText(status));
  const [own, setOwn] = useState('');
  const [preview, setPreview] = useState<NoteResult | null>(null);
  const { run, busy, failure } = useActions([]);
  const isBusy = busy !== null;
  const place = recipients.find((one) => toKey(one) === chosen);
  const text = name === OWN_TEXT ? own : place ? getNoteText(name, place.locale) : '';
  useLeaveGuard(own !== '' && !isBusy);

  const send = async (to: JobRecipient): Promise<void> => {
    const dryRun = preview === null;
    const result = await api.post('/v1/accounts/{id}/jobs/{jobNumber}/messages', {
      params: { path: { id: account, jobNumber } },
      body: { recipient: to.recipient, channel: to.channel, text, dryRun },
    });
    if (dryRun) return setPreview(result);
    showToast(
      result.created
        ? `The message to ${to.name ?? to.address} is queued.`
        : `Not sent again: ${to.name ?? to.address} was sent this text before.`,
    );
    void queries.invalidateQueries({ queryKey: ['attention'] });
    void queries.invalidateQueries({ queryKey: ['jobs', 'messages', account] });
    close();
  };
  const submit = (event: FormEvent): void => {
    event.preventDefault();
    if (place && !isBusy) void run('send', () => send(place));
  };
  return (
    <form onSubmit={submit} className={ui.fields}>
      {preview === null ? (
        <>
          <Radio.Group label="Recipient" value={chosen} onChange={setChosen}>
            <div className={ui.fields}>
              {recipients.map((one) => (
                <Radio
                  key={toKey(one)}
                  value={toKey(one)}
                  label={<bdi>{formatRecipient(one)}</bdi>}
                  description={describe(one)}
                  disabled={one.detail !== null}
                />
              ))}
            </div>
          </Radio.Group>
          <NativeSelect
            label="Text"
            data={[...noteTextNames, OWN_TEXT]}
            value={name}
            onChange={({ currentTarget: { value } }) => setName(value)}
          />
          <Textarea
            label="Message"
            description="The message also contains a greeting and the order."
            value={text}
            maxLength={MAX_LENGTH}
            autosize
            minRows={3}
            maxRows={12}
            onChange={({ currentTarget: { value } }) => {
              setOwn(value);
              setName(OWN_TEXT);
            }}
            data-autofocus
          />
        </>
      ) : (
        <Preview result={preview} place={place} />
      )}
      {failure ? <Failure error={failure} /> : null}
      <Group justify="flex-end" className={css.send}>
        <Button onClick={() => (preview === null ? close() : setPreview(null))}>
          {preview === null ? 'Cancel' : 'Change'}
        </Button>
        <Button variant="filled" type="submit" loading={isBusy} disabled={!place || text.trim() === ''}>
          {preview === null ? 'Preview' : 'Send'}
        </Button>
      </Group>
    </form>
  );
}

/** Says why a recipient cannot be chosen, or when the message is sent. */
function describe({ detail, notBefore }: JobRecipient) {
  if (detail !== null) return detail;
  if (notBefore === null) return undefined;
  return (
    <>
      Quiet hours: sent at <Timestamp at={notBefore} />
    </>
  );
}

function Preview(props: { readonly result: NoteResult; readonly place: JobRecipient | undefined }) {
  const { place, result } = props;
  const { html, message } = result;
  const { subject, text, segments } = message;
  return (
    <>
      <Note>
        {place ? <bdi>{formatRecipient(place)}</bdi> : null}
        {place?.notBefore ? (
          <>
            {' '}
            after the quiet hours, at <Timestamp at={place.notBefore} />
          </>
        ) : (
          ', within a minute'
        )}
      </Note>
      {html === null ? (
        <>
          <SmsBubble text={text ?? ''} />
          <p className={ui.hint}>{formatCount(segments ?? 1, 'segment')}</p>
        </>
      ) : (
        <>
          <p className={ui.name}>{subject}</p>
          <MailFrame html={html} title={`Preview: ${subject}`} dark={false} narrow={false} />
        </>
      )}
    </>
  );
}
