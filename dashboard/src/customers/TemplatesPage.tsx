/** For what an account has words of its own. */
import { useQuery } from '@tanstack/react-query';
import { Fragment } from 'react';
import { Link } from 'wouter';
import type * as z from 'zod';
import type * as views from '../../../shared/api/notification-views.ts';
import { channels, locales, messageKinds } from '../../../shared/notifications/types.ts';
import { Failure, Panel } from '../components.tsx';
import { channelNames, kindNames, kinds } from '../messages.ts';
import { useApi } from '../queries.ts';
import { formatExactTime } from '../times.tsx';
import css from './customers.module.css';
import { localeNames } from './labels.ts';
import { AccountPage, useCustomersHref } from './layout.tsx';

type Listed = z.infer<typeof views.ListedTemplate>;

export default function TemplatesPage({ account }: { readonly account: string }) {
  const api = useApi();
  const { data, error, refetch } = useQuery({
    queryKey: ['templates', account],
    queryFn: async ({ signal }) =>
      (
        await api.get<{ templates: readonly Listed[] }>(
          `/v1/accounts/${encodeURIComponent(account)}/templates`,
          { signal },
        )
      ).templates,
  });
  return (
    <AccountPage account={account} part="templates" title={`The words of ${account}`}>
      {error && !data ? <Failure error={error} again={refetch} /> : null}
      <Panel
        title="Templates"
        aside="Where an account has no words of its own, those of another locale of the language count, else the default ones."
      >
        <div className={css.scrolls}>
          <table className={css.matrix}>
            <thead>
              <tr>
                <th scope="col">What it is about</th>
                <th scope="col">By</th>
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
                          <span className={css.quiet}>{messageKinds[kind]}</span>
                        </th>
                      ) : null}
                      <th scope="row">{channelNames[channel]}</th>
                      {locales.map((locale) => (
                        <Cell
                          key={locale}
                          account={account}
                          place={{ kind, channel, locale }}
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
  readonly place: Pick<Listed, 'kind' | 'channel' | 'locale'>;
  readonly listed: Listed | undefined;
}) {
  const { account, listed } = props;
  const { kind, channel, locale } = props.place;
  const href = useCustomersHref(account);
  const own = listed?.custom === true;
  return (
    <td data-own={own || undefined}>
      <Link
        href={href(`templates/${kind}/${channel}/${locale}`)}
        aria-label={`${kindNames[kind]}, ${channelNames[channel]}, ${localeNames[locale]}: ${own ? 'its own' : 'default'}`}
        title={listed?.changedAt ? `Saved ${formatExactTime(listed.changedAt)}` : undefined}
      >
        {own ? 'Own' : 'Default'}
      </Link>
    </td>
  );
}
