/** The pages of accounts and endpoints: all of them, and each with its tabs. */
import { Route, Switch } from 'wouter';
import { NotFound } from '../components.tsx';
import { loadLater } from '../load-later.tsx';
import { Moved } from '../ResourcePage.tsx';
import { ACCOUNTS_PATH, accountHref, decodeSegment, ENDPOINTS_PATH, endpointHref } from '../urls.ts';

// Each page is loaded on demand: the settings include the schemas, and the state does not need them.
const OverviewPage = loadLater(async () => (await import('./OverviewPage.tsx')).OverviewPage);
const AccountPage = loadLater(async () => (await import('./AccountPage.tsx')).AccountPage);
const AccountActivity = loadLater(async () => (await import('./AccountPage.tsx')).AccountActivity);
const EndpointPage = loadLater(async () => (await import('./EndpointPage.tsx')).EndpointPage);
const EndpointActivity = loadLater(async () => (await import('./EndpointPage.tsx')).EndpointActivity);
const AccountSettings = loadLater(async () => (await import('../setup/AccountPages.tsx')).AccountPage);
const EndpointSettings = loadLater(async () => (await import('../setup/EndpointPages.tsx')).EndpointPage);

const accountTabs = { state: AccountPage, activity: AccountActivity, settings: AccountSettings };
const endpointTabs = { state: EndpointPage, activity: EndpointActivity, settings: EndpointSettings };
const isTab = (tab: string): tab is keyof typeof accountTabs => Object.hasOwn(accountTabs, tab);

export default function HealthPages() {
  return (
    <Switch>
      <Route path="/health" component={OverviewPage} />
      <Route path="/accounts/:id/:tab?">
        {({ id, tab = 'state' }) => {
          if (!isTab(tab)) return <Missing />;
          const Tab = accountTabs[tab];
          return <Tab key={id} id={decodeSegment(id)} />;
        }}
      </Route>
      <Route path="/endpoints/:region/:id/:tab?">
        {({ region, id, tab = 'state' }) => {
          if (!isTab(tab)) return <Missing />;
          const Tab = endpointTabs[tab];
          return <Tab key={`${region}/${id}`} region={decodeSegment(region)} id={decodeSegment(id)} />;
        }}
      </Route>
      <Route path="/health/accounts/:id">{({ id }) => <Moved to={accountHref(decodeSegment(id))} />}</Route>
      <Route path="/health/endpoints/:region/:id">
        {({ region, id }) => <Moved to={endpointHref(decodeSegment(region), decodeSegment(id))} />}
      </Route>
      <Route path="/accounts">
        <Moved to={ACCOUNTS_PATH} />
      </Route>
      <Route path="/endpoints">
        <Moved to={ENDPOINTS_PATH} />
      </Route>
      <Route component={Missing} />
    </Switch>
  );
}

function Missing() {
  return <NotFound href="/health">Health</NotFound>;
}
