/** Preview of a message. */
import { Button, NativeSelect, SegmentedControl, TextInput } from '@mantine/core';
import { useDebouncedValue } from '@mantine/hooks';
import { keepPreviousData, useQuery } from '@tanstack/react-query';
import { useEffect, useRef, useState } from 'react';
import type { MessagePreview, TestEmailRequest } from '../../../client/index.ts';
import { useActions } from '../actions.ts';
import { withId } from '../api.ts';
import { Failure, Hidden, Note, Panel } from '../components.tsx';
import { toOptions } from '../filters.tsx';
import { useApi } from '../queries.ts';
import { useSession } from '../session.ts';
import { formatCount } from '../texts.ts';
import ui from '../ui.module.css';
import css from './customers.module.css';
import { localeNames, zoneOptions } from './labels.ts';
import { MailFrame } from './MailFrame.tsx';
import { SmsBubble } from './SmsBubble.tsx';
import {
  type TemplateError,
  type TemplateKey,
  type TemplateText,
  toTemplateError,
} from './template-fields.ts';

/** Time without input before a preview is requested. */
const DEBOUNCE_MS = 400;

/**
 * Shows a preview beside the editor. `unsaved`: the edited template; default: the template in effect. Calls `onError` with the error of
 * the template, or `null`.
 */
export function PreviewPanel(props: {
  readonly account: string;
  readonly template: TemplateKey;
  readonly unsaved: TemplateText | undefined;
  readonly own: boolean;
  readonly onError: (error: TemplateError | null) => void;
}) {
  const { account, template, unsaved, own, onError } = props;
  const api = useApi();
  const [job, setJob] = useState('');
  const [locale, setLocale] = useState<string>(template.locale);
  const [zone, setZone] = useState('');
  const isJob = /^\s*[1-9]\d{0,11}\s*$/.test(job);
  const request = JSON.stringify({
    kind: template.kind,
    channel: template.channel,
    locale,
    ...(zone === '' ? {} : { zone }),
    ...(isJob ? { jobNumber: Number(job) } : {}),
    ...(unsaved === undefined ? {} : { template: unsaved }),
  });
  const [requested] = useDebouncedValue(request, DEBOUNCE_MS);
  const { data, error, isFetching } = useQuery({
    queryKey: ['preview', account, requested],
    queryFn: ({ signal }) =>
      api.post('/v1/accounts/{id}/notifications/preview', {
        ...withId(account),
        body: JSON.parse(requested),
        signal,
      }),
    placeholderData: keepPreviousData,
    retry: false,
  });
  const last = useRef<MessagePreview>(undefined);
  if (data) last.current = data;
  const shown = last.current;
  const invalid = error ? toTemplateError(error) : null;
  const jobError = invalid?.field === 'jobNumber' ? invalid.message : undefined;
  const templateError = invalid && jobError === undefined ? invalid : null;
  const [field, message] = [templateError?.field, templateError?.message];
  useEffect(() => {
    onError(message === undefined ? null : { field, message });
  }, [field, message, onError]);

  return (
    <div className={css.preview}>
      <Panel
        title="Preview"
        aside={
          <span role="status">
            {invalid
              ? 'Last valid version'
              : isFetching || requested !== request
                ? 'Updating …'
                : 'Up to date'}
          </span>
        }
      >
        <div className={`${ui.columns} ${css.previewOf}`}>
          <TextInput
            label="Job"
            size="xs"
            inputMode="numeric"
            placeholder="Sample data"
            value={job}
            error={job.trim() !== '' && !isJob ? 'It must be a job number.' : jobError}
            onChange={({ currentTarget: { value } }) => setJob(value)}
          />
          <NativeSelect
            label="Language"
            size="xs"
            data={toOptions(localeNames)}
            value={locale}
            onChange={({ currentTarget: { value } }) => setLocale(value)}
          />
          <NativeSelect
            label="Time zone"
            size="xs"
            data={[{ value: '', label: 'Account default' }, ...zoneOptions(null)]}
            value={zone}
            onChange={({ currentTarget: { value } }) => setZone(value)}
          />
        </div>
        {shown?.custom && !own && unsaved === undefined ? (
          <Note>The account’s template for another locale of this language applies here.</Note>
        ) : null}
        {shown ? <PreviewContent preview={shown} /> : null}
      </Panel>
      {template.channel === 'email' ? (
        <TestEmail account={account} disabled={invalid !== null} body={JSON.parse(request)} />
      ) : null}
    </div>
  );
}

/** Sends the previewed e-mail to the signed-in user, the reply-to address or a recipient for the whole account. */
function TestEmail(props: {
  readonly account: string;
  readonly disabled: boolean;
  readonly body: Omit<TestEmailRequest, 'to'> & { readonly channel?: unknown };
}) {
  const { account, disabled, body } = props;
  const api = useApi();
  const { user } = useSession().key;
  const [to, setTo] = useState(user?.name?.includes('@') ? user.name : '');
  const { run, busy, failure } = useActions([]);
  const send = async (): Promise<void> => {
    const { channel: _, ...request } = body;
    const path = '/v1/accounts/{id}/notifications/test';
    const result = await api.post(path, { ...withId(account), body: { ...request, to: to.trim() } });
    if (!result.sent) throw new Error(result.message ?? 'The mail server did not accept the e-mail.');
  };
  return (
    <Panel title="Test e-mail">
      <form
        onSubmit={(event) => {
          event.preventDefault();
          void run('send', send, 'Test e-mail sent.');
        }}
      >
        <div className={ui.stack}>
          <TextInput
            label="Send to"
            type="email"
            size="xs"
            description="Your own address, the reply-to address of the settings, or the address of a recipient who gets messages about all jobs of the account."
            value={to}
            onChange={({ currentTarget: { value } }) => setTo(value)}
          />
          {failure ? <Failure error={failure} /> : null}
          <div>
            <Button type="submit" size="xs" loading={busy !== null} disabled={disabled || !to.trim()}>
              Send test e-mail
            </Button>
          </div>
        </div>
      </form>
    </Panel>
  );
}

function PreviewContent({ preview }: { readonly preview: MessagePreview }) {
  const [part, setPart] = useState('HTML');
  const [width, setWidth] = useState('Desktop');
  const [scheme, setScheme] = useState('Light');
  const { html, text, subject, segments, encoding } = preview;
  if (html === null) {
    return (
      <>
        <SmsBubble text={text} />
        <p className={ui.hint}>
          {formatCount(segments ?? 1, 'segment')}, {[...text].length} characters in {encoding}
          {encoding === 'UCS-2' ? ', because the text has characters outside GSM-7' : ''}
        </p>
      </>
    );
  }
  return (
    <>
      <div className={ui.actions}>
        <SegmentedControl
          aria-label="Part"
          size="xs"
          data={['HTML', 'Text']}
          value={part}
          onChange={setPart}
        />
        {part === 'HTML' ? (
          <>
            <SegmentedControl
              aria-label="Width"
              size="xs"
              data={['Desktop', 'Phone']}
              value={width}
              onChange={setWidth}
            />
            <SegmentedControl
              aria-label="Colours"
              size="xs"
              data={['Light', 'Dark']}
              value={scheme}
              onChange={setScheme}
            />
          </>
        ) : null}
      </div>
      <p className={ui.name}>
        <Hidden>Subject: </Hidden>
        {subject}
      </p>
      {part === 'HTML' ? (
        <>
          <MailFrame
            html={html}
            title={`Preview: ${subject}`}
            dark={scheme === 'Dark'}
            narrow={width === 'Phone'}
          />
          <p className={ui.hint}>
            Links are disabled in the preview. Images from the web, such as a logo, appear as their
            alternative text.
          </p>
        </>
      ) : (
        <pre className={ui.verbatim}>{text}</pre>
      )}
    </>
  );
}
