/** Overview of an account's templates. */
import { useQuery } from '@tanstack/react-query';
import { Fragment } from 'react';
import { Link } from 'wouter';
import type { ListedTemplate } from '../../../client/index.ts';
import { channels, locales, messageKinds } from '../../../shared/notifications/types.ts';
import { withId } from '../api.ts';
import { Failure, Panel } from '../components.tsx';
import { channelNames, kindNames, kinds } from '../messages.ts';
import { useApi } from '../queries.ts';
import { formatExactTime } from '../times.tsx';
import ui from '../ui.module.css';
import css from './customers.module.css';
import { localeNames } from './labels.ts';
import { AccountPage, useCustomersHref } from './layout.tsx';

export default function TemplatesPage({ account }: { readonly account: string }) {
  const api = useApi();
  const { data, error, refetch } = useQuery({
    queryKey: ['templates', account],
    queryFn: async ({ signal }) =>
      (await api.get('/v1/accounts/{id}/templates', { ...withId(account), signal })).templates,
  });
  return (
    <AccountPage account={account} part="templates" title={`Templates of ${account}`}>
      {error && !data ? <Failure error={error} again={refetch} /> : null}
      <Panel
        title="Templates"
        aside="Default: the account’s template for another locale of the language, else the template of Jobwire."
      >
        <div className={css.scrolls}>
          <table className={css.matrix}>
            <thead>
              <tr>
                <th scope="col">Message type</th>
                <th scope="col">Channel</th>
                {locales.map((locale) => (
                  <th key={locale} scope="col" title={localeNames[locale]}>
                    <abbr title={localeNames[locale]}>{locale}</abbr>
                  </th>
                ))}
              </tr>
            </thead>
            <tbody>
              {kinds.map((kind) => (
                <Fragment key={kind}>
                  {channels.map((channel, at) => (
                    <tr key={channel}>
                      {at === 0 ? (
                        <th scope="rowgroup" rowSpan={channels.length}>
                          {kindNames[kind]}
                          <span className={ui.hint}>{messageKinds[kind]}</span>
                        </th>
                      ) : null}
                      <th scope="row">{channelNames[channel]}</th>
                      {locales.map((locale) => (
                        <Cell
                          key={locale}
                          account={account}
                          template={{ kind, channel, locale }}
                          listed={data?.find(
                            (one) => one.kind === kind && one.channel === channel && one.locale === locale,
                          )}
                        />
                      ))}
                    </tr>
                  ))}
                </Fragment>
              ))}
            </tbody>
          </table>
        </div>
      </Panel>
    </AccountPage>
  );
}

function Cell(props: {
  readonly account: string;
  readonly template: Pick<ListedTemplate, 'kind' | 'channel' | 'locale'>;
  readonly listed: ListedTemplate | undefined;
}) {
  const { account, listed } = props;
  const { kind, channel, locale } = props.template;
  const href = useCustomersHref(account);
  const own = listed?.custom === true;
  return (
    <td data-own={own || undefined}>
      <Link
        href={href(`templates/${kind}/${channel}/${locale}`)}
        aria-label={`${kindNames[kind]}, ${channelNames[channel]}, ${localeNames[locale]}: ${own ? 'custom' : 'default'}`}
        title={listed?.changedAt ? `Saved ${formatExactTime(listed.changedAt)}` : undefined}
      >
        {own ? 'Custom' : 'Default'}
      </Link>
    </td>
  );
}
