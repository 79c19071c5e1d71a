/** Overview of an account's templates. */
import { useQuery } from '@tanstack/react-query';
import { Link } from 'wouter';
import type { ListedTemplate } from '../../../client/index.ts';
import { channels, locales, messageKinds } from '../../../shared/notifications/types.ts';
import { withId } from '../api.ts';
import { Loaded, Panel } from '../components.tsx';
import { DataTable } from '../DataTable.tsx';
import { channelNames, kindNames, kinds } from '../messages.ts';
import { useApi } from '../queries.ts';
import { formatExactTime } from '../times.tsx';
import ui from '../ui.module.css';
import { localeNames } from './labels.ts';
import { AccountPage, useCustomersHref } from './layout.tsx';
import type { TemplateKey } from './template-fields.ts';

const ROWS = kinds.flatMap((kind) => channels.map((channel) => ({ kind, channel })));

export default function TemplatesPage({ account }: { readonly account: string }) {
  const api = useApi();
  const templates = useQuery({
    queryKey: ['templates', account],
    queryFn: async ({ signal }) =>
      (await api.get('/v1/accounts/{id}/templates', { ...withId(account), signal })).templates,
  });
  return (
    <AccountPage account={account} part="templates" title={`Templates of ${account}`}>
      <Panel
        title="Templates"
        aside="A locale without its own template uses the account’s template for another locale of the same language, or the default template."
      >
        <Loaded query={templates}>
          {(listed) => (
            <DataTable
              label="Templates"
              rows={ROWS}
              getKey={({ kind, channel }) => `${kind} ${channel}`}
              columns={{
                'Message kind': ({ kind, channel }) => (
                  <>
                    <span className={ui.name}>{kindNames[kind]}</span>, {channelNames[channel]}
                    <div className={ui.hint}>{messageKinds[kind]}</div>
                  </>
                ),
                ...Object.fromEntries(
                  locales.map((locale) => [
                    locale,
                    (row: (typeof ROWS)[number]) => (
                      <TemplateLink account={account} template={{ ...row, locale }} listed={listed} />
                    ),
                  ]),
                ),
              }}
            />
          )}
        </Loaded>
      </Panel>
    </AccountPage>
  );
}

function TemplateLink(props: {
  readonly account: string;
  readonly template: TemplateKey;
  readonly listed: readonly ListedTemplate[];
}) {
  const { kind, channel, locale } = props.template;
  const href = useCustomersHref(props.account);
  const { custom = false, changedAt } =
    props.listed.find((one) => one.kind === kind && one.channel === channel && one.locale === locale) ?? {};
  return (
    <Link
      className={custom ? ui.name : ui.quiet}
      href={href(`templates/${kind}/${channel}/${locale}`)}
      aria-label={`${kindNames[kind]}, ${channelNames[channel]}, ${localeNames[locale]}: ${custom ? 'custom' : 'default'}`}
      title={changedAt ? `Saved ${formatExactTime(changedAt)}` : undefined}
    >
      {custom ? 'Custom' : 'Default'}
    </Link>
  );
}
