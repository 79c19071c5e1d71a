/** Notifications to customers: the pages below `/setup/customers`. */
import { useQuery } from '@tanstack/react-query';
import { Link, Route, Switch } from 'wouter';
import { Badge, NotFound, Page, Panel } from '../components.tsx';
import { QueryTable } from '../DataTable.tsx';
import { loadLater } from '../load-later.tsx';
import { type Account, notificationsQuery, useAccounts, useApi } from '../queries.ts';
import { useInRegion } from '../resources.ts';
import { useSession } from '../session.ts';
import { ACCOUNTS_PATH, decodeSegment, useHref, useParams } from '../urls.ts';
import { toNotificationStatus } from './settings.ts';

const ImportPage = loadLater(() => import('./ImportPage.tsx'));
const MessagePage = loadLater(() => import('./MessagePage.tsx'));
const MessagesPage = loadLater(() => import('./MessagesPage.tsx'));
const NewRecipientPage = loadLater(async () => (await import('./RecipientPage.tsx')).NewRecipientPage);
const RecipientPage = loadLater(async () => (await import('./RecipientPage.tsx')).RecipientPage);
const RecipientsPage = loadLater(() => import('./RecipientsPage.tsx'));
const SettingsPage = loadLater(() => import('./SettingsPage.tsx'));
const SuppressionsPage = loadLater(() => import('./SuppressionsPage.tsx'));
const TemplatePage = loadLater(() => import('./TemplatePage.tsx'));
const TemplatesPage = loadLater(() => import('./TemplatesPage.tsx'));

/** Maximum number of accounts whose status is fetched. Each takes one request. */
const MAX_STATUS_REQUESTS = 30;

export default function CustomersPages() {
  return (
    <Switch>
      <Route path="/setup/customers" component={AccountsPage} />
      <Route path="/setup/customers/:account">
        {({ account }) => <SettingsPage key={account} account={decodeSegment(account)} />}
      </Route>
      <Route path="/setup/customers/:account/recipients">
        {({ account }) => <Recipients key={account} account={decodeSegment(account)} />}
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
        <NotFound href="/setup/customers">notifications</NotFound>
      </Route>
    </Switch>
  );
}

/** The recipients of an account, one of them, a new one, or their import. */
function Recipients({ account }: { readonly account: string }) {
  const [read] = useParams();
  const { hasRole } = useSession();
  const form = hasRole('admin') ? read('form') : undefined;
  if (form === 'import') return <ImportPage account={account} />;
  const recipient = read('recipient');
  if (recipient !== undefined) return <RecipientPage key={recipient} account={account} id={recipient} />;
  if (form === 'new') return <NewRecipientPage account={account} />;
  return <RecipientsPage account={account} />;
}

/** The list of accounts with their notification status. */
function AccountsPage() {
  const link = useHref();
  const href = (account: string, part: string): string =>
    link(`/setup/customers/${encodeURIComponent(account)}${part}`);
  const accounts = useInRegion(useAccounts());
  const showStatus = (accounts.data?.length ?? 0) <= MAX_STATUS_REQUESTS;
  return (
    <Page title="Notifications">
      <Panel title="Accounts" aside="Each account has its own recipients and settings.">
        <QueryTable
          label="Accounts"
          query={accounts}
          empty={
            <>
              No accounts yet. Each account that you add appears here with its notification settings.{' '}
              <Link href={link(ACCOUNTS_PATH)}>Go to accounts</Link>
            </>
          }
          getKey={({ id }) => id}
          columns={{
            Account: ({ id }) => <Link href={href(id, '')}>{id}</Link>,
            Region: ({ region }) => region.toUpperCase(),
            Notifications: ({ id }) => <Status account={id} enabled={showStatus} />,
            ...Object.fromEntries(
              ['Recipients', 'Templates', 'Messages'].map((name) => [
                name,
                {
                  hiddenName: true,
                  render: ({ id }: Account) => (
                    <Link href={href(id, `/${name.toLowerCase()}`)} aria-label={`${name} of ${id}`}>
                      {name}
                    </Link>
                  ),
                },
              ]),
            ),
          }}
        />
      </Panel>
    </Page>
  );
}

/** Notification status of an account. */
function Status({ account, enabled }: { readonly account: string; readonly enabled: boolean }) {
  const api = useApi();
  const { data, isError } = useQuery({ ...notificationsQuery(api, account), enabled });
  if (!data) return isError ? 'Not available' : null;
  const [status, tone] = toNotificationStatus(data);
  return <Badge tone={tone}>{status}</Badge>;
}
