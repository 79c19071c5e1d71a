/** Notifications to customers: the pages below `/setup/customers`. */
import { useQuery } from '@tanstack/react-query';
import { lazy, Suspense } from 'react';
import { Link, Route, Switch } from 'wouter';
import { withId } from '../api.ts';
import { Badge, Empty, Failure, Loading, NotFound, Page, Panel } from '../components.tsx';
import { useAccounts, useApi } from '../queries.ts';
import ui from '../ui.module.css';
import { buildHref, decodeSegment, useRegion } from '../urls.ts';
import css from './customers.module.css';
import { useCustomersHref } from './layout.tsx';
import { toNotificationStatus } from './settings.ts';

const MessagePage = lazy(() => import('./MessagePage.tsx'));
const MessagesPage = lazy(() => import('./MessagesPage.tsx'));
const RecipientsPage = lazy(() => import('./RecipientsPage.tsx'));
const SettingsPage = lazy(() => import('./SettingsPage.tsx'));
const SuppressionsPage = lazy(() => import('./SuppressionsPage.tsx'));
const TemplatePage = lazy(() => import('./TemplatePage.tsx'));
const TemplatesPage = lazy(() => import('./TemplatesPage.tsx'));

/** Maximum number of accounts whose status is fetched. Each takes one request. */
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
          <NotFound href="/setup/customers">customers</NotFound>
        </Route>
      </Switch>
    </Suspense>
  );
}

/** The list of accounts with their notification status. */
function AccountsPage() {
  const region = useRegion();
  const { data, error, refetch } = useAccounts();
  const accounts = data?.filter((account) => region === null || account.region === region);
  return (
    <Page title="Customers">
      {error && !data ? <Failure error={error} again={refetch} /> : null}
      {accounts?.length === 0 ? (
        <Empty>
          No accounts yet. Each account that you add appears here with its notification settings.{' '}
          <Link href={buildHref('/setup/accounts', { region: region ?? undefined })}>Go to accounts</Link>
        </Empty>
      ) : null}
      {accounts && accounts.length > 0 ? (
        <Panel title="Accounts" aside="Each account has its own recipients and settings.">
          <ul className={`${ui.list} ${css.rows}`}>
            {accounts.map(({ id, region: where }) => (
              <AccountRow
                key={id}
                id={id}
                region={where}
                showStatus={accounts.length <= MAX_STATUS_REQUESTS}
              />
            ))}
          </ul>
        </Panel>
      ) : null}
    </Page>
  );
}

function AccountRow(props: { readonly id: string; readonly region: string; readonly showStatus: boolean }) {
  const { id, region, showStatus } = props;
  const href = useCustomersHref(id);
  const settings = useSettings(id, showStatus);
  const [status, tone] = settings.data ? toNotificationStatus(settings.data) : [];
  return (
    <li className={css.accountRow}>
      <Link className={ui.name} href={href('')}>
        {id}
      </Link>
      <span className={ui.hint}>{region.toUpperCase()}</span>
      <span>{status ? <Badge tone={tone ?? 'plain'}>{status}</Badge> : null}</span>
      <span className={`${ui.actions} ${ui.actions} ${css.links}`}>
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

/** Fetches the notification settings of an account. */
function useSettings(account: string, enabled: boolean) {
  const api = useApi();
  return useQuery({
    queryKey: ['notifications', account],
    queryFn: ({ signal }) => api.get('/v1/accounts/{id}/notifications', { ...withId(account), signal }),
    enabled,
    staleTime: 60_000,
  });
}
