/** The pages below `/setup`. */
import { Route, Switch, useLocation } from 'wouter';
import { Empty, NotFound, Page, PageSkeleton, Tabs } from '../components.tsx';
import { loadLater } from '../load-later.tsx';
import { Moved } from '../ResourcePage.tsx';
import { useSession } from '../session.ts';
import { ACCOUNTS_PATH, accountHref, decodeSegment, ENDPOINTS_PATH, endpointHref, useHref } from '../urls.ts';
import css from './setup.module.css';

const WAITING = <PageSkeleton />;
const CustomersPages = loadLater(() => import('../customers/CustomersPages.tsx'), WAITING);
const Overview = loadLater(() => import('./Overview.tsx'), WAITING);
const NewAccountPage = loadLater(async () => (await import('./AccountPages.tsx')).NewAccountPage, WAITING);
const NewEndpointPage = loadLater(async () => (await import('./EndpointPages.tsx')).NewEndpointPage, WAITING);
const AlertRulePage = loadLater(async () => (await import('./AlertPages.tsx')).AlertRulePage, WAITING);
const AlertRulesPage = loadLater(async () => (await import('./AlertPages.tsx')).AlertRulesPage, WAITING);
const NewAlertRulePage = loadLater(async () => (await import('./AlertPages.tsx')).NewAlertRulePage, WAITING);
const KeysPage = loadLater(async () => (await import('./KeyPages.tsx')).KeysPage, WAITING);
const NewKeyPage = loadLater(async () => (await import('./KeyPages.tsx')).NewKeyPage, WAITING);
const WallDisplaysPage = loadLater(
  async () => (await import('./WallDisplaysPage.tsx')).WallDisplaysPage,
  WAITING,
);

const SECTIONS = [
  { path: '/setup', name: 'Overview', forms: ['/setup/new-account', '/setup/new-endpoint'] },
  { path: '/setup/customers', name: 'Notifications' },
  { path: '/setup/alert-rules', name: 'Alert rules', forms: ['/setup/new-alert-rule'] },
  { path: '/setup/keys', name: 'Keys', forms: ['/setup/new-key'] },
  { path: '/setup/wall-displays', name: 'Wall displays' },
];

export default function SetupPages() {
  const { hasRole, hasAllAccounts } = useSession();
  const admin = hasRole('admin');
  return (
    <>
      <SetupNavigation />
      <Switch>
        <Route path="/setup" component={Overview} />
        <Route path="/setup/accounts">
          <Moved to={ACCOUNTS_PATH} />
        </Route>
        <Route path="/setup/new-account" component={admin && hasAllAccounts ? NewAccountPage : NotAllowed} />
        <Route path="/setup/accounts/:id">
          {({ id }) => <Moved to={accountHref(decodeSegment(id), 'settings')} />}
        </Route>
        <Route path="/setup/endpoints">
          <Moved to={ENDPOINTS_PATH} />
        </Route>
        <Route path="/setup/new-endpoint" component={admin ? NewEndpointPage : NotAllowed} />
        <Route path="/setup/endpoints/:region/:id">
          {({ region, id }) => (
            <Moved to={endpointHref(decodeSegment(region), decodeSegment(id), 'settings')} />
          )}
        </Route>
        <Route path="/setup/alert-rules" component={AlertRulesPage} />
        <Route path="/setup/new-alert-rule" component={admin ? NewAlertRulePage : NotAllowed} />
        <Route path="/setup/alert-rules/:region/:id">
          {({ region, id }) => (
            <AlertRulePage key={`${region}/${id}`} region={decodeSegment(region)} id={decodeSegment(id)} />
          )}
        </Route>
        <Route path="/setup/keys" component={KeysPage} />
        <Route path="/setup/wall-displays" component={WallDisplaysPage} />
        <Route path="/setup/new-key" component={admin ? NewKeyPage : NotAllowed} />
        <Route path="/setup/customers/*?" component={CustomersPages} />
        <Route>
          <NotFound href="/setup">setup</NotFound>
        </Route>
      </Switch>
    </>
  );
}

/** Replaces a form that the key has no permission for. */
function NotAllowed() {
  const { hasAllAccounts } = useSession();
  return (
    <Page title="Permission denied">
      <Empty>
        Requires a key with the role admin
        {hasAllAccounts ? '' : '. To create accounts, it must have access to all accounts'}.
      </Empty>
    </Page>
  );
}

/** Navigation within the setup. */
function SetupNavigation() {
  const [location] = useLocation();
  const link = useHref();
  const tabs = SECTIONS.map(({ path, name, forms = [] }) => ({
    ...{ name, href: link(path) },
    isCurrent: [path, ...forms].includes(location) || (path !== '/setup' && location.startsWith(`${path}/`)),
  }));
  return (
    <div className={css.places}>
      <Tabs label="Setup" tabs={tabs} />
    </div>
  );
}
