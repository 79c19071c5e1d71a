/** What customers are told: the pages below `/setup/customers`. */
import { useQuery } from '@tanstack/react-query';
import { lazy, Suspense } from 'react';
import { Link, Route, Switch } from 'wouter';
import { Badge, Empty, Failure, Loading, NotFound, Page, Panel } from '../components.tsx';
import { useAccounts, useApi } from '../queries.ts';
import { buildHref, decodeSegment, useRegion } from '../urls.ts';
import css from './customers.module.css';
import { useCustomersHref } from './layout.tsx';
import { type Settings, toNotificationStatus } from './settings.ts';

const MessagePage = lazy(() => import('./MessagePage.tsx'));
const MessagesPage = lazy(() => import('./MessagesPage.tsx'));
const RecipientsPage = lazy(() => import('./RecipientsPage.tsx'));
const SettingsPage = lazy(() => import('./SettingsPage.tsx'));
const SuppressionsPage = lazy(() => import('./SuppressionsPage.tsx'));
const TemplatePage = lazy(() => import('./TemplatePage.tsx'));
const TemplatesPage = lazy(() => import('./TemplatesPage.tsx'));

/** More accounts than these are not asked one by one how they stand. */
const MAX_STATUS_REQUESTS = 30;

export default function CustomersPages() {
  return (
    <Suspense fallback={<Loading />}>
      <Switch>
        <Route path="/setup/customers" component={AccountsPage} />
        <Route path="/setup/customers/:account">
          {({ account }) => <SettingsPage key={account} account={decodeSegment(account)} />}
        </Route>
        <Route path="/setup/customers/:account/recipients">
          {({ account }) => <RecipientsPage key={account} account={decodeSegment(account)} />}
        </Route>
        <Route path="/setup/customers/:account/templates">
          {({ account }) => <TemplatesPage key={account} account={decodeSegment(account)} />}
        </Route>
        <Route path="/setup/customers/:account/templates/:kind/:channel/:locale">
          {({ account, kind, channel, locale }) => (
            <TemplatePage
              key={`${account}/${kind}/${channel}/${locale}`}
              account={decodeSegment(account)}
              place={{ kind, channel, locale }}
            />
          )}
        </Route>
        <Route path="/setup/customers/:account/messages">
          {({ account }) => <MessagesPage key={account} account={decodeSegment(account)} />}
        </Route>
        <Route path="/setup/customers/:account/messages/:message">
          {({ account, message }) => (
            <MessagePage
              key={`${account}/${message}`}
              account={decodeSegment(account)}
              message={decodeSegment(message)}
            />
          )}
        </Route>
        <Route path="/setup/customers/:account/suppressions">
          {({ account }) => <SuppressionsPage key={account} account={decodeSegment(account)} />}
        </Route>
        <Route>
          <NotFound href="/setup/customers">what customers are told</NotFound>
        </Route>
      </Switch>
    </Suspense>
  );
}

/** Whose customers. */
function AccountsPage() {
  const region = useRegion();
  const { data, error, refetch } = useAccounts();
  const accounts = data?.filter((account) => region === null || account.region === region);
  return (
    <Page title="What customers are told">
      {error && !data ? <Failure error={error} again={refetch} /> : null}
      {accounts?.length === 0 ? (
        <Empty>
          There are no accounts here.{' '}
          <Link href={buildHref('/setup/accounts', { region: region ?? undefined })}>Go to the accounts</Link>
        </Empty>
      ) : null}
      {accounts && accounts.length > 0 ? (
        <Panel title="Accounts" aside="Each says by itself whom it tells, and how.">
          <ul className={css.list}>
            {accounts.map(({ id, region: where }) => (
              <AccountRow key={id} id={id} region={where} asks={accounts.length <= MAX_STATUS_REQUESTS} />
            ))}
          </ul>
        </Panel>
      ) : null}
    </Page>
  );
}

function AccountRow(props: { readonly id: string; readonly region: string; readonly asks: boolean }) {
  const { id, region, asks } = props;
  const href = useCustomersHref(id);
  const settings = useSettings(id, asks);
  const [words, tone] = settings.data ? toNotificationStatus(settings.data) : [];
  return (
    <li className={css.accountRow}>
      <Link className={css.name} href={href('')}>
        {id}
      </Link>
      <span className={css.quiet}>{region.toUpperCase()}</span>
      <span className={css.state}>{words ? <Badge tone={tone ?? 'plain'}>{words}</Badge> : null}</span>
      <span className={css.links}>
        <Link href={href('recipients')} aria-label={`Recipients of ${id}`}>
          Recipients
        </Link>
        <Link href={href('templates')} aria-label={`Templates of ${id}`}>
          Templates
        </Link>
        <Link href={href('messages')} aria-label={`Messages of ${id}`}>
          Messages
        </Link>
      </span>
    </li>
  );
}

/** How an account tells its customers. */
function useSettings(account: string, enabled: boolean) {
  const api = useApi();
  return useQuery({
    queryKey: ['notifications', account],
    queryFn: ({ signal }) =>
      api.get<Settings>(`/v1/accounts/${encodeURIComponent(account)}/notifications`, { signal }),
    enabled,
    staleTime: 60_000,
  });
}
