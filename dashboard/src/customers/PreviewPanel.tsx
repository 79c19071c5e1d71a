/** What a message would say. */
import { NativeSelect, TextInput, UnstyledButton } from '@mantine/core';
import { useDebouncedValue } from '@mantine/hooks';
import { keepPreviousData, useQuery } from '@tanstack/react-query';
import { useEffect, useRef, useState } from 'react';
import type * as z from 'zod';
import type * as views from '../../../shared/api/notification-views.ts';
import { Hidden, Note, Panel } from '../components.tsx';
import { useApi } from '../queries.ts';
import css from './customers.module.css';
import { formatCount, localeOptions, zoneOptions } from './labels.ts';
import { MailFrame } from './MailFrame.tsx';
import { SmsBubble } from './SmsBubble.tsx';
import {
  type TemplateError,
  type TemplateKey,
  type TemplateText,
  toTemplateError,
} from './template-fields.ts';

type Preview = z.infer<typeof views.Preview>;

/** As long nothing was typed in before a preview is asked for. */
const DEBOUNCE_MS = 400;

/**
 * A preview beside an editor. `template`: what is written and not saved; without it what counts is shown. What is wrong with
 * the template is told by `onFault`.
 */
export function PreviewPanel(props: {
  readonly account: string;
  readonly place: TemplateKey;
  readonly template: TemplateText | undefined;
  readonly own: boolean;
  readonly onFault: (fault: TemplateError | null) => void;
}) {
  const { account, place, template, own, onFault } = props;
  const api = useApi();
  const [job, setJob] = useState('');
  const [locale, setLocale] = useState<string>(place.locale);
  const [zone, setZone] = useState('');
  const isJob = /^\s*[1-9]\d{0,11}\s*$/.test(job);
  const request = JSON.stringify({
    kind: place.kind,
    channel: place.channel,
    locale,
    ...(zone === '' ? {} : { zone }),
    ...(isJob ? { jobNumber: Number(job) } : {}),
    ...(template === undefined ? {} : { template }),
  });
  const [asked] = useDebouncedValue(request, DEBOUNCE_MS);
  const { data, error, isFetching } = useQuery({
    queryKey: ['preview', account, asked],
    queryFn: ({ signal }) =>
      api.post<Preview>(`/v1/accounts/${encodeURIComponent(account)}/notifications/preview`, {
        body: JSON.parse(asked),
        signal,
      }),
    placeholderData: keepPreviousData,
    retry: false,
  });
  const last = useRef<Preview>(undefined);
  if (data) last.current = data;
  const shown = last.current;
  const fault = error ? toTemplateError(error) : null;
  const ofJob = fault?.field === 'jobNumber' ? fault.message : undefined;
  const ofTemplate = fault && ofJob === undefined ? fault : null;
  const [field, sentence] = [ofTemplate?.field, ofTemplate?.message];
  useEffect(() => {
    onFault(sentence === undefined ? null : { field, message: sentence });
  }, [field, sentence, onFault]);

  return (
    <div className={css.preview}>
      <Panel
        title="Preview"
        aside={
          <span role="status">
            {fault
              ? 'As it was before the fault'
              : isFetching || asked !== request
                ? 'Being made …'
                : 'Up to date'}
          </span>
        }
      >
        <div className={css.previewOf}>
          <TextInput
            label="Job"
            size="xs"
            inputMode="numeric"
            placeholder="A made-up one"
            value={job}
            error={job.trim() !== '' && !isJob ? 'It must be the number of a job.' : ofJob}
            onChange={({ currentTarget: { value } }) => setJob(value)}
          />
          <NativeSelect
            label="Read in"
            size="xs"
            data={localeOptions}
            value={locale}
            onChange={({ currentTarget: { value } }) => setLocale(value)}
          />
          <NativeSelect
            label="Times of"
            size="xs"
            data={[{ value: '', label: 'The account’s zone' }, ...zoneOptions(null)]}
            value={zone}
            onChange={({ currentTarget: { value } }) => setZone(value)}
          />
        </div>
        {shown?.custom && !own && template === undefined ? (
          <Note>What the account has for another locale of this language counts here.</Note>
        ) : null}
        {shown ? <PreviewContent preview={shown} /> : null}
      </Panel>
    </div>
  );
}

function PreviewContent({ preview }: { readonly preview: Preview }) {
  const [part, setPart] = useState<'html' | 'text'>('html');
  const [width, setWidth] = useState<'desktop' | 'phone'>('desktop');
  const [scheme, setScheme] = useState<'light' | 'dark'>('light');
  const { html, text, subject, segments, encoding } = preview;
  if (html === null) {
    return (
      <>
        <SmsBubble text={text} />
        <p className={css.paragraph}>
          {formatCount(segments ?? 1, 'segment')}, {[...text].length} characters in {encoding}
          {encoding === 'UCS-2' ? ', for it has characters that the alphabet of SMS lacks' : ''}
        </p>
      </>
    );
  }
  return (
    <>
      <div className={css.row}>
        <Choice name="Part" value={part} choose={setPart} options={{ html: 'HTML', text: 'Text' }} />
        {part === 'html' ? (
          <>
            <Choice
              name="Width"
              value={width}
              choose={setWidth}
              options={{ desktop: 'Desktop', phone: 'Phone' }}
            />
            <Choice
              name="Colours"
              value={scheme}
              choose={setScheme}
              options={{ light: 'Light', dark: 'Dark' }}
            />
          </>
        ) : null}
      </div>
      <p className={css.subject}>
        <Hidden>Subject: </Hidden>
        {subject}
      </p>
      {part === 'html' ? (
        <>
          <MailFrame
            html={html}
            title={`Preview: ${subject}`}
            dark={scheme === 'dark'}
            narrow={width === 'phone'}
          />
          <p className={css.paragraph}>
            Links lead nowhere here, and pictures from the web, such as a logo, are shown by their names.
          </p>
        </>
      ) : (
        <pre className={css.plain}>{text}</pre>
      )}
    </>
  );
}

/** One of a few, side by side. */
function Choice<T extends string>(props: {
  readonly name: string;
  readonly value: T;
  readonly options: Readonly<Record<T, string>>;
  readonly choose: (value: T) => void;
}) {
  const { name, value, options, choose } = props;
  return (
    <fieldset className={css.choice}>
      <legend>{name}</legend>
      {(Object.keys(options) as T[]).map((option) => (
        <UnstyledButton key={option} aria-pressed={option === value} onClick={() => choose(option)}>
          {options[option]}
        </UnstyledButton>
      ))}
    </fieldset>
  );
}
