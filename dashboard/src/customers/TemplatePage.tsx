/** The words of an account for one kind of message, beside what comes of them. */
import { Button, Textarea } from '@mantine/core';
import { useQuery, useQueryClient } from '@tanstack/react-query';
import { useRef, useState } from 'react';
import { texts } from '../../../shared/notifications/texts/texts.ts';
import { channels, locales } from '../../../shared/notifications/types.ts';
import { Badge, Empty, Failure, Note, Page, Panel, showToast, useConfirm } from '../components.tsx';
import { channelNames, kindNames, kinds } from '../messages.ts';
import { useApi } from '../queries.ts';
import { useSession } from '../session.ts';
import { Timestamp } from '../times.tsx';
import { useLeaveGuard } from '../unsaved-changes.ts';
import css from './customers.module.css';
import { localeNames } from './labels.ts';
import { AccountPage } from './layout.tsx';
import { PreviewPanel } from './PreviewPanel.tsx';
import {
  type Template,
  type TemplateError,
  type TemplateField,
  type TemplateKey,
  type TemplateText,
  templateFields,
  templateVariables,
  toTemplateError,
} from './template-fields.ts';

export default function TemplatePage(props: {
  readonly account: string;
  readonly place: { readonly kind: string; readonly channel: string; readonly locale: string };
}) {
  const { account } = props;
  const kind = kinds.find((one) => one === props.place.kind);
  const channel = channels.find((one) => one === props.place.channel);
  const locale = locales.find((one) => one === props.place.locale);
  if (kind && channel && locale)
    return <TemplateEditorPage account={account} place={{ kind, channel, locale }} />;
  return (
    <Page title="There is no such template">
      <Empty>Templates are for a kind of message, e-mail or SMS, and a language.</Empty>
    </Page>
  );
}

const pathOf = (account: string, { kind, channel, locale }: TemplateKey): string =>
  `/v1/accounts/${encodeURIComponent(account)}/templates/${kind}/${channel}/${locale}`;

function TemplateEditorPage({ account, place }: { readonly account: string; readonly place: TemplateKey }) {
  const api = useApi();
  const { kind, channel, locale } = place;
  const queries = useQueryClient();
  const [version, setVersion] = useState(0);
  const queryKey = ['template', account, place];
  const { data, error, refetch } = useQuery({
    queryKey,
    queryFn: ({ signal }) => api.get<Template>(pathOf(account, place), { signal }),
  });
  return (
    <AccountPage
      account={account}
      part="templates"
      title={`${kindNames[kind]}: ${channelNames[channel]} in ${localeNames[locale]}`}
    >
      {error && !data ? <Failure error={error} again={refetch} /> : null}
      {data ? (
        <Editor
          key={version}
          account={account}
          place={place}
          saved={data}
          begin={async (fresh) => {
            if (fresh) queries.setQueryData(queryKey, fresh);
            else await refetch();
            setVersion((before) => before + 1);
          }}
        />
      ) : null}
    </AccountPage>
  );
}

function Editor(props: {
  readonly account: string;
  readonly place: TemplateKey;
  readonly saved: Template;
  /** Begins anew, with what was saved or else with what is there now. */
  readonly begin: (fresh?: Template) => Promise<void>;
}) {
  const { account, place, begin } = props;
  const { kind, channel, locale } = place;
  const [saved] = useState(props.saved);
  const before: TemplateText = saved.custom ? saved.template : {};
  const [written, setWritten] = useState(before);
  const [refusal, setRefusal] = useState<TemplateError | null>(null);
  const [tried, setTried] = useState<TemplateError | null>(null);
  const [busy, setBusy] = useState(false);
  const writing = useRef<{ readonly name: string; readonly element: HTMLTextAreaElement } | null>(null);
  const api = useApi();
  const ask = useConfirm();
  const queries = useQueryClient();
  const session = useSession();
  const may = session.may('admin');
  const changed = !isSame(written, before);
  useLeaveGuard(changed && !busy);

  const write = (name: string, text: string | undefined): void => {
    setRefusal(null);
    setWritten((old) => {
      const { [name]: _, ...others } = old;
      return text === undefined ? others : { ...others, [name]: text };
    });
  };
  const insert = (name: string): void => {
    const at = writing.current;
    if (!at?.element.isConnected) return;
    const { element } = at;
    element.focus();
    element.setRangeText(`{{ ${name} }}`, element.selectionStart, element.selectionEnd, 'end');
    write(at.name, element.value);
  };
  async function again(fresh?: Template): Promise<void> {
    await Promise.all([
      queries.invalidateQueries({ queryKey: ['templates', account] }),
      queries.invalidateQueries({ queryKey: ['preview', account], refetchType: 'none' }),
    ]);
    await begin(fresh);
  }
  async function save(): Promise<void> {
    setBusy(true);
    setRefusal(null);
    try {
      const kept = await api.put<Template>(pathOf(account, place), { body: written });
      showToast('The template is saved: messages are made with it from now on.');
      await again(kept);
    } catch (cause) {
      setRefusal(toTemplateError(cause));
    } finally {
      setBusy(false);
    }
  }
  const takeAway = (): void =>
    ask({
      title: 'Take these words away?',
      body: `The template of ${account} is deleted, and the default counts again${locale.startsWith('en') ? ', or what the account has for another English' : ''}.`,
      verb: 'Take away',
      destructive: true,
      onConfirm: async () => {
        await api.delete(pathOf(account, place));
        setWritten(before);
        showToast('The default counts again.');
        await again();
      },
    });

  const defaults: TemplateText = texts[locale][channel][kind];
  const fields = templateFields[channel];
  const fault = refusal ?? tried;
  const other = fault && !fields.some(({ name }) => name === fault.field) ? fault.message : null;
  return (
    <div className={css.editor}>
      <div className={css.words}>
        <Panel
          title="Words"
          aside={
            saved.changedAt ? (
              <>
                <Badge tone="good">Its own</Badge> saved <Timestamp at={saved.changedAt} as="whole" />
              </>
            ) : (
              <Badge>Default</Badge>
            )
          }
        >
          {fields.map((field) => (
            <TemplateFieldInput
              key={field.name}
              field={field}
              text={written[field.name]}
              fallback={defaults[field.name]}
              error={fault?.field === field.name ? fault.message : undefined}
              readOnly={!may}
              write={(text) => write(field.name, text)}
              onFocus={(element) => {
                writing.current = { name: field.name, element };
              }}
            />
          ))}
          {other === null ? null : (
            <Note tone="bad" live>
              {other}
            </Note>
          )}
          {may ? (
            <div className={css.foot} data-inside>
              <Button
                onClick={() => void save()}
                loading={busy}
                disabled={!changed || Object.keys(written).length === 0}
              >
                Save
              </Button>
              {changed ? (
                <Button variant="default" onClick={() => setWritten(before)}>
                  Undo what is not saved
                </Button>
              ) : null}
              {saved.custom ? (
                <Button variant="subtle" color="red" onClick={takeAway}>
                  Take away
                </Button>
              ) : null}
              {saved.custom && Object.keys(written).length === 0 ? (
                <span className={css.quiet}>All of it is the default: take the template away instead.</span>
              ) : null}
            </div>
          ) : null}
        </Panel>
      </div>
      {session.may('operate') ? (
        <PreviewPanel
          account={account}
          place={place}
          // What counts is shown until something is written; a subject alone says: all is the default.
          template={
            !changed
              ? undefined
              : Object.keys(written).length > 0
                ? written
                : channel === 'sms'
                  ? { text: defaults.text ?? '' }
                  : { subject: defaults.subject ?? '' }
          }
          own={saved.custom}
          onFault={setTried}
        />
      ) : (
        <div className={css.preview}>
          <Note>Your key may not have previews made. It takes one of role operate or admin.</Note>
        </div>
      )}
      <div className={css.putIn}>
        <Variables channel={channel} insert={may ? insert : undefined} />
      </div>
    </div>
  );
}

/** A field: the default until it is written anew. */
function TemplateFieldInput(props: {
  readonly field: TemplateField;
  readonly text: string | undefined;
  readonly fallback: string | undefined;
  readonly error: string | undefined;
  readonly readOnly: boolean;
  readonly write: (text: string | undefined) => void;
  readonly onFocus: (element: HTMLTextAreaElement) => void;
}) {
  const { field, text, fallback, error, readOnly, write, onFocus } = props;
  const own = text !== undefined;
  if (!own) {
    return (
      <div className={css.field}>
        <div className={css.fieldHead}>
          <div>
            <span className={css.label}>{field.label}</span>{' '}
            <span className={css.quiet}>{field.description}</span>
          </div>
          {readOnly ? null : (
            <Button
              size="compact-xs"
              variant="default"
              aria-label={`Write anew: ${field.label}`}
              onClick={() => write(fallback ?? field.initialText ?? '')}
            >
              Write anew
            </Button>
          )}
        </div>
        <div className={css.fallback}>
          {field.initialText !== undefined ? 'The layout of Jobwire' : fallback === '' ? 'Nothing' : fallback}
        </div>
        {error === undefined ? null : <p className={css.error}>{error}</p>}
      </div>
    );
  }
  return (
    <div className={css.field}>
      <div className={css.fieldHead}>
        {readOnly ? null : (
          <Button
            size="compact-xs"
            variant="default"
            className={css.fieldButton}
            aria-label={`Take the default: ${field.label}`}
            onClick={() => write(undefined)}
          >
            Take the default
          </Button>
        )}
      </div>
      <Textarea
        label={field.label}
        description={field.description}
        rows={field.rows}
        autosize={false}
        spellCheck={false}
        readOnly={readOnly}
        error={error}
        value={text}
        classNames={{ input: css.code }}
        onFocus={(event) => onFocus(event.currentTarget)}
        onChange={(event) => write(event.currentTarget.value)}
      />
    </div>
  );
}

function Variables(props: {
  readonly channel: TemplateKey['channel'];
  readonly insert: ((name: string) => void) | undefined;
}) {
  const { channel, insert } = props;
  const shown = templateVariables.filter(({ channel: only }) => only === undefined || only === channel);
  return (
    <Panel title="What can be put in">
      <p className={css.paragraph}>
        Templates are Liquid: <code>{'{{ order }}'}</code> puts something in,{' '}
        <code>{'{% if group %}…{% endif %}'}</code> decides, and{' '}
        <code>{'{{ count | plural: "job", "jobs" }}'}</code> counts as the language does.
        {insert ? ' A press on a name puts it where you were writing.' : ''}
      </p>
      <dl className={css.variables}>
        {shown.map(({ name, description: about }) => (
          <div key={name}>
            <dt>
              {insert ? (
                <button
                  type="button"
                  // The field that one was writing in keeps the focus, and its place.
                  onMouseDown={(event) => event.preventDefault()}
                  onClick={() => insert(name)}
                >
                  {name}
                </button>
              ) : (
                <code>{name}</code>
              )}
            </dt>
            <dd>{about}</dd>
          </div>
        ))}
      </dl>
    </Panel>
  );
}

function isSame(one: TemplateText, other: TemplateText): boolean {
  const names = Object.keys(one);
  return names.length === Object.keys(other).length && names.every((name) => one[name] === other[name]);
}
