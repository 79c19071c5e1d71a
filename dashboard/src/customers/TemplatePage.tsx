/** Editor of one template, with a preview. */
import { Button, Input, Textarea } from '@mantine/core';
import { useQuery, useQueryClient } from '@tanstack/react-query';
import { useRef, useState } from 'react';
import { texts } from '../../../shared/notifications/texts/texts.ts';
import { channels, locales } from '../../../shared/notifications/types.ts';
import {
  Badge,
  DescriptionList,
  Empty,
  Loaded,
  Note,
  Page,
  Panel,
  showToast,
  useConfirm,
} from '../components.tsx';
import { isEqual } from '../form-values.ts';
import { channelNames, kindNames, kinds } from '../messages.ts';
import { useApi } from '../queries.ts';
import { useSession } from '../session.ts';
import { Timestamp } from '../times.tsx';
import ui from '../ui.module.css';
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

const TEMPLATE = '/v1/accounts/{id}/templates/{kind}/{channel}/{locale}';
const withTemplate = (id: string, { kind, channel, locale }: TemplateKey) => ({
  params: { path: { id, kind, channel, locale } },
});

export default function TemplatePage(props: {
  readonly account: string;
  readonly place: { readonly kind: string; readonly channel: string; readonly locale: string };
}) {
  const { account } = props;
  const kind = kinds.find((one) => one === props.place.kind);
  const channel = channels.find((one) => one === props.place.channel);
  const locale = locales.find((one) => one === props.place.locale);
  if (kind && channel && locale)
    return <TemplateEditorPage account={account} template={{ kind, channel, locale }} />;
  return (
    <Page title="Template not found">
      <Empty>The address must name a message kind, a channel and a locale.</Empty>
    </Page>
  );
}

function TemplateEditorPage(props: { readonly account: string; readonly template: TemplateKey }) {
  const { account, template } = props;
  const { kind, channel, locale } = template;
  const api = useApi();
  const saved = useQuery({
    queryKey: ['template', account, template],
    queryFn: ({ signal }) => api.get(TEMPLATE, { ...withTemplate(account, template), signal }),
    // The editor begins with the latest version.
    gcTime: 0,
  });
  return (
    <AccountPage
      account={account}
      part="templates"
      title={`${kindNames[kind]}: ${channelNames[channel]} in ${localeNames[locale]}`}
    >
      <Loaded query={saved}>{(data) => <Editor {...props} initial={data} />}</Loaded>
    </AccountPage>
  );
}

const getText = (template: Template): TemplateText => (template.custom ? template.template : {});

function Editor(props: {
  readonly account: string;
  readonly template: TemplateKey;
  readonly initial: Template;
}) {
  const { account, template } = props;
  const { channel, locale } = template;
  const [saved, setSaved] = useState(props.initial);
  const before = getText(saved);
  const [text, setText] = useState(before);
  const [saveError, setSaveError] = useState<TemplateError | null>(null);
  const [previewError, setPreviewError] = useState<TemplateError | null>(null);
  const [busy, setBusy] = useState(false);
  const lastFocused = useRef<{ readonly name: string; readonly element: HTMLTextAreaElement } | null>(null);
  const api = useApi();
  const confirm = useConfirm();
  const queries = useQueryClient();
  const session = useSession();
  const may = session.hasRole('admin');
  const changed = !isEqual(text, before);
  useLeaveGuard(changed && !busy);

  const setField = (name: string, value: string | undefined): void => {
    setSaveError(null);
    setText((old) => {
      const { [name]: _, ...others } = old;
      return value === undefined ? others : { ...others, [name]: value };
    });
  };
  const insert = (name: string): void => {
    const field = lastFocused.current;
    if (!field?.element.isConnected) return;
    const { element } = field;
    element.focus();
    element.setRangeText(`{{ ${name} }}`, element.selectionStart, element.selectionEnd, 'end');
    setField(field.name, element.value);
  };
  async function edit(current: Template): Promise<void> {
    setSaved(current);
    // Text that was typed during the request is kept.
    setText((typed) => (typed === text ? getText(current) : typed));
    queries.setQueryData(['template', account, template], current);
    await Promise.all([
      queries.invalidateQueries({ queryKey: ['templates', account] }),
      queries.invalidateQueries({ queryKey: ['preview', account], refetchType: 'none' }),
    ]);
  }
  async function save(): Promise<void> {
    setBusy(true);
    setSaveError(null);
    try {
      const { changedAt } = await api.get(TEMPLATE, withTemplate(account, template));
      if (changedAt !== saved.changedAt)
        throw new Error('Another user has changed this template. Copy your text and reload the page.');
      await edit(await api.put(TEMPLATE, { ...withTemplate(account, template), body: text }));
      showToast('Template saved. It applies to new messages.');
    } catch (cause) {
      setSaveError(toTemplateError(cause));
    } finally {
      setBusy(false);
    }
  }
  const remove = (): void =>
    confirm({
      title: 'Delete this template?',
      body: `Messages of ${account} then use the default template${locale.startsWith('en') ? ', or the account’s template for another English locale' : ''}.`,
      verb: 'Delete',
      destructive: true,
      onConfirm: async () => {
        await api.delete(TEMPLATE, withTemplate(account, template));
        await edit(await api.get(TEMPLATE, withTemplate(account, template)));
        showToast('Template deleted. The default applies again.');
      },
    });

  const defaults: TemplateText = texts[locale][channel][template.kind];
  const fields = templateFields[channel];
  const error = saveError ?? previewError;
  const otherError = error && !fields.some(({ name }) => name === error.field) ? error.message : null;
  const isEmpty = Object.keys(text).length === 0;
  return (
    <div className={css.editor}>
      <div className={css.fields}>
        <Panel
          title="Text"
          aside={
            saved.changedAt ? (
              <>
                <Badge tone="good">Custom</Badge> saved <Timestamp at={saved.changedAt} as="whole" />
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
              text={text[field.name]}
              fallback={field.name === 'heading' ? (text.subject ?? defaults.subject) : defaults[field.name]}
              error={error?.field === field.name ? error.message : undefined}
              readOnly={!may}
              onChange={(value) => setField(field.name, value)}
              onFocus={(element) => {
                lastFocused.current = { name: field.name, element };
              }}
            />
          ))}
          {otherError === null ? null : (
            <Note tone="bad" live>
              {otherError}
            </Note>
          )}
          {may ? (
            <div className={ui.actions}>
              <Button
                variant="filled"
                onClick={() => void save()}
                loading={busy}
                disabled={!changed || isEmpty}
              >
                Save
              </Button>
              {changed ? <Button onClick={() => setText(before)}>Discard changes</Button> : null}
              {saved.custom ? (
                <Button variant="subtle" color="red" onClick={remove}>
                  Delete
                </Button>
              ) : null}
              {saved.custom && isEmpty ? (
                <span className={ui.hint}>
                  All fields have their default text. Delete the template instead of saving it.
                </span>
              ) : null}
            </div>
          ) : null}
        </Panel>
      </div>
      {session.hasRole('operate') ? (
        <PreviewPanel
          account={account}
          template={template}
          // Unchanged: the template in effect. Without custom fields: the default, which one default field selects.
          unsaved={
            !changed
              ? undefined
              : !isEmpty
                ? text
                : channel === 'sms'
                  ? { text: defaults.text ?? '' }
                  : { subject: defaults.subject ?? '' }
          }
          own={saved.custom}
          onError={setPreviewError}
        />
      ) : (
        <div className={css.preview}>
          <Note>Previews require a key with the role operate or admin.</Note>
        </div>
      )}
      <div className={css.variablesArea}>
        <Variables channel={channel} insert={may ? insert : undefined} />
      </div>
    </div>
  );
}

/** A field of a template: shows the default, or an input for the custom text. */
function TemplateFieldInput(props: {
  readonly field: TemplateField;
  readonly text: string | undefined;
  readonly fallback: string | undefined;
  readonly error: string | undefined;
  readonly readOnly: boolean;
  /** `undefined`: the default. */
  readonly onChange: (text: string | undefined) => void;
  readonly onFocus: (element: HTMLTextAreaElement) => void;
}) {
  const { field, text, fallback, error, readOnly, onChange, onFocus } = props;
  const isDefault = text === undefined;
  const button = isDefault ? 'Customize' : 'Use default';
  return (
    <div className={css.field}>
      {readOnly ? null : (
        <Button
          size="compact-xs"
          className={css.fieldButton}
          aria-label={`${button}: ${field.label}`}
          onClick={() => onChange(isDefault ? (fallback ?? field.initialText ?? '') : undefined)}
        >
          {button}
        </Button>
      )}
      {isDefault ? (
        <Input.Wrapper labelElement="div" label={field.label} description={field.description} error={error}>
          <div className={css.fallback}>
            {field.initialText !== undefined ? 'Jobwire layout' : fallback === '' ? 'Empty' : fallback}
          </div>
        </Input.Wrapper>
      ) : (
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
          onChange={(event) => onChange(event.currentTarget.value)}
        />
      )}
    </div>
  );
}

function Variables(props: {
  readonly channel: TemplateKey['channel'];
  readonly insert: ((name: string) => void) | undefined;
}) {
  const { channel, insert } = props;
  return (
    <Panel title="Variables">
      <p className={ui.hint}>
        Templates are written in Liquid: <code>{'{{ order }}'}</code> outputs a variable,{' '}
        <code>{'{% if group %}…{% endif %}'}</code> is a condition, and{' '}
        <code>{'{{ count | plural: "job", "jobs" }}'}</code> selects singular or plural.
        {insert ? ' Click a variable to insert it at the cursor.' : ''}
      </p>
      <div className={css.variables}>
        <DescriptionList
          rows={templateVariables[channel]}
          renderName={(name) =>
            insert ? (
              <button
                type="button"
                // Keeps the focus and the cursor in the field.
                onMouseDown={(event) => event.preventDefault()}
                onClick={() => insert(name)}
              >
                {name}
              </button>
            ) : (
              <code>{name}</code>
            )
          }
        />
      </div>
    </Panel>
  );
}
