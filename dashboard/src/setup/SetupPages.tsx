/** The pages below `/setup`. */
import { lazy, Suspense } from 'react';
import { Route, Switch } from 'wouter';
import { Empty, Loading, NotFound, Page } from '../components.tsx';
import { Moved } from '../ResourcePage.tsx';
import { useSession } from '../session.ts';
import { accountHref, decodeSegment, endpointHref } from '../urls.ts';
import { SetupNavigation } from './components.tsx';

const CustomersPages = lazy(() => import('../customers/CustomersPages.tsx'));
const Overview = lazy(() => import('./Overview.tsx'));
const accounts = () => import('./AccountPages.tsx');
const AccountsPage = lazy(async () => ({ default: (await accounts()).AccountsPage }));
const NewAccountPage = lazy(async () => ({ default: (await accounts()).NewAccountPage }));
const endpoints = () => import('./EndpointPages.tsx');
const EndpointsPage = lazy(async () => ({ default: (await endpoints()).EndpointsPage }));
const NewEndpointPage = lazy(async () => ({ default: (await endpoints()).NewEndpointPage }));
const alertRules = () => import('./AlertPages.tsx');
const AlertRulePage = lazy(async () => ({ default: (await alertRules()).AlertRulePage }));
const AlertRulesPage = lazy(async () => ({ default: (await alertRules()).AlertRulesPage }));
const NewAlertRulePage = lazy(async () => ({ default: (await alertRules()).NewAlertRulePage }));
const keys = () => import('./KeyPages.tsx');
const KeysPage = lazy(async () => ({ default: (await keys()).KeysPage }));
const WallDisplaysPage = lazy(async () => ({
  default: (await import('./WallDisplaysPage.tsx')).WallDisplaysPage,
}));
const NewKeyPage = lazy(async () => ({ default: (await keys()).NewKeyPage }));

export default function SetupPages() {
  const { may, forAll } = useSession();
  const admin = may('admin');
  return (
    <>
      <SetupNavigation />
      <Suspense fallback={<Loading />}>
        <Switch>
          <Route path="/setup" component={Overview} />
          <Route path="/setup/accounts" component={AccountsPage} />
          <Route path="/setup/new-account" component={admin && forAll ? NewAccountPage : NotAllowed} />
          <Route path="/setup/accounts/:id">
            {({ id }) => <Moved to={accountHref(decodeSegment(id), 'settings')} />}
          </Route>
          <Route path="/setup/endpoints" component={EndpointsPage} />
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
      </Suspense>
    </>
  );
}

/** Replaces a form that the key has no permission for. */
function NotAllowed() {
  const { forAll } = useSession();
  return (
    <Page title="Permission denied">
      <Empty>
        Requires a key with the role admin
        {forAll ? '' : '. To create accounts, it must have access to all accounts'}.
      </Empty>
    </Page>
  );
}
